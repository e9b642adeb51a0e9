// dict as a type: items, operators, methods. The table is in dict.c, views and iterators are in dict_view.c.
#include "repl/language/builtins.h"

td_value td_raise_key(td_interpreter *I, td_value container, td_value key) {
  td_value class = {.tag = TD_TAG_OBJECT, .o = &I->classes[TD_CLASS_KEY_ERROR]->container.object};
  td_value exception = td_call_values(I, class, 1, &key);
  if (td_is_nil(exception)) return TD_NIL;
  td_raise_value(I, exception);
  td_raise_evidence(I, container);
  td_unref(exception);
  return TD_NIL;
}

static td_value key_error(td_interpreter *I, const char *message) {
  td_value text = td_from(td_str_from(I, message));
  if (!td_is_nil(text)) td_raise_key(I, TD_NIL, text);
  td_unref(text);
  return TD_NIL;
}

// ---- filling ----
static bool update_pair(td_interpreter *I, td_dict *dict, td_value pair, int64_t number) {
  if (!td_type_of(pair)->iterate && !td_type_of(pair)->next) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "cannot convert dictionary update sequence element #%lld to a sequence",
             (long long)number);
    return false;
  }
  td_value held = td_tuple_from(I, pair);
  if (td_is_nil(held)) return false;
  td_tuple *two = td_as_tuple(held);
  bool done = two->count == 2;
  if (!done)
    td_raise(I, TD_CLASS_VALUE_ERROR, "dictionary update sequence element #%lld has length %lld; 2 is required",
             (long long)number, (long long)two->count);
  done = done && td_dict_set(I, dict, two->items[0], two->items[1]);
  td_unref(held);
  return done;
}

static bool update_pairs(td_interpreter *I, td_dict *dict, td_value source) {
  td_value iterator = td_iterate(I, source), pair = TD_NIL;
  if (td_is_nil(iterator)) return false;
  bool done = true;
  for (int64_t number = 0; done && !td_is_nil(pair = td_next(I, iterator)); number++) {
    done = update_pair(I, dict, pair, number);
    td_unref(pair);
  }
  td_unref(iterator);
  return done && td_is_nil(I->raised);
}

static bool update_from_keys(td_interpreter *I, td_dict *dict, td_value source) {
  td_value keys = td_call_method(I, source, "keys", 0, NULL), iterator = td_is_nil(keys) ? TD_NIL : td_iterate(I, keys),
           key;
  td_unref(keys);
  if (td_is_nil(iterator)) return false;
  bool done = true;
  while (done && !td_is_nil(key = td_next(I, iterator))) {
    td_value value = td_item(I, source, key);
    done = !td_is_nil(value) && td_dict_set(I, dict, key, value);
    td_unref(key);
    td_unref(value);
  }
  td_unref(iterator);
  return done && td_is_nil(I->raised);
}

bool td_dict_update(td_interpreter *I, td_dict *dict, td_value source) {
  if (td_is(source, &td_dict_type)) return td_dict_merge(I, dict, td_as_dict(source));
  if (td_is(source, &td_instance_type)) {
    td_str *name = td_str_intern(I, "keys", 4);
    td_value keys = name ? td_attribute_find(I, source, name) : TD_NIL;
    td_unref(td_from(name));
    td_unref(keys);
    if (!td_is_nil(I->raised)) return false;
    if (!td_is_nil(keys)) return update_from_keys(I, dict, source);
  }
  return update_pairs(I, dict, source);
}

// ---- the type's operations ----
static void dict_release(td_object *object) { td_dict_clear((td_dict *)object); }

static void dict_visit(td_object *object, td_visitor *visit, void *argument) {
  td_dict *dict = (td_dict *)object;
  for (int64_t i = 0; i < dict->used; i++) {
    td_entry *entry = &dict->entries[i];
    if (entry->key.tag == TD_TAG_OBJECT) visit(entry->key.o, argument);
    if (entry->value.tag == TD_TAG_OBJECT) visit(entry->value.o, argument);
  }
}

