// Shortest decimal digits that read back as the same number of its format, nearest to the value among the shortest;
// ties go to the even digit. The value and the two ends of the interval that rounds to it are scaled exactly in 128
// bits, to 17 (float: 9) digits before the point; the longest run of final zeros that fits between the ends gives the
// answer. Values whose scaling needs more bits are found by printing and reading back.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"

typedef unsigned __int128 wide;

static const uint64_t powers[20] = {1u,
                                    10u,
                                    100u,
                                    1000u,
                                    10000u,
                                    100000u,
                                    1000000u,
                                    10000000u,
                                    100000000u,
                                    1000000000u,
                                    10000000000u,
                                    100000000000u,
                                    1000000000000u,
                                    10000000000000u,
                                    100000000000000u,
                                    1000000000000000u,
                                    10000000000000000u,
                                    100000000000000000u,
                                    1000000000000000000u,
                                    10000000000000000000u};

typedef struct
    format { // significant bits, exponent of the last bit of the smallest numbers, digits that always suffice
  int bits, least, digits_safe, digits_enough;
} format;

static format format_of(int bits) {
  switch (bits) {
  case 8: return (format){8, -133, 1, 4};
  case 11: return (format){11, -24, 1, 5};
  case 24: return (format){24, -149, 6, 9};
  default: return (format){53, -1074, 15, 17};
  }
}

typedef struct parts { // value = mantissa * 2^exponent
  uint64_t mantissa;
  int exponent;
  bool subnormal, boundary; // boundary: the gap below is half the gap above
} parts;

static parts parts_of(double value, const format *f) {
  int exponent;
  double fraction = frexp(value, &exponent); // [0.5, 1)
  parts p = {.exponent = exponent - f->bits};
  p.subnormal = p.exponent < f->least;
  if (p.subnormal) p.exponent = f->least;
  p.mantissa = (uint64_t)ldexp(fraction, exponent - p.exponent);
  p.boundary = p.mantissa == (uint64_t)1 << (f->bits - 1) && p.exponent > f->least;
  return p;
}

// Finds the whole part of units * 2^exponent * 10^scale and whether it is exact. False: does not fit in 128 bits.
typedef struct scaler {
  wide factor, divisor;
  int shift; // right shift of the product, negative: to the left
} scaler;

static bool scaler_new(scaler *s, int exponent, int scale, int unit_bits) {
  int five_bits = 0;
  *s = (scaler){1, 1, 0};
  for (int i = 0; i < (scale < 0 ? -scale : scale); i++) {
    if (i >= 45) return false;
    if (scale > 0) s->factor *= 5;
    else s->divisor *= 10;
  }
  for (wide f = s->factor; f; f >>= 1) five_bits++;
  s->shift = -(exponent + (scale > 0 ? scale : 0));
  if (scale < 0 && s->shift > 0) return false;
  if (unit_bits + five_bits + (s->shift < 0 ? -s->shift : 0) > 127) return false;
  return s->shift < 128 && scale > -38;
}

static uint64_t scaler_apply(const scaler *s, uint64_t units, wide *rest, wide *whole) {
  wide product = s->factor * units;
  if (s->shift > 0) {
    *whole = (wide)1 << s->shift;
    *rest = product & (*whole - 1);
    return (uint64_t)(product >> s->shift);
  }
  product <<= -s->shift;
  *whole = s->divisor;
  if (s->divisor == 1) {
    *rest = 0;
    return (uint64_t)product;
  }
  *rest = product % s->divisor;
  return (uint64_t)(product / s->divisor);
}

// The multiple of 10^zeros nearest to n + rest/whole; ties to an even digit.
static uint64_t round_to(uint64_t n, int zeros, wide rest, wide whole) {
  uint64_t unit = powers[zeros], below = n / unit, over = n % unit;
  int side; // of the value against the middle: -1, 0, 1
  if (zeros == 0) side = rest * 2 < whole ? -1 : rest * 2 > whole;
  else side = over < unit / 2 ? -1 : over > unit / 2 || rest > 0;
  return (below + (side > 0 || (side == 0 && (below & 1)))) * unit;
}

static bool digits_scaled(const parts *p, const format *f, int guess, uint64_t *number, int *point) {
  int wanted = f->digits_enough, scale = wanted - guess;
  scaler s;
  wide rest, whole, unused;
  if (!scaler_new(&s, p->exponent - 2, scale, f->bits + 3)) return false;
  uint64_t middle = scaler_apply(&s, p->mantissa * 4, &rest, &whole);
  wide low_rest, high_rest;
  uint64_t low = scaler_apply(&s, p->mantissa * 4 - (p->boundary ? 1 : 2), &low_rest, &unused);
  uint64_t high = scaler_apply(&s, p->mantissa * 4 + 2, &high_rest, &unused);
  bool closed = !(p->mantissa & 1); // the ends themselves read back as an even mantissa
  low += low_rest > 0 || !closed;
  high -= high_rest == 0 && !closed;
  int zeros = 0;
  while (zeros < wanted && high / powers[zeros + 1] * powers[zeros + 1] >= low) zeros++;
  uint64_t best = round_to(middle, zeros, rest, whole);
  if (best < low) best += powers[zeros];
  if (best > high) best -= powers[zeros];
  *number = best;
  *point = -scale;
  return true;
}

