// All panes, in the order of the keys that open them. Private to the screen.
#ifndef TD_SCREEN_PANES_H
#define TD_SCREEN_PANES_H
#include "repl/screen/pane.h"

#define TD_PANES(X) X(help) X(curves) X(tape) X(variables) X(runs) X(images) X(log)

#define X(name) extern const td_pane_type td_pane_##name;
TD_PANES(X)
#undef X
#endif
