// Windows that slide over a tensor: as a view, and as the columns that a convolution multiplies (im2col, col2im).
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/spatial.h"

static int wrapped(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

// ---- sliding_window_view ----

// Axis of the k-th window size; without axes they are all of x's.
static int window_axis(const td_arg *args, int rank, int k) {
  return args[1].given ? wrapped(args[1].ints[k], rank) : k;
}

static int windows_check(td_infer *infer, int rank) {
  const td_arg *window = &infer->args[0], *axes = &infer->args[1];
  bool named[TD_RANK_MAX];
  int count = axes->given ? axes->count : rank;
  if (window->count != count)
    return td_infer_fail(infer, TD_ERROR_VALUE, "window_shape has %d sizes for %d axes%s", window->count, count,
                         axes->given ? " in axis" : "");
  if (rank + count > TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is more than the %d that tensors can have", rank + count,
                         TD_RANK_MAX);
  return axes->given ? td_infer_axes(infer, axes, rank, named) : TD_OK;
}

static int windows_shape(td_infer *infer, const td_meta *x, td_meta *out) {
  const td_arg *window = &infer->args[0];
  *out = *x;
  for (int k = 0; k < window->count; k++) {
    int axis = window_axis(infer->args, x->rank, k);
    int64_t size = window->ints[k];
    if (size < 0 || size > out->shape[axis])
      return td_infer_fail(infer, TD_ERROR_VALUE, "window_shape: %lld doesn't fit axis %d of size %lld",
                           (long long)size, axis, (long long)out->shape[axis]);
    out->shape[axis] -= size - 1;
    out->shape[out->rank++] = size;
  }
  return TD_OK;
}

static int windows_infer(td_infer *infer) {
  int code = windows_check(infer, infer->in[0].rank);
  return code ? code : windows_shape(infer, &infer->in[0], &infer->out[0]);
}

static td_tensor *windows_view(td_context *context, td_tensor *in, const td_infer *infer) {
  int64_t strides[TD_RANK_MAX];
  int rank = in->rank;
  for (int i = 0; i < in->rank; i++) strides[i] = in->strides[i];
  for (int k = 0; k < infer->args[0].count; k++) strides[rank++] = in->strides[window_axis(infer->args, in->rank, k)];
  return td_tensor_view(context, in, rank, infer->out[0].shape, strides, 0);
}

static const td_op windows_adjoint;

static int windows_vjp(td_rule *rule) {
  const td_meta *x = &rule->in_meta[0];
  const td_arg args[] = {rule->args[0], rule->args[1], td_ints_arg(x->rank, x->shape)};
  rule->din[0] = td_scope_apply(&rule->scope, &windows_adjoint, args, 1, rule->cotangent[0]);
  return TD_OK;
}

#define WINDOW_PARAMS                                                                                        \
  {.name = "window_shape", .kind = TD_PARAM_INTS, .required = true}, { .name = "axis", .kind = TD_PARAM_AXES }

static const td_op sliding_window_view = {
    .name = "sliding_window_view",
    .params = {TD_X, WINDOW_PARAMS},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .infer = windows_infer,
    .view = windows_view,
    .vjp = windows_vjp,
    .doc = "All windows of window_shape along axis, of each axis without one: where an axis had size n it has n - w + "
           "1, and "
           "the windows' own axes stand at the end. No copy.\n"
           "Gradient: the cotangent, added up where windows overlap.",
    .example = "sliding_window_view(arange(4), 2).tolist()  # [[0, 1], [1, 2], [2, 3]]",
    .samples = TD_SAMPLES{{"5", "window_shape=3", -2, 2, NULL},
                          {"3,4", "window_shape=(2, 2)", -2, 2, NULL},
                          {"2,5", "window_shape=2, axis=-1", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static int windows_adjoint_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[2];
  td_meta x = {.dtype = infer->in[0].dtype, .rank = (uint8_t)shape->count}, want;
  for (int i = 0; i < shape->count; i++) x.shape[i] = shape->ints[i];
  int code = windows_check(infer, x.rank);
  if (!code) code = windows_shape(infer, &x, &want);
  if (code) return code;
  infer->out[0] = x;
  if (td_shape_equal(want.rank, want.shape, infer->in[0].rank, infer->in[0].shape)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "the tensor's shape is not the windows'");
}

#define ADD_ROW(T)                                                                                   \
  for (int64_t i = 0; i < n; i++) ((T *)out->data)[to + i * to_step] += ((const T *)in->data)[from + i * from_step]

// In the order of the windows.
static int windows_adjoint_kernel(const td_call *call) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  int64_t strides[TD_RANK_MAX], at[TD_RANK_MAX] = {0}, to = 0, from = 0;
  int rank = out->rank, last = in->rank - 1;
  memset(out->data, 0, (size_t)(out->size * td_dtype_bytes(out->dtype)));
  for (int i = 0; i < out->rank; i++) strides[i] = out->strides[i];
  for (int k = 0; k < call->args[0].count; k++) strides[rank++] = out->strides[window_axis(call->args, out->rank, k)];
  if (!in->size) return TD_OK;
  int64_t n = in->rank ? in->shape[last] : 1, to_step = in->rank ? strides[last] : 0,
          from_step = in->rank ? in->strides[last] : 0;
  for (int axis = 0; axis >= 0;) {
    switch (out->dtype) {
    case TD_FLOAT32: ADD_ROW(float); break;
    case TD_FLOAT64: ADD_ROW(double); break;
    case TD_INT32: ADD_ROW(uint32_t); break;
    case TD_INT64: ADD_ROW(uint64_t); break;
    default: ADD_ROW(uint8_t);
    }
    for (axis = last - 1; axis >= 0; axis--) {
      to += strides[axis];
      from += in->strides[axis];
      if (++at[axis] < in->shape[axis]) break;
      to -= strides[axis] * in->shape[axis];
      from -= in->strides[axis] * in->shape[axis];
      at[axis] = 0;
    }
  }
  return TD_OK;
}

static int windows_adjoint_vjp(td_rule *rule) {
  rule->din[0] = td_scope_apply(&rule->scope, &sliding_window_view, rule->args, 1, rule->cotangent[0]);
  return TD_OK;
}

static const td_op windows_adjoint = {
    .name = "sliding_window_adjoint",
    .params = {TD_X, WINDOW_PARAMS, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HIDDEN,
    .infer = windows_adjoint_infer,
    .kernel = windows_adjoint_kernel,
    .vjp = windows_adjoint_vjp,
    .doc = "Windows added up where they lie in a tensor of a shape: the gradient of sliding_window_view.\n"
           "Gradient: the cotangent's windows.",
    .samples = TD_SAMPLES{{"3,3", "window_shape=3, axis=0, shape=(5,)", -2, 2, NULL},
                          {"2,3,2,2", "window_shape=(2, 2), shape=(3, 4)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- im2col, col2im: images [N, C, H, W] or [C, H, W], columns [N, C * kh * kw, L] ----

typedef struct grid { // of an image's windows; [0] along its rows, [1] along its columns
  int64_t images, channels, size[2], kernel[2], dilation[2], padding[2], stride[2], windows[2];
} grid;

static int64_t one_or_two(const td_arg *arg, int k) { return arg->ints[arg->count == 1 ? 0 : k]; }

static int grid_make(td_infer *infer, const td_arg *sizes, int64_t height, int64_t width,
                     grid *g) { // sizes: kernel_size, ...
  static const char *const names[] = {"kernel_size", "dilation", "padding", "stride"};
  const char *image = sizes == infer->args ? "x" : "output_size";
  int64_t *fields[] = {g->kernel, g->dilation, g->padding, g->stride};
  g->size[0] = height;
  g->size[1] = width;
  for (int k = 0; k < 2; k++)
    if (g->size[k] < 0 || g->size[k] > INT32_MAX)
      return td_infer_fail(infer, TD_ERROR_VALUE, "%s must be 0 to %d along axis %d, not %lld", image, INT32_MAX, k - 2,
                           (long long)g->size[k]);
  for (int f = 0; f < 4; f++) {
    if (sizes[f].count != 1 && sizes[f].count != 2)
      return td_infer_fail(infer, TD_ERROR_VALUE, "%s must be one number or two, not %d", names[f], sizes[f].count);
    int code = td_spatial_range(infer, &sizes[f], names[f], f != 2);
    if (code) return code;
    for (int k = 0; k < 2; k++) fields[f][k] = one_or_two(&sizes[f], k);
  }
  for (int k = 0; k < 2; k++) {
    int64_t span;
    if (__builtin_mul_overflow(g->dilation[k], g->kernel[k] - 1, &span)) span = INT64_MAX - 1;
    int64_t room = g->size[k] + 2 * g->padding[k] - span - 1;
    if (room < 0)
      return td_infer_fail(infer, TD_ERROR_SHAPE,
                           "kernel_size and dilation span %lld along axis %d, %s has %lld with padding",
                           (long long)(span + 1), k - 2, image, (long long)(g->size[k] + 2 * g->padding[k]));
    g->windows[k] = room / g->stride[k] + 1;
  }
  int64_t area, windows;
  if (__builtin_mul_overflow(g->windows[0], g->windows[1], &windows) ||
      __builtin_mul_overflow(g->kernel[0], g->kernel[1], &area) || windows > INT64_MAX >> 8 || area > INT64_MAX >> 8)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "%s, kernel_size, padding and stride make too many windows", image);
  return TD_OK;
}

static void grid_of(const td_arg *sizes, const td_view *image, grid *g) { // of a call that infer let through
  int64_t *fields[] = {g->kernel, g->dilation, g->padding, g->stride};
  for (int k = 0; k < 2; k++) {
    for (int f = 0; f < 4; f++) fields[f][k] = one_or_two(&sizes[f], k);
    g->size[k] = image->shape[image->rank - 2 + k];
    g->windows[k] = (g->size[k] + 2 * g->padding[k] - g->dilation[k] * (g->kernel[k] - 1) - 1) / g->stride[k] + 1;
  }
  g->images = image->rank == 4 ? image->shape[0] : 1;
  g->channels = image->shape[image->rank - 3];
}

static int im2col_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  grid g;
  if (in->rank != 3 && in->rank != 4)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "needs images [N, C, H, W] or [C, H, W], the tensor has rank %d",
                         in->rank);
  int code = grid_make(infer, infer->args, in->shape[in->rank - 2], in->shape[in->rank - 1], &g);
  if (code) return code;
  *out = (td_meta){.dtype = in->dtype, .rank = (uint8_t)(in->rank - 1)};
  out->shape[0] = in->shape[0];
  if (__builtin_mul_overflow(in->shape[in->rank - 3], g.kernel[0] * g.kernel[1], &out->shape[out->rank - 2]))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "there are too many rows");
  out->shape[out->rank - 1] = g.windows[0] * g.windows[1];
  return TD_OK;
}

// Windows [first, last) along k whose element at kernel position lies inside of the image.
static void inside(const grid *g, int k, int64_t position, int64_t *first, int64_t *last) {
  int64_t shift = position * g->dilation[k] - g->padding[k];
  *first = shift >= 0 ? 0 : (-shift + g->stride[k] - 1) / g->stride[k];
  *last = g->size[k] - 1 - shift < 0 ? 0 : (g->size[k] - 1 - shift) / g->stride[k] + 1;
  if (*last > g->windows[k]) *last = g->windows[k];
  if (*first > *last) *first = *last;
}

typedef struct columns {
  grid g;
  const td_view *image;
  char *data; // the columns
  uint8_t dtype;
} columns;

#define READ_WINDOWS(T)                                                                           \
  do {                                                                                            \
    T *out = (T *)c->data + row * g->windows[0] * g->windows[1];                                  \
    memset(out, 0, (size_t)(g->windows[0] * g->windows[1]) * sizeof *out);                        \
    for (int64_t y = first[0]; y < last[0]; y++)                                                  \
      for (int64_t x = first[1]; x < last[1]; x++)                                                \
        out[y * g->windows[1] + x] =                                                              \
            ((const T *)v->data)[base + (y * g->stride[0] + shift[0]) * v->strides[v->rank - 2] + \
                                 (x * g->stride[1] + shift[1]) * v->strides[v->rank - 1]];        \
  } while (0)

static void read_rows(void *argument, int64_t from, int64_t to) { // rows: one kernel position of one channel
  const columns *c = argument;
  const grid *g = &c->g;
  const td_view *v = c->image;
  int64_t area = g->kernel[0] * g->kernel[1];
  for (int64_t row = from; row < to; row++) {
    int64_t position[2] = {row % area / g->kernel[1], row % g->kernel[1]}, first[2], last[2], shift[2];
    int64_t channel = row / area % g->channels, image = row / area / g->channels;
    int64_t base = channel * v->strides[v->rank - 3] + (v->rank == 4 ? image * v->strides[0] : 0);
    for (int k = 0; k < 2; k++) {
      inside(g, k, position[k], &first[k], &last[k]);
      shift[k] = position[k] * g->dilation[k] - g->padding[k];
    }
    switch (td_dtype_bytes(c->dtype)) {
    case 1: READ_WINDOWS(uint8_t); break;
    case 2: READ_WINDOWS(uint16_t); break;
    case 4: READ_WINDOWS(uint32_t); break;
    default: READ_WINDOWS(uint64_t);
    }
  }
}

static int im2col_kernel(const td_call *call) {
  columns c = {.image = &call->in[0], .data = call->out[0].data, .dtype = call->in[0].dtype};
  grid_of(call->args, c.image, &c.g);
  td_ranges_run(call->context->pool, c.g.images * c.g.channels * c.g.kernel[0] * c.g.kernel[1],
                c.g.windows[0] * c.g.windows[1], read_rows, &c);
  return TD_OK;
}

static const td_op im2col, col2im;

static int im2col_vjp(td_rule *rule) {
  const td_meta *x = &rule->in_meta[0];
  const td_arg *a = rule->args, args[] = {td_ints_arg(2, x->shape + x->rank - 2), a[0], a[1], a[2], a[3]};
  rule->din[0] = td_scope_apply(&rule->scope, &col2im, args, 1, rule->cotangent[0]);
  return TD_OK;
}

#define GRID_PARAMS                                                                                               \
  {.name = "kernel_size", .kind = TD_PARAM_INTS, .required = true},                                               \
      {.name = "dilation", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {1}}},             \
      {.name = "padding", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {0}}}, {            \
    .name = "stride", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {1} }                   \
  }

