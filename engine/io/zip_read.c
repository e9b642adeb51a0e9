// Reading of zip archives, from the end: the end record (ZIP64's where it has one), the directory, and then each
// member's own header, which must tell the same. All of it is checked before anything is unpacked.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "engine/io/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"

#ifdef HAVE_ZLIB
#include "engine/io/zlib_stream.h"
#endif

enum {
  END_SIZE = 22,
  COMMENT_MAX = 65535,
  ENTRY_SIZE = 46,
  HEADER_SIZE = 30,
  LOCATOR_SIZE = 20,
  END64_SIZE = 56,
  RATIO_MAX = 200
};
static const uint64_t UNPACKED_FREE = (uint64_t)64 << 20;
static const uint32_t ABSENT = 0xffffffff; // the value is in a ZIP64 field

typedef struct directory {
  uint64_t begin, size, count, end; // end: where the end records begin
} directory;

static uint64_t get(const td_input *in, uint64_t at, int width) { return td_little_endian(in->bytes + at, width); }

// ---- the end ----

static bool find_end(const td_input *in, uint64_t *at) {
  for (uint64_t back = END_SIZE; back <= in->size && back <= END_SIZE + COMMENT_MAX; back++) {
    *at = in->size - back;
    if (get(in, *at, 4) == 0x06054b50 && get(in, *at + 20, 2) == back - END_SIZE) return true;
  }
  return false;
}

static int read_end64(const td_input *in, uint64_t locator, directory *d) {
  uint64_t at = get(in, locator + 8, 8);
  if (get(in, locator + 4, 4) || get(in, locator + 16, 4) > 1)
    return td_input_refuse(in, locator, "the archive is in several parts");
  if (locator < END64_SIZE || at > locator - END64_SIZE || get(in, at, 4) != 0x06064b50)
    return td_input_refuse(in, locator + 8, "the ZIP64 end record is not where it is said to be");
  if (get(in, at + 16, 4) || get(in, at + 20, 4) || get(in, at + 24, 8) != get(in, at + 32, 8))
    return td_input_refuse(in, at + 16, "the archive is in several parts");
  *d = (directory){.begin = get(in, at + 48, 8), .size = get(in, at + 40, 8), .count = get(in, at + 32, 8), .end = at};
  return TD_OK;
}

static int read_end(const td_input *in, directory *d) {
  uint64_t at;
  if (!find_end(in, &at))
    return td_input_refuse(in, in->size, "not a zip archive, or a truncated one: there is no end record");
  bool is_64 = at >= LOCATOR_SIZE && get(in, at - LOCATOR_SIZE, 4) == 0x07064b50;
  if (is_64) {
    int code = read_end64(in, at - LOCATOR_SIZE, d);
    if (code) return code;
  } else {
    if (get(in, at + 4, 2) || get(in, at + 6, 2) || get(in, at + 8, 2) != get(in, at + 10, 2))
      return td_input_refuse(in, at + 4, "the archive is in several parts");
    *d =
        (directory){.begin = get(in, at + 16, 4), .size = get(in, at + 12, 4), .count = get(in, at + 10, 2), .end = at};
  }
  if (d->begin > d->end || d->size != d->end - d->begin)
    return td_input_refuse(in, at + 12,
                           "the directory is to be %" PRIu64 " bytes from byte %" PRIu64 ", but ends at byte %" PRIu64,
                           d->size, d->begin, d->end);
  if (d->count > d->size / ENTRY_SIZE)
    return td_input_refuse(in, at + 8, "%" PRIu64 " members are more than the directory has room for", d->count);
  return TD_OK;
}

// ---- members ----

static int refuse_member(const td_zip *zip, const td_zip_member *m, uint64_t byte, const char *reason) {
  return td_input_refuse(&zip->in, byte, "member '%.80s': %s", m->name, reason);
}

static bool leaves_folder(const char *name) { // absolute, or with .. for a part
  if (*name == '/' || *name == '\\' || (*name && name[1] == ':')) return true;
  for (const char *part = name; *part; part += strcspn(part, "/\\"), part += *part != 0)
    if (!strncmp(part, "..", 2) && (!part[2] || strchr("/\\", part[2]))) return true;
  return false;
}

