// str: immutable UTF-8 with its hash and its number of characters kept. A sole, not interned str may grow in place,
// which makes s += t linear. Indices count characters: at once where all are ASCII, by walking from the nearer end
// otherwise.
#include <stddef.h>

#include "repl/language/builtins.h"

static td_str *str_allocate(td_interpreter *I, size_t length, size_t capacity) {
  if (capacity >= UINT32_MAX) {
    td_raise(I, TD_CLASS_MEMORY_ERROR, "a str of %zu bytes is too large: 4294967294 are the limit", capacity);
    return NULL;
  }
  td_str *s = td_memory_new(offsetof(td_str, data) + capacity + 1);
  if (!s) {
    td_raise_memory(I);
    return NULL;
  }
  s->object = (td_object){.refs = 1, .type = &td_str_type};
  s->hash = 0;
  s->length = s->characters = (uint32_t)length;
  s->capacity = (uint32_t)capacity;
  s->data[length] = 0;
  return s;
}

static uint64_t hash_bytes(const char *bytes, size_t left) {
  uint64_t hash = 0x9E3779B97F4A7C15u ^ left;
  for (; left >= 8; left -= 8, bytes += 8) {
    uint64_t eight;
    memcpy(&eight, bytes, 8);
    hash = (hash ^ eight) * 0xFF51AFD7ED558CCDu;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  memcpy(&rest, bytes, left);
  hash = (hash ^ rest) * 0xC4CEB9FE1A85EC53u;
  hash ^= hash >> 29;
  hash *= 0xFF51AFD7ED558CCDu;
  hash ^= hash >> 32;
  return hash ? hash : 1;
}

td_str *td_str_blank(td_interpreter *I, size_t length) { return str_allocate(I, length, length); }

// ---- making strs ----
static size_t ascii_prefix(const char *bytes, size_t length) {
  size_t i = 0;
  for (; i + 8 <= length; i += 8) {
    uint64_t eight;
    memcpy(&eight, bytes + i, 8);
    if (eight & 0x8080808080808080u) break;
  }
  while (i < length && (unsigned char)bytes[i] < 0x80) i++;
  return i;
}

// Bytes of the well-formed character at b, 0 if there is none: no overlong forms, surrogates or codes past 0x10FFFF.
static int valid_size(const unsigned char *b, size_t left) {
  if (b[0] < 0x80) return 1;
  int size = b[0] >= 0xC2 && b[0] < 0xE0 ? 2 : b[0] >= 0xE0 && b[0] < 0xF0 ? 3 : b[0] >= 0xF0 && b[0] < 0xF5 ? 4 : 0;
  if (!size || (size_t)size > left) return 0;
  for (int i = 1; i < size; i++)
    if ((b[i] & 0xC0) != 0x80) return 0;
  if ((b[0] == 0xE0 && b[1] < 0xA0) || (b[0] == 0xED && b[1] >= 0xA0) || (b[0] == 0xF0 && b[1] < 0x90) ||
      (b[0] == 0xF4 && b[1] >= 0x90))
    return 0;
  return size;
}

static td_str *str_repaired(td_interpreter *I, const char *bytes, size_t length) {
  td_text text = {0};
  for (size_t i = 0; i < length;) {
    int size = valid_size((const unsigned char *)bytes + i, length - i);
    if (size) td_text_add_bytes(&text, bytes + i, (size_t)size);
    else td_text_add(&text, "\xEF\xBF\xBD");
    i += size ? (size_t)size : 1;
  }
  return td_str_take(I, &text);
}

// A new str of bytes known to be well-formed.
static td_str *str_copy(td_interpreter *I, const char *bytes, size_t length, size_t characters) {
  td_str *s = str_allocate(I, length, length);
  if (!s) return NULL;
  if (length) memcpy(s->data, bytes, length);
  s->characters = (uint32_t)characters;
  return s;
}

td_str *td_str_new(td_interpreter *I, const char *bytes, size_t length) {
  size_t i = ascii_prefix(bytes, length), characters = i;
  while (i < length) {
    int size = valid_size((const unsigned char *)bytes + i, length - i);
    if (!size) return str_repaired(I, bytes, length);
    i += (size_t)size;
    characters++;
  }
  return str_copy(I, bytes, length, characters);
}

td_str *td_str_from(td_interpreter *I, const char *text) { return td_str_new(I, text, strlen(text)); }

td_str *td_str_take(td_interpreter *I, td_text *text) {
  td_str *s = NULL;
  if (text->failed) td_raise_memory(I);
  else s = td_str_new(I, text->data ? text->data : "", text->length);
  td_text_clear(text);
  return s;
}

td_str *td_str_intern(td_interpreter *I, const char *bytes, size_t length) {
  if (!I->interned && !(I->interned = td_dict_new(I))) return NULL;
  td_value known = td_dict_get_text(I->interned, bytes, length, hash_bytes(bytes, length));
  if (!td_is_nil(known)) return td_as_str(td_ref(known));
  td_str *s = td_str_new(I, bytes, length);
  if (!s) return NULL;
  s->object.flags |= TD_OBJECT_INTERNED;
  if (td_dict_set_str(I, I->interned, s, td_from(s))) return s;
  td_unref(td_from(s));
  return NULL;
}

td_str *td_str_character(td_interpreter *I, const char *bytes) {
  unsigned char first = (unsigned char)*bytes;
  if (first >= 0x80) return str_copy(I, bytes, (size_t)td_utf8_size(first), 1);
  if (!I->letters[first]) {
    td_str *letter = td_str_intern(I, bytes, 1);
    if (!letter) return NULL;
    I->letters[first] = letter;
    return letter;
  }
  td_ref(td_from(I->letters[first]));
  return I->letters[first];
}

td_str *td_str_part(td_interpreter *I, td_str *s, size_t begin, size_t end) {
  if (begin >= end) return str_allocate(I, 0, 0);
  if (begin == 0 && end == s->length) {
    td_ref(td_from(s));
    return s;
  }
  size_t length = end - begin;
  if (length == 1) return td_str_character(I, s->data + begin);
  return str_copy(I, s->data + begin, length,
                  td_str_is_ascii(s) ? length : (size_t)td_utf8_count(s->data + begin, length));
}

static td_value refuse_concatenation(td_interpreter *I, td_value other) {
  return td_raise(I, TD_CLASS_TYPE_ERROR, "can only concatenate str (not \"%s\") to str", td_type_name(I, other));
}

td_value td_str_append(td_interpreter *I, td_value left, td_value right) {
  if (!td_is(right, &td_str_type)) return refuse_concatenation(I, right);
  td_str *a = td_as_str(left), *b = td_as_str(right);
  size_t length = (size_t)a->length + b->length;
  if (b->length == 0) return left;
  bool sole = a->object.refs == 1 && !(a->object.flags & TD_OBJECT_INTERNED);
  td_str *grown = NULL;
  if (!sole) {
    grown = str_allocate(I, length, length);
    if (grown) memcpy(grown->data, a->data, a->length);
  } else if (length <= a->capacity) {
    grown = a;
  } else {
    size_t capacity = length < UINT32_MAX / 2 ? length * 2 + 24 : length;
    if (capacity >= UINT32_MAX)
      td_raise(I, TD_CLASS_MEMORY_ERROR, "a str of %zu bytes is too large: 4294967294 are the limit", length);
    else if (!(grown = td_memory_resize(a, offsetof(td_str, data) + capacity + 1))) td_raise_memory(I);
    if (grown) grown->capacity = (uint32_t)capacity;
  }
  if (!grown) return TD_NIL; // left is as it was
  uint32_t old_length = sole ? grown->length : a->length, old_characters = sole ? grown->characters : a->characters;
  memcpy(grown->data + old_length, b->data, b->length + 1);
  grown->length = (uint32_t)length;
  grown->characters = old_characters + b->characters;
  grown->hash = 0;
  if (!sole) td_unref(left);
  return td_from(grown);
}

uint64_t td_str_hash(td_str *s) {
  if (!s->hash) s->hash = hash_bytes(s->data, s->length);
  return s->hash;
}

// ---- indices ----
size_t td_str_offset(const td_str *s, int64_t character) {
  if (td_str_is_ascii(s)) return (size_t)character;
  size_t offset;
  if (character <= s->characters / 2) {
    for (offset = 0; character > 0; character--) offset += (size_t)td_utf8_size((unsigned char)s->data[offset]);
    return offset;
  }
  offset = s->length;
  for (int64_t back = s->characters - character; back > 0; back--) do
      offset--;
    while (((unsigned char)s->data[offset] & 0xC0) == 0x80);
  return offset;
}

static td_value str_slice(td_interpreter *I, td_str *s, td_value key) {
  int64_t start, step, count;
  if (!td_slice_resolve(I, key, s->characters, &start, &step, &count)) return TD_NIL;
  if (step == 1 || count == 0) {
    size_t begin = count ? td_str_offset(s, start) : 0;
    return td_from(td_str_part(I, s, begin, count ? td_str_offset(s, start + count) : 0));
  }
  td_text text = {0};
  if (td_str_is_ascii(s)) {
    for (int64_t i = 0; i < count; i++) td_text_add_char(&text, s->data[start + i * step]);
    return td_from(td_str_take(I, &text));
  }
  size_t offset = td_str_offset(s, start);
  for (int64_t i = 0; i < count; i++) {
    td_text_add_bytes(&text, s->data + offset, (size_t)td_utf8_size((unsigned char)s->data[offset]));
    if (i + 1 == count) break;
    for (int64_t j = 0; j < step; j++) offset += (size_t)td_utf8_size((unsigned char)s->data[offset]);
    for (int64_t j = 0; j > step; j--) do
        offset--;
      while (((unsigned char)s->data[offset] & 0xC0) == 0x80);
  }
  return td_from(td_str_take(I, &text));
}

static td_value str_item(td_interpreter *I, td_value v, td_value key) {
  td_str *s = td_as_str(v);
  if (td_is(key, &td_slice_type)) return str_slice(I, s, key);
  int64_t index;
  if (!td_index_resolve(I, key, s->characters, "string", &index)) return TD_NIL;
  return td_from(td_str_character(I, s->data + td_str_offset(s, index)));
}

static int64_t str_length(td_interpreter *I, td_value v) {
  (void)I;
  return td_as_str(v)->characters;
}

static td_value str_iterate(td_interpreter *I, td_value v) { return td_sequence_iterator_new(I, v, false); }

static int str_contains(td_interpreter *I, td_value v, td_value item) {
  if (!td_is(item, &td_str_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "'in <string>' requires string as left operand, not %s", td_type_name(I, item));
    return -1;
  }
  td_str *s = td_as_str(v), *part = td_as_str(item);
  return part->length == 0 || memmem(s->data, s->length, part->data, part->length) != NULL;
}

// ---- operators ----
static td_value str_repeat(td_interpreter *I, td_str *s, int64_t count) {
  if (count == 1) return td_ref(td_from(s));
  size_t length;
  if (count <= 0 || s->length == 0) return td_from(str_allocate(I, 0, 0));
  if (__builtin_mul_overflow((size_t)s->length, (size_t)count, &length)) return td_raise_memory(I);
  td_str *result = str_allocate(I, length, length);
  if (!result) return TD_NIL;
  if (s->length == 1) {
    memset(result->data, s->data[0], length);
  } else { // what is there already is copied behind itself, twice as much each time
    memcpy(result->data, s->data, s->length);
    for (size_t done = s->length; done < length; done *= 2)
      memcpy(result->data + done, result->data, done < length - done ? done : length - done);
  }
  result->characters = s->characters * (uint32_t)count;
  return td_from(result);
}

bool td_passes_on(td_value other) {
  return other.tag == TD_TAG_OBJECT && other.o->type->binary && other.o->type != &td_str_type &&
         other.o->type != &td_list_type && other.o->type != &td_tuple_type && other.o->type != &td_dict_type &&
         other.o->type != &td_set_type;
}

td_value td_repeat_refused(td_interpreter *I, td_value count) {
  return td_raise(I, TD_CLASS_TYPE_ERROR, "can't multiply sequence by non-int of type '%s'", td_type_name(I, count));
}

static td_value str_binary(td_interpreter *I, int op, td_value a, td_value b) {
  bool left = td_is(a, &td_str_type);
  if (op == TD_BINARY_REMAINDER && left) return td_str_percent(I, td_as_str(a), b);
  if (op == TD_BINARY_MULTIPLY) {
    td_value s = left ? a : b, count = left ? b : a;
    if (td_is_integer(count)) return str_repeat(I, td_as_str(s), count.i);
    return td_passes_on(count) ? TD_NOT_IMPLEMENTED : td_repeat_refused(I, count);
  }
  if (op != TD_BINARY_ADD || !left) return TD_NOT_IMPLEMENTED;
  if (!td_is(b, &td_str_type)) return td_passes_on(b) ? TD_NOT_IMPLEMENTED : refuse_concatenation(I, b);
  td_value joined = td_str_append(I, td_ref(a), b);
  if (td_is_nil(joined)) td_unref(a);
  return joined;
}

static td_value str_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  (void)I;
  if (!td_is(a, &td_str_type) || !td_is(b, &td_str_type)) return TD_NOT_IMPLEMENTED;
  td_str *x = td_as_str(a), *y = td_as_str(b);
  if (comparison == TD_COMPARE_EQUAL) return td_bool(td_str_equal(x, y));
  if (comparison == TD_COMPARE_NOT_EQUAL) return td_bool(!td_str_equal(x, y));
  int order =
      memcmp(x->data, y->data, x->length < y->length ? x->length : y->length); // UTF-8 keeps the order of code points
  if (order == 0) order = (x->length > y->length) - (x->length < y->length);
  switch (comparison) {
  case TD_COMPARE_LESS: return td_bool(order < 0);
  case TD_COMPARE_LESS_EQUAL: return td_bool(order <= 0);
  case TD_COMPARE_GREATER: return td_bool(order > 0);
  case TD_COMPARE_GREATER_EQUAL: return td_bool(order >= 0);
  default: return TD_NOT_IMPLEMENTED;
  }
}

