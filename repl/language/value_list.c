// list: a growable array of values. User code called from here (comparisons, iterators, keys) may change the list, so
// its length is read again after each call and items in use are held.
#include "repl/language/builtins.h"

td_list *td_list_new(td_interpreter *I, int64_t capacity) {
  td_list *list = td_object_new(I, &td_list_type, sizeof *list);
  if (list && capacity > 0 && !td_list_room(I, list, capacity)) {
    td_unref(td_from(list));
    return NULL;
  }
  return list;
}

bool td_list_room(td_interpreter *I, td_list *list, int64_t count) {
  if (count <= list->capacity) return true;
  int64_t capacity = list->capacity + list->capacity / 2 + 4;
  if (capacity < count) capacity = count;
  size_t bytes;
  td_value *items =
      __builtin_mul_overflow((size_t)capacity, sizeof *items, &bytes) ? NULL : td_memory_resize(list->items, bytes);
  if (!items) {
    td_raise_memory(I);
    return false;
  }
  list->items = items;
  list->capacity = capacity;
  return true;
}

bool td_list_append(td_interpreter *I, td_list *list, td_value item) {
  if (list->count == list->capacity && !td_list_room(I, list, list->count + 1)) return false;
  list->items[list->count++] = td_ref(item);
  return true;
}

td_value td_list_from(td_interpreter *I, td_value iterable) {
  td_list *list = td_list_new(I, 0);
  if (list && td_to_list(I, iterable, list)) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

// Items are let go after the list is consistent again, since releasing them may run nothing but may free the list's
// owner.
static void list_release(td_object *object) {
  td_list *list = (td_list *)object;
  td_value *items = list->items;
  int64_t count = list->count;
  list->items = NULL;
  list->count = list->capacity = 0;
  for (int64_t i = 0; i < count; i++) td_unref(items[i]);
  td_memory_free(items);
}

static void list_visit(td_object *object, td_visitor *visit, void *argument) {
  td_list *list = (td_list *)object;
  for (int64_t i = 0; i < list->count; i++)
    if (list->items[i].tag == TD_TAG_OBJECT) visit(list->items[i].o, argument);
}

// A list of the count values at items, which it refers to anew.
static td_value list_of(td_interpreter *I, const td_value *items, int64_t count, int64_t step) {
  td_list *list = td_list_new(I, count);
  if (!list) return TD_NIL;
  for (int64_t i = 0; i < count; i++) list->items[i] = td_ref(items[i * step]);
  list->count = count;
  return td_from(list);
}

// Replaces items [at, at + removed) by count values, which it refers to anew; what was removed is released last.
static bool splice(td_interpreter *I, td_list *list, int64_t at, int64_t removed, const td_value *values,
                   int64_t count) {
  int64_t old_count = list->count, new_count = old_count - removed + count;
  td_value few[8], *old = few;
  if (removed > 8 && !(old = td_memory_new((size_t)removed * sizeof *old))) {
    td_raise_memory(I);
    return false;
  }
  if (!td_list_room(I, list, new_count)) {
    if (old != few) td_memory_free(old);
    return false;
  }
  if (removed) memcpy(old, list->items + at, (size_t)removed * sizeof *old);
  if (old_count > at + removed && removed != count)
    memmove(list->items + at + count, list->items + at + removed, (size_t)(old_count - at - removed) * sizeof *old);
  for (int64_t i = 0; i < count; i++) list->items[at + i] = td_ref(values[i]);
  list->count = new_count;
  for (int64_t i = 0; i < removed; i++) td_unref(old[i]);
  if (old != few) td_memory_free(old);
  return true;
}

// ---- items ----
static td_value list_item(td_interpreter *I, td_value v, td_value key) {
  td_list *list = td_as_list(v);
  int64_t index, step, count;
  if (!td_is(key, &td_slice_type))
    return td_index_resolve(I, key, list->count, "list", &index) ? td_ref(list->items[index]) : TD_NIL;
  if (!td_slice_resolve(I, key, list->count, &index, &step, &count)) return TD_NIL;
  return list_of(I, count ? list->items + index : NULL, count, step);
}

// Index of an assignment or a deletion; Python's message is its own.
static bool resolve_target(td_interpreter *I, td_list *list, td_value key, const char *what, int64_t *index) {
  if (td_is_integer(key)) {
    *index = key.i < 0 ? key.i + list->count : key.i;
    if (*index >= 0 && *index < list->count) return true;
    td_raise(I, TD_CLASS_INDEX_ERROR, "list assignment index out of range");
    td_raise_hint(I, "%s index %lld, but the length is %lld; append() makes a list longer", what, (long long)key.i,
                  (long long)list->count);
    return false;
  }
  return td_index_resolve(I, key, list->count, "list", index);
}

static bool assign_slice(td_interpreter *I, td_list *list, td_value key, td_value value) {
  int64_t start, step, count;
  if (!td_slice_resolve(I, key, list->count, &start, &step, &count))
    return false; // raises before the values are asked for
  if (!td_is(value, &td_list_type) && !td_is(value, &td_tuple_type) && !td_type_of(value)->iterate &&
      !td_type_of(value)->next) {
    td_raise(I, TD_CLASS_TYPE_ERROR,
             step == 1 ? "can only assign an iterable" : "must assign iterable to extended slice");
    return false;
  }
  td_value held = td_list_from(I, value); // a copy: value may be the list itself
  if (td_is_nil(held)) return false;
  td_list *values = td_as_list(held);
  bool done = td_slice_resolve(I, key, list->count, &start, &step, &count);
  if (done && step == 1) {
    done = splice(I, list, start, count, values->items, values->count);
  } else if (done && values->count != count) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "attempt to assign sequence of size %lld to extended slice of size %lld",
             (long long)values->count, (long long)count);
    done = false;
  } else if (done) { // the old items take the places of the new ones and go with the copy
    for (int64_t i = 0; i < count; i++) {
      td_value old = list->items[start + i * step];
      list->items[start + i * step] = values->items[i];
      values->items[i] = old;
    }
  }
  td_unref(held);
  return done;
}

