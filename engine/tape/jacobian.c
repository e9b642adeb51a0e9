// Jacobians: one backward pass for many elements of the target at once. The cotangents are the rows of a unit matrix,
// handed to the pass as the examples of a batch, in chunks, so that memory stays bounded and Ctrl-C is heard.
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/tape/state.h"

enum { CHUNK_ROWS = 256, CHUNK_ELEMENTS = 1 << 22 };

typedef struct jacobian {
  td_context *context;
  td_tape *tape;
  td_tensor *target;
  const td_source *sources;
  int source_count;
  bool per_example; // axis 0 of target and sources are examples that don't depend on each other
  int64_t rows; // elements of the target, or of one example's
  td_scope scope; // owns the parts
  td_tensor **parts; // source_count rows of chunk_count
  int64_t chunk, chunk_count;
} jacobian;

static const td_tensor *value_of(const td_source *source) {
  return source->variable ? source->variable->value : source->tensor;
}

// Cotangents of count rows from first on: [count, target's shape].
static td_tensor *cotangents(const jacobian *j, int64_t first, int64_t count) {
  td_context *context = j->context;
  int64_t shape[TD_RANK_MAX + 1] = {count}, examples = j->per_example ? j->target->shape[0] : 1;
  if (j->target->rank == TD_RANK_MAX) {
    td_error_set(context, TD_ERROR_SHAPE, "jacobian: the target has rank %d, at most %d fit", TD_RANK_MAX,
                 TD_RANK_MAX - 1);
    return NULL;
  }
  memcpy(shape + 1, j->target->shape, (size_t)j->target->rank * sizeof *shape);
  td_tensor *t = td_tensor_zeros(context, j->target->dtype, j->target->rank + 1, shape);
  for (int64_t n = 0; t && n < count; n++)
    for (int64_t e = 0; e < examples; e++) {
      int64_t at = (n * examples + e) * j->rows + first + n;
      if (t->dtype == TD_FLOAT64) ((double *)t->data)[at] = 1;
      else if (t->dtype == TD_FLOAT32) ((float *)t->data)[at] = 1;
      else ((uint16_t *)t->data)[at] = t->dtype == TD_FLOAT16 ? 0x3c00 : 0x3f80;
    }
  return t;
}

static int run_chunk(jacobian *j, int64_t index) {
  td_context *context = j->context;
  int64_t first = index * j->chunk, count = j->rows - first < j->chunk ? j->rows - first : j->chunk;
  td_tensor *seeds = cotangents(j, first, count), *wrapped = NULL, **rows = NULL;
  int code = seeds ? td_batch_enter(context, count) : context->error.code;
  if (code) {
    td_tensor_unref(seeds);
    return code;
  }
  rows = td_memory_new_zero((size_t)j->source_count * sizeof *rows);
  wrapped = td_batch_wrap(context, seeds);
  if (!rows) code = td_error_memory(context, "jacobian", j->source_count * (int64_t)sizeof *rows);
  else if (!wrapped) code = context->error.code;
  if (!code)
    code = td_tape_gradient(context, j->tape, &j->target, 1, &wrapped, j->sources, j->source_count, false, rows);
  for (int i = 0; i < j->source_count && !code; i++) {
    if (!rows[i]) continue;
    j->parts[i * j->chunk_count + index] = td_scope_own(&j->scope, td_batch_unwrap(context, rows[i]));
    if (j->scope.failed) code = context->error.code;
  }
  for (int i = 0; i < j->source_count && rows; i++) td_tensor_unref(rows[i]);
  td_memory_free(rows);
  td_tensor_unref(wrapped);
  td_tensor_unref(seeds);
  td_batch_leave(context);
  return code;
}

static td_tensor *joined(jacobian *j, td_tensor **parts) { // [rows, source's shape]
  int64_t count = j->chunk_count;
  while (count > 1) {
    int64_t groups = 0;
    for (int64_t i = 0; i < count; i += TD_INPUT_MAX, groups++)
      parts[groups] =
          td_concat_all(&j->scope, parts + i, count - i < TD_INPUT_MAX ? (int)(count - i) : TD_INPUT_MAX, 0);
    count = groups;
  }
  return parts[0];
}

// The rows under the target's axes: target's shape, then the source's; per example: examples, the target's others, the
// source's others.
static td_tensor *arranged(jacobian *j, td_tensor *rows, const td_tensor *source) {
  int64_t shape[2 * TD_RANK_MAX];
  int rank = j->target->rank, skipped = j->per_example;
  memcpy(shape, j->target->shape, (size_t)rank * sizeof *shape);
  for (int i = skipped; i < source->rank; i++) shape[rank++] = source->shape[i];
  if (rank > TD_RANK_MAX) {
    td_error_set(j->context, TD_ERROR_SHAPE, "jacobian: ranks %d and %d make rank %d, and tensors have at most %d",
                 j->target->rank, source->rank, rank, TD_RANK_MAX);
    return NULL;
  }
  if (j->per_example) {
    int axes[TD_RANK_MAX] = {1, 0};
    for (int i = 2; i < rows->rank; i++) axes[i] = i;
    rows = td_permute(&j->scope, rows, axes);
  }
  return rows ? td_reshape(&j->scope, rows, rank, shape) : NULL;
}

