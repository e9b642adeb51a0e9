// Reading of tables. One pass cuts the file into fields; numbers are then read where they lie, texts are copied when
// they are asked for. Decimal numbers of up to 15 digits and small exponents are exact by one multiplication or
// division of doubles (W. D. Clinger, How to Read Floating Point Numbers Accurately); others go to strtod.
#include "engine/io/csv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/memory.h"
#include "engine/io/utf8.h"

enum { NUMBER_MAX = 400 };

// ---- errors ----

static void find_place(const td_csv *csv, uint64_t byte, int64_t *line,
                       int64_t *column) { // counted from 1; columns in characters
  const uint8_t *bytes = csv->in.bytes;
  *line = *column = 1;
  for (uint64_t i = 0; i < byte; i++) {
    bool ends = bytes[i] == '\n' || (bytes[i] == '\r' && (i + 1 >= csv->in.size || bytes[i + 1] != '\n'));
    *column = ends ? 1 : *column + ((bytes[i] & 0xc0) != 0x80 && !(i < 3 && bytes[0] == 0xef));
    *line += ends;
  }
}

__attribute__((format(printf, 3, 4))) static int refuse(const td_csv *csv, uint64_t byte, const char *format, ...) {
  char reason[240];
  int64_t line, column;
  va_list list;
  va_start(list, format);
  vsnprintf(reason, sizeof reason, format, list);
  va_end(list);
  find_place(csv, byte, &line, &column);
  return td_input_refuse(&csv->in, byte, "line %lld, column %lld: %s", (long long)line, (long long)column, reason);
}

// ---- cutting ----

static int add_field(td_csv *csv, int64_t count, td_csv_field field) {
  if (count == csv->capacity) {
    int64_t larger = csv->capacity ? csv->capacity * 2 : 256;
    td_csv_field *grown = td_memory_resize(csv->fields, (size_t)larger * sizeof *grown);
    if (!grown) return td_error_memory(csv->in.context, csv->in.who, td_memory_failed());
    csv->fields = grown;
    csv->capacity = larger;
  }
  csv->fields[count] = field;
  return TD_OK;
}

static bool ends_field(const td_csv *csv, size_t at) {
  if (at >= csv->in.size) return true;
  uint8_t c = csv->in.bytes[at];
  return c == (uint8_t)csv->delimiter || c == '\n' || c == '\r';
}

static int cut_quoted(td_csv *csv, size_t *at, td_csv_field *field) { // at its opening quote
  const uint8_t *bytes = csv->in.bytes, *quote = bytes + *at;
  size_t begin = *at + 1, end = begin;
  do {
    quote = memchr(bytes + end, '"', csv->in.size - end);
    if (!quote) return refuse(csv, *at, "the quote that opens here is never closed");
    end = (size_t)(quote - bytes) + 2;
  } while (end <= csv->in.size && bytes[end - 1] == '"');
  end -= 2;
  if (!ends_field(csv, end + 1)) return refuse(csv, end + 1, "text follows the closing quote of a field");
  if (end - begin > UINT32_MAX) return refuse(csv, begin, "the field is longer than 4 GiB");
  *field = (td_csv_field){begin, (uint32_t)(end - begin), true};
  *at = end + 1;
  return TD_OK;
}

static int cut_field(td_csv *csv, size_t *at, td_csv_field *field) {
  size_t begin = *at;
  if (begin < csv->in.size && csv->in.bytes[begin] == '"') return cut_quoted(csv, at, field);
  while (!ends_field(csv, *at)) ++*at;
  if (*at - begin > UINT32_MAX) return refuse(csv, begin, "the field is longer than 4 GiB");
  *field = (td_csv_field){begin, (uint32_t)(*at - begin), false};
  return TD_OK;
}

static void skip_line_end(const td_csv *csv, size_t *at) {
  if (*at < csv->in.size && csv->in.bytes[*at] == '\r') ++*at;
  if (*at < csv->in.size && csv->in.bytes[*at] == '\n') ++*at;
}

static int cut_row(td_csv *csv, size_t *at) {
  size_t begin = *at;
  int64_t count = 0, before = csv->rows * csv->columns;
  for (bool more = true; more; count++) {
    td_csv_field field = {0};
    int code = cut_field(csv, at, &field);
    if (!code) code = add_field(csv, before + count, field);
    if (code) return code;
    more = *at < csv->in.size && csv->in.bytes[*at] == (uint8_t)csv->delimiter;
    if (more) ++*at;
  }
  if (!csv->columns) csv->columns = count;
  if (count != csv->columns)
    return refuse(csv, begin, "the row has %lld fields, those before it have %lld", (long long)count,
                  (long long)csv->columns);
  csv->rows++;
  skip_line_end(csv, at);
  return TD_OK;
}

