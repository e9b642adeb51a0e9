// The notebook as a document: operations and their undo, outputs from events, names and what they make stale.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/notebook/cell_names.h"
#include "repl/notebook/notebook.h"
#include "repl/notebook/visible.h"
#include "tests/language/runs.h"

static td_notebook *notebook;
static runs session;

static void start(void) {
  ck_assert(runs_open(&session, 1));
  notebook = td_notebook_new();
  ck_assert_ptr_nonnull(notebook);
}

static void finish(void) {
  td_notebook_free(notebook);
  runs_close(&session);
  ck_assert_int_eq(td_memory_live(), 0);
}

static void add(const char *text) {
  ck_assert(td_notebook_insert(notebook, notebook->count, false, text, strlen(text)));
}

// "a|b|(markdown)", with "!" behind a cell with outputs and "-" behind a folded one.
static char *told(void) {
  td_text text = {0};
  for (int i = 0; i < notebook->count; i++) {
    const td_notebook_cell *cell = notebook->cells[i];
    if (i) td_text_add_char(&text, '|');
    td_text_print(&text, cell->markdown ? "(%s)" : "%s", cell->text.data);
    if (cell->output_count) td_text_print(&text, "!%d", cell->output_count);
    if (cell->folded) td_text_add_char(&text, '-');
  }
  return td_text_take(&text);
}

static void is(const char *wanted) {
  char *text = told();
  ck_assert_str_eq(text, wanted);
  td_memory_free(text);
}

static void event(td_event e) { // of the last run, unless it says which
  if (!e.cell) e.cell = notebook->last_number;
  td_notebook_event(notebook, &e);
}

static void run(int index) { // prints its own text
  const td_text *text = &notebook->cells[index]->text;
  int number = td_notebook_queue(notebook, index);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = text->data, .length = text->length});
  event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = text->data, .length = text->length});
  event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = number, .status = TD_RUN_DONE, .seconds = 1.5});
}

// ---- operations ----

START_TEST(operations) {
  add("a"), add("b\nc"), add("d");
  is("a|b\nc|d");
  ck_assert(td_notebook_split(notebook, 1, 2));
  is("a|b|c|d");
  ck_assert(td_notebook_merge(notebook, 2));
  is("a|b|c\nd");
  ck_assert(td_notebook_move(notebook, 2, 0));
  is("c\nd|a|b");
  ck_assert(td_notebook_move(notebook, 0, 1));
  is("a|c\nd|b");
  ck_assert(td_notebook_set_kind(notebook, 1, true));
  is("a|(c\nd)|b");
  ck_assert(td_notebook_delete(notebook, 0));
  is("(c\nd)|b");
  ck_assert(td_notebook_set_text(notebook, 1, "e", 1));
  is("(c\nd)|e");
  run(1);
  is("(c\nd)|e!1");
  ck_assert(td_notebook_clear_outputs(notebook, -1));
  is("(c\nd)|e");
  ck_assert(td_notebook_fold(notebook, 1, true));
  is("(c\nd)|e-");
  ck_assert_int_eq(td_notebook_undo(notebook), 1);
  is("(c\nd)|e");
  ck_assert_int_eq(td_notebook_undo(notebook), 1);
  is("(c\nd)|e!1");
  ck_assert_int_eq(td_notebook_undo(notebook), 1);
  is("(c\nd)|b!1"); // a run is no step
  ck_assert_int_eq(td_notebook_undo(notebook), 0);
  is("a|(c\nd)|b!1");
  ck_assert_int_eq(td_notebook_redo(notebook), 0);
  is("(c\nd)|b!1");
  while (td_notebook_undo(notebook) >= 0) continue;
  is("");
  while (td_notebook_redo(notebook) >= 0) continue;
  is("(c\nd)|e-");
}
END_TEST

