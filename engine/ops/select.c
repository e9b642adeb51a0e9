// Elements that a mask of bools chooses: read in row-major order, put back into zeros, replaced.
#include "engine/ops/select.h"

#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

enum { PART = 1 << 15 }; // elements of a chunk

// ---- masks ----

int64_t td_mask_count(const uint8_t *mask, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += mask[i];
  return count;
}

void td_mask_places(const uint8_t *mask, int rank, const int64_t *shape, int64_t *const *places) {
  int64_t at[TD_RANK_MAX] = {0}, found = 0, length = rank ? shape[rank - 1] : 1, rows = 1;
  for (int d = 0; d < rank - 1; d++) rows *= shape[d];
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t i = 0; i < length; i++) {
      if (!mask[row * length + i]) continue;
      for (int d = 0; d < rank - 1; d++) places[d][found] = at[d];
      if (rank) places[rank - 1][found] = i;
      found++;
    }
    for (int d = rank - 1; d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

static int check_mask(td_infer *infer, const td_meta *mask) {
  if (mask->dtype == TD_BOOL) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_DTYPE, "the mask must be of bools, not %s", td_dtype_name(mask->dtype));
  td_error_hint(infer->context, "compare: mask != 0; integer indices are for take");
  return code;
}

// ---- moving ----

typedef struct moving {
  const uint8_t *mask; // of size elements
  int64_t size, *starts; // starts: chosen elements before each part
  char *wide, *narrow; // size elements, and the chosen ones
  int bytes;
  bool reads;
} moving;

static void count_part(void *argument, int64_t part) {
  const moving *m = argument;
  int64_t first = part * PART, n = m->size - first < PART ? m->size - first : PART;
  m->starts[part] = td_mask_count(m->mask + first, n);
}

#define MOVE(type)                                                  \
  do {                                                              \
    type *wide = (type *)m->wide, *narrow = (type *)m->narrow;      \
    for (int64_t i = first; i < last; i++) {                        \
      if (!m->mask[i]) continue;                                    \
      if (m->reads) narrow[at] = wide[i];                           \
      else wide[i] = narrow[at];                                    \
      at++;                                                         \
    }                                                               \
  } while (0)

static void move_part(void *argument, int64_t part) {
  const moving *m = argument;
  int64_t first = part * PART, last = first + PART < m->size ? first + PART : m->size, at = m->starts[part];
  switch (m->bytes) {
  case 1: MOVE(uint8_t); break;
  case 2: MOVE(uint16_t); break;
  case 4: MOVE(uint32_t); break;
  default: MOVE(uint64_t);
  }
}

static int64_t part_count(int64_t size) { return (size + PART - 1) / PART; }

static void move_chosen(td_pool *pool, moving *m) {
  int64_t parts = part_count(m->size), before = 0;
  td_pool_run(pool, parts, count_part, m);
  for (int64_t part = 0; part < parts; part++) {
    int64_t count = m->starts[part];
    m->starts[part] = before;
    before += count;
  }
  td_pool_run(pool, parts, move_part, m);
}

// ---- masked_select ----

static int masked_select_infer(td_infer *infer) {
  td_meta both;
  int code = check_mask(infer, &infer->in[1]);
  if (!code) code = td_infer_broadcast(infer, 0, 1, &both);
  if (code) return code;
  if (!infer->tensors) return td_infer_fail(infer, TD_ERROR_VALUE, "the shape of the result depends on values");
  const td_tensor *mask = infer->tensors[1];
  int64_t count = 0, size = td_shape_size(both.rank, both.shape);
  if (td_tensor_is_contiguous(mask)) count = td_mask_count((const uint8_t *)mask->data, mask->size);
  else
    for (int64_t i = 0; i < mask->size; i++) count += td_tensor_get_int(mask, i);
  infer->out[0] = (td_meta){.dtype = infer->in[0].dtype, .rank = 1};
  infer->out[0].shape[0] = mask->size ? count * (size / mask->size) : 0;
  return TD_OK;
}

