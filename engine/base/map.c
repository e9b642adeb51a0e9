// The list of mappings and the handler of SIGBUS. The handler runs on the thread that read the missing page: it puts
// zeros under the rest of the mapping and lets the read go on. Faults elsewhere go to the handler that was there
// before. Slots are claimed by their first byte's address; a slot's other members are written before it, and cleared
// after.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "engine/base/map.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAPPINGS_MAX = 1024, LOOK_EVERY = 1 << 20, RESIDENT_MAX = 24 << 20 }; // the latter two in bytes

static struct mapping {
  _Atomic(char *) data;
  size_t size;
  _Atomic(atomic_int *) interrupt;
  atomic_bool damaged;
} mappings[MAPPINGS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before;
static atomic_bool lost;
atomic_int td_map_count;
static atomic_size_t made; // bytes of blocks since the last look
static size_t resident_at_first; // of files, before the first mapping
static size_t page_size;

static bool repair(struct mapping *m, char *data, const char *address) {
  size_t from = (size_t)(address - data) & ~(page_size - 1);
  if (mmap(data + from, m->size - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  atomic_store(&m->damaged, true);
  atomic_store(&lost, true);
  atomic_int *interrupt = atomic_load(&m->interrupt);
  if (interrupt) atomic_store(interrupt, 1);
  return true;
}

static void handle(int signal_number, siginfo_t *information, void *unused) {
  (void)unused;
  const char *address = information->si_addr;
  for (struct mapping *m = mappings; m < mappings + MAPPINGS_MAX; m++) {
    char *data = atomic_load(&m->data);
    if (data && address >= data && address < data + m->size && repair(m, data, address)) return;
  }
  sigaction(signal_number, &before, NULL); // the same fault arises again at once, and finds the handler of before
}

static void start(void) {
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  page_size = (size_t)sysconf(_SC_PAGESIZE);
  sigaction(SIGBUS, &action, &before);
}

static size_t resident(void) { // bytes of files in this process's memory; 0: unknown
  char text[128] = "";
  long pages[3] = {0};
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0 || sscanf(text, "%ld %ld %ld", &pages[0], &pages[1], &pages[2]) != 3) return 0;
  return (size_t)pages[2] * page_size;
}

void td_map_relax_slow(size_t bytes) {
  if (atomic_fetch_add(&made, bytes) + bytes < LOOK_EVERY) return;
  atomic_store(&made, 0);
  pthread_mutex_lock(&lock);
  if (resident() > resident_at_first + RESIDENT_MAX)
    for (struct mapping *m = mappings; m < mappings + MAPPINGS_MAX; m++)
      if (atomic_load(&m->data)) madvise(atomic_load(&m->data), m->size, MADV_DONTNEED);
  pthread_mutex_unlock(&lock);
}

bool td_map_watch(char *data, size_t size, atomic_int *interrupt) {
  pthread_once(&once, start);
  pthread_mutex_lock(&lock);
  struct mapping *m = mappings;
  while (m < mappings + MAPPINGS_MAX && atomic_load(&m->data)) m++;
  bool found = m < mappings + MAPPINGS_MAX;
  if (found) {
    m->size = size;
    atomic_store(&m->interrupt, interrupt);
    atomic_store(&m->damaged, false);
    atomic_store(&m->data, data);
    if (!atomic_load(&td_map_count)) resident_at_first = resident();
    atomic_fetch_add(&td_map_count, 1);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static struct mapping *find(const char *data) {
  for (struct mapping *m = mappings; m < mappings + MAPPINGS_MAX; m++)
    if (atomic_load(&m->data) == data) return m;
  return NULL;
}

void td_map_drop(char *data, size_t size) {
  pthread_mutex_lock(&lock);
  struct mapping *m = find(data);
  if (m) {
    atomic_store(&m->data, NULL);
    atomic_fetch_sub(&td_map_count, 1);
  }
  pthread_mutex_unlock(&lock);
  munmap(data, size);
}

void td_map_forget(const atomic_int *interrupt) {
  if (!atomic_load(&td_map_count)) return;
  pthread_mutex_lock(&lock);
  for (struct mapping *m = mappings; m < mappings + MAPPINGS_MAX; m++)
    if (atomic_load(&m->interrupt) == interrupt) atomic_store(&m->interrupt, NULL);
  pthread_mutex_unlock(&lock);
}

bool td_map_damaged(const char *data) {
  const struct mapping *m = find(data);
  return m && atomic_load(&m->damaged);
}

bool td_map_lost(void) { return atomic_exchange(&lost, false); }
