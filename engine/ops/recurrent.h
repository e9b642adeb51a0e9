// Layers of recurrent cells over a sequence, one direction at a time: what their rows and their gradients share.
#ifndef TD_OPS_RECURRENT_H
#define TD_OPS_RECURRENT_H
#include "engine/ops/families.h"
#include "engine/ops/recurrent_cell.h"

typedef struct td_recurrence { // a row's cell, and where its inputs stand; -1: it has no such input
  const td_cell *cell;
  int x, h, c, w_input, w_state, b_input, b_state, mask;
} td_recurrence;

td_recurrence td_recurrence_of(const td_op *op, const td_arg *args);

// Gradients of one of these layers in all that the rule needs.
int td_recurrence_vjp(td_rule *rule);
extern const td_op td_recurrence_adjoint;
#endif
