// Builtin functions that compute: abs, round, pow, divmod, sum, min, max, any, all, and texts of numbers. Those that
// are also the names of ops hand a tensor on to the op, with all of their arguments.
#include <math.h>
#include <stdlib.h>

#include "repl/language/core.h"
#include "repl/language/tensors.h"

enum { OP_ARGUMENTS_MOST = 8 };

// The op of that name with positional arguments and the pairs of named (NULL: none).
static td_value call_op(td_interpreter *I, const char *name, const td_value *values, int64_t count, td_dict *named) {
  const td_op *op = td_op_find(name);
  td_value given[OP_ARGUMENTS_MOST];
  td_str *keywords[OP_ARGUMENTS_MOST];
  td_arguments arguments = {.values = given, .keywords = keywords, .node = I->frame->call};
  if (!op) return td_raise(I, TD_CLASS_TYPE_ERROR, "%s() of a tensor isn't known", name);
  if (count > OP_ARGUMENTS_MOST) return td_raise(I, TD_CLASS_TYPE_ERROR, "%s: too many arguments", name);
  while (arguments.count < count) {
    given[arguments.count] = values[arguments.count];
    arguments.count++;
  }
  td_value key, value;
  for (int64_t position = 0; named && td_dict_next(named, &position, &key, &value);) {
    if (arguments.count + arguments.keyword_count == OP_ARGUMENTS_MOST)
      return td_raise(I, TD_CLASS_TYPE_ERROR, "%s: too many arguments", name);
    keywords[arguments.keyword_count] = td_as_str(key);
    given[arguments.count + arguments.keyword_count++] = value;
  }
  return td_op_call(I, op, TD_NIL, &arguments);
}

// Python's functions have no options beyond those of their signature; only ops do.
static bool no_options(td_interpreter *I, const char *name, td_value options) {
  if (td_is_nil(options) || td_as_dict(options)->count == 0) return true;
  td_value key;
  int64_t position = 0;
  td_dict_next(td_as_dict(options), &position, &key, NULL);
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s() got an unexpected keyword argument '%s'", name, td_as_str(key)->data);
  td_raise_hint(I, "of a tensor it takes axis and keepdims");
  return false;
}

// Special method of an instance, borrowed; NIL without exception: it has none.
static td_value special(td_interpreter *I, td_value v, const char *text) {
  if (!td_is_instance(v)) return TD_NIL;
  td_str *name = td_str_intern(I, text, strlen(text));
  td_value method = name ? td_special(I, v, name) : TD_NIL;
  td_unref(td_from(name));
  return method;
}

// ---- one number ----
static td_value builtin_abs(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value x = arguments[0];
  if (td_is_integer(x)) return x.i < 0 ? td_unary(I, TD_UNARY_NEGATIVE, x) : td_int(x.i);
  if (x.tag == TD_TAG_DOUBLE) return td_double(fabs(x.f));
  if (td_is_tensor_like(x)) return call_op(I, "abs", &x, 1, NULL);
  td_value method = special(I, x, "__abs__");
  if (!td_is_nil(method)) return td_special_call(I, method, x, 0, NULL);
  return td_is_nil(I->raised) ? td_raise(I, TD_CLASS_TYPE_ERROR, "bad operand type for abs(): '%s'", td_type_name(I, x))
                              : TD_NIL;
}

// The multiple of 10^-digits nearest to i, half to even; digits < 0.
static td_value round_int(td_interpreter *I, int64_t i, int64_t digits) {
  if (digits < -19) return td_int(0);
  unsigned __int128 unit = 1, magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
  for (; digits < 0; digits++) unit *= 10;
  unsigned __int128 quotient = magnitude / unit, twice = magnitude % unit * 2;
  if (twice > unit || (twice == unit && quotient & 1)) quotient++;
  unsigned __int128 rounded = quotient * unit;
  if (rounded > INT64_MAX)
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: the rounded value doesn't fit in 64 bits");
  return td_int(i < 0 ? -(int64_t)rounded : (int64_t)rounded);
}

static td_value builtin_round(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value x = arguments[0];
  if (td_is_tensor_like(x))
    return call_op(I, "round", arguments, td_is_none(arguments[1]) ? 1 : 2, td_as_dict(arguments[2]));
  if (!no_options(I, "round", arguments[2])) return TD_NIL;
  if (td_is_instance(x)) {
    td_value method = special(I, x, "__round__");
    if (!td_is_nil(method)) return td_special_call(I, method, x, td_is_none(arguments[1]) ? 0 : 1, &arguments[1]);
    if (!td_is_nil(I->raised)) return TD_NIL;
  }
  int64_t digits = 0;
  if (!td_is_number(x))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "type %s doesn't define __round__ method", td_type_name(I, x));
  if (!td_is_none(arguments[1]) && !td_index_value(I, arguments[1], &digits)) return TD_NIL;
  if (td_is_integer(x)) return digits < 0 ? round_int(I, x.i, digits) : td_int(x.i);
  return td_is_none(arguments[1]) ? td_double_to_int(I, rint(x.f)) : td_double_round(I, x.f, digits);
}

