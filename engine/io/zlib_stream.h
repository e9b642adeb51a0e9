// zlib over the project's memory: where every stream of it begins. Included where HAVE_ZLIB is defined.
#ifndef TD_IO_ZLIB_STREAM_H
#define TD_IO_ZLIB_STREAM_H
#include <zlib.h>
#include "engine/base/memory.h"

static inline void *td_zlib_new(void *owner, unsigned count, unsigned size) {
  (void)owner;
  return td_memory_new_zero((size_t)count * size);
}

static inline void td_zlib_free(void *owner, void *block) {
  (void)owner;
  td_memory_free(block);
}

static inline z_stream td_zlib_stream(void) { return (z_stream){.zalloc = td_zlib_new, .zfree = td_zlib_free}; }
#endif
