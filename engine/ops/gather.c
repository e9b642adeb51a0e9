// Reading and writing at positions that index tensors name: the walk behind x[i, j], its adjoint and x[i, j] = v.
//  1. Offsets of the indexed axes are computed once for each index; other axes are walked by their strides, joined
//     first where they lie behind each other.
//  2. Adding is in the order of the indices for every element, on any number of threads: chunks own elements of x.
#include "engine/ops/gather.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/device/cpu/clones.h"

// ---- plans ----

static bool are_neighbours(const td_gather_plan *plan) { // in ascending order of x's axes
  for (int i = 1; i < plan->count; i++)
    if (plan->axes[i] != plan->axes[i - 1] + 1) return false;
  return true;
}

static void plan_rest(td_gather_plan *plan, int rank) {
  bool indexed[TD_RANK_MAX] = {false}, neighbours = are_neighbours(plan);
  plan->pre_count = plan->post_count = 0;
  for (int i = 0; i < plan->count; i++) indexed[plan->axes[i]] = true;
  for (int i = 0; i < rank; i++) {
    if (indexed[i]) continue;
    if (neighbours && plan->count && i < plan->axes[0]) plan->pre[plan->pre_count++] = i;
    else plan->post[plan->post_count++] = i;
  }
}

int td_gather_plan_make(td_infer *infer, const td_meta *x, int first, const td_arg *axes, td_gather_plan *plan) {
  bool seen[TD_RANK_MAX] = {false};
  *plan = (td_gather_plan){.count = infer->in_count - first};
  if (plan->count != axes->count || plan->count > x->rank || !plan->count)
    return td_infer_fail(infer, TD_ERROR_INDEX, "%d index tensors for %d axes of a tensor of rank %d", plan->count,
                         axes->count, x->rank);
  for (int i = 0; i < plan->count; i++) {
    const td_meta *index = &infer->in[first + i];
    int code = td_infer_axis(infer, axes->ints[i], x->rank, &plan->axes[i]), clash;
    if (code) return code;
    if (seen[plan->axes[i]]) return td_infer_fail(infer, TD_ERROR_INDEX, "axis %d is indexed twice", plan->axes[i]);
    seen[plan->axes[i]] = true;
    if (td_dtype_category(index->dtype) != 1) {
      code = td_infer_fail(infer, TD_ERROR_DTYPE, "indices must be integers, not %s", td_dtype_name(index->dtype));
      if (td_dtype_is_float(index->dtype)) td_error_hint(infer->context, "cast them: index.astype(int64)");
      return code;
    }
    int64_t shape[TD_RANK_MAX];
    memcpy(shape, plan->index_shape, sizeof shape);
    if (!td_shape_broadcast(plan->index_rank, shape, index->rank, index->shape, &plan->index_rank, plan->index_shape,
                            &clash))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "shapes of the index tensors don't broadcast: axis %d", clash);
  }
  plan_rest(plan, x->rank);
  if (plan->pre_count + plan->index_rank + plan->post_count > TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is more than the %d that tensors can have",
                         plan->pre_count + plan->index_rank + plan->post_count, TD_RANK_MAX);
  return TD_OK;
}

void td_gather_plan_of(const td_call *call, int rank, int first, const td_arg *axes, td_gather_plan *plan) {
  int64_t shape[TD_RANK_MAX];
  *plan = (td_gather_plan){.count = call->in_count - first};
  for (int i = 0; i < plan->count; i++) {
    const td_view *index = &call->in[first + i];
    plan->axes[i] = (int)(axes->ints[i] < 0 ? axes->ints[i] + rank : axes->ints[i]);
    memcpy(shape, plan->index_shape, sizeof shape);
    td_shape_broadcast(plan->index_rank, shape, index->rank, index->shape, &plan->index_rank, plan->index_shape, NULL);
  }
  plan_rest(plan, rank);
}

void td_gather_shape(const td_gather_plan *plan, const td_meta *x, uint8_t dtype, td_meta *out) {
  int rank = 0;
  for (int i = 0; i < plan->pre_count; i++) out->shape[rank++] = x->shape[plan->pre[i]];
  for (int i = 0; i < plan->index_rank; i++) out->shape[rank++] = plan->index_shape[i];
  for (int i = 0; i < plan->post_count; i++) out->shape[rank++] = x->shape[plan->post[i]];
  out->rank = (uint8_t)rank;
  out->dtype = dtype;
}

// ---- walks ----

int td_index_fail(const td_call *call, int64_t index, int axis, int64_t size) {
  return td_error_set(call->context, TD_ERROR_INDEX, "index %lld is out of range for axis %d with size %lld",
                      (long long)index, axis, (long long)size);
}

