// Frames around a tensor. An axis of the result is a line of positions of x (edge, reflect, symmetric, wrap), or x
// between values that are constant or computed from x's line (linear_ramp, mean, maximum, minimum, median).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/index.h"
#include "engine/ops/map.h"

enum mode { CONSTANT, EDGE, REFLECT, SYMMETRIC, WRAP, LINEAR_RAMP, MEAN, MAXIMUM_OF, MINIMUM_OF, MEDIAN };
static const char *const mode_names[] = {"constant", "edge",    "reflect", "symmetric", "wrap",      "linear_ramp",
                                         "mean",     "maximum", "minimum", "median",    "replicate", "circular", NULL};

static enum mode mode_of(const td_arg *args) { // replicate and circular are PyTorch's words
  return args[0].i == MEDIAN + 1 ? EDGE : args[0].i == MEDIAN + 2 ? WRAP : (enum mode)args[0].i;
}

// ---- pairs: a number, (before, after), or one such pair for each axis ----

static void pair_of(const td_tensor *pairs, int axis, int64_t *before, int64_t *after) {
  int64_t row = pairs->rank == 2 && pairs->shape[0] > 1 ? axis : 0,
          columns = pairs->rank ? pairs->shape[pairs->rank - 1] : 1;
  *before = td_tensor_get_int(pairs, row * columns);
  *after = td_tensor_get_int(pairs, row * columns + (columns > 1 ? 1 : 0));
}

static bool pairs_fit(const td_meta *pairs, int rank) {
  if (pairs->rank == 0) return true;
  int64_t columns = pairs->shape[pairs->rank - 1];
  if (pairs->rank == 1) return columns == 1 || columns == 2;
  return pairs->rank == 2 && (columns == 1 || columns == 2) && (pairs->shape[0] == 1 || pairs->shape[0] == rank);
}

static int check_pairs(td_infer *infer) {
  const td_meta *in = &infer->in[0], *pairs = &infer->in[1];
  if (td_dtype_category(pairs->dtype) != 1)
    return td_infer_fail(infer, TD_ERROR_DTYPE, "pairs must be integers, not %s", td_dtype_name(pairs->dtype));
  if (pairs_fit(pairs, in->rank))
    return infer->tensors ? TD_OK : td_infer_fail(infer, TD_ERROR_VALUE, "the shape of the result depends on values");
  int code =
      td_infer_fail(infer, TD_ERROR_SHAPE, "pairs must be one (before, after), or one for each of %d axes", in->rank);
  td_error_hint(infer->context, "as in NumPy: pad(x, ((1, 1), (2, 2))); PyTorch's flat list begins at the last axis");
  return code;
}

static int check_line(td_infer *infer, int axis, int64_t before, int64_t after) {
  int64_t *size = &infer->out[0].shape[axis], length = *size;
  if (before < 0 || after < 0)
    return td_infer_fail(infer, TD_ERROR_VALUE, "axis %d: sizes %lld and %lld must not be negative", axis,
                         (long long)before, (long long)after);
  if (__builtin_add_overflow(length, before, size) || __builtin_add_overflow(*size, after, size))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d becomes too long", axis);
  if (!length && *size && mode_of(infer->args) != CONSTANT)
    return td_infer_fail(infer, TD_ERROR_VALUE, "axis %d is empty: mode \"%s\" has nothing to repeat", axis,
                         mode_names[infer->args[0].i]);
  return TD_OK;
}

static int pad_infer(td_infer *infer) {
  enum mode mode = mode_of(infer->args);
  int code = check_pairs(infer);
  infer->out[0] = infer->in[0];
  for (int i = 0; i < infer->in[0].rank && !code; i++) {
    int64_t before, after;
    pair_of(infer->tensors[1], i, &before, &after);
    code = check_line(infer, i, before, after);
  }
  if (!code && (mode == MEAN || mode == MEDIAN || mode == LINEAR_RAMP) && !td_dtype_is_float(infer->in[0].dtype))
    code = td_infer_fail(infer, TD_ERROR_DTYPE, "mode \"%s\" needs a floating dtype, not %s",
                         mode_names[infer->args[0].i], td_dtype_name(infer->in[0].dtype));
  return code;
}

