// gradient(): what users of TensorFlow ask of a tape. Sources are tensors or Variables; targets are summed. Seeds and
// results are made here for backward() too.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/state.h"

// ---- seeds ----

static int refuse_target(td_context *context, const char *who, int index, int count, const td_tensor *target) {
  const td_record *record = (const td_record *)target->origin;
  char name[32] = "the target", made[200] = "";
  if (count > 1) snprintf(name, sizeof name, "target %d", index);
  if (record && record->op) {
    char line[80];
    td_place_describe(context, record->place, line, sizeof line);
    snprintf(made, sizeof made, ", made by %s at %s", td_record_name_of(record).text, line);
  }
  td_error_set(context, TD_ERROR_GRADIENT, "%s: %s is %s%s; only floating dtypes have gradients", who, name,
               td_dtype_name(target->dtype), made);
  td_error_hint(context, "differentiate the floating value before it became %s", td_dtype_name(target->dtype));
  return TD_ERROR_GRADIENT;
}

static void refuse_cotangent(td_context *context, const char *who, const td_tensor *target, const td_tensor *given) {
  td_text want = {0}, have = {0};
  td_shape_print(&want, target->rank, target->shape);
  td_shape_print(&have, given->rank, given->shape);
  td_error_set(context, TD_ERROR_SHAPE, "%s: the target has shape %s and its output gradient %s", who,
               want.data ? want.data : "?", have.data ? have.data : "?");
  td_text_clear(&want);
  td_text_clear(&have);
}

td_tensor *td_seed_make(td_context *context, td_scope *scope, const char *who, int index, int count, td_tensor *target,
                        td_tensor *cotangent) {
  td_tensor *seed = cotangent;
  if (!td_dtype_is_float(target->dtype)) {
    refuse_target(context, who, index, count, target);
    return NULL;
  }
  if (!cotangent) {
    td_meta meta = td_tensor_meta(target);
    return td_scope_filled(scope, 1, &meta);
  }
  if (!td_shape_equal(target->rank, target->shape, cotangent->rank, cotangent->shape)) {
    refuse_cotangent(context, who, target, cotangent);
    return NULL;
  }
  return seed->dtype == target->dtype ? seed : td_cast(scope, seed, target->dtype);
}

static bool told(td_tapes *tapes, td_place place) { // remembers the place
  int known = tapes->warned_count < TD_PLACES_WARNED ? tapes->warned_count : TD_PLACES_WARNED;
  for (int i = 0; i < known; i++)
    if (tapes->warned[i] == place) return true;
  tapes->warned[tapes->warned_count++ % TD_PLACES_WARNED] = place;
  return false;
}

void td_tensor_warn_of_grad(td_context *context, const td_tensor *t) {
  const td_record *record = (const td_record *)t->origin;
  if (!record || !record->op || !td_tensor_requires_grad(t) || !context->warn) return;
  if (told(td_tapes_of(context), context->place)) return;
  char line[80];
  td_place_describe(context, record->place, line, sizeof line);
  td_tape_warn(context,
               "grad: only leaves have one, and this tensor was computed at %s; ask the leaf, or "
               "tape.gradient(loss, x)",
               line);
}

void td_seed_warn(td_context *context, const char *who, td_tensor *const *targets, td_tensor *const *cotangents,
                  int count) {
  int64_t outputs = 0;
  int summed = 0, last = 0;
  for (int i = 0; i < count; i++) {
    if (cotangents && cotangents[i]) continue;
    outputs += targets[i]->size;
    summed++;
    last = i;
  }
  if (outputs < 2 || !context->warn || told(td_tapes_of(context), context->place)) return;
  td_text shape = {0};
  if (summed == 1) {
    td_text_add(&shape, " of shape ");
    td_shape_print(&shape, targets[last]->rank, targets[last]->shape);
  }
  td_tape_warn(context, "%s: summed %lld outputs%s", who, (long long)outputs, shape.data ? shape.data : "");
  td_text_clear(&shape);
}

// ---- gradient() ----

typedef struct wish { // a source, and where its cotangent is found
  uint64_t variable; // 0: a tensor
  int64_t index; // of a tensor's record in the pass; -1: not on this tape
  uint32_t slot;
  int source;
} wish;

