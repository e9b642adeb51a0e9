// Builtins that make tensors and Variables, the session's random state, the folders of data, and the registration of
// all that belongs to tensors: ops by name, dtypes, the random module.
#include <limits.h>
#include <math.h>
#include <string.h>
#include "engine/base/file.h"
#include "repl/language/files.h"
#include "repl/language/nest.h"
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

static bool given(td_value v) { return !td_is_nil(v) && !td_is_none(v); }

static bool dtype_argument(td_interpreter *I, td_value v, uint8_t *dtype) {
  if (td_to_dtype(I, v, dtype)) return true;
  if (td_is_nil(I->raised))
    td_raise(I, TD_CLASS_TYPE_ERROR, "dtype must be a dtype such as float32, not %s", td_type_name(I, v));
  return false;
}

static td_tensor *tensor_argument(td_interpreter *I, const char *who, td_value v, td_value dtype_value) {
  uint8_t dtype;
  td_tensor *t;
  if (given(dtype_value)) t = dtype_argument(I, dtype_value, &dtype) ? td_to_tensor_of(I, v, dtype) : NULL;
  else t = td_to_tensor(I, v, -1);
  if (!t) td_raise_within(I, "%s: ", who);
  return t;
}

static td_value builtin_tensor(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int grad = td_truth(I, arguments[2]);
  td_tensor *t = grad < 0 ? NULL : tensor_argument(I, "tensor", arguments[0], arguments[1]);
  if (!t) return TD_NIL;
  if (grad) {
    td_tensor *leaf = td_tensor_alias(I->context, t);
    td_tensor_unref(t);
    t = leaf;
    if (t && td_tensor_require_grad(I->context, t, true) != TD_OK) {
      td_tensor_unref(t);
      return td_raise_engine(I);
    }
  }
  return td_tensor_box(I, t);
}

static td_value builtin_variable(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *name = "";
  if (given(arguments[2])) {
    if (!td_is(arguments[2], &td_str_type)) return td_raise(I, TD_CLASS_TYPE_ERROR, "Variable: name must be a str");
    name = td_as_str(arguments[2])->data;
  }
  int trainable = td_truth(I, arguments[3]), grad = given(arguments[4]) ? td_truth(I, arguments[4]) : 0;
  if (grad >= 0 && trainable >= 0 && given(arguments[4])) trainable = grad;
  td_tensor *t = trainable < 0 || grad < 0 ? NULL : tensor_argument(I, "Variable", arguments[0], arguments[1]);
  if (!t) return TD_NIL;
  td_variable *variable = td_variable_new(I->context, t, name, trainable);
  td_tensor_unref(t);
  if (!variable) return td_raise_engine(I);
  variable->requires_grad = grad;
  td_value box = td_variable_box(I, variable);
  if (!td_is_nil(box) && given(arguments[5])) td_variable_set_constraint(box, arguments[5]);
  return box;
}

// randn(2, 3) and rand(2, 3): *shape is one tuple of ints, or the ints themselves.
static td_value random_of(td_interpreter *I, td_value *arguments, const char *op, const char *name) {
  td_value shape = arguments[0];
  if (td_as_tuple(shape)->count == 1 && td_as_tuple(shape)->items[0].tag == TD_TAG_OBJECT)
    shape = td_as_tuple(shape)->items[0];
  td_arguments call = {.count = 1, .values = &shape};
  td_value result = td_op_call(I, td_op_find(op), TD_NIL, &call);
  char spelled[64];
  if (td_is_nil(result)) td_raise_renamed(I, td_op_spelled(td_op_find(op), spelled, sizeof spelled), name);
  return result;
}

static td_value builtin_randn(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return random_of(I, arguments, "random_normal", "randn");
}

static td_value builtin_rand(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return random_of(I, arguments, "random_uniform", "rand");
}

static td_value builtin_seed(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  bool ok = true;
  int64_t seed = td_to_int(I, arguments[0], &ok);
  if (!ok) return td_is_nil(I->raised) ? td_raise(I, TD_CLASS_TYPE_ERROR, "seed: needs an int") : TD_NIL;
  td_context_set_random(I->context, (uint64_t)seed, 0, 0);
  return TD_NONE;
}

