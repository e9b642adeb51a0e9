// Sorting: a stable merge sort of keys. Runs that are already in order are found and kept, short ones are extended by
// binary insertion, neighbours are merged. Keys that are all ints, floats or strs are compared without a call.
// Comparisons of others may run user code, which never sees the values being sorted: they are in arrays of our own.
#include "repl/language/builtins.h"

typedef struct item { // a key, and where its value stood
  union {
    int64_t i;
    double f;
    uint64_t prefix; // of a str: its first 8 bytes, which are in the order of the whole where they differ
  };
  int64_t index;
} item;

typedef struct sorter {
  td_interpreter *interpreter;
  const td_value *keys;
  item *items, *spare;
} sorter;

// 1: a stands before b, 0: it doesn't, -1: exception
typedef int before(const sorter *s, const item *a, const item *b);

static int before_int(const sorter *s, const item *a, const item *b) { return (void)s, a->i < b->i; }
static int before_double(const sorter *s, const item *a, const item *b) { return (void)s, a->f < b->f; }

static int before_str(const sorter *s, const item *a, const item *b) {
  if (a->prefix != b->prefix) return a->prefix < b->prefix;
  const td_str *x = td_as_str(s->keys[a->index]), *y = td_as_str(s->keys[b->index]);
  int order = memcmp(x->data, y->data, x->length < y->length ? x->length : y->length);
  return order ? order < 0 : x->length < y->length;
}

enum { UNKNOWN = 2 };

// -1, 0, 1 for two ints, floats or strs; UNKNOWN for others and for a NaN.
static int order_of(td_value a, td_value b) {
  if (a.tag == TD_TAG_INT && b.tag == TD_TAG_INT) return (a.i > b.i) - (a.i < b.i);
  if (a.tag == TD_TAG_DOUBLE && b.tag == TD_TAG_DOUBLE)
    return a.f < b.f ? -1 : a.f > b.f ? 1 : a.f == b.f ? 0 : UNKNOWN;
  if (!td_is(a, &td_str_type) || !td_is(b, &td_str_type)) return UNKNOWN;
  const td_str *x = td_as_str(a), *y = td_as_str(b);
  int order = memcmp(x->data, y->data, x->length < y->length ? x->length : y->length);
  return order ? (order > 0) - (order < 0) : (x->length > y->length) - (x->length < y->length);
}

// The same for two tuples of such items: keys like (loss, name) need no call for each pair of items.
static int order_of_tuples(const td_tuple *a, const td_tuple *b) {
  for (int64_t i = 0; i < a->count && i < b->count; i++) {
    int order = order_of(a->items[i], b->items[i]);
    if (order) return order;
  }
  return (a->count > b->count) - (a->count < b->count);
}

static int before_any(const sorter *s, const item *a, const item *b) {
  td_value x = s->keys[a->index], y = s->keys[b->index];
  int order =
      td_is(x, &td_tuple_type) && td_is(y, &td_tuple_type) ? order_of_tuples(td_as_tuple(x), td_as_tuple(y)) : UNKNOWN;
  if (order != UNKNOWN) return order < 0;
  td_value result = td_compare(s->interpreter, TD_COMPARE_LESS, x, y);
  if (td_is_nil(result)) return -1;
  int truth = td_truth(s->interpreter, result);
  td_unref(result);
  return truth;
}

#define INLINE static inline __attribute__((always_inline))

// Length of the run at first: items that ascend, or that descend strictly, which are turned round. -1: exception
INLINE int64_t take_run(sorter *s, int64_t first, int64_t end, before *less) {
  item *items = s->items;
  if (end - first < 2) return end - first;
  int64_t at = first + 2;
  int descends = less(s, &items[first + 1], &items[first]), order = descends;
  for (; order >= 0 && at < end; at++) {
    order = less(s, &items[at], &items[at - 1]);
    if (order != descends) break;
  }
  if (order < 0) return -1;
  if (descends)
    for (int64_t i = first, j = at - 1; i < j; i++, j--) {
      item swap = items[i];
      items[i] = items[j];
      items[j] = swap;
    }
  return at - first;
}

