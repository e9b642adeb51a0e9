// None, bool, int and float: arithmetic with Python's rounding and signs on 64-bit integers, comparisons that are exact
// between int and float, hashes that agree for equal numbers. Integer results that don't fit raise OverflowError.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "repl/language/builtins.h"

static td_value overflow(td_interpreter *I, const char *sign, int64_t a, int64_t b) {
  td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: %lld %s %lld doesn't fit in 64 bits", (long long)a, sign,
           (long long)b);
  td_raise_hint(I, "ints have 64 bits here; a float holds larger numbers: %lld.0", (long long)a);
  return TD_NIL;
}

// ---- integers ----
static td_value int_floor_divide(td_interpreter *I, int64_t a, int64_t b) {
  if (b == 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "integer division or modulo by zero");
  if (b == -1) {
    int64_t negative;
    return __builtin_sub_overflow((int64_t)0, a, &negative) ? overflow(I, "//", a, b) : td_int(negative);
  }
  return td_int(a / b - (a % b != 0 && (a ^ b) < 0));
}

static td_value int_remainder(td_interpreter *I, int64_t a, int64_t b) {
  if (b == 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "integer modulo by zero");
  if (b == -1) return td_int(0);
  int64_t remainder = a % b;
  return td_int(remainder && (remainder ^ b) < 0 ? remainder + b : remainder);
}

// The double nearest to a / b, also where the operands have more than 53 bits: 65 or more bits of the quotient, the
// last one also standing for a remainder, are rounded once.
static double int_true_divide(int64_t a, int64_t b) {
  const int64_t exact = 1LL << 53;
  if (a > -exact && a < exact && b > -exact && b < exact) return (double)a / (double)b;
  uint64_t top = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, bottom = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  if (top == 0) return 0;
  int shift = __builtin_clzll(top);
  unsigned __int128 wide = (unsigned __int128)(top << shift) << 64, quotient = wide / bottom;
  if (wide % bottom) quotient |= 1;
  double result = ldexp((double)quotient, -64 - shift);
  return (a < 0) != (b < 0) ? -result : result;
}

static td_value double_power(td_interpreter *I, double a, double b);

static td_value int_power(td_interpreter *I, int64_t a, int64_t b) {
  if (b < 0) return double_power(I, (double)a, (double)b);
  int64_t result = 1, base = a, exponent = b;
  bool base_overflowed = false;
  while (exponent) {
    if (exponent & 1 && (base_overflowed || __builtin_mul_overflow(result, base, &result)))
      return overflow(I, "**", a, b);
    exponent >>= 1;
    if (exponent && !base_overflowed) base_overflowed = __builtin_mul_overflow(base, base, &base);
  }
  return td_int(result);
}

static td_value int_shift(td_interpreter *I, int op, int64_t a, int64_t b) {
  if (b < 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "negative shift count");
  if (op == TD_BINARY_RIGHT_SHIFT) return td_int(a >> (b > 63 ? 63 : b));
  if (a == 0) return td_int(0);
  return b > __builtin_clrsbll(a) ? overflow(I, "<<", a, b) : td_int((int64_t)((uint64_t)a << b));
}

static td_value int_binary(td_interpreter *I, int op, int64_t a, int64_t b) {
  int64_t result;
  switch (op) {
  case TD_BINARY_ADD: return __builtin_add_overflow(a, b, &result) ? overflow(I, "+", a, b) : td_int(result);
  case TD_BINARY_SUBTRACT: return __builtin_sub_overflow(a, b, &result) ? overflow(I, "-", a, b) : td_int(result);
  case TD_BINARY_MULTIPLY: return __builtin_mul_overflow(a, b, &result) ? overflow(I, "*", a, b) : td_int(result);
  case TD_BINARY_DIVIDE:
    if (b == 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "division by zero");
    return td_double(int_true_divide(a, b));
  case TD_BINARY_FLOOR_DIVIDE: return int_floor_divide(I, a, b);
  case TD_BINARY_REMAINDER: return int_remainder(I, a, b);
  case TD_BINARY_POWER: return int_power(I, a, b);
  case TD_BINARY_AND: return td_int(a & b);
  case TD_BINARY_OR: return td_int(a | b);
  case TD_BINARY_XOR: return td_int(a ^ b);
  case TD_BINARY_LEFT_SHIFT:
  case TD_BINARY_RIGHT_SHIFT: return int_shift(I, op, a, b);
  default: return TD_NOT_IMPLEMENTED;
  }
}

