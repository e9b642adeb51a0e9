// _vmap(function, arguments, in_axes, out_axes): what the library's vmap rests on. Tensors among the arguments are
// handed over as one example of a batch (engine/ops/batch.h); those among the results get the examples back as an axis.
#include <stdio.h>
#include "engine/base/memory.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "repl/language/nest.h"

typedef struct mapping {
  int64_t size; // examples; -1: not known yet
  int argument; // that is being read
  int64_t axis; // of the examples in it, or in the result
  td_value *leaves;
  int count;
} mapping;

static bool check_axis(td_interpreter *I, const td_tensor *t, int64_t axis, const char *what) {
  if (axis >= -t->rank && axis < t->rank) return true;
  td_text shape = {0};
  td_shape_print(&shape, t->rank, t->shape);
  td_raise(I, TD_CLASS_VALUE_ERROR, "vmap: %s: axis %lld is out of range for shape %s", what, (long long)axis,
           shape.data ? shape.data : "");
  td_text_clear(&shape);
  return false;
}

// Axis from of t moved to place to; both may be negative. NULL: error raised.
static td_tensor *move_axis(td_interpreter *I, td_tensor *t, int64_t from, int64_t to, const char *what) {
  int axes[TD_RANK_MAX], used = 0;
  if (!check_axis(I, t, from, what) || !check_axis(I, t, to, what)) return NULL;
  int source = (int)(from < 0 ? from + t->rank : from), target = (int)(to < 0 ? to + t->rank : to);
  for (int i = 0; i < t->rank; i++) {
    if (used == source) used++;
    axes[i] = i == target ? source : used++;
  }
  td_scope scope;
  td_scope_open(&scope, I->context);
  td_tensor *moved = td_tensor_ref(source == target ? t : td_permute(&scope, t, axes));
  td_scope_close(&scope);
  if (!moved) td_raise_engine(I);
  return moved;
}

static bool refuse_sizes(td_interpreter *I, const mapping *m, int64_t size) {
  td_raise(I, TD_CLASS_VALUE_ERROR, "vmap: argument %d has %lld examples, those before it %lld", m->argument,
           (long long)size, (long long)m->size);
  td_raise_hint(I, "in_axes=None hands an argument over whole, the same for each example");
  return false;
}

static bool measure(td_interpreter *I, td_value leaf, void *argument) { // finds the number of examples
  mapping *m = argument;
  const td_tensor *t = td_tensor_of(leaf);
  if (!t || !t->rank) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "vmap: argument %d is %s, and has no axis of examples", m->argument,
             t ? "a tensor of rank 0" : td_type_name(I, leaf));
    td_raise_hint(I, "in_axes=None hands it over whole, the same for each example");
    return false;
  }
  char what[40];
  snprintf(what, sizeof what, "argument %d", m->argument);
  if (!check_axis(I, t, m->axis, what)) return false;
  int64_t size = t->shape[m->axis < 0 ? m->axis + t->rank : m->axis];
  if (m->size >= 0 && size != m->size) return refuse_sizes(I, m, size);
  m->size = size;
  return true;
}

static bool add_example(td_interpreter *I, td_value leaf, void *argument) {
  mapping *m = argument;
  char what[40];
  snprintf(what, sizeof what, "argument %d", m->argument);
  td_tensor *whole = td_to_tensor(I, leaf, -1), *first = whole ? move_axis(I, whole, m->axis, 0, what) : NULL;
  td_tensor *wrapped = first ? td_batch_wrap(I->context, first) : NULL;
  if (first && !wrapped) td_raise_engine(I);
  td_tensor_unref(whole);
  td_tensor_unref(first);
  m->leaves[m->count] = wrapped ? td_tensor_box(I, wrapped) : TD_NIL;
  return !td_is_nil(m->leaves[m->count]) && ++m->count;
}

static bool add_result(td_interpreter *I, td_value leaf, void *argument) {
  mapping *m = argument;
  bool number = leaf.tag == TD_TAG_INT || leaf.tag == TD_TAG_DOUBLE || leaf.tag == TD_TAG_BOOL;
  if (!td_is_tensor_like(leaf) && !number) {
    if (!td_is_none(leaf))
      td_raise(I, TD_CLASS_TYPE_ERROR,
               "vmap: the function returned %s; results are tensors, or lists, tuples and dicts of them",
               td_type_name(I, leaf));
    else m->leaves[m->count++] = TD_NONE;
    return td_is_none(leaf);
  }
  td_tensor *t = td_to_tensor(I, leaf, -1), *all = t ? td_batch_unwrap(I->context, t) : NULL;
  if (t && !all) td_raise_engine(I);
  td_tensor *moved = all ? move_axis(I, all, 0, m->axis, "out_axes") : NULL;
  td_tensor_unref(t);
  td_tensor_unref(all);
  m->leaves[m->count] = moved ? td_tensor_box(I, moved) : TD_NIL;
  return !td_is_nil(m->leaves[m->count]) && ++m->count;
}

