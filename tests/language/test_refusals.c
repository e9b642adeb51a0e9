// Wrong calls, derived from the rows of the op table: each argument in turn of a wrong type, rank, size or dtype, out
// of range, repeated, missing, given twice. What must be refused is; and whatever is refused is refused by a message
// that names the op and the argument. Names no op. With REFUSALS=show in the environment each call and its answer are
// printed.
#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/base/memory.h"
#include "repl/language/tensors.h"
#include "tests/engine/samples.h"
#include "tests/language/runs.h"

enum { SAMPLES = 3, TEXT = 2000 }; // samples of a row that are spoilt; bytes of a call

static runs session;
static const char *spoilt = ""; // how the tensor "spoilt" was made from X

// ---- a call as text: what stands for each row of td_op.params, "" where nothing is given ----

typedef struct spoilt_call {
  const td_op *op;
  sample_call made;
  char given[TD_PARAM_MAX][200];
  int rows;
} spoilt_call;

static void set_tensor(const char *name, td_tensor *t) {
  td_interpreter *I = session.interpreter;
  ck_assert(td_module_set(I, I->main, name, td_tensor_box(I, td_tensor_ref(t))));
}

static void give_tensors(spoilt_call *c) {
  const td_op *op = c->op;
  bool list = td_op_takes_list(op);
  char name[80];
  size_t at = 0;
  for (int i = 0; i < c->made.in_count; i++) {
    snprintf(name, sizeof name, list ? "%s%d" : "%s", op->params[list ? 0 : i].name, i);
    if (list) at += (size_t)snprintf(c->given[0] + at, sizeof *c->given - at, "%s%s", i ? ", " : "[", name);
    else snprintf(c->given[i], sizeof *c->given, "%s", c->made.in[i] ? name : "None");
    if (c->made.in[i]) set_tensor(name, c->made.in[i]);
  }
  if (list) snprintf(c->given[0] + at, sizeof *c->given - at, "]");
}

// "axis=1, pairs=((0, 1), (1, 0))" told apart by rows.
static void give_arguments(spoilt_call *c, const char *text) {
  while (text && *text) {
    size_t name = strcspn(text, "="), length = 0;
    const char *value = text + name + 1;
    for (int depth = 0; value[length] && (depth || value[length] != ','); length++) // a quote opens and closes itself
      depth += value[length] == '"' ? (depth ? -1 : 1)
                                    : (strchr("([", value[length]) != NULL) - (strchr(")]", value[length]) != NULL);
    for (int row = 0; row < c->rows; row++)
      if (strlen(c->op->params[row].name) == name && !strncmp(c->op->params[row].name, text, name))
        snprintf(c->given[row], sizeof *c->given, "%.*s", (int)length, value);
    text = value + length;
    text += strspn(text, ", ");
  }
}

static spoilt_call call_of(const td_op *op, const td_sample *sample) {
  spoilt_call c = {.op = op, .rows = td_op_tensor_params(op) + td_op_arg_count(op)};
  char problem[200];
  ck_assert_msg(sample_make(session.interpreter->context, op, sample, SAMPLE_PLAIN, -1, &c.made, problem), "%s",
                problem);
  give_tensors(&c);
  give_arguments(&c, sample->args);
  return c;
}

static bool row_is_tensor(const spoilt_call *c, int row) { return row < td_op_tensor_params(c->op); }

static void write_call(const spoilt_call *c, const char *more, char text[TEXT]) {
  int tensors = td_op_tensor_params(c->op);
  const char *between = "";
  size_t at = (size_t)snprintf(text, TEXT, "op(");
  for (int row = 0; row < c->rows; row++) {
    if (!*c->given[row]) {
      tensors = 0; // what follows is named
      continue;
    }
    bool named = row >= tensors || c->op->params[row].keyword;
    at += (size_t)snprintf(text + at, TEXT - at, "%s%s%s%s", between, named ? c->op->params[row].name : "",
                           named ? "=" : "", c->given[row]);
    between = ", ";
  }
  snprintf(text + at, TEXT - at, "%s%s)", *more ? between : "", more);
}

// ---- what is said ----

