// Files of notebooks: what is read and not changed is written byte for byte; what is changed is written as the format
// wants it, and nothing else. Damaged files are refused, with the byte and the reason.
#include <check.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/language/interpreter.h"
#include "repl/language/curve.h"
#include "repl/notebook/deck_write.h"
#include "repl/notebook/ipynb.h"
#include "repl/notebook/notebook_file.h"

static td_context *context;
static td_notebook *notebook;

static void start(void) {
  context = td_context_new(1);
  notebook = td_notebook_new();
  ck_assert(context && notebook);
}

static void finish(void) {
  td_notebook_free(notebook);
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), 0);
}

static void again(void) {
  td_notebook_free(notebook);
  notebook = td_notebook_new();
}

static void read_deck(const char *text, size_t length) {
  again();
  ck_assert_int_eq(td_deck_to_notebook(context, text, length, notebook), TD_OK);
}

static void writes(const char *wanted, size_t length) {
  td_text text = {0};
  td_deck_print(notebook, &text);
  ck_assert_msg(text.length == length && !memcmp(text.data, wanted, length), "wanted:\n%.*s\nwritten:\n%.*s",
                (int)length, wanted, (int)text.length, text.data);
  td_text_clear(&text);
}

// ---- decks ----

static const char *const decks[] = {"",
                                    "a",
                                    "a\n",
                                    "a\n\n\n",
                                    "\n",
                                    "\n\na\n",
                                    "# %%",
                                    "# %%\n",
                                    "# %%\n# %%\n# %%",
                                    "# %%\n\n\n# %%\n\n",
                                    "a\n# %%\nb",
                                    "a\n\n# %% title\nb\n\n",
                                    "# %% [markdown]\n# a\n#\n# b\n",
                                    "# %% [markdown]\n# a\n#\n",
                                    "# %% [markdown]\n#a\n",
                                    "# %% [markdown]\nplain\n# b\n",
                                    "# %% [markdown]\n# \n",
                                    "# %% [markdown]\n#\n",
                                    "# %% [markdown]\n\n# a\n\n# b\n",
                                    "# %%\r\na\r\n\r\n# %% [markdown]\r\n# b\r\n#\r\n# c\r\n",
                                    "# %% id=a1 tags=x\n1\n\n# %% id=\"b-2\"\n2\n",
                                    "# %% [markdown] t\n# x\n\n# %% é [markdown]\n# ü\n",
                                    "#%%\n # %%\n",
                                    "'''\n# %%\n'''\n",
                                    "<<<<<<< HEAD\n# %%\na\n=======\n# %%\nb\n>>>>>>> x\n",
                                    "\t\n \n# %%\n  x\n  ",
                                    "# %%%%\na\n",
                                    "\r\r\n\r"};

START_TEST(unchanged_decks) {
  read_deck(decks[_i], strlen(decks[_i]));
  writes(decks[_i], strlen(decks[_i]));
  for (int i = 0; i < notebook->count; i++) {
    td_text *text = &notebook->cells[i]->text;
    ck_assert(!text->length || text->data[text->length - 1] != '\n');
  }
  ck_assert(td_notebook_is_saved(notebook));
}
END_TEST

