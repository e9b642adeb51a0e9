// Scalar functions of float32 that are computed in float32 throughout, for the expressions of elementwise rows. Each
// holds where its comment says; math.h has the others' ends, in double. They have no branch, no table and no call, so
// that loops over them vectorise, and are within 4 ulp (gelu's tail within 5.5), most within 2.5, also where a product
// and a sum are rounded apart. No sum has two products: which of them it is fused with is the compiler's choice, and
// may be another one in another loop. The series are minimax fits.
#ifndef TD_OPS_MATH_SINGLE_H
#define TD_OPS_MATH_SINGLE_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "engine/ops/integer.h"

typedef union td_single_word {
  float number;
  uint32_t bits;
} td_single_word;

TD_INLINE uint32_t td_single_bits(float x) { return (td_single_word){ .number = x }.bits; }
TD_INLINE float td_single_number(uint32_t bits) { return (td_single_word){ .bits = bits }.number; }

// Measures of an argument that grow to where a function has other formulas; NaN is beyond all limits.
#define TD_SINGLE_SIZE(x) (td_single_bits(x) & 0x7fffffff)
#define TD_SINGLE_BITS(limit) td_single_bits((float)(limit)) // as TD_SINGLE_SIZE
#define TD_SINGLE_NORMAL(x) (td_single_bits(x) - 0x00800000u) // below the limit: normal and above 0
#define TD_SINGLE_NORMALS 0x7f000000u

// 1 / sqrt(x) of a normal number above 0: a guess by its exponent, bettered by Newton's steps
TD_INLINE float td_single_rsqrt(float x) {
  float half = 0.5f * x, y = td_single_number(0x5f375a86u - (td_single_bits(x) >> 1));
  y = y * (1.5f - half * y * y);
  y = y * (1.5f - half * y * y);
  return y + y * (0.5f - half * y * y);
}

// ---- division ----

// Whole quotients below this are exact, as are the products of divisor and quotient in double.
#define TD_SINGLE_DIVIDES(x, y) ((fabsf(x) < 0x1p22f * fabsf(y)) & (fabsf(y) < INFINITY))

typedef struct td_single_division { // x = quotient y + rest, the quotient rounded to 0
  float quotient, rest;
} td_single_division;

TD_INLINE td_single_division td_single_divide(float x, float y) {
  float quotient = truncf(x / y), rest = (float)((double)x - (double)quotient * (double)y);
  bool over = (rest < 0) != (x < 0) && rest != 0; // rounding took x / y to the next whole number
  rest += over ? copysignf(y, x) : 0;
  return (td_single_division){ quotient - (over ? copysignf(1, quotient) : 0), copysignf(rest, x) };
}
TD_INLINE float td_single_fmod(float x, float y) { return td_single_divide(x, y).rest; }
TD_INLINE float td_single_remainder(float x, float y) { // with the sign of y
  float rest = td_single_divide(x, y).rest, value = (rest < 0) != (y < 0) ? rest + y : rest;
  return rest == 0 ? copysignf(rest, y) : value;
}
TD_INLINE float td_single_floor_divide(float x, float y) {
  td_single_division d = td_single_divide(x, y);
  float down = d.quotient - (d.rest != 0 && (d.rest < 0) != (y < 0) ? 1 : 0);
  return down == 0 ? copysignf(0, x / y) : down;
}

// ---- exponentials ----

#define TD_SINGLE_ONE 0x3f800000u
#define TD_SINGLE_SHIFT 0x1.8p23f // adding it rounds to an integer that stands in the low bits
#define TD_SINGLE_EXP_NEAR 87 // up to here e^x and e^-x are normal
#define TD_SINGLE_EXP2_NEAR 126
#define TD_SINGLE_ANGLE_NEAR 128
#define TD_SINGLE_ANGLE_FAR 0x1p17f
#define TD_SINGLE_BELL_NEAR 12 // up to here the normal distribution's tail is normal, and
#define TD_SINGLE_ERFC_NEAR 9  // erfc

