// One line of input: readline's keys, history and completion where the build has it, plain reading elsewhere.
#ifndef TD_LINE_EDITOR_H
#define TD_LINE_EDITOR_H
#include "repl/notebook/session.h"

enum td_line_result { TD_LINE_READ, TD_LINE_END, TD_LINE_INTERRUPTED };

void td_editor_start(td_session *session);
void td_editor_stop(void);
// *line is owned by the caller (td_memory_free), without its newline; it may hold newlines when it was pasted or recalled.
// indent is put before the cursor. END: end of input. INTERRUPTED: Ctrl-C, the line is dropped.
enum td_line_result td_editor_read(const char *prompt, const char *indent, char **line);
void td_editor_remember(const char *cell);   // adds a cell to the history and its file, before it runs
bool td_editor_waiting(void);                // more input is there already: a paste
void td_editor_interrupt(void);              // from the SIGINT handler
int td_editor_history_count(void);
const char *td_editor_history(int index);    // oldest first; borrowed
#endif
