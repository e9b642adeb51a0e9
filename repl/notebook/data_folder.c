// See data_folder.h.
#include "repl/notebook/data_folder.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "engine/base/text.h"

char *td_data_path(const char *name, bool make) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  td_text path = {0};
  if (data && *data) td_text_print(&path, "%s/tapedeck/%s", data, name);
  else if (home && *home) td_text_print(&path, "%s/.local/share/tapedeck/%s", home, name);
  else return NULL;
  if (make && path.data)
    for (char *at = path.data; (at = strchr(at + 1, '/'));) {
      *at = 0;
      mkdir(path.data, 0700);
      *at = '/';
    }
  return td_text_take(&path);
}
