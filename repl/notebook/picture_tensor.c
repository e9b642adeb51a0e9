// See picture_tensor.h. A tile that is too large is drawn by boxes of its elements: each pixel has the mean of a box.
#include "repl/notebook/picture_tensor.h"
#include <math.h>
#include <string.h>
#include "engine/base/memory.h"

static const uint32_t ground = 0x303030; // between tiles

void td_pixels_clear(td_pixels *p) {
  td_memory_free(p->rgb);
  *p = (td_pixels){0};
}

static bool start(td_pixels *p, int64_t width, int64_t height) {
  *p = (td_pixels){.width = (int)width, .height = (int)height, .rgb = td_memory_new((size_t)(width * height) * 3)};
  return p->rgb;
}

static void set(td_pixels *p, int64_t x, int64_t y, uint32_t rgb) {
  uint8_t *at = p->rgb + (y * p->width + x) * 3;
  for (int i = 0; i < 3; i++) at[i] = (uint8_t)(rgb >> (16 - 8 * i));
}

static uint32_t get(const td_pixels *p, int64_t x, int64_t y) {
  const uint8_t *at = p->rgb + (y * p->width + x) * 3;
  return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

// ---- other sizes ----

typedef struct span {
  int64_t from, to;
} span;

static span span_of(int64_t at, int64_t count, int64_t size) { // what of size elements the at-th of count pixels shows
  int64_t from = at * size / count, to = (at + 1) * size / count;
  return (span){from, to > from ? to : from + 1};
}

static uint32_t mean_pixel(const td_pixels *p, span x, span y) {
  uint64_t sums[3] = {0}, count = (uint64_t)((x.to - x.from) * (y.to - y.from));
  uint32_t mean = 0;
  for (int64_t row = y.from; row < y.to; row++)
    for (int64_t column = x.from; column < x.to; column++) {
      uint32_t rgb = get(p, column, row);
      if (td_colour_is_mark(rgb)) return rgb;
      for (int i = 0; i < 3; i++) sums[i] += rgb >> (16 - 8 * i) & 255;
    }
  for (int i = 0; i < 3; i++) mean = mean << 8 | (uint32_t)((sums[i] + count / 2) / count);
  return mean;
}

bool td_pixels_resize(td_pixels *to, const td_pixels *from, int width, int height) {
  if (!start(to, width, height)) return false;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++)
      set(to, x, y, mean_pixel(from, span_of(x, width, from->width), span_of(y, height, from->height)));
  return true;
}

// ---- numbers ----

void td_tiles_clear(td_tiles *t) {
  for (int64_t i = 0; i < t->count; i++) td_tensor_unref(t->at[i].tensor);
  t->count = 0;
}

static void add_number(td_extent *e, double value) {
  if (value != value) e->nans++;
  else if (isinf(value)) *(value > 0 ? &e->rises : &e->falls) += 1;
  else {
    e->finite++;
    e->low = fmin(e->low, value);
    e->high = fmax(e->high, value);
    e->mean += (value - e->mean) / (double)e->finite;
  }
}

bool td_tiles_measure(td_interpreter *I, const td_tiles *tiles, td_extent *e) {
  *e = (td_extent){.low = INFINITY, .high = -INFINITY};
  for (int64_t i = 0; i < tiles->count; i++) {
    const td_tile *tile = &tiles->at[i];
    int64_t row = tile->width * tile->channels;
    for (int64_t y = 0; y < tile->height; y++) {
      if (td_interrupted(I)) return false;
      for (int64_t k = 0; k < row; k++) add_number(e, td_tensor_get_float(tile->tensor, tile->first + y * row + k));
    }
  }
  return true;
}

// ---- drawing ----

static double mean_of(const td_tile *tile, span x, span y, int64_t channel) { // NaN and infinities win
  double sum = 0;
  for (int64_t row = y.from; row < y.to; row++)
    for (int64_t column = x.from; column < x.to; column++)
      sum += td_tensor_get_float(tile->tensor, tile->first + (row * tile->width + column) * tile->channels + channel);
  return sum / (double)((x.to - x.from) * (y.to - y.from));
}

