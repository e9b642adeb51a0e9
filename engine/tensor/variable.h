// The only mutable state of the engine: a named cell that holds a tensor. Shape and dtype stay fixed.
#ifndef TD_TENSOR_VARIABLE_H
#define TD_TENSOR_VARIABLE_H
#include "engine/tensor/tensor.h"

typedef struct td_variable {
  atomic_uint refs;
  bool trainable;
  bool requires_grad;      // while it is trainable: records without a tape (PyTorch's habit)
  char *name;              // owned; "" when unnamed
  uint64_t id;             // unique in the process
  td_tensor *value;        // owned, never NULL
  td_tensor *grad;         // owned, NULL: none; set by backward()
  // Of the last gradient and the last step that were looked at (repl/language/watch.h); NaN: none was.
  float gradient_norm, gradient_zeros, update_ratio;
  bool gradient_glanced;   // its norm is a rough estimate
  td_place assigned;       // where value was last assigned
  bool grad_warned;        // backward() already said that it adds to an old grad
  struct td_variable *next; // td_variable_find's
  void *box;               // the language's object for it, so that one Variable is one value; borrowed, NULL: none
} td_variable;

td_variable *td_variable_new(td_context *context, td_tensor *value, const char *name, bool trainable); // shares value
void td_variable_unref(td_variable *v);
static inline td_variable *td_variable_ref(td_variable *v) {
  atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
  return v;
}
// Replaces the value; shape and dtype must be the Variable's. The stored tensor carries no origin.
int td_variable_assign(td_context *context, td_variable *v, td_tensor *value);
int64_t td_variable_count(void); // Variables alive in the process
td_variable *td_variable_find(uint64_t id); // the living Variable of this id, borrowed; NULL: it is gone
#endif
