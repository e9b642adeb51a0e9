// Text from files and runs, made safe for a terminal: what could act on it is shown instead.
#ifndef TD_NOTEBOOK_VISIBLE_H
#define TD_NOTEBOOK_VISIBLE_H
#include "engine/base/text.h"

// Adds lines of data: newlines stay, with tabs true tabs too; other control characters (ESC, C1, carriage return),
// bidirectional marks and bytes that are no UTF-8 become visible ("\x1b"). For one line: td_source_print.
void td_visible_add(td_text *text, const char *bytes, size_t length, bool tabs);
#endif
