// Ops as builtins: one binder turns a call's arguments into tensors and td_args by the rows of td_op.params, for the
// function form, op(x, ...), and the method form, x.op(...). No op is named here.
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "engine/base/memory.h"
#include "repl/language/builtins.h"
#include "repl/language/diagnose.h"
#include "repl/language/habit.h"
#include "repl/language/tensors.h"

typedef struct binding {
  const td_op *op;
  const td_op *applied;        // op, or what joins the parts of a long list
  int tensor_params, arg_count;
  td_value given[TD_PARAM_MAX]; // by row; NIL: not given; borrowed
  int position[TD_PARAM_MAX];   // by row: which argument it was, self counting as one
  td_tensor *in[TD_INPUT_MAX]; // owned
  int in_count;
  td_arg args[TD_PARAM_MAX];
} binding;

static void binding_clear(binding *b) {
  for (int i = 0; i < b->in_count; i++) td_tensor_unref(b->in[i]);
  b->in_count = 0;
}

static const char *signature_of(const td_op *op, td_text *text) {
  td_op_signature(op, text);
  return text->data ? text->data : op->name;
}

static bool fail_signature(td_interpreter *I, const td_op *op, const char *problem) {
  td_text signature = {0};
  char name[64];
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s: %s", td_op_spelled(op, name, sizeof name), problem);
  td_raise_hint(I, "its signature is %s", signature_of(op, &signature));
  td_text_clear(&signature);
  return false;
}

// ---- which argument belongs to which row ----

static bool is_list(const td_param *param) {
  return param->kind == TD_PARAM_TENSORS || param->kind == TD_PARAM_TENSORS_SPREAD;
}

static int row_count(const binding *b) { return b->tensor_params + b->arg_count; }

static int position_count(const binding *b) { // rows that need no name
  int count = 0;
  for (int row = 0; row < row_count(b); row++) count += !b->op->params[row].keyword;
  return count;
}

static bool is_word(const char *a, const char *b) { return *a == *b && strcmp(a, b) == 0; }

// dim and keepdim are PyTorch's words for axis and keepdims; input names the first tensor.
static bool names_row(const td_param *param, int row, const char *keyword) {
  if (is_word(param->name, keyword) || (param->alias && td_op_alias(param->alias, keyword))) return true;
  if (is_word(keyword, "dim")) return is_word(param->name, "axis") || is_word(param->name, "axes");
  if (is_word(keyword, "axis")) return is_word(param->name, "axes");
  if (is_word(keyword, "keepdim")) return is_word(param->name, "keepdims");
  if (is_word(keyword, "input")) return row == 0 && !is_list(param);
  if (is_word(keyword, "correction")) return is_word(param->name, "ddof");
  return false;
}

static bool unknown_keyword(td_interpreter *I, const binding *b, const td_str *keyword) {
  char problem[160];
  snprintf(problem, sizeof problem, "there is no argument '%.80s'", keyword->data);
  fail_signature(I, b->op, problem);
  const char *habit = td_habit(TD_HABIT_KEYWORD, keyword->data);
  if (habit) td_raise_hint(I, "%s", habit);
  return false;
}

static bool place_keywords(td_interpreter *I, binding *b, const td_arguments *arguments) {
  for (int k = 0; k < arguments->keyword_count; k++) {
    const td_str *keyword = arguments->keywords[k];
    int row = 0;
    while (row < row_count(b) && !names_row(&b->op->params[row], row, keyword->data)) row++;
    if (row == row_count(b)) return unknown_keyword(I, b, keyword);
    if (!td_is_nil(b->given[row])) {
      char problem[160];
      snprintf(problem, sizeof problem, "'%s' is given twice", b->op->params[row].name);
      return fail_signature(I, b->op, problem);
    }
    b->given[row] = arguments->values[arguments->count + k];
  }
  return true;
}

static bool takes_many(const td_param *param) {
  return param->kind == TD_PARAM_SHAPE || param->kind == TD_PARAM_INTS || param->kind == TD_PARAM_AXES;
}

// x.reshape(2, 3), zeros(2, 3): where no int can follow a shape (it is the last parameter, or a dtype comes next),
// ints may be written without a tuple; and so may tensors: meshgrid(x, y). How many positional arguments from position
// on are gathered so; 0: none.
static int gathered_count(const binding *b, int position, const td_value *values, int count) {
  if (position < row_count(b) && b->op->params[position].kind == TD_PARAM_TENSORS_SPREAD)
    return td_is_tensor_like(values[0]) || count > 1 ? count : 0;
  if (position >= row_count(b) || !takes_many(&b->op->params[position])) return 0;
  uint8_t next = position + 1 < row_count(b) ? b->op->params[position + 1].kind : TD_PARAM_END;
  if (next != TD_PARAM_END && next != TD_PARAM_DTYPE) return 0;
  int ints = 0;
  while (ints < count && values[ints].tag == TD_TAG_INT) ints++;
  return ints > 1 ? ints : 0;
}

