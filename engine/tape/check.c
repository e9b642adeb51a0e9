// gradcheck. A level is a function and its inputs; the level above it is the function that computes its gradient, whose
// inputs are the same and the cotangents. Each level compares its gradient with differences of its own function.
#include "engine/tape/check.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/base/random.h"

typedef struct level {
  const char *name;
  td_check_function *f;
  void *argument;
  int in_count; // of f; cotangents of floating outputs follow in the level above
  int order, left; // this one, and how many from here on
  double eps, tolerance;
  uint64_t counter; // random state that each call starts from
} level;

typedef struct outputs {
  td_tensor *at[TD_CHECK_MAX];
  int count;
} outputs;

static void drop(outputs *o) {
  for (int i = 0; i < o->count; i++) td_tensor_unref(o->at[i]);
  o->count = 0;
}

static int call(td_context *context, const level *l, td_tensor *const *in, outputs *out) {
  out->count = 0;
  context->counter = l->counter;
  return l->f(context, l->argument, in, l->in_count, out->at, &out->count);
}

static bool is_float(const td_tensor *t) { return t && td_dtype_is_float(t->dtype); }

// ---- the gradient as a function ----

static int gradient_on(td_context *context, td_tape *tape, const level *l, td_tensor *const *in, td_tensor **out,
                       int *out_count) {
  td_source sources[TD_CHECK_MAX];
  td_tensor *targets[TD_CHECK_MAX];
  outputs y;
  int source_count = 0, target_count = 0, code = td_tape_open(context, tape);
  for (int i = 0; i < l->in_count && !code; i++) {
    if (!is_float(in[i])) continue;
    code = td_tape_watch(context, tape, in[i]);
    sources[source_count++] = (td_source){.tensor = in[i]};
  }
  if (code) return code;
  code = call(context, l, in, &y);
  td_tape_close(context, tape);
  if (code) return code;
  for (int i = 0; i < y.count; i++)
    if (is_float(y.at[i])) targets[target_count++] = y.at[i];
  code = td_tape_gradient(context, tape, targets, target_count, in + l->in_count, sources, source_count, true, out);
  if (!code) *out_count = source_count;
  drop(&y);
  return code;
}

// in: the level's inputs, then one cotangent for each floating output. out: a gradient for each floating input.
static int gradient_of(td_context *context, void *argument, td_tensor *const *in, int in_count, td_tensor **out,
                       int *out_count) {
  (void)in_count;
  td_tape *tape = td_tape_new(context, false, false);
  if (!tape) return context->error.code;
  int code = gradient_on(context, tape, argument, in, out, out_count);
  td_tape_unref(context, tape);
  return code;
}

// ---- differences ----

static double weight(int output, int64_t element) { // between 0.5 and 1.5: no output goes unseen
  uint32_t bits[4];
  td_random_block(0x67726164, (uint64_t)element, (uint64_t)output, bits);
  return 0.5 + td_random_unit(bits[0], bits[1]);
}

static double weigh(const outputs *y) {
  double sum = 0;
  for (int i = 0, k = 0; i < y->count; i++) {
    if (!is_float(y->at[i])) continue;
    for (int64_t e = 0; e < y->at[i]->size; e++) sum += weight(k, e) * td_tensor_get_float(y->at[i], e);
    k++;
  }
  return sum;
}

static int evaluate(td_context *context, const level *l, td_tensor *const *in, double *value) {
  outputs y;
  int code = call(context, l, in, &y);
  if (code) return code;
  *value = weigh(&y);
  drop(&y);
  return TD_OK;
}

// Copies input k, moves one element by step, and evaluates.
static int evaluate_moved(td_context *context, const level *l, td_tensor *const *in, int k, int64_t element,
                          double step, double *value) {
  td_tensor *moved[TD_CHECK_MAX];
  memcpy(moved, in, (size_t)l->in_count * sizeof *moved);
  moved[k] = td_tensor_new(context, TD_FLOAT64, in[k]->rank, in[k]->shape);
  if (!moved[k]) return context->error.code;
  double *data = (double *)moved[k]->data;
  for (int64_t e = 0; e < in[k]->size; e++) data[e] = td_tensor_get_float(in[k], e);
  data[element] += step;
  int code = evaluate(context, l, moved, value);
  td_tensor_unref(moved[k]);
  return code;
}

