// A tape as it was recorded: records with op, shape, gradient, bytes, time and source line; one of them with its
// values, its gradient and histograms; up and down along what made a value and what used it; the first NaN or infinity.
// The report is a copy, so looking at it stops nothing. A backward pass that goes by steps (%tape --step) is followed,
// and its questions are answered from here.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tensor/dtype.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/report_tape.h"
#include "repl/screen/finder.h"
#include "repl/screen/numbers.h"
#include "repl/screen/panes.h"

enum { DETAIL_ROWS = 14, LOOK_APART = 20 };

typedef enum sorting { BY_TIME, BY_BYTES, BY_SECONDS, BY_GRADIENT, SORTING_COUNT } sorting;
static const char *const sorting_names[] = {"", " by bytes", " by time", " by gradient"};

typedef struct state {
  const td_pane_host *host;
  int32_t id;              // of the table; id + 1 of a record
  td_list_view list;
  td_report_tape *report;  // owned; NULL: none came yet
  td_report_record *record; // owned; of the selected row, or NULL
  int64_t record_of;       // row that was asked for; -1
  int64_t *rows;           // those that the filter lets pass, sorted; NULL: all as they came. Owned
  int64_t row_count;
  td_finder finder;
  char *tape;              // an expression; NULL: the newest
  char problem[160];
  bool follow, waiting, visible;
  sorting sort;
  bool has_gradients;      // a pass was seen
  bool running;            // a cell does
  double next_look;        // while it does: not before, so that looking takes a small part of its time
  bool stepping;           // a pass stands at record step_at; record is its
  int64_t step_at;
} state;

static void drop(td_payload *payload) {
  if (payload) payload->release(payload);
}

static void close_tape(void *self) {
  state *s = self;
  drop((td_payload *)s->report);
  drop((td_payload *)s->record);
  td_memory_free(s->rows);
  td_finder_clear(&s->finder);
  td_memory_free(s->tape);
}

// ---- rows ----

static int64_t row_at(const state *s, int64_t place) { return s->rows ? s->rows[place] : place; }

static int64_t place_of(const state *s, int64_t row) {
  for (int64_t i = 0; s->rows && i < s->row_count; i++)
    if (s->rows[i] == row) return i;
  return s->rows ? -1 : row;
}

static const td_tape_row *selected(const state *s) {
  return s->report && s->list.selected < s->row_count ? &s->report->rows[row_at(s, s->list.selected)] : NULL;
}

static const char *op_of(const state *s, const td_tape_row *row) { return s->report->texts + row->op; }

static bool row_holds(const state *s, int64_t index, const char *text) {
  const td_tape_row *row = &s->report->rows[index];
  if (strstr(op_of(s, row), text)) return true;
  const td_tape_source *source = &s->report->sources[row->source];
  if (s->report->source_count && strstr(s->report->texts + source->text, text)) return true;
  for (int i = 0; i < row->input_count; i++) { // a Variable that it reads
    int32_t input = s->report->inputs[row->first_input + (uint32_t)i];
    if (input >= s->report->record_count && strstr(op_of(s, &s->report->rows[input]), text)) return true;
  }
  return false;
}

static double key_of(const td_tape_row *row, sorting by) {
  return by == BY_BYTES ? (double)row->bytes : by == BY_SECONDS ? (double)row->seconds : (double)row->gradient;
}

static const td_tape_row *sorted_rows; // qsort has no argument of its own; the face has one thread
static sorting sorted_by;

static int by_key(const void *a, const void *b) { // the greatest first
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  double x = key_of(&sorted_rows[i], sorted_by), y = key_of(&sorted_rows[j], sorted_by);
  return x == y ? (i > j) - (i < j) : x < y ? 1 : -1;
}

static void find_rows(state *s) {
  td_memory_free(s->rows);
  s->rows = NULL;
  s->row_count = s->report ? s->report->count : 0;
  if (!s->report || (!s->finder.filter && s->sort == BY_TIME)) return;
  s->rows = td_memory_new(((size_t)s->report->count + 1) * sizeof *s->rows);
  if (!s->rows) return;
  s->row_count = 0;
  for (int64_t i = 0; i < s->report->count; i++)
    if (!s->finder.filter || row_holds(s, i, s->finder.filter)) s->rows[s->row_count++] = i;
  sorted_rows = s->report->rows;
  sorted_by = s->sort;
  if (s->sort != BY_TIME) qsort(s->rows, (size_t)s->row_count, sizeof *s->rows, by_key);
}