static bool dict_repr(td_interpreter *I, td_value v, td_text *text) {
  if (v.o->flags & TD_OBJECT_REPR) {
    td_text_add(text, "{...}");
    return true;
  }
  if (td_recursion(I)) return false;
  v.o->flags |= TD_OBJECT_REPR;
  td_text_add_char(text, '{');
  bool done = true, first = true;
  td_value key, value;
  for (int64_t position = 0; done && td_dict_next(td_as_dict(v), &position, &key, &value); first = false) {
    td_ref(key);
    td_ref(value);
    if (!first) td_text_add(text, ", ");
    done = td_repr(I, key, text);
    td_text_add(text, ": ");
    done = done && td_repr(I, value, text) && !td_interrupted(I);
    td_unref(key);
    td_unref(value);
  }
  v.o->flags &= ~(uint32_t)TD_OBJECT_REPR;
  td_text_add_char(text, '}');
  return done;
}

static td_value dict_item(td_interpreter *I, td_value v, td_value key) {
  td_value value;
  int found = td_dict_get(I, td_as_dict(v), key, &value);
  if (found > 0) return td_ref(value);
  return found < 0 ? TD_NIL : td_raise_key(I, v, key);
}

static bool dict_set_item(td_interpreter *I, td_value v, td_value key, td_value value) {
  return td_dict_set(I, td_as_dict(v), key, value);
}

static bool dict_delete_item(td_interpreter *I, td_value v, td_value key) {
  int removed = td_dict_remove(I, td_as_dict(v), key);
  if (removed == 0) td_raise_key(I, v, key);
  return removed > 0;
}

static int64_t dict_length(td_interpreter *I, td_value v) {
  (void)I;
  return td_as_dict(v)->count;
}

static td_value dict_iterate(td_interpreter *I, td_value v) {
  return td_dict_iterator_new(I, td_as_dict(v), TD_DICT_KEYS, false);
}

static int dict_contains(td_interpreter *I, td_value v, td_value key) {
  td_value value;
  return td_dict_get(I, td_as_dict(v), key, &value);
}

static td_value dict_binary(td_interpreter *I, int op, td_value a, td_value b) {
  if (op != TD_BINARY_OR || !td_is(a, &td_dict_type) || !td_is(b, &td_dict_type)) return TD_NOT_IMPLEMENTED;
  td_dict *result = td_dict_copy(I, td_as_dict(a));
  if (result && td_dict_merge(I, result, td_as_dict(b))) return td_from(result);
  td_unref(td_from(result));
  return TD_NIL;
}

static td_value dict_in_place(td_interpreter *I, int op, td_value a, td_value b) {
  if (op != TD_BINARY_OR) return TD_NOT_IMPLEMENTED;
  return td_dict_update(I, td_as_dict(a), b) ? td_ref(a) : TD_NIL;
}

static int dicts_equal(td_interpreter *I, td_dict *a, td_dict *b) {
  td_value key, value;
  if (a->count != b->count) return 0;
  for (int64_t position = 0; td_dict_next(a, &position, &key, &value);) {
    td_value other;
    td_ref(key);
    td_ref(value);
    int equal = td_dict_get(I, b, key, &other);
    if (equal > 0) {
      td_ref(other);
      equal = td_equal_values(I, value, other);
      td_unref(other);
    }
    td_unref(key);
    td_unref(value);
    if (equal <= 0) return equal;
  }
  return 1;
}

static td_value dict_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  if (!td_is(a, &td_dict_type) || !td_is(b, &td_dict_type) || comparison > TD_COMPARE_NOT_EQUAL)
    return TD_NOT_IMPLEMENTED;
  if (td_recursion(I)) return TD_NIL;
  int equal = dicts_equal(I, td_as_dict(a), td_as_dict(b));
  return equal < 0 ? TD_NIL : td_bool(equal == (comparison == TD_COMPARE_EQUAL));
}

// ---- methods ----
static td_value dict_get(td_interpreter *I, td_value self, td_value *arguments) {
  td_value value;
  int found = td_dict_get(I, td_as_dict(self), arguments[0], &value);
  return found < 0 ? TD_NIL : td_ref(found ? value : arguments[1]);
}

static td_value dict_setdefault(td_interpreter *I, td_value self, td_value *arguments) {
  td_value value;
  int found = td_dict_get(I, td_as_dict(self), arguments[0], &value);
  if (found > 0) return td_ref(value);
  return found == 0 && td_dict_set(I, td_as_dict(self), arguments[0], arguments[1]) ? td_ref(arguments[1]) : TD_NIL;
}

static td_value dict_pop(td_interpreter *I, td_value self, td_value *arguments) {
  td_value value;
  int found = td_dict_get(I, td_as_dict(self), arguments[0], &value);
  if (found == 0) return td_is_nil(arguments[1]) ? td_raise_key(I, self, arguments[0]) : td_ref(arguments[1]);
  if (found < 0) return TD_NIL;
  td_ref(value);
  if (td_dict_remove(I, td_as_dict(self), arguments[0]) >= 0) return value;
  td_unref(value);
  return TD_NIL;
}

