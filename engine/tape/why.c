// Why a gradient is None, or what it is: one sentence with the line where the chain ends, and the remedy. It is found
// by walking the tape's records (their skeletons outlive gradient()) forward from the source and backward from the
// targets of the last gradient(), and by the notes of what cut a chain while the tape was there.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tape/state.h"

enum {
  FED = 1, // computed from the source, by whatever ops
  FLOATED = 2, // computed from it through floating values alone: a cotangent could come back
  ASKED = 4, // the target depends on it, by whatever ops
  SOURCE = 8,
};

typedef struct search {
  td_context *context;
  const td_tape *tape;
  const td_source *source;
  uint64_t stamp;
  uint8_t *marks; // leaves, then records
  int64_t leaves, count;
  char subject[64]; // "w" or "this tensor"
  td_text *answer;
} search;

typedef struct line {
  char text[80];
} line;

static line line_of(const search *s, td_place place) {
  line l = {""};
  td_place_describe(s->context, place, l.text, sizeof l.text);
  return l;
}

static td_record *at(const search *s, int64_t index) {
  return index < s->leaves ? s->tape->leaves.at[index] : s->tape->records.at[index - s->leaves];
}

static const td_tensor *value_of(const search *s) {
  return s->source->variable ? s->source->variable->value : s->source->tensor;
}

// ---- marks ----

static int open_search(search *s) {
  td_tapes *tapes = td_tapes_of(s->context);
  if (!tapes) return s->context->error.code;
  s->leaves = s->tape->leaves.count;
  s->count = s->leaves + s->tape->records.count;
  s->marks = td_memory_new_zero((size_t)s->count + 1);
  if (!s->marks) return td_error_memory(s->context, "why", s->count);
  s->stamp = ++tapes->stamp;
  for (int64_t i = 0; i < s->count; i++) {
    at(s, i)->stamp = s->stamp;
    at(s, i)->index = i;
  }
  return TD_OK;
}

static bool mark_source(search *s) {
  const td_variable *v = s->source->variable;
  const td_record *record = (const td_record *)value_of(s)->origin;
  bool found = false;
  for (int64_t i = 0; i < s->leaves && v; i++) {
    if (at(s, i)->variable != v->id) continue;
    s->marks[i] = SOURCE | FED | FLOATED;
    found = true;
  }
  if (v || !record || record->stamp != s->stamp) return found;
  s->marks[record->index] = SOURCE | FED | FLOATED;
  return true;
}

static bool floating(const td_record *record) {
  for (int i = 0; i < record->out_count; i++)
    if (td_dtype_is_float(record->out_meta[i].dtype)) return true;
  return false;
}

static void spread(search *s) {
  for (int64_t n = s->leaves; n < s->count; n++) {
    const td_record *record = at(s, n);
    for (int i = 0; i < record->in_count; i++) {
      const td_record *parent = record->parents[i];
      if (!parent || parent->stamp != s->stamp) continue;
      uint8_t mark = s->marks[parent->index] & (FED | FLOATED);
      bool cut = !floating(record) || !td_dtype_is_float(parent->out_meta[record->parent_output[i]].dtype);
      s->marks[n] |= cut ? mark & FED : mark;
    }
  }
}

static void mark_targets(search *s) {
  for (int i = 0; i < s->tape->target_count; i++)
    for (int64_t n = s->count; n-- > 0;)
      if (at(s, n)->serial == s->tape->targets[i].serial) s->marks[n] |= ASKED;
  for (int64_t n = s->count; n-- > s->leaves;) {
    const td_record *record = at(s, n);
    if (!(s->marks[n] & ASKED)) continue;
    for (int i = 0; i < record->in_count; i++)
      if (record->parents[i] && record->parents[i]->stamp == s->stamp) s->marks[record->parents[i]->index] |= ASKED;
  }
}

static bool reached(const search *s, uint8_t how) { // some target is computed from the source in this way
  for (int i = 0; i < s->tape->target_count; i++)
    for (int64_t n = s->count; n-- > 0;)
      if (at(s, n)->serial == s->tape->targets[i].serial && s->marks[n] & how) return true;
  return false;
}

// ---- answers ----

