// A picture of pixels to draw into: lines, areas and text with smooth edges. Coverage is computed exactly or by
// distance, and colours are mixed in linear light, so edges look the same dark on light and light on dark. The same
// calls give the same bytes.
//
// Drawing is two steps: shapes are added to a mask, where what overlaps counts once, and the mask is painted. Pixel (x,
// y) covers the square from (x, y) to (x + 1, y + 1); y grows downwards.
#ifndef TD_NOTEBOOK_RASTER_H
#define TD_NOTEBOOK_RASTER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TD_RASTER_SIDE_MAX = 8192 };

typedef struct td_point { double x, y; } td_point;
typedef struct td_box { int left, top, right, bottom; } td_box; // right and bottom are outside
typedef struct td_ink { uint32_t rgb; double alpha; } td_ink;   // 0xRRGGBB; alpha 0 to 1

typedef struct td_raster {
  int width, height;
  float *pixels;    // linear RGB; owned
  float *mask;      // coverage, 0 to 1; owned
  float *areas;     // scratch of td_raster_fill; owned
  td_box clip;      // nothing is drawn outside
  td_box dirty;     // where the mask may not be 0
} td_raster;

bool td_raster_start(td_raster *raster, int width, int height, uint32_t rgb); // sides up to the limit; false: no memory
void td_raster_clear(td_raster *raster);
void td_raster_clip(td_raster *raster, td_box box); // what of it lies in the picture

void td_raster_stroke(td_raster *raster, const td_point *points, size_t count, double width); // round ends and joints
void td_raster_fill(td_raster *raster, const td_point *points, size_t count); // the inside; the last joins the first
void td_raster_box(td_raster *raster, double left, double top, double right, double bottom); // fills it
void td_raster_disc(td_raster *raster, td_point centre, double radius);
void td_raster_paint(td_raster *raster, td_ink ink); // the mask, which is empty then

// Puts pixels of RGB bytes over a box, each over as many pixels as fall to it.
void td_raster_image(td_raster *raster, td_box box, const uint8_t *rgb, int width, int height);

void td_raster_bytes(const td_raster *raster, uint8_t *rgb); // width * height * 3, the top row first

// ---- text (raster_text.c) ----
// Letters are strokes on a grid: a capital is 9 units high, a small letter 6, what hangs below 3. Characters outside
// printable ASCII are a box.
typedef enum td_align { TD_ALIGN_LEFT, TD_ALIGN_CENTRE, TD_ALIGN_RIGHT } td_align;
typedef struct td_font { double unit; double weight; } td_font; // pixels of a unit, of a stroke

double td_text_width(const char *text, const td_font *font); // pixels
// Adds text to the mask; at: on the base line. upwards: it runs from the bottom to the top.
void td_raster_text(td_raster *raster, td_point at, td_align align, bool upwards, const char *text,
                    const td_font *font);
#endif
