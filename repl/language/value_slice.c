// slice, and what indices of all sequences have in common: negative ones count from the end, bounds of slices are
// clipped.
#include "repl/language/builtins.h"

td_value td_slice_new(td_interpreter *I, td_value start, td_value stop, td_value step) {
  td_slice *slice = td_object_new(I, &td_slice_type, sizeof *slice);
  if (!slice) return TD_NIL;
  slice->start = td_ref(start);
  slice->stop = td_ref(stop);
  slice->step = td_ref(step);
  return td_from(slice);
}

bool td_index_resolve(td_interpreter *I, td_value key, int64_t length, const char *what, int64_t *index) {
  bool ok = td_is_integer(key);
  if (ok) {
    *index = key.i;
  } else if (td_passes_on(key) || td_is(key, &td_instance_type)) { // a 0-d tensor; else the message below
    *index = td_to_int(I, key, &ok);
    if (!ok) td_clear_raised(I);
  }
  if (!ok) {
    bool text = !strcmp(what, "string");
    td_raise(I, TD_CLASS_TYPE_ERROR,
             text ? "%s indices must be integers, not '%s'" : "%s indices must be integers or slices, not %s", what,
             td_type_name(I, key));
    return false;
  }
  int64_t given = *index;
  if (given < 0) *index += length;
  if (*index >= 0 && *index < length) return true;
  td_raise(I, TD_CLASS_INDEX_ERROR, "%s index out of range", strcmp(what, "range") ? what : "range object");
  if (length == 0) td_raise_hint(I, "it is empty");
  else
    td_raise_hint(I, "index %lld, but the length is %lld: 0 to %lld, or -%lld to -1", (long long)given,
                  (long long)length, (long long)length - 1, (long long)length);
  return false;
}

static bool bound(td_interpreter *I, td_value v, int64_t fallback, int64_t *value) {
  bool ok = true;
  if (v.tag == TD_TAG_NONE || v.tag == TD_TAG_NIL) {
    *value = fallback;
    return true;
  }
  if (td_is_integer(v)) {
    *value = v.i;
    return true;
  }
  if (td_passes_on(v) || td_is(v, &td_instance_type)) {
    *value = td_to_int(I, v, &ok);
    if (ok) return true;
    td_clear_raised(I);
  }
  td_raise(I, TD_CLASS_TYPE_ERROR, "slice indices must be integers or None or have an __index__ method");
  return false;
}

static int64_t clip(int64_t i, int64_t length, int64_t low, int64_t high) {
  if (i < 0) i = i < -length ? low : i + length;
  return i < low ? low : i > high ? high : i;
}

bool td_slice_resolve(td_interpreter *I, td_value v, int64_t length, int64_t *start, int64_t *step, int64_t *count) {
  td_slice *slice = (td_slice *)v.o;
  if (!bound(I, slice->step, 1, step)) return false;
  if (*step == 0) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "slice step cannot be zero");
    return false;
  }
  if (*step < -INT64_MAX) *step = -INT64_MAX;
  bool forward = *step > 0;
  int64_t low = forward ? 0 : -1, high = forward ? length : length - 1, stop;
  if (!bound(I, slice->start, forward ? 0 : INT64_MAX, start) ||
      !bound(I, slice->stop, forward ? INT64_MAX : INT64_MIN, &stop))
    return false;
  *start = clip(*start, length, low, high);
  stop = clip(stop, length, low, high);
  *count = forward ? (stop > *start ? (stop - *start - 1) / *step + 1 : 0)
                   : (*start > stop ? (*start - stop - 1) / -*step + 1 : 0);
  return true;
}

bool td_slice_bounds(td_interpreter *I, td_value start, td_value stop, int64_t length, int64_t *first, int64_t *last) {
  if (!bound(I, start, 0, first) || !bound(I, stop, length, last)) return false;
  if (*first < 0) *first = *first < -length ? 0 : *first + length; // a first past the end stays there: nothing is found
  *last = clip(*last, length, 0, length);
  return true;
}

static void slice_release(td_object *object) {
  td_slice *slice = (td_slice *)object;
  td_value old[] = {slice->start, slice->stop, slice->step};
  slice->start = slice->stop = slice->step = TD_NONE;
  for (int i = 0; i < 3; i++) td_unref(old[i]);
}

static void slice_visit(td_object *object, td_visitor *visit, void *argument) {
  td_slice *slice = (td_slice *)object;
  if (slice->start.tag == TD_TAG_OBJECT) visit(slice->start.o, argument);
  if (slice->stop.tag == TD_TAG_OBJECT) visit(slice->stop.o, argument);
  if (slice->step.tag == TD_TAG_OBJECT) visit(slice->step.o, argument);
}

static bool slice_repr(td_interpreter *I, td_value v, td_text *text) {
  td_slice *slice = (td_slice *)v.o;
  if (td_recursion(I)) return false;
  td_text_add(text, "slice(");
  if (!td_repr(I, slice->start, text)) return false;
  td_text_add(text, ", ");
  if (!td_repr(I, slice->stop, text)) return false;
  td_text_add(text, ", ");
  if (!td_repr(I, slice->step, text)) return false;
  td_text_add_char(text, ')');
  return true;
}

static td_value slice_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  if (!td_is(a, &td_slice_type) || !td_is(b, &td_slice_type)) return TD_NOT_IMPLEMENTED;
  td_slice *x = (td_slice *)a.o, *y = (td_slice *)b.o;
  if (td_recursion(I)) return TD_NIL;
  td_value left = td_tuple_pack(I, 3, td_ref(x->start), td_ref(x->stop), td_ref(x->step));
  td_value right = td_tuple_pack(I, 3, td_ref(y->start), td_ref(y->stop), td_ref(y->step));
  td_value result = td_is_nil(left) || td_is_nil(right) ? TD_NIL : td_sequence_compare(I, comparison, left, right);
  td_unref(left);
  td_unref(right);
  return result;
}

static td_value slice_attribute(td_interpreter *I, td_value v, td_str *name) {
  (void)I;
  td_slice *slice = (td_slice *)v.o;
  if (!strcmp(name->data, "start")) return td_ref(slice->start);
  if (!strcmp(name->data, "stop")) return td_ref(slice->stop);
  if (!strcmp(name->data, "step")) return td_ref(slice->step);
  return TD_NIL;
}

static td_value slice_indices(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t length, start, step, count, stop;
  if (!td_index_value(I, arguments[0], &length)) return TD_NIL;
  if (length < 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "length should not be negative");
  if (!td_slice_resolve(I, self, length, &start, &step, &count)) return TD_NIL;
  td_value end = ((td_slice *)self.o)->stop;
  if (!bound(I, end, step > 0 ? INT64_MAX : INT64_MIN, &stop)) return TD_NIL;
  stop = clip(stop, length, step > 0 ? 0 : -1, step > 0 ? length : length - 1);
  return td_tuple_pack(I, 3, td_int(start), td_int(stop), td_int(step));
}

static const td_method methods[] = {
    {"indices", "(length, /)", slice_indices,
     "start, stop and step that this slice has for a sequence of that length.\n>>> slice(None, None, -1).indices(4)"},
    {NULL, NULL, NULL, NULL}};

const td_type td_slice_type = {
    .name = "slice",
    .size = sizeof(td_slice),
    .release = slice_release,
    .visit = slice_visit,
    .clear = slice_release,
    .repr = slice_repr,
    .attribute = slice_attribute,
    .compare = slice_compare,
    .methods = methods,
    .doc = "slice(start, stop, step=None): what x[start:stop:step] hands to x.\n>>> slice(1, 5)"};
