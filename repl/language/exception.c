// Exceptions: making them, and the one in flight. Where an exception arose is noted once, when it is raised
// (diagnose.h). MemoryError needs no memory: one is made in advance, and its text is written into a place that was
// kept for it.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/map.h"
#include "engine/base/memory.h"
#include "repl/language/turn.h"

td_value td_take_raised(td_interpreter *I) {
  td_value raised = I->raised;
  I->raised = TD_NIL;
  return raised;
}

void td_put_raised(td_interpreter *I, td_value exception) {
  td_value old = I->raised;
  I->raised = exception;
  td_unref(old);
}

void td_clear_raised(td_interpreter *I) { td_put_raised(I, TD_NIL); }

bool td_raised_is(td_interpreter *I, enum td_builtin_class class) {
  return !td_is_nil(I->raised) && td_class_is_subclass(td_as_instance(I->raised)->class, I->classes[class]);
}

void td_report_drop(td_exception *exception) {
  td_memory_free(exception->report);
  exception->report = NULL;
}

td_value td_exception_new(td_interpreter *I, td_class *class, td_value arguments) {
  td_value v = td_instance_new(I, class);
  if (!td_is_nil(v)) ((td_exception *)v.o)->arguments = td_ref(arguments);
  return v;
}

static td_value exception_of_text(td_interpreter *I, td_class *class, const char *text, size_t length) {
  td_str *message = length ? td_str_new(I, text, length) : NULL;
  td_tuple *arguments = message || !length ? td_tuple_new(I, length > 0) : NULL;
  if (!arguments) return td_unref(td_from(message)), TD_NIL;
  if (message) arguments->items[0] = td_from(message);
  td_value v = td_exception_new(I, class, td_from(arguments));
  td_unref(td_from(arguments));
  return v;
}

// Notes what was being handled when exception was raised. An exception is in its own chain of contexts once at most:
// the chain is cut where it was.
static void note_context(td_interpreter *I, td_exception *exception) {
  td_value handled = I->handling;
  if (td_is_nil(handled) || handled.o == &exception->instance.container.object) return;
  for (td_exception *e = (td_exception *)handled.o; !td_is_nil(e->context); e = (td_exception *)e->context.o) {
    if (e->context.o != &exception->instance.container.object) continue;
    e->context = TD_NIL;
    td_unref(td_borrow(exception));
    break;
  }
  td_value old = exception->context;
  exception->context = td_ref(handled);
  td_unref(old);
}

// Takes over exception; where it arose is noted unless that is known.
static void put_new(td_interpreter *I, td_value exception, const td_node *node) {
  note_context(I, (td_exception *)exception.o);
  td_put_raised(I, exception);
  td_report_fill(I, (td_exception *)exception.o, node);
}

// Short messages are formatted on the stack.
static td_value raise_list(td_interpreter *I, const td_node *node, td_class *class, const char *format, va_list list) {
  char near[256];
  va_list again;
  va_copy(again, list);
  int length = vsnprintf(near, sizeof near, format, list);
  td_value exception = TD_NIL;
  if (length >= 0 && (size_t)length < sizeof near) {
    exception = exception_of_text(I, class, near, (size_t)length);
  } else if (length >= 0) {
    td_text text = {0};
    td_text_print_list(&text, format, again);
    if (text.failed) td_raise_memory(I);
    else exception = exception_of_text(I, class, text.data, text.length);
    td_text_clear(&text);
  }
  va_end(again);
  if (!td_is_nil(exception)) put_new(I, exception, node); // else MemoryError is in flight
  return TD_NIL;
}

td_value td_raise(td_interpreter *I, enum td_builtin_class class, const char *format, ...) {
  va_list list;
  va_start(list, format);
  raise_list(I, I->frame->call, I->classes[class], format, list);
  va_end(list);
  return TD_NIL;
}

td_value td_raise_at(td_interpreter *I, const td_node *node, enum td_builtin_class class, const char *format, ...) {
  va_list list;
  va_start(list, format);
  raise_list(I, node, I->classes[class], format, list);
  va_end(list);
  return TD_NIL;
}

void td_raise_hint(td_interpreter *I, const char *format, ...) {
  if (td_is_nil(I->raised)) return;
  td_report *report = ((td_exception *)I->raised.o)->report;
  if (!report) return;
  va_list list;
  va_start(list, format);
  vsnprintf(report->hint, sizeof report->hint, format, list);
  va_end(list);
}

// The exception made in advance keeps its text.
static const char *message_in_flight(const td_interpreter *I) { // "": none
  const td_tuple *arguments = td_as_tuple(((td_exception *)I->raised.o)->arguments);
  return arguments->count && td_is(arguments->items[0], &td_str_type) ? td_as_str(arguments->items[0])->data : "";
}

static void put_message(td_interpreter *I, td_text *text) { // takes over text
  td_value raised = td_take_raised(I);
  td_exception *exception = (td_exception *)raised.o;
  td_tuple *arguments = text->failed ? NULL : td_tuple_new(I, 1);
  td_str *message = arguments ? td_str_from(I, text->data) : NULL;
  if (message) {
    arguments->items[0] = td_from(message);
    td_unref(exception->arguments);
    exception->arguments = td_from(arguments);
  } else td_unref(td_from(arguments));
  td_text_clear(text);
  td_put_raised(I, raised);
}

