// Tensors as text, laid out as NumPy lays arrays out with ", " between elements: a first walk over the visible elements
// finds the columns' widths, a second one writes. Floats show the fewest digits that tell them apart, at most 8 behind
// the point; one exponent form for all when the largest is at least 1e8, the smallest under 1e-4 or their ratio over
// 1000: then all show as many exact digits as the longest needs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tensor/tensor.h"

enum { LINE_WIDTH = 75, EDGE = 3, PRECISION = 8, NUMBER_MAX = 48 };

typedef struct range { // of the finite elements that are not 0, in size
  double largest, smallest;
  bool finite, other, negative_infinity; // seen: finite elements, others, -inf among them
} range;

typedef struct layout {
  const td_tensor *t;
  td_text *text;
  bool summarised;
  size_t indent; // of the first line: width of the lead
  size_t line_width;
  size_t word; // width of every element
  bool scientific; // floats only, with the four widths below
  int before, after, exponent; // digits and sign before the point, digits behind it, digits of the exponent
  range range;
} layout;

typedef void visit(layout *l, int64_t index);

static int significant_bits(uint8_t dtype) {
  return dtype == TD_FLOAT64 ? 53 : dtype == TD_FLOAT32 ? 24 : dtype == TD_FLOAT16 ? 11 : 8;
}

// ---- one number ----

typedef struct pieces { // "-12." "5" "e+03" without the point and the e
  char text[NUMBER_MAX];
  const char *after, *exponent; // in text
  int before_length, after_length, exponent_length; // the exponent's with its sign; 0: none
} pieces;

// Cuts "-1.2500e+06" or "0.5" into pieces and drops zeros at the end of the fraction.
static void cut(pieces *p) {
  char *end = p->text + strlen(p->text), *point = strchr(p->text, '.'), *mark = strchr(p->text, 'e');
  p->exponent = mark ? mark + 1 : end;
  p->exponent_length = (int)(end - p->exponent);
  p->before_length = (int)(point - p->text);
  p->after = point + 1;
  p->after_length = (int)((mark ? mark : end) - p->after);
  while (p->after_length && p->after[p->after_length - 1] == '0') p->after_length--;
}

static void cut_scientific(pieces *p, double value, int bits) {
  char digits[24];
  int point, count = td_number_digits_bits(value, bits, digits, &point);
  const char *sign = signbit(value) ? "-" : "";
  if (count > PRECISION + 1) snprintf(p->text, sizeof p->text, "%.*e", PRECISION, value);
  else snprintf(p->text, sizeof p->text, "%s%c.%se%+03d", sign, digits[0], digits + 1, value == 0 ? 0 : point - 1);
  cut(p);
}

static void cut_positional(pieces *p, double value, int bits) { // |value| < 1e8
  char digits[24];
  int point, count = td_number_digits_bits(value, bits, digits, &point), whole = point > 0 ? point : 0;
  const char *sign = signbit(value) ? "-" : "";
  if (count - point > PRECISION) snprintf(p->text, sizeof p->text, "%.*f", PRECISION, value);
  else if (point <= 0) snprintf(p->text, sizeof p->text, "%s0.%.*s%s", sign, -point, "00000000", digits);
  else if (count <= whole) snprintf(p->text, sizeof p->text, "%.0f.", value); // every digit before the point is shown
  else snprintf(p->text, sizeof p->text, "%s%.*s.%s", sign, whole, digits, digits + whole);
  cut(p);
}

// ---- walking the visible elements ----

static bool is_shortened(const layout *l, int axis) { return l->summarised && l->t->shape[axis] > 2 * EDGE; }

static void walk(layout *l, int axis, int64_t index, visit *see) {
  const td_tensor *t = l->t;
  if (axis == t->rank) {
    see(l, index);
    return;
  }
  for (int64_t i = 0; i < t->shape[axis]; i++) {
    if (i == EDGE && is_shortened(l, axis)) i = t->shape[axis] - EDGE;
    walk(l, axis + 1, index * t->shape[axis] + i, see);
  }
}

