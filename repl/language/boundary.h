// Step boundaries: where a loop over progress(...) takes its next item, where fit, evaluate and predict take their next
// batch, and where an optimizer has taken a step in a loop that says nothing. Weights, optimizers and datasets stand
// between two steps there, so a run can stop and other code can run aside.
#ifndef TD_LANGUAGE_BOUNDARY_H
#define TD_LANGUAGE_BOUNDARY_H
#include "engine/tape/tape.h"
#include "repl/language/interpreter.h"

typedef struct td_boundary { // of a loop
  const char *label;         // "epoch 2/5"; "" without
  int64_t done, total;       // steps; total -1: unknown
} td_boundary;

// Tells td_interpreter.boundary, unless code runs that can't be stopped between two steps: a worker's, inside of vmap
// or of a backward pass. false: an exception is in flight.
bool td_boundary_reach_slow(td_interpreter *, const td_boundary *boundary);
static inline bool td_boundary_reach(td_interpreter *I, const char *label, int64_t done, int64_t total) {
  return !I->boundary || td_boundary_reach_slow(I, &(td_boundary){label, done, total});
}

// Cells that run at a boundary (td_aside says what they leave alone) see the session's names, and no frame of the run.
typedef struct td_detour {
  td_aside aside;
  td_frame *frame;
  td_value *slots;
  td_value handling;
  const td_builtin *builtin;
  td_place place;
  double started;
} td_detour;
td_detour td_detour_enter(td_interpreter *);
void td_detour_leave(td_interpreter *, const td_detour *outer);
#endif
