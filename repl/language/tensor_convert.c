// Between values and tensors: numbers, nested lists and ranges to tensors; tensors to numbers and nested lists;
// dtypes and axes from values. Numbers are weakly typed: they take the dtype of the tensors beside them.
#include <math.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "repl/language/tensors.h"

// ---- numbers ----

static bool int_fits(int64_t value, uint8_t dtype) {
  if (dtype == TD_UINT8) return value >= 0 && value <= 255;
  if (dtype == TD_INT32) return value >= INT32_MIN && value <= INT32_MAX;
  return true;
}

static void fail_range(td_interpreter *I, int64_t value, uint8_t dtype) {
  td_raise(I, TD_CLASS_OVERFLOW_ERROR, "%lld is out of range for %s", (long long)value, td_dtype_name(dtype));
}

static td_tensor *number_to_tensor(td_interpreter *I, td_value v, int like) {
  int category = v.tag == TD_TAG_BOOL ? 0 : v.tag == TD_TAG_INT ? 1 : 2;
  static const uint8_t alone[] = {TD_BOOL, TD_INT64, TD_FLOAT32};
  uint8_t dtype = like < 0 ? alone[category] : td_dtype_weak(category, (uint8_t)like);
  td_tensor *t;
  if (category == 2) t = td_tensor_from_float(I->context, v.f, dtype);
  else if (int_fits(v.i, dtype)) t = td_tensor_from_int(I->context, v.i, dtype);
  else {
    fail_range(I, v.i, dtype);
    td_raise_hint(I, "cast the tensor to a wider dtype first, x.astype(int64)");
    return NULL;
  }
  if (!t) td_raise_engine(I);
  return t;
}

static bool is_number(td_value v) { return v.tag == TD_TAG_BOOL || v.tag == TD_TAG_INT || v.tag == TD_TAG_DOUBLE; }

// ---- nested lists ----

static bool sequence_items(td_value v, td_value **items, int64_t *count) {
  if (td_is(v, &td_list_type)) {
    *items = td_as_list(v)->items;
    *count = td_as_list(v)->count;
    return true;
  }
  if (td_is(v, &td_tuple_type)) {
    *items = td_as_tuple(v)->items;
    *count = td_as_tuple(v)->count;
    return true;
  }
  return false;
}

typedef struct nest { // what a nested list holds
  int rank; // -1: not known yet
  int64_t shape[TD_RANK_MAX];
  int category; // highest of its numbers; -1: none
  int dtype; // of its tensors; -1: none
} nest;

static bool scan_ragged(td_interpreter *I, const nest *n, int depth, int64_t count) {
  td_raise(I, TD_CLASS_VALUE_ERROR, "the nested list is ragged: axis %d has lists of %lld and %lld elements", depth,
           (long long)n->shape[depth], (long long)count);
  td_raise_hint(I, "all lists at one depth need the same length");
  return false;
}

static bool scan_depth(td_interpreter *I, nest *n, int depth) {
  if (n->rank >= 0 && n->rank != depth) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "the nested list is ragged: numbers stand at depth %d and at depth %d", n->rank,
             depth);
    return false;
  }
  n->rank = depth;
  return true;
}

static bool scan_leaf(td_interpreter *I, td_value v, nest *n, int depth) {
  const td_tensor *t = td_tensor_of(v);
  if (t) {
    n->dtype = n->dtype < 0 ? t->dtype : td_dtype_promote((uint8_t)n->dtype, t->dtype);
    return true;
  }
  if (!is_number(v)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "needs numbers or nested lists of numbers, found %s", td_type_name(I, v));
    return false;
  }
  int category = v.tag == TD_TAG_BOOL ? 0 : v.tag == TD_TAG_INT ? 1 : 2;
  if (category > n->category) n->category = category;
  return scan_depth(I, n, depth);
}

static bool scan(td_interpreter *I, td_value v, nest *n, int depth, bool first) {
  td_value *items;
  int64_t count;
  if (!sequence_items(v, &items, &count)) return scan_leaf(I, v, n, depth);
  if (depth == TD_RANK_MAX) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "the list is nested deeper than %d, the highest rank", TD_RANK_MAX);
    return false;
  }
  if (first) n->shape[depth] = count;
  else if (n->shape[depth] != count) return scan_ragged(I, n, depth, count);
  if (count == 0) return scan_depth(I, n, depth + 1);
  for (int64_t i = 0; i < count; i++)
    if (!scan(I, items[i], n, depth + 1, first && i == 0)) return false;
  return true;
}

