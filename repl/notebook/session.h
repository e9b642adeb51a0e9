// A session: the interpreter on its own thread, the commands that a face sends it and the events that come back. A face
// owns the session and is its only reader. All functions are for the face's thread, td_session_interrupt also for
// signal handlers.
#ifndef TD_NOTEBOOK_SESSION_H
#define TD_NOTEBOOK_SESSION_H
#include "repl/language/interpreter.h"

typedef struct td_session td_session;

td_session *td_session_new(void);               // starts the evaluator; NULL: no memory or no thread
// Stops what runs and drops queued cells. false: code that catches its interrupts still ran after so many milliseconds
// (-1: no limit); the session can't be freed then, only the program can end. Nothing runs in a session that was
// stopped.
bool td_session_stop(td_session *session, int timeout);
void td_session_free(td_session *session);      // stops it without a limit of time; frees the interpreter

// ---- cells ----

// Queues a cell; its events end with CELL_FINISHED (status: a td_run_result). Texts are copied. false: no memory.
//  1. Cells run one after another, in the order in which they were given.
//  2. While a run is paused, a new cell runs at once, at the step boundary where the run stands.
//  3. With options->at_step a cell doesn't wait for the end of the cell that runs, but for its next step boundary; when
//     there is none, it runs next in order.
bool td_session_run(td_session *session, const char *text, size_t length, const td_run_options *options);
int td_session_queued(td_session *session);       // cells that wait
int td_session_drop_queued(td_session *session);  // they won't run: CELL_DROPPED each. Returns how many
// Ctrl-C: the running cell raises KeyboardInterrupt at its next statement or op; when none runs, the next cell does at
// its first. While a run is paused and no cell runs in the pause, it stops that run.
void td_session_interrupt(td_session *session);
void td_session_forget_interrupt(td_session *session); // one that no cell has taken: it was meant for the prompt

// ---- pause, step, stop ----
// A step boundary is where a loop over progress(...) takes its next item, and where fit, evaluate and predict take
// their next batch. A run can only be paused there: weights, optimizer and datasets stand between two steps.
//  1. Cells that run in a pause (or with at_step) leave the run as it was but for what they change themselves: tapes
//     that are open record nothing of them, and the random numbers that they draw are drawn again by the run. Only a
//     cell that sets the random state (seed(), a restored checkpoint) sets the run's too.
//  2. A pause that was asked for and met no boundary until the end of the cell is forgotten.
typedef enum td_session_state {
  TD_SESSION_IDLE,    // no cell runs
  TD_SESSION_RUNNING,
  TD_SESSION_PAUSING, // a pause was asked for
  TD_SESSION_PAUSED,  // a run stands at a boundary, and no cell runs
  TD_SESSION_ASIDE    // a run stands at a boundary, and a cell runs there
} td_session_state;
td_session_state td_session_get_state(td_session *session);

// Asks the running cell to stop at its next step boundary; then PAUSED comes. false: none runs that takes steps (it met
// no boundary for a second, or for ten times its longest step), so only td_session_interrupt can stop it.
bool td_session_pause(td_session *session);
bool td_session_takes_steps(td_session *session); // td_session_pause would say true
bool td_session_resume(td_session *session); // RESUMED comes; takes back a pause that has not begun. false: neither is
// Goes on to the next boundary: RESUMED, then PAUSED come. When nothing is paused it is td_session_pause.
bool td_session_step(td_session *session);
// KeyboardInterrupt at this or the next boundary: RESUMED if it was paused, then ERROR and CELL_FINISHED. false as
// td_session_pause.
bool td_session_stop_run(td_session *session);

// ---- input() ----

// The answer to an INPUT event, without its newline; NULL: there is no more input. false: no memory, so the code sees
// the end of input.
bool td_session_reply(td_session *session, const char *line);

// ---- the terminal ----

// From now on, before the first cell: shell commands may have the face's terminal. At a TERMINAL event it puts the
// terminal back as it was and replies with any line (NULL: not now); until the TERMINAL event with final it neither
// reads from the terminal nor writes anything but OUTPUT.
void td_session_lend_terminal(td_session *session);

// ---- events ----

// The next event; its texts live until the next call, and so does its payload unless it is taken. timeout in
// milliseconds, -1: wait. false: nothing came in time.
bool td_session_next(td_session *session, td_event *event, int timeout);
// The payload of the event that td_session_next gave last, now the caller's: payload->release(payload) ends it. NULL:
// it has none, or it was taken.
td_payload *td_session_take_payload(td_session *session);
// Drops OUTPUT events that wait, after an interrupt; returns their bytes.
size_t td_session_drop_output(td_session *session);
int td_session_descriptor(const td_session *session); // readable while events wait; for poll()

// ---- questions ----
// They are answered between cells, while one is paused, and while one runs: on another thread, which takes a turn where
// the cell gives it away (in long kernels, in sleep, in input()) or is between statements. Its random numbers and its
// tapes are its own. The first question that comes while a cell runs may have to wait for the end of a kernel.

// Asks without waiting: make runs on an evaluator's thread, and ANSWER {id; payload} comes. argument is copied. A
// question of the same id that still waits is replaced. false: no memory or no thread.
typedef td_payload *td_inquiry(td_interpreter *, const char *argument); // NULL: an exception is in flight, or nothing
bool td_session_inquire(td_session *session, td_inquiry *make, const char *argument, int32_t id);

// Runs function on an evaluator's thread and waits for it: completion, help, is this text complete. It must not have
// side effects. false: a cell runs and did not give its turn away within 50 ms, so the question was not asked.
typedef void td_session_question(td_interpreter *interpreter, void *argument);
bool td_session_ask(td_session *session, td_session_question *question, void *argument);
#endif
