// Pictures in character cells: half-blocks in 256 colours, shades elsewhere. A picture is scaled once for the room that
// it has, and kept: a frame costs its cells alone.
#ifndef TD_SCREEN_PICTURE_H
#define TD_SCREEN_PICTURE_H
#include "repl/notebook/picture_text.h"
#include "repl/screen/theme.h"

enum { TD_PICTURES_KEPT = 24 };
typedef struct td_picture { // one that was scaled
  uint64_t id, used;
  td_pixels fitted;
} td_picture;

typedef struct td_pictures {
  td_picture kept[TD_PICTURES_KEPT];
  uint64_t clock;
} td_pictures;

typedef struct td_room { int columns, rows, grown_rows; } td_room; // it grows up to grown_rows

int td_picture_rows(int width, int height, const td_theme *theme, td_room room); // of cells, that it takes
// Draws the index-th of the rows that td_picture_rows gave. id: of these pixels, never of others; 0 is none.
void td_picture_draw_row(td_pictures *pictures, uint64_t id, const td_pixels *pixels, const td_theme *theme,
                         td_room room, td_surface *surface, int row, int column, int index);
// Writes a PNG; *message says so, or why not. false: it was not written.
bool td_pixels_save(const td_pixels *pixels, const char *path, td_text *message);
void td_pictures_clear(td_pictures *pictures);
#endif
