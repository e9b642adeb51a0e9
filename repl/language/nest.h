// Nested structures of tensors: what gradients take as targets and sources (a tensor, a Variable, lists, tuples and
// dicts of them, a model with trainable_variables), flattened in order and rebuilt with other leaves.
#ifndef TD_LANGUAGE_NEST_H
#define TD_LANGUAGE_NEST_H
#include "repl/language/tensors.h"

typedef bool td_nest_leaf(td_interpreter *, td_value leaf, void *argument);
// Calls leaf for each one in order; dicts in their order. A leaf is anything that is no list, tuple, dict or model.
bool td_nest_each(td_interpreter *, td_value v, td_nest_leaf *leaf, void *argument);
// The same structure with leaves[0], leaves[1], ... in place of the leaves; a model gives a list. Takes over no leaf.
td_value td_nest_build(td_interpreter *, td_value v, const td_value *leaves, int *next);
int td_nest_count(td_interpreter *, td_value v);   // -1: exception
// value_tape.c: the gradient of target in the nest sources as values; and a leaf function that watches (argument: the
// td_tape).
td_value td_tape_gradient_values(td_interpreter *, td_tape *tape, td_value target, td_value sources,
                                 td_value cotangents, bool zero);
td_nest_leaf td_tape_watch_leaf;
// value_gradient.c: v with every tensor and float in it as a tensor of its own, apart from what the caller holds.
td_value td_fresh_argument(td_interpreter *, td_value v, const char *who, int64_t number);
#endif
