// The four operations, what Python's operators // and % mean, sign and absolute value. Integers wrap, bool adds and
// multiplies as or and and, / of integers is float32. Here too: the products that all gradients go through, which are 0
// where the cotangent is exactly 0, so that an element nobody used never brings a NaN or an infinity back.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample pair_samples[] = {
  { .shapes = "3,4; 3,4", .low = -2, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = -2, .high = 2 },
  { .shapes = "-; 5", .low = -2, .high = 2 },
  { .shapes = "0,3; 3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample divisor_samples[] = {
  { .shapes = "3,4; 3,4", .low = 0.3, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = -2, .high = -0.3 },
  { .shapes = "5; -", .low = 0.3, .high = 2 },
  { .shapes = "0,3; 3", .low = 0.3, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample away_samples[] = {
  { .shapes = "3,4", .low = 0.2, .high = 3 },
  { .shapes = "2,3", .low = -3, .high = -0.2 },
  { .shapes = "-", .low = 0.2, .high = 3 },
  { .shapes = "0,3", .low = 0.2, .high = 3 },
  TD_SAMPLES_END,
};

// ---- products of gradients ----

TD_MAP2(TD_EACH_FLOAT, chain, FLOATING, T, x == 0 ? 0 : x * y)
TD_KERNEL(chain)

static int chain_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = td_chain(&rule->scope, c, rule->in[1]);
  if (rule->needs[1]) rule->din[1] = td_chain(&rule->scope, c, rule->in[0]);
  return TD_OK;
}

static const td_op chain_op = {
  .name = "chain",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_TENSOR_PARAM("derivative") },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = chain_kernel,
  .expression = chain_text,
  .vjp = chain_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The product of a cotangent and a derivative: 0 where the cotangent is exactly 0.\n"
         "Gradient: that of the product.",
  .samples = divisor_samples,
};

TD_MAP2(TD_EACH_FLOAT, chain_quotient, FLOATING, T, x == 0 ? 0 : x / y)
TD_KERNEL(chain_quotient)

static int chain_quotient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *divisor = rule->in[1];
  if (rule->needs[0]) rule->din[0] = td_chain_quotient(s, c, divisor);
  if (!rule->needs[1]) return TD_OK;
  td_tensor *bend = td_chain_quotient(s, td_chain_quotient(s, rule->in[0], divisor), divisor);
  rule->din[1] = td_negative(s, td_chain(s, c, bend));
  return TD_OK;
}

static const td_op chain_quotient_op = {
  .name = "chain_quotient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_TENSOR_PARAM("divisor") },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = chain_quotient_kernel,
  .expression = chain_quotient_text,
  .vjp = chain_quotient_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The quotient of a cotangent and a divisor: 0 where the cotangent is exactly 0.\n"
         "Gradient: that of the quotient.",
  .samples = divisor_samples,
};

td_tensor *td_chain(td_scope *s, td_tensor *cotangent, td_tensor *derivative) {
  return td_scope_apply(s, &chain_op, NULL, 2, cotangent, derivative);
}
td_tensor *td_chain_quotient(td_scope *s, td_tensor *cotangent, td_tensor *divisor) {
  return td_scope_apply(s, &chain_quotient_op, NULL, 2, cotangent, divisor);
}

// ---- add, subtract, multiply ----

TD_MAP2(TD_EACH_DTYPE_WRAPPING, add, COMMON, T, x + y)
TD_KERNEL(add)

static int add_vjp(td_rule *rule) {
  for (int i = 0; i < 2; i++)
    if (rule->needs[i]) rule->din[i] = rule->cotangent[0];
  return TD_OK;
}

static const td_op add_op = {
  .name = "add",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE | TD_LINEAR,
  .method = true,
  .infer = td_map_common,
  .kernel = add_kernel,
  .expression = add_text,
  .vjp = add_vjp,
  .doc = "The sum x + y.\n"
         "Gradient: the cotangent, for both. Integers wrap around; of bools it is the logical or.",
  .example = "add(tensor([1., 2.]), 3).tolist()  # [4.0, 5.0]",
  .samples = pair_samples,
};

td_tensor *td_add(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &add_op, NULL, 2, a, b); }

static int subtract_infer(td_infer *infer) {
  int code = td_map_common(infer);
  if (code || infer->out[0].dtype != TD_BOOL) return code;
  code = td_infer_fail(infer, TD_ERROR_DTYPE, "not defined for bool tensors");
  td_error_hint(infer->context, "use logical_xor(x, y), or cast one of them to an integer dtype");
  return code;
}

