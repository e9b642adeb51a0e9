// Walks the op table: every row must be complete, and every sample of every row must run plainly, strided, empty and
// 0-d, leave its inputs' bytes alone, and agree with central differences to second order. Names no op: a new row is
// tested by standing in its family's list.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/ops/batch.h"
#include "engine/tape/check.h"
#include "tests/engine/samples.h"

static td_context *context;
static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
  ck_assert_ptr_nonnull(context);
  context->seed = 7;
}

static void finish(void) {
  td_tapes_free(context);
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

static sample_call made(const td_op *op, int n, enum sample_form form, int dtype) {
  sample_call call;
  char problem[200] = "";
  if (!sample_make(context, op, &op->samples[n], form, dtype, &call, problem))
    ck_abort_msg("%s, sample %d: %s", op->name, n, problem);
  return call;
}

// The n-th, unless this machine lacks what the op needs.
static bool has_sample(const td_op *op, int n) { return op->samples[n].shapes && !(op->missing && op->missing(NULL)); }

static void run(const td_op *op, int n, const sample_call *call, td_tensor **out) {
  context->counter = 0;
  if (sample_run(context, op, call, out))
    ck_abort_msg("%s, sample %d (%s | %s): %s", op->name, n, op->samples[n].shapes,
                 op->samples[n].args ? op->samples[n].args : "", context->error.message);
}

static void drop(const td_op *op, td_tensor **out) {
  for (int i = 0; i < td_op_outputs(op, out); i++) td_tensor_unref(out[i]);
}

static bool is_float(const td_tensor *t) { return t && td_dtype_is_float(t->dtype); }

// Whether gradcheck can be asked: some floating input, and all of them float64; and differences tell the gradient.
static bool is_checkable(const td_op *op, const sample_call *call) {
  bool some = false;
  for (int i = 0; i < call->in_count; i++) {
    if (!is_float(call->in[i])) continue;
    if (call->in[i]->dtype != TD_FLOAT64) return false;
    some = true;
  }
  return some && op->vjp && !(op->flags & TD_IMPLICIT);
}

// ---- rows ----

START_TEST(row_is_complete) {
  const td_op *op = td_op_at(_i);
  ck_assert_ptr_nonnull(op->name);
  ck_assert_ptr_eq(td_op_find(op->name), op);
  ck_assert_msg(op->infer, "%s has no infer", op->name);
  ck_assert_msg(!op->kernel != !op->view, "%s needs either kernel or view", op->name);
  ck_assert_msg(!op->vjp != !op->no_gradient, "%s needs either vjp or no_gradient", op->name);
  ck_assert_msg(op->doc && strlen(op->doc) > 10, "%s has no doc", op->name);
  ck_assert_msg(op->flags & TD_HIDDEN || (op->example && strstr(op->example, "# ")), "%s has no example", op->name);
  ck_assert_msg(op->samples && op->samples[0].shapes, "%s has no samples", op->name);
  for (const char *const *alias = op->alias; alias && *alias; alias++)
    ck_assert_msg(td_op_find(*alias) == op, "%s: its alias %s names another op", op->name, *alias);
  for (int i = 0; i < TD_PARAM_MAX && op->params[i].kind; i++) {
    ck_assert_msg(op->params[i].name, "%s: parameter %d has no name", op->name, i);
    ck_assert_msg(op->params[i].kind != TD_PARAM_CHOICE || op->params[i].choices, "%s: %s has no choices", op->name,
                  op->params[i].name);
  }
}
END_TEST

START_TEST(row_has_a_sample_for_its_gradient) {
  const td_op *op = td_op_at(_i);
  bool some = !op->vjp || op->flags & TD_IMPLICIT;
  for (int n = 0; op->samples && op->samples[n].shapes; n++) {
    sample_call call = made(op, n, SAMPLE_PLAIN, -1);
    for (int i = 0; i < call.in_count; i++) some |= is_checkable(op, &call) && call.in[i] && call.in[i]->size > 0;
    sample_drop(&call);
  }
  ck_assert_msg(some, "%s: no sample has float64 inputs", op->name);
}
END_TEST

// ---- gradients ----

typedef struct bound {
  const td_op *op;
  const td_arg *args;
  const bool *symmetric; // by input: matrices are made so before the op sees them
} bound;

static int made_symmetric(td_scope *s, td_tensor **in) {
  if ((*in)->rank < 2) return TD_OK;
  td_tensor *sum = td_add(s, *in, td_swap_last(s, *in));
  *in = td_multiply(s, sum, td_scope_number(s, 0.5, sum));
  return *in ? TD_OK : s->context->error.code;
}

static int apply_bound(td_context *c, void *argument, td_tensor *const *in, int in_count, td_tensor **out,
                       int *out_count) {
  const bound *b = argument;
  td_tensor *seen[TD_INPUT_MAX];
  td_scope s;
  int code = TD_OK;
  td_scope_open(&s, c);
  for (int i = 0; i < in_count && !code; i++) {
    seen[i] = in[i];
    if (b->symmetric[i]) code = made_symmetric(&s, &seen[i]);
  }
  if (!code) code = td_op_apply(c, b->op, seen, in_count, b->args, out);
  td_scope_close(&s);
  if (!code) *out_count = td_op_outputs(b->op, out);
  return code;
}

static void check_sample(const td_op *op, int n, enum sample_form form, int order) {
  sample_call call = made(op, n, form, -1);
  bound b = {op, call.args, call.symmetric};
  if (is_checkable(op, &call) &&
      td_gradient_check(context, op->name, apply_bound, &b, call.in, call.in_count, 1e-5, 2e-6, order, NULL))
    ck_abort_msg("sample %d (%s | %s): %s", n, op->samples[n].shapes, op->samples[n].args ? op->samples[n].args : "",
                 context->error.message);
  sample_drop(&call);
}

START_TEST(gradient_agrees_with_differences_to_second_order) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; has_sample(op, n); n++) check_sample(op, n, SAMPLE_PLAIN, 2);
}
END_TEST