// x and the mask of a call, broadcast together.
static void together(const td_call *call, td_view *x, td_view *mask) {
  int64_t shape[TD_RANK_MAX];
  int rank;
  td_shape_broadcast(call->in[0].rank, call->in[0].shape, call->in[1].rank, call->in[1].shape, &rank, shape, NULL);
  td_view_broadcast(x, &call->in[0], rank, shape);
  td_view_broadcast(mask, &call->in[1], rank, shape);
}

static int masked_select_kernel(const td_call *call) {
  td_view x, mask;
  char *at = call->workspace;
  td_pool *pool = call->context->pool;
  together(call, &x, &mask);
  moving m = {.size = x.size, .narrow = call->out[0].data, .bytes = td_dtype_bytes(x.dtype), .reads = true};
  m.starts = td_space_take(&at, part_count(m.size) * (int64_t)sizeof *m.starts);
  m.mask = (const uint8_t *)td_flat_fill(pool, &mask, TD_BOOL, td_space_take(&at, td_flat_bytes(&mask, TD_BOOL)));
  m.wide = (char *)td_flat_fill(pool, &x, x.dtype, at);
  move_chosen(pool, &m);
  return TD_OK;
}

static int64_t masked_select_workspace(const td_call *call) {
  td_view x, mask;
  together(call, &x, &mask);
  return td_space_bytes(part_count(x.size) * (int64_t)sizeof(int64_t)) + td_space_bytes(td_flat_bytes(&mask, TD_BOOL)) +
         td_flat_bytes(&x, x.dtype);
}

static td_tensor *masked_back(td_scope *s, td_tensor *c, td_tensor *mask, int rank, const int64_t *shape);

static int masked_select_vjp(td_rule *rule) {
  const td_meta *x = &rule->in_meta[0];
  const td_tensor *mask = rule->in[1];
  int64_t shape[TD_RANK_MAX];
  int rank;
  if (!rule->needs[0]) return TD_OK;
  td_shape_broadcast(x->rank, x->shape, mask->rank, mask->shape, &rank, shape, NULL);
  rule->din[0] = masked_back(&rule->scope, rule->cotangent[0], rule->in[1], rank, shape);
  return TD_OK;
}

#define MASK_PARAM \
  { .name = "mask", .kind = TD_PARAM_INDEX }

static const td_op masked_select = {
    .name = "masked_select",
    .alias = TD_ALIAS("boolean_mask"),
    .params = {TD_X, MASK_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = masked_select_infer,
    .kernel = masked_select_kernel,
    .workspace = masked_select_workspace,
    .vjp = masked_select_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "The elements of x where the mask is true, in row-major order: x[mask] for a mask of x's shape. x and mask "
           "broadcast together.\nGradient: the cotangent at the chosen places, zeros elsewhere.",
    .example = "masked_select(tensor([1, 2, 3]), tensor([True, False, True])).tolist()  # [1, 3]",
    .samples = TD_SAMPLES{{"3,4; 3,4", NULL, -2, 2, "float64; bool"},
                          {"3,4; 4", NULL, -2, 2, "float64; bool"},
                          {"4; 3,1", NULL, -2, 2, "float64; bool"},
                          {"0,4; 4", NULL, -2, 2, "float64; bool"},
                          TD_SAMPLES_END},
};

// ---- masked_adjoint ----

static int masked_adjoint_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[0];
  const td_meta *mask = &infer->in[1];
  td_meta *out = &infer->out[0];
  int rank, code = check_mask(infer, mask);
  if (code) return code;
  out->dtype = infer->in[0].dtype;
  out->rank = (uint8_t)shape->count;
  for (int i = 0; i < shape->count; i++) out->shape[i] = shape->ints[i];
  int64_t both[TD_RANK_MAX];
  if (!td_shape_broadcast(mask->rank, mask->shape, out->rank, out->shape, &rank, both, NULL) ||
      !td_shape_equal(rank, both, out->rank, out->shape) || infer->in[0].rank != 1)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the mask doesn't broadcast to the shape");
  return TD_OK;
}

