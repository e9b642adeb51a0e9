// NumPy's .npy files: one array each, versions 1 to 3 of the format, both byte orders, row- and column-major.
#ifndef TD_IO_NPY_H
#define TD_IO_NPY_H
#include "engine/io/input.h"

typedef struct td_npy_options {
  bool map; // let the tensor's storage be the mapped file where its bytes can serve as they are
  bool part; // only rows start to stop (both within the first axis, else cut to it) are read
  int64_t start, stop;
} td_npy_options;

// *out is a new reference of the file's shape, rank 0 to 8. int8, int16 and uint16 become int32, uint32 and uint64
// int64, each with a notice; two bytes without type (how ml_dtypes writes it) are bfloat16. Errors: TD_ERROR_FILE with
// path, byte and reason (objects, complex numbers, texts, records, numbers past int64), TD_ERROR_MEMORY.
int td_npy_load(td_context *context, const char *path, const td_npy_options *options, td_tensor **out);
// The same for the bytes of an input that is open: a member of an archive.
int td_npy_parse(const td_input *in, td_tensor **out);
// Version 1, row-major, little-endian; atomic. bfloat16 is written as ml_dtypes does ('<V2').
int td_npy_save(td_context *context, const char *path, td_tensor *t);
void td_npy_header(const td_tensor *t, td_text *text); // the bytes before the elements: a multiple of 64
#endif
