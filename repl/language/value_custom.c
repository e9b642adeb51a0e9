// What the library's custom_gradient and checkpoint rest on. _custom(values, inputs, gradient, name): in the backward
// pass the engine calls gradient with the cotangents of values; what it returns goes to the inputs.
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/nest.h"

typedef struct derivative {
  td_interpreter *interpreter;
  td_value function, name; // name: a str
} derivative;

typedef struct gathered { // tensors of a nest, in order; NULL: None
  td_tensor *at[TD_INPUT_MAX];
  int count;
  const char *role;
} gathered;

static void drop(gathered *g) {
  for (int i = 0; i < g->count; i++) td_tensor_unref(g->at[i]);
}

static bool gather(td_interpreter *I, td_value leaf, void *argument) {
  gathered *g = argument;
  if (g->count == TD_INPUT_MAX) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "custom_gradient: more than %d %s", TD_INPUT_MAX, g->role);
    return false;
  }
  bool number = leaf.tag == TD_TAG_DOUBLE || leaf.tag == TD_TAG_INT;
  if (!td_is_none(leaf) && !number && !td_is_tensor_like(leaf)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "custom_gradient: %s must be tensors, not %s", g->role, td_type_name(I, leaf));
    return false;
  }
  td_tensor *t = td_is_none(leaf) ? NULL : td_to_tensor(I, leaf, -1);
  if (!t && !td_is_none(leaf)) return false;
  g->at[g->count++] = t;
  return true;
}

static bool gather_tensors(td_interpreter *I, td_value leaf, void *argument) { // others have no derivative
  return !td_is_tensor_like(leaf) || gather(I, leaf, argument);
}

static int raised(td_interpreter *I) {
  return td_error_set(I->context, TD_ERROR_CALLBACK, "the gradient function raised an exception");
}

static bool check_count(td_interpreter *I, const gathered *g, int wanted) {
  if (g->count == wanted) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "custom_gradient: the gradient function gave %d gradients for %d tensor arguments",
           g->count, wanted);
  td_raise_hint(I, "return one for each tensor argument, in their order; None means zero");
  return false;
}

static int derive(void *owner, td_tensor *const *cotangents, int out_count, td_tensor **din, int in_count) {
  derivative *d = owner;
  td_interpreter *I = d->interpreter;
  td_value values[TD_OUTPUT_MAX], result = TD_NIL;
  gathered g = {.role = "gradients"};
  int ready = 0;
  for (; ready < out_count; ready++) {
    values[ready] = td_tensor_box(I, td_tensor_ref(cotangents[ready]));
    if (td_is_nil(values[ready])) break;
  }
  if (ready == out_count) result = td_invoke(I, d->function, &(td_arguments){.count = out_count, .values = values});
  for (int i = 0; i < ready; i++) td_unref(values[i]);
  bool ok = !td_is_nil(result) && td_nest_each(I, result, gather, &g) && check_count(I, &g, in_count);
  td_unref(result);
  for (int i = 0; i < in_count && ok; i++) din[i] = g.at[i];
  if (!ok) drop(&g);
  return ok ? TD_OK : raised(I);
}

static void release(void *owner) {
  td_unref(((derivative *)owner)->function);
  td_unref(((derivative *)owner)->name);
  td_memory_free(owner);
}

static td_value rebuild(td_interpreter *I, td_value like, td_tensor **out, int count) {
  td_value leaves[TD_OUTPUT_MAX], result = TD_NIL;
  int ready = 0, next = 0;
  for (; ready < count; ready++) leaves[ready] = td_tensor_box(I, out[ready]);
  bool ok = true;
  for (int i = 0; i < count; i++) ok = ok && !td_is_nil(leaves[i]);
  if (ok) result = td_nest_build(I, like, leaves, &next);
  for (int i = 0; i < count; i++) td_unref(leaves[i]);
  return result;
}

static td_value builtin_custom(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  gathered values = {.role = "values"}, inputs = {.role = "arguments"};
  td_tensor *out[TD_OUTPUT_MAX];
  td_value result = TD_NIL;
  bool ok = td_nest_each(I, arguments[0], gather, &values) && td_nest_each(I, arguments[1], gather_tensors, &inputs);
  derivative *d = ok ? td_memory_new(sizeof *d) : NULL;
  if (d) {
    *d = (derivative){I, td_ref(arguments[2]), td_ref(arguments[3])};
    td_custom custom = {derive, release, d, td_as_str(arguments[3])->data};
    I->context->place = td_own_place(I);
    int code = td_tape_custom(I->context, &custom, inputs.at, inputs.count, values.at, values.count, out);
    result = code ? td_raise_engine(I) : rebuild(I, arguments[0], out, values.count);
  } else if (ok) td_raise_memory(I);
  drop(&values);
  drop(&inputs);
  return result;
}

// ---- checkpoint ----

typedef struct again { // a call that can be made once more
  td_interpreter *interpreter;
  td_value function, arguments; // arguments: a tuple
} again;

static td_value call_again(again *a) {
  td_tuple *arguments = td_as_tuple(a->arguments);
  return td_invoke(a->interpreter, a->function,
                   &(td_arguments){.count = (int32_t)arguments->count, .values = arguments->items});
}

static int rerun(void *owner) {
  again *a = owner;
  td_value result = call_again(a);
  bool ok = !td_is_nil(result);
  td_unref(result);
  return ok ? TD_OK : td_error_set(a->interpreter->context, TD_ERROR_CALLBACK, "the function raised an exception");
}

typedef struct keeping {
  td_each_tensor *each;
  void *argument;
} keeping;

static bool keep_leaf(td_interpreter *I, td_value leaf, void *argument) {
  (void)I;
  const keeping *k = argument;
  if (td_is(leaf, &td_tensor_type)) k->each(k->argument, td_unbox_tensor(leaf));
  return true;
}

static void kept_again(void *owner, td_each_tensor *each, void *argument) {
  again *a = owner;
  keeping k = {each, argument};
  if (!td_nest_each(a->interpreter, a->arguments, keep_leaf, &k)) td_clear_raised(a->interpreter);
}

static void release_again(void *owner) {
  td_unref(((again *)owner)->function);
  td_unref(((again *)owner)->arguments);
  td_memory_free(owner);
}

static td_value builtin_checkpoint(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  again *a = td_memory_new(sizeof *a);
  if (!a) return td_raise_memory(I);
  *a = (again){I, td_ref(arguments[0]), td_ref(arguments[1])};
  td_region *region;
  if (td_region_begin(I->context, &(td_rerun){rerun, release_again, a, kept_again}, &region) != TD_OK)
    return td_raise_engine(I);
  td_value result = call_again(a);
  td_region_end(I->context, region);
  return result;
}

const td_method td_custom_builtins[] = {
    {"_checkpoint", "(function, arguments)", builtin_checkpoint,
     "A call whose records keep nothing for backward, which makes the call once more."},
    {"_custom", "(values, inputs, gradient, name)", builtin_custom,
     "The same values with a derivative of the caller's."},
    {NULL, NULL, NULL, NULL}};
