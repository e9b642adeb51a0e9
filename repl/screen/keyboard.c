// See keyboard.h.
#include "repl/screen/keyboard.h"
#include <stdlib.h>
#include <string.h>
#include "repl/language/builtins.h"
#include "repl/language/source.h"

enum { SEQUENCE_MOST = 64 << 10 }; // a longer one is no sequence of any terminal
static const char paste_begin[] = "\033[200~", paste_end[] = "\033[201~";

void td_keyboard_feed(td_keyboard *k, const char *bytes, size_t length) {
  if (k->taken) {
    memmove(k->input.data, k->input.data + k->taken, k->input.length - k->taken);
    k->input.length -= k->taken;
    k->taken = 0;
  }
  td_text_add_bytes(&k->input, bytes, length);
}

void td_keyboard_clear(td_keyboard *k) {
  td_text_clear(&k->input);
  td_text_clear(&k->paste);
  memset(k, 0, sizeof *k);
}

bool td_keyboard_waits(const td_keyboard *k) { return k->input.length > k->taken; }

bool td_keyboard_waits_text(const td_keyboard *k) { return td_keyboard_waits(k) && k->input.data[k->taken] != '\033'; }

// ---- sequences ----

typedef struct sequence {
  const char *bytes;       // the ESC first
  size_t size;             // 0: incomplete
} sequence;

static size_t string_size(const char *bytes, size_t length) { // OSC, DCS, APC, PM, SOS: up to BEL or ST
  for (size_t i = 2; i < length; i++) {
    if (bytes[i] == '\a') return i + 1;
    if (bytes[i] == '\033' && i + 1 < length && bytes[i + 1] == '\\') return i + 2;
    if (bytes[i] == '\033' && i + 1 < length) return i; // another sequence begins: this one is broken
    if ((unsigned char)bytes[i] < ' ' && bytes[i] != '\033') return i; // a key: its end was lost
  }
  return length > SEQUENCE_MOST ? length : 0;
}

static size_t csi_size(const char *bytes, size_t length) {
  if (length > 2 && bytes[2] == 'M') return length >= 6 ? 6 : 0; // old mouse report
  if (length > 2 && bytes[2] == '[') return length >= 4 ? 4 : 0; // function keys of the Linux console
  for (size_t i = 2; i < length; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c >= 0x40 && c <= 0x7e) return i + 1;
    if (c < 0x20 || c > 0x7e) return i; // broken: what follows is taken by itself
  }
  return length > SEQUENCE_MOST ? length : 0;
}

static size_t sequence_size(const char *bytes, size_t length) { // of one that begins with ESC; 0: incomplete
  if (length < 2) return 0;
  uint32_t code;
  switch (bytes[1]) {
  case '[': return csi_size(bytes, length);
  case 'O': return length < 3 ? 0 : 3;
  case ']': case 'P': case '_': case '^': case 'X': return string_size(bytes, length);
  case '\033': return 1;
  default: {
    int size = td_source_decode(bytes + 1, length - 1, &code);
    if (size) return (size_t)size + 1;
    return length >= 5 ? 2 : 0;
  }
  }
}

// ---- what a sequence means ----

typedef struct meaning { const char *text; uint32_t code; } meaning;
static const meaning finals[] = { // CSI [1 ; modifiers] FINAL and SS3 FINAL
    {"A", TD_KEY_UP},   {"B", TD_KEY_DOWN}, {"C", TD_KEY_RIGHT}, {"D", TD_KEY_LEFT},     {"H", TD_KEY_HOME},
    {"F", TD_KEY_END},  {"P", TD_KEY_F1},   {"Q", TD_KEY_F2},    {"R", TD_KEY_F3},       {"S", TD_KEY_F4},
    {"Z", TD_KEY_BACK_TAB}, {"M", TD_KEY_ENTER}, {"I", TD_KEY_TAB}, {NULL, 0}};
static const meaning numbers[] = { // CSI NUMBER [; modifiers] ~
    {"1", TD_KEY_HOME},     {"2", TD_KEY_INSERT}, {"3", TD_KEY_DELETE}, {"4", TD_KEY_END},  {"5", TD_KEY_PAGE_UP},
    {"6", TD_KEY_PAGE_DOWN}, {"7", TD_KEY_HOME},  {"8", TD_KEY_END},    {"11", TD_KEY_F1},  {"12", TD_KEY_F2},
    {"13", TD_KEY_F3},      {"14", TD_KEY_F4},    {"15", TD_KEY_F5},    {"17", TD_KEY_F6},  {"18", TD_KEY_F7},
    {"19", TD_KEY_F8},      {"20", TD_KEY_F9},    {"21", TD_KEY_F10},   {"23", TD_KEY_F11}, {"24", TD_KEY_F12},
    {NULL, 0}};

static uint32_t look_up(const meaning *rows, const char *text, size_t length) {
  for (; rows->text; rows++)
    if (strlen(rows->text) == length && memcmp(rows->text, text, length) == 0) return rows->code;
  return TD_KEY_NONE;
}

static int modifiers_of(long parameter) { // 1 + shift + 2 alt + 4 control
  return parameter > 1 && parameter <= 8 ? (int)(parameter - 1) : 0;
}

