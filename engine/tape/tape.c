// Opening, closing, pausing and watching: which tapes record what. A context has one td_tapes, made on first use. The
// mask of what records now is kept ready, and context->recorder is NULL when nothing can, so an op outside of tapes
// pays one test. A Variable's value gets its leaf when it is read; its tensor is never one that a user holds under
// another name.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tape/finite.h"
#include "engine/tape/state.h"

enum { NOTES_MAX = 4096, NOTES_COMPARED = 64 };

// Slots that are taken, in all contexts: a tensor may be seen by several, and its bits must mean one tape.
static _Atomic uint64_t slots_taken;

static int slot_take(void) { // -1: none is free
  uint64_t taken = atomic_load(&slots_taken), vacant;
  do {
    vacant = ~taken & TD_TAPE_BITS;
    if (!vacant) return -1;
  } while (!atomic_compare_exchange_weak(&slots_taken, &taken, taken | (vacant & -vacant)));
  return __builtin_ctzll(vacant);
}

// ---- the tapes of a context ----

td_tapes *td_tapes_of(td_context *context) {
  if (!context->tapes) context->tapes = td_memory_new_zero(sizeof(td_tapes));
  if (!context->tapes) td_error_memory(context, "tape", (int64_t)sizeof(td_tapes));
  return context->tapes;
}

void td_tapes_update(td_context *context) {
  td_tapes *tapes = context->tapes;
  uint64_t all = (tapes->open & ~tapes->paused) | (tapes->loose ? TD_LOOSE_BIT : 0);
  tapes->recording = tapes->no_grad ? 0 : all & ~tapes->hidden;
  // Paused tapes keep the recorder: it notes where their chains were cut.
  context->recorder = tapes->open || tapes->recording || tapes->replaying ? &td_tape_recorder : NULL;
}

void td_tapes_free(td_context *context) {
  td_tapes *tapes = context->tapes;
  if (context->inspector) td_finite_stop(context, td_finite_of(context));
  if (!tapes) return;
  for (int i = 0; i < TD_SLOTS; i++)
    if (tapes->slots[i]) td_tape_close(context, tapes->slots[i]);
  while (tapes->graded) td_leaf_set_grad(context, tapes->graded, NULL);
  context->recorder = NULL;
  context->tapes = NULL;
  td_memory_free(tapes);
}

td_apart td_apart_enter(td_context *context, uint64_t seed) {
  td_apart outer = {context->seed,      context->counter,     context->streams,       context->tapes, context->recorder,
                    context->inspector, context->batch_depth, context->batch_ceiling, context->apart};
  context->seed = seed;
  context->counter = context->streams = 0;
  context->tapes = NULL;
  context->recorder = NULL;
  context->inspector = NULL;
  context->batch_depth = 0;
  context->batch_ceiling = TD_BATCH_LEVELS;
  context->apart = true;
  return outer;
}

void td_apart_leave(td_context *context, const td_apart *outer) {
  td_tapes_free(context);
  context->seed = outer->seed;
  context->counter = outer->counter;
  context->streams = outer->streams;
  context->tapes = outer->tapes;
  context->recorder = outer->recorder;
  context->inspector = outer->inspector;
  context->batch_depth = outer->batch_depth;
  context->batch_ceiling = outer->batch_ceiling;
  context->apart = outer->apart;
}

void td_tape_warn(td_context *context, const char *format, ...) {
  if (!context->warn) return;
  char message[400];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  context->warn(context->owner, message);
}

// ---- a tape ----

td_tape *td_tape_new(td_context *context, bool persistent, bool watch_accessed_variables) {
  td_tape *tape = td_memory_new_zero(sizeof *tape);
  if (!tape) {
    td_error_memory(context, "tape", (int64_t)sizeof *tape);
    return NULL;
  }
  atomic_init(&tape->refs, 1);
  tape->persistent = persistent;
  tape->watch_accessed = watch_accessed_variables;
  tape->slot = -1;
  return tape;
}

