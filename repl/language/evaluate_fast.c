// Quicker forms of common expressions, chosen by looking at the children: arithmetic and comparison whose operands are
// locals or constants (read where they are, without a call and without a reference), items of lists and dicts, and
// attributes of instances, whose place in the instance's dict is remembered in the node. What is not of the expected
// kind takes the ordinary way.
//  1. A local may be borrowed while its expression is evaluated: no statement of its frame runs meanwhile.
//  2. Members that a kind does not use hold what the quick form needs: a slot in slot, a constant or a slot in value.
#include "repl/language/core.h"

#define INLINE static inline __attribute__((always_inline))

enum operand { ANY, LOCAL, CONSTANT };

static enum operand operand_of(const td_node *n) {
  if (n->kind == TD_NODE_NAME && n->scope == TD_SCOPE_LOCAL) return LOCAL;
  return n->kind == TD_NODE_CONSTANT ? CONSTANT : ANY;
}

// The left operand of n; NIL: an exception, or a local without a value.
INLINE td_value left_value(td_interpreter *I, const td_node *n, enum operand kind) {
  return kind == LOCAL ? I->slots[n->slot] : n->a->evaluate(I, n->a);
}

INLINE td_value right_value(td_interpreter *I, const td_node *n, const td_node *right, enum operand kind) {
  if (kind == CONSTANT) return n->value;
  return kind == LOCAL ? I->slots[n->value.i] : right->evaluate(I, right);
}

static void drop_operands(td_value a, td_value b, enum operand left, enum operand right) {
  if (left == ANY) td_unref(a);
  if (right == ANY) td_unref(b);
}

// Borrowed operands that have no value yet raise as a NAME does; false: one did.
static bool operands_bound(td_interpreter *I, const td_node *a, const td_node *b, td_value left, td_value right) {
  if (td_is_nil(left)) return td_name_missing(I, a), false;
  if (td_is_nil(right)) return td_name_missing(I, b), false;
  return true;
}

// ---- arithmetic ----

static __attribute__((noinline)) td_value slow_binary(td_interpreter *I, const td_node *n, td_value a, td_value b,
                                                      enum operand left, enum operand right) {
  td_value result = TD_NIL;
  if (operands_bound(I, n->a, n->b, a, b)) {
    td_mark(I, n);
    if (left == ANY && n->op == TD_BINARY_ADD && td_is(a, &td_str_type) &&
        td_is(b, &td_str_type)) { // the left text may be grown
      result = td_str_append(I, a, b);
      if (!td_is_nil(result)) a = TD_NIL;
    } else {
      result = td_binary(I, n->op, a, b);
    }
  }
  drop_operands(a, b, left, right);
  return result;
}

INLINE bool int_result(int op, int64_t a, int64_t b, td_value *result) {
  int64_t i;
  switch (op) {
  case TD_BINARY_ADD:
    if (TD_UNLIKELY(__builtin_add_overflow(a, b, &i))) return false;
    break;
  case TD_BINARY_SUBTRACT:
    if (TD_UNLIKELY(__builtin_sub_overflow(a, b, &i))) return false;
    break;
  case TD_BINARY_MULTIPLY:
    if (TD_UNLIKELY(__builtin_mul_overflow(a, b, &i))) return false;
    break;
  case TD_BINARY_FLOOR_DIVIDE:
    if (TD_UNLIKELY(b <= 0)) return false;
    i = a / b - (a % b < 0);
    break;
  case TD_BINARY_REMAINDER:
    if (TD_UNLIKELY(b <= 0)) return false;
    i = a % b;
    i += i < 0 ? b : 0;
    break;
  case TD_BINARY_AND: i = a & b; break;
  default: return false;
  }
  *result = td_int(i);
  return true;
}

INLINE bool double_result(int op, double a, double b, td_value *result) {
  switch (op) {
  case TD_BINARY_ADD: *result = td_double(a + b); return true;
  case TD_BINARY_SUBTRACT: *result = td_double(a - b); return true;
  case TD_BINARY_MULTIPLY: *result = td_double(a * b); return true;
  case TD_BINARY_DIVIDE:
    if (TD_UNLIKELY(b == 0)) return false;
    *result = td_double(a / b);
    return true;
  default: return false;
  }
}

INLINE td_value binary(td_interpreter *I, const td_node *n, int op, enum operand left, enum operand right) {
  td_value a = left_value(I, n, left), result;
  if (left == ANY && TD_UNLIKELY(td_is_nil(a))) return TD_NIL;
  td_value b = right_value(I, n, n->b, right);
  if (right == ANY && TD_UNLIKELY(td_is_nil(b))) return drop_operands(a, b, left, right), TD_NIL;
  if (td_is_int(a)) {
    if (td_is_int(b)) {
      if (TD_LIKELY(int_result(op, a.i, b.i, &result))) return result;
    } else if (td_is_double(b) && double_result(op, (double)a.i, b.f, &result)) {
      return result;
    }
  } else if (td_is_double(a)) {
    if (td_is_double(b)) {
      if (double_result(op, a.f, b.f, &result)) return result;
    } else if (td_is_int(b) && double_result(op, a.f, (double)b.i, &result)) {
      return result;
    }
  }
  return slow_binary(I, n, a, b, left, right);
}