static int read_name(td_zip *zip, td_zip_member *m, uint64_t at, size_t length) {
  m->name = td_memory_new(length + 1);
  if (!m->name) return td_error_memory(zip->in.context, zip->in.who, td_memory_failed());
  memcpy(m->name, zip->in.bytes + at, length);
  m->name[length] = 0;
  if (!length || strlen(m->name) != length) return refuse_member(zip, m, at, "the name is empty or holds a NUL byte");
  if (leaves_folder(m->name)) return refuse_member(zip, m, at, "the name leads out of the archive's folder");
  return TD_OK;
}

// ZIP64's extra field (1) has, in this order, the values that are absent above. false: it is broken or lacks one.
static bool read_extra(const td_input *in, uint64_t at, uint64_t length, uint64_t **values, int count) {
  while (count && length >= 4) {
    uint64_t kind = get(in, at, 2), size = get(in, at + 2, 2);
    if (size > length - 4) return false;
    for (uint64_t k = 0; kind == 1 && count && k + 8 <= size; k += 8, values++, count--)
      **values = get(in, at + 4 + k, 8);
    if (kind == 1) break;
    at += 4 + size;
    length -= 4 + size;
  }
  return count == 0;
}

static int check_packing(const td_zip *zip, const td_zip_member *m, uint64_t at, uint64_t flags) {
  if (flags & 0x2041) return refuse_member(zip, m, at, "it is encrypted");
  if (m->method != 0 && m->method != 8) return refuse_member(zip, m, at, "it is neither stored nor deflated");
  if (m->method == 0 && m->packed != m->size) return refuse_member(zip, m, at, "it is stored, and two sizes are given");
#ifndef HAVE_ZLIB
  if (m->method == 8) return refuse_member(zip, m, at, "it is deflated, and this build has no zlib");
#endif
  return TD_OK;
}

static int read_entry(td_zip *zip, uint64_t *at, uint64_t end, td_zip_member *m) { // of the directory
  const td_input *in = &zip->in;
  uint64_t begin = *at;
  if (end - begin < ENTRY_SIZE || get(in, begin, 4) != 0x02014b50)
    return td_input_refuse(in, begin, "an entry of the directory is needed here");
  uint64_t name = get(in, begin + 28, 2), extra = get(in, begin + 30, 2), comment = get(in, begin + 32, 2), *absent[3];
  if (name + extra + comment > end - begin - ENTRY_SIZE)
    return td_input_refuse(in, begin + 28, "the entry is longer than the directory");
  *m = (td_zip_member){.method = (uint16_t)get(in, begin + 10, 2),
                       .crc = (uint32_t)get(in, begin + 16, 4),
                       .packed = get(in, begin + 20, 4),
                       .size = get(in, begin + 24, 4),
                       .header = get(in, begin + 42, 4)};
  int code = read_name(zip, m, begin + ENTRY_SIZE, name), count = 0;
  if (code) return code;
  if (m->size == ABSENT) absent[count++] = &m->size;
  if (m->packed == ABSENT) absent[count++] = &m->packed;
  if (m->header == ABSENT) absent[count++] = &m->header;
  if (!read_extra(in, begin + ENTRY_SIZE + name, extra, absent, count))
    return refuse_member(zip, m, begin, "the ZIP64 sizes are missing");
  uint64_t disk = get(in, begin + 34, 2);
  if (disk && disk != 0xffff) return refuse_member(zip, m, begin + 34, "the archive is in several parts");
  *at = begin + ENTRY_SIZE + name + extra + comment;
  return check_packing(zip, m, begin + 8, get(in, begin + 8, 2));
}

