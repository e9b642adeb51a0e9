// The evaluator from C: events of a run, what stays after an error, lookups that are remembered in the tree and what
// makes them stale, values that are updated in place, calls and binding through the API, cycles, and interrupts. What
// Python does as well is in tests/language/python.
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"

static td_interpreter *interpreter;
static td_text printed, values, error;
static int counts[TD_EVENT_COUNT], status;

static void emit(void *owner, const td_event *event) {
  (void)owner;
  if (event->payload) event->payload->release(event->payload);
  counts[event->kind]++;
  if (event->kind == TD_EVENT_OUTPUT) td_text_add_bytes(&printed, event->text, event->length);
  if (event->kind == TD_EVENT_ERROR) td_text_add(&error, event->detail);
  if (event->kind == TD_EVENT_VALUE) td_text_print(&values, "%s;", event->text);
  if (event->kind == TD_EVENT_CELL_FINISHED) status = event->status;
}

static const td_event_sink sink = {.emit = emit};

static void start(void) {
  interpreter = td_interpreter_new(1);
  ck_assert_ptr_nonnull(interpreter);
  interpreter->sink = &sink;
}

static void clear(void) {
  td_text_clear(&printed);
  td_text_clear(&values);
  td_text_clear(&error);
  memset(counts, 0, sizeof counts);
}

static void finish(void) {
  clear();
  td_interpreter_free(interpreter);
  ck_assert_int_eq(td_memory_live(), 0);
}

static td_run_result run_with(const char *code, td_run_options options) {
  clear();
  if (!options.name) options.name = "test.deck";
  if (!options.folder) options.folder = "";
  return td_run(interpreter, interpreter->main, code, strlen(code), &options);
}

static td_run_result run(const char *code) { return run_with(code, (td_run_options){0}); }

static const char *text(const td_text *t) { return t->data ? t->data : ""; }

static void expect_output(const char *code, const char *output) {
  td_run_result result = run(code);
  ck_assert_msg(result == TD_RUN_DONE, "%s\n  %s", code, text(&error));
  ck_assert_str_eq(text(&printed), output);
}

static td_value global(const char *name) { // borrowed
  td_str *word = td_str_intern(interpreter, name, strlen(name));
  td_value value = td_module_get(interpreter->main, word);
  td_unref(td_from(word));
  return value;
}

// ---- runs ----

START_TEST(values_are_shown_as_asked) {
  const char *code = "1\n'a'\nNone\nx = 3\nx;\n[x]";
  ck_assert_int_eq(run_with(code, (td_run_options){.echo_all = true}), TD_RUN_DONE);
  ck_assert_str_eq(text(&values), "1;'a';[3];");
  ck_assert_int_eq(run_with(code, (td_run_options){.echo_last = true}), TD_RUN_DONE);
  ck_assert_str_eq(text(&values), "[3];");
  ck_assert_int_eq(run(code), TD_RUN_DONE);
  ck_assert_str_eq(text(&values), "");
}
END_TEST

START_TEST(results_have_names) {
  ck_assert_int_eq(run_with("6 * 7", (td_run_options){.echo_last = true, .cell = 3}), TD_RUN_DONE);
  ck_assert_int_eq(run_with("_ + _3", (td_run_options){.echo_last = true, .cell = 4}), TD_RUN_DONE);
  ck_assert_str_eq(text(&values), "84;");
  ck_assert_int_eq(interpreter->last.i, 84);
}
END_TEST

