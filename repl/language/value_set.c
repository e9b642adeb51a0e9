// set: an open-addressed table of its own. Sizes, probing and growth are CPython's, so that sets of numbers, whose
// hashes are CPython's too, are iterated and printed in the same order as under python3. Keys are compared with user
// code that may change the set: whoever compared looks at version and starts again.
#include "repl/language/builtins.h"

typedef struct slot {
  uint64_t hash;
  td_value key;
} slot; // key NIL: free when hash is 0, removed otherwise

enum { FEWEST_SLOTS = 8, NEAR_PROBES = 9 };

struct td_set {
  td_container container;
  int64_t count, filled; // filled: removed ones too
  uint64_t mask;
  slot *slots; // mask + 1; NULL while nothing was ever added
  uint64_t finger; // where pop() goes on
  uint32_t version;
};
typedef struct set_iterator {
  td_container container;
  td_set *set;
  uint64_t position;
  int64_t count;
} set_iterator;

static td_set *as_set(td_value v) { return (td_set *)v.o; }
static td_value of(td_set *set) { return (td_value){.tag = TD_TAG_OBJECT, .o = &set->container.object}; }
static inline bool is_free(const slot *s) { return td_is_nil(s->key) && s->hash == 0; }

int64_t td_set_count(const td_set *set) { return set->count; }

td_set *td_set_new(td_interpreter *I) {
  td_set *set = td_object_new(I, &td_set_type, sizeof *set);
  if (set) set->mask = FEWEST_SLOTS - 1;
  return set;
}

// ---- the table ----
static void insert_clean(slot *slots, uint64_t mask, uint64_t hash,
                         td_value key) { // key is not there, nothing was removed
  uint64_t rest = hash, i = hash & mask;
  for (;;) {
    uint64_t last = i + NEAR_PROBES <= mask ? i + NEAR_PROBES : i;
    for (uint64_t at = i; at <= last; at++)
      if (td_is_nil(slots[at].key)) {
        slots[at] = (slot){hash, key};
        return;
      }
    rest >>= 5;
    i = (i * 5 + 1 + rest) & mask;
  }
}

static bool resize(td_interpreter *I, td_set *set, int64_t beyond) {
  uint64_t size = FEWEST_SLOTS;
  while (size <= (uint64_t)beyond) size *= 2;
  size_t bytes;
  slot *slots = __builtin_mul_overflow(size, sizeof *slots, &bytes) ? NULL : td_memory_new_zero(bytes);
  if (!slots) {
    td_raise_memory(I);
    return false;
  }
  for (uint64_t i = 0; set->slots && i <= set->mask; i++)
    if (!td_is_nil(set->slots[i].key)) insert_clean(slots, size - 1, set->slots[i].hash, set->slots[i].key);
  td_memory_free(set->slots);
  set->slots = slots;
  set->mask = size - 1;
  set->filled = set->count;
  set->version++;
  return true;
}

// The slot of key, or the free one that ends the search; NULL: exception. *removed: the last removed one that was
// passed.
static slot *find(td_interpreter *I, td_set *set, td_value key, uint64_t hash, slot **removed) {
again:;
  *removed = NULL;
  uint64_t rest = hash, i = hash & set->mask, version = set->version;
  for (;;) {
    uint64_t last = i + NEAR_PROBES <= set->mask ? i + NEAR_PROBES : i;
    for (uint64_t at = i; at <= last; at++) {
      slot *s = &set->slots[at];
      if (is_free(s)) return s;
      if (td_is_nil(s->key)) *removed = s;
      if (s->hash != hash || td_is_nil(s->key)) continue;
      if (s->key.tag == key.tag && s->key.i == key.i) return s;
      td_value other = td_ref(s->key);
      int equal = td_equal_values(I, other, key);
      td_unref(other);
      if (equal < 0) return NULL;
      if (set->version != version) goto again;
      if (equal) return s;
    }
    rest >>= 5;
    i = (i * 5 + 1 + rest) & set->mask;
  }
}

