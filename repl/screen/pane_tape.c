// A tape as it was recorded: records with op, shape, bytes, time and source line; one of them with its values, its
// gradient and histograms; up and down along what made a value and what used it; the first NaN or infinity. The report is
// a copy, so looking at it stops nothing.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tensor/dtype.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/report_tape.h"
#include "repl/screen/list.h"
#include "repl/screen/panes.h"

enum { DETAIL_ROWS = 12, HISTOGRAM_ROWS = 4 };

typedef struct state {
  const td_pane_host *host;
  int32_t id;              // of the table; id + 1 of a record
  td_list_view list;
  td_report_tape *report;  // owned; NULL: none came yet
  td_report_record *record; // owned; of the selected row, or NULL
  int64_t record_of;       // row that was asked for; -1
  int64_t *rows;           // those that the filter lets pass; NULL: all. Owned
  int64_t row_count;
  char *filter, *search, *tape; // tape: an expression; NULL: the newest
  char problem[160];
  bool follow, waiting, visible;
} state;

static void open_tape(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  s->host = host;
  s->id = first_id;
  s->record_of = -1;
  s->follow = true;
}

static void drop(td_payload *payload) {
  if (payload) payload->release(payload);
}

static void close_tape(void *self) {
  state *s = self;
  drop((td_payload *)s->report);
  drop((td_payload *)s->record);
  td_memory_free(s->rows);
  td_memory_free(s->filter);
  td_memory_free(s->search);
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

static void choose_rows(state *s) {
  td_memory_free(s->rows);
  s->rows = NULL;
  s->row_count = s->report ? s->report->count : 0;
  if (!s->filter || !s->report) return;
  s->rows = td_memory_new(((size_t)s->report->count + 1) * sizeof *s->rows);
  if (!s->rows) return;
  s->row_count = 0;
  for (int64_t i = 0; i < s->report->count; i++)
    if (row_holds(s, i, s->filter)) s->rows[s->row_count++] = i;
}

// ---- what comes in ----

static void ask(state *s) {
  if (!s->waiting)
    s->waiting = s->host->inquire(s->host->owner, td_report_tape_make, s->tape ? s->tape : "", s->id);
}

static void ask_record(state *s) {
  if (!selected(s)) return;
  int64_t row = row_at(s, s->list.selected);
  if (row == s->record_of) return;
  td_text argument = {0};
  td_text_print(&argument, "%lld%s%s", (long long)row, s->tape ? " " : "", s->tape ? s->tape : "");
  if (argument.data && s->host->inquire(s->host->owner, td_report_record_make, argument.data, s->id + 1)) s->record_of = row;
  td_text_clear(&argument);
}

static void take_table(state *s, const td_event *event) {
  s->waiting = false;
  if (!event->payload || event->payload->kind != TD_REPORT_TAPE) {
    snprintf(s->problem, sizeof s->problem, "%s", event->text ? event->text : "");
    return;
  }
  bool at_end = !s->report || s->list.selected >= s->row_count - 1;
  drop((td_payload *)s->report);
  s->report = (td_report_tape *)s->host->take_payload(s->host->owner);
  s->problem[0] = 0;
  s->record_of = -1;
  choose_rows(s);
  if (at_end && s->follow) s->list.selected = s->report && s->report->record_count ? s->report->record_count - 1 : 0;
  if (s->list.selected >= s->row_count) s->list.selected = s->row_count ? s->row_count - 1 : 0;
  ask_record(s);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (s->visible && event->kind == TD_EVENT_CELL_FINISHED && s->follow) ask(s);
  if (event->kind != TD_EVENT_ANSWER) return;
  if ((int32_t)event->id == s->id) take_table(s, event);
  if ((int32_t)event->id != s->id + 1) return;
  drop((td_payload *)s->record);
  s->record = NULL;
  if (event->payload && event->payload->kind == TD_REPORT_RECORD)
    s->record = (td_report_record *)s->host->take_payload(s->host->owner);
}

static void shown(void *self, bool visible) {
  state *s = self;
  s->visible = visible;
  if (visible) ask(s);
}

// ---- keys ----

static void go(state *s, int64_t row) {
  int64_t place = row < 0 ? -1 : place_of(s, row);
  if (place < 0 && row >= 0) { // the filter hides it
    td_memory_free(s->filter);
    s->filter = NULL;
    choose_rows(s);
    place = row;
  }
  if (place >= 0) td_list_view_go(&s->list, place);
  ask_record(s);
}

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
  s->host->say(s->host->owner, "no NaN and no infinity in what the tape keeps");
}

static void jump(state *s) {
  const td_tape_row *row = selected(s);
  if (!row || !s->report->source_count) return;
  const td_tape_source *source = &s->report->sources[row->source];
  s->host->jump(s->host->owner, s->report->texts + source->name, source->line, source->column);
}

static void filtered(void *self, const char *line) {
  state *s = self;
  if (!line) return;
  td_memory_free(s->filter);
  s->filter = *line ? td_memory_text(line) : NULL;
  choose_rows(s);
  td_list_view_fit(&s->list, s->row_count, s->list.rows);
  ask_record(s);
}

