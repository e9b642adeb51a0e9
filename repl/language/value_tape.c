// GradientTape and the scopes no_grad() and tape.stop_recording() as values. Targets and sources may be nested
// (nest.h).
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/nest.h"
#include "repl/language/watch.h"

static td_tape *tape_of(td_value v) { return ((td_tape_value *)v.o)->tape; }

// ---- flat arrays of targets and sources ----

typedef struct flat {
  int count, capacity;
  td_tensor **tensors; // owned references, NULL where the leaf is None
  td_source *sources; // borrowed from the values
  const char *role;
} flat;

static bool flat_room(td_interpreter *I, flat *f, int count) {
  f->capacity = count;
  f->tensors = td_memory_new_zero((size_t)(count + 1) * sizeof *f->tensors);
  f->sources = td_memory_new_zero((size_t)(count + 1) * sizeof *f->sources);
  if (f->tensors && f->sources) return true;
  td_raise_memory(I);
  return false;
}

static void flat_clear(flat *f) {
  for (int i = 0; f->tensors && i < f->count; i++) td_tensor_unref(f->tensors[i]);
  td_memory_free(f->tensors);
  td_memory_free(f->sources);
}

static bool not_a_tensor(td_interpreter *I, td_value leaf, const char *role) {
  td_raise(I, TD_CLASS_TYPE_ERROR, "gradient: %s must be a tensor or a Variable, not %s", role, td_type_name(I, leaf));
  if (leaf.tag == TD_TAG_INT || leaf.tag == TD_TAG_DOUBLE)
    td_raise_hint(
        I,
        "a number carries no history: make it a tensor, x = tensor(2.), or a Variable, before it is used in the tape");
  return false;
}

static bool add_source(td_interpreter *I, td_value leaf, void *argument) {
  flat *f = argument;
  if (td_is(leaf, &td_variable_type)) f->sources[f->count++].variable = td_unbox_variable(leaf);
  else if (td_is(leaf, &td_tensor_type)) f->sources[f->count++].tensor = td_unbox_tensor(leaf);
  else return not_a_tensor(I, leaf, f->role);
  return true;
}

static bool add_tensor(td_interpreter *I, td_value leaf, void *argument) {
  flat *f = argument;
  if (td_is_none(leaf)) {
    f->tensors[f->count++] = NULL;
    return true;
  }
  bool number = leaf.tag == TD_TAG_INT || leaf.tag == TD_TAG_DOUBLE;
  if (!number && !td_is_tensor_like(leaf)) return not_a_tensor(I, leaf, f->role);
  td_tensor *t = td_to_tensor(I, leaf, number ? TD_FLOAT32 : -1);
  if (t) f->tensors[f->count++] = t;
  return t != NULL;
}

static bool add_target(td_interpreter *I, td_value leaf, void *argument) {
  if (td_is_tensor_like(leaf)) return add_tensor(I, leaf, argument);
  not_a_tensor(I, leaf, ((flat *)argument)->role);
  if (td_is_none(leaf)) td_raise_hint(I, "is a return missing in the function that made it?");
  return false;
}

static bool flatten(td_interpreter *I, td_value v, flat *f, td_nest_leaf *add) {
  int count = td_nest_count(I, v);
  return count >= 0 && flat_room(I, f, count) && td_nest_each(I, v, add, f);
}

static td_value box_gradients(td_interpreter *I, td_value sources, td_tensor **gradients, int count) {
  td_value *leaves = td_memory_new((size_t)(count + 1) * sizeof *leaves), result = TD_NIL;
  if (!leaves) {
    for (int i = 0; i < count; i++) td_tensor_unref(gradients[i]);
    return td_raise_memory(I);
  }
  bool ok = true;
  for (int i = 0; i < count; i++) {
    leaves[i] = gradients[i] ? td_tensor_box(I, gradients[i]) : TD_NONE;
    ok = ok && !td_is_nil(leaves[i]);
  }
  int next = 0;
  if (ok) result = td_nest_build(I, sources, leaves, &next);
  for (int i = 0; i < count; i++) td_unref(leaves[i]);
  td_memory_free(leaves);
  return result;
}

static void watch(td_interpreter *I, const flat *sources, td_tensor *const *gradients) {
  bool well = td_watch_is_due(I, false);
  for (int i = 0; i < sources->count; i++) {
    td_variable *v = gradients[i] ? sources->sources[i].variable : NULL;
    if (v && well) td_watch_gradient(I, v, gradients[i]);
    else if (v && !td_watch_is_on(I)) td_watch_glance(v, gradients[i]);
  }
}

