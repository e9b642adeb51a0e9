// The frame: where things stand, and what each of them draws.
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "repl/screen/display.h"
#include "repl/screen/highlight.h"
#include "repl/screen/screen.h"

static const double WAITS_SECONDS = 1; // that a pane's question may take before it is told

static td_style look(const td_screen *s, enum td_look which) { return td_theme_style(&s->theme, which); }

// ---- the title ----

static double resident_megabytes(void) {
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  if (fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  fclose(file);
  return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void measure_load(td_screen *s) {
  struct timespec used;
  double now = td_screen_now();
  if (now - s->process_at < 1) return;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  double seconds = (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
  if (s->process_at > 0) s->load = 100 * (seconds - s->process_time) / (now - s->process_at);
  s->process_time = seconds;
  s->process_at = now;
}

// "[3] model.fit(x, y)": the cell that runs.
static void add_running(const td_screen *s, td_text *text) {
  enum { MOST = 32 };
  int index = s->run_number ? td_notebook_find_number(s->notebook, s->run_number) : -1;
  if (index < 0) return;
  const td_text *source = &s->notebook->cells[index]->text;
  size_t length = source->data ? strcspn(source->data, "\n") : 0, shown = 0;
  for (int columns = 0; shown < length && columns < MOST;) {
    td_shown character = td_show_character(source->data + shown, length - shown, columns);
    shown += character.size;
    columns += character.columns;
  }
  td_text_print(text, " [%d] ", s->run_number);
  td_text_add_bytes(text, source->data ? source->data : "", shown);
  if (shown < source->length) td_text_add(text, "...");
}

static void draw_title(td_screen *s) {
  td_rect area = s->layout.title;
  if (!area.rows) return;
  static const char *const states[] = {"", "running", "pausing", "paused", "paused: a cell runs"};
  td_style style = look(s, TD_LOOK_BAR);
  td_text left = {0}, right = {0};
  const char *slash = s->path ? strrchr(s->path, '/') : NULL;
  td_text_print(&left, " tapedeck  %s%s", s->path ? (slash ? slash + 1 : s->path) : "(no name)",
                td_notebook_is_saved(s->notebook) ? "" : "*");
  const char *state = states[td_session_get_state(s->session)];
  if (*state) td_text_print(&left, "  %s", state);
  if (*state && area.columns >= 80) add_running(s, &left);
  int queued = td_session_queued(s->session), first, second;
  if (queued > 0) td_text_print(&left, "  %d queued", queued);
  if (!td_notebook_in_order(s->notebook, &first, &second))
    td_text_print(&right, "out of order: %d after %d  ", first, second);
  measure_load(s);
  double memory = resident_megabytes();
  if (memory >= 1000) td_text_print(&right, "CPU %.0f%%  %.1f GB ", s->load, memory / 1024);
  else td_text_print(&right, "CPU %.0f%%  %.0f MB ", s->load, memory);
  td_surface_fill(&s->surface, area, ' ', style);
  int used = td_surface_text(&s->surface, area.row, 0, area.columns, left.data, left.length, style);
  int columns = td_text_columns(right.data, right.length);
  if (used + columns + 2 <= area.columns)
    td_surface_text(&s->surface, area.row, area.columns - columns, columns, right.data, right.length, style);
  td_text_clear(&left);
  td_text_clear(&right);
}

// ---- the status line ----

static int add_hint(td_screen *s, int column, enum td_request request, const char *word) {
  td_rect area = s->layout.status;
  td_text keys = {0};
  td_request_keys(request, 0, &keys);
  int columns = (int)keys.length + 1 + (int)strlen(word) + 2;
  if (column + columns <= area.columns) {
    int used = td_surface_text(&s->surface, area.row, column, area.columns, keys.data, keys.length,
                               look(s, TD_LOOK_BAR_KEY));
    td_surface_text(&s->surface, area.row, column + used + 1, area.columns, word, strlen(word), look(s, TD_LOOK_BAR));
    column += columns;
  }
  td_text_clear(&keys);
  return column;
}

typedef struct hint { enum td_request request; const char *word; } hint;

static void add_hints(td_screen *s, int column) {
  static const hint prompt[] = {{TD_REQUEST_HELP, "help"}, {TD_REQUEST_LEAVE_EDIT, "cells"},
    {TD_REQUEST_SHOW_CURVES, "curves"}, {TD_REQUEST_SHOW_TAPE, "tape"}, {TD_REQUEST_SHOW_VARIABLES, "variables"},
    {TD_REQUEST_SAVE, "save"}, {TD_REQUEST_QUIT, "leave"}, {0, NULL}};
  static const hint cell[] = {{TD_REQUEST_SUBMIT, "run"}, {TD_REQUEST_LEAVE_EDIT, "done"},
    {TD_REQUEST_CELL_SPLIT, "split"}, {TD_REQUEST_HELP, "help"}, {0, NULL}};
  static const hint cells[] = {
      {TD_REQUEST_CELL_EDIT, "edit"},    {TD_REQUEST_CELL_RUN, "run"},       {TD_REQUEST_CELL_ABOVE, "above"},
      {TD_REQUEST_CELL_BELOW, "below"},  {TD_REQUEST_CELL_DELETE, "delete"}, {TD_REQUEST_CELL_UNDO, "undo"},
      {TD_REQUEST_CELL_LEAVE, "prompt"}, {TD_REQUEST_HELP, "help"},          {0, NULL}};
  static const hint pane[] = {{TD_REQUEST_PANE_LEAVE, "prompt"}, {TD_REQUEST_PANE_CLOSE, "close"},
    {TD_REQUEST_ZOOM, "zoom"}, {TD_REQUEST_HELP, "keys"}, {0, NULL}};
  static const hint paused[] = {{TD_REQUEST_RESUME, "go on"}, {TD_REQUEST_STEP, "step"},
    {TD_REQUEST_STOP, "stop"}, {0, NULL}};
  static const hint *const by_focus[] = {prompt, cell, cells, pane};
  td_session_state state = td_session_get_state(s->session);
  if (state == TD_SESSION_PAUSED || state == TD_SESSION_ASIDE)
    for (const hint *h = paused; h->word; h++) column = add_hint(s, column, h->request, h->word);
  if (state == TD_SESSION_RUNNING || state == TD_SESSION_PAUSING) {
    td_rect area = s->layout.status;
    bool steps = td_session_takes_steps(s->session);
    const char *word = state == TD_SESSION_RUNNING && steps ? "pause" : "stop";
    int used = td_surface_text(&s->surface, area.row, column, area.columns, "Ctrl-C", 6, look(s, TD_LOOK_BAR_KEY));
    used += td_surface_print(&s->surface, area.row, column + used, area.columns, look(s, TD_LOOK_BAR), " %s  ", word);
    column += used;
    if (s->focus == TD_FOCUS_PROMPT && steps) column = add_hint(s, column, TD_REQUEST_SUBMIT, "at the next step");
  }
  enum td_request into = s->pane >= 0 && s->focus != TD_FOCUS_PANE ? td_screen_pane_type(s->pane)->toggle : 0;
  if (into) column = add_hint(s, column, into, "into the pane");
  for (const hint *h = by_focus[s->focus]; h->word; h++)
    if (h->request != into) column = add_hint(s, column, h->request, h->word);
  if (s->pane >= 0 && s->focus == TD_FOCUS_PANE)
    for (int i = 1; i < TD_REQUEST_COUNT; i++)
      if (td_request_rows[i].context == (int)td_screen_pane_type(s->pane)->context)
        column = add_hint(s, column, (enum td_request)i, td_request_rows[i].help);
}

static void draw_status(td_screen *s) {
  td_rect area = s->layout.status;
  td_style style = look(s, TD_LOOK_BAR);
  td_surface_fill(&s->surface, area, ' ', style);
  int column = 1;
  const char *mode = td_edit_mode();
  if (s->question.answer) {
    column =
        td_surface_text(&s->surface, area.row, 0, area.columns, s->question.prompt, strlen(s->question.prompt), style);
    if (s->question.key) return;
    size_t length, cursor;
    const char *text = td_edit_text(&length, &cursor);
    int before = td_text_columns(text, cursor), room = area.columns - column - 1;
    size_t skip = 0;
    while (before > room && skip < cursor) { // the part at the cursor is in sight
      td_shown shown = td_show_character(text + skip, length - skip, 0);
      skip += shown.size;
      before -= shown.columns;
    }
    td_surface_text(&s->surface, area.row, column, room, text + skip, length - skip, style);
    s->surface.cursor_row = area.row;
    s->surface.cursor_column = column + before;
    return;
  }
  if (s->prefix.code) {
    td_text keys = {0};
    td_key_print(&s->prefix, &keys);
    column += td_surface_print(&s->surface, area.row, column, area.columns, look(s, TD_LOOK_BAR_KEY), "%s- ",
                               keys.data ? keys.data : "");
    td_text_clear(&keys);
  }
  if (*s->message) {
    td_surface_text(&s->surface, area.row, column, area.columns - column, s->message, strlen(s->message), style);
    return;
  }
  if (!td_tip_draw(&s->tip, &s->theme, &s->surface, area)) add_hints(s, column);
  if (mode)
    td_surface_print(&s->surface, area.row, area.columns - 5, 5, look(s, TD_LOOK_BAR_KEY), " %s ", mode);
}

// ---- the prompt ----

static const char *prompt_text(td_screen *s, size_t *length, size_t *cursor) {
  if (s->focus == TD_FOCUS_PROMPT && !s->question.answer) return td_edit_text(length, cursor);
  *length = s->draft.length;
  *cursor = s->draft_cursor;
  return s->draft.data ? s->draft.data : "";
}

static void prompt_label(const td_screen *s, char label[64]) {
  const char *question = s->focus == TD_FOCUS_PROMPT && !s->question.answer ? td_edit_question() : NULL;
  if (question) snprintf(label, 64, "%s", question);
  else if (s->input) snprintf(label, 64, "%s", s->input_prompt.data ? s->input_prompt.data : "");
  else snprintf(label, 64, "[%d]> ", s->notebook->last_number + 1);
}

static int prompt_columns(const td_screen *s, int area_columns) {
  char label[64];
  prompt_label(s, label);
  int columns = td_text_columns(label, strlen(label));
  return columns < area_columns - 4 ? columns : area_columns - 4;
}

static int prompt_rows(td_screen *s, int columns) {
  size_t length, cursor;
  const char *text = prompt_text(s, &length, &cursor);
  int width = columns - prompt_columns(s, columns), row, column;
  if (width < 4) width = 4;
  int rows = td_wrap_count(text, length, width, TD_WRAP_LETTERS);
  td_wrap_find(text, length, width, TD_WRAP_LETTERS, cursor, &row, &column);
  return rows > row ? rows : row + 1;
}

static void draw_prompt(td_screen *s) {
  td_rect area = s->layout.input;
  size_t length, cursor;
  const char *text = prompt_text(s, &length, &cursor);
  char label[64];
  prompt_label(s, label);
  int gutter = prompt_columns(s, area.columns), width = area.columns - gutter, cursor_row, cursor_column;
  if (width < 4) width = 4;
  td_wrap_find(text, length, width, TD_WRAP_LETTERS, cursor, &cursor_row, &cursor_column);
  int top = cursor_row >= area.rows ? cursor_row - area.rows + 1 : 0;
  uint8_t *looks = td_memory_new(length + 1);
  bool active = s->focus == TD_FOCUS_PROMPT && !s->question.answer;
  if (looks) td_highlight(text, length, active ? cursor : (size_t)-1, looks);
  td_surface_clip(&s->surface, area);
  td_wrapped row = {0};
  for (int i = 0; td_wrap_next(text, length, width, &row); i++) {
    if (i < top || i >= top + area.rows) continue;
    int at_row = area.row + i - top;
    bool first = i == 0, new_line = i > 0 && row.begin > 0 && text[row.begin - 1] == '\n';
    if (first) td_surface_text(&s->surface, at_row, area.column, gutter, label, strlen(label), look(s, TD_LOOK_PROMPT));
    else if (new_line && gutter >= 4)
      td_surface_text(&s->surface, at_row, area.column + gutter - 4, 4, "... ", 4, look(s, TD_LOOK_FAINT));
    td_highlight_draw(&s->surface, &s->theme, at_row, area.column + gutter, text, length, row.begin, row.end, looks,
                      NULL);
  }
  if (top > 0)
    td_surface_print(&s->surface, area.row, area.column, area.columns, look(s, TD_LOOK_FAINT), "+%d above", top);
  td_memory_free(looks);
  if (active) {
    s->surface.cursor_row = area.row + cursor_row - top;
    s->surface.cursor_column = area.column + gutter + cursor_column;
  }
  td_surface_clip(&s->surface, (td_rect){0, 0, s->surface.rows, s->surface.columns});
}

// ---- the rest ----

static void draw_welcome(td_screen *s) {
  static const char *const lines[] = {
      "tapedeck: tensors, gradients and training, seen as they run", "",
      "Type at the prompt below and press Enter:", "",
      "    x = Variable(3.0)",
      "    with GradientTape() as tape:",
      "      y = x ** 3",
      "                               (an empty line ends the block)",
      "    tape.gradient(y, x)", "",
      "Tab completes    ?tanh explains    F1 all keys    Esc walks the cells",
      "tapedeck samples/tour.deck shows the rest; samples/ has more to begin with"};
  td_rect area = s->layout.cells;
  int count = (int)(sizeof lines / sizeof *lines), top = area.rows > count + 2 ? (area.rows - count) / 3 : 0;
  for (int i = 0; i < count && top + i < area.rows; i++)
    td_surface_text(&s->surface, area.row + top + i, area.column + (area.columns > 64 ? 4 : 0), area.columns, lines[i],
                    strlen(lines[i]), look(s, i ? TD_LOOK_FAINT : TD_LOOK_HEADING));
}

static void draw_pane(td_screen *s) {
  td_rect area = s->layout.pane;
  if (s->pane < 0 || !area.rows || !area.columns) return;
  const td_pane_type *type = td_screen_pane_type(s->pane);
  bool focus = s->focus == TD_FOCUS_PANE;
  td_style frame = look(s, focus ? TD_LOOK_FRAME_FOCUS : TD_LOOK_FRAME);
  if (s->layout.divider.rows)
    td_surface_fill(&s->surface, s->layout.divider, td_theme_glyph(&s->theme, TD_GLYPH_VERTICAL), frame);
  td_text title = {0};
  type->title(s->states[s->pane], &title);
  double asked = s->asked_at[s->pane], waits = asked > 0 ? td_screen_now() - asked : 0;
  if (waits >= WAITS_SECONDS) td_text_print(&title, "  waits %.0f s for what runs", waits);
  td_surface_text(&s->surface, area.row, area.column, area.columns, title.data ? title.data : "", title.length,
                  focus ? frame : look(s, TD_LOOK_TITLE));
  td_text_clear(&title);
  td_rect inner = {area.row + 1, area.column, area.rows - 1, area.columns};
  if (inner.rows < 1) return;
  td_surface_clip(&s->surface, inner);
  type->draw(s->states[s->pane], &s->surface, inner, focus);
  td_surface_clip(&s->surface, (td_rect){0, 0, s->surface.rows, s->surface.columns});
}

// Pixels go behind what curses sent, and only when they changed: curses doesn't know of them.
static void show_pictures(td_screen *s) {
  td_rect a = s->placed.area, b = s->drawn.area;
  bool same = s->placed.serial == s->drawn.serial && a.row == b.row && a.column == b.column && a.rows == b.rows &&
              a.columns == b.columns;
  if (same && !td_display_was_redrawn()) return;
  td_text text = {0};
  int width, height;
  td_display_cell_size(&width, &height);
  if (s->drawn.serial) td_graphics_erase(s->graphics, &text);
  if (s->placed.serial) td_graphics_draw(s->graphics, &s->placed.held, a.columns, a.rows, width, height, &text);
  if (s->drawn.serial && s->graphics == TD_GRAPHICS_SIXEL && !same) td_display_redraw(); // cells cover what was there
  if (text.data && !text.failed) td_display_raw(a.row, a.column, text.data, text.length);
  td_text_clear(&text);
  s->drawn = s->placed;
}

static void place(td_screen *s, int rows, int columns) {
  td_layout_wish wish = {.rows = rows, .columns = columns, .pane = s->pane >= 0, .zoomed = s->zoomed, .share = s->share,
                         .bars = s->bars.count, .input = 1};
  s->layout = td_layout_make(&wish);
  if (s->layout.too_small) return;
  wish.input = prompt_rows(s, s->layout.input.columns);
  s->layout = td_layout_make(&wish);
}

void td_screen_draw(td_screen *s) {
  int rows, columns;
  td_display_size(&rows, &columns);
  if ((rows != s->surface.rows || columns != s->surface.columns) && !td_surface_resize(&s->surface, rows, columns))
    return;
  td_surface_clear(&s->surface);
  s->placed = (td_placed){0};
  place(s, rows, columns);
  if (s->layout.too_small) {
    td_surface_print(&s->surface, 0, 0, columns, look(s, TD_LOOK_TEXT), "20x4 needed");
    td_display_show(&s->surface);
    return;
  }
  size_t length, cursor;
  td_edit_text(&length, &cursor);
  s->view.walking = s->focus == TD_FOCUS_CELLS || s->focus == TD_FOCUS_CELL;
  s->view.editing = s->focus == TD_FOCUS_CELL && !s->question.answer;
  s->view.edit_cursor = cursor;
  draw_title(s);
  if (!s->notebook->count) draw_welcome(s);
  td_cells_view_draw(&s->view, &s->surface, s->layout.cells);
  td_bars_paint(&s->bars, &s->theme, &s->surface, s->layout.bars);
  draw_pane(s);
  draw_prompt(s);
  draw_status(s);
  if (s->focus == TD_FOCUS_PROMPT || s->focus == TD_FOCUS_CELL) {
    td_rect area = s->focus == TD_FOCUS_CELL
                       ? s->layout.cells
                       : (td_rect){s->layout.title.rows, 0, rows - 1 - s->layout.title.rows, columns};
    td_popup_draw(&s->popup, td_edit_matches_now(), &s->theme, &s->surface, area);
  }
  td_display_show(&s->surface);
  show_pictures(s);
}
