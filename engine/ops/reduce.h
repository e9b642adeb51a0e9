// How reductions run. A reducer folds elements into states, one for each result; the walk takes it over any strides,
// dtype and axes without a copy. Private to the families of reductions.
#ifndef TD_OPS_REDUCE_H
#define TD_OPS_REDUCE_H
#include "engine/ops/flat.h"

typedef struct td_piece { // of the input, in the dtype that the reducer reads
  const void *x; // rows x n elements; those of a row are neighbours, rows lie pitch elements apart
  int64_t rows, n, pitch;
  int64_t first; // where the piece begins among the elements of a result
  double parameter; // of the op: ddof, the norm's order
} td_piece;

typedef struct td_finish { // where results of states go
  char *out[2]; // of the op's first and second output: the first state's
  int64_t stride; // elements from one to the next
  uint8_t dtype; // of a floating output
  int64_t n; // elements that each was made of
  double parameter;
} td_finish;

typedef struct td_reducer {
  int bytes; // of a state
  bool ordered; // elements must come in row-major order
  void (*start)(void *states, int64_t count);
  void (*lines)(void *states, const td_piece *piece); // each row goes to a state of its own
  void (*columns)(void *states, const td_piece *piece); // each column does
  void (*combine)(void *states, const void *more, int64_t count, double parameter); // more: of later elements
  void (*finish)(const void *states, int64_t count, const td_finish *to);
  // states are doubles: what folds again where one came out infinite or NaN; NULL: that is the result
  const struct td_reducer *careful;
} td_reducer;

// Reduces input 0 over axes to output 0, and to a second one of that shape; reads it as dtype. The result's bits depend
// on the shape alone.
int td_reduce(const td_call *call, const td_arg *axes, const td_reducer *reducer, uint8_t dtype, double parameter);
int64_t td_reduce_workspace(const td_call *call, const td_arg *axes, const td_reducer *reducer); // bytes that it needs
// The same over the axes of in that reduced names, to one output or two of out, which lie without gaps.
void td_reduce_view(td_pool *pool, const td_view *in, const bool *reduced, const td_reducer *reducer, uint8_t dtype,
                    double parameter, const td_view *out, int outputs, void *workspace);
int64_t td_reduce_view_workspace(const td_view *in, const bool *reduced, const td_reducer *reducer);
const td_reducer *td_reducer_of_sum(uint8_t dtype); // integers and bools give int64
const td_reducer *td_reducer_of_any(uint8_t dtype); // gives bool

void td_finish_number(const td_finish *to, int output, int64_t at, double value); // writes a floating result

void td_reduction_axes(const td_arg *axes, int rank, bool reduced[TD_RANK_MAX]); // of arguments that infer has checked

// Infer rules of rows with params x, axis, keepdims (first two arguments): shape, and the dtype of the input.
int td_reduction_infer(td_infer *infer); // any dtype
int td_reduction_infer_total(td_infer *infer); // integers and bool give int64
int td_reduction_infer_floating(td_infer *infer); // integers and bool give float32
int td_reduction_infer_extreme(td_infer *infer); // any dtype; of nothing it is an error
int td_reduction_shape(td_infer *infer, const td_arg *axes, bool keepdims); // shape alone
int64_t td_reduction_count(const td_meta *in, const td_arg *axes); // elements that one result is made of
int64_t td_reduction_view_count(const td_view *in, const td_arg *axes);

// Parts of gradients: a result, or its cotangent, as a tensor that broadcasts against the input.
td_tensor *td_reduction_expand(td_rule *rule, td_tensor *t, const td_arg *axes, bool keepdims);

// A tensor with some axes joined into one last axis, and back.
typedef struct td_turn {
  int rank, axes[TD_RANK_MAX], back[TD_RANK_MAX];
  int64_t shape[TD_RANK_MAX]; // with those axes last
  int64_t flat[2]; // lines, their length
} td_turn;
td_turn td_turn_of(const td_meta *in, const td_arg *axes);
td_tensor *td_turn_to_lines(td_scope *s, const td_turn *turn, td_tensor *x);
td_tensor *td_turn_from_lines(td_scope *s, const td_turn *turn, td_tensor *lines);

// 1 / t, and 0 where t is 0
td_tensor *td_reciprocal_or_zero(td_scope *s, td_tensor *t);

#define TD_AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXES }
#define TD_KEEPDIMS_PARAM \
  { .name = "keepdims", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }
#define TD_REDUCE_PARAMS \
  { TD_X, TD_AXIS_PARAM, TD_KEEPDIMS_PARAM }
#endif
