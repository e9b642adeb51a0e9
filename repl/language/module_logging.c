// The module logging: Python's functions and loggers. What is logged at the level or above becomes a LOG event, which
// faces show on stderr; below it not even the text is made.
#include <stdio.h>
#include <strings.h>

#include "repl/language/core.h"
#include "repl/language/log.h"

typedef struct logger {
  td_object object;
  td_str *name; // NULL: the root
  int level; // 0: the root's
} logger;

static const td_type logger_type;

void td_log_set(td_interpreter *I, int level, bool fixed) {
  I->core->log_level = level;
  I->core->log_fixed = fixed;
}

const char *td_log_word(int level) {
  const char *word = "debug";
#define X(NAME, value, text) \
  if (level >= value) word = text;
  TD_LOG_LEVELS(X)
#undef X
  return word;
}

static int level_of(const td_interpreter *I, td_value self) {
  int own = td_is(self, &logger_type) ? ((const logger *)self.o)->level : 0;
  return own ? own : I->core->log_level;
}

static bool level_argument(td_interpreter *I, td_value v, int *level) { // 10, "INFO"
  const char *word = td_is(v, &td_str_type) ? td_as_str(v)->data : NULL;
#define X(NAME, value, text) \
  if (word && strcasecmp(word, text) == 0) return *level = value, true;
  TD_LOG_LEVELS(X)
#undef X
  if (td_is_integer(v) && v.i >= 0 && v.i <= 1000) return *level = (int)v.i, true;
  if (td_is_integer(v) || word) td_raise(I, TD_CLASS_VALUE_ERROR, "logging: there is no such level");
  else td_raise(I, TD_CLASS_TYPE_ERROR, "logging: a level is an int or a str, not %s", td_type_name(I, v));
  td_raise_hint(I, "the levels are logging.DEBUG, INFO, WARNING, ERROR and CRITICAL");
  return false;
}

// The message, with % and the arguments where there are any.
static bool message_print(td_interpreter *I, td_value message, td_tuple *arguments, td_text *text) {
  bool mapping = arguments->count == 1 && td_is(arguments->items[0], &td_dict_type);
  td_value plain = TD_NIL;
  if (!td_print(I, message, text)) return false;
  if (!arguments->count) return true;
  plain = td_from(td_str_take(I, text));
  td_value filled = td_is_nil(plain)
                        ? TD_NIL
                        : td_str_percent(I, td_as_str(plain), mapping ? arguments->items[0] : td_borrow(arguments));
  td_unref(plain);
  bool ok = !td_is_nil(filled) && td_print(I, filled, text);
  td_unref(filled);
  return ok;
}

static td_value say(td_interpreter *I, td_value self, int level, td_value message, td_value arguments) {
  if (level < level_of(I, self)) return TD_NONE;
  td_text text = {0};
  const td_str *name = td_is(self, &logger_type) ? ((const logger *)self.o)->name : NULL;
  bool ok = message_print(I, message, td_as_tuple(arguments), &text);
  if (ok && text.failed) ok = !td_is_nil(td_raise_memory(I));
  if (ok) {
    td_output_flush(I);
    td_event event = {.kind = TD_EVENT_LOG,
                      .cell = I->cell,
                      .level = level,
                      .text = text.data ? text.data : "",
                      .length = text.length,
                      .name = name ? name->data : ""};
    if (I->sink) I->sink->emit(I->sink->owner, &event);
  }
  td_text_clear(&text);
  return ok ? TD_NONE : TD_NIL;
}

#define X(NAME, level, text)                                                       \
  static td_value log_##NAME(td_interpreter *I, td_value self, td_value *values) { \
    return say(I, self, level, values[0], values[1]);                              \
  }
TD_LOG_LEVELS(X)
#undef X

static td_value log_any(td_interpreter *I, td_value self, td_value *values) {
  int level;
  return level_argument(I, values[0], &level) ? say(I, self, level, values[1], values[2]) : TD_NIL;
}

// ---- loggers ----

static td_value logger_set_level(td_interpreter *I, td_value self, td_value *values) {
  logger *l = (logger *)self.o;
  int level;
  if (!level_argument(I, values[0], &level)) return TD_NIL;
  if (l->name) l->level = level;
  else td_log_set(I, level, I->core->log_fixed);
  return TD_NONE;
}

static td_value logger_enabled(td_interpreter *I, td_value self, td_value *values) {
  int level;
  return level_argument(I, values[0], &level) ? td_bool(level >= level_of(I, self)) : TD_NIL;
}