START_TEST(refusals) {
  add("ab");
  ck_assert(!td_notebook_insert(notebook, 2, false, "", 0) && !td_notebook_insert(notebook, -1, false, "", 0));
  ck_assert(!td_notebook_delete(notebook, 1) && !td_notebook_delete(notebook, -1));
  ck_assert(!td_notebook_move(notebook, 0, 1) && !td_notebook_split(notebook, 0, 3) && !td_notebook_merge(notebook, 0));
  ck_assert(!td_notebook_set_text(notebook, 1, "", 0) && !td_notebook_type(notebook, -1, "", 0));
  ck_assert(!td_notebook_clear_outputs(notebook, 1) && !td_notebook_fold(notebook, 1, true));
  ck_assert_int_eq(td_notebook_queue(notebook, 1), 0);
  ck_assert_int_eq(td_notebook_undo(notebook), 0);
  ck_assert_int_eq(td_notebook_undo(notebook), -1);
}
END_TEST

START_TEST(typing) { // is one step as long as nothing else is done
  add("");
  ck_assert(td_notebook_type(notebook, 0, "x", 1) && td_notebook_type(notebook, 0, "x =", 3) &&
            td_notebook_type(notebook, 0, "x = 1", 5));
  ck_assert(td_notebook_fold(notebook, 0, true));
  ck_assert(td_notebook_type(notebook, 0, "x = 12", 6) && td_notebook_type(notebook, 0, "x = 12", 6));
  td_notebook_undo(notebook), is("x = 1-");
  td_notebook_undo(notebook), is("x = 1");
  td_notebook_undo(notebook), is("");
  td_notebook_undo(notebook), td_notebook_redo(notebook), td_notebook_redo(notebook), is("x = 1");
}
END_TEST

static uint32_t random_state;
static int draw(int below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int)((random_state >> 8) % (uint32_t)below);
}

static void any_operation(void) {
  char text[16];
  snprintf(text, sizeof text, "t%d\nu", draw(100));
  int at = draw(notebook->count + 1), other = draw(notebook->count + 1);
  switch (draw(10)) {
  case 0: td_notebook_delete(notebook, at); break;
  case 1: td_notebook_move(notebook, at, other); break;
  case 2: td_notebook_split(notebook, at, (size_t)draw(6)); break;
  case 3: td_notebook_merge(notebook, at); break;
  case 4: td_notebook_set_kind(notebook, at, draw(2)); break;
  case 5: td_notebook_set_text(notebook, at, text, strlen(text)); break;
  case 6: td_notebook_type(notebook, at, text, strlen(text)); break;
  case 7: td_notebook_fold(notebook, at, draw(2)); break;
  default: td_notebook_insert(notebook, at, draw(2), text, strlen(text)); break;
  }
}

START_TEST(undo_of_anything) { // back to the beginning and forth again, from any state
  for (random_state = 1; random_state < 60; random_state++) {
    uint32_t seed = random_state;
    for (int i = 0; i < 200; i++) {
      if (draw(4)) any_operation();
      else if (draw(2)) td_notebook_undo(notebook);
      else td_notebook_redo(notebook);
    }
    while (td_notebook_redo(notebook) >= 0) continue;
    char *end = told();
    while (td_notebook_undo(notebook) >= 0) continue;
    is("");
    while (td_notebook_redo(notebook) >= 0) continue;
    is(end);
    td_memory_free(end);
    td_notebook_free(notebook);
    notebook = td_notebook_new();
    random_state = seed;
  }
}
END_TEST

START_TEST(many_steps) {
  add("");
  for (int i = 0; i < 25000; i++) ck_assert(td_notebook_set_text(notebook, 0, i % 2 ? "a" : "b", 1));
  int undone = 0;
  while (td_notebook_undo(notebook) >= 0) undone++;
  ck_assert_int_ge(undone, 5000);
  ck_assert_int_le(undone, 10000);
}
END_TEST