static bool reads_back(double value, const format *f, uint64_t number, int exponent) {
  char text[48];
  snprintf(text, sizeof text, "%llue%d", (unsigned long long)number, exponent);
  if (f->bits == 24) return strtof(text, NULL) == (float)value;
  double read = strtod(text, NULL);
  if (f->bits == 53 || isinf(read)) return read == value;
  int last;
  frexp(read, &last);
  last = last - f->bits < f->least ? f->least : last - f->bits;
  return ldexp(nearbyint(ldexp(read, -last)), last) == value;
}

static void digits_tried(double value, const parts *p, const format *f, uint64_t *number, int *point) {
  for (int count = p->subnormal ? 1 : f->digits_safe;; count++) {
    char text[48], *end = text + 1;
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    uint64_t n = (uint64_t)(text[0] - '0');
    for (end += *end == '.'; *end >= '0' && *end <= '9'; end++) n = n * 10 + (uint64_t)(*end - '0');
    int exponent = (int)strtol(end + 1, NULL, 10) - (count - 1);
    *point = exponent;
    *number = n;
    if (count >= f->digits_enough || reads_back(value, f, n, exponent)) return;
    *number = n + 1; // beside a power of two the nearest may lie outside while the next one above is inside
    if (p->boundary && reads_back(value, f, n + 1, exponent)) return;
  }
}

int td_number_digits_bits(double value, int significant, char digits[24], int *point) {
  value = fabs(value);
  if (value == 0) {
    memcpy(digits, "0", 2);
    *point = 1;
    return 1;
  }
  format f = format_of(significant);
  parts p = parts_of(value, &f);
  uint64_t number;
  int exponent, bits;
  frexp(value, &bits);
  int guess = (int)ceil((bits - 1) * 0.30102999566398120 - 1e-9); // 10^(guess - 1) <= 2^(bits - 1), up to one too small
  if (!digits_scaled(&p, &f, guess, &number, &exponent)) digits_tried(value, &p, &f, &number, &exponent);
  while (number % 10 == 0) {
    number /= 10;
    exponent++;
  }
  char reversed[24];
  int count = 0;
  for (; number; number /= 10) reversed[count++] = (char)('0' + number % 10);
  for (int i = 0; i < count; i++) digits[i] = reversed[count - 1 - i];
  digits[count] = 0;
  *point = count + exponent;
  return count;
}

static int print_digits(char *out, const char *digits, int count, int point) {
  char *start = out;
  if (point <= -4 || point > 16) {
    *out++ = digits[0];
    if (count > 1) *out++ = '.';
    memcpy(out, digits + 1, (size_t)count - 1);
    out += count - 1;
    out += snprintf(out, 8, "e%c%02d", point > 0 ? '+' : '-', abs(point - 1));
  } else if (point <= 0) {
    memcpy(out, "0.0000", 2 + (size_t)-point);
    out += 2 - point;
    memcpy(out, digits, (size_t)count);
    out += count;
  } else {
    for (int i = 0; i < point; i++) *out++ = i < count ? digits[i] : '0';
    *out++ = '.';
    if (count <= point) *out++ = '0';
    for (int i = point; i < count; i++) *out++ = digits[i];
  }
  *out = 0;
  return (int)(out - start);
}

int td_number_digits(double value, bool single, char digits[24], int *point) {
  return td_number_digits_bits(value, single ? 24 : 53, digits, point);
}

int td_number_print_bits(char buffer[TD_NUMBER_TEXT], double value, int significant) {
  if (isnan(value)) {
    memcpy(buffer, "nan", 4);
    return 3;
  }
  int sign = signbit(value) != 0;
  buffer[0] = '-';
  if (isinf(value)) {
    memcpy(buffer + sign, "inf", 4);
    return 3 + sign;
  }
  char digits[24];
  int point, count = td_number_digits_bits(value, significant, digits, &point);
  return sign + print_digits(buffer + sign, digits, count, point);
}

int td_number_print(char buffer[TD_NUMBER_TEXT], double value) { return td_number_print_bits(buffer, value, 53); }
int td_number_print_float(char buffer[TD_NUMBER_TEXT], float value) {
  return td_number_print_bits(buffer, (double)value, 24);
}
