// See bars.h.
#include "repl/screen/bars.h"
#include <stdio.h>
#include <string.h>

static int find(const td_bars *b, uint64_t id) {
  int i = 0;
  while (i < b->count && b->rows[i].id != id) i++;
  return i;
}

static void drop(td_bars *b, int index) {
  b->count--;
  memmove(&b->rows[index], &b->rows[index + 1], (size_t)(b->count - index) * sizeof *b->rows);
}

void td_bars_take(td_bars *b, const td_event *event) {
  if (event->kind == TD_EVENT_CELL_FINISHED && event->level == 0) b->count = 0;
  for (int i = 0; event->kind == TD_EVENT_PAUSED && i < b->count; i++) // a bar is told less often than there are steps
    if (event->name && strcmp(b->rows[i].label, event->name) == 0) b->rows[i].done = event->done;
  if (event->kind != TD_EVENT_PROGRESS) return;
  int i = find(b, event->id);
  if (event->final) {
    if (i < b->count) drop(b, i);
    return;
  }
  if (i == TD_BARS_MAX) return;
  if (i == b->count) b->count++;
  td_bar *bar = &b->rows[i];
  *bar = (td_bar){.id = event->id, .done = event->done, .total = event->total, .seconds = event->seconds,
                  .samples = event->samples,
                  .level = event->level};
  snprintf(bar->label, sizeof bar->label, "%s", event->text ? event->text : "");
  snprintf(bar->postfix, sizeof bar->postfix, "%s", event->detail ? event->detail : "");
}

void td_bars_paint(const td_bars *b, const td_theme *theme, td_surface *surface, td_rect area) {
  int first = b->count > area.rows ? b->count - area.rows : 0; // the inner ones tell more
  for (int i = first; i < b->count; i++) {
    td_text text = {0};
    int level = b->rows[i].level - b->rows[first].level, indent = level > 0 && area.columns > 40 ? 2 * level : 0;
    td_bar_line(&b->rows[i], area.columns - indent, theme->glyphs != TD_GLYPHS_ASCII, &text);
    if (text.data)
      td_surface_text(surface, area.row + i - first, area.column + indent, area.columns - indent, text.data,
                      text.length, td_theme_style(theme, TD_LOOK_PROGRESS));
    td_text_clear(&text);
  }
}
