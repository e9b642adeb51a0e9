// Lazy iterators: over sequences by index, enumerate, zip, map, filter, reversed and iter(callee, sentinel). Each is an
// object that computes one element when asked and lets go of what it iterates over when it has ended.
#include "repl/language/builtins.h"

static td_value iterator_self(td_interpreter *I, td_value v) {
  (void)I;
  return td_ref(v);
}

// ---- list, tuple, str by index; range has its own ----
typedef struct sequence_iterator {
  td_container container;
  td_value sequence; // NIL: ended
  int64_t position; // index of the next item; bytes in a str
  bool reverse; // position is one after the next item
} sequence_iterator;

static td_value sequence_iterator_new(td_interpreter *I, const td_type *type, td_value sequence, bool reverse) {
  sequence_iterator *it = td_object_new(I, type, sizeof *it);
  if (!it) return TD_NIL;
  it->sequence = td_ref(sequence);
  it->reverse = reverse;
  if (reverse) it->position = td_is(sequence, &td_str_type) ? td_as_str(sequence)->length : td_length(I, sequence);
  return td_from(it);
}

td_value td_sequence_iterator_new(td_interpreter *I, td_value sequence, bool reverse) {
  return sequence_iterator_new(I, &td_sequence_iterator_type, sequence, reverse);
}

static void sequence_release(td_object *object) {
  sequence_iterator *it = (sequence_iterator *)object;
  td_value old = it->sequence;
  it->sequence = TD_NIL;
  td_unref(old);
}

static void sequence_visit(td_object *object, td_visitor *visit, void *argument) {
  sequence_iterator *it = (sequence_iterator *)object;
  if (it->sequence.tag == TD_TAG_OBJECT) visit(it->sequence.o, argument);
}

static td_value next_character(td_interpreter *I, sequence_iterator *it) {
  td_str *s = td_as_str(it->sequence);
  if (it->reverse ? it->position == 0 : it->position >= s->length) return TD_NIL;
  if (it->reverse) do
      it->position--;
    while (((unsigned char)s->data[it->position] & 0xC0) == 0x80);
  const char *bytes = s->data + it->position;
  if (!it->reverse) it->position += td_utf8_size((unsigned char)*bytes);
  return td_from(td_str_character(I, bytes));
}

static td_value next_item(td_interpreter *I, sequence_iterator *it) {
  bool is_list = td_is(it->sequence, &td_list_type), is_tuple = td_is(it->sequence, &td_tuple_type);
  if (!is_list && !is_tuple) { // an object with __len__ and __getitem__, in reverse
    if (it->position <= 0) return TD_NIL;
    return td_item(I, it->sequence, td_int(--it->position));
  }
  int64_t count = is_list ? td_as_list(it->sequence)->count : td_as_tuple(it->sequence)->count;
  td_value *items = is_list ? td_as_list(it->sequence)->items : td_as_tuple(it->sequence)->items;
  if (!it->reverse) return it->position < count ? td_ref(items[it->position++]) : TD_NIL;
  if (it->position > count) it->position = 0; // the list became shorter: as Python, it ends
  return it->position > 0 ? td_ref(items[--it->position]) : TD_NIL;
}

static td_value sequence_next(td_interpreter *I, td_value v) {
  sequence_iterator *it = (sequence_iterator *)v.o;
  if (td_is_nil(it->sequence)) return TD_NIL;
  td_value item = td_is(it->sequence, &td_str_type) ? next_character(I, it) : next_item(I, it);
  if (td_is_nil(item) && td_is_nil(I->raised)) sequence_release(v.o);
  return item;
}

const td_type td_sequence_iterator_type = {.name = "sequence_iterator",
                                           .size = sizeof(sequence_iterator),
                                           .release = sequence_release,
                                           .visit = sequence_visit,
                                           .clear = sequence_release,
                                           .iterate = iterator_self,
                                           .next = sequence_next,
                                           .doc = "What a for loop over a list, tuple or str asks for elements."};
const td_type td_reversed_type = {
    .name = "reversed",
    .size = sizeof(sequence_iterator),
    .release = sequence_release,
    .visit = sequence_visit,
    .clear = sequence_release,
    .iterate = iterator_self,
    .next = sequence_next,
    .doc = "reversed(sequence): the elements from the last to the first.\n>>> list(reversed([1, 2, 3]))"};

