// See raster.h.
#include "repl/notebook/raster.h"
#include <math.h>
#include <string.h>
#include "engine/base/memory.h"

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

// ---- colours ----

static double to_linear(double shade) { // sRGB's curve, 0 to 1
  return shade <= 0.04045 ? shade / 12.92 : pow((shade + 0.055) / 1.055, 2.4);
}

static double from_linear(double light) {
  return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

static void split(uint32_t rgb, float parts[3]) {
  for (int i = 0; i < 3; i++) parts[i] = (float)to_linear((double)(rgb >> (16 - 8 * i) & 255) / 255);
}

// ---- life ----

bool td_raster_start(td_raster *r, int width, int height, uint32_t rgb) {
  size_t count = (size_t)width * (size_t)height;
  float parts[3];
  *r = (td_raster){.width = width, .height = height, .clip = {0, 0, width, height}};
  r->pixels = td_memory_new(count * 3 * sizeof(float));
  r->mask = td_memory_new_zero(count * sizeof(float));
  r->areas = td_memory_new_zero(((size_t)width + 2) * (size_t)height * sizeof(float));
  if (!r->pixels || !r->mask || !r->areas) return td_raster_clear(r), false;
  split(rgb, parts);
  for (size_t i = 0; i < count * 3; i++) r->pixels[i] = parts[i % 3];
  return true;
}

void td_raster_clear(td_raster *r) {
  td_memory_free(r->pixels);
  td_memory_free(r->mask);
  td_memory_free(r->areas);
  *r = (td_raster){0};
}

void td_raster_clip(td_raster *r, td_box box) {
  r->clip = (td_box){most(box.left, 0), most(box.top, 0), least(box.right, r->width), least(box.bottom, r->height)};
}

// ---- the mask ----

static void touch(td_raster *r, td_box box) {
  td_box *d = &r->dirty;
  if (d->left >= d->right) *d = box;
  else
    *d = (td_box){least(d->left, box.left), least(d->top, box.top), most(d->right, box.right),
                  most(d->bottom, box.bottom)};
}

static void cover(td_raster *r, int x, int y, double coverage) {
  float *at = &r->mask[(size_t)y * (size_t)r->width + (size_t)x];
  if (coverage > (double)*at) *at = (float)fmin(coverage, 1);
}

// Whole pixels that lie around a span of coordinates, inside of a span of the clip.
static bool around(double low, double high, int from, int to, int *first, int *end) {
  if (!(low < to && high > from)) return false;
  *first = (int)floor(fmax(low, from));
  *end = (int)ceil(fmin(high, to));
  return *first < *end;
}

void td_raster_paint(td_raster *r, td_ink ink) {
  float parts[3];
  split(ink.rgb, parts);
  for (int y = r->dirty.top; y < r->dirty.bottom; y++)
    for (int x = r->dirty.left; x < r->dirty.right; x++) {
      size_t at = (size_t)y * (size_t)r->width + (size_t)x;
      float share = r->mask[at] * (float)ink.alpha;
      r->mask[at] = 0;
      for (int i = 0; share > 0 && i < 3; i++) r->pixels[3 * at + i] += (parts[i] - r->pixels[3 * at + i]) * share;
    }
  r->dirty = (td_box){0};
}

// ---- strokes ----

static double distance_to(td_point p, td_point a, td_point b) { // of a point to a line from a to b
  double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  double along = length > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length : 0;
  along = fmin(fmax(along, 0), 1);
  return hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

static void stroke_one(td_raster *r, td_point a, td_point b, double half) {
  double reach = half + 1, dx = b.x - a.x, dy = b.y - a.y;
  int top, bottom, left, right;
  if (!around(fmin(a.y, b.y) - reach, fmax(a.y, b.y) + reach, r->clip.top, r->clip.bottom, &top, &bottom) ||
      !around(fmin(a.x, b.x) - reach, fmax(a.x, b.x) + reach, r->clip.left, r->clip.right, &left, &right))
    return;
  touch(r, (td_box){left, top, right, bottom});
  bool steep = fabs(dy) > 1e-3;
  double aside = steep ? reach * hypot(dx, dy) / fabs(dy) + fabs(dx / dy) : 0;
  for (int y = top; y < bottom; y++) {
    double middle = steep ? a.x + (y + 0.5 - a.y) * dx / dy : 0;
    int from = steep ? most(left, (int)fmax(floor(middle - aside), left)) : left;
    int to = steep ? least(right, (int)fmin(ceil(middle + aside), right)) : right;
    for (int x = from; x < to; x++) {
      double distance = distance_to((td_point){x + 0.5, y + 0.5}, a, b);
      if (distance < half + 0.5) cover(r, x, y, half + 0.5 - distance);
    }
  }
}

void td_raster_stroke(td_raster *r, const td_point *points, size_t count, double width) {
  if (count == 1) stroke_one(r, points[0], points[0], width / 2);
  for (size_t i = 1; i < count; i++) stroke_one(r, points[i - 1], points[i], width / 2);
}

void td_raster_disc(td_raster *r, td_point centre, double radius) { stroke_one(r, centre, centre, radius); }

// ---- areas ----
// Each edge adds to a pixel how much the part of it right of the edge changes the sum of its row; the running sum of a
// row is the coverage then.

static void add_row(float *row, double x, double next, double height) { // an edge from x to next within one row
  double low = fmin(x, next), high = fmax(x, next), first = floor(low);
  int at = (int)first, end = (int)ceil(high);
  if (end <= at + 1) {
    double share = 0.5 * (x + next) - first;
    row[at] += (float)(height - height * share);
    row[at + 1] += (float)(height * share);
    return;
  }
  double slope = height / (high - low), covered = 0; // height that lies before pixel i's right edge, and its area
  for (int i = at; i < end; i++) {
    double from = fmax(low, i), to = fmin(high, i + 1), part = slope * (to - from);
    double area = part * (i + 1 - 0.5 * (from + to));
    row[i] += (float)(covered + area);
    covered = part - area;
  }
  row[end] += (float)covered;
}

static void add_edge(td_raster *r, td_point a, td_point b) {
  double sign = a.y < b.y ? 1 : -1;
  if (a.y > b.y) {
    td_point kept = a;
    a = b;
    b = kept;
  }
  if (a.y == b.y) return;
  double slope = (b.x - a.x) / (b.y - a.y);
  for (int y = (int)floor(a.y); y < (int)ceil(b.y); y++) {
    double from = fmax(a.y, y), to = fmin(b.y, y + 1);
    double x = a.x + (from - a.y) * slope, next = a.x + (to - a.y) * slope;
    x = fmin(fmax(x, 0), r->width);
    next = fmin(fmax(next, 0), r->width);
    add_row(r->areas + (size_t)y * ((size_t)r->width + 2), x, next, sign * (to - from));
  }
}

static td_point inside(const td_raster *r, td_point p) {
  return (td_point){fmin(fmax(p.x, r->clip.left), r->clip.right), fmin(fmax(p.y, r->clip.top), r->clip.bottom)};
}

void td_raster_fill(td_raster *r, const td_point *points, size_t count) {
  double low = INFINITY, high = -INFINITY;
  int top, bottom;
  for (size_t i = 0; i < count; i++) {
    td_point a = inside(r, points[i]), b = inside(r, points[(i + 1) % count]);
    low = fmin(low, a.y);
    high = fmax(high, a.y);
    add_edge(r, a, b);
  }
  if (!count || !around(low, high, r->clip.top, r->clip.bottom, &top, &bottom)) return;
  touch(r, (td_box){r->clip.left, top, r->clip.right, bottom});
  for (int y = top; y < bottom; y++) {
    float *row = r->areas + (size_t)y * ((size_t)r->width + 2);
    double sum = 0;
    for (int x = r->clip.left; x < r->clip.right; x++) {
      sum += (double)row[x];
      if (fabs(sum) > 1e-4) cover(r, x, y, fabs(sum));
    }
    memset(row, 0, ((size_t)r->width + 2) * sizeof *row);
  }
}

void td_raster_box(td_raster *r, double left, double top, double right, double bottom) {
  td_raster_fill(r, (td_point[]){{left, top}, {right, top}, {right, bottom}, {left, bottom}}, 4);
}

// ---- pixels ----

void td_raster_image(td_raster *r, td_box box, const uint8_t *rgb, int width, int height) {
  float lights[256];
  int across = box.right - box.left, down = box.bottom - box.top;
  for (int i = 0; i < 256; i++) lights[i] = (float)to_linear(i / 255.0);
  for (int y = most(box.top, 0); y < least(box.bottom, r->height); y++)
    for (int x = most(box.left, 0); x < least(box.right, r->width); x++) {
      size_t column = (size_t)((int64_t)(x - box.left) * width / across);
      size_t row = (size_t)((int64_t)(y - box.top) * height / down);
      const uint8_t *from = rgb + (row * (size_t)width + column) * 3;
      float *to = r->pixels + ((size_t)y * (size_t)r->width + (size_t)x) * 3;
      for (int i = 0; i < 3; i++) to[i] = lights[from[i]];
    }
}

// ---- the result ----

void td_raster_bytes(const td_raster *r, uint8_t *rgb) {
  enum { STEPS = 4096 };
  uint8_t shades[STEPS + 1];
  for (int i = 0; i <= STEPS; i++) shades[i] = (uint8_t)lround(from_linear((double)i / STEPS) * 255);
  size_t count = (size_t)r->width * (size_t)r->height * 3;
  for (size_t i = 0; i < count; i++) {
    double light = fmin(fmax((double)r->pixels[i], 0), 1);
    rgb[i] = light < 0.02 ? (uint8_t)lround(from_linear(light) * 255) : shades[(int)lround(light * STEPS)];
  }
}
