// Plain arrays from views, and loops over items cut for the pool.
#include "engine/ops/flat.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/ops/map.h"

enum { GRAIN = 1 << 15 }; // units of work of a chunk: about 10 us

bool td_view_is_flat(const td_view *view) {
  int64_t stride = 1;
  if (view->size <= 1) return true;
  for (int i = view->rank; i-- > 0;) {
    if (view->shape[i] == 1) continue;
    if (view->strides[i] != stride) return false;
    stride *= view->shape[i];
  }
  return true;
}

void td_view_of(td_view *view, const td_tensor *t) {
  view->data = t->data;
  view->size = t->size;
  view->dtype = t->dtype;
  view->rank = t->rank;
  for (int i = 0; i < t->rank; i++) {
    view->shape[i] = t->shape[i];
    view->strides[i] = t->strides[i];
  }
}

void td_view_permute(td_view *out, const td_view *view, const int *axes) {
  *out = (td_view){.data = view->data, .size = view->size, .dtype = view->dtype, .rank = view->rank};
  for (int i = 0; i < view->rank; i++) {
    out->shape[i] = view->shape[axes[i]];
    out->strides[i] = view->strides[axes[i]];
  }
}

void td_view_broadcast(td_view *out, const td_view *view, int rank, const int64_t *shape) {
  *out = (td_view){.data = view->data, .size = td_shape_size(rank, shape), .dtype = view->dtype, .rank = (uint8_t)rank};
  for (int i = 0; i < rank; i++) {
    int from = i - (rank - view->rank);
    out->shape[i] = shape[i];
    out->strides[i] = from < 0 || view->shape[from] == 1 ? 0 : view->strides[from];
  }
}

int td_flat_open(const td_call *call, const td_view *view, uint8_t dtype, td_flat *flat) {
  int bytes = td_dtype_bytes(view->dtype), wanted = td_dtype_bytes(dtype);
  bool dense = td_view_is_flat(view);
  *flat = (td_flat){.data = view->data};
  if (dense && dtype == view->dtype) return TD_OK;
  int64_t largest = view->size * (dense ? wanted : bytes);
  char *copy = flat->owned = td_memory_new((size_t)largest);
  if (!copy) return td_error_memory(call->context, call->op->name, largest);
  flat->data = copy;
  if (!dense) td_elements_copy(call->context->pool, copy, view->data, bytes, view->rank, view->shape, view->strides);
  if (dtype == view->dtype) return TD_OK;
  if (dense) {
    td_cast_run(copy, dtype, view->data, view->dtype, bytes, view->size, false);
    return TD_OK;
  }
  char *cast = td_memory_new((size_t)(view->size * wanted));
  if (cast) td_cast_run(cast, dtype, copy, view->dtype, bytes, view->size, false);
  td_memory_free(copy);
  flat->data = flat->owned = cast;
  return cast ? TD_OK : td_error_memory(call->context, call->op->name, view->size * wanted);
}

void td_flat_close(td_flat *flat) {
  td_memory_free(flat->owned);
  flat->owned = NULL;
}

int64_t td_flat_bytes(const td_view *view, uint8_t dtype) {
  return dtype == view->dtype && td_view_is_flat(view) ? 0 : view->size * td_dtype_bytes(dtype);
}

typedef struct fill {
  const td_view *view;
  uint8_t dtype;
  char *out;
  int64_t length; // of the last axis
} fill;

static void fill_rows(void *argument, int64_t first, int64_t last) {
  const fill *f = argument;
  const td_view *v = f->view;
  int64_t from_bytes = td_dtype_bytes(v->dtype), to_bytes = td_dtype_bytes(f->dtype);
  for (int64_t row = first; row < last; row++) {
    int64_t rest = row, offset = 0;
    for (int d = v->rank - 1; d-- > 0; rest /= v->shape[d]) offset += rest % v->shape[d] * v->strides[d];
    td_cast_run(f->out + row * f->length * to_bytes, f->dtype, v->data + offset * from_bytes, v->dtype,
                v->rank ? v->strides[v->rank - 1] * from_bytes : 0, f->length, false);
  }
}

const char *td_flat_fill(td_pool *pool, const td_view *view, uint8_t dtype, void *space) {
  if (!td_flat_bytes(view, dtype)) return view->data;
  if (dtype == view->dtype) {
    td_elements_copy(pool, space, view->data, td_dtype_bytes(dtype), view->rank, view->shape, view->strides);
    return space;
  }
  fill f = {view, dtype, space, view->rank ? view->shape[view->rank - 1] : 1};
  td_ranges_run(pool, view->size / f.length, f.length, fill_rows, &f);
  return space;
}

// ---- scratch ----

