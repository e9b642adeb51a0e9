// ?name, name? and name??: help pages made from what the thing itself carries: an op's row, a builtin's row, a docstring. Names are
// looked up without running code.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/commands.h"

// ---- pages ----

static void lines_print(td_text *text, const char *lines) {
  td_text_add(text, lines);
  if (*lines && lines[strlen(lines) - 1] != '\n') td_text_add_char(text, '\n');
}

static const char *gradient_state(const td_op *op) { return op->vjp ? "differentiable, to any order" : op->no_gradient; }

static void op_page(const td_op *op, bool source, td_text *text) {
  td_op_signature(op, text);
  td_text_add(text, "\n\n");
  lines_print(text, op->doc);
  td_text_print(text, "\ngradient: %s\n", gradient_state(op));
  if (op->source) td_text_print(text, "formula: %s\n", op->source);
  if (source && op->expression) td_text_print(text, "expression: %s\n", op->expression);
  if (op->example) {
    td_text_add(text, "\nexample:\n");
    for (const char *line = op->example; *line;) {
      size_t length = strcspn(line, "\n");
      td_text_print(text, "  %.*s\n", (int)length, line);
      line += length + (line[length] == '\n');
    }
  }
}

static void method_page(const td_method *row, td_text *text) {
  td_text_print(text, "%s%s\n\n", row->name, row->signature);
  lines_print(text, row->doc ? row->doc : "");
}

static void span_print(const td_prototype *prototype, td_text *text) {
  uint32_t begin = prototype->span.begin, end = prototype->span.end;
  const char *source = prototype->script->text;
  while (begin > 0 && source[begin - 1] != '\n') begin--;
  while (end > begin && (source[end - 1] == '\n' || source[end - 1] == ' ')) end--;
  td_text_add_bytes(text, source + begin, end - begin);
  td_text_add_char(text, '\n');
}

// The header of a definition: up to the colon that ends it, which is the last one before the body.
static void header_print(const td_prototype *prototype, td_text *text) {
  const char *source = prototype->script->text;
  uint32_t begin = prototype->span.begin, end = prototype->body->begin;
  while (end > begin && source[end - 1] != ':') end--;
  if (end > begin) end--;
  td_text_add_bytes(text, source + begin, end - begin);
  td_text_add_char(text, '\n');
}

static void place_print(const td_prototype *prototype, td_text *text) {
  int line, column;
  td_source_position(prototype->script, prototype->span.begin, &line, &column);
  td_text_print(text, "\ndefined at %s:%d\n", prototype->script->name, line);
}

static void function_page(const td_function *function, bool source, td_text *text) {
  if (source) {
    span_print(function->prototype, text);
    return;
  }
  header_print(function->prototype, text);
  if (function->prototype->doc) {
    td_text_add_char(text, '\n');
    lines_print(text, function->prototype->doc->data);
  }
  place_print(function->prototype, text);
}

static const td_function *first_function(td_class *class) {
  int64_t position = 0;
  td_value key, value;
  while (td_dict_next(class->attributes, &position, &key, &value))
    if (td_is(value, &td_function_type)) return (const td_function *)value.o;
  return NULL;
}

// The text of a class statement: from the line "class NAME" above its first method to the end of its block.
static bool class_source(td_class *class, td_text *text) {
  const td_function *function = first_function(class);
  if (!function) return false;
  const char *source = function->prototype->script->text, *at = source + function->prototype->span.begin;
  char head[80];
  int length = snprintf(head, sizeof head, "class %.70s", class->name->data);
  while (at > source && strncmp(at, head, (size_t)length) != 0) at--;
  if (strncmp(at, head, (size_t)length) != 0) return false;
  const char *end = strchr(at, '\n');
  while (end && (end[1] == ' ' || end[1] == '\t' || end[1] == '\n')) end = strchr(end + 1, '\n');
  size_t bytes = end ? (size_t)(end - at) : strlen(at);
  while (bytes && at[bytes - 1] == '\n') bytes--;
  td_text_add_bytes(text, at, bytes);
  td_text_add_char(text, '\n');
  return true;
}

static void class_methods(td_class *class, td_text *text) {
  int64_t position = 0;
  td_value key, value;
  while (class->attributes && td_dict_next(class->attributes, &position, &key, &value)) {
    if (!td_is(value, &td_function_type) || td_as_str(key)->data[0] == '_') continue;
    const td_function *function = (const td_function *)value.o;
    td_text_add(text, "  ");
    header_print(function->prototype, text);
  }
}

static void class_page(td_class *class, bool source, td_text *text) {
  if (source && class_source(class, text)) return;
  td_text_print(text, "class %s%s%s%s\n", class->name->data, class->base ? "(" : "", class->base ? class->base->name->data : "",
                class->base ? ")" : "");
  if (class->doc) {
    td_text_add_char(text, '\n');
    lines_print(text, class->doc->data);
  }
  td_text methods = {0};
  class_methods(class, &methods);
  if (methods.length) td_text_print(text, "\nmethods:\n%s", methods.data);
  td_text_clear(&methods);
}

static void type_page(td_interpreter *I, td_value v, td_text *text) {
  const td_type *type = td_type_of(v);
  const td_tensor *t = td_tensor_of(v);
  td_text_print(text, "%s", td_type_name(I, v));
  if (t) {
    td_text_add(text, "  ");
    td_meta_print(text, t->dtype, t->rank, t->shape);
  }
  td_text_add(text, "\n");
  if (type->doc) {
    td_text_add_char(text, '\n');
    lines_print(text, type->doc);
  }
  for (const td_method *row = type->methods; row && row->name; row++) {
    if (row == type->methods) td_text_add(text, "\nmethods:\n");
    if (row->name[0] != '_') td_text_print(text, "  %s%s\n", row->name, row->signature);
  }
}