static uint32_t state = 1;
static uint32_t draw(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

START_TEST(decks_of_pieces) {
  static const char *const pieces[] = {"# %%",    "\n",     "\r\n",   " [markdown]", " ",    "# ", "#",    "%%",
                                       "x = 1\n", "\"\"\"", "# %%\n", "é",           "\xff", "\0", "id=q", "\n\n"};
  for (int round = 0; round < 20000; round++) {
    char text[512];
    size_t length = 0;
    for (uint32_t i = draw(24); i > 0; i--) {
      const char *piece = pieces[draw(16)];
      size_t size = *piece ? strlen(piece) : 1;
      memcpy(text + length, piece, size);
      length += size;
    }
    read_deck(text, length);
    writes(text, length);
  }
}
END_TEST

static void change(const char *text, const char *wanted, bool done) {
  ck_assert(done);
  ck_assert(!td_notebook_is_saved(notebook));
  writes(wanted, strlen(wanted));
  td_notebook_undo(notebook);
  writes(text, strlen(text));
}

START_TEST(changed_decks) {
  static const char text[] = "a\n# %% t id=q\nb\n\n\n# %% [markdown] s\n# c\n";
  read_deck(text, sizeof text - 1);
  ck_assert_str_eq(notebook->cells[1]->name, "q");
  ck_assert_str_eq(notebook->cells[2]->text.data, "c");
  change(text, "a\n# %% t id=q\nb2\n\n\n# %% [markdown] s\n# c\n", td_notebook_set_text(notebook, 1, "b2", 2));
  change(text, "a\n# %% t id=q\nb\n\n\n# %% [markdown] s\n# c\n#\n# d\n",
         td_notebook_set_text(notebook, 2, "c\n\nd", 4));
  change(text, "a\n\n# %%\nnew\n\n# %% t id=q\nb\n\n\n# %% [markdown] s\n# c\n",
         td_notebook_insert(notebook, 1, false, "new", 3));
  change(text, "# %% [markdown]\n# new\n\n# %%\na\n# %% t id=q\nb\n\n\n# %% [markdown] s\n# c\n",
         td_notebook_insert(notebook, 0, true, "new", 3));
  change(text, "a\n# %% t id=q\nb\n\n\n# %% [markdown] s\n# c\n\n# %%\nnew\n",
         td_notebook_insert(notebook, 3, false, "new", 3));
  change(text, "# %% t id=q\nb\n\n\n# %% [markdown] s\n# c\n", td_notebook_delete(notebook, 0));
  change(text, "a\n# %% [markdown] t id=q\n# b\n\n\n# %% [markdown] s\n# c\n", td_notebook_set_kind(notebook, 1, true));
  change(text, "a\n# %% t id=q\nb\n\n\n# %% s\nc\n", td_notebook_set_kind(notebook, 2, false));
  change(text, "# %% t id=q\nb\n\n\n# %% [markdown] s\n# c\n# %%\na\n", td_notebook_move(notebook, 0, 2));
  change(text, "# %% [markdown] s\n# c\n# %%\na\n# %% t id=q\nb\n\n\n", td_notebook_move(notebook, 2, 0));
}
END_TEST

START_TEST(prose) { // any text of a markdown cell comes back, but for a text that looks like comments itself
  static const char *const texts[] = {"a", "# Title", "a\n\nb", "%% magic", "a\n%%b",
                                      "",  "  x",     "#",      "# \n#",    "\xc3\xa9"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    again();
    ck_assert(td_notebook_insert(notebook, 0, true, texts[i], strlen(texts[i])));
    ck_assert(td_notebook_insert(notebook, 1, false, "x", 1));
    td_text text = {0};
    td_deck_print(notebook, &text);
    read_deck(text.data, text.length);
    ck_assert_int_eq(notebook->count, 2);
    ck_assert(notebook->cells[0]->markdown);
    ck_assert_str_eq(notebook->cells[0]->text.data, texts[i]);
    td_text_clear(&text);
  }
}
END_TEST

// ---- .ipynb ----

static char path[PATH_MAX];
static const char *sample(const char *name) {
  const char *folder = getenv("top_srcdir");
  snprintf(path, sizeof path, "%s/tests/files/notebooks/%s", folder ? folder : ".", name);
  return path;
}

static void open_sample(const char *name) {
  td_notebook_free(notebook);
  ck_assert_msg(td_notebook_open(context, sample(name), &notebook) == TD_OK, "%s", context->error.message);
}

static td_text printed(void) {
  td_text text = {0};
  ck_assert_int_eq(td_ipynb_print(context, notebook, &text), TD_OK);
  return text;
}

static char *file_text(const char *name, size_t *size) {
  char *bytes;
  ck_assert_int_eq(td_file_read(context, name, 1 << 24, &bytes, size), TD_OK);
  return bytes;
}

START_TEST(unchanged_notebooks) {
  static const char *const names[] = {"jupyter.ipynb", "colab.ipynb", "dense.ipynb", "empty.ipynb", "loose.ipynb"};
  size_t size;
  open_sample(names[_i]);
  char *wanted = file_text(path, &size);
  td_text text = printed();
  ck_assert_uint_eq(text.length, size);
  ck_assert_mem_eq(text.data, wanted, size);
  td_memory_free(wanted);
  td_text_clear(&text);
}
END_TEST

START_TEST(refused_notebooks) {
  static const char *const refusals[][2] = {{"bad_short", "byte 44: Unterminated string starting at"},
                                            {"bad_source", "byte 44: a text or a list of texts is expected"},
                                            {"bad_old", "byte 33: nbformat 3 is not read, only nbformat 4"},
                                            {"bad_new", "byte 28: nbformat 5 is not read"},
                                            {"bad_list", "byte 1: not a notebook"},
                                            {"bad_text", "byte 0: Expecting value"},
                                            {"bad_none", "byte 0: Expecting value"},
                                            {"bad_deep", "byte 214: nested too deep"},
                                            {"bad_type", "byte 25: a cell without a cell_type"},
                                            {"bad_more", "byte 29: more than a notebook follows"},
                                            {"bad_escape", "byte 44: Invalid \\escape"},
                                            {"bad_twice", "byte 22: a second list of cells"},
                                            {"no_such", "No such file"}};
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    char name[64];
    td_notebook *none;
    snprintf(name, sizeof name, "%s.ipynb", refusals[i][0]);
    ck_assert_int_eq(td_notebook_open(context, sample(name), &none), TD_ERROR_FILE);
    ck_assert_ptr_null(none);
    ck_assert_msg(strstr(context->error.message, refusals[i][1]) && strstr(context->error.message, name), "%s",
                  context->error.message);
  }
}
END_TEST

