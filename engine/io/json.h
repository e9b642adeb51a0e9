// Reading JSON piece by piece: the caller asks for a value, and for the members of what turns out to be an object or an
// array. Nothing is built here but the text of the string or number read last. The grammar is RFC 8259's; loose also
// takes NaN, Infinity and -Infinity, as Python does.
#ifndef TD_IO_JSON_H
#define TD_IO_JSON_H
#include <stdbool.h>
#include <stddef.h>
#include "engine/base/text.h"

enum td_json_kind {
  TD_JSON_WRONG, // error and at say what and where; at is a byte
  TD_JSON_OBJECT,
  TD_JSON_ARRAY,
  TD_JSON_STRING,
  TD_JSON_INTEGER,
  TD_JSON_FLOAT,
  TD_JSON_TRUE,
  TD_JSON_FALSE,
  TD_JSON_NULL,
};

typedef struct td_json {
  const char *bytes;
  size_t size, at;
  bool loose;
  td_text text; // of a string, decoded (it may hold NUL bytes), or of a number; cleared by td_json_end
  const char *error; // NULL: none
} td_json;

// Reads a value: all of a scalar, the opening bracket of an object or an array.
enum td_json_kind td_json_value(td_json *json);
// After the opening bracket of an object, and after each value in it: true: a key was read into text, its value
// follows; false: the object ended, or error is set. first: no value was read yet.
bool td_json_key(td_json *json, bool first);
bool td_json_element(td_json *json, bool first); // of an array: true: a value follows
bool td_json_end(td_json *json); // frees text; false: no error so far, but more than space follows
// As a string of JSON; bytes that are no UTF-8 become U+FFFD.
void td_json_quote(td_text *out, const char *bytes, size_t length, bool ascii);
#endif
