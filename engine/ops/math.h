// Scalar functions for the expressions of elementwise rows. Those of float32 that models spend their time in are
// computed in float32, see math_single.h, and completed here where those end: at subnormal numbers, infinities, NaN and
// far out. The others are computed in double: rounding once at the end keeps them within 1 ulp over their whole range,
// and short series are enough. They have no branch and no table, so that loops over them vectorise; NaN and infinities
// come out as IEEE 754 wants them. Those of float64 are in math_double.h. Names in upper case pick the function by the
// type of x.
#ifndef TD_OPS_MATH_H
#define TD_OPS_MATH_H
#include <math.h>
#include <stdbool.h>
#include "engine/ops/integer.h"
#include "engine/ops/math_double.h"
#include "engine/ops/math_single.h"

// ---- exponentials ----

typedef struct td_math_exp_parts { // e^x = scale + scale * rest, scale a power of 2
  double scale, rest;
} td_math_exp_parts;

// x in [-200, 200], wider than float32's results
TD_INLINE td_math_exp_parts td_math_split(double x) {
  x = td_math_within(x, -200, 200);
  double shifted = x * TD_LOG2E + TD_MATH_SHIFT;
  double r = x - (shifted - TD_MATH_SHIFT) * TD_LN2; // |r| <= ln 2 / 2
  double series = 1. / 2 + r * (1. / 6 + r * (1. / 24 + r * (1. / 120 + r * (1. / 720 + r * (1. / 5040 + r / 40320)))));
  return (td_math_exp_parts){ td_math_number((td_math_bits(shifted) + 1023) << 52), r + r * r * series };
}

TD_INLINE double td_math_exp_wide(double x) {
  td_math_exp_parts e = td_math_split(x);
  return e.scale + e.scale * e.rest;
}

TD_INLINE double td_math_expm1_wide(double x) {
  td_math_exp_parts e = td_math_split(x);
  return e.scale * e.rest + (e.scale - 1);
}

// 2^n has two normal factors, because n may be 128 or below the normal numbers' powers.
typedef struct td_math_scale {
  float first, second, inverse; // inverse: 1 / second
} td_math_scale;

TD_INLINE td_math_scale td_math_scale_of(uint32_t power) { // n << 23; of a NaN's n any number
  int32_t n = (int32_t)power >> 23, half = n >> 1;
  return (td_math_scale){ td_single_number((uint32_t)(half + 127) << 23),
                          td_single_number((uint32_t)(n - half + 127) << 23),
                          td_single_number((uint32_t)(half - n + 127) << 23) };
}

TD_INLINE float td_math_exp(float x) {
  x = x < -104 ? -104 : x;
  td_single_split s = td_single_split_of(x > 89 ? 89 : x);
  td_math_scale e = td_math_scale_of(s.power);
  return td_single_exp_series(s.r) * e.first * e.second;
}
TD_INLINE float td_math_exp2(float x) {
  return fabsf(x) < TD_SINGLE_EXP2_NEAR ? td_single_exp2(x) : (float)td_math_exp2_double(x);
}
TD_INLINE float td_math_expm1(float x) {
  float v = x < -30 ? -30 : x;
  td_single_split s = td_single_split_of(v > 89 ? 89 : v);
  td_math_scale e = td_math_scale_of(s.power);
  float value = (e.first * td_single_expm1_series(s.r) + (e.first - e.inverse)) * e.second;
  return x == 0 ? x : value;
}

TD_INLINE float td_math_sinh(float x) {
  double t = td_math_expm1_wide(fabs((double)x));
  return (float)copysign((t + t / (t + 1)) / 2, x);
}

TD_INLINE float td_math_cosh(float x) {
  double e = td_math_exp_wide(fabs((double)x));
  return (float)((e + 1 / e) / 2);
}

TD_INLINE double td_math_sigmoid_wide(double x) { return 1 / (1 + td_math_exp_wide(-x)); }
TD_INLINE float td_math_sigmoid(float x) { return td_single_sigmoid_by(x, td_math_exp(-fabsf(x))); }

