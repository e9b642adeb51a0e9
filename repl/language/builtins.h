// What the files of builtin types and functions share: hashes of numbers, texts of numbers and strings, indices,
// Unicode properties, sorting, lazy iterators. Private to value_*.c, builtin_*.c and module_*.c.
#ifndef TD_LANGUAGE_BUILTINS_H
#define TD_LANGUAGE_BUILTINS_H
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/interpreter.h"

// ---- numbers (value_number.c) ----
uint64_t td_number_hash(double f);                     // Python's: equal to the hash of an equal int
static inline uint64_t td_int_hash(int64_t i) {        // Python's: i modulo 2^61 - 1 with i's sign, -1 becomes -2
  const int64_t modulus = (1LL << 61) - 1;
  if (i > -modulus && i < modulus) return (uint64_t)(i == -1 ? -2 : i);
  i %= modulus;
  return (uint64_t)(i == -1 ? -2 : i);
}
static inline bool td_is_integer(td_value v) { return v.tag == TD_TAG_INT || v.tag == TD_TAG_BOOL; }
static inline bool td_is_number(td_value v) { return td_is_integer(v) || v.tag == TD_TAG_DOUBLE; }
// V is a number
static inline double td_number_double(td_value v) { return v.tag == TD_TAG_DOUBLE ? v.f : (double)v.i; }
// Both numbers: -1, 0, 1; 2: unordered (a NaN). Exact for int against float
int td_int_print(char digits[24], int64_t value); // returns length; not NUL-terminated
int td_number_compare(td_value a, td_value b);
td_value td_number_divmod(td_interpreter *, td_value a, td_value b); // tuple (floor quotient, remainder)
td_value td_double_to_int(td_interpreter *, double f); // truncates; ValueError, OverflowError
td_value td_double_round(td_interpreter *, double f, int64_t digits); // half to even on the decimal digits
td_value td_int_parse(td_interpreter *, td_str *text, int base);      // int("..."), base 0 or 2..36
td_value td_float_parse(td_interpreter *, td_str *text);              // float("...")
// Int, bool or 0-d tensor as an integer argument; TypeError
bool td_index_value(td_interpreter *, td_value v, int64_t *index);
extern const td_method td_float_statics[];                            // functions of the class: float.fromhex

// ---- UTF-8 and Unicode (unicode.c) ----
enum td_unicode { // properties, as str's is... methods see them
  TD_UNICODE_ALPHA = 1, TD_UNICODE_DECIMAL = 2, TD_UNICODE_DIGIT = 4, TD_UNICODE_NUMERIC = 8, TD_UNICODE_UPPER = 16,
  TD_UNICODE_LOWER = 32, TD_UNICODE_SPACE = 64, TD_UNICODE_PRINTABLE = 128, TD_UNICODE_ID_START = 256,
  TD_UNICODE_ID_CONTINUE = 512, TD_UNICODE_CASE_IGNORABLE = 1024, TD_UNICODE_TITLE = 2048,
};
uint32_t td_unicode_properties(uint32_t code);         // a set of enum td_unicode
enum td_case { TD_CASE_UPPER, TD_CASE_LOWER, TD_CASE_TITLE, TD_CASE_FOLD };
void td_unicode_add_case(td_text *text, uint32_t code, enum td_case which); // up to three characters
int td_utf8_encode(char bytes[4], uint32_t code);      // returns their count
void td_text_add_code(td_text *text, uint32_t code);
static inline int td_utf8_size(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}
uint32_t td_utf8_decode(const char *bytes, int *size); // of a checked text; size may be NULL
int64_t td_utf8_count(const char *bytes, size_t length); // code points

// ---- str (value_str.c) ----
static inline bool td_str_is_ascii(const td_str *s) { return s->length == s->characters; }
// Byte offset of a code point, 0 <= character <= characters
size_t td_str_offset(const td_str *s, int64_t character);
// Bytes [begin, end) on character boundaries
td_str *td_str_part(td_interpreter *, td_str *s, size_t begin, size_t end);
td_str *td_str_blank(td_interpreter *, size_t length); // the caller writes data and characters before anybody sees it
td_str *td_str_character(td_interpreter *, const char *bytes);        // the one character at bytes
void td_str_repr(const char *bytes, size_t length, bool ascii, td_text *text); // Python's quotes and escapes
bool td_ascii(td_interpreter *, td_value v, td_text *text);           // repr() with non-ASCII characters escaped
td_value td_str_percent(td_interpreter *, td_str *format, td_value arguments);       // format % arguments
// Format.format(...); positional NULL: format_map(named)
td_value td_str_format(td_interpreter *, td_str *format, td_tuple *positional, td_value named);
extern const td_method td_str_methods[];               // str_methods.c
extern const td_method td_str_statics[];               // str.maketrans

