// A curve: the points (step, value) that were logged under a name, in bounded memory. Beyond TD_CURVE_BINS points
// neighbours share a bin, which keeps their lowest and highest value, so a drawing shows what all points would show.
#ifndef TD_LANGUAGE_CURVE_H
#define TD_LANGUAGE_CURVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TD_CURVE_BINS = 65536 };
enum { TD_CURVE_NAN = 1, TD_CURVE_RISES = 2, TD_CURVE_FALLS = 4 }; // a bin has NaN, +infinity, -infinity

typedef struct td_curve_bin {
  int64_t first, last; // steps
  double low, high, sum; // of the finite values
  int32_t finite; // how many these are
  int32_t odd; // TD_CURVE_NAN, ...
} td_curve_bin;

typedef struct td_curve_point {
  int64_t step;
  double value;
} td_curve_point;

typedef struct td_curve {
  char *name;
  td_curve_bin *bins;
  int64_t bin_count, bin_capacity;
  int64_t width; // points in a bin; the last one may have fewer
  int64_t filled; // points in the last bin
  td_curve_point last; // valid when bin_count > 0
  // So many bins from the first on are as they were when somebody set this to bin_count, but for those that were joined
  // since: who keeps the curve elsewhere, too, needs the width and what follows them.
  int64_t kept;
} td_curve;

void td_curve_merge(td_curve_bin *to, const td_curve_bin *from); // from follows to
td_curve_bin td_curve_bin_of(td_curve_point point);
double td_curve_value(const td_curve_bin *bin); // the mean of its finite values, else what it has instead
td_curve *td_curve_new(const char *name); // NULL: no memory
void td_curve_free(td_curve *curve);
// A step before the last one replaces what was logged from it on: a training that was resumed is one curve. false: no
// memory, the point is not there.
bool td_curve_add(td_curve *curve, int64_t step, double value);
// What another curve with this one's past has now: its width, its bins from so many on, the points in the last of them,
// its last point. false: they don't fit each other, or no memory.
typedef struct td_curve_rest {
  int64_t from, width, filled, count;
  const td_curve_bin *bins;
  td_curve_point last;
} td_curve_rest;
bool td_curve_resume(td_curve *curve, const td_curve_rest *rest);
void td_curve_cut(td_curve *curve, int64_t step); // forgets the points from that step on
// Curves that belong on one chart: loss, val_loss, train/loss and runs/a:loss.
const char *td_curve_kind(const char *name, size_t *length); // "loss"; borrowed from the name
bool td_curve_same_kind(const char *a, const char *b);
int64_t td_curve_points(const td_curve *curve); // how many it was given, less those that were replaced

// The session's curves, in the order of their first points (builtin_plot.c).
struct td_interpreter;
int td_curve_count(const struct td_interpreter *);
const td_curve *td_curve_at(const struct td_interpreter *, int index);
const td_curve *td_curve_find(const struct td_interpreter *, const char *name); // NULL: none
void td_plots_flush(struct td_interpreter *); // METRIC events for the points that no face was told of yet
void td_plots_free(struct td_interpreter *);
#endif
