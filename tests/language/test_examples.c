// Every op's example, which its help page shows: it runs, and its last line gives what stands after "# ".
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/ops/op.h"
#include "tests/language/runs.h"

static runs session;

static void start(void) { ck_assert(runs_open(&session, 1)); }

static void finish(void) {
  runs_close(&session);
  ck_assert_int_eq(td_memory_live(), 0);
}

START_TEST(example_gives_what_it_says) {
  const td_op *op = td_op_at(_i);
  if (!op->example) return;
  const char *expected = NULL;
  for (const char *at = op->example; (at = strstr(at, "# ")); at += 2) expected = at + 2;
  ck_assert_msg(expected, "%s: its example doesn't say what it gives", op->name);
  td_run_result result = runs_code(&session, op->example);
  ck_assert_msg(result == TD_RUN_DONE, "%s: %s\n%s", op->name, op->example, session.error);
  size_t length = strlen(session.printed), wanted = strlen(expected);
  while (length && session.printed[length - 1] == '\n') session.printed[--length] = 0;
  const char *last = length >= wanted ? session.printed + length - wanted : session.printed;
  bool whole = last == session.printed || last[-1] == '\n';
  ck_assert_msg(whole && !strcmp(last, expected), "%s: %s\ngives %s", op->name, op->example, session.printed);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("examples");
  TCase *each = tcase_create("each op");
  tcase_add_checked_fixture(each, start, finish);
  tcase_add_loop_test(each, example_gives_what_it_says, 0, td_op_count());
  suite_add_tcase(suite, each);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
