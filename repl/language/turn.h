// Several threads that evaluate, over one heap of values, one at a time: who has the turn.
#ifndef TD_LANGUAGE_TURN_H
#define TD_LANGUAGE_TURN_H
#include <pthread.h>
#include "engine/base/memory.h"
#include "repl/language/core.h"

// What of td_interpreter belongs to the thread that has the turn.
#define TD_REGISTERS(X)                                                                                          \
  X(td_context *, context) X(td_frame *, frame) X(td_value *, slots) X(td_value *, stack) X(td_value *, stack_top) \
  X(td_value *, stack_end) X(char *, stack_limit) X(int32_t, depth) X(int32_t, depth_limit) X(td_value, raised)    \
  X(td_value, handling) X(const td_builtin *, builtin)

typedef struct td_registers {
#define X(type, name) type name;
  TD_REGISTERS(X)
#undef X
} td_registers;

typedef struct td_evaluator { // a thread that evaluates
  td_interpreter *interpreter;
  td_context *context;
  td_registers registers;     // while it doesn't have the turn
  td_memory_cache *cache;     // the thread's own, while it has the turn and uses the shared one
  td_frame root;              // what runs first has it as its caller; of all but the main one
  bool patient;               // waits a while before it asks the one that has the turn
  bool away;                  // gave the turn back by leave()
} td_evaluator;

typedef struct td_turn td_turn;
struct td_turn {
  pthread_mutex_t lock;
  pthread_cond_t free, taken; // somebody may take the turn; somebody took it
  td_evaluator *holder;       // NULL: nobody
  int waiting;                // for the turn
  uint64_t number;            // how often it was taken
  int64_t live;               // containers of the heap, while nobody has the turn
  td_memory_cache *cache;     // of whoever has the turn
  td_evaluator main;
  int others;                 // threads beside the main one that may want the turn; the turn guards it
  struct td_worker *workers;  // that run; the turn guards it
  struct td_worker *ended;    // to be joined
};

// before the first worker starts; the caller has the turn then. false: MemoryError
bool td_turn_open(td_interpreter *);
void td_turn_close(td_interpreter *);        // when no worker is left
void td_turn_share(td_turn *);               // one more thread takes turns; the caller has the turn
// Another thread, with a context and a stack of its own. false: no memory.
bool td_evaluator_open(td_interpreter *, td_evaluator *);
void td_evaluator_close(td_evaluator *);     // it hasn't the turn, and its thread has ended
void td_turn_make_condition(pthread_cond_t *); // for td_turn_await
void td_turn_take(td_evaluator *);           // waits for the turn
void td_turn_give(td_evaluator *);           // gives it back: the values are others' until it is taken again
void td_turn_yield(td_interpreter *);        // lets somebody else have it who waits for it too long
// Gives the turn back until changed is signalled (by somebody who has the turn), and takes it again. Wakes now and then
// without reason: the caller looks again at what it waits for.
void td_turn_await(td_interpreter *, pthread_cond_t *changed);
#endif