static int cut(td_csv *csv, size_t *at, int64_t count) {
  const td_input *in = &csv->in;
  while (*at < in->size && csv->rows < count) {
    if (in->bytes[*at] == '\n' || in->bytes[*at] == '\r') {
      skip_line_end(csv, at);
      continue;
    }
    int code = cut_row(csv, at);
    if (code) return code;
    if (atomic_load_explicit(&in->context->interrupt, memory_order_relaxed))
      return td_error_set(in->context, TD_ERROR_INTERRUPT, "%s: '%s': interrupted", in->who, in->path);
  }
  return TD_OK;
}

static int check_text(const td_csv *csv, uint64_t begin, uint64_t end) {
  int64_t wrong = td_utf8_wrong(csv->in.bytes + begin, (size_t)(end - begin));
  if (wrong < 0) return TD_OK;
  if (csv->in.size > 2 && csv->in.bytes[0] == 0x1f && csv->in.bytes[1] == 0x8b)
    return refuse(csv, 0, "the file is compressed by gzip: unpack it first");
  wrong += (int64_t)begin;
  return refuse(csv, (uint64_t)wrong, "the text is not UTF-8: %02x is part of no character", csv->in.bytes[wrong]);
}

int td_csv_next(td_csv *csv, uint64_t *at, int64_t count) {
  const td_input *in = &csv->in;
  uint64_t begin = *at < in->size ? *at : in->size;
  size_t end = !begin && in->size >= 3 && !memcmp(in->bytes, "\xef\xbb\xbf", 3) ? 3 : (size_t)begin;
  csv->rows = 0;
  int code = cut(csv, &end, count);
  if (!code) code = check_text(csv, begin, end);
  if (!code) code = td_input_check(in);
  *at = end;
  return code;
}

int td_csv_begin(td_context *context, const char *who, const char *path, char delimiter, td_csv *csv) {
  *csv = (td_csv){.delimiter = delimiter};
  return td_input_open(&csv->in, context, who, path);
}

int td_csv_open(td_context *context, const char *path, char delimiter, td_csv *csv) {
  uint64_t at = 0;
  int code = td_csv_begin(context, "load_csv", path, delimiter, csv);
  if (!code) code = check_text(csv, 0, csv->in.size);
  if (!code) code = td_csv_next(csv, &at, INT64_MAX);
  if (code) td_csv_close(csv);
  return code;
}

void td_csv_close(td_csv *csv) {
  td_memory_free(csv->fields);
  csv->fields = NULL;
  td_input_close(&csv->in);
}

// ---- fields ----

static const td_csv_field *field_at(const td_csv *csv, int64_t row, int64_t column) {
  return &csv->fields[row * csv->columns + column];
}

bool td_csv_text(const td_csv *csv, int64_t row, int64_t column, td_text *out) {
  const td_csv_field *f = field_at(csv, row, column);
  const char *at = (const char *)csv->in.bytes + f->begin, *end = at + f->length;
  while (at < end) {
    const char *quote = f->quoted ? memchr(at, '"', (size_t)(end - at)) : NULL;
    const char *stop = quote ? quote + 1 : end;
    td_text_add_bytes(out, at, (size_t)(stop - at));
    at = quote ? stop + 1 : end; // of two quotes one is kept
  }
  td_text_add(out, "");
  return !out->failed;
}

static void trim(const td_csv *csv, const td_csv_field *f, const char **begin, size_t *length) {
  const char *at = (const char *)csv->in.bytes + f->begin, *end = at + f->length;
  while (at < end && (*at == ' ' || *at == '\t')) at++;
  while (end > at && (end[-1] == ' ' || end[-1] == '\t')) end--;
  *begin = at;
  *length = (size_t)(end - at);
}

static bool is_word(const char *at, size_t length, const char *word) {
  return strlen(word) == length && !strncasecmp(at, word, length);
}

static bool is_missing(const char *at, size_t length) {
  static const char *const words[] = {"", "na", "n/a", "nan", "null", "none"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is_word(at, length, words[i])) return true;
  return false;
}

bool td_csv_missing(const td_csv *csv, int64_t row, int64_t column) {
  const char *at;
  size_t length;
  trim(csv, field_at(csv, row, column), &at, &length);
  return is_missing(at, length);
}

