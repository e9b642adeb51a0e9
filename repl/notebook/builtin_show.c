// show: a tensor as a picture. Images, heat maps and grids go to the faces as IMAGE events; curves and histograms are
// charts, which are text.
#include <math.h>
#include <string.h>
#include "engine/base/file.h"
#include "engine/io/png.h"
#include "engine/base/memory.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"
#include "repl/notebook/charset.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/commands.h"
#include "repl/notebook/picture_text.h"
#include "repl/notebook/pictures.h"
#include "repl/notebook/show_plot.h"
#include "repl/notebook/show_tiles.h"

enum { EVENT_SIDE = 1024, ASCII_COLUMNS = 80 };

static const char who[] = "show";

typedef struct request {
  td_value x;
  const char *title, *path; // NULL: none
  enum td_show_kind kind;
  const td_colour_map *map; // NULL: as it fits
  double low, high; // NaN: as they are
  int64_t columns; // 0: as it fits
  bool ascii;
} request;

// ---- arguments ----

static bool text_argument(td_interpreter *I, td_value v, const char *name, const char **text) {
  *text = NULL;
  if (td_is_none(v)) return true;
  if (!td_str_argument(I, v, who, name)) return false;
  *text = td_as_str(v)->data;
  return true;
}

static bool kind_argument(td_interpreter *I, td_value v, enum td_show_kind *kind) {
  static const char *const names[TD_SHOW_KINDS] = {NULL, "image", "heat", "grid", "hist", "line"};
  const char *name;
  *kind = TD_SHOW_AUTO;
  if (!text_argument(I, v, "kind", &name)) return false;
  if (!name) return true;
  for (int i = 1; i < TD_SHOW_KINDS; i++)
    if (!strcmp(name, names[i])) return *kind = (enum td_show_kind)i, true;
  td_raise(I, TD_CLASS_VALUE_ERROR,
           "show: kind must be \"image\", \"heat\", \"grid\", \"hist\" or \"line\", not \"%s\"", name);
  return false;
}

static bool map_argument(td_interpreter *I, td_value v, const td_colour_map **map) {
  const char *name;
  *map = NULL;
  if (!text_argument(I, v, "cmap", &name)) return false;
  if (!name) return true;
  *map = td_colour_map_find(name);
  if (!*map)
    td_raise(I, TD_CLASS_VALUE_ERROR, "show: there is no colour map \"%s\"; there are %s", name, td_colour_map_names());
  return *map;
}

static bool limit_argument(td_interpreter *I, td_value v, const char *name, double *limit) {
  bool ok = true;
  *limit = td_is_none(v) ? (double)NAN : td_to_double(I, v, &ok);
  if (ok && (td_is_none(v) || isfinite(*limit))) return true;
  td_clear_raised(I);
  td_raise(I, ok ? TD_CLASS_VALUE_ERROR : TD_CLASS_TYPE_ERROR, "show: %s must be a finite number", name);
  return false;
}

static bool columns_argument(td_interpreter *I, td_value v, int64_t *columns) {
  bool ok = true;
  *columns = td_is_none(v) ? 0 : td_to_int(I, v, &ok);
  if (ok && (td_is_none(v) || *columns > 0)) return true;
  td_clear_raised(I);
  td_raise(I, ok ? TD_CLASS_VALUE_ERROR : TD_CLASS_TYPE_ERROR, "show: columns must be an int from 1 up");
  return false;
}

// In the order of the signature.
enum { X, TITLE, SAVE, KIND, CMAP, VMIN, VMAX, COLUMNS, ASCII };

static bool arguments_of(td_interpreter *I, const td_value *a, request *r) {
  r->x = a[X];
  int ascii = td_truth(I, a[ASCII]);
  r->ascii = ascii > 0;
  bool ok = ascii >= 0 && text_argument(I, a[TITLE], "title", &r->title) && kind_argument(I, a[KIND], &r->kind) &&
            map_argument(I, a[CMAP], &r->map) && limit_argument(I, a[VMIN], "vmin", &r->low) &&
            limit_argument(I, a[VMAX], "vmax", &r->high) && columns_argument(I, a[COLUMNS], &r->columns);
  if (ok && r->low > r->high)
    ok = (td_raise(I, TD_CLASS_VALUE_ERROR, "show: vmin %g is above vmax %g", r->low, r->high), false);
  r->path = ok && !td_is_none(a[SAVE]) ? td_path_argument(I, a[SAVE], who) : NULL;
  return ok && (r->path || td_is_none(a[SAVE]));
}

