// Elements that are there several times: each one in its place (repeat), or the whole tensor again (tile).
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/index.h"
#include "engine/ops/map.h"

// ---- repeat ----

// x as the rule sees it: its own axes, or one line of all elements.
static td_meta repeated_from(const td_meta *x, const td_arg *axis) {
  if (axis->given) return *x;
  return (td_meta){.dtype = x->dtype, .rank = 1, .shape = {td_shape_size(x->rank, x->shape)}};
}

static int repeat_count(td_infer *infer, const td_tensor *repeats, int64_t length, int64_t *total) {
  *total = 0;
  if (repeats->rank > 1 || (repeats->size != 1 && repeats->size != length))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "repeats must be one number or %lld numbers", (long long)length);
  for (int64_t i = 0; i < length; i++) {
    int64_t n = td_tensor_get_int(repeats, repeats->size == 1 ? 0 : i);
    if (n < 0) return td_infer_fail(infer, TD_ERROR_VALUE, "repeats are negative: %lld", (long long)n);
    if (__builtin_add_overflow(*total, n, total))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "repeats make the axis too long");
  }
  return TD_OK;
}

static int repeat_infer(td_infer *infer) {
  td_meta x = repeated_from(&infer->in[0], &infer->args[0]);
  int axis = 0, code = td_infer_axis(infer, infer->args[0].given ? infer->args[0].i : 0, x.rank, &axis);
  if (!code && td_dtype_category(infer->in[1].dtype) != 1)
    code = td_infer_fail(infer, TD_ERROR_DTYPE, "repeats must be integers, not %s", td_dtype_name(infer->in[1].dtype));
  if (code) return code;
  if (!infer->tensors) return td_infer_fail(infer, TD_ERROR_VALUE, "the shape of the result depends on values");
  infer->out[0] = x;
  return repeat_count(infer, infer->tensors[1], x.shape[axis], &infer->out[0].shape[axis]);
}

static int repeat_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *repeats = &call->in[1], *out = &call->out[0];
  char *at = call->workspace, *to = out->data;
  td_pool *pool = call->context->pool;
  const int64_t *counts =
      (const int64_t *)td_flat_fill(pool, repeats, TD_INT64, td_space_take(&at, td_flat_bytes(repeats, TD_INT64)));
  const char *from = td_flat_fill(pool, x, x->dtype, at);
  bool line = !call->args[0].given;
  int axis = line ? 0 : (int)(call->args[0].i < 0 ? call->args[0].i + x->rank : call->args[0].i);
  int64_t run = td_dtype_bytes(x->dtype), length = line ? x->size : x->shape[axis];
  for (int i = axis + 1; i < x->rank && !line; i++) run *= x->shape[i];
  int64_t outer = length && run ? x->size * td_dtype_bytes(x->dtype) / (length * run) : 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < length; i++, from += run)
      for (int64_t n = counts[repeats->size == 1 ? 0 : i]; n > 0; n--, to += run) memcpy(to, from, (size_t)run);
  return TD_OK;
}

static int64_t repeat_workspace(const td_call *call) {
  return td_space_bytes(td_flat_bytes(&call->in[1], TD_INT64)) + td_flat_bytes(&call->in[0], call->in[0].dtype);
}

static const td_op repeat;

static int repeat_vjp(td_rule *rule) { // numbers of the elements, repeated likewise, say where each one came from
  td_scope *s = &rule->scope;
  const td_meta *in = &rule->in_meta[0];
  td_meta x = repeated_from(in, &rule->args[0]);
  int axis = rule->args[0].given ? (int)(rule->args[0].i < 0 ? rule->args[0].i + x.rank : rule->args[0].i) : 0;
  const td_arg args[] = {TD_INT_ARG(0)};
  td_tensor *from = td_scope_apply(s, &repeat, args, 2, td_arange(s, x.shape[axis]), rule->in[1]);
  rule->din[0] =
      td_reshape(s, td_index_adjoint(s, rule->cotangent[0], from, axis, x.rank, x.shape), in->rank, in->shape);
  return TD_OK;
}

