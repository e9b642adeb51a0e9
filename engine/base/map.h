// Files mapped into memory, read only. When a mapped file becomes shorter, reading what is gone would kill the process;
// here such pages read as zeros, the loss is remembered, and the owner's interrupt flag is raised, so that running code
// stops soon and whoever asks td_map_lost tells the user. Any thread may read; td_file_map (file.h) makes mappings.
#ifndef TD_BASE_MAP_H
#define TD_BASE_MAP_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Watches a mapping of size bytes at data; interrupt may be NULL. false: too many mappings are watched already.
bool td_map_watch(char *data, size_t size, atomic_int *interrupt);
void td_map_drop(char *data, size_t size); // stops watching, and unmaps
void td_map_forget(const atomic_int *interrupt); // whose owner goes; its mappings may live on
bool td_map_damaged(const char *data); // bytes of the mapping that begins at data were gone when they were read
bool td_map_lost(void); // the same of any mapping since the last call; clears

// What is read of a mapped file stays in memory until somebody needs the room. Whoever makes large blocks calls this,
// so that a walk through a file that is larger than memory leaves little of it resident: past some MiB the pages are
// let go, and come back from the system's cache when they are read again.
extern atomic_int td_map_count; // mappings now
void td_map_relax_slow(size_t bytes);
static inline void td_map_relax(size_t bytes) {
  if (__builtin_expect(atomic_load_explicit(&td_map_count, memory_order_relaxed), 0)) td_map_relax_slow(bytes);
}
#endif
