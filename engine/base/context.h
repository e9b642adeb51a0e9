// What an engine call runs in: its error, seed, thread pool, interrupt flag, place, and the recorder of tapes. One
// evaluator owns one context; a context is used by one thread at a time.
#ifndef TD_BASE_CONTEXT_H
#define TD_BASE_CONTEXT_H
#include <stdatomic.h>
#include <stdbool.h>
#include "engine/base/error.h"
#include "engine/base/threads.h"

typedef struct td_context td_context;
struct td_recorder;  // engine/ops/op.h: what dispatch calls after an op ran
struct td_inspector;

enum { TD_BATCH_LEVELS = 7 };

typedef struct td_batch { uint64_t id; int64_t size; } td_batch; // an open vmap: examples

struct td_context {
  td_error error;
  td_pool *pool;
  uint64_t seed, counter;              // session's random state: numbers drawn so far
  uint64_t streams;                    // independent streams given out since the seed was set (td_context_stream)
  uint64_t random_sets;                // how often td_context_set_random was called
  td_place place;                      // the source place that runs now; ops stamp it on what they make
  union {
    struct {
      atomic_int interrupt;            // nonzero: stop soon with TD_ERROR_INTERRUPT
      atomic_int wanted;               // nonzero: another thread waits for the turn (leave, enter)
    };
    _Atomic uint64_t asked;            // both at one look
  };
  atomic_bool in_kernel;               // what runs now may be left half done on an interrupt: dispatch drops it
  const struct td_recorder *recorder;  // NULL: nothing records
  const struct td_inspector *inspector; // NULL: nobody looks at results
  void *tapes;                         // state of engine/tape
  bool timed;                          // records tell how long their ops took
  float op_seconds;                    // of the op that ran last; below 0: not measured
  td_batch batches[TD_BATCH_LEVELS];   // open calls of vmap, outermost first (engine/ops/batch.h)
  int batch_depth;
  int batch_ceiling;                   // tapes opened inside more batches than this don't see what runs now
  uint64_t batch_ids;
  void (*warn)(void *owner, const char *message); // notices for the user ("summed 2 outputs"); NULL: dropped
  // Text of a place, such as "line 3" or "train.deck:14", for messages of the engine; NULL: "an unknown line"
  void (*describe)(void *owner, td_place place, char *buffer, int size);
  void *owner;                         // of warn and describe
  // Several threads may run in turns, each with its own context. Around work that touches nothing shared, leave() lets
  // the others run and enter() waits for the turn again. NULL: this thread is alone
  void (*leave)(void *thread);
  void (*enter)(void *thread);
  void *thread;                        // of leave and enter
  bool apart;                          // what runs belongs to no tape from outside of it
  td_context *home;                    // the owner's first context, which lives longest; itself
};

// Around work that touches nothing that other threads may see.
static inline void td_context_leave(td_context *context) {
  if (context->leave) context->leave(context->thread);
}
static inline void td_context_enter(td_context *context) {
  if (context->leave) context->enter(context->thread);
}

td_context *td_context_new(int threads); // threads 0: td_threads_wanted(); NULL: no memory
// For another thread of the same owner: kernels run on it alone. What it draws is its own: seed 0.
td_context *td_context_beside(const td_context *context);
void td_context_free(td_context *context);
void td_context_set_random(td_context *context, uint64_t seed, uint64_t counter, uint64_t streams);
// seed of a new stream of random numbers; the session's own go on undisturbed
uint64_t td_context_stream(td_context *context);


int td_error_set(td_context *context, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void td_error_hint(td_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
void td_error_clear(td_context *context);
int td_error_within(td_context *, const char *what); // puts "WHAT: " before the message that is set; returns its code
int td_error_memory(td_context *context, const char *what, int64_t bytes); // TD_ERROR_MEMORY with the size asked for
const char *td_error_name(int code);     // "SHAPE"
void td_place_describe(td_context *context, td_place place, char *buffer, int size);
#endif