td_value td_reversed_new(td_interpreter *I, td_value v) {
  if (td_is(v, &td_range_type)) return td_range_reversed(I, v);
  if (td_is(v, &td_dict_type)) return td_dict_iterator_new(I, td_as_dict(v), TD_DICT_KEYS, true);
  if (td_is(v, &td_dict_keys_type)) return td_dict_iterator_new(I, td_dict_view_dict(v), TD_DICT_KEYS, true);
  if (td_is(v, &td_dict_values_type)) return td_dict_iterator_new(I, td_dict_view_dict(v), TD_DICT_VALUES, true);
  if (td_is(v, &td_dict_items_type)) return td_dict_iterator_new(I, td_dict_view_dict(v), TD_DICT_ITEMS, true);
  if (td_is(v, &td_instance_type)) {
    td_str *name = td_str_from(I, "__reversed__");
    td_value method = name ? td_attribute_find(I, v, name) : TD_NIL;
    td_unref(td_from(name));
    td_value result = td_is_nil(method) ? TD_NIL : td_call_values(I, method, 0, NULL);
    td_unref(method);
    if (!td_is_nil(result) || !td_is_nil(I->raised)) return result;
  }
  const td_type *type = td_type_of(v);
  if (!type->item || !type->length || type == &td_set_type)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not reversible", td_type_name(I, v));
  td_value it = sequence_iterator_new(I, &td_reversed_type, v, true);
  if (td_is_nil(it) || td_is_nil(I->raised)) return it;
  td_unref(it);
  return TD_NIL;
}

// ---- enumerate ----
typedef struct enumerate {
  td_container container;
  td_value iterator, row;
  int64_t count;
} enumerate; // row: the last pair

td_value td_enumerate_new(td_interpreter *I, td_value iterable, int64_t start) {
  td_value iterator = td_iterate(I, iterable);
  if (td_is_nil(iterator)) return TD_NIL;
  enumerate *it = td_object_new(I, &td_enumerate_type, sizeof *it);
  if (!it) {
    td_unref(iterator);
    return TD_NIL;
  }
  it->iterator = iterator;
  it->count = start;
  return td_from(it);
}

static void enumerate_release(td_object *object) {
  enumerate *it = (enumerate *)object;
  td_value iterator = it->iterator, row = it->row;
  it->iterator = it->row = TD_NIL;
  td_unref(iterator);
  td_unref(row);
}

static void enumerate_visit(td_object *object, td_visitor *visit, void *argument) {
  enumerate *it = (enumerate *)object;
  if (it->row.tag == TD_TAG_OBJECT) visit(it->row.o, argument);
  if (it->iterator.tag == TD_TAG_OBJECT) visit(it->iterator.o, argument);
}

static td_value enumerate_next(td_interpreter *I, td_value v) {
  enumerate *it = (enumerate *)v.o;
  if (td_is_nil(it->iterator)) return TD_NIL;
  td_value item = td_next(I, it->iterator);
  if (td_is_nil(item)) return TD_NIL;
  if (it->count == INT64_MAX) {
    td_unref(item);
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: enumerate counts past 64 bits");
  }
  return td_tuple_renew(I, &it->row, td_int(it->count++), item);
}

const td_type td_enumerate_type = {
    .name = "enumerate",
    .size = sizeof(enumerate),
    .release = enumerate_release,
    .visit = enumerate_visit,
    .clear = enumerate_release,
    .iterate = iterator_self,
    .next = enumerate_next,
    .doc = "enumerate(iterable, start=0): pairs (number, element).\n>>> list(enumerate(\"ab\"))"};

// ---- zip, map, filter: a function and iterators ----
typedef struct joined {
  td_container container;
  td_value function; // map, filter
  td_value iterators; // a tuple; NIL: ended
  td_value row; // zip: the last pair
  bool strict; // zip
} joined;

static td_value joined_new(td_interpreter *I, const td_type *type, td_value function, td_tuple *iterables) {
  td_tuple *iterators = td_tuple_new(I, iterables->count);
  for (int64_t i = 0; iterators && i < iterables->count; i++) {
    iterators->items[i] = td_iterate(I, iterables->items[i]);
    if (!td_is_nil(iterators->items[i])) continue;
    td_unref(td_from(iterators));
    return TD_NIL;
  }
  joined *it = iterators ? td_object_new(I, type, sizeof *it) : NULL;
  if (!it) {
    td_unref(td_from(iterators));
    return TD_NIL;
  }
  it->function = td_ref(function);
  it->iterators = td_from(iterators);
  return td_from(it);
}

