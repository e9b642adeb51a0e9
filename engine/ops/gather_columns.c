#include "engine/ops/gather_columns.h"

#include <string.h>

#include "engine/device/cpu/clones.h"

// ---- axes ----

static int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); } // b > 0

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static void finish(const td_convolution *v, td_columns *c) {
  c->dtype = v->dtype;
  c->images = v->images;
  c->groups = v->groups;
  c->taps = c->results = c->plane = 1;
  for (int i = 0; i < 3; i++) {
    c->taps *= c->axes[i].taps;
    c->results *= c->axes[i].results;
    c->plane *= c->axes[i].source;
  }
}

void td_columns_forward(const td_convolution *v, const char *x, td_columns *columns) {
  *columns = (td_columns){.channels = v->inputs, .source = x};
  for (int i = 0; i < 3; i++)
    columns->axes[i] = (td_tap_axis){.taps = v->kernel[i],
                                     .origin = -v->padding[i],
                                     .slope = v->dilation[i],
                                     .step = v->stride[i],
                                     .source = v->in[i],
                                     .results = v->out[i],
                                     .tap_step = 1,
                                     .result_step = 1,
                                     .width = v->out[i]};
  finish(v, columns);
}

// Element i of x was read as i = o * stride - padding + tap * dilation: the taps for which that has a solution o are
// every (stride / gcd)-th.
static td_tap_axis phase_axis(const td_convolution *v, int i, int64_t phase) {
  int64_t stride = v->stride[i], dilation = v->dilation[i], every = stride / greatest_divisor(stride, dilation);
  int64_t first = 0, at = phase + v->padding[i];
  while (first < every && first < v->kernel[i] && (at - first * dilation) % stride) first++;
  td_tap_axis axis = {.tap_first = first,
                      .tap_step = every,
                      .slope = -(dilation / (stride / every)),
                      .step = 1,
                      .source = v->out[i],
                      .results = (v->in[i] - phase + stride - 1) / stride,
                      .result_first = phase,
                      .result_step = stride,
                      .width = v->in[i]};
  if (first == every || first >= v->kernel[i]) return axis;
  axis.taps = (v->kernel[i] - 1 - first) / every + 1;
  axis.origin = floor_quotient(at - first * dilation, stride);
  return axis;
}

void td_columns_adjoint(const td_convolution *v, const char *y, const int64_t phase[3], td_columns *columns) {
  *columns = (td_columns){.channels = v->outputs, .source = y};
  for (int i = 0; i < 3; i++) columns->axes[i] = phase_axis(v, i, phase[i]);
  finish(v, columns);
}

void td_tap_range(const td_tap_axis *axis, int64_t tap, int64_t first, int64_t count, int64_t *low, int64_t *high) {
  int64_t start = axis->origin + tap * axis->slope + first * axis->step;
  *low = start >= 0 ? 0 : axis->step == 1 ? -start : (-start + axis->step - 1) / axis->step;
  *high = start >= axis->source ? 0
          : axis->step == 1     ? axis->source - start
                                : (axis->source - 1 - start) / axis->step + 1;
  if (*high > count) *high = count;
  if (*low > *high) *low = *high;
}

bool td_columns_plain(const td_columns *c) {
  for (int i = 0; i < 3; i++) {
    const td_tap_axis *axis = &c->axes[i];
    if (axis->taps != 1 || axis->origin || axis->step != 1 || axis->source != axis->results) return false;
  }
  return true;
}

// ---- filling ----

static bool reads_inside(const td_columns *c, const int64_t tap[3]) { // all results of a tap
  int64_t low, high;
  for (int i = 0; i < 3; i++) {
    td_tap_range(&c->axes[i], tap[i], 0, c->axes[i].results, &low, &high);
    if (low > 0 || high < c->axes[i].results) return false;
  }
  return true;
}

