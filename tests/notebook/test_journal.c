// The journal: what was typed, run and put out comes back after the session died at any moment, after any damage and
// any failure of the disk; who holds a deck is told; a session that ends well leaves nothing.
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/language/interpreter.h"
#include "repl/notebook/deck_write.h"
#include "repl/notebook/ipynb.h"
#include "repl/notebook/journal.h"
#include "repl/notebook/notebook_file.h"

static td_context *context;
static td_notebook *notebook;
static td_journal *journal;
static td_journal_found found;
static double now;

static void start(void) {
  context = td_context_new(1);
  notebook = td_notebook_new();
  ck_assert(context && notebook);
  journal = NULL;
  found = (td_journal_found){0};
  now = 1;
  setenv("XDG_DATA_HOME", "data", 1);
  unlink(".x.deck.journal");
}

static void finish(void) {
  td_notebook_free(notebook);
  td_journal_found_clear(&found);
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), 0);
}

static void open_journal(const char *deck) {
  td_journal_found_clear(&found);
  ck_assert_msg(td_journal_open(context, deck, &journal, &found) == TD_OK, "%s", context->error.message);
}

static void begin(const char *deck) {
  open_journal(deck);
  ck_assert_ptr_nonnull(journal);
  ck_assert_ptr_null(found.left);
  td_journal_begin(journal, notebook, now);
}

static void update(double seconds) { // later
  now += seconds;
  td_journal_update(journal, notebook, now, false);
}

static void add(const char *text) {
  ck_assert(td_notebook_insert(notebook, notebook->count, false, text, strlen(text)));
}

static int running; // number of the run whose events come

static void event(td_event e) {
  if (!e.cell) e.cell = running;
  td_journal_event(journal, notebook, td_notebook_event(notebook, &e), &e);
}

static void start_cell(int index) {
  const td_text *text = &notebook->cells[index]->text;
  int number = running = td_notebook_queue(notebook, index);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = text->data, .length = text->length});
}

static void print(const char *text) {
  event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = text, .length = strlen(text)});
}

static void finish_cell(int index) {
  event((td_event){
      .kind = TD_EVENT_CELL_FINISHED, .cell = notebook->cells[index]->number, .status = TD_RUN_DONE, .seconds = 2});
}

static void run(int index, const char *output) {
  start_cell(index);
  print(output);
  finish_cell(index);
}

static bool same_curve(const td_curve *a, const td_curve *b) {
  if (!a || !b || !a->bin_count || !b->bin_count) return !(a && a->bin_count) && !(b && b->bin_count);
  return a->bin_count == b->bin_count && a->width == b->width && a->filled == b->filled &&
         a->last.step == b->last.step && !memcmp(a->bins, b->bins, (size_t)a->bin_count * sizeof *a->bins);
}

static bool same_output(const td_cell_output *a, const td_cell_output *b) {
  return a->kind == b->kind && a->stream == b->stream && a->text.length == b->text.length &&
         !memcmp(a->text.data, b->text.data, a->text.length) && a->cut == b->cut && a->bytes_cut == b->bytes_cut &&
         a->width == b->width && a->height == b->height && a->line == b->line && !a->pixels == !b->pixels &&
         (!a->pixels || !memcmp(a->pixels, b->pixels, (size_t)a->width * (size_t)a->height * 3)) &&
         same_curve(a->curve, b->curve) && !a->detail == !b->detail && (!a->detail || !strcmp(a->detail, b->detail));
}

static void same(const td_notebook *left) { // as the notebook here
  ck_assert_ptr_nonnull(left);
  ck_assert_int_eq(left->count, notebook->count);
  for (int i = 0; i < left->count; i++) {
    const td_notebook_cell *a = left->cells[i], *b = notebook->cells[i];
    ck_assert_str_eq(a->text.data, b->text.data);
    ck_assert(a->markdown == b->markdown && a->id == b->id && a->number == b->number && a->status == b->status);
    ck_assert_int_eq(a->output_count, b->output_count);
    for (int k = 0; k < a->output_count; k++)
      ck_assert_msg(same_output(&a->outputs[k], &b->outputs[k]), "cell %d, output %d", i, k);
  }
}

static void die_and_look(const char *deck) { // the session is gone; the next one finds what it left
  td_journal_leave(journal);
  open_journal(deck);
}

