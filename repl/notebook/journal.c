// See journal.h.
//  1. The journal follows the notebook by revisions: of each cell it knows which state is written. Events of runs are
//     written as they come and are played again by the reader; what changes otherwise is written as cells and outputs.
//  2. What a run prints beyond RUN_BYTES is not written as it comes: when the cell ends, what the notebook kept of it
//     is. Of a curve the bins that are new are written, once a second and at the end of the cell: it grows with
//     the logarithm of its points, once bins are joined.
//  3. When something could not be written, the next thing written is the whole notebook, in a new file put in place of
//     the old one; so it is when the file has grown far beyond what it holds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/notebook/data_folder.h"
#include "repl/notebook/journal_record.h"
#include "repl/notebook/notebook_file.h"

#define JOURNAL_LIMIT ((size_t)1 << 30) // bytes that are read of one
#define RUN_BYTES ((size_t)4 << 20) // of a run's events
#define PENDING_BYTES ((size_t)64 << 10) // written at once
#define SLACK_BYTES ((size_t)32 << 20) // by which it may grow beyond four times what it holds
#define EVERY 1.0 // seconds between two writes of edits
#define RETRY 10.0 // seconds after a failure
#define IDLE 30.0 // seconds without an edit until an autosave

typedef struct written {
  uint64_t id, changed_at, outputs_at;
} written; // a cell's state in the journal

struct td_journal {
  td_context *context;
  td_file_held *file;
  td_text pending; // records that wait
  written *cells; // in the order of the last order written; owned
  int cell_count, cell_capacity;
  uint64_t saved_at; // of the notebook, as the journal knows it
  size_t size, whole; // bytes written; of the last whole notebook
  double wrote_at; // seconds; the last write, or try
  bool broken; // something is not written: the whole notebook is next
  bool told, fresh; // a problem arose; it was not asked for yet
  char problem[512];
};

// ---- where it is ----

static char *beside(const char *deck) { // "dir/.NAME.journal"
  const char *slash = strrchr(deck, '/'), *name = slash ? slash + 1 : deck;
  td_text path = {0};
  td_text_print(&path, "%.*s.%.200s.journal", (int)(name - deck), deck, name);
  return td_text_take(&path);
}

static void own(td_journal_owner *owner) {
  owner->process = getpid();
  owner->since = time(NULL);
  if (gethostname(owner->host, sizeof owner->host)) owner->host[0] = 0;
  owner->host[sizeof owner->host - 1] = 0;
}

// ---- opening ----

static int replay(td_journal *j, const char *bytes, size_t size, td_journal_found *found) {
  td_journal_content content = {0};
  found->left = td_notebook_new();
  int code = found->left ? td_journal_replay(j->context, bytes, size, found->left, &content)
                         : td_error_memory(j->context, "a journal", td_memory_failed());
  found->owner = content.owner;
  found->damaged = (int64_t)(size - content.good);
  if (!code && (content.changed || found->damaged)) return TD_OK;
  td_notebook_free(found->left); // nothing was left
  found->left = NULL;
  return code;
}

static int look(td_journal *j, td_journal_found *found) { // at what is in the file that is held
  char *bytes;
  size_t size;
  int code = td_file_held_read(j->context, j->file, JOURNAL_LIMIT, &bytes, &size);
  if (!code && size) code = replay(j, bytes, size, found);
  td_memory_free(bytes);
  return code;
}

static void look_at_owner(td_context *context, const char *path, td_journal_found *found) { // of one that is held
  char *bytes;
  size_t size;
  td_journal_content content = {0};
  td_notebook *none = td_notebook_new();
  if (none && td_file_read(context, path, JOURNAL_LIMIT, &bytes, &size) == TD_OK) {
    td_journal_replay(context, bytes, size, none, &content);
    td_memory_free(bytes);
  }
  found->owner = content.owner;
  td_notebook_free(none);
  td_error_clear(context);
}

typedef struct search {
  td_journal *journal;
  char *folder;
  char newest[256];
} search;