static int add_offsets(const td_call *call, const td_view *view, int axis, const td_view *x, td_gather_walk *w,
                       int rank, const int64_t *shape) {
  td_view spread;
  td_flat flat;
  td_view_broadcast(&spread, view, rank, shape);
  int code = td_flat_open(call, &spread, TD_INT64, &flat);
  if (code) return code;
  const int64_t *index = (const int64_t *)flat.data;
  int64_t size = x->shape[axis];
  for (int64_t i = 0; i < w->index_count && !code; i++) {
    int64_t at = index[i] < 0 ? index[i] + size : index[i];
    if (at < 0 || at >= size) code = td_index_fail(call, index[i], axis, size);
    else w->offsets[i] += at * x->strides[axis];
  }
  td_flat_close(&flat);
  return code;
}

static int64_t join_axes(const td_view *x, const int *axes, int count, int *rank, int64_t *shape, int64_t *strides) {
  int64_t size = 1;
  *rank = 0;
  for (int i = 0; i < count; i++) {
    int64_t length = x->shape[axes[i]], stride = x->strides[axes[i]];
    size *= length;
    if (length == 1) continue;
    if (*rank && strides[*rank - 1] == stride * length) {
      shape[*rank - 1] *= length;
      strides[*rank - 1] = stride;
    } else {
      shape[*rank] = length;
      strides[(*rank)++] = stride;
    }
  }
  return size;
}

int td_gather_open(const td_call *call, const td_view *x, int first, const td_arg *axes, td_gather_walk *walk) {
  td_gather_plan plan;
  td_gather_plan_of(call, x->rank, first, axes, &plan);
  *walk = (td_gather_walk){.bytes = td_dtype_bytes(x->dtype),
                           .index_count = td_shape_size(plan.index_rank, plan.index_shape)};
  walk->pre_size = join_axes(x, plan.pre, plan.pre_count, &walk->pre_rank, walk->pre_shape, walk->pre_strides);
  walk->post_size = join_axes(x, plan.post, plan.post_count, &walk->post_rank, walk->post_shape, walk->post_strides);
  walk->offsets = td_memory_new_zero((size_t)walk->index_count * sizeof *walk->offsets);
  if (!walk->offsets)
    return td_error_memory(call->context, call->op->name, walk->index_count * (int64_t)sizeof *walk->offsets);
  int code = TD_OK;
  for (int i = 0; i < plan.count && !code; i++)
    code = add_offsets(call, &call->in[first + i], plan.axes[i], x, walk, plan.index_rank, plan.index_shape);
  if (code) td_gather_close(walk);
  return code;
}

void td_gather_close(td_gather_walk *walk) {
  td_memory_free(walk->offsets);
  walk->offsets = NULL;
}

static int64_t offset_of(int64_t at, int rank, const int64_t *shape, const int64_t *strides) {
  int64_t offset = 0;
  for (int i = rank; i-- > 0;) {
    offset += at % shape[i] * strides[i];
    at /= shape[i];
  }
  return offset;
}

// ---- reading and writing: a run is the elements of one index, post_size of them ----

static bool run_is_dense(const td_gather_walk *w) {
  return w->post_rank == 0 || (w->post_rank == 1 && w->post_strides[0] == 1);
}

// Calls COPY(offset of the element in x, place in the run) for a run's elements.
#define EACH_IN_RUN(w, base, COPY)                                                                              \
  do {                                                                                                          \
    int last_axis = (w)->post_rank - 1;                                                                         \
    int64_t length = last_axis < 0 ? 1 : (w)->post_shape[last_axis],                                            \
            step = last_axis < 0 ? 0 : (w)->post_strides[last_axis];                                            \
    for (int64_t done = 0; done < (w)->post_size; done += length) {                                             \
      int64_t row =                                                                                             \
          (base) + offset_of(done / length, last_axis < 0 ? 0 : last_axis, (w)->post_shape, (w)->post_strides); \
      for (int64_t i = 0; i < length; i++) COPY(row + i * step, done + i);                                      \
    }                                                                                                           \
  } while (0)

#define COPY_RUN(type)                         \
  do {                                         \
    type *in_x = (type *)x;                    \
    type *in_run = (type *)run;                \
    if (reads) EACH_IN_RUN(w, base, READ_ONE); \
    else EACH_IN_RUN(w, base, WRITE_ONE);      \
  } while (0)
#define READ_ONE(from, to) in_run[to] = in_x[from]
#define WRITE_ONE(to, from) in_x[to] = in_run[from]

