// Resizing of the spatial axes of [N, C, ...], as PyTorch's interpolate. Every mode is a product of one sparse matrix
// for each axis, whose row holds what one result takes from the axis; the gradient takes the transposed matrices. One
// pass an axis, the last axis first.
#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/spatial.h"

enum { SIZE, SCALE, MODE, ALIGN, SIZES }; // arguments; SIZES: of the adjoint
enum { NEAREST, LINEAR, BILINEAR, TRILINEAR, BICUBIC, AREA, NEAREST_EXACT };
static const char *const modes[] = {"nearest", "linear", "bilinear",      "trilinear",
                                    "bicubic", "area",   "nearest-exact", NULL};

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- one axis ----

typedef struct resize { // of an axis from in to out elements
  int64_t in, out, mode;
  bool align;
  double factor; // out / in as it was asked for; 0: take that of the sizes
} resize;

// Row i takes weights[k] of element places[k], k from starts[i] to starts[i + 1] - 1.
typedef struct matrix {
  int64_t rows, columns, *starts, *places;
  double *weights;
} matrix;

static int64_t entries_of(const resize *r) { // at most
  switch (r->mode) {
  case NEAREST:
  case NEAREST_EXACT: return r->out;
  case BICUBIC: return 4 * r->out;
  case AREA: return r->in + 2 * r->out;
  default: return 2 * r->out;
  }
}

static void add(matrix *m, int64_t *count, int64_t place, double weight) {
  m->places[*count] = place < 0 ? 0 : least(place, m->columns - 1);
  m->weights[(*count)++] = weight;
}

static double step_of(const resize *r) { // elements of in for one of out
  if (r->align) return r->out > 1 ? (double)(r->in - 1) / (double)(r->out - 1) : 0;
  return r->factor > 0 ? 1 / r->factor : (double)r->in / (double)r->out;
}

// Where result i lies among the elements, whose middles are whole numbers.
static double middle(const resize *r, int64_t i) {
  return r->align ? (double)i * step_of(r) : ((double)i + 0.5) * step_of(r) - 0.5;
}

static int64_t nearest(const resize *r, int64_t i) {
  double at = (double)i + (r->mode == NEAREST_EXACT ? 0.5 : 0);
  at = r->factor > 0 ? at / r->factor : at * (double)r->in / (double)r->out;
  return (int64_t)floor(at);
}

static double cubic_near(double t) { return (1.25 * t - 2.25) * t * t + 1; } // Keys's kernel with a = -0.75, t <= 1
static double cubic_far(double t) { return ((-0.75 * t + 3.75) * t - 6) * t + 3; } // 1 <= t <= 2

static void add_row(const resize *r, int64_t i, matrix *m, int64_t *count) {
  double at = middle(r, i);
  if (r->mode == NEAREST || r->mode == NEAREST_EXACT) add(m, count, nearest(r, i), 1);
  else if (r->mode == AREA) {
    int64_t each = r->in / r->out, rest = r->in % r->out, low = i * each + i * rest / r->out;
    int64_t high = (i + 1) * each + ((i + 1) * rest + r->out - 1) / r->out;
    for (int64_t k = low; k < high; k++) add(m, count, k, 1 / (double)(high - low));
  } else if (r->mode == BICUBIC) {
    double t = at - floor(at);
    int64_t k = (int64_t)floor(at);
    add(m, count, k - 1, cubic_far(t + 1));
    add(m, count, k, cubic_near(t));
    add(m, count, k + 1, cubic_near(1 - t));
    add(m, count, k + 2, cubic_far(2 - t));
  } else {
    at = at > 0 ? at : 0;
    int64_t k = least((int64_t)at, r->in - 1);
    double t = k + 1 < r->in ? at - (double)k : 0;
    add(m, count, k, 1 - t);
    if (k + 1 < r->in) add(m, count, k + 1, t);
  }
}

static int64_t matrix_bytes(int64_t rows, int64_t entries) { return (rows + 1 + 2 * entries) * 8; }