typedef struct inquiry { // one call of gradient()
  td_pass pass;
  const td_source *sources;
  int source_count;
  wish *wishes; // Variables first, by id; then tensors
  int variable_count;
  uint32_t *leaf_slots; // of leaves that are sources' Variables; others TD_NO_SLOT
  int *leaf_wishes; // first wish of that leaf's Variable
  int64_t leaf_count;
} inquiry;

static void sort_wishes(wish *wishes, int count) { // ids mostly come in order already
  for (int i = 1; i < count; i++) {
    wish moved = wishes[i];
    int k = i;
    for (; k > 0 && wishes[k - 1].variable > moved.variable; k--) wishes[k] = wishes[k - 1];
    wishes[k] = moved;
  }
}

static int find_wish(const inquiry *q, uint64_t variable) { // first of this id; -1: none
  int low = 0, high = q->variable_count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (q->wishes[middle].variable < variable) low = middle + 1;
    else high = middle;
  }
  return low < q->variable_count && q->wishes[low].variable == variable ? low : -1;
}

static int list_wishes(td_context *context, inquiry *q, int64_t leaf_count) {
  size_t wishes = (size_t)q->source_count * sizeof *q->wishes, leaves = (size_t)leaf_count;
  q->wishes = td_memory_new(wishes + leaves * (sizeof *q->leaf_slots + sizeof *q->leaf_wishes));
  if (!q->wishes) return td_error_memory(context, "gradient", (int64_t)wishes);
  q->leaf_slots = (uint32_t *)((char *)q->wishes + wishes);
  q->leaf_wishes = (int *)(q->leaf_slots + leaves);
  q->leaf_count = leaf_count;
  int tensors = q->source_count;
  for (int i = q->source_count; i-- > 0;)
    if (!q->sources[i].variable) q->wishes[--tensors] = (wish){0, -1, TD_NO_SLOT, i};
  for (int i = 0; i < q->source_count; i++)
    if (q->sources[i].variable) q->wishes[q->variable_count++] = (wish){q->sources[i].variable->id, -1, TD_NO_SLOT, i};
  sort_wishes(q->wishes, q->variable_count);
  return TD_OK;
}

static void want_sources(inquiry *q) {
  for (int64_t i = 0; i < q->leaf_count; i++) {
    uint64_t variable = q->pass.leaves[i]->variable;
    q->leaf_wishes[i] = variable ? find_wish(q, variable) : -1;
    if (q->leaf_wishes[i] >= 0) td_pass_want(&q->pass, i);
  }
  for (int i = q->variable_count; i < q->source_count; i++) {
    wish *w = &q->wishes[i];
    const td_tensor *t = q->sources[w->source].tensor;
    if (td_dtype_is_float(t->dtype) && td_pass_find(&q->pass, t, &w->index)) td_pass_want(&q->pass, w->index);
  }
}

static void find_slots(inquiry *q) {
  for (int64_t i = 0; i < q->leaf_count; i++)
    q->leaf_slots[i] = q->leaf_wishes[i] < 0 ? TD_NO_SLOT : td_pass_slot(&q->pass, i, 0);
  for (int i = q->variable_count; i < q->source_count; i++) {
    wish *w = &q->wishes[i];
    if (w->index >= 0) w->slot = td_pass_slot(&q->pass, w->index, q->sources[w->source].tensor->output);
  }
}

static int plan(inquiry *q, td_tensor *const *targets, int target_count) {
  int64_t index;
  want_sources(q);
  td_pass_mark(&q->pass);
  for (int i = 0; i < target_count; i++)
    if (td_pass_find(&q->pass, targets[i], &index)) td_pass_target(&q->pass, index);
  return td_pass_plan(&q->pass);
}

static int seed(inquiry *q, td_tensor *const *targets, int target_count, td_tensor *const *output_gradients) {
  int code = TD_OK;
  for (int i = 0; i < target_count && !code; i++) {
    td_tensor *given = output_gradients ? output_gradients[i] : NULL;
    td_tensor *seed = td_seed_make(q->pass.context, &q->pass.scope, "gradient", i, target_count, targets[i], given);
    int64_t index;
    if (!seed) return q->pass.context->error.code;
    if (!td_pass_find(&q->pass, targets[i], &index)) continue;
    uint32_t slot = td_pass_slot(&q->pass, index, targets[i]->output);
    if (slot != TD_NO_SLOT) code = td_pass_seed(&q->pass, slot, seed);
  }
  return code;
}

