// See picture.h. A cell is taken to be twice as high as wide.
#include "repl/screen/picture.h"
#include <math.h>
#include <stdlib.h>

static double scale_of(int width, int height, int columns, int rows) { // cells' half rows for a pixel
  double across = (double)columns / width, down = 2.0 * rows / height;
  double scale = across < down ? across : down;
  if (scale > 4) scale = 4;
  return scale >= 1 ? floor(scale) : scale;
}

int td_picture_rows(int width, int height, int columns, int rows) {
  if (width < 1 || height < 1 || columns < 1 || rows < 1) return 0;
  int wanted = (int)ceil(height * scale_of(width, height, columns, rows) / 2);
  return wanted < 1 ? 1 : wanted > rows ? rows : wanted;
}

int td_colour_of(int red, int green, int blue) {
  static const int steps[] = {0, 95, 135, 175, 215, 255};
  int cube[3], grey = (red + green + blue) / 3, channels[] = {red, green, blue}, error = 0;
  for (int i = 0; i < 3; i++) {
    int c = channels[i];
    cube[i] = c < 48 ? 0 : c < 115 ? 1 : (c - 35) / 40;
    error += abs(steps[cube[i]] - c);
  }
  int level = grey < 3 ? 0 : grey > 238 ? 23 : (grey - 3) / 10, value = 8 + 10 * level;
  int grey_error = abs(value - red) + abs(value - green) + abs(value - blue);
  return grey_error < error ? 232 + level : 16 + 36 * cube[0] + 6 * cube[1] + cube[2];
}

static void mean(const td_picture *p, double x0, double x1, double y0, double y1, int out[3]) {
  int left = (int)x0, top = (int)y0, right = (int)ceil(x1), bottom = (int)ceil(y1);
  if (right <= left) right = left + 1;
  if (bottom <= top) bottom = top + 1;
  if (right > p->width) right = p->width;
  if (bottom > p->height) bottom = p->height;
  long sum[3] = {0, 0, 0}, count = 0;
  for (int y = top; y < bottom; y++)
    for (int x = left; x < right; x++, count++)
      for (int c = 0; c < 3; c++) sum[c] += p->pixels[(y * (long)p->width + x) * 3 + c];
  for (int c = 0; c < 3; c++) out[c] = count ? (int)(sum[c] / count) : 0;
}

void td_picture_draw_row(const td_picture *p, const td_theme *theme, td_surface *surface, int row, int column,
                         int columns, int rows, int index) {
  static const char ramp[] = " .:-=+*#%@";
  double scale = 2.0 * rows / p->height, across = (double)columns / p->width;
  if (across < scale) scale = across;
  if (scale >= 1) scale = floor(scale);
  int width = (int)(p->width * scale);
  bool colour = theme->colours >= 256 && theme->glyphs != TD_GLYPHS_ASCII;
  for (int x = 0; x < width && x < columns; x++) {
    int upper[3], lower[3];
    double x0 = x / scale, x1 = (x + 1) / scale, y0 = 2 * index / scale, y1 = (2 * index + 1) / scale,
           y2 = (2 * index + 2) / scale;
    if (y0 >= p->height) break;
    mean(p, x0, x1, y0, y1, upper);
    bool below = y1 < p->height;
    if (below) mean(p, x0, x1, y1, y2, lower);
    if (colour) {
      td_style style = {(int16_t)td_colour_of(upper[0], upper[1], upper[2]),
                        below ? (int16_t)td_colour_of(lower[0], lower[1], lower[2]) : -1, 0};
      td_surface_put(surface, row, column + x, 0x2580, style);
    } else {
      int light = 299 * upper[0] + 587 * upper[1] + 114 * upper[2];
      if (below) light = (light + 299 * lower[0] + 587 * lower[1] + 114 * lower[2]) / 2;
      td_surface_put(surface, row, column + x, (uint32_t)ramp[light * 9 / 255000], (td_style){-1, -1, 0});
    }
  }
}
