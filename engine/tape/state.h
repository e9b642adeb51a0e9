// What the files of engine/tape share: the tapes of a context, a tape's lists, leaves, and one backward pass.
// Slots: an open tape has one of 63, and bit s of origin.tapes says that the tape in slot s tracks the value. Closing
// clears the bit from all that the tape lists, so a slot means one tape only. Bit 63 is the no-tape mode that
// requires_grad turns on: its records are held by tensors alone.
#ifndef TD_TAPE_STATE_H
#define TD_TAPE_STATE_H
#include "engine/tape/tape.h"

enum { TD_SLOTS = 63, TD_PLACES_WARNED = 64 };
#define TD_LOOSE_BIT (UINT64_C(1) << 63)
#define TD_TAPE_BITS (TD_LOOSE_BIT - 1)

typedef struct td_leaf {  // a record without op
  td_record record;
  td_meta meta;
  td_tensor *grad;        // of a tensor that requires it; owned
  struct td_leaf *next, **link; // in td_tapes.graded while grad has an origin
} td_leaf;

typedef struct td_note {  // where a chain was cut
  enum td_cut cut;
  td_place place;
  uint64_t serial;        // record of the value that was cut off; 0: none
  uint64_t variable;      // Variable that it is, or that it was assigned to
} td_note;

typedef struct td_target { // a target of the last gradient
  uint64_t serial;        // its record; 0: not recorded
  td_place place;
} td_target;

typedef struct td_list {  // counted records
  td_record **at;
  int64_t count, capacity;
} td_list;

struct td_region {         // a checkpoint (checkpoint.c)
  int refs;               // one for each record, and while it is made or filled
  td_rerun rerun;
  uint64_t counter;       // random state that it started from
  td_record **records;    // in order; NULL: gone. They hold the region, not the other way round
  uint32_t count, capacity;
  int users;              // passes that have filled it
  uint32_t next;          // of the second run: record that comes next
  int no_grad;            // depth when that run began
};

struct td_tape {
  atomic_uint refs;
  bool persistent, watch_accessed;
  bool spent;             // gave its records' saved tensors up
  bool asked;             // gradient() was called: targets are its
  int slot;               // -1: closed
  int paused;             // depth of stop_recording
  td_list records, leaves; // in order of time; leaves may name op records of an outer tape
  td_note *notes;
  int note_count, note_capacity;
  td_target *targets;
  int target_count;
};

typedef struct td_kept td_kept;

typedef struct td_tapes { // context->tapes
  uint64_t open, paused;  // slots
  uint64_t watching;      // slots whose tapes watch accessed Variables
  uint64_t hidden;        // bits that the pass that runs now must not be recorded by
  uint64_t recording;     // what records now
  bool loose;             // something required grad once
  int no_grad;            // depth
  int gathering;          // scopes in which gradients are meant to add up
  const td_observer *observer; // of backward passes; NULL: none
  td_kept *kept;          // values that the Variables get back at the end of an aside
  const td_record *running; // whose rule a pass runs now; NULL: none
  bool pushing;           // it runs forward
  td_region *region;      // that is being made
  td_region *replaying;   // that is being filled
  td_tape *slots[TD_SLOTS];
  uint8_t depths[TD_SLOTS]; // batches that were open when the tape in that slot was opened
  uint64_t serial, stamp;
  td_leaf *graded;
  td_place warned[TD_PLACES_WARNED]; // places that were told about summed outputs
  int warned_count;
  int64_t looked_at;      // milliseconds; of the last pass whose cotangents were measured well though nobody looked
} td_tapes;

td_tapes *td_tapes_of(td_context *context);   // made on first use; NULL: no memory, error set
void td_tapes_update(td_context *context);    // recording and context->recorder, from the rest

void td_aside_keep(td_tapes *tapes, td_variable *v); // its value is about to be replaced by a view of it (aside.c)
int td_tapes_loosen(td_context *context);     // turns the no-tape mode on

