// See entry.h.
#include "repl/notebook/entry.h"
#include <string.h>

bool td_entry_leaves(const char *entry) { return strcmp(entry, "exit") == 0 || strcmp(entry, "quit") == 0; }

typedef struct question { const char *text; size_t length; td_parse_result result; } question;

static void check(td_interpreter *I, void *argument) {
  question *q = argument;
  q->result = td_check_complete(I, q->text, q->length);
}

static td_parse_result parsed(td_session *session, const td_text *text) {
  question q = {text->data, text->length, TD_PARSE_ERROR};
  td_session_ask(session, check, &q);
  return q.result;
}

static bool is_blank(const char *line) { return line[strspn(line, " \t\r")] == 0; }

bool td_entry_is_parsed(td_session *session, const td_text *text) { return parsed(session, text) == TD_PARSED; }

static const char *last_line(const char *text) {
  const char *newline = strrchr(text, '\n');
  return newline ? newline + 1 : text;
}

// Could a statement that is indented like the last line, and deeper by so much, stand under it?
static bool takes_statement(td_session *session, const td_text *text, const char *deeper) {
  const char *last = last_line(text->data);
  td_text longer = {0};
  td_text_add_bytes(&longer, text->data, text->length);
  td_text_add_char(&longer, '\n');
  td_text_add_bytes(&longer, last, strspn(last, " \t"));
  td_text_add(&longer, deeper);
  td_text_add(&longer, "pass");
  bool takes = !longer.failed && parsed(session, &longer) == TD_PARSED;
  td_text_clear(&longer);
  return takes;
}

void td_entry_trim(td_text *text) {
  while (text->length && strchr(" \t\n", text->data[text->length - 1])) text->data[--text->length] = 0;
}

// An empty line also ends a block that has no statement yet.
bool td_entry_is_whole(td_session *session, const td_text *text, const char *line, bool first, bool more) {
  td_parse_result result = parsed(session, text);
  bool blank = is_blank(line) && !strchr(line, '\n');
  if (result == TD_PARSE_INCOMPLETE) {
    if (first || !blank || more) return false;
    td_text before = {0};
    td_text_add_bytes(&before, text->data, text->length);
    td_entry_trim(&before);
    bool empty_block = before.data && takes_statement(session, &before, "    ");
    td_text_clear(&before);
    return empty_block;
  }
  if (result != TD_PARSED || first || strchr(line, '\n')) return true;
  if (blank) return !more;
  return !(strchr(" \t", *last_line(text->data)) && takes_statement(session, text, ""));
}

static bool ends_block(const char *line) {
  static const char *const words[] = {"return", "break", "continue", "pass", "raise"};
  line += strspn(line, " \t");
  size_t length = strcspn(line, " \t(");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == length && strncmp(line, words[i], length) == 0) return true;
  return false;
}

// The last line's white space, four more where a block opens, four less after return and the like.
void td_entry_indent(td_session *session, const td_text *text, char indent[TD_ENTRY_INDENT_MOST]) {
  const char *line = last_line(text->data);
  size_t width = strspn(line, " \t");
  if (width > TD_ENTRY_INDENT_MOST - 8) width = TD_ENTRY_INDENT_MOST - 8;
  memcpy(indent, line, width);
  indent[width] = 0;
  if (parsed(session, text) == TD_PARSE_INCOMPLETE && takes_statement(session, text, "    ")) strcat(indent, "    ");
  else if (ends_block(line) && width >= 4) indent[width - 4] = 0;
}
