// The tensor type: operators, attributes, printing, iteration. What a tensor can do beyond this file comes from the
// op table: every row marked as a method is a method.
#include <string.h>
#include "repl/language/diagnose.h"
#include "repl/language/tensors.h"

static const td_op *binary_ops[TD_BINARY_COUNT];
static const td_op *compare_ops[TD_COMPARE_GREATER_EQUAL + 1];

// The rows behind the operators, looked up once.
static const td_op *binary_op(int op) {
  static const char *const names[TD_BINARY_COUNT] = {[TD_BINARY_ADD] = "add",
                                                     [TD_BINARY_SUBTRACT] = "subtract",
                                                     [TD_BINARY_MULTIPLY] = "multiply",
                                                     [TD_BINARY_DIVIDE] = "divide",
                                                     [TD_BINARY_FLOOR_DIVIDE] = "floor_divide",
                                                     [TD_BINARY_REMAINDER] = "remainder",
                                                     [TD_BINARY_POWER] = "power",
                                                     [TD_BINARY_MATMUL] = "matmul",
                                                     [TD_BINARY_AND] = "bitwise_and",
                                                     [TD_BINARY_OR] = "bitwise_or",
                                                     [TD_BINARY_XOR] = "bitwise_xor",
                                                     [TD_BINARY_LEFT_SHIFT] = "left_shift",
                                                     [TD_BINARY_RIGHT_SHIFT] = "right_shift"};
  if (!binary_ops[op]) binary_ops[op] = td_op_find(names[op]);
  return binary_ops[op];
}

static const td_op *compare_op(int comparison) {
  static const char *const names[] = {[TD_COMPARE_EQUAL] = "equal",     [TD_COMPARE_NOT_EQUAL] = "not_equal",
                                      [TD_COMPARE_LESS] = "less",       [TD_COMPARE_LESS_EQUAL] = "less_equal",
                                      [TD_COMPARE_GREATER] = "greater", [TD_COMPARE_GREATER_EQUAL] = "greater_equal"};
  if (!compare_ops[comparison]) compare_ops[comparison] = td_op_find(names[comparison]);
  return compare_ops[comparison];
}

td_value td_tensor_box(td_interpreter *I, td_tensor *tensor) {
  if (!tensor) return td_raise_engine(I);
  td_tensor_value *value = td_object_new(I, &td_tensor_type, sizeof *value);
  if (!value) {
    td_tensor_unref(tensor);
    return TD_NIL;
  }
  value->tensor = tensor;
  return td_from(value);
}

// ---- operators ----

static bool can_be_operand(td_value v) {
  return td_is_tensor_like(v) || v.tag == TD_TAG_BOOL || v.tag == TD_TAG_INT || v.tag == TD_TAG_DOUBLE ||
         td_is(v, &td_list_type) || td_is(v, &td_tuple_type) || td_is(v, &td_range_type);
}

static td_value run_pair(td_interpreter *I, const td_op *op, td_tensor *a, td_tensor *b) {
  td_tensor *in[2] = {a, b}, *out[TD_OUTPUT_MAX];
  return td_op_apply(I->context, op, in, 2, NULL, out) == TD_OK ? td_tensor_box(I, out[0]) : td_raise_engine(I);
}

static td_value apply_pair(td_interpreter *I, const td_op *op, td_value a, td_value b) {
  if (td_is(a, &td_tensor_type) && td_is(b, &td_tensor_type))
    return run_pair(I, op, td_unbox_tensor(a), td_unbox_tensor(b));
  if (!can_be_operand(a) || !can_be_operand(b)) return td_ref(TD_NOT_IMPLEMENTED);
  const td_tensor *left = td_tensor_of(a), *right = td_tensor_of(b);
  td_tensor *first = td_to_tensor(I, a, right ? right->dtype : -1);
  td_tensor *second = first ? td_to_tensor(I, b, left ? left->dtype : -1) : NULL;
  if (!second) td_raise_within(I, "%s: ", op->name);
  td_value result = second ? run_pair(I, op, first, second) : TD_NIL;
  td_tensor_unref(first);
  td_tensor_unref(second);
  return result;
}

static td_value tensor_binary(td_interpreter *I, int op, td_value a, td_value b) {
  return apply_pair(I, binary_op(op), a, b);
}

static td_value tensor_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  return apply_pair(I, compare_op(comparison), a, b);
}