static int count_files(const char *part) {
  int count = 0;
  DIR *folder = opendir(".");
  for (struct dirent *entry; (entry = readdir(folder));) count += strstr(entry->d_name, part) != NULL;
  closedir(folder);
  return count;
}

// ---- what comes back ----

static void write_some(void) { // edits, runs and outputs of all kinds
  static const uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
  add("a"), add("b"), add("c");
  update(2);
  ck_assert(td_notebook_set_kind(notebook, 2, true));
  run(0, "one\n");
  start_cell(1);
  print("x\n");
  event((td_event){.kind = TD_EVENT_WARNING, .text = "odd", .length = 3, .detail = "line 2"});
  event((td_event){.kind = TD_EVENT_METRIC, .text = "loss", .done = 1});
  event((td_event){.kind = TD_EVENT_METRIC, .text = "loss", .done = 1});
  event((td_event){.kind = TD_EVENT_IMAGE,
                   .text = "image 2x1",
                   .length = 9,
                   .detail = "##",
                   .pixels = pixels,
                   .width = 2,
                   .height = 1});
  event((td_event){.kind = TD_EVENT_VALUE, .text = "4", .length = 1});
  event((td_event){.kind = TD_EVENT_ERROR,
                   .text = "error: x\n",
                   .length = 9,
                   .detail = "error: x",
                   .name = "d",
                   .line = 3,
                   .column = 4});
  event((td_event){
      .kind = TD_EVENT_CELL_FINISHED, .cell = notebook->cells[1]->number, .status = TD_RUN_FAILED, .seconds = 1});
  ck_assert(td_notebook_move(notebook, 2, 0) && td_notebook_clear_outputs(notebook, 1));
  update(2);
}

START_TEST(all_comes_back) {
  begin("x.deck");
  write_some();
  die_and_look("x.deck");
  same(found.left);
  ck_assert_int_eq(found.damaged, 0);
  ck_assert(found.owner.process == getpid() && found.owner.since > 1600000000);
  ck_assert(!found.left->cells[0]->ran_at && found.left->cells[2]->seconds == 1);
  td_journal_begin(journal, found.left, now); // it goes on from there
  td_notebook_free(notebook);
  notebook = found.left;
  found.left = NULL;
  add("d");
  run(3, "more\n");
  ck_assert_int_eq(notebook->cells[3]->number, 3);
  td_notebook_undo(notebook);
  update(2);
  td_notebook_redo(notebook); // the cell is back with what it put out
  update(2);
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
  ck_assert_int_eq(count_files("journal"), 0);
}
END_TEST

START_TEST(nothing_is_left) { // of a deck that was looked at
  ck_assert_int_eq(td_deck_to_notebook(context, "# %%\na\n", 7, notebook), TD_OK);
  begin("x.deck");
  update(2);
  die_and_look("x.deck");
  ck_assert(journal && !found.left && !found.damaged);
  td_journal_begin(journal, notebook, now);
  run(0, "1\n");
  die_and_look("x.deck");
  same(found.left);
  td_notebook_saved(found.left); // its output is in no deck
  td_journal_begin(journal, found.left, now);
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
}
END_TEST

START_TEST(the_file_is_known) { // after a crash: what others wrote since is told from what was saved
  td_notebook_free(notebook);
  unlink("x.deck");
  ck_assert((notebook = td_notebook_new()) != NULL);
  add("a");
  ck_assert_int_eq(td_notebook_save(context, notebook, "x.deck"), TD_OK);
  begin("x.deck");
  ck_assert(td_notebook_set_text(notebook, 0, "b", 1));
  update(2);
  ck_assert_int_eq(td_notebook_save(context, notebook, "x.deck"), TD_OK);
  ck_assert(td_notebook_set_text(notebook, 0, "c", 1));
  update(2);
  die_and_look("x.deck");
  ck_assert_int_eq(td_notebook_save(context, found.left, "x.deck"), TD_OK);
  die_and_look("x.deck"); // which now holds other bytes than the journal knows
  ck_assert_int_eq(td_notebook_save(context, found.left, "x.deck"), TD_ERROR_FILE);
  ck_assert(!td_autosave_due(&(td_autosave){0}, found.left, "x.deck", 1e6));
  td_journal_close(journal);
  unlink("x.deck");
}
END_TEST

