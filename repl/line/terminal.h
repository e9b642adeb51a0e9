// The terminal that the prompt reads from: its modes, the signals that concern it, and waiting for input without
// missing one. SIGINT, SIGTSTP and SIGWINCH are blocked while the prompt works and come in only where it waits, so none
// falls into a gap.
#ifndef TD_LINE_TERMINAL_H
#define TD_LINE_TERMINAL_H
#include <stdbool.h>
#include "engine/base/text.h"
#include "repl/notebook/picture_text.h"

enum td_terminal_news { TD_NEWS_INPUT, TD_NEWS_INTERRUPT, TD_NEWS_SUSPEND, TD_NEWS_RESIZE, TD_NEWS_GONE };

void td_terminal_start(void); // keeps the modes that stdin has now; from here on the three signals are blocked
void td_terminal_stop(void);                   // modes and signals as they were
// QUIET, while code runs: what is typed ahead isn't shown, Enter stays a carriage return. ECHO: the same, but shown;
// readline takes a terminal without echo for one that shall show nothing.
enum td_terminal_modes { TD_MODES_KEPT, TD_MODES_QUIET, TD_MODES_ECHO };
void td_terminal_modes(enum td_terminal_modes modes);
enum td_terminal_news td_terminal_wait(void);  // until something happens; GONE: no terminal any more
bool td_terminal_waiting(int milliseconds);    // more input is there or comes within that time: a paste
bool td_terminal_gone(void);                   // it was closed
void td_terminal_interrupt(void);              // from the SIGINT handler
void td_terminal_allow_interrupt(bool allow);  // while a cell runs
void td_terminal_suspend(void);                // stops the program as Ctrl-Z does; returns when it goes on
// Adds a picture as stdout's terminal can show it: half blocks in its colours, or characters. false: no memory.
bool td_terminal_picture(td_text *text, const td_pixels *pixels);
bool td_terminal_is_dumb(void);                // TERM names no terminal that understands escape sequences
#endif
