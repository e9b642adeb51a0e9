#include "engine/ops/norms.h"

#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/map.h"

enum {
  LANES = 16,
  FOURS = 4 * LANES,
  AHEAD = 1024, // numbers fetched before they are needed: the processor's own foresight ends with a page
  SHORT = 32, // places below which a batch's channels stand side by side
  WIDTH = 64, // columns side by side
  PIECES = 16, // of the batch, in sums over it
  RUN = 16, // rows whose gradients of weights are added up before they are widened
  QUICK = 64, // numbers from which float will do
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

typedef struct task {
  const td_norm *v;
  const char *x, *w, *b, *c;
  char *y, *dw, *db; // y: dx, of the adjoint
  double *mean, *variance;
  double *sums; // pieces x (dw, db) x groups x channels
  float *few; // as many: of a few rows
  int64_t pieces, piece; // of the batch
} task;

static int64_t weights(const td_norm *v) { return v->groups * v->channels; }

static double parameter(const td_norm *v, const char *from, int64_t at, double otherwise) {
  if (!from) return otherwise;
  return v->dtype == TD_FLOAT32 ? (double)((const float *)from)[at] : ((const double *)from)[at];
}

static void store(const td_norm *v, char *to, int64_t at, double value) {
  if (v->dtype == TD_FLOAT32) ((float *)to)[at] = (float)value;
  else ((double *)to)[at] = value;
}

// ---- moments ----

typedef struct moments {
  double near, off; // the mean, as a sum: of what numbers near it lie from near, off may be taken without loss
  double variance, scale;
} moments;

// Of n numbers whose distances from near, which is close to their mean, have this sum and these squares.
static moments finish(const td_norm *v, double near, double sum, double squares, int64_t n) {
  if (!n) return (moments){0};
  double off = v->centred ? sum / (double)n : 0, variance = squares / (double)n - off * off;
  if (variance < 0) variance = 0;
  return (moments){near, off, variance, 1 / sqrt(variance + v->eps)};
}

// What float squares and scales can hold: else double ones are taken.
static bool is_ordinary(moments m) { return m.variance > 1e-20 && m.variance < 1e20; }
static bool is_any(moments m) {
  (void)m;
  return true;
}

// ---- loops over runs of numbers ----

// h standardizes x: its distance from the mean, near + off, times scale.
#define DISTANCE(A, x) (((A)(x) - near) - off)

// h, g = c w and what goes to dw and db, at a place.
#define GRADIENT_AT(A, W, place, p)                                                                                   \
  A h_##p = DISTANCE(A, x[place]) * scale, c_##p = (A)c[place], g_##p = w ? c_##p * (A)w[place] : c_##p;              \
  if (dw) {                                                                                                           \
    dw[place] += (W)(c_##p * h_##p);                                                                                  \
    db[place] += (W)c_##p;                                                                                            \
  }

#define INLINE static inline __attribute__((always_inline))

// Lanes as loops that become vectors: the compiler doesn't take them apart.
#define EACH_LANE TD_INDEPENDENT _Pragma("GCC unroll 1") for (int l = 0; l < LANES; l++)

#define FOLD_LANES(lanes)                                                                                             \
  for (int half = LANES / 2; half; half /= 2)                                                                         \
    for (int l = 0; l < half; l++) (lanes)[l] += (lanes)[l + half]

// Runs of numbers that lie pitch apart; from the w and b of one to those of the next it is step.
typedef struct runs {
  int64_t count, length, pitch, step;
} runs;

typedef struct totals { // of numbers, and of their products with others or themselves
  double sum, product;
} totals;

// Numbers of type T, worked on as A. Sums of four are A, those of sums double. W: of dw and db.
#define LOOPS(T, A, W, name)                                                                                          \
  INLINE double name##_total(runs r, const T *x) {                                                                    \
    double lanes[LANES] = {0}, rest = 0;                                                                              \
    for (int64_t run = 0; run < r.count; run++, x += r.pitch) {                                                       \
      int64_t i = 0;                                                                                                  \
      for (; i + FOURS <= r.length; i += FOURS) {                                                                     \
        A fours[LANES];                                                                                               \
        for (int l = 0; l < FOURS; l += LANES) __builtin_prefetch(x + i + l + AHEAD);                                 \
        EACH_LANE {                                                                                                   \
          const T *at = x + i + l;                                                                                    \
          fours[l] = ((A)at[0] + (A)at[LANES]) + ((A)at[2 * LANES] + (A)at[3 * LANES]);                               \
        }                                                                                                             \
        EACH_LANE lanes[l] += (double)fours[l];                                                                       \
      }                                                                                                               \
      for (; i + LANES <= r.length; i += LANES) EACH_LANE lanes[l] += (double)x[i + l];                               \
      for (; i < r.length; i++) rest += (double)x[i];                                                                 \
    }                                                                                                                 \
    FOLD_LANES(lanes);                                                                                                \
    return lanes[0] + rest;                                                                                           \
  }                                                                                                                   \
  /* sums of distances from near, and of their squares */                                                             \
  INLINE totals name##_spread(runs r, const T *x, A near) {                                                           \
    double lanes[LANES] = {0}, squares[LANES] = {0}, rest = 0, rest_square = 0;                                       \
    for (int64_t run = 0; run < r.count; run++, x += r.pitch) {                                                       \
      int64_t i = 0;                                                                                                  \
      for (; i + FOURS <= r.length; i += FOURS) {                                                                     \
        A fours[LANES], four_squares[LANES];                                                                          \
        EACH_LANE {                                                                                                   \
          const T *at = x + i + l;                                                                                    \
          A p = (A)at[0] - near, q = (A)at[LANES] - near, s = (A)at[2 * LANES] - near, t = (A)at[3 * LANES] - near;   \
          fours[l] = (p + q) + (s + t);                                                                               \
          four_squares[l] = (p * p + q * q) + (s * s + t * t);                                                        \
        }                                                                                                             \
        EACH_LANE lanes[l] += (double)fours[l];                                                                       \
        EACH_LANE squares[l] += (double)four_squares[l];                                                              \
      }                                                                                                               \
      for (; i + LANES <= r.length; i += LANES)                                                                       \
        EACH_LANE {                                                                                                   \
          A d = (A)x[i + l] - near;                                                                                   \
          lanes[l] += (double)d;                                                                                      \
          squares[l] += (double)(d * d);                                                                              \
        }                                                                                                             \
      for (; i < r.length; i++) {                                                                                     \
        double d = (double)x[i] - (double)near;                                                                       \
        rest += d;                                                                                                    \
        rest_square += d * d;                                                                                         \
      }                                                                                                               \
    }                                                                                                                 \
    FOLD_LANES(lanes);                                                                                                \
    FOLD_LANES(squares);                                                                                              \
    return (totals){lanes[0] + rest, squares[0] + rest_square};                                                       \
  }                                                                                                                   \
  /* y = h w + b of one run: w and b for each place, or NULL for 1 and 0 */                                           \
  INLINE void name##_standardize(const T *x, T *y, int64_t n, moments m, const T *w, const T *b) {                    \
    A near = (A)m.near, off = (A)m.off, scale = (A)m.scale;                                                           \
    if (w && b)                                                                                                       \
      TD_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = (T)(DISTANCE(A, x[i]) * scale * (A)w[i] + (A)b[i]);       \
    else if (w)                                                                                                       \
      TD_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = (T)(DISTANCE(A, x[i]) * scale * (A)w[i]);                 \
    else if (b)                                                                                                       \
      TD_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = (T)(DISTANCE(A, x[i]) * scale + (A)b[i]);                 \
    else                                                                                                              \
      TD_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = (T)(DISTANCE(A, x[i]) * scale);                           \
  }                                                                                                                   \
  /* the same: w and b for each run, r.step from one to the next */                                                   \
  INLINE void name##_standardize_runs(runs r, const T *x, T *y, moments m, const T *w, const T *b) {                  \
    A near = (A)m.near, off = (A)m.off;                                                                               \
    for (int64_t run = 0; run < r.count; run++, x += r.pitch, y += r.pitch) {                                         \
      A scale = (A)(w ? m.scale * (double)w[run * r.step] : m.scale), shift = b ? (A)b[run * r.step] : 0;             \
      TD_INDEPENDENT for (int64_t i = 0; i < r.length; i++) y[i] = (T)(DISTANCE(A, x[i]) * scale + shift);            \
    }                                                                                                                 \
  }                                                                                                                   \
  /* sums of g = c w and of g h; and, where dw and db are given, c h and c of each place are added to them */         \
  INLINE totals name##_products_of(runs r, const T *x, const T *c, const T *w, moments m, W *dw, W *db) {             \
    A near = (A)m.near, off = (A)m.off, scale = (A)m.scale;                                                           \
    double sums[LANES] = {0}, products[LANES] = {0}, rest = 0, rest_product = 0;                                      \
    for (int64_t run = 0; run < r.count; run++, x += r.pitch, c += r.pitch) {                                         \
      int64_t i = 0;                                                                                                  \
      for (; i + FOURS <= r.length; i += FOURS) {                                                                     \
        A fours[LANES], four_products[LANES];                                                                         \
        for (int l = 0; l < FOURS; l += LANES) __builtin_prefetch(c + i + l + AHEAD);                                 \
        EACH_LANE {                                                                                                   \
          GRADIENT_AT(A, W, i + l, p)                                                                                 \
          GRADIENT_AT(A, W, i + l + LANES, q)                                                                         \
          GRADIENT_AT(A, W, i + l + 2 * LANES, r)                                                                     \
          GRADIENT_AT(A, W, i + l + 3 * LANES, s)                                                                     \
          fours[l] = (g_p + g_q) + (g_r + g_s);                                                                       \
          four_products[l] = (g_p * h_p + g_q * h_q) + (g_r * h_r + g_s * h_s);                                       \
        }                                                                                                             \
        EACH_LANE sums[l] += (double)fours[l];                                                                        \
        EACH_LANE products[l] += (double)four_products[l];                                                            \
      }                                                                                                               \
      for (; i + LANES <= r.length; i += LANES)                                                                       \
        EACH_LANE {                                                                                                   \
          GRADIENT_AT(A, W, i + l, p)                                                                                 \
          sums[l] += (double)g_p;                                                                                     \
          products[l] += (double)(g_p * h_p);                                                                         \
        }                                                                                                             \
      for (; i < r.length; i++) {                                                                                     \
        GRADIENT_AT(A, W, i, p)                                                                                       \
        rest += (double)g_p;                                                                                          \
        rest_product += (double)g_p * (double)h_p;                                                                    \
      }                                                                                                               \
    }                                                                                                                 \
    FOLD_LANES(sums);                                                                                                 \
    FOLD_LANES(products);                                                                                             \
    return (totals){sums[0] + rest, products[0] + rest_product};                                                      \
  }                                                                                                                   \
  INLINE totals name##_products(runs r, const T *x, const T *c, moments m) {                                          \
    return name##_products_of(r, x, c, NULL, m, NULL, NULL);                                                          \
  }                                                                                                                   \
  INLINE totals name##_weigh(runs r, const T *x, const T *c, const T *w, moments m, W *dw, W *db) {                   \
    return w ? name##_products_of(r, x, c, w, m, dw, db) : name##_products_of(r, x, c, NULL, m, dw, db);              \
  }                                                                                                                   \
  /* dx = scale (c w - plain - h product) of one run: w for each place, or NULL for 1 */                              \
  INLINE void name##_back(const T *x, const T *c, const T *w, T *dx, int64_t n, moments m, double plain,              \
                          double product) {                                                                           \
    A near = (A)m.near, off = (A)m.off, scale = (A)m.scale, a = (A)plain, b = (A)(m.scale * product);                 \
    if (w)                                                                                                            \
      TD_INDEPENDENT for (int64_t i = 0; i < n; i++)                                                                  \
        dx[i] = (T)(scale * (((A)c[i] * (A)w[i] - a) - DISTANCE(A, x[i]) * b));                                       \
    else                                                                                                              \
      TD_INDEPENDENT for (int64_t i = 0; i < n; i++) dx[i] = (T)(scale * (((A)c[i] - a) - DISTANCE(A, x[i]) * b));    \
  }                                                                                                                   \
  /* the same: w for each run */                                                                                      \
  INLINE void name##_back_runs(runs r, const T *x, const T *c, const T *w, T *dx, moments m, double plain,            \
                               double product) {                                                                      \
    A near = (A)m.near, off = (A)m.off, scale = (A)m.scale, a = (A)plain, b = (A)(m.scale * product);                 \
    for (int64_t run = 0; run < r.count; run++, x += r.pitch, c += r.pitch, dx += r.pitch) {                          \
      A factor = w ? (A)w[run * r.step] : 1;                                                                          \
      TD_INDEPENDENT for (int64_t i = 0; i < r.length; i++)                                                           \
        dx[i] = (T)(scale * (((A)c[i] * factor - a) - DISTANCE(A, x[i]) * b));                                        \
    }                                                                                                                 \
  }
