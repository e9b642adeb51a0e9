// See request.h.
#include "repl/screen/request.h"
#include <string.h>

const td_request_row td_request_rows[TD_REQUEST_COUNT] = {
    {"", "", "", -1},
#define X(NAME, context, keys, help) {#NAME, keys, help, TD_IN_##context},
    TD_REQUESTS(X)
#undef X
};

// The which-th word of a row's keys; each is one key, or two joined by "_".
static bool nth_word(const char *keys, int which, const char **word, size_t *length) {
  for (; *keys; which--) {
    *word = keys;
    *length = strcspn(keys, " ");
    if (!which) return true;
    keys += *length;
    keys += strspn(keys, " ");
  }
  return false;
}

static const char *join_in(const char *word, size_t length) { // the "_" between two keys
  const char *at = length > 2 ? memchr(word + 1, '_', length - 2) : NULL;
  return at;
}

static bool equal(const td_key *a, const td_key *b) {
  return a->code == b->code && a->modifiers == b->modifiers;
}

typedef enum match { NO_MATCH, FIRST_OF_TWO, MATCH } match;

static match matches(const char *word, size_t length, const td_key *key, const td_key *prefix) {
  const char *join = join_in(word, length);
  td_key first, second;
  if (!join) {
    if (prefix->code || !td_key_parse(word, length, &first)) return NO_MATCH;
    return equal(&first, key) ? MATCH : NO_MATCH;
  }
  if (!td_key_parse(word, (size_t)(join - word), &first)) return NO_MATCH;
  if (!td_key_parse(join + 1, length - (size_t)(join + 1 - word), &second)) return NO_MATCH;
  if (!prefix->code) return equal(&first, key) ? FIRST_OF_TWO : NO_MATCH;
  return equal(&first, prefix) && equal(&second, key) ? MATCH : NO_MATCH;
}

static enum td_request find_in(const td_key *key, int context, const td_key *prefix, bool *pending) {
  const char *word;
  size_t length;
  for (int i = 1; i < TD_REQUEST_COUNT; i++) {
    if (td_request_rows[i].context != context) continue;
    for (int which = 0; nth_word(td_request_rows[i].keys, which, &word, &length); which++) {
      match m = matches(word, length, key, prefix);
      if (m == MATCH) return (enum td_request)i;
      if (m == FIRST_OF_TWO) *pending = true;
    }
  }
  return TD_REQUEST_NONE;
}

enum td_request td_request_find(const td_key *key, enum td_context_kind context, td_key *prefix, bool *pending) {
  const int contexts[] = {(int)context, context > TD_IN_PANE ? TD_IN_PANE : TD_IN_ANY, TD_IN_ANY};
  *pending = false;
  enum td_request found = TD_REQUEST_NONE;
  for (int i = 0; i < 3 && !found; i++) found = find_in(key, contexts[i], prefix, pending);
  *prefix = !found && *pending ? *key : (td_key){0};
  if (found) *pending = false;
  return found;
}

bool td_request_keys(enum td_request request, int which, td_text *text) {
  const char *word;
  size_t length;
  td_key key;
  if (!nth_word(td_request_rows[request].keys, which, &word, &length)) return false;
  const char *join = join_in(word, length);
  size_t first = join ? (size_t)(join - word) : length;
  if (td_key_parse(word, first, &key)) td_key_print(&key, text);
  if (!join) return true;
  td_text_add_char(text, ' ');
  if (td_key_parse(join + 1, length - first - 1, &key)) td_key_print(&key, text);
  return true;
}
