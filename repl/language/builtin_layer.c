// What the library's layers ask about values: the parameters of a callable, the parts that an object holds.
#include <stdio.h>
#include <string.h>
#include "repl/language/syntax.h"
#include "repl/language/tensors.h"

static bool add_name(td_interpreter *I, td_list *names, const char *stars, const td_str *name) {
  char text[160];
  snprintf(text, sizeof text, "%s%.150s", stars, name->data);
  td_value boxed = td_from(td_str_from(I, text));
  bool added = !td_is_nil(boxed) && td_list_append(I, names, boxed);
  td_unref(boxed);
  return added;
}

// plain names, then *args and **kwargs as far as there are; skip leaves out the leading ones (self).
static bool add_parameters(td_interpreter *I, td_list *names, td_str **all, int32_t plain, bool star, bool double_star,
                           int32_t skip) {
  bool added = true;
  for (int32_t i = skip; added && i < plain; i++) added = add_name(I, names, "", all[i]);
  if (added && star) added = add_name(I, names, "*", all[plain]);
  if (added && double_star) added = add_name(I, names, "**", all[plain + star]);
  return added;
}

static bool add_parameters_of(td_interpreter *I, td_value callee, td_list *names, int32_t skip) {
  if (td_is(callee, &td_bound_type))
    return add_parameters_of(I, ((td_bound *)callee.o)->function, names, skip + 1);
  if (td_is(callee, &td_function_type)) {
    const td_prototype *prototype = ((td_function *)callee.o)->prototype;
    return add_parameters(I, names, prototype->slot_names, prototype->positional + prototype->keyword_only,
                          prototype->star, prototype->double_star, skip);
  }
  if (td_is(callee, &td_builtin_type)) {
    const td_signature *signature = ((td_builtin *)callee.o)->signature;
    return !signature || add_parameters(I, names, signature->names, signature->positional + signature->keyword_only,
                                        signature->star, signature->double_star, 0);
  }
  if (td_is(callee, &td_op_type)) {
    const td_op_value *bound = (const td_op_value *)callee.o;
    for (int i = !td_is_nil(bound->self); i < td_op_tensor_params(bound->op) + td_op_arg_count(bound->op); i++) {
      td_value name = td_from(td_str_from(I, bound->op->params[i].name));
      bool added = !td_is_nil(name) && td_list_append(I, names, name);
      td_unref(name);
      if (!added) return false;
    }
    return true;
  }
  const char *entry = td_is(callee, &td_class_type) ? "__init__" : "__call__";
  td_str *name = td_str_intern(I, entry, strlen(entry));
  td_value function = name ? td_attribute_find(I, callee, name) : TD_NIL;
  td_unref(td_from(name));
  if (td_is_nil(function)) return td_is_nil(I->raised);
  bool through = td_is(function, &td_function_type) || td_is(function, &td_bound_type);
  bool added = !through || add_parameters_of(I, function, names, td_is(callee, &td_class_type));
  td_unref(function);
  return added;
}

static td_value parameter_names(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_list *names = td_list_new(I, 4);
  if (!names) return TD_NIL;
  if (add_parameters_of(I, arguments[0], names, 0)) return td_from(names);
  td_unref(td_from(names));
  return TD_NIL;
}

// ---- what an object holds ----

enum { RECORD, TRAINABLE, WEIGHTS, NAMES }; // attributes of a layer, and of its record

typedef struct walk {
  td_interpreter *interpreter;
  td_class *class;                                      // what counts beside Variables
  bool (*part)(struct walk *, const char *, td_value);  // told of each; false: exception
  bool paths;                                           // part wants to know where
  bool frozen;                                          // those that training may change, also what is frozen now
  td_str *names[NAMES];                                 // of gather
  td_list *found;
  td_dict *seen;                                        // addresses
} walk;

static bool walk_value(walk *w, const char *path, td_value v);

static bool walk_item(walk *w, const char *path, td_value key, td_value item) {
  if (item.tag != TD_TAG_OBJECT) return true;
  if (!w->paths) return walk_value(w, "", item);
  td_text inner = {0};
  td_text_print(&inner, "%s/", path);
  bool done = td_print(w->interpreter, key, &inner) && inner.data && walk_value(w, inner.data, item);
  td_text_clear(&inner);
  return done;
}