// PyTorch writes the axis before the index, gather(x, 1, index): an int where an index is due and a tensor or a list
// comes next. The row that it belongs to; 0: it stands where it belongs.
static int axis_row(const binding *b, int position, const td_value *values, int count) {
  if (position >= b->tensor_params || b->op->params[position].kind != TD_PARAM_INDEX) return 0;
  if (count < 2 || values[0].tag != TD_TAG_INT || !(td_is_tensor_like(values[1]) || td_is(values[1], &td_list_type)))
    return 0;
  int row = b->tensor_params;
  while (row < row_count(b) && b->op->params[row].kind != TD_PARAM_AXIS) row++;
  return row < row_count(b) && td_is_nil(b->given[row]) ? row : 0;
}

// PyTorch's randint(10, (2, 3)), Keras's randint((2, 3), 0, 10): a shape in brackets where an int is due. Its row; 0:
// none.
static int shape_row(const binding *b, int position, const td_value *values) {
  bool brackets = td_is(values[0], &td_tuple_type) || td_is(values[0], &td_list_type);
  if (!brackets || position >= row_count(b) || b->op->params[position].kind != TD_PARAM_INT) return 0;
  int row = position;
  while (row < row_count(b) && b->op->params[row].kind != TD_PARAM_SHAPE) row++;
  return row < row_count(b) && td_is_nil(b->given[row]) ? row : 0;
}

// A text where tensors are due belongs to the op's text: einsum("ij,jk", a, b). Its row; 0: none.
static int text_row(const binding *b, int position, const td_value *values) {
  if (position >= b->tensor_params || !is_list(&b->op->params[position]) || !td_is(values[0], &td_str_type)) return 0;
  int row = b->tensor_params;
  while (row < row_count(b) && b->op->params[row].kind != TD_PARAM_TEXT) row++;
  return row < row_count(b) && td_is_nil(b->given[row]) ? row : 0;
}

// Three numbers of a draw, the last an int: NumPy's (low, high, size) and (mean, std, size), unless the first can only
// be the shape, as in uniform(5, 0, 1) and normal(5, 0, 1).
static bool size_is_last(const td_param *shape, const td_value *values) {
  if (values[2].tag != TD_TAG_INT || values[0].tag != TD_TAG_INT) return values[2].tag == TD_TAG_INT;
  double second = values[1].tag == TD_TAG_DOUBLE ? values[1].f : (double)values[1].i;
  return strcmp(shape[2].name, "std") == 0 ? second > 0 : (double)values[0].i <= second;
}

// NumPy's order of draws, uniform(low, high) and normal(mean, std, (2, 3)): two numbers where a shape and they are due,
// then nothing or a shape. How many values from here on are placed so; 0: none.
static int numbers_first(const binding *b, int row, const td_value *values, int count) {
  const td_param *shape = &b->op->params[row];
  if (row + 2 >= row_count(b) || shape->kind != TD_PARAM_SHAPE || count < 2) return 0;
  bool numbers = shape[1].kind == TD_PARAM_FLOAT && shape[2].kind == TD_PARAM_FLOAT && td_is_number(values[0]) &&
                 td_is_number(values[1]);
  if (!numbers || count == 2) return numbers ? 2 : 0;
  bool brackets = td_is(values[2], &td_tuple_type) || td_is(values[2], &td_list_type);
  return brackets || size_is_last(shape, values) ? 3 : 0;
}

// ---- NumPy's other form: einsum(a, [0, 1], b, [1, 2], [0, 2]), numbers of axes after each tensor ----

static bool add_letters(td_interpreter *I, const binding *b, td_value list, td_text *text) {
  td_list *axes = td_list_new(I, 0);
  bool ok = axes && td_to_list(I, list, axes);
  for (int64_t i = 0; ok && i < axes->count; i++) {
    if (td_is(axes->items[i], &td_ellipsis_type)) {
      td_text_add(text, "...");
      continue;
    }
    int64_t axis = td_to_int(I, axes->items[i], &ok);
    if (!ok) break;
    if (axis < 0 || axis > 51) {
      char problem[80];
      snprintf(problem, sizeof problem, "axes are numbered 0 to 51, not %lld", (long long)axis);
      ok = fail_signature(I, b->op, problem);
    } else td_text_add_char(text, (char)(axis < 26 ? 'A' + axis : 'a' + axis - 26));
  }
  td_unref(td_from(axes));
  return ok;
}

