// Scalar functions of float64 for the expressions of elementwise rows, within 2.5 ulp over their whole range (erfc
// within 6), subnormals included. They have no branch, no table and no call, so that loops over them vectorise; NaN and
// infinities come out as IEEE 754 wants them. The reductions of arguments and the series of log, sin, cos, asin and
// atan are those of FreeBSD's msun; the series of erf and erfc are Chebyshev fits. What is not here is the C library's.
#ifndef TD_OPS_MATH_DOUBLE_H
#define TD_OPS_MATH_DOUBLE_H
#include <math.h>
#include <stdbool.h>
#include "engine/ops/integer.h"

#define TD_LN2 0.69314718055994530942
#define TD_LN2_HIGH 0x1.62e42feep-1 // its first 33 bits: exact times any exponent
#define TD_LN2_LOW 0x1.a39ef35793c76p-33
#define TD_LOG2E 1.4426950408889634074
#define TD_LOG10E 0.43429448190325182765
#define TD_PI 3.14159265358979323846
#define TD_MATH_SHIFT 0x1.8p52 // adding it rounds to an integer that stands in the low bits

typedef union td_math_word {
  double number;
  uint64_t bits;
} td_math_word;

TD_INLINE uint64_t td_math_bits(double x) { return (td_math_word){ .number = x }.bits; }
TD_INLINE double td_math_number(uint64_t bits) { return (td_math_word){ .bits = bits }.number; }
// NaN stays.
TD_INLINE double td_math_within(double x, double low, double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// ---- exponentials ----

typedef struct td_math_power2 { // e^x = second (first + first rest), first and second powers of 2
  double first, second, rest;
} td_math_power2;

// e^(r + lost) - 1, |r| <= ln 2 / 2
TD_INLINE double td_math_exp_rest(double r, double lost) {
  double series = 1. / 720 + r * (1. / 5040 + r * (1. / 40320 + r * (1. / 362880 + r * (1. / 3628800 + r * (
                  1. / 39916800 + r * (1. / 479001600 + r * (1. / 6227020800)))))));
  series = 1. / 2 + r * (1. / 6 + r * (1. / 24 + r * (1. / 120 + r * series)));
  return r + (lost + r * r * series);
}

// 2^n e^(r + lost), n whole and in [-1100, 1100]
TD_INLINE td_math_power2 td_math_power2_of(double n, double r, double lost) {
  double half = (n * 0.5 + TD_MATH_SHIFT) - TD_MATH_SHIFT;
  return (td_math_power2){ td_math_number((td_math_bits(half + TD_MATH_SHIFT) + 1023) << 52),
                           td_math_number((td_math_bits(n - half + TD_MATH_SHIFT) + 1023) << 52),
                           td_math_exp_rest(r, lost) };
}

// e^(x + tail), tail far smaller than x, which is in [-760, 760] or NaN
TD_INLINE td_math_power2 td_math_split_double(double x, double tail) {
  double n = (x * TD_LOG2E + TD_MATH_SHIFT) - TD_MATH_SHIFT;
  double high = x - n * TD_LN2_HIGH, low = n * TD_LN2_LOW - tail, r = high - low;
  return td_math_power2_of(n, r, (high - r) - low);
}

// factor e^(x + tail), factor a power of 2 near 1
TD_INLINE double td_math_exp_scaled(double x, double tail, double factor) {
  td_math_power2 e = td_math_split_double(td_math_within(x, -750, 720), tail);
  return e.second * (e.first * factor + e.first * factor * e.rest);
}
TD_INLINE double td_math_exp_double(double x) { return td_math_exp_scaled(x, 0, 1); }

#define TD_MATH_EXP_NEAR 708 // up to here e^x and e^-x are normal
TD_INLINE double td_math_exp_near_double(double x) {
  double shifted = x * TD_LOG2E + TD_MATH_SHIFT, n = shifted - TD_MATH_SHIFT;
  double high = x - n * TD_LN2_HIGH, low = n * TD_LN2_LOW, r = high - low;
  return td_math_number(td_math_bits(1 + td_math_exp_rest(r, (high - r) - low)) + (td_math_bits(shifted) << 52));
}

TD_INLINE double td_math_exp2_double(double x) {
  x = td_math_within(x, -1090, 1090);
  double n = (x + TD_MATH_SHIFT) - TD_MATH_SHIFT;
  td_math_power2 e = td_math_power2_of(n, (x - n) * TD_LN2, 0);
  return e.second * (e.first + e.first * e.rest);
}

TD_INLINE double td_math_expm1_any(double x) {
  td_math_power2 e = td_math_split_double(td_math_within(x, -50, 720), 0);
  return e.second * (e.first * e.rest + (e.first - 1 / e.second));
}
TD_INLINE double td_math_expm1_double(double x) { return x == 0 ? x : td_math_expm1_any(x); }

TD_INLINE double td_math_tanh_double(double x) {
  double t = td_math_expm1_any(td_math_within(2 * fabs(x), 0, 44));
  return copysign(t / (t + 2), x);
}
TD_INLINE double td_math_sinh_double(double x) {
  double a = fabs(x), t = td_math_expm1_any(td_math_within(a, 0, 44)), half = td_math_exp_scaled(a, 0, 0.5);
  return copysign(a < 22 ? (t + t / (t + 1)) / 2 : half, x);
}
TD_INLINE double td_math_cosh_double(double x) {
  double half = td_math_exp_scaled(fabs(x), 0, 0.5);
  return half + 0.25 / half;
}
TD_INLINE double td_math_sigmoid_double(double x) {
  double e = td_math_exp_double(-fabs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
}

// The derivatives of both.
TD_INLINE double td_math_sigmoid_slope_double(double x) {
  double e = td_math_exp_double(-fabs(x));
  return e / ((1 + e) * (1 + e));
}
// sigmoid(x) - y, whose digits stay where both are near 1
TD_INLINE double td_math_sigmoid_less_double(double x, double y) {
  double e = td_math_exp_double(-fabs(x));
  return (x >= 0 ? (1 - y) - y * e : (1 - y) * e - y) / (1 + e);
}
TD_INLINE double td_math_tanh_slope_double(double x) { return 4 * td_math_sigmoid_slope_double(2 * x); }

// ---- logarithms ----

typedef struct td_math_fraction { // x = 2^exponent (1 + f), 1 + f in [sqrt(1/2), sqrt(2))
  double exponent, f;
} td_math_fraction;

TD_INLINE td_math_fraction td_math_fraction_near(double x) { // x > 0 and normal
  const uint64_t root = 0x3fe6a09e00000000, one = 0x3ff0000000000000, fraction = 0x000fffffffffffff;
  uint64_t bits = td_math_bits(x) + (one - root);
  double exponent = td_math_number((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  return (td_math_fraction){ exponent, td_math_number((bits & fraction) + root) - 1 };
}
TD_INLINE td_math_fraction td_math_fraction_of(double x) { // x > 0
  bool small = x < 0x1p-1022;
  td_math_fraction p = td_math_fraction_near(small ? x * 0x1p54 : x);
  return (td_math_fraction){ small ? p.exponent - 54 : p.exponent, p.f };
}

// What value says, but for the edges of log x.
TD_INLINE double td_math_log_edges(double x, double value) {
  value = x > 0 ? value : x == 0 ? -INFINITY : NAN;
  return x == INFINITY ? x : value;
}

// Of 1 + f: f - half + rest is its logarithm.
typedef struct td_math_log_terms {
  double half, rest;
} td_math_log_terms;

TD_INLINE td_math_log_terms td_math_log_terms_of(double f) {
  double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  double series = z * (6.666666666666735130e-01 + z * (3.999999999940941908e-01 + z * (2.857142874366239149e-01 + z * (
                  2.222219843214978396e-01 + z * (1.818357216161805012e-01 + z * (1.531383769920937332e-01 + z *
                  1.479819860511658591e-01))))));
  return (td_math_log_terms){ half, s * (half + series) };
}

// log x + lost
TD_INLINE double td_math_log_of(td_math_fraction p, double lost) {
  td_math_log_terms t = td_math_log_terms_of(p.f);
  return t.rest + (p.exponent * TD_LN2_LOW + lost) - t.half + p.f + p.exponent * TD_LN2_HIGH;
}
TD_INLINE double td_math_log_sum(double x, double lost) { return td_math_log_of(td_math_fraction_of(x), lost); }
TD_INLINE double td_math_log_double(double x) { return td_math_log_edges(x, td_math_log_sum(x, 0)); }

// To the bases 2 and 10, whose powers have exact logarithms: the factor has a high part that products are exact with.
TD_INLINE double td_math_log_base(td_math_fraction p, double high, double low, double two_high, double two_low) {
  td_math_log_terms t = td_math_log_terms_of(p.f);
  double head = td_math_number(td_math_bits(p.f - t.half) & 0xffffffff00000000), tail = (p.f - head) - t.half + t.rest;
  double whole = p.exponent * two_high + 0, part = head * high + 0, sum = whole + part; // exact, no products any more
  return (tail + head) * low + (p.exponent * two_low + ((whole - sum) + part)) + tail * high + sum;
}
TD_INLINE double td_math_log2_of(td_math_fraction p) {
  return td_math_log_base(p, 1.44269504072144627571e+00, 1.67517131648865118353e-10, 1, 0);
}
TD_INLINE double td_math_log10_of(td_math_fraction p) {
  return td_math_log_base(p, 4.34294481878168880939e-01, 2.50829467116652752298e-11, 3.01029995663611771306e-01,
                          3.69423907715893078616e-13);
}
TD_INLINE double td_math_log2_double(double x) {
  return td_math_log_edges(x, td_math_log2_of(td_math_fraction_of(x)));
}
TD_INLINE double td_math_log10_double(double x) {
  return td_math_log_edges(x, td_math_log10_of(td_math_fraction_of(x)));
}

#define TD_MATH_NORMAL(x) (((x) >= 0x1p-1022) & ((x) < INFINITY))
TD_INLINE double td_math_log_near_double(double x) { return td_math_log_of(td_math_fraction_near(x), 0); }
TD_INLINE double td_math_log2_near_double(double x) { return td_math_log2_of(td_math_fraction_near(x)); }
TD_INLINE double td_math_log10_near_double(double x) { return td_math_log10_of(td_math_fraction_near(x)); }

TD_INLINE double td_math_log1p_any(double x) { // the rounding of 1 + x is made good
  double u = 1 + x;
  return td_math_log_edges(u, td_math_log_sum(u, (x - (u - 1)) / u));
}
TD_INLINE double td_math_log1p_double(double x) { return x == 0 ? x : td_math_log1p_any(x); }
TD_INLINE double td_math_softplus_double(double x) {
  return (x > 0 ? x : 0) + td_math_log1p_any(td_math_exp_double(-fabs(x)));
}

// log(e^x + e^y), and the same to the base 2; NaN wins
TD_INLINE double td_math_logaddexp_double(double x, double y) {
  double largest = ((x > y) | (x != x)) ? x : y, near = -fabs(x - y);
  return largest + (x == y ? TD_LN2 : td_math_log1p_any(td_math_exp_double(near)));
}
TD_INLINE double td_math_logaddexp2_double(double x, double y) {
  double largest = ((x > y) | (x != x)) ? x : y, near = -fabs(x - y);
  return largest + (x == y ? 1 : td_math_log1p_any(td_math_exp2_double(near)) * TD_LOG2E);
}

TD_INLINE double td_math_asinh_double(double x) {
  double a = fabs(x);
  bool far = a > 0x1p54; // there asinh a = log 2a, and log1p a = log a
  double u = far ? a : a + a * a / (1 + sqrt(a * a + 1));
  return copysign(td_math_log1p_any(u) + (far ? TD_LN2 : 0), x);
}
TD_INLINE double td_math_acosh_double(double x) {
  double t = x - 1;
  bool far = x > 0x1p54;
  double value = td_math_log1p_any(far ? x : t + sqrt(2 * t + t * t)) + (far ? TD_LN2 : 0);
  return x < 1 ? NAN : value;
}
TD_INLINE double td_math_atanh_double(double x) {
  double a = fabs(x);
  return copysign(0.5 * td_math_log1p_any(2 * a / (1 - a)), x);
}
// log(x / (1 - x)); around 1/2, where it is near 0, by the difference from 1/2
TD_INLINE double td_math_logit_double(double x) {
  bool middle = fabs(x - 0.5) < 0.25;
  double ratio = x / (1 - x), near = td_math_log1p_any((2 * x - 1) / (1 - x)), far = td_math_log_double(ratio);
  return middle ? near : far;
}

// ---- angles ----

typedef struct td_math_pair { // high + low, |low| at most an ulp of high
  double high, low;
} td_math_pair;

TD_INLINE td_math_pair td_math_add(double a, double b) { // exactly
  double sum = a + b, part = sum - a;
  return (td_math_pair){ sum, (a - (sum - part)) + (b - part) };
}

// Up to here multiples of pi/2 are taken off in three steps; beyond it the C library takes over.
#define TD_MATH_NEAR_DOUBLE 0x1p20

typedef struct td_math_turn { // x = quadrant * pi/2 + r
  uint64_t quadrant;          // its two low bits count
  double sine, cosine;        // of r in [-pi/4, pi/4]
} td_math_turn;

TD_INLINE td_math_turn td_math_turn_of(double x) {
  double shifted = x * (2 / TD_PI) + TD_MATH_SHIFT, n = shifted - TD_MATH_SHIFT;
  double near = x - n * 0x1.921fb544p+0; // pi/2 in 33 bits, the next 33, and the next 53
  td_math_pair b = td_math_add(near, -(n * 0x1.0b4611a6p-34));
  double tail = b.low - n * 0x1.3198a2e037073p-69, r = b.high + tail, low = (b.high - r) + tail;
  double z = r * r, v = z * r, half = 0.5 * z, w = 1 - half;
  double odd = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (
               -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
  double even = z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 +
                z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z *
                -1.13596475577881948265e-11)))));
  double sine = r - ((z * (0.5 * low - v * odd) - low) + v * 1.66666666666666324348e-01);
  return (td_math_turn){ td_math_bits(shifted), sine, w + (((1 - w) - half) + (z * even - r * low)) };
}