LOOPS(float, float, float, quick)
LOOPS(float, double, double, single)
LOOPS(double, double, double, twofold)

// ---- one batch and group at a time ----

// name_row and name_row_adjoint: false where the numbers don't FIT; then nothing is written.
#define ROWS(T, A, W, name, FIT)                                                                                      \
  INLINE moments name##_moments(const td_norm *v, runs r, const T *x) {                                               \
    int64_t n = r.count * r.length;                                                                                   \
    A near = v->centred ? (A)(name##_total(r, x) / (double)n) : 0;                                                    \
    totals t = name##_spread(r, x, near);                                                                             \
    return finish(v, (double)near, t.sum, t.product, n);                                                              \
  }                                                                                                                   \
  TD_CLONES static bool name##_row(const task *t, int64_t row) {                                                      \
    const td_norm *v = t->v;                                                                                          \
    int64_t n = v->channels * v->places, first = row % v->groups * v->channels;                                       \
    const T *x = (const T *)t->x + row * n, *w = t->w ? (const T *)t->w + first : NULL;                               \
    const T *b = t->b ? (const T *)t->b + first : NULL;                                                               \
    T *y = (T *)t->y + row * n;                                                                                       \
    moments m = name##_moments(v, (runs){1, n, 0, 0}, x);                                                             \
    if (!FIT(m)) return false;                                                                                        \
    if (v->places == 1) name##_standardize(x, y, n, m, w, b);                                                         \
    else name##_standardize_runs((runs){v->channels, v->places, v->places, 1}, x, y, m, w, b);                        \
    return true;                                                                                                      \
  }                                                                                                                   \
  /* dw, db: of the group, added to */                                                                                \
  TD_CLONES static bool name##_row_adjoint(const task *t, int64_t row, W *dw, W *db) {                                \
    const td_norm *v = t->v;                                                                                          \
    int64_t n = v->channels * v->places, first = row % v->groups * v->channels;                                       \
    const T *x = (const T *)t->x + row * n, *c = (const T *)t->c + row * n;                                           \
    const T *w = t->w ? (const T *)t->w + first : NULL;                                                               \
    T *dx = (T *)t->y + row * n;                                                                                      \
    const runs whole = {1, n, 0, 0}, one = {1, v->places, 0, 0}, each = {v->channels, v->places, v->places, 1};       \
    moments m = name##_moments(v, whole, x);                                                                          \
    totals all = {0, 0};                                                                                              \
    if (!FIT(m)) return false;                                                                                        \
    if (v->places == 1) all = name##_weigh(whole, x, c, w, m, dw, db);                                                \
    for (int64_t k = 0, at = 0; v->places > 1 && k < v->channels; k++, at += v->places) {                             \
      totals own = name##_products(one, x + at, c + at, m);                                                           \
      all.sum += own.sum * (w ? (double)w[k] : 1);                                                                    \
      all.product += own.product * (w ? (double)w[k] : 1);                                                            \
      dw[k] += (W)own.product;                                                                                        \
      db[k] += (W)own.sum;                                                                                            \
    }                                                                                                                 \
    double plain = v->centred ? all.sum / (double)n : 0, product = all.product / (double)n;                           \
    if (v->places == 1) name##_back(x, c, w, dx, n, m, plain, product);                                               \
    else name##_back_runs(each, x, c, w, dx, m, plain, product);                                                      \
    return true;                                                                                                      \
  }
