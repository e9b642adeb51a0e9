// safetensors files: eight bytes of length, a header in JSON (dtype, shape and data_offsets of each tensor, and texts
// under __metadata__), the tensors' bytes without gaps. Our checkpoints are such files.
#ifndef TD_IO_SAFETENSORS_H
#define TD_IO_SAFETENSORS_H
#include "engine/io/input.h"

typedef struct td_named_tensor {
  char *name;
  size_t length;
  td_tensor *tensor;
} td_named_tensor; // both owned
typedef struct td_named_text {
  char *name, *text;
  size_t name_length, text_length;
} td_named_text; // both owned
typedef struct td_tensor_file {
  td_named_tensor *tensors; // in the order of the header
  int64_t count, capacity;
  td_named_text *metadata;
  int64_t metadata_count, metadata_capacity;
} td_tensor_file;

// Reads all tensors, or, with metadata_only, checks all and reads the metadata. int8, int16 and uint16 become int32,
// uint32 and uint64 int64. *file is empty on errors: TD_ERROR_FILE with path, byte, tensor and reason; TD_ERROR_MEMORY.
int td_safetensors_load(td_context *context, const char *path, bool metadata_only, td_tensor_file *file);
void td_tensor_file_clear(td_tensor_file *file);

// What is to be saved; all borrowed.
typedef struct td_tensor_entry {
  const char *name;
  size_t length;
  td_tensor *tensor;
} td_tensor_entry;
typedef struct td_text_entry {
  const char *name, *text;
  size_t name_length, text_length;
} td_text_entry;
// Every dtype is kept bit for bit; atomic. Widest dtypes come first, so that all are aligned. Names must differ.
int td_safetensors_save(td_context *context, const char *path, const td_tensor_entry *tensors, int64_t count,
                        const td_text_entry *metadata, int64_t metadata_count);
#endif
