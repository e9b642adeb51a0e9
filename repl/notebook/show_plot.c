// See show_plot.h.
#include "repl/notebook/show_plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/commands.h"
#include "repl/notebook/picture_curves.h"
#include "repl/notebook/pictures.h"

enum {
  COLUMNS = 80,
  ROWS = 12,
  BINS_LEAST = 10,
  BINS_MOST = 60,
  WIDTH = 640,
  HEIGHT = 400,
  MAP_WIDTH = 512,
  MAP_HEIGHT = 400
};

static const char who[] = "show";

// ---- numbers ----

static bool measure(td_interpreter *I, td_tensor *t, td_extent *e) {
  td_tiles tiles = {.count = 1, .total = 1};
  tiles.at[0] = (td_tile){.tensor = t, .height = t->size, .width = 1, .channels = 1};
  return td_tiles_measure(I, &tiles, e);
}

static void describe(td_text *text, const char *word, const td_tensor *t, const td_extent *e,
                     const td_show_plot *plot) {
  if (plot->title) td_text_print(text, "%s: ", plot->title);
  td_text_print(text, "%s ", word);
  td_meta_print(text, t->dtype, t->rank, t->shape);
  if (e->finite) td_text_print(text, " [%.4g, %.4g] mean %.4g\n", e->low, e->high, e->mean);
  else td_text_add(text, ", no finite value\n");
}

// ---- histogram ----

// Edges and number of the bins: one for each whole number where there are few, else by the cube root of the count.
static void choose_bins(const td_tensor *t, const td_extent *e, const td_show_plot *plot, td_chart_histogram *h) {
  h->low = isfinite(plot->low) ? plot->low : e->finite ? e->low : 0;
  h->high = isfinite(plot->high) ? plot->high : e->finite ? e->high : 1;
  bool whole = !td_dtype_is_float(t->dtype) && h->high - h->low < BINS_MOST;
  h->count = (int64_t)ceil(2 * cbrt((double)e->finite));
  h->count = h->count < BINS_LEAST ? BINS_LEAST : h->count > BINS_MOST ? BINS_MOST : h->count;
  if (whole) h->count = (int64_t)(h->high - h->low) + 1;
  double room = whole ? 0.5 : h->low < h->high ? 0 : h->low != 0 ? fabs(h->low) * 0.1 : 0.5;
  h->low -= room;
  h->high += room;
}

static bool fill_bins(td_interpreter *I, const td_tensor *t, const td_chart_histogram *h, int64_t *bins) {
  double half = h->high / 2 - h->low / 2;
  for (int64_t i = 0; i < t->size; i++) {
    if (i % 65536 == 0 && td_interrupted(I)) return false;
    double value = td_tensor_get_float(t, i);
    if (!(value >= h->low && value <= h->high)) continue;
    int64_t bin = (int64_t)((value / 2 - h->low / 2) / half * (double)h->count);
    bins[bin < h->count ? bin : h->count - 1]++;
  }
  return true;
}

static void print_histogram(td_interpreter *I, td_text *text, const td_chart_histogram *h, const td_show_plot *plot) {
  td_chart_cells cells;
  if (!td_chart_cells_start(&cells, COLUMNS, ROWS)) text->failed = true;
  else td_histogram_cells(&cells, h, plot->ascii ? TD_GLYPHS_ASCII : TD_GLYPHS_BRAILLE, false, TD_CELL_CURVE);
  if (!text->failed) td_chart_cells_print(text, &cells);
  td_chart_cells_clear(&cells);
  if (text->failed) td_raise_memory(I);
}

static void draw_bars(td_picture_frame *f, const td_chart_histogram *h) {
  double gap = h->count < 100 ? f->scale : 0, width = (h->high - h->low) / (double)h->count;
  for (int64_t i = 0; i < h->count; i++) {
    double left = td_frame_x(f, h->low + width * (double)i), right = td_frame_x(f, h->low + width * (double)(i + 1));
    if (h->bins[i])
      td_raster_box(f->raster, left + gap / 2, td_frame_y(f, (double)h->bins[i]), right - gap / 2, f->area.bottom);
  }
  td_frame_paint(f, f->theme->curves[0], 1);
}

