// vmap's dispatch: an op on batched tensors becomes one op on the tensors that they wrap, whose axis 0 holds the
// examples, by the rule of its row; or one op an example. Ops made here are recorded by the tapes from outside of the
// batch, the op itself by those opened inside of it, so derivatives and maps nest either way.
#include "engine/ops/batch.h"
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"

// ---- batched tensors ----

typedef struct batched_storage { // of a batched tensor: no elements, but the tensor that has them
  td_storage storage;
  td_tensor *physical;
  uint64_t id; // of its batch
  int level;
} batched_storage;

static batched_storage *batched_of(const td_tensor *t) {
  return t && t->flags & TD_TENSOR_BATCHED ? (batched_storage *)t->storage->owner : NULL;
}

static void release_storage(td_storage *storage) { td_tensor_unref(((batched_storage *)storage->owner)->physical); }

int td_batch_level(const td_tensor *t) {
  const batched_storage *s = batched_of(t);
  return s ? s->level : 0;
}

int td_batch_enter(td_context *context, int64_t size) {
  if (context->batch_depth == TD_BATCH_LEVELS)
    return td_error_set(context, TD_ERROR_VALUE, "vmap: more than %d calls inside each other", TD_BATCH_LEVELS);
  context->batches[context->batch_depth++] = (td_batch){++context->batch_ids, size};
  return TD_OK;
}

void td_batch_leave(td_context *context) { context->batch_depth--; }

static td_tensor *wrap(td_context *context, td_tensor *t, int level) {
  batched_storage *s = td_memory_new_zero(sizeof *s);
  if (!s) {
    td_error_memory(context, "vmap", (int64_t)sizeof *s);
    return NULL;
  }
  atomic_init(&s->storage.refs, 1);
  s->storage.release = release_storage;
  s->storage.owner = s;
  s->physical = td_tensor_ref(t);
  s->id = context->batches[level - 1].id;
  s->level = level;
  td_tensor *wrapped = td_tensor_wrap(context, t->dtype, t->rank - 1, t->shape + 1, &s->storage, NULL);
  if (wrapped) wrapped->flags = TD_TENSOR_BATCHED | (t->flags & TD_TENSOR_FROM_VARIABLE);
  return wrapped;
}

td_tensor *td_batch_wrap(td_context *context, td_tensor *t) { return wrap(context, t, context->batch_depth); }

// A reshape that adds axes.
static td_tensor *raised(td_scope *s, td_tensor *t, int rank, const int64_t *shape) {
  if (rank <= TD_RANK_MAX) return td_reshape(s, t, rank, shape);
  td_error_set(s->context, TD_ERROR_SHAPE, "vmap: the examples need rank %d, and tensors have at most %d", rank,
               TD_RANK_MAX);
  s->failed = true;
  return NULL;
}

static td_tensor *repeated(td_scope *s, td_tensor *t, int64_t size) { // t for each example
  int64_t shape[TD_RANK_MAX + 1] = {size};
  memcpy(shape + 1, t->shape, (size_t)t->rank * sizeof *shape);
  if (t->rank < TD_RANK_MAX) return td_broadcast_to(s, t, t->rank + 1, shape);
  return raised(s, t, t->rank + 1, shape);
}

td_tensor *td_batch_unwrap(td_context *context, td_tensor *t) {
  const batched_storage *s = batched_of(t);
  if (s && s->level == context->batch_depth) return td_tensor_ref(s->physical);
  td_scope scope;
  td_scope_open(&scope, context);
  td_tensor *each = td_tensor_ref(repeated(&scope, t, context->batches[context->batch_depth - 1].size));
  td_scope_close(&scope);
  return each;
}

// ---- rules ----

static td_tensor *with_ones(td_batching *b, td_tensor *t, int ones) { // ones axes of size 1 behind the examples
  if (ones <= 0) return t;
  int64_t shape[2 * TD_RANK_MAX] = {t->shape[0]};
  for (int i = 1; i <= ones; i++) shape[i] = 1;
  memcpy(shape + 1 + ones, t->shape + 1, (size_t)(t->rank - 1) * sizeof *shape);
  return raised(&b->scope, t, t->rank + ones, shape);
}