START_TEST(memory_runs_out) { // an operation fails and has changed nothing, or it is done
  for (int64_t nth = 1; nth < 12; nth++)
    for (int what = 0; what < 6; what++) {
      td_notebook_free(notebook);
      notebook = td_notebook_new();
      add("a\nb"), add("c");
      td_memory_fail(nth, true);
      bool done = what == 0   ? td_notebook_insert(notebook, 1, false, "new", 3)
                  : what == 1 ? td_notebook_split(notebook, 0, 2)
                  : what == 2 ? td_notebook_merge(notebook, 0)
                  : what == 3 ? td_notebook_set_text(notebook, 0, "new", 3)
                  : what == 4 ? td_notebook_delete(notebook, 0)
                              : td_notebook_move(notebook, 0, 1);
      td_memory_fail(0, false);
      if (!done) is("a\nb|c");
      while (td_notebook_undo(notebook) >= 0) continue;
      is("");
    }
}
END_TEST

// ---- outputs ----

START_TEST(events_to_outputs) {
  static const uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
  add("f()");
  int number = td_notebook_queue(notebook, 0);
  td_notebook_cell *cell = notebook->cells[0];
  ck_assert_int_eq(cell->status, TD_CELL_QUEUED);
  event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "nobody's\n", .length = 9});
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = "f()", .length = 3});
  ck_assert_int_eq(cell->status, TD_CELL_RUNNING);
  event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "a\n", .length = 2});
  event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "b\n", .length = 2});
  event((td_event){.kind = TD_EVENT_WARNING, .text = "odd", .length = 3, .detail = "line 2"});
  event((td_event){.kind = TD_EVENT_METRIC, .text = "loss", .done = 1});
  event((td_event){.kind = TD_EVENT_METRIC, .text = "loss", .done = 1});
  event((td_event){.kind = TD_EVENT_IMAGE, .text = "image 2x1", .pixels = pixels, .width = 2, .height = 1});
  event((td_event){.kind = TD_EVENT_VALUE, .text = "4", .length = 1});
  event((td_event){.kind = TD_EVENT_ERROR,
                   .text = "error: x\n",
                   .length = 9,
                   .detail = "error: x",
                   .name = "d",
                   .line = 3,
                   .column = 4});
  uint64_t revision = notebook->revision;
  event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = number, .status = TD_RUN_FAILED, .seconds = 2});
  ck_assert_uint_gt(cell->revision, revision);
  ck_assert_int_eq(cell->status, TD_CELL_FAILED);
  ck_assert(cell->seconds == 2);
  ck_assert_int_eq(cell->output_count, 6);
  const td_cell_output *o = cell->outputs;
  ck_assert_str_eq(o[0].text.data, "a\nb\n");
  ck_assert_str_eq(o[1].text.data, "warning: odd\n  line 2\n");
  ck_assert_int_eq(o[1].stream, 2);
  ck_assert(o[2].kind == TD_OUTPUT_CURVE && !strcmp(o[2].text.data, "loss"));
  ck_assert(o[3].kind == TD_OUTPUT_IMAGE && o[3].width == 2 && !memcmp(o[3].pixels, pixels, 6));
  ck_assert(o[4].kind == TD_OUTPUT_VALUE && !strcmp(o[4].text.data, "4"));
  ck_assert(o[5].kind == TD_OUTPUT_ERROR && o[5].line == 3 && !strcmp(o[5].name, "d"));
}
END_TEST

