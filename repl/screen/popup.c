// See popup.h.
#include "repl/screen/popup.h"
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/complete.h"

enum { ROWS_MOST = 10, DESCRIBED_MOST = 200 };

void td_popup_clear(td_popup *p) {
  for (int i = 0; i < p->count; i++) td_memory_free(p->details[i]);
  td_memory_free(p->details);
  *p = (td_popup){0};
}

typedef struct question { const td_edit_matches *matches; td_popup *popup; } question;

static void describe(td_interpreter *I, void *argument) {
  question *q = argument;
  for (int i = 0; i < q->popup->count; i++) q->popup->details[i] = td_complete_detail(I, q->matches->words[i]);
}

void td_popup_fill(td_popup *p, td_session *session, const td_edit_matches *matches) {
  td_popup_clear(p);
  int count = matches->count < DESCRIBED_MOST ? matches->count : DESCRIBED_MOST;
  if (matches->files || !count) return;
  p->details = td_memory_new_zero((size_t)count * sizeof *p->details);
  if (!p->details) return;
  p->count = count;
  question q = {matches, p};
  td_session_ask(session, describe, &q);
}

static const char *short_name(const char *word) { // x.shape is listed as shape
  const char *dot = strrchr(word, '.');
  return dot && dot[1] ? dot + 1 : word;
}

void td_popup_draw(const td_popup *p, const td_edit_matches *m, const td_theme *theme, td_surface *surface,
                   td_rect area) {
  if (!m->count || surface->cursor_row < 0) return;
  int above = surface->cursor_row - area.row, below = area.row + area.rows - surface->cursor_row - 1;
  int room = above > below ? above : below, rows = m->count < ROWS_MOST ? m->count : ROWS_MOST;
  if (rows > room) rows = room;
  if (rows < 1) return;
  int words = 0, widest = 0;
  for (int i = 0; i < m->count; i++) {
    int width = td_text_columns(short_name(m->words[i]), strlen(short_name(m->words[i])));
    int detail = i < p->count && p->details[i] ? td_text_columns(p->details[i], strlen(p->details[i])) : 0;
    if (width > words) words = width;
    if (detail > widest) widest = detail;
  }
  int columns = words + (widest ? widest + 2 : 0) + 2;
  if (columns > area.columns) columns = area.columns;
  int row = above >= rows && above >= below ? surface->cursor_row - rows : surface->cursor_row + 1;
  int column = surface->cursor_column;
  if (column + columns > area.column + area.columns) column = area.column + area.columns - columns;
  td_style style = td_theme_style(theme, TD_LOOK_BAR);
  td_surface_fill(surface, (td_rect){row, column, rows, columns}, ' ', style);
  for (int i = 0; i < rows; i++) {
    const char *word = short_name(m->words[i]);
    td_surface_text(surface, row + i, column + 1, columns - 2, word, strlen(word), style);
    const char *detail = i < p->count ? p->details[i] : NULL;
    if (detail)
      td_surface_text(surface, row + i, column + 1 + words + 2, columns - words - 4, detail, strlen(detail), style);
  }
  if (m->count > rows)
    td_surface_print(surface, row + rows - 1, column + columns - 8, 8, style, " %d/%d", rows, m->count);
}