TD_MAP2(TD_EACH_NUMBER_WRAPPING, subtract, COMMON, T, x - y)
TD_KERNEL(subtract)

static int subtract_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = rule->cotangent[0];
  if (rule->needs[1]) rule->din[1] = td_negative(&rule->scope, rule->cotangent[0]);
  return TD_OK;
}

static const td_op subtract_op = {
  .name = "subtract",
  .alias = TD_ALIAS("sub"),
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_LINEAR,
  .method = true,
  .infer = subtract_infer,
  .kernel = subtract_kernel,
  .expression = subtract_text,
  .vjp = subtract_vjp,
  .doc = "The difference x - y.\n"
         "Gradient: the cotangent for x, its negative for y. Integers wrap around; bools are an error.",
  .example = "subtract(tensor([4., 5.]), 3).tolist()  # [1.0, 2.0]",
  .samples = pair_samples,
};

td_tensor *td_subtract(td_scope *s, td_tensor *a, td_tensor *b) {
  return td_scope_apply(s, &subtract_op, NULL, 2, a, b);
}

static const char multiply_text[] = "x * y";
TD_LOOP2(BOOL, _Bool, multiply, T, x & y)
TD_EACH_NUMBER_WRAPPING(TD_LOOP2, multiply, T, x * y)
TD_MAP_TABLE(TD_EACH_DTYPE_WRAPPING, multiply, 2, COMMON)
TD_KERNEL(multiply)

static int multiply_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = td_chain(&rule->scope, rule->cotangent[0], rule->in[1]);
  if (rule->needs[1]) rule->din[1] = td_chain(&rule->scope, rule->cotangent[0], rule->in[0]);
  return TD_OK;
}

static const td_op multiply_op = {
  .name = "multiply",
  .alias = TD_ALIAS("mul"),
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE,
  .method = true,
  .infer = td_map_common,
  .kernel = multiply_kernel,
  .expression = multiply_text,
  .vjp = multiply_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The product x * y, element by element (matmul is the matrix product).\n"
         "Gradient: cotangent * y for x, cotangent * x for y. Integers wrap around; of bools it is the logical and.",
  .example = "multiply(tensor([1., 2.]), tensor([3., 4.])).tolist()  # [3.0, 8.0]",
  .samples = pair_samples,
};

td_tensor *td_multiply(td_scope *s, td_tensor *a, td_tensor *b) {
  return td_scope_apply(s, &multiply_op, NULL, 2, a, b);
}

// ---- divisions ----

TD_MAP2(TD_EACH_FLOAT, divide, FLOATING, T, x / y)
TD_KERNEL(divide)

static int divide_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *quotient = td_chain_quotient(s, rule->cotangent[0], rule->in[1]);
  if (rule->needs[0]) rule->din[0] = quotient;
  if (rule->needs[1]) rule->din[1] = td_negative(s, td_chain(s, quotient, rule->out[0]));
  return TD_OK;
}

static const td_op divide_op = {
  .name = "divide",
  .alias = TD_ALIAS("true_divide"),
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = divide_kernel,
  .expression = divide_text,
  .vjp = divide_vjp,
  .saves = TD_SAVES_IN1 | TD_SAVES_OUTPUT,
  .doc = "The quotient x / y; integers give float32.\n"
         "Gradient: cotangent / y for x, -cotangent * x / y**2 for y. x / 0 is an infinity or NaN, as IEEE 754 has it.",
  .example = "divide(tensor([1, 2]), 4).tolist()  # [0.25, 0.5]",
  .samples = divisor_samples,
};

td_tensor *td_divide(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &divide_op, NULL, 2, a, b); }

// Integers have no value for a division by zero: the first one is an error.
static int run_division(const td_call *call, const td_map *map) {
  const td_view *divisor = &call->in[1];
  if (!td_dtype_is_float(call->out[0].dtype) && call->out[0].size > 0) {
    int64_t zero = td_map_find(divisor, false);
    if (zero >= 0) {
      td_error_set(call->context, TD_ERROR_ZERO_DIVISION, "%s: integer division by zero: element %lld of y is 0",
                   call->op->name, (long long)zero);
      td_error_hint(call->context, "divide floating numbers for an infinity or NaN instead: y.astype(float32)");
      return TD_ERROR_ZERO_DIVISION;
    }
  }
  return td_map_run(call, map, 0);
}

