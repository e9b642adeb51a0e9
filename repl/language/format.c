// Python's format mini-language, [[fill]align][sign][z][#][0][width][grouping][.precision][type], for str, int and
// float. Widths and precisions count characters. Digits of floats come from printf, which rounds exactly.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "repl/language/builtins.h"

// ---- reading a spec ----
static bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

static bool read_number(const char **at, int64_t *number) {
  *number = 0;
  for (; **at >= '0' && **at <= '9'; ++*at)
    if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, **at - '0', number) ||
        *number > INT_MAX)
      return false;
  return true;
}

static bool refuse(td_interpreter *I, const char *message) {
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s", message);
  return false;
}

static void read_alignment(const char **at, td_format_spec *spec) {
  int size = **at ? td_utf8_size((unsigned char)**at) : 0;
  if (size && is_align((*at)[size])) {
    memcpy(spec->fill, *at, (size_t)size);
    spec->align = (*at)[size];
    *at += size + 1;
  } else if (is_align(**at)) {
    spec->align = *(*at)++;
  }
}

static bool read_grouping(td_interpreter *I, const char **at, td_format_spec *spec) {
  while (**at == ',' || **at == '_') {
    if (spec->grouping)
      return refuse(I, spec->grouping != **at ? "Cannot specify both ',' and '_'."
                       : **at == ','          ? "Cannot specify ',' with ','."
                                              : "Cannot specify '_' with '_'.");
    spec->grouping = *(*at)++;
  }
  return true;
}

static bool check_grouping(td_interpreter *I, const td_format_spec *spec) {
  char type = spec->type;
  if (!spec->grouping || !type || strchr("deEfFgG%", type) || (spec->grouping == '_' && strchr("boxX", type)))
    return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "Cannot specify '%c' with '%c'.", spec->grouping, type);
  return false;
}

bool td_format_parse(td_interpreter *I, const char *text, const char *type_name, td_format_spec *spec) {
  const char *at = text;
  *spec = (td_format_spec){.width = -1, .precision = -1, .type_name = type_name};
  read_alignment(&at, spec);
  if (*at == '+' || *at == '-' || *at == ' ') spec->sign = *at++;
  if (*at == 'z') spec->no_minus_zero = true, at++;
  if (*at == '#') spec->alternate = true, at++;
  if (*at == '0' && !spec->fill[0]) {
    spec->zero = true;
    at++;
  }
  if (*at >= '0' && *at <= '9' && !read_number(&at, &spec->width))
    return refuse(I, "Too many decimal digits in format string");
  if (!read_grouping(I, &at, spec)) return false;
  if (*at == '.') {
    at++;
    if (*at < '0' || *at > '9') return refuse(I, "Format specifier missing precision");
    if (!read_number(&at, &spec->precision)) return refuse(I, "Too many decimal digits in format string");
  }
  if (*at && at[td_utf8_size((unsigned char)*at)]) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "Invalid format specifier '%s' for object of type '%s'", text, type_name);
    return false;
  }
  spec->type = *at;
  return check_grouping(I, spec);
}

static bool unknown_type(td_interpreter *I, const td_format_spec *spec) {
  td_raise(I, TD_CLASS_VALUE_ERROR, "Unknown format code '%c' for object of type '%s'", spec->type, spec->type_name);
  return false;
}

// ---- laying out ----
static void add_fill(td_text *text, const char *fill, int64_t count) {
  enum { BLOCK = 64 };
  char block[BLOCK * 4]; // a character has at most 4 bytes
  size_t size = strlen(fill);
  if (count <= 0) return;
  if (size == 1) {
    td_text_pad(text, text->length + (size_t)count, *fill);
    return;
  }
  for (int i = 0; i < BLOCK; i++) memcpy(block + (size_t)i * size, fill, size);
  for (; count > 0 && !text->failed; count -= BLOCK)
    td_text_add_bytes(text, block, size * (size_t)(count < BLOCK ? count : BLOCK));
}

// head stands before the padding of '=' alignment: sign and prefix.
static void add_padded(td_text *text, const char *head, const char *body, size_t length, const td_format_spec *spec,
                       char align) {
  const char *fill = spec->fill[0] ? spec->fill : " ";
  if (spec->align) align = spec->align;
  if (spec->zero) {
    fill = "0";
    if (!spec->align && align == '>') align = '=';
  }
  int64_t missing = spec->width - (int64_t)strlen(head) - td_utf8_count(body, length), left = 0;
  if (missing < 0) missing = 0;
  if (align == '>') left = missing;
  else if (align == '^') left = missing / 2;
  add_fill(text, fill, left);
  td_text_add(text, head);
  if (align == '=') add_fill(text, fill, missing);
  td_text_add_bytes(text, body, length);
  if (align == '<' || align == '^') add_fill(text, fill, missing - left);
}

