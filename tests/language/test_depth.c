// Depth without end, on stacks of 8 MB, 1 MB and 256 KB: recursion of every kind, and values and texts that are nested
// 100,000 deep. Each ends with RecursionError or with success; the session lives on and gives every byte back.
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "tests/language/runs.h"

// refusal: another error that bounds it, NULL: none
typedef struct script { const char *name, *code, *refusal; } script;

// Each prints "ok" where it ends well, and must end in that or in an uncaught RecursionError (or in its refusal).
static const script scripts[] = {
    {"functions", "def f(n):\n    return f(n + 1) + 1\nf(0)\n", NULL},
    {"two_functions", "def f(n):\n    return g(n=n)\ndef g(n, **k):\n    return f(*[n])\nf(0)\n", NULL},
    {"lambdas", "f = lambda n: f(n) if n else 0\nf(1)\n", NULL},
    {"caught_once",
     "def f(n):\n    try:\n        return f(n + 1)\n    except RecursionError:\n        return n\nn = f(0)\nassert n > "
     "50\nprint('ok')\n",
     NULL},
    {"methods", "class A:\n    def m(self):\n        return self.m()\nA().m()\n", NULL},
    {"supers",
     "class A:\n    def m(self):\n        return self.m()\nclass B(A):\n    def m(self):\n        return "
     "super().m()\nB().m()\n",
     NULL},
    {"constructors", "class A:\n    def __init__(self):\n        self.a = A()\nA()\n", NULL},
    {"properties", "class A:\n    @property\n    def p(self):\n        return self.p\nA().p\n", NULL},
    {"setters",
     "class A:\n    @property\n    def p(self):\n        return 1\n    @p.setter\n    def p(self, v):\n        self.p "
     "= v\nA().p = 1\n",
     NULL},
    {"getattr", "class A:\n    def __getattr__(self, name):\n        return self.missing\nA().x\n", NULL},
    {"setattr", "class A:\n    def __setattr__(self, name, v):\n        self.x = v\nA().x = 1\n", NULL},
    {"repr", "class A:\n    def __repr__(self):\n        return repr(self)\nA()\n", NULL},
    {"repr_list", "class A:\n    def __repr__(self):\n        return repr([self])\nprint(A())\n", NULL},
    {"str", "class A:\n    def __str__(self):\n        return f'{self}'\nprint(A())\n", NULL},
    {"format", "class A:\n    def __format__(self, spec):\n        return '{:x}'.format(self)\nf'{A()}'\n", NULL},
    {"operators", "class A:\n    def __add__(self, other):\n        return self + other\nA() + 1\n", NULL},
    {"reflected", "class A:\n    def __radd__(self, other):\n        return other + self\n1 + A()\n", NULL},
    {"negative", "class A:\n    def __neg__(self):\n        return -self\n-A()\n", NULL},
    {"equal", "class A:\n    def __eq__(self, other):\n        return self == other\nA() == 1\n", NULL},
    {"less", "class A:\n    def __lt__(self, other):\n        return sorted([self, other])\nsorted([A(), A()])\n",
     NULL},
    {"hash", "class A:\n    def __hash__(self):\n        return hash(self)\nhash(A())\n", NULL},
    {"hash_dict", "class A:\n    def __hash__(self):\n        return len({self: 1})\n{A(): 1}\n", NULL},
    {"truth", "class A:\n    def __bool__(self):\n        return not self\nbool(A())\n", NULL},
    {"length", "class A:\n    def __len__(self):\n        return len(self)\nlen(A())\n", NULL},
    {"items", "class A:\n    def __getitem__(self, k):\n        return self[k]\nA()[1]\n", NULL},
    {"set_items", "class A:\n    def __setitem__(self, k, v):\n        self[k] = v\nA()[1] = 2\n", NULL},
    {"contains", "class A:\n    def __contains__(self, k):\n        return k in self\n1 in A()\n", NULL},
    {"calls", "class A:\n    def __call__(self):\n        return self()\nA()()\n", NULL},
    {"iter", "class A:\n    def __iter__(self):\n        return iter(self)\nlist(A())\n", NULL},
    {"iter_for",
     "class A:\n    def __iter__(self):\n        for x in self:\n            pass\nfor x in A():\n    pass\n", NULL},
    {"next",
     "class A:\n    def __iter__(self):\n        return self\n    def __next__(self):\n        return "
     "next(self)\nlist(A())\n",
     NULL},
    {"with",
     "class A:\n    def __enter__(self):\n        with self:\n            pass\n    def __exit__(self, *a):\n        "
     "pass\nwith A():\n    pass\n",
     NULL},
    {"exit",
     "class A:\n    def __enter__(self):\n        pass\n    def __exit__(self, *a):\n        with self:\n            "
     "pass\nwith A():\n    pass\n",
     NULL},
    {"sort_keys", "def k(v):\n    return sorted([3, 1], key=k)\nk(0)\n", NULL},
    {"max_keys", "def k(v):\n    return max([3, 1], key=k)\nk(0)\n", NULL},
    {"map", "def f(v):\n    return list(map(f, [v]))\nf(1)\n", NULL},
    {"filter", "def f(v):\n    return list(filter(f, [v]))\nf(1)\n", NULL},
    {"generators", "def f(v):\n    return sum(f(v) for x in [1])\nf(1)\n", NULL},
    {"comprehensions", "def f(v):\n    return [f(v) for x in [1]]\nf(1)\n", NULL},
    {"dict_comprehensions", "def f(v):\n    return {k: f(v) for k in [1]}\nf(1)\n", NULL},
    {"decorators", "def f(g):\n    @f\n    def h():\n        pass\n    return h\nf(1)\n", NULL},
    {"class_bodies", "def f():\n    class A:\n        x = f()\nf()\n", NULL},
    {"fallbacks", "def f():\n    def g(x=f()):\n        pass\nf()\n", NULL},
    {"custom_gradients", "def f(x):\n    return grad(f)(x)\nf(1.0)\n", "tapes are open"},
    {"nested_tapes",
     "def f(x):\n    with GradientTape() as t:\n        t.watch(x)\n        return f(x * 2)\nf(tensor(1.0))\n",
     "tapes are open"},
    {"self_list", "a = []\na.append(a)\nd = {1: a}\nd[2] = d\na.append(d)\nprint(a, d)\nprint('ok')\n", NULL},
    {"self_equal", "a = []\na.append(a)\nb = []\nb.append(b)\na == b\n", NULL},
    {"self_less", "a = []\na.append(a)\nb = []\nb.append(b)\na < b\n", NULL},
    {"self_sorted", "a = []\na.append(a)\nb = []\nb.append(b)\nsorted([a, b])\n", NULL},
    {"self_tensor", "a = []\na.append(a)\ntensor(a)\n", "nested deeper"},
    {"self_isinstance", "t = (int,)\nfor i in range(100000):\n    t = (t,)\nprint(isinstance('a', t))\nprint('ok')\n",
     NULL},
    {"print_lists", "a = []\nfor i in range(100000):\n    a = [a]\nprint(a)\n", NULL},
    {"print_dicts", "a = {}\nfor i in range(100000):\n    a = {1: a}\nprint(a)\n", NULL},
    {"print_tuples", "a = ()\nfor i in range(100000):\n    a = (a,)\nstr(a)\n", NULL},
    {"equal_tuples", "a = b = ()\nfor i in range(100000):\n    a = (a,)\n    b = (b,)\na == b\n", NULL},
    {"equal_dicts", "a = {}\nb = {}\nfor i in range(100000):\n    a = {1: a}\n    b = {1: b}\na == b\n", NULL},
    {"less_tuples", "a = b = ()\nfor i in range(100000):\n    a = (a,)\n    b = (b,)\na < b\n", NULL},
    {"hash_tuples", "a = ()\nfor i in range(100000):\n    a = (a,)\nhash(a)\n", NULL},
    {"in_lists", "a = b = ()\nfor i in range(100000):\n    a = (a,)\n    b = (b,)\na in [b]\n", NULL},
    {"tensor_lists", "a = [1.0]\nfor i in range(100000):\n    a = [a]\ntensor(a)\n", "nested deeper"},
    {"free_lists", "a = []\nfor i in range(100000):\n    a = [a]\na = None\nprint('ok')\n", NULL},
    {"free_tuples", "a = ()\nfor i in range(100000):\n    a = (a, i)\ndel a\nprint('ok')\n", NULL},
    {"free_dicts", "a = {}\nfor i in range(100000):\n    a = {'k': a}\na = None\nprint('ok')\n", NULL},
    {"free_instances",
     "class N:\n    pass\na = None\nfor i in range(100000):\n    n = N()\n    n.next = a\n    a = n\na = n = "
     "None\nprint('ok')\n",
     NULL},
    {"free_closures",
     "def link(g):\n    return lambda: g\na = None\nfor i in range(100000):\n    a = link(a)\na = None\nprint('ok')\n",
     NULL},
    {"free_methods",
     "class N:\n    def m(self):\n        pass\na = None\nfor i in range(100000):\n    n = N()\n    n.next = a\n    a "
     "= n.m\na = n = None\nprint('ok')\n",
     NULL},
    {"free_maps", "a = [1]\nfor i in range(100000):\n    a = map(abs, a)\na = None\nprint('ok')\n", NULL},
    {"free_generators",
     "def link(g):\n    return (x for x in g)\na = [1]\nfor i in range(100000):\n    a = link(a)\na = "
     "None\nprint('ok')\n",
     NULL},
    {"free_causes", "e = None\nfor i in range(100000):\n    n = ValueError(e)\n    e = n\ne = n = None\nprint('ok')\n",
     NULL},
    {"free_cycle",
     "first = a = []\nfor i in range(100000):\n    b = [a]\n    a = b\nfirst.append(a)\nfirst = a = b = "
     "None\nprint('ok')\n",
     NULL},
    {"free_slices", "a = None\nfor i in range(100000):\n    a = slice(a, i)\na = None\nprint('ok')\n", NULL},
    {"free_classes",
     "class A:\n    pass\nfor i in range(100000 // 10):\n    class A(A):\n        pass\nprint(A().__class__ is A, "
     "hasattr(A(), 'no'))\nA = None\nprint('ok')\n",
     NULL},
    {"kept_lists", "a = []\nfor i in range(100000):\n    a = [a]\nprint('ok')\n", NULL},
    {"next_maps", "a = iter([1])\nfor i in range(100000):\n    a = map(abs, a)\nlist(a)\n", NULL},
    {"next_generators",
     "def link(g):\n    return (x for x in g)\na = iter([1])\nfor i in range(100000):\n    a = link(a)\nlist(a)\n",
     NULL},
    {"next_zips", "a = iter([1])\nfor i in range(100000):\n    a = zip(a)\nlist(a)\n", NULL},
    {"next_enumerates", "a = iter([1])\nfor i in range(100000):\n    a = enumerate(a)\nlist(a)\n", NULL},
    {"next_filters", "a = iter([1])\nfor i in range(100000):\n    a = filter(None, a)\nlist(a)\n", NULL},
    {"unpack", "a = []\nfor i in range(100000):\n    a = [a]\nprint(*a)\n", NULL},
    {"causes",
     "def f(n):\n    try:\n        1 // 0\n    except ZeroDivisionError as e:\n        raise ValueError(n) from e\n"
     "e = None\nfor i in range(20000):\n    try:\n        raise ValueError(i) from e\n    except ValueError as n:\n    "
     "    e = n\nraise e\n",
     "ValueError: 19999"},
    {"records",
     "x = Variable(1.0)\nwith GradientTape() as t:\n    y = x * 1.0\n    for i in range(100000):\n        y = y + "
     "1.0\nprint(float(t.gradient(y, x)))\n"
     "y = t = None\nprint('ok')\n",
     NULL},
};
enum { SCRIPTS = sizeof scripts / sizeof *scripts };