#define DIVISION_MAP(name, expression)                                                                                 \
  static const char name##_text[] = #expression;                                                                       \
  TD_LOOP2_NEAR(FLOAT32, float, name, !TD_SINGLE_DIVIDES(x, y), 1, td_single_##name(x, y), expression)                 \
  TD_LOOP2_NEAR(FLOAT64, double, name, !TD_MATH_DIVIDES(x, y), 1, td_math_##name##_near_double(x, y), expression)      \
  TD_EACH_SIGNED(TD_LOOP2, name, T, expression)                                                                        \
  TD_MAP_TABLE(TD_EACH_NUMBER, name, 2, COMMON)

DIVISION_MAP(floor_divide, FLOOR_DIVIDE(x, y))

static int floor_divide_kernel(const td_call *call) { return run_division(call, &floor_divide_map); }

static int flat_vjp(td_rule *rule) {
  for (int i = 0; i < rule->in_count; i++)
    if (rule->needs[i]) rule->din[i] = td_scope_filled(&rule->scope, 0, &rule->in_meta[i]);
  return TD_OK;
}

static const td_op floor_divide_op = {
  .name = "floor_divide",
  .alias = TD_ALIAS("floordiv"),
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_number,
  .kernel = floor_divide_kernel,
  .expression = floor_divide_text,
  .vjp = flat_vjp,
  .doc = "The quotient x // y rounded down, as Python rounds it.\n"
         "Gradient: 0, as the result is constant between its steps. Integers: y = 0 is an error, and the smallest\n"
         "integer divided by -1 wraps to itself. Floating numbers: x // 0 is an infinity or NaN.",
  .example = "floor_divide(tensor([-7, 7]), 2).tolist()  # [-4, 3]",
  .samples = divisor_samples,
};

static td_tensor *floor_divide(td_scope *s, td_tensor *a, td_tensor *b) {
  return td_scope_apply(s, &floor_divide_op, NULL, 2, a, b);
}

// ---- div: divide, or a quotient that is rounded ----

// The smallest integer divided by -1 wraps to itself.
TD_EACH_FLOAT(TD_LOOP2, cut_divide, T, TRUNC(x / y))
TD_EACH_SIGNED(TD_LOOP2, cut_divide, T, FLOOR_DIVIDE((T)(x - FMOD(x, y)), y))
TD_MAP_TABLE(TD_EACH_NUMBER, cut_divide, 2, COMMON)

enum { CUT = 1, FLOORED = 2 }; // of rounding_modes, from 1
static const char *const rounding_modes[] = {"trunc", "floor", NULL};
static int rounding_of(const td_arg *args) { return args[0].given ? (int)args[0].i + 1 : 0; }

static int div_infer(td_infer *infer) {
  return rounding_of(infer->args) ? td_map_number(infer) : td_map_floating(infer);
}

static int div_kernel(const td_call *call) {
  int rounding = rounding_of(call->args);
  if (!rounding) return divide_kernel(call);
  return run_division(call, rounding == CUT ? &cut_divide_map : &floor_divide_map);
}

static int div_vjp(td_rule *rule) { return rounding_of(rule->args) ? flat_vjp(rule) : divide_vjp(rule); }

static const td_op div_op = {
  .name = "div",
  .params = { TD_XY, { .name = "rounding_mode", .kind = TD_PARAM_CHOICE, .choices = rounding_modes, .keyword = true } },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = div_infer,
  .kernel = div_kernel,
  .expression = divide_text,
  .vjp = div_vjp,
  .saves = TD_SAVES_IN1 | TD_SAVES_OUTPUT,
  .doc = "divide(x, y); with rounding_mode \"floor\" floor_divide(x, y), with \"trunc\" rounded toward 0 as in C.\n"
         "Gradient: that of divide; 0 for the rounded ones. Integers stay integers when rounded; y = 0 is an error "
         "then.",
  .example = "div(tensor([-7, 7]), 2, rounding_mode=\"trunc\").tolist()  # [-3, 3]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 3,4", .low = 0.3, .high = 2 },
    { .shapes = "3,4; 4", .args = "rounding_mode=\"floor\"", .low = -2, .high = -0.3 },
    { .shapes = "3,4; -", .args = "rounding_mode=\"trunc\"", .low = 0.3, .high = 2 },
    { .shapes = "0,3; 3", .args = "rounding_mode=\"trunc\"", .low = 0.3, .high = 2 },
    TD_SAMPLES_END,
  },
};

