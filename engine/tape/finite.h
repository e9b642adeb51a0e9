// Finding trouble: the first op, forward or backward, that made a NaN (or an infinity), with its line, the element and
// the operands there. Watching changes no result.
#ifndef TD_TAPE_FINITE_H
#define TD_TAPE_FINITE_H
#include "engine/tape/tape.h"

typedef struct td_finite td_finite;

// Looks at what every op makes from here on, until stop. infinite: infinities are trouble too. report is called once,
// with text of a few lines, when the first trouble is found. NULL: no memory.
td_finite *td_finite_start(td_context *context, bool infinite, void (*report)(void *owner, const char *text),
                           void *owner);
void td_finite_stop(td_context *context, td_finite *finite);
const char *td_finite_found(const td_finite *finite);    // what was reported; NULL: nothing yet
td_finite *td_finite_of(const td_context *context);      // that looks now; NULL: none does

// Of an activation's record (an elementwise op of one operand, axis 0 the examples): its units, and how many of them
// pass no gradient on for any example. Other records, and those given up already: 0 units.
int td_tape_dead(td_context *context, td_record *record, int64_t *units, int64_t *dead);
#endif
