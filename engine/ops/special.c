// Special functions: the error function, gamma and its derivatives, Bessel's I, and those that only avoid a 0 / 0. They
// are within 1e-14 in float64, but near the zeros of digamma below 0. Integers and bool give float32.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample any_samples[] = {
  { .shapes = "3,4", .low = -2, .high = 2 },
  { .shapes = "-", .low = -1, .high = 1 },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample inner_samples[] = {
  { .shapes = "3,4", .low = -0.9, .high = 0.9 },
  { .shapes = "-", .low = -0.4, .high = 0.4 },
  { .shapes = "0,3", .low = -0.8, .high = 0.8 },
  TD_SAMPLES_END,
};
static const td_sample positive_samples[] = {
  { .shapes = "3,4", .low = 0.3, .high = 3 },
  { .shapes = "-", .low = 4, .high = 30 },
  { .shapes = "4", .low = -1.8, .high = -1.2 },
  { .shapes = "0,3", .low = 0.3, .high = 3 },
  TD_SAMPLES_END,
};

static td_tensor *times(td_scope *s, td_tensor *x, double factor) {
  return td_multiply(s, x, td_scope_number(s, factor, x));
}

#define ROW(title, aliases, read, summary, shown, fed)                                                                 \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .alias = aliases,                                                                                                  \
    .params = { TD_X },                                                                                                \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .method = true,                                                                                                    \
    .infer = td_map_floating,                                                                                          \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = title##_vjp,                                                                                                \
    .saves = read,                                                                                                     \
    .doc = summary,                                                                                                    \
    .example = shown,                                                                                                  \
    .samples = fed,                                                                                                    \
  };

// ---- the error function ----

#define TWO_OVER_ROOT_PI 1.12837916709551257390

static td_tensor *bell(td_scope *s, td_tensor *x, double sign) { // the slope of erf, or of erfc
  return times(s, td_exp(s, td_negative(s, td_square(s, x))), sign * TWO_OVER_ROOT_PI);
}

TD_MAP1(TD_EACH_FLOAT, erf, FLOATING, T, ERF(x))
TD_KERNEL(erf)

static int erf_vjp(td_rule *rule) {
  rule->din[0] = td_chain(&rule->scope, rule->cotangent[0], bell(&rule->scope, rule->in[0], 1));
  return TD_OK;
}
ROW(erf, NULL, TD_SAVES_IN0,
    "The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.\n"
    "Gradient: cotangent * 2 / sqrt(pi) * exp(-x**2).",
    "erf(tensor([0., inf])).tolist()  # [0.0, 1.0]", any_samples)

TD_MAP1_NEAR(erfc, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_ERFC_NEAR), td_single_erfc(x), ERFC(x))
TD_KERNEL(erfc)

static int erfc_vjp(td_rule *rule) {
  rule->din[0] = td_chain(&rule->scope, rule->cotangent[0], bell(&rule->scope, rule->in[0], -1));
  return TD_OK;
}
ROW(erfc, NULL, TD_SAVES_IN0,
    "1 - erf(x), which keeps its digits where erf is near 1.\n"
    "Gradient: -cotangent * 2 / sqrt(pi) * exp(-x**2).",
    "erfc(tensor([0., inf])).tolist()  # [1.0, 0.0]", any_samples)

