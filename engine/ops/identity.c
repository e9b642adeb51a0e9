// An op that gives its input back under a record of its own: what is watched at the copy is not watched at the value
// itself, so that derivatives within derivatives don't mix up their variables.
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"

static int same_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  return TD_OK;
}

static td_tensor *same_view(td_context *context, td_tensor *in, const td_infer *infer) {
  (void)infer;
  return td_tensor_alias(context, in);
}

static int same_vjp(td_rule *rule) {
  rule->din[0] = rule->cotangent[0];
  return TD_OK;
}

static const td_sample any_samples[] = {
    {.shapes = "2,3", .low = -2, .high = 2}, {.shapes = "-", .low = -2, .high = 2}, TD_SAMPLES_END};

static const td_op identity = {
    .name = "same",
    .params = {TD_X},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR | TD_HIDDEN,
    .infer = same_infer,
    .batch = td_batch_axes,
    .view = same_view,
    .vjp = same_vjp,
    .doc = "The same value, recorded anew.\nGradient: the cotangent.",
    .samples = any_samples,
};

td_tensor *td_identity(td_scope *s, td_tensor *x) { return td_scope_apply(s, &identity, NULL, 1, x); }

const td_op *const td_family_identity[] = {&identity, NULL};
