// The character set of the locale: UTF-8 or not. What is put out keeps to it. What is typed may be UTF-8 in a locale of
// ASCII alone, too: a terminal that sends it knows it.
#ifndef TD_NOTEBOOK_CHARSET_H
#define TD_NOTEBOOK_CHARSET_H
#include <stdbool.h>

void td_charset_start(void);   // from the environment, when the program starts
bool td_charset_unicode(void); // it is UTF-8
bool td_charset_typing(void);  // lets UTF-8 be typed, after readline has begun; false: the system has no such locale
#endif