static int64_t view_int(const td_view *v, int64_t at) {
  int64_t offset = 0, value;
  for (int d = v->rank; d-- > 0; at /= v->shape[d]) offset += at % v->shape[d] * v->strides[d];
  td_cast_run(&value, TD_INT64, v->data + offset * td_dtype_bytes(v->dtype), v->dtype, 0, 1, false);
  return value;
}

static int64_t before_of(const td_call *call, int axis) {
  const td_view *pairs = &call->in[1];
  int64_t row = pairs->rank == 2 && pairs->shape[0] > 1 ? axis : 0,
          columns = pairs->rank ? pairs->shape[pairs->rank - 1] : 1;
  return view_int(pairs, row * columns);
}

// ---- lines of positions ----

// The position in a line of n that stands at i, which may lie outside.
static int64_t position(enum mode mode, int64_t i, int64_t n) {
  if (mode == EDGE || n == 1) return i < 0 ? 0 : i >= n ? n - 1 : i;
  int64_t period = mode == WRAP ? n : mode == SYMMETRIC ? 2 * n : 2 * (n - 1);
  int64_t at = i % period + (i % period < 0 ? period : 0);
  return at < n ? at : mode == SYMMETRIC ? period - 1 - at : period - at;
}

static bool is_copied(enum mode mode) { return mode >= EDGE && mode <= WRAP; }

typedef struct padding {
  enum mode mode;
  int bytes, axis; // axis whose frame is filled
  int64_t before, length, total, run; // of the axis in x and in the result; bytes of one position
  char *out;
  double end;
  uint8_t dtype;
} padding;

static void copy_lines(void *argument, int64_t first, int64_t last) { // lines: positions of the axes before
  const padding *p = argument;
  for (int64_t line = first; line < last; line++) {
    char *out = p->out + line * p->total * p->run;
    for (int64_t i = 0; i < p->total; i++) {
      if (i == p->before) i += p->length;
      if (i >= p->total) break;
      memcpy(out + i * p->run, out + (p->before + position(p->mode, i - p->before, p->length)) * p->run,
             (size_t)p->run);
    }
  }
}

// ---- computed values ----

#define FILL_COLUMN(T)                                                                                             \
  do {                                                                                                             \
    T *x = (T *)out;                                                                                               \
    T value = x[p->before * step];                                                                                 \
    double sum = 0;                                                                                                \
    for (int64_t i = p->before; i < p->before + p->length; i++) {                                                  \
      T v = x[i * step];                                                                                           \
      sum += (double)v;                                                                                            \
      if (p->mode == MAXIMUM_OF ? v > value || v != v : p->mode == MINIMUM_OF && (v < value || v != v)) value = v; \
    }                                                                                                              \
    if (p->mode == MEAN) value = (T)(sum / (double)p->length);                                                     \
    T low = x[p->before * step], high = x[(p->before + p->length - 1) * step];                                     \
    for (int64_t i = 0; i < p->before; i++)                                                                        \
      x[i * step] =                                                                                                \
          p->mode == LINEAR_RAMP ? (T)(p->end + ((double)low - p->end) * (double)i / (double)p->before) : value;   \
    for (int64_t i = 0; i < after; i++)                                                                            \
      x[(p->total - 1 - i) * step] =                                                                               \
          p->mode == LINEAR_RAMP ? (T)(p->end + ((double)high - p->end) * (double)i / (double)after) : value;      \
  } while (0)

static void compute_lines(void *argument, int64_t first, int64_t last) { // lines: those of all other axes
  const padding *p = argument;
  int64_t step = p->run / p->bytes, after = p->total - p->before - p->length;
  for (int64_t line = first; line < last; line++) {
    char *out = p->out + (line / step * p->total * step + line % step) * p->bytes;
    switch (p->dtype) {
    case TD_BOOL:
    case TD_UINT8: FILL_COLUMN(uint8_t); break;
    case TD_INT32: FILL_COLUMN(int32_t); break;
    case TD_INT64: FILL_COLUMN(int64_t); break;
    case TD_FLOAT32: FILL_COLUMN(float); break;
    default: FILL_COLUMN(double);
    }
  }
}

