// Sums, products, extremes and truths over axes. Floats are summed in double precision. Large inputs are cut into
// blocks of a size that depends on the shape alone; blocks are reduced side by side and combined in order, so the
// thread count never shows in a result.
#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/device/cpu/clones.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

enum { BLOCK = 1 << 15, COLUMNS = 1024, LANES = 32, SMALL_BYTES = 512 };

// ---- the walk ----

typedef struct kind { // how one reduction runs on one dtype
  int bytes; // of an accumulator
  // Sets accumulators[columns] from rows x columns elements, of which rows lie pitch apart.
  void (*block)(void *accumulators, const void *data, int64_t rows, int64_t columns, int64_t pitch);
  void (*combine)(void *accumulators, const void *more, int64_t columns);
} kind;

typedef struct walk {
  const kind *kind;
  const char *data;
  int64_t bytes; // of an element
  int64_t count, inner;
  int64_t row_blocks, rows, column_blocks, columns;
  char *accumulators; // outer x row_blocks x inner
} walk;

static void walk_blocks(void *argument, int64_t first, int64_t last) {
  const walk *w = argument;
  for (int64_t unit = first; unit < last; unit++) {
    int64_t column = unit % w->column_blocks * w->columns, rest = unit / w->column_blocks;
    int64_t row = rest % w->row_blocks * w->rows, outer = rest / w->row_blocks;
    int64_t rows = w->count - row < w->rows ? w->count - row : w->rows;
    int64_t columns = w->inner - column < w->columns ? w->inner - column : w->columns;
    w->kind->block(w->accumulators + (rest * w->inner + column) * w->kind->bytes,
                   w->data + ((outer * w->count + row) * w->inner + column) * w->bytes, rows, columns, w->inner);
  }
}

// Reduces r to outer x inner accumulators: in small, where they fit, else in an owned array. NULL: no memory, error
// set.
static char *walk_run(const td_call *call, const td_reduction *r, uint8_t dtype, const kind *k,
                      char small[SMALL_BYTES]) {
  walk w = {.kind = k, .data = r->flat.data, .bytes = td_dtype_bytes(dtype), .count = r->count, .inner = r->inner};
  w.columns = r->inner < COLUMNS ? r->inner : COLUMNS;
  w.column_blocks = w.columns ? (r->inner + w.columns - 1) / w.columns : 0;
  w.rows = w.columns ? BLOCK / w.columns : 1;
  w.row_blocks = r->count ? (r->count + w.rows - 1) / w.rows : 1;
  int64_t results = r->outer * r->inner, bytes = results * w.row_blocks * k->bytes;
  w.accumulators = bytes <= SMALL_BYTES ? small : td_memory_new((size_t)bytes);
  if (!w.accumulators) {
    td_error_memory(call->context, call->op->name, bytes);
    return NULL;
  }
  int64_t cost = (r->count < w.rows ? r->count : w.rows) * w.columns;
  td_ranges_run(call->context->pool, r->outer * w.row_blocks * w.column_blocks, cost, walk_blocks, &w);
  int64_t pitch = r->inner * k->bytes;
  for (int64_t o = 0; o < r->outer && w.row_blocks > 1; o++) {
    char *into = w.accumulators + o * pitch, *from = w.accumulators + o * w.row_blocks * pitch;
    for (int64_t b = 1; b < w.row_blocks; b++) k->combine(from, from + b * pitch, r->inner);
    if (into != from) memmove(into, from, (size_t)pitch);
  }
  return w.accumulators;
}

// ---- the blocks: accumulator = STEP(accumulator, element) from START on ----

