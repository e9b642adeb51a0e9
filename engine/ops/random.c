// Uniform and normal numbers, integers, permutations, coins. Products and sums are never contracted here, so that the
// clones for newer machines draw the same numbers.
#ifdef __clang__
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif
#include <math.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"
#include "engine/ops/random_draw.h"

enum { COST = 16 /* of a block, in units of td_ranges_run */ };

static int64_t last_of(int64_t end, int64_t size) { return end < size ? end : size; }

// ---- normal: Box and Muller, "A note on the generation of random normal deviates", 1958 ----

// 2 count numbers from 2 count words.
TD_CLONES static void normal_pairs(float *restrict out, const uint32_t *restrict bits, int64_t count, double mean,
                                   double std) {
  for (int64_t p = 0; p < count; p++) {
    double radius = std * sqrt(-2 * td_math_log_wide(((double)bits[2 * p] + 1) * 0x1p-32));
    td_math_angle angle = td_math_angle_of((double)bits[2 * p + 1] * (0x1p-31 * TD_PI));
    out[2 * p] = (float)(mean + radius * td_math_sine_in(angle, angle.quadrant + 1));
    out[2 * p + 1] = (float)(mean + radius * td_math_sine_in(angle, angle.quadrant));
  }
}

static void normal_single(void *argument, int64_t first, int64_t last) {
  const td_draw *d = argument;
  float values[4 * TD_DRAW_BATCH];
  uint32_t bits[4 * TD_DRAW_BATCH];
  for (int64_t b = first; b < last; b += TD_DRAW_BATCH) {
    int64_t blocks = last_of(b + TD_DRAW_BATCH, last) - b, count = last_of((b + blocks) * 4, d->out.size) - b * 4;
    td_random_blocks(d->seed, d->counter + (uint64_t)b, d->stream, blocks, bits);
    normal_pairs(values, bits, 2 * blocks, d->a, d->b);
    memcpy((float *)d->out.data + b * 4, values, (size_t)count * sizeof *values);
  }
}

static void normal_twofold(void *argument, int64_t first, int64_t last) {
  const td_draw *d = argument;
  double *out = (double *)d->out.data;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, d->stream, bits);
    double radius = sqrt(-2 * log(td_random_unit(bits[0], bits[1]) + 0x1p-54));
    double angle = 2 * TD_PI * td_random_unit(bits[2], bits[3]);
    out[2 * b] = d->a + d->b * (radius * cos(angle));
    if (2 * b + 1 < d->out.size) out[2 * b + 1] = d->a + d->b * (radius * sin(angle));
  }
}

static int normal_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  td_draw d = {.out = *out, .a = call->args[1].f, .b = call->args[2].f};
  if (out->dtype == TD_FLOAT32) td_draw_run(call, &d, out->size, 4, COST, normal_single);
  else td_draw_run(call, &d, out->size, 2, COST, normal_twofold);
  return TD_OK;
}

static int normal_infer(td_infer *infer) {
  if (!(infer->args[2].f >= 0))
    return td_infer_fail(infer, TD_ERROR_VALUE, "std must not be negative, it is %g", infer->args[2].f);
  return td_draw_infer(infer);
}

