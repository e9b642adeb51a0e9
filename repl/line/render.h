// Events as plain text: values and output on stdout, errors, warnings and progress on stderr. No escape byte goes to what is no
// terminal. Bars stand under the output: text that is printed while bars are open goes above them.
#ifndef TD_LINE_RENDER_H
#define TD_LINE_RENDER_H
#include "repl/language/event.h"
#include "engine/base/text.h"

enum { TD_BARS_MAX = 8 };

typedef struct td_bar { // the last state of an open progress bar
  uint64_t id;
  int64_t done, total;
  double seconds, printed;   // printed: seconds at its last plain line
  int level, dots;
  char label[64], postfix[128], style[8];
} td_bar;

typedef struct td_render {
  bool prompt;               // number values: "[3]= 4"
  bool out_terminal, error_terminal; // what stdout and stderr are; a dumb terminal counts as none
  bool broken;               // stdout can't be written: the run ends
  td_bar bars[TD_BARS_MAX];
  int bar_count, bar_rows;   // rows of bars on the screen now
  double line_time;          // when the last plain progress line was written
  td_text tail;              // output after the last newline, held back while bars are drawn
} td_render;

void td_render_start(td_render *render, bool prompt);
void td_render_event(td_render *render, const td_event *event);
void td_render_stop(td_render *render);

// Bars (bar.c)
void td_bars_event(td_render *render, const td_event *event);
void td_bars_erase(td_render *render);   // off the screen, so that text can be written
void td_bars_draw(td_render *render);
int td_bar_line(const td_bar *bar, int columns, bool unicode, char *text, size_t size); // "epoch 0  40% [####    ] 625/1563 ..."; returns columns
#endif
