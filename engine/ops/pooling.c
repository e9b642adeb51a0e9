// Pooling over windows of the last one, two or three axes: largest elements and means, with windows that are given by
// kernel and stride or (adaptive) by how many there are.
//  1. Everything before the pooled axes are planes, which share nothing. A plane's lines of results are computed one at
//     a time.
//  2. Means are separable: the rows of a window are added up, then the columns.
//  3. A largest element is remembered by its place in the plane; gradients move along those places (pool_scatter,
//     pool_gather), so they are linear and any order of derivative exists.
#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/spatial.h"
#include "engine/ops/windows.h"

enum { M_KERNEL, M_STRIDE, M_PADDING, M_DILATION, M_CEIL }; // arguments of max_pool
enum { A_KERNEL, A_STRIDE, A_PADDING, A_CEIL, A_COUNT_PAD, A_DIVISOR, A_SIZES }; // of avg_pool and its adjoint
enum { GRAIN = 1 << 14 }; // elements that an item looks at, about

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- dtypes ----

static int check_number(td_infer *infer) { // a dtype that has an order
  if (infer->in[0].dtype != TD_BOOL) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_DTYPE, "bool has no order");
  td_error_hint(infer->context, "any(x, axis) tells whether a window has a True");
  return code;
}

static int check_floating(td_infer *infer) {
  if (td_dtype_is_float(infer->in[0].dtype)) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_DTYPE, "x must be floating, not %s", td_dtype_name(infer->in[0].dtype));
  td_error_hint(infer->context, "x.astype(float32)");
  return code;
}

// ---- running over planes and lines ----

typedef struct task task;
typedef void line_function(const task *t, int64_t plane, int64_t line, void *scratch);

struct task {
  td_windows w;
  uint8_t dtype;
  bool count_padding;
  bool inside; // largest elements: no window has gaps or crosses an end of a line
  int64_t divisor; // 0: the window's count
  int64_t lines_each; // of an item
  line_function *line;
  const char *in;
  char *out;
  int64_t *places;
};

static int64_t td_windows_lines(const td_windows *w) { return w->axes[0].out * w->axes[1].out; }

static void lines_item(void *argument, int64_t item, void *scratch) {
  const task *t = argument;
  int64_t lines = td_windows_lines(&t->w), items = (lines + t->lines_each - 1) / t->lines_each, plane = item / items;
  int64_t first = item % items * t->lines_each, last = least(first + t->lines_each, lines);
  for (int64_t line = first; line < last; line++) t->line(t, plane, line, scratch);
}

static int64_t line_scratch(const td_windows *w) { return 16 * most(w->axes[2].in, w->axes[2].out); }

static int64_t item_count(task *t, bool whole) { // whole: an item is one plane or more lines of it than there are
  int64_t lines = most(td_windows_lines(&t->w), 1), cost = most(1, t->w.plane / lines + t->w.axes[2].out);
  t->lines_each = whole ? lines : least(lines, most(1, GRAIN / cost));
  return t->w.planes && t->w.results ? t->w.planes * ((lines + t->lines_each - 1) / t->lines_each) : 0;
}

static int run_lines(const td_call *call, task *t, bool whole) {
  int64_t items = item_count(t, whole);
  void *room = td_inputs_place(call, call->out[0].dtype, &t->in);
  td_items_run(call->context->pool, items, line_scratch(&t->w), lines_item, t, room);
  return TD_OK;
}

static int64_t workspace_of(const td_call *call, const td_windows *w) {
  return td_inputs_bytes(call, call->out[0].dtype) + td_items_scratch(call->context->pool, INT64_MAX, line_scratch(w));
}

// ---- largest elements ----

// A line of results. Regular windows go tap by tap over the whole line; adaptive ones result by result.
// X: whether a new element, v, wins over the best so far.
#define BETTER(T, I, X, STEP)                              \
  for (int64_t j = 0; j < n; j++) {                        \
    const T v = from[j * STEP], b = best[j];               \
    const int better = X;                                  \
    best[j] = better ? v : b;                              \
    place[j] = better ? at + (I)(j * STEP) : place[j];     \
  }
