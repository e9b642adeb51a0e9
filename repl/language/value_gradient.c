// Functions of functions: grad(f) and value_and_grad(f). A call runs f on fresh leaves under a tape of its own, so
// what the caller holds is neither watched nor changed; the tape goes when the call ends. They nest, so any order
// works.
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "repl/language/nest.h"

typedef struct gradient_function {
  td_container container;
  td_value function, argnums;
  bool with_value, has_aux;
} gradient_function;

static void gradient_function_release(td_object *object) {
  td_unref(((gradient_function *)object)->function);
  td_unref(((gradient_function *)object)->argnums);
}

static void gradient_function_visit(td_object *object, td_visitor *visitor, void *argument) {
  td_value function = ((gradient_function *)object)->function;
  if (function.tag == TD_TAG_OBJECT) visitor(function.o, argument);
}

static void gradient_function_clear(td_object *object) {
  td_value function = ((gradient_function *)object)->function;
  ((gradient_function *)object)->function = TD_NONE;
  td_unref(function);
}

static const char *name_of(const gradient_function *f) { return f->with_value ? "value_and_grad" : "grad"; }

// A number becomes a tensor of its own so that it can be watched; a tensor its identity, so that the caller's is not.
static td_value fresh_leaf(td_interpreter *I, td_value v) {
  if (td_is(v, &td_tensor_type)) {
    td_scope scope;
    td_scope_open(&scope, I->context);
    td_tensor *same = td_tensor_ref(td_identity(&scope, td_unbox_tensor(v)));
    td_scope_close(&scope);
    return td_tensor_box(I, same);
  }
  if (v.tag == TD_TAG_DOUBLE) {
    td_tensor *t = td_to_tensor(I, v, -1);
    return t ? td_tensor_box(I, t) : TD_NIL;
  }
  return td_ref(v);
}

typedef struct fresh {
  const char *who; // in messages
  int64_t number; // of the argument
  td_value *leaves;
  int count;
} fresh;

static bool check_float_leaf(td_interpreter *I, td_value leaf, const fresh *f) {
  const td_tensor *t = td_tensor_of(leaf);
  if ((t && td_dtype_is_float(t->dtype)) || leaf.tag == TD_TAG_DOUBLE) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s: argument %lld is %s: only floats have gradients", f->who, (long long)f->number,
           t ? td_dtype_name(t->dtype) : td_type_name(I, leaf));
  td_raise_hint(I, t ? "x.astype(float32) makes it one" : "pass a float or a tensor of floats: 2., tensor([1., 2.])");
  return false;
}

static bool add_fresh(td_interpreter *I, td_value leaf, void *argument) {
  fresh *f = argument;
  if (!check_float_leaf(I, leaf, f)) return false;
  f->leaves[f->count] = fresh_leaf(I, leaf);
  return !td_is_nil(f->leaves[f->count]) && ++f->count;
}

td_value td_fresh_argument(td_interpreter *I, td_value v, const char *who, int64_t number) {
  int count = td_nest_count(I, v), next = 0;
  if (count < 0) return TD_NIL;
  fresh f = {who, number, td_memory_new((size_t)(count + 1) * sizeof(td_value)), 0};
  if (!f.leaves) return td_raise_memory(I);
  td_value result = td_nest_each(I, v, add_fresh, &f) ? td_nest_build(I, v, f.leaves, &next) : TD_NIL;
  for (int i = 0; i < f.count; i++) td_unref(f.leaves[i]);
  td_memory_free(f.leaves);
  return result;
}

static bool argnum_list(td_interpreter *I, const gradient_function *f, int count, int *numbers, int *used) {
  td_arg arg;
  if (!td_to_axes(I, f->argnums, "argnums", &arg)) {
    if (td_is_nil(I->raised))
      td_raise(I, TD_CLASS_TYPE_ERROR, "%s: argnums must be an int or a tuple of ints", name_of(f));
    return false;
  }
  *used = arg.count;
  for (int i = 0; i < arg.count; i++) {
    int64_t n = arg.ints[i] < 0 ? arg.ints[i] + count : arg.ints[i];
    if (n < 0 || n >= count) {
      td_raise(I, TD_CLASS_VALUE_ERROR, "%s: argnums %lld, but the call has %d positional argument%s", name_of(f),
               (long long)arg.ints[i], count, count == 1 ? "" : "s");
      return false;
    }
    numbers[i] = (int)n;
  }
  return true;
}

static td_value pack_result(td_interpreter *I, const gradient_function *f, td_value value, td_value aux,
                            td_value gradients) {
  if (!f->with_value && !f->has_aux) return td_ref(gradients);
  td_value first = f->has_aux && f->with_value ? td_tuple_pack(I, 2, td_ref(value), td_ref(aux))
                                               : td_ref(f->with_value ? value : gradients);
  if (td_is_nil(first)) return TD_NIL;
  return td_tuple_pack(I, 2, first, td_ref(f->with_value ? gradients : aux));
}

