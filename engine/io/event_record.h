// Protocol buffers by hand: fields appended to a text, and read from bytes. For event files and journals.
#ifndef TD_IO_EVENT_RECORD_H
#define TD_IO_EVENT_RECORD_H
#include <string.h>
#include "engine/base/text.h"

enum td_wire { TD_WIRE_VARINT = 0, TD_WIRE_FIXED64 = 1, TD_WIRE_BYTES = 2, TD_WIRE_FIXED32 = 5 };

static inline void td_wire_add_varint(td_text *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) td_text_add_char(out, (char)(value | 0x80));
  td_text_add_char(out, (char)value);
}
static inline void td_wire_add_fixed(td_text *out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) td_text_add_char(out, (char)(value >> (8 * i)));
}
static inline void td_wire_add_key(td_text *out, int field, enum td_wire kind) {
  td_wire_add_varint(out, (uint64_t)field << 3 | kind);
}
static inline void td_wire_add_int(td_text *out, int field, int64_t value) {
  td_wire_add_key(out, field, TD_WIRE_VARINT);
  td_wire_add_varint(out, (uint64_t)value);
}
static inline void td_wire_add_double(td_text *out, int field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  td_wire_add_key(out, field, TD_WIRE_FIXED64);
  td_wire_add_fixed(out, bits, 8);
}
static inline void td_wire_add_float(td_text *out, int field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  td_wire_add_key(out, field, TD_WIRE_FIXED32);
  td_wire_add_fixed(out, bits, 4);
}
static inline void td_wire_add_bytes(td_text *out, int field, const char *bytes, size_t length) {
  td_wire_add_key(out, field, TD_WIRE_BYTES);
  td_wire_add_varint(out, length);
  if (length) td_text_add_bytes(out, bytes, length);
}
// A message as a field; clears it.
static inline void td_wire_add_message(td_text *out, int field, td_text *message) {
  td_wire_add_bytes(out, field, message->data, message->length);
  out->failed |= message->failed;
  td_text_clear(message);
}

typedef struct td_wire_reader {
  const uint8_t *at, *end;
  bool wrong;
} td_wire_reader;
typedef struct td_wire_field {
  int number;
  enum td_wire kind;
  uint64_t value;
  const uint8_t *bytes;
  size_t length;
} td_wire_field;

static inline uint64_t td_wire_varint(td_wire_reader *r) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
    uint8_t byte = *r->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  r->wrong = true;
  return 0;
}
// Reads a field: a number into value, bytes into bytes and length. false: the end, or wrong is set.
static inline bool td_wire_next(td_wire_reader *r, td_wire_field *f) {
  if (r->wrong || r->at >= r->end) return false;
  uint64_t key = td_wire_varint(r);
  *f = (td_wire_field){.number = (int)(key >> 3 & 0x1fffffff), .kind = (enum td_wire)(key & 7)};
  size_t left = (size_t)(r->end - r->at), size = f->kind == TD_WIRE_FIXED64 ? 8 : f->kind == TD_WIRE_FIXED32 ? 4 : 0;
  if (f->kind == TD_WIRE_VARINT) {
    f->value = td_wire_varint(r);
  } else if (f->kind == TD_WIRE_BYTES) {
    f->length = size = td_wire_varint(r);
    left = (size_t)(r->end - r->at);
  } else if (!size) {
    r->wrong = true; // groups are used by no message of these files
  }
  if (size > left) r->wrong = true;
  if (r->wrong) return false;
  f->bytes = r->at;
  for (size_t i = f->kind == TD_WIRE_BYTES ? 0 : size; i-- > 0;) f->value = f->value << 8 | f->bytes[i];
  r->at += size;
  return true;
}
static inline double td_wire_double(const td_wire_field *f) {
  double value;
  memcpy(&value, &f->value, sizeof value);
  return value;
}
static inline float td_wire_float(const td_wire_field *f) {
  uint32_t bits = (uint32_t)f->value;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
#endif
