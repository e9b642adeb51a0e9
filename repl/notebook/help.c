// ?name, name? and name??: help pages made from what the thing itself carries: an op's row, a builtin's row, a
// docstring. Names are looked up without running code.
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/library/library.h"
#include "repl/notebook/commands.h"
#include "repl/notebook/help_page.h"
#include "repl/notebook/lookup.h"

enum { FACTS = 14, USAGES = 24 }; // columns

// ---- pages ----

static void alias_row(const char *const *alias, td_text *text) {
  td_text names = {0};
  for (; alias && *alias; alias++) td_text_print(&names, "%s%s", names.length ? ", " : "", *alias);
  if (names.length) td_page_row(text, "also called", names.data, FACTS);
  td_text_clear(&names);
}

static void op_page(const td_op *op, bool source, td_text *text) {
  td_text signature = {0};
  td_op_signature(op, &signature);
  td_page_title(text, signature.data ? signature.data : op->name);
  td_text_clear(&signature);
  td_page_doc(text, op->doc);
  td_text_add_char(text, '\n');
  td_page_row(text, "gradient",
              op->vjp           ? "differentiable, to any order"
              : op->no_gradient ? op->no_gradient
                                : "none",
              FACTS);
  alias_row(op->alias, text);
  if (op->source) td_page_row(text, "as in", op->source, FACTS);
  if (source && op->expression) td_page_row(text, "expression", op->expression, FACTS);
  if (op->example) td_page_example(text, op->example);
}

static void method_page(const td_builtin *builtin, td_text *text) {
  const td_method *row = builtin->row;
  td_text title = {0};
  td_text_print(&title, "%s%s%s%s", builtin->method_of ? builtin->method_of->name : "", builtin->method_of ? "." : "",
                row->name, row->signature);
  td_page_title(text, title.data ? title.data : row->name);
  td_text_clear(&title);
  td_page_doc(text, row->doc ? row->doc : "");
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
  td_text place = {0};
  td_source_position(prototype->script, prototype->span.begin, &line, &column);
  td_text_print(&place, "%s:%d", prototype->script->name, line);
  td_text_add_char(text, '\n');
  if (place.data) td_page_row(text, "defined at", place.data, FACTS);
  td_text_clear(&place);
}

// The function that a decorator's result stands for, where it says so as Python's functools.wraps does.
static const td_function *unwrapped(td_interpreter *I, const td_function *function) {
  td_str *name = td_str_intern(I, "__wrapped__", strlen("__wrapped__"));
  for (int depth = 0; name && function->attributes && depth < 20; depth++) {
    td_value inner = td_dict_get_str(function->attributes, name);
    if (!td_is(inner, &td_function_type)) break;
    function = (const td_function *)inner.o;
  }
  td_unref(td_from(name));
  return function;
}

