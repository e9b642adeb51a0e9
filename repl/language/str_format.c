// format % arguments and format.format(...): fields are found in the text, values are looked up and handed to the
// format mini-language of format.c, into which the flags of % are translated.
#include <limits.h>

#include "repl/language/builtins.h"

// ---- format % arguments ----
typedef struct percent {
  td_interpreter *interpreter;
  const char *at, *begin;
  td_value arguments, mapping; // mapping: NIL: arguments is no mapping
  int64_t next, count; // positional arguments: next to be used
  bool named; // %(name)s was used
  td_text *out;
} percent;

static td_value percent_value(percent *p) { // borrowed; NIL: exception
  if (p->next >= p->count)
    return td_raise(p->interpreter, TD_CLASS_TYPE_ERROR, "not enough arguments for format string");
  td_value value = td_is(p->arguments, &td_tuple_type) ? td_as_tuple(p->arguments)->items[p->next] : p->arguments;
  p->next++;
  return value;
}

static bool percent_name(percent *p, td_value *value) { // *value: owned
  td_interpreter *I = p->interpreter;
  const char *begin = ++p->at;
  int depth = 1;
  if (td_is_nil(p->mapping)) return td_raise(I, TD_CLASS_TYPE_ERROR, "format requires a mapping"), false;
  for (; *p->at; p->at++) {
    depth += (*p->at == '(') - (*p->at == ')');
    if (depth == 0) break;
  }
  if (!*p->at) return td_raise(I, TD_CLASS_VALUE_ERROR, "incomplete format key"), false;
  td_value key = td_from(td_str_new(I, begin, (size_t)(p->at++ - begin)));
  *value = td_is_nil(key) ? TD_NIL : td_item(I, p->mapping, key);
  td_unref(key);
  p->named = true;
  return !td_is_nil(*value);
}

static bool percent_number(percent *p, int64_t *number) { // digits or *
  td_interpreter *I = p->interpreter;
  if (*p->at != '*') {
    for (*number = 0; *p->at >= '0' && *p->at <= '9'; p->at++) {
      *number = *number * 10 + (*p->at - '0');
      if (*number > INT_MAX) return td_raise(I, TD_CLASS_VALUE_ERROR, "width too big"), false;
    }
    return true;
  }
  p->at++;
  td_value value = percent_value(p);
  if (td_is_nil(value)) return false;
  if (!td_is_integer(value)) return td_raise(I, TD_CLASS_TYPE_ERROR, "* wants int"), false;
  if (value.i > INT_MAX || value.i < -INT_MAX)
    return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "Python int too large to convert to C int"), false;
  *number = value.i;
  return true;
}

static bool percent_text(percent *p, td_value value, char type, td_format_spec *spec) {
  td_interpreter *I = p->interpreter;
  td_text text = {0};
  bool done = type == 's'   ? td_print(I, value, &text)
              : type == 'r' ? td_repr(I, value, &text)
                            : td_ascii(I, value, &text);
  spec->sign = spec->type = 0;
  spec->alternate = spec->zero = false;
  if (!spec->align) spec->align = '>';
  done = done && td_format_str(I, text.data ? text.data : "", text.length, spec, p->out);
  p->out->failed = p->out->failed || text.failed;
  td_text_clear(&text);
  return done;
}

static bool percent_character(percent *p, td_value value, td_format_spec *spec) {
  td_interpreter *I = p->interpreter;
  spec->zero = false;
  if (td_is(value, &td_str_type) && td_as_str(value)->characters == 1) {
    spec->precision = -1;
    return percent_text(p, value, 's', spec);
  }
  if (!td_is_integer(value)) return td_raise(I, TD_CLASS_TYPE_ERROR, "%%c requires int or char"), false;
  spec->sign = 0;
  spec->alternate = false;
  spec->precision = -1;
  if (!spec->align) spec->align = '>';
  return td_format_int(I, value.i, spec, p->out);
}