static void search_on(state *s, int direction) {
  for (int64_t step = 1; s->search && step <= s->row_count; step++) {
    int64_t place = ((s->list.selected + direction * step) % s->row_count + s->row_count) % s->row_count;
    if (!row_holds(s, row_at(s, place), s->search)) continue;
    td_list_view_go(&s->list, place);
    ask_record(s);
    return;
  }
  s->host->say(s->host->owner, "not found");
}

static void searched(void *self, const char *line) {
  state *s = self;
  if (!line || !*line) return;
  td_memory_free(s->search);
  s->search = td_memory_text(line);
  search_on(s, 1);
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

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_TAPE_FOLLOW: s->follow = true; td_memory_free(s->tape); s->tape = NULL; ask(s); return true;
  case TD_REQUEST_TAPE_INPUT: go_to_input(s); return true;
  case TD_REQUEST_TAPE_USE: go_to_use(s); return true;
  case TD_REQUEST_TAPE_BAD: go_to_bad(s); return true;
  case TD_REQUEST_TAPE_JUMP: jump(s); return true;
  case TD_REQUEST_TAPE_STEP: s->host->ask(s->host->owner, "step the backward pass of (as tape.gradient(loss, x)): ", stepped, s); return true;
  case TD_REQUEST_PANE_OPEN: s->host->ask(s->host->owner, "tape (its name; empty: the newest): ", named, s); return true;
  case TD_REQUEST_PANE_FILTER: s->host->ask(s->host->owner, "&", filtered, s); return true;
  case TD_REQUEST_PANE_SEARCH: s->host->ask(s->host->owner, "/", searched, s); return true;
  case TD_REQUEST_PANE_SEARCH_NEXT: search_on(s, 1); return true;
  case TD_REQUEST_PANE_SEARCH_BACK: search_on(s, -1); return true;
  default: break;
  }
  if (!td_list_view_request(&s->list, request)) return false;
  s->follow = s->follow && s->list.selected >= s->row_count - 1;
  ask_record(s);
  return true;
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
  td_text_print(title, " %s: %lld records, %.1f MB", s->report->title, (long long)s->report->record_count,
                (double)s->report->bytes / (1 << 20));
  if (s->report->open) td_text_add(title, ", records");
  if (s->report->spent) td_text_add(title, ", spent");
  if (s->filter) td_text_print(title, " &%s", s->filter);
}

static void shape_print(const state *s, const td_tape_row *row, td_text *text) {
  td_text_print(text, "%s[", td_dtype_name(row->dtype));
  for (int i = 0; i < row->rank; i++)
    td_text_print(text, "%s%lld", i ? ", " : "", (long long)s->report->shapes[row->shape + (uint32_t)i]);
  td_text_add_char(text, ']');
}

static int index_columns(const state *s) {
  int columns = 4;
  for (int64_t most = 10000; most < s->report->record_count; most *= 10) columns++;
  return columns;
}

static void draw_row(const state *s, td_surface *surface, td_rect area, int at, int64_t index, bool is_selected) {
  const td_tape_row *row = &s->report->rows[index];
  const td_tape_source *source = s->report->source_count ? &s->report->sources[row->source] : NULL;
  bool bad = row->flags & (TD_TAPE_ROW_NAN | TD_TAPE_ROW_INFINITE), leaf = row->flags & TD_TAPE_ROW_LEAF;
  td_style style = td_theme_style(s->host->theme, bad ? TD_LOOK_FAILED : leaf ? TD_LOOK_PROMPT : TD_LOOK_TEXT);
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  char mark = row->flags & TD_TAPE_ROW_FIRST ? '!' : bad ? 'x' : row->flags & TD_TAPE_ROW_VISITED ? '<' : ' ';
  td_text shape = {0};
  shape_print(s, row, &shape);
  int line = area.row + at, column = area.column, left = area.columns;
  int digits = index_columns(s);
  if (leaf) td_surface_print(surface, line, column, digits, faint, "%*s", digits, "-");
  else td_surface_print(surface, line, column, digits, faint, "%*lld", digits, (long long)index);
  column += digits - 4;
  left -= digits - 4;
  td_surface_print(surface, line, column + 5, 1, td_theme_style(s->host->theme, bad ? TD_LOOK_FAILED : TD_LOOK_DONE), "%c", mark);
  td_surface_print(surface, line, column + 7, 15, style, "%s", op_of(s, row));
  if (left > 24 && shape.data) td_surface_text(surface, line, column + 23, left - 23 < 20 ? left - 23 : 20, shape.data, shape.length, style);
  td_text_clear(&shape);
  int at_column = 44;
  if (left > at_column + 20 && !leaf) {
    td_surface_print(surface, line, column + at_column, 9, faint, "%.1f KB", (double)row->bytes / 1024);
    at_column += 10;
    if (row->seconds >= 0 && left > at_column + 20) {
      td_surface_print(surface, line, column + at_column, 9, faint, "%.0f us", (double)row->seconds * 1e6);
      at_column += 9;
    }
  }
  if (left > at_column + 8 && source && source->line > 0)
    td_surface_print(surface, line, column + at_column, left - at_column, faint, "%d: %s", source->line,
                     s->report->texts + source->text);
  if (is_selected)
    td_surface_restyle(surface, (td_rect){line, area.column, 1, area.columns}, (td_style){-1, -1, TD_REVERSE});
}

