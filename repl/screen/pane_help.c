// Help: the keys of what had the focus, all keys by place, and pages of the language (?name) that were asked for.
#include <string.h>
#include "repl/notebook/report.h"
#include "repl/screen/list.h"
#include "repl/screen/panes.h"

enum { KEYS_COLUMNS = 24 };

typedef struct state {
  const td_pane_host *host;
  int32_t id;
  td_list_view list;
  td_text page;            // of the language; empty: the keys
  td_text keys;
  td_text wrapped;         // what is shown, for so many columns; 0: to be made
  int columns;
} state;

static void add_keys(td_text *text, enum td_request request) {
  for (int which = 0; td_request_keys(request, which, text); which++) td_text_add(text, "  ");
}

static void add_context(td_text *text, int context, const char *title) {
  td_text_print(text, "%s\n", title);
  for (int i = 1; i < TD_REQUEST_COUNT; i++) {
    if (td_request_rows[i].context != context) continue;
    td_text line = {0};
    td_text_add(&line, "  ");
    add_keys(&line, (enum td_request)i);
    td_text_pad(&line, KEYS_COLUMNS, ' ');
    td_text_print(text, "%s%s\n", line.data ? line.data : "", td_request_rows[i].help);
    td_text_clear(&line);
  }
  td_text_add_char(text, '\n');
}

static void write_keys(state *s, int first) {
  static const char *const titles[] = {
#define X(NAME, text) text,
      TD_CONTEXTS(X)
#undef X
  };
  td_text *text = &s->keys;
  td_text_add(text,
              "tapedeck in a minute\n\n"
              "  Type code at the prompt below; Enter runs it. A block ends with an empty line.\n"
              "  Tab completes; ?name explains; name?? shows the source. Up recalls what ran.\n"
              "  Esc walks the cells: j k move, Enter edits, r runs, a b make new ones, dd deletes, u undoes.\n"
              "  While something runs: Ctrl-C pauses it at the next step. Look, change, F5 goes on;\n"
              "  Ctrl-C again stops it. Code you enter meanwhile waits; with Alt-Enter it runs at the next step.\n"
              "  F2 curves, F3 tape, F9 variables, F7 the whole log. A pane's key opens it,\n"
              "  a second time goes into it, a third time closes it. Esc goes back to the prompt.\n"
              "  Ctrl-X Ctrl-S saves, Ctrl-X Ctrl-C leaves. In Ctrl-X c, let Ctrl go before the c.\n\n");
  add_context(text, first, titles[first]);
  if (first > TD_IN_PANE) add_context(text, TD_IN_PANE, titles[TD_IN_PANE]);
  for (int i = 0; i < TD_IN_COUNT; i++)
    if (i != first && (i != TD_IN_PANE || first <= TD_IN_PANE)) add_context(text, i, titles[i]);
  td_text_add(text, "Text is edited with readline: its keys and your ~/.inputrc hold (%set editing vi for vi's).\n"
                    "%set theme dark|light|mono, %set glyphs braille|block|half|ascii, %set mouse on|off\n");
}

static void open_help(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  s->host = host;
  s->id = first_id;
  s->list.reader = true;
}

static void shown(void *self, bool visible) { // the keys of where one comes from stand first
  state *s = self;
  if (!visible) return;
  s->keys.length = 0;
  s->columns = 0;
  s->list.top = 0;
  write_keys(s, s->host->context(s->host->owner));
}

static void close_help(void *self) {
  state *s = self;
  td_text_clear(&s->page);
  td_text_clear(&s->keys);
  td_text_clear(&s->wrapped);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (event->kind != TD_EVENT_ANSWER || (int32_t)event->id != s->id) return;
  td_text_clear(&s->page);
  const td_report_text *report = (const td_report_text *)event->payload;
  if (report && report->payload.kind == TD_REPORT_TEXT) td_text_add_bytes(&s->page, report->text, report->length);
  else td_text_add(&s->page, event->text && *event->text ? event->text : "no help on that\n");
  s->columns = 0;
  s->list.top = 0;
}

