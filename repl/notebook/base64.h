// Base64 (RFC 4648), as .ipynb files hold pictures in it.
#ifndef TD_NOTEBOOK_BASE64_H
#define TD_NOTEBOOK_BASE64_H
#include "engine/base/text.h"

void td_base64_add(td_text *out, const void *bytes, size_t size);
bool td_base64_decode(td_text *out, const char *text, size_t length); // line ends are skipped; false: it is none
#endif
