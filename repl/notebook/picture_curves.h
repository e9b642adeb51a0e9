// Curves as a picture of pixels: what plot_save writes.
#ifndef TD_NOTEBOOK_PICTURE_CURVES_H
#define TD_NOTEBOOK_PICTURE_CURVES_H
#include "repl/notebook/raster.h"
#include "repl/notebook/series.h"

enum { TD_PICTURE_CURVES = 32 }; // drawn together, at most

typedef struct td_picture_theme {
  uint32_t paper, frame, grid, text, faint; // faint: text of less weight
  uint32_t warning;                         // marks of NaN, of infinities, of points outside
  uint32_t curves[8];
  double weight;                            // of a letter's strokes, at scale 1
  double band, points;                      // alpha of a span, of points under a smoothed line
} td_picture_theme;

const td_picture_theme *td_picture_theme_find(const char *name); // "light", "dark"; NULL: neither

typedef struct td_picture_options {
  int width, height;    // of the picture at scale 1
  double scale;         // pixels of it
  const td_picture_theme *theme;
  const char *title;    // NULL: none
  const char *steps_label; // under the axis of steps
  bool logarithmic;
  double smoothing;     // as td_chart_options
  td_series_range range;
} td_picture_options;

// Draws into a new raster of width * scale by height * scale. false: no memory.
bool td_picture_curves(td_raster *raster, const td_curve *const *curves, int count, const td_picture_options *options);
#endif
