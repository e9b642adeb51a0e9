// Pictures: what terminals answer, sixels decoded again, kitty's chunks, and pictures in cells.
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/base64.h"
#include "repl/screen/graphics.h"

static td_graphics answered(const char *first, const char *second) {
  td_graphics g = TD_GRAPHICS_CELLS;
  td_graphics_answer(first, strlen(first), &g);
  td_graphics_answer(second, strlen(second), &g);
  return g;
}

START_TEST(test_answers) {
  ck_assert_int_eq(answered("\033_Gi=31;OK\033\\", "\033[?62;c"), TD_GRAPHICS_KITTY);
  ck_assert_int_eq(answered("\033_Gi=31;OK\033\\", "\033[?62;4c"), TD_GRAPHICS_KITTY);
  ck_assert_int_eq(answered("\033_Gi=31;ENOTSUP\033\\", "\033[?1;2c"), TD_GRAPHICS_CELLS);
  ck_assert_int_eq(answered("\033[?62;4;6;22c", ""), TD_GRAPHICS_SIXEL);
  ck_assert_int_eq(answered("\033[?62;42;14c", ""), TD_GRAPHICS_CELLS); // 42 is not 4
  ck_assert_int_eq(answered("\033[?4c", ""), TD_GRAPHICS_SIXEL);
  ck_assert_int_eq(answered("\033]11;rgb:4/4/4\033\\", "4"), TD_GRAPHICS_CELLS);
}
END_TEST

// The colour numbers of a sixel picture, row by row; -1: not set.
static void decode_sixels(const char *text, int *out, int width, int height) {
  for (int i = 0; i < width * height; i++) out[i] = -1;
  const char *at = strchr(text, 'q') + 1;
  int x = 0, y = 0, colour = 0;
  for (at += strcspn(at, "#"); *at && *at != '\033'; at++) {
    int count = 1;
    if (*at == '#') {
      colour = (int)strtol(at + 1, (char **)&at, 10);
      if (*at == ';') at += strspn(at, ";0123456789");
      at--;
      continue;
    }
    if (*at == '$') x = 0;
    if (*at == '-') x = 0, y += 6;
    if (*at == '!') count = (int)strtol(at + 1, (char **)&at, 10);
    if (*at < '?' || *at > '~') continue;
    for (; count > 0; count--, x++)
      for (int bit = 0; bit < 6; bit++)
        if ((*at - '?') >> bit & 1) out[(y + bit) * width + x] = colour;
  }
}

START_TEST(test_sixels) {
  uint8_t pixels[13 * 7 * 3];
  for (int i = 0; i < 13 * 7; i++) memcpy(pixels + 3 * i, i % 3 ? i % 2 ? "\377\0\0" : "\0\377\0" : "\0\0\377", 3);
  td_pixels picture = {13, 7, pixels};
  td_text text = {0};
  td_graphics_draw(TD_GRAPHICS_SIXEL, &picture, 13, 7, 1, 1, &text);
  int *got = malloc(13 * 12 * sizeof *got);
  decode_sixels(text.data, got, 13, 12);
  for (int i = 0; i < 13 * 7; i++) ck_assert_int_eq(got[i], i % 3 ? i % 2 ? 5 * 36 : 5 * 6 : 5);
  for (int i = 13 * 7; i < 13 * 12; i++) ck_assert_int_eq(got[i], -1);
  free(got);
  td_text_clear(&text);
}
END_TEST

START_TEST(test_kitty) { // the chunks together are the picture
  size_t size = 60 * 40 * 3;
  uint8_t *pixels = malloc(size);
  for (size_t i = 0; i < size; i++) pixels[i] = (uint8_t)(i * 7);
  td_pixels picture = {60, 40, pixels};
  td_text text = {0}, base = {0}, back = {0};
  td_graphics_draw(TD_GRAPHICS_KITTY, &picture, 30, 10, 8, 16, &text);
  for (const char *at = text.data; (at = strstr(at, "\033_G")); at++) {
    const char *data = strchr(at, ';') + 1, *end = strstr(data, "\033\\");
    ck_assert_int_le(end - data, 4096);
    ck_assert(!strncmp(strstr(at, "m="), strstr(end, "\033_G") ? "m=1" : "m=0", 3));
    td_text_add_bytes(&base, data, (size_t)(end - data));
  }
  ck_assert(td_base64_decode(&back, base.data, base.length));
  ck_assert_uint_eq(back.length, size);
  ck_assert(!memcmp(back.data, pixels, size));
  free(pixels);
  td_text_clear(&text);
  td_text_clear(&base);
  td_text_clear(&back);
}
END_TEST

START_TEST(test_cells) { // nothing outside, at any size
  uint8_t pixels[5 * 3 * 3];
  memset(pixels, 255, sizeof pixels);
  td_pixels picture = {5, 3, pixels};
  td_pictures pictures = {0};
  td_surface surface = {0};
  ck_assert(td_surface_resize(&surface, 30, 30));
  for (int colours = 0; colours <= 256; colours += 256)
    for (int columns = 1; columns < 30; columns++)
      for (int rows = 1; rows < 20; rows++) {
        td_theme theme = {.colours = colours, .glyphs = TD_GLYPHS_BRAILLE};
        td_surface_clear(&surface);
        td_room room = {columns, rows, rows};
        int tall = td_picture_rows(5, 3, &theme, room);
        ck_assert_int_ge(tall, 1);
        ck_assert_int_le(tall, rows);
        for (int i = 0; i < tall; i++) td_picture_draw_row(&pictures, 1, &picture, &theme, room, &surface, 1 + i, 1, i);
        for (int i = 0; i < 30 * 30; i++)
          if (surface.spots[i].code != ' ') {
            ck_assert_int_ge(i / 30, 1);
            ck_assert_int_le(i / 30, tall);
            ck_assert_int_le(i % 30, columns);
          }
        ck_assert_int_ne(surface.spots[31].code, ' ');
      }
  td_surface_free(&surface);
  td_pictures_clear(&pictures);
  ck_assert_int_eq(td_colour_256(0xff0000), 196);
  ck_assert_int_eq(td_colour_256(0x000000), 16);
  ck_assert_int_eq(td_colour_256(0x808080), 244);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("graphics");
  TCase *cases = tcase_create("graphics");
  tcase_add_test(cases, test_answers);
  tcase_add_test(cases, test_sixels);
  tcase_add_test(cases, test_kitty);
  tcase_add_test(cases, test_cells);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
