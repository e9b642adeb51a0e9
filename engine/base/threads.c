// The pool. One run at a time: the caller publishes a job and raises the ticket, takes chunks like any worker, and
// waits until every worker that joined has left.
//  1. ticket holds the run's number; workers spin on it for as long as ops mostly are apart, then sleep on it as a
//     futex.
//  2. A worker joins by raising busy and only then looks whether the job is still open. The caller closes the job, then
//     waits for busy to be 0: after that nobody touches it, so it may live on the caller's stack.
//  3. A stopped pool leaves chunks out. The flags that stop it are cleared on the caller's thread alone, after the run:
//     once stopped, all later chunks and runs of a kernel are left out too.
//  4. Each thread has a share of neighbouring chunks, the same one in runs of the same size, so that it finds in its
//     core's cache what it wrote there; when it has done its own, it helps with the others' shares.
//  5. The system may wake a worker on the very core that the caller keeps busy, and leave it there: a worker that finds
//     itself there moves away.
//  6. A worker that starts nested work, a second caller, a forked child, and a pool whose workers can't be started run
//     their chunks in order on themselves.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "engine/base/threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/memory.h"

enum { THREADS_MAX = 256, SPIN_NANOSECONDS = 50000, SPIN_STEPS = 64 };

typedef struct job {
  td_pool *pool;
  td_chunk *work;
  void *argument;
  int shares;
} job;

typedef struct seat { // of a thread; the caller has the first
  _Alignas(64) _Atomic int64_t next; // chunk of its share
  int64_t end;
  td_pool *pool;
  pthread_t thread;
} seat;

struct td_pool {
  int threads, started; // started: workers that run
  unsigned family; // forks before they started
  atomic_bool stop; // set while no run is going on; a worker that is late for the last one may see it then
  const atomic_int *interrupt; // NULL: nobody stops runs
  const atomic_bool *breakable;
  atomic_flag taken; // a run is going on
  _Alignas(64) atomic_uint ticket;
  atomic_int core; // where the caller raised it
  atomic_int sleepers;
  _Atomic(job *) open; // NULL: no job to join
  _Alignas(64) atomic_int busy;
  seat seats[]; // threads
};

static _Thread_local bool inside; // this thread runs chunks now
static atomic_uint forks; // raised in every forked child, where no worker lives
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_fork(void) { atomic_fetch_add(&forks, 1); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }
static bool forked(const td_pool *pool) { return pool->family != atomic_load_explicit(&forks, memory_order_relaxed); }

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool td_pool_stopped(const td_pool *pool) {
  return pool && pool->interrupt && atomic_load_explicit(pool->interrupt, memory_order_relaxed) &&
         atomic_load_explicit(pool->breakable, memory_order_relaxed);
}

static bool run_share(const job *j, seat *s) { // false: the pool is stopped
  for (;;) {
    int64_t chunk = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
    if (chunk >= s->end) return true;
    if (td_pool_stopped(j->pool)) return false;
    j->work(j->argument, chunk);
  }
}

static void run_chunks(const job *j, int own) {
  for (int k = 0; k < j->shares; k++)
    if (!run_share(j, &j->pool->seats[(own + k) % j->shares])) return;
}

static void cut_shares(const job *j, int64_t chunks) {
  int64_t each = chunks / j->shares, more = chunks % j->shares, begin = 0;
  for (int k = 0; k < j->shares; k++) {
    seat *s = &j->pool->seats[k];
    atomic_store_explicit(&s->next, begin, memory_order_relaxed);
    s->end = begin += each + (k < more);
  }
}

static void run_serial(const td_pool *pool, int64_t chunks, td_chunk *work, void *argument) {
  for (int64_t c = 0; c < chunks && !td_pool_stopped(pool); c++) work(argument, c);
}

// ---- workers ----

static unsigned wait_ticket(td_pool *pool, unsigned seen) {
  int64_t until = 0;
  for (;;) {
    for (int i = 0; i < SPIN_STEPS; i++) {
      unsigned ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
      if (ticket != seen) return ticket;
      relax();
    }
    int64_t now = nanoseconds();
    if (!until) until = now + SPIN_NANOSECONDS;
    if (now > until) break;
  }
  atomic_fetch_add(&pool->sleepers, 1);
  unsigned ticket;
  while ((ticket = atomic_load(&pool->ticket)) == seen)
    syscall(SYS_futex, &pool->ticket, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
  atomic_fetch_sub(&pool->sleepers, 1);
  return ticket;
}

static void leave_core(int core) { // for any other that this process may use
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all)) return;
  others = all;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others)) sched_setaffinity(0, sizeof all, &all);
}