static double as_double(td_value v) { return v.tag == TD_TAG_DOUBLE ? v.f : (double)v.i; }

static bool fill(td_interpreter *I, td_value v, td_tensor *t, int64_t *next) {
  td_value *items;
  int64_t count;
  if (sequence_items(v, &items, &count)) {
    for (int64_t i = 0; i < count; i++)
      if (!fill(I, items[i], t, next)) return false;
    return true;
  }
  int64_t at = (*next)++;
  if (v.tag == TD_TAG_INT && !int_fits(v.i, t->dtype)) return fail_range(I, v.i, t->dtype), false;
  switch (t->dtype) {
  case TD_BOOL: ((uint8_t *)t->data)[at] = as_double(v) != 0; break;
  case TD_UINT8: ((uint8_t *)t->data)[at] = (uint8_t)v.i; break;
  case TD_INT32: ((int32_t *)t->data)[at] = (int32_t)v.i; break;
  case TD_INT64: ((int64_t *)t->data)[at] = v.i; break;
  case TD_FLOAT16: ((uint16_t *)t->data)[at] = td_half_from_float((float)as_double(v)); break;
  case TD_BFLOAT16: ((uint16_t *)t->data)[at] = td_bfloat_from_float((float)as_double(v)); break;
  case TD_FLOAT32: ((float *)t->data)[at] = (float)as_double(v); break;
  default: ((double *)t->data)[at] = as_double(v);
  }
  return true;
}

// Joins tensors along a new first axis, recorded like any op. Longer lists than a call takes are joined in groups.
static td_tensor *stack_range(td_interpreter *I, td_value *items, int64_t count, int like) {
  td_tensor *in[TD_INPUT_MAX], *out[TD_OUTPUT_MAX], *result = NULL;
  int filled = 0;
  if (count <= TD_INPUT_MAX) {
    while (filled < count && (in[filled] = td_to_tensor(I, items[filled], like))) filled++;
    if (filled == count) {
      if (td_op_apply(I->context, td_op_find("stack"), in, filled, NULL, out) == TD_OK) result = out[0];
      else td_raise_engine(I);
    }
  } else {
    int64_t group = (count + TD_INPUT_MAX - 1) / TD_INPUT_MAX;
    for (int64_t at = 0; at < count; at += group) {
      in[filled] = stack_range(I, items + at, count - at < group ? count - at : group, like);
      if (!in[filled]) break;
      filled++;
    }
    if ((int64_t)filled * group >= count) {
      if (td_op_apply(I->context, td_op_find("concat"), in, filled, NULL, out) == TD_OK) result = out[0];
      else td_raise_engine(I);
    }
  }
  for (int i = 0; i < filled; i++) td_tensor_unref(in[i]);
  return result;
}

static td_tensor *list_to_tensor(td_interpreter *I, td_value v, int like, int dtype) {
  nest n = {.rank = -1, .category = -1, .dtype = -1};
  if (!scan(I, v, &n, 0, true)) return NULL;
  td_value *items = NULL;
  int64_t count = 0;
  sequence_items(v, &items, &count);
  if (n.dtype >= 0) return stack_range(I, items, count, n.dtype);
  if (dtype < 0) {
    static const uint8_t alone[] = {TD_FLOAT32, TD_BOOL, TD_INT64, TD_FLOAT32};
    dtype = like < 0 || n.category < 0 ? alone[n.category + 1] : td_dtype_weak(n.category, (uint8_t)like);
  }
  // Integers are filled as integers; a list that also holds floats fills a float tensor, which is cast when asked for
  // an integer dtype
  uint8_t filled =
      n.category == 2 && !td_dtype_is_float((uint8_t)dtype) && dtype != TD_BOOL ? TD_FLOAT64 : (uint8_t)dtype;
  td_tensor *t = td_tensor_new(I->context, filled, n.rank, n.shape);
  if (!t) {
    td_raise_engine(I);
    return NULL;
  }
  int64_t next = 0;
  if (fill(I, v, t, &next)) return t;
  td_tensor_unref(t);
  return NULL;
}

