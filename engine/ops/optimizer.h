// Optimizer updates in one pass over memory, for tensors that nobody else sees. An update rule is one row of a table
// (optimizer_rules.c): how many slots it keeps beside a variable, which numbers it is steered by, and its loop.
#ifndef TD_OPS_OPTIMIZER_H
#define TD_OPS_OPTIMIZER_H
#include "engine/ops/op.h"

enum { TD_UPDATE_SLOTS = 3, TD_UPDATE_NUMBERS = 4 };

// What a rule's loop multiplies with, worked out once a step.
typedef struct td_update_factors {
  double scale, decay; // the loop's g is scale * gradient + decay * variable
  double shrink;       // the variable is multiplied by it first
  double rate, beta1, rest1, beta2, rest2, eps, root, ahead; // as the rule's prepare sets them
} td_update_factors;

typedef struct td_update td_update;

// n elements of a variable and its slots are changed in place.
typedef void td_update_loop(int64_t n, void *variable, void *const *slots, const void *gradient,
                            const td_update_factors *factors);

typedef struct td_update_rule {
  const char *name;
  uint8_t slots;
  bool trusts; // LAMB: the loop leaves its direction in slot 2, which is then scaled by its norm and the variable's
  const char *numbers[TD_UPDATE_NUMBERS + 1]; // their names, ends at NULL
  void (*prepare)(const td_update *update, td_update_factors *factors); // scale, decay and shrink are set already
  td_update_loop *single, *twofold; // float32, float64
} td_update_rule;

const td_update_rule *td_update_rule_find(const char *name); // NULL: none
const td_update_rule *td_update_rule_at(int index);          // NULL after the last

struct td_update { // one step of a rule
  const td_update_rule *rule;
  int64_t step; // from 1 on
  double rate;  // the learning rate
  double numbers[TD_UPDATE_NUMBERS]; // in the rule's order
  double scale; // of the gradient; -1 climbs
  double weight_decay;
  bool decoupled; // weight decay shrinks the variable (AdamW); else it is added to the gradient (L2)
};

typedef struct td_update_item { // all borrowed
  td_tensor *variable, *slots[TD_UPDATE_SLOTS];
  const td_tensor *gradient;
} td_update_item;

// Changes all variables and their slots in place, or none where memory lacks. The caller guarantees td_tensor_is_sole
// of them, one shape and one dtype for a variable and its slots, float32 or float64; a gradient has that shape, any
// strides and dtype, and shares none of their storage. Errors: memory.
int td_update_run(td_context *context, const td_update *update, const td_update_item *items, int64_t count);
#endif
