// See session.h. Two queues under one lock: commands to the evaluator, events from it.
//  1. The evaluator waits when a face is too slow to take events, so memory stays bounded; a progress event replaces a
//     waiting one of the same bar. A pipe wakes poll().
//  2. A cell has ended for the face once its CELL_FINISHED can be taken: from then on questions are asked, and wait
//     their turn.
//  3. A payload belongs to its event, and goes to whoever takes it; memory for one never makes the evaluator wait.
//  4. The evaluator gives its turn back (turn.h) whenever it waits, so that questions are answered meanwhile.
//  5. An interrupt stays until running code takes it or the face forgets it: one that comes while no cell runs stops
//     the next.
#include "repl/notebook/session.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/library/library.h"
#include "repl/notebook/command.h"
#include "repl/notebook/pictures.h"
#include "repl/notebook/session_state.h"

#define STACK_BYTES ((size_t)64 << 20)
#define WAITING_BYTES ((size_t)8 << 20) // events may hold this much text before the evaluator waits
enum { SMALL_BYTES = 512 };              // blocks up to here stay with the thread that frees them (memory.c)
enum { OUTPUT_ROOM = 2048 };             // bytes by which an OUTPUT that waits may grow

// ---- events ----

static size_t text_bytes(const char *text) { return text ? strlen(text) + 1 : 0; }

static td_waiting *copy_event(const td_event *event) {
  size_t length = event->text ? event->length + 1 : 0;
  if (event->kind == TD_EVENT_OUTPUT) length += OUTPUT_ROOM;
  size_t points = event->points ? (size_t)event->done * sizeof *event->points : 0;
  size_t pixels = event->pixels ? (size_t)event->width * (size_t)event->height * 3 : 0;
  size_t bytes = sizeof(td_waiting) + points + pixels + length + text_bytes(event->detail) + text_bytes(event->name);
  td_waiting *w = td_memory_new(bytes);
  if (!w) return NULL;
  w->next = NULL;
  w->event = *event;
  w->bytes = bytes;
  w->room = length;
  char *at = w->texts;
  if (points) {
    w->event.points = memcpy(at, event->points, points);
    at += points;
  }
  if (pixels) {
    w->event.pixels = memcpy(at, event->pixels, pixels);
    at += pixels;
  }
  if (event->text) {
    memcpy(at, event->text, event->length);
    at[event->length] = 0;
    w->event.text = at;
    at += length;
  }
  if (event->detail) {
    w->event.detail = strcpy(at, event->detail);
    at += text_bytes(event->detail);
  }
  if (event->name) w->event.name = strcpy(at, event->name);
  return w;
}

// The newest state of a bar is all that matters: it takes the place of one that waits at the queue's end.
static bool replaces_last(const td_session *s, const td_event *event) {
  const td_waiting *last = s->last_event;
  return event->kind == TD_EVENT_PROGRESS && last && last->event.kind == TD_EVENT_PROGRESS &&
         last->event.id == event->id && !last->event.final;
}

// Output that the face has not taken yet grows, so that a line costs a copy and no event of its own.
static bool joins_last(td_session *s, const td_event *event) {
  td_waiting *last = s->last_event;
  if (event->kind != TD_EVENT_OUTPUT || !last || last->event.kind != TD_EVENT_OUTPUT ||
      last->event.stream != event->stream)
    return false;
  if (last->event.length + event->length >= last->room) return false;
  memcpy(last->texts + last->event.length, event->text, event->length);
  last->event.length += event->length;
  last->texts[last->event.length] = 0;
  return true;
}

static void append(td_session *s, td_waiting *w) {
  w->next = NULL;
  w->previous = s->last_event;
  if (s->last_event) s->last_event->next = w;
  else s->first_event = w;
  s->last_event = w;
  s->event_bytes += w->bytes;
}

static void take_out(td_session *s, td_waiting *w) {
  if (w->previous) w->previous->next = w->next;
  else s->first_event = w->next;
  if (w->next) w->next->previous = w->previous;
  else s->last_event = w->previous;
  s->event_bytes -= w->bytes;
}