// Wichura's quotients for the normal distribution's quantiles, over its center and its tails.
static double quantile_center(double q) { // q = p - 1/2, |q| <= 0.425
  double r = 0.180625 - q * q;
  double above = 3.3871328727963666080e0 + r * (1.3314166789178437745e+2 + r * (1.9715909503065514427e+3 + r * (
                 1.3731693765509461125e+4 + r * (4.5921953931549871457e+4 + r * (6.7265770927008700853e+4 + r * (
                 3.3430575583588128105e+4 + r * 2.5090809287301226727e+3))))));
  double under = 1 + r * (4.2313330701600911252e+1 + r * (6.8718700749205790830e+2 + r * (5.3941960214247511077e+3 +
                 r * (2.1213794301586595867e+4 + r * (3.9307895800092710610e+4 + r * (2.8729085735721942674e+4 + r *
                 5.2264952788528545610e+3))))));
  return q * above / under;
}
static double quantile_tail(double r) { // r = sqrt(-log p)
  if (r <= 5) {
    r -= 1.6;
    double above = 1.42343711074968357734e0 + r * (4.63033784615654529590e0 + r * (5.76949722146069140550e0 + r * (
                   3.64784832476320460504e0 + r * (1.27045825245236838258e0 + r * (2.41780725177450611770e-1 + r * (
                   2.27238449892691845833e-2 + r * 7.74545014278341407640e-4))))));
    return above / (1 + r * (2.05319162663775882187e0 + r * (1.67638483018380384940e0 + r * (6.89767334985100004550e-1 +
           r * (1.48103976427480074590e-1 + r * (1.51986665636164571966e-2 + r * (5.47593808499534494600e-4 + r *
           1.05075007164441684324e-9)))))));
  }
  r -= 5;
  double above = 6.65790464350110377720e0 + r * (5.46378491116411436990e0 + r * (1.78482653991729133580e0 + r * (
                 2.96560571828504891230e-1 + r * (2.65321895265761230930e-2 + r * (1.24266094738807843860e-3 + r * (
                 2.71155556874348757815e-5 + r * 2.01033439929228813265e-7))))));
  return above / (1 + r * (5.99832206555887937690e-1 + r * (1.36929880922735805310e-1 + r * (1.48753612908506148525e-2 +
         r * (7.86869131145613259100e-4 + r * (1.84631831751005468180e-5 + r * (1.42151175831644588870e-7 + r *
         2.04426310338993978564e-15)))))));
}
static double erfinv(double x) {
  double a = fabs(x);
  if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
  if (a <= 0.85) return M_SQRT1_2 * quantile_center(0.5 * x);
  return copysign(M_SQRT1_2 * quantile_tail(sqrt(-log(0.5 * (1 - a)))), x);
}

static float erfinv_single(float x) { return fabsf(x) < 1 ? td_single_erfinv(x) : (float)erfinv(x); }
#define ERFINV(x) TD_FLOAT_CHOICE(x, erfinv_single, erfinv)(x)
TD_MAP1_NEAR(erfinv, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(1), td_single_erfinv(x), ERFINV(x))
TD_KERNEL(erfinv)

static int erfinv_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], times(s, td_exp(s, td_square(s, rule->out[0])), 1 / TWO_OVER_ROOT_PI));
  return TD_OK;
}
ROW(erfinv, NULL, TD_SAVES_OUTPUT,
    "The number whose erf is x; infinities at -1 and 1, NaN beyond.\n"
    "Gradient: cotangent * sqrt(pi) / 2 * exp(erfinv(x)**2).",
    "erfinv(tensor([0., 1.])).tolist()  # [0.0, inf]", inner_samples)

// ---- gamma ----

// Hurwitz's zeta, the sum of (q + k)**-s, for s > 1 and q > 0: twelve terms, and the rest by Euler and Maclaurin.
static double zeta_above(double s, double q) {
  static const double bernoulli[] = {1. / 12,        -1. / 720,     1. / 30240, -1. / 1209600, 1. / 47900160,
                                     -691. / 1307674368000, 1. / 74724249600};
  double sum = 0, a = q + 12;
  for (int k = 0; k < 12; k++) sum += pow(q + k, -s);
  double power = pow(a, -s), rising = s / a;
  sum += pow(a, 1 - s) / (s - 1) + power / 2; // not by power, which may vanish
  for (int j = 0; j < 7; j++) {
    sum += bernoulli[j] * rising * power;
    rising *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
  }
  return sum;
}

