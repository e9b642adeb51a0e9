#include "engine/ops/windows.h"

#include "engine/ops/spatial.h"

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- windows ----

td_span td_window_span(const td_window_axis *a, int64_t o) { // of windows without dilation
  if (!a->kernel) { // [o in / out, (o + 1) in / out), rounded outwards; without overflow
    int64_t each = a->in / a->out, rest = a->in % a->out;
    td_span s = {o * each + o * rest / a->out, (o + 1) * each + ((o + 1) * rest + a->out - 1) / a->out, 0};
    s.count = s.high - s.low;
    return s;
  }
  int64_t start = o * a->stride - a->padding, end = least(start + a->kernel, a->in + a->padding);
  return (td_span){most(start, 0), most(most(start, 0), least(end, a->in)), end - start};
}

static void unit_axes(td_windows *w) {
  for (int i = 0; i < 3; i++) w->axes[i] = (td_window_axis){1, 1, 1, 1, 0, 1};
}

void td_windows_count(td_windows *w, int64_t size) {
  w->planes = w->plane = w->results = 0;
  if (!size) return; // of nothing the axes may be of any size
  w->plane = w->results = 1;
  for (int i = 0; i < 3; i++) {
    w->plane *= w->axes[i].in;
    w->results *= w->axes[i].out;
  }
  w->planes = size / w->plane;
}

// ---- shapes ----

// Fills in how many windows there are. False: not even one.
static bool count_windows(td_window_axis *a, bool ceil_mode) {
  int64_t room = a->in + 2 * a->padding - (a->dilation * (a->kernel - 1) + 1);
  if (room < 0) return false;
  a->out = (room + (ceil_mode ? a->stride - 1 : 0)) / a->stride + 1;
  if (ceil_mode && (a->out - 1) * a->stride >= a->in + a->padding) a->out--; // starts behind the last element
  return true;
}

void td_windows_shape(td_infer *infer, const td_windows *w, int output) {
  td_meta *out = &infer->out[output];
  *out = infer->in[0];
  for (int i = 0; i < w->rank; i++) out->shape[out->rank - w->rank + i] = w->axes[3 - w->rank + i].out;
}

// dilation: NULL where there is none.
bool td_windows_fill(td_windows *w, int n, const int64_t *sizes, const td_arg *kernel, const td_arg *stride,
                     const td_arg *padding, const td_arg *dilation, bool ceil_mode, int *short_axis) {
  unit_axes(w);
  w->rank = n;
  for (int i = 0; i < n; i++) {
    td_window_axis *a = &w->axes[3 - n + i];
    *a = (td_window_axis){
        .in = sizes[i], .kernel = td_spatial_number(kernel, i), .padding = td_spatial_number(padding, i)};
    a->stride = stride->given ? td_spatial_number(stride, i) : a->kernel;
    a->dilation = dilation ? td_spatial_number(dilation, i) : 1;
    *short_axis = i;
    if (!count_windows(a, ceil_mode)) return false;
  }
  return true;
}

int td_windows_infer(td_infer *infer, int n, const td_arg *dilation, bool ceil_mode, td_windows *w) {
  const td_arg *args = infer->args; // kernel, stride, padding come first everywhere
  const td_meta *x = &infer->in[0];
  int axis = 0, code = td_spatial_rank(infer, n);
  if (!code) code = td_spatial_check(infer, &args[0], n, "kernel_size", 1);
  if (!code) code = td_spatial_check(infer, &args[1], n, "stride", 1);
  if (!code) code = td_spatial_check(infer, &args[2], n, "padding", 0);
  if (!code && dilation) code = td_spatial_check(infer, dilation, n, "dilation", 1);
  for (int i = 0; i < n && !code; i++) {
    int64_t kernel = td_spatial_number(&args[0], i), padding = td_spatial_number(&args[2], i),
            step = dilation ? td_spatial_number(dilation, i) : 1;
    if (!x->shape[x->rank - n + i]) code = td_infer_fail(infer, TD_ERROR_SHAPE, "spatial axis %d of x is empty", i);
    else if (x->shape[x->rank - n + i] > TD_SPATIAL_MAX || kernel > TD_SPATIAL_MAX / step)
      code = td_infer_fail(infer, TD_ERROR_VALUE, "the window or x is too large along spatial axis %d", i);
    else if (padding > (step * (kernel - 1) + 1) / 2)
      code = td_infer_fail(infer, TD_ERROR_VALUE, "padding %lld is more than half of the window, %lld",
                           (long long)padding, (long long)(step * (kernel - 1) + 1));
  }
  if (code || td_windows_fill(w, n, x->shape + x->rank - n, &args[0], &args[1], &args[2], dilation, ceil_mode, &axis))
    return code;
  const td_window_axis *a = &w->axes[3 - n + axis];
  code = td_infer_fail(infer, TD_ERROR_SHAPE, "the window spans %lld along spatial axis %d%s, x has %lld with padding",
                       (long long)(a->dilation * (a->kernel - 1) + 1), axis,
                       a->dilation > 1 ? " with its dilation" : "", (long long)(a->in + 2 * a->padding));
  td_error_hint(infer->context, "kernel_size=%lld fits",
                (long long)most(1, (a->in + 2 * a->padding - 1) / a->dilation + 1));
  return code;
}

int td_windows_infer_adaptive(td_infer *infer, int n, const td_arg *sizes, td_windows *w) {
  const td_meta *x = &infer->in[0];
  int code = td_spatial_rank(infer, n);
  if (!code) code = td_spatial_check(infer, sizes, n, "output_size", 1);
  unit_axes(w);
  w->rank = n;
  for (int i = 0; i < n && !code; i++) {
    int64_t in = x->shape[x->rank - n + i];
    w->axes[3 - n + i] = (td_window_axis){.in = in, .out = td_spatial_number(sizes, i)};
    if (!in) code = td_infer_fail(infer, TD_ERROR_SHAPE, "spatial axis %d of x is empty", i);
  }
  return code;
}

td_windows td_windows_adaptive(const int64_t *sizes, int n, const td_arg *out, int64_t size) {
  td_windows w = {.rank = n};
  unit_axes(&w);
  for (int i = 0; i < n; i++) w.axes[3 - n + i] = (td_window_axis){.in = sizes[i], .out = td_spatial_number(out, i)};
  td_windows_count(&w, size);
  return w;
}
