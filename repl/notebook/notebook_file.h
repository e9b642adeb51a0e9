// A notebook's file: Jupyter's when its name ends in .ipynb, a deck else.
#ifndef TD_NOTEBOOK_NOTEBOOK_FILE_H
#define TD_NOTEBOOK_NOTEBOOK_FILE_H
#include "engine/base/context.h"
#include "repl/notebook/notebook.h"

bool td_notebook_path_is_ipynb(const char *path);
// A new notebook with the cells of the file; *out is the caller's. Errors: TD_ERROR_FILE, TD_ERROR_MEMORY.
int td_notebook_open(td_context *context, const char *path, td_notebook **out);
// Atomic; the notebook then counts as saved. What an .ipynb file holds of outputs is not in a deck. Errors as above;
// also TD_ERROR_FILE when the file there is not what this notebook was read from or saved to last, since others wrote
// it: said once, the next td_notebook_save writes over it. td_notebook_write does so at once.
int td_notebook_save(td_context *context, td_notebook *notebook, const char *path);
int td_notebook_write(td_context *context, td_notebook *notebook, const char *path);
// Runs the code cells in order, in a session of their own that nobody sits at, up to the first that fails; their
// outputs are the notebook's then. seed: of the random numbers, NULL: the usual one. The exit code of that run: 0
// done, 1 failed, or what exit() asked for; -1: no memory or no thread.
int td_notebook_run_all(td_notebook *notebook, const char *path, const uint64_t *seed);
#endif