static td_value rebuild(td_interpreter *I, td_value v, td_nest_leaf *leaf, mapping *m) {
  int count = td_nest_count(I, v), next = 0;
  if (count < 0) return TD_NIL;
  m->count = 0;
  m->leaves = td_memory_new((size_t)(count + 1) * sizeof *m->leaves);
  if (!m->leaves) return td_raise_memory(I);
  td_value result = td_nest_each(I, v, leaf, m) ? td_nest_build(I, v, m->leaves, &next) : TD_NIL;
  for (int i = 0; i < m->count; i++) td_unref(m->leaves[i]);
  td_memory_free(m->leaves);
  return result;
}

// in_axes of argument i: an int, None, or a tuple with one of them for each argument.
static bool axis_of(td_interpreter *I, td_value axes, int i, int count, td_value *axis) {
  *axis = axes;
  if (td_is(axes, &td_tuple_type) || td_is(axes, &td_list_type)) {
    int64_t given = td_is(axes, &td_tuple_type) ? td_as_tuple(axes)->count : td_as_list(axes)->count;
    if (given != count) {
      td_raise(I, TD_CLASS_VALUE_ERROR, "vmap: in_axes has %lld entries for %d arguments", (long long)given, count);
      return false;
    }
    *axis = td_is(axes, &td_tuple_type) ? td_as_tuple(axes)->items[i] : td_as_list(axes)->items[i];
  }
  if (axis->tag == TD_TAG_INT || td_is_none(*axis)) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "vmap: in_axes must be an int, None or a tuple of them, not %s",
           td_type_name(I, *axis));
  return false;
}

static bool measure_all(td_interpreter *I, const td_tuple *arguments, td_value in_axes, mapping *m) {
  int count = (int)arguments->count;
  for (int i = 0; i < count; i++) {
    td_value axis;
    if (!axis_of(I, in_axes, i, count, &axis)) return false;
    if (td_is_none(axis)) continue;
    m->argument = i;
    m->axis = axis.i;
    if (!td_nest_each(I, arguments->items[i], measure, m)) return false;
  }
  if (m->size >= 0) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "vmap: no argument has an axis of examples");
  td_raise_hint(I, "at least one entry of in_axes must be an int");
  return false;
}

static td_value call_mapped(td_interpreter *I, td_value function, const td_tuple *arguments, td_value in_axes,
                            mapping *m) {
  int count = (int)arguments->count, ready = 0;
  td_value *values = td_memory_new((size_t)(count + 1) * sizeof *values), result = TD_NIL;
  if (!values) return td_raise_memory(I);
  for (bool ok = true; ready < count && ok; ready += ok) {
    td_value axis;
    ok = axis_of(I, in_axes, ready, count, &axis);
    if (!ok) break;
    m->argument = ready;
    if (!td_is_none(axis)) m->axis = axis.i;
    values[ready] =
        td_is_none(axis) ? td_ref(arguments->items[ready]) : rebuild(I, arguments->items[ready], add_example, m);
    ok = !td_is_nil(values[ready]);
  }
  if (ready == count) result = td_invoke(I, function, &(td_arguments){.count = count, .values = values});
  for (int i = 0; i < ready; i++) td_unref(values[i]);
  td_memory_free(values);
  return result;
}

static td_value builtin_vmap(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  mapping m = {.size = -1};
  if (arguments[3].tag != TD_TAG_INT)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "vmap: out_axes must be an int, not %s", td_type_name(I, arguments[3]));
  if (!measure_all(I, td_as_tuple(arguments[1]), arguments[2], &m)) return TD_NIL;
  if (td_batch_enter(I->context, m.size) != TD_OK) return td_raise_engine(I);
  td_value value = call_mapped(I, arguments[0], td_as_tuple(arguments[1]), arguments[2], &m), result = TD_NIL;
  m.axis = arguments[3].i;
  if (!td_is_nil(value)) result = rebuild(I, value, add_result, &m);
  td_unref(value);
  td_batch_leave(I->context);
  return result;
}

// Draws in f are made once, not for each example: what a layer is built with, inside of a vmap that calls it first.
static td_value builtin_drawn_once(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int ceiling = I->context->batch_ceiling;
  I->context->batch_ceiling = 0;
  td_value value = td_invoke(I, arguments[0], &(td_arguments){0});
  I->context->batch_ceiling = ceiling;
  return value;
}

const td_method td_vmap_builtins[] = {{"_vmap", "(function, arguments, in_axes, out_axes)", builtin_vmap,
                                       "What vmap rests on: one call for all examples."},
                                      {"_drawn_once", "(f)", builtin_drawn_once,
                                       "f(), whose draws are the same for all examples of a vmap around it."},
                                      {NULL, NULL, NULL, NULL}};