// Texts that nest COUNT deep: before, then COUNT times open, then middle, then COUNT times close.
typedef struct text { const char *name, *before, *open, *middle, *close; } text;
static const text texts[] = {
    {"brackets", "", "[", "", "]"},
    {"open_brackets", "", "[", "", ""},
    {"closed_brackets", "", "", "", "]"},
    {"parentheses", "", "(", "1", ")"},
    {"braces", "", "{", "1", "}"},
    {"dicts", "", "{1:", "1", "}"},
    {"calls", "print(", "abs(", "1", "))"},
    {"called", "f = lambda: f\nf", "()", "", ""},
    {"items", "a = []\na", "[0]", "", ""},
    {"attributes", "a = 1\na", ".b", "", ""},
    {"nots", "x = ", "not ", "1", ""},
    {"minuses", "x = ", "-", "1", ""},
    {"sums", "x = 1", " + 1", "", ""},
    {"powers", "x = 1", " ** 1", "", ""},
    {"ands", "x = 1", " and 1", "", ""},
    {"compares", "x = 1", " < 1", "", ""},
    {"conditionals", "x = 1", " if 1 else 1", "", ""},
    {"lambdas", "x = ", "lambda: ", "1", ""},
    {"assignments", "", "x = ", "1", ""},
    {"targets", "", "[", "x", "] = 1"},
    {"tuples", "x = ", "(", "", ",)"},
    {"comprehensions", "x = ", "[", "1", " for i in [1]]"},
    {"slices", "x = a", "[", "1", ":]"},
    {"stars", "print(", "*", "1", ")"},
    {"elifs", "if 0:\n    pass\n", "elif 0:\n    pass\n", "", ""},
    {"strings", "x = ", "'a' ", "'b'", ""},
    {"statements", "", "pass\n", "", ""},
    {"semicolons", "", "pass; ", "pass", ""},
    {"fors", "", "for x in y:", "", ""},
};
enum { TEXTS = sizeof texts / sizeof *texts, NESTED = 100000 };