static uint32_t plain_code(uint32_t code) {
  switch (code) {
  case '\r': return TD_KEY_ENTER;
  case '\t': return TD_KEY_TAB;
  case 27: return TD_KEY_ESCAPE;
  case 8: case 127: return TD_KEY_BACKSPACE;
  default: return code;
  }
}

static void set_character(td_key *key, uint32_t code) {
  uint32_t special = plain_code(code);
  if (special != code) {
    key->code = special;
    return;
  }
  key->code = code;
  if (code >= ' ') return;
  key->modifiers |= TD_CONTROL;
  key->code = code >= 1 && code <= 26 ? code + 'a' - 1 : code + '@';
}

static void set_mouse(td_key *key, long button, long column, long row, bool released) {
  if (button & 4) key->modifiers |= TD_SHIFT;
  if (button & 8) key->modifiers |= TD_ALT;
  if (button & 16) key->modifiers |= TD_CONTROL;
  key->row = (int)row - 1;
  key->column = (int)column - 1;
  if (button & 64) key->code = button & 1 ? TD_KEY_WHEEL_DOWN : TD_KEY_WHEEL_UP;
  else if (released) key->code = TD_KEY_MOUSE_RELEASE;
  else if (button & 32) key->code = TD_KEY_MOUSE_DRAG;
  else key->code = (button & 3) == 0 ? TD_KEY_MOUSE_PRESS : TD_KEY_NONE;
}

static void read_csi(td_key *key, const char *bytes, size_t size) {
  char final = bytes[size - 1], first = bytes[2];
  const char *parameters = bytes + 2, *end = bytes + size - 1;
  if (first == 'M') { // old mouse report: three bytes from 32 on
    if (size != 6) return;
    long button = (unsigned char)bytes[3] - 32;
    set_mouse(key, button, (unsigned char)bytes[4] - 32, (unsigned char)bytes[5] - 32, (button & 3) == 3);
    return;
  }
  if (first == '[') { // ESC [ [ A to E: F1 to F5
    if (final >= 'A' && final <= 'E') key->code = (uint32_t)(TD_KEY_F1 + (final - 'A'));
    return;
  }
  long values[4] = {0, 0, 0, 0};
  int count = 0;
  const char *at = parameters + (first == '<' || first == '?' || first == '>' || first == '=');
  while (at < end && count < 4) {
    char *stop;
    values[count++] = strtol(at, &stop, 10);
    at = stop < end && *stop == ';' ? stop + 1 : end;
  }
  if (first == '<' && (final == 'M' || final == 'm')) {
    set_mouse(key, values[0], values[1], values[2], final == 'm');
    return;
  }
  if (first == '?' || first == '>' || first == '=' || final == 'c' || final == 't' || final == 'n' || final == 'y') {
    key->code = TD_KEY_REPLY;
    return;
  }
  if (final == 'R' && values[0] > 1) { // a cursor position report, not F3
    key->code = TD_KEY_REPLY;
    return;
  }
  key->modifiers = modifiers_of(values[1]);
  if (final == 'u') { // a key by its character
    set_character(key, values[0] > 0 && values[0] < 0x110000 ? (uint32_t)values[0] : 0);
    return;
  }
  if (final == '~') {
    const char *stop = memchr(parameters, ';', (size_t)(end - parameters));
    if (values[0] == 27 && count == 3) set_character(key, (uint32_t)values[2]); // modifyOtherKeys
    else key->code = look_up(numbers, parameters, (size_t)((stop ? stop : end) - parameters));
    return;
  }
  key->code = look_up(finals, &final, 1);
}

static void read_sequence(td_key *key, const char *bytes, size_t size) {
  key->code = TD_KEY_NONE;
  uint32_t code;
  if (size == 1) key->code = TD_KEY_ESCAPE;
  else if (bytes[1] == '[') read_csi(key, bytes, size);
  else if (bytes[1] == 'O' && size == 3) key->code = look_up(finals, bytes + 2, 1);
  else if (strchr("]P_^X", bytes[1])) key->code = TD_KEY_REPLY;
  else if (td_source_decode(bytes + 1, size - 1, &code)) {
    key->modifiers = TD_ALT;
    set_character(key, code);
  }
}

// ---- pastes ----

// The text of a paste as it goes into an entry: line ends become newlines, control characters but tab go.
static void clean_paste(td_text *paste) {
  size_t kept = 0;
  for (size_t i = 0; i < paste->length; i++) {
    char c = paste->data[i];
    if (c == '\r' && i + 1 < paste->length && paste->data[i + 1] == '\n') continue;
    if (c == '\r') c = '\n';
    if (((unsigned char)c >= ' ' && c != 127) || c == '\n' || c == '\t') paste->data[kept++] = c;
  }
  paste->length = kept;
  if (paste->data) paste->data[kept] = 0;
}

static void keep_paste(td_keyboard *k, const char *bytes, size_t length) { // what is beyond the limit is dropped
  size_t room = TD_PASTE_MOST - (k->paste.length < TD_PASTE_MOST ? k->paste.length : TD_PASTE_MOST);
  td_text_add_bytes(&k->paste, bytes, length < room ? length : room);
}

