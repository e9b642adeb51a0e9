// What a session does at the step boundaries (boundary.h) of the cell that runs: cells that were given for the next one
// run, and a pause begins, in which the evaluator serves new cells until the run goes on.
//  1. Each boundary notes its time, so that the face can know whether another one will come soon.
//  2. Cells that run at a boundary are not paused themselves.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/notebook/session_state.h"

enum { SOON_MILLISECONDS = 1000, FIRST_STEP_MILLISECONDS = 60000 };

static int64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// ---- is another boundary to be expected? ----

#define LOAD(member) atomic_load_explicit(&s->member, memory_order_relaxed)
#define STORE(member, value) atomic_store_explicit(&s->member, value, memory_order_relaxed)

static void note_boundary(td_session *s) {
  int64_t at = milliseconds(), before = LOAD(boundary_at);
  if (before && at - before > LOAD(longest_step)) STORE(longest_step, at - before);
  STORE(boundary_at, at);
  STORE(boundaries, LOAD(boundaries) + 1);
}

static bool takes_steps(const td_session *s) {
  int64_t at = LOAD(boundary_at), usual = 10 * LOAD(longest_step);
  if (!at) return false;
  int64_t soon = LOAD(boundaries) < 2 ? FIRST_STEP_MILLISECONDS : SOON_MILLISECONDS;
  return milliseconds() - at <= (usual > soon ? usual : soon);
}

void td_session_begin_run(td_session *s) {
  STORE(boundary_at, 0);
  STORE(longest_step, 0);
  STORE(boundaries, 0);
  s->pausing = false;
  s->go = TD_STAY;
}

bool td_session_stands(const td_session *s) { return s->paused && s->go == TD_STAY; }

// ---- at a boundary ----

typedef struct stand { // at one boundary
  td_session *session;
  td_interpreter *interpreter;
  char label[160], where[200];
  int64_t done, total;
  double began;         // of the pause
} stand;

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void tell(const stand *at, int kind, int how) {
  td_event event = {.kind = kind,
                    .cell = at->interpreter->cell,
                    .text = at->where,
                    .length = strlen(at->where),
                    .name = at->label,
                    .done = at->done,
                    .total = at->total,
                    .status = how};
  if (kind == TD_EVENT_RESUMED) event.seconds = seconds_now() - at->began;
  td_session_emit(at->session, &event);
}

static td_session_command *take_aside(td_session *s) { // the lock is held; NULL: none waits
  td_session_command *before = NULL, *c = s->first_command;
  for (; c && !c->aside; c = c->next) before = c;
  if (!c) return NULL;
  if (before) before->next = c->next;
  else s->first_command = c->next;
  if (s->last_command == c) s->last_command = before;
  return c;
}

static void run_asides(stand *at) { // the lock is held
  td_session *s = at->session;
  for (td_session_command *c; s->go == TD_STAY && (c = take_aside(s));) {
    s->aside = true;
    pthread_mutex_unlock(&s->lock);
    td_session_run_cell(s, c);
    td_session_free_command(c);
    pthread_mutex_lock(&s->lock);
    s->aside = false;
  }
}

static bool has_aside(const td_session *s) {
  for (const td_session_command *c = s->first_command; c; c = c->next)
    if (c->aside) return true;
  return false;
}

// The turn is others' meanwhile. The lock is held; false: the run is to be stopped.
static bool wait_for_face(td_session *s, td_evaluator *main) {
  pthread_mutex_unlock(&s->lock);
  td_turn_give(main);
  pthread_mutex_lock(&s->lock);
  bool stays = true;
  while (s->go == TD_STAY && !has_aside(s) && stays) {
    struct timespec until = td_session_deadline(TD_LOOK_MILLISECONDS);
    pthread_cond_timedwait(&s->commanded, &s->lock, &until);
    stays = !s->closing && !atomic_load(&main->context->interrupt);
  }
  pthread_mutex_unlock(&s->lock);
  td_turn_take(main);
  pthread_mutex_lock(&s->lock);
  return stays;
}

static void begin_pause(stand *at) { // the lock is held
  td_session *s = at->session;
  s->pausing = false;
  s->paused = true;
  at->began = seconds_now();
  pthread_mutex_unlock(&s->lock);
  tell(at, TD_EVENT_PAUSED, 0);
  pthread_mutex_lock(&s->lock);
}

static void end_pause(stand *at) { // the lock is held
  td_session *s = at->session;
  int how = s->go == TD_GO_ON ? TD_RESUMED_ON : s->go == TD_GO_STEP ? TD_RESUMED_STEP : TD_RESUMED_STOP;
  s->paused = false;
  s->pausing = s->pausing || s->go == TD_GO_STEP;
  pthread_mutex_unlock(&s->lock);
  tell(at, TD_EVENT_RESUMED, how);
  pthread_mutex_lock(&s->lock);
}