static void say_integer_source(search *s) {
  const char *dtype = td_dtype_name(value_of(s)->dtype);
  td_text_print(s->answer, "integer type: %s is %s, and only floating dtypes have gradients; use x.astype(float32)",
                s->subject, dtype);
}

static void say_integer_op(search *s) {
  for (int64_t n = s->leaves; n < s->count; n++) {
    const td_record *record = at(s, n);
    if (!(s->marks[n] & FED) || !(s->marks[n] & ASKED) || s->marks[n] & FLOATED) continue;
    const char *why = record->op->no_gradient;
    td_text_print(s->answer,
                  "integer type: %s at %s gives %s, which carries no gradient%s%s%s; keep the path from %s "
                  "to the target floating",
                  td_record_name_of(record).text, line_of(s, record->place).text,
                  td_dtype_name(record->out_meta[0].dtype), why ? " (" : "", why ? why : "", why ? ")" : "",
                  s->subject);
    return;
  }
}

static void say_reached(search *s) {
  int64_t count = 0;
  for (int64_t n = s->leaves; n < s->count; n++)
    count += (s->marks[n] & (FLOATED | ASKED)) == (FLOATED | ASKED) && !(s->marks[n] & SOURCE);
  td_text_print(s->answer, "reached through %lld record%s", (long long)count, count == 1 ? "" : "s");
  int shown = 0;
  for (int64_t n = s->leaves; n < s->count && shown < 4; n++) {
    const td_record *record = at(s, n);
    if ((s->marks[n] & (FLOATED | ASKED)) != (FLOATED | ASKED) || s->marks[n] & SOURCE) continue;
    td_text_print(s->answer, "%s%s at %s", shown ? ", " : ": ", td_record_name_of(record).text,
                  line_of(s, record->place).text);
    shown++;
  }
  if (count > shown) td_text_add(s->answer, ", ...");
}

static void say_note(search *s, const td_note *note) {
  line l = line_of(s, note->place);
  const td_variable *v = note->variable ? td_variable_find(note->variable) : NULL;
  switch (note->cut) {
  case TD_CUT_NUMBER:
    td_text_print(s->answer,
                  "left as a number at %s: item(), float() or int() took the value off the tape; keep it a tensor",
                  l.text);
    break;
  case TD_CUT_STOP:
    td_text_print(s->answer, "cut by stop_gradient at %s; use the value itself where its gradient is wanted", l.text);
    break;
  case TD_CUT_DETACH:
    td_text_print(s->answer, "cut by detach at %s; use the value itself where its gradient is wanted", l.text);
    break;
  case TD_CUT_PAUSED:
    td_text_print(s->answer, "recording off at %s, inside stop_recording or no_grad; move that line out of the block",
                  l.text);
    break;
  case TD_CUT_ASSIGN:
    td_text_print(s->answer,
                  "state assign: the value went into %s%s at %s, and a Variable's state carries no gradient; use "
                  "the assigned tensor itself",
                  v && v->name[0] ? "Variable " : "a Variable", v ? v->name : "", l.text);
    break;
  case TD_CUT_INTEGER:
    td_text_print(s->answer, "integer type: the value became an integer at %s; use x.astype(float32)", l.text);
    break;
  case TD_CUT_OVERWRITTEN:
    td_text_print(s->answer,
                  "overwritten at %s: the name holds a newer tensor, and the target used the older one; keep the "
                  "older one under another name",
                  l.text);
    break;
  }
}

static td_place target_place(const search *s) { return s->tape->target_count ? s->tape->targets[0].place : 0; }

// Where the source was used last, for a source that was used off the path.
static const td_record *last_use(const search *s) {
  for (int64_t n = s->count; n-- > s->leaves;) {
    const td_record *record = at(s, n);
    for (int i = 0; i < record->in_count; i++) {
      const td_record *parent = record->parents[i];
      if (parent && parent->stamp == s->stamp && s->marks[parent->index] & SOURCE) return record;
    }
  }
  return NULL;
}

static void say_off_path(search *s) {
  const td_record *use = last_use(s);
  td_text_print(s->answer, "not on the path, not reached: %s makes the target, and nothing in it comes from %s",
                line_of(s, target_place(s)).text, s->subject);
  if (use)
    td_text_print(s->answer, " (last used by %s at %s); use that result in the target", td_record_name_of(use).text,
                  line_of(s, use->place).text);
  else td_text_print(s->answer, ", which no op on this tape used; use it in the target");
}

