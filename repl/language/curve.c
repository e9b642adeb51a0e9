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

td_curve_bin td_curve_bin_of(td_curve_point point) {
  td_curve_bin bin = {.first = point.step, .last = point.step, .low = INFINITY, .high = -INFINITY};
  if (isfinite(point.value)) {
    bin.low = bin.high = bin.sum = point.value;
    bin.finite = 1;
  } else bin.odd = isnan(point.value) ? TD_CURVE_NAN : point.value > 0 ? TD_CURVE_RISES : TD_CURVE_FALLS;
  return bin;
}

double td_curve_value(const td_curve_bin *bin) {
  if (bin->finite) return bin->sum / bin->finite;
  return bin->odd & TD_CURVE_NAN ? NAN : bin->odd & TD_CURVE_RISES ? INFINITY : -INFINITY;
}

static void keep_at_most(td_curve *curve, int64_t bins) {
  if (curve->kept > bins) curve->kept = bins;
}

void td_curve_cut(td_curve *curve, int64_t step) {
  while (curve->bin_count && curve->bins[curve->bin_count - 1].first >= step) {
    curve->bin_count--;
    curve->filled = curve->width;
  }
  keep_at_most(curve, curve->bin_count);
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

static void halve(td_curve *curve) { // a bin that is left over goes
  for (int64_t i = 0; i < curve->bin_count / 2; i++) {
    curve->bins[i] = curve->bins[2 * i];
    td_curve_merge(&curve->bins[i], &curve->bins[2 * i + 1]);
  }
  curve->bin_count /= 2;
  curve->kept /= 2;
  curve->width *= 2;
  curve->filled = curve->width;
}

static bool reserve(td_curve *curve, int64_t count) {
  if (count <= curve->bin_capacity) return true;
  int64_t capacity = curve->bin_capacity ? curve->bin_capacity * 2 : 64;
  if (capacity < count) capacity = count;
  td_curve_bin *bins = td_memory_resize(curve->bins, (size_t)capacity * sizeof *bins);
  if (!bins) return false;
  curve->bins = bins;
  curve->bin_capacity = capacity;
  return true;
}

static bool make_room(td_curve *curve) {
  if (curve->bin_count == TD_CURVE_BINS) halve(curve); // all are full
  return reserve(curve, curve->bin_count + 1);
}

bool td_curve_add(td_curve *curve, int64_t step, double value) {
  if (curve->bin_count && step < curve->last.step) td_curve_cut(curve, step);
  td_curve_bin bin = td_curve_bin_of((td_curve_point){step, value});
  if (curve->bin_count && curve->filled < curve->width) {
    td_curve_merge(&curve->bins[curve->bin_count - 1], &bin);
    curve->filled++;
    keep_at_most(curve, curve->bin_count - 1);
  } else {
    if (!make_room(curve)) return false;
    curve->bins[curve->bin_count++] = bin;
    curve->filled = 1;
  }
  curve->last = (td_curve_point){step, value};
  return true;
}

static bool is_rising(const td_curve_rest *r, int64_t after) { // bins never begin before one that stands before them
  for (int64_t i = 0; i < r->count; i++) {
    if (r->bins[i].first < after || r->bins[i].last < r->bins[i].first || r->bins[i].finite < 0) return false;
    after = r->bins[i].first;
  }
  return true;
}

bool td_curve_resume(td_curve *curve, const td_curve_rest *r) {
  int64_t kept = r->from ? curve->bin_count : 0, width = r->from ? curve->width : r->width;
  if (r->width > INT64_MAX / TD_CURVE_BINS) return false;
  for (; width < r->width; width *= 2) kept /= 2;
  bool fits = width == r->width && r->from >= 0 && r->from <= kept && r->count >= 0 &&
              r->from + r->count <= TD_CURVE_BINS && r->filled >= 1 && r->filled <= r->width;
  if (!fits || !reserve(curve, r->from + r->count)) return false;
  for (; r->from && curve->width < r->width;) halve(curve);
  if (!is_rising(r, r->from ? curve->bins[r->from - 1].first : INT64_MIN)) return false;
  if (r->count) memcpy(curve->bins + r->from, r->bins, (size_t)r->count * sizeof *r->bins);
  curve->bin_count = r->from + r->count;
  curve->width = r->width;
  curve->filled = r->filled;
  curve->last = r->last;
  curve->kept = 0;
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
