// See cells_view.h. Heights are kept by cell and looked at again when its revision changes.
#include "repl/screen/cells_view.h"
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/screen/highlight.h"
#include "repl/screen/picture.h"

enum { LEAST_OUTPUT = 5, GUTTER = 5, GROWN_ROWS = 16 };

static td_style look(const td_cells_view *v, enum td_look which) { return td_theme_style(v->theme, which); }

static td_style with(td_style style, uint16_t attributes) {
  style.attributes |= attributes;
  return style;
}

static int least(int a, int b) { return a < b ? a : b; }

static int digits(int number) {
  int count = 1;
  while ((number /= 10) > 0) count++;
  return count;
}

int td_cells_view_gutter(const td_cells_view *v) {
  int next = v->notebook->last_number + 1, most = v->most_number > next ? v->most_number : next;
  int wanted = digits(most) + 4; // "[12]> "
  return wanted < GUTTER ? GUTTER : wanted;
}

static int code_columns(const td_cells_view *v) {
  int columns = v->columns - td_cells_view_gutter(v);
  return columns < 4 ? 4 : columns;
}

static int output_limit(const td_cells_view *v) { // rows that a cell's output may take
  int most = v->rows * 2 / 3;
  return most < LEAST_OUTPUT ? LEAST_OUTPUT : most;
}

static enum td_wrap prose(const td_notebook_cell *cell) { return cell->markdown ? TD_WRAP_WORDS : TD_WRAP_LETTERS; }

// ---- outputs as rows ----

static size_t shown_length(const td_cell_output *o) { // without the newline at its end
  size_t length = o->text.length;
  while (length && o->text.data[length - 1] == '\n') length--;
  return length;
}

static const char *text_of(const td_cell_output *o) { return o->text.data ? o->text.data : ""; }

static bool is_first_curve(const td_notebook_cell *cell, int index) {
  for (int i = 0; i < index; i++)
    if (cell->outputs[i].kind == TD_OUTPUT_CURVE) return false;
  return true;
}

static td_room picture_room(const td_cells_view *v) { return (td_room){v->columns, output_limit(v) - 1, GROWN_ROWS}; }

static int picture_rows(const td_cells_view *v, const td_cell_output *o) {
  return td_picture_rows(o->width, o->height, v->theme, picture_room(v));
}

static int text_rows(const td_cell_output *o, int columns) {
  return td_wrap_count(text_of(o), shown_length(o), columns, TD_WRAP_OUTPUT) + (o->bytes_cut > 0);
}

static int item_rows(const td_cells_view *v, const td_notebook_cell *cell, int index) {
  const td_cell_output *o = &cell->outputs[index];
  switch (o->kind) {
  case TD_OUTPUT_CURVE: return is_first_curve(cell, index);
  case TD_OUTPUT_IMAGE: return 1 + (o->pixels ? picture_rows(v, o) : 0);
  case TD_OUTPUT_VALUE: return text_rows(o, code_columns(v));
  default: return text_rows(o, v->columns);
  }
}

typedef struct place { td_surface *surface; int row, first, count; } place; // rows [first, first + count) go to row on

static bool wanted(const place *p, int number) { return number >= p->first && number < p->first + p->count; }
static int row_of(const place *p, int number) { return p->row + number - p->first; }

static void draw_text(const td_cells_view *v, place *p, int number, const td_cell_output *o, int column, td_style first,
                      td_style rest) {
  td_wrapped row = {.by = TD_WRAP_OUTPUT};
  const char *text = text_of(o);
  bool cut = false;
  for (int i = 0; td_wrap_next(text, shown_length(o), v->columns - column, &row); i++, number++) {
    if (o->bytes_cut > 0 && !cut && row.end >= o->cut) {
      cut = true;
      if (wanted(p, number))
        td_surface_print(p->surface, row_of(p, number), 0, v->columns, look(v, TD_LOOK_WARNING),
                         "(%lld bytes are left out here, %lld lines)", (long long)o->bytes_cut,
                         (long long)o->lines_cut);
      number++;
    }
    if (number >= p->first + p->count) break;
    if (wanted(p, number))
      td_surface_text(p->surface, row_of(p, number), column, v->columns - column, text + row.begin,
                      row.end - row.begin, i ? rest : first);
  }
}