td_tape *td_tape_ref(td_tape *tape) {
  atomic_fetch_add_explicit(&tape->refs, 1, memory_order_relaxed);
  return tape;
}

static void forget_notes(td_tape *tape) {
  td_memory_free(tape->notes);
  td_memory_free(tape->targets);
  tape->notes = NULL;
  tape->targets = NULL;
  tape->note_count = tape->note_capacity = tape->target_count = 0;
  tape->asked = false;
}

// The list is taken out first: what goes with its records may come back here.
static void empty(td_list *list, uint64_t bit, bool keeps) {
  td_list old = *list;
  *list = (td_list){0};
  for (int64_t i = old.count; i-- > 0;) {
    old.at[i]->origin.tapes &= ~bit;
    td_record_let_go(old.at[i], keeps);
  }
  td_memory_free(old.at);
}

static uint64_t bit_of(const td_tape *tape) { return tape->slot >= 0 ? UINT64_C(1) << tape->slot : 0; }

// A leaf entry that is an outer tape's op record is not held by this list: only its reference is dropped.
static void empty_leaves(td_tape *tape) {
  td_list old = tape->leaves;
  tape->leaves = (td_list){0};
  for (int64_t i = old.count; i-- > 0;) {
    old.at[i]->origin.tapes &= ~bit_of(tape);
    td_origin_unref(&old.at[i]->origin);
  }
  td_memory_free(old.at);
}

void td_tape_reset(td_context *context, td_tape *tape) {
  (void)context;
  empty(&tape->records, bit_of(tape), !tape->spent);
  empty_leaves(tape);
  forget_notes(tape);
  tape->spent = false;
}

void td_tape_unref(td_context *context, td_tape *tape) {
  if (!tape || atomic_fetch_sub_explicit(&tape->refs, 1, memory_order_acq_rel) != 1) return;
  td_tape_close(context, tape);
  td_tape_reset(context, tape);
  td_memory_free(tape);
}

static void set_bits(const td_list *list, uint64_t bit, bool on) {
  for (int64_t i = 0; i < list->count; i++) {
    uint64_t *tapes = &list->at[i]->origin.tapes;
    *tapes = on ? *tapes | bit : *tapes & ~bit;
  }
}

int td_tape_open(td_context *context, td_tape *tape) {
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) return context->error.code;
  if (tape->slot >= 0) {
    td_error_set(context, TD_ERROR_STATE, "GradientTape: this tape is recording already");
    td_error_hint(context, "make a second tape for the inner block");
    return TD_ERROR_STATE;
  }
  if (tapes->region || tapes->replaying) {
    td_error_set(context, TD_ERROR_STATE, "checkpoint: the function opens a tape of its own");
    td_error_hint(context, "checkpoint the function inside of that tape instead");
    return TD_ERROR_STATE;
  }
  int slot = slot_take();
  if (slot < 0) return td_error_set(context, TD_ERROR_STATE, "GradientTape: %d tapes are open already", TD_SLOTS);
  if (tape->spent) td_tape_reset(context, tape);
  tape->slot = slot;
  tape->paused = 0;
  tapes->slots[tape->slot] = tape;
  tapes->depths[tape->slot] = (uint8_t)context->batch_depth;
  tapes->open |= bit_of(tape);
  if (tape->watch_accessed) tapes->watching |= bit_of(tape);
  set_bits(&tape->records, bit_of(tape), true);
  set_bits(&tape->leaves, bit_of(tape), true);
  td_tapes_update(context);
  return TD_OK;
}

void td_tape_close(td_context *context, td_tape *tape) {
  td_tapes *tapes = context->tapes;
  if (tape->slot < 0 || !tapes) return;
  uint64_t bit = bit_of(tape);
  set_bits(&tape->records, bit, false);
  set_bits(&tape->leaves, bit, false);
  tapes->slots[tape->slot] = NULL;
  tapes->open &= ~bit;
  tapes->paused &= ~bit;
  tapes->watching &= ~bit;
  tape->slot = -1;
  atomic_fetch_and(&slots_taken, ~bit);
  td_tapes_update(context);
}