static bool add_hashed(td_interpreter *I, td_set *set, td_value key, uint64_t hash) {
  if (!set->slots && !resize(I, set, 0)) return false;
  slot *removed, *s = find(I, set, key, hash, &removed);
  if (!s) return false;
  if (!td_is_nil(s->key)) return true;
  if (removed) {
    *removed = (slot){hash, td_ref(key)};
    set->count++;
    set->version++;
    return true;
  }
  bool grows = (uint64_t)(set->filled + 1) * 5 >= set->mask * 3;
  *s = (slot){hash, td_ref(key)};
  set->filled++;
  set->count++;
  set->version++;
  if (!grows || resize(I, set, set->count > 50000 ? set->count * 2 : set->count * 4)) return true;
  s->key = TD_NIL; // no memory: as it was before
  s->hash = 0;
  set->filled--;
  set->count--;
  td_unref(key);
  return false;
}

bool td_set_add(td_interpreter *I, td_set *set, td_value item) {
  uint64_t hash;
  return td_hash(I, item, &hash) && add_hashed(I, set, item, hash);
}

static int has_hashed(td_interpreter *I, td_set *set, td_value item, uint64_t hash) {
  if (!set->slots) return 0;
  slot *removed, *s = find(I, set, item, hash, &removed);
  return s ? !td_is_nil(s->key) : -1;
}

int td_set_has(td_interpreter *I, td_set *set, td_value item) {
  uint64_t hash;
  return td_hash(I, item, &hash) ? has_hashed(I, set, item, hash) : -1;
}

static int discard_hashed(td_interpreter *I, td_set *set, td_value item, uint64_t hash) {
  if (!set->slots) return 0;
  slot *removed, *s = find(I, set, item, hash, &removed);
  if (!s || td_is_nil(s->key)) return s ? 0 : -1;
  td_value key = s->key;
  *s = (slot){UINT64_MAX, TD_NIL};
  set->count--;
  set->version++;
  td_unref(key);
  return 1;
}

// A set is looked up without a hash: none is an element of another, which Python would ask of its frozen twin.
static int discard(td_interpreter *I, td_set *set, td_value item) {
  uint64_t hash;
  if (td_is(item, &td_set_type)) return 0;
  return td_hash(I, item, &hash) ? discard_hashed(I, set, item, hash) : -1;
}

static void clear(td_set *set) {
  slot *slots = set->slots;
  uint64_t mask = set->mask;
  set->slots = NULL;
  set->mask = FEWEST_SLOTS - 1;
  set->count = set->filled = 0;
  set->finger = 0;
  set->version++;
  for (uint64_t i = 0; slots && i <= mask; i++) td_unref(slots[i].key);
  td_memory_free(slots);
}

// Next key from *position on, borrowed; the slot is looked up anew each time, so user code may run between calls.
static bool next_key(td_set *set, uint64_t *position, slot *found) {
  while (set->slots && *position <= set->mask) {
    slot *s = &set->slots[(*position)++];
    if (td_is_nil(s->key)) continue;
    *found = *s;
    return true;
  }
  return false;
}

static bool merge(td_interpreter *I, td_set *set, td_set *other) {
  if (other == set || other->count == 0) return true;
  if ((uint64_t)(set->filled + other->count) * 5 >= set->mask * 3 || !set->slots)
    if (!resize(I, set,
                (uint64_t)(set->filled + other->count) * 5 >= set->mask * 3 ? (set->count + other->count) * 2 : 0))
      return false;
  bool empty = set->filled == 0, alike = empty && set->mask == other->mask && other->filled == other->count;
  slot found;
  for (uint64_t i = 0; next_key(other, &i, &found);) {
    if (alike) {
      set->slots[i - 1] = found;
      td_ref(found.key);
    } else if (empty) {
      insert_clean(set->slots, set->mask, found.hash, td_ref(found.key));
    } else {
      td_ref(found.key);
      bool done = add_hashed(I, set, found.key, found.hash);
      td_unref(found.key);
      if (!done) return false;
    }
  }
  if (empty) set->count = set->filled = other->count;
  set->version++;
  return true;
}