// The cotangents of all leaves of a Variable are summed: it may have been assigned between two reads.
static int collect_variables(inquiry *q, td_tensor **out) {
  for (int64_t i = 0; i < q->leaf_count; i++) {
    td_tensor *cotangent = q->leaf_slots[i] == TD_NO_SLOT ? NULL : q->pass.cotangents[q->leaf_slots[i]];
    if (!cotangent) continue;
    const wish *first = &q->wishes[q->leaf_wishes[i]];
    td_tensor *old = out[first->source];
    td_tensor *sum = old ? td_add(&q->pass.scope, old, cotangent) : cotangent;
    if (!sum) return q->pass.context->error.code;
    td_tensor_unref(old);
    out[first->source] = td_tensor_ref(sum);
  }
  for (int i = 1; i < q->variable_count; i++)
    if (q->wishes[i].variable == q->wishes[i - 1].variable)
      out[q->wishes[i].source] = td_tensor_ref(out[q->wishes[i - 1].source]);
  return TD_OK;
}

static void collect_tensors(inquiry *q, td_tensor **out) {
  for (int i = q->variable_count; i < q->source_count; i++) {
    const wish *w = &q->wishes[i];
    if (w->slot != TD_NO_SLOT) out[w->source] = td_tensor_ref(q->pass.cotangents[w->slot]);
  }
}

// What a user gets is a tensor of its own: not one that another source got too, and not the stretched view of one
// number.
td_tensor *td_result_own(td_context *context, td_tensor *t) {
  bool shared = atomic_load_explicit(&t->refs, memory_order_relaxed) > 1;
  td_tensor *own = t->origin || td_tensor_is_contiguous(t) ? (shared ? td_tensor_alias(context, t) : td_tensor_ref(t))
                                                           : td_tensor_contiguous(context, t);
  if (own && own != t && t->origin) {
    own->origin = td_origin_ref(t->origin);
    own->output = t->output;
  }
  td_tensor_unref(t);
  return own;
}

static int finish(td_context *context, const td_source *sources, int source_count, bool unconnected_zero,
                  td_tensor **out) {
  for (int i = 0; i < source_count; i++) {
    const td_tensor *t = sources[i].variable ? sources[i].variable->value : sources[i].tensor;
    if (!out[i] && !td_dtype_is_float(t->dtype))
      td_tape_warn(context, "gradient: source %d is %s and has no gradient; use x.astype(float32)", i,
                   td_dtype_name(t->dtype));
    if (out[i]) out[i] = td_result_own(context, out[i]);
    else if (unconnected_zero) out[i] = td_tensor_zeros(context, t->dtype, t->rank, t->shape);
    else continue;
    if (!out[i]) return context->error.code;
    out[i]->place = context->place;
  }
  return TD_OK;
}

// For td_tape_why: which records the targets came from. Serials outlive the records.
static int remember(td_context *context, td_tape *tape, td_tensor *const *targets, int count) {
  td_target *grown = td_memory_resize(tape->targets, (size_t)count * sizeof *grown);
  if (!grown) return td_error_memory(context, "gradient", count * (int64_t)sizeof *grown);
  tape->targets = grown;
  tape->target_count = count;
  tape->asked = true;
  for (int i = 0; i < count; i++) {
    const td_record *record = (const td_record *)targets[i]->origin;
    grown[i] = (td_target){record ? record->serial : 0, targets[i]->place};
  }
  return TD_OK;
}

static int run_inquiry(inquiry *q, td_tape *tape, td_tensor *const *targets, int target_count,
                       td_tensor *const *output_gradients, td_tensor **out) {
  td_context *context = q->pass.context;
  td_tapes *tapes = context->tapes;
  int code = plan(q, targets, target_count);
  if (!code) find_slots(q);
  if (!code) code = seed(q, targets, target_count, output_gradients);
  if (code) return code;
  uint64_t hidden = tapes->hidden;
  tapes->hidden |= TD_LOOSE_BIT;
  td_tapes_update(context);
  tape = td_tape_ref(tape);
  code = td_pass_run(&q->pass);
  if (!code) code = collect_variables(q, out);
  if (!code) collect_tensors(q, out);
  tapes->hidden = hidden;
  td_tapes_update(context);
  td_tape_unref(context, tape);
  return code;
}