static runs session;

static char *nested_text(const text *t, size_t *length) {
  td_text made = {0};
  td_text_add(&made, t->before);
  for (int i = 0; i < NESTED; i++) td_text_add(&made, t->open);
  td_text_add(&made, t->middle);
  for (int i = 0; i < NESTED; i++) td_text_add(&made, t->close);
  td_text_add(&made, "\n");
  *length = made.length;
  return td_text_take(&made);
}

// def in def in def: each line is indented deeper than the last.
static char *indented_text(const char *line, size_t *length) {
  td_text made = {0};
  for (size_t i = 0; i < 1000; i++) {
    for (size_t j = 0; j < i; j++) td_text_add_char(&made, ' ');
    td_text_add(&made, line);
  }
  for (size_t j = 0; j < 1000; j++) td_text_add_char(&made, ' ');
  td_text_add(&made, "pass\n");
  *length = made.length;
  return td_text_take(&made);
}

typedef struct job { const char *name, *code, *refusal; size_t length; bool ends; bool failed; } job;

static void *work(void *argument) {
  job *j = argument;
  j->failed = true;
  if (!runs_open(&session, 1)) return NULL;
  td_run_result result = runs_text(&session, j->code, j->length);
  const char *error = session.error;
  bool ended = result == TD_RUN_DONE && (!j->ends || strstr(session.printed, "ok\n"));
  j->failed = !ended && (result != TD_RUN_FAILED ||
                         (j->ends && !strstr(error, "RecursionError") && !(j->refusal && strstr(error, j->refusal))) ||
                         strstr(error, "emory"));
  if (j->failed) fprintf(stderr, "%s: %.300s%.1000s\n", j->name, session.printed, error);
  result = runs_code(&session, "def f(n):\n    return n if n == 0 else f(n - 1)\nprint(f(10))\n");
  if (result != TD_RUN_DONE || strcmp(session.printed, "0\n")) {
    j->failed = true;
    fprintf(stderr, "%s: afterwards f(10) gave %.300s%.1000s\n", j->name, session.printed, session.error);
  }
  runs_close(&session);
  return NULL;
}

