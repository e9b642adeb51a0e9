// See picture_text.h.
#include "repl/notebook/picture_text.h"
#include <math.h>
#include <stdlib.h>

uint32_t td_pixels_at(const td_pixels *p, int x, int y) {
  const uint8_t *rgb = p->rgb + ((size_t)y * (size_t)p->width + (size_t)x) * 3;
  return (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
}

void td_pixels_fit(int from_width, int from_height, bool halves, int columns, int rows, int grown_rows, int *width,
                   int *height) {
  int across = halves ? 1 : 2, down = halves ? 2 : 1; // of a square: columns, and how many stand in a row
  double scale = fmin((double)columns / across / from_width, (double)rows * down / from_height);
  int times = (int)fmin(scale, (double)grown_rows * down / from_height);
  if (scale >= 1) scale = times > 1 ? times : 1;
  else if (scale >= 0.5 && scale < 0.75 && !halves) scale = 0.5;
  *width = (int)fmax(1, floor(from_width * scale * across + 0.5));
  *height = (int)fmax(1, floor(from_height * scale + 0.5));
}

// ---- ASCII ----

char td_pixels_shade(uint32_t rgb) {
  static const char shades[] = " .:-=+*#%@";
  if (rgb == TD_COLOUR_NAN) return '!';
  if (rgb == TD_COLOUR_RISES) return '^';
  if (rgb == TD_COLOUR_FALLS) return 'v';
  uint32_t light = (rgb >> 16 & 255) * 299 + (rgb >> 8 & 255) * 587 + (rgb & 255) * 114; // of 255000
  return shades[light * 10 / 255001];
}

bool td_pixels_ascii(td_text *text, const td_pixels *p, int columns) {
  enum { ROWS_MOST = 200, GROWN_ROWS = 16 };
  td_pixels fitted;
  int width, height;
  td_pixels_fit(p->width, p->height, false, columns, ROWS_MOST, GROWN_ROWS, &width, &height);
  if (!td_pixels_resize(&fitted, p, width, height)) return false;
  for (int y = 0; y < height; y++) {
    size_t end = text->length;
    for (int x = 0; x < width; x++) {
      char shade = td_pixels_shade(td_pixels_at(&fitted, x, y));
      td_text_add_char(text, shade);
      if (shade != ' ') end = text->length;
    }
    if (!text->failed) text->data[text->length = end] = 0;
    if (y + 1 < height) td_text_add_char(text, '\n');
  }
  td_pixels_clear(&fitted);
  return !text->failed;
}

// ---- half blocks ----

static int step_of(int shade) { return shade < 48 ? 0 : shade < 115 ? 1 : (shade - 35) / 40; } // of the cube's six

static int distance(uint32_t a, uint32_t b) {
  int sum = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    int difference = (int)(a >> shift & 255) - (int)(b >> shift & 255);
    sum += difference * difference;
  }
  return sum;
}

int td_colour_256(uint32_t rgb) {
  static const uint32_t levels[6] = {0, 95, 135, 175, 215, 255};
  int red = step_of((int)(rgb >> 16 & 255)), green = step_of((int)(rgb >> 8 & 255)), blue = step_of((int)(rgb & 255));
  uint32_t cube = levels[red] << 16 | levels[green] << 8 | levels[blue];
  int mean = (int)((rgb >> 16 & 255) + (rgb >> 8 & 255) + (rgb & 255)) / 3;
  int grey = mean < 3 ? 0 : mean > 238 ? 23 : (mean - 3) / 10;
  uint32_t shade = (uint32_t)(8 + 10 * grey) * 0x010101u;
  return distance(rgb, shade) < distance(rgb, cube) ? 232 + grey : 16 + 36 * red + 6 * green + blue;
}

static void add_colour(td_text *text, int layer, uint32_t rgb, bool full) { // layer 38: the letter, 48: the ground
  if (full) td_text_print(text, "\033[%d;2;%u;%u;%um", layer, rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255);
  else td_text_print(text, "\033[%d;5;%dm", layer, td_colour_256(rgb));
}

static void add_row(td_text *text, const td_pixels *p, int y, bool full) {
  int64_t upper_before = -1, lower_before = -1;
  bool last = y + 1 == p->height; // of an odd number of rows: half of it stays the terminal's
  for (int x = 0; x < p->width; x++) {
    uint32_t upper = td_pixels_at(p, x, y), lower = last ? 0 : td_pixels_at(p, x, y + 1);
    if (upper != upper_before) add_colour(text, 38, upper, full);
    if (!last && lower != lower_before) add_colour(text, 48, lower, full);
    td_text_add(text, "▀");
    upper_before = upper;
    lower_before = lower;
  }
  td_text_add(text, "\033[0m");
}

bool td_pixels_blocks(td_text *text, const td_pixels *p, int columns, int rows, bool full) {
  enum { GROWN_ROWS = 16 };
  td_pixels fitted;
  int width, height;
  td_pixels_fit(p->width, p->height, true, columns, rows, GROWN_ROWS, &width, &height);
  if (!td_pixels_resize(&fitted, p, width, height)) return false;
  for (int y = 0; y < height; y += 2) {
    if (y) td_text_add_char(text, '\n');
    add_row(text, &fitted, y, full);
  }
  td_pixels_clear(&fitted);
  return !text->failed;
}
