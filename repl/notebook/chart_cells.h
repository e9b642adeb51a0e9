// A picture made of a terminal's cells: what a chart is drawn into, before a face puts it on its screen in colour or a
// command prints it as text. Glyphs come in four sets for the same dots, 2 by 4 of them in a cell.
#ifndef TD_NOTEBOOK_CHART_CELLS_H
#define TD_NOTEBOOK_CHART_CELLS_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/base/text.h"

enum td_chart_glyphs { // what a cell can show of its 2 by 4 dots: a coarser set shows a dot where any under it is set
  TD_GLYPHS_ASCII,   // whether there is one
  TD_GLYPHS_HALF,    // 1 by 2
  TD_GLYPHS_BLOCK,   // 2 by 2
  TD_GLYPHS_BRAILLE, // all
};

enum { TD_CELL_DIM = 1, TD_CELL_BOLD = 2, TD_CELL_REVERSE = 4 };
// Colours: the terminal's; the first curve's, with the next one's behind it; of NaN, infinities and clipped points.
enum { TD_CELL_PLAIN = 0, TD_CELL_CURVE = 1, TD_CELL_MARK = 15 };

typedef struct td_chart_cell {
  uint32_t glyph;              // a character; 0: the right half of a wide one
  uint8_t colour, attributes;  // TD_CELL_...
} td_chart_cell;

typedef struct td_chart_cells {
  int columns, rows;
  td_chart_cell *cells;        // row by row, the top one first; owned
} td_chart_cells;

bool td_chart_cells_start(td_chart_cells *cells, int columns, int rows); // blank ones; false: no memory
void td_chart_cells_clear(td_chart_cells *cells);
td_chart_cell *td_chart_cell_at(td_chart_cells *cells, int column, int row); // NULL: outside
void td_chart_cells_put(td_chart_cells *cells, int column, int row, uint32_t glyph, uint8_t colour, uint8_t attributes);
// Text from a column on, cut at the right edge; control characters become visible.
void td_chart_cells_text(td_chart_cells *cells, int column, int row, const char *text, uint8_t colour,
                         uint8_t attributes);
void td_chart_cells_print(td_text *text, const td_chart_cells *cells); // a line a row, no spaces at its end, no colour

// The glyph for dots of a cell: bit 2 * row + column, the top row first. mark: ASCII's glyph where there is a dot.
uint32_t td_chart_glyph(enum td_chart_glyphs glyphs, uint8_t dots, char mark);
#endif
