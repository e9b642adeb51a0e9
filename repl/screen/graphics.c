// See graphics.h. Sources: kitty's page on its graphics protocol; the VT330/340 programmer manual on sixels.
#include "repl/screen/graphics.h"
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/base64.h"

enum { CHUNK = 3072, LEVELS = 6 }; // CHUNK: bytes whose base64 is 4096 characters

bool td_graphics_question(td_text *text) {
  const char *term = getenv("TERM"), *tmux = getenv("TMUX"), *screen = getenv("STY");
  if (!term || strcmp(term, "linux") == 0 || strncmp(term, "screen", 6) == 0 || strncmp(term, "tmux", 4) == 0)
    return false;
  if ((tmux && *tmux) || (screen && *screen)) return false;
  td_text_add(text, "\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\\033[c");
  return true;
}

// Attribute 4 of a DA1 answer, "\033[?62;4;6c": as a whole parameter.
static bool has_sixels(const char *bytes, size_t length) {
  for (size_t i = 3; i < length; i++)
    if (bytes[i] == '4' && (bytes[i - 1] == ';' || bytes[i - 1] == '?') && i + 1 < length &&
        (bytes[i + 1] == ';' || bytes[i + 1] == 'c'))
      return true;
  return false;
}

bool td_graphics_answer(const char *bytes, size_t length, td_graphics *graphics) {
  if (length > 6 && memcmp(bytes, "\033_Gi=31", 7) == 0) {
    if (!memmem(bytes, length, ";OK", 3)) return false;
    *graphics = TD_GRAPHICS_KITTY;
    return true;
  }
  if (length < 4 || memcmp(bytes, "\033[?", 3) != 0 || bytes[length - 1] != 'c' || !has_sixels(bytes, length))
    return false;
  if (*graphics == TD_GRAPHICS_CELLS) *graphics = TD_GRAPHICS_SIXEL; // kitty's answer comes first
  return true;
}

// ---- kitty ----

static void draw_kitty(const td_pixels *p, int columns, int rows, td_text *text) {
  size_t size = (size_t)p->width * (size_t)p->height * 3;
  for (size_t at = 0; at < size; at += CHUNK) {
    size_t part = size - at < CHUNK ? size - at : CHUNK;
    if (!at)
      td_text_print(text, "\033_Ga=T,i=32,f=24,s=%d,v=%d,c=%d,r=%d,q=2,C=1,m=%d;", p->width, p->height, columns, rows,
                    part < size);
    else td_text_print(text, "\033_Gm=%d;", at + part < size);
    td_base64_add(text, (const char *)p->rgb + at, part);
    td_text_add(text, "\033\\");
  }
}

// ---- sixels: 6 levels of each colour, bands of six rows ----

static int level_of(uint32_t value) { return (int)(value * (LEVELS - 1) / 255); }

static int colour_at(const td_pixels *p, int x, int y) {
  uint32_t rgb = td_pixels_at(p, x, y);
  return (level_of(rgb >> 16) * LEVELS + level_of(rgb >> 8 & 255)) * LEVELS + level_of(rgb & 255);
}

static void add_run(td_text *text, int bits, int count) {
  if (count > 3) td_text_print(text, "!%d%c", count, bits + '?');
  else
    for (int i = 0; i < count; i++) td_text_add_char(text, (char)(bits + '?'));
}

static void draw_band(const int *colours, int rows, int width, td_text *text) {
  bool used[LEVELS * LEVELS * LEVELS] = {false};
  for (int i = 0; i < rows * width; i++) used[colours[i]] = true;
  for (int colour = 0; colour < LEVELS * LEVELS * LEVELS; colour++) {
    if (!used[colour]) continue;
    td_text_print(text, "#%d", colour);
    int run = 0, last = -1;
    for (int x = 0; x < width; x++) {
      int bits = 0;
      for (int row = 0; row < rows; row++) bits |= (colours[row * width + x] == colour) << row;
      if (bits != last && run) add_run(text, last, run), run = 0;
      last = bits;
      run++;
    }
    add_run(text, last, run);
    td_text_add_char(text, '$');
  }
  td_text_add_char(text, '-');
}

static void draw_sixels(const td_pixels *from, int width, int height, td_text *text) {
  td_pixels p = {0};
  int *colours = td_memory_new((size_t)width * 6 * sizeof *colours);
  if (!colours || !td_pixels_resize(&p, from, width, height)) {
    td_memory_free(colours);
    return;
  }
  td_text_print(text, "\033P0;1q\"1;1;%d;%d", width, height);
  for (int colour = 0; colour < LEVELS * LEVELS * LEVELS; colour++)
    td_text_print(text, "#%d;2;%d;%d;%d", colour, 20 * (colour / LEVELS / LEVELS), 20 * (colour / LEVELS % LEVELS),
                  20 * (colour % LEVELS));
  for (int y = 0; y < height; y += 6) {
    int rows = height - y < 6 ? height - y : 6;
    for (int row = 0; row < rows; row++)
      for (int x = 0; x < width; x++) colours[row * width + x] = colour_at(&p, x, y + row);
    draw_band(colours, rows, width, text);
  }
  td_text_add(text, "\033\\");
  td_memory_free(colours);
  td_pixels_clear(&p);
}

void td_graphics_draw(td_graphics graphics, const td_pixels *p, int columns, int rows, int width, int height,
                      td_text *text) {
  double across = (double)columns * width / p->width, down = (double)rows * height / p->height;
  double scale = across < down ? across : down;
  int pixels_across = (int)(p->width * scale), pixels_down = (int)(p->height * scale);
  if (pixels_across < 1 || pixels_down < 1) return;
  if (graphics == TD_GRAPHICS_SIXEL) draw_sixels(p, pixels_across, pixels_down, text);
  if (graphics != TD_GRAPHICS_KITTY) return;
  int wide = pixels_across / width, high = pixels_down / height;
  draw_kitty(p, wide < 1 ? 1 : wide, high < 1 ? 1 : high, text);
}

void td_graphics_erase(td_graphics graphics, td_text *text) {
  if (graphics == TD_GRAPHICS_KITTY) td_text_add(text, "\033_Ga=d,d=I,i=32,q=2\033\\");
}