// Runs the function on fresh leaves under a tape and differentiates its value.
static td_value differentiate(td_interpreter *I, gradient_function *f, td_arguments *call, const int *numbers, int used,
                              td_tape *tape) {
  for (int i = 0; i < used; i++) {
    if (!td_nest_each(I, call->values[numbers[i]], td_tape_watch_leaf, tape)) return TD_NIL;
  }
  td_value result = td_invoke(I, f->function, call), aux = TD_NIL, value = result;
  if (td_is_nil(result)) return TD_NIL;
  if (f->has_aux) {
    if (!td_is(result, &td_tuple_type) || td_as_tuple(result)->count != 2) {
      td_unref(result);
      return td_raise(I, TD_CLASS_TYPE_ERROR, "%s: with has_aux=True the function must return (value, aux)",
                      name_of(f));
    }
    value = td_as_tuple(result)->items[0];
    aux = td_as_tuple(result)->items[1];
  }
  const td_tensor *t = td_tensor_of(value);
  td_value packed = TD_NIL;
  if (!t || t->size != 1) {
    td_text shape = {0};
    if (t) td_shape_print(&shape, t->rank, t->shape);
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: the function must return a scalar tensor, not %s%s", name_of(f),
             t ? "one of shape " : td_type_name(I, value), shape.data ? shape.data : "");
    td_raise_hint(I, t ? "reduce it: .sum() or .mean()" : "compute it from the argument's tensor");
    td_text_clear(&shape);
  } else {
    bool several = td_is(f->argnums, &td_tuple_type) || td_is(f->argnums, &td_list_type);
    td_value sources = several ? TD_NIL : td_ref(call->values[numbers[0]]);
    if (several) {
      td_tuple *tuple = td_tuple_new(I, used);
      for (int i = 0; tuple && i < used; i++) tuple->items[i] = td_ref(call->values[numbers[i]]);
      sources = td_from(tuple);
    }
    td_tape_close(I->context, tape);
    td_value gradients = td_is_nil(sources) ? TD_NIL : td_tape_gradient_values(I, tape, value, sources, TD_NIL, true);
    if (!td_is_nil(gradients)) packed = pack_result(I, f, value, aux, gradients);
    td_unref(gradients);
    td_unref(sources);
  }
  td_unref(result);
  return packed;
}

static td_value gradient_function_call(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  gradient_function *f = (gradient_function *)callee.o;
  int numbers[TD_RANK_MAX], used = 0;
  if (!argnum_list(I, f, arguments->count, numbers, &used)) return TD_NIL;
  int total = arguments->count + arguments->keyword_count;
  td_arguments call = *arguments;
  call.values = td_memory_new((size_t)(total + 1) * sizeof *call.values);
  if (!call.values) return td_raise_memory(I);
  td_tape *tape = td_tape_new(I->context, false, false);
  td_value result = TD_NIL;
  bool ok = tape != NULL;
  for (int i = 0; i < total; i++) call.values[i] = td_ref(arguments->values[i]);
  for (int i = 0; ok && i < used; i++) {
    td_value leaf = td_fresh_argument(I, call.values[numbers[i]], name_of(f), numbers[i]);
    ok = !td_is_nil(leaf);
    if (!ok) break;
    td_unref(call.values[numbers[i]]);
    call.values[numbers[i]] = leaf;
  }
  if (ok && td_tape_open(I->context, tape) == TD_OK) {
    result = differentiate(I, f, &call, numbers, used, tape);
    td_tape_close(I->context, tape);
  } else if (td_is_nil(I->raised)) td_raise_engine(I);
  for (int i = 0; i < total; i++) td_unref(call.values[i]);
  td_memory_free(call.values);
  if (tape) td_tape_unref(I->context, tape);
  return result;
}

static const td_type gradient_function_type = {.name = "gradient function",
                                               .size = sizeof(gradient_function),
                                               .release = gradient_function_release,
                                               .visit = gradient_function_visit,
                                               .clear = gradient_function_clear,
                                               .call = gradient_function_call};

static td_value gradient_function_new(td_interpreter *I, td_value *arguments, bool with_value) {
  if (!td_is(arguments[0], &td_instance_type) && !td_type_of(arguments[0])->call) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: needs a function, not %s", with_value ? "value_and_grad" : "grad",
             td_type_name(I, arguments[0]));
    if (td_is_tensor_like(arguments[0])) td_raise_hint(I, "autograd.grad(outputs, inputs) is PyTorch's grad");
    return TD_NIL;
  }
  int has_aux = td_truth(I, arguments[2]);
  if (has_aux < 0) return TD_NIL;
  gradient_function *f = td_object_new(I, &gradient_function_type, sizeof *f);
  if (!f) return TD_NIL;
  f->function = td_ref(arguments[0]);
  f->argnums = td_ref(arguments[1]);
  f->with_value = with_value;
  f->has_aux = has_aux;
  return td_from(f);
}

static td_value builtin_grad(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return gradient_function_new(I, arguments, false);
}

static td_value builtin_value_and_grad(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return gradient_function_new(I, arguments, true);
}

static td_value builtin_fresh(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  bool ok = true;
  int64_t number = td_to_int(I, arguments[2], &ok);
  return ok ? td_fresh_argument(I, arguments[0], td_as_str(arguments[1])->data, number) : TD_NIL;
}

const td_method td_gradient_builtins[] = {
    {"_fresh", "(values, who, number)", builtin_fresh,
     "The same structure with tensors of its own, so that watching them doesn't watch what the caller holds. who and "
     "number: of the function and of its argument, where it has something else than floats."},
    {"grad", "(function, argnums=0, has_aux=False)", builtin_grad,
     "The gradient function of a function with a scalar value, in its argument number argnums (an int or a tuple of "
     "ints; for a tuple the result is one, too).\n"
     ">>> grad(lambda x: x ** 3)(2.)"},
    {"value_and_grad", "(function, argnums=0, has_aux=False)", builtin_value_and_grad,
     "As grad, but the result is (value, gradient), from one pass.\n>>> value_and_grad(lambda x: x ** 2)(3.)"},
    {NULL, NULL, NULL, NULL}};
