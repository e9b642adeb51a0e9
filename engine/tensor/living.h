// A walk over the Variables alive in the process, in no order that means anything. visit must neither make nor drop
// one.
#ifndef TD_TENSOR_LIVING_H
#define TD_TENSOR_LIVING_H
#include "engine/tensor/variable.h"

void td_variable_each(void (*visit)(void *owner, td_variable *v), void *owner);
#endif
