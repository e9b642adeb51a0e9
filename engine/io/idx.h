// IDX files, the format of MNIST: 00 00, a type code, the rank, big-endian sizes, then big-endian elements.
#ifndef TD_IO_IDX_H
#define TD_IO_IDX_H
#include "engine/tensor/tensor.h"

// Reads an IDX file, gzipped or not (by content, not by name). Unsigned bytes become uint8; signed bytes, shorts and ints
// int32; floats float32; doubles float64. *out is a new reference with the file's shape, rank 1 to 8; NULL on error.
// Errors: TD_ERROR_FILE with the path, the byte and the reason; TD_ERROR_MEMORY; TD_ERROR_INTERRUPT.
int td_idx_load(td_context *context, const char *path, td_tensor **out);
#endif
