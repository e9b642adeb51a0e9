// Threads of the language take turns, as CPython's do: one heap of values, one lock. Whoever has the turn owns the
// interpreter and all values; its registers (frame, stack, context, exception in flight) are loaded into
// td_interpreter, so that the code that evaluates knows nothing of threads.
//  1. A thread gives the turn back inside long kernels and file reads (td_context.leave), in sleep, and while it
//     waits for a queue. Nothing shared is touched there.
//  2. Who waits loses patience after a while and raises td_context.wanted, which running code looks at where
//     it looks for Ctrl-C, between statements; then the turn is handed over. A worker's patience is longer: nobody
//     waits for it.
//  3. As long as no second thread takes turns nothing is locked, and the main thread leaves nothing.
//  4. Blocks of memory come from one cache that goes with the turn: a worker's tensors are freed by the main thread.
#include "repl/language/turn.h"
#include "repl/language/core.h"

enum { PATIENCE = 100 * 1000, WORKER_PATIENCE = 2 * 1000 * 1000, LOOKS = 20 * 1000 * 1000 }; // nanoseconds
enum { STACK_VALUES = 1 << 16 };

static void load(td_evaluator *e) {
  td_interpreter *I = e->interpreter;
#define X(type, name) I->name = e->registers.name;
  TD_REGISTERS(X)
#undef X
  e->cache = td_memory_cache_use(I->turn->cache);
  td_containers_live_set(I->turn->live);
}

static void save(td_evaluator *e) {
  td_interpreter *I = e->interpreter;
#define X(type, name) e->registers.name = I->name;
  TD_REGISTERS(X)
#undef X
  I->turn->live = td_containers_live();
  td_memory_cache_use(e->cache);
}

static struct timespec after(int64_t nanoseconds) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  nanoseconds += at.tv_nsec;
  at.tv_sec += nanoseconds / 1000000000;
  at.tv_nsec = nanoseconds % 1000000000;
  return at;
}

static void take(td_evaluator *e) { // the lock is held
  td_turn *turn = e->interpreter->turn;
  turn->waiting++;
  int64_t patience = e->patient ? WORKER_PATIENCE : PATIENCE;
  while (turn->holder) {
    struct timespec until = after(patience);
    pthread_cond_timedwait(&turn->free, &turn->lock, &until);
    if (turn->holder) atomic_store(&turn->holder->context->wanted, 1);
    if (patience < LOOKS) patience *= 2; // it knows by now
  }
  turn->waiting--;
  turn->holder = e;
  turn->number++;
  atomic_store(&e->context->wanted, 0);
  pthread_cond_broadcast(&turn->taken);
}

static void give(td_turn *turn) { // the lock is held
  turn->holder = NULL;
  if (turn->waiting) pthread_cond_signal(&turn->free);
}

void td_turn_take(td_evaluator *e) {
  td_turn *turn = e->interpreter->turn;
  pthread_mutex_lock(&turn->lock);
  take(e);
  pthread_mutex_unlock(&turn->lock);
  load(e);
}

void td_turn_give(td_evaluator *e) {
  td_turn *turn = e->interpreter->turn;
  save(e);
  pthread_mutex_lock(&turn->lock);
  give(turn);
  pthread_mutex_unlock(&turn->lock);
}

void td_turn_yield(td_interpreter *I) {
  if (I->core->loading) return;
  td_turn *turn = I->turn;
  td_evaluator *e = turn->holder;
  pthread_mutex_lock(&turn->lock);
  if (atomic_load(&e->context->wanted) && turn->waiting) {
    save(e);
    uint64_t number = turn->number;
    give(turn);
    while (turn->number == number && turn->waiting) pthread_cond_wait(&turn->taken, &turn->lock);
    take(e);
    pthread_mutex_unlock(&turn->lock);
    load(e);
    return;
  }
  atomic_store(&e->context->wanted, 0); // whoever wanted it has had it
  pthread_mutex_unlock(&turn->lock);
}

void td_turn_await(td_interpreter *I, pthread_cond_t *changed) {
  td_turn *turn = I->turn;
  td_evaluator *e = turn->holder;
  save(e);
  pthread_mutex_lock(&turn->lock);
  give(turn);
  struct timespec until = after(LOOKS); // a signal handler raises interrupts and can't signal
  pthread_cond_timedwait(changed, &turn->lock, &until);
  take(e);
  pthread_mutex_unlock(&turn->lock);
  load(e);
}

// ---- td_context.leave and enter ----

static void leave(void *thread) {
  td_evaluator *e = thread;
  e->away = e->interpreter->turn->others > 0;
  if (e->away) td_turn_give(e);
}

static void enter(void *thread) {
  td_evaluator *e = thread;
  if (e->away) td_turn_take(e);
}

static void let_leave(td_evaluator *e) {
  e->context->enter = enter;
  e->context->thread = e;
  e->context->leave = leave;
}

void td_turn_share(td_turn *turn) {
  if (!turn->others++) let_leave(&turn->main);
}

bool td_evaluator_open(td_interpreter *I, td_evaluator *e) {
  td_context *context = td_context_beside(I->turn->main.context);
  td_value *stack = context ? td_memory_new(STACK_VALUES * sizeof *stack) : NULL;
  if (!stack) return td_context_free(context), false;
  *e = (td_evaluator){.interpreter = I, .context = context, .root = {.module = I->main, .slots = stack}};
  e->registers = (td_registers){.context = context,
                                .frame = &e->root,
                                .slots = stack,
                                .stack = stack,
                                .stack_top = stack,
                                .stack_end = stack + STACK_VALUES,
                                .depth_limit = TD_DEPTH_LIMIT,
                                .raised = TD_NIL,
                                .handling = TD_NIL};
  let_leave(e);
  return true;
}

void td_evaluator_close(td_evaluator *e) {
  td_context_free(e->context);
  td_memory_free(e->registers.stack);
}

// ---- life ----

void td_turn_make_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool td_turn_open(td_interpreter *I) {
  if (I->turn) return true;
  td_turn *turn = td_memory_new_zero(sizeof *turn);
  if (turn && !(turn->cache = td_memory_cache_new())) {
    td_memory_free(turn);
    turn = NULL;
  }
  if (!turn) return td_raise_memory(I), false;
  pthread_mutex_init(&turn->lock, NULL);
  td_turn_make_condition(&turn->free);
  td_turn_make_condition(&turn->taken);
  I->turn = turn;
  turn->holder = &turn->main;
  turn->main.cache = td_memory_cache_use(turn->cache);
  turn->main.interpreter = I;
  turn->main.context = I->context;
  return true;
}

void td_turn_close(td_interpreter *I) {
  td_turn *turn = I->turn;
  if (!turn) return;
  I->context->leave = I->context->enter = NULL;
  I->turn = NULL;
  td_memory_cache_use(turn->main.cache);
  td_memory_cache_free(turn->cache);
  pthread_mutex_destroy(&turn->lock);
  pthread_cond_destroy(&turn->free);
  pthread_cond_destroy(&turn->taken);
  td_memory_free(turn);
}
