// Writing to the places that index tensors name, by setting, adding, multiplying, or keeping the larger or smaller.
//  1. Runs of one place are combined in the order of the indices, whoever does it.
//  2. Along an axis the indices that lie apart on an axis before it never meet: they are dealt out as they lie.
//  3. Long runs are cut into columns, and each chunk takes its columns of all runs. Many short runs are dealt out by
//     their place: a stable counting sort puts the runs of a place into one bucket, and chunks own buckets.
//  4. Sums in float32 are collected in double where a place gets many on average, so that long ones keep their digits.
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/gather.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

enum { COLUMNS = 4096, BUCKETS = 64, DEAL = 1 << 14, ALONE = 1 << 15, DEEP = 16 };

// ---- combining ----

typedef void combine(char *to, int64_t step, const char *from, int64_t n); // n elements, step apart in to
// n elements at places of to, one after the other; step: elements from one of from to the next
typedef void combine_each(char *to, const int64_t *places, const char *from, int64_t step, int64_t n);

#define SUM(T, a, b) (T)((a) + (b))
#define PRODUCT(T, a, b) (T)((a) * (b))
#define LARGER(T, a, b) MAXIMUM(b, a)
#define SMALLER(T, a, b) MINIMUM(b, a)
#define LARGER_WHOLE(T, a, b) ((b) > (a) ? (b) : (a))
#define SMALLER_WHOLE(T, a, b) ((b) < (a) ? (b) : (a))

#define COMBINE(NAME, TYPE, name, WITH)                                                      \
  TD_CLONES static void name##_##NAME(char *at_to, int64_t step, const char *at_from, int64_t n) { \
    typedef TYPE T;                                                                          \
    T *restrict to = (T *)at_to;                                                             \
    const T *restrict from = (const T *)at_from;                                             \
    if (step == 1)                                                                           \
      for (int64_t i = 0; i < n; i++) to[i] = WITH(T, to[i], from[i]);                       \
    else                                                                                     \
      for (int64_t i = 0; i < n; i++) to[i * step] = WITH(T, to[i * step], from[i]);         \
  }                                                                                          \
  static void name##_each_##NAME(char *at_to, const int64_t *places, const char *at_from, int64_t step, int64_t n) { \
    typedef TYPE T;                                                                          \
    T *restrict to = (T *)at_to;                                                             \
    const T *restrict from = (const T *)at_from;                                             \
    for (int64_t i = 0; i < n; i++) to[places[i]] = WITH(T, to[places[i]], from[i * step]);  \
  }
#define SET(NAME, TYPE, name, ...)                                                           \
  static void name##_##NAME(char *at_to, int64_t step, const char *at_from, int64_t n) {     \
    TYPE *restrict to = (TYPE *)at_to;                                                       \
    const TYPE *restrict from = (const TYPE *)at_from;                                       \
    if (step == 1) memcpy(to, from, (size_t)n * sizeof *to);                                 \
    else                                                                                     \
      for (int64_t i = 0; i < n; i++) to[i * step] = from[i];                                \
  }                                                                                          \
  static void name##_each_##NAME(char *at_to, const int64_t *places, const char *at_from, int64_t step, int64_t n) { \
    TYPE *to = (TYPE *)at_to;                                                                \
    const TYPE *from = (const TYPE *)at_from;                                                \
    for (int64_t i = 0; i < n; i++) to[places[i]] = from[i * step];                          \
  }
TD_EACH_DTYPE_WRAPPING(COMBINE, add, SUM)
TD_EACH_NUMBER_WRAPPING(COMBINE, multiply, PRODUCT)
TD_EACH_BOOL(COMBINE, multiply, SMALLER_WHOLE)
TD_EACH_FLOAT(COMBINE, maximum, LARGER)
TD_EACH_INTEGRAL(COMBINE, maximum, LARGER_WHOLE)
TD_EACH_FLOAT(COMBINE, minimum, SMALLER)
TD_EACH_INTEGRAL(COMBINE, minimum, SMALLER_WHOLE)
SET(UINT8, uint8_t, set, )
SET(HALF, uint16_t, set, )
SET(INT32, uint32_t, set, )
SET(INT64, uint64_t, set, )

typedef struct combiner {
  combine *run;
  combine_each *each;
} combiner;

