// Reducers whose state is a number: state = STEP(state, element, STATE) from START on. Elements of a line are folded in
// lanes side by side, and lanes and blocks with COMBINE.
#ifndef TD_OPS_STATES_H
#define TD_OPS_STATES_H
#include "engine/device/cpu/clones.h"
#include "engine/ops/reduce.h"

enum {
  TD_LANES = 32,
  TD_NARROW = 16, // columns, of which several rows are folded at once
  TD_AHEAD = 8192, // bytes fetched before they are needed: the processor's own foresight ends with a page
};

// The count elements that lie TD_AHEAD bytes behind x.
#define TD_FETCH(x, count)                                                      \
  for (int fetched = 0; fetched < (int)((count) * sizeof *(x)); fetched += 64)  \
    __builtin_prefetch((const char *)(x) + TD_AHEAD + fetched)

// A finish for states that are results.
#define TD_STORE(name, type)                                                         \
  static void name(const void *states, int64_t count, const td_finish *to) {        \
    const type *a = states;                                                          \
    for (int64_t i = 0; i < count; i++) ((type *)to->out[0])[i * to->stride] = a[i]; \
  }

// name_reducer, for elements of a type.
#define TD_STATES(type, STATE, name, START, STEP, COMBINE, FINISH)                                                     \
  static void name##_start(void *states, int64_t count) {                                                             \
    STATE *a = states;                                                                                                \
    for (int64_t i = 0; i < count; i++) a[i] = START;                                                                 \
  }                                                                                                                   \
  TD_CLONES static void name##_lines(void *states, const td_piece *piece) {                                           \
    STATE *a = states;                                                                                                \
    const type *x = piece->x;                                                                                         \
    for (int64_t r = 0, n = piece->n; r < piece->rows; r++, x += piece->pitch) {                                      \
      STATE all = a[r];                                                                                               \
      int64_t i = 0;                                                                                                  \
      if (n >= 4 * TD_LANES) {                                                                                         \
        STATE lanes[TD_LANES];                                                                                         \
        for (int l = 0; l < TD_LANES; l++) lanes[l] = START;                                                           \
        for (; i + TD_LANES <= n; i += TD_LANES) {                                                                    \
          TD_FETCH(x + i, TD_LANES);                                                                                  \
          for (int l = 0; l < TD_LANES; l++) lanes[l] = STEP(lanes[l], x[i + l], STATE);                               \
        }                                                                                                             \
        for (int half = TD_LANES / 2; half; half /= 2)                                                                \
          for (int l = 0; l < half; l++) lanes[l] = COMBINE(lanes[l], lanes[l + half], STATE);                        \
        all = COMBINE(all, lanes[0], STATE);                                                                          \
      }                                                                                                               \
      for (; i < n; i++) all = STEP(all, x[i], STATE);                                                                \
      a[r] = all;                                                                                                     \
    }                                                                                                                 \
  }                                                                                                                   \
  /* few columns: several rows are one of as many lanes */                                                            \
  TD_CLONES static int64_t name##_narrow(STATE *a, const type *x, int64_t rows, int64_t columns) {                    \
    STATE lanes[2 * TD_LANES];                                                                                         \
    int64_t together = 2 * TD_LANES / columns, width = together * columns, row = 0;                                    \
    for (int64_t l = 0; l < width; l++) lanes[l] = START;                                                             \
    for (; row + together <= rows; row += together, x += width)                                                       \
      for (int64_t l = 0; l < width; l++) lanes[l] = STEP(lanes[l], x[l], STATE);                                     \
    for (int64_t l = 0; l < width; l++) a[l % columns] = COMBINE(a[l % columns], lanes[l], STATE);                    \
    return row;                                                                                                       \
  }                                                                                                                   \
  TD_CLONES static void name##_columns(void *states, const td_piece *piece) {                                         \
    STATE *restrict a = states;                                                                                       \
    const type *restrict x = piece->x;                                                                                \
    int64_t rows = piece->rows, columns = piece->n, pitch = piece->pitch, row = 0;                                    \
    if (columns <= TD_NARROW && pitch == columns && rows * columns >= 8 * TD_LANES) {                                  \
      row = name##_narrow(a, x, rows, columns);                                                                       \
      x += row * pitch;                                                                                               \
    }                                                                                                                 \
    for (; row + 4 <= rows; row += 4, x += 4 * pitch)                                                                 \
      for (int64_t c = 0; c < columns; c++) {                                                                         \
        STATE s = STEP(a[c], x[c], STATE);                                                                            \
        s = STEP(s, x[c + pitch], STATE);                                                                             \
        s = STEP(s, x[c + 2 * pitch], STATE);                                                                         \
        a[c] = STEP(s, x[c + 3 * pitch], STATE);                                                                      \
      }                                                                                                               \
    for (; row < rows; row++, x += pitch)                                                                             \
      for (int64_t c = 0; c < columns; c++) a[c] = STEP(a[c], x[c], STATE);                                           \
  }                                                                                                                   \
  static void name##_combine(void *states, const void *more, int64_t count, double parameter) {                       \
    STATE *restrict a = states;                                                                                       \
    const STATE *restrict b = more;                                                                                   \
    (void)parameter;                                                                                                  \
    for (int64_t i = 0; i < count; i++) a[i] = COMBINE(a[i], b[i], STATE);                                            \
  }                                                                                                                   \
  static const td_reducer name##_reducer = {                                                                          \
      sizeof(STATE), false, name##_start, name##_lines, name##_columns, name##_combine, FINISH, NULL};

#endif