// ---- what is shown ----

static td_tensor *load(td_interpreter *I, td_value path) {
  td_tensor *t = NULL;
  const char *name = td_existing_path(I, path, who);
  if (name && td_png_load(I->context, name, &t) != TD_OK) td_raise_engine(I);
  return t;
}

static td_tensor *without_alpha(td_interpreter *I,
                                td_tensor *t) { // [H, W, 2], grey and alpha, has no other meaning here
  if (!t || t->rank != 3 || t->shape[2] != 2) return t;
  td_tensor *grey = td_tensor_view(I->context, t, 2, t->shape, t->strides, 0);
  if (!grey) td_raise_engine(I);
  td_tensor_unref(t);
  return grey;
}

// A layer stands for its kernel.
static td_value kernel_of(td_interpreter *I, td_value v) { // new reference; NIL: exception
  if (!td_is(v, &td_instance_type)) return td_ref(v);
  td_str *name = td_str_intern(I, "kernel", 6);
  td_value kernel = name ? td_attribute_find(I, v, name) : TD_NIL;
  if (name) td_unref(td_from(name));
  if (!td_is_nil(kernel) && td_is_tensor_like(kernel)) return kernel;
  td_unref(kernel);
  if (td_is_nil(I->raised)) td_raise(I, TD_CLASS_TYPE_ERROR, "show: %s has no kernel to show", td_type_name(I, v));
  if (!td_is_nil(I->raised))
    td_raise_hint(I, "show takes a tensor, a list of tensors, a layer that is built, or the name of a PNG file");
  return TD_NIL;
}

static td_tensor *tensor_of(td_interpreter *I, td_value v) { // new reference; NULL: exception
  if (td_is(v, &td_str_type)) return without_alpha(I, load(I, v));
  td_value value = kernel_of(I, v);
  td_tensor *t = td_is_nil(value) ? NULL : td_to_tensor(I, value, -1);
  td_unref(value);
  if (!t || td_tensor_readable(I, t, who)) return t;
  td_tensor_unref(t);
  return NULL;
}

static bool is_picture(td_value v) {
  return td_is(v, &td_str_type) || (td_is_tensor_like(v) && td_tensor_of(v)->rank >= 2) || td_is(v, &td_instance_type);
}

static const td_value *items_of(td_value v, int64_t *count) { // of a list or tuple of pictures; NULL: it is none
  const td_value *items = NULL;
  *count = 0;
  if (td_is(v, &td_list_type)) items = td_as_list(v)->items, *count = td_as_list(v)->count;
  if (td_is(v, &td_tuple_type)) items = td_as_tuple(v)->items, *count = td_as_tuple(v)->count;
  for (int64_t i = 0; i < *count; i++)
    if (!is_picture(items[i])) return NULL;
  return *count ? items : NULL;
}

// Rank 3 is no image in colours where columns of a grid are asked for, or where it is a layer's kernel.
static bool add_one(td_interpreter *I, const request *r, td_value v, td_tensor *t, td_tiles *tiles) {
  bool grid = r->kind == TD_SHOW_AUTO && t->rank == 3 && (r->columns || td_is(v, &td_instance_type));
  return td_show_add(I, tiles, t, grid ? TD_SHOW_GRID : r->kind);
}

static bool add_items(td_interpreter *I, const request *r, const td_value *items, int64_t count, td_tiles *tiles) {
  for (int64_t i = 0; i < count; i++) {
    td_tensor *t = tensor_of(I, items[i]);
    bool ok = t && add_one(I, r, items[i], t, tiles);
    td_tensor_unref(t);
    if (!ok) return false;
  }
  return true;
}

// ---- colours ----

typedef struct look { // how the tiles are seen
  bool image; // as pictures of something; else as numbers
  bool colour; // some have channels
  td_tone tone;
  td_extent extent;
} look;

static double whole_of(uint8_t dtype) { return dtype == TD_UINT8 ? 255 : 1; }

static bool in_range(const td_tiles *tiles, const td_extent *e) { // in which the numbers of images lie
  for (int64_t i = 0; i < tiles->count; i++)
    if (whole_of(tiles->at[i].tensor->dtype) != whole_of(tiles->at[0].tensor->dtype)) return false;
  return !e->finite || (e->low >= 0 && e->high <= whole_of(tiles->at[0].tensor->dtype));
}

