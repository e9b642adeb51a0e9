// Scaled dot-product attention, softmax(scale q k^T + mask) v, block by block, so that no [L, S] matrix is ever whole.
//  1. Forward: for a block of queries the blocks of keys pass by; each row keeps its largest score and the sum of
//     exponentials relative to it, and what it has gathered is rescaled when a larger score comes (Milakov and
//     Gimelshein, 2018; Dao et al., 2022). Each row's log-sum-exp is an output of its own, at least in float32.
//  2. The gradient computes scores again from it. A piece of keys adds up its own dq; pieces are added in order.
//  3. Blocks and pieces are cut by sizes alone.
//  4. With dropout the probabilities that are kept are drawn before, as an output of its own; what is left out of the
//     sums of values still counts in the softmax.
#include <math.h>
#include <string.h>

#include "engine/device/cpu/gemm.h"
#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"
#include "engine/ops/random_draw.h"

enum { QUERIES = 128, KEYS = 256 }; // of a block
enum { MANY = 8, PARTS = 4 }; // from so many heads on they are enough to do; else a head's keys are parted

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- operands ----

typedef struct operand { // matrices with unit stride along rows
  const char *data;
  int64_t row, strides[TD_RANK_MAX]; // in elements; strides: of the heads' axes
  int64_t group; // so many neighbours on the last of these axes share a matrix
} operand;

typedef struct added { // a mask; data NULL: none
  const char *data;
  bool truth; // bool: True takes part; else added
  int64_t row, column, strides[TD_RANK_MAX];
} added;

typedef struct task {
  uint8_t dtype;
  int rank; // axes before the matrices' two: each of their elements is a head
  int64_t shape[TD_RANK_MAX], heads, queries, keys, size, values; // size: of q and k; values: of v
  double scale;
  bool causal;
  operand q, k, v, c;
  added mask;
  const uint8_t *kept; // heads x queries x keys; NULL: all
  double kept_factor;
  char *y, *dk, *dv, *dq;
  char *logs_out; // of each row; float64 where all is, else float32
  const double *logs;
  const double *deltas;
  int64_t parts, part; // of the keys: how many, and keys of one
  char *sums; // dq of all parts but the first
} task;

// view, or a plain copy of it in the scratch.
static td_view copied(const td_call *call, td_scratch *scratch, const td_view *view, uint8_t dtype) {
  td_view v = *view;
  v.data = (char *)td_scratch_view(scratch, call->context->pool, view, dtype);
  for (int64_t i = v.rank, stride = 1; i-- > 0; stride *= v.shape[i]) v.strides[i] = stride;
  return v;
}

static void operand_place(const td_call *call, td_scratch *scratch, const td_view *view, const task *t, operand *o) {
  td_view v = *view;
  int lead = v.rank - 2;
  int64_t rows = v.shape[lead], columns = v.shape[lead + 1];
  if (v.dtype != t->dtype || (columns > 1 && v.strides[lead + 1] != 1) || (rows > 1 && v.strides[lead] < columns))
    v = copied(call, scratch, view, t->dtype);
  o->data = v.data;
  o->row = rows > 1 ? v.strides[lead] : columns;
  o->group = lead && v.shape[lead - 1] > 1 ? t->shape[t->rank - 1] / v.shape[lead - 1] : 1;
  for (int i = 0; i < t->rank; i++) {
    int from = i - (t->rank - lead);
    o->strides[i] = from < 0 || v.shape[from] == 1 ? 0 : v.strides[from];
  }
}

static void mask_place(const td_call *call, td_scratch *scratch, const td_view *view, const task *t, added *m) {
  td_view v = *view, wide;
  int64_t shape[TD_RANK_MAX];
  m->truth = v.dtype == TD_BOOL;
  if (!m->truth && v.dtype != t->dtype) v = copied(call, scratch, view, t->dtype);
  memcpy(shape, t->shape, sizeof shape);
  shape[t->rank] = t->queries;
  shape[t->rank + 1] = t->keys;
  td_view_broadcast(&wide, &v, t->rank + 2, shape);
  m->data = v.data;
  m->row = wide.strides[t->rank];
  m->column = wide.strides[t->rank + 1];
  memcpy(m->strides, wide.strides, sizeof m->strides);
}

static int64_t head_offset(const task *t, const int64_t *strides, int64_t group, int64_t head) {
  int64_t at = 0;
  for (int i = t->rank; i-- > 0; head /= t->shape[i], group = 1) at += head % t->shape[i] / group * strides[i];
  return at;
}

static const char *rows_of(const task *t, const operand *o, int64_t head, int64_t row) {
  return o->data + (head_offset(t, o->strides, o->group, head) + row * o->row) * td_dtype_bytes(t->dtype);
}

static int64_t query_rows(const task *t) { return least(QUERIES, t->queries); }
static int64_t key_rows(const task *t) { return least(KEYS, t->keys); }

// Room that the products of one block need; the largest one fits.
static int64_t product_bytes(const task *t) {
  int64_t widest = t->size > t->values ? t->size : t->values;
  int64_t side = query_rows(t) > key_rows(t) ? query_rows(t) : key_rows(t), longest = widest > side ? widest : side;
  return td_gemm_single_bytes(t->dtype, side, longest, longest);
}

static void multiply(const task *t, td_gemm_job job, void *blocks) {
  if (!job.m || !job.n) return;
  if (job.k) td_gemm_single(t->dtype, &job, blocks);
  else
    for (int64_t i = 0; i < job.m; i++)
      memset((char *)job.c + i * job.ldc * td_dtype_bytes(t->dtype), 0, (size_t)(job.n * td_dtype_bytes(t->dtype)));
}

// ---- scores ----

typedef struct block { // rows of one head, and keys that pass by
  int64_t head, row, rows, key, keys;
  void *room; // for products
} block;

// How many of a block's keys row i may see.
static int64_t seen(const task *t, const block *b, int64_t i) {
  int64_t count = b->row + i - b->key + 1;
  return !t->causal ? b->keys : count < 0 ? 0 : least(count, b->keys);
}

typedef double four __attribute__((vector_size(32)));