// ---- remainders ----

DIVISION_MAP(remainder, REMAINDER(x, y))

static int remainder_kernel(const td_call *call) { return run_division(call, &remainder_map); }

static int remainder_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = c;
  if (rule->needs[1]) rule->din[1] = td_negative(s, td_chain(s, c, floor_divide(s, rule->in[0], rule->in[1])));
  return TD_OK;
}

static const td_op remainder_op = {
    .name = "remainder",
    .alias = TD_ALIAS("mod"),
    .params = {TD_XY},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_number,
    .kernel = remainder_kernel,
    .expression = remainder_text,
    .vjp = remainder_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc =
        "The remainder x % y, which has the sign of y, as in Python.\n"
        "Gradient: the cotangent for x, -cotangent * (x // y) for y. Integers: y = 0 is an error. Floating numbers:\n"
        "NaN where y is 0 or x an infinity.",
    .example = "remainder(tensor([-7, 7]), 2).tolist()  # [1, 1]",
    .samples =
        TD_SAMPLES{
            {.shapes = "3,4; -", .low = 0.55, .high = 0.95},
            {.shapes = "0,3; 3", .low = 0.3, .high = 2},
            TD_SAMPLES_END,
        },
};

td_tensor *td_remainder(td_scope *s, td_tensor *a, td_tensor *b) {
  return td_scope_apply(s, &remainder_op, NULL, 2, a, b);
}

DIVISION_MAP(fmod, FMOD(x, y))

static int fmod_kernel(const td_call *call) { return run_division(call, &fmod_map); }

static int fmod_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = c;
  if (!rule->needs[1]) return TD_OK;
  td_tensor *times = td_divide(s, td_subtract(s, rule->in[0], rule->out[0]), rule->in[1]); // whole but for rounding
  rule->din[1] = td_negative(s, td_chain(s, c, td_round(s, times)));
  return TD_OK;
}

static const td_op fmod_op = {
    .name = "fmod",
    .params = {TD_XY},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_number,
    .kernel = fmod_kernel,
    .expression = fmod_text,
    .vjp = fmod_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .doc = "The remainder x - trunc(x / y) * y, which has the sign of x, as in C (remainder has that of y).\n"
           "Gradient: the cotangent for x, -cotangent * trunc(x / y) for y. Integers: y = 0 is an error. Floating "
           "numbers:\n"
           "NaN where y is 0 or x an infinity.",
    .example = "fmod(tensor([-7, 7]), 4).tolist()  # [-3, 3]",
    .samples =
        TD_SAMPLES{
            {.shapes = "3,4; -", .low = 0.55, .high = 0.95},
            {.shapes = "0,3; 3", .low = 0.3, .high = 2},
            TD_SAMPLES_END,
        },
};

// ---- between two ----

// From the nearer end, so that both ends are exact.
TD_MAP3(TD_EACH_FLOAT, lerp, FLOATING, T, z < (T)0.5 ? x + z * (y - x) : y - (1 - z) * (y - x))
TD_KERNEL(lerp)

static int lerp_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *weight = rule->in[2];
  if (rule->needs[0]) rule->din[0] = td_chain(s, c, td_subtract(s, td_scope_number(s, 1, weight), weight));
  if (rule->needs[1]) rule->din[1] = td_chain(s, c, weight);
  if (rule->needs[2]) rule->din[2] = td_chain(s, c, td_subtract(s, rule->in[1], rule->in[0]));
  return TD_OK;
}

static const td_op lerp_op = {
  .name = "lerp",
  .params = { TD_TENSOR_PARAM("start"), TD_TENSOR_PARAM("end"), TD_TENSOR_PARAM("weight") },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = lerp_kernel,
  .expression = lerp_text,
  .vjp = lerp_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_IN2,
  .doc = "The number between start and end at weight, a number or a tensor: start + weight * (end - start).\n"
         "Gradient: cotangent * (1 - weight) for start, cotangent * weight for end, cotangent * (end - start) for\n"
         "weight.",
  .example = "lerp(tensor([0., 10.]), tensor([4., 20.]), 0.5).tolist()  # [2.0, 15.0]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 3,4; 3,4", .low = 0.1, .high = 0.9 },
    { .shapes = "3,4; 4; -", .low = -2, .high = 0.4 },
    { .shapes = "3,1; 4; -", .low = 0.6, .high = 2 },
    { .shapes = "0,3; 3; 3", .low = 0, .high = 1 },
    TD_SAMPLES_END,
  },
};

