// %who, %whos, %mem, %tape: what the session holds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/nest.h"
#include "repl/notebook/commands.h"

static bool is_user_name(const td_global *global) { return !td_is_nil(global->value) && global->name->data[0] != '_'; }

static td_value run_who(td_interpreter *I, const char *arguments) {
  (void)arguments;
  td_text text = {0};
  for (int i = 0; i < I->main->count; i++)
    if (is_user_name(I->main->globals[i]))
      td_text_print(&text, "%s%s", text.length ? "  " : "", I->main->globals[i]->name->data);
  td_text_add(&text, text.length ? "\n" : "nothing is defined yet\n");
  td_output_text(I, &text);
  return TD_NONE;
}

static void describe(td_interpreter *I, td_value v, td_text *text) {
  const td_tensor *t = td_tensor_of(v);
  if (t) {
    td_meta_print(text, t->dtype, t->rank, t->shape);
    td_text_print(text, "  %lld bytes", (long long)(t->size * td_dtype_bytes(t->dtype)));
    return;
  }
  td_text shown = {0};
  if (!td_repr(I, v, &shown)) td_clear_raised(I);
  for (size_t i = 0; i < shown.length && i < 60; i++)
    td_text_add_char(text, shown.data[i] == '\n' ? ' ' : shown.data[i]);
  if (shown.length > 60) td_text_add(text, "...");
  td_text_clear(&shown);
}

static td_value run_whos(td_interpreter *I, const char *arguments) {
  (void)arguments;
  td_text text = {0};
  for (int i = 0; i < I->main->count; i++) {
    const td_global *global = I->main->globals[i];
    if (!is_user_name(global)) continue;
    size_t start = text.length;
    td_text_add(&text, global->name->data);
    td_text_pad(&text, start + 16, ' ');
    td_text_print(&text, " %s", td_type_name(I, global->value));
    td_text_pad(&text, start + 28, ' ');
    td_text_add_char(&text, ' ');
    describe(I, global->value, &text);
    td_text_add_char(&text, '\n');
  }
  if (!text.length) td_text_add(&text, "nothing is defined yet\n");
  td_output_text(I, &text);
  return TD_NONE;
}

// ---- %mem ----

const char td_spent_text[] =
    "its gradient was taken, which gave up what it kept: GradientTape(persistent=True) keeps it";

bool td_tape_is_spent(const td_tape *tape) {
  for (int64_t n = 0; n < td_tape_length(tape); n++)
    if (td_tape_record_at(tape, n)->keepers) return false;
  return td_tape_length(tape) > 0;
}

typedef struct held { // a storage that a record keeps for backward, counted once
  const td_storage *storage;
  const td_record *record;
  td_meta meta;
  int saved; // which of its inputs and outputs; CHECKPOINT: an argument of the checkpoint that it was made in
} held;

enum { CHECKPOINT = -1 };

typedef struct holdings {
  held *at; // NULL: they are counted only
  int64_t count, bytes;
  const td_record *record; // whose turn it is
} holdings;

static int by_storage(const void *a, const void *b) {
  const held *x = a, *y = b;
  if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
  return (x->record->serial > y->record->serial) - (x->record->serial < y->record->serial);
}

static int by_bytes(const void *a, const void *b) {
  const held *x = a, *y = b;
  if (x->storage->bytes != y->storage->bytes) return x->storage->bytes < y->storage->bytes ? 1 : -1;
  return (x->record->serial > y->record->serial) - (x->record->serial < y->record->serial);
}

static void add_held(holdings *h, const td_tensor *t, int saved) {
  if (h->at) h->at[h->count] = (held){t->storage, h->record, td_tensor_meta(t), saved};
  h->count++;
}

static void add_argument(void *argument, const td_tensor *t) { add_held(argument, t, CHECKPOINT); }

static void add_records(holdings *h, const td_tape *tape) {
  const td_region *region = NULL;
  h->count = 0;
  for (int64_t n = 0; n < td_tape_length(tape); n++) {
    const td_record *record = h->record = td_tape_record_at(tape, n);
    for (int k = 0; k < record->in_count + record->out_count; k++)
      if (td_record_saved(record, k)) add_held(h, td_record_saved(record, k), k);
    if (record->region && record->region != region) td_region_kept(record->region, add_argument, h);
    region = record->region;
  }
}

static bool holdings_of(td_interpreter *I, const td_tape *tape, holdings *h) { // biggest first
  *h = (holdings){0};
  add_records(h, tape);
  h->at = td_memory_new((size_t)(h->count + 1) * sizeof *h->at);
  if (!h->at) return td_raise_memory(I), false;
  add_records(h, tape);
  int64_t count = h->count;
  h->count = 0;
  qsort(h->at, (size_t)count, sizeof *h->at, by_storage);
  for (int64_t n = 0; n < count; n++) {
    if (n && h->at[n].storage == h->at[n - 1].storage) continue;
    h->bytes += h->at[n].storage->bytes;
    h->at[h->count++] = h->at[n];
  }
  qsort(h->at, (size_t)h->count, sizeof *h->at, by_bytes);
  return true;
}

static void held_print(td_interpreter *I, const held *h, td_text *text) {
  const td_record *record = h->record;
  char place[64];
  size_t start = text->length;
  td_text_print(text, "%12lld bytes  ", (long long)h->storage->bytes);
  td_meta_print(text, h->meta.dtype, h->meta.rank, h->meta.shape);
  td_text_pad(text, start + 44, ' ');
  bool output = h->saved >= record->in_count, list = td_op_takes_list(record->op);
  td_record_name name = td_record_name_of(record);
  td_place_describe(I->context, record->place, place, sizeof place);
  if (h->saved == CHECKPOINT)
    td_text_print(text, "  argument of the checkpoint around %s at %s\n", name.text, place);
  else
    td_text_print(text, "  %s of %s at %s\n", output ? "result" : record->op->params[list ? 0 : h->saved].name,
                  name.text, place);
}