static int read_header(const td_zip *zip, td_zip_member *m, uint64_t limit) { // the member's own; it must say the same
  const td_input *in = &zip->in;
  uint64_t at = m->header;
  if (at > limit || limit - at < HEADER_SIZE || get(in, at, 4) != 0x04034b50)
    return refuse_member(zip, m, at, "its header is not where it is said to be");
  uint64_t flags = get(in, at + 6, 2), name = get(in, at + 26, 2), extra = get(in, at + 28, 2),
           packed = get(in, at + 18, 4), size = get(in, at + 22, 4);
  uint64_t *absent[] = {&size, &packed};
  if (name + extra > limit - at - HEADER_SIZE) return refuse_member(zip, m, at, "its header goes past the directory");
  if (name != strlen(m->name) || memcmp(in->bytes + at + HEADER_SIZE, m->name, name))
    return refuse_member(zip, m, at + 26, "its header has another name");
  if (get(in, at + 8, 2) != m->method) return refuse_member(zip, m, at + 8, "its header has another method");
  int code = check_packing(zip, m, at + 6, flags);
  if (code) return code;
  if ((size == ABSENT || packed == ABSENT) && !read_extra(in, at + HEADER_SIZE + name, extra, absent, 2))
    return refuse_member(zip, m, at, "the ZIP64 sizes are missing");
  bool later = flags & 8 && !size && !packed; // they follow the bytes
  if (!later && (size != m->size || packed != m->packed))
    return refuse_member(zip, m, at + 18, "its header has other sizes");
  if (!(flags & 8) && get(in, at + 14, 4) != m->crc)
    return refuse_member(zip, m, at + 14, "its header has another checksum");
  m->begin = at + HEADER_SIZE + name + extra;
  return m->packed <= limit - m->begin ? TD_OK : refuse_member(zip, m, at + 18, "its bytes go past the directory");
}

static int by_place(const void *a, const void *b) {
  const td_zip_member *const *x = a, *const *y = b;
  return (*x)->header < (*y)->header ? -1 : (*x)->header > (*y)->header;
}

