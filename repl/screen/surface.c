// See surface.h.
#include "repl/screen/surface.h"
#include <stdarg.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/builtins.h"
#include "repl/language/source.h"

enum { TAB = 8 };

static const td_style plain = {-1, -1, 0};

// ---- the grid ----

static td_rect whole(const td_surface *s) { return (td_rect){0, 0, s->rows, s->columns}; }

td_rect td_rect_meet(td_rect a, td_rect b) {
  int top = a.row > b.row ? a.row : b.row, left = a.column > b.column ? a.column : b.column;
  int bottom = a.row + a.rows < b.row + b.rows ? a.row + a.rows : b.row + b.rows;
  int right = a.column + a.columns < b.column + b.columns ? a.column + a.columns : b.column + b.columns;
  return (td_rect){top, left, bottom > top ? bottom - top : 0, right > left ? right - left : 0};
}

bool td_surface_resize(td_surface *s, int rows, int columns) {
  if (rows < 1) rows = 1;
  if (columns < 1) columns = 1;
  td_spot *spots = td_memory_resize(s->spots, (size_t)rows * (size_t)columns * sizeof *spots);
  if (!spots) return false;
  s->spots = spots;
  s->rows = rows;
  s->columns = columns;
  td_surface_clear(s);
  return true;
}

void td_surface_free(td_surface *s) {
  td_memory_free(s->spots);
  memset(s, 0, sizeof *s);
}

void td_surface_clear(td_surface *s) {
  for (int i = 0; i < s->rows * s->columns; i++) s->spots[i] = (td_spot){' ', 0, plain};
  s->clip = whole(s);
  s->cursor_row = s->cursor_column = -1;
}

void td_surface_clip(td_surface *s, td_rect clip) { s->clip = td_rect_meet(clip, whole(s)); }

static td_spot *spot_at(const td_surface *s, int row, int column) {
  if (row < s->clip.row || row >= s->clip.row + s->clip.rows) return NULL;
  if (column < s->clip.column || column >= s->clip.column + s->clip.columns) return NULL;
  return &s->spots[row * s->columns + column];
}

static void part_wide(td_surface *s, int row, int column) { // half of a wide character is no character
  td_spot *row_spots = &s->spots[row * s->columns];
  if (!row_spots[column].code && column > 0) row_spots[column - 1].code = ' ';
  if (column + 1 < s->columns && !row_spots[column + 1].code) row_spots[column + 1].code = ' ';
}

void td_surface_put(td_surface *s, int row, int column, uint32_t code, td_style style) {
  td_spot *spot = spot_at(s, row, column);
  int width = td_source_width(code);
  if (!spot) return;
  if (!width) {
    if (!spot->mark) spot->mark = code;
    return;
  }
  bool fits = width == 1 || spot_at(s, row, column + 1);
  part_wide(s, row, column);
  *spot = (td_spot){fits ? code : '?', 0, style};
  if (width == 1 || !fits) return;
  part_wide(s, row, column + 1);
  spot[1] = (td_spot){0, 0, style};
}

void td_surface_fill(td_surface *s, td_rect area, uint32_t code, td_style style) {
  td_rect inner = td_rect_meet(area, s->clip);
  for (int row = 0; row < inner.rows; row++)
    for (int column = 0; column < inner.columns; column++)
      td_surface_put(s, inner.row + row, inner.column + column, code, style);
}

void td_surface_restyle(td_surface *s, td_rect area, td_style style) {
  td_rect inner = td_rect_meet(area, s->clip);
  for (int row = 0; row < inner.rows; row++)
    for (int column = 0; column < inner.columns; column++) {
      td_style *spot = &s->spots[(inner.row + row) * s->columns + inner.column + column].style;
      if (style.foreground >= 0) spot->foreground = style.foreground;
      if (style.background >= 0) spot->background = style.background;
      spot->attributes |= style.attributes;
    }
}

int td_surface_text(td_surface *s, int row, int column, int columns, const char *text, size_t length, td_style style) {
  int used = 0;
  for (size_t at = 0; at < length && text[at] != '\n';) {
    td_shown shown = td_show_character(text + at, length - at, used);
    if (used + shown.columns > columns) break;
    int to = shown.columns ? used : used - 1; // a combining character goes over the one before it
    for (int i = 0; i < shown.count && to >= 0; i++) {
      td_surface_put(s, row, column + to, shown.codes[i], style);
      to += td_source_width(shown.codes[i]);
    }
    used += shown.columns;
    at += shown.size;
  }
  return used;
}

int td_surface_print(td_surface *s, int row, int column, int columns, td_style style, const char *format, ...) {
  td_text text = {0};
  va_list list;
  va_start(list, format);
  td_text_print_list(&text, format, list);
  va_end(list);
  int used = text.data ? td_surface_text(s, row, column, columns, text.data, text.length, style) : 0;
  td_text_clear(&text);
  return used;
}