START_TEST(a_run_begins_and_ends_with_its_events) {
  static const struct {
    const char *code;
    td_run_result result;
  } rows[] = {
      {"pass", TD_RUN_DONE},      {"1 / 0", TD_RUN_FAILED}, {"x = = 1", TD_RUN_FAILED},
      {"print((", TD_RUN_FAILED}, {"exit(3)", TD_RUN_EXIT}, {"raise KeyboardInterrupt()", TD_RUN_INTERRUPTED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_int_eq(run(rows[i].code), rows[i].result);
    ck_assert_int_eq(counts[TD_EVENT_CELL_STARTED], 1);
    ck_assert_int_eq(counts[TD_EVENT_CELL_FINISHED], 1);
    ck_assert_int_eq(status, rows[i].result);
    ck_assert_int_eq(counts[TD_EVENT_ERROR], rows[i].result == TD_RUN_FAILED || rows[i].result == TD_RUN_INTERRUPTED);
  }
}
END_TEST

START_TEST(exit_codes) {
  static const struct {
    const char *code;
    int exit;
  } rows[] = {
      {"exit()", 0},
      {"exit(3)", 3},
      {"quit(True)", 1},
      {"raise SystemExit", 0},
      {"exit('bye')", 1},
      {"try:\n  exit(4)\nfinally:\n  print('f')", 4},
      {"try:\n  exit(5)\nexcept Exception:\n  pass", 5},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_int_eq(run(rows[i].code), TD_RUN_EXIT);
    ck_assert_int_eq(td_exit_code(interpreter), rows[i].exit);
  }
}
END_TEST

START_TEST(variables_stay_after_an_error) {
  ck_assert_int_eq(run("a = 1\nb = [2]\nc = 1 / 0\nd = 4"), TD_RUN_FAILED);
  ck_assert_str_eq(text(&error), "error: ZeroDivisionError: division by zero");
  expect_output("print(a, b)", "1 [2]\n");
  ck_assert(td_is_nil(global("c")) && td_is_nil(global("d")));
  ck_assert_ptr_eq(interpreter->stack_top, interpreter->stack);
  ck_assert_int_eq(interpreter->depth, 0);
}
END_TEST

START_TEST(output_comes_line_by_line) {
  ck_assert_int_eq(run("for i in range(20000):\n  print(i)"), TD_RUN_DONE);
  ck_assert_int_eq(counts[TD_EVENT_OUTPUT], 20000);
  ck_assert_uint_eq(printed.length, 108890);
  expect_output("for i in range(50): print(i % 10, end='')", "01234567890123456789012345678901234567890123456789");
  ck_assert_int_eq(counts[TD_EVENT_OUTPUT], 1);
}
END_TEST

static td_value echo_command(td_interpreter *I, char kind, const char *line) {
  if (strcmp(line, "fail") == 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "no");
  td_output(I, 1, &kind, 1);
  td_output(I, 1, line, strlen(line));
  return td_int(5);
}

START_TEST(commands_go_to_the_hook) {
  ck_assert_int_eq(run("%time 1"), TD_RUN_FAILED);
  interpreter->command = echo_command;
  ck_assert_int_eq(run_with("%time 1\n!ls", (td_run_options){.echo_all = true}), TD_RUN_DONE);
  ck_assert_str_eq(text(&printed), "%time 1!ls");
  ck_assert_str_eq(text(&values), "5;5;");
  expect_output("if True:\n  %go\nprint('-')", "%go-\n");
  ck_assert_int_eq(run("%fail"), TD_RUN_FAILED);
}
END_TEST

START_TEST(unfinished_texts) {
  ck_assert_int_eq(td_check_complete(interpreter, "f(1,", 4), TD_PARSE_INCOMPLETE);
  ck_assert_int_eq(td_check_complete(interpreter, "f(1)", 4), TD_PARSED);
  ck_assert_int_eq(td_check_complete(interpreter, "f(1))", 5), TD_PARSE_ERROR);
}
END_TEST

// ---- what the tree remembers ----

START_TEST(a_replaced_method_is_called) {
  expect_output("class A:\n  def f(self): return 1\n"
                "def call(a): return a.f()\n"
                "a = A()\nprint(call(a), call(a))\n"
                "A.f = lambda self: 2\nprint(call(a))\n"
                "a.f = lambda: 3\nprint(call(a))\n"
                "del a.f\ndel A.f\n"
                "try: call(a)\nexcept AttributeError as e: print(e)\n",
                "1 1\n2\n3\n'A' object has no attribute 'f'\n");
}
END_TEST

START_TEST(a_property_hides_an_attribute_that_was_remembered) {
  expect_output("class A: pass\n"
                "def read(a): return a.x\n"
                "def write(a): a.x = 7\n"
                "a = A()\na.x = 1\nprint(read(a), read(a))\nwrite(a)\nprint(read(a))\n"
                "A.x = property(lambda self: 'p')\nprint(read(a))\n"
                "try: write(a)\nexcept AttributeError as e: print(e)\n"
                "del A.x\nprint(read(a))\n"
                "A.__setattr__ = lambda self, n, v: print('set', n, v)\nwrite(a)\nprint(read(a))\n",
                "1 1\n7\np\nproperty 'x' of 'A' object has no setter\n7\nset x 7\n7\n");
}
END_TEST

START_TEST(instances_with_other_orders_of_attributes) {
  expect_output("class A: pass\n"
                "def read(a): return a.x, a.y\n"
                "a = A(); a.x = 1; a.y = 2\nb = A(); b.y = 3; b.z = 4; b.x = 5\n"
                "print(read(a), read(b), read(a))\n"
                "del b.y; b.y = 6\nprint(read(b))\n"
                "class B(A):\n  y = 9\n"
                "c = B(); c.x = 0\nprint(read(c), read(a))\n",
                "(1, 2) (5, 3) (1, 2)\n(5, 6)\n(0, 9) (1, 2)\n");
}
END_TEST

START_TEST(one_call_of_many_types) {
  expect_output("class A:\n  def count(self, x): return 'A'\n"
                "for v in [[1, 1], (1,), 'aab', A(), [], A()]:\n"
                "  print(v.count(1) if not isinstance(v, str) else v.count('a'), end=' ')\n"
                "print()\n",
                "2 1 2 A 0 A \n");
}
END_TEST

START_TEST(a_builtin_name_is_taken_over) {
  expect_output("def f(): return len([1, 2])\nprint(f())\nlen = lambda x: 'mine'\nprint(f())\ndel len\nprint(f())\n",
                "2\nmine\n2\n");
}
END_TEST

// ---- values updated in place ----

START_TEST(text_that_is_shared_is_not_changed) {
  expect_output(
      "def f():\n  s = 'a'\n  t = s\n  s += 'b'\n  s = s + 'c'\n  u = s\n  s += 'd'\n  return s, t, u\nprint(f())\n"
      "s = 'x' * 3\nl = [s]\ns += 'y'\nprint(s, l)\n"
      "d = {'k': 'v'}\nv = d['k']\nd['k'] += 'w'\nprint(d, v)\n"
      "class A: pass\na = A()\na.s = 'p'\nq = a.s\na.s += 'r'\nprint(a.s, q)\n",
      "('abcd', 'a', 'abc')\nxxxy ['xxx']\n{'k': 'vw'} v\npr p\n");
}
END_TEST

START_TEST(an_update_that_fails_leaves_the_value) {
  expect_output("def f():\n  s = 'ab'\n  try: s += 1\n  except TypeError: pass\n  try: s = s * s\n  except TypeError: "
                "pass\n  return s\n"
                "print(f())\n"
                "l = [1, 2]\ntry: l += 5\nexcept TypeError: print(l)\n"
                "n = 9223372036854775807\ntry: n += 1\nexcept OverflowError: print(n)\n"
                "d = {'a': 'x'}\ntry: d['a'] += None\nexcept TypeError: print(d)\n",
                "ab\n[1, 2]\n9223372036854775807\n{'a': 'x'}\n");
}
END_TEST

START_TEST(a_name_changed_while_it_is_updated) {
  expect_output("x = 1\ndef f():\n  global x\n  x = 100\n  return 1\nx += f()\nprint(x)\n"
                "s = 'a'\ndef g():\n  global s\n  s = 'z'\n  return 'b'\ns += g()\nprint(s)\n"
                "l = [0]\ndef h():\n  l.clear()\n  return 1\n"
                "try: l[0] += h()\nexcept IndexError as e: print(e, l)\n",
                "2\nab\nlist assignment index out of range []\n");
}
END_TEST

START_TEST(tensors_are_values) {
  expect_output("x = tensor([1, 2])\ny = x\nx[0] = 9\nprint(x.tolist(), y.tolist())\n"
                "d = {'a': [tensor([1, 2])]}\nd['a'][0][1] += 5\nprint(d['a'][0].tolist())\n"
                "class M: pass\nm = M()\nm.w = x\nm.w[1] = 0\nprint(m.w.tolist(), x.tolist())\n"
                "try: m.w[7] = 1\nexcept IndexError: print(m.w.tolist())\n"
                "def f(): return x\n"
                "try: f()[0] = 1\nexcept TypeError: print('no name')\n",
                "[9, 2] [1, 2]\n[1, 7]\n[9, 0] [9, 2]\n[9, 0]\nno name\n");
}
END_TEST

// ---- calls from C ----

static td_value sum_native(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_text line = {0};
  for (int i = 0; i < 5; i++) {
    if (td_is_nil(arguments[i])) td_text_add(&line, "- ");
    else if (td_repr(I, arguments[i], &line)) td_text_add(&line, " ");
  }
  return td_from(td_str_take(I, &line));
}

static const td_method rows[] = {
    {"given", "(a, b=2, *rest, key=..., word='w')", sum_native, "Shows what arrives."},
    {0},
};

START_TEST(builtins_get_their_arguments_in_order) {
  ck_assert(td_builtin_define_rows(interpreter, rows));
  expect_output("print(given(1))\nprint(given(1, 3, 4, 5, word='x'))\nprint(given(b=7, a=0, key=None))\n"
                "print(given(*[1, 2, 3], **{'key': 4}))\n",
                "1 2 - 'w' () \n1 3 - 'x' (4, 5) \n0 7 None 'w' () \n1 2 4 'w' (3,) \n");
  static const char *const wrong[][2] = {
      {"given()", "error: TypeError: given() missing 1 required positional argument: 'a'"},
      {"given(1, c=2)", "error: TypeError: given() got an unexpected keyword argument 'c'"},
      {"given(1, a=2)", "error: TypeError: given() got multiple values for argument 'a'"},
  };
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(run(wrong[i][0]), TD_RUN_FAILED);
    ck_assert_str_eq(text(&error), wrong[i][1]);
  }
}
END_TEST

