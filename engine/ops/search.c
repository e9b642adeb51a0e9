// Where things are: argmax, argmin, nonzero. All results are int64.
#include "engine/device/cpu/clones.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

// ---- argmax, argmin ----

enum { BLOCK = 1024, LANES = 32, WIDTH = 1024, ROWS = 1 << 20 };

static td_arg axes_of(const td_arg *axis) { // one axis, or None
  td_arg axes = {.given = axis->given, .count = axis->given};
  axes.ints[0] = axis->i;
  return axes;
}

// The first of equal ones; a NaN is both larger and smaller than any number. OVER is > or <.
#define LOST(v, best) (((v) != (v)) & ((best) == (best)))
#define FINDER(T, name, OVER)                                                                                         \
  typedef struct name##_state {                                                                                       \
    T best;                                                                                                           \
    int64_t at; /* -1: nothing yet */                                                                                 \
  } name##_state;                                                                                                     \
  static void name##_start(void *states, int64_t count) {                                                             \
    for (int64_t i = 0; i < count; i++) ((name##_state *)states)[i] = (name##_state){0, -1};                          \
  }                                                                                                                   \
  static void name##_offer(name##_state *a, T v, int64_t at) {                                                        \
    if (a->at < 0 || v OVER a->best || LOST(v, a->best)) *a = (name##_state){v, at};                                  \
  }                                                                                                                   \
  TD_CLONES static void name##_block(name##_state *a, const T *x, int64_t n, int64_t first) {                         \
    T lanes[LANES], best = x[0];                                                                                      \
    int64_t i = 0;                                                                                                    \
    for (int l = 0; l < LANES; l++) lanes[l] = x[0];                                                                  \
    for (; i + LANES <= n; i += LANES)                                                                                \
      for (int l = 0; l < LANES; l++)                                                                                 \
        lanes[l] = ((x[i + l] OVER lanes[l]) | (x[i + l] != x[i + l])) ? x[i + l] : lanes[l];                         \
    if (i)                                                                                                            \
      for (int l = 0; l < LANES; l++) best = ((lanes[l] OVER best) | (lanes[l] != lanes[l])) ? lanes[l] : best;       \
    for (; i < n; i++) best = ((x[i] OVER best) | (x[i] != x[i])) ? x[i] : best;                                      \
    if (a->at >= 0 && !(best OVER a->best) && !LOST(best, a->best)) return;                                           \
    for (i = 0; best == best ? x[i] != best : x[i] == x[i];) i++;                                                     \
    *a = (name##_state){best, first + i};                                                                             \
  }                                                                                                                   \
  static void name##_lines(void *states, const td_piece *piece) {                                                     \
    for (int64_t r = 0; r < piece->rows; r++)                                                                         \
      for (int64_t i = 0; i < piece->n; i += BLOCK)                                                                   \
        name##_block((name##_state *)states + r, (const T *)piece->x + r * piece->pitch + i,                          \
                     piece->n - i < BLOCK ? piece->n - i : BLOCK, piece->first + i);                                  \
  }                                                                                                                   \
  TD_CLONES static void name##_rows(name##_state *a, const T *restrict x, int rows, int64_t columns, int64_t pitch,   \
                                    int64_t first) {                                                                  \
    T best[WIDTH];                                                                                                    \
    int32_t at[WIDTH];                                                                                                \
    for (int64_t c = 0; c < columns; c++) {                                                                           \
      best[c] = x[c];                                                                                                 \
      at[c] = 0;                                                                                                      \
    }                                                                                                                 \
    for (int r = 1; r < rows; r++) {                                                                                  \
      x += pitch;                                                                                                     \
      for (int64_t c = 0; c < columns; c++) {                                                                         \
        bool better = (x[c] OVER best[c]) | LOST(x[c], best[c]);                                                      \
        best[c] = better ? x[c] : best[c];                                                                            \
        at[c] = better ? r : at[c];                                                                                   \
      }                                                                                                               \
    }                                                                                                                 \
    for (int64_t c = 0; c < columns; c++) name##_offer(a + c, best[c], first + at[c]);                                \
  }                                                                                                                   \
  static void name##_columns(void *states, const td_piece *piece) {                                                   \
    for (int64_t row = 0; row < piece->rows; row += ROWS)                                                             \
      name##_rows(states, (const T *)piece->x + row * piece->pitch,                                                   \
                  (int)(piece->rows - row < ROWS ? piece->rows - row : ROWS), piece->n, piece->pitch,                 \
                  piece->first + row);                                                                                \
  }                                                                                                                   \
  static void name##_combine(void *states, const void *more, int64_t count, double parameter) {                       \
    const name##_state *b = more;                                                                                     \
    (void)parameter;                                                                                                  \
    for (int64_t i = 0; i < count; i++) name##_offer((name##_state *)states + i, b[i].best, b[i].at);                 \
  }                                                                                                                   \
  static void name##_finish(const void *states, int64_t count, const td_finish *to) {                                 \
    const name##_state *a = states;                                                                                   \
    for (int64_t i = 0; i < count; i++) ((int64_t *)to->out[0])[i * to->stride] = a[i].at;                            \
  }                                                                                                                   \
  static const td_reducer name##_reducer = {                                                                          \
      sizeof(name##_state), true, name##_start, name##_lines, name##_columns, name##_combine, name##_finish, \
      NULL};
