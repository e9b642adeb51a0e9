// Tapes: what ran, kept so that it can be differentiated and looked at. While a tape is open, each op with a tracked
// input makes a td_record; records form a graph through their parents, and a tape lists its own in order. Backward
// walks that list from the end, without recursion, calling each row's vjp; cotangents are computed with ops, so an
// outer tape records them and any order of derivative works.
#ifndef TD_TAPE_TAPE_H
#define TD_TAPE_TAPE_H
#include "engine/ops/op.h"
#include "engine/tensor/variable.h"

typedef struct td_tape td_tape;

typedef struct td_region td_region;

typedef struct td_record {
  td_origin origin;             // first member: a tensor's origin is a record
  const td_op *op;              // NULL: a leaf (a watched tensor or a Variable's value)
  const td_op *of;              // whose derivative, of whatever order, it was made for; NULL: nobody's
  uint64_t serial;              // grows with time: parents are smaller
  td_place place;
  uint64_t variable;            // leaf of a Variable: its id, else 0
  uint16_t in_count, out_count;
  td_arg *args;                 // owned; NULL when the op has none
  struct td_record **parents;   // in_count; counted; NULL: that input was not tracked
  uint8_t *parent_output;       // which output of the parent
  td_tensor **saved;            // in_count inputs then out_count outputs; NULL where saves does not name them; counted.
                                // NULL: saves names none. Read by td_record_saved
  td_meta *out_meta;            // out_count
  uint8_t keepers;              // tapes, and the no-tape mode, that may still differentiate it; at 0 saved is dropped
  uint8_t holders;              // those that still list it; at 0 parents are dropped too
  bool loose;                   // the no-tape mode is one of them
  bool spent;                   // backward() went through it without retain_graph
  bool glanced;                 // cotangent_norm is a rough estimate, from a few elements
  uint8_t carried;              // backward passes whose leftovers this place gathered into the value
  uint32_t region_index;
  float seconds;                // that the op took; below 0: not measured
  float cotangent_norm;         // of what the last pass brought to its first output; below 0: not looked at
  td_region *region;            // checkpoint that it was made in; NULL: none
  uint64_t stamp;               // last pass that visited it, and its index there
  union {
    int64_t index;
    struct td_record *next;     // worklist of release
  };
} td_record;

static inline td_tensor *td_record_saved(const td_record *record, int index) {
  return record->saved ? record->saved[index] : NULL;
}
// Hidden ops have names that users don't know: what a derivative made of them is called "derivative of det".
typedef struct td_record_name { char text[80]; } td_record_name;
static inline bool td_record_is_derived(const td_record *record) { return record->of && record->op->flags & TD_HIDDEN; }
td_record_name td_record_name_of(const td_record *record);
int64_t td_record_bytes(const td_record *record);         // bytes of the storage that it keeps alive for backward

// Drops the state of tapes: closes open ones, forgets grads that hold their own graph. Before td_context_free.
void td_tapes_free(td_context *context);

// Runs code apart: on its own random numbers from seed on, unseen by the tapes and the vmap that are open, and gone
// without a trace. Calls nest.
typedef struct td_apart {
  uint64_t seed, counter, streams;
  void *tapes;
  const struct td_recorder *recorder;
  const struct td_inspector *inspector;
  int batch_depth, batch_ceiling;
  bool apart;
} td_apart;
td_apart td_apart_enter(td_context *context, uint64_t seed);
void td_apart_leave(td_context *context, const td_apart *outer);

// Around code that runs in the middle of another one's: no tape that is open now records any of it, whatever scope of
// no_grad it stands in; tapes that it opens itself record as ever. Its random numbers go on from the state that it
// finds, and that state is put back, unless it was set meanwhile (td_context_set_random). Calls nest.
typedef struct td_aside {
  uint64_t seed, counter, streams, random_sets;
  uint64_t hidden;
  int no_grad;
  const struct td_observer *observer;
  struct td_kept *kept;
} td_aside;
bool td_aside_possible(const td_context *context); // not inside of vmap, of a backward pass, or of code that runs apart
td_aside td_aside_enter(td_context *context);
void td_aside_leave(td_context *context, const td_aside *outer);

