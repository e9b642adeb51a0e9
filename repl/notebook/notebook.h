// The notebook as a document: cells and what they put out. Operations change it and can be undone; the session's events
// fill it. It knows no evaluator, no terminal and no file; it is its face's thread's alone. Texts are data as they
// came: a face shows them by td_visible_add (visible.h), never as they are.
#ifndef TD_NOTEBOOK_NOTEBOOK_H
#define TD_NOTEBOOK_NOTEBOOK_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "repl/language/event.h"

// ---- what a cell put out ----

// X(KIND, "what the members hold"); text is in all of them, json in those that came from a file
#define TD_OUTPUTS(X)                                                                                                  \
  X(STREAM, "stream: 1 stdout, 2 stderr; text; cut, lines_cut, bytes_cut: what is left out of a long one")             \
  X(VALUE, "text: the printed form of the cell's value; cut, lines_cut, bytes_cut: as STREAM's")                       \
  X(ERROR, "text: the whole diagnostic; detail: its first line; name, line, column: the place")                        \
  X(IMAGE, "text: description; detail: ASCII picture or NULL; width, height, pixels (RGB, 3 bytes each) or NULL")      \
  X(CURVE, "text: name of a curve that got points; curve: those of this run, or NULL")                                 \
  X(DATA, "text: plain form of what a file held and this program doesn't show otherwise")

enum td_output_kind {
#define X(KIND, doc) TD_OUTPUT_##KIND,
  TD_OUTPUTS(X)
#undef X
  TD_OUTPUT_COUNT
};

typedef struct td_cell_output {
  enum td_output_kind kind;
  int stream, line, column, width, height;
  td_text text;
  size_t cut;                    // byte of text before which something is left out, when bytes_cut is not 0
  int64_t lines_cut, bytes_cut;
  char *detail, *name;           // owned, or NULL
  uint8_t *pixels;               // owned, or NULL
  struct td_curve *curve;        // owned, or NULL
  char *json;                    // owned: the output as its .ipynb file has it; NULL: it comes from a run
} td_cell_output;

// ---- cells ----

enum td_cell_status {
  TD_CELL_IDLE, TD_CELL_QUEUED, TD_CELL_RUNNING, TD_CELL_PAUSED, TD_CELL_DONE, TD_CELL_FAILED, TD_CELL_INTERRUPTED,
};

enum { TD_CELL_NAME = 64 };      // letters, digits, - and _ in a cell's name, at most; nbformat's cell id

typedef struct td_notebook_cell {
  uint64_t id;                   // stable for the life of the notebook, never given out twice; undo brings it back
  char name[TD_CELL_NAME + 1];   // of the cell in its file; "": it has none yet
  bool markdown;
  bool folded;
  bool stale;                    // something that it used was changed or run anew since it ran (td_notebook_stale)
  int scroll;                    // the face's
  td_text text;                  // without the line ends at its end
  td_cell_output *outputs;            // owned
  int output_count, output_capacity;
  int number;                    // of its run, as in "[3]"; 0: never run
  int waiting;                   // the number of the run that it waits for, or that runs; 0: none
  enum td_cell_status status, before; // before: it waited
  double seconds;                // of its last run
  uint64_t revision;             // of the notebook when something of this cell changed last, but for scroll
  uint64_t content_at;           // what a file holds of it changed last; 0: not since it was read
  uint64_t changed_at, ran_at;   // text or kind changed last; its last run began (0: not in this session)
  uint64_t outputs_at;           // outputs changed last by something else than a run: cleared, brought back
  uint64_t ran_text;             // hash of the text that ran then (td_notebook_hash)
  size_t journal_bytes;          // the journal's: of its run's events
  int journal_outputs;           // the same: outputs that it knows
  struct td_cell_names *names;   // owned; of the text at names_at (cell_names.h); NULL: not known yet
  uint64_t names_at;
  char *divider, *tail;          // owned: the line above it and the line ends under it, as in its deck; NULL: as usual
  size_t divider_length;
  bool commented;                // markdown whose lines begin with "# " in its deck
  char *json;                    // owned: the cell as its .ipynb file has it, true while content_at is 0; NULL: none
} td_notebook_cell;

typedef struct td_notebook {
  td_notebook_cell **cells;      // owned; at least room for one
  int count, capacity;
  uint64_t revision;             // grows with each change of anything
  uint64_t saved_at;             // revision of the text last saved (td_notebook_saved)
  uint64_t edited_at;            // revision when a text, a kind or the order changed last: what a deck file holds
  uint64_t last_id;
  int last_number;               // of the runs so far
  struct td_change *changes;     // owned: done ones, then undone ones (notebook_undo.c)
  int change_count, change_done, change_capacity;
  bool typing;                   // the last change may grow (td_notebook_type)
  uint64_t step;
  td_file_stamp file;            // that it was read from or saved to last; size and the hash of its bytes tell it, too
  uint64_t file_hash;
  bool has_file, overtaken;      // overtaken: a save was refused, since that file is another one now
  char *json_before, *json_after; // owned: what stands around the cells in its .ipynb file; NULL: none
  int json_minor;                // its nbformat_minor
} td_notebook;