// ---- floats ----
static double double_remainder(double a, double b) { // b != 0; the sign is b's
  double remainder = fmod(a, b);
  if (remainder == 0) return copysign(0, b);
  return (b < 0) != (remainder < 0) ? remainder + b : remainder;
}

static double double_floor_divide(double a, double b) { // b != 0
  double remainder = fmod(a, b), quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return copysign(0, a / b);
  double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

static td_value double_power(td_interpreter *I, double a, double b) {
  if (a == 0 && b < 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "0.0 cannot be raised to a negative power");
  if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b)) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "negative number cannot be raised to a fractional power");
    td_raise_hint(I, "there are no complex numbers in this language");
    return TD_NIL;
  }
  double result = pow(a, b);
  if (isinf(result) && isfinite(a) && isfinite(b))
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "(34, 'Numerical result out of range')");
  return td_double(result);
}

static td_value double_binary(td_interpreter *I, int op, double a, double b) {
  switch (op) {
  case TD_BINARY_ADD: return td_double(a + b);
  case TD_BINARY_SUBTRACT: return td_double(a - b);
  case TD_BINARY_MULTIPLY: return td_double(a * b);
  case TD_BINARY_DIVIDE:
    if (b == 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "float division by zero");
    return td_double(a / b);
  case TD_BINARY_FLOOR_DIVIDE:
    if (b == 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "float floor division by zero");
    return td_double(double_floor_divide(a, b));
  case TD_BINARY_REMAINDER:
    if (b == 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "float modulo");
    return td_double(double_remainder(a, b));
  case TD_BINARY_POWER: return double_power(I, a, b);
  default: return TD_NOT_IMPLEMENTED;
  }
}

static td_value number_binary(td_interpreter *I, int op, td_value a, td_value b) {
  if (!td_is_number(a) || !td_is_number(b)) return TD_NOT_IMPLEMENTED;
  if (a.tag == TD_TAG_DOUBLE || b.tag == TD_TAG_DOUBLE)
    return double_binary(I, op, td_number_double(a), td_number_double(b));
  if (a.tag == TD_TAG_BOOL && b.tag == TD_TAG_BOOL) {
    if (op == TD_BINARY_AND) return td_bool(a.i & b.i);
    if (op == TD_BINARY_OR) return td_bool(a.i | b.i);
    if (op == TD_BINARY_XOR) return td_bool(a.i ^ b.i);
  }
  return int_binary(I, op, a.i, b.i);
}

td_value td_number_divmod(td_interpreter *I, td_value a, td_value b) {
  td_value quotient, remainder;
  if (a.tag == TD_TAG_DOUBLE || b.tag == TD_TAG_DOUBLE) {
    double x = td_number_double(a), y = td_number_double(b);
    if (y == 0) return td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "float divmod()");
    quotient = td_double(double_floor_divide(x, y));
    remainder = td_double(double_remainder(x, y));
  } else {
    quotient = int_floor_divide(I, a.i, b.i);
    if (td_is_nil(quotient)) return TD_NIL;
    remainder = int_remainder(I, a.i, b.i);
  }
  return td_tuple_pack(I, 2, quotient, remainder);
}

static td_value number_unary(td_interpreter *I, int op, td_value v) {
  if (v.tag == TD_TAG_DOUBLE) {
    if (op == TD_UNARY_NEGATIVE) return td_double(-v.f);
    return op == TD_UNARY_POSITIVE ? v : TD_NOT_IMPLEMENTED;
  }
  if (op == TD_UNARY_POSITIVE) return td_int(v.i);
  if (op == TD_UNARY_INVERT) return td_int(~v.i);
  return v.i == INT64_MIN ? overflow(I, "-", 0, v.i) : td_int(-v.i);
}

