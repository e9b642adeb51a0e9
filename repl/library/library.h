// The standard library's decks, as texts inside the program. embed.sh makes the table from the .deck files beside it;
// the language runs a deck when one of its names is first looked up. This floor's C is this table only and includes
// nothing, so that the language, which is under the decks, may read it.
#ifndef TD_LIBRARY_LIBRARY_H
#define TD_LIBRARY_LIBRARY_H

typedef struct td_library_deck {
  const char *name;  // the file's, without .deck
  const char *text;  // the whole deck
  const char *names; // what its top level defines by class, def and NAME =, each once, separated by spaces; no _names
} td_library_deck;

extern const td_library_deck td_library_decks[]; // in the order of Makefile.am; ends with name NULL
#endif
