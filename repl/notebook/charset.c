// See charset.h.
#include "repl/notebook/charset.h"
#include <langinfo.h>
#include <locale.h>
#include <string.h>

static bool is_unicode;

static bool is_now(const char *name) { return strcmp(nl_langinfo(CODESET), name) == 0; }

void td_charset_start(void) {
  setlocale(LC_CTYPE, "");
  is_unicode = is_now("UTF-8");
}

bool td_charset_unicode(void) { return is_unicode; }

bool td_charset_typing(void) {
  bool ascii = is_now("ANSI_X3.4-1968") || is_now("US-ASCII");
  return is_now("UTF-8") || (ascii && (setlocale(LC_CTYPE, "C.UTF-8") || setlocale(LC_CTYPE, "en_US.UTF-8")));
}