td_notebook *td_notebook_new(void);                   // no cell; NULL: no memory
void td_notebook_free(td_notebook *notebook);

int td_notebook_find(const td_notebook *notebook, uint64_t id);            // index; -1: none
int td_notebook_find_number(const td_notebook *notebook, int number);      // of the cell with that run; -1: none
uint64_t td_notebook_hash(const char *text, size_t length);                // of a cell's text
// The cell ran in this session and its text is not the one that ran.
bool td_notebook_is_changed(const td_notebook_cell *cell);
bool td_notebook_is_running(const td_notebook_cell *cell);                 // or waits for its run, or pauses in it
bool td_notebook_is_saved(const td_notebook *notebook);                    // nothing that a deck holds changed since
void td_notebook_saved(td_notebook *notebook);                             // a face or a journal wrote it to its file

// ---- operations: each is one step of undo. false: no memory or no such cell, and nothing has changed ----

// Before index, which may be the count.
bool td_notebook_insert(td_notebook *notebook, int index, bool markdown, const char *text, size_t length);
bool td_notebook_delete(td_notebook *notebook, int index);
bool td_notebook_move(td_notebook *notebook, int from, int to);            // to: its index afterwards
bool td_notebook_split(td_notebook *notebook, int index, size_t byte);     // what follows byte is the next cell
bool td_notebook_merge(td_notebook *notebook, int index);                  // with the next one
bool td_notebook_set_kind(td_notebook *notebook, int index, bool markdown);
bool td_notebook_set_text(td_notebook *notebook, int index, const char *text, size_t length);
// The same while somebody types: one step together with the td_notebook_type calls on this cell just before.
// Setting the text that is there already is no step.
bool td_notebook_type(td_notebook *notebook, int index, const char *text, size_t length);
bool td_notebook_clear_outputs(td_notebook *notebook, int index);          // -1: of all cells
bool td_notebook_fold(td_notebook *notebook, int index, bool folded);
// Takes back the last step, does it again. The index of the cell that it was about, to show it (of the place where a
// cell was, when it is gone); -1: there is none.
int td_notebook_undo(td_notebook *notebook);
int td_notebook_redo(td_notebook *notebook);

// ---- runs: no steps of undo ----

// The cell waits for its run; the number for td_run_options.cell. 0: no such cell, markdown, or it waits or runs
// already.
int td_notebook_queue(td_notebook *notebook, int index);
// Takes an event into the cell whose run it belongs to, by its number; that may be a deleted one that undo can bring
// back. The index of the cell; -1: none. Nothing fills memory: a long stream keeps its head and its tail.
int td_notebook_event(td_notebook *notebook, const td_event *event);

// ---- order ----

// The runs of this session stand in the order of the cells: true. Else *first stands above *second but ran after it:
// "out of order: 4 after 2".
bool td_notebook_in_order(const td_notebook *notebook, int *first, int *second);

// ---- for the readers of files: no steps of undo ----

// NULL: no memory.
td_notebook_cell *td_notebook_append(td_notebook *notebook, bool markdown, const char *text, size_t length);
td_cell_output *td_cell_add_output(td_notebook_cell *cell, enum td_output_kind kind); // an empty one more
void td_cell_drop_outputs(td_notebook_cell *cell);
void td_cell_output_clear(td_cell_output *output);

// ---- what the notebook's files share ----

void td_notebook_touch(td_notebook *notebook, td_notebook_cell *cell);     // something of the cell changed
void td_notebook_touch_content(td_notebook *notebook, td_notebook_cell *cell); // that files hold
td_notebook_cell *td_notebook_cell_new(td_notebook *notebook, bool markdown, const char *text, size_t length);
void td_notebook_cell_free(td_notebook_cell *cell);
bool td_notebook_reserve(td_notebook *notebook, int count);                // room for so many cells
void td_notebook_put(td_notebook *notebook, int index, td_notebook_cell *cell); // there is room
td_notebook_cell *td_notebook_take(td_notebook *notebook, int index);
// The cell that waits with this number, or runs with it; it may be a deleted one. NULL: none.
td_notebook_cell *td_notebook_waiting(const td_notebook *notebook, int number);
void td_notebook_forget_changes(td_notebook *notebook, int from);          // from there on: no undo, no redo
#endif
