// Values in general: how objects are made and released, and the operations that dispatch over tags and type records.
// Numbers are handled first, without a record; objects ask their type. What raises leaves the exception in the
// interpreter.
#include <stdio.h>

#include "repl/language/core.h"
#include "repl/language/habit.h"
#include "repl/language/tensors.h"

static const char *const operators[] = {
#define X(NAME, spelling, method) spelling,
    TD_OPERATORS(X)
#undef X
        "-",
    "+", "~"};

const char *td_operator_spelling(int op) { return operators[op]; }

static const char *comparison_spelling(int comparison) {
  static const char *const spellings[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"};
  return spellings[comparison];
}

static int comparison_swapped(int comparison) {
  switch (comparison) {
  case TD_COMPARE_LESS: return TD_COMPARE_GREATER;
  case TD_COMPARE_LESS_EQUAL: return TD_COMPARE_GREATER_EQUAL;
  case TD_COMPARE_GREATER: return TD_COMPARE_LESS;
  case TD_COMPARE_GREATER_EQUAL: return TD_COMPARE_LESS_EQUAL;
  default: return comparison;
  }
}

// ---- objects ----

// Objects released while others are being released wait in a list once the nesting is deep, so that a long chain of
// objects needs no more stack than a short one. The list is linked through the containers that are no longer in theirs.
static _Thread_local struct {
  int depth;
  td_container *waiting;
  int64_t live; // containers made less containers released; goes with the turn from thread to thread (turn.h)
} releasing;
enum { RELEASE_DEPTH = 40 };

static bool sentinel_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_add(text, v.o->type == &td_ellipsis_type ? "Ellipsis" : "NotImplemented");
  return true;
}
const td_type td_ellipsis_type = {.name = "ellipsis", .repr = sentinel_repr};
const td_type td_not_implemented_type = {.name = "NotImplementedType", .repr = sentinel_repr};
static td_object ellipsis_object = {.refs = 1u << 30, .type = &td_ellipsis_type};
static td_object not_implemented_object = {.refs = 1u << 30, .type = &td_not_implemented_type};
const td_value td_ellipsis = {.tag = TD_TAG_OBJECT, .o = &ellipsis_object};
const td_value td_not_implemented = {.tag = TD_TAG_OBJECT, .o = &not_implemented_object};

static void link_container(td_interpreter *I, td_container *container) {
  td_container *head = &I->containers;
  container->object.flags = TD_OBJECT_CONTAINER;
  container->next = head->next;
  container->previous = head;
  head->next->previous = container;
  head->next = container;
  releasing.live++;
}

void *td_object_new(td_interpreter *I, const td_type *type, size_t bytes) {
  if (type->visit && TD_UNLIKELY(releasing.live >= I->collect_at)) td_collect(I);
  td_object *object = td_memory_new_zero(bytes);
  if (TD_UNLIKELY(!object)) {
    td_raise_memory(I);
    return NULL;
  }
  object->refs = 1;
  object->type = type;
  if (type->visit) link_container(I, (td_container *)object);
  return object;
}

int64_t td_containers_live(void) { return releasing.live; }

void td_containers_live_set(int64_t live) { releasing.live = live; }

static void release_now(td_object *object) {
  if (object->type->release) object->type->release(object);
  td_memory_free(object);
}

static void release_waiting(void) {
  while (releasing.waiting) {
    td_container *container = releasing.waiting;
    releasing.waiting = container->next;
    releasing.depth++;
    release_now(&container->object);
    releasing.depth--;
  }
}

void td_object_release(td_object *object) {
  if (object->flags & TD_OBJECT_CONTAINER) {
    td_container *container = (td_container *)object;
    container->previous->next = container->next;
    container->next->previous = container->previous;
    releasing.live--;
    if (TD_UNLIKELY(releasing.depth >= RELEASE_DEPTH)) {
      container->next = releasing.waiting;
      releasing.waiting = container;
      return;
    }
  }
  releasing.depth++;
  release_now(object);
  if (--releasing.depth == 0 && TD_UNLIKELY(releasing.waiting != NULL)) release_waiting();
}

const td_type *td_type_of(td_value v) {
  switch (v.tag) {
  case TD_TAG_BOOL: return &td_bool_type;
  case TD_TAG_INT: return &td_int_type;
  case TD_TAG_DOUBLE: return &td_float_type;
  case TD_TAG_OBJECT: return v.o->type;
  default: return &td_none_type;
  }
}