static bool walk_dict(walk *w, const char *path, td_dict *dict) {
  int64_t position = 0;
  td_value key, value;
  bool done = true;
  while (done && td_dict_next(dict, &position, &key, &value)) done = walk_item(w, path, key, value);
  return done;
}

static bool walk_value(walk *w, const char *path, td_value v) {
  if (v.tag != TD_TAG_OBJECT) return true;
  if (td_is(v, &td_variable_type)) return w->part(w, path, v);
  if (td_is(v, &td_instance_type)) return !td_isinstance(w->interpreter, v, w->class) || w->part(w, path, v);
  bool list = td_is(v, &td_list_type);
  if (!list && !td_is(v, &td_tuple_type) && !td_is(v, &td_dict_type)) return true;
  if (td_recursion(w->interpreter)) return false;
  if (td_is(v, &td_dict_type)) return walk_dict(w, path, td_as_dict(v));
  bool done = true;
  for (int64_t i = 0; done && i < (list ? td_as_list(v)->count : td_as_tuple(v)->count); i++)
    done = walk_item(w, path, td_int(i), list ? td_as_list(v)->items[i] : td_as_tuple(v)->items[i]);
  return done;
}

static bool walk_attributes(walk *w, td_value instance) {
  td_dict *attributes = ((td_instance *)instance.o)->attributes;
  int64_t position = 0;
  td_value key, value;
  bool done = !td_recursion(w->interpreter);
  while (done && attributes && td_dict_next(attributes, &position, &key, &value))
    done = walk_value(w, td_as_str(key)->data, value);
  return done;
}

static bool add_pair(walk *w, const char *path, td_value part) {
  td_tuple *pair = td_tuple_new(w->interpreter, 2);
  if (!pair) return false;
  pair->items[0] = td_from(td_str_from(w->interpreter, path));
  pair->items[1] = td_ref(part);
  bool added = !td_is_nil(pair->items[0]) && td_list_append(w->interpreter, w->found, td_from(pair));
  td_unref(td_from(pair));
  return added;
}

static bool walk_begin(walk *w, const char *who, td_value *arguments) {
  if (!td_is(arguments[0], &td_instance_type) || !td_is(arguments[1], &td_class_type)) {
    td_raise(w->interpreter, TD_CLASS_TYPE_ERROR, "%s: an instance and a class are needed, not %s and %s", who,
             td_type_name(w->interpreter, arguments[0]), td_type_name(w->interpreter, arguments[1]));
    return false;
  }
  w->class = (td_class *)arguments[1].o;
  return (w->found = td_list_new(w->interpreter, 8)) != NULL;
}

static td_value walk_end(walk *w, bool done) {
  td_unref(td_from(w->seen));
  if (done) return td_from(w->found);
  td_unref(td_from(w->found));
  return TD_NIL;
}

static td_value held_parts(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  walk w = {.interpreter = I, .part = add_pair, .paths = true};
  return walk_begin(&w, "held_parts", arguments) ? walk_end(&w, walk_attributes(&w, arguments[0])) : TD_NIL;
}

static td_value instances_in(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  walk w = {.interpreter = I};
  if (!walk_begin(&w, "instances_in", arguments)) return TD_NIL;
  td_dict *attributes = ((td_instance *)arguments[0].o)->attributes;
  int64_t position = 0;
  td_value key, value;
  bool done = true;
  while (done && attributes && td_dict_next(attributes, &position, &key, &value))
    done = !td_is(value, &td_instance_type) || !td_isinstance(I, value, w.class) || td_list_append(I, w.found, value);
  return walk_end(&w, done);
}

// ---- Variables that training changes, or may change ----

static int seen_before(walk *w, td_value part) { // -1: exception
  td_value key = td_int((int64_t)(intptr_t)part.o), value;
  int seen = td_dict_get(w->interpreter, w->seen, key, &value);
  return seen ? seen : td_dict_set(w->interpreter, w->seen, key, TD_NONE) ? 0 : -1;
}

static td_value own_attribute(td_value v, td_str *name) { // borrowed; NIL: it has none
  td_dict *attributes = td_is(v, &td_instance_type) ? ((td_instance *)v.o)->attributes : NULL;
  return attributes ? td_dict_get_str(attributes, name) : TD_NIL;
}

