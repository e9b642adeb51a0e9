// The builtin types as classes: what int(x), str(x), list(x), zip(x, y) make. Each row is a maker whose arguments are
// bound to its signature; functions of a class that need no instance (dict.fromkeys) are its attributes.
#include <math.h>

#include "repl/language/core.h"
#include "repl/language/tensors.h"

// Calls v's special method if it is an instance whose class has it. NIL without exception: it has none.
static td_value ask(td_interpreter *I, td_value v, td_str *name) {
  td_value method = td_is_instance(v) ? td_special(I, v, name) : TD_NIL;
  return td_is_nil(method) ? TD_NIL : td_special_call(I, method, v, 0, NULL);
}

// ---- numbers ----
static td_value int_of_text(td_interpreter *I, td_value *arguments) {
  int64_t base = 10;
  if (!td_is_nil(arguments[1]) && !td_index_value(I, arguments[1], &base)) return TD_NIL;
  if (base != 0 && (base < 2 || base > 36))
    return td_raise(I, TD_CLASS_VALUE_ERROR, "int() base must be >= 2 and <= 36, or 0");
  return td_int_parse(I, td_as_str(arguments[0]), (int)base);
}

static td_value int_of_tensor(td_interpreter *I, td_value v) {
  bool ok;
  int64_t whole = td_to_int(I, v, &ok);
  if (ok) return td_int(whole);
  td_clear_raised(I);
  double number = td_to_double(I, v, &ok);
  return ok ? td_double_to_int(I, number) : TD_NIL;
}

static td_value make_int(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value x = arguments[0];
  if (td_is(x, &td_str_type)) return int_of_text(I, arguments);
  if (!td_is_nil(arguments[1]))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "int() can't convert non-string with explicit base");
  if (td_is_integer(x)) return td_int(x.i);
  if (x.tag == TD_TAG_DOUBLE) return td_double_to_int(I, x.f);
  if (td_is_tensor_like(x)) return int_of_tensor(I, x);
  td_value result = ask(I, x, I->names->int_);
  if (td_is_nil(result) && td_is_nil(I->raised)) result = ask(I, x, I->names->index);
  if (td_is_integer(result)) return td_int(result.i);
  if (td_is_nil(result) && !td_is_nil(I->raised)) return TD_NIL;
  if (!td_is_nil(result))
    td_raise(I, TD_CLASS_TYPE_ERROR, "__int__ returned non-int (type %s)", td_type_name(I, result));
  else
    td_raise(I, TD_CLASS_TYPE_ERROR, "int() argument must be a string, a bytes-like object or a real number, not '%s'",
             td_type_name(I, x));
  td_unref(result);
  return TD_NIL;
}

static td_value make_float(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value x = arguments[0];
  if (td_is(x, &td_str_type)) return td_float_parse(I, td_as_str(x));
  if (td_is_number(x)) return td_double(td_number_double(x));
  bool ok;
  double number = td_to_double(I, x, &ok);
  if (ok) return td_double(number);
  if (td_is_tensor_like(x) || (td_is_instance(x) && !td_is_nil(td_special(I, x, I->names->float_)))) return TD_NIL;
  td_value index = ask(I, x, I->names->index);
  if (td_is_integer(index)) return td_clear_raised(I), td_double((double)index.i);
  td_unref(index);
  td_clear_raised(I);
  return td_raise(I, TD_CLASS_TYPE_ERROR, "float() argument must be a string or a real number, not '%s'",
                  td_type_name(I, x));
}

static td_value make_bool(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int truth = td_truth(I, arguments[0]);
  return truth < 0 ? TD_NIL : td_bool(truth);
}

// ---- texts and collections ----
static td_value make_str(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is_nil(arguments[1]) || !td_is_nil(arguments[2]))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "decoding str is not supported: there are no bytes in this language");
  if (td_is(arguments[0], &td_str_type)) return td_ref(arguments[0]);
  if (arguments[0].tag == TD_TAG_INT) {
    char digits[24];
    return td_from(td_str_new(I, digits, (size_t)td_int_print(digits, arguments[0].i)));
  }
  td_text text = {0};
  if (td_print(I, arguments[0], &text)) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}

