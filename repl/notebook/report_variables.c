// See report_variables.h. The rows are gathered with offsets into one text, which become pointers at the end.
#include "repl/notebook/report_variables.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tensor/probe.h"
#include "repl/language/core.h"
#include "repl/language/watch.h"
#include "repl/notebook/lookup.h"

enum { ROWS_MOST = 20000, DEPTH_MOST = 12, ITEMS_MOST = 10000, SAMPLE = 4096, VALUE_BYTES = 60, PATH_BYTES = 256 };
enum { GONE = -1 };
static const double BUDGET = 0.01; // seconds

typedef struct met { // an object that was met
  const void *object;
  int64_t row;           // a Variable's
  int rank;              // of its path: the least is the best one
} met;

typedef struct objects { // open addressing
  met *at;
  size_t count, capacity;
} objects;

typedef struct gathering {
  td_interpreter *interpreter;
  td_variable_row *rows; // their texts are offsets
  int64_t count, capacity;
  td_text texts;
  objects seen;          // of this name, that were gone into
  objects variables;     // of all names
  td_str *record, *name, *weights, *slots; // "_layer" and two of its attributes; "_slots"
  int in_optimizer, in_slots;
  const char *wanted;    // path of the only one that is looked for; NULL: all
  td_value found;        // borrowed
  double ends;
  bool complete;
} gathering;

typedef struct report { // with what it owns
  td_report_variables public;
  char *texts;
} report;

static bool is_over(gathering *g) {
  if (g->count < ROWS_MOST && td_report_seconds() < g->ends) return false;
  g->complete = false;
  return true;
}

// ---- a set of objects ----