START_TEST(gradient_of_strided_inputs_agrees_with_differences) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; has_sample(op, n); n++) check_sample(op, n, SAMPLE_STRIDED, 1);
}
END_TEST

// ---- forward derivatives ----

typedef struct linear { // an op on a tape, with vectors for its floating inputs and outputs
  td_tape *tape;
  td_tensor *out[TD_OUTPUT_MAX], *targets[TD_OUTPUT_MAX], *cotangents[TD_OUTPUT_MAX], *tangents[TD_INPUT_MAX];
  td_source sources[TD_INPUT_MAX];
  int target_count, source_count;
} linear;

static td_tensor *vector_like(const td_tensor *t, double phase) {
  td_tensor *v = td_tensor_zeros(context, t->dtype, t->rank, t->shape);
  for (int64_t i = 0; i < v->size; i++) ((double *)v->data)[i] = cos(phase + 1.7 * (double)i);
  return v;
}

static void linear_open(linear *l, const td_op *op, const sample_call *call, int only) { // only: -1: all inputs vary
  memset(l, 0, sizeof *l);
  l->tape = td_tape_new(context, true, false);
  ck_assert_int_eq(td_tape_open(context, l->tape), TD_OK);
  for (int i = 0; i < call->in_count; i++) {
    if (!is_float(call->in[i]) || (only >= 0 && i != only)) continue;
    ck_assert_int_eq(td_tape_watch(context, l->tape, call->in[i]), TD_OK);
    l->tangents[l->source_count] = vector_like(call->in[i], i);
    l->sources[l->source_count++].tensor = call->in[i];
  }
  context->counter = 0;
  ck_assert_int_eq(sample_run(context, op, call, l->out), TD_OK);
  td_tape_close(context, l->tape);
  for (int k = 0; k < td_op_outputs(op, l->out); k++) {
    if (!is_float(l->out[k])) continue;
    l->cotangents[l->target_count] = vector_like(l->out[k], 2.5 + k);
    l->targets[l->target_count++] = l->out[k];
  }
}