// tape NULL: of what was recorded anywhere, as backward() does.
static td_value gradient_values(td_interpreter *I, td_tape *tape, td_value target, td_value sources,
                                td_value cotangents, bool zero, bool retain, bool create) {
  flat targets = {.role = "a target"}, wanted = {.role = "a source"}, seeds = {.role = "an output gradient"};
  td_value result = TD_NIL;
  bool seeded = !td_is_nil(cotangents) && !td_is_none(cotangents);
  td_no_grad_enter(I->context); // reading a target Variable is not a use of it
  bool ok = flatten(I, target, &targets, add_target);
  td_no_grad_leave(I->context);
  ok = ok && flatten(I, sources, &wanted, add_source) && (!seeded || flatten(I, cotangents, &seeds, add_tensor));
  if (ok && seeded && seeds.count != targets.count) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "gradient: %d targets but %d output_gradients", targets.count, seeds.count);
    ok = false;
  }
  td_tensor **gradients = ok ? td_memory_new_zero((size_t)(wanted.count + 1) * sizeof *gradients) : NULL;
  if (gradients) {
    td_tensor **given = seeded ? seeds.tensors : NULL;
    int code = tape ? td_tape_gradient(I->context, tape, targets.tensors, targets.count, given, wanted.sources,
                                       wanted.count, zero, gradients)
                    : td_recorded_gradient(I->context, targets.tensors, targets.count, given, wanted.sources,
                                           wanted.count, retain, create, gradients);
    if (code == TD_OK) watch(I, &wanted, gradients);
    result = code == TD_OK ? box_gradients(I, sources, gradients, wanted.count) : td_raise_engine(I);
  } else if (ok) td_raise_memory(I);
  td_memory_free(gradients);
  flat_clear(&targets);
  flat_clear(&wanted);
  flat_clear(&seeds);
  return result;
}

td_value td_tape_gradient_values(td_interpreter *I, td_tape *tape, td_value target, td_value sources,
                                 td_value cotangents, bool zero) {
  return gradient_values(I, tape, target, sources, cotangents, zero, false, false);
}

static td_value builtin_recorded_gradient(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int retain = td_truth(I, arguments[3]), create = td_truth(I, arguments[4]);
  if (retain < 0 || create < 0) return TD_NIL;
  return gradient_values(I, NULL, arguments[0], arguments[1], arguments[2], false, retain, create);
}

// ---- tangents and Jacobians ----

static bool wants_zero(td_interpreter *I, td_value v, bool *zero) {
  *zero = td_is(v, &td_str_type) && strcmp(td_as_str(v)->data, "zero") == 0;
  if (*zero || td_is_nil(v) || td_is_none(v) || (td_is(v, &td_str_type) && strcmp(td_as_str(v)->data, "none") == 0))
    return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "gradient: unconnected_gradients must be \"none\" or \"zero\"");
  return false;
}

static bool same_count(td_interpreter *I, int wanted, int given) {
  if (wanted == given) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "jvp: %d sources but %d tangents", wanted, given);
  return false;
}

static td_value box_tangents(td_interpreter *I, td_value target, const flat *targets, td_tensor **tangents) {
  for (int i = 0; i < targets->count; i++) {
    const td_tensor *t = targets->tensors[i];
    if (!tangents[i]) tangents[i] = td_tensor_zeros(I->context, t->dtype, t->rank, t->shape);
  }
  return box_gradients(I, target, tangents, targets->count);
}

static td_value tape_jvp(td_interpreter *I, td_value self, td_value *arguments) {
  flat targets = {.role = "a target"}, sources = {.role = "a source"}, tangents = {.role = "a tangent"};
  td_value result = TD_NIL;
  bool ok = flatten(I, arguments[0], &targets, add_target) && flatten(I, arguments[1], &sources, add_source) &&
            flatten(I, arguments[2], &tangents, add_tensor) && same_count(I, sources.count, tangents.count);
  for (int i = 0; ok && i < tangents.count; i++) {
    const td_source *s = &sources.sources[i];
    const td_tensor *t = s->variable ? s->variable->value : s->tensor;
    if (tangents.tensors[i]) tangents.tensors[i] = td_cast_to(I, tangents.tensors[i], t->dtype);
    ok = td_is_nil(I->raised);
  }
  td_tensor **out = ok ? td_memory_new_zero((size_t)(targets.count + 1) * sizeof *out) : NULL;
  if (out) {
    int code = td_tape_jvp(I->context, tape_of(self), sources.sources, tangents.tensors, sources.count, targets.tensors,
                           targets.count, out);
    result = code == TD_OK ? box_tangents(I, arguments[0], &targets, out) : td_raise_engine(I);
  } else if (ok) td_raise_memory(I);
  td_memory_free(out);
  flat_clear(&targets);
  flat_clear(&sources);
  flat_clear(&tangents);
  return result;
}

