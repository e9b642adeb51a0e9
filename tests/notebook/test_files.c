// The disk is full, a read fails, no descriptor is left: at the n-th file call, once and for ever, for each thing that
// a session does with files. It ends with a message that names the path and the reason; the old file is whole; the
// session keeps its values; the same thing works the second time and nothing is left beside the file.
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/line/history.h"
#include "repl/notebook/command.h"
#include "repl/notebook/deck.h"
#include "repl/notebook/pictures.h"
#include "tests/language/runs.h"

enum { CALLS = 40 }; // more than any of the scenarios makes
static const int errors[] = {ENOSPC, EIO, EMFILE, EDQUOT};
enum { ERRORS = sizeof errors / sizeof *errors };

static runs session;
static const char old_text[] = "# what stood there\n";

static void write_file(const char *path, const char *text, size_t size) {
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(text, 1, size, file), size);
  ck_assert_int_eq(fclose(file), 0);
}

static void check_file(const char *path, const char *wanted, const char *or_wanted) {
  char text[512];
  FILE *file = fopen(path, "rb");
  ck_assert_msg(file != NULL, "%s is gone", path);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  ck_assert_msg(strcmp(text, wanted) == 0 || (or_wanted && strcmp(text, or_wanted) == 0), "%s holds:\n%s", path, text);
}

static void check_no_leftover(void) {
  DIR *folder = opendir(".");
  ck_assert_ptr_nonnull(folder);
  for (struct dirent *entry; (entry = readdir(folder));)
    ck_assert_msg(!strstr(entry->d_name, ".tapedeck-"), "%s is left", entry->d_name);
  closedir(folder);
}

static void start(void) {
  ck_assert(runs_open(&session, 1));
  session.interpreter->command = td_command_run;
  ck_assert(td_pictures_register(session.interpreter));
  ck_assert_int_eq(runs_code(&session, "x = [1, 2]\nw = Variable([1.0, 2.0])\n"), TD_RUN_DONE);
}

static void finish(void) {
  runs_close(&session);
  ck_assert_int_eq(td_memory_live(), 0);
}

// code: what runs; path: what its errors must name
static void check_code(const char *code, const char *path, int error, int64_t nth, bool forever) {
  td_file_fail(nth, error, forever);
  td_run_result result = runs_code(&session, code);
  td_file_fail(0, 0, false);
  if (result != TD_RUN_DONE)
    ck_assert_msg(strstr(session.error, path) && strstr(session.error, strerror(error)), "%s, call %lld, %s: %s", code,
                  (long long)nth, strerror(error), session.error);
  if (forever && nth == 1) ck_assert_msg(result == TD_RUN_FAILED, "%s: all file calls fail, but it is done", code);
  ck_assert_int_eq(runs_code(&session, "print(x, w.tolist())"), TD_RUN_DONE);
  ck_assert_str_eq(session.printed, "[1, 2] [1.0, 2.0]\n");
}

static void check_works(const char *code) {
  ck_assert_msg(runs_code(&session, code) == TD_RUN_DONE, "%s, the second time: %s", code, session.error);
}

#define EACH_FAILURE                                                                                                   \
  for (int e = 0; e < ERRORS; e++)                                                                                     \
    for (int forever = 0; forever < 2; forever++)                                                                      \
      for (int64_t nth = 1; nth <= CALLS; nth++)

START_TEST(saving_cells) {
  static const char cells[] = "# %%\nx = 1\n\n# %%\nprint(x)\n\n";
  td_interpreter *I = session.interpreter;
  ck_assert_int_eq(runs_code(&session, "In = ['', 'x = 1', 'print(x)']"), TD_RUN_DONE);
  td_str *name = td_str_intern(I, "In", 2);
  ck_assert(td_builtin_define(I, "In", td_ref(td_module_get(I->main, name))));
  td_unref(td_from(name));
  EACH_FAILURE {
    write_file("out.deck", old_text, strlen(old_text));
    check_code("%save out.deck", "out.deck", errors[e], nth, forever);
    check_file("out.deck", old_text, cells);
    check_works("%save out.deck");
    check_file("out.deck", cells, NULL);
    check_no_leftover();
  }
}
END_TEST

START_TEST(running_a_deck) {
  static const char deck[] = "# %%\ny = 1\n# %%\ny += 1\n";
  write_file("in.deck", deck, sizeof deck - 1);
  EACH_FAILURE {
    check_code("%run in.deck", "in.deck", errors[e], nth, forever);
    check_works("%run in.deck\nassert y == 2");
  }
}
END_TEST