static td_value builtin_get_random_state(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self, (void)arguments;
  td_tuple *state = td_tuple_new(I, 3);
  if (!state) return TD_NIL;
  state->items[0] = td_int((int64_t)I->context->seed);
  state->items[1] = td_int((int64_t)I->context->counter);
  state->items[2] = td_int((int64_t)I->context->streams);
  return td_from(state);
}

static td_value builtin_set_random_state(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t parts[3];
  td_list *list = td_list_new(I, 3);
  bool ok = list && td_to_list(I, arguments[0], list) && list->count == 3;
  for (int i = 0; i < 3 && ok; i++) parts[i] = td_to_int(I, list->items[i], &ok);
  td_unref(td_from(list));
  if (!ok)
    return td_is_nil(I->raised) ? td_raise(I, TD_CLASS_TYPE_ERROR, "set_random_state: needs what get_random_state gave")
                                : TD_NIL;
  td_context_set_random(I->context, (uint64_t)parts[0], (uint64_t)parts[1], (uint64_t)parts[2]);
  return TD_NONE;
}

#ifndef TD_DATA_FOLDER
#define TD_DATA_FOLDER "/usr/local/share/tapedeck/samples"
#endif

typedef struct search {
  const char *name;
  td_text path, tried; // the one found, if any; those where there was nothing
  bool found;
} search;

static void try_root(search *s, const char *root, const char *below) {
  if (s->found) return;
  td_text_clear(&s->path);
  td_text_print(&s->path, "%s%s%sdata/%s", root, *root ? "/" : "", below, s->name);
  if (!s->path.data) return;
  s->found = td_file_exists(s->path.data);
  if (!s->found && (!s->tried.data || !strstr(s->tried.data, s->path.data)))
    td_text_print(&s->tried, "%s%s", s->tried.length ? ", " : "", s->path.data);
}

static td_value builtin_data_folder(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  search s = {.name = td_path_argument(I, arguments[0], "data_folder")};
  if (!s.name) return TD_NIL;
  const td_script *script = td_source_find(&I->sources, I->context->place);
  char program[PATH_MAX];
  try_root(&s, script ? script->folder : "", "");
  try_root(&s, I->sources.count ? I->sources.items[0]->folder : "", "");
  try_root(&s, "", "");
  try_root(&s, "samples", "");
  if (td_file_program_folder(program, sizeof program)) {
    try_root(&s, program, "../share/tapedeck/samples/"); // installed anywhere
    try_root(&s, program, "../samples/");                // where it was built
  }
  try_root(&s, TD_DATA_FOLDER, "");
  td_value path = s.found ? td_from(td_str_take(I, &s.path)) : TD_NIL;
  if (!s.found) {
    td_raise(I, TD_CLASS_FILE_NOT_FOUND_ERROR, "there is no data folder '%s'", s.name);
    td_raise_hint(I, "looked for %s; name the folder yourself", s.tried.data ? s.tried.data : "");
  }
  td_text_clear(&s.path);
  td_text_clear(&s.tried);
  return path;
}

const td_method td_tensor_builtins[] = {
    {"tensor", "(data, dtype=None, requires_grad=False)", builtin_tensor,
     "A tensor from a number, nested lists, a range or a tensor. Floats make float32, ints int64, bools bool, unless "
     "dtype says otherwise.\n"
     ">>> tensor([[1., 2.], [3., 4.]])"},
    {"Variable", "(value, dtype=None, name=None, trainable=True, requires_grad=None, constraint=None)",
     builtin_variable,
     "State that can be assigned: a named tensor of fixed shape and dtype, watched by tapes when it is read.\n>>> "
     "Variable([1., 2.], name=\"w\")"},
    {"randn", "(*shape)", builtin_randn,
     "random_normal with the sizes as arguments: numbers of mean 0 and deviation 1.\n>>> randn(2, 3).shape"},
    {"rand", "(*shape)", builtin_rand,
     "random_uniform with the sizes as arguments: numbers in [0, 1).\n>>> rand(2, 3).shape"},
    {"get_random_state", "()", builtin_get_random_state,
     "Where the session's random numbers stand: (seed, numbers drawn, streams given\nout to datasets). "
     "random.get_state is the same."},
    {"set_random_state", "(state)", builtin_set_random_state,
     "Goes on from where get_random_state was asked. random.set_state is the same."},
    {"seed", "(number)", builtin_seed,
     "Starts the session's random numbers anew: the same seed gives the same numbers on any number of threads.\n>>> "
     "seed(1)"},
    {"data_folder", "(name)", builtin_data_folder,
     "The folder data/NAME beside the running deck, under the current folder, or among the samples that came with the "
     "program, wherever it is called from."},
    {NULL, NULL, NULL, NULL}};

