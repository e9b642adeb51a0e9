// Where this program keeps what belongs to its user and to no deck: $XDG_DATA_HOME/tapedeck, else
// ~/.local/share/tapedeck.
#ifndef TD_NOTEBOOK_DATA_FOLDER_H
#define TD_NOTEBOOK_DATA_FOLDER_H
#include <stdbool.h>

// The path of name in that folder, owned by the caller; make: the folders above it are made, for their owner's eyes.
// NULL: there is no home, or no memory.
char *td_data_path(const char *name, bool make);
#endif