static int64_t multiply_modulo(int64_t a, int64_t b, int64_t m) { return (int64_t)((__int128)a * b % m); }

static bool inverse_modulo(int64_t a, int64_t m, int64_t *inverse) { // extended Euclid
  __int128 r = m, next_r = a, t = 0, next_t = 1;
  while (next_r != 0) {
    __int128 quotient = r / next_r, swap = t - quotient * next_t;
    t = next_t, next_t = swap;
    swap = r - quotient * next_r;
    r = next_r, next_r = swap;
  }
  *inverse = (int64_t)(t < 0 ? t + m : t);
  return r == 1;
}

static td_value power_modulo(td_interpreter *I, int64_t base, int64_t exponent, int64_t modulus) {
  if (modulus == 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "pow() 3rd argument cannot be 0");
  if (modulus == INT64_MIN)
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR,
                    "pow() 3rd argument is too small: its absolute value doesn't fit in 64 bits");
  int64_t m = llabs(modulus), result = 1 % m;
  base %= m;
  if (base < 0) base += m;
  if (exponent < 0 && !inverse_modulo(base, m, &base))
    return td_raise(I, TD_CLASS_VALUE_ERROR, "base is not invertible for the given modulus");
  for (uint64_t left = exponent < 0 ? 0 - (uint64_t)exponent : (uint64_t)exponent; left; left >>= 1) {
    if (left & 1) result = multiply_modulo(result, base, m);
    base = multiply_modulo(base, base, m);
  }
  return td_int(modulus < 0 && result ? result + modulus : result);
}

static td_value builtin_pow(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (td_is_none(arguments[2])) return td_binary(I, TD_BINARY_POWER, arguments[0], arguments[1]);
  for (int i = 0; i < 3; i++)
    if (!td_is_integer(arguments[i]))
      return td_raise(I, TD_CLASS_TYPE_ERROR, "pow() 3rd argument not allowed unless all arguments are integers");
  return power_modulo(I, arguments[0].i, arguments[1].i, arguments[2].i);
}

static td_value builtin_divmod(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value a = arguments[0], b = arguments[1];
  if (td_is_number(a) && td_is_number(b)) return td_number_divmod(I, a, b);
  if (!td_passes_on(a) && !td_passes_on(b))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "unsupported operand type(s) for divmod(): '%s' and '%s'",
                    td_type_name(I, a), td_type_name(I, b));
  td_value method = special(I, a, "__divmod__");
  if (!td_is_nil(method)) return td_special_call(I, method, a, 1, &b);
  td_value quotient = td_binary(I, TD_BINARY_FLOOR_DIVIDE, a, b),
           remainder = td_is_nil(quotient) ? TD_NIL : td_binary(I, TD_BINARY_REMAINDER, a, b);
  if (!td_is_nil(remainder)) return td_tuple_pack(I, 2, quotient, remainder);
  td_unref(quotient);
  return TD_NIL;
}

// ---- many values ----
// Adds the ints or floats at the front of the iterator without boxing; *item is the first element that was not added.
static bool add_numbers(td_interpreter *I, td_value iterator, td_value *total, td_value *item) {
  while (!td_is_nil(*item = td_next(I, iterator))) {
    if (total->tag == TD_TAG_INT && td_is_integer(*item)) {
      if (__builtin_add_overflow(total->i, item->i, &total->i)) {
        td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: the sum doesn't fit in 64 bits");
        return false;
      }
    } else if (total->tag == TD_TAG_DOUBLE && td_is_number(*item)) {
      total->f += td_number_double(*item);
    } else {
      return true;
    }
    if (td_interrupted(I)) return false;
  }
  return td_is_nil(I->raised);
}

static td_value sum_from(td_interpreter *I, td_value iterable, td_value start) {
  td_value total = td_ref(start), iterator = td_iterate(I, iterable), item = TD_NIL;
  bool done = !td_is_nil(iterator);
  if (done && td_is(total, &td_str_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "sum() can't sum strings [use ''.join(seq) instead]");
    done = false;
  }
  if (total.tag == TD_TAG_BOOL) total.tag = TD_TAG_INT;
  while (done && (done = add_numbers(I, iterator, &total, &item)) && !td_is_nil(item)) {
    td_value next = td_binary(I, TD_BINARY_ADD, total, item);
    td_unref(total);
    td_unref(item);
    total = next;
    done = !td_is_nil(total) && !td_interrupted(I);
  }
  td_unref(iterator);
  if (done) return total;
  td_unref(total);
  return TD_NIL;
}

