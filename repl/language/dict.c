// The table under dict: entries in the order of insertion, and an open-addressed table of their indices. Invariants:
//  1. table[slot] is an entry's index or EMPTY; mask + 1 slots, a power of two, at most 2/3 of them in use. Probing
//     is linear, and a removal moves later slots back, so that no marks of removed ones are needed.
//  2. A removed entry has key NIL and stays until the entries are packed, which happens only when an insertion needs
//     room. The last entry is never a removed one.
//  3. version changes whenever a key or value changes. Comparing keys may run user code that changes the dict:
//     whoever compared looks at version and starts again.
#include "repl/language/builtins.h"

enum { EMPTY = -1, FEWEST_SLOTS = 8 };

static inline uint64_t first_slot(uint64_t hash, uint64_t mask) {
  return hash * 0x9E3779B97F4A7C15u >> (__builtin_clzll(mask) & 63);
}

td_dict *td_dict_new(td_interpreter *I) { return td_object_new(I, &td_dict_type, sizeof(td_dict)); }

static inline bool hash_of(td_interpreter *I, td_value key, uint64_t *hash) {
  if (td_is(key, &td_str_type)) {
    *hash = td_str_hash(td_as_str(key));
    return true;
  }
  if (key.tag == TD_TAG_INT) {
    *hash = td_int_hash(key.i);
    return true;
  }
  return td_hash(I, key, hash);
}

static void fill_table(td_dict *dict, int32_t *table, uint64_t mask) {
  for (uint64_t i = 0; i <= mask; i++) table[i] = EMPTY;
  int64_t kept = 0;
  for (int64_t i = 0; i < dict->used; i++) {
    if (td_is_nil(dict->entries[i].key)) continue;
    if (kept != i) dict->entries[kept] = dict->entries[i];
    uint64_t slot = first_slot(dict->entries[kept].hash, mask);
    while (table[slot] != EMPTY) slot = (slot + 1) & mask;
    table[slot] = (int32_t)kept++;
  }
  dict->used = kept;
}

// Room for count entries; removed ones are packed away. The dict is as before when there is no memory.
static bool resize(td_interpreter *I, td_dict *dict, int64_t count) {
  uint64_t slots = FEWEST_SLOTS;
  while ((int64_t)(slots / 3 * 2) < count) slots *= 2;
  int64_t capacity = (int64_t)(slots / 3 * 2 + slots % 3 / 2);
  if (capacity < count || capacity > INT32_MAX) return td_raise_memory(I), false;
  int32_t *table = dict->table;
  if (slots != dict->mask + 1 || !table) {
    table = td_memory_new(slots * sizeof *table);
    td_entry *entries = !table ? NULL
                        : capacity > dict->capacity
                            ? td_memory_resize(dict->entries, (size_t)capacity * sizeof *entries)
                            : dict->entries;
    if (!entries) {
      td_memory_free(table);
      td_raise_memory(I);
      return false;
    }
    dict->entries = entries;
    if (capacity > dict->capacity) dict->capacity = capacity;
    td_memory_free(dict->table);
    dict->table = table;
    dict->mask = slots - 1;
  }
  fill_table(dict, table, dict->mask);
  dict->version++;
  return true;
}

// Room for one more entry.
static bool make_room(td_interpreter *I, td_dict *dict) {
  int64_t limit = dict->table ? (int64_t)((dict->mask + 1) / 3 * 2 + (dict->mask + 1) % 3 / 2) : 0;
  if (dict->used < limit && dict->used < dict->capacity) return true;
  return resize(I, dict, dict->count + dict->count / 2 + 1);
}

// Index of the entry with this key: -1 absent, -2 exception.
static int64_t find(td_interpreter *I, td_dict *dict, td_value key, uint64_t hash) {
again:
  if (!dict->table) return -1;
  bool is_text = td_is(key, &td_str_type);
  for (uint64_t slot = first_slot(hash, dict->mask);; slot = (slot + 1) & dict->mask) {
    int32_t index = dict->table[slot];
    if (index == EMPTY) return -1;
    if (dict->entries[index].hash != hash) continue;
    td_value other = dict->entries[index].key;
    if (other.tag == key.tag && other.i == key.i) return index;
    if (is_text && td_is(other, &td_str_type)) {
      if (td_str_equal(td_as_str(other), td_as_str(key))) return index;
      continue;
    }
    uint32_t version = dict->version;
    td_ref(other);
    int equal = td_equal_values(I, other, key);
    td_unref(other);
    if (equal < 0) return -2;
    if (dict->version != version) goto again;
    if (equal) return index;
  }
}

static void empty_slot(td_dict *dict, int64_t index) {
  uint64_t hole = first_slot(dict->entries[index].hash, dict->mask);
  while (dict->table[hole] != index) hole = (hole + 1) & dict->mask;
  for (uint64_t slot = (hole + 1) & dict->mask; dict->table[slot] != EMPTY; slot = (slot + 1) & dict->mask) {
    uint64_t home = first_slot(dict->entries[dict->table[slot]].hash, dict->mask);
    if (((slot - home) & dict->mask) < ((slot - hole) & dict->mask)) continue; // it would stand before its first slot
    dict->table[hole] = dict->table[slot];
    hole = slot;
  }
  dict->table[hole] = EMPTY;
}