static void choose_look(const request *r, const td_tiles *tiles, look *l) {
  const td_extent *e = &l->extent;
  uint8_t dtype = tiles->at[0].tensor->dtype;
  for (int64_t i = 0; i < tiles->count; i++) l->colour |= tiles->at[i].channels > 1;
  bool few = tiles->total == 1 && !l->colour && r->kind != TD_SHOW_IMAGE;
  l->image = r->kind != TD_SHOW_HEAT && (!few || dtype == TD_UINT8 || td_is(r->x, &td_str_type));
  bool is_signed = e->low < 0 && e->high > 0 && !l->colour;
  double most = fmax(fabs(e->low), fabs(e->high));
  l->tone = (td_tone){.low = e->finite ? e->low : 0, .high = e->finite ? e->high : 1};
  if (l->image && in_range(tiles, e)) l->tone = (td_tone){.low = 0, .high = whole_of(dtype)};
  else if (is_signed) l->tone = (td_tone){.low = -most, .high = most};
  l->tone.map = td_colour_map_find(is_signed ? "coolwarm" : l->image ? "grey" : "viridis");
  if (r->map) l->tone.map = r->map;
  if (isfinite(r->low)) l->tone.low = r->low;
  if (isfinite(r->high)) l->tone.high = r->high;
}

// ---- the line about it ----

static void add_odd(td_text *text, const td_extent *e) {
  if (e->nans) td_text_print(text, ", %lld NaN", (long long)e->nans);
  if (e->rises) td_text_print(text, ", %lld inf", (long long)e->rises);
  if (e->falls) td_text_print(text, ", %lld -inf", (long long)e->falls);
}

static void add_size(td_text *text, const td_tiles *tiles) {
  const td_tile *tile = &tiles->at[0];
  for (int64_t i = 1; i < tiles->count; i++) {
    const td_tile *other = &tiles->at[i];
    if (other->height == tile->height && other->width == tile->width && other->channels == tile->channels) continue;
    td_text_add(text, "of different sizes");
    return;
  }
  td_text_print(text, "%lldx%lld", (long long)tile->height, (long long)tile->width);
  if (tile->channels > 1) td_text_print(text, "x%lld", (long long)tile->channels);
}

static void describe(const request *r, const td_tiles *tiles, const look *l, td_text *text) {
  const td_tile *tile = &tiles->at[0];
  const td_extent *e = &l->extent;
  if (r->title) td_text_print(text, "%s: ", r->title);
  const char *word = l->image ? "image" : "heat map";
  if (tiles->total > 1) td_text_print(text, "%lld %ss ", (long long)tiles->total, word);
  else td_text_print(text, "%s ", word);
  add_size(text, tiles);
  td_text_print(text, " %s", td_dtype_name(tile->tensor->dtype));
  if (e->finite) td_text_print(text, " [%.4g, %.4g] mean %.4g", e->low, e->high, e->mean);
  else td_text_add(text, ", no finite value");
  add_odd(text, e);
  bool plain = l->image && l->tone.map == td_colour_map_find("grey") && l->tone.low == 0 &&
               l->tone.high == whole_of(tile->tensor->dtype);
  if (!plain && !l->colour)
    td_text_print(text, ", %s from %.4g to %.4g", td_colour_map_name(l->tone.map), l->tone.low, l->tone.high);
  if (tiles->total > tiles->count) td_text_print(text, ", the first %lld", (long long)tiles->count);
}

// ---- showing ----

// Characters differ by brightness alone, so numbers are grey for them, whatever their colours.
static bool add_ascii(td_interpreter *I, const td_tiles *tiles, const td_tone *tone, td_text *text) {
  td_tone grey = {td_colour_map_find("grey"), tone->low, tone->high};
  td_pixels pixels;
  bool ok = td_tiles_draw(I, tiles, &grey, EVENT_SIDE, &pixels);
  if (ok && !td_pixels_ascii(text, &pixels, ASCII_COLUMNS)) ok = (td_raise_memory(I), false);
  td_pixels_clear(&pixels);
  return ok;
}

static bool emit(td_interpreter *I, const td_text *line, const td_text *ascii, const td_pixels *pixels) {
  if (line->failed) return td_raise_memory(I), false;
  td_event event = {.kind = TD_EVENT_IMAGE,
                    .cell = I->cell,
                    .text = line->data,
                    .length = line->length,
                    .detail = ascii->data,
                    .pixels = pixels->rgb,
                    .width = pixels->width,
                    .height = pixels->height};
  td_output_flush(I);
  if (I->sink) I->sink->emit(I->sink->owner, &event);
  return true;
}

