// A long session doesn't grow: after a warm-up, 100,000 cells and a million small ops leave less than 1 MiB behind, in
// live bytes and in what the process holds.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "tests/language/runs.h"

static runs session;

#if defined(__SANITIZE_ADDRESS__)
enum { PART = 20, RESIDENT = 0 }; // a sanitizer keeps freed memory back
#else
enum { PART = 1, RESIDENT = 1 };
#endif
enum { CELLS = 100000 / PART, STEPS = 1000000 / PART, GROWTH = 1 << 20 };

static void start(void) { ck_assert(runs_open(&session, 1)); }
static void finish(void) {
  runs_close(&session);
  ck_assert_int_eq(td_memory_live(), 0);
}

static int64_t resident(void) {
  long long pages = 0, all;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%lld %lld", &all, &pages) != 2) pages = 0;
  if (file) fclose(file);
  return RESIDENT * pages * sysconf(_SC_PAGESIZE);
}

typedef struct sizes { int64_t live, resident; } sizes;
static sizes measure(void) { return (sizes){td_memory_live(), resident()}; }

static void check_growth(const char *name, sizes before) {
  sizes after = measure();
  ck_assert_msg(after.live - before.live < GROWTH && after.resident - before.resident < GROWTH,
                "%s: %lld live bytes more, %lld resident", name, (long long)(after.live - before.live),
                (long long)(after.resident - before.resident));
}

static void run(const char *code) {
  ck_assert_msg(runs_code(&session, code) == TD_RUN_DONE, "%s: %s", code, session.error);
}

static void run_cells(int from, int count) {
  static const char *const cells[] = {"x = %d\nx + 1\n",
                                      "def f(a):\n    return a * %d\nf(2)\n",
                                      "s = 'text %d'\ns.upper()\n",
                                      "[i * %d for i in range(5)]\n",
                                      "class A:\n    n = %d\nA().n\n",
                                      "t = tensor([1.0, 2.0]) * %d\n",
                                      "try:\n    1 // 0\nexcept ZeroDivisionError as e:\n    print(e, %d)\n",
                                      "f'{%d:>10}'\n",
                                      "with GradientTape() as tape:\n    y = w * %d\ntape.gradient(y, w)\n",
                                      "y = undefined_%d\n",
                                      "1 +* %d\n"};
  char code[200];
  for (int i = from; i < from + count; i++) {
    int which = i % (int)(sizeof cells / sizeof *cells);
    snprintf(code, sizeof code, cells[which], i % 1000); // the last two are errors
    ck_assert(runs_code(&session, code) == TD_RUN_DONE || which >= 9);
  }
}

START_TEST(many_cells) {
  run("w = Variable(3.0)");
  run_cells(0, CELLS / 10);
  sizes before = measure();
  run_cells(CELLS / 10, CELLS);
  check_growth("cells", before);
}
END_TEST

// Each is a loop of a million small ops, at its second run.
START_TEST(many_small_ops) {
  static const char *const loops[] = {
      "for i in range(%d):\n    x = i * 2 + 1\n",
      "for i in range(%d):\n    s = 'a' + str(i)\n",
      "for i in range(%d // 4):\n    a = [i, (i, i)]\n    d = {i: a, 'k': 1}\n    s = {i}\n",
      "x = tensor([1.0, 2.0])\nfor i in range(%d // 4):\n    y = x * 2.0 + 1.0\n",
      ("w = Variable([1.0, 2.0])\nfor i in range(%d // 20):\n    with GradientTape() as t:\n        y = (w * w).sum()\n"
       "    g = t.gradient(y, w)\n    w.assign_sub(g * 0.01)\n"),
      "class N:\n    def __init__(self):\n        self.me = self\nfor i in range(%d // 10):\n    N()\n",
      "for i in range(%d // 10):\n    try:\n        raise ValueError(i)\n    except ValueError as e:\n        pass\n",
      "d = {}\nfor i in range(%d // 2):\n    d[i] = i\n    if i >= 10:\n        del d[i - 10]\n",
      "def outer(n):\n    def inner():\n        return n\n    return inner\nfor i in range(%d // 4):\n    outer(i)()\n",
      "for i in range(%d // 100):\n    f = lambda q: [z + q for z in range(10)]\n    sum(v for v in f(i))\n",
  };
  for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
    char code[400];
    snprintf(code, sizeof code, loops[i], STEPS);
    run(code);
    sizes before = measure();
    run(code);
    check_growth(code, before);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("language/growth");
  const struct { const char *name; const TTest *test; } cases[] = {{"cells", many_cells}, {"ops", many_small_ops}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TCase *test = tcase_create(cases[i].name);
    tcase_add_checked_fixture(test, start, finish);
    tcase_set_timeout(test, 300);
    tcase_add_test(test, cases[i].test);
    suite_add_tcase(suite, test);
  }
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
