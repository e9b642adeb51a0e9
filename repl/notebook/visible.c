// See visible.h.
#include "repl/notebook/visible.h"
#include <string.h>
#include "repl/language/source.h"

void td_visible_add(td_text *text, const char *bytes, size_t length, bool tabs) {
  for (const char *end = bytes + length; bytes < end;) {
    const char *stop = bytes;
    while (stop < end && *stop != '\n' && !(tabs && *stop == '\t')) stop++;
    td_source_print(text, bytes, (size_t)(stop - bytes));
    if (stop < end) td_text_add_char(text, *stop);
    bytes = stop + 1;
  }
}
