// Forward mode: tangents pushed through the records of a tape, from sources to targets, in order of time. A record's
// forward derivative comes from its row:
//  1. jvp, where the row has one;
//  2. an elementwise op's vjp, whose Jacobian is diagonal, with each tangent in the place of the cotangent;
//  3. an op that is linear, in all its inputs or in each one, applied to the tangents;
//  4. else the transposed vjp: vjp is linear in the cotangent u, so the gradient of <vjp(u), tangent> in u is it.
// All of them are made of ops, so an outer tape records them, and forward and reverse mode nest in any order. They read
// what the row's saves names, as backward does, so one tape serves both.
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/state.h"

// ---- one record ----

static bool is_floating(const td_meta *meta) { return meta->rank <= TD_RANK_MAX && td_dtype_is_float(meta->dtype); }

static td_tensor *fitted(td_scope *s, td_tensor *t, const td_meta *meta) { // broadcast and cast to meta
  if (t && !td_shape_equal(t->rank, t->shape, meta->rank, meta->shape))
    t = td_broadcast_to(s, t, meta->rank, meta->shape);
  return t && t->dtype != meta->dtype ? td_cast(s, t, meta->dtype) : t;
}

static td_tensor *total(td_scope *s, td_tensor *sum, td_tensor *more) { return sum ? td_add(s, sum, more) : more; }

static int pull(td_rule *rule) { // vjp for the inputs with needs, of the cotangents
  memset(rule->din, 0, (size_t)rule->in_count * sizeof *rule->din);
  int code = rule->op->vjp(rule);
  return code || !rule->scope.failed ? code : rule->scope.context->error.code;
}

static int push_elementwise(td_rule *rule) {
  memset(rule->needs, 0, (size_t)rule->in_count * sizeof *rule->needs);
  for (int i = 0; i < rule->in_count; i++) {
    if (!rule->tangent[i]) continue;
    rule->cotangent[0] = fitted(&rule->scope, rule->tangent[i], &rule->out_meta[0]);
    rule->needs[i] = true;
    int code = rule->cotangent[0] ? pull(rule) : rule->scope.context->error.code;
    rule->needs[i] = false;
    if (code) return code;
    if (rule->din[i]) rule->dout[0] = total(&rule->scope, rule->dout[0], rule->din[i]);
  }
  return TD_OK;
}

static int apply_to(td_rule *rule, td_tensor *const *in) { // adds the outputs to dout
  td_tensor *out[TD_OUTPUT_MAX];
  int code = td_op_apply(rule->scope.context, rule->op, in, rule->in_count, rule->args, out);
  for (int k = 0; k < rule->out_count && !code; k++) {
    td_tensor *t = td_scope_own(&rule->scope, out[k]);
    if (is_floating(&rule->out_meta[k])) rule->dout[k] = total(&rule->scope, rule->dout[k], t);
  }
  return code;
}

static bool knows_all(const td_rule *rule) { // an input that is neither at hand nor of a known shape stands in the way
  for (int i = 0; i < rule->in_count; i++)
    if (!rule->in[i] && !is_floating(&rule->in_meta[i])) return false;
  return true;
}

static int push_linear(td_rule *rule) {
  td_tensor *in[TD_INPUT_MAX];
  for (int i = 0; i < rule->in_count; i++) {
    in[i] = rule->tangent[i];
    if (!in[i])
      in[i] = is_floating(&rule->in_meta[i]) ? td_scope_filled(&rule->scope, 0, &rule->in_meta[i]) : rule->in[i];
    if (!in[i]) return rule->scope.context->error.code;
  }
  return apply_to(rule, in);
}

static bool has_all(const td_rule *rule) {
  for (int i = 0; i < rule->in_count; i++)
    if (!rule->in[i]) return false;
  return true;
}

static int push_multilinear(td_rule *rule) {
  td_tensor *in[TD_INPUT_MAX];
  int code = TD_OK;
  memcpy(in, rule->in, (size_t)rule->in_count * sizeof *in);
  for (int i = 0; i < rule->in_count && !code; i++) {
    if (!rule->tangent[i]) continue;
    in[i] = rule->tangent[i];
    code = apply_to(rule, in);
    in[i] = rule->in[i];
  }
  return code;
}