static bool insert(td_interpreter *I, td_dict *dict, td_value key, uint64_t hash, td_value value) {
  if (!make_room(I, dict)) return false;
  uint64_t slot = first_slot(hash, dict->mask);
  while (dict->table[slot] >= 0) slot = (slot + 1) & dict->mask;
  dict->table[slot] = (int32_t)dict->used;
  dict->entries[dict->used++] = (td_entry){hash, td_ref(key), td_ref(value)};
  dict->count++;
  dict->version++;
  return true;
}

static bool store(td_interpreter *I, td_dict *dict, td_value key, uint64_t hash, td_value value) {
  int64_t index = find(I, dict, key, hash);
  if (index == -2) return false;
  if (index == -1) return insert(I, dict, key, hash, value);
  td_value old = dict->entries[index].value;
  dict->entries[index].value = td_ref(value);
  dict->version++;
  td_unref(old);
  return true;
}

int td_dict_get(td_interpreter *I, td_dict *dict, td_value key, td_value *value) {
  uint64_t hash;
  if (!hash_of(I, key, &hash)) return -1;
  int64_t index = find(I, dict, key, hash);
  if (index >= 0) *value = dict->entries[index].value;
  return index >= 0 ? 1 : index == -1 ? 0 : -1;
}

bool td_dict_set(td_interpreter *I, td_dict *dict, td_value key, td_value value) {
  uint64_t hash;
  return hash_of(I, key, &hash) && store(I, dict, key, hash, value);
}

int td_dict_remove(td_interpreter *I, td_dict *dict, td_value key) {
  uint64_t hash;
  if (!hash_of(I, key, &hash)) return -1;
  int64_t index = find(I, dict, key, hash);
  if (index < 0) return index == -1 ? 0 : -1;
  empty_slot(dict, index);
  td_entry old = dict->entries[index];
  dict->entries[index].key = dict->entries[index].value = TD_NIL;
  dict->count--;
  while (dict->used > 0 && td_is_nil(dict->entries[dict->used - 1].key)) dict->used--;
  dict->version++;
  td_unref(old.key);
  td_unref(old.value);
  return 1;
}

td_value td_dict_get_text(const td_dict *dict, const char *bytes, size_t length, uint64_t hash) {
  if (!dict->table) return TD_NIL;
  for (uint64_t slot = first_slot(hash, dict->mask);; slot = (slot + 1) & dict->mask) {
    int32_t index = dict->table[slot];
    if (index == EMPTY) return TD_NIL;
    if (dict->entries[index].hash != hash) continue;
    td_value key = dict->entries[index].key;
    if (td_is(key, &td_str_type) && td_as_str(key)->length == length &&
        memcmp(td_as_str(key)->data, bytes, length) == 0)
      return dict->entries[index].value;
  }
}

td_value td_dict_get_str(td_dict *dict, td_str *key) {
  if (!dict->table) return TD_NIL;
  uint64_t hash = td_str_hash(key);
  for (uint64_t slot = first_slot(hash, dict->mask);; slot = (slot + 1) & dict->mask) {
    int32_t index = dict->table[slot];
    if (index == EMPTY) return TD_NIL;
    if (dict->entries[index].hash != hash) continue;
    td_value other = dict->entries[index].key;
    if (td_is(other, &td_str_type) && td_str_equal(td_as_str(other), key)) return dict->entries[index].value;
  }
}

bool td_dict_set_str(td_interpreter *I, td_dict *dict, td_str *key, td_value value) {
  return store(I, dict, (td_value){.tag = TD_TAG_OBJECT, .o = &key->object}, td_str_hash(key), value);
}

bool td_dict_next(td_dict *dict, int64_t *position, td_value *key, td_value *value) {
  while (*position < dict->used) {
    td_entry *entry = &dict->entries[(*position)++];
    if (td_is_nil(entry->key)) continue;
    if (key) *key = entry->key;
    if (value) *value = entry->value;
    return true;
  }
  return false;
}

void td_dict_clear(td_dict *dict) {
  td_entry *entries = dict->entries;
  int64_t used = dict->used;
  td_memory_free(dict->table);
  dict->entries = NULL;
  dict->table = NULL;
  dict->count = dict->used = dict->capacity = 0;
  dict->mask = 0;
  dict->version++;
  for (int64_t i = 0; i < used; i++) {
    td_unref(entries[i].key);
    td_unref(entries[i].value);
  }
  td_memory_free(entries);
}

td_dict *td_dict_copy(td_interpreter *I, td_dict *source) {
  td_dict *copy = td_dict_new(I);
  if (!copy || source->count == 0) return copy;
  if (!resize(I, copy, source->count)) {
    td_unref(td_from(copy));
    return NULL;
  }
  for (int64_t i = 0; i < source->used; i++)
    if (!td_is_nil(source->entries[i].key)) {
      copy->entries[copy->used++] = source->entries[i];
      td_ref(source->entries[i].key);
      td_ref(source->entries[i].value);
    }
  copy->count = copy->used;
  fill_table(copy, copy->table, copy->mask);
  return copy;
}

bool td_dict_merge(td_interpreter *I, td_dict *dict, td_dict *source) {
  if (dict == source) return true;
  for (int64_t i = 0; i < source->used; i++) { // used is read again: a comparison may change source
    td_entry entry = source->entries[i];
    if (td_is_nil(entry.key)) continue;
    td_ref(entry.key);
    td_ref(entry.value);
    int64_t count = source->count;
    bool done = store(I, dict, entry.key, entry.hash, entry.value);
    td_unref(entry.key);
    td_unref(entry.value);
    if (done && source->count != count) {
      td_raise(I, TD_CLASS_RUNTIME_ERROR, "dict mutated during update");
      done = false;
    }
    if (!done) return false;
  }
  return true;
}
