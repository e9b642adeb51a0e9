// plot_save: curves as a PNG picture.
#include <math.h>
#include "engine/base/file.h"
#include "engine/io/png.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"
#include "repl/notebook/curve_choice.h"
#include "repl/notebook/picture_curves.h"
#include "repl/notebook/pictures.h"

static const char who[] = "plot_save";

// ---- what pictures share ----

bool td_pictures_register(td_interpreter *I) {
  return td_builtin_define_rows(I, td_plot_save_builtins) && td_builtin_define_rows(I, td_show_builtins);
}

bool td_picture_save_pixels(td_interpreter *I, const char *name, const char *path, const uint8_t *rgb, int width,
                            int height) {
  int64_t shape[] = {height, width, 3};
  td_tensor *t = td_tensor_new(I->context, TD_UINT8, 3, shape);
  td_text bytes = {0};
  int code = TD_ERROR_MEMORY;
  if (t) {
    memcpy(t->data, rgb, (size_t)t->size);
    code = td_png_encode(I->context, name, t, &bytes);
  }
  if (!code) code = td_file_save(I->context, path, bytes.data, bytes.length);
  td_text_clear(&bytes);
  td_tensor_unref(t);
  if (code) td_raise_engine(I);
  return !code;
}

bool td_picture_save(td_interpreter *I, const char *name, const char *path, const td_raster *r) {
  uint8_t *rgb = td_memory_new((size_t)r->width * (size_t)r->height * 3);
  if (!rgb) return td_raise_memory(I), false;
  td_raster_bytes(r, rgb);
  bool ok = td_picture_save_pixels(I, name, path, rgb, r->width, r->height);
  td_memory_free(rgb);
  return ok;
}

// ---- arguments ----

static bool side_argument(td_interpreter *I, td_value v, const char *name, int *side) {
  enum { LEAST = 16, MOST = 4096 };
  bool ok = true;
  int64_t number = td_to_int(I, v, &ok);
  if (ok && number >= LEAST && number <= MOST) return *side = (int)number, true;
  td_clear_raised(I);
  td_raise(I, ok ? TD_CLASS_VALUE_ERROR : TD_CLASS_TYPE_ERROR, "%s: %s must be an int from %d to %d", who, name, LEAST,
           MOST);
  return false;
}

static bool number_argument(td_interpreter *I, td_value v, const char *name, double low, double below, double *number) {
  bool ok = true;
  *number = td_to_double(I, v, &ok);
  if (ok && *number >= low && *number < below) return true;
  td_clear_raised(I);
  td_raise(I, ok ? TD_CLASS_VALUE_ERROR : TD_CLASS_TYPE_ERROR, "%s: %s must be a number from %g to below %g", who, name,
           low, below);
  return false;
}

static bool limits_argument(td_interpreter *I, td_value v, const char *name, double limits[2], bool *given) {
  *given = !td_is_none(v);
  if (!*given) return true;
  bool pair = td_is(v, &td_tuple_type) && td_as_tuple(v)->count == 2, ok = pair;
  for (int i = 0; ok && i < 2; i++) {
    td_value end = td_as_tuple(v)->items[i];
    limits[i] = td_is_none(end) ? (double)NAN : td_to_double(I, end, &ok);
  }
  if (ok && !(limits[0] >= limits[1])) return true;
  td_clear_raised(I);
  td_raise(
      I, ok ? TD_CLASS_VALUE_ERROR : TD_CLASS_TYPE_ERROR,
      "%s: %s must be a tuple (low, high) of numbers, the lower one first; None for an end that follows the curves",
      who, name);
  return false;
}

static int64_t step_of(double limit, double otherwise) {
  double step = limit != limit ? otherwise : limit;
  return step <= -9e18 ? INT64_MIN : step >= 9e18 ? INT64_MAX : (int64_t)llround(step);
}

static bool range_arguments(td_interpreter *I, td_value xlim, td_value ylim, td_series_range *range) {
  double steps[2], values[2] = {NAN, NAN};
  bool given;
  if (!limits_argument(I, xlim, "xlim", steps, &range->is_cut)) return false;
  if (range->is_cut) {
    range->first = step_of(steps[0], 0);
    range->last = step_of(steps[1], 9e18);
  }
  if (!limits_argument(I, ylim, "ylim", values, &given)) return false;
  range->low = values[0];
  range->high = values[1];
  return true;
}

static bool theme_argument(td_interpreter *I, td_value v, const td_picture_theme **theme) {
  if (!td_str_argument(I, v, who, "theme")) return false;
  *theme = td_picture_theme_find(td_as_str(v)->data);
  if (!*theme)
    td_raise(I, TD_CLASS_VALUE_ERROR, "%s: theme must be \"light\" or \"dark\", not \"%s\"", who, td_as_str(v)->data);
  return *theme;
}

// The order in which they arrive: *names are the last.
enum { PATH, WIDTH, HEIGHT, SCALE, THEME, LOG, SMOOTH, TITLE, RUNS, XLIM, YLIM, NAMES };