static bool list_set_item(td_interpreter *I, td_value v, td_value key, td_value value) {
  td_list *list = td_as_list(v);
  int64_t index;
  if (td_is(key, &td_slice_type)) return assign_slice(I, list, key, value);
  if (!resolve_target(I, list, key, "assignment", &index)) return false;
  td_value old = list->items[index];
  list->items[index] = td_ref(value);
  td_unref(old);
  return true;
}

static bool delete_slice(td_interpreter *I, td_list *list, td_value key) {
  int64_t start, step, count;
  if (!td_slice_resolve(I, key, list->count, &start, &step, &count)) return false;
  if (step < 0) start += (count - 1) * step, step = -step;
  if (count == 0) return true;
  if (step == 1) return splice(I, list, start, count, NULL, 0);
  td_value *old = td_memory_new((size_t)count * sizeof *old);
  if (!old) {
    td_raise_memory(I);
    return false;
  }
  int64_t kept = start, removed = 0;
  for (int64_t i = start; i < list->count; i++) {
    if (removed < count && i == start + removed * step) old[removed++] = list->items[i];
    else list->items[kept++] = list->items[i];
  }
  list->count = kept;
  for (int64_t i = 0; i < removed; i++) td_unref(old[i]);
  td_memory_free(old);
  return true;
}

static bool list_delete_item(td_interpreter *I, td_value v, td_value key) {
  td_list *list = td_as_list(v);
  int64_t index;
  if (td_is(key, &td_slice_type)) return delete_slice(I, list, key);
  return resolve_target(I, list, key, "deletion", &index) && splice(I, list, index, 1, NULL, 0);
}

static int64_t list_length(td_interpreter *I, td_value v) {
  (void)I;
  return td_as_list(v)->count;
}

static td_value list_iterate(td_interpreter *I, td_value v) { return td_sequence_iterator_new(I, v, false); }

// Position of the first item equal to value in [first, last); -1: none, -2: exception
static int64_t find(td_interpreter *I, td_list *list, td_value value, int64_t first, int64_t last) {
  for (int64_t i = first; i < last && i < list->count; i++) {
    td_value item = td_ref(list->items[i]);
    int equal = td_equal_values(I, item, value);
    td_unref(item);
    if (equal) return equal < 0 ? -2 : i;
  }
  return -1;
}

static int list_contains(td_interpreter *I, td_value v, td_value item) {
  int64_t at = find(I, td_as_list(v), item, 0, INT64_MAX);
  return at >= 0 ? 1 : at == -1 ? 0 : -1;
}