static td_value tensor_unary(td_interpreter *I, int op, td_value v) {
  if (op == TD_UNARY_POSITIVE) return td_ref(v);
  td_tensor *in = td_to_tensor(I, v, -1), *out[TD_OUTPUT_MAX];
  if (!in) return TD_NIL;
  const td_op *row = td_op_find(op == TD_UNARY_NEGATIVE ? "negative" : "bitwise_not");
  int code = td_op_apply(I->context, row, &in, 1, NULL, out);
  td_tensor_unref(in);
  return code == TD_OK ? td_tensor_box(I, out[0]) : td_raise_engine(I);
}

static int tensor_truth(td_interpreter *I, td_value v) {
  const td_tensor *t = td_tensor_of(v);
  if (t->size == 1) {
    if (!td_tensor_readable(I, t, "the truth of a tensor")) return -1;
    td_value element = td_tensor_element(I, t, 0);
    return element.tag == TD_TAG_DOUBLE ? element.f != 0 : element.i != 0;
  }
  td_text shape = {0};
  td_shape_print(&shape, t->rank, t->shape);
  td_raise(I, TD_CLASS_VALUE_ERROR, "the truth of a tensor of shape %s is ambiguous", shape.data ? shape.data : "");
  td_raise_hint(I, "use .any() or .all(), or compare numbers with .item()");
  td_text_clear(&shape);
  return -1;
}

static bool tensor_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  (void)I;
  *hash = (uint64_t)(uintptr_t)v.o >> 4;
  return true;
}

static int64_t tensor_length(td_interpreter *I, td_value v) {
  const td_tensor *t = td_tensor_of(v);
  if (t->rank > 0) return t->shape[0];
  td_raise(I, TD_CLASS_TYPE_ERROR, "len() of a 0-d tensor");
  td_raise_hint(I, "x.size is the number of elements, x.item() the number itself");
  return -1;
}

static int tensor_contains(td_interpreter *I, td_value v, td_value item) {
  const td_tensor *t = td_tensor_of(v);
  if (!td_tensor_readable(I, t, "in")) return -1;
  for (int64_t i = 0; i < t->size; i++) {
    int equal = td_equal_values(I, td_tensor_element(I, t, i), item);
    if (equal) return equal;
  }
  return 0;
}

// ---- printing ----

static void print_batched(const td_tensor *t, td_text *text) { // its elements differ from example to example
  td_text_add(text, "<");
  td_meta_print(text, t->dtype, t->rank, t->shape);
  td_text_add(text, " of each example>");
}

static bool tensor_print(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  const td_tensor *t = td_tensor_of(v);
  if (t->flags & TD_TENSOR_BATCHED) print_batched(t, text);
  else td_tensor_print(t, text, 1000, "");
  return true;
}

static bool repr_as(const td_tensor *t, const char *lead, td_text *text) {
  if (t->flags & TD_TENSOR_BATCHED) {
    td_text_add(text, lead);
    print_batched(t, text);
    return true;
  }
  td_text_add(text, lead);
  td_tensor_print(t, text, 1000, lead);
  bool told = t->size == 0 && t->rank > 1; // an empty one prints its shape
  if (!told) {
    td_text_add(text, ", shape=(");
    for (int i = 0; i < t->rank; i++) td_text_print(text, i ? ", %lld" : "%lld", (long long)t->shape[i]);
    td_text_add(text, t->rank == 1 ? ",)" : ")");
  }
  td_text_print(text, ", dtype=%s", td_dtype_name(t->dtype));
  return true;
}

static bool tensor_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  bool ok = repr_as(td_tensor_of(v), "tensor(", text);
  td_text_add_char(text, ')');
  return ok;
}

static bool tensor_format(td_interpreter *I, td_value v, const char *spec, td_text *text) {
  const td_tensor *t = td_tensor_of(v);
  if (!*spec) return tensor_print(I, v, text);
  if (t->size == 1 && !td_tensor_readable(I, t, "a format")) return false;
  if (t->size == 1) return td_format(I, td_tensor_element(I, t, 0), spec, text);
  td_text shape = {0};
  td_shape_print(&shape, t->rank, t->shape);
  td_raise(I, TD_CLASS_TYPE_ERROR, "the format '%.40s' needs one element, the tensor has shape %s", spec,
           shape.data ? shape.data : "");
  td_raise_hint(I, "print the tensor without a format, or reduce it first: .mean(), .item()");
  td_text_clear(&shape);
  return false;
}