static void draw_value(const td_cells_view *v, place *p, int number, const td_notebook_cell *cell,
                       const td_cell_output *o) {
  if (wanted(p, number) && cell->number)
    td_surface_print(p->surface, row_of(p, number), 0, td_cells_view_gutter(v), look(v, TD_LOOK_NUMBER_OUT), "[%d]=",
                     cell->number);
  draw_text(v, p, number, o, td_cells_view_gutter(v), look(v, TD_LOOK_VALUE), look(v, TD_LOOK_VALUE));
}

static void draw_curves(const td_cells_view *v, place *p, int number, const td_notebook_cell *cell) {
  if (!wanted(p, number)) return;
  td_text text = {0};
  for (int i = 0; i < cell->output_count; i++)
    if (cell->outputs[i].kind == TD_OUTPUT_CURVE)
      td_text_print(&text, "%s%s", text.length ? ", " : "", text_of(&cell->outputs[i]));
  td_surface_print(p->surface, row_of(p, number), 0, v->columns, look(v, TD_LOOK_FAINT), "curves: %s (F2)",
                   text.data ? text.data : "");
  td_text_clear(&text);
}

// Of the output's pixels: outputs of a run come one after another, and none of them changes.
static uint64_t picture_id(const td_notebook_cell *cell, const td_cell_output *o) {
  uint64_t parts[] = {cell->id, cell->ran_at, cell->outputs_at, (uint64_t)(o - cell->outputs), (uintptr_t)o->pixels};
  return td_notebook_hash((const char *)parts, sizeof parts);
}

static void draw_image(td_cells_view *v, place *p, int number, const td_notebook_cell *cell, const td_cell_output *o) {
  if (wanted(p, number))
    td_surface_text(p->surface, row_of(p, number), 0, v->columns, text_of(o), shown_length(o), look(v, TD_LOOK_FAINT));
  if (!o->pixels) return;
  int rows = picture_rows(v, o);
  td_pixels pixels = {o->width, o->height, o->pixels};
  for (int i = 0; i < rows; i++)
    if (wanted(p, number + 1 + i))
      td_picture_draw_row(&v->pictures, picture_id(cell, o), &pixels, v->theme, picture_room(v), p->surface,
                          row_of(p, number + 1 + i), 0, i);
}

static void draw_item(td_cells_view *v, place *p, int number, const td_notebook_cell *cell, int index) {
  const td_cell_output *o = &cell->outputs[index];
  td_style plain = look(v, TD_LOOK_TEXT), error = look(v, TD_LOOK_ERROR);
  switch (o->kind) {
  case TD_OUTPUT_CURVE: if (is_first_curve(cell, index)) draw_curves(v, p, number, cell); break;
  case TD_OUTPUT_IMAGE: draw_image(v, p, number, cell, o); break;
  case TD_OUTPUT_VALUE: draw_value(v, p, number, cell, o); break;
  case TD_OUTPUT_ERROR: draw_text(v, p, number, o, 0, look(v, TD_LOOK_ERROR_HEAD), error); break;
  case TD_OUTPUT_STREAM: draw_text(v, p, number, o, 0, o->stream == 2 ? look(v, TD_LOOK_WARNING) : plain,
                                   o->stream == 2 ? look(v, TD_LOOK_WARNING) : plain); break;
  default: draw_text(v, p, number, o, 0, plain, plain); break;
  }
}

// ---- cells as rows ----

static const struct height *height_of(td_cells_view *v, int index) {
  const td_notebook_cell *cell = v->notebook->cells[index];
  if (v->height_count < v->notebook->count) {
    struct height *grown = td_memory_resize(v->heights, (size_t)v->notebook->capacity * sizeof *grown);
    if (!grown) return NULL;
    memset(grown + v->height_count, 0, (size_t)(v->notebook->capacity - v->height_count) * sizeof *grown);
    v->heights = grown;
    v->height_count = v->notebook->capacity;
  }
  struct height *h = &v->heights[index];
  int limit = output_limit(v);
  if (h->id == cell->id && h->revision == cell->revision && h->columns == v->columns && h->limit == limit) return h;
  *h = (struct height){.id = cell->id, .revision = cell->revision, .columns = v->columns, .limit = limit};
  h->code = td_wrap_count(cell->text.data ? cell->text.data : "", cell->text.length, code_columns(v),
                          prose(cell));
  for (int i = 0; i < cell->output_count; i++) h->output += item_rows(v, cell, i);
  int shown = cell->folded ? h->output > 0 : least(h->output, limit);
  h->rows = h->code + shown + 1;
  return h;
}

