// tuple: a fixed number of values. What lists and tuples share (comparing, printing) is here too.
#include <stdarg.h>
#include <stddef.h>

#include "repl/language/builtins.h"

td_tuple *td_tuple_new(td_interpreter *I, int64_t count) {
  size_t bytes;
  if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof(td_value), &bytes) ||
      __builtin_add_overflow(bytes, sizeof(td_tuple), &bytes)) {
    td_raise_memory(I);
    return NULL;
  }
  td_tuple *tuple = td_object_new(I, &td_tuple_type, bytes); // zeroed: all items are NIL
  if (tuple) tuple->count = count;
  return tuple;
}

td_value td_tuple_pack(td_interpreter *I, int count, ...) {
  td_tuple *tuple = td_tuple_new(I, count);
  va_list list;
  va_start(list, count);
  for (int i = 0; i < count; i++) {
    td_value item = va_arg(list, td_value);
    if (tuple) tuple->items[i] = item;
    else td_unref(item);
  }
  va_end(list);
  return td_from(tuple);
}

td_value td_tuple_renew(td_interpreter *I, td_value *row, td_value a, td_value b) {
  if (row->tag == TD_TAG_OBJECT && row->o->refs == 1) {
    td_tuple *tuple = td_as_tuple(*row);
    td_value old_a = tuple->items[0], old_b = tuple->items[1];
    tuple->items[0] = a;
    tuple->items[1] = b;
    row->o->refs = 2;
    td_unref(old_a);
    td_unref(old_b);
    return *row;
  }
  td_tuple *tuple = td_tuple_new(I, 2);
  if (!tuple) {
    td_unref(a);
    td_unref(b);
    return TD_NIL;
  }
  tuple->items[0] = a;
  tuple->items[1] = b;
  td_value old = *row, fresh = td_from(tuple);
  *row = td_ref(fresh);
  td_unref(old);
  return fresh;
}

td_value td_tuple_from(td_interpreter *I, td_value iterable) {
  if (td_is(iterable, &td_tuple_type)) return td_ref(iterable);
  td_value source = td_is(iterable, &td_list_type) ? td_ref(iterable) : td_list_from(I, iterable);
  if (td_is_nil(source)) return TD_NIL;
  td_list *list = td_as_list(source);
  td_tuple *tuple = td_tuple_new(I, list->count);
  for (int64_t i = 0; tuple && i < list->count; i++) tuple->items[i] = td_ref(list->items[i]);
  td_unref(source);
  return td_from(tuple);
}

static void tuple_release(td_object *object) {
  td_tuple *tuple = (td_tuple *)object;
  int64_t count = tuple->count;
  tuple->count = 0;
  for (int64_t i = 0; i < count; i++) td_unref(tuple->items[i]);
}

static void tuple_visit(td_object *object, td_visitor *visit, void *argument) {
  td_tuple *tuple = (td_tuple *)object;
  for (int64_t i = 0; i < tuple->count; i++)
    if (tuple->items[i].tag == TD_TAG_OBJECT) visit(tuple->items[i].o, argument);
}

// ---- lists and tuples alike ----
static int64_t count_of(td_value v) { return td_is(v, &td_list_type) ? td_as_list(v)->count : td_as_tuple(v)->count; }
static td_value item_of(td_value v, int64_t i) {
  return td_is(v, &td_list_type) ? td_as_list(v)->items[i] : td_as_tuple(v)->items[i];
}

bool td_sequence_repr(td_interpreter *I, td_value v, const char *open, const char *close, td_text *text) {
  if (v.o->flags & TD_OBJECT_REPR) {
    td_text_print(text, "%s...%s", open, *close == ',' ? close + 1 : close);
    return true;
  }
  if (td_recursion(I)) return false;
  v.o->flags |= TD_OBJECT_REPR;
  td_text_add(text, open);
  bool done = true;
  for (int64_t i = 0; done && i < count_of(v); i++) { // a __repr__ may shorten a list
    td_value item = td_ref(item_of(v, i));
    if (i) td_text_add(text, ", ");
    done = td_repr(I, item, text) && !td_interrupted(I);
    td_unref(item);
  }
  v.o->flags &= ~(uint32_t)TD_OBJECT_REPR;
  td_text_add(text, close);
  return done;
}