typedef struct td_single_split { // x = n ln 2 + r, |r| <= ln 2 / 2
  uint32_t power; // n << 23
  float r;
} td_single_split;

TD_INLINE td_single_split td_single_split_of(float x) { // ln 2 is taken off in two steps
  float shifted = x * 0x1.715476p+0f + TD_SINGLE_SHIFT, n = shifted - TD_SINGLE_SHIFT;
  return (td_single_split){ td_single_bits(shifted) << 23, x - n * 0x1.63p-1f - n * -0x1.bd0106p-13f };
}

TD_INLINE float td_single_exp_series(float r) {
  float series = 0.0416682661f + r * (0.00836867746f + r * 0.00138207339f);
  return 1 + r * (1 + r * (0.49999994f + r * (0.166665211f + r * series)));
}

TD_INLINE float td_single_exp_of(td_single_split s) { // of a normal power of 2
  return td_single_number(td_single_bits(td_single_exp_series(s.r)) + s.power);
}
TD_INLINE float td_single_exp(float x) { return td_single_exp_of(td_single_split_of(x)); } // |x| < TD_SINGLE_EXP_NEAR

TD_INLINE float td_single_exp2(float x) { // |x| < TD_SINGLE_EXP2_NEAR
  float shifted = x + TD_SINGLE_SHIFT, r = x - (shifted - TD_SINGLE_SHIFT);
  float series = 0.00961850304f + r * (0.00133909972f + r * 0.00015327803f);
  series = 1 + r * (0.693147182f + r * (0.240226477f + r * (0.0555035956f + r * series)));
  return td_single_number(td_single_bits(series) + (td_single_bits(shifted) << 23));
}

TD_INLINE float td_single_expm1_series(float r) {
  float series = 0.0416674353f + r * (0.00836626161f + r * 0.00138706574f);
  return r + r * r * (0.49999997f + r * (0.166665465f + r * series));
}
TD_INLINE float td_single_expm1(float x) { // |x| < TD_SINGLE_EXP_NEAR; -0 gives 0
  td_single_split s = td_single_split_of(x);
  float scale = td_single_number(s.power + TD_SINGLE_ONE);
  return scale * td_single_expm1_series(s.r) + (scale - 1);
}

TD_INLINE float td_single_tanh(float x) { // anywhere
  float a = fabsf(x);
  a = a > 10 ? 10 : a;
  float t = td_single_expm1(a + a);
  return copysignf(t / (t + 2), x);
}

// Of e = e^-|x|. Derivatives come from x, as those in math.h.
TD_INLINE float td_single_sigmoid_by(float x, float e) { return (x >= 0 ? 1 : e) / (1 + e); }
TD_INLINE float td_single_sigmoid_slope_by(float e) { return e / (1 + e * (2 + e)); }

// The others for |x| < TD_SINGLE_EXP_NEAR.
TD_INLINE float td_single_sigmoid(float x) { return td_single_sigmoid_by(x, td_single_exp(-fabsf(x))); }
TD_INLINE float td_single_sigmoid_slope(float x) { return td_single_sigmoid_slope_by(td_single_exp(-fabsf(x))); }
TD_INLINE float td_single_tanh_slope(float x) { return 4 * td_single_sigmoid_slope(x + x); } // for half as far an x
TD_INLINE float td_single_silu(float x) {
  float e = td_single_exp(-fabsf(x));
  return x * (x >= 0 ? 1 : e) / (1 + e);
}
TD_INLINE float td_single_silu_slope(float x) {
  float e = td_single_exp(-fabsf(x)), part = 1 / (1 + e), other = e * part;
  return (x >= 0 ? part : other) * (1 + x * (x >= 0 ? other : part));
}

// ---- logarithms ----

typedef struct td_single_fraction { // x = 2^-n (1 + f), f in [-1/3, 1/3)
  uint32_t power; // n << 23
  float n, f;
} td_single_fraction;

