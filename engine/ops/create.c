// Tensors out of nothing: constants and ranges.
#include <math.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

enum { BLOCK = 512 };

#define SHAPE_PARAM \
  { .name = "shape", .kind = TD_PARAM_SHAPE, .required = true, .alias = TD_ALIAS("size") }
#define DTYPE_PARAM(standard) \
  { .name = "dtype", .kind = TD_PARAM_DTYPE, .fallback = TD_INT_DEFAULT(standard) }
static const char made[] = "made from no tensor";

static double number_of(const td_arg *number) { return number->count ? number->f : (double)number->i; }
static uint8_t dtype_or(const td_arg *dtype, uint8_t standard) { return dtype->given ? (uint8_t)dtype->i : standard; }

static int shape_infer(td_infer *infer, const td_arg *shape, uint8_t dtype) {
  infer->out[0] = (td_meta){.dtype = dtype, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) {
    if (shape->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "shape: size of axis %d is negative: %lld", i,
                           (long long)shape->ints[i]);
    infer->out[0].shape[i] = shape->ints[i];
  }
  return TD_OK;
}

static int hold_fail(const td_call *call, const char *what, double value) {
  char number[TD_NUMBER_TEXT];
  td_number_print(number, value);
  return td_error_set(call->context, TD_ERROR_VALUE, "%s: dtype %s can't hold %s%s", call->op->name,
                      td_dtype_name(call->out[0].dtype), what, number);
}

// ---- full, zeros, ones ----

static int full_infer(td_infer *infer) {
  return shape_infer(infer, &infer->args[0], dtype_or(&infer->args[2], infer->args[1].count ? TD_FLOAT32 : TD_INT64));
}

static bool holds(uint8_t dtype, int64_t value) { // is the integer itself again, cast to dtype and back?
  int64_t cell, back;
  td_cast_run(&cell, dtype, &value, TD_INT64, 0, 1, false);
  td_cast_run(&back, TD_INT64, &cell, dtype, 0, 1, false);
  return back == value;
}

static int full_kernel(const td_call *call) {
  const td_arg *value = &call->args[1];
  const td_view *out = &call->out[0];
  uint8_t from = value->count ? TD_FLOAT64 : TD_INT64;
  bool fits = value->count || td_dtype_category(out->dtype) != 1 || holds(out->dtype, value->i);
  const void *number = value->count ? (const void *)&value->f : &value->i;
  fits &= td_cast_run(out->data, out->dtype, number, from, 0, out->size, false);
  if (fits) return TD_OK;
  if (value->count) return hold_fail(call, "value ", value->f);
  return td_error_set(call->context, TD_ERROR_VALUE, "%s: dtype %s can't hold value %lld", call->op->name,
                      td_dtype_name(out->dtype), (long long)value->i);
}

static const td_op full = {
    .name = "full",
    .params = {SHAPE_PARAM,
               {.name = "value", .kind = TD_PARAM_NUMBER, .required = true, .alias = TD_ALIAS("fill_value")},
               {.name = "dtype", .kind = TD_PARAM_DTYPE}},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = full_infer,
    .kernel = full_kernel,
    .no_gradient = made,
    .doc = "A tensor with value in every place. Without dtype an int makes int64 and a float float32.",
    .example = "full((2, 2), 7.5).tolist()  # [[7.5, 7.5], [7.5, 7.5]]",
    .samples =
        TD_SAMPLES{{"", "shape=(2, 3), value=1.5", 0, 1, NULL}, {"", "shape=(), value=3", 0, 1, NULL}, TD_SAMPLES_END},
};

static int plain_infer(td_infer *infer) { return shape_infer(infer, &infer->args[0], (uint8_t)infer->args[1].i); }

static int zeros_kernel(const td_call *call) {
  memset(call->out[0].data, 0, (size_t)(call->out[0].size * td_dtype_bytes(call->out[0].dtype)));
  return TD_OK;
}

static int ones_kernel(const td_call *call) {
  const int64_t one = 1;
  td_cast_run(call->out[0].data, call->out[0].dtype, &one, TD_INT64, 0, call->out[0].size, false);
  return TD_OK;
}

