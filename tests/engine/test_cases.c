// Runs tests/reference/cases.txt: inputs at which other systems were wrong, with their right answers. Every case runs
// in float32 and float64, on one thread and on several. Below it stand the cases that are no straight program.
//
// A case is a program, one statement a line; names are of tensors, and a number in place of one is a 0-d tensor:
//   case ID words                      begins one
//   x = float 2,3 1 2 3 4 5 6          a tensor; "float" is the dtype that the case runs in; "-" is the shape of a 0-d
//                                      one
//   y, z = op x 2 none | axis=1        an op's outputs, in order
//   g = gradient y x [c]               of sum(y), or of y weighted by c, in x; can be differentiated again
//   value y float 3 1 2 3              y must have this dtype, this shape and these elements
//   near y z 1e-6                      y and z must agree, relatively
//   fails INDEX op x | axis=1          the op must end with this error
//   says words                         the last error's message and hint, or the last warning, must contain the words
//   seed 0                             starts the random numbers over
#include <check.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/ops/op.h"
#include "engine/tape/tape.h"
#include "tests/engine/samples.h"

enum { NAMES = 64, MODES = 4 };

static td_context *context;
static td_tape *tape;
static int64_t live_before;
static char said[1000]; // the last error and hint, or warning
static char line[1000]; // the statement that runs
static char title[200]; // the case
static uint8_t dtype; // what "float" stands for
static struct {
  char name[32];
  td_tensor *tensor;
} named[NAMES];
static int named_count;

static void hear(void *owner, const char *message) {
  (void)owner;
  snprintf(said, sizeof said, "%s", message);
}

static void open_context(int threads) {
  live_before = td_memory_live();
  context = td_context_new(threads);
  ck_assert_ptr_nonnull(context);
  context->warn = hear;
  tape = td_tape_new(context, true, false);
  ck_assert_int_eq(td_tape_open(context, tape), TD_OK);
}

