// Random numbers from the session's seed and counter. Element i of a draw depends on the seed and on counter + i alone,
// so neither the size of a draw nor the number of threads changes its first numbers. A draw advances the counter by its
// blocks of 128 bits, a number that depends on its size alone. Products and sums are never contracted here, so that the
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

#define SHAPE_PARAM \
  { .name = "shape", .kind = TD_PARAM_SHAPE, .required = true }
#define FLOAT_PARAM(text, standard) \
  { .name = text, .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(standard) }
#define DTYPE_PARAM(standard) \
  { .name = "dtype", .kind = TD_PARAM_DTYPE, .fallback = TD_INT_DEFAULT(standard) }
static const char drawn[] = "drawn at random";

enum { COST = 16 /* of a block, in units of td_ranges_run */, BATCH = 64 /* blocks drawn together */ };

typedef struct draw {
  uint64_t seed, counter;
  td_view out;
  double a, b; // mean and std, or low and width
  int64_t low;
  uint64_t range;
  const char *in; // probabilities, or what dropout drops from
  uint8_t *mask;
} draw;

// Draws blocks of count elements each, in chunks; work fills those of blocks first to last.
static void run(const td_call *call, draw *d, int64_t size, int64_t per_block, td_range *work) {
  td_context *context = call->context;
  d->seed = context->seed;
  d->counter = context->counter;
  int64_t blocks = (size + per_block - 1) / per_block;
  context->counter += (uint64_t)blocks;
  td_ranges_run(context->pool, blocks, COST, work, d);
}

static int shape_infer(td_infer *infer, uint8_t dtype) {
  const td_arg *shape = &infer->args[0];
  infer->out[0] = (td_meta){.dtype = dtype, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) {
    if (shape->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "size of axis %d is negative: %lld", i, (long long)shape->ints[i]);
    infer->out[0].shape[i] = shape->ints[i];
  }
  return TD_OK;
}

static int floating_infer(td_infer *infer) {
  uint8_t dtype = (uint8_t)infer->args[3].i;
  if (!td_dtype_is_float(dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "dtype must be floating, not %s", td_dtype_name(dtype));
  return shape_infer(infer, dtype);
}

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
  const draw *d = argument;
  float values[4 * BATCH];
  uint32_t bits[4 * BATCH];
  for (int64_t b = first; b < last; b += BATCH) {
    int64_t blocks = last_of(b + BATCH, last) - b, count = last_of((b + blocks) * 4, d->out.size) - b * 4;
    td_random_blocks(d->seed, d->counter + (uint64_t)b, 0, blocks, bits);
    normal_pairs(values, bits, 2 * blocks, d->a, d->b);
    memcpy((float *)d->out.data + b * 4, values, (size_t)count * sizeof *values);
  }
}

static void normal_twofold(void *argument, int64_t first, int64_t last) {
  const draw *d = argument;
  double *out = (double *)d->out.data;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, 0, bits);
    double radius = sqrt(-2 * log(td_random_unit(bits[0], bits[1]) + 0x1p-54));
    double angle = 2 * TD_PI * td_random_unit(bits[2], bits[3]);
    out[2 * b] = d->a + d->b * (radius * cos(angle));
    if (2 * b + 1 < d->out.size) out[2 * b + 1] = d->a + d->b * (radius * sin(angle));
  }
}

static int normal_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  draw d = {.out = *out, .a = call->args[1].f, .b = call->args[2].f};
  if (out->dtype == TD_FLOAT32) run(call, &d, out->size, 4, normal_single);
  else run(call, &d, out->size, 2, normal_twofold);
  return TD_OK;
}

static int normal_infer(td_infer *infer) {
  if (!(infer->args[2].f >= 0)) return td_infer_fail(infer, TD_ERROR_VALUE, "std is negative: %g", infer->args[2].f);
  return floating_infer(infer);
}