#define CONSTANT(NAME, ALIAS, EXAMPLE)                                                                                 \
  static const td_op NAME = {                                                                                          \
      .name = #NAME,                                                                                                   \
      .alias = ALIAS,                                                                                                  \
      .params = {SHAPE_PARAM, DTYPE_PARAM(TD_FLOAT32)},                                                                \
      .kind = TD_KIND_OPAQUE,                                                                                          \
      .flags = TD_HALF,                                                                                                \
      .infer = plain_infer,                                                                                            \
      .kernel = NAME##_kernel,                                                                                         \
      .no_gradient = made,                                                                                             \
      .doc = "A tensor of " #NAME ".",                                                                                 \
      .example = EXAMPLE,                                                                                              \
      .samples =                                                                                                       \
          TD_SAMPLES{{"", "shape=(2, 3)", 0, 1, NULL}, {"", "shape=(0, 3), dtype=int64", 0, 1, NULL}, TD_SAMPLES_END}, \
  };
CONSTANT(zeros, TD_ALIAS("empty"), "zeros((2, 2)).tolist()  # [[0.0, 0.0], [0.0, 0.0]]")
CONSTANT(ones, NULL, "ones(3).tolist()  # [1.0, 1.0, 1.0]")

// ---- arange ----

typedef struct range {
  bool whole; // all three are ints
  double start, step;
  int64_t first, by;
} range;

static range range_of(const td_arg *args) {
  range r = {.whole = !args[0].count && !args[1].count && !args[2].count, .step = number_of(&args[2]), .by = args[2].i};
  if (args[1].given) {
    r.start = number_of(&args[0]);
    r.first = args[0].i;
  }
  return r;
}

static int arange_infer(td_infer *infer) {
  const td_arg *args = infer->args, *stop = args[1].given ? &args[1] : &args[0];
  range r = range_of(args);
  if (r.step == 0) return td_infer_fail(infer, TD_ERROR_VALUE, "step is 0");
  double count = ceil((number_of(stop) - r.start) / r.step);
  if (isnan(count) || count > 0x1p60)
    return td_infer_fail(infer, TD_ERROR_VALUE, "start %g, stop %g and step %g make %g elements", r.start,
                         number_of(stop), r.step, count);
  int64_t size = count > 0 ? (int64_t)count : 0;
  if (r.whole) {
    uint64_t distance = r.by > 0 ? (uint64_t)stop->i - (uint64_t)r.first : (uint64_t)r.first - (uint64_t)stop->i;
    uint64_t step = r.by > 0 ? (uint64_t)r.by : -(uint64_t)r.by;
    bool some = r.by > 0 ? stop->i > r.first : stop->i < r.first;
    size = some ? (int64_t)((distance - 1) / step + 1) : 0;
  }
  infer->out[0] = (td_meta){.dtype = dtype_or(&args[3], r.whole ? TD_INT64 : TD_FLOAT32), .rank = 1, .shape = {size}};
  return TD_OK;
}

static int arange_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  range r = range_of(call->args);
  int64_t bytes = td_dtype_bytes(out->dtype);
  for (int64_t done = 0; done < out->size; done += BLOCK) {
    int64_t count = out->size - done < BLOCK ? out->size - done : BLOCK, whole[BLOCK];
    double values[BLOCK];
    for (int64_t i = 0; i < count; i++) {
      whole[i] = (int64_t)((uint64_t)r.first + (uint64_t)(done + i) * (uint64_t)r.by);
      values[i] = r.start + (double)(done + i) * r.step;
    }
    if (!td_cast_run(out->data + done * bytes, out->dtype, r.whole ? (const void *)whole : values,
                     r.whole ? TD_INT64 : TD_FLOAT64, 8, count, false))
      return hold_fail(call, "", r.step > 0 ? values[count - 1] : values[0]);
  }
  return TD_OK;
}

static const td_op arange = {
    .name = "arange",
    .params = {{.name = "start", .kind = TD_PARAM_NUMBER, .required = true},
               {.name = "stop", .kind = TD_PARAM_NUMBER},
               {.name = "step", .kind = TD_PARAM_NUMBER, .fallback = TD_INT_DEFAULT(1)},
               {.name = "dtype", .kind = TD_PARAM_DTYPE}},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = arange_infer,
    .kernel = arange_kernel,
    .no_gradient = made,
    .doc = "Numbers from start (included) to stop (not included) by step; arange(n) counts from 0.\n"
           "ceil((stop - start) / step) of them. Without dtype ints make int64, floats float32.",
    .example = "arange(2, 8, 2).tolist()  # [2, 4, 6]",
    .samples = TD_SAMPLES{{"", "start=5", 0, 1, NULL},
                          {"", "start=0.1, stop=0.5, step=0.05", 0, 1, NULL},
                          {"", "start=3, stop=-4, step=-2", 0, 1, NULL},
                          {"", "start=3, stop=1", 0, 1, NULL},
                          TD_SAMPLES_END},
};

