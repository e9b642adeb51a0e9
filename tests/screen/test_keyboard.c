// Keys from bytes: every kind of sequence, cut anywhere; pastes; answers that come late; noise. And the table of
// requests.
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/screen/keyboard.h"
#include "repl/screen/request.h"

static td_keyboard keyboard;

static void start(void) { keyboard = (td_keyboard){0}; }

static void finish(void) {
  td_keyboard_clear(&keyboard);
  ck_assert_int_eq(td_memory_live(), 0);
}

// The keys of bytes that come in pieces of so many, as their texts, each in brackets.
static char *keys_of(const char *bytes, size_t length, size_t piece) {
  td_text text = {0};
  td_key key;
  for (size_t at = 0; at < length; at += piece) {
    td_keyboard_feed(&keyboard, bytes + at, length - at < piece ? length - at : piece);
    while (td_keyboard_next(&keyboard, false, &key)) {
      td_text_add_char(&text, '[');
      if (key.code == TD_KEY_PASTE) td_text_print(&text, "paste %.*s", (int)key.length, key.bytes);
      else td_key_print(&key, &text);
      if (key.code >= TD_KEY_MOUSE_PRESS && key.code <= TD_KEY_WHEEL_DOWN)
        td_text_print(&text, " %d,%d", key.row, key.column);
      td_text_add_char(&text, ']');
    }
  }
  while (td_keyboard_next(&keyboard, true, &key)) {
    td_text_add_char(&text, '[');
    td_key_print(&key, &text);
    td_text_add_char(&text, ']');
  }
  return text.data ? td_text_take(&text) : td_memory_text("");
}

static void check(const char *bytes, const char *wanted) {
  for (size_t piece = 1; piece <= 64; piece *= 2) {
    char *got = keys_of(bytes, strlen(bytes), piece);
    ck_assert_msg(strcmp(got, wanted) == 0, "%s: got %s, wanted %s, in pieces of %zu", bytes, got, wanted, piece);
    td_memory_free(got);
  }
}

START_TEST(test_sequences) {
  check("a\xc3\xa9\xe3\x81\x82\xf0\x9f\x98\x80", "[a][\xc3\xa9][\xe3\x81\x82][\xf0\x9f\x98\x80]");
  check("\r\t\x7f\x01\x1a", "[Enter][Tab][Backspace][Ctrl-A][Ctrl-Z]");
  check("\033[A\033OB\033[C\033OD\033[H\033OF", "[Up][Down][Right][Left][Home][End]");
  check("\033[1~\033[3~\033[5~\033[6~\033[2~", "[Home][Delete][PgUp][PgDn][Insert]");
  check("\033OP\033[11~\033[[A\033[15~\033[24~", "[F1][F1][F1][F5][F12]");
  check("\033[1;5C\033[1;2A\033[15;2~\033[Z", "[Ctrl-Right][Shift-Up][Shift-F5][Shift-Tab]");
  check("\033x\033\r\033[13;2u\033[13;5u\033[27;5;13~", "[Alt-x][Alt-Enter][Shift-Enter][Ctrl-Enter][Ctrl-Enter]");
  check("\033[<0;10;5M\033[<0;10;5m\033[<64;1;1M\033[<65;1;1M",
        "[click 4,9][release 4,9][wheel-up 0,0][wheel-down 0,0]");
  check("\033[M !!", "[click 0,0]");
}
END_TEST

START_TEST(test_escape_alone) {
  check("\033", "[Esc]");
  check("a\033", "[a][Esc]");
  check("\033\033[A", "[Esc][Up]");
}
END_TEST

START_TEST(test_answers_are_no_typing) { // of a terminal that was asked, whole and in pieces
  check("\033[?1;2cx", "[reply][x]");
  check("\033]11;rgb:1e1e/1e1e/1e1e\033\\x", "[reply][x]");
  check("\033P>|tmux 3.3a\033\\x", "[reply][x]");
  check("\033_Gi=31;OK\033\\x", "[reply][x]");
  check("\033[24;80Rx", "[reply][x]");
}
END_TEST

