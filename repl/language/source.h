// The text of a cell, a deck or a -e argument, and where things are in it. Everything later points here: a td_place is
// (script id << 32) | byte offset. Scripts stay alive as long as code from them may run or be reported.
#ifndef TD_LANGUAGE_SOURCE_H
#define TD_LANGUAGE_SOURCE_H
#include <stddef.h>
#include "engine/base/error.h"
#include "engine/base/text.h"

typedef struct td_script {
  uint32_t id;              // 1, 2, ... in its td_sources
  uint32_t refs;            // its td_sources has one, each arena with its tree another
  char *name;               // "train.deck", "cell 3", "<-e>"; owned
  char *folder;             // where imports are looked for first; owned, "" = current folder
  char *text;               // owned, NUL-terminated, length bytes before it (checked to hold no NUL)
  uint32_t length;
  uint32_t *lines;          // offset of each line's first byte; owned
  uint32_t line_count;
  int32_t line_base;        // added to line numbers (0: the first line is line 1)
} td_script;

typedef struct td_span { uint32_t begin, end; } td_span; // bytes of a script, end excluded

// ids ascend; last: the highest ever
typedef struct td_sources { td_script **items; uint32_t count, capacity, last; } td_sources;

// Scripts that no tree refers to go when many newer ones have come, so a long session doesn't keep all it ever read.
// borrowed; NULL: no memory
td_script *td_source_add(td_sources *sources, const char *name, const char *folder, const char *text, size_t length);
td_script *td_source_ref(td_script *script);
void td_source_unref(td_script *script);
td_script *td_source_find(const td_sources *sources, td_place place); // borrowed; NULL: unknown or gone
// from 1; column in characters
void td_source_position(const td_script *script, uint32_t offset, int *line, int *column);
const char *td_source_line(const td_script *script, int line, int *length); // borrowed; without its line end
void td_sources_clear(td_sources *sources);
// Columns that a character takes in a terminal: 0 (combining), 1 or 2 (wide). The same on every machine and locale.
int td_source_width(uint32_t character);
// Decodes the character at text[0..length); returns its bytes, or 0 when they are not UTF-8.
int td_source_decode(const char *text, size_t length, uint32_t *character);
// Adds text for a terminal: control characters (newline and tab too), bidirectional marks and broken bytes become
// visible ("\\x1b"). Returns the columns added. text NULL: counts only.
int td_source_print(td_text *text, const char *bytes, size_t length);
// The same in at most so many columns: what is wider loses its middle, where the ellipsis, of one column, stands.
void td_source_fit(td_text *text, const char *bytes, size_t length, int columns, const char *ellipsis);
#endif