static bool save_pixels(td_interpreter *I, const request *r, const td_tiles *tiles, const look *l) {
  td_pixels pixels;
  bool ok = td_tiles_draw(I, tiles, &l->tone, TD_RASTER_SIDE_MAX, &pixels);
  if (ok && (l->image && !r->title))
    ok = td_picture_save_pixels(I, who, r->path, pixels.rgb, pixels.width, pixels.height);
  else if (ok)
    ok = td_show_save_map(I, r->path, r->title, &pixels, l->colour ? NULL : &l->tone,
                          tiles->count == 1 ? &tiles->at[0] : NULL);
  td_pixels_clear(&pixels);
  return ok;
}

static bool show_tiles(td_interpreter *I, const request *r, const td_tiles *tiles) {
  look l = {0};
  td_pixels pixels = {0};
  td_text line = {0}, ascii = {0};
  bool ok = td_tiles_measure(I, tiles, &l.extent);
  if (ok) choose_look(r, tiles, &l);
  ok = ok && td_tiles_draw(I, tiles, &l.tone, EVENT_SIDE, &pixels);
  if (ok) describe(r, tiles, &l, &line);
  if (ok && r->ascii) ok = add_ascii(I, tiles, &l.tone, &ascii);
  ok = ok && emit(I, &line, &ascii, &pixels) && (!r->path || save_pixels(I, r, tiles, &l));
  td_text_clear(&line);
  td_text_clear(&ascii);
  td_pixels_clear(&pixels);
  return ok;
}

static bool is_plot(const request *r, const td_tensor *t) {
  return r->kind == TD_SHOW_HIST || r->kind == TD_SHOW_LINE || (r->kind == TD_SHOW_AUTO && t->rank == 1);
}

static bool show_one(td_interpreter *I, const request *r, td_tiles *tiles) {
  td_tensor *t = tensor_of(I, r->x);
  if (!t) return false;
  bool ascii = r->ascii || !td_charset_unicode();
  td_show_plot plot = {r->kind != TD_SHOW_LINE, r->title, r->path, r->low, r->high, ascii};
  bool ok = is_plot(r, t) ? td_show_draw_plot(I, t, &plot) : add_one(I, r, r->x, t, tiles) && show_tiles(I, r, tiles);
  td_tensor_unref(t);
  return ok;
}

static td_value builtin_show(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  request r = {0};
  int64_t count;
  if (!arguments_of(I, arguments, &r)) return TD_NIL;
  td_tiles *tiles = td_memory_new_zero(sizeof *tiles);
  if (!tiles) return td_raise_memory(I);
  tiles->columns = r.columns;
  const td_value *items = r.kind == TD_SHOW_HIST || r.kind == TD_SHOW_LINE ? NULL : items_of(r.x, &count);
  bool ok = items ? add_items(I, &r, items, count, tiles) && show_tiles(I, &r, tiles) : show_one(I, &r, tiles);
  td_tiles_clear(tiles);
  td_memory_free(tiles);
  return ok ? TD_NONE : TD_NIL;
}

const td_method td_show_builtins[] = {
    {"show", "(x, title=None, save=None, kind=None, cmap=None, vmin=None, vmax=None, columns=None, ascii=False)",
     builtin_show,
     "Shows a tensor as a picture; on a terminal in colour, in a pipe as a line about it.\n\n"
     "[H, W]: a heat map, uint8 an image; [H, W, 3 or 4], [3, H, W]: an image; [N, H, W], [N, H, W, C], [N, C, H, W] "
     "and a "
     "list of tensors: a grid, in so many columns, as is all of rank 3 with columns or kind=\"grid\"; [N]: a "
     "histogram. A layer stands for its kernel, a text for a PNG file. "
     "kind is \"image\", \"heat\", \"grid\", \"hist\" or \"line\" (a curve). Colours go from vmin to vmax by the map "
     "cmap: "
     "viridis, magma, grey or coolwarm; without it coolwarm around 0 where there are both signs, grey for images, "
     "viridis "
     "for heat maps. NaN is magenta, infinities are green. ascii=True adds the picture in characters. save writes a "
     "PNG: "
     "images pixel by pixel, the others (and all with a title) with axes and scale.\n"
     ">>> show(randn((28, 28)), kind=\"image\", ascii=True)"},
    {NULL, NULL, NULL, NULL}};
