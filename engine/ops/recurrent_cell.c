#include "engine/ops/recurrent_cell.h"

#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

#define BLOCKS(T)                                                                                \
  const int64_t H = s->units;                                                                    \
  T *restrict kept = s->kept;                                                                    \
  const T *restrict bias = s->bias, *restrict r = s->from_state, *restrict before = s->h_before; \
  T *restrict h = s->h;                                                                          \
  (void)before, (void)h, (void)r, (void)bias

#define COTANGENTS(T)                                                                                    \
  const int64_t H = s->units;                                                                            \
  const T *restrict kept = s->kept, *restrict extra = s->kept_cotangent, *restrict before = s->h_before; \
  T *restrict dh = s->dh, *restrict z = s->gradients;                                                    \
  (void)before
#define EXTRA(block) (extra ? extra[(block)*H + j] : 0)

// How gates are kept, so that their slopes have all digits where they are flat and cost no exponential: a sigmoid as
// its value below 1/2, which is never quite 0, and as what it lacks to 1, negative, above; a tanh by its argument.
#define LEAST 0x1p-126
#define GATE(T, x, value, kept) /* value: what a step uses now */                \
  const T value##_share = SIGMOID(-ABS(x)), value = (x) < 0 ? value##_share : 1 - value##_share; \
  kept = (x) < 0 ? MAXIMUM(value##_share, (T)LEAST) : -value##_share
#define VALUE(kept) ((kept) > 0 ? (kept) : 1 + (kept))
#define LACK(kept) ((kept) > 0 ? 1 - (kept) : -(kept)) // 1 - VALUE
#define SLOPE(kept) (ABS(kept) * (1 - ABS(kept)))
#define TANH_OF(T, x, value, slope)                                                           \
  const T value##_e = EXPM1(MINIMUM(2 * ABS(x), (T)(sizeof(T) == sizeof(float) ? 80 : 700))), \
          value##_d = 2 + value##_e;                                                          \
  const T value = (x) < 0 ? -value##_e / value##_d : value##_e / value##_d,                   \
          slope = (1 + value##_e) / value##_d * (4 / value##_d)

#define LSTM(T, name)                                                                                      \
  TD_CLONES static void name##_lstm(const td_cell_step *s) {                                               \
    BLOCKS(T);                                                                                             \
    const T *restrict c_before = s->c_before;                                                              \
    T *restrict c = kept + 4 * H;                                                                          \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                       \
      const T x = kept[H + j] + r[H + j] + bias[H + j];                                                    \
      GATE(T, x, f, kept[H + j]);                                                                          \
      c[j] = f * c_before[j];                                                                              \
    }                                                                                                      \
    TD_INDEPENDENT for (int64_t j = 2 * H; j < 3 * H; j++) kept[j] += r[j] + bias[j];                      \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                       \
      const T x = kept[j] + r[j] + bias[j];                                                                \
      GATE(T, x, i, kept[j]);                                                                              \
      c[j] += i * TANH(kept[2 * H + j]);                                                                   \
    }                                                                                                      \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                       \
      const T x = kept[3 * H + j] + r[3 * H + j] + bias[3 * H + j];                                        \
      GATE(T, x, o, kept[3 * H + j]);                                                                      \
      h[j] = o * TANH(c[j]);                                                                               \
    }                                                                                                      \
  }                                                                                                        \
  TD_CLONES static void name##_lstm_back(const td_cell_step *s) {                                          \
    COTANGENTS(T);                                                                                         \
    const T *restrict c_before = s->c_before;                                                              \
    T *restrict dc = s->dc;                                                                                \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                       \
      const T i = kept[j], f = kept[H + j], o = kept[3 * H + j];                                           \
      TANH_OF(T, kept[2 * H + j], g, g_slope);                                                             \
      TANH_OF(T, kept[4 * H + j], t, t_slope);                                                             \
      const T d = dc[j] + EXTRA(4) + dh[j] * VALUE(o) * t_slope;                                           \
      z[j] = (d * g + EXTRA(0)) * SLOPE(i);                                                                \
      z[H + j] = (d * c_before[j] + EXTRA(1)) * SLOPE(f);                                                  \
      z[2 * H + j] = d * VALUE(i) * g_slope + EXTRA(2);                                                    \
      z[3 * H + j] = (dh[j] * t + EXTRA(3)) * SLOPE(o);                                                    \
      dc[j] = d * VALUE(f);                                                                                \
      dh[j] = 0;                                                                                           \
    }                                                                                                      \
  }

