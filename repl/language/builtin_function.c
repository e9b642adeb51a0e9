// Builtin functions on values of any kind: printing, lengths, iteration, attributes, classes, names of a scope.
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/tensors.h"

static td_value of(void *object) { return (td_value){.tag = TD_TAG_OBJECT, .o = object}; }

// ---- printing ----
static bool text_option(td_interpreter *I, td_value v, const char *name, const char *fallback, td_str **given,
                        const char **text) {
  *given = td_is(v, &td_str_type) ? td_as_str(v) : NULL;
  *text = *given ? (*given)->data : fallback;
  if (*given || td_is_none(v)) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s must be None or a string, not %s", name, td_type_name(I, v));
  return false;
}

static bool add_printed(td_interpreter *I, td_value v, td_text *text) {
  if (!td_is(v, &td_str_type)) return td_print(I, v, text);
  td_text_add_bytes(text, td_as_str(v)->data, td_as_str(v)->length);
  return true;
}

// What is long goes out at once, so that printing it takes no second copy.
static bool print_one(td_interpreter *I, td_value v, td_text *text) {
  enum { LONG = 64 << 10 };
  bool is_long = td_is(v, &td_str_type) && td_as_str(v)->length > LONG;
  if (!is_long && !add_printed(I, v, text)) return false;
  if (!is_long && text->length <= LONG) return true;
  if (text->length && !text->failed) td_output(I, 1, text->data, text->length);
  td_text_clear(text);
  if (is_long) td_output(I, 1, td_as_str(v)->data, td_as_str(v)->length);
  return true;
}

static td_value builtin_print(td_interpreter *I, td_value self, td_value *arguments) { // sep, end, file, flush, values
  (void)self;
  td_str *between, *behind;
  const char *separator, *end;
  if (!text_option(I, arguments[0], "sep", " ", &between, &separator) ||
      !text_option(I, arguments[1], "end", "\n", &behind, &end))
    return TD_NIL;
  int flush = td_truth(I, arguments[3]);
  if (flush < 0) return TD_NIL;
  td_tuple *values = td_as_tuple(arguments[4]);
  td_text text = {0};
  bool done = true;
  for (int64_t i = 0; done && i < values->count; i++) {
    if (i) td_text_add_bytes(&text, separator, between ? between->length : 1);
    done = print_one(I, values->items[i], &text);
  }
  td_text_add_bytes(&text, end, behind ? behind->length : 1);
  if (done && text.failed) td_raise_memory(I), done = false;
  if (done) td_output(I, 1, text.data ? text.data : "", text.length);
  if (done && flush) td_output_flush(I);
  td_text_clear(&text);
  return done ? TD_NONE : TD_NIL;
}

typedef bool writer(td_interpreter *, td_value, td_text *);

static td_value text_of(td_interpreter *I, td_value v, writer *write) {
  td_text text = {0};
  if (write(I, v, &text)) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}

static td_value builtin_repr(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, text_of(I, arguments[0], td_repr);
}
static td_value builtin_ascii(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, text_of(I, arguments[0], td_ascii);
}

static td_value builtin_format(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is(arguments[1], &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "format() argument 2 must be str, not %s", td_type_name(I, arguments[1]));
  td_text text = {0};
  if (td_format(I, arguments[0], td_as_str(arguments[1])->data, &text)) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}

static td_value builtin_input(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_text prompt = {0};
  if (!add_printed(I, arguments[0], &prompt)) return td_text_clear(&prompt), TD_NIL;
  td_output_flush(I);
  char *line = I->read_line ? I->read_line(I, prompt.data ? prompt.data : "") : NULL;
  td_text_clear(&prompt);
  if (!line) return td_is_nil(I->raised) ? td_raise(I, TD_CLASS_EOF_ERROR, "EOF when reading a line") : TD_NIL;
  td_str *text = td_str_from(I, line);
  td_memory_free(line);
  return td_from(text);
}

// ---- sizes, hashes, identity ----
static td_value builtin_len(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t length = td_length(I, arguments[0]);
  return length < 0 ? TD_NIL : td_int(length);
}

static td_value builtin_hash(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  uint64_t hash;
  return td_hash(I, arguments[0], &hash) ? td_int((int64_t)hash) : TD_NIL;
}