int td_tape_pause(td_context *context, td_tape *tape) {
  if (tape->slot < 0) return td_error_set(context, TD_ERROR_STATE, "stop_recording: this tape isn't recording");
  td_tapes *tapes = context->tapes;
  tape->paused++;
  tapes->paused |= bit_of(tape);
  td_tapes_update(context);
  return TD_OK;
}

void td_tape_resume(td_context *context, td_tape *tape) {
  if (tape->slot < 0 || !tape->paused || --tape->paused) return;
  td_tapes *tapes = context->tapes;
  tapes->paused &= ~bit_of(tape);
  td_tapes_update(context);
}

int64_t td_tape_length(const td_tape *tape) { return tape->records.count; }

const td_record *td_tape_record_at(const td_tape *tape, int64_t index) {
  return index >= 0 && index < tape->records.count ? tape->records.at[index] : NULL;
}

int64_t td_tape_leaf_count(const td_tape *tape) { return tape->leaves.count; }

const td_record *td_tape_leaf_at(const td_tape *tape, int64_t index) {
  return index >= 0 && index < tape->leaves.count ? tape->leaves.at[index] : NULL;
}

bool td_tape_was_target(const td_tape *tape, const td_record *record) {
  for (int i = 0; i < tape->target_count; i++)
    if (tape->targets[i].serial == record->serial) return true;
  return false;
}

static uint64_t last_serial(const td_tape *tape) {
  return tape->records.count ? tape->records.at[tape->records.count - 1]->serial : 0;
}

td_tape *td_tape_newest(const td_context *context) {
  const td_tapes *tapes = context->tapes;
  td_tape *newest = NULL;
  for (uint64_t left = tapes ? tapes->open : 0; left; left &= left - 1) {
    td_tape *tape = tapes->slots[__builtin_ctzll(left)];
    if (!newest || last_serial(tape) > last_serial(newest)) newest = tape;
  }
  return newest;
}

// ---- watching ----

static int add_leaf(td_context *context, td_tape *tape, td_record *record) {
  int code = td_list_reserve(context, &tape->leaves);
  if (code) return code;
  td_origin_ref(&record->origin);
  td_list_add(&tape->leaves, record);
  record->origin.tapes |= bit_of(tape);
  return TD_OK;
}

static bool lists(const td_list *list, const td_origin *origin) {
  for (int64_t i = list->count; i-- > 0;)
    if (&list->at[i]->origin == origin) return true;
  return false;
}

static bool tracks(const td_tape *tape, const td_tensor *t) {
  if (!t->origin) return false;
  if (tape->slot >= 0) return (t->origin->tapes & bit_of(tape)) != 0;
  return lists(&tape->leaves, t->origin) || lists(&tape->records, t->origin);
}

int td_leaf_refuse(td_context *context, const char *who, const td_tensor *t) {
  td_error_set(context, TD_ERROR_DTYPE, "%s: only floating dtypes have gradients, and this is %s", who,
               td_dtype_name(t->dtype));
  td_meta meta = td_tensor_meta(t);
  td_error_operand(context, "x", 1, &meta);
  td_error_hint(context, "use x.astype(float32)");
  return TD_ERROR_DTYPE;
}

int td_leaf_root(td_context *context, td_tensor *t) {
  if (t->origin) return TD_OK;
  td_leaf *leaf = td_leaf_new(context, t, 0);
  if (!leaf) return context->error.code;
  t->origin = &leaf->record.origin;
  t->output = 0;
  return TD_OK;
}

int td_tape_watch(td_context *context, td_tape *tape, td_tensor *t) {
  if (!td_dtype_is_float(t->dtype)) return td_leaf_refuse(context, "watch", t);
  if (tracks(tape, t)) return TD_OK;
  int code = td_leaf_root(context, t);
  return code ? code : add_leaf(context, tape, (td_record *)t->origin);
}