// X(op, left, right)
#define OPERANDS(X, op) \
  X(op, ANY, ANY) X(op, ANY, LOCAL) X(op, ANY, CONSTANT) X(op, LOCAL, ANY) X(op, LOCAL, LOCAL) X(op, LOCAL, CONSTANT)
#define BINARIES(X)     \
  OPERANDS(X, ADD)      \
  OPERANDS(X, SUBTRACT) \
  OPERANDS(X, MULTIPLY) OPERANDS(X, DIVIDE) OPERANDS(X, FLOOR_DIVIDE) OPERANDS(X, REMAINDER) OPERANDS(X, AND)

#define X(op, left, right)                                                              \
  static td_value binary_##op##_##left##_##right(td_interpreter *I, const td_node *n) { \
    return binary(I, n, TD_BINARY_##op, left, right);                                   \
  }
BINARIES(X)
#undef X

static td_evaluate *const binaries[TD_BINARY_COUNT][2][3] = {
#define X(op, left, right) [TD_BINARY_##op][left][right] = binary_##op##_##left##_##right,
    BINARIES(X)
#undef X
};

// ---- comparison ----

static __attribute__((noinline)) td_value slow_compare(td_interpreter *I, const td_node *n, td_value a, td_value b,
                                                       enum operand left, enum operand right) {
  td_value result = TD_NIL;
  if (operands_bound(I, n->a, n->items[0], a, b)) {
    td_mark(I, n);
    result = td_compare_any(I, n->ops[0], a, b);
  }
  drop_operands(a, b, left, right);
  return result;
}

INLINE td_value compare(td_interpreter *I, const td_node *n, int comparison, enum operand left, enum operand right) {
  td_value a = left_value(I, n, left);
  if (left == ANY && TD_UNLIKELY(td_is_nil(a))) return TD_NIL;
  td_value b = right_value(I, n, n->items[0], right);
  if (right == ANY && TD_UNLIKELY(td_is_nil(b))) return drop_operands(a, b, left, right), TD_NIL;
  if (td_is_int(a) && td_is_int(b)) return td_bool(td_compare_ints(comparison, a.i, b.i));
  if (td_is_double(a) && td_is_double(b)) return td_bool(td_compare_doubles(comparison, a.f, b.f));
  return slow_compare(I, n, a, b, left, right);
}

#define COMPARISONS(X) \
  OPERANDS(X, EQUAL)   \
  OPERANDS(X, NOT_EQUAL) OPERANDS(X, LESS) OPERANDS(X, LESS_EQUAL) OPERANDS(X, GREATER) OPERANDS(X, GREATER_EQUAL)

#define X(op, left, right)                                                               \
  static td_value compare_##op##_##left##_##right(td_interpreter *I, const td_node *n) { \
    return compare(I, n, TD_COMPARE_##op, left, right);                                  \
  }
COMPARISONS(X)
#undef X

static td_evaluate *const comparisons[TD_COMPARE_IN][2][3] = {
#define X(op, left, right) [TD_COMPARE_##op][left][right] = compare_##op##_##left##_##right,
    COMPARISONS(X)
#undef X
};

// ---- items ----

static __attribute__((noinline)) td_value slow_item(td_interpreter *I, const td_node *n, td_value v, td_value key,
                                                    enum operand left, enum operand right) {
  td_value result = TD_NIL;
  if (operands_bound(I, n->a, n->b, v, key)) {
    td_mark(I, n);
    result = td_item(I, v, key);
  }
  drop_operands(v, key, left, right);
  return result;
}

INLINE td_value item(td_interpreter *I, const td_node *n, enum operand left, enum operand right) {
  td_value v = left_value(I, n, left);
  if (left == ANY && TD_UNLIKELY(td_is_nil(v))) return TD_NIL;
  td_value key = right_value(I, n, n->b, right);
  if (right == ANY && TD_UNLIKELY(td_is_nil(key))) return drop_operands(v, key, left, right), TD_NIL;
  if (td_is_int(key)) {
    int64_t count = 0;
    const td_value *items = NULL;
    if (td_is(v, &td_list_type)) {
      count = td_as_list(v)->count;
      items = td_as_list(v)->items;
    } else if (td_is(v, &td_tuple_type)) {
      count = td_as_tuple(v)->count;
      items = td_as_tuple(v)->items;
    }
    int64_t index = key.i < 0 ? key.i + count : key.i;
    if (TD_LIKELY((uint64_t)index < (uint64_t)count)) {
      td_value result = td_ref(items[index]);
      if (left == ANY) td_unref(v);
      return result;
    }
  }
  return slow_item(I, n, v, key, left, right);
}

#define X(op, left, right) \
  static td_value op##_##left##_##right(td_interpreter *I, const td_node *n) { return item(I, n, left, right); }
OPERANDS(X, item)
#undef X

static td_evaluate *const items_of[2][3] = {
#define X(op, left, right) [left][right] = op##_##left##_##right,
    OPERANDS(X, item)
#undef X
};