static void joined_release(td_object *object) {
  joined *it = (joined *)object;
  td_value function = it->function, iterators = it->iterators, row = it->row;
  it->function = it->iterators = it->row = TD_NIL;
  td_unref(function);
  td_unref(row);
  td_unref(iterators);
}

static void joined_visit(td_object *object, td_visitor *visit, void *argument) {
  joined *it = (joined *)object;
  if (it->row.tag == TD_TAG_OBJECT) visit(it->row.o, argument);
  if (it->function.tag == TD_TAG_OBJECT) visit(it->function.o, argument);
  if (it->iterators.tag == TD_TAG_OBJECT) visit(it->iterators.o, argument);
}

td_value td_zip_new(td_interpreter *I, td_tuple *iterables, bool strict) {
  td_value zip = joined_new(I, &td_zip_type, TD_NONE, iterables);
  if (!td_is_nil(zip)) ((joined *)zip.o)->strict = strict;
  return zip;
}

static td_value strict_error(td_interpreter *I, int64_t number, const char *how) {
  if (number == 2) return td_raise(I, TD_CLASS_VALUE_ERROR, "zip() argument 2 is %s than argument 1", how);
  return td_raise(I, TD_CLASS_VALUE_ERROR, "zip() argument %lld is %s than arguments 1-%lld", (long long)number, how,
                  (long long)number - 1);
}

// Iterator i ended: in strict mode all before it must not have had an element, and all after it must end too.
static td_value zip_ended(td_interpreter *I, joined *it, int64_t i) {
  td_value held = it->iterators;
  it->iterators = TD_NIL;
  td_tuple *iterators = td_as_tuple(held);
  if (it->strict && td_is_nil(I->raised)) {
    if (i > 0) strict_error(I, i + 1, "shorter");
    for (int64_t j = 1; i == 0 && j < iterators->count && td_is_nil(I->raised); j++) {
      td_value item = td_next(I, iterators->items[j]);
      if (!td_is_nil(item)) strict_error(I, j + 1, "longer");
      td_unref(item);
    }
  }
  td_unref(held);
  return TD_NIL;
}

static td_value zip_pair(td_interpreter *I, joined *it, td_tuple *iterators) {
  td_value a = td_next(I, iterators->items[0]);
  if (td_is_nil(a)) return zip_ended(I, it, 0);
  td_value b = td_next(I, iterators->items[1]);
  if (!td_is_nil(b)) return td_tuple_renew(I, &it->row, a, b);
  td_unref(a);
  return zip_ended(I, it, 1);
}

static td_value zip_row(td_interpreter *I, joined *it, td_tuple *iterators) {
  if (iterators->count == 2) return zip_pair(I, it, iterators);
  td_tuple *row = td_tuple_new(I, iterators->count);
  for (int64_t i = 0; row && i < iterators->count; i++) {
    row->items[i] = td_next(I, iterators->items[i]);
    if (!td_is_nil(row->items[i])) continue;
    td_unref(td_from(row));
    return zip_ended(I, it, i);
  }
  return td_from(row);
}

static td_value zip_next(td_interpreter *I, td_value v) {
  joined *it = (joined *)v.o;
  if (td_is_nil(it->iterators) || td_as_tuple(it->iterators)->count == 0) return TD_NIL;
  td_value held = td_ref(it->iterators); // an iterator may ask this zip for elements, and so end it
  td_value row = zip_row(I, it, td_as_tuple(held));
  td_unref(held);
  return row;
}

const td_type td_zip_type = {.name = "zip",
                             .size = sizeof(joined),
                             .release = joined_release,
                             .visit = joined_visit,
                             .clear = joined_release,
                             .iterate = iterator_self,
                             .next = zip_next,
                             .doc = "zip(*iterables, strict=False): tuples of one element of each, until the shortest "
                                    "ends.\n>>> list(zip([1, 2], \"ab\"))"};

td_value td_map_new(td_interpreter *I, td_value function, td_tuple *iterables) {
  return joined_new(I, &td_map_type, function, iterables);
}