int td_cells_view_rows(td_cells_view *v, int index) {
  const struct height *h = height_of(v, index);
  return h ? h->rows : 1;
}

static void draw_mark(const td_cells_view *v, td_surface *s, int row, const td_notebook_cell *cell) {
  static const struct { enum td_glyph glyph; enum td_look look; const char *word; } marks[] = {
      [TD_CELL_IDLE] = {0, TD_LOOK_FAINT, ""},
      [TD_CELL_QUEUED] = {TD_GLYPH_QUEUED, TD_LOOK_FAINT, "queued"},
      [TD_CELL_RUNNING] = {TD_GLYPH_RUNNING, TD_LOOK_RUNNING, "running"},
      [TD_CELL_PAUSED] = {TD_GLYPH_PAUSED, TD_LOOK_WARNING, "paused"},
      [TD_CELL_DONE] = {0, TD_LOOK_FAINT, ""},
      [TD_CELL_FAILED] = {TD_GLYPH_FAILED, TD_LOOK_FAILED, "failed"},
      [TD_CELL_INTERRUPTED] = {TD_GLYPH_FAILED, TD_LOOK_WARNING, "interrupted"}};
  td_text text = {0};
  enum td_look which = marks[cell->status].look;
  if (marks[cell->status].glyph) td_text_print(&text, "%s", marks[cell->status].word);
  if (cell->stale) {
    td_text_print(&text, "%s~stale", text.length ? " " : "");
    which = TD_LOOK_STALE;
  }
  bool over = cell->status >= TD_CELL_DONE;
  if (over && cell->seconds >= 0.5) td_text_print(&text, "%s%.1f s", text.length ? " " : "", cell->seconds);
  int columns = (int)text.length;
  if (columns && columns + 8 < v->columns) {
    td_surface_put(s, row, v->columns - columns - 1, ' ', look(v, TD_LOOK_TEXT));
    td_surface_text(s, row, v->columns - columns, columns, text.data, text.length, look(v, which));
  }
  td_text_clear(&text);
}

static void draw_number(const td_cells_view *v, td_surface *s, int row, int index) {
  const td_notebook_cell *cell = v->notebook->cells[index];
  bool selected = v->walking && index == v->selected;
  td_style style = look(v, cell->markdown ? TD_LOOK_FAINT : TD_LOOK_PROMPT);
  if (selected) style = with(style, TD_REVERSE);
  int gutter = td_cells_view_gutter(v);
  char text[24];
  if (cell->markdown) snprintf(text, sizeof text, "md");
  else if (cell->number) snprintf(text, sizeof text, "[%d]", cell->number);
  else snprintf(text, sizeof text, "[ ]");
  int used = td_surface_text(s, row, 0, gutter, text, strlen(text), style);
  if (!cell->markdown)
    td_surface_put(s, row, used, td_notebook_is_changed(cell) ? '*' : '>', with(style, selected ? TD_REVERSE : 0));
}

static void draw_code(const td_cells_view *v, place *p, int index) {
  const td_notebook_cell *cell = v->notebook->cells[index];
  const char *text = cell->text.data ? cell->text.data : "";
  bool edited = v->editing && index == v->selected;
  uint8_t *looks = td_memory_new(cell->text.length + 1);
  if (looks && cell->markdown) td_highlight_markdown(text, cell->text.length, looks);
  else if (looks) td_highlight(text, cell->text.length, edited ? v->edit_cursor : (size_t)-1, looks);
  td_wrapped row = {.by = prose(cell)};
  for (int number = 0; td_wrap_next(text, cell->text.length, code_columns(v), &row); number++) {
    if (!wanted(p, number)) continue;
    td_highlight_draw(p->surface, v->theme, row_of(p, number), td_cells_view_gutter(v), text, cell->text.length,
                      row.begin, row.end, looks, v->search);
    if (number == 0) draw_number(v, p->surface, row_of(p, 0), index);
    if (number == 0) draw_mark(v, p->surface, row_of(p, 0), cell);
  }
  td_memory_free(looks);
  if (!edited) return;
  int cursor_row, cursor_column;
  td_wrap_find(text, cell->text.length, code_columns(v), prose(cell), v->edit_cursor, &cursor_row, &cursor_column);
  if (!wanted(p, cursor_row)) return;
  p->surface->cursor_row = row_of(p, cursor_row);
  p->surface->cursor_column = p->surface->clip.column + td_cells_view_gutter(v) + cursor_column;
}