static void move_run(const td_gather_walk *w, int64_t base, char *x, char *run, bool reads) {
  size_t bytes = (size_t)w->bytes;
  if (run_is_dense(w)) {
    char *at = x + base * w->bytes;
    if (reads) memcpy(run, at, (size_t)w->post_size * bytes);
    else memcpy(at, run, (size_t)w->post_size * bytes);
  } else if (bytes == 1) COPY_RUN(uint8_t);
  else if (bytes == 2) COPY_RUN(uint16_t);
  else if (bytes == 4) COPY_RUN(uint32_t);
  else COPY_RUN(uint64_t);
}

static int64_t run_base(const td_gather_walk *w, int64_t run) { // runs: pre x indices
  return w->offsets[run % w->index_count] + offset_of(run / w->index_count, w->pre_rank, w->pre_shape, w->pre_strides);
}

typedef struct reading {
  const td_gather_walk *walk;
  char *out, *x;
} reading;

static void read_runs(void *argument, int64_t first, int64_t last) {
  const reading *r = argument;
  for (int64_t run = first; run < last; run++)
    move_run(r->walk, run_base(r->walk, run), r->x, r->out + run * r->walk->post_size * r->walk->bytes, true);
}

void td_gather_read(td_pool *pool, const td_gather_walk *walk, char *out, const char *x) {
  reading r = {walk, out, (char *)x};
  if (walk->post_size) td_ranges_run(pool, walk->pre_size * walk->index_count, walk->post_size, read_runs, &r);
}

void td_gather_write(const td_gather_walk *walk, char *x, const char *values) {
  int64_t runs = walk->post_size ? walk->pre_size * walk->index_count : 0;
  for (int64_t run = 0; run < runs; run++)
    move_run(walk, run_base(walk, run), x, (char *)values + run * walk->post_size * walk->bytes, false);
}

// ---- adding ----

enum { COLUMNS = 256 }; // elements of a run that one chunk adds

typedef struct adding {
  const td_gather_walk *walk;
  uint8_t dtype;
  char *x;
  const char *values;
} adding;

#define ADD(type, name)                                                                            \
  TD_CLONES static void add_dense_##name(char *x, const char *values, int64_t count) {             \
    type *restrict to = (type *)x;                                                                 \
    const type *restrict from = (const type *)values;                                              \
    for (int64_t i = 0; i < count; i++) to[i] += from[i];                                          \
  }                                                                                                \
  static void add_run_##name(const td_gather_walk *w, int64_t base, char *x, const char *values) { \
    type *to = (type *)x;                                                                          \
    const type *from = (const type *)values;                                                       \
    EACH_IN_RUN(w, base, ADD_ONE);                                                                 \
  }
#define ADD_ONE(at, from_at) to[at] += from[from_at]
ADD(float, float)
ADD(double, double)
ADD(uint32_t, int32)
ADD(uint64_t, int64)
ADD(uint8_t, uint8)

static void add_dense(uint8_t dtype, char *x, const char *values, int64_t count) {
  switch (dtype) {
  case TD_FLOAT32: add_dense_float(x, values, count); break;
  case TD_FLOAT64: add_dense_double(x, values, count); break;
  case TD_INT32: add_dense_int32(x, values, count); break;
  case TD_INT64: add_dense_int64(x, values, count); break;
  default: add_dense_uint8(x, values, count);
  }
}

static void add_run(uint8_t dtype, const td_gather_walk *w, int64_t base, char *x, const char *values) {
  switch (dtype) {
  case TD_FLOAT32: add_run_float(w, base, x, values); break;
  case TD_FLOAT64: add_run_double(w, base, x, values); break;
  case TD_INT32: add_run_int32(w, base, x, values); break;
  case TD_INT64: add_run_int64(w, base, x, values); break;
  default: add_run_uint8(w, base, x, values);
  }
}

static void add_columns(void *argument, int64_t chunk) {
  const adding *a = argument;
  const td_gather_walk *w = a->walk;
  int64_t first = chunk * COLUMNS, count = w->post_size - first < COLUMNS ? w->post_size - first : COLUMNS;
  for (int64_t run = 0; run < w->pre_size * w->index_count; run++)
    add_dense(a->dtype, a->x + (run_base(w, run) + first) * w->bytes,
              a->values + (run * w->post_size + first) * w->bytes, count);
}

void td_gather_add(td_pool *pool, const td_gather_walk *walk, uint8_t dtype, char *x, const char *values) {
  if (!walk->post_size) return;
  if (run_is_dense(walk)) {
    adding a = {walk, dtype, x, values};
    td_pool_run(pool, (walk->post_size + COLUMNS - 1) / COLUMNS, add_columns, &a);
    return;
  }
  for (int64_t run = 0; run < walk->pre_size * walk->index_count; run++)
    add_run(dtype, walk, run_base(walk, run), x, values + run * walk->post_size * walk->bytes);
}
