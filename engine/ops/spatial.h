// What ops on images share: operands [N, C, spatial axes] or [C, spatial axes] with one to three spatial axes, and
// arguments that are one number or one for each of these axes.
#ifndef TD_OPS_SPATIAL_H
#define TD_OPS_SPATIAL_H
#include "engine/ops/op.h"

// Sizes and positions up to this; sums and products of two with small numbers stay far from the end of int64.
#define TD_SPATIAL_MAX (INT64_C(1) << 40)

static inline int64_t td_spatial_number(const td_arg *arg, int axis) { return arg->ints[arg->count == 1 ? 0 : axis]; }

int td_spatial_rank(td_infer *infer, int n); // input 0 has n spatial axes
// Error: a number of the argument is below lowest, or above TD_SPATIAL_MAX.
int td_spatial_range(td_infer *infer, const td_arg *arg, const char *name, int64_t lowest);
int td_spatial_check(td_infer *infer, const td_arg *arg, int n, const char *name,
                     int64_t lowest); // None and words pass
int td_spatial_axes(const td_op *op); // of a row that ends with them: conv2d 2
#endif