static const td_op im2col = {
    .name = "im2col",
    .alias = TD_ALIAS("unfold"),
    .params = {TD_X, GRID_PARAMS},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .infer = im2col_infer,
    .kernel = im2col_kernel,
    .vjp = im2col_vjp,
    .doc = "The windows of images [N, C, H, W] as columns, [N, C * kh * kw, L]: PyTorch's unfold. Sizes are one number "
           "for "
           "rows and columns, or two; padding is zeros.\n"
           "Gradient: col2im of the cotangent.",
    .example = "im2col(arange(4).reshape(1, 1, 2, 2), (1, 2)).tolist()  # [[[0, 2], [1, 3]]]",
    .samples = TD_SAMPLES{{"1,2,4,3", "kernel_size=2", -2, 2, NULL},
                          {"2,1,4,5", "kernel_size=(3, 2), padding=(1, 0), stride=(2, 1)", -2, 2, NULL},
                          {"2,5,5", "kernel_size=2, dilation=2, padding=1, stride=3", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static int col2im_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  const td_arg *size = &infer->args[0];
  td_meta *out = &infer->out[0];
  grid g;
  if (in->dtype == TD_BOOL) return td_infer_fail(infer, TD_ERROR_DTYPE, "bools can't be added up: cast them first");
  if (in->rank != 2 && in->rank != 3)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "needs columns [N, C * kh * kw, L], the tensor has rank %d", in->rank);
  if (size->count != 1 && size->count != 2)
    return td_infer_fail(infer, TD_ERROR_VALUE, "output_size must be one number or two, not %d", size->count);
  int code = grid_make(infer, infer->args + 1, one_or_two(size, 0), one_or_two(size, 1), &g);
  if (code) return code;
  int64_t area = g.kernel[0] * g.kernel[1], rows = in->shape[in->rank - 2], windows = g.windows[0] * g.windows[1];
  if (rows % area || in->shape[in->rank - 1] != windows)
    return td_infer_fail(
        infer, TD_ERROR_SHAPE,
        "output_size, kernel_size, dilation, padding and stride need %lld columns of a multiple of %lld elements",
        (long long)windows, (long long)area);
  *out = (td_meta){.dtype = in->dtype, .rank = (uint8_t)(in->rank + 1)};
  out->shape[0] = in->shape[0];
  out->shape[out->rank - 3] = rows / area;
  out->shape[out->rank - 2] = g.size[0];
  out->shape[out->rank - 1] = g.size[1];
  return TD_OK;
}

#define ADD_WINDOWS(T)                                                                                     \
  do {                                                                                                     \
    T *out = (T *)c->data + plane * g->size[0] * g->size[1];                                               \
    for (int64_t y = first[0]; y < last[0]; y++)                                                           \
      for (int64_t x = first[1]; x < last[1]; x++)                                                         \
        out[(y * g->stride[0] + shift[0]) * g->size[1] + x * g->stride[1] + shift[1]] +=                   \
            ((const T *)v->data)[base + (y * g->windows[1] + x) * v->strides[v->rank - 1]];                \
  } while (0)

static void add_planes(void *argument, int64_t from, int64_t to) { // planes: one channel of one image
  const columns *c = argument;
  const grid *g = &c->g;
  const td_view *v = c->image;
  int64_t area = g->kernel[0] * g->kernel[1];
  for (int64_t plane = from; plane < to; plane++)
    for (int64_t at = 0; at < area; at++) {
      int64_t position[2] = {at / g->kernel[1], at % g->kernel[1]}, first[2], last[2], shift[2];
      int64_t row = plane % g->channels * area + at;
      int64_t base = row * v->strides[v->rank - 2] + (v->rank == 3 ? plane / g->channels * v->strides[0] : 0);
      for (int k = 0; k < 2; k++) {
        inside(g, k, position[k], &first[k], &last[k]);
        shift[k] = position[k] * g->dilation[k] - g->padding[k];
      }
      switch (c->dtype) {
      case TD_FLOAT32: ADD_WINDOWS(float); break;
      case TD_FLOAT64: ADD_WINDOWS(double); break;
      case TD_INT32: ADD_WINDOWS(uint32_t); break;
      case TD_INT64: ADD_WINDOWS(uint64_t); break;
      default: ADD_WINDOWS(uint8_t);
      }
    }
}

static int col2im_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  columns c = {.image = &call->in[0], .data = out->data, .dtype = out->dtype};
  grid_of(call->args + 1, out, &c.g);
  memset(out->data, 0, (size_t)(out->size * td_dtype_bytes(out->dtype)));
  td_ranges_run(call->context->pool, c.g.images * c.g.channels,
                c.g.kernel[0] * c.g.kernel[1] * c.g.windows[0] * c.g.windows[1], add_planes, &c);
  return TD_OK;
}

