// Element types and the rules of promotion. float16 and bfloat16 are storage types: arithmetic on them is float32's.
#ifndef TD_TENSOR_DTYPE_H
#define TD_TENSOR_DTYPE_H
#include <stdbool.h>
#include <stdint.h>

// X(NAME, text, C type, bytes, category): category 0 bool, 1 integer, 2 floating
#define TD_DTYPES(X)                                                                                                   \
  X(BOOL, "bool", uint8_t, 1, 0) X(UINT8, "uint8", uint8_t, 1, 1) X(INT32, "int32", int32_t, 4, 1)                     \
  X(INT64, "int64", int64_t, 8, 1) X(FLOAT16, "float16", uint16_t, 2, 2) X(BFLOAT16, "bfloat16", uint16_t, 2, 2)       \
  X(FLOAT32, "float32", float, 4, 2) X(FLOAT64, "float64", double, 8, 2)

enum td_dtype {
#define X(NAME, text, type, bytes, category) TD_##NAME,
  TD_DTYPES(X)
#undef X
  TD_DTYPE_COUNT
};

const char *td_dtype_name(uint8_t dtype);
int td_dtype_bytes(uint8_t dtype);
int td_dtype_category(uint8_t dtype);
static inline bool td_dtype_is_float(uint8_t dtype) { return dtype >= TD_FLOAT16; }
static inline bool td_dtype_is_half(uint8_t dtype) { return dtype == TD_FLOAT16 || dtype == TD_BFLOAT16; }
int td_dtype_find(const char *text);              // -1: no such dtype
// The dtype that a and b meet in: the higher category wins; in one category the wider; uint8 with int32 is int32;
// float16 with bfloat16 is float32; an integer with a float takes the float's dtype (PyTorch's rule).
uint8_t td_dtype_promote(uint8_t a, uint8_t b);
// The dtype that a Python number of a category (0 bool, 1 int, 2 float) takes beside a tensor of dtype beside.
uint8_t td_dtype_weak(int category, uint8_t beside);

float td_half_to_float(uint16_t bits);
uint16_t td_half_from_float(float value);         // round to nearest even
float td_bfloat_to_float(uint16_t bits);
uint16_t td_bfloat_from_float(float value);       // round to nearest even, NaN kept
#endif