// ---- format specs (format.c) ----
typedef struct td_format_spec {
  char fill[5];            // one character; "" = not given
  char align, sign, grouping, type; // 0: not given
  bool alternate, zero, no_minus_zero;
  int64_t width, precision; // -1: not given
  const char *type_name;    // of the value, for messages
} td_format_spec;
bool td_format_parse(td_interpreter *, const char *text, const char *type_name, td_format_spec *spec);
bool td_format_int(td_interpreter *, int64_t value, const td_format_spec *spec, td_text *text);
bool td_format_double(td_interpreter *, double value, const td_format_spec *spec, td_text *text);
bool td_format_str(td_interpreter *, const char *bytes, size_t length, const td_format_spec *spec, td_text *text);

// ---- sequences ---- Index for a sequence of length; negative ones count from the end. what: "list", for the
// messages of TypeError and IndexError
bool td_index_resolve(td_interpreter *, td_value key, int64_t length, const char *what, int64_t *index);
// (start, end) arguments of find, index
bool td_slice_bounds(td_interpreter *, td_value start, td_value stop, int64_t length, int64_t *first, int64_t *last);
// Another type's value that may know the operation (tensor, instance)
bool td_passes_on(td_value other);
// TypeError "can't multiply sequence by non-int of type ..."
td_value td_repeat_refused(td_interpreter *, td_value count);
bool td_list_room(td_interpreter *, td_list *list, int64_t count);
td_value td_list_from(td_interpreter *, td_value iterable);           // a new list
td_value td_tuple_from(td_interpreter *, td_value iterable);          // a tuple as it is, else a new one
td_value td_sequence_compare(td_interpreter *, int comparison, td_value a, td_value b); // two lists or two tuples
// A tuple (a, b), taken over; the one in *row again when nobody else holds it
td_value td_tuple_renew(td_interpreter *, td_value *row, td_value a, td_value b);
bool td_sequence_repr(td_interpreter *, td_value v, const char *open, const char *close, td_text *text);
// Stable; unchanged on an exception
bool td_sort(td_interpreter *, td_value *items, int64_t count, td_value key, bool reverse);
td_value td_list_sort(td_interpreter *, td_list *list, td_value key, bool reverse);

// ---- dict and set ----
// KeyError(key); container: what lacks it, where the diagnosis looks for a near key; NIL: key is a message
td_value td_raise_key(td_interpreter *, td_value container, td_value key);
// A dict, an object with keys(), or an iterable of pairs
bool td_dict_update(td_interpreter *, td_dict *dict, td_value source);
bool td_dict_merge(td_interpreter *, td_dict *dict, td_dict *source);
// Td_dict_get_str without a str
td_value td_dict_get_text(const td_dict *dict, const char *bytes, size_t length, uint64_t hash);
void td_dict_clear(td_dict *dict);
td_dict *td_dict_copy(td_interpreter *, td_dict *source);
enum td_dict_view { TD_DICT_KEYS, TD_DICT_VALUES, TD_DICT_ITEMS };
td_value td_dict_view_new(td_interpreter *, td_dict *dict, enum td_dict_view what);
bool td_is_dict_view(td_value v);
td_dict *td_dict_view_dict(td_value v);                               // borrowed
td_value td_dict_iterator_new(td_interpreter *, td_dict *dict, enum td_dict_view what, bool reverse);
extern const td_method td_dict_statics[];                             // dict.fromkeys
td_value td_set_from(td_interpreter *, td_value iterable);            // a new set
int td_set_has(td_interpreter *, td_set *set, td_value item);         // -1: exception
int64_t td_set_count(const td_set *set);

// ---- lazy iterators (iterators.c); all return NIL with an exception set ----
td_value td_sequence_iterator_new(td_interpreter *, td_value sequence, bool reverse); // list, tuple, str, range
td_value td_enumerate_new(td_interpreter *, td_value iterable, int64_t start);
td_value td_zip_new(td_interpreter *, td_tuple *iterables, bool strict);
td_value td_map_new(td_interpreter *, td_value function, td_tuple *iterables);
td_value td_filter_new(td_interpreter *, td_value function, td_value iterable);
td_value td_reversed_new(td_interpreter *, td_value sequence);
td_value td_call_iterator_new(td_interpreter *, td_value callee, td_value sentinel);
extern const td_type td_enumerate_type, td_zip_type, td_map_type, td_filter_type, td_reversed_type,
    td_sequence_iterator_type, td_dict_iterator_type, td_dict_keys_type, td_dict_values_type, td_dict_items_type,
    td_range_iterator_type, td_set_iterator_type, td_call_iterator_type;
td_value td_range_reversed(td_interpreter *, td_value range);
bool td_range_make(td_interpreter *, int64_t start, int64_t stop, int64_t step, td_value *range);

// ---- what td_builtins_register puts together ----
bool td_builtin_types_register(td_interpreter *);      // builtin_type.c: int, float, str, list ... as classes
bool td_builtin_functions_register(td_interpreter *);  // builtin_function.c
bool td_builtin_numbers_register(td_interpreter *);    // builtin_number.c
bool td_math_register(td_interpreter *);               // module_math.c
bool td_time_register(td_interpreter *);               // module_time.c
bool td_json_register(td_interpreter *);               // module_json.c
bool td_logging_register(td_interpreter *);            // module_logging.c
#endif
