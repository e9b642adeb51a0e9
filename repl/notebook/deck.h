// Deck files: text in the language, cells divided by lines that begin with "# %%". "# %% [markdown]" cells hold prose
// in comments.
#ifndef TD_NOTEBOOK_DECK_H
#define TD_NOTEBOOK_DECK_H
#include <stddef.h>
#include "engine/base/context.h"

typedef struct td_cell_text {
  const char *text;    // borrowed from the deck; the line after the divider up to the next one
  size_t length;
  int line;            // lines of the file before text
  bool markdown;
} td_cell_text;

typedef struct td_deck {
  char *text;          // owned
  size_t length;
  char *folder;        // of the file, "" = current; owned
  td_cell_text *cells; // owned
  int count;
} td_deck;

#define TD_DECK_LIMIT ((size_t)64 << 20) // bytes of a deck file

int td_deck_read(td_context *context, const char *path, td_deck *deck); // TD_ERROR_FILE, TD_ERROR_MEMORY
int td_deck_parse(td_context *context, const char *text, size_t length, td_deck *deck); // copies text; folder is ""
void td_deck_clear(td_deck *deck);
bool td_deck_is_divider(const char *line, const char *end); // end: of the line
bool td_deck_is_markdown(const char *divider, const char *end);
#endif