const char *td_type_name(td_interpreter *I, td_value v) {
  (void)I;
  return td_is_instance(v) ? td_as_instance(v)->class->name->data : td_type_of(v)->name;
}

// ---- truth, equality, order ----

int td_truth(td_interpreter *I, td_value v) {
  switch (v.tag) {
  case TD_TAG_BOOL:
  case TD_TAG_INT: return v.i != 0;
  case TD_TAG_DOUBLE: return v.f != 0;
  case TD_TAG_OBJECT: break;
  default: return 0;
  }
  const td_type *type = v.o->type;
  if (type->truth) return type->truth(I, v);
  if (!type->length) return 1;
  int64_t length = type->length(I, v);
  return length < 0 ? -1 : length != 0;
}

static td_value compare_identity(td_interpreter *I, int comparison, td_value a, td_value b) {
  bool same = a.tag == b.tag && a.i == b.i;
  if (comparison == TD_COMPARE_EQUAL) return td_bool(same);
  if (comparison == TD_COMPARE_NOT_EQUAL) return td_bool(!same);
  return td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' not supported between instances of '%s' and '%s'",
                  comparison_spelling(comparison), td_type_name(I, a), td_type_name(I, b));
}

// The right operand is asked first when its class is a subclass of the left one's.
static bool right_first(td_value a, td_value b) {
  if (!td_is_instance(a) || !td_is_instance(b)) return false;
  td_class *left = td_as_instance(a)->class, *right = td_as_instance(b)->class;
  return left != right && td_class_is_subclass(right, left);
}

td_value td_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  if (td_is_int(a) && td_is_int(b)) return td_bool(td_compare_ints(comparison, a.i, b.i));
  if (td_recursion(I)) return TD_NIL;
  const td_type *left = td_type_of(a), *right = td_type_of(b);
  bool swap = right_first(a, b);
  for (int turn = 0; turn < 2; turn++) {
    bool swapped = (turn == 1) != swap;
    const td_type *type = swapped ? right : left;
    if (!type->compare) continue;
    td_value result =
        swapped ? type->compare(I, comparison_swapped(comparison), b, a) : type->compare(I, comparison, a, b);
    if (!td_is_not_implemented(result)) return result;
    td_unref(result);
  }
  return compare_identity(I, comparison, a, b);
}

int td_equal_values(td_interpreter *I, td_value a, td_value b) {
  if (a.tag == b.tag) {
    if (a.tag == TD_TAG_DOUBLE) return a.f == b.f || a.i == b.i; // the same bits: the same NaN
    if (a.i == b.i) return 1;
    if (a.tag != TD_TAG_OBJECT) return 0;
    if (a.o->type == &td_str_type && b.o->type == &td_str_type) return td_str_equal(td_as_str(a), td_as_str(b));
  } else if (td_is_number(a) && td_is_number(b)) {
    return td_number_compare(a, b) == 0;
  }
  td_value result = td_compare(I, TD_COMPARE_EQUAL, a, b);
  if (td_is_nil(result)) return -1;
  int truth = td_truth(I, result);
  td_unref(result);
  return truth;
}

bool td_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  if (v.tag != TD_TAG_OBJECT) {
    *hash = v.tag == TD_TAG_DOUBLE ? td_number_hash(v.f) : td_int_hash(v.i);
    return true;
  }
  const td_type *type = v.o->type;
  if (type == &td_str_type) {
    *hash = td_str_hash(td_as_str(v));
    return true;
  }
  if (td_recursion(I)) return false;
  if (type->hash) return type->hash(I, v, hash);
  if (type->compare) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "unhashable type: '%s'", td_type_name(I, v));
    return false;
  }
  *hash = (uintptr_t)v.o >> 4;
  return true;
}

// ---- operators ----

static td_value binary_unsupported(td_interpreter *I, int op, td_value a, td_value b, const char *suffix) {
  bool power = op == TD_BINARY_POWER && !*suffix;
  td_raise(I, TD_CLASS_TYPE_ERROR, "unsupported operand type(s) for %s%s: '%s' and '%s'",
           power ? "** or pow()" : td_operator_spelling(op), suffix, td_type_name(I, a), td_type_name(I, b));
  if (op == TD_BINARY_ADD && (td_is(a, &td_str_type) != td_is(b, &td_str_type)))
    td_raise_hint(I, "str() makes text of a value; an f-string joins both: f\"{...}\"");
  return TD_NIL;
}

