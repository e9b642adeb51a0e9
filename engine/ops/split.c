// One tensor in several parts, and several tensors brought to one shape. All results are views.
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

#define AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(0) }

static int wrapped(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

static int check_count(td_infer *infer, int64_t count) {
  if (count <= TD_OUTPUT_MAX) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_VALUE, "%lld parts, at most %d fit in one call", (long long)count,
                           TD_OUTPUT_MAX);
  td_error_hint(infer->context, "x[a:b] reads one part without copying");
  return code;
}

// ---- parts along an axis ----

static int begin_parts(td_infer *infer, const td_arg *given, int *axis) {
  int code = td_infer_axis(infer, given->i, infer->in[0].rank, axis);
  infer->out_count = 0;
  return code;
}

static void add_part(td_infer *infer, int axis, int64_t size) {
  td_meta *out = &infer->out[infer->out_count++];
  *out = infer->in[0];
  out->shape[axis] = size;
}

static td_tensor *part_view(td_context *context, td_tensor *in, const td_infer *infer, int axis) {
  const td_meta *out = &infer->out[infer->output];
  int64_t offset = 0;
  for (int k = 0; k < infer->output; k++) offset += infer->out[k].shape[axis] * in->strides[axis];
  return td_tensor_view(context, in, out->rank, out->shape, in->strides, in->size ? offset : 0);
}

// The parts' cotangents behind each other, zeros for those that were not used. Each is brought to rank by an axis of
// size 1 where it lacks one.
static td_tensor *joined(td_rule *rule, int64_t axis) {
  td_tensor *parts[TD_OUTPUT_MAX];
  int rank = rule->in_meta[0].rank, at = wrapped(axis, rank);
  for (int k = 0; k < rule->out_count; k++) {
    const td_meta *out = &rule->out_meta[k];
    int64_t shape[TD_RANK_MAX];
    for (int i = 0; i < rank; i++)
      shape[i] = out->rank == rank ? out->shape[i] : i == at ? 1 : out->shape[i < at ? i : i - 1];
    td_tensor *c = rule->cotangent[k] ? rule->cotangent[k] : td_scope_filled(&rule->scope, 0, out);
    parts[k] = td_reshape(&rule->scope, c, rank, shape);
  }
  return rule->out_count ? td_concat_all(&rule->scope, parts, rule->out_count, axis) : NULL;
}

#define PARTS(name, AXIS)                                                                            \
  static td_tensor *name##_view(td_context *context, td_tensor *in, const td_infer *infer) {         \
    return part_view(context, in, infer, wrapped(infer->args[AXIS].i, in->rank));                    \
  }                                                                                                  \
  static int name##_vjp(td_rule *rule) {                                                             \
    rule->din[0] = joined(rule, rule->args[AXIS].i);                                       \
    return TD_OK;                                                                                    \
  }

// ---- split ----

static int check_sizes(td_infer *infer, const td_meta *sizes) {
  if (td_dtype_category(sizes->dtype) != 1)
    return td_infer_fail(infer, TD_ERROR_DTYPE, "sizes must be integers, not %s", td_dtype_name(sizes->dtype));
  if (sizes->rank > 1)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "sizes must be one number or a list of numbers, not of rank %d",
                         sizes->rank);
  return infer->tensors ? TD_OK : td_infer_fail(infer, TD_ERROR_VALUE, "the shapes of the results depend on values");
}

static int split_evenly(td_infer *infer, int axis, int64_t size, int64_t part) {
  if (part <= 0)
    return td_infer_fail(infer, TD_ERROR_VALUE, "size of the parts must be positive, not %lld", (long long)part);
  int64_t count = size ? (size - 1) / part + 1 : 1;
  int code = check_count(infer, count);
  for (int64_t k = 0; k < count && !code; k++) add_part(infer, axis, size - k * part < part ? size - k * part : part);
  return code;
}

static int split_infer(td_infer *infer) {
  int axis = 0, code = begin_parts(infer, &infer->args[0], &axis);
  if (!code) code = check_sizes(infer, &infer->in[1]);
  if (code) return code;
  const td_tensor *sizes = infer->tensors[1];
  int64_t size = infer->in[0].shape[axis], sum = 0;
  if (!sizes->rank) return split_evenly(infer, axis, size, td_tensor_get_int(sizes, 0));
  code = check_count(infer, sizes->size);
  for (int64_t k = 0; k < sizes->size && !code; k++) {
    int64_t part = td_tensor_get_int(sizes, k);
    if (part < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "size %lld is negative: %lld", (long long)k, (long long)part);
    if (__builtin_add_overflow(sum, part, &sum)) sum = INT64_MAX;
    add_part(infer, axis, part);
  }
  if (!code && sum != size)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "sizes add up to %lld, axis %d has size %lld", (long long)sum, axis,
                         (long long)size);
  return code;
}