td_tape *td_tape_new(td_context *context, bool persistent, bool watch_accessed_variables);
void td_tape_unref(td_context *context, td_tape *tape);
td_tape *td_tape_ref(td_tape *tape);
int td_tape_open(td_context *context, td_tape *tape);     // starts recording (again); tapes nest
void td_tape_close(td_context *context, td_tape *tape);
int td_tape_pause(td_context *context, td_tape *tape);    // stop_recording: this tape alone
void td_tape_resume(td_context *context, td_tape *tape);
void td_tape_reset(td_context *context, td_tape *tape);   // forgets all records
int td_tape_watch(td_context *context, td_tape *tape, td_tensor *t); // t gets a leaf; integer dtypes: TD_ERROR_DTYPE
int td_tape_watch_variable(td_context *context, td_tape *tape, td_variable *v);
// The ids of the Variables watched, in order; returns how many. ids NULL: there are at most so many.
int td_tape_watched(td_tape *tape, uint64_t *ids, int capacity);
// op records, leaves not counted; they stay listed after gradient()
int64_t td_tape_length(const td_tape *tape);
const td_record *td_tape_record_at(const td_tape *tape, int64_t index);
int64_t td_tape_leaf_count(const td_tape *tape);
const td_record *td_tape_leaf_at(const td_tape *tape, int64_t index); // in order of time
bool td_tape_was_target(const td_tape *tape, const td_record *record); // of the last gradient()
td_tape *td_tape_newest(const td_context *context);       // that is open, by its last record; borrowed, NULL: none is

// The Variable's value for use in an op: on tapes that watch accessed Variables it gets a leaf. New reference.
td_tensor *td_variable_read(td_context *context, td_variable *v);

typedef struct td_source { td_tensor *tensor; td_variable *variable; } td_source; // one of the two

// Gradients of the sum of all targets (weighted by output_gradients where not NULL) in each source. out: new
// references, NULL where unconnected (or zeros of the source's shape when unconnected_zero). The tape must be
// persistent or unused, else TD_ERROR_STATE says so with the remedy. A non-persistent tape gives its records up.
int td_tape_gradient(td_context *context, td_tape *tape, td_tensor *const *targets, int target_count,
                     td_tensor *const *output_gradients, const td_source *sources, int source_count,
                     bool unconnected_zero, td_tensor **out);

// Forward mode: tangents of the targets for tangents of the sources (NULL: zero), which are watched tensors or
// Variables. out: new references, NULL where a target does not depend on the sources. The tape keeps its records:
// calling this again with other tangents is the linearised function. Error TD_ERROR_SHAPE: a tangent has not its
// source's shape or dtype.
int td_tape_jvp(td_context *context, td_tape *tape, const td_source *sources, td_tensor *const *tangents,
                int source_count, td_tensor *const *targets, int target_count, td_tensor **out);

// Derivatives of every element of the target in every element of each source: [target's shape, source's shape]. With
// per_example axis 0 of target and sources counts examples that don't depend on each other, and the result is
// [examples, target's other axes, source's other axes]. out as td_tape_gradient's; so are errors, and a tape for one
// use is used up. progress (or NULL) hears of each pass that is done, and of how many there will be.
int td_tape_jacobian(td_context *context, td_tape *tape, td_tensor *target, const td_source *sources, int source_count,
                     bool per_example, bool unconnected_zero,
                     void (*progress)(void *owner, int64_t done, int64_t total), void *owner, td_tensor **out);

typedef struct td_custom { // a derivative of the caller's
  // Cotangents of all values to those of the inputs: din gets new references, or NULL for zero. They may be of a shape
  // that broadcasts from the input's.
  int (*vjp)(void *owner, td_tensor *const *cotangents, int value_count, td_tensor **din, int in_count);
  void (*release)(void *owner);
  void *owner;
  const char *name;             // of the function, for messages; lives as long as owner
} td_custom;
// The same values (new references), which depend on in by custom alone. Takes custom's owner over, also on failure.
int td_tape_custom(td_context *context, const td_custom *custom, td_tensor *const *in, int in_count,
                   td_tensor *const *values, int value_count, td_tensor **out);
// of a call that td_tape_custom made; NULL: another op
const char *td_custom_name(const td_op *op, td_tensor *const *in);

