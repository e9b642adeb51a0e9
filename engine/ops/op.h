// What an op is. An op is one const td_op beside its kernel, in its family's file; there is no enum of ops. From the
// row come the builtin in the language with its keyword arguments and help page, eager dispatch, tape records, and the
// reference and gradient tests. To add an op: write its kernel and row, add it to the list at the end of its file.
#ifndef TD_OPS_OP_H
#define TD_OPS_OP_H
#include "engine/tensor/tensor.h"

#define TD_INPUT_MAX 64     // tensors of one call (concat's list included)
#define TD_OUTPUT_MAX 64    // its results
#define TD_PARAM_MAX 12     // rows of td_op.params

typedef struct td_op td_op;
typedef struct td_batching td_batching; // batch.h

// ---- arguments that are not tensors ----
enum td_param_kind {
  TD_PARAM_END = 0,
  TD_PARAM_TENSOR,          // a tensor, or a number that takes the dtype of the other tensors
  TD_PARAM_TENSOR_OPTIONAL, // as above, or None (the input is NULL)
  // a tensor of indices or of truths: numbers and lists among them take no dtype from the others
  TD_PARAM_INDEX,
  TD_PARAM_TENSORS,         // a list or tuple of tensors; the only tensor parameter of its op
  // as above, also written one after the other: meshgrid(x, y). A required text goes before: einsum
  TD_PARAM_TENSORS_SPREAD,
  TD_PARAM_INT, TD_PARAM_FLOAT, TD_PARAM_BOOL,
  TD_PARAM_CHOICE,          // one of td_param.choices; td_arg.i is its index
  TD_PARAM_AXIS,            // int, negative counts from the end; may be None where the default is None
  TD_PARAM_AXES,            // None, int, or a tuple of ints
  TD_PARAM_SHAPE,           // int or a tuple of ints
  TD_PARAM_INTS,            // an int or a tuple of ints; or, where it has choices, one of them: td_arg.given is then
                            // TD_GIVEN_CHOICE, i its index
  TD_PARAM_FLOATS,          // a tuple of numbers, or one number: td_arg.given is then TD_GIVEN_LONE
  TD_PARAM_DTYPE,           // td_arg.i is the td_dtype
  TD_PARAM_TEXT,            // short text (einsum's subscripts)
  // int n (count -1, n in pairs[0][0]), or two ints or tuples of ints of one length: count pairs
  TD_PARAM_PAIRS,
  TD_PARAM_ORDER,           // of a norm: a number in f (count 0), or short text (count 1)
  TD_PARAM_NUMBER,          // int or float, told apart: td_arg.count 0: an int in i; 1: a float in f
};

enum { TD_GIVEN_CHOICE = 2, TD_GIVEN_LONE = 3 };

typedef struct td_arg {     // value of one parameter
  uint8_t given;            // 0: None; TD_GIVEN_CHOICE; TD_GIVEN_LONE
  // AXES, SHAPE, INTS: numbers in ints; FLOATS: in floats. For AXES with given = 0: all axes. NUMBER: 1 for a float
  int32_t count;
  union {
    int64_t i;
    double f;
    int64_t ints[TD_RANK_MAX];
    double floats[TD_RANK_MAX];
    int32_t pairs[TD_RANK_MAX][2];
    char text[64];
  };
} td_arg;

typedef struct td_param {
  const char *name;         // keyword in the language ("axis"; binders also take dim for axis, keepdim for keepdims)
  uint8_t kind;             // enum td_param_kind
  bool required;            // no default: must be given (tensor parameters always must, unless optional)
  td_arg fallback;          // the default; {0} is None
  const char *const *choices; // CHOICE: NULL-terminated; INTS: the same, or NULL
  bool keyword;             // given by name only: positions don't count it
  const char *const *alias; // other keywords for it (clip's low: min), NULL-terminated; NULL: none
} td_param;
#define TD_ALIAS(...) (const char *const[]){ __VA_ARGS__, NULL }
#define TD_AXES_NONE { .given = 0 }
#define TD_INT_DEFAULT(n) { .given = 1, .i = (n) }
#define TD_FLOAT_DEFAULT(x) { .given = 1, .f = (x) }

