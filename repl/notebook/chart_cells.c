// See chart_cells.h.
#include "repl/notebook/chart_cells.h"
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/builtins.h"
#include "repl/language/source.h"

bool td_chart_cells_start(td_chart_cells *cells, int columns, int rows) {
  size_t count = columns > 0 && rows > 0 ? (size_t)columns * (size_t)rows : 0;
  *cells = (td_chart_cells){.columns = count ? columns : 0, .rows = count ? rows : 0};
  cells->cells = td_memory_new_zero(count * sizeof *cells->cells);
  for (size_t i = 0; cells->cells && i < count; i++) cells->cells[i].glyph = ' ';
  return cells->cells || !count;
}

void td_chart_cells_clear(td_chart_cells *cells) {
  td_memory_free(cells->cells);
  *cells = (td_chart_cells){0};
}

td_chart_cell *td_chart_cell_at(td_chart_cells *cells, int column, int row) {
  bool inside = column >= 0 && column < cells->columns && row >= 0 && row < cells->rows;
  return inside ? &cells->cells[(size_t)row * (size_t)cells->columns + (size_t)column] : NULL;
}

void td_chart_cells_put(td_chart_cells *cells, int column, int row, uint32_t glyph, uint8_t colour,
                        uint8_t attributes) {
  td_chart_cell *cell = td_chart_cell_at(cells, column, row);
  if (cell) *cell = (td_chart_cell){glyph, colour, attributes};
}

void td_chart_cells_text(td_chart_cells *cells, int column, int row, const char *text, uint8_t colour,
                         uint8_t attributes) {
  td_text visible = {0};
  td_source_print(&visible, text, strlen(text));
  const char *at = visible.data, *end = at + visible.length;
  uint32_t character;
  for (int bytes; at < end && (bytes = td_source_decode(at, (size_t)(end - at), &character)) > 0; at += bytes) {
    int width = td_source_width(character);
    if (width < 1) continue;
    if (column + width > cells->columns) break;
    td_chart_cells_put(cells, column, row, character, colour, attributes);
    if (width == 2) td_chart_cells_put(cells, column + 1, row, 0, colour, attributes);
    column += width;
  }
  td_text_clear(&visible);
}

void td_chart_cells_print(td_text *text, const td_chart_cells *cells) {
  const td_chart_cell *cell = cells->cells;
  for (int row = 0; row < cells->rows; row++, cell += cells->columns) {
    int end = cells->columns;
    while (end && cell[end - 1].glyph == ' ') end--;
    for (int column = 0; column < end; column++)
      if (cell[column].glyph) td_text_add_code(text, cell[column].glyph);
    td_text_add_char(text, '\n');
  }
}

static bool any(uint8_t dots, int row, int column, int rows, int columns) {
  for (int y = row; y < row + rows; y++)
    for (int x = column; x < column + columns; x++)
      if (dots >> (2 * y + x) & 1) return true;
  return false;
}

static uint32_t braille(uint8_t dots) { // whose own order is column by column, with the last row behind both
  static const uint8_t bits[8] = {0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
  uint32_t glyph = 0x2800;
  for (int i = 0; i < 8; i++)
    if (dots >> i & 1) glyph |= bits[i];
  return glyph;
}

uint32_t td_chart_glyph(enum td_chart_glyphs glyphs, uint8_t dots, char mark) {
  static const uint32_t halves[4] = {' ', 0x2580, 0x2584, 0x2588};
  static const uint32_t quarters[16] = {' ',    0x2598, 0x259D, 0x2580, 0x2596, 0x258C, 0x259E, 0x259B,
                                        0x2597, 0x259A, 0x2590, 0x259C, 0x2584, 0x2599, 0x259F, 0x2588};
  int shown = 0;
  if (!dots) return ' ';
  if (glyphs == TD_GLYPHS_ASCII) return (uint32_t)mark;
  if (glyphs == TD_GLYPHS_BRAILLE) return braille(dots);
  if (glyphs == TD_GLYPHS_HALF) return halves[any(dots, 0, 0, 2, 2) | any(dots, 2, 0, 2, 2) << 1];
  for (int i = 0; i < 4; i++) shown |= any(dots, i / 2 * 2, i % 2, 2, 1) << i;
  return quarters[shown];
}