static met *place_of(const objects *set, const void *object) {
  size_t at = (size_t)(((uintptr_t)object >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (set->capacity - 1);
  while (set->at[at].object && set->at[at].object != object) at = (at + 1) & (set->capacity - 1);
  return &set->at[at];
}

static bool grow(objects *set) {
  objects grown = {.count = set->count, .capacity = set->capacity ? set->capacity * 2 : 256};
  grown.at = td_memory_new_zero(grown.capacity * sizeof *grown.at);
  if (!grown.at) return false;
  for (size_t i = 0; i < set->capacity; i++)
    if (set->at[i].object) *place_of(&grown, set->at[i].object) = set->at[i];
  td_memory_free(set->at);
  *set = grown;
  return true;
}

static met *meet_object(objects *set, const void *object, bool *is_new) { // NULL: no memory
  if (2 * set->count >= set->capacity && !grow(set)) return NULL;
  met *m = place_of(set, object);
  *is_new = !m->object;
  if (*is_new) set->count++;
  m->object = object;
  return m;
}

static bool is_new(gathering *g, const void *object) { // false also without memory: then it is left out
  bool fresh;
  return meet_object(&g->seen, object, &fresh) && fresh;
}

static void forget(objects *set) {
  if (set->at) memset(set->at, 0, set->capacity * sizeof *set->at);
  set->count = 0;
}

// ---- a row ----

static const char *offset(gathering *g, size_t at) {
  td_text_add_char(&g->texts, 0);
  return (const char *)(uintptr_t)at;
}

static const char *text(gathering *g, const char *bytes) {
  size_t at = g->texts.length;
  td_text_add(&g->texts, bytes);
  return offset(g, at);
}

static void add_numbers(gathering *g, td_variable_row *row, const td_tensor *t) {
  if (!td_dtype_is_float(t->dtype) || is_over(g)) return;
  td_probe s;
  td_probe_take(t, SAMPLE, &s);
  double part = s.count ? (double)t->size / (double)s.count : 0;
  row->sampled = s.step > 1;
  row->norm = td_probe_norm(t, &s);
  row->nans = llround((double)s.nans * part);
  row->infinities = llround((double)s.infinities * part);
  row->zeros = s.count ? (double)s.zeros / (double)s.count : 0;
}

static void add_gradient(gathering *g, td_variable_row *row, td_variable *v) {
  if (v->grad) td_watch_gradient(g->interpreter, v, v->grad);
  row->trainable = v->trainable;
  row->gradient_norm = v->gradient_norm;
  row->gradient_glanced = v->gradient_glanced;
  row->gradient_zeros = v->gradient_zeros;
  row->update_ratio = v->update_ratio;
}

static void add_tensor(gathering *g, td_variable_row *row, const td_tensor *t) {
  size_t at = g->texts.length;
  td_shape_print(&g->texts, t->rank, t->shape);
  row->shape = offset(g, at);
  row->dtype = text(g, td_dtype_name(t->dtype));
  row->device = text(g, "cpu");
  row->elements = t->size;
  row->bytes = t->size * td_dtype_bytes(t->dtype);
  if (!(t->flags & TD_TENSOR_BATCHED)) add_numbers(g, row, t);
}

static td_variable_row *new_row(gathering *g) {
  if (g->count == g->capacity) {
    int64_t capacity = g->capacity ? g->capacity * 2 : 64;
    td_variable_row *grown = td_memory_resize(g->rows, (size_t)capacity * sizeof *grown);
    if (!grown) return g->complete = false, NULL;
    g->rows = grown;
    g->capacity = capacity;
  }
  td_variable_row *row = &g->rows[g->count++];
  *row = (td_variable_row){.bytes = -1, .elements = -1, .nans = -1, .infinities = -1};
  row->norm = row->zeros = row->gradient_norm = row->gradient_zeros = row->update_ratio = NAN;
  return row;
}

static void add_row(gathering *g, const char *path, td_value v, int depth) {
  td_variable_row *row = new_row(g);
  if (!row) return;
  row->depth = depth;
  row->slot = g->in_slots > 0;
  row->path = text(g, path);
  row->type = text(g, td_type_name(g->interpreter, v));
  size_t at = g->texts.length;
  td_report_value(g->interpreter, v, VALUE_BYTES, &g->texts);
  row->value = offset(g, at);
  row->shape = row->dtype = row->device = text(g, "");
  const td_tensor *t = td_tensor_of(v);
  if (t) add_tensor(g, row, t);
  if (td_is(v, &td_variable_type)) add_gradient(g, row, td_unbox_variable(v));
}

// ---- what is inside ----

static void go_into(gathering *g, const char *path, td_value v, int depth);

static void join(char path[PATH_BYTES], const char *outer, const char *name) {
  while (*name == '_') name++;
  snprintf(path, PATH_BYTES, "%s/%s", outer, name);
}

static int rank_of(const gathering *g, const char *path) {
  int parts = 0;
  for (; *path; path++) parts += *path == '/';
  return parts + (g->in_optimizer ? PATH_BYTES : 0);
}

static void move_row(gathering *g, int64_t from, const char *path, int depth) { // to the end, with another path
  td_variable_row *row = new_row(g);
  if (!row) return;
  *row = g->rows[from];
  row->path = text(g, path);
  row->depth = depth;
  row->slot = g->in_slots > 0;
  g->rows[from].depth = GONE;
}

static void meet_variable(gathering *g, const char *path, td_value v, int depth) {
  bool fresh;
  int rank = rank_of(g, path);
  if (g->wanted) {
    if (strcmp(path, g->wanted) == 0) g->found = v;
    return;
  }
  met *m = meet_object(&g->variables, td_unbox_variable(v), &fresh);
  if (!m || (!fresh && m->rank <= rank)) return;
  if (fresh) add_row(g, path, v, depth);
  else move_row(g, m->row, path, depth);
  m->row = g->count - 1;
  m->rank = rank;
}

static void meet(gathering *g, const char *path, td_value v, int depth) {
  if (v.tag != TD_TAG_OBJECT || is_over(g)) return;
  if (td_is(v, &td_variable_type)) meet_variable(g, path, v, depth);
  else go_into(g, path, v, depth);
}

static td_dict *record_of(gathering *g, td_value v) { // what a layer remembers of itself; NULL: it is none
  if (!td_is_instance(v) || !td_as_instance(v)->attributes) return NULL;
  td_value record = td_dict_get_str(td_as_instance(v)->attributes, g->record);
  return td_is_instance(record) ? td_as_instance(record)->attributes : NULL;
}

static void meet_item(gathering *g, const char *path, int64_t index, td_value v, int depth) { // layers have names
  char inner[PATH_BYTES], number[24];
  td_dict *record = record_of(g, v);
  td_value name = record ? td_dict_get_str(record, g->name) : TD_NIL;
  snprintf(number, sizeof number, "%lld", (long long)index);
  join(inner, path, td_is(name, &td_str_type) ? td_as_str(name)->data : number);
  meet(g, inner, v, depth);
}

static void meet_key(gathering *g, const char *path, td_value key, td_value v, int depth) {
  char inner[PATH_BYTES];
  td_text name = {0};
  if (td_is(key, &td_variable_type)) td_text_add(&name, td_unbox_variable(key)->name);
  if (td_is(key, &td_str_type)) td_text_add(&name, td_as_str(key)->data);
  if (!name.length) td_report_value(g->interpreter, key, 24, &name);
  join(inner, path, name.data ? name.data : "");
  meet(g, inner, v, depth);
  td_text_clear(&name);
}

static void meet_weights(gathering *g, const char *path, td_dict *record, int depth) { // those that no attribute holds
  td_value weights = td_dict_get_str(record, g->weights);
  for (int64_t i = 0; td_is(weights, &td_list_type) && i < td_as_list(weights)->count; i++) {
    td_value v = td_as_list(weights)->items[i];
    if (!td_is(v, &td_variable_type)) continue;
    const char *name = td_unbox_variable(v)->name, *last = strrchr(name, '/');
    char inner[PATH_BYTES];
    join(inner, path, last ? last + 1 : name);
    meet(g, inner, v, depth);
  }
}

static void go_into_instance(gathering *g, const char *path, td_value v, int depth) {
  td_dict *attributes = td_as_instance(v)->attributes, *record = record_of(g, v);
  int64_t position = 0;
  td_value key, value;
  bool optimizer = attributes && !td_is_nil(td_dict_get_str(attributes, g->slots));
  g->in_optimizer += optimizer;
  while (attributes && td_dict_next(attributes, &position, &key, &value)) {
    char inner[PATH_BYTES];
    if (!td_is(key, &td_str_type) || td_as_str(key) == g->record) continue;
    join(inner, path, td_as_str(key)->data);
    bool list = td_is(value, &td_list_type) && record, slots = td_as_str(key) == g->slots;
    g->in_slots += slots;
    meet(g, list ? path : inner, value, depth); // the layers of a model stand right under it
    g->in_slots -= slots;
  }
  if (record) meet_weights(g, path, record, depth);
  g->in_optimizer -= optimizer;
}

static void go_into(gathering *g, const char *path, td_value v, int depth) {
  bool list = td_is(v, &td_list_type), tuple = td_is(v, &td_tuple_type), dict = td_is(v, &td_dict_type);
  if ((!list && !tuple && !dict && !td_is_instance(v)) || depth > DEPTH_MOST || !is_new(g, v.o)) return;
  if (td_is_instance(v)) {
    go_into_instance(g, path, v, depth + 1);
    return;
  }
  int64_t count = list ? td_as_list(v)->count : tuple ? td_as_tuple(v)->count : 0, position = 0;
  for (int64_t i = 0; i < count && i < ITEMS_MOST; i++)
    meet_item(g, path, i, list ? td_as_list(v)->items[i] : td_as_tuple(v)->items[i], depth + 1);
  td_value key, value;
  for (int64_t i = 0; dict && i < ITEMS_MOST && td_dict_next(td_as_dict(v), &position, &key, &value); i++)
    meet_key(g, path, key, value, depth + 1);
}

static void add_variable_name(gathering *g, const char *name, td_value v) { // names stay, whatever else leads to it
  bool fresh;
  met *m = meet_object(&g->variables, td_unbox_variable(v), &fresh);
  if (m && !fresh && g->rows[m->row].depth > 0) g->rows[m->row].depth = GONE;
  add_row(g, name, v, 0);
  if (m) *m = (met){m->object, g->count - 1, 0};
}

static void add_name(gathering *g, const char *name, td_value v) {
  forget(&g->seen);
  if (td_is(v, &td_variable_type)) {
    add_variable_name(g, name, v);
    return;
  }
  add_row(g, name, v, 0);
  go_into(g, name, v, 0);
}

// ---- the report ----

static void gather_all(gathering *g) {
  const td_module *main = g->interpreter->main;
  for (int i = 0; i < main->count && !is_over(g); i++) {
    const td_global *global = main->globals[i];
    if (!td_is_nil(global->value) && global->name->data[0] != '_') add_name(g, global->name->data, global->value);
  }
}

static void release(td_payload *payload) {
  report *r = (report *)payload;
  td_memory_free(r->public.rows);
  td_memory_free(r->texts);
  td_memory_free(r);
}

static void point(report *r) { // offsets become pointers
  for (int64_t i = 0; i < r->public.count; i++) {
    td_variable_row *row = &r->public.rows[i];
    const char **texts[] = {&row->path, &row->type, &row->shape, &row->dtype, &row->device, &row->value};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) *texts[k] = r->texts + (uintptr_t)*texts[k];
  }
}

static void drop_gone(gathering *g) {
  int64_t kept = 0;
  for (int64_t i = 0; i < g->count; i++)
    if (g->rows[i].depth != GONE) g->rows[kept++] = g->rows[i];
  g->count = kept;
}

static td_payload *finish(gathering *g) {
  drop_gone(g);
  td_text_add_char(&g->texts, 0);
  report *r = g->texts.failed ? NULL : td_memory_new(sizeof *r);
  char *texts = r ? td_text_take(&g->texts) : NULL;
  td_text_clear(&g->texts);
  if (!texts) {
    td_memory_free(r);
    td_memory_free(g->rows);
    return td_raise_memory(g->interpreter), NULL;
  }
  *r = (report){{{release, TD_REPORT_VARIABLES}, g->rows, g->count, g->complete}, texts};
  point(r);
  return &r->public.payload;
}

static bool open_gathering(gathering *g) {
  td_interpreter *I = g->interpreter;
  g->record = td_str_intern(I, "_layer", 6);
  g->name = td_str_intern(I, "name", 4);
  g->weights = td_str_intern(I, "weights", 7);
  g->slots = td_str_intern(I, "_slots", 6);
  return g->record && g->name && g->weights && g->slots;
}

static void close_gathering(gathering *g) {
  td_unref(td_from(g->record));
  td_unref(td_from(g->name));
  td_unref(td_from(g->weights));
  td_unref(td_from(g->slots));
  td_memory_free(g->seen.at);
  td_memory_free(g->variables.at);
}

td_payload *td_report_variables_make(td_interpreter *I, const char *argument) {
  gathering g = {.interpreter = I, .complete = true, .ends = td_report_seconds() + BUDGET};
  td_payload *payload = NULL;
  td_watch_ask(I);
  td_value v = *argument ? td_lookup_path(I, argument, strlen(argument)) : TD_NONE;
  if (td_is_nil(v) && td_is_nil(I->raised)) td_raise(I, TD_CLASS_NAME_ERROR, "nothing is named %.60s", argument);
  if (!td_is_nil(v) && open_gathering(&g)) {
    if (*argument) add_name(&g, argument, v);
    else gather_all(&g);
    payload = finish(&g);
  }
  close_gathering(&g);
  td_unref(v);
  return payload;
}

// ---- one value ----

td_value td_report_find(td_interpreter *I, const char *path) {
  size_t length = strcspn(path, "/");
  td_value v = td_lookup_path(I, path, length);
  gathering g = {.interpreter = I, .wanted = path, .found = TD_NIL, .ends = td_report_seconds() + BUDGET};
  char name[PATH_BYTES];
  snprintf(name, sizeof name, "%.*s", (int)length, path);
  if (!td_is_nil(v) && path[length]) {
    if (open_gathering(&g)) go_into(&g, name, v, 0);
    td_ref(g.found);
    close_gathering(&g);
    td_unref(v);
    v = g.found;
  }
  if (td_is_nil(v) && td_is_nil(I->raised)) td_raise(I, TD_CLASS_NAME_ERROR, "nothing is named %.60s", path);
  return v;
}
