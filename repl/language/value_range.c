// range: an arithmetic progression of ints that holds no memory; its iterator counts. Lengths and elements fit in 64
// bits.
#include "repl/language/builtins.h"

typedef struct range_iterator {
  td_object object;
  int64_t next, step, left;
} range_iterator;

static uint64_t magnitude(int64_t i) { return i < 0 ? 0 - (uint64_t)i : (uint64_t)i; }

static bool range_count(int64_t start, int64_t stop, int64_t step, int64_t *count) {
  if (step > 0 ? start >= stop : start <= stop) {
    *count = 0;
    return true;
  }
  uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t items = (distance - 1) / magnitude(step) + 1;
  *count = (int64_t)items;
  return items <= INT64_MAX;
}

bool td_range_make(td_interpreter *I, int64_t start, int64_t stop, int64_t step, td_value *range) {
  int64_t count;
  if (step == 0) td_raise(I, TD_CLASS_VALUE_ERROR, "range() arg 3 must not be zero");
  else if (!range_count(start, stop, step, &count))
    td_raise(I, TD_CLASS_OVERFLOW_ERROR, "range() has more elements than fit in 64 bits");
  else {
    td_range *r = td_object_new(I, &td_range_type, sizeof *r);
    if (!r) return false;
    r->start = start, r->stop = stop, r->step = step, r->count = count;
    *range = td_from(r);
    return true;
  }
  return false;
}

static td_range *as_range(td_value v) { return (td_range *)v.o; }

static int64_t element(const td_range *r, int64_t index) {
  return (int64_t)((uint64_t)r->start + (uint64_t)index * (uint64_t)r->step);
}

static td_value range_item(td_interpreter *I, td_value v, td_value key) {
  td_range *r = as_range(v);
  int64_t index, start, step, count;
  if (!td_is(key, &td_slice_type))
    return td_index_resolve(I, key, r->count, "range", &index) ? td_int(element(r, index)) : TD_NIL;
  if (!td_slice_resolve(I, key, r->count, &start, &step, &count)) return TD_NIL;
  // The stop that Python shows is the element where the slice's own stop points; an index of the slice can't tell it
  td_value length = td_int(r->count), indices = td_call_method(I, key, "indices", 1, &length), result = TD_NIL;
  if (td_is_nil(indices)) return TD_NIL;
  int64_t stride;
  if (__builtin_mul_overflow(r->step, step, &stride)) stride = (step > 0) == (r->step > 0) ? INT64_MAX : -INT64_MAX;
  td_range_make(I, element(r, start), element(r, td_as_tuple(indices)->items[1].i), stride, &result);
  td_unref(indices);
  return result;
}

static int64_t range_length(td_interpreter *I, td_value v) {
  (void)I;
  return as_range(v)->count;
}

static bool holds(const td_range *r, int64_t value, int64_t *index) {
  if (r->count == 0) return false;
  int64_t last = element(r, r->count - 1), low = r->step > 0 ? r->start : last, high = r->step > 0 ? last : r->start;
  if (value < low || value > high) return false;
  uint64_t distance = r->step > 0 ? (uint64_t)value - (uint64_t)r->start : (uint64_t)r->start - (uint64_t)value;
  uint64_t stride = magnitude(r->step);
  *index = (int64_t)(distance / stride);
  return distance % stride == 0;
}

// Position of a number in the range; false: not in it. Other values may be equal to ints as well, so they are compared.
static int find_value(td_interpreter *I, td_range *r, td_value item, int64_t *index) {
  if (td_is_integer(item)) return holds(r, item.i, index);
  if (item.tag == TD_TAG_DOUBLE) {
    if (!(item.f >= -9223372036854775808.0 && item.f < 9223372036854775808.0) || item.f != (double)(int64_t)item.f)
      return 0;
    return holds(r, (int64_t)item.f, index);
  }
  if (!td_is(item, &td_instance_type)) return 0;
  for (*index = 0; *index < r->count; ++*index) {
    int equal = td_equal_values(I, td_int(element(r, *index)), item);
    if (equal) return equal;
    if (td_interrupted(I)) return -1;
  }
  return 0;
}

static int range_contains(td_interpreter *I, td_value v, td_value item) {
  int64_t index;
  return find_value(I, as_range(v), item, &index);
}