static void wake_poll(td_session *s) {
  if (s->signalled) return;
  s->signalled = write(s->pipe[1], "", 1) == 1;
}

static void release(td_payload *payload) {
  if (payload) payload->release(payload);
}

static void free_all(td_waiting *first) {
  for (td_waiting *next; first; first = next) {
    next = first->next;
    release(first->event.payload);
    td_memory_free(first);
  }
}

static bool must_wait(const td_session *s, const td_event *event) { // the lock is held
  return s->event_bytes > WAITING_BYTES && event->kind != TD_EVENT_ANSWER && !s->closing && !s->asking;
}

void td_session_emit(void *owner, const td_event *event) {
  td_session *s = owner;
  pthread_mutex_lock(&s->lock);
  bool joined = joins_last(s, event);
  td_waiting *spent = s->spent;
  s->spent = NULL;
  pthread_mutex_unlock(&s->lock);
  free_all(spent);
  if (joined) return;
  td_waiting *w = copy_event(event);
  if (!w) release(event->payload);
  pthread_mutex_lock(&s->lock);
  while (must_wait(s, event)) pthread_cond_wait(&s->taken, &s->lock);
  if (event->kind == TD_EVENT_CELL_FINISHED) *(event->level ? &s->aside : &s->running) = false;
  if (w && replaces_last(s, event)) {
    td_waiting *last = s->last_event;
    take_out(s, last);
    td_memory_free(last);
  }
  if (w) {
    append(s, w);
    wake_poll(s);
  }
  pthread_cond_broadcast(&s->arrived);
  pthread_mutex_unlock(&s->lock);
}

struct timespec td_session_deadline(int milliseconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += milliseconds / 1000;
  t.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000;
  }
  return t;
}

static void drain_pipe(td_session *s) {
  char byte;
  if (s->signalled && read(s->pipe[0], &byte, 1) == 1) s->signalled = false;
}

bool td_session_next(td_session *s, td_event *event, int timeout) {
  struct timespec until = td_session_deadline(timeout < 0 ? 0 : timeout);
  release(td_session_take_payload(s));
  pthread_mutex_lock(&s->lock);
  if (s->current && s->current->bytes <= SMALL_BYTES) {
    s->current->next = s->spent;
    s->spent = s->current;
  } else {
    td_memory_free(s->current);
  }
  s->current = NULL;
  while (!s->first_event) {
    int code =
        timeout < 0 ? pthread_cond_wait(&s->arrived, &s->lock) : pthread_cond_timedwait(&s->arrived, &s->lock, &until);
    if (code == ETIMEDOUT && !s->first_event) break;
  }
  td_waiting *w = s->first_event;
  if (w) {
    take_out(s, w);
    s->current = w;
    *event = w->event;
    pthread_cond_signal(&s->taken);
  }
  if (!s->first_event) drain_pipe(s);
  pthread_mutex_unlock(&s->lock);
  return w != NULL;
}

td_payload *td_session_take_payload(td_session *s) { // the current event is the face's
  td_payload *payload = s->current ? s->current->event.payload : NULL;
  if (payload) s->current->event.payload = NULL;
  return payload;
}

size_t td_session_drop_output(td_session *s) {
  size_t dropped = 0;
  pthread_mutex_lock(&s->lock);
  for (td_waiting *w = s->first_event, *next; w; w = next) {
    next = w->next;
    if (w->event.kind != TD_EVENT_OUTPUT) continue;
    dropped += w->event.length;
    take_out(s, w);
    td_memory_free(w);
  }
  pthread_cond_signal(&s->taken);
  pthread_mutex_unlock(&s->lock);
  return dropped;
}

int td_session_descriptor(const td_session *s) { return s->pipe[0]; }

// ---- the evaluator's thread ----

void td_session_free_command(td_session_command *c) {
  td_memory_free(c->name);
  td_memory_free(c->folder);
  td_memory_free(c->text);
  td_memory_free(c);
}

