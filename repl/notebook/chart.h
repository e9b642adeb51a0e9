// Curves as text: a frame with the lowest and highest value and step, the first curve as a line, others as marks of
// their own, so that they differ without colour. The same curves and size give the same text.
#ifndef TD_NOTEBOOK_CHART_H
#define TD_NOTEBOOK_CHART_H
#include "engine/base/text.h"
#include "repl/language/curve.h"

enum { TD_CHART_CURVES = 6 }; // as many as there are marks
enum { TD_CHART_COLUMNS = 200, TD_CHART_ROWS = 60 };

typedef struct td_chart_options {
  int columns, rows;       // of the area inside the frame, up to the limits above
  bool unicode;            // braille dots, 2 by 4 a cell; else a character a cell
  bool logarithmic;        // values by their logarithms; those that have none count as -infinity
  bool mean;               // of the points that share a column their mean, not their span
} td_chart_options;

// Below the frame stands a line for each curve: points, last, least and greatest value; and of a pair loss, val_loss the
// gap between the last val_loss and the mean loss since the val_loss before it. NaN is marked at the foot of its column,
// an infinity at the top or the foot, and neither takes part in the scale.
void td_chart_print(td_text *text, const td_curve *const *curves, int count, const td_chart_options *options);
#endif
