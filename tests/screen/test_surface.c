// Drawing without a terminal: text in columns, wrapping, clipping, and where the layout puts things at any size.
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/screen/highlight.h"
#include "repl/screen/layout.h"
#include "repl/screen/surface.h"

static td_surface surface;
static const td_style plain = {-1, -1, 0};

static void start(void) { surface = (td_surface){0}; }

static void finish(void) {
  td_surface_free(&surface);
  ck_assert_int_eq(td_memory_live(), 0);
}

static void is(const char *wanted) {
  td_text text = {0};
  td_surface_to_text(&surface, &text);
  ck_assert_str_eq(text.data, wanted);
  td_text_clear(&text);
}

static void write_text(int row, int column, int columns, const char *text) {
  td_surface_text(&surface, row, column, columns, text, strlen(text), plain);
}

START_TEST(test_text_is_shown_never_obeyed) {
  ck_assert(td_surface_resize(&surface, 4, 20));
  write_text(0, 0, 20, "a\033[31mb");
  write_text(1, 0, 20, "x\x9bz\x01");
  write_text(2, 0, 20, "\xc2\x9b" "e\xcc\x81" "\xe3\x81\x82|");
  write_text(3, 0, 20, "a\tb");
  is("a\\x1b[31mb\nx\\x9bz\\x01\n\\x9be\xcc\x81\xe3\x81\x82|\na       b\n");
}
END_TEST

START_TEST(test_wide_characters_are_never_cut) {
  ck_assert(td_surface_resize(&surface, 2, 4));
  write_text(0, 0, 4, "abc\xe3\x81\x82");        // no room for its right half
  write_text(1, 0, 4, "\xe3\x81\x82\xe3\x81\x82");
  td_surface_put(&surface, 1, 1, 'x', plain);       // over a right half
  is("abc\n x\xe3\x81\x82\n");
}
END_TEST

START_TEST(test_clip) {
  ck_assert(td_surface_resize(&surface, 3, 6));
  td_surface_clip(&surface, (td_rect){1, 2, 1, 3});
  for (int row = -1; row < 5; row++) write_text(row, 0, 100, "abcdefghi");
  td_surface_fill(&surface, (td_rect){-5, -5, 3, 3}, '#', plain);
  is("\n  cde\n\n");
}
END_TEST