// NOT_IMPLEMENTED (a new reference): neither operand's type knows the operation.
static td_value binary_ask(td_interpreter *I, int op, td_value a, td_value b) {
  const td_type *left = td_type_of(a), *right = td_type_of(b);
  if (td_recursion(I)) return TD_NIL;
  if (left->binary) {
    td_value result = left->binary(I, op, a, b);
    if (!td_is_not_implemented(result) || right == left) return result;
    td_unref(result);
  }
  return right->binary && right != left ? right->binary(I, op, a, b) : td_ref(TD_NOT_IMPLEMENTED);
}

static bool is_sequence(td_value v) {
  return td_is(v, &td_str_type) || td_is(v, &td_list_type) || td_is(v, &td_tuple_type);
}

// A sequence times an instance, which must have __index__. NOT_IMPLEMENTED: it is no such product.
static td_value repeat(td_interpreter *I, int op, td_value a, td_value b) {
  td_value count = is_sequence(a) ? b : a, sequence = is_sequence(a) ? a : b;
  if (op != TD_BINARY_MULTIPLY || !is_sequence(sequence) || !td_is_instance(count)) return td_ref(TD_NOT_IMPLEMENTED);
  if (td_is_nil(td_special(I, count, I->names->index))) return td_repeat_refused(I, count);
  bool ok;
  int64_t times = td_to_int(I, count, &ok);
  return ok ? td_type_of(sequence)->binary(I, op, sequence, td_int(times)) : TD_NIL;
}

td_value td_binary(td_interpreter *I, int op, td_value a, td_value b) {
  td_value result = binary_ask(I, op, a, b);
  if (!td_is_not_implemented(result)) return result;
  td_unref(result);
  result = repeat(I, op, a, b);
  if (!td_is_not_implemented(result)) return result;
  td_unref(result);
  return binary_unsupported(I, op, a, b, "");
}

td_value td_in_place(td_interpreter *I, int op, td_value a, td_value b) {
  if (op == TD_BINARY_ADD && td_is(a, &td_str_type) && td_is(b, &td_str_type)) return td_str_append(I, a, b);
  td_value result = td_ref(TD_NOT_IMPLEMENTED);
  const td_type *type = td_type_of(a);
  if (type->in_place) result = type->in_place(I, op, a, b);
  if (td_is_not_implemented(result)) result = binary_ask(I, op, a, b);
  if (td_is_nil(result)) return TD_NIL;
  if (td_is_not_implemented(result)) return binary_unsupported(I, op, a, b, "=");
  td_unref(a);
  return result;
}

td_value td_unary(td_interpreter *I, int op, td_value v) {
  const td_type *type = td_type_of(v);
  td_value result = type->unary ? type->unary(I, op, v) : td_ref(TD_NOT_IMPLEMENTED);
  if (!td_is_not_implemented(result)) return result;
  td_unref(result);
  return td_raise(I, TD_CLASS_TYPE_ERROR, "bad operand type for unary %s: '%s'", td_operator_spelling(op),
                  td_type_name(I, v));
}

// ---- items ----

td_value td_item(td_interpreter *I, td_value v, td_value key) {
  const td_type *type = td_type_of(v);
  if (type->item) return type->item(I, v, key);
  if (td_is_class(v))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "type '%s' is not subscriptable", td_as_class(v)->name->data);
  return td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not subscriptable", td_type_name(I, v));
}

bool td_set_item(td_interpreter *I, td_value v, td_value key, td_value value) {
  const td_type *type = td_type_of(v);
  if (type->set_item) return type->set_item(I, v, key, value);
  td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object does not support item assignment", td_type_name(I, v));
  return false;
}

bool td_delete_item(td_interpreter *I, td_value v, td_value key) {
  const td_type *type = td_type_of(v);
  if (type->delete_item) return type->delete_item(I, v, key);
  td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object doesn't support item deletion", td_type_name(I, v));
  return false;
}

int64_t td_length(td_interpreter *I, td_value v) {
  const td_type *type = td_type_of(v);
  if (type->length) return type->length(I, v);
  td_raise(I, TD_CLASS_TYPE_ERROR, "object of type '%s' has no len()", td_type_name(I, v));
  return -1;
}

// ---- iteration ----