#define SCORES(T, name)                                                                                        \
  static void name##_mask(const task *t, const block *b, int64_t i, T *scores) {                               \
    const added *m = &t->mask;                                                                                 \
    int64_t at = head_offset(t, m->strides, 1, b->head) + (b->row + i) * m->row + b->key * m->column;             \
    if (m->truth) {                                                                                            \
      for (int64_t j = 0; j < b->keys; j++)                                                                    \
        if (!((const uint8_t *)m->data)[at + j * m->column]) scores[j] = -(T)INFINITY;                         \
    } else                                                                                                     \
      for (int64_t j = 0; j < b->keys; j++) scores[j] += ((const T *)m->data)[at + j * m->column];             \
  }                                                                                                            \
  TD_CLONES static void name##_times(T *x, int64_t n, T factor) {                                              \
    for (int64_t j = 0; j < n; j++) x[j] *= factor;                                                            \
  }                                                                                                            \
  static void name##_adapt(const task *t, const block *b, T *scores) { /* scales and masks */                  \
    for (int64_t i = 0; i < b->rows; i++, scores += b->keys) {                                                 \
      name##_times(scores, b->keys, (T)t->scale);                                                              \
      if (t->mask.data) name##_mask(t, b, i, scores);                                                          \
      for (int64_t j = seen(t, b, i); j < b->keys; j++) scores[j] = -(T)INFINITY;                              \
    }                                                                                                          \
  }                                                                                                            \
  /* sums of blocks are double: there may be many */                                                           \
  TD_CLONES static void name##_gain(double *restrict sum, const T *restrict more, int64_t n, double factor) {  \
    for (int64_t j = 0; j < n; j++) sum[j] = sum[j] * factor + (double)more[j];                                \
  }                                                                                                            \
  TD_CLONES static void name##_plus(T *restrict sum, const T *restrict more, int64_t n) {                      \
    for (int64_t j = 0; j < n; j++) sum[j] += more[j];                                                         \
  }                                                                                                            \
  TD_CLONES static void name##_settle(T *restrict to, const double *restrict sum, int64_t n, double factor) {  \
    for (int64_t j = 0; j < n; j++) to[j] = (T)(sum[j] * factor);                                              \
  }                                                                                                            \
  typedef T name##_vector __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));                     \
  TD_CLONES static double name##_largest(const T *x, int64_t n) { /* NaN where there is one */                 \
    enum { WIDE = 32 / sizeof(T) };                                                                            \
    name##_vector best[4];                                                                                     \
    __typeof__(best[0] != best[0]) nan[4] = {0};                                                               \
    T largest = -(T)INFINITY;                                                                                  \
    bool some = false;                                                                                         \
    int64_t j = 0;                                                                                             \
    for (int l = 0; l < 4; l++) best[l] = (name##_vector){0} - (T)INFINITY;                                    \
    for (; j + 4 * WIDE <= n; j += 4 * WIDE) _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) {             \
        name##_vector v = *(const name##_vector *)(x + j + l * WIDE);                                          \
        __typeof__(v > v) better = v > best[l];                                                                \
        best[l] = (name##_vector)(((__typeof__(better))v & better) | ((__typeof__(better))best[l] & ~better)); \
        nan[l] |= v != v;                                                                                      \
      }                                                                                                        \
    for (; j < n; j++) {                                                                                       \
      largest = x[j] > largest ? x[j] : largest;                                                               \
      some |= x[j] != x[j];                                                                                    \
    }                                                                                                          \
    for (int l = 0; l < 4; l++)                                                                                \
      for (int k = 0; k < (int)WIDE; k++) {                                                                    \
        largest = best[l][k] > largest ? best[l][k] : largest;                                                 \
        some |= nan[l][k] != 0;                                                                                \
      }                                                                                                        \
    return some ? NAN : (double)largest;                                                                       \
  }                                                                                                            \
  typedef T name##_quad __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));            \
  TD_CLONES static double name##_raise(T *x, int64_t n, T shift) { /* to exponentials; gives their sum */      \
    four sums[4] = {0};                                                                                        \
    double sum = 0;                                                                                            \
    int64_t j = 0;                                                                                             \
    for (int64_t i = 0; i < n; i++) x[i] = EXP(x[i] - shift);                                           \
    for (; j + 16 <= n; j += 16)                                                                               \
      _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) sums[l] +=                                           \
          __builtin_convertvector(*(const name##_quad *)(x + j + 4 * l), four);                                \
    for (; j < n; j++) sum += (double)x[j];                                                                    \
    four total = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                                    \
    return sum + ((total[0] + total[1]) + (total[2] + total[3]));                                              \
  }                                                                                                            \
  /* Scores become exponentials; shares[i] is what the row's sums so far are multiplied by. */                 \
  static void name##_pass(const block *b, T *scores, double *largest, double *total, double *shares) {         \
    for (int64_t i = 0; i < b->rows; i++, scores += b->keys) {                                                 \
      double before = largest[i], found = name##_largest(scores, b->keys);                                     \
      double now = found > before || found != found ? found : before;                                          \
      shares[i] = now == before ? 1 : exp(before - now);                                                       \
      largest[i] = now;                                                                                        \
      if (now == -INFINITY) memset(scores, 0, (size_t)b->keys * sizeof *scores);                               \
      else total[i] = total[i] * shares[i] + name##_raise(scores, b->keys, (T)now);                            \
    }                                                                                                          \
  }                                                                                                            \
  /* Scores become probabilities. */                                                                           \
  TD_CLONES static void name##_probabilities(T *scores, int64_t n, double log_sum) {                           \
    for (int64_t j = 0; j < n; j++) scores[j] = EXP(scores[j] - (T)log_sum);                            \
  }                                                                                                            \
  TD_CLONES static void name##_drop(const task *t, const block *b, T *x) { /* and scales what is kept */       \
    for (int64_t i = 0; i < b->rows; i++, x += b->keys) {                                                      \
      const uint8_t *kept = t->kept + ((b->head * t->queries + b->row + i) * t->keys + b->key);                \
      for (int64_t j = 0; j < b->keys; j++) x[j] = kept[j] ? x[j] * (T)t->kept_factor : 0;                     \
    }                                                                                                          \
  }                                                                                                            \
  /* gradients of scores, in place of those of probabilities */                                                \
  TD_CLONES static void name##_slopes(const T *restrict p, T *restrict d, int64_t n, double delta) {           \
    for (int64_t j = 0; j < n; j++) d[j] = p[j] * (d[j] - (T)delta);                                           \
  }