// A notebook's without a file. Names begin with the time, so the newest is the last by name.
static int visit(void *owner, const char *name) {
  search *s = owner;
  size_t length = strlen(name);
  if (length < 9 || length >= sizeof s->newest || strcmp(name + length - 8, ".journal") || *name == '.') return TD_OK;
  if (strcmp(name, s->newest) <= 0) return TD_OK;
  td_text path = {0};
  td_file_held *file = NULL;
  td_text_print(&path, "%s/%s", s->folder, name);
  if (path.data && td_file_hold(s->journal->context, path.data, &file) == TD_OK && file) {
    td_file_held_release(s->journal->file, false);
    s->journal->file = file;
    memcpy(s->newest, name, length + 1);
  }
  td_error_clear(s->journal->context);
  td_text_clear(&path);
  return TD_OK;
}

static int make_unnamed(td_journal *j) {
  for (int number = 0; !j->file && number < 1000; number++) { // two of one second are told apart
    char name[96];
    snprintf(name, sizeof name, "journals/%020lld-%ld-%d.journal", (long long)time(NULL), (long)getpid(), number);
    char *path = td_data_path(name, true);
    int code = path ? td_file_hold(j->context, path, &j->file)
                    : td_error_set(j->context, TD_ERROR_FILE, "journal: there is no home folder to keep it in");
    td_memory_free(path);
    if (code) return code;
  }
  return TD_OK;
}

static int open_unnamed(td_journal *j) {
  search s = {.journal = j, .folder = td_data_path("journals", false)};
  if (s.folder && td_file_list(j->context, s.folder, visit, &s)) td_error_clear(j->context); // none is found in it
  td_memory_free(s.folder);
  return j->file ? TD_OK : make_unnamed(j);
}

// By whatever name it is opened, from whatever folder, the deck has one journal. NULL: no memory.
static char *whole_path(const char *deck) {
  const char *slash = strrchr(deck, '/');
  char *real = realpath(deck, NULL), *folder = NULL;
  td_text path = {0};
  if (real) {
    td_text_add(&path, real);
  } else { // a deck that is not there yet
    td_text_print(&path, "%.*s", slash ? (int)(slash + 1 - deck) : 1, slash ? deck : ".");
    folder = path.data ? realpath(path.data, NULL) : NULL;
    path.length = 0;
    if (folder) td_text_print(&path, "%s/%s", folder, slash ? slash + 1 : deck);
    else td_text_add(&path, deck);
  }
  free(real);
  free(folder);
  return td_text_take(&path);
}

static int open_beside(td_journal *j, const char *deck, td_journal_found *found) {
  found->deck = whole_path(deck);
  char *path = found->deck ? beside(found->deck) : NULL;
  int code = path ? td_file_hold(j->context, path, &j->file) : td_error_memory(j->context, deck, td_memory_failed());
  if (!code && !j->file) {
    found->held = true;
    look_at_owner(j->context, path, found);
  }
  td_memory_free(path);
  return code;
}

static void drop(td_journal *j, bool remove) {
  if (!j) return;
  td_file_held_release(j->file, remove);
  td_text_clear(&j->pending);
  td_memory_free(j->cells);
  td_context_free(j->context);
  td_memory_free(j);
}

static int pass_error(td_context *to, const td_context *from, int code) {
  to->error = from->error;
  return code;
}

int td_journal_open(td_context *context, const char *deck, td_journal **out, td_journal_found *found) {
  *out = NULL;
  *found = (td_journal_found){0};
  td_journal *j = td_memory_new_zero(sizeof *j);
  if (j) j->context = td_context_new(1);
  if (!j || !j->context) {
    drop(j, false);
    return td_error_memory(context, "a journal", td_memory_failed());
  }
  int code = deck ? open_beside(j, deck, found) : open_unnamed(j);
  if (!code && j->file) code = look(j, found);
  if (code) pass_error(context, j->context, code);
  if (!code && j->file) *out = j;
  else drop(j, false);
  return code;
}

void td_journal_found_clear(td_journal_found *found) {
  td_notebook_free(found->left);
  td_memory_free(found->deck);
  *found = (td_journal_found){0};
}

