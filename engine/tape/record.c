// Records and how long they live. A record is counted: by the tensors that it made, by the records that use them, and
// by the tapes that list it. Two more counts say what it must keep:
//  1. keepers: tapes that may still differentiate it. At 0 its saved tensors go; the skeleton answers questions.
//  2. holders: tapes that still list it. At 0 its parents go too, so a loss kept in a list keeps no history alive.
// Dropping the last reference of a chain of any length takes constant stack: release puts records on a worklist.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/batch.h"
#include "engine/tape/state.h"

enum { CARRIED_TOLD = 3 };

// ---- dropping ----

static _Thread_local td_record *released; // worklist of this thread
static _Thread_local bool releasing;

void td_record_drop_saved(td_record *record) {
  int count = record->saved ? record->in_count + record->out_count : 0;
  for (int i = 0; i < count; i++) {
    td_tensor *saved = record->saved[i];
    record->saved[i] = NULL;
    td_tensor_unref(saved);
  }
}

static void drop_parents(td_record *record) {
  for (int i = 0; i < record->in_count; i++) {
    td_record *parent = record->parents[i];
    record->parents[i] = NULL;
    if (parent) td_origin_unref(&parent->origin);
  }
}

static void forget_grad(td_leaf *leaf) {
  if (leaf->link) {
    *leaf->link = leaf->next;
    if (leaf->next) leaf->next->link = leaf->link;
    leaf->link = NULL;
  }
  td_tensor *grad = leaf->grad;
  leaf->grad = NULL;
  td_tensor_unref(grad);
}

static void record_release(td_origin *origin) {
  td_record *record = (td_record *)origin;
  record->next = released;
  released = record;
  if (releasing) return;
  releasing = true;
  while ((record = released)) {
    released = record->next;
    td_record_drop_saved(record);
    drop_parents(record);
    if (record->region) td_region_forget(record);
    if (!record->op) forget_grad((td_leaf *)record);
    td_memory_free(record);
  }
  releasing = false;
}

void td_record_give_up(td_record *record) {
  if (record->op && --record->keepers == 0) td_record_drop_saved(record);
}

void td_record_let_go(td_record *record, bool keeps) {
  if (record->op && record->origin.refs > 1) { // else release drops it all
    if (keeps) td_record_give_up(record);
    if (--record->holders == 0) drop_parents(record);
  }
  td_origin_unref(&record->origin);
}

void td_record_spend(td_record *record) {
  record->spent = true;
  if (!record->loose) return;
  record->loose = false;
  td_record_give_up(record);
  if (--record->holders == 0) drop_parents(record);
}

const td_op *td_derived_op(const td_tapes *tapes) {
  const td_record *running = tapes->running;
  return !running ? NULL : running->of ? running->of : running->op;
}

td_record_name td_record_name_of(const td_record *record) {
  td_record_name name;
  bool derived = td_record_is_derived(record);
  snprintf(name.text, sizeof name.text, "%s%s", derived ? "derivative of " : "",
           (derived ? record->of : record->op)->name);
  return name;
}

int64_t td_record_bytes(const td_record *record) {
  int64_t bytes = 0;
  int count = record->saved ? record->in_count + record->out_count : 0;
  for (int i = 0; i < count; i++) {
    if (!record->saved[i]) continue;
    bool counted = false;
    for (int j = 0; j < i && !counted; j++)
      counted = record->saved[j] && record->saved[j]->storage == record->saved[i]->storage;
    if (!counted) bytes += record->saved[i]->storage->bytes;
  }
  return bytes;
}

// ---- lists ----

int td_list_reserve(td_context *context, td_list *list) {
  if (list->count < list->capacity) return TD_OK;
  int64_t capacity = list->capacity ? list->capacity * 2 : 32;
  td_record **grown = td_memory_resize(list->at, (size_t)capacity * sizeof *grown);
  if (!grown) return td_error_memory(context, "tape", capacity * (int64_t)sizeof *grown);
  list->at = grown;
  list->capacity = capacity;
  return TD_OK;
}

void td_list_add(td_list *list, td_record *record) { list->at[list->count++] = record; }

// ---- leaves ----

static void copy_meta(td_meta *meta, const td_tensor *t) {
  meta->dtype = t->dtype;
  meta->rank = t->rank;
  td_axes_copy(meta->shape, t->shape, t->rank);
}

td_leaf *td_leaf_new(td_context *context, const td_tensor *t, uint64_t variable) {
  td_tapes *tapes = td_tapes_of(context);
  td_leaf *leaf = tapes ? td_memory_new_zero(sizeof *leaf) : NULL;
  if (!leaf) {
    td_error_memory(context, "tape", (int64_t)sizeof *leaf);
    return NULL;
  }
  td_record *record = &leaf->record;
  record->origin.refs = 1;
  record->origin.release = record_release;
  record->serial = ++tapes->serial;
  record->place = t->place;
  record->variable = variable;
  record->cotangent_norm = -1;
  record->out_count = 1;
  record->out_meta = &leaf->meta;
  copy_meta(&leaf->meta, t);
  return leaf;
}

