// Walks the op table at sizes where work is cut into pieces: values and gradients have the same bits on one thread and
// on many, and a call's bytes are those of its results and workspace. Samples are enlarged along one of their sizes at
// a time. And long sums in float32 keep their digits.
#include <check.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/tape.h"
#include "tests/engine/samples.h"

enum {
  LENGTH = 1 << 14,   // of the enlarged size; a sample has a few elements for each of it
  SIDE = 64,          // where two axes of an input have it: matrices take its cube
  RESULTS = 1 << 19,  // elements of all outputs, at most
  SAMPLES = 2,        // of a row
  NUMBERS = 16,
  TEXT = 600,
  MANY = 1 << 17,     // of the enlarged size, where bytes are counted
  SMALL = 1 << 16,    // bytes that don't grow with the sizes
  TIMES = 16,         // what a workspace or a gradient's temporaries may be of what the call holds
};

static td_context *alone, *many;
static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  alone = td_context_new(1);
  many = td_context_new(16);
  ck_assert(alone && many);
}

static void finish(void) {
  td_context *contexts[] = {alone, many};
  for (int i = 0; i < 2; i++) {
    td_tapes_free(contexts[i]);
    td_context_free(contexts[i]);
  }
  ck_assert_int_eq(td_memory_live(), live_before);
}

// ---- enlarging ----

static bool starts_number(const char *text, const char *at) {
  return isdigit((unsigned char)*at) && (at == text || !(isalnum((unsigned char)at[-1]) || strchr("_.+-", at[-1])));
}

// text with each whole number that is from written as to.
static void replace(const char *text, int64_t from, int64_t to, char out[TEXT]) {
  size_t length = 0;
  for (const char *at = text; *at && length + 24 < TEXT;) {
    char *end = NULL;
    bool number = starts_number(text, at);
    int64_t value = number ? strtoll(at, &end, 10) : 0;
    if (number && value == from && *end != '.' && *end != 'e') {
      length += (size_t)snprintf(out + length, TEXT - length, "%lld", (long long)to);
      at = end;
    } else out[length++] = *at++;
  }
  out[length] = 0;
}

// The different sizes above 1 that text names, and how often one part of it (up to ";") has each at most.
static int sizes_of(const char *text, int64_t sizes[NUMBERS], int most[NUMBERS]) {
  int count = 0, now[NUMBERS] = {0};
  for (const char *at = text; *at; at++) {
    if (*at == ';') memset(now, 0, sizeof now);
    if (!starts_number(text, at)) continue;
    int64_t value = strtoll(at, NULL, 10);
    int k = 0;
    while (k < count && sizes[k] != value) k++;
    if (value < 2 || k == NUMBERS) continue;
    if (k == count) sizes[count++] = value, most[k] = 0;
    if (++now[k] > most[k]) most[k] = now[k];
  }
  return count;
}

typedef struct enlarged {
  td_sample sample;
  char shapes[TEXT], args[TEXT];
} enlarged;

// Along the choice-th size of the sample's shapes, or of its arguments where no shape has one; also in arguments that
// name the same number. False: there is no such size.
static bool enlarge(const td_sample *sample, int choice, int64_t length, bool in_args, enlarged *e) {
  int64_t sizes[NUMBERS];
  int most[NUMBERS], count = sizes_of(sample->shapes, sizes, most);
  const char *args = sample->args ? sample->args : "";
  if (!count) count = sizes_of(args, sizes, most);
  if (choice >= count) return false;
  int64_t from = sizes[choice], to = (most[choice] > 1 ? SIDE : length) / from * from;
  *e = (enlarged){.sample = *sample};
  replace(sample->shapes, from, to, e->shapes);
  replace(args, from, in_args ? to : from, e->args);
  e->sample.shapes = e->shapes;
  e->sample.args = e->args;
  return true;
}