// ---- comparing and hashing ----
static int compare_int_double(int64_t i, double f) {
  if (f != f) return 2;
  if (f >= 9223372036854775808.0) return -1;
  if (f < -9223372036854775808.0) return 1;
  int64_t whole = (int64_t)f; // cut toward zero; what was cut decides between equal whole parts
  if (i != whole) return i < whole ? -1 : 1;
  double rest = f - (double)whole;
  return rest > 0 ? -1 : rest < 0;
}

int td_number_compare(td_value a, td_value b) {
  if (a.tag == TD_TAG_DOUBLE && b.tag == TD_TAG_DOUBLE) return a.f < b.f ? -1 : a.f > b.f ? 1 : a.f == b.f ? 0 : 2;
  if (a.tag == TD_TAG_DOUBLE) {
    int order = compare_int_double(b.i, a.f);
    return order == 2 ? 2 : -order;
  }
  if (b.tag == TD_TAG_DOUBLE) return compare_int_double(a.i, b.f);
  return (a.i > b.i) - (a.i < b.i);
}

static td_value number_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  (void)I;
  if (!td_is_number(a) || !td_is_number(b)) return TD_NOT_IMPLEMENTED;
  int order = td_number_compare(a, b);
  switch (comparison) {
  case TD_COMPARE_EQUAL: return td_bool(order == 0);
  case TD_COMPARE_NOT_EQUAL: return td_bool(order != 0);
  case TD_COMPARE_LESS: return td_bool(order == -1);
  case TD_COMPARE_LESS_EQUAL: return td_bool(order == -1 || order == 0);
  case TD_COMPARE_GREATER: return td_bool(order == 1);
  case TD_COMPARE_GREATER_EQUAL: return td_bool(order == 1 || order == 0);
  default: return TD_NOT_IMPLEMENTED;
  }
}

// f modulo the prime 2^61 - 1, where halves are multiplications by 2^60: 28 bits of the mantissa at a time.
uint64_t td_number_hash(double f) {
  const int bits = 61;
  const uint64_t modulus = ((uint64_t)1 << bits) - 1;
  if (isinf(f)) return f > 0 ? 314159 : (uint64_t)-314159;
  if (f != f) return 0;
  int exponent;
  double mantissa = frexp(f, &exponent);
  bool negative = mantissa < 0;
  if (negative) mantissa = -mantissa;
  uint64_t hash = 0;
  while (mantissa != 0) {
    hash = (hash << 28 & modulus) | hash >> (bits - 28);
    mantissa *= 268435456.0;
    exponent -= 28;
    uint64_t digit = (uint64_t)mantissa;
    mantissa -= (double)digit;
    hash += digit;
    if (hash >= modulus) hash -= modulus;
  }
  int turn = exponent >= 0 ? exponent % bits : bits - 1 - (-1 - exponent) % bits;
  hash = (hash << turn & modulus) | hash >> (bits - turn);
  if (negative) hash = 0 - hash;
  return hash == (uint64_t)-1 ? (uint64_t)-2 : hash;
}

static bool number_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  (void)I;
  *hash = v.tag == TD_TAG_DOUBLE ? td_number_hash(v.f) : td_int_hash(v.i);
  return true;
}

static int number_truth(td_interpreter *I, td_value v) {
  (void)I;
  return v.tag == TD_TAG_DOUBLE ? v.f != 0 : v.i != 0;
}

// ---- conversions ----
td_value td_double_to_int(td_interpreter *I, double f) {
  if (f != f) return td_raise(I, TD_CLASS_VALUE_ERROR, "cannot convert float NaN to integer");
  if (isinf(f)) return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "cannot convert float infinity to integer");
  if (f >= 9223372036854775808.0 || f < -9223372036854775808.0) {
    char number[TD_NUMBER_TEXT];
    td_number_print(number, f);
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: %s doesn't fit in 64 bits", number);
  }
  return td_int((int64_t)f);
}