td_value td_iterate(td_interpreter *I, td_value v) {
  const td_type *type = td_type_of(v);
  if (type->iterate) return type->iterate(I, v);
  if (type->next) return td_ref(v);
  td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not iterable", td_type_name(I, v));
  if (td_is_int(v))
    td_raise_hint(I, "range(%lld) counts from 0 to %lld", (long long)v.i, (long long)(v.i > INT64_MIN ? v.i - 1 : v.i));
  return TD_NIL;
}

td_value td_next(td_interpreter *I, td_value iterator) {
  const td_type *type = td_type_of(iterator);
  if (td_recursion(I)) return TD_NIL; // iterators over iterators
  if (type->next) return type->next(I, iterator);
  return td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not an iterator", td_type_name(I, iterator));
}

static int append_step(td_interpreter *I, void *state, td_value element) {
  bool ok = td_list_append(I, state, element);
  td_unref(element);
  return ok ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

bool td_to_list(td_interpreter *I, td_value iterable, td_list *into) {
  return td_each(I, iterable, append_step, into) == TD_FLOW_NEXT;
}

typedef struct search {
  td_value item;
  bool found;
} search;

static int search_step(td_interpreter *I, void *state, td_value element) {
  search *s = state;
  int equal = td_equal_values(I, element, s->item);
  td_unref(element);
  s->found = equal == 1;
  return equal < 0 ? TD_FLOW_ERROR : equal ? TD_FLOW_BREAK : TD_FLOW_NEXT;
}

int td_contains(td_interpreter *I, td_value container, td_value item) {
  const td_type *type = td_type_of(container);
  if (type->contains) return type->contains(I, container, item);
  if (!type->iterate && !type->next) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "argument of type '%s' is not iterable", td_type_name(I, container));
    return -1;
  }
  search s = {.item = item};
  return td_each(I, container, search_step, &s) == TD_FLOW_ERROR ? -1 : s.found;
}

// ---- attributes ----

td_value td_attribute_find(td_interpreter *I, td_value v, td_str *name) {
  const td_type *type = td_type_of(v);
  if (td_is_instance(v)) return td_instance_attribute(I, v, name);
  if (type->methods) {
    td_builtin *method = td_type_method(I, type, name);
    if (method) return td_builtin_new(I, method->row, v, method->data);
    if (!td_is_nil(I->raised)) return TD_NIL;
  }
  td_value found = type->attribute ? type->attribute(I, v, name) : TD_NIL;
  if (!td_is_nil(found) || !td_is_nil(I->raised)) return found;
  if (name == I->names->class_) {
    td_class *class = td_class_of(I, v);
    return class ? td_ref(td_borrow(class)) : TD_NIL;
  }
  if (name == I->names->doc) return type->doc ? td_from(td_str_from(I, type->doc)) : TD_NONE;
  return TD_NIL;
}

static void attribute_hint(td_interpreter *I, td_value v, td_str *name) {
  const td_type *type = td_type_of(v);
  td_value raised = td_take_raised(I);
  td_list *names = td_list_new(I, 8);
  const char *near = NULL;
  if (names) {
    if (type->names) type->names(I, v, names);
    for (const td_method *row = type->methods; row && row->name; row++) {
      td_value text = td_from(td_str_from(I, row->name));
      if (!td_is_nil(text)) td_list_append(I, names, text);
      td_unref(text);
    }
    near = td_suggest(name->data, names);
  }
  td_clear_raised(I);
  td_put_raised(I, raised);
  if (near) td_raise_hint(I, "did you mean '%s'?", near);
  td_unref(td_from(names));
}

static bool member_hint(td_interpreter *I, const td_str *module, const td_str *name) { // false: nothing is known
  char word[80];
  if (!module || snprintf(word, sizeof word, "%s.%s", module->data, name->data) >= (int)sizeof word) return false;
  const char *habit = td_habit(TD_HABIT_MEMBER, word);
  if (habit) td_raise_hint(I, "%s", habit);
  return habit != NULL;
}

static void raise_no_attribute(td_interpreter *I, td_value v, td_str *name) {
  if (td_is_class(v)) {
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "type object '%s' has no attribute '%s'", td_as_class(v)->name->data,
             name->data);
  } else if (td_is(v, &td_module_type)) {
    td_str *module = ((td_module *)v.o)->name;
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "module '%s' has no attribute '%s'", module ? module->data : "?", name->data);
    if (member_hint(I, module, name)) return;
  } else {
    const char *type = td_is(v, &td_bound_type) ? "function" : td_type_name(I, v);
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "'%s' object has no attribute '%s'", type, name->data);
  }
  bool tensor = td_is(v, &td_tensor_type) || td_is(v, &td_variable_type);
  if (!tensor || !td_habit_attribute_hint(I, v, name)) attribute_hint(I, v, name);
}