static void say_unlisted(search *s) {
  const td_variable *v = s->source->variable;
  const td_tensor *t = s->source->tensor;
  if (v && !v->trainable)
    td_text_print(s->answer,
                  "not trainable: %s has trainable=False, so tapes don't watch it; set it to True, or call "
                  "tape.watch on it inside the tape",
                  s->subject);
  else if (v && !s->tape->watch_accessed)
    td_text_print(s->answer,
                  "not watched: the tape was made with watch_accessed_variables=False; call tape.watch on %s "
                  "inside the tape",
                  s->subject);
  else if (v) say_off_path(s);
  else if (t->flags & TD_TENSOR_FROM_VARIABLE)
    td_text_print(s->answer,
                  "replaced by a tensor at %s: the value was computed from a Variable outside this tape and is no "
                  "Variable any more; use v.assign, v.assign_add or v.assign_sub",
                  line_of(s, t->place).text);
  else
    td_text_print(s->answer,
                  "not watched: %s, made at %s, is no Variable; call tape.watch(x) inside the tape, before it is "
                  "used",
                  s->subject, line_of(s, t->place).text);
}

// ---- notes ----

static int64_t find_serial(const search *s, uint64_t serial) { // -1: none
  int64_t low = s->leaves, high = s->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (at(s, middle)->serial < serial) low = middle + 1;
    else high = middle;
  }
  if (low < s->count && at(s, low)->serial == serial) return low;
  for (int64_t i = 0; i < s->leaves; i++)
    if (at(s, i)->serial == serial) return i;
  return -1;
}

static bool was_overwritten(const search *s, uint64_t serial) { // the source took the place of the value of this record
  const td_record *record = (const td_record *)value_of(s)->origin;
  if (!record || record->stamp != s->stamp) return false;
  bool found = record->serial == serial;
  for (int i = 0; i < record->in_count && !found; i++)
    found = record->parents[i] && record->parents[i]->serial == serial;
  return found;
}

static bool concerns(const search *s, const td_note *note) {
  const td_variable *v = s->source->variable;
  if (v && note->variable == v->id && note->cut != TD_CUT_ASSIGN) return true;
  if (!note->serial) return false;
  if (note->cut == TD_CUT_OVERWRITTEN) return was_overwritten(s, note->serial);
  int64_t index = find_serial(s, note->serial);
  return index >= 0 && s->marks[index] & FED;
}

// The first note that cut something computed from the source; numbers come last, since printing a loss makes many.
static const td_note *find_note(const search *s) {
  const td_note *number = NULL;
  for (int i = 0; i < s->tape->note_count; i++) {
    const td_note *note = &s->tape->notes[i];
    if (!concerns(s, note)) continue;
    if (note->cut != TD_CUT_NUMBER) return note;
    if (!number) number = note;
  }
  return number;
}

// ---- the question ----

static void answer(search *s) {
  if (!td_dtype_is_float(value_of(s)->dtype)) {
    say_integer_source(s);
    return;
  }
  bool listed = mark_source(s);
  spread(s);
  mark_targets(s);
  const td_note *note = find_note(s);
  if (listed && !s->tape->asked)
    td_text_print(s->answer, "no gradient was asked of this tape yet; it tracks %s", s->subject);
  else if (listed && reached(s, FLOATED)) say_reached(s);
  else if (listed && reached(s, FED)) say_integer_op(s);
  else if (note) say_note(s, note);
  else if (listed) say_off_path(s);
  else say_unlisted(s);
}

int td_tape_why(td_context *context, td_tape *tape, const td_source *source, td_text *text) {
  search s = {.context = context, .tape = tape, .source = source, .answer = text};
  const td_variable *v = source->variable;
  snprintf(s.subject, sizeof s.subject, "%s", !v ? "this tensor" : v->name[0] ? v->name : "this Variable");
  int code = open_search(&s);
  if (code) return code;
  answer(&s);
  td_memory_free(s.marks);
  return text->failed ? td_error_memory(context, "why", (int64_t)text->length) : TD_OK;
}
