// Builtin types and functions from C: what the API promises about ownership, order and failure, what only this
// language does (64-bit ints, refusals), deep and self-holding structures, and every allocation failing in turn. What
// Python does as well is in tests/language/python/values.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/builtins.h"

static td_interpreter *interpreter;
static td_text printed, error;

static void emit(void *owner, const td_event *event) {
  (void)owner;
  if (event->payload) event->payload->release(event->payload);
  if (event->kind == TD_EVENT_OUTPUT) td_text_add_bytes(&printed, event->text, event->length);
  if (event->kind == TD_EVENT_ERROR) td_text_add(&error, event->detail);
}

static const td_event_sink sink = {.emit = emit};

static void start(void) {
  interpreter = td_interpreter_new(1);
  ck_assert_ptr_nonnull(interpreter);
  interpreter->sink = &sink;
}

static void finish(void) {
  td_text_clear(&printed);
  td_text_clear(&error);
  td_interpreter_free(interpreter);
  ck_assert_int_eq(td_memory_live(), 0);
}

static td_run_result run(const char *code) {
  td_run_options options = {.name = "test.deck", .folder = ""};
  td_text_clear(&printed);
  td_text_clear(&error);
  return td_run(interpreter, interpreter->main, code, strlen(code), &options);
}

typedef struct row {
  const char *code, *expected;
} row; // what it prints, or the first line of its error

static void check_rows(const row *rows, int count) {
  for (int i = 0; i < count; i++) {
    td_run_result result = run(rows[i].code);
    const char *got = result == TD_RUN_DONE ? printed.data : error.data;
    ck_assert_msg(got && strcmp(got, rows[i].expected) == 0, "%s\n  printed  %s\n  expected %s", rows[i].code,
                  got ? got : "nothing", rows[i].expected);
  }
}
#define CHECK_ROWS(rows) check_rows(rows, (int)(sizeof(rows) / sizeof *(rows)))

// ---- what only this language does ----
START_TEST(ints_have_64_bits) {
  static const row rows[] = {
      {"9223372036854775807 + 1",
       "error: OverflowError: integer overflow: 9223372036854775807 + 1 doesn't fit in 64 bits"},
      {"-9223372036854775807 - 2",
       "error: OverflowError: integer overflow: -9223372036854775807 - 2 doesn't fit in 64 bits"},
      {"3037000500 * 3037000500",
       "error: OverflowError: integer overflow: 3037000500 * 3037000500 doesn't fit in 64 bits"},
      {"2 ** 63", "error: OverflowError: integer overflow: 2 ** 63 doesn't fit in 64 bits"},
      {"1 << 63", "error: OverflowError: integer overflow: 1 << 63 doesn't fit in 64 bits"},
      {"x = -9223372036854775807 - 1; x // -1",
       "error: OverflowError: integer overflow: -9223372036854775808 // -1 doesn't fit in 64 bits"},
      {"x = -9223372036854775807 - 1; print(x % -1, x // 1, abs(x + 1))",
       "0 -9223372036854775808 9223372036854775807\n"},
      {"x = -9223372036854775807 - 1; abs(x)",
       "error: OverflowError: integer overflow: 0 - -9223372036854775808 doesn't fit in 64 bits"},
      {"int(1e30)", "error: OverflowError: integer overflow: 1e+30 doesn't fit in 64 bits"},
      {"int('9' * 30)",
       "error: OverflowError: integer overflow: '999999999999999999999999999999' doesn't fit in 64 bits"},
      {"sum([9223372036854775807, 1])", "error: OverflowError: integer overflow: the sum doesn't fit in 64 bits"},
      {"print((-3) ** 39, (-2) ** 63, 7 ** 22, 0 ** 1000, (-1) ** 1001)",
       "-4052555153018976267 -9223372036854775808 3909821048582988049 0 -1\n"},
      {"import math; math.factorial(21)",
       "error: OverflowError: integer overflow: the result of factorial() doesn't fit in 64 bits"},
      {"import math; print(math.comb(66, 33), math.factorial(20), math.isqrt(9223372036854775807))",
       "7219428434016265740 2432902008176640000 3037000499\n"},
      {"print(pow(3, 9223372036854775807, 1000000007), pow(2, 62, -9223372036854775807))",
       "123764908 -4611686018427387903\n"},
      {"round(9223372036854775807, -1)",
       "error: OverflowError: integer overflow: the rounded value doesn't fit in 64 bits"},
      {"(-8) ** 0.5", "error: ValueError: negative number cannot be raised to a fractional power"},
      {"for i, x in enumerate('ab', 9223372036854775807): pass",
       "error: OverflowError: integer overflow: enumerate counts past 64 bits"},
  };
  CHECK_ROWS(rows);
}
END_TEST

