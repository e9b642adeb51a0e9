// What things look like: style names as rows, with colours for 256 and for 8 colours, dark and light; and the glyphs
// that are no ASCII, as rows with their stand-ins. Meaning never hangs on colour alone.
#ifndef TD_SCREEN_THEME_H
#define TD_SCREEN_THEME_H
#include "repl/notebook/chart_cells.h"
#include "repl/screen/surface.h"

// X(NAME, dark 256, light 256, of 8, attributes); -1: the terminal's own
#define TD_LOOKS(X)                                                                                                    \
  X(TEXT, -1, -1, -1, 0)                                                                                               \
  X(FAINT, 245, 244, -1, TD_DIM)                                                                                       \
  X(TITLE, 252, 235, -1, TD_BOLD)                                                                                      \
  X(BAR, 250, 236, -1, TD_REVERSE)                                                                                     \
  X(BAR_KEY, 221, 88, 3, TD_REVERSE | TD_BOLD)                                                                         \
  X(FRAME, 240, 250, -1, TD_DIM)                                                                                       \
  X(FRAME_FOCUS, 75, 25, 6, TD_BOLD)                                                                                   \
  X(PROMPT, 114, 28, 2, TD_BOLD)                                                                                       \
  X(NUMBER_OUT, 174, 124, 1, 0)                                                                                        \
  X(KEYWORD, 176, 90, 5, TD_BOLD)                                                                                      \
  X(STRING, 150, 64, 2, 0)                                                                                             \
  X(COMMENT, 245, 244, 6, TD_DIM)                                                                                      \
  X(LITERAL, 180, 130, 3, 0)                                                                                           \
  X(BUILTIN, 110, 25, 4, 0)                                                                                            \
  X(COMMAND, 180, 130, 3, TD_BOLD)                                                                                     \
  X(BRACKET, 221, 160, 3, TD_BOLD | TD_UNDERLINE)                                                                      \
  X(VALUE, 252, 235, -1, 0)                                                                                            \
  X(ERROR, 210, 160, 1, 0)                                                                                             \
  X(ERROR_HEAD, 203, 160, 1, TD_BOLD)                                                                                  \
  X(WARNING, 221, 136, 3, 0)                                                                                           \
  X(MARKDOWN, 252, 235, -1, 0)                                                                                         \
  X(HEADING, 117, 25, 6, TD_BOLD)                                                                                      \
  X(SELECTED, -1, -1, -1, TD_REVERSE)                                                                                  \
  X(MATCH, 16, 16, 3, TD_REVERSE)                                                                                      \
  X(STALE, 221, 136, 3, 0)                                                                                             \
  X(RUNNING, 117, 25, 6, TD_BOLD)                                                                                      \
  X(DONE, 114, 28, 2, 0)                                                                                               \
  X(FAILED, 203, 160, 1, TD_BOLD)                                                                                      \
  X(PROGRESS, 75, 25, 4, 0)                                                                                            \
  X(CURVE_1, 75, 25, 4, 0) X(CURVE_2, 214, 166, 3, 0) X(CURVE_3, 114, 28, 2, 0) X(CURVE_4, 176, 90, 5, 0)              \
  X(CURVE_5, 203, 160, 1, 0) X(CURVE_6, 80, 30, 6, 0)

enum td_look {
#define X(NAME, ...) TD_LOOK_##NAME,
  TD_LOOKS(X)
#undef X
  TD_LOOK_COUNT
};

// X(NAME, Unicode, ASCII)
#define TD_GLYPHS(X)                                                                                                   \
  X(HORIZONTAL, 0x2500, '-') X(VERTICAL, 0x2502, '|') X(TEE, 0x252c, '+') X(CROSS, 0x253c, '+') X(TEE_UP, 0x2534, '+') \
  X(TEE_RIGHT, 0x251c, '+') X(TEE_LEFT, 0x2524, '+')                                                                   \
  X(FOLDED, 0x25b8, '>') X(OPEN, 0x25be, 'v') X(BULLET, 0x2022, '*') X(ELLIPSIS, 0x2026, '~') X(HERE, 0x258c, '>')     \
  X(RUNNING, 0x25cf, '*') X(QUEUED, 0x25cb, 'o') X(PAUSED, 0x2016, '=') X(DONE, 0x2713, '.') X(FAILED, 0x2717, '!')    \
  X(STALE, '~', '~') X(FULL, 0x2588, '#') X(UPPER, 0x2580, '"') X(SHADE, 0x2591, '.') X(UP, 0x2191, '^')               \
  X(DOWN, 0x2193, 'v') X(LEFT, 0x2190, '<') X(RIGHT, 0x2192, '>')

enum td_glyph {
#define X(NAME, ...) TD_GLYPH_##NAME,
  TD_GLYPHS(X)
#undef X
  TD_GLYPH_COUNT
};

typedef struct td_theme {
  int colours;             // 0, 8, 256
  bool light;
  enum td_chart_glyphs glyphs; // what the terminal is trusted with
} td_theme;

// From TERM, the locale, NO_COLOR and COLORFGBG.
td_theme td_theme_find(int colours, bool unicode);
td_style td_theme_style(const td_theme *theme, enum td_look look);
uint32_t td_theme_glyph(const td_theme *theme, enum td_glyph glyph);
// Puts a chart on a surface, its first cell at row, column.
void td_theme_chart(const td_theme *theme, td_surface *surface, int row, int column, const td_chart_cells *cells);
// "dark", "light", "mono", "braille", "block", "half", "ascii". false: none of these.
bool td_theme_set(td_theme *theme, const char *word);
#endif
