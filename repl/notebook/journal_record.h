// Records of a journal: "tapedeck journal 1\n", then for each record its length and its checksum, 4 bytes each, and its
// content, a protocol buffer. Private to journal*.c.
#ifndef TD_NOTEBOOK_JOURNAL_RECORD_H
#define TD_NOTEBOOK_JOURNAL_RECORD_H
#include "repl/notebook/journal.h"

#define TD_JOURNAL_MAGIC "tapedeck journal 1\n"

void td_journal_add_record(td_text *out, const void *content, size_t length); // with its length and checksum
void td_journal_add_owner(td_text *out, const td_journal_owner *owner);
void td_journal_add_notebook(td_text *out, const td_notebook *notebook); // what is no cell's
void td_journal_add_cell(td_text *out, const td_notebook_cell *cell);    // all but its outputs
void td_journal_add_outputs(td_text *out, const td_notebook_cell *cell); // all of them, with their curves
// What its curves have got since they were added last.
void td_journal_add_curves(td_text *out, const td_notebook_cell *cell);
bool td_journal_has_curves(const td_notebook_cell *cell); // there is something to add
void td_journal_add_order(td_text *out, const td_notebook *notebook);
// false: an event of a kind that is not kept.
bool td_journal_add_event(td_text *out, const td_notebook_cell *cell, const td_event *event);

typedef struct td_journal_content {
  td_journal_owner owner;
  size_t good;  // bytes up to the first damaged record
  bool whole;   // a notebook was read
  bool changed; // the notebook holds what its file does not
} td_journal_content;

// What the records make of an empty notebook. TD_ERROR_MEMORY.
int td_journal_replay(td_context *context, const char *bytes, size_t size, td_notebook *notebook,
                      td_journal_content *content);
#endif
