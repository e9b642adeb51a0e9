// See series.h.
#include "repl/notebook/series.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "engine/base/memory.h"

int64_t td_series_column_of(const td_axis *steps, int64_t columns, int64_t step) { // an axis of steps is a plain one
  double place = ((double)step - steps->low) / (steps->high - steps->low) * (double)(columns - 1);
  return place < -0.5 ? -1 : place > (double)columns ? columns : (int64_t)(place + 0.5);
}

double td_series_step_of(const td_axis *steps, int64_t columns, int64_t column) {
  return columns > 1 ? td_axis_value(steps, (double)column / (double)(columns - 1)) : steps->low;
}

// Sums of huge values may have overflowed: the mean lies between the ends all the same.
static double between(double value, double low, double high) { return value > low ? value < high ? value : high : low; }

static double mean_of(const td_curve_bin *bin) { return between(bin->sum / bin->finite, bin->low, bin->high); }

// ---- smoothing ----

typedef struct smoother {
  double share, mean; // share: what the old mean keeps from one point to the next
  double kept; // share ^ points so far
  double keep; // share ^ points of the last bin
  int32_t points;
} smoother;

static double smooth(smoother *s, const td_curve_bin *bin) {
  if (bin->finite != s->points) {
    s->points = bin->finite;
    s->keep = pow(s->share, bin->finite);
  }
  s->kept = s->kept > DBL_EPSILON / 4 ? s->kept * s->keep : 0; // without an end it would become subnormal, and slow
  double weight = (1 - s->keep) / (1 - s->kept);
  s->mean = between(s->mean + (mean_of(bin) - s->mean) * weight, -DBL_MAX, DBL_MAX); // an equal value changes nothing
  return s->mean;
}

double td_series_smoothed(const td_curve *curve, double smoothing, int64_t step) {
  smoother mean = {.share = smoothing, .kept = 1};
  double last = NAN;
  for (const td_curve_bin *bin = curve->bins; bin < curve->bins + curve->bin_count && bin->first <= step; bin++)
    if (bin->finite) last = smooth(&mean, bin);
  return last;
}

// ---- columns ----
// While they are filled, mean and smooth are sums.

static void add_bin(td_series_column *column, const td_curve_bin *bin, double smoothed) {
  column->odd |= bin->odd;
  if (!bin->finite) return;
  column->finite += bin->finite;
  if (bin->low < column->low) column->low = bin->low;
  if (bin->high > column->high) column->high = bin->high;
  column->mean += bin->sum;
  column->smooth += smoothed * bin->finite;
}

static void end_column(td_series_column *column) {
  if (!column->finite) return;
  column->mean = between(column->mean / (double)column->finite, column->low, column->high);
  column->smooth = between(column->smooth / (double)column->finite, -DBL_MAX, DBL_MAX);
}

// The first bin that begins at a step or behind it.
static int64_t find_bin(const td_curve *curve, double step) {
  int64_t from = 0, to = curve->bin_count;
  while (from < to) {
    int64_t middle = from + (to - from) / 2;
    if ((double)curve->bins[middle].first < step) from = middle + 1;
    else to = middle;
  }
  return from;
}

static bool is_whole(const td_curve_bin *bin) { return bin->finite && !bin->odd; }

static td_curve_point point_of(const td_curve_bin *bin, bool smooths, double smoothed) {
  return (td_curve_point){bin->first, smooths ? smoothed : td_curve_value(bin)};
}

static void gather(td_series *s, const td_curve *curve, const td_axis *steps, double smoothing) {
  bool smooths = smoothing > 0;
  smoother mean = {.share = smoothing, .kept = 1};
  int64_t begin = find_bin(curve, steps->low), end = find_bin(curve, nextafter(steps->high, INFINITY)), i = 0;
  double smoothed = 0;
  for (; smooths && i < begin; i++)
    if (curve->bins[i].finite) smoothed = smooth(&mean, &curve->bins[i]);
  s->has_before = begin && is_whole(&curve->bins[begin - 1]);
  if (s->has_before) s->before = point_of(&curve->bins[begin - 1], smooths, smoothed);
  for (i = begin; i < end; i++) {
    const td_curve_bin *bin = &curve->bins[i];
    int64_t at = td_series_column_of(steps, s->columns, bin->first);
    if (smooths && bin->finite) smoothed = smooth(&mean, bin);
    add_bin(&s->at[at < 0 ? 0 : at >= s->columns ? s->columns - 1 : at], bin, smoothed);
  }
  s->has_after = end < curve->bin_count && is_whole(&curve->bins[end]);
  if (s->has_after) s->after = point_of(&curve->bins[end], smooths, smooths ? smooth(&mean, &curve->bins[end]) : 0);
  for (i = 0; i < s->columns; i++) end_column(&s->at[i]);
}

bool td_series_start(td_series *s, const td_curve *curve, const td_axis *steps, int64_t columns, double smoothing) {
  *s = (td_series){.columns = columns, .at = td_memory_new((size_t)columns * sizeof *s->at)};
  if (!s->at) return false;
  for (int64_t i = 0; i < columns; i++) s->at[i] = (td_series_column){.low = INFINITY, .high = -INFINITY};
  gather(s, curve, steps, smoothing);
  return true;
}

void td_series_clear(td_series *s) {
  td_memory_free(s->at);
  *s = (td_series){0};
}

// ---- what is drawn ----

td_axis td_series_steps(const td_curve *const *curves, int count, const td_series_range *range, bool *empty) {
  double first = INFINITY, last = -INFINITY;
  for (int i = 0; i < count; i++) {
    if (!curves[i]->bin_count) continue;
    first = fmin(first, (double)curves[i]->bins[0].first);
    last = fmax(last, (double)curves[i]->bins[curves[i]->bin_count - 1].last);
  }
  *empty = first > last;
  if (range->is_cut && range->first <= range->last) {
    first = (double)range->first;
    last = (double)range->last;
  }
  double room = fmax(0.5, fabs(first) * 1e-15); // of a single step
  if (first == last) return (td_axis){.low = first - room, .high = last + room};
  return td_axis_cover(first, last, false, 0);
}

static void widen(const td_series_column *column, bool logarithmic, bool means, double *low, double *high) {
  if (!column->finite) return;
  double least = means ? column->mean : column->low, most = means ? column->mean : column->high;
  if (logarithmic && most <= 0) return;
  if (logarithmic && least <= 0) least = most;
  *low = fmin(*low, least);
  *high = fmax(*high, most);
}

td_axis td_series_values(const td_series *series, int count, const td_series_range *range, bool logarithmic, bool means,
                         double margin, bool *empty) {
  double low = INFINITY, high = -INFINITY;
  for (int i = 0; i < count; i++)
    for (int64_t k = 0; k < series[i].columns; k++) widen(&series[i].at[k], logarithmic, means, &low, &high);
  *empty = low > high;
  td_axis axis = td_axis_cover(low, high, logarithmic, margin);
  bool from = isfinite(range->low) && !(logarithmic && range->low <= 0);
  bool to = isfinite(range->high) && !(logarithmic && range->high <= 0);
  double least = from ? range->low : axis.low, most = to ? range->high : axis.high;
  if (least < most) axis.low = least, axis.high = most;
  return axis;
}