// ---- what is written ----

static void complain(td_journal *j) {
  if (!j->told) snprintf(j->problem, sizeof j->problem, "%s", j->context->error.message);
  j->fresh |= !j->told;
  j->told = true;
  td_error_clear(j->context);
}

const char *td_journal_problem(td_journal *j) {
  if (!j || !j->fresh) return NULL;
  j->fresh = false;
  return j->problem;
}

static written *written_of(const td_journal *j, uint64_t id, int guess) {
  if (guess < j->cell_count && j->cells[guess].id == id) return &j->cells[guess];
  for (int i = 0; i < j->cell_count; i++)
    if (j->cells[i].id == id) return &j->cells[i];
  return NULL;
}

static bool is_order(const td_journal *j, const td_notebook *n) {
  if (j->cell_count != n->count) return false;
  for (int i = 0; i < n->count; i++)
    if (j->cells[i].id != n->cells[i]->id) return false;
  return true;
}

static written state_of(const td_notebook_cell *cell) {
  return (written){cell->id, cell->changed_at, cell->outputs_at};
}

// The journal holds these cells in this order, in this state. false: no memory.
static bool note_all(td_journal *j, const td_notebook *n) {
  if (n->count > j->cell_capacity) {
    written *cells = td_memory_resize(j->cells, (size_t)n->count * 2 * sizeof *cells);
    if (!cells) return false;
    j->cells = cells;
    j->cell_capacity = n->count * 2;
  }
  for (int i = 0; i < n->count; i++) j->cells[i] = state_of(n->cells[i]);
  j->cell_count = n->count;
  return true;
}

static void add_whole(td_text *out, const td_notebook *n) {
  td_journal_owner owner = {0};
  own(&owner);
  td_text_add(out, TD_JOURNAL_MAGIC);
  td_journal_add_owner(out, &owner);
  td_journal_add_notebook(out, n);
  for (int i = 0; i < n->count; i++) {
    td_journal_add_cell(out, n->cells[i]);
    if (n->cells[i]->number || n->cells[i]->output_count) td_journal_add_outputs(out, n->cells[i]);
  }
  td_journal_add_order(out, n);
}

static void write_whole(td_journal *j, const td_notebook *n) {
  td_text text = {0};
  j->saved_at = n->saved_at;
  add_whole(&text, n);
  int code = text.failed || !note_all(j, n) ? td_error_memory(j->context, "a journal", td_memory_failed())
                                            : td_file_held_replace(j->context, j->file, text.data, text.length);
  j->broken = code != TD_OK;
  if (code) complain(j);
  else j->size = j->whole = text.length;
  td_text_clear(&text);
  j->pending.length = 0;
  j->pending.failed = false;
}

static void write_pending(td_journal *j, bool sync) {
  if (!j->pending.length) return;
  int code = j->pending.failed ? td_error_memory(j->context, "a journal", td_memory_failed())
                               : td_file_held_append(j->context, j->file, j->pending.data, j->pending.length, sync);
  if (code) {
    j->broken = true;
    complain(j);
  }
  j->size += j->pending.length;
  j->pending.length = 0;
}

static void add_changes(td_journal *j, const td_notebook *n) { // of cells and their order, and of its file
  if (j->saved_at != n->saved_at) td_journal_add_notebook(&j->pending, n);
  j->saved_at = n->saved_at;
  bool same = is_order(j, n);
  for (int i = 0; i < n->count; i++) {
    const td_notebook_cell *cell = n->cells[i];
    const written *is = written_of(j, cell->id, i);
    if (!is || is->changed_at != cell->changed_at) td_journal_add_cell(&j->pending, cell);
    bool outputs = is ? is->outputs_at != cell->outputs_at : cell->number || cell->output_count;
    if (outputs) td_journal_add_outputs(&j->pending, cell);
    else if (td_notebook_is_running(cell)) td_journal_add_curves(&j->pending, cell);
  }
  if (!same) td_journal_add_order(&j->pending, n);
  if (!note_all(j, n)) j->broken = true;
}

