// Bytes from the terminal to keys. A state machine that knows CSI, SS3, OSC, DCS and APC sequences, bracketed paste,
// mouse reports and UTF-8, in pieces of any size: what it doesn't know, and what a terminal answers late, is dropped
// and never taken for typing.
#ifndef TD_SCREEN_KEYBOARD_H
#define TD_SCREEN_KEYBOARD_H
#include "engine/base/text.h"

// X(NAME, "name in key texts"): keys that are no character
#define TD_KEYS(X)                                                                                                     \
  X(UP, "Up") X(DOWN, "Down") X(RIGHT, "Right") X(LEFT, "Left") X(HOME, "Home") X(END, "End") X(PAGE_UP, "PgUp")       \
  X(PAGE_DOWN, "PgDn") X(INSERT, "Insert") X(DELETE, "Delete") X(F1, "F1") X(F2, "F2") X(F3, "F3") X(F4, "F4")         \
  X(F5, "F5") X(F6, "F6") X(F7, "F7") X(F8, "F8") X(F9, "F9") X(F10, "F10") X(F11, "F11") X(F12, "F12")                \
  X(BACK_TAB, "S-Tab") X(ENTER, "Enter") X(TAB, "Tab") X(ESCAPE, "Esc") X(BACKSPACE, "Backspace")                      \
  X(PASTE, "paste") X(MOUSE_PRESS, "click") X(MOUSE_DRAG, "drag") X(MOUSE_RELEASE, "release")                          \
  X(WHEEL_UP, "wheel-up") X(WHEEL_DOWN, "wheel-down") X(REPLY, "reply")

enum { TD_KEY_NONE, TD_KEY_FIRST = 0x110000 }; // codes below TD_KEY_FIRST are characters
enum td_key_code {
  TD_KEY_BEFORE = TD_KEY_FIRST - 1,
#define X(NAME, text) TD_KEY_##NAME,
  TD_KEYS(X)
#undef X
  TD_KEY_END_OF_LIST
};
enum td_key_modifier { TD_SHIFT = 1, TD_ALT = 2, TD_CONTROL = 4 };

typedef struct td_key {
  uint32_t code;            // a character, or a td_key_code
  int modifiers;            // Control with a letter: the letter in lower case and TD_CONTROL
  int row, column;          // of the mouse, from 0
  const char *bytes;        // as they came; of a paste its text, of a reply all of it. Valid until the next call
  size_t length;
} td_key;

typedef struct td_keyboard {
  td_text input;            // bytes that came and are not taken yet
  size_t taken;
  td_text paste;            // a paste that is still open, or the one that was given out
  bool pasting;
  bool paste_given;
} td_keyboard;

enum { TD_PASTE_MOST = 8 << 20, TD_ESCAPE_MILLISECONDS = 40 };

void td_keyboard_feed(td_keyboard *keyboard, const char *bytes, size_t length);
// The next key. late: nothing more came for TD_ESCAPE_MILLISECONDS, so an Escape that waits is a key of its own.
bool td_keyboard_next(td_keyboard *keyboard, bool late, td_key *key);
bool td_keyboard_waits(const td_keyboard *keyboard); // bytes wait for what follows them
bool td_keyboard_waits_text(const td_keyboard *keyboard); // they are a character, no sequence
void td_keyboard_clear(td_keyboard *keyboard);

// "C-x", "M-Enter", "S-Up", "F5", "j", "Space" to a key (its code and modifiers), and back. false: it is none.
bool td_key_parse(const char *text, size_t length, td_key *key);
void td_key_print(const td_key *key, td_text *text);
#endif