// ---- what the functions of a row are given ----
// shape and dtype rule: reads in and args, fills out. The only place that raises shape errors
typedef struct td_infer {
  td_context *context;
  const td_op *op;
  int in_count;
  td_meta in[TD_INPUT_MAX];  // of an optional input that is None: rank 255
  // the inputs themselves; NULL when only shapes are known. For rules whose shape depends on values
  td_tensor *const *tensors;
  const td_arg *args;       // one for each parameter that is not a tensor, in the row's order
  int out_count;            // preset to the row's outputs; a rule of TD_MANY sets it
  int output;               // VIEW ops: the output that view is asked for
  td_meta out[TD_OUTPUT_MAX];
} td_infer;

typedef struct td_view {    // a tensor as a kernel sees it; strides count elements
  char *data;
  int64_t size;
  int64_t shape[TD_RANK_MAX], strides[TD_RANK_MAX];
  uint8_t dtype, rank;
} td_view;

typedef struct td_call {    // what a kernel is given; outputs are allocated, contiguous, not initialised
  td_context *context;      // pool and seed; a kernel raises only what infer can't see (values out of range, memory)
  const td_op *op;
  const td_arg *args;
  int in_count, out_count;
  void *workspace;          // what the row's workspace asked for, 64-byte aligned, not initialised
  td_view in[TD_INPUT_MAX]; // data NULL: optional input not given
  td_view out[TD_OUTPUT_MAX];
} td_call;
// Kernels never touch in[k] beyond in_count nor out[k] beyond out_count: dispatch leaves them uninitialised.

// Temporaries of a rule. Builder functions (td_add(scope, a, b)) return tensors owned by the scope; a NULL operand
// gives NULL, so a failure passes through a formula and is seen once, in scope->failed.
typedef struct td_scope {
  td_context *context;
  bool failed;
  int count, capacity;
  td_tensor **owned;
  td_tensor *first[12];     // where owned points until more are needed
} td_scope;
void td_scope_open(td_scope *scope, td_context *context);
void td_scope_close(td_scope *scope);                               // drops all temporaries
td_tensor *td_scope_own(td_scope *scope, td_tensor *t);             // takes over one reference; returns t
// count tensors follow; first output
td_tensor *td_scope_apply(td_scope *scope, const td_op *op, const td_arg *args, int count, ...);
td_tensor *td_scope_number(td_scope *scope, double value, const td_tensor *like); // 0-d of like's dtype
// full tensor of like's shape and dtype (may be a stride-0 view)
td_tensor *td_scope_filled(td_scope *scope, double value, const td_meta *like);

// A derivative's rule. As vjp it sets din[i] for each i with needs[i], or leaves it NULL for zero; as jvp it does the
// same for dout[k] from tangent.
typedef struct td_rule {
  td_scope scope;           // temporaries; din may be any of them
  const td_op *op;
  const td_arg *args;
  int in_count, out_count;
  td_tensor *in[TD_INPUT_MAX];   // inputs that saves names; the others NULL
  td_meta in_meta[TD_INPUT_MAX]; // shape and dtype of every input with needs[i]
  td_tensor *out[TD_OUTPUT_MAX]; // outputs when saves has TD_SAVES_OUTPUT; else NULL
  td_meta out_meta[TD_OUTPUT_MAX];
  td_tensor *cotangent[TD_OUTPUT_MAX]; // shape and dtype of the output; NULL: that output was not used
  bool needs[TD_INPUT_MAX];
  td_tensor *din[TD_INPUT_MAX];  // may have a broadcast shape: the tape sums it to the input's shape and casts it
  td_tensor *tangent[TD_INPUT_MAX]; // jvp: shape and dtype of the input; NULL: zero
  td_tensor *dout[TD_OUTPUT_MAX];   // jvp: a shape that broadcasts to the output's
} td_rule;

