// show() of numbers as a chart, and its pictures with axes.
#ifndef TD_NOTEBOOK_SHOW_PLOT_H
#define TD_NOTEBOOK_SHOW_PLOT_H
#include "repl/notebook/picture_tensor.h"

typedef struct td_show_plot {
  bool histogram;             // else a curve by index
  const char *title, *path;   // of a PNG; NULL: none
  double low, high;           // of what is shown; NaN: as the numbers need
  bool ascii;
} td_show_plot;

// Prints a chart of all elements of a tensor, and saves it where there is a path. false: exception.
bool td_show_draw_plot(td_interpreter *I, td_tensor *t, const td_show_plot *plot);
// Saves pixels with a title, axes of rows and columns (of tile; NULL: none) and the scale of a tone (NULL: none).
bool td_show_save_map(td_interpreter *I, const char *path, const char *title, const td_pixels *pixels,
                      const td_tone *tone, const td_tile *tile);
#endif