#define ENTRY(NAME, TYPE, name, ...) [TD_##NAME] = {name##_##NAME, name##_each_##NAME},
#define SETTER(NAME) {set_##NAME, set_each_##NAME}
static const combiner combiners[][TD_DTYPE_COUNT] = {
    [TD_SCATTER_SET] = {[TD_BOOL] = SETTER(UINT8),
                        [TD_UINT8] = SETTER(UINT8),
                        [TD_INT32] = SETTER(INT32),
                        [TD_INT64] = SETTER(INT64),
                        [TD_FLOAT16] = SETTER(HALF),
                        [TD_BFLOAT16] = SETTER(HALF),
                        [TD_FLOAT32] = SETTER(INT32),
                        [TD_FLOAT64] = SETTER(INT64)},
    [TD_SCATTER_ADD] = {TD_EACH_DTYPE(ENTRY, add, )},
    [TD_SCATTER_MULTIPLY] = {TD_EACH_DTYPE(ENTRY, multiply, )},
    [TD_SCATTER_MAXIMUM] = {TD_EACH_DTYPE(ENTRY, maximum, )},
    [TD_SCATTER_MINIMUM] = {TD_EACH_DTYPE(ENTRY, minimum, )},
};

// ---- sums in double ----

static void add_wide(char *at_to, int64_t step, const char *at_from, int64_t n) {
  double *restrict to = (double *)at_to;
  const float *restrict from = (const float *)at_from;
  for (int64_t i = 0; i < n; i++) to[i * step] += (double)from[i];
}

static void add_each_wide(char *at_to, const int64_t *places, const char *at_from, int64_t step, int64_t n) {
  double *restrict to = (double *)at_to;
  const float *restrict from = (const float *)at_from;
  for (int64_t i = 0; i < n; i++) to[places[i]] += (double)from[i * step];
}

typedef struct target { // what is written to
  const combiner *combiner;
  char *data;
  int bytes;
  const td_view *x; // contiguous where data is not its own
} target;

static bool is_wide(const td_view *x, enum td_scatter mode, int64_t written) {
  return mode == TD_SCATTER_ADD && x->dtype == TD_FLOAT32 && written / DEEP >= x->size;
}

static int64_t target_bytes(const td_view *x, enum td_scatter mode, int64_t written) {
  return is_wide(x, mode, written) ? td_space_bytes(x->size * (int64_t)sizeof(double)) : 0;
}

static target target_open(const td_view *x, enum td_scatter mode, int64_t written, char **space) {
  static const combiner wide = {add_wide, add_each_wide};
  if (!is_wide(x, mode, written))
    return (target){&combiners[mode][x->dtype], x->data, td_dtype_bytes(x->dtype), x};
  double *sums = td_space_take(space, x->size * (int64_t)sizeof *sums);
  for (int64_t i = 0; i < x->size; i++) sums[i] = (double)((const float *)x->data)[i];
  return (target){&wide, (char *)sums, sizeof *sums, x};
}

static void target_close(const target *t) {
  if (t->data == t->x->data) return;
  for (int64_t i = 0; i < t->x->size; i++) ((float *)t->x->data)[i] = (float)((const double *)t->data)[i];
}

// ---- runs ----

typedef struct scatter {
  const td_gather_walk *walk;
  const target *to;
  const char *values;
  int64_t step;    // elements from a run of values to the next
  int64_t runs, deals;
  int64_t *order;  // runs by bucket
  int64_t *counts; // [deals][BUCKETS], then where each deal's runs of a bucket begin
} scatter;

static int64_t offset_of(int64_t at, int rank, const int64_t *shape, const int64_t *strides) {
  int64_t offset = 0;
  for (int i = rank; i-- > 0;) {
    offset += at % shape[i] * strides[i];
    at /= shape[i];
  }
  return offset;
}

static int64_t base_of(const scatter *s, int64_t run) {
  const td_gather_walk *w = s->walk;
  if (!w->pre_rank) return w->offsets[run];
  return w->offsets[run % w->index_count] + offset_of(run / w->index_count, w->pre_rank, w->pre_shape, w->pre_strides);
}

static bool run_is_dense(const td_gather_walk *w) {
  return w->post_rank == 0 || (w->post_rank == 1 && w->post_strides[0] == 1);
}

static void write_run(const scatter *s, int64_t run) {
  const td_gather_walk *w = s->walk;
  char *to = s->to->data + base_of(s, run) * s->to->bytes;
  const char *from = s->values + run * s->step * w->bytes;
  int last = w->post_rank - 1;
  int64_t length = last < 0 ? 1 : w->post_shape[last], step = last < 0 ? 1 : w->post_strides[last];
  for (int64_t done = 0; done < w->post_size; done += length)
    s->to->combiner->run(
        to + (last > 0 ? offset_of(done / length, last, w->post_shape, w->post_strides) * s->to->bytes : 0), step,
        from + done * w->bytes, length);
}

