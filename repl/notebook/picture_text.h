// Pixels as text: for terminals, and for pipes that ask for it.
#ifndef TD_NOTEBOOK_PICTURE_TEXT_H
#define TD_NOTEBOOK_PICTURE_TEXT_H
#include "engine/base/text.h"
#include "repl/notebook/picture_tensor.h"

// How large a picture becomes in so many columns and rows of characters: *width by *height pixels, one a character, or
// with halves two, one over the other. A character is taken to be twice as high as wide. Where it grows it does so by
// whole numbers, and stops at grown_rows. In shades what would keep little more than half of its size has just half, so
// that each column of pixels has one of its own.
void td_pixels_fit(int from_width, int from_height, bool halves, int columns, int rows, int grown_rows, int *width,
                   int *height);
uint32_t td_pixels_at(const td_pixels *pixels, int x, int y); // 0xRRGGBB
char td_pixels_shade(uint32_t rgb); // by brightness, ' ' to '@'; ! NaN, ^ infinity, v -infinity

// As shades in at most so many columns. A line a row, without spaces at its end.
bool td_pixels_ascii(td_text *text, const td_pixels *pixels, int columns);
// Half blocks, two pixels a character, in 24-bit colours or in the 256 of a terminal; escape sequences are ended on
// each line. rows: of characters, at most. Both: false: no memory.
bool td_pixels_blocks(td_text *text, const td_pixels *pixels, int columns, int rows, bool full_colour);
int td_colour_256(uint32_t rgb); // the nearest of a terminal's 256 colours, among the 240 that are the same everywhere
#endif
