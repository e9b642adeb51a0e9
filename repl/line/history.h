// The history file: one record a line, backslashes and newlines escaped, appended before a cell runs, so that nothing
// is lost when the program dies and two sessions can write at once.
#ifndef TD_LINE_HISTORY_H
#define TD_LINE_HISTORY_H

typedef void td_history_each(const char *cell, void *argument);
void td_history_load(td_history_each *each, void *argument); // oldest first, the last 5,000; damaged lines are skipped
void td_history_append(const char *cell); // a failure is said once on stderr, and the session goes on
#endif