static bool watches(const td_tape *tape, uint64_t variable) {
  for (int64_t i = 0; i < tape->leaves.count; i++)
    if (tape->leaves.at[i]->variable == variable) return true;
  return false;
}

int td_tape_watched(td_tape *tape, uint64_t *ids, int capacity) {
  if (!ids) return (int)tape->leaves.count;
  int count = 0;
  for (int64_t i = 0; i < tape->leaves.count; i++) {
    uint64_t id = tape->leaves.at[i]->variable;
    bool seen = !id;
    for (int j = 0; j < count && !seen; j++) seen = ids[j] == id;
    if (!seen && count < capacity) ids[count++] = id;
  }
  return count;
}

// ---- Variables ----

// A value that a user may hold as a plain tensor is replaced by a view of it, which the Variable alone holds.
static bool own_value(td_context *context, td_variable *v) {
  td_tensor *value = v->value;
  if (atomic_load_explicit(&value->refs, memory_order_relaxed) > 1) {
    value = td_tensor_alias(context, v->value);
    if (!value) return false;
    value->place = v->value->place;
    td_tensor_unref(v->value);
    v->value = value;
  }
  value->flags |= TD_TENSOR_FROM_VARIABLE;
  return true;
}

static td_record *leaf_of(const td_variable *v) {
  td_record *record = (td_record *)v->value->origin;
  return record && !record->op && record->variable == v->id ? record : NULL;
}

// A leaf that tracks the value for the tapes of wanted. Where others hold the value it gets a view first: they read it
// before these tapes were there, so to them it is a constant.
static int lead(td_context *context, td_variable *v, uint64_t wanted) {
  td_tapes *tapes = context->tapes;
  td_record *record = leaf_of(v);
  bool shared = atomic_load_explicit(&v->value->refs, memory_order_relaxed) > 1;
  td_aside_keep(tapes, v);
  if (shared && !own_value(context, v)) return context->error.code;
  if (shared || !record) {
    td_leaf *leaf = td_leaf_new(context, v->value, v->id);
    if (!leaf) return context->error.code;
    record = &leaf->record;
    td_origin_unref(v->value->origin);
    v->value->origin = &record->origin;
    v->value->output = 0;
  }
  for (uint64_t left = wanted & TD_TAPE_BITS & ~record->origin.tapes; left; left &= left - 1) {
    int code = add_leaf(context, tapes->slots[__builtin_ctzll(left)], record);
    if (code) return code;
  }
  record->origin.tapes |= wanted & TD_LOOSE_BIT;
  return TD_OK;
}

static uint64_t wanted_by(const td_tapes *tapes, const td_variable *v) {
  uint64_t recording = tapes->recording, wanted = v->trainable ? recording & tapes->watching : 0;
  for (uint64_t left = recording & TD_TAPE_BITS & ~wanted; left; left &= left - 1) {
    int slot = __builtin_ctzll(left);
    if (watches(tapes->slots[slot], v->id)) wanted |= UINT64_C(1) << slot;
  }
  return v->requires_grad && v->trainable ? wanted | (recording & TD_LOOSE_BIT) : wanted;
}

static void note_read(td_context *context, const td_variable *v) {
  td_tapes *tapes = context->tapes;
  for (uint64_t lost = tapes->open & ~tapes->recording & ~tapes->hidden; lost; lost &= lost - 1)
    td_tape_note(tapes->slots[__builtin_ctzll(lost)], &(td_note){TD_CUT_PAUSED, context->place, 0, v->id});
}

int td_tapes_loosen(td_context *context) {
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) return context->error.code;
  tapes->loose = true;
  td_tapes_update(context);
  return TD_OK;
}

