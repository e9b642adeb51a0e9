// The walk of pointwise losses: blocks that stay in the cache go through a row's map, are weighted, and added up in
// float64; blocks are cut by size alone.
#include "engine/ops/pointwise.h"

#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"

const char *const td_loss_reductions[] = {"mean", "sum", "none", NULL};

// ---- arguments and inputs by name ----

static const td_arg *argument_named(const td_op *op, const td_arg *args, const char *name) {
  int first = td_op_tensor_params(op), count = td_op_arg_count(op);
  for (int i = 0; i < count; i++)
    if (strcmp(op->params[first + i].name, name) == 0) return &args[i];
  return NULL;
}

static int reduction_of(const td_op *op, const td_arg *args) { return (int)argument_named(op, args, "reduction")->i; }

static int weight_input(const td_op *op) { // -1: none
  for (int i = 0; i < td_op_tensor_params(op); i++)
    if (strcmp(op->params[i].name, "weight") == 0) return i;
  return -1;
}

// ---- shapes ----

static int mismatch(td_infer *infer, const td_meta *both) {
  const td_meta *input = &infer->in[0], *target = &infer->in[1];
  td_text text = {0};
  td_shape_print(&text, input->rank, input->shape);
  td_text_add(&text, " and ");
  td_shape_print(&text, target->rank, target->shape);
  td_text_add(&text, " would broadcast to ");
  td_shape_print(&text, both->rank, both->shape);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "shapes %s", text.data ? text.data : "");
  td_text_clear(&text);
  td_shape_print(&text, input->rank, input->shape);
  if (td_shape_size(input->rank, input->shape) == td_shape_size(target->rank, target->shape) && text.data)
    td_error_hint(infer->context, "%s.reshape((%.*s%s)) fits; broadcast=True compares all pairs",
                  infer->op->params[1].name, (int)text.length - 2, text.data + 1, input->rank == 1 ? "," : "");
  else td_error_hint(infer->context, "broadcast=True repeats the smaller one");
  td_text_clear(&text);
  return code;
}

static int check_other(td_infer *infer, int i, const td_meta *both) { // does input i broadcast to both?
  td_meta grown = *both;
  int rank, axis;
  const td_meta *in = &infer->in[i];
  bool fits = td_shape_broadcast(in->rank, in->shape, both->rank, both->shape, &rank, grown.shape, &axis) &&
              td_shape_equal(rank, grown.shape, both->rank, both->shape);
  if (fits) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "%s doesn't broadcast to the shape of %s", infer->op->params[i].name,
                       infer->op->params[0].name);
}

int td_pointwise_infer(td_infer *infer) {
  td_meta *out = &infer->out[0], both;
  int code = td_infer_broadcast(infer, 0, 1, &both);
  if (code) return code;
  bool same = td_shape_equal(infer->in[0].rank, infer->in[0].shape, infer->in[1].rank, infer->in[1].shape);
  if (!same && !argument_named(infer->op, infer->args, "broadcast")->i) return mismatch(infer, &both);
  both.dtype = infer->in[0].dtype;
  for (int i = 1; i < infer->in_count; i++) {
    if (infer->in[i].rank > TD_RANK_MAX) continue;
    both.dtype = td_dtype_promote(both.dtype, infer->in[i].dtype);
    code = i > 1 ? check_other(infer, i, &both) : TD_OK;
    if (code) return code;
  }
  *out = both;
  if (!td_dtype_is_float(out->dtype)) out->dtype = TD_FLOAT32;
  if (reduction_of(infer->op, infer->args) != TD_LOSS_NONE) out->rank = 0;
  return TD_OK;
}

// ---- the walk ----

enum { BLOCK = 4096, COST = 4 };

typedef struct work {
  td_loop *loop;
  double arguments[TD_MAP_ARGUMENTS];
  uint8_t dtype;
  int64_t size;
  const char *operands[3], *weight; // row-major; weight NULL: none
  char *out; // one for each element; NULL: only their sum is wanted
  double *sums; // one for each block
} work;