int td_leaf_set_grad(td_context *context, td_leaf *leaf, td_tensor *grad) {
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) {
    td_tensor_unref(grad);
    return context->error.code;
  }
  td_origin_ref(&leaf->record.origin); // the old grad's graph may be the last to hold the leaf
  forget_grad(leaf);
  leaf->grad = grad;
  if (grad && grad->origin) {
    leaf->next = tapes->graded;
    leaf->link = &tapes->graded;
    if (leaf->next) leaf->next->link = &leaf->next;
    tapes->graded = leaf;
  }
  td_origin_unref(&leaf->record.origin);
  return TD_OK;
}

// ---- recording an op ----

static bool saves_input(unsigned saves, int index) {
  return (saves & TD_SAVES_INPUTS) == TD_SAVES_INPUTS || (index < 8 && (saves >> index & 1));
}

static unsigned saves_of(const td_op *op) { return op->vjp ? op->saves : TD_SAVES_NONE; }

// One block: the record, then its arrays, the bytes last. Parents, arguments and shapes are the caller's to fill in.
static td_record *record_new(const td_op *op, int in_count, int out_count, int arg_count, uint64_t tapes) {
  size_t parents = sizeof(td_record), saved = parents + (size_t)in_count * sizeof(td_record *);
  size_t saved_bytes = saves_of(op) ? (size_t)(in_count + out_count) * sizeof(td_tensor *) : 0;
  size_t meta = saved + saved_bytes, args = meta + (size_t)out_count * sizeof(td_meta);
  size_t outputs = args + (size_t)arg_count * sizeof(td_arg);
  char *block = td_memory_new(outputs + (size_t)in_count);
  if (!block) return NULL;
  td_record *record = (td_record *)block;
  record->origin.refs = (unsigned)out_count; // field by field: clearing it all at once takes longer
  record->origin.tapes = tapes;
  record->origin.release = record_release;
  record->op = op;
  record->variable = record->stamp = 0;
  record->in_count = (uint16_t)in_count;
  record->out_count = (uint16_t)out_count;
  record->parents = (td_record **)(block + parents);
  record->saved = saved_bytes ? memset(block + saved, 0, saved_bytes) : NULL;
  record->out_meta = (td_meta *)(block + meta);
  record->args = arg_count ? (td_arg *)(block + args) : NULL;
  record->parent_output = (uint8_t *)(block + outputs);
  record->keepers = record->holders = record->carried = 0;
  record->loose = record->spent = record->glanced = false;
  record->region = NULL;
  return record;
}

// The outputs saved are views without origin: with it, the record would hold itself.
bool td_record_save(td_context *context, td_record *record, td_tensor *const *in, td_tensor *const *out) {
  unsigned saves = saves_of(record->op);
  if (!saves) return true;
  for (int i = 0; i < record->in_count; i++)
    if (saves_input(saves, i)) record->saved[i] = td_tensor_ref(in[i]);
  if (!(saves & TD_SAVES_OUTPUT)) return true;
  for (int i = 0; i < record->out_count; i++)
    if (!(record->saved[record->in_count + i] = td_tensor_alias(context, out[i]))) return false;
  return true;
}

static void adopt_parents(td_record *record, td_tensor *const *in, uint64_t mask) {
  for (int i = 0; i < record->in_count; i++) {
    td_origin *origin = in[i] ? in[i]->origin : NULL;
    bool tracked = origin && origin->tapes & mask;
    record->parents[i] = tracked ? (td_record *)td_origin_ref(origin) : NULL;
    record->parent_output[i] = tracked ? in[i]->output : 0;
  }
}

// A sum of losses that were differentiated already, `total += loss`, keeps a record of each for ever.
static void note_carried(td_context *context, td_record *record) {
  const td_record *before = NULL; // what the same place made in the round before
  bool spent = false;
  for (int i = 0; i < record->in_count; i++) {
    const td_record *parent = record->parents[i];
    if (!parent || !parent->op) continue;
    spent |= parent->spent;
    if (parent->op == record->op && parent->place == record->place) before = parent;
  }
  for (int i = 0; before && i < before->in_count; i++) spent |= before->parents[i] && before->parents[i]->spent;
  if (!before || !spent || before->carried == CARRIED_TOLD) return;
  record->carried = (uint8_t)(before->carried + 1);
  if (record->carried == CARRIED_TOLD)
    td_tape_warn(context,
                 "%s: a value carries the history of %d backward passes along, and more with each; add x.item() or "
                 "x.detach() instead",
                 td_record_name_of(record).text, CARRIED_TOLD);
}