// Digits with separators in groups; at least width characters, filled up with zeros that are grouped as well.
static void add_grouped(td_text *text, const char *digits, size_t length, char separator, int size, int64_t width) {
  td_text reversed = {0};
  int64_t left = (int64_t)length;
  for (bool first = true; (left > 0 || width > 0 || first) && !reversed.failed; first = false) {
    if (!first) {
      td_text_add_char(&reversed, separator);
      width--;
    }
    int64_t wanted = left > width ? left : width;
    if (wanted > size) wanted = size;
    if (wanted < 1) wanted = 1;
    for (int64_t i = 0; i < wanted; i++, left--) td_text_add_char(&reversed, left > 0 ? digits[left - 1] : '0');
    width -= wanted;
  }
  for (size_t i = reversed.length; i-- > 0;) td_text_add_char(text, reversed.data[i]);
  text->failed = text->failed || reversed.failed;
  td_text_clear(&reversed);
}

// A number of sign, prefix and body; the digits at the body's start are grouped.
static bool add_number(td_interpreter *I, td_text *text, bool negative, const char *prefix, const char *body,
                       size_t length, const td_format_spec *spec) {
  char head[8];
  snprintf(head, sizeof head, "%s%s", negative ? "-" : spec->sign == '+' ? "+" : spec->sign == ' ' ? " " : "", prefix);
  if (!spec->grouping) {
    add_padded(text, head, body, length, spec, '>');
  } else {
    size_t digits = strspn(body, strchr("xX", spec->type ? spec->type : 'd') ? "0123456789abcdefABCDEF" : "0123456789");
    bool zeros = spec->align ? spec->align == '=' && !strcmp(spec->fill, "0") : spec->zero;
    bool bits = spec->type && strchr("boxX", spec->type);
    td_text grouped = {0};
    if (digits || zeros)
      add_grouped(&grouped, body, digits, spec->grouping, bits ? 4 : 3,
                  zeros ? spec->width - (int64_t)strlen(head) - (int64_t)(length - digits) : 0);
    td_text_add_bytes(&grouped, body + digits, length - digits);
    add_padded(text, head, grouped.data, grouped.length, spec, '>');
    text->failed = text->failed || grouped.failed;
    td_text_clear(&grouped);
  }
  if (!text->failed) return true;
  td_raise_memory(I);
  return false;
}

// ---- the three types ----
bool td_format_str(td_interpreter *I, const char *bytes, size_t length, const td_format_spec *spec, td_text *text) {
  if (spec->type && spec->type != 's') return unknown_type(I, spec);
  if (spec->sign)
    return refuse(I, spec->sign == ' ' ? "Space not allowed in string format specifier"
                                       : "Sign not allowed in string format specifier");
  if (spec->no_minus_zero) return refuse(I, "Negative zero coercion (z) not allowed in string format specifier");
  if (spec->alternate) return refuse(I, "Alternate form (#) not allowed in string format specifier");
  if (spec->grouping) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "Cannot specify '%c' with 's'.", spec->grouping);
    return false;
  }
  if (spec->align == '=') return refuse(I, "'=' alignment not allowed in string format specifier");
  if (spec->precision >= 0) {
    size_t end = 0;
    for (int64_t i = 0; i < spec->precision && end < length; i++)
      end += (size_t)td_utf8_size((unsigned char)bytes[end]);
    length = end;
  }
  add_padded(text, "", bytes, length, spec, '<');
  return true;
}

static bool format_character(td_interpreter *I, int64_t value, const td_format_spec *spec, td_text *text) {
  if (spec->sign) return refuse(I, "Sign not allowed with integer format specifier 'c'");
  if (spec->alternate) return refuse(I, "Alternate form (#) not allowed with integer format specifier 'c'");
  if (value < 0 || value > 0x10FFFF) {
    td_raise(I, TD_CLASS_OVERFLOW_ERROR, "%%c arg not in range(0x110000)");
    return false;
  }
  char bytes[4];
  add_padded(text, "", bytes, (size_t)td_utf8_encode(bytes, (uint32_t)value), spec, '<');
  return true;
}

