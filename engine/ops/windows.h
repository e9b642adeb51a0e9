// Windows of pooling over the last one to three axes: given by kernel and stride, or (adaptive) by how many there are.
// Private to the families of pooling.
#ifndef TD_OPS_WINDOWS_H
#define TD_OPS_WINDOWS_H
#include "engine/ops/op.h"

typedef struct td_window_axis {
  int64_t in, out, kernel, stride, padding, dilation; // kernel 0: adaptive
} td_window_axis;

typedef struct td_windows {
  int rank;
  td_window_axis axes[3]; // depth, height, width; missing ones have size 1
  int64_t planes, plane, results; // what stands before the axes; elements of x and of the result in a plane
} td_windows;

typedef struct td_span { // elements low to high - 1 of an axis; count: with the padding that the window covers
  int64_t low, high, count;
} td_span;

td_span td_window_span(const td_window_axis *axis, int64_t index); // of windows without dilation

// For infer rules whose first arguments are kernel_size, stride, padding; dilation may be NULL. Errors name sizes.
int td_windows_infer(td_infer *infer, int n, const td_arg *dilation, bool ceil_mode, td_windows *w);
int td_windows_infer_adaptive(td_infer *infer, int n, const td_arg *sizes, td_windows *w);
void td_windows_shape(td_infer *infer, const td_windows *w, int output); // the shape of x with the windows' counts

// For kernels: the same over an x of n spatial sizes. False: not even one window fits along short_axis.
bool td_windows_fill(td_windows *w, int n, const int64_t *sizes, const td_arg *kernel, const td_arg *stride,
                     const td_arg *padding, const td_arg *dilation, bool ceil_mode, int *short_axis);
td_windows td_windows_adaptive(const int64_t *sizes, int n, const td_arg *out, int64_t size);
void td_windows_count(td_windows *w, int64_t size); // fills in planes, plane, results of an x of size elements
#endif