td_value td_attribute(td_interpreter *I, td_value v, td_str *name) {
  td_value found = td_attribute_find(I, v, name);
  if (td_is_nil(found) && td_is_nil(I->raised)) raise_no_attribute(I, v, name);
  return found;
}

bool td_set_attribute(td_interpreter *I, td_value v, td_str *name, td_value value) {
  if (td_is_instance(v)) return td_instance_set(I, v, name, value);
  const td_type *type = td_type_of(v);
  if (type->set_attribute) return type->set_attribute(I, v, name, value);
  td_value found = td_attribute_find(I, v, name);
  if (!td_is_nil(found)) {
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "'%s' object attribute '%s' is read-only", type->name, name->data);
    td_unref(found);
  } else if (td_is_nil(I->raised)) {
    raise_no_attribute(I, v, name);
  }
  return false;
}

// ---- text ----

bool td_repr(td_interpreter *I, td_value v, td_text *text) {
  const td_type *type = td_type_of(v);
  if (td_recursion(I)) return false;
  if (type->repr) return type->repr(I, v, text);
  td_text_print(text, "<%s object at %p>", type->name, v.tag == TD_TAG_OBJECT ? (void *)v.o : NULL);
  return true;
}

bool td_print(td_interpreter *I, td_value v, td_text *text) {
  const td_type *type = td_type_of(v);
  if (!type->print) return td_repr(I, v, text);
  return !td_recursion(I) && type->print(I, v, text);
}

bool td_format(td_interpreter *I, td_value v, const char *spec, td_text *text) {
  const td_type *type = td_type_of(v);
  if (type->format) return type->format(I, v, spec, text);
  if (!*spec) return td_print(I, v, text);
  td_raise(I, TD_CLASS_TYPE_ERROR, "unsupported format string passed to %s.__format__", td_type_name(I, v));
  return false;
}

// ---- numbers out of values ----

// Tensors and instances that can give a number do so through item(), __index__ or __float__.
static td_value ask_number(td_interpreter *I, td_value v, td_str *special) {
  if (td_is_instance(v)) {
    td_value method = td_special(I, v, special);
    return td_is_nil(method) ? TD_NIL : td_special_call(I, method, v, 0, NULL);
  }
  if (v.tag != TD_TAG_OBJECT || v.o->flags & TD_OBJECT_CONTAINER || v.o->type == &td_str_type) return TD_NIL;
  td_str *item = td_str_intern(I, "item", 4);
  if (!item) return TD_NIL;
  td_value method = td_attribute_find(I, v, item);
  td_unref(td_from(item));
  if (td_is_nil(method)) return TD_NIL;
  td_value number = td_call_values(I, method, 0, NULL);
  td_unref(method);
  return number;
}

int64_t td_to_int(td_interpreter *I, td_value v, bool *ok) {
  *ok = true;
  if (v.tag == TD_TAG_INT || v.tag == TD_TAG_BOOL) return v.i;
  td_value number = ask_number(I, v, I->names->index);
  if (number.tag == TD_TAG_INT || number.tag == TD_TAG_BOOL) return number.i;
  td_unref(number);
  *ok = false;
  if (td_is_nil(I->raised))
    td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object cannot be interpreted as an integer", td_type_name(I, v));
  return 0;
}

double td_to_double(td_interpreter *I, td_value v, bool *ok) {
  *ok = true;
  if (v.tag == TD_TAG_DOUBLE) return v.f;
  if (v.tag == TD_TAG_INT || v.tag == TD_TAG_BOOL) return (double)v.i;
  td_value number = ask_number(I, v, I->names->float_);
  if (number.tag == TD_TAG_DOUBLE) return number.f;
  if (number.tag == TD_TAG_INT || number.tag == TD_TAG_BOOL) return (double)number.i;
  td_unref(number);
  *ok = false;
  if (td_is_nil(I->raised)) td_raise(I, TD_CLASS_TYPE_ERROR, "must be real number, not %s", td_type_name(I, v));
  return 0;
}