static void linear_close(linear *l, const td_op *op) {
  drop(op, l->out);
  for (int i = 0; i < l->source_count; i++) td_tensor_unref(l->tangents[i]);
  for (int k = 0; k < l->target_count; k++) td_tensor_unref(l->cotangents[k]);
  td_tape_unref(context, l->tape);
}

static double inner(const td_tensor *a, const td_tensor *b, double *scale) { // scale: adds the size of the terms
  double sum = 0;
  for (int64_t i = 0; a && b && i < a->size; i++) {
    double term = td_tensor_get_float(a, i) * td_tensor_get_float(b, i);
    sum += term;
    *scale += fabs(term);
  }
  return sum;
}

static void dirty_stack(void) { // what a rule reads of a constant input, but was not given, is nonsense
  volatile char bytes[1 << 15];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = 0x55;
}

static void check_forward(const td_op *op, int n, const sample_call *call, int only) {
  linear l;
  linear_open(&l, op, call, only);
  dirty_stack();
  td_tensor *pushed[TD_OUTPUT_MAX], *pulled[TD_INPUT_MAX];
  double forward = 0, reverse = 0, scale = 1;
  if (l.target_count && l.source_count) {
    if (td_tape_jvp(context, l.tape, l.sources, l.tangents, l.source_count, l.targets, l.target_count, pushed) ||
        td_tape_gradient(context, l.tape, l.targets, l.target_count, l.cotangents, l.sources, l.source_count, false,
                         pulled))
      ck_abort_msg("%s, sample %d: %s", op->name, n, context->error.message);
    for (int k = 0; k < l.target_count; k++) {
      forward += inner(pushed[k], l.cotangents[k], &scale);
      td_tensor_unref(pushed[k]);
    }
    for (int i = 0; i < l.source_count; i++) {
      reverse += inner(pulled[i], l.tangents[i], &scale);
      td_tensor_unref(pulled[i]);
    }
  }
  ck_assert_msg(fabs(forward - reverse) <= scale * 1e-12, "%s, sample %d (%s | %s): jvp %.17g, vjp %.17g", op->name, n,
                op->samples[n].shapes, op->samples[n].args ? op->samples[n].args : "", forward, reverse);
  linear_close(&l, op);
}

START_TEST(forward_agrees_with_reverse) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; has_sample(op, n); n++) {
    sample_call call = made(op, n, SAMPLE_PLAIN, -1);
    for (int only = -1; only < call.in_count && is_checkable(op, &call); only++) check_forward(op, n, &call, only);
    sample_drop(&call);
  }
}
END_TEST

// ---- errors ----

// A call with one argument spoilt must fail, and say so: "op: ...", with the operands.
static void expect_refusal(const td_op *op, int n, const sample_call *call, const td_param *param, const char *what) {
  td_tensor *out[TD_OUTPUT_MAX];
  int code = sample_run(context, op, call, out);
  const td_error *e = &context->error;
  if (!code) drop(op, out);
  ck_assert_msg(code, "%s, sample %d: %s with %s is taken", op->name, n, param->name, what);
  ck_assert_msg(code != TD_ERROR_INTERNAL, "%s, sample %d: %s with %s: %s", op->name, n, param->name, what, e->message);
  bool named = code != TD_ERROR_MEMORY; // a tensor that can't be had is refused by its size
  ck_assert_msg(!named || (!strncmp(e->message, op->name, strlen(op->name)) && e->message[strlen(op->name)] == ':'),
                "%s, sample %d: %s with %s: the message doesn't name the op: %s", op->name, n, param->name, what,
                e->message);
  ck_assert_msg(!named || e->operand_count || !call->in_count, "%s, sample %d: %s with %s: no operands: %s", op->name,
                n, param->name, what, e->message);
  td_error_clear(context);
}