static void choose_rows(state *s) {
  find_rows(s);
  s->list.count = s->row_count; // drawn or not, one can go to them
}

static bool has_gradients(const td_report_tape *r) {
  for (int64_t i = 0; r && i < r->record_count; i++)
    if (r->rows[i].gradient >= 0) return true;
  return false;
}

// ---- what comes in ----

// Also while an answer is awaited: it may have been made before what happened now. One that waits is replaced.
static void ask(state *s) {
  if (s->host->inquire(s->host->owner, td_report_tape_make, s->tape ? s->tape : "", s->id)) s->waiting = true;
}

static void ask_record(state *s) {
  if (!selected(s)) return;
  int64_t row = row_at(s, s->list.selected);
  if (row == s->record_of) return;
  td_text argument = {0};
  td_text_print(&argument, "%lld%s%s", (long long)row, s->tape ? " " : "", s->tape ? s->tape : "");
  if (argument.data && s->host->inquire(s->host->owner, td_report_record_make, argument.data, s->id + 1))
    s->record_of = row;
  td_text_clear(&argument);
}

static void go(state *s, int64_t row) {
  int64_t place = row < 0 ? -1 : place_of(s, row);
  if (place < 0 && row >= 0) { // the filter hides it
    td_finder_show_all(&s->finder);
    place = place_of(s, row);
  }
  if (place >= 0) td_list_view_go(&s->list, place);
  ask_record(s);
}

static void take_table(state *s, const td_event *event) {
  s->waiting = false;
  s->next_look = s->host->now(s->host->owner) + LOOK_APART * event->seconds;
  if (!event->payload || event->payload->kind != TD_REPORT_TAPE) {
    const char *why = event->text ? event->text : "", *class = strstr(why, "Error: ");
    snprintf(s->problem, sizeof s->problem, "%s", class ? class + strlen("Error: ") : why);
    return;
  }
  bool at_end = !s->report || s->list.selected >= s->row_count - 1;
  drop((td_payload *)s->report);
  s->report = (td_report_tape *)s->host->take_payload(s->host->owner);
  s->problem[0] = 0;
  s->record_of = s->stepping ? s->step_at : -1;
  s->has_gradients = has_gradients(s->report);
  choose_rows(s);
  if (s->stepping) s->list.selected = place_of(s, s->step_at);
  else if (at_end && s->follow)
    s->list.selected = s->report && s->report->record_count ? s->report->record_count - 1 : 0;
  if (s->list.selected < 0) s->list.selected = 0;
  if (s->list.selected >= s->row_count) s->list.selected = s->row_count ? s->row_count - 1 : 0;
  ask_record(s);
}

static void take_step(state *s, const td_event *event) {
  s->stepping = true;
  s->step_at = s->record_of = event->done;
  drop((td_payload *)s->record);
  s->record = event->payload ? (td_report_record *)s->host->take_payload(s->host->owner) : NULL;
  if (s->report && event->done < s->report->count) go(s, event->done);
  ask(s); // its gradient is known now
}

static void take_record(state *s, const td_event *event) {
  if (s->stepping && s->record_of == s->step_at) return; // an answer from before
  drop((td_payload *)s->record);
  s->record = NULL;
  if (event->payload && event->payload->kind == TD_REPORT_RECORD)
    s->record = (td_report_record *)s->host->take_payload(s->host->owner);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  switch (event->kind) {
  case TD_EVENT_STEP: take_step(s, event); break;
  case TD_EVENT_CELL_STARTED: s->running = true; break;
  case TD_EVENT_CELL_FINISHED:
    s->running = s->running && event->level > 0;
    s->stepping = false;
    if (s->visible && s->follow) ask(s);
    break;
  case TD_EVENT_ANSWER:
    if ((int32_t)event->id == s->id) take_table(s, event);
    if ((int32_t)event->id == s->id + 1) take_record(s, event);
    break;
  default: break;
  }
}

// While a cell runs its newest tape is looked at again and again; else tapes are kept and timed for the next look.
static void tick(void *self) {
  state *s = self;
  bool looks = s->follow && !s->stepping && s->host->now(s->host->owner) >= s->next_look;
  if (s->running && looks) ask(s);
  else s->host->inquire(s->host->owner, td_report_watch, "", s->id + 2);
}