START_TEST(running_cells) { // are interrupted ones afterwards, with what they had put out
  begin("x.deck");
  add("a"), add("b");
  start_cell(0);
  print("half");
  td_notebook_queue(notebook, 1);
  td_journal_update(journal, notebook, now, true);
  die_and_look("x.deck");
  ck_assert_int_eq(found.left->cells[0]->status, TD_CELL_INTERRUPTED);
  ck_assert_int_eq(found.left->cells[1]->status, TD_CELL_IDLE);
  ck_assert_str_eq(found.left->cells[0]->outputs[0].text.data, "half");
  td_journal_close(journal);
}
END_TEST

START_TEST(deleted_and_back) { // while it runs
  begin("x.deck");
  add("a");
  start_cell(0);
  print("1\n");
  ck_assert(td_notebook_delete(notebook, 0));
  update(2);
  print("2\n");
  td_notebook_undo(notebook);
  update(2);
  print("3\n");
  finish_cell(0);
  die_and_look("x.deck");
  same(found.left);
  ck_assert_str_eq(found.left->cells[0]->outputs[0].text.data, "1\n2\n3\n");
  td_journal_close(journal);
}
END_TEST

START_TEST(edits_wait_a_second) {
  begin("x.deck");
  update(5);
  add("a");
  ck_assert_int_eq(td_journal_update(journal, notebook, now, false), -1); // the first one at once
  ck_assert(td_notebook_type(notebook, 0, "ab", 2));
  int wait = td_journal_update(journal, notebook, now + 0.4, false);
  ck_assert(wait > 500 && wait <= 601);
  ck_assert_int_eq(td_journal_update(journal, notebook, now + 1.1, false), -1);
  ck_assert(td_notebook_type(notebook, 0, "abc", 3));
  ck_assert_int_gt(td_journal_update(journal, notebook, now + 1.2, false), 0);
  ck_assert_int_eq(td_journal_update(journal, notebook, now + 1.2, true), -1);
  ck_assert_int_eq(td_journal_update(journal, notebook, now - 1000, false), -1);
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
}
END_TEST

START_TEST(long_runs) { // the journal is bounded as the notebook is
  struct stat status;
  char block[1 << 14];
  memset(block, 'x', sizeof block - 1);
  block[sizeof block - 1] = 0;
  for (size_t i = 99; i < sizeof block - 1; i += 100) block[i] = '\n';
  begin("x.deck");
  add("a");
  for (int round = 0; round < 3; round++) {
    start_cell(0);
    for (int i = 0; i < 4000; i++) print(block);
    finish_cell(0);
  }
  ck_assert_int_eq(stat(".x.deck.journal", &status), 0);
  ck_assert_int_lt(status.st_size, 32 << 20);
  update(2);
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
}
END_TEST

static void plot(const char *name, int64_t first, int64_t end) {
  td_curve_point points[1000];
  while (first < end) {
    int64_t count = 0;
    for (; first < end && count < 1000; first++, count++)
      points[count] = (td_curve_point){first, first % 97 ? (double)(first % 1000) / 3 : NAN};
    event((td_event){.kind = TD_EVENT_METRIC, .text = name, .length = strlen(name), .points = points, .done = count});
  }
}

static int64_t journal_size(void) {
  struct stat status;
  ck_assert_int_eq(stat(".x.deck.journal", &status), 0);
  return status.st_size;
}

START_TEST(curves_come_back) { // of a run that was killed, to its last second, in bounded size
  begin("x.deck");
  add("a"), add("b");
  start_cell(0);
  plot("loss", 0, 10);
  print("between\n");
  plot("accuracy", 0, 5);
  finish_cell(0);
  start_cell(1);
  for (int64_t at = 0, size = 7; at < 1000000; at += size, size = size * 3 / 2) { // bins are joined again and again
    plot("loss", at, at + size);
    plot("rare", at, at + 1);
    update(2);
  }
  plot("loss", 1000, 1010); // a training that was resumed: what followed is forgotten
  update(2);
  plot("loss", 1005, 200000);
  plot("rare", 5, 6);
  update(2);
  ck_assert_int_gt(notebook->cells[1]->outputs[0].curve->width, 2);
  die_and_look("x.deck");
  notebook->cells[1]->status = TD_CELL_INTERRUPTED;
  same(found.left);
  td_journal_begin(journal, notebook, now); // written whole
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
}
END_TEST