START_TEST(signatures_are_read) {
  td_signature *s = td_signature_parse(interpreter, "f(a, b, /, c=None, *, d, e=-1.5, **more)");
  ck_assert_int_eq(s->positional, 3);
  ck_assert_int_eq(s->positional_only, 2);
  ck_assert_int_eq(s->required, 2);
  ck_assert_int_eq(s->keyword_only, 2);
  ck_assert(!s->star && s->double_star);
  ck_assert_str_eq(s->names[4]->data, "e");
  ck_assert_str_eq(s->names[5]->data, "more");
  ck_assert(td_is_none(s->fallbacks[2]) && td_is_nil(s->fallbacks[3]) && s->fallbacks[4].f == -1.5);
  ck_assert(!s->optional[3]);
}
END_TEST

START_TEST(functions_are_called_from_c) {
  ck_assert_int_eq(
      run("def f(a, b=10): return a - b\ndef g(): return 1 / 0\nclass A:\n  def m(self, x): return x * 2\na = A()"),
      TD_RUN_DONE);
  td_value arguments[2] = {td_int(7), td_int(3)};
  ck_assert_int_eq(td_call_values(interpreter, global("f"), 2, arguments).i, 4);
  ck_assert_int_eq(td_call_values(interpreter, global("f"), 1, arguments).i, -3);
  ck_assert_int_eq(td_call_method(interpreter, global("a"), "m", 1, arguments).i, 14);
  ck_assert(td_is_nil(td_call_values(interpreter, global("g"), 0, NULL)));
  ck_assert(td_raised_is(interpreter, TD_CLASS_ZERO_DIVISION_ERROR));
  td_clear_raised(interpreter);
  ck_assert(td_is_nil(td_call_values(interpreter, td_int(1), 0, NULL)));
  ck_assert(td_raised_is(interpreter, TD_CLASS_TYPE_ERROR));
  td_clear_raised(interpreter);
  ck_assert_ptr_eq(interpreter->stack_top, interpreter->stack);
}
END_TEST