// Runs the text with so many bytes of stack.
static void check_with_stack(job j, size_t stack) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  ck_assert_int_eq(pthread_attr_setstacksize(&attributes, stack), 0);
  ck_assert_int_eq(pthread_create(&thread, &attributes, work, &j), 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, NULL);
  ck_assert_msg(!j.failed, "%s on a stack of %zu KiB", j.name, stack >> 10);
  ck_assert_msg(td_memory_live() == 0, "%s on a stack of %zu KiB: %lld bytes are left", j.name, stack >> 10,
                (long long)td_memory_live());
}

static const size_t stacks[] = {(size_t)8 << 20, (size_t)1 << 20, (size_t)256 << 10};
enum { STACKS = sizeof stacks / sizeof *stacks };

START_TEST(recursion_ends) {
  const script *s = &scripts[_i / STACKS];
  check_with_stack(
      (job){.name = s->name, .code = s->code, .refusal = s->refusal, .length = strlen(s->code), .ends = true},
      stacks[_i % STACKS]);
}
END_TEST

START_TEST(nested_texts_end) {
  job j = {.name = texts[_i / STACKS].name};
  char *code = nested_text(&texts[_i / STACKS], &j.length);
  static char kept[4 << 20];
  ck_assert_uint_lt(j.length, sizeof kept);
  memcpy(kept, code, j.length + 1);
  td_memory_free(code);
  j.code = kept;
  check_with_stack(j, stacks[_i % STACKS]);
}
END_TEST

START_TEST(indented_texts_end) {
  static const char *const lines[] = {
      "def f():\n", "class A:\n", "if 1:\n", "for x in [1]:\n", "while 0:\n", "try:\n", "with x:\n"};
  static char kept[4 << 20];
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    job j = {.name = lines[i]};
    char *code = indented_text(lines[i], &j.length);
    memcpy(kept, code, j.length + 1);
    td_memory_free(code);
    j.code = kept;
    check_with_stack(j, stacks[_i]);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("language/depth");
  const struct { const char *name; const TTest *test; int count;
  } cases[] = {{"recursion", recursion_ends, SCRIPTS * STACKS},
               {"texts", nested_texts_end, TEXTS * STACKS},
               {"indented", indented_texts_end, STACKS}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TCase *test = tcase_create(cases[i].name);
    tcase_set_timeout(test, 300);
    tcase_add_loop_test(test, cases[i].test, 0, cases[i].count);
    suite_add_tcase(suite, test);
  }
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
