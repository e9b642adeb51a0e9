// The smaller and the larger of two, and clip. NaN wins over every number, but not in fmin and fmax. Where two operands
// tie, each gets half of the gradient.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample apart_samples[] = {
  { .shapes = "3,4; -", .low = -2, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = -3, .high = 3 },
  { .shapes = "0,3; 3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
// ---- minimum and maximum ----

// The share of the cotangent x that goes to the operand y of maximum(y, z); with y and z exchanged it is minimum's.
// Beside NaN both get all.
TD_MAP3(TD_EACH_FLOAT, maximum_gradient, FLOATING, T, y < z ? 0 : y == z ? x * (T)0.5 : x)
TD_KERNEL(maximum_gradient)

static td_tensor *maximum_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, td_tensor *y);

static int maximum_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (rule->needs[0]) rule->din[0] = maximum_gradient(s, rule->cotangent[0], rule->in[1], rule->in[2]);
  for (int i = 1; i < 3; i++)
    if (rule->needs[i]) rule->din[i] = td_scope_filled(s, 0, &rule->in_meta[i]);
  return TD_OK;
}

static const td_op maximum_gradient_op = {
  .name = "maximum_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = maximum_gradient_kernel,
  .expression = maximum_gradient_text,
  .vjp = maximum_gradient_vjp,
  .saves = TD_SAVES_IN1 | TD_SAVES_IN2,
  .doc = "The share of a cotangent that goes to x of maximum(x, y): all where x > y, half where they tie.\n"
         "Gradient: the same share of its cotangent; 0 for x and y.",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 3,4; -", .low = -2, .high = 2 },
    { .shapes = "0,3; 3; 3", .low = -2, .high = 2 },
    TD_SAMPLES_END,
  },
};

static td_tensor *maximum_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, td_tensor *y) {
  return td_scope_apply(s, &maximum_gradient_op, NULL, 3, cotangent, x, y);
}

TD_MAP2(TD_EACH_DTYPE, minimum, COMMON, T, MINIMUM(x, y))
TD_KERNEL(minimum)

static int minimum_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *y = rule->in[1];
  if (rule->needs[0]) rule->din[0] = maximum_gradient(s, c, y, x);
  if (rule->needs[1]) rule->din[1] = maximum_gradient(s, c, x, y);
  return TD_OK;
}

static const td_op minimum_op = {
  .name = "minimum",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE | TD_IDEMPOTENT,
  .method = true,
  .infer = td_map_common,
  .kernel = minimum_kernel,
  .expression = minimum_text,
  .vjp = minimum_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The smaller of x and y, element by element; NaN if one of them is NaN.\n"
         "Gradient: the cotangent for the smaller one; where they tie, half for each.",
  .example = "minimum(tensor([1., 5.]), 3).tolist()  # [1.0, 3.0]",
  .samples = apart_samples,
};

TD_MAP2(TD_EACH_DTYPE, maximum, COMMON, T, MAXIMUM(x, y))
TD_KERNEL(maximum)

static int maximum_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *y = rule->in[1];
  if (rule->needs[0]) rule->din[0] = maximum_gradient(s, c, x, y);
  if (rule->needs[1]) rule->din[1] = maximum_gradient(s, c, y, x);
  return TD_OK;
}

static const td_op maximum_op = {
  .name = "maximum",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE | TD_IDEMPOTENT,
  .method = true,
  .infer = td_map_common,
  .kernel = maximum_kernel,
  .expression = maximum_text,
  .vjp = maximum_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The larger of x and y, element by element; NaN if one of them is NaN.\n"
         "Gradient: the cotangent for the larger one; where they tie, half for each.",
  .example = "maximum(tensor([1., 5.]), 3).tolist()  # [3.0, 5.0]",
  .samples = apart_samples,
};

td_tensor *td_maximum(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &maximum_op, NULL, 2, a, b); }
td_tensor *td_minimum(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &minimum_op, NULL, 2, a, b); }

// ---- the same beside NaN ----

#define NUMBER_MAP(name, choice)                                                                                       \
  TD_MAP2(TD_EACH_DTYPE, name, COMMON, T, ISNAN(x) ? y : ISNAN(y) ? x : choice(x, y))                                  \
  TD_KERNEL(name)

// A number beside NaN gets all.
static td_tensor *number_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, td_tensor *y, bool largest) {
  td_tensor *zero = td_scope_number(s, 0, cotangent), *first = largest ? x : y, *second = largest ? y : x;
  td_tensor *share = maximum_gradient(s, cotangent, first, second);
  share = td_where(s, td_equal(s, y, y), share, cotangent);
  return td_where(s, td_equal(s, x, x), share, zero);
}

static int number_vjp(td_rule *rule, bool largest) {
  td_scope *s = &rule->scope;
  for (int i = 0; i < 2; i++)
    if (rule->needs[i])
      rule->din[i] = number_gradient(s, rule->cotangent[0], rule->in[i], rule->in[1 - i], largest);
  return TD_OK;
}
static int fmin_vjp(td_rule *rule) { return number_vjp(rule, false); }
static int fmax_vjp(td_rule *rule) { return number_vjp(rule, true); }