enum td_kind {              // what passes and panes may ask
  TD_KIND_ELEMENTWISE, TD_KIND_REDUCE, TD_KIND_VIEW, TD_KIND_GEMM, TD_KIND_INDEX, TD_KIND_RANDOM, TD_KIND_OPAQUE,
};
enum td_flag {
  TD_COMMUTATIVE = 1, TD_ASSOCIATIVE = 2, TD_LINEAR = 4 /* in all floating inputs together, others fixed */,
  TD_IDEMPOTENT = 8, TD_HIDDEN = 16 /* no builtin */,
  TD_HALF = 32 /* the kernel takes float16 and bfloat16 itself; others get float32 from dispatch */,
  TD_MULTILINEAR = 64 /* linear in each floating input, the others fixed */,
  TD_IMPLICIT = 128 /* what is drawn moves as its distribution does: differences of draws don't give the gradient */ };
enum { TD_MANY = 255 };     // td_op.outputs: as many as infer says; the builtin gives a tuple
enum {
  TD_SAVES_NONE = 0,
  TD_SAVES_IN0 = 1,
  TD_SAVES_IN1 = 2,
  TD_SAVES_IN2 = 4,
  TD_SAVES_INPUTS = 0xff,
  TD_SAVES_OUTPUT = 0x100
};

typedef struct td_sample {  // inputs that the tests feed: the n-th number of each input is drawn from [low, high]
  const char *shapes;       // "3,4; 4" one shape for each tensor input, "-" for 0-d, "0,3" zero-size, "none" not given.
                            // "3,3 symmetric +2": a symmetric matrix with 2 added to its diagonal; derivatives of it
                            // are looked at along symmetric changes only
  const char *args;         // "axis=1, keepdims=True" in the language's syntax; NULL: defaults
  double low, high;         // keep away from kinks; integers are drawn for integer inputs
  const char *dtypes;       // "float64; int64" for each input; NULL: all float64
} td_sample;

struct td_op {
  const char *name;         // builtin's name
  const char *const *alias; // other names that users bring along (clip: clamp), NULL-terminated; NULL: none
  td_param params[TD_PARAM_MAX]; // tensors first, in the order of inputs; ends at TD_PARAM_END
  uint8_t kind;             // enum td_kind
  uint8_t flags;            // enum td_flag
  uint8_t outputs;          // 0 means 1; TD_MANY: infer says
  bool method;              // also tensor.name(...)
  int (*infer)(td_infer *);
  int (*kernel)(const td_call *); // TD_OK, or an error set in call->context. VIEW ops leave it NULL and set view
  // VIEW ops: a new view of in's storage, or a copy where none fits; no origin
  td_tensor *(*view)(td_context *, td_tensor *in, const td_infer *);
  // bytes that the kernel gets in call->workspace; NULL: none. Kernels allocate nothing
  int64_t (*workspace)(const td_call *);
  const char *expression;   // scalar expression of an elementwise op in x, y, z; NULL elsewhere
  int (*vjp)(td_rule *);
  // ops of a list: the op that joins, with the same arguments, what this one makes of the parts of a list that is
  // longer than a call takes; NULL: longer ones are refused
  const char *join;
  int (*batch)(td_batching *); // how vmap runs it for all examples at once (batch.h); NULL: elementwise, or one by one
  int (*jvp)(td_rule *);    // NULL: derived from flags and vjp (engine/tape/forward.c). Reads what saves names
  const char *no_gradient;  // set when vjp is NULL: why ("integer result"); becomes tape.why's answer
  uint16_t saves;           // what vjp reads: TD_SAVES_...
  const char *doc;          // first line: one sentence; then gradient formula and conventions
  const char *example;      // deck text whose last line's value is shown after "# "; run by the tests
  const char *source;       // where the formula is from; may be NULL
  const td_sample *samples; // ends at shapes == NULL
  double tolerance;         // relative, float64; 0 means 1e-12
  const char *module;       // also MODULE.name in the language, there without a leading MODULE_ ("linalg": linalg.det,
                            // "random": random.normal for random_normal); NULL: the bare name alone
  // What the op needs with these arguments (args NULL: with any) and lacks, as text for an error; returns NULL: it can
  // run. NULL: it always can
  const char *(*missing)(const td_arg *args);
  const td_op *lone;        // the row that the builtin means where only the first tensor is given (where); NULL: none
  const td_op *tupled;      // the row that the builtin means where its last argument, a flag, is true (nonzero's
                            // as_tuple), with the same inputs; NULL: none
  // outputs that the builtin gives back, 0: all; the others are there for the rule (a drawn mask)
  uint8_t shown;
};