static void function_page(td_interpreter *I, const td_function *wrapper, bool source, td_text *text) {
  const td_function *function = unwrapped(I, wrapper);
  if (source) {
    span_print(function->prototype, text);
    return;
  }
  header_print(function->prototype, text);
  if (function->prototype->doc) td_page_docstring(text, function->prototype->doc->data);
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

static void class_methods(td_interpreter *I, td_class *class, td_text *text) {
  int64_t position = 0;
  td_value key, value;
  while (class->attributes && td_dict_next(class->attributes, &position, &key, &value)) {
    if (!td_is(value, &td_function_type) || td_as_str(key)->data[0] == '_') continue;
    const td_function *function = unwrapped(I, (const td_function *)value.o);
    td_text_add(text, "  ");
    header_print(function->prototype, text);
  }
}

// The names of the methods that class has of base, one of its bases.
static void inherited_methods(td_class *class, td_class *base, td_text *text) {
  char heading[100];
  int64_t position = 0;
  td_value key, value;
  td_page_names names = {0};
  snprintf(heading, sizeof heading, "methods of %.80s", base->name->data);
  while (base->attributes && td_dict_next(base->attributes, &position, &key, &value)) {
    const td_str *name = td_as_str(key);
    if (!td_is(value, &td_function_type) || name->data[0] == '_') continue;
    if (td_class_lookup(class, td_as_str(key), NULL).o == value.o) td_page_name(text, &names, heading, name->data);
  }
  td_page_names_end(text, &names);
}

// ---- what a class is made with ----

typedef struct signature {
  td_interpreter *interpreter;
  td_text text;
  td_list *names; // those that stand there
  td_dict *settled; // an optimizer's defaults, which its constructor settles itself; NULL: none
  bool more; // the last constructor takes others by name
} signature;

static bool stands(const signature *s, td_str *name) {
  for (int64_t i = 0; i < s->names->count; i++)
    if (td_str_equal(td_as_str(s->names->items[i]), name)) return true;
  return false;
}

static void add_parameter(signature *s, td_str *name, td_value fallback, const char *mark) {
  td_value settled = s->settled && td_is_none(fallback) ? td_dict_get_str(s->settled, name) : TD_NIL;
  if (!td_is_nil(settled)) fallback = settled;
  td_text_print(&s->text, "%s%s%s", s->names->count ? ", " : "", mark, name->data);
  td_list_append(s->interpreter, s->names, td_borrow(name));
  if (td_is_nil(fallback)) return;
  td_text_add_char(&s->text, '=');
  td_repr(s->interpreter, fallback, &s->text);
}

// The parameters of a class's own __init__; those of a base (outer false) that must be given are given by the class.
static void add_own(signature *s, td_class *class, bool outer) {
  td_value init = class->attributes ? td_dict_get_str(class->attributes, s->interpreter->names->init) : TD_NIL;
  if (!td_is(init, &td_function_type)) return;
  const td_function *f = (const td_function *)init.o;
  const td_prototype *p = f->prototype;
  int32_t named = p->positional + p->keyword_only;
  for (int32_t i = 1; i < named; i++)
    if ((outer || !td_is_nil(f->fallbacks[i])) && !stands(s, p->slot_names[i]))
      add_parameter(s, p->slot_names[i], f->fallbacks[i], i == p->positional && !p->star ? "*, " : "");
  s->more = p->double_star;
  if (!s->more || class->base != s->interpreter->classes[TD_CLASS_OBJECT]) return;
  const td_str *rest = p->slot_names[named + p->star]; // a base that takes what it refuses calls it unknown
  if (strcmp(rest->data, "unknown") != 0)
    td_text_print(&s->text, "%s**%s", s->names->count ? ", " : "", rest->data);
}

static td_value class_attribute(td_interpreter *I, td_class *class, const char *text) { // borrowed
  td_str *name = td_str_intern(I, text, strlen(text));
  td_value found = name ? td_class_lookup(class, name, NULL) : TD_NIL;
  td_unref(td_from(name));
  return found;
}

// The class whose instances a recurrent layer is made of: it passes on to them what they take.
static td_class *cell_of(td_interpreter *I, td_class *class) {
  td_value found = class_attribute(I, class, "cell_class");
  return td_is_class(found) ? td_as_class(found) : NULL;
}

// Its own parameters, and those that **options hands on to its bases; false: no class on the way has an __init__.
static bool constructor_title(td_interpreter *I, td_class *class, td_text *text) {
  signature s = {.interpreter = I, .names = td_list_new(I, 8), .more = true};
  if (!s.names) return false;
  td_class *cell = cell_of(I, class);
  td_value settled = class_attribute(I, class, "_keras");
  if (td_is(settled, &td_dict_type)) s.settled = td_as_dict(settled);
  td_text_print(&s.text, "%s(", class->name->data);
  bool outer = true;
  for (td_class *at = class; at && s.more; at = at->base) {
    if (!td_is_nil(at->attributes ? td_dict_get_str(at->attributes, I->names->init) : TD_NIL)) {
      add_own(&s, at, outer);
      for (td_class *of = outer ? cell : NULL; of && !td_class_is_subclass(class, of); of = of->base)
        add_own(&s, of, false);
      outer = false;
    }
  }
  td_text_add_char(&s.text, ')');
  if (!outer && s.text.data) td_page_title(text, s.text.data);
  td_text_clear(&s.text);
  td_unref(td_from(s.names));
  return !outer;
}

static void class_page(td_interpreter *I, td_class *class, bool source, td_text *text) {
  if (source && class_source(class, text)) return;
  constructor_title(I, class, text);
  td_text_print(text, "class %s%s%s%s\n", class->name->data, class->base ? "(" : "",
                class->base ? class->base->name->data : "", class->base ? ")" : "");
  if (class->doc) td_page_docstring(text, class->doc->data);
  td_text methods = {0};
  class_methods(I, class, &methods);
  if (methods.length) td_text_print(text, "\nmethods\n%s", methods.data);
  td_text_clear(&methods);
  for (td_class *base = class->base; base; base = base->base) inherited_methods(class, base, text);
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
  if (type->doc) td_page_doc(text, type->doc);
  td_page_names names = {0};
  for (const td_method *row = type->methods; row && row->name; row++)
    if (row->name[0] != '_') td_page_name(text, &names, "methods", row->name);
  if (t) {
    td_page_names ops = {0};
    for (int i = 0; i < td_op_count(); i++)
      if (!(td_op_at(i)->flags & TD_HIDDEN))
        td_page_name(text, &ops, "ops, as functions and most of them as methods", td_op_at(i)->name);
  }
  td_page_names_end(text, &names);
}

static void page(td_interpreter *I, td_value v, bool source, td_text *text) {
  if (td_is(v, &td_bound_type)) page(I, ((td_bound *)v.o)->function, source, text);
  else if (td_is(v, &td_static_type) || td_is(v, &td_class_method_type))
    page(I, ((td_wrapper *)v.o)->function, source, text);
  else if (td_is(v, &td_op_type)) op_page(((td_op_value *)v.o)->op, source, text);
  else if (td_is(v, &td_builtin_type)) method_page((td_builtin *)v.o, text);
  else if (td_is(v, &td_function_type)) function_page(I, (td_function *)v.o, source, text);
  else if (td_is(v, &td_class_type)) class_page(I, (td_class *)v.o, source, text);
  else type_page(I, v, text);
}

// ---- looking names up ----

// What has a method of that name: "Model.fit". false: nothing.
static bool hint_method(td_interpreter *I, const char *name) {
  static const char *const owners[] = {"Model", "Dataset", "Optimizer", "Metric", "GradientTape"};
  td_value raised = td_take_raised(I), found = TD_NIL;
  char path[100] = "";
  for (size_t i = 0; i < sizeof owners / sizeof *owners && td_is_nil(found); i++) {
    snprintf(path, sizeof path, "%s.%.60s", owners[i], name);
    found = td_lookup_path(I, path, strlen(path));
    td_clear_raised(I);
  }
  bool method = !td_is_nil(found);
  td_unref(found);
  td_put_raised(I, raised);
  if (method) td_raise_hint(I, "it is a method: write ?%s", path);
  return method;
}

static td_value not_found(td_interpreter *I, const char *name) {
  td_list *names = td_list_new(I, 64);
  if (!names) return TD_NIL;
  td_builtin_names(I, names);
  for (int i = 0; i < I->main->count; i++)
    if (!td_is_nil(I->main->globals[i]->value))
      td_list_append(I, names, (td_value){.tag = TD_TAG_OBJECT, .o = &I->main->globals[i]->name->object});
  const char *near = td_suggest(name, names);
  td_raise(I, TD_CLASS_NAME_ERROR, "there is no help on '%.60s': the name is not defined", name);
  if (!hint_method(I, name) && near) td_raise_hint(I, "did you mean '%s'?", near);
  td_unref(td_from(names));
  return TD_NIL;
}

static const char overview[] =
    "tapedeck runs what you type: Python's surface over tensors and tapes.\n\n"
    "  x = tensor([[1., 2.], [3., 4.]])       a tensor; x @ x, x.sum(axis=0), x[:, 0], x.shape\n"
    "  w = Variable(2.)                       state that tapes watch; w.assign(3.)\n"
    "  with GradientTape() as tape:           records what runs in the block\n"
    "      loss = (w * x).sum()\n"
    "  tape.gradient(loss, w)                 the derivative; tape.why(w) says why there is none\n"
    "  for i in progress(range(100), \"run\"):  a bar with rate and time left\n\n"
    "  ?NAME  NAME?                           help on a function, op, class, keyword or %command\n"
    "  NAME??                                 its source\n"
    "  Tab                                    completes names, attributes, arguments and files\n"
    "  Up, Ctrl-R                             earlier cells, whole; searches them\n"
    "  Ctrl-J, Alt-Enter                      a new line; runs the cell as it is\n"
    "  _  _3                                  the last value, that of cell 3; a ; at the end hides one\n"
    "  !COMMAND                               runs a shell command; an editor gets the terminal\n"
    "  Ctrl-C, Ctrl-D                         stops the running cell; leaves\n\n"
    "commands:\n";

static const struct {
  const char *heading, *decks; // each between spaces
} shelves[] = {
    {"models and layers", " model layer core_layers activation_layers convolution_layers normalization_layers "
                          "recurrent_layers attention_layers preprocessing_layers augmentation_layers text_layers "},
    {"losses", " losses "},
    {"optimizers", " optimizers lbfgs "},
    {"schedules of the learning rate", " schedules "},
    {"metrics", " metrics "},
    {"callbacks", " callbacks "},
    {"initializers, regularizers, constraints", " initializers regularizers constraints "},
    {"datasets and tokenizers", " datasets loaders tokenizers "},
    {"checkpoints", " checkpoint averages "},
};

// The classes of the shelf's decks.
static void shelf_page(const char *heading, const char *decks, td_text *text) {
  td_page_names names = {0};
  for (const td_library_deck *deck = td_library_decks; deck->name; deck++) {
    char word[60], name[60];
    snprintf(word, sizeof word, " %s ", deck->name);
    for (const char *at = strstr(decks, word) ? deck->names : ""; *at; at += strspn(at, " ")) {
      size_t length = strcspn(at, " ");
      snprintf(name, sizeof name, "%.*s", (int)length, at);
      if (isupper((unsigned char)*at)) td_page_name(text, &names, heading, name);
      at += length;
    }
  }
  td_page_names_end(text, &names);
}

static void files_page(td_interpreter *I, td_text *text) {
  td_page_names names = {0};
  td_list *known = td_list_new(I, 64);
  if (known) td_builtin_names(I, known);
  for (int64_t i = 0; known && i < known->count; i++) {
    const char *name = td_as_str(known->items[i])->data;
    if (!strncmp(name, "load_", 5) || !strncmp(name, "save_", 5)) td_page_name(text, &names, "files", name);
  }
  td_page_names_end(text, &names);
  td_unref(td_from(known));
}

static void overview_page(td_interpreter *I, td_text *text) {
  td_text_add(text, overview);
  const td_command_row *row;
  for (int i = 0; (row = td_command_at(i)); i++) td_page_row(text, row->usage, row->doc, USAGES);
  for (size_t i = 0; i < sizeof shelves / sizeof *shelves; i++)
    shelf_page(shelves[i].heading, shelves[i].decks, text);
  files_page(I, text);
  td_page_names names = {0};
  for (int i = 0; i < td_op_count(); i++)
    if (!(td_op_at(i)->flags & TD_HIDDEN)) td_page_name(text, &names, "ops", td_op_at(i)->name);
  td_page_names_end(text, &names);
}

static bool command_page(const char *name, td_text *text) {
  const td_command_row *row;
  for (int i = 0; (row = td_command_at(i)); i++) {
    if (strcmp(row->name, name) != 0) continue;
    td_page_title(text, row->usage);
    td_page_doc(text, row->doc);
  }
  return text->length > 0;
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

// Docs and sources are data: what they hold can't act on the terminal.
static void make_visible(const td_text *text, td_text *visible) {
  const char *end = text->data + text->length;
  for (const char *line = text->data; line < end;) {
    const char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
    td_source_print(visible, line, (size_t)(stop - line));
    td_text_add_char(visible, '\n');
    line = stop + 1;
  }
}

bool td_help_page(td_interpreter *I, const char *line, td_text *visible) {
  bool source;
  char *name = bare_name(line, &source);
  if (!name) return td_raise_memory(I), false;
  td_text text = {0};
  if (!*name) overview_page(I, &text);
  else if (*name == '%') command_page(name + 1, &text);
  else if (!td_page_keyword(name, &text)) {
    td_value v = td_lookup_path(I, name, strlen(name));
    if (!td_is_nil(v)) page(I, v, source, &text);
    else if (td_is_nil(I->raised)) command_page(name, &text);
    td_unref(v);
  }
  if (td_is_nil(I->raised) && !text.length) not_found(I, name);
  bool found = td_is_nil(I->raised);
  if (found) make_visible(&text, visible);
  td_text_clear(&text);
  td_memory_free(name);
  return found;
}

td_value td_help_show(td_interpreter *I, const char *line) {
  td_text visible = {0};
  if (!td_help_page(I, line, &visible)) return TD_NIL;
  td_output_text(I, &visible);
  return TD_NONE;
}