static bool is_interleaved(const binding *b, const td_arguments *arguments) {
  return arguments->count > 1 && b->arg_count && td_op_goes_first(b->op, &b->op->params[b->tensor_params]) &&
         !td_is(arguments->values[0], &td_str_type) &&
         (td_is(arguments->values[1], &td_list_type) || td_is(arguments->values[1], &td_tuple_type));
}

static bool place_interleaved(td_interpreter *I, binding *b, const td_arguments *arguments, td_value *gathered,
                              td_value *letters) {
  int count = arguments->count / 2;
  td_text text = {0};
  td_tuple *tuple = td_tuple_new(I, count);
  bool ok = tuple != NULL;
  for (int i = 0; ok && i < count; i++) {
    tuple->items[i] = td_ref(arguments->values[2 * i]);
    if (i) td_text_add_char(&text, ',');
    ok = add_letters(I, b, arguments->values[2 * i + 1], &text);
  }
  *gathered = b->given[0] = td_from(tuple);
  if (ok && arguments->count % 2) {
    td_text_add(&text, "->");
    ok = add_letters(I, b, arguments->values[arguments->count - 1], &text);
  }
  if (ok) *letters = b->given[b->tensor_params] = td_from(td_str_from(I, text.data ? text.data : ""));
  td_text_clear(&text);
  return ok && !td_is_nil(*letters) && place_keywords(I, b, arguments);
}

static bool place_arguments(td_interpreter *I, binding *b, td_value self, const td_arguments *arguments,
                            td_value *gathered) {
  int row = 0, first = 0, shift = !td_is_nil(self);
  if (shift) b->given[row++] = self;
  int total = shift + arguments->count;
  for (; first < arguments->count; first++, row++) {
    while (row < row_count(b) && b->op->params[row].keyword) row++;
    int moved = text_row(b, row, arguments->values + first);
    if (!moved) moved = shape_row(b, row, arguments->values + first);
    if (!moved) moved = axis_row(b, row, arguments->values + first, arguments->count - first);
    if (moved) {
      b->given[moved] = arguments->values[first];
      b->position[moved] = shift + first;
      row--;
      continue;
    }
    int drawn = numbers_first(b, row, arguments->values + first, arguments->count - first);
    for (int i = 0; i < drawn; i++) {
      b->given[row + (i + 1) % 3] = arguments->values[first + i];
      b->position[row + (i + 1) % 3] = shift + first + i;
    }
    if (drawn) {
      first += drawn - 1;
      row += 2;
      continue;
    }
    int count = td_is_nil(*gathered) ? gathered_count(b, row, arguments->values + first, arguments->count - first) : 0;
    if (count) {
      td_tuple *tuple = td_tuple_new(I, count);
      if (!tuple) return false;
      for (int i = 0; i < count; i++) tuple->items[i] = td_ref(arguments->values[first + i]);
      *gathered = b->given[row] = td_from(tuple);
      first += count - 1;
      continue;
    }
    while (row < row_count(b) && (b->op->params[row].keyword || !td_is_nil(b->given[row]))) row++;
    if (row == row_count(b)) {
      char problem[160];
      int most = position_count(b);
      snprintf(problem, sizeof problem, "takes at most %d argument%s, %d were given", most, most == 1 ? "" : "s",
               total);
      return fail_signature(I, b->op, problem);
    }
    b->given[row] = arguments->values[first];
    b->position[row] = shift + first;
  }
  return place_keywords(I, b, arguments);
}

// ---- tensors ----

// The dtype that numbers among the inputs take: that of the tensors beside them, or -1.
static int common_dtype(const binding *b) {
  int common = -1;
  for (int i = 0; i < b->tensor_params; i++) {
    const td_tensor *t = b->op->params[i].kind == TD_PARAM_INDEX ? NULL : td_tensor_of(b->given[i]);
    if (t) common = common < 0 ? t->dtype : td_dtype_promote((uint8_t)common, t->dtype);
  }
  return common;
}

static bool fail_missing(td_interpreter *I, const td_op *op, int row) {
  char problem[120];
  snprintf(problem, sizeof problem, "missing argument '%s'", op->params[row].name);
  return fail_signature(I, op, problem);
}

static bool fail_argument(td_interpreter *I, const td_op *op, int row, const char *expected, td_value given) {
  if (!td_is_nil(I->raised)) return false;
  char problem[300];
  const td_tensor *t = td_tensor_of(given);
  td_text shape = {0};
  if (t) td_shape_print(&shape, t->rank, t->shape);
  snprintf(problem, sizeof problem, "'%s' must be %s, not %.60s%s%.100s", op->params[row].name, expected,
           td_type_name(I, given), t ? " of shape " : "", shape.data ? shape.data : "");
  td_text_clear(&shape);
  fail_signature(I, op, problem);
  if (t && row && td_op_takes_list(op)) td_raise_hint(I, "the tensors are one argument: %s([a, b])", op->name);
  return false;
}