bool td_format_int(td_interpreter *I, int64_t value, const td_format_spec *spec, td_text *text) {
  if (spec->precision >= 0) return refuse(I, "Precision not allowed in integer format specifier");
  if (spec->no_minus_zero) return refuse(I, "Negative zero coercion (z) not allowed in integer format specifier");
  if (spec->type == 'c') return format_character(I, value, spec, text);
  if (spec->type && !strchr("dboxXn", spec->type)) return unknown_type(I, spec);
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  unsigned base = spec->type == 'b' ? 2 : spec->type == 'o' ? 8 : spec->type == 'x' || spec->type == 'X' ? 16 : 10;
  char digits[66];
  size_t at = sizeof digits - 1;
  digits[at] = 0;
  do digits[--at] = (spec->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
  while (rest /= base);
  char prefix[3] = {'0', spec->type, 0};
  return add_number(I, text, value < 0, spec->alternate && base != 10 ? prefix : "", digits + at,
                    sizeof digits - 1 - at, spec);
}

static void strip_zeros(td_text *body) {
  if (!memchr(body->data, '.', body->length)) return;
  while (body->data[body->length - 1] == '0') body->length--;
  if (body->data[body->length - 1] == '.') body->length--;
  body->data[body->length] = 0;
}

// A precision without a type: as g, but with an exponent one digit sooner, and .0 behind a whole number.
static void add_general(td_text *body, double value, int precision, bool alternate) {
  td_text_print(body, "%.*e", precision - 1, value);
  if (body->failed) return;
  char *mark = strchr(body->data, 'e');
  int exponent = atoi(mark + 1);
  if (exponent < -4 || exponent >= precision - 1) {
    char tail[16];
    snprintf(tail, sizeof tail, "%s", mark);
    body->length = (size_t)(mark - body->data);
    *mark = 0;
    if (!alternate) strip_zeros(body);
    td_text_add(body, tail);
    return;
  }
  body->length = 0;
  td_text_print(body, "%.*f", precision - 1 - exponent, value);
  if (body->failed) return;
  if (!alternate) strip_zeros(body);
  if (!strchr(body->data, '.')) td_text_add(body, ".0");
}

static void add_shortest(td_text *body, double value, bool alternate) {
  char number[TD_NUMBER_TEXT];
  td_number_print(number, value);
  char *mark = strchr(number, 'e');
  bool point = strchr(number, '.') != NULL;
  if (!alternate || point || !mark) {
    td_text_add(body, number);
    return;
  }
  td_text_add_bytes(body, number, (size_t)(mark - number));
  td_text_add_char(body, '.');
  td_text_add(body, mark);
}

bool td_format_double(td_interpreter *I, double value, const td_format_spec *spec, td_text *text) {
  char type = spec->type == 'n' ? 'g' : spec->type;
  if (type && !strchr("eEfFgG%", type)) return unknown_type(I, spec);
  bool negative = signbit(value) && value == value;
  int precision = spec->precision < 0 ? 6 : spec->precision > INT_MAX - 64 ? INT_MAX - 64 : (int)spec->precision;
  if (precision > 1000000) return refuse(I, "precision too big");
  if (negative) value = -value;
  td_text body = {0};
  if (type == '%') value *= 100;
  if (!isfinite(value)) {
    bool large = type == 'E' || type == 'F' || type == 'G';
    td_text_add(&body, value != value ? (large ? "NAN" : "nan") : large ? "INF" : "inf");
  } else if (type) {
    char pattern[8];
    snprintf(pattern, sizeof pattern, "%%%s.*%c", spec->alternate ? "#" : "", type == '%' ? 'f' : type);
    char few[64];
    int length = snprintf(few, sizeof few, pattern, precision, value);
    if (length < (int)sizeof few) {
      td_text_add(&body, few);
    } else {
      char *many = td_memory_new((size_t)length + 1);
      if (many) {
        snprintf(many, (size_t)length + 1, pattern, precision, value);
        td_text_add(&body, many);
      }
      body.failed = body.failed || !many;
      td_memory_free(many);
    }
  } else if (spec->precision >= 0) {
    add_general(&body, value, precision ? precision : 1, spec->alternate);
  } else {
    add_shortest(&body, value, spec->alternate);
  }
  if (negative && spec->no_minus_zero && body.data && body.data[strspn(body.data, "0.")] == 0) negative = false;
  if (type == '%') td_text_add_char(&body, '%');
  bool done = !body.failed;
  if (done) done = add_number(I, text, negative, "", body.data, body.length, spec);
  else td_raise_memory(I);
  td_text_clear(&body);
  return done;
}