#define MAXIMUM_LINE(NAME, T, I, LOWEST, X)                                                                            \
  TD_CLONES static void tap_##NAME(T *restrict best, I *restrict place, const T *restrict from, int64_t step,          \
                                   int64_t count, I start) {                                                           \
    for (int64_t j = 0; j < count; j++) {                                                                              \
      const T v = from[j * step], b = best[j];                                                                         \
      const int better = (place[j] < 0) | (X);                                                                         \
      best[j] = better ? v : b;                                                                                        \
      place[j] = better ? (I)(start + (I)(j * step)) : place[j];                                                       \
    }                                                                                                                  \
  }                                                                                                                    \
  static void regular_##NAME(const td_windows *w, const T *x, int64_t line, T *best, I *place) {                       \
    const td_window_axis *d = &w->axes[0], *h = &w->axes[1], *c = &w->axes[2];                                         \
    int64_t start_d = line / h->out * d->stride - d->padding, start_h = line % h->out * h->stride - h->padding;        \
    for (int64_t a = 0; a < d->kernel; a++)                                                                            \
      for (int64_t b = 0; b < h->kernel; b++) {                                                                        \
        int64_t in_d = start_d + a * d->dilation, in_h = start_h + b * h->dilation;                                    \
        if (in_d < 0 || in_d >= d->in || in_h < 0 || in_h >= h->in) continue;                                          \
        int64_t row = (in_d * h->in + in_h) * c->in;                                                                   \
        for (int64_t m = 0; m < c->kernel; m++) {                                                                      \
          int64_t start = m * c->dilation - c->padding;                                                                \
          int64_t low = start >= 0 ? 0 : (-start + c->stride - 1) / c->stride;                                         \
          int64_t high = start >= c->in ? 0 : least(c->out, (c->in - 1 - start) / c->stride + 1);                      \
          int64_t at = row + start + low * c->stride;                                                                  \
          if (low < high) tap_##NAME(best + low, place + low, x + at, c->stride, high - low, (I)at);                   \
        }                                                                                                              \
      }                                                                                                                \
  }                                                                                                                    \
  /* the same where all windows lie inside along the line; d and h: the window's rows there */                         \
  TD_CLONES static void inside_##NAME(const td_windows *w, const T *restrict x, const td_span *d, const td_span *h,    \
                                      T *restrict best, I *restrict place) {                                           \
    const td_window_axis *c = &w->axes[2];                                                                             \
    const int64_t n = c->out, step = c->stride;                                                                        \
    bool first = true;                                                                                                 \
    for (int64_t in_d = d->low; in_d < d->high; in_d++)                                                                \
      for (int64_t in_h = h->low; in_h < h->high; in_h++)                                                              \
        for (int64_t m = 0; m < c->kernel; m++, first = false) {                                                       \
          const I at = (I)((in_d * w->axes[1].in + in_h) * c->in + m);                                                 \
          const T *restrict from = x + at;                                                                             \
          if (first)                                                                                                   \
            for (int64_t j = 0; j < n; j++) {                                                                          \
              best[j] = from[j * step];                                                                                \
              place[j] = at + (I)(j * step);                                                                           \
            }                                                                                                          \
          else if (step == 2) BETTER(T, I, X, 2)                                                                       \
          else BETTER(T, I, X, step)                                                                                   \
        }                                                                                                              \
  }                                                                                                                    \
  static void adaptive_##NAME(const td_windows *w, const T *x, int64_t line, T *best, I *place) {                      \
    const td_window_axis *h = &w->axes[1], *c = &w->axes[2];                                                           \
    td_span sd = td_window_span(&w->axes[0], line / h->out), sh = td_window_span(h, line % h->out);                    \
    for (int64_t j = 0; j < c->out; j++) {                                                                             \
      td_span sw = td_window_span(c, j);                                                                               \
      for (int64_t a = sd.low; a < sd.high; a++)                                                                       \
        for (int64_t b = sh.low; b < sh.high; b++)                                                                     \
          for (int64_t m = sw.low; m < sw.high; m++) {                                                                 \
            int64_t at = (a * h->in + b) * c->in + m;                                                                  \
            tap_##NAME(best + j, place + j, x + at, 1, 1, (I)at);                                                      \
          }                                                                                                            \
    }                                                                                                                  \
  }                                                                                                                    \
  static void maximum_##NAME(const task *t, int64_t plane, int64_t line, void *scratch) {                              \
    int64_t n = t->w.axes[2].out, at = plane * t->w.results + line * n;                                                \
    T *best = (T *)t->out + at;                                                                                        \
    I *place = scratch;                                                                                                \
    const T *x = (const T *)t->in + plane * t->w.plane;                                                                \
    const int64_t height = t->w.axes[1].out;                                                                           \
    td_span d = td_window_span(&t->w.axes[0], line / height), h = td_window_span(&t->w.axes[1], line % height);        \
    if (t->inside && d.low < d.high && h.low < h.high) inside_##NAME(&t->w, x, &d, &h, best, place);                   \
    else {                                                                                                             \
      for (int64_t j = 0; j < n; j++) {                                                                                \
        best[j] = LOWEST;                                                                                              \
        place[j] = -1;                                                                                                 \
      }                                                                                                                \
      (t->w.axes[2].kernel ? regular_##NAME : adaptive_##NAME)(&t->w, x, line, best, place);                           \
    }                                                                                                                  \
    for (int64_t j = 0; j < n; j++) t->places[at + j] = place[j];                                                      \
  }

MAXIMUM_LINE(FLOAT32, float, int32_t, -INFINITY, (v > b) | ((v != v) & (b == b)))
MAXIMUM_LINE(FLOAT64, double, int64_t, -INFINITY, (v > b) | ((v != v) & (b == b)))
MAXIMUM_LINE(UINT8, uint8_t, int32_t, 0, v > b)
MAXIMUM_LINE(INT32, int32_t, int32_t, INT32_MIN, v > b)
MAXIMUM_LINE(INT64, int64_t, int64_t, INT64_MIN, v > b)

static bool lie_inside(const td_windows *w) {
  const td_window_axis *c = &w->axes[2];
  for (int i = 0; i < 3; i++)
    if (w->axes[i].dilation > 1) return false;
  return c->kernel && !c->padding && (c->out - 1) * c->stride + c->kernel <= c->in;
}

static int maximum_run(const td_call *call, const td_windows *w) {
  static line_function *const lines[TD_DTYPE_COUNT] = {[TD_FLOAT32] = maximum_FLOAT32,
                                                       [TD_FLOAT64] = maximum_FLOAT64,
                                                       [TD_UINT8] = maximum_UINT8,
                                                       [TD_INT32] = maximum_INT32,
                                                       [TD_INT64] = maximum_INT64};
  const td_view *out = &call->out[0];
  task t = {.w = *w, .inside = lie_inside(w), .line = lines[out->dtype], .out = out->data};
  t.places = (int64_t *)call->out[1].data;
  return run_lines(call, &t, false);
}

static int set_maximum(td_infer *infer, const td_windows *w) {
  td_windows_shape(infer, w, 0);
  td_windows_shape(infer, w, 1);
  infer->out[1].dtype = TD_INT64;
  int64_t plane = 1;
  for (int i = 0; i < 3; i++)
    if (__builtin_mul_overflow(plane, w->axes[i].in, &plane) || plane > INT32_MAX)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "an image of more than 2**31 elements");
  return check_number(infer);
}