// The builtin list In holds the text of every numbered cell, by number.
static void note_cell(td_interpreter *I, const char *text, size_t length, int32_t number) {
  td_str *name = td_str_intern(I, "In", 2);
  td_value cells = name ? td_builtin_find(I, name) : TD_NIL;
  if (name) td_unref(td_from(name));
  if (td_is_nil(cells)) {
    td_clear_raised(I);
    cells = td_from(td_list_new(I, 16));
    if (td_is_nil(cells) || !td_builtin_define(I, "In", td_ref(cells))) return;
  }
  td_list *list = td_as_list(cells);
  td_value cell = td_from(td_str_new(I, text, length)), empty = td_from(td_str_new(I, "", 0));
  while (list->count < number && !td_is_nil(empty) && td_list_append(I, list, empty)) continue;
  if (!td_is_nil(cell)) td_list_append(I, list, cell);
  td_unref(cell);
  td_unref(empty);
  td_unref(cells);
}

void td_session_run_cell(td_session *s, const td_session_command *c) {
  note_cell(s->interpreter, c->text, c->length, c->options.cell);
  td_run(s->interpreter, s->interpreter->main, c->text, c->length, &c->options);
}

static void run_command(td_session *s, td_session_command *c) {
  td_turn_take(&s->interpreter->turn->main);
  if (c->question) c->question(s->interpreter, c->argument);
  else td_session_run_cell(s, c);
  td_turn_give(&s->interpreter->turn->main);
}

// Tells the face what is wanted and waits for its reply.
static char *await_reply(td_interpreter *I, const td_event *event) {
  td_session *s = I->sink->owner;
  pthread_mutex_lock(&s->lock);
  s->line_state = TD_INPUT_ASKED;
  pthread_mutex_unlock(&s->lock);
  td_session_emit(s, event);
  td_evaluator *e = I->turn->holder;
  td_context *context = I->context;
  td_turn_give(e);
  pthread_mutex_lock(&s->lock);
  while (s->line_state == TD_INPUT_ASKED && !s->closing && !atomic_load(&context->interrupt)) {
    struct timespec until = td_session_deadline(TD_LOOK_MILLISECONDS);
    pthread_cond_timedwait(&s->arrived, &s->lock, &until);
  }
  char *line = s->line;
  s->line = NULL;
  s->line_state = TD_NO_INPUT;
  pthread_mutex_unlock(&s->lock);
  td_turn_take(e);
  if (!td_interrupted(I)) return line;
  td_memory_free(line);
  return NULL;
}

static char *ask_line(td_interpreter *I, const char *prompt) { // td_interpreter.read_line
  td_event event = {.kind = TD_EVENT_INPUT, .cell = I->cell, .text = prompt, .length = strlen(prompt)};
  return await_reply(I, &event);
}

static bool lend_terminal(td_interpreter *I, bool lend) { // td_interpreter.lend_terminal
  td_event event = {.kind = TD_EVENT_TERMINAL, .cell = I->cell, .final = !lend};
  if (!lend) return td_session_emit(I->sink->owner, &event), false;
  char *reply = await_reply(I, &event);
  td_memory_free(reply);
  return reply;
}

void td_session_lend_terminal(td_session *s) { s->interpreter->lend_terminal = lend_terminal; }

bool td_session_reply(td_session *s, const char *line) {
  char *copy = line ? td_memory_text(line) : NULL;
  bool ok = copy || !line;
  pthread_mutex_lock(&s->lock);
  if (s->line_state == TD_INPUT_ASKED) {
    s->line_state = TD_INPUT_REPLIED;
    s->line = copy;
    copy = NULL;
  }
  pthread_cond_broadcast(&s->arrived);
  pthread_mutex_unlock(&s->lock);
  td_memory_free(copy);
  return ok;
}

static bool start_interpreter(td_session *s) {
  s->interpreter = td_interpreter_new(0);
  if (!s->interpreter) return false;
  s->context = s->interpreter->context;
  s->interpreter->sink = &s->sink;
  s->interpreter->library = td_library_decks;
  s->interpreter->command = td_command_run;
  s->interpreter->read_line = ask_line;
  s->interpreter->boundary = td_session_boundary;
  return td_pictures_register(s->interpreter) && td_turn_open(s->interpreter);
}