static td_value tape_mem(td_interpreter *I, const td_tape *tape) {
  enum { SHOWN = 40 };
  holdings h;
  td_text text = {0};
  if (!holdings_of(I, tape, &h)) return TD_NIL;
  td_text_print(&text, "%lld bytes kept for backward by %lld records\n", (long long)h.bytes,
                (long long)td_tape_length(tape));
  if (td_tape_is_spent(tape)) td_text_print(&text, "%s\n", td_spent_text);
  for (int64_t n = 0; n < h.count && n < SHOWN; n++) held_print(I, &h.at[n], &text);
  if (h.count > SHOWN) td_text_print(&text, "... %lld more\n", (long long)(h.count - SHOWN));
  td_memory_free(h.at);
  td_output_text(I, &text);
  return TD_NONE;
}

static bool mem_of_tapes(td_interpreter *I, td_text *text) { // a line for each named tape
  for (int i = 0; i < I->main->count; i++) {
    const td_global *global = I->main->globals[i];
    if (!is_user_name(global) || !td_is(global->value, &td_tape_type)) continue;
    const td_tape *tape = ((td_tape_value *)global->value.o)->tape;
    holdings h;
    if (!holdings_of(I, tape, &h)) return false;
    td_text_print(text, "tape %s: %lld bytes kept for backward, %lld records\n", global->name->data, (long long)h.bytes,
                  (long long)td_tape_length(tape));
    td_memory_free(h.at);
  }
  return true;
}

static td_value run_mem(td_interpreter *I, const char *arguments) {
  if (*arguments) {
    td_value v = td_evaluate_text(I, arguments, "%mem"), result = TD_NIL;
    if (td_is(v, &td_tape_type)) result = tape_mem(I, ((td_tape_value *)v.o)->tape);
    else if (!td_is_nil(v)) td_raise(I, TD_CLASS_TYPE_ERROR, "%%mem takes a GradientTape, not %s", td_type_name(I, v));
    td_unref(v);
    return result;
  }
  td_text text = {0};
  long long variables = td_variable_count();
  td_text_print(&text, "live %lld bytes, peak %lld bytes, %lld Variable%s\n", (long long)td_memory_live(),
                (long long)td_memory_peak(), variables, variables == 1 ? "" : "s");
  bool ok = mem_of_tapes(I, &text);
  td_output_text(I, &text);
  return ok ? TD_NONE : TD_NIL;
}

// ---- %tape ----

static void record_print(td_interpreter *I, const td_record *record, int64_t index, td_text *text) {
  char place[64];
  size_t start = text->length;
  td_text_print(text, "%6lld  %s ", (long long)index, record->op ? td_record_name_of(record).text : "leaf");
  td_text_pad(text, start + 28, ' ');
  td_meta_print(text, record->out_meta[0].dtype, record->out_meta[0].rank, record->out_meta[0].shape);
  td_text_pad(text, start + 52, ' ');
  td_place_describe(I->context, record->place, place, sizeof place);
  td_text_print(text, " %8lld bytes  %s\n", (long long)td_record_bytes(record), place);
}

static td_value show_tape(td_interpreter *I, const td_tape *tape) {
  int64_t count = td_tape_length(tape), shown = count > 200 ? 200 : count;
  td_text text = {0};
  td_text_print(&text, "%lld records\n", (long long)count);
  for (int64_t i = 0; i < shown; i++) record_print(I, td_tape_record_at(tape, i), i, &text);
  if (shown < count) td_text_print(&text, "... %lld more\n", (long long)(count - shown));
  td_output_text(I, &text);
  return TD_NONE;
}

static td_value run_tape(td_interpreter *I, const char *arguments) {
  static const char option[] = "--step";
  const char *step = strstr(arguments, option);
  td_text name = {0};
  td_text_add_bytes(&name, arguments, step ? (size_t)(step - arguments) : strlen(arguments));
  const char *text = name.data && name.data[strspn(name.data, " ")] ? name.data : "tape";
  td_value v = name.failed ? td_raise_memory(I) : td_evaluate_text(I, text, "%tape"), result = TD_NIL;
  td_text_clear(&name);
  if (td_is_nil(v)) return TD_NIL;
  const td_tape *tape = td_is(v, &td_tape_type) ? ((td_tape_value *)v.o)->tape : NULL;
  if (!tape) td_raise(I, TD_CLASS_TYPE_ERROR, "%%tape needs a GradientTape, not %s", td_type_name(I, v));
  else if (!step) result = show_tape(I, tape);
  else result = td_tape_step(I, tape, step + sizeof option - 1 + strspn(step + sizeof option - 1, " "));
  td_unref(v);
  return result;
}

const td_command_row td_commands_inspect[] = {
    {"who", "%who", run_who, "The names that this session defined."},
    {"whos", "%whos", run_whos, "The names with types, shapes and bytes."},
    {"mem", "%mem [TAPE]", run_mem,
     "Bytes that tensors and values hold now, and the most so far; of a tape what it keeps for backward, and why."},
    {"tape", "%tape TAPE [--step EXPRESSION]", run_tape,
     "The records of a tape: op, shape, bytes held, source line. --step runs a backward pass, such as "
     "t.gradient(y, x), record by record: n, c, p EXPR, set EXPR, q."},
    {NULL, NULL, NULL, NULL}};