// digamma of 1 <= x <= 2, by its zero there
static double digamma_near(double x) {
  double u = 2 * x - 3;
  double series = 0.95105587603183287971 + u * (-0.21181371064072864212 + u * (0.06013562106019619317 + u *
                  (-0.018550615381857259425 + u * (0.0059367952783463637889 + u * (-0.0019350666622102209061 + u *
                  (0.00063688802944279223932 + u * (-0.00021074843772854427159 + u * (0.000069950197514139743725 + u
                  * (-0.000023258098660110816962 + u * (7.7411843121546468529e-6 + u * (-2.5785659502395535023e-6 +
                  u * (8.5906993071167322964e-7 + u * (-2.8534578211707987539e-7 + u * (9.5097345808189466767e-8 + u
                  * (-3.2888378806256789005e-8 + u * (1.0962078810190396009e-8 + u * (-2.7066308634469588291e-9 + u
                  * (9.0218245389327295761e-10 + u * (-7.2172315545060309676e-10 + u *
                  (2.4057297773026323908e-10))))))))))))))))))));
  return ((x - 0x1.762d86356be3fp+0) - 9.5499954299656977152e-17) * series;
}
static double digamma_positive(double x) {
  double sum = 0;
  if (x < 1) return digamma_near(x + 1) - 1 / x;
  if (x < 10) {
    for (; x > 2; sum += 1 / x) x -= 1;
    return digamma_near(x) + sum;
  }
  double z = 1 / (x * x);
  double series = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 -
                  z * (1. / 12 - z * (3617. / 8160))))))));
  return log(x) - 0.5 / x - series;
}
double td_digamma(double x) {
  if (x > 0) return x == INFINITY ? x : digamma_positive(x);
  if (x == 0) return copysign(INFINITY, -x);
  double r = x - rint(x); // pi cot(pi x)
  if (!(x > -INFINITY) || r == 0) return NAN;
  double cotangent = fabs(r) > 0.25 ? copysign(tan(TD_PI * (0.5 - fabs(r))), r) : 1 / tan(TD_PI * r);
  return digamma_positive(1 - x) - TD_PI * cotangent;
}
// The n-th derivative of digamma. Below 0 the sum over 1 / (x + k)^s has terms on both sides of the pole.
static double polygamma(double n, double x) {
  if (n == 0) return td_digamma(x);
  if (!(n > 0) || n != rint(n)) return NAN;
  double s = n + 1, sign = fmod(n, 2) == 0 ? -1 : 1, factor = tgamma(s);
  if (x > 0) return x == INFINITY ? sign * 0. : sign * factor * zeta_above(s, x);
  if (!(x > -INFINITY)) return NAN;
  double rest = ceil(x) - x; // 1 - (x - floor(x)) would lose the digits of a small one
  if (rest == 0) return sign > 0 ? INFINITY : NAN;
  double before = zeta_above(s, rest) - zeta_above(s, 1 - x);
  return sign * factor * (zeta_above(s, x - floor(x)) + (sign > 0 ? before : -before));
}

// Below 0 there are terms on both sides of the pole, whose powers are real for whole s only.
static double zeta_of(double s, double q) {
  if (isnan(s) || isnan(q) || s < 1) return NAN;
  if (s == 1) return INFINITY;
  if (q > 0) return q == INFINITY || s == INFINITY ? pow(q, -s) : zeta_above(s, q);
  double rest = ceil(q) - q;
  if (rest == 0) return INFINITY;
  if (s != rint(s) || !(q > -INFINITY)) return NAN;
  double before = zeta_above(s, rest) - zeta_above(s, 1 - q);
  return zeta_above(s, q - floor(q)) + (fmod(s, 2) == 0 ? before : -before);
}

static double lgamma_of(double x) { // without lgamma's global sign
  int sign;
  return lgamma_r(x, &sign);
}

static const td_op digamma_op, polygamma_op;

static float lgamma_single(float x) {
  return TD_SINGLE_NORMAL(x) < TD_SINGLE_NORMALS ? td_math_lgamma_near(x) : (float)lgamma_of(x);
}
#define LGAMMA(x) TD_FLOAT_CHOICE(x, lgamma_single, lgamma_of)(x)
TD_MAP1_NEAR(lgamma, TD_SINGLE_NORMAL(x), TD_SINGLE_NORMALS, td_math_lgamma_near(x), LGAMMA(x))
TD_KERNEL(lgamma)
TD_MAP1(TD_EACH_FLOAT, digamma, FLOATING, T, td_digamma(x))
TD_KERNEL(digamma)
TD_MAP2(TD_EACH_FLOAT, polygamma, FLOATING, T, polygamma(x, y))
TD_KERNEL(polygamma)

static int lgamma_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_scope_apply(s, &digamma_op, NULL, 1, rule->in[0]));
  return TD_OK;
}
ROW(lgamma, TD_ALIAS("gammaln"), TD_SAVES_IN0,
    "The logarithm of the absolute value of the gamma function.\n"
    "Gradient: cotangent * digamma(x). Infinite at 0, -1, -2, ...",
    "lgamma(tensor([1., 3.])).tolist()  # [0.0, 0.6931471824645996]", positive_samples)

