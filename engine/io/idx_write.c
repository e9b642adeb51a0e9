// Saving of IDX files: the header, and the elements as big-endian ones. A file whose name ends in .gz is gzipped.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "engine/io/idx.h"

#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/elements.h"

#ifdef HAVE_ZLIB
#include "engine/io/zlib_stream.h"
#endif

static const uint8_t codes[TD_DTYPE_COUNT] = {
    [TD_UINT8] = 0x08, [TD_INT32] = 0x0c, [TD_FLOAT32] = 0x0d, [TD_FLOAT64] = 0x0e}; // 0: IDX has no such type

static int check(td_context *context, const td_tensor *t) {
  td_meta meta = td_tensor_meta(t);
  int code = TD_OK;
  if (!codes[t->dtype]) {
    code = td_error_set(context, TD_ERROR_DTYPE, "save_idx: IDX files have no type for %s", td_dtype_name(t->dtype));
    td_error_hint(context, "x.astype(uint8), int32, float32 or float64 can be saved");
  } else if (!t->rank) {
    code = td_error_set(context, TD_ERROR_SHAPE, "save_idx: an IDX file has at least one axis");
  }
  for (int i = 0; !code && i < t->rank; i++)
    if (t->shape[i] > UINT32_MAX)
      code = td_error_set(context, TD_ERROR_SHAPE, "save_idx: axis %d is longer than 2^32 - 1", i);
  if (code) td_error_operand(context, "x", -1, &meta);
  return code;
}

static void put_header(uint8_t *out, const td_tensor *t) {
  const uint8_t start[4] = {0, 0, codes[t->dtype], t->rank};
  memcpy(out, start, 4);
  for (int i = 0; i < t->rank; i++)
    for (int k = 0; k < 4; k++) out[4 + 4 * i + k] = (uint8_t)(t->shape[i] >> (24 - 8 * k));
}

#ifdef HAVE_ZLIB
enum { PIECE = 1 << 30 };

static bool deflate_all(z_stream *z, uint8_t *in, size_t size, uint8_t *out, size_t room) {
  int status = Z_OK;
  z->next_in = in;
  z->next_out = out;
  while (status == Z_OK) {
    size_t left = size - (size_t)(z->next_in - in), free = room - (size_t)(z->next_out - out);
    z->avail_in = (unsigned)(left < PIECE ? left : PIECE);
    z->avail_out = (unsigned)(free < PIECE ? free : PIECE);
    status = deflate(z, left <= PIECE ? Z_FINISH : Z_NO_FLUSH);
  }
  return status == Z_STREAM_END;
}

static int save_packed(td_context *context, const char *path, uint8_t *bytes, size_t size) {
  z_stream z = td_zlib_stream();
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return td_error_memory(context, "save_idx", td_memory_failed());
  size_t room = size + size / 1000 + 1024; // deflate's worst case is far below
  uint8_t *out = td_memory_new(room);
  bool done = out && deflate_all(&z, bytes, size, out, room);
  size_t length = out ? (size_t)(z.next_out - out) : 0;
  deflateEnd(&z);
  int code = done ? td_file_save(context, path, out, length) : td_error_memory(context, "save_idx", td_memory_failed());
  td_memory_free(out);
  return code;
}
#else
static int save_packed(td_context *context, const char *path, uint8_t *bytes, size_t size) {
  (void)bytes, (void)size;
  td_error_set(context, TD_ERROR_STATE, "save_idx: '%s': this build has no zlib, so that it can't write .gz files",
               path);
  td_error_hint(context, "save it under a name without .gz");
  return TD_ERROR_STATE;
}
#endif

static bool ends_in_gz(const char *path) {
  size_t length = strlen(path);
  return length >= 3 && !strcmp(path + length - 3, ".gz");
}

int td_idx_save(td_context *context, const char *path, td_tensor *t) {
  int code = check(context, t);
  if (code) return code;
  td_tensor *whole = td_tensor_contiguous(context, t);
  if (!whole) return context->error.code;
  size_t header = 4 + 4 * (size_t)t->rank, width = (size_t)td_dtype_bytes(t->dtype),
         size = header + (size_t)t->size * width;
  uint8_t *bytes = td_memory_new(size);
  if (!bytes) {
    code = td_error_memory(context, "save_idx", (int64_t)size);
  } else {
    put_header(bytes, whole);
    if (t->size) memcpy(bytes + header, whole->data, size - header);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) td_elements_swap(bytes + header, (int)width, t->size);
    code = ends_in_gz(path) ? save_packed(context, path, bytes, size) : td_file_save(context, path, bytes, size);
  }
  td_memory_free(bytes);
  td_tensor_unref(whole);
  return code;
}