static const td_op random_normal = {
    .name = "random_normal",
    .module = "random",
    .params = {TD_KEY_PARAM, TD_SHAPE_PARAM, TD_MEAN_PARAM, TD_STD_PARAM,
               TD_DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_RANDOM,
    .infer = normal_infer,
    .kernel = normal_kernel,
    .no_gradient = td_drawn,
    .doc = "Normally distributed numbers: a tensor of that shape, normal(mean, std) one of them, and NumPy's order, "
           "normal(mean, std, shape), is known by a shape in brackets, or an int after two numbers: normal(0, 1, 5).\n"
           "The same seed gives the same numbers, whatever "
           "the size and the number of threads.",
    .example = "random_normal((2, 3)).shape  # (2, 3)",
    .source = "Philox 4x32-10 (Salmon et al., 2011); Box and Muller (1958)",
    .samples = TD_SAMPLES{{"", "shape=(2, 3)", 0, 1, NULL},
                          {"", "shape=(5,), mean=1.0, std=0.5, dtype=float64", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- uniform ----

static void uniform_single(void *argument, int64_t first, int64_t last) {
  const td_draw *d = argument;
  float *out = (float *)d->out.data, high = (float)(d->a + d->b), below_high = nextafterf(high, -INFINITY);
  uint32_t bits[4 * TD_DRAW_BATCH];
  for (int64_t b = first; b < last; b += TD_DRAW_BATCH) {
    int64_t blocks = last_of(b + TD_DRAW_BATCH, last) - b, count = last_of((b + blocks) * 4, d->out.size) - b * 4;
    td_random_blocks(d->seed, d->counter + (uint64_t)b, d->stream, blocks, bits);
    for (int64_t i = 0; i < count; i++) {
      float value = (float)(d->a + d->b * ((double)(bits[i] >> 8) * 0x1p-24));
      out[b * 4 + i] = value >= high && d->b > 0 ? below_high : value; // rounding may have reached it
    }
  }
}

static void uniform_twofold(void *argument, int64_t first, int64_t last) {
  const td_draw *d = argument;
  double *out = (double *)d->out.data;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, d->stream, bits);
    out[2 * b] = d->a + d->b * td_random_unit(bits[0], bits[1]);
    if (2 * b + 1 < d->out.size) out[2 * b + 1] = d->a + d->b * td_random_unit(bits[2], bits[3]);
  }
}

static int uniform_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  td_draw d = {.out = *out, .a = call->args[1].f, .b = call->args[2].f - call->args[1].f};
  if (out->dtype == TD_FLOAT32) td_draw_run(call, &d, out->size, 4, COST, uniform_single);
  else td_draw_run(call, &d, out->size, 2, COST, uniform_twofold);
  return TD_OK;
}

static int uniform_infer(td_infer *infer) {
  double low = infer->args[1].f, high = infer->args[2].f;
  if (low <= high && isfinite(high - low)) return td_draw_infer(infer);
  if (low <= high)
    return td_infer_fail(infer, TD_ERROR_VALUE, "low and high must be a finite distance apart: %g and %g", low, high);
  int code = td_infer_fail(infer, TD_ERROR_VALUE, "low is %g and high is %g: nothing is between them", low, high);
  td_error_hint(infer->context, "the order is (low, high) for one number, (shape, low, high) for more");
  return code;
}

static const td_op random_uniform = {
    .name = "random_uniform",
    .module = "random",
    .params = {TD_KEY_PARAM, TD_SHAPE_PARAM,
               {.name = "low", .alias = TD_ALIAS("minval"), .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0)},
               {.name = "high", .alias = TD_ALIAS("maxval"), .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1)},
               TD_DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_RANDOM,
    .infer = uniform_infer,
    .kernel = uniform_kernel,
    .no_gradient = td_drawn,
    .doc = "Numbers spread evenly over [low, high): a tensor of that shape, uniform(low, high) one of them, and "
           "NumPy's order, uniform(low, high, shape), is known by a shape in brackets, or an int after two numbers: "
           "uniform(0, 1, 5).\n"
           "The same seed gives the same numbers, "
           "whatever the size and the number of threads.",
    .example = "random_uniform(4, 2., 3.).shape  # (4,)",
    .source = "Philox 4x32-10 (Salmon et al., 2011)",
    .samples = TD_SAMPLES{{"", "shape=(2, 3)", 0, 1, NULL},
                          {"", "shape=(5,), low=-1.0, high=1.0, dtype=float64", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- integers ----

static void integers(void *argument, int64_t first, int64_t last) {
  const td_draw *d = argument;
  int64_t *out = (int64_t *)d->out.data;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, d->stream, bits);
    for (int64_t i = 2 * b; i < last_of(2 * b + 2, d->out.size); i++)
      out[i] = (int64_t)((uint64_t)d->low + td_draw_below(d->range, bits[2 * (i - 2 * b)], bits[2 * (i - 2 * b) + 1]));
  }
}

static int64_t integer_low(const td_arg *args) { return args[1].given ? args[0].i : 0; }
static int64_t integer_high(const td_arg *args) { return args[args[1].given ? 1 : 0].i; }

static int randint_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[2];
  int64_t low = integer_low(infer->args), high = integer_high(infer->args);
  if (high <= low) {
    int code = td_infer_fail(infer, TD_ERROR_VALUE, "no integer is in [%lld, %lld)", (long long)low, (long long)high);
    td_error_hint(infer->context, "the order is (low, high, shape)");
    return code;
  }
  return td_draw_infer_shape(infer, shape, TD_INT64);
}

static int randint_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  int64_t low = integer_low(call->args);
  td_draw d = {.out = *out, .low = low, .range = (uint64_t)integer_high(call->args) - (uint64_t)low};
  td_draw_run(call, &d, out->size, 2, COST, integers);
  return TD_OK;
}

