// IDX files, the format of MNIST: 00 00, a type code, the rank, big-endian sizes, then big-endian elements.
#ifndef TD_IO_IDX_H
#define TD_IO_IDX_H
#include "engine/tensor/tensor.h"

// Reads an IDX file, gzipped or not (by content, not by name). Unsigned bytes become uint8; signed bytes, shorts and
// ints int32; floats float32; doubles float64. *out is a new reference with the file's shape, rank 1 to 8; NULL on
// error. Errors: TD_ERROR_FILE with the path, the byte and the reason; TD_ERROR_MEMORY; TD_ERROR_INTERRUPT.
int td_idx_load(td_context *context, const char *path, td_tensor **out);
// Saves uint8, int32, float32 or float64 of rank 1 to 8; gzipped when the name ends in .gz; atomic. Errors:
// TD_ERROR_DTYPE, TD_ERROR_SHAPE; TD_ERROR_STATE for .gz without zlib; TD_ERROR_FILE, TD_ERROR_MEMORY.
int td_idx_save(td_context *context, const char *path, td_tensor *t);
#endif