PARTS(split, 0)

static const td_op split = {
    .name = "split",
    .params = {TD_X,
               {.name = "sizes", .kind = TD_PARAM_INDEX, .alias = TD_ALIAS("split_size", "split_size_or_sections")},
               AXIS_PARAM},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .outputs = TD_MANY,
    .method = true,
    .infer = split_infer,
    .view = split_view,
    .vjp = split_vjp,
    .saves = TD_SAVES_IN1,
    .doc =
        "x cut along axis, as in PyTorch: into parts of one size, the last of which may be smaller, or into parts of "
        "the sizes of a list. A tuple of views.\n"
        "Gradient: the parts' cotangents behind each other, zeros for those that were not used.\n"
        "chunk and array_split take the number of parts, as NumPy's split does.",
    .example = "[part.tolist() for part in split(arange(5), 2)]  # [[0, 1], [2, 3], [4]]",
    .samples = TD_SAMPLES{{"5,2; -", NULL, 1.6, 2.4, "float64; int64"},
                          {"2,6; 3", "axis=-1", 1.6, 2.4, "float64; int64"},
                          TD_SAMPLES_END},
};

// ---- chunk ----

static int chunk_infer(td_infer *infer) {
  int axis = 0, code = begin_parts(infer, &infer->args[1], &axis);
  int64_t chunks = infer->args[0].i, size = code ? 0 : infer->in[0].shape[axis];
  if (code) return code;
  if (chunks <= 0) return td_infer_fail(infer, TD_ERROR_VALUE, "chunks must be positive, not %lld", (long long)chunks);
  if (size) return split_evenly(infer, axis, size, (size - 1) / chunks + 1);
  code = check_count(infer, chunks);
  for (int64_t k = 0; k < chunks && !code; k++) add_part(infer, axis, 0);
  return code;
}

PARTS(chunk, 1)

static const td_op chunk = {
    .name = "chunk",
    .params = {TD_X, {.name = "chunks", .kind = TD_PARAM_INT, .required = true}, AXIS_PARAM},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .outputs = TD_MANY,
    .method = true,
    .infer = chunk_infer,
    .batch = td_batch_axes,
    .view = chunk_view,
    .vjp = chunk_vjp,
    .doc = "x cut along axis into at most chunks parts of one size, the last of which may be smaller: "
           "split(x, ceil(size / chunks)), and just chunks parts of an axis of size 0, as in PyTorch. A tuple of "
           "views.\n"
           "Gradient: the parts' cotangents behind each other, zeros for those that were not used.",
    .example = "[part.tolist() for part in chunk(arange(5), 2)]  # [[0, 1, 2], [3, 4]]",
    .samples = TD_SAMPLES{{"5,2", "chunks=2", -2, 2, NULL}, {"2,6", "chunks=4, axis=1", -2, 2, NULL}, TD_SAMPLES_END},
};

// ---- array_split ----

static int64_t cut_at(int64_t index, int64_t size) { // as a slice's border
  if (index < 0) index = index + size < 0 ? 0 : index + size;
  return index > size ? size : index;
}

static int array_split_infer(td_infer *infer) {
  int axis = 0, code = begin_parts(infer, &infer->args[0], &axis);
  if (!code) code = check_sizes(infer, &infer->in[1]);
  if (code) return code;
  const td_tensor *sections = infer->tensors[1];
  int64_t size = infer->in[0].shape[axis], from = 0;
  if (sections->rank) {
    code = check_count(infer, sections->size + 1);
    for (int64_t k = 0; k < sections->size && !code; k++) {
      int64_t to = cut_at(td_tensor_get_int(sections, k), size);
      if (to < from)
        return td_infer_fail(infer, TD_ERROR_VALUE, "cuts must ascend: %lld comes after %lld", (long long)to,
                             (long long)from);
      add_part(infer, axis, to - from);
      from = to;
    }
    if (!code) add_part(infer, axis, size - from);
    return code;
  }
  int64_t count = td_tensor_get_int(sections, 0);
  if (count <= 0) return td_infer_fail(infer, TD_ERROR_VALUE, "sections must be positive, not %lld", (long long)count);
  code = check_count(infer, count);
  for (int64_t k = 0; k < count && !code; k++) add_part(infer, axis, size / count + (k < size % count));
  return code;
}

PARTS(array_split, 0)

