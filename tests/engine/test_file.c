// File calls: reading, atomic saving, appending. Every call of a save is made to fail in turn: the old file or the new
// one must be there, whole, with nothing beside it. The tests write into the working folder.
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/map.h"
#include "engine/base/memory.h"

static td_context *context;
static int64_t live_before;
static int warnings;
static char folder[sizeof "files-XXXXXX"];

static void count_warning(void *owner, const char *message) {
  (void)owner, (void)message;
  warnings++;
}

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
  context->warn = count_warning;
  strcpy(folder, "files-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(chdir(folder), 0);
}

static void finish(void) {
  td_file_fail(0, 0, false);
  td_context_free(context);
  ck_assert_int_eq(system("rm -rf ./* ./.[!.]*"), 0);
  ck_assert_int_eq(chdir(".."), 0);
  rmdir(folder);
  ck_assert_int_eq(td_memory_live(), live_before);
}

static int entries(void) { // files in the working folder
  int count = 0;
  DIR *dir = opendir(".");
  for (struct dirent *entry; (entry = readdir(dir));)
    count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
  closedir(dir);
  return count;
}

static bool holds(const char *path, const char *text) {
  char *bytes;
  size_t size;
  if (td_file_read(context, path, 1 << 20, &bytes, &size)) return false;
  bool same = size == strlen(text) && !memcmp(bytes, text, size) && !bytes[size];
  td_memory_free(bytes);
  return same;
}

static int save(const char *path, const char *text) { return td_file_save(context, path, text, strlen(text)); }

static mode_t mode_of(const char *path) {
  struct stat status;
  return lstat(path, &status) ? 0 : status.st_mode;
}