// Items [first, sorted) are in order; inserts those up to end.
INLINE bool insert_items(sorter *s, int64_t first, int64_t sorted, int64_t end, before *less) {
  item *items = s->items;
  for (; sorted < end; sorted++) {
    item pivot = items[sorted];
    int64_t low = first, high = sorted;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      int order = less(s, &pivot, &items[middle]);
      if (order < 0) return false;
      if (order) high = middle;
      else low = middle + 1;
    }
    memmove(&items[low + 1], &items[low], (size_t)(sorted - low) * sizeof *items);
    items[low] = pivot;
  }
  return true;
}

// Merges [first, middle) with [middle, end); the left part waits in spare.
INLINE bool merge(sorter *s, int64_t first, int64_t middle, int64_t end, before *less) {
  item *items = s->items, *left = s->spare;
  int order = less(s, &items[middle], &items[middle - 1]);
  if (order <= 0) return order == 0;
  int64_t count = middle - first, i = 0, j = middle, out = first;
  memcpy(left, items + first, (size_t)count * sizeof *left);
  while (i < count && j < end) {
    order = less(s, &items[j], &left[i]);
    if (order < 0) break; // what is left is put back below, so that no item is lost
    items[out++] = order ? items[j++] : left[i++];
  }
  memcpy(items + out, left + i, (size_t)(count - i) * sizeof *left);
  return order >= 0;
}

static int64_t shortest_run(int64_t count) { // 32 to 64, so that count / it is a power of two or a little less
  int64_t odd = 0;
  for (; count >= 64; count >>= 1) odd |= count & 1;
  return count + odd;
}

INLINE bool sort_items(sorter *s, int64_t count, before *less) {
  struct {
    int64_t first, count;
  } runs[96]; // each longer than the next two together
  int64_t shortest = shortest_run(count);
  int depth = 0;
  for (int64_t first = 0; first < count;) {
    int64_t length = take_run(s, first, count, less);
    if (length < 0) return false;
    int64_t wanted = shortest < count - first ? shortest : count - first;
    if (length < wanted) {
      if (!insert_items(s, first, first + length, first + wanted, less)) return false;
      length = wanted;
    }
    runs[depth].first = first;
    runs[depth++].count = length;
    first += length;
    while (depth > 1) {
      int at = depth - 2;
      bool last = first == count;
      bool crowded = (at > 0 && runs[at - 1].count <= runs[at].count + runs[at + 1].count) ||
                     (at > 1 && runs[at - 2].count <= runs[at - 1].count + runs[at].count);
      if (crowded && at > 0 && runs[at - 1].count < runs[at + 1].count) at--;
      else if (!crowded && runs[at].count > runs[at + 1].count && !last) break;
      if (td_interrupted(s->interpreter) ||
          !merge(s, runs[at].first, runs[at + 1].first, runs[at + 1].first + runs[at + 1].count, less))
        return false;
      runs[at].count += runs[at + 1].count;
      if (at + 2 < depth) runs[at + 1] = runs[at + 2];
      depth--;
    }
  }
  return true;
}

static bool sort_ints(sorter *s, int64_t count) { return sort_items(s, count, before_int); }
static bool sort_doubles(sorter *s, int64_t count) { return sort_items(s, count, before_double); }
static bool sort_strs(sorter *s, int64_t count) { return sort_items(s, count, before_str); }
static bool sort_any(sorter *s, int64_t count) { return sort_items(s, count, before_any); }

static uint64_t prefix_of(const td_str *s) {
  uint64_t prefix = 0;
  for (uint32_t i = 0; i < 8; i++) prefix = prefix << 8 | (i < s->length ? (unsigned char)s->data[i] : 0);
  return prefix;
}

