// See complete.h.
#include "repl/notebook/complete.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/language/tensors.h"
#include "repl/language/token.h"
#include "repl/notebook/command.h"
#include "repl/notebook/lookup.h"

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80; }

// ---- gathering ----

static void add(td_completion *c, const char *before, const char *name, const char *after, const char *prefix) {
  if (strncmp(name, prefix, strlen(prefix)) != 0 || (name[0] == '_' && prefix[0] != '_')) return;
  for (int i = 0; i < c->count; i++)
    if (strcmp(c->words[i] + strlen(before), name) == 0) return;
  char **grown = td_memory_resize(c->words, ((size_t)c->count + 2) * sizeof *grown);
  if (!grown) return;
  c->words = grown;
  td_text text = {0};
  td_text_print(&text, "%s%s%s", before, name, after);
  char *word = td_text_take(&text);
  if (!word) return;
  c->words[c->count++] = word;
  c->words[c->count] = NULL;
}

static void add_list(td_completion *c, const char *before, const td_list *names, const char *prefix) {
  for (int64_t i = 0; i < names->count; i++)
    if (td_is(names->items[i], &td_str_type)) add(c, before, td_as_str(names->items[i])->data, "", prefix);
}

static void add_attributes(td_interpreter *I, td_completion *c, const char *before, td_value v, const char *prefix) {
  const td_type *type = td_type_of(v);
  for (const td_method *row = type->methods; row && row->name; row++) add(c, before, row->name, "", prefix);
  if (!type->names) return;
  td_list *names = td_list_new(I, 32);
  if (!names) return;
  type->names(I, v, names);
  add_list(c, before, names, prefix);
  td_unref(td_from(names));
}

// ---- the call that is typed ----

static size_t next_of_code(const char *line, size_t length, size_t at) { // behind a character, a string or a comment
  char first = line[at++];
  if (first == '#') {
    while (at < length && line[at] != '\n') at++;
  } else if (first == '"' || first == '\'') {
    while (at < length && line[at] != first) at += line[at] == '\\' ? 2 : 1;
    at++;
  }
  return at < length ? at : length;
}

static size_t name_before(const char *line, size_t end) { // where it begins
  while (end > 0 && (is_word(line[end - 1]) || line[end - 1] == '.')) end--;
  return end;
}

td_open_call td_find_open_call(const char *line, size_t length) {
  enum { DEPTH_MOST = 64 };
  td_open_call open[DEPTH_MOST + 1] = {0}; // of every bracket that is open; beyond the most they aren't told apart
  int depth = 0;
  for (size_t at = 0; at < length; at = next_of_code(line, length, at)) {
    td_open_call *call = &open[depth < DEPTH_MOST ? depth : DEPTH_MOST];
    if (strchr("([{", line[at])) {
      size_t name = line[at] == '(' ? name_before(line, at) : at;
      open[++depth < DEPTH_MOST ? depth : DEPTH_MOST] = (td_open_call){name, at - name, at + 1, at + 1, 0};
    } else if (strchr(")]}", line[at])) depth -= depth > 0;
    else if (line[at] == ',') {
      call->argument = at + 1;
      call->before++;
    }
  }
  return depth && depth <= DEPTH_MOST ? open[depth] : (td_open_call){0};
}

static size_t name_of_argument(const char *line, size_t at) { // the length of NAME in "NAME=..."; 0: it has none
  size_t length = 0;
  while (is_word(line[at + length])) length++;
  return line[at + length] == '=' && line[at + length + 1] != '=' ? length : 0;
}

enum { NO_PLACE = -1 }; // of a parameter that is given by name only

// Whether the call has a parameter already, the number-th of its signature, by place or by name.
static bool is_given(const char *line, const td_open_call *call, const char *name, int number) {
  size_t size = strlen(name), begin = call->open;
  for (int i = 0; i < call->before; i++) {
    begin += strspn(line + begin, " \t\n");
    size_t named = name_of_argument(line, begin);
    if (named ? named == size && memcmp(line + begin, name, size) == 0 : i == number) return true;
    int depth = 0;
    for (; begin < call->argument && (depth || line[begin] != ','); begin = next_of_code(line, call->argument, begin)) {
      if (strchr("([{", line[begin])) depth++;
      if (strchr(")]}", line[begin])) depth--;
    }
    begin++;
  }
  return false;
}

static void add_parameter(td_completion *c, const td_open_call *call, const char *name, int number,
                          const char *prefix) {
  if (!is_given(c->line, call, name, number)) add(c, "", name, "=", prefix);
}

