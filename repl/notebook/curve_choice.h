// Curves by their names, as %plot and plot_save are given them: a name of plot(), or FOLDER:SCALAR of event files.
#ifndef TD_NOTEBOOK_CURVE_CHOICE_H
#define TD_NOTEBOOK_CURVE_CHOICE_H
#include "repl/language/curve.h"
#include "repl/language/interpreter.h"

enum { TD_CHOICE_MAX = 32 };

typedef struct td_curve_choice {
  const char *who;                      // "%plot", for messages
  int most;                             // up to TD_CHOICE_MAX
  const td_curve *curves[TD_CHOICE_MAX];
  td_curve *owned[TD_CHOICE_MAX];       // those of event files
  int count;
} td_curve_choice;

bool td_curve_choose(td_interpreter *I, td_curve_choice *choice, const char *name); // false: exception
bool td_curve_choose_run(td_interpreter *I, td_curve_choice *choice, const char *folder, const char *scalar);
void td_curve_choice_clear(td_curve_choice *choice);
#endif