ROWS(float, float, float, quick, is_ordinary)
ROWS(float, double, double, single, is_any)
ROWS(double, double, double, twofold, is_any)

static bool may_be_quick(const td_norm *v, int64_t n) { return v->dtype == TD_FLOAT32 && n >= QUICK; }

static void forward_rows(void *argument, int64_t first, int64_t last) {
  const task *t = argument;
  bool quick = may_be_quick(t->v, t->v->channels * t->v->places);
  for (int64_t row = first; row < last; row++)
    if (!quick || !quick_row(t, row)) (t->v->dtype == TD_FLOAT32 ? single_row : twofold_row)(t, row);
}

static void widen_few(const td_norm *v, float *few, double *sums) { // and begins new ones
  for (int part = 0; part < 2; part++, few += weights(v), sums += weights(v))
    for (int64_t k = 0; k < v->channels; k++) {
      sums[k] += (double)few[k];
      few[k] = 0;
    }
}

// A piece of the batch for one group: its sums of dw and db are its own.
static void adjoint_rows(void *argument, int64_t first, int64_t last) {
  const task *t = argument;
  const td_norm *v = t->v;
  bool quick = may_be_quick(v, v->channels * v->places);
  for (int64_t item = first; item < last; item++) {
    int64_t group = item % v->groups, piece = item / v->groups, at = piece * 2 * weights(v) + group * v->channels;
    double *dw = t->sums + at, *db = dw + weights(v);
    float *few = quick ? t->few + at : NULL;
    memset(dw, 0, (size_t)v->channels * sizeof *dw);
    memset(db, 0, (size_t)v->channels * sizeof *db);
    if (quick) {
      memset(few, 0, (size_t)v->channels * sizeof *few);
      memset(few + weights(v), 0, (size_t)v->channels * sizeof *few);
    }
    int64_t begin = piece * t->piece, end = least(begin + t->piece, v->batch);
    for (int64_t i = begin; i < end; i++) {
      int64_t row = i * v->groups + group;
      if (!quick || !quick_row_adjoint(t, row, few, few + weights(v)))
        (v->dtype == TD_FLOAT32 ? single_row_adjoint : twofold_row_adjoint)(t, row, dw, db);
      if (quick && ((i - begin) % RUN == RUN - 1 || i == end - 1)) widen_few(v, few, dw);
    }
  }
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

// ---- over the batch: a channel at a time ----

// The numbers of a channel lie in a run for each example.
#define BATCHES(T, name, FIT)                                                                                         \
  TD_CLONES static bool name##_channel(const task *t, int64_t group) {                                                \
    const td_norm *v = t->v;                                                                                          \
    const runs r = {v->batch, v->places, v->groups * v->places, 0};                                                   \
    int64_t first = group * v->places;                                                                                \
    const T *x = (const T *)t->x + first, *w = t->w ? (const T *)t->w + group : NULL;                                 \
    moments m = name##_moments(v, r, x);                                                                              \
    if (!FIT(m)) return false;                                                                                        \
    if (t->mean) t->mean[group] = m.near + m.off;                                                                     \
    if (t->variance) t->variance[group] = m.variance;                                                                 \
    if (!t->c) {                                                                                                      \
      name##_standardize_runs(r, x, (T *)t->y + first, m, w, t->b ? (const T *)t->b + group : NULL);                  \
      return true;                                                                                                    \
    }                                                                                                                 \
    double each = (w ? (double)*w : 1) / (double)(v->batch * v->places);                                              \
    totals all = name##_products(r, x, (const T *)t->c + first, m);                                                   \
    store(v, t->dw, group, all.product);                                                                              \
    store(v, t->db, group, all.sum);                                                                                  \
    name##_back_runs(r, x, (const T *)t->c + first, w, (T *)t->y + first, m, v->centred ? all.sum * each : 0,         \
                     all.product * each);                                                                             \
    return true;                                                                                                      \
  }