static bool range_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_range *r = as_range(v);
  td_text_print(text, "range(%lld, %lld", (long long)r->start, (long long)r->stop);
  if (r->step != 1) td_text_print(text, ", %lld", (long long)r->step);
  td_text_add_char(text, ')');
  return true;
}

static td_value range_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  (void)I;
  if (!td_is(a, &td_range_type) || !td_is(b, &td_range_type) || comparison > TD_COMPARE_NOT_EQUAL)
    return TD_NOT_IMPLEMENTED;
  td_range *x = as_range(a), *y = as_range(b);
  bool equal =
      x->count == y->count && (x->count == 0 || (x->start == y->start && (x->count == 1 || x->step == y->step)));
  return td_bool(equal == (comparison == TD_COMPARE_EQUAL));
}

static bool range_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  td_range *r = as_range(v);
  td_value key = td_tuple_pack(I, 3, td_int(r->count), r->count ? td_int(r->start) : TD_NONE,
                               r->count > 1 ? td_int(r->step) : TD_NONE);
  bool done = !td_is_nil(key) && td_hash(I, key, hash);
  td_unref(key);
  return done;
}

static td_value range_attribute(td_interpreter *I, td_value v, td_str *name) {
  (void)I;
  if (!strcmp(name->data, "start")) return td_int(as_range(v)->start);
  if (!strcmp(name->data, "stop")) return td_int(as_range(v)->stop);
  if (!strcmp(name->data, "step")) return td_int(as_range(v)->step);
  return TD_NIL;
}

static td_value range_index(td_interpreter *I, td_value self, td_value *arguments) {
  int64_t index;
  int found = find_value(I, as_range(self), arguments[0], &index);
  if (found > 0) return td_int(index);
  if (found < 0) return TD_NIL;
  td_text text = {0};
  if (td_repr(I, arguments[0], &text) && text.data) td_raise(I, TD_CLASS_VALUE_ERROR, "%s is not in range", text.data);
  td_text_clear(&text);
  return TD_NIL;
}

static td_value range_count_of(td_interpreter *I, td_value self, td_value *arguments) {
  int found = range_contains(I, self, arguments[0]);
  return found < 0 ? TD_NIL : td_int(found);
}

static const td_method methods[] = {
    {"index", "(value, /)", range_index,
     "Position of value in the range; ValueError if it isn't in it.\n>>> range(0, 10, 2).index(4)"},
    {"count", "(value, /)", range_count_of, "1 if value is in the range, else 0.\n>>> range(10).count(3)"},
    {NULL, NULL, NULL, NULL}};

// ---- iterators ----
static td_value iterator_new(td_interpreter *I, int64_t next, int64_t step, int64_t left) {
  range_iterator *it = td_object_new(I, &td_range_iterator_type, sizeof *it);
  if (!it) return TD_NIL;
  it->next = next, it->step = step, it->left = left;
  return td_from(it);
}

static td_value range_iterate(td_interpreter *I, td_value v) {
  return iterator_new(I, as_range(v)->start, as_range(v)->step, as_range(v)->count);
}

td_value td_range_reversed(td_interpreter *I, td_value v) {
  td_range *r = as_range(v);
  return iterator_new(I, r->count ? element(r, r->count - 1) : 0, (int64_t)(0 - (uint64_t)r->step), r->count);
}

static td_value iterator_next(td_interpreter *I, td_value v) {
  (void)I;
  range_iterator *it = (range_iterator *)v.o;
  if (it->left <= 0) return TD_NIL;
  it->left--;
  int64_t value = it->next;
  it->next = (int64_t)((uint64_t)it->next + (uint64_t)it->step);
  return td_int(value);
}

static td_value iterator_self(td_interpreter *I, td_value v) {
  (void)I;
  return td_ref(v);
}

const td_type td_range_iterator_type = {.name = "range_iterator",
                                        .size = sizeof(range_iterator),
                                        .iterate = iterator_self,
                                        .next = iterator_next,
                                        .doc = "What a for loop over a range asks for numbers."};
const td_type td_range_type = {.name = "range",
                               .size = sizeof(td_range),
                               .repr = range_repr,
                               .attribute = range_attribute,
                               .item = range_item,
                               .length = range_length,
                               .iterate = range_iterate,
                               .contains = range_contains,
                               .compare = range_compare,
                               .hash = range_hash,
                               .methods = methods,
                               .doc = "range(stop) or range(start, stop, step=1): ints from start up to, not "
                                      "including, stop.\n>>> list(range(2, 10, 3))"};