static bool update_from_dict(td_interpreter *I, td_set *set, td_dict *dict) {
  if ((uint64_t)(set->filled + dict->count) * 5 >= set->mask * 3 && !resize(I, set, (set->count + dict->count) * 2))
    return false;
  td_value key;
  for (int64_t position = 0; td_dict_next(dict, &position, &key, NULL);) {
    uint64_t hash = dict->entries[position - 1].hash;
    td_ref(key);
    bool done = add_hashed(I, set, key, hash);
    td_unref(key);
    if (!done) return false;
  }
  return true;
}

static bool update(td_interpreter *I, td_set *set, td_value iterable) {
  if (td_is(iterable, &td_set_type)) return merge(I, set, as_set(iterable));
  if (td_is(iterable, &td_dict_type)) return update_from_dict(I, set, td_as_dict(iterable));
  td_value iterator = td_iterate(I, iterable), item;
  if (td_is_nil(iterator)) return false;
  bool done = true;
  while (done && !td_is_nil(item = td_next(I, iterator))) {
    done = td_set_add(I, set, item);
    td_unref(item);
  }
  td_unref(iterator);
  return done && td_is_nil(I->raised);
}

td_value td_set_from(td_interpreter *I, td_value iterable) {
  td_set *set = td_set_new(I);
  if (set && update(I, set, iterable)) return td_from(set);
  td_unref(td_from(set));
  return TD_NIL;
}

// ---- operations between two sets; each returns a new set or changes the first ----
static bool remove_all(td_interpreter *I, td_set *set, td_value other) {
  if (td_is(other, &td_set_type) && as_set(other) == set) return clear(set), true;
  td_value iterator = td_iterate(I, other), item;
  if (td_is_nil(iterator)) return false;
  int found = 0;
  while (found >= 0 && !td_is_nil(item = td_next(I, iterator))) {
    found = discard(I, set, item);
    td_unref(item);
  }
  td_unref(iterator);
  if (found < 0 || !td_is_nil(I->raised)) return false;
  if ((uint64_t)(set->filled - set->count) <= set->mask / 4) return true;
  return resize(I, set, set->count > 50000 ? set->count * 2 : set->count * 4);
}

// Keys of set that are (wanted) or are not in other.
static td_value keep(td_interpreter *I, td_set *set, td_set *other, bool wanted) {
  td_set *result = td_set_new(I);
  bool done = result != NULL;
  slot found;
  for (uint64_t i = 0; done && next_key(set, &i, &found);) {
    td_ref(found.key);
    int there = has_hashed(I, other, found.key, found.hash);
    done = there >= 0 && (there != wanted || add_hashed(I, result, found.key, found.hash));
    td_unref(found.key);
  }
  if (done) return td_from(result);
  td_unref(td_from(result));
  return TD_NIL;
}

static td_value difference(td_interpreter *I, td_set *set, td_value other) {
  int64_t count = td_is(other, &td_set_type)    ? as_set(other)->count
                  : td_is(other, &td_dict_type) ? td_as_dict(other)->count
                                                : 0;
  bool sized = td_is(other, &td_set_type) || td_is(other, &td_dict_type);
  if (!sized || set->count >> 2 > count) {
    td_value copy = td_set_from(I, of(set));
    if (td_is_nil(copy) || remove_all(I, as_set(copy), other)) return copy;
    td_unref(copy);
    return TD_NIL;
  }
  td_value held = td_is(other, &td_set_type) ? td_ref(other) : td_set_from(I, other);
  td_value result = td_is_nil(held) ? TD_NIL : keep(I, set, as_set(held), false);
  td_unref(held);
  return result;
}

