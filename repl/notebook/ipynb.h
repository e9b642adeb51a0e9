// Jupyter's notebooks, nbformat 4: read from any writer, written as nbformat 4.5 does (one space of indentation, keys
// in order). What is not changed comes back byte for byte: each cell keeps its JSON, and so does what stands around
// the cells; of a changed cell, keys that this program doesn't know, and outputs that no run replaced.
#ifndef TD_NOTEBOOK_IPYNB_H
#define TD_NOTEBOOK_IPYNB_H
#include "engine/base/context.h"
#include "repl/notebook/notebook.h"

// Appends the cells of a file's text to an empty notebook; path: for messages. Errors: TD_ERROR_FILE
// "open: 'x.ipynb': byte 12: reason", TD_ERROR_MEMORY; the notebook then holds what it holds.
int td_ipynb_read(td_context *context, const char *path, const char *text, size_t length, td_notebook *notebook);
// Gives names to cells that have none, as ids. Pictures become PNG where the build has libpng.
int td_ipynb_print(td_context *context, td_notebook *notebook, td_text *out); // TD_ERROR_MEMORY
#endif
