// What datasets do many times an element: the order of a buffered shuffle, elements made into a batch, and pages of a
// mapped file that were read given back.
#include <stdio.h>
#include <sys/mman.h>

#include "engine/base/random.h"
#include "repl/language/builtins.h"
#include "repl/language/tensors.h"

// ---- shuffling ----

// The number-th draw of key, in [0, count).
static int64_t draw(uint64_t key, int64_t number, int64_t count) {
  uint32_t bits[4];
  td_random_block(key, (uint64_t)number, UINT64_C(0x73687566666c65), bits);
  uint64_t all = (uint64_t)bits[1] << 32 | bits[0];
  return (int64_t)((unsigned __int128)all * (uint64_t)count >> 64);
}

static td_value builtin_draw(td_interpreter *I, td_value self, td_value *arguments) { // key, number, count
  (void)self;
  int64_t key, number, count;
  if (!td_index_value(I, arguments[0], &key) || !td_index_value(I, arguments[1], &number) ||
      !td_index_value(I, arguments[2], &count))
    return TD_NIL;
  return td_int(draw((uint64_t)key, number, count));
}

static const td_tensor *indices_argument(td_interpreter *I, td_value v) { // int64 [n], contiguous
  const td_tensor *t = td_tensor_of(v);
  if (t && t->dtype == TD_INT64 && t->rank == 1 && (t->size < 2 || t->strides[0] == 1)) return t;
  td_raise(I, TD_CLASS_TYPE_ERROR, "shuffle: indices must be an int64 vector");
  return NULL;
}

// Each index that comes in takes the place of a drawn one of held, which goes out; at the end (drain) the rest goes out
// in drawn order.
static void shuffle_run(int64_t *held, int64_t count, const td_tensor *in, int64_t *out, uint64_t key, int64_t number) {
  const int64_t *coming = (const int64_t *)in->data;
  for (int64_t i = 0; i < in->size; i++) {
    int64_t at = draw(key, number + i, count);
    out[i] = held[at];
    held[at] = coming[i];
  }
}

static void shuffle_drain(int64_t *held, int64_t count, int64_t *out, uint64_t key, int64_t number) {
  for (int64_t i = 0; count > 0; i++, count--) {
    int64_t at = draw(key, number + i, count);
    out[i] = held[at];
    held[at] = held[count - 1];
  }
}

// held, incoming, key, number
static td_value builtin_shuffle_indices(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t key, number;
  bool drains = td_is_none(arguments[1]);
  const td_tensor *held = indices_argument(I, arguments[0]),
                  *in = held && !drains ? indices_argument(I, arguments[1]) : held;
  if (!in || !td_index_value(I, arguments[2], &key) || !td_index_value(I, arguments[3], &number)) return TD_NIL;
  td_tensor *out = td_tensor_new(I->context, TD_INT64, 1, &in->size);
  td_tensor *kept = out ? td_tensor_new(I->context, TD_INT64, 1, &held->size) : NULL;
  if (!kept) {
    td_tensor_unref(out);
    return td_raise_engine(I);
  }
  memcpy(kept->data, held->data, (size_t)held->size * sizeof(int64_t));
  if (drains) shuffle_drain((int64_t *)kept->data, held->size, (int64_t *)out->data, (uint64_t)key, number);
  else shuffle_run((int64_t *)kept->data, held->size, in, (int64_t *)out->data, (uint64_t)key, number);
  td_value first = td_tensor_box(I, out), second = td_is_nil(first) ? TD_NIL : td_tensor_box(I, kept);
  if (!td_is_nil(second)) return td_tuple_pack(I, 2, first, second);
  if (td_is_nil(first)) td_tensor_unref(kept);
  td_unref(first);
  return TD_NIL;
}

// ---- elements made into a batch ----

typedef struct batch {
  const td_list *elements;
  int depth;
  int path[8]; // which part of the element
  td_value keys[8];
  bool pads;
  td_value fill;
} batch;

// The part of element i that path names; borrowed; NIL: it is built otherwise than the first one.
static td_value part_of(const batch *b, int64_t i) {
  td_value v = b->elements->items[i];
  for (int d = 0; d < b->depth; d++) {
    if (td_is_nil(b->keys[d])) {
      if (!td_is(v, &td_tuple_type) || b->path[d] >= td_as_tuple(v)->count) return TD_NIL;
      v = td_as_tuple(v)->items[b->path[d]];
    } else {
      v = td_is(v, &td_dict_type) ? td_dict_get_str(td_as_dict(v), td_as_str(b->keys[d])) : TD_NIL;
      if (td_is_nil(v)) return v;
    }
  }
  return v;
}