td_tensor *td_arange(td_scope *s, int64_t count) {
  const td_arg args[] = {TD_INT_ARG(count), {.given = 0}, TD_INT_ARG(1), {.given = 0}};
  return td_scope_apply(s, &arange, args, 0);
}

// ---- linspace ----

#define STEPS_PARAMS                                                                                            \
  {.name = "start", .kind = TD_PARAM_FLOAT, .required = true},                                                  \
      {.name = "stop", .kind = TD_PARAM_FLOAT, .required = true, .alias = TD_ALIAS("end")},                     \
      {.name = "num", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(50), .alias = TD_ALIAS("steps")}, {      \
    .name = "endpoint", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)                                    \
  }

static int steps_infer(td_infer *infer, const td_arg *dtype) {
  const td_arg *args = infer->args;
  if (args[2].i < 0) return td_infer_fail(infer, TD_ERROR_VALUE, "num is negative: %lld", (long long)args[2].i);
  infer->out[0] = (td_meta){.dtype = (uint8_t)dtype->i, .rank = 1, .shape = {args[2].i}};
  return TD_OK;
}

static int linspace_infer(td_infer *infer) { return steps_infer(infer, &infer->args[4]); }

static int linspace_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  double start = call->args[0].f, stop = call->args[1].f;
  bool endpoint = call->args[3].i;
  int64_t parts = out->size - (endpoint ? 1 : 0), bytes = td_dtype_bytes(out->dtype);
  for (int64_t i = 0; i < out->size; i++) {
    double at = parts > 0 ? (double)i / (double)parts : 0,
           value = endpoint && i == parts && i ? stop : start + (stop - start) * at;
    if (!td_cast_run(out->data + i * bytes, out->dtype, &value, TD_FLOAT64, 0, 1, false))
      return hold_fail(call, "", value);
  }
  return TD_OK;
}

