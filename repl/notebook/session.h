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

// Queues a cell; its events end with CELL_FINISHED (status: a td_run_result). Texts are copied. false: no memory.
bool td_session_run(td_session *session, const char *text, size_t length, const td_run_options *options);
// Ctrl-C: the running cell raises KeyboardInterrupt at its next statement or op; when none runs, the next cell does at
// its first.
void td_session_interrupt(td_session *session);
void td_session_forget_interrupt(td_session *session); // one that no cell has taken: it was meant for the prompt

// The answer to an INPUT event, without its newline; NULL: there is no more input. false: no memory, so the code sees
// the end of input.
bool td_session_reply(td_session *session, const char *line);

// The next event; its texts live until the next call. timeout in milliseconds, -1: wait. false: nothing came in time.
bool td_session_next(td_session *session, td_event *event, int timeout);
size_t
td_session_drop_output(td_session *session); // drops OUTPUT events that wait, after an interrupt; returns their bytes
int td_session_descriptor(const td_session *session); // readable while events wait; for poll()

// Runs function on the evaluator's thread between cells, and waits for it: questions about the session (completion,
// help, is this text complete). false: a cell is running (its CELL_FINISHED did not come yet), so the question was not
// asked.
typedef void td_session_question(td_interpreter *interpreter, void *argument);
bool td_session_ask(td_session *session, td_session_question *question, void *argument);
#endif
