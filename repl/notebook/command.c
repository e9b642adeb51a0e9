// Finds the row of a % command and runs it; ! lines go to the shell, ? lines to help. Rows live in the command_*.c of
// their topic.
#include "repl/notebook/command.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "repl/notebook/commands.h"

static const td_command_row *const topics[] = {td_commands_time,    td_commands_session, td_commands_inspect,
                                               td_commands_trouble, td_commands_debug,   td_commands_plot,
                                               td_commands_pause,   td_commands_undo};

const td_command_row *td_command_at(int index) {
  for (size_t t = 0; t < sizeof topics / sizeof *topics; t++)
    for (const td_command_row *row = topics[t]; row->name; row++)
      if (index-- == 0) return row;
  return NULL;
}

static const td_command_row *find(const char *name, size_t length) {
  const td_command_row *row;
  for (int i = 0; (row = td_command_at(i)); i++)
    if (strlen(row->name) == length && memcmp(row->name, name, length) == 0) return row;
  return NULL;
}

static td_value unknown(td_interpreter *I, const char *name, size_t length) {
  td_list *names = td_list_new(I, 16);
  const td_command_row *row;
  for (int i = 0; names && (row = td_command_at(i)); i++) {
    td_value item = td_from(td_str_from(I, row->name));
    td_list_append(I, names, item);
    td_unref(item);
  }
  char word[64];
  snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), name);
  const char *near = names ? td_suggest(word, names) : NULL;
  td_raise(I, TD_CLASS_NAME_ERROR, "there is no command %%%s", word);
  if (near) td_raise_hint(I, "did you mean %%%s? %%help lists all commands", near);
  else td_raise_hint(I, "%%help lists all commands");
  td_unref(td_from(names));
  return TD_NIL;
}

static td_value run_row(td_interpreter *I, const char *line) {
  while (*line == '%' || *line == ' ') line++;
  size_t length = 0;
  while (isalnum((unsigned char)line[length]) || line[length] == '_') length++;
  const td_command_row *row = find(line, length);
  if (!row) return unknown(I, line, length);
  const char *arguments = line + length;
  while (*arguments == ' ' || *arguments == '\t') arguments++;
  return row->run(I, arguments);
}

td_value td_command_run(td_interpreter *I, char kind, const char *line) {
  if (kind == '!') return td_shell_run(I, line);
  if (kind == '?') return td_help_show(I, line);
  return run_row(I, line);
}