static void spoil(const td_op *op, int n, int k) {
  const td_param *param = &op->params[td_op_tensor_params(op) + k];
  sample_call call = made(op, n, SAMPLE_PLAIN, -1);
  td_arg *arg = &call.args[k], kept = *arg;
  if (param->kind == TD_PARAM_AXIS && arg->given) {
    arg->i = 99;
    expect_refusal(op, n, &call, param, "99");
    arg->i = -99;
    expect_refusal(op, n, &call, param, "-99");
  }
  if (param->kind == TD_PARAM_AXES && arg->given && arg->count) {
    arg->ints[0] = 99;
    expect_refusal(op, n, &call, param, "99");
    *arg = kept;
    if (arg->count > 1 && strcmp(op->name, "roll")) { // its shifts add up, as NumPy's do
      arg->ints[1] = arg->ints[0];
      expect_refusal(op, n, &call, param, "a repeated axis");
    }
  }
  if (param->kind == TD_PARAM_SHAPE && arg->given && arg->count) {
    arg->ints[0] = -7;
    expect_refusal(op, n, &call, param, "a negative size");
    arg->ints[0] = INT64_MAX;
    expect_refusal(op, n, &call, param, "an endless size");
  }
  *arg = kept;
  sample_drop(&call);
}

START_TEST(wrong_axes_and_sizes_are_refused) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; !(op->flags & TD_HIDDEN) && op->samples[n].shapes; n++)
    for (int k = 0; k < td_op_arg_count(op); k++) spoil(op, n, k);
}
END_TEST

// ---- batches ----

// Allocations that tensors like op's outputs cost.
static int64_t blocks_of(const td_op *op, td_tensor *const *out) {
  int64_t before = td_memory_count();
  for (int i = 0; i < td_op_outputs(op, out); i++)
    td_tensor_unref(td_tensor_new(context, out[i]->dtype, out[i]->rank, out[i]->shape));
  return td_memory_count() - before;
}

static void count_blocks(const td_op *op, int n, enum sample_form form, int dtype) {
  sample_call call = made(op, n, form, dtype);
  td_tensor *out[TD_OUTPUT_MAX];
  run(op, n, &call, out);
  drop(op, out);
  int64_t before = td_memory_count();
  run(op, n, &call, out);
  int64_t blocks = td_memory_count() - before, allowed = blocks_of(op, out) + !!op->workspace;
  ck_assert_msg(blocks <= allowed, "%s, sample %d (%s | %s), form %d: %lld allocations, not at most %lld", op->name, n,
                op->samples[n].shapes, op->samples[n].args ? op->samples[n].args : "", form, (long long)blocks,
                (long long)allowed);
  drop(op, out);
  sample_drop(&call);
}

START_TEST(outputs_and_workspace_are_all_that_is_allocated) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; has_sample(op, n); n++) {
    count_blocks(op, n, SAMPLE_PLAIN, -1);
    count_blocks(op, n, SAMPLE_PLAIN, TD_FLOAT32);
    count_blocks(op, n, SAMPLE_STRIDED, -1);
  }
}
END_TEST

static bool near(double a, double b, double tolerance) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  if (a == b) return true;
  return fabs(a - b) <= tolerance * fmax(1, fmax(fabs(a), fabs(b)));
}

enum { EXAMPLES = 3 };

static td_tensor *varied(const td_tensor *t, int n) { // example n of an input
  td_tensor *v = td_tensor_new(context, t->dtype, t->rank, t->shape);
  for (int64_t i = 0; i < t->size; i++) {
    double x = td_tensor_get_float(t, i) * (1 - 0.05 * n);
    td_tensor *one = is_float(t) ? td_tensor_from_float(context, x, t->dtype)
                                 : td_tensor_from_int(context, td_tensor_get_int(t, i), t->dtype);
    memcpy(v->data + i * td_dtype_bytes(t->dtype), one->data, (size_t)td_dtype_bytes(t->dtype));
    td_tensor_unref(one);
  }
  return v;
}