// ---- operators ----
static td_value list_repeat(td_interpreter *I, td_list *list, int64_t times) {
  int64_t count;
  if (times < 0) times = 0;
  if (__builtin_mul_overflow(list->count, times, &count)) return td_raise_memory(I);
  td_list *result = td_list_new(I, count);
  if (!result) return TD_NIL;
  for (int64_t done = 0; done < count; done += list->count)
    for (int64_t i = 0; i < list->count; i++) result->items[done + i] = td_ref(list->items[i]);
  result->count = count;
  return td_from(result);
}

static td_value list_binary(td_interpreter *I, int op, td_value a, td_value b) {
  bool left = td_is(a, &td_list_type);
  if (op == TD_BINARY_MULTIPLY) {
    td_value list = left ? a : b, times = left ? b : a;
    if (td_is_integer(times)) return list_repeat(I, td_as_list(list), times.i);
    return td_passes_on(times) ? TD_NOT_IMPLEMENTED : td_repeat_refused(I, times);
  }
  if (op != TD_BINARY_ADD || !left) return TD_NOT_IMPLEMENTED;
  if (!td_is(b, &td_list_type)) {
    if (td_passes_on(b)) return TD_NOT_IMPLEMENTED;
    return td_raise(I, TD_CLASS_TYPE_ERROR, "can only concatenate list (not \"%s\") to list", td_type_name(I, b));
  }
  td_list *x = td_as_list(a), *y = td_as_list(b), *result = td_list_new(I, x->count + y->count);
  if (!result) return TD_NIL;
  for (int64_t i = 0; i < x->count; i++) result->items[i] = td_ref(x->items[i]);
  for (int64_t i = 0; i < y->count; i++) result->items[x->count + i] = td_ref(y->items[i]);
  result->count = x->count + y->count;
  return td_from(result);
}

static bool extend(td_interpreter *I, td_list *list, td_value iterable) {
  if (!td_is(iterable, &td_list_type)) return td_to_list(I, iterable, list);
  td_list *other = td_as_list(iterable); // may be the list itself
  int64_t count = other->count;
  if (!td_list_room(I, list, list->count + count)) return false;
  for (int64_t i = 0; i < count; i++) list->items[list->count + i] = td_ref(other->items[i]);
  list->count += count;
  return true;
}

static td_value list_in_place(td_interpreter *I, int op, td_value a, td_value b) {
  td_list *list = td_as_list(a);
  if (op == TD_BINARY_ADD && !td_passes_on(b)) return extend(I, list, b) ? td_ref(a) : TD_NIL;
  if (op == TD_BINARY_ADD && (td_type_of(b)->iterate || td_type_of(b)->next) && td_is(b, &td_instance_type))
    return extend(I, list, b) ? td_ref(a) : TD_NIL;
  if (op != TD_BINARY_MULTIPLY || !td_is_integer(b)) return TD_NOT_IMPLEMENTED;
  int64_t once = list->count, count, times = b.i < 0 ? 0 : b.i;
  if (__builtin_mul_overflow(once, times, &count)) return td_raise_memory(I);
  if (times == 0) list_release(a.o);
  else if (!td_list_room(I, list, count)) return TD_NIL;
  for (int64_t i = once; i < count; i++) list->items[i] = td_ref(list->items[i - once]);
  list->count = count;
  return td_ref(a);
}

static td_value list_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  return td_is(a, &td_list_type) && td_is(b, &td_list_type) ? td_sequence_compare(I, comparison, a, b)
                                                            : TD_NOT_IMPLEMENTED;
}

static bool list_repr(td_interpreter *I, td_value v, td_text *text) { return td_sequence_repr(I, v, "[", "]", text); }

// ---- methods ----
static td_value list_append(td_interpreter *I, td_value self, td_value *arguments) {
  return td_list_append(I, td_as_list(self), arguments[0]) ? TD_NONE : TD_NIL;
}

static td_value list_extend(td_interpreter *I, td_value self, td_value *arguments) {
  return extend(I, td_as_list(self), arguments[0]) ? TD_NONE : TD_NIL;
}

static td_value list_insert(td_interpreter *I, td_value self, td_value *arguments) {
  td_list *list = td_as_list(self);
  int64_t index;
  if (!td_index_value(I, arguments[0], &index)) return TD_NIL;
  if (index < 0) index = index < -list->count ? 0 : index + list->count;
  if (index > list->count) index = list->count;
  return splice(I, list, index, 0, &arguments[1], 1) ? TD_NONE : TD_NIL;
}

