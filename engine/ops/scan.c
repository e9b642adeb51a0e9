// Running sums and products along an axis. Without an axis they run over all elements in row-major order and the result
// is 1-d, as in NumPy.
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

enum scan { SUM, PRODUCT };

typedef struct work {
  td_lines lines;
  uint8_t dtype;
  enum scan scan;
} work;

#define SCAN(T, ACCUMULATOR)                                                                \
  do {                                                                                      \
    const T *x = (const T *)w->lines.in + i * n;                                            \
    T *out = (T *)w->lines.out + i * n;                                                     \
    ACCUMULATOR running = w->scan == SUM ? 0 : 1;                                           \
    for (int64_t j = 0; j < n; j++) {                                                       \
      running = w->scan == SUM ? running + (ACCUMULATOR)x[j] : running * (ACCUMULATOR)x[j]; \
      out[j] = (T)running;                                                                  \
    }                                                                                       \
  } while (0)

static void run_lines(void *argument, int64_t first, int64_t last) {
  const work *w = argument;
  int64_t n = w->lines.length;
  for (int64_t i = first; i < last; i++) {
    if (w->dtype == TD_FLOAT32) SCAN(float, double);
    else if (w->dtype == TD_FLOAT64) SCAN(double, double);
    else SCAN(int64_t, uint64_t);
  }
}

static int scan_kernel(const td_call *call, enum scan scan) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  const td_arg *given = &call->args[0];
  work w = {.dtype = out->dtype, .scan = scan};
  int axis = given->given ? (int)(given->i < 0 ? given->i + in->rank : given->i) : 0, code;
  if (given->given) code = td_lines_open(call, axis, out->dtype, &w.lines);
  else {
    code = td_flat_open(call, in, out->dtype, &w.lines.flat);
    w.lines = (td_lines){1, in->size, w.lines.flat.data, out->data, w.lines.flat, NULL};
  }
  if (code) return code;
  td_ranges_run(call->context->pool, w.lines.count, w.lines.length, run_lines, &w);
  td_lines_close(call, axis, &w.lines);
  return TD_OK;
}

static int cumsum_kernel(const td_call *call) { return scan_kernel(call, SUM); }
static int cumprod_kernel(const td_call *call) { return scan_kernel(call, PRODUCT); }

static int scan_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  int axis;
  *out = *in;
  if (!td_dtype_is_float(in->dtype)) out->dtype = TD_INT64;
  if (infer->args[0].given) return td_infer_axis(infer, infer->args[0].i, in->rank, &axis);
  out->rank = 1;
  out->shape[0] = td_shape_size(in->rank, in->shape);
  return TD_OK;
}

// ---- gradients, over [lines, n] ----

typedef struct turned { // how a tensor of the input's shape becomes lines, and back
  int rank, axes[TD_RANK_MAX], back[TD_RANK_MAX];
  int64_t shape[TD_RANK_MAX], flat[2];
} turned;

static turned turned_of(const td_rule *rule) {
  const td_meta *in = &rule->in_meta[0];
  const td_arg *given = &rule->args[0];
  int64_t size = td_shape_size(in->rank, in->shape);
  turned t = {.rank = in->rank};
  int axis = given->given ? (int)(given->i < 0 ? given->i + in->rank : given->i) : in->rank - 1;
  for (int i = 0; i < in->rank; i++) {
    t.axes[i] = i < axis ? i : i + 1 < in->rank ? i + 1 : axis;
    t.back[t.axes[i]] = i;
    t.shape[i] = in->shape[t.axes[i]];
  }
  t.flat[1] = given->given ? in->shape[axis] : size;
  t.flat[0] = t.flat[1] ? size / t.flat[1] : 0;
  return t;
}

static td_tensor *to_lines(td_scope *s, const turned *t, td_tensor *x, bool flat) { // flat: x is 1-d already
  return td_reshape(s, flat ? x : td_permute(s, x, t->axes), 2, t->flat);
}

static td_tensor *from_lines(td_scope *s, const turned *t, td_tensor *x) {
  return td_permute(s, td_reshape(s, x, t->rank, t->shape), t->back);
}

static td_tensor *scan_again(td_scope *s, const td_op *op, td_tensor *x, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, op, args, 1, x);
}

static int cumsum_vjp(td_rule *rule) { // the running sum from the other end
  td_scope *s = &rule->scope;
  const td_arg last = {.given = 1, .count = 1, .ints = {1}};
  turned t = turned_of(rule);
  if (!t.flat[0] || !t.flat[1]) return TD_OK;
  td_tensor *c = td_flip(s, to_lines(s, &t, rule->cotangent[0], !rule->args[0].given), &last);
  rule->din[0] = from_lines(s, &t, td_flip(s, scan_again(s, rule->op, c, 1), &last));
  return TD_OK;
}

// dx[j] = (product before j) s[j] with s[j] = c[j] + x[j + 1] s[j + 1], which is found by doubling: nothing is divided,
// and it is made of ops.
static int cumprod_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  turned t = turned_of(rule);
  if (!t.flat[0] || !t.flat[1]) return TD_OK;
  td_tensor *x = to_lines(s, &t, rule->in[0], false);
  td_tensor *sums = to_lines(s, &t, rule->cotangent[0], !rule->args[0].given);
  td_tensor *factors = td_shift_lines(s, x, 1, false, 0);
  for (int64_t by = 1; by < t.flat[1] && sums && factors; by *= 2) {
    sums = td_add(s, sums, td_multiply(s, factors, td_shift_lines(s, sums, by, false, 0)));
    factors = td_multiply(s, factors, td_shift_lines(s, factors, by, false, 0));
  }
  rule->din[0] = from_lines(s, &t, td_multiply(s, sums, td_products_beside(s, x, true)));
  return TD_OK;
}

// ---- rows ----

static const td_sample scan_samples[] = {
    {"4", "axis=0", -2, 2, NULL},     {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL}, {"2,3", "axis=-1", -2, 2, NULL},
    {"0,3", "axis=0", -2, 2, NULL},   {"-", NULL, -2, 2, NULL},
    {"5", NULL, 0, 9, "uint8"},       TD_SAMPLES_END,
};
#define SCAN_PARAMS                                 \
  {                                                 \
    TD_X, { .name = "axis", .kind = TD_PARAM_AXIS } \
  }

static const td_op cumsum = {
    .name = "cumsum",
    .params = SCAN_PARAMS,
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .method = true,
    .infer = scan_infer,
    .batch = td_batch_axes,
    .kernel = cumsum_kernel,
    .vjp = cumsum_vjp,
    .doc = "Running sums along axis; over all elements, as a 1-d tensor, when None. Of integers and bools they are "
           "int64.\n"
           "Gradient: the running sum of the cotangent from the other end.",
    .example = "cumsum(tensor([1, 2, 3])).tolist()  # [1, 3, 6]",
    .samples = scan_samples,
};

static const td_op cumprod = {
    .name = "cumprod",
    .params = SCAN_PARAMS,
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = scan_infer,
    .batch = td_batch_axes,
    .kernel = cumprod_kernel,
    .vjp = cumprod_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "Running products along axis; over all elements, as a 1-d tensor, when None. Of integers and bools they are "
           "int64.\n"
           "Gradient: found without dividing, so zeros are right.",
    .example = "cumprod(tensor([1, 2, 3])).tolist()  # [1, 2, 6]",
    .samples = scan_samples,
};

const td_op *const td_family_scan[] = {&cumsum, &cumprod, NULL};