START_TEST(what_jupyter_writes) {
  open_sample("jupyter.ipynb");
  ck_assert_int_eq(notebook->count, 6);
  const td_notebook_cell *pi = notebook->cells[1], *plot = notebook->cells[2], *fail = notebook->cells[3];
  ck_assert(notebook->cells[0]->markdown &&
            !strcmp(notebook->cells[0]->text.data, "# Title\n\n![a](attachment:a.png)"));
  ck_assert(!strcmp(pi->name, "pi") && pi->number == 3 && pi->status == TD_CELL_IDLE && !pi->ran_at);
  ck_assert_str_eq(pi->outputs[0].text.data, "one\ntwo\r\nthree");
  ck_assert(pi->outputs[1].stream == 2 && pi->outputs[1].text.data[0] == '\x1b');
  ck_assert(pi->outputs[2].kind == TD_OUTPUT_VALUE && !strcmp(pi->outputs[2].text.data, "3.14"));
  ck_assert(plot->outputs[0].kind == TD_OUTPUT_IMAGE && !strcmp(plot->outputs[0].text.data, "<Figure size 3x2>"));
#ifdef HAVE_PNG
  ck_assert(plot->outputs[0].width == 3 && plot->outputs[0].height == 2);
  ck_assert(plot->outputs[0].pixels[4] == 160 && plot->outputs[0].pixels[9] == 1);
#endif
  ck_assert_int_eq(plot->outputs[1].kind, TD_OUTPUT_DATA);
  ck_assert_str_eq(fail->outputs[0].detail, "ValueError: é");
  ck_assert_str_eq(fail->outputs[0].text.data,
                   "--------------------\nValueError  Traceback (most recent call last)\nValueError: é\n");
  ck_assert(notebook->cells[4]->markdown);
}
END_TEST

static void has(const td_text *text, const char *part) {
  ck_assert_msg(strstr(text->data, part), "%s is not in\n%s", part, text->data);
}

