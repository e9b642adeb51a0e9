// Diagonals and triangles of the matrices in two axes.
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/index.h"
#include "engine/ops/map.h"

static int wrapped(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

#define OFFSET_PARAM \
  { .name = "offset", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0), .alias = TD_ALIAS("k", "diagonal") }
#define AXES_PARAMS(first, second)                                                                             \
  {.name = "axis1", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(first), .alias = TD_ALIAS("dim1")}, {    \
    .name = "axis2", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(second), .alias = TD_ALIAS("dim2")      \
  }

// ---- where a diagonal lies ----

typedef struct diagonal_place {
  int axis1, axis2;
  int64_t length, row, column; // elements, and where it begins
} diagonal_place;

static diagonal_place place_of(int rank, const int64_t *shape, const td_arg *args) { // args: offset, axis1, axis2
  diagonal_place d = {.axis1 = wrapped(args[1].i, rank), .axis2 = wrapped(args[2].i, rank)};
  int64_t rows = shape[d.axis1], columns = shape[d.axis2], offset = args[0].i;
  if (offset >= columns || offset <= -rows) return d;
  if (offset < 0) d.row = -offset;
  else d.column = offset;
  d.length = rows - d.row < columns - d.column ? rows - d.row : columns - d.column;
  return d;
}

static int check_axes(td_infer *infer, const td_arg *args, int rank) {
  int first = 0, second = 0, code = td_infer_axis(infer, args[1].i, rank, &first);
  if (!code) code = td_infer_axis(infer, args[2].i, rank, &second);
  if (!code && first == second) code = td_infer_fail(infer, TD_ERROR_VALUE, "axis1 and axis2 are both axis %d", first);
  return code;
}

// Shape and strides of the diagonals of view, which are its last axis.
static void diagonal_view_of(const td_view *view, const td_arg *args, td_view *out) {
  diagonal_place d = place_of(view->rank, view->shape, args);
  int rank = 0;
  *out = *view;
  for (int i = 0; i < view->rank; i++) {
    if (i == d.axis1 || i == d.axis2) continue;
    out->shape[rank] = view->shape[i];
    out->strides[rank++] = view->strides[i];
  }
  out->shape[rank] = d.length;
  out->strides[rank++] = view->strides[d.axis1] + view->strides[d.axis2];
  out->rank = (uint8_t)rank;
  out->size = td_shape_size(rank, out->shape);
  if (out->size)
    out->data += (d.row * view->strides[d.axis1] + d.column * view->strides[d.axis2]) * td_dtype_bytes(view->dtype);
}

// ---- diagonal ----

static int diagonal_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  if (in->rank < 2) return td_infer_fail(infer, TD_ERROR_SHAPE, "needs matrices, the tensor has rank %d", in->rank);
  int code = check_axes(infer, infer->args, in->rank), rank = 0;
  if (code) return code;
  diagonal_place d = place_of(in->rank, in->shape, infer->args);
  for (int i = 0; i < in->rank; i++)
    if (i != d.axis1 && i != d.axis2) out->shape[rank++] = in->shape[i];
  out->shape[rank++] = d.length;
  out->rank = (uint8_t)rank;
  out->dtype = in->dtype;
  return TD_OK;
}

static td_tensor *diagonal_view(td_context *context, td_tensor *in, const td_infer *infer) {
  td_view from, to;
  td_view_of(&from, in);
  diagonal_view_of(&from, infer->args, &to);
  return td_tensor_view(context, in, to.rank, to.shape, to.strides, (to.data - in->data) / td_dtype_bytes(in->dtype));
}

static td_tensor *diagonal_back(td_scope *s, td_tensor *c, const td_arg *args, const td_meta *x);

static int diagonal_vjp(td_rule *rule) {
  rule->din[0] = diagonal_back(&rule->scope, rule->cotangent[0], rule->args, &rule->in_meta[0]);
  return TD_OK;
}