static bool percent_int(percent *p, td_value value, char type, td_format_spec *spec) {
  td_interpreter *I = p->interpreter;
  bool decimal = type == 'd', ok = td_is_integer(value);
  td_value number = value;
  if (value.tag == TD_TAG_DOUBLE && decimal) {
    number = td_double_to_int(I, value.f);
    if (td_is_nil(number)) return false;
    ok = true;
  } else if (!ok && td_passes_on(value)) {
    td_class *class = decimal ? td_class_of_type(I, &td_int_type) : NULL;
    number = class ? td_call_values(I, (td_value){.tag = TD_TAG_OBJECT, .o = &class->container.object}, 1, &value)
                   : td_int(td_to_int(I, value, &ok));
    if (class) ok = !td_is_nil(number);
    if (!ok) td_clear_raised(I);
  }
  if (!ok) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%%%c format: %s is required, not %s", type,
             decimal ? "a real number" : "an integer", td_type_name(I, value));
    return false;
  }
  value = number;
  int64_t digits = spec->precision;
  spec->precision = -1;
  if (digits <= 0) return td_format_int(I, value.i, spec, p->out);
  // A precision of ints is the fewest digits: laid out first with zeros, then padded as a text
  td_format_spec inner = {
      .align = '=', .fill = "0", .sign = spec->sign, .type = spec->type, .alternate = spec->alternate, .precision = -1};
  td_text text = {0};
  inner.width = digits + (value.i < 0 || spec->sign != 0) + (spec->alternate && !decimal ? 2 : 0);
  td_format_spec outer = {.align = spec->align ? spec->align : '>', .fill = "", .width = spec->width, .precision = -1};
  if (spec->zero && spec->width > inner.width) inner.width = spec->width;
  bool done = td_format_int(I, value.i, &inner, &text) && td_format_str(I, text.data, text.length, &outer, p->out);
  td_text_clear(&text);
  return done;
}

static bool percent_float(percent *p, td_value value, const td_format_spec *spec) {
  td_interpreter *I = p->interpreter;
  bool ok = td_is_number(value);
  double number = ok ? td_number_double(value) : 0;
  if (!ok && !td_is(value, &td_str_type)) number = td_to_double(I, value, &ok);
  if (ok) return td_format_double(I, number, spec, p->out);
  td_clear_raised(I);
  td_raise(I, TD_CLASS_TYPE_ERROR, "must be real number, not %s", td_type_name(I, value));
  return false;
}

static bool percent_convert(percent *p, td_value value, char type, td_format_spec *spec) {
  td_interpreter *I = p->interpreter;
  switch (type) {
  case 's':
  case 'r':
  case 'a': return percent_text(p, value, type, spec);
  case 'c': spec->type = 'c'; return percent_character(p, value, spec);
  case 'i':
  case 'u': type = 'd'; // fall through
  case 'd':
  case 'o':
  case 'x':
  case 'X': spec->type = type; return percent_int(p, value, type, spec);
  case 'e':
  case 'E':
  case 'f':
  case 'F':
  case 'g':
  case 'G': spec->type = type; return percent_float(p, value, spec);
  default: break;
  }
  uint32_t code = td_utf8_decode(p->at - 1, NULL);
  char shown[5] = {0};
  td_utf8_encode(shown, code);
  td_raise(I, TD_CLASS_VALUE_ERROR, "unsupported format character '%s' (0x%x) at index %lld", shown, code,
           (long long)td_utf8_count(p->begin, (size_t)(p->at - 1 - p->begin)));
  return false;
}

// p->at is behind a %.
static bool percent_field(percent *p) {
  td_interpreter *I = p->interpreter;
  td_format_spec spec = {.width = -1, .precision = -1, .type_name = "int"};
  td_value named = TD_NIL;
  if (*p->at == '(' && !percent_name(p, &named)) return false;
  bool left = false, done = false;
  for (; *p->at && strchr("#0- +", *p->at); p->at++) {
    if (*p->at == '-') left = true;
    else if (*p->at == '0') spec.zero = true;
    else if (*p->at == '#') spec.alternate = true;
    else if (*p->at == '+' || !spec.sign) spec.sign = *p->at;
  }
  if ((*p->at == '*' || (*p->at >= '0' && *p->at <= '9')) && !percent_number(p, &spec.width)) goto end;
  if (spec.width < -1) left = true, spec.width = -spec.width;
  if (*p->at == '.') {
    p->at++;
    if (!percent_number(p, &spec.precision)) goto end;
    if (spec.precision < 0) spec.precision = 0;
  }
  if (left) spec.align = '<', spec.zero = false;
  while (*p->at == 'l' || *p->at == 'h' || *p->at == 'L') p->at++;
  char type = *p->at;
  if (!type) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "incomplete format");
    goto end;
  }
  p->at++;
  if (type == '%' && p->at[-2] == '%') {
    td_text_add_char(p->out, '%');
    done = true;
    goto end;
  }
  td_value value = td_is_nil(named) ? percent_value(p) : named;
  if (!td_is_nil(value) && type != '%') done = percent_convert(p, value, type, &spec);
  else if (!td_is_nil(value)) td_text_add_char(p->out, '%'), done = true;
