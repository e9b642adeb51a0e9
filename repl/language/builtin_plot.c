// plot and curve: the session's curves. Every point is kept at once; the faces are told of points in batches, at most
// some twenty times a second, so a point costs no event of its own.
#include <string.h>
#include <time.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/curve.h"
#include "repl/language/tensors.h"

enum { PENDING = 64 };
static const int64_t pause_nanoseconds = 50000000; // between two batches

typedef struct plotted {
  td_curve *curve;
  td_curve_point pending[PENDING];
  int pending_count;
} plotted;

struct td_plots {
  plotted **at;
  int32_t count, capacity;
  td_dict *index; // name -> place in at
  int64_t told; // when the faces were told last
};

static void tell(td_interpreter *I, plotted *p) {
  if (!p->pending_count) return;
  td_event event = {.kind = TD_EVENT_METRIC,
                    .cell = I->cell,
                    .text = p->curve->name,
                    .length = strlen(p->curve->name),
                    .points = p->pending,
                    .done = p->pending_count};
  p->pending_count = 0;
  if (I->sink) I->sink->emit(I->sink->owner, &event);
}

void td_plots_flush(td_interpreter *I) {
  const struct td_plots *plots = I->core->plots;
  for (int32_t i = 0; plots && i < plots->count; i++) tell(I, plots->at[i]);
}

void td_plots_free(td_interpreter *I) {
  struct td_plots *plots = I->core->plots;
  I->core->plots = NULL;
  if (!plots) return;
  for (int32_t i = 0; i < plots->count; i++) {
    td_curve_free(plots->at[i]->curve);
    td_memory_free(plots->at[i]);
  }
  td_memory_free(plots->at);
  td_unref(td_from(plots->index));
  td_memory_free(plots);
}

int td_curve_count(const td_interpreter *I) { return I->core->plots ? I->core->plots->count : 0; }

const td_curve *td_curve_at(const td_interpreter *I, int index) { return I->core->plots->at[index]->curve; }

const td_curve *td_curve_find(const td_interpreter *I, const char *name) {
  for (int i = 0; i < td_curve_count(I); i++)
    if (strcmp(td_curve_at(I, i)->name, name) == 0) return td_curve_at(I, i);
  return NULL;
}

static struct td_plots *plots_of(td_interpreter *I) { // NULL: MemoryError
  if (I->core->plots) return I->core->plots;
  struct td_plots *plots = td_memory_new_zero(sizeof *plots);
  if (!plots) return td_raise_memory(I), NULL;
  plots->index = td_dict_new(I);
  if (plots->index) return I->core->plots = plots;
  td_memory_free(plots);
  return NULL;
}

static bool room_for_one(struct td_plots *plots) {
  if (plots->count < plots->capacity) return true;
  int32_t capacity = plots->capacity ? plots->capacity * 2 : 8;
  plotted **at = td_memory_resize(plots->at, (size_t)capacity * sizeof(plotted *));
  if (!at) return false;
  plots->at = at;
  plots->capacity = capacity;
  return true;
}

static plotted *add_curve(td_interpreter *I, struct td_plots *plots, td_str *name) {
  plotted *p = room_for_one(plots) ? td_memory_new_zero(sizeof *p) : NULL;
  if (p) p->curve = td_curve_new(name->data);
  if (!p || !p->curve) {
    td_memory_free(p);
    td_raise_memory(I);
    return NULL;
  }
  if (!td_dict_set_str(I, plots->index, name, td_int(plots->count))) {
    td_curve_free(p->curve);
    td_memory_free(p);
    return NULL;
  }
  return plots->at[plots->count++] = p;
}

static bool name_argument(td_interpreter *I, td_value v, const char *who) {
  if (td_is(v, &td_str_type) && strlen(td_as_str(v)->data) == td_as_str(v)->length && td_as_str(v)->length) return true;
  if (!td_is(v, &td_str_type))
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: a curve's name is a str, not %s", who, td_type_name(I, v));
  else td_raise(I, TD_CLASS_VALUE_ERROR, "%s: a curve's name is empty or holds a NUL character", who);
  return false;
}

static bool refuse(td_interpreter *I, const char *what, td_value v) {
  td_clear_raised(I);
  td_raise(I, TD_CLASS_TYPE_ERROR, "plot: %s, not %s", what, td_type_name(I, v));
  return false;
}