static bool has_changes(const td_journal *j, const td_notebook *n) {
  if (j->saved_at != n->saved_at || !is_order(j, n)) return true;
  for (int i = 0; i < n->count; i++)
    if (j->cells[i].changed_at != n->cells[i]->changed_at || j->cells[i].outputs_at != n->cells[i]->outputs_at)
      return true;
  for (int i = 0; i < n->count; i++)
    if (td_notebook_is_running(n->cells[i]) && td_journal_has_curves(n->cells[i])) return true;
  return false;
}

// ---- the face's calls ----

void td_journal_begin(td_journal *j, const td_notebook *n, double now) {
  if (!j) return;
  j->wrote_at = now;
  write_whole(j, n);
}

static bool is_kept(td_notebook_cell *cell, const td_event *event) {
  if (event->kind == TD_EVENT_CELL_STARTED) cell->journal_bytes = 0;
  cell->journal_bytes += event->length;
  if (event->pixels) cell->journal_bytes += (size_t)event->width * (size_t)event->height * 3;
  bool new = cell->output_count > cell->journal_outputs; // of a curve the first points alone: they tell its place
  cell->journal_outputs = cell->output_count;
  if (event->kind == TD_EVENT_METRIC) return new;
  return cell->journal_bytes <= RUN_BYTES || event->kind == TD_EVENT_CELL_FINISHED || event->kind == TD_EVENT_ERROR;
}

void td_journal_event(td_journal *j, const td_notebook *n, int index, const td_event *event) {
  if (!j || index < 0 || j->broken) return;
  td_notebook_cell *cell = n->cells[index];
  bool started = event->kind == TD_EVENT_CELL_STARTED, finished = event->kind == TD_EVENT_CELL_FINISHED;
  if (started) add_changes(j, n); // what runs is there before it runs
  if (finished) td_journal_add_curves(&j->pending, cell);
  if (is_kept(cell, event)) td_journal_add_event(&j->pending, cell, event);
  if (finished && cell->journal_bytes > RUN_BYTES) td_journal_add_outputs(&j->pending, cell);
  if (finished || started || j->pending.length >= PENDING_BYTES) write_pending(j, finished);
}

static bool has_running(const td_notebook *n) {
  for (int i = 0; i < n->count; i++)
    if (td_notebook_is_running(n->cells[i])) return true;
  return false;
}

int td_journal_update(td_journal *j, const td_notebook *n, double now, bool all) {
  if (!j) return -1;
  if (now < j->wrote_at) j->wrote_at = now;
  bool grown = j->size > 4 * j->whole + SLACK_BYTES && !has_running(n);
  if (!j->broken && !grown && !j->pending.length && !has_changes(j, n)) return -1;
  double wait = j->wrote_at + (j->broken ? RETRY : EVERY) - now;
  if (wait > 0 && !all) return (int)(wait * 1000) + 1;
  j->wrote_at = now;
  if (!j->broken && !grown) {
    add_changes(j, n);
    write_pending(j, true);
  }
  if (j->broken || grown) write_whole(j, n);
  return j->broken ? (int)(RETRY * 1000) : -1;
}

void td_journal_close(td_journal *j) { drop(j, true); }

void td_journal_leave(td_journal *j) { drop(j, false); }

bool td_autosave_due(td_autosave *a, const td_notebook *n, const char *path, double now) {
  int finished = 0;
  for (int i = 0; i < n->count; i++)
    if (n->cells[i]->ran_at && !td_notebook_is_running(n->cells[i]) && n->cells[i]->number > finished)
      finished = n->cells[i]->number;
  if (n->edited_at != a->seen) {
    a->seen = n->edited_at;
    a->edited = now;
  }
  bool ran = finished > a->finished, edited = !td_notebook_is_saved(n);
  if (!path || n->overtaken || (!edited && !(ran && td_notebook_path_is_ipynb(path))) ||
      (!ran && now - a->edited < IDLE))
    return false;
  a->finished = finished;
  a->edited = now; // the next try, should this one fail
  return true;
}