// u as cotangents of all floating outputs, watched by tape.
static int watch_cotangents(td_rule *rule, td_tape *tape, td_source *sources, int *source_count) {
  td_context *context = rule->scope.context;
  for (int k = 0; k < rule->out_count; k++) {
    const td_meta *meta = &rule->out_meta[k];
    rule->cotangent[k] = NULL;
    if (!is_floating(meta)) continue;
    td_tensor *u = td_scope_own(&rule->scope, td_tensor_zeros(context, meta->dtype, meta->rank, meta->shape));
    if (!u || td_tape_watch(context, tape, u)) return context->error.code;
    rule->cotangent[k] = u;
    sources[(*source_count)++] = (td_source){.tensor = u};
  }
  return TD_OK;
}

static int pull_all(td_rule *rule, td_tensor **pulled, td_tensor **weights, int *count) {
  for (int i = 0; i < rule->in_count; i++) rule->needs[i] = rule->tangent[i] != NULL;
  int code = pull(rule);
  for (int i = 0; i < rule->in_count && !code; i++) {
    const td_meta *meta = &rule->in_meta[i];
    td_tensor *given = rule->needs[i] ? rule->din[i] : NULL;
    if (!given) continue;
    if (!td_shape_equal(meta->rank, meta->shape, given->rank, given->shape))
      given = td_sum_to(&rule->scope, given, meta->rank, meta->shape);
    if (given && given->dtype != meta->dtype) given = td_cast(&rule->scope, given, meta->dtype);
    if (!given) return rule->scope.context->error.code;
    pulled[*count] = given;
    weights[(*count)++] = rule->tangent[i];
  }
  return code;
}

static int push_transposed(td_rule *rule) {
  td_context *context = rule->scope.context;
  td_tensor *pulled[TD_INPUT_MAX], *weights[TD_INPUT_MAX], *out[TD_OUTPUT_MAX];
  td_source sources[TD_OUTPUT_MAX];
  int source_count = 0, pulled_count = 0, next = 0;
  td_tape *tape = td_tape_new(context, false, false);
  if (!tape) return context->error.code;
  int code = td_tape_open(context, tape);
  if (!code) code = watch_cotangents(rule, tape, sources, &source_count);
  if (!code) code = pull_all(rule, pulled, weights, &pulled_count);
  td_tape_close(context, tape);
  if (!code) code = td_tape_gradient(context, tape, pulled, pulled_count, weights, sources, source_count, false, out);
  for (int k = 0; k < rule->out_count && !code; k++) {
    if (!rule->cotangent[k]) continue;
    td_tensor *t = out[next++];
    if (t) rule->dout[k] = td_scope_own(&rule->scope, t);
  }
  td_tape_unref(context, tape);
  return code;
}

static int push(td_rule *rule) {
  const td_op *op = rule->op;
  if (op->jvp) return op->jvp(rule);
  if (op->kind == TD_KIND_ELEMENTWISE) return push_elementwise(rule);
  if ((op->flags & TD_LINEAR || op->kind == TD_KIND_VIEW) && knows_all(rule)) return push_linear(rule);
  if (op->flags & TD_MULTILINEAR && has_all(rule)) return push_multilinear(rule);
  return push_transposed(rule);
}

// ---- the sweep ----

typedef struct step { // a record that some tangent may reach
  td_record *record; // counted
  uint32_t slot, edge; // of its first output, of its first input
} step;

typedef struct sweep {
  td_context *context;
  step *steps;
  int64_t step_count;
  uint32_t *edges; // where each input's tangent stands, or TD_NO_SLOT
  td_tensor **tangents; // by slot; owned; NULL: zero
  uint32_t slot_count;
  uint32_t *slots; // while the plan is made: by index of a leaf, then of a record; TD_NO_SLOT: no tangent
} sweep;

static void sweep_close(sweep *w) {
  for (int64_t n = 0; n < w->step_count; n++) td_origin_unref(&w->steps[n].record->origin);
  for (uint32_t k = 0; k < w->slot_count && w->tangents; k++) td_tensor_unref(w->tangents[k]);
  td_memory_free(w->steps);
  td_memory_free(w->edges);
  td_memory_free(w->tangents);
  td_memory_free(w->slots);
}

static uint32_t slot_of(const sweep *w, const td_record *parent, int output, uint64_t stamp) {
  if (!parent || parent->stamp != stamp || w->slots[parent->index] == TD_NO_SLOT) return TD_NO_SLOT;
  return td_dtype_is_float(parent->out_meta[output].dtype) ? w->slots[parent->index] + (uint32_t)output : TD_NO_SLOT;
}