static matrix matrix_at(char *memory, int64_t rows, int64_t columns, int64_t entries) {
  matrix m = {rows, columns, (int64_t *)memory, (int64_t *)memory + rows + 1, NULL};
  m.weights = (double *)(m.places + entries);
  return m;
}

static matrix matrix_make(const resize *r, char *memory) {
  matrix m = matrix_at(memory, r->out, r->in, entries_of(r));
  int64_t count = 0;
  for (int64_t i = 0; i < r->out; i++) {
    m.starts[i] = count;
    add_row(r, i, &m, &count);
  }
  m.starts[r->out] = count;
  return m;
}

static matrix matrix_transposed(const matrix *m, char *memory, int64_t entries) {
  matrix t = matrix_at(memory, m->columns, m->rows, entries);
  memset(t.starts, 0, (size_t)(t.rows + 1) * sizeof *t.starts);
  for (int64_t k = 0; k < m->starts[m->rows]; k++) t.starts[m->places[k] + 1]++;
  for (int64_t i = 0; i < t.rows; i++) t.starts[i + 1] += t.starts[i];
  for (int64_t i = 0; i < m->rows; i++)
    for (int64_t k = m->starts[i]; k < m->starts[i + 1]; k++) {
      int64_t to = t.starts[m->places[k]]++; // ends as the next row's start
      t.places[to] = i;
      t.weights[to] = m->weights[k];
    }
  memmove(t.starts + 1, t.starts, (size_t)t.rows * sizeof *t.starts);
  t.starts[0] = 0;
  return t;
}

// ---- passes ----

typedef struct pass { // [outer, columns, inner] to [outer, rows, inner]
  uint8_t dtype;
  const matrix *m;
  int64_t outer, inner;
  const char *in;
  char *out;
} pass;

#define PASS(T, name)                                                                                           \
  TD_CLONES static void name##_gain(T *restrict sum, const T *restrict x, int64_t n, T weight) {                \
    for (int64_t i = 0; i < n; i++) sum[i] += weight * x[i];                                                    \
  }                                                                                                             \
  static void name##_row(const pass *p, int64_t row) {                                                          \
    const matrix *m = p->m;                                                                                     \
    int64_t o = row / m->rows, i = row % m->rows;                                                               \
    const T *x = (const T *)p->in + o * m->columns * p->inner;                                                  \
    T *out = (T *)p->out + row * p->inner;                                                                      \
    if (p->inner == 1) {                                                                                        \
      double sum = 0;                                                                                           \
      for (int64_t k = m->starts[i]; k < m->starts[i + 1]; k++) sum += m->weights[k] * (double)x[m->places[k]]; \
      *out = (T)sum;                                                                                            \
      return;                                                                                                   \
    }                                                                                                           \
    memset(out, 0, (size_t)p->inner * sizeof *out);                                                             \
    for (int64_t k = m->starts[i]; k < m->starts[i + 1]; k++)                                                   \
      name##_gain(out, x + m->places[k] * p->inner, p->inner, (T)m->weights[k]);                                \
  }
PASS(float, single)
PASS(double, twofold)

static void pass_rows(void *argument, int64_t first, int64_t last) {
  const pass *p = argument;
  for (int64_t row = first; row < last; row++) (p->dtype == TD_FLOAT32 ? single_row : twofold_row)(p, row);
}

// ---- all axes ----

typedef struct plan {
  int n;
  bool adjoint;
  resize axes[3];
  int64_t outer, bytes; // images and channels; of an element
} plan;

static int64_t stage_elements(const plan *p, int done) { // after done passes, the last axis first
  int64_t size = p->outer;
  for (int i = 0; i < p->n; i++) {
    bool resized = i >= p->n - done;
    size *= resized != p->adjoint ? p->axes[i].out : p->axes[i].in;
  }
  return size;
}

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static int64_t stage_bytes(const plan *p) { // of the larger one of what lies between passes
  int64_t largest = 0;
  for (int done = 1; done < p->n; done++) largest = most(largest, stage_elements(p, done));
  return round_up(largest * p->bytes);
}