static td_value make_list(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return td_is_nil(arguments[0]) ? td_from(td_list_new(I, 0)) : td_list_from(I, arguments[0]);
}

static td_value make_tuple(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return td_is_nil(arguments[0]) ? td_from(td_tuple_new(I, 0)) : td_tuple_from(I, arguments[0]);
}

static td_value make_set(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return td_is_nil(arguments[0]) ? td_from(td_set_new(I)) : td_set_from(I, arguments[0]);
}

static td_value make_dict(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_dict *dict = td_dict_new(I);
  if (dict && (td_is_nil(arguments[0]) || td_dict_update(I, dict, arguments[0])) &&
      td_dict_merge(I, dict, td_as_dict(arguments[1])))
    return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static td_value make_range(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t first, second = 0, step = 1;
  td_value range;
  if (!td_index_value(I, arguments[0], &first)) return TD_NIL;
  if (td_is_nil(arguments[1])) return td_range_make(I, 0, first, 1, &range) ? range : TD_NIL;
  if (!td_index_value(I, arguments[1], &second) ||
      (!td_is_nil(arguments[2]) && !td_index_value(I, arguments[2], &step)))
    return TD_NIL;
  return td_range_make(I, first, second, step, &range) ? range : TD_NIL;
}

static td_value make_slice(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (td_is_nil(arguments[1])) return td_slice_new(I, TD_NONE, arguments[0], TD_NONE);
  return td_slice_new(I, arguments[0], arguments[1], arguments[2]);
}

// ---- iterators ----
static td_value make_enumerate(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t start;
  return td_index_value(I, arguments[1], &start) ? td_enumerate_new(I, arguments[0], start) : TD_NIL;
}

static td_value make_zip(td_interpreter *I, td_value self, td_value *arguments) { // strict, iterables
  (void)self;
  int strict = td_truth(I, arguments[0]);
  return strict < 0 ? TD_NIL : td_zip_new(I, td_as_tuple(arguments[1]), strict);
}

static td_value make_map(td_interpreter *I, td_value self, td_value *arguments) { // function, iterables
  (void)self;
  if (td_as_tuple(arguments[1])->count == 0)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "map() must have at least two arguments.");
  return td_map_new(I, arguments[0], td_as_tuple(arguments[1]));
}

static td_value make_filter(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, td_filter_new(I, arguments[0], arguments[1]);
}
static td_value make_reversed(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, td_reversed_new(I, arguments[0]);
}

static td_value make_type(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_class *class = td_class_of(I, arguments[0]);
  return class ? td_ref((td_value){.tag = TD_TAG_OBJECT, .o = &class->container.object}) : TD_NIL;
}

