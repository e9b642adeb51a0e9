// Events as plain text: values and output on stdout, errors, warnings and progress on stderr. No escape byte goes to
// what is no terminal, and what comes from data can't act on one, but for what the user's own print sends. Bars stand
// under the output: text that is printed while bars are open goes above them.
#ifndef TD_LINE_RENDER_H
#define TD_LINE_RENDER_H
#include "engine/base/text.h"
#include "repl/line/line.h"

enum { TD_BARS_MAX = 8 };

typedef struct td_bar { // the last state of an open progress bar
  uint64_t id;
  int64_t done, total;     // total -1: unknown
  int64_t samples;         // 0: unknown
  double seconds;
  int level, dots;         // dots: how many of style "dots" are written
  int64_t tenths;          // at its last plain line
  char label[128], postfix[128], style[8];
} td_bar;

typedef struct td_render {
  bool prompt;               // somebody sits there: cells are typed, input() reads with the editor
  bool numbered;             // values go to the same terminal: "[3]= 4"
  bool out_terminal, error_terminal; // what stdout and stderr are; a dumb terminal counts as none
  bool broken;               // stdout can't be written: the run ends
  int log;                   // td_log_level
  td_bar bars[TD_BARS_MAX];
  int bar_count;
  bool bars_shown; // on the screen now, below the cursor
  bool in_dots, mid_line;    // a row of dots, a line of output on the terminal is not ended yet
  double line_time;          // when the last plain progress line was written; 0: none
  td_text late_line;         // a bar's last plain line that came too soon after another
  td_text tail;              // output after the last newline, held back while bars are drawn
} td_render;

void td_render_start(td_render *render, const td_line_options *options, bool prompt);
void td_render_event(td_render *render, const td_event *event);
void td_render_stop(td_render *render);
void td_render_error(
    td_render *render,
    const char *text); // a line of ours on stderr, above the bars; the newline is added when it lacks one
void td_render_fresh_line(td_render *render);  // what follows on the terminal begins at its left edge
void td_render_end_dots(td_render *render);
bool td_write_all(int descriptor, const char *bytes, size_t length); // false: errno says why

// Bars (bar.c)
void td_bars_event(td_render *render, const td_event *event);
void td_bars_erase(td_render *render);   // off the screen, so that text can be written
void td_bars_draw(td_render *render);
void td_bars_end(td_render *render);     // the cell is over: no bar is open, what was held back is written
int td_bar_line(const td_bar *bar, int columns, bool unicode,
                td_text *text); // "epoch 0  40% [####    ] 625/1563 ..."; returns columns
#endif
