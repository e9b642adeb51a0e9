// Methods of tensors and Variables that are not ops: leaving the tensor world (item, tolist), dtypes, gradients,
// assignment.
#include <string.h>
#include "repl/language/tensors.h"

static void note_number(td_interpreter *I, td_value self) {
  if (td_is(self, &td_variable_type)) td_tape_note_cut(I->context, TD_CUT_NUMBER, NULL, td_unbox_variable(self));
  else if (td_unbox_tensor(self)->origin) td_tape_note_cut(I->context, TD_CUT_NUMBER, td_unbox_tensor(self), NULL);
}

static td_value tensor_item(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  const td_tensor *t = td_tensor_of(self);
  if (t->size != 1) {
    td_text shape = {0};
    td_shape_print(&shape, t->rank, t->shape);
    td_raise(I, TD_CLASS_VALUE_ERROR, "one number is needed, the tensor has shape %s",
             shape.data ? shape.data : "");
    td_raise_hint(I, "use .tolist(), or reduce it first: .sum(), .mean(), x[0]");
    td_text_clear(&shape);
    return TD_NIL;
  }
  note_number(I, self);
  return td_tensor_readable(I, t, "item()") ? td_tensor_element(I, t, 0) : TD_NIL;
}

static td_value tensor_tolist(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  note_number(I, self);
  return td_tensor_readable(I, td_tensor_of(self), "tolist()") ? td_tensor_to_list(I, td_tensor_of(self)) : TD_NIL;
}

static td_value cast_value(td_interpreter *I, td_value self, uint8_t dtype) {
  return td_tensor_of(self)->dtype == dtype && td_is(self, &td_tensor_type)
             ? td_ref(self)
             : td_tensor_box(I, td_cast_to(I, td_to_tensor(I, self, -1), dtype));
}

static td_value saturated(td_interpreter *I, td_value self, uint8_t dtype) {
  const td_arg args[] = {{.given = 1, .i = dtype}, {.given = 1, .i = true}};
  td_value boxed = td_tensor_box(I, td_to_tensor(I, self, -1));
  td_value result = td_is_nil(boxed) ? TD_NIL : td_op_values(I, td_op_find("cast"), 1, &boxed, args);
  td_unref(boxed);
  return result;
}

static td_value astype(td_interpreter *I, td_value self, td_value target, bool saturate) {
  uint8_t dtype;
  if (td_to_dtype(I, target, &dtype)) {
    if (saturate) return saturated(I, self, dtype);
    td_tensor *t = td_to_tensor(I, self, -1);
    t = t ? td_cast_to(I, t, dtype) : NULL;
    return t ? td_tensor_box(I, t) : TD_NIL;
  }
  if (td_is_nil(I->raised))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "astype: needs a dtype, not %s", td_type_name(I, target));
  td_raise_within(I, "astype: ");
  return TD_NIL;
}

static td_value tensor_astype(td_interpreter *I, td_value self, td_value *arguments) {
  int saturate = td_truth(I, arguments[1]);
  return saturate < 0 ? TD_NIL : astype(I, self, arguments[0], saturate);
}

static td_value tensor_to(td_interpreter *I, td_value self, td_value *arguments) {
  uint8_t dtype;
  bool text = td_is(arguments[0], &td_str_type);
  if (text && strcmp(td_as_str(arguments[0])->data, "cpu") == 0) return td_ref(self);
  if (!text || td_to_dtype(I, arguments[0], &dtype)) return astype(I, self, arguments[0], false);
  td_clear_raised(I);
  td_raise(I, TD_CLASS_VALUE_ERROR, "to: there is no device or dtype '%.40s'", td_as_str(arguments[0])->data);
  td_raise_hint(I, "the device is \"cpu\", where tensors lie anyway; dtypes are float32, float64, float16, bfloat16, "
                   "int32, int64, uint8 and bool");
  return TD_NIL;
}

#define CAST_METHOD(name, DTYPE)                                                         \
  static td_value tensor_##name(td_interpreter *I, td_value self, td_value *arguments) { \
    (void)arguments;                                                                     \
    return cast_value(I, self, DTYPE);                                                   \
  }
CAST_METHOD(float, TD_FLOAT32)
CAST_METHOD(double, TD_FLOAT64)
CAST_METHOD(long, TD_INT64)
CAST_METHOD(int, TD_INT32)
CAST_METHOD(bool, TD_BOOL)

static td_value tensor_detach(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_tensor *t = td_tensor_of(self), *detached = td_tensor_alias(I->context, t);
  td_variable *variable = td_is(self, &td_variable_type) ? td_unbox_variable(self) : NULL;
  if (detached) td_tape_note_cut(I->context, TD_CUT_DETACH, t, variable);
  return td_tensor_box(I, detached);
}

static td_value tensor_clone(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  if (td_is(self, &td_tensor_type)) return td_ref(self);
  td_tensor *t = td_to_tensor(I, self, -1);
  return t ? td_tensor_box(I, t) : TD_NIL;
}

static td_value tensor_numel(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  return td_int(td_tensor_of(self)->size);
}

static td_value tensor_backward(td_interpreter *I, td_value self, td_value *arguments) {
  td_tensor *cotangent = NULL;
  td_tensor *target = td_to_tensor(I, self, -1);
  if (!target) return TD_NIL;
  bool given = !td_is_nil(arguments[0]) && !td_is_none(arguments[0]);
  if (given) cotangent = td_to_tensor_of(I, arguments[0], target->dtype);
  int retain = td_truth(I, arguments[1]), create = td_truth(I, arguments[2]);
  td_value result = TD_NIL;
  if (retain >= 0 && create >= 0 && (!given || cotangent)) {
    if (td_backward(I->context, target, cotangent, retain || create, create) == TD_OK) result = TD_NONE;
    else td_raise_engine(I);
  }
  td_tensor_unref(cotangent);
  td_tensor_unref(target);
  return result;
}

