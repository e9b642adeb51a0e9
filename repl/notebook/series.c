// See series.h.
#include "repl/notebook/series.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "engine/base/memory.h"

int64_t td_series_column_of(const td_axis *steps, int64_t columns, int64_t step) {
  double place = td_axis_place(steps, (double)step) * (double)(columns - 1);
  return place < -1 ? -1 : place > (double)columns ? columns : (int64_t)llround(place);
}

double td_series_step_of(const td_axis *steps, int64_t columns, int64_t column) {
  return columns > 1 ? td_axis_value(steps, (double)column / (double)(columns - 1)) : steps->low;
}

// ---- smoothing ----

typedef struct smoother {
  double keep, mean; // keep: of the old mean, from one point to the next
  double kept; // keep ^ points so far
} smoother;

// Sums of huge values may have overflowed: the mean lies between the ends all the same.
static double between(double value, double low, double high) { return fmin(fmax(value, low), high); }

static double mean_of(const td_curve_bin *bin) { return between(bin->sum / bin->finite, bin->low, bin->high); }

static double smooth(smoother *s, const td_curve_bin *bin) {
  double value = mean_of(bin), keep = bin->finite == 1 ? s->keep : pow(s->keep, bin->finite);
  s->kept *= keep;
  double mean = s->mean + (value - s->mean) * ((1 - keep) / (1 - s->kept)); // an equal value changes nothing
  return s->mean = between(mean, -DBL_MAX, DBL_MAX);
}

// ---- columns ----

static void add_bin(td_series_column *column, const td_curve_bin *bin, double smoothed) {
  column->odd |= bin->odd;
  if (!bin->finite) return;
  double share = bin->finite / (double)(column->finite + bin->finite);
  column->finite += bin->finite;
  column->low = fmin(column->low, bin->low);
  column->high = fmax(column->high, bin->high);
  column->mean = between(column->mean + (mean_of(bin) - column->mean) * share, column->low, column->high);
  column->smooth = between(column->smooth + (smoothed - column->smooth) * share, -DBL_MAX, DBL_MAX);
}

static void gather(td_series *s, const td_curve *curve, const td_axis *steps, double smoothing) {
  smoother mean = {.keep = smoothing, .kept = 1};
  for (const td_curve_bin *bin = curve->bins; bin < curve->bins + curve->bin_count; bin++) {
    double smoothed = bin->finite ? smooth(&mean, bin) : 0;
    bool is_before = (double)bin->first<steps->low, is_after = (double)bin->first> steps->high;
    if (!is_before && !is_after) {
      int64_t at = td_series_column_of(steps, s->columns, bin->first);
      add_bin(&s->at[at < 0 ? 0 : at >= s->columns ? s->columns - 1 : at], bin, smoothed);
    } else if (is_before) {
      s->has_before = bin->finite && !bin->odd;
      s->before = (td_curve_point){bin->first, smoothing > 0 ? smoothed : td_curve_value(bin)};
    } else {
      s->has_after = bin->finite && !bin->odd;
      s->after = (td_curve_point){bin->first, smoothing > 0 ? smoothed : td_curve_value(bin)};
      return;
    }
  }
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