// ---- iteration ----

typedef struct tensor_iterator {
  td_object object;
  td_value tensor;
  int64_t next;
} tensor_iterator;

static void iterator_release(td_object *object) { td_unref(((tensor_iterator *)object)->tensor); }

static td_value iterator_next(td_interpreter *I, td_value v) {
  tensor_iterator *it = (tensor_iterator *)v.o;
  if (it->next >= td_tensor_of(it->tensor)->shape[0]) return TD_NIL;
  return td_tensor_item(I, it->tensor, td_int(it->next++));
}

static td_value iterator_self(td_interpreter *I, td_value v) {
  (void)I;
  return td_ref(v);
}

static const td_type iterator_type = {.name = "tensor_iterator",
                                      .size = sizeof(tensor_iterator),
                                      .release = iterator_release,
                                      .iterate = iterator_self,
                                      .next = iterator_next};

static td_value tensor_iterate(td_interpreter *I, td_value v) {
  if (td_tensor_of(v)->rank == 0) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "iteration over a 0-d tensor");
    td_raise_hint(I, "for i in range(n) takes a 0-d integer tensor; x.item() is its number");
    return TD_NIL;
  }
  tensor_iterator *it = td_object_new(I, &iterator_type, sizeof *it);
  if (!it) return TD_NIL;
  it->tensor = td_ref(v);
  return td_from(it);
}

// ---- attributes ----

typedef struct property_row {
  const char *name;
  td_value (*get)(td_interpreter *, td_value v, td_tensor *t);
} property_row;

static td_value get_shape(td_interpreter *I, td_value v, td_tensor *t) {
  (void)v;
  return td_shape_to_tuple(I, t->rank, t->shape);
}
static td_value get_dtype(td_interpreter *I, td_value v, td_tensor *t) {
  (void)v;
  return td_dtype_box(I, t->dtype);
}
static td_value get_ndim(td_interpreter *I, td_value v, td_tensor *t) {
  (void)I, (void)v;
  return td_int(t->rank);
}
static td_value get_size(td_interpreter *I, td_value v, td_tensor *t) {
  (void)I, (void)v;
  return td_int(t->size);
}
static td_value get_nbytes(td_interpreter *I, td_value v, td_tensor *t) {
  (void)I, (void)v;
  return td_int(t->size * td_dtype_bytes(t->dtype));
}
static td_value get_device(td_interpreter *I, td_value v, td_tensor *t) {
  (void)v, (void)t;
  return td_from(td_str_from(I, "cpu"));
}
static td_value get_transposed(td_interpreter *I, td_value v, td_tensor *t) {
  (void)t;
  td_arguments none = {0};
  return td_op_call(I, td_op_find("transpose"), v, &none);
}
static td_value get_matrices_transposed(td_interpreter *I, td_value v, td_tensor *t) {
  td_value last[] = {td_int(-1), td_int(-2)};
  if (t->rank < 2)
    return td_raise(I, TD_CLASS_VALUE_ERROR, "mT: needs rank 2 or more, the tensor has rank %d", t->rank);
  return td_op_call(I, td_op_find("swapaxes"), v, &(td_arguments){.count = 2, .values = last});
}
static td_value get_grad(td_interpreter *I, td_value v, td_tensor *t) {
  bool variable = td_is(v, &td_variable_type);
  td_tensor *grad = variable ? td_unbox_variable(v)->grad : td_tensor_grad(t);
  if (!grad && !variable) td_tensor_warn_of_grad(I->context, t);
  return grad ? td_tensor_box(I, td_tensor_ref(grad)) : TD_NONE;
}
const td_type *td_type_made_by(td_value function) {
  const td_type *const types[] = {&td_tensor_type, &td_variable_type, &td_tape_type};
  if (!td_is(function, &td_builtin_type) || ((td_builtin *)function.o)->method_of) return NULL;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(((td_builtin *)function.o)->row->name, types[i]->name) == 0) return types[i];
  return NULL;
}

static td_value get_requires_grad(td_interpreter *I, td_value v, td_tensor *t) {
  (void)I;
  return td_bool(td_is(v, &td_variable_type) ? td_unbox_variable(v)->trainable : td_tensor_requires_grad(t));
}
static td_value get_is_leaf(td_interpreter *I, td_value v, td_tensor *t) {
  (void)I, (void)v;
  return td_bool(td_tensor_is_leaf(t));
}