static const td_op random_normal = {
    .name = "random_normal",
    .params = {SHAPE_PARAM, FLOAT_PARAM("mean", 0), FLOAT_PARAM("std", 1), DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_RANDOM,
    .infer = normal_infer,
    .kernel = normal_kernel,
    .no_gradient = drawn,
    .doc = "Normally distributed numbers. The same seed gives the same numbers, whatever the size and the number of "
           "threads.",
    .example = "random_normal((2, 3)).shape  # (2, 3)",
    .source = "Philox 4x32-10 (Salmon et al., 2011); Box and Muller (1958)",
    .samples = TD_SAMPLES{{"", "shape=(2, 3)", 0, 1, NULL},
                          {"", "shape=(5,), mean=1.0, std=0.5, dtype=float64", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- uniform ----

static void uniform_single(void *argument, int64_t first, int64_t last) {
  const draw *d = argument;
  float *out = (float *)d->out.data, high = (float)(d->a + d->b), below_high = nextafterf(high, -INFINITY);
  uint32_t bits[4 * BATCH];
  for (int64_t b = first; b < last; b += BATCH) {
    int64_t blocks = last_of(b + BATCH, last) - b, count = last_of((b + blocks) * 4, d->out.size) - b * 4;
    td_random_blocks(d->seed, d->counter + (uint64_t)b, 0, blocks, bits);
    for (int64_t i = 0; i < count; i++) {
      float value = (float)(d->a + d->b * ((double)(bits[i] >> 8) * 0x1p-24));
      out[b * 4 + i] = value >= high && d->b > 0 ? below_high : value; // rounding may have reached it
    }
  }
}

static void uniform_twofold(void *argument, int64_t first, int64_t last) {
  const draw *d = argument;
  double *out = (double *)d->out.data;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, 0, bits);
    out[2 * b] = d->a + d->b * td_random_unit(bits[0], bits[1]);
    if (2 * b + 1 < d->out.size) out[2 * b + 1] = d->a + d->b * td_random_unit(bits[2], bits[3]);
  }
}

static int uniform_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  draw d = {.out = *out, .a = call->args[1].f, .b = call->args[2].f - call->args[1].f};
  if (out->dtype == TD_FLOAT32) run(call, &d, out->size, 4, uniform_single);
  else run(call, &d, out->size, 2, uniform_twofold);
  return TD_OK;
}

static const td_op random_uniform = {
    .name = "random_uniform",
    .params = {SHAPE_PARAM, FLOAT_PARAM("low", 0), FLOAT_PARAM("high", 1), DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_RANDOM,
    .infer = floating_infer,
    .kernel = uniform_kernel,
    .no_gradient = drawn,
    .doc = "Numbers spread evenly over [low, high). The same seed gives the same numbers, whatever the size and the "
           "number of "
           "threads.",
    .example = "random_uniform(4, 2., 3.).shape  # (4,)",
    .source = "Philox 4x32-10 (Salmon et al., 2011)",
    .samples = TD_SAMPLES{{"", "shape=(2, 3)", 0, 1, NULL},
                          {"", "shape=(5,), low=-1.0, high=1.0, dtype=float64", 0, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- integers ----

// A number below range from 64 random bits; range 0 means 2^64. No number is favoured by more than 2^-64 of them all.
static uint64_t below(uint64_t range, uint32_t high, uint32_t low) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return range ? (uint64_t)(((unsigned __int128)bits * range) >> 64) : bits;
}

static void integers(void *argument, int64_t first, int64_t last) {
  const draw *d = argument;
  int64_t *out = (int64_t *)d->out.data;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, 0, bits);
    for (int64_t i = 2 * b; i < last_of(2 * b + 2, d->out.size); i++)
      out[i] = (int64_t)((uint64_t)d->low + below(d->range, bits[2 * (i - 2 * b)], bits[2 * (i - 2 * b) + 1]));
  }
}

static int randint_infer(td_infer *infer) {
  const td_arg *low = &infer->args[0], *high = &infer->args[1], *shape = &infer->args[2];
  if (high->i <= low->i) {
    int code =
        td_infer_fail(infer, TD_ERROR_VALUE, "no integer is in [%lld, %lld)", (long long)low->i, (long long)high->i);
    td_error_hint(infer->context, "the order is (low, high, shape)");
    return code;
  }
  infer->out[0] = (td_meta){.dtype = TD_INT64, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) {
    if (shape->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "size of axis %d is negative: %lld", i, (long long)shape->ints[i]);
    infer->out[0].shape[i] = shape->ints[i];
  }
  return TD_OK;
}

static int randint_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  draw d = {.out = *out, .low = call->args[0].i, .range = (uint64_t)call->args[1].i - (uint64_t)call->args[0].i};
  run(call, &d, out->size, 2, integers);
  return TD_OK;
}

static const td_op random_randint = {
    .name = "random_randint",
    .params = {{.name = "low", .kind = TD_PARAM_INT, .required = true},
               {.name = "high", .kind = TD_PARAM_INT, .required = true},
               SHAPE_PARAM},
    .kind = TD_KIND_RANDOM,
    .infer = randint_infer,
    .kernel = randint_kernel,
    .no_gradient = drawn,
    .doc = "Integers spread evenly over low to high - 1, as int64.",
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
  return TD_OK;
}

static int permutation_kernel(const td_call *call) {
  td_context *context = call->context;
  int64_t *out = (int64_t *)call->out[0].data, n = call->out[0].size;
  uint32_t bits[4] = {0};
  for (int64_t i = 0; i < n; i++) out[i] = i;
  for (int64_t i = n - 1, drawn_so_far = 0; i > 0; i--, drawn_so_far++) {
    int half = (int)(drawn_so_far % 2) * 2;
    if (!half) td_random_block(context->seed, context->counter + (uint64_t)(drawn_so_far / 2), 0, bits);
    int64_t j = (int64_t)below((uint64_t)i + 1, bits[half], bits[half + 1]), kept = out[i];
    out[i] = out[j];
    out[j] = kept;
  }
  context->counter += (uint64_t)(n / 2);
  return TD_OK;
}

static const td_op random_permutation = {
    .name = "random_permutation",
    .params = {{.name = "n", .kind = TD_PARAM_INT, .required = true}},
    .kind = TD_KIND_RANDOM,
    .infer = permutation_infer,
    .kernel = permutation_kernel,
    .no_gradient = drawn,
    .doc = "The integers 0 to n - 1 in random order, every order equally likely.",
    .example = "random_permutation(4).sum().item()  # 6",
    .source = "Fisher and Yates (1938), in Durstenfeld's form (1964)",
    .samples = TD_SAMPLES{{"", "n=7", 0, 1, NULL}, {"", "n=0", 0, 1, NULL}, {"", "n=1", 0, 1, NULL}, TD_SAMPLES_END},
};

// ---- bernoulli ----

static void bernoulli_blocks(void *argument, int64_t first, int64_t last) {
  const draw *d = argument;
  const double *p = (const double *)d->in;
  for (int64_t b = first; b < last; b++) {
    uint32_t bits[4];
    td_random_block(d->seed, d->counter + (uint64_t)b, 0, bits);
    for (int64_t i = 2 * b; i < last_of(2 * b + 2, d->out.size); i++) {
      bool one = td_random_unit(bits[2 * (i - 2 * b)], bits[2 * (i - 2 * b) + 1]) < p[i];
      if (d->out.dtype == TD_FLOAT32) ((float *)d->out.data)[i] = one;
      else ((double *)d->out.data)[i] = one;
    }
  }
}

static int bernoulli_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  if (td_dtype_is_float(infer->in[0].dtype)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_DTYPE, "probabilities must be floating, not %s",
                       td_dtype_name(infer->in[0].dtype));
}