START_TEST(pauses) { // and cells that run in one, or not at all
  add("loop()"), add("x"), add("y");
  int loop = td_notebook_queue(notebook, 0), aside = td_notebook_queue(notebook, 1),
      later = td_notebook_queue(notebook, 2);
  ck_assert_int_eq(td_notebook_queue(notebook, 0), 0);
  td_notebook_cell **cells = notebook->cells;
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = loop, .text = "loop()", .length = 6});
  event((td_event){.kind = TD_EVENT_OUTPUT, .cell = loop, .stream = 1, .text = "1\n", .length = 2});
  event((td_event){.kind = TD_EVENT_PAUSED, .cell = loop, .text = "step 3"});
  ck_assert_int_eq(cells[0]->status, TD_CELL_PAUSED);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = aside, .text = "x", .length = 1, .level = 1});
  event((td_event){.kind = TD_EVENT_VALUE, .cell = aside, .text = "7", .length = 1});
  ck_assert(cells[1]->status == TD_CELL_RUNNING && cells[0]->status == TD_CELL_PAUSED);
  event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = aside, .status = TD_RUN_DONE, .level = 1});
  event((td_event){.kind = TD_EVENT_RESUMED, .cell = loop, .text = "step 3"});
  event((td_event){.kind = TD_EVENT_OUTPUT, .cell = loop, .stream = 1, .text = "2\n", .length = 2});
  event((td_event){.kind = TD_EVENT_CELL_DROPPED, .cell = later});
  ck_assert(cells[2]->status == TD_CELL_IDLE && !cells[2]->number);
  event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = loop, .status = TD_RUN_INTERRUPTED});
  ck_assert(cells[0]->status == TD_CELL_INTERRUPTED && cells[1]->status == TD_CELL_DONE);
  ck_assert_str_eq(cells[0]->outputs[0].text.data, "1\n2\n");
  ck_assert_str_eq(cells[1]->outputs[0].text.data, "7");
  is("loop()!1|x!1|y");
}
END_TEST

START_TEST(deleted_while_running) { // its outputs are there when the deletion is undone
  add("a"), add("b");
  int number = td_notebook_queue(notebook, 0);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = "a", .length = 1});
  ck_assert(td_notebook_delete(notebook, 0));
  td_event line = {.kind = TD_EVENT_OUTPUT, .cell = number, .stream = 1, .text = "x\n", .length = 2};
  ck_assert_int_eq(td_notebook_event(notebook, &line), -1);
  td_notebook_undo(notebook), is("a!1|b");
  ck_assert_int_eq(td_notebook_event(notebook, &line), 0);
  td_notebook_undo(notebook), td_notebook_undo(notebook); // the cell itself is undone, then forgotten
  add("c");
  ck_assert_int_eq(td_notebook_event(notebook, &line), -1);
  event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = number});
  is("c");
}
END_TEST

START_TEST(long_streams) { // 60 MB of lines, one of a single line
  for (int lines = 0; lines < 2; lines++) {
    char block[1 << 16];
    memset(block, 'x', sizeof block);
    if (!lines)
      for (size_t i = 99; i < sizeof block; i += 100) block[i] = '\n';
    add("f()");
    int number = td_notebook_queue(notebook, lines);
    event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = "f()", .length = 3});
    event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "first\n", .length = 6});
    for (int i = 0; i < 960; i++)
      event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = block, .length = sizeof block});
    event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "last\n", .length = 5});
    const td_cell_output *o = notebook->cells[lines]->outputs;
    ck_assert_uint_lt(o->text.length, 6 << 20);
    ck_assert_int_eq((int64_t)o->text.length + o->bytes_cut, 960 * (int64_t)sizeof block + 11);
    ck_assert(!memcmp(o->text.data, "first\n", 6) && !strcmp(o->text.data + o->text.length - 5, "last\n"));
    ck_assert(lines || o->text.data[o->cut - 1] == '\n');
    int64_t kept = 0;
    for (size_t i = 0; i < o->text.length; i++) kept += o->text.data[i] == '\n';
    ck_assert_int_eq(kept + o->lines_cut, lines ? 2 : 960 * (int64_t)(sizeof block / 100) + 2);
    event((td_event){.kind = TD_EVENT_CELL_FINISHED, .cell = number});
  }
}
END_TEST

START_TEST(many_outputs) {
  add("f()");
  int number = td_notebook_queue(notebook, 0);
  event((td_event){.kind = TD_EVENT_CELL_STARTED, .cell = number, .text = "f()", .length = 3});
  for (int i = 0; i < 5000; i++) {
    event((td_event){.kind = TD_EVENT_VALUE, .text = "1", .length = 1});
    event((td_event){.kind = TD_EVENT_OUTPUT, .stream = 1, .text = "x\n", .length = 2});
  }
  const td_notebook_cell *cell = notebook->cells[0];
  ck_assert_int_eq(cell->output_count, 1000);
  size_t printed = 0;
  for (int i = 0; i < 1000; i++)
    if (cell->outputs[i].kind == TD_OUTPUT_STREAM && cell->outputs[i].stream == 1)
      printed += cell->outputs[i].text.length;
  ck_assert_uint_eq(printed, 10000);
}
END_TEST

