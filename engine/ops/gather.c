// Places that index tensors name, for reading: the plan of x[i, j] and the offsets of its elements.
//  1. Offsets of the indexed axes are computed once for each index; other axes are walked by their strides, joined
//     first where they lie behind each other.
//  2. Indices are read and checked in chunks on the pool; of several bad ones the first is named.
#include "engine/ops/gather.h"

#include <string.h>

#include "engine/ops/map.h"

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

int td_index_dtype(td_infer *infer, const td_meta *index) {
  if (td_dtype_category(index->dtype) == 1) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_DTYPE, "indices must be integers, not %s", td_dtype_name(index->dtype));
  if (td_dtype_is_float(index->dtype)) td_error_hint(infer->context, "cast them: index.astype(int64)");
  return code;
}

static int broadcast_fail(td_infer *infer, int first) {
  td_text text = {0};
  for (int i = first; i < infer->in_count; i++) {
    td_text_add(&text, i == first ? "" : i + 1 < infer->in_count ? ", " : " and ");
    td_shape_print(&text, infer->in[i].rank, infer->in[i].shape);
  }
  int code = td_infer_fail(infer, TD_ERROR_INDEX, "shapes of the index tensors don't broadcast: %s",
                           text.data ? text.data : "");
  td_text_clear(&text);
  return code;
}

int td_gather_plan_make(td_infer *infer, const td_meta *x, int first, const td_arg *axes, td_gather_plan *plan) {
  bool seen[TD_RANK_MAX] = {false};
  *plan = (td_gather_plan){.count = infer->in_count - first};
  if (plan->count != axes->count || plan->count > x->rank || plan->count < 1)
    return td_infer_fail(infer, TD_ERROR_INDEX, "%d index tensors for %d axes of a tensor of rank %d",
                         plan->count < 0 ? 0 : plan->count, axes->count, x->rank);
  for (int i = 0; i < plan->count; i++) {
    const td_meta *index = &infer->in[first + i];
    int code = td_infer_axis(infer, axes->ints[i], x->rank, &plan->axes[i]);
    if (code) return code;
    if (seen[plan->axes[i]]) return td_infer_fail(infer, TD_ERROR_INDEX, "axis %d is indexed twice", plan->axes[i]);
    seen[plan->axes[i]] = true;
    code = td_index_dtype(infer, index);
    if (code) return code;
    int64_t shape[TD_RANK_MAX];
    memcpy(shape, plan->index_shape, sizeof shape);
    if (!td_shape_broadcast(plan->index_rank, shape, index->rank, index->shape, &plan->index_rank, plan->index_shape,
                            NULL))
      return broadcast_fail(infer, first);
  }
  plan_rest(plan, x->rank);
  if (plan->pre_count + plan->index_rank + plan->post_count > TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is more than the %d that tensors can have",
                         plan->pre_count + plan->index_rank + plan->post_count, TD_RANK_MAX);
  return TD_OK;
}

static void index_shape(const td_view *index, int count, int *rank, int64_t *shape) {
  int64_t before[TD_RANK_MAX];
  *rank = 0;
  for (int i = 0; i < count; i++) {
    memcpy(before, shape, (size_t)*rank * sizeof *shape);
    td_shape_broadcast(*rank, before, index[i].rank, index[i].shape, rank, shape, NULL);
  }
}

void td_gather_plan_of(const td_view *index, int count, int rank, const td_arg *axes, td_gather_plan *plan) {
  plan->count = count;
  for (int i = 0; i < count; i++) plan->axes[i] = (int)(axes->ints[i] < 0 ? axes->ints[i] + rank : axes->ints[i]);
  index_shape(index, count, &plan->index_rank, plan->index_shape);
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

// ---- offsets ----

enum { BLOCK = 512 };

typedef struct offsets {
  td_view index;             // broadcast to the shape of all indices
  int64_t size, stride;      // of the axis in x
  int64_t own[TD_RANK_MAX];  // what a step along each of the index's axes adds by itself
  bool flat;                 // index lies row-major
  bool adds;                 // to the offsets of the axes before
  int64_t *out;              // NULL: visit sees them
  td_gather_visit *visit;
  void *owner;
  int64_t group;             // indices of an item of the range
  atomic_llong bad;          // the first index out of range, or count
} offsets;

static void note_bad(offsets *o, int64_t at) {
  long long seen = atomic_load_explicit(&o->bad, memory_order_relaxed);
  while (at < seen && !atomic_compare_exchange_weak_explicit(&o->bad, &seen, at, memory_order_relaxed,
                                                             memory_order_relaxed)) {}
}

// n neighbours of a row of the index, in x from base on.
static bool place_row(const offsets *o, const int64_t *indices, int64_t n, int64_t base, int64_t own, int64_t *out) {
  bool bad = false;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = indices[i] + (indices[i] < 0 ? o->size : 0);
    bad |= (uint64_t)at >= (uint64_t)o->size;
    out[i] = (o->adds ? out[i] : 0) + base + i * own + at * o->stride;
  }
  return bad;
}