static td_value builtin_id(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)self;
  td_value v = arguments[0];
  if (v.tag == TD_TAG_OBJECT) return td_int((int64_t)(uintptr_t)v.o);
  return td_int((int64_t)(((uint64_t)v.i << 3 | v.tag) & INT64_MAX)); // equal numbers of a type are the same one
}

// ---- iteration ----
static bool is_callable(td_interpreter *I, td_value v) {
  return td_is_instance(v) ? !td_is_nil(td_special(I, v, I->names->call)) : td_type_of(v)->call != NULL;
}

static td_value builtin_iter(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (td_is_nil(arguments[1])) return td_iterate(I, arguments[0]);
  if (!is_callable(I, arguments[0])) return td_raise(I, TD_CLASS_TYPE_ERROR, "iter(v, w): v must be callable");
  return td_call_iterator_new(I, arguments[0], arguments[1]);
}

static td_value builtin_next(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value item = td_is_instance(arguments[0]) ? td_instance_next(I, arguments[0]) : td_next(I, arguments[0]);
  if (td_is_nil(item) && td_raised_is(I, TD_CLASS_STOP_ITERATION) && !td_is_nil(arguments[1])) td_clear_raised(I);
  if (!td_is_nil(item) || !td_is_nil(I->raised)) return item;
  return td_is_nil(arguments[1]) ? td_raise(I, TD_CLASS_STOP_ITERATION, "%s", "") : td_ref(arguments[1]);
}

static td_value builtin_sorted(td_interpreter *I, td_value self, td_value *arguments) { // iterable, key, reverse
  (void)self;
  int64_t reverse;
  td_value list = td_index_value(I, arguments[2], &reverse) ? td_list_from(I, arguments[0]) : TD_NIL;
  if (td_is_nil(list)) return TD_NIL;
  if (td_sort(I, td_as_list(list)->items, td_as_list(list)->count, arguments[1], reverse != 0)) return list;
  td_unref(list);
  return TD_NIL;
}

// ---- classes ----
// 1: test holds for a class, or for one in a tuple of them; -1: exception
typedef bool class_test(td_interpreter *, td_value v, td_class *class);

static int any_class(td_interpreter *I, td_value v, td_value classes, class_test *test, const char *refusal) {
  if (td_is_class(classes)) return test(I, v, td_as_class(classes));
  const td_type *made = td_type_made_by(classes);
  if (made) return test(I, v, td_class_of_type(I, made));
  if (!td_is(classes, &td_tuple_type)) return td_raise(I, TD_CLASS_TYPE_ERROR, "%s", refusal), -1;
  if (td_recursion(I)) return -1;
  td_tuple *tuple = td_as_tuple(classes);
  int found = 0;
  for (int64_t i = 0; found == 0 && i < tuple->count; i++) found = any_class(I, v, tuple->items[i], test, refusal);
  return found;
}

static bool is_subclass(td_interpreter *I, td_value v, td_class *class) {
  return (void)I, td_class_is_subclass(td_as_class(v), class);
}

static td_value builtin_isinstance(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int found = any_class(I, arguments[0], arguments[1], td_isinstance,
                        "isinstance() arg 2 must be a type, a tuple of types, or a union");
  return found < 0 ? TD_NIL : td_bool(found);
}

static td_value builtin_issubclass(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is_class(arguments[0])) return td_raise(I, TD_CLASS_TYPE_ERROR, "issubclass() arg 1 must be a class");
  int found = any_class(I, arguments[0], arguments[1], is_subclass,
                        "issubclass() arg 2 must be a class, a tuple of classes, or a union");
  return found < 0 ? TD_NIL : td_bool(found);
}

static td_value builtin_callable(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, td_bool(is_callable(I, arguments[0]));
}

// ---- attributes ----
static td_str *attribute_name(td_interpreter *I, td_value name) { // new reference, interned
  if (td_is(name, &td_str_type)) return td_str_intern(I, td_as_str(name)->data, td_as_str(name)->length);
  td_raise(I, TD_CLASS_TYPE_ERROR, "attribute name must be string, not '%s'", td_type_name(I, name));
  return NULL;
}