static int ascending(const void *a, const void *b) { // NaN last
  double x = *(const double *)a, y = *(const double *)b;
  return isnan(x) ? !isnan(y) : (x > y) - (x < y) - isnan(y);
}

static void median_line(void *argument, int64_t line, void *scratch) { // a line of all other axes
  const padding *p = argument;
  double *sorted = scratch;
  int64_t step = p->run / p->bytes, n = p->length;
  char *out = p->out + (line / step * p->total * step + line % step) * p->bytes;
  for (int64_t i = 0; i < n; i++) {
    const char *at = out + (p->before + i) * p->run;
    sorted[i] = p->dtype == TD_FLOAT32 ? (double)*(const float *)at : *(const double *)at;
  }
  qsort(sorted, (size_t)n, sizeof *sorted, ascending);
  double middle = isnan(sorted[n - 1]) ? sorted[n - 1] : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  for (int64_t i = 0; i < p->total; i++) {
    if (i == p->before) i += n;
    if (i >= p->total) break;
    if (p->dtype == TD_FLOAT32) *(float *)(out + i * p->run) = (float)middle;
    else *(double *)(out + i * p->run) = middle;
  }
}

static int64_t median_bytes(const td_call *call) { // of the longest line
  int64_t longest = 0;
  for (int d = 0; d < call->in[0].rank; d++)
    if (call->in[0].shape[d] > longest) longest = call->in[0].shape[d];
  return longest * (int64_t)sizeof(double);
}

static int64_t pad_workspace(const td_call *call) {
  if (mode_of(call->args) != MEDIAN) return 0;
  return td_items_scratch(call->context->pool, call->out[0].size, median_bytes(call));
}

// x in its place; then the frame, axis by axis: each one's lines run through what the axes before have made.
static int pad_kernel(const td_call *call) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  td_pool *pool = call->context->pool;
  padding p = {.mode = mode_of(call->args), .bytes = td_dtype_bytes(out->dtype), .out = out->data, .dtype = out->dtype};
  p.end = call->args[1].f;
  int64_t offset = 0;
  if (p.mode == CONSTANT) td_cast_run(out->data, out->dtype, &p.end, TD_FLOAT64, 0, out->size, false);
  else if (!is_copied(p.mode)) memset(out->data, 0, (size_t)(out->size * p.bytes));
  for (int i = 0; i < out->rank; i++) offset += before_of(call, i) * out->strides[i];
  if (in->size)
    td_elements_move(pool, out->data + offset * p.bytes, out->strides, in->data, in->strides, p.bytes, in->rank,
                     in->shape);
  if (p.mode == CONSTANT || !out->size) return TD_OK;
  for (int axis = 0; axis < out->rank; axis++) {
    p.before = before_of(call, axis);
    p.length = in->shape[axis];
    p.total = out->shape[axis];
    p.run = out->strides[axis] * p.bytes;
    if (p.total == p.length) continue;
    int64_t lines = out->size / p.total;
    if (is_copied(p.mode))
      td_ranges_run(pool, lines / out->strides[axis], p.total * out->strides[axis], copy_lines, &p);
    else if (p.mode == MEDIAN)
      td_items_run(pool, lines, median_bytes(call), median_line, &p, call->workspace);
    else td_ranges_run(pool, lines, p.total, compute_lines, &p);
  }
  return TD_OK;
}

// ---- gradient: the axes backwards ----

static td_tensor *part(td_scope *s, td_tensor *x, int axis, int64_t first, int64_t size) {
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX], sizes[TD_RANK_MAX];
  for (int i = 0; x && i < x->rank; i++) {
    step[i] = 1;
    sizes[i] = i == axis ? size : x->shape[i];
  }
  start[axis] = first;
  return td_slice_view(s, x, start, step, sizes);
}