START_TEST(a_long_curve_costs_little) {
  begin("x.deck");
  add("a");
  start_cell(0);
  int64_t half = 0;
  for (int64_t i = 0; i < 20; i++) {
    if (i == 10) half = journal_size();
    plot("loss", i * 100000, (i + 1) * 100000);
    update(2);
  }
  ck_assert_int_lt(journal_size() - half, 3 << 20); // a million of points more
  finish_cell(0);
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
}
END_TEST

START_TEST(old_content_goes) { // a journal that has grown is written anew
  struct stat status;
  char text[1 << 16];
  memset(text, 'x', sizeof text);
  begin("x.deck");
  add("a");
  for (int i = 0; i < 2000; i++) {
    text[i] = 'y';
    ck_assert(td_notebook_type(notebook, 0, text, sizeof text));
    update(2);
  }
  ck_assert_int_eq(stat(".x.deck.journal", &status), 0);
  ck_assert_int_lt(status.st_size, 40 << 20);
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
}
END_TEST

START_TEST(jupyter_comes_back) { // with what this program doesn't know, byte for byte
  static const char file[] = "{\"nbformat\": 4, \"cells\": [ {\"odd\": [1], \"cell_type\": \"code\", \"source\": "
                             "\"a\", \"outputs\": [{\"output_type\": \"x\"}]},\n"
                             " {\"cell_type\": \"code\", \"more\": {}, \"source\": \"b\", \"outputs\": []}], "
                             "\"nbformat_minor\": 2, \"metadata\": {\"k\": 1}}";
  ck_assert_int_eq(td_ipynb_read(context, "x", file, sizeof file - 1, notebook), TD_OK);
  begin("x.ipynb");
  ck_assert(td_notebook_set_text(notebook, 1, "changed", 7));
  update(2);
  td_text wanted = {0}, written = {0};
  td_ipynb_print(context, notebook, &wanted);
  die_and_look("x.ipynb");
  td_ipynb_print(context, found.left, &written);
  ck_assert_str_eq(written.data, wanted.data);
  ck_assert_ptr_nonnull(strstr(written.data, "\"more\": {}"));
  td_text_clear(&wanted);
  td_text_clear(&written);
  td_journal_close(journal);
}
END_TEST

START_TEST(unnamed_notebooks) { // wait in the user's folder; the newest that nobody holds is found
  td_journal *first;
  td_journal_found none;
  begin(NULL);
  add("mine");
  update(2);
  ck_assert_int_eq(td_journal_open(context, NULL, &first, &none), TD_OK); // another session beside it
  ck_assert(first && !none.left && !none.held);
  td_journal_close(first);
  die_and_look(NULL);
  same(found.left);
  td_journal_close(journal);
  open_journal(NULL);
  ck_assert_ptr_null(found.left);
  td_journal_close(journal);
}
END_TEST

// ---- damage ----

static char *journal_bytes(size_t *size) {
  char *bytes;
  ck_assert_int_eq(td_file_read(context, ".x.deck.journal", 1 << 24, &bytes, size), TD_OK);
  return bytes;
}