static td_value builtin_getattr(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_str *name = attribute_name(I, arguments[1]);
  if (!name) return TD_NIL;
  bool has_default = !td_is_nil(arguments[2]);
  td_value found = has_default ? td_attribute_find(I, arguments[0], name) : td_attribute(I, arguments[0], name);
  td_unref(of(name));
  if (!td_is_nil(found) || !has_default) return found;
  if (!td_is_nil(I->raised)) {
    if (!td_raised_is(I, TD_CLASS_ATTRIBUTE_ERROR)) return TD_NIL;
    td_clear_raised(I);
  }
  return td_ref(arguments[2]);
}

static td_value builtin_hasattr(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_str *name = attribute_name(I, arguments[1]);
  if (!name) return TD_NIL;
  td_value found = td_attribute_find(I, arguments[0], name);
  td_unref(of(name));
  bool has = !td_is_nil(found);
  td_unref(found);
  if (!td_is_nil(I->raised)) {
    if (!td_raised_is(I, TD_CLASS_ATTRIBUTE_ERROR)) return TD_NIL;
    td_clear_raised(I);
  }
  return td_bool(has);
}

static td_value builtin_setattr(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_str *name = attribute_name(I, arguments[1]);
  bool done = name && td_set_attribute(I, arguments[0], name, arguments[2]);
  td_unref(td_from(name));
  return done ? TD_NONE : TD_NIL;
}

static td_value builtin_delattr(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_str *name = attribute_name(I, arguments[1]);
  bool done = name && td_set_attribute(I, arguments[0], name, TD_NIL);
  td_unref(td_from(name));
  return done ? TD_NONE : TD_NIL;
}

// ---- names ----
// The variables of the caller's function, or of its module.
static bool add_globals(td_interpreter *I, td_module *module, td_dict *dict) {
  for (int32_t i = 0; i < module->count; i++) {
    td_global *global = module->globals[i];
    if (!td_is_nil(global->value) && !td_dict_set_str(I, dict, global->name, global->value)) return false;
  }
  return true;
}

static bool add_locals(td_interpreter *I, td_frame *frame, td_dict *dict) {
  td_prototype *p = frame->prototype;
  for (int32_t i = 0; i < p->slot_count; i++) {
    td_value value = frame->slots[i];
    if (td_is(value, &td_cell_type)) value = ((td_cell *)value.o)->value;
    if (p->slot_names[i] && !td_is_nil(value) && !td_dict_set_str(I, dict, p->slot_names[i], value)) return false;
  }
  return true;
}