// ---- numbers ----

typedef struct number {
  bool truth; // the word true or false: 1 or 0
  bool whole; // integer holds it
  int64_t integer; // exact
  double real;
} number;

static bool read_slowly(const char *at, size_t length, double *real) {
  char text[NUMBER_MAX + 1], *end;
  if (length > NUMBER_MAX) return false;
  memcpy(text, at, length);
  text[length] = 0;
  *real = strtod(text, &end);
  return end == text + length;
}

typedef struct decimal {
  uint64_t digits;
  int count, exponent;
  bool whole;
} decimal;

static bool read_exponent(const char *at, const char *end, int *exponent) {
  bool negative = at < end && *at == '-';
  int value = 0;
  if (at < end && (*at == '-' || *at == '+')) at++;
  if (at == end) return false;
  for (; at < end; at++) {
    if (*at < '0' || *at > '9') return false;
    if (value < 100000) value = value * 10 + (*at - '0');
  }
  *exponent += negative ? -value : value;
  return true;
}

// Digits, a point among them, an exponent. Digits past the 19th are counted and not kept.
static bool read_decimal(const char *at, const char *end, decimal *d) {
  bool any = false, point = false;
  *d = (decimal){.whole = true};
  for (; at < end; at++) {
    if (*at == '.' && !point) {
      point = true;
      d->whole = false;
    } else if (*at >= '0' && *at <= '9') {
      any = true;
      if (d->count < 19) d->digits = d->digits * 10 + (uint64_t)(*at - '0');
      d->count += d->digits != 0;
      d->exponent -= point;
    } else {
      break;
    }
  }
  if (!any) return false;
  if (at == end) return true;
  d->whole = false;
  return (*at == 'e' || *at == 'E') && read_exponent(at + 1, end, &d->exponent);
}

static bool read_number(const char *at, size_t length, number *n) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char *end = at + length, *begin = at;
  bool negative = at < end && *at == '-';
  decimal d;
  n->truth = is_word(at, length, "true") || is_word(at, length, "false");
  n->whole = n->truth;
  if (n->truth) return n->real = (double)(n->integer = length == 4), true;
  if (at < end && (*at == '-' || *at == '+')) at++;
  if (is_word(at, (size_t)(end - at), "inf") || is_word(at, (size_t)(end - at), "infinity"))
    return n->real = negative ? -INFINITY : INFINITY, true;
  if (!read_decimal(at, end, &d)) return false;
  if (d.whole && d.count <= 18) {
    n->whole = true;
    n->integer = negative ? -(int64_t)d.digits : (int64_t)d.digits;
  }
  if (d.count <= 15 && d.exponent >= -22 && d.exponent <= 22) {
    double real = d.exponent < 0 ? (double)d.digits / powers[-d.exponent] : (double)d.digits * powers[d.exponent];
    n->real = negative ? -real : real;
    return true;
  }
  return read_slowly(begin, length, &n->real);
}

static bool numbers_columns(const td_csv *csv) { // ",0,1,2": what pandas writes over an index where names are numbers
  for (int64_t column = 0; column < csv->columns; column++) {
    const char *at;
    size_t length;
    number n = {0};
    trim(csv, field_at(csv, 0, column), &at, &length);
    bool fits = column ? length && read_number(at, length, &n) && n.whole && n.integer == column - 1 : !length;
    if (!fits) return false;
  }
  return csv->columns > 1;
}

bool td_csv_has_header(const td_csv *csv) {
  if (csv->rows && numbers_columns(csv)) return true;
  for (int64_t column = 0; column < csv->columns && csv->rows; column++) {
    const char *at;
    size_t length;
    number n;
    trim(csv, field_at(csv, 0, column), &at, &length);
    bool above_index = !length && !column && csv->columns > 1;
    if (!above_index && (!length || read_number(at, length, &n) || is_word(at, length, "nan"))) return false;
  }
  return csv->rows > 0;
}

enum td_csv_kind td_csv_kind_of(const td_csv *csv, int64_t column, int64_t first, bool filled) {
  bool any_truth = false, any_other = !filled && first >= csv->rows, all_whole = first < csv->rows;
  for (int64_t row = first; row < csv->rows; row++) {
    const char *at;
    size_t length;
    number n = {0};
    trim(csv, field_at(csv, row, column), &at, &length);
    bool missing = is_missing(at, length);
    if (missing && filled) continue;
    if (!missing && !read_number(at, length, &n)) return TD_CSV_TEXTS;
    any_truth |= n.truth;
    any_other |= !n.truth;
    all_whole &= n.whole;
  }
  if (any_truth) return any_other ? TD_CSV_TEXTS : TD_CSV_BOOLS;
  if (!any_other) return TD_CSV_NOTHING;
  return all_whole ? TD_CSV_INTEGERS : TD_CSV_FLOATS;
}

