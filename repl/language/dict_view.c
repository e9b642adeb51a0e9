// The views of a dict, keys(), values() and items(), which follow its changes, and the iterators over it. An iterator
// that finds the dict's length changed raises RuntimeError. Views of keys and items take part in the operators of
// sets.
#include "repl/language/builtins.h"

typedef struct dict_view {
  td_container container;
  td_dict *dict;
  enum td_dict_view what;
} dict_view;
typedef struct dict_iterator {
  td_container container;
  td_dict *dict; // NULL: ended
  enum td_dict_view what;
  bool reverse;
  int64_t position, count; // count: the dict's when iteration began
  td_value row; // the last pair, used again when nobody else holds it
} dict_iterator;

static td_value of(td_dict *dict) { return (td_value){.tag = TD_TAG_OBJECT, .o = &dict->container.object}; }
static const td_type *const view_types[] = {&td_dict_keys_type, &td_dict_values_type, &td_dict_items_type};

td_value td_dict_view_new(td_interpreter *I, td_dict *dict, enum td_dict_view what) {
  dict_view *view = td_object_new(I, view_types[what], sizeof *view);
  if (!view) return TD_NIL;
  view->dict = td_as_dict(td_ref(of(dict)));
  view->what = what;
  return td_from(view);
}

bool td_is_dict_view(td_value v) { return td_is(v, &td_dict_keys_type) || td_is(v, &td_dict_items_type); }

static dict_view *as_view(td_value v) { return (dict_view *)v.o; }
td_dict *td_dict_view_dict(td_value v) { return as_view(v)->dict; }

static void view_release(td_object *object) { td_unref(of(((dict_view *)object)->dict)); }
static void view_visit(td_object *object, td_visitor *visit, void *argument) {
  visit(&((dict_view *)object)->dict->container.object, argument);
}

static int64_t view_length(td_interpreter *I, td_value v) {
  (void)I;
  return as_view(v)->dict->count;
}

static td_value view_iterate(td_interpreter *I, td_value v) {
  return td_dict_iterator_new(I, as_view(v)->dict, as_view(v)->what, false);
}

static bool view_repr(td_interpreter *I, td_value v, td_text *text) {
  if (v.o->flags & TD_OBJECT_REPR) {
    td_text_add(text, "...");
    return true;
  }
  td_value list = td_list_from(I, v);
  if (td_is_nil(list)) return false;
  v.o->flags |= TD_OBJECT_REPR;
  td_text_print(text, "%s(", v.o->type->name);
  bool done = td_repr(I, list, text);
  td_text_add_char(text, ')');
  v.o->flags &= ~(uint32_t)TD_OBJECT_REPR;
  td_unref(list);
  return done;
}

static int keys_contain(td_interpreter *I, td_value v, td_value item) {
  td_value value;
  return td_dict_get(I, as_view(v)->dict, item, &value);
}

static int items_contain(td_interpreter *I, td_value v, td_value item) {
  td_value value;
  if (!td_is(item, &td_tuple_type) || td_as_tuple(item)->count != 2) return 0;
  int found = td_dict_get(I, as_view(v)->dict, td_as_tuple(item)->items[0], &value);
  if (found <= 0) return found;
  td_ref(value);
  found = td_equal_values(I, value, td_as_tuple(item)->items[1]);
  td_unref(value);
  return found;
}

// Operators and comparisons of views are those of the sets of their elements.
static td_value as_set(td_interpreter *I, td_value v) { return td_is(v, &td_set_type) ? td_ref(v) : td_set_from(I, v); }

static td_value view_binary(td_interpreter *I, int op, td_value a, td_value b) {
  if (op != TD_BINARY_AND && op != TD_BINARY_OR && op != TD_BINARY_XOR && op != TD_BINARY_SUBTRACT)
    return TD_NOT_IMPLEMENTED;
  if (!td_is_dict_view(a) && !td_is(a, &td_set_type)) return TD_NOT_IMPLEMENTED;
  td_value x = as_set(I, a), y = td_is_nil(x) ? TD_NIL : as_set(I, b);
  td_value result = td_is_nil(y) ? TD_NIL : td_set_type.binary(I, op, x, y);
  td_unref(x);
  td_unref(y);
  return result;
}

// 1: every element of a is in b; -1: exception. Hashes nothing, so that values of any kind can be in items views.
static int all_in(td_interpreter *I, td_value a, td_value b) {
  td_value iterator = td_iterate(I, a), item;
  if (td_is_nil(iterator)) return -1;
  int found = 1;
  while (found == 1 && !td_is_nil(item = td_next(I, iterator))) {
    found = td_contains(I, b, item);
    td_unref(item);
  }
  td_unref(iterator);
  return td_is_nil(I->raised) ? found : -1;
}