// Derivatives of sigmoid and tanh from x: y (1 - y) and 1 - y^2 lose their digits where y is near 1.
TD_INLINE float td_math_sigmoid_slope(float x) { return td_single_sigmoid_slope_by(td_math_exp(-fabsf(x))); }
TD_INLINE float td_math_sigmoid_less(float x, float y) { // sigmoid(x) - y
  double e = td_math_exp_wide(-fabs((double)x)), rest = 1 - (double)y;
  return (float)((x >= 0 ? rest - (double)y * e : rest * e - (double)y) / (1 + e));
}
TD_INLINE float td_math_tanh_slope(float x) {
  double e = td_math_exp_wide(-2 * fabs((double)x));
  float far = (float)(4 * e / ((1 + e) * (1 + e)));
  return fabsf(x) < TD_SINGLE_EXP_NEAR / 2 ? td_single_tanh_slope(x) : far;
}

// ---- logarithms ----

typedef struct td_math_log_parts { // log x = exponent * ln 2 + rest
  double exponent, rest;
} td_math_log_parts;

// x > 0 and not subnormal; 2 artanh(s) with s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2))
TD_INLINE td_math_log_parts td_math_log_split(double x) {
  const uint64_t root = 0x3fe6a09e00000000, one = 0x3ff0000000000000, fraction = 0x000fffffffffffff;
  uint64_t bits = td_math_bits(x) + (one - root);
  double exponent = td_math_number((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  double m = td_math_number((bits & fraction) + root);
  double s = (m - 1) / (m + 1), z = s * s;
  double series = 1. / 3 + z * (1. / 5 + z * (1. / 7 + z * (1. / 9 + z * (1. / 11 + z * (1. / 13 + z * (1. / 15))))));
  return (td_math_log_parts){ exponent, 2 * s + 2 * s * z * series };
}

TD_INLINE double td_math_log_wide(double x) {
  td_math_log_parts l = td_math_log_split(x);
  return td_math_log_edges(x, l.exponent * TD_LN2 + l.rest);
}

// The part of log x that log_part gives of normal numbers, of subnormal ones too.
TD_INLINE float td_math_log_part(float x, float *n) {
  bool small = x < 0x1p-126f;
  float f = td_single_log_part(small ? x * 0x1p23f : x, n);
  *n += small ? 23 : 0;
  return f;
}
TD_INLINE float td_math_log_edges_single(float x, float value) {
  value = x > 0 ? value : x == 0 ? -INFINITY : NAN;
  return x == INFINITY ? x : value;
}
#define X(name)                                                                                                        \
  TD_INLINE float td_math_##name(float x) {                                                                            \
    float n, f = td_math_log_part(x, &n);                                                                              \
    return td_math_log_edges_single(x, td_single_##name##_sum(f, n));                                                  \
  }
X(log)
X(log2)
X(log10)
#undef X

TD_INLINE float td_math_log1p(float x) {
  bool large = x > 0x1p100f; // there it is log x
  float v = large ? x * 0x1p-32f : x;
  uint32_t power = td_single_log_power(1 + v);
  float value = td_single_log_sum(td_single_log1p_part(v, power), td_single_log_count(power) - (large ? 32 : 0));
  return x == 0 ? x : td_math_log_edges_single(1 + x, value);
}

TD_INLINE float td_math_softplus(float x) {
  return (x > 0 ? x : 0) + td_single_log1p(td_math_exp(-fabsf(x)));
}
TD_INLINE float td_math_atanh(float x) {
  float a = fabsf(x);
  return copysignf(0.5f * td_math_log1p(2 * a / (1 - a)), x);
}
TD_INLINE float td_math_logit(float x) {
  return ((x >= 0x1p-126f) & (x < 1)) ? td_single_logit(x) : (float)td_math_logit_double(x);
}
TD_INLINE float td_math_logaddexp(float x, float y) {
  return fabsf(x - y) < TD_SINGLE_EXP_NEAR ? td_single_logaddexp(x, y) : (float)td_math_logaddexp_double(x, y);
}
TD_INLINE float td_math_logaddexp2(float x, float y) {
  return fabsf(x - y) < TD_SINGLE_EXP2_NEAR ? td_single_logaddexp2(x, y) : (float)td_math_logaddexp2_double(x, y);
}

// ---- powers ----

TD_INLINE float td_math_power(float x, float y) {
  double base = fabs((double)x), magnitude = td_math_exp_wide((double)y * td_math_log_wide(base));
  bool whole = rintf(y) == y, odd = whole && 2 * rintf(y / 2) != y;
  magnitude = ((base == 1) & (y == y)) ? 1 : magnitude; // to an infinite power too
  magnitude = ((x < 0) & !whole & (base < INFINITY) & (y == y)) ? NAN : magnitude;
  magnitude = copysign(magnitude, odd ? (double)x : 1);
  return (float)(((x == 1) | (y == 0)) ? 1 : magnitude); // beside NaN too
}

// ---- trigonometry ----

typedef struct td_math_angle { // x = quadrant * pi/2 + r
  uint64_t quadrant;           // its two low bits count
  double sine, cosine;         // of r in [-pi/4, pi/4]
} td_math_angle;

TD_INLINE td_math_angle td_math_angle_of(double x) {
  double shifted = x * (2 / TD_PI) + TD_MATH_SHIFT, n = shifted - TD_MATH_SHIFT;
  double r = x - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34; // pi/2 in 33 bits and the next 53
  double z = r * r;
  double sine = z * (-1. / 6 + z * (1. / 120 + z * (-1. / 5040 + z * (1. / 362880 + z * (-1. / 39916800)))));
  double cosine = z * (-1. / 2 + z * (1. / 24 + z * (-1. / 720 + z * (1. / 40320 + z * (-1. / 3628800)))));
  return (td_math_angle){ td_math_bits(shifted), r + r * sine, 1 + cosine };
}

TD_INLINE double td_math_sine_in(td_math_angle a, uint64_t quadrant) {
  double value = quadrant & 1 ? a.cosine : a.sine;
  return td_math_number(td_math_bits(value) ^ (quadrant & 2) << 62);
}

// far: up to TD_SINGLE_ANGLE_FAR; beyond it the C library takes over.
#define X(name)                                                                                                        \
  TD_INLINE float td_math_##name##_far(float x) {                                                                      \
    return fabsf(x) < TD_SINGLE_ANGLE_NEAR ? td_single_##name(x) : td_single_##name##_far(x);                          \
  }                                                                                                                    \
  TD_INLINE float td_math_##name(float x) {                                                                            \
    return fabsf(x) < TD_SINGLE_ANGLE_FAR ? td_math_##name##_far(x) : name##f(x);                                      \
  }