enum td_csv_kind td_csv_kind_join(enum td_csv_kind a, enum td_csv_kind b) {
  bool mixes = a != TD_CSV_NOTHING && b != TD_CSV_NOTHING && (a == TD_CSV_BOOLS) != (b == TD_CSV_BOOLS);
  if (mixes) return TD_CSV_TEXTS;
  return a > b ? a : b;
}

static number number_of(double real) {
  bool whole = real == floor(real) && fabs(real) < 9e18;
  return (number){.whole = whole, .integer = whole ? (int64_t)real : 0, .real = real};
}

static const char *put_integer(void *out, uint8_t dtype, const number *given) { // NULL, or what is wrong
  number real = number_of(given->real); // 31.0 is whole too: what is written where others are missing
  const number *n = given->whole || fabs(given->real) >= 0x1p53 ? given : &real;
  if (!n->whole) return "the number is not whole, or is past what int64 can hold";
  if (dtype == TD_INT64) *(int64_t *)out = n->integer;
  else if (dtype == TD_INT32 && n->integer == (int32_t)n->integer) *(int32_t *)out = (int32_t)n->integer;
  else if (dtype == TD_UINT8 && n->integer == (uint8_t)n->integer) *(uint8_t *)out = (uint8_t)n->integer;
  else if (dtype == TD_BOOL && (n->integer == 0 || n->integer == 1)) *(uint8_t *)out = (uint8_t)n->integer;
  else return "the dtype can't hold the number";
  return NULL;
}

static void put_real(void *out, uint8_t dtype, double real) {
  if (dtype == TD_FLOAT64) *(double *)out = real;
  else if (dtype == TD_FLOAT32) *(float *)out = (float)real;
  else *(uint16_t *)out = dtype == TD_FLOAT16 ? td_half_from_float((float)real) : td_bfloat_from_float((float)real);
}

static int put(const td_csv *csv, int64_t row, int64_t column, uint8_t dtype, double fill, void *out) {
  const td_csv_field *f = field_at(csv, row, column);
  const char *at, *wrong = NULL;
  size_t length;
  number n = number_of(fill);
  trim(csv, f, &at, &length);
  bool missing = is_missing(at, length), real = td_dtype_is_float(dtype);
  if (missing && !real && isnan(fill)) wrong = "a value is missing, and the dtype has no NaN for it";
  else if (!missing && !read_number(at, length, &n))
    return refuse(csv, f->begin, "'%.*s' is not a number", (int)(length < 40 ? length : 40), at);
  else if (real) put_real(out, dtype, n.real);
  else wrong = put_integer(out, dtype, &n);
  return wrong ? refuse(csv, f->begin, "%s: %s", td_dtype_name(dtype), wrong) : TD_OK;
}

int td_csv_numbers(td_csv *csv, const int64_t *columns, int64_t count, int64_t first, uint8_t dtype,
                   const double *missing, td_tensor **out) {
  *out = NULL;
  td_tensor *t = td_tensor_new(csv->in.context, dtype, 2, (const int64_t[]){csv->rows - first, count});
  if (!t) return csv->in.context->error.code;
  char *place = t->data;
  int code = TD_OK;
  for (int64_t row = first; !code && row < csv->rows; row++)
    for (int64_t i = 0; !code && i < count; i++, place += td_dtype_bytes(dtype))
      code = put(csv, row, columns[i], dtype, missing ? missing[i] : NAN, place);
  if (code) td_tensor_unref(t);
  else *out = t;
  return code;
}

// ---- writing ----

void td_csv_add(td_text *out, const char *bytes, size_t length, char delimiter) {
  bool plain = true;
  for (size_t i = 0; i < length; i++)
    plain &= bytes[i] != delimiter && bytes[i] != '"' && bytes[i] != '\n' && bytes[i] != '\r';
  if (plain && length && bytes[0] != ' ' && bytes[length - 1] != ' ') {
    td_text_add_bytes(out, bytes, length);
    return;
  }
  td_text_add_char(out, '"');
  for (size_t i = 0; i < length; i++) {
    if (bytes[i] == '"') td_text_add_char(out, '"');
    td_text_add_char(out, bytes[i]);
  }
  td_text_add_char(out, '"');
}