static bool is_sequence(td_value v) { return td_is(v, &td_list_type) || td_is(v, &td_tuple_type); }

static bool runs_user_code(td_value v) { // may a conversion of v to numbers?
  if (!is_sequence(v)) return td_is(v, &td_instance_type);
  const td_value *items = td_is(v, &td_list_type) ? td_as_list(v)->items : td_as_tuple(v)->items;
  int64_t count = td_is(v, &td_list_type) ? td_as_list(v)->count : td_as_tuple(v)->count;
  while (count && !runs_user_code(items[count - 1])) count--;
  return count > 0;
}

static bool is_refusal(td_interpreter *I) { // of a value, by its kind or by what it is
  return td_raised_is(I, TD_CLASS_TYPE_ERROR) || td_raised_is(I, TD_CLASS_VALUE_ERROR) ||
         td_raised_is(I, TD_CLASS_OVERFLOW_ERROR);
}

// A conversion of the argument given raised without knowing of the op; what user code raised stays. false.
static bool blame(td_interpreter *I, const td_op *op, const char *argument, td_value given) {
  char name[64];
  if (!is_refusal(I) || runs_user_code(given)) return false;
  const td_tuple *said = td_as_tuple(((td_exception *)I->raised.o)->arguments);
  bool named = said->count && td_is(said->items[0], &td_str_type) && td_as_str(said->items[0])->data[0] == '\'';
  if (named) td_raise_within(I, "%s: ", td_op_spelled(op, name, sizeof name));
  else td_raise_within(I, "%s: '%s': ", td_op_spelled(op, name, sizeof name), argument);
  return false;
}

static td_tensor *bind_list_item(td_interpreter *I, const binding *b, td_value v, int64_t at, int like) {
  td_tensor *t = td_to_tensor(I, v, like);
  char item[80];
  snprintf(item, sizeof item, "%s[%lld]", b->op->params[0].name, (long long)at);
  if (!t) blame(I, b->op, item, v);
  return t;
}

// What an op of a list makes of a part of it that may be longer than a call takes; its first item is the at-th.
static td_tensor *join_range(td_interpreter *I, const binding *b, td_value *items, int64_t at_first, int64_t count,
                             int like) {
  td_tensor *in[TD_INPUT_MAX], *out[TD_OUTPUT_MAX], *result = NULL;
  int64_t group = (count + TD_INPUT_MAX - 1) / TD_INPUT_MAX;
  int filled = 0;
  for (int64_t at = 0; at < count; at += group) {
    int64_t n = count - at < group ? count - at : group;
    in[filled] = group == 1 ? bind_list_item(I, b, items[at], at_first + at, like)
                            : join_range(I, b, items + at, at_first + at, n, like);
    if (!in[filled]) break;
    filled++;
  }
  if ((int64_t)filled * group >= count) {
    const td_op *op = group == 1 ? b->op : td_op_find(b->op->join);
    if (td_op_apply(I->context, op, in, filled, b->args, out) == TD_OK) result = out[0];
    else td_raise_engine(I);
  }
  for (int i = 0; i < filled; i++) td_tensor_unref(in[i]);
  return result;
}

static bool bind_tensor_list(td_interpreter *I, binding *b) {
  td_value v = b->given[0];
  if (td_is_nil(v)) return fail_missing(I, b->op, 0);
  const td_type *type = td_type_of(v);
  bool ordered =
      (type->iterate || type->next) && !td_is(v, &td_str_type) && !td_is(v, &td_set_type) && !td_is(v, &td_dict_type);
  if (!ordered) return fail_argument(I, b->op, 0, "a list of tensors", v);
  td_list *list = td_list_new(I, 0);
  if (!list) return false;
  bool ok = td_to_list(I, v, list);
  bool grouped = list->count > TD_INPUT_MAX && b->op->join;
  if (grouped) b->applied = td_op_find(b->op->join);
  if (ok && list->count > TD_INPUT_MAX && !grouped) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "%s: %lld tensors, at most %d fit in one call", b->op->name,
             (long long)list->count, TD_INPUT_MAX);
    td_raise_hint(I, "join them in groups; tensor(list) stacks any number");
    ok = false;
  }
  int common = -1;
  for (int64_t i = 0; ok && i < list->count; i++) {
    const td_tensor *t = td_tensor_of(list->items[i]);
    if (t) common = common < 0 ? t->dtype : td_dtype_promote((uint8_t)common, t->dtype);
  }
  int64_t group = grouped ? (list->count + TD_INPUT_MAX - 1) / TD_INPUT_MAX : 1;
  for (int64_t i = 0; ok && i < list->count; i += group) {
    int64_t n = list->count - i < group ? list->count - i : group;
    td_tensor *t =
        grouped ? join_range(I, b, list->items + i, i, n, common) : bind_list_item(I, b, list->items[i], i, common);
    if (t) b->in[b->in_count++] = t;
    else ok = false;
  }
  td_unref(td_from(list));
  return ok;
}

