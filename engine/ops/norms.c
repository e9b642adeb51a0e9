#include "engine/ops/norms.h"

#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"

enum {
  LANES = 16,
  AHEAD = 512, // numbers fetched before they are needed: the processor's own foresight ends with a page
  SHORT = 32, // places below which a batch's channels are gathered first
  BLOCK = 16, // channels gathered at once
  PIECES = 16, // of the batch, in sums over it
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- loops over one run of numbers ----

typedef double four __attribute__((vector_size(32)));
#define FOUR(name, at) __builtin_convertvector(*(const name##_quad *)(at), four)

// mean and scale standardize x: h = (x - mean) * scale. w and b may be NULL: then 1 and 0, times and plus the numbers
// factor and shift.
#define LOOPS(T, name)                                                                                               \
  TD_CLONES static double name##_total(const T *x, int64_t n) {                                                      \
    double sums[LANES] = {0}, sum = 0;                                                                               \
    int64_t i = 0;                                                                                                   \
    for (; i + LANES <= n; i += LANES) {                                                                             \
      __builtin_prefetch(x + i + AHEAD);                                                                             \
      for (int l = 0; l < LANES; l++) sums[l] += (double)x[i + l];                                                   \
    }                                                                                                                \
    for (; i < n; i++) sum += (double)x[i];                                                                          \
    for (int l = 0; l < LANES; l++) sum += sums[l];                                                                  \
    return sum;                                                                                                      \
  }                                                                                                                  \
  TD_CLONES static double name##_squares(const T *x, int64_t n, double mean) {                                       \
    double sums[LANES] = {0}, sum = 0;                                                                               \
    int64_t i = 0;                                                                                                   \
    for (; i + LANES <= n; i += LANES)                                                                               \
      for (int l = 0; l < LANES; l++) {                                                                              \
        double d = (double)x[i + l] - mean;                                                                          \
        sums[l] += d * d;                                                                                            \
      }                                                                                                              \
    for (; i < n; i++) sum += ((double)x[i] - mean) * ((double)x[i] - mean);                                         \
    for (int l = 0; l < LANES; l++) sum += sums[l];                                                                  \
    return sum;                                                                                                      \
  }                                                                                                                  \
  TD_CLONES static void name##_standardize(const T *restrict x, T *restrict y, int64_t n, double mean, double scale, \
                                           const T *restrict w, const T *restrict b, double factor, double shift) {  \
    double both = scale * factor;                                                                                    \
    if (w && b)                                                                                                      \
      for (int64_t i = 0; i < n; i++) y[i] = (T)(((double)x[i] - mean) * scale * (double)w[i] + (double)b[i]);       \
    else if (w)                                                                                                      \
      for (int64_t i = 0; i < n; i++) y[i] = (T)(((double)x[i] - mean) * scale * (double)w[i]);                      \
    else if (b)                                                                                                      \
      for (int64_t i = 0; i < n; i++) y[i] = (T)(((double)x[i] - mean) * scale + (double)b[i]);                      \
    else                                                                                                             \
      for (int64_t i = 0; i < n; i++) y[i] = (T)(((double)x[i] - mean) * both + shift);                              \
  }                                                                                                                  \
  /* adds sums of c w and of c w h */                                                                                \
  typedef T name##_quad __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));                  \
  TD_CLONES static void name##_products(const T *x, const T *c, const T *w, int64_t n, double mean, double scale,    \
                                        double *plain, double *product) {                                            \
    four sums[4] = {0}, products[4] = {0};                                                                           \
    int64_t i = 0;                                                                                                   \
    for (; i + 16 <= n; i += 16) {                                                                                   \
      __builtin_prefetch(c + i + AHEAD);                                                                             \
      _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) {                                                          \
        four g = FOUR(name, c + i + 4 * l);                                                                          \
        if (w) g *= FOUR(name, w + i + 4 * l);                                                                       \
        sums[l] += g;                                                                                                \
        products[l] += g * ((FOUR(name, x + i + 4 * l) - mean) * scale);                                             \
      }                                                                                                              \
    }                                                                                                                \
    for (; i < n; i++) {                                                                                             \
      double g = (double)c[i] * (w ? (double)w[i] : 1);                                                              \
      *plain += g;                                                                                                   \
      *product += g * (((double)x[i] - mean) * scale);                                                               \
    }                                                                                                                \
    four sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                                            \
    four total = (products[0] + products[1]) + (products[2] + products[3]);                                          \
    *plain += (sum[0] + sum[1]) + (sum[2] + sum[3]);                                                                 \
    *product += (total[0] + total[1]) + (total[2] + total[3]);                                                       \
  }                                                                                                                  \
  /* dx = scale (c w factor - a - h b) */                                                                            \
  TD_CLONES static void name##_back(const T *restrict x, const T *restrict c, const T *restrict w, T *restrict dx,   \
                                    int64_t n, double mean, double scale, double factor, double a, double b) {       \
    if (w)                                                                                                           \
      for (int64_t i = 0; i < n; i++) {                                                                              \
        double h = ((double)x[i] - mean) * scale;                                                                    \
        dx[i] = (T)(scale * ((double)c[i] * (double)w[i] - a - h * b));                                              \
      }                                                                                                              \
    else                                                                                                             \
      for (int64_t i = 0; i < n; i++) {                                                                              \
        double h = ((double)x[i] - mean) * scale;                                                                    \
        dx[i] = (T)(scale * ((double)c[i] * factor - a - h * b));                                                    \
      }                                                                                                              \
  }                                                                                                                  \
  /* adds c h and c of each place to dw and db */                                                                    \
  TD_CLONES static void name##_weigh(const T *restrict x, const T *restrict c, int64_t n, double mean, double scale, \
                                     double *restrict dw, double *restrict db) {                                     \
    for (int64_t i = 0; i < n; i++) dw[i] += (double)c[i] * (((double)x[i] - mean) * scale);                         \
    for (int64_t i = 0; i < n; i++) db[i] += (double)c[i];                                                           \
  }
