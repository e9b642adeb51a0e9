// A notebook's cells from the text of a deck (deck.h) and back. What is not changed comes back byte for byte: dividers
// with all that stands in them, empty cells, blank lines between cells, a missing line end at the end.
#ifndef TD_NOTEBOOK_DECK_WRITE_H
#define TD_NOTEBOOK_DECK_WRITE_H
#include "engine/base/context.h"
#include "repl/notebook/notebook.h"

// Appends the cells of a deck's text to the notebook. Any bytes are a deck. A cell's text has no line ends at its end;
// markdown whose lines all begin with "# " loses these. A name is read from id=NAME in the divider. TD_ERROR_MEMORY.
int td_deck_to_notebook(td_context *context, const char *text, size_t length, td_notebook *notebook);
void td_deck_print(const td_notebook *notebook, td_text *out); // the deck of the notebook; out->failed: no memory
// The title in a cell's divider, "# %% title [markdown] id=NAME", appended; and a divider with a title, for a cell that
// has none. false: no memory.
void td_deck_title(const td_notebook_cell *cell, td_text *out);
bool td_deck_set_title(td_notebook_cell *cell, const char *title);
// A name for a cell: 1 to TD_CELL_NAME letters, digits, - and _ at text. Its length; 0: none.
size_t td_cell_name_length(const char *text, size_t length);
#endif
