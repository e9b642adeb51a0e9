// x[key] and x[key] = value on tensors, by NumPy's rules. A key is resolved to a block (start, step and size along
// each axis), a shape for it (ints drop their axis, None adds one), and index tensors for the axes that have them;
// each part is an op, so that reading and assigning are recorded and differentiated like any other.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "engine/ops/index.h"
#include "engine/ops/select.h"
#include "repl/language/tensors.h"

enum item_kind { ITEM_INT, ITEM_SLICE, ITEM_NEW_AXIS, ITEM_ELLIPSIS, ITEM_TENSOR, ITEM_MASK };
enum { ITEMS_MAX = 2 * TD_RANK_MAX + 1 };

typedef struct item {
  enum item_kind kind;
  td_value value; // borrowed: the slice
  int64_t index; // INT
  td_tensor *tensor; // owned: TENSOR, MASK
} item;

typedef struct selection {
  td_interpreter *I;
  const td_tensor *x;
  item items[ITEMS_MAX];
  int count;
  td_arg block[3]; // starts, steps, sizes: x->rank numbers each
  bool whole; // the block is all of x
  int rank; // of the block's shape after ints and new axes
  int64_t shape[TD_RANK_MAX];
  bool reshaped; // it differs from the block's own
  int advanced; // index tensors, and the axes of shape that they index
  td_tensor *indices[TD_RANK_MAX]; // owned
  int axis_of[TD_RANK_MAX]; // of x, for messages; -1: a mask without axes
  td_arg axes;
} selection;

static void selection_clear(selection *s) {
  for (int i = 0; i < s->count; i++) td_tensor_unref(s->items[i].tensor);
  for (int i = 0; i < s->advanced; i++) td_tensor_unref(s->indices[i]);
}