#define GRU(T, name)                                                                             \
  TD_CLONES static void name##_gru(const td_cell_step *s) {                                      \
    BLOCKS(T);                                                                                   \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                             \
      const T x = kept[j] + r[j] + bias[j], q = r[2 * H + j] + bias[3 * H + j];                  \
      GATE(T, x, g, kept[j]);                                                                    \
      kept[2 * H + j] += bias[2 * H + j] + g * q;                                                \
      kept[3 * H + j] = q;                                                                       \
    }                                                                                            \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                             \
      const T x = kept[H + j] + r[H + j] + bias[H + j], n = TANH(kept[2 * H + j]);               \
      GATE(T, x, u, kept[H + j]);                                                                \
      h[j] = n + u * (before[j] - n);                                                            \
    }                                                                                            \
  }                                                                                              \
  TD_CLONES static void name##_gru_back(const td_cell_step *s) {                                 \
    COTANGENTS(T);                                                                               \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                             \
      const T g = kept[j], u = kept[H + j], q = kept[3 * H + j];                                 \
      TANH_OF(T, kept[2 * H + j], n, n_slope);                                                   \
      const T a = dh[j] * LACK(u) * n_slope + EXTRA(2);                                          \
      z[j] = a;                                                                                  \
      z[H + j] = (a * q + EXTRA(0)) * SLOPE(g);                                                  \
      z[2 * H + j] = (dh[j] * (before[j] - n) + EXTRA(1)) * SLOPE(u);                            \
      z[3 * H + j] = a * VALUE(g) + EXTRA(3);                                                    \
      dh[j] *= VALUE(u);                                                                         \
    }                                                                                            \
  }

#define PLAIN(T, name, kind, FUNCTION, FLAT)                          \
  TD_CLONES static void name##_##kind(const td_cell_step *s) {        \
    BLOCKS(T);                                                        \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                  \
      kept[j] += r[j] + bias[j];                                      \
      h[j] = FUNCTION(kept[j]);                                       \
    }                                                                 \
  }                                                                   \
  TD_CLONES static void name##_##kind##_back(const td_cell_step *s) { \
    COTANGENTS(T);                                                    \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                  \
      z[j] = dh[j] * FLAT(kept[j]) + EXTRA(0);                        \
      dh[j] = 0;                                                      \
    }                                                                 \
  }

#define RELU(x) MAXIMUM(x, 0)
#define RELU_SLOPE(x) ((x) > 0)
LSTM(float, single)
LSTM(double, twofold)
GRU(float, single)
GRU(double, twofold)
PLAIN(float, single, tanh, TANH, TANH_SLOPE)
PLAIN(double, twofold, tanh, TANH, TANH_SLOPE)
PLAIN(float, single, relu, RELU, RELU_SLOPE)
PLAIN(double, twofold, relu, RELU, RELU_SLOPE)

const td_cell td_cell_lstm = {.gates = 4,
                              .kept = 5,
                              .gradients = 4,
                              .has_c = true,
                              .forward = {single_lstm, twofold_lstm},
                              .backward = {single_lstm_back, twofold_lstm_back}};
const td_cell td_cell_gru = {.gates = 3,
                             .kept = 4,
                             .gradients = 4,
                             .forward = {single_gru, twofold_gru},
                             .backward = {single_gru_back, twofold_gru_back}};
const td_cell td_cell_tanh = {.gates = 1,
                              .kept = 1,
                              .gradients = 1,
                              .forward = {single_tanh, twofold_tanh},
                              .backward = {single_tanh_back, twofold_tanh_back}};
const td_cell td_cell_relu = {.gates = 1,
                              .kept = 1,
                              .gradients = 1,
                              .forward = {single_relu, twofold_relu},
                              .backward = {single_relu_back, twofold_relu_back}};
