// One pool of worker threads for the engine's data-parallel loops. Chunks are cut by the caller from sizes alone, never
// from the thread count, so results are the same on any number of threads. Workers spin briefly, then block.
#ifndef TD_BASE_THREADS_H
#define TD_BASE_THREADS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct td_pool td_pool;
typedef void td_chunk(void *argument, int64_t chunk);

// threads counts the caller too; workers start at the first parallel run; NULL: no memory
td_pool *td_pool_new(int threads);
void td_pool_free(td_pool *pool);
int td_pool_threads(const td_pool *pool);
// Calls work(argument, c) once for every c in [0, chunks), on any thread, and returns when all are done. Nested calls
// and pools of one thread run the chunks in order on the caller. In a stopped pool chunks are left out.
void td_pool_run(td_pool *pool, int64_t chunks, td_chunk *work, void *argument);
// Stops the pool's runs while both are set: results are garbage then, and who set breakable drops them. Work that would
// go on for long, or that takes indices from results of other chunks, asks whether the pool is stopped.
void td_pool_watch(td_pool *pool, const atomic_int *interrupt, const atomic_bool *breakable);
bool td_pool_stopped(const td_pool *pool);
int td_threads_wanted(void);        // TAPEDECK_THREADS, else the cores that this process may use
#endif