SCORES(float, single)
SCORES(double, twofold)

static void scores_of(const task *t, const block *b, void *scores) {
  multiply(t,
           (td_gemm_job){.b_transposed = true,
                         .m = b->rows,
                         .n = b->keys,
                         .k = t->size,
                         .a = rows_of(t, &t->q, b->head, b->row),
                         .lda = t->q.row,
                         .b = rows_of(t, &t->k, b->head, b->key),
                         .ldb = t->k.row,
                         .c = scores,
                         .ldc = b->keys},
           b->room);
  if (t->dtype == TD_FLOAT32) single_adapt(t, b, scores);
  else twofold_adapt(t, b, scores);
}

static void drop(const task *t, const block *b, void *x) {
  if (!t->kept) return;
  if (t->dtype == TD_FLOAT32) single_drop(t, b, x);
  else twofold_drop(t, b, x);
}

static bool next_keys(const task *t, block *b) { // the first block: keys 0. False: no key is left that a row may see
  b->key += b->keys;
  b->keys = least(KEYS, t->keys - b->key);
  return b->keys > 0 && !(t->causal && b->key >= b->row + b->rows);
}

// ---- forward ----

static int64_t forward_scratch(const task *t) { // room for products, largest, total, shares, sums, scores, product
  int64_t bytes = td_dtype_bytes(t->dtype), rows = query_rows(t);
  return rows * ((key_rows(t) + t->values) * bytes + (3 + t->values) * (int64_t)sizeof(double)) + 64 + product_bytes(t);
}

static int64_t blocks_each(const task *t) { return quotient(t->queries, QUERIES); }

#define FORWARD(T, name)                                                                                  \
  static void name##_block(const task *t, block *b, double *largest) {                                    \
    double *total = largest + b->rows, *shares = total + b->rows, *sums = shares + b->rows;               \
    T *scores = (T *)(sums + b->rows * t->values), *product = scores + b->rows * key_rows(t);             \
    T *y = (T *)t->y + (b->head * t->queries + b->row) * t->values;                                       \
    memset(sums, 0, (size_t)(b->rows * t->values) * sizeof *sums);                                        \
    for (int64_t i = 0; i < b->rows; i++) {                                                               \
      largest[i] = -INFINITY;                                                                             \
      total[i] = 0;                                                                                       \
    }                                                                                                     \
    while (next_keys(t, b)) {                                                                             \
      scores_of(t, b, scores);                                                                            \
      name##_pass(b, scores, largest, total, shares);                                                     \
      drop(t, b, scores);                                                                                 \
      multiply(t,                                                                                         \
               (td_gemm_job){.m = b->rows,                                                                \
                             .n = t->values,                                                              \
                             .k = b->keys,                                                                \
                             .a = scores,                                                                 \
                             .lda = b->keys,                                                              \
                             .b = rows_of(t, &t->v, b->head, b->key),                                     \
                             .ldb = t->v.row,                                                             \
                             .c = product,                                                                \
                             .ldc = t->values},                                                           \
               b->room);                                                                                  \
      for (int64_t i = 0; i < b->rows; i++)                                                               \
        name##_gain(sums + i * t->values, product + i * t->values, t->values, shares[i]);                 \
    }                                                                                                     \
    for (int64_t i = 0; i < b->rows; i++) {                                                               \
      bool none = largest[i] == -INFINITY; /* no key may be seen: 0, and probabilities 0 */               \
      name##_settle(y + i * t->values, sums + i * t->values, t->values, none ? 1 : 1 / total[i]);         \
      ((T *)t->logs_out)[b->head * t->queries + b->row + i] = (T)(none ? 0 : largest[i] + log(total[i])); \
    }                                                                                                     \
  }
FORWARD(float, single)
FORWARD(double, twofold)

static void forward_item(void *argument, int64_t item, void *scratch) {
  const task *t = argument;
  block b = {.head = item / blocks_each(t), .row = item % blocks_each(t) * QUERIES};
  b.rows = least(QUERIES, t->queries - b.row);
  b.room = scratch;
  double *largest = (double *)((char *)scratch + product_bytes(t));
  if (t->dtype == TD_FLOAT32) single_block(t, &b, largest);
  else twofold_block(t, &b, largest);
}

// ---- gradient ----

static int64_t adjoint_product(const task *t) { // elements of the largest one
  int64_t rows = query_rows(t), keys = key_rows(t), widest = t->size > t->values ? t->size : t->values;
  return (rows > keys ? rows : keys) * widest;
}

// Room for products, sums of dq, dk and dv, probabilities, slopes, product.
static int64_t adjoint_scratch(const task *t) {
  int64_t sums = t->queries * t->size + key_rows(t) * (t->size + t->values);
  int64_t blocks = 2 * query_rows(t) * key_rows(t) + adjoint_product(t);
  return product_bytes(t) + sums * (int64_t)sizeof(double) + quotient(blocks * td_dtype_bytes(t->dtype), 64) * 64;
}

static void add_product(const task *t, td_gemm_job job, double *sum, void *room) { // sum += the product
  job.ldc = job.n;
  multiply(t, job, room);
  if (t->dtype == TD_FLOAT32) single_gain(sum, (const float *)job.c, job.m * job.n, 1);
  else twofold_gain(sum, (const double *)job.c, job.m * job.n, 1);
}

static void settle(const task *t, char *to, const double *sum, int64_t size, double factor) {
  if (t->dtype == TD_FLOAT32) single_settle((float *)to, sum, size, factor);
  else twofold_settle((double *)to, sum, size, factor);
}

static void slopes_of(const task *t, const block *b, char *p, char *d) { // p: scores; d: gradients of probabilities
  const int64_t at = b->head * t->queries + b->row;
  for (int64_t i = 0; i < b->rows; i++) {
    int64_t from = i * b->keys;
    if (t->dtype == TD_FLOAT32) {
      single_probabilities((float *)p + from, b->keys, t->logs[at + i]);
      single_slopes((const float *)p + from, (float *)d + from, b->keys, t->deltas[at + i]);
    } else {
      twofold_probabilities((double *)p + from, b->keys, t->logs[at + i]);
      twofold_slopes((const double *)p + from, (double *)d + from, b->keys, t->deltas[at + i]);
    }
  }
}