static int draw_histogram(const state *s, td_surface *surface, td_rect area, int row, const char *title,
                          const td_histogram *h) {
  if (!h->elements || row + 1 >= area.rows) return row;
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  bool bad = h->nans > 0 || h->infinities > 0;
  td_surface_print(surface, area.row + row, area.column, area.columns,
                   bad ? td_theme_style(s->host->theme, TD_LOOK_FAILED) : faint,
                   "%s: %.4g to %.4g, mean %.4g, %.0f%% zeros%s", title, h->least, h->most, h->mean,
                   100.0 * (double)h->zeros / (double)h->elements, h->sampled ? " (sampled)" : "");
  if (bad)
    td_surface_print(surface, area.row + row, area.column, area.columns, td_theme_style(s->host->theme, TD_LOOK_FAILED),
                     "%s: %lld NaN, %lld infinities of %lld", title, (long long)h->nans, (long long)h->infinities,
                     (long long)h->elements);
  row++;
  int rows = area.rows - row < HISTOGRAM_ROWS ? area.rows - row : HISTOGRAM_ROWS;
  td_chart_cells cells;
  td_chart_histogram bars = {h->least, h->most, TD_HISTOGRAM_BINS, h->count, h->nans, h->infinities, 0};
  if (rows < 1 || !td_chart_cells_start(&cells, area.columns < 48 ? area.columns : 48, rows)) return row;
  td_histogram_cells(&cells, &bars, s->host->theme->glyphs, false, TD_CELL_CURVE);
  td_theme_chart(s->host->theme, surface, area.row + row, area.column, &cells);
  td_chart_cells_clear(&cells);
  return row + rows;
}

static void draw_detail(const state *s, td_surface *surface, td_rect area) {
  const td_report_record *r = s->record;
  td_style plain = td_theme_style(s->host->theme, TD_LOOK_TEXT), head = td_theme_style(s->host->theme, TD_LOOK_HEADING);
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  td_surface_fill(surface, (td_rect){area.row, area.column, 1, area.columns},
                  td_theme_glyph(s->host->theme, TD_GLYPH_HORIZONTAL), td_theme_style(s->host->theme, TD_LOOK_FRAME));
  if (!r) return;
  int row = 1;
  td_surface_print(surface, area.row + row++, area.column, area.columns, head, "%lld %s(%s) -> %s", (long long)r->index,
                   r->op, r->arguments, r->shape);
  td_surface_print(surface, area.row + row++, area.column, area.columns, faint, "%s  %s", r->place, r->source);
  if (*r->value) td_surface_print(surface, area.row + row++, area.column, area.columns, plain, "value %s", r->value);
  row = draw_histogram(s, surface, area, row, "values", &r->values);
  if (*r->cotangent && row < area.rows)
    td_surface_print(surface, area.row + row++, area.column, area.columns, plain, "gradient %s", r->cotangent);
  draw_histogram(s, surface, area, row, "gradient", &r->cotangents);
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  if (!s->report || !s->report->count) {
    td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
    td_surface_print(surface, area.row + 1, area.column, area.columns, faint, "%s",
                     *s->problem ? s->problem : s->waiting ? "looking" : "no tape yet");
    td_surface_print(surface, area.row + 2, area.column, area.columns, faint, "with GradientTape() as tape: records what runs in it");
    return;
  }
  int detail = area.rows >= 2 * DETAIL_ROWS ? DETAIL_ROWS : area.rows >= 12 ? area.rows / 2 : 0, rows = area.rows - detail;
  td_surface_print(surface, area.row, area.column, area.columns, td_theme_style(s->host->theme, TD_LOOK_HEADING),
                   "%*s   op              shape               %s", index_columns(s), "#", area.columns > 64 ? " kept      time    line" : "");
  td_list_view_fit(&s->list, s->row_count, rows - 1);
  for (int i = 0; i < rows - 1 && s->list.top + i < s->row_count; i++) {
    int64_t place = s->list.top + i;
    draw_row(s, surface, area, i + 1, row_at(s, place), place == s->list.selected);
  }
  (void)focus;
  if (detail) draw_detail(s, surface, (td_rect){area.row + rows, area.column, detail, area.columns});
}

const td_pane_type td_pane_tape = {.name = "tape", .context = TD_IN_TAPE, .toggle = TD_REQUEST_SHOW_TAPE,
  .state_size = sizeof(state), .open = open_tape, .close = close_tape, .event = take_event, .shown = shown,
  .request = take_request, .click = take_click, .title = write_title, .draw = draw};