static int64_t matrix_room(const resize *r) { // the matrix and its transposed one
  int64_t entries = entries_of(r);
  return round_up(matrix_bytes(r->out, entries)) + round_up(matrix_bytes(r->in, entries));
}

static int64_t plan_bytes(const plan *p) {
  int64_t bytes = p->n > 1 ? 2 * stage_bytes(p) : 0, largest = 0;
  for (int i = 0; i < p->n; i++) largest = most(largest, matrix_room(&p->axes[i]));
  return bytes + largest;
}

static void plan_run(const td_call *call, const plan *p) {
  const char *in;
  char *stages = td_inputs_place(call, call->out[0].dtype, &in), *room = stages + (p->n > 1 ? 2 * stage_bytes(p) : 0);
  int64_t inner = 1;
  for (int done = 0; done < p->n; done++) {
    const resize *r = &p->axes[p->n - 1 - done];
    matrix m = matrix_make(r, room);
    if (p->adjoint) m = matrix_transposed(&m, room + round_up(matrix_bytes(r->out, entries_of(r))), entries_of(r));
    pass next = {.dtype = call->out[0].dtype, .m = &m, .inner = inner, .in = in};
    next.outer = stage_elements(p, done) / (m.columns * inner);
    next.out = done == p->n - 1 ? call->out[0].data : stages + (done % 2) * stage_bytes(p);
    td_ranges_run(call->context->pool, next.outer * m.rows, inner * 3 + 8, pass_rows, &next);
    in = next.out;
    inner *= m.rows;
  }
}

static int run(const td_call *call, const plan *p) {
  if (call->out[0].size) plan_run(call, p);
  return TD_OK;
}

static void plan_axis(const td_arg *args, int i, int64_t in, int64_t out, resize *r) {
  const td_arg *scale = &args[SCALE];
  *r = (resize){.in = in, .out = out, .mode = args[MODE].i, .align = args[ALIGN].i};
  if (scale->given && !args[SIZE].given) r->factor = scale->floats[scale->count == 1 ? 0 : i];
}

static plan plan_of(const td_call *call, bool adjoint) {
  const td_view *x = adjoint ? &call->out[0] : &call->in[0], *y = adjoint ? &call->in[0] : &call->out[0];
  plan p = {.n = x->rank - 2, .adjoint = adjoint, .outer = x->shape[0] * x->shape[1]};
  p.bytes = td_dtype_bytes(call->out[0].dtype);
  for (int i = 0; i < p.n; i++) plan_axis(call->args, i, x->shape[2 + i], y->shape[2 + i], &p.axes[i]);
  return p;
}

static int interpolate_kernel(const td_call *call) {
  plan p = plan_of(call, false);
  return run(call, &p);
}
static int adjoint_kernel(const td_call *call) {
  plan p = plan_of(call, true);
  return run(call, &p);
}
static int64_t workspace_of(const td_call *call, const plan *p) {
  return call->out[0].size ? td_inputs_bytes(call, call->out[0].dtype) + plan_bytes(p) : 0;
}
static int64_t interpolate_workspace(const td_call *call) {
  plan p = plan_of(call, false);
  return workspace_of(call, &p);
}
static int64_t adjoint_workspace(const td_call *call) {
  plan p = plan_of(call, true);
  return workspace_of(call, &p);
}

// ---- shapes ----

static int check_mode(td_infer *infer, int n) {
  static const int axes[] = {[LINEAR] = 1, [BILINEAR] = 2, [TRILINEAR] = 3, [BICUBIC] = 2, [NEAREST_EXACT] = 0};
  int64_t mode = infer->args[MODE].i;
  if (axes[mode] && axes[mode] != n) {
    int code = td_infer_fail(infer, TD_ERROR_VALUE, "mode \"%s\" is for %d spatial axes, x has %d", modes[mode],
                             axes[mode], n);
    if (mode != BICUBIC) td_error_hint(infer->context, "mode=\"%s\"", modes[LINEAR + n - 1]);
    return code;
  }
  if (!infer->args[ALIGN].i || axes[mode]) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "align_corners means nothing with mode \"%s\"", modes[mode]);
}

