// x[key] and x[key] = value on tensors, by NumPy's rules. A key is resolved to a block (start, step and size along
// each axis), a shape for it (ints drop their axis, None adds one), and index tensors for the axes that have them;
// each part is an op, so that reading and assigning are recorded and differentiated like any other.
#include <string.h>
#include "engine/ops/index.h"
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
  td_arg axes;
} selection;

static void selection_clear(selection *s) {
  for (int i = 0; i < s->count; i++) td_tensor_unref(s->items[i].tensor);
  for (int i = 0; i < s->advanced; i++) td_tensor_unref(s->indices[i]);
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
  else if (td_is_tensor_like(v) || td_is(v, &td_list_type) || td_is(v, &td_range_type)) return read_tensor(s, it, v);
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
  if (ellipses > 1) td_raise(s->I, TD_CLASS_INDEX_ERROR, "an index can have only one ...");
  else if (used > s->x->rank)
    td_raise(s->I, TD_CLASS_INDEX_ERROR, "too many indices: %d for a tensor of rank %d", used, s->x->rank);
  return ellipses <= 1 && used <= s->x->rank;
}

// ---- resolving it against the shape ----

static void take_axis(selection *s, int axis, int64_t start, int64_t step, int64_t size) {
  s->block[0].ints[axis] = start;
  s->block[1].ints[axis] = step;
  s->block[2].ints[axis] = size;
  if (start != 0 || step != 1 || size != s->x->shape[axis]) s->whole = false;
}

static bool add_axis(selection *s, int64_t size) {
  if (s->rank == TD_RANK_MAX) {
    td_raise(s->I, TD_CLASS_INDEX_ERROR, "the result would have more than %d axes", TD_RANK_MAX);
    return false;
  }
  s->shape[s->rank++] = size;
  return true;
}

static bool keep_axis(selection *s, int axis) {
  take_axis(s, axis, 0, 1, s->x->shape[axis]);
  return add_axis(s, s->x->shape[axis]);
}

static bool add_index(selection *s, td_tensor *index) { // takes over index
  if (!index) return false;
  if (s->advanced == TD_RANK_MAX) {
    td_tensor_unref(index);
    return false;
  }
  s->axes.ints[s->advanced] = s->rank - 1;
  s->indices[s->advanced++] = index;
  return true;
}

// A mask of rank r stands for r index tensors: the coordinates of its true elements.
static bool resolve_mask(selection *s, const item *it, int axis) {
  const td_tensor *mask = it->tensor;
  for (int i = 0; i < mask->rank; i++)
    if (mask->shape[i] != s->x->shape[axis + i]) {
      td_raise(s->I, TD_CLASS_INDEX_ERROR,
               "the mask has size %lld along its axis %d, the tensor %lld along its axis %d", (long long)mask->shape[i],
               i, (long long)s->x->shape[axis + i], axis + i);
      return false;
    }
  int64_t count = 0;
  for (int64_t i = 0; i < mask->size; i++) count += td_tensor_get_int(mask, i) != 0;
  td_tensor *index[TD_RANK_MAX];
  for (int k = 0; k < mask->rank; k++) {
    index[k] = td_tensor_new(s->I->context, TD_INT64, 1, &count);
    if (!keep_axis(s, axis + k) || !add_index(s, index[k])) {
      if (td_is_nil(s->I->raised)) td_raise_engine(s->I);
      return false;
    }
  }
  int64_t at = 0;
  for (int64_t i = 0; i < mask->size; i++) {
    if (!td_tensor_get_int(mask, i)) continue;
    int64_t rest = i;
    for (int k = mask->rank - 1; k >= 0; k--) {
      ((int64_t *)index[k]->data)[at] = rest % mask->shape[k];
      rest /= mask->shape[k];
    }
    at++;
  }
  return true;
}

