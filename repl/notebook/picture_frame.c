// See picture_frame.h.
#include "repl/notebook/picture_frame.h"
#include <math.h>
#include <string.h>

static const td_picture_theme themes[2] = {
    {.paper = 0xFFFFFF,
     .frame = 0x7A7A7A,
     .grid = 0xE4E4E4,
     .text = 0x262626,
     .faint = 0x666666,
     .warning = 0xC62828,
     .curves = {0x1F6FB4, 0xD9600B, 0x2A8C3C, 0x8250B5, 0xB07A00, 0x008B9A, 0xC23B7F, 0x6B6B6B},
     .weight = 1.3,
     .band = 0.55,
     .points = 0.7},
    {.paper = 0x16181D,
     .frame = 0x7D838F,
     .grid = 0x2C3038,
     .text = 0xE2E5EA,
     .faint = 0x9CA3AF,
     .warning = 0xFF6B6B,
     .curves = {0x5AAEF5, 0xFF9447, 0x5FCB74, 0xB995F0, 0xE6BC4A, 0x3FCFDD, 0xF07AB4, 0xB4B4B4},
     .weight = 1.15,
     .band = 0.2,
     .points = 0.3}};

const td_picture_theme *td_picture_theme_find(const char *name) {
  return !strcmp(name, "light") ? &themes[0] : !strcmp(name, "dark") ? &themes[1] : NULL;
}

bool td_frame_start(td_picture_frame *f, td_raster *raster, int width, int height, double scale,
                    const td_picture_theme *theme) {
  double weight = theme->weight * scale;
  *f = (td_picture_frame){.raster = raster,
                          .theme = theme,
                          .scale = scale,
                          .font = {scale, weight},
                          .title = {1.3 * scale, 1.3 * weight},
                          .x = {.low = 0, .high = 1},
                          .y = {.low = 0, .high = 1}};
  return td_raster_start(raster, (int)lround(width * scale), (int)lround(height * scale), theme->paper);
}

void td_frame_lay_out(td_picture_frame *f, double label_width, bool has_title, double right) {
  double s = f->scale;
  int left = (int)ceil(label_width + 14 * s), top = (int)((has_title ? 34 : 14) * s);
  f->area = (td_box){left, top, f->raster->width - (int)(right * s), f->raster->height - (int)(42 * s)};
  if (f->area.right - f->area.left < 8 || f->area.bottom - f->area.top < 8) // a tiny picture is all area
    f->area = (td_box){1, 1, f->raster->width - 1, f->raster->height - 1};
}

double td_frame_x(const td_picture_frame *f, double value) {
  return f->area.left + 0.5 + td_axis_place(&f->x, value) * (f->area.right - f->area.left - 1);
}

double td_frame_y(const td_picture_frame *f, double value) {
  double place = fmin(fmax(td_axis_place(&f->y, value), -100), 100);
  return f->area.bottom - 0.5 - place * (f->area.bottom - f->area.top - 1);
}

void td_frame_paint(td_picture_frame *f, uint32_t rgb, double alpha) {
  td_raster_paint(f->raster, (td_ink){rgb, alpha});
}

void td_frame_write(td_picture_frame *f, double x, double y, td_align align, const char *text, uint32_t rgb) {
  td_raster_text(f->raster, (td_point){x, y}, align, false, text, &f->font);
  td_frame_paint(f, rgb, 1);
}

void td_frame_title(td_picture_frame *f, const char *text) {
  td_point at = {(f->area.left + f->area.right) / 2.0, 22 * f->scale};
  td_raster_text(f->raster, at, TD_ALIGN_CENTRE, false, text, &f->title);
  td_frame_paint(f, f->theme->text, 1);
}

double td_frame_label_width(const td_picture_frame *f, const td_tick *ticks, int count) {
  double width = 0;
  for (int i = 0; i < count; i++) width = fmax(width, td_text_width(ticks[i].label, &f->font));
  return width;
}

double td_frame_line(const td_picture_frame *f) { return fmax(1, floor(f->scale)); }

static double sharp(double at) { return floor(at) + 0.5; } // the middle of a pixel

static void stroke(td_picture_frame *f, double x, double y, double to_x, double to_y) {
  td_raster_stroke(f->raster, (td_point[]){{x, y}, {to_x, to_y}}, 2, td_frame_line(f));
}

void td_frame_grid(td_picture_frame *f, const td_tick *x, int x_count, const td_tick *y, int y_count) {
  for (int i = 0; i < x_count; i++) {
    double at = sharp(td_frame_x(f, x[i].value));
    stroke(f, at, f->area.top, at, f->area.bottom);
  }
  for (int i = 0; i < y_count; i++) {
    double at = sharp(td_frame_y(f, y[i].value));
    if (*y[i].label) stroke(f, f->area.left, at, f->area.right, at);
  }
  td_frame_paint(f, f->theme->grid, 1);
}

void td_frame_outline(td_picture_frame *f) {
  double width = td_frame_line(f), half = width / 2;
  double left = f->area.left - half, right = f->area.right + half;
  double top = f->area.top - half, bottom = f->area.bottom + half;
  td_point corners[] = {{left, top}, {right, top}, {right, bottom}, {left, bottom}, {left, top}};
  td_raster_stroke(f->raster, corners, 5, width);
  td_frame_paint(f, f->theme->frame, 1);
}

void td_frame_x_ticks(td_picture_frame *f, const td_tick *ticks, int count) {
  double bottom = f->area.bottom, free_from = -1e9;
  for (int i = 0; i < count; i++) {
    double x = sharp(td_frame_x(f, ticks[i].value)), half = td_text_width(ticks[i].label, &f->font) / 2;
    stroke(f, x, bottom + td_frame_line(f), x, bottom + 4 * f->scale);
    td_frame_paint(f, f->theme->frame, 1);
    if (x - half < free_from) continue;
    td_frame_write(f, x, bottom + 17 * f->scale, TD_ALIGN_CENTRE, ticks[i].label, f->theme->text);
    free_from = x + half + 6 * f->scale;
  }
}

void td_frame_y_ticks(td_picture_frame *f, const td_tick *ticks, int count) {
  double left = f->area.left;
  for (int i = 0; i < count; i++) {
    double y = sharp(td_frame_y(f, ticks[i].value)), length = *ticks[i].label ? 4 : 2.5;
    stroke(f, left - td_frame_line(f), y, left - length * f->scale, y);
    td_frame_paint(f, f->theme->frame, 1);
    td_frame_write(f, left - 8 * f->scale, y + 4.5 * f->scale, TD_ALIGN_RIGHT, ticks[i].label, f->theme->text);
  }
}