static void *worker(void *argument) {
  seat *own = argument;
  td_pool *pool = own->pool;
  unsigned seen = 0;
  inside = true;
  for (;;) {
    seen = wait_ticket(pool, seen);
    if (atomic_load_explicit(&pool->stop, memory_order_relaxed)) return NULL;
    int core = sched_getcpu();
    if (core >= 0 && core == atomic_load_explicit(&pool->core, memory_order_relaxed)) leave_core(core);
    atomic_fetch_add(&pool->busy, 1);
    job *j = atomic_load(&pool->open);
    if (j) run_chunks(j, (int)(own - pool->seats));
    atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_release);
  }
}

static void raise_ticket(td_pool *pool) {
  atomic_store_explicit(&pool->core, sched_getcpu(), memory_order_relaxed);
  atomic_fetch_add(&pool->ticket, 1);
  if (atomic_load(&pool->sleepers)) syscall(SYS_futex, &pool->ticket, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void start_workers(td_pool *pool) { // with all signals blocked, so that the caller's thread gets them
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  pthread_once(&once, watch_forks);
  pool->family = atomic_load(&forks);
  while (pool->started < pool->threads - 1) {
    seat *s = &pool->seats[pool->started + 1];
    s->pool = pool;
    if (pthread_create(&s->thread, NULL, worker, s)) break;
    pool->started++;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (!pool->started) pool->threads = 1; // the system gives no thread: serial from now on
}

// ---- the pool ----

td_pool *td_pool_new(int threads) {
  threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
  size_t bytes = sizeof(td_pool) + (size_t)threads * sizeof(seat);
  td_pool *pool = td_memory_new_zero(bytes < 1024 ? 1024 : bytes); // from 1 KiB up blocks start at a cache line
  if (!pool) return NULL;
  pool->threads = threads;
  atomic_flag_clear(&pool->taken);
  return pool;
}

void td_pool_free(td_pool *pool) {
  if (!pool) return;
  if (pool->started && !forked(pool)) {
    atomic_store(&pool->stop, true);
    raise_ticket(pool);
    for (int i = 1; i <= pool->started; i++) pthread_join(pool->seats[i].thread, NULL);
  }
  td_memory_free(pool);
}

int td_pool_threads(const td_pool *pool) { return pool->threads; }

void td_pool_watch(td_pool *pool, const atomic_int *interrupt, const atomic_bool *breakable) {
  pool->interrupt = interrupt;
  pool->breakable = breakable;
}

static bool may_share(td_pool *pool) {
  if (inside || pool->threads == 1 || atomic_flag_test_and_set_explicit(&pool->taken, memory_order_acquire))
    return false;
  if (!pool->started) start_workers(pool);
  if (pool->started && !forked(pool)) return true;
  atomic_flag_clear_explicit(&pool->taken, memory_order_release);
  return false;
}

void td_pool_run(td_pool *pool, int64_t chunks, td_chunk *work, void *argument) {
  if (chunks <= 1 || !may_share(pool)) {
    run_serial(pool, chunks, work, argument);
    return;
  }
  job j = {pool, work, argument, (int)(chunks < pool->threads ? chunks : pool->threads)};
  cut_shares(&j, chunks);
  atomic_store(&pool->open, &j);
  raise_ticket(pool);
  inside = true;
  run_chunks(&j, 0);
  inside = false;
  atomic_store(&pool->open, NULL);
  for (int spins = 0; atomic_load(&pool->busy); spins++) {
    if (spins % 1024 < 1000) relax();
    else sched_yield();
  }
  atomic_flag_clear_explicit(&pool->taken, memory_order_release);
}

int td_threads_wanted(void) {
  const char *text = getenv("TAPEDECK_THREADS");
  if (text && *text) {
    char *end;
    long wanted = strtol(text, &end, 10);
    if (!*end && wanted >= 1 && wanted <= THREADS_MAX) return (int)wanted;
  }
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : count;
}