// Numbers and lists keep all their digits; an empty list has no dtype of its own.
static td_tensor *index_to_tensor(td_interpreter *I, td_value v) {
  td_tensor *t = td_to_tensor(I, v, -1);
  if (!t || td_is_tensor_like(v)) return t;
  if (!t->size) return td_cast_to(I, t, TD_INT64);
  if (!td_dtype_is_float(t->dtype)) return t;
  td_tensor_unref(t);
  return td_to_tensor(I, v, TD_FLOAT64);
}

// As fail_argument, where a conversion raised already without knowing the argument's name. What user code raised, and
// what concerns a part of the value or its size, stays.
static bool fail_value(td_interpreter *I, const td_op *op, int row, const char *expected, td_value given) {
  const td_tensor *t = td_tensor_of(given);
  bool whole = !td_is(given, &td_instance_type) && !is_sequence(given) &&
               (t ? t->size != 1 && is_refusal(I) : td_raised_is(I, TD_CLASS_TYPE_ERROR));
  if (whole) td_clear_raised(I);
  return td_is_nil(I->raised) ? fail_argument(I, op, row, expected, given) : blame(I, op, op->params[row].name, given);
}

static bool bind_tensors(td_interpreter *I, binding *b) {
  if (b->tensor_params && is_list(&b->op->params[0])) return bind_tensor_list(I, b);
  int like = common_dtype(b);
  for (int i = 0; i < b->tensor_params; i++) {
    td_value v = b->given[i];
    bool optional = b->op->params[i].kind == TD_PARAM_TENSOR_OPTIONAL;
    if (optional && (td_is_nil(v) || td_is_none(v))) {
      b->in[b->in_count++] = NULL;
      continue;
    }
    if (td_is_nil(v)) return fail_missing(I, b->op, i);
    td_tensor *t = b->op->params[i].kind == TD_PARAM_INDEX ? index_to_tensor(I, v) : td_to_tensor(I, v, like);
    if (!t && is_refusal(I) && !td_is_tensor_like(v)) return fail_value(I, b->op, i, "a tensor or a number", v);
    if (!t) return false;
    b->in[b->in_count++] = t;
  }
  return true;
}

// ---- the other parameters ----

// As fail_value, for arguments that are one number: a list or tuple is wrong as a whole.
static bool fail_scalar(td_interpreter *I, const td_op *op, int row, const char *expected, td_value given) {
  if (is_sequence(given)) td_clear_raised(I);
  return fail_value(I, op, row, expected, given);
}

static void hint_choice(td_interpreter *I, const td_param *param, const char *word) {
  td_value raised = I->raised;
  I->raised = TD_NIL;
  td_list *choices = td_list_new(I, 8);
  bool ok = choices != NULL;
  for (int i = 0; ok && param->choices[i]; i++) {
    td_str *choice = td_str_from(I, param->choices[i]);
    ok = choice && td_list_append(I, choices, td_from(choice));
    td_unref(td_from(choice));
  }
  const char *near = ok ? td_suggest(word, choices) : NULL;
  td_clear_raised(I);
  I->raised = raised;
  if (near) td_raise_hint(I, "did you mean \"%s\"?", near);
  td_unref(td_from(choices));
}

// Capitals make no difference: TensorFlow's padding="SAME".
static bool bind_choice(td_interpreter *I, const td_op *op, int row, td_value v, td_arg *arg) {
  const td_param *param = &op->params[row];
  bool text = td_is(v, &td_str_type);
  for (int i = 0; text && param->choices[i]; i++) {
    if (strcasecmp(td_as_str(v)->data, param->choices[i]) == 0) {
      arg->i = i;
      return true;
    }
  }
  td_text names = {0};
  for (int i = 0; param->choices[i]; i++) td_text_print(&names, "%s\"%s\"", i ? ", " : "", param->choices[i]);
  char name[64];
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: '%s' must be %s%s, not %s%.60s%s", td_op_spelled(op, name, sizeof name),
           param->name, param->kind == TD_PARAM_INTS ? "ints or one of " : "one of ", names.data ? names.data : "",
           text ? "\"" : "", text ? td_as_str(v)->data : td_type_name(I, v), text ? "\"" : "");
  td_text_clear(&names);
  if (text) hint_choice(I, param, td_as_str(v)->data);
  return false;
}