static int enlist(td_context *context, td_record *record, uint64_t mask) {
  td_tapes *tapes = context->tapes;
  for (uint64_t left = mask & TD_TAPE_BITS; left; left &= left - 1) {
    int code = td_list_reserve(context, &tapes->slots[__builtin_ctzll(left)]->records);
    if (code) return code;
  }
  for (uint64_t left = mask & TD_TAPE_BITS; left; left &= left - 1) {
    td_origin_ref(&record->origin);
    td_list_add(&tapes->slots[__builtin_ctzll(left)]->records, record);
    record->keepers++;
    record->holders++;
  }
  if (mask & TD_LOOSE_BIT) {
    record->loose = true;
    record->keepers++;
    record->holders++;
  }
  return TD_OK;
}

// An op may hand out what others hold already; such an output gets a view of its own, since origins belong to one
// tensor.
bool td_record_own_output(td_context *context, td_tensor **out) {
  if (!(*out)->origin && atomic_load_explicit(&(*out)->refs, memory_order_relaxed) == 1) return true;
  td_tensor *own = td_tensor_alias(context, *out);
  if (!own) return false;
  td_tensor_unref(*out);
  *out = own;
  return true;
}

static void note_lost(td_context *context, td_tensor *const *in, int in_count, uint64_t lost) {
  td_tapes *tapes = context->tapes;
  for (; lost; lost &= lost - 1) {
    int slot = __builtin_ctzll(lost);
    for (int i = 0; i < in_count; i++) {
      if (!in[i] || !in[i]->origin || !(in[i]->origin->tapes >> slot & 1)) continue;
      const td_record *record = (const td_record *)in[i]->origin;
      td_tape_note(tapes->slots[slot], &(td_note){TD_CUT_PAUSED, context->place, record->serial, record->variable});
    }
  }
}

// Inside vmap: tapes opened in there see the op on one example, those from before it the op on all of them.
static uint64_t seen_by(const td_context *context, td_tensor *const *in, int in_count, const td_tensor *out) {
  const td_tapes *tapes = context->tapes;
  uint64_t seen = 0;
  int level = td_batch_level(out); // batched without such an input: drawn for each example
  for (int i = 0; i < in_count; i++)
    if (td_batch_level(in[i]) > level) level = td_batch_level(in[i]);
  for (uint64_t left = tapes->open; left; left &= left - 1) {
    int slot = __builtin_ctzll(left), depth = tapes->depths[slot];
    if (depth >= level && depth <= context->batch_ceiling) seen |= UINT64_C(1) << slot;
  }
  return level ? seen : seen | TD_LOOSE_BIT;
}

// What of the results the record needs, and its place in the lists of its tapes.
static bool keep_results(td_context *context, td_record *record, td_tensor *const *in, td_tensor **out, uint64_t mask) {
  td_region *region = ((td_tapes *)context->tapes)->region;
  for (int i = 0; i < record->out_count; i++) {
    copy_meta(&record->out_meta[i], out[i]);
    if (!td_record_own_output(context, &out[i])) return false;
  }
  if (region ? td_region_add(context, region, record) != TD_OK : !td_record_save(context, record, in, out))
    return false;
  return enlist(context, record, mask) == TD_OK;
}

static int record_op(td_context *context, const td_op *op, td_tensor *const *in, int in_count, const td_arg *args,
                     td_tensor **out, int out_count) {
  td_tapes *tapes = context->tapes;
  uint64_t tracked = 0;
  if (tapes->replaying) return td_region_replay(context, op, in, in_count, out, out_count);
  for (int i = 0; i < in_count; i++)
    if (in[i] && in[i]->origin) tracked |= in[i]->origin->tapes;
  if (!tracked) return TD_OK;
  if (context->batch_depth) tracked &= seen_by(context, in, in_count, out_count ? out[0] : NULL);
  uint64_t mask = tracked & tapes->recording, lost = tracked & tapes->open & ~tapes->recording & ~tapes->hidden;
  if (lost) note_lost(context, in, in_count, lost);
  if (!mask) return TD_OK;
  int arg_count = args && td_op_has_args(op, in_count) ? td_op_arg_count(op) : 0;
  td_record *record = record_new(op, in_count, out_count, arg_count, mask);
  if (!record) return td_error_memory(context, "tape", (int64_t)sizeof *record);
  record->of = td_derived_op(tapes);
  record->place = context->place;
  record->seconds = context->op_seconds;
  record->cotangent_norm = -1;
  record->serial = ++tapes->serial;
  for (int i = 0; i < arg_count; i++) record->args[i] = args[i];
  adopt_parents(record, in, mask);
  if (mask & TD_LOOSE_BIT) note_carried(context, record);
  if (!keep_results(context, record, in, out, mask)) {
    record_release(&record->origin);
    return context->error.code;
  }
  for (int i = 0; i < out_count; i++) {
    out[i]->origin = &record->origin;
    out[i]->output = (uint8_t)i;
  }
  return TD_OK;
}

const td_recorder td_tape_recorder = {.record = record_op};