static td_value derive_all(td_interpreter *I, td_value self, td_value *arguments, bool per_example) {
  flat targets = {.role = "the target"}, sources = {.role = "a source"};
  const char *name = per_example ? "batch_jacobian" : "jacobian";
  td_value result = TD_NIL;
  bool zero, ok = wants_zero(I, arguments[2], &zero) && flatten(I, arguments[0], &targets, add_target) &&
                  flatten(I, arguments[1], &sources, add_source);
  if (ok && targets.count != 1) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "%s: takes one target, %d were given", name, targets.count);
    ok = false;
  }
  td_tensor **out = ok ? td_memory_new_zero((size_t)(sources.count + 1) * sizeof *out) : NULL;
  if (out) {
    td_busy busy = td_busy_start(I, name);
    int code = td_tape_jacobian(I->context, tape_of(self), targets.tensors[0], sources.sources, sources.count,
                                per_example, zero, td_busy_tell, &busy, out);
    td_busy_end(&busy);
    result = code == TD_OK ? box_gradients(I, arguments[1], out, sources.count) : td_raise_engine(I);
  } else if (ok) td_raise_memory(I);
  td_memory_free(out);
  flat_clear(&targets);
  flat_clear(&sources);
  if (td_is_nil(result)) td_raise_renamed(I, "gradient", name);
  return result;
}

static td_value tape_jacobian(td_interpreter *I, td_value self, td_value *arguments) {
  return derive_all(I, self, arguments, false);
}

static td_value tape_batch_jacobian(td_interpreter *I, td_value self, td_value *arguments) {
  return derive_all(I, self, arguments, true);
}

// ---- methods ----

static td_value tape_enter(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  if (td_tape_open(I->context, tape_of(self)) != TD_OK) return td_raise_engine(I);
  ((td_tape_value *)self.o)->open = true;
  return td_ref(self);
}

static void tape_emit(td_interpreter *I, td_tape *tape) {
  if (!I->sink) return;
  int64_t records = td_tape_length(tape);
  td_event event = {.kind = TD_EVENT_TAPE, .cell = I->cell, .text = "tape", .length = 4, .done = records};
  I->sink->emit(I->sink->owner, &event);
}

static td_value tape_exit(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_tape_value *value = (td_tape_value *)self.o;
  if (value->open) td_tape_close(I->context, value->tape);
  value->open = false;
  td_watch_tape(I, self);
  tape_emit(I, value->tape);
  return td_bool(false);
}

bool td_tape_watch_leaf(td_interpreter *I, td_value leaf, void *argument) {
  td_tape *tape = argument;
  int code;
  if (td_is(leaf, &td_variable_type)) code = td_tape_watch_variable(I->context, tape, td_unbox_variable(leaf));
  else if (td_is(leaf, &td_tensor_type)) code = td_tape_watch(I->context, tape, td_unbox_tensor(leaf));
  else return not_a_tensor(I, leaf, "what is watched");
  if (code != TD_OK) td_raise_engine(I);
  return code == TD_OK;
}

static td_value tape_watch(td_interpreter *I, td_value self, td_value *arguments) {
  if (td_nest_each(I, arguments[0], td_tape_watch_leaf, tape_of(self))) return TD_NONE;
  td_raise_renamed(I, "gradient", "watch");
  return TD_NIL;
}

static td_value tape_gradient(td_interpreter *I, td_value self, td_value *arguments) {
  bool zero;
  if (!wants_zero(I, arguments[3], &zero)) return TD_NIL;
  return td_tape_gradient_values(I, tape_of(self), arguments[0], arguments[1], arguments[2], zero);
}

static td_value tape_reset(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_tape_reset(I->context, tape_of(self));
  return TD_NONE;
}