START_TEST(importing_a_deck) {
  static const char deck[] = "y = 1\n";
  write_file("helper_deck.deck", deck, sizeof deck - 1);
  EACH_FAILURE {
    check_code("import helper_deck", "helper_deck", errors[e], nth, forever);
    check_works("import helper_deck\nassert helper_deck.y == 1");
    finish();
    start(); // a module is read once in a session
  }
}
END_TEST

START_TEST(loading_a_tensor) {
  static const char idx[] = "\0\0\x08\1\0\0\0\3abc";
  write_file("in.idx", idx, sizeof idx - 1);
  EACH_FAILURE {
    check_code("t = load_idx('in.idx')", "in.idx", errors[e], nth, forever);
    check_works("t = load_idx('in.idx')\nassert t.tolist() == [97, 98, 99]");
  }
}
END_TEST

START_TEST(pictures_in_files) {
  static const char *const codes[] = {"plot_save('out.png', 'loss', width=40, height=30)",
                                      "show(ones((2, 3)), kind='image', save='out.png')"};
  ck_assert_int_eq(runs_code(&session, "plot('loss', 1)"), TD_RUN_DONE);
  if (runs_code(&session, codes[0]) != TD_RUN_DONE && strstr(session.error, "no libpng")) return;
  for (int i = 0; i < 2; i++)
    EACH_FAILURE {
      write_file("out.png", old_text, strlen(old_text));
      check_code(codes[i], "out.png", errors[e], nth, forever);
      check_works(codes[i]);
      check_works("assert load_png('out.png').ndim == 3");
      check_no_leftover();
    }
}
END_TEST

START_TEST(reading_a_deck) {
  static const char text[] = "# %%\nx = 1\n";
  write_file("in.deck", text, sizeof text - 1);
  td_context *context = session.interpreter->context;
  EACH_FAILURE {
    td_deck deck;
    td_file_fail(nth, errors[e], forever);
    int code = td_deck_read(context, "in.deck", &deck);
    td_file_fail(0, 0, false);
    ck_assert(code == TD_OK ||
              (strstr(context->error.message, "in.deck") && strstr(context->error.message, strerror(errors[e]))));
    if (code == TD_OK) td_deck_clear(&deck);
    td_error_clear(context);
    ck_assert_int_eq(td_deck_read(context, "in.deck", &deck), TD_OK);
    ck_assert_int_eq(deck.count, 1);
    td_deck_clear(&deck);
  }
}
END_TEST

typedef struct lines { int count; char text[4][64]; } lines;

static void keep_line(const char *cell, void *argument) {
  lines *l = argument;
  ck_assert_int_lt(l->count, 4);
  snprintf(l->text[l->count++], sizeof *l->text, "%s", cell);
}

START_TEST(keeping_the_history) {
  setenv("XDG_DATA_HOME", "data", 1);
  EACH_FAILURE {
    unlink("data/tapedeck/history");
    td_history_append("first = 1\nfirst");
    td_file_fail(nth, errors[e], forever);
    td_history_append("second");
    lines now = {0};
    td_history_load(keep_line, &now);
    td_file_fail(0, 0, false);
    td_history_append("third");
    lines later = {0};
    td_history_load(keep_line, &later);
    ck_assert_msg(later.count == 2 || (later.count == 3 && !strcmp(later.text[1], "second")), "%d cells", later.count);
    ck_assert_str_eq(later.text[0], "first = 1\nfirst");
    ck_assert_str_eq(later.text[later.count - 1], "third");
  }
}
END_TEST

START_TEST(interrupted_reads_go_on) {
  write_file("in.deck", "y = 1\n", 6);
  for (int64_t nth = 1; nth <= CALLS; nth++) {
    td_file_fail(nth, EINTR, false);
    ck_assert_msg(runs_code(&session, "%run in.deck") == TD_RUN_DONE, "call %lld: %s", (long long)nth, session.error);
    td_file_fail(0, 0, false);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("notebook/files");
  const struct { const char *name; const TTest *test; } cases[] = {
      {"save", saving_cells}, {"run", running_a_deck}, {"import", importing_a_deck}, {"idx", loading_a_tensor},
      {"pictures", pictures_in_files}, {"deck", reading_a_deck}, {"history", keeping_the_history},
      {"interrupted", interrupted_reads_go_on}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TCase *test = tcase_create(cases[i].name);
    tcase_add_checked_fixture(test, start, finish);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, cases[i].test);
    suite_add_tcase(suite, test);
  }
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