// Input i for all examples, [EXAMPLES, its shape], as a batched tensor.
static td_tensor *batched_input(td_tensor *const examples[EXAMPLES]) {
  int64_t shape[TD_RANK_MAX + 1] = {EXAMPLES}, bytes = examples[0]->size * td_dtype_bytes(examples[0]->dtype);
  memcpy(shape + 1, examples[0]->shape, sizeof examples[0]->shape);
  td_tensor *all = td_tensor_new(context, examples[0]->dtype, examples[0]->rank + 1, shape);
  for (int n = 0; n < EXAMPLES; n++) memcpy(all->data + n * bytes, examples[n]->data, (size_t)bytes);
  td_tensor *batched = td_batch_wrap(context, all);
  td_tensor_unref(all);
  return batched;
}

static void compare_example(const td_op *op, int sample, int n, td_tensor *whole, const td_tensor *one) {
  ck_assert_msg(td_shape_equal(whole->rank - 1, whole->shape + 1, one->rank, one->shape),
                "%s, sample %d: a batch gives another shape", op->name, sample);
  for (int64_t e = 0; e < one->size; e++) {
    double a = td_tensor_get_float(whole, n * one->size + e), b = td_tensor_get_float(one, e);
    ck_assert_msg(near(a, b, 1e-12), "%s, sample %d (%s | %s): example %d of a batch gives %.17g, not %.17g", op->name,
                  sample, op->samples[sample].shapes, op->samples[sample].args ? op->samples[sample].args : "", n, a,
                  b);
  }
}

// only: the input that is batched; -1: all of them.
static void check_batch(const td_op *op, int sample, int only) {
  sample_call call = made(op, sample, SAMPLE_PLAIN, -1);
  td_tensor *examples[TD_INPUT_MAX][EXAMPLES] = {{NULL}}, *in[TD_INPUT_MAX] = {NULL}, *out[TD_OUTPUT_MAX];
  ck_assert_int_eq(td_batch_enter(context, EXAMPLES), TD_OK);
  for (int i = 0; i < call.in_count; i++) {
    bool batched = call.in[i] && (only < 0 || only == i);
    for (int n = 0; call.in[i] && n < EXAMPLES; n++) examples[i][n] = varied(call.in[i], batched ? n : 0);
    in[i] = batched ? batched_input(examples[i]) : td_tensor_ref(examples[i][0]);
  }
  int code = td_op_apply(context, op, in, call.in_count, call.args, out);
  bool unlike = code && strstr(context->error.message, "unlike shapes");
  ck_assert_msg(!code || unlike, "%s, sample %d, batched: %s", op->name, sample, context->error.message);
  int count = code ? 0 : td_op_outputs(op, out);
  for (int k = 0; k < count; k++) {
    td_tensor *whole = td_batch_unwrap(context, out[k]);
    td_tensor_unref(out[k]);
    out[k] = whole;
  }
  for (int n = 0; n < EXAMPLES && count; n++) {
    td_tensor *one[TD_INPUT_MAX], *alone[TD_OUTPUT_MAX];
    for (int i = 0; i < call.in_count; i++) one[i] = examples[i][n];
    ck_assert_int_eq(td_op_apply(context, op, one, call.in_count, call.args, alone), TD_OK);
    for (int k = 0; k < count; k++) compare_example(op, sample, n, out[k], alone[k]);
    drop(op, alone);
  }
  if (count) drop(op, out);
  for (int i = 0; i < call.in_count; i++) {
    td_tensor_unref(in[i]);
    for (int n = 0; n < EXAMPLES; n++) td_tensor_unref(examples[i][n]);
  }
  td_batch_leave(context);
  sample_drop(&call);
}

