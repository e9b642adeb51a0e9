// Distributions beyond the uniform and the normal one. An element that rejects numbers takes the next attempt's stream
// at its own counter, so that it depends on nothing else.
#ifdef __clang__
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif
#include <math.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"
#include "engine/ops/random_draw.h"

enum { COST = 128 /* of an element, in units of td_ranges_run */ };

// ---- one number from each element's own stream ----

typedef struct bits {
  uint32_t words[4];
} bits;

static bits attempt(const td_draw *d, int64_t element, uint32_t n) {
  bits b = {{0}};
  td_random_block(d->seed, d->counter + (uint64_t)element, d->stream + TD_STREAM_ATTEMPT(n), b.words);
  return b;
}

static double first_unit(const bits *b) { return td_random_unit(b->words[0], b->words[1]); } // [0, 1)
static double second_unit(const bits *b) { return td_random_unit(b->words[2], b->words[3]); } // [0, 1)
static double above_zero(double unit) { return unit + 0x1p-54; } // (0, 1)
static double normal_of(const bits *b) {
  return sqrt(-2 * log(above_zero(first_unit(b)))) * cos(2 * M_PI * second_unit(b));
}

typedef double drawn_number(const td_draw *d, int64_t element);

typedef struct work {
  td_draw draw; // first: a td_range is given it
  drawn_number *number;
} work;

static void fill(void *argument, int64_t first, int64_t last) {
  const work *w = argument;
  const td_draw *d = &w->draw;
  for (int64_t i = first; i < last; i++) {
    double value = w->number(d, i);
    if (d->out.dtype == TD_FLOAT32) ((float *)d->out.data)[i] = (float)value;
    else ((double *)d->out.data)[i] = value;
  }
}

static int draw_each(const td_call *call, work *w) {
  w->draw.out = call->out[0];
  td_draw_run(call, &w->draw, call->out[0].size, 1, COST, fill);
  return TD_OK;
}

// ---- gumbel, exponential ----

static double gumbel(const td_draw *d, int64_t i) {
  bits b = attempt(d, i, 0);
  return d->a - d->b * log(-log(above_zero(first_unit(&b))));
}

static double exponential(const td_draw *d, int64_t i) {
  bits b = attempt(d, i, 0);
  return -d->b * log1p(-first_unit(&b));
}

static int check_scale(td_infer *infer, int argument) {
  const td_param *param = &infer->op->params[td_op_tensor_params(infer->op) + argument];
  double scale = infer->args[argument].f;
  return scale >= 0 ? td_draw_infer(infer)
                    : td_infer_fail(infer, TD_ERROR_VALUE, "%s must not be negative, it is %g", param->name, scale);
}

static int gumbel_infer(td_infer *infer) { return check_scale(infer, 2); }
static int exponential_infer(td_infer *infer) { return check_scale(infer, 1); }

static int gumbel_kernel(const td_call *call) {
  work w = {.draw = {.a = call->args[1].f, .b = call->args[2].f}, .number = gumbel};
  return draw_each(call, &w);
}

static int exponential_kernel(const td_call *call) {
  work w = {.draw = {.b = call->args[1].f}, .number = exponential};
  return draw_each(call, &w);
}

static const td_sample shape_samples[] = {
    {"", "shape=(2, 3)", 0, 1, NULL},
    {"", "shape=(5,), dtype=float64", 0, 1, NULL},
    {"", "shape=(0, 2)", 0, 1, NULL},
    TD_SAMPLES_END,
};

