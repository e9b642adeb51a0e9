// Elements as files store them, and how they become elements of tensors.
#ifndef TD_IO_ELEMENTS_H
#define TD_IO_ELEMENTS_H
#include "engine/io/input.h"

// X(NAME, bytes, dtype that holds every value of it, safetensors' name, NumPy's name)
#define TD_ELEMENT_KINDS(X)                                                                                            \
  X(BOOL, 1, TD_BOOL, "BOOL", "bool")                                                                                  \
  X(U8, 1, TD_UINT8, "U8", "uint8")                                                                                    \
  X(I8, 1, TD_INT32, "I8", "int8")                                                                                     \
  X(U16, 2, TD_INT32, "U16", "uint16")                                                                                 \
  X(I16, 2, TD_INT32, "I16", "int16")                                                                                  \
  X(U32, 4, TD_INT64, "U32", "uint32")                                                                                 \
  X(I32, 4, TD_INT32, "I32", "int32")                                                                                  \
  X(U64, 8, TD_INT64, "U64", "uint64")                                                                                 \
  X(I64, 8, TD_INT64, "I64", "int64")                                                                                  \
  X(F8_E4M3, 1, TD_FLOAT16, "F8_E4M3", "float8_e4m3fn")                                                                \
  X(F8_E5M2, 1, TD_FLOAT16, "F8_E5M2", "float8_e5m2")                                                                  \
  X(F16, 2, TD_FLOAT16, "F16", "float16")                                                                              \
  X(BF16, 2, TD_BFLOAT16, "BF16", "bfloat16")                                                                          \
  X(F32, 4, TD_FLOAT32, "F32", "float32")                                                                              \
  X(F64, 8, TD_FLOAT64, "F64", "float64")

enum td_element_kind {
#define X(NAME, bytes, dtype, name, plain) TD_ELEMENT_##NAME,
  TD_ELEMENT_KINDS(X)
#undef X
      TD_ELEMENT_KIND_COUNT
};

typedef struct td_element_row {
  const char *name, *plain;
  uint8_t bytes, dtype;
  bool same; // the tensor holds the very bits: plain is its dtype's name
} td_element_row;
extern const td_element_row td_element_rows[TD_ELEMENT_KIND_COUNT];

enum td_element_kind td_element_of(uint8_t dtype); // the kind that keeps a dtype's bits
// Decodes count elements into out, elements of the kind's dtype. raw may be out's own end: an element is read before
// anything is written over it. Returns the index of the first element that out can't hold (a bool other than 0 and 1, a
// number past int64), or -1.
int64_t td_elements_decode(void *out, const void *raw, enum td_element_kind kind, bool big_endian, int64_t count);
// A notice for the user when what (a file's or a tensor's name) holds elements of a kind that a tensor holds widened.
void td_elements_tell(const td_input *in, const char *what, enum td_element_kind kind);
// Swaps the bytes of each element in place.
void td_elements_swap(void *elements, int bytes, int64_t count);
#endif
