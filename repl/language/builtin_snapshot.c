// Snapshots of all Variables. Tensors are values, so a snapshot copies none: it holds references, and costs memory only
// where a Variable has changed since.
#include <stdlib.h>

#include "engine/base/memory.h"
#include "engine/tensor/living.h"
#include "repl/language/core.h"
#include "repl/language/tensors.h"

typedef struct kept {
  uint64_t id; // of the Variable, which the snapshot doesn't keep alive
  td_tensor *value;
} kept;

typedef struct snapshot {
  td_object object;
  kept *at; // by id
  int64_t count, capacity;
  uint64_t newest; // id
  bool failed;
} snapshot;

static void keep(void *owner, td_variable *v) { // those that are newer than the ones it has
  snapshot *s = owner;
  if (v->id <= s->newest) return;
  if (s->count == s->capacity) {
    s->failed = true; // a Variable was made between the count and the walk
    return;
  }
  s->at[s->count++] = (kept){v->id, td_tensor_ref(v->value)};
}

static int by_id(const void *a, const void *b) {
  uint64_t x = ((const kept *)a)->id, y = ((const kept *)b)->id;
  return (x > y) - (x < y);
}

static void release(td_object *object) {
  snapshot *s = (snapshot *)object;
  for (int64_t i = 0; i < s->count; i++) td_tensor_unref(s->at[i].value);
  td_memory_free(s->at);
}

static const td_type snapshot_type;

static bool add_living(td_interpreter *I, snapshot *s) {
  int64_t capacity = s->count + td_variable_count() + 64;
  kept *at = td_memory_resize(s->at, (size_t)capacity * sizeof *at);
  if (at) {
    s->at = at;
    s->capacity = capacity;
    td_variable_each(keep, s);
  }
  if (!at || s->failed) return td_raise_memory(I), false;
  qsort(s->at, (size_t)s->count, sizeof *s->at, by_id);
  s->newest = s->count ? s->at[s->count - 1].id : 0;
  return true;
}

static td_value builtin_variable_snapshot(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self, (void)arguments;
  snapshot *s = td_object_new(I, &snapshot_type, sizeof *s);
  if (!s) return TD_NIL;
  if (add_living(I, s)) return td_from(s);
  td_unref(td_from(s));
  return TD_NIL;
}

static td_value snapshot_add_new(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return add_living(I, (snapshot *)self.o) ? TD_NONE : TD_NIL;
}

static td_value snapshot_restore(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  const snapshot *s = (const snapshot *)self.o;
  for (int64_t i = 0; i < s->count; i++) {
    td_variable *v = td_variable_find(s->at[i].id);
    if (v && v->value != s->at[i].value && td_variable_assign(I->context, v, s->at[i].value) != TD_OK)
      return td_raise_engine(I);
  }
  return TD_NONE;
}

// The storage of an id in a later snapshot, or in the Variable now; NULL: it is gone.
static const td_storage *later_storage(const snapshot *later, uint64_t id) {
  if (!later) {
    const td_variable *v = td_variable_find(id);
    return v ? v->value->storage : NULL;
  }
  const kept *found = bsearch(&(kept){.id = id}, later->at, (size_t)later->count, sizeof *later->at, by_id);
  return found ? found->value->storage : NULL;
}

static td_value snapshot_bytes(td_interpreter *I, td_value self, td_value *arguments) {
  const snapshot *s = (const snapshot *)self.o;
  const snapshot *later = td_is(arguments[0], &snapshot_type) ? (const snapshot *)arguments[0].o : NULL;
  if (!later && !td_is_none(arguments[0]))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "bytes: needs a later variable_snapshot or None, not %s",
                    td_type_name(I, arguments[0]));
  int64_t bytes = 0;
  for (int64_t i = 0; i < s->count; i++)
    if (later_storage(later, s->at[i].id) != s->at[i].value->storage) bytes += s->at[i].value->storage->bytes;
  return td_int(bytes);
}

static const td_method methods[] = {
    {"restore", "()", snapshot_restore, "Gives the Variables that live their values back."},
    {"add_new", "()", snapshot_add_new, "Takes in the Variables that were made after it."},
    {"bytes", "(later=None)", snapshot_bytes,
     "Bytes of the values that a later snapshot (None: the session now) doesn't share."},
    {NULL, NULL, NULL, NULL}};

static const td_type snapshot_type = {.name = "variable_snapshot",
                                      .size = sizeof(snapshot),
                                      .release = release,
                                      .methods = methods,
                                      .doc = "Values of all Variables; variable_snapshot() makes one."};

// ---- living objects ----

static td_value builtin_live_instances(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is_class(arguments[0]))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "live_instances: needs a class, not %s", td_type_name(I, arguments[0]));
  td_list *found = td_list_new(I, 8);
  for (td_container *c = I->containers.next; found && c != &I->containers; c = c->next) {
    td_value v = td_borrow(c);
    if (!td_is_instance(v) || !td_class_is_subclass(td_as_instance(v)->class, td_as_class(arguments[0]))) continue;
    if (td_list_append(I, found, v)) continue;
    td_unref(td_from(found));
    return TD_NIL;
  }
  return td_from(found);
}

const td_method td_snapshot_builtins[] = {
    {"variable_snapshot", "()", builtin_variable_snapshot,
     "The values of all Variables, to be restored later: s = variable_snapshot(); s.restore().\n\n"
     "It takes memory only for values that change after it."},
    {"live_instances", "(cls)", builtin_live_instances,
     "The objects of a class of the language, and of those under it, that are in memory now."},
    {NULL, NULL, NULL, NULL}};