START_TEST(refusals_say_what_to_do_instead) {
  static const row rows[] = {
      {"open('x')", "error: NotImplementedError: open() is not in this language"},
      {"'a'.encode()", "error: TypeError: str.encode: there are no bytes in this language"},
      {"chr(0xD800)", "error: ValueError: chr(): 0xd800 is half of a surrogate pair, no character"},
      {"sum([1], axis=0)", "error: TypeError: sum() got an unexpected keyword argument 'axis'"},
      {"max([1], keepdims=True)", "error: TypeError: max() got an unexpected keyword argument 'keepdims'"},
      {"any([1], 0)", "error: TypeError: any() takes exactly one argument (2 given)"},
      {"'a' * 10 ** 12", "error: MemoryError: a str of 1000000000000 bytes is too large: 4294967294 are the limit"},
  };
  CHECK_ROWS(rows);
  ck_assert_int_eq(run("[0] * 10 ** 18"), TD_RUN_FAILED);
  ck_assert_int_eq(run("(0,) * 10 ** 18"), TD_RUN_FAILED);
  ck_assert_int_eq(run("'{:>9999999999}'.format(1)"), TD_RUN_FAILED);
}
END_TEST

START_TEST(deep_and_self_holding_structures) {
  static const row rows[] = {
      {"x = [1]; x.append(x); d = {'x': x}; x.append(d); print(x)", "[1, [...], {'x': [...]}]\n"},
      {"d = {}; d[1] = d; d[2] = d.items(); print(len(repr(d)) > 0)", "True\n"},
      {"t = ([],); t[0].append(t); print(t)", "([(...)],)\n"},
      {"x.clear(); d.clear(); t[0].clear(); print(x, d, t)", "[] {} ([],)\n"},
      {"n = []\nfor i in range(200000): n = [n]\nm = []\nfor i in range(200000): m = [m]\nt = ()\nfor i in "
       "range(200000): t = (t,)\nprint(len(n))",
       "1\n"},
  };
  CHECK_ROWS(rows);
  static const char *const deep[] = {"repr(n)", "n == m",   "n < m",  "hash(t)",       "str({1: n})",
                                     "{t}",     "'%s' % n", "f'{n}'", "sorted([n, m])"};
  for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
    ck_assert_int_eq(run(deep[i]), TD_RUN_FAILED);
    ck_assert_msg(strstr(error.data, "RecursionError"), "%s: %s", deep[i], error.data);
  }
  ck_assert_int_eq(run("n = m = t = None; print('alive')"), TD_RUN_DONE);
}
END_TEST

// ---- the API ----
static td_value str_value(const char *text) { return td_from(td_str_from(interpreter, text)); }

START_TEST(strs) {
  td_value s = str_value("ab"), more = str_value("\xC3\xA9");
  td_object *place = s.o;
  s = td_str_append(interpreter, s, more);
  ck_assert_str_eq(td_as_str(s)->data, "ab\xC3\xA9");
  ck_assert_uint_eq(td_as_str(s)->characters, 3);
  uint64_t hash = td_str_hash(td_as_str(s));
  place = s.o;
  s = td_str_append(interpreter, s, more); // sole and with room: grows where it is
  ck_assert_ptr_eq(s.o, place);
  ck_assert_uint_ne(td_str_hash(td_as_str(s)), hash);
  td_value shared = td_ref(s), longer = td_str_append(interpreter, s, more);
  ck_assert_ptr_ne(longer.o, shared.o);
  ck_assert_uint_eq(td_as_str(shared)->characters, 4);
  td_value bad = td_from(td_str_new(interpreter, "a\xFF\xC0\x80\xED\xA0\x80z", 8)); // each bad byte becomes U+FFFD
  ck_assert_uint_eq(td_as_str(bad)->characters, 8);
  td_str *one = td_str_intern(interpreter, "relu", 4), *two = td_str_intern(interpreter, "relu", 4);
  ck_assert_ptr_eq(one, two);
  td_value all[] = {shared, longer, more, bad, td_from(one), td_from(two)};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) td_unref(all[i]);
}
END_TEST