START_TEST(modules_of_c) {
  td_module *module = td_module_define(interpreter, "tools", rows);
  ck_assert(module && td_module_set(interpreter, module, "answer", td_int(42)));
  expect_output("import tools\nfrom tools import given as g, answer\nprint(tools.answer, answer, g(1))\n",
                "42 42 1 2 - 'w' () \n");
  ck_assert_int_eq(run("import torch"), TD_RUN_FAILED);
  ck_assert_str_eq(text(&error), "error: ModuleNotFoundError: No module named 'torch'");
}
END_TEST

static const td_library_deck decks[] = {
    {"one", "def first():\n  return 'first ' + second()\nONE = 1\n", "first ONE"},
    {"two", "def second():\n  return 'second', ONE\nsecond = lambda: str(ONE)\n", "second"},
    {"broken", "oops = 1 / 0\n", "oops"},
    {0, 0, 0},
};

START_TEST(names_come_from_library_decks) {
  interpreter->library = decks;
  expect_output("print(first(), ONE)\nimport two\nprint(two.second())\n", "first 1 1\n1\n");
  ck_assert_int_eq(run("oops"), TD_RUN_FAILED);
  ck_assert_str_eq(text(&error), "error: ZeroDivisionError: division by zero");
  expect_output("try: missing\nexcept NameError as e: print(e)\n", "name 'missing' is not defined\n");
}
END_TEST

// ---- memory and time ----