static int col2im_vjp(td_rule *rule) {
  rule->din[0] = td_scope_apply(&rule->scope, &im2col, rule->args + 1, 1, rule->cotangent[0]);
  return TD_OK;
}

static const td_op col2im = {
    .name = "col2im",
    .alias = TD_ALIAS("fold"),
    .params = {TD_X, {.name = "output_size", .kind = TD_PARAM_INTS, .required = true}, GRID_PARAMS},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR,
    .infer = col2im_infer,
    .kernel = col2im_kernel,
    .vjp = col2im_vjp,
    .doc = "Columns [N, C * kh * kw, L] added up as windows of images [N, C, H, W] whose H and W output_size says: "
           "PyTorch's "
           "fold, the transpose of im2col.\nGradient: im2col of the cotangent.",
    .example = "col2im(ones((1, 2, 2), dtype=int64), (1, 3), (1, 2)).tolist()  # [[[[1, 2, 1]]]]",
    .samples =
        TD_SAMPLES{{"1,8,6", "output_size=(4, 3), kernel_size=2", -2, 2, NULL},
                   {"2,6,8", "output_size=(4, 5), kernel_size=(3, 2), padding=(1, 0), stride=(2, 1)", -2, 2, NULL},
                   {"8,4", "output_size=5, kernel_size=2, dilation=2, padding=1, stride=3", -2, 2, NULL},
                   TD_SAMPLES_END},
};

const td_op *const td_family_sliding_window[] = {&sliding_window_view, &windows_adjoint, &im2col, &col2im, NULL};