static bool bind_ints(td_interpreter *I, const td_op *op, int row, td_value v, td_arg *arg) {
  const td_param *param = &op->params[row];
  if (param->choices && td_is(v, &td_str_type)) {
    arg->given = TD_GIVEN_CHOICE;
    return bind_choice(I, op, row, v, arg);
  }
  return td_to_axes(I, v, param->name, arg) || fail_value(I, op, row, "an int or a tuple of ints", v);
}

static bool bind_number(td_interpreter *I, td_value v, td_arg *arg) {
  bool ok = true;
  const td_tensor *t = td_tensor_of(v);
  arg->count = v.tag == TD_TAG_DOUBLE || (t && td_dtype_is_float(t->dtype));
  if (arg->count) arg->f = td_to_double(I, v, &ok);
  else arg->i = td_to_int(I, v, &ok);
  return ok;
}

static bool bind_order(td_interpreter *I, td_value v, td_arg *arg) {
  bool ok = true;
  arg->count = td_is(v, &td_str_type);
  if (!arg->count) arg->f = td_to_double(I, v, &ok);
  else snprintf(arg->text, sizeof arg->text, "%s", td_as_str(v)->data);
  return ok;
}

static bool bind_pairs(td_interpreter *I, const char *name, td_value v, td_arg *arg) {
  bool ok = true;
  arg->count = -1;
  if (v.tag == TD_TAG_INT) {
    int64_t n = td_to_int(I, v, &ok);
    arg->pairs[0][0] = n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int32_t)n;
    return ok;
  }
  td_list *list = td_list_new(I, 2);
  td_arg sides[2];
  ok = list && is_sequence(v) && td_to_list(I, v, list) && list->count == 2;
  for (int side = 0; side < 2 && ok; side++) ok = td_to_axes(I, list->items[side], name, &sides[side]);
  ok = ok && sides[0].count == sides[1].count;
  for (int side = 0; side < 2 && ok; side++)
    for (int i = 0; i < sides[side].count; i++) {
      int64_t axis = sides[side].ints[i];
      arg->pairs[i][side] = axis > INT32_MAX ? INT32_MAX : axis < INT32_MIN ? INT32_MIN : (int32_t)axis;
    }
  if (ok) arg->count = sides[0].count;
  td_unref(td_from(list));
  return ok;
}

static bool fail_long(td_interpreter *I, const td_op *op, int row, td_value text) {
  char name[64];
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: '%s' must be a str of at most %d characters, not of %u",
           td_op_spelled(op, name, sizeof name), op->params[row].name, (int)sizeof((td_arg){0}).text - 1,
           (unsigned)td_as_str(text)->length);
  return false;
}

static bool bind_value(td_interpreter *I, const td_op *op, int row, td_value v, td_arg *arg) {
  bool ok = true;
  arg->given = 1;
  switch (op->params[row].kind) {
  case TD_PARAM_INT:
  case TD_PARAM_AXIS: arg->i = td_to_int(I, v, &ok); return ok || fail_scalar(I, op, row, "an int", v);
  case TD_PARAM_FLOAT: arg->f = td_to_double(I, v, &ok); return ok || fail_scalar(I, op, row, "a number", v);
  case TD_PARAM_NUMBER: return bind_number(I, v, arg) || fail_scalar(I, op, row, "a number", v);
  case TD_PARAM_ORDER: return bind_order(I, v, arg) || fail_scalar(I, op, row, "a number or a str", v);
  case TD_PARAM_PAIRS:
    return bind_pairs(I, op->params[row].name, v, arg) ||
           fail_value(I, op, row, "an int, or two tuples of ints of one length", v);
  case TD_PARAM_BOOL: {
    bool one = v.tag == TD_TAG_BOOL || v.tag == TD_TAG_INT || td_is_none(v) || td_is_tensor_like(v);
    int truth = one ? td_truth(I, v) : -1;
    arg->i = truth == 1;
    return truth >= 0 || fail_value(I, op, row, "a bool", v);
  }
  case TD_PARAM_CHOICE: return bind_choice(I, op, row, v, arg);
  case TD_PARAM_DTYPE: {
    uint8_t dtype = 0;
    ok = td_to_dtype(I, v, &dtype);
    arg->i = dtype;
    return ok || blame(I, op, op->params[row].name, v) || fail_argument(I, op, row, "a dtype", v);
  }
  case TD_PARAM_TEXT:
    if (!td_is(v, &td_str_type)) return fail_argument(I, op, row, "a str", v);
    if (td_as_str(v)->length >= sizeof arg->text) return fail_long(I, op, row, v);
    memcpy(arg->text, td_as_str(v)->data, td_as_str(v)->length + 1);
    return true;
  case TD_PARAM_FLOATS:
    return td_to_floats(I, v, op->params[row].name, arg) || fail_value(I, op, row, "a number or a tuple of numbers", v);
  default: return bind_ints(I, op, row, v, arg);
  }
}

