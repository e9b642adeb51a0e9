// What an engine call runs in. The context owns its pool; whatever hangs at tapes, recorder and owner belongs to those
// who set it and must be gone before the context is.
#include "engine/base/context.h"

#include <stdio.h>

#include "engine/base/map.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"

static const uint64_t STREAM_OF_STREAMS = UINT64_C(0x73747265616d7321); // no op draws from this stream

td_context *td_context_new(int threads) {
  td_context *context = td_memory_new_zero(sizeof *context);
  if (!context) return NULL;
  context->pool = td_pool_new(threads > 0 ? threads : td_threads_wanted());
  if (!context->pool) {
    td_memory_free(context);
    return NULL;
  }
  atomic_init(&context->interrupt, 0);
  atomic_init(&context->in_kernel, false);
  td_pool_watch(context->pool, &context->interrupt, &context->in_kernel);
  context->home = context;
  context->op_seconds = -1;
  context->batch_ceiling = TD_BATCH_LEVELS;
  return context;
}

td_context *td_context_beside(const td_context *context) {
  td_context *beside = td_context_new(1);
  if (!beside) return NULL;
  beside->home = context->home;
  beside->warn = context->warn;
  beside->describe = context->describe;
  beside->owner = context->owner;
  return beside;
}

void td_context_set_random(td_context *context, uint64_t seed, uint64_t counter, uint64_t streams) {
  context->seed = seed;
  context->counter = counter;
  context->streams = streams;
  context->random_sets++;
}

uint64_t td_context_stream(td_context *context) {
  uint32_t bits[4];
  td_random_block(context->seed, context->streams++, STREAM_OF_STREAMS, bits);
  return (uint64_t)bits[1] << 32 | bits[0];
}

void td_context_free(td_context *context) {
  if (!context) return;
  td_pool_free(context->pool);
  td_map_forget(&context->interrupt);
  td_memory_free(context);
}

void td_place_describe(td_context *context, td_place place, char *buffer, int size) {
  if (size <= 0) return;
  buffer[0] = 0;
  if (place && context->describe) context->describe(context->owner, place, buffer, size);
  if (!buffer[0]) snprintf(buffer, (size_t)size, "an unknown line");
}
