// Optimizer updates in one pass over memory, for tensors that nobody else sees.
#ifndef TD_OPS_OPTIMIZER_H
#define TD_OPS_OPTIMIZER_H
#include "engine/ops/op.h"

typedef struct td_adam {
  double learning_rate, beta1, beta2, eps, weight_decay;
  bool decoupled; // weight decay shrinks the variable (AdamW); else it is added to the gradient (L2)
  int64_t step; // from 1 on
} td_adam;

// Changes variable, m and v in place. The caller guarantees td_tensor_is_sole of all three, one shape and one dtype,
// float32 or float64; gradient has that shape, any strides and dtype, and shares none of their storage. Errors: memory.
int td_adam_update_in_place(td_context *context, td_tensor *variable, td_tensor *m, td_tensor *v,
                            const td_tensor *gradient, const td_adam *settings);

// velocity = momentum velocity - rate gradient, then variable += velocity (with nesterov: momentum velocity - rate
// gradient). velocity NULL: no momentum. As above.
int td_sgd_update_in_place(td_context *context, td_tensor *variable, td_tensor *velocity, const td_tensor *gradient,
                           double learning_rate, double momentum, bool nesterov);
#endif
