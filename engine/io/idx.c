// Loading of IDX files (Y. LeCun's page of MNIST describes the format). The header is read and checked against what the
// file can hold before the tensor is made; the elements are then unpacked straight into it and turned in place. The
// file must end, and a gzip checksum agree, exactly where the last element ends.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "engine/io/idx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"

#ifdef HAVE_ZLIB
#include "engine/io/zlib_stream.h"
#endif

enum { PIECE = 4 << 20, RATIO_MAX = 200 };
static const uint64_t UNPACKED_FREE = (uint64_t)64 << 20; // a packed file may always grow to this size

typedef struct source { // the file's bytes, unpacked as they are read
  td_context *context;
  const char *path;
  const uint8_t *bytes;
  size_t size, position; // of the file; position: what was consumed
  uint64_t unpacked; // bytes handed out
  bool packed;
#ifdef HAVE_ZLIB
  bool ended; // a gzip member has ended
  z_stream stream;
#endif
} source;

static const struct kind {
  uint8_t code, width, dtype;
} kinds[] = {{0x08, 1, TD_UINT8}, {0x09, 1, TD_INT32},   {0x0b, 2, TD_INT32},
             {0x0c, 4, TD_INT32}, {0x0d, 4, TD_FLOAT32}, {0x0e, 8, TD_FLOAT64}};

typedef struct header {
  const struct kind *kind;
  int rank;
  int64_t shape[TD_RANK_MAX];
  uint64_t count, bytes; // elements, and their bytes in the file
} header;

// byte counts in the data as unpacked.
__attribute__((format(printf, 3, 4))) static int refuse(source *s, uint64_t byte, const char *format, ...) {
  char reason[160];
  va_list list;
  va_start(list, format);
  vsnprintf(reason, sizeof reason, format, list);
  va_end(list);
  return td_error_set(s->context, TD_ERROR_FILE, "load_idx: '%s': byte %llu%s: %s", s->path, (unsigned long long)byte,
                      s->packed ? " of the unpacked data" : "", reason);
}

// ---- bytes ----

#ifdef HAVE_ZLIB
static int source_open(source *s) {
  s->packed = s->size >= 2 && s->bytes[0] == 0x1f && s->bytes[1] == 0x8b;
  if (!s->packed) return TD_OK;
  s->stream = td_zlib_stream();
  if (inflateInit2(&s->stream, 16 + MAX_WBITS) == Z_OK) return TD_OK; // 16: gzip alone
  return td_error_memory(s->context, "load_idx", td_memory_failed());
}

static void source_close(source *s) {
  if (s->packed) inflateEnd(&s->stream);
}

static int refuse_packed(source *s, const char *reason, const char *detail) {
  return td_error_set(s->context, TD_ERROR_FILE, "load_idx: '%s': byte %zu: %s%s", s->path, s->position, reason,
                      detail);
}

static int explain_zlib(source *s, int status) {
  if (status == Z_MEM_ERROR) return td_error_memory(s->context, "load_idx", td_memory_failed());
  if (status == Z_BUF_ERROR) return refuse_packed(s, "the gzip file is truncated", "");
  return refuse_packed(s, "the gzip data is corrupt: ", s->stream.msg ? s->stream.msg : "unknown method");
}

static bool next_member(source *s) { // gzip files may be joined: another one begins behind the one that ended
  size_t left = s->size - s->position;
  if (left < 2 || s->bytes[s->position] != 0x1f || s->bytes[s->position + 1] != 0x8b) return false;
  s->ended = false;
  return inflateReset(&s->stream) == Z_OK;
}

// Reads up to size bytes; *got falls short of size at the end alone. Reading 0 bytes more at the end proves the
// checksum.
static int source_unpack(source *s, uint8_t *out, size_t size, size_t *got) {
  z_stream *z = &s->stream;
  *got = 0;
  while (*got < size) {
    if (s->ended && !next_member(s)) break;
    size_t in = s->size - s->position, room = size - *got;
    if (in > PIECE) in = PIECE;
    if (room > PIECE) room = PIECE;
    z->next_in = (uint8_t *)s->bytes + s->position;
    z->avail_in = (unsigned)in;
    z->next_out = out + *got;
    z->avail_out = (unsigned)room;
    int status = inflate(z, Z_NO_FLUSH);
    s->position += in - z->avail_in;
    *got += room - z->avail_out;
    if (status == Z_STREAM_END) s->ended = true;
    else if (status != Z_OK) return explain_zlib(s, status);
    if (atomic_load_explicit(&s->context->interrupt, memory_order_relaxed))
      return td_error_set(s->context, TD_ERROR_INTERRUPT, "load_idx: '%s': interrupted", s->path);
  }
  return TD_OK;
}
#else
static int source_open(source *s) {
  if (s->size < 2 || s->bytes[0] != 0x1f || s->bytes[1] != 0x8b) return TD_OK;
  td_error_set(s->context, TD_ERROR_FILE, "load_idx: '%s': byte 0: the file is gzipped and this build has no zlib",
               s->path);
  td_error_hint(s->context, "unpack it first: gunzip --keep '%s'", s->path);
  return TD_ERROR_FILE;
}

static void source_close(source *s) { (void)s; }

static int source_unpack(source *s, uint8_t *out, size_t size, size_t *got) { // never: nothing is packed
  (void)out, (void)size;
  *got = 0;
  return refuse(s, 0, "packed data");
}
#endif

static int source_read(source *s, uint8_t *out, size_t size, size_t *got) {
  int code = TD_OK;
  if (s->packed) {
    code = source_unpack(s, out, size, got);
  } else {
    *got = s->size - s->position < size ? s->size - s->position : size;
    if (*got) memcpy(out, s->bytes + s->position, *got);
    s->position += *got;
  }
  s->unpacked += *got;
  return code;
}