static td_value intersection(td_interpreter *I, td_set *set, td_value other) {
  if (td_is(other, &td_set_type)) {
    td_set *y = as_set(other);
    if (y == set) return td_set_from(I, other);
    return y->count > set->count ? keep(I, set, y, true) : keep(I, y, set, true);
  }
  td_value iterator = td_iterate(I, other), item;
  if (td_is_nil(iterator)) return TD_NIL;
  td_set *result = td_set_new(I);
  bool done = result != NULL;
  while (done && !td_is_nil(item = td_next(I, iterator))) {
    int there = td_set_has(I, set, item);
    done = there >= 0 && (!there || td_set_add(I, result, item));
    td_unref(item);
  }
  td_unref(iterator);
  if (done && td_is_nil(I->raised)) return td_from(result);
  td_unref(td_from(result));
  return TD_NIL;
}

static bool toggle_all(td_interpreter *I, td_set *set, td_set *other) {
  if (set == other) return clear(set), true;
  slot found;
  for (uint64_t i = 0; next_key(other, &i, &found);) {
    td_ref(found.key);
    int there = discard_hashed(I, set, found.key, found.hash);
    bool done = there > 0 || (there == 0 && add_hashed(I, set, found.key, found.hash));
    td_unref(found.key);
    if (!done) return false;
  }
  return true;
}

static td_value symmetric_difference(td_interpreter *I, td_set *set, td_value other) {
  td_value result = td_set_from(I, other);
  if (td_is_nil(result) || toggle_all(I, as_set(result), set)) return result;
  td_unref(result);
  return TD_NIL;
}

static td_value union_of(td_interpreter *I, td_set *set, td_value other) {
  td_value result = td_set_from(I, of(set));
  if (td_is_nil(result) || update(I, as_set(result), other)) return result;
  td_unref(result);
  return TD_NIL;
}

static void swap_tables(td_set *a, td_set *b) {
  td_set old = *a;
  a->count = b->count, a->filled = b->filled, a->mask = b->mask, a->slots = b->slots, a->finger = 0;
  b->count = old.count, b->filled = old.filled, b->mask = old.mask, b->slots = old.slots, b->finger = 0;
  a->version++;
}

static td_value set_binary(td_interpreter *I, int op, td_value a, td_value b) {
  if (!td_is(a, &td_set_type) || !td_is(b, &td_set_type)) return TD_NOT_IMPLEMENTED;
  switch (op) {
  case TD_BINARY_OR: return union_of(I, as_set(a), b);
  case TD_BINARY_AND: return intersection(I, as_set(a), b);
  case TD_BINARY_SUBTRACT: return difference(I, as_set(a), b);
  case TD_BINARY_XOR: return symmetric_difference(I, as_set(a), b);
  default: return TD_NOT_IMPLEMENTED;
  }
}

static bool intersect_in_place(td_interpreter *I, td_set *set, td_value other) {
  td_value result = intersection(I, set, other);
  if (td_is_nil(result)) return false;
  swap_tables(set, as_set(result));
  td_unref(result);
  return true;
}

static bool toggle_in_place(td_interpreter *I, td_set *set, td_value other) {
  td_value held = td_is(other, &td_set_type) ? td_ref(other) : td_set_from(I, other);
  bool done = !td_is_nil(held) && toggle_all(I, set, as_set(held));
  td_unref(held);
  return done;
}

static td_value set_in_place(td_interpreter *I, int op, td_value a, td_value b) {
  if (!td_is(b, &td_set_type) && !td_is_dict_view(b)) return TD_NOT_IMPLEMENTED;
  bool done;
  switch (op) {
  case TD_BINARY_OR: done = update(I, as_set(a), b); break;
  case TD_BINARY_AND: done = intersect_in_place(I, as_set(a), b); break;
  case TD_BINARY_SUBTRACT: done = remove_all(I, as_set(a), b); break;
  case TD_BINARY_XOR: done = toggle_in_place(I, as_set(a), b); break;
  default: return TD_NOT_IMPLEMENTED;
  }
  return done ? td_ref(a) : TD_NIL;
}

