// See axis.h. Halves of the ends are subtracted, so that no span overflows.
#include "repl/notebook/axis.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double greatest = 1.7e308, least_positive = 1e-307;

// ---- scales ----

static td_axis widened(double low, double high, double room) {
  return (td_axis){.low = fmax(low - room, -greatest), .high = fmin(high + room, greatest)};
}

static td_axis cover_logarithms(double low, double high, double margin) {
  if (!(low > 0 && low <= high)) return (td_axis){1, 10, true};
  low = fmax(low, least_positive);
  high = fmin(fmax(high, low), greatest);
  double factor = low < high ? exp((log(high) - log(low)) * margin) : 1.25;
  return (td_axis){fmax(low / factor, least_positive), fmin(high * factor, greatest), true};
}

td_axis td_axis_cover(double low, double high, bool logarithmic, double margin) {
  if (logarithmic) return cover_logarithms(low, high, margin);
  if (!(low <= high)) return (td_axis){.low = 0, .high = 1};
  low = fmax(low, -greatest);
  high = fmin(high, greatest);
  double half = high / 2 - low / 2;
  bool flat = half <= fmax(fabs(low), fabs(high)) * 1e-14; // rounding is no span
  double room = flat ? low != 0 ? fabs(low) * 0.1 : 1 : half * 2 * margin;
  td_axis axis = widened(low, high, isfinite(room) ? room : 0);
  if (!(axis.low < axis.high)) axis = (td_axis){.low = nextafter(low, -INFINITY), .high = nextafter(low, INFINITY)};
  return axis;
}

double td_axis_place(const td_axis *a, double value) {
  if (a->logarithmic) return value > 0 ? (log(value) - log(a->low)) / (log(a->high) - log(a->low)) : (double)-INFINITY;
  if (isinf(a->high - a->low)) return (value / 2 - a->low / 2) / (a->high / 2 - a->low / 2);
  return (value - a->low) / (a->high - a->low);
}

double td_axis_value(const td_axis *a, double place) {
  if (a->logarithmic) return exp(log(a->low) * (1 - place) + log(a->high) * place);
  return a->low * (1 - place) + a->high * place;
}

// ---- labels ----

static void shorten_exponent(char *label) { // "1e-05" becomes "1e-5", "2e+06" becomes "2e6"
  char *e = strchr(label, 'e');
  if (!e) return;
  char *from = e + 1, *to = e + 1;
  if (*from == '-') *to++ = '-';
  if (*from == '-' || *from == '+') from++;
  while (*from == '0' && from[1]) from++;
  memmove(to, from, strlen(from) + 1);
}

static int exponent_of(double value) { return (int)floor(log10(fabs(value)) + 1e-9); }

void td_tick_print(char label[TD_TICK_LABEL], double value, double step) {
  enum { DECIMALS_MOST = 6, DIGITS_MOST = 6, SCIENTIFIC_MOST = 12 };
  int last = step > 0 ? exponent_of(step) : 0, first = value != 0 ? exponent_of(value) : last;
  if (first < last) value = 0; // what is left of 0 by rounding
  bool plain = value == 0 || (first < DIGITS_MOST && last >= -DECIMALS_MOST);
  int digits = first > last ? first - last : 0;
  if (plain && value == 0) snprintf(label, TD_TICK_LABEL, "0");
  else if (plain) snprintf(label, TD_TICK_LABEL, "%.*f", last < 0 ? -last : 0, value);
  else snprintf(label, TD_TICK_LABEL, "%.*e", digits < SCIENTIFIC_MOST ? digits : SCIENTIFIC_MOST, value);
  shorten_exponent(label);
}

// Steps and counts: 12000 as 12k where all are whole thousands.
static void print_whole(char label[TD_TICK_LABEL], double value, double step) {
  static const struct {
    double unit;
    const char *letter;
  } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (int i = 0; i < 4; i++)
    if (step >= units[i].unit && value != 0) {
      snprintf(label, TD_TICK_LABEL, "%.0f%s", value / units[i].unit, units[i].letter);
      return;
    }
  snprintf(label, TD_TICK_LABEL, "%.0f", value == 0 ? 0 : value);
}

// ---- ticks ----

static double next_step(double step) { // 1, 2, 5, 10 ... times a power of ten
  double power = pow(10, exponent_of(step)), digit = round(step / power);
  return digit < 2 ? 2 * power : digit < 5 ? 5 * power : 10 * power;
}

static double first_step(double half, int most, bool whole) {
  double rough = half / most * 2;
  double step = pow(10, floor(log10(rough)));
  if (!(step > 0)) step = least_positive;
  if (whole && step < 1) step = 1;
  return step;
}

static double count_ticks(const td_axis *a, double step) { return floor(a->high / step) - ceil(a->low / step) + 1; }

static bool add_tick(const td_axis *a, td_tick *ticks, int *count, double value, double step, bool whole) {
  double place = td_axis_place(a, value);
  if (*count == TD_TICKS_MAX || place < -1e-9 || place > 1 + 1e-9) return false;
  if (*count && !(value > ticks[*count - 1].value)) return false;
  td_tick *tick = &ticks[(*count)++];
  *tick = (td_tick){.value = value, .place = place};
  if (whole) print_whole(tick->label, value, step);
  else if (step > 0) td_tick_print(tick->label, value, step);
  return true;
}

static int ticks_by_steps(const td_axis *a, int most, bool whole, td_tick *ticks) {
  int count = 0;
  double step = first_step(a->high / 2 - a->low / 2, most, whole), finer = step;
  while (count_ticks(a, step) > most && step < greatest / 2) {
    finer = step;
    step = next_step(step);
  }
  if (count_ticks(a, step) < 2) step = finer; // a few too many are better than one
  double first = ceil(a->low / step - 1e-9);
  for (int i = 0; i < TD_TICKS_MAX; i++) add_tick(a, ticks, &count, (first + i) * step, step, whole);
  return count;
}

// Powers of ten, at least two of them; or, in a shorter span, their multiples by 2 and 5 too.
static int ticks_by_decades(const td_axis *a, int most, td_tick *ticks) {
  int first = (int)ceil(log10(a->low) - 1e-9), last = (int)floor(log10(a->high) + 1e-9), count = 0, labels = 0;
  int stride = last > first ? (last - first + most) / most : 1;
  bool is_short = last - first < 2, has_small = stride == 1 && last - first < 6;
  for (int e = first - 1; e <= last; e++)
    for (int digit = 1; digit < (has_small ? 10 : 2); digit++) {
      bool labelled = digit == 1 ? (e - first) % stride == 0 : is_short && (digit == 2 || digit == 5);
      double value = digit * pow(10, e);
      labels += add_tick(a, ticks, &count, value, labelled ? value : 0, false) && labelled;
    }
  return labels < 2 ? 0 : count;
}

int td_axis_ticks(const td_axis *a, int most, bool whole, td_tick ticks[TD_TICKS_MAX]) {
  most = most < 2 ? 2 : most > TD_TICKS_MAX / 2 ? TD_TICKS_MAX / 2 : most;
  int count = a->logarithmic ? ticks_by_decades(a, most, ticks) : 0;
  return count ? count : ticks_by_steps(a, most, whole, ticks);
}