static void shown(void *self, bool visible) {
  state *s = self;
  s->visible = visible;
  if (visible) ask(s);
}

// ---- keys ----

static void go_to_input(state *s) {
  const td_tape_row *row = selected(s);
  for (int i = 0; row && i < row->input_count; i++) {
    int32_t input = s->report->inputs[row->first_input + (uint32_t)i];
    if (input < 0) continue;
    go(s, input);
    return;
  }
  s->host->say(s->host->owner, "nothing on the tape made its inputs");
}

static void go_to_use(state *s) {
  if (!selected(s)) return;
  int64_t wanted = row_at(s, s->list.selected);
  for (int64_t i = 0; i < s->report->record_count; i++) {
    const td_tape_row *row = &s->report->rows[i];
    for (int j = 0; j < row->input_count; j++)
      if (s->report->inputs[row->first_input + (uint32_t)j] == wanted) {
        go(s, i);
        return;
      }
  }
  s->host->say(s->host->owner, "no record uses it");
}

static void go_to_bad(state *s) {
  for (int64_t i = 0; s->report && i < s->report->count; i++)
    if (s->report->rows[i].flags & TD_TAPE_ROW_FIRST) {
      go(s, i);
      return;
    }
  s->host->say(s->host->owner, s->report && s->report->spent
                                   ? "its gradient was taken, which gave up its values: persistent=True keeps them, "
                                     "%nan on names the first NaN"
                                   : "no NaN and no infinity in what the tape keeps");
}

static void jump(state *s) {
  const td_tape_row *row = selected(s);
  if (!row || !s->report->source_count) return;
  const td_tape_source *source = &s->report->sources[row->source];
  s->host->jump(s->host->owner, s->report->texts + source->name, source->line, source->column);
}

static bool holds(const void *self, int64_t place, const char *text) {
  return row_holds(self, row_at(self, place), text);
}

static void moved(void *self) {
  state *s = self;
  s->follow = s->follow && s->list.selected >= s->row_count - 1;
  ask_record(s);
}

static void filtered(void *self) {
  state *s = self;
  choose_rows(s);
  td_list_view_fit(&s->list, s->row_count, s->list.rows);
  ask_record(s);
}

static void open_tape(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  s->host = host;
  s->id = first_id;
  s->record_of = -1;
  s->follow = true;
  s->finder = (td_finder){host, s, &s->list, holds, moved, filtered, NULL, NULL};
}

static void named(void *self, const char *line) {
  state *s = self;
  if (!line) return;
  td_memory_free(s->tape);
  s->tape = *line ? td_memory_text(line) : NULL;
  s->follow = !s->tape;
  ask(s);
}

static void stepped(void *self, const char *line) {
  state *s = self;
  if (!line || !*line) return;
  td_text command = {0};
  td_text_print(&command, "%%tape %s --step %s", s->report && *s->report->title ? s->report->title : "tape", line);
  if (command.data) s->host->run(s->host->owner, command.data);
  td_text_clear(&command);
}

static void reply(state *s, const char *line) {
  if (!s->stepping) s->host->say(s->host->owner, "no pass goes by steps here: s begins one");
  else if (!s->host->reply(s->host->owner, line)) s->host->say(s->host->owner, "it computes");
}

static void replaced(void *self, const char *line) {
  td_text command = {0};
  if (!line || !*line) return;
  td_text_print(&command, "set %s", line);
  if (command.data) reply(self, command.data);
  td_text_clear(&command);
}

static void ask_replacement(state *s) {
  if (!s->stepping) reply(s, "");
  else s->host->ask(s->host->owner, "goes on instead (cotangent is what came; NAME = where several lead on): ",
                    replaced, s);
}