static int bernoulli_kernel(const td_call *call) {
  td_flat flat;
  draw d = {.out = call->out[0]};
  int code = td_flat_open(call, &call->in[0], TD_FLOAT64, &flat);
  if (code) return code;
  const double *p = (const double *)flat.data;
  for (int64_t i = 0; i < d.out.size && !code; i++)
    if (!(p[i] >= 0 && p[i] <= 1))
      code = td_error_set(call->context, TD_ERROR_VALUE, "bernoulli: element %lld is %g, which is no probability",
                          (long long)i, p[i]);
  d.in = flat.data;
  if (!code) run(call, &d, d.out.size, 2, bernoulli_blocks);
  td_flat_close(&flat);
  return code;
}

static const td_op bernoulli = {
    .name = "bernoulli",
    .params = {TD_TENSOR_PARAM("p")},
    .kind = TD_KIND_RANDOM,
    .infer = bernoulli_infer,
    .kernel = bernoulli_kernel,
    .no_gradient = drawn,
    .doc = "1 with the probability that each element of p gives, else 0, in p's dtype.",
    .example = "bernoulli(tensor([0., 1.])).tolist()  # [0.0, 1.0]",
    .samples = TD_SAMPLES{{"2,3", NULL, 0, 1, NULL}, {"-", NULL, 0, 1, NULL}, TD_SAMPLES_END},
};

