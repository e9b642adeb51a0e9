// A grid of character cells that panes draw on: no terminal, no curses, so the same drawing can be looked at in a test.
// Positions are rows and columns from 0; what falls outside the clip is not drawn. Text from data is shown, never
// obeyed: control characters and invalid bytes appear as visible text.
#ifndef TD_SCREEN_SURFACE_H
#define TD_SCREEN_SURFACE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/base/text.h"

enum td_attribute { TD_BOLD = 1, TD_DIM = 2, TD_ITALIC = 4, TD_UNDERLINE = 8, TD_REVERSE = 16 };

typedef struct td_style {
  int16_t foreground, background; // 0 to 255, or -1: the terminal's own
  uint16_t attributes;
} td_style;

typedef struct td_spot {   // a character cell
  uint32_t code;           // 0: the right half of a wide character
  uint32_t mark;           // a combining character over it; 0: none
  td_style style;
} td_spot;

typedef struct td_rect { int row, column, rows, columns; } td_rect;

typedef struct td_surface {
  td_spot *spots;          // rows * columns; owned
  int rows, columns;
  td_rect clip;
  int cursor_row, cursor_column; // -1: hidden
} td_surface;

bool td_surface_resize(td_surface *surface, int rows, int columns); // blank after it; false: no memory, nothing changed
void td_surface_free(td_surface *surface);
void td_surface_clear(td_surface *surface); // blank, no clip, no cursor
void td_surface_clip(td_surface *surface, td_rect clip);
td_rect td_rect_meet(td_rect a, td_rect b);

void td_surface_put(td_surface *surface, int row, int column, uint32_t code, td_style style);
void td_surface_fill(td_surface *surface, td_rect area, uint32_t code, td_style style);
void td_surface_restyle(td_surface *surface, td_rect area, td_style style); // attributes are added, colours of -1 stay
// Draws text from column on, at most so many columns; stops at a newline. Tabs go to the next multiple of 8 from where
// the text begins. Returns the columns used.
int td_surface_text(td_surface *surface, int row, int column, int columns, const char *text, size_t length,
                    td_style style);
int td_surface_print(td_surface *surface, int row, int column, int columns, td_style style, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
// As text: rows without the blanks at their ends, each with its newline. For tests, and for the screen as a file.
void td_surface_to_text(const td_surface *surface, td_text *text);

// ---- text in columns ----

// One character of a text as it is shown: its bytes, its columns (a tab's depend on where it stands), and the code
// points that appear ("^A", "\x9b" for what must not be sent). count is at most TD_SHOWN.
enum { TD_SHOWN = 16 };
typedef struct td_shown {
  size_t size;
  int columns, count;
  uint32_t codes[TD_SHOWN];
} td_shown;
td_shown td_show_character(const char *text, size_t length, int column);

// A row of a text that is wrapped at so many columns: bytes [begin, end), and where the next row begins. OUTPUT: by
// words, but code with carets beneath it by letters, so that they stay under what they mark.
typedef struct td_wrapped {
  size_t begin, end, next;
  int columns;
  bool last, marked; // marked: carets stand beneath its line, or it is those
  enum td_wrap { TD_WRAP_LETTERS, TD_WRAP_WORDS, TD_WRAP_OUTPUT } by;
} td_wrapped;
// false: the text has no further row. An empty text has one row, and so has the end after a newline.
// *row is zeroed but for by before the first.
bool td_wrap_next(const char *text, size_t length, int columns, td_wrapped *row);
int td_wrap_count(const char *text, size_t length, int columns, enum td_wrap by);
// Where the byte at stands: its row and column. At a row's full width it stands in the row after it.
void td_wrap_find(const char *text, size_t length, int columns, enum td_wrap by, size_t at, int *row, int *column);
// The other way round, clamped.
size_t td_wrap_at(const char *text, size_t length, int columns, enum td_wrap by, int row, int column);
int td_text_columns(const char *text, size_t length);
#endif
