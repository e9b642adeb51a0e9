// Units that pass no gradient on. A unit is an index of an activation's last axes; axis 0 counts examples.
#include "engine/ops/families.h"
#include "engine/tape/finite.h"
#include "engine/tape/state.h"

static bool is_activation(const td_record *record) {
  return record->op && record->op->kind == TD_KIND_ELEMENTWISE && record->op->vjp && record->op->saves &&
         record->in_count == 1 && record->keepers && record->out_meta[0].rank >= 2 &&
         td_dtype_is_float(record->out_meta[0].dtype);
}

// The derivative of each result in its input: the vjp of ones.
static td_tensor *slopes(td_rule *rule, td_record *record) {
  rule->op = record->op;
  rule->args = record->args;
  rule->in_count = rule->out_count = 1;
  rule->in[0] = td_record_saved(record, 0);
  rule->in_meta[0] = rule->out_meta[0] = record->out_meta[0];
  rule->out[0] = td_rule_output(rule, record, 0);
  rule->cotangent[0] = td_scope_filled(&rule->scope, 1, &record->out_meta[0]);
  rule->needs[0] = true;
  rule->din[0] = NULL;
  if (rule->scope.failed || record->op->vjp(rule) || rule->scope.failed) return NULL;
  td_tensor *t = rule->din[0];
  return t ? td_broadcast_to(&rule->scope, t, record->out_meta[0].rank, record->out_meta[0].shape)
           : td_scope_filled(&rule->scope, 0, &record->out_meta[0]);
}

int td_tape_dead(td_context *context, td_record *record, int64_t *units, int64_t *dead) {
  *units = *dead = 0;
  if (!is_activation(record)) return TD_OK;
  td_rule rule;
  td_scope_open(&rule.scope, context);
  td_no_grad_enter(context);
  td_tensor *t = slopes(&rule, record);
  int code = t ? TD_OK : context->error.code;
  if (t && t->shape[0] > 0) {
    int64_t examples = t->shape[0];
    *units = t->size / examples;
    for (int64_t u = 0; u < *units; u++) {
      int64_t n = 0;
      while (n < examples && td_tensor_get_float(t, n * *units + u) == 0) n++;
      *dead += n == examples;
    }
  }
  td_no_grad_leave(context);
  td_scope_close(&rule.scope);
  return code;
}