static int max_infer(td_infer *infer, int n) {
  td_windows w;
  int code = td_windows_infer(infer, n, &infer->args[M_DILATION], infer->args[M_CEIL].i, &w);
  return code ? code : set_maximum(infer, &w);
}

static int adaptive_max_infer(td_infer *infer, int n) {
  td_windows w;
  int code = td_windows_infer_adaptive(infer, n, &infer->args[0], &w);
  return code ? code : set_maximum(infer, &w);
}

static int max_pool1d_infer(td_infer *infer) { return max_infer(infer, 1); }
static int max_pool2d_infer(td_infer *infer) { return max_infer(infer, 2); }
static int max_pool3d_infer(td_infer *infer) { return max_infer(infer, 3); }
static int adaptive_max_pool1d_infer(td_infer *infer) { return adaptive_max_infer(infer, 1); }
static int adaptive_max_pool2d_infer(td_infer *infer) { return adaptive_max_infer(infer, 2); }
static int adaptive_max_pool3d_infer(td_infer *infer) { return adaptive_max_infer(infer, 3); }

static td_windows max_windows(const td_call *call) {
  const td_arg *args = call->args;
  const td_view *x = &call->in[0];
  td_windows w;
  int axis, n = td_spatial_axes(call->op);
  td_windows_fill(&w, n, x->shape + x->rank - n, &args[M_KERNEL], &args[M_STRIDE], &args[M_PADDING], &args[M_DILATION],
                  args[M_CEIL].i, &axis);
  td_windows_count(&w, x->size);
  return w;
}

static td_windows adaptive_windows(const td_call *call) {
  const td_view *x = &call->in[0];
  int n = td_spatial_axes(call->op);
  return td_windows_adaptive(x->shape + x->rank - n, n, &call->args[0], x->size);
}

static int max_kernel(const td_call *call) {
  td_windows w = max_windows(call);
  return maximum_run(call, &w);
}
static int64_t max_workspace(const td_call *call) {
  td_windows w = max_windows(call);
  return workspace_of(call, &w);
}
static int adaptive_max_kernel(const td_call *call) {
  td_windows w = adaptive_windows(call);
  return maximum_run(call, &w);
}
static int64_t adaptive_workspace(const td_call *call) {
  td_windows w = adaptive_windows(call);
  return workspace_of(call, &w);
}

// ---- moving along places ----

typedef struct moving {
  int64_t plane, results;
  uint8_t dtype;
  const char *in;
  const int64_t *places;
  char *out;
} moving;

#define MOVING(T, name)                                                                                            \
  static void name##_scatter(const moving *m, int64_t plane) {                                                     \
    T *to = (T *)m->out + plane * m->plane;                                                                        \
    const T *from = (const T *)m->in + plane * m->results;                                                         \
    const int64_t *places = m->places + plane * m->results;                                                        \
    memset(to, 0, (size_t)m->plane * sizeof *to);                                                                  \
    for (int64_t j = 0; j < m->results; j++)                                                                       \
      if (places[j] >= 0 && places[j] < m->plane) to[places[j]] += from[j];                                        \
  }                                                                                                                \
  static void name##_gather(const moving *m, int64_t plane) {                                                      \
    const T *from = (const T *)m->in + plane * m->plane;                                                           \
    const int64_t *places = m->places + plane * m->results;                                                        \
    T *to = (T *)m->out + plane * m->results;                                                                      \
    for (int64_t j = 0; j < m->results; j++) to[j] = places[j] >= 0 && places[j] < m->plane ? from[places[j]] : 0; \
  }
MOVING(float, single)
MOVING(double, twofold)

static void scatter_planes(void *argument, int64_t first, int64_t last) {
  const moving *m = argument;
  for (int64_t p = first; p < last; p++) (m->dtype == TD_FLOAT32 ? single_scatter : twofold_scatter)(m, p);
}

static void gather_planes(void *argument, int64_t first, int64_t last) {
  const moving *m = argument;
  for (int64_t p = first; p < last; p++) (m->dtype == TD_FLOAT32 ? single_gather : twofold_gather)(m, p);
}

static int64_t last_axes(const td_view *view, int n) { return td_shape_size(n, view->shape + view->rank - n); }

static void move_place(const td_call *call, td_scratch *scratch, moving *m) {
  m->in = td_scratch_view(scratch, call->context->pool, &call->in[0], call->out[0].dtype);
  m->places = td_scratch_view(scratch, call->context->pool, &call->in[1], TD_INT64);
}

static int64_t move_workspace(const td_call *call) {
  td_scratch scratch = {0};
  moving m;
  move_place(call, &scratch, &m);
  return scratch.used;
}

static int move(const td_call *call, int n, const td_view *whole, td_range *work) {
  const td_view *out = &call->out[0];
  td_scratch scratch = {.at = call->workspace};
  moving m = {
      .plane = last_axes(whole, n), .results = last_axes(&call->in[1], n), .dtype = out->dtype, .out = out->data};
  move_place(call, &scratch, &m);
  int64_t planes = out->size ? out->size / last_axes(out, n) : 0;
  td_ranges_run(call->context->pool, planes, m.plane + m.results * 2, work, &m);
  return TD_OK;
}

static int move_infer(td_infer *infer, int n) {
  const td_meta *in = &infer->in[0], *places = &infer->in[1];
  int code = check_floating(infer);
  if (code) return code;
  if (n < 1 || in->rank < n || places->rank != in->rank || td_dtype_is_float(places->dtype))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "values and places don't belong to one pooling");
  for (int i = 0; i < in->rank - n; i++)
    if (in->shape[i] != places->shape[i])
      return td_infer_fail(infer, TD_ERROR_SHAPE, "values and places don't belong to one pooling");
  return TD_OK;
}