#define TD_SINGLE_LOG_LOW 0x3f2aaaabu // 2/3

TD_INLINE uint32_t td_single_log_power(float x) {
  return (TD_SINGLE_LOG_LOW + 0x7fffffu - td_single_bits(x)) & 0xff800000u;
}
TD_INLINE float td_single_log_count(uint32_t power) { return (float)((int32_t)power >> 23); }

TD_INLINE float td_single_log_series(float f) { // (log(1 + f) - f) / f^2
  float series = -0.164710253f + f * (0.140412316f + f * (-0.151313275f + f * 0.138271585f));
  return -0.5f + f * (0.333332658f + f * (-0.250042796f + f * (0.20007962f + f * series)));
}
// log(1 + f) - n ln 2, which is taken off in two steps; to the bases 2 and 10 too
TD_INLINE float td_single_log_sum(float f, float n) {
  return (f - n * 0x1.0bfbep-15f) + f * f * td_single_log_series(f) - n * 0x1.62ep-1f;
}
TD_INLINE float td_single_log2_sum(float f, float n) {
  return (f + f * f * td_single_log_series(f)) * 0x1.715476p+0f - n;
}
TD_INLINE float td_single_log10_sum(float f, float n) {
  float whole = n * 0x1.344p-2f + 0; // exact, and no product any more
  return (f + f * f * td_single_log_series(f)) * 0x1.bcb7b2p-2f - whole - n * 0x1.3509f8p-18f;
}

// x a normal number above 0
TD_INLINE float td_single_log_part(float x, float *n) { // f, with log(x) = log(1 + f) - n ln 2
  uint32_t power = td_single_log_power(x);
  float f = td_single_number(td_single_bits(x) + power) - 1;
  *n = td_single_log_count(power);
  return f;
}
#define X(name)                                                                                                        \
  TD_INLINE float td_single_##name(float x) {                                                                          \
    float n, f = td_single_log_part(x, &n);                                                                            \
    return td_single_##name##_sum(f, n);                                                                               \
  }
X(log)
X(log2)
X(log10)
#undef X

// log(1 + x), x in (-1, 2^126); -0 gives 0
TD_INLINE float td_single_log1p_part(float x, uint32_t power) {
  float scale = td_single_number(power + TD_SINGLE_ONE);
  return x * scale - (1 - scale);
}
TD_INLINE float td_single_log1p(float x) {
  uint32_t power = td_single_log_power(1 + x);
  return td_single_log_sum(td_single_log1p_part(x, power), td_single_log_count(power));
}

TD_INLINE float td_single_softplus(float x) { // |x| < TD_SINGLE_EXP_NEAR
  return (x > 0 ? x : 0) + td_single_log1p(td_single_exp(-fabsf(x)));
}

TD_INLINE float td_single_atanh(float x) { // |x| < 1
  float a = fabsf(x);
  return copysignf(0.5f * td_single_log1p(2 * a / (1 - a)), x);
}
// log(x / (1 - x)), x a normal number in (0, 1); around 1/2, where it is near 0, by the difference from 1/2
TD_INLINE float td_single_logit(float x) {
  float rest = 1 - x, part = 1 / rest, ratio = x * part;
  uint32_t power = td_single_log_power(ratio);
  float scaled = ratio * td_single_number(power + TD_SINGLE_ONE);
  float f = (scaled - 1) - scaled * part * ((1 - rest) - x); // the rounding of 1 - x is made good
  return td_single_log_sum(power ? f : (2 * x - 1) * part, td_single_log_count(power));
}
// log(e^x + e^y), |x - y| < TD_SINGLE_EXP_NEAR
TD_INLINE float td_single_logaddexp(float x, float y) {
  return (x > y ? x : y) + td_single_log1p(td_single_exp(-fabsf(x - y)));
}
// log2(2^x + 2^y), |x - y| < TD_SINGLE_EXP2_NEAR
TD_INLINE float td_single_logaddexp2(float x, float y) {
  return (x > y ? x : y) + td_single_log1p(td_single_exp2(-fabsf(x - y))) * 0x1.715476p+0f;
}

