#include "engine/ops/random_draw.h"

#include "engine/ops/families.h"

const char td_drawn[] = "drawn at random";

static int key_input(const td_op *op) { return td_op_tensor_params(op) - 1; }

int td_draw_check_key(td_infer *infer) {
  int k = key_input(infer->op);
  if (k < 0 || k >= infer->in_count || infer->in[k].rank > TD_RANK_MAX) return TD_OK;
  if (infer->in[k].rank == 0 && infer->in[k].dtype == TD_INT64) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_VALUE, "key is no key: it needs a 0-d int64 tensor");
  td_error_hint(infer->context, infer->in[k].rank ? "one of many keys is keys[i]" : "random.key(seed) makes one");
  return code;
}

int td_draw_infer_shape(td_infer *infer, const td_arg *shape, uint8_t dtype) {
  infer->out[0] = (td_meta){.dtype = dtype, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) {
    if (shape->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "shape: size of axis %d is negative: %lld", i,
                           (long long)shape->ints[i]);
    infer->out[0].shape[i] = shape->ints[i];
  }
  return td_draw_check_key(infer);
}

int td_draw_infer(td_infer *infer) {
  uint8_t dtype = (uint8_t)infer->args[td_op_arg_count(infer->op) - 1].i;
  if (!td_dtype_is_float(dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "dtype must be floating, not %s", td_dtype_name(dtype));
  return td_draw_infer_shape(infer, &infer->args[0], dtype);
}

void td_draw_open(const td_call *call, td_draw *d, int64_t blocks) {
  td_context *context = call->context;
  int k = key_input(call->op);
  if (k >= 0 && k < call->in_count && call->in[k].data) {
    d->seed = *(const uint64_t *)call->in[k].data;
    d->counter = 0;
    d->stream = TD_STREAM_KEYED;
    return;
  }
  d->seed = context->seed;
  d->counter = context->counter;
  d->stream = TD_STREAM_SESSION;
  context->counter += (uint64_t)blocks;
}

void td_draw_run(const td_call *call, td_draw *d, int64_t size, int64_t per_block, int64_t cost, td_range *work) {
  int64_t blocks = (size + per_block - 1) / per_block;
  td_draw_open(call, d, blocks);
  td_ranges_run(call->context->pool, blocks, cost, work, d);
}

uint64_t td_draw_below(uint64_t range, uint32_t high, uint32_t low) {
  uint64_t bits = (uint64_t)high << 32 | low;
  return range ? (uint64_t)(((unsigned __int128)bits * range) >> 64) : bits;
}
