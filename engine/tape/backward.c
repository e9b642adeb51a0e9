// backward(): PyTorch's habit. It runs all records that a target depends on, of tapes and of the no-tape mode, and
// adds what reaches a leaf to the grad of its Variable or tensor. Records run in the order of gradient(), so the bits
// are the same. A leaf knows its Variable by id: a Variable that is gone gets nothing.
#include <stdio.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/state.h"

// ---- what requires grad ----

int td_tensor_require_grad(td_context *context, td_tensor *t, bool on) {
  td_record *record = (td_record *)t->origin;
  if (record && record->op) {
    if (on && record->origin.tapes & TD_LOOSE_BIT) return TD_OK;
    td_error_set(context, TD_ERROR_STATE, "requires_grad: this tensor was computed by %s; only leaves can be switched",
                 td_record_name_of(record).text);
    td_error_hint(context, "use x = x.detach() first");
    return TD_ERROR_STATE;
  }
  if (!on) {
    if (record) record->origin.tapes &= ~TD_LOOSE_BIT;
    return TD_OK;
  }
  if (!td_dtype_is_float(t->dtype)) return td_leaf_refuse(context, "requires_grad", t);
  int code = td_tapes_loosen(context);
  if (!code) code = td_leaf_root(context, t);
  if (!code) t->origin->tapes |= TD_LOOSE_BIT;
  return code;
}

bool td_tensor_requires_grad(const td_tensor *t) { return t->origin && t->origin->tapes & TD_LOOSE_BIT; }

bool td_tensor_is_leaf(const td_tensor *t) { return !t->origin || !((const td_record *)t->origin)->op; }

td_tensor *td_tensor_grad(const td_tensor *t) {
  const td_record *record = (const td_record *)t->origin;
  return record && !record->op ? ((const td_leaf *)record)->grad : NULL;
}

int td_tensor_set_grad(td_context *context, td_tensor *t, td_tensor *grad) {
  td_record *record = (td_record *)t->origin;
  if (record && record->op)
    return td_error_set(context, TD_ERROR_STATE, "grad: only leaves have one, and this tensor was computed by %s",
                        td_record_name_of(record).text);
  if (!record && !grad) return TD_OK;
  int code = td_leaf_root(context, t);
  return code ? code : td_leaf_set_grad(context, (td_leaf *)t->origin, td_tensor_ref(grad));
}

// ---- refusals ----

static int refuse(td_context *context, const char *what) {
  td_error_set(context, TD_ERROR_STATE, "backward: %s", what);
  td_error_hint(context, "compute it inside `with GradientTape():`, or before it make opt = Adam(m.parameters()), or "
                         "set x.requires_grad = True");
  return TD_ERROR_STATE;
}

static int refuse_second(td_context *context, const td_record *record) {
  char line[80];
  td_place_describe(context, record->place, line, sizeof line);
  td_error_set(context, TD_ERROR_STATE, "backward: an earlier backward() gave up what %s at %s had kept",
               td_record_name_of(record).text, line);
  td_error_hint(context, "use backward(retain_graph=True) the first time");
  return TD_ERROR_STATE;
}

// ---- the records that a target depends on ----

static int add_record(td_context *context, td_list *list, td_record *record) {
  int code = td_list_reserve(context, list);
  if (code) return code;
  td_origin_ref(&record->origin);
  td_list_add(list, record);
  return TD_OK;
}

static void free_list(td_list *list) {
  for (int64_t i = list->count; i-- > 0;) td_origin_unref(&list->at[i]->origin);
  td_memory_free(list->at);
}