// ---- attributes ----
// value of an ATTRIBUTE: tag is a class of which is known, for the version of classes in i, that the name is no data
// descriptor, so that the instance's own attribute comes first; slot is where the instance's dict had it.

static bool instance_comes_first(td_interpreter *I, const td_node *n, td_class *class) {
  td_value found = td_class_find(I, class, n->name);
  if (td_is(found, &td_property_type) || (td_is_instance(found) && !td_is_nil(td_special(I, found, I->names->set))))
    return false;
  td_node *node = (td_node *)n;
  node->value.tag = (uint64_t)(uintptr_t) class;
  node->value.i = I->core->class_version;
  return true;
}

INLINE bool is_known(const td_interpreter *I, const td_node *n, const td_class *class) {
  return n->value.tag == (uint64_t)(uintptr_t) class && n->value.i == (int64_t)I->core->class_version;
}

INLINE td_entry *own_entry(const td_node *n, const td_dict *dict) {
  if (n->slot >= dict->used) return NULL; // an empty one has no entries to point to
  td_entry *entry = &dict->entries[n->slot];
  return entry->key.o == &n->name->object && entry->key.tag == TD_TAG_OBJECT ? entry : NULL;
}

static __attribute__((noinline)) td_entry *find_entry(const td_node *n, const td_dict *dict) {
  int64_t used = dict->used < 32 ? dict->used : 32;
  for (int64_t i = 0; i < used; i++) {
    if (dict->entries[i].key.tag != TD_TAG_OBJECT || dict->entries[i].key.o != &n->name->object) continue;
    ((td_node *)n)->slot = (int32_t)i;
    return &dict->entries[i];
  }
  return NULL;
}

// Where the instance itself holds the attribute; NULL: unknown, the ordinary way is needed.
INLINE td_entry *attribute_entry(td_interpreter *I, const td_node *n, td_value v) {
  if (!td_is(v, &td_instance_type)) return NULL;
  const td_instance *instance = (td_instance *)v.o;
  if (TD_UNLIKELY(!is_known(I, n, instance->class) && !instance_comes_first(I, n, instance->class))) return NULL;
  if (TD_UNLIKELY(!instance->attributes)) return NULL;
  td_entry *entry = own_entry(n, instance->attributes);
  return TD_LIKELY(entry != NULL) ? entry : find_entry(n, instance->attributes);
}

static td_value attribute_of_local(td_interpreter *I, const td_node *n) {
  td_value v = I->slots[n->a->slot];
  const td_entry *entry = attribute_entry(I, n, v);
  if (TD_LIKELY(entry != NULL)) return td_ref(entry->value);
  if (td_is_nil(v)) return td_name_missing(I, n->a);
  td_mark(I, n);
  return td_attribute(I, v, n->name);
}

static td_value attribute_of_any(td_interpreter *I, const td_node *n) {
  td_value v = n->a->evaluate(I, n->a), result;
  if (TD_UNLIKELY(td_is_nil(v))) return TD_NIL;
  const td_entry *entry = attribute_entry(I, n, v);
  if (TD_LIKELY(entry != NULL)) {
    result = td_ref(entry->value);
  } else {
    td_mark(I, n);
    result = td_attribute(I, v, n->name);
  }
  td_unref(v);
  return result;
}

// A target is never evaluated, so what it knows of the class also says that there is no __setattr__.
td_value *td_fast_attribute(td_interpreter *I, const td_node *n, td_value v) {
  if (!td_is(v, &td_instance_type)) return NULL;
  td_class *class = ((td_instance *)v.o)->class;
  if (TD_UNLIKELY(!is_known(I, n, class)) && !td_is_nil(td_class_find(I, class, I->names->setattr))) return NULL;
  td_entry *entry = attribute_entry(I, n, v);
  return entry ? &entry->value : NULL;
}

// ---- choosing ----

static void keep_operands(const td_node *n, const td_node *left, const td_node *right) {
  td_node *node = (td_node *)n;
  if (operand_of(left) == LOCAL) node->slot = left->slot;
  if (operand_of(right) == LOCAL) node->value = td_int(right->slot);
  if (operand_of(right) == CONSTANT) node->value = right->value; // the arena holds it
}

static enum operand left_operand(const td_node *n) { return operand_of(n) == LOCAL ? LOCAL : ANY; }

static td_evaluate *choose(td_evaluate *const forms[2][3], const td_node *n, const td_node *right) {
  td_evaluate *form = forms[left_operand(n->a)][operand_of(right)];
  if (form) keep_operands(n, n->a, right);
  return form;
}

td_evaluate *td_fast_choose(const td_node *n) {
  switch (n->kind) {
  case TD_NODE_BINARY: return choose(binaries[n->op], n, n->b);
  case TD_NODE_COMPARE:
    return n->count == 1 && n->ops[0] < TD_COMPARE_IN ? choose(comparisons[n->ops[0]], n, n->items[0]) : NULL;
  case TD_NODE_INDEX: return choose(items_of, n, n->b);
  case TD_NODE_ATTRIBUTE: return operand_of(n->a) == LOCAL ? attribute_of_local : attribute_of_any;
  default: return NULL;
  }
}