static void put_bytes(const char *bytes, size_t size) {
  FILE *file = fopen(".x.deck.journal", "wb");
  ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static char *told(const td_notebook *n) { // all of it
  td_text text = {0};
  td_text_add(&text, "");
  for (int i = 0; i < n->count; i++) {
    td_text_print(&text, "[%d]%s:", n->cells[i]->number, n->cells[i]->text.data);
    for (int k = 0; k < n->cells[i]->output_count; k++) td_text_add(&text, n->cells[i]->outputs[k].text.data);
  }
  return td_text_take(&text);
}

START_TEST(cut_anywhere) { // what was written before is there
  size_t size;
  begin("x.deck");
  add("first");
  update(2);
  run(0, "out 1\n");
  write_some();
  td_journal_leave(journal);
  char *bytes = journal_bytes(&size), *last = NULL;
  int states = 0;
  for (size_t cut = 0; cut <= size; cut++) {
    put_bytes(bytes, cut);
    open_journal("x.deck");
    ck_assert_ptr_nonnull(journal);
    char *now_there = found.left ? told(found.left) : td_memory_text("");
    if (!last || strcmp(now_there, last)) states++;
    if (found.left && found.damaged == 0 && cut < size) ck_assert_int_ge(states, 1);
    td_memory_free(last);
    last = now_there;
    td_journal_leave(journal);
  }
  same(found.left);
  ck_assert_int_ge(states, 8); // one after the other
  td_memory_free(last);
  td_memory_free(bytes);
}
END_TEST

START_TEST(flipped_anywhere) { // a bit
  size_t size;
  begin("x.deck");
  add("first");
  update(2);
  run(0, "out 1\n");
  add("second");
  update(2);
  td_journal_leave(journal);
  char *bytes = journal_bytes(&size);
  for (size_t bit = 0; bit < size * 8; bit++) {
    bytes[bit / 8] ^= (char)(1 << bit % 8);
    put_bytes(bytes, size);
    open_journal("x.deck");
    ck_assert(journal && found.left && found.damaged > 0);
    for (int i = 0; i < found.left->count; i++) {
      const char *text = found.left->cells[i]->text.data;
      ck_assert_msg(!*text || !strcmp(text, "first") || !strcmp(text, "second"), "%s", text);
    }
    td_journal_leave(journal);
    bytes[bit / 8] ^= (char)(1 << bit % 8);
  }
  td_memory_free(bytes);
}
END_TEST

// ---- failures ----

START_TEST(disk_fails) { // is said once, the work goes on, and all is written when it can be
  static const int errors[] = {ENOSPC, EIO, EMFILE};
  for (int e = 0; e < 3; e++)
    for (int64_t nth = 1; nth < 40; nth++) {
      td_notebook_free(notebook);
      notebook = td_notebook_new();
      begin("x.deck");
      td_file_fail(nth, errors[e], true);
      add("a");
      update(2);
      run(0, "1\n");
      add("b");
      update(2);
      run(1, "2\n");
      update(2);
      td_file_fail(0, 0, false);
      const char *problem = td_journal_problem(journal);
      ck_assert(!problem || strstr(problem, strerror(errors[e])));
      ck_assert_ptr_null(td_journal_problem(journal));
      update(20);
      ck_assert_ptr_null(td_journal_problem(journal));
      die_and_look("x.deck");
      same(found.left);
      td_journal_close(journal);
      ck_assert_int_eq(count_files("journal"), 0);
    }
}
END_TEST

START_TEST(opening_fails) { // the old content is untouched
  begin("x.deck");
  write_some();
  td_journal_leave(journal);
  for (int64_t nth = 1; nth < 20; nth++) {
    td_journal_found_clear(&found);
    td_file_fail(nth, EIO, true);
    int code = td_journal_open(context, "x.deck", &journal, &found);
    td_file_fail(0, 0, false);
    ck_assert(code == TD_OK ? journal != NULL : !journal && strstr(context->error.message, ".x.deck.journal"));
    td_journal_leave(journal);
    open_journal("x.deck");
    same(found.left);
    td_file_fail(nth, EIO, true);
    td_journal_begin(journal, found.left, now);
    td_file_fail(0, 0, false);
    die_and_look("x.deck");
    same(found.left);
    td_journal_leave(journal);
  }
}
END_TEST

START_TEST(memory_runs_out) {
  for (int64_t nth = 1; nth < 60; nth++) {
    begin("x.deck");
    if (!notebook->count) add("a");
    td_memory_fail(nth, true);
    td_journal_update(journal, notebook, now + 2, false);
    td_memory_fail(0, false);
    update(20);
    td_journal_leave(journal);
    td_memory_fail(nth, true);
    td_journal_found_clear(&found);
    int code = td_journal_open(context, "x.deck", &journal, &found);
    td_memory_fail(0, false);
    ck_assert(code == TD_OK || (code == TD_ERROR_MEMORY && !journal));
    td_journal_leave(journal);
    open_journal("x.deck");
    same(found.left);
    td_journal_close(journal);
  }
}
END_TEST

START_TEST(read_only_folder) {
  ck_assert(mkdir("closed", 0500) == 0 || errno == EEXIST);
  if (access("closed", W_OK) == 0) return; // root may write anywhere
  ck_assert_int_eq(td_journal_open(context, "closed/x.deck", &journal, &found), TD_ERROR_FILE);
  ck_assert_ptr_null(journal);
}
END_TEST

START_TEST(no_journal_at_all) { // NULL is a journal that keeps nothing
  add("a");
  td_event e = {.kind = TD_EVENT_OUTPUT, .text = ""};
  td_journal_begin(NULL, notebook, 1);
  td_journal_event(NULL, notebook, 0, &e);
  ck_assert_int_eq(td_journal_update(NULL, notebook, 2, true), -1);
  ck_assert_ptr_null(td_journal_problem(NULL));
  td_journal_close(NULL);
  td_journal_leave(NULL);
}
END_TEST

START_TEST(removed_by_others) { // it is written anew
  begin("x.deck");
  add("a");
  update(2);
  ck_assert_int_eq(unlink(".x.deck.journal"), 0);
  add("b");
  update(2);
  update(20);
  die_and_look("x.deck");
  same(found.left);
  td_journal_close(journal);
}
END_TEST

START_TEST(links_are_refused) {
  ck_assert_int_eq(symlink("elsewhere", ".x.deck.journal"), 0);
  ck_assert_int_eq(td_journal_open(context, "x.deck", &journal, &found), TD_ERROR_FILE);
  ck_assert(access("elsewhere", F_OK) != 0);
  unlink(".x.deck.journal");
}
END_TEST

// ---- two sessions ----

START_TEST(held_decks) { // by another process; dead ones hold nothing
  int ready[2], go[2];
  char byte = 0;
  ck_assert(pipe(ready) == 0 && pipe(go) == 0);
  pid_t child = fork();
  if (child == 0) {
    begin("x.deck");
    add("theirs");
    update(2);
    if (write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) == 1) _exit(0);
    _exit(1);
  }
  ck_assert_int_eq(read(ready[0], &byte, 1), 1);
  open_journal("./x.deck");
  ck_assert(found.held && !journal && !found.left);
  ck_assert_int_eq(found.owner.process, child);
  ck_assert(*found.owner.host && found.owner.since > 1600000000);
  ck_assert_int_eq(kill(child, SIGKILL), 0);
  waitpid(child, NULL, 0);
  open_journal("x.deck");
  ck_assert(!found.held && journal && found.left);
  ck_assert_str_eq(found.left->cells[0]->text.data, "theirs");
  td_journal_close(journal);
}
END_TEST