enum { ALIGNMENT = 64 };
static const int64_t too_much = INT64_MAX / 4;

void *td_scratch_take(td_scratch *scratch, int64_t count, int64_t bytes) {
  void *piece = scratch->at ? scratch->at + scratch->used : NULL;
  bool fits = count < too_much / bytes && scratch->used + count * bytes < too_much;
  scratch->used = fits ? (scratch->used + count * bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : too_much;
  return piece;
}

const void *td_scratch_view(td_scratch *scratch, td_pool *pool, const td_view *view, uint8_t dtype) {
  if (dtype == view->dtype && td_view_is_flat(view)) return view->data;
  char *copy = td_scratch_take(scratch, view->size, td_dtype_bytes(dtype));
  return copy && view->size ? td_flat_fill(pool, view, dtype, copy) : copy;
}

static void inputs_walk(const td_call *call, uint8_t dtype, td_scratch *scratch, const char **data) {
  for (int i = 0; i < call->in_count; i++) {
    const td_view *in = &call->in[i];
    const char *found = in->data ? td_scratch_view(scratch, call->context->pool, in, dtype) : NULL;
    if (data) data[i] = found;
  }
}

int64_t td_inputs_bytes(const td_call *call, uint8_t dtype) {
  td_scratch scratch = {0};
  inputs_walk(call, dtype, &scratch, NULL);
  return scratch.used;
}

void *td_inputs_place(const td_call *call, uint8_t dtype, const char **data) {
  td_scratch scratch = {.at = call->workspace};
  inputs_walk(call, dtype, &scratch, data);
  return td_scratch_take(&scratch, 0, 1);
}

// ---- inputs brought into the result ----

static void bring_row(void *owner, char *out, const char *in, int64_t stride, int64_t n) {
  const td_call *call = owner;
  td_cast_run(out, call->out[0].dtype, in, call->in[0].dtype, stride, n, false);
}

const char *td_view_bring(const td_call *call) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  bool same = in->dtype == out->dtype;
  if (same && td_view_is_flat(in)) return in->data;
  if (same) {
    td_elements_copy(call->context->pool, out->data, in->data, td_dtype_bytes(in->dtype), in->rank, in->shape,
                     in->strides);
    return out->data;
  }
  td_call shaped = {.context = call->context}; // the result as row-major elements of the input's shape
  shaped.in[0] = shaped.out[0] = *in;
  shaped.out[0].data = out->data;
  shaped.out[0].dtype = out->dtype;
  td_map_rows(&shaped, bring_row, &shaped, true);
  return out->data;
}

typedef struct ranges {
  int64_t count, per_chunk;
  td_range *work;
  void *argument;
} ranges;

static void range_chunk(void *argument, int64_t chunk) {
  const ranges *r = argument;
  int64_t first = chunk * r->per_chunk, last = first + r->per_chunk;
  r->work(r->argument, first, last < r->count ? last : r->count);
}

void td_ranges_run(td_pool *pool, int64_t count, int64_t cost, td_range *work, void *argument) {
  ranges r = {count, cost > 0 ? GRAIN / cost : GRAIN, work, argument};
  if (r.per_chunk < 1) r.per_chunk = 1;
  if (count <= 0) return;
  td_pool_run(pool, (count + r.per_chunk - 1) / r.per_chunk, range_chunk, &r);
}

typedef struct items {
  const td_pool *pool;
  _Atomic int64_t next;
  int64_t count, bytes;
  td_item *work;
  void *argument;
  char *workspace;
} items;

static int64_t item_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static int64_t item_runners(const td_pool *pool, int64_t count) {
  int64_t threads = pool ? td_pool_threads(pool) : 1;
  return count < threads ? count : threads;
}

int64_t td_items_scratch(const td_pool *pool, int64_t count, int64_t bytes) {
  return item_runners(pool, count) * item_bytes(bytes);
}

static void run_items(void *argument, int64_t runner) {
  items *w = argument;
  char *scratch = w->workspace + runner * w->bytes;
  for (;;) {
    int64_t item = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
    if (item >= w->count || td_pool_stopped(w->pool)) return;
    w->work(w->argument, item, scratch);
  }
}

void td_items_run(td_pool *pool, int64_t count, int64_t bytes, td_item *work, void *argument, void *workspace) {
  items w = {.pool = pool,
             .count = count,
             .bytes = item_bytes(bytes),
             .work = work,
             .argument = argument,
             .workspace = workspace};
  td_pool_run(pool, item_runners(pool, count), run_items, &w);
}

td_arg td_ints_arg(int count, const int64_t *numbers) {
  td_arg arg = {.given = 1, .count = count};
  for (int i = 0; i < count; i++) arg.ints[i] = numbers[i];
  return arg;
}
