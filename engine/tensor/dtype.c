// Names, sizes and promotion of element types, and the bits of the two half floats. The enum's order carries the rules:
// categories rise, and within a category the wider type comes later.
#include "engine/tensor/dtype.h"

#include <string.h>

static const struct row {
  const char *name;
  uint8_t bytes, category;
} rows[TD_DTYPE_COUNT] = {
#define X(NAME, text, type, size, kind) [TD_##NAME] = {.name = text, .bytes = size, .category = kind},
    TD_DTYPES(X)
#undef X
};

const char *td_dtype_name(uint8_t dtype) { return rows[dtype].name; }
int td_dtype_bytes(uint8_t dtype) { return rows[dtype].bytes; }
int td_dtype_category(uint8_t dtype) { return rows[dtype].category; }

int td_dtype_find(const char *text) {
  for (int i = 0; i < TD_DTYPE_COUNT; i++)
    if (!strcmp(rows[i].name, text)) return i;
  return -1;
}

uint8_t td_dtype_promote(uint8_t a, uint8_t b) {
  if (td_dtype_is_half(a) && td_dtype_is_half(b) && a != b) return TD_FLOAT32;
  return a > b ? a : b;
}

uint8_t td_dtype_weak(int category, uint8_t beside) {
  if (category <= rows[beside].category) return beside;
  return category == 1 ? TD_INT64 : TD_FLOAT32;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float td_half_to_float(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
  if (exponent) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  float value = (float)fraction * 0x1p-24f; // subnormal: exact
  return sign ? -value : value;
}

uint16_t td_half_from_float(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7c00); // 65536 and up
  if (magnitude < 0x38800000) { // below 2^-14: adding 0.5 rounds at the last place of half's subnormals
    float shifted = float_of(magnitude) + 0.5f;
    return (uint16_t)(sign | (bits_of(shifted) - 0x3f000000));
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

float td_bfloat_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t td_bfloat_from_float(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40); // quiet, so that it stays a NaN
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