static td_tensor *range_to_tensor(td_interpreter *I, const td_range *range) {
  td_tensor *t = td_tensor_new(I->context, TD_INT64, 1, &range->count);
  if (!t) {
    td_raise_engine(I);
    return NULL;
  }
  for (int64_t i = 0; i < range->count; i++) ((int64_t *)t->data)[i] = range->start + i * range->step;
  return t;
}

td_tensor *td_tensor_of(td_value v) {
  if (td_is(v, &td_tensor_type)) return td_unbox_tensor(v);
  if (td_is(v, &td_variable_type)) return td_unbox_variable(v)->value;
  return NULL;
}

bool td_is_tensor_like(td_value v) { return td_tensor_of(v) != NULL; }

td_tensor *td_to_tensor(td_interpreter *I, td_value v, int like) {
  if (td_is(v, &td_tensor_type)) return td_tensor_ref(td_unbox_tensor(v));
  if (td_is(v, &td_variable_type)) {
    td_tensor *t = td_variable_read(I->context, td_unbox_variable(v));
    if (!t) td_raise_engine(I);
    return t;
  }
  if (is_number(v)) return number_to_tensor(I, v, like);
  if (td_is(v, &td_list_type) || td_is(v, &td_tuple_type)) return list_to_tensor(I, v, like, -1);
  if (td_is(v, &td_range_type)) return range_to_tensor(I, (td_range *)v.o);
  td_raise(I, TD_CLASS_TYPE_ERROR, "a tensor or a number is needed, not %s", td_type_name(I, v));
  return NULL;
}

td_tensor *td_cast_to(td_interpreter *I, td_tensor *t, uint8_t dtype) {
  if (!t || t->dtype == dtype) return t;
  td_scope scope;
  td_scope_open(&scope, I->context);
  td_tensor *cast = td_tensor_ref(td_cast(&scope, td_scope_own(&scope, t), dtype));
  td_scope_close(&scope);
  if (!cast) td_raise_engine(I);
  return cast;
}

td_tensor *td_to_tensor_of(td_interpreter *I, td_value v, uint8_t dtype) {
  bool list = td_is(v, &td_list_type) || td_is(v, &td_tuple_type);
  td_tensor *t =
      list ? list_to_tensor(I, v, -1, dtype) : td_to_tensor(I, v, v.tag == TD_TAG_DOUBLE ? TD_FLOAT64 : dtype);
  return td_cast_to(I, t, dtype);
}

// ---- tensors to values ----

bool td_tensor_readable(td_interpreter *I, const td_tensor *t, const char *what) {
  if (!(t->flags & TD_TENSOR_BATCHED)) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s: inside vmap the numbers differ from example to example", what);
  td_raise_hint(I, "keep it a tensor: where(condition, a, b) chooses for each example");
  return false;
}

td_value td_tensor_element(td_interpreter *I, const td_tensor *t, int64_t index) {
  if (!td_tensor_readable(I, t, "reading an element")) return TD_NIL;
  if (t->dtype == TD_BOOL) return td_bool(td_tensor_get_int(t, index) != 0);
  if (td_dtype_is_float(t->dtype)) return td_double(td_tensor_get_float(t, index));
  return td_int(td_tensor_get_int(t, index));
}

static td_value nested_list(td_interpreter *I, const td_tensor *t, int axis, int64_t *next) {
  if (axis == t->rank) return td_tensor_element(I, t, (*next)++);
  td_list *list = td_list_new(I, t->shape[axis]);
  if (!list) return TD_NIL;
  for (int64_t i = 0; i < t->shape[axis]; i++) {
    td_value item = nested_list(I, t, axis + 1, next);
    bool ok = !td_is_nil(item) && td_list_append(I, list, item);
    td_unref(item);
    if (!ok) {
      td_unref(td_from(list));
      return TD_NIL;
    }
  }
  return td_from(list);
}

td_value td_tensor_to_list(td_interpreter *I, const td_tensor *t) {
  int64_t next = 0;
  return nested_list(I, t, 0, &next);
}

