// Tensors as pixels: images, heat maps and grids of them, which are tiles beside each other.
#ifndef TD_NOTEBOOK_PICTURE_TENSOR_H
#define TD_NOTEBOOK_PICTURE_TENSOR_H
#include "repl/language/tensors.h"
#include "repl/notebook/colour_map.h"

enum { TD_TILES_MAX = 100 };

typedef struct td_pixels {
  int width, height;
  uint8_t *rgb;        // width * height * 3, the top row first; owned
} td_pixels;

void td_pixels_clear(td_pixels *pixels);
// Smaller: means of what falls together, but where it has a mark of a number that is not finite, the mark. Larger: each
// pixel several times. false: no memory.
bool td_pixels_resize(td_pixels *to, const td_pixels *from, int width, int height);

typedef struct td_tile {
  td_tensor *tensor;                // owned
  int64_t first;                    // index of its first element; the others follow as [height, width, channels]
  int64_t height, width, channels;  // channels: 1 (by a colour map), 3, 4
} td_tile;

typedef struct td_tiles {
  td_tile at[TD_TILES_MAX];
  int64_t count, total;             // total: how many there would be
  int64_t columns;                  // of the grid; 0: as many as look well
} td_tiles;

typedef struct td_extent {          // of all elements of tiles
  double low, high, mean;           // of the finite ones
  int64_t finite, nans, rises, falls;
} td_extent;

typedef struct td_tone {            // how numbers become colours
  const td_colour_map *map;
  double low, high;                 // that are its ends
} td_tone;

void td_tiles_clear(td_tiles *tiles);
bool td_tiles_measure(td_interpreter *I, const td_tiles *tiles, td_extent *extent); // false: exception
// No side is longer than most: tiles are shrunk to fit. false: exception.
bool td_tiles_draw(td_interpreter *I, const td_tiles *tiles, const td_tone *tone, int most, td_pixels *pixels);
#endif