static void close_context(void) {
  while (named_count) td_tensor_unref(named[--named_count].tensor);
  td_tape_unref(context, tape);
  td_tapes_free(context);
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

__attribute__((noreturn)) static void stop(const char *problem) {
  ck_abort_msg("%s, \"%s\": %s", title, line, problem);
}

// ---- words of a statement ----

static const char *rest; // of the statement

static bool next_word(char *word, size_t size) { // false: none is left, or the arguments begin
  while (*rest == ' ' || *rest == ',') rest++;
  if (!*rest || *rest == '|') return false;
  size_t length = strcspn(rest, " ");
  if (length && rest[length - 1] == ',') length--; // a name before another
  if (length >= size) stop("a word is too long");
  memcpy(word, rest, length);
  word[length] = 0;
  rest += length;
  return true;
}

static void need_word(char *word, size_t size) {
  if (!next_word(word, size)) stop("a word is missing");
}

static bool is_next(const char *word) {
  size_t length = strlen(word);
  while (*rest == ' ') rest++;
  if (strncmp(rest, word, length) != 0 || (rest[length] && rest[length] != ' ')) return false;
  rest += length;
  return true;
}

static td_tensor *find(const char *name) {
  for (int i = named_count; i-- > 0;)
    if (!strcmp(named[i].name, name)) return named[i].tensor;
  return NULL;
}

static void give_name(const char *name, td_tensor *t) { // takes over t
  if (named_count == NAMES) stop("too many names");
  snprintf(named[named_count].name, sizeof named->name, "%s", name);
  named[named_count++].tensor = t;
}

static void watch(td_tensor *t) {
  if (!t) stop(context->error.message);
  if (td_dtype_is_float(t->dtype)) ck_assert_int_eq(td_tape_watch(context, tape, t), TD_OK);
}

static td_tensor *operand(const char *word) { // a name or a number
  char *end;
  td_tensor *t = find(word);
  if (t) return t;
  double value = strtod(word, &end);
  if (*end) stop("no such name");
  t = td_tensor_from_float(context, value, dtype);
  watch(t);
  give_name(word, t);
  return t;
}

static bool read_dtype(uint8_t *found) {
  const char *before = rest;
  char word[32];
  need_word(word, sizeof word);
  int known = strcmp(word, "float") ? td_dtype_find(word) : dtype;
  if (known < 0) rest = before;
  else *found = (uint8_t)known;
  return known >= 0;
}

static void read_shape(td_meta *meta) {
  char word[64], *at = word;
  need_word(word, sizeof word);
  meta->rank = 0;
  if (!strcmp(word, "-")) return;
  do meta->shape[meta->rank++] = strtoll(at, &at, 10);
  while (*at++ == ',' && meta->rank < TD_RANK_MAX);
}

static td_tensor *read_tensor(void) { // what stands behind "="; NULL: no tensor
  td_meta meta;
  char word[64];
  if (!read_dtype(&meta.dtype)) return NULL;
  read_shape(&meta);
  td_tensor *t = td_tensor_new(context, meta.dtype, meta.rank, meta.shape);
  for (int64_t i = 0; t && i < t->size; i++) {
    need_word(word, sizeof word);
    td_tensor *one = td_dtype_is_float(t->dtype) ? td_tensor_from_float(context, strtod(word, NULL), t->dtype)
                                                 : td_tensor_from_int(context, strtoll(word, NULL, 10), t->dtype);
    int bytes = td_dtype_bytes(t->dtype);
    memcpy(t->data + i * bytes, one->data, (size_t)bytes);
    td_tensor_unref(one);
  }
  watch(t);
  return t;
}

// ---- statements ----

static int apply(td_tensor **out, int *count) { // an op's name and operands
  td_tensor *in[TD_INPUT_MAX];
  td_arg args[TD_PARAM_MAX];
  char word[64], problem[200] = "";
  int in_count = 0;
  need_word(word, sizeof word);
  const td_op *op = td_op_find(word);
  if (!op) stop("no such op");
  while (next_word(word, sizeof word)) in[in_count++] = strcmp(word, "none") ? operand(word) : NULL;
  if (!sample_arguments(op, *rest == '|' ? rest + 1 : "", args, problem)) stop(problem);
  int code = td_op_apply(context, op, in, in_count, args, out);
  *count = code ? 0 : td_op_outputs(op, out);
  if (code) snprintf(said, sizeof said, "%s; %s", context->error.message, context->error.hint);
  return code;
}

static td_tensor *differentiate(void) {
  char word[64];
  need_word(word, sizeof word);
  td_tensor *target = operand(word), *cotangent = NULL, *result;
  need_word(word, sizeof word);
  td_source source = {.tensor = operand(word)};
  if (next_word(word, sizeof word)) cotangent = operand(word);
  if (td_tape_gradient(context, tape, &target, 1, &cotangent, &source, 1, false, &result)) stop(context->error.message);
  if (!result) stop("no gradient");
  return result;
}

static void assign(void) {
  char names[TD_OUTPUT_MAX][32];
  td_tensor *out[TD_OUTPUT_MAX];
  int name_count = 0, count = 1;
  while (!is_next("=")) {
    if (name_count == TD_OUTPUT_MAX) stop("= is missing");
    need_word(names[name_count++], sizeof *names);
  }
  if (is_next("gradient")) out[0] = differentiate();
  else if (!(out[0] = read_tensor()) && apply(out, &count)) stop(context->error.message);
  for (int i = 0; i < count; i++) {
    if (i < name_count) give_name(names[i], out[i]);
    else td_tensor_unref(out[i]);
  }
}

static bool near(double got, double wanted, double tolerance) {
  if (isnan(wanted)) return isnan(got);
  return got == wanted || fabs(got - wanted) <= tolerance * fabs(wanted);
}

static void expect_near(const td_tensor *t, const td_tensor *wanted, double tolerance) {
  if (!td_shape_equal(t->rank, t->shape, wanted->rank, wanted->shape)) stop("has another shape");
  for (int64_t i = 0; i < t->size; i++) {
    double a = td_tensor_get_float(t, i), b = td_tensor_get_float(wanted, i);
    bool same =
        td_dtype_is_float(t->dtype) ? near(a, b, tolerance) : td_tensor_get_int(t, i) == td_tensor_get_int(wanted, i);
    ck_assert_msg(same, "%s, \"%s\": element %lld is %.17g", title, line, (long long)i, a);
  }
}

static void check_value(void) {
  char word[64];
  need_word(word, sizeof word);
  const td_tensor *t = operand(word);
  td_tensor *wanted = read_tensor();
  if (!wanted) stop("a dtype is missing");
  if (t->dtype != wanted->dtype) stop(td_dtype_name(t->dtype));
  expect_near(t, wanted, t->dtype == TD_FLOAT64 ? 1e-9 : 1e-6);
  td_tensor_unref(wanted);
}

static void check_near(void) {
  char word[64];
  need_word(word, sizeof word);
  const td_tensor *a = operand(word);
  need_word(word, sizeof word);
  const td_tensor *b = operand(word);
  need_word(word, sizeof word);
  expect_near(a, b, strtod(word, NULL));
}

static void check_failure(void) {
  char wanted[32];
  td_tensor *out[TD_OUTPUT_MAX];
  int count;
  need_word(wanted, sizeof wanted);
  int code = apply(out, &count);
  if (!code) stop("it did not fail");
  ck_assert_msg(!strcmp(td_error_name(code), wanted), "%s, \"%s\": %s: %s", title, line, td_error_name(code), said);
  td_error_clear(context);
}

static void run_statement(void) {
  rest = line;
  if (is_next("value")) check_value();
  else if (is_next("near")) check_near();
  else if (is_next("fails")) check_failure();
  else if (is_next("says")) {
    if (!strstr(said, rest + strspn(rest, " "))) stop(said);
  } else if (is_next("seed")) {
    context->seed = strtoull(rest, NULL, 10);
    context->counter = 0;
  } else assign();
}

// ---- the file ----

static char *read_file(void) { // td_memory's
  char path[2000], *text;
  size_t size;
  const char *folder = getenv("top_srcdir");
  td_context *reader = td_context_new(1);
  snprintf(path, sizeof path, "%s/tests/reference/cases.txt", folder ? folder : ".");
  if (td_file_read(reader, path, 1 << 20, &text, &size)) {
    fprintf(stderr, "%s\n", reader->error.message);
    exit(EXIT_FAILURE);
  }
  td_context_free(reader);
  return text;
}

static bool next_line(const char **at) {
  size_t length = strcspn(*at, "\n");
  if (!(*at)[0]) return false;
  snprintf(line, sizeof line, "%.*s", (int)length, *at);
  *at += length + ((*at)[length] == '\n');
  return true;
}

static bool begins_case(void) { return !strncmp(line, "case ", 5); }

static int count_cases(void) {
  char *text = read_file();
  const char *at = text;
  int count = 0;
  while (next_line(&at)) count += begins_case();
  td_memory_free(text);
  return count;
}

START_TEST(case_has_its_answer) {
  char *text = read_file();
  const char *at = text;
  dtype = _i % 2 ? TD_FLOAT32 : TD_FLOAT64;
  open_context(_i / 2 % 2 ? 3 : 1);
  for (int left = _i / MODES + 1; left && next_line(&at);) left -= begins_case();
  snprintf(title, sizeof title, "%.150s (%s)", line, td_dtype_name(dtype));
  while (next_line(&at) && !begins_case())
    if (*line && *line != '#') run_statement();
  close_context();
  td_memory_free(text);
}
END_TEST

// ---- what is no straight program ----

static void step(bool persistent) { // a new tape, one or two gradients
  td_tape *own = td_tape_new(context, persistent, false);
  td_tensor *x = td_tensor_zeros(context, TD_FLOAT32, 1, (int64_t[]){1000}), *out[TD_OUTPUT_MAX], *g;
  const td_op *op = td_op_find("multiply");
  ck_assert_int_eq(td_tape_open(context, own), TD_OK);
  ck_assert_int_eq(td_tape_watch(context, own, x), TD_OK);
  ck_assert_int_eq(td_op_apply(context, op, (td_tensor *[]){x, x}, 2, NULL, out), TD_OK);
  td_tape_close(context, own);
  for (int i = 0; i < (persistent ? 2 : 1); i++) {
    ck_assert_int_eq(td_tape_gradient(context, own, out, 1, NULL, &(td_source){.tensor = x}, 1, false, &g), TD_OK);
    td_tensor_unref(g);
  }
  td_tensor_unref(out[0]);
  td_tensor_unref(x);
  td_tape_unref(context, own);
}

static long resident_kilobytes(void) { // the most so far
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

START_TEST(tapes_leave_nothing_behind) { // E5
  open_context(1);
  td_tape_close(context, tape);
  for (int i = 0; i < 100; i++) step(_i);
  int64_t live = td_memory_live();
  long resident = resident_kilobytes();
  for (int i = 100; i < 10000; i++) step(_i);
  ck_assert_int_eq(td_memory_live(), live);
#ifndef __SANITIZE_ADDRESS__ // it holds on to what was freed
  ck_assert_int_le(resident_kilobytes(), resident + 1024);
#endif
  (void)resident;
  close_context();
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cases");
  TCase *cases = tcase_create("cases");
  tcase_set_timeout(cases, 60);
  tcase_add_loop_test(cases, case_has_its_answer, 0, count_cases() * MODES);
  tcase_add_loop_test(cases, tapes_leave_nothing_behind, 0, 2);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