TD_INLINE double td_math_turn_sine(td_math_turn a, uint64_t quadrant) {
  double value = quadrant & 1 ? a.cosine : a.sine;
  return td_math_number(td_math_bits(value) ^ (quadrant & 2) << 62);
}
TD_INLINE double td_math_sin_near_double(double x) {
  td_math_turn a = td_math_turn_of(x);
  return x == 0 ? x : td_math_turn_sine(a, a.quadrant);
}
TD_INLINE double td_math_cos_near_double(double x) {
  td_math_turn a = td_math_turn_of(x);
  return td_math_turn_sine(a, a.quadrant + 1);
}
TD_INLINE double td_math_tan_near_double(double x) {
  td_math_turn a = td_math_turn_of(x);
  bool odd = a.quadrant & 1;
  return x == 0 ? x : (odd ? -a.cosine : a.sine) / (odd ? a.sine : a.cosine);
}
TD_INLINE double td_math_sin_double(double x) {
  return fabs(x) < TD_MATH_NEAR_DOUBLE ? td_math_sin_near_double(x) : sin(x);
}
TD_INLINE double td_math_cos_double(double x) {
  return fabs(x) < TD_MATH_NEAR_DOUBLE ? td_math_cos_near_double(x) : cos(x);
}

TD_INLINE double td_math_tan_double(double x) {
  return fabs(x) < TD_MATH_NEAR_DOUBLE ? td_math_tan_near_double(x) : tan(x);
}