// Queries pass by a block of keys: adds to dq of the part, fills dk and dv of the keys. sums: room for those of dk and
// dv, then for blocks.
static void adjoint_keys(const task *t, block *b, double *dq, double *sums) {
  int64_t bytes = td_dtype_bytes(t->dtype), tile = query_rows(t) * key_rows(t) * bytes;
  int64_t first = b->head * t->keys + b->key;
  double *dk = sums, *dv = dk + b->keys * t->size;
  char *p = (char *)(sums + key_rows(t) * (t->size + t->values)), *d = p + tile, *product = d + tile;
  memset(sums, 0, (size_t)(b->keys * (t->size + t->values)) * sizeof *sums);
  for (b->row = t->causal ? b->key / QUERIES * QUERIES : 0; b->row < t->queries; b->row += QUERIES) {
    b->rows = least(QUERIES, t->queries - b->row);
    const char *c = rows_of(t, &t->c, b->head, b->row);
    scores_of(t, b, p);
    multiply(t,
             (td_gemm_job){.b_transposed = true,
                           .m = b->rows,
                           .n = b->keys,
                           .k = t->values,
                           .a = c,
                           .lda = t->c.row,
                           .b = rows_of(t, &t->v, b->head, b->key),
                           .ldb = t->v.row,
                           .c = d,
                           .ldc = b->keys},
             b->room);
    drop(t, b, d);
    slopes_of(t, b, p, d);
    drop(t, b, p);
    add_product(t,
                (td_gemm_job){.a_transposed = true,
                              .m = b->keys,
                              .n = t->values,
                              .k = b->rows,
                              .a = p,
                              .lda = b->keys,
                              .b = c,
                              .ldb = t->c.row,
                              .c = product},
                dv, b->room);
    add_product(t,
                (td_gemm_job){.a_transposed = true,
                              .m = b->keys,
                              .n = t->size,
                              .k = b->rows,
                              .a = d,
                              .lda = b->keys,
                              .b = rows_of(t, &t->q, b->head, b->row),
                              .ldb = t->q.row,
                              .c = product},
                dk, b->room);
    add_product(t,
                (td_gemm_job){.m = b->rows,
                              .n = t->size,
                              .k = b->keys,
                              .a = d,
                              .lda = b->keys,
                              .b = rows_of(t, &t->k, b->head, b->key),
                              .ldb = t->k.row,
                              .c = product},
                dq + b->row * t->size, b->room);
  }
  settle(t, t->dk + first * t->size * bytes, dk, b->keys * t->size, t->scale);
  settle(t, t->dv + first * t->values * bytes, dv, b->keys * t->values, 1);
}

static int64_t head_bytes(const task *t) { return t->queries * t->size * td_dtype_bytes(t->dtype); } // of dq

static char *part_sum(const task *t, int64_t head, int64_t part) {
  return part ? t->sums + ((part - 1) * t->heads + head) * head_bytes(t) : t->dq + head * head_bytes(t);
}

static void adjoint_item(void *argument, int64_t item, void *scratch) {
  const task *t = argument;
  int64_t head = item / t->parts, part = item % t->parts, first = part * t->part;
  int64_t last = least(first + t->part, t->keys);
  double *dq = (double *)((char *)scratch + product_bytes(t)), *sums = dq + t->queries * t->size;
  memset(dq, 0, (size_t)(t->queries * t->size) * sizeof *dq);
  for (int64_t key = first; key < last; key += KEYS) {
    block b = {.head = head, .key = key, .keys = least(KEYS, last - key), .room = scratch};
    adjoint_keys(t, &b, dq, sums);
  }
  settle(t, part_sum(t, head, part), dq, t->queries * t->size, t->scale);
}

static void finish_heads(void *argument, int64_t first, int64_t last) { // adds the parts of dq
  const task *t = argument;
  int64_t size = t->queries * t->size;
  for (int64_t head = first; head < last; head++) {
    char *dq = part_sum(t, head, 0);
    for (int64_t part = 1; part < t->parts; part++) {
      const char *more = part_sum(t, head, part);
      if (t->dtype == TD_FLOAT32) single_plus((float *)dq, (const float *)more, size);
      else twofold_plus((double *)dq, (const double *)more, size);
    }
  }
}

static void part_keys(task *t) {
  t->parts = t->heads >= MANY ? 1 : least(PARTS, quotient(t->keys, KEYS));
  if (t->parts < 1) t->parts = 1;
  t->part = quotient(quotient(t->keys, t->parts), KEYS) * KEYS;
  if (t->part) t->parts = quotient(t->keys, t->part);
}

// ---- shapes ----

enum { DROPOUT, CAUSAL, SCALE, GROUPED }; // arguments of both rows
enum { MASK = 3, KEY }; // inputs of attention
enum { Y, LOGS, KEPT }; // its outputs
enum { A_C = 3, A_LOGS, A_DELTAS, A_MASK, A_KEPT }; // inputs of the adjoint

static bool given(const td_meta *meta) { return meta->rank <= TD_RANK_MAX; }

static int check_axes(td_infer *infer) {
  const td_meta *q = &infer->in[0], *k = &infer->in[1], *v = &infer->in[2];
  for (int i = 0; i < 3; i++)
    if (infer->in[i].rank < 2)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "%s must be [..., length, size]; it has rank %d",
                           infer->op->params[i].name, infer->in[i].rank);
  int64_t size = q->shape[q->rank - 1], keys = k->shape[k->rank - 2];
  if (size != k->shape[k->rank - 1])
    return td_infer_fail(infer, TD_ERROR_SHAPE, "q and k must have one size: %lld and %lld", (long long)size,
                         (long long)k->shape[k->rank - 1]);
  if (keys != v->shape[v->rank - 2])
    return td_infer_fail(infer, TD_ERROR_SHAPE, "k has %lld keys, v %lld values", (long long)keys,
                         (long long)v->shape[v->rank - 2]);
  if (!size) return td_infer_fail(infer, TD_ERROR_SHAPE, "q and k have size 0: there is nothing to compare");
  return TD_OK;
}