static int scatter_infer(td_infer *infer) {
  const td_arg *sizes = &infer->args[0];
  int n = sizes->count, code = move_infer(infer, n);
  if (code) return code;
  const td_meta *in = &infer->in[0];
  if (!td_shape_equal(in->rank, in->shape, infer->in[1].rank, infer->in[1].shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "values and places differ in shape");
  infer->out[0] = *in;
  for (int i = 0; i < n; i++) {
    infer->out[0].shape[in->rank - n + i] = sizes->ints[i];
    if (sizes->ints[i] < 0) return td_infer_fail(infer, TD_ERROR_VALUE, "sizes must not be negative");
  }
  return TD_OK;
}

static int gather_infer(td_infer *infer) {
  int code = move_infer(infer, (int)infer->args[0].i);
  infer->out[0] = infer->in[1];
  infer->out[0].dtype = infer->in[0].dtype;
  return code;
}

static int scatter_kernel(const td_call *call) {
  return move(call, call->args[0].count, &call->out[0], scatter_planes);
}
static int gather_kernel(const td_call *call) { return move(call, (int)call->args[0].i, &call->in[0], gather_planes); }

static td_tensor *pool_gather(td_scope *s, td_tensor *x, td_tensor *places, int n);
static td_tensor *pool_scatter(td_scope *s, td_tensor *c, td_tensor *places, int n, const td_meta *x);

static int scatter_vjp(td_rule *rule) {
  rule->din[0] = pool_gather(&rule->scope, rule->cotangent[0], rule->in[1], rule->args[0].count);
  return TD_OK;
}

static int gather_vjp(td_rule *rule) {
  rule->din[0] = pool_scatter(&rule->scope, rule->cotangent[0], rule->in[1], (int)rule->args[0].i, &rule->in_meta[0]);
  return TD_OK;
}

static const td_op scatter_op = {
    .name = "pool_scatter",
    .params = {TD_X, TD_TENSOR_PARAM("places"), {.name = "sizes", .kind = TD_PARAM_INTS, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HIDDEN | TD_LINEAR,
    .infer = scatter_infer,
    .kernel = scatter_kernel,
    .workspace = move_workspace,
    .vjp = scatter_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "Adds each element of x into zeros of the given sizes, at its place in its plane.\nGradient: pool_gather.",
    .samples = TD_SAMPLES{{"2,3; 2,3", "sizes=(3,)", 0, 2.9, "float64; int64"},
                          {"2,2,2; 2,2,2", "sizes=(2, 3)", 0, 5.9, "float64; int64"},
                          TD_SAMPLES_END},
};

static const td_op gather_op = {
    .name = "pool_gather",
    .params = {TD_X, TD_TENSOR_PARAM("places"), {.name = "n", .kind = TD_PARAM_INT, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HIDDEN | TD_LINEAR,
    .infer = gather_infer,
    .kernel = gather_kernel,
    .workspace = move_workspace,
    .vjp = gather_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "The elements of x at places of its planes, which are its last n axes.\nGradient: pool_scatter.",
    .samples = TD_SAMPLES{{"2,3; 2,2", "n=1", 0, 2.9, "float64; int64"},
                          {"2,2,3; 2,1,2", "n=2", 0, 5.9, "float64; int64"},
                          TD_SAMPLES_END},
};

static td_tensor *pool_gather(td_scope *s, td_tensor *x, td_tensor *places, int n) {
  const td_arg args[] = {TD_INT_ARG(n)};
  return td_scope_apply(s, &gather_op, args, 2, x, places);
}

static td_tensor *pool_scatter(td_scope *s, td_tensor *c, td_tensor *places, int n, const td_meta *x) {
  const td_arg args[] = {td_ints_arg(n, x->shape + x->rank - n)};
  return td_scope_apply(s, &scatter_op, args, 2, c, places);
}

static int max_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  if (c) rule->din[0] = pool_scatter(&rule->scope, c, rule->out[1], td_spatial_axes(rule->op), &rule->in_meta[0]);
  return TD_OK;
}

static int max_jvp(td_rule *rule) {
  rule->dout[0] = pool_gather(&rule->scope, rule->tangent[0], rule->out[1], td_spatial_axes(rule->op));
  return TD_OK;
}

// ---- means ----

static double share_of(const task *t, const td_span *d, const td_span *h,
                       const td_span *w) { // what a sum is divided by
  if (t->divisor) return (double)t->divisor;
  if (t->count_padding) return (double)d->count * (double)h->count * (double)w->count;
  return (double)(d->high - d->low) * (double)(h->high - h->low) * (double)(w->high - w->low);
}

#define MEAN_LINE(T, name)                                                                                  \
  TD_CLONES static void name##_gain(double *restrict sum, const T *restrict row, int64_t count) {           \
    for (int64_t i = 0; i < count; i++) sum[i] += (double)row[i];                                           \
  }                                                                                                         \
  TD_CLONES static void name##_spread(T *restrict row, const double *restrict more, int64_t count) {        \
    for (int64_t i = 0; i < count; i++) row[i] = (T)((double)row[i] + more[i]);                             \
  }                                                                                                         \
  static void name##_mean(const task *t, int64_t plane, int64_t line, void *scratch) {                      \
    const td_window_axis *h = &t->w.axes[1], *c = &t->w.axes[2];                                            \
    td_span sd = td_window_span(&t->w.axes[0], line / h->out), sh = td_window_span(h, line % h->out);       \
    const T *x = (const T *)t->in + plane * t->w.plane;                                                     \
    T *out = (T *)t->out + plane * t->w.results + line * c->out;                                            \
    double *sums = scratch;                                                                                 \
    memset(sums, 0, (size_t)c->in * sizeof *sums);                                                          \
    for (int64_t a = sd.low; a < sd.high; a++)                                                              \
      for (int64_t b = sh.low; b < sh.high; b++) name##_gain(sums, x + (a * h->in + b) * c->in, c->in);     \
    for (int64_t j = 0; j < c->out; j++) {                                                                  \
      td_span sw = td_window_span(c, j);                                                                    \
      double sum = 0, share = share_of(t, &sd, &sh, &sw);                                                   \
      for (int64_t m = sw.low; m < sw.high; m++) sum += sums[m];                                            \
      out[j] = (T)(share > 0 ? sum / share : 0);                                                            \
    }                                                                                                       \
  }                                                                                                         \
  static void name##_mean_adjoint(const task *t, int64_t plane, int64_t line, void *scratch) {              \
    const td_window_axis *h = &t->w.axes[1], *c = &t->w.axes[2];                                            \
    td_span sd = td_window_span(&t->w.axes[0], line / h->out), sh = td_window_span(h, line % h->out);       \
    const T *from = (const T *)t->in + plane * t->w.results + line * c->out;                                \
    T *out = (T *)t->out + plane * t->w.plane;                                                              \
    double *sums = scratch;                                                                                 \
    if (!line) memset(out, 0, (size_t)t->w.plane * sizeof *out);                                            \
    memset(sums, 0, (size_t)c->in * sizeof *sums);                                                          \
    for (int64_t j = 0; j < c->out; j++) {                                                                  \
      td_span sw = td_window_span(c, j);                                                                    \
      double share = share_of(t, &sd, &sh, &sw), each = share > 0 ? (double)from[j] / share : 0;            \
      for (int64_t m = sw.low; m < sw.high; m++) sums[m] += each;                                           \
    }                                                                                                       \
    for (int64_t a = sd.low; a < sd.high; a++)                                                              \
      for (int64_t b = sh.low; b < sh.high; b++) name##_spread(out + (a * h->in + b) * c->in, sums, c->in); \
  }
