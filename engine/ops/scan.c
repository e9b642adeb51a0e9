// Running reductions along an axis: sums, products, extremes, log-sum-exp, and the recurrence that their gradients
// need. Without an axis they run over all elements in row-major order and the result is 1-d, as in NumPy.
//  1. The input is brought into the result first, where it is of another dtype or lies otherwise, and is scanned in
//     place: outer x n x inner elements.
//  2. A unit is a block of inner columns, scanned side by side. Long sums are cut into blocks along the axis too: their
//     totals first, then each block from the total before it. Cuts depend on the shape alone.
#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

enum { BLOCK = 1 << 15, UNITS = 64, COLUMNS = 512, LANES = 16, CHAINS = 4, STATE_BYTES = 16 };

typedef struct piece { // rows x columns elements; rows lie pitch apart, in the order of the scan
  const void *x;
  void *out;
  int64_t *places; // extremes: where they were found
  const void *factor; // of a recurrence; NULL at its first row
  int64_t rows, columns, pitch;
  int64_t first, step; // position of the first row along the axis, and from one to the next
  bool exclusive;
} piece;

typedef struct scanner {
  bool splits; // has total: the order of the elements may be cut
  void (*start)(void *states, int64_t count);
  void (*total)(void *states, const piece *p); // folds the piece into states
  void (*scan)(void *states, const piece *p);
} scanner;

// ---- sums and products ----

#define PLUS(a, x) ((a) + (x))
#define TIMES(a, x) ((a) * (x))

#define RUNNING(T, STATE, name, START, STEP)                                                               \
  static void name##_start(void *states, int64_t count) {                                                  \
    for (int64_t i = 0; i < count; i++) ((STATE *)states)[i] = START;                                      \
  }                                                                                                        \
  TD_CLONES static STATE name##_line_total(const T *x, int64_t n, int64_t step) {                          \
    STATE lanes[LANES], all = START;                                                                       \
    int64_t i = 0;                                                                                         \
    for (int l = 0; l < LANES; l++) lanes[l] = START;                                                      \
    for (; i + LANES <= n; i += LANES)                                                                     \
      for (int l = 0; l < LANES; l++) lanes[l] = STEP(lanes[l], (STATE)x[(i + l) * step]);                 \
    for (int l = 0; l < LANES; l++) all = STEP(all, lanes[l]);                                             \
    for (; i < n; i++) all = STEP(all, (STATE)x[i * step]);                                                \
    return all;                                                                                            \
  }                                                                                                        \
  static STATE name##_line(const T *x, T *out, int64_t n, int64_t step, STATE running, bool exclusive) {   \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      STATE next = STEP(running, (STATE)x[i * step]);                                                      \
      out[i * step] = (T)(exclusive ? running : next);                                                     \
      running = next;                                                                                      \
    }                                                                                                      \
    return running;                                                                                        \
  }                                                                                                        \
  TD_CLONES static void name##_columns(STATE *restrict a, const T *x, T *out, const piece *p) {            \
    for (int64_t r = 0; r < p->rows; r++, x += p->pitch, out += p->pitch)                                  \
      TD_INDEPENDENT for (int64_t c = 0; c < p->columns; c++) {                                            \
        STATE next = STEP(a[c], (STATE)x[c]);                                                              \
        out[c] = (T)(p->exclusive ? a[c] : next);                                                          \
        a[c] = next;                                                                                       \
      }                                                                                                    \
  }                                                                                                        \
  static void name##_total(void *states, const piece *p) {                                                 \
    STATE *restrict a = states;                                                                            \
    const T *x = p->x;                                                                                     \
    if (p->columns == 1) {                                                                                 \
      *a = STEP(*a, name##_line_total(x, p->rows, p->pitch));                                              \
      return;                                                                                              \
    }                                                                                                      \
    for (int64_t r = 0; r < p->rows; r++, x += p->pitch)                                                   \
      for (int64_t c = 0; c < p->columns; c++) a[c] = STEP(a[c], (STATE)x[c]);                             \
  }

