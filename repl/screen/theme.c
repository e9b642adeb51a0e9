// See theme.h.
#include "repl/screen/theme.h"
#include <stdlib.h>
#include <string.h>

typedef struct look { int16_t dark, light, eight; uint16_t attributes; } look;
static const look looks[TD_LOOK_COUNT] = {
#define X(NAME, dark, light, eight, attributes) {dark, light, eight, attributes},
    TD_LOOKS(X)
#undef X
};

static const struct { uint32_t unicode; char ascii; } glyphs[TD_GLYPH_COUNT] = {
#define X(NAME, unicode, ascii) {unicode, ascii},
    TD_GLYPHS(X)
#undef X
};

td_theme td_theme_find(int colours, bool unicode) {
  const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM"), *shades = getenv("COLORFGBG");
  td_theme theme = {.colours = no_colour && *no_colour ? 0 : colours};
  const char *background = shades ? strrchr(shades, ';') : NULL;
  theme.light = background && (strcmp(background, ";15") == 0 || strcmp(background, ";7") == 0);
  bool console = term && strcmp(term, "linux") == 0; // its font has blocks and no braille
  theme.glyphs = !unicode ? TD_GLYPHS_ASCII : console ? TD_GLYPHS_BLOCK : TD_GLYPHS_BRAILLE;
  return theme;
}

td_style td_theme_style(const td_theme *theme, enum td_look which) {
  const look *l = &looks[which];
  int16_t colour = theme->colours >= 256 ? theme->light ? l->light : l->dark : theme->colours >= 8 ? l->eight : -1;
  uint16_t attributes = l->attributes;
  if (theme->colours >= 256) attributes &= (uint16_t)~TD_DIM; // the colour itself is dim
  return (td_style){colour, -1, attributes};
}

uint32_t td_theme_glyph(const td_theme *theme, enum td_glyph glyph) {
  return theme->glyphs == TD_GLYPHS_ASCII ? (uint32_t)glyphs[glyph].ascii : glyphs[glyph].unicode;
}

void td_theme_chart(const td_theme *theme, td_surface *surface, int row, int column, const td_chart_cells *cells) {
  for (int y = 0; y < cells->rows; y++)
    for (int x = 0; x < cells->columns; x++) {
      const td_chart_cell *cell = &cells->cells[y * cells->columns + x];
      if (!cell->glyph || cell->glyph == ' ') continue;
      enum td_look which = cell->colour == TD_CELL_MARK    ? TD_LOOK_FAILED
                          : cell->colour >= TD_CELL_CURVE ? TD_LOOK_CURVE_1 + (cell->colour - TD_CELL_CURVE) % 6
                                                          : TD_LOOK_TEXT;
      td_style style = td_theme_style(theme, which);
      if (cell->attributes & TD_CELL_DIM) style.attributes |= TD_DIM;
      if (cell->attributes & TD_CELL_BOLD) style.attributes |= TD_BOLD;
      if (cell->attributes & TD_CELL_REVERSE) style.attributes |= TD_REVERSE;
      td_surface_put(surface, row + y, column + x, cell->glyph, style);
    }
}

bool td_theme_set(td_theme *theme, const char *word) {
  static const char *const sets[] = {"ascii", "half", "block", "braille"};
  for (int i = 0; i < 4; i++)
    if (strcmp(word, sets[i]) == 0) return theme->glyphs = (enum td_chart_glyphs)i, true;
  if (strcmp(word, "mono") == 0) return theme->colours = 0, true;
  if (strcmp(word, "dark") != 0 && strcmp(word, "light") != 0) return false;
  theme->light = strcmp(word, "light") == 0;
  return true;
}
