// The engine's things as values of the language: tensors, dtypes, Variables, tapes, and ops as builtins.
#ifndef TD_LANGUAGE_TENSORS_H
#define TD_LANGUAGE_TENSORS_H
#include "engine/tape/tape.h"
#include "repl/language/interpreter.h"

typedef struct td_tensor_value { td_object object; td_tensor *tensor; } td_tensor_value;
typedef struct td_variable_value {
  td_object object;
  td_variable *variable;
  td_value constraint; // what an optimizer calls on the value after each step; NONE: nothing
  bool parameter;      // made trainable: one that training may change, also while it is frozen
} td_variable_value;
typedef struct td_dtype_value { td_object object; uint8_t dtype; } td_dtype_value;
typedef struct td_tape_value {
  td_object object;
  td_interpreter *interpreter;
  td_tape *tape;
  bool open;
} td_tape_value;
typedef struct td_op_value { // an op as a callable: builtin, or method bound to self
  td_object object;
  const td_op *op;
  td_value self;             // NIL: not bound
} td_op_value;

extern const td_method td_tape_builtins[], td_gradient_builtins[], td_vmap_builtins[],
    td_custom_builtins[], td_check_builtins[], td_tensor_builtins[], td_progress_builtins[], td_optimizer_builtins[],
    td_layer_builtins[], td_worker_builtins[], td_dataset_builtins[], td_lines_builtins[], td_plot_builtins[],
    td_snapshot_builtins[], td_boundary_builtins[], td_metric_builtins[], td_hash_builtins[];
extern const td_type td_tensor_type, td_variable_type, td_dtype_type, td_tape_type, td_op_type, td_scope_type;

// A value for a tensor; takes over the reference. NULL: the engine's error is raised and NIL returned.
td_value td_tensor_box(td_interpreter *, td_tensor *tensor);
void td_variable_set_constraint(td_value variable, td_value constraint); // NONE: none
// one value for one Variable; takes over the reference
td_value td_variable_box(td_interpreter *, td_variable *variable);
static inline td_tensor *td_unbox_tensor(td_value v) { return ((td_tensor_value *)v.o)->tensor; } // borrowed
static inline td_variable *td_unbox_variable(td_value v) { return ((td_variable_value *)v.o)->variable; }

// Any value that can stand for a tensor: a tensor, a Variable (read, so tapes see it), a number, a nested list or
// tuple, a range. like: dtype of the tensors beside it (numbers are weak), or -1. New reference; NULL with an exception
// set.
td_tensor *td_to_tensor(td_interpreter *, td_value v, int like);
td_tensor *td_to_tensor_of(td_interpreter *, td_value v, uint8_t dtype); // as above, cast to dtype
td_tensor *td_cast_to(td_interpreter *, td_tensor *t, uint8_t dtype);   // takes over t (NULL passes through)
bool td_tensor_readable(td_interpreter *, const td_tensor *t, const char *what); // false: TypeError, vmap batched it
td_value td_tensor_element(td_interpreter *, const td_tensor *t, int64_t index); // a number or bool, by row-major index
td_value td_tensor_to_list(td_interpreter *, const td_tensor *t);       // nested lists; a 0-d tensor gives its number
td_value td_shape_to_tuple(td_interpreter *, int rank, const int64_t *shape);
// tensor, Variable, GradientTape: the type of what it makes; NULL: another
const td_type *td_type_made_by(td_value function);
bool td_is_tensor_like(td_value v);        // tensor or Variable
td_tensor *td_tensor_of(td_value v);       // borrowed: a tensor's, or a Variable's value without reading it on a tape
bool td_to_dtype(td_interpreter *, td_value v, uint8_t *dtype);   // float32, "float32", float, int, bool
bool td_to_axes(td_interpreter *, td_value v, const char *what, td_arg *arg); // int or tuple/list of ints
bool td_to_floats(td_interpreter *, td_value v, const char *what, td_arg *arg); // number or tuple/list of numbers
td_value td_dtype_box(td_interpreter *, uint8_t dtype);

// Calls an op with the arguments of a call; self: first tensor of a method call, NIL: none. Several outputs come as a
// tuple.
td_value td_op_call(td_interpreter *, const td_op *op, td_value self, const td_arguments *arguments);
// tensors ready, args NULL: defaults
td_value td_op_values(td_interpreter *, const td_op *op, int count, const td_value *values, const td_arg *args);
td_value td_op_builtin(td_interpreter *, const td_op *op, td_value self);

// x[key], and x with x[key] = value. Borrow all; the second updates container's tensor in place when it is sole.
td_value td_tensor_item(td_interpreter *, td_value container, td_value key);
td_value td_tensor_with_item(td_interpreter *, td_value container, td_value key, td_value value, td_value *kept);

// progress.c: a bar for work of the engine that takes longer than a second.
typedef struct td_busy {
  td_interpreter *interpreter;
  const char *label;
  uint64_t id;
  int64_t done, total;
  double started, emitted;
} td_busy;
td_busy td_busy_start(td_interpreter *, const char *label);
void td_busy_tell(void *busy, int64_t done, int64_t total);
void td_busy_end(td_busy *busy);

// called by td_interpreter_new: builtins tensor, Variable, GradientTape, grad, dtypes, ...
bool td_tensors_register(td_interpreter *);
#endif
