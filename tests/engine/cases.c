// Reading cases, running them on one thread and on three, and comparing what comes out.
#include "tests/engine/cases.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/tape/tape.h"

enum { NUMBERS = 4096 };
td_context *context, *wide;
char warning[400];
static const op_case *table;

static void hear(void *owner, const char *message) {
  (void)owner;
  snprintf(warning, sizeof warning, "%s", message);
}

// ---- reading ----

static void skip(const char **text) { *text += strspn(*text, " "); }

static int read_dtype(const char **text) {
  static const struct {
    const char *name;
    uint8_t dtype;
  } names[] = {{"f64", TD_FLOAT64}, {"f32", TD_FLOAT32}, {"f16", TD_FLOAT16}, {"bf16", TD_BFLOAT16},
               {"i64", TD_INT64},   {"i32", TD_INT32},   {"u8", TD_UINT8},    {"bool", TD_BOOL}};
  skip(text);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t length = strlen(names[i].name);
    if (strncmp(*text, names[i].name, length) != 0) continue;
    *text += length;
    return names[i].dtype;
  }
  return -1;
}

static void read_nested(const char **text, int depth, td_meta *meta, double *numbers, int64_t *count) {
  skip(text);
  if (**text != '[') {
    char *end;
    meta->rank = (uint8_t)depth;
    ck_assert_int_lt(*count, NUMBERS);
    numbers[(*count)++] = strtod(*text, &end);
    ck_assert_msg(end != *text, "a number is missing at \"%s\"", *text);
    *text = end;
    return;
  }
  int64_t size = 0;
  for (++*text, skip(text); **text != ']'; skip(text)) {
    read_nested(text, depth + 1, meta, numbers, count);
    size++;
    skip(text);
    if (**text == ',') ++*text;
  }
  ++*text;
  if (!size) meta->rank = (uint8_t)(depth + 1);
  meta->shape[depth] = size;
}

static void read_empty(const char **text, td_meta *meta) { // {0, 5}
  meta->rank = 0;
  for (++*text; **text != '}'; skip(text)) {
    char *end;
    meta->shape[meta->rank++] = strtoll(*text, &end, 10);
    *text = end;
    skip(text);
    if (**text == ',') ++*text;
  }
  ++*text;
}

static void store(td_tensor *t, int64_t i, double value) {
  switch (t->dtype) {
  case TD_BOOL:
  case TD_UINT8: ((uint8_t *)t->data)[i] = (uint8_t)value; break;
  case TD_INT32: ((int32_t *)t->data)[i] = (int32_t)value; break;
  case TD_INT64: ((int64_t *)t->data)[i] = (int64_t)value; break;
  case TD_FLOAT16: ((uint16_t *)t->data)[i] = td_half_from_float((float)value); break;
  case TD_BFLOAT16: ((uint16_t *)t->data)[i] = td_bfloat_from_float((float)value); break;
  case TD_FLOAT32: ((float *)t->data)[i] = (float)value; break;
  default: ((double *)t->data)[i] = value;
  }
}

static td_tensor *read_with_dtype(const char **text, int *dtype) {
  double numbers[NUMBERS];
  td_meta meta = {.rank = 0};
  int64_t count = 0;
  *dtype = read_dtype(text);
  skip(text);
  if (**text == '{') read_empty(text, &meta);
  else read_nested(text, 0, &meta, numbers, &count);
  td_tensor *t = td_tensor_zeros(context, *dtype < 0 ? TD_FLOAT64 : (uint8_t)*dtype, meta.rank, meta.shape);
  ck_assert_ptr_nonnull(t);
  for (int64_t i = 0; i < count; i++) store(t, i, numbers[i]);
  skip(text);
  if (**text == ';') ++*text;
  return t;
}

td_tensor *read_tensor(const char **text) {
  int dtype;
  return read_with_dtype(text, &dtype);
}

static td_tensor *read_input(const char **text) { // or "none"
  skip(text);
  if (strncmp(*text, "none", 4) != 0) return read_tensor(text);
  *text += 4;
  skip(text);
  if (**text == ';') ++*text;
  return NULL;
}

// ---- comparing ----

static void expect_next(const char *what, const td_tensor *t, const char **expected) {
  int dtype;
  td_tensor *want = read_with_dtype(expected, &dtype);
  td_text shape = {0};
  td_meta_print(&shape, t->dtype, t->rank, t->shape);
  ck_assert_msg(td_shape_equal(t->rank, t->shape, want->rank, want->shape), "%s: the result is %s", what, shape.data);
  ck_assert_msg(dtype < 0 || t->dtype == dtype, "%s: the result is %s", what, shape.data);
  td_text_clear(&shape);
  for (int64_t i = 0; i < t->size; i++) {
    double got = td_tensor_get_float(t, i), right = td_tensor_get_float(want, i);
    bool same = isnan(right)   ? isnan(got)
                : isinf(right) ? got == right
                               : fabs(got - right) <= 2e-7 * fmax(1, fabs(right));
    ck_assert_msg(same, "%s: element %lld is %.12g, not %.12g", what, (long long)i, got, right);
  }
  td_tensor_unref(want);
}