X(sin)
X(cos)
X(tan)
#undef X

// ---- the normal distribution ----

// exp(s^2) erfc(s) / t with t = 1 / (1 + s/2), for s in [0, 21]
TD_INLINE double td_math_erfc_series(double t) {
  return 0.282095853693 + t * (0.282051100829 + t * (0.24759352837 + t * (0.168890228267 + t * (
         0.128997187085 + t * (-0.186245286958 + t * (0.434499116567 + t * (-0.937983652053 + t * (
         1.00516216921 + t * (-0.578798099667 + t * (0.176252713881 + t * -0.022514858894))))))))));
}

#define TD_DENSITY_0 0.39894228040143267794 // 1 / sqrt(2 pi)

// Probability that a standard normal number is below x, for x in [-28, 28]
TD_INLINE double td_math_normal_wide(double x) {
  double t = 1 / (1 + fabs(x) * (M_SQRT1_2 / 2));
  double tail = 0.5 * t * td_math_erfc_series(t) * td_math_exp_wide(-0.5 * x * x);
  return x > 0 ? 1 - tail : tail;
}

// x times that probability, and its derivative; at -infinity both are 0.
TD_INLINE double td_math_gelu_wide(double x) {
  return td_math_within(x, -28, INFINITY) * td_math_normal_wide(td_math_within(x, -28, 28));
}
TD_INLINE double td_math_gelu_slope_wide(double x) {
  x = td_math_within(x, -28, 28);
  return td_math_normal_wide(x) + x * TD_DENSITY_0 * td_math_exp_wide(-0.5 * x * x);
}
TD_INLINE float td_math_gelu(float x) {
  return fabsf(x) < TD_SINGLE_BELL_NEAR ? td_single_gelu(x) : (float)td_math_gelu_wide(x);
}
TD_INLINE float td_math_gelu_slope(float x) {
  return fabsf(x) < TD_SINGLE_BELL_NEAR ? td_single_gelu_slope(x) : (float)td_math_gelu_slope_wide(x);
}
TD_INLINE float td_math_erfc(float x) {
  return fabsf(x) < TD_SINGLE_ERFC_NEAR ? td_single_erfc(x) : (float)td_math_erfc_double(x);
}
TD_INLINE double td_math_gelu_double(double x) {
  return td_math_within(x, -50, INFINITY) * 0.5 * td_math_erfc_double(-M_SQRT1_2 * td_math_within(x, -50, INFINITY));
}
TD_INLINE double td_math_gelu_slope_double(double x) {
  x = td_math_within(x, -50, 50);
  return 0.5 * td_math_erfc_double(-M_SQRT1_2 * x) + x * TD_DENSITY_0 * td_math_exp_double(-0.5 * x * x);
}