// A layer's record says whether it is frozen and which weights it made, beside those that attributes hold.
static bool gather(walk *w, const char *path, td_value part) {
  (void)path;
  int seen = seen_before(w, part);
  if (seen) return seen > 0;
  if (td_is(part, &td_variable_type)) {
    bool counts = w->frozen ? ((td_variable_value *)part.o)->parameter : td_unbox_variable(part)->trainable;
    return !counts || td_list_append(w->interpreter, w->found, part);
  }
  td_value record = own_attribute(part, w->names[RECORD]), trained = own_attribute(record, w->names[TRAINABLE]),
           weights = own_attribute(record, w->names[WEIGHTS]);
  if (td_is_nil(trained)) return true;
  if (!w->frozen && td_truth(w->interpreter, trained) <= 0) return td_is_nil(w->interpreter->raised);
  return walk_attributes(w, part) && (td_is_nil(weights) || walk_value(w, "", weights));
}

static bool gather_inner(walk *w, const char *path, td_value part) {
  (void)path;
  if (td_is(part, &td_variable_type)) return true;
  int seen = seen_before(w, part);
  if (seen) return seen > 0;
  return td_list_append(w->interpreter, w->found, part) && walk_attributes(w, part);
}

static td_value gather_layers(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  walk w = {.interpreter = I, .part = gather_inner};
  if (!walk_begin(&w, "gather_layers", arguments)) return TD_NIL;
  w.seen = td_dict_new(I);
  return walk_end(&w, w.seen && gather_inner(&w, "", arguments[0]));
}

static td_value gather_variables(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  walk w = {.interpreter = I, .part = gather, .frozen = td_truth(I, arguments[2]) == 1};
  if (!walk_begin(&w, "gather_variables", arguments)) return TD_NIL;
  static const char *const names[] = {[RECORD] = "_layer", [TRAINABLE] = "trainable", [WEIGHTS] = "weights"};
  bool ready = (w.seen = td_dict_new(I)) != NULL;
  for (int i = 0; ready && i < NAMES; i++) ready = (w.names[i] = td_str_intern(I, names[i], strlen(names[i]))) != NULL;
  td_value found = walk_end(&w, ready && gather(&w, "", arguments[0]));
  for (int i = 0; i < NAMES; i++) td_unref(td_from(w.names[i]));
  return found;
}

// ---- names ----

static td_value session_value(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is(arguments[0], &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "session_value: a name is a str, not %s", td_type_name(I, arguments[0]));
  td_str *name = td_as_str(arguments[0]);
  td_value found = td_attribute_find(I, (td_value){.tag = TD_TAG_OBJECT, .o = (td_object *)I->main}, name);
  if (td_is_nil(found)) found = td_builtin_find(I, name);
  return td_is_nil(found) && td_is_nil(I->raised) ? TD_NONE : found;
}

const td_method td_layer_builtins[] = {
    {"gather_variables", "(layer, cls, /, frozen=False)", gather_variables,
     "The trainable Variables of a layer and of the layers (instances of cls) inside it, each once; frozen layers are "
     "left out.\n"
     "frozen=True: all that were made trainable, also what is frozen now."},
    {"gather_layers", "(layer, cls, /)", gather_layers,
     "A layer and the layers (instances of cls) inside it, each once, outer ones first."},
    {"session_value", "(name, /)", session_value,
     "What a name means at the prompt: the session's variable, or else the builtin or library name; None if nothing "
     "does."},
    {"held_parts", "(object, cls, /)", held_parts,
     "(path, part) for each Variable and each instance of cls that the attributes of object hold, also in lists, "
     "tuples\n"
     "and dicts, in their order: \"kernel\", \"blocks/0\", \"heads/left\"."},
    {"parameter_names", "(callable, /)", parameter_names,
     "The names of what a callable takes, in order, self left out; *args and **kwargs keep their stars.\n"
     ">>> parameter_names(lambda x, y: x)"},
    {"instances_in", "(object, cls, /)", instances_in, "The instances of cls that the attributes of object hold."},
    {NULL, NULL, NULL, NULL}};