START_TEST(batches_agree_with_each_example) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; op->kind != TD_KIND_RANDOM && has_sample(op, n); n++) {
    sample_call call = made(op, n, SAMPLE_PLAIN, -1);
    int count = call.in_count;
    for (int i = 0; i < call.in_count; i++)
      if (call.in[i] && call.in[i]->rank == TD_RANK_MAX) count = 0; // no axis left for the examples
    sample_drop(&call);
    if (count) check_batch(op, n, -1);
    for (int i = 0; i < count && count > 1; i++) {
      sample_call again = made(op, n, SAMPLE_PLAIN, -1);
      bool there = again.in[i] != NULL;
      sample_drop(&again);
      if (there) check_batch(op, n, i);
    }
  }
}
END_TEST

// Runs the op and its gradient in all floating inputs; a diagnosed error is an answer.
static void run_with_gradient(const td_op *op, const sample_call *call) {
  td_tape *tape = td_tape_new(context, false, false);
  td_tensor *out[TD_OUTPUT_MAX], *targets[TD_OUTPUT_MAX], *gradients[TD_INPUT_MAX];
  td_source sources[TD_INPUT_MAX];
  int target_count = 0, source_count = 0;
  ck_assert_int_eq(td_tape_open(context, tape), TD_OK);
  for (int i = 0; i < call->in_count; i++) {
    if (!is_float(call->in[i])) continue;
    ck_assert_int_eq(td_tape_watch(context, tape, call->in[i]), TD_OK);
    sources[source_count++] = (td_source){.tensor = call->in[i]};
  }
  context->counter = 0;
  int code = sample_run(context, op, call, out);
  td_tape_close(context, tape);
  ck_assert_msg(code != TD_ERROR_INTERNAL, "%s: %s", op->name, context->error.message);
  for (int i = 0; !code && i < td_op_outputs(op, out); i++)
    if (is_float(out[i])) targets[target_count++] = out[i];
  if (!code && op->vjp && target_count && source_count) {
    if (td_tape_gradient(context, tape, targets, target_count, NULL, sources, source_count, true, gradients))
      ck_abort_msg("%s: %s", op->name, context->error.message);
    for (int i = 0; i < source_count; i++) {
      const td_tensor *x = sources[i].tensor, *g = gradients[i];
      ck_assert_msg(g->dtype == x->dtype && td_shape_equal(g->rank, g->shape, x->rank, x->shape),
                    "%s: a gradient has another shape or dtype than its input", op->name);
      td_tensor_unref(gradients[i]);
    }
  }
  if (!code) drop(op, out);
  td_tape_unref(context, tape);
}

static void run_form(const td_op *op, enum sample_form form, int dtype) {
  for (int n = 0; has_sample(op, n); n++) {
    sample_call call = made(op, n, form, dtype);
    run_with_gradient(op, &call);
    sample_drop(&call);
  }
}

START_TEST(empty_inputs_run_or_are_refused) { run_form(td_op_at(_i), SAMPLE_EMPTY, -1); }
END_TEST

START_TEST(scalar_inputs_run_or_are_refused) { run_form(td_op_at(_i), SAMPLE_SCALAR, -1); }
END_TEST

START_TEST(every_floating_dtype_runs) {
  for (int dtype = TD_FLOAT16; dtype <= TD_FLOAT64; dtype++) run_form(td_op_at(_i), SAMPLE_PLAIN, dtype);
}
END_TEST

// ---- values ----

static void copy_storage(const td_tensor *t, char *bytes) {
  memcpy(bytes, t->storage->data, (size_t)t->storage->bytes);
}

START_TEST(inputs_are_left_alone) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; has_sample(op, n); n++) {
    sample_call call = made(op, n, SAMPLE_STRIDED, -1);
    char *before[TD_INPUT_MAX] = {0};
    for (int i = 0; i < call.in_count; i++) {
      if (!call.in[i]) continue;
      before[i] = td_memory_new((size_t)call.in[i]->storage->bytes);
      copy_storage(call.in[i], before[i]);
    }
    run_with_gradient(op, &call);
    for (int i = 0; i < call.in_count; i++) {
      if (!call.in[i]) continue;
      ck_assert_msg(!memcmp(before[i], call.in[i]->storage->data, (size_t)call.in[i]->storage->bytes),
                    "%s, sample %d, changed input %d", op->name, n, i);
      td_memory_free(before[i]);
    }
    sample_drop(&call);
  }
}
END_TEST

