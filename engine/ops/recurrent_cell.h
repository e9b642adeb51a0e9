// The cells of recurrent layers: what one step does to the units of one example, and its transpose. A weight has a
// block of H rows for each gate, in PyTorch's order.
#ifndef TD_OPS_RECURRENT_CELL_H
#define TD_OPS_RECURRENT_CELL_H
#include <stdbool.h>
#include <stdint.h>

typedef struct td_cell_step { // of one example; blocks of H numbers
  int64_t units; // H
  const void *bias; // added to the projections; then the bias that a gate adds inside of its product
  const void *from_state; // gates: the state times its weights
  void *kept; // forward: the projected input, which becomes what the gradient reads
  const void *h_before, *c_before;
  void *h; // forward: the new state; the lstm's c is the last block kept
  // backward
  const void *kept_cotangent; // NULL: none
  void *dh, *dc; // cotangents of the new state; become those that don't go through the weights
  void *gradients; // blocks: cotangents of the gates before their function
} td_cell_step;

typedef void td_cell_run(const td_cell_step *s);

typedef struct td_cell {
  int gates; // blocks of rows in a weight
  int kept; // blocks that are kept of a step: the gates and what else the gradient reads
  int gradients; // blocks of gradients; the last of them, gates many, belong to the state's weights
  bool has_c;
  td_cell_run *forward[2], *backward[2]; // float32, float64
} td_cell;

// A sigmoid is kept as its value below 1/2 and as what it lacks to 1, negative, above; a tanh (g, n, rnn's) by its
// argument: so their slopes have all digits where they are flat. lstm: kept i f g o c, gradients i f g o. gru: kept
// r z n q with q the state's part of n, gradients n r z q. rnn: one.
extern const td_cell td_cell_lstm, td_cell_gru, td_cell_tanh, td_cell_relu;
#endif
