// See sessions.h.
#include "tests/notebook/sessions.h"
#include <check.h>
#include <stdlib.h>
#include "engine/base/memory.h"

td_session *session;
static int64_t live;

void session_start(void) {
  live = td_memory_live();
  session = td_session_new();
  ck_assert_ptr_nonnull(session);
}

void session_finish(void) {
  td_session_free(session);
  ck_assert_int_eq(td_memory_live(), live);
}

double slowness(void) {
  const char *given = getenv("SLOWNESS");
  return given && atof(given) > 1 ? atof(given) : 1;
}

td_event session_event(void) {
  td_event event;
  ck_assert_msg(td_session_next(session, &event, 60000), "no event for 60 s");
  return event;
}
