// dropout and its kin: elements, or whole channels, that are replaced at random. The mask that was drawn is a second
// result, which the gradient reads.
#ifdef __clang__
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif
#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/random_draw.h"

enum { RATE, TRAINING }; // arguments

typedef struct change { // what is kept becomes scale x + shift; the rest becomes dropped
  double scale, shift, dropped;
} change;

typedef struct work {
  td_draw draw;
  int64_t inner; // elements that share a mask
  double rate;
  change change;
  const char *in;
  char *out;
  bool single;
} work;

#define SELECT(T, name)                                                                                        \
  TD_CLONES static void name##_select(const work *w, int64_t first, int64_t last) {                            \
    const T *x = (const T *)w->in;                                                                             \
    T *out = (T *)w->out, scale = (T)w->change.scale, shift = (T)w->change.shift;                              \
    const T dropped = (T)w->change.dropped;                                                                    \
    const uint8_t *mask = w->draw.mask;                                                                        \
    if (w->inner == 1) {                                                                                       \
      TD_INDEPENDENT for (int64_t i = first; i < last; i++) out[i] = mask[i] ? x[i] * scale + shift : dropped; \
      return;                                                                                                  \
    }                                                                                                          \
    for (int64_t g = first; g < last; g++)                                                                     \
      TD_INDEPENDENT for (int64_t i = g * w->inner; i < (g + 1) * w->inner; i++) out[i] =                      \
          mask[g] ? x[i] * scale + shift : dropped;                                                            \
  }
SELECT(float, single)
SELECT(double, twofold)

static void run_blocks(void *argument, int64_t first, int64_t last) {
  const td_draw *d = argument;
  const work *w = argument; // draw is its first member
  uint32_t bits[4 * TD_DRAW_BATCH];
  for (int64_t b = first; b < last; b += TD_DRAW_BATCH) {
    int64_t blocks = last - b < TD_DRAW_BATCH ? last - b : TD_DRAW_BATCH, at = b * 4, end = at + blocks * 4;
    if (end > d->out.size) end = d->out.size;
    td_random_blocks(d->seed, d->counter + (uint64_t)b, d->stream, blocks, bits);
    for (int64_t i = at; i < end; i++) d->mask[i] = (double)bits[i - at] * 0x1p-32 >= w->rate;
    (w->single ? single_select : twofold_select)(w, at, end);
  }
}

static int infer_groups(td_infer *infer, int spatial) { // spatial: trailing axes that are dropped together
  double rate = infer->args[RATE].f;
  const td_meta *in = &infer->in[0];
  infer->out[0] = infer->out[1] = *in;
  infer->out[1].dtype = TD_BOOL;
  if (!(rate >= 0 && rate <= 1)) return td_infer_fail(infer, TD_ERROR_VALUE, "rate must be from 0 to 1, not %g", rate);
  if (!td_dtype_is_float(in->dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "needs a floating tensor, not %s", td_dtype_name(in->dtype));
  if (spatial && in->rank != spatial + 2 && in->rank != spatial + 1)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "needs channels before %d axes: rank %d or %d, not %d", spatial,
                         spatial + 1, spatial + 2, in->rank);
  for (int i = in->rank - spatial; i < in->rank; i++) infer->out[1].shape[i] = 1;
  return td_draw_check_key(infer);
}

static int64_t workspace(const td_call *call) {
  td_scratch scratch = {0};
  td_scratch_view(&scratch, NULL, &call->in[0], call->out[0].dtype);
  return scratch.used;
}

static int run(const td_call *call, const change *c) {
  td_scratch scratch = {.at = call->workspace};
  const td_view *out = &call->out[0], *mask = &call->out[1];
  work w = {.rate = call->args[RATE].f, .change = *c, .out = out->data, .single = out->dtype == TD_FLOAT32};
  w.in = td_scratch_view(&scratch, call->context->pool, &call->in[0], out->dtype);
  if (!call->args[TRAINING].i) {
    memcpy(out->data, w.in, (size_t)(out->size * td_dtype_bytes(out->dtype)));
    memset(mask->data, 1, (size_t)mask->size);
    return TD_OK;
  }
  w.draw.out = *mask;
  w.draw.mask = (uint8_t *)mask->data;
  w.inner = mask->size ? out->size / mask->size : 1;
  td_draw_run(call, &w.draw, mask->size, 4, 16 + 4 * w.inner, run_blocks);
  return TD_OK;
}

static change plain_change(const td_arg *args) {
  double rate = args[RATE].f;
  return (change){.scale = !args[TRAINING].i ? 1 : rate < 1 ? 1 / (1 - rate) : 0};
}

// Keeps mean and variance of activations by selu: what is dropped becomes its limit at -infinity.
static change self_normalising_change(const td_arg *args) {
  const double limit = -1.7580993408473766;
  double rate = args[RATE].f;
  if (!args[TRAINING].i) return (change){.scale = 1};
  if (rate >= 1) return (change){.scale = 0}; // all of them are limit: mean 0 is what is left
  double scale = 1 / sqrt((1 - rate) * (1 + rate * limit * limit)), shift = -scale * rate * limit;
  return (change){.scale = scale, .shift = shift, .dropped = scale * limit + shift};
}

