// %run, %reset, %history, %save, %pwd, %cd, %seed, %help: the session itself.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/notebook/commands.h"
#include "repl/notebook/deck.h"

// ---- shared by all commands ----

void td_output_text(td_interpreter *I, td_text *text) {
  if (text->data) td_output(I, 1, text->data, text->length);
  td_text_clear(text);
}

void td_output_raised(td_interpreter *I) {
  td_value exception = td_take_raised(I);
  td_text text = {0};
  td_diagnose(I, exception, &text);
  td_unref(exception);
  td_output_text(I, &text);
}

td_value td_call_library(td_interpreter *I, const char *name, int count, td_value *values) {
  td_str *word = td_str_intern(I, name, strlen(name));
  td_value function = word ? td_builtin_find(I, word) : TD_NIL;
  td_unref(td_from(word));
  if (td_is_nil(function))
    return td_is_nil(I->raised) ? td_raise(I, TD_CLASS_NAME_ERROR, "the library has no %s", name) : TD_NIL;
  td_value result = td_call_values(I, function, count, values);
  td_unref(function);
  return result;
}

static td_value take_global(td_interpreter *I, td_module *module, const char *name) {
  td_str *word = td_str_intern(I, name, strlen(name));
  td_global *global = word ? td_module_global(I, module, word) : NULL;
  td_value value = global ? global->value : TD_NIL;
  if (global) global->value = TD_NIL;
  if (word) td_unref(td_from(word));
  return value;
}

static bool is_expression(td_interpreter *I, const char *text) {
  td_text enclosed = {0};
  td_text_print(&enclosed, "(%s\n)", text);
  bool complete = enclosed.data && *text && td_check_complete(I, enclosed.data, enclosed.length) == TD_PARSED;
  td_text_clear(&enclosed);
  return complete;
}

td_value td_evaluate_in(td_interpreter *I, td_module *module, const char *text, const char *name) {
  td_text wrapped = {0};
  bool expression = is_expression(I, text);
  if (expression) td_text_print(&wrapped, "_tapedeck_value_ = \\\n%s\n", text); // an error shows the line of text alone
  if (wrapped.failed) return td_text_clear(&wrapped), td_raise_memory(I);
  const char *code = expression ? wrapped.data : text;
  td_run_result result = td_run_module(I, module, code, strlen(code), name, "");
  td_text_clear(&wrapped);
  if (result != TD_RUN_DONE) return TD_NIL;
  return expression ? take_global(I, module, "_tapedeck_value_") : TD_NONE;
}

td_value td_evaluate_text(td_interpreter *I, const char *text, const char *name) {
  return td_evaluate_in(I, I->main, text, name);
}

// ---- %run ----

static td_value run_cells(td_interpreter *I, const char *path, const td_deck *deck) {
  for (int i = 0; i < deck->count; i++) {
    if (deck->cells[i].markdown) continue;
    td_text text = {0};
    for (int line = 0; line < deck->cells[i].line; line++)
      td_text_add_char(&text, '\n'); // so that places name the file's lines
    td_text_add_bytes(&text, deck->cells[i].text, deck->cells[i].length);
    td_run_result result =
        text.failed ? TD_RUN_FAILED : td_run_module(I, I->main, text.data, text.length, path, deck->folder);
    if (text.failed) td_raise_memory(I);
    td_text_clear(&text);
    if (result != TD_RUN_DONE) return TD_NIL;
  }
  return TD_NONE;
}

static td_value run_run(td_interpreter *I, const char *path) {
  td_deck deck;
  if (!*path) return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%run needs a deck");
  if (td_deck_read(I->context, path, &deck) != TD_OK) return td_raise_engine(I);
  td_value result = run_cells(I, path, &deck);
  td_deck_clear(&deck);
  return result;
}

static td_value run_reset(td_interpreter *I, const char *arguments) {
  (void)arguments;
  for (int i = 0; i < I->main->count; i++) {
    td_global *global = I->main->globals[i];
    if (global->name->data[0] == '_' && global->name->data[1] == '_') continue;
    td_value value = global->value;
    global->value = TD_NIL;
    td_unref(value);
  }
  td_unref(I->last);
  I->last = TD_NIL;
  td_collect(I);
  return TD_NONE;
}

