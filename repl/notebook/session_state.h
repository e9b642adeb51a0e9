// What the files of a session share: session.c (its queues and its life), question.c (answers while a cell runs),
// pause.c (step boundaries). Private to them and to the commands that act on the session.
#ifndef TD_NOTEBOOK_SESSION_STATE_H
#define TD_NOTEBOOK_SESSION_STATE_H
#include <pthread.h>
#include <time.h>
#include "repl/language/boundary.h"
#include "repl/language/turn.h"
#include "repl/notebook/session.h"

enum { TD_LOOK_MILLISECONDS = 20 }; // how often a wait that no signal can end looks for an interrupt

typedef struct td_session_command { // a cell, or a question that is answered between cells
  struct td_session_command *next;
  td_run_options options;
  char *name, *folder, *text;     // owned
  size_t length;
  bool aside;                     // a cell that may run at a boundary
  td_session_question *question;  // or NULL
  void *argument;
  bool *answered;
} td_session_command;

typedef struct td_session_inquiry { // a question that is answered beside the running cell
  struct td_session_inquiry *next;
  td_inquiry *make;               // or NULL: ask, which somebody waits for
  char *text;                     // argument of make; owned
  int32_t id;
  td_session_question *ask;
  void *argument;
  enum { TD_INQUIRY_WAITS, TD_INQUIRY_RUNS, TD_INQUIRY_DONE, TD_INQUIRY_GIVEN_UP } state; // of ask
} td_session_inquiry;

typedef struct td_waiting { // an event, its points, pixels and texts, in one block
  struct td_waiting *next, *previous;
  td_event event;
  size_t bytes, room;              // room: for text of an OUTPUT, its NUL included
  char texts[];
} td_waiting;

struct td_session {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t commanded;       // a command for the evaluator
  pthread_cond_t taken;           // an event was taken
  pthread_cond_t arrived;         // anything the face waits for
  td_session_command *first_command, *last_command;
  td_waiting *first_event, *last_event;
  td_waiting *current;            // the one that td_session_next gave out
  td_waiting *spent;              // small ones that were taken: the evaluator frees them, since its thread made them
  size_t event_bytes;
  int pipe[2];
  bool signalled;                 // a byte is in the pipe
  bool running, closing, started, ended;
  bool asking;                    // the face waits for an answer and takes no events
  td_interpreter *interpreter;
  td_context *context; // the interpreter's main thread's: the face raises its interrupt
  td_event_sink sink;
  enum { TD_NO_INPUT, TD_INPUT_ASKED, TD_INPUT_REPLIED } line_state; // of td_interpreter.read_line
  char *line;                     // the reply; NULL: end of input

  // question.c
  pthread_t guest;                // a thread that answers beside the running cell, made at the first question
  bool has_guest, guest_ends;
  pthread_cond_t inquired;
  td_evaluator evaluator;         // of that thread
  td_session_inquiry *first_inquiry, *last_inquiry;

  // pause.c
  atomic_bool attention;          // something is to be done at the next boundary
  // Of the running cell, in milliseconds; boundary_at 0: it has met none yet.
  atomic_int_least64_t boundary_at, longest_step, boundaries;
  bool pausing, paused, aside;    // asked for; a run stands; a cell runs there
  enum { TD_STAY, TD_GO_ON, TD_GO_STEP, TD_GO_STOP } go;
};

// ---- session.c ----
void td_session_emit(void *session, const td_event *event); // of td_event_sink
struct timespec td_session_deadline(int milliseconds);
void td_session_run_cell(td_session *session, const td_session_command *command); // on the evaluator's thread
void td_session_free_command(td_session_command *command);
td_session *td_session_of(const td_interpreter *interpreter); // NULL: it belongs to none

// ---- question.c ----
bool td_session_ask_beside(td_session *session, td_session_question *question, void *argument); // lock is held
void td_session_end_guest(td_session *session); // from the evaluator's thread, which has the turn; lock isn't held
void td_session_free_inquiries(td_session *session);

// ---- pause.c ----
td_at_boundary td_session_boundary;
bool td_session_stands(const td_session *session); // paused, and nobody said how to go on. lock is held
// From cells. The first: at the next boundary; false: there is no session. The others from cells that run at one;
// false: this is none.
bool td_session_pause_here(td_interpreter *interpreter);
bool td_session_resume_here(td_interpreter *interpreter);
bool td_session_step_here(td_interpreter *interpreter);
bool td_session_stop_here(td_interpreter *interpreter);
void td_session_begin_run(td_session *session); // a cell begins, or has ended: no pause is asked for. lock is held
#endif