// A record that an earlier backward() gave up has lost its parents: what lies behind it can't be known any more.
static int collect(td_context *context, td_tensor *const *targets, int count, td_list *leaves, td_list *records) {
  uint64_t stamp = ++((td_tapes *)context->tapes)->stamp;
  int code = TD_OK;
  for (int i = 0; i < count && !code; i++) {
    td_record *first = (td_record *)targets[i]->origin;
    if (!first || first->stamp == stamp) continue;
    first->stamp = stamp;
    code = add_record(context, first->op ? records : leaves, first);
  }
  for (int64_t n = 0; n < records->count && !code; n++) {
    const td_record *record = records->at[n];
    if (record->spent) return refuse_second(context, record);
    for (int i = 0; i < record->in_count && !code; i++) {
      td_record *parent = record->parents[i];
      if (!parent || parent->stamp == stamp) continue;
      parent->stamp = stamp;
      code = add_record(context, parent->op ? records : leaves, parent);
    }
  }
  return code;
}

static void merge(td_record **to, td_record **from, int64_t low, int64_t middle, int64_t high) {
  for (int64_t a = low, b = middle, k = low; k < high; k++)
    to[k] = a < middle && (b >= high || from[a]->serial <= from[b]->serial) ? from[a++] : from[b++];
}

static int sort(td_context *context, td_list *list) { // by serial; bottom-up, since chains are long
  int64_t count = list->count;
  td_record **spare = td_memory_new((size_t)count * sizeof *spare), **from = list->at, **to = spare;
  if (!spare) return td_error_memory(context, "backward", count * (int64_t)sizeof *spare);
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t low = 0; low < count; low += 2 * width) {
      int64_t middle = low + width < count ? low + width : count,
              high = middle + width < count ? middle + width : count;
      merge(to, from, low, middle, high);
    }
    td_record **swap = from;
    from = to;
    to = swap;
  }
  list->at = from;
  list->capacity = count;
  td_memory_free(to);
  return TD_OK;
}

// What all targets depend on, in order. The lists hold references; td_records_free gives them up.
int td_records_collect(td_context *context, td_tensor *const *targets, int count, td_list *leaves, td_list *records) {
  int code = collect(context, targets, count, leaves, records);
  if (!code) code = sort(context, leaves);
  return code ? code : sort(context, records);
}

void td_records_free(td_list *leaves, td_list *records) {
  free_list(leaves);
  free_list(records);
}

// ---- adding to grads ----

// The Variable's name, or what stands for it in a message.
static const char *name_of(const td_variable *v) { return v->name[0] ? v->name : "a Variable"; }

static void warn_stale(td_context *context, const td_list *leaves, const uint32_t *slots, const td_pass *pass) {
  const td_variable *first = NULL;
  int others = 0;
  if (((const td_tapes *)context->tapes)->gathering) return;
  for (int64_t i = 0; i < leaves->count; i++) {
    if (slots[i] == TD_NO_SLOT || !pass->cotangents[slots[i]]) continue;
    td_variable *v = leaves->at[i]->variable ? td_variable_find(leaves->at[i]->variable) : NULL;
    if (!v || !v->grad || v->grad_warned) continue;
    v->grad_warned = true;
    if (first) others++;
    else first = v;
  }
  if (!first) return;
  char more[40] = "";
  if (others) snprintf(more, sizeof more, " and %d other%s", others, others > 1 ? "s" : "");
  td_tape_warn(context,
               "backward: the grad of %s%s still holds an earlier backward's; the new one is added to it. "
               "Clear it first with zero_grad()",
               name_of(first), more);
}

void td_gathering_set(td_context *context, bool on) {
  td_tapes *tapes = td_tapes_of(context);
  if (tapes) tapes->gathering += on ? 1 : -1;
}

static td_tensor *sum_of(td_pass *pass, td_tensor *grad, td_tensor *cotangent) { // new reference
  if (!grad) return td_result_own(pass->context, td_tensor_ref(cotangent));
  return td_tensor_ref(td_add(&pass->scope, grad, cotangent));
}