// ---- %history, %save: the cells that ran, which the session keeps in the builtin list In ----

static td_list *cells_of(td_interpreter *I) {
  td_str *name = td_str_intern(I, "In", 2);
  td_value cells = name ? td_builtin_find(I, name) : TD_NIL;
  if (name) td_unref(td_from(name));
  if (td_is(cells, &td_list_type)) return td_as_list(cells);
  td_unref(cells);
  return NULL;
}

static td_value run_history(td_interpreter *I, const char *pattern) {
  td_list *cells = cells_of(I);
  td_text text = {0};
  for (int64_t i = 0; cells && i < cells->count; i++) {
    const char *cell = td_as_str(cells->items[i])->data;
    if (*cell && strstr(cell, pattern)) td_text_print(&text, "[%lld]> %s\n", (long long)i, cell);
  }
  td_unref(td_from(cells));
  td_output_text(I, &text);
  return TD_NONE;
}

static td_value run_save(td_interpreter *I, const char *path) {
  if (!*path) return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%save needs a file name");
  td_list *cells = cells_of(I);
  td_text text = {0};
  for (int64_t i = 0; cells && i < cells->count; i++) {
    const char *cell = td_as_str(cells->items[i])->data;
    if (*cell && *cell != '%' && *cell != '!' && *cell != '?') td_text_print(&text, "# %%%%\n%s\n\n", cell);
  }
  td_unref(td_from(cells));
  int code = text.failed ? td_error_memory(I->context, "a deck", (int64_t)text.length)
                         : td_file_save(I->context, path, text.data ? text.data : "", text.length);
  td_text_clear(&text);
  return code == TD_OK ? TD_NONE : td_raise_engine(I);
}

// ---- folders, seed, help ----

static td_value run_pwd(td_interpreter *I, const char *arguments) {
  (void)arguments;
  char folder[4096];
  if (!getcwd(folder, sizeof folder)) return td_raise(I, TD_CLASS_OS_ERROR, "%%pwd: %s", strerror(errno));
  td_text text = {0};
  td_text_print(&text, "%s\n", folder);
  td_output_text(I, &text);
  return TD_NONE;
}

static td_value run_cd(td_interpreter *I, const char *folder) {
  const char *home = getenv("HOME");
  if (!*folder && home) folder = home;
  if (chdir(folder)) return td_raise(I, TD_CLASS_OS_ERROR, "%%cd %s: %s", folder, strerror(errno));
  return TD_NONE;
}

static td_value run_seed(td_interpreter *I, const char *number) {
  char *end;
  long long seed = strtoll(number, &end, 0);
  if (!*number || *end) return td_raise(I, TD_CLASS_VALUE_ERROR, "%%seed needs an integer");
  td_context_set_random(I->context, (uint64_t)seed, 0, 0);
  return TD_NONE;
}

static td_value run_set(td_interpreter *I, const char *setting) { // the screen takes it before it comes here
  (void)setting;
  return td_raise(I, TD_CLASS_RUNTIME_ERROR, "%%set is for the screen, typed at its prompt: there is none here");
}

static td_value run_help(td_interpreter *I, const char *name) { return td_help_show(I, name); }

const td_command_row td_commands_session[] = {
    {"run", "%run FILE.deck", run_run, "Runs a deck in this session."},
    {"reset", "%reset", run_reset, "Forgets all names of this session."},
    {"history", "%history [WORD]", run_history, "The cells of this session, those with WORD in them."},
    {"save", "%save FILE.deck", run_save, "Writes the cells of this session as a deck."},
    {"pwd", "%pwd", run_pwd, "The current folder."},
    {"cd", "%cd [FOLDER]", run_cd, "Changes the current folder."},
    {"seed", "%seed N", run_seed, "Starts the random numbers anew."},
    {"set", "%set SETTING VALUE", run_set,
     "How the screen looks and behaves: theme dark, light or mono; glyphs braille, block, half or ascii; mouse on or "
     "off; editing emacs or vi."},
    {"help", "%help [NAME]", run_help, "Help on a name; without one, this overview."},
    {NULL, NULL, NULL, NULL}};