LOOPS(float, single)
LOOPS(double, twofold)

// ---- moments ----

typedef struct task {
  const td_norm *v;
  const char *x, *w, *b, *c;
  char *y, *dw, *db; // y: dx, of the adjoint
  double *mean, *variance;
  double *sums; // pieces x (dw, db) x groups x channels
  int64_t pieces, piece; // of the batch
} task;

typedef struct moments {
  double mean, variance, scale;
} moments;

static moments finish(const td_norm *v, double mean, double squares, int64_t n) {
  moments m = {mean, squares / (double)n, 0};
  m.scale = 1 / sqrt(m.variance + v->eps);
  return m;
}

// ---- one batch and group at a time ----

#define ROWS(T, name)                                                                                               \
  static moments name##_row_moments(const td_norm *v, const T *x) {                                                 \
    int64_t n = v->channels * v->places;                                                                            \
    double mean = v->centred ? name##_total(x, n) / (double)n : 0;                                                  \
    return finish(v, mean, name##_squares(x, n, mean), n);                                                          \
  }                                                                                                                 \
  static void name##_row(const task *t, int64_t row) {                                                              \
    const td_norm *v = t->v;                                                                                        \
    int64_t n = v->channels * v->places, first = row % v->groups * v->channels;                                     \
    const T *x = (const T *)t->x + row * n, *w = (const T *)t->w, *b = (const T *)t->b;                             \
    T *y = (T *)t->y + row * n;                                                                                     \
    moments m = name##_row_moments(v, x);                                                                           \
    if (v->places == 1) {                                                                                           \
      name##_standardize(x, y, n, m.mean, m.scale, w ? w + first : NULL, b ? b + first : NULL, 1, 0);               \
      return;                                                                                                       \
    }                                                                                                               \
    for (int64_t k = 0; k < v->channels; k++)                                                                       \
      name##_standardize(x + k * v->places, y + k * v->places, v->places, m.mean, m.scale, NULL, NULL,              \
                         w ? (double)w[first + k] : 1, b ? (double)b[first + k] : 0);                               \
  }                                                                                                                 \
  /* dw, db: of the group, added to */                                                                              \
  static void name##_row_adjoint(const task *t, int64_t row, double *dw, double *db) {                              \
    const td_norm *v = t->v;                                                                                        \
    int64_t n = v->channels * v->places, first = row % v->groups * v->channels;                                     \
    const T *x = (const T *)t->x + row * n, *c = (const T *)t->c + row * n, *w = (const T *)t->w;                   \
    T *dx = (T *)t->y + row * n;                                                                                    \
    moments m = name##_row_moments(v, x);                                                                           \
    double plain = 0, product = 0;                                                                                  \
    if (w) w += first;                                                                                              \
    if (v->places == 1) {                                                                                           \
      name##_products(x, c, w, n, m.mean, m.scale, &plain, &product);                                               \
      name##_weigh(x, c, n, m.mean, m.scale, dw, db);                                                               \
    }                                                                                                               \
    for (int64_t k = 0, at = 0; v->places > 1 && k < v->channels; k++, at += v->places) {                           \
      double shift = 0, weight = 0;                                                                                 \
      name##_products(x + at, c + at, NULL, v->places, m.mean, m.scale, &shift, &weight);                           \
      plain += shift * (w ? (double)w[k] : 1);                                                                      \
      product += weight * (w ? (double)w[k] : 1);                                                                   \
      dw[k] += weight;                                                                                              \
      db[k] += shift;                                                                                               \
    }                                                                                                               \
    plain = v->centred ? plain / (double)n : 0;                                                                     \
    product /= (double)n;                                                                                           \
    if (v->places == 1) name##_back(x, c, w, dx, n, m.mean, m.scale, 1, plain, product);                            \
    for (int64_t k = 0, at = 0; v->places > 1 && k < v->channels; k++, at += v->places)                             \
      name##_back(x + at, c + at, NULL, dx + at, v->places, m.mean, m.scale, w ? (double)w[k] : 1, plain, product); \
  }