td_session *td_session_of(const td_interpreter *I) {
  return I->boundary == td_session_boundary && I->sink ? I->sink->owner : NULL;
}

static td_session_command *next_command(td_session *s) { // the lock is held; NULL: the session ends
  while (!s->first_command && !s->closing) pthread_cond_wait(&s->commanded, &s->lock);
  if (s->closing) return NULL;
  td_session_command *c = s->first_command;
  s->first_command = c->next;
  if (!c->next) s->last_command = NULL;
  s->running = true;
  td_session_begin_run(s);
  return c;
}

static void run_commands(td_session *s) { // the lock is held
  for (td_session_command *c; (c = next_command(s));) {
    pthread_mutex_unlock(&s->lock);
    run_command(s, c);
    pthread_mutex_lock(&s->lock);
    s->running = false;
    td_session_begin_run(s);
    if (c->answered) *c->answered = true;
    pthread_cond_broadcast(&s->arrived);
    td_session_free_command(c);
  }
}

static void end_interpreter(td_session *s, td_interpreter *I) {
  td_session_end_guest(s);
  if (I->turn) td_turn_take(&I->turn->main);
  I->sink = NULL;
  td_interpreter_free(I);
}

static void *evaluator(void *argument) {
  td_session *s = argument;
  bool ready = start_interpreter(s);
  if (ready) td_turn_give(&s->interpreter->turn->main);
  pthread_mutex_lock(&s->lock);
  s->started = true;
  s->closing = s->closing || !ready;
  pthread_cond_broadcast(&s->arrived);
  run_commands(s);
  td_interpreter *interpreter = s->interpreter;
  s->interpreter = NULL; // no interrupt reaches it while it is freed
  pthread_mutex_unlock(&s->lock);
  if (interpreter) end_interpreter(s, interpreter);
  pthread_mutex_lock(&s->lock);
  s->ended = true;
  pthread_cond_broadcast(&s->arrived);
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

// ---- commands ----

static void queue_command(td_session *s, td_session_command *c) { // the lock is held
  c->aside = !c->question && (td_session_stands(s) || (c->options.at_step && s->running));
  if (c->aside) atomic_store(&s->attention, true);
  if (s->last_command) s->last_command->next = c;
  else s->first_command = c;
  s->last_command = c;
  pthread_cond_signal(&s->commanded);
}

bool td_session_run(td_session *s, const char *text, size_t length, const td_run_options *options) {
  td_session_command *c = td_memory_new_zero(sizeof *c);
  if (!c) return false;
  c->options = *options;
  c->options.name = c->name = td_memory_text(options->name ? options->name : "");
  c->options.folder = c->folder = td_memory_text(options->folder ? options->folder : "");
  c->text = td_memory_new(length + 1);
  if (!c->name || !c->folder || !c->text) {
    td_session_free_command(c);
    return false;
  }
  memcpy(c->text, text, length);
  c->text[length] = 0;
  c->length = length;
  pthread_mutex_lock(&s->lock);
  queue_command(s, c);
  pthread_mutex_unlock(&s->lock);
  return true;
}

static bool ask_between(td_session *s, td_session_question *question, void *argument) { // the lock is held
  td_session_command *c = td_memory_new_zero(sizeof *c);
  bool answered = false;
  if (!c) return false;
  c->question = question;
  c->argument = argument;
  c->answered = &answered;
  queue_command(s, c);
  while (!answered && !s->ended) pthread_cond_wait(&s->arrived, &s->lock);
  return answered;
}

bool td_session_ask(td_session *s, td_session_question *question, void *argument) {
  pthread_mutex_lock(&s->lock);
  bool busy = s->running || s->first_command;
  bool ok = !s->closing && (busy ? td_session_ask_beside : ask_between)(s, question, argument);
  pthread_mutex_unlock(&s->lock);
  return ok;
}

int td_session_queued(td_session *s) {
  int count = 0;
  pthread_mutex_lock(&s->lock);
  for (td_session_command *c = s->first_command; c; c = c->next) count += !c->question;
  pthread_mutex_unlock(&s->lock);
  return count;
}

static void tell_dropped(td_session *s, int32_t cell) { // the face itself waits for no room
  td_waiting *w = copy_event(&(td_event){.kind = TD_EVENT_CELL_DROPPED, .cell = cell});
  if (!w) return;
  append(s, w);
  wake_poll(s);
}

int td_session_drop_queued(td_session *s) {
  int count = 0;
  pthread_mutex_lock(&s->lock);
  td_session_command *first = s->first_command;
  s->first_command = s->last_command = NULL;
  for (td_session_command *next; first; first = next, count++) { // no question waits: the face would wait for it
    next = first->next;
    tell_dropped(s, first->options.cell);
    td_session_free_command(first);
  }
  pthread_mutex_unlock(&s->lock);
  return count;
}

void td_session_interrupt(td_session *s) {
  if (s->interpreter) atomic_store(&s->context->interrupt, 1);
}

void td_session_forget_interrupt(td_session *s) { atomic_store(&s->context->interrupt, 0); }

// ---- life ----

static bool start_thread(td_session *s) {
  pthread_attr_t attributes;
  sigset_t all, old;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); // signals are the face's
  bool ok = pthread_create(&s->thread, &attributes, evaluator, s) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  if (!ok) return false;
  pthread_mutex_lock(&s->lock);
  while (!s->started) pthread_cond_wait(&s->arrived, &s->lock);
  ok = !s->closing;
  pthread_mutex_unlock(&s->lock);
  return ok;
}