#define NUMBER_ROW(title, word, shown)                                                                                 \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .params = { TD_XY },                                                                                               \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE | TD_IDEMPOTENT,                                                          \
    .method = true,                                                                                                    \
    .infer = td_map_common,                                                                                            \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = title##_vjp,                                                                                                \
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,                                                                              \
    .doc = "The " word " of x and y, element by element; of NaN and a number, the number.\n"                           \
           "Gradient: the cotangent for the one that was taken; where they tie, half for each; of two NaN, none.",     \
    .example = shown,                                                                                                  \
    .samples = apart_samples,                                                                                          \
  };

NUMBER_MAP(fmin, MINIMUM)
NUMBER_ROW(fmin, "smaller", "fmin(tensor([1., nan]), 3).tolist()  # [1.0, 3.0]")

NUMBER_MAP(fmax, MAXIMUM)
NUMBER_ROW(fmax, "larger", "fmax(tensor([1., nan]), 3).tolist()  # [3.0, 3.0]")

// ---- clip ----

static int clip_infer(td_infer *infer) {
  bool low = infer->in[1].rank <= TD_RANK_MAX, high = infer->in[2].rank <= TD_RANK_MAX;
  if (low && high) return td_map_common(infer);
  if (!low && !high) return td_infer_fail(infer, TD_ERROR_TYPE, "one of low and high must be given");
  int bound = low ? 1 : 2;
  infer->out[0].dtype = td_dtype_promote(infer->in[0].dtype, infer->in[bound].dtype);
  return td_infer_broadcast(infer, 0, bound, &infer->out[0]);
}

// A bound wins where it ties; NaN is looked for in the bounds alone, because x brings its own along.
#define RAISED(x, low) ((((x) <= (low)) | ISNAN(low)) ? (low) : (x))
#define LOWERED(x, high) ((((x) >= (high)) | ISNAN(high)) ? (high) : (x))
TD_MAP3(TD_EACH_DTYPE, clip, COMMON, T, LOWERED(RAISED(x, y), z))

// A bound that is not given has no part.
static int clip_kernel(const td_call *call) {
  if (call->in[1].data && call->in[2].data) return td_map_run(call, &clip_map, 0);
  if (call->in[1].data) return td_map_run(call, &maximum_map, 0);
  td_call below = *call;
  below.in[1] = call->in[2];
  return td_map_run(&below, &minimum_map, 0);
}

// Inside of the bounds, which count as inside, the cotangent goes to x; outside, to the bound that took its place. NaN
// is neither inside nor outside.
static int clip_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *low = rule->in[1], *high = rule->in[2];
  td_tensor *zero = td_scope_number(s, 0, c), *inside = c;
  if (low) inside = td_where(s, td_less_equal(s, low, x), inside, zero);
  if (high) inside = td_where(s, td_less_equal(s, x, high), inside, zero);
  if (rule->needs[0]) rule->din[0] = inside;
  if (rule->needs[1]) {
    td_tensor *taken = high ? td_where(s, td_greater(s, low, high), zero, c) : c;
    rule->din[1] = td_where(s, td_less(s, x, low), taken, zero);
  }
  if (rule->needs[2]) {
    td_tensor *raised = low ? td_maximum(s, x, low) : x;
    rule->din[2] = td_where(s, td_greater(s, raised, high), c, zero);
  }
  return TD_OK;
}

static const td_op clip_op = {
    .name = "clip",
    .alias = TD_ALIAS("clamp", "clip_by_value"),
    .params = {TD_X,
               {.name = "low", .kind = TD_PARAM_TENSOR_OPTIONAL, .alias = TD_ALIAS("min", "a_min")},
               {.name = "high", .kind = TD_PARAM_TENSOR_OPTIONAL, .alias = TD_ALIAS("max", "a_max")}},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_IDEMPOTENT,
    .method = true,
    .infer = clip_infer,
    .kernel = clip_kernel,
    .expression = clip_text,
    .vjp = clip_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_IN2,
    .doc = "x moved between low and high, numbers or tensors; either may be None.\n"
           "NaN stays; where low > high the result is high.\n"
           "Gradient: the cotangent for x where low <= x <= high, bounds included; 0 outside, where the bound "
           "gets it, and at NaN.",
    .example = "clip(tensor([0., 2., 5.]), 1, 4).tolist()  # [1.0, 2.0, 4.0]",
    .samples =
        TD_SAMPLES{
            {.shapes = "3,4; -; none", .low = -2, .high = 2},
            {.shapes = "3,4; none; 4", .low = -2, .high = 2},
            {.shapes = "2,3; -; -", .low = -2, .high = 2},
            {.shapes = "0,3; 3; 3", .low = -2, .high = 2},
            TD_SAMPLES_END,
        },
};

const td_op *const td_family_bounds[] = {
  &minimum_op, &maximum_op, &fmin_op, &fmax_op, &clip_op, &maximum_gradient_op, NULL,
};