static bool fits(td_context *context, const td_op *op, const sample_call *call) {
  td_infer infer = {.context = context, .op = op, .in_count = call->in_count, .tensors = call->in, .args = call->args};
  infer.out_count = op->outputs == TD_MANY ? 0 : op->outputs ? op->outputs : 1;
  int64_t size = 0;
  for (int i = 0; i < call->in_count; i++)
    infer.in[i] = call->in[i] ? td_tensor_meta(call->in[i]) : (td_meta){.rank = UINT8_MAX};
  if (td_op_infer(&infer)) {
    td_error_clear(context);
    return false;
  }
  for (int k = 0; k < infer.out_count; k++) size += td_shape_size(infer.out[k].rank, infer.out[k].shape);
  return size <= RESULTS;
}

// ---- bits ----

static uint64_t bits_of(const td_tensor *t, uint64_t hash) { // FNV-1a, eight bytes at a time where they are
  if (!t) return hash;
  td_tensor *flat = td_tensor_contiguous(alone, (td_tensor *)t);
  int64_t bytes = flat->size * td_dtype_bytes(flat->dtype);
  for (int64_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    memcpy(&word, flat->data + i, (size_t)(bytes - i < 8 ? bytes - i : 8));
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  td_tensor_unref(flat);
  return hash;
}

// Of the op's outputs, and of the gradients of their sum in the floating inputs.
static uint64_t run_bits(td_context *context, const td_op *op, const td_sample *sample, int dtype, char title[TEXT]) {
  sample_call call;
  char problem[200];
  td_tensor *out[TD_OUTPUT_MAX], *targets[TD_OUTPUT_MAX], *gradients[TD_INPUT_MAX];
  td_source sources[TD_INPUT_MAX];
  int target_count = 0, source_count = 0;
  uint64_t hash = 14695981039346656037u;
  context->seed = 7;
  context->counter = 0;
  ck_assert(sample_make(context, op, sample, SAMPLE_PLAIN, dtype, &call, problem));
  td_tape *tape = td_tape_new(context, false, false);
  ck_assert_int_eq(td_tape_open(context, tape), TD_OK);
  for (int i = 0; i < call.in_count; i++) {
    if (!call.in[i] || !td_dtype_is_float(call.in[i]->dtype)) continue;
    ck_assert_int_eq(td_tape_watch(context, tape, call.in[i]), TD_OK);
    sources[source_count++] = (td_source){.tensor = call.in[i]};
  }
  int code = sample_run(context, op, &call, out);
  td_tape_close(context, tape);
  ck_assert_msg(code != TD_ERROR_INTERNAL, "%s: %s", op->name, context->error.message);
  int count = code ? 0 : td_op_outputs(op, out);
  for (int k = 0; k < count; k++) {
    hash = bits_of(out[k], hash);
    if (td_dtype_is_float(out[k]->dtype)) targets[target_count++] = out[k];
  }
  if (op->vjp && target_count && source_count) {
    code = td_tape_gradient(context, tape, targets, target_count, NULL, sources, source_count, true, gradients);
    for (int i = 0; i < source_count && !code; i++) {
      hash = bits_of(gradients[i], hash);
      td_tensor_unref(gradients[i]);
    }
  }
  for (int k = 0; k < count; k++) td_tensor_unref(out[k]);
  td_tape_unref(context, tape);
  sample_drop(&call);
  td_error_clear(context);
  sample_title(sample, title, TEXT);
  return hash ^ (uint64_t)code;
}

// Calls that the op takes, each once: every sample along every size, with arguments as they are or enlarged too.
typedef void visit(const td_op *op, const td_sample *sample);

static bool takes(const td_op *op, const td_sample *sample) {
  sample_call call;
  char problem[200];
  bool good = sample_make(alone, op, sample, SAMPLE_PLAIN, TD_FLOAT32, &call, problem) && fits(alone, op, &call);
  sample_drop(&call);
  return good;
}

// At the first length that gives results of a bearable size.
static bool find_taken(const td_op *op, const td_sample *sample, int choice, enlarged *e) {
  for (int64_t length = LENGTH; length >= SIDE; length /= 16)
    for (int in_args = 0; in_args < 2; in_args++)
      if (enlarge(sample, choice, length, in_args, e) && takes(op, &e->sample)) return true;
  return false;
}

static int walk(const td_op *op, visit *look) {
  int count = 0;
  enlarged e;
  if (op->missing && op->missing(NULL)) return 1;
  for (int n = 0; n < SAMPLES && op->samples[n].shapes; n++)
    for (int choice = 0; choice < NUMBERS; choice++) {
      if (!find_taken(op, &op->samples[n], choice, &e)) continue;
      look(op, &e.sample);
      count++;
    }
  return count;
}

static void compare_bits(const td_op *op, const td_sample *sample) {
  char title[TEXT];
  static int turn; // every second call in float64
  int dtype = turn++ % 2 ? TD_FLOAT64 : TD_FLOAT32;
  uint64_t one = run_bits(alone, op, sample, dtype, title), sixteen = run_bits(many, op, sample, dtype, title);
  ck_assert_msg(one == sixteen, "%s, %s, %s: 16 threads give other bits than one", op->name, title,
                td_dtype_name((uint8_t)dtype));
}

static bool is_small(const td_op *op) { // a word of the generator; a shape that must grow otherwise than its windows
  return !strcmp(op->name, "random_key") || !strcmp(op->name, "sliding_window_adjoint");
}

START_TEST(any_number_of_threads_gives_the_same_bits) {
  const td_op *op = td_op_at(_i);
  ck_assert_msg(walk(op, compare_bits) || is_small(op), "%s: no sample can be enlarged", op->name);
}
END_TEST

// ---- memory ----

static void *ballast; // raises what is live to the highest that it was, so that the peak of what follows can be told

static int64_t peak_begin(void) { // bytes that are live
  int64_t gap = td_memory_peak() - td_memory_live();
  ballast = gap > 0 ? td_memory_new((size_t)gap) : NULL;
  return td_memory_live();
}

static int64_t peak_end(int64_t live) { // bytes above live
  int64_t peak = td_memory_peak() - live;
  td_memory_free(ballast);
  return peak;
}

static int64_t bytes_of(td_tensor *const *tensors, int count) {
  int64_t bytes = 0;
  for (int i = 0; i < count; i++)
    if (tensors[i]) bytes += tensors[i]->size * td_dtype_bytes(tensors[i]->dtype);
  return bytes;
}

static td_view view_of(const td_tensor *t) {
  td_view view = {.data = t ? t->data : NULL};
  if (!t) return view;
  view.size = t->size;
  view.dtype = t->dtype;
  view.rank = t->rank;
  memcpy(view.shape, t->shape, sizeof(int64_t) * t->rank);
  memcpy(view.strides, t->strides, sizeof(int64_t) * t->rank);
  return view;
}

static int64_t workspace_of(const td_op *op, const sample_call *c, td_tensor *const *out) {
  static td_call call;
  call.context = alone;
  call.op = op;
  call.args = c->args;
  call.in_count = c->in_count;
  call.out_count = td_op_outputs(op, out);
  for (int i = 0; i < c->in_count; i++) call.in[i] = view_of(c->in[i]);
  for (int i = 0; i < call.out_count; i++) call.out[i] = view_of(out[i]);
  int64_t bytes = op->workspace ? op->workspace(&call) : 0;
  return bytes > 0 ? bytes : 0;
}

static td_tape *watching_tape(const sample_call *call, td_source *sources, int *source_count) {
  td_tape *tape = td_tape_new(alone, false, false);
  ck_assert_int_eq(td_tape_open(alone, tape), TD_OK);
  *source_count = 0;
  for (int i = 0; i < call->in_count; i++) {
    if (!call->in[i] || !td_dtype_is_float(call->in[i]->dtype)) continue;
    ck_assert_int_eq(td_tape_watch(alone, tape, call->in[i]), TD_OK);
    sources[(*source_count)++] = (td_source){.tensor = call->in[i]};
  }
  return tape;
}

// The gradients of the sum of all floating outputs: what a pass over them makes at a time is no more than a few times
// what the call holds.
static void count_backward(const td_op *op, const char *title, td_tape *tape, const td_source *sources,
                           int source_count, td_tensor *const *out, int64_t held) {
  td_tensor *targets[TD_OUTPUT_MAX], *gradients[TD_INPUT_MAX];
  int count = 0;
  for (int k = 0; k < td_op_outputs(op, out); k++)
    if (td_dtype_is_float(out[k]->dtype)) targets[count++] = out[k];
  if (!op->vjp || !count || !source_count) return;
  int64_t live = peak_begin();
  int code = td_tape_gradient(alone, tape, targets, count, NULL, sources, source_count, true, gradients);
  int64_t peak = peak_end(live);
  for (int i = 0; i < source_count && !code; i++) td_tensor_unref(gradients[i]);
  ck_assert_msg(peak <= TIMES * held, "%s, %s: the gradients take %lld bytes, the call holds %lld", op->name, title,
                (long long)peak, (long long)held);
}

static void count_bytes(const td_op *op, const td_sample *sample) {
  sample_call call;
  char problem[200], title[TEXT];
  td_tensor *out[TD_OUTPUT_MAX];
  td_source sources[TD_INPUT_MAX];
  int source_count;
  sample_title(sample, title, TEXT);
  ck_assert(sample_make(alone, op, sample, SAMPLE_PLAIN, TD_FLOAT32, &call, problem));
  td_tape *tape = watching_tape(&call, sources, &source_count);
  int64_t live = peak_begin();
  int code = sample_run(alone, op, &call, out);
  int64_t peak = peak_end(live);
  td_tape_close(alone, tape);
  if (!code) {
    int count = td_op_outputs(op, out);
    int64_t result = bytes_of(out, count), made = op->kernel ? result : 0, workspace = workspace_of(op, &call, out);
    int64_t held = bytes_of(call.in, call.in_count) + result + SMALL;
    ck_assert_msg(peak <= made + workspace + SMALL, "%s, %s: %lld bytes for results of %lld and a workspace of %lld",
                  op->name, title, (long long)peak, (long long)made, (long long)workspace);
    ck_assert_msg(workspace <= TIMES * held, "%s, %s: a workspace of %lld bytes, the call holds %lld", op->name, title,
                  (long long)workspace, (long long)held);
    count_backward(op, title, tape, sources, source_count, out, held);
    for (int k = 0; k < count; k++) td_tensor_unref(out[k]);
  }
  td_tape_unref(alone, tape);
  sample_drop(&call);
  td_error_clear(alone);
}

static int64_t elements_of(const char *shapes) {
  int64_t all = 0, size = 1;
  for (const char *at = shapes;; at++) {
    if (starts_number(shapes, at)) size *= strtoll(at, NULL, 10);
    if (*at && *at != ';') continue;
    all += size;
    size = 1;
    if (!*at) return all;
  }
}

// The first enlargement that is taken, of more than 10^5 elements where the row allows it, and not of many more.
static bool find_large(const td_op *op, const td_sample *sample, enlarged *e) {
  for (int64_t length = MANY; length >= SIDE; length /= 16)
    for (int choice = 0; choice < NUMBERS; choice++)
      for (int in_args = 0; in_args < 2; in_args++)
        if (enlarge(sample, choice, length, in_args, e) && elements_of(e->shapes) <= RESULTS && takes(op, &e->sample))
          return true;
  return false;
}

START_TEST(results_and_workspace_are_all_that_is_live) {
  const td_op *op = td_op_at(_i);
  enlarged e;
  if (op->missing && op->missing(NULL)) return;
  int n = 0;
  while (op->samples[n].shapes && !find_large(op, &op->samples[n], &e)) n++;
  ck_assert_msg(op->samples[n].shapes || is_small(op), "%s: no sample can be enlarged", op->name);
  if (op->samples[n].shapes) count_bytes(op, &e.sample);
}
END_TEST

// ---- long sums ----

static void expect_long_sum(const char *name, const char *args, td_tensor *const *in, int count, double expected) {
  const td_op *op = td_op_find(name);
  td_arg given[TD_PARAM_MAX];
  td_tensor *out[TD_OUTPUT_MAX];
  char problem[200];
  ck_assert_msg(op && sample_arguments(op, args, given, problem), "%s", name);
  ck_assert_int_eq(td_op_apply(many, op, in, count, given, out), TD_OK);
  double got = td_tensor_get_float(out[0], 0);
  ck_assert_msg(fabs(got - expected) <= 4 * 1.1920929e-07 * expected, "%s gives %.9g, not %.9g", name, got, expected);
  for (int k = 0; k < td_op_outputs(op, out); k++) td_tensor_unref(out[k]);
}

static td_tensor *repeated(td_tensor *number, int rank, const int64_t *shape) {
  const int64_t strides[TD_RANK_MAX] = {0};
  return td_tensor_view(alone, number, rank, shape, strides, 0);
}

// Terms that are all alike show what a plain running sum loses.
START_TEST(long_sums_in_float32_keep_their_digits) {
  enum { N = 1 << 20 };
  const int64_t line[] = {N}, images[] = {1, 1, N}, column[] = {N, 1}, one[] = {1};
  td_tensor *tenth = td_tensor_from_float(alone, 0.1, TD_FLOAT32), *x = repeated(tenth, 1, line);
  td_tensor *ids = td_tensor_zeros(alone, TD_INT64, 1, line), *zero = td_tensor_zeros(alone, TD_FLOAT32, 1, one);
  td_tensor *plane = repeated(tenth, 3, images), *tall = repeated(tenth, 2, column);
  double value = td_tensor_get_float(tenth, 0), sum = value * N;
  expect_long_sum("dot", NULL, (td_tensor *[]){x, x}, 2, value * sum);
  expect_long_sum("matmul", NULL, (td_tensor *[]){x, tall}, 2, value * sum);
  expect_long_sum("segment_sum", "n=1", (td_tensor *[]){x, ids}, 2, sum);
  expect_long_sum("scatter_add", "axis=0", (td_tensor *[]){zero, ids, x}, 3, sum);
  expect_long_sum("index_add", NULL, (td_tensor *[]){zero, ids, x}, 3, sum);
  expect_long_sum("index_adjoint", "axes=(0,), shape=(1,)", (td_tensor *[]){x, ids}, 2, sum);
  expect_long_sum("convolution_weight", "stride=(1,), padding=(0,), dilation=(1,), groups=1, sizes=(1,)",
                  (td_tensor *[]){plane, plane}, 2, value * sum);
  expect_long_sum("sum", NULL, (td_tensor *[]){x}, 1, sum);
  td_tensor *made[] = {tenth, x, ids, zero, plane, tall};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) td_tensor_unref(made[i]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sizes");
  TCase *rows = tcase_create("rows");
  tcase_add_checked_fixture(rows, start, finish);
  tcase_set_timeout(rows, 120);
  tcase_add_loop_test(rows, any_number_of_threads_gives_the_same_bits, 0, td_op_count());
  TCase *memory = tcase_create("memory");
  tcase_add_checked_fixture(memory, start, finish);
  tcase_set_timeout(memory, 120);
  tcase_add_loop_test(memory, results_and_workspace_are_all_that_is_live, 0, td_op_count());
  suite_add_tcase(suite, memory);
  TCase *sums = tcase_create("sums");
  tcase_add_checked_fixture(sums, start, finish);
  tcase_add_test(sums, long_sums_in_float32_keep_their_digits);
  suite_add_tcase(suite, rows);
  suite_add_tcase(suite, sums);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