#define TD_PI_LOW 1.2246467991473531772e-16 // what TD_PI lacks

// atan(low / high) for 0 <= low <= high: beyond tan(pi/8), pi/4 is taken off
TD_INLINE double td_math_atan_ratio_double(double low, double high) {
  double far = low > 0.41421356237309503 * high;
  double t = (far > 0 ? low - high : low) / (far > 0 ? low + high : high), z = t * t;
  double series = 4.97687799461593236017e-02 + z * (-3.65315727442169155270e-02 + z * 1.62858201153657823623e-02);
  series = 9.09088713343650656196e-02 + z * (-7.69187620504482999495e-02 + z * (6.66107313738753120669e-02 + z * (
           -5.83357013379057348645e-02 + z * series)));
  series = 3.33333333333329318027e-01 + z * (-1.99999999998764832476e-01 + z * (1.42857142725034663711e-01 + z * (
           -1.11111104054623557880e-01 + z * series)));
  return (far > 0 ? TD_PI / 4 : 0) + (t - (t * z * series - (far > 0 ? TD_PI_LOW / 4 : 0)));
}
TD_INLINE double td_math_atan_double(double x) {
  double a = fabs(x);
  bool steep = a > 1;
  double angle = td_math_atan_ratio_double(steep ? 1 : a, steep ? a : 1);
  return copysign(steep ? TD_PI / 2 - (angle - TD_PI_LOW / 2) : angle, x);
}
TD_INLINE double td_math_atan2_double(double y, double x) {
  double a = fabs(y), b = fabs(x);
  bool steep = a > b, equal = a == b;
  double low = steep ? b : a, high = steep ? a : b;
  low = equal ? high > 0 : low; // of two infinities the ratio is 1, of two zeros 0
  high = equal ? 1 : high;
  double angle = td_math_atan_ratio_double(low, high);
  angle = steep ? TD_PI / 2 - (angle - TD_PI_LOW / 2) : angle;
  angle = copysign(1, x) < 0 ? TD_PI - (angle - TD_PI_LOW) : angle;
  return copysign(x != x ? x : angle, y);
}

