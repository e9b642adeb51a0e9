// The allocator. Every block has a 16-byte header before it: size asked for, size class, distance to the start of the
// system's block, guard. Classes are 16 bytes apart up to 512, then four to a doubling.
//  1. Up to 512 bytes blocks are cut from chunks that live as long as the process; freed ones wait in their thread's
//     own list of the class, without lock or limit, so that a tape of a million records is built and dropped at full
//     speed.
//  2. Up to 64 KiB a freed block goes to such a list too, at most 256 KiB a class.
//  3. Larger freed blocks go to one locked pool; past its limit the block that waited longest goes back to the system.
//  4. Counters belong to threads and are summed on demand; a thread that ends folds its counters in, empties its
//     lists and leaves its small blocks to the others.
// Sanitized and harsh builds give every block straight back, so that tools see the real lifetimes; harsh builds also
// fill new and freed blocks with 0xff (NaN in every float dtype) and check guards.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "engine/base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TD_HARSH)
enum { CACHED = 0 };
#else
enum { CACHED = 1 };
#endif

enum {
  FINE_MAX = 512, // classes are 16 bytes apart up to here
  FINE_CLASSES = FINE_MAX / 16,
  CLASS_ALIGNED = FINE_CLASSES + 3, // class of 1 KiB: the first with 64-byte alignment
  OWN_CLASSES = FINE_CLASSES + 4 * 7, // classes up to 64 KiB live in per-thread lists
  CLASSES = FINE_CLASSES + 4 * 53, // up to 2^62 bytes
  OWN_BYTES = 256 << 10,
  CHUNK_BYTES = 64 << 10,
  GUARD_LIVE = 0x7ade0dec,
  GUARD_FREE = 0x5dead0ff,
};
static const size_t HUGE_PAGE = (size_t)2 << 20, LARGE = (size_t)32 << 20, PREFIX = 64;
static const size_t BYTES_MAX = (size_t)1 << 61;

typedef struct header {
  size_t size; // bytes asked for
  uint16_t class_;
  uint16_t offset; // from the start of the system's block to the user's
  uint32_t guard;
} header;

typedef struct list { // freed blocks of a class; the link is in the block's first bytes
  void *head;
  int32_t count, limit; // of classes that aren't cut from chunks
} list;

typedef struct thread_cache {
  list lists[OWN_CLASSES];
  char *chunk; // what is left of the newest chunk
  size_t chunk_left;
  _Atomic int64_t live, count; // written by the owner alone
  struct thread_cache *next, **link;
} thread_cache;

typedef struct pooled { // a large freed block, linked in its class (newest first) and by age
  struct pooled *class_next, *class_previous, *older, *newer;
} pooled;