td_value td_double_round(td_interpreter *I, double f, int64_t digits) {
  if (!isfinite(f) || f == 0 || digits > 323) return td_double(f);
  if (digits < -308) return td_double(copysign(0, f));
  char text[700];
  if (digits >= 0) {
    snprintf(text, sizeof text, "%.*f", (int)digits, f); // exact, ties to even
  } else {
    int exponent;
    snprintf(text, sizeof text, "%.17e", f);
    exponent = atoi(strchr(text, 'e') + 1);
    int precision = exponent + (int)digits; // digits kept after the first one
    if (precision < -1) return td_double(copysign(0, f));
    if (precision == -1) { // nothing is kept: zero or one unit, as f is at most half of it or more
      snprintf(text, sizeof text, "5e%d", exponent);
      bool up = fabs(f) > strtod(text, NULL);
      snprintf(text, sizeof text, "%s1e%d", f < 0 ? "-" : "", exponent + 1);
      return td_double(up ? strtod(text, NULL) : copysign(0, f));
    }
    snprintf(text, sizeof text, "%.*e", precision, f);
  }
  double rounded = strtod(text, NULL);
  if (isinf(rounded)) return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "rounded value too large to represent");
  return td_double(rounded);
}

bool td_index_value(td_interpreter *I, td_value v, int64_t *index) {
  if (td_is_integer(v)) {
    *index = v.i;
    return true;
  }
  if (v.tag == TD_TAG_DOUBLE || v.tag == TD_TAG_NONE || td_is(v, &td_str_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object cannot be interpreted as an integer", td_type_name(I, v));
    return false;
  }
  bool ok = true;
  *index = td_to_int(I, v, &ok);
  return ok;
}

// ---- reading numbers ----
static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f); }

// The text without blanks around it, Unicode's decimal digits and spaces as ASCII, in text. Underscores may stand
// between two digits only and are dropped. False: out of memory, or a misplaced underscore (*bad).
static bool clean_number(const td_str *s, td_text *text, bool *bad) {
  *bad = false;
  for (size_t i = 0; i < s->length;) {
    int size;
    uint32_t code = td_utf8_decode(s->data + i, &size), properties = code < 0x80 ? 0 : td_unicode_properties(code);
    i += (size_t)size;
    if (properties & TD_UNICODE_DECIMAL) { // blocks of ten digits begin with their zero
      uint32_t zero = code;
      while (code - zero < 9 && td_unicode_properties(zero - 1) & TD_UNICODE_DECIMAL &&
             (code < 0x1D7CE || code > 0x1D7FF))
        zero--;
      td_text_add_char(text, (char)('0' + (code >= 0x1D7CE && code <= 0x1D7FF ? (code - 0x1D7CE) % 10 : code - zero)));
    } else if (properties & TD_UNICODE_SPACE) {
      td_text_add_char(text, ' ');
    } else if (code >= 0x80) {
      *bad = true;
    } else {
      td_text_add_char(text, (char)code);
    }
  }
  td_text_add_char(text, 0);
  if (text->failed || *bad) return false;
  size_t begin = 0, end = text->length - 1, out = 0;
  while (begin < end && is_blank(text->data[begin])) begin++;
  while (end > begin && is_blank(text->data[end - 1])) end--;
  for (size_t i = begin; i < end; i++) {
    char c = text->data[i];
    if (c == 0) *bad = true;
    if (c == '_') {
      bool before = i > begin && (text->data[i - 1] != '_' && (unsigned char)text->data[i - 1] > ' ');
      if (!before || i + 1 == end || text->data[i + 1] == '_') *bad = true;
      continue;
    }
    text->data[out++] = c;
  }
  text->data[out] = 0;
  text->length = out;
  return !*bad;
}

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

static size_t offset_of_character(const td_text *text, size_t character) {
  size_t at = 0;
  for (; at < text->length; at++) {
    bool begins = ((unsigned char)text->data[at] & 0xc0) != 0x80;
    if (begins && character-- == 0) break;
  }
  return at;
}

// Quotes no more than that many characters of s, as Python does.
static td_value refuse_literal(td_interpreter *I, td_str *s, const char *before, size_t most) {
  td_text quoted = {0};
  td_str_repr(s->data, s->length, false, &quoted);
  size_t length = offset_of_character(&quoted, most);
  td_text message = {0};
  td_text_add(&message, before);
  td_text_add_bytes(&message, quoted.data, length);
  if (message.failed || quoted.failed) td_raise_memory(I);
  else td_raise(I, TD_CLASS_VALUE_ERROR, "%s", message.data);
  td_text_clear(&quoted);
  td_text_clear(&message);
  return TD_NIL;
}