static const property_row properties[] = {
    {"shape", get_shape},
    {"dtype", get_dtype},
    {"T", get_transposed},
    {"mT", get_matrices_transposed},
    {"ndim", get_ndim},
    {"size", get_size},
    {"nbytes", get_nbytes},
    {"device", get_device},
    {"grad", get_grad},
    {"requires_grad", get_requires_grad},
    {"is_leaf", get_is_leaf},
    {NULL, NULL}};

td_value td_tensor_attribute(td_interpreter *I, td_value v, td_str *name) {
  td_value op = td_dict_get_str(I->ops, name);
  if (!td_is_nil(op) && ((td_op_value *)op.o)->op->method) return td_op_builtin(I, ((td_op_value *)op.o)->op, v);
  for (const property_row *row = properties; row->name; row++)
    if (strcmp(row->name, name->data) == 0) return row->get(I, v, td_tensor_of(v));
  return TD_NIL;
}

static void append_name(td_interpreter *I, td_list *names, const char *text) {
  td_value name = td_from(td_str_from(I, text));
  td_list_append(I, names, name);
  td_unref(name);
}

void td_tensor_names(td_interpreter *I, td_value v, td_list *names) {
  (void)v;
  for (const property_row *row = properties; row->name; row++) append_name(I, names, row->name);
  for (int i = 0; i < td_op_count(); i++) {
    const td_op *op = td_op_at(i);
    if (!op->method) continue;
    append_name(I, names, op->name);
    for (const char *const *alias = op->alias; alias && *alias; alias++) append_name(I, names, *alias);
  }
}

static bool tensor_set_attribute(td_interpreter *I, td_value v, td_str *name, td_value value) {
  td_tensor *t = td_unbox_tensor(v);
  if (!td_is_nil(value) && strcmp(name->data, "requires_grad") == 0) {
    int on = td_truth(I, value);
    if (on < 0) return false;
    if (td_tensor_require_grad(I->context, t, on) == TD_OK) return true;
    td_raise_engine(I);
    return false;
  }
  if (strcmp(name->data, "grad") == 0 && (td_is_none(value) || td_is(value, &td_tensor_type))) {
    if (td_tensor_set_grad(I->context, t, td_is_none(value) ? NULL : td_unbox_tensor(value)) == TD_OK) return true;
    td_raise_engine(I);
    return false;
  }
  td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "a tensor's '%s' can't be set: tensors are values", name->data);
  td_raise_hint(I, "x = x.astype(...), x = x.reshape(...) make a new tensor; requires_grad and grad can be set");
  return false;
}

static void tensor_release(td_object *object) { td_tensor_unref(((td_tensor_value *)object)->tensor); }

extern const td_method td_tensor_methods[];

const td_type td_tensor_type = {
    .name = "tensor",
    .size = sizeof(td_tensor_value),
    .release = tensor_release,
    .truth = tensor_truth,
    .repr = tensor_repr,
    .print = tensor_print,
    .format = tensor_format,
    .attribute = td_tensor_attribute,
    .set_attribute = tensor_set_attribute,
    .names = td_tensor_names,
    .item = td_tensor_item,
    .with_item = td_tensor_with_item,
    .length = tensor_length,
    .iterate = tensor_iterate,
    .contains = tensor_contains,
    .binary = tensor_binary,
    .unary = tensor_unary,
    .compare = tensor_compare,
    .hash = tensor_hash,
    .methods = td_tensor_methods,
    .doc = "A tensor: numbers of one dtype in an array of rank 0 to 8. A value: no operation changes one that somebody "
           "else sees;\n"
           "x[i] = v rebinds x. Made by tensor([[1., 2.]]), zeros((2, 3)), random_normal((3,)), load_npy(path) and by "
           "every op.",
};

// ---- Variable shares all that reads ----

static bool variable_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  const td_variable *variable = td_unbox_variable(v);
  repr_as(variable->value, "Variable(", text);
  if (variable->name[0]) td_text_print(text, ", name='%s'", variable->name);
  if (!variable->trainable) td_text_add(text, ", trainable=False");
  td_text_add_char(text, ')');
  return true;
}

static td_value variable_attribute(td_interpreter *I, td_value v, td_str *name) {
  const td_variable *variable = td_unbox_variable(v);
  if (strcmp(name->data, "name") == 0) return td_from(td_str_from(I, variable->name));
  if (strcmp(name->data, "trainable") == 0) return td_bool(variable->trainable);
  if (strcmp(name->data, "constraint") == 0) return td_ref(((td_variable_value *)v.o)->constraint);
  return td_tensor_attribute(I, v, name);
}

