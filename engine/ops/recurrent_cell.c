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

#define LSTM(T, name)                                                                                      \
  TD_CLONES static void name##_lstm(const td_cell_step *s) {                                               \
    BLOCKS(T);                                                                                             \
    const T *restrict c_before = s->c_before;                                                              \
    TD_INDEPENDENT for (int64_t j = 0; j < 2 * H; j++) kept[j] = SIGMOID(kept[j] + r[j] + bias[j]);        \
    TD_INDEPENDENT for (int64_t j = 2 * H; j < 3 * H; j++) kept[j] = TANH(kept[j] + r[j] + bias[j]);       \
    TD_INDEPENDENT for (int64_t j = 3 * H; j < 4 * H; j++) kept[j] = SIGMOID(kept[j] + r[j] + bias[j]);    \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                       \
      T new_c = kept[H + j] * c_before[j] + kept[j] * kept[2 * H + j];                                     \
      kept[4 * H + j] = new_c;                                                                             \
      h[j] = kept[3 * H + j] * TANH(new_c);                                                                \
    }                                                                                                      \
  }                                                                                                        \
  TD_CLONES static void name##_lstm_back(const td_cell_step *s) {                                          \
    COTANGENTS(T);                                                                                         \
    const T *restrict c_before = s->c_before;                                                              \
    T *restrict dc = s->dc;                                                                                \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                       \
      T i = kept[j], f = kept[H + j], g = kept[2 * H + j], o = kept[3 * H + j], t = TANH(kept[4 * H + j]); \
      T d = dc[j] + EXTRA(4) + dh[j] * o * (1 - t * t);                                                    \
      z[j] = (d * g + EXTRA(0)) * i * (1 - i);                                                             \
      z[H + j] = (d * c_before[j] + EXTRA(1)) * f * (1 - f);                                               \
      z[2 * H + j] = (d * i + EXTRA(2)) * (1 - g * g);                                                     \
      z[3 * H + j] = (dh[j] * t + EXTRA(3)) * o * (1 - o);                                                 \
      dc[j] = d * f;                                                                                       \
      dh[j] = 0;                                                                                           \
    }                                                                                                      \
  }

#define GRU(T, name)                                                                                \
  TD_CLONES static void name##_gru(const td_cell_step *s) {                                         \
    BLOCKS(T);                                                                                      \
    TD_INDEPENDENT for (int64_t j = 0; j < 2 * H; j++) kept[j] = SIGMOID(kept[j] + r[j] + bias[j]); \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                \
      T q = r[2 * H + j] + bias[3 * H + j], u = kept[H + j];                                        \
      T n = TANH(kept[2 * H + j] + bias[2 * H + j] + kept[j] * q);                                  \
      kept[2 * H + j] = n;                                                                          \
      kept[3 * H + j] = q;                                                                          \
      h[j] = n + u * (before[j] - n);                                                               \
    }                                                                                               \
  }                                                                                                 \
  TD_CLONES static void name##_gru_back(const td_cell_step *s) {                                    \
    COTANGENTS(T);                                                                                  \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                \
      T g = kept[j], u = kept[H + j], n = kept[2 * H + j], q = kept[3 * H + j];                     \
      T a = (dh[j] * (1 - u) + EXTRA(2)) * (1 - n * n);                                             \
      z[j] = a;                                                                                     \
      z[H + j] = (a * q + EXTRA(0)) * g * (1 - g);                                                  \
      z[2 * H + j] = (dh[j] * (before[j] - n) + EXTRA(1)) * u * (1 - u);                            \
      z[3 * H + j] = a * g + EXTRA(3);                                                              \
      dh[j] *= u;                                                                                   \
    }                                                                                               \
  }

#define PLAIN(T, name, kind, FUNCTION, BACK)                                                           \
  TD_CLONES static void name##_##kind(const td_cell_step *s) {                                          \
    BLOCKS(T);                                                                                          \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) h[j] = kept[j] = FUNCTION(kept[j] + r[j] + bias[j]); \
  }                                                                                                     \
  TD_CLONES static void name##_##kind##_back(const td_cell_step *s) {                                   \
    COTANGENTS(T);                                                                                      \
    TD_INDEPENDENT for (int64_t j = 0; j < H; j++) {                                                    \
      z[j] = (dh[j] + EXTRA(0)) * BACK(kept[j]);                                                        \
      dh[j] = 0;                                                                                        \
    }                                                                                                   \
  }

#define RELU(x) MAXIMUM(x, 0)
#define TANH_BACK(y) (1 - (y) * (y))
#define RELU_BACK(y) ((y) > 0)
LSTM(float, single)
LSTM(double, twofold)
GRU(float, single)
GRU(double, twofold)
PLAIN(float, single, tanh, TANH, TANH_BACK)
PLAIN(double, twofold, tanh, TANH, TANH_BACK)
PLAIN(float, single, relu, RELU, RELU_BACK)
PLAIN(double, twofold, relu, RELU, RELU_BACK)

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
