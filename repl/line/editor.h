// One line of input: readline's keys, history and completion where the build has it (editor.c), plain reading elsewhere
// (editor_plain.c).
#ifndef TD_LINE_EDITOR_H
#define TD_LINE_EDITOR_H
#include "repl/notebook/session.h"

enum td_line_result { TD_LINE_READ, TD_LINE_SUBMITTED, TD_LINE_END, TD_LINE_INTERRUPTED };

extern const char td_editor_keys[]; // what the greeting says of them
void td_editor_start(
    td_session *session); // from here to stop, SIGINT comes in only where a line is read or a cell runs
void td_editor_stop(void);
// *line is owned by the caller (td_memory_free), without its newline; it may hold newlines when it was pasted,
// recalled, or typed with Ctrl-J. indent is put before the cursor, and taken out of a line that brings its own.
// SUBMITTED: Alt-Enter, the cell shall run as it is. END: end of input. INTERRUPTED: Ctrl-C, the line is dropped.
enum td_line_result td_editor_read(const char *prompt, const char *indent, char **line);
void td_editor_release(void);                // after the last line of a cell: gives the terminal back to what runs
void td_editor_remember(const char *cell);   // adds a cell to the history and its file, before it runs
#endif
