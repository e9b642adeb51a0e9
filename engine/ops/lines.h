// Loops over one line of floats that softmax, its losses and logsumexp share. TD_LINES(T, name) defines them for a type.
#ifndef TD_OPS_LINES_H
#define TD_OPS_LINES_H
#include "engine/device/cpu/clones.h"
#include "engine/ops/math.h"

// name_largest: the largest of n numbers, NaN where there is one; -inf of none.
// name_exponentials: sum of exp(x - shift), which are written to out unless it is NULL.
#define TD_LINES(T, name)                                                                                 \
  static T name##_largest(const T *x, int64_t n) {                                                        \
    T largest = -(T)INFINITY;                                                                             \
    for (int64_t i = 0; i < n; i++) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;            \
    return largest;                                                                                       \
  }                                                                                                       \
  TD_CLONES static double name##_exponentials(const T *restrict x, int64_t n, T shift, T *restrict out) { \
    enum { LANES = 8 };                                                                                   \
    double sums[LANES] = {0}, sum = 0;                                                                    \
    T block[LANES];                                                                                       \
    int64_t i = 0;                                                                                        \
    for (; i + LANES <= n; i += LANES) {                                                                  \
      for (int l = 0; l < LANES; l++) block[l] = EXP((T)(x[i + l] - shift));                              \
      for (int l = 0; l < LANES; l++) sums[l] += (double)block[l];                                        \
      if (out)                                                                                            \
        for (int l = 0; l < LANES; l++) out[i + l] = block[l];                                            \
    }                                                                                                     \
    for (; i < n; i++) {                                                                                  \
      T e = EXP((T)(x[i] - shift));                                                                       \
      sum += (double)e;                                                                                   \
      if (out) out[i] = e;                                                                                \
    }                                                                                                     \
    for (int l = 0; l < LANES; l++) sum += sums[l];                                                       \
    return sum;                                                                                           \
  }
#endif