static void compare(const td_op *op, int n, td_tensor **a, td_tensor **b, double tolerance, const char *what) {
  for (int i = 0; i < td_op_outputs(op, a); i++) {
    ck_assert_msg(td_shape_equal(a[i]->rank, a[i]->shape, b[i]->rank, b[i]->shape),
                  "%s, sample %d: %s has another shape", op->name, n, what);
    for (int64_t e = 0; e < a[i]->size; e++) {
      double x = td_tensor_get_float(a[i], e), y = td_tensor_get_float(b[i], e);
      ck_assert_msg(near(x, y, tolerance), "%s, sample %d: %s gives %.9g, not %.9g, in element %lld of output %d",
                    op->name, n, what, y, x, (long long)e, i);
    }
  }
}

START_TEST(strided_inputs_give_the_same) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; has_sample(op, n); n++) {
    sample_call plain = made(op, n, SAMPLE_PLAIN, -1), strided = made(op, n, SAMPLE_STRIDED, -1);
    td_tensor *a[TD_OUTPUT_MAX], *b[TD_OUTPUT_MAX];
    run(op, n, &plain, a);
    run(op, n, &strided, b);
    compare(op, n, a, b, op->tolerance > 0 ? op->tolerance : 1e-12, "strided input");
    drop(op, a);
    drop(op, b);
    sample_drop(&plain);
    sample_drop(&strided);
  }
}
END_TEST

START_TEST(float32_is_near_float64) {
  const td_op *op = td_op_at(_i);
  for (int n = 0; has_sample(op, n); n++) {
    sample_call exact = made(op, n, SAMPLE_PLAIN, -1), single = made(op, n, SAMPLE_PLAIN, TD_FLOAT32);
    td_tensor *a[TD_OUTPUT_MAX], *b[TD_OUTPUT_MAX];
    bool comparable = true;
    for (int i = 0; i < exact.in_count; i++) comparable &= !is_float(exact.in[i]) || exact.in[i]->dtype == TD_FLOAT64;
    if (comparable) {
      run(op, n, &exact, a);
      run(op, n, &single, b);
      if (is_float(a[0])) compare(op, n, a, b, 1e-4, "float32");
      drop(op, a);
      drop(op, b);
    }
    sample_drop(&exact);
    sample_drop(&single);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gradients");
  TCase *rows = tcase_create("rows");
  tcase_add_checked_fixture(rows, start, finish);
  tcase_set_timeout(rows, 60);
  int count = td_op_count();
  tcase_add_loop_test(rows, row_is_complete, 0, count);
  tcase_add_loop_test(rows, row_has_a_sample_for_its_gradient, 0, count);
  tcase_add_loop_test(rows, gradient_agrees_with_differences_to_second_order, 0, count);
  tcase_add_loop_test(rows, forward_agrees_with_reverse, 0, count);
  tcase_add_loop_test(rows, batches_agree_with_each_example, 0, count);
  tcase_add_loop_test(rows, wrong_axes_and_sizes_are_refused, 0, count);
  tcase_add_loop_test(rows, gradient_of_strided_inputs_agrees_with_differences, 0, count);
  tcase_add_loop_test(rows, empty_inputs_run_or_are_refused, 0, count);
  tcase_add_loop_test(rows, scalar_inputs_run_or_are_refused, 0, count);
  tcase_add_loop_test(rows, every_floating_dtype_runs, 0, count);
  tcase_add_loop_test(rows, inputs_are_left_alone, 0, count);
  tcase_add_loop_test(rows, outputs_and_workspace_are_all_that_is_allocated, 0, count);
  tcase_add_loop_test(rows, strided_inputs_give_the_same, 0, count);
  tcase_add_loop_test(rows, float32_is_near_float64, 0, count);
  suite_add_tcase(suite, rows);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