#define SHARED_METHODS                                                                                                 \
  {"item", "()", tensor_item,                                                                                          \
   "The number in a tensor of one element, as a Python number. No gradient flows through it.\n>>> "                    \
   "tensor([2.5]).item()"},                                                                                            \
      {"tolist", "()", tensor_tolist,                                                                                  \
       "The elements as nested lists of numbers; a 0-d tensor gives its number.\n>>> tensor([[1, 2], [3, "             \
       "4]]).tolist()"},                                                                                               \
      {"astype", "(dtype, saturate=False)", tensor_astype,                                                             \
       "The same numbers in another dtype; floats are cut toward zero in integers. One that an integer dtype can't "   \
       "hold is an error; saturate=True clamps it to the limits and makes NaN 0.\n>>> tensor([1.7, "                   \
       "2.2]).astype(int64)"},                                                                                         \
      {"to", "(target)", tensor_to,                                                                                    \
       "The tensor in a dtype, or on a device: x.to(float64), x.to(\"cpu\").\n>>> tensor([1, 2]).to(float32)"},        \
      {"float", "()", tensor_float, "x.astype(float32)."}, {"double", "()", tensor_double, "x.astype(float64)."},      \
      {"long", "()", tensor_long, "x.astype(int64)."}, {"int", "()", tensor_int, "x.astype(int32)."},                  \
      {"bool", "()", tensor_bool, "x.astype(bool)."},                                                                  \
      {"detach", "()", tensor_detach, "The same value without its history: gradients stop here."},                     \
      {"numpy", "()", tensor_detach, "As detach: there is nothing to convert to."},                                    \
      {"clone", "()", tensor_clone,                                                                                    \
       "The value itself: tensors never change, so no copy is needed. Of a Variable: its value, read."},               \
      {"numel", "()", tensor_numel, "The number of elements, as the attribute size.\n>>> zeros((2, 3)).numel()"}, {    \
    "backward", "(gradient=None, retain_graph=False, create_graph=False)", tensor_backward,                            \
        "Adds the gradient of this value to .grad of every leaf it depends on: Variables read inside a GradientTape, " \
        "and what has requires_grad."                                                                                  \
  }

const td_method td_tensor_methods[] = {SHARED_METHODS, {NULL, NULL, NULL, NULL}};

// ---- Variable ----

enum assign_mode { ASSIGN, ASSIGN_ADD, ASSIGN_SUBTRACT };

// What a Variable is changed by is not recorded, and that is no cut for why() to name: the assignment is. New
// reference.
static td_tensor *unrecorded(td_context *context, const char *op, td_tensor *a, td_tensor *b) {
  td_tensor *in[2] = {a, b}, *out[TD_OUTPUT_MAX];
  const td_recorder *recorder = context->recorder;
  context->recorder = NULL;
  int code = td_op_apply(context, td_op_find(op), in, 2, NULL, out);
  context->recorder = recorder;
  return code == TD_OK ? out[0] : NULL;
}

static td_value assign(td_interpreter *I, td_value self, td_value value, enum assign_mode mode) {
  static const char *const ops[] = {NULL, "add", "subtract"};
  td_variable *variable = td_unbox_variable(self);
  td_tensor *t = td_to_tensor(I, value, variable->value->dtype);
  if (!t) {
    td_raise_within(I, "%s: ", mode == ASSIGN ? "assign" : mode == ASSIGN_ADD ? "assign_add" : "assign_sub");
    return TD_NIL;
  }
  td_tensor *next = mode == ASSIGN ? td_tensor_ref(t) : unrecorded(I->context, ops[mode], variable->value, t);
  bool done = next && td_variable_assign(I->context, variable, next) == TD_OK;
  if (done) td_tape_note_cut(I->context, TD_CUT_ASSIGN, t, variable);
  td_tensor_unref(next);
  td_tensor_unref(t);
  return done ? TD_NONE : td_raise_engine(I);
}

static td_value variable_assign(td_interpreter *I, td_value self, td_value *arguments) {
  return assign(I, self, arguments[0], ASSIGN);
}
static td_value variable_assign_add(td_interpreter *I, td_value self, td_value *arguments) {
  return assign(I, self, arguments[0], ASSIGN_ADD);
}
static td_value variable_assign_sub(td_interpreter *I, td_value self, td_value *arguments) {
  return assign(I, self, arguments[0], ASSIGN_SUBTRACT);
}

static td_value variable_value(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_tensor *t = td_to_tensor(I, self, -1);
  return t ? td_tensor_box(I, t) : TD_NIL;
}

static td_value variable_zero_grad(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  td_variable *variable = td_unbox_variable(self);
  td_tensor_unref(variable->grad);
  variable->grad = NULL;
  return TD_NONE;
}

const td_method td_variable_methods[] = {
    {"assign", "(value)", variable_assign,
     "Sets the value; shape and dtype stay. Tensors read before keep what they were.\n>>> v = Variable(1.); "
     "v.assign(5.); v"},
    {"assign_add", "(value)", variable_assign_add, "Adds to the value.\n>>> v = Variable(1.); v.assign_add(2.); v"},
    {"assign_sub", "(value)", variable_assign_sub,
     "Subtracts from the value.\n>>> v = Variable(1.); v.assign_sub(2.); v"},
    {"value", "()", variable_value, "The value as a tensor."},
    {"zero_grad", "()", variable_zero_grad, "Clears .grad."},
    SHARED_METHODS,
    {NULL, NULL, NULL, NULL}};
