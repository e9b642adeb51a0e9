// The frame of a picture that has axes: theme, title, ticks, grid. Curves, histograms and heat maps stand inside.
#ifndef TD_NOTEBOOK_PICTURE_FRAME_H
#define TD_NOTEBOOK_PICTURE_FRAME_H
#include "repl/notebook/axis.h"
#include "repl/notebook/raster.h"

typedef struct td_picture_theme {
  uint32_t paper, frame, grid, text, faint; // faint: text of less weight
  uint32_t warning;                         // marks of NaN, of infinities, of points outside
  uint32_t curves[8];
  double weight;                            // of a letter's strokes, at scale 1
  double band, points;                      // alpha of a span, of points under a smoothed line
} td_picture_theme;

const td_picture_theme *td_picture_theme_find(const char *name); // "light", "dark"; NULL: neither

typedef struct td_picture_frame {
  td_raster *raster;
  const td_picture_theme *theme;
  double scale;         // pixels of a unit of all sizes
  td_font font, title;
  td_box area;          // inside the frame
  td_axis x, y;
} td_picture_frame;

// A new raster of width * scale by height * scale. false: no memory.
bool td_frame_start(td_picture_frame *frame, td_raster *raster, int width, int height, double scale,
                    const td_picture_theme *theme);
// Finds the area: beside labels so wide, under a title or none, with so much room at the right.
void td_frame_lay_out(td_picture_frame *frame, double label_width, bool has_title, double right);
double td_frame_x(const td_picture_frame *frame, double value); // the middle of a pixel at the ends of the area
double td_frame_y(const td_picture_frame *frame, double value); // values far outside come out just far enough
void td_frame_paint(td_picture_frame *frame, uint32_t rgb, double alpha); // what was added to the mask
void td_frame_write(td_picture_frame *frame, double x, double y, td_align align, const char *text, uint32_t rgb);
void td_frame_title(td_picture_frame *frame, const char *text);
double td_frame_label_width(const td_picture_frame *frame, const td_tick *ticks, int count);
double td_frame_line(const td_picture_frame *frame);            // width of a thin line: whole pixels
void td_frame_grid(td_picture_frame *frame, const td_tick *x, int x_count, const td_tick *y, int y_count);
void td_frame_outline(td_picture_frame *frame);
void td_frame_x_ticks(td_picture_frame *frame, const td_tick *ticks, int count); // labels that would touch are left out
void td_frame_y_ticks(td_picture_frame *frame, const td_tick *ticks, int count);
#endif