static bool option_arguments(td_interpreter *I, const td_value *a, td_picture_options *o) {
  bool ok = side_argument(I, a[WIDTH], "width", &o->width) && side_argument(I, a[HEIGHT], "height", &o->height) &&
            number_argument(I, a[SCALE], "scale", 0.5, 8, &o->scale) && theme_argument(I, a[THEME], &o->theme) &&
            number_argument(I, a[SMOOTH], "smooth", 0, 1, &o->smoothing) &&
            range_arguments(I, a[XLIM], a[YLIM], &o->range);
  if (!ok) return false;
  if (o->width * o->scale > TD_RASTER_SIDE_MAX || o->height * o->scale > TD_RASTER_SIDE_MAX) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "%s: a picture's sides are up to %d pixels, also after scale", who,
             TD_RASTER_SIDE_MAX);
    return false;
  }
  int logarithmic = td_truth(I, a[LOG]);
  o->logarithmic = logarithmic > 0;
  o->title = td_is_none(a[TITLE]) ? NULL : td_is(a[TITLE], &td_str_type) ? td_as_str(a[TITLE])->data : NULL;
  return logarithmic >= 0 && (o->title || td_is_none(a[TITLE]) || td_str_argument(I, a[TITLE], who, "title"));
}

// ---- curves ----

static bool choose_name(td_interpreter *I, td_curve_choice *c, td_value name) {
  if (td_str_argument(I, name, who, "a curve's name")) return td_curve_choose(I, c, td_as_str(name)->data);
  return false;
}

static td_value folders_of(td_interpreter *I, td_value runs) { // a list; new reference; NIL: exception
  if (!td_is(runs, &td_str_type) && !td_is(runs, &td_list_type) && !td_is(runs, &td_tuple_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "%s: runs must be a folder or a list of folders, not %s", who,
                    td_type_name(I, runs));
  if (!td_is(runs, &td_str_type)) return td_list_from(I, runs);
  td_list *one = td_list_new(I, 1);
  if (one) td_list_append(I, one, runs);
  return td_from(one);
}

static bool choose_in_runs(td_interpreter *I, td_curve_choice *c, const td_tuple *names, td_value runs) {
  if (!names->count) td_raise(I, TD_CLASS_VALUE_ERROR, "%s: which scalars of the runs? give their names", who);
  td_value list = names->count ? folders_of(I, runs) : TD_NIL;
  if (td_is_nil(list)) return false;
  const td_list *folders = td_as_list(list);
  bool ok = true;
  for (int64_t i = 0; ok && i < folders->count; i++)
    for (int64_t k = 0; ok && k < names->count; k++)
      ok = td_str_argument(I, folders->items[i], who, "a run") &&
           td_str_argument(I, names->items[k], who, "a curve's name") &&
           td_curve_choose_run(I, c, td_as_str(folders->items[i])->data, td_as_str(names->items[k])->data);
  td_unref(list);
  return ok;
}

static bool choose(td_interpreter *I, td_curve_choice *c, const td_tuple *names, td_value runs) {
  bool ok = true;
  if (!td_is_none(runs)) return choose_in_runs(I, c, names, runs);
  for (int64_t i = 0; ok && i < names->count; i++) ok = choose_name(I, c, names->items[i]);
  for (int i = 0; ok && !names->count && i < td_curve_count(I); i++)
    ok = td_curve_choose(I, c, td_curve_at(I, i)->name);
  if (!ok || c->count) return ok;
  td_raise(I, TD_CLASS_VALUE_ERROR,
           "%s: there is no curve yet: plot(\"loss\", value) adds a point to one, and fit does", who);
  return false;
}

static td_value builtin_plot_save(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  const char *path = td_path_argument(I, a[PATH], who);
  td_picture_options options = {.steps_label = "step", .legend = true};
  td_curve_choice c = {.who = who, .most = TD_PICTURE_CURVES};
  td_raster raster = {0};
  bool ok = path && option_arguments(I, a, &options) && choose(I, &c, td_as_tuple(a[NAMES]), a[RUNS]);
  if (ok && !td_picture_curves(&raster, c.curves, c.count, &options)) ok = (td_raise_memory(I), false);
  ok = ok && td_picture_save(I, who, path, &raster);
  td_raster_clear(&raster);
  td_curve_choice_clear(&c);
  return ok ? TD_NONE : TD_NIL;
}

const td_method td_plot_save_builtins[] = {
    {"plot_save",
     "(path, *names, width=800, height=500, scale=1, theme='light', log=False, smooth=0.0, title=None, runs=None, "
     "xlim=None, ylim=None)",
     builtin_plot_save,
     "Saves curves as a PNG picture: names given to plot(), or FOLDER:SCALAR of event files; without one, all of "
     "plot's.\n\n"
     "scale=2 gives the same picture in twice the pixels; theme is \"light\" or \"dark\". log=True: a logarithmic "
     "axis. "
     "smooth, from 0 to below 1, draws the running mean (its start corrected, as in TensorBoard) over the pale points. "
     "runs, one folder or several: the names are scalars of each. xlim and ylim, (low, high), cut steps and values; "
     "None "
     "is an end that follows the curves. val_loss has the colour of loss, dashed. A NaN is a gap with a cross at the "
     "foot, "
     "an infinity a triangle at the edge, points outside of ylim an arrow there; their counts stand below.\n"
     ">>> plot_save(\"curve.png\", \"loss\", \"val_loss\", smooth=0.6)"},
    {NULL, NULL, NULL, NULL}};