START_TEST(races) { // of many that open one deck, one gets it
  for (int round = 0; round < 20; round++) {
    pid_t children[8];
    int gate[2], kept[2];
    ck_assert(pipe(gate) == 0 && pipe(kept) == 0);
    for (int i = 0; i < 8; i++) {
      children[i] = fork();
      if (children[i]) continue;
      char byte;
      close(gate[1]);
      if (read(gate[0], &byte, 1) < 0) _exit(3); // until the gate is closed
      td_journal_open(context, "x.deck", &journal, &found);
      if (journal) td_journal_begin(journal, notebook, 1);
      char had = (char)(journal != NULL);
      if (write(kept[1], &had, 1) != 1) _exit(3);
      pause();
    }
    close(gate[0]);
    close(gate[1]);
    int had = 0;
    for (int i = 0; i < 8; i++) {
      char byte = 0;
      ck_assert_int_eq(read(kept[0], &byte, 1), 1);
      had += byte;
    }
    for (int i = 0; i < 8; i++) kill(children[i], SIGKILL);
    for (int i = 0; i < 8; i++) waitpid(children[i], NULL, 0);
    ck_assert_int_eq(had, 1);
    close(kept[0]);
    close(kept[1]);
  }
  unlink(".x.deck.journal");
}
END_TEST

// ---- kill -9 ----

typedef struct report {
  int finished;
  int typed;
} report; // the last cell that finished, the last text that is written