// The heads' axes of q, k and v together.
static int broadcast_heads(td_infer *infer, td_meta *heads) {
  *heads = (td_meta){.rank = (uint8_t)(infer->in[0].rank - 2)};
  memcpy(heads->shape, infer->in[0].shape, sizeof heads->shape);
  for (int i = 1; i < 3; i++) {
    const td_meta *in = &infer->in[i];
    td_meta more = *heads;
    int rank, axis;
    if (!td_shape_broadcast(heads->rank, heads->shape, in->rank - 2, in->shape, &rank, more.shape, &axis))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "the axes before the last two of q, k and v don't broadcast");
    more.rank = (uint8_t)rank;
    *heads = more;
  }
  return TD_OK;
}

static int check_mask(td_infer *infer, const td_meta *m, const td_meta *heads) {
  const td_meta *q = &infer->in[0], *k = &infer->in[1];
  td_meta whole = *heads;
  if (!given(m)) return TD_OK;
  if (m->dtype != TD_BOOL && !td_dtype_is_float(m->dtype)) {
    int code = td_infer_fail(infer, TD_ERROR_DTYPE, "mask must be bool (True takes part) or floating (added), not %s",
                             td_dtype_name(m->dtype));
    td_error_hint(infer->context, "mask != 0 makes it bool");
    return code;
  }
  whole.shape[whole.rank++] = q->shape[q->rank - 2];
  whole.shape[whole.rank++] = k->shape[k->rank - 2];
  return td_infer_fits(infer, "mask", m, &whole);
}

static int check_scale(td_infer *infer) {
  const td_arg *scale = &infer->args[SCALE];
  if (!scale->given || isfinite(scale->f)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "scale must be finite, not %g", scale->f);
}

static int check_rate(td_infer *infer) {
  double rate = infer->args[DROPOUT].f;
  if (rate >= 0 && rate <= 1) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "dropout_p must be from 0 to 1, not %g", rate);
}

// enable_gqa: a head of k and v serves a group of q's. From here on they count as if they were repeated.
static int check_groups(td_infer *infer) {
  td_meta *q = &infer->in[0];
  if (!infer->args[GROUPED].i) return TD_OK;
  for (int i = 0; i < 3; i++)
    if (infer->in[i].rank < 3 || infer->in[i].rank == TD_RANK_MAX)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "enable_gqa needs heads, [..., heads, length, size]; %s has rank %d",
                           infer->op->params[i].name, infer->in[i].rank);
  int64_t heads = q->shape[q->rank - 3];
  for (int i = 1; i < 3; i++) {
    int64_t *own = &infer->in[i].shape[infer->in[i].rank - 3];
    if (*own < 1 || heads % *own)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "the %lld heads of q are no multiple of the %lld of %s",
                           (long long)heads, (long long)*own, infer->op->params[i].name);
    *own = heads;
  }
  return TD_OK;
}

static int check_all(td_infer *infer, int mask, td_meta *heads) {
  int code = check_axes(infer);
  if (!code) code = check_scale(infer);
  if (!code) code = check_rate(infer);
  if (!code) code = check_groups(infer);
  if (!code) code = broadcast_heads(infer, heads);
  if (!code && heads->rank > TD_RANK_MAX - 2)
    code = td_infer_fail(infer, TD_ERROR_SHAPE, "more axes than tensors can have");
  return code ? code : check_mask(infer, &infer->in[mask], heads);
}

static uint8_t result_dtype(const td_infer *infer, int count) {
  uint8_t dtype = infer->in[0].dtype;
  for (int i = 1; i < count; i++) dtype = td_dtype_promote(dtype, infer->in[i].dtype);
  return td_dtype_is_float(dtype) ? dtype : TD_FLOAT32;
}

static td_meta matrices(const td_meta *heads, uint8_t dtype, int64_t rows, int64_t columns) {
  td_meta meta = *heads;
  meta.dtype = dtype;
  meta.shape[meta.rank++] = rows;
  meta.shape[meta.rank++] = columns;
  return meta;
}

static int attention_infer(td_infer *infer) {
  const td_meta *q = &infer->in[0], *k = &infer->in[1], *v = &infer->in[2];
  td_meta heads;
  int code = check_all(infer, MASK, &heads);
  if (code) return code;
  infer->out[0] = matrices(&heads, result_dtype(infer, 3), q->shape[q->rank - 2], v->shape[v->rank - 1]);
  uint8_t wide = infer->out[0].dtype == TD_FLOAT64 ? TD_FLOAT64 : TD_FLOAT32;
  infer->out[LOGS] = matrices(&heads, wide, q->shape[q->rank - 2], 1);
  infer->out[LOGS].rank--;
  infer->out[KEPT] = (td_meta){.dtype = TD_BOOL, .rank = 1};
  if (infer->args[DROPOUT].f > 0)
    infer->out[KEPT] = matrices(&heads, TD_BOOL, q->shape[q->rank - 2], k->shape[k->rank - 2]);
  return td_draw_check_key(infer);
}

static int adjoint_infer(td_infer *infer) {
  const td_meta *q = &infer->in[0], *k = &infer->in[1], *v = &infer->in[2], *c = &infer->in[A_C];
  td_meta heads;
  int code = check_all(infer, A_MASK, &heads);
  if (code) return code;
  uint8_t dtype = result_dtype(infer, 4);
  int64_t queries = q->shape[q->rank - 2], keys = k->shape[k->rank - 2], values = v->shape[v->rank - 1];
  td_meta y = matrices(&heads, dtype, queries, values), row = y;
  row.rank--;
  for (int i = A_LOGS; i <= A_DELTAS; i++)
    if (!td_shape_equal(row.rank, row.shape, infer->in[i].rank, infer->in[i].shape))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "%s must be one number a row", infer->op->params[i].name);
  if (!td_shape_equal(y.rank, y.shape, c->rank, c->shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "c must have the shape of the result");
  infer->out[0] = matrices(&heads, dtype, queries, q->shape[q->rank - 1]);
  infer->out[1] = matrices(&heads, dtype, keys, q->shape[q->rank - 1]);
  infer->out[2] = matrices(&heads, dtype, keys, values);
  return TD_OK;
}

// ---- kernels ----

static double kept_factor(const td_arg *args) { return args[DROPOUT].f < 1 ? 1 / (1 - args[DROPOUT].f) : 0; }