// ---- registration ----

static const char *name_in_module(const char *module, const char *name) { // "normal" for random_normal
  size_t length = strlen(module);
  return strncmp(name, module, length) == 0 && name[length] == '_' ? name + length + 1 : name;
}

static bool register_name(td_interpreter *I, const td_op *op, const char *text, td_value value) {
  td_str *name = td_str_intern(I, text, strlen(text));
  bool ok = name && !td_is_nil(value) && td_dict_set_str(I, I->ops, name, value);
  if (ok && op->module) {
    td_module *module = td_module_builtin(I, op->module);
    ok = module && td_module_set(I, module, name_in_module(op->module, text), td_ref(value));
  }
  if (name) td_unref(td_from(name));
  return ok;
}

static bool register_ops(td_interpreter *I) {
  I->ops = td_dict_new(I);
  bool ok = I->ops != NULL;
  for (int i = 0; ok && i < td_op_count(); i++) {
    const td_op *op = td_op_at(i);
    if (op->flags & TD_HIDDEN) continue;
    td_value value = td_op_builtin(I, op, TD_NIL);
    ok = register_name(I, op, op->name, value);
    for (const char *const *alias = op->alias; ok && alias && *alias; alias++) ok = register_name(I, op, *alias, value);
    td_unref(value);
  }
  return ok;
}

static bool register_dtypes(td_interpreter *I) {
  for (int dtype = 0; dtype < TD_DTYPE_COUNT; dtype++) {
    if (dtype == TD_BOOL) continue; // bool is the language's own class, and stands for the dtype too
    td_value value = td_dtype_box(I, (uint8_t)dtype);
    if (td_is_nil(value) || !td_builtin_define(I, td_dtype_name((uint8_t)dtype), value)) return false;
  }
  return true;
}

static bool register_constants(td_interpreter *I) { // as tensors print them
  return td_builtin_define(I, "inf", td_double(INFINITY)) && td_builtin_define(I, "nan", td_double(NAN)) &&
         td_builtin_define(I, "pi", td_double(M_PI));
}

static bool register_random(td_interpreter *I) { // random.seed and the others, as Python and NumPy have them
  static const char *const names[][2] = {
      {"seed", "seed"}, {"get_random_state", "get_state"}, {"set_random_state", "set_state"}};
  td_module *module = td_module_builtin(I, "random");
  bool ok = module != NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && ok; i++) {
    td_str *name = td_str_intern(I, names[i][0], strlen(names[i][0]));
    ok = name && td_module_set(I, module, names[i][1], td_builtin_find(I, name));
    td_unref(td_from(name));
  }
  return ok;
}

static const td_method *const tables[] = {
    td_tensor_builtins,
    td_tape_builtins,
    td_gradient_builtins,
    td_vmap_builtins,
    td_custom_builtins,
    td_check_builtins,
    td_progress_builtins,
    td_optimizer_builtins,
    td_layer_builtins,
    td_metric_builtins,
    td_hash_builtins,
    td_worker_builtins,
    td_boundary_builtins,
    td_dataset_builtins,
    td_lines_builtins,
    td_plot_builtins,
    td_snapshot_builtins,
    td_file_builtins,
    td_tensor_file_builtins,
    td_summary_builtins,
    td_table_builtins,
    td_csv_rows_builtins,
};

bool td_tensors_register(td_interpreter *I) {
  bool ok = register_ops(I) && register_constants(I) && register_dtypes(I);
  for (size_t i = 0; ok && i < sizeof tables / sizeof *tables; i++) ok = td_builtin_define_rows(I, tables[i]);
  return ok && register_random(I);
}