// x sigmoid(x), and its derivative; at -infinity both are 0.
TD_INLINE float td_math_silu(float x) {
  double far = td_math_within(x, -190, INFINITY) * td_math_sigmoid_wide(x);
  return fabsf(x) < TD_SINGLE_EXP_NEAR ? td_single_silu(x) : (float)far;
}
TD_INLINE float td_math_silu_slope(float x) {
  double s = td_math_sigmoid_wide(x), far = s + td_math_within(x, -190, 190) * s * (1 - s);
  return fabsf(x) < TD_SINGLE_EXP_NEAR ? td_single_silu_slope(x) : (float)far;
}
TD_INLINE double td_math_silu_double(double x) { return td_math_within(x, -800, INFINITY) * td_math_sigmoid_double(x); }
TD_INLINE double td_math_silu_slope_double(double x) {
  double s = td_math_sigmoid_double(x);
  return s + td_math_within(x, -800, 800) * s * (1 - s);
}

// x tanh(softplus(x)), and its derivative; tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), and nothing cancels.
TD_INLINE double td_math_mish_double(double x) {
  double v = td_math_within(x, -800, INFINITY), e = td_math_exp_double(td_math_within(v, -800, 40)), n = e * (e + 2);
  return v * (n / (n + 2));
}
TD_INLINE double td_math_mish_slope_double(double x) {
  double v = td_math_within(x, -800, 40), e = td_math_exp_double(v), n = e * (e + 2);
  return n / (n + 2) + 4 * v * (e / (n + 2)) * ((1 + e) / (n + 2));
}
// x - tanh(x), by the series of x cosh(x) - sinh(x) where it would cancel
TD_INLINE double td_math_tanhshrink_double(double x) {
  double z = x * x, near = 1. / 3991680 + z * (1. / 518918400 + z * (1. / 93405312000 + z * (1. / 22230464256000 + z *
                           (1. / 6758061133824000 + z * (1. / 2554547108585472000)))));
  near = x * z * (1. / 3 + z * (1. / 30 + z * (1. / 840 + z * (1. / 45360 + z * near)))) / td_math_cosh_double(x);
  return fabs(x) < 1 ? near : fabs(x) == INFINITY ? x : x - td_math_tanh_double(x);
}

// gelu by tanh: see math_single.h.
#define X(type, suffix, sigmoid)                                                                                       \
  TD_INLINE type td_math_gelu_tanh##suffix(double x) {                                                                 \
    double v = td_math_within(x, -28, INFINITY);                                                                       \
    return (type)(v * sigmoid(v * (TD_GELU_1 + TD_GELU_3 * v * v)));                                                   \
  }                                                                                                                    \
  TD_INLINE type td_math_gelu_tanh_slope##suffix(double x) {                                                           \
    double v = td_math_within(x, -28, 28), y = sigmoid(v * (TD_GELU_1 + TD_GELU_3 * v * v));                           \
    return (type)(y + v * y * (1 - y) * (TD_GELU_1 + 3 * TD_GELU_3 * v * v));                                          \
  }
X(float, _wide, td_math_sigmoid_wide)
X(double, _double, td_math_sigmoid_double)
#undef X
#define X(name)                                                                                                        \
  TD_INLINE float td_math_##name(float x) {                                                                            \
    return fabsf(x) < TD_SINGLE_GELU_NEAR ? td_single_##name(x) : td_math_##name##_wide(x);                            \
  }
