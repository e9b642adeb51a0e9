// Scripts and where things are in them: the list of living scripts, offsets to lines and columns, and how bytes of a
// source look in a terminal. Ids only grow, so a stale place finds nothing rather than another script's line. A line
// ends at \n, \r\n or \r. Everything here runs on the evaluator's thread, apart from the pure functions on characters.
#include "repl/language/source.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/memory.h"

enum { SCRIPTS_KEPT = 64 }; // newest scripts that live on without a tree, for messages about code that just ran

static void script_free(td_script *script) {
  td_memory_free(script->name);
  td_memory_free(script->folder);
  td_memory_free(script->text);
  td_memory_free(script->lines);
  td_memory_free(script);
}

td_script *td_source_ref(td_script *script) {
  script->refs++;
  return script;
}

void td_source_unref(td_script *script) {
  if (script && --script->refs == 0) script_free(script);
}

static uint32_t line_end(const char *text, uint32_t length, uint32_t at) { // offset of the line's end mark, or length
  while (at < length && text[at] != '\n' && text[at] != '\r') at++;
  return at;
}

static uint32_t line_next(const char *text, uint32_t length, uint32_t end) { // first byte after the end mark
  if (end >= length) return length;
  return end + (text[end] == '\r' && end + 1 < length && text[end + 1] == '\n' ? 2 : 1);
}

static bool find_lines(td_script *script) {
  uint32_t count = 1;
  for (uint32_t at = 0; at < script->length;) {
    uint32_t end = line_end(script->text, script->length, at);
    at = line_next(script->text, script->length, end);
    if (end < script->length) count++;
  }
  script->lines = td_memory_new(count * sizeof *script->lines);
  if (!script->lines) return false;
  script->lines[0] = 0;
  script->line_count = 1;
  for (uint32_t at = 0; script->line_count < count;) {
    at = line_next(script->text, script->length, line_end(script->text, script->length, at));
    script->lines[script->line_count++] = at;
  }
  return true;
}

static void drop_old(td_sources *sources) { // scripts that nothing but the list refers to, the newest ones apart
  uint32_t kept = 0;
  for (uint32_t i = 0; i < sources->count; i++) {
    td_script *script = sources->items[i];
    if (script->refs > 1 || i + SCRIPTS_KEPT >= sources->count) sources->items[kept++] = script;
    else td_source_unref(script);
  }
  sources->count = kept;
}

static bool make_room(td_sources *sources) { // the list grows when dropping old scripts doesn't free half of it
  if (sources->count < sources->capacity) return true;
  drop_old(sources);
  if (sources->count < sources->capacity / 2) return true;
  uint32_t capacity = sources->capacity ? sources->capacity * 2 : 4 * SCRIPTS_KEPT;
  td_script **items = td_memory_resize(sources->items, capacity * sizeof *items);
  if (!items) return sources->count < sources->capacity;
  sources->items = items;
  sources->capacity = capacity;
  return true;
}

td_script *td_source_add(td_sources *sources, const char *name, const char *folder, const char *text, size_t length) {
  if (length >= UINT32_MAX || !make_room(sources)) return NULL;
  td_script *script = td_memory_new_zero(sizeof *script);
  if (!script) return NULL;
  script->name = td_memory_text(name ? name : "");
  script->folder = td_memory_text(folder ? folder : "");
  script->text = td_memory_new(length + 1);
  script->length = (uint32_t)length;
  if (script->text) {
    if (length) memcpy(script->text, text, length);
    script->text[length] = 0;
  }
  if (!script->name || !script->folder || !script->text || !find_lines(script)) {
    script_free(script);
    return NULL;
  }
  script->refs = 1;
  script->id = ++sources->last;
  sources->items[sources->count++] = script;
  return script;
}

td_script *td_source_find(const td_sources *sources, td_place place) {
  uint32_t id = (uint32_t)(place >> 32), low = 0, high = sources->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (sources->items[middle]->id < id) low = middle + 1;
    else high = middle;
  }
  return low < sources->count && sources->items[low]->id == id ? sources->items[low] : NULL;
}

void td_sources_clear(td_sources *sources) {
  for (uint32_t i = 0; i < sources->count; i++) td_source_unref(sources->items[i]);
  td_memory_free(sources->items);
  *sources = (td_sources){0};
}

static uint32_t line_index(const td_script *script, uint32_t offset) { // of the line that holds offset
  uint32_t low = 0, high = script->line_count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (script->lines[middle] <= offset) low = middle;
    else high = middle;
  }
  return low;
}

void td_source_position(const td_script *script, uint32_t offset, int *line, int *column) {
  if (offset > script->length) offset = script->length;
  uint32_t index = line_index(script, offset);
  int characters = 1;
  for (uint32_t at = script->lines[index]; at < offset; at++) {
    if (((unsigned char)script->text[at] & 0xc0) != 0x80) characters++;
  }
  if (line) *line = (int)index + 1 + script->line_base;
  if (column) *column = characters;
}