BATCHES(float, quick, is_ordinary)
BATCHES(float, single, is_any)
BATCHES(double, twofold, is_any)

static void channel_item(const task *t, int64_t group) {
  if (may_be_quick(t->v, t->v->batch * t->v->places) && quick_channel(t, group)) return;
  (t->v->dtype == TD_FLOAT32 ? single_channel : twofold_channel)(t, group);
}

// ---- over the batch: channels side by side ----

// Where a channel has few places its numbers are columns of a matrix; several of its rows are one where they are short.
typedef struct strip {
  int64_t first, channels; // of x
  int64_t rows, columns, pitch; // columns: places of the channels, once for each row that is part of one
  int64_t rest; // rows that are left
} strip;

static int64_t strip_channels(const td_norm *v) { return v->places ? WIDTH / v->places : WIDTH; }

static strip strip_of(const td_norm *v, int64_t first) {
  strip s = {.first = first, .pitch = v->groups * v->places};
  s.channels = least(strip_channels(v), v->groups - first);
  s.columns = s.channels * v->places;
  int64_t together = s.columns && s.columns == s.pitch ? WIDTH / s.columns : 1;
  s.rows = v->batch / together;
  s.rest = v->batch % together;
  s.columns *= together;
  s.pitch *= together;
  return s;
}