static bool save_histogram(td_interpreter *I, const td_chart_histogram *h, const td_show_plot *plot) {
  td_picture_frame f;
  td_raster raster;
  td_tick x[TD_TICKS_MAX], y[TD_TICKS_MAX];
  int64_t most = 1;
  bool ok = td_frame_start(&f, &raster, WIDTH, HEIGHT, 1, td_picture_theme_find("light"));
  if (!ok) return td_raise_memory(I), false;
  for (int64_t i = 0; i < h->count; i++) most = h->bins[i] > most ? h->bins[i] : most;
  f.x = td_axis_cover(h->low, h->high, false, 0.02);
  f.y = (td_axis){.low = 0, .high = (double)most * 1.05};
  int y_count = td_axis_ticks(&f.y, 7, true, y), x_count = td_axis_ticks(&f.x, 8, false, x);
  td_frame_lay_out(&f, td_frame_label_width(&f, y, y_count), plot->title, 16);
  td_frame_grid(&f, NULL, 0, y, y_count);
  draw_bars(&f, h);
  td_frame_outline(&f);
  td_frame_x_ticks(&f, x, x_count);
  td_frame_y_ticks(&f, y, y_count);
  if (plot->title) td_frame_title(&f, plot->title);
  ok = td_picture_save(I, who, plot->path, &raster);
  td_raster_clear(&raster);
  return ok;
}

static bool show_histogram(td_interpreter *I, td_tensor *t, const td_extent *e, const td_show_plot *plot) {
  int64_t bins[BINS_MOST + 1] = {0};
  td_chart_histogram h = {.bins = bins, .nans = e->nans, .rises = e->rises, .falls = e->falls};
  td_text text = {0};
  choose_bins(t, e, plot, &h);
  if (!fill_bins(I, t, &h, bins)) return false;
  describe(&text, "histogram of", t, e, plot);
  print_histogram(I, &text, &h, plot);
  bool ok = !text.failed && (!plot->path || save_histogram(I, &h, plot));
  td_output_text(I, &text);
  return ok;
}

// ---- curve ----

static td_curve *curve_of(td_interpreter *I, const td_tensor *t) {
  td_curve *curve = td_curve_new("x");
  for (int64_t i = 0; curve && i < t->size; i++)
    if (!td_curve_add(curve, i, td_tensor_get_float(t, i))) {
      td_curve_free(curve);
      curve = NULL;
    }
  if (!curve) td_raise_memory(I);
  return curve;
}

static bool save_curve(td_interpreter *I, const td_curve *curve, const td_show_plot *plot) {
  td_picture_options options = {.width = WIDTH,
                                .height = HEIGHT,
                                .scale = 1,
                                .theme = td_picture_theme_find("light"),
                                .title = plot->title,
                                .steps_label = "index",
                                .range = {.low = plot->low, .high = plot->high}};
  td_raster raster;
  if (!td_picture_curves(&raster, &curve, 1, &options)) return td_raise_memory(I), false;
  bool ok = td_picture_save(I, who, plot->path, &raster);
  td_raster_clear(&raster);
  return ok;
}

static bool show_curve(td_interpreter *I, td_tensor *t, const td_extent *e, const td_show_plot *plot) {
  td_chart_options options = {.glyphs = plot->ascii ? TD_GLYPHS_ASCII : TD_GLYPHS_BRAILLE,
                              .is_clipped = isfinite(plot->low) || isfinite(plot->high),
                              .low = plot->low,
                              .high = plot->high};
  td_chart_cells cells = {0};
  td_chart_view view;
  td_text text = {0};
  td_curve *curve = curve_of(I, t);
  if (!curve) return false;
  describe(&text, "curve of", t, e, plot);
  bool drawn = td_chart_cells_start(&cells, COLUMNS, ROWS) &&
               td_chart_draw(&cells, (const td_curve *const[]){curve}, 1, &options, &view);
  if (drawn) {
    td_chart_cells_print(&text, &cells);
    size_t before = text.length;
    td_chart_notes(&text, &view, &options);
    if (text.length > before) td_text_add_char(&text, '\n');
  } else td_raise_memory(I);
  bool ok = drawn && (!plot->path || save_curve(I, curve, plot));
  td_chart_cells_clear(&cells);
  td_curve_free(curve);
  td_output_text(I, &text);
  return ok;
}

bool td_show_draw_plot(td_interpreter *I, td_tensor *t, const td_show_plot *plot) {
  td_extent e;
  if (!measure(I, t, &e)) return false;
  return plot->histogram ? show_histogram(I, t, &e, plot) : show_curve(I, t, &e, plot);
}

// ---- pictures with axes ----

