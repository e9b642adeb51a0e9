// A file that is being read: its bytes as a whole, and refusals that name the reader, the file, the byte and the
// reason.
#ifndef TD_IO_INPUT_H
#define TD_IO_INPUT_H
#include "engine/tensor/tensor.h"

typedef struct td_input {
  td_context *context;
  const char *who; // "load_npy", for messages
  const char *path;
  const char *member; // of an archive, whose bytes these are; NULL: the file itself
  const uint8_t *bytes;
  size_t size;
  char *owned, *mapped; // where the bytes are: td_memory's, or a mapping's; both NULL: somebody else's
} td_input;

// Sets bytes and size. Large regular files are mapped, others read. Errors: TD_ERROR_FILE, TD_ERROR_MEMORY.
int td_input_open(td_input *in, td_context *context, const char *who, const char *path);
// Errors: TD_ERROR_FILE when the file became shorter while it was read; what was made of it is wrong then.
int td_input_check(const td_input *in);
// gives the memory of a mapped file's pages back; they are read anew when needed
void td_input_forget(const td_input *in);
void td_input_close(td_input *in);
// The mapping as the storage of a tensor, which takes it over; NULL without memory. The input must be a mapped one.
td_storage *td_input_storage(td_input *in);
// TD_ERROR_FILE: "load_npy: 'x.npy': byte 12: reason".
int td_input_refuse(const td_input *in, uint64_t byte, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline uint64_t td_little_endian(const uint8_t *bytes, int width) {
  uint64_t value = 0;
  for (int i = width; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}
#endif