START_TEST(test_wrap) {
  static const struct { const char *text; int columns, rows; } rows[] = {
      {"", 5, 1}, {"abc", 5, 1}, {"abcde", 5, 1}, {"abcdef", 5, 2}, {"a\n", 5, 2}, {"a\n\nb", 5, 3},
      {"\xe3\x81\x82\xe3\x81\x82\xe3\x81\x82", 5, 2}, {"\xe3\x81\x82", 1, 1}, {"\033\033", 5, 2}, {"\tb", 4, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    ck_assert_int_eq(td_wrap_count(rows[i].text, strlen(rows[i].text), rows[i].columns, TD_WRAP_LETTERS), rows[i].rows);
}
END_TEST

START_TEST(test_prose_is_cut_at_spaces) {
  const char *text = "one two  three\nfour";
  static const char *const rows[] = {"one ", "two  ", "three", "four"};
  td_wrapped row = {.by = TD_WRAP_WORDS};
  for (int i = 0; td_wrap_next(text, strlen(text), 5, &row); i++) {
    ck_assert_int_lt(i, 4);
    ck_assert_uint_eq(row.end - row.begin, strlen(rows[i]));
    ck_assert(!memcmp(text + row.begin, rows[i], row.end - row.begin));
  }
  ck_assert_int_eq(td_wrap_count("abcdefgh", 8, 3, TD_WRAP_WORDS), 3);
}
END_TEST

START_TEST(test_carets_stay_beneath_their_code) {
  const char *error = "an error here\n  x = long + y\n      ^^^^^^^^\n  hint: so";
  const char *const rows[] = {"an error ", "here", "  x = long", " + y", "      ^^^^", "^^^^", "  hint: so"};
  td_wrapped row = {.by = TD_WRAP_OUTPUT};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert(td_wrap_next(error, strlen(error), 10, &row));
    ck_assert_msg(row.end - row.begin == strlen(rows[i]) && !memcmp(error + row.begin, rows[i], row.end - row.begin),
                  "row %d: %.*s", (int)i, (int)(row.end - row.begin), error + row.begin);
  }
}
END_TEST

START_TEST(test_wrap_finds_every_byte) { // there and back, for every byte that begins a character
  srand(2);
  static const char *const pieces[] = {"a", "\n", "\xc3\xa9", "\xe3\x81\x82", "b", " "};
  for (int round = 0; round < 300; round++) {
    td_text text = {0};
    for (int i = rand() % 30; i > 0; i--) td_text_add(&text, pieces[rand() % 6]);
    int columns = 2 + rand() % 9;
    enum td_wrap by = round & 1 ? TD_WRAP_WORDS : TD_WRAP_LETTERS;
    for (size_t at = 0; text.data && at < text.length;) {
      int row, column;
      td_wrap_find(text.data, text.length, columns, by, at, &row, &column);
      ck_assert_int_lt(column, columns);
      if (text.data[at] != '\n') // the end of a full row stands in the row after it
        ck_assert_uint_eq(td_wrap_at(text.data, text.length, columns, by, row, column), at);
      at += td_show_character(text.data + at, text.length - at, 0).size;
    }
    td_text_clear(&text);
  }
}
END_TEST

static bool inside(td_rect a, int rows, int columns) {
  return a.rows >= 0 && a.columns >= 0 && a.row >= 0 && a.column >= 0 && a.row + a.rows <= rows &&
         a.column + a.columns <= columns;
}

static bool meet(td_rect a, td_rect b) {
  td_rect both = td_rect_meet(a, b);
  return both.rows > 0 && both.columns > 0;
}

START_TEST(test_layout_at_every_size) {
  for (int rows = 1; rows <= 60; rows++)
    for (int columns = 1; columns <= 200; columns++)
      for (int kind = 0; kind < 24; kind++) {
        td_layout_wish wish = {rows, columns, kind & 1, (kind & 2) != 0, 20 + 20 * (kind / 8),
                               kind & 4 ? 3 : 0, 1 + kind};
        td_layout l = td_layout_make(&wish);
        const td_rect areas[] = {l.title, l.cells, l.divider, l.pane, l.bars, l.input, l.status};
        if (l.too_small) continue;
        ck_assert_int_ge(l.input.rows, 1);
        ck_assert_int_ge(l.input.columns, 10);
        for (int i = 0; i < 7; i++) {
          ck_assert_msg(inside(areas[i], rows, columns), "%dx%d kind %d: area %d", columns, rows, kind, i);
          for (int j = 0; j < i; j++)
            ck_assert_msg(!meet(areas[i], areas[j]), "%dx%d kind %d: areas %d and %d", columns, rows, kind, j, i);
        }
      }
}
END_TEST

static char *looks_of(const char *text, size_t cursor) { // a letter a byte
  static const char letters[] = {
      [TD_LOOK_TEXT] = '.',    [TD_LOOK_KEYWORD] = 'k', [TD_LOOK_STRING] = 's',  [TD_LOOK_COMMENT] = 'c',
      [TD_LOOK_LITERAL] = 'n', [TD_LOOK_BUILTIN] = 'f', [TD_LOOK_COMMAND] = '%', [TD_LOOK_BRACKET] = 'b'};
  static char line[200];
  uint8_t looks[200];
  td_highlight(text, strlen(text), cursor, looks);
  for (size_t i = 0; text[i]; i++) line[i] = letters[looks[i]];
  line[strlen(text)] = 0;
  return line;
}

START_TEST(test_highlight) {
  ck_assert_str_eq(looks_of("x = 1.5 # y", (size_t)-1), "....nnn.ccc");
  ck_assert_str_eq(looks_of("for i in f(\"a\"):", (size_t)-1), "kkk...kk.f.sss..");
  ck_assert_str_eq(looks_of("%time f(1)", (size_t)-1), "%%%%%%%%%%");
  ck_assert_str_eq(looks_of("f(g(1))", 1), "fbf.n.b");
  ck_assert_str_eq(looks_of("", 0), "");
}
END_TEST

START_TEST(test_highlight_of_what_is_no_program) { // an entry is looked at while it is typed
  static const char *const texts[] = {"[}", "(]\n)", "}", "\"", "f\"{", "f\"{x!", "\\", "0x", "\xff\xc3", "\"\"\"\n",
                                      "if", "%", "[(", "\t \n  x"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (size_t cursor = 0; cursor <= strlen(texts[i]); cursor++)
      ck_assert_uint_eq(strlen(looks_of(texts[i], cursor)), strlen(texts[i]));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("surface");
  TCase *cases = tcase_create("surface");
  tcase_add_checked_fixture(cases, start, finish);
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, test_text_is_shown_never_obeyed);
  tcase_add_test(cases, test_wide_characters_are_never_cut);
  tcase_add_test(cases, test_clip);
  tcase_add_test(cases, test_wrap);
  tcase_add_test(cases, test_prose_is_cut_at_spaces);
  tcase_add_test(cases, test_carets_stay_beneath_their_code);
  tcase_add_test(cases, test_wrap_finds_every_byte);
  tcase_add_test(cases, test_layout_at_every_size);
  tcase_add_test(cases, test_highlight);
  tcase_add_test(cases, test_highlight_of_what_is_no_program);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
