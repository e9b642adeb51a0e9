// Rounding to whole numbers and to decimals. The results are flat between their steps, so their gradients are 0.
// Integers stay as they are.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample step_samples[] = {
  { .shapes = "3,4", .low = 1.1, .high = 1.4 },
  { .shapes = "-", .low = -2.9, .high = -2.6 },
  { .shapes = "5", .low = -9, .high = 9, .dtypes = "int64" },
  { .shapes = "0,3", .low = 1.1, .high = 1.4 },
  TD_SAMPLES_END,
};

static int flat_vjp(td_rule *rule) {
  rule->din[0] = td_scope_filled(&rule->scope, 0, &rule->in_meta[0]);
  return TD_OK;
}

#define ROUNDING_ROW(title, aliases, summary, shown)                                                                   \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .alias = aliases,                                                                                                  \
    .params = { TD_X },                                                                                                \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .flags = TD_IDEMPOTENT,                                                                                            \
    .method = true,                                                                                                    \
    .infer = td_map_common,                                                                                            \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = flat_vjp,                                                                                                   \
    .doc = summary "\nGradient: 0, as the result is constant between its steps. Integers stay as they are.",           \
    .example = shown,                                                                                                  \
    .samples = step_samples,                                                                                           \
  };

TD_MAP1(TD_EACH_DTYPE, floor, COMMON, T, FLOOR(x))
TD_KERNEL(floor)
ROUNDING_ROW(floor, NULL, "The largest whole number that is not above x.",
             "floor(tensor([1.7, -1.7])).tolist()  # [1.0, -2.0]")

TD_MAP1(TD_EACH_DTYPE, ceil, COMMON, T, CEIL(x))
TD_KERNEL(ceil)
ROUNDING_ROW(ceil, NULL, "The smallest whole number that is not below x.",
             "ceil(tensor([1.2, -1.2])).tolist()  # [2.0, -1.0]")

TD_MAP1(TD_EACH_DTYPE, trunc, COMMON, T, TRUNC(x))
TD_KERNEL(trunc)
ROUNDING_ROW(trunc, TD_ALIAS("fix"), "x without its fraction: rounded toward 0.",
             "trunc(tensor([1.7, -1.7])).tolist()  # [1.0, -1.0]")

// ---- round ----

static int round_infer(td_infer *infer) {
  int code = td_map_common(infer);
  if (infer->args[0].i >= 0 || td_dtype_is_float(infer->out[0].dtype)) return code;
  code = td_infer_fail(infer, TD_ERROR_DTYPE, "decimals is %lld, and below 0 only floating numbers are rounded",
                       (long long)infer->args[0].i);
  td_error_hint(infer->context, "cast to a floating dtype first: x.astype(float64)");
  return code;
}

TD_EACH_DTYPE(TD_LOOP1, rint, T, RINT(x))
TD_MAP_TABLE(TD_EACH_DTYPE, rint, 1, COMMON)
TD_MAP1(TD_EACH_FLOAT, decimals, COMMON, T, p < 0 ? TENS(x, q) : DECIMALS(x, q))

static int round_kernel(const td_call *call) {
  int64_t decimals = call->args[0].i;
  if (decimals == 0 || !td_dtype_is_float(call->out[0].dtype)) return td_map_run(call, &rint_map, 0);
  const double arguments[TD_MAP_ARGUMENTS] = {decimals < 0 ? -1 : 1, pow(10, fabs((double)decimals))};
  return td_map_run_with(call, &decimals_map, arguments);
}

static const td_op round_op = {
  .name = "round",
  .alias = TD_ALIAS("around", "rint"),
  .params = { TD_X, { .name = "decimals", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0) } },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_IDEMPOTENT,
  .method = true,
  .infer = round_infer,
  .kernel = round_kernel,
  .expression = decimals_text,
  .vjp = flat_vjp,
  .doc = "The number with that many decimals nearest to x; halves go to the even one.\n"
         "decimals below 0 round to tens, hundreds and so on.\n"
         "Gradient: 0, as the result is constant between its steps.",
  .example = "round(tensor([0.5, 1.5, 2.7])).tolist()  # [0.0, 2.0, 3.0]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = 1.1, .high = 1.4 },
    { .shapes = "-", .low = -2.9, .high = -2.6 },
    { .shapes = "5", .low = -9, .high = 9, .dtypes = "int64" },
    { .shapes = "0,3", .low = 1.1, .high = 1.4 },
    { .shapes = "4", .args = "decimals=1", .low = 1.21, .high = 1.24 },
    { .shapes = "4", .args = "decimals=-1", .low = 23, .high = 24 },
    TD_SAMPLES_END,
  },
};

td_tensor *td_round(td_scope *s, td_tensor *x) { return td_scope_apply(s, &round_op, NULL, 1, x); }

// ---- the fraction ----

TD_MAP1(TD_EACH_NUMBER, frac, COMMON, T, x - TRUNC(x))
TD_KERNEL(frac)

static int frac_vjp(td_rule *rule) {
  rule->din[0] = rule->cotangent[0];
  return TD_OK;
}

static const td_op frac_op = {
  .name = "frac",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_IDEMPOTENT,
  .method = true,
  .infer = td_map_number,
  .kernel = frac_kernel,
  .expression = frac_text,
  .vjp = frac_vjp,
  .doc = "The fraction of x, x - trunc(x): it has the sign of x.\n"
         "Gradient: the cotangent. Of integers it is 0, of infinities NaN.",
  .example = "frac(tensor([1.75, -1.75])).tolist()  # [0.75, -0.75]",
  .samples = step_samples,
};

const td_op *const td_family_rounding[] = { &floor_op, &ceil_op, &trunc_op, &round_op, &frac_op, NULL };