// checkpoint(f): between begin and end ops are recorded, but keep nothing for backward; a pass calls run, which must do
// the same ops again. begin takes rerun's owner over, also on failure; region is borrowed until end.
typedef void td_each_tensor(void *argument, const td_tensor *t);
typedef struct td_rerun {
  int (*run)(void *owner);
  void (*release)(void *owner);
  void *owner;
  void (*kept)(void *owner, td_each_tensor *each, void *argument); // tensors that owner keeps alive; NULL: none
} td_rerun;
int td_region_begin(td_context *context, const td_rerun *rerun, td_region **region);
void td_region_end(td_context *context, td_region *region);
void td_region_kept(const td_region *region, td_each_tensor *each, void *argument); // what it keeps to run once more

// PyTorch's habit: accumulates into grad of every tracked leaf Variable (and of tensors marked by
// td_tensor_require_grad). Works on records of any tape or of the no-tape mode that requires_grad turns on.
// retain_graph and create_graph false: records are given up.
int td_backward(td_context *context, td_tensor *target, td_tensor *cotangent, bool retain_graph, bool create_graph);
// The same records as backward(), of any tape or of none, but gradients in the sources as td_tape_gradient gives them;
// no grad changes. A target that was not recorded is an error.
int td_recorded_gradient(td_context *context, td_tensor *const *targets, int target_count,
                         td_tensor *const *output_gradients, const td_source *sources, int source_count,
                         bool retain_graph, bool create_graph, td_tensor **out);
int td_tensor_require_grad(td_context *context, td_tensor *t, bool on);  // t becomes a leaf that backward() fills
bool td_tensor_requires_grad(const td_tensor *t);
td_tensor *td_tensor_grad(const td_tensor *t);            // borrowed; NULL: none
// A warning, once at a place, where t was computed from what requires grad: whoever reads its grad, which stays NULL,
// may have meant the leaf
void td_tensor_warn_of_grad(td_context *context, const td_tensor *t);
int td_tensor_set_grad(td_context *context, td_tensor *t, td_tensor *grad); // grad NULL clears
bool td_tensor_is_leaf(const td_tensor *t);

// Backward passes node by node: called when a rule has run, before what it gave is added up. din[i] is what goes to
// input i (NULL: nothing), of a shape that broadcasts from it; the observer may put another tensor there that scope
// owns. An error ends the pass. What the observer computes is not observed.
typedef struct td_pass_step {
  const td_record *record;
  td_tensor *const *cotangent;   // of the record's out_count outputs; NULL: not used
  td_tensor **din;               // in_count
  const bool *needs;             // whether input i leads on to a source
  td_scope *scope;
} td_pass_step;
typedef struct td_observer {
  int (*step)(void *owner, td_context *context, const td_pass_step *step);
  void *owner;
} td_observer;
int td_tape_observe(td_context *context, const td_observer *observer); // borrowed; NULL: no longer

// on: backward() adds to old grads without a warning until the matching off; nests
void td_gathering_set(td_context *context, bool on);
void td_no_grad_enter(td_context *context);               // nothing records until the matching leave; nests
void td_no_grad_leave(td_context *context);
bool td_recording(const td_context *context);             // some tape records now
td_tensor *td_stop_gradient(td_context *context, td_tensor *t); // same value, no origin; noted for why

// Events that cut a chain, noted so that td_tape_why can name the line.
enum td_cut {
  TD_CUT_NUMBER /* item(), float() */,
  TD_CUT_STOP,
  TD_CUT_PAUSED,
  TD_CUT_ASSIGN,
  TD_CUT_INTEGER,
  TD_CUT_DETACH,
  TD_CUT_OVERWRITTEN /* x[i] = v: t is the value that the name held before */
};
void td_tape_note_cut(td_context *context, enum td_cut cut, td_tensor *t, td_variable *v);

// Why the last gradient of this tape in source is None (or what it is): one sentence with the line, and the remedy.
// Eight causes: not watched, not trainable, replaced by a tensor, left as a number, integer type, state assign,
// stopped (stop_gradient or recording off at line N), not on the path.
int td_tape_why(td_context *context, td_tape *tape, const td_source *source, td_text *answer);
#endif