static bool step_request(state *s, enum td_request request) {
  switch (request) {
  case TD_REQUEST_TAPE_STEP:
    if (s->stepping) reply(s, "n");
    else s->host->ask(s->host->owner, "step the backward pass of (as tape.gradient(loss, x)): ", stepped, s);
    return true;
  case TD_REQUEST_TAPE_GO: reply(s, "c"); return true;
  case TD_REQUEST_TAPE_SET: ask_replacement(s); return true;
  case TD_REQUEST_TAPE_QUIT: reply(s, "q"); return true;
  case TD_REQUEST_PANE_OPEN:
    if (s->stepping) reply(s, "n");
    return s->stepping;
  default: return false;
  }
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  if (step_request(s, request)) return true;
  switch (request) {
  case TD_REQUEST_PANE_SORT:
    s->sort = (sorting)((s->sort + 1) % SORTING_COUNT), choose_rows(s), ask_record(s);
    return true;
  case TD_REQUEST_TAPE_FOLLOW: s->follow = true; td_memory_free(s->tape); s->tape = NULL; ask(s); return true;
  case TD_REQUEST_TAPE_INPUT: go_to_input(s); return true;
  case TD_REQUEST_TAPE_USE: go_to_use(s); return true;
  case TD_REQUEST_TAPE_BAD: go_to_bad(s); return true;
  case TD_REQUEST_TAPE_JUMP: jump(s); return true;
  case TD_REQUEST_PANE_OPEN:
    s->host->ask(s->host->owner, "tape (its name; empty: the newest): ", named, s);
    return true;
  default: return td_finder_request(&s->finder, request);
  }
}

static void take_click(void *self, const td_key *key) {
  state *s = self;
  if (key->row < 1 || key->row > s->list.rows) return;
  td_list_view_go(&s->list, s->list.top + key->row - 1);
  ask_record(s);
}

// ---- drawing ----

static void write_title(void *self, td_text *title) {
  const state *s = self;
  td_text_add(title, "tape");
  if (!s->report) return;
  td_text_print(title, "%s%s: %lld records, %.1f MB", *s->report->title ? " " : "", s->report->title,
                (long long)s->report->record_count, (double)s->report->bytes / (1 << 20));
  if (s->report->open) td_text_add(title, ", records");
  if (s->report->spent) td_text_add(title, ", spent");
  td_text_add(title, sorting_names[s->sort]);
  if (s->finder.filter) td_text_print(title, " &%s", s->finder.filter);
  if (s->stepping) td_text_print(title, "; a pass stands at %lld", (long long)s->step_at);
}

static int index_columns(const state *s) {
  int columns = 4;
  for (int64_t most = 10000; most < s->report->record_count; most *= 10) columns++;
  return columns;
}

// The columns that fit. Where there is a gradient, it goes before a wide shape.
typedef struct table { // columns; -1: not shown
  int op, shape, gradient, bytes, seconds, line, op_columns, shape_columns;
} table;

enum { WIDE = 60, SHAPE_LEAST = 7, SHAPE = 20, GRADIENT = 8, BYTES = 9, SECONDS = 8, LINE = 12 };

static int next_column(int *at, int columns, int width) {
  int column = *at;
  if (column + columns > width) return -1;
  *at += columns + 1;
  return column;
}

static table place_columns(const state *s, int width) {
  table t = {.op = index_columns(s) + 3, .op_columns = width < WIDE ? 12 : 15};
  bool gradient = s->has_gradients;
  t.shape = t.op + t.op_columns + 1;
  int left = width - t.shape - (gradient ? GRADIENT + 1 : 0);
  t.shape_columns = left < SHAPE_LEAST ? SHAPE_LEAST : left < SHAPE ? left : SHAPE;
  int at = t.shape + t.shape_columns + 1;
  t.gradient = gradient ? next_column(&at, GRADIENT, width) : -1;
  t.bytes = at + BYTES + LINE <= width ? next_column(&at, BYTES, width) : -1;
  t.seconds = at + SECONDS + LINE <= width ? next_column(&at, SECONDS, width) : -1;
  t.line = at + LINE <= width ? at : -1;
  return t;
}

static void shape_print(const state *s, const td_tape_row *row, bool narrow, td_text *text) {
  if (!narrow || strcmp(td_dtype_name(row->dtype), "float32") != 0) td_text_add(text, td_dtype_name(row->dtype));
  td_text_add_char(text, '[');
  for (int i = 0; i < row->rank; i++)
    td_text_print(text, "%s%lld", i ? ", " : "", (long long)s->report->shapes[row->shape + (uint32_t)i]);
  td_text_add_char(text, ']');
}

static char mark_of(const td_tape_row *row) {
  if (row->flags & TD_TAPE_ROW_FIRST) return '!';
  if (row->flags & (TD_TAPE_ROW_NAN | TD_TAPE_ROW_INFINITE)) return 'x';
  if (row->flags & TD_TAPE_ROW_EXPLODED) return '^';
  if (row->flags & TD_TAPE_ROW_VANISHED) return 'v';
  return row->flags & TD_TAPE_ROW_VISITED ? '<' : ' ';
}