static td_value logger_attribute(td_interpreter *I, td_value self, td_str *name) {
  const logger *l = (const logger *)self.o;
  if (strcmp(name->data, "level") == 0) return td_int(l->name ? l->level : level_of(I, self));
  if (strcmp(name->data, "name") != 0) return TD_NIL;
  return l->name ? td_ref(td_borrow(l->name)) : td_from(td_str_from(I, "root"));
}

static void logger_release(td_object *object) { td_unref(td_from(((logger *)object)->name)); }

#define LEVEL_ROWS                                                                                                \
  {"debug", "(msg, *args)", log_DEBUG, "Logs msg % args for who looks for a fault."},                             \
      {"info", "(msg, *args)", log_INFO, "Logs msg % args: things go as they should."},                           \
      {"warning", "(msg, *args)", log_WARNING, "Logs msg % args: something was not expected; shown by default."}, \
      {"error", "(msg, *args)", log_ERROR, "Logs msg % args: something could not be done; the program goes on."}, \
      {"critical", "(msg, *args)", log_CRITICAL, "Logs msg % args: the program can hardly go on."}, {             \
    "log", "(level, msg, *args)", log_any, "Logs msg % args at a level given as a number or a name."              \
  }

static const td_method logger_methods[] = {
    LEVEL_ROWS,
    {"setLevel", "(level)", logger_set_level, "What is below the level is not said; 0: the root logger's level."},
    {"isEnabledFor", "(level)", logger_enabled, "Whether that level is said."},
    {NULL, NULL, NULL, NULL}};

static const td_type logger_type = {.name = "Logger",
                                    .size = sizeof(logger),
                                    .release = logger_release,
                                    .attribute = logger_attribute,
                                    .methods = logger_methods,
                                    .doc = "Logs under a name, at a level of its own. logging.getLogger makes one."};

static td_value get_logger(td_interpreter *I, td_value self, td_value *values) {
  (void)self;
  bool named = !td_is_none(values[0]);
  if (named && !td_is(values[0], &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "logging.getLogger: a name is a str, not %s", td_type_name(I, values[0]));
  td_value known = named ? td_dict_get_str(I->core->loggers, td_as_str(values[0])) : TD_NIL;
  if (!td_is_nil(known)) return td_ref(known);
  logger *l = td_object_new(I, &logger_type, sizeof *l);
  if (l && named) l->name = td_as_str(td_ref(values[0]));
  if (l && named && !td_dict_set_str(I, I->core->loggers, l->name, td_borrow(l))) {
    td_unref(td_from(l));
    return TD_NIL;
  }
  return td_from(l);
}

static td_value basic_config(td_interpreter *I, td_value self, td_value *values) { // level, force, options
  (void)self;
  int level;
  td_value key, ignored;
  int64_t position = 0;
  while (td_dict_next(td_as_dict(values[2]), &position, &key, &ignored)) {
    const char *name = td_as_str(key)->data;
    if (strcmp(name, "filename") != 0 && strcmp(name, "handlers") != 0) continue;
    td_raise(I, TD_CLASS_VALUE_ERROR, "logging.basicConfig: %s: what is logged goes to standard error", name);
    td_raise_hint(I, "tapedeck run FILE.deck 2>FILE.log puts it into a file");
    return TD_NIL;
  }
  int force = td_truth(I, values[1]);
  if (force < 0 || td_is_none(values[0])) return force < 0 ? TD_NIL : TD_NONE;
  if (!level_argument(I, values[0], &level)) return TD_NIL;
  if (!I->core->log_fixed || force) td_log_set(I, level, I->core->log_fixed);
  return TD_NONE;
}

static const td_method rows[] = {
    LEVEL_ROWS,
    {"basicConfig", "(level=None, force=False, **options)", basic_config,
     "Sets the level from which on things are said.\n\n"
     "--log on the command line comes first, unless force=True. The form of the lines is fixed (format is of no "
     "account): level, logger, message."},
    {"getLogger", "(name=None)", get_logger, "The logger of that name, always the same one; without a name, the root."},
    {NULL, NULL, NULL, NULL}};

bool td_logging_register(td_interpreter *I) {
  td_log_set(I, TD_LOG_WARNING, false);
  I->core->loggers = td_dict_new(I);
  td_module *module = I->core->loggers ? td_module_define(I, "logging", rows) : NULL;
  bool ok = module != NULL;
#define X(NAME, level, text) ok = ok && td_module_set(I, module, #NAME, td_int(level));
  TD_LOG_LEVELS(X)
#undef X
  return ok;
}