static task task_of(const td_call *call) { // sizes alone
  const td_view *q = &call->in[0], *k = &call->in[1], *v = &call->in[2], *out = &call->out[0];
  task t = {.dtype = out->dtype, .rank = out->rank - 2, .heads = 1, .causal = call->args[CAUSAL].i};
  for (int i = 0; i < t.rank; i++) t.heads *= t.shape[i] = out->shape[i];
  t.queries = q->shape[q->rank - 2];
  t.keys = k->shape[k->rank - 2];
  t.size = q->shape[q->rank - 1];
  t.values = v->shape[v->rank - 1];
  t.scale = call->args[SCALE].given ? call->args[SCALE].f : 1 / sqrt((double)t.size);
  t.kept_factor = kept_factor(call->args);
  return t;
}

static void task_place(const td_call *call, td_scratch *scratch, int mask, task *t) {
  operand *const all[] = {&t->q, &t->k, &t->v};
  for (int i = 0; i < 3; i++) operand_place(call, scratch, &call->in[i], t, all[i]);
  if (mask < call->in_count && call->in[mask].data) mask_place(call, scratch, &call->in[mask], t, &t->mask);
}

static int64_t attention_workspace(const td_call *call) {
  td_scratch scratch = {0};
  task t = task_of(call);
  task_place(call, &scratch, MASK, &t);
  return scratch.used + td_items_scratch(call->context->pool, t.heads * blocks_each(&t), forward_scratch(&t));
}

static void draw_blocks(void *argument, int64_t first, int64_t last) { // a: the rate
  const td_draw *d = argument;
  uint32_t bits[4 * TD_DRAW_BATCH];
  for (int64_t b = first; b < last; b += TD_DRAW_BATCH) {
    int64_t blocks = least(last - b, TD_DRAW_BATCH), at = b * 4, end = least(at + blocks * 4, d->out.size);
    td_random_blocks(d->seed, d->counter + (uint64_t)b, d->stream, blocks, bits);
    for (int64_t i = at; i < end; i++) d->mask[i] = (double)bits[i - at] * 0x1p-32 >= d->a;
  }
}

static int attention_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  task t = task_of(call);
  task_place(call, &scratch, MASK, &t);
  t.y = call->out[Y].data;
  t.logs_out = call->out[LOGS].data;
  if (call->args[DROPOUT].f > 0) {
    td_draw draw = {.out = call->out[KEPT], .mask = (uint8_t *)call->out[KEPT].data, .a = call->args[DROPOUT].f};
    td_draw_run(call, &draw, draw.out.size, 4, 16, draw_blocks);
    t.kept = draw.mask;
  }
  td_items_run(call->context->pool, t.heads * blocks_each(&t), forward_scratch(&t), forward_item, &t,
               td_scratch_take(&scratch, 0, 1));
  return TD_OK;
}

static int64_t sums_bytes(const task *t) { return quotient((t->parts - 1) * t->heads * head_bytes(t), 64) * 64; }

static task adjoint_place(const td_call *call, td_scratch *scratch) {
  td_pool *pool = call->context->pool;
  task t = task_of(call);
  part_keys(&t);
  task_place(call, scratch, A_MASK, &t);
  operand_place(call, scratch, &call->in[A_C], &t, &t.c);
  t.logs = td_scratch_view(scratch, pool, &call->in[A_LOGS], TD_FLOAT64);
  t.deltas = td_scratch_view(scratch, pool, &call->in[A_DELTAS], TD_FLOAT64);
  if (A_KEPT < call->in_count && call->in[A_KEPT].data)
    t.kept = td_scratch_view(scratch, pool, &call->in[A_KEPT], TD_BOOL);
  t.sums = td_scratch_take(scratch, sums_bytes(&t), 1);
  return t;
}

static int64_t adjoint_workspace(const td_call *call) {
  td_scratch scratch = {0};
  task t = adjoint_place(call, &scratch);
  return scratch.used + td_items_scratch(call->context->pool, t.heads * t.parts, adjoint_scratch(&t));
}

static int adjoint_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  task t = adjoint_place(call, &scratch);
  t.dq = call->out[0].data;
  t.dk = call->out[1].data;
  t.dv = call->out[2].data;
  td_items_run(call->context->pool, t.heads * t.parts, adjoint_scratch(&t), adjoint_item, &t,
               td_scratch_take(&scratch, 0, 1));
  td_ranges_run(call->context->pool, t.heads, t.queries * t.size * t.parts, finish_heads, &t);
  return TD_OK;
}

// ---- the same by ops, whole: for derivatives of second order, and of masks ----

typedef struct whole {
  td_scope *s;
  td_tensor *q, *k, *v, *c;
  td_tensor *p, *slope; // probabilities; gradients of scores: p (c v^T - delta)
  td_tensor *off; // c v^T - delta
  td_tensor *kept; // NULL: all
  double scale, kept_factor;
} whole;

static td_tensor *transposed(td_scope *s, td_tensor *t) { return td_swap_last(s, t); }
static td_tensor *scaled(const whole *w, td_tensor *t) {
  return td_multiply(w->s, t, td_scope_number(w->s, w->scale, t));
}

static td_tensor *dropped(const whole *w, td_tensor *t) { // as probabilities are
  if (!w->kept || !t) return t;
  td_tensor *scaled_up = td_multiply(w->s, t, td_scope_number(w->s, w->kept_factor, t));
  return td_where(w->s, w->kept, scaled_up, td_scope_number(w->s, 0, t));
}

static td_tensor *as_column(td_scope *s, td_tensor *t, const td_tensor *like) { // [..., L] against [..., L, S]
  td_arg axis = {.given = 1, .count = 1, .ints = {-1}};
  return t && like ? td_cast(s, td_expand_axes(s, t, &axis, t->rank + 1), like->dtype) : NULL;
}

static td_tensor *masked(td_scope *s, td_tensor *scores, td_tensor *mask, bool causal) {
  if (!scores) return NULL;
  td_tensor *never = td_scope_number(s, -INFINITY, scores);
  if (mask)
    scores =
        mask->dtype == TD_BOOL ? td_where(s, mask, scores, never) : td_add(s, scores, td_cast(s, mask, scores->dtype));
  if (!causal || !scores) return scores;
  int64_t rows = scores->shape[scores->rank - 2], columns = scores->shape[scores->rank - 1];
  td_tensor *row = td_reshape(s, td_arange(s, rows), 2, (int64_t[]){rows, 1});
  return td_where(s, td_greater(s, td_arange(s, columns), row), never, scores);
}

