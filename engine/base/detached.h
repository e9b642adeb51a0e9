// Work that can't be stopped while it runs, such as one routine of a library: it runs on a thread of its own, so that
// whoever waits for it may leave it behind when the pool is stopped. It then ends by itself and frees what it held.
#ifndef TD_BASE_DETACHED_H
#define TD_BASE_DETACHED_H
#include "engine/base/threads.h"

// block: of td_memory_new, with all that work reads and writes. True: work is done. False: the pool was stopped, and
// block belongs to the work that goes on. At most a few are left at a time: the next ones are waited for. Results don't
// depend on the thread. The end of the process waits for nobody.
bool td_detached_run(const td_pool *pool, void (*work)(void *block), void *block);
int td_detached_left(void); // how many go on
#endif
