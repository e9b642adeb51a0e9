// Basic indexing: a strided block of a tensor as a view, the block put back into zeros (its adjoint), and a tensor with
// the block replaced. A block is start, step and size along each axis; the language resolves keys to it.
#include "engine/ops/batch.h"
#include "engine/ops/index.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

// ---- blocks ----

typedef struct block {
  const int64_t *start, *step, *size;
} block;

static block block_of(const td_arg *args) { return (block){args[0].ints, args[1].ints, args[2].ints}; }

// The first axis along which the block leaves shape; -1: none.
static int block_outside(const block *b, int rank, const int64_t *shape) {
  for (int i = 0; i < rank; i++) {
    int64_t last, length;
    if (b->size[i] < 0) return i;
    if (b->size[i] == 0) continue;
    if (b->start[i] < 0 || b->start[i] >= shape[i]) return i;
    if (__builtin_mul_overflow(b->size[i] - 1, b->step[i], &length) ||
        __builtin_add_overflow(b->start[i], length, &last))
      return i;
    if (last < 0 || last >= shape[i]) return i;
  }
  return -1;
}

static int64_t block_strides(const block *b, int rank, const int64_t *shape, const int64_t *strides, int64_t *out) {
  int64_t offset = 0;
  bool empty = false;
  for (int i = 0; i < rank; i++) {
    out[i] = b->size[i] > 1 ? strides[i] * b->step[i] : strides[i];
    offset += b->start[i] * strides[i];
    empty |= b->size[i] == 0 || shape[i] == 0;
  }
  return empty ? 0 : offset;
}

static int block_check(td_infer *infer, const td_arg *args, int rank, const int64_t *shape) {
  if (args[0].count != rank || args[1].count != rank || args[2].count != rank)
    return td_infer_fail(infer, TD_ERROR_INDEX, "%d starts, %d steps, %d sizes for rank %d", args[0].count,
                         args[1].count, args[2].count, rank);
  block b = block_of(args);
  int axis = block_outside(&b, rank, shape);
  if (axis < 0) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_INDEX, "start %lld, step %lld, size %lld leave axis %d of size %lld",
                       (long long)b.start[axis], (long long)b.step[axis], (long long)b.size[axis], axis,
                       (long long)shape[axis]);
}

