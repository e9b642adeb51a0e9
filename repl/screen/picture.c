// See picture.h.
#include "repl/screen/picture.h"
#include <string.h>
#include "engine/io/png.h"

static bool in_halves(const td_theme *theme) { return theme->colours >= 256 && theme->glyphs != TD_GLYPHS_ASCII; }

int td_picture_rows(int width, int height, const td_theme *theme, td_room room) {
  int across, down;
  if (width < 1 || height < 1 || room.columns < 1 || room.rows < 1) return 0;
  td_pixels_fit(width, height, in_halves(theme), room.columns, room.rows, room.grown_rows, &across, &down);
  return in_halves(theme) ? (down + 1) / 2 : down;
}

// The one with this id, else the one that was not used for longest.
static td_picture *place_for(td_pictures *p, uint64_t id) {
  td_picture *oldest = &p->kept[0];
  for (int i = 0; i < TD_PICTURES_KEPT; i++) {
    if (p->kept[i].id == id) return &p->kept[i];
    if (p->kept[i].used < oldest->used) oldest = &p->kept[i];
  }
  return oldest;
}

// NULL: no memory.
static const td_pixels *fit(td_pictures *p, uint64_t id, const td_pixels *pixels, bool halves, td_room room) {
  td_picture *picture = place_for(p, id);
  int width, height;
  td_pixels_fit(pixels->width, pixels->height, halves, room.columns, room.rows, room.grown_rows, &width, &height);
  picture->used = ++p->clock;
  if (picture->id == id && picture->fitted.width == width && picture->fitted.height == height) return &picture->fitted;
  td_pixels_clear(&picture->fitted);
  picture->id = 0;
  if (!td_pixels_resize(&picture->fitted, pixels, width, height)) return NULL;
  picture->id = id;
  return &picture->fitted;
}

void td_picture_draw_row(td_pictures *pictures, uint64_t id, const td_pixels *pixels, const td_theme *theme,
                         td_room room, td_surface *surface, int row, int column, int index) {
  bool halves = in_halves(theme);
  const td_pixels *p = fit(pictures, id, pixels, halves, room);
  int y = halves ? 2 * index : index;
  for (int x = 0; p && y < p->height && x < p->width; x++) {
    uint32_t rgb = td_pixels_at(p, x, y);
    td_style style = {-1, -1, 0};
    if (halves) style.foreground = (int16_t)td_colour_256(rgb);
    if (halves && y + 1 < p->height) style.background = (int16_t)td_colour_256(td_pixels_at(p, x, y + 1));
    td_surface_put(surface, row, column + x,
                   halves ? td_theme_glyph(theme, TD_GLYPH_UPPER) : (uint32_t)td_pixels_shade(rgb), style);
  }
}

void td_pictures_clear(td_pictures *pictures) {
  for (int i = 0; i < TD_PICTURES_KEPT; i++) td_pixels_clear(&pictures->kept[i].fitted);
  *pictures = (td_pictures){0};
}

static int write_png(td_context *context, const char *path, const td_pixels *p) {
  td_tensor *t = td_tensor_new(context, TD_UINT8, 3, (int64_t[]){p->height, p->width, 3});
  if (!t) return TD_ERROR_MEMORY;
  memcpy(t->data, p->rgb, (size_t)p->width * (size_t)p->height * 3);
  int code = td_png_save(context, path, t);
  td_tensor_unref(t);
  return code;
}

bool td_pixels_save(const td_pixels *p, const char *path, td_text *message) {
  td_context *context = td_context_new(1);
  int code = context ? write_png(context, path, p) : TD_ERROR_MEMORY;
  if (code == TD_OK) td_text_print(message, "saved %s", path);
  else td_text_print(message, "not saved: %s", context ? context->error.message : "no memory");
  td_context_free(context);
  return code == TD_OK;
}
