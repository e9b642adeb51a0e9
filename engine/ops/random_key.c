// Keys: 64-bit numbers, held in int64 tensors, under which draws depend on nothing else. Those made from a key are
// Philox's words under it.
#include "engine/ops/families.h"
#include "engine/ops/random_draw.h"

static int64_t derived(uint64_t key, uint64_t counter, uint64_t stream) {
  uint32_t bits[4];
  td_random_block(key, counter, stream, bits);
  return (int64_t)((uint64_t)bits[0] << 32 | bits[1]);
}

static int key_infer(td_infer *infer) {
  infer->out[0] = (td_meta){.dtype = TD_INT64};
  return td_draw_check_key(infer);
}

static int key_kernel(const td_call *call) {
  *(int64_t *)call->out[0].data = derived((uint64_t)call->args[0].i, 0, TD_STREAM_KEY);
  return TD_OK;
}

static const td_op random_key = {
    .name = "random_key",
    .module = "random",
    .params = {{.name = "seed", .kind = TD_PARAM_INT, .required = true}},
    .kind = TD_KIND_OPAQUE,
    .infer = key_infer,
    .kernel = key_kernel,
    .no_gradient = "integer result",
    .doc =
        "A key for draws that depend on nothing else: random.normal((3,), key=k) gives the same numbers whatever was "
        "drawn before. Use a key once; random.split makes new ones.",
    .example = "random.key(0).item() == random.key(0).item()  # True",
    .samples = TD_SAMPLES{{"", "seed=0", 0, 1, NULL}, {"", "seed=-5", 0, 1, NULL}, TD_SAMPLES_END},
};

#define OLD_KEY_PARAM TD_TENSOR_PARAM("key")

static int split_infer(td_infer *infer) {
  int64_t count = infer->args[0].i;
  if (count < 0) return td_infer_fail(infer, TD_ERROR_VALUE, "num is negative: %lld", (long long)count);
  infer->out[0] = (td_meta){.dtype = TD_INT64, .rank = 1, .shape = {count}};
  return td_draw_check_key(infer);
}

static int split_kernel(const td_call *call) {
  int64_t *out = (int64_t *)call->out[0].data;
  uint64_t key = *(const uint64_t *)call->in[0].data;
  for (int64_t i = 0; i < call->out[0].size; i++) out[i] = derived(key, (uint64_t)i, TD_STREAM_SPLIT);
  return TD_OK;
}

static const td_op random_split = {
    .name = "random_split",
    .module = "random",
    .params = {OLD_KEY_PARAM, {.name = "num", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(2)}},
    .kind = TD_KIND_OPAQUE,
    .infer = split_infer,
    .kernel = split_kernel,
    .no_gradient = "integer result",
    .doc = "num new keys made from a key: k1, k2 = random.split(k). The first ones don't depend on num.",
    .example = "random.split(random.key(0), 3).shape  # (3,)",
    .samples = TD_SAMPLES{{"-", NULL, 0, 1000, "int64"}, {"-", "num=5", 0, 1000, "int64"}, TD_SAMPLES_END},
};

static int fold_kernel(const td_call *call) {
  uint64_t key = *(const uint64_t *)call->in[0].data;
  *(int64_t *)call->out[0].data = derived(key, (uint64_t)call->args[0].i, TD_STREAM_FOLD);
  return TD_OK;
}

static const td_op random_fold_in = {
    .name = "random_fold_in",
    .module = "random",
    .params = {OLD_KEY_PARAM, {.name = "data", .kind = TD_PARAM_INT, .required = true}},
    .kind = TD_KIND_OPAQUE,
    .infer = key_infer,
    .kernel = fold_kernel,
    .no_gradient = "integer result",
    .doc = "A new key made from a key and a number, such as a step's.",
    .example = "random.fold_in(random.key(0), 1).shape  # ()",
    .samples = TD_SAMPLES{{"-", "data=0", 0, 1000, "int64"}, {"-", "data=7", 0, 1000, "int64"}, TD_SAMPLES_END},
};

const td_op *const td_family_random_key[] = {&random_key, &random_split, &random_fold_in, NULL};