static whole whole_of(td_rule *rule) { // of the adjoint's inputs
  td_scope *s = &rule->scope;
  td_tensor *const *in = rule->in;
  whole w = {.s = s, .q = in[0], .k = in[1], .v = in[2], .c = in[A_C], .kept_factor = kept_factor(rule->args)};
  if (rule->in_count > A_KEPT) w.kept = in[A_KEPT];
  w.scale = rule->args[SCALE].given ? rule->args[SCALE].f : 1 / sqrt((double)w.q->shape[w.q->rank - 1]);
  td_tensor *scores = scaled(&w, td_matmul(s, w.q, transposed(s, w.k)));
  scores = masked(s, scores, rule->in_count > A_MASK ? in[A_MASK] : NULL, rule->args[CAUSAL].i);
  w.p = td_exp(s, td_subtract(s, scores, as_column(s, in[A_LOGS], scores)));
  w.off = dropped(&w, td_matmul(s, w.c, transposed(s, w.v)));
  w.off = td_subtract(s, w.off, as_column(s, in[A_DELTAS], scores));
  w.slope = td_multiply(s, w.p, w.off);
  return w;
}

static td_tensor *plus(td_scope *s, td_tensor *sum, td_tensor *more) { return sum ? td_add(s, sum, more) : more; }

static td_tensor *row_sums(td_scope *s, td_tensor *t) {
  td_arg axis = {.given = 1, .count = 1, .ints = {-1}};
  return td_sum(s, t, &axis, false);
}

// dq = scale slope k, dk = scale slope^T q, dv = p^T c, with cotangents uq, uk, uv: what reaches slope is
// scale (uq k^T + q uk^T), what reaches p is off times it and c uv^T. In p^T c and in off, c v^T - delta, p and c v^T
// are dropped where there is dropout.
static int adjoint_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  whole w = whole_of(rule);
  td_tensor *uq = rule->cotangent[0], *uk = rule->cotangent[1], *uv = rule->cotangent[2], *to_slope = NULL,
            *to_p = NULL;
  if (uq) to_slope = td_matmul(s, uq, transposed(s, w.k));
  if (uk) to_slope = plus(s, to_slope, td_matmul(s, w.q, transposed(s, uk)));
  if (to_slope) to_slope = scaled(&w, to_slope);
  if (to_slope) to_p = td_multiply(s, to_slope, w.off);
  if (uv) to_p = plus(s, to_p, dropped(&w, td_matmul(s, w.c, transposed(s, uv))));
  if (!to_p) return TD_OK;
  td_tensor *to_scores = td_multiply(s, to_p, w.p), *to_off = to_slope ? td_multiply(s, to_slope, w.p) : NULL;
  if (rule->needs[0]) {
    rule->din[0] = scaled(&w, td_matmul(s, to_scores, w.k));
    if (uk) rule->din[0] = td_add(s, rule->din[0], scaled(&w, td_matmul(s, w.slope, uk)));
  }
  if (rule->needs[1]) {
    rule->din[1] = scaled(&w, td_matmul(s, transposed(s, to_scores), w.q));
    if (uq) rule->din[1] = td_add(s, rule->din[1], scaled(&w, td_matmul(s, transposed(s, w.slope), uq)));
  }
  td_tensor *to_products = dropped(&w, to_off);
  if (rule->needs[2] && to_off) rule->din[2] = td_matmul(s, transposed(s, to_products), w.c);
  if (rule->needs[A_C] && to_off) rule->din[A_C] = td_matmul(s, to_products, w.v);
  if (rule->needs[A_C] && uv) rule->din[A_C] = plus(s, rule->din[A_C], td_matmul(s, dropped(&w, w.p), uv));
  if (rule->needs[A_LOGS]) rule->din[A_LOGS] = td_negative(s, row_sums(s, to_scores));
  if (rule->needs[A_DELTAS] && to_off) rule->din[A_DELTAS] = td_negative(s, row_sums(s, to_off));
  if (rule->in_count > A_MASK && rule->needs[A_MASK]) rule->din[A_MASK] = to_scores;
  return TD_OK;
}

// ---- rows ----

#define ARGUMENTS                                                                             \
  {.name = "dropout_p", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0)},             \
      {.name = "is_causal", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)},            \
      {.name = "scale", .kind = TD_PARAM_FLOAT}, {                                            \
    .name = "enable_gqa", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)                \
  }
#define MASK_PARAM \
  { .name = "mask", .kind = TD_PARAM_TENSOR_OPTIONAL, .alias = TD_ALIAS("attn_mask") }