static const td_text *shown_text(const state *s) { return s->page.length ? &s->page : &s->keys; }

static void asked_name(void *self, const char *name) {
  state *s = self;
  if (name && *name) s->host->inquire(s->host->owner, td_report_help, name, s->id);
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  if (td_list_view_request(&s->list, request)) return true;
  switch (request) {
  case TD_REQUEST_PANE_BACK:
    td_text_clear(&s->page);
    s->columns = 0;
    s->list.top = 0;
    return true;
  case TD_REQUEST_PANE_SEARCH: case TD_REQUEST_PANE_OPEN:
    s->host->ask(s->host->owner, "help on: ", asked_name, s);
    return true;
  default: return false;
  }
}

static void write_title(void *self, td_text *title) {
  const state *s = self;
  td_text_add(title, s->page.length ? "help (Backspace: keys, /: a name)" : "help and keys (/: a name)");
}

// ---- drawing ----

enum { WIDE = 60, NARROW_INDENT = 4 };

// Where a line goes on: under its text, behind its keys where there is room for both.
static int indent_of(const char *line, size_t length, int columns) {
  size_t blank = 0;
  while (blank < length && line[blank] == ' ') blank++;
  bool keys = blank && length > KEYS_COLUMNS && line[KEYS_COLUMNS - 1] == ' ' && line[KEYS_COLUMNS] != ' ';
  if (keys && line[KEYS_COLUMNS - 2] == ' ') return columns >= WIDE ? KEYS_COLUMNS : NARROW_INDENT;
  return (int)blank < columns / 2 ? (int)blank : 0;
}

static void wrap_line(td_text *out, const char *line, size_t length, int columns) {
  int indent = indent_of(line, length, columns), left = 0;
  const char *end = line + length;
  do {
    td_wrapped row = {.by = TD_WRAP_WORDS};
    td_wrap_next(line, (size_t)(end - line), columns - left, &row);
    td_text_pad(out, out->length + (size_t)left, ' ');
    td_text_add_bytes(out, line, row.end);
    td_text_add_char(out, '\n');
    for (line += row.next; line < end && *line == ' ';) line++;
    left = indent;
  } while (line < end);
}

static void wrap(state *s, const td_text *text, int columns) {
  s->wrapped.length = 0;
  s->columns = columns;
  for (size_t at = 0, length; at < text->length; at += length + 1) {
    length = strcspn(text->data + at, "\n");
    wrap_line(&s->wrapped, text->data + at, length, columns);
  }
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  (void)focus;
  if (s->columns != area.columns) wrap(s, shown_text(s), area.columns);
  const td_text *text = &s->wrapped;
  td_style plain = td_theme_style(s->host->theme, TD_LOOK_TEXT), head = td_theme_style(s->host->theme, TD_LOOK_HEADING);
  td_list_view_fit(&s->list, td_wrap_count(text->data, text->length, area.columns, TD_WRAP_WORDS), area.rows);
  td_wrapped row = {.by = TD_WRAP_WORDS};
  for (int64_t i = 0; td_wrap_next(text->data, text->length, area.columns, &row); i++) {
    if (i < s->list.top || i >= s->list.top + area.rows) continue;
    bool heading = !s->page.length && row.end > row.begin && text->data[row.begin] != ' ';
    td_surface_text(surface, area.row + (int)(i - s->list.top), area.column, area.columns, text->data + row.begin,
                    row.end - row.begin, heading ? head : plain);
  }
}

const td_pane_type td_pane_help = {.name = "help", .context = TD_IN_HELP, .toggle = TD_REQUEST_HELP,
  .state_size = sizeof(state), .open = open_help, .close = close_help, .event = take_event, .shown = shown,
  .request = take_request, .title = write_title, .draw = draw};