// ---- names ----

static const struct {
  const char *text, *names;
} names[] = {
    {"x = 1", "x:b"},
    {"x = y + 1", "x:b y:u"},
    {"x = 1\nprint(x)", "print:u x:b"},
    {"print(x)\nx = 1", "print:u x:ub"},
    {"x += 1", "x:ub"},
    {"(a, [b, *c]) = d = e", "a:b b:b c:b d:b e:u"},
    {"def f(a, b=c):\n  d = a\n  return d + g", "c:u f:b g:u"},
    {"def f():\n  return x\nx = 1", "f:b x:b"},
    {"def f():\n  global n\n  n = 1", "f:b n:m"},
    {"class A(B):\n  z = 1\n  def m(self):\n    return k", "A:b B:u k:u"},
    {"for i in range(3):\n  s = i", "i:b range:u s:m"},
    {"if c:\n  x = 1\nelse:\n  x = 2", "c:u x:m"},
    {"with open(p) as f:\n  t = f", "f:b open:u p:u t:b"},
    {"try:\n  x = 1\nexcept E as e:\n  pass", "E:u e:m x:m"},
    {"import math", "math:bi"},
    {"from m import a as b, c", "b:bi c:bi"},
    {"del x", "x:ub"},
    {"x.a = 1", "x:uc"},
    {"x[i].b[0] = v", "i:u v:u x:uc"},
    {"del x[0]", "x:uc"},
    {"m.fit(d)", "d:u m:uf"},
    {"m.layers.append(1)", "m:uf"},
    {"x.sum()", "x:u"},
    {"x.upper()", "x:u"},
    {"l.sort()", "l:uf"},
    {"[i * k for i in r if i]", "k:u r:u"},
    {"list(a for a in b)", "b:u list:u"},
    {"f = lambda x: x + y", "f:b y:u"},
    {"%time g(h)", "g:u h:u"},
    {"f'{x}'", "x:u"},
    {"x: int = 3\ny: int", "x:b"},
    {"@d\ndef f(): pass", "d:u f:b"},
    {"x = (1", ""},
    {"return 1", ""},
    {"", ""},
    {"ä = é", "ä:b é:u"},
};

START_TEST(names_of_texts) {
  td_cell_names *found = td_cell_names_read(session.interpreter, names[_i].text, strlen(names[_i].text));
  ck_assert_ptr_nonnull(found);
  td_text text = {0};
  for (int i = 0; i < found->count; i++) {
    td_text_print(&text, "%s%s:", i ? " " : "", found->items[i].name);
    for (int bit = 0; bit < 6; bit++)
      if (found->items[i].does >> bit & 1) td_text_add_char(&text, "ubmcfi"[bit]);
  }
  td_cell_names_free(found);
  ck_assert_msg(strcmp(text.data ? text.data : "", names[_i].names) == 0, "%s: %s", names[_i].text, text.data);
  td_text_clear(&text);
}
END_TEST

static void stale(const char *wanted) { // one letter a cell
  char marks[32] = "";
  ck_assert_int_ge(td_notebook_stale(notebook, session.interpreter), 0);
  for (int i = 0; i < notebook->count; i++) marks[i] = notebook->cells[i]->stale ? '~' : '.';
  ck_assert_str_eq(marks, wanted);
}

static void run_all(void) {
  for (int i = 0; i < notebook->count; i++) run(i);
}

static void edit(int index, const char *text) { ck_assert(td_notebook_set_text(notebook, index, text, strlen(text))); }

