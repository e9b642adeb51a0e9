// Axes: where a value lies between two ends, and the round numbers to write beside it. Charts of characters and of
// pixels share them.
#ifndef TD_NOTEBOOK_AXIS_H
#define TD_NOTEBOOK_AXIS_H
#include <stdbool.h>

enum { TD_TICKS_MAX = 64, TD_TICK_LABEL = 24 };

typedef struct td_axis {
  double low, high; // finite, low < high; logarithmic: low > 0
  bool logarithmic;
} td_axis;

typedef struct td_tick {
  double value, place; // place: td_axis_place of value
  char label[TD_TICK_LABEL]; // "" for a small tick between two decades
} td_tick;

// An axis that has room for values from low to high; where they are one value, it lies in the middle. low > high, or
// not above 0 on a logarithmic one: from 0 to 1, from 1 to 10. margin: share of the span that is added at either end.
td_axis td_axis_cover(double low, double high, bool logarithmic, double margin);
// 0 at low, 1 at high, beyond them for values outside. Logarithmic: -infinity for values that are not above 0.
double td_axis_place(const td_axis *axis, double value);
double td_axis_value(const td_axis *axis, double place); // the inverse
// Multiples of 1, 2 or 5 times a power of ten, at most so many, or a few more where they would be less than two,
// ascending; whole: whole numbers only. Logarithmic: powers of ten, with small ticks between neighbours; where there
// are less than two, as above.
int td_axis_ticks(const td_axis *axis, int most, bool whole, td_tick ticks[TD_TICKS_MAX]);
// A number beside others that are step apart: as many digits as tell them apart.
void td_tick_print(char label[TD_TICK_LABEL], double value, double step);
#endif
