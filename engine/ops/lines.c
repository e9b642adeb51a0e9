// See lines.h. Other files can't link clones that clang 14 makes: a plain function stands before each.
#include "engine/ops/lines.h"

#include "engine/device/cpu/clones.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

enum { AHEAD = 512 }; // numbers fetched before they are needed: the processor's own foresight ends with a page
enum { LANES = 32, BLOCK_LENGTH = 512 }; // a lane adds so few numbers of a block that it may do so in T
enum { FILL = 8 }; // a block is filled up to a multiple of this: numbers that vectors leave over take long

#define LINES(T, name)                                                                                       \
  TD_CLONES static T name##_largest(const T *x, int64_t n) {                                                 \
    T largest = -(T)INFINITY;                                                                                \
    int64_t i = 0;                                                                                           \
    if (n >= 4 * LANES) {                                                                                    \
      T lanes[LANES];                                                                                        \
      for (int l = 0; l < LANES; l++) lanes[l] = -(T)INFINITY;                                               \
      for (; i + LANES <= n; i += LANES) {                                                                   \
        __builtin_prefetch(x + i + AHEAD);                                                                   \
        __builtin_prefetch(x + i + AHEAD + LANES / 2);                                                       \
        for (int l = 0; l < LANES; l++) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];                \
      }                                                                                                      \
      for (int l = 0; l < LANES; l++) largest = lanes[l] > largest ? lanes[l] : largest;                     \
    }                                                                                                        \
    for (; i < n; i++) largest = x[i] > largest ? x[i] : largest;                                            \
    return largest;                                                                                          \
  }                                                                                                          \
  TD_CLONES static int64_t name##_first(const T *x, int64_t n, T value) {                                 \
    int64_t i = 0;                                                                                        \
    for (int found = 0; i + LANES <= n; i += LANES) {                                                     \
      for (int l = 0; l < LANES; l++) found |= x[i + l] == value;                                         \
      if (found) break;                                                                                   \
    }                                                                                                     \
    while (i + 1 < n && x[i] != value) i++;                                                               \
    return i < n || !n ? i : n - 1;                                                                       \
  }                                                                                                       \
  TD_CLONES static double name##_exponentials(const T *restrict x, int64_t n, int64_t apart, T shift,        \
                                              T *restrict out) {                                             \
    double sum = 0;                                                                                          \
    T block[BLOCK_LENGTH], line[BLOCK_LENGTH];                                                               \
    for (int64_t done = 0; done < n; done += BLOCK_LENGTH, apart -= BLOCK_LENGTH) {                          \
      int64_t count = n - done < BLOCK_LENGTH ? n - done : BLOCK_LENGTH, i = 0;                              \
      int64_t filled = (count + FILL - 1) / FILL * FILL;                                                     \
      const T *from = x + done;                                                                              \
      if (filled > count) {                                                                                  \
        for (int64_t j = 0; j < count; j++) line[j] = from[j];                                               \
        for (int64_t j = count; j < filled; j++) line[j] = shift;                                            \
        from = line;                                                                                         \
      }                                                                                                      \
      TD_INDEPENDENT                                                                                         \
      for (int64_t j = 0; j < filled; j++) block[j] = EXP((T)(from[j] - shift));                             \
      if (out)                                                                                               \
        for (int64_t j = 0; j < count; j++) out[done + j] = block[j];                                        \
      if (apart >= 0 && apart < count) block[apart] = 0;                                                     \
      if (count >= LANES) {                                                                                  \
        T lanes[LANES] = {0};                                                                                \
        for (; i + LANES <= count; i += LANES)                                                               \
          for (int l = 0; l < LANES; l++) lanes[l] += block[i + l];                                          \
        for (int half = LANES / 2; half; half /= 2)                                                          \
          for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                                        \
        sum += (double)lanes[0];                                                                             \
      }                                                                                                      \
      for (; i < count; i++) sum += (double)block[i];                                                        \
    }                                                                                                        \
    return sum;                                                                                              \
  }                                                                                                          \
  T td_##name##_largest(const T *x, int64_t n) { return name##_largest(x, n); }                              \
  int64_t td_##name##_first(const T *x, int64_t n, T value) { return name##_first(x, n, value); }         \
  double td_##name##_exponentials(const T *restrict x, int64_t n, int64_t apart, T shift, T *restrict out) { \
    return name##_exponentials(x, n, apart, shift, out);                                                     \
  }

LINES(float, single)
LINES(double, twofold)