static void path_print(const batch *b, td_text *text) {
  for (int d = 0; d < b->depth; d++) {
    if (td_is_nil(b->keys[d])) td_text_print(text, "[%d]", b->path[d]);
    else td_text_print(text, "[\"%s\"]", td_as_str(b->keys[d])->data);
  }
}

static td_value refuse_part(td_interpreter *I, const batch *b, int64_t i, const char *what) {
  td_text text = {0};
  path_print(b, &text);
  td_raise(I, TD_CLASS_VALUE_ERROR, "batch: element %lld%s %s", (long long)i, text.data ? text.data : "", what);
  td_text_clear(&text);
  return TD_NIL;
}

static td_value refuse_shape(td_interpreter *I, const batch *b, int64_t i, const td_tensor *first, const td_tensor *t) {
  td_text text = {0};
  td_text_add(&text, "has shape ");
  td_shape_print(&text, t->rank, t->shape);
  td_text_add(&text, ", element 0 ");
  td_shape_print(&text, first->rank, first->shape);
  refuse_part(I, b, i, text.data ? text.data : "");
  if (first->rank == t->rank) td_raise_hint(I, "padded_batch(n) fills the shorter ones up");
  td_text_clear(&text);
  return TD_NIL;
}

static td_tensor **tensors_of(td_interpreter *I, const batch *b) { // one a part; NULL: exception
  int64_t count = b->elements->count, done = 0;
  td_tensor **tensors = td_memory_new_zero((size_t)count * sizeof *tensors);
  if (!tensors) return td_raise_memory(I), NULL;
  for (; done < count; done++) {
    td_value part = part_of(b, done);
    if (td_is_nil(part)) refuse_part(I, b, done, "is built otherwise than element 0");
    else tensors[done] = td_to_tensor(I, part, done ? tensors[0]->dtype : -1);
    if (!tensors[done]) break;
  }
  if (done == count) return tensors;
  while (done-- > 0) td_tensor_unref(tensors[done]);
  td_memory_free(tensors);
  return NULL;
}

static void tensors_drop(td_tensor **tensors, int64_t count) {
  for (int64_t i = 0; i < count; i++) td_tensor_unref(tensors[i]);
  td_memory_free(tensors);
}

// The shape of one element in the batch: that of all, or with padding the largest along each axis.
static bool common_shape(td_interpreter *I, const batch *b, td_tensor **tensors, int64_t shape[TD_RANK_MAX]) {
  const td_tensor *first = tensors[0];
  memcpy(shape, first->shape, sizeof first->shape);
  for (int64_t i = 0; i < b->elements->count; i++) {
    const td_tensor *t = tensors[i];
    if (t->dtype != first->dtype) {
      char what[80];
      snprintf(what, sizeof what, "is %s, element 0 %s", td_dtype_name(t->dtype), td_dtype_name(first->dtype));
      return refuse_part(I, b, i, what), false;
    }
    bool fits = t->rank == first->rank && (b->pads || td_shape_equal(t->rank, t->shape, first->rank, first->shape));
    if (!fits) return refuse_shape(I, b, i, first, t), false;
    for (int axis = 0; axis < t->rank; axis++)
      if (t->shape[axis] > shape[axis]) shape[axis] = t->shape[axis];
  }
  if (first->rank < TD_RANK_MAX) return true;
  return td_raise(I, TD_CLASS_VALUE_ERROR, "batch: elements of rank %d have no room for a batch axis", first->rank),
         false;
}

// Writes t into the corner of a block of shape, row by row.
static void copy_padded(char *to, const td_tensor *t, const int64_t *shape, int axis, const char *from) {
  int64_t bytes = td_dtype_bytes(t->dtype), step = bytes;
  for (int later = axis + 1; later < t->rank; later++) step *= shape[later];
  if (axis >= t->rank - 1) {
    memcpy(to, from, (size_t)((t->rank ? t->shape[axis] : 1) * bytes));
    return;
  }
  for (int64_t i = 0; i < t->shape[axis]; i++)
    copy_padded(to + i * step, t, shape, axis + 1, from + i * t->strides[axis] * bytes);
}

static td_value fill_of(const batch *b) { // for the part that path names: one for all, or a nest like the elements
  td_value fill = b->fill;
  for (int d = 0; d < b->depth && !td_is_nil(fill); d++) {
    if (td_is(fill, &td_tuple_type))
      fill = b->path[d] < td_as_tuple(fill)->count ? td_as_tuple(fill)->items[b->path[d]] : TD_NIL;
    else if (td_is(fill, &td_dict_type) && !td_is_nil(b->keys[d]))
      fill = td_dict_get_str(td_as_dict(fill), td_as_str(b->keys[d]));
  }
  return td_is_none(fill) ? td_int(0) : fill;
}

