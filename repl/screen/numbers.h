// A tensor's numbers in a pane: a line about them, and their histogram.
#ifndef TD_SCREEN_NUMBERS_H
#define TD_SCREEN_NUMBERS_H
#include "repl/notebook/report.h"
#include "repl/screen/theme.h"

enum { TD_NUMBERS_ROWS = 5 }; // that it takes at most
// Draws from a row of the area on; returns the row behind it. Nothing where nothing is known, or there is no room.
int td_numbers_draw(const td_theme *theme, td_surface *surface, td_rect area, int row, const char *title,
                    const td_histogram *histogram);
// Lines of a text, at most so many, cut at the right; returns the row behind them.
// A few words in a pane that has nothing to show yet, from a row on; wrapped. Returns the row after them.
int td_words_draw(td_surface *surface, td_rect area, int row, const char *text, td_style style);
int td_lines_draw(td_surface *surface, td_rect area, int row, int most, const char *text, td_style style);
// A number that isn't negative in 7 columns at most; "" for NaN, which stands for unknown.
void td_numbers_figure(char text[16], double value);
void td_numbers_rough(char text[16], double value); // "~0.12": of one that is roughly known
#endif