static int by_name(const void *a, const void *b) {
  const td_zip_member *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static int check_together(const td_zip *zip) { // names, places, and the size of all
  const td_zip_member **sorted = td_memory_new((size_t)(zip->count + 1) * sizeof *sorted);
  if (!sorted) return td_error_memory(zip->in.context, zip->in.who, td_memory_failed());
  uint64_t total = 0;
  int code = TD_OK;
  for (int64_t i = 0; i < zip->count; i++) {
    sorted[i] = &zip->members[i];
    if (__builtin_add_overflow(total, zip->members[i].size, &total)) total = UINT64_MAX;
  }
  qsort(sorted, (size_t)zip->count, sizeof *sorted, by_place);
  for (int64_t i = 1; !code && i < zip->count; i++)
    if (sorted[i]->header < sorted[i - 1]->begin + sorted[i - 1]->packed)
      code = refuse_member(zip, sorted[i], sorted[i]->header, "it lies over another member");
  qsort(sorted, (size_t)zip->count, sizeof *sorted, by_name);
  for (int64_t i = 1; !code && i < zip->count; i++)
    if (!by_name(&sorted[i - 1], &sorted[i]))
      code = refuse_member(zip, sorted[i], sorted[i]->header, "the name comes twice");
  td_memory_free(sorted);
  if (!code && total > UNPACKED_FREE && total / RATIO_MAX > zip->in.size)
    code = td_input_refuse(&zip->in, zip->in.size, "%zu bytes are to unpack to %" PRIu64 ": a zip bomb", zip->in.size,
                           total);
  return code;
}

static int read_directory(td_zip *zip) {
  directory d = {0};
  int code = read_end(&zip->in, &d);
  if (code) return code;
  zip->members = td_memory_new_zero((d.count + 1) * sizeof *zip->members);
  if (!zip->members) return td_error_memory(zip->in.context, zip->in.who, td_memory_failed());
  uint64_t at = d.begin;
  for (; !code && (uint64_t)zip->count < d.count; zip->count++) {
    code = read_entry(zip, &at, d.end, &zip->members[zip->count]);
    if (!code) code = read_header(zip, &zip->members[zip->count], d.begin);
  }
  if (!code && at != d.end)
    code = td_input_refuse(&zip->in, at, "more than the members that are told of is in the directory");
  return code ? code : check_together(zip);
}

int td_zip_open(td_context *context, const char *who, const char *path, td_zip *zip) {
  *zip = (td_zip){0};
  int code = td_input_open(&zip->in, context, who, path);
  if (!code) code = read_directory(zip);
  if (code) td_zip_close(zip);
  return code;
}

void td_zip_close(td_zip *zip) {
  for (int64_t i = 0; i < zip->count; i++) td_memory_free(zip->members[i].name);
  td_memory_free(zip->members);
  zip->members = NULL;
  zip->count = 0;
  td_input_close(&zip->in);
}

// ---- bytes ----

uint32_t td_crc32(uint32_t before, const void *bytes, size_t size) {
  const uint8_t *b = bytes;
#ifdef HAVE_ZLIB
  return (uint32_t)crc32_z(before, size ? b : (const uint8_t *)"", size);
#else
  static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                     0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  uint32_t crc = ~before;
  for (size_t i = 0; i < size; i++) {
    crc ^= b[i];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
#endif
}

#ifdef HAVE_ZLIB
enum { PIECE = 4 << 20 };

static int explain(const td_zip *zip, const td_zip_member *m, const z_stream *z, int status) {
  if (status == Z_MEM_ERROR) return td_error_memory(zip->in.context, zip->in.who, td_memory_failed());
  if (status == TD_ERROR_INTERRUPT + 1000)
    return td_error_set(zip->in.context, TD_ERROR_INTERRUPT, "%s: '%s': interrupted", zip->in.who, zip->in.path);
  uint64_t byte = (uint64_t)(z->next_in - zip->in.bytes);
  if (status == Z_DATA_ERROR) return refuse_member(zip, m, byte, z->msg ? z->msg : "the deflated data is corrupt");
  return refuse_member(zip, m, byte, "the deflated data has another size than is told");
}

// Until the stream ends, or has used up its input or its room, or fails.
static int run(const td_zip *zip, const td_zip_member *m, z_stream *z, uint8_t *out) {
  uint64_t in_left = m->packed, out_left = m->size;
  z->next_in = (uint8_t *)zip->in.bytes + m->begin;
  z->next_out = out;
  for (;;) {
    z->avail_in = (unsigned)(in_left < PIECE ? in_left : PIECE);
    z->avail_out = (unsigned)(out_left < PIECE ? out_left : PIECE);
    unsigned in = z->avail_in, room = z->avail_out;
    int status = inflate(z, Z_NO_FLUSH);
    in_left -= in - z->avail_in;
    out_left -= room - z->avail_out;
    if (status == Z_STREAM_END) return in_left || out_left ? Z_BUF_ERROR : Z_OK;
    if (status != Z_OK) return status;
    if (atomic_load_explicit(&zip->in.context->interrupt, memory_order_relaxed)) return TD_ERROR_INTERRUPT + 1000;
  }
}

static int unpack(const td_zip *zip, const td_zip_member *m, char **out) {
  *out = td_memory_new(m->size + 1);
  if (!*out) return td_error_memory(zip->in.context, zip->in.who, td_memory_failed());
  z_stream z = td_zlib_stream();
  int status = inflateInit2(&z, -MAX_WBITS);
  if (status != Z_OK) return td_error_memory(zip->in.context, zip->in.who, td_memory_failed());
  status = run(zip, m, &z, (uint8_t *)*out);
  int code = status == Z_OK ? TD_OK : explain(zip, m, &z, status);
  inflateEnd(&z);
  return code;
}
#else
static int unpack(const td_zip *zip, const td_zip_member *m, char **out) { // never: td_zip_open has refused the archive
  *out = NULL;
  return refuse_member(zip, m, m->begin, "it is deflated, and this build has no zlib");
}
#endif

int td_zip_read(const td_zip *zip, int64_t member, const uint8_t **bytes, char **owned) {
  const td_zip_member *m = &zip->members[member];
  *owned = NULL;
  *bytes = zip->in.bytes + m->begin;
  int code = m->method ? unpack(zip, m, owned) : TD_OK;
  if (*owned) *bytes = (const uint8_t *)*owned;
  if (!code && td_crc32(0, *bytes, m->size) != m->crc) code = refuse_member(zip, m, m->begin, "the checksum is wrong");
  if (!code) return TD_OK;
  td_memory_free(*owned);
  *owned = NULL;
  return code;
}