#define FINISH(T, name)                                                      \
  TD_CLONES static void name##_weigh(T *restrict x, const T *w, int64_t n) { \
    for (int64_t i = 0; i < n; i++) x[i] *= w[i];                            \
  }                                                                          \
  TD_CLONES static double name##_total(const T *x, int64_t n) {              \
    enum { LANES = 16 };                                                     \
    double sums[LANES] = {0}, sum = 0;                                       \
    int64_t i = 0;                                                           \
    for (; i + LANES <= n; i += LANES)                                       \
      for (int l = 0; l < LANES; l++) sums[l] += (double)x[i + l];           \
    for (; i < n; i++) sum += (double)x[i];                                  \
    for (int l = 0; l < LANES; l++) sum += sums[l];                          \
    return sum;                                                              \
  }
FINISH(float, single)
FINISH(double, twofold)

static double run_block(const work *w, int64_t first, int64_t n) {
  int64_t bytes = td_dtype_bytes(w->dtype), at = first * bytes;
  double space[BLOCK];
  void *block = w->out ? (void *)(w->out + at) : space;
  w->loop(n, block, w->operands[0] + at, w->operands[1] + at, w->operands[2] + at, 0, w->arguments);
  if (w->dtype == TD_FLOAT32) {
    if (w->weight) single_weigh(block, (const float *)(w->weight + at), n);
    return single_total(block, n);
  }
  if (w->weight) twofold_weigh(block, (const double *)(w->weight + at), n);
  return twofold_total(block, n);
}

static void run_blocks(void *argument, int64_t first, int64_t last) {
  const work *w = argument;
  for (int64_t b = first; b < last; b++) {
    int64_t at = b * BLOCK;
    w->sums[b] = run_block(w, at, w->size - at < BLOCK ? w->size - at : BLOCK);
  }
}

static int64_t block_count(int64_t size) { return (size + BLOCK - 1) / BLOCK; }

// Inputs as plain arrays of one dtype and shape, and room for the sums.
static void place(const td_call *call, td_scratch *scratch, work *w) {
  const td_view *a = &call->in[0], *b = &call->in[1];
  int64_t shape[TD_RANK_MAX];
  int rank, weight = weight_input(call->op), operand = 0;
  td_shape_broadcast(a->rank, a->shape, b->rank, b->shape, &rank, shape, NULL);
  *w = (work){.dtype = call->out[0].dtype, .size = td_shape_size(rank, shape)};
  for (int i = 0; i < call->in_count; i++) {
    td_view spread;
    if (!call->in[i].data) continue;
    td_view_broadcast(&spread, &call->in[i], rank, shape);
    const char *data = td_scratch_view(scratch, call->context->pool, &spread, w->dtype);
    if (i == weight) w->weight = data;
    else w->operands[operand++] = data;
  }
  for (; operand < 3; operand++) w->operands[operand] = w->operands[0];
  w->sums = td_scratch_take(scratch, block_count(w->size), sizeof *w->sums);
}

int64_t td_pointwise_workspace(const td_call *call) {
  td_scratch scratch = {0};
  work w;
  place(call, &scratch, &w);
  return scratch.used;
}

static void store(const td_view *out, double value) {
  if (out->dtype == TD_FLOAT32) *(float *)out->data = (float)value;
  else *(double *)out->data = value;
}

static double divisor(int reduction, int64_t size, int rank, const int64_t *shape) { // of the sum
  if (reduction == TD_LOSS_MEAN) return (double)size;
  return reduction == TD_LOSS_BATCHMEAN && rank ? (double)shape[0] : 1;
}

int td_pointwise_run(const td_call *call, const td_map *map, double argument) {
  td_scratch scratch = {.at = call->workspace};
  int reduction = reduction_of(call->op, call->args);
  work w;
  place(call, &scratch, &w);
  w.loop = map->loops[w.dtype];
  w.arguments[0] = argument;
  if (reduction == TD_LOSS_NONE) w.out = call->out[0].data;
  td_ranges_run(call->context->pool, block_count(w.size), BLOCK * COST, run_blocks, &w);
  double total = 0;
  for (int64_t b = 0; b < block_count(w.size); b++) total += w.sums[b];
  if (reduction != TD_LOSS_NONE)
    store(&call->out[0], total / divisor(reduction, w.size, call->in[0].rank, call->in[0].shape));
  return TD_OK;
}

