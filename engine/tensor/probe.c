// See probe.h.
#include "engine/tensor/probe.h"
#include <math.h>

int64_t td_probe_step(const td_tensor *t, int64_t limit) {
  int64_t step = t->size <= limit ? 1 : (t->size + limit - 1) / limit;
  return step > 1 ? step | 1 : step; // odd: it doesn't stay in one column of a matrix of even width
}

enum { PLAIN_FLOAT, PLAIN_DOUBLE, ANY };

static int layout_of(const td_tensor *t) {
  if (!td_tensor_is_contiguous(t)) return ANY;
  return t->dtype == TD_FLOAT32 ? PLAIN_FLOAT : t->dtype == TD_FLOAT64 ? PLAIN_DOUBLE : ANY;
}

static double element(const td_tensor *t, int layout, int64_t index) {
  if (layout == PLAIN_FLOAT) return (double)((const float *)t->data)[index];
  if (layout == PLAIN_DOUBLE) return ((const double *)t->data)[index];
  return td_tensor_get_float(t, index);
}

void td_probe_values(const td_tensor *t, int64_t step, int64_t count, double *values) {
  int layout = layout_of(t);
  for (int64_t i = 0; i < count; i++) values[i] = element(t, layout, i * step);
}

void td_probe_take(const td_tensor *t, int64_t limit, td_probe *s) {
  *s = (td_probe){.step = td_probe_step(t, limit), .least = INFINITY, .most = -INFINITY};
  int layout = layout_of(t);
  for (int64_t i = 0; i < t->size; i += s->step, s->count++) {
    double x = element(t, layout, i);
    if (isnan(x)) s->nans++;
    else if (isinf(x)) s->infinities++;
    else {
      s->zeros += x == 0;
      s->squares += x * x;
      s->sum += x;
      if (x < s->least) s->least = x;
      if (x > s->most) s->most = x;
    }
  }
}

// ---- at a glance ----

enum { GLANCED = 16, GLANCED_APART = 4 }; // elements; apart: where each has to be found first

#define SQUARES(name, type)                                                                                            \
  static double name(const type *at, int64_t count, int64_t step) {                                                    \
    double squares = 0;                                                                                                \
    for (int64_t i = 0; i < count; i++) squares += (double)at[i * step] * (double)at[i * step];                        \
    return squares;                                                                                                    \
  }
SQUARES(squares_of_floats, float)
SQUARES(squares_of_doubles, double)

static bool is_one_value(const td_tensor *t) { // repeated, as the gradient of a sum is
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] > 1 && t->strides[i] != 0) return false;
  return true;
}

static float glance_apart(const td_tensor *t, bool *exact) {
  int64_t step = is_one_value(t) ? t->size : td_probe_step(t, GLANCED_APART), count = 0;
  double squares = 0;
  for (int64_t i = 0; i < t->size; i += step, count++) {
    double x = td_tensor_get_float(t, i);
    squares += x * x;
  }
  *exact = step <= 1 || is_one_value(t);
  return count ? (float)sqrt(squares / (double)count * (double)t->size) : 0;
}

float td_probe_glance(const td_tensor *t, bool *exact) {
  int layout = layout_of(t);
  if (layout == ANY) return glance_apart(t, exact);
  bool all = *exact = t->size <= GLANCED;
  int64_t count = all ? t->size : GLANCED, step = all ? 1 : ((t->size - GLANCED) / (GLANCED - 1)) | 1;
  double squares = layout == PLAIN_FLOAT ? squares_of_floats((const float *)t->data, count, step)
                                         : squares_of_doubles((const double *)t->data, count, step);
  return (float)sqrt(all ? squares : squares * ((double)t->size * (1.0 / GLANCED)));
}

double td_probe_norm(const td_tensor *t, const td_probe *s) {
  if (s->nans) return NAN;
  if (s->infinities) return INFINITY;
  return s->count ? sqrt(s->squares / (double)s->count * (double)t->size) : 0;
}