static void add_parameters_of_op(td_completion *c, const td_open_call *call, const td_op *op, const char *prefix) {
  for (int i = 0; i < TD_PARAM_MAX && op->params[i].kind != TD_PARAM_END; i++)
    add_parameter(c, call, op->params[i].name, i, prefix);
}

static void add_parameters(td_completion *c, const td_open_call *call, td_value callee, const char *prefix) {
  if (td_is(callee, &td_class_type)) {
    for (td_class *class = (td_class *)callee.o; class; class = class->base) {
      int64_t position = 0;
      td_value key, value;
      while (td_dict_next(class->attributes, &position, &key, &value))
        if (td_is(key, &td_str_type) && strcmp(td_as_str(key)->data, "__init__") == 0) {
          add_parameters(c, call, value, prefix);
          return;
        }
    }
  }
  if (td_is(callee, &td_function_type)) {
    const td_prototype *prototype = ((td_function *)callee.o)->prototype;
    bool method = prototype->positional && strcmp(prototype->parameters[0].name->data, "self") == 0;
    for (int i = method; i < prototype->positional + prototype->keyword_only; i++)
      add_parameter(c, call, prototype->parameters[i].name->data, i < prototype->positional ? i - method : NO_PLACE,
                    prefix);
  }
  if (td_is(callee, &td_op_type)) add_parameters_of_op(c, call, ((td_op_value *)callee.o)->op, prefix);
  if (td_is(callee, &td_builtin_type)) {
    const td_signature *signature = ((td_builtin *)callee.o)->signature;
    for (int i = 0; signature && i < signature->positional + signature->keyword_only; i++)
      add_parameter(c, call, signature->names[i]->data, i < signature->positional ? i : NO_PLACE, prefix);
    const td_op *op = signature && signature->double_star ? td_op_find(((td_builtin *)callee.o)->row->name) : NULL;
    if (op) add_parameters_of_op(c, call, op, prefix); // what sum and max pass on to the op
  }
}

// ---- where the cursor is ----

static bool in_string(const char *line, size_t length, size_t *start) {
  char quote = 0;
  for (size_t i = 0; i < length; i++) {
    if (quote && line[i] == '\\') i++;
    else if (quote && line[i] == quote) quote = 0;
    else if (!quote && (line[i] == '"' || line[i] == '\'')) {
      quote = line[i];
      *start = i + 1;
    } else if (!quote && line[i] == '#') return false;
  }
  return quote != 0;
}

static void complete_command(td_completion *c, size_t at) {
  c->start = at;
  const td_command_row *row;
  char *prefix = td_memory_text(c->line + at + 1);
  if (!prefix) return;
  prefix[c->length - at - 1] = 0;
  for (int i = 0; (row = td_command_at(i)); i++) add(c, "%", row->name, "", prefix);
  td_memory_free(prefix);
}

static bool is_plot(const char *command) { return strncmp(command, "%plot ", 6) == 0; }

static void complete_curve(const td_interpreter *I, td_completion *c, const char *prefix) { // one that is a word
  for (int i = 0; i < td_curve_count(I); i++) {
    const char *name = td_curve_at(I, i)->name;
    size_t length = 0;
    while (is_word(name[length])) length++;
    if (!name[length]) add(c, "", name, "", prefix);
  }
}

static bool is_refused(int keyword) { // a word of Python's that this language does not have
  return keyword == TD_TOKEN_ASYNC || keyword == TD_TOKEN_AWAIT || keyword == TD_TOKEN_YIELD;
}

static void complete_argument(td_interpreter *I, td_completion *c, const char *prefix) { // the name of one
  td_open_call call = td_find_open_call(c->line, c->start);
  if (!call.length || call.argument + strspn(c->line + call.argument, " \t\n") < c->start) return;
  td_value callee = td_lookup_path(I, c->line + call.callee, call.length);
  add_parameters(c, &call, callee, prefix);
  td_unref(callee);
}

static void complete_name(td_interpreter *I, td_completion *c, const char *prefix) {
  complete_argument(I, c, prefix);
  c->arguments = c->count;
  if (c->count && !*prefix) return; // nothing is typed yet: the parameters are the news
  for (int i = 0; i < I->main->count; i++)
    if (!td_is_nil(I->main->globals[i]->value)) add(c, "", I->main->globals[i]->name->data, "", prefix);
  for (int kind = TD_TOKEN_FALSE; kind < TD_TOKEN_COUNT; kind++)
    if (!is_refused(kind)) add(c, "", td_token_rows[kind].spelling, "", prefix);
  td_list *names = td_list_new(I, 256);
  if (!names) return;
  td_builtin_names(I, names);
  add_list(c, "", names, prefix);
  td_unref(td_from(names));
}