static bool str_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  (void)I;
  *hash = td_str_hash(td_as_str(v));
  return true;
}

// ---- printing ----
static void add_escape(td_text *text, uint32_t code) {
  if (code == '\n' || code == '\r' || code == '\t')
    td_text_print(text, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
  else if (code < 0x100) td_text_print(text, "\\x%02x", code);
  else td_text_print(text, code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
}

void td_str_repr(const char *bytes, size_t length, bool ascii, td_text *text) {
  char quote = memchr(bytes, '\'', length) && !memchr(bytes, '"', length) ? '"' : '\'';
  td_text_add_char(text, quote);
  size_t plain = 0; // where the run of characters that stand for themselves begins
  for (size_t i = 0; i < length;) {
    unsigned char c = (unsigned char)bytes[i];
    int size = 1;
    if (c >= ' ' && c < 0x7F && c != '\\' && c != (unsigned char)quote) {
      i++;
      continue;
    }
    uint32_t code = td_utf8_decode(bytes + i, &size);
    if (c >= 0x80 && !ascii && td_unicode_properties(code) & TD_UNICODE_PRINTABLE) {
      i += (size_t)size;
      continue;
    }
    td_text_add_bytes(text, bytes + plain, i - plain);
    if (c == '\\' || c == (unsigned char)quote) td_text_print(text, "\\%c", c);
    else add_escape(text, code);
    plain = i += (size_t)size;
  }
  td_text_add_bytes(text, bytes + plain, length - plain);
  td_text_add_char(text, quote);
}

static bool str_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_str_repr(td_as_str(v)->data, td_as_str(v)->length, false, text);
  return true;
}

bool td_ascii(td_interpreter *I, td_value v, td_text *text) {
  td_text whole = {0};
  bool done = td_repr(I, v, &whole);
  for (size_t i = 0; done && i < whole.length;) {
    int size;
    uint32_t code = td_utf8_decode(whole.data + i, &size);
    if (code < 0x80) td_text_add_char(text, (char)code);
    else add_escape(text, code);
    i += (size_t)size;
  }
  text->failed = text->failed || whole.failed;
  td_text_clear(&whole);
  return done;
}

static bool str_print(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_add_bytes(text, td_as_str(v)->data, td_as_str(v)->length);
  return true;
}

static bool str_format(td_interpreter *I, td_value v, const char *text, td_text *out) {
  td_format_spec spec;
  if (!*text) return str_print(I, v, out);
  return td_format_parse(I, text, "str", &spec) &&
         td_format_str(I, td_as_str(v)->data, td_as_str(v)->length, &spec, out);
}

const td_type td_str_type = {
    .name = "str",
    .size = sizeof(td_str),
    .repr = str_repr,
    .print = str_print,
    .format = str_format,
    .item = str_item,
    .length = str_length,
    .iterate = str_iterate,
    .contains = str_contains,
    .binary = str_binary,
    .compare = str_compare,
    .hash = str_hash,
    .methods = td_str_methods,
    .doc = "str(x=''): text of Unicode characters; str(x) gives the printed form of x.\n>>> str(1.5)"};