static const td_op random_gumbel = {
    .name = "random_gumbel",
    .module = "random",
    .params = {TD_KEY_PARAM, TD_SHAPE_PARAM, TD_FLOAT_PARAM("loc", 0), TD_FLOAT_PARAM("scale", 1),
               TD_DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_RANDOM,
    .infer = gumbel_infer,
    .kernel = gumbel_kernel,
    .no_gradient = td_drawn,
    .doc = "Numbers with Gumbel's distribution, loc - scale log(-log(u)): argmax(logits + gumbel) draws a category.",
    .example = "random.gumbel((2, 3)).shape  # (2, 3)",
    .samples = shape_samples,
};

static const td_op random_exponential = {
    .name = "random_exponential",
    .module = "random",
    .params = {TD_KEY_PARAM, TD_SHAPE_PARAM, TD_FLOAT_PARAM("scale", 1), TD_DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_RANDOM,
    .infer = exponential_infer,
    .kernel = exponential_kernel,
    .no_gradient = td_drawn,
    .doc = "Exponentially distributed numbers of mean scale.",
    .example = "random.exponential((2, 3)).shape  # (2, 3)",
    .samples = shape_samples,
};

// ---- truncated normal: Robert, "Simulation of truncated normal variables", 1995 ----

static double evenly_between(const td_draw *d, int64_t i, double low, double high, double nearest) {
  for (uint32_t n = 0;; n++) {
    bits b = attempt(d, i, n);
    double x = low + (high - low) * first_unit(&b);
    if (second_unit(&b) <= exp((nearest * nearest - x * x) / 2)) return x;
  }
}

static double above(const td_draw *d, int64_t i, double low, double high) { // 0 < low
  double rate = (low + sqrt(low * low + 4)) / 2;
  for (uint32_t n = 0;; n++) {
    bits b = attempt(d, i, n);
    double x = low - log1p(-first_unit(&b)) / rate;
    if (x <= high && second_unit(&b) <= exp(-(x - rate) * (x - rate) / 2)) return x;
  }
}

static double standard_between(const td_draw *d, int64_t i, double low, double high) {
  if (high < 0) return -standard_between(d, i, -high, -low);
  if (low > 0) {
    bool narrow = high - low < 1 / low;
    return narrow ? evenly_between(d, i, low, high, low) : above(d, i, low, high);
  }
  if (high - low < sqrt(2 * M_PI)) return evenly_between(d, i, low, high, 0);
  for (uint32_t n = 0;; n++) {
    bits b = attempt(d, i, n);
    double x = normal_of(&b);
    if (x >= low && x <= high) return x;
  }
}

typedef struct bounded {
  work work; // first
  double low, high;
} bounded;

static double truncated(const td_draw *d, int64_t i) {
  const bounded *t = (const bounded *)d;
  return d->a + d->b * standard_between(d, i, t->low, t->high);
}

static int truncated_infer(td_infer *infer) {
  double low = infer->args[3].f, high = infer->args[4].f;
  if (!(low < high)) return td_infer_fail(infer, TD_ERROR_VALUE, "low must be below high, not %g and %g", low, high);
  if (low > 1e6 || high < -1e6)
    return td_infer_fail(infer, TD_ERROR_VALUE, "[%g, %g] is too far from the mean", low, high);
  return check_scale(infer, 2);
}

static int truncated_kernel(const td_call *call) {
  bounded t = {.work = {.draw = {.a = call->args[1].f, .b = call->args[2].f}, .number = truncated},
               .low = call->args[3].f,
               .high = call->args[4].f};
  return draw_each(call, &t.work);
}

static const td_op random_truncated_normal = {
    .name = "random_truncated_normal",
    .module = "random",
    .params = {TD_KEY_PARAM, TD_SHAPE_PARAM, TD_MEAN_PARAM, TD_STD_PARAM,
               TD_FLOAT_PARAM("low", -2), TD_FLOAT_PARAM("high", 2), TD_DTYPE_PARAM(TD_FLOAT32)},
    .kind = TD_KIND_RANDOM,
    .infer = truncated_infer,
    .kernel = truncated_kernel,
    .no_gradient = td_drawn,
    .doc = "Normally distributed numbers that lie from low to high deviations std from mean; by default within two.",
    .example = "random.truncated_normal((100,)).abs().max().item() <= 2.  # True",
    .source = "Robert, Statistics and Computing 1995",
    .samples = shape_samples,
};

// ---- gamma: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000 ----

enum { BOOST = UINT16_MAX }; // the attempt whose number lifts shapes below 1

static double gamma_above_1(const td_draw *d, int64_t i, double shape) {
  double third = shape - 1. / 3, scale = 1 / sqrt(9 * third);
  for (uint32_t n = 0;; n++) {
    bits b = attempt(d, i, n), c = attempt(d, i, n | UINT32_C(1) << 31);
    double x = normal_of(&b), v = 1 + scale * x, u = above_zero(first_unit(&c));
    v = v * v * v;
    if (v > 0 && log(u) < x * x / 2 + third * (1 - v + log(v))) return third * v;
  }
}

static double standard_gamma(const td_draw *d, int64_t i) {
  double shape = ((const double *)d->in)[i];
  if (shape >= 1 || shape == 0) return shape > 0 ? d->b * gamma_above_1(d, i, shape) : 0;
  bits b = attempt(d, i, BOOST);
  return d->b * gamma_above_1(d, i, shape + 1) * pow(above_zero(first_unit(&b)), 1 / shape);
}

// How a drawn x moves with the shape a while its share F(x; a) of the distribution stays: -(dF/da) / (dF/dx) (Figurnov,
// Mohamed and Mnih, "Implicit reparameterization gradients", 2018). Up to the mean by the series of the lower
// incomplete gamma function, whose k-th term is x^(k+1) / (a (a + 1) ... (a + k)) in units of the density.
static double slope_by_series(double a, double x) {
  double term = x / a, sum = 0, digamma = td_digamma(a + 1), log_x = log(x);
  for (int64_t k = 0; k < 10000; k++) {
    double more = term * (digamma - log_x);
    sum += more;
    if (k > x - a && fabs(more) < 1e-17 * fabs(sum)) break;
    digamma += 1 / (a + (double)k + 1);
    term *= x / (a + (double)k + 1);
  }
  return sum;
}

// Else by the integral over one side of x, of (log t - digamma(a)) times the density in units of that at x. With
// t = x + side u, u = width exp(v - exp(-v)), it falls off doubly exponentially in v at the left, and as the density
// does.
static double slope_by_integral(double a, double x, double side) {
  enum { POINTS = 128 };
  double digamma = td_digamma(a), width = sqrt(x), low = -4, high = 5, step = (high - low) / POINTS, sum = 0;
  if (side > 0 && x / (x - a + 1) < width) width = x / (x - a + 1);
  for (int i = 0; i <= POINTS; i++) {
    double v = low + i * step, u = width * exp(v - exp(-v)), share = side * u / x;
    if (share <= -1) continue;
    double density = exp((a - 1) * log1p(share) - side * u);
    sum += (log(x) + log1p(share) - digamma) * density * u * (1 + exp(-v));
  }
  return side * sum * step;
}

static double gamma_slope(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (x == 0) return 0;
  if (x <= a + 1 && a < 100) return slope_by_series(a, x);
  return slope_by_integral(a, x, x < a ? -1 : 1);
}

TD_MAP2(TD_EACH_FLOAT, gamma_slope, FLOATING, T, gamma_slope(x, y))
TD_KERNEL(gamma_slope)

static const td_op gamma_slope_op = {
    .name = "gamma_slope",
    .params = {TD_TENSOR_PARAM("concentration"), TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_HIDDEN,
    .infer = td_map_floating,
    .kernel = gamma_slope_kernel,
    .expression = gamma_slope_text,
    .no_gradient = "the derivative of a drawn number has none itself",
    .doc = "How a number x drawn from the gamma distribution moves with its concentration.",
    .source = "Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients, 2018",
    .samples = TD_SAMPLES{{"3,4; 3,4", NULL, 0.2, 4, NULL}, {"4; 4", NULL, 90, 130, NULL},
                          {"3; 0,3", NULL, 0.2, 4, NULL}, TD_SAMPLES_END},
    .tolerance = 1e-10,
};

static int gamma_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  double scale = rule->args[0].f;
  td_tensor *y = rule->out[0], *factor = td_scope_number(s, scale, y);
  td_tensor *x = scale > 0 ? td_divide(s, y, factor) : y;
  td_tensor *slope = td_scope_apply(s, &gamma_slope_op, NULL, 2, rule->in[0], x);
  rule->din[0] = td_chain(s, rule->cotangent[0], td_multiply(s, slope, factor));
  return TD_OK;
}

// ---- Poisson: by the sum of probabilities, or Hörmann's transformed rejection (1993) for rates from 10 on ----

static double poisson_small(const td_draw *d, int64_t i, double rate) {
  bits b = attempt(d, i, 0);
  double u = first_unit(&b), p = exp(-rate), sum = p, k = 0;
  while (u >= sum && p > 0) {
    p *= rate / ++k;
    sum += p;
  }
  return k;
}

static double log_factorial(double k) {
  int sign;
  return lgamma_r(k + 1, &sign);
}

static double poisson_large(const td_draw *d, int64_t i, double rate) {
  double root = sqrt(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  double inverse = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  for (uint32_t n = 0;; n++) {
    bits w = attempt(d, i, n);
    double u = first_unit(&w) - 0.5, v = above_zero(second_unit(&w)), edge = 0.5 - fabs(u);
    double k = floor((2 * a / edge + b) * u + rate + 0.43);
    if (edge >= 0.07 && v <= accepted) return k;
    if (k < 0 || (edge < 0.013 && v > edge)) continue;
    if (log(v * inverse / (a / (edge * edge) + b)) <= k * log(rate) - rate - log_factorial(k)) return k;
  }
}

static double poisson(const td_draw *d, int64_t i) {
  double rate = ((const double *)d->in)[i];
  return rate < 10 ? poisson_small(d, i, rate) : poisson_large(d, i, rate);
}

// ---- rows with a tensor of parameters ----

static int like_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  if (td_dtype_is_float(infer->in[0].dtype)) return td_draw_check_key(infer);
  return td_infer_fail(infer, TD_ERROR_DTYPE, "%s must be floating, not %s", infer->op->params[0].name,
                       td_dtype_name(infer->in[0].dtype));
}

static int64_t like_workspace(const td_call *call) {
  td_scratch scratch = {0};
  td_scratch_view(&scratch, NULL, &call->in[0], TD_FLOAT64);
  return scratch.used;
}

static int draw_like(const td_call *call, work *w, double least) {
  td_scratch scratch = {.at = call->workspace};
  const double *in = td_scratch_view(&scratch, call->context->pool, &call->in[0], TD_FLOAT64);
  for (int64_t i = 0; i < call->in[0].size; i++)
    if (!(in[i] >= least && in[i] <= 1e15))
      return td_error_set(call->context, TD_ERROR_VALUE, "%s: element %lld of %s is %g", call->op->name, (long long)i,
                          call->op->params[0].name, in[i]);
  w->draw.in = (const char *)in;
  return draw_each(call, w);
}

static int gamma_infer(td_infer *infer) {
  double scale = infer->args[0].f;
  return scale >= 0 ? like_infer(infer)
                    : td_infer_fail(infer, TD_ERROR_VALUE, "scale must not be negative, it is %g", scale);
}

static int gamma_kernel(const td_call *call) {
  work w = {.draw = {.b = call->args[0].f}, .number = standard_gamma};
  return draw_like(call, &w, 0);
}

static int poisson_kernel(const td_call *call) {
  work w = {.number = poisson};
  return draw_like(call, &w, 0);
}

static const td_sample like_samples[] = {
    {"2,3", NULL, 0.5, 20, NULL},
    {"-", NULL, 0.5, 2, NULL},
    {"0,3", NULL, 0.5, 2, NULL},
    TD_SAMPLES_END,
};

static const td_op random_gamma = {
    .name = "random_gamma",
    .module = "random",
    .params = {TD_TENSOR_PARAM("concentration"), TD_KEY_PARAM, TD_FLOAT_PARAM("scale", 1)},
    .kind = TD_KIND_RANDOM,
    .flags = TD_IMPLICIT,
    .infer = gamma_infer,
    .workspace = like_workspace,
    .kernel = gamma_kernel,
    .vjp = gamma_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .doc =
        "Numbers with a gamma distribution, one for each element of concentration, times scale. A negative one is an "
        "error.\n"
        "Gradient: the cotangent times how the number moves with concentration while its share of the distribution "
        "stays, as PyTorch's rsample has it; that has no derivative of its own.",
    .example = "random.gamma(tensor([1., 2.])).shape  # (2,)",
    .source = "Marsaglia and Tsang, ACM Transactions on Mathematical Software 2000",
    .samples = like_samples,
};

static const td_op random_poisson = {
    .name = "random_poisson",
    .module = "random",
    .params = {TD_TENSOR_PARAM("rate"), TD_KEY_PARAM},
    .kind = TD_KIND_RANDOM,
    .infer = like_infer,
    .workspace = like_workspace,
    .kernel = poisson_kernel,
    .no_gradient = td_drawn,
    .doc =
        "Counts with a Poisson distribution, one for each element of rate, in its dtype. A negative rate is an error.",
    .example = "random.poisson(tensor([0., 0.])).tolist()  # [0.0, 0.0]",
    .source = "Hörmann, Insurance: Mathematics and Economics 1993",
    .samples = like_samples,
};

// ---- categorical ----

typedef struct categories {
  td_draw draw; // first
  int64_t count, samples; // of a line
  const double *sums; // running sums of each line's probabilities, not normalised
} categories;

static void choose(void *argument, int64_t first, int64_t last) {
  const categories *c = argument;
  const td_draw *d = &c->draw;
  int64_t *out = (int64_t *)d->out.data;
  for (int64_t i = first; i < last; i++) {
    const double *sums = c->sums + i / c->samples * c->count;
    bits b = attempt(d, i, 0);
    double u = first_unit(&b) * sums[c->count - 1];
    int64_t low = 0, high = c->count - 1; // the first sum above u
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (sums[middle] > u) high = middle;
      else low = middle + 1;
    }
    out[i] = low;
  }
}

static int categorical_infer(td_infer *infer) {
  const td_meta *logits = &infer->in[0];
  const td_arg *samples = &infer->args[0];
  if (!td_dtype_is_float(logits->dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "logits must be floating, not %s", td_dtype_name(logits->dtype));
  if (!logits->rank || !logits->shape[logits->rank - 1])
    return td_infer_fail(infer, TD_ERROR_SHAPE, "logits need a last axis of categories");
  if (samples->given && samples->i < 0)
    return td_infer_fail(infer, TD_ERROR_VALUE, "num_samples is negative: %lld", (long long)samples->i);
  td_meta *out = &infer->out[0];
  *out = *logits;
  out->dtype = TD_INT64;
  if (samples->given) out->shape[out->rank - 1] = samples->i;
  else out->rank--;
  return td_draw_check_key(infer);
}

static double *place_sums(const td_call *call, td_scratch *scratch, const double **logits) {
  *logits = td_scratch_view(scratch, call->context->pool, &call->in[0], TD_FLOAT64);
  return td_scratch_take(scratch, call->in[0].size, sizeof(double));
}

static int64_t categorical_workspace(const td_call *call) {
  td_scratch scratch = {0};
  const double *logits;
  place_sums(call, &scratch, &logits);
  return scratch.used;
}

static bool add_up(const double *logits, double *sums, int64_t count) { // false: there is nothing to choose from
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; i++) largest = logits[i] > largest || isnan(logits[i]) ? logits[i] : largest;
  for (int64_t i = 0; i < count && isfinite(largest); i++) sums[i] = sum += exp(logits[i] - largest);
  return isfinite(largest) && isfinite(sum);
}

static int categorical_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  const td_view *in = &call->in[0];
  const double *logits;
  double *sums = place_sums(call, &scratch, &logits);
  categories c = {.draw = {.out = call->out[0]}, .count = in->shape[in->rank - 1], .samples = 1, .sums = sums};
  if (call->args[0].given) c.samples = call->args[0].i;
  for (int64_t line = 0; line < in->size / c.count; line++)
    if (!add_up(logits + line * c.count, sums + line * c.count, c.count))
      return td_error_set(
          call->context, TD_ERROR_VALUE,
          "%s: line %lld of the logits gives no probabilities: they must be numbers below infinity, not "
          "all -inf",
          call->op->name, (long long)line);
  td_draw_run(call, &c.draw, call->out[0].size, 1, COST, choose);
  return TD_OK;
}