static void see_range(layout *l, int64_t index) {
  range *f = &l->range;
  double value = td_tensor_get_float(l->t, index), size = fabs(value);
  if (!isfinite(value)) {
    f->other = true;
    f->negative_infinity |= value < 0;
    return;
  }
  f->finite = true;
  if (size == 0) return;
  if (size > f->largest) f->largest = size;
  if (size < f->smallest) f->smallest = size;
}

static void widen(int *width, int needed) {
  if (*width < needed) *width = needed;
}

static void see_widths(layout *l, int64_t index) {
  pieces p = {.text = ""};
  double value = td_tensor_get_float(l->t, index);
  if (!isfinite(value)) return;
  if (l->scientific) cut_scientific(&p, value, significant_bits(l->t->dtype));
  else cut_positional(&p, value, significant_bits(l->t->dtype));
  widen(&l->before, p.before_length);
  widen(&l->after, p.after_length);
  widen(&l->exponent, p.exponent_length - 1);
}

static double in_dtype(double value, uint8_t dtype) { // NumPy compares and divides in the array's own precision
  if (dtype == TD_FLOAT64) return value;
  if (dtype == TD_FLOAT16) return td_half_to_float(td_half_from_float((float)value));
  return dtype == TD_FLOAT32 ? (float)value : td_bfloat_to_float(td_bfloat_from_float((float)value));
}

static bool wants_exponents(const range *r, uint8_t dtype) {
  if (r->largest == 0) return false;
  return r->largest >= in_dtype(1e8, dtype) || r->smallest < in_dtype(1e-4, dtype) ||
         in_dtype(r->largest / r->smallest, dtype) > 1000;
}

static void measure_floats(layout *l) {
  range *f = &l->range;
  f->smallest = INFINITY;
  walk(l, 0, 0, see_range);
  l->scientific = wants_exponents(f, l->t->dtype);
  if (f->finite) walk(l, 0, 0, see_widths);
  int behind = l->after + (l->scientific ? l->exponent + 2 : 0) + 1;
  if (f->other) widen(&l->before, 3 + f->negative_infinity - behind);
  l->word = (size_t)(l->before + behind);
}

static int integer_width(int64_t value) {
  char buffer[32];
  return snprintf(buffer, sizeof buffer, "%lld", (long long)value);
}

static void see_integer(layout *l, int64_t index) { widen(&l->before, integer_width(td_tensor_get_int(l->t, index))); }

static void measure(layout *l) {
  if (l->t->dtype == TD_BOOL) {
    l->word = 5;
  } else if (td_dtype_is_float(l->t->dtype)) {
    measure_floats(l);
  } else {
    walk(l, 0, 0, see_integer);
    l->word = (size_t)l->before;
  }
}

// ---- writing ----

static void write_fill(td_text *text, int64_t count, char fill) {
  if (count > 0) td_text_pad(text, text->length + (size_t)count, fill);
}

static void write_positional(const layout *l, double value) {
  pieces p = {.text = ""};
  cut_positional(&p, value, significant_bits(l->t->dtype));
  write_fill(l->text, l->before - p.before_length, ' ');
  td_text_add_bytes(l->text, p.text, (size_t)p.before_length);
  td_text_add_char(l->text, '.');
  td_text_add_bytes(l->text, p.after, (size_t)p.after_length);
  write_fill(l->text, l->after - p.after_length, ' ');
}

static void write_scientific(const layout *l, double value) {
  pieces p = {.text = ""};
  snprintf(p.text, sizeof p.text, "%#.*e", l->after, value);
  cut(&p);
  write_fill(l->text, l->before - p.before_length, ' ');
  td_text_add_bytes(l->text, p.text, (size_t)(p.exponent - p.text) + 1);
  write_fill(l->text, l->exponent - (p.exponent_length - 1), '0');
  td_text_add(l->text, p.exponent + 1);
}