void td_elements_place(char *out, const int64_t *out_strides, const char *data, const int64_t *strides, int bytes,
                       int rank, const int64_t *shape) {
  int64_t at[TD_RANK_MAX] = {0}, to = 0, from = 0;
  int last = rank - 1;
  for (int i = 0; i < rank; i++)
    if (!shape[i]) return;
  if (rank == 0) {
    memcpy(out, data, (size_t)bytes);
    return;
  }
  int64_t n = shape[last], to_step = out_strides[last], from_step = strides[last];
  for (;;) {
#define PLACE(type) \
  for (int64_t i = 0; i < n; i++) ((type *)out)[to + i * to_step] = ((const type *)data)[from + i * from_step]
    if (to_step == 1 && from_step == 1) memcpy(out + to * bytes, data + from * bytes, (size_t)(n * bytes));
    else if (bytes == 1) PLACE(uint8_t);
    else if (bytes == 2) PLACE(uint16_t);
    else if (bytes == 4) PLACE(uint32_t);
    else PLACE(uint64_t);
#undef PLACE
    int axis = last - 1;
    for (; axis >= 0; axis--) {
      to += out_strides[axis];
      from += strides[axis];
      if (++at[axis] < shape[axis]) break;
      to -= out_strides[axis] * shape[axis];
      from -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

typedef struct move {
  char *out;
  const char *data;
  const int64_t *out_strides, *strides, *shape;
  int bytes, rank, axis; // axis that is cut
} move;

static void move_part(void *argument, int64_t first, int64_t last) {
  const move *m = argument;
  int64_t shape[TD_RANK_MAX];
  memcpy(shape, m->shape, (size_t)m->rank * sizeof *shape);
  shape[m->axis] = last - first;
  td_elements_place(m->out + first * m->out_strides[m->axis] * m->bytes, m->out_strides,
                    m->data + first * m->strides[m->axis] * m->bytes, m->strides, m->bytes, m->rank, shape);
}

void td_elements_move(td_pool *pool, char *out, const int64_t *out_strides, const char *data, const int64_t *strides,
                      int bytes, int rank, const int64_t *shape) {
  move m = {out, data, out_strides, strides, shape, bytes, rank, 0};
  int64_t size = td_shape_size(rank, shape);
  if (size <= 0) return;
  while (m.axis < rank - 1 && shape[m.axis] == 1) m.axis++;
  if (!rank) td_elements_place(out, out_strides, data, strides, bytes, rank, shape);
  else td_ranges_run(pool, shape[m.axis], size / shape[m.axis], move_part, &m);
}

static void contiguous_strides(int rank, const int64_t *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int i = rank; i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
}

// Puts value (row-major strides of its own) into the block of a row-major tensor.
static void block_fill(char *data, int bytes, int rank, const int64_t *shape, const block *b, const char *value,
                       const int64_t *value_strides) {
  int64_t strides[TD_RANK_MAX] = {0}, to[TD_RANK_MAX] = {0};
  contiguous_strides(rank, shape, strides);
  int64_t offset = block_strides(b, rank, shape, strides, to);
  td_elements_place(data + offset * bytes, to, value, value_strides, bytes, rank, b->size);
}

// ---- slice ----

#define BLOCK_PARAMS                                                \
  {.name = "starts", .kind = TD_PARAM_INTS, .required = true},      \
      {.name = "steps", .kind = TD_PARAM_INTS, .required = true}, { \
    .name = "sizes", .kind = TD_PARAM_INTS, .required = true        \
  }

static int slice_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  int code = block_check(infer, infer->args, in->rank, in->shape);
  if (code) return code;
  infer->out[0] = *in;
  for (int i = 0; i < in->rank; i++) infer->out[0].shape[i] = infer->args[2].ints[i];
  return TD_OK;
}

static td_tensor *slice_view(td_context *context, td_tensor *in, const td_infer *infer) {
  block b = block_of(infer->args);
  int64_t strides[TD_RANK_MAX] = {0};
  int64_t offset = block_strides(&b, in->rank, in->shape, in->strides, strides);
  return td_tensor_view(context, in, in->rank, b.size, strides, offset);
}

static td_tensor *slice_back(td_scope *s, td_tensor *c, const td_meta *in, const td_arg *args);

static int slice_vjp(td_rule *rule) {
  rule->din[0] = slice_back(&rule->scope, rule->cotangent[0], &rule->in_meta[0], rule->args);
  return TD_OK;
}

// vmap: whole along the axis of the examples.
static int block_batch(td_batching *b) {
  const int64_t whole[] = {0, 1, b->size};
  int code = td_batch_axes(b);
  if (!code) code = td_batch_elementwise(b); // a value that broadcasts to the block
  for (int k = 0; k < 3 && !code; k++) { // starts, steps, sizes
    td_arg *arg = &b->args[k];
    if (arg->count == TD_RANK_MAX) return TD_BATCH_EACH;
    memmove(arg->ints + 1, arg->ints, (size_t)arg->count * sizeof *arg->ints);
    arg->ints[0] = whole[k];
    arg->count++;
  }
  return code;
}

static const td_op slice = {
    .name = "slice",
    .params = {TD_X, BLOCK_PARAMS},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR | TD_HIDDEN,
    .infer = slice_infer,
    .batch = block_batch,
    .view = slice_view,
    .vjp = slice_vjp,
    .doc =
        "The elements at starts + k * steps, k < sizes, along each axis, without copying: what x[a:b:c] is made of.\n"
        "Gradient: the cotangent at those places, zeros elsewhere.",
    .samples = TD_SAMPLES{{"6", "starts=(5,), steps=(-2,), sizes=(3,)", -2, 2, NULL},
                          {"4,3", "starts=(1, 0), steps=(2, 1), sizes=(2, 3)", -2, 2, NULL},
                          {"4,3", "starts=(0, 0), steps=(1, 1), sizes=(0, 3)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static td_tensor *slice_with(td_scope *s, td_tensor *x, const td_arg *args) {
  return td_scope_apply(s, &slice, args, 1, x);
}

// ---- slice_adjoint ----

static int slice_adjoint_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[3];
  int code = block_check(infer, infer->args, shape->count, shape->ints);
  if (code) return code;
  const td_meta *in = &infer->in[0];
  if (!td_shape_equal(in->rank, in->shape, infer->args[2].count, infer->args[2].ints))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the tensor's shape is not sizes");
  infer->out[0].dtype = in->dtype;
  infer->out[0].rank = (uint8_t)shape->count;
  for (int i = 0; i < shape->count; i++) infer->out[0].shape[i] = shape->ints[i];
  return TD_OK;
}

static int slice_adjoint_kernel(const td_call *call) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  block b = block_of(call->args);
  int bytes = td_dtype_bytes(out->dtype);
  memset(out->data, 0, (size_t)(out->size * bytes));
  block_fill(out->data, bytes, out->rank, out->shape, &b, in->data, in->strides);
  return TD_OK;
}

static int slice_adjoint_vjp(td_rule *rule) {
  rule->din[0] = slice_with(&rule->scope, rule->cotangent[0], rule->args);
  return TD_OK;
}

static const td_op slice_adjoint = {
    .name = "slice_adjoint",
    .params = {TD_X, BLOCK_PARAMS, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HIDDEN | TD_HALF,
    .infer = slice_adjoint_infer,
    .batch = block_batch,
    .kernel = slice_adjoint_kernel,
    .vjp = slice_adjoint_vjp,
    .doc = "x at the places that slice reads, zeros elsewhere: the gradient of slice.\nGradient: the slice of the "
           "cotangent.",
    .samples = TD_SAMPLES{{"3", "starts=(5,), steps=(-2,), sizes=(3,), shape=(6,)", -2, 2, NULL},
                          {"2,3", "starts=(1, 0), steps=(2, 1), sizes=(2, 3), shape=(4, 3)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static td_tensor *slice_back(td_scope *s, td_tensor *c, const td_meta *in, const td_arg *args) {
  const td_arg all[] = {args[0], args[1], args[2], td_ints_arg(in->rank, in->shape)};
  return td_scope_apply(s, &slice_adjoint, all, 1, c);
}

td_tensor *td_slice_view(td_scope *s, td_tensor *x, const int64_t *start, const int64_t *step, const int64_t *size) {
  int rank = x ? x->rank : 0;
  const td_arg args[] = {td_ints_arg(rank, start), td_ints_arg(rank, step), td_ints_arg(rank, size)};
  return slice_with(s, x, args);
}

// ---- index_update ----

static int index_update_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *value = &infer->in[1];
  int code = block_check(infer, infer->args, x->rank, x->shape);
  if (!code) code = td_infer_written(infer, x, value);
  if (code) return code;
  infer->out[0] = *x;
  td_meta places = *x;
  memcpy(places.shape, infer->args[2].ints, x->rank * sizeof *places.shape);
  return td_infer_fits(infer, "value of shape", value, &places);
}

static int64_t cast_bytes(const td_view *value, uint8_t dtype) {
  return value->dtype == dtype ? 0 : td_flat_bytes(value, dtype);
}

// value, cast in space where it has another dtype, broadcast to size.
static void spread_value(td_pool *pool, const td_view *value, uint8_t dtype, void *space, int rank,
                         const int64_t *size, td_view *spread) {
  td_view cast = *value;
  if (value->dtype != dtype) {
    cast.data = (char *)td_flat_fill(pool, value, dtype, space);
    contiguous_strides(cast.rank, cast.shape, cast.strides);
  }
  td_view_broadcast(spread, &cast, rank, size);
}

static int index_update_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  block b = block_of(call->args);
  td_view spread;
  int bytes = td_dtype_bytes(out->dtype);
  spread_value(call->context->pool, &call->in[1], out->dtype, call->workspace, out->rank, b.size, &spread);
  td_elements_copy(call->context->pool, out->data, x->data, bytes, x->rank, x->shape, x->strides);
  block_fill(out->data, bytes, out->rank, out->shape, &b, spread.data, spread.strides);
  return TD_OK;
}

static int64_t index_update_workspace(const td_call *call) { return cast_bytes(&call->in[1], call->out[0].dtype); }

static td_tensor *update_with(td_scope *s, td_tensor *x, td_tensor *value, const td_arg *args);

static int index_update_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = update_with(s, c, td_scope_number(s, 0, c), rule->args);
  if (rule->needs[1]) rule->din[1] = slice_with(s, c, rule->args);
  return TD_OK;
}

static const td_op index_update = {
    .name = "index_update",
    .params = {TD_X, TD_TENSOR_PARAM("value"), BLOCK_PARAMS},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HIDDEN | TD_HALF,
    .infer = index_update_infer,
    .batch = block_batch,
    .kernel = index_update_kernel,
    .workspace = index_update_workspace,
    .vjp = index_update_vjp,
    .doc = "x with the elements that slice reads replaced by value, which broadcasts and takes x's dtype: x[a:b:c] = "
           "value.\n"
           "Gradient: for x the cotangent with zeros at the replaced places, for value the cotangent there.",
    .samples = TD_SAMPLES{{"6; 3", "starts=(5,), steps=(-2,), sizes=(3,)", -2, 2, NULL},
                          {"4,3; 3", "starts=(1, 0), steps=(2, 1), sizes=(2, 3)", -2, 2, NULL},
                          {"4,3; -", "starts=(1, 0), steps=(1, 1), sizes=(1, 2)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static td_tensor *update_with(td_scope *s, td_tensor *x, td_tensor *value, const td_arg *args) {
  return td_scope_apply(s, &index_update, args, 2, x, value);
}

int td_index_update_in_place(td_context *context, td_tensor *x, const td_tensor *value, const int64_t *start,
                             const int64_t *step, const int64_t *size) {
  td_meta meta = td_tensor_meta(value), places = td_tensor_meta(x);
  block b = {start, step, size};
  int axis = block_outside(&b, x->rank, x->shape);
  if (axis >= 0)
    return td_error_set(context, TD_ERROR_INDEX, "the block leaves axis %d of size %lld", axis,
                        (long long)x->shape[axis]);
  memcpy(places.shape, size, x->rank * sizeof *size);
  if (!td_meta_fits(&meta, &places)) {
    td_text text = {0};
    td_meta_misfit(&text, &meta, &places);
    td_error_set(context, TD_ERROR_SHAPE, "value of shape %s", text.data ? text.data : "");
    td_text_clear(&text);
    return TD_ERROR_SHAPE;
  }
  if (td_dtype_category(x->dtype) == 1 && td_dtype_is_float(value->dtype))
    return td_error_set(context, TD_ERROR_DTYPE, "%s numbers are not written into %s",
                        td_dtype_name(value->dtype), td_dtype_name(x->dtype));
  td_view from, spread;
  td_view_of(&from, value);
  int64_t space = cast_bytes(&from, x->dtype), to[TD_RANK_MAX] = {0};
  void *cast = space ? td_memory_new((size_t)space) : NULL;
  if (space && !cast) return td_error_memory(context, "assignment", space);
  spread_value(context->pool, &from, x->dtype, cast, x->rank, size, &spread);
  int64_t offset = block_strides(&b, x->rank, x->shape, x->strides, to);
  int bytes = td_dtype_bytes(x->dtype);
  td_elements_place(x->data + offset * bytes, to, spread.data, spread.strides, bytes, x->rank, size);
  td_memory_free(cast);
  return TD_OK;
}

const td_op *const td_family_slice[] = {&slice, &slice_adjoint, &index_update, NULL};