static td_value tape_watched(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  int most = td_tape_watched(tape_of(self), NULL, 0);
  uint64_t *ids = td_memory_new((size_t)(most + 1) * sizeof *ids);
  int count = ids ? td_tape_watched(tape_of(self), ids, most) : 0;
  td_list *list = ids ? td_list_new(I, count) : NULL;
  if (!list) {
    td_memory_free(ids);
    return td_raise_memory(I);
  }
  bool ok = true;
  for (int i = 0; ok && i < count; i++) {
    td_variable *variable = td_variable_find(ids[i]);
    if (!variable) continue;
    td_value box = td_variable_box(I, td_variable_ref(variable));
    ok = !td_is_nil(box) && td_list_append(I, list, box);
    td_unref(box);
  }
  td_memory_free(ids);
  if (ok) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

static td_value tape_why(td_interpreter *I, td_value self, td_value *arguments) {
  flat wanted = {.role = "a source"};
  td_text answer = {0};
  td_value result = TD_NIL;
  if (flatten(I, arguments[0], &wanted, add_source)) {
    int code = TD_OK;
    for (int i = 0; i < wanted.count && code == TD_OK; i++) {
      if (i) td_text_add_char(&answer, '\n');
      code = td_tape_why(I->context, tape_of(self), &wanted.sources[i], &answer);
    }
    result = code == TD_OK ? td_from(td_str_take(I, &answer)) : td_raise_engine(I);
  }
  td_text_clear(&answer);
  flat_clear(&wanted);
  return result;
}

// ---- scopes ----

typedef struct scope_value {
  td_object object;
  td_interpreter *interpreter;
  td_value tape;
  bool open;
} scope_value; // tape NIL: no_grad

static td_value scope_new(td_interpreter *I, td_value tape) {
  scope_value *scope = td_object_new(I, &td_scope_type, sizeof *scope);
  if (!scope) return TD_NIL;
  scope->interpreter = I;
  scope->tape = td_ref(tape);
  return td_from(scope);
}

static void scope_leave(scope_value *scope) {
  if (!scope->open) return;
  scope->open = false;
  if (td_is_nil(scope->tape)) td_no_grad_leave(scope->interpreter->context);
  else td_tape_resume(scope->interpreter->context, tape_of(scope->tape));
}

static td_value scope_enter(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  scope_value *scope = (scope_value *)self.o;
  if (scope->open)
    return td_raise(I, TD_CLASS_RUNTIME_ERROR, "this scope is open already: make a new one for each with");
  if (td_is_nil(scope->tape)) td_no_grad_enter(I->context);
  else if (td_tape_pause(I->context, tape_of(scope->tape)) != TD_OK) return td_raise_engine(I);
  scope->open = true;
  return TD_NONE;
}

static td_value scope_exit(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  scope_leave((scope_value *)self.o);
  return td_bool(false);
}

static void scope_release(td_object *object) {
  scope_leave((scope_value *)object);
  td_unref(((scope_value *)object)->tape);
}

static const td_method scope_methods[] = {{"__enter__", "()", scope_enter, "Opens the scope."},
                                          {"__exit__", "(*exception)", scope_exit, "Closes the scope."},
                                          {NULL, NULL, NULL, NULL}};

const td_type td_scope_type = {.name = "scope",
                               .size = sizeof(scope_value),
                               .release = scope_release,
                               .methods = scope_methods,
                               .doc = "A scope for with: no_grad() or tape.stop_recording()."};

static td_value tape_stop_recording(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return scope_new(I, self);
}

static td_value builtin_no_grad(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self, (void)arguments;
  return scope_new(I, TD_NIL);
}

// ---- the type ----

static bool tape_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_print(text, "<GradientTape, %lld records>", (long long)td_tape_length(tape_of(v)));
  return true;
}

static int64_t tape_length(td_interpreter *I, td_value v) {
  (void)I;
  return td_tape_length(tape_of(v));
}

static int tape_truth(td_interpreter *I, td_value v) {
  (void)I, (void)v;
  return 1;
}

static void tape_release(td_object *object) {
  td_tape_value *value = (td_tape_value *)object;
  if (!value->tape) return;
  if (value->open) td_tape_close(value->interpreter->context, value->tape);
  td_tape_unref(value->interpreter->context, value->tape);
}

