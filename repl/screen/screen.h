// The screen face: cells and prompt at the left, panes at the right. This header is what its own files share.
//  screen.c          life and main loop
//  screen_keys.c     keys to requests, and who gets them
//  screen_cells.c    requests on cells
//  screen_run.c      running, pausing, the session's events
//  screen_files.c    opening, saving, leaving
//  screen_draw.c     the frame
#ifndef TD_SCREEN_SCREEN_H
#define TD_SCREEN_SCREEN_H
#include "repl/line/line.h"
#include "repl/notebook/journal.h"
#include "repl/screen/bars.h"
#include "repl/screen/cells_view.h"
#include "repl/screen/edit.h"
#include "repl/screen/graphics.h"
#include "repl/screen/layout.h"
#include "repl/screen/panes.h"
#include "repl/screen/popup.h"
#include "repl/screen/tip.h"

// The screen on this terminal; -1: the terminal can't show one. Else the exit code.
int td_screen_run(const td_line_options *options);

// ---- private to the screen ----

enum { TD_PANE_COUNT = 0
#define X(name) + 1
TD_PANES(X)
#undef X
};

typedef enum td_focus { TD_FOCUS_PROMPT, TD_FOCUS_CELL, TD_FOCUS_CELLS, TD_FOCUS_PANE } td_focus;

typedef struct td_question { // asked in the status line
  void (*answer)(void *argument, const char *line); // NULL: nothing is asked
  void *argument;
  bool key;                // one key answers
  char prompt[120];
} td_question;

typedef struct td_placed { // a picture in pixels
  td_pixels held;          // its pixels are the pane's
  uint64_t serial;         // 0: none
  td_rect area;
} td_placed;

typedef struct td_screen {
  const td_line_options *options;
  td_session *session;
  td_notebook *notebook;
  td_theme theme;
  td_surface surface;
  td_graphics graphics;
  td_placed placed, drawn; // wanted in this frame; on the terminal
  td_layout layout;
  td_keyboard keyboard;
  td_key prefix;           // the first of two keys; code 0: none
  td_cells_view view;
  td_bars bars;
  td_popup popup;
  td_tip tip;
  td_pane_host host;
  void *states[TD_PANE_COUNT];
  double asked_at[TD_PANE_COUNT]; // when a pane asked what was not answered yet (td_screen_now); 0: nothing
  int pane;                // index; -1: none is open
  bool zoomed;
  int share;               // of the columns for the pane, percent
  td_focus focus;
  td_question question;
  td_text draft;           // of the prompt, while something else is edited
  size_t draft_cursor;
  td_text deleted;         // the cell that p puts back
  bool deleted_markdown;
  bool line_typed;         // Enter has made a line of this entry: its block ends with an empty one
  bool input;              // input() waits: the prompt answers it
  td_text input_prompt, input_line;
  char message[160];       // in the status line until the next key
  double message_until;    // keys before then leave it there; td_screen_now
  int message_run;         // cell whose end takes the message away; 0: none
  td_journal *journal;     // NULL: none
  td_journal_found found;  // left: what it offers, until the user has chosen
  td_autosave autosave;
  bool saves;              // the user has saved: from then on the deck saves itself
  char *path;              // of the deck; NULL: none yet. Owned
  int run_number;          // of the cell that runs; 0: none
  bool interrupting;       // Ctrl-C raised an interrupt that the cell did not take yet
  int replay_at;           // where the entry that was submitted stands in the history
  bool images_told;        // that there is a pane for them
  bool dirty, leaving;
  bool cut_short;          // a signal or a lost terminal ends it: the journal stays
  int exit_code;
  double frame_cost;       // seconds that the last frame took to send
  double process_time, process_at; // for the load in the title
  double load;
} td_screen;

double td_screen_now(void);
void td_screen_say(td_screen *screen, const char *format, ...) __attribute__((format(printf, 2, 3)));
void td_screen_ask(td_screen *screen, const char *prompt, void (*answer)(void *argument, const char *line),
                   void *argument); // a line
void td_screen_ask_key(td_screen *screen, const char *prompt, void (*answer)(void *argument, const char *line),
                       void *argument); // one key; Escape and Ctrl-C give NULL

void td_screen_key(td_screen *screen, const td_key *key, bool more); // screen_keys.c
void td_screen_request(td_screen *screen, enum td_request request);
enum td_context_kind td_screen_context(const td_screen *screen); // where keys count now
void td_screen_focus(td_screen *screen, td_focus focus);
void td_screen_edit_prompt(td_screen *screen);   // the prompt's draft comes into the editor
void td_screen_leave_edit(td_screen *screen);
void td_screen_sync(td_screen *screen);          // the editor's text goes into what is edited
void td_screen_show_pane(td_screen *screen, int pane, bool focus); // -1: closes it
int td_screen_pane_asking(uint64_t id);          // the pane that asked, by the number of its question; -1: none
int td_screen_find_pane(const char *name);       // -1: none
const td_pane_type *td_screen_pane_type(int pane);

bool td_screen_cells_request(td_screen *screen, enum td_request request); // screen_cells.c
void td_screen_edit_cell(td_screen *screen, int index);
void td_screen_jump(td_screen *screen, const char *script, int line, int column);

void td_screen_run_line(void *screen, const char *line); // as if it were typed at the prompt
void td_screen_run_cell(td_screen *screen, int index, bool at_step); // screen_run.c
void td_screen_submit(td_screen *screen, bool at_step); // the prompt's text as a new cell
void td_screen_enter(td_screen *screen, bool more);     // Enter at the prompt
bool td_screen_reply(td_screen *screen, const char *line); // to input(); false: it doesn't wait
void td_screen_interrupt(td_screen *screen);
void td_screen_event(td_screen *screen, const td_event *event);
void td_screen_tell_panes(td_screen *screen, const td_event *event);
bool td_screen_run_request(td_screen *screen, enum td_request request);
bool td_screen_set_command(td_screen *screen, const char *line); // %set and the like; false: the session's

bool td_screen_open(td_screen *screen);                 // screen_files.c
bool td_screen_save(td_screen *screen, const char *path); // path NULL: the deck's own
void td_screen_ask_save(td_screen *screen);              // asks for a name when there is none
void td_screen_quit(td_screen *screen);
void td_screen_colon(td_screen *screen, const char *line); // "w NAME", "q", "wq", ...
bool td_screen_export(td_screen *screen);
void td_screen_ask_recovery(td_screen *screen);          // when there is something to get back; the journal begins
void td_screen_idle(td_screen *screen);                 // journal and autosave, twice a second
void td_screen_close_files(td_screen *screen);

void td_screen_draw(td_screen *screen);                 // screen_draw.c
#endif