static td_tensor *copied_back(td_rule *rule, td_tensor *c, int axis, int64_t before, int64_t length) {
  td_scope *s = &rule->scope;
  int64_t total = c->shape[axis], shape[TD_RANK_MAX];
  td_tensor *positions = td_scope_own(s, td_tensor_new(s->context, TD_INT64, 1, &total));
  if (!positions) return NULL;
  for (int64_t i = 0; i < total; i++)
    ((int64_t *)positions->data)[i] = position(mode_of(rule->args), i - before, length);
  memcpy(shape, c->shape, sizeof shape);
  shape[axis] = length;
  return td_index_adjoint(s, c, positions, axis, c->rank, shape);
}

static td_tensor *weights(td_scope *s, int64_t count, bool descends, const td_tensor *like, int axis) { // 0, 1/n, ...
  int64_t shape[TD_RANK_MAX];
  for (int i = 0; i < like->rank; i++) shape[i] = i == axis ? count : 1;
  td_tensor *t = td_scope_own(s, td_tensor_new(s->context, TD_FLOAT64, like->rank, shape));
  if (!t) return NULL;
  for (int64_t i = 0; i < count; i++)
    ((double *)t->data)[descends ? count - 1 - i : i] = (double)i / (double)count;
  return td_cast(s, t, like->dtype);
}

// Adds to the first or the last position of c's axis what the ramp beside it took from it.
static td_tensor *ramp_back(td_scope *s, td_tensor *c, td_tensor *frame, int axis, bool after) {
  const td_arg axes = {.given = 1, .count = 1, .ints = {axis}};
  if (!c || !frame || !frame->shape[axis]) return c;
  td_tensor *w = weights(s, frame->shape[axis], after, c, axis);
  td_tensor *taken = td_sum(s, td_multiply(s, frame, w), &axes, true);
  td_meta others = td_tensor_meta(c);
  if (others.shape[axis]-- == 1) return td_add(s, c, taken);
  td_tensor *rest = td_scope_filled(s, 0, &others);
  return td_add(s, c, after ? td_concat(s, rest, taken, axis) : td_concat(s, taken, rest, axis));
}

// Of median: halves of sum for the two elements in the middle of x's lines.
static td_tensor *median_back(td_rule *rule, td_tensor *sum, td_tensor *x, int axis) {
  td_scope *s = &rule->scope;
  const td_arg args[] = {{.given = 1, .count = 1, .ints = {axis}}, TD_INT_ARG(1)};
  td_tensor *made[TD_OUTPUT_MAX]; // median, lower place, upper place, weight of the upper one
  if (td_op_apply(s->context, td_op_find("median"), &x, 1, args, made)) {
    s->failed = true;
    return NULL;
  }
  for (int i = 0; i < 4; i++) td_scope_own(s, made[i]);
  td_tensor *upper = td_multiply(s, sum, made[3]), *lower = td_subtract(s, sum, upper);
  return td_add(s, td_gather_adjoint(s, lower, made[1], axis, x->rank, x->shape),
                td_gather_adjoint(s, upper, made[2], axis, x->rank, x->shape));
}

// Of mean, maximum, minimum, median: x is the part of the result that the axis's frame was computed from.
static td_tensor *computed_back(td_rule *rule, td_tensor *middle, td_tensor *frames, td_tensor *x, int axis) {
  td_scope *s = &rule->scope;
  const td_arg axes = {.given = 1, .count = 1, .ints = {axis}};
  td_tensor *sum = td_sum(s, frames, &axes, true);
  if (!sum || !middle || !x) return NULL;
  if (mode_of(rule->args) == MEAN)
    return td_add(s, middle, td_divide(s, sum, td_scope_number(s, (double)x->shape[axis], sum)));
  if (mode_of(rule->args) == MEDIAN) return td_add(s, middle, median_back(rule, sum, x, axis));
  const td_op *find = td_op_find(mode_of(rule->args) == MAXIMUM_OF ? "max" : "min");
  const td_arg args[] = {axes, TD_INT_ARG(1)};
  td_tensor *is_it = td_equal(s, x, td_scope_apply(s, find, args, 1, x));
  td_tensor *one = is_it ? td_cast(s, is_it, sum->dtype) : NULL;
  td_tensor *share = td_chain_quotient(s, sum, td_sum(s, one, &axes, true));
  return td_add(s, middle, td_where(s, is_it, share, td_scope_number(s, 0, sum)));
}