static bool next_of_paste(td_keyboard *k, td_key *key) { // false: its end did not come yet
  const char *bytes = k->input.data + k->taken;
  size_t length = k->input.length - k->taken, tail = sizeof paste_end - 2;
  const char *end = memmem(bytes, length, paste_end, sizeof paste_end - 1);
  if (!end) {
    size_t sure = length > tail ? length - tail : 0;
    keep_paste(k, bytes, sure);
    k->taken += sure;
    return false;
  }
  keep_paste(k, bytes, (size_t)(end - bytes));
  k->taken += (size_t)(end - bytes) + sizeof paste_end - 1;
  k->pasting = false;
  k->paste_given = true;
  clean_paste(&k->paste);
  *key = (td_key){.code = TD_KEY_PASTE, .bytes = k->paste.data ? k->paste.data : "", .length = k->paste.length};
  return true;
}

// ---- keys ----

static bool take(td_keyboard *k, td_key *key, size_t size) {
  key->bytes = k->input.data + k->taken;
  key->length = size;
  k->taken += size;
  return true;
}

static bool next_character(td_keyboard *k, bool late, td_key *key) {
  const char *bytes = k->input.data + k->taken;
  size_t length = k->input.length - k->taken;
  uint32_t code;
  int size = td_source_decode(bytes, length, &code);
  if (!size) {
    unsigned char first = (unsigned char)*bytes;
    size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first >= 0xc2 && first < 0xf5 && length < wanted && !late) return false;
    return take(k, key, 1); // broken: a byte that is no key
  }
  set_character(key, code);
  return take(k, key, (size_t)size);
}

static bool next_sequence(td_keyboard *k, bool late, td_key *key) {
  const char *bytes = k->input.data + k->taken;
  size_t length = k->input.length - k->taken;
  size_t size = sequence_size(bytes, length);
  if (!size && !late) return false;
  if (!size) { // nothing follows: Escape alone, or a sequence that was cut off
    key->code = length == 1 ? TD_KEY_ESCAPE : TD_KEY_NONE;
    if (length == 2 && (bytes[1] == '[' || bytes[1] == 'O' || strchr("]P_^X", bytes[1]))) {
      key->modifiers = TD_ALT;
      key->code = (unsigned char)bytes[1];
    }
    if (length > 2 && strchr("[]P_^X", bytes[1])) return false; // a sequence in pieces: its rest will come
    return take(k, key, length);
  }
  if (size == sizeof paste_begin - 1 && memcmp(bytes, paste_begin, size) == 0) {
    k->taken += size;
    k->pasting = true;
    return next_of_paste(k, key);
  }
  read_sequence(key, bytes, size);
  return take(k, key, size);
}

bool td_keyboard_next(td_keyboard *k, bool late, td_key *key) {
  if (k->paste_given) {
    td_text_clear(&k->paste);
    k->paste_given = false;
  }
  while (k->input.length > k->taken) {
    *key = (td_key){0};
    bool came = k->pasting                              ? next_of_paste(k, key)
                : k->input.data[k->taken] == '\033'     ? next_sequence(k, late, key)
                                                        : next_character(k, late, key);
    if (!came) return false;
    if (key->code != TD_KEY_NONE) return true;
  }
  return false;
}

// ---- key texts ----

static const struct { uint32_t code; const char *name; } names[] = {
#define X(NAME, text) {TD_KEY_##NAME, text},
    TD_KEYS(X)
#undef X
    {' ', "Space"}};

bool td_key_parse(const char *text, size_t length, td_key *key) {
  static const struct { char letter; int modifier; } prefixes[] = {{'C', TD_CONTROL}, {'M', TD_ALT}, {'S', TD_SHIFT}};
  *key = (td_key){0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].name) == length && memcmp(names[i].name, text, length) == 0)
      return key->code = names[i].code, true;
  for (size_t i = 0; length > 2 && text[1] == '-' && i < sizeof prefixes / sizeof *prefixes; i++)
    if (text[0] == prefixes[i].letter) {
      if (!td_key_parse(text + 2, length - 2, key)) return false;
      key->modifiers |= prefixes[i].modifier;
      return true;
    }
  uint32_t code;
  if (td_source_decode(text, length, &code) != (int)length) return false;
  key->code = code;
  return true;
}

void td_key_print(const td_key *key, td_text *text) {
  if (key->modifiers & TD_CONTROL) td_text_add(text, "Ctrl-");
  if (key->modifiers & TD_ALT) td_text_add(text, "Alt-");
  if (key->modifiers & TD_SHIFT) td_text_add(text, "Shift-");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].code == key->code) {
      td_text_add(text, key->code == TD_KEY_BACK_TAB ? "Shift-Tab" : names[i].name);
      return;
    }
  char bytes[4];
  uint32_t code = key->modifiers & TD_CONTROL && key->code >= 'a' && key->code <= 'z' ? key->code - 32 : key->code;
  td_text_add_bytes(text, bytes, (size_t)td_utf8_encode(bytes, code));
}
