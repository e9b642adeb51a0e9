// The session of a test, and what its memory was before: fixtures for tests that run cells and ask questions.
#ifndef TESTS_NOTEBOOK_SESSIONS_H
#define TESTS_NOTEBOOK_SESSIONS_H
#include "repl/notebook/session.h"

extern td_session *session;
void session_start(void);
void session_finish(void); // asserts that it gives all its memory back
double slowness(void);     // what limits of time are multiplied by
td_event session_event(void); // the next one; none for 60 s fails the test
#endif