MEAN_LINE(float, single)
MEAN_LINE(double, twofold)

static int mean_run(const td_call *call, task *t, bool adjoint) {
  bool single = call->out[0].dtype == TD_FLOAT32;
  t->out = call->out[0].data;
  t->line = adjoint ? (single ? single_mean_adjoint : twofold_mean_adjoint) : single ? single_mean : twofold_mean;
  return run_lines(call, t, adjoint);
}

// avg_pool's windows over an x of these spatial sizes.
static task avg_task(const td_arg *args, int n, const int64_t *sizes, int64_t size) {
  task t = {.count_padding = args[A_COUNT_PAD].i, .divisor = args[A_DIVISOR].given ? args[A_DIVISOR].i : 0};
  int axis;
  td_windows_fill(&t.w, n, sizes, &args[A_KERNEL], &args[A_STRIDE], &args[A_PADDING], NULL, args[A_CEIL].i, &axis);
  td_windows_count(&t.w, size);
  return t;
}

static int avg_infer(td_infer *infer, int n) {
  const td_arg *divisor = &infer->args[A_DIVISOR];
  td_windows w;
  int code = td_windows_infer(infer, n, NULL, infer->args[A_CEIL].i, &w);
  if (!code) code = check_floating(infer);
  if (!code && divisor->given && divisor->i < 1)
    code = td_infer_fail(infer, TD_ERROR_VALUE, "divisor_override must be at least 1, not %lld", (long long)divisor->i);
  if (!code) td_windows_shape(infer, &w, 0);
  return code;
}

static int adaptive_avg_infer(td_infer *infer, int n) {
  td_windows w;
  int code = td_windows_infer_adaptive(infer, n, &infer->args[0], &w);
  if (!code) code = check_floating(infer);
  if (!code) td_windows_shape(infer, &w, 0);
  return code;
}

static int avg_pool1d_infer(td_infer *infer) { return avg_infer(infer, 1); }
static int avg_pool2d_infer(td_infer *infer) { return avg_infer(infer, 2); }
static int avg_pool3d_infer(td_infer *infer) { return avg_infer(infer, 3); }
static int adaptive_avg_pool1d_infer(td_infer *infer) { return adaptive_avg_infer(infer, 1); }
static int adaptive_avg_pool2d_infer(td_infer *infer) { return adaptive_avg_infer(infer, 2); }
static int adaptive_avg_pool3d_infer(td_infer *infer) { return adaptive_avg_infer(infer, 3); }

static task avg_task_of(const td_call *call) {
  const td_view *x = &call->in[0];
  int n = td_spatial_axes(call->op);
  return avg_task(call->args, n, x->shape + x->rank - n, x->size);
}

static int avg_kernel(const td_call *call) {
  task t = avg_task_of(call);
  return mean_run(call, &t, false);
}
static int64_t avg_workspace(const td_call *call) {
  task t = avg_task_of(call);
  return workspace_of(call, &t.w);
}
static int adaptive_avg_kernel(const td_call *call) {
  task t = {.w = adaptive_windows(call)};
  return mean_run(call, &t, false);
}

// ---- their adjoints ----

