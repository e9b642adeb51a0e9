// gradcheck and gradgradcheck: derivatives of a function of the language against central differences.
#include <string.h>
#include "engine/tape/check.h"
#include "repl/language/nest.h"

typedef struct checked { // one call of gradcheck
  td_interpreter *interpreter;
  td_value function;
  td_value *inputs; // nests whose tensors are checked
  int input_count;
  td_tensor *leaves[TD_CHECK_MAX];
  int leaf_count;
} checked;

static bool add_leaf(td_interpreter *I, td_value leaf, void *argument) {
  checked *c = argument;
  if (c->leaf_count == TD_CHECK_MAX) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "gradcheck: more than %d tensors", TD_CHECK_MAX);
    return false;
  }
  td_tensor *t = td_is_tensor_like(leaf) ? td_tensor_ref(td_tensor_of(leaf)) : td_to_tensor_of(I, leaf, TD_FLOAT64);
  if (!t) return false;
  c->leaves[c->leaf_count++] = t;
  if (!td_dtype_is_float(t->dtype) || t->dtype == TD_FLOAT64) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "gradcheck: input %d is %s; differences need float64", c->leaf_count - 1,
           td_dtype_name(t->dtype));
  td_raise_hint(I, "pass x.astype(float64)");
  return false;
}

static bool add_result(td_interpreter *I, td_value leaf, void *argument) {
  checked *c = argument;
  if (!td_is_tensor_like(leaf)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "gradcheck: the function returned %s; a tensor is needed", td_type_name(I, leaf));
    return false;
  }
  if (c->leaf_count == TD_CHECK_MAX) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "gradcheck: more than %d results", TD_CHECK_MAX);
    return false;
  }
  td_tensor *t = td_to_tensor(I, leaf, -1);
  if (t) c->leaves[c->leaf_count++] = t;
  return t != NULL;
}

static void drop_leaves(checked *c) {
  while (c->leaf_count) td_tensor_unref(c->leaves[--c->leaf_count]);
}

static td_value call_on(checked *c, td_tensor *const *in) { // the function's value for other leaves
  td_interpreter *I = c->interpreter;
  td_value leaves[TD_CHECK_MAX], values[TD_CHECK_MAX], result = TD_NIL;
  int boxed = 0, ready = 0, next = 0;
  for (; boxed < c->leaf_count; boxed++) {
    leaves[boxed] = td_tensor_box(I, td_tensor_ref(in[boxed]));
    if (td_is_nil(leaves[boxed])) break;
  }
  for (; boxed == c->leaf_count && ready < c->input_count; ready++) {
    values[ready] = td_nest_build(I, c->inputs[ready], leaves, &next);
    if (td_is_nil(values[ready])) break;
  }
  if (boxed == c->leaf_count && ready == c->input_count)
    result = td_invoke(I, c->function, &(td_arguments){.count = ready, .values = values});
  for (int i = 0; i < boxed; i++) td_unref(leaves[i]);
  for (int i = 0; i < ready; i++) td_unref(values[i]);
  return result;
}

static int run(td_context *context, void *argument, td_tensor *const *in, int in_count, td_tensor **out,
               int *out_count) {
  (void)in_count;
  checked *c = argument, results = {.interpreter = c->interpreter};
  td_value value = call_on(c, in);
  bool ok = !td_is_nil(value) && td_nest_each(c->interpreter, value, add_result, &results);
  td_unref(value);
  if (!ok) drop_leaves(&results);
  memcpy(out, results.leaves, (size_t)results.leaf_count * sizeof *out);
  *out_count = results.leaf_count;
  return ok ? TD_OK : td_error_set(context, TD_ERROR_CALLBACK, "the function raised an exception");
}

static const char *name_of(td_value function) {
  return td_is(function, &td_function_type) ? ((td_function *)function.o)->qualified->data : "the function";
}

static bool number_of(td_interpreter *I, td_value v, double *number) {
  bool ok = true;
  *number = td_to_double(I, v, &ok);
  return ok;
}

static td_value check(td_interpreter *I, td_value *arguments, int order) {
  td_tuple *inputs = td_as_tuple(arguments[3]); // keyword arguments stand before the starred one
  checked c = {.interpreter = I, .function = arguments[0], .inputs = inputs->items, .input_count = (int)inputs->count};
  double eps, tolerance;
  td_value result = TD_NIL;
  bool ok = number_of(I, arguments[1], &eps) && number_of(I, arguments[2], &tolerance);
  if (ok && (inputs->count == 0 || inputs->count > TD_CHECK_MAX)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "gradcheck: takes a function and its arguments: gradcheck(f, x)");
    ok = false;
  }
  for (int i = 0; i < c.input_count && ok; i++) ok = td_nest_each(I, c.inputs[i], add_leaf, &c);
  if (ok) {
    int code = td_gradient_check(I->context, name_of(c.function), run, &c, c.leaves, c.leaf_count, eps, tolerance,
                                 order, NULL);
    result = code ? td_raise_engine(I) : td_bool(true);
  }
  drop_leaves(&c);
  return result;
}

static td_value builtin_gradcheck(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return check(I, arguments, 1);
}

static td_value builtin_gradgradcheck(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return check(I, arguments, 2);
}

const td_method td_check_builtins[] = {
    {"gradcheck", "(function, *inputs, eps=1e-6, tolerance=1e-5)", builtin_gradcheck,
     "True when the gradient of function, in every element of its float64 inputs, agrees with central differences.\n"
     "Otherwise GradientError names the op, the input, the element and both numbers. They differ when they are "
     "further\n"
     "apart than tolerance times the larger of both and 1.\n>>> gradcheck(sin, tensor([0.5], dtype=float64))"},
    {"gradgradcheck", "(function, *inputs, eps=1e-6, tolerance=1e-5)", builtin_gradgradcheck,
     "As gradcheck, to second order: the gradient's own gradient is checked too."},
    {NULL, NULL, NULL, NULL}};