// Cells that wait for this boundary run; then a pause, if one was asked for (by one of them, it may be). The lock is
// held.
static void serve(stand *at) {
  td_session *s = at->session;
  run_asides(at);
  if (s->go != TD_STAY || !s->pausing) return;
  begin_pause(at);
  while (s->go == TD_STAY) {
    if (!wait_for_face(s, &at->interpreter->turn->main)) s->go = TD_GO_STOP;
    run_asides(at);
  }
  end_pause(at);
}

static bool serve_aside(td_session *s, td_interpreter *I, const td_boundary *boundary) {
  stand at = {.session = s, .interpreter = I, .done = boundary->done, .total = boundary->total};
  snprintf(at.label, sizeof at.label, "%s", boundary->label);
  snprintf(at.where, sizeof at.where, "%s%sstep %lld", at.label, *at.label ? " " : "", (long long)at.done);
  td_detour outer = td_detour_enter(I);
  pthread_mutex_lock(&s->lock);
  serve(&at);
  bool stops = s->go == TD_GO_STOP;
  s->go = TD_STAY;
  atomic_store(&s->attention, s->pausing || has_aside(s));
  pthread_mutex_unlock(&s->lock);
  td_detour_leave(I, &outer);
  STORE(boundary_at, milliseconds()); // what ran here was no step
  if (stops) td_session_interrupt(s);
  return !td_interrupted(I);
}

bool td_session_boundary(td_interpreter *I, const td_boundary *boundary) {
  td_session *s = I->sink ? I->sink->owner : NULL;
  if (!s || I->core->detours) return true;
  note_boundary(s);
  return !atomic_load_explicit(&s->attention, memory_order_relaxed) || serve_aside(s, I, boundary);
}

// ---- what the face says ----

td_session_state td_session_get_state(td_session *s) {
  pthread_mutex_lock(&s->lock);
  td_session_state state = TD_SESSION_IDLE;
  if (s->aside) state = TD_SESSION_ASIDE;
  else if (td_session_stands(s)) state = TD_SESSION_PAUSED;
  else if (s->pausing || s->go == TD_GO_STEP) state = TD_SESSION_PAUSING;
  else if (s->running || s->first_command) state = TD_SESSION_RUNNING;
  pthread_mutex_unlock(&s->lock);
  return state;
}

static void say(td_session *s, int go) { // the lock is held
  s->go = go;
  atomic_store(&s->attention, true);
  pthread_cond_signal(&s->commanded);
}

// true: a run stands, or will soon come to a boundary. The lock is held.
static bool can_pause(const td_session *s) {
  return td_session_stands(s) || (s->running && !s->aside && (s->paused || takes_steps(s)));
}

bool td_session_takes_steps(td_session *s) {
  pthread_mutex_lock(&s->lock);
  bool can = !s->aside && can_pause(s);
  pthread_mutex_unlock(&s->lock);
  return can;
}

bool td_session_pause(td_session *s) {
  pthread_mutex_lock(&s->lock);
  bool can = !s->aside && can_pause(s);
  if (can && !td_session_stands(s)) {
    s->pausing = true;
    atomic_store(&s->attention, true);
  }
  pthread_mutex_unlock(&s->lock);
  return can;
}

bool td_session_resume(td_session *s) {
  pthread_mutex_lock(&s->lock);
  bool stands = td_session_stands(s), can = stands || s->pausing || s->go == TD_GO_STEP;
  s->pausing = false;
  if (stands || s->go == TD_GO_STEP) say(s, TD_GO_ON);
  pthread_mutex_unlock(&s->lock);
  return can;
}

bool td_session_step(td_session *s) {
  pthread_mutex_lock(&s->lock);
  bool stands = td_session_stands(s);
  if (stands) say(s, TD_GO_STEP);
  pthread_mutex_unlock(&s->lock);
  return stands || td_session_pause(s);
}

bool td_session_stop_run(td_session *s) {
  pthread_mutex_lock(&s->lock);
  bool can = can_pause(s);
  if (can) say(s, TD_GO_STOP);
  pthread_mutex_unlock(&s->lock);
  return can;
}

// ---- what cells say ----

// From one that runs at a boundary; before a pause begins there, the run goes on anyway.
static bool go_here(td_interpreter *I, int go) {
  td_session *s = td_session_of(I);
  if (!s || !I->core->detours) return false;
  pthread_mutex_lock(&s->lock);
  if (s->paused || go == TD_GO_STOP) s->go = go;
  else s->pausing = go == TD_GO_STEP;
  pthread_mutex_unlock(&s->lock);
  return true;
}

bool td_session_resume_here(td_interpreter *I) { return go_here(I, TD_GO_ON); }
bool td_session_step_here(td_interpreter *I) { return go_here(I, TD_GO_STEP); }
bool td_session_stop_here(td_interpreter *I) { return go_here(I, TD_GO_STOP); }

bool td_session_pause_here(td_interpreter *I) {
  td_session *s = td_session_of(I);
  if (!s) return false;
  pthread_mutex_lock(&s->lock);
  s->pausing = !td_session_stands(s);
  atomic_store(&s->attention, true);
  pthread_mutex_unlock(&s->lock);
  return true;
}
