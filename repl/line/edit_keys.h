// The keys of an entry, which may have several lines, in readline: motion within it, completion, history. Both faces
// edit with them; how bytes come in and how the entry is shown is theirs.
#ifndef TD_LINE_EDIT_KEYS_H
#define TD_LINE_EDIT_KEYS_H
#include "repl/notebook/session.h"

// Sets readline up, without a signal or a byte of output, and loads the history. waiting: does more input come within
// that time? A tab that is part of a paste completes nothing.
void td_edit_keys_start(td_session *session, bool (*waiting)(int milliseconds));
void td_edit_keys_remember(const char *cell); // adds a cell to the history and its file, before it runs
bool td_edit_keys_submitted(void);            // Alt-Enter ended the entry: it shall run as it is. Asked once
#endif