static void write_columns(void *argument, int64_t chunk) {
  const scatter *s = argument;
  const td_gather_walk *w = s->walk;
  int64_t first = chunk * COLUMNS, n = w->post_size - first < COLUMNS ? w->post_size - first : COLUMNS;
  for (int64_t run = 0; run < s->runs; run++)
    s->to->combiner->run(s->to->data + (base_of(s, run) + first) * s->to->bytes, 1,
                         s->values + (run * s->step + first) * w->bytes, n);
}

// ---- buckets ----

static int bucket_of(const scatter *s, int64_t run) { // equal places have equal buckets
  return (int)(((uint64_t)base_of(s, run) * 0x9e3779b97f4a7c15u) >> 58);
}

static int64_t deal_end(const scatter *s, int64_t deal) {
  return (deal + 1) * DEAL < s->runs ? (deal + 1) * DEAL : s->runs;
}

static void count_deal(void *argument, int64_t deal) {
  const scatter *s = argument;
  int64_t *counts = s->counts + deal * BUCKETS;
  memset(counts, 0, BUCKETS * sizeof *counts);
  for (int64_t run = deal * DEAL; run < deal_end(s, deal); run++) counts[bucket_of(s, run)]++;
}

static void place_deals(const scatter *s) { // counts become places in order
  int64_t next = 0;
  for (int b = 0; b < BUCKETS; b++)
    for (int64_t deal = 0; deal < s->deals; deal++) {
      int64_t *count = &s->counts[deal * BUCKETS + b], n = *count;
      *count = next;
      next += n;
    }
}

static void order_deal(void *argument, int64_t deal) {
  const scatter *s = argument;
  int64_t *next = s->counts + deal * BUCKETS;
  for (int64_t run = deal * DEAL; run < deal_end(s, deal); run++) s->order[next[bucket_of(s, run)]++] = run;
}

static void write_bucket(void *argument, int64_t bucket) { // counts of the last deal are the buckets' ends by now
  const scatter *s = argument;
  const int64_t *ends = s->counts + (s->deals - 1) * BUCKETS;
  for (int64_t i = bucket ? ends[bucket - 1] : 0; i < ends[bucket]; i++) write_run(s, s->order[i]);
}

static bool is_dealt(const td_pool *pool, int64_t runs, int64_t post_size) {
  return td_pool_threads(pool) > 1 && runs >= BUCKETS && runs * post_size >= ALONE;
}

static int64_t scatter_bytes(const td_pool *pool, int64_t runs, int64_t post_size) {
  int64_t deals = (runs + DEAL - 1) / DEAL;
  return is_dealt(pool, runs, post_size) ? (runs + deals * BUCKETS) * (int64_t)sizeof(int64_t) : 0;
}

// values: a row-major run for each run, or one for all (step 0: elements from a run to the next).
static void write_runs(td_pool *pool, const td_gather_walk *walk, const target *to, const char *values, int64_t step,
                       void *space) {
  scatter s = {.walk = walk, .to = to, .values = values, .step = step};
  s.runs = walk->post_size ? walk->pre_size * walk->index_count : 0;
  s.deals = (s.runs + DEAL - 1) / DEAL;
  if (run_is_dense(walk) && walk->post_size >= 4 * COLUMNS) {
    td_pool_run(pool, (walk->post_size + COLUMNS - 1) / COLUMNS, write_columns, &s);
  } else if (is_dealt(pool, s.runs, walk->post_size)) {
    s.order = space;
    s.counts = s.order + s.runs;
    td_pool_run(pool, s.deals, count_deal, &s);
    place_deals(&s);
    td_pool_run(pool, s.deals, order_deal, &s);
    td_pool_run(pool, BUCKETS, write_bucket, &s);
  } else {
    for (int64_t run = 0; run < s.runs; run++) write_run(&s, run);
  }
}

// ---- along an axis ----

enum { GROUPS = 16 }; // so many are worth dealing out as they lie

// Indices that may meet in one place: those that share the axes before the one. All, where there are too few of these.
static int64_t group_along(const td_pool *pool, const td_view *index, int axis) {
  int64_t group = 1;
  for (int i = axis; i < index->rank; i++) group *= index->shape[i];
  return group && index->size / group < GROUPS && is_dealt(pool, index->size, 1) ? index->size : group;
}

static bool is_planned(const td_pool *pool, const td_view *index, int axis) {
  return is_dealt(pool, index->size, 1) && group_along(pool, index, axis) == index->size;
}

