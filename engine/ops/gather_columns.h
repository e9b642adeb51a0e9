// The columns of a convolution: for each result the numbers of its source that its taps read, so that results are
// weights times columns.
//  1. An axis is linear: result j reads, through tap m, source[origin + m * slope + j * step], or 0 outside.
//  2. Of a convolution: origin -padding, slope dilation, step stride. Of its adjoint the results fall into phases by
//     their place modulo stride; those of one phase read the same taps, and step is 1. So no product adds zeros up.
#ifndef TD_OPS_GATHER_COLUMNS_H
#define TD_OPS_GATHER_COLUMNS_H
#include "engine/ops/convolution.h"

typedef struct td_tap_axis {
  int64_t taps, origin, slope, step, source, results;
  int64_t tap_first, tap_step, result_first, result_step; // where tap m and result j stand in weights and result
  int64_t width; // of the result, all phases
} td_tap_axis;

typedef struct td_columns {
  uint8_t dtype;
  td_tap_axis axes[3];
  int64_t images, groups, channels; // of the source; channels of a group
  int64_t taps, results; // of one image and channel
  int64_t plane; // elements of the source's channel
  const char *source;
} td_columns;

typedef struct td_columns_part { // some channels of a group; results first to first + count of each of some images
  int64_t group, channel, channels, image, images, first, count;
} td_columns_part;

void td_columns_forward(const td_convolution *v, const char *x, td_columns *columns);
// phase: one number an axis, below its stride and in.
void td_columns_adjoint(const td_convolution *v, const char *y, const int64_t phase[3], td_columns *columns);

// Fills out: channels * taps rows of images * count numbers. Weights times them are the results.
void td_columns_fill(const td_columns *c, const td_columns_part *part, void *out);
// Whether the columns are the source itself, so that no copy is needed.
bool td_columns_plain(const td_columns *c);

// The results of axis that read inside the source through tap: low to high - 1 of count from first on, counted from 0.
void td_tap_range(const td_tap_axis *axis, int64_t tap, int64_t first, int64_t count, int64_t *low, int64_t *high);
#endif