td_session *td_session_new(void) {
  td_session *s = td_memory_new_zero(sizeof *s);
  if (!s) return NULL;
  s->pipe[0] = s->pipe[1] = -1;
  s->sink = (td_event_sink){td_session_emit, s};
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->commanded, &monotonic);
  pthread_cond_init(&s->taken, NULL);
  pthread_cond_init(&s->arrived, &monotonic);
  pthread_cond_init(&s->inquired, NULL);
  pthread_condattr_destroy(&monotonic);
  if (pipe2(s->pipe, O_CLOEXEC) == 0 && start_thread(s)) return s;
  td_session_free(s);
  return NULL;
}

static bool is_past(const struct timespec *end) {
  struct timespec now = td_session_deadline(0);
  return now.tv_sec > end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec);
}

bool td_session_stop(td_session *s, int timeout) {
  struct timespec end = td_session_deadline(timeout);
  bool late = false;
  pthread_mutex_lock(&s->lock);
  s->closing = true;
  pthread_cond_broadcast(&s->commanded);
  pthread_cond_broadcast(&s->taken);
  while (s->started && !s->ended && !late) { // code may catch an interrupt, so there is one after the other
    td_session_interrupt(s);
    struct timespec until = td_session_deadline(TD_LOOK_MILLISECONDS);
    pthread_cond_timedwait(&s->arrived, &s->lock, &until);
    bool runs = s->interpreter != NULL; // else what it held is being freed, and that comes to an end by itself
    late = runs && timeout >= 0 && is_past(&end);
  }
  pthread_mutex_unlock(&s->lock);
  return !late;
}

void td_session_free(td_session *s) {
  if (!s) return;
  td_session_stop(s, -1);
  if (s->started) pthread_join(s->thread, NULL);
  while (s->first_command) {
    td_session_command *c = s->first_command;
    s->first_command = c->next;
    td_session_free_command(c);
  }
  td_session_free_inquiries(s);
  free_all(s->first_event);
  if (s->current) s->current->next = NULL;
  free_all(s->current);
  free_all(s->spent);
  td_memory_free(s->line);
  for (int i = 0; i < 2; i++)
    if (s->pipe[i] >= 0) close(s->pipe[i]);
  pthread_cond_destroy(&s->commanded);
  pthread_cond_destroy(&s->taken);
  pthread_cond_destroy(&s->arrived);
  pthread_cond_destroy(&s->inquired);
  pthread_mutex_destroy(&s->lock);
  td_memory_free(s);
}