static td_value view_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  bool fits = (td_is_dict_view(a) || td_is(a, &td_set_type)) && (td_is_dict_view(b) || td_is(b, &td_set_type));
  if (!fits) return TD_NOT_IMPLEMENTED;
  if (comparison == TD_COMPARE_GREATER || comparison == TD_COMPARE_GREATER_EQUAL)
    return view_compare(I, comparison == TD_COMPARE_GREATER ? TD_COMPARE_LESS : TD_COMPARE_LESS_EQUAL, b, a);
  int64_t x = td_length(I, a), y = td_length(I, b);
  bool equality = comparison == TD_COMPARE_EQUAL || comparison == TD_COMPARE_NOT_EQUAL;
  int holds = (equality ? x == y : comparison == TD_COMPARE_LESS ? x < y : x <= y) ? all_in(I, a, b) : 0;
  return holds < 0 ? TD_NIL : td_bool(comparison == TD_COMPARE_NOT_EQUAL ? !holds : holds);
}

static td_value view_isdisjoint(td_interpreter *I, td_value self, td_value *arguments) {
  td_value set = as_set(I, self);
  td_value result = td_is_nil(set) ? TD_NIL : td_call_method(I, set, "isdisjoint", 1, arguments);
  td_unref(set);
  return result;
}

static const td_method methods[] = {
    {"isdisjoint", "(other, /)", view_isdisjoint, "Whether the view and other have no element in common."},
    {NULL, NULL, NULL, NULL}};

const td_type td_dict_keys_type = {
    .name = "dict_keys",
    .size = sizeof(dict_view),
    .release = view_release,
    .visit = view_visit,
    .repr = view_repr,
    .length = view_length,
    .iterate = view_iterate,
    .contains = keys_contain,
    .binary = view_binary,
    .compare = view_compare,
    .methods = methods,
    .doc = "The keys of a dict; follows its changes and takes part in the operators of sets."};
const td_type td_dict_values_type = {.name = "dict_values",
                                     .size = sizeof(dict_view),
                                     .release = view_release,
                                     .visit = view_visit,
                                     .repr = view_repr,
                                     .length = view_length,
                                     .iterate = view_iterate,
                                     .doc = "The values of a dict; follows its changes."};
const td_type td_dict_items_type = {
    .name = "dict_items",
    .size = sizeof(dict_view),
    .release = view_release,
    .visit = view_visit,
    .repr = view_repr,
    .length = view_length,
    .iterate = view_iterate,
    .contains = items_contain,
    .binary = view_binary,
    .compare = view_compare,
    .methods = methods,
    .doc = "The (key, value) pairs of a dict; follows its changes and takes part in the operators of sets."};

// ---- iterators ----
td_value td_dict_iterator_new(td_interpreter *I, td_dict *dict, enum td_dict_view what, bool reverse) {
  dict_iterator *it = td_object_new(I, &td_dict_iterator_type, sizeof *it);
  if (!it) return TD_NIL;
  it->dict = td_as_dict(td_ref(of(dict)));
  it->what = what;
  it->reverse = reverse;
  it->position = reverse ? dict->used : 0;
  it->count = dict->count;
  return td_from(it);
}

static void iterator_release(td_object *object) {
  dict_iterator *it = (dict_iterator *)object;
  td_dict *dict = it->dict;
  td_value row = it->row;
  it->dict = NULL;
  it->row = TD_NIL;
  if (dict) td_unref(of(dict));
  td_unref(row);
}

static void iterator_visit(td_object *object, td_visitor *visit, void *argument) {
  dict_iterator *it = (dict_iterator *)object;
  if (it->dict) visit(&it->dict->container.object, argument);
  if (it->row.tag == TD_TAG_OBJECT) visit(it->row.o, argument);
}

static bool step_back(dict_iterator *it, td_value *key, td_value *value) {
  td_dict *dict = it->dict;
  if (it->position > dict->used) it->position = dict->used;
  while (it->position > 0) {
    td_entry *entry = &dict->entries[--it->position];
    if (td_is_nil(entry->key)) continue;
    *key = entry->key;
    *value = entry->value;
    return true;
  }
  return false;
}

static td_value iterator_next(td_interpreter *I, td_value v) {
  dict_iterator *it = (dict_iterator *)v.o;
  td_value key, value;
  if (!it->dict) return TD_NIL;
  if (it->dict->count != it->count) {
    it->count = -1; // it stays so
    return td_raise(I, TD_CLASS_RUNTIME_ERROR, "dictionary changed size during iteration");
  }
  if (!(it->reverse ? step_back(it, &key, &value) : td_dict_next(it->dict, &it->position, &key, &value))) {
    iterator_release(v.o);
    return TD_NIL;
  }
  if (it->what == TD_DICT_ITEMS) return td_tuple_renew(I, &it->row, td_ref(key), td_ref(value));
  return td_ref(it->what == TD_DICT_KEYS ? key : value);
}

static td_value iterator_self(td_interpreter *I, td_value v) {
  (void)I;
  return td_ref(v);
}

const td_type td_dict_iterator_type = {.name = "dict_iterator",
                                       .size = sizeof(dict_iterator),
                                       .release = iterator_release,
                                       .visit = iterator_visit,
                                       .clear = iterator_release,
                                       .iterate = iterator_self,
                                       .next = iterator_next,
                                       .doc = "What a for loop over a dict asks for elements."};