static void draw_numbers(const state *s, td_surface *surface, int line, td_rect area, const td_tape_row *row,
                         const table *t) {
  const td_theme *theme = s->host->theme;
  td_style faint = td_theme_style(theme, TD_LOOK_FAINT);
  char text[16];
  bool odd = row->flags & (TD_TAPE_ROW_VANISHED | TD_TAPE_ROW_EXPLODED);
  double gradient = row->gradient < 0 ? (double)NAN : (double)row->gradient;
  (row->flags & TD_TAPE_ROW_GLANCED ? td_numbers_rough : td_numbers_figure)(text, gradient);
  if (t->gradient >= 0)
    td_surface_print(surface, line, area.column + t->gradient, GRADIENT,
                     odd ? td_theme_style(theme, TD_LOOK_WARNING) : td_theme_style(theme, TD_LOOK_TEXT), "%s", text);
  if (row->flags & TD_TAPE_ROW_LEAF) return;
  if (t->bytes >= 0)
    td_surface_print(surface, line, area.column + t->bytes, BYTES, faint, "%.1f KB", (double)row->bytes / 1024);
  if (t->seconds >= 0 && row->seconds >= 0)
    td_surface_print(surface, line, area.column + t->seconds, SECONDS, faint, "%.0f us", (double)row->seconds * 1e6);
}

static void draw_row(const state *s, td_surface *surface, td_rect area, int at, int64_t index, const table *t,
                     bool is_selected) {
  const td_tape_row *row = &s->report->rows[index];
  const td_theme *theme = s->host->theme;
  const td_tape_source *source = s->report->source_count ? &s->report->sources[row->source] : NULL;
  bool bad = row->flags & (TD_TAPE_ROW_NAN | TD_TAPE_ROW_INFINITE), leaf = row->flags & TD_TAPE_ROW_LEAF;
  td_style style = td_theme_style(theme, bad ? TD_LOOK_FAILED : leaf ? TD_LOOK_PROMPT : TD_LOOK_TEXT);
  td_style faint = td_theme_style(theme, TD_LOOK_FAINT);
  int line = area.row + at, digits = index_columns(s);
  char mark = mark_of(row);
  td_text shape = {0};
  if (leaf) td_surface_print(surface, line, area.column, digits, faint, "%*s", digits, "-");
  else td_surface_print(surface, line, area.column, digits, faint, "%*lld", digits, (long long)index);
  td_surface_print(surface, line, area.column + digits + 1, 1,
                   td_theme_style(theme, bad ? TD_LOOK_FAILED : mark == '<' ? TD_LOOK_DONE : TD_LOOK_WARNING), "%c",
                   mark);
  td_surface_print(surface, line, area.column + t->op, t->op_columns, style, "%s", op_of(s, row));
  shape_print(s, row, area.columns < WIDE, &shape);
  if (shape.data)
    td_surface_text(surface, line, area.column + t->shape, t->shape_columns, shape.data, shape.length, style);
  td_text_clear(&shape);
  draw_numbers(s, surface, line, area, row, t);
  if (t->line >= 0 && source && source->line > 0)
    td_surface_print(surface, line, area.column + t->line, area.columns - t->line, faint, "%d: %s", source->line,
                     s->report->texts + source->text);
  if (is_selected)
    td_surface_restyle(surface, (td_rect){line, area.column, 1, area.columns}, (td_style){-1, -1, TD_REVERSE});
}

static void draw_head(td_surface *surface, td_rect area, const table *t, td_style style) {
  td_surface_print(surface, area.row, area.column + 3, 1, style, "#");
  td_surface_print(surface, area.row, area.column + t->op, t->op_columns, style, "op");
  td_surface_print(surface, area.row, area.column + t->shape, t->shape_columns, style, "shape");
  if (t->gradient >= 0) td_surface_print(surface, area.row, area.column + t->gradient, GRADIENT, style, "gradient");
  if (t->bytes >= 0) td_surface_print(surface, area.row, area.column + t->bytes, BYTES, style, "kept");
  if (t->seconds >= 0) td_surface_print(surface, area.row, area.column + t->seconds, SECONDS, style, "time");
  if (t->line >= 0) td_surface_print(surface, area.row, area.column + t->line, LINE, style, "line");
}