static int adjoint_sizes(td_infer *infer, const td_arg *sizes, bool adaptive) { // checks c against x of sizes
  const td_meta *c = &infer->in[0];
  const td_arg *args = infer->args;
  int n = sizes->count, code = check_floating(infer);
  if (code) return code;
  bool good = n >= 1 && n <= 3 && (c->rank == n + 1 || c->rank == n + 2);
  for (int i = 0; i < n && good; i++) good = sizes->ints[i] > 0 && sizes->ints[i] <= TD_SPATIAL_MAX;
  if (!good) return td_infer_fail(infer, TD_ERROR_SHAPE, "c and sizes don't belong to one pooling");
  for (int i = 0; i < (adaptive ? 1 : 3) && !code; i++) // kernel_size, stride and padding, or output_size
    code = td_spatial_check(infer, &args[i], n, infer->op->params[1 + i].name, i < 2);
  if (code) return code;
  task t = {.count_padding = false};
  if (adaptive) t.w = td_windows_adaptive(sizes->ints, n, &args[0], 0);
  else t = avg_task(args, n, sizes->ints, 0);
  infer->out[0] = *c;
  for (int i = 0; i < n; i++) {
    if (t.w.axes[3 - n + i].out != c->shape[c->rank - n + i])
      return td_infer_fail(infer, TD_ERROR_SHAPE, "c and sizes don't belong to one pooling");
    infer->out[0].shape[c->rank - n + i] = sizes->ints[i];
  }
  return TD_OK;
}

static int avg_adjoint_infer(td_infer *infer) { return adjoint_sizes(infer, &infer->args[A_SIZES], false); }
static int adaptive_adjoint_infer(td_infer *infer) { return adjoint_sizes(infer, &infer->args[1], true); }

static task avg_adjoint_task(const td_call *call) {
  const td_arg *sizes = &call->args[A_SIZES];
  return avg_task(call->args, sizes->count, sizes->ints, call->out[0].size);
}
static task adaptive_adjoint_task(const td_call *call) {
  const td_arg *sizes = &call->args[1];
  return (task){.w = td_windows_adaptive(sizes->ints, sizes->count, &call->args[0], call->out[0].size)};
}

static int avg_adjoint_kernel(const td_call *call) {
  task t = avg_adjoint_task(call);
  return mean_run(call, &t, true);
}
static int64_t avg_adjoint_workspace(const td_call *call) {
  task t = avg_adjoint_task(call);
  return workspace_of(call, &t.w);
}
static int adaptive_adjoint_kernel(const td_call *call) {
  task t = adaptive_adjoint_task(call);
  return mean_run(call, &t, true);
}
static int64_t adaptive_adjoint_workspace(const td_call *call) {
  task t = adaptive_adjoint_task(call);
  return workspace_of(call, &t.w);
}

static const td_op *avg_row(int n, bool adaptive);

static int avg_adjoint_vjp(td_rule *rule) {
  int n = rule->args[A_SIZES].count;
  rule->din[0] = td_scope_apply(&rule->scope, avg_row(n, false), rule->args, 1, rule->cotangent[0]);
  return TD_OK;
}

static int adaptive_adjoint_vjp(td_rule *rule) {
  int n = rule->args[1].count;
  rule->din[0] = td_scope_apply(&rule->scope, avg_row(n, true), rule->args, 1, rule->cotangent[0]);
  return TD_OK;
}

#define KERNEL_PARAM \
  { .name = "kernel_size", .kind = TD_PARAM_INTS, .required = true }
#define STRIDE_PARAM \
  { .name = "stride", .kind = TD_PARAM_INTS }
#define PADDING_PARAM                                                                            \
  {                                                                                              \
    .name = "padding", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {0} } \
  }
#define DILATION_PARAM                                                                            \
  {                                                                                               \
    .name = "dilation", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {1} } \
  }
#define CEIL_PARAM \
  { .name = "ceil_mode", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }
#define COUNT_PARAM \
  { .name = "count_include_pad", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1) }
#define DIVISOR_PARAM \
  { .name = "divisor_override", .kind = TD_PARAM_INT }
#define SIZES_PARAM \
  { .name = "sizes", .kind = TD_PARAM_INTS, .required = true }
#define OUTPUT_PARAM \
  { .name = "output_size", .kind = TD_PARAM_INTS, .required = true }