// Digits with an optional sign and prefix. 0: not a literal, -1: does not fit, 1: *value holds it.
static int read_int(const char *digits, int base, int64_t *value) {
  bool negative = *digits == '-';
  if (*digits == '-' || *digits == '+') digits++;
  int prefix = digits[0] == '0' ? digits[1] | 32 : 0;
  int wanted = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
  if (wanted && (base == 0 || base == wanted)) {
    base = wanted;
    digits += 2;
  } else if (base == 0) {
    base = 10;
    if (*digits == '0' && digits[strspn(digits, "0")]) return 0; // 010 is no literal
  }
  if (!*digits) return 0;
  uint64_t total = 0;
  bool fits = true;
  for (; *digits; digits++) {
    int digit = digit_value(*digits);
    if (digit >= base) return 0;
    fits = fits && !__builtin_mul_overflow(total, (uint64_t)base, &total) &&
           !__builtin_add_overflow(total, (uint64_t)digit, &total);
  }
  if (!fits || total > (uint64_t)INT64_MAX + negative) return -1;
  *value = (int64_t)(negative ? 0 - total : total);
  return 1;
}

td_value td_int_parse(td_interpreter *I, td_str *s, int base) {
  td_text text = {0};
  bool bad;
  int64_t value = 0;
  int found = clean_number(s, &text, &bad) ? read_int(text.data, base, &value) : 0;
  bool failed = text.failed;
  td_text_clear(&text);
  if (failed) return td_raise_memory(I);
  if (found == 1) return td_int(value);
  if (found == -1)
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: '%.60s' doesn't fit in 64 bits", s->data);
  char before[64];
  snprintf(before, sizeof before, "invalid literal for int() with base %d: ", base);
  return refuse_literal(I, s, before, 200);
}

// Python's grammar of float literals; strtod alone would also take hexadecimal ones and nan(...).
static bool is_float_literal(const char *c) {
  if (*c == '+' || *c == '-') c++;
  if (!strcasecmp(c, "inf") || !strcasecmp(c, "infinity") || !strcasecmp(c, "nan")) return true;
  size_t whole = strspn(c, "0123456789"), fraction = 0;
  c += whole;
  if (*c == '.') fraction = strspn(c + 1, "0123456789"), c += 1 + fraction;
  if (!whole && !fraction) return false;
  if (*c == 'e' || *c == 'E') {
    c++;
    if (*c == '+' || *c == '-') c++;
    size_t digits = strspn(c, "0123456789");
    if (!digits) return false;
    c += digits;
  }
  return !*c;
}

// A NaN is equal to nothing, but containers find the very one that they hold. Numbers have no address here, so each NaN
// that is written out gets bits of its own to be known by.
static double nan_new(bool negative) {
  static _Thread_local uint32_t count;
  uint64_t bits = 0x7ff8000000000000u | (uint64_t)negative << 63 | ++count;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

td_value td_float_parse(td_interpreter *I, td_str *s) {
  td_text text = {0};
  bool bad, good = clean_number(s, &text, &bad) && is_float_literal(text.data);
  double value = good ? strtod(text.data, NULL) : 0;
  if (value != value) value = nan_new(*text.data == '-');
  bool failed = text.failed;
  td_text_clear(&text);
  if (failed) return td_raise_memory(I);
  return good ? td_double(value) : refuse_literal(I, s, "could not convert string to float: ", SIZE_MAX);
}

// ---- printing ----
static bool none_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I, (void)v;
  td_text_add(text, "None");
  return true;
}

static bool bool_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_add(text, v.i ? "True" : "False");
  return true;
}

int td_int_print(char digits[24], int64_t value) {
  char reversed[24];
  int length = 0, count = 0;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do reversed[count++] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (value < 0) digits[length++] = '-';
  while (count) digits[length++] = reversed[--count];
  return length;
}

static bool int_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  char digits[24];
  td_text_add_bytes(text, digits, (size_t)td_int_print(digits, v.i));
  return true;
}

static bool float_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  char number[TD_NUMBER_TEXT];
  td_text_add_bytes(text, number, (size_t)td_number_print(number, v.f));
  return true;
}