START_TEST(changed_notebooks) { // unknown keys and outputs stay, other cells don't change by a byte
  open_sample("jupyter.ipynb");
  ck_assert(td_notebook_set_text(notebook, 1, "a\nb", 3) && td_notebook_set_text(notebook, 4, "raw2", 4));
  ck_assert(td_notebook_set_kind(notebook, 5, true) && td_notebook_insert(notebook, 1, false, "new", 3));
  td_text text = printed();
  has(&text, "   \"metadata\": {\n    \"collapsed\": false,\n    \"tags\": [\n     \"b\",\n     \"a\"\n    ]\n   },\n");
  has(&text, "   \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n");
  has(&text, "<b>3.14</b>");
  has(&text, "\"cell_type\": \"raw\"");
  has(&text, "    \"raw2\"\n");
  for (int i = 0; i < notebook->count; i++)
    if (!notebook->cells[i]->content_at && notebook->cells[i]->json) has(&text, notebook->cells[i]->json);
  again();
  ck_assert_int_eq(td_ipynb_read(context, "again", text.data, text.length, notebook), TD_OK);
  ck_assert_int_eq(notebook->count, 7);
  ck_assert(notebook->cells[6]->markdown && !notebook->cells[6]->text.length);
  ck_assert_int_eq((int)strlen(notebook->cells[1]->name), 8);
  td_text_clear(&text);
  open_sample("colab.ipynb"); // nbformat 4.0: cells have no id
  ck_assert(td_notebook_insert(notebook, 0, false, "new", 3) && td_notebook_delete(notebook, 1));
  text = printed();
  ck_assert(!strstr(text.data, "\"id\": \"9"));
  has(&text, "\"id\": \"xYz\"");
  td_text_clear(&text);
  open_sample("empty.ipynb");
  ck_assert(td_notebook_insert(notebook, 0, false, "new", 3));
  text = printed();
  has(&text, "   ]\n  }\n ],\n \"metadata\": {}");
  td_text_clear(&text);
}
END_TEST

static void event(td_event e) { // of the last run
  e.cell = notebook->last_number;
  td_notebook_event(notebook, &e);
}

START_TEST(titles) { // of a deck's cells stand in their metadata, as Jupytext's, and come back
  static const char deck[] = "# %% Load  the data id=a\nx = 1\n\n# %% [markdown] Notes \"1\"\n# text\n\n# %%\ny = 2\n";
  ck_assert_int_eq(td_deck_to_notebook(context, deck, sizeof deck - 1, notebook), TD_OK);
  td_text text = printed();
  has(&text, "   \"metadata\": {\n    \"title\": \"Load the data\"\n   },\n");
  has(&text, "   \"metadata\": {\n    \"title\": \"Notes \\\"1\\\"\"\n   },\n");
  has(&text, "   \"metadata\": {},\n");
  again();
  ck_assert_int_eq(td_ipynb_read(context, "again", text.data, text.length, notebook), TD_OK);
  td_text_clear(&text);
  td_deck_print(notebook, &text);
  ck_assert_str_eq(text.data,
                   "# %% Load the data\nx = 1\n\n# %% Notes \"1\" [markdown]\n# text\n\n# %%\ny = 2\n");
  td_text_clear(&text);
}
END_TEST

START_TEST(curves_of_runs) { // are pictures, one for each kind of them
  static const char *const names[] = {"loss", "acc", "val_loss"};
  ck_assert(td_notebook_insert(notebook, 0, false, "f()", 3));
  int number = td_notebook_queue(notebook, 0);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = "f()", .length = 3});
  for (int step = 0; step < 20; step++)
    for (int i = 0; i < 3; i++) {
      td_curve_point point = {step, 1.0 / (1 + step + i)};
      event((td_event){.kind = TD_EVENT_METRIC, .text = names[i], .points = &point, .done = 1});
    }
  event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = number, .status = TD_RUN_DONE});
  td_text text = printed();
  again();
  ck_assert_int_eq(td_ipynb_read(context, "again", text.data, text.length, notebook), TD_OK);
  const td_notebook_cell *cell = notebook->cells[0];
  ck_assert_int_eq(cell->output_count, 2);
  ck_assert_str_eq(cell->outputs[0].text.data, "curves: loss, val_loss");
  ck_assert_str_eq(cell->outputs[1].text.data, "curves: acc");
#ifdef HAVE_PNG
  for (int i = 0; i < 2; i++) ck_assert(cell->outputs[i].pixels && cell->outputs[i].width == 640);
#endif
  td_text_clear(&text);
}
END_TEST