static bool resolve_int(selection *s, const item *it, int axis, bool advanced) {
  int64_t size = s->x->shape[axis], index = it->index < 0 ? it->index + size : it->index;
  if (index < 0 || index >= size) {
    td_raise(s->I, TD_CLASS_INDEX_ERROR, "index %lld is out of range for axis %d with size %lld", (long long)it->index,
             axis, (long long)size);
    return false;
  }
  if (!advanced) {
    take_axis(s, axis, index, 1, 1);
    return true;
  }
  return keep_axis(s, axis) && add_index(s, td_tensor_from_int(s->I->context, index, TD_INT64));
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
  case ITEM_TENSOR: return keep_axis(s, axis) && add_index(s, td_tensor_ref(it->tensor));
  case ITEM_MASK: return resolve_mask(s, it, axis);
  default: return true;
  }
}

static bool resolve(selection *s) {
  int used = 0, axis = 0;
  bool advanced = false, ellipsis = false;
  for (int i = 0; i < s->count; i++) {
    used += axes_used(&s->items[i]);
    advanced |= s->items[i].kind == ITEM_TENSOR || s->items[i].kind == ITEM_MASK;
  }
  for (int i = 0; i < s->count; i++) {
    if (s->items[i].kind == ITEM_ELLIPSIS) {
      ellipsis = true;
      for (int k = used; k < s->x->rank; k++)
        if (!keep_axis(s, axis++)) return false;
      continue;
    }
    if (!resolve_item(s, &s->items[i], axis, advanced)) return false;
    axis += axes_used(&s->items[i]);
  }
  while (!ellipsis && axis < s->x->rank)
    if (!keep_axis(s, axis++)) return false;
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
  const td_op *slice, *update, *reshape, *broadcast, *index, *put;
} index_ops;

static const index_ops *rows(void) {
  static index_ops ops;
  if (!ops.slice)
    ops = (index_ops){td_op_find("slice"),        td_op_find("index_update"), td_op_find("reshape"),
                      td_op_find("broadcast_to"), td_op_find("index"),        td_op_find("index_put")};
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

static td_tensor *read_indices(const selection *s, td_tensor *x) { // takes over x
  td_tensor *in[1 + TD_RANK_MAX] = {x}, *out[TD_OUTPUT_MAX];
  for (int i = 0; i < s->advanced; i++) in[1 + i] = s->indices[i];
  int code = td_op_apply(s->I->context, rows()->index, in, 1 + s->advanced, &s->axes, out);
  td_tensor_unref(x);
  return code == TD_OK ? out[0] : NULL;
}

td_value td_tensor_item(td_interpreter *I, td_value container, td_value key) {
  selection s;
  td_tensor *x = td_to_tensor(I, container, -1), *t = NULL;
  if (!x) return TD_NIL;
  bool ok = select_key(I, &s, x, key);
  if (ok) t = read_block(&s, x);
  if (t && s.advanced) t = read_indices(&s, t);
  selection_clear(&s);
  td_tensor_unref(x);
  return ok ? td_tensor_box(I, t) : TD_NIL;
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

static bool may_change_in_place(td_interpreter *I, td_value container, const td_tensor *value) {
  return container.o->refs == 1 && td_tensor_is_sole(td_unbox_tensor(container)) &&
         !(td_recording(I->context) && value->origin) && value->storage != td_unbox_tensor(container)->storage;
}

td_value td_tensor_with_item(td_interpreter *I, td_value container, td_value key, td_value value, td_value *kept) {
  selection s;
  td_tensor *x = td_unbox_tensor(container), *t = td_to_tensor(I, value, x->dtype), *updated = NULL;
  bool done = false;
  s.count = s.advanced = 0;
  if (t && select_key(I, &s, x, key)) {
    if (s.advanced) t = put_indices(&s, t);
    if (t && (!s.advanced || s.reshaped || !s.whole)) {
      t = value_for_block(&s, t);
      if (t && may_change_in_place(I, container, t)) {
        done = td_index_update_in_place(I->context, x, t, s.block[0].ints, s.block[1].ints, s.block[2].ints) == TD_OK;
        td_tensor_unref(t);
      } else if (t) updated = update_block(&s, t);
    } else updated = t;
    t = NULL;
    if (!done && !updated) td_raise_engine(I);
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
