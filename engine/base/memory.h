// The one owner of allocation. Every byte of the engine and of the notebook comes from here, so live bytes are exact
// and the n-th allocation can be made to fail. Blocks carry their size; freed blocks are kept in per-thread caches by
// size class. Functions return NULL when memory is out; nothing here prints or aborts. Any thread may call.
#ifndef TD_BASE_MEMORY_H
#define TD_BASE_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *td_memory_new(size_t bytes);       // uninitialised; 16-byte aligned, 64-byte from 1 KiB up; caller owns
void *td_memory_new_zero(size_t bytes);  // as above, filled with zero bytes
void *td_memory_resize(void *block, size_t bytes); // keeps contents; NULL block allocates; on failure block lives on
void td_memory_free(void *block);        // NULL is allowed
size_t td_memory_size(const void *block); // bytes asked for; 0 for NULL
char *td_memory_text(const char *text);  // owned copy of a NUL-terminated text

int64_t td_memory_live(void);            // bytes in use now, caches not counted
int64_t td_memory_peak(void);            // highest td_memory_live seen at a large allocation or td_memory_live call
int64_t td_memory_count(void);           // allocations made since start
// Threads that run in turns may share one cache, so that what one makes and another frees is used again. A shared cache
// is used by one thread at a time: the caller sees to that.
typedef struct td_memory_cache td_memory_cache;
td_memory_cache *td_memory_cache_new(void);                 // NULL: no memory
void td_memory_cache_free(td_memory_cache *cache);          // no thread uses it; its blocks stay valid; NULL is allowed
// this thread allocates from cache; returns the one before. NULL: its own
td_memory_cache *td_memory_cache_use(td_memory_cache *cache);
void td_memory_trim(void);               // gives this thread's caches back to the system
void td_memory_fail(int64_t nth, bool forever); // the nth allocation from now fails (1 = next); 0 turns it off
int64_t td_memory_failed(void);          // bytes that the last failed allocation asked for
#endif