end:
  td_unref(named);
  return done;
}

td_value td_str_percent(td_interpreter *I, td_str *format, td_value arguments) {
  td_text text = {0};
  bool tuple = td_is(arguments, &td_tuple_type),
       mapping = !tuple && !td_is(arguments, &td_str_type) && td_type_of(arguments)->item;
  percent p = {.interpreter = I,
               .at = format->data,
               .begin = format->data,
               .arguments = arguments,
               .mapping = mapping ? arguments : TD_NIL,
               .count = tuple ? td_as_tuple(arguments)->count : 1,
               .out = &text};
  const char *end = format->data + format->length;
  bool done = true;
  while (done && p.at < end) {
    const char *mark = memchr(p.at, '%', (size_t)(end - p.at));
    td_text_add_bytes(&text, p.at, (size_t)((mark ? mark : end) - p.at));
    p.at = mark ? mark + 1 : end;
    done = !mark || percent_field(&p);
  }
  if (done && p.next < p.count && !mapping) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "not all arguments converted during string formatting");
    done = false;
  }
  if (done) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}

// ---- format.format(*positional, **named) ----
typedef struct fields {
  td_interpreter *interpreter;
  td_tuple *positional;
  td_value named; // a dict or another mapping
  int64_t automatic; // number of the next {}; -1: numbers are written out
  bool counted; // {} was used
} fields;

static bool expand(fields *f, const char *at, const char *end, int depth, td_text *out);

static bool refuse(fields *f, const char *message) {
  td_raise(f->interpreter, TD_CLASS_VALUE_ERROR, "%s", message);
  return false;
}

static bool all_digits(const char *begin, const char *end, int64_t *number) {
  if (begin == end) return false;
  for (*number = 0; begin < end; begin++) {
    if (*begin < '0' || *begin > '9' || *number > INT_MAX) return false;
    *number = *number * 10 + (*begin - '0');
  }
  return true;
}

static td_value first_value(fields *f, const char *begin, const char *end) {
  td_interpreter *I = f->interpreter;
  int64_t index;
  if (begin == end) {
    if (f->automatic < 0)
      return td_raise(I, TD_CLASS_VALUE_ERROR,
                      "cannot switch from manual field specification to automatic field numbering");
    f->counted = true;
    index = f->automatic++;
  } else if (all_digits(begin, end, &index)) {
    if (f->counted)
      return td_raise(I, TD_CLASS_VALUE_ERROR,
                      "cannot switch from automatic field numbering to manual field specification");
    f->automatic = -1;
  } else {
    td_value key = td_from(td_str_new(I, begin, (size_t)(end - begin)));
    td_value value = td_is_nil(key) ? TD_NIL : td_item(I, f->named, key);
    td_unref(key);
    return value;
  }
  if (!f->positional) return td_raise(I, TD_CLASS_VALUE_ERROR, "Format string contains positional fields");
  if (index < f->positional->count) return td_ref(f->positional->items[index]);
  return td_raise(I, TD_CLASS_INDEX_ERROR, "Replacement index %lld out of range for positional args tuple",
                  (long long)index);
}

// One .name or [index] of a field; takes over value.
static td_value step(fields *f, td_value value, const char **at, const char *end) {
  td_interpreter *I = f->interpreter;
  bool index = **at == '[';
  const char *begin = ++*at;
  while (*at < end && (index ? **at != ']' : **at != '.' && **at != '[')) ++*at;
  const char *stop = *at;
  td_value next = TD_NIL;
  int64_t number;
  if (index && *at == end) refuse(f, "Missing ']' in format string");
  else if (begin == stop) refuse(f, "Empty attribute in format string");
  else if (index && ++*at < end && **at != '.' && **at != '[')
    refuse(f, "Only '.' or '[' may follow ']' in format field specifier");
  else if (index && all_digits(begin, stop, &number)) next = td_item(I, value, td_int(number));
  else {
    td_str *name = td_str_intern(I, begin, (size_t)(stop - begin));
    if (name)
      next = index ? td_item(I, value, (td_value){.tag = TD_TAG_OBJECT, .o = &name->object})
                   : td_attribute(I, value, name);
    td_unref(td_from(name));
  }
  td_unref(value);
  return next;
}

