// A run is owned by both sides: by the caller until it leaves, then by the thread. Which of them was first, done or
// left, is decided under the lock. Where exit() can't be told to leave the rest out, nobody is left behind: a library's
// own end would take away what its routine works with.
#include "engine/base/detached.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/memory.h"

enum {
  LEFT_MOST = 4,
  LOOKS_EACH = 10000000, // nanoseconds
};

typedef struct run {
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool done, left;
  void (*work)(void *block);
  void *block;
} run;

static atomic_int left_count;

int td_detached_left(void) { return atomic_load(&left_count); }

#ifdef __GLIBC__
// Runs after all other handlers, since it was the first to be registered.
static void end_at_once(int status, void *argument) {
  (void)argument;
  if (!td_detached_left()) return;
  fflush(NULL);
  _exit(status);
}

__attribute__((constructor)) static void watch_exit(void) { on_exit(end_at_once, NULL); }

static bool may_leave(void) {
  int count = atomic_load(&left_count);
  while (count < LEFT_MOST)
    if (atomic_compare_exchange_weak(&left_count, &count, count + 1)) return true;
  return false;
}
#else
static bool may_leave(void) { return false; }
#endif

static run *run_new(void (*work)(void *block), void *block) {
  run *r = td_memory_new(sizeof *r);
  if (!r) return NULL;
  *r = (run){.work = work, .block = block};
  pthread_condattr_t monotonic;
  pthread_mutex_init(&r->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&r->ended, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return r;
}

static void run_free(run *r) {
  pthread_mutex_destroy(&r->lock);
  pthread_cond_destroy(&r->ended);
  td_memory_free(r);
}

static void *run_work(void *argument) {
  run *r = argument;
  r->work(r->block);
  pthread_mutex_lock(&r->lock);
  bool left = r->left;
  r->done = true;
  pthread_cond_signal(&r->ended);
  pthread_mutex_unlock(&r->lock);
  if (!left) return NULL;
  td_memory_free(r->block);
  run_free(r);
  atomic_fetch_sub(&left_count, 1);
  return NULL;
}

static bool run_start(run *r, pthread_t *thread) { // signals are the other threads'
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(thread, NULL, run_work, r);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code == 0;
}

static void wait_a_little(run *r) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += LOOKS_EACH;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_cond_timedwait(&r->ended, &r->lock, &until);
}

bool td_detached_run(const td_pool *pool, void (*work)(void *block), void *block) {
  pthread_t thread;
  run *r = run_new(work, block);
  if (!r || !run_start(r, &thread)) {
    if (r) run_free(r);
    work(block);
    return true;
  }
  pthread_mutex_lock(&r->lock);
  while (!r->done && !r->left) {
    if (td_pool_stopped(pool) && may_leave()) r->left = true;
    else wait_a_little(r);
  }
  bool done = r->done;
  if (!done) pthread_detach(thread);
  pthread_mutex_unlock(&r->lock);
  if (!done) return false;
  pthread_join(thread, NULL);
  run_free(r);
  return true;
}