// A sum's line runs in several chains side by side, each from the total before it: one addition waits for the other.
#define RUNNING_SUM(T, STATE, name)                                                                        \
  RUNNING(T, STATE, name, 0, PLUS)                                                                         \
  static STATE name##_chains(const T *x, T *out, int64_t n, int64_t step, STATE running, bool exclusive) { \
    int64_t part = n / CHAINS * step, length = n / CHAINS;                                                 \
    STATE sums[CHAINS] = {running};                                                                        \
    for (int k = 1; k < CHAINS; k++)                                                                       \
      sums[k] = sums[k - 1] + name##_line_total(x + (k - 1) * part, length, step);                         \
    for (int64_t i = 0; i < length; i++)                                                                   \
      for (int k = 0; k < CHAINS; k++) {                                                                   \
        STATE next = sums[k] + (STATE)x[i * step + k * part];                                              \
        out[i * step + k * part] = (T)(exclusive ? sums[k] : next);                                        \
        sums[k] = next;                                                                                    \
      }                                                                                                    \
    return name##_line(x + CHAINS * part, out + CHAINS * part, n % CHAINS, step, sums[CHAINS - 1], exclusive); \
  }                                                                                                        \
  static void name##_scan(void *states, const piece *p) {                                                  \
    STATE *a = states;                                                                                     \
    const T *x = p->x;                                                                                     \
    T *out = p->out;                                                                                       \
    if (p->columns > 1) name##_columns(a, x, out, p);                                                      \
    else                                                                                                   \
      for (int64_t r = 0, n; r < p->rows; r += n, x += n * p->pitch, out += n * p->pitch) {                \
        n = p->rows - r < BLOCK / 8 ? p->rows - r : BLOCK / 8;                                             \
        *a = n < 2 * LANES ? name##_line(x, out, n, p->pitch, *a, p->exclusive)                            \
                           : name##_chains(x, out, n, p->pitch, *a, p->exclusive);                         \
      }                                                                                                    \
  }                                                                                                        \
  static const scanner name = {true, name##_start, name##_total, name##_scan};

// A product may overflow in a part and not from the start, so it runs in order.
#define RUNNING_PRODUCT(T, STATE, name)                                                                    \
  RUNNING(T, STATE, name, 1, TIMES)                                                                        \
  static void name##_scan(void *states, const piece *p) {                                                  \
    STATE *a = states;                                                                                     \
    if (p->columns > 1) name##_columns(a, p->x, p->out, p);                                                \
    else *a = name##_line(p->x, p->out, p->rows, p->pitch, *a, p->exclusive);                              \
  }                                                                                                        \
  static const scanner name = {false, name##_start, name##_total, name##_scan};

RUNNING_SUM(float, double, cumsum_float32)
RUNNING_SUM(double, double, cumsum_float64)
RUNNING_SUM(int64_t, uint64_t, cumsum_int64)
RUNNING_PRODUCT(float, double, cumprod_float32)
RUNNING_PRODUCT(double, double, cumprod_float64)
RUNNING_PRODUCT(int64_t, uint64_t, cumprod_int64)
static const scanner *const sums[TD_DTYPE_COUNT] = {
    [TD_INT64] = &cumsum_int64, [TD_FLOAT32] = &cumsum_float32, [TD_FLOAT64] = &cumsum_float64};
static const scanner *const products[TD_DTYPE_COUNT] = {
    [TD_INT64] = &cumprod_int64, [TD_FLOAT32] = &cumprod_float32, [TD_FLOAT64] = &cumprod_float64};

// ---- extremes: of equal ones the last; a NaN stays, and the last NaN is found ----

#define EXTREME(T, name, OVER)                                                                 \
  typedef struct name##_state {                                                                \
    T best;                                                                                    \
    int64_t at; /* -1: nothing yet */                                                          \
  } name##_state;                                                                              \
  static void name##_start(void *states, int64_t count) {                                      \
    for (int64_t i = 0; i < count; i++) ((name##_state *)states)[i] = (name##_state){0, -1};   \
  }                                                                                            \
  static void name##_scan(void *states, const piece *p) {                                      \
    name##_state *a = states;                                                                  \
    for (int64_t r = 0; r < p->rows; r++)                                                      \
      for (int64_t c = 0; c < p->columns; c++) {                                               \
        int64_t i = r * p->pitch + c;                                                          \
        T v = ((const T *)p->x)[i];                                                            \
        if ((v OVER a[c].best) | (v != v) | (a[c].at < 0)) a[c] = (name##_state){v, p->first + r * p->step}; \
        ((T *)p->out)[i] = a[c].best;                                                          \
        p->places[i] = a[c].at;                                                                \
      }                                                                                        \
  }                                                                                            \
  static const scanner name = {false, name##_start, NULL, name##_scan};
#define EXTREMES(name, OVER)                    \
  EXTREME(uint8_t, name##_uint8, OVER)          \
  EXTREME(int32_t, name##_int32, OVER)          \
  EXTREME(int64_t, name##_int64, OVER)          \
  EXTREME(float, name##_float32, OVER)          \
  EXTREME(double, name##_float64, OVER)         \
  static const scanner *const name##_scanners[TD_DTYPE_COUNT] = {                                      \
      [TD_BOOL] = &name##_uint8,  [TD_UINT8] = &name##_uint8,     [TD_INT32] = &name##_int32,          \
      [TD_INT64] = &name##_int64, [TD_FLOAT32] = &name##_float32, [TD_FLOAT64] = &name##_float64};
EXTREMES(cummax, >=)
EXTREMES(cummin, <=)

// ---- log-sum-exp ----

static double log_add(double a, double b) {
  double high = a < b ? b : a, low = a < b ? a : b;
  if (a != a || b != b) return a + b;
  return isinf(high) || low == -(double)INFINITY ? high : high + log1p(exp(low - high));
}

#define LOGARITHMS(T, name)                                                            \
  static void name##_start(void *states, int64_t count) {                              \
    for (int64_t i = 0; i < count; i++) ((double *)states)[i] = -(double)INFINITY;     \
  }                                                                                    \
  static void name##_scan(void *states, const piece *p) {                              \
    double *a = states;                                                                \
    for (int64_t r = 0; r < p->rows; r++)                                              \
      for (int64_t c = 0; c < p->columns; c++) {                                       \
        a[c] = log_add(a[c], (double)((const T *)p->x)[r * p->pitch + c]);             \
        ((T *)p->out)[r * p->pitch + c] = (T)a[c];                                     \
      }                                                                                \
  }                                                                                    \
  static const scanner name = {false, name##_start, NULL, name##_scan};
LOGARITHMS(float, logcumsumexp_float32)
LOGARITHMS(double, logcumsumexp_float64)

// ---- recurrence: running = factor * running + x ----

#define RECURRENCE(T, name)                                                                                     \
  static void name##_start(void *states, int64_t count) { memset(states, 0, (size_t)count * sizeof(double)); }  \
  TD_CLONES static void name##_scan(void *states, const piece *p) {                                             \
    double *restrict a = states;                                                                                \
    const T *x = p->x, *factor = p->factor;                                                                     \
    T *out = p->out;                                                                                            \
    for (int64_t r = 0; r < p->rows; r++, x += p->pitch, out += p->pitch, factor += p->pitch)                   \
      TD_INDEPENDENT for (int64_t c = 0; c < p->columns; c++) {                                                 \
        a[c] = (r ? (double)factor[c] * a[c] : 0) + (double)x[c];                                    \
        out[c] = (T)a[c];                                                                                       \
      }                                                                                                         \
  }                                                                                                             \
  static const scanner name = {false, name##_start, NULL, name##_scan};
RECURRENCE(float, recurrence_float32)
RECURRENCE(double, recurrence_float64)

// ---- the walk ----

typedef struct walk {
  const scanner *scanner;
  const char *x, *factor;
  char *out;
  int64_t *places;
  int bytes;
  int64_t outer, n, inner;
  int64_t columns, column_blocks, rows, row_blocks, lines; // lines: outer ones of a unit
  bool reverse, exclusive;
  char *states; // of several blocks: outer x row_blocks x inner
} walk;

static int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

static void cut(walk *w) {
  w->columns = w->inner < COLUMNS ? w->inner : COLUMNS;
  w->column_blocks = parts(w->inner, w->columns);
  int64_t units = w->outer * w->column_blocks, work = w->n * w->columns;
  w->row_blocks = units < UNITS && w->scanner->splits && work >= 2 * BLOCK ? parts(work, BLOCK) : 1;
  w->rows = parts(w->n, w->row_blocks);
  w->row_blocks = parts(w->n, w->rows);
  w->lines = work < BLOCK ? parts(BLOCK, work) : 1;
}

static piece piece_of(const walk *w, int64_t outer, int64_t block, int64_t column_block) {
  int64_t column = column_block * w->columns, first = block * w->rows, rows = w->n - first, place;
  if (rows > w->rows) rows = w->rows;
  place = (outer * w->n + (w->reverse ? w->n - 1 - first : first)) * w->inner + column;
  return (piece){
      .x = w->x + place * w->bytes,
      .out = w->out + place * w->bytes,
      .places = w->places ? w->places + place : NULL,
      .factor = w->factor ? w->factor + (place + (w->reverse ? w->inner : 0)) * w->bytes : NULL,
      .rows = rows,
      .columns = w->inner - column < w->columns ? w->inner - column : w->columns,
      .pitch = w->reverse ? -w->inner : w->inner,
      .first = w->reverse ? w->n - 1 - first : first,
      .step = w->reverse ? -1 : 1,
      .exclusive = w->exclusive,
  };
}

static void scan_unit(void *argument, int64_t unit) {
  const walk *w = argument;
  _Alignas(64) char states[COLUMNS * STATE_BYTES];
  int64_t column_block = unit % w->column_blocks, outer = unit / w->column_blocks * w->lines;
  int64_t last = outer + w->lines < w->outer ? outer + w->lines : w->outer;
  for (; outer < last; outer++) {
    piece p = piece_of(w, outer, 0, column_block);
    w->scanner->start(states, p.columns);
    w->scanner->scan(states, &p);
  }
}

static char *block_states(const walk *w, int64_t outer, int64_t block, int64_t column_block) {
  return w->states + ((outer * w->row_blocks + block) * w->inner + column_block * w->columns) * (int64_t)sizeof(double);
}

static void block_unit(void *argument, int64_t unit, bool total) {
  const walk *w = argument;
  int64_t column_block = unit % w->column_blocks, rest = unit / w->column_blocks;
  int64_t block = rest % w->row_blocks, outer = rest / w->row_blocks;
  piece p = piece_of(w, outer, block, column_block);
  char *states = block_states(w, outer, block, column_block);
  if (total) w->scanner->start(states, p.columns);
  (total ? w->scanner->total : w->scanner->scan)(states, &p);
}

static void total_unit(void *argument, int64_t unit) { block_unit(argument, unit, true); }
static void resume_unit(void *argument, int64_t unit) { block_unit(argument, unit, false); }

// The totals of blocks become sums of those before them.
static void sum_totals(const walk *w, bool whole) {
  for (int64_t outer = 0; outer < w->outer; outer++)
    for (int64_t c = 0; c < w->inner; c++) {
      double sum = 0;
      uint64_t count = 0;
      for (int64_t b = 0; b < w->row_blocks; b++) {
        char *at = w->states + ((outer * w->row_blocks + b) * w->inner + c) * (int64_t)sizeof(double);
        double total = *(double *)at;
        uint64_t counted = *(uint64_t *)at;
        if (whole) *(uint64_t *)at = count;
        else *(double *)at = sum;
        sum += total;
        count += counted;
      }
    }
}

static void scan_run(td_pool *pool, walk *w, bool whole) {
  if (w->row_blocks == 1) {
    td_pool_run(pool, parts(w->outer, w->lines) * w->column_blocks, scan_unit, w);
    return;
  }
  int64_t units = w->outer * w->row_blocks * w->column_blocks;
  td_pool_run(pool, units, total_unit, w);
  sum_totals(w, whole);
  td_pool_run(pool, units, resume_unit, w);
}

// ---- kernels ----

static walk walk_of(const td_call *call, const td_arg *axis, const scanner *kind) {
  const td_view *in = &call->in[0];
  walk w = {.scanner = kind, .outer = 1, .inner = 1, .n = 1, .bytes = td_dtype_bytes(call->out[0].dtype)};
  int at = (int)(axis->i < 0 ? axis->i + in->rank : axis->i);
  for (int i = 0; i < in->rank; i++) {
    if (!axis->given || i == at) w.n *= in->shape[i];
    else if (i < at) w.outer *= in->shape[i];
    else w.inner *= in->shape[i];
  }
  if (in->size) cut(&w);
  return w;
}

static int64_t walk_workspace(const walk *w) {
  return w->row_blocks > 1 ? w->outer * w->row_blocks * w->inner * (int64_t)sizeof(double) : 0;
}

static int running_kernel(const td_call *call, const scanner *const *scanners) {
  if (!call->out[0].size) return TD_OK;
  uint8_t dtype = call->out[0].dtype;
  walk w = walk_of(call, &call->args[0], scanners[dtype]);
  w.exclusive = call->args[1].i;
  w.reverse = call->args[2].i;
  w.x = td_view_bring(call);
  w.out = call->out[0].data;
  w.states = call->workspace;
  scan_run(call->context->pool, &w, dtype == TD_INT64);
  return TD_OK;
}

static int64_t cumsum_workspace(const td_call *call) {
  if (call->in[0].size < 2 * BLOCK) return 0;
  walk w = walk_of(call, &call->args[0], sums[call->out[0].dtype]);
  return walk_workspace(&w);
}

static int cumsum_kernel(const td_call *call) { return running_kernel(call, sums); }
static int cumprod_kernel(const td_call *call) { return running_kernel(call, products); }

static int plain_kernel(const td_call *call, const scanner *kind) {
  if (!call->out[0].size) return TD_OK;
  walk w = walk_of(call, &call->args[0], kind);
  w.x = td_view_bring(call);
  w.out = call->out[0].data;
  if (call->out_count > 1) w.places = (int64_t *)call->out[1].data;
  scan_run(call->context->pool, &w, false);
  return TD_OK;
}

static int cummax_kernel(const td_call *call) { return plain_kernel(call, cummax_scanners[call->in[0].dtype]); }
static int cummin_kernel(const td_call *call) { return plain_kernel(call, cummin_scanners[call->in[0].dtype]); }
static int logcumsumexp_kernel(const td_call *call) {
  return plain_kernel(call, call->out[0].dtype == TD_FLOAT64 ? &logcumsumexp_float64 : &logcumsumexp_float32);
}

// Input 0 is x, input 1 the factors.
static int recurrence_kernel(const td_call *call) {
  const td_view *factor = &call->in[1];
  if (!call->out[0].size) return TD_OK;
  walk w = walk_of(call, &call->args[0], call->out[0].dtype == TD_FLOAT64 ? &recurrence_float64 : &recurrence_float32);
  w.reverse = call->args[1].i;
  w.x = td_view_bring(call);
  w.out = call->out[0].data;
  w.factor = factor->data;
  if (!td_view_is_flat(factor)) {
    td_elements_copy(call->context->pool, call->workspace, factor->data, w.bytes, factor->rank, factor->shape,
                     factor->strides);
    w.factor = call->workspace;
  }
  scan_run(call->context->pool, &w, false);
  return TD_OK;
}

static int64_t recurrence_workspace(const td_call *call) {
  const td_view *factor = &call->in[1];
  return td_view_is_flat(factor) ? 0 : factor->size * td_dtype_bytes(factor->dtype);
}

// ---- shapes ----

static int same_infer(td_infer *infer) { // any dtype
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  int axis;
  *out = *in;
  if (infer->args[0].given) return td_infer_axis(infer, infer->args[0].i, in->rank, &axis);
  out->rank = 1;
  out->shape[0] = td_shape_size(in->rank, in->shape);
  return TD_OK;
}

static int total_infer(td_infer *infer) {
  int code = same_infer(infer);
  if (!td_dtype_is_float(infer->in[0].dtype)) infer->out[0].dtype = TD_INT64;
  return code;
}

static int floating_infer(td_infer *infer) {
  int code = same_infer(infer);
  if (!td_dtype_is_float(infer->in[0].dtype)) infer->out[0].dtype = TD_FLOAT32;
  return code;
}

static int extreme_infer(td_infer *infer) {
  int code = same_infer(infer);
  infer->out[1] = infer->out[0];
  infer->out[1].dtype = TD_INT64;
  return code;
}

static int recurrence_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *factor = &infer->in[1];
  if (x->dtype != factor->dtype || !td_dtype_is_float(x->dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "x and factor must have one floating dtype");
  if (!td_shape_equal(x->rank, x->shape, factor->rank, factor->shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "x and factor must have one shape");
  return same_infer(infer);
}

// ---- gradients ----

typedef struct along { // the input of a scan as it runs: flattened where there is no axis
  bool empty, flat;
  int axis, rank;
  int64_t shape[TD_RANK_MAX];
} along;

static along along_of(const td_rule *rule, const td_meta *in) {
  const td_arg *axis = &rule->args[0];
  along a = {.flat = !axis->given, .rank = in->rank};
  int64_t size = td_shape_size(in->rank, in->shape);
  a.empty = !size;
  memcpy(a.shape, in->shape, in->rank * sizeof *in->shape);
  if (axis->given) a.axis = (int)(axis->i < 0 ? axis->i + in->rank : axis->i);
  else {
    a.rank = 1;
    a.shape[0] = size;
  }
  return a;
}

static td_tensor *enter(td_rule *rule, const along *a, td_tensor *x) {
  return a->flat ? td_reshape(&rule->scope, x, a->rank, a->shape) : x;
}

static td_tensor *leave(td_rule *rule, const along *a, td_tensor *x) {
  const td_meta *in = &rule->in_meta[0];
  return a->flat ? td_reshape(&rule->scope, x, in->rank, in->shape) : x;
}

// x moved one place along the axis, to the right or to the left, with fill where nothing comes from.
static td_tensor *shift(td_scope *s, td_tensor *x, int axis, bool right, double fill) {
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX], size[TD_RANK_MAX];
  if (!x) return NULL;
  td_meta gap = td_tensor_meta(x);
  for (int i = 0; i < x->rank; i++) {
    step[i] = 1;
    size[i] = x->shape[i];
  }
  start[axis] = !right;
  size[axis] -= 1;
  gap.shape[axis] = 1;
  td_tensor *filled = td_scope_filled(s, fill, &gap), *rest = td_slice_view(s, x, start, step, size);
  return right ? td_concat(s, filled, rest, axis) : td_concat(s, rest, filled, axis);
}

static td_tensor *scan_with(td_scope *s, const td_op *op, td_tensor *x, int64_t axis, bool exclusive, bool reverse) {
  const td_arg args[] = {TD_INT_ARG(axis), TD_INT_ARG(exclusive), TD_INT_ARG(reverse)};
  return td_scope_apply(s, op, args, 1, x);
}

static td_tensor *recurrence(td_scope *s, td_tensor *x, td_tensor *factor, int64_t axis, bool reverse);

static int cumsum_vjp(td_rule *rule) { // the running sum from the other end
  along a = along_of(rule, &rule->in_meta[0]);
  if (a.empty) return TD_OK;
  td_tensor *c = enter(rule, &a, rule->cotangent[0]);
  rule->din[0] =
      leave(rule, &a, scan_with(&rule->scope, rule->op, c, a.axis, rule->args[1].i, !rule->args[2].i));
  return TD_OK;
}

static td_tensor *flipped(td_scope *s, td_tensor *x, int axis, bool flip) {
  const td_arg axes = {.given = 1, .count = 1, .ints = {axis}};
  return flip ? td_flip(s, x, &axes) : x;
}

// dx[j] = (product before j) s[j] with s[j] = c[j] + x[j + 1] s[j + 1]: nothing is divided.
static int cumprod_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  along a = along_of(rule, &rule->in_meta[0]);
  bool exclusive = rule->args[1].i, reverse = rule->args[2].i;
  if (a.empty) return TD_OK;
  td_tensor *x = flipped(s, enter(rule, &a, rule->in[0]), a.axis, reverse);
  td_tensor *c = flipped(s, enter(rule, &a, rule->cotangent[0]), a.axis, reverse);
  if (exclusive) c = shift(s, c, a.axis, false, 0);
  td_tensor *before = td_cumprod(s, x, a.axis, false, true);
  td_tensor *gradient = td_chain(s, recurrence(s, c, x, a.axis, true), before);
  rule->din[0] = leave(rule, &a, flipped(s, gradient, a.axis, reverse));
  return TD_OK;
}

static int extreme_vjp(td_rule *rule) { // to the elements that were found
  along a = along_of(rule, &rule->in_meta[0]);
  if (a.empty || !rule->cotangent[0]) return TD_OK;
  td_tensor *c = td_gather_adjoint(&rule->scope, rule->cotangent[0], rule->out[1], a.axis, a.rank, a.shape);
  rule->din[0] = leave(rule, &a, c);
  return TD_OK;
}

// dx[j] = exp(x[j] - y[j]) u[j] with u[j] = c[j] + exp(y[j] - y[j + 1]) u[j + 1]; no factor is above 1.
static const td_op logcumsumexp_op;

// Late in a long line a float32 result grows by less than its last place at each step: the gradient is float64's.
static int logcumsumexp_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  along a = along_of(rule, &rule->in_meta[0]);
  if (a.empty) return TD_OK;
  td_tensor *wide = td_cast(s, rule->in[0], TD_FLOAT64), *y = rule->out[0];
  if (y->dtype != TD_FLOAT64) y = td_scope_apply(s, &logcumsumexp_op, rule->args, 1, wide);
  td_tensor *x = enter(rule, &a, wide), *one = td_scope_number(s, 1, y);
  td_tensor *before = shift(s, y, a.axis, true, 0), *nothing = td_scope_number(s, -INFINITY, y);
  td_tensor *factor = td_where(s, td_equal(s, before, y), one, td_exp(s, td_subtract(s, before, y)));
  td_tensor *share = td_where(s, td_equal(s, x, y), one, td_exp(s, td_subtract(s, x, y)));
  share = td_where(s, td_equal(s, x, nothing), td_scope_number(s, 0, y), share);
  td_tensor *c = td_cast(s, enter(rule, &a, rule->cotangent[0]), TD_FLOAT64);
  td_tensor *summed = recurrence(s, c, factor, a.axis, true);
  rule->din[0] = leave(rule, &a, td_chain(s, summed, share));
  return TD_OK;
}

// The recurrence from the other end is the transposed one.
static int recurrence_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  along a = along_of(rule, &rule->out_meta[0]); // the shape of x, which may be a constant
  bool reverse = rule->args[1].i;
  if (a.empty) return TD_OK;
  td_tensor *summed = recurrence(s, rule->cotangent[0], rule->in[1], a.axis, !reverse);
  rule->din[0] = summed;
  if (rule->needs[1] && reverse) rule->din[1] = td_multiply(s, shift(s, summed, a.axis, true, 0), rule->out[0]);
  if (rule->needs[1] && !reverse) rule->din[1] = td_multiply(s, summed, shift(s, rule->out[0], a.axis, true, 0));
  return TD_OK;
}

// ---- rows ----

static const td_sample running_samples[] = {
    {"4", "axis=0", -2, 2, NULL},
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL},
    {"2,3", "axis=-1", -2, 2, NULL},
    {"2,4", "axis=-1, reverse=True", -2, 2, NULL},
    {"4,2", "axis=0, exclusive=True", -2, 2, NULL},
    {"5", "exclusive=True, reverse=True", -2, 2, NULL},
    {"0,3", "axis=0", -2, 2, NULL},
    {"-", NULL, -2, 2, NULL},
    {"5", NULL, 0, 9, "uint8"},
    TD_SAMPLES_END,
};
static const td_sample plain_samples[] = {
    {"4", "axis=0", -2, 2, NULL},     {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL}, {"2,3", "axis=-1", -2, 2, NULL},
    {"0,3", "axis=0", -2, 2, NULL},   {"-", NULL, -2, 2, NULL},
    {"5", NULL, 0, 9, "int32"},       TD_SAMPLES_END,
};
#define AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXIS }
#define FLAG_PARAM(text) \
  { .name = text, .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }

static const td_op cumsum_op = {
    .name = "cumsum",
    .params = {TD_X, AXIS_PARAM, FLAG_PARAM("exclusive"), FLAG_PARAM("reverse")},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .method = true,
    .infer = total_infer,
    .kernel = cumsum_kernel,
    .batch = td_batch_axes,
    .workspace = cumsum_workspace,
    .vjp = cumsum_vjp,
    .doc = "Running sums along axis; over all elements, as a 1-d tensor, when None.\n"
           "Of integers and bools they are int64. exclusive: each sum is of the elements before, the first is 0. "
           "reverse: from the last element on, as in TensorFlow.\n"
           "Gradient: the running sum of the cotangent from the other end.",
    .example = "cumsum(tensor([1, 2, 3])).tolist()  # [1, 3, 6]",
    .samples = running_samples,
};

static const td_op cumprod_op = {
    .name = "cumprod",
    .params = {TD_X, AXIS_PARAM, FLAG_PARAM("exclusive"), FLAG_PARAM("reverse")},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = total_infer,
    .kernel = cumprod_kernel,
    .batch = td_batch_axes,
    .vjp = cumprod_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "Running products along axis; over all elements, as a 1-d tensor, when None.\n"
           "Of integers and bools they are int64. exclusive: each product is of the elements before, the first is 1. "
           "reverse: from the last element on, as in TensorFlow.\n"
           "Gradient: found without dividing, so zeros are right.",
    .example = "cumprod(tensor([1, 2, 3])).tolist()  # [1, 2, 6]",
    .samples = running_samples,
};

#define EXTREME_ROW(NAME, WORD, EXAMPLE)                                                                              \
  static const td_op NAME##_op = {                                                                                    \
      .name = #NAME,                                                                                                  \
      .params = {TD_X, AXIS_PARAM},                                                                                   \
      .kind = TD_KIND_OPAQUE,                                                                                         \
      .outputs = 2,                                                                                                   \
      .method = true,                                                                                                 \
      .infer = extreme_infer,                                                                                         \
      .kernel = NAME##_kernel,                                                                                        \
      .batch = td_batch_axes,                                                                                         \
      .vjp = extreme_vjp,                                                                                             \
      .saves = TD_SAVES_OUTPUT,                                                                                       \
      .doc = "The " WORD " element so far along axis, and where it stands, as a tuple (values, indices).\n"           \
             "Over all elements in row-major order when axis is None. Of equal elements the last is meant, as in "    \
             "PyTorch; a NaN stays.\nGradient: the cotangents, added up at the elements that were found.",            \
      .example = EXAMPLE,                                                                                             \
      .samples = plain_samples,                                                                                       \
  };
EXTREME_ROW(cummax, "largest", "cummax(tensor([1., 3., 2.]), axis=0)[0].tolist()  # [1.0, 3.0, 3.0]")
EXTREME_ROW(cummin, "smallest", "cummin(tensor([3., 1., 2.]), axis=0)[1].tolist()  # [0, 1, 1]")

static const td_op logcumsumexp_op = {
    .name = "logcumsumexp",
    .alias = TD_ALIAS("cumlogsumexp", "cumulative_logsumexp"),
    .params = {TD_X, AXIS_PARAM},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = floating_infer,
    .kernel = logcumsumexp_kernel,
    .batch = td_batch_axes,
    .vjp = logcumsumexp_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .doc = "log(sum(exp(x))) of the elements so far along axis, without overflow; over all elements, as a 1-d tensor, "
           "when None.\n"
           "Gradient: of each result the softmax of the elements it was made of; 0 for -inf.",
    .example = "logcumsumexp(tensor([1000., 0.]), axis=0).tolist()  # [1000.0, 1000.0]",
    .samples = plain_samples,
};

static const td_op recurrence_op = {
    .name = "recurrence",
    .params = {TD_X, TD_TENSOR_PARAM("factor"), AXIS_PARAM, FLAG_PARAM("reverse")},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = recurrence_infer,
    .kernel = recurrence_kernel,
    .batch = td_batch_axes,
    .workspace = recurrence_workspace,
    .vjp = recurrence_vjp,
    .saves = TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .doc = "y[j] = x[j] + factor[j] y[j - 1] along axis; with reverse y[j] = x[j] + factor[j + 1] y[j + 1], which is "
           "its transpose.\n"
           "Gradient: the recurrence of the cotangent from the other end, s; for factor[j] s[j] y[j - 1].",
    .samples = TD_SAMPLES{{"4; 4", "axis=0", -2, 2, NULL},
                          {"2,3,2; 2,3,2", "axis=1, reverse=True", -2, 2, NULL},
                          {"0,3; 0,3", "axis=1", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- builders ----

td_tensor *td_cumprod(td_scope *s, td_tensor *x, int64_t axis, bool reverse, bool exclusive) {
  return scan_with(s, &cumprod_op, x, axis, exclusive, reverse);
}

static td_tensor *recurrence(td_scope *s, td_tensor *x, td_tensor *factor, int64_t axis, bool reverse) {
  const td_arg args[] = {TD_INT_ARG(axis), TD_INT_ARG(reverse)};
  return td_scope_apply(s, &recurrence_op, args, 2, x, factor);
}

const td_op *const td_family_scan[] = {&cumsum_op,       &cumprod_op,    &cummax_op, &cummin_op,
                                       &logcumsumexp_op, &recurrence_op, NULL};