static const td_op array_split = {
    .name = "array_split",
    .alias = TD_ALIAS("tensor_split"),
    .params = {TD_X,
               {.name = "sections", .kind = TD_PARAM_INDEX, .alias = TD_ALIAS("indices_or_sections", "indices")},
               AXIS_PARAM},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .outputs = TD_MANY,
    .method = true,
    .infer = array_split_infer,
    .view = array_split_view,
    .vjp = array_split_vjp,
    .saves = TD_SAVES_IN1,
    .doc =
        "x cut along axis into a number of parts whose sizes differ by at most one, the larger ones first, or at the "
        "places of an ascending list. A tuple of views.\n"
        "Gradient: the parts' cotangents behind each other, zeros for those that were not used.",
    .example = "[part.tolist() for part in array_split(arange(5), 3)]  # [[0, 1], [2, 3], [4]]",
    .samples = TD_SAMPLES{{"5,2; -", NULL, 1.6, 2.4, "float64; int64"},
                          {"2,6; 2", "axis=-1", 2.6, 3.4, "float64; int64"},
                          TD_SAMPLES_END},
};

// ---- unstack ----

static int unstack_infer(td_infer *infer) {
  int axis = 0, code = begin_parts(infer, &infer->args[0], &axis);
  int64_t count = code ? 0 : infer->in[0].shape[axis];
  if (!code) code = check_count(infer, count);
  for (int64_t k = 0; k < count && !code; k++) {
    td_meta *out = &infer->out[infer->out_count++];
    *out = infer->in[0];
    memmove(out->shape + axis, out->shape + axis + 1, (size_t)(out->rank - axis - 1) * sizeof *out->shape);
    out->rank--;
  }
  return code;
}

static td_tensor *unstack_view(td_context *context, td_tensor *in, const td_infer *infer) {
  const td_meta *out = &infer->out[infer->output];
  int axis = wrapped(infer->args[0].i, in->rank);
  int64_t strides[TD_RANK_MAX];
  for (int i = 0; i < out->rank; i++) strides[i] = in->strides[i < axis ? i : i + 1];
  return td_tensor_view(context, in, out->rank, out->shape, strides, in->size ? infer->output * in->strides[axis] : 0);
}

static int unstack_vjp(td_rule *rule) {
  rule->din[0] = joined(rule, rule->args[0].i);
  return TD_OK;
}

static const td_op unstack = {
    .name = "unstack",
    .alias = TD_ALIAS("unbind"),
    .params = {TD_X, AXIS_PARAM},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .outputs = TD_MANY,
    .method = true,
    .infer = unstack_infer,
    .batch = td_batch_axes,
    .view = unstack_view,
    .vjp = unstack_vjp,
    .doc = "The tensors that stand along axis, without that axis: what stack put together. A tuple of views.\n"
           "Gradient: their cotangents stacked, zeros for those that were not used.",
    .example = "[row.tolist() for row in unstack(tensor([[1, 2], [3, 4]]))]  # [[1, 2], [3, 4]]",
    .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL}, {"2,3,2", "axis=-2", -2, 2, NULL}, TD_SAMPLES_END},
};

// ---- broadcast_tensors ----

static int broadcast_tensors_infer(td_infer *infer) {
  td_meta shape = {.rank = 0};
  for (int k = 0; k < infer->in_count; k++) {
    const td_meta *in = &infer->in[k];
    int64_t sizes[TD_RANK_MAX];
    int rank, axis;
    if (!td_shape_broadcast(shape.rank, shape.shape, in->rank, in->shape, &rank, sizes, &axis))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "tensor %d doesn't broadcast with those before it: axis %d", k, axis);
    shape.rank = (uint8_t)rank;
    memcpy(shape.shape, sizes, (size_t)rank * sizeof *sizes);
  }
  infer->out_count = infer->in_count;
  for (int k = 0; k < infer->in_count; k++) {
    infer->out[k] = shape;
    infer->out[k].dtype = infer->in[k].dtype;
  }
  return TD_OK;
}

static td_tensor *broadcast_tensors_view(td_context *context, td_tensor *in, const td_infer *infer) {
  const td_meta *out = &infer->out[infer->output];
  td_view from, to;
  in = infer->tensors[infer->output];
  td_view_of(&from, in);
  td_view_broadcast(&to, &from, out->rank, out->shape);
  return td_tensor_view(context, in, to.rank, to.shape, to.strides, 0);
}

static int broadcast_tensors_vjp(td_rule *rule) { // the tape sums them to the inputs' shapes
  for (int k = 0; k < rule->in_count; k++)
    if (rule->needs[k]) rule->din[k] = rule->cotangent[k];
  return TD_OK;
}