static int is_subset(td_interpreter *I, td_set *a, td_set *b) {
  if (a->count > b->count) return 0;
  slot found;
  for (uint64_t i = 0; next_key(a, &i, &found);) {
    td_ref(found.key);
    int there = has_hashed(I, b, found.key, found.hash);
    td_unref(found.key);
    if (there <= 0) return there;
  }
  return 1;
}

static td_value set_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  if (!td_is(a, &td_set_type) || !td_is(b, &td_set_type)) return TD_NOT_IMPLEMENTED;
  td_set *x = as_set(a), *y = as_set(b);
  bool swapped = comparison == TD_COMPARE_GREATER || comparison == TD_COMPARE_GREATER_EQUAL;
  bool possible = comparison == TD_COMPARE_EQUAL || comparison == TD_COMPARE_NOT_EQUAL ? x->count == y->count
                  : comparison == TD_COMPARE_LESS                                      ? x->count < y->count
                  : comparison == TD_COMPARE_GREATER                                   ? x->count > y->count
                                                                                       : true;
  int subset = !possible ? 0 : swapped ? is_subset(I, y, x) : is_subset(I, x, y);
  return subset < 0 ? TD_NIL : td_bool(comparison == TD_COMPARE_NOT_EQUAL ? !subset : subset);
}

// ---- the type's other operations ----
static void set_release(td_object *object) { clear((td_set *)object); }

static void set_visit(td_object *object, td_visitor *visit, void *argument) {
  td_set *set = (td_set *)object;
  slot found;
  for (uint64_t i = 0; next_key(set, &i, &found);)
    if (found.key.tag == TD_TAG_OBJECT) visit(found.key.o, argument);
}

static bool set_repr(td_interpreter *I, td_value v, td_text *text) {
  if (as_set(v)->count == 0 || v.o->flags & TD_OBJECT_REPR) {
    td_text_add(text, as_set(v)->count ? "set(...)" : "set()");
    return true;
  }
  td_value list = td_list_from(I, v);
  if (td_is_nil(list)) return false;
  v.o->flags |= TD_OBJECT_REPR;
  bool done = td_sequence_repr(I, list, "{", "}", text);
  v.o->flags &= ~(uint32_t)TD_OBJECT_REPR;
  td_unref(list);
  return done;
}

static int64_t set_length(td_interpreter *I, td_value v) {
  (void)I;
  return as_set(v)->count;
}

static int set_contains(td_interpreter *I, td_value v, td_value item) {
  return td_is(item, &td_set_type) ? 0 : td_set_has(I, as_set(v), item);
}

static td_value set_iterate(td_interpreter *I, td_value v) {
  set_iterator *it = td_object_new(I, &td_set_iterator_type, sizeof *it);
  if (!it) return TD_NIL;
  it->set = as_set(td_ref(v));
  it->count = it->set->count;
  return td_from(it);
}

// ---- methods ----
static td_value set_add(td_interpreter *I, td_value self, td_value *arguments) {
  return td_set_add(I, as_set(self), arguments[0]) ? TD_NONE : TD_NIL;
}

static td_value set_discard(td_interpreter *I, td_value self, td_value *arguments) {
  return discard(I, as_set(self), arguments[0]) < 0 ? TD_NIL : TD_NONE;
}

static td_value set_remove(td_interpreter *I, td_value self, td_value *arguments) {
  int found = discard(I, as_set(self), arguments[0]);
  return found > 0 ? TD_NONE : found < 0 ? TD_NIL : td_raise_key(I, self, arguments[0]);
}