// x - tanh(x), anywhere: by its series near 0, as (x - 1) + 2 / (e^2x + 1) beyond, where little cancels
TD_INLINE float td_single_tanhshrink(float x) {
  float a = fabsf(x), z = x * x, most = a > 10 ? 10 : a;
  float near = -0.0216598101f + z * (0.00821786094f + z * (-0.00250917231f + z * 0.000420165452f));
  near = a * z * (0.333333313f + z * (-0.133331299f + z * (0.0539347976f + z * near)));
  float far = (a - 1) + 2 / (1 + td_single_exp(most + most));
  return copysignf(a < 1 ? near : far, x);
}

// ---- angles ----

// pi = high + low, and half of it
#define TD_SINGLE_PI 0x1.921fb6p+1f
#define TD_SINGLE_PI_LOW -0x1.777a5cp-24f

typedef struct td_single_turn { // x = quadrant * pi/2 + r
  uint32_t quadrant;            // its two low bits count
  float r;                      // in [-0.8, 0.8]
} td_single_turn;

// |x| < TD_SINGLE_ANGLE_NEAR: pi/2 in 16 bits, the next 16 and the next 24; products with the first two are exact
TD_INLINE td_single_turn td_single_turn_of(float x) {
  float shifted = x * 0x1.45f306p-1f + TD_SINGLE_SHIFT, n = shifted - TD_SINGLE_SHIFT;
  return (td_single_turn){ td_single_bits(shifted), x - n * 0x1.921ep+0f - n * 0x1.b544p-16f - n * 0x1.0b4612p-34f };
}
// |x| < TD_SINGLE_ANGLE_FAR: in double, where nothing is lost
TD_INLINE td_single_turn td_single_turn_far(float x) {
  float shifted = x * 0x1.45f306p-1f + TD_SINGLE_SHIFT, n = shifted - TD_SINGLE_SHIFT;
  double r = (double)x - (double)n * 0x1.921fb544p+0 - (double)n * 0x1.0b4611a626331p-34;
  return (td_single_turn){ td_single_bits(shifted), (float)r };
}
typedef struct td_single_circle {
  float sine, cosine; // of r
} td_single_circle;

TD_INLINE td_single_circle td_single_circle_of(float r) {
  float z = r * r;
  float sine = -0.166666538f + z * (0.0083320979f + z * -0.000195060231f);
  float cosine = 0.0416666456f + z * (-0.00138872908f + z * 2.44286457e-05f);
  return (td_single_circle){ r + r * z * sine, 1 + z * (-0.5f + z * cosine) };
}
TD_INLINE float td_single_sine_of(td_single_turn turn, uint32_t quarters) { // of the angle and so many right ones
  td_single_circle c = td_single_circle_of(turn.r);
  float value = (turn.quadrant + quarters) & 1 ? c.cosine : c.sine;
  return td_single_number(td_single_bits(value) ^ ((turn.quadrant + quarters) & 2) << 30);
}
TD_INLINE float td_single_tangent_of(td_single_turn turn) {
  td_single_circle c = td_single_circle_of(turn.r);
  bool odd = turn.quadrant & 1;
  return (odd ? -c.cosine : c.sine) / (odd ? c.sine : c.cosine);
}
TD_INLINE float td_single_sin(float x) { return x == 0 ? x : td_single_sine_of(td_single_turn_of(x), 0); }
TD_INLINE float td_single_cos(float x) { return td_single_sine_of(td_single_turn_of(x), 1); }
TD_INLINE float td_single_tan(float x) { return x == 0 ? x : td_single_tangent_of(td_single_turn_of(x)); }
TD_INLINE float td_single_sin_far(float x) { return td_single_sine_of(td_single_turn_far(x), 0); }
TD_INLINE float td_single_cos_far(float x) { return td_single_sine_of(td_single_turn_far(x), 1); }
TD_INLINE float td_single_tan_far(float x) { return td_single_tangent_of(td_single_turn_far(x)); }