static bool bind_args(td_interpreter *I, binding *b) {
  for (int i = 0; i < b->arg_count; i++) {
    int row = b->tensor_params + i;
    td_value v = b->given[row];
    const td_param *param = &b->op->params[row];
    if (td_is_nil(v) && param->required) return fail_missing(I, b->op, row);
    b->args[i] = param->fallback;
    if (td_is_nil(v)) continue;
    if (td_is_none(v)) {
      if (param->fallback.given && param->kind != TD_PARAM_DTYPE) return fail_argument(I, b->op, row, "a value", v);
      continue;
    }
    if (!bind_value(I, b->op, row, v, &b->args[i])) return false;
  }
  return true;
}

static td_value box_outputs(td_interpreter *I, const td_op *op, td_tensor **out) {
  int count = td_op_outputs(op, out), shown = op->shown ? op->shown : count;
  for (int i = shown; i < count; i++) td_tensor_unref(out[i]);
  if (shown == 1 && op->outputs != TD_MANY) return td_tensor_box(I, out[0]);
  td_tuple *tuple = td_tuple_new(I, shown);
  for (int i = 0; i < shown; i++) {
    td_value boxed = td_tensor_box(I, out[i]);
    if (tuple) tuple->items[i] = boxed;
    else td_unref(boxed);
  }
  return td_from(tuple);
}

td_value td_op_values(td_interpreter *I, const td_op *op, int count, const td_value *values, const td_arg *args) {
  td_tensor *in[TD_INPUT_MAX], *out[TD_OUTPUT_MAX];
  for (int i = 0; i < count; i++) in[i] = td_is_nil(values[i]) ? NULL : td_unbox_tensor(values[i]);
  if (td_op_apply(I->context, op, in, count, args, out) != TD_OK) return td_raise_engine(I);
  return box_outputs(I, op, out);
}

// ---- values that stand for tensors to come ----

// The hook of v's class: what an op's call with v among its arguments means. NIL without exception: v has none.
static td_value op_hook(td_interpreter *I, td_value v) {
  if (td_is(v, &td_list_type) || td_is(v, &td_tuple_type)) {
    const td_value *items = td_is(v, &td_list_type) ? td_as_list(v)->items : td_as_tuple(v)->items;
    int64_t count = td_is(v, &td_list_type) ? td_as_list(v)->count : td_as_tuple(v)->count;
    td_value hook = TD_NIL;
    for (int64_t i = 0; i < count && td_is_nil(hook); i++)
      if (td_is(items[i], &td_instance_type)) hook = op_hook(I, items[i]);
    return hook;
  }
  if (!td_is(v, &td_instance_type)) return TD_NIL;
  td_str *name = td_str_intern(I, "__op__", strlen("__op__"));
  td_value hook = name ? td_attribute_find(I, v, name) : TD_NIL;
  td_unref(td_from(name));
  return hook;
}

// A call that met no tensors may be meant for an argument whose class has __op__(op, args, kwargs): symbols of a model
// that is being built. NIL with the exception that was in flight: no argument has it.
static td_value call_hook(td_interpreter *I, const td_op *op, const td_arguments *arguments) {
  td_value hook = TD_NIL, raised = I->raised;
  I->raised = TD_NIL;
  for (int i = 0; i < arguments->count + arguments->keyword_count && td_is_nil(hook) && td_is_nil(I->raised); i++)
    hook = op_hook(I, arguments->values[i]);
  if (td_is_nil(hook)) {
    if (td_is_nil(I->raised)) I->raised = raised;
    else td_unref(raised);
    return TD_NIL;
  }
  td_unref(raised);
  td_value parts[3] = {td_op_builtin(I, op, TD_NIL), td_from(td_tuple_new(I, arguments->count)),
                       td_from(td_dict_new(I))};
  bool ready = !td_is_nil(parts[0]) && !td_is_nil(parts[1]) && !td_is_nil(parts[2]);
  for (int i = 0; ready && i < arguments->count; i++) td_as_tuple(parts[1])->items[i] = td_ref(arguments->values[i]);
  for (int i = 0; ready && i < arguments->keyword_count; i++)
    ready = td_dict_set(I, td_as_dict(parts[2]), td_from(arguments->keywords[i]),
                        arguments->values[arguments->count + i]);
  td_value result = ready ? td_call_values(I, hook, 3, parts) : TD_NIL;
  for (int i = 0; i < 3; i++) td_unref(parts[i]);
  td_unref(hook);
  return result;
}