static int add_to_leaf(td_pass *pass, td_record *record, td_tensor *cotangent) {
  td_leaf *leaf = (td_leaf *)record;
  td_variable *v = record->variable ? td_variable_find(record->variable) : NULL;
  if (record->variable && !v) return TD_OK;
  td_tensor *grad = sum_of(pass, v ? v->grad : leaf->grad, cotangent);
  if (!grad) return pass->context->error.code;
  if (!v) return td_leaf_set_grad(pass->context, leaf, grad);
  td_tensor_unref(v->grad);
  v->grad = grad;
  return TD_OK;
}

// ---- backward() ----

static bool wants(const td_record *leaf) {
  return leaf->variable ? td_variable_find(leaf->variable) != NULL : (leaf->origin.tapes & TD_LOOSE_BIT) != 0;
}

static int plan(td_pass *pass, const td_list *leaves, td_tensor *target) {
  bool any = false;
  int64_t index = 0;
  for (int64_t i = 0; i < leaves->count; i++) {
    if (!wants(leaves->at[i])) continue;
    td_pass_want(pass, i);
    any = true;
  }
  if (!any) return refuse(pass->context, "no Variable or tensor that requires grad leads to this tensor");
  td_pass_mark(pass);
  td_pass_find(pass, target, &index);
  td_pass_target(pass, index);
  return td_pass_plan(pass);
}

static int run(td_pass *pass, const td_list *leaves, uint32_t *slots, td_tensor *target, td_tensor *cotangent) {
  td_context *context = pass->context;
  int64_t index = 0;
  td_pass_find(pass, target, &index);
  for (int64_t i = 0; i < leaves->count; i++) slots[i] = td_pass_slot(pass, i, 0);
  td_tensor *seed = td_seed_make(context, &pass->scope, "backward", 0, 1, target, cotangent);
  if (!seed) return context->error.code;
  uint32_t slot = td_pass_slot(pass, index, target->output);
  int code = slot == TD_NO_SLOT ? TD_OK : td_pass_seed(pass, slot, seed);
  if (!code) code = td_pass_run(pass);
  if (!code) warn_stale(context, leaves, slots, pass);
  for (int64_t i = 0; i < leaves->count && !code; i++)
    if (slots[i] != TD_NO_SLOT && pass->cotangents[slots[i]])
      code = add_to_leaf(pass, leaves->at[i], pass->cotangents[slots[i]]);
  return code;
}

static int pass_over(td_context *context, const td_list *leaves, const td_list *records, td_tensor *target,
                     td_tensor *cotangent, bool retain_graph) {
  td_pass pass;
  int code = td_pass_open(&pass, context, leaves, records);
  uint32_t *slots = NULL;
  if (!code) code = plan(&pass, leaves, target);
  if (!code && !(slots = td_memory_new((size_t)leaves->count * sizeof *slots)))
    code = td_error_memory(context, "backward", leaves->count * (int64_t)sizeof *slots);
  if (!code) {
    pass.done = retain_graph ? NULL : td_record_spend;
    code = run(&pass, leaves, slots, target, cotangent);
  }
  td_memory_free(slots);
  td_pass_close(&pass);
  return code;
}

int td_backward(td_context *context, td_tensor *target, td_tensor *cotangent, bool retain_graph, bool create_graph) {
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) return context->error.code;
  td_record *last = (td_record *)target->origin;
  if (!last) return refuse(context, "this tensor was not recorded");
  if (last->op && !last->holders && !last->spent) return refuse(context, "the tape that recorded this tensor is gone");
  td_seed_warn(context, "backward", &target, &cotangent, 1);
  td_list leaves = {0}, records = {0};
  uint64_t hidden = tapes->hidden;
  if (!create_graph) tapes->hidden = UINT64_MAX;
  td_tapes_update(context);
  int code = td_records_collect(context, &target, 1, &leaves, &records);
  if (!code) code = pass_over(context, &leaves, &records, target, cotangent, retain_graph || create_graph);
  td_records_free(&leaves, &records);
  tapes->hidden = hidden;
  td_tapes_update(context);
  return code;
}
