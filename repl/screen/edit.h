// The text that is being edited, by readline: at the prompt, or of a cell in place. Keys go in as bytes; nothing is
// ever printed: what readline would say is asked here and drawn by panes.
#ifndef TD_SCREEN_EDIT_H
#define TD_SCREEN_EDIT_H
#include "repl/notebook/session.h"
#include "repl/screen/keyboard.h"

void td_edit_start(td_session *session);
void td_edit_stop(void);

// The text to edit from now on. The one before is gone, with its undo.
void td_edit_set(const char *text, size_t length, size_t cursor, const char *prompt);
const char *td_edit_text(size_t *length, size_t *cursor); // borrowed until the next key
// What readline asks with instead of the prompt (its searches); NULL: nothing.
const char *td_edit_question(void);
void td_edit_end_question(void);           // what a search found stays

typedef enum td_edit_result {
  TD_EDIT_NOTHING,         // moved, or nothing
  TD_EDIT_CHANGED,         // the text is another one
  TD_EDIT_ENTER,           // Enter: the text is as it was before it
  TD_EDIT_SUBMIT,          // Alt-Enter
  TD_EDIT_END              // Ctrl-D on an empty text
} td_edit_result;
// more: further input came with this key, so that an Enter may be part of a paste.
td_edit_result td_edit_key(const td_key *key, bool more);
void td_edit_insert(const char *text, size_t length); // one step of undo
void td_edit_newline(const char *indent); // a new line at the cursor
void td_edit_clear(void);        // Ctrl-C: an empty text, out of any search
void td_edit_remember(const char *cell);
int td_edit_history_position(void);          // of the entry that was recalled; the end when none was
void td_edit_history_load(int position);     // brings that entry up, when there is one
const char *td_edit_mode(void);  // "INS", "NOR" in vi mode; else NULL
bool td_edit_set_mode(const char *mode); // "emacs", "vi"; false: neither
bool td_edit_takes_escape(void); // vi mode, inserting: Escape is readline's

// What completion offered last; count 0: nothing. words are whole replacements of the word at the cursor.
typedef struct td_edit_matches { char **words; int count; bool files; } td_edit_matches;
const td_edit_matches *td_edit_matches_now(void);
void td_edit_matches_drop(void);
#endif