static bool fill_all(td_interpreter *I, const batch *b, td_tensor *out) {
  td_value fill = fill_of(b);
  if (td_is_nil(fill)) return refuse_part(I, b, 0, "has no padding value: padding_values is built otherwise"), false;
  td_tensor *number = td_to_tensor_of(I, fill, out->dtype);
  if (!number) return false;
  int64_t bytes = td_dtype_bytes(out->dtype);
  for (int64_t i = 0; i < out->size; i++) memcpy(out->data + i * bytes, number->data, (size_t)bytes);
  td_tensor_unref(number);
  return true;
}

static bool write_all(td_interpreter *I, const batch *b, td_tensor **tensors, td_tensor *out) {
  int64_t count = b->elements->count, step = count ? out->size / count * td_dtype_bytes(out->dtype) : 0;
  if (b->pads && !fill_all(I, b, out)) return false;
  for (int64_t i = 0; i < count; i++) {
    td_tensor *t = tensors[i];
    if (!b->pads) {
      td_elements_copy(NULL, out->data + i * step, t->data, td_dtype_bytes(t->dtype), t->rank, t->shape, t->strides);
      continue;
    }
    td_tensor *flat = td_tensor_contiguous(I->context, t);
    if (!flat) return td_raise_engine(I), false;
    if (flat->size) copy_padded(out->data + i * step, flat, out->shape + 1, 0, flat->data);
    td_tensor_unref(flat);
  }
  return true;
}

static td_value batch_tensors(td_interpreter *I, const batch *b) {
  td_tensor **tensors = tensors_of(I, b);
  if (!tensors) return TD_NIL;
  int64_t count = b->elements->count, shape[TD_RANK_MAX + 1] = {count};
  td_value result = TD_NIL;
  if (common_shape(I, b, tensors, shape + 1)) {
    td_tensor *out = td_tensor_new(I->context, tensors[0]->dtype, tensors[0]->rank + 1, shape);
    if (!out) td_raise_engine(I);
    else if (write_all(I, b, tensors, out)) result = td_tensor_box(I, out);
    else td_tensor_unref(out);
  }
  tensors_drop(tensors, count);
  return result;
}

static td_value batch_parts(td_interpreter *I, batch *b);

// All elements have a tuple, or a dict, of as many parts at the path.
static bool parts_agree(td_interpreter *I, const batch *b) {
  td_value first = part_of(b, 0);
  for (int64_t i = 1; i < b->elements->count; i++) {
    td_value part = part_of(b, i);
    bool agrees =
        !td_is_nil(part) && td_type_of(part) == td_type_of(first) && td_length(I, part) == td_length(I, first);
    if (!agrees) return refuse_part(I, b, i, "is built otherwise than element 0"), false;
  }
  return true;
}

static td_value batch_tuple(td_interpreter *I, batch *b, const td_tuple *first) {
  td_tuple *parts = td_tuple_new(I, first->count);
  if (!parts) return TD_NIL;
  bool ok = true;
  b->keys[b->depth++] = TD_NIL;
  for (int64_t k = 0; ok && k < first->count; k++) {
    b->path[b->depth - 1] = (int)k;
    parts->items[k] = batch_parts(I, b);
    ok = !td_is_nil(parts->items[k]);
  }
  b->depth--;
  if (ok) return td_from(parts);
  td_unref(td_from(parts));
  return TD_NIL;
}

static td_value batch_dict(td_interpreter *I, batch *b, td_dict *first) {
  td_dict *parts = td_dict_new(I);
  int64_t position = 0;
  td_value key, unused;
  bool ok = parts != NULL;
  b->depth++;
  while (ok && td_dict_next(first, &position, &key, &unused)) {
    if (!td_is(key, &td_str_type)) {
      td_raise(I, TD_CLASS_TYPE_ERROR, "batch: the keys of a dict must be texts");
      ok = false;
      break;
    }
    b->keys[b->depth - 1] = key;
    td_value part = batch_parts(I, b);
    ok = !td_is_nil(part) && td_dict_set(I, parts, key, part);
    td_unref(part);
  }
  b->depth--;
  if (ok) return td_from(parts);
  td_unref(td_from(parts));
  return TD_NIL;
}

static td_value batch_texts(td_interpreter *I, const batch *b) { // there is no tensor of texts: a list
  td_list *texts = td_list_new(I, b->elements->count);
  for (int64_t i = 0; texts && i < b->elements->count; i++) {
    td_value part = part_of(b, i);
    if (td_is_nil(part)) refuse_part(I, b, i, "is built otherwise than element 0");
    if (!td_is_nil(part) && td_list_append(I, texts, part)) continue;
    td_unref(td_from(texts));
    return TD_NIL;
  }
  return td_from(texts);
}