td_tensor *td_variable_read(td_context *context, td_variable *v) {
  if (!(v->value->flags & TD_TENSOR_FROM_VARIABLE) && !own_value(context, v)) return NULL;
  bool marked = v->requires_grad && v->trainable && !context->apart;
  bool loosens = marked && !(context->tapes && ((td_tapes *)context->tapes)->loose);
  if (loosens && td_tapes_loosen(context)) return NULL;
  td_tapes *tapes = context->tapes;
  if (!context->recorder || tapes->replaying || !td_dtype_is_float(v->value->dtype)) return td_tensor_ref(v->value);
  uint64_t wanted = wanted_by(tapes, v);
  if (tapes->open & ~tapes->recording & ~tapes->hidden) note_read(context, v);
  td_record *leaf = leaf_of(v);
  if (wanted & ~(leaf ? leaf->origin.tapes : 0) && lead(context, v, wanted)) return NULL;
  return td_tensor_ref(v->value);
}

int td_tape_watch_variable(td_context *context, td_tape *tape, td_variable *v) {
  if (!td_dtype_is_float(v->value->dtype)) return td_leaf_refuse(context, "watch", v->value);
  if (!td_tapes_of(context) || !own_value(context, v)) return context->error.code;
  td_record *leaf = leaf_of(v);
  if (leaf && tracks(tape, v->value)) return TD_OK;
  if (tape->slot >= 0) return lead(context, v, (leaf ? leaf->origin.tapes : 0) | bit_of(tape));
  int code = lead(context, v, 0);
  return code ? code : add_leaf(context, tape, leaf_of(v));
}

// ---- recording off, and what was cut ----

void td_no_grad_enter(td_context *context) {
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) return;
  tapes->no_grad++;
  td_tapes_update(context);
}

void td_no_grad_leave(td_context *context) {
  td_tapes *tapes = context->tapes;
  if (!tapes || !tapes->no_grad) return;
  tapes->no_grad--;
  td_tapes_update(context);
}

bool td_recording(const td_context *context) {
  const td_tapes *tapes = context->tapes;
  return tapes && tapes->recording & TD_TAPE_BITS;
}

// Notes answer questions and hold nothing up: where memory is out, a note is missing.
void td_tape_note(td_tape *tape, const td_note *note) {
  int first = tape->note_count > NOTES_COMPARED ? tape->note_count - NOTES_COMPARED : 0;
  for (int i = first; i < tape->note_count; i++) {
    const td_note *old = &tape->notes[i];
    if (old->cut == note->cut && old->serial == note->serial && old->variable == note->variable) return;
  }
  if (tape->note_count == NOTES_MAX) return;
  if (tape->note_count == tape->note_capacity) {
    int capacity = tape->note_capacity ? tape->note_capacity * 2 : 8;
    td_note *grown = td_memory_resize(tape->notes, (size_t)capacity * sizeof *grown);
    if (!grown) return;
    tape->notes = grown;
    tape->note_capacity = capacity;
  }
  tape->notes[tape->note_count++] = *note;
}

// Leaving by way of a number or detach() isn't a read that gives the Variable a leaf, yet it is what happened to it.
static bool would_watch(const td_tape *tape, const td_variable *v, enum td_cut cut) {
  return (cut == TD_CUT_NUMBER || cut == TD_CUT_DETACH) && tape->watch_accessed && v->trainable;
}

void td_tape_note_cut(td_context *context, enum td_cut cut, td_tensor *t, td_variable *v) {
  td_tapes *tapes = context->tapes;
  if (!tapes || !tapes->open) return;
  const td_record *record = t ? (const td_record *)t->origin : NULL;
  uint64_t id = v ? v->id : 0;
  for (uint64_t left = tapes->open & ~tapes->hidden; left; left &= left - 1) {
    int slot = __builtin_ctzll(left);
    bool tracked = record && record->origin.tapes >> slot & 1;
    if (tracked || (v && watches(tapes->slots[slot], id)) || (v && would_watch(tapes->slots[slot], v, cut)))
      td_tape_note(tapes->slots[slot], &(td_note){cut, context->place, tracked ? record->serial : 0, id});
  }
}

td_tensor *td_stop_gradient(td_context *context, td_tensor *t) {
  td_tape_note_cut(context, TD_CUT_STOP, t, NULL);
  td_tensor *stopped = td_tensor_alias(context, t);
  if (stopped) stopped->place = context->place;
  return stopped;
}