static td_value by_length(int comparison, int64_t a, int64_t b) {
  switch (comparison) {
  case TD_COMPARE_EQUAL: return td_bool(a == b);
  case TD_COMPARE_NOT_EQUAL: return td_bool(a != b);
  case TD_COMPARE_LESS: return td_bool(a < b);
  case TD_COMPARE_LESS_EQUAL: return td_bool(a <= b);
  case TD_COMPARE_GREATER: return td_bool(a > b);
  default: return td_bool(a >= b);
  }
}

td_value td_sequence_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  bool equality = comparison == TD_COMPARE_EQUAL || comparison == TD_COMPARE_NOT_EQUAL;
  if (equality && count_of(a) != count_of(b)) return td_bool(comparison == TD_COMPARE_NOT_EQUAL);
  if (td_recursion(I)) return TD_NIL;
  for (int64_t i = 0; i < count_of(a) && i < count_of(b); i++) {
    td_value x = td_ref(item_of(a, i)), y = td_ref(item_of(b, i)); // held: an __eq__ may change the lists
    int equal = td_equal_values(I, x, y);
    td_value result = TD_NIL;
    bool gone = i >= count_of(a) || i >= count_of(b); // the comparison shortened a list
    if (equal == 0 && !gone)
      result = equality ? td_bool(comparison == TD_COMPARE_NOT_EQUAL) : td_compare(I, comparison, x, y);
    td_unref(x);
    td_unref(y);
    if (equal == 0 && gone) break;
    if (equal != 1) return result;
  }
  return by_length(comparison, count_of(a), count_of(b));
}

// ---- operators ----
static td_value tuple_slice(td_interpreter *I, td_value v, td_value key) {
  td_tuple *tuple = td_as_tuple(v);
  int64_t start, step, count;
  if (!td_slice_resolve(I, key, tuple->count, &start, &step, &count)) return TD_NIL;
  if (count == tuple->count && step == 1) return td_ref(v);
  td_tuple *part = td_tuple_new(I, count);
  for (int64_t i = 0; part && i < count; i++) part->items[i] = td_ref(tuple->items[start + i * step]);
  return td_from(part);
}

static td_value tuple_item(td_interpreter *I, td_value v, td_value key) {
  if (td_is(key, &td_slice_type)) return tuple_slice(I, v, key);
  int64_t index;
  return td_index_resolve(I, key, td_as_tuple(v)->count, "tuple", &index) ? td_ref(td_as_tuple(v)->items[index])
                                                                          : TD_NIL;
}

static int64_t tuple_length(td_interpreter *I, td_value v) {
  (void)I;
  return td_as_tuple(v)->count;
}

static td_value tuple_iterate(td_interpreter *I, td_value v) { return td_sequence_iterator_new(I, v, false); }

static int tuple_contains(td_interpreter *I, td_value v, td_value item) {
  td_tuple *tuple = td_as_tuple(v);
  for (int64_t i = 0; i < tuple->count; i++) {
    int equal = td_equal_values(I, tuple->items[i], item);
    if (equal) return equal;
  }
  return 0;
}

static td_value tuple_repeat(td_interpreter *I, td_value v, int64_t times) {
  td_tuple *tuple = td_as_tuple(v);
  if (times == 1) return td_ref(v);
  int64_t count;
  if (times < 0) times = 0;
  if (__builtin_mul_overflow(tuple->count, times, &count)) return td_raise_memory(I);
  td_tuple *result = td_tuple_new(I, count);
  for (int64_t i = 0; result && i < count; i++) result->items[i] = td_ref(tuple->items[i % tuple->count]);
  return td_from(result);
}