static int masked_adjoint_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  td_view mask;
  char *at = call->workspace;
  td_pool *pool = call->context->pool;
  td_view_broadcast(&mask, &call->in[1], out->rank, out->shape);
  moving m = {.size = out->size, .wide = out->data, .bytes = td_dtype_bytes(out->dtype)};
  m.starts = td_space_take(&at, part_count(m.size) * (int64_t)sizeof *m.starts);
  m.mask = (const uint8_t *)td_flat_fill(pool, &mask, TD_BOOL, td_space_take(&at, td_flat_bytes(&mask, TD_BOOL)));
  if (td_mask_count(m.mask, m.size) != x->size)
    return td_error_set(call->context, TD_ERROR_SHAPE, "masked_adjoint: %lld elements for %lld places",
                        (long long)x->size, (long long)td_mask_count(m.mask, m.size));
  m.narrow = (char *)td_flat_fill(pool, x, out->dtype, at);
  memset(out->data, 0, (size_t)(out->size * m.bytes));
  move_chosen(pool, &m);
  return TD_OK;
}

static int64_t masked_adjoint_workspace(const td_call *call) {
  const td_view *out = &call->out[0];
  td_view mask;
  td_view_broadcast(&mask, &call->in[1], out->rank, out->shape);
  return td_space_bytes(part_count(out->size) * (int64_t)sizeof(int64_t)) +
         td_space_bytes(td_flat_bytes(&mask, TD_BOOL)) + td_flat_bytes(&call->in[0], out->dtype);
}

static int masked_adjoint_vjp(td_rule *rule) {
  if (rule->needs[0])
    rule->din[0] = td_scope_apply(&rule->scope, &masked_select, NULL, 2, rule->cotangent[0], rule->in[1]);
  return TD_OK;
}

static const td_op masked_adjoint = {
    .name = "masked_adjoint",
    .params = {TD_X, MASK_PARAM, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HIDDEN | TD_HALF,
    .infer = masked_adjoint_infer,
    .kernel = masked_adjoint_kernel,
    .workspace = masked_adjoint_workspace,
    .vjp = masked_adjoint_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "Zeros of a shape with the elements of x where the mask is true: the gradient of masked_select.\n"
           "Gradient: the cotangent's elements there.",
    .samples = TD_SAMPLES{{"4; 3,4", "shape=(3, 4)", -2, 2, "float64; bool"}, TD_SAMPLES_END},
};

static td_tensor *masked_back(td_scope *s, td_tensor *c, td_tensor *mask, int rank, const int64_t *shape) {
  const td_arg args[] = {td_ints_arg(rank, shape)};
  return td_scope_apply(s, &masked_adjoint, args, 2, c, mask);
}

// ---- masked_fill ----

static int masked_fill_infer(td_infer *infer) {
  int code = check_mask(infer, &infer->in[1]);
  if (!code) code = td_map_common(infer);
  infer->out[0].dtype = td_dtype_promote(infer->in[0].dtype, infer->in[2].dtype);
  return code;
}

TD_MAP3(TD_EACH_DTYPE, masked_fill, COMMON, T, y != 0 ? z : x)
TD_KERNEL(masked_fill)

static int masked_fill_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *zero = td_scope_number(s, 0, c);
  if (rule->needs[0]) rule->din[0] = td_where(s, rule->in[1], zero, c);
  if (rule->needs[2]) rule->din[2] = td_where(s, rule->in[1], c, zero);
  return TD_OK;
}

static const td_op masked_fill = {
    .name = "masked_fill",
    .params = {TD_X, MASK_PARAM, TD_TENSOR_PARAM("value")},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = masked_fill_infer,
    .kernel = masked_fill_kernel,
    .expression = masked_fill_text,
    .vjp = masked_fill_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "x with value where the mask is true: where(mask, value, x). All broadcast together.\n"
           "Gradient: the cotangent, for x with zeros where the mask is true, for value with zeros where it is false.",
    .example = "masked_fill(tensor([1., 2.]), tensor([True, False]), -inf).tolist()  # [-inf, 2.0]",
    .samples = TD_SAMPLES{{"3,4; 3,4; -", NULL, -2, 2, "float64; bool; float64"},
                          {"3,4; 4; 3,1", NULL, -2, 2, "float64; bool; float64"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_select[] = {&masked_select, &masked_adjoint, &masked_fill, NULL};
