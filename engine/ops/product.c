// How a batch of products is prepared and cut.
//  1. Each operand's groups of axes are merged to one stride each where they lie behind each other.
//  2. What td_gemm can't read so is copied, those of broadcast batch axes once.
//  3. Batches of a that lie behind each other, times one b, are one tall matrix.
//  4. Many or small products run side by side, each on one thread; few large ones one after the other, each on all.
//  5. Products of one row by one column are too small to ask td_gemm for each: they are dots of runs.
#include "engine/ops/product.h"

#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

enum {
  BATCH_WORK = 1 << 19, // multiplications of a chunk of small products
  MANY = 16, // so many products are worth running side by side, whatever their size
  CHUNKS = 64, // at most: each has its own workspace
  ALIGNMENT = 64,
};

typedef struct operand { // matrices that td_gemm can read
  const td_factor *factor;
  bool copied, transposed;
  int64_t leading, rows, columns, matrices, bytes; // matrices, bytes: of the copy
  int64_t strides[TD_RANK_MAX]; // of the batch axes, in elements
  const char *data;
} operand;

typedef struct plan {
  const td_product *product;
  td_pool *pool;
  int rank;
  int64_t shape[TD_RANK_MAX], count, m, per_chunk, chunks, gemm_bytes;
  operand a, b;
  char *workspace; // of the products
} plan;