static const td_op repeat = {
    .name = "repeat",
    .alias = TD_ALIAS("repeat_interleave"),
    .params = {TD_X, {.name = "repeats", .kind = TD_PARAM_INDEX}, {.name = "axis", .kind = TD_PARAM_AXIS}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = repeat_infer,
    .kernel = repeat_kernel,
    .workspace = repeat_workspace,
    .vjp = repeat_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "Each element of axis, repeats times or its own number of times, behind each other, as in NumPy; without an "
           "axis of all elements in row-major order.\n"
           "Gradient: the cotangent, added up over the repetitions.\n"
           "PyTorch's x.repeat(2, 3), the whole tensor again, is tile(x, (2, 3)).",
    .example = "repeat(tensor([1, 2]), 2).tolist()  # [1, 1, 2, 2]",
    .samples = TD_SAMPLES{{"2,3; -", NULL, 1, 3, "float64; int64"},
                          {"2,3; 3", "axis=1", 0, 3, "float64; int64"},
                          {"4,2; 1", "axis=-2", 1, 3, "float64; int32"},
                          {"0,2; -", "axis=0", 1, 3, "float64; int64"},
                          {"-; -", NULL, 1, 3, "float64; int64"},
                          TD_SAMPLES_END},
};

// ---- tile ----

// Repetitions and sizes of each of the result's axes: the shorter list gets ones in front.
static int tile_axes(const td_meta *x, const td_arg *reps, int64_t *times, int64_t *sizes) {
  int rank = x->rank > reps->count ? x->rank : reps->count;
  for (int i = 0; i < rank; i++) {
    int size = i - (rank - x->rank), rep = i - (rank - reps->count);
    sizes[i] = size < 0 ? 1 : x->shape[size];
    times[i] = rep < 0 ? 1 : reps->ints[rep];
  }
  return rank;
}

static int tile_infer(td_infer *infer) {
  int64_t times[TD_RANK_MAX], sizes[TD_RANK_MAX];
  td_meta *out = &infer->out[0];
  out->rank = (uint8_t)tile_axes(&infer->in[0], &infer->args[0], times, sizes);
  out->dtype = infer->in[0].dtype;
  for (int i = 0; i < out->rank; i++) {
    if (times[i] < 0) return td_infer_fail(infer, TD_ERROR_VALUE, "reps are negative: %lld", (long long)times[i]);
    if (__builtin_mul_overflow(times[i], sizes[i], &out->shape[i]))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "reps make axis %d too long", i);
  }
  return TD_OK;
}

// x in the first place; then, from the last axis on, what an axis holds by now is copied behind itself.
static int tile_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  int64_t times[TD_RANK_MAX], sizes[TD_RANK_MAX], bytes = td_dtype_bytes(out->dtype), outer = 1;
  td_meta meta = {.rank = x->rank};
  td_view from;
  memcpy(meta.shape, x->shape, (size_t)x->rank * sizeof *x->shape);
  int rank = tile_axes(&meta, &call->args[0], times, sizes);
  if (!out->size) return TD_OK;
  td_view_broadcast(&from, x, rank, sizes);
  td_elements_move(call->context->pool, out->data, out->strides, from.data, from.strides, (int)bytes, rank, sizes);
  for (int i = 0; i < rank; i++) outer *= sizes[i];
  for (int axis = rank; axis-- > 0;) {
    outer /= sizes[axis];
    int64_t run = sizes[axis] * out->strides[axis] * bytes;
    for (int64_t o = 0; o < outer && times[axis] > 1; o++) {
      int64_t rest = o, offset = 0;
      for (int d = axis; d-- > 0; rest /= sizes[d]) offset += rest % sizes[d] * out->strides[d];
      for (int64_t n = 1; n < times[axis]; n++)
        memcpy(out->data + offset * bytes + n * run, out->data + offset * bytes, (size_t)run);
    }
  }
  return TD_OK;
}

// Axis by axis: repetitions of an axis become an axis of their own, which is added up.
static int tile_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *x = &rule->in_meta[0];
  int64_t times[TD_RANK_MAX], sizes[TD_RANK_MAX], before = 1, behind = 1;
  int rank = tile_axes(x, &rule->args[0], times, sizes);
  const td_arg repetitions = {.given = 1, .count = 1, .ints = {1}};
  td_tensor *c = rule->cotangent[0];
  for (int i = 0; i < rank; i++) behind *= sizes[i] * times[i];
  for (int i = 0; i < rank; i++) {
    if (!behind) return TD_OK;
    behind /= sizes[i] * times[i];
    const int64_t shape[] = {before, times[i], sizes[i] * behind};
    if (times[i] != 1) c = td_sum(s, td_reshape(s, c, 3, shape), &repetitions, false);
    before *= sizes[i];
  }
  rule->din[0] = td_reshape(s, c, x->rank, x->shape);
  return TD_OK;
}

static const td_op tile = {
    .name = "tile",
    .params = {TD_X,
               {.name = "reps", .kind = TD_PARAM_SHAPE, .required = true, .alias = TD_ALIAS("dims", "multiples")}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = tile_infer,
    .kernel = tile_kernel,
    .vjp = tile_vjp,
    .doc = "The whole of x again and again, reps times along each axis; the shorter of x's shape and reps gets ones in "
           "front. PyTorch's x.repeat.\nGradient: the cotangent, added up over the repetitions.",
    .example = "tile(tensor([1, 2]), (2, 2)).tolist()  # [[1, 2, 1, 2], [1, 2, 1, 2]]",
    .samples = TD_SAMPLES{{"2,3", "reps=(2, 3)", -2, 2, NULL},
                          {"3", "reps=(2, 1, 2)", -2, 2, NULL},
                          {"2,1,3", "reps=2", -2, 2, NULL},
                          {"2,3", "reps=(0, 2)", -2, 2, NULL},
                          {"-", "reps=(2,)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_repeat[] = {&repeat, &tile, NULL};