static struct {
  pthread_mutex_t lock;
  thread_cache *threads;
  int64_t live, count; // of threads that ended
  void *chunks;              // all of them, linked through their first bytes
  void *fine[FINE_CLASSES];  // freed small blocks of threads that ended
  pooled *classes[CLASSES], *oldest, *newest;
  size_t pool_bytes;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic int64_t orphan_live, peak, failed_bytes, fail_left;
static atomic_bool fail_forever;
static _Thread_local thread_cache *mine __attribute__((tls_model("initial-exec")));
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static size_t machine_bytes; // the most that this process can hold

// ---- size classes ----

static inline unsigned class_find(size_t bytes) {
  if (bytes <= FINE_MAX) return bytes ? (unsigned)((bytes - 1) >> 4) : 0;
  unsigned exponent = 63 - (unsigned)__builtin_clzll(bytes - 1);
  return FINE_CLASSES + (exponent - 9) * 4 + ((bytes - 1) >> (exponent - 2) & 3);
}

static size_t class_size(unsigned class_) {
  if (class_ < FINE_CLASSES) return (class_ + 1) * (size_t)16;
  unsigned exponent = (class_ - FINE_CLASSES) / 4 + 9, quarter = (class_ - FINE_CLASSES) % 4;
  return ((size_t)4 + quarter + 1) << (exponent - 2);
}

static inline void *list_take(list *l) { // NULL: it is empty
  void *block = l->head;
  if (block) l->head = *(void **)block;
  return block;
}

static inline void list_put(list *l, void *block) {
  *(void **)block = l->head;
  l->head = block;
}

static inline header *header_of(const void *block) { return (header *)block - 1; }

// ---- what the machine has ----

static size_t cgroup_limit(const char *path) {
  char line[64] = "";
  FILE *file = fopen(path, "re");
  if (!file) return SIZE_MAX;
  const char *got = fgets(line, sizeof line, file);
  fclose(file);
  char *end = line;
  unsigned long long bytes = got ? strtoull(line, &end, 10) : 0;
  return end == line ? SIZE_MAX : (size_t)bytes; // "max" has no digits
}

static size_t own_cgroup_limit(void) { // version 2: the tightest limit from this process's group up to the root
  char line[512], path[640];
  size_t limit = SIZE_MAX;
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (!file) return limit;
  bool found = false;
  while (!found && fgets(line, sizeof line, file)) found = !strncmp(line, "0::/", 4);
  fclose(file);
  if (!found) return limit;
  line[strcspn(line, "\n")] = 0;
  for (char *group = line + 3, *slash; (slash = strrchr(group, '/')); *slash = 0) {
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
    size_t own = cgroup_limit(path);
    if (own < limit) limit = own;
  }
  return limit;
}

static size_t machine_find(void) {
  struct sysinfo info;
  if (sysinfo(&info)) return SIZE_MAX;
  size_t bytes = ((size_t)info.totalram + info.totalswap) * info.mem_unit;
  const size_t limits[] = {cgroup_limit("/sys/fs/cgroup/memory.max"), own_cgroup_limit(),
                           cgroup_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes")};
  for (int i = 0; i < 3; i++)
    if (limits[i] < bytes) bytes = limits[i];
  return bytes;
}

static size_t pool_limit(void) {
  size_t quarter = machine_bytes / 4, least = (size_t)256 << 20;
  return quarter > least ? quarter : least;
}

// ---- blocks of the system ----

static size_t mapped_size(unsigned class_) { return (class_size(class_) + PREFIX + 4095) & ~(size_t)4095; }
static bool is_mapped(unsigned class_) { return CACHED && class_size(class_) >= HUGE_PAGE; }

static char *map_block(size_t size) { // aligned to huge pages, all zero
  char *raw = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return NULL;
  size_t before = -(uintptr_t)raw & (HUGE_PAGE - 1);
  if (before) munmap(raw, before);
  munmap(raw + before + size, HUGE_PAGE - before);
  madvise(raw + before, size, MADV_HUGEPAGE);
  return raw + before;
}

static void *system_new(size_t bytes, unsigned class_) {
  size_t capacity = CACHED ? class_size(class_) : bytes;
  bool aligned = class_ >= CLASS_ALIGNED;
  char *raw =
      is_mapped(class_) ? map_block(mapped_size(class_)) : malloc(capacity + (aligned ? PREFIX : sizeof(header)));
  if (!raw) return NULL;
  char *block = raw + sizeof(header);
  if (is_mapped(class_)) block = raw + PREFIX;
  else if (aligned) block += -(uintptr_t)block & (PREFIX - 1);
  *header_of(block) = (header){bytes, (uint16_t)class_, (uint16_t)(block - raw), GUARD_FREE};
  return block;
}

static void system_free(void *block) {
  header *h = header_of(block);
  char *raw = (char *)block - h->offset;
  if (is_mapped(h->class_)) munmap(raw, mapped_size(h->class_));
  else free(raw);
}

// ---- small blocks, cut from chunks ----

static bool is_cut(unsigned class_) { return CACHED && class_ < FINE_CLASSES; }

static bool chunk_start(thread_cache *cache) {
  char *chunk = malloc(CHUNK_BYTES);
  if (!chunk) return false;
  pthread_mutex_lock(&shared.lock);
  *(void **)chunk = shared.chunks;
  shared.chunks = chunk;
  pthread_mutex_unlock(&shared.lock);
  cache->chunk = chunk + PREFIX;
  cache->chunk_left = CHUNK_BYTES - PREFIX;
  return true;
}

static void *cut(thread_cache *cache, size_t bytes, unsigned class_) {
  size_t size = class_size(class_) + sizeof(header);
  if (cache->chunk_left < size && !chunk_start(cache)) return NULL;
  char *block = cache->chunk + sizeof(header);
  *header_of(block) = (header){bytes, (uint16_t)class_, 0, GUARD_FREE};
  cache->chunk += size;
  cache->chunk_left -= size;
  return block;
}

// A small block when the thread's list is empty: from those that ended threads left, else a fresh one.
static void *fine_new(thread_cache *cache, size_t bytes, unsigned class_) {
  void *left = NULL;
  if (__atomic_load_n(&shared.fine[class_], __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&shared.lock);
    left = shared.fine[class_];
    __atomic_store_n(&shared.fine[class_], NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&shared.lock);
  }
  if (!left) return cut(cache, bytes, class_);
  cache->lists[class_].head = *(void **)left;
  return left;
}

static void fine_leave(thread_cache *cache) { // the lock is held
  for (unsigned i = 0; CACHED && i < FINE_CLASSES; i++) {
    void **end = &cache->lists[i].head;
    while (*end) end = *end;
    *end = shared.fine[i];
    __atomic_store_n(&shared.fine[i], cache->lists[i].head, __ATOMIC_RELAXED);
  }
}

// ---- the pool of large blocks; the lock is held ----

static void pool_remove(pooled *block) {
  unsigned class_ = header_of(block)->class_;
  if (block->class_previous) block->class_previous->class_next = block->class_next;
  else shared.classes[class_] = block->class_next;
  if (block->class_next) block->class_next->class_previous = block->class_previous;
  if (block->older) block->older->newer = block->newer;
  else shared.oldest = block->newer;
  if (block->newer) block->newer->older = block->older;
  else shared.newest = block->older;
  shared.pool_bytes -= class_size(class_);
}

static void pool_add(pooled *block) {
  unsigned class_ = header_of(block)->class_;
  *block = (pooled){.class_next = shared.classes[class_], .older = shared.newest};
  if (block->class_next) block->class_next->class_previous = block;
  if (block->older) block->older->newer = block;
  else shared.oldest = block;
  shared.classes[class_] = shared.newest = block;
  shared.pool_bytes += class_size(class_);
}

static void pool_shrink(size_t limit) {
  while (shared.pool_bytes > limit && shared.oldest) {
    pooled *block = shared.oldest;
    pool_remove(block);
    system_free(block);
  }
}

static void *pool_take(unsigned class_) {
  pthread_mutex_lock(&shared.lock);
  pooled *block = shared.classes[class_];
  if (block) pool_remove(block);
  pthread_mutex_unlock(&shared.lock);
  return block;
}

static void pool_give(void *block) {
  pthread_mutex_lock(&shared.lock);
  pool_add(block);
  pool_shrink(pool_limit());
  pthread_mutex_unlock(&shared.lock);
}

// ---- threads ----

static void lists_empty(thread_cache *cache) {
  for (unsigned i = 0; i < OWN_CLASSES; i++) {
    list *l = &cache->lists[i];
    while (l->head && !is_cut(i)) {
      void *block = l->head;
      l->head = *(void **)block;
      system_free(block);
    }
    l->count = 0;
  }
}

static void cache_end(thread_cache *cache) {
  lists_empty(cache);
  pthread_mutex_lock(&shared.lock);
  fine_leave(cache);
  *cache->link = cache->next;
  if (cache->next) cache->next->link = cache->link;
  shared.live += atomic_load_explicit(&cache->live, memory_order_relaxed);
  shared.count += atomic_load_explicit(&cache->count, memory_order_relaxed);
  pthread_mutex_unlock(&shared.lock);
  free(cache);
}

static void thread_end(void *argument) {
  mine = NULL;
  cache_end(argument);
}

static void start(void) {
  pthread_key_create(&thread_key, thread_end);
  machine_bytes = machine_find();
}

static thread_cache *cache_start(void) {
  thread_cache *cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  for (unsigned i = 0; CACHED && i < OWN_CLASSES; i++)
    cache->lists[i].limit = (int32_t)(OWN_BYTES / class_size(i));
  pthread_mutex_lock(&shared.lock);
  cache->link = &shared.threads;
  cache->next = shared.threads;
  if (cache->next) cache->next->link = &cache->next;
  shared.threads = cache;
  pthread_mutex_unlock(&shared.lock);
  return cache;
}

static thread_cache *thread_start(void) {
  pthread_once(&once, start);
  thread_cache *cache = pthread_getspecific(thread_key);
  if (!cache && (cache = cache_start())) pthread_setspecific(thread_key, cache);
  return mine = cache;
}

td_memory_cache *td_memory_cache_new(void) { return (td_memory_cache *)cache_start(); }

void td_memory_cache_free(td_memory_cache *cache) {
  if (cache) cache_end((thread_cache *)cache);
}

td_memory_cache *td_memory_cache_use(td_memory_cache *cache) {
  thread_cache *before = mine;
  mine = (thread_cache *)cache;
  return (td_memory_cache *)before;
}

static inline void counter_add(_Atomic int64_t *counter, int64_t n) { // the owner is the only writer
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

// ---- allocation ----

static bool injected(void) { // is this allocation the one that shall fail?
  int64_t left = atomic_load(&fail_left), next;
  do {
    if (!left) return false;
    next = left > 1 ? left - 1 : atomic_load(&fail_forever);
  } while (!atomic_compare_exchange_weak(&fail_left, &left, next));
  return left == 1;
}

static void *refuse(size_t bytes) {
  atomic_store(&failed_bytes, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
  return NULL;
}

static bool fits_machine(size_t bytes) {
  int64_t live = td_memory_live();
  size_t used = live > 0 ? (size_t)live : 0;
  if (used > machine_bytes || bytes > machine_bytes - used) return false;
  size_t spare = machine_bytes - used - bytes;
  pthread_mutex_lock(&shared.lock);
  pool_shrink(spare);
  pthread_mutex_unlock(&shared.lock);
  return true;
}

static void *system_new_patient(thread_cache *cache, size_t bytes, unsigned class_) {
  void *block = is_cut(class_) ? fine_new(cache, bytes, class_) : system_new(bytes, class_);
  if (block) return block;
  lists_empty(cache);
  pthread_mutex_lock(&shared.lock);
  pool_shrink(0);
  pthread_mutex_unlock(&shared.lock);
  return is_cut(class_) ? fine_new(cache, bytes, class_) : system_new(bytes, class_);
}

static void block_mark(thread_cache *cache, void *block, size_t bytes) {
  header *h = header_of(block);
#ifdef TD_HARSH
  assert(h->guard == GUARD_FREE);
#endif
  h->size = bytes;
  h->guard = GUARD_LIVE;
  counter_add(&cache->live, (int64_t)bytes);
  counter_add(&cache->count, 1);
}

// Any allocation that the thread's lists could not serve. *zero: the block is known to hold zeros.
static __attribute__((noinline)) void *new_slowly(size_t bytes, bool *zero) {
  thread_cache *cache = mine ? mine : thread_start();
  if (!cache || bytes > BYTES_MAX || injected()) return refuse(bytes);
  unsigned class_ = class_find(bytes);
  void *block = NULL;
  if (class_ < OWN_CLASSES) {
    list *l = &cache->lists[class_];
    block = list_take(l);
    if (block && !is_cut(class_)) l->count--;
  } else if (CACHED) {
    block = pool_take(class_);
  }
  if (!block && bytes >= LARGE && !fits_machine(bytes)) return refuse(bytes);
  if (!block) {
    block = system_new_patient(cache, bytes, class_);
    *zero = block && is_mapped(class_);
  }
  if (!block) return refuse(bytes);
  block_mark(cache, block, bytes);
#ifdef TD_HARSH
  memset(block, 0xff, bytes);
#endif
  if (bytes >= OWN_BYTES) td_memory_live();
  return block;
}

void *td_memory_new(size_t bytes) {
  thread_cache *cache = mine;
  if (CACHED &&
      __builtin_expect(cache && bytes <= FINE_MAX && !atomic_load_explicit(&fail_left, memory_order_relaxed), 1)) {
    void *block = list_take(&cache->lists[class_find(bytes)]);
    if (__builtin_expect(block != NULL, 1)) {
      block_mark(cache, block, bytes);
      return block;
    }
  }
  bool zero = false;
  return new_slowly(bytes, &zero);
}

void *td_memory_new_zero(size_t bytes) {
  bool zero = false;
  void *block = bytes <= FINE_MAX ? td_memory_new(bytes) : new_slowly(bytes, &zero);
  if (block && !zero) memset(block, 0, bytes);
  return block;
}

static void give_back(void *block, unsigned class_) {
  if (CACHED && class_ >= OWN_CLASSES) pool_give(block);
  else system_free(block);
}

void td_memory_free(void *block) {
  if (!block) return;
  header *h = header_of(block);
  unsigned class_ = h->class_;
#ifdef TD_HARSH
  assert(h->guard == GUARD_LIVE);
  memset(block, 0xff, h->size);
#endif
  h->guard = GUARD_FREE;
  thread_cache *cache = mine ? mine : thread_start();
  if (!cache) {
    atomic_fetch_sub(&orphan_live, (int64_t)h->size);
    if (!is_cut(class_)) system_free(block);
    return;
  }
  counter_add(&cache->live, -(int64_t)h->size);
  list *l = class_ < OWN_CLASSES ? &cache->lists[class_] : NULL;
  if (__builtin_expect(is_cut(class_), 1)) {
    list_put(l, block);
  } else if (l && l->count < l->limit) {
    list_put(l, block);
    l->count++;
  } else {
    give_back(block, class_);
  }
}

void *td_memory_resize(void *block, size_t bytes) {
  if (!block) return td_memory_new(bytes);
  header *h = header_of(block);
  if (CACHED && bytes <= BYTES_MAX && class_find(bytes) == h->class_ && mine) {
    counter_add(&mine->live, (int64_t)bytes - (int64_t)h->size);
    h->size = bytes;
    return block;
  }
  void *larger = td_memory_new(bytes);
  if (!larger) return NULL;
  memcpy(larger, block, h->size < bytes ? h->size : bytes);
  td_memory_free(block);
  return larger;
}

size_t td_memory_size(const void *block) { return block ? header_of(block)->size : 0; }

char *td_memory_text(const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = td_memory_new(bytes);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

// ---- figures ----

static void sum(int64_t *live, int64_t *count) {
  pthread_mutex_lock(&shared.lock);
  *live = shared.live + atomic_load(&orphan_live);
  *count = shared.count;
  for (thread_cache *cache = shared.threads; cache; cache = cache->next) {
    *live += atomic_load_explicit(&cache->live, memory_order_relaxed);
    *count += atomic_load_explicit(&cache->count, memory_order_relaxed);
  }
  pthread_mutex_unlock(&shared.lock);
}

int64_t td_memory_live(void) {
  int64_t live, count, highest = atomic_load(&peak);
  sum(&live, &count);
  while (live > highest && !atomic_compare_exchange_weak(&peak, &highest, live)) {}
  return live;
}

int64_t td_memory_peak(void) {
  td_memory_live();
  return atomic_load(&peak);
}

int64_t td_memory_count(void) {
  int64_t live, count;
  sum(&live, &count);
  return count;
}

void td_memory_trim(void) {
  if (mine) lists_empty(mine);
  pthread_mutex_lock(&shared.lock);
  pool_shrink(0);
  pthread_mutex_unlock(&shared.lock);
}

void td_memory_fail(int64_t nth, bool forever) {
  atomic_store(&fail_forever, forever);
  atomic_store(&fail_left, nth > 0 ? nth : 0);
}

int64_t td_memory_failed(void) { return atomic_load(&failed_bytes); }