X(gelu_tanh)
X(gelu_tanh_slope)
#undef X

// The logarithm of gamma of a normal number above 0: around 1 and 2, where it is 0, by a series about 3/2 and from 3/4
// down by the number above, beyond 5/2 by Stirling's formula
TD_INLINE float td_math_lgamma_near(float x) {
  td_math_log_parts l = td_math_log_split(x);
  double log = l.exponent * TD_LN2 + l.rest, below = x < 0.75f ? 1 : 0, v = x + below, w = v - 1.5, z = 1 / (double)x;
  double near = 0.00554516666172884 + w * (-0.00329698081268869 + w * (0.00164954621139903 + w * (
                -0.000866062094899698 + w * (0.0010001457928539404 + w * (-0.000874831746654374 + w *
                0.000281476731783182)))));
  near = -0.0313088744427100 + w * (0.0167818293519976 + w * (-0.00941554701768187 + w * near));
  near = 0.483128942951282 + w * (-0.145959894411763 + w * (0.0629122494217561 + w * near));
  near = (v - 1) * (v - 2) * near + 0; // 0 at 1 and 2, not -0
  double s = z * z, far = 0.000787729167808 + s * (-0.0005220946995 + s * 0.000356727459999);
  far = (x - 0.5) * log - x + 0.918938533204672742 + z * (0.0833333300732 + s * (-0.00277754636734 + s * far));
  return (float)(x < 2.5f ? near - below * log : far);
}

TD_INLINE float td_math_hypot(float x, float y) {
  double a = x, b = y;
  return ((fabs(a) == INFINITY) | (fabs(b) == INFINITY)) ? INFINITY : (float)sqrt(a * a + b * b);
}

TD_INLINE float td_math_rsqrt(float x) {
  return TD_SINGLE_NORMAL(x) < TD_SINGLE_NORMALS ? td_single_rsqrt(x) : 1 / sqrtf(x);
}
TD_INLINE double td_math_rsqrt_double(double x) { return 1 / sqrt(x); }

// ---- division ----

TD_INLINE double td_math_fmod_double(double x, double y) {
  return TD_MATH_DIVIDES(x, y) ? td_math_fmod_near_double(x, y) : fmod(x, y);
}
TD_INLINE float td_math_fmod(float x, float y) { return TD_SINGLE_DIVIDES(x, y) ? td_single_fmod(x, y) : fmodf(x, y); }

// Rounded down, as NumPy does: exact where the remainder is.
#define X(type, suffix, fmod, floor, copysign)                                                                         \
  TD_INLINE type td_math_remainder_##suffix(type x, type y) {                                                          \
    type rest = fmod(x, y);                                                                                            \
    if (rest == 0) return copysign(rest, y);                                                                           \
    return (rest < 0) != (y < 0) ? rest + y : rest;                                                                    \
  }                                                                                                                    \
  TD_INLINE type td_math_floor_divide_##suffix(type x, type y) {                                                       \
    if (y == 0) return x / y;                                                                                          \
    type rest = fmod(x, y), quotient = (x - rest) / y;                                                                 \
    if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;                                                             \
    type down = floor(quotient);                                                                                       \
    if (quotient - down > (type)0.5) down += 1;                                                                        \
    return down == 0 ? copysign(0, x / y) : down;                                                                      \
  }
X(float, wide, fmodf, floorf, copysignf)
X(double, wide_double, fmod, floor, copysign)
#undef X
#define X(name)                                                                                                        \
  TD_INLINE float td_math_##name##_float(float x, float y) {                                                           \
    return TD_SINGLE_DIVIDES(x, y) ? td_single_##name(x, y) : td_math_##name##_wide(x, y);                             \
  }                                                                                                                    \
  TD_INLINE double td_math_##name##_double(double x, double y) {                                                       \
    return TD_MATH_DIVIDES(x, y) ? td_math_##name##_near_double(x, y) : td_math_##name##_wide_double(x, y);            \
  }
X(remainder)
X(floor_divide)
#undef X

