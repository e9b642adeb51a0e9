// zip archives (PKWARE's APPNOTE 6.3): stored and deflated members, with and without ZIP64.
#ifndef TD_IO_ZIP_H
#define TD_IO_ZIP_H
#include "engine/io/input.h"

uint32_t td_crc32(uint32_t before, const void *bytes,
                  size_t size); // of bytes behind those whose checksum is before; 0: none

typedef struct td_zip_member {
  char *name; // owned; UTF-8 or not, as the file has it; no NUL byte, no folder named .. in it, not absolute
  uint64_t packed, size; // bytes in the file, and unpacked
  uint64_t header, begin; // where its header and its bytes are
  uint32_t crc;
  uint16_t method; // 0 stored, 8 deflated
} td_zip_member;

typedef struct td_zip {
  td_input in;
  td_zip_member *members;
  int64_t count;
} td_zip;

// Reads and checks the directory; nothing is unpacked. Errors: TD_ERROR_FILE with path, member, byte and reason: no
// archive, one in several parts, encrypted or otherwise packed members, names that leave the folder or come twice,
// members that lie over each other or past the end, and what would unpack to more than 200 times the file and 64 MiB;
// TD_ERROR_MEMORY.
int td_zip_open(td_context *context, const char *who, const char *path, td_zip *zip);
void td_zip_close(td_zip *zip);
// A member's bytes, checked against its CRC-32. *owned is to be freed by td_memory_free; NULL where the bytes lie in
// the file.
int td_zip_read(const td_zip *zip, int64_t member, const uint8_t **bytes, char **owned);

// What is written: a member is the bytes of two parts, one behind the other (a header and the elements). All borrowed.
typedef struct td_zip_part {
  const void *bytes;
  size_t size;
} td_zip_part;
typedef struct td_zip_entry {
  const char *name;
  td_zip_part parts[2];
} td_zip_entry;
int td_zip_save(td_context *context, const char *who, const char *path, const td_zip_entry *entries, int64_t count,
                bool deflated); // atomic
#endif