// Raises an IndexError that shows x.
static bool fail(const selection *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(const selection *s, const char *format, ...) {
  char message[sizeof s->I->context->error.message];
  td_meta meta = td_tensor_meta(s->x);
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  td_error_set(s->I->context, TD_ERROR_INDEX, "%s", message);
  td_error_operand(s->I->context, "x", 0, &meta);
  td_raise_engine(s->I);
  return false;
}

// ---- reading a key ----

static bool read_tensor(selection *s, item *it, td_value v) {
  it->tensor = td_to_tensor(s->I, v, -1);
  if (!it->tensor) return false;
  if (it->tensor->size == 0 && td_dtype_is_float(it->tensor->dtype) && !td_is_tensor_like(v))
    it->tensor = td_cast_to(s->I, it->tensor, TD_INT64); // x[[]]
  if (!it->tensor) return false;
  if (td_dtype_is_float(it->tensor->dtype)) {
    td_raise(s->I, TD_CLASS_INDEX_ERROR, "an index tensor must hold integers or bools, not %s",
             td_dtype_name(it->tensor->dtype));
    td_raise_hint(s->I, "cast it: index.astype(int64)");
    return false;
  }
  it->kind = it->tensor->dtype == TD_BOOL ? ITEM_MASK : ITEM_TENSOR;
  bool batched = it->tensor->flags & TD_TENSOR_BATCHED;
  if (it->kind == ITEM_MASK && !td_tensor_readable(s->I, it->tensor, "an index of bools")) return false;
  if (it->kind == ITEM_TENSOR && it->tensor->rank == 0 && !batched) {
    it->kind = ITEM_INT;
    it->index = td_tensor_get_int(it->tensor, 0);
  }
  return true;
}

static bool read_item(selection *s, td_value v) {
  if (s->count == ITEMS_MAX) {
    td_raise(s->I, TD_CLASS_INDEX_ERROR, "more than %d indices", ITEMS_MAX);
    return false;
  }
  item *it = &s->items[s->count++];
  it->value = v;
  if (v.tag == TD_TAG_INT) {
    it->kind = ITEM_INT;
    it->index = v.i;
  } else if (td_is_none(v)) it->kind = ITEM_NEW_AXIS;
  else if (td_is(v, &td_slice_type)) it->kind = ITEM_SLICE;
  else if (td_is(v, &td_ellipsis_type)) it->kind = ITEM_ELLIPSIS;
  else if (td_is_tensor_like(v) || td_is(v, &td_list_type) || td_is(v, &td_range_type) || td_is(v, &td_tuple_type) ||
           v.tag == TD_TAG_BOOL)
    return read_tensor(s, it, v);
  else {
    td_raise(s->I, TD_CLASS_TYPE_ERROR, "a tensor can't be indexed by %s", td_type_name(s->I, v));
    td_raise_hint(s->I, "indices are ints, slices, None, ..., and tensors or lists of ints or bools");
    return false;
  }
  return true;
}

static int axes_used(const item *it) {
  if (it->kind == ITEM_NEW_AXIS || it->kind == ITEM_ELLIPSIS) return 0;
  return it->kind == ITEM_MASK ? it->tensor->rank : 1;
}

static bool read_key(selection *s, td_value key) {
  bool many = td_is(key, &td_tuple_type);
  int64_t count = many ? td_as_tuple(key)->count : 1;
  int used = 0, ellipses = 0;
  for (int64_t i = 0; i < count; i++)
    if (!read_item(s, many ? td_as_tuple(key)->items[i] : key)) return false;
  for (int i = 0; i < s->count; i++) {
    used += axes_used(&s->items[i]);
    ellipses += s->items[i].kind == ITEM_ELLIPSIS;
  }
  if (ellipses > 1) return fail(s, "an index can have only one ...");
  if (used > s->x->rank) return fail(s, "too many indices: %d for a tensor of rank %d", used, s->x->rank);
  return true;
}

// ---- resolving it against the shape ----

static void take_axis(selection *s, int axis, int64_t start, int64_t step, int64_t size) {
  s->block[0].ints[axis] = start;
  s->block[1].ints[axis] = step;
  s->block[2].ints[axis] = size;
  if (start != 0 || step != 1 || size != s->x->shape[axis]) s->whole = false;
}

static bool add_axis(selection *s, int64_t size) {
  if (s->rank == TD_RANK_MAX) return fail(s, "the result would have more than %d axes", TD_RANK_MAX);
  s->shape[s->rank++] = size;
  return true;
}

static bool keep_axis(selection *s, int axis) {
  take_axis(s, axis, 0, 1, s->x->shape[axis]);
  return add_axis(s, s->x->shape[axis]);
}

static bool add_index(selection *s, int axis, td_tensor *index) { // takes over index
  if (!index) return false;
  if (s->advanced == TD_RANK_MAX) {
    td_tensor_unref(index);
    return false;
  }
  s->axes.ints[s->advanced] = s->rank - 1;
  s->axis_of[s->advanced] = axis;
  s->indices[s->advanced++] = index;
  return true;
}

static bool check_mask(const selection *s, const td_tensor *mask, int axis) {
  for (int i = 0; i < mask->rank; i++)
    if (mask->shape[i] != s->x->shape[axis + i])
      return fail(s, "the mask has size %lld along its axis %d, the tensor %lld along its axis %d",
                  (long long)mask->shape[i], i, (long long)s->x->shape[axis + i], axis + i);
  return true;
}

// A mask without axes stands for a new axis, of which it takes the element or nothing.
static bool resolve_truth(selection *s, const td_tensor *mask) {
  int64_t count = td_tensor_get_int(mask, 0) != 0;
  return add_axis(s, 1) && add_index(s, -1, td_tensor_zeros(s->I->context, TD_INT64, 1, &count));
}

// A mask of rank r stands for r index tensors: the coordinates of its true elements.
static bool resolve_mask(selection *s, const item *it, int axis) {
  td_tensor *mask = it->tensor;
  if (!mask->rank) return resolve_truth(s, mask);
  if (!check_mask(s, mask, axis)) return false;
  td_tensor *flat = td_tensor_contiguous(s->I->context, mask);
  if (!flat) return false;
  int64_t count = td_mask_count((const uint8_t *)flat->data, flat->size), *places[TD_RANK_MAX];
  bool ok = true;
  for (int k = 0; k < mask->rank && ok; k++) {
    td_tensor *index = td_tensor_new(s->I->context, TD_INT64, 1, &count);
    places[k] = index ? (int64_t *)index->data : NULL;
    ok = index && keep_axis(s, axis + k);
    if (ok) ok = add_index(s, axis + k, index);
    else td_tensor_unref(index);
  }
  if (ok) td_mask_places((const uint8_t *)flat->data, flat->rank, flat->shape, places);
  td_tensor_unref(flat);
  return ok;
}

static bool resolve_int(selection *s, const item *it, int axis, bool advanced) {
  int64_t size = s->x->shape[axis], index = it->index < 0 ? it->index + size : it->index;
  if (index < 0 || index >= size)
    return fail(s, "index %lld is out of range for axis %d with size %lld", (long long)it->index, axis,
                (long long)size);
  if (!advanced) {
    take_axis(s, axis, index, 1, 1);
    return true;
  }
  return keep_axis(s, axis) && add_index(s, axis, td_tensor_from_int(s->I->context, index, TD_INT64));
}

static bool resolve_item(selection *s, const item *it, int axis, bool advanced) {
  int64_t start, step, size;
  switch (it->kind) {
  case ITEM_NEW_AXIS: return add_axis(s, 1);
  case ITEM_INT: return resolve_int(s, it, axis, advanced);
  case ITEM_SLICE:
    if (!td_slice_resolve(s->I, it->value, s->x->shape[axis], &start, &step, &size)) return false;
    take_axis(s, axis, size ? start : 0, size ? step : 1, size);
    return add_axis(s, size);
  case ITEM_TENSOR: return keep_axis(s, axis) && add_index(s, axis, td_tensor_ref(it->tensor));
  case ITEM_MASK: return resolve_mask(s, it, axis);
  default: return true;
  }
}

static bool resolve_ellipsis(selection *s, int used, int *axis) {
  for (int k = used; k < s->x->rank; k++)
    if (!keep_axis(s, (*axis)++)) return false;
  return true;
}

// An ellipsis between indices parts them, as in NumPy, also one of no axes: named out of order they are no neighbours.
static void part_indices(selection *s) {
  int last = s->advanced - 1;
  td_tensor *index = s->indices[0];
  int64_t place = s->axes.ints[0];
  int axis = s->axis_of[0];
  s->indices[0] = s->indices[last];
  s->axes.ints[0] = s->axes.ints[last];
  s->axis_of[0] = s->axis_of[last];
  s->indices[last] = index;
  s->axes.ints[last] = place;
  s->axis_of[last] = axis;
}

static bool resolve(selection *s) {
  int used = 0, axis = 0, before = -1; // index tensors before the ellipsis; -1: there is none
  bool advanced = false;
  for (int i = 0; i < s->count; i++) {
    used += axes_used(&s->items[i]);
    advanced |= s->items[i].kind == ITEM_TENSOR || s->items[i].kind == ITEM_MASK;
  }
  for (int i = 0; i < s->count; i++) {
    bool ellipsis = s->items[i].kind == ITEM_ELLIPSIS;
    if (ellipsis) before = s->advanced;
    if (!(ellipsis ? resolve_ellipsis(s, used, &axis) : resolve_item(s, &s->items[i], axis, advanced))) return false;
    axis += axes_used(&s->items[i]);
  }
  while (before < 0 && axis < s->x->rank)
    if (!keep_axis(s, axis++)) return false;
  if (before > 0 && before < s->advanced) part_indices(s);
  s->axes.given = 1;
  s->axes.count = s->advanced;
  s->reshaped = s->rank != s->x->rank;
  for (int i = 0; i < s->rank && !s->reshaped; i++) s->reshaped = s->shape[i] != s->block[2].ints[i];
  return true;
}

static bool select_key(td_interpreter *I, selection *s, const td_tensor *x, td_value key) {
  s->I = I;
  s->x = x;
  s->count = s->rank = s->advanced = 0;
  s->whole = true;
  memset(s->items, 0, sizeof s->items);
  for (int i = 0; i < 3; i++) {
    s->block[i].given = 1;
    s->block[i].count = x->rank;
  }
  if (read_key(s, key) && resolve(s)) return true;
  if (td_is_nil(I->raised)) td_raise_engine(I);
  return false;
}

// ---- ops ----

typedef struct index_ops {
  const td_op *slice, *update, *reshape, *broadcast, *index, *put, *select, *fill;
} index_ops;

static const index_ops *rows(void) {
  static index_ops ops;
  if (!ops.slice)
    ops = (index_ops){td_op_find("slice"),        td_op_find("index_update"), td_op_find("reshape"),
                      td_op_find("broadcast_to"), td_op_find("index"),        td_op_find("index_put"),
                      td_op_find("masked_select"), td_op_find("masked_fill")};
  return &ops;
}

// Applies an op and drops its first input: x = step(x). NULL: the engine's error is set.
static td_tensor *step(td_interpreter *I, const td_op *op, td_tensor *x, const td_arg *args) {
  td_tensor *out[TD_OUTPUT_MAX];
  int code = td_op_apply(I->context, op, &x, 1, args, out);
  td_tensor_unref(x);
  return code == TD_OK ? out[0] : NULL;
}

static td_tensor *reshape_to(td_interpreter *I, td_tensor *x, int rank, const int64_t *shape) {
  td_arg arg = {.given = 1, .count = rank};
  memcpy(arg.ints, shape, (size_t)rank * sizeof *shape);
  return step(I, rows()->reshape, x, &arg);
}

// The block as a tensor of the selection's shape; new reference.
static td_tensor *read_block(const selection *s, td_tensor *x) {
  td_tensor *t = td_tensor_ref(x);
  if (!s->whole) t = step(s->I, rows()->slice, t, s->block);
  if (t && s->reshaped) t = reshape_to(s->I, t, s->rank, s->shape);
  return t;
}

// The op counts axes of the block; the message is to name x's, and to show x.
static void name_bad_index(const selection *s) {
  for (int k = 0; k < s->advanced && !(s->indices[k]->flags & TD_TENSOR_BATCHED); k++) {
    int64_t size = s->axis_of[k] < 0 ? 1 : s->x->shape[s->axis_of[k]];
    for (int64_t i = 0; i < s->indices[k]->size; i++) {
      int64_t index = td_tensor_get_int(s->indices[k], i);
      if (index >= -size && index < size) continue;
      fail(s, "index %lld is out of range for axis %d with size %lld", (long long)index, s->axis_of[k],
           (long long)size);
      return;
    }
  }
  char text[sizeof s->I->context->error.message];
  snprintf(text, sizeof text, "%s", s->I->context->error.message);
  fail(s, "%s", text);
}

static td_tensor *read_indices(const selection *s, td_tensor *x) { // takes over x
  td_tensor *in[1 + TD_RANK_MAX] = {x}, *out[TD_OUTPUT_MAX];
  for (int i = 0; i < s->advanced; i++) in[1 + i] = s->indices[i];
  int code = td_op_apply(s->I->context, rows()->index, in, 1 + s->advanced, &s->axes, out);
  td_tensor_unref(x);
  if (code == TD_ERROR_INDEX) name_bad_index(s);
  return code == TD_OK ? out[0] : NULL;
}

// x[mask] and x[mask] = number for a mask of x's shape need no coordinates. The mask, borrowed; NULL: another key.
static td_tensor *whole_mask(const td_tensor *x, td_value key) {
  td_tensor *mask = td_is(key, &td_tensor_type) ? td_unbox_tensor(key) : NULL;
  bool whole =
      mask && mask->dtype == TD_BOOL && mask->rank && td_shape_equal(mask->rank, mask->shape, x->rank, x->shape);
  return whole ? mask : NULL;
}

static td_tensor *apply(td_interpreter *I, const td_op *op, td_tensor *const *in, int count) {
  td_tensor *out[TD_OUTPUT_MAX];
  return td_op_apply(I->context, op, in, count, NULL, out) == TD_OK ? out[0] : NULL;
}

td_value td_tensor_item(td_interpreter *I, td_value container, td_value key) {
  selection s;
  td_tensor *x = td_to_tensor(I, container, -1), *t = NULL;
  if (!x) return TD_NIL;
  td_tensor *mask = whole_mask(x, key);
  if (mask && mask->flags & TD_TENSOR_BATCHED) mask = NULL; // the examples' results would be of unlike shapes
  bool ok = mask || select_key(I, &s, x, key);
  if (mask) {
    td_tensor *in[] = {x, mask};
    t = apply(I, rows()->select, in, 2);
  } else {
    if (ok) t = read_block(&s, x);
    if (t && s.advanced) t = read_indices(&s, t);
    selection_clear(&s);
  }
  td_tensor_unref(x);
  return ok && td_is_nil(I->raised) ? td_tensor_box(I, t) : TD_NIL;
}

// ---- assigning ----

// value with the shape of the block itself (ints as axes of size 1), ready to replace it; takes over value.
static td_tensor *value_for_block(const selection *s, td_tensor *value) {
  if (!s->reshaped) return value;
  td_arg shape = {.given = 1, .count = s->rank};
  memcpy(shape.ints, s->shape, sizeof shape.ints);
  value = step(s->I, rows()->broadcast, value, &shape);
  return value ? reshape_to(s->I, value, s->x->rank, s->block[2].ints) : NULL;
}

static td_tensor *put_indices(const selection *s,
                              td_tensor *value) { // takes over value; the block with value put at the indices
  td_tensor *block = read_block(s, (td_tensor *)s->x), *out[TD_OUTPUT_MAX] = {NULL};
  td_tensor *in[2 + TD_RANK_MAX] = {block, value};
  for (int i = 0; i < s->advanced; i++) in[2 + i] = s->indices[i];
  int code = block ? td_op_apply(s->I->context, rows()->put, in, 2 + s->advanced, &s->axes, out) : TD_ERROR_MEMORY;
  if (code == TD_ERROR_INDEX) name_bad_index(s);
  td_tensor_unref(block);
  td_tensor_unref(value);
  return code == TD_OK ? out[0] : NULL;
}

static td_tensor *update_block(const selection *s, td_tensor *value) { // takes over value
  td_tensor *in[2] = {(td_tensor *)s->x, value}, *out[TD_OUTPUT_MAX];
  int code = td_op_apply(s->I->context, rows()->update, in, 2, s->block, out);
  td_tensor_unref(value);
  return code == TD_OK ? out[0] : NULL;
}

static bool may_change_in_place(const selection *s, td_value container, const td_tensor *value) {
  const td_tensor *x = td_unbox_tensor(container);
  unsigned flags = x->flags | value->flags; // batched tensors have no elements of their own
  for (int i = 0; i < s->advanced; i++) flags |= s->indices[i]->flags;
  return container.o->refs == 1 && td_tensor_is_sole(x) && !(flags & TD_TENSOR_BATCHED) &&
         !(td_recording(s->I->context) && value->origin) && value->storage != x->storage;
}

// NumPy lets a value have axes of size 1 in front of those that it fills.
static td_tensor *without_leading_ones(const selection *s, td_tensor *value) { // takes over value
  td_meta places = {.rank = (uint8_t)s->rank};
  if (s->advanced) { // the indexed axes give way to those of the indices together
    int64_t shape[TD_RANK_MAX] = {0}, before[TD_RANK_MAX];
    int rank = 0;
    for (int i = 0; i < s->advanced; i++) {
      memcpy(before, shape, sizeof before);
      if (!td_shape_broadcast(rank, before, s->indices[i]->rank, s->indices[i]->shape, &rank, shape, NULL))
        return value;
    }
    places.rank = (uint8_t)(s->rank - s->advanced + rank);
  }
  int drop = 0;
  while (value->rank - drop > places.rank && value->shape[drop] == 1) drop++;
  return drop ? reshape_to(s->I, value, value->rank - drop, value->shape + drop) : value;
}

// The ops name their own forms of the value and of x.
static void name_bad_value(const selection *s, const td_meta *value) {
  char text[sizeof s->I->context->error.message];
  td_meta x = td_tensor_meta(s->x);
  snprintf(text, sizeof text, "%s", s->I->context->error.message);
  static const char stretched[] = "broadcast_to: ";
  bool outer = strncmp(text, stretched, sizeof stretched - 1) == 0;
  td_error_set(s->I->context, TD_ERROR_SHAPE, "assignment: %s%s", outer ? "value of " : "",
               outer ? text + sizeof stretched - 1 : text);
  td_error_operand(s->I->context, "x", 0, &x);
  td_error_operand(s->I->context, "value", 1, value);
}

// The tensor after the assignment; NULL with *done: x itself was changed. Takes over value.
static td_tensor *assign(selection *s, td_value container, td_tensor *value, bool *done) {
  td_interpreter *I = s->I;
  td_tensor *x = td_unbox_tensor(container);
  value = without_leading_ones(s, value);
  if (!value) return NULL;
  bool in_place = may_change_in_place(s, container, value);
  if (s->advanced && in_place) {
    td_tensor *block = read_block(s, x);
    int code =
        block ? td_index_put_in_place(I->context, block, value, s->indices, s->advanced, &s->axes) : TD_ERROR_MEMORY;
    *done = code == TD_OK;
    if (code == TD_ERROR_INDEX) name_bad_index(s);
    td_tensor_unref(block);
    td_tensor_unref(value);
    return NULL;
  }
  if (s->advanced) value = put_indices(s, value);
  if (!value || (s->advanced && !s->reshaped && s->whole)) return value;
  value = value_for_block(s, value);
  if (!value || !in_place) return value ? update_block(s, value) : NULL;
  *done = td_index_update_in_place(I->context, x, value, s->block[0].ints, s->block[1].ints, s->block[2].ints) == TD_OK;
  td_tensor_unref(value);
  return NULL;
}

// The same for a number in all places of a mask of x's shape; NULL: the key or the value is another one.
static td_tensor *fill_mask(td_interpreter *I, td_tensor *x, td_value key, td_tensor *value) {
  td_tensor *mask = whole_mask(x, key);
  if (!mask || value->rank || value->dtype != x->dtype) return NULL;
  td_tensor *in[] = {x, mask, value};
  return apply(I, rows()->fill, in, 3);
}

static td_tensor *written_integers(td_interpreter *I, td_tensor *t, uint8_t dtype) { // takes over t
  t = td_cast_to(I, t, dtype);
  if (t) return t;
  td_raise_renamed(I, "cast", "assignment");
  td_raise_hint(I, "cast the tensor to a float dtype first, x.astype(float32)");
  return NULL;
}

td_value td_tensor_with_item(td_interpreter *I, td_value container, td_value key, td_value value, td_value *kept) {
  selection s;
  td_tensor *x = td_unbox_tensor(container), *t = td_to_tensor(I, value, x->dtype), *updated = NULL;
  bool done = false;
  s.count = s.advanced = 0;
  if (!t) td_raise_within(I, "assignment: ");
  if (t && td_dtype_category(x->dtype) == 1 && td_dtype_is_float(t->dtype)) t = written_integers(I, t, x->dtype);
  if (t) updated = fill_mask(I, x, key, t);
  if (t && !updated && select_key(I, &s, x, key)) {
    td_meta meta = td_tensor_meta(t);
    updated = assign(&s, container, t, &done);
    t = NULL;
    if (!done && !updated && I->context->error.code == TD_ERROR_SHAPE && td_is_nil(I->raised))
      name_bad_value(&s, &meta);
    if (!done && !updated && td_is_nil(I->raised)) td_raise_engine(I);
  }
  selection_clear(&s);
  td_tensor_unref(t);
  if (done) return container;
  if (!updated) {
    *kept = container;
    return TD_NIL;
  }
  if (x->origin) td_tape_note_cut(I->context, TD_CUT_OVERWRITTEN, x, NULL);
  td_value result = td_tensor_box(I, updated);
  if (td_is_nil(result)) *kept = container;
  else td_unref(container);
  return result;
}
