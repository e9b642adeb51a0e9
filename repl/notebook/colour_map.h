// Colour maps: numbers as colours, in steps that look even. Numbers that are not finite have colours that no map has,
// and no picture of numbers uses for anything else.
#ifndef TD_NOTEBOOK_COLOUR_MAP_H
#define TD_NOTEBOOK_COLOUR_MAP_H
#include <stdbool.h>
#include <stdint.h>

enum { TD_COLOUR_NAN = 0xFF00FF, TD_COLOUR_RISES = 0x00FF00, TD_COLOUR_FALLS = 0x00A000 }; // magenta, greens

typedef struct td_colour_map td_colour_map;

const td_colour_map *td_colour_map_find(const char *name); // NULL: none of that name
const char *td_colour_map_names(void);                     // for messages: "viridis, ..."
const char *td_colour_map_name(const td_colour_map *map);
uint32_t td_colour_map_at(const td_colour_map *map, double place); // 0xRRGGBB; place 0 to 1, NaN and infinities marked
bool td_colour_is_mark(uint32_t rgb);
#endif
