// Every op against the values that tests/reference/make.py found with PyTorch: results and gradients in float64 and
// float32, for each sample of each row. An op without values fails, unless it stands in the list below with the reason.
#include <check.h>
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/tape.h"
#include "tests/engine/samples.h"

static const struct {
  const char *op, *reason;
} unreferenced[] = {
    {"random_normal", "random"},
    {"random_uniform", "random"},
    {"random_randint", "random"},
    {"random_permutation", "random"},
    {"bernoulli", "random"},
    {"random_gumbel", "random"},
    {"random_exponential", "random"},
    {"random_truncated_normal", "random"},
    {"random_gamma", "random"},
    {"random_poisson", "random"},
    {"random_categorical", "random"},
    {"ctc_loss_gradient", "its result is that of ctc_loss's gradient"},
    {"recurrence_adjoint", "its results are those of the layers' gradients"},
    {"random_key", "a word of the generator"},
    {"random_split", "words of the generator"},
    {"random_fold_in", "a word of the generator"},
    {"dropout1d", "random"},
    {"dropout2d", "random"},
    {"dropout3d", "random"},
    {"alpha_dropout", "random"},
    {"dropout", "random; what doesn't depend on the draw is in test_cases"},
    {NULL, NULL},
};

static td_context *context;
static int64_t live_before;
static char *text; // the family's file

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
  ck_assert_ptr_nonnull(context);
}