static int digamma_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *slope = td_scope_apply(s, &polygamma_op, NULL, 2, td_scope_number(s, 1, x), x);
  rule->din[0] = td_chain(s, rule->cotangent[0], slope);
  return TD_OK;
}
ROW(digamma, TD_ALIAS("psi"), TD_SAVES_IN0,
    "The derivative of lgamma.\n"
    "Gradient: cotangent * polygamma(1, x). NaN at -1, -2, ..., -inf at 0 and inf at -0.0.",
    "digamma(tensor([1.])).tolist()  # [-0.5772156715393066]", positive_samples)

static int polygamma_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *n = rule->in[0];
  if (rule->needs[0]) rule->din[0] = td_scope_filled(s, 0, &rule->in_meta[0]);
  if (!rule->needs[1]) return TD_OK;
  td_tensor *next = td_scope_apply(s, &polygamma_op, NULL, 2, td_add(s, n, td_scope_number(s, 1, n)), rule->in[1]);
  rule->din[1] = td_chain(s, rule->cotangent[0], next);
  return TD_OK;
}
static const td_op polygamma_op = {
  .name = "polygamma",
  .params = { TD_TENSOR_PARAM("n"), TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = polygamma_kernel,
  .expression = polygamma_text,
  .vjp = polygamma_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The n-th derivative of digamma at x; NaN where n is not one of 0, 1, 2, ...\n"
         "Gradient: cotangent * polygamma(n + 1, x) for x; none for n, which counts.",
  .example = "polygamma(1, tensor([1.])).tolist()  # [1.644934058189392]",
  .samples = TD_SAMPLES{
    { .shapes = "-; 3,4", .low = 1, .high = 3, .dtypes = "int64; float64" },
    { .shapes = "4; 4", .low = 4, .high = 12, .dtypes = "int32; float64" },
    { .shapes = "0,3; 3", .low = 1, .high = 3, .dtypes = "int64; float64" },
    TD_SAMPLES_END,
  },
};

static const td_op zeta_op;

TD_MAP2(TD_EACH_FLOAT, zeta, FLOATING, T, zeta_of(x, y))
TD_KERNEL(zeta)

static int zeta_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0];
  if (rule->needs[0])
    return td_error_set(s->context, TD_ERROR_GRADIENT, "zeta: there is no derivative in x, only in q");
  if (!rule->needs[1] || !x) return TD_OK;
  td_tensor *next = td_scope_apply(s, &zeta_op, NULL, 2, td_add(s, x, td_scope_number(s, 1, x)), rule->in[1]);
  rule->din[1] = td_chain(s, rule->cotangent[0], td_negative(s, td_multiply(s, x, next)));
  return TD_OK;
}
static const td_op zeta_op = {
  .name = "zeta",
  .params = { TD_X, TD_TENSOR_PARAM("q") },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = zeta_kernel,
  .expression = zeta_text,
  .vjp = zeta_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "Hurwitz's zeta function, the sum of 1 / (q + k)**x over k = 0, 1, 2, ...; Riemann's with q = 1.\n"
         "Gradient: -cotangent * x * zeta(x + 1, q) for q; asking for that of x is an error. NaN for x < 1, inf at x = "
         "1 and at q = 0, -1, ...; NaN for other q < 0 unless x is whole.",
  .example = "zeta(tensor([2.]), 1.).tolist()  # [1.644934058189392]",
  .samples = TD_SAMPLES{
    { .shapes = "3; 2,3", .low = 2, .high = 6, .dtypes = "int64; float64" },
    { .shapes = "-; 4", .low = 3, .high = 12, .dtypes = "int32; float64" },
    { .shapes = "0,3; 3", .low = 2, .high = 3, .dtypes = "int64; float64" },
    TD_SAMPLES_END,
  },
};

// ---- Bessel's I ----

// For |x| <= 20, where all terms have one sign.
static double bessel_series(double n, double x) {
  double term = 1, sum, quarter = x * x / 4;
  for (int k = 1; k <= n; k++) term *= x / 2 / k;
  sum = term;
  for (double k = 1; k < 100 && fabs(term) > fabs(sum) * 1e-17; k++) {
    term *= quarter / (k * (k + n));
    sum += term;
  }
  return sum;
}
static double bessel_i(double n, double x) {
  double a = fabs(x), term = 1, sum = 1, root = exp(a / 2);
  if (!(a > 20)) return bessel_series(n, x);
  if (a == INFINITY) return fmod(n, 2) == 0 ? a : x;
  for (double k = 1; k < 40 && fabs(term) > 1e-17; k++) {
    double next = -term * (4 * n * n - (2 * k - 1) * (2 * k - 1)) / (8 * a * k);
    if (fabs(next) > fabs(term)) break; // the series is asymptotic
    sum += term = next;
  }
  double value = root * (root * (sum / sqrt(2 * TD_PI * a)));
  return fmod(n, 2) == 0 ? value : copysign(value, x);
}