static td_value map_next(td_interpreter *I, td_value v) {
  joined *it = (joined *)v.o;
  if (td_is_nil(it->iterators)) return TD_NIL;
  td_tuple *iterators = td_as_tuple(it->iterators);
  td_value few[4] = {TD_NIL, TD_NIL, TD_NIL, TD_NIL}, *values = few, result = TD_NIL;
  if (iterators->count > 4 && !(values = td_memory_new((size_t)iterators->count * sizeof *values)))
    return td_raise_memory(I);
  td_value held = td_ref(it->iterators), function = td_ref(it->function);
  int64_t count = 0;
  while (count < iterators->count && !td_is_nil(values[count] = td_next(I, iterators->items[count]))) count++;
  if (count == iterators->count) result = td_call_values(I, function, (int)count, values);
  while (count-- > 0) td_unref(values[count]);
  if (values != few) td_memory_free(values);
  td_unref(held);
  td_unref(function);
  return result;
}

const td_type td_map_type = {
    .name = "map",
    .size = sizeof(joined),
    .release = joined_release,
    .visit = joined_visit,
    .clear = joined_release,
    .iterate = iterator_self,
    .next = map_next,
    .doc = "map(function, *iterables): function of the elements, one after the other.\n>>> list(map(abs, [-1, 2]))"};

td_value td_filter_new(td_interpreter *I, td_value function, td_value iterable) {
  td_value one = td_tuple_pack(I, 1, td_ref(iterable));
  td_value filter = td_is_nil(one) ? TD_NIL : joined_new(I, &td_filter_type, function, td_as_tuple(one));
  td_unref(one);
  return filter;
}

static int passes(td_interpreter *I, td_value function, td_value item) {
  if (td_is_none(function)) return td_truth(I, item);
  td_value result = td_call_values(I, function, 1, &item);
  if (td_is_nil(result)) return -1;
  int truth = td_truth(I, result);
  td_unref(result);
  return truth;
}

static td_value filter_next(td_interpreter *I, td_value v) {
  joined *it = (joined *)v.o;
  if (td_is_nil(it->iterators)) return TD_NIL;
  td_value held = td_ref(it->iterators), function = td_ref(it->function), item;
  int wanted = 0;
  while (!td_is_nil(item = td_next(I, td_as_tuple(held)->items[0]))) {
    wanted = passes(I, function, item);
    if (wanted == 0 && td_interrupted(I)) wanted = -1;
    if (wanted) break;
    td_unref(item);
  }
  td_unref(held);
  td_unref(function);
  if (wanted >= 0) return item;
  td_unref(item);
  return TD_NIL;
}

const td_type td_filter_type = {.name = "filter",
                                .size = sizeof(joined),
                                .release = joined_release,
                                .visit = joined_visit,
                                .clear = joined_release,
                                .iterate = iterator_self,
                                .next = filter_next,
                                .doc = "filter(function, iterable): the elements for which function is true; None: "
                                       "those that are true.\n>>> list(filter(None, [0, 1, 2]))"};

// ---- iter(callee, sentinel) ----
td_value td_call_iterator_new(td_interpreter *I, td_value callee, td_value sentinel) {
  joined *it = td_object_new(I, &td_call_iterator_type, sizeof *it);
  if (!it) return TD_NIL;
  it->function = td_ref(callee);
  it->iterators = td_ref(sentinel);
  return td_from(it);
}

static td_value call_next(td_interpreter *I, td_value v) {
  joined *it = (joined *)v.o;
  if (td_is_nil(it->iterators)) return TD_NIL;
  td_value held = td_ref(it->function), sentinel = td_ref(it->iterators), item = td_call_values(I, held, 0, NULL);
  int equal = td_is_nil(item) ? -1 : td_equal_values(I, sentinel, item);
  td_unref(held);
  td_unref(sentinel);
  if (equal == 0) return item;
  td_unref(item);
  if (equal == 1) joined_release(v.o);
  return TD_NIL;
}

const td_type td_call_iterator_type = {.name = "callable_iterator",
                                       .size = sizeof(joined),
                                       .release = joined_release,
                                       .visit = joined_visit,
                                       .clear = joined_release,
                                       .iterate = iterator_self,
                                       .next = call_next,
                                       .doc =
                                           "iter(callee, sentinel): what callee() returns, until it returns sentinel."};
