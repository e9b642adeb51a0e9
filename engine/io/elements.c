// Decoding of elements. One rule for both byte orders: an element is read as bytes of the machine's order, swapped
// where the file's differs, and widened.
#include "engine/io/elements.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
  SAME = 1 << TD_ELEMENT_BOOL | 1 << TD_ELEMENT_U8 | 1 << TD_ELEMENT_I32 | 1 << TD_ELEMENT_I64 | 1 << TD_ELEMENT_F16 |
         1 << TD_ELEMENT_BF16 | 1 << TD_ELEMENT_F32 | 1 << TD_ELEMENT_F64
};

const td_element_row td_element_rows[TD_ELEMENT_KIND_COUNT] = {
#define X(NAME, size, type, text, numpy) \
  [TD_ELEMENT_##NAME] = {                \
      .name = text, .plain = numpy, .bytes = size, .dtype = type, .same = (SAME >> TD_ELEMENT_##NAME & 1) != 0},
    TD_ELEMENT_KINDS(X)
#undef X
};

void td_elements_tell(const td_input *in, const char *what, enum td_element_kind kind) {
  const td_element_row *row = &td_element_rows[kind];
  char text[320];
  if (row->same || !in->context->warn) return;
  snprintf(text, sizeof text, "%s: '%.200s' holds %s, which is read as %s", in->who, what, row->plain,
           td_dtype_name(row->dtype));
  in->context->warn(in->context->owner, text);
}

enum td_element_kind td_element_of(uint8_t dtype) {
  enum td_element_kind kind = 0;
  while (td_element_rows[kind].dtype != dtype || !td_element_rows[kind].same) kind++;
  return kind;
}

#define NATIVE_IS_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#define SWAP(bits)                                         \
  static void swap_##bits(char *elements, int64_t count) { \
    for (int64_t i = 0; i < count; i++) {                  \
      uint##bits##_t value;                                \
      memcpy(&value, elements + i * (bits / 8), bits / 8); \
      value = __builtin_bswap##bits(value);                \
      memcpy(elements + i * (bits / 8), &value, bits / 8); \
    }                                                      \
  }
SWAP(16)
SWAP(32)
SWAP(64)
#undef SWAP

void td_elements_swap(void *elements, int bytes, int64_t count) {
  if (bytes == 2) swap_16(elements, count);
  else if (bytes == 4) swap_32(elements, count);
  else if (bytes == 8) swap_64(elements, count);
}

// TYPE is the element's in the file, OUT the one in the tensor.
#define WIDEN(TYPE, OUT, SWAPPED)                                  \
  for (int64_t i = 0; i < count; i++) {                            \
    TYPE value;                                                    \
    memcpy(&value, raw + i * (int64_t)sizeof value, sizeof value); \
    OUT wide = (OUT)(swapped ? (TYPE)(SWAPPED) : value);           \
    memcpy(out + i * (int64_t)sizeof wide, &wide, sizeof wide);    \
  }                                                                \
  return -1

// Eight bits as float16's: E5M2 is its upper half; E4M3 has no infinities, and NaN where all bits but the sign are set
// (P. Micikevicius and others, FP8 Formats for Deep Learning).
static uint16_t half_of_e5m2(uint8_t bits) { return (uint16_t)(bits << 8); }

static uint16_t half_of_e4m3(uint8_t bits) {
  int exponent = bits >> 3 & 15, fraction = bits & 7;
  uint16_t sign = (uint16_t)((bits & 0x80) << 8);
  if ((bits & 0x7f) == 0x7f) return sign | 0x7e00;
  float value = exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
  return sign | td_half_from_float(value);
}

static int64_t widen_eighths(char *out, const char *raw, uint16_t (*half)(uint8_t), int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    uint16_t value = half((uint8_t)raw[i]);
    memcpy(out + i * 2, &value, 2);
  }
  return -1;
}

static int64_t widen(char *out, const char *raw, enum td_element_kind kind, bool swapped, int64_t count) {
  switch (kind) {
  case TD_ELEMENT_F8_E4M3: return widen_eighths(out, raw, half_of_e4m3, count);
  case TD_ELEMENT_F8_E5M2: return widen_eighths(out, raw, half_of_e5m2, count);
  case TD_ELEMENT_I8: WIDEN(int8_t, int32_t, value);
  case TD_ELEMENT_U16: WIDEN(uint16_t, int32_t, __builtin_bswap16(value));
  case TD_ELEMENT_I16: WIDEN(int16_t, int32_t, __builtin_bswap16((uint16_t)value));
  default: WIDEN(uint32_t, int64_t, __builtin_bswap32(value)); // U32
  }
}

static int64_t find_other(const char *elements, int64_t count) { // a byte that is no bool
  for (int64_t i = 0; i < count; i++)
    if (elements[i] & ~1) return i;
  return -1;
}

static int64_t find_negative(const char *elements, int64_t count) { // what was more than int64 can hold
  for (int64_t i = 0; i < count; i++) {
    int64_t value;
    memcpy(&value, elements + i * 8, 8);
    if (value < 0) return i;
  }
  return -1;
}

int64_t td_elements_decode(void *out, const void *raw, enum td_element_kind kind, bool big_endian, int64_t count) {
  const td_element_row *row = &td_element_rows[kind];
  bool swapped = big_endian != NATIVE_IS_BIG && row->bytes > 1;
  if (!row->same && kind != TD_ELEMENT_U64) return widen(out, raw, kind, swapped, count);
  if (count && out != raw) memmove(out, raw, (size_t)count * row->bytes);
  if (swapped) td_elements_swap(out, row->bytes, count);
  if (kind == TD_ELEMENT_BOOL) return find_other(out, count);
  return kind == TD_ELEMENT_U64 ? find_negative(out, count) : -1;
}