static td_value set_pop(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_set *set = as_set(self);
  if (set->count == 0) {
    td_value message = td_from(td_str_from(I, "pop from an empty set"));
    if (!td_is_nil(message)) td_raise_key(I, TD_NIL, message);
    td_unref(message);
    return TD_NIL;
  }
  uint64_t i = set->finger & set->mask;
  while (td_is_nil(set->slots[i].key)) i = (i + 1) & set->mask;
  td_value key = set->slots[i].key;
  set->slots[i] = (slot){UINT64_MAX, TD_NIL};
  set->count--;
  set->version++;
  set->finger = i + 1;
  return key;
}

static td_value set_clear(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  clear(as_set(self));
  return TD_NONE;
}

static td_value set_copy(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_set_from(I, self);
}

static td_value set_update(td_interpreter *I, td_value self, td_value *arguments) {
  td_tuple *others = td_as_tuple(arguments[0]);
  for (int64_t i = 0; i < others->count; i++)
    if (!update(I, as_set(self), others->items[i])) return TD_NIL;
  return TD_NONE;
}

static td_value set_intersection_update(td_interpreter *I, td_value self, td_value *arguments) {
  td_tuple *others = td_as_tuple(arguments[0]);
  for (int64_t i = 0; i < others->count; i++)
    if (!intersect_in_place(I, as_set(self), others->items[i])) return TD_NIL;
  return TD_NONE;
}

static td_value set_difference_update(td_interpreter *I, td_value self, td_value *arguments) {
  td_tuple *others = td_as_tuple(arguments[0]);
  for (int64_t i = 0; i < others->count; i++)
    if (!remove_all(I, as_set(self), others->items[i])) return TD_NIL;
  return TD_NONE;
}

static td_value set_symmetric_update(td_interpreter *I, td_value self, td_value *arguments) {
  return toggle_in_place(I, as_set(self), arguments[0]) ? TD_NONE : TD_NIL;
}

typedef td_value combine(td_interpreter *I, td_set *set, td_value other);

// The operation applied to self and each of the others in turn; a copy of self when there are none.
static td_value fold(td_interpreter *I, td_value self, td_value *arguments, combine *operation) {
  td_tuple *others = td_as_tuple(arguments[0]);
  if (others->count == 0) return td_set_from(I, self);
  td_value result = td_ref(self);
  for (int64_t i = 0; i < others->count && !td_is_nil(result); i++) {
    td_value next = operation(I, as_set(result), others->items[i]);
    td_unref(result);
    result = next;
  }
  return result;
}

static td_value set_union(td_interpreter *I, td_value self, td_value *arguments) {
  td_value result = td_set_from(I, self), done = td_is_nil(result) ? TD_NIL : set_update(I, result, arguments);
  if (!td_is_nil(done)) return result;
  td_unref(result);
  return TD_NIL;
}

static td_value set_intersection(td_interpreter *I, td_value self, td_value *arguments) {
  return fold(I, self, arguments, intersection);
}
static td_value set_difference(td_interpreter *I, td_value self, td_value *arguments) {
  return fold(I, self, arguments, difference);
}
static td_value set_symmetric_difference(td_interpreter *I, td_value self, td_value *arguments) {
  return symmetric_difference(I, as_set(self), arguments[0]);
}

// The relations take any iterable; operators take sets only.
static td_value relation(td_interpreter *I, td_value self, td_value other, int comparison) {
  td_value held = td_is(other, &td_set_type) ? td_ref(other) : td_set_from(I, other);
  td_value result = td_is_nil(held) ? TD_NIL : set_compare(I, comparison, self, held);
  td_unref(held);
  return result;
}

static td_value set_issubset(td_interpreter *I, td_value self, td_value *arguments) {
  return relation(I, self, arguments[0], TD_COMPARE_LESS_EQUAL);
}
static td_value set_issuperset(td_interpreter *I, td_value self, td_value *arguments) {
  return relation(I, self, arguments[0], TD_COMPARE_GREATER_EQUAL);
}
static td_value set_isdisjoint(td_interpreter *I, td_value self, td_value *arguments) {
  td_value common = intersection(I, as_set(self), arguments[0]);
  bool none = !td_is_nil(common) && as_set(common)->count == 0;
  if (td_is_nil(common)) return TD_NIL;
  td_unref(common);
  return td_bool(none);
}