// What dispatch calls after an op ran eagerly. engine/tape sets it in the context while anything may record.
typedef struct td_recorder {
  int (*record)(td_context *, const td_op *, td_tensor *const *in, int in_count, const td_arg *args, td_tensor **out,
                int out_count);
} td_recorder;

// What dispatch calls with the results of every op before they are recorded (engine/tape/finite.c).
typedef struct td_inspector {
  void (*ran)(td_context *, const td_op *, td_tensor *const *in, int in_count, td_tensor *const *out, int out_count);
} td_inspector;

// Runs one op. in: borrowed, NULL for an optional input that is None. args: one for each non-tensor parameter (NULL:
// all defaults). out: new references, TD_OUTPUT_MAX places, NULL after the last one of a TD_MANY row. half floats are
// computed in float32. Broadcasting is the kernels'.
int td_op_apply(td_context *context, const td_op *op, td_tensor *const *in, int in_count, const td_arg *args,
                td_tensor **out);
int td_op_infer(td_infer *infer); // shapes only: runs the row's rule
int td_op_outputs(const td_op *op, td_tensor *const *out); // how many td_op_apply gave
int td_op_tensor_params(const td_op *op);   // leading rows that are tensors (a list counts as one)
int td_op_arg_count(const td_op *op);       // the others
static inline bool td_op_takes_list(const td_op *op) { // all inputs belong to the first parameter
  return op->params[0].kind == TD_PARAM_TENSORS || op->params[0].kind == TD_PARAM_TENSORS_SPREAD;
}
// Whether there are any, for a call with in_count tensors: counting takes longer than a small op may.
static inline bool td_op_has_args(const td_op *op, int in_count) {
  return td_op_takes_list(op) || in_count >= TD_PARAM_MAX || op->params[in_count].kind != TD_PARAM_END;
}
const td_op *td_op_find(const char *name);  // by its name or an alias; NULL: none
bool td_op_alias(const char *const *alias, const char *name); // does the list, which may be NULL, have the name?
int td_op_count(void);
const td_op *td_op_at(int index);           // in the order of families
bool td_op_goes_first(const td_op *op, const td_param *param); // a required text, before tensors that may be many
// as the language has it: random.uniform. Into name
const char *td_op_spelled(const td_op *op, char *name, size_t size);
void td_arg_print(td_text *text, const td_param *param, const td_arg *arg); // as it is written: "None", "(0, 1)"
void td_op_signature(const td_op *op, td_text *text); // "sum(x, axis=None, keepdims=False)"

// Helpers of infer rules.
int td_infer_broadcast(td_infer *infer, int a, int b, td_meta *out); // shape only; error names both shapes
bool td_meta_fits(const td_meta *from, const td_meta *to);                 // does from broadcast to to?
void td_meta_misfit(td_text *text, const td_meta *from, const td_meta *to); // "[3] doesn't broadcast to [2]"
// error: WHAT and a misfit
int td_infer_fits(td_infer *infer, const char *what, const td_meta *from, const td_meta *to);
int td_infer_axis(td_infer *infer, int64_t axis, int rank, int *out);  // negative allowed; error names axis and rank
// None: all; repeated axis is an error
int td_infer_axes(td_infer *infer, const td_arg *axes, int rank, bool reduced[TD_RANK_MAX]);
int td_infer_written(td_infer *infer, const td_meta *x, const td_meta *value); // floats are not written into integers
// prefixes op name, adds operands
int td_infer_fail(td_infer *infer, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
#endif