static td_value builtin_sum(td_interpreter *I, td_value self, td_value *arguments) { // start, values, options
  (void)self;
  td_value start = arguments[0];
  td_tuple *values = td_as_tuple(arguments[1]);
  td_dict *options = td_as_dict(arguments[2]);
  if (values->count && td_is_tensor_like(values->items[0]) && td_is_nil(start))
    return call_op(I, "sum", values->items, values->count, options);
  if (!values->count)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "sum() takes at least 1 positional argument (0 given)");
  int64_t count = values->count + !td_is_nil(start);
  if (count > 2)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "sum() takes at most 2 arguments (%lld given)", (long long)count);
  if (!no_options(I, "sum", arguments[2])) return TD_NIL;
  if (values->count == 2) start = values->items[1];
  return sum_from(I, values->items[0], td_is_nil(start) ? td_int(0) : start);
}

typedef struct extreme {
  td_value best, best_key, key;
  int comparison;
} extreme;

static bool offer(td_interpreter *I, extreme *e, td_value item) { // takes over item
  td_value key = td_is_none(e->key) ? td_ref(item) : td_call_values(I, e->key, 1, &item);
  int better = td_is_nil(key) ? -1 : td_is_nil(e->best);
  if (better == 0) {
    td_value result = td_compare(I, e->comparison, key, e->best_key);
    better = td_is_nil(result) ? -1 : td_truth(I, result);
    td_unref(result);
  }
  td_value drop_item = item, drop_key = key;
  if (better > 0) {
    drop_item = e->best, drop_key = e->best_key;
    e->best = item, e->best_key = key;
  }
  td_unref(drop_item);
  td_unref(drop_key);
  return better >= 0 && !td_interrupted(I);
}

// arguments: key, default, values, options
static td_value find_extreme(td_interpreter *I, td_value *arguments, const char *name, int comparison) {
  td_tuple *values = td_as_tuple(arguments[2]);
  extreme e = {.best = TD_NIL, .best_key = TD_NIL, .key = arguments[0], .comparison = comparison};
  if (values->count == 0) return td_raise(I, TD_CLASS_TYPE_ERROR, "%s expected at least 1 argument, got 0", name);
  bool options = td_as_dict(arguments[3])->count > 0, tensor = td_is_tensor_like(values->items[0]);
  if (tensor && (values->count == 1 || options || td_tensor_of(values->items[0])->rank > 0))
    return call_op(I, name, values->items, values->count, td_as_dict(arguments[3]));
  if (!no_options(I, name, arguments[3])) return TD_NIL;
  bool done = true;
  if (values->count > 1) {
    if (!td_is_nil(arguments[1]))
      return td_raise(I, TD_CLASS_TYPE_ERROR, "Cannot specify a default for %s() with multiple positional arguments",
                      name);
    for (int64_t i = 0; done && i < values->count; i++) done = offer(I, &e, td_ref(values->items[i]));
  } else {
    td_value iterator = td_iterate(I, values->items[0]), item;
    done = !td_is_nil(iterator);
    while (done && !td_is_nil(item = td_next(I, iterator))) done = offer(I, &e, item);
    td_unref(iterator);
    done = done && td_is_nil(I->raised);
  }
  td_unref(e.best_key);
  if (done && !td_is_nil(e.best)) return e.best;
  td_unref(e.best);
  if (done && !td_is_nil(arguments[1])) return td_ref(arguments[1]);
  return done ? td_raise(I, TD_CLASS_VALUE_ERROR, "%s() arg is an empty sequence", name) : TD_NIL;
}

static td_value builtin_min(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, find_extreme(I, arguments, "min", TD_COMPARE_LESS);
}
static td_value builtin_max(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, find_extreme(I, arguments, "max", TD_COMPARE_GREATER);
}