static const td_op bessel_i_op;

TD_MAP1(TD_EACH_FLOAT, bessel_i, FLOATING, T, bessel_i(p, x))

static td_tensor *bessel_of(td_scope *s, int64_t n, td_tensor *x) {
  td_arg args[] = { TD_INT_DEFAULT(n) };
  return td_scope_apply(s, &bessel_i_op, args, 1, x);
}
static int bessel_vjp(td_rule *rule, int64_t n) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *slope = bessel_of(s, n + 1, x);
  if (n > 0) slope = times(s, td_add(s, slope, bessel_of(s, n - 1, x)), 0.5);
  rule->din[0] = td_chain(s, rule->cotangent[0], slope);
  return TD_OK;
}
static int bessel_i_vjp(td_rule *rule) { return bessel_vjp(rule, rule->args[0].i); }
static int bessel_i_kernel(const td_call *call) { return td_map_run(call, &bessel_i_map, (double)call->args[0].i); }

static const td_op bessel_i_op = {
  .name = "bessel_i",
  .params = { TD_X, { .name = "n", .kind = TD_PARAM_INT, .required = true } },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = bessel_i_kernel,
  .expression = bessel_i_text,
  .vjp = bessel_i_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The modified Bessel function of the first kind, of small order n >= 0.\n"
         "Gradient: cotangent times half the sum of those of orders n - 1 and n + 1.",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .args = "n=2", .low = -3, .high = 3 },
    { .shapes = "0,3", .args = "n=1", .low = -3, .high = 3 },
    TD_SAMPLES_END,
  },
};

static const td_sample bessel_samples[] = {
  { .shapes = "3,4", .low = -3, .high = 3 },
  { .shapes = "4", .low = 15, .high = 25 },
  { .shapes = "-", .low = -1, .high = 1 },
  { .shapes = "0,3", .low = -3, .high = 3 },
  TD_SAMPLES_END,
};

static const char i0_text[] = "bessel_i(0, x)", i1_text[] = "bessel_i(1, x)";
static int i0_kernel(const td_call *call) { return td_map_run(call, &bessel_i_map, 0); }
static int i0_vjp(td_rule *rule) { return bessel_vjp(rule, 0); }
ROW(i0, TD_ALIAS("bessel_i0"), TD_SAVES_IN0,
    "The modified Bessel function of the first kind and order 0.\nGradient: cotangent * i1(x).",
    "i0(tensor([0.])).tolist()  # [1.0]", bessel_samples)

static int i1_kernel(const td_call *call) { return td_map_run(call, &bessel_i_map, 1); }
static int i1_vjp(td_rule *rule) { return bessel_vjp(rule, 1); }
ROW(i1, TD_ALIAS("bessel_i1"), TD_SAVES_IN0,
    "The modified Bessel function of the first kind and order 1.\nGradient: cotangent * (i0(x) - i1(x) / x), half of "
    "it at 0.",
    "i1(tensor([0.])).tolist()  # [0.0]", bessel_samples)

// ---- sin(pi x) / (pi x) ----

// The n-th derivative of sin u / u: by its power series where u is small for n, else from that of one order less.
static double sinc_series(int n, double u) {
  double sum = 0, term = 1; // u^(2k - n) / (2k - n)!
  for (int k = (n + 1) / 2; k < 60; k++) {
    int power = 2 * k - n;
    if (k == (n + 1) / 2) term = power ? u : 1;
    else term *= u * u / ((power - 1) * power);
    sum += (k % 2 ? -term : term) / (2 * k + 1);
    if (fabs(term) < 1e-20 * fabs(sum)) break;
  }
  return sum;
}
static double sinc_derivative(double order, double x) {
  if (!(fabs(x) < INFINITY)) return x != x ? x : order == 0 ? 0 : NAN;
  double u = TD_PI * x, value = 0, scale = 1;
  int n = (int)order;
  for (int i = 0; i < n; i++) scale *= TD_PI;
  if (fabs(u) <= n + 1) return scale * sinc_series(n, u);
  double sine = td_math_sinpi_double(x), cosine = td_math_cospi_double(x);
  const double turns[] = {sine, cosine, -sine, -cosine};
  value = sine / u;
  for (int i = 1; i <= n; i++) value = (turns[i % 4] - i * value) / u;
  return scale * value;
}

