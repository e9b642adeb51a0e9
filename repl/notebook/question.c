// Questions while a cell runs: a second thread, the guest, made at the first one, takes a turn over the session's
// values (turn.h). It has a context of its own, so it draws other random numbers and no tape sees what it computes.
//  1. An inquiry's answer is an event. Newer inquiries of an id replace one that waits.
//  2. td_session_ask waits for its answer, but only for a while: what has not begun by then is given up. It goes before
//     the inquiries.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/notebook/session_state.h"

enum { ASK_MILLISECONDS = 50 };
#define STACK_BYTES ((size_t)16 << 20)

// ---- the guest's thread ----

static void free_inquiry(td_session_inquiry *q) {
  td_memory_free(q->text);
  td_memory_free(q);
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void describe_failure(td_interpreter *I, td_text *text) { // the first line of what went wrong
  if (td_is_nil(I->raised)) return;
  td_value exception = td_take_raised(I);
  td_diagnose(I, exception, text);
  td_clear_raised(I);
  td_unref(exception);
  if (text->data) text->data[strcspn(text->data, "\n")] = 0;
}

static void answer(td_interpreter *I, td_session_inquiry *q, td_event *event, td_text *text) {
  double begin = seconds_now();
  td_payload *payload = q->make(I, q->text);
  if (!payload) describe_failure(I, text);
  *event = (td_event){.kind = TD_EVENT_ANSWER, .id = (uint64_t)q->id, .payload = payload};
  event->seconds = seconds_now() - begin;
  event->text = text->data;
  event->length = text->data ? strlen(text->data) : 0;
}

static bool begins(td_session *s, td_session_inquiry *q) { // false: nobody waits for it any more
  pthread_mutex_lock(&s->lock);
  bool wanted = q->state != TD_INQUIRY_GIVEN_UP && !s->guest_ends;
  if (wanted) q->state = TD_INQUIRY_RUNS;
  pthread_mutex_unlock(&s->lock);
  return wanted;
}

static void serve(td_session *s, td_session_inquiry *q) {
  td_evaluator *e = &s->evaluator;
  td_interpreter *I = e->interpreter;
  td_event event = {0};
  td_text text = {0};
  td_turn_take(e);
  td_stack_limit_find(I);
  bool wanted = begins(s, q);
  if (wanted && q->make) answer(I, q, &event, &text);
  else if (wanted) q->ask(I, q->argument);
  td_clear_raised(I);
  td_tapes_free(I->context);
  td_turn_give(e);
  if (wanted && q->make) td_session_emit(s, &event);
  td_text_clear(&text);
}

static td_session_inquiry *next_inquiry(td_session *s) { // the lock is held; NULL: the guest ends
  while (!s->first_inquiry && !s->guest_ends) pthread_cond_wait(&s->inquired, &s->lock);
  if (s->guest_ends) return NULL;
  td_session_inquiry *q = s->first_inquiry;
  s->first_inquiry = q->next;
  if (!q->next) s->last_inquiry = NULL;
  return q;
}

static void *serve_all(void *argument) {
  td_session *s = argument;
  td_turn_take(&s->evaluator);
  td_turn_share(s->evaluator.interpreter->turn);
  td_turn_give(&s->evaluator);
  pthread_mutex_lock(&s->lock);
  for (td_session_inquiry *q; (q = next_inquiry(s));) {
    pthread_mutex_unlock(&s->lock);
    serve(s, q);
    pthread_mutex_lock(&s->lock);
    if (q->make || q->state == TD_INQUIRY_GIVEN_UP) free_inquiry(q);
    else q->state = TD_INQUIRY_DONE; // it is the face's
    pthread_cond_broadcast(&s->arrived);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

// ---- its life ----

static bool start_guest(td_session *s) { // the lock is held
  if (s->has_guest || s->closing || !s->interpreter) return s->has_guest && !s->closing;
  if (!td_evaluator_open(s->interpreter, &s->evaluator)) return false;
  pthread_attr_t attributes;
  sigset_t all, old;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); // signals are the face's
  s->has_guest = pthread_create(&s->guest, &attributes, serve_all, s) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  if (!s->has_guest) td_evaluator_close(&s->evaluator);
  return s->has_guest;
}

void td_session_end_guest(td_session *s) {
  pthread_mutex_lock(&s->lock);
  s->guest_ends = true;
  if (s->has_guest) atomic_store(&s->evaluator.context->interrupt, 1);
  pthread_cond_broadcast(&s->inquired);
  pthread_mutex_unlock(&s->lock);
  if (!s->has_guest) return;
  pthread_join(s->guest, NULL);
  td_evaluator_close(&s->evaluator);
}

void td_session_free_inquiries(td_session *s) {
  for (td_session_inquiry *q = s->first_inquiry, *next; q; q = next) {
    next = q->next;
    free_inquiry(q);
  }
}

// ---- asking ----

static bool replaces_waiting(td_session *s, int32_t id, td_inquiry *make, char *text) {
  for (td_session_inquiry *q = s->first_inquiry; q; q = q->next) {
    if (!q->make || q->id != id) continue;
    td_memory_free(q->text);
    q->make = make;
    q->text = text;
    return true;
  }
  return false;
}

static void put_last(td_session *s, td_session_inquiry *q) {
  if (s->last_inquiry) s->last_inquiry->next = q;
  else s->first_inquiry = q;
  s->last_inquiry = q;
  pthread_cond_signal(&s->inquired);
}

bool td_session_inquire(td_session *s, td_inquiry *make, const char *argument, int32_t id) {
  td_session_inquiry *q = td_memory_new_zero(sizeof *q);
  char *text = td_memory_text(argument);
  bool ok = q && text;
  if (ok) *q = (td_session_inquiry){.make = make, .text = text, .id = id};
  pthread_mutex_lock(&s->lock);
  ok = ok && start_guest(s);
  bool replaced = ok && replaces_waiting(s, id, make, text);
  if (ok && !replaced) put_last(s, q);
  pthread_mutex_unlock(&s->lock);
  if (!ok) td_memory_free(text);
  if (!ok || replaced) td_memory_free(q);
  return ok;
}

static void give_up(td_session *s, td_session_inquiry *q) {
  td_session_inquiry **link = &s->first_inquiry, *last = NULL;
  for (; *link && *link != q; link = &(*link)->next) last = *link;
  q->state = TD_INQUIRY_GIVEN_UP;
  if (!*link) return; // the guest has it
  *link = q->next;
  if (s->last_inquiry == q) s->last_inquiry = last;
  free_inquiry(q);
}

static void put_first(td_session *s, td_session_inquiry *q) {
  q->next = s->first_inquiry;
  s->first_inquiry = q;
  if (!q->next) s->last_inquiry = q;
  pthread_cond_signal(&s->inquired);
}

bool td_session_ask_beside(td_session *s, td_session_question *question, void *argument) {
  td_session_inquiry *q = start_guest(s) ? td_memory_new_zero(sizeof *q) : NULL;
  if (!q) return false;
  *q = (td_session_inquiry){.ask = question, .argument = argument};
  struct timespec until = td_session_deadline(ASK_MILLISECONDS);
  put_first(s, q);
  s->asking = true;
  pthread_cond_broadcast(&s->taken);
  for (int code = 0; q->state != TD_INQUIRY_DONE && (code != ETIMEDOUT || q->state == TD_INQUIRY_RUNS);)
    code = q->state == TD_INQUIRY_RUNS ? pthread_cond_wait(&s->arrived, &s->lock)
                                       : pthread_cond_timedwait(&s->arrived, &s->lock, &until);
  s->asking = false;
  bool done = q->state == TD_INQUIRY_DONE;
  if (done) free_inquiry(q);
  else give_up(s, q);
  return done;
}
