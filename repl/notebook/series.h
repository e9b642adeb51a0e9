// A curve as it will be drawn: its points gathered by the columns of a drawing, so that a curve of any length costs a
// column each. Smoothing is done over all points, also those before the part that is drawn.
#ifndef TD_NOTEBOOK_SERIES_H
#define TD_NOTEBOOK_SERIES_H
#include "repl/language/curve.h"
#include "repl/notebook/axis.h"

typedef struct td_series_column {
  double low, high;    // of the finite values; low > high: there is none
  double mean, smooth; // of the finite values, and of their smoothed ones
  int64_t finite;      // how many values are finite
  int32_t odd;         // TD_CURVE_NAN, ...
} td_series_column;

typedef struct td_series {
  int64_t columns;
  td_series_column *at;       // owned
  td_curve_point before, after; // the last finite point before the part that is drawn, the first behind it
  bool has_before, has_after;   // a line leads there
} td_series;

// steps: what part of the curve is drawn. smoothing: from 0 (none) to below 1: the share that the running mean keeps
// from one point to the next; the mean's start is corrected, so that a constant stays the same. false: no memory.
bool td_series_start(td_series *series, const td_curve *curve, const td_axis *steps, int64_t columns, double smoothing);
void td_series_clear(td_series *series);
// The running mean at a step; NaN: nothing finite yet.
double td_series_smoothed(const td_curve *curve, double smoothing, int64_t step);

// What of several curves is drawn: from the first step to the last, or what options ask for.
typedef struct td_series_range {
  bool is_cut;              // only steps from first to last
  int64_t first, last;
  double low, high;         // NaN: as the values need
} td_series_range;

td_axis td_series_steps(const td_curve *const *curves, int count, const td_series_range *range, bool *empty);
// The axis that has room for all finite values of the series; *empty: there is none.
td_axis td_series_values(const td_series *series, int count, const td_series_range *range, bool logarithmic,
                         bool means, double margin, bool *empty);
int64_t td_series_column_of(const td_axis *steps, int64_t columns, int64_t step); // may lie outside
double td_series_step_of(const td_axis *steps, int64_t columns, int64_t column);
#endif
