// See boundary.h.
#include "repl/language/boundary.h"
#include <time.h>
#include "repl/language/core.h"
#include "repl/language/curve.h"
#include "repl/language/tensors.h"
#include "repl/language/turn.h"

static bool reach(td_interpreter *I, const td_boundary *boundary) {
  bool main = !I->turn || I->turn->holder == &I->turn->main;
  if (!main || I->core->loading || !td_aside_possible(I->context)) return true;
  return I->boundary(I, boundary);
}

bool td_boundary_reach_slow(td_interpreter *I, const td_boundary *boundary) {
  I->core->loop_boundaries++;
  return reach(I, boundary);
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

td_detour td_detour_enter(td_interpreter *I) {
  td_output_flush(I);
  td_plots_flush(I); // points of the cell that is left
  td_detour outer = {.aside = td_aside_enter(I->context),
                     .frame = I->frame,
                     .slots = I->slots,
                     .handling = I->handling,
                     .builtin = I->builtin,
                     .place = I->context->place,
                     .started = seconds_now()};
  I->frame = &I->core->root;
  I->slots = I->core->root.slots;
  I->handling = TD_NIL;
  I->core->detours++;
  return outer;
}

void td_detour_leave(td_interpreter *I, const td_detour *outer) {
  td_output_flush(I);
  I->core->detours--;
  I->core->detoured += seconds_now() - outer->started;
  I->frame = outer->frame;
  I->slots = outer->slots;
  I->handling = outer->handling;
  I->builtin = outer->builtin;
  I->context->place = outer->place;
  td_aside_leave(I->context, &outer->aside);
}

// ---- for the decks ----

static td_value builtin_step_boundary(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!I->boundary) return TD_NONE;
  const char *label = td_is(arguments[0], &td_str_type) ? td_as_str(arguments[0])->data : "";
  int64_t done = arguments[1].tag == TD_TAG_INT ? arguments[1].i : 0;
  int64_t total = arguments[2].tag == TD_TAG_INT ? arguments[2].i : -1;
  return td_boundary_reach(I, label, done, total) ? TD_NONE : TD_NIL;
}

// An optimizer's step is a boundary where nothing else is: in a loop over progress(...) and in fit one boundary comes
// between two steps anyway, and a second would be half a step.
static td_value builtin_optimizer_stepped(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!I->boundary) return TD_NONE;
  bool told = I->core->loop_boundaries != I->core->loop_boundaries_seen;
  I->core->loop_boundaries_seen = I->core->loop_boundaries;
  if (told) return TD_NONE;
  td_boundary boundary = {"", arguments[0].tag == TD_TAG_INT ? arguments[0].i : 0, -1};
  return reach(I, &boundary) ? TD_NONE : TD_NIL;
}

const td_method td_boundary_builtins[] = {
    {"_step_boundary", "(label='', done=0, total=None)", builtin_step_boundary,
     "Here one step of a loop has ended and the next begins: a run can pause."},
    {"_optimizer_stepped", "(iterations)", builtin_optimizer_stepped,
     "An optimizer has taken a step: a run whose loop says no boundaries can pause here."},
    {NULL, NULL, NULL, NULL}};