// The others anywhere.
TD_INLINE float td_single_atan_ratio(float low, float high) { // atan(low / high), 0 <= low <= high
  float t = low / high, z = t * t;
  float series = 0.106657691f + z * (-0.0755166113f + z * (0.043204762f + z * (-0.0163632315f + z * 0.00291943946f)));
  return t + t * z * (-0.333331525f + z * (0.199937671f + z * (-0.14211002f + z * series)));
}
TD_INLINE float td_single_atan(float x) {
  float a = fabsf(x);
  bool steep = a > 1;
  float angle = td_single_atan_ratio(steep ? 1 : a, steep ? a : 1);
  return copysignf(steep ? TD_SINGLE_PI / 2 - (angle - TD_SINGLE_PI_LOW / 2) : angle, x);
}
TD_INLINE float td_single_atan2(float y, float x) {
  float a = fabsf(y), b = fabsf(x);
  bool steep = a > b, equal = a == b;
  float low = steep ? b : a, high = steep ? a : b;
  low = equal ? high > 0 : low; // of two infinities the ratio is 1, of two zeros 0
  high = equal ? 1 : high;
  float angle = td_single_atan_ratio(low, high);
  angle = steep ? TD_SINGLE_PI / 2 - (angle - TD_SINGLE_PI_LOW / 2) : angle;
  angle = copysignf(1, x) < 0 ? TD_SINGLE_PI - (angle - TD_SINGLE_PI_LOW) : angle;
  return copysignf(x != x ? x : angle, y);
}

typedef struct td_single_arc { // asin of s = |x|: what itself, or what pi/2 lacks of it, far
  bool far;
  float angle;
} td_single_arc;

TD_INLINE td_single_arc td_single_arc_of(float s) {
  bool far = s > 0.5f;
  float high = (1 - s) / 2, w = far ? sqrtf(high) : s, z = far ? high : s * s;
  float series = 0.0454837717f + z * (0.0241127945f + z * 0.0422807895f);
  float angle = w + w * z * (0.166667551f + z * (0.0749519169f + z * series));
  return (td_single_arc){ far, far ? angle + angle : angle };
}
TD_INLINE float td_single_asin(float x) {
  td_single_arc a = td_single_arc_of(fabsf(x));
  return copysignf(a.far ? TD_SINGLE_PI / 2 - (a.angle - TD_SINGLE_PI_LOW / 2) : a.angle, x);
}
TD_INLINE float td_single_acos(float x) {
  td_single_arc a = td_single_arc_of(fabsf(x));
  float far = x < 0 ? TD_SINGLE_PI - (a.angle - TD_SINGLE_PI_LOW) : a.angle;
  return a.far ? far : TD_SINGLE_PI / 2 - (copysignf(a.angle, x) - TD_SINGLE_PI_LOW / 2);
}

// ---- the normal distribution ----

TD_INLINE float td_single_erf(float x) { // anywhere
  float a = fabsf(x), z = x * x, most = a > 4 ? 4 : a;
  float near = 0.112804919f + z * (-0.0267280545f + z * (0.00494547561f + z * -0.000577929954f));
  near = x + x * (0.128379107f + z * (-0.37612322f + z * near));
  float power = -0.105274715f + most * (0.022898186f + most * (-0.00321750948f + most * 0.000214293439f));
  power = most * (-1.12851727f + most * (-0.635708511f + most * power)); // log(erfc(a))
  return a >= 0.92f ? copysignf(1 - td_single_exp(power), x) : near; // near is NaN where x is
}