static void finish(void) {
  td_memory_free(text);
  text = NULL;
  td_tapes_free(context);
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

// ---- lines of a file of values ----

typedef struct reader {
  const td_op *op;
  int sample;
  const char *at; // start of the next line, or a place in it
} reader;

static void stop(const reader *r, const char *problem) {
  ck_abort_msg("%s, sample %d: %s, where its values have \"%.60s\": let make.py compute them again", r->op->name,
               r->sample, problem, r->at);
}

static bool skip(reader *r, const char *word) {
  size_t length = strlen(word);
  if (strncmp(r->at, word, length) != 0 || isalnum((unsigned char)r->at[length])) return false;
  r->at += length;
  while (*r->at == ' ') r->at++;
  return true;
}

static void expect(reader *r, const char *word) {
  if (!skip(r, word)) stop(r, word);
}

static void next_line(reader *r) {
  r->at += strcspn(r->at, "\n");
  if (*r->at) r->at++;
}

static void end_line(reader *r) {
  if (*r->at != '\n') stop(r, "a line's end");
  r->at++;
}

static uint8_t read_dtype(reader *r) {
  char word[16];
  size_t length = strcspn(r->at, " \n");
  snprintf(word, sizeof word, "%.*s", (int)length, r->at);
  int dtype = td_dtype_find(word);
  if (dtype < 0) stop(r, "a dtype");
  r->at += length;
  while (*r->at == ' ') r->at++;
  return (uint8_t)dtype;
}

static void expect_shape(reader *r, const td_tensor *t) {
  char shape[200] = "-";
  int length = 0;
  for (int i = 0; i < t->rank; i++)
    length += snprintf(shape + length, sizeof shape - (size_t)length, i ? ",%lld" : "%lld", (long long)t->shape[i]);
  expect(r, shape);
}

static double read_number(reader *r) {
  char *end;
  double value = strtod(r->at, &end);
  if (end == r->at) stop(r, "a number");
  r->at = end;
  while (*r->at == ' ') r->at++;
  return value;
}

// ---- comparing ----

// How far numbers may be apart: relative to the expected one, or, in ops that add elements up, to the largest of scale.
typedef struct nearness {
  double relative, scale;
} nearness;

static double largest_of(const td_tensor *t) {
  double largest = 0;
  for (int64_t i = 0; t && i < t->size; i++) {
    double a = fabs(td_tensor_get_float(t, i));
    if (isfinite(a)) largest = fmax(largest, a);
  }
  return largest;
}

static bool near(double got, double expected, nearness n) {
  if (isnan(expected)) return isnan(got);
  return got == expected || fabs(got - expected) <= n.relative * fmax(fabs(expected), n.scale);
}

static void expect_elements(reader *r, const char *what, const td_tensor *t, nearness n) {
  expect_shape(r, t);
  for (int64_t e = 0; e < t->size; e++) {
    double expected = read_number(r), got = td_tensor_get_float(t, e);
    ck_assert_msg(near(got, expected, n), "%s, sample %d (%s): element %lld of %s is %.17g, not %.17g", r->op->name,
                  r->sample, r->op->samples[r->sample].args ? r->op->samples[r->sample].args : "", (long long)e, what,
                  got, expected);
  }
  end_line(r);
}

static nearness nearness_of(const td_op *op, double elementwise, double otherwise, double scale) {
  if (op->kind == TD_KIND_VIEW) return (nearness){0, 0};
  if (op->kind == TD_KIND_ELEMENTWISE) return (nearness){elementwise, 0};
  return (nearness){otherwise, scale};
}

static double accuracy(const td_op *op) { return op->tolerance > 0 ? op->tolerance : 1e-12; }

// ---- one sample ----

static sample_call made(reader *r, int dtype) {
  sample_call call;
  char problem[200] = "", title[400];
  const td_sample *sample = &r->op->samples[r->sample];
  if (!sample_make(context, r->op, sample, SAMPLE_PLAIN, dtype, &call, problem))
    ck_abort_msg("%s: %s", r->op->name, problem);
  sample_title(sample, title, sizeof title);
  expect(r, title);
  end_line(r);
  return call;
}

// The inputs' lines; exactly the numbers of the call, where that is in float64.
static double read_inputs(reader *r, const sample_call *call, bool exactly) {
  double scale = 0;
  for (int i = 0; i < call->in_count; i++) {
    expect(r, "in");
    const td_tensor *t = call->in[i];
    scale = fmax(scale, largest_of(t));
    if (!exactly) next_line(r);
    else if (!t) {
      expect(r, "none");
      end_line(r);
    } else {
      if (read_dtype(r) != t->dtype) stop(r, "an input's dtype");
      expect_elements(r, "its inputs", t, (nearness){0, 0});
    }
  }
  return scale;
}

static void run(const reader *r, const sample_call *call, td_tensor **out) {
  if (sample_run(context, r->op, call, out))
    ck_abort_msg("%s, sample %d: %s", r->op->name, r->sample, context->error.message);
}

static void compare_outputs(reader *r, td_tensor **out, bool single, double scale) {
  for (int i = 0; i < td_op_outputs(r->op, out); i++) {
    expect(r, "out");
    uint8_t dtype = read_dtype(r);
    bool narrow = single && td_dtype_is_float(dtype);
    ck_assert_msg(out[i]->dtype == dtype || (narrow && out[i]->dtype == TD_FLOAT32),
                  "%s, sample %d: output %d is %s, not %s", r->op->name, r->sample, i, td_dtype_name(out[i]->dtype),
                  td_dtype_name(dtype));
    nearness n = {0, 0};
    if (out[i]->dtype == TD_FLOAT32) n = nearness_of(r->op, 4 * FLT_EPSILON, 1e-5, fmax(scale, largest_of(out[i])));
    else if (td_dtype_is_float(dtype))
      n = nearness_of(r->op, accuracy(r->op), accuracy(r->op), fmax(scale, largest_of(out[i])));
    expect_elements(r, "the result", out[i], n);
  }
}

static void skip_lines(reader *r, const char *word) {
  while (skip(r, word)) next_line(r);
}

static void check_values(reader *r, int dtype) {
  td_tensor *out[TD_OUTPUT_MAX];
  sample_call call = made(r, dtype);
  double scale = read_inputs(r, &call, dtype < 0);
  skip_lines(r, "cotangent");
  run(r, &call, out);
  compare_outputs(r, out, dtype >= 0, scale);
  skip_lines(r, "gradient");
  for (int i = 0; i < td_op_outputs(r->op, out); i++) td_tensor_unref(out[i]);
  sample_drop(&call);
}

typedef struct pass { // a recorded call
  td_tape *tape;
  td_tensor *out[TD_OUTPUT_MAX], *targets[TD_OUTPUT_MAX], *cotangents[TD_OUTPUT_MAX];
  td_source sources[TD_INPUT_MAX];
  td_tensor *gradients[TD_INPUT_MAX];
  int target_count, source_count;
} pass;

static void record(reader *r, const sample_call *call, pass *p) {
  *p = (pass){.tape = td_tape_new(context, false, false)};
  ck_assert_int_eq(td_tape_open(context, p->tape), TD_OK);
  for (int i = 0; i < call->in_count; i++) {
    if (!call->in[i] || !td_dtype_is_float(call->in[i]->dtype)) continue;
    ck_assert_int_eq(td_tape_watch(context, p->tape, call->in[i]), TD_OK);
    p->sources[p->source_count++] = (td_source){.tensor = call->in[i]};
  }
  run(r, call, p->out);
  td_tape_close(context, p->tape);
}

static void take_cotangents(reader *r, const sample_call *call, bool exactly, pass *p) {
  for (int i = 0; i < td_op_outputs(r->op, p->out); i++) {
    td_tensor *cotangent = sample_cotangent(context, r->op, call, i, p->out[i]);
    char number[12];
    if (!cotangent) continue;
    snprintf(number, sizeof number, "%d", i);
    expect(r, "cotangent");
    expect(r, number);
    if (exactly) expect_elements(r, "its cotangent", cotangent, (nearness){0, 0});
    else next_line(r);
    p->targets[p->target_count] = p->out[i];
    p->cotangents[p->target_count++] = cotangent;
  }
}

static void compare_gradients(reader *r, const sample_call *call, const pass *p, bool single, double scale) {
  double relative = single ? 1e-5 : accuracy(r->op);
  for (int i = 0; i < p->target_count; i++) scale = fmax(scale, largest_of(p->cotangents[i]));
  for (int i = 0, n = 0; i < call->in_count && p->target_count; i++) {
    char number[12], what[40];
    if (!call->in[i] || !td_dtype_is_float(call->in[i]->dtype)) continue;
    snprintf(number, sizeof number, "%d", i);
    snprintf(what, sizeof what, "the gradient in input %d", i);
    expect(r, "gradient");
    expect(r, number);
    double largest = fmax(scale, largest_of(p->gradients[n]));
    nearness near_enough = single ? (nearness){relative, largest} : nearness_of(r->op, relative, relative, largest);
    expect_elements(r, what, p->gradients[n++], near_enough);
  }
}

static void check_gradients(reader *r, int dtype) {
  sample_call call = made(r, dtype);
  bool single = dtype >= 0;
  pass p;
  record(r, &call, &p);
  double scale = read_inputs(r, &call, !single);
  take_cotangents(r, &call, !single, &p);
  skip_lines(r, "out");
  if (p.target_count && td_tape_gradient(context, p.tape, p.targets, p.target_count, p.cotangents, p.sources,
                                         p.source_count, true, p.gradients))
    ck_abort_msg("%s, sample %d: %s", r->op->name, r->sample, context->error.message);
  compare_gradients(r, &call, &p, single, scale);
  for (int i = 0; i < TD_OUTPUT_MAX; i++) td_tensor_unref(p.cotangents[i]);
  for (int i = 0; i < p.source_count; i++) td_tensor_unref(p.gradients[i]);
  for (int i = 0; i < td_op_outputs(r->op, p.out); i++) td_tensor_unref(p.out[i]);
  td_tape_unref(context, p.tape);
  sample_drop(&call);
}

// ---- the table ----

static const char *family_of(const td_op *op) {
  static const struct {
    const char *name;
    const td_op *const *ops;
  } families[] = {
#define X(list) {#list, list},
      TD_FAMILIES(X)
#undef X
  };
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    for (const td_op *const *row = families[f].ops; *row; row++)
      if (*row == op) return families[f].name + strlen("td_family_");
  return "";
}

static const char *reason_of(const td_op *op) { // NULL: the op needs values
  for (int i = 0; unreferenced[i].op; i++)
    if (!strcmp(unreferenced[i].op, op->name)) return unreferenced[i].reason;
  return NULL;
}

static bool find(const td_op *op, reader *r) { // its first sample
  char path[2000], line[100];
  size_t size;
  const char *folder = getenv("top_srcdir");
  snprintf(path, sizeof path, "%s/tests/reference/%s.txt", folder ? folder : ".", family_of(op));
  if (!td_file_exists(path)) return false;
  ck_assert_int_eq(td_file_read(context, path, 1 << 20, &text, &size), TD_OK);
  snprintf(line, sizeof line, "\nop %s\n", op->name);
  const char *at = strstr(text, line);
  *r = (reader){.op = op, .at = at ? at + strlen(line) : NULL};
  return at;
}

static void check_op(const td_op *op, void (*check)(reader *)) {
  reader r;
  if (reason_of(op) || (op->missing && op->missing(NULL))) return; // what it needs isn't on this machine
  ck_assert_msg(find(op, &r), "%s has no values in tests/reference/%s.txt: give it a function in make.py", op->name,
                family_of(op));
  for (; op->samples[r.sample].shapes; r.sample++) check(&r);
  if (*r.at && strncmp(r.at, "op ", 3) != 0) stop(&r, "the op's end");
}

static void check_float64(reader *r) { check_values(r, -1); }
static void check_float32(reader *r) { check_values(r, TD_FLOAT32); }
static void check_gradients64(reader *r) { check_gradients(r, -1); }
static void check_gradients32(reader *r) { check_gradients(r, TD_FLOAT32); }

START_TEST(values_in_float64) { check_op(td_op_at(_i), check_float64); }
END_TEST

START_TEST(values_in_float32) { check_op(td_op_at(_i), check_float32); }
END_TEST

START_TEST(gradients_in_float64) { check_op(td_op_at(_i), check_gradients64); }
END_TEST

START_TEST(gradients_in_float32) { check_op(td_op_at(_i), check_gradients32); }
END_TEST

START_TEST(list_of_unreferenced_ops_is_needed) {
  for (int i = 0; unreferenced[i].op; i++) {
    reader r;
    const td_op *op = td_op_find(unreferenced[i].op);
    ck_assert_msg(op, "there is no op %s", unreferenced[i].op);
    ck_assert_msg(!find(op, &r), "%s has values", op->name);
    td_memory_free(text);
    text = NULL;
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("reference");
  TCase *each = tcase_create("each op");
  tcase_add_checked_fixture(each, start, finish);
  tcase_set_timeout(each, 60);
  int count = td_op_count();
  tcase_add_loop_test(each, values_in_float64, 0, count);
  tcase_add_loop_test(each, values_in_float32, 0, count);
  tcase_add_loop_test(each, gradients_in_float64, 0, count);
  tcase_add_loop_test(each, gradients_in_float32, 0, count);
  tcase_add_test(each, list_of_unreferenced_ops_is_needed);
  suite_add_tcase(suite, each);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