static int masked_gradient(td_rule *rule, double scale) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  if (!c) return TD_OK;
  td_tensor *scaled = td_multiply(s, c, td_scope_number(s, scale, c));
  rule->din[0] = td_where(s, rule->out[1], scaled, td_scope_number(s, 0, c));
  return TD_OK;
}

static int dropout_kernel(const td_call *call) {
  change c = plain_change(call->args);
  return run(call, &c);
}

static int alpha_kernel(const td_call *call) {
  change c = self_normalising_change(call->args);
  return run(call, &c);
}

static int dropout_vjp(td_rule *rule) { return masked_gradient(rule, plain_change(rule->args).scale); }
static int alpha_vjp(td_rule *rule) { return masked_gradient(rule, self_normalising_change(rule->args).scale); }

static int dropout_infer(td_infer *infer) { return infer_groups(infer, 0); }
static int dropout1d_infer(td_infer *infer) { return infer_groups(infer, 1); }
static int dropout2d_infer(td_infer *infer) { return infer_groups(infer, 2); }
static int dropout3d_infer(td_infer *infer) { return infer_groups(infer, 3); }

#define DROPOUT_PARAMS                                                                                       \
  TD_X, TD_KEY_PARAM,                                                                                        \
      {.name = "rate", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0.5), .alias = TD_ALIAS("p")}, { \
    .name = "training", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)                                 \
  }
#define GRADIENT_DOC "Gradient: the cotangent, dropped and scaled likewise."
#define CHANNEL_DOC \
  "the channel's elements are all kept or all 0; those that are kept are divided by 1 - rate.\n" GRADIENT_DOC

static const td_op dropout = {
    .name = "dropout",
    .params = {DROPOUT_PARAMS},
    .kind = TD_KIND_RANDOM,
    .outputs = 2,
    .shown = 1,
    .infer = dropout_infer,
    .workspace = workspace,
    .kernel = dropout_kernel,
    .vjp = dropout_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "Each element becomes 0 with probability rate; those that are kept are divided by 1 - rate. x itself unless "
           "training.\n" GRADIENT_DOC,
    .example = "dropout(tensor([1., 2.]), 1.).tolist()  # [0.0, 0.0]",
    .source = "Srivastava et al., JMLR 2014",
    .samples = TD_SAMPLES{{"3,4", NULL, -2, 2, NULL},
                          {"3,4", "rate=0.25", -2, 2, NULL},
                          {"3", "rate=1.0", -2, 2, NULL},
                          {"3", "training=False", -2, 2, NULL},
                          TD_SAMPLES_END},
};

#define CHANNEL_DROPOUT(row, text, shapes1, shapes2, description)                                               \
  static const td_op row = {                                                                                    \
      .name = #row,                                                                                             \
      .params = {DROPOUT_PARAMS},                                                                               \
      .kind = TD_KIND_RANDOM,                                                                                   \
      .outputs = 2,                                                                                             \
      .shown = 1,                                                                                               \
      .infer = row##_infer,                                                                                     \
      .workspace = workspace,                                                                                   \
      .kernel = dropout_kernel,                                                                                 \
      .vjp = dropout_vjp,                                                                                       \
      .saves = TD_SAVES_OUTPUT,                                                                                 \
      .doc = "dropout of whole channels of " description ": " CHANNEL_DOC,                                      \
      .example = text,                                                                                          \
      .source = "Tompson et al., CVPR 2015",                                                                    \
      .samples = TD_SAMPLES{{shapes1, "rate=0.25", -2, 2, NULL}, {shapes2, NULL, -2, 2, NULL}, TD_SAMPLES_END}, \
  };
CHANNEL_DROPOUT(dropout1d, "dropout1d(ones(1, 2, 3), 1.).sum().item()  # 0.0", "2,3,4", "3,4", "[N, C, L] or [C, L]")
CHANNEL_DROPOUT(dropout2d, "dropout2d(ones(1, 2, 3, 3), 1.).sum().item()  # 0.0", "2,3,2,2", "3,2,2",
                "[N, C, H, W] or [C, H, W]")
CHANNEL_DROPOUT(dropout3d, "dropout3d(ones(1, 2, 3, 3, 3), 1.).sum().item()  # 0.0", "2,3,2,1,2", "3,2,1,2",
                "[N, C, D, H, W] or [C, D, H, W]")

static const td_op alpha_dropout = {
    .name = "alpha_dropout",
    .params = {DROPOUT_PARAMS},
    .kind = TD_KIND_RANDOM,
    .outputs = 2,
    .shown = 1,
    .infer = dropout_infer,
    .workspace = workspace,
    .kernel = alpha_kernel,
    .vjp = alpha_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "dropout for networks of selu: each element becomes selu's limit -1.758 with probability rate, and all are "
           "scaled and shifted so that mean 0 and variance 1 stay.\nGradient: the cotangent of what is kept, scaled.",
    .example = "alpha_dropout(tensor([1., 2.]), 0.).tolist()  # [1.0, 2.0]",
    .source = "Klambauer et al., NeurIPS 2017",
    .samples = TD_SAMPLES{{"3,4", NULL, -2, 2, NULL},
                          {"3", "rate=0.25", -2, 2, NULL},
                          {"3", "rate=1.0", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_dropout[] = {&dropout, &dropout1d, &dropout2d, &dropout3d, &alpha_dropout, NULL};