START_TEST(save_and_read) {
  ck_assert(!td_file_exists("a"));
  ck_assert_int_eq(save("a", "old"), TD_OK);
  ck_assert(td_file_exists("a"));
  ck_assert(holds("a", "old"));
  ck_assert_int_eq(save("a", ""), TD_OK);
  ck_assert(holds("a", ""));
  ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(large_file) {
  size_t size = 3000000, got;
  char *bytes = td_memory_new(size), *back;
  for (size_t i = 0; i < size; i++) bytes[i] = (char)(i * 31 + i / 256);
  ck_assert_int_eq(td_file_save(context, "a", bytes, size), TD_OK);
  ck_assert_int_eq(td_file_read(context, "a", size, &back, &got), TD_OK);
  ck_assert_uint_eq(got, size);
  ck_assert(!memcmp(bytes, back, size));
  td_memory_free(back);
  ck_assert_int_eq(td_file_read(context, "a", size - 1, &back, &got), TD_ERROR_FILE);
  ck_assert_ptr_null(back);
  ck_assert_ptr_nonnull(strstr(context->error.message, "larger than the 2999999 bytes"));
  td_memory_free(bytes);
}
END_TEST

START_TEST(read_refuses) {
  char *bytes;
  size_t size;
  ck_assert_int_eq(td_file_read(context, "none", 100, &bytes, &size), TD_ERROR_FILE);
  ck_assert_str_eq(context->error.message, "read: 'none': No such file or directory");
  ck_assert_int_eq(td_file_read(context, ".", 100, &bytes, &size), TD_ERROR_FILE);
  ck_assert_str_eq(context->error.message, "read: '.': Is a directory");
  ck_assert_int_eq(td_file_read(context, "/dev/zero", 300000, &bytes, &size), TD_ERROR_FILE);
  ck_assert_ptr_nonnull(strstr(context->error.message, "larger than"));
}
END_TEST

START_TEST(mode_and_links_are_kept) {
  ck_assert_int_eq(save("real", "old"), TD_OK);
  ck_assert_int_eq(chmod("real", 0640), 0);
  ck_assert_int_eq(mkdir("sub", 0700), 0);
  ck_assert_int_eq(symlink("../real", "sub/link"), 0);
  ck_assert_int_eq(symlink("sub/link", "far"), 0);
  ck_assert_int_eq(save("far", "new"), TD_OK);
  ck_assert(holds("real", "new"));
  ck_assert_uint_eq(mode_of("real") & 07777, 0640);
  ck_assert(S_ISLNK(mode_of("far")) && S_ISLNK(mode_of("sub/link")));
  ck_assert_int_eq(symlink("absent", "dangling"), 0);
  ck_assert_int_eq(save("dangling", "made"), TD_OK);
  ck_assert(holds("absent", "made"));
  ck_assert_int_eq(symlink("round", "round"), 0);
  ck_assert_int_eq(save("round", "x"), TD_ERROR_FILE);
}
END_TEST

START_TEST(new_file_obeys_umask) {
  mode_t old = umask(027);
  ck_assert_int_eq(save("a", "x"), TD_OK);
  umask(old);
  ck_assert_uint_eq(mode_of("a") & 07777, 0640);
}
END_TEST

START_TEST(save_refuses) {
  ck_assert_int_eq(mkdir("sub", 0700), 0);
  ck_assert_int_eq(save("sub", "x"), TD_ERROR_FILE);
  ck_assert_str_eq(context->error.message, "save: 'sub': Is a directory");
  ck_assert_int_eq(save("sub/", "x"), TD_ERROR_FILE);
  ck_assert_int_eq(save("none/a", "x"), TD_ERROR_FILE);
  ck_assert_int_eq(save("a", "old"), TD_OK);
  ck_assert_int_eq(chmod("a", 0444), 0); // made read-only: noticed, also by root
  ck_assert_int_eq(save("a", "x"), TD_ERROR_FILE);
  ck_assert_str_eq(context->error.message, "save: 'a': Permission denied");
  ck_assert(holds("a", "old"));
  ck_assert_int_eq(entries(), 2);
  char name[400];
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = 0;
  ck_assert_int_eq(save(name, "x"), TD_ERROR_FILE);
  name[250] = 0; // long, but a legal name
  ck_assert_int_eq(save(name, "x"), TD_OK);
}
END_TEST

START_TEST(devices_are_written_straight) {
  if (access("/dev/full", W_OK)) return;
  ck_assert_int_eq(save("/dev/full", "x"), TD_ERROR_FILE);
  ck_assert_str_eq(context->error.message, "save: '/dev/full': No space left on device");
  ck_assert_int_eq(save("/dev/null", "x"), TD_OK);
  ck_assert(S_ISCHR(mode_of("/dev/null")));
}
END_TEST

START_TEST(leftovers_of_the_dead_are_removed) {
  pid_t child = fork();
  if (!child) _exit(0);
  waitpid(child, NULL, 0);
  char dead[64], other[64], alive[64];
  snprintf(dead, sizeof dead, ".a.tapedeck-%d-0", (int)child);
  snprintf(other, sizeof other, ".b.tapedeck-%d-0", (int)child);
  snprintf(alive, sizeof alive, ".a.tapedeck-%d-7", (int)getppid());
  const char *const names[] = {dead, other, alive};
  for (int i = 0; i < 3; i++) close(open(names[i], O_CREAT | O_WRONLY, 0600));
  ck_assert_int_eq(save("a", "x"), TD_OK);
  ck_assert(!td_file_exists(dead));
  ck_assert(td_file_exists(other));
  ck_assert(td_file_exists(alive));
}
END_TEST

static void fail_every_call_of_save(int error, bool forever) {
  int n = 1;
  for (bool through = false; !through; n++) {
    ck_assert_int_eq(save("a", "old"), TD_OK);
    ck_assert_int_lt(n, 40);
    warnings = 0;
    td_file_fail(n, error, forever);
    int code = save("a", "new content");
    td_file_fail(0, 0, false);
    ck_assert(holds("a", code ? "old" : "new content"));
    ck_assert_int_eq(entries(), 1);
    if (code) {
      ck_assert_int_eq(code, TD_ERROR_FILE);
      ck_assert_ptr_nonnull(strstr(context->error.message, strerror(error)));
      ck_assert_ptr_nonnull(strstr(context->error.message, "'a'"));
    }
    ck_assert_int_eq(save("a", "third"), TD_OK);
    ck_assert(holds("a", "third"));
    through = !code && !warnings;
  }
  ck_assert_int_gt(n, 7); // lstat, folder, open, mode, write, sync, close, rename
}

START_TEST(every_call_of_save_fails) {
  fail_every_call_of_save(EIO, false);
  fail_every_call_of_save(ENOSPC, true);
  fail_every_call_of_save(EMFILE, false);
}
END_TEST

START_TEST(every_call_of_read_fails) {
  ck_assert_int_eq(save("a", "content"), TD_OK);
  char *bytes;
  size_t size;
  int n = 0, code;
  do {
    td_file_fail(++n, EIO, false);
    code = td_file_read(context, "a", 100, &bytes, &size);
    td_file_fail(0, 0, false);
    ck_assert(code ? !bytes : bytes != NULL);
    td_memory_free(bytes);
    ck_assert_int_lt(n, 20);
  } while (code);
  ck_assert_int_ge(n, 4);
}
END_TEST

START_TEST(signals_are_ridden_out) {
  const int reads[] = {1, 3}, appends[] = {1, 2, 4}; // open and read; open, lock and write
  ck_assert_int_eq(save("a", "text"), TD_OK);
  for (int i = 0; i < 2; i++) {
    td_file_fail(reads[i], EINTR, false);
    ck_assert(holds("a", "text"));
  }
  for (int i = 0; i < 3; i++) {
    td_file_fail(appends[i], EINTR, false);
    ck_assert_int_eq(td_file_append(context, "a", "+", 1), TD_OK);
  }
  td_file_fail(0, 0, false);
  ck_assert(holds("a", "text+++"));
  td_file_fail(1, EINTR, true); // not for ever
  ck_assert_int_eq(save("a", "x"), TD_ERROR_FILE);
  context->interrupt = 1;
  char *bytes;
  size_t size;
  ck_assert_int_eq(td_file_read(context, "a", 100, &bytes, &size), TD_ERROR_INTERRUPT);
}
END_TEST

START_TEST(memory_fails_in_every_call) {
  ck_assert_int_eq(save("a", "old"), TD_OK);
  char *bytes;
  size_t size;
  td_memory_fail(1, false);
  ck_assert_int_eq(save("a", "new"), TD_ERROR_MEMORY);
  td_memory_fail(1, false);
  ck_assert_int_eq(td_file_read(context, "a", 100, &bytes, &size), TD_ERROR_MEMORY);
  td_memory_fail(0, false);
  ck_assert(holds("a", "old"));
  ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(append_adds) {
  ck_assert_int_eq(td_file_append(context, "log", "one\n", 4), TD_OK);
  ck_assert_int_eq(td_file_append(context, "log", "two\n", 4), TD_OK);
  ck_assert(holds("log", "one\ntwo\n"));
  int n = 0, code;
  do {
    ck_assert_int_eq(save("log", "kept\n"), TD_OK);
    td_file_fail(++n, ENOSPC, false);
    code = td_file_append(context, "log", "more\n", 5);
    td_file_fail(0, 0, false);
    ck_assert(holds("log", "kept\n") || holds("log", "kept\nmore\n"));
    ck_assert_int_lt(n, 20);
  } while (code);
  ck_assert(holds("log", "kept\nmore\n"));
  ck_assert_int_eq(td_file_append(context, "none/log", "x", 1), TD_ERROR_FILE);
}
END_TEST

START_TEST(append_that_breaks_off_leaves_nothing) {
  ck_assert_int_eq(save("log", "kept\n"), TD_OK);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = {8, RLIM_INFINITY}; // room for three bytes more
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_assert_int_eq(td_file_append(context, "log", "more than that\n", 15), TD_ERROR_FILE);
  limit.rlim_cur = RLIM_INFINITY;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_assert(holds("log", "kept\n"));
}
END_TEST

START_TEST(appends_of_two_processes_stay_whole) {
  char line[200];
  pid_t child = fork();
  char letter = child ? 'p' : 'c';
  memset(line, letter, sizeof line);
  line[sizeof line - 1] = '\n';
  for (int i = 0; i < 300; i++)
    if (td_file_append(context, "log", line, sizeof line)) _exit(1);
  if (!child) _exit(0);
  int status;
  waitpid(child, &status, 0);
  ck_assert_int_eq(status, 0);
  char *bytes;
  size_t size, mixed = 0;
  ck_assert_int_eq(td_file_read(context, "log", 1 << 20, &bytes, &size), TD_OK);
  ck_assert_uint_eq(size, 600 * sizeof line);
  for (size_t i = 0; i < size; i++)
    mixed += i % sizeof line == sizeof line - 1 ? bytes[i] != '\n' : bytes[i] != bytes[i / sizeof line * sizeof line];
  ck_assert_uint_eq(mixed, 0);
  td_memory_free(bytes);
}
END_TEST

START_TEST(parts_are_one_file) {
  const td_file_part parts[] = {{"one ", 4}, {"", 0}, {"two", 3}};
  ck_assert_int_eq(td_file_save_parts(context, "a", parts, 3), TD_OK);
  ck_assert(holds("a", "one two"));
  ck_assert_int_eq(entries(), 1);
}
END_TEST

static int add_length(void *owner, const char *name) {
  *(size_t *)owner += strlen(name);
  return TD_OK;
}

static int refuse_name(void *owner, const char *name) {
  (void)name;
  ++*(int *)owner;
  return TD_ERROR_VALUE;
}

START_TEST(folders) {
  size_t length = 0;
  int calls = 0;
  ck_assert_int_eq(td_file_make_folder(context, "a/b//c/"), TD_OK);
  ck_assert_int_eq(td_file_make_folder(context, "a/b/c"), TD_OK);
  ck_assert(td_file_is_folder("a/b/c") && !td_file_is_folder("a/x"));
  ck_assert_int_eq(save("a/b/file", "x"), TD_OK);
  ck_assert(!td_file_is_folder("a/b/file"));
  ck_assert_int_eq(td_file_make_folder(context, "a/b/file/d"), TD_ERROR_FILE);
  ck_assert_int_eq(td_file_make_folder(context, ""), TD_ERROR_FILE);
  ck_assert_int_eq(td_file_list(context, "a/b", add_length, &length), TD_OK);
  ck_assert_uint_eq(length, 5);
  ck_assert_int_eq(td_file_list(context, "a/b", refuse_name, &calls), TD_ERROR_VALUE);
  ck_assert_int_eq(calls, 1);
  ck_assert_int_eq(td_file_list(context, "a/none", add_length, &length), TD_ERROR_FILE);
  ck_assert_int_eq(td_file_remove(context, "a/b"), TD_ERROR_FILE);
  ck_assert_int_eq(td_file_remove(context, "a/b/file"), TD_OK);
  ck_assert(!td_file_exists("a/b/file"));
  ck_assert_int_eq(td_file_remove(context, "a/b/file"), TD_ERROR_FILE);
  ck_assert(!rmdir("a/b/c") && !rmdir("a/b") && !rmdir("a"));
}
END_TEST

START_TEST(mapped_files) {
  char *bytes;
  size_t size;
  ck_assert_int_eq(save("a", "content"), TD_OK);
  ck_assert_int_eq(td_file_map(context, "load", "a", &bytes, &size), TD_OK);
  ck_assert(size == 7 && !memcmp(bytes, "content", 7) && !td_map_damaged(bytes));
  td_map_drop(bytes, size);
  ck_assert_int_eq(save("a", ""), TD_OK);
  ck_assert_int_eq(td_file_map(context, "load", "a", &bytes, &size), TD_OK);
  ck_assert(!bytes && !size);
  ck_assert_int_eq(td_file_map(context, "load", "/dev/null", &bytes, &size), TD_OK);
  ck_assert_ptr_null(bytes);
  ck_assert_int_eq(td_file_map(context, "load", ".", &bytes, &size), TD_ERROR_FILE);
  ck_assert_int_eq(td_file_map(context, "load", "none", &bytes, &size), TD_ERROR_FILE);
  ck_assert_int_eq(save("a", "content"), TD_OK);
  for (int64_t n = 1;; n++) {
    td_file_fail(n, EIO, false);
    int code = td_file_map(context, "load", "a", &bytes, &size);
    td_file_fail(0, 0, false);
    if (code == TD_OK) break;
    ck_assert(code == TD_ERROR_FILE && !bytes && !size);
  }
  td_map_drop(bytes, size);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("file");
  TCase *tests = tcase_create("file");
  suite_add_tcase(suite, tests);
  tcase_add_checked_fixture(tests, start, finish);
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, save_and_read);
  tcase_add_test(tests, large_file);
  tcase_add_test(tests, read_refuses);
  tcase_add_test(tests, mode_and_links_are_kept);
  tcase_add_test(tests, new_file_obeys_umask);
  tcase_add_test(tests, save_refuses);
  tcase_add_test(tests, devices_are_written_straight);
  tcase_add_test(tests, leftovers_of_the_dead_are_removed);
  tcase_add_test(tests, every_call_of_save_fails);
  tcase_add_test(tests, every_call_of_read_fails);
  tcase_add_test(tests, signals_are_ridden_out);
  tcase_add_test(tests, memory_fails_in_every_call);
  tcase_add_test(tests, append_adds);
  tcase_add_test(tests, append_that_breaks_off_leaves_nothing);
  tcase_add_test(tests, appends_of_two_processes_stay_whole);
  tcase_add_test(tests, parts_are_one_file);
  tcase_add_test(tests, folders);
  tcase_add_test(tests, mapped_files);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