static int check_x(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  if (x->rank < 3 || x->rank > 5)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "%s must be [N, C, ...] with 1 to 3 spatial axes; it has rank %d",
                         infer->op->params[0].name, x->rank);
  if (!td_dtype_is_float(x->dtype)) {
    int code = td_infer_fail(infer, TD_ERROR_DTYPE, "x must be floating, not %s", td_dtype_name(x->dtype));
    td_error_hint(infer->context, "x.astype(float32)");
    return code;
  }
  return check_mode(infer, x->rank - 2);
}

static int scaled_size(td_infer *infer, int i, int64_t in, int64_t *out) {
  const td_arg *scale = &infer->args[SCALE];
  double factor = scale->floats[scale->count == 1 ? 0 : i], size = floor((double)in * factor);
  if (!(factor > 0) || !(size < (double)TD_SPATIAL_MAX))
    return td_infer_fail(infer, TD_ERROR_VALUE, "scale_factor must be positive and not too large, it is %g", factor);
  *out = (int64_t)size;
  return TD_OK;
}

static int interpolate_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  const td_arg *size = &infer->args[SIZE], *scale = &infer->args[SCALE];
  int code = check_x(infer), n = x->rank - 2;
  if (code) return code;
  if (!size->given == !scale->given)
    return td_infer_fail(infer, TD_ERROR_VALUE, "needs either size or scale_factor%s", size->given ? ", not both" : "");
  code = td_spatial_check(infer, size, n, "size", 1);
  if (!code && scale->given && scale->count != 1 && scale->count != n)
    code = td_infer_fail(infer, TD_ERROR_VALUE, "scale_factor has %d numbers for %d axes", scale->count, n);
  infer->out[0] = *x;
  for (int i = 0; i < n && !code; i++) {
    int64_t *out = &infer->out[0].shape[2 + i];
    if (!x->shape[2 + i] || x->shape[2 + i] > TD_SPATIAL_MAX)
      code =
          td_infer_fail(infer, TD_ERROR_SHAPE, "spatial axis %d of x is %s", i, x->shape[2 + i] ? "too long" : "empty");
    else if (size->given) *out = td_spatial_number(size, i);
    else code = scaled_size(infer, i, x->shape[2 + i], out);
    if (!code && !*out) code = td_infer_fail(infer, TD_ERROR_SHAPE, "spatial axis %d would have size 0", i);
  }
  return code;
}

static int adjoint_infer(td_infer *infer) {
  const td_meta *c = &infer->in[0];
  const td_arg *sizes = &infer->args[SIZES], *scale = &infer->args[SCALE];
  int code = check_x(infer), n = c->rank - 2;
  if (code) return code;
  if (sizes->count != n || (scale->given && scale->count != 1 && scale->count != n))
    return td_infer_fail(infer, TD_ERROR_VALUE, "%d sizes for %d axes", sizes->count, n);
  infer->out[0] = *c;
  for (int i = 0; i < n; i++) {
    infer->out[0].shape[2 + i] = sizes->ints[i];
    if (sizes->ints[i] < 1 || sizes->ints[i] > TD_SPATIAL_MAX || !c->shape[2 + i])
      return td_infer_fail(infer, TD_ERROR_VALUE, "sizes must be at least 1");
  }
  return TD_OK;
}

// ---- rows ----

static const td_op interpolate_op, adjoint_op;

static int interpolate_vjp(td_rule *rule) {
  const td_meta *x = &rule->in_meta[0];
  td_arg args[SIZES + 1];
  memcpy(args, rule->args, SIZES * sizeof *args);
  args[SIZES] = td_ints_arg(x->rank - 2, x->shape + 2);
  rule->din[0] = td_scope_apply(&rule->scope, &adjoint_op, args, 1, rule->cotangent[0]);
  return TD_OK;
}

