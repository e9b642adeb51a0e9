// %undo: takes training steps back; what that needs is kept by undo.deck of the library.
#include <stdlib.h>
#include <string.h>
#include "repl/notebook/commands.h"

static td_value wrong(td_interpreter *I, const char *arguments) {
  return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%undo takes a number of steps, on, on N, or off, not %.60s", arguments);
}

static td_value call_dropping(td_interpreter *I, const char *function, int count, td_value *values) {
  td_value result = td_call_library(I, function, count, values);
  if (td_is_nil(result)) return TD_NIL;
  td_unref(result);
  return TD_NONE;
}

static td_value show_state(td_interpreter *I) {
  td_text text = {0};
  td_value state = td_call_library(I, "undo_state", 0, NULL);
  bool ok = !td_is_nil(state) && td_print(I, state, &text);
  td_unref(state);
  td_text_add_char(&text, '\n');
  if (ok) td_output_text(I, &text);
  td_text_clear(&text);
  return ok ? TD_NONE : TD_NIL;
}

static td_value run_undo(td_interpreter *I, const char *arguments) {
  if (!*arguments) return show_state(I);
  if (strcmp(arguments, "off") == 0) return call_dropping(I, "undo_off", 0, NULL);
  bool on = strncmp(arguments, "on", 2) == 0 && (!arguments[2] || arguments[2] == ' ');
  const char *number = arguments + (on ? 2 : 0);
  number += strspn(number, " ");
  if (on && !*number) return call_dropping(I, "undo_on", 0, NULL);
  char *end;
  td_value steps = td_int(strtoll(number, &end, 10));
  if (*end) return wrong(I, arguments);
  return call_dropping(I, on ? "undo_on" : "undo", 1, &steps);
}

const td_command_row td_commands_undo[] = {
    {"undo", "%undo N | on [N] | off", run_undo,
     "Takes the last N training steps back, to the bit: Variables, optimizers, random state, places in datasets. %undo "
     "on "
     "keeps the steps from here on, the last 20 or N; each costs the memory of what it changed. ?undo says what is "
     "left as it is."},
    {NULL, NULL, NULL, NULL}};
