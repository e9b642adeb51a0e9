// The journal of a notebook that is open: what was typed, run and put out, appended as it happens, so that after kill
// -9, a hang-up or a power cut the next start offers it all back. It stands beside the deck (.NAME.journal), a
// notebook without a file has it in the user's data folder. It is locked while it is in use: who opens the same deck
// elsewhere is told; the lock of a process that died is gone with it. A journal never stops the work: what can't be
// written is told once. All functions are for the face's thread.
#ifndef TD_NOTEBOOK_JOURNAL_H
#define TD_NOTEBOOK_JOURNAL_H
#include "engine/base/context.h"
#include "repl/notebook/notebook.h"

typedef struct td_journal td_journal;

typedef struct td_journal_owner { // a session
  int64_t process, since;         // since: seconds of time()
  char host[256];
} td_journal_owner;

typedef struct td_journal_found {
  bool held;             // another session has the deck open, the owner; this one has no journal
  td_journal_owner owner; // of what is held or left; process 0: unknown
  td_notebook *left;     // what a session left that did not end by td_journal_close; the caller's. NULL: nothing that
                         // the deck's file does not hold
  int64_t damaged;       // bytes of it that can't be read; what was written before them is there
  char *deck;            // of a notebook without a file: NULL. The file's absolute path else; the caller's
} td_journal_found;

// deck: the notebook's file; NULL: none yet, what is found then is the newest such notebook that nobody holds. Until
// td_journal_begin the old content stays on the disk, whatever happens. *out is NULL when it is held, and on an error
// (TD_ERROR_FILE: a folder that can't be written; TD_ERROR_MEMORY): the work goes on without a journal.
int td_journal_open(td_context *context, const char *deck, td_journal **out, td_journal_found *found);
void td_journal_found_clear(td_journal_found *found);
// From now on the journal holds this notebook, and what was left is gone from it: call it when the user has chosen.
void td_journal_begin(td_journal *journal, const td_notebook *notebook, double now);
// After td_notebook_event, with the index that it returned. The end of a cell is on the disk when this returns.
void td_journal_event(td_journal *journal, const td_notebook *notebook, int index, const td_event *event);
// Writes what was edited and put out, at most once a second, or at once (all): call it whenever events and keys are
// dealt with. now: seconds of a clock that only goes forward. Milliseconds until something that waits can be written;
// -1: nothing waits.
int td_journal_update(td_journal *journal, const td_notebook *notebook, double now, bool all);
const char *td_journal_problem(td_journal *journal); // why it can't be written, once; NULL: nothing new
void td_journal_close(td_journal *journal);          // the session ended well: the journal is removed
void td_journal_leave(td_journal *journal);          // it stays for the next start (a hang-up); after td_journal_update
// All of these take NULL: there is no journal.

// When to write the notebook's own file: a run ended since the last time, or nothing was edited for 30 seconds, and
// there is something new that the file holds. Never over a file that others wrote, after td_notebook_save has said so.
// path NULL: it has no file, never.
typedef struct td_autosave { uint64_t seen; double edited; int finished; } td_autosave;
bool td_autosave_due(td_autosave *autosave, const td_notebook *notebook, const char *path, double now);
#endif