static const td_op sinc_derivative_op;

TD_MAP1(TD_EACH_FLOAT, sinc_derivative, FLOATING, T, sinc_derivative(p, x))

static td_tensor *sinc_of(td_scope *s, int64_t n, td_tensor *x) {
  td_arg args[] = { TD_INT_DEFAULT(n) };
  return td_scope_apply(s, &sinc_derivative_op, args, 1, x);
}
static int sinc_derivative_kernel(const td_call *call) {
  return td_map_run(call, &sinc_derivative_map, (double)call->args[0].i);
}
static int sinc_derivative_vjp(td_rule *rule) {
  rule->din[0] = td_chain(&rule->scope, rule->cotangent[0], sinc_of(&rule->scope, rule->args[0].i + 1, rule->in[0]));
  return TD_OK;
}
static const td_op sinc_derivative_op = {
  .name = "sinc_derivative",
  .params = { TD_X, { .name = "n", .kind = TD_PARAM_INT, .required = true } },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = sinc_derivative_kernel,
  .expression = sinc_derivative_text,
  .vjp = sinc_derivative_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The n-th derivative of sinc, at 0 too.\nGradient: cotangent times that of order n + 1.",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .args = "n=1", .low = 0.2, .high = 2 },
    { .shapes = "0,3", .args = "n=2", .low = -2, .high = 2 },
    TD_SAMPLES_END,
  },
};

static const td_sample sinc_samples[] = {
  { .shapes = "3,4", .low = 0.2, .high = 2 },
  { .shapes = "4", .low = 5.1, .high = 5.8 },
  { .shapes = "-", .low = -0.4, .high = -0.1 },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
static const char sinc_text[] = "sinc_derivative(0, x)";
static int sinc_kernel(const td_call *call) { return td_map_run(call, &sinc_derivative_map, 0); }
static int sinc_vjp(td_rule *rule) {
  rule->din[0] = td_chain(&rule->scope, rule->cotangent[0], sinc_of(&rule->scope, 1, rule->in[0]));
  return TD_OK;
}
ROW(sinc, NULL, TD_SAVES_IN0,
    "sin(pi * x) / (pi * x), 1 at 0.\n"
    "Gradient: cotangent * (cos(pi * x) - sinc(x)) / x, 0 at 0; right to any order there.",
    "sinc(tensor([0., 0.5], dtype=float64)).tolist()  # [1.0, 0.6366197723675814]", sinc_samples)

// ---- logit ----

// Without eps: of what is not between 0 and 1 NaN.
static const char logit_text[] = "LOGIT(x)";
TD_LOOP1_NEAR(FLOAT32, float, logit, TD_SINGLE_NORMAL(x), TD_SINGLE_NORMAL(1.f), td_single_logit(x), LOGIT(x))
TD_LOOP1(FLOAT64, double, logit, T, LOGIT(x))
TD_MAP_TABLE(TD_EACH_FLOAT, logit, 1, FLOATING)
TD_EACH_FLOAT(TD_LOOP1, logit_within, T, LOGIT(x < p ? p : x > 1 - p ? 1 - p : x))
TD_MAP_TABLE(TD_EACH_FLOAT, logit_within, 1, FLOATING)

static int logit_kernel(const td_call *call) {
  const td_arg *eps = &call->args[0];
  return td_map_run(call, eps->given ? &logit_within_map : &logit_map, eps->given ? eps->f : 0);
}
static int logit_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *zero = td_scope_number(s, 0, c);
  const td_arg *eps = &rule->args[0];
  if (eps->given) { // flat outside
    c = td_where(s, td_less(s, x, td_scope_number(s, eps->f, x)), zero, c);
    c = td_where(s, td_greater(s, x, td_scope_number(s, 1 - eps->f, x)), zero, c);
  }
  td_tensor *slope = td_multiply(s, x, td_subtract(s, td_scope_number(s, 1, x), x));
  if (!eps->given) slope = td_where(s, td_less(s, slope, zero), td_scope_number(s, (double)NAN, x), slope);
  rule->din[0] = td_chain_quotient(s, c, slope);
  return TD_OK;
}
static const td_op logit_op = {
  .name = "logit",
  .params = { TD_X, { .name = "eps", .kind = TD_PARAM_FLOAT } },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = logit_kernel,
  .expression = logit_text,
  .vjp = logit_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "log(x / (1 - x)), what sigmoid undoes; eps clips x to [eps, 1 - eps] first.\n"
         "Gradient: cotangent / (x * (1 - x)); 0 where x was clipped. Infinite at 0 and 1, NaN beyond without eps, and "
         "so is its gradient.",
  .example = "logit(tensor([0.5, 1.])).tolist()  # [0.0, inf]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = 0.05, .high = 0.95 },
    { .shapes = "-", .args = "eps=0.2", .low = 0.3, .high = 0.7 },
    { .shapes = "4", .args = "eps=0.2", .low = 0.01, .high = 0.15 },
    { .shapes = "0,3", .low = 0.1, .high = 0.9 },
    TD_SAMPLES_END,
  },
};

