// Pixels as text: for terminals, and for pipes that ask for it.
#ifndef TD_NOTEBOOK_PICTURE_TEXT_H
#define TD_NOTEBOOK_PICTURE_TEXT_H
#include "engine/base/text.h"
#include "repl/notebook/picture_tensor.h"

// Characters by brightness, ' ' to '@', two for each pixel where there is room, in at most so many columns; ! NaN,
// ^ infinity, v -infinity. A line a row, without spaces at its end.
bool td_pixels_ascii(td_text *text, const td_pixels *pixels, int columns);
// Half blocks, two pixels a character, in 24-bit colours or in the 256 of a terminal; escape sequences are ended on
// each line. rows: of characters, at most. Both: false: no memory.
bool td_pixels_blocks(td_text *text, const td_pixels *pixels, int columns, int rows, bool full_colour);
int td_colour_256(uint32_t rgb); // the nearest of a terminal's 256 colours, among the 240 that are the same everywhere
#endif