static const td_op diagonal = {
    .name = "diagonal",
    .params = {TD_X, OFFSET_PARAM, AXES_PARAMS(0, 1)},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = diagonal_infer,
    .batch = td_batch_axes,
    .view = diagonal_view,
    .vjp = diagonal_vjp,
    .doc = "The diagonals of the matrices in axis1 and axis2 as the last axis, offset above the main one. No copy.\n"
           "Gradient: the cotangent on the diagonals, zeros beside them.",
    .example = "diagonal(tensor([[1, 2], [3, 4]])).tolist()  # [1, 4]",
    .samples = TD_SAMPLES{{"3,4", NULL, -2, 2, NULL},
                          {"3,4", "offset=2", -2, 2, NULL},
                          {"3,4", "offset=-5", -2, 2, NULL},
                          {"2,3,4", "offset=-1, axis1=-1, axis2=0", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- diagonal_adjoint, diag_embed, diag ----

// Zeros of out's shape with x on the diagonals.
static int place_diagonal(const td_call *call, const td_arg *args) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  td_view lines;
  int bytes = td_dtype_bytes(out->dtype);
  memset(out->data, 0, (size_t)(out->size * bytes));
  diagonal_view_of(out, args, &lines);
  td_elements_move(call->context->pool, lines.data, lines.strides, x->data, x->strides, bytes, x->rank, x->shape);
  return TD_OK;
}

static int diagonal_adjoint_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[3];
  td_meta *out = &infer->out[0];
  *out = (td_meta){.dtype = infer->in[0].dtype, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) out->shape[i] = shape->ints[i];
  int code = shape->count < 2 ? td_infer_fail(infer, TD_ERROR_SHAPE, "needs the shape of matrices")
                              : check_axes(infer, infer->args, out->rank);
  if (code) return code;
  td_view from = {.rank = out->rank, .dtype = out->dtype}, lines;
  memcpy(from.shape, out->shape, sizeof from.shape);
  diagonal_view_of(&from, infer->args, &lines);
  if (td_shape_equal(lines.rank, lines.shape, infer->in[0].rank, infer->in[0].shape)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "the tensor's shape is not the diagonals'");
}

static int diagonal_adjoint_kernel(const td_call *call) { return place_diagonal(call, call->args); }

static int diagonal_again_vjp(td_rule *rule) {
  rule->din[0] = td_scope_apply(&rule->scope, &diagonal, rule->args, 1, rule->cotangent[0]);
  return TD_OK;
}

static const td_op diagonal_adjoint = {
    .name = "diagonal_adjoint",
    .params = {TD_X, OFFSET_PARAM, AXES_PARAMS(0, 1), {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HIDDEN | TD_HALF,
    .infer = diagonal_adjoint_infer,
    .batch = td_batch_result_axes,
    .kernel = diagonal_adjoint_kernel,
    .vjp = diagonal_again_vjp,
    .doc = "Zeros of a shape with x on the diagonals: the gradient of diagonal.\nGradient: the cotangent's diagonals.",
    .samples = TD_SAMPLES{{"2", "offset=1, shape=(2, 4)", -2, 2, NULL},
                          {"3,2", "offset=-1, axis1=-1, axis2=0, shape=(2, 3, 4)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static td_tensor *diagonal_back(td_scope *s, td_tensor *c, const td_arg *args, const td_meta *x) {
  const td_arg all[] = {args[0], args[1], args[2], td_ints_arg(x->rank, x->shape)};
  return td_scope_apply(s, &diagonal_adjoint, all, 1, c);
}

static int embedded_size(td_infer *infer, int64_t length, int64_t offset, int64_t *size) {
  if (!__builtin_add_overflow(length, offset < 0 ? -(uint64_t)offset : (uint64_t)offset, size) && *size >= 0)
    return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "%s %lld makes the matrices too large", infer->op->params[1].name,
                       (long long)offset);
}

static int diag_embed_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  int rank = in->rank + 1, from = 0;
  if (!in->rank) return td_infer_fail(infer, TD_ERROR_SHAPE, "needs diagonals, the tensor has rank 0");
  if (rank > TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is the most that tensors can have", TD_RANK_MAX);
  int64_t size = 0;
  int code = check_axes(infer, infer->args, rank);
  if (!code) code = embedded_size(infer, in->shape[in->rank - 1], infer->args[0].i, &size);
  if (code) return code;
  int first = wrapped(infer->args[1].i, rank), second = wrapped(infer->args[2].i, rank);
  for (int i = 0; i < rank; i++) out->shape[i] = i == first || i == second ? size : in->shape[from++];
  out->rank = (uint8_t)rank;
  out->dtype = in->dtype;
  return TD_OK;
}

static const td_op diag_embed = {
    .name = "diag_embed",
    .params = {TD_X, OFFSET_PARAM, AXES_PARAMS(-2, -1)},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = diag_embed_infer,
    .batch = td_batch_result_axes,
    .kernel = diagonal_adjoint_kernel,
    .vjp = diagonal_again_vjp,
    .doc =
        "Square matrices in axis1 and axis2 with the last axis of x on their diagonals, offset above the main one, and "
        "zeros beside them.\nGradient: the cotangent's diagonals.",
    .example = "diag_embed(tensor([1, 2])).tolist()  # [[1, 0], [0, 2]]",
    .samples = TD_SAMPLES{{"3", NULL, -2, 2, NULL},
                          {"2,3", "offset=-1", -2, 2, NULL},
                          {"2,3", "offset=1, axis1=0, axis2=2", -2, 2, NULL},
                          {"2,0", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_arg plain_axes[] = {{.given = 1, .i = 0}, {.given = 1, .i = 1}};

static int diag_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  const td_arg args[] = {infer->args[0], plain_axes[0], plain_axes[1]};
  *out = (td_meta){.dtype = in->dtype};
  if (in->rank == 2) {
    out->rank = 1;
    out->shape[0] = place_of(2, in->shape, args).length;
    return TD_OK;
  }
  if (in->rank != 1)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "needs a diagonal or a matrix, the tensor has rank %d", in->rank);
  int code = embedded_size(infer, in->shape[0], args[0].i, &out->shape[0]);
  out->rank = 2;
  out->shape[1] = out->shape[0];
  return code;
}

static int diag_kernel(const td_call *call) {
  const td_arg args[] = {call->args[0], plain_axes[0], plain_axes[1]};
  const td_view *x = &call->in[0];
  td_view line;
  if (x->rank == 1) return place_diagonal(call, args);
  diagonal_view_of(x, args, &line);
  td_elements_copy(call->context->pool, call->out[0].data, line.data, td_dtype_bytes(x->dtype), line.rank, line.shape,
                   line.strides);
  return TD_OK;
}

static int diag_vjp(td_rule *rule) {
  const td_arg args[] = {rule->args[0], plain_axes[0], plain_axes[1]};
  const td_meta *x = &rule->in_meta[0];
  rule->din[0] = x->rank == 2 ? diagonal_back(&rule->scope, rule->cotangent[0], args, x)
                              : td_scope_apply(&rule->scope, &diagonal, args, 1, rule->cotangent[0]);
  return TD_OK;
}

static const td_op diag = {
    .name = "diag",
    .params = {TD_X, {.name = "k", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0), .alias = TD_ALIAS("diagonal")}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = diag_infer,
    .kernel = diag_kernel,
    .vjp = diag_vjp,
    .doc = "The k-th diagonal of a matrix; or, from a tensor of rank 1, the matrix with it on the k-th diagonal.\n"
           "Gradient: the cotangent on the diagonal, or the cotangent's diagonal.",
    .example = "diag(tensor([1, 2])).tolist()  # [[1, 0], [0, 2]]",
    .samples = TD_SAMPLES{{"3", NULL, -2, 2, NULL},
                          {"2", "k=-2", -2, 2, NULL},
                          {"3,4", "k=1", -2, 2, NULL},
                          {"3,4", "k=9", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- tril, triu ----

static int triangle_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  if (infer->in[0].rank >= 2) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "needs matrices, the tensor has rank %d", infer->in[0].rank);
}

static int triangle_kernel(const td_call *call, bool upper) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  int64_t bytes = td_dtype_bytes(out->dtype), rows = out->shape[out->rank - 2], columns = out->shape[out->rank - 1];
  double k = (double)call->args[0].i; // may be any int
  td_elements_copy(call->context->pool, out->data, in->data, (int)bytes, in->rank, in->shape, in->strides);
  for (int64_t r = 0; out->size && r < out->size / columns; r++) {
    double border = (double)(r % rows) + k + (upper ? 0 : 1); // first column above the diagonal, or on it
    int64_t at = border < 0 ? 0 : border > (double)columns ? columns : (int64_t)border;
    char *row = out->data + r * columns * bytes;
    if (upper) memset(row, 0, (size_t)(at * bytes));
    else memset(row + at * bytes, 0, (size_t)((columns - at) * bytes));
  }
  return TD_OK;
}

static int tril_kernel(const td_call *call) { return triangle_kernel(call, false); }
static int triu_kernel(const td_call *call) { return triangle_kernel(call, true); }

static int triangle_vjp(td_rule *rule) {
  rule->din[0] = td_scope_apply(&rule->scope, rule->op, rule->args, 1, rule->cotangent[0]);
  return TD_OK;
}

#define K_PARAM \
  { .name = "k", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0), .alias = TD_ALIAS("diagonal") }
#define TRIANGLE(NAME, WORDS, EXAMPLE)                                                       \
  static const td_op NAME = {                                                                \
      .name = #NAME,                                                                         \
      .params = {TD_X, K_PARAM},                                                             \
      .kind = TD_KIND_INDEX,                                                                 \
      .flags = TD_LINEAR | TD_HALF,                                                          \
      .method = true,                                                                        \
      .infer = triangle_infer,                                                               \
      .batch = td_batch_axes,                                                                \
      .kernel = NAME##_kernel,                                                               \
      .vjp = triangle_vjp,                                                                   \
      .doc = "The matrices of the last two axes with zeros " WORDS " their k-th diagonal.\n" \
             "Gradient: the same triangle of the cotangent.",                                \
      .example = EXAMPLE,                                                                    \
      .samples = TD_SAMPLES{{"3,4", NULL, -2, 2, NULL},                                      \
                            {"2,3,3", "k=1", -2, 2, NULL},                                   \
                            {"4,3", "k=-2", -2, 2, NULL},                                    \
                            TD_SAMPLES_END},                                                 \
  };
TRIANGLE(tril, "above", "tril(tensor([[1, 2], [3, 4]])).tolist()  # [[1, 0], [3, 4]]")
TRIANGLE(triu, "below", "triu(tensor([[1, 2], [3, 4]])).tolist()  # [[1, 2], [0, 4]]")

td_tensor *td_triangle(td_scope *s, td_tensor *x, bool upper, int64_t k) {
  return td_scope_apply(s, upper ? &triu : &tril, (const td_arg[]){TD_INT_ARG(k)}, 1, x);
}


const td_op *const td_family_diagonal[] = {&diagonal, &diagonal_adjoint, &diag_embed, &diag, &tril, &triu, NULL};