static td_value batch_parts(td_interpreter *I, batch *b) {
  td_value first = part_of(b, 0);
  bool nests = td_is(first, &td_tuple_type) || td_is(first, &td_dict_type);
  if (nests && !parts_agree(I, b)) return TD_NIL;
  if (nests && b->depth == 8) return td_raise(I, TD_CLASS_VALUE_ERROR, "batch: elements nest deeper than 8");
  if (td_is(first, &td_tuple_type)) return batch_tuple(I, b, td_as_tuple(first));
  if (td_is(first, &td_dict_type)) return batch_dict(I, b, td_as_dict(first));
  return td_is(first, &td_str_type) ? batch_texts(I, b) : batch_tensors(I, b);
}

static td_value builtin_batch_of(td_interpreter *I, td_value self, td_value *arguments) { // elements, fill
  (void)self;
  if (!td_is(arguments[0], &td_list_type) || td_as_list(arguments[0])->count == 0)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "batch: needs a list of elements");
  batch b = {.elements = td_as_list(arguments[0]), .pads = !td_is_none(arguments[1]), .fill = arguments[1]};
  return batch_parts(I, &b);
}

// ---- mapped files ----

// of a mapped tensor; others have none
static td_value builtin_forget_pages(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)self;
  const td_tensor *t = td_tensor_of(arguments[0]);
  if (t && t->storage->release) madvise(t->storage->data, (size_t)t->storage->bytes, MADV_DONTNEED);
  return td_bool(t && t->storage->release);
}

// Reading one page may map the two megabytes around it (Linux maps a large folio whole), so a batch of rows from all
// over a file would hold all of the file: pages are given back every few rows.
enum { AROUND_BYTES = 2 << 20, GATHER_BYTES = 24 << 20 };

static bool has_rows(const td_tensor *t) { // whose parts along the first axis are contiguous
  int64_t step = 1;
  for (int axis = t->rank - 1; axis >= 0; axis--) {
    if (t->strides[axis] != step) return false;
    step *= t->shape[axis];
  }
  return t->rank > 0;
}

static bool gather_mapped(const td_tensor *t, const td_tensor *indices, char *out, int64_t bytes) {
  const int64_t *index = (const int64_t *)indices->data;
  int64_t mapped = 0;
  for (int64_t i = 0; i < indices->size; i++, mapped += bytes + AROUND_BYTES) {
    if (index[i] < 0 || index[i] >= t->shape[0]) return false;
    if (mapped > GATHER_BYTES) madvise(t->storage->data, (size_t)t->storage->bytes, MADV_DONTNEED), mapped = 0;
    memcpy(out + i * bytes, t->data + index[i] * bytes, (size_t)bytes);
  }
  madvise(t->storage->data, (size_t)t->storage->bytes, MADV_DONTNEED);
  return true;
}

static td_value builtin_mapped_rows(td_interpreter *I, td_value self, td_value *arguments) { // x, indices
  (void)self;
  td_tensor *t = td_tensor_of(arguments[0]);
  const td_tensor *indices = indices_argument(I, arguments[1]);
  if (!indices) return TD_NIL;
  if (!t || !t->storage->release || !has_rows(t)) return TD_NONE;
  int64_t shape[TD_RANK_MAX], bytes = td_dtype_bytes(t->dtype) * (t->shape[0] ? t->size / t->shape[0] : 0);
  memcpy(shape, t->shape, sizeof shape);
  shape[0] = indices->size;
  td_context *context = I->context;
  td_tensor *out = td_tensor_new(context, t->dtype, t->rank, shape);
  if (!out) return td_raise_engine(I);
  td_context_leave(context); // the arguments hold both
  bool ok = gather_mapped(t, indices, out->data, bytes);
  td_context_enter(context);
  if (ok) return td_tensor_box(I, out);
  td_tensor_unref(out);
  return td_raise(I, TD_CLASS_INDEX_ERROR, "rows: an index is outside 0 to %lld", (long long)t->shape[0] - 1);
}

const td_method td_dataset_builtins[] = {
    {"_draw", "(key, number, count)", builtin_draw, "The number-th of the key's draws, an int in [0, count)."},
    {"_shuffle_indices", "(held, incoming, key, number)", builtin_shuffle_indices,
     "What goes out of a shuffle's buffer, and what it holds then. incoming None: all goes out."},
    {"_batch_of", "(elements, fill=None)", builtin_batch_of,
     "Elements, each a tensor, a number, a text or a tuple or dict of them, stacked; fill: shorter ones are padded "
     "with it."},
    {"_mapped_rows", "(x, indices)", builtin_mapped_rows,
     "Rows of a mapped tensor, copied without keeping its pages; None: x is in memory."},
    {"_forget_pages", "(x)", builtin_forget_pages,
     "Gives the memory of a mapped file's tensor back, to be read again when needed; False: x is in memory."},
    {NULL, NULL, NULL, NULL}};