START_TEST(dicts_against_a_plain_table) {
  enum { KEYS = 500 };
  td_dict *dict = td_dict_new(interpreter);
  int64_t values[KEYS], state = 1;
  memset(values, -1, sizeof values);
  for (int round = 0; round < 20000; round++) {
    state = (state * 48271) % 2147483647;
    int key = (int)(state % KEYS);
    td_value name = key % 2 ? td_int((int64_t)key << 32) : td_double(key + 0.5), found;
    ck_assert_int_eq(td_dict_get(interpreter, dict, name, &found), values[key] >= 0);
    if (values[key] >= 0) ck_assert_int_eq(found.i, values[key]);
    if (state / KEYS % 3 == 0) {
      ck_assert_int_eq(td_dict_remove(interpreter, dict, name), values[key] >= 0);
      values[key] = -1;
    } else {
      ck_assert(td_dict_set(interpreter, dict, name, td_int(values[key] = round)));
    }
  }
  int64_t expected = 0, count = 0;
  td_value key, value;
  for (int i = 0; i < KEYS; i++) expected += values[i] >= 0;
  for (int64_t position = 0; td_dict_next(dict, &position, &key, &value); count++)
    ck_assert_int_eq(value.tag, TD_TAG_INT);
  ck_assert_int_eq(count, expected);
  ck_assert_int_eq(dict->count, expected);
  td_unref(td_from(dict));
}
END_TEST

START_TEST(numbers) {
  ck_assert_int_eq(td_number_compare(td_int(9007199254740993), td_double(9007199254740992.0)), 1);
  ck_assert_int_eq(td_number_compare(td_int(INT64_MAX), td_double(9223372036854775808.0)), -1);
  ck_assert_int_eq(td_number_compare(td_int(INT64_MIN), td_double(-9223372036854775808.0)), 0);
  ck_assert_int_eq(td_number_compare(td_double(NAN), td_int(1)), 2);
  for (int i = 0; i < 63; i++) ck_assert_uint_eq(td_int_hash(1LL << i), td_number_hash(ldexp(1, i)));
  ck_assert_uint_eq(td_int_hash(INT64_MIN), td_number_hash(-9223372036854775808.0));
}
END_TEST

static int stable_order(const int64_t *keys, const td_value *items, int64_t count, bool reverse) {
  for (int64_t i = 1; i < count; i++) {
    int64_t a = keys[items[i - 1].i], b = keys[items[i].i];
    if (a == b ? items[i - 1].i > items[i].i : (a > b) != reverse) return 0;
  }
  return 1;
}

START_TEST(sorting_is_stable) {
  enum { COUNT = 5000 };
  static const char setup[] =
      "table = [(i * 7919 % 1000) if i % 3000 < 2000 else i for i in range(5000)]\nkey = lambda i: table[i]";
  ck_assert_int_eq(run(setup), TD_RUN_DONE);
  td_str *name = td_str_intern(interpreter, "key", 3);
  td_value key = td_module_get(interpreter->main, name), items[COUNT];
  int64_t keys[COUNT];
  for (int64_t i = 0; i < COUNT; i++) keys[i] = i % 3000 < 2000 ? i * 7919 % 1000 : i;
  for (int reverse = 0; reverse < 2; reverse++) {
    for (int64_t i = 0; i < COUNT; i++) items[i] = td_int(i);
    ck_assert(td_sort(interpreter, items, COUNT, key, reverse));
    ck_assert(stable_order(keys, items, COUNT, reverse));
  }
  td_unref(td_from(name));
}
END_TEST