static void plan_record(sweep *w, td_record *record, int64_t index, uint64_t stamp, uint32_t *edge) {
  uint32_t first = *edge;
  bool reached = false;
  for (int i = 0; i < record->in_count; i++) {
    w->edges[first + (uint32_t)i] = slot_of(w, record->parents[i], record->parent_output[i], stamp);
    reached |= w->edges[first + (uint32_t)i] != TD_NO_SLOT;
  }
  if (!reached) return;
  td_origin_ref(&record->origin);
  w->steps[w->step_count++] = (step){record, w->slot_count, first};
  *edge += record->in_count;
  w->slots[index] = w->slot_count;
  w->slot_count += record->out_count;
}

static bool is_source(const td_record *leaf, const td_source *source) {
  return source->variable ? leaf->variable == source->variable->id : source->tensor->origin == &leaf->origin;
}

// A slot for each leaf that is a source, in the order of leaves; then for what they lead to.
static int plan(sweep *w, const td_tape *tape, const td_source *sources, int source_count) {
  td_context *context = w->context;
  uint64_t stamp = ++((td_tapes *)context->tapes)->stamp;
  int64_t leaves = tape->leaves.count, records = tape->records.count, edges = 0, outputs = leaves;
  for (int64_t n = 0; n < records; n++) {
    edges += tape->records.at[n]->in_count;
    outputs += tape->records.at[n]->out_count;
  }
  if (outputs >= TD_NO_SLOT || edges >= TD_NO_SLOT)
    return td_error_set(context, TD_ERROR_OVERFLOW, "jvp: %lld records are too many", (long long)records);
  w->slots = td_memory_new((size_t)(leaves + records) * sizeof *w->slots);
  w->steps = td_memory_new((size_t)records * sizeof *w->steps);
  w->edges = td_memory_new((size_t)edges * sizeof *w->edges);
  w->tangents = td_memory_new_zero((size_t)outputs * sizeof *w->tangents);
  if (!w->slots || !w->steps || !w->edges || !w->tangents)
    return td_error_memory(context, "jvp", outputs * (int64_t)sizeof *w->tangents);
  memset(w->slots, 0xff, (size_t)(leaves + records) * sizeof *w->slots);
  for (int64_t n = 0; n < leaves + records; n++) {
    td_record *record = n < leaves ? tape->leaves.at[n] : tape->records.at[n - leaves];
    record->stamp = stamp;
    record->index = n;
  }
  for (int64_t n = 0; n < leaves; n++)
    for (int i = 0; i < source_count && w->slots[n] == TD_NO_SLOT; i++)
      if (is_source(tape->leaves.at[n], &sources[i])) w->slots[n] = w->slot_count++;
  uint32_t edge = 0;
  for (int64_t n = 0; n < records; n++) plan_record(w, tape->records.at[n], leaves + n, stamp, &edge);
  return TD_OK;
}

static bool fill(const sweep *w, td_rule *rule, const step *at) {
  td_record *record = at->record;
  bool moves = false;
  rule->op = record->op;
  rule->args = record->args;
  rule->in_count = record->in_count;
  rule->out_count = record->out_count;
  for (int i = 0; i < record->in_count; i++) {
    const td_record *parent = record->parents[i];
    uint32_t slot = w->edges[at->edge + (uint32_t)i];
    rule->in[i] = td_record_saved(record, i);
    rule->in_meta[i].rank = UINT8_MAX;
    if (parent) rule->in_meta[i] = parent->out_meta[record->parent_output[i]];
    else if (rule->in[i]) rule->in_meta[i] = td_tensor_meta(rule->in[i]);
    rule->tangent[i] = slot == TD_NO_SLOT ? NULL : w->tangents[slot];
    moves |= rule->tangent[i] != NULL;
  }
  for (int k = 0; k < record->out_count; k++) {
    rule->out[k] = td_rule_output(rule, record, k);
    rule->out_meta[k] = record->out_meta[k];
    rule->dout[k] = NULL;
  }
  return moves;
}

static bool has_floating_output(const td_record *record) {
  for (int k = 0; k < record->out_count; k++)
    if (td_dtype_is_float(record->out_meta[k].dtype)) return true;
  return false;
}