START_TEST(test_answers_in_pieces_that_come_late) {
  static const char *const rows[][3] = {
      {"\033[?62;4", ";6cx", "[reply][x]"}, {"\033[1;", "5Cx", "[Ctrl-Right][x]"},
      {"\033]11;rgb:1e", "1e\033\\x", "[reply][x]"},
      {"\033]0;its end was lost", "\rx", "[reply][Enter][x]"}, {"\033]0;lost too", "\033[A", "[reply][Up]"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *got = keys_of(rows[i][0], strlen(rows[i][0]), 64);
    ck_assert_str_eq(got, "");
    td_memory_free(got);
    got = keys_of(rows[i][1], strlen(rows[i][1]), 64);
    ck_assert_str_eq(got, rows[i][2]);
    td_memory_free(got);
  }
}
END_TEST

START_TEST(test_paste) {
  check("\033[200~a\rb\r\nc\td\033[31me\033[201~x", "[paste a\nb\nc\td[31me][x]");
  check("\033[200~\033[201~", "[paste ]");
  td_text large = {0};
  td_text_add(&large, "\033[200~");
  for (int i = 0; i < 100000; i++) td_text_add(&large, "0123456789\r");
  td_text_add(&large, "\033[201~");
  td_keyboard_feed(&keyboard, large.data, large.length);
  td_text_clear(&large);
  td_key key;
  ck_assert(td_keyboard_next(&keyboard, false, &key));
  ck_assert_uint_eq(key.code, TD_KEY_PASTE);
  ck_assert_uint_eq(key.length, 1100000);
}
END_TEST

START_TEST(test_paste_is_bounded) {
  char block[1 << 16];
  memset(block, 'x', sizeof block);
  td_key key;
  td_keyboard_feed(&keyboard, "\033[200~", 6);
  for (int i = 0; i < 200; i++) {
    td_keyboard_feed(&keyboard, block, sizeof block);
    ck_assert(!td_keyboard_next(&keyboard, false, &key));
  }
  td_keyboard_feed(&keyboard, "\033[201~", 6);
  ck_assert(td_keyboard_next(&keyboard, false, &key));
  ck_assert_uint_eq(key.length, TD_PASTE_MOST);
}
END_TEST

START_TEST(test_noise) { // never a paste that was not closed, never a crash, and it comes to an end
  srand(1);
  for (int round = 0; round < 3000; round++) {
    char bytes[64];
    size_t length = (size_t)(rand() % 64);
    for (size_t i = 0; i < length; i++) {
      int what = rand() % 4;
      bytes[i] = what == 0 ? '\033' : what == 1 ? "[]OPM;<0123456789~"[rand() % 18] : (char)rand();
    }
    char *got = keys_of(bytes, length, 1 + (size_t)(rand() % 8));
    ck_assert(!strstr(got, "[paste"));
    td_memory_free(got);
    td_keyboard_clear(&keyboard);
  }
}
END_TEST

// ---- requests ----

START_TEST(test_every_request_has_keys) {
  for (int i = 1; i < TD_REQUEST_COUNT; i++) {
    td_text text = {0};
    ck_assert_msg(td_request_keys((enum td_request)i, 0, &text) && text.length, "%s has no key",
                  td_request_rows[i].name);
    ck_assert_msg(*td_request_rows[i].help, "%s has no help", td_request_rows[i].name);
    td_text_clear(&text);
  }
}
END_TEST

static bool read_word(const char *word, size_t length, td_key keys[2]) { // "C-x_h": two keys
  const char *join = length > 2 ? memchr(word + 1, '_', length - 2) : NULL;
  keys[1] = (td_key){0};
  if (!join) return td_key_parse(word, length, &keys[0]);
  return td_key_parse(word, (size_t)(join - word), &keys[0]) &&
         td_key_parse(join + 1, length - (size_t)(join + 1 - word), &keys[1]);
}

START_TEST(test_keys_find_their_request) { // all of them, in their context; so no two rows of one context share a key
  for (int i = 1; i < TD_REQUEST_COUNT; i++)
    for (const char *word = td_request_rows[i].keys; *word;) {
      size_t length = strcspn(word, " ");
      td_key keys[2], prefix = {0};
      ck_assert_msg(read_word(word, length, keys), "%s: no key: %.*s", td_request_rows[i].name, (int)length, word);
      int context = td_request_rows[i].context;
      bool pending;
      enum td_request found = td_request_find(&keys[0], (enum td_context_kind)context, &prefix, &pending);
      if (keys[1].code) {
        ck_assert(!found && pending);
        found = td_request_find(&keys[1], (enum td_context_kind)context, &prefix, &pending);
      }
      ck_assert_msg((int)found == i, "%.*s of %s finds %s", (int)length, word, td_request_rows[i].name,
                    td_request_rows[found].name);
      ck_assert(!pending && !prefix.code);
      word += length + strspn(word + length, " ");
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("keyboard");
  TCase *cases = tcase_create("keyboard");
  tcase_add_checked_fixture(cases, start, finish);
  tcase_add_test(cases, test_sequences);
  tcase_add_test(cases, test_escape_alone);
  tcase_add_test(cases, test_answers_are_no_typing);
  tcase_add_test(cases, test_answers_in_pieces_that_come_late);
  tcase_add_test(cases, test_paste);
  tcase_add_test(cases, test_paste_is_bounded);
  tcase_add_test(cases, test_noise);
  tcase_add_test(cases, test_every_request_has_keys);
  tcase_add_test(cases, test_keys_find_their_request);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
