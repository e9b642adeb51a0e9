// Writing of zip archives. Sizes and checksums are known before the first byte goes out, so that headers are whole and
// nothing follows a member's bytes. ZIP64 fields are written where a size, an offset or the count of members needs
// them. All members have the date 1980-01-01, so that the same content gives the same bytes.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/zip.h"

#ifdef HAVE_ZLIB
#include "engine/io/zlib_stream.h"
#endif

static const uint64_t ABSENT = 0xffffffff, PACKED_MAX = 0xf0000000; // a larger member is stored: zlib counts in 32 bits

typedef struct member { // as it is written
  uint64_t size, packed, header; // bytes, bytes in the file, place of its header
  uint32_t crc;
  char *deflated; // owned; NULL: stored
  td_text head;
} member;

typedef struct archive {
  const td_zip_entry *entries;
  member *members;
  td_file_part *parts; // three for each member, and the directory
  int64_t count;
  td_text directory;
} archive;

static void add(td_text *out, uint64_t value, int width) {
  for (int i = 0; i < width; i++) td_text_add_char(out, (char)(value >> (8 * i)));
}

static uint64_t short_form(uint64_t value) { return value < ABSENT ? value : ABSENT; }

static bool needs_name_flag(const char *name) { // its bytes are UTF-8
  for (; *name; name++)
    if ((unsigned char)*name > 126) return true;
  return false;
}

static void add_common(td_text *out, const member *m, const char *name, uint64_t extra,
                       bool is_64) { // version to length of extra
  add(out, is_64 ? 45 : 20, 2);
  add(out, needs_name_flag(name) ? 0x800 : 0, 2);
  add(out, m->deflated ? 8 : 0, 2);
  add(out, 0x00210000, 4); // time and date
  add(out, m->crc, 4);
  add(out, is_64 ? ABSENT : m->packed, 4);
  add(out, is_64 ? ABSENT : m->size, 4);
  add(out, strlen(name), 2);
  add(out, extra, 2);
}

static void add_header(member *m, const char *name) {
  bool is_64 = m->size >= ABSENT || m->packed >= ABSENT;
  add(&m->head, 0x04034b50, 4);
  add_common(&m->head, m, name, is_64 ? 20 : 0, is_64);
  td_text_add(&m->head, name);
  if (!is_64) return;
  add(&m->head, 1, 2);
  add(&m->head, 16, 2);
  add(&m->head, m->size, 8);
  add(&m->head, m->packed, 8);
}

static void add_entry(td_text *out, const member *m, const char *name) {
  bool is_64 = m->size >= ABSENT || m->packed >= ABSENT, far = m->header >= ABSENT;
  uint64_t length = (is_64 ? 16 : 0) + (far ? 8 : 0);
  add(out, 0x02014b50, 4);
  add(out, 45, 2);
  add_common(out, m, name, length ? length + 4 : 0, is_64);
  for (int i = 0; i < 5; i++) add(out, 0, 2); // length of a comment, part, attributes
  add(out, short_form(m->header), 4);
  td_text_add(out, name);
  if (!length) return;
  add(out, 1, 2);
  add(out, length, 2);
  if (is_64) add(out, m->size, 8), add(out, m->packed, 8);
  if (far) add(out, m->header, 8);
}

static void add_end(td_text *out, uint64_t begin, uint64_t count) { // out holds the directory, which begins there
  uint64_t size = out->length;
  if (begin >= ABSENT || size >= ABSENT || count >= 0xffff) {
    add(out, 0x06064b50, 4);
    add(out, 44, 8);
    add(out, 45, 2);
    add(out, 45, 2);
    add(out, 0, 8);
    add(out, count, 8);
    add(out, count, 8);
    add(out, size, 8);
    add(out, begin, 8);
    add(out, 0x07064b50, 4);
    add(out, 0, 4);
    add(out, begin + size, 8);
    add(out, 1, 4);
  }
  add(out, 0x06054b50, 4);
  add(out, 0, 4);
  add(out, count < 0xffff ? count : 0xffff, 2);
  add(out, count < 0xffff ? count : 0xffff, 2);
  add(out, short_form(size), 4);
  add(out, short_form(begin), 4);
  add(out, 0, 2);
}

// ---- members ----

