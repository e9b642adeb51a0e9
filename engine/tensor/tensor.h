// Tensors are values: once made, nobody sees one change. A tensor is a view (shape, strides) of counted storage.
// References are counted atomically, so a tensor without origin may be handed to another thread. Strides count elements
// and may be 0 or negative. Rank is 0 to TD_RANK_MAX, sizes may be 0.
#ifndef TD_TENSOR_TENSOR_H
#define TD_TENSOR_TENSOR_H
#include <string.h>
#include "engine/base/context.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"

typedef struct td_storage {
  atomic_uint refs;
  int64_t bytes;
  char *data;
  void (*release)(struct td_storage *); // frees foreign data (a memory map); NULL: data is td_memory's
  void *owner;
  struct td_tensor *first;              // tensor in whose block it lies, which goes with it; NULL: a block of its own
} td_storage;

// Where a tensor came from: the head of a tape record. engine/tape extends it; this floor only counts it. Records
// belong to the thread of their context and are counted without locks: a recorded tensor stays on that thread.
typedef struct td_origin {
  unsigned refs;
  uint64_t tapes;                       // bit s: the open tape in slot s tracks this value
  void (*release)(struct td_origin *);  // called at 0 references
} td_origin;

enum td_tensor_flag {
  TD_TENSOR_FROM_VARIABLE = 1,          // computed from a Variable outside of any tape (for tape.why)
  TD_TENSOR_BATCHED = 2,                // differs from example to example of a vmap: data is NULL (engine/ops/batch.h)
};

typedef struct td_tensor {
  atomic_uint refs;
  uint8_t dtype, rank;
  uint8_t flags;
  uint8_t output;                       // which output of its origin's op this is
  int64_t size;                         // number of elements
  char *data;                           // first element
  td_storage *storage;
  td_origin *origin;                    // NULL: not recorded
  td_place place;                       // source place that made it
  int64_t shape[TD_RANK_MAX];
  int64_t strides[TD_RANK_MAX];
} td_tensor;

typedef struct td_meta { // a tensor without its elements
  uint8_t dtype, rank;
  int64_t shape[TD_RANK_MAX];
} td_meta;

// All of these return a new reference owned by the caller, or NULL with the context's error set.
// uninitialised, contiguous
td_tensor *td_tensor_new(td_context *context, uint8_t dtype, int rank, const int64_t *shape);
td_tensor *td_tensor_zeros(td_context *context, uint8_t dtype, int rank, const int64_t *shape);
td_tensor *td_tensor_view(td_context *context, td_tensor *base, int rank, const int64_t *shape, const int64_t *strides,
                          int64_t offset);                        // offset in elements from base->data; shares storage
td_tensor *td_tensor_alias(td_context *context, td_tensor *base); // same view, no origin
// base itself when it is contiguous already; no origin is added
td_tensor *td_tensor_contiguous(td_context *context, td_tensor *base);
// 0-d; wraps or rounds into dtype
td_tensor *td_tensor_from_int(td_context *context, int64_t value, uint8_t dtype);
td_tensor *td_tensor_from_float(td_context *context, double value, uint8_t dtype);     // 0-d
td_tensor *td_tensor_wrap(td_context *context, uint8_t dtype, int rank, const int64_t *shape, td_storage *storage,
                          // contiguous view of foreign storage; takes over one reference on storage, also on failure
                          char *data);
// Copies the sizes or strides of rank axes between arrays of TD_RANK_MAX. What is behind rank is not to be read: four
// go at once, since that takes less than a loop, and few tensors have more.
static inline void td_axes_copy(int64_t *to, const int64_t *from, int rank) {
  enum { AT_ONCE = 4 };
  memcpy(to, from, AT_ONCE * sizeof *to);
  if (rank > AT_ONCE) memcpy(to + AT_ONCE, from + AT_ONCE, (TD_RANK_MAX - AT_ONCE) * sizeof *to);
}
// Copies strided elements of bytes each (1, 2, 4 or 8) into out, which is contiguous and apart from data. pool may be
// NULL.
void td_elements_copy(td_pool *pool, char *out, const char *data, int bytes, int rank, const int64_t *shape,
                      const int64_t *strides);

static inline td_tensor *td_tensor_ref(td_tensor *t) {
  if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}
void td_tensor_destroy(td_tensor *t);
static inline void td_tensor_unref(td_tensor *t) {
  if (!t) return;
  if (atomic_load_explicit(&t->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
    td_tensor_destroy(t);
}
static inline td_origin *td_origin_ref(td_origin *o) {
  if (o) o->refs++;
  return o;
}
static inline void td_origin_unref(td_origin *o) {
  if (o && --o->refs == 0) o->release(o);
}
void td_storage_unref(td_storage *s);

bool td_tensor_is_contiguous(const td_tensor *t);
// one reference on the tensor and on its storage, no origin, not batched: may be reused
bool td_tensor_is_sole(const td_tensor *t);
td_meta td_tensor_meta(const td_tensor *t);
double td_tensor_get_float(const td_tensor *t, int64_t index); // element by row-major index, as a double; batched: NaN
int64_t td_tensor_get_int(const td_tensor *t, int64_t index);  // element by row-major index; floats are truncated
int64_t td_tensor_offset(const td_tensor *t, int64_t index);   // offset in elements from data of a row-major index

int64_t td_shape_size(int rank, const int64_t *shape);         // product; -1 when it overflows int64 bytes
bool td_shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b);
// NumPy's broadcasting of two shapes; false: they don't fit (axis is the clashing axis of the result).
bool td_shape_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank, int64_t *shape,
                        int *axis);
void td_shape_print(td_text *text, int rank, const int64_t *shape);      // "[2, 3]"
void td_meta_print(td_text *text, uint8_t dtype, int rank, const int64_t *shape); // "float32[2, 3]"
// adds a row to the error
void td_error_operand(td_context *context, const char *name, int argument, const td_meta *meta);

// NumPy's array text: aligned columns, 4 to 8 digits, summarised with ... above threshold elements (NumPy: 1000).
// lead is the text already on the first line ("tensor("): later lines are indented by its width.
void td_tensor_print(const td_tensor *t, td_text *text, int64_t threshold, const char *lead);
void td_tensor_print_element(const td_tensor *t, int64_t index, td_text *text); // one element, shortest round-trip
#endif