static int run_step(sweep *w, td_rule *rule, const step *at) {
  td_context *context = w->context;
  td_tapes *tapes = context->tapes;
  const td_record *outer = tapes->running;
  bool pushing = tapes->pushing;
  if (!has_floating_output(at->record)) return TD_OK;
  context->error.code = TD_OK;
  tapes->running = at->record;
  tapes->pushing = true;
  td_scope_open(&rule->scope, context);
  bool moves = fill(w, rule, at);
  int refused = moves ? td_record_refuse(context, "jvp", at->record) : TD_OK;
  int code = refused ? refused : rule->scope.failed ? context->error.code : TD_OK;
  if (moves && !code) code = push(rule);
  for (int k = 0; k < rule->out_count && moves && !code && !rule->scope.failed; k++)
    if (rule->dout[k])
      w->tangents[at->slot + (uint32_t)k] = td_tensor_ref(fitted(&rule->scope, rule->dout[k], &rule->out_meta[k]));
  if (!code && rule->scope.failed) code = context->error.code;
  td_scope_close(&rule->scope);
  tapes->running = outer;
  tapes->pushing = pushing;
  return code && !refused ? td_record_blame(context, "jvp", at->record) : code;
}

static int run_steps(sweep *w) {
  td_context *context = w->context;
  td_place place = context->place;
  td_rule rule;
  td_region *region = NULL;
  int code = TD_OK;
  for (int64_t n = 0; n < w->step_count && !code; n++) {
    context->place = w->steps[n].record->place;
    if (atomic_load_explicit(&context->interrupt, memory_order_relaxed))
      code = td_error_set(context, TD_ERROR_INTERRUPT, "interrupted in the forward derivative");
    else code = td_region_move(context, w->steps[n].record->region, &region);
    if (!code) code = run_step(w, &rule, &w->steps[n]);
  }
  td_region_move(context, NULL, &region);
  context->place = place;
  return code;
}

static int check_tangent(td_context *context, const td_source *source, const td_tensor *tangent) {
  const td_tensor *t = source->variable ? source->variable->value : source->tensor;
  if (t->dtype == tangent->dtype && td_shape_equal(t->rank, t->shape, tangent->rank, tangent->shape)) return TD_OK;
  td_meta want = td_tensor_meta(t), have = td_tensor_meta(tangent);
  td_error_set(context, TD_ERROR_SHAPE, "jvp: a tangent must have the shape and dtype of its primal");
  td_error_operand(context, "primal", 2, &want);
  td_error_operand(context, "tangent", 3, &have);
  return TD_ERROR_SHAPE;
}

static int seed(sweep *w, const td_tape *tape, const td_source *sources, td_tensor *const *tangents, int source_count) {
  for (int i = 0; i < source_count; i++) {
    int code = tangents[i] ? check_tangent(w->context, &sources[i], tangents[i]) : TD_OK;
    if (code) return code;
  }
  for (int64_t n = 0; n < tape->leaves.count; n++)
    for (int i = 0; i < source_count && w->slots[n] != TD_NO_SLOT; i++)
      if (is_source(tape->leaves.at[n], &sources[i]) && !w->tangents[w->slots[n]])
        w->tangents[w->slots[n]] = td_tensor_ref(tangents[i]);
  return TD_OK;
}

int td_tape_jvp(td_context *context, td_tape *tape, const td_source *sources, td_tensor *const *tangents,
                int source_count, td_tensor *const *targets, int target_count, td_tensor **out) {
  memset(out, 0, (size_t)target_count * sizeof *out);
  if (!td_tapes_of(context)) return context->error.code;
  sweep w = {.context = context};
  int code = plan(&w, tape, sources, source_count);
  if (!code) code = seed(&w, tape, sources, tangents, source_count);
  uint32_t slots[TD_OUTPUT_MAX];
  uint32_t *at = target_count <= TD_OUTPUT_MAX ? slots : td_memory_new((size_t)target_count * sizeof *at);
  if (!at && !code) code = td_error_memory(context, "jvp", target_count * (int64_t)sizeof *at);
  uint64_t stamp = ((td_tapes *)context->tapes)->stamp;
  for (int i = 0; i < target_count && !code; i++)
    at[i] = slot_of(&w, (const td_record *)targets[i]->origin, targets[i]->output, stamp);
  if (!code) code = run_steps(&w);
  for (int i = 0; i < target_count && !code; i++) {
    if (at[i] == TD_NO_SLOT || !w.tangents[at[i]]) continue;
    out[i] = td_result_own(context, td_tensor_ref(w.tangents[at[i]]));
    if (!out[i]) code = context->error.code;
  }
  for (int i = 0; i < target_count && code; i++) {
    td_tensor_unref(out[i]);
    out[i] = NULL;
  }
  if (at != slots) td_memory_free(at);
  sweep_close(&w);
  return code;
}
