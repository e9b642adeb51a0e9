// Making and dropping tensors, and reading their elements. A tensor and the storage that it brings along are one block,
// with the elements inside where they are few; more of them lie in a block of their own, aligned for vectors. The block
// lives as long as the storage, which views may hold. Sizes are checked before anything is allocated.
#include "engine/tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/map.h"
#include "engine/base/memory.h"

typedef struct block {
  td_tensor tensor;
  td_storage storage;
  _Alignas(16) char inside[];
} block;

enum { INSIDE_MAX = 512 - sizeof(block) };

// ---- storage ----

static void storage_destroy(td_storage *s) {
  block *whole = (block *)s->first;
  if (s->release) s->release(s);
  else if (!whole || s->data != whole->inside) td_memory_free(s->data);
  td_memory_free(whole ? (void *)whole : s);
}

void td_storage_unref(td_storage *s) {
  if (!s) return;
  if (atomic_load_explicit(&s->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
    storage_destroy(s);
}

// ---- tensors ----

static void set_strides(td_tensor *t) { // contiguous, row-major
  int64_t stride = 1;
  for (int i = t->rank; i-- > 0;) {
    t->strides[i] = stride;
    if (t->shape[i] > 1) stride *= t->shape[i];
  }
}

static void head_start(const td_context *context, td_tensor *t, uint8_t dtype, int rank, const int64_t *shape,
                       int64_t size) {
  atomic_init(&t->refs, 1); // field by field: clearing the struct at once takes longer than all the rest
  t->dtype = dtype;
  t->rank = (uint8_t)rank;
  t->flags = t->output = 0;
  t->size = size;
  t->origin = NULL;
  t->place = context->place;
  memset(t->shape, 0, sizeof t->shape);
  memset(t->strides, 0, sizeof t->strides);
  for (int i = 0; i < rank; i++) t->shape[i] = shape[i];
}

static td_tensor *head_new(td_context *context, uint8_t dtype, int rank, const int64_t *shape, int64_t size) {
  td_tensor *t = td_memory_new(sizeof *t);
  if (t) head_start(context, t, dtype, rank, shape, size);
  else td_error_memory(context, "tensor", (int64_t)sizeof *t);
  return t;
}

static void refuse_size(td_context *context, uint8_t dtype, int rank, const int64_t *shape, int64_t size) {
  char name[256];
  int length = snprintf(name, sizeof name, "tensor %s[", td_dtype_name(dtype));
  double bytes = td_dtype_bytes(dtype);
  for (int i = 0; i < rank; i++) {
    length += snprintf(name + length, sizeof name - (size_t)length, i ? ", %lld" : "%lld", (long long)shape[i]);
    bytes *= (double)shape[i];
  }
  snprintf(name + length, sizeof name - (size_t)length, "]");
  if (size >= 0) td_error_memory(context, name, size * td_dtype_bytes(dtype));
  else td_error_set(context, TD_ERROR_MEMORY, "%s: no memory for %.4g bytes", name, bytes);
}

static bool check_shape(td_context *context, uint8_t dtype, int rank, const int64_t *shape, int64_t *size) {
  if (rank < 0 || rank > TD_RANK_MAX) {
    td_error_set(context, TD_ERROR_VALUE, "tensor: rank %d is more than the %d that tensors can have", rank,
                 TD_RANK_MAX);
    return false;
  }
  *size = td_shape_size(rank, shape);
  if (*size >= 0) return true;
  for (int i = 0; i < rank; i++)
    if (shape[i] < 0) {
      td_error_set(context, TD_ERROR_VALUE, "tensor: size of axis %d is negative: %lld", i, (long long)shape[i]);
      return false;
    }
  refuse_size(context, dtype, rank, shape, -1);
  return false;
}

static block *block_new(int64_t bytes, bool zero) {
  bool inside = bytes <= INSIDE_MAX;
  block *b = td_memory_new(sizeof *b + (inside ? (size_t)bytes : 0));
  if (!b) return NULL;
  td_storage *s = &b->storage;
  atomic_init(&s->refs, 1);
  s->bytes = bytes;
  s->release = NULL;
  s->owner = NULL;
  s->first = &b->tensor;
  if (inside) {
    s->data = b->inside;
    if (zero) memset(s->data, 0, (size_t)bytes);
    return b;
  }
  td_map_relax((size_t)bytes);
  s->data = zero ? td_memory_new_zero((size_t)bytes) : td_memory_new((size_t)bytes);
  if (s->data) return b;
  td_memory_free(b);
  return NULL;
}

static td_tensor *tensor_new(td_context *context, uint8_t dtype, int rank, const int64_t *shape, bool zero) {
  int64_t size;
  if (!check_shape(context, dtype, rank, shape, &size)) return NULL;
  block *b = block_new(size * td_dtype_bytes(dtype), zero);
  if (!b) {
    refuse_size(context, dtype, rank, shape, size);
    return NULL;
  }
  td_tensor *t = &b->tensor;
  head_start(context, t, dtype, rank, shape, size);
  t->storage = &b->storage;
  t->data = b->storage.data;
  set_strides(t);
  return t;
}

td_tensor *td_tensor_new(td_context *context, uint8_t dtype, int rank, const int64_t *shape) {
  return tensor_new(context, dtype, rank, shape, false);
}

td_tensor *td_tensor_zeros(td_context *context, uint8_t dtype, int rank, const int64_t *shape) {
  return tensor_new(context, dtype, rank, shape, true);
}

td_tensor *td_tensor_view(td_context *context, td_tensor *base, int rank, const int64_t *shape, const int64_t *strides,
                          int64_t offset) {
  int64_t size;
  if (!check_shape(context, base->dtype, rank, shape, &size)) return NULL;
  td_tensor *t = head_new(context, base->dtype, rank, shape, size);
  if (!t) return NULL;
  for (int i = 0; i < rank; i++) t->strides[i] = strides[i];
  t->flags = base->flags;
  t->storage = base->storage;
  atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
  t->data = base->data + offset * td_dtype_bytes(base->dtype);
  return t;
}

td_tensor *td_tensor_alias(td_context *context, td_tensor *base) {
  return td_tensor_view(context, base, base->rank, base->shape, base->strides, 0);
}

td_tensor *td_tensor_wrap(td_context *context, uint8_t dtype, int rank, const int64_t *shape, td_storage *storage,
                          char *data) {
  int64_t size;
  td_tensor *t = NULL;
  if (check_shape(context, dtype, rank, shape, &size)) t = head_new(context, dtype, rank, shape, size);
  if (!t) {
    td_storage_unref(storage);
    return NULL;
  }
  t->storage = storage;
  t->data = data;
  set_strides(t);
  return t;
}

td_tensor *td_tensor_contiguous(td_context *context, td_tensor *base) {
  if (td_tensor_is_contiguous(base)) return td_tensor_ref(base);
  td_tensor *t = td_tensor_new(context, base->dtype, base->rank, base->shape);
  if (!t) return NULL;
  t->flags = base->flags;
  td_elements_copy(context->pool, t->data, base->data, td_dtype_bytes(base->dtype), base->rank, base->shape,
                   base->strides);
  return t;
}

void td_tensor_destroy(td_tensor *t) {
  bool alone = t->storage->first != t; // else it goes with its storage
  td_origin_unref(t->origin);
  td_storage_unref(t->storage);
  if (alone) td_memory_free(t);
}

bool td_tensor_is_contiguous(const td_tensor *t) {
  int64_t stride = 1;
  if (t->size <= 1) return true;
  for (int i = t->rank; i-- > 0;) {
    if (t->shape[i] == 1) continue;
    if (t->strides[i] != stride) return false;
    stride *= t->shape[i];
  }
  return true;
}

bool td_tensor_is_sole(const td_tensor *t) {
  return !t->origin && !t->storage->release && atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
         atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1;
}

td_meta td_tensor_meta(const td_tensor *t) {
  td_meta meta = {.dtype = t->dtype, .rank = t->rank};
  memcpy(meta.shape, t->shape, sizeof meta.shape);
  return meta;
}

// ---- elements ----

int64_t td_tensor_offset(const td_tensor *t, int64_t index) {
  int64_t offset = 0;
  for (int i = t->rank; i-- > 0;) {
    int64_t size = t->shape[i];
    if (size < 2) continue;
    offset += index % size * t->strides[i];
    index /= size;
  }
  return offset;
}

static int64_t int_from_float(double value) { // truncates; NaN and what int64 can't hold: the smallest int64, as NumPy
  return fabs(value) < 9223372036854775808.0 ? (int64_t)value : INT64_MIN;
}

// The float next to value that keeps its last bit set when inexact, so that rounding it once more rounds value right.
static float float_to_odd(double value) {
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  if ((double)narrow == value || isnan(value) || (bits & 1)) return narrow;
  return nextafterf(narrow, value > (double)narrow ? INFINITY : -INFINITY);
}

double td_tensor_get_float(const td_tensor *t, int64_t index) {
  if (t->flags & TD_TENSOR_BATCHED) return NAN;
  const char *element = t->data + td_tensor_offset(t, index) * td_dtype_bytes(t->dtype);
  switch ((enum td_dtype)t->dtype) {
  case TD_BOOL: return *(const uint8_t *)element != 0;
  case TD_UINT8: return *(const uint8_t *)element;
  case TD_INT32: return *(const int32_t *)element;
  case TD_INT64: return (double)*(const int64_t *)element;
  case TD_FLOAT16: return td_half_to_float(*(const uint16_t *)element);
  case TD_BFLOAT16: return td_bfloat_to_float(*(const uint16_t *)element);
  case TD_FLOAT32: return *(const float *)element;
  case TD_FLOAT64: return *(const double *)element;
  case TD_DTYPE_COUNT: break;
  }
  return 0;
}

int64_t td_tensor_get_int(const td_tensor *t, int64_t index) {
  if (t->dtype == TD_INT64 && !(t->flags & TD_TENSOR_BATCHED))
    return ((const int64_t *)t->data)[td_tensor_offset(t, index)];
  return int_from_float(td_tensor_get_float(t, index)); // narrower integers are exact in a double
}

static td_tensor *scalar_new(td_context *context, uint8_t dtype) { return tensor_new(context, dtype, 0, NULL, false); }

td_tensor *td_tensor_from_int(td_context *context, int64_t value, uint8_t dtype) {
  td_tensor *t = scalar_new(context, dtype);
  if (!t) return NULL;
  switch ((enum td_dtype)dtype) {
  case TD_BOOL: *(uint8_t *)t->data = value != 0; break;
  case TD_UINT8: *(uint8_t *)t->data = (uint8_t)value; break;
  case TD_INT32: *(int32_t *)t->data = (int32_t)(uint32_t)value; break;
  case TD_INT64: *(int64_t *)t->data = value; break;
  case TD_FLOAT16: *(uint16_t *)t->data = td_half_from_float(float_to_odd((double)value)); break;
  case TD_BFLOAT16: *(uint16_t *)t->data = td_bfloat_from_float(float_to_odd((double)value)); break;
  case TD_FLOAT32: *(float *)t->data = (float)value; break;
  case TD_FLOAT64: *(double *)t->data = (double)value; break;
  case TD_DTYPE_COUNT: break;
  }
  return t;
}

td_tensor *td_tensor_from_float(td_context *context, double value, uint8_t dtype) {
  if (dtype == TD_BOOL) return td_tensor_from_int(context, value != 0, dtype);
  if (!td_dtype_is_float(dtype)) return td_tensor_from_int(context, int_from_float(value), dtype);
  td_tensor *t = scalar_new(context, dtype);
  if (!t) return NULL;
  if (dtype == TD_FLOAT64) *(double *)t->data = value;
  else if (dtype == TD_FLOAT32) *(float *)t->data = (float)value;
  else if (dtype == TD_FLOAT16) *(uint16_t *)t->data = td_half_from_float(float_to_odd(value));
  else *(uint16_t *)t->data = td_bfloat_from_float(float_to_odd(value));
  return t;
}
