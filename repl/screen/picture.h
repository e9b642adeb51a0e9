// Pictures in character cells: two pixels a cell as half-blocks in 256 colours, a ramp of characters elsewhere. Scaled by
// the mean of what a pixel covers; small ones are enlarged by whole numbers.
#ifndef TD_SCREEN_PICTURE_H
#define TD_SCREEN_PICTURE_H
#include "repl/screen/theme.h"

typedef struct td_picture { const uint8_t *pixels; int width, height; } td_picture; // RGB, the top row first

int td_picture_rows(int width, int height, int columns, int rows); // that it takes within so many columns and rows
// Draws one of the rows that td_picture_rows gave.
void td_picture_draw_row(const td_picture *picture, const td_theme *theme, td_surface *surface, int row, int column,
                         int columns, int rows, int index);
int td_colour_of(int red, int green, int blue); // of the 256
#endif
