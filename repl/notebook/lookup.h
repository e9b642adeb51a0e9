// What a dotted name stands for, found without running any code of the user's: no property is called, no tensor is
// computed.
#ifndef TD_NOTEBOOK_LOOKUP_H
#define TD_NOTEBOOK_LOOKUP_H
#include "repl/language/interpreter.h"

// "model.layers" of the session's module, then of the builtins. A new reference; a property is itself. NIL without
// exception: unknown, or known only by running something; NIL with one: no memory, or a deck of the library failed.
td_value td_lookup_path(td_interpreter *, const char *path, size_t length);
#endif