static int read_exactly(source *s, uint8_t *out, size_t size, const char *what) {
  size_t got;
  uint64_t start = s->unpacked;
  int code = source_read(s, out, size, &got);
  if (code || got == size) return code;
  return refuse(s, s->unpacked, "the file is truncated: %s needs %zu bytes from byte %llu, %zu are there", what, size,
                (unsigned long long)start, got);
}

static int expect_end(source *s) {
  uint8_t extra;
  size_t got;
  uint64_t end = s->unpacked;
  int code = source_read(s, &extra, 1, &got);
  if (code) return code;
  if (got) return refuse(s, end, "more bytes follow the last element");
#ifdef HAVE_ZLIB
  if (s->position < s->size) return refuse_packed(s, "bytes that are not gzip follow the gzip data", "");
#endif
  return TD_OK;
}

// ---- header ----

static const struct kind *kind_find(uint8_t code) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].code == code) return &kinds[i];
  return NULL;
}

static int read_magic(source *s, header *h) {
  uint8_t magic[4];
  int code = read_exactly(s, magic, sizeof magic, "the header");
  if (code) return code;
  if (magic[0] || magic[1])
    return refuse(s, 0, "not an IDX file: it begins with %02x %02x %02x %02x, an IDX file with 00 00", magic[0],
                  magic[1], magic[2], magic[3]);
  h->kind = kind_find(magic[2]);
  h->rank = magic[3];
  if (!h->kind) return refuse(s, 2, "type code %02x is none of 08, 09, 0b, 0c, 0d, 0e", magic[2]);
  if (h->rank < 1 || h->rank > TD_RANK_MAX) return refuse(s, 3, "rank %d is not in 1 to %d", h->rank, TD_RANK_MAX);
  return TD_OK;
}

static int read_sizes(source *s, header *h) {
  uint8_t sizes[4 * TD_RANK_MAX];
  int code = read_exactly(s, sizes, (size_t)h->rank * 4, "the header");
  if (code) return code;
  bool empty = false, overflow = false;
  h->count = 1;
  for (int i = 0; i < h->rank; i++) {
    const uint8_t *b = sizes + (size_t)i * 4;
    h->shape[i] = (int64_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
    if (!h->shape[i]) empty = true;
    else overflow |= __builtin_mul_overflow(h->count, (uint64_t)h->shape[i], &h->count);
  }
  overflow |= __builtin_mul_overflow(h->count, h->kind->width, &h->bytes) || h->bytes > INT64_MAX / 8;
  if (overflow) return refuse(s, 4, "the sizes' product is larger than any file");
  if (empty) h->count = h->bytes = 0;
  return TD_OK;
}

static int check_size(source *s, const header *h) { // before anything is allocated for the elements
  unsigned long long needed = h->bytes, there = s->size - s->position;
  if (s->packed) {
    if (needed <= UNPACKED_FREE || needed / RATIO_MAX <= s->size) return TD_OK;
    return refuse(s, 4, "the elements need %llu bytes, too many for a packed file of %zu", needed, s->size);
  }
  if (needed > there)
    return refuse(s, s->size, "the file is truncated: the elements need %llu bytes from byte %zu, %llu are there",
                  needed, s->position, there);
  if (needed < there) return refuse(s, s->position + needed, "%llu bytes follow the last element", there - needed);
  return TD_OK;
}

// ---- elements ----

static uint64_t big_endian(const uint8_t *b, int width) {
  uint64_t value = 0;
  for (int i = 0; i < width; i++) value = value << 8 | b[i];
  return value;
}

// raw lies at the end of out: an element is read before anything is written over it.
static void turn(char *out, const uint8_t *raw, const struct kind *kind, uint64_t count) {
  switch (kind->code) {
  case 0x09:
    for (uint64_t i = 0; i < count; i++) ((int32_t *)out)[i] = (int8_t)raw[i];
    break;
  case 0x0b:
    for (uint64_t i = 0; i < count; i++) ((int32_t *)out)[i] = (int16_t)big_endian(raw + 2 * i, 2);
    break;
  case 0x0c:
  case 0x0d:
    for (uint64_t i = 0; i < count; i++) ((uint32_t *)out)[i] = (uint32_t)big_endian(raw + 4 * i, 4);
    break;
  case 0x0e:
    for (uint64_t i = 0; i < count; i++) ((uint64_t *)out)[i] = big_endian(raw + 8 * i, 8);
    break;
  default: break; // unsigned bytes stay
  }
}

static int load(source *s, td_tensor **out) {
  header h;
  int code = read_magic(s, &h);
  if (!code) code = read_sizes(s, &h);
  if (!code) code = check_size(s, &h);
  if (code) return code;
  td_tensor *t = td_tensor_new(s->context, h.kind->dtype, h.rank, h.shape);
  if (!t) return s->context->error.code;
  uint8_t *raw = (uint8_t *)t->data + (uint64_t)t->size * (uint64_t)td_dtype_bytes(t->dtype) - h.bytes;
  code = read_exactly(s, raw, h.bytes, "the data");
  if (!code) code = expect_end(s);
  if (code) {
    td_tensor_unref(t);
    return code;
  }
  turn(t->data, raw, h.kind, h.count);
  *out = t;
  return TD_OK;
}

int td_idx_load(td_context *context, const char *path, td_tensor **out) {
  char *bytes;
  source s = {.context = context, .path = path};
  *out = NULL;
  int code = td_file_read(context, path, SIZE_MAX / 4, &bytes, &s.size);
  if (code) return code;
  s.bytes = (const uint8_t *)bytes;
  code = source_open(&s);
  if (!code) {
    code = load(&s, out);
    source_close(&s);
  }
  td_memory_free(bytes);
  return code;
}