#define BLOCKS(type, ACCUMULATOR, name, START, STEP, COMBINE)                                                 \
  TD_CLONES static void name##_block(void *accumulators, const void *elements, int64_t rows, int64_t columns, \
                                     int64_t pitch) {                                                         \
    ACCUMULATOR *restrict a = accumulators;                                                                   \
    const type *restrict x = elements;                                                                        \
    if (columns == 1 && pitch == 1) {                                                                         \
      ACCUMULATOR all = START;                                                                                \
      int64_t i = 0;                                                                                          \
      if (rows >= 4 * LANES) {                                                                                \
        ACCUMULATOR lanes[LANES];                                                                             \
        for (int l = 0; l < LANES; l++) lanes[l] = START;                                                     \
        for (; i + LANES <= rows; i += LANES)                                                                 \
          for (int l = 0; l < LANES; l++) lanes[l] = STEP(lanes[l], x[i + l], ACCUMULATOR);                   \
        for (int l = 0; l < LANES; l++) all = COMBINE(all, lanes[l], ACCUMULATOR);                            \
      }                                                                                                       \
      for (; i < rows; i++) all = STEP(all, x[i], ACCUMULATOR);                                               \
      *a = all;                                                                                               \
      return;                                                                                                 \
    }                                                                                                         \
    for (int64_t c = 0; c < columns; c++) a[c] = START;                                                       \
    for (int64_t r = 0; r < rows; r++, x += pitch)                                                            \
      for (int64_t c = 0; c < columns; c++) a[c] = STEP(a[c], x[c], ACCUMULATOR);                             \
  }                                                                                                           \
  static void name##_combine(void *accumulators, const void *more, int64_t columns) {                         \
    ACCUMULATOR *restrict a = accumulators;                                                                   \
    const ACCUMULATOR *restrict b = more;                                                                     \
    for (int64_t c = 0; c < columns; c++) a[c] = COMBINE(a[c], b[c], ACCUMULATOR);                            \
  }                                                                                                           \
  static const kind name##_kind = {sizeof(ACCUMULATOR), name##_block, name##_combine};

#define PLUS(a, x, A) ((a) + (A)(x))
#define TIMES(a, x, A) ((a) * (A)(x))
#define LARGER(a, x, A) ((((x) > (a)) | ((x) != (x))) ? (A)(x) : (a)) // a NaN stays
#define SMALLER(a, x, A) ((((x) < (a)) | ((x) != (x))) ? (A)(x) : (a))
#define OR(a, x, A) ((A)((a) | ((x) != 0)))
#define AND(a, x, A) ((A)((a) & ((x) != 0)))
#define COUNT(a, x, A) ((a) + (A)((x) != 0))