int td_batch_elementwise(td_batching *b) {
  for (int i = 0; i < b->in_count; i++) {
    if (!b->batched[i]) continue;
    b->in[i] = with_ones(b, b->in[i], b->out_rank - b->meta[i].rank);
    if (!b->in[i]) return b->scope.context->error.code;
  }
  return TD_OK;
}

static int lead_all(td_batching *b) {
  for (int i = 0; i < b->in_count; i++) {
    if (!b->in[i] || b->batched[i]) continue;
    b->in[i] = repeated(&b->scope, b->in[i], b->size);
    b->batched[i] = true;
    if (!b->in[i]) return b->scope.context->error.code;
  }
  return TD_OK;
}

static void all_axes(td_arg *arg, int rank) { // from the end
  arg->given = 1;
  arg->count = rank;
  for (int i = 0; i < rank; i++) arg->ints[i] = i - rank;
}

static int shift_args(td_batching *b,
                      int rank) { // axes counted from the end of rank axes; shapes begin with the examples
  const td_param *params = b->op->params + td_op_tensor_params(b->op);
  for (int k = 0; k < td_op_arg_count(b->op); k++) {
    td_arg *arg = &b->args[k];
    switch (params[k].kind) {
    case TD_PARAM_AXIS:
      if (!arg->given) return TD_BATCH_EACH;
      if (arg->i >= 0) arg->i -= rank;
      break;
    case TD_PARAM_AXES:
      if (!arg->given) all_axes(arg, rank);
      for (int i = 0; i < arg->count; i++)
        if (arg->ints[i] >= 0) arg->ints[i] -= rank;
      break;
    case TD_PARAM_SHAPE:
      if (arg->count == TD_RANK_MAX) return TD_BATCH_EACH;
      memmove(arg->ints + 1, arg->ints, (size_t)arg->count * sizeof *arg->ints);
      arg->ints[0] = b->size;
      arg->count++;
      break;
    default: break;
    }
  }
  return TD_OK;
}

int td_batch_axes(td_batching *b) {
  int code = shift_args(b, b->meta[0].rank);
  return code ? code : lead_all(b);
}

int td_batch_result_axes(td_batching *b) {
  int code = shift_args(b, b->out_rank);
  return code ? code : lead_all(b);
}

int td_batch_broadcast(td_batching *b) {
  int code = td_batch_elementwise(b);
  return code ? code : shift_args(b, b->out_rank);
}

// Vectors become matrices of one row or column, then leading axes broadcast.
int td_batch_matmul(td_batching *b) {
  td_scope *s = &b->scope;
  int ranks[2], most;
  for (int i = 0; i < 2; i++) {
    const td_tensor *t = b->in[i];
    int64_t shape[TD_RANK_MAX + 1];
    ranks[i] = b->meta[i].rank;
    if (ranks[i] != 1) continue;
    memcpy(shape, t->shape, sizeof t->shape);
    int rank = t->rank + 1;
    if (i == 0) shape[rank - 1] = shape[rank - 2], shape[rank - 2] = 1;
    else shape[rank - 1] = 1;
    b->in[i] = raised(s, b->in[i], rank, shape);
    if (!b->in[i]) return s->context->error.code;
    ranks[i] = 2;
  }
  most = ranks[0] > ranks[1] ? ranks[0] : ranks[1];
  for (int i = 0; i < 2; i++) {
    if (b->batched[i]) b->in[i] = with_ones(b, b->in[i], most - ranks[i]);
    if (!b->in[i]) return s->context->error.code;
  }
  return TD_OK;
}

// ---- example by example ----

static td_tensor *example(td_scope *s, td_tensor *t, int64_t n) {
  int64_t start[TD_RANK_MAX] = {n}, step[TD_RANK_MAX], size[TD_RANK_MAX];
  for (int i = 0; i < t->rank; i++) {
    step[i] = 1;
    size[i] = i ? t->shape[i] : 1;
  }
  td_tensor *one = td_slice_view(s, t, start, step, size);
  return one ? td_reshape(s, one, t->rank - 1, t->shape + 1) : NULL;
}