static const td_op random_categorical = {
    .name = "random_categorical",
    .module = "random",
    .params = {TD_TENSOR_PARAM("logits"), TD_KEY_PARAM, {.name = "num_samples", .kind = TD_PARAM_INT}},
    .kind = TD_KIND_RANDOM,
    .infer = categorical_infer,
    .workspace = categorical_workspace,
    .kernel = categorical_kernel,
    .no_gradient = "integer result",
    .doc =
        "Indices drawn along the last axis with the probabilities softmax(logits): one for each line, or "
        "num_samples of "
        "them along a last axis. -inf is never drawn; a line of nothing else, or with inf or NaN in it, is an error.",
    .example = "random.categorical(tensor([[0., -inf], [-inf, 0.]])).tolist()  # [0, 1]",
    .samples = TD_SAMPLES{{"2,3", NULL, -1, 1, NULL},
                          {"2,3", "num_samples=4", -1, 1, NULL},
                          {"3", NULL, -1, 1, NULL},
                          {"0,3", "num_samples=4", -1, 1, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_distribution[] = {&random_gumbel,
                                               &random_exponential,
                                               &random_truncated_normal,
                                               &random_gamma,
                                               &gamma_slope_op,
                                               &random_poisson,
                                               &random_categorical,
                                               NULL};
