// Where things are: argmax, argmin, nonzero. All results are int64.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

// ---- argmax, argmin ----

static td_arg axes_of(const td_arg *axis) { // one axis, or None
  td_arg axes = {.given = axis->given, .count = axis->given};
  axes.ints[0] = axis->i;
  return axes;
}

typedef struct work {
  td_reduction r;
  uint8_t dtype;
  bool largest;
  int64_t *out;
} work;

// The first of equal ones; a NaN is both larger and smaller than any number.
#define FIND(T)                                                       \
  do {                                                                \
    const T *x = (const T *)w->r.flat.data + i * n;                   \
    T best = x[0];                                                    \
    for (int64_t j = 1; j < n && best == best; j++)                   \
      if ((w->largest ? x[j] > best : x[j] < best) || x[j] != x[j]) { \
        best = x[j];                                                  \
        at = j;                                                       \
      }                                                               \
  } while (0)

static void run_lines(void *argument, int64_t first, int64_t last) {
  const work *w = argument;
  int64_t n = w->r.count;
  for (int64_t i = first; i < last; i++) {
    int64_t at = 0;
    switch (w->dtype) {
    case TD_BOOL:
    case TD_UINT8: FIND(uint8_t); break;
    case TD_INT32: FIND(int32_t); break;
    case TD_INT64: FIND(int64_t); break;
    case TD_FLOAT32: FIND(float); break;
    default: FIND(double);
    }
    w->out[i] = at;
  }
}

static int find_kernel(const td_call *call, bool largest) {
  const td_view *in = &call->in[0];
  work w = {.dtype = in->dtype, .largest = largest, .out = (int64_t *)call->out[0].data};
  td_arg axes = axes_of(&call->args[0]);
  bool reduced[TD_RANK_MAX];
  td_reduction_axes(&axes, in->rank, reduced);
  if (!call->out[0].size) return TD_OK;
  int code = td_reduction_open(call, reduced, true, in->dtype, &w.r);
  if (code) return code;
  td_ranges_run(call->context->pool, w.r.outer, w.r.count, run_lines, &w);
  td_flat_close(&w.r.flat);
  return TD_OK;
}

static int argmax_kernel(const td_call *call) { return find_kernel(call, true); }
static int argmin_kernel(const td_call *call) { return find_kernel(call, false); }

static int find_infer(td_infer *infer) {
  td_arg axes = axes_of(&infer->args[0]);
  infer->out[0].dtype = TD_INT64;
  int code = td_reduction_shape(infer, &axes, infer->args[1].i);
  if (code || td_reduction_count(&infer->in[0], &axes)) return code;
  if (!td_shape_size(infer->out[0].rank, infer->out[0].shape)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "no element to find: the axis is empty");
}

#define FINDER(NAME, WORD, EXAMPLE)                                                                                   \
  static const td_op NAME = {                                                                                         \
      .name = #NAME,                                                                                                  \
      .params = {TD_X, {.name = "axis", .kind = TD_PARAM_AXIS}, TD_KEEPDIMS_PARAM},                                   \
      .kind = TD_KIND_REDUCE,                                                                                         \
      .method = true,                                                                                                 \
      .infer = find_infer,                                                                                            \
      .kernel = NAME##_kernel,                                                                                        \
      .no_gradient = "integer result",                                                                                \
      .doc = "Index of the " WORD " element along axis, the first of equal ones; of all elements in row-major order " \
             "when axis is None.\nA NaN is found first. int64.",                                                      \
      .example = EXAMPLE,                                                                                             \
      .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL},                                                               \
                            {"2,3,4", "axis=1", -2, 2, NULL},                                                         \
                            {"2,3", "axis=-1, keepdims=True", -9, 9, "int64"},                                        \
                            {"-", NULL, -2, 2, NULL},                                                                 \
                            TD_SAMPLES_END},                                                                          \
  };
FINDER(argmax, "largest", "argmax(tensor([[1., 9.], [7., 3.]]), axis=1).tolist()  # [1, 0]")
FINDER(argmin, "smallest", "argmin(tensor([[1., 9.], [7., 3.]]), axis=1).tolist()  # [0, 1]")

// ---- nonzero ----

static bool is_nonzero(const td_view *x, int64_t offset) {
  const char *at = x->data + offset * td_dtype_bytes(x->dtype);
  switch (x->dtype) {
  case TD_BOOL:
  case TD_UINT8: return *(const uint8_t *)at != 0;
  case TD_INT32: return *(const int32_t *)at != 0;
  case TD_INT64: return *(const int64_t *)at != 0;
  case TD_FLOAT16:
  case TD_BFLOAT16: return (*(const uint16_t *)at & 0x7fff) != 0;
  case TD_FLOAT32: return *(const float *)at != 0;
  default: return *(const double *)at != 0;
  }
}

// Counts the elements that are not 0, and writes their positions, rank numbers each, unless out is NULL.
static int64_t positions(const td_view *x, int64_t *out) {
  int64_t at[TD_RANK_MAX] = {0}, offset = 0, count = 0;
  for (int64_t i = 0; i < x->size; i++) {
    if (is_nonzero(x, offset)) {
      for (int d = 0; out && d < x->rank; d++) *out++ = at[d];
      count++;
    }
    for (int d = x->rank; d-- > 0;) {
      offset += x->strides[d];
      if (++at[d] < x->shape[d]) break;
      offset -= x->strides[d] * x->shape[d];
      at[d] = 0;
    }
  }
  return count;
}

static int nonzero_infer(td_infer *infer) {
  if (!infer->tensors) return td_infer_fail(infer, TD_ERROR_VALUE, "the shape of the result depends on values");
  td_view x;
  td_view_of(&x, infer->tensors[0]);
  infer->out[0] = (td_meta){.dtype = TD_INT64, .rank = 2, .shape = {positions(&x, NULL), x.rank}};
  return TD_OK;
}

static int nonzero_kernel(const td_call *call) {
  positions(&call->in[0], (int64_t *)call->out[0].data);
  return TD_OK;
}

static const td_op nonzero = {
    .name = "nonzero",
    .params = {TD_X},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .method = true,
    .infer = nonzero_infer,
    .kernel = nonzero_kernel,
    .no_gradient = "integer result",
    .doc = "Positions of the elements that are not 0, in row-major order: int64 [n, rank], as in PyTorch.",
    .example = "nonzero(tensor([[0, 5], [6, 0]])).tolist()  # [[0, 1], [1, 0]]",
    .samples = TD_SAMPLES{{"3,4", NULL, 0, 1, "bool"},
                          {"2,3", NULL, -1, 1, "int64"},
                          {"0,2", NULL, 0, 1, NULL},
                          {"-", NULL, 1, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_search[] = {&argmax, &argmin, &nonzero, NULL};