// Of signed types: an int32 is widened with its sign, then wraps as int64.
#define INTEGER_BLOCKS(name, START, STEP)                    \
  BLOCKS(uint8_t, uint64_t, name##_uint8, START, STEP, STEP) \
  BLOCKS(int32_t, uint64_t, name##_int32, START, STEP, STEP) \
  BLOCKS(int64_t, uint64_t, name##_int64, START, STEP, STEP)
#define KINDS(name)                                                                                          \
  static const kind *const name##_kinds[TD_DTYPE_COUNT] = {                                                  \
      [TD_BOOL] = &name##_uint8_kind,  [TD_UINT8] = &name##_uint8_kind,     [TD_INT32] = &name##_int32_kind, \
      [TD_INT64] = &name##_int64_kind, [TD_FLOAT32] = &name##_float32_kind, [TD_FLOAT64] = &name##_float64_kind};

INTEGER_BLOCKS(sum, 0, PLUS)
BLOCKS(float, double, sum_float32, 0, PLUS, PLUS)
BLOCKS(double, double, sum_float64, 0, PLUS, PLUS)
KINDS(sum)

INTEGER_BLOCKS(prod, 1, TIMES)
BLOCKS(float, double, prod_float32, 1, TIMES, TIMES)
BLOCKS(double, double, prod_float64, 1, TIMES, TIMES)
KINDS(prod)

BLOCKS(uint8_t, uint8_t, max_uint8, 0, LARGER, LARGER)
BLOCKS(int32_t, int32_t, max_int32, INT32_MIN, LARGER, LARGER)
BLOCKS(int64_t, int64_t, max_int64, INT64_MIN, LARGER, LARGER)
BLOCKS(float, float, max_float32, -INFINITY, LARGER, LARGER)
BLOCKS(double, double, max_float64, -(double)INFINITY, LARGER, LARGER)
KINDS(max)

BLOCKS(uint8_t, uint8_t, min_uint8, UINT8_MAX, SMALLER, SMALLER)
BLOCKS(int32_t, int32_t, min_int32, INT32_MAX, SMALLER, SMALLER)
BLOCKS(int64_t, int64_t, min_int64, INT64_MAX, SMALLER, SMALLER)
BLOCKS(float, float, min_float32, INFINITY, SMALLER, SMALLER)
BLOCKS(double, double, min_float64, (double)INFINITY, SMALLER, SMALLER)
KINDS(min)

#define TRUTH_BLOCKS(ACCUMULATOR, name, START, STEP, COMBINE)       \
  BLOCKS(uint8_t, ACCUMULATOR, name##_uint8, START, STEP, COMBINE)  \
  BLOCKS(int32_t, ACCUMULATOR, name##_int32, START, STEP, COMBINE)  \
  BLOCKS(int64_t, ACCUMULATOR, name##_int64, START, STEP, COMBINE)  \
  BLOCKS(float, ACCUMULATOR, name##_float32, START, STEP, COMBINE)  \
  BLOCKS(double, ACCUMULATOR, name##_float64, START, STEP, COMBINE) \
  KINDS(name)
TRUTH_BLOCKS(uint8_t, any, 0, OR, OR)
TRUTH_BLOCKS(uint8_t, all, 1, AND, AND)
TRUTH_BLOCKS(int64_t, count_nonzero, 0, COUNT, PLUS)

// ---- kernels ----

// Runs a reduction, then writes accumulators of double to a floating result divided by divisor, others as they are.
static int reduce(const td_call *call, const kind *const *kinds, uint8_t dtype, bool in_double, double divisor) {
  bool reduced[TD_RANK_MAX];
  td_reduction r;
  td_reduction_axes(&call->args[0], call->in[0].rank, reduced);
  int code = td_reduction_open(call, reduced, false, dtype, &r);
  if (code) return code;
  const kind *k = kinds[dtype];
  _Alignas(16) char small[SMALL_BYTES];
  char *accumulators = walk_run(call, &r, dtype, k, small);
  td_flat_close(&r.flat);
  if (!accumulators) return call->context->error.code;
  const td_view *out = &call->out[0];
  const double *values = (const double *)accumulators;
  if (!in_double) memcpy(out->data, accumulators, (size_t)(out->size * k->bytes));
  else if (out->dtype == TD_FLOAT32)
    for (int64_t i = 0; i < out->size; i++) ((float *)out->data)[i] = (float)(values[i] / divisor);
  else
    for (int64_t i = 0; i < out->size; i++) ((double *)out->data)[i] = values[i] / divisor;
  if (accumulators != small) td_memory_free(accumulators);
  return TD_OK;
}

static int total_kernel(const td_call *call, const kind *const *kinds) {
  uint8_t dtype = call->in[0].dtype;
  return reduce(call, kinds, dtype, td_dtype_is_float(dtype), 1);
}

static int sum_kernel(const td_call *call) { return total_kernel(call, sum_kinds); }
static int prod_kernel(const td_call *call) { return total_kernel(call, prod_kinds); }
static int max_kernel(const td_call *call) { return reduce(call, max_kinds, call->in[0].dtype, false, 1); }
static int min_kernel(const td_call *call) { return reduce(call, min_kinds, call->in[0].dtype, false, 1); }
static int any_kernel(const td_call *call) { return reduce(call, any_kinds, call->in[0].dtype, false, 1); }
static int all_kernel(const td_call *call) { return reduce(call, all_kinds, call->in[0].dtype, false, 1); }
static int count_kernel(const td_call *call) { return reduce(call, count_nonzero_kinds, call->in[0].dtype, false, 1); }

static int64_t view_count(const td_view *in, const td_arg *axes) {
  td_meta meta = {.rank = in->rank};
  memcpy(meta.shape, in->shape, in->rank * sizeof *in->shape);
  return td_reduction_count(&meta, axes);
}

static int mean_kernel(const td_call *call) {
  int64_t count = view_count(&call->in[0], &call->args[0]);
  if (!count && call->out[0].size && call->context->warn)
    call->context->warn(call->context->owner, "mean of an empty tensor is NaN");
  uint8_t dtype = call->in[0].dtype == TD_FLOAT32 ? TD_FLOAT32 : TD_FLOAT64; // integers are exact in double up to 2^53
  return reduce(call, sum_kinds, dtype, true, (double)count);
}

// ---- shapes ----

static int truth_infer(td_infer *infer) {
  int code = td_reduction_infer(infer);
  infer->out[0].dtype = TD_BOOL;
  return code;
}

static int count_infer(td_infer *infer) {
  int code = td_reduction_infer(infer);
  infer->out[0].dtype = TD_INT64;
  return code;
}

static int extreme_infer(td_infer *infer) {
  int code = td_reduction_infer(infer);
  if (code || td_reduction_count(&infer->in[0], &infer->args[0])) return code;
  if (!td_shape_size(infer->out[0].rank, infer->out[0].shape)) return TD_OK; // there is no result to be made of nothing
  code = td_infer_fail(infer, TD_ERROR_VALUE, "no identity: the reduced axes hold no element");
  td_error_hint(infer->context, "test x.size first");
  return code;
}

// ---- gradients ----

static td_tensor *spread(td_rule *rule, td_tensor *t) { // t, as a tensor that broadcasts against the input
  return td_reduction_expand(rule, t, &rule->args[0], rule->args[1].i);
}

static td_tensor *sum_gradient(td_rule *rule) {
  const td_meta *in = &rule->in_meta[0];
  return td_broadcast_to(&rule->scope, spread(rule, rule->cotangent[0]), in->rank, in->shape);
}

static int sum_vjp(td_rule *rule) {
  rule->din[0] = sum_gradient(rule);
  return TD_OK;
}

static int mean_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  int64_t count = td_reduction_count(&rule->in_meta[0], &rule->args[0]);
  td_tensor *c = td_divide(s, rule->cotangent[0], td_scope_number(s, (double)count, rule->cotangent[0]));
  const td_meta *in = &rule->in_meta[0];
  rule->din[0] = td_broadcast_to(s, spread(rule, c), in->rank, in->shape);
  return TD_OK;
}

// Elements that equal the result share its cotangent. In a group whose result is NaN those are the NaNs.
static int extreme_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0];
  if (!x) return TD_OK;
  td_tensor *same = td_equal(s, x, spread(rule, rule->out[0]));
  td_tensor *yes = td_scope_number(s, 1, x), *no = td_scope_number(s, 0, x);
  td_tensor *chosen = td_where(s, td_equal(s, x, x), td_where(s, same, yes, no), yes);
  td_tensor *share = td_divide(s, chosen, td_sum(s, chosen, &rule->args[0], true));
  rule->din[0] = td_multiply(s, spread(rule, rule->cotangent[0]), share);
  return TD_OK;
}

// The product of the others, without dividing. It is made of ops, so it can be differentiated again. The reduced axes
// become one last axis for it.
static int prod_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *in = &rule->in_meta[0];
  bool reduced[TD_RANK_MAX];
  int axes[TD_RANK_MAX], back[TD_RANK_MAX], at = 0;
  int64_t shape[TD_RANK_MAX], n = td_reduction_count(in, &rule->args[0]);
  if (!td_shape_size(in->rank, in->shape)) return TD_OK;
  td_reduction_axes(&rule->args[0], in->rank, reduced);
  for (int turn = 0; turn < 2; turn++)
    for (int i = 0; i < in->rank; i++)
      if (reduced[i] == turn) axes[at++] = i;
  for (int i = 0; i < in->rank; i++) {
    back[axes[i]] = i;
    shape[i] = in->shape[axes[i]];
  }
  const int64_t flat[] = {td_shape_size(in->rank, in->shape) / n, n};
  td_tensor *x = td_reshape(s, td_permute(s, rule->in[0], axes), 2, flat);
  td_tensor *others = td_multiply(s, td_products_beside(s, x, true), td_products_beside(s, x, false));
  others = td_permute(s, td_reshape(s, others, in->rank, shape), back);
  rule->din[0] = td_chain(s, spread(rule, rule->cotangent[0]), others);
  return TD_OK;
}

// ---- rows ----

static const td_sample reduce_samples[] = {
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    {"2,3,4", "axis=-1", -2, 2, NULL},
    {"-", NULL, -2, 2, NULL},
    {"3,1", "axis=1", -2, 2, NULL},
    TD_SAMPLES_END,
};
// Also of nothing, where that has an answer.
static const td_sample total_samples[] = {
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    {"2,3,4", "axis=-1", -2, 2, NULL},
    {"-", NULL, -2, 2, NULL},
    {"0,3", "axis=0", -2, 2, NULL},
    {"0,3", "axis=1", -2, 2, NULL},
    {"2,3", NULL, -9, 9, "int64"},
    {"2,3", "axis=0", 0, 9, "uint8"},
    TD_SAMPLES_END,
};

static const td_op sum = {
    .name = "sum",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .flags = TD_LINEAR,
    .method = true,
    .infer = td_reduction_infer_total,
    .batch = td_batch_axes,
    .kernel = sum_kernel,
    .vjp = sum_vjp,
    .doc = "Sum of the elements over axis (all axes when None); keepdims keeps them with size 1.\n"
           "Sums of integers and bools are int64. The sum of nothing is 0. Floats are added in double precision.\n"
           "Gradient: the cotangent, for every element.",
    .example = "sum(tensor([[1., 2.], [3., 4.]]), axis=0).tolist()  # [4.0, 6.0]",
    .samples = total_samples,
};

static const td_op mean = {
    .name = "mean",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .flags = TD_LINEAR,
    .method = true,
    .infer = td_reduction_infer_floating,
    .batch = td_batch_axes,
    .kernel = mean_kernel,
    .vjp = mean_vjp,
    .doc = "Mean of the elements over axis (all axes when None).\n"
           "Means of integers and bools are float32. The mean of nothing is NaN, with a warning.\n"
           "Gradient: the cotangent divided by the number of elements, for every element.",
    .example = "mean(tensor([[1., 2.], [3., 4.]]), axis=1).tolist()  # [1.5, 3.5]",
    .samples = reduce_samples,
};

static const td_op prod = {
    .name = "prod",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = td_reduction_infer_total,
    .batch = td_batch_axes,
    .kernel = prod_kernel,
    .vjp = prod_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "Product of the elements over axis (all axes when None).\n"
           "Products of integers and bools are int64. The product of nothing is 1.\n"
           "Gradient: for each element the product of the others, found without dividing, so zeros are right.",
    .example = "prod(tensor([2., 3., 4.])).item()  # 24.0",
    .samples = total_samples,
};

#define EXTREME(NAME, WORD)                                                                                  \
  static const td_op NAME = {                                                                                \
      .name = #NAME,                                                                                         \
      .params = TD_REDUCE_PARAMS,                                                                            \
      .kind = TD_KIND_REDUCE,                                                                                \
      .method = true,                                                                                        \
      .infer = extreme_infer,                                                                                \
      .kernel = NAME##_kernel,                                                                               \
      .vjp = extreme_vjp,                                                                                    \
      .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,                                                               \
      .doc = WORD " element over axis (all axes when None); NaN where there is one.\n"                       \
                  "Of nothing it is an error. Gradient: the cotangent; elements that tie share it equally.", \
      .example = #NAME "(tensor([[1., 5.], [7., 3.]]), axis=1).tolist()  # " NAME##_EXAMPLE,                 \
      .samples = reduce_samples,                                                                             \
  };
#define max_EXAMPLE "[5.0, 7.0]"
#define min_EXAMPLE "[1.0, 3.0]"
EXTREME(max, "Largest")
EXTREME(min, "Smallest")

static const td_op any = {
    .name = "any",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = truth_infer,
    .batch = td_batch_axes,
    .kernel = any_kernel,
    .no_gradient = "bool result",
    .doc = "True where an element over axis is not 0. NaN counts as not 0. Of nothing: False.",
    .example = "any(tensor([0., 2.])).item()  # True",
    .samples = total_samples,
};

static const td_op all = {
    .name = "all",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = truth_infer,
    .batch = td_batch_axes,
    .kernel = all_kernel,
    .no_gradient = "bool result",
    .doc = "True where no element over axis is 0. Of nothing: True.",
    .example = "all(tensor([0., 2.])).item()  # False",
    .samples = total_samples,
};

static const td_op count_nonzero = {
    .name = "count_nonzero",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = count_infer,
    .batch = td_batch_axes,
    .kernel = count_kernel,
    .no_gradient = "integer result",
    .doc = "Number of elements over axis that are not 0, as int64.",
    .example = "count_nonzero(tensor([0., 2., 3.])).item()  # 2",
    .samples = total_samples,
};

// ---- builders ----

static td_tensor *reduce_with(td_scope *s, const td_op *op, td_tensor *x, const td_arg *axes, bool keepdims) {
  td_arg args[2] = {{.given = 0}, {.given = 1, .i = keepdims}};
  if (axes) args[0] = *axes;
  return td_scope_apply(s, op, args, 1, x);
}

td_tensor *td_sum(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims) {
  return reduce_with(s, &sum, x, axes, keepdims);
}

td_tensor *td_mean(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims) {
  return reduce_with(s, &mean, x, axes, keepdims);
}

td_tensor *td_sum_to(td_scope *s, td_tensor *x, int rank, const int64_t *shape) {
  if (!x || td_shape_equal(x->rank, x->shape, rank, shape)) return x;
  td_arg axes = {.given = 1};
  for (int i = 0; i < x->rank; i++) {
    int to = i - (x->rank - rank);
    if (to < 0 || (shape[to] == 1 && x->shape[i] != 1)) axes.ints[axes.count++] = i;
  }
  td_tensor *summed = axes.count ? td_sum(s, x, &axes, true) : x;
  return summed && summed->rank == rank ? summed : td_reshape(s, summed, rank, shape);
}

const td_op *const td_family_reduce[] = {&sum, &mean, &prod, &max, &min, &any, &all, &count_nonzero, NULL};