void expect_tensor(const char *what, const td_tensor *t, const char *expected) { expect_next(what, t, &expected); }

static void expect_error(const char *what, const char *expected, int code) {
  char name[40];
  size_t length = strcspn(expected + 1, ":");
  snprintf(name, sizeof name, "%.*s", (int)length, expected + 1);
  const char *part = expected + 1 + length + strspn(expected + 1 + length, ": ");
  ck_assert_msg(code && !strcmp(td_error_name(code), name) && strstr(context->error.message, part), "%s: %s: %s", what,
                code ? td_error_name(code) : "no error", code ? context->error.message : "");
}

// ---- running ----

static void check_gradient(const char *what, const td_op *op, const op_case *c, sample_call *call) {
  td_tape *tape = td_tape_new(context, false, false);
  td_source sources[TD_INPUT_MAX];
  td_tensor *out[TD_OUTPUT_MAX], *gradients[TD_INPUT_MAX];
  int count = 0;
  const char *expected = c->gradient;
  ck_assert_int_eq(td_tape_open(context, tape), TD_OK);
  for (int i = 0; i < call->in_count; i++) {
    if (!call->in[i] || !td_dtype_is_float(call->in[i]->dtype)) continue;
    ck_assert_int_eq(td_tape_watch(context, tape, call->in[i]), TD_OK);
    sources[count++] = (td_source){.tensor = call->in[i]};
  }
  ck_assert_int_eq(sample_run(context, op, call, out), TD_OK);
  td_tape_close(context, tape);
  if (td_tape_gradient(context, tape, out, 1, NULL, sources, count, true, gradients))
    ck_abort_msg("%s: %s", what, context->error.message);
  for (int i = 0; i < count; i++) {
    expect_next(what, gradients[i], &expected);
    td_tensor_unref(gradients[i]);
  }
  for (int i = 0; i < td_op_outputs(op, out); i++) td_tensor_unref(out[i]);
  td_tape_unref(context, tape);
}

static void check_threads(const char *what, const td_op *op, const sample_call *call, td_tensor *const *out) {
  td_tensor *again[TD_OUTPUT_MAX];
  wide->counter = 0;
  ck_assert_int_eq(sample_run(wide, op, call, again), TD_OK);
  for (int i = 0; i < td_op_outputs(op, out); i++) {
    td_tensor *a = td_tensor_contiguous(context, out[i]), *b = td_tensor_contiguous(wide, again[i]);
    ck_assert_msg(!memcmp(a->data, b->data, (size_t)(a->size * td_dtype_bytes(a->dtype))), "%s: threads change bits",
                  what);
    td_tensor_unref(a);
    td_tensor_unref(b);
    td_tensor_unref(again[i]);
  }
}

void run_case(const op_case *c) {
  const td_op *op = td_op_find(c->op);
  td_sample sample = {"", c->args, 0, 1, NULL};
  sample_call call;
  td_tensor *out[TD_OUTPUT_MAX];
  char what[300], problem[200] = "";
  snprintf(what, sizeof what, "%s(%s | %s)", c->op, c->inputs, c->args ? c->args : "");
  ck_assert_msg(op, "%s: no such op", what);
  ck_assert_msg(sample_make(context, op, &sample, SAMPLE_PLAIN, -1, &call, problem), "%s: %s", what, problem);
  if (op->missing && op->missing(call.args)) return; // what it needs isn't on this machine
  for (const char *text = c->inputs; *text;) call.in[call.in_count++] = read_input(&text);
  context->counter = 0;
  int code = sample_run(context, op, &call, out);
  if (*c->expected == '!') expect_error(what, c->expected, code);
  else {
    const char *expected = c->expected;
    ck_assert_msg(!code, "%s: %s", what, context->error.message);
    for (int i = 0; *expected && i < td_op_outputs(op, out); i++) expect_next(what, out[i], &expected);
    check_threads(what, op, &call, out);
    for (int i = 0; i < td_op_outputs(op, out); i++) td_tensor_unref(out[i]);
    if (c->gradient) check_gradient(what, op, c, &call);
  }
  sample_drop(&call);
}

static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
  wide = td_context_new(3);
  ck_assert(context && wide);
  context->warn = hear;
  context->seed = wide->seed = 7;
  *warning = 0;
}

static void finish(void) {
  td_tapes_free(context);
  td_tapes_free(wide);
  td_context_free(context);
  td_context_free(wide);
  ck_assert_int_eq(td_memory_live(), live_before);
}

START_TEST(case_has_its_answer) { run_case(&table[_i]); }
END_TEST

int cases_run(const char *name, const op_case *cases, int count, const TTest *const *tests, int test_count) {
  Suite *suite = suite_create(name);
  TCase *rows = tcase_create("cases"), *others = tcase_create("tests");
  table = cases;
  tcase_add_checked_fixture(rows, start, finish);
  tcase_add_checked_fixture(others, start, finish);
  tcase_set_timeout(rows, 60);
  tcase_set_timeout(others, 120);
  tcase_add_loop_test(rows, case_has_its_answer, 0, count);
  for (int i = 0; i < test_count; i++) tcase_add_test(others, tests[i]);
  suite_add_tcase(suite, rows);
  suite_add_tcase(suite, others);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