static int64_t round_up(int64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

int64_t td_group_size(const td_axes_group *group) { return td_shape_size(group->rank, group->shape); }

void td_group_add(td_axes_group *group, int64_t size, int64_t stride) {
  if (size == 1) return;
  group->shape[group->rank] = size;
  group->strides[group->rank++] = stride;
}

static bool merge(const td_axes_group *group, int64_t *stride) { // to one axis
  *stride = group->rank ? group->strides[group->rank - 1] : 1;
  for (int i = group->rank - 1; i-- > 0;)
    if (group->strides[i] != group->strides[i + 1] * group->shape[i + 1]) return false;
  return true;
}

static int64_t leading_of(int64_t stride, int64_t count, int64_t least) { // stride means nothing on an axis of one
  int64_t leading = count == 1 || stride < least ? least : stride;
  return leading < 1 ? 1 : leading;
}

bool td_matrix_reads(int64_t rows, int64_t columns, int64_t row, int64_t column, bool *transposed, int64_t *leading) {
  if ((columns == 1 || column == 1) && (rows == 1 || row >= columns)) {
    *transposed = false;
    *leading = leading_of(row, rows, columns);
    return true;
  }
  if ((rows == 1 || row == 1) && (columns == 1 || column >= rows)) {
    *transposed = true;
    *leading = leading_of(column, columns, rows);
    return true;
  }
  return false;
}

static void operand_open(const td_product *p, const td_factor *factor, operand *o) {
  int64_t row, column;
  *o = (operand){.factor = factor, .data = factor->data, .matrices = 1};
  o->rows = td_group_size(&factor->rows);
  o->columns = td_group_size(&factor->columns);
  bool merged = merge(&factor->rows, &row);
  merged = merge(&factor->columns, &column) && merged;
  memcpy(o->strides, factor->batch, sizeof o->strides);
  if (merged && factor->dtype == p->dtype &&
      td_matrix_reads(o->rows, o->columns, row, column, &o->transposed, &o->leading))
    return;
  o->copied = true;
  o->leading = leading_of(o->columns, o->rows, o->columns);
  for (int i = p->rank; i-- > 0;) {
    if (!factor->batch[i] || p->shape[i] == 1) continue;
    o->strides[i] = o->matrices * o->rows * o->columns;
    o->matrices *= p->shape[i];
  }
  o->bytes = round_up(o->matrices * o->rows * o->columns * td_dtype_bytes(p->dtype));
}

// Along the last axis line by line; the others count like an odometer.
static void cast_lines(const td_axes_group *g, const char *data, uint8_t from, char *out, uint8_t to) {
  int last = g->rank - 1, bytes = td_dtype_bytes(from);
  int64_t at[TD_RANK_MAX] = {0}, n = g->rank ? g->shape[last] : 1, stride = g->rank ? g->strides[last] : 1;
  for (int i = 0; i >= 0;) {
    td_cast_run(out, to, data, from, stride * bytes, n, false);
    out += n * td_dtype_bytes(to);
    for (i = last - 1; i >= 0; i--) {
      data += g->strides[i] * bytes;
      if (++at[i] < g->shape[i]) break;
      data -= g->strides[i] * g->shape[i] * bytes;
      at[i] = 0;
    }
  }
}

void td_group_copy(td_pool *pool, const td_axes_group *group, const char *data, uint8_t from, char *out, uint8_t to) {
  if (!td_group_size(group)) return;
  if (from == to) td_elements_copy(pool, out, data, td_dtype_bytes(to), group->rank, group->shape, group->strides);
  else cast_lines(group, data, from, out, to);
}

static void operand_copy(const plan *w, operand *o, char *place) {
  const td_factor *factor = o->factor;
  const td_product *p = w->product;
  td_axes_group all = {0}; // no more axes than a tensor has: those of broadcast batches are left out
  if (!o->copied) return;
  o->data = place;
  for (int i = 0; i < p->rank; i++)
    if (factor->batch[i]) td_group_add(&all, p->shape[i], factor->batch[i]);
  for (int i = 0; i < factor->rows.rank; i++) td_group_add(&all, factor->rows.shape[i], factor->rows.strides[i]);
  for (int i = 0; i < factor->columns.rank; i++)
    td_group_add(&all, factor->columns.shape[i], factor->columns.strides[i]);
  td_group_copy(w->pool, &all, factor->data, factor->dtype, place, p->dtype);
}

static void fold(plan *w) {
  if (w->a.transposed) return;
  int64_t rows = w->m;
  for (int i = w->rank; i-- > 0;) {
    if (w->shape[i] == 1) continue;
    if (w->b.strides[i] || w->a.strides[i] != rows * w->a.leading) return;
    rows *= w->shape[i];
  }
  w->m = rows;
  w->rank = 0;
  w->count = 1;
}

static td_gemm_job job_of(const plan *w) {
  const td_product *p = w->product;
  return (td_gemm_job){.a_transposed = w->a.transposed,
                       .b_transposed = w->b.transposed,
                       .m = w->m,
                       .n = p->n,
                       .k = p->k,
                       .a = w->a.data,
                       .b = w->b.data,
                       .c = p->out,
                       .lda = w->a.leading,
                       .ldb = w->b.leading,
                       .ldc = p->n < 1 ? 1 : p->n};
}

static void plan_open(const td_product *p, plan *w) {
  *w = (plan){.product = p, .rank = p->rank, .count = 1, .m = p->m, .chunks = 1};
  for (int i = 0; i < p->rank; i++) w->count *= w->shape[i] = p->shape[i];
  operand_open(p, &p->a, &w->a);
  operand_open(p, &p->b, &w->b);
  double work = (double)p->m * (double)p->n * (double)p->k;
  fold(w);
  if (w->count > 1 && (work <= BATCH_WORK || w->count >= MANY)) {
    w->per_chunk = (int64_t)(BATCH_WORK / (work + BATCH_WORK / 1024));
    if (w->per_chunk < 1) w->per_chunk = 1;
    int64_t least = (w->count + CHUNKS - 1) / CHUNKS;
    if (w->per_chunk < least) w->per_chunk = least;
    w->chunks = (w->count + w->per_chunk - 1) / w->per_chunk;
  }
  td_gemm_job job = job_of(w);
  w->gemm_bytes = td_gemm_workspace(p->dtype, &job);
}

static void product_at(const plan *w, td_pool *pool, int64_t index, char *workspace) {
  const td_product *p = w->product;
  int64_t bytes = td_dtype_bytes(p->dtype), at_a = 0, at_b = 0, rest = index;
  for (int i = w->rank; i-- > 0;) {
    at_a += rest % w->shape[i] * w->a.strides[i];
    at_b += rest % w->shape[i] * w->b.strides[i];
    rest /= w->shape[i];
  }
  td_gemm_job job = job_of(w);
  job.a = w->a.data + at_a * bytes;
  job.b = w->b.data + at_b * bytes;
  job.c = p->out + index * w->m * p->n * bytes;
  td_gemm(pool, p->dtype, &job, workspace);
}

// ---- dots ----

static bool has_dots(const plan *w) {
  return w->count > 1 && w->m == 1 && w->product->n == 1 && td_dtype_is_float(w->product->dtype);
}

// count dots of k elements. Sums of few products are of the dtype, those of sums are double.
#define DOTS(T, name)                                                                                           \
  TD_CLONES static void name##_dots(const T *a, int64_t a_next, int64_t a_step, const T *b, int64_t b_next,     \
                                    int64_t b_step, T *out, int64_t count, int64_t k) {                         \
    enum { LANES = 16, FOUR = 4 * LANES };                                                                      \
    bool dense = a_step == 1 && b_step == 1;                                                                    \
    for (int64_t at = 0; at < count; at++, a += a_next, b += b_next) {                                          \
      double totals[LANES] = {0}, sum = 0;                                                                      \
      int64_t i = 0;                                                                                            \
      for (; dense && i + FOUR <= k; i += FOUR) {                                                               \
        T sums[LANES] = {0};                                                                                    \
        for (int j = 0; j < FOUR; j += LANES)                                                                   \
          for (int l = 0; l < LANES; l++) sums[l] += a[i + j + l] * b[i + j + l];                               \
        for (int l = 0; l < LANES; l++) totals[l] += (double)sums[l];                                           \
      }                                                                                                         \
      for (; dense && i + LANES <= k; i += LANES)                                                               \
        for (int l = 0; l < LANES; l++) totals[l] += (double)(a[i + l] * b[i + l]);                             \
      for (; i < k; i++) sum += (double)a[i * a_step] * (double)b[i * b_step];                                  \
      for (int half = LANES / 2; half; half /= 2)                                                               \
        for (int l = 0; l < half; l++) totals[l] += totals[l + half];                                           \
      out[at] = (T)(sum + totals[0]);                                                                           \
    }                                                                                                           \
  }
