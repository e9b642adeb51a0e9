// Reports: what panes show of the session, made on the evaluator's side by td_inquiry functions and given to the face
// as payloads of ANSWER events. Each is plain data, copied: it stays right whatever the session does next.
#ifndef TD_NOTEBOOK_REPORT_H
#define TD_NOTEBOOK_REPORT_H
#include "repl/language/tensors.h"

enum td_report_kind { // td_payload.kind
  TD_REPORT_VARIABLES = 1,
  TD_REPORT_TAPE,
  TD_REPORT_RECORD,
  TD_REPORT_TEXT,
  TD_REPORT_RUNS,
  TD_REPORT_VARIABLE
};

enum { TD_HISTOGRAM_BINS = 32 };
typedef struct td_histogram { // of the finite elements
  int64_t count[TD_HISTOGRAM_BINS]; // of equal width, from least to most
  double least, most, mean;
  int64_t elements, nans, infinities, zeros; // elements: that were looked at
  bool sampled;               // only every so many elements were
} td_histogram;               // elements 0: nothing is known

// ---- TD_REPORT_TEXT ----
typedef struct td_report_text {
  td_payload payload;
  char *text;                 // never NULL
  size_t length;
} td_report_text;

td_payload *td_report_help(td_interpreter *, const char *argument); // a name or a path: what ?name shows
td_payload *td_report_watch(td_interpreter *, const char *argument); // no report: tapes are kept and timed for a while

// ---- what the makers of reports share ----
double td_report_seconds(void);                        // of a clock
// On one line, cut after so many bytes. Runs no code: an instance shows its class alone.
void td_report_value(td_interpreter *, td_value v, size_t most, td_text *text);
void td_report_tensor(const td_tensor *t, int elements, td_text *text); // the first so many
void td_report_histogram(const td_tensor *t, int64_t limit, td_histogram *histogram); // of at most limit elements
#endif