// Tensors of one shape along a new axis 0; groups of what one call takes.
static td_tensor *stacked(td_scope *s, td_tensor **parts, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    int64_t shape[TD_RANK_MAX + 1] = {1};
    if (!parts[i]) return NULL;
    memcpy(shape + 1, parts[i]->shape, sizeof parts[i]->shape);
    parts[i] = raised(s, parts[i], parts[i]->rank + 1, shape);
    if (!parts[i]) return NULL;
  }
  while (count > 1) {
    int64_t groups = 0;
    for (int64_t i = 0; i < count; i += TD_INPUT_MAX, groups++)
      parts[groups] = td_concat_all(s, parts + i, count - i < TD_INPUT_MAX ? (int)(count - i) : TD_INPUT_MAX, 0);
    count = groups;
  }
  return parts[0];
}

static int apply_each(td_batching *b, td_tensor **parts, int *out_count) { // parts: out_count rows of size examples
  td_context *context = b->scope.context;
  for (int64_t n = 0; n < b->size; n++) {
    td_tensor *in[TD_INPUT_MAX], *out[TD_OUTPUT_MAX];
    for (int i = 0; i < b->in_count; i++) {
      in[i] = b->in[i] && b->batched[i] ? example(&b->scope, b->in[i], n) : b->in[i];
      if (b->in[i] && !in[i]) return context->error.code;
    }
    int code = td_op_apply(context, b->op, in, b->in_count, b->args, out);
    if (code) return code;
    *out_count = td_op_outputs(b->op, out);
    for (int k = 0; k < *out_count; k++) parts[k * b->size + n] = td_scope_own(&b->scope, out[k]);
  }
  return b->scope.failed ? context->error.code : TD_OK;
}

static int refuse_unlike(td_context *context, const td_op *op) {
  td_error_set(context, TD_ERROR_SHAPE, "vmap: %s gives examples of unlike shapes", op->name);
  td_error_hint(context, "call it outside of vmap, or write a loop over the examples");
  return TD_ERROR_SHAPE;
}

static int run_each(td_batching *b, td_tensor **out, int *out_count) {
  td_context *context = b->scope.context;
  if (!b->size)
    return td_error_set(context, TD_ERROR_VALUE, "vmap: %s has no rule for a batch of 0 examples", b->op->name);
  int most = b->op->outputs == TD_MANY ? TD_OUTPUT_MAX : b->op->outputs ? b->op->outputs : 1;
  td_tensor **parts = td_memory_new((size_t)(b->size * most) * sizeof *parts);
  if (!parts) return td_error_memory(context, "vmap", b->size * most * (int64_t)sizeof *parts);
  int code = apply_each(b, parts, out_count);
  for (int k = 0; k < *out_count && !code; k++) {
    td_tensor **row = parts + k * b->size;
    for (int64_t n = 1; n < b->size && !code; n++)
      if (!td_shape_equal(row[0]->rank, row[0]->shape, row[n]->rank, row[n]->shape))
        code = refuse_unlike(context, b->op);
    if (code) break;
    out[k] = stacked(&b->scope, row, b->size);
    if (!out[k]) code = context->error.code;
  }
  td_memory_free(parts);
  return code;
}

// ---- dispatch ----

static int refuse_escaped(td_context *context, const td_op *op) {
  td_error_set(context, TD_ERROR_VALUE, "%s: a tensor of one example has left the vmap that it belongs to", op->name);
  td_error_hint(context, "return it from the function that is mapped");
  return TD_ERROR_VALUE;
}

static int gather_inputs(td_batching *b, td_context *context, td_tensor *const *in, int level) {
  for (int i = 0; i < b->in_count; i++) {
    const batched_storage *s = batched_of(in[i]);
    b->in[i] = in[i];
    b->meta[i].rank = UINT8_MAX;
    if (in[i]) b->meta[i] = td_tensor_meta(in[i]);
    if (s && (s->level > context->batch_depth || s->id != context->batches[s->level - 1].id))
      return refuse_escaped(context, b->op);
    b->batched[i] = s && s->level == level;
    if (b->batched[i]) b->in[i] = s->physical;
  }
  return TD_OK;
}

static int infer_one(td_batching *b, td_infer *infer) { // shapes for one example; errors speak of those
  infer->context = b->scope.context;
  infer->op = b->op;
  infer->in_count = b->in_count;
  infer->tensors = NULL;
  infer->args = b->args;
  memcpy(infer->in, b->meta, (size_t)b->in_count * sizeof *b->meta);
  return td_op_infer(infer);
}