START_TEST(outputs_of_runs) { // come back as they were
  static const uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
  ck_assert(td_notebook_insert(notebook, 0, false, "f()", 3));
  int number = td_notebook_queue(notebook, 0);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = "f()", .length = 3});
  event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "a\n\"b\"\t\x1b[0m\xff\n", .length = 12});
  event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 2, .text = "c", .length = 1});
  event((td_event){.kind = TD_EVENT_IMAGE, .text = "image 2x1", .pixels = pixels, .width = 2, .height = 1});
  event((td_event){.kind = TD_EVENT_VALUE, .text = "4\n5", .length = 3});
  event((td_event){
      .kind = TD_EVENT_ERROR, .text = "error: KeyError: 'x'\n  at\n", .length = 26, .detail = "error: KeyError: 'x'"});
  event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = number, .status = TD_RUN_FAILED});
  td_text text = printed(), second;
  again();
  ck_assert_int_eq(td_ipynb_read(context, "again", text.data, text.length, notebook), TD_OK);
  const td_notebook_cell *cell = notebook->cells[0];
  const td_cell_output *o = cell->outputs;
  ck_assert_int_eq(cell->number, 1);
  ck_assert_int_eq(cell->output_count, 5);
  ck_assert_str_eq(o[0].text.data, "a\n\"b\"\t\x1b[0m\xef\xbf\xbd\n");
  ck_assert(o[1].stream == 2 && !strcmp(o[1].text.data, "c"));
  ck_assert(o[2].kind == (o[2].pixels ? TD_OUTPUT_IMAGE : TD_OUTPUT_DATA) && !strcmp(o[2].text.data, "image 2x1"));
#ifdef HAVE_PNG
  ck_assert(o[2].width == 2 && !memcmp(o[2].pixels, pixels, 6));
#endif
  ck_assert(o[3].kind == TD_OUTPUT_VALUE && !strcmp(o[3].text.data, "4\n5"));
  ck_assert_str_eq(o[4].detail, "KeyError: 'x'");
  ck_assert_str_eq(o[4].text.data, "error: KeyError: 'x'\n  at\n");
  second = printed();
  ck_assert_str_eq(text.data, second.data);
  td_text_clear(&text);
  td_text_clear(&second);
}
END_TEST

START_TEST(long_output) { // says what is left out
  ck_assert(td_notebook_insert(notebook, 0, false, "f()", 3));
  int number = td_notebook_queue(notebook, 0);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = "f()", .length = 3});
  for (int i = 0; i < 1000000; i++)
    event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "0123456789\n", .length = 11});
  td_text text = printed();
  const char *notice = strstr(text.data, " are left out ...\\n\"");
  ck_assert_ptr_nonnull(notice);
  td_text_clear(&text);
}
END_TEST

START_TEST(damaged_notebooks) { // cut anywhere, or with a byte changed: refused, or read
  size_t size;
  char *whole = file_text(sample("jupyter.ipynb"), &size);
  for (size_t cut = 0; cut < size; cut++) {
    again();
    int code = td_ipynb_read(context, "cut", whole, cut, notebook);
    ck_assert_msg(cut >= size - 1 ? code == TD_OK : code == TD_ERROR_FILE, "%zu bytes", cut);
  }
  for (size_t at = 0; at < size; at++) {
    static const char bytes[] = {0, '"', '{', ']', '\xff'};
    char old = whole[at];
    whole[at] = bytes[at % sizeof bytes];
    again();
    int code = td_ipynb_read(context, "changed", whole, size, notebook);
    ck_assert(code == TD_OK || code == TD_ERROR_FILE);
    whole[at] = old;
  }
  td_memory_free(whole);
}
END_TEST

START_TEST(memory_runs_out) {
  size_t size;
  char *whole = file_text(sample("jupyter.ipynb"), &size);
  for (int64_t nth = 1;; nth++) {
    again();
    td_memory_fail(nth, true);
    int code = td_ipynb_read(context, "file", whole, size, notebook);
    td_text text = {0};
    bool read = code == TD_OK;
    if (read) code = td_ipynb_print(context, notebook, &text);
    td_memory_fail(0, false);
    ck_assert_msg(code == TD_OK || code == TD_ERROR_MEMORY, "%lld: %s", (long long)nth, context->error.message);
    bool done = code == TD_OK;
    td_text_clear(&text);
    if (done) break;
  }
  td_memory_free(whole);
  static const char deck[] = "# %% [markdown]\n# a\n\n# %%\nb\n";
  for (int64_t nth = 1; nth < 40; nth++) {
    again();
    td_memory_fail(nth, true);
    int code = td_deck_to_notebook(context, deck, sizeof deck - 1, notebook);
    td_memory_fail(0, false);
    ck_assert(code == TD_ERROR_MEMORY || notebook->count == 2);
  }
}
END_TEST