static td_value list_pop(td_interpreter *I, td_value self, td_value *arguments) {
  td_list *list = td_as_list(self);
  int64_t index;
  if (!td_index_value(I, arguments[0], &index)) return TD_NIL;
  if (list->count == 0) return td_raise(I, TD_CLASS_INDEX_ERROR, "pop from empty list");
  if (index < 0) index += list->count;
  if (index < 0 || index >= list->count) return td_raise(I, TD_CLASS_INDEX_ERROR, "pop index out of range");
  td_value item = list->items[index];
  list->count--;
  if (index < list->count)
    memmove(list->items + index, list->items + index + 1, (size_t)(list->count - index) * sizeof item);
  return item;
}

static td_value list_remove(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t at = find(I, td_as_list(self), arguments[0], 0, INT64_MAX);
  if (at == -1) return td_raise(I, TD_CLASS_VALUE_ERROR, "list.remove(x): x not in list");
  return at >= 0 && (at >= td_as_list(self)->count || splice(I, td_as_list(self), at, 1, NULL, 0)) ? TD_NONE : TD_NIL;
}

static td_value list_clear(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  list_release(self.o);
  return TD_NONE;
}

static td_value list_copy(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return list_of(I, td_as_list(self)->items, td_as_list(self)->count, 1);
}

static td_value list_count(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t found = 0, at = -1;
  while ((at = find(I, td_as_list(self), arguments[0], at + 1, INT64_MAX)) >= 0) found++;
  return at == -2 ? TD_NIL : td_int(found);
}

static td_value list_index(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t first, last;
  if (!td_slice_bounds(I, arguments[1], arguments[2], td_as_list(self)->count, &first, &last)) return TD_NIL;
  int64_t at = find(I, td_as_list(self), arguments[0], first, last);
  if (at >= 0) return td_int(at);
  td_text text = {0};
  if (at == -1 && td_repr(I, arguments[0], &text)) {
    if (text.failed) td_raise_memory(I);
    else td_raise(I, TD_CLASS_VALUE_ERROR, "%s is not in list", text.data);
  }
  td_text_clear(&text);
  return TD_NIL;
}

static td_value list_reverse(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  td_list *list = td_as_list(self);
  for (int64_t i = 0, j = list->count - 1; i < j; i++, j--) {
    td_value item = list->items[i];
    list->items[i] = list->items[j];
    list->items[j] = item;
  }
  return TD_NONE;
}

static td_value list_sort(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t reverse;
  return td_index_value(I, arguments[1], &reverse) ? td_list_sort(I, td_as_list(self), arguments[0], reverse != 0)
                                                   : TD_NIL;
}

static const td_method methods[] = {
    {"append", "(item, /)", list_append, "Adds item at the end.\n>>> x = [1]; x.append(2)"},
    {"extend", "(iterable, /)", list_extend, "Adds all items of iterable at the end."},
    {"insert", "(index, item, /)", list_insert, "Puts item before the one at index."},
    {"pop", "(index=-1, /)", list_pop, "Removes the item at index and returns it.\n>>> [1, 2].pop()"},
    {"remove", "(value, /)", list_remove, "Removes the first item equal to value; ValueError if there is none."},
    {"clear", "()", list_clear, "Removes all items."},
    {"copy", "()", list_copy, "A new list of the same items."},
    {"count", "(value, /)", list_count, "How many items are equal to value.\n>>> [1, 2, 1].count(1)"},
    {"index", "(value, start=None, stop=None, /)", list_index,
     "Position of the first item equal to value; ValueError if there is none.\n>>> [4, 5].index(5)"},
    {"reverse", "()", list_reverse, "Turns the order of the items round, in place."},
    {"sort", "(*, key=None, reverse=False)", list_sort,
     "Sorts in place; equal items keep their order. key(item) is what is compared."},
    {NULL, NULL, NULL, NULL}};

const td_type td_list_type = {.name = "list",
                              .size = sizeof(td_list),
                              .release = list_release,
                              .visit = list_visit,
                              .clear = list_release,
                              .repr = list_repr,
                              .item = list_item,
                              .set_item = list_set_item,
                              .delete_item = list_delete_item,
                              .length = list_length,
                              .iterate = list_iterate,
                              .contains = list_contains,
                              .binary = list_binary,
                              .in_place = list_in_place,
                              .compare = list_compare,
                              .methods = methods,
                              .doc = "list(iterable=()): values in an order, which can be changed.\n>>> list(\"ab\")"};