static int run_together(td_batching *b, int (*rule)(td_batching *), td_tensor **out, int *out_count) {
  td_infer infer;
  td_tensor *made[TD_OUTPUT_MAX];
  int code = infer_one(b, &infer);
  if (code) return code;
  b->out_rank = infer.out[0].rank;
  td_tensor *plain[TD_INPUT_MAX];
  bool batched[TD_INPUT_MAX];
  td_arg args[TD_PARAM_MAX];
  memcpy(plain, b->in, (size_t)b->in_count * sizeof *plain);
  memcpy(batched, b->batched, sizeof batched);
  memcpy(args, b->args, sizeof args);
  code = rule(b);
  if (code == TD_BATCH_EACH) {
    memcpy(b->in, plain, (size_t)b->in_count * sizeof *plain);
    memcpy(b->batched, batched, sizeof batched);
    memcpy(b->args, args, sizeof args);
  }
  if (!code) code = td_op_apply(b->scope.context, b->op, b->in, b->in_count, b->args, made);
  if (code) return code;
  *out_count = td_op_outputs(b->op, made);
  for (int k = 0; k < *out_count; k++) {
    int64_t shape[TD_RANK_MAX + 1] = {b->size};
    memcpy(shape + 1, infer.out[k].shape, sizeof infer.out[k].shape);
    out[k] = td_scope_own(&b->scope, made[k]);
    if (out[k] && !td_shape_equal(out[k]->rank, out[k]->shape, infer.out[k].rank + 1, shape))
      out[k] = td_reshape(&b->scope, out[k], infer.out[k].rank + 1, shape);
    if (!out[k]) code = b->scope.context->error.code;
  }
  return code;
}

static int run(td_batching *b, td_tensor **out, int *out_count) {
  int (*rule)(td_batching *) = b->op->batch;
  if (!rule && b->op->kind == TD_KIND_ELEMENTWISE) rule = td_batch_elementwise;
  int code = rule ? run_together(b, rule, out, out_count) : TD_BATCH_EACH;
  return code == TD_BATCH_EACH ? run_each(b, out, out_count) : code;
}

static int innermost(const td_context *context) { // of the batches that ops run in now
  return context->batch_depth < context->batch_ceiling ? context->batch_depth : context->batch_ceiling;
}

bool td_batch_draws(const td_context *context, const td_op *op, td_tensor *const *in, int in_count) {
  bool keyed = in_count && in[in_count - 1] && in_count == td_op_tensor_params(op); // the key is the last tensor
  return op->kind == TD_KIND_RANDOM && !keyed && innermost(context) > 0;
}

int td_batch_apply(td_context *context, const td_op *op, td_tensor *const *in, int in_count, const td_arg *args,
                   td_tensor **out) {
  td_batching b = {.op = op, .in_count = in_count};
  td_tensor *physical[TD_OUTPUT_MAX];
  int level = td_batch_draws(context, op, in, in_count) ? innermost(context) : 0;
  int out_count = 0, made = 0, ceiling = context->batch_ceiling;
  for (int i = 0; i < in_count; i++)
    if (td_batch_level(in[i]) > level) level = td_batch_level(in[i]);
  td_scope_open(&b.scope, context);
  if (args) memcpy(b.args, args, (size_t)td_op_arg_count(op) * sizeof *args);
  int code = gather_inputs(&b, context, in, level);
  if (!code) {
    b.size = context->batches[level - 1].size;
    context->batch_ceiling = level - 1;
    code = run(&b, physical, &out_count);
    context->batch_ceiling = ceiling;
  }
  for (; made < out_count && !code; made++) {
    out[made] = wrap(context, physical[made], level);
    if (!out[made]) code = context->error.code;
    else out[made]->place = context->place;
  }
  td_scope_close(&b.scope);
  if (!code && op->outputs == TD_MANY && out_count < TD_OUTPUT_MAX) out[out_count] = NULL;
  if (!code && context->recorder) code = context->recorder->record(context, op, in, in_count, args, out, out_count);
  for (int k = 0; k < made && code; k++) td_tensor_unref(out[k]);
  return code;
}