static td_value field_value(fields *f, const char *begin, const char *end) {
  const char *at = begin;
  while (at < end && *at != '.' && *at != '[') at++;
  td_value value = first_value(f, begin, at);
  while (!td_is_nil(value) && at < end) value = step(f, value, &at, end);
  return value;
}

static bool add_converted(fields *f, td_value value, char conversion, const char *spec, td_text *out) {
  td_interpreter *I = f->interpreter;
  if (!conversion) return td_format(I, value, spec, out);
  td_text text = {0};
  bool done = conversion == 's'   ? td_print(I, value, &text)
              : conversion == 'r' ? td_repr(I, value, &text)
                                  : td_ascii(I, value, &text);
  td_value converted = done ? td_from(td_str_take(I, &text)) : TD_NIL;
  td_text_clear(&text);
  done = !td_is_nil(converted) && td_format(I, converted, spec, out);
  td_unref(converted);
  return done;
}

// [begin, end) is what stands between the braces.
static bool add_field(fields *f, const char *begin, const char *end, int depth, td_text *out) {
  const char *name_end = begin;
  int brackets = 0;
  for (; name_end < end; name_end++) {
    if (*name_end == '[') brackets = 1;
    else if (*name_end == ']') brackets = 0;
    else if (*name_end == '{') return refuse(f, "unexpected '{' in field name");
    else if (!brackets && (*name_end == '!' || *name_end == ':')) break;
  }
  const char *at = name_end;
  char conversion = 0;
  if (at < end && *at == '!') {
    if (at + 1 >= end) return refuse(f, "unmatched '{' in format spec");
    conversion = at[1];
    at += 2;
    if (at < end && *at != ':') return refuse(f, "expected ':' after conversion specifier");
  }
  td_value value = field_value(f, begin, name_end);
  if (td_is_nil(value)) return false;
  td_text spec = {0};
  bool done = true;
  if (conversion && !strchr("sra", conversion)) {
    td_raise(f->interpreter, TD_CLASS_VALUE_ERROR, "Unknown conversion specifier %c", conversion);
    done = false;
  }
  td_text_add(&spec, "");
  if (done && at < end) done = expand(f, at + 1, end, depth - 1, &spec);
  if (done && spec.failed) td_raise_memory(f->interpreter), done = false;
  done = done && add_converted(f, value, conversion, spec.data, out);
  td_text_clear(&spec);
  td_unref(value);
  return done;
}

// The brace that closes the one before at; NULL: none.
static const char *closing(const char *at, const char *end) {
  int depth = 1;
  bool brackets = false, in_name = true;
  for (; at < end; at++) {
    if (in_name && *at == '[') brackets = true;
    else if (in_name && *at == ']') brackets = false;
    else if (brackets) continue;
    else if (*at == '{') depth++;
    else if (*at == '}' && --depth == 0) return at;
    else if (*at == ':' || *at == '!') in_name = false;
  }
  return NULL;
}

static bool expand(fields *f, const char *at, const char *end, int depth, td_text *out) {
  if (depth < 0) return refuse(f, "Max string recursion exceeded");
  while (at < end) {
    const char *plain = at;
    while (at < end && *at != '{' && *at != '}') at++;
    td_text_add_bytes(out, plain, (size_t)(at - plain));
    if (at == end) break;
    char brace = *at++;
    if (at < end && *at == brace) {
      td_text_add_char(out, brace);
      at++;
      continue;
    }
    if (brace == '}') return refuse(f, "Single '}' encountered in format string");
    if (at == end) return refuse(f, "Single '{' encountered in format string");
    const char *close = closing(at, end);
    if (!close) return refuse(f, "expected '}' before end of string");
    if (!add_field(f, at, close, depth, out)) return false;
    at = close + 1;
  }
  return true;
}

td_value td_str_format(td_interpreter *I, td_str *format, td_tuple *positional, td_value named) {
  td_text text = {0};
  fields f = {.interpreter = I, .positional = positional, .named = named};
  if (expand(&f, format->data, format->data + format->length, 1, &text)) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}