typedef struct td_math_arc { // asin of s = |x|: what itself, or what pi/2 lacks of it, far
  bool far;
  double angle;
} td_math_arc;

TD_INLINE td_math_arc td_math_arc_of(double s) {
  bool far = s > 0.5;
  double high = (1 - s) / 2, w = far ? sqrt(high) : s, z = far ? high : s * s;
  double above = 2.01212532134862925881e-01 + z * (-4.00555345006794114027e-02 + z * (7.91534994289814532176e-04 + z *
                 3.47933107596021167570e-05));
  above = z * (1.66666666666666657415e-01 + z * (-3.25565818622400915405e-01 + z * above));
  double under = 2.02094576023350569471e+00 + z * (-6.88283971605453293030e-01 + z * 7.70381505559019352791e-02);
  double angle = w + w * (above / (1 + z * (-2.40339491173441421878e+00 + z * under)));
  return (td_math_arc){ far, far ? angle + angle : angle };
}
TD_INLINE double td_math_asin_double(double x) {
  td_math_arc a = td_math_arc_of(fabs(x));
  return copysign(a.far ? TD_PI / 2 - (a.angle - TD_PI_LOW / 2) : a.angle, x);
}
TD_INLINE double td_math_acos_double(double x) {
  td_math_arc a = td_math_arc_of(fabs(x));
  double far = x < 0 ? TD_PI - (a.angle - TD_PI_LOW) : a.angle;
  return a.far ? far : TD_PI / 2 - (copysign(a.angle, x) - TD_PI_LOW / 2);
}