// The offsets of n indices from the first on, row by row.
static bool place_block(const offsets *o, int64_t first, int64_t n, int64_t *indices, int64_t *out) {
  const td_view *v = &o->index;
  int axis = v->rank - 1, bytes = td_dtype_bytes(v->dtype);
  int64_t length = v->rank ? v->shape[axis] : 1, step = v->rank ? v->strides[axis] : 0;
  int64_t own = v->rank ? o->own[axis] : 0;
  int64_t at[TD_RANK_MAX] = {0}, rest = first / length, column = first % length, from = 0, base = 0;
  bool bad = false;
  for (int d = axis; d-- > 0; rest /= v->shape[d]) {
    at[d] = rest % v->shape[d];
    from += at[d] * v->strides[d];
    base += at[d] * o->own[d];
  }
  if (o->flat) td_cast_run(indices, TD_INT64, v->data + first * bytes, v->dtype, bytes, n, false);
  for (int64_t done = 0, count; done < n; done += count, column = 0) {
    count = length - column < n - done ? length - column : n - done;
    if (!o->flat)
      td_cast_run(indices + done, TD_INT64, v->data + (from + column * step) * bytes, v->dtype, step * bytes, count,
                  false);
    bad |= place_row(o, indices + done, count, base + column * own, own, out + done);
    for (int d = axis - 1; d >= 0; d--) {
      from += v->strides[d];
      base += o->own[d];
      if (++at[d] < v->shape[d]) break;
      from -= v->strides[d] * v->shape[d];
      base -= o->own[d] * v->shape[d];
      at[d] = 0;
    }
  }
  return bad;
}

static void offsets_part(void *argument, int64_t first, int64_t last) {
  offsets *o = argument;
  int64_t indices[BLOCK], places[BLOCK], end = last * o->group;
  for (int64_t at = first * o->group; at < end; at += BLOCK) {
    int64_t n = end - at < BLOCK ? end - at : BLOCK;
    bool bad = place_block(o, at, n, indices, o->out ? o->out + at : places);
    for (int64_t i = 0; i < n && bad; i++)
      if (indices[i] < -o->size || indices[i] >= o->size) note_bad(o, at + i);
    if (o->visit && !bad) o->visit(o->owner, places, at, n);
  }
}

static int64_t element_of(const td_view *v, int64_t at) {
  int64_t from = 0, value = 0;
  for (int d = v->rank; d-- > 0; at /= v->shape[d]) from += at % v->shape[d] * v->strides[d];
  td_cast_run(&value, TD_INT64, v->data + from * td_dtype_bytes(v->dtype), v->dtype, 0, 1, false);
  return value;
}

static const char *index_name(const td_call *call, const offsets *o) {
  const td_param *params = call->op->params;
  for (int i = 0; i < call->in_count && i < td_op_tensor_params(call->op); i++)
    if (params[i].kind == TD_PARAM_INDEX && call->in[i].data == o->index.data) return params[i].name;
  return "index";
}