static const td_op broadcast_tensors = {
    .name = "broadcast_tensors",
    .alias = TD_ALIAS("broadcast_arrays"),
    .params = {{.name = "tensors", .kind = TD_PARAM_TENSORS_SPREAD}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .outputs = TD_MANY,
    .infer = broadcast_tensors_infer,
    .view = broadcast_tensors_view,
    .vjp = broadcast_tensors_vjp,
    .doc = "Each tensor broadcast to the shape that all of them have together. A tuple of views.\n"
           "Gradient: each cotangent, summed over the axes that were repeated.",
    .example = "[t.shape for t in broadcast_tensors(zeros((3, 1)), zeros(2))]  # [(3, 2), (3, 2)]",
    .samples = TD_SAMPLES{{"3,1; 2", NULL, -2, 2, NULL}, {"-; 2,1; 2,3", NULL, -2, 2, NULL}, TD_SAMPLES_END},
};

// ---- meshgrid ----

enum { MESHGRID_XY, MESHGRID_IJ };
static const char *const indexings[] = {[MESHGRID_XY] = "xy", [MESHGRID_IJ] = "ij", NULL};

// The axis of the grid along which tensor k runs: the first two are exchanged in "xy".
static int grid_axis(const td_arg *args, int count, int k) {
  return args[0].i == MESHGRID_XY && count > 1 && k < 2 ? 1 - k : k;
}

static int meshgrid_infer(td_infer *infer) {
  td_meta grid = {.rank = (uint8_t)infer->in_count};
  if (infer->in_count > TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is more than the %d that tensors can have", infer->in_count,
                         TD_RANK_MAX);
  for (int k = 0; k < infer->in_count; k++) {
    if (infer->in[k].rank > 1)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "needs tensors of rank 1, tensor %d has rank %d", k,
                           infer->in[k].rank);
    grid.shape[grid_axis(infer->args, infer->in_count, k)] = infer->in[k].rank ? infer->in[k].shape[0] : 1;
  }
  infer->out_count = infer->in_count;
  for (int k = 0; k < infer->in_count; k++) {
    infer->out[k] = grid;
    infer->out[k].dtype = infer->in[k].dtype;
  }
  return TD_OK;
}

static td_tensor *meshgrid_view(td_context *context, td_tensor *in, const td_infer *infer) {
  const td_meta *out = &infer->out[infer->output];
  int64_t strides[TD_RANK_MAX] = {0};
  in = infer->tensors[infer->output];
  if (in->rank) strides[grid_axis(infer->args, infer->in_count, infer->output)] = in->strides[0];
  return td_tensor_view(context, in, out->rank, out->shape, strides, 0);
}

static int meshgrid_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  for (int k = 0; k < rule->in_count; k++) {
    if (!rule->needs[k] || !rule->cotangent[k]) continue;
    td_arg others = {.given = 1};
    int own = grid_axis(rule->args, rule->in_count, k);
    for (int i = 0; i < rule->in_count; i++)
      if (i != own) others.ints[others.count++] = i;
    td_tensor *sum = others.count ? td_sum(s, rule->cotangent[k], &others, false) : rule->cotangent[k];
    rule->din[k] = td_reshape(s, sum, rule->in_meta[k].rank, rule->in_meta[k].shape);
  }
  return TD_OK;
}

static const td_op meshgrid = {
    .name = "meshgrid",
    .params =
        {{.name = "tensors", .kind = TD_PARAM_TENSORS_SPREAD},
         {.name = "indexing", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(MESHGRID_XY), .choices = indexings}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .outputs = TD_MANY,
    .infer = meshgrid_infer,
    .view = meshgrid_view,
    .vjp = meshgrid_vjp,
    .doc =
        "The coordinates of a grid: tensor k repeated along the axes of the others. With indexing=\"ij\" tensor k runs "
        "along axis k; with \"xy\", the default of NumPy, TensorFlow and JAX, the first runs along axis 1 and the "
        "second "
        "along axis 0. PyTorch's default is \"ij\". A tuple of views.\n"
        "Gradient: each cotangent, summed over the other axes.",
    .example = "[t.tolist() for t in meshgrid([1, 2], [3, 4])]  # [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]",
    .samples = TD_SAMPLES{{"3; 2", NULL, -2, 2, NULL},
                          {"3; 2; 4", "indexing=\"ij\"", -2, 2, NULL},
                          {"3; -; 2", NULL, -2, 2, NULL},
                          {"3", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_split[] = {&split, &chunk, &array_split, &unstack, &broadcast_tensors, &meshgrid, NULL};