static void work(int out) { // cells one after the other, typed and run
  report r = {-1, -1};
  begin("x.deck");
  for (int i = 0;; i++) {
    char text[64];
    snprintf(text, sizeof text, "cell %d", i);
    add("");
    for (int k = 1; k <= (int)strlen(text); k++) ck_assert(td_notebook_type(notebook, i, text, (size_t)k));
    update(1.1);
    r.typed = i;
    if (write(out, &r, sizeof r) != sizeof r) _exit(1);
    snprintf(text, sizeof text, "output %d\n", i);
    run(i, text);
    r.finished = i;
    if (write(out, &r, sizeof r) != sizeof r) _exit(1);
  }
}

START_TEST(killed) {
  long kills = getenv("JOURNAL_KILLS") ? atol(getenv("JOURNAL_KILLS")) : 100;
  for (long round = 0; round < kills; round++) {
    int out[2];
    ck_assert_int_eq(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) work(out[1]);
    close(out[1]);
    struct timespec moment = {0, 1000000 + (round * 7919 % 40) * 1000003};
    nanosleep(&moment, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    report r = {-1, -1}, next;
    while (read(out[0], &next, sizeof next) == sizeof next) r = next;
    close(out[0]);
    open_journal("x.deck");
    ck_assert_ptr_nonnull(journal);
    int count = found.left ? found.left->count : 0;
    ck_assert_msg(count > r.typed && count > r.finished, "%d cells, %d typed, %d finished", count, r.typed, r.finished);
    for (int i = 0; i <= r.finished; i++) {
      char text[64];
      const td_notebook_cell *cell = found.left->cells[i];
      snprintf(text, sizeof text, "output %d\n", i);
      ck_assert_int_eq(cell->status, TD_CELL_DONE);
      ck_assert_str_eq(cell->outputs[0].text.data, text);
    }
    for (int i = 0; i <= r.typed; i++) {
      char text[64];
      snprintf(text, sizeof text, "cell %d", i);
      ck_assert_str_eq(found.left->cells[i]->text.data, text);
    }
    td_journal_begin(journal, found.left ? found.left : notebook,
                     now); // leaves nothing of a file that was being written
    td_journal_close(journal);
    ck_assert_int_eq(count_files("journal"), 0);
  }
}
END_TEST

// ---- autosave ----

START_TEST(autosaves) {
  td_autosave a = {0};
  add("x");
  ck_assert(!td_autosave_due(&a, notebook, "x.deck", 100));
  ck_assert(!td_autosave_due(&a, notebook, NULL, 1000));
  ck_assert(!td_autosave_due(&a, notebook, "x.deck", 129));
  ck_assert(td_autosave_due(&a, notebook, "x.deck", 131));
  ck_assert(!td_autosave_due(&a, notebook, "x.deck", 132)); // it failed: again in 30 seconds
  ck_assert(td_autosave_due(&a, notebook, "x.deck", 162));
  td_notebook_saved(notebook);
  ck_assert(!td_autosave_due(&a, notebook, "x.deck", 1000));
  ck_assert(td_notebook_type(notebook, 0, "y", 1));
  run(0, "1\n");
  ck_assert(td_autosave_due(&a, notebook, "x.deck", 1001));
  td_notebook_saved(notebook);
  run(0, "1\n");
  ck_assert(!td_autosave_due(&a, notebook, "x.deck", 1002)); // a deck holds no outputs
  ck_assert(td_autosave_due(&a, notebook, "x.ipynb", 1003));
  ck_assert(!td_autosave_due(&a, notebook, "x.ipynb", 1004));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("notebook/journal");
  const struct {
    const char *name;
    const TTest *test;
  } cases[] = {{"back", all_comes_back},
               {"nothing", nothing_is_left},
               {"file", the_file_is_known},
               {"running", running_cells},
               {"deleted", deleted_and_back},
               {"second", edits_wait_a_second},
               {"long", long_runs},
               {"curves", curves_come_back},
               {"thin", a_long_curve_costs_little},
               {"grown", old_content_goes},
               {"jupyter", jupyter_comes_back},
               {"unnamed", unnamed_notebooks},
               {"cut", cut_anywhere},
               {"flipped", flipped_anywhere},
               {"disk", disk_fails},
               {"opening", opening_fails},
               {"memory", memory_runs_out},
               {"closed", read_only_folder},
               {"none", no_journal_at_all},
               {"removed", removed_by_others},
               {"links", links_are_refused},
               {"held", held_decks},
               {"races", races},
               {"killed", killed},
               {"autosave", autosaves}};
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