static void write_float(const layout *l, double value) {
  if (!isfinite(value)) td_text_print(l->text, "%*s", (int)l->word, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
  else if (l->scientific) write_scientific(l, value);
  else write_positional(l, value);
}

static void write_element(const layout *l, int64_t index) {
  if (td_dtype_is_float(l->t->dtype)) write_float(l, td_tensor_get_float(l->t, index));
  else if (l->t->dtype == TD_BOOL) td_text_add(l->text, td_tensor_get_int(l->t, index) ? " True" : "False");
  else td_text_print(l->text, "%*lld", (int)l->word, (long long)td_tensor_get_int(l->t, index));
}

static void write_line_start(const layout *l, int64_t breaks, size_t indent) {
  while (l->text->length && l->text->data[l->text->length - 1] == ' ') l->text->length--;
  write_fill(l->text, breaks, '\n');
  write_fill(l->text, (int64_t)indent, ' ');
}

static void write_row(const layout *l, int axis, int64_t index) { // the last axis: breaks lines that get too long
  int64_t size = l->t->shape[axis];
  size_t indent = l->indent + (size_t)axis + 1, column = indent, most = l->line_width - (size_t)axis - 1;
  for (int64_t i = 0; i < size; i++) {
    bool dots = i == EDGE && is_shortened(l, axis);
    size_t width = dots ? 3 : l->word;
    if (column > indent && column + width > most) {
      write_line_start(l, 1, indent);
      column = indent;
    }
    if (dots) td_text_add(l->text, "...");
    else write_element(l, index * size + i);
    if (dots) i = size - EDGE - 1;
    if (i + 1 < size) td_text_add(l->text, ", ");
    column += width + 2;
  }
}

static void write_axis(const layout *l, int axis, int64_t index) {
  int64_t size = l->t->shape[axis];
  td_text_add_char(l->text, '[');
  if (axis == l->t->rank - 1) write_row(l, axis, index);
  for (int64_t i = 0; axis < l->t->rank - 1 && i < size; i++) {
    if (i) {
      td_text_add_char(l->text, ',');
      write_line_start(l, l->t->rank - 1 - axis, l->indent + (size_t)axis + 1);
    }
    if (i == EDGE && is_shortened(l, axis)) {
      td_text_add(l->text, "...");
      i = size - EDGE - 1;
    } else {
      write_axis(l, axis + 1, index * size + i);
    }
  }
  td_text_add_char(l->text, ']');
}

static void write_empty(const td_tensor *t, td_text *text) {
  td_text_add(text, "[]");
  if (t->rank == 1) return;
  for (int i = 0; i < t->rank; i++) td_text_print(text, i ? ", %lld" : ", shape=(%lld", (long long)t->shape[i]);
  td_text_add_char(text, ')');
}

void td_tensor_print(const td_tensor *t, td_text *text, int64_t threshold, const char *lead) {
  size_t indent = lead ? strlen(lead) : 0;
  if (t->rank == 0) {
    td_tensor_print_element(t, 0, text);
  } else if (t->size == 0) {
    write_empty(t, text);
  } else {
    layout l = {.t = t, .text = text, .indent = indent, .line_width = LINE_WIDTH - (indent > 0)};
    l.summarised = threshold >= 0 && t->size > threshold;
    measure(&l);
    write_axis(&l, 0, 0);
  }
}

void td_tensor_print_element(const td_tensor *t, int64_t index, td_text *text) {
  char buffer[TD_NUMBER_TEXT];
  if (td_dtype_is_float(t->dtype)) {
    td_number_print_bits(buffer, td_tensor_get_float(t, index), significant_bits(t->dtype));
    td_text_add(text, buffer);
  } else if (t->dtype == TD_BOOL) {
    td_text_add(text, td_tensor_get_int(t, index) ? "True" : "False");
  } else {
    td_text_print(text, "%lld", (long long)td_tensor_get_int(t, index));
  }
}