static int differ(td_context *context, const level *l, int k, int64_t element, double gradient, double difference) {
  td_error_set(context, TD_ERROR_GRADIENT,
               "gradcheck: %s, order %d: in input %d, element %lld, the gradient is %.12g and the difference %.12g",
               l->name, l->order, k, (long long)element, gradient, difference);
  td_error_hint(context,
                "eps is %g: a larger one if the numbers agree in their first digits, a smaller one if the "
                "function bends within it",
                l->eps);
  return TD_ERROR_GRADIENT;
}

static int compare_input(td_context *context, const level *l, td_tensor *const *in, int k, const td_tensor *gradient) {
  for (int64_t e = 0; e < in[k]->size; e++) {
    double above, below;
    int code = evaluate_moved(context, l, in, k, e, l->eps, &above);
    if (!code) code = evaluate_moved(context, l, in, k, e, -l->eps, &below);
    if (code) return code;
    double difference = (above - below) / (2 * l->eps), given = td_tensor_get_float(gradient, e);
    double scale = fmax(1, fmax(fabs(difference), fabs(given)));
    if (!(fabs(difference - given) <= l->tolerance * scale)) return differ(context, l, k, e, given, difference);
  }
  return TD_OK;
}

// ---- levels ----

static int make_cotangents(td_context *context, const level *l, td_tensor *const *in, td_tensor **cotangents,
                           int *count) {
  outputs y;
  *count = 0;
  int code = call(context, l, in, &y);
  if (code) return code;
  for (int i = 0; i < y.count && !code; i++) {
    if (!is_float(y.at[i])) continue;
    if (l->in_count + *count == TD_CHECK_MAX)
      code = td_error_set(context, TD_ERROR_VALUE, "gradcheck: %s: more than %d inputs and outputs", l->name,
                          TD_CHECK_MAX);
    td_tensor *c = code ? NULL : td_tensor_new(context, TD_FLOAT64, y.at[i]->rank, y.at[i]->shape);
    if (!c) {
      code = context->error.code;
      break;
    }
    for (int64_t e = 0; e < c->size; e++) ((double *)c->data)[e] = weight(*count, e);
    cotangents[(*count)++] = c;
  }
  drop(&y);
  return code;
}

static int check(td_context *context, level *l, td_tensor *const *in);

// all: the level's inputs and its cotangents.
static int check_with(td_context *context, level *l, td_tensor *const *all, int all_count) {
  outputs gradients = {.count = 0};
  int code = gradient_of(context, l, all, all_count, gradients.at, &gradients.count);
  for (int k = 0, g = 0; k < l->in_count && !code; k++)
    if (is_float(all[k])) code = compare_input(context, l, all, k, gradients.at[g++]);
  drop(&gradients);
  if (code || l->left == 1) return code;
  level next = *l;
  next.f = gradient_of;
  next.argument = l;
  next.in_count = all_count;
  next.order++;
  next.left--;
  return check(context, &next, all);
}

static int check(td_context *context, level *l, td_tensor *const *in) {
  td_tensor *all[TD_CHECK_MAX];
  int count = 0;
  memcpy(all, in, (size_t)l->in_count * sizeof *all);
  int code = make_cotangents(context, l, in, all + l->in_count, &count);
  if (!code && count) code = check_with(context, l, all, l->in_count + count);
  for (int i = 0; i < count; i++) td_tensor_unref(all[l->in_count + i]);
  return code;
}

// ---- which op is at fault ----

enum { CALLS_MAX = 4096 };

typedef struct made { // a call of an op that the function made
  const td_op *op;
  td_arg args[TD_PARAM_MAX];
  td_tensor *in[TD_INPUT_MAX];
  int in_count;
  td_place place;
} made;

typedef struct spy { // stands in for the recorder while the function runs once more
  td_recorder recorder;
  made *calls;
  int count, capacity;
} spy;

static int note_call(td_context *context, const td_op *op, td_tensor *const *in, int in_count, const td_arg *args,
                     td_tensor **out, int out_count) {
  (void)out, (void)out_count;
  spy *s = (spy *)context->recorder;
  if (s->count == CALLS_MAX) return TD_OK;
  if (s->count == s->capacity) {
    int capacity = s->capacity ? 2 * s->capacity : 16;
    made *grown = td_memory_resize(s->calls, (size_t)capacity * sizeof *grown);
    if (!grown) return TD_OK; // the answer is less exact then
    s->calls = grown;
    s->capacity = capacity;
  }
  made *m = &s->calls[s->count++];
  m->op = op;
  m->in_count = in_count;
  m->place = context->place;
  if (args) memcpy(m->args, args, (size_t)td_op_arg_count(op) * sizeof *args);
  for (int i = 0; i < in_count; i++) m->in[i] = td_tensor_ref(in[i]);
  return TD_OK;
}