static td_value scope(td_interpreter *I, bool local) {
  td_dict *dict = td_dict_new(I);
  td_frame *frame = I->frame;
  td_module *module = frame->module ? frame->module : I->main;
  bool done = dict && (local && frame->function ? add_locals(I, frame, dict) : add_globals(I, module, dict));
  if (done) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static td_value builtin_globals(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, (void)arguments, scope(I, false);
}
static td_value builtin_locals(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, (void)arguments, scope(I, true);
}

static td_value builtin_vars(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (td_is_nil(arguments[0])) return scope(I, true);
  td_value dict = td_attribute_find(I, arguments[0], I->names->dict);
  if (!td_is_nil(dict) || !td_is_nil(I->raised)) return dict;
  return td_raise(I, TD_CLASS_TYPE_ERROR, "vars() argument must have __dict__ attribute");
}

static bool add_attributes(td_interpreter *I, td_value v, td_list *names) {
  const td_type *type = td_type_of(v);
  if (type->names) type->names(I, v, names);
  for (const td_method *row = type->methods; row && row->name; row++) {
    td_value name = td_from(td_str_from(I, row->name));
    bool done = !td_is_nil(name) && td_list_append(I, names, name);
    td_unref(name);
    if (!done) return false;
  }
  return td_is_nil(I->raised);
}

static void drop_repeated(td_list *sorted) {
  int64_t kept = 0;
  for (int64_t i = 0; i < sorted->count; i++) {
    if (kept && td_str_equal(td_as_str(sorted->items[kept - 1]), td_as_str(sorted->items[i])))
      td_unref(sorted->items[i]);
    else sorted->items[kept++] = sorted->items[i];
  }
  sorted->count = kept;
}

static td_value builtin_dir(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_list *names = td_list_new(I, 16);
  td_value variables = td_is_nil(arguments[0]) ? scope(I, true) : TD_NIL;
  bool done = names && (td_is_nil(arguments[0]) ? !td_is_nil(variables) && td_to_list(I, variables, names)
                                                : add_attributes(I, arguments[0], names));
  td_unref(variables);
  if (done && td_sort(I, names->items, names->count, TD_NONE, false)) {
    drop_repeated(names);
    return td_from(names);
  }
  td_unref(td_from(names));
  return TD_NIL;
}

// ---- leaving, and what there isn't ----
static td_value builtin_exit(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value exception =
      td_call_values(I, of(I->classes[TD_CLASS_SYSTEM_EXIT]), td_is_nil(arguments[0]) ? 0 : 1, arguments);
  if (!td_is_nil(exception)) td_raise_value(I, exception);
  td_unref(exception);
  return TD_NIL;
}

static td_value builtin_open(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self, (void)arguments;
  td_raise(I, TD_CLASS_NOT_IMPLEMENTED_ERROR, "open() is not in this language");
  td_raise_hint(I, "files are read by load_npy, load_csv, load_png and the other load_ functions, and written by their "
                   "save_ counterparts");
  return TD_NIL;
}

static const td_method rows[] = {
    {"print", "(*values, sep=' ', end=None, file=None, flush=False)", builtin_print,
     "Writes the values with sep between them and end (a new line) behind them.\n>>> print(1, 2, sep=\", \")"},
    {"repr", "(object, /)", builtin_repr, "The text that shows a value as one would type it.\n>>> repr(\"a\")"},
    {"ascii", "(object, /)", builtin_ascii, "As repr, with characters beyond ASCII escaped."},
    {"format", "(value, format_spec='', /)", builtin_format,
     "The value laid out as f\"{value:format_spec}\" does.\n>>> format(3.14159, \".2f\")"},
    {"input", "(prompt='', /)", builtin_input, "One line read from standard input."},
    {"len", "(object, /)", builtin_len,
     "How many elements there are; of a tensor, the size of its first axis.\n>>> len([1, 2])"},
    {"hash", "(object, /)", builtin_hash, "An int that is the same for equal values; dicts and sets look up by it."},
    {"id", "(object, /)", builtin_id, "An int that tells the object from all others that exist now."},
    {"iter", "(object, sentinel=..., /)", builtin_iter,
     "An iterator over object; with sentinel, over what object() returns until it returns sentinel."},
    {"next", "(iterator, default=..., /)", builtin_next,
     "The iterator's next element; default, else StopIteration, at its end.\n>>> next(iter([1, 2]))"},
    {"sorted", "(iterable, /, *, key=None, reverse=False)", builtin_sorted,
     "A sorted list; equal elements keep their order. key(element) is what is compared.\n>>> sorted([3, 1, 2])"},
    {"isinstance", "(object, class_or_tuple, /)", builtin_isinstance,
     "Whether object is of that class, or of one in the tuple.\n>>> isinstance(True, int)"},
    {"issubclass", "(cls, class_or_tuple, /)", builtin_issubclass,
     "Whether cls is that class or inherits from it, or from one in the tuple."},
    {"callable", "(object, /)", builtin_callable, "Whether object can be called.\n>>> callable(len)"},
    {"getattr", "(object, name, default=..., /)", builtin_getattr,
     "object.name; default, else AttributeError, if there is none."},
    {"hasattr", "(object, name, /)", builtin_hasattr, "Whether object has the attribute name."},
    {"setattr", "(object, name, value, /)", builtin_setattr, "object.name = value."},
    {"delattr", "(object, name, /)", builtin_delattr, "del object.name."},
    {"dir", "(object=..., /)", builtin_dir, "The sorted names of an object's attributes, or of the variables here."},
    {"vars", "(object=..., /)", builtin_vars, "The attributes of an object as a dict, or the variables here."},
    {"globals", "()", builtin_globals, "The variables of this module, in a new dict."},
    {"locals", "()", builtin_locals, "The variables of this function, or module, in a new dict."},
    {"exit", "(code=..., /)", builtin_exit, "Ends the program with an exit code (0)."},
    {"quit", "(code=..., /)", builtin_exit, "Ends the program with an exit code (0)."},
    {"open", "(*args, **kwargs)", builtin_open, "Refused: load_ and save_ functions read and write files."},
    {NULL, NULL, NULL, NULL}};

bool td_builtin_functions_register(td_interpreter *I) { return td_builtin_define_rows(I, rows); }