// arguments: values, options. The answer is known at the first element whose truth is wanted.
static td_value search(td_interpreter *I, td_value *arguments, const char *name, int wanted) {
  td_tuple *values = td_as_tuple(arguments[0]);
  if (values->count && td_is_tensor_like(values->items[0]))
    return call_op(I, name, values->items, values->count, td_as_dict(arguments[1]));
  if (values->count != 1)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "%s() takes exactly one argument (%lld given)", name,
                    (long long)values->count);
  if (!no_options(I, name, arguments[1])) return TD_NIL;
  td_value iterator = td_iterate(I, values->items[0]), item;
  if (td_is_nil(iterator)) return TD_NIL;
  int truth = !wanted;
  while (truth == !wanted && !td_is_nil(item = td_next(I, iterator))) {
    truth = td_truth(I, item);
    td_unref(item);
    if (td_interrupted(I)) truth = -1;
  }
  td_unref(iterator);
  return truth < 0 || !td_is_nil(I->raised) ? TD_NIL : td_bool(truth);
}

static td_value builtin_any(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, search(I, arguments, "any", 1);
}
static td_value builtin_all(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, search(I, arguments, "all", 0);
}

// ---- texts of numbers ----
static td_value in_base(td_interpreter *I, td_value v, char type) {
  int64_t number;
  if (!td_index_value(I, v, &number)) return TD_NIL;
  td_format_spec spec = {.type = type, .alternate = true, .width = -1, .precision = -1};
  td_text text = {0};
  if (td_format_int(I, number, &spec, &text)) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}

static td_value builtin_hex(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, in_base(I, arguments[0], 'x');
}
static td_value builtin_oct(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, in_base(I, arguments[0], 'o');
}
static td_value builtin_bin(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, in_base(I, arguments[0], 'b');
}

static td_value builtin_chr(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t code;
  char bytes[4];
  if (!td_index_value(I, arguments[0], &code)) return TD_NIL;
  if (code < 0 || code > 0x10FFFF) return td_raise(I, TD_CLASS_VALUE_ERROR, "chr() arg not in range(0x110000)");
  if (code >= 0xD800 && code < 0xE000)
    return td_raise(I, TD_CLASS_VALUE_ERROR, "chr(): 0x%llx is half of a surrogate pair, no character",
                    (long long)code);
  return td_from(td_str_new(I, bytes, (size_t)td_utf8_encode(bytes, (uint32_t)code)));
}

static td_value builtin_ord(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value v = arguments[0];
  if (!td_is(v, &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "ord() expected string of length 1, but %s found", td_type_name(I, v));
  if (td_as_str(v)->characters != 1)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "ord() expected a character, but string of length %u found",
                    td_as_str(v)->characters);
  return td_int(td_utf8_decode(td_as_str(v)->data, NULL));
}

static const td_method rows[] = {
    {"abs", "(x, /)", builtin_abs, "The absolute value.\n>>> abs(-2)"},
    {"round", "(number, ndigits=None, **options)", builtin_round,
     "The nearest int, or number with ndigits decimals; halves go to the even neighbour. Of a tensor, the op "
     "round.\n>>> round(2.675, 2)"},
    {"pow", "(base, exp, mod=None)", builtin_pow, "base ** exp, modulo mod if it is given.\n>>> pow(2, 10, 1000)"},
    {"divmod", "(a, b, /)", builtin_divmod, "The tuple (a // b, a % b).\n>>> divmod(7, 2)"},
    {"sum", "(*args, start=..., **options)", builtin_sum,
     "start (0) plus all elements; of a tensor, the op sum with its axis and keepdims.\n>>> sum([1, 2, 3])"},
    {"min", "(*args, key=None, default=..., **options)", builtin_min,
     "The least of the arguments or of an iterable's elements; of a tensor, the op min with its axis.\n>>> min(3, 1, "
     "2)"},
    {"max", "(*args, key=None, default=..., **options)", builtin_max,
     "The greatest of the arguments or of an iterable's elements; of a tensor, the op max with its axis.\n>>> max([3, "
     "1, 2])"},
    {"any", "(*args, **options)", builtin_any,
     "Whether an element is true; of a tensor, the op any with its axis.\n>>> any([0, 1])"},
    {"all", "(*args, **options)", builtin_all,
     "Whether no element is false; of a tensor, the op all with its axis.\n>>> all([0, 1])"},
    {"hex", "(number, /)", builtin_hex, "An int in hexadecimal.\n>>> hex(255)"},
    {"oct", "(number, /)", builtin_oct, "An int in octal.\n>>> oct(8)"},
    {"bin", "(number, /)", builtin_bin, "An int in binary.\n>>> bin(5)"},
    {"chr", "(code, /)", builtin_chr, "The character with a Unicode code.\n>>> chr(8364)"},
    {"ord", "(character, /)", builtin_ord, "The Unicode code of a character.\n>>> ord(\"A\")"},
    {NULL, NULL, NULL, NULL}};

bool td_builtin_numbers_register(td_interpreter *I) { return td_builtin_define_rows(I, rows); }
