// See curve_choice.h.
#include "repl/notebook/curve_choice.h"
#include <string.h>
#include "engine/base/file.h"
#include "engine/io/event_file.h"
#include "repl/language/diagnose.h"

// ---- curves of event files ----

static td_curve *curve_of(td_interpreter *I, const char *name, const td_event_curve *events) {
  td_curve *curve = td_curve_new(name);
  for (int64_t i = 0; curve && i < events->count; i++)
    if (!td_curve_add(curve, events->points[i].step, events->points[i].value)) {
      td_curve_free(curve);
      curve = NULL;
    }
  if (!curve) td_raise_memory(I);
  return curve;
}

static void no_such_scalar(td_interpreter *I, const char *who, const char *path, const char *name,
                           const td_event_curves *curves) {
  td_text names = {0};
  for (int64_t i = 0; i < curves->count; i++) td_text_print(&names, "%s%s", i ? ", " : "", curves->curves[i].name);
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: the run %s has no scalar '%s'", who, path, name);
  if (names.data) td_raise_hint(I, "it has %s", names.data);
  td_text_clear(&names);
}

static td_curve *load_curve(td_interpreter *I, const char *who, const char *path, const char *scalar,
                            const char *name) {
  td_event_curves curves;
  td_curve *curve = NULL;
  if (!td_file_exists(path)) {
    td_raise(I, TD_CLASS_FILE_NOT_FOUND_ERROR, "%s: there is no run '%s'", who, path);
    return td_raise_hint(I, "%%runs lists those under runs/"), NULL;
  }
  if (td_event_curves_load(I->context, path, &curves) != TD_OK) return td_raise_engine(I), NULL;
  int64_t at = 0;
  while (at < curves.count && strcmp(curves.curves[at].name, scalar) != 0) at++;
  if (at < curves.count) curve = curve_of(I, name, &curves.curves[at]);
  else no_such_scalar(I, who, path, scalar, &curves);
  td_event_curves_clear(&curves);
  return curve;
}

// ---- the choice ----

static bool add(td_curve_choice *c, const td_curve *curve, td_curve *owned) {
  if (!curve) return false;
  c->owned[c->count] = owned;
  c->curves[c->count++] = curve;
  return true;
}

static bool has_room(td_interpreter *I, const td_curve_choice *c) {
  if (c->count < c->most) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s draws up to %d curves together", c->who, c->most);
  return false;
}

bool td_curve_choose_run(td_interpreter *I, td_curve_choice *c, const char *folder, const char *scalar) {
  td_text name = {0};
  td_text_print(&name, "%s:%s", folder, scalar);
  td_curve *curve = !has_room(I, c) ? NULL
                    : name.failed   ? (td_raise_memory(I), NULL)
                                    : load_curve(I, c->who, folder, scalar, name.data);
  td_text_clear(&name);
  return add(c, curve, curve);
}

static bool choose_by_colon(td_interpreter *I, td_curve_choice *c, const char *name, const char *colon) {
  td_text folder = {0};
  td_text_add(&folder, "");
  td_text_add_bytes(&folder, name, (size_t)(colon - name));
  bool ok = !folder.failed && td_curve_choose_run(I, c, folder.data, colon + 1);
  if (folder.failed) td_raise_memory(I);
  td_text_clear(&folder);
  return ok;
}

static bool no_such_curve(td_interpreter *I, const char *who, const char *name) {
  td_list *names = td_list_new(I, 8);
  for (int i = 0; names && i < td_curve_count(I); i++) {
    td_value item = td_from(td_str_from(I, td_curve_at(I, i)->name));
    td_list_append(I, names, item);
    td_unref(item);
  }
  const char *near = names ? td_suggest(name, names) : NULL;
  td_raise(I, TD_CLASS_NAME_ERROR, "%s: there is no curve '%s'", who, name);
  if (near) td_raise_hint(I, "did you mean %s? %%plot lists the curves", near);
  else td_raise_hint(I, "%%plot lists the curves; plot(\"%s\", value) adds a point to one", name);
  td_unref(td_from(names));
  return false;
}

bool td_curve_choose(td_interpreter *I, td_curve_choice *c, const char *name) {
  if (!has_room(I, c)) return false;
  const td_curve *curve = td_curve_find(I, name);
  const char *colon = strrchr(name, ':');
  if (curve) return add(c, curve, NULL);
  return colon ? choose_by_colon(I, c, name, colon) : no_such_curve(I, c->who, name);
}

void td_curve_choice_clear(td_curve_choice *c) {
  for (int i = 0; i < c->count; i++) td_curve_free(c->owned[i]);
  c->count = 0;
}