static bool int_format(td_interpreter *I, td_value v, const char *text, td_text *out) {
  td_format_spec spec;
  if (!*text) return v.tag == TD_TAG_BOOL ? bool_repr(I, v, out) : int_repr(I, v, out);
  if (!td_format_parse(I, text, v.tag == TD_TAG_BOOL ? "bool" : "int", &spec)) return false;
  return spec.type && strchr("eEfFgG%", spec.type) ? td_format_double(I, (double)v.i, &spec, out)
                                                   : td_format_int(I, v.i, &spec, out);
}

static bool float_format(td_interpreter *I, td_value v, const char *text, td_text *out) {
  td_format_spec spec;
  if (!*text) return float_repr(I, v, out);
  return td_format_parse(I, text, "float", &spec) && td_format_double(I, v.f, &spec, out);
}

// ---- attributes and methods ----
static td_value number_attribute(td_interpreter *I, td_value v, td_str *name) {
  (void)I;
  bool whole = v.tag != TD_TAG_DOUBLE;
  if (!strcmp(name->data, "real")) return whole ? td_int(v.i) : v;
  if (!strcmp(name->data, "imag")) return whole ? td_int(0) : td_double(0);
  if (whole && !strcmp(name->data, "numerator")) return td_int(v.i);
  if (whole && !strcmp(name->data, "denominator")) return td_int(1);
  return TD_NIL;
}

static void number_names(td_interpreter *I, td_value v, td_list *names) {
  static const char *const all[] = {"real", "imag", "numerator", "denominator"};
  for (int i = 0; i < (v.tag == TD_TAG_DOUBLE ? 2 : 4); i++) {
    td_value name = td_from(td_str_from(I, all[i]));
    if (td_is_nil(name) || !td_list_append(I, names, name)) td_clear_raised(I);
    td_unref(name);
  }
}

static uint64_t magnitude(int64_t i) { return i < 0 ? 0 - (uint64_t)i : (uint64_t)i; }

static td_value int_bit_length(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  return td_int(self.i ? 64 - __builtin_clzll(magnitude(self.i)) : 0);
}

static td_value int_bit_count(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  return td_int(__builtin_popcountll(magnitude(self.i)));
}

static td_value int_conjugate(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  return td_int(self.i);
}

static td_value int_ratio(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  return td_tuple_pack(I, 2, td_int(self.i), td_int(1));
}

static const td_method int_methods[] = {
    {"bit_length", "()", int_bit_length, "Number of bits of the absolute value: 10 needs 4.\n>>> (10).bit_length()"},
    {"bit_count", "()", int_bit_count, "Number of ones among the bits of the absolute value.\n>>> (13).bit_count()"},
    {"conjugate", "()", int_conjugate, "The number itself."},
    {"as_integer_ratio", "()", int_ratio, "The number and 1, as a tuple."},
    {NULL, NULL, NULL, NULL}};

static td_value float_is_integer(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  return td_bool(isfinite(self.f) && self.f == floor(self.f));
}

static td_value float_conjugate(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  return self;
}

static td_value float_ratio(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  if (self.f != self.f) return td_raise(I, TD_CLASS_VALUE_ERROR, "cannot convert NaN to integer ratio");
  if (isinf(self.f)) return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "cannot convert Infinity to integer ratio");
  int exponent;
  double mantissa = frexp(self.f, &exponent);
  for (int i = 0; i < 53 && mantissa != floor(mantissa); i++) mantissa *= 2, exponent--;
  int64_t top = (int64_t)mantissa;
  if (top == 0) return td_tuple_pack(I, 2, td_int(0), td_int(1));
  if (exponent >= 0 ? exponent > 62 || magnitude(top) > (uint64_t)(INT64_MAX >> exponent) : exponent < -62)
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: a part of the ratio doesn't fit in 64 bits");
  return td_tuple_pack(I, 2, td_int(exponent > 0 ? top * ((int64_t)1 << exponent) : top),
                       td_int(exponent < 0 ? (int64_t)1 << -exponent : 1));
}