START_TEST(sorting_keeps_values_on_an_exception) {
  static const row rows[] = {
      {"x = [3, 1, 'a', 2] * 50; y = x.copy()\ntry: x.sort()\nexcept TypeError: print(x == y)", "True\n"},
      {"x = list(range(100)); y = x.copy()\ntry: x.sort(key=lambda v: 1 // (50 - v), reverse=True)\nexcept "
       "ZeroDivisionError: print(x == y)",
       "True\n"},
      {"x = [2, 1]\ntry: x.sort(key=lambda v: x.append(v) or v)\nexcept ValueError as e: print(e, x)",
       "list modified during sort [1, 2]\n"},
  };
  CHECK_ROWS(rows);
}
END_TEST

// ---- every allocation fails once ----
static const char work[] =
    "a = [1, 2, 3]; a.append(4); a.extend((5, 6)); a[1:3] = 'xyz'; del a[::2]; a *= 3; b = a + a; c = a * 2; d = "
    "a[::-1]\n"
    "x = [3, 1, 2]; x.sort(key=lambda v: -v, reverse=True); y = sorted('hello', key=ord); z = sorted(range(40), "
    "key=str)\n"
    "s = 'abc' + 'def'; s += 'y' * 50; s = s.upper().title().replace('a', 'bb'); p = s.split('b'); q = '-'.join(p)\n"
    "u = '%s %d %5.2f %r' % ('a', 1, 2.5, 'e'); w = '{} {x!r:>5}'.format([1], x='q'); g = 'h\xC3\xA9llo'; h = g[::-1] "
    "+ g[1]\n"
    "l = {}\n"
    "for n in range(40): l[n] = n; l[str(n)] = n\n"
    "m = l.copy(); m.update(a=1); m |= {1: 2}; o = list(l.items())[:3]; m.pop(1); m.popitem(); m.setdefault('zz', [])\n"
    "e = set(range(30)); e |= {99}; f = e - {1} | {2} & {3} ^ {4}; e.difference_update([1, 2]); str(e)\n"
    "k = list(zip([1], 'a', (3,))) + list(enumerate('ab')) + list(map(abs, [-1])) + list(filter(None, [0, 1])) + "
    "list(reversed([1, 2]))\n"
    "(1, 2) + (3,) * 2; repr([a, {1: 2}, {3}, ()]); range(10)[2:5]; (0.5).hex(); min([3, 1], key=lambda v: v); "
    "ascii('\xC3\xA9')\n"
    "format(3.5, '010.3f'); dir([]); vars(); isinstance(1, (int, str)); {1: 2}.keys() & {1}; print('out', a, "
    "sep='-')\n";

START_TEST(memory_failures) {
  bool whole = false;
  for (int64_t nth = 1; !whole && nth < 20000; nth++) {
    int64_t before = td_memory_count();
    td_memory_fail(nth, false);
    td_run_result result = run(work);
    td_memory_fail(0, false);
    whole = td_memory_count() - before < nth;
    if (whole) ck_assert_int_eq(result, TD_RUN_DONE);
    if (result == TD_RUN_FAILED)
      ck_assert_msg(error.data && strstr(error.data, "emory"), "%lld: %s", (long long)nth,
                    error.data ? error.data : "");
    finish(); // counts what is live
    start();
  }
  ck_assert(whole);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("values");
  TCase *tests = tcase_create("values");
  suite_add_tcase(suite, tests);
  tcase_add_checked_fixture(tests, start, finish);
  tcase_set_timeout(tests, 240);
  tcase_add_test(tests, ints_have_64_bits);
  tcase_add_test(tests, refusals_say_what_to_do_instead);
  tcase_add_test(tests, deep_and_self_holding_structures);
  tcase_add_test(tests, strs);
  tcase_add_test(tests, dicts_against_a_plain_table);
  tcase_add_test(tests, numbers);
  tcase_add_test(tests, sorting_is_stable);
  tcase_add_test(tests, sorting_keeps_values_on_an_exception);
  tcase_add_test(tests, memory_failures);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
