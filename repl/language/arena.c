// Memory of one script's tree: chunks that are filled from the front and freed together. An arena is counted: its tree
// lives while a function defined by it does. It owns a reference of each value that it was told to hold, and one of its
// script.
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/syntax.h"

enum { CHUNK_SMALL = 2048, CHUNK_LARGE = 64 * 1024 }; // the first chunk is small: most cells are short

typedef struct chunk {
  struct chunk *next;
  size_t used, size;
  _Alignas(16) char data[];
} chunk;

struct td_arena {
  uint32_t refs;
  int32_t held_count, held_capacity;
  chunk *chunks; // the one being filled first
  td_value *held;
  td_script *script; // NULL: none
};

td_arena *td_arena_new(void) {
  td_arena *arena = td_memory_new_zero(sizeof *arena);
  if (arena) arena->refs = 1;
  return arena;
}

static chunk *add_chunk(td_arena *arena, size_t bytes) {
  size_t size = arena->chunks ? CHUNK_LARGE : CHUNK_SMALL;
  bool own = bytes > size / 4; // a large block has a chunk of its own, behind the one being filled
  if (own) size = bytes;
  chunk *added = td_memory_new_zero(sizeof *added + size);
  if (!added) return NULL;
  added->size = size;
  if (own && arena->chunks) {
    added->next = arena->chunks->next;
    arena->chunks->next = added;
  } else {
    added->next = arena->chunks;
    arena->chunks = added;
  }
  return added;
}

void *td_arena_take(td_arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  bytes = (bytes + 15) & ~(size_t)15;
  chunk *c = arena->chunks;
  if (!c || c->size - c->used < bytes) c = add_chunk(arena, bytes);
  if (!c) return NULL;
  void *block = c->data + c->used;
  c->used += bytes;
  return block;
}

bool td_arena_hold(td_arena *arena, td_value value) {
  if (value.tag != TD_TAG_OBJECT) return true;
  if (arena->held_count == arena->held_capacity) {
    int32_t capacity = arena->held_capacity ? arena->held_capacity * 2 : 16;
    td_value *held = td_memory_resize(arena->held, (size_t)capacity * sizeof *held);
    if (!held) return td_unref(value), false;
    arena->held = held;
    arena->held_capacity = capacity;
  }
  arena->held[arena->held_count++] = value;
  return true;
}

void td_arena_keep(td_arena *arena, td_script *script) {
  td_script *before = arena->script;
  arena->script = td_source_ref(script);
  td_source_unref(before);
}

td_arena *td_arena_ref(td_arena *arena) {
  arena->refs++;
  return arena;
}

void td_arena_unref(td_arena *arena) {
  if (!arena || --arena->refs) return;
  for (int32_t i = 0; i < arena->held_count; i++) td_unref(arena->held[i]);
  td_memory_free(arena->held);
  for (chunk *c = arena->chunks, *next; c; c = next) {
    next = c->next;
    td_memory_free(c);
  }
  td_source_unref(arena->script);
  td_memory_free(arena);
}
