// Curves as a picture of pixels: what plot_save writes.
#ifndef TD_NOTEBOOK_PICTURE_CURVES_H
#define TD_NOTEBOOK_PICTURE_CURVES_H
#include "repl/notebook/picture_frame.h"
#include "repl/notebook/series.h"

enum { TD_PICTURE_CURVES = 32 }; // drawn together, at most

typedef struct td_picture_options {
  int width, height;    // of the picture at scale 1
  double scale;         // pixels of it
  const td_picture_theme *theme;
  const char *title;    // NULL: none
  const char *steps_label; // under the axis of steps
  bool logarithmic;
  bool legend;
  double smoothing;     // as td_chart_options
  td_series_range range;
} td_picture_options;

// Draws into a new raster of width * scale by height * scale. false: no memory.
bool td_picture_curves(td_raster *raster, const td_curve *const *curves, int count, const td_picture_options *options);
#endif