static const td_op adjoint_op = {
    .name = "attention_adjoint",
    .params = {TD_TENSOR_PARAM("q"), TD_TENSOR_PARAM("k"), TD_TENSOR_PARAM("v"), TD_TENSOR_PARAM("c"),
               TD_TENSOR_PARAM("logs"), TD_TENSOR_PARAM("deltas"), MASK_PARAM,
               {.name = "kept", .kind = TD_PARAM_TENSOR_OPTIONAL}, ARGUMENTS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .outputs = 3,
    .infer = adjoint_infer,
    .kernel = adjoint_kernel,
    .workspace = adjoint_workspace,
    .vjp = adjoint_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc =
        "Gradients of scaled_dot_product_attention in q, k and v for the cotangent c. With p = exp(scale q k^T + mask "
        "- logs) and g = p (c v^T - deltas): scale g k, scale g^T q, p^T c; where kept is given, p^T c and c v^T are "
        "dropped as the probabilities were.\nGradient: by matrix products.",
    .samples = TD_SAMPLES{{"3,2; 4,2; 4,3; 3,3; 3; 3; none; none", NULL, 0.2, 1, NULL},
                          {"2,3,2; 1,4,2; 4,1; 2,3,1; 2,3; 2,3; 3,4; none", "is_causal=True, scale=0.5", 0.2, 1, NULL},
                          {"3,2; 4,2; 4,3; 3,3; 3; 3; 3,4; none", NULL, 0, 1,
                           "float64; float64; float64; float64; float64; float64; bool; float64"},
                          {"3,2; 4,2; 4,3; 3,3; 3; 3; none; 3,4", "dropout_p=0.25", 0, 1,
                           "float64; float64; float64; float64; float64; float64; bool; bool"},
                          TD_SAMPLES_END},
};

// k or v with each head as often as it serves one of q's, and back: the sum over a group.
static td_tensor *repeated(td_scope *s, td_tensor *t, int64_t heads) {
  int64_t shape[TD_RANK_MAX], head = t->rank - 3, own = t->shape[head];
  if (own == heads) return t;
  td_arg axis = {.given = 1, .count = 1, .ints = {head + 1}};
  td_tensor *wide = td_expand_axes(s, t, &axis, t->rank + 1);
  memcpy(shape, t->shape, sizeof shape);
  memmove(shape + head + 2, shape + head + 1, 2 * sizeof *shape);
  shape[head + 1] = heads / own;
  wide = td_broadcast_to(s, wide, t->rank + 1, shape);
  memcpy(shape, t->shape, sizeof shape);
  shape[head] = heads;
  return td_reshape(s, wide, t->rank, shape);
}

static td_tensor *gathered(td_scope *s, td_tensor *t, const td_meta *to) {
  int64_t shape[TD_RANK_MAX], own = to->shape[to->rank - 3];
  if (!t || t->shape[t->rank - 3] == own) return t;
  int head = t->rank - 3;
  memcpy(shape, t->shape, sizeof shape);
  memmove(shape + head + 2, shape + head + 1, 2 * sizeof *shape);
  shape[head] = own;
  shape[head + 1] = t->shape[head] / own;
  td_arg axis = {.given = 1, .count = 1, .ints = {head + 1}};
  return td_sum(s, td_reshape(s, t, t->rank + 1, shape), &axis, false);
}

static int attention_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[Y], *deltas = NULL, *made[TD_OUTPUT_MAX];
  uint8_t wide = rule->out_meta[LOGS].dtype;
  bool grouped = rule->args[GROUPED].i;
  if (c) deltas = row_sums(s, td_multiply(s, td_cast(s, c, wide), td_cast(s, rule->out[Y], wide)));
  else c = td_scope_filled(s, 0, &rule->out_meta[Y]);
  if (rule->cotangent[LOGS])
    deltas = deltas ? td_subtract(s, deltas, rule->cotangent[LOGS]) : td_negative(s, rule->cotangent[LOGS]);
  td_tensor *mask = rule->in_count > MASK ? rule->in[MASK] : NULL;
  td_tensor *in[] = {rule->in[0], rule->in[1], rule->in[2], c, rule->out[LOGS], deltas, mask, NULL};
  if (rule->args[DROPOUT].f > 0) in[A_KEPT] = rule->out[KEPT];
  td_arg args[] = {rule->args[DROPOUT], rule->args[CAUSAL], rule->args[SCALE], TD_INT_ARG(0)};
  for (int i = 1; i < 3 && grouped; i++) in[i] = repeated(s, in[i], in[0]->shape[in[0]->rank - 3]);
  if (s->failed || !deltas || !c) return TD_OK;
  if (td_op_apply(s->context, &adjoint_op, in, 8, args, made)) {
    s->failed = true;
    return TD_OK;
  }
  for (int i = 0; i < 3; i++) {
    td_tensor *t = td_scope_own(s, made[i]);
    if (rule->needs[i]) rule->din[i] = i && grouped ? gathered(s, t, &rule->in_meta[i]) : t;
  }
  if (!mask || !rule->needs[MASK]) return TD_OK;
  td_rule adjoint = *rule;
  memcpy(adjoint.in, in, sizeof in);
  adjoint.in_count = 8;
  adjoint.args = args;
  td_scope_open(&adjoint.scope, s->context);
  td_tensor *slope = whole_of(&adjoint).slope;
  if (slope) rule->din[MASK] = td_scope_own(s, td_tensor_ref(slope));
  else s->failed = true;
  td_scope_close(&adjoint.scope);
  return TD_OK;
}

static const td_op attention = {
    .name = "scaled_dot_product_attention",
    .params = {TD_TENSOR_PARAM("q"), TD_TENSOR_PARAM("k"), TD_TENSOR_PARAM("v"), MASK_PARAM, TD_KEY_PARAM, ARGUMENTS},
    .kind = TD_KIND_OPAQUE,
    .outputs = 3,
    .shown = 1,
    .infer = attention_infer,
    .kernel = attention_kernel,
    .workspace = attention_workspace,
    .vjp = attention_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc =
        "softmax(scale * q @ k.T + mask) @ v for q [..., L, E], k [..., S, E], v [..., S, V]; the axes before the last "
        "two broadcast.\n"
        "mask [..., L, S]: bool, True takes part; or floating, added to the scores. is_causal lets row i see the keys "
        "up to i. scale None is 1 / sqrt(E). A row that may see no key is 0, and so is its gradient. The scores are "
        "never held whole.\n"
        "With dropout_p each probability becomes 0 that often and is divided by 1 - dropout_p else. enable_gqa: the "
        "heads, third axis from the end, of k and v are fewer, and each serves a group of q's.\n"
        "Gradient: scores are computed again, block by block; that of a floating mask, and those of second order, "
        "hold them whole.",
    .example = "scaled_dot_product_attention(ones((1, 2)), ones((2, 2)), tensor([[1.], [3.]])).item()  # 2.0",
    .source = "Vaswani et al., 2017; Dao et al., FlashAttention, 2022",
    .samples = TD_SAMPLES{{"3,2; 4,2; 4,3; none; none", NULL, -1, 1, NULL},
                          {"2,2,3,2; 2,2,3,2; 2,2,3,2; none; none", "is_causal=True", -1, 1, NULL},
                          {"2,3,2; 4,2; 1,4,1; 3,4; none", "scale=0.7", -1, 1, NULL},
                          {"2,3,2; 2,4,2; 2,4,2; 2,1,4; none", NULL, -1, 1, "float64; float64; float64; bool; int64"},
                          {"4,2; 2,2; 2,3; 2; none", "is_causal=True", -1, 1, NULL},
                          {"2,2; 3,2; 3,2; 2,1; none", NULL, -1, 1, "float64; float64; float64; bool; int64"},
                          {"0,3,2; 0,4,2; 0,4,3; none; none", NULL, -1, 1, NULL},
                          {"4,3,2; 2,5,2; 2,5,3; none; none", "enable_gqa=True", -1, 1, NULL},
                          {"2,6,3,2; 3,3,2; 1,2,3,2; 6,1,3; none", "enable_gqa=True, is_causal=True", -1, 1, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_attention[] = {&attention, &adjoint_op, NULL};