static bool point_arguments(td_interpreter *I, const td_value *arguments, td_curve_point *point) {
  bool ok = name_argument(I, arguments[0], "plot");
  if (!ok) return false;
  point->value = td_to_double(I, arguments[1], &ok);
  if (!ok) return refuse(I, "value must be a number or a tensor of one element", arguments[1]);
  if (!td_is_none(arguments[2])) point->step = td_to_int(I, arguments[2], &ok);
  return ok || refuse(I, "step must be an int", arguments[2]);
}

static int64_t nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void keep_for_faces(td_interpreter *I, struct td_plots *plots, plotted *p) {
  if (!I->sink) return;
  p->pending[p->pending_count++] = p->curve->last;
  int64_t now = nanoseconds();
  if (now - plots->told >= pause_nanoseconds) {
    plots->told = now;
    td_plots_flush(I);
  } else if (p->pending_count == PENDING) tell(I, p);
}

static td_value builtin_plot(td_interpreter *I, td_value self, td_value *arguments) { // name, value, step
  (void)self;
  td_curve_point point = {0};
  struct td_plots *plots = point_arguments(I, arguments, &point) ? plots_of(I) : NULL;
  if (!plots) return TD_NIL;
  td_value place = td_dict_get_str(plots->index, td_as_str(arguments[0]));
  plotted *p = td_is_nil(place) ? add_curve(I, plots, td_as_str(arguments[0])) : plots->at[place.i];
  if (!p) return TD_NIL;
  if (td_is_none(arguments[2]) && p->curve->bin_count)
    point.step = p->curve->last.step < INT64_MAX ? p->curve->last.step + 1 : INT64_MAX;
  if (!td_curve_add(p->curve, point.step, point.value)) return td_raise_memory(I);
  keep_for_faces(I, plots, p);
  return TD_NONE;
}

static td_value builtin_curve(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!name_argument(I, arguments[0], "curve")) return TD_NIL;
  const td_curve *curve = td_curve_find(I, td_as_str(arguments[0])->data);
  if (!curve)
    return td_raise(I, TD_CLASS_VALUE_ERROR, "curve: nothing was plotted under the name '%s'",
                    td_as_str(arguments[0])->data);
  td_tensor *steps = td_tensor_new(I->context, TD_INT64, 1, &curve->bin_count);
  td_tensor *values = steps ? td_tensor_new(I->context, TD_FLOAT64, 1, &curve->bin_count) : NULL;
  for (int64_t i = 0; values && i < curve->bin_count; i++) {
    ((int64_t *)steps->data)[i] = curve->bins[i].first;
    ((double *)values->data)[i] = td_curve_value(&curve->bins[i]);
  }
  if (!values) return td_tensor_unref(steps), td_raise_engine(I);
  td_value first = td_tensor_box(I, steps), second = td_tensor_box(I, values);
  if (!td_is_nil(first) && !td_is_nil(second)) return td_tuple_pack(I, 2, first, second);
  td_unref(first);
  td_unref(second);
  return TD_NIL;
}

static td_value builtin_curve_cut(td_interpreter *I, td_value self, td_value *arguments) { // name, step
  (void)self;
  bool ok = true;
  if (!name_argument(I, arguments[0], "curve_cut")) return TD_NIL;
  int64_t step = td_to_int(I, arguments[1], &ok);
  if (!ok) return TD_NIL;
  const struct td_plots *plots = I->core->plots;
  td_value place = plots ? td_dict_get_str(plots->index, td_as_str(arguments[0])) : TD_NIL;
  if (!td_is_nil(place)) td_curve_cut(plots->at[place.i]->curve, step);
  return TD_NONE;
}

const td_method td_plot_builtins[] = {
    {"plot", "(name, value, step=None)", builtin_plot,
     "Adds a point to the live curve of that name; %plot NAME draws it.\n\n"
     "Without step the points are counted, from 0. A step before the last one replaces the points from it on, so that "
     "a "
     "training that was resumed is one curve.\n>>> plot(\"loss\", 0.25)"},
    {"curve", "(name)", builtin_curve,
     "The points that plot was given under a name: (steps, values).\n\n"
     "Of more than 65536 points neighbours are put together, and stand for their mean at the first one's step."},
    {"curve_cut", "(name, step=0)", builtin_curve_cut,
     "Forgets a curve's points from a step on; those that come later go on from there.\n>>> curve_cut(\"loss\", 100)"},
    {NULL, NULL, NULL, NULL}};