// sin(pi x) and cos(pi x) of finite x: half turns are taken off exactly
TD_INLINE double td_math_sinpi_double(double x) {
  double n = rint(x), value = td_math_sin_near_double(TD_PI * (x - n));
  return 2 * rint(n / 2) == n ? value : -value;
}
TD_INLINE double td_math_cospi_double(double x) {
  double n = rint(x), value = td_math_sin_near_double(TD_PI * (0.5 - fabs(x - n)));
  return 2 * rint(n / 2) == n ? value : -value;
}

// ---- the error function ----

#define TD_MATH_ERF_NEAR 0.75

TD_INLINE double td_math_erf_series(double x) { // for |x| < TD_MATH_ERF_NEAR
  double z = x * x;
  return x * (1.1283791670955125731 + z * (-0.37612638903183716612 + z * (0.11283791670952576279 + z *
              (-0.026866170644423616496 + z * (0.0052239776153600631437 + z * (-0.00085483261844656054818 + z *
              (0.00012055289382722753886 + z * (-0.000014924191401192737108 + z * (1.6430605799844917825e-6 + z *
              (-1.5939375441566720571e-7 + z * (1.1469914571779454622e-8)))))))))));
}

// erfc of x >= TD_MATH_ERF_NEAR: exp(-x^2) t times a series in t = 1 / (1 + x/2)
TD_INLINE double td_math_erfc_far(double x) {
  double t = 1 / (1 + 0.5 * td_math_within(x, TD_MATH_ERF_NEAR, 28));
  double u = (t - 0.3969696969696969697) * 3.0275229357798165138;
  double series = 0.44574880438355115107 + u * (0.19068872588223277684 + u * (0.055009696553965892556 + u *
                  (0.0073436364141698077073 + u * (-0.0012571966179322152659 + u * (-0.00058193217015115727774 + u *
                  (0.000048968526517252832577 + u * (0.00004706004743251867735 + u * (-5.4560778155289498797e-6 + u *
                  (-4.1950464056676280797e-6 + u * (9.8051219254635570058e-7 + u * (3.3790551408654116589e-7 + u *
                  (-1.6994957324313227388e-7 + u * (-9.9375952961207767766e-9 + u * (2.4265788193707198451e-8 + u *
                  (-4.2557475798241141807e-9 + u * (-2.3596924254657618425e-9 + u * (1.1246658863101954132e-9 + u *
                  (5.5471629680624893865e-11 + u * (-1.1918541078744886867e-10 + u *
                  (1.5670882697935994211e-11))))))))))))))))))));
  x = td_math_within(x, TD_MATH_ERF_NEAR, 28);
  double head = td_math_number(td_math_bits(x) & 0xffffffff00000000); // its square is exact
  return td_math_exp_scaled(-head * head, (head - x) * (head + x), 1) * (t * series);
}

