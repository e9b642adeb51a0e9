// See report_tape.h. Two sweeps over the records: forwards for rows, inputs and marks of values, backwards for what a
// pass from the last targets meets. Nothing is allocated for each record.
#include "repl/notebook/report_tape.h"
#include <math.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tensor/probe.h"
#include "repl/language/core.h"
#include "repl/language/turn.h"
#include "repl/language/watch.h"
#include "repl/notebook/lookup.h"
#include "repl/notebook/report_find.h"

enum { LOOKED_MOST = 1 << 22, LOOKED_EACH = 1 << 16 }; // elements that are looked at for NaN: in all, of one tensor
enum { KNOWN = 4096, NAMES = 1024 };

typedef struct name { const void *key; uint32_t at; } name; // of an op or a Variable

typedef struct making {
  td_interpreter *interpreter;
  const td_tape *tape;
  td_report_tape *report;
  td_text texts;
  name names[NAMES];       // open addressing by hash; a full neighbourhood writes its text again
  td_place place;          // of the source that came last
  uint32_t *places;        // open addressing: source index + 1
  td_place *place_keys;
  uint32_t place_capacity;
  const td_storage *known[KNOWN]; // that were looked at
  uint8_t marks[KNOWN];
  int64_t looked, input_count, input_capacity, shape_count, shape_capacity, source_capacity;
  bool failed;
} making;

// ---- growing ----

static bool room(making *m, void *array, int64_t *capacity, int64_t wanted, size_t size) { // array: of void *
  if (wanted <= *capacity) return true;
  int64_t next = *capacity * 2 > wanted ? *capacity * 2 : wanted + 64;
  void **place = array, *grown = td_memory_resize(*place, (size_t)next * size);
  if (!grown) return m->failed = true, false;
  *place = grown;
  *capacity = next;
  return true;
}

static uint32_t add_text(making *m, const char *bytes, size_t length) {
  uint32_t at = (uint32_t)m->texts.length;
  td_text_add_bytes(&m->texts, bytes, length);
  td_text_add_char(&m->texts, 0);
  return at;
}

static uint32_t hash(uint64_t key) { return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40); }

static uint32_t name_of(making *m, const void *key, const char *text) {
  name *slot = &m->names[hash((uintptr_t)key) % NAMES];
  if (slot->key != key) *slot = (name){key, add_text(m, text, strlen(text))};
  return slot->at;
}

static uint32_t op_name_of(making *m, const td_record *record) {
  const void *key = td_record_is_derived(record) ? (const void *)record->of->params : record->op;
  const name *slot = &m->names[hash((uintptr_t)key) % NAMES];
  return slot->key == key ? slot->at : name_of(m, key, td_record_name_of(record).text);
}

// ---- where the code stands ----

static void describe_source(making *m, td_place place) {
  td_report_tape *r = m->report;
  if (!room(m, &r->sources, &m->source_capacity, r->source_count + 1, sizeof *r->sources)) return;
  td_tape_source *source = &r->sources[r->source_count++];
  *source = (td_tape_source){0};
  const td_script *script = td_source_find(&m->interpreter->sources, place);
  int line = 0, column = 0, length = 0;
  const char *code = "";
  if (script) {
    td_source_position(script, (uint32_t)place, &line, &column);
    code = td_source_line(script, line, &length);
    while (length && (*code == ' ' || *code == '\t')) code++, length--;
  }
  source->name = add_text(m, script ? script->name : "", script ? strlen(script->name) : 0);
  source->text = add_text(m, code, (size_t)length);
  source->line = line;
  source->column = column;
}

static bool grow_places(making *m) {
  uint32_t capacity = m->place_capacity ? m->place_capacity * 2 : 256;
  uint32_t *places = td_memory_new_zero(capacity * sizeof *places);
  td_place *keys = td_memory_new_zero(capacity * sizeof *keys);
  for (uint32_t i = 0; places && keys && i < m->place_capacity; i++) {
    if (!m->places[i]) continue;
    uint32_t at = hash(m->place_keys[i]) & (capacity - 1);
    while (places[at]) at = (at + 1) & (capacity - 1);
    places[at] = m->places[i];
    keys[at] = m->place_keys[i];
  }
  bool ok = places && keys;
  td_memory_free(ok ? m->places : places);
  td_memory_free(ok ? m->place_keys : keys);
  if (!ok) return m->failed = true, false;
  m->places = places;
  m->place_keys = keys;
  m->place_capacity = capacity;
  return true;
}