// Calls work(x + OFFSET, rows, columns, pitch, ...) for the rows and for those that are left, whose columns are fewer.
#define EACH_PART(s, v, work)                                                                                         \
  do {                                                                                                                \
    int64_t at = 0, rows = (s)->rows, columns = (s)->columns;                                                         \
    work;                                                                                                             \
    at = rows * (s)->pitch;                                                                                           \
    rows = 1;                                                                                                         \
    columns = (s)->rest * (v)->groups * (v)->places;                                                                  \
    if (columns) work;                                                                                                \
  } while (0)

static int64_t channel_of(const strip *s, const td_norm *v, int64_t column) { return column / v->places % s->channels; }

static void fold_columns(const strip *s, const td_norm *v, const double *columns, double *channels) {
  for (int64_t k = 0; k < s->channels; k++) channels[k] = 0;
  for (int64_t i = 0; i < s->columns; i++) channels[channel_of(s, v, i)] += columns[i];
}

#define COLUMNS(T, A, name, FIT)                                                                                      \
  /* what columns need to know; h as above, y = h w + b, dx = scale (c w - less - h product) */                       \
  typedef struct name##_columns {                                                                                     \
    A near[WIDTH], off[WIDTH], scale[WIDTH], w[WIDTH], b[WIDTH], less[WIDTH], product[WIDTH];                         \
    double sums[WIDTH], products[WIDTH];                                                                              \
    moments m[WIDTH]; /* of the channels */                                                                           \
  } name##_columns;                                                                                                   \
  TD_CLONES static void name##_column_totals(name##_columns *k, const T *x, int64_t rows, int64_t columns,            \
                                             int64_t pitch) {                                                         \
    int64_t row = 0;                                                                                                  \
    for (; row + 4 <= rows; row += 4, x += 4 * pitch)                                                                 \
      for (int64_t i = 0; i < columns; i++)                                                                           \
        k->sums[i] += (double)(((A)x[i] + (A)x[i + pitch]) + ((A)x[i + 2 * pitch] + (A)x[i + 3 * pitch]));            \
    for (; row < rows; row++, x += pitch)                                                                             \
      for (int64_t i = 0; i < columns; i++) k->sums[i] += (double)x[i];                                               \
  }                                                                                                                   \
  TD_CLONES static void name##_column_spread(name##_columns *k, const T *x, int64_t rows, int64_t columns,            \
                                             int64_t pitch) {                                                         \
    int64_t row = 0;                                                                                                  \
    for (; row + 4 <= rows; row += 4, x += 4 * pitch)                                                                 \
      for (int64_t i = 0; i < columns; i++) {                                                                         \
        A near = k->near[i], p = (A)x[i] - near, q = (A)x[i + pitch] - near, r = (A)x[i + 2 * pitch] - near;          \
        A s = (A)x[i + 3 * pitch] - near;                                                                             \
        k->sums[i] += (double)((p + q) + (r + s));                                                                    \
        k->products[i] += (double)((p * p + q * q) + (r * r + s * s));                                                \
      }                                                                                                               \
    for (; row < rows; row++, x += pitch)                                                                             \
      for (int64_t i = 0; i < columns; i++) {                                                                         \
        A d = (A)x[i] - k->near[i];                                                                                   \
        k->sums[i] += (double)d;                                                                                      \
        k->products[i] += (double)(d * d);                                                                            \
      }                                                                                                               \
  }                                                                                                                   \
  TD_CLONES static void name##_column_standardize(const name##_columns *k, const T *restrict x, T *restrict y,        \
                                                  int64_t rows, int64_t columns, int64_t pitch) {                     \
    for (int64_t row = 0; row < rows; row++, x += pitch, y += pitch)                                                  \
      for (int64_t i = 0; i < columns; i++)                                                                           \
        y[i] = (T)(((A)x[i] - k->near[i] - k->off[i]) * k->scale[i] * k->w[i] + k->b[i]);                             \
  }                                                                                                                   \
  TD_CLONES static void name##_column_products(name##_columns *restrict k, const T *restrict x, const T *restrict c,  \
                                               int64_t rows, int64_t columns, int64_t pitch) {                        \
    int64_t row = 0;                                                                                                  \
    for (; row + 4 <= rows; row += 4, x += 4 * pitch, c += 4 * pitch)                                                 \
      for (int64_t i = 0; i < columns; i++) {                                                                         \
        A near = k->near[i], off = k->off[i], p = DISTANCE(A, x[i]), q = DISTANCE(A, x[i + pitch]);                   \
        A r = DISTANCE(A, x[i + 2 * pitch]), s = DISTANCE(A, x[i + 3 * pitch]);                                       \
        A cp = (A)c[i], cq = (A)c[i + pitch], cr = (A)c[i + 2 * pitch], cs = (A)c[i + 3 * pitch];                     \
        k->sums[i] += (double)((cp + cq) + (cr + cs));                                                                \
        k->products[i] += (double)((p * cp + q * cq) + (r * cr + s * cs));                                            \
      }                                                                                                               \
    for (; row < rows; row++, x += pitch, c += pitch)                                                                 \
      for (int64_t i = 0; i < columns; i++) {                                                                         \
        k->sums[i] += (double)c[i];                                                                                   \
        k->products[i] += (double)((((A)x[i] - k->near[i]) - k->off[i]) * (A)c[i]);                                   \
      }                                                                                                               \
  }                                                                                                                   \
  TD_CLONES static void name##_column_back(const name##_columns *restrict k, const T *restrict x,                     \
                                           const T *restrict c, T *restrict dx, int64_t rows, int64_t columns,        \
                                           int64_t pitch) {                                                           \
    for (int64_t row = 0; row < rows; row++, x += pitch, c += pitch, dx += pitch)                                     \
      for (int64_t i = 0; i < columns; i++)                                                                           \
        dx[i] = (T)(k->scale[i] *                                                                                     \
                    (((A)c[i] * k->w[i] - k->less[i]) - ((A)x[i] - k->near[i] - k->off[i]) * k->product[i]));         \
  }                                                                                                                   \
  static void name##_clear_sums(name##_columns *k, const strip *s) {                                                  \
    memset(k->sums, 0, (size_t)s->columns * sizeof *k->sums);                                                         \
    memset(k->products, 0, (size_t)s->columns * sizeof *k->products);                                                 \
  }                                                                                                                   \
  static bool name##_strip_moments(const td_norm *v, const strip *s, name##_columns *k, const T *x) {                 \
    double sums[WIDTH], squares[WIDTH], n = (double)(v->batch * v->places);                                           \
    bool fit = true;                                                                                                  \
    name##_clear_sums(k, s);                                                                                          \
    if (v->centred) EACH_PART(s, v, name##_column_totals(k, x + at, rows, columns, s->pitch));                        \
    fold_columns(s, v, k->sums, sums);                                                                                \
    for (int64_t i = 0; i < s->columns; i++) k->near[i] = (A)(sums[channel_of(s, v, i)] / n);                         \
    name##_clear_sums(k, s);                                                                                          \
    EACH_PART(s, v, name##_column_spread(k, x + at, rows, columns, s->pitch));                                        \
    fold_columns(s, v, k->sums, sums);                                                                                \
    fold_columns(s, v, k->products, squares);                                                                         \
    for (int64_t i = 0; i < s->channels; i++) {                                                                       \
      k->m[i] = finish(v, (double)k->near[i * v->places], sums[i], squares[i], v->batch * v->places);                 \
      fit = fit && FIT(k->m[i]);                                                                                      \
    }                                                                                                                 \
    return fit;                                                                                                       \
  }                                                                                                                   \
  static void name##_spread_moments(const task *t, const strip *s, name##_columns *k) {                               \
    for (int64_t i = 0; i < s->columns; i++) {                                                                        \
      int64_t channel = channel_of(s, t->v, i);                                                                       \
      k->off[i] = (A)k->m[channel].off;                                                                               \
      k->scale[i] = (A)k->m[channel].scale;                                                                           \
      k->w[i] = (A)parameter(t->v, t->w, s->first + channel, 1);                                                      \
      k->b[i] = (A)parameter(t->v, t->b, s->first + channel, 0);                                                      \
    }                                                                                                                 \
  }                                                                                                                   \
  static void name##_strip_adjoint(const task *t, const strip *s, name##_columns *k, const T *x) {                    \
    const td_norm *v = t->v;                                                                                          \
    const T *c = (const T *)t->c + s->first * v->places;                                                              \
    T *dx = (T *)t->y + s->first * v->places;                                                                         \
    double plain[WIDTH], product[WIDTH], n = (double)(v->batch * v->places);                                          \
    name##_clear_sums(k, s);                                                                                          \
    EACH_PART(s, v, name##_column_products(k, x + at, c + at, rows, columns, s->pitch));                              \
    fold_columns(s, v, k->sums, plain);                                                                               \
    fold_columns(s, v, k->products, product);                                                                         \
    for (int64_t i = 0; i < s->channels; i++) {                                                                       \
      product[i] *= k->m[i].scale;                                                                                    \
      store(v, t->dw, s->first + i, product[i]);                                                                      \
      store(v, t->db, s->first + i, plain[i]);                                                                        \
    }                                                                                                                 \
    for (int64_t i = 0; i < s->columns; i++) {                                                                        \
      int64_t channel = channel_of(s, v, i);                                                                          \
      double w = parameter(v, t->w, s->first + channel, 1);                                                           \
      k->less[i] = v->centred ? (A)(plain[channel] * w / n) : 0;                                                      \
      k->product[i] = (A)(product[channel] * w / n * k->m[channel].scale);                                            \
    }                                                                                                                 \
    EACH_PART(s, v, name##_column_back(k, x + at, c + at, dx + at, rows, columns, s->pitch));                         \
  }                                                                                                                   \
  static bool name##_strip(const task *t, const strip *s) {                                                           \
    const td_norm *v = t->v;                                                                                          \
    const T *x = (const T *)t->x + s->first * v->places;                                                              \
    T *y = (T *)t->y + s->first * v->places;                                                                          \
    name##_columns k = {0};                                                                                           \
    if (!name##_strip_moments(v, s, &k, x)) return false;                                                             \
    for (int64_t i = 0; i < s->channels && t->mean; i++) t->mean[s->first + i] = k.m[i].near + k.m[i].off;            \
    for (int64_t i = 0; i < s->channels && t->variance; i++) t->variance[s->first + i] = k.m[i].variance;             \
    name##_spread_moments(t, s, &k);                                                                                  \
    if (t->c) name##_strip_adjoint(t, s, &k, x);                                                                      \
    else EACH_PART(s, v, name##_column_standardize(&k, x + at, y + at, rows, columns, s->pitch));                     \
    return true;                                                                                                      \
  }
COLUMNS(float, float, quick, is_ordinary)
COLUMNS(float, double, single, is_any)
COLUMNS(double, double, twofold, is_any)

static void strip_item(const task *t, int64_t item) {
  strip s = strip_of(t->v, item * strip_channels(t->v));
  if (may_be_quick(t->v, t->v->batch * t->v->places) && quick_strip(t, &s)) return;
  (t->v->dtype == TD_FLOAT32 ? single_strip : twofold_strip)(t, &s);
}

static void batch_items(void *argument, int64_t first, int64_t last) {
  const task *t = argument;
  for (int64_t item = first; item < last; item++) (t->v->places < SHORT ? strip_item : channel_item)(t, item);
}

static void run_batch(td_pool *pool, task *t) {
  const td_norm *v = t->v;
  int64_t together = v->places < SHORT ? strip_channels(v) : 1;
  td_ranges_run(pool, quotient(v->groups, together), v->batch * v->places * together, batch_items, t);
}

// ---- entries ----

static void cut_batch(task *t) {
  t->piece = quotient(t->v->batch, least(PIECES, t->v->batch < 1 ? 1 : t->v->batch));
  t->pieces = t->piece ? quotient(t->v->batch, t->piece) : 0;
}

int64_t td_norm_workspace(const td_norm *v) {
  task t = {.v = v};
  cut_batch(&t);
  return !v->over_batch ? t.pieces * 2 * weights(v) * (int64_t)(sizeof *t.sums + sizeof *t.few) : 0;
}

void td_norm_run(td_pool *pool, const td_norm *v, const char *x, const char *w, const char *b, char *y, double *mean,
                 double *variance) {
  task t = {.v = v, .x = x, .w = w, .b = b, .y = y, .mean = mean, .variance = variance};
  if (v->over_batch) run_batch(pool, &t);
  else td_ranges_run(pool, v->batch * v->groups, v->channels * v->places * 2, forward_rows, &t);
}

void td_norm_adjoint_run(td_pool *pool, const td_norm *v, const char *x, const char *w, const char *c, char *dx,
                         char *dw, char *db, void *workspace) {
  task t = {.v = v, .x = x, .w = w, .c = c, .y = dx, .dw = dw, .db = db, .sums = workspace};
  if (!weights(v)) return;
  if (v->over_batch) {
    run_batch(pool, &t);
    return;
  }
  cut_batch(&t);
  t.few = (float *)(t.sums + t.pieces * 2 * weights(v));
  td_ranges_run(pool, t.pieces * v->groups, t.piece * v->channels * v->places * 4, adjoint_rows, &t);
  td_ranges_run(pool, weights(v), t.pieces, add_pieces, &t);
}