TD_INLINE int td_math_isnan_float(float x) { return x != x; }
TD_INLINE int td_math_isnan_double(double x) { return x != x; }
TD_INLINE int td_math_isnan_integer(int64_t x) { return (void)x, 0; }
TD_INLINE float td_math_sign_float(float x) { return x != x ? x : (float)((x > 0) - (x < 0)); }
TD_INLINE double td_math_sign_double(double x) { return x != x ? x : (double)((x > 0) - (x < 0)); }
TD_INLINE int64_t td_math_itself(int64_t x) { return x; }
TD_INLINE int td_math_signbit_float(float x) { return copysignf(1, x) < 0; }
TD_INLINE int td_math_signbit_double(double x) { return copysign(1, x) < 0; }

// Rounded to a fraction or a multiple of unit, a power of 10 that may be infinite. Where x * unit overflows, x has no
// further decimals.
TD_INLINE double td_math_decimals_double(double x, double unit) {
  double scaled = x * unit;
  return fabs(scaled) < INFINITY ? rint(scaled) / unit : x;
}
TD_INLINE double td_math_tens_double(double x, double unit) {
  double whole = rint(x / unit);
  return whole == 0 || fabs(x) == INFINITY ? x - x == 0 ? copysign(0, x) : x : whole * unit;
}
TD_INLINE float td_math_decimals(float x, double unit) { return (float)td_math_decimals_double(x, unit); }
TD_INLINE float td_math_tens(float x, double unit) { return (float)td_math_tens_double(x, unit); }

// ---- names for expressions ----

#define TD_FLOAT_CHOICE(x, single, twice) _Generic((x), float: single, double: twice)
#define TD_BOTH_CHOICE(x, name) TD_FLOAT_CHOICE(x, td_math_##name, td_math_##name##_double)
#define TD_SINGLE_CHOICE(x, name) TD_FLOAT_CHOICE(x, td_single_##name, td_math_##name##_double) // anywhere
#define EXP(x) TD_BOTH_CHOICE(x, exp)(x)
#define EXPM1(x) TD_BOTH_CHOICE(x, expm1)(x)
#define LOG(x) TD_BOTH_CHOICE(x, log)(x)
#define LOG2(x) TD_BOTH_CHOICE(x, log2)(x)
#define LOG10(x) TD_BOTH_CHOICE(x, log10)(x)
#define LOG1P(x) TD_BOTH_CHOICE(x, log1p)(x)
#define SIN(x) TD_BOTH_CHOICE(x, sin)(x)
#define COS(x) TD_BOTH_CHOICE(x, cos)(x)
#define TAN(x) TD_BOTH_CHOICE(x, tan)(x)
#define ASIN(x) TD_SINGLE_CHOICE(x, asin)(x)
#define ACOS(x) TD_SINGLE_CHOICE(x, acos)(x)
#define ATAN(x) TD_SINGLE_CHOICE(x, atan)(x)
#define ATAN2(x, y) TD_SINGLE_CHOICE(x, atan2)(x, y)
#define SINH(x) TD_BOTH_CHOICE(x, sinh)(x)
#define COSH(x) TD_BOTH_CHOICE(x, cosh)(x)
#define TANH(x) TD_SINGLE_CHOICE(x, tanh)(x)
#define TANH_SLOPE(x) TD_BOTH_CHOICE(x, tanh_slope)(x)
#define SIGMOID(x) TD_BOTH_CHOICE(x, sigmoid)(x)
#define SIGMOID_SLOPE(x) TD_BOTH_CHOICE(x, sigmoid_slope)(x)
#define SIGMOID_LESS(x, y) TD_BOTH_CHOICE(x, sigmoid_less)(x, y)
#define SOFTPLUS(x) TD_BOTH_CHOICE(x, softplus)(x)
#define GELU(x) TD_BOTH_CHOICE(x, gelu)(x)
#define GELU_SLOPE(x) TD_BOTH_CHOICE(x, gelu_slope)(x)
#define GELU_TANH(x) TD_BOTH_CHOICE(x, gelu_tanh)(x)
#define GELU_TANH_SLOPE(x) TD_BOTH_CHOICE(x, gelu_tanh_slope)(x)
#define MISH(x) ((T)td_math_mish_double(x))
#define MISH_SLOPE(x) ((T)td_math_mish_slope_double(x))
#define TANHSHRINK(x) TD_SINGLE_CHOICE(x, tanhshrink)(x)
#define SILU(x) TD_BOTH_CHOICE(x, silu)(x)
#define SILU_SLOPE(x) TD_BOTH_CHOICE(x, silu_slope)(x)
#define EXP2(x) TD_BOTH_CHOICE(x, exp2)(x)
#define ASINH(x) ((T)td_math_asinh_double(x))
#define ACOSH(x) ((T)td_math_acosh_double(x))
#define ATANH(x) TD_BOTH_CHOICE(x, atanh)(x)
#define LOGIT(x) TD_BOTH_CHOICE(x, logit)(x)
#define LOGADDEXP(x, y) TD_BOTH_CHOICE(x, logaddexp)(x, y)
#define LOGADDEXP2(x, y) TD_BOTH_CHOICE(x, logaddexp2)(x, y)
#define ERF(x) TD_SINGLE_CHOICE(x, erf)(x)
#define ERFC(x) TD_BOTH_CHOICE(x, erfc)(x)
#define CBRT(x) ((T)cbrt(x))
#define HYPOT(x, y) TD_BOTH_CHOICE(x, hypot)(x, y)
#define FMOD(x, y) _Generic((x), float: td_math_fmod, double: td_math_fmod_double, TD_INTEGER_CASES(fmod))(x, y)
#define SQRT(x) TD_FLOAT_CHOICE(x, sqrtf, sqrt)(x)
#define RSQRT(x) TD_BOTH_CHOICE(x, rsqrt)(x)
#define POWER(x, y) _Generic((x), float: td_math_power, double: pow, TD_INTEGER_CASES(power))(x, y)
#define FLOOR_DIVIDE(x, y)                                                                                             \
  _Generic((x), float: td_math_floor_divide_float, double: td_math_floor_divide_double, \
           TD_INTEGER_CASES(floor_divide))(x, y)