static uint32_t source_of(making *m, td_place place) {
  if (2 * m->report->source_count >= m->place_capacity && !grow_places(m)) return 0;
  uint32_t at = hash(place) & (m->place_capacity - 1);
  while (m->places[at] && m->place_keys[at] != place) at = (at + 1) & (m->place_capacity - 1);
  if (!m->places[at]) {
    describe_source(m, place);
    m->places[at] = (uint32_t)m->report->source_count;
    m->place_keys[at] = place;
  }
  return m->places[at] - 1;
}

// ---- NaN and infinities ----

static uint8_t look(making *m, const td_tensor *t) {
  if (!td_dtype_is_float(t->dtype) || t->flags & TD_TENSOR_BATCHED) return 0;
  uint32_t slot = hash((uintptr_t)t->storage) % KNOWN;
  if (m->known[slot] == t->storage) return m->marks[slot];
  if (m->looked + t->size > LOOKED_MOST) return m->report->complete = false, 0;
  td_probe s;
  td_probe_take(t, LOOKED_EACH, &s);
  m->looked += s.count;
  if (s.step > 1) m->report->complete = false;
  m->known[slot] = t->storage;
  return m->marks[slot] = (uint8_t)((s.nans ? TD_TAPE_ROW_NAN : 0) | (s.infinities ? TD_TAPE_ROW_INFINITE : 0));
}

static void mark_values(making *m, const td_record *record, td_tape_row *row, const int32_t *inputs) {
  for (int i = 0; record->saved && i < record->in_count; i++)
    if (inputs[i] >= 0 && record->saved[i]) m->report->rows[inputs[i]].flags |= look(m, record->saved[i]);
  for (int i = 0; record->saved && i < record->out_count; i++)
    if (record->saved[record->in_count + i]) row->flags |= look(m, record->saved[record->in_count + i]);
}

// ---- rows ----

static uint32_t add_shape(making *m, const td_meta *meta) {
  if (!room(m, &m->report->shapes, &m->shape_capacity, m->shape_count + meta->rank, sizeof(int64_t))) return 0;
  uint32_t at = (uint32_t)m->shape_count;
  if (meta->rank) memcpy(m->report->shapes + at, meta->shape, meta->rank * sizeof(int64_t));
  m->shape_count += meta->rank;
  return at;
}

static void fill_common(making *m, const td_record *record, td_tape_row *row) {
  const td_meta *meta = &record->out_meta[0];
  *row = (td_tape_row){.first_input = (uint32_t)m->input_count,
                       .shape = add_shape(m, meta),
                       .source = source_of(m, record->place),
                       .output_count = (uint8_t)record->out_count,
                       .rank = meta->rank,
                       .dtype = meta->dtype,
                       .gradient = -1,
                       .seconds = -1};
}

static void fill_record(making *m, int64_t index) {
  const td_record *record = td_tape_record_at(m->tape, index);
  td_report_tape *r = m->report;
  td_tape_row *row = &r->rows[index];
  fill_common(m, record, row);
  row->op = op_name_of(m, record);
  row->bytes = td_record_bytes(record);
  row->seconds = record->seconds;
  row->gradient = record->cotangent_norm;
  row->flags = (record->keepers ? TD_TAPE_ROW_KEPT : 0) | (record->glanced ? TD_TAPE_ROW_GLANCED : 0);
  r->bytes += row->bytes;
  if (!room(m, &r->inputs, &m->input_capacity, m->input_count + record->in_count, sizeof *r->inputs)) return;
  row->input_count = record->in_count;
  int32_t *inputs = r->inputs + m->input_count;
  m->input_count += record->in_count;
  for (int i = 0; i < record->in_count; i++) {
    const td_record *parent = record->parents ? record->parents[i] : NULL;
    inputs[i] = parent ? (int32_t)td_tape_find_row(m->tape, parent, index) : -1;
  }
  mark_values(m, record, row, inputs);
}

static void fill_leaf(making *m, int64_t index) {
  const td_record *record = td_tape_leaf_at(m->tape, index - m->report->record_count);
  td_tape_row *row = &m->report->rows[index];
  const td_variable *v = record->variable ? td_variable_find(record->variable) : NULL;
  uint16_t marks = row->flags; // from records that saved it
  fill_common(m, record, row);
  row->flags = marks | TD_TAPE_ROW_LEAF | (record->glanced ? TD_TAPE_ROW_GLANCED : 0);
  row->gradient = record->cotangent_norm;
  row->op = v && *v->name ? add_text(m, v->name, strlen(v->name)) : name_of(m, "watched", v ? "Variable" : "watched");
}