static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at++) {
    bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
    if (begins && !isalnum((unsigned char)at[length]) && at[length] != '_') return true;
  }
  return false;
}

static bool shows(void) { return getenv("REFUSALS") != NULL; }

// The diagnosis without the lines that quote the code: message, operands, hint.
static void said(char text[TEXT]) {
  size_t at = 0;
  for (const char *line = session.error; *line;) {
    size_t length = strcspn(line, "\n");
    bool quotes = !strncmp(line, "  test.deck", 11) || strspn(line, " ^") == length;
    if (!quotes && at + length + 2 < TEXT) at += (size_t)snprintf(text + at, TEXT - at, "%.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
  text[at] = 0;
}

// One line: op, call, what it was given for X, what is wrong with the answer, the answer.
static void show(const spoilt_call *c, const char *code, const char *problem, char *text) {
  for (char *at = text; *at; at++)
    if (*at == '\n') *at = at[1] ? '/' : 0;
  printf("%s\t%s\t%s\t%s\t%.400s\n", c->op->name, code, spoilt, problem, text);
}

// An axis is one of axes; a tensor may be said not to suit another argument, and indices not to suit a size.
static bool has_argument(const td_op *op, const char *text, const char *argument) {
  bool other = *spoilt && has_word(text, "spoilt");
  for (int row = 0; row < TD_PARAM_MAX && op->params[row].kind; row++)
    other |= (*spoilt || op->params[row].kind == TD_PARAM_INDEX) && has_word(text, op->params[row].name);
  return other || has_word(text, argument) || (!strcmp(argument, "axes") && has_word(text, "axis"));
}

static void expect(const spoilt_call *c, const char *code, const char *argument, bool refused) {
  char text[TEXT] = "", name[64], begins[80];
  const char *problem = "";
  bool taken = runs_code(&session, code) == TD_RUN_DONE;
  if (taken) snprintf(text, sizeof text, "%.1900s", session.printed);
  else said(text);
  snprintf(begins, sizeof begins,
           ": %s: ", td_op_spelled(c->op, name, sizeof name)); // the error's class may stand before
  if (taken) problem = refused ? "it is taken" : "";
  else if (!strstr(text, begins)) problem = "the message doesn't begin with the op";
  else if (!has_argument(c->op, text, argument) && !strstr(text, "no memory"))
    problem = "the message doesn't name the argument";
  if (shows()) show(c, code, problem, text);
  else ck_assert_msg(!*problem, "%s: %s, %s: %s:\n%s", c->op->name, code, argument, problem, text);
}

// ---- wrong values by kind ----

typedef struct wrong_value {
  uint32_t kinds; // 1 << enum td_param_kind
  bool refused; // by every op
  const char *value;
} wrong_value;

#define K(kind) (1u << TD_PARAM_##kind)
enum {
  TENSOR = K(TENSOR) | K(TENSOR_OPTIONAL) | K(INDEX),
  MANY = K(TENSORS) | K(TENSORS_SPREAD),
  SOME = K(AXES) | K(SHAPE) | K(INTS),
  NUMBER = K(INT) | K(FLOAT) | K(NUMBER),
  ANY = ~0,
};

static const wrong_value wrong_values[] = {
    {ANY, true, "{}"},
    {ANY, true, "print"},
    {ANY, true, "{1, 2}"},
    {ANY & ~(K(CHOICE) | K(ORDER) | K(TEXT) | K(DTYPE) | K(INTS)), true, "\"none such\""},
    {K(CHOICE) | K(ORDER) | K(TEXT) | K(DTYPE) | K(INTS), true, "\"none such\""},
    {ANY & ~(TENSOR | MANY), true, "[[1], [1, 2]]"},
    {TENSOR, true, "[[1.0], [1.0, 2.0]]"},
    {TENSOR | MANY, true, "[\"none such\"]"},
    {K(TENSOR) | K(INDEX) | MANY, true, "None"},
    {NUMBER | K(AXIS), true, "[1, 2]"},
    {NUMBER | K(AXIS), true, "ones(2, 2)"},
    {K(INT) | K(AXIS), true, "0.5"},
    {SOME | K(PAIRS), true, "0.5"},
    {SOME, true, "(0.5, 1)"},
    {SOME, true, "(1, \"none such\")"},
    {SOME, true, "(1, 1, 1, 1, 1, 1, 1, 1, 1)"},
    {K(AXIS) | K(AXES), true, "99"},
    {K(AXIS) | K(AXES), true, "-99"},
    {K(AXIS) | K(AXES), true, "9223372036854775807"},
    {K(AXIS) | K(AXES), true, "-9223372036854775807 - 1"},
    {K(AXES), true, "(0, 99)"},
    {K(AXES), false, "(0, 0)"},
    {K(SHAPE), true, "(2, -7)"},
    {K(SHAPE), true, "(9223372036854775807, 2)"},
    {K(INT) | K(NUMBER) | K(SHAPE) | K(INTS) | K(PAIRS), false, "-7"},
    {K(INT) | K(NUMBER) | K(SHAPE) | K(INTS) | K(PAIRS), false, "0"},
    {K(INT) | K(NUMBER) | K(SHAPE) | K(INTS) | K(PAIRS), false, "9223372036854775807"},
    {K(INT) | K(NUMBER) | K(SHAPE) | K(INTS) | K(PAIRS), false, "-9223372036854775807 - 1"},
    {K(INT) | K(NUMBER) | K(SHAPE) | K(INTS) | K(PAIRS), false, "2147483647"},
    {K(INTS), false, "(1, 2, 3, 4, 5)"},
    {K(FLOAT) | K(NUMBER) | K(FLOATS) | K(ORDER), false, "float(\"nan\")"},
    {K(FLOAT) | K(NUMBER) | K(FLOATS) | K(ORDER), false, "float(\"inf\")"},
    {K(FLOAT) | K(NUMBER) | K(FLOATS) | K(ORDER), false, "-1.5"},
    {K(FLOAT) | K(NUMBER) | K(FLOATS) | K(ORDER), false, "0"},
    {K(FLOATS), true, "(1.0, \"none such\")"},
    {K(BOOL), true, "[True, False]"},
    {K(BOOL), true, "0.5"},
    {K(DTYPE), true, "3"},
    {K(DTYPE), false, "bool"},
    {K(DTYPE), false, "int32"},
    {K(PAIRS), true, "(1, 2, 3)"},
    {K(PAIRS), true, "((1, 2), (1,))"},
    {K(PAIRS), true, "(99, 99)"},
    {K(TEXT), true, "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""},
};

static void try_value(spoilt_call *c, int row, const char *value, bool refused) {
  char kept[sizeof *c->given], code[TEXT];
  memcpy(kept, c->given[row], sizeof kept);
  snprintf(c->given[row], sizeof kept, "%s", value);
  write_call(c, "", code);
  expect(c, code, c->op->params[row].name, refused);
  memcpy(c->given[row], kept, sizeof kept);
}

static void try_values(spoilt_call *c, int row) {
  const td_param *param = &c->op->params[row];
  for (size_t i = 0; i < sizeof wrong_values / sizeof *wrong_values; i++)
    if (wrong_values[i].kinds >> param->kind & 1) try_value(c, row, wrong_values[i].value, wrong_values[i].refused);
}

// ---- tensors of other ranks, sizes and dtypes ----

static void try_tensor(spoilt_call *c, int row, const char *given, const char *form, const char *name) {
  char code[TEXT], kept[sizeof *c->given];
  size_t at = (size_t)snprintf(code, sizeof code, "spoilt = ");
  memcpy(kept, c->given[row], sizeof kept);
  for (const char *in = form; *in && at + 40 < sizeof code; in++) { // X stands for the tensor
    if (*in == 'X') at += (size_t)snprintf(code + at, sizeof code - at, "%s", name);
    else code[at++] = *in;
  }
  code[at] = 0;
  td_run_result made = runs_code(&session, code);
  ck_assert_msg(made == TD_RUN_DONE, "%s: %s", code, session.error);
  snprintf(c->given[row], sizeof kept, "%s", given);
  write_call(c, "", code);
  spoilt = form;
  expect(c, code, c->op->params[row].name, false);
  spoilt = "";
  memcpy(c->given[row], kept, sizeof kept);
}

static void try_forms(spoilt_call *c, int row, const char *given, const char *name, const td_tensor *t) {
  static const char *const dtypes[] = {"bool", "uint8", "int32", "int64", "float32", "float64", "float16"};
  char form[80];
  try_tensor(c, row, given, "X[None]", name);
  try_tensor(c, row, given, "X[(None,) * (8 - X.ndim) + (...,)]", name);
  if (t->rank && t->shape[0]) try_tensor(c, row, given, "X[0]", name);
  for (int axis = 0; axis < t->rank; axis++) {
    snprintf(form, sizeof form, "concat([X, X], %d)", axis);
    try_tensor(c, row, given, form, name);
    snprintf(form, sizeof form, "take(X, tensor([0])[:0], %d)", axis);
    try_tensor(c, row, given, form, name);
  }
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    snprintf(form, sizeof form, "cast(X, %s, saturate=True)", dtypes[i]);
    try_tensor(c, row, given, form, name);
  }
}

static void try_tensors(spoilt_call *c) {
  bool list = td_op_takes_list(c->op);
  for (int i = 0; i < c->made.in_count; i++) {
    if (!c->made.in[i]) continue;
    if (!list) {
      try_forms(c, i, "spoilt", c->op->params[i].name, c->made.in[i]);
      continue;
    }
    char name[80], given[200];
    snprintf(name, sizeof name, "%s%d", c->op->params[0].name, i);
    snprintf(given, sizeof given, "[%s0, spoilt]", c->op->params[0].name);
    try_forms(c, 0, given, name, c->made.in[i]);
  }
}

// ---- missing and superfluous arguments ----

static void try_binding(spoilt_call *c) {
  char code[TEXT], twice[240];
  for (int row = 0; row < c->rows; row++) {
    const td_param *param = &c->op->params[row];
    bool tensor = row_is_tensor(c, row) && param->kind != TD_PARAM_TENSOR_OPTIONAL;
    if (tensor || param->required) try_value(c, row, "", true);
  }
  write_call(c, "none_such=1", code);
  expect(c, code, "none_such", true);
  expect(c, "op(*[0] * 80)", "", false);
  if (c->rows && row_is_tensor(c, 0) && *c->given[0] && strcmp(c->given[0], "None")) {
    snprintf(twice, sizeof twice, "%s=0", c->op->params[0].name);
    write_call(c, twice, code);
    expect(c, code, c->op->params[0].name, true);
  }
}

// ---- the walk ----

// What is asked for beyond this is refused at once; without it gigabytes would be made and filled.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "max_allocation_size_mb=2048:allocator_may_return_null=1"; }

static void start(void) {
  const struct rlimit limit = {(rlim_t)1 << 32, (rlim_t)1 << 32};
#ifndef __SANITIZE_ADDRESS__ // it maps more than that
  setrlimit(RLIMIT_AS, &limit);
#endif
  (void)limit;
  ck_assert(runs_open(&session, 1));
}

static void finish(void) {
  runs_close(&session);
  ck_assert_int_eq(td_memory_live(), 0);
}

START_TEST(wrong_calls_are_refused_by_name) {
  const td_op *op = td_op_at(_i);
  td_interpreter *I = session.interpreter;
  if (op->flags & TD_HIDDEN || (op->missing && op->missing(NULL))) return;
  ck_assert(td_module_set(I, I->main, "op", td_op_builtin(I, op, TD_NIL)));
  for (int n = 0; n < SAMPLES && op->samples[n].shapes; n++) {
    spoilt_call c = call_of(op, &op->samples[n]);
    char code[TEXT];
    write_call(&c, "", code);
    ck_assert_msg(runs_code(&session, code) == TD_RUN_DONE, "%s: %s: %s", op->name, code, session.error);
    for (int row = 0; row < c.rows; row++) try_values(&c, row);
    try_tensors(&c);
    if (n == 0) try_binding(&c);
    sample_drop(&c.made);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("refusals");
  TCase *rows = tcase_create("rows");
  tcase_add_checked_fixture(rows, start, finish);
  tcase_set_timeout(rows, 30);
  tcase_add_loop_test(rows, wrong_calls_are_refused_by_name, 0, td_op_count());
  suite_add_tcase(suite, rows);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
