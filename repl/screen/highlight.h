// Code in colour: the language's own lexer says what things are.
#ifndef TD_SCREEN_HIGHLIGHT_H
#define TD_SCREEN_HIGHLIGHT_H
#include "repl/screen/theme.h"

// The look of every byte of a code: looks has room for length. match: the bracket that pairs with the one at byte
// cursor (or before it) and itself are TD_LOOK_BRACKET; pass (size_t)-1 for none. Text that the lexer can't read stays
// plain.
void td_highlight(const char *text, size_t length, size_t cursor, uint8_t *looks);
// Draws the bytes [begin, end) of a text in one row, each as its look says; search NULL: nothing is marked as found.
void td_highlight_draw(td_surface *surface, const td_theme *theme, int row, int column, const char *text, size_t length,
                       size_t begin, size_t end, const uint8_t *looks, const char *search);
void td_highlight_markdown(const char *text, size_t length, uint8_t *looks);
#endif