// One row: the results of one channel and tap. Zeros first, where some lie outside; then lines of the last axis are
// copied as far as they lie inside, short ones in two pieces that may overlap.
#define ROW(T, name)                                                                                                   \
  static inline __attribute__((always_inline)) void name##_copy(T *restrict out, const T *restrict from, int64_t n) {  \
    enum { WIDE = 32 / sizeof(T), NARROW = 16 / sizeof(T) };                                                           \
    int64_t j = 0;                                                                                                     \
    if (n >= WIDE) {                                                                                                   \
      for (; j + WIDE <= n; j += WIDE) memcpy(out + j, from + j, WIDE * sizeof(T));                                    \
      memcpy(out + n - WIDE, from + n - WIDE, WIDE * sizeof(T));                                                       \
    } else if (n >= NARROW) {                                                                                          \
      memcpy(out, from, NARROW * sizeof(T));                                                                           \
      memcpy(out + n - NARROW, from + n - NARROW, NARROW * sizeof(T));                                                 \
    } else                                                                                                             \
      for (; j < n; j++) out[j] = from[j];                                                                             \
  }                                                                                                                    \
  /* the same for all results: lines without a look at each one */                                                     \
  TD_CLONES static void name##_whole(const td_columns *c, const int64_t tap[3], const T *plane, T *out) {              \
    const td_tap_axis *d = &c->axes[0], *h = &c->axes[1], *w = &c->axes[2];                                            \
    int64_t low[3], high[3];                                                                                           \
    for (int i = 0; i < 3; i++) td_tap_range(&c->axes[i], tap[i], 0, c->axes[i].results, &low[i], &high[i]);           \
    const int64_t n = high[2] - low[2], in_w = w->origin + tap[2] * w->slope + low[2] * w->step;                       \
    const int64_t step = w->step, next = h->step * w->source, lines = high[1] - low[1], width = w->results;            \
    for (int64_t i = low[0]; i < high[0] && n > 0; i++) {                                                              \
      int64_t in_d = d->origin + tap[0] * d->slope + i * d->step;                                                      \
      int64_t in_h = h->origin + tap[1] * h->slope + low[1] * h->step;                                                 \
      const T *from = plane + (in_d * h->source + in_h) * w->source + in_w;                                            \
      T *to = out + (i * h->results + low[1]) * width + low[2];                                                        \
      if (step == 1)                                                                                                   \
        for (int64_t line = 0; line < lines; line++, from += next, to += width) name##_copy(to, from, n);              \
      else                                                                                                             \
        for (int64_t line = 0; line < lines; line++, from += next, to += width)                                        \
          for (int64_t j = 0; j < n; j++) to[j] = from[j * step];                                                      \
    }                                                                                                                  \
  }                                                                                                                    \
  TD_CLONES static void name##_row(const td_columns *c, const int64_t tap[3], const T *plane, int64_t first,           \
                                   int64_t count, T *out) {                                                            \
    const td_tap_axis *d = &c->axes[0], *h = &c->axes[1], *w = &c->axes[2];                                            \
    int64_t line = first / w->results, within = first % w->results, inside, outside, step = w->step;                   \
    int64_t at_d = line / h->results, at_h = line % h->results;                                                        \
    if (!reads_inside(c, tap)) memset(out, 0, (size_t)count * sizeof *out);                                            \
    if (count == c->results) {                                                                                         \
      name##_whole(c, tap, plane, out);                                                                                \
      return;                                                                                                          \
    }                                                                                                                  \
    td_tap_range(w, tap[2], 0, w->results, &inside, &outside);                                                         \
    while (count > 0) {                                                                                                \
      int64_t n = w->results - within < count ? w->results - within : count;                                           \
      int64_t low = inside > within ? inside - within : 0, high = outside - within < n ? outside - within : n;         \
      int64_t in_d = d->origin + tap[0] * d->slope + at_d * d->step;                                                   \
      int64_t in_h = h->origin + tap[1] * h->slope + at_h * h->step;                                                   \
      if (low < high && in_d >= 0 && in_d < d->source && in_h >= 0 && in_h < h->source) {                              \
        const T *from = plane + (in_d * h->source + in_h) * w->source + w->origin + tap[2] * w->slope + within * step; \
        if (step == 1) name##_copy(out + low, from + low, high - low);                                                 \
        else                                                                                                           \
          for (int64_t j = low; j < high; j++) out[j] = from[j * step];                                                \
      }                                                                                                                \
      out += n;                                                                                                        \
      count -= n;                                                                                                      \
      within = 0;                                                                                                      \
      if (++at_h == h->results) {                                                                                      \
        at_h = 0;                                                                                                      \
        at_d++;                                                                                                        \
      }                                                                                                                \
    }                                                                                                                  \
  }
ROW(float, single)
ROW(double, twofold)

void td_columns_fill(const td_columns *c, const td_columns_part *part, void *out) {
  int64_t bytes = td_dtype_bytes(c->dtype), pitch = part->images * part->count, tap[3];
  for (int64_t channel = 0; channel < part->channels; channel++)
    for (int64_t t = 0; t < c->taps; t++) {
      char *row = (char *)out + (channel * c->taps + t) * pitch * bytes;
      tap[0] = t / (c->axes[1].taps * c->axes[2].taps);
      tap[1] = t / c->axes[2].taps % c->axes[1].taps;
      tap[2] = t % c->axes[2].taps;
      for (int64_t i = 0; i < part->images; i++, row += part->count * bytes) {
        int64_t at = ((part->image + i) * c->groups + part->group) * c->channels + part->channel + channel;
        const char *plane = c->source + at * c->plane * bytes;
        if (c->dtype == TD_FLOAT32) single_row(c, tap, (const float *)plane, part->first, part->count, (float *)row);
        else twofold_row(c, tap, (const double *)plane, part->first, part->count, (double *)row);
      }
    }
}