static int apply_made(td_context *context, void *argument, td_tensor *const *in, int in_count, td_tensor **out,
                      int *out_count) {
  const made *m = argument;
  int code = td_op_apply(context, m->op, in, in_count, m->args, out);
  if (!code) *out_count = td_op_outputs(m->op, out);
  return code;
}

static bool is_given(const made *m) { return !td_op_find(m->op->name); } // its derivative is the caller's

static void blame_given(td_context *context, const td_error *found, const made *m) {
  char line[80];
  td_place_describe(context, m->place, line, sizeof line);
  const char *name = td_custom_name(m->op, m->in);
  td_error_set(context, found->code, "%.300s; all other ops agree, so it is the gradient of %.60s at %s",
               found->message, name ? name : m->op->name, line);
  td_error_hint(context, "what %.60s returns as its gradient is not the derivative of its value",
                name ? name : m->op->name);
}

// Checks one call by itself. True: it is at fault, and the error says so.
static bool is_wrong(td_context *context, const level *l, const made *m) {
  char line[80], name[160];
  td_place_describe(context, m->place, line, sizeof line);
  snprintf(name, sizeof name, "%s at %s", m->op->name, line);
  for (int i = 0; i < m->in_count; i++)
    if (is_float(m->in[i]) && m->in[i]->dtype != TD_FLOAT64) return false;
  return m->op->vjp && td_gradient_check(context, name, apply_made, (void *)m, m->in, m->in_count, l->eps, l->tolerance,
                                         l->left, NULL) == TD_ERROR_GRADIENT;
}

// A function of many ops disagrees: finds the op, if it is one op's rule. Else the error stays as it is.
static void blame(td_context *context, const level *l, td_tensor *const *in) {
  static _Thread_local bool blaming;
  const td_recorder *recorder = context->recorder;
  td_error error = context->error;
  outputs y;
  spy s = {.recorder = {.record = note_call}};
  if (blaming) return;
  blaming = true;
  context->recorder = &s.recorder;
  if (call(context, l, in, &y) == TD_OK) drop(&y);
  context->recorder = recorder;
  const made *given = NULL;
  bool found = false;
  for (int n = 0; n < s.count && !found; n++) {
    if (is_given(&s.calls[n])) given = &s.calls[n];
    else found = is_wrong(context, l, &s.calls[n]);
  }
  if (!found) context->error = error;
  if (!found && given) blame_given(context, &error, given);
  for (int n = 0; n < s.count; n++)
    for (int i = 0; i < s.calls[n].in_count; i++) td_tensor_unref(s.calls[n].in[i]);
  td_memory_free(s.calls);
  blaming = false;
}

int td_gradient_check(td_context *context, const char *name, td_check_function *f, void *argument, td_tensor *const *in,
                      int in_count, double eps, double tolerance, int order, td_text *report) {
  td_tensor *own[TD_CHECK_MAX] = {0};
  int code = TD_OK;
  if (in_count > TD_CHECK_MAX)
    return td_error_set(context, TD_ERROR_VALUE, "gradcheck: %s: more than %d inputs", name, TD_CHECK_MAX);
  for (int i = 0; i < in_count && !code; i++) {
    if (is_float(in[i]) && in[i]->dtype != TD_FLOAT64)
      code = td_error_set(context, TD_ERROR_DTYPE, "gradcheck: %s: input %d is %s; differences need float64", name, i,
                          td_dtype_name(in[i]->dtype));
    else if (in[i] && !(own[i] = td_tensor_alias(context, in[i])))
      code = context->error.code; // watched, so not the caller's
  }
  uint64_t counter = context->counter;
  level first = {name, f, argument, in_count, 1, order, eps, tolerance, counter};
  if (!code && order > 0) code = check(context, &first, own);
  if (code == TD_ERROR_GRADIENT) {
    blame(context, &first, own);
    if (report) td_text_add(report, context->error.message);
  }
  context->counter = counter;
  for (int i = 0; i < in_count; i++) td_tensor_unref(own[i]);
  return code;
}
