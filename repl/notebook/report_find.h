// What the reports of a tape and of one record share: which tape, and which row a record is.
#ifndef TD_NOTEBOOK_REPORT_FIND_H
#define TD_NOTEBOOK_REPORT_FIND_H
#include "repl/language/tensors.h"

typedef struct td_found_tape {
  td_tape *tape;     // counted; NULL: exception in flight
  const char *name;  // as long as nobody else has the turn; "": it has none
  td_value value;    // that holds it, or NIL
  bool open;
} td_found_tape;
td_found_tape td_tape_find(td_interpreter *, const char *path); // "": the newest
void td_tape_found_end(td_interpreter *, td_found_tape *found);

// The row (td_report_tape.rows) of a record or leaf that came before record number before; -1: it is another tape's.
int64_t td_tape_find_row(const td_tape *tape, const td_record *record, int64_t before);
#endif