static td_value float_hex(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  if (!isfinite(self.f)) return td_from(td_str_from(I, self.f != self.f ? "nan" : self.f < 0 ? "-inf" : "inf"));
  char text[48];
  if (self.f == 0) { return td_from(td_str_from(I, signbit(self.f) ? "-0x0.0p+0" : "0x0.0p+0")); }
  uint64_t bits;
  memcpy(&bits, &self.f, sizeof bits);
  int biased = (int)(bits >> 52 & 0x7ff);
  snprintf(text, sizeof text, "%s0x%d.%013llxp%+d", signbit(self.f) ? "-" : "", biased != 0,
           (unsigned long long)(bits & 0xfffffffffffff), biased ? biased - 1023 : -1022);
  return td_from(td_str_from(I, text));
}

static td_value float_fromhex(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is(arguments[0], &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "bad argument type for built-in operation");
  const char *text = td_as_str(arguments[0])->data;
  while (is_blank(*text)) text++;
  const char *digits = text + (*text == '+' || *text == '-');
  char buffer[256], *end = NULL;
  double value = 0;
  bool named = (*digits | 32) == 'i' || (*digits | 32) == 'n';
  if (named || (digits[0] == '0' && (digits[1] | 32) == 'x')) value = strtod(text, &end);
  else if (snprintf(buffer, sizeof buffer, "%.*s0x%s", (int)(digits - text), text, digits) < (int)sizeof buffer) {
    char *stop;
    value = strtod(buffer, &stop);
    end = stop > buffer + (digits - text) + 1 ? (char *)text + (stop - buffer - 2) : NULL;
  }
  while (end && is_blank(*end)) end++;
  if (!end || end == text || *end)
    return td_raise(I, TD_CLASS_VALUE_ERROR, "invalid hexadecimal floating-point string");
  if (isinf(value) && !named)
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "hexadecimal value too large to represent as a float");
  return td_double(value);
}

static const td_method float_methods[] = {
    {"is_integer", "()", float_is_integer, "Whether the number has no fraction.\n>>> (2.0).is_integer()"},
    {"conjugate", "()", float_conjugate, "The number itself."},
    {"as_integer_ratio", "()", float_ratio,
     "Two ints whose quotient is exactly this number.\n>>> (0.75).as_integer_ratio()"},
    {"hex", "()", float_hex, "The number in hexadecimal, exactly.\n>>> (0.5).hex()"},
    {NULL, NULL, NULL, NULL}};

const td_method td_float_statics[] = {
    {"fromhex", "(text, /)", float_fromhex, "The float that a hexadecimal text such as '0x1.8p+1' stands for."},
    {NULL, NULL, NULL, NULL}};

static int none_truth(td_interpreter *I, td_value v) {
  (void)I, (void)v;
  return 0;
}

static bool none_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  (void)I, (void)v;
  *hash = 0x5dbc31e0;
  return true;
}

const td_type td_none_type = {.name = "NoneType",
                              .truth = none_truth,
                              .repr = none_repr,
                              .hash = none_hash,
                              .doc = "The type of None, which stands for \"nothing\"."};
const td_type td_bool_type = {.name = "bool",
                              .truth = number_truth,
                              .repr = bool_repr,
                              .format = int_format,
                              .attribute = number_attribute,
                              .names = number_names,
                              .binary = number_binary,
                              .unary = number_unary,
                              .compare = number_compare,
                              .hash = number_hash,
                              .methods = int_methods,
                              .doc =
                                  "bool(x=False): True or False. In arithmetic they count as 1 and 0.\n>>> bool([])"};
const td_type td_int_type = {.name = "int",
                             .truth = number_truth,
                             .repr = int_repr,
                             .format = int_format,
                             .attribute = number_attribute,
                             .names = number_names,
                             .binary = number_binary,
                             .unary = number_unary,
                             .compare = number_compare,
                             .hash = number_hash,
                             .methods = int_methods,
                             .doc = "int(x=0, base=10): whole numbers of 64 bits; results that don't fit raise "
                                    "OverflowError.\n>>> int(\"ff\", 16)"};
const td_type td_float_type = {.name = "float",
                               .truth = number_truth,
                               .repr = float_repr,
                               .format = float_format,
                               .attribute = number_attribute,
                               .names = number_names,
                               .binary = number_binary,
                               .unary = number_unary,
                               .compare = number_compare,
                               .hash = number_hash,
                               .methods = float_methods,
                               .doc = "float(x=0.0): numbers of double precision.\n>>> float(\"1e-3\")"};