static const td_op linspace = {
    .name = "linspace",
    .params = {STEPS_PARAMS, DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = linspace_infer,
    .kernel = linspace_kernel,
    .no_gradient = made,
    .doc = "num numbers at equal distances from start to stop; endpoint says whether stop is the last of them.",
    .example = "linspace(0., 1., 5).tolist()  # [0.0, 0.25, 0.5, 0.75, 1.0]",
    .samples = TD_SAMPLES{{"", "start=0.0, stop=1.0, num=5", 0, 1, NULL},
                          {"", "start=2.0, stop=1.0, num=4, endpoint=False", 0, 1, NULL},
                          {"", "start=2.0, stop=3.0, num=1", 0, 1, NULL},
                          {"", "start=0.0, stop=1.0, num=0", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- eye ----

// Of an op without tensors: the argument is a side of a matrix, or None.
static int check_side(td_infer *infer, int arg) {
  const td_arg *side = &infer->args[arg];
  if (!side->given || (side->i >= 0 && side->i <= INT32_MAX)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "%s is %s: %lld", infer->op->params[arg].name,
                       side->i < 0 ? "negative" : "too large", (long long)side->i);
}

static int eye_infer(td_infer *infer) {
  const td_arg *args = infer->args;
  int code = check_side(infer, 0);
  if (!code) code = check_side(infer, 1);
  if (code) return code;
  td_arg shape = {.given = 1, .count = 2};
  shape.ints[0] = args[0].i;
  shape.ints[1] = args[1].given ? args[1].i : args[0].i;
  return shape_infer(infer, &shape, (uint8_t)args[3].i);
}

static int eye_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  const int64_t k = call->args[2].i, one = 1, rows = out->shape[0], columns = out->shape[1],
                bytes = td_dtype_bytes(out->dtype);
  zeros_kernel(call);
  if (k > columns || k < -rows) return TD_OK;
  for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < columns; i++)
    td_cast_run(out->data + (i * columns + i + k) * bytes, out->dtype, &one, TD_INT64, 0, 1, false);
  return TD_OK;
}

static const td_op eye = {
    .name = "eye",
    .alias = TD_ALIAS("identity"),
    .params = {{.name = "n", .kind = TD_PARAM_INT, .required = true},
               {.name = "m", .kind = TD_PARAM_INT},
               {.name = "k", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0)},
               DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = eye_infer,
    .kernel = eye_kernel,
    .no_gradient = made,
    .doc = "An n x m matrix (m = n when None) of zeros with ones on its k-th diagonal.",
    .example = "eye(2).tolist()  # [[1.0, 0.0], [0.0, 1.0]]",
    .samples = TD_SAMPLES{{"", "n=3", 0, 1, NULL},
                          {"", "n=2, m=4, k=1", 0, 1, NULL},
                          {"", "n=3, m=2, k=-1", 0, 1, NULL},
                          TD_SAMPLES_END},
};

td_tensor *td_eye_of(td_scope *s, int64_t n, int64_t m, int64_t k, uint8_t dtype) {
  const td_arg args[] = {TD_INT_ARG(n), TD_INT_ARG(m), TD_INT_ARG(k), TD_INT_ARG(dtype)};
  return td_scope_apply(s, &eye, args, 0);
}

// ---- logspace, geomspace: powers of a base at equal distances ----

// Exponents of the first and the last number; the sign is that of both.
static void fill_powers(const td_call *call, double base, double first, double last, double start, double stop) {
  const td_view *out = &call->out[0];
  bool endpoint = call->args[3].i;
  int64_t parts = out->size - (endpoint ? 1 : 0), bytes = td_dtype_bytes(out->dtype);
  for (int64_t i = 0; i < out->size; i++) {
    double at = parts > 0 ? (double)i / (double)parts : 0, value = pow(base, first + (last - first) * at);
    if (start < 0) value = -value;
    if (!isnan(start) && i == 0) value = start;
    if (!isnan(stop) && endpoint && i == parts && i) value = stop;
    td_cast_run(out->data + i * bytes, out->dtype, &value, TD_FLOAT64, 0, 1, false);
  }
}

static int logspace_infer(td_infer *infer) { return steps_infer(infer, &infer->args[5]); }

static int logspace_kernel(const td_call *call) {
  const td_arg *args = call->args;
  fill_powers(call, args[4].f, args[0].f, args[1].f, NAN, NAN);
  return TD_OK;
}

static const td_op logspace = {
    .name = "logspace",
    .params = {STEPS_PARAMS,
               {.name = "base", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(10)},
               DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = logspace_infer,
    .kernel = logspace_kernel,
    .no_gradient = made,
    .doc = "base to the powers of linspace(start, stop, num, endpoint).",
    .example = "logspace(0., 2., 3).tolist()  # [1.0, 10.0, 100.0]",
    .samples = TD_SAMPLES{{"", "start=0.0, stop=3.0, num=4", 0, 1, NULL},
                          {"", "start=-1.0, stop=2.0, num=5, endpoint=False, base=2.0, dtype=float64", 0, 1, NULL},
                          {"", "start=2.0, stop=3.0, num=1", 0, 1, NULL},
                          TD_SAMPLES_END},
};

static int geomspace_infer(td_infer *infer) {
  double start = infer->args[0].f, stop = infer->args[1].f;
  if (start * stop > 0) return steps_infer(infer, &infer->args[4]);
  return td_infer_fail(infer, TD_ERROR_VALUE, "start and stop must be of one sign and not 0: %g and %g", start, stop);
}

static int geomspace_kernel(const td_call *call) {
  double start = call->args[0].f, stop = call->args[1].f;
  fill_powers(call, 10, log10(fabs(start)), log10(fabs(stop)), start, stop);
  return TD_OK;
}

static const td_op geomspace = {
    .name = "geomspace",
    .params = {STEPS_PARAMS, DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = geomspace_infer,
    .kernel = geomspace_kernel,
    .no_gradient = made,
    .doc =
        "num numbers from start to stop, each the same multiple of the one before; endpoint says whether stop is the "
        "last of them.",
    .example = "geomspace(1., 8., 4).tolist()  # [1.0, 2.0, 4.0, 8.0]",
    .samples = TD_SAMPLES{{"", "start=1.0, stop=1000.0, num=4", 0, 1, NULL},
                          {"", "start=-2.0, stop=-32.0, num=5, endpoint=False, dtype=float64", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- full_like, zeros_like, ones_like ----

static int like_vjp(td_rule *rule) { // only x's shape and dtype matter
  rule->din[0] = td_scope_filled(&rule->scope, 0, &rule->in_meta[0]);
  return TD_OK;
}

static int like_infer(td_infer *infer, const td_arg *dtype) {
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = dtype_or(dtype, infer->in[0].dtype);
  return TD_OK;
}

static int full_like_infer(td_infer *infer) { return like_infer(infer, &infer->args[1]); }
static int plain_like_infer(td_infer *infer) { return like_infer(infer, &infer->args[0]); }

static int full_like_kernel(const td_call *call) {
  const td_arg *value = &call->args[0];
  const td_view *out = &call->out[0];
  uint8_t from = value->count ? TD_FLOAT64 : TD_INT64;
  if (!td_cast_run(out->data, out->dtype, value->count ? (const void *)&value->f : &value->i, from, 0, out->size,
                   false))
    return hold_fail(call, "value ", value->f);
  return TD_OK;
}

static const td_op full_like = {
    .name = "full_like",
    .params = {TD_X,
               {.name = "value", .kind = TD_PARAM_NUMBER, .required = true, .alias = TD_ALIAS("fill_value")},
               {.name = "dtype", .kind = TD_PARAM_DTYPE}},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = full_like_infer,
    .kernel = full_like_kernel,
    .vjp = like_vjp,
    .doc = "A tensor of x's shape with value in every place; of x's dtype unless another is given.\nGradient: 0.",
    .example = "full_like(tensor([1, 2]), 7).tolist()  # [7, 7]",
    .samples = TD_SAMPLES{{"2,3", "value=1.5", 0, 1, NULL}, {"2", "value=3, dtype=int64", 0, 1, NULL}, TD_SAMPLES_END},
};

#define LIKE(NAME, KERNEL, ALIAS, WORD, EXAMPLE)                                                            \
  static const td_op NAME = {                                                                               \
      .name = #NAME,                                                                                        \
      .alias = ALIAS,                                                                                       \
      .params = {TD_X, {.name = "dtype", .kind = TD_PARAM_DTYPE}},                                          \
      .kind = TD_KIND_OPAQUE,                                                                               \
      .flags = TD_HALF,                                                                                     \
      .infer = plain_like_infer,                                                                            \
      .kernel = KERNEL,                                                                                     \
      .vjp = like_vjp,                                                                                      \
      .doc = "A tensor of x's shape full of " WORD "; of x's dtype unless another is given.\nGradient: 0.", \
      .example = EXAMPLE,                                                                                   \
      .samples = TD_SAMPLES{{"2,3", NULL, 0, 1, NULL}, {"2", "dtype=bool", 0, 1, "int32"}, TD_SAMPLES_END}, \
  };
LIKE(zeros_like, zeros_kernel, TD_ALIAS("empty_like"), "zeros", "zeros_like(tensor([1., 2.])).tolist()  # [0.0, 0.0]")
LIKE(ones_like, ones_kernel, NULL, "ones", "ones_like(tensor([3, 4])).tolist()  # [1, 1]")

// ---- vander ----

static int64_t vander_columns(const td_arg *args, int64_t size) { return args[0].given ? args[0].i : size; }

static int vander_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  if (in->rank != 1) return td_infer_fail(infer, TD_ERROR_SHAPE, "needs rank 1, the tensor has rank %d", in->rank);
  if (infer->args[0].given && infer->args[0].i < 0)
    return td_infer_fail(infer, TD_ERROR_VALUE, "n is negative: %lld", (long long)infer->args[0].i);
  infer->out[0] = (td_meta){.dtype = in->dtype == TD_BOOL ? TD_INT64 : in->dtype, .rank = 2};
  infer->out[0].shape[0] = in->shape[0];
  infer->out[0].shape[1] = vander_columns(infer->args, in->shape[0]);
  return TD_OK;
}

#define POWERS(T)                                                               \
  for (int64_t i = 0; i < out->shape[0]; i++) {                                 \
    T base, power = 1, *row = (T *)out->data + i * n;                           \
    td_cast_run(&base, out->dtype, x->data + i * step, x->dtype, 0, 1, false);  \
    for (int64_t j = 0; j < n; j++) {                                           \
      row[ascends ? j : n - 1 - j] = power;                                     \
      power = (T)(power * base);                                                \
    }                                                                           \
  }

static int vander_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  int64_t n = out->shape[1], step = x->strides[0] * td_dtype_bytes(x->dtype);
  bool ascends = call->args[1].i;
  switch (out->dtype) {
  case TD_UINT8: POWERS(uint8_t) break;
  case TD_INT32: POWERS(uint32_t) break;
  case TD_INT64: POWERS(uint64_t) break;
  case TD_FLOAT32: POWERS(float) break;
  default: POWERS(double)
  }
  return TD_OK;
}

// x ** p has the derivative p * x ** (p - 1): a matrix of one column less, times the columns' numbers.
static int vander_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *out = &rule->out_meta[0];
  td_tensor *c = rule->cotangent[0];
  int64_t n = out->shape[1];
  bool ascends = rule->args[1].i;
  if (n < 2) return TD_OK;
  const int64_t start[] = {0, ascends ? 1 : 0}, step[] = {1, 1}, size[] = {out->shape[0], n - 1};
  const td_arg args[] = {TD_INT_ARG(n - 1), rule->args[1]}, columns = {.given = 1, .count = 1, .ints = {1}};
  td_tensor *numbers = td_arange(s, n - 1);
  numbers = numbers ? td_cast(s, numbers, out->dtype) : NULL;
  numbers = td_add(s, numbers, td_scope_number(s, 1, c));
  if (!ascends) numbers = td_flip(s, numbers, (const td_arg[]){{.given = 0}});
  td_tensor *slope = td_multiply(s, td_scope_apply(s, rule->op, args, 1, rule->in[0]), numbers);
  rule->din[0] = td_sum(s, td_chain(s, td_slice_view(s, c, start, step, size), slope), &columns, false);
  return TD_OK;
}

static const td_op vander = {
    .name = "vander",
    .params = {TD_X,
               {.name = "n", .kind = TD_PARAM_INT, .alias = TD_ALIAS("N")},
               {.name = "increasing", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_OPAQUE,
    .infer = vander_infer,
    .kernel = vander_kernel,
    .vjp = vander_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "Vandermonde's matrix: the powers of x from n - 1 down to 0 as columns, or up from 0 where increasing; n is "
           "x's size when None.\nGradient: p * x ** (p - 1) for each power p, times the cotangent.",
    .example = "vander(tensor([2, 3]), 3).tolist()  # [[4, 2, 1], [9, 3, 1]]",
    .samples = TD_SAMPLES{{"3", NULL, 0.5, 2, NULL},
                          {"3", "n=4, increasing=True", -2, 2, NULL},
                          {"2", "n=1", -2, 2, NULL},
                          {"3", "n=3", -3, 3, "int64"},
                          TD_SAMPLES_END},
};

// ---- tri, tril_indices, triu_indices ----

static int tri_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  const int64_t k = call->args[2].i, one = 1, columns = out->shape[1], bytes = td_dtype_bytes(out->dtype);
  zeros_kernel(call);
  for (int64_t i = 0; i < out->shape[0]; i++) {
    double border = (double)i + (double)k + 1; // first column above the diagonal; k may be any int
    int64_t count = border < 0 ? 0 : border > (double)columns ? columns : (int64_t)border;
    td_cast_run(out->data + i * columns * bytes, out->dtype, &one, TD_INT64, 0, count, false);
  }
  return TD_OK;
}

static const td_op tri = {
    .name = "tri",
    .params = {{.name = "n", .kind = TD_PARAM_INT, .required = true},
               {.name = "m", .kind = TD_PARAM_INT},
               {.name = "k", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0)},
               DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HALF,
    .infer = eye_infer,
    .kernel = tri_kernel,
    .no_gradient = made,
    .doc = "An n x m matrix (m = n when None) with ones on and below its k-th diagonal and zeros above.",
    .example = "tri(2).tolist()  # [[1.0, 0.0], [1.0, 1.0]]",
    .samples = TD_SAMPLES{{"", "n=3", 0, 1, NULL},
                          {"", "n=2, m=4, k=1", 0, 1, NULL},
                          {"", "n=3, m=2, k=-1, dtype=int32", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// Columns [first, last) of a row that lie in the triangle.
static void triangle_row(const td_arg *args, bool upper, int64_t row, int64_t *first, int64_t *last) {
  int64_t columns = args[2].given ? args[2].i : args[0].i;
  double border = (double)row + (double)args[1].i + (upper ? 0 : 1);
  int64_t at = border < 0 ? 0 : border > (double)columns ? columns : (int64_t)border;
  *first = upper ? at : 0;
  *last = upper ? columns : at;
}

static int64_t within(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

// Elements on and below the k-th diagonal: a row has row + k + 1 of them, at least 0, at most columns.
static int64_t triangle_size(int64_t rows, int64_t columns, int64_t k) {
  k = within(k, -rows - 1, columns);
  int64_t first = within(-k, 0, rows), filled = within(columns - k - 1, first, rows), growing = filled - first;
  return growing * (first + k) + growing * (growing + 1) / 2 + (rows - filled) * columns;
}

static int triangle_indices_infer(td_infer *infer, bool upper) {
  const td_arg *args = infer->args;
  int code = check_side(infer, 0);
  if (!code) code = check_side(infer, 2);
  if (code) return code;
  int64_t rows = args[0].i, columns = args[2].given ? args[2].i : rows;
  int64_t diagonal = within(args[1].i, -INT32_MAX, INT32_MAX) - upper, count = triangle_size(rows, columns, diagonal);
  if (upper) count = rows * columns - count;
  for (int k = 0; k < 2; k++) infer->out[k] = (td_meta){.dtype = TD_INT64, .rank = 1, .shape = {count}};
  return TD_OK;
}

static int triangle_indices_kernel(const td_call *call, bool upper) {
  int64_t *rows = (int64_t *)call->out[0].data, *columns = (int64_t *)call->out[1].data, left = call->out[0].size;
  int64_t above = upper ? 0 : within(-within(call->args[1].i, -INT32_MAX, 0), 0, call->args[0].i); // rows without any
  for (int64_t row = above; left; row++) {
    int64_t first, last;
    triangle_row(call->args, upper, row, &first, &last);
    left -= last - first;
    for (; first < last; first++) {
      *rows++ = row;
      *columns++ = first;
    }
  }
  return TD_OK;
}

#define TRIANGLE_INDICES(NAME, UPPER, WORDS, EXAMPLE)                                                                 \
  static int NAME##_infer(td_infer *infer) { return triangle_indices_infer(infer, UPPER); }                           \
  static int NAME##_kernel(const td_call *call) { return triangle_indices_kernel(call, UPPER); }                      \
  static const td_op NAME = {                                                                                         \
      .name = #NAME,                                                                                                  \
      .params = {{.name = "n", .kind = TD_PARAM_INT, .required = true},                                               \
                 {.name = "k", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0), .alias = TD_ALIAS("offset")},     \
                 {.name = "m", .kind = TD_PARAM_INT}},                                                                \
      .kind = TD_KIND_OPAQUE,                                                                                         \
      .outputs = 2,                                                                                                   \
      .infer = NAME##_infer,                                                                                          \
      .kernel = NAME##_kernel,                                                                                        \
      .no_gradient = made,                                                                                            \
      .doc = "Rows and columns of the elements of an n x m matrix (m = n when None) on and " WORDS " its k-th "       \
             "diagonal, as in NumPy: x[" #NAME "(n)] reads them. PyTorch's order is (rows, columns, offset).",        \
      .example = EXAMPLE,                                                                                             \
      .samples = TD_SAMPLES{{"", "n=3", 0, 1, NULL}, {"", "n=3, k=-1, m=4", 0, 1, NULL}, TD_SAMPLES_END},             \
  };
TRIANGLE_INDICES(tril_indices, false, "below", "[t.tolist() for t in tril_indices(2)]  # [[0, 1, 1], [0, 0, 1]]")
TRIANGLE_INDICES(triu_indices, true, "above", "[t.tolist() for t in triu_indices(2)]  # [[0, 0, 1], [0, 1, 1]]")

td_tensor *td_eye(td_scope *s, int64_t n, uint8_t dtype) { return td_eye_of(s, n, n, 0, dtype); }

const td_op *const td_family_create[] = {&full,     &zeros,      &ones,      &arange,  &linspace, &eye,
                                         &logspace, &geomspace,  &full_like, &zeros_like, &ones_like, &tri,
                                         &vander,   &tril_indices, &triu_indices, NULL};