// ---- dropout ----

static void dropout_blocks(void *argument, int64_t first, int64_t last) {
  const draw *d = argument;
  uint32_t bits[4 * BATCH];
  for (int64_t b = first; b < last; b += BATCH) {
    int64_t blocks = last_of(b + BATCH, last) - b, at = b * 4, count = last_of((b + blocks) * 4, d->out.size) - at;
    td_random_blocks(d->seed, d->counter + (uint64_t)b, 0, blocks, bits);
    for (int64_t i = 0; i < count; i++) d->mask[at + i] = (double)bits[i] * 0x1p-32 >= d->a;
    if (d->out.dtype == TD_FLOAT32)
      for (int64_t i = at; i < at + count; i++)
        ((float *)d->out.data)[i] = d->mask[i] ? ((const float *)d->in)[i] * (float)d->b : 0;
    else
      for (int64_t i = at; i < at + count; i++)
        ((double *)d->out.data)[i] = d->mask[i] ? ((const double *)d->in)[i] * d->b : 0;
  }
}

static double kept_scale(const td_arg *args) { // of what is kept
  if (!args[1].i) return 1;
  return args[0].f < 1 ? 1 / (1 - args[0].f) : 0;
}

static int dropout_infer(td_infer *infer) {
  double rate = infer->args[0].f;
  infer->out[0] = infer->out[1] = infer->in[0];
  infer->out[1].dtype = TD_BOOL;
  if (!(rate >= 0 && rate <= 1)) return td_infer_fail(infer, TD_ERROR_VALUE, "rate must be from 0 to 1, not %g", rate);
  if (td_dtype_is_float(infer->in[0].dtype)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_DTYPE, "needs a floating tensor, not %s", td_dtype_name(infer->in[0].dtype));
}

static int dropout_kernel(const td_call *call) {
  td_flat flat;
  draw d = {
      .out = call->out[0], .a = call->args[0].f, .b = kept_scale(call->args), .mask = (uint8_t *)call->out[1].data};
  int code = td_flat_open(call, &call->in[0], d.out.dtype, &flat);
  if (code) return code;
  d.in = flat.data;
  if (call->args[1].i) run(call, &d, d.out.size, 4, dropout_blocks);
  else {
    memcpy(d.out.data, flat.data, (size_t)(d.out.size * td_dtype_bytes(d.out.dtype)));
    memset(d.mask, 1, (size_t)d.out.size);
  }
  td_flat_close(&flat);
  return TD_OK;
}

static int dropout_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  if (!c) return TD_OK;
  td_tensor *scaled = td_multiply(s, c, td_scope_number(s, kept_scale(rule->args), c));
  rule->din[0] = td_where(s, rule->out[1], scaled, td_scope_number(s, 0, c));
  return TD_OK;
}

static const td_op dropout = {
    .name = "dropout",
    .params = {TD_X,
               FLOAT_PARAM("rate", 0.5),
               {.name = "training", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)}},
    .kind = TD_KIND_RANDOM,
    .outputs = 2,
    .shown = 1,
    .infer = dropout_infer,
    .kernel = dropout_kernel,
    .vjp = dropout_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "Each element becomes 0 with probability rate; those that are kept are divided by 1 - rate. x itself unless "
           "training.\n"
           "Gradient: the cotangent, dropped and divided likewise.",
    .example = "dropout(tensor([1., 2.]), 1.).tolist()  # [0.0, 0.0]",
    .source = "Srivastava et al., JMLR 2014",
    .samples = TD_SAMPLES{{"3,4", NULL, -2, 2, NULL},
                          {"3,4", "rate=0.25", -2, 2, NULL},
                          {"3", "rate=1.0", -2, 2, NULL},
                          {"3", "training=False", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_random[] = {
    &random_normal, &random_uniform, &random_randint, &random_permutation, &bernoulli, &dropout, NULL};