START_TEST(cycles_are_freed) {
  expect_output(
      "class A: pass\ndef make(n):\n  for i in range(n):\n    a = A(); a.me = a\n    l = []; l.append((l, {1: l}))\n"
      "    def f(): return f\n    g = (x for x in [l])\n    l.append(g)\nmake(10)\n",
      "");
  td_collect(interpreter);
  int64_t before = td_memory_live();
  expect_output("make(2000)\n", "");
  td_collect(interpreter);
  clear();
  ck_assert_int_lt(td_memory_live() - before, 20000);
}
END_TEST

START_TEST(what_is_in_use_is_not_collected) {
  expect_output(
      "class A: pass\n"
      "def f(a):\n  b = [a]\n  a.b = b\n  keep = [[i] for i in range(60000)]\n  return a.b[0] is a and len(keep)\n"
      "print(f(A()))\nx = A(); x.x = x\nk = [[x] for i in range(60000)]\nprint(x.x.x is x, k[59999][0] is x)\n",
      "60000\nTrue True\n");
}
END_TEST

static void *interrupt_soon(void *context) {
  usleep(50000);
  atomic_store(&((td_context *)context)->interrupt, 1);
  return NULL;
}

START_TEST(endless_loops_are_interrupted) {
  static const char *const endless[] = {
      "while True: pass",
      "def f():\n  while 1:\n    x = 1\nf()",
      "for x in iter(int, 1): pass",
      "[x for x in iter(int, 1)]",
      "sum(x for x in iter(int, 1))",
      "def f():\n  while True:\n    try:\n      g()\n    except Exception: pass\ndef g(): raise ValueError\nf()",
      "def f(n): return f(n - 1) + f(n - 1) if n else 0\nf(40)",
  };
  for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt_soon, interpreter->context), 0);
    td_run_result result = run(endless[i]);
    pthread_join(thread, NULL);
    ck_assert_msg(result == TD_RUN_INTERRUPTED, "%s: %d", endless[i], result);
    expect_output("print('lives')", "lives\n");
  }
}
END_TEST

START_TEST(a_long_session_does_not_grow) {
  int64_t before = 0;
  for (int i = 0; i < 3000; i++) {
    td_run_options options = {.cell = 1, .echo_last = true};
    ck_assert_int_eq(run_with("def f(x):\n  return [x, lambda: x]\nclass A:\n  y = f(1)\nA().y[0]", options),
                     TD_RUN_DONE);
    ck_assert_int_eq(run_with("1 / 0", options), TD_RUN_FAILED);
    if (i % 1500 != 1499) continue;
    td_collect(interpreter);
    clear();
    if (before) ck_assert_int_lt(td_memory_live() - before, 65536); // old scripts go in batches
    before = td_memory_live();
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("core");
  TCase *tests = tcase_create("core");
  suite_add_tcase(suite, tests);
  tcase_add_checked_fixture(tests, start, finish);
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, values_are_shown_as_asked);
  tcase_add_test(tests, results_have_names);
  tcase_add_test(tests, a_run_begins_and_ends_with_its_events);
  tcase_add_test(tests, exit_codes);
  tcase_add_test(tests, variables_stay_after_an_error);
  tcase_add_test(tests, output_comes_line_by_line);
  tcase_add_test(tests, commands_go_to_the_hook);
  tcase_add_test(tests, unfinished_texts);
  tcase_add_test(tests, a_replaced_method_is_called);
  tcase_add_test(tests, a_property_hides_an_attribute_that_was_remembered);
  tcase_add_test(tests, instances_with_other_orders_of_attributes);
  tcase_add_test(tests, one_call_of_many_types);
  tcase_add_test(tests, a_builtin_name_is_taken_over);
  tcase_add_test(tests, text_that_is_shared_is_not_changed);
  tcase_add_test(tests, an_update_that_fails_leaves_the_value);
  tcase_add_test(tests, a_name_changed_while_it_is_updated);
  tcase_add_test(tests, tensors_are_values);
  tcase_add_test(tests, builtins_get_their_arguments_in_order);
  tcase_add_test(tests, signatures_are_read);
  tcase_add_test(tests, functions_are_called_from_c);
  tcase_add_test(tests, modules_of_c);
  tcase_add_test(tests, names_come_from_library_decks);
  tcase_add_test(tests, cycles_are_freed);
  tcase_add_test(tests, what_is_in_use_is_not_collected);
  tcase_add_test(tests, endless_loops_are_interrupted);
  tcase_add_test(tests, a_long_session_does_not_grow);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