// Operands of an error are named by the arguments that they were, which stand elsewhere where an axis went first.
static void name_operands(td_interpreter *I, const binding *b) {
  td_error *error = &I->context->error;
  for (int i = 0; i < error->operand_count && !is_list(&b->op->params[0]); i++)
    if (error->operands[i].argument >= 0) error->operands[i].argument = b->position[error->operands[i].argument];
}

// The message of an error of random_uniform begins with the name that the language has for it.
static void name_op(td_interpreter *I, const td_op *op) {
  char name[64], *message = I->context->error.message;
  size_t length = strlen(op->name);
  if (strncmp(message, op->name, length) == 0) memcpy(message, td_op_spelled(op, name, sizeof name), length);
}

static td_value run_bound(td_interpreter *I, const binding *b) {
  td_tensor *out[TD_OUTPUT_MAX];
  bool tupled = b->op->tupled && b->args[b->arg_count - 1].i;
  const td_op *applied = tupled ? b->op->tupled : b->applied;
  if (td_op_apply(I->context, applied, (td_tensor *const *)b->in, b->in_count, b->args, out) == TD_OK)
    return box_outputs(I, tupled ? applied : b->op, out);
  name_operands(I, b);
  name_op(I, b->op);
  return td_raise_engine(I);
}

static bool is_lone(const td_op *op, td_value self, const td_arguments *arguments) {
  return op->lone && td_is_nil(self) && arguments->count == 1 && !arguments->keyword_count;
}

td_value td_op_call(td_interpreter *I, const td_op *op, td_value self, const td_arguments *arguments) {
  binding b;
  b.op = b.applied = is_lone(op, self, arguments) ? op->lone : op;
  b.tensor_params = td_op_tensor_params(b.op);
  b.arg_count = td_op_arg_count(b.op);
  b.in_count = 0;
  for (int i = 0; i < row_count(&b); i++) {
    b.given[i] = TD_NIL;
    b.position[i] = i;
  }
  td_value gathered = TD_NIL, letters = TD_NIL, result = TD_NIL;
  bool placed = is_interleaved(&b, arguments) ? place_interleaved(I, &b, arguments, &gathered, &letters)
                                              : place_arguments(I, &b, self, arguments, &gathered);
  if (placed && bind_args(I, &b) && bind_tensors(I, &b)) result = run_bound(I, &b);
  binding_clear(&b);
  td_unref(gathered);
  td_unref(letters);
  if (td_is_nil(result) && td_raised_is(I, TD_CLASS_TYPE_ERROR)) result = call_hook(I, op, arguments);
  return result;
}

// ---- the callable ----

// An error of cat(...) begins with "cat", not with "concat".
static void name_as_written(td_interpreter *I, const td_op *op, const td_node *call) {
  const td_node *called = call && call->kind == TD_NODE_CALL ? call->a : NULL;
  if (!called || (called->kind != TD_NODE_NAME && called->kind != TD_NODE_ATTRIBUTE)) return;
  char name[64];
  if (td_op_alias(op->alias, called->name->data))
    td_raise_renamed(I, td_op_spelled(op, name, sizeof name), called->name->data);
}

static td_value op_call(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  td_op_value *bound = (td_op_value *)callee.o;
  td_value result = td_op_call(I, bound->op, bound->self, arguments);
  if (td_is_nil(result)) name_as_written(I, bound->op, arguments->node);
  return result;
}

static bool op_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_print(text, "<op %s>", ((td_op_value *)v.o)->op->name);
  return true;
}

static td_value op_attribute(td_interpreter *I, td_value v, td_str *name) {
  const td_op *op = ((td_op_value *)v.o)->op;
  if (strcmp(name->data, "__name__") == 0) return td_from(td_str_from(I, op->name));
  if (strcmp(name->data, "__doc__") == 0) return td_from(td_str_from(I, op->doc));
  return TD_NIL;
}

static void op_release(td_object *object) { td_unref(((td_op_value *)object)->self); }

const td_type td_op_type = {
    .name = "op",
    .size = sizeof(td_op_value),
    .release = op_release,
    .repr = op_repr,
    .attribute = op_attribute,
    .call = op_call,
    .doc = "An op of the engine: runs at once, and is recorded while a tape is open.",
};

td_value td_op_builtin(td_interpreter *I, const td_op *op, td_value self) {
  td_op_value *value = td_object_new(I, &td_op_type, sizeof *value);
  if (!value) return TD_NIL;
  value->op = op;
  value->self = td_ref(self);
  return td_from(value);
}