static const td_op avg_adjoint_op = {
    .name = "avg_pool_adjoint",
    .params = {TD_TENSOR_PARAM("c"), KERNEL_PARAM, STRIDE_PARAM, PADDING_PARAM, CEIL_PARAM, COUNT_PARAM, DIVISOR_PARAM,
               SIZES_PARAM},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN | TD_LINEAR,
    .infer = avg_adjoint_infer,
    .kernel = avg_adjoint_kernel,
    .workspace = avg_adjoint_workspace,
    .vjp = avg_adjoint_vjp,
    .doc = "The gradient of avg_pool for an x of the given spatial sizes.\nGradient: avg_pool of the cotangent.",
    .samples = TD_SAMPLES{{"2,3,2", "kernel_size=2, sizes=(5,)", -2, 2, NULL},
                          {"1,2,2,3", "kernel_size=(2, 3), stride=2, padding=1, sizes=(3, 5)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op adaptive_adjoint_op = {
    .name = "adaptive_avg_pool_adjoint",
    .params = {TD_TENSOR_PARAM("c"), OUTPUT_PARAM, SIZES_PARAM},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN | TD_LINEAR,
    .infer = adaptive_adjoint_infer,
    .kernel = adaptive_adjoint_kernel,
    .workspace = adaptive_adjoint_workspace,
    .vjp = adaptive_adjoint_vjp,
    .doc = "The gradient of adaptive_avg_pool for an x of the given spatial sizes.\n"
           "Gradient: adaptive_avg_pool of the cotangent.",
    .samples = TD_SAMPLES{{"2,3,2", "output_size=2, sizes=(5,)", -2, 2, NULL},
                          {"1,2,2,3", "output_size=(2, 3), sizes=(3, 2)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static int avg_vjp(td_rule *rule) {
  const td_meta *x = &rule->in_meta[0];
  int n = td_spatial_axes(rule->op);
  td_arg args[A_SIZES + 1];
  memcpy(args, rule->args, A_SIZES * sizeof *args);
  args[A_SIZES] = td_ints_arg(n, x->shape + x->rank - n);
  rule->din[0] = td_scope_apply(&rule->scope, &avg_adjoint_op, args, 1, rule->cotangent[0]);
  return TD_OK;
}

static int adaptive_avg_vjp(td_rule *rule) {
  const td_meta *x = &rule->in_meta[0];
  int n = td_spatial_axes(rule->op);
  const td_arg args[] = {rule->args[0], td_ints_arg(n, x->shape + x->rank - n)};
  rule->din[0] = td_scope_apply(&rule->scope, &adaptive_adjoint_op, args, 1, rule->cotangent[0]);
  return TD_OK;
}

// ---- rows ----

#define LAYOUT_DOC "x: [N, C, ...] or [C, ...]. Sizes are one number or one for each spatial axis"

#define MAX_ROW(row, text, ...)                                                                                        \
  static const td_op row = {                                                                                           \
      .name = #row,                                                                                                    \
      .params = {TD_X, KERNEL_PARAM, STRIDE_PARAM, PADDING_PARAM, DILATION_PARAM, CEIL_PARAM},                         \
      .kind = TD_KIND_OPAQUE,                                                                                          \
      .outputs = 2,                                                                                                    \
      .shown = 1,                                                                                                      \
      .infer = row##_infer,                                                                                            \
      .kernel = max_kernel,                                                                                            \
      .workspace = max_workspace,                                                                                      \
      .vjp = max_vjp,                                                                                                  \
      .jvp = max_jvp,                                                                                                  \
      .saves = TD_SAVES_OUTPUT,                                                                                        \
      .doc = "The largest element of each window; NaN where a window has one.\n" LAYOUT_DOC                            \
             "; stride None is kernel_size. Padding never wins: it counts as -inf. ceil_mode adds a last window that " \
             "leaves x.\nGradient: the cotangent at the element that was taken; of equal ones the first.",             \
      .example = text,                                                                                                 \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                                                              \
  };

MAX_ROW(max_pool1d, "max_pool1d(tensor([[[1., 3., 2., 0.]]]), 2).tolist()  # [[[3.0, 2.0]]]",
        {"2,3,6", "kernel_size=2", -2, 2, NULL},
        {"2,2,7", "kernel_size=3, stride=2, padding=1, dilation=2", -2, 2, NULL},
        {"3,5", "kernel_size=2, ceil_mode=True", -2, 2, NULL}, {"0,3,6", "kernel_size=2", -2, 2, NULL},
        {"1,2,7", "kernel_size=2, stride=3", -2, 2, NULL}, {"1,2,5", "kernel_size=3, stride=1", -9, 9, "int32"})
MAX_ROW(max_pool2d, "max_pool2d(tensor([[[[1., 2.], [4., 3.]]]]), 2).item()  # 4.0",
        {"2,2,4,5", "kernel_size=2", -2, 2, NULL},
        {"1,2,5,4", "kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)", -2, 2, NULL},
        {"1,1,5,6", "kernel_size=3, stride=2, padding=1, ceil_mode=True", -2, 2, NULL},
        {"2,6,5", "kernel_size=2, dilation=(2, 1), stride=1", -2, 2, NULL},
        {"1,2,3,3", "kernel_size=2, padding=1", -9, 9, "uint8"})
MAX_ROW(max_pool3d, "max_pool3d(ones((1, 1, 2, 2, 2)), 2).item()  # 1.0", {"1,2,3,4,4", "kernel_size=2", -2, 2, NULL},
        {"1,1,3,4,3", "kernel_size=(2, 3, 2), stride=1, padding=(1, 1, 0)", -2, 2, NULL})

#define AVG_ROW(row, text, ...)                                                                              \
  static const td_op row = {                                                                                 \
      .name = #row,                                                                                          \
      .params = {TD_X, KERNEL_PARAM, STRIDE_PARAM, PADDING_PARAM, CEIL_PARAM, COUNT_PARAM, DIVISOR_PARAM},   \
      .kind = TD_KIND_OPAQUE,                                                                                \
      .flags = TD_LINEAR,                                                                                    \
      .infer = row##_infer,                                                                                  \
      .kernel = avg_kernel,                                                                                  \
      .workspace = avg_workspace,                                                                            \
      .vjp = avg_vjp,                                                                                        \
      .doc = "The mean of each window.\n" LAYOUT_DOC                                                         \
             "; stride None is kernel_size. The zeros of padding count, unless count_include_pad is False; " \
             "divisor_override divides by another number. ceil_mode adds a last window that leaves x.\n"     \
             "Gradient: each cotangent, divided likewise, at all elements of its window.",                   \
      .example = text,                                                                                       \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                                                    \
  };

AVG_ROW(avg_pool1d, "avg_pool1d(tensor([[[1., 3., 2., 0.]]]), 2).tolist()  # [[[2.0, 1.0]]]",
        {"2,3,6", "kernel_size=2", -2, 2, NULL},
        {"2,2,7", "kernel_size=3, stride=2, padding=1, ceil_mode=True", -2, 2, NULL},
        {"3,5", "kernel_size=2, padding=1, count_include_pad=False", -2, 2, NULL},
        {"0,3,6", "kernel_size=2", -2, 2, NULL})
AVG_ROW(avg_pool2d, "avg_pool2d(tensor([[[[1., 2.], [4., 3.]]]]), 2).item()  # 2.5",
        {"2,2,4,5", "kernel_size=2", -2, 2, NULL},
        {"1,2,5,4", "kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)", -2, 2, NULL},
        {"1,1,5,6", "kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False", -2, 2, NULL},
        {"2,4,4", "kernel_size=2, divisor_override=3", -2, 2, NULL})
AVG_ROW(avg_pool3d, "avg_pool3d(ones((1, 1, 2, 2, 2)), 2).item()  # 1.0", {"1,2,3,4,2", "kernel_size=2", -2, 2, NULL},
        {"1,1,3,3,4", "kernel_size=(2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0), ceil_mode=True", -2, 2, NULL})

#define ADAPTIVE_DOC LAYOUT_DOC "; window i of n holds the elements from floor(i size / n) to ceil((i + 1) size / n).\n"

#define ADAPTIVE_AVG_ROW(row, text, ...)                                                                              \
  static const td_op row = {                                                                                          \
      .name = #row,                                                                                                   \
      .params = {TD_X, OUTPUT_PARAM},                                                                                 \
      .kind = TD_KIND_OPAQUE,                                                                                         \
      .flags = TD_LINEAR,                                                                                             \
      .infer = row##_infer,                                                                                           \
      .kernel = adaptive_avg_kernel,                                                                                  \
      .workspace = adaptive_workspace,                                                                                \
      .vjp = adaptive_avg_vjp,                                                                                        \
      .doc = "The mean of each of output_size windows that cover x; output_size 1 is the global mean.\n" ADAPTIVE_DOC \
             "Gradient: each cotangent, divided by its window's size, at all elements of the window.",                \
      .example = text,                                                                                                \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                                                             \
  };

ADAPTIVE_AVG_ROW(adaptive_avg_pool1d, "adaptive_avg_pool1d(tensor([[1., 2., 6.]]), 1).tolist()  # [[3.0]]",
                 {"2,3,7", "output_size=3", -2, 2, NULL}, {"3,2", "output_size=5", -2, 2, NULL},
                 {"0,3,4", "output_size=2", -2, 2, NULL})
ADAPTIVE_AVG_ROW(adaptive_avg_pool2d, "adaptive_avg_pool2d(ones((1, 2, 3, 4)), 1).shape  # (1, 2, 1, 1)",
                 {"2,2,4,5", "output_size=1", -2, 2, NULL}, {"1,2,5,4", "output_size=(3, 2)", -2, 2, NULL})
ADAPTIVE_AVG_ROW(adaptive_avg_pool3d, "adaptive_avg_pool3d(ones((1, 2, 3, 4, 5)), 1).shape  # (1, 2, 1, 1, 1)",
                 {"1,2,3,4,2", "output_size=(2, 3, 1)", -2, 2, NULL})

#define ADAPTIVE_MAX_ROW(row, text, ...)                                                                              \
  static const td_op row = {                                                                                          \
      .name = #row,                                                                                                   \
      .params = {TD_X, OUTPUT_PARAM},                                                                                 \
      .kind = TD_KIND_OPAQUE,                                                                                         \
      .outputs = 2,                                                                                                   \
      .shown = 1,                                                                                                     \
      .infer = row##_infer,                                                                                           \
      .kernel = adaptive_max_kernel,                                                                                  \
      .workspace = adaptive_workspace,                                                                                \
      .vjp = max_vjp,                                                                                                 \
      .jvp = max_jvp,                                                                                                 \
      .saves = TD_SAVES_OUTPUT,                                                                                       \
      .doc = "The largest element of each of output_size windows that cover x; NaN where a window has "               \
             "one.\n" ADAPTIVE_DOC "Gradient: the cotangent at the element that was taken; of equal ones the first.", \
      .example = text,                                                                                                \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                                                             \
  };

ADAPTIVE_MAX_ROW(adaptive_max_pool1d, "adaptive_max_pool1d(tensor([[1., 2., 6.]]), 1).tolist()  # [[6.0]]",
                 {"2,3,7", "output_size=3", -2, 2, NULL}, {"3,2", "output_size=5", -2, 2, NULL},
                 {"0,3,4", "output_size=2", -2, 2, NULL})
ADAPTIVE_MAX_ROW(adaptive_max_pool2d, "adaptive_max_pool2d(ones((1, 2, 3, 4)), 1).shape  # (1, 2, 1, 1)",
                 {"2,2,4,5", "output_size=1", -2, 2, NULL}, {"1,2,5,4", "output_size=(3, 2)", -2, 2, NULL})
ADAPTIVE_MAX_ROW(adaptive_max_pool3d, "adaptive_max_pool3d(ones((1, 2, 3, 4, 5)), 1).shape  # (1, 2, 1, 1, 1)",
                 {"1,2,3,4,2", "output_size=(2, 3, 1)", -2, 2, NULL})

static const td_op *avg_row(int n, bool adaptive) {
  if (adaptive) return n == 1 ? &adaptive_avg_pool1d : n == 2 ? &adaptive_avg_pool2d : &adaptive_avg_pool3d;
  return n == 1 ? &avg_pool1d : n == 2 ? &avg_pool2d : &avg_pool3d;
}

const td_op *const td_family_pooling[] = {&max_pool1d,
                                          &max_pool2d,
                                          &max_pool3d,
                                          &avg_pool1d,
                                          &avg_pool2d,
                                          &avg_pool3d,
                                          &adaptive_max_pool1d,
                                          &adaptive_max_pool2d,
                                          &adaptive_max_pool3d,
                                          &adaptive_avg_pool1d,
                                          &adaptive_avg_pool2d,
                                          &adaptive_avg_pool3d,
                                          &scatter_op,
                                          &gather_op,
                                          &avg_adjoint_op,
                                          &adaptive_adjoint_op,
                                          NULL};