ROWS(float, single)
ROWS(double, twofold)

static void forward_rows(void *argument, int64_t first, int64_t last) {
  const task *t = argument;
  for (int64_t row = first; row < last; row++) (t->v->dtype == TD_FLOAT32 ? single_row : twofold_row)(t, row);
}

static int64_t weights(const td_norm *v) { return v->groups * v->channels; }

// A piece of the batch for one group: its sums of dw and db are its own.
static void adjoint_rows(void *argument, int64_t first, int64_t last) {
  const task *t = argument;
  const td_norm *v = t->v;
  for (int64_t item = first; item < last; item++) {
    int64_t group = item % v->groups, piece = item / v->groups;
    double *dw = t->sums + piece * 2 * weights(v) + group * v->channels, *db = dw + weights(v);
    memset(dw, 0, (size_t)v->channels * sizeof *dw);
    memset(db, 0, (size_t)v->channels * sizeof *db);
    for (int64_t i = piece * t->piece; i < least((piece + 1) * t->piece, v->batch); i++)
      (v->dtype == TD_FLOAT32 ? single_row_adjoint : twofold_row_adjoint)(t, i * v->groups + group, dw, db);
  }
}

static void store(const td_norm *v, char *to, int64_t at, double value) {
  if (v->dtype == TD_FLOAT32) ((float *)to)[at] = (float)value;
  else ((double *)to)[at] = value;
}

static void add_pieces(void *argument, int64_t first, int64_t last) {
  const task *t = argument;
  for (int64_t k = first; k < last; k++) {
    double dw = 0, db = 0;
    for (int64_t p = 0; p < t->pieces; p++) {
      dw += t->sums[p * 2 * weights(t->v) + k];
      db += t->sums[p * 2 * weights(t->v) + weights(t->v) + k];
    }
    store(t->v, t->dw, k, dw);
    store(t->v, t->db, k, db);
  }
}

// ---- over the batch ----