// Fills the items; the tag that all keys share decides how they are compared.
static bool sort_keys(sorter *s, int64_t count) {
  uint64_t tag = s->keys[0].tag;
  bool alike = tag == TD_TAG_INT || tag == TD_TAG_DOUBLE || td_is(s->keys[0], &td_str_type);
  for (int64_t i = 0; i < count; i++) {
    td_value key = s->keys[i];
    alike = alike && key.tag == tag && (tag != TD_TAG_OBJECT || key.o->type == &td_str_type);
    s->items[i] = (item){.i = key.i, .index = i};
    if (key.tag == TD_TAG_DOUBLE) s->items[i].f = key.f;
    else if (alike && tag == TD_TAG_OBJECT) s->items[i].prefix = prefix_of(td_as_str(key));
  }
  if (!alike) return sort_any(s, count);
  return tag == TD_TAG_INT ? sort_ints(s, count) : tag == TD_TAG_DOUBLE ? sort_doubles(s, count) : sort_strs(s, count);
}

static void reverse_values(td_value *values, int64_t count) {
  for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
    td_value swap = values[i];
    values[i] = values[j];
    values[j] = swap;
  }
}

static bool make_keys(td_interpreter *I, const td_value *values, int64_t count, td_value function, td_value *keys) {
  for (int64_t i = 0; i < count; i++) {
    td_value argument = values[i];
    keys[i] = td_call_values(I, function, 1, &argument);
    if (!td_is_nil(keys[i])) continue;
    while (i-- > 0) td_unref(keys[i]);
    return false;
  }
  return true;
}

bool td_sort(td_interpreter *I, td_value *values, int64_t count, td_value key, bool reverse) {
  if (count < 2 && (td_is_none(key) || count == 0)) return true;
  if (!td_is_none(key) && !td_is(key, &td_instance_type) && !td_type_of(key)->call) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not callable", td_type_name(I, key));
    td_raise_hint(I, "key is a function of an item: key=lambda item: -item");
    return false;
  }
  bool keyed = !td_is_none(key), done = false, keys_ready = false;
  td_value *keys = values;
  sorter s = {.interpreter = I,
              .items = td_memory_new((size_t)count * sizeof *s.items),
              .spare = td_memory_new((size_t)count * sizeof *s.spare)};
  td_value *sorted = td_memory_new((size_t)count * sizeof *sorted);
  if (keyed) keys = td_memory_new((size_t)count * sizeof *keys);
  if (!s.items || !s.spare || !sorted || !keys) td_raise_memory(I);
  else if (!keyed || make_keys(I, values, count, key, keys)) {
    keys_ready = keyed;
    if (reverse) { // turned round before and after, so that equal keys keep their order
      reverse_values(values, count);
      if (keyed) reverse_values(keys, count);
    }
    s.keys = keys;
    done = sort_keys(&s, count);
    if (done) {
      for (int64_t i = 0; i < count; i++) sorted[i] = values[s.items[i].index];
      memcpy(values, sorted, (size_t)count * sizeof *sorted);
    }
    if (reverse) reverse_values(values, count);
  }
  for (int64_t i = 0; keys_ready && i < count; i++) td_unref(keys[i]);
  if (keyed) td_memory_free(keys);
  td_memory_free(s.items);
  td_memory_free(s.spare);
  td_memory_free(sorted);
  return done;
}

td_value td_list_sort(td_interpreter *I, td_list *list, td_value key, bool reverse) {
  td_value *items = list->items;
  int64_t count = list->count, capacity = list->capacity;
  list->items = NULL; // user code finds it empty while it is sorted
  list->count = list->capacity = 0;
  bool done = td_sort(I, items, count, key, reverse);
  td_value *others = list->items;
  int64_t other_count = list->count;
  bool changed = list->items != NULL;
  list->items = items;
  list->count = count;
  list->capacity = capacity;
  for (int64_t i = 0; i < other_count; i++) td_unref(others[i]);
  td_memory_free(others);
  if (done && changed) return td_raise(I, TD_CLASS_VALUE_ERROR, "list modified during sort");
  return done ? TD_NONE : TD_NIL;
}