static const td_method tape_methods[] = {
    {"gradient", "(target, sources, output_gradients=None, unconnected_gradients='none')", tape_gradient,
     "The gradient of target in each source, in the structure of sources: a tensor, or a list, tuple, dict or model of "
     "them.\n"
     "A target with many elements, or many targets, means their sum. A source that target does not depend on gives "
     "None, or zeros\n"
     "with unconnected_gradients=\"zero\"; tape.why(source) says why. The tape gives its records up unless it is "
     "persistent.\n"
     ">>> x = Variable(3.)\n>>> with GradientTape() as t: y = x * x\n>>> t.gradient(y, x)"},
    {"gradients", "(target, sources, output_gradients=None, unconnected_gradients='none')", tape_gradient,
     "The same as gradient."},
    {"jvp", "(target, sources, tangents)", tape_jvp,
     "Forward mode: the tangent of target, in its structure, for tangents of the sources (None: zero). The tape keeps "
     "its "
     "records, so it may be called again.\n"
     ">>> x = tensor(3.)\n>>> with GradientTape(persistent=True) as t:\n...     t.watch(x)\n...     y = x * x\n"
     ">>> t.jvp(y, x, tensor(1.))"},
    {"jacobian", "(target, sources, unconnected_gradients='none')", tape_jacobian,
     "Derivatives of each element of target in each element of each source: shape (*target.shape, *source.shape).\n"
     ">>> x = Variable([1., 2.])\n>>> with GradientTape() as t: y = x * x\n>>> t.jacobian(y, x)"},
    {"batch_jacobian", "(target, source, unconnected_gradients='none')", tape_batch_jacobian,
     "The Jacobian of each example, where axis 0 of target and source counts examples that don't depend on each other: "
     "shape\n(examples, *target.shape[1:], *source.shape[1:])."},
    {"watch", "(tensors)", tape_watch,
     "Tracks tensors or Variables from here on. Trainable Variables that are read are watched by themselves."},
    {"watched_variables", "()", tape_watched, "The Variables watched so far, in order."},
    {"stop_recording", "()", tape_stop_recording,
     "A scope in which this tape records nothing: with t.stop_recording(): ..."},
    {"reset", "()", tape_reset, "Forgets all records."},
    {"why", "(source)", tape_why,
     "Why the gradient in source was None in the last gradient(), with the line where the chain ends and the remedy."},
    {"__enter__", "()", tape_enter, "Starts recording."},
    {"__exit__", "(*exception)", tape_exit, "Stops recording."},
    {NULL, NULL, NULL, NULL}};

const td_type td_tape_type = {
    .name = "GradientTape",
    .size = sizeof(td_tape_value),
    .release = tape_release,
    .truth = tape_truth,
    .repr = tape_repr,
    .length = tape_length,
    .methods = tape_methods,
    .doc =
        "GradientTape(persistent=False, watch_accessed_variables=True): records ops for differentiation inside with.\n"
        "len(tape) is the number of its records.",
};

static td_value builtin_tape(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int persistent = td_truth(I, arguments[0]), watch = td_truth(I, arguments[1]);
  if (persistent < 0 || watch < 0) return TD_NIL;
  td_tape_value *value = td_object_new(I, &td_tape_type, sizeof *value);
  if (!value) return TD_NIL;
  value->interpreter = I;
  value->tape = td_tape_new(I->context, persistent, watch);
  if (value->tape) return td_from(value);
  td_unref(td_from(value));
  return td_raise_engine(I);
}

static td_value builtin_stop_gradient(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tensor *t = td_to_tensor(I, arguments[0], -1);
  if (!t) return TD_NIL;
  td_tensor *stopped = td_stop_gradient(I->context, t);
  td_tensor_unref(t);
  return td_tensor_box(I, stopped);
}

// For the library's own sums: no note, so that why() doesn't answer with them.
static td_value builtin_value_of(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tensor *t = td_tensor_of(arguments[0]), *made = t ? NULL : td_to_tensor(I, arguments[0], -1);
  if (!t && !made) return TD_NIL;
  td_tensor *bare = td_tensor_alias(I->context, t ? t : made);
  td_tensor_unref(made);
  return td_tensor_box(I, bare);
}

const td_method td_tape_builtins[] = {
    {"GradientTape", "(persistent=False, watch_accessed_variables=True)", builtin_tape,
     "A tape: with GradientTape() as t: records ops on watched values; t.gradient(target, sources) differentiates.\n"
     ">>> x = Variable(3.)\n>>> with GradientTape() as t: y = x * x\n>>> t.gradient(y, x)"},
    {"_recorded_gradient", "(outputs, inputs, cotangents, retain_graph, create_graph)", builtin_recorded_gradient,
     "What autograd.grad gives: gradients of recorded outputs in inputs, None where they don't meet."},
    {"no_grad", "()", builtin_no_grad, "A scope in which no tape records: with no_grad(): ..."},
    {"stop_gradient", "(x)", builtin_stop_gradient,
     "The same value, through which no gradient flows.\n>>> stop_gradient(tensor(2.))"},
    {"_value_of", "(x)", builtin_value_of,
     "The value of x as a tensor without history: what metrics and checks compute with."},
    {NULL, NULL, NULL, NULL}};