enum { SCALE_WIDTH = 14, SCALE_GAP = 16, SCALE_ROOM = 96 };

static void draw_scale(td_picture_frame *f,
                       const td_tone *tone) { // a bar of the colours with its numbers, at the right
  int left = f->area.right + SCALE_GAP, height = f->area.bottom - f->area.top;
  td_tick ticks[TD_TICKS_MAX];
  td_axis axis = tone->low < tone->high ? (td_axis){.low = tone->low, .high = tone->high}
                                        : td_axis_cover(tone->low, tone->low, false, 0);
  for (int y = 0; y < height; y++) {
    uint32_t rgb = td_colour_map_at(tone->map, 1 - (y + 0.5) / height);
    td_raster_box(f->raster, left, f->area.top + y, left + SCALE_WIDTH, f->area.top + y + 1);
    td_frame_paint(f, rgb, 1);
  }
  int count = td_axis_ticks(&axis, height / 44, false, ticks);
  for (int i = 0; i < count; i++) {
    double y = floor(f->area.bottom - 0.5 - ticks[i].place * (height - 1)) + 0.5, right = left + SCALE_WIDTH;
    td_raster_stroke(f->raster, (td_point[]){{right, y}, {right + 4, y}}, 2, 1);
    td_frame_paint(f, f->theme->frame, 1);
    td_frame_write(f, right + 8, y + 4.5, TD_ALIGN_LEFT, ticks[i].label, f->theme->text);
  }
}

// The size of the pixels' shape that fits, of whole multiples where it grows.
static td_box fit(int width, int height) {
  double scale = fmin((double)MAP_WIDTH / width, (double)MAP_HEIGHT / height);
  if (scale > 1) scale = floor(scale);
  return (td_box){0, 0, (int)fmax(1, floor(width * scale)), (int)fmax(1, floor(height * scale))};
}

static int index_ticks(int64_t size, int pixels, td_tick *ticks) {
  td_axis axis = {.low = -0.5, .high = (double)size - 0.5};
  return td_axis_ticks(&axis, pixels / 40, true, ticks);
}

static void draw_indices(td_picture_frame *f, const td_tile *tile) { // rows are counted downwards
  td_tick ticks[TD_TICKS_MAX];
  f->x = (td_axis){.low = -0.5, .high = (double)tile->width - 0.5};
  f->y = (td_axis){.low = (double)tile->height - 0.5, .high = -0.5};
  td_frame_x_ticks(f, ticks, index_ticks(tile->width, f->area.right - f->area.left, ticks));
  td_frame_y_ticks(f, ticks, index_ticks(tile->height, f->area.bottom - f->area.top, ticks));
}

static bool draw_map(td_picture_frame *f, const td_pixels *pixels) {
  int width = f->area.right - f->area.left, height = f->area.bottom - f->area.top;
  td_pixels shrunk = {0};
  if (width >= pixels->width)
    return td_raster_image(f->raster, f->area, pixels->rgb, pixels->width, pixels->height), true;
  if (!td_pixels_resize(&shrunk, pixels, width, height)) return false;
  td_raster_image(f->raster, f->area, shrunk.rgb, width, height);
  td_pixels_clear(&shrunk);
  return true;
}

bool td_show_save_map(td_interpreter *I, const char *path, const char *title, const td_pixels *pixels,
                      const td_tone *tone, const td_tile *tile) {
  enum { LEFT = 30, RIGHT = 16, MARGINS = 56, TITLE = 20, LEAST = 160 };
  td_picture_frame f;
  td_raster raster;
  td_box box = fit(pixels->width, pixels->height);
  int right = tone ? SCALE_ROOM : RIGHT, width = box.right + LEFT + 14 + right;
  if (!td_frame_start(&f, &raster, width > LEAST ? width : LEAST, box.bottom + MARGINS + (title ? TITLE : 0), 1,
                      td_picture_theme_find("light")))
    return td_raise_memory(I), false;
  td_frame_lay_out(&f, LEFT, title, right);
  f.area = (td_box){f.area.left, f.area.top, f.area.left + box.right, f.area.top + box.bottom};
  bool ok = draw_map(&f, pixels);
  td_frame_outline(&f);
  if (tile) draw_indices(&f, tile);
  if (tone) draw_scale(&f, tone);
  if (title) td_frame_title(&f, title);
  if (!ok) td_raise_memory(I);
  ok = ok && td_picture_save(I, who, path, &raster);
  td_raster_clear(&raster);
  return ok;
}