td_value td_shape_to_tuple(td_interpreter *I, int rank, const int64_t *shape) {
  td_tuple *tuple = td_tuple_new(I, rank);
  for (int i = 0; tuple && i < rank; i++) tuple->items[i] = td_int(shape[i]);
  return td_from(tuple);
}

// ---- dtypes and axes ----

// Python's types stand for what a list of such numbers becomes. As texts they mean the same, and so do PyTorch's words.
// -1: none.
static int dtype_of_word(const char *word, bool is_text) {
  static const struct {
    const char *word;
    uint8_t dtype;
    bool text_only;
  } words[] = {{"float", TD_FLOAT32, false}, {"int", TD_INT64, false},     {"bool", TD_BOOL, false},
               {"half", TD_FLOAT16, true},   {"double", TD_FLOAT64, true}, {"long", TD_INT64, true}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(word, words[i].word) == 0 && (is_text || !words[i].text_only)) return words[i].dtype;
  return -1;
}

bool td_to_dtype(td_interpreter *I, td_value v, uint8_t *dtype) {
  if (td_is(v, &td_dtype_type)) {
    *dtype = ((td_dtype_value *)v.o)->dtype;
    return true;
  }
  if (td_is(v, &td_str_type)) {
    int found = td_dtype_find(td_as_str(v)->data);
    if (found < 0) found = dtype_of_word(td_as_str(v)->data, true);
    if (found >= 0) {
      *dtype = (uint8_t)found;
      return true;
    }
    td_raise(I, TD_CLASS_TYPE_ERROR, "there is no dtype '%.40s'", td_as_str(v)->data);
    td_raise_hint(I, "dtypes are float32, float64, float16, bfloat16, int32, int64, uint8 and bool");
    return false;
  }
  if (td_is(v, &td_class_type)) {
    int found = dtype_of_word(((td_class *)v.o)->name->data, false);
    if (found >= 0) *dtype = (uint8_t)found;
    return found >= 0;
  }
  return false;
}

// The numbers of a value that is one number or a sequence of them; false: too many for a td_arg, raised.
static bool numbers_of(td_interpreter *I, td_value *v, const char *what, td_value **items, td_arg *arg) {
  int64_t count = 1;
  if (!sequence_items(*v, items, &count)) *items = v;
  arg->given = 1;
  arg->count = (int32_t)count;
  if (count <= TD_RANK_MAX) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "'%s' has %lld numbers, the highest rank is %d", what, (long long)count,
           TD_RANK_MAX);
  return false;
}

// Says which item of a sequence was no number; what user code raised stays.
static bool fail_item(td_interpreter *I, const char *what, const char *expected, int at, td_value item) {
  if (td_is(item, &td_instance_type)) return false;
  td_clear_raised(I);
  td_raise(I, TD_CLASS_TYPE_ERROR, "'%s[%d]' must be %s, not %s", what, at, expected, td_type_name(I, item));
  return false;
}

bool td_to_axes(td_interpreter *I, td_value v, const char *what, td_arg *arg) {
  td_value *items;
  bool ok = numbers_of(I, &v, what, &items, arg);
  for (int i = 0; ok && i < arg->count; i++) {
    arg->ints[i] = td_to_int(I, items[i], &ok);
    if (!ok && items != &v) fail_item(I, what, "an int", i, items[i]);
  }
  return ok;
}

bool td_to_floats(td_interpreter *I, td_value v, const char *what, td_arg *arg) {
  td_value *items;
  const td_tensor *t = td_tensor_of(v);
  if (t && t->rank) {
    td_value list = td_tensor_to_list(I, t);
    bool whole = !td_is_nil(list) && td_to_floats(I, list, what, arg);
    td_unref(list);
    return whole;
  }
  bool ok = numbers_of(I, &v, what, &items, arg);
  for (int i = 0; ok && i < arg->count; i++) {
    arg->floats[i] = td_to_double(I, items[i], &ok);
    if (!ok && items != &v) fail_item(I, what, "a number", i, items[i]);
  }
  if (ok && items == &v) arg->given = TD_GIVEN_LONE;
  return ok;
}