static bool variable_set_grad(td_interpreter *I, td_variable *variable, td_value value) {
  if (!td_is_none(value) && !td_is(value, &td_tensor_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "grad must be a tensor or None, not %s", td_type_name(I, value));
    return false;
  }
  td_tensor_unref(variable->grad);
  variable->grad = td_is_none(value) ? NULL : td_tensor_ref(td_unbox_tensor(value));
  return true;
}

void td_variable_set_constraint(td_value v, td_value constraint) {
  td_variable_value *box = (td_variable_value *)v.o;
  td_value before = box->constraint;
  box->constraint = td_ref(constraint);
  td_unref(before);
}

static bool variable_set_attribute(td_interpreter *I, td_value v, td_str *name, td_value value) {
  td_variable *variable = td_unbox_variable(v);
  bool trainable = strcmp(name->data, "trainable") == 0;
  if (!td_is_nil(value) && (trainable || strcmp(name->data, "requires_grad") == 0)) {
    int on = td_truth(I, value);
    if (on < 0) return false;
    variable->trainable = on;
    if (!trainable) variable->requires_grad = on;
    return true;
  }
  if (!td_is_nil(value) && strcmp(name->data, "grad") == 0) return variable_set_grad(I, variable, value);
  if (!td_is_nil(value) && strcmp(name->data, "constraint") == 0) {
    td_variable_set_constraint(v, value);
    return true;
  }
  td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "a Variable's '%s' can't be set", name->data);
  td_raise_hint(I, "v.assign(value) sets the value; trainable, requires_grad, grad and constraint are attributes");
  return false;
}

static bool variable_set_item(td_interpreter *I, td_value v, td_value key, td_value value) {
  td_variable *variable = td_unbox_variable(v);
  td_value kept = TD_NIL, now = td_tensor_box(I, td_tensor_alias(I->context, variable->value));
  if (td_is_nil(now)) return false;
  td_value updated = td_tensor_with_item(I, now, key, value, &kept);
  td_unref(kept);
  if (td_is_nil(updated)) return false;
  int code = td_variable_assign(I->context, variable, td_unbox_tensor(updated));
  if (code == TD_OK)
    td_tape_note_cut(I->context, TD_CUT_ASSIGN, td_is(value, &td_tensor_type) ? td_unbox_tensor(value) : NULL,
                     variable);
  else td_raise_engine(I);
  td_unref(updated);
  return code == TD_OK;
}

static void variable_release(td_object *object) {
  td_variable *variable = ((td_variable_value *)object)->variable;
  variable->box = NULL;
  td_variable_unref(variable);
  td_unref(((td_variable_value *)object)->constraint);
}

td_value td_variable_box(td_interpreter *I, td_variable *variable) {
  if (variable->box) {
    td_value box = {.tag = TD_TAG_OBJECT, .o = variable->box};
    td_ref(box);
    td_variable_unref(variable);
    return box;
  }
  td_variable_value *value = td_object_new(I, &td_variable_type, sizeof *value);
  if (!value) {
    td_variable_unref(variable);
    return TD_NIL;
  }
  value->variable = variable;
  value->constraint = TD_NONE;
  value->parameter = variable->trainable;
  variable->box = value;
  return td_from(value);
}

extern const td_method td_variable_methods[];

const td_type td_variable_type = {
    .name = "Variable",
    .size = sizeof(td_variable_value),
    .release = variable_release,
    .truth = tensor_truth,
    .repr = variable_repr,
    .print = tensor_print,
    .format = tensor_format,
    .attribute = variable_attribute,
    .set_attribute = variable_set_attribute,
    .names = td_tensor_names,
    .item = td_tensor_item,
    .set_item = variable_set_item,
    .length = tensor_length,
    .iterate = tensor_iterate,
    .contains = tensor_contains,
    .binary = tensor_binary,
    .unary = tensor_unary,
    .compare = tensor_compare,
    .hash = tensor_hash,
    .methods = td_variable_methods,
    .doc =
        "A Variable: the state of a model. It holds a tensor of fixed shape and dtype; assign, assign_add and "
        "assign_sub change it.\n"
        "constraint: a function that every optimizer calls on its value after each step, for the value to go on with.\n"
        "Inside a GradientTape every trainable Variable that is read is watched.",
};
