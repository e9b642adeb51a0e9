// Batched tensors: what vmap hands to a function. Outside, the examples lie along axis 0 of one tensor; inside, the
// function sees a tensor of one example's shape whose elements differ from example to example. Each op on such a tensor
// runs once for all examples, by its row's batch rule, or once for each where the row has none. Batches nest: a
// batched tensor belongs to one level, and what it wraps may be batched at a level below.
#ifndef TD_OPS_BATCH_H
#define TD_OPS_BATCH_H
#include "engine/ops/op.h"

// Opens a batch of size examples inside those that are open; the matching leave ends it. Error: too many levels.
int td_batch_enter(td_context *context, int64_t size);
void td_batch_leave(td_context *context);
// Axis 0 of t, which has the size of the innermost batch, becomes its examples. New reference; NULL: error.
td_tensor *td_batch_wrap(td_context *context, td_tensor *t);
// The inverse: axis 0 holds the examples. A tensor that isn't batched at the innermost level is repeated for each one.
td_tensor *td_batch_unwrap(td_context *context, td_tensor *t);
int td_batch_level(const td_tensor *t);      // 0: not batched, or NULL

// Whether the op draws from the session inside a batch: it does so anew for each example, whatever its inputs are.
bool td_batch_draws(const td_context *context, const td_op *op, td_tensor *const *in, int in_count);
// td_op_apply for inputs of which one is batched, or an op that draws.
int td_batch_apply(td_context *context, const td_op *op, td_tensor *const *in, int in_count, const td_arg *args,
                   td_tensor **out);

// What a row's batch rule is given: it changes in and args so that the op, applied to them, gives results whose axis 0
// holds the examples. A result of [size] and the logical shape in another arrangement is reshaped afterwards.
struct td_batching {
  td_scope scope;
  const td_op *op;
  int in_count;
  int64_t size;                     // examples
  bool batched[TD_INPUT_MAX];       // in[i] has the examples in axis 0
  td_tensor *in[TD_INPUT_MAX];      // borrowed, or the scope's; NULL: None
  td_meta meta[TD_INPUT_MAX];       // of one example
  td_arg args[TD_PARAM_MAX];
  int out_rank;                     // of the first output, for one example
};
// Rules give TD_OK, an error, or TD_BATCH_EACH: run example by example.
enum { TD_BATCH_EACH = -1 };
int td_batch_elementwise(td_batching *b); // inputs broadcast from their last axes; the rule of elementwise rows
// arguments name axes and shapes of one example; every input gets the examples
int td_batch_axes(td_batching *b);
int td_batch_result_axes(td_batching *b); // the same, with axes counted in the result (expand_dims, stack)
int td_batch_broadcast(td_batching *b);   // inputs broadcast from their last axes to a shape among the arguments
int td_batch_matmul(td_batching *b);
#endif