static int finish(jacobian *j, bool unconnected_zero, td_tensor **out) {
  for (int i = 0; i < j->source_count; i++) {
    const td_tensor *source = value_of(&j->sources[i]);
    td_tensor **parts = j->parts + i * j->chunk_count, *rows = NULL;
    if (j->rows && parts[0]) rows = joined(j, parts);
    else if (unconnected_zero || !j->rows) {
      int64_t shape[TD_RANK_MAX + 1] = {j->rows};
      memcpy(shape + 1, source->shape, (size_t)source->rank * sizeof *shape);
      rows = td_scope_own(&j->scope, td_tensor_zeros(j->context, source->dtype, source->rank + 1, shape));
    } else continue;
    td_tensor *whole = rows ? arranged(j, rows, source) : NULL;
    if (!whole) return j->context->error.code;
    out[i] = td_result_own(j->context, td_tensor_ref(whole));
    if (!out[i]) return j->context->error.code;
  }
  return TD_OK;
}

static int check(jacobian *j) {
  const td_tensor *target = j->target;
  if (!td_dtype_is_float(target->dtype))
    return td_error_set(j->context, TD_ERROR_DTYPE, "jacobian: the target is %s; only floating dtypes have derivatives",
                        td_dtype_name(target->dtype));
  if (!j->per_example) return TD_OK;
  for (int i = 0; i < j->source_count; i++) {
    const td_tensor *source = value_of(&j->sources[i]);
    if (target->rank && source->rank && target->shape[0] == source->shape[0]) continue;
    td_meta metas[2] = {td_tensor_meta(target), td_tensor_meta(source)};
    td_error_set(j->context, TD_ERROR_SHAPE,
                 "batch_jacobian: target and source need the same number of examples in axis 0");
    td_error_operand(j->context, "target", 1, &metas[0]);
    td_error_operand(j->context, "source", 2, &metas[1]);
    return TD_ERROR_SHAPE;
  }
  return TD_OK;
}

static int run(jacobian *j, void (*progress)(void *, int64_t, int64_t), void *owner) {
  bool persistent = j->tape->persistent;
  int code = TD_OK;
  if (!persistent) td_tape_close(j->context, j->tape);
  for (int64_t n = 0; n < j->chunk_count && !code; n++) {
    j->tape->persistent =
        persistent || n + 1 < j->chunk_count; // the last pass of a tape for one use gives its records up
    code = run_chunk(j, n);
    if (progress) progress(owner, n + 1, j->chunk_count);
  }
  j->tape->persistent = persistent;
  return code;
}

int td_tape_jacobian(td_context *context, td_tape *tape, td_tensor *target, const td_source *sources, int source_count,
                     bool per_example, bool unconnected_zero, void (*progress)(void *, int64_t, int64_t), void *owner,
                     td_tensor **out) {
  jacobian j = {context, tape, target, sources, source_count, .per_example = per_example};
  memset(out, 0, (size_t)source_count * sizeof *out);
  int code = check(&j);
  if (code) return code;
  j.rows = per_example ? td_shape_size(target->rank - 1, target->shape + 1) : target->size;
  int64_t largest = target->size > 0 ? target->size : 1;
  for (int i = 0; i < source_count; i++)
    if (value_of(&sources[i])->size > largest) largest = value_of(&sources[i])->size;
  j.chunk = CHUNK_ELEMENTS / largest;
  if (j.chunk < 1) j.chunk = 1;
  if (j.chunk > CHUNK_ROWS) j.chunk = CHUNK_ROWS;
  j.chunk_count = (j.rows + j.chunk - 1) / j.chunk;
  int64_t parts = j.chunk_count * source_count;
  j.parts = td_memory_new_zero((size_t)(parts + 1) * sizeof *j.parts);
  if (!j.parts) return td_error_memory(context, "jacobian", parts * (int64_t)sizeof *j.parts);
  td_scope_open(&j.scope, context);
  code = run(&j, progress, owner);
  if (!code) code = finish(&j, unconnected_zero, out);
  td_scope_close(&j.scope);
  td_memory_free(j.parts);
  for (int i = 0; i < source_count && code; i++) {
    td_tensor_unref(out[i]);
    out[i] = NULL;
  }
  return code;
}