// The numbers of one channel lie in count runs of length, pitch apart: in x itself, or gathered to one run.
typedef struct runs {
  int64_t count, length, pitch;
} runs;

static double parameter(const td_norm *v, const char *from, int64_t at, double otherwise) {
  if (!from) return otherwise;
  return v->dtype == TD_FLOAT32 ? (double)((const float *)from)[at] : ((const double *)from)[at];
}

#define BATCHES(T, name)                                                                                         \
  static moments name##_channel_moments(const td_norm *v, const T *x, runs r) {                                  \
    int64_t n = r.count * r.length;                                                                              \
    double sum = 0, squares = 0;                                                                                 \
    for (int64_t i = 0; i < r.count && v->centred; i++) sum += name##_total(x + i * r.pitch, r.length);          \
    double mean = sum / (double)n;                                                                               \
    for (int64_t i = 0; i < r.count; i++) squares += name##_squares(x + i * r.pitch, r.length, mean);            \
    return finish(v, mean, squares, n);                                                                          \
  }                                                                                                              \
  static void name##_channel(const task *t, int64_t group, const T *x, T *y, runs r) {                           \
    moments m = name##_channel_moments(t->v, x, r);                                                              \
    if (t->mean) t->mean[group] = m.mean;                                                                        \
    if (t->variance) t->variance[group] = m.variance;                                                            \
    double w = parameter(t->v, t->w, group, 1), b = parameter(t->v, t->b, group, 0);                             \
    for (int64_t i = 0; i < r.count; i++)                                                                        \
      name##_standardize(x + i * r.pitch, y + i * r.pitch, r.length, m.mean, m.scale, NULL, NULL, w, b);         \
  }                                                                                                              \
  static void name##_channel_adjoint(const task *t, int64_t group, const T *x, const T *c, T *dx, runs r) {      \
    moments m = name##_channel_moments(t->v, x, r);                                                              \
    double n = (double)(r.count * r.length), plain = 0, product = 0, w = parameter(t->v, t->w, group, 1);        \
    for (int64_t i = 0; i < r.count; i++)                                                                        \
      name##_products(x + i * r.pitch, c + i * r.pitch, NULL, r.length, m.mean, m.scale, &plain, &product);      \
    store(t->v, t->dw, group, product);                                                                          \
    store(t->v, t->db, group, plain);                                                                            \
    double a = t->v->centred ? plain * w / n : 0, b = product * w / n;                                           \
    for (int64_t i = 0; i < r.count; i++)                                                                        \
      name##_back(x + i * r.pitch, c + i * r.pitch, NULL, dx + i * r.pitch, r.length, m.mean, m.scale, w, a, b); \
  }                                                                                                              \
  static void name##_gather(const td_norm *v, const T *x, int64_t first, int64_t count, T *out) {                \
    int64_t length = v->batch * v->places;                                                                       \
    for (int64_t i = 0; i < v->batch; i++)                                                                       \
      for (int64_t g = 0; g < count; g++)                                                                        \
        for (int64_t p = 0; p < v->places; p++)                                                                  \
          out[g * length + i * v->places + p] = x[(i * v->groups + first + g) * v->places + p];                  \
  }                                                                                                              \
  static void name##_scatter(const td_norm *v, const T *from, int64_t first, int64_t count, T *y) {              \
    int64_t length = v->batch * v->places;                                                                       \
    for (int64_t i = 0; i < v->batch; i++)                                                                       \
      for (int64_t g = 0; g < count; g++)                                                                        \
        for (int64_t p = 0; p < v->places; p++)                                                                  \
          y[(i * v->groups + first + g) * v->places + p] = from[g * length + i * v->places + p];                 \
  }                                                                                                              \
  static void name##_block(const task *t, int64_t first, int64_t count, T *scratch) {                            \
    const td_norm *v = t->v;                                                                                     \
    int64_t length = v->batch * v->places, whole = count * length;                                               \
    T *x = scratch, *y = scratch + whole, *c = scratch + 2 * whole;                                              \
    runs r = {1, length, 0};                                                                                     \
    name##_gather(v, (const T *)t->x, first, count, x);                                                          \
    if (t->c) name##_gather(v, (const T *)t->c, first, count, c);                                                \
    for (int64_t g = 0; g < count; g++) {                                                                        \
      if (t->c) name##_channel_adjoint(t, first + g, x + g * length, c + g * length, y + g * length, r);         \
      else name##_channel(t, first + g, x + g * length, y + g * length, r);                                      \
    }                                                                                                            \
    name##_scatter(v, y, first, count, (T *)t->y);                                                               \
  }                                                                                                              \
  static void name##_group(const task *t, int64_t group) {                                                       \
    const td_norm *v = t->v;                                                                                     \
    int64_t at = group * v->places;                                                                              \
    runs r = {v->batch, v->places, v->groups * v->places};                                                       \
    if (t->c) name##_channel_adjoint(t, group, (const T *)t->x + at, (const T *)t->c + at, (T *)t->y + at, r);   \
    else name##_channel(t, group, (const T *)t->x + at, (T *)t->y + at, r);                                      \
  }
