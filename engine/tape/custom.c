// Derivatives that the caller gives: an op that hands values through and whose vjp is a function of the caller's. Its
// first input is a tensor whose storage holds that function, so that what counts tensors also counts the function.
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/tape.h"

static int custom_infer(td_infer *infer) {
  infer->out_count = (int)infer->args[0].i;
  for (int k = 0; k < infer->out_count; k++) infer->out[k] = infer->in[1 + k];
  return TD_OK;
}

static td_tensor *custom_view(td_context *context, td_tensor *in, const td_infer *infer) {
  (void)in;
  return td_tensor_alias(context, infer->tensors[1 + infer->output]);
}

static int custom_vjp(td_rule *rule) {
  const td_custom *custom = rule->in[0]->storage->owner;
  td_tensor *cotangents[TD_OUTPUT_MAX], *din[TD_INPUT_MAX] = {0};
  int first = 1 + rule->out_count;
  for (int k = 0; k < rule->out_count; k++) {
    cotangents[k] = rule->cotangent[k];
    if (!cotangents[k]) cotangents[k] = td_scope_filled(&rule->scope, 0, &rule->out_meta[k]);
    if (!cotangents[k]) return rule->scope.context->error.code;
  }
  int code = custom->vjp(custom->owner, cotangents, rule->out_count, din, rule->in_count - first);
  for (int i = 0; i < rule->in_count - first; i++) {
    td_tensor *given = din[i] ? td_scope_own(&rule->scope, din[i]) : NULL;
    if (rule->needs[first + i]) rule->din[first + i] = given;
  }
  return code;
}

static const td_op custom_op = {
    .name = "custom_gradient",
    .params = {{.name = "tensors", .kind = TD_PARAM_TENSORS},
               {.name = "values", .kind = TD_PARAM_INT, .required = true}},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .outputs = TD_MANY,
    .infer = custom_infer,
    .view = custom_view,
    .vjp = custom_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "Values whose derivative was given.",
};

typedef struct custom_storage {
  td_storage storage;
  td_custom custom;
} custom_storage;

static void release_custom(td_storage *storage) {
  td_custom *custom = storage->owner;
  custom->release(custom->owner);
}

static td_tensor *handle_new(td_context *context, const td_custom *custom) {
  custom_storage *s = td_memory_new_zero(sizeof *s);
  if (!s) {
    custom->release(custom->owner);
    td_error_memory(context, "custom_gradient", (int64_t)sizeof *s);
    return NULL;
  }
  atomic_init(&s->storage.refs, 1);
  s->storage.release = release_custom;
  s->storage.owner = &s->custom;
  s->custom = *custom;
  return td_tensor_wrap(context, TD_UINT8, 0, NULL, &s->storage, (char *)&s->custom);
}

int td_tape_custom(td_context *context, const td_custom *custom, td_tensor *const *in, int in_count,
                   td_tensor *const *values, int value_count, td_tensor **out) {
  td_tensor *all[TD_INPUT_MAX] = {0};
  if (1 + in_count + value_count > TD_INPUT_MAX) {
    custom->release(custom->owner);
    return td_error_set(context, TD_ERROR_VALUE, "custom_gradient: %d arguments and %d values, at most %d together fit",
                        in_count, value_count, TD_INPUT_MAX - 1);
  }
  td_arg args[1] = {TD_INT_DEFAULT(value_count)};
  int code = TD_OK;
  all[0] = handle_new(context, custom);
  if (!all[0]) code = context->error.code;
  for (int k = 0; k < value_count && !code; k++) { // without their history: the given derivative replaces it
    all[1 + k] = td_tensor_alias(context, values[k]);
    if (!all[1 + k]) code = context->error.code;
  }
  for (int i = 0; i < in_count; i++) all[1 + value_count + i] = td_tensor_ref(in[i]);
  if (!code) code = td_op_apply(context, &custom_op, all, 1 + value_count + in_count, args, out);
  for (int i = 0; i < 1 + value_count + in_count; i++) td_tensor_unref(all[i]);
  return code;
}

const char *td_custom_name(const td_op *op, td_tensor *const *in) {
  return op == &custom_op ? ((const td_custom *)in[0]->storage->owner)->name : NULL;
}