void td_raise_within(td_interpreter *I, const char *format, ...) {
  if (td_raised_is(I, TD_CLASS_MEMORY_ERROR)) return;
  td_text text = {0};
  va_list list;
  va_start(list, format);
  td_text_print_list(&text, format, list);
  va_end(list);
  td_text_add(&text, message_in_flight(I));
  put_message(I, &text);
}

void td_raise_renamed(td_interpreter *I, const char *old, const char *new) {
  if (td_is_nil(I->raised) || td_raised_is(I, TD_CLASS_MEMORY_ERROR)) return;
  const char *message = message_in_flight(I);
  size_t length = strlen(old);
  if (strncmp(message, old, length) != 0 || strncmp(message + length, ": ", 2) != 0) return;
  td_text text = {0};
  td_text_add(&text, new);
  td_text_add(&text, message + length);
  put_message(I, &text);
}

void td_raise_evidence(td_interpreter *I, td_value evidence) {
  if (td_is_nil(I->raised)) return;
  td_exception *exception = (td_exception *)I->raised.o;
  td_value old = exception->evidence;
  exception->evidence = td_ref(evidence);
  td_unref(old);
}

td_value td_raise_value(td_interpreter *I, td_value v) {
  if (td_is_exception_class(v)) {
    td_value made = td_call_values(I, v, 0, NULL);
    if (!td_is_nil(made)) td_raise_value(I, made);
    td_unref(made);
    return TD_NIL;
  }
  if (!td_is(v, &td_exception_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "exceptions must derive from BaseException");
  bool again =
      I->handling.tag == TD_TAG_OBJECT && I->handling.o == v.o; // raised on from its handler: it arose where it did
  if (!again) td_report_drop((td_exception *)v.o);
  put_new(I, td_ref(v), I->frame->call);
  return TD_NIL;
}

// ---- memory ----

td_value td_raise_memory(td_interpreter *I) {
  if (td_is_nil(I->core->memory_error)) return TD_NIL; // an interpreter that is being made: it won't be
  td_exception *e = (td_exception *)I->core->memory_error.o;
  td_str *message = td_as_str(td_as_tuple(e->arguments)->items[0]);
  if (message->object.refs == 1) {
    int length = snprintf(message->data, message->capacity + 1, "out of memory: %lld bytes asked for",
                          (long long)td_memory_failed());
    message->length = message->characters = (uint32_t)length;
    message->hash = 0;
  }
  if (I->raised.tag == TD_TAG_OBJECT && I->raised.o == &e->instance.container.object) return TD_NIL;
  td_report_drop(e);
  td_put_raised(I, td_ref(I->core->memory_error));
  td_report_fill(I, e, I->frame->call);
  return TD_NIL;
}

// ---- the engine's errors ----

static enum td_builtin_class class_of_code(int code) {
  static const char *const classes[] = {
#define X(name, class) [TD_ERROR_##name] = class,
      TD_ERRORS(X)
#undef X
  };
  static const char *const names[] = {
#define X(NAME, text, base) text,
      TD_BUILTIN_CLASSES(X)
#undef X
  };
  for (int i = 0; i < TD_CLASS_COUNT; i++)
    if (strcmp(names[i], classes[code]) == 0) return (enum td_builtin_class)i;
  return TD_CLASS_SYSTEM_ERROR;
}

static td_value raise_interrupt(td_interpreter *I) {
  atomic_store(&I->context->interrupt, 0);
  if (!td_map_lost()) return td_raise(I, TD_CLASS_KEYBOARD_INTERRUPT, "interrupted");
  return td_raise(I, TD_CLASS_OS_ERROR, "a mapped file became shorter while it was read: what is gone reads as zeros");
}

td_value td_raise_engine(td_interpreter *I) {
  td_error *error = &I->context->error;
  if (error->code == TD_OK) return td_raise(I, TD_CLASS_SYSTEM_ERROR, "the engine failed without saying why");
  if (error->code == TD_ERROR_CALLBACK && !td_is_nil(I->raised)) {
    td_error_clear(I->context);
    return TD_NIL;
  }
  if (error->code == TD_ERROR_INTERRUPT) {
    td_error_clear(I->context);
    return raise_interrupt(I);
  }
  td_raise(I, class_of_code(error->code), "%s", error->message);
  td_report *report = ((td_exception *)I->raised.o)->report;
  if (report) {
    if (error->hint[0]) memcpy(report->hint, error->hint, sizeof report->hint);
    report->operand_count = error->operand_count;
    memcpy(report->operands, error->operands, sizeof report->operands);
    td_report_name_operands(I, report);
  }
  td_error_clear(I->context);
  return TD_NIL;
}

bool td_interrupted_slow(td_interpreter *I) {
  if (I->turn) td_turn_yield(I);
  if (!atomic_load(&I->context->interrupt)) return false;
  raise_interrupt(I);
  return true;
}

// ---- handlers ----

bool td_is_exception_class(td_value v) { return td_is_class(v) && td_as_class(v)->instance_type == &td_exception_type; }

int td_exception_matches(td_interpreter *I, td_value exception, td_value type) {
  if (td_is(type, &td_tuple_type)) {
    for (int64_t i = 0; i < td_as_tuple(type)->count; i++) {
      int matches = td_exception_matches(I, exception, td_as_tuple(type)->items[i]);
      if (matches) return matches;
    }
    return 0;
  }
  if (td_is_exception_class(type)) return td_class_is_subclass(td_as_instance(exception)->class, td_as_class(type));
  td_raise(I, TD_CLASS_TYPE_ERROR, "catching classes that do not inherit from BaseException is not allowed");
  return -1;
}
