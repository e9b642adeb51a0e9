// Pictures in pixels, for terminals that say they can: kitty's protocol, or sixels. What a terminal can is asked at the
// start and may be answered much later; inside tmux and screen nothing is asked, since what they pass on is unsure.
#ifndef TD_SCREEN_GRAPHICS_H
#define TD_SCREEN_GRAPHICS_H
#include "repl/screen/picture.h"

typedef enum td_graphics { TD_GRAPHICS_CELLS, TD_GRAPHICS_SIXEL, TD_GRAPHICS_KITTY } td_graphics;

bool td_graphics_question(td_text *text); // what to send; false: better not asked here
// What an answer of the terminal says; false: nothing on this.
bool td_graphics_answer(const char *bytes, size_t length, td_graphics *graphics);

// The bytes that draw a picture at the cursor, in so many columns and rows of cells of width x height pixels.
void td_graphics_draw(td_graphics graphics, const td_pixels *picture, int columns, int rows, int width, int height,
                      td_text *text);
// Of the last one; nothing where cells written over it do that.
void td_graphics_erase(td_graphics graphics, td_text *text);
#endif