static double place_of(const td_tone *tone, double value) {
  if (!isfinite(value)) return value;
  if (!(tone->low < tone->high)) return value < tone->low ? 0 : value > tone->low ? 1 : 0.5;
  double place = (value / 2 - tone->low / 2) / (tone->high / 2 - tone->low / 2);
  return fmin(fmax(place, 0), 1);
}

// No colour of the data is one of the marks.
static uint32_t unmarked(uint32_t rgb) { return td_colour_is_mark(rgb) ? rgb ^ 0x010000 : rgb; }

static uint32_t colour_of(const td_tile *tile, span x, span y, const td_tone *tone) {
  uint32_t rgb = 0;
  if (tile->channels == 1) {
    double place = place_of(tone, mean_of(tile, x, y, 0));
    return isfinite(place) ? unmarked(td_colour_map_at(tone->map, place)) : td_colour_map_at(tone->map, place);
  }
  double alpha = tile->channels == 4 ? place_of(tone, mean_of(tile, x, y, 3)) : 1;
  for (int i = 0; i < 3; i++) {
    double place = place_of(tone, mean_of(tile, x, y, i));
    if (!isfinite(place) || !isfinite(alpha)) return td_colour_map_at(tone->map, isfinite(place) ? alpha : place);
    rgb = rgb << 8 | (uint32_t)lround(fmin(fmax(place * alpha + (1 - alpha), 0), 1) * 255); // over white
  }
  return unmarked(rgb);
}

typedef struct grid { // in pixels
  int64_t columns, rows, width, height, gap, shrink;
} grid;

static int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

static grid lay_out(const td_tiles *tiles, int most) {
  int64_t width = 1, height = 1, count = tiles->count;
  for (int64_t i = 0; i < count; i++) {
    width = tiles->at[i].width > width ? tiles->at[i].width : width;
    height = tiles->at[i].height > height ? tiles->at[i].height : height;
  }
  double well = sqrt(1.6 * (double)count * (double)height / (double)width);
  int64_t columns = tiles->columns ? tiles->columns : (int64_t)lround(well);
  columns = columns < 1 ? 1 : columns > count ? count : columns;
  grid g = {.columns = columns, .rows = ceiling(count, columns), .gap = count > 1, .shrink = 1};
  int64_t room_x = (most - (g.columns - 1) * g.gap) / g.columns, room_y = (most - (g.rows - 1) * g.gap) / g.rows;
  int64_t shrink_x = ceiling(width, room_x > 0 ? room_x : 1), shrink_y = ceiling(height, room_y > 0 ? room_y : 1);
  g.shrink = shrink_x > shrink_y ? shrink_x : shrink_y;
  g.width = ceiling(width, g.shrink);
  g.height = ceiling(height, g.shrink);
  return g;
}

static bool draw_tile(td_interpreter *I, const td_tile *tile, const td_tone *tone, const grid *g, int64_t left,
                      int64_t top, td_pixels *pixels) {
  int64_t width = ceiling(tile->width, g->shrink), height = ceiling(tile->height, g->shrink);
  for (int64_t y = 0; y < height; y++) {
    if (td_interrupted(I)) return false;
    for (int64_t x = 0; x < width; x++)
      set(pixels, left + x, top + y,
          colour_of(tile, span_of(x, width, tile->width), span_of(y, height, tile->height), tone));
  }
  return true;
}

bool td_tiles_draw(td_interpreter *I, const td_tiles *tiles, const td_tone *tone, int most, td_pixels *pixels) {
  grid g = lay_out(tiles, most);
  int64_t across = g.width + g.gap, down = g.height + g.gap;
  if (!start(pixels, g.columns * across - g.gap, g.rows * down - g.gap)) return td_raise_memory(I), false;
  for (int64_t i = 0; i < (int64_t)pixels->width * pixels->height; i++)
    set(pixels, i % pixels->width, i / pixels->width, ground);
  for (int64_t i = 0; i < tiles->count; i++)
    if (!draw_tile(I, &tiles->at[i], tone, &g, i % g.columns * across, i / g.columns * down, pixels)) return false;
  return true;
}
