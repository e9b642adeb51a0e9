// The terminal in screen mode: the only file that knows curses. It owns the terminal's modes, signals and colours,
// sends what changed between two surfaces, and gives the terminal back as it was after any end of the program. What
// others write on stdout or stderr meanwhile comes out of a pipe (td_display_stray).
#ifndef TD_SCREEN_DISPLAY_H
#define TD_SCREEN_DISPLAY_H
#include "repl/screen/surface.h"

bool td_display_possible(void); // stdin and stdout are terminals that curses can address
// Takes the terminal; false: it can't (nothing was changed). colours: -1 what the terminal has, 0 none.
bool td_display_start(int colours);
void td_display_stop(void);
void td_display_size(int *rows, int *columns); // as the terminal says now; tells curses
int td_display_colours(void);   // 0, 8 or 256
bool td_display_unicode(void);  // the locale's character set is UTF-8
bool td_display_shows_unicode(void); // characters that are not ASCII are sent: it is, or
void td_display_show_unicode(void); // the terminal knows them anyway
void td_display_show(const td_surface *surface); // sends what changed
void td_display_redraw(void);   // the next show sends everything
bool td_display_was_redrawn(void); // the last show did
void td_display_mouse(bool on);
// Bytes for the terminal itself, behind what show sent: pictures. row, column: where they stand.
void td_display_raw(int row, int column, const char *bytes, size_t length);

void td_display_cell_size(int *width, int *height); // of a character, in pixels; a guess where the terminal doesn't say

int td_display_input(void);     // descriptor that keys come from
int td_display_stray(void);     // descriptor that stdout and stderr of others come from
int td_display_signals(void);   // readable when a signal came
enum td_display_news { TD_SIGNAL_RESIZE = 1, TD_SIGNAL_INTERRUPT = 2, TD_SIGNAL_SUSPEND = 4, TD_SIGNAL_END = 8 };
int td_display_news(void);      // a set of td_display_news since the last call
int td_display_end_signal(void); // that TD_SIGNAL_END stands for; 0: none came

void td_display_leave(void);    // the terminal for somebody else: an editor, a shell command, a stop by Ctrl-Z
void td_display_return(void);
void td_display_suspend(void);  // stops the program as Ctrl-Z does; returns when it goes on
#endif