int64_t td_scatter_along_bytes(const td_pool *pool, const td_view *x, const td_view *index, int axis,
                               enum td_scatter mode) {
  int64_t bytes = target_bytes(x, mode, index->size);
  if (!is_planned(pool, index, axis)) return bytes;
  return bytes + td_space_bytes(index->size * (int64_t)sizeof(int64_t)) + scatter_bytes(pool, index->size, 1);
}

typedef struct writing {
  const target *to;
  const char *values;
  int64_t step;
  int bytes;
} writing;

static void write_visited(void *owner, const int64_t *places, int64_t first, int64_t n) {
  const writing *w = owner;
  w->to->combiner->each(w->to->data, places, w->values + first * w->step * w->bytes, w->step, n);
}

int td_scatter_along(const td_call *call, const td_view *x, const td_view *index, int axis, enum td_scatter mode,
                     const char *values, int64_t step, void *space) {
  td_pool *pool = call->context->pool;
  char *at = space;
  target to = target_open(x, mode, index->size, &at);
  int code;
  if (is_planned(pool, index, axis)) {
    td_gather_walk walk;
    code = td_gather_along(call, x, index, axis, td_space_take(&at, index->size * (int64_t)sizeof(int64_t)), &walk);
    if (!code) write_runs(pool, &walk, &to, values, step, at);
  } else {
    writing w = {&to, values, step, td_dtype_bytes(x->dtype)};
    code = td_gather_visit_along(call, x, index, axis, group_along(pool, index, axis), write_visited, &w);
  }
  target_close(&to);
  return code;
}

// ---- values ----

// value as runs: where all runs are the same one, that one.
static void value_runs(const td_gather_plan *plan, const td_view *x, const td_view *value, td_view *runs,
                       int64_t *step) {
  td_meta shape = {.rank = x->rank}, places;
  memcpy(shape.shape, x->shape, (size_t)x->rank * sizeof *x->shape);
  td_gather_shape(plan, &shape, x->dtype, &places);
  td_view_broadcast(runs, value, places.rank, places.shape);
  int outer = plan->pre_count + plan->index_rank;
  *step = 1;
  for (int i = outer; i < places.rank; i++) *step *= places.shape[i];
  for (int i = 0; i < outer; i++)
    if (runs->strides[i] && runs->shape[i] != 1) return;
  runs->rank = (uint8_t)(runs->rank - outer);
  runs->size = *step;
  memmove(runs->shape, runs->shape + outer, runs->rank * sizeof *runs->shape);
  memmove(runs->strides, runs->strides + outer, runs->rank * sizeof *runs->strides);
  *step = 0;
}

int64_t td_scatter_at_bytes(const td_pool *pool, const td_view *x, const td_view *value, const td_view *index,
                            int count, const td_arg *axes, enum td_scatter mode) {
  td_view values;
  td_gather_plan plan;
  int64_t step, runs, size = 1;
  td_gather_plan_of(index, count, x->rank, axes, &plan);
  value_runs(&plan, x, value, &values, &step);
  runs = td_shape_size(plan.index_rank, plan.index_shape);
  for (int i = 0; i < plan.pre_count; i++) runs *= x->shape[plan.pre[i]];
  for (int i = 0; i < plan.post_count; i++) size *= x->shape[plan.post[i]];
  return td_space_bytes(td_gather_bytes(index, count)) + td_space_bytes(td_flat_bytes(&values, x->dtype)) +
         target_bytes(x, mode, runs * size) + scatter_bytes(pool, runs, size);
}

int td_scatter_at(const td_call *call, const td_view *x, const td_view *value, const td_view *index, int count,
                  const td_arg *axes, enum td_scatter mode, void *space) {
  td_gather_walk walk;
  td_gather_plan plan;
  td_view values;
  int64_t step;
  char *at = space;
  td_pool *pool = call->context->pool;
  int code = td_gather_open(call, x, index, count, axes, td_space_take(&at, td_gather_bytes(index, count)), &walk);
  if (code) return code;
  td_gather_plan_of(index, count, x->rank, axes, &plan);
  value_runs(&plan, x, value, &values, &step);
  const char *flat = td_flat_fill(pool, &values, x->dtype, td_space_take(&at, td_flat_bytes(&values, x->dtype)));
  target to = target_open(x, mode, walk.pre_size * walk.index_count * walk.post_size, &at);
  write_runs(pool, &walk, &to, flat, step, at);
  target_close(&to);
  return TD_OK;
}