static void draw_rows_left_out(const td_cells_view *v, td_surface *s, int row, int above, int below) {
  td_text text = {0};
  if (above > 0) td_text_print(&text, "+%d rows above", above);
  if (below > 0) td_text_print(&text, "%s+%d below", text.length ? ", " : "", below);
  td_text_add(&text, " (F7 all)");
  if (text.data) td_surface_text(s, row, 0, v->columns, text.data, text.length, look(v, TD_LOOK_FAINT));
  td_text_clear(&text);
}

static void draw_output(td_cells_view *v, place *p, const struct height *h, int index) {
  td_notebook_cell *cell = v->notebook->cells[index];
  if (!h->output) return;
  if (cell->folded) {
    if (wanted(p, h->code))
      td_surface_print(p->surface, row_of(p, h->code), 0, v->columns, look(v, TD_LOOK_FAINT), "(%d row%s folded)",
                       h->output, h->output == 1 ? "" : "s");
    return;
  }
  int shown = least(h->output, h->limit), hidden = h->output - shown;
  if (hidden > 0) { // one row says what is left out
    hidden++;
    shown--;
  }
  if (cell->scroll > hidden) cell->scroll = hidden;
  if (cell->scroll < 0) cell->scroll = 0;
  int skip = hidden - cell->scroll, at = h->code;
  if (hidden > 0) {
    if (wanted(p, at)) draw_rows_left_out(v, p->surface, row_of(p, at), skip, cell->scroll);
    at++;
  }
  place inner = {p->surface, 0, skip, shown};
  int first = p->first > at ? p->first - at : 0; // the part of the window that is in sight
  inner.row = row_of(p, at + first);
  inner.first = skip + first;
  inner.count = least(shown - first, p->first + p->count - at - first);
  int number = 0;
  for (int i = 0; i < cell->output_count && inner.count > 0; i++) {
    int rows = item_rows(v, cell, i);
    place item = inner;
    if (number + rows > inner.first && number < inner.first + inner.count) draw_item(v, &item, number, cell, i);
    number += rows;
  }
}

// ---- the window on the rows ----

static int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

static void top_from_end(td_cells_view *v, int rows) { // so that the last row of all is the last in sight
  int index = v->notebook->count, used = 0;
  while (index > 0 && used < rows) used += td_cells_view_rows(v, --index);
  v->top_cell = index;
  v->top_row = used > rows ? used - rows : 0;
}

static int rows_between(td_cells_view *v, int index) { // from the top of the window to that cell; may be negative
  int rows = -v->top_row;
  for (int i = v->top_cell; i < index; i++) rows += td_cells_view_rows(v, i);
  for (int i = index; i < v->top_cell; i++) rows -= td_cells_view_rows(v, i);
  return rows;
}

static void move_top(td_cells_view *v, int rows) {
  v->top_row += rows;
  while (v->top_row < 0 && v->top_cell > 0) v->top_row += td_cells_view_rows(v, --v->top_cell);
  if (v->top_row < 0) v->top_row = 0;
  while (v->top_cell < v->notebook->count - 1 && v->top_row >= td_cells_view_rows(v, v->top_cell))
    v->top_row -= td_cells_view_rows(v, v->top_cell++);
}