static void complete_attribute(td_interpreter *I, td_completion *c, size_t dot, const char *prefix) {
  char *before = td_memory_new(dot - c->start + 2);
  if (!before) return;
  memcpy(before, c->line + c->start, dot - c->start + 1);
  before[dot - c->start + 1] = 0;
  td_value v = td_lookup_path(I, c->line + c->start, dot - c->start);
  if (!td_is_nil(v)) add_attributes(I, c, before, v, prefix);
  td_unref(v);
  td_memory_free(before);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void td_complete(td_interpreter *I, void *argument) {
  td_completion *c = argument;
  c->words = NULL;
  c->count = c->arguments = 0;
  c->files = in_string(c->line, c->length, &c->start);
  size_t first = strspn(c->line, " \t");
  if (!c->files && c->line[first] == '!') c->files = true;
  if (c->files) return;
  size_t at = c->length;
  while (at > 0 && (is_word(c->line[at - 1]) || c->line[at - 1] == '.')) at--;
  if (at > 0 && at - 1 == first && c->line[first] == '%') {
    complete_command(c, first);
    return;
  }
  c->start = at;
  size_t dot = c->length;
  while (dot > at && c->line[dot - 1] != '.') dot--;
  char *prefix = td_memory_new(c->length - at + 1);
  if (!prefix) return;
  size_t from = dot > at ? dot : at;
  memcpy(prefix, c->line + from, c->length - from);
  prefix[c->length - from] = 0;
  if (is_plot(c->line + first)) complete_curve(I, c, prefix);
  else if (dot > at) complete_attribute(I, c, dot - 1, prefix);
  else complete_name(I, c, prefix);
  td_memory_free(prefix);
  td_clear_raised(I);
  size_t others = (size_t)(c->count - c->arguments);
  if (others) qsort(c->words + c->arguments, others, sizeof *c->words, by_text);
}

void td_completion_clear(td_completion *c) {
  for (int i = 0; i < c->count; i++) td_memory_free(c->words[i]);
  td_memory_free(c->words);
  c->words = NULL;
  c->count = 0;
}

// ---- what a word stands for ----

static void add_sentence(td_text *text, const char *doc) { // the first one
  size_t length = strcspn(doc, "\n");
  const char *end = doc;
  while ((end = strchr(end, '.')) && (size_t)(end - doc) < length && end[1] != ' ' && end[1] != '\n' && end[1]) end++;
  if (end && (size_t)(end - doc) < length) length = (size_t)(end - doc);
  td_text_add_bytes(text, doc, length);
}

static void add_detail(td_interpreter *I, td_value v, td_text *text) {
  const td_tensor *t = td_tensor_of(v);
  if (t) {
    td_text_print(text, "%s ", td_type_name(I, v));
    td_meta_print(text, t->dtype, t->rank, t->shape);
  } else if (td_is(v, &td_op_type)) {
    add_sentence(text, ((td_op_value *)v.o)->op->doc);
  } else if (td_is(v, &td_builtin_type)) {
    const char *doc = ((td_builtin *)v.o)->row->doc;
    if (doc) add_sentence(text, doc);
  } else if (td_is(v, &td_function_type)) {
    const td_str *doc = ((td_function *)v.o)->prototype->doc;
    if (doc) add_sentence(text, doc->data);
    else td_text_add(text, "function");
  } else if (td_is(v, &td_class_type)) {
    const td_str *doc = ((td_class *)v.o)->doc;
    if (doc) add_sentence(text, doc->data);
    else td_text_add(text, "class");
  } else {
    td_text_add(text, td_type_name(I, v));
  }
}

char *td_complete_detail(td_interpreter *I, const char *word) {
  size_t length = strlen(word);
  td_text text = {0};
  const td_command_row *row;
  if (*word == '%') {
    for (int i = 0; (row = td_command_at(i)); i++)
      if (strcmp(row->name, word + 1) == 0) add_sentence(&text, row->doc);
  } else if (length && word[length - 1] != '=') {
    td_value v = td_lookup_path(I, word, length);
    if (!td_is_nil(v)) add_detail(I, v, &text);
    td_unref(v);
    td_clear_raised(I);
  }
  if (text.length) return td_text_take(&text);
  td_text_clear(&text);
  return NULL;
}