const char *td_source_line(const td_script *script, int line, int *length) {
  int64_t index = (int64_t)line - 1 - script->line_base;
  *length = 0;
  if (index < 0 || index >= script->line_count) return "";
  uint32_t begin = script->lines[index];
  *length = (int)(line_end(script->text, script->length, begin) - begin);
  return script->text + begin;
}

// ---- characters ----

typedef struct range {
  uint32_t first, last;
} range;

static bool in_ranges(const range *ranges, int count, uint32_t c) { // ranges ascend
  int low = 0, high = count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (ranges[middle].last < c) low = middle + 1;
    else high = middle;
  }
  return low < count && ranges[low].first <= c;
}

// Blocks of Unicode 15: combining marks and joiners; East Asian wide and fullwidth characters and emoji.
static const range combining[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},     {0x64b, 0x65f},     {0x6d6, 0x6dc},
    {0x900, 0x902},   {0x93a, 0x93a},   {0x93c, 0x93c},   {0x941, 0x948},     {0x94d, 0x94d},     {0xe31, 0xe31},
    {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1160, 0x11ff}, {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},   {0x200b, 0x200f},
    {0x202a, 0x202e}, {0x2060, 0x2064}, {0x2066, 0x206f}, {0x20d0, 0x20f0},   {0x302a, 0x302d},   {0x3099, 0x309a},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff}, {0xe0001, 0xe007f}, {0xe0100, 0xe01ef}};
static const range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},
    {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},
    {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
    {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},
    {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},
    {0xffe0, 0xffe6},   {0x16fe0, 0x18aff}, {0x1b000, 0x1b2fb}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf},
    {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c},
    {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4},
    {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e},
    {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f},
    {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df},
    {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945},
    {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd}};

int td_source_width(uint32_t character) {
  if (character < 0x300) return 1;
  if (in_ranges(combining, sizeof combining / sizeof *combining, character)) return 0;
  return in_ranges(wide, sizeof wide / sizeof *wide, character) ? 2 : 1;
}

int td_source_decode(const char *text, size_t length, uint32_t *character) {
  const unsigned char *bytes = (const unsigned char *)text;
  if (!length) return 0;
  unsigned char first = bytes[0];
  if (first < 0x80) return *character = first, 1;
  int count = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length < (size_t)count) return 0;
  uint32_t value = first & (0xffu >> (count + 1));
  for (int i = 1; i < count; i++) {
    if ((bytes[i] & 0xc0) != 0x80) return 0;
    value = value << 6 | (bytes[i] & 0x3f);
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[count] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
  *character = value;
  return count;
}

static bool is_hidden(uint32_t c) { // would act on the terminal, or on the order of what it shows
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x200e || c == 0x200f || c == 0x2028 || c == 0x2029;
}

static int print_hidden(td_text *text, uint32_t c) {
  if (text) td_text_print(text, c > 0xff ? "\\u%04x" : "\\x%02x", (unsigned)c);
  return c > 0xff ? 6 : 4;
}

int td_source_print(td_text *text, const char *bytes, size_t length) {
  int columns = 0;
  for (size_t at = 0; at < length;) {
    uint32_t c = (unsigned char)bytes[at];
    int size = td_source_decode(bytes + at, length - at, &c);
    if (!size || is_hidden(c)) {
      columns += print_hidden(text, c);
    } else {
      if (text) td_text_add_bytes(text, bytes + at, (size_t)size);
      columns += td_source_width(c);
    }
    at += size ? (size_t)size : 1;
  }
  return columns;
}

static size_t skip_columns(const td_text *text, int columns) { // bytes that take no more, marks with their base
  size_t at = 0;
  for (int used = 0; at < text->length;) {
    uint32_t c = 0;
    int size = td_source_decode(text->data + at, text->length - at, &c);
    used += td_source_width(c);
    if (used > columns) break;
    at += (size_t)size;
  }
  return at;
}

void td_source_fit(td_text *text, const char *bytes, size_t length, int columns, const char *ellipsis) {
  td_text visible = {0};
  int all = td_source_print(&visible, bytes, length), head = (columns - 1) / 2;
  if (!visible.failed && all <= columns) td_text_add_bytes(text, visible.data ? visible.data : "", visible.length);
  else if (!visible.failed && columns > 0) {
    size_t tail = skip_columns(&visible, all - (columns - 1 - head));
    td_text_add_bytes(text, visible.data, skip_columns(&visible, head));
    td_text_add(text, ellipsis);
    td_text_add_bytes(text, visible.data + tail, visible.length - tail);
  }
  text->failed |= visible.failed;
  td_text_clear(&visible);
}