static int pad_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *x = &rule->in_meta[0];
  enum mode mode = mode_of(rule->args);
  td_tensor *c = rule->cotangent[0], *out = rule->out[0];
  if (!rule->needs[0]) return TD_OK;
  for (int axis = x->rank; axis-- > 0 && c;) {
    int64_t before, after, n = x->shape[axis];
    pair_of(rule->in[1], axis, &before, &after);
    if (!before && !after) continue;
    td_tensor *middle = part(s, c, axis, before, n);
    if (mode == CONSTANT) c = middle;
    else if (is_copied(mode)) c = copied_back(rule, c, axis, before, n);
    else if (mode == LINEAR_RAMP) {
      td_tensor *front = part(s, c, axis, 0, before), *back = part(s, c, axis, before + n, after);
      c = ramp_back(s, ramp_back(s, middle, front, axis, false), back, axis, true);
    } else {
      td_tensor *frames = td_concat(s, part(s, c, axis, 0, before), part(s, c, axis, before + n, after), axis);
      out = out ? part(s, out, axis, before, n) : NULL;
      c = computed_back(rule, middle, frames, out, axis);
    }
  }
  rule->din[0] = c;
  return TD_OK;
}

static const td_op pad = {
    .name = "pad",
    .params = {TD_X,
               {.name = "pairs", .kind = TD_PARAM_INDEX, .alias = TD_ALIAS("pad_width", "pad", "paddings")},
               {.name = "mode", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(CONSTANT), .choices = mode_names},
               {.name = "value",
                .kind = TD_PARAM_FLOAT,
                .fallback = TD_FLOAT_DEFAULT(0),
                .alias = TD_ALIAS("constant_values", "end_values")}},
    .kind = TD_KIND_INDEX,
    .method = true,
    .infer = pad_infer,
    .kernel = pad_kernel,
    .workspace = pad_workspace,
    .vjp = pad_vjp,
    .saves = TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .doc =
        "x with a frame. pairs, as in NumPy: one number or one (before, after) for all axes, or a pair for each axis.\n"
        "mode: \"constant\" (value), \"edge\" (PyTorch: \"replicate\"), \"reflect\" (the edge stands once), "
        "\"symmetric\" "
        "(it stands twice), \"wrap\" (PyTorch: \"circular\"), \"linear_ramp\" (from the edge to value), \"mean\", "
        "\"maximum\", \"minimum\", \"median\" (of each line).\n"
        "Gradient: the cotangent, added up at the elements that were repeated; those that tie share it.",
    .example = "pad(tensor([1, 2, 3]), (1, 2), mode=\"reflect\").tolist()  # [2, 1, 2, 3, 2, 1]",
    .samples = TD_SAMPLES{{"2,3; 2,2", NULL, 0, 2, "float64; int64"},
                          {"4; -", "value=7.5", 1, 2, "float64; int64"},
                          {"3,4; 2,2", "mode=\"edge\"", 0, 2, "float64; int64"},
                          {"4,3; 2", "mode=\"reflect\"", 1, 3, "float64; int32"},
                          {"2,3; 2,2", "mode=\"symmetric\"", 1, 4, "float64; int64"},
                          {"2,3; 2,2", "mode=\"circular\"", 1, 4, "float64; int64"},
                          {"2,3; 2,2", "mode=\"linear_ramp\", value=0.5", 1, 3, "float64; int64"},
                          {"1,3; 1,2", "mode=\"linear_ramp\"", 1, 3, "float64; int64"},
                          {"2,3; 2,2", "mode=\"mean\"", 1, 3, "float64; int64"},
                          {"3,2; 2,2", "mode=\"maximum\"", 1, 3, "float64; int64"},
                          {"3,2; 2,2", "mode=\"minimum\"", 1, 3, "float64; int64"},
                          {"3,4; 2,2", "mode=\"median\"", 1, 3, "float64; int64"},
                          {"0,2; 2,2", NULL, 1, 2, "float64; int64"},
                          {"-; -", NULL, 1, 2, "float64; int64"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_pad[] = {&pad, NULL};