static const td_method methods[] = {
    {"add", "(item, /)", set_add, "Adds item unless it is there."},
    {"discard", "(item, /)", set_discard, "Removes item if it is there."},
    {"remove", "(item, /)", set_remove, "Removes item; KeyError if it isn't there."},
    {"pop", "()", set_pop, "Removes some item and returns it."},
    {"clear", "()", set_clear, "Removes all items."},
    {"copy", "()", set_copy, "A new set of the same items."},
    {"update", "(*others)", set_update, "Adds the items of all others; as |=."},
    {"intersection_update", "(*others)", set_intersection_update, "Keeps the items that are in all others; as &=."},
    {"difference_update", "(*others)", set_difference_update, "Removes the items of all others; as -=."},
    {"symmetric_difference_update", "(other, /)", set_symmetric_update,
     "Keeps the items that are in one of the two only; as ^=."},
    {"union", "(*others)", set_union, "A new set of the items of this one and all others; as |.\n>>> {1}.union([2])"},
    {"intersection", "(*others)", set_intersection,
     "A new set of the items that are in all; as &.\n>>> {1, 2}.intersection([2])"},
    {"difference", "(*others)", set_difference,
     "A new set of the items that are in none of the others; as -.\n>>> {1, 2}.difference([2])"},
    {"symmetric_difference", "(other, /)", set_symmetric_difference,
     "A new set of the items that are in one of the two only; as ^."},
    {"issubset", "(other, /)", set_issubset, "Whether all items are in other."},
    {"issuperset", "(other, /)", set_issuperset, "Whether all items of other are in this set."},
    {"isdisjoint", "(other, /)", set_isdisjoint, "Whether no item is in other."},
    {NULL, NULL, NULL, NULL}};

const td_type td_set_type = {.name = "set",
                             .size = sizeof(td_set),
                             .release = set_release,
                             .visit = set_visit,
                             .clear = set_release,
                             .repr = set_repr,
                             .length = set_length,
                             .iterate = set_iterate,
                             .contains = set_contains,
                             .binary = set_binary,
                             .in_place = set_in_place,
                             .compare = set_compare,
                             .methods = methods,
                             .doc = "set(iterable=()): different values without an order.\n>>> set(\"aab\")"};

// ---- iterator ----
static void iterator_release(td_object *object) {
  set_iterator *it = (set_iterator *)object;
  td_set *set = it->set;
  it->set = NULL;
  if (set) td_unref(of(set));
}

static void iterator_visit(td_object *object, td_visitor *visit, void *argument) {
  set_iterator *it = (set_iterator *)object;
  if (it->set) visit(&it->set->container.object, argument);
}

static td_value iterator_next(td_interpreter *I, td_value v) {
  set_iterator *it = (set_iterator *)v.o;
  slot found;
  if (!it->set) return TD_NIL;
  if (it->set->count != it->count) {
    it->count = -1; // it stays so
    return td_raise(I, TD_CLASS_RUNTIME_ERROR, "Set changed size during iteration");
  }
  if (next_key(it->set, &it->position, &found)) return td_ref(found.key);
  iterator_release(v.o);
  return TD_NIL;
}

static td_value iterator_self(td_interpreter *I, td_value v) {
  (void)I;
  return td_ref(v);
}

const td_type td_set_iterator_type = {.name = "set_iterator",
                                      .size = sizeof(set_iterator),
                                      .release = iterator_release,
                                      .visit = iterator_visit,
                                      .clear = iterator_release,
                                      .iterate = iterator_self,
                                      .next = iterator_next,
                                      .doc = "What a for loop over a set asks for elements."};
