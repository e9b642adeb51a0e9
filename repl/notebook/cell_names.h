// The names that cells use and bind, by the language's own parser and resolver, and what follows from them: which cells
// are stale. Nothing is run here.
#ifndef TD_NOTEBOOK_CELL_NAMES_H
#define TD_NOTEBOOK_CELL_NAMES_H
#include "repl/language/interpreter.h"
#include "repl/notebook/notebook.h"

enum { // what a cell does with a name of the top level
  TD_NAME_USES = 1,      // reads a value that it did not bind before, inside functions too
  TD_NAME_BINDS = 2,     // =, for, with ... as, def, class, import, del
  TD_NAME_MAY_BIND = 4,  // the same under an if, a loop or a try, or in a function by global
  TD_NAME_CHANGES = 8,   // name.a = v, name[i] = v, del name[i]
  TD_NAME_CALLS = 16,    // name.method(), unless by its name the method changes nothing: an op, a method of str
  TD_NAME_IMPORTS = 32,  // bound by an import: calls of it change nothing
};

typedef struct td_cell_name { const char *name; unsigned does; } td_cell_name;

typedef struct td_cell_names { // one block
  int count;
  td_cell_name items[]; // in order of their names
} td_cell_names;

// Of a text that does not parse: none. NULL: no memory. The interpreter is used by one thread at a time: a session's
// own by td_session_ask, or one of the face's, which sees what is typed while a cell runs.
td_cell_names *td_cell_names_read(td_interpreter *, const char *text, size_t length);
void td_cell_names_free(td_cell_names *names); // NULL is allowed
unsigned td_cell_names_find(const td_cell_names *names, const char *name); // what is done with it; 0: nothing

// Sets the mark on each cell that ran in this session and used what was changed or run anew since: names bound or
// changed by the cells above it up to the last that surely binds them, or by the cells below when none above does; and
// what was made from such names. Nothing is run because of a mark. interpreter NULL: texts that were not read yet have
// the names that they had before. The number of marks that changed; -1: no memory.
int td_notebook_stale(td_notebook *notebook, td_interpreter *interpreter);
#endif