START_TEST(stale_cells) {
  add("x = 1"), add("y = 2"), add("z = x + 1"), add("print(z)");
  stale("....");
  edit(0, "x = 2"), stale("...."); // nothing has run
  run_all(), stale("....");
  edit(0, "x = 3"), stale("..~~");
  ck_assert(td_notebook_is_changed(notebook->cells[0]) && !td_notebook_is_changed(notebook->cells[2]));
  edit(0, "x = 2"), stale("...."); // as it was
  edit(0, "x = 3"), run(0), stale("..~~");
  run(2), stale("...~");
  run(3), stale("....");
  run(1), stale("....");
  edit(2, "z = x +"), stale("...."); // binds nothing while it does not parse
  td_notebook_undo(notebook), stale("....");
}
END_TEST

START_TEST(stale_by_changes) {
  add("import math\nm = Model()"), add("m.fit(math.pi)"), add("print(m)"), add("m = Other()"), add("print(m)");
  run_all(), stale(".....");
  run(1), stale("..~.."); // from what the last sure binding above gives
  run(2), run(0), stale(".~~..");
  edit(3, "m = Another()"), stale(".~~.~");
  td_notebook_insert(notebook, 4, false, "m = 0", 5), stale(".~~..~");
}
END_TEST

START_TEST(stale_from_below) {
  add("print(w)"), add("w = 1");
  run(1), run(0), stale("..");
  run(1), stale("~.");
}
END_TEST

START_TEST(order_of_runs) {
  int first = 0, second = 0;
  add("a"), add("b"), add("c");
  ck_assert(td_notebook_in_order(notebook, &first, &second));
  run_all();
  ck_assert(td_notebook_in_order(notebook, &first, &second));
  run(0);
  ck_assert(!td_notebook_in_order(notebook, &first, &second));
  ck_assert_int_eq(first, 4);
  ck_assert_int_eq(second, 2);
  ck_assert_int_eq(td_notebook_find_number(notebook, 4), 0);
}
END_TEST

START_TEST(stale_with_many_cells) {
  add("x0 = 1");
  char text[64];
  for (int i = 1; i < 2000; i++) snprintf(text, sizeof text, "x%d = x%d + x0", i, i - 1), add(text);
  run_all();
  ck_assert_int_eq(td_notebook_stale(notebook, session.interpreter), 0);
  edit(1000, "x1000 = 0");
  ck_assert_int_eq(td_notebook_stale(notebook, session.interpreter), 999);
}
END_TEST

// ---- visible text ----

START_TEST(visible_text) {
  static const char data[] = "a\x1b]0;t\a\tb\r\nc\xff\xc2\x9b\0d\xe2\x80\xae é\n";
  td_text text = {0};
  td_visible_add(&text, data, sizeof data - 1, false);
  ck_assert_str_eq(text.data, "a\\x1b]0;t\\x07\\x09b\\x0d\nc\\xff\\x9b\\x00d\\u202e é\n");
  td_text_clear(&text);
  td_visible_add(&text, data, sizeof data - 1, true);
  ck_assert_str_eq(text.data, "a\\x1b]0;t\\x07\tb\\x0d\nc\\xff\\x9b\\x00d\\u202e é\n");
  td_text_clear(&text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("notebook/cells");
  const struct {
    const char *name;
    const TTest *test;
    int count;
  } cases[] = {{"operations", operations, 1},
               {"refusals", refusals, 1},
               {"typing", typing, 1},
               {"undo", undo_of_anything, 1},
               {"steps", many_steps, 1},
               {"memory", memory_runs_out, 1},
               {"events", events_to_outputs, 1},
               {"deleted", deleted_while_running, 1},
               {"pauses", pauses, 1},
               {"streams", long_streams, 1},
               {"outputs", many_outputs, 1},
               {"names", names_of_texts, sizeof names / sizeof *names},
               {"stale", stale_cells, 1},
               {"changes", stale_by_changes, 1},
               {"below", stale_from_below, 1},
               {"order", order_of_runs, 1},
               {"many", stale_with_many_cells, 1},
               {"visible", visible_text, 1}};
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