// ---- records ----
extern const td_recorder td_tape_recorder;
td_leaf *td_leaf_new(td_context *context, const td_tensor *t, uint64_t variable); // one reference
int td_leaf_root(td_context *context, td_tensor *t);    // gives t a leaf as its origin, unless it has an origin
int td_leaf_refuse(td_context *context, const char *who, const td_tensor *t); // TD_ERROR_DTYPE: t is no floating tensor
// takes over the reference; NULL clears
int td_leaf_set_grad(td_context *context, td_leaf *leaf, td_tensor *grad);
const td_op *td_derived_op(const td_tapes *tapes); // whose derivative runs now; NULL: none
// Puts before the error that is set that it came in the gradient or jvp (who) of this record; returns its code
int td_record_blame(td_context *context, const char *who, const td_record *record);
int td_list_reserve(td_context *context, td_list *list);        // room for one more
void td_list_add(td_list *list, td_record *record);             // takes over one reference
void td_record_give_up(td_record *record);                      // one keeper less
void td_record_let_go(td_record *record, bool keeps);           // one holder less, and its reference dropped
void td_record_spend(td_record *record);                        // backward() without retain_graph is done with it
void td_tape_note(td_tape *tape, const td_note *note);
bool td_record_save(td_context *context, td_record *record, td_tensor *const *in, td_tensor *const *out);
bool td_record_own_output(td_context *context, td_tensor **out); // an output that others hold gets a view of its own
void td_record_drop_saved(td_record *record);

// ---- checkpoints (checkpoint.c) ----
void td_region_unref(td_region *region);
int td_region_add(td_context *context, td_region *region, td_record *record);
void td_region_forget(td_record *record);
int td_region_replay(td_context *context, const td_op *op, td_tensor *const *in, int in_count, td_tensor **out,
                     int out_count);
// A pass goes from one region (NULL: none) to the next one's records: that one is filled, the other emptied.
int td_region_move(td_context *context, td_region *next, td_region **region);

// ---- one backward pass (pass.c) ----
typedef struct td_node { // an op that the pass runs
  td_record *record;    // counted
  uint32_t slot;        // of its first output's cotangent
  uint32_t edge;        // of its first input
} td_node;

#define TD_NO_SLOT UINT32_MAX

typedef struct td_pass {
  td_context *context;
  td_record *const *leaves, *const *records; // in order of time; read until the plan stands
  int64_t leaf_count, record_count;
  uint64_t stamp;
  uint8_t *marks;          // one for each leaf, then one for each record
  uint32_t *slots;         // by the same index: slot of the first cotangent, or TD_NO_SLOT
  td_node *nodes;          // in order of running
  int64_t node_count, ran;
  uint32_t *edges;         // slot that each input's cotangent goes to, or TD_NO_SLOT
  td_tensor **cotangents;  // by slot
  uint8_t *traits;         // by slot: the sum is ours, the result is wanted
  uint32_t slot_count;
  bool looks;              // cotangents are measured well; else at a glance
  void (*done)(td_record *); // called for each record that was or need not be run; NULL: records stay as they are
  td_scope scope;          // of seeds and sums
  void *block;
} td_pass;

int td_pass_open(td_pass *pass, td_context *context, const td_list *leaves, const td_list *records);
// index of t's record, when it is in the pass
bool td_pass_find(const td_pass *pass, const td_tensor *t, int64_t *index);
void td_pass_want(td_pass *pass, int64_t index);   // its cotangents are to be computed and kept
void td_pass_mark(td_pass *pass);                  // finds what leads to wanted ones; after the last want
void td_pass_target(td_pass *pass, int64_t index); // what it depends on is to be run
int td_pass_plan(td_pass *pass);                   // after the last target
uint32_t td_pass_slot(const td_pass *pass, int64_t index, int output);
int td_pass_seed(td_pass *pass, uint32_t slot, td_tensor *cotangent);
int td_pass_run(td_pass *pass);
void td_pass_close(td_pass *pass);
// a saved output, or NULL; owned by the rule's scope
td_tensor *td_rule_output(td_rule *rule, td_record *record, int output);
// error: it can't be differentiated
int td_record_refuse(td_context *context, const char *who, const td_record *record);

// ---- shared by gradient() and backward() ----
td_tensor *td_seed_make(td_context *context, td_scope *scope, const char *who, int index, int count, td_tensor *target,
                        td_tensor *cotangent); // cotangent checked, or ones; borrowed from scope
int td_records_collect(td_context *context, td_tensor *const *targets, int count, td_list *leaves, td_list *records);
void td_records_free(td_list *leaves, td_list *records);
td_tensor *td_result_own(td_context *context, td_tensor *t); // takes over t; a tensor that nothing else holds
void td_seed_warn(td_context *context, const char *who, td_tensor *const *targets, td_tensor *const *cotangents,
                  int count);
void td_tape_warn(td_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