static void keep_in_sight(td_cells_view *v, int rows) {
  int index = clamp(v->selected, 0, v->notebook->count - 1);
  int begin = rows_between(v, index), size = td_cells_view_rows(v, index) - 1;
  if (v->editing) {
    const td_notebook_cell *cell = v->notebook->cells[index];
    int row, column;
    td_wrap_find(cell->text.data ? cell->text.data : "", cell->text.length, code_columns(v), prose(cell),
                 v->edit_cursor, &row, &column);
    begin += row;
    size = 1;
  }
  if (begin + size > rows) {
    int down = begin + size - rows;
    if (begin - down < 0) down = begin; // taller than the window: its beginning
    move_top(v, down);
    begin -= down;
  }
  if (begin < 0) move_top(v, begin);
}

void td_cells_view_draw(td_cells_view *v, td_surface *surface, td_rect area) {
  v->rows = area.rows;
  v->columns = area.columns;
  v->most_number = 0; // of a session before it may be larger than those of this one
  for (int i = 0; i < v->notebook->count; i++)
    if (v->notebook->cells[i]->number > v->most_number) v->most_number = v->notebook->cells[i]->number;
  if (area.rows < 1 || !v->notebook->count) return;
  v->top_cell = clamp(v->top_cell, 0, v->notebook->count - 1);
  if (v->follow && !v->walking) top_from_end(v, area.rows);
  if (v->walking) keep_in_sight(v, area.rows);
  int begin = rows_between(v, v->notebook->count);
  if (begin < area.rows) top_from_end(v, area.rows); // nothing is left free under the last cell
  td_rect kept = surface->clip;
  td_surface_clip(surface, area);
  int row = area.row - v->top_row;
  for (int i = v->top_cell; i < v->notebook->count && row < area.row + area.rows; i++) {
    const struct height *h = height_of(v, i);
    if (!h) break;
    int skip = row < area.row ? area.row - row : 0;
    place p = {surface, row + skip, skip, least(h->rows - skip, area.row + area.rows - row - skip)};
    draw_code(v, &p, i);
    draw_output(v, &p, h, i);
    row += h->rows;
  }
  td_surface_clip(surface, kept);
}

void td_cells_view_select(td_cells_view *v, int index) {
  if (v->notebook->count) v->selected = clamp(index, 0, v->notebook->count - 1);
}

void td_cells_view_scroll(td_cells_view *v, int rows) {
  if (!v->notebook->count || v->rows < 1) return;
  if (v->follow) top_from_end(v, v->rows);
  v->follow = false;
  move_top(v, rows);
  if (rows_between(v, v->notebook->count) > v->rows) return;
  top_from_end(v, v->rows);
  v->follow = true;
}

void td_cells_view_scroll_output(td_cells_view *v, int rows) {
  if (v->selected < v->notebook->count) v->notebook->cells[v->selected]->scroll -= rows;
}

int td_cells_view_at(td_cells_view *v, int wanted_row, int column, size_t *byte) {
  int row = -v->top_row;
  for (int i = v->top_cell; i < v->notebook->count; i++) {
    const struct height *h = height_of(v, i);
    if (!h) break;
    if (wanted_row < row + h->rows) {
      const td_notebook_cell *cell = v->notebook->cells[i];
      *byte = td_wrap_at(cell->text.data ? cell->text.data : "", cell->text.length, code_columns(v), prose(cell),
                         least(wanted_row - row, h->code - 1), column - td_cells_view_gutter(v));
      return i;
    }
    row += h->rows;
  }
  return -1;
}

static bool holds(const td_text *text, const char *wanted) {
  return text->data && memmem(text->data, text->length, wanted, strlen(wanted));
}

int td_cells_view_find(const td_cells_view *v, int from, int direction) {
  int count = v->notebook->count;
  for (int step = 1; v->search && *v->search && step <= count; step++) {
    int index = ((from + direction * step) % count + count) % count;
    const td_notebook_cell *cell = v->notebook->cells[index];
    if (holds(&cell->text, v->search)) return index;
    for (int i = 0; i < cell->output_count; i++)
      if (holds(&cell->outputs[i].text, v->search)) return index;
  }
  return -1;
}

void td_cells_view_free(td_cells_view *v) {
  td_memory_free(v->heights);
  td_memory_free(v->search);
  td_pictures_clear(&v->pictures);
  memset(v, 0, sizeof *v);
}