void td_surface_to_text(const td_surface *s, td_text *text) {
  for (int row = 0; row < s->rows; row++) {
    const td_spot *spots = &s->spots[row * s->columns];
    int end = s->columns;
    while (end && spots[end - 1].code == ' ') end--;
    for (int column = 0; column < end; column++) {
      char bytes[4];
      if (spots[column].code) td_text_add_bytes(text, bytes, (size_t)td_utf8_encode(bytes, spots[column].code));
      if (spots[column].mark) td_text_add_bytes(text, bytes, (size_t)td_utf8_encode(bytes, spots[column].mark));
    }
    td_text_add_char(text, '\n');
  }
}

// ---- text in columns ----

td_shown td_show_character(const char *text, size_t length, int column) {
  td_shown shown = {.size = 1};
  uint32_t code = (unsigned char)*text;
  if (code == '\t') {
    shown.columns = shown.count = TAB - column % TAB;
    for (int i = 0; i < shown.count; i++) shown.codes[i] = ' ';
    return shown;
  }
  int size = td_source_decode(text, length, &code);
  if (size) shown.size = (size_t)size;
  if (size && code >= ' ' && code < 0x7f) {
    shown.columns = shown.count = 1;
    shown.codes[0] = code;
    return shown;
  }
  td_text visible = {0};
  shown.columns = td_source_print(&visible, text, shown.size);
  for (size_t at = 0; at < visible.length && shown.count < TD_SHOWN;) {
    int bytes = td_source_decode(visible.data + at, visible.length - at, &shown.codes[shown.count]);
    if (!bytes) break;
    shown.count++;
    at += (size_t)bytes;
  }
  td_text_clear(&visible);
  return shown;
}

static bool is_marks(const char *text, size_t length, size_t at) { // "    ^^^^" and the end of the line
  size_t begin = at;
  while (at < length && text[at] == ' ') at++;
  size_t carets = at;
  while (at < length && text[at] == '^') at++;
  return at > carets && carets > begin && (at == length || text[at] == '\n');
}

static bool is_marked(const char *text, size_t length, size_t at) { // the line that begins there
  if (at >= length || text[at] != ' ') return false;
  const char *end = memchr(text + at, '\n', length - at);
  return is_marks(text, length, at) || (end && is_marks(text, length, (size_t)(end + 1 - text)));
}

bool td_wrap_next(const char *text, size_t length, int columns, td_wrapped *row) {
  if (row->last) return false;
  size_t at = row->begin = row->next;
  if (row->by == TD_WRAP_OUTPUT && (!at || text[at - 1] == '\n')) row->marked = is_marked(text, length, at);
  row->columns = 0;
  size_t space = at; // behind the last one
  while (at < length && text[at] != '\n') {
    if (text[at] >= ' ' && text[at] < 127 && row->columns < columns) { // most of all text
      row->columns++;
      if (text[at++] == ' ') space = at;
      continue;
    }
    td_shown shown = td_show_character(text + at, length - at, row->columns);
    if (row->columns && row->columns + shown.columns > columns) {
      bool letters = row->by == TD_WRAP_LETTERS || (row->by == TD_WRAP_OUTPUT && row->marked);
      if (!letters && text[at] != ' ' && space > row->begin) at = space;
      break;
    }
    row->columns += shown.columns;
    at += shown.size;
  }
  row->end = at;
  row->last = at == length;
  row->next = at < length && text[at] == '\n' ? at + 1 : at;
  return true;
}

int td_wrap_count(const char *text, size_t length, int columns, enum td_wrap by) {
  td_wrapped row = {.by = by};
  int count = 0;
  while (td_wrap_next(text, length, columns, &row)) count++;
  return count;
}

void td_wrap_find(const char *text, size_t length, int columns, enum td_wrap by, size_t at, int *row_out,
                  int *column_out) {
  td_wrapped row = {.by = by};
  int number = 0, found = 0, column = 0;
  for (; td_wrap_next(text, length, columns, &row); number++) {
    if (at < row.begin) break;
    found = number;
    column = 0;
    for (size_t i = row.begin; i < at && i < row.end;) {
      td_shown shown = td_show_character(text + i, length - i, column);
      column += shown.columns;
      i += shown.size;
    }
  }
  if (column >= columns) { // behind the last column
    found++;
    column = 0;
  }
  *row_out = found;
  *column_out = column;
}

size_t td_wrap_at(const char *text, size_t length, int columns, enum td_wrap by, int wanted_row, int wanted_column) {
  td_wrapped row = {.by = by};
  for (int number = 0; td_wrap_next(text, length, columns, &row); number++) {
    if (number < wanted_row) continue;
    size_t at = row.begin;
    for (int column = 0; at < row.end;) {
      td_shown shown = td_show_character(text + at, length - at, column);
      if (column + shown.columns > wanted_column) break;
      column += shown.columns;
      at += shown.size;
    }
    return at;
  }
  return length;
}

int td_text_columns(const char *text, size_t length) {
  int columns = 0;
  for (size_t at = 0; at < length;) {
    td_shown shown = td_show_character(text + at, length - at, columns);
    columns += shown.columns;
    at += shown.size;
  }
  return columns;
}