BATCHES(float, single)
BATCHES(double, twofold)

static bool gathered(const td_norm *v) { return v->places < SHORT; }
static int64_t block_bytes(const td_norm *v, bool adjoint) {
  int64_t block = least(BLOCK, v->groups) * v->batch * v->places * td_dtype_bytes(v->dtype);
  return gathered(v) ? block * (adjoint ? 3 : 2) : 0;
}
static int64_t block_count(const td_norm *v) { return gathered(v) ? quotient(v->groups, BLOCK) : v->groups; }

static void batch_item(void *argument, int64_t item, void *scratch) {
  const task *t = argument;
  bool single = t->v->dtype == TD_FLOAT32;
  if (!gathered(t->v)) {
    (single ? single_group : twofold_group)(t, item);
    return;
  }
  int64_t first = item * BLOCK, count = least(BLOCK, t->v->groups - first);
  if (single) single_block(t, first, count, scratch);
  else twofold_block(t, first, count, scratch);
}

// ---- entries ----

static void cut_batch(task *t) {
  t->piece = quotient(t->v->batch, least(PIECES, t->v->batch < 1 ? 1 : t->v->batch));
  t->pieces = t->piece ? quotient(t->v->batch, t->piece) : 0;
}

int64_t td_norm_workspace(const td_pool *pool, const td_norm *v, bool adjoint) {
  task t = {.v = v};
  if (v->over_batch) return td_items_scratch(pool, block_count(v), block_bytes(v, adjoint));
  cut_batch(&t);
  return adjoint ? t.pieces * 2 * weights(v) * (int64_t)sizeof *t.sums : 0;
}

void td_norm_run(td_pool *pool, const td_norm *v, const char *x, const char *w, const char *b, char *y, double *mean,
                 double *variance, void *workspace) {
  task t = {.v = v, .x = x, .w = w, .b = b, .y = y, .mean = mean, .variance = variance};
  if (v->over_batch) td_items_run(pool, block_count(v), block_bytes(v, false), batch_item, &t, workspace);
  else td_ranges_run(pool, v->batch * v->groups, v->channels * v->places * 2, forward_rows, &t);
}

void td_norm_adjoint_run(td_pool *pool, const td_norm *v, const char *x, const char *w, const char *c, char *dx,
                         char *dw, char *db, void *workspace) {
  task t = {.v = v, .x = x, .w = w, .c = c, .y = dx, .dw = dw, .db = db, .sums = workspace};
  if (!weights(v)) return;
  if (v->over_batch) {
    td_items_run(pool, block_count(v), block_bytes(v, true), batch_item, &t, workspace);
    return;
  }
  cut_batch(&t);
  td_ranges_run(pool, t.pieces * v->groups, t.piece * v->channels * v->places * 4, adjoint_rows, &t);
  td_ranges_run(pool, weights(v), t.pieces, add_pieces, &t);
}
