// The names of the session with what they hold; Variables also those inside models, optimizers, lists and dicts.
#ifndef TD_NOTEBOOK_REPORT_VARIABLES_H
#define TD_NOTEBOOK_REPORT_VARIABLES_H
#include "repl/notebook/report.h"

typedef struct td_variable_row {
  const char *path;        // "x", "model/dense/kernel"
  const char *type;        // "int", "tensor", "Variable", "Sequential"
  const char *shape;       // "[784, 10]"; "" where it has none
  const char *dtype;       // "float32"; ""
  const char *device;      // "cpu"; ""
  const char *value;       // short printed form, one line
  int32_t depth;           // 0: a name of the session's; more: inside one
  bool trainable;          // a Variable that is
  bool slot;               // an optimizer keeps it for another Variable
  bool sampled;            // the numbers below are of some elements only, evenly spaced
  int64_t bytes;           // -1: unknown
  int64_t elements;        // of a tensor; -1
  int64_t nans, infinities; // of a floating tensor; -1: unknown. Estimated when sampled
  double norm;             // Euclidean, of a floating tensor; NaN: unknown. Estimated when sampled
  double zeros;            // fraction of elements that are 0; NaN: unknown
  double gradient_norm;    // of the last gradient that was seen; NaN: unknown
  bool gradient_glanced;   // that norm is a rough estimate
  double gradient_zeros;   // fraction of its elements that are 0; NaN: unknown
  double update_ratio;     // norm of what the last step changed, by the norm of the value; NaN: unknown
} td_variable_row;

typedef struct td_report_variables {
  td_payload payload;
  td_variable_row *rows;   // a name's Variables follow it. One that several paths lead to stands at the shortest of
                           // them, or the first; a model's before an optimizer's
  int64_t count;
  bool complete;           // false: there was more than the time or the room allowed
} td_report_variables;

// A td_inquiry. argument: "" all, else a name or a path: what is in it. Updates are watched from the
// first report on; of gradients the last is known at least roughly. It takes some 10 ms at most, however large the
// session is.
td_payload *td_report_variables_make(td_interpreter *, const char *argument);

typedef struct td_report_variable { // TD_REPORT_VARIABLE: one of them with its numbers
  td_payload payload;
  char *path;
  char *type;              // "float32[784, 10]", "list"
  char *value;             // printed form, shortened
  td_histogram values;     // of a tensor
  char *gradient;          // printed form of the last gradient that is known; "": none is
  td_histogram gradients;
  int64_t units, dead;     // of a kernel or a bias with a gradient: those of its layer, and how many of them got none
} td_report_variable;

td_value td_report_find(td_interpreter *, const char *path); // a row's value. New reference; NIL: exception
// A td_inquiry. argument: a row's path. The Variable's gradient is kept from then on, while somebody asks.
td_payload *td_report_variable_make(td_interpreter *, const char *argument);
#endif