#ifdef HAVE_ZLIB
enum { PIECE = 1 << 30 };

static bool feed(z_stream *z, const td_zip_part *part, bool last) {
  size_t left = part->size;
  z->next_in = (uint8_t *)part->bytes;
  do {
    unsigned piece = (unsigned)(left < PIECE ? left : PIECE);
    z->avail_in = piece;
    left -= piece;
    int status = deflate(z, last && !left ? Z_FINISH : Z_NO_FLUSH);
    if (status == Z_STREAM_ERROR || z->avail_in) return false;
  } while (left);
  return true;
}

static int pack(td_context *context, const char *who, const td_zip_entry *e, member *m) {
  z_stream z = td_zlib_stream();
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return td_error_memory(context, who, td_memory_failed());
  size_t room = m->size + m->size / 1000 + 1024; // deflate's worst case is far below
  m->deflated = td_memory_new(room);
  bool done = m->deflated != NULL;
  z.next_out = (uint8_t *)m->deflated;
  z.avail_out = (unsigned)(room < UINT32_MAX ? room : UINT32_MAX);
  done = done && feed(&z, &e->parts[0], false) && feed(&z, &e->parts[1], true);
  m->packed = z.total_out;
  deflateEnd(&z);
  return done ? TD_OK : td_error_memory(context, who, td_memory_failed());
}
#else
static int pack(td_context *context, const char *who, const td_zip_entry *e, member *m) {
  (void)e, (void)m;
  td_error_set(context, TD_ERROR_STATE, "%s: this build has no zlib, so that it can't write compressed files", who);
  td_error_hint(context,
                "leave compressed=True away, or install zlib with its headers, then configure and build again");
  return TD_ERROR_STATE;
}
#endif

static uint32_t checksum(const td_zip_entry *e) { // of both parts
  return td_crc32(td_crc32(0, e->parts[0].bytes, e->parts[0].size), e->parts[1].bytes, e->parts[1].size);
}

static int make_member(td_context *context, const char *who, archive *a, int64_t i, uint64_t *at, bool deflated) {
  const td_zip_entry *e = &a->entries[i];
  member *m = &a->members[i];
  *m = (member){.size = e->parts[0].size + e->parts[1].size, .crc = checksum(e), .header = *at};
  m->packed = m->size;
  int code = deflated && m->size < PACKED_MAX ? pack(context, who, e, m) : TD_OK;
  if (code) return code;
  add_header(m, e->name);
  td_file_part *part = &a->parts[3 * i];
  part[0] = (td_file_part){m->head.data, m->head.length};
  part[1] = m->deflated ? (td_file_part){m->deflated, m->packed} : (td_file_part){e->parts[0].bytes, e->parts[0].size};
  part[2] = m->deflated ? (td_file_part){"", 0} : (td_file_part){e->parts[1].bytes, e->parts[1].size};
  *at += m->head.length + m->packed;
  add_entry(&a->directory, m, e->name);
  return m->head.failed ? td_error_memory(context, who, td_memory_failed()) : TD_OK;
}

int td_zip_save(td_context *context, const char *who, const char *path, const td_zip_entry *entries, int64_t count,
                bool deflated) {
  archive a = {.entries = entries,
               .members = td_memory_new_zero((size_t)(count + 1) * sizeof *a.members),
               .parts = td_memory_new((size_t)(3 * count + 1) * sizeof *a.parts)};
  uint64_t at = 0;
  int code = a.members && a.parts ? TD_OK : td_error_memory(context, who, td_memory_failed());
  for (; !code && a.count < count; a.count++) code = make_member(context, who, &a, a.count, &at, deflated);
  if (!code) add_end(&a.directory, at, (uint64_t)count);
  if (!code && a.directory.failed) code = td_error_memory(context, who, td_memory_failed());
  if (!code) {
    a.parts[3 * count] = (td_file_part){a.directory.data, a.directory.length};
    code = td_file_save_parts(context, path, a.parts, (int)(3 * count + 1));
  }
  for (int64_t i = 0; i < a.count; i++) {
    td_memory_free(a.members[i].deflated);
    td_text_clear(&a.members[i].head);
  }
  td_memory_free(a.members);
  td_memory_free(a.parts);
  td_text_clear(&a.directory);
  return code;
}