static td_value tuple_binary(td_interpreter *I, int op, td_value a, td_value b) {
  bool left = td_is(a, &td_tuple_type);
  if (op == TD_BINARY_MULTIPLY) {
    td_value tuple = left ? a : b, times = left ? b : a;
    if (td_is_integer(times)) return tuple_repeat(I, tuple, times.i);
    return td_passes_on(times) ? TD_NOT_IMPLEMENTED : td_repeat_refused(I, times);
  }
  if (op != TD_BINARY_ADD || !left) return TD_NOT_IMPLEMENTED;
  if (!td_is(b, &td_tuple_type)) {
    if (td_passes_on(b)) return TD_NOT_IMPLEMENTED;
    return td_raise(I, TD_CLASS_TYPE_ERROR, "can only concatenate tuple (not \"%s\") to tuple", td_type_name(I, b));
  }
  td_tuple *x = td_as_tuple(a), *y = td_as_tuple(b);
  if (x->count == 0) return td_ref(b);
  if (y->count == 0) return td_ref(a);
  td_tuple *result = td_tuple_new(I, x->count + y->count);
  for (int64_t i = 0; result && i < result->count; i++)
    result->items[i] = td_ref(i < x->count ? x->items[i] : y->items[i - x->count]);
  return td_from(result);
}

static td_value tuple_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  return td_is(a, &td_tuple_type) && td_is(b, &td_tuple_type) ? td_sequence_compare(I, comparison, a, b)
                                                              : TD_NOT_IMPLEMENTED;
}

static bool tuple_hash(td_interpreter *I, td_value v, uint64_t *hash) { // Python's mixing, after xxHash
  const uint64_t prime1 = 11400714785074694791u, prime2 = 14029467366897019727u, prime5 = 2870177450012600261u;
  td_tuple *tuple = td_as_tuple(v);
  if (td_recursion(I)) return false;
  uint64_t total = prime5;
  for (int64_t i = 0; i < tuple->count; i++) {
    uint64_t lane;
    if (!td_hash(I, tuple->items[i], &lane)) return false;
    total += lane * prime2;
    total = (total << 31 | total >> 33) * prime1;
  }
  total += (uint64_t)tuple->count ^ (prime5 ^ 3527539u);
  *hash = total == (uint64_t)-1 ? 1546275796u : total;
  return true;
}

static bool tuple_repr(td_interpreter *I, td_value v, td_text *text) {
  return td_sequence_repr(I, v, "(", td_as_tuple(v)->count == 1 ? ",)" : ")", text);
}

// ---- methods ----
static td_value tuple_count(td_interpreter *I, td_value self, td_value *arguments) {
  td_tuple *tuple = td_as_tuple(self);
  int64_t found = 0;
  for (int64_t i = 0; i < tuple->count; i++) {
    int equal = td_equal_values(I, tuple->items[i], arguments[0]);
    if (equal < 0) return TD_NIL;
    found += equal;
  }
  return td_int(found);
}

static td_value tuple_index(td_interpreter *I, td_value self, td_value *arguments) {
  td_tuple *tuple = td_as_tuple(self);
  int64_t first, last;
  if (!td_slice_bounds(I, arguments[1], arguments[2], tuple->count, &first, &last)) return TD_NIL;
  for (int64_t i = first; i < last; i++) {
    int equal = td_equal_values(I, tuple->items[i], arguments[0]);
    if (equal < 0) return TD_NIL;
    if (equal) return td_int(i);
  }
  return td_raise(I, TD_CLASS_VALUE_ERROR, "tuple.index(x): x not in tuple");
}

static const td_method methods[] = {
    {"count", "(value, /)", tuple_count, "How many items are equal to value.\n>>> (1, 2, 1).count(1)"},
    {"index", "(value, start=None, stop=None, /)", tuple_index,
     "Position of the first item equal to value; ValueError if there is none.\n>>> (4, 5).index(5)"},
    {NULL, NULL, NULL, NULL}};

const td_type td_tuple_type = {
    .name = "tuple",
    .size = sizeof(td_tuple),
    .release = tuple_release,
    .visit = tuple_visit,
    .clear = tuple_release,
    .repr = tuple_repr,
    .item = tuple_item,
    .length = tuple_length,
    .iterate = tuple_iterate,
    .contains = tuple_contains,
    .binary = tuple_binary,
    .compare = tuple_compare,
    .hash = tuple_hash,
    .methods = methods,
    .doc = "tuple(iterable=()): values in a fixed order that can't be changed.\n>>> tuple(\"ab\")"};
