// Scalar functions of integers for the expressions of elementwise rows. Overflow wraps, so they compute in unsigned
// types; nothing here traps: callers have refused zero divisors before, and the smallest integer divided by -1 wraps to
// itself.
#ifndef TD_OPS_INTEGER_H
#define TD_OPS_INTEGER_H
#include <stdint.h>

#define TD_INLINE static inline __attribute__((always_inline))

// X(C type, its unsigned type, suffix)
#define TD_INTEGERS_SIGNED(X) X(int32_t, uint32_t, int32) X(int64_t, uint64_t, int64)
#define TD_INTEGERS(X) X(uint8_t, uint8_t, uint8) TD_INTEGERS_SIGNED(X)

#define X(type, wrapping, suffix)                                                                                      \
  TD_INLINE type td_integer_negative_##suffix(type x) { return (type)((wrapping)0 - (wrapping)x); }                    \
  TD_INLINE type td_integer_abs_##suffix(type x) { return x < 0 ? td_integer_negative_##suffix(x) : x; }               \
  TD_INLINE type td_integer_sign_##suffix(type x) { return (type)((x > 0) - (x < 0)); }                                \
  /* rounds down, as Python does */                                                                                    \
  TD_INLINE type td_integer_floor_divide_##suffix(type x, type y) {                                                    \
    if (y == -1) return td_integer_negative_##suffix(x);                                                               \
    return x / y - (x % y != 0 && (x < 0) != (y < 0));                                                                 \
  }                                                                                                                    \
  /* has the sign of y */                                                                                              \
  TD_INLINE type td_integer_remainder_##suffix(type x, type y) {                                                       \
    type rest = y == -1 ? 0 : x % y;                                                                                   \
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;                                                       \
  }                                                                                                                    \
  /* has the sign of x */                                                                                              \
  TD_INLINE type td_integer_fmod_##suffix(type x, type y) { return y == -1 ? 0 : x % y; }                              \
  TD_INLINE type td_integer_gcd_##suffix(type x, type y) {                                                             \
    wrapping a = (wrapping)td_integer_abs_##suffix(x), b = (wrapping)td_integer_abs_##suffix(y);                       \
    while (b) {                                                                                                        \
      wrapping rest = a % b;                                                                                           \
      a = b;                                                                                                           \
      b = rest;                                                                                                        \
    }                                                                                                                  \
    return (type)a;                                                                                                    \
  }                                                                                                                    \
  TD_INLINE type td_integer_lcm_##suffix(type x, type y) {                                                             \
    wrapping divisor = (wrapping)td_integer_gcd_##suffix(x, y);                                                        \
    if (divisor == 0) return 0;                                                                                        \
    wrapping a = (wrapping)td_integer_abs_##suffix(x), b = (wrapping)td_integer_abs_##suffix(y);                       \
    return td_integer_abs_##suffix((type)(a / divisor * b));                                                           \
  }                                                                                                                    \
  /* a count outside of [0, bits) shifts everything out */                                                             \
  TD_INLINE type td_integer_right_shift_##suffix(type x, type y) {                                                     \
    return x >> ((wrapping)y < 8 * sizeof x ? y : (type)(8 * sizeof x - 1));                                           \
  }
TD_INTEGERS_SIGNED(X)
#undef X

TD_INLINE uint8_t td_integer_abs_uint8(uint8_t x) { return x; }
TD_INLINE uint8_t td_integer_sign_uint8(uint8_t x) { return x != 0; }
TD_INLINE uint8_t td_integer_floor_divide_uint8(uint8_t x, uint8_t y) { return x / y; }
TD_INLINE uint8_t td_integer_remainder_uint8(uint8_t x, uint8_t y) { return x % y; }
TD_INLINE uint8_t td_integer_fmod_uint8(uint8_t x, uint8_t y) { return x % y; }
TD_INLINE uint8_t td_integer_gcd_uint8(uint8_t x, uint8_t y) { return (uint8_t)td_integer_gcd_int32(x, y); }
TD_INLINE uint8_t td_integer_lcm_uint8(uint8_t x, uint8_t y) { return (uint8_t)td_integer_lcm_int32(x, y); }
TD_INLINE uint8_t td_integer_right_shift_uint8(uint8_t x, uint8_t y) { return y < 8 ? x >> y : 0; }

#define X(type, wrapping, suffix)                                                                                      \
  TD_INLINE type td_integer_left_shift_##suffix(type x, type y) {                                                      \
    return (wrapping)y < 8 * sizeof x ? (type)((uint64_t)x << y) : 0;                                                  \
  }                                                                                                                    \
  /* y >= 0; by squaring */                                                                                            \
  TD_INLINE type td_integer_power_##suffix(type x, type y) {                                                           \
    uint64_t base = (uint64_t)x, result = 1;                                                                           \
    for (uint64_t rest = (uint64_t)y; rest; rest >>= 1, base *= base)                                                  \
      if (rest & 1) result *= base;                                                                                    \
    return (type)result;                                                                                               \
  }
TD_INTEGERS(X)
#undef X

// Names for expressions: the function for the type of x.
#define TD_INTEGER_CASES(function)                                                                                     \
  uint8_t: td_integer_##function##_uint8, int32_t: td_integer_##function##_int32, int64_t: td_integer_##function##_int64
#define LEFT_SHIFT(x, y) _Generic((x), TD_INTEGER_CASES(left_shift))(x, y)
#define GCD(x, y) _Generic((x), TD_INTEGER_CASES(gcd))(x, y)
#define LCM(x, y) _Generic((x), TD_INTEGER_CASES(lcm))(x, y)
#define RIGHT_SHIFT(x, y) _Generic((x), TD_INTEGER_CASES(right_shift))(x, y)
#endif