// The sizes of c are asked for: by the scale that gave them, or as they are.
static int adjoint_vjp(td_rule *rule) {
  const td_meta *c = &rule->in_meta[0];
  td_arg args[SIZES];
  memcpy(args, rule->args, sizeof args);
  if (!args[SCALE].given) args[SIZE] = td_ints_arg(c->rank - 2, c->shape + 2);
  rule->din[0] = td_scope_apply(&rule->scope, &interpolate_op, args, 1, rule->cotangent[0]);
  return TD_OK;
}

#define PARAMS                                                                                            \
  {.name = "size", .kind = TD_PARAM_INTS}, {.name = "scale_factor", .kind = TD_PARAM_FLOATS},             \
      {.name = "mode", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(NEAREST), .choices = modes}, { \
    .name = "align_corners", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)                         \
  }

static const td_op interpolate_op = {
    .name = "interpolate",
    .params = {TD_X, PARAMS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .infer = interpolate_infer,
    .kernel = interpolate_kernel,
    .workspace = interpolate_workspace,
    .vjp = interpolate_vjp,
    .doc =
        "x [N, C, ...] resized along its one to three spatial axes, to size or by scale_factor (one number or one an "
        "axis).\n"
        "mode: \"nearest\" takes element floor(i in / out), \"nearest-exact\" the one whose middle is nearest; "
        "\"linear\", \"bilinear\", \"trilinear\" (1, 2, 3 axes) and \"bicubic\" (2; a = -0.75) weigh the elements "
        "around; \"area\" is the mean of what a result covers. The middles of the first and last elements are kept "
        "with align_corners, else their outer edges. Positions follow scale_factor itself where it is given.\n"
        "Gradient: each cotangent with the same weights.",
    .example = "interpolate(tensor([[[1., 3.]]]), size=3, mode=\"linear\", align_corners=True).tolist()"
               "  # [[[1.0, 2.0, 3.0]]]",
    .source = "PyTorch's interpolate; Keys: Cubic Convolution Interpolation, 1981",
    .samples = TD_SAMPLES{{"2,2,3", "size=7", -2, 2, NULL},
                          {"1,2,5", "scale_factor=1.7, mode=\"linear\"", -2, 2, NULL},
                          {"1,2,5", "size=3, mode=\"linear\", align_corners=True", -2, 2, NULL},
                          {"1,2,3,4", "scale_factor=(2, 1.5), mode=\"bilinear\"", -2, 2, NULL},
                          {"1,1,3,4", "size=(5, 2), mode=\"bilinear\", align_corners=True", -2, 2, NULL},
                          {"1,1,4,3", "size=(7, 5), mode=\"bicubic\"", -2, 2, NULL},
                          {"1,1,4,3", "scale_factor=0.6, mode=\"bicubic\"", -2, 2, NULL},
                          {"1,1,4,3", "size=(3, 4), mode=\"bicubic\", align_corners=True", -2, 2, NULL},
                          {"1,1,2,3,2", "size=(3, 2, 4), mode=\"trilinear\"", -2, 2, NULL},
                          {"2,1,5,4", "size=(3, 6), mode=\"area\"", -2, 2, NULL},
                          {"1,1,2,3,2", "scale_factor=2.0", -2, 2, NULL},
                          {"1,2,3,5", "size=(7, 3), mode=\"nearest-exact\"", -2, 2, NULL},
                          {"0,2,3", "size=5", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op adjoint_op = {
    .name = "interpolate_adjoint",
    .params = {TD_TENSOR_PARAM("c"), PARAMS, {.name = "sizes", .kind = TD_PARAM_INTS, .required = true}},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN | TD_LINEAR,
    .infer = adjoint_infer,
    .kernel = adjoint_kernel,
    .workspace = adjoint_workspace,
    .vjp = adjoint_vjp,
    .doc = "The gradient of interpolate for an x of the given spatial sizes.\nGradient: interpolate of the cotangent.",
    .samples = TD_SAMPLES{{"1,2,4", "size=4, mode=\"linear\", sizes=(3,)", -2, 2, NULL},
                          {"1,1,6,4", "scale_factor=2.0, mode=\"bicubic\", sizes=(3, 2)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_interpolate[] = {&interpolate_op, &adjoint_op, NULL};