#define REMAINDER(x, y)                                                                                                \
  _Generic((x), float: td_math_remainder_float, double: td_math_remainder_double, TD_INTEGER_CASES(remainder))(x, y)
#define ABS(x) _Generic((x), float: fabsf, double: fabs, _Bool: td_integer_abs_uint8, TD_INTEGER_CASES(abs))(x)
#define SIGN(x) _Generic((x), float: td_math_sign_float, double: td_math_sign_double, TD_INTEGER_CASES(sign))(x)
#define ISNAN(x) \
  _Generic((x), float: td_math_isnan_float, double: td_math_isnan_double, default: td_math_isnan_integer)(x)
#define FLOOR(x) _Generic((x), float: floorf, double: floor, default: td_math_itself)(x)
#define CEIL(x) _Generic((x), float: ceilf, double: ceil, default: td_math_itself)(x)
#define RINT(x) _Generic((x), float: rintf, double: rint, default: td_math_itself)(x) // half to even
#define TRUNC(x) _Generic((x), float: truncf, double: trunc, default: td_math_itself)(x)
#define IS_CLOSE(x, y, relative, absolute)                                                                             \
  (((x) == (y)) | ((ABS((x) - (y)) <= (absolute) + (relative) * ABS(y)) & (ABS(y) < (T)INFINITY)))
#define COPYSIGN(x, y) TD_FLOAT_CHOICE(x, copysignf, copysign)(x, y)
#define SIGNBIT(x) TD_FLOAT_CHOICE(x, td_math_signbit_float, td_math_signbit_double)(x)
#define NEXTAFTER(x, y) TD_FLOAT_CHOICE(x, nextafterf, nextafter)(x, y)
#define DECIMALS(x, unit) TD_FLOAT_CHOICE(x, td_math_decimals, td_math_decimals_double)(x, unit)
#define TENS(x, unit) TD_FLOAT_CHOICE(x, td_math_tens, td_math_tens_double)(x, unit)
#define MINIMUM(x, y) ((((x) < (y)) | ISNAN(x)) ? (x) : (y)) // NaN wins
#define MAXIMUM(x, y) ((((x) > (y)) | ISNAN(x)) ? (x) : (y))
double td_digamma(double x); // special.c
#endif