static void write_file(const char *name, const char *text) {
  FILE *file = fopen(name, "w");
  ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void check_save(bool saved, const char *name, const char *holds) {
  size_t size;
  int code = td_notebook_save(context, notebook, name);
  char *text = file_text(name, &size);
  ck_assert_msg((code == TD_OK) == saved && !strcmp(text, holds), "%s: %s", name, text);
  if (!saved)
    ck_assert_msg(strstr(context->error.message, name) && strstr(context->error.hint, "save again"), "%s",
                  context->error.message);
  td_memory_free(text);
}

START_TEST(changed_by_others) { // is noticed before it is written over, once
  struct stat status;
  write_file("o.deck", "a\n");
  td_notebook_free(notebook);
  ck_assert_int_eq(td_notebook_open(context, "o.deck", &notebook), TD_OK);
  ck_assert(td_notebook_set_text(notebook, 0, "b", 1));
  check_save(true, "o.deck", "b\n");
  check_save(true, "o.deck", "b\n");
  write_file("o.deck", "b\n"); // the same, written again
  check_save(true, "o.deck", "b\n");
  write_file("o.deck", "c\n");
  ck_assert(td_notebook_set_text(notebook, 0, "d", 1));
  check_save(false, "o.deck", "c\n");
  check_save(true, "o.deck", "d\n");
  ck_assert_int_eq(unlink("o.deck"), 0);
  check_save(true, "o.deck", "d\n");
  write_file("p.deck", "another\n");
  check_save(false, "p.deck", "another\n");
  check_save(true, "p.deck", "d\n");
  ck_assert(symlink("p.deck", "l.deck") == 0 || errno == EEXIST);
  check_save(true, "l.deck", "d\n");
  ck_assert(lstat("l.deck", &status) == 0 && S_ISLNK(status.st_mode));
  again();
  check_save(false, "o.deck", "d\n"); // a new one has read nothing
  unlink("o.deck");
  unlink("p.deck");
  unlink("l.deck");
}
END_TEST

START_TEST(saves_fail) { // the old file is whole, and the next save works
  static const char *const names[] = {"out.deck", "out.ipynb"};
  const char *name = names[_i];
  FILE *file;
  for (int64_t nth = 1; nth < 20; nth++) {
    file = fopen(name, "w");
    fputs("old", file);
    fclose(file);
    read_deck("# %%\nx\n", 7);
    ck_assert(td_notebook_set_text(notebook, 0, "y", 1));
    td_file_fail(nth, ENOSPC, true);
    int code = td_notebook_write(context, notebook, name);
    td_file_fail(0, 0, false);
    size_t size;
    char *text = file_text(name, &size);
    if (code != TD_OK) {
      ck_assert_msg(strstr(context->error.message, name), "%s", context->error.message);
      ck_assert(!td_notebook_is_saved(notebook));
    }
    ck_assert((code != TD_OK && !strcmp(text, "old")) || strstr(text, _i ? "\"y\"" : "# %%\ny\n"));
    td_memory_free(text);
    ck_assert_int_eq(td_notebook_write(context, notebook, name), TD_OK);
    ck_assert(td_notebook_is_saved(notebook));
  }
  unlink(name);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("notebook/decks");
  const struct {
    const char *name;
    const TTest *test;
    int count;
  } cases[] = {{"unchanged", unchanged_decks, sizeof decks / sizeof *decks},
               {"pieces", decks_of_pieces, 1},
               {"changed", changed_decks, 1},
               {"prose", prose, 1},
               {"ipynb", unchanged_notebooks, 5},
               {"refused", refused_notebooks, 1},
               {"jupyter", what_jupyter_writes, 1},
               {"edited", changed_notebooks, 1},
               {"titles", titles, 1},
               {"curves", curves_of_runs, 1},
               {"outputs", outputs_of_runs, 1},
               {"long", long_output, 1},
               {"damaged", damaged_notebooks, 1},
               {"memory", memory_runs_out, 1},
               {"others", changed_by_others, 1},
               {"saves", saves_fail, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TCase *test = tcase_create(cases[i].name);
    tcase_add_checked_fixture(test, start, finish);
    tcase_set_timeout(test, 120);
    tcase_add_loop_test(test, cases[i].test, 0, cases[i].count);
    suite_add_tcase(suite, test);
  }
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