TD_INLINE double td_math_erf_double(double x) {
  double a = fabs(x);
  return a < TD_MATH_ERF_NEAR ? td_math_erf_series(x) : copysign(1 - td_math_erfc_far(a), x);
}
TD_INLINE double td_math_erfc_double(double x) {
  double far = td_math_erfc_far(fabs(x));
  return fabs(x) < TD_MATH_ERF_NEAR ? 1 - td_math_erf_series(x) : x > 0 ? far : 2 - far;
}

// ---- lengths and divisions ----

// Squares of such lengths neither overflow nor lose digits.
#define TD_MATH_MEASURES(x, y) \
  (((fabs(x) > 0x1p-480) | (fabs(y) > 0x1p-480)) & (fabs(x) < 0x1p500) & (fabs(y) < 0x1p500))
TD_INLINE double td_math_hypot_near_double(double x, double y) {
  double square = y * y + 0; // no product any more: see math_single.h
  return sqrt(x * x + square);
}
TD_INLINE double td_math_hypot_double(double x, double y) {
  return TD_MATH_MEASURES(x, y) ? td_math_hypot_near_double(x, y) : hypot(x, y);
}

// Whole quotients below this are exact, and so are their products with either half of the divisor.
#define TD_MATH_DIVIDES(x, y) ((fabs(x) < 0x1p22 * fabs(y)) & (fabs(y) < 0x1p1000) & (fabs(y) > 0x1p-900))

typedef struct td_math_division { // x = quotient y + rest, the quotient rounded to 0
  double quotient, rest;
} td_math_division;

TD_INLINE td_math_division td_math_divide_double(double x, double y) {
  double quotient = trunc(x / y), head = td_math_number(td_math_bits(y) & 0xfffffffff8000000);
  double rest = x - quotient * head - quotient * (y - head);
  bool over = (rest < 0) != (x < 0) && rest != 0; // rounding took x / y to the next whole number
  rest += over ? copysign(y, x) : 0;
  return (td_math_division){ quotient - (over ? copysign(1, quotient) : 0), copysign(rest, x) };
}
TD_INLINE double td_math_fmod_near_double(double x, double y) { return td_math_divide_double(x, y).rest; }
TD_INLINE double td_math_remainder_near_double(double x, double y) { // with the sign of y
  double rest = td_math_divide_double(x, y).rest, value = (rest < 0) != (y < 0) ? rest + y : rest;
  return rest == 0 ? copysign(rest, y) : value;
}
TD_INLINE double td_math_floor_divide_near_double(double x, double y) {
  td_math_division d = td_math_divide_double(x, y);
  double down = d.quotient - (d.rest != 0 && (d.rest < 0) != (y < 0) ? 1 : 0);
  return down == 0 ? copysign(0, x / y) : down;
}
#endif