static const struct {
  const td_type *type;
  const td_method *statics;
  td_method row;
} makers[] = {
    {&td_int_type,
     NULL,
     {"int", "(x=0, /, base=...)", make_int,
      "A whole number from a number (cut toward zero) or a text in a base.\n>>> int(\"ff\", 16)"}},
    {&td_float_type,
     td_float_statics,
     {"float", "(x=0.0, /)", make_float, "A float from a number or a text.\n>>> float(\"1e-3\")"}},
    {&td_bool_type,
     NULL,
     {"bool", "(x=False, /)", make_bool, "True if x is true: not zero, not empty, not None.\n>>> bool([])"}},
    {&td_str_type,
     td_str_statics,
     {"str", "(object='', encoding=..., errors=...)", make_str, "The printed form of a value.\n>>> str(1.5)"}},
    {&td_list_type,
     NULL,
     {"list", "(iterable=..., /)", make_list, "A list of the elements of an iterable.\n>>> list(\"ab\")"}},
    {&td_tuple_type,
     NULL,
     {"tuple", "(iterable=..., /)", make_tuple, "A tuple of the elements of an iterable.\n>>> tuple([1, 2])"}},
    {&td_set_type,
     NULL,
     {"set", "(iterable=..., /)", make_set, "A set of the different elements of an iterable.\n>>> set([1, 1])"}},
    {&td_dict_type,
     td_dict_statics,
     {"dict", "(mapping=..., /, **named)", make_dict,
      "A dict of pairs from a mapping, an iterable of pairs, and names.\n>>> dict(a=1)"}},
    {&td_range_type,
     NULL,
     {"range", "(start, stop=..., step=..., /)", make_range,
      "range(stop), or range(start, stop, step): ints up to, not including, stop.\n>>> list(range(3))"}},
    {&td_slice_type,
     NULL,
     {"slice", "(start, stop=..., step=None, /)", make_slice,
      "slice(stop), or slice(start, stop, step): what x[start:stop:step] hands to x.\n>>> slice(1, 5)"}},
    {&td_enumerate_type,
     NULL,
     {"enumerate", "(iterable, start=0)", make_enumerate, "Pairs (number, element).\n>>> list(enumerate(\"ab\"))"}},
    {&td_zip_type,
     NULL,
     {"zip", "(*iterables, strict=False)", make_zip,
      "Tuples of one element of each iterable, until the shortest ends.\n>>> list(zip([1, 2], \"ab\"))"}},
    {&td_map_type,
     NULL,
     {"map", "(function, /, *iterables)", make_map,
      "function of the elements, one after the other.\n>>> list(map(abs, [-1, 2]))"}},
    {&td_filter_type,
     NULL,
     {"filter", "(function, iterable, /)", make_filter,
      "The elements for which function is true; None: those that are true.\n>>> list(filter(None, [0, 1]))"}},
    {&td_reversed_type,
     NULL,
     {"reversed", "(sequence, /)", make_reversed,
      "The elements from the last to the first.\n>>> list(reversed([1, 2]))"}},
    {&td_class_type, NULL, {"type", "(object, /)", make_type, "The class of a value.\n>>> type(1)"}},
};

static bool add_statics(td_interpreter *I, td_class *class, const td_method *rows) {
  if (!rows) return true;
  if (!class->attributes && !(class->attributes = td_dict_new(I))) return false;
  for (; rows->name; rows++) {
    td_value function = td_builtin_new(I, rows, TD_NIL, NULL);
    td_str *name = td_is_nil(function) ? NULL : td_str_intern(I, rows->name, strlen(rows->name));
    bool done = name && td_dict_set_str(I, class->attributes, name, function);
    td_unref(function);
    td_unref(td_from(name));
    if (!done) return false;
  }
  return true;
}

static td_value of_class(td_class *class) { return (td_value){.tag = TD_TAG_OBJECT, .o = &class->container.object}; }

bool td_builtin_types_register(td_interpreter *I) {
  for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
    td_class *class = td_class_of_type(I, makers[i].type);
    td_value maker = class ? td_builtin_new(I, &makers[i].row, TD_NIL, NULL) : TD_NIL;
    if (td_is_nil(maker)) return false;
    class->maker = (td_builtin *)maker.o;
    if (!add_statics(I, class, makers[i].statics) || !td_builtin_define(I, makers[i].row.name, td_ref(of_class(class))))
      return false;
  }
  td_class *truth = td_class_of_type(I, &td_bool_type), *whole = td_class_of_type(I, &td_int_type);
  if (!truth || !whole) return false;
  td_ref(of_class(whole)); // bool is a subclass of int
  if (truth->base) td_unref(of_class(truth->base));
  truth->base = whole;
  return true;
}

bool td_builtins_register(td_interpreter *I) {
  return td_builtin_types_register(I) && td_builtin_functions_register(I) && td_builtin_numbers_register(I) &&
         td_math_register(I) && td_time_register(I) && td_json_register(I) && td_logging_register(I);
}