static const td_op random_randint = {
    .name = "random_randint",
    .module = "random",
    .params = {TD_KEY_PARAM,
               {.name = "low", .alias = TD_ALIAS("minval"), .kind = TD_PARAM_INT, .required = true},
               {.name = "high", .alias = TD_ALIAS("maxval"), .kind = TD_PARAM_INT},
               TD_SHAPE_PARAM},
    .kind = TD_KIND_RANDOM,
    .infer = randint_infer,
    .kernel = randint_kernel,
    .no_gradient = td_drawn,
    .doc = "Integers spread evenly over low to high - 1, or over 0 to low - 1 when there is no high, as int64; without "
           "a shape, one of them. high is left out, as in NumPy and PyTorch; Python's random.randint has it.\n"
           "A shape in brackets may stand anywhere: randint(10, (2, 3)).",
    .example = "random_randint(3, 4, 2).tolist()  # [3, 3]",
    .samples = TD_SAMPLES{{"", "low=-3, high=5, shape=(2, 3)", 0, 1, NULL},
                          {"", "low=0, high=2, shape=()", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- permutation: Fisher and Yates, from the end ----

static int permutation_infer(td_infer *infer) {
  int64_t n = infer->args[0].i;
  if (n < 0) return td_infer_fail(infer, TD_ERROR_VALUE, "n is negative: %lld", (long long)n);
  infer->out[0] = (td_meta){.dtype = TD_INT64, .rank = 1, .shape = {n}};
  return td_draw_check_key(infer);
}

static int permutation_kernel(const td_call *call) {
  int64_t *out = (int64_t *)call->out[0].data, n = call->out[0].size;
  td_draw d;
  uint32_t bits[4] = {0};
  td_draw_open(call, &d, n / 2);
  for (int64_t i = 0; i < n; i++) out[i] = i;
  for (int64_t i = n - 1, drawn_so_far = 0; i > 0; i--, drawn_so_far++) {
    int half = (int)(drawn_so_far % 2) * 2;
    if (!half) td_random_block(d.seed, d.counter + (uint64_t)(drawn_so_far / 2), d.stream, bits);
    int64_t j = (int64_t)td_draw_below((uint64_t)i + 1, bits[half], bits[half + 1]), kept = out[i];
    out[i] = out[j];
    out[j] = kept;
  }
  return TD_OK;
}

static const td_op random_permutation = {
    .name = "random_permutation",
    .alias = TD_ALIAS("randperm"),
    .module = "random",
    .params = {TD_KEY_PARAM, {.name = "n", .kind = TD_PARAM_INT, .required = true}},
    .kind = TD_KIND_RANDOM,
    .infer = permutation_infer,
    .kernel = permutation_kernel,
    .no_gradient = td_drawn,
    .doc = "The integers 0 to n - 1 in random order, every order equally likely.",
    .example = "random_permutation(4).sum().item()  # 6",
    .source = "Fisher and Yates (1938), in Durstenfeld's form (1964)",
    .samples = TD_SAMPLES{{"", "n=7", 0, 1, NULL}, {"", "n=0", 0, 1, NULL}, {"", "n=1", 0, 1, NULL}, TD_SAMPLES_END},
};

// ---- bernoulli ----

static void bernoulli_blocks(void *argument, int64_t first, int64_t last) {
  const td_draw *d = argument;
  const double *p = (const double *)d->in;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, d->stream, bits);
    for (int64_t i = 2 * b; i < last_of(2 * b + 2, d->out.size); i++) {
      bool one = td_random_unit(bits[2 * (i - 2 * b)], bits[2 * (i - 2 * b) + 1]) < p[i];
      if (d->out.dtype == TD_FLOAT32) ((float *)d->out.data)[i] = one;
      else ((double *)d->out.data)[i] = one;
    }
  }
}

static int bernoulli_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  if (td_dtype_is_float(infer->in[0].dtype)) return td_draw_check_key(infer);
  return td_infer_fail(infer, TD_ERROR_DTYPE, "probabilities must be floating, not %s",
                       td_dtype_name(infer->in[0].dtype));
}

static int64_t bernoulli_workspace(const td_call *call) {
  td_scratch scratch = {0};
  td_scratch_view(&scratch, NULL, &call->in[0], TD_FLOAT64);
  return scratch.used;
}

static int bernoulli_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  td_draw d = {.out = call->out[0], .in = td_scratch_view(&scratch, call->context->pool, &call->in[0], TD_FLOAT64)};
  const double *p = (const double *)d.in;
  for (int64_t i = 0; i < d.out.size; i++)
    if (!(p[i] >= 0 && p[i] <= 1))
      return td_error_set(call->context, TD_ERROR_VALUE, "bernoulli: element %lld is %g, which is no probability",
                          (long long)i, p[i]);
  td_draw_run(call, &d, d.out.size, 2, COST, bernoulli_blocks);
  return TD_OK;
}

static const td_op bernoulli = {
    .name = "bernoulli",
    .module = "random",
    .params = {TD_TENSOR_PARAM("p"), TD_KEY_PARAM},
    .kind = TD_KIND_RANDOM,
    .infer = bernoulli_infer,
    .workspace = bernoulli_workspace,
    .kernel = bernoulli_kernel,
    .no_gradient = td_drawn,
    .doc = "1 with the probability that each element of p gives, else 0, in p's dtype. One outside 0 to 1 is an error.",
    .example = "bernoulli(tensor([0., 1.])).tolist()  # [0.0, 1.0]",
    .samples = TD_SAMPLES{{"2,3", NULL, 0, 1, NULL}, {"-", NULL, 0, 1, NULL}, TD_SAMPLES_END},
};

const td_op *const td_family_random[] = {&random_normal,      &random_uniform, &random_randint,
                                         &random_permutation, &bernoulli,      NULL};