// ---- signs ----

TD_MAP1(TD_EACH_NUMBER_WRAPPING, negative, COMMON, T, -x)
TD_KERNEL(negative)

static int negative_vjp(td_rule *rule) {
  rule->din[0] = td_negative(&rule->scope, rule->cotangent[0]);
  return TD_OK;
}

static const td_op negative_op = {
  .name = "negative",
  .alias = TD_ALIAS("neg"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_LINEAR,
  .method = true,
  .infer = td_map_number,
  .kernel = negative_kernel,
  .expression = negative_text,
  .vjp = negative_vjp,
  .doc = "The negative -x.\n"
         "Gradient: -cotangent. Integers wrap around; bools are an error (logical_not is their opposite).",
  .example = "negative(tensor([1., -2.])).tolist()  # [-1.0, 2.0]",
  .samples = away_samples,
};

td_tensor *td_negative(td_scope *s, td_tensor *a) { return td_scope_apply(s, &negative_op, NULL, 1, a); }

TD_MAP1(TD_EACH_NUMBER, sign, COMMON, T, SIGN(x))
TD_KERNEL(sign)

static const td_op sign_op = {
  .name = "sign",
  .alias = TD_ALIAS("sgn"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_IDEMPOTENT,
  .method = true,
  .infer = td_map_number,
  .kernel = sign_kernel,
  .expression = sign_text,
  .vjp = flat_vjp,
  .doc = "The sign of x: -1, 0 or 1; NaN stays.\n"
         "Gradient: 0 everywhere, at 0 too.",
  .example = "sign(tensor([-3., 0., 2.])).tolist()  # [-1.0, 0.0, 1.0]",
  .samples = away_samples,
};

// The cotangent with the sign of x: the gradient of abs, in one pass.
TD_MAP2(TD_EACH_FLOAT, abs_gradient, FLOATING, T, y > 0 ? x : y < 0 ? -x : 0)
TD_KERNEL(abs_gradient)

static td_tensor *abs_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x);

static int abs_gradient_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = abs_gradient(&rule->scope, rule->cotangent[0], rule->in[1]);
  if (rule->needs[1]) rule->din[1] = td_scope_filled(&rule->scope, 0, &rule->in_meta[1]);
  return TD_OK;
}

static const td_op abs_gradient_op = {
  .name = "abs_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = abs_gradient_kernel,
  .expression = abs_gradient_text,
  .vjp = abs_gradient_vjp,
  .saves = TD_SAVES_IN1,
  .doc = "The cotangent times the sign of x, 0 at NaN.\n"
         "Gradient: the same of its cotangent; 0 for x.",
  .samples = divisor_samples,
};

static td_tensor *abs_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x) {
  return td_scope_apply(s, &abs_gradient_op, NULL, 2, cotangent, x);
}

TD_MAP1(TD_EACH_DTYPE, abs, COMMON, T, ABS(x))
TD_KERNEL(abs)

static int abs_vjp(td_rule *rule) {
  rule->din[0] = abs_gradient(&rule->scope, rule->cotangent[0], rule->in[0]);
  return TD_OK;
}

static const td_op abs_op = {
  .name = "abs",
  .alias = TD_ALIAS("absolute", "fabs"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_IDEMPOTENT,
  .method = true,
  .infer = td_map_common,
  .kernel = abs_kernel,
  .expression = abs_text,
  .vjp = abs_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The absolute value of x.\n"
         "Gradient: cotangent * sign(x), which is 0 at 0; 0 at NaN too, as in PyTorch.\n"
         "The smallest integer wraps to itself.",
  .example = "abs(tensor([-3., 2.])).tolist()  # [3.0, 2.0]",
  .samples = away_samples,
};

td_tensor *td_abs(td_scope *s, td_tensor *x) { return td_scope_apply(s, &abs_op, NULL, 1, x); }

const td_op *const td_family_arithmetic[] = {
  &add_op, &subtract_op, &multiply_op, &divide_op, &floor_divide_op, &div_op, &remainder_op, &fmod_op, &lerp_op,
  &negative_op, &sign_op, &abs_op, &chain_op, &chain_quotient_op, &abs_gradient_op, NULL,
};
