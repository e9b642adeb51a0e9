// Tensors out of nothing: constants and ranges.
#include <math.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

enum { BLOCK = 512 };

#define SHAPE_PARAM \
  { .name = "shape", .kind = TD_PARAM_SHAPE, .required = true }
#define DTYPE_PARAM(standard) \
  { .name = "dtype", .kind = TD_PARAM_DTYPE, .fallback = TD_INT_DEFAULT(standard) }
static const char made[] = "made from no tensor";

static double number_of(const td_arg *number) { return number->count ? number->f : (double)number->i; }
static uint8_t dtype_or(const td_arg *dtype, uint8_t standard) { return dtype->given ? (uint8_t)dtype->i : standard; }

static int shape_infer(td_infer *infer, const td_arg *shape, uint8_t dtype) {
  infer->out[0] = (td_meta){.dtype = dtype, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) {
    if (shape->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "size of axis %d is negative: %lld", i, (long long)shape->ints[i]);
    infer->out[0].shape[i] = shape->ints[i];
  }
  return TD_OK;
}

// ---- full, zeros, ones ----

static int full_infer(td_infer *infer) {
  return shape_infer(infer, &infer->args[0], dtype_or(&infer->args[2], infer->args[1].count ? TD_FLOAT32 : TD_INT64));
}

static int full_kernel(const td_call *call) {
  const td_arg *value = &call->args[1];
  const td_view *out = &call->out[0];
  uint8_t from = value->count ? TD_FLOAT64 : TD_INT64;
  if (!td_cast_run(out->data, out->dtype, value->count ? (const void *)&value->f : &value->i, from, 0, out->size,
                   false))
    return td_error_set(call->context, TD_ERROR_VALUE, "full: %s can't hold %g", td_dtype_name(out->dtype), value->f);
  return TD_OK;
}

static const td_op full = {
    .name = "full",
    .params = {SHAPE_PARAM,
               {.name = "value", .kind = TD_PARAM_NUMBER, .required = true},
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

#define CONSTANT(NAME, EXAMPLE)                                                                                        \
  static const td_op NAME = {                                                                                          \
      .name = #NAME,                                                                                                   \
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
CONSTANT(zeros, "zeros((2, 2)).tolist()  # [[0.0, 0.0], [0.0, 0.0]]")
CONSTANT(ones, "ones(3).tolist()  # [1.0, 1.0, 1.0]")

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
    return td_infer_fail(infer, TD_ERROR_VALUE, "%g elements from %g to %g by %g", count, r.start, number_of(stop),
                         r.step);
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
    td_cast_run(out->data + done * bytes, out->dtype, r.whole ? (const void *)whole : values,
                r.whole ? TD_INT64 : TD_FLOAT64, 8, count, false);
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

static int linspace_infer(td_infer *infer) {
  const td_arg *args = infer->args;
  if (args[2].i < 0) return td_infer_fail(infer, TD_ERROR_VALUE, "num is negative: %lld", (long long)args[2].i);
  infer->out[0] = (td_meta){.dtype = (uint8_t)args[4].i, .rank = 1, .shape = {args[2].i}};
  return TD_OK;
}

static int linspace_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  double start = call->args[0].f, stop = call->args[1].f;
  bool endpoint = call->args[3].i;
  int64_t parts = out->size - (endpoint ? 1 : 0), bytes = td_dtype_bytes(out->dtype);
  for (int64_t i = 0; i < out->size; i++) {
    double at = parts > 0 ? (double)i / (double)parts : 0,
           value = endpoint && i == parts && i ? stop : start + (stop - start) * at;
    td_cast_run(out->data + i * bytes, out->dtype, &value, TD_FLOAT64, 0, 1, false);
  }
  return TD_OK;
}

static const td_op linspace = {
    .name = "linspace",
    .params = {{.name = "start", .kind = TD_PARAM_FLOAT, .required = true},
               {.name = "stop", .kind = TD_PARAM_FLOAT, .required = true},
               {.name = "num", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(50)},
               {.name = "endpoint", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)},
               DTYPE_PARAM(TD_FLOAT32)},
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

static int eye_infer(td_infer *infer) {
  const td_arg *args = infer->args;
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

td_tensor *td_eye(td_scope *s, int64_t n, uint8_t dtype) { return td_eye_of(s, n, n, 0, dtype); }

const td_op *const td_family_create[] = {&full, &zeros, &ones, &arange, &linspace, &eye, NULL};