static void mark_first(td_report_tape *r) {
  for (int64_t i = 0; i < r->record_count; i++) {
    if (!(r->rows[i].flags & (TD_TAPE_ROW_NAN | TD_TAPE_ROW_INFINITE))) continue;
    r->rows[i].flags |= TD_TAPE_ROW_FIRST;
    return;
  }
}

static void mark_visited(making *m) {
  td_report_tape *r = m->report;
  for (int64_t i = r->record_count; i-- > 0;) {
    td_tape_row *row = &r->rows[i];
    if (td_tape_was_target(m->tape, td_tape_record_at(m->tape, i))) row->flags |= TD_TAPE_ROW_VISITED;
    if (!(row->flags & TD_TAPE_ROW_VISITED)) continue;
    for (int k = 0; k < row->input_count; k++) {
      int32_t input = r->inputs[row->first_input + k];
      if (input >= 0) r->rows[input].flags |= TD_TAPE_ROW_VISITED;
    }
  }
}

static void mark_gradients(td_report_tape *r) { // a pass runs from the last record to the first, and ends in leaves
  const double vanished = 1e-8, exploded = 1e3; // as %health has it
  double largest = 0;
  for (int64_t i = 0; i < r->count; i++) {
    td_tape_row *row = &r->rows[i < r->record_count ? r->record_count - 1 - i : i];
    if (row->gradient < 0) continue;
    if ((double)row->gradient > exploded) row->flags |= TD_TAPE_ROW_EXPLODED;
    bool known = !(row->flags & TD_TAPE_ROW_GLANCED); // a few zeros are no proof
    if (known && (double)row->gradient < vanished * largest) row->flags |= TD_TAPE_ROW_VANISHED;
    if (isfinite(row->gradient)) largest = fmax(largest, (double)row->gradient);
  }
}

// ---- the report ----

static void release(td_payload *payload) {
  td_report_tape *r = (td_report_tape *)payload;
  td_memory_free(r->title);
  td_memory_free(r->rows);
  td_memory_free(r->inputs);
  td_memory_free(r->shapes);
  td_memory_free(r->sources);
  td_memory_free(r->texts);
  td_memory_free(r);
}

static bool fill(making *m) {
  td_report_tape *r = m->report;
  r->record_count = td_tape_length(m->tape);
  r->count = r->record_count + td_tape_leaf_count(m->tape);
  r->rows = td_memory_new_zero((size_t)(r->count + 1) * sizeof *r->rows);
  for (int64_t i = 0; r->rows && i < r->record_count && !m->failed; i++) fill_record(m, i);
  for (int64_t i = r->record_count; r->rows && i < r->count && !m->failed; i++) fill_leaf(m, i);
  if (!r->rows || m->failed) return false;
  mark_visited(m);
  mark_gradients(r);
  mark_first(r);
  for (int64_t i = 0; i < r->record_count; i++) r->spent = i ? r->spent && !(r->rows[i].flags & TD_TAPE_ROW_KEPT)
                                                            : !(r->rows[i].flags & TD_TAPE_ROW_KEPT);
  add_text(m, "", 0);
  r->texts = td_text_take(&m->texts);
  return r->texts != NULL;
}

td_payload *td_report_tape_make(td_interpreter *I, const char *argument) {
  td_watch_ask_tapes(I);
  td_found_tape found = td_tape_find(I, argument);
  if (!found.tape) return NULL;
  making *m = td_memory_new_zero(sizeof *m);
  td_report_tape *r = m ? td_memory_new_zero(sizeof *r) : NULL;
  bool ok = r != NULL;
  if (ok) {
    r->payload = (td_payload){release, TD_REPORT_TAPE};
    r->title = td_memory_text(found.name);
    r->open = found.open;
    r->complete = true;
    m->interpreter = I;
    m->tape = found.tape;
    m->report = r;
    ok = r->title && fill(m);
  }
  if (m) {
    td_text_clear(&m->texts);
    td_memory_free(m->places);
    td_memory_free(m->place_keys);
  }
  td_memory_free(m);
  td_tape_found_end(I, &found);
  if (ok) return &r->payload;
  if (r) release(&r->payload);
  td_raise_memory(I);
  return NULL;
}
