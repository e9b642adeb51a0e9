// See curve.h.
#include "repl/language/curve.h"
#include <math.h>
#include <string.h>

#include "engine/base/memory.h"

td_curve *td_curve_new(const char *name) {
  td_curve *curve = td_memory_new_zero(sizeof *curve);
  if (!curve) return NULL;
  curve->width = 1;
  curve->name = td_memory_text(name);
  if (curve->name) return curve;
  td_memory_free(curve);
  return NULL;
}

void td_curve_free(td_curve *curve) {
  if (!curve) return;
  td_memory_free(curve->name);
  td_memory_free(curve->bins);
  td_memory_free(curve);
}

double td_curve_value(const td_curve_bin *bin) {
  if (bin->finite) return bin->sum / bin->finite;
  return bin->odd & TD_CURVE_NAN ? NAN : bin->odd & TD_CURVE_RISES ? INFINITY : -INFINITY;
}

void td_curve_cut(td_curve *curve, int64_t step) {
  while (curve->bin_count && curve->bins[curve->bin_count - 1].first >= step) {
    curve->bin_count--;
    curve->filled = curve->width;
  }
  if (!curve->bin_count) curve->width = 1;
  else if (curve->last.step >= step) {
    const td_curve_bin *bin = &curve->bins[curve->bin_count - 1];
    curve->last = (td_curve_point){bin->last, td_curve_value(bin)};
  }
}

void td_curve_merge(td_curve_bin *to, const td_curve_bin *from) {
  to->last = from->last;
  if (from->low < to->low) to->low = from->low;
  if (from->high > to->high) to->high = from->high;
  to->sum += from->sum;
  to->finite += from->finite;
  to->odd |= from->odd;
}

static void halve(td_curve *curve) { // all bins are full, and their count is even
  for (int64_t i = 0; i < curve->bin_count / 2; i++) {
    curve->bins[i] = curve->bins[2 * i];
    td_curve_merge(&curve->bins[i], &curve->bins[2 * i + 1]);
  }
  curve->bin_count /= 2;
  curve->width *= 2;
  curve->filled = curve->width;
}

static bool make_room(td_curve *curve) {
  if (curve->bin_count == TD_CURVE_BINS) halve(curve);
  if (curve->bin_count < curve->bin_capacity) return true;
  int64_t capacity = curve->bin_capacity ? curve->bin_capacity * 2 : 64;
  td_curve_bin *bins = td_memory_resize(curve->bins, (size_t)capacity * sizeof *bins);
  if (!bins) return false;
  curve->bins = bins;
  curve->bin_capacity = capacity;
  return true;
}

bool td_curve_add(td_curve *curve, int64_t step, double value) {
  if (curve->bin_count && step < curve->last.step) td_curve_cut(curve, step);
  td_curve_bin bin = {.first = step, .last = step, .low = INFINITY, .high = -INFINITY};
  if (isfinite(value)) {
    bin.low = bin.high = bin.sum = value;
    bin.finite = 1;
  } else bin.odd = value != value ? TD_CURVE_NAN : value > 0 ? TD_CURVE_RISES : TD_CURVE_FALLS;
  if (curve->bin_count && curve->filled < curve->width) {
    td_curve_merge(&curve->bins[curve->bin_count - 1], &bin);
    curve->filled++;
  } else {
    if (!make_room(curve)) return false;
    curve->bins[curve->bin_count++] = bin;
    curve->filled = 1;
  }
  curve->last = (td_curve_point){step, value};
  return true;
}

int64_t td_curve_points(const td_curve *curve) {
  return curve->bin_count ? (curve->bin_count - 1) * curve->width + curve->filled : 0;
}
const char *td_curve_kind(const char *name, size_t *length) {
  const char *colon = strrchr(name, ':');
  if (colon) name = colon + 1;
  if (strncmp(name, "val_", 4) == 0) name += 4;
  else if (strncmp(name, "val/", 4) == 0) name += 4;
  else if (strncmp(name, "train/", 6) == 0) name += 6;
  *length = strlen(name);
  return name;
}

bool td_curve_same_kind(const char *a, const char *b) {
  size_t m, n;
  const char *x = td_curve_kind(a, &m), *y = td_curve_kind(b, &n);
  return m == n && memcmp(x, y, m) == 0;
}
