// Gradients and updates of Variables, looked at while somebody wants to see them: some elements of each, some times a
// second. Otherwise gradients are looked at well now and then, and at a glance each time, so that they are known when
// somebody comes. What was seen stands in the Variable.
#ifndef TD_LANGUAGE_WATCH_H
#define TD_LANGUAGE_WATCH_H
#include "engine/tensor/variable.h"
#include "repl/language/interpreter.h"

void td_watch_ask(td_interpreter *);               // look for a while from now on
void td_watch_ask_tapes(td_interpreter *);         // and keep the tape that is closed last, with the times of its ops
bool td_watch_is_due(td_interpreter *, bool update); // now? update: at a step of an optimizer; else at a gradient
void td_watch_gradient(td_interpreter *, td_variable *v, const td_tensor *gradient);
bool td_watch_is_on(const td_interpreter *);        // somebody wants to see them
void td_watch_glance(td_variable *v, const td_tensor *gradient);
void td_watch_closely(td_interpreter *, const td_variable *v); // keep its last gradient from now on, and no other's
// The grad of a Variable, else its last gradient, if it is the one that is watched closely. Borrowed; NULL: not known.
const td_tensor *td_watch_last_gradient(const td_interpreter *, const td_variable *v);

typedef struct td_watched td_watched;              // values before a step
td_watched *td_watch_before(td_variable *const *variables, int64_t count); // NULL: no memory
void td_watch_after(td_watched *watched);          // frees it

// The tape that was closed last while somebody looked; NIL: none, borrowed. It is kept until the next one is closed.
void td_watch_tape(td_interpreter *, td_value tape);
td_value td_watch_last_tape(const td_interpreter *);
#endif