// exp(-p x^2), p 1/2 or 1, its argument above -TD_SINGLE_EXP_NEAR
TD_INLINE float td_single_bell(float x, float p) {
  float head = td_single_number(td_single_bits(x) & 0xfffff000u); // its square is exact
  td_single_split s = td_single_split_of(-p * head * head);
  s.r = s.r + p * (head - x) * (head + x);
  return td_single_exp_of(s);
}
// share exp(s^2) erfc(s) for s in [0, 9], from 3/4 s / share; share a power of 2
TD_INLINE float td_single_erfc_ratio(float part, float share) {
  float t = share / (1 + share * part), u = part * t;
  float series = 0.145944074f + u * (-0.236772344f + u * (0.388656706f + u * (-0.386299282f + u * 0.130943239f)));
  series = -0.231351763f + u * (0.0388775729f + u * (0.0776814595f + u * series));
  return t + t * u * (-0.504503608f + u * series);
}
TD_INLINE float td_single_erfc(float x) { // |x| < 9
  float tail = td_single_bell(x, 1) * td_single_erfc_ratio(fabsf(x) * 0.75f, 1);
  return x > 0 ? tail : 2 - tail;
}
// Probability that a standard normal number is above |x| < 12, from its bell
TD_INLINE float td_single_normal_tail(float x, float bell) {
  return bell * td_single_erfc_ratio(fabsf(x) * 0x1.0f876cp+0f, 0.5f); // 1.5 sqrt(1/2)
}
// x times the probability that such a number is below x, and its derivative
TD_INLINE float td_single_gelu(float x) {
  return (x >= 0 ? x : -0.f) - fabsf(x) * td_single_normal_tail(x, td_single_bell(x, 0.5f));
}
TD_INLINE float td_single_gelu_slope(float x) {
  float bell = td_single_bell(x, 0.5f), tail = td_single_normal_tail(x, bell);
  return (x > 0 ? 1 - tail : tail) + x * bell * 0x1.988454p-2f;
}

// gelu by tanh as x sigmoid(u) with u = 2 sqrt(2 / pi) (x + 0.044715 x^3), and its derivative; |x| < 9. u is computed
// in double: its exponential would multiply what float32 lacks.
#define TD_GELU_1 1.5957691216057308  // 2 sqrt(2 / pi)
#define TD_GELU_3 0.07135481627260024 // 0.044715 of it
#define TD_SINGLE_GELU_NEAR 9
TD_INLINE float td_single_gelu_power(float x) { // e^-|u|
  double v = fabs((double)x), u = v * (TD_GELU_1 + TD_GELU_3 * v * v);
  td_single_split s = td_single_split_of(-(float)u);
  s.r = s.r + (float)((double)(float)u - u);
  return td_single_exp_of(s);
}
TD_INLINE float td_single_gelu_tanh(float x) {
  float e = td_single_gelu_power(x);
  return x * (x >= 0 ? 1 : e) / (1 + e);
}
TD_INLINE float td_single_gelu_tanh_slope(float x) {
  float e = td_single_gelu_power(x), part = 1 / (1 + e), other = e * part;
  float steep = (float)TD_GELU_1 + (float)(3 * TD_GELU_3) * x * x;
  return (x >= 0 ? part : other) * (1 + x * steep * (x >= 0 ? other : part));
}

// The number whose erf is x, |x| < 1, from w = -log(1 - x^2) (after Giles: Approximating the erfinv function, 2010)
TD_INLINE float td_single_erfinv(float x) {
  float a = fabsf(x), w = -td_single_log((1 - a) * (1 + a)), c = w - 2.5f, t = sqrtf(w) - 3;
  float center = -4.93073503e-06f + c * (-3.52098209e-06f + c * (4.57855265e-07f + c * (2.791732e-08f + c *
                 -8.13001133e-09f)));
  center = -0.00417766394f + c * (-0.001252783f + c * (0.000218569941f + c * center));
  float tail = -0.00365003641f + t * (0.00129418634f + t * (7.89611586e-05f + t * -0.000159852221f));
  tail = 0.00943549443f + t * (-0.00762996683f + t * (0.0057633291f + t * tail));
  center = 1.50140941f + c * (0.246640295f + c * center);
  tail = 2.83297706f + t * (1.00167489f + t * tail);
  return x * (w < 5 ? center : tail);
}
#endif