static bool has_nan(const td_view *out) {
  for (int64_t i = 0; i < out->size; i++)
    if (out->dtype == TD_FLOAT32 ? isnan(((const float *)out->data)[i]) : isnan(((const double *)out->data)[i]))
      return true;
  return false;
}

int td_pointwise_check(const td_call *call, int input, double low, double high, const char *what) {
  const td_view *in = &call->in[input];
  if (!has_nan(&call->out[0])) return TD_OK;
  for (int64_t e = 0; e < in->size; e++) {
    int64_t index[TD_RANK_MAX], at = 0, rest = e;
    for (int i = in->rank; i-- > 0; rest /= in->shape[i]) {
      index[i] = rest % in->shape[i];
      at += index[i] * in->strides[i];
    }
    double value;
    td_cast_run(&value, TD_FLOAT64, in->data + at * td_dtype_bytes(in->dtype), in->dtype, 0, 1, false);
    if (!(value < low || value > high)) continue;
    char number[TD_NUMBER_TEXT];
    td_text place = {0};
    td_number_print(number, value);
    td_shape_print(&place, in->rank, index);
    int code = td_error_set(call->context, TD_ERROR_VALUE, "%s: element %s of %s is %s, which is no %s", call->op->name,
                            place.data ? place.data : "", call->op->params[input].name, number, what);
    td_text_clear(&place);
    return code;
  }
  return TD_OK;
}

// ---- gradients ----

int td_pointwise_reduction(const td_rule *rule) { return reduction_of(rule->op, rule->args); }

static void shape_together(const td_rule *rule, td_meta *both) {
  const td_tensor *a = rule->in[0], *b = rule->in[1];
  int rank;
  td_shape_broadcast(a->rank, a->shape, b->rank, b->shape, &rank, both->shape, NULL);
  both->rank = (uint8_t)rank;
}

td_tensor *td_pointwise_cotangent(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_meta both;
  int weight = weight_input(rule->op);
  shape_together(rule, &both);
  double parts = divisor(td_pointwise_reduction(rule), td_shape_size(both.rank, both.shape), rule->in[0]->rank,
                         rule->in[0]->shape);
  td_tensor *c = rule->cotangent[0];
  if (parts > 1) c = td_divide(s, c, td_scope_number(s, parts, c));
  return weight > 0 && weight < rule->in_count && rule->in[weight] ? td_chain(s, c, rule->in[weight]) : c;
}

td_tensor *td_pointwise_cotangents(td_rule *rule) {
  td_meta both;
  shape_together(rule, &both);
  td_tensor *c = td_pointwise_cotangent(rule);
  return c && c->rank != both.rank ? td_broadcast_to(&rule->scope, c, both.rank, both.shape) : c;
}

td_tensor *td_pointwise_elements(td_rule *rule, td_tensor *target, bool others) {
  td_tensor *in[TD_INPUT_MAX] = {rule->in[0], target}, *out[TD_OUTPUT_MAX];
  td_arg args[TD_PARAM_MAX];
  td_scope *s = &rule->scope;
  int count = td_op_arg_count(rule->op), weight = weight_input(rule->op);
  for (int i = 0; i < count; i++) args[i] = rule->args[i];
  args[argument_named(rule->op, args, "reduction") - args].i = TD_LOSS_NONE;
  args[argument_named(rule->op, args, "broadcast") - args].i = true;
  for (int i = 2; others && i < rule->in_count; i++)
    if (i != weight) in[i] = rule->in[i];
  if (s->failed || td_op_apply(s->context, rule->op, in, td_op_tensor_params(rule->op), args, out)) {
    s->failed = true;
    return NULL;
  }
  return td_scope_own(s, out[0]);
}

td_tensor *td_pointwise_slope(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *one = td_scope_number(s, 1, rule->in[2]);
  return td_chain(s, rule->cotangent[0], td_scope_apply(s, rule->op, rule->args, 3, rule->in[0], rule->in[1], one));
}