static td_value dict_popitem(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_dict *dict = td_as_dict(self);
  if (dict->count == 0) return key_error(I, "popitem(): dictionary is empty");
  td_entry last = dict->entries[dict->used - 1];
  td_value pair = td_tuple_pack(I, 2, td_ref(last.key), td_ref(last.value));
  if (!td_is_nil(pair) && td_dict_remove(I, dict, td_as_tuple(pair)->items[0]) >= 0) return pair;
  td_unref(pair);
  return TD_NIL;
}

static td_value dict_update(td_interpreter *I, td_value self, td_value *arguments) { // others, named
  td_dict *dict = td_as_dict(self);
  if (!td_is_nil(arguments[0]) && !td_dict_update(I, dict, arguments[0])) return TD_NIL;
  return td_dict_merge(I, dict, td_as_dict(arguments[1])) ? TD_NONE : TD_NIL;
}

static td_value dict_keys(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_dict_view_new(I, td_as_dict(self), TD_DICT_KEYS);
}

static td_value dict_values(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_dict_view_new(I, td_as_dict(self), TD_DICT_VALUES);
}

static td_value dict_items(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_dict_view_new(I, td_as_dict(self), TD_DICT_ITEMS);
}

static td_value dict_copy(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_from(td_dict_copy(I, td_as_dict(self)));
}

static td_value dict_clear(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  td_dict_clear(td_as_dict(self));
  return TD_NONE;
}

static td_value dict_fromkeys(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value iterator = td_iterate(I, arguments[0]), key;
  if (td_is_nil(iterator)) return TD_NIL;
  td_dict *dict = td_dict_new(I);
  bool done = dict != NULL;
  while (done && !td_is_nil(key = td_next(I, iterator))) {
    done = td_dict_set(I, dict, key, arguments[1]);
    td_unref(key);
  }
  td_unref(iterator);
  if (done && td_is_nil(I->raised)) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static const td_method methods[] = {
    {"get", "(key, default=None, /)", dict_get,
     "The value of key, or default if there is none.\n>>> {\"a\": 1}.get(\"b\", 0)"},
    {"setdefault", "(key, default=None, /)", dict_setdefault,
     "The value of key; default is stored first if there is none."},
    {"pop", "(key, default=..., /)", dict_pop,
     "Removes key and returns its value; default, else KeyError, if there is none."},
    {"popitem", "()", dict_popitem, "Removes the pair that was added last and returns it."},
    {"update", "(other=..., /, **named)", dict_update,
     "Stores the pairs of other (a dict or an iterable of pairs) and the named ones."},
    {"keys", "()", dict_keys, "A view of the keys; it follows the dict's changes."},
    {"values", "()", dict_values, "A view of the values; it follows the dict's changes."},
    {"items", "()", dict_items, "A view of the (key, value) pairs; it follows the dict's changes."},
    {"copy", "()", dict_copy, "A new dict of the same pairs."},
    {"clear", "()", dict_clear, "Removes all pairs."},
    {"fromkeys", "(iterable, value=None, /)", dict_fromkeys,
     "A new dict in which each key of iterable has the same value.\n>>> {}.fromkeys(\"ab\", 0)"},
    {NULL, NULL, NULL, NULL}};

const td_method td_dict_statics[] = {
    {"fromkeys", "(iterable, value=None, /)", dict_fromkeys,
     "A new dict in which each key of iterable has the same value.\n>>> dict.fromkeys(\"ab\", 0)"},
    {NULL, NULL, NULL, NULL}};

const td_type td_dict_type = {
    .name = "dict",
    .size = sizeof(td_dict),
    .release = dict_release,
    .visit = dict_visit,
    .clear = dict_release,
    .repr = dict_repr,
    .item = dict_item,
    .set_item = dict_set_item,
    .delete_item = dict_delete_item,
    .length = dict_length,
    .iterate = dict_iterate,
    .contains = dict_contains,
    .binary = dict_binary,
    .in_place = dict_in_place,
    .compare = dict_compare,
    .methods = methods,
    .doc =
        "dict(mapping_or_pairs=(), **named): values by key, in the order in which the keys were added.\n>>> dict(a=1)"};