static int draw_cotangent(const state *s, td_surface *surface, td_rect area, int row) {
  const td_report_record *r = s->record;
  td_style plain = td_theme_style(s->host->theme, TD_LOOK_TEXT);
  if (!*r->cotangent || row >= area.rows) return row;
  td_surface_print(surface, area.row + row++, area.column, area.columns, plain, "gradient %s", r->cotangent);
  row = td_lines_draw(surface, area, row, area.rows, r->onward, plain);
  return td_numbers_draw(s->host->theme, surface, area, row, "gradient", &r->cotangents);
}

static int draw_value(const state *s, td_surface *surface, td_rect area, int row) {
  const td_report_record *r = s->record;
  if (!*r->value || row >= area.rows) return row;
  td_surface_print(surface, area.row + row++, area.column, area.columns, td_theme_style(s->host->theme, TD_LOOK_TEXT),
                   "value %s", r->value);
  return td_numbers_draw(s->host->theme, surface, area, row, "values", &r->values);
}

// What the mark of a row means.
static const char *trouble_of(const td_tape_row *row) {
  if (row->flags & TD_TAPE_ROW_FIRST) return "the first NaN or infinity arose here";
  if (row->flags & TD_TAPE_ROW_NAN) return "its value has NaN";
  if (row->flags & TD_TAPE_ROW_INFINITE) return "its value has infinities";
  if (row->flags & TD_TAPE_ROW_EXPLODED) return "its gradient explodes: above 1e3";
  if (row->flags & TD_TAPE_ROW_VANISHED) return "its gradient vanishes: below 1e-8 of the largest before it";
  return NULL;
}

static void draw_detail(const state *s, td_surface *surface, td_rect area) {
  const td_report_record *r = s->record;
  td_style head = td_theme_style(s->host->theme, TD_LOOK_HEADING);
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  td_surface_fill(surface, (td_rect){area.row, area.column, 1, area.columns},
                  td_theme_glyph(s->host->theme, TD_GLYPH_HORIZONTAL), td_theme_style(s->host->theme, TD_LOOK_FRAME));
  if (!r) return;
  int row = 1;
  td_surface_print(surface, area.row + row++, area.column, area.columns, head, "%lld %s(%s) -> %s", (long long)r->index,
                   r->op, r->arguments, r->shape);
  td_surface_print(surface, area.row + row++, area.column, area.columns, faint, "%s  %s", r->place, r->source);
  const char *trouble = selected(s) ? trouble_of(selected(s)) : NULL;
  if (trouble && row < area.rows)
    td_surface_print(surface, area.row + row++, area.column, area.columns,
                     td_theme_style(s->host->theme, TD_LOOK_WARNING), "%s", trouble);
  if (s->stepping) row = draw_cotangent(s, surface, area, row);
  row = draw_value(s, surface, area, row);
  if (!s->stepping) draw_cotangent(s, surface, area, row);
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  (void)focus;
  if (!s->report || !s->report->count) {
    td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
    const char *said = *s->problem ? s->problem : s->waiting ? "looking" : "no tape yet";
    int row = td_words_draw(surface, area, 1, said, faint);
    td_words_draw(surface, area, row,
                  "with GradientTape() as tape: records what runs in it; the tapes of fit are here while it runs",
                  faint);
    return;
  }
  int detail = area.rows >= 2 * DETAIL_ROWS ? DETAIL_ROWS : area.rows >= 12 ? area.rows / 2 : 0;
  int rows = area.rows - detail;
  table t = place_columns(s, area.columns);
  draw_head(surface, area, &t, td_theme_style(s->host->theme, TD_LOOK_HEADING));
  td_list_view_fit(&s->list, s->row_count, rows - 1);
  for (int i = 0; i < rows - 1 && s->list.top + i < s->row_count; i++) {
    int64_t place = s->list.top + i;
    draw_row(s, surface, area, i + 1, row_at(s, place), &t, place == s->list.selected);
  }
  if (detail) draw_detail(s, surface, (td_rect){area.row + rows, area.column, detail, area.columns});
}

static bool answers(const void *self) { return ((const state *)self)->stepping; }

const td_pane_type td_pane_tape = {.name = "tape",
                                   .context = TD_IN_TAPE,
                                   .toggle = TD_REQUEST_SHOW_TAPE,
                                   .state_size = sizeof(state),
                                   .open = open_tape,
                                   .close = close_tape,
                                   .event = take_event,
                                   .shown = shown,
                                   .tick = tick,
                                   .answers = answers,
                                   .request = take_request,
                                   .click = take_click,
                                   .title = write_title,
                                   .draw = draw};
