// The runs under a folder: the folders that hold event files, with the curves of each.
#ifndef TD_NOTEBOOK_REPORT_RUNS_H
#define TD_NOTEBOOK_REPORT_RUNS_H
#include "engine/io/event_file.h"
#include "repl/notebook/report.h"

typedef struct td_run_row {
  char *path;                // "runs/a"
  char *problem;             // why it can't be read; NULL: it was
  td_event_curves curves;
} td_run_row;

typedef struct td_report_runs {
  td_payload payload;
  td_run_row *rows;          // by path
  int64_t count, capacity;
} td_report_runs;

// A td_inquiry. argument: the folder; "": runs. Without the folder: no rows.
td_payload *td_report_runs_make(td_interpreter *, const char *argument);
#endif