// ---- products with logarithms ----

// The logarithm of argument, but 0 where x is 0 and argument is not positive.
static td_tensor *slope_of_product(td_scope *s, td_tensor *x, td_tensor *argument, td_tensor *logarithm) {
  td_tensor *zero = td_scope_number(s, 0, argument);
  td_tensor *edge = td_where(s, td_greater(s, argument, zero), logarithm, zero);
  return td_where(s, td_equal(s, x, td_scope_number(s, 0, x)), edge, logarithm);
}

static int product_vjp(td_rule *rule, td_tensor *argument, td_tensor *logarithm) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0];
  if (rule->needs[0]) rule->din[0] = td_chain(s, c, slope_of_product(s, x, argument, logarithm));
  if (rule->needs[1]) rule->din[1] = td_chain_quotient(s, td_chain(s, c, x), argument);
  return TD_OK;
}
static int xlogy_vjp(td_rule *rule) { return product_vjp(rule, rule->in[1], td_log(&rule->scope, rule->in[1])); }
static int xlog1py_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *y = rule->in[1];
  return product_vjp(rule, td_add(s, y, td_scope_number(s, 1, y)), td_log1p(s, y));
}

static const td_sample product_samples[] = {
  { .shapes = "3,4; 3,4", .low = 0.3, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = 0.3, .high = 2 },
  { .shapes = "5; -", .low = 0.3, .high = 2 },
  { .shapes = "0,3; 3", .low = 0.3, .high = 2 },
  TD_SAMPLES_END,
};

#define PRODUCT_ROW(title, function, summary, shown)                                                                   \
  TD_MAP2(TD_EACH_FLOAT, title, FLOATING, T, ((x == 0) & (y == y)) ? 0 : x * function(y))                              \
  TD_KERNEL(title)                                                                                                     \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .params = { TD_XY },                                                                                               \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .method = true,                                                                                                    \
    .infer = td_map_floating,                                                                                          \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = title##_vjp,                                                                                                \
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,                                                                              \
    .doc = summary,                                                                                                    \
    .example = shown,                                                                                                  \
    .samples = product_samples,                                                                                        \
  };

PRODUCT_ROW(xlogy, LOG,
            "x * log(y), and 0 where x is 0, whatever y is but NaN.\n"
            "Gradient: cotangent * log(y) for x, cotangent * x / y for y; 0 where x is 0 and y <= 0.",
            "xlogy(tensor([0., 2.]), tensor([0., 1.])).tolist()  # [0.0, 0.0]")
PRODUCT_ROW(xlog1py, LOG1P,
            "x * log(1 + y), exact for tiny y too, and 0 where x is 0, whatever y is but NaN.\n"
            "Gradient: cotangent * log(1 + y) for x, cotangent * x / (1 + y) for y; 0 where x is 0 and y <= -1.",
            "xlog1py(tensor([0., 2.]), tensor([-1., 0.])).tolist()  # [0.0, 0.0]")

const td_op *const td_family_special[] = {
  &erf_op, &erfc_op, &erfinv_op, &lgamma_op, &digamma_op, &polygamma_op, &zeta_op, &i0_op, &i1_op, &sinc_op, &logit_op,
  &xlogy_op, &xlog1py_op, &bessel_i_op, &sinc_derivative_op, NULL,
};