#define FINDERS(name, OVER)                                                                              \
  FINDER(uint8_t, name##_uint8, OVER)                                                                    \
  FINDER(int32_t, name##_int32, OVER)                                                                    \
  FINDER(int64_t, name##_int64, OVER)                                                                    \
  FINDER(float, name##_float32, OVER)                                                                    \
  FINDER(double, name##_float64, OVER)                                                                   \
  static const td_reducer *const name##_reducers[TD_DTYPE_COUNT] = {                                     \
      [TD_BOOL] = &name##_uint8_reducer,  [TD_UINT8] = &name##_uint8_reducer,                            \
      [TD_INT32] = &name##_int32_reducer, [TD_INT64] = &name##_int64_reducer,                            \
      [TD_FLOAT32] = &name##_float32_reducer, [TD_FLOAT64] = &name##_float64_reducer};                   \
  static int name##_kernel(const td_call *call) {                                                        \
    td_arg axes = axes_of(&call->args[0]);                                                               \
    return td_reduce(call, &axes, name##_reducers[call->in[0].dtype], call->in[0].dtype, 0);             \
  }                                                                                                      \
  static int64_t name##_workspace(const td_call *call) {                                                 \
    td_arg axes = axes_of(&call->args[0]);                                                               \
    return td_reduce_workspace(call, &axes, name##_reducers[call->in[0].dtype]);                         \
  }
FINDERS(argmax, >)
FINDERS(argmin, <)

static int find_infer(td_infer *infer) {
  td_arg axes = axes_of(&infer->args[0]);
  infer->out[0].dtype = TD_INT64;
  int code = td_reduction_shape(infer, &axes, infer->args[1].i);
  if (code || td_reduction_count(&infer->in[0], &axes)) return code;
  if (!td_shape_size(infer->out[0].rank, infer->out[0].shape)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "no element to find: the axis is empty");
}

#define FINDER_ROW(NAME, WORD, EXAMPLE)                                                                               \
  static const td_op NAME = {                                                                                         \
      .name = #NAME,                                                                                                  \
      .params = {TD_X, {.name = "axis", .kind = TD_PARAM_AXIS}, TD_KEEPDIMS_PARAM},                                   \
      .kind = TD_KIND_REDUCE,                                                                                         \
      .method = true,                                                                                                 \
      .infer = find_infer,                                                                                            \
      .kernel = NAME##_kernel,                                                                                        \
      .workspace = NAME##_workspace,                                                                                  \
      .batch = td_batch_axes,                                                                                         \
      .no_gradient = "integer result",                                                                                \
      .doc = "Index of the " WORD " element along axis, the first of equal ones; of all elements in row-major order " \
             "when axis is None.\nA NaN is found first. Of nothing it is an error. int64.",                           \
      .example = EXAMPLE,                                                                                             \
      .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL},                                                               \
                            {"2,3,4", "axis=1", -2, 2, NULL},                                                         \
                            {"2,3", "axis=-1, keepdims=True", -9, 9, "int64"},                                        \
                            {"-", NULL, -2, 2, NULL},                                                                 \
                            TD_SAMPLES_END},                                                                          \
  };
FINDER_ROW(argmax, "largest", "argmax(tensor([[1., 9.], [7., 3.]]), axis=1).tolist()  # [1, 0]")
FINDER_ROW(argmin, "smallest", "argmin(tensor([[1., 9.], [7., 3.]]), axis=1).tolist()  # [0, 1]")

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
    .alias = TD_ALIAS("argwhere"),
    .params = {TD_X, {.name = "as_tuple", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}},
    .tupled = &td_nonzero_tuple_op,
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .method = true,
    .infer = nonzero_infer,
    .kernel = nonzero_kernel,
    .no_gradient = "integer result",
    .doc = "Positions of the elements that are not 0, in row-major order: int64 [n, rank], as in PyTorch; with "
           "as_tuple one tensor for each axis, as NumPy's, with which x is indexed.",
    .example = "nonzero(tensor([[0, 5], [6, 0]])).tolist()  # [[0, 1], [1, 0]]",
    .samples = TD_SAMPLES{{"3,4", NULL, 0, 1, "bool"},
                          {"2,3", NULL, -1, 1, "int64"},
                          {"0,2", NULL, 0, 1, NULL},
                          {"-", NULL, 1, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- the same, axis by axis ----

static int tuple_infer(td_infer *infer) {
  td_meta each;
  int code = nonzero_infer(infer);
  if (code) return code;
  each = (td_meta){.dtype = TD_INT64, .rank = 1, .shape = {infer->out[0].shape[0]}};
  infer->out_count = infer->in[0].rank ? infer->in[0].rank : 1;
  for (int d = 0; d < infer->out_count; d++) infer->out[d] = each;
  return TD_OK;
}

static int64_t tuple_workspace(const td_call *call) {
  return call->out[0].size * call->in[0].rank * (int64_t)sizeof(int64_t);
}

static int tuple_kernel(const td_call *call) { // a number counts as a line of one
  const int64_t *at = call->workspace;
  int rank = call->in[0].rank;
  positions(&call->in[0], call->workspace);
  for (int64_t i = 0; i < call->out[0].size; i++)
    for (int d = 0; d < call->out_count; d++) ((int64_t *)call->out[d].data)[i] = rank ? at[i * rank + d] : 0;
  return TD_OK;
}

const td_op td_nonzero_tuple_op = {
    .name = "nonzero_tuple",
    .params = {{.name = "condition", .kind = TD_PARAM_INDEX}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF | TD_HIDDEN,
    .outputs = TD_MANY,
    .infer = tuple_infer,
    .kernel = tuple_kernel,
    .workspace = tuple_workspace,
    .no_gradient = "integer result",
    .doc = "Positions of the elements that are not 0, in row-major order: an int64 tensor for each axis; of a number "
           "as of a line of one.",
    .samples = TD_SAMPLES{{"3,4", NULL, 0, 1, "bool"},
                          {"2,3", NULL, -1, 1, "int64"},
                          {"0,2", NULL, 0, 1, NULL},
                          {"-", NULL, 1, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_search[] = {&argmax, &argmin, &nonzero, &td_nonzero_tuple_op, NULL};
