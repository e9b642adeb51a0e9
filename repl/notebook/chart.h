// Curves in a terminal's cells: a frame with round ticks, a line for each curve, marks where values are not finite or
// outside. A pure function: the same curves, options and size give the same cells. Curves differ by colour, and without
// it by marks on their lines.
#ifndef TD_NOTEBOOK_CHART_H
#define TD_NOTEBOOK_CHART_H
#include "repl/notebook/chart_cells.h"
#include "repl/notebook/series.h"

enum { TD_CHART_CURVES = 6 }; // drawn together: as many as there are marks

typedef struct td_chart_options {
  enum td_chart_glyphs glyphs;
  const uint8_t *colours;  // of each curve, from 0; NULL: one after the other. Marks tell those of one colour apart
  bool logarithmic;        // values on a logarithmic axis; those not above 0 count as -infinity
  bool mean;               // of the points that share a column their mean, not their span
  bool guides;             // faint lines at the ticks
  double smoothing;        // 0: none; to below 1: the running mean as a line, the points dim beneath it
  bool is_cut;             // zoom: only steps from first to last
  int64_t first, last;
  bool is_clipped;         // zoom: only values from low to high; NaN: as the values need
  double low, high;
  bool has_cursor;
  int64_t cursor;          // a step
} td_chart_options;

typedef struct td_chart_view { // what was drawn, for a face that moves about in it
  int left, top, columns, rows;  // of the area inside the frame, in cells; columns 0: there was no room
  td_axis steps, values;
  bool empty;                    // there is no finite value, or no point
  bool at_least;                 // a bin holds several points, so the counts are of bins: there may be more points
  int64_t nans, rises, falls;    // points that are NaN, infinity, -infinity
  int64_t above, below;          // points that the values' zoom leaves out
  int64_t nan_step;              // the first NaN's; valid where nans > 0
} td_chart_view;

// Draws into all of cells, which start blank, whatever its size. count: 0 to TD_CHART_CURVES. view may be NULL. false:
// no memory.
bool td_chart_draw(td_chart_cells *cells, const td_curve *const *curves, int count, const td_chart_options *options,
                   td_chart_view *view);
int64_t td_chart_step_at(const td_chart_view *view, int column); // the step that a column of cells stands for
char td_chart_mark(enum td_chart_glyphs glyphs, int index);      // of a curve; ' ': none, its line is its own mark

// A line for a curve, without the mark: name, points, last, least and greatest value; with a cursor the value there. In
// too few columns the last value stays longest, and a long name loses its middle. columns 0: as many as it needs.
void td_chart_legend(td_text *text, const td_curve *curve, const td_chart_options *options, int columns);
// What the marks mean, "NaN at step 412 (3)", "12 points above"; empty: there are none.
void td_chart_notes(td_text *text, const td_chart_view *view, const td_chart_options *options);
// The point at a step, or the last one before it. false: there is none.
bool td_chart_value_at(const td_curve *curve, int64_t step, td_curve_point *point);

// All of it as text, as %plot shows it: the chart of so many columns and rows, a legend line for each curve, of a pair
// loss, val_loss the gap between the last val_loss and the mean loss since the val_loss before it, and the notes.
void td_chart_print(td_text *text, const td_curve *const *curves, int count, int columns, int rows,
                    const td_chart_options *options);

// ---- small ones ----

// A row of numbers, oldest first, as bars of eight heights, one a cell; ASCII has four. NaN and infinities have glyphs
// of their own. The last columns numbers are shown where there are more; low == high: as the numbers need.
void td_sparkline(td_chart_cells *cells, int column, int row, int columns, const double *numbers, int64_t count,
                  enum td_chart_glyphs glyphs, uint8_t colour);

typedef struct td_chart_histogram {
  double low, high;          // the outer edges
  int64_t count;             // bins, of one width
  const int64_t *bins;       // how many values each has
  int64_t nans, rises, falls; // values that no bin has
} td_chart_histogram;

// Bars from the bottom row up, with the edges beneath them and the greatest count beside; draws into all of cells. With
// two rows or less the bars alone. logarithmic: heights by the logarithm of 1 + count.
void td_histogram_cells(td_chart_cells *cells, const td_chart_histogram *histogram, enum td_chart_glyphs glyphs,
                        bool logarithmic, uint8_t colour);
#endif