static int offsets_run(const td_call *call, offsets *o, int axis) {
  int64_t count = o->index.size;
  atomic_init(&o->bad, count);
  o->flat = td_view_is_flat(&o->index);
  if (count) td_ranges_run(call->context->pool, count / o->group, o->group, offsets_part, o);
  if (td_pool_stopped(call->context->pool)) return TD_ERROR_INTERRUPT; // some offsets are not there
  int64_t bad = atomic_load(&o->bad);
  if (bad == count) return TD_OK;
  return td_error_set(call->context, TD_ERROR_INDEX, "%s: %s %lld is out of range for axis %d with size %lld",
                      call->op->name, index_name(call, o), (long long)element_of(&o->index, bad), axis,
                      (long long)o->size);
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

int64_t td_gather_bytes(const td_view *index, int count) {
  int64_t shape[TD_RANK_MAX] = {0};
  int rank;
  index_shape(index, count, &rank, shape);
  return td_shape_size(rank, shape) * (int64_t)sizeof(int64_t);
}

int td_gather_open(const td_call *call, const td_view *x, const td_view *index, int count, const td_arg *axes,
                   void *space, td_gather_walk *walk) {
  td_gather_plan plan;
  td_gather_plan_of(index, count, x->rank, axes, &plan);
  walk->bytes = td_dtype_bytes(x->dtype);
  walk->index_count = td_shape_size(plan.index_rank, plan.index_shape);
  walk->offsets = space;
  walk->pre_size = join_axes(x, plan.pre, plan.pre_count, &walk->pre_rank, walk->pre_shape, walk->pre_strides);
  walk->post_size = join_axes(x, plan.post, plan.post_count, &walk->post_rank, walk->post_shape, walk->post_strides);
  for (int i = 0; i < plan.count; i++) {
    offsets o = {.size = x->shape[plan.axes[i]], .stride = x->strides[plan.axes[i]], .adds = i > 0, .out = space,
                 .group = 1};
    td_view_broadcast(&o.index, &index[i], plan.index_rank, plan.index_shape);
    int code = offsets_run(call, &o, plan.axes[i]);
    if (code) return code;
  }
  return TD_OK;
}

static offsets offsets_along(const td_view *x, const td_view *index, int axis) {
  offsets o = {.index = *index, .size = x->shape[axis], .stride = x->strides[axis], .group = 1};
  for (int i = 0; i < x->rank; i++) o.own[i] = i == axis ? 0 : x->strides[i];
  return o;
}

int td_gather_along(const td_call *call, const td_view *x, const td_view *index, int axis, void *space,
                    td_gather_walk *walk) {
  offsets o = offsets_along(x, index, axis);
  o.out = space;
  *walk = (td_gather_walk){.bytes = td_dtype_bytes(x->dtype),
                           .index_count = index->size,
                           .offsets = space,
                           .pre_size = 1,
                           .post_size = 1};
  return offsets_run(call, &o, axis);
}

int td_gather_visit_along(const td_call *call, const td_view *x, const td_view *index, int axis, int64_t group,
                          td_gather_visit *visit, void *owner) {
  offsets o = offsets_along(x, index, axis);
  o.group = group;
  o.visit = visit;
  o.owner = owner;
  return offsets_run(call, &o, axis);
}

// ---- reading ----

static int64_t offset_of(int64_t at, int rank, const int64_t *shape, const int64_t *strides) {
  int64_t offset = 0;
  for (int i = rank; i-- > 0;) {
    offset += at % shape[i] * strides[i];
    at /= shape[i];
  }
  return offset;
}

static bool run_is_dense(const td_gather_walk *w) {
  return w->post_rank == 0 || (w->post_rank == 1 && w->post_strides[0] == 1);
}

typedef struct reading {
  const td_gather_walk *walk;
  char *out;
  const char *x;
} reading;

#define READ_EACH(type)                                                                       \
  do {                                                                                        \
    const type *from = (const type *)x;                                                       \
    for (int64_t i = 0; i < n; i++) ((type *)out)[i] = from[places[i]];                       \
  } while (0)

// Runs of one element each.
static void read_elements(int bytes, char *out, const char *x, const int64_t *places, int64_t n) {
  switch (bytes) {
  case 1: READ_EACH(uint8_t); break;
  case 2: READ_EACH(uint16_t); break;
  case 4: READ_EACH(uint32_t); break;
  default: READ_EACH(uint64_t);
  }
}

static void read_strided(const td_gather_walk *w, char *out, const char *x) {
  int last = w->post_rank - 1;
  int64_t length = w->post_shape[last], step = w->post_strides[last];
  for (int64_t done = 0; done < w->post_size; done += length) {
    const char *row = x + offset_of(done / length, last, w->post_shape, w->post_strides) * w->bytes;
    int64_t strides[] = {step}, shape[] = {length};
    td_elements_copy(NULL, out + done * w->bytes, row, w->bytes, 1, shape, strides);
  }
}

static void read_runs(void *argument, int64_t first, int64_t last) {
  const reading *r = argument;
  const td_gather_walk *w = r->walk;
  size_t run_bytes = (size_t)(w->post_size * w->bytes);
  bool dense = run_is_dense(w);
  while (first < last) { // the runs of one pre position
    int64_t k = first % w->index_count, n = w->index_count - k;
    if (n > last - first) n = last - first;
    const char *x = r->x + offset_of(first / w->index_count, w->pre_rank, w->pre_shape, w->pre_strides) * w->bytes;
    char *out = r->out + first * (int64_t)run_bytes;
    if (w->post_size == 1) read_elements(w->bytes, out, x, w->offsets + k, n);
    else
      for (int64_t i = 0; i < n; i++, out += run_bytes) {
        const char *run = x + w->offsets[k + i] * w->bytes;
        if (dense) memcpy(out, run, run_bytes);
        else read_strided(w, out, run);
      }
    first += n;
  }
}

void td_gather_read(td_pool *pool, const td_gather_walk *walk, char *out, const char *x) {
  reading r = {walk, out, x};
  if (walk->post_size) td_ranges_run(pool, walk->pre_size * walk->index_count, walk->post_size, read_runs, &r);
}

static void read_visited(void *owner, const int64_t *places, int64_t first, int64_t n) {
  const reading *r = owner;
  int bytes = r->walk->bytes;
  read_elements(bytes, r->out + first * bytes, r->x, places, n);
}

int td_gather_read_along(const td_call *call, const td_view *x, const td_view *index, int axis, char *out) {
  td_gather_walk walk = {.bytes = td_dtype_bytes(x->dtype)};
  reading r = {&walk, out, x->data};
  return td_gather_visit_along(call, x, index, axis, 1, read_visited, &r);
}
