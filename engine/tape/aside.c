// Code that runs in the middle of another one's run (td_aside). Tapes that are open are hidden from it; what it does to
// a Variable's leaf, so that tapes of its own can watch it, is taken back at the end: the run's gradients add up in the
// order in which they would have.
#include "engine/base/memory.h"
#include "engine/tape/state.h"

struct td_kept {
  td_variable *variable; // counted
  td_tensor *value;      // counted; with the leaf that the hidden tapes know
  td_kept *next;
};

bool td_aside_possible(const td_context *context) {
  const td_tapes *tapes = context->tapes;
  bool passing = tapes && (tapes->running || tapes->region || tapes->replaying);
  return !context->apart && !context->batch_depth && !passing;
}

td_aside td_aside_enter(td_context *context) {
  td_aside outer = {.seed = context->seed,
                    .counter = context->counter,
                    .streams = context->streams,
                    .random_sets = context->random_sets};
  td_tapes *tapes = context->tapes;
  if (!tapes) return outer;
  outer.hidden = tapes->hidden;
  outer.no_grad = tapes->no_grad;
  outer.observer = tapes->observer;
  outer.kept = tapes->kept;
  tapes->hidden |= tapes->open;
  tapes->no_grad = 0;
  tapes->observer = NULL;
  tapes->kept = NULL;
  td_tapes_update(context);
  return outer;
}

// Before v's value is replaced by a view: without memory nothing is kept, and sums may round otherwise.
void td_aside_keep(td_tapes *tapes, td_variable *v) {
  const td_origin *origin = v->value->origin;
  if (!origin || !(origin->tapes & tapes->open & tapes->hidden)) return;
  for (const td_kept *kept = tapes->kept; kept; kept = kept->next)
    if (kept->variable == v && kept->value->storage == v->value->storage) return;
  td_kept *kept = td_memory_new(sizeof *kept);
  if (!kept) return;
  *kept = (td_kept){td_variable_ref(v), td_tensor_ref(v->value), tapes->kept};
  tapes->kept = kept;
}

static void put_back(td_kept *kept) {
  td_variable *v = kept->variable;
  td_tensor *value = v->value;
  if (value->storage == kept->value->storage && value->data == kept->value->data) { // else it was assigned
    v->value = kept->value;
    kept->value = value;
  }
  td_tensor_unref(kept->value);
  td_variable_unref(v);
  td_memory_free(kept);
}

void td_aside_leave(td_context *context, const td_aside *outer) {
  if (context->random_sets == outer->random_sets) {
    context->seed = outer->seed;
    context->counter = outer->counter;
    context->streams = outer->streams;
  }
  td_tapes *tapes = context->tapes;
  if (!tapes) return;
  for (td_kept *kept = tapes->kept, *next; kept; kept = next) {
    next = kept->next;
    put_back(kept);
  }
  tapes->kept = outer->kept;
  tapes->hidden = outer->hidden;
  tapes->no_grad = outer->no_grad;
  tapes->observer = outer->observer;
  td_tapes_update(context);
}