static void page(td_interpreter *I, td_value v, bool source, td_text *text) {
  if (td_is(v, &td_bound_type)) page(I, ((td_bound *)v.o)->function, source, text);
  else if (td_is(v, &td_op_type)) op_page(((td_op_value *)v.o)->op, source, text);
  else if (td_is(v, &td_builtin_type)) method_page(((td_builtin *)v.o)->row, text);
  else if (td_is(v, &td_function_type)) function_page((td_function *)v.o, source, text);
  else if (td_is(v, &td_class_type)) class_page((td_class *)v.o, source, text);
  else type_page(I, v, text);
}

// ---- looking names up ----

static td_value name_value(td_interpreter *I, const char *name, size_t length) {
  td_str *word = td_str_intern(I, name, length);
  if (!word) return TD_NIL;
  td_value v = td_ref(td_module_get(I->main, word));
  if (td_is_nil(v)) v = td_builtin_find(I, word);
  td_unref(td_from(word));
  return v;
}

static td_value dotted_value(td_interpreter *I, const char *name) {
  size_t length = strcspn(name, ".");
  td_value v = name_value(I, name, length);
  for (name += length; *name == '.' && !td_is_nil(v); name += length) {
    length = strcspn(++name, ".");
    td_str *word = td_str_intern(I, name, length);
    td_value next = word ? td_attribute_find(I, v, word) : TD_NIL;
    td_unref(td_from(word));
    td_unref(v);
    v = next;
  }
  return v;
}

static td_value not_found(td_interpreter *I, const char *name) {
  td_list *names = td_list_new(I, 64);
  if (!names) return TD_NIL;
  td_builtin_names(I, names);
  for (int i = 0; i < I->main->count; i++)
    if (!td_is_nil(I->main->globals[i]->value)) td_list_append(I, names, (td_value){.tag = TD_TAG_OBJECT, .o = &I->main->globals[i]->name->object});
  const char *near = td_suggest(name, names);
  td_raise(I, TD_CLASS_NAME_ERROR, "there is no help on '%.60s': the name is not defined", name);
  if (near) td_raise_hint(I, "did you mean '%s'?", near);
  td_unref(td_from(names));
  return TD_NIL;
}

static const char overview[] =
    "tapedeck runs what you type: Python's surface over tensors and tapes.\n\n"
    "  x = tensor([[1., 2.], [3., 4.]])          a tensor; x @ x, x.sum(axis=0), x[:, 0]\n"
    "  w = Variable(2.)                          state that a tape watches\n"
    "  with GradientTape() as tape:              records what runs\n"
    "      loss = (w * x).sum()\n"
    "  tape.gradient(loss, w); tape.why(w)       the gradient, or why there is none\n\n"
    "  NAME?  NAME??                             help on a name; its source\n"
    "  Tab                                       completes names, attributes, arguments, files\n"
    "  !COMMAND                                  runs a shell command\n"
    "  Ctrl-C  Ctrl-D                            stops the running cell; leaves\n\n"
    "commands:\n";

static void overview_page(td_text *text) {
  td_text_add(text, overview);
  const td_command_row *row;
  for (int i = 0; (row = td_command_at(i)); i++) {
    size_t start = text->length;
    td_text_print(text, "  %s", row->usage);
    td_text_pad(text, start + 22, ' ');
    td_text_print(text, " %s\n", row->doc);
  }
  td_text_add(text, "\nops:\n ");
  size_t column = 1;
  for (int i = 0; i < td_op_count(); i++) {
    const td_op *op = td_op_at(i);
    if (op->flags & TD_HIDDEN) continue;
    if (column + strlen(op->name) > 90) {
      td_text_add(text, "\n ");
      column = 1;
    }
    td_text_print(text, " %s", op->name);
    column += strlen(op->name) + 1;
  }
  td_text_add_char(text, '\n');
}

// The name between the marks: "?x", "x?", "x??", "?? x". Owned by the caller; source: two marks.
static char *bare_name(const char *line, bool *source) {
  int marks = 0;
  for (const char *at = line; *at; at++) marks += *at == '?';
  *source = marks > 1;
  line += strspn(line, "? \t");
  char *name = td_memory_text(line);
  if (name) name[strcspn(name, "? \t\n(")] = 0;
  return name;
}

td_value td_help_show(td_interpreter *I, const char *line) {
  bool source;
  char *name = bare_name(line, &source);
  if (!name) return td_raise_memory(I);
  td_text text = {0};
  if (!*name) overview_page(&text);
  else if (*name == '%') {
    const td_command_row *row;
    for (int i = 0; (row = td_command_at(i)); i++)
      if (strcmp(row->name, name + 1) == 0) td_text_print(&text, "%s\n\n%s\n", row->usage, row->doc);
  } else {
    td_value v = dotted_value(I, name);
    if (!td_is_nil(v)) page(I, v, source, &text);
    td_unref(v);
  }
  td_value result = TD_NONE;
  if (!td_is_nil(I->raised)) result = TD_NIL;
  else if (!text.length) result = not_found(I, name);
  else td_output_text(I, &text);
  td_text_clear(&text);
  td_memory_free(name);
  return result;
}