static int refuse_second(td_context *context) {
  td_error_set(context, TD_ERROR_STATE, "gradient: this tape gave its records up at the first gradient()");
  td_error_hint(context, "use GradientTape(persistent=True) to differentiate more than once");
  return TD_ERROR_STATE;
}

int td_tape_gradient(td_context *context, td_tape *tape, td_tensor *const *targets, int target_count,
                     td_tensor *const *output_gradients, const td_source *sources, int source_count,
                     bool unconnected_zero, td_tensor **out) {
  memset(out, 0, (size_t)source_count * sizeof *out);
  if (tape->spent) return refuse_second(context);
  if (!td_tapes_of(context)) return context->error.code;
  for (int i = 0; i < target_count; i++)
    if (!td_dtype_is_float(targets[i]->dtype)) return refuse_target(context, "gradient", i, target_count, targets[i]);
  if (!tape->persistent) td_tape_close(context, tape);
  inquiry q = {.sources = sources, .source_count = source_count};
  int code = remember(context, tape, targets, target_count);
  if (!code) code = td_pass_open(&q.pass, context, &tape->leaves, &tape->records);
  if (!code) code = list_wishes(context, &q, tape->leaves.count);
  if (!code) td_seed_warn(context, "gradient", targets, output_gradients, target_count);
  if (!code) {
    tape->spent = !tape->persistent;
    q.pass.done = tape->spent ? td_record_give_up : NULL;
    code = run_inquiry(&q, tape, targets, target_count, output_gradients, out);
  }
  td_pass_close(&q.pass);
  td_memory_free(q.wishes);
  if (!code) code = finish(context, sources, source_count, unconnected_zero, out);
  for (int i = 0; code && i < source_count; i++) {
    td_tensor_unref(out[i]);
    out[i] = NULL;
  }
  return code;
}

// ---- of records, whosever they are ----

static int refuse_unrecorded(td_context *context) {
  td_error_set(context, TD_ERROR_STATE, "grad: an output was not recorded");
  td_error_hint(context, "compute it inside `with GradientTape():`, or set requires_grad = True before");
  return TD_ERROR_STATE;
}

static int inquire(inquiry *q, const td_list *leaves, const td_list *records, bool spend, td_context *context,
                   td_tensor *const *targets, int target_count, td_tensor *const *output_gradients, td_tensor **out) {
  int code = td_pass_open(&q->pass, context, leaves, records);
  q->pass.done = spend ? td_record_spend : NULL;
  if (!code) code = list_wishes(context, q, leaves->count);
  if (!code) code = plan(q, targets, target_count);
  if (!code) find_slots(q);
  if (!code) code = seed(q, targets, target_count, output_gradients);
  if (!code) code = td_pass_run(&q->pass);
  if (!code) code = collect_variables(q, out);
  if (!code) collect_tensors(q, out);
  td_pass_close(&q->pass);
  td_memory_free(q->wishes);
  return code;
}

int td_recorded_gradient(td_context *context, td_tensor *const *targets, int target_count,
                         td_tensor *const *output_gradients, const td_source *sources, int source_count,
                         bool retain_graph, bool create_graph, td_tensor **out) {
  memset(out, 0, (size_t)source_count * sizeof *out);
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) return context->error.code;
  for (int i = 0; i < target_count; i++) {
    if (!td_dtype_is_float(targets[i]->dtype)) return refuse_target(context, "grad", i, target_count, targets[i]);
    if (!targets[i]->origin) return refuse_unrecorded(context);
  }
  td_seed_warn(context, "grad", targets, output_gradients, target_count);
  td_list leaves = {0}, records = {0};
  inquiry q = {.sources = sources, .source_count = source_count};
  uint64_t hidden = tapes->hidden;
  if (!create_graph) tapes->hidden = UINT64_MAX;
  td_tapes_update(context);
  int code = td_records_collect(context, targets, target_count, &leaves, &records);
  bool spend = !retain_graph && !create_graph;
  if (!code) code = inquire(&q, &leaves, &records, spend, context, targets, target_count, output_gradients, out);
  td_records_free(&leaves, &records);
  tapes->hidden = hidden;
  td_tapes_update(context);
  if (!code) code = finish(context, sources, source_count, false, out);
  for (int i = 0; code && i < source_count; i++) {
    td_tensor_unref(out[i]);
    out[i] = NULL;
  }
  return code;
}