DOTS(float, single)
DOTS(double, twofold)

static void run_dots(void *argument, int64_t first, int64_t last) {
  const plan *w = argument;
  int inner = w->rank - 1;
  int64_t bytes = td_dtype_bytes(w->product->dtype), k = w->product->k;
  int64_t a_step = w->a.transposed ? w->a.leading : 1, b_step = w->b.transposed ? 1 : w->b.leading;
  for (int64_t index = first, count; index < last; index += count) {
    int64_t at_a = 0, at_b = 0, rest = index;
    for (int i = inner; i >= 0; rest /= w->shape[i--]) {
      at_a += rest % w->shape[i] * w->a.strides[i];
      at_b += rest % w->shape[i] * w->b.strides[i];
    }
    count = w->shape[inner] - index % w->shape[inner];
    if (count > last - index) count = last - index;
    const char *a = w->a.data + at_a * bytes, *b = w->b.data + at_b * bytes;
    char *out = w->product->out + index * bytes;
    if (w->product->dtype == TD_FLOAT32)
      single_dots((const float *)a, w->a.strides[inner], a_step, (const float *)b, w->b.strides[inner], b_step,
                  (float *)out, count, k);
    else
      twofold_dots((const double *)a, w->a.strides[inner], a_step, (const double *)b, w->b.strides[inner], b_step,
                   (double *)out, count, k);
  }
}

// ---- the whole ----

static void run_chunk(void *argument, int64_t chunk) {
  const plan *w = argument;
  int64_t first = chunk * w->per_chunk, last = first + w->per_chunk;
  for (int64_t i = first; i < last && i < w->count; i++) product_at(w, NULL, i, w->workspace + chunk * w->gemm_bytes);
}

int64_t td_product_workspace(const td_product *product) {
  plan w;
  plan_open(product, &w);
  return w.a.bytes + w.b.bytes + w.chunks * w.gemm_bytes;
}

void td_product_run(td_pool *pool, const td_product *product, void *workspace) {
  plan w;
  plan_open(product, &w);
  w.pool = pool;
  operand_copy(&w, &w.a, workspace);
  operand_copy(&w, &w.b, (char *)workspace + w.a.bytes);
  w.workspace = (char *)workspace + w.a.bytes + w.b.bytes;
  if (has_dots(&w)) td_ranges_run(pool, w.count, w.product->k + 8, run_dots, &w);
  else if (w.per_chunk) td_pool_run(pool, w.chunks, run_chunk, &w);
  else
    for (int64_t i = 0; i < w.count; i++) product_at(&w, pool, i, w.workspace);
}
