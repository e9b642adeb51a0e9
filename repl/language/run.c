// Running a text: parse, resolve, execute, and tell the faces about it in events. Output of the running code is sent
// on line by line (whoever queues events may join them); what is left goes out where a statement of the top level
// ends.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/curve.h"

// ---- how deep the C stack may go ----

enum { STACK_RESERVE = 192 << 10, STACK_MOST = 512 << 20 };

// Called where code starts to run, since an interpreter may be made on one thread and run on another.
void td_stack_limit_find(td_interpreter *I) {
  char *here = __builtin_frame_address(0);
  I->stack_limit = here - (256 << 10);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes)) return;
  void *lowest;
  size_t size, guard = 0;
  if (!pthread_attr_getstack(&attributes, &lowest, &size)) {
    pthread_attr_getguardsize(&attributes, &guard);
    size_t below = (size_t)(here - (char *)lowest), reserve = size / 4 < STACK_RESERVE ? size / 4 : STACK_RESERVE;
    if (below > STACK_MOST) below = STACK_MOST;
    if (below > reserve + guard) I->stack_limit = here - below + reserve + guard;
  }
  pthread_attr_destroy(&attributes);
}

// ---- events ----

static void emit(td_interpreter *I, const td_event *event) {
  if (I->sink) I->sink->emit(I->sink->owner, event);
}

enum { OUTPUT_BATCH = 16 << 10 };

static void send_output(td_interpreter *I, size_t length) {
  td_text *output = &I->core->output;
  td_event event = {.kind = TD_EVENT_OUTPUT,
                    .cell = I->cell,
                    .stream = I->core->output_stream,
                    .text = output->data,
                    .length = length};
  char after = output->data[length];
  output->data[length] = 0;
  emit(I, &event);
  output->data[length] = after;
  memmove(output->data, output->data + length, output->length - length + 1);
  output->length -= length;
}

void td_output_flush(td_interpreter *I) {
  td_text *output = &I->core->output;
  if (output->length) send_output(I, output->length);
  output->failed = false;
}

static void output_piece(td_interpreter *I, int stream, const char *bytes, size_t length) {
  td_text *output = &I->core->output;
  td_text_add_bytes(output, bytes, length);
  if (output->failed) { // no memory to gather: what is there goes out, then these bytes
    td_output_flush(I);
    td_event event = {.kind = TD_EVENT_OUTPUT, .cell = I->cell, .stream = stream, .text = bytes, .length = length};
    emit(I, &event);
    return;
  }
  const char *newline = memrchr(bytes, '\n', length);
  if (newline) send_output(I, output->length - (size_t)(bytes + length - newline - 1));
  else if (output->length >= OUTPUT_BATCH) send_output(I, output->length);
}

// In pieces, so that no event is long.
void td_output(td_interpreter *I, int stream, const char *bytes, size_t length) {
  if (stream != I->core->output_stream) td_output_flush(I);
  I->core->output_stream = stream;
  for (size_t at = 0, piece; at < length; at += piece) {
    piece = length - at < OUTPUT_BATCH ? length - at : OUTPUT_BATCH;
    output_piece(I, stream, bytes + at, piece);
  }
}

// Where the user's own code is: a warning that arises inside the library names the line that called it.
td_place td_own_place(const td_interpreter *I) {
  td_place place = I->context->place;
  for (const td_frame *frame = I->frame; frame && frame->caller && td_deck_is(I, frame->module); frame = frame->caller)
    if (frame->caller->call) place = (td_place)frame->caller->call->script << 32 | frame->caller->call->begin;
  return place;
}

static void locate(const td_interpreter *I, td_place place, td_event *event) {
  const td_script *script = td_source_find(&I->sources, place);
  if (!script) return;
  event->name = script->name;
  td_source_position(script, (uint32_t)place, &event->line, &event->column);
}

void td_warn(td_interpreter *I, const char *message) {
  char text[96] = "";
  td_place place = td_own_place(I);
  td_output_flush(I);
  if (place) td_place_describe(I->context, place, text, sizeof text);
  td_event event = {
      .kind = TD_EVENT_WARNING, .cell = I->cell, .text = message, .length = strlen(message), .detail = text};
  locate(I, place, &event);
  emit(I, &event);
}

static void emit_error(td_interpreter *I, td_text *text, td_place place) {
  if (text->failed || !text->data) {
    td_text_clear(text);
    td_event event = {.kind = TD_EVENT_ERROR,
                      .cell = I->cell,
                      .text = "error: out of memory\n",
                      .length = 21,
                      .detail = "error: out of memory"};
    emit(I, &event);
    return;
  }
  size_t first = strcspn(text->data, "\n");
  char line_text[400];
  snprintf(line_text, sizeof line_text, "%.*s", (int)(first < sizeof line_text ? first : sizeof line_text - 1),
           text->data);
  td_event event = {
      .kind = TD_EVENT_ERROR, .cell = I->cell, .text = text->data, .length = text->length, .detail = line_text};
  locate(I, place, &event);
  emit(I, &event);
}

static void emit_exception(td_interpreter *I, td_value exception) {
  td_text text = {0};
  td_diagnose(I, exception, &text);
  td_clear_raised(I);
  const td_report *report = ((td_exception *)exception.o)->report;
  emit_error(I, &text, report ? report->place : 0);
  td_text_clear(&text);
}

static void emit_value(td_interpreter *I, td_value v) {
  td_text text = {0};
  if (td_repr(I, v, &text) && !text.failed) {
    td_output_flush(I);
    td_event event = {
        .kind = TD_EVENT_VALUE, .cell = I->cell, .text = text.data ? text.data : "", .length = text.length};
    emit(I, &event);
  } else if (td_is_nil(I->raised)) {
    td_raise_memory(I);
  }
  td_text_clear(&text);
}

// ---- a whole text ----

typedef struct run {
  td_script *script;
  td_arena *arena;
  td_prototype *prototype;
  td_diagnostic diagnostic;
  td_parse_result parsed;
} run;

static void run_prepare(td_interpreter *I, run *r, td_module *module, const char *text, size_t length, const char *name,
                        const char *folder) {
  td_node *tree;
  r->parsed = TD_PARSE_MEMORY;
  r->arena = td_arena_new();
  r->script = r->arena ? td_source_add(&I->sources, name, folder, text, length) : NULL;
  if (!r->script) return;
  td_arena_keep(r->arena, r->script);
  r->parsed = td_parse(r->script, r->arena, I, &tree, &r->diagnostic);
  if (r->parsed != TD_PARSED) return;
  r->prototype = td_resolve(I, r->script, r->arena, module, tree, &r->diagnostic);
  if (!r->prototype) r->parsed = td_is_nil(I->raised) && r->diagnostic.message[0] ? TD_PARSE_ERROR : TD_PARSE_MEMORY;
}

// The value of an expression at the top level is _ and, in a cell, _N.
static bool keep_result(td_interpreter *I, td_module *module, td_value v) {
  td_unref(I->last);
  I->last = td_ref(v);
  if (!td_module_put(I, module, I->names->underscore, td_ref(v))) return false;
  if (!I->cell) return true;
  char name[24];
  snprintf(name, sizeof name, "_%d", I->cell);
  td_str *key = td_str_intern(I, name, strlen(name));
  bool ok = key && td_dict_set_str(I, I->results, key, v) && td_module_put(I, module, key, td_ref(v));
  td_unref(td_from(key));
  return ok;
}

static int show_value(td_interpreter *I, const td_node *n, td_module *module, td_value v) { // takes over v
  if (td_is_nil(v)) return TD_FLOW_ERROR;
  if (!td_is_none(v) && !(n->flags & TD_NODE_HIDE)) {
    td_mark(I, n);
    if (keep_result(I, module, v)) emit_value(I, v);
  }
  td_unref(v);
  return td_is_nil(I->raised) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static int run_statement(td_interpreter *I, const td_node *n, td_module *module, bool echo) {
  int flow;
  if (td_interrupted(I)) return TD_FLOW_ERROR;
  if (echo && n->kind == TD_NODE_EXPRESSION) flow = show_value(I, n, module, n->a->evaluate(I, n->a));
  else if (echo && n->kind == TD_NODE_COMMAND && I->command)
    flow = (td_mark(I, n), show_value(I, n, module, I->command(I, (char)n->op, td_as_str(n->value)->data)));
  else flow = n->execute(I, n);
  if (I->core->output.length) td_output_flush(I);
  return flow;
}

// Runs the statements one by one, in a frame whose slots are the hidden ones of comprehensions.
static bool run_tree(td_interpreter *I, td_module *module, td_prototype *p, const td_run_options *options) {
  td_value *slots = I->stack_top;
  if (!td_stack_room(I, p->slot_count)) return false;
  for (int32_t i = 0; i < p->slot_count; i++) slots[i] = TD_NIL;
  td_frame *caller = I->frame;
  td_frame frame = {.caller = caller, .prototype = p, .module = module, .slots = slots, .call = p->body};
  bool ok = td_frame_open(I, p, slots, NULL);
  I->frame = &frame;
  I->slots = slots;
  I->stack_top = slots + p->slot_count;
  I->depth++;
  for (int32_t i = 0; ok && i < p->body->count; i++) {
    bool echo = options && (options->echo_all || (options->echo_last && i + 1 == p->body->count));
    ok = run_statement(I, p->body->items[i], module, echo) == TD_FLOW_NEXT;
  }
  I->depth--;
  I->frame = caller;
  I->slots = caller->slots;
  for (int32_t i = 0; i < p->slot_count; i++) td_unref(slots[i]);
  I->stack_top = slots;
  return ok;
}

static void raise_syntax(td_interpreter *I, const run *r) {
  td_raise(I, TD_CLASS_SYNTAX_ERROR, "%s", r->diagnostic.message);
  td_report *report = td_is_nil(I->raised) ? NULL : ((td_exception *)I->raised.o)->report;
  if (!report) return;
  report->place = (td_place)r->script->id << 32 | r->diagnostic.span.begin;
  report->end = r->diagnostic.span.end;
  snprintf(report->hint, sizeof report->hint, "%s", r->diagnostic.hint);
}

td_run_result td_run_module(td_interpreter *I, td_module *module, const char *text, size_t length, const char *name,
                            const char *folder) {
  run r = {0};
  run_prepare(I, &r, module, text, length, name, folder);
  bool ok = false;
  if (r.parsed == TD_PARSED) ok = run_tree(I, module, r.prototype, NULL);
  else if (r.parsed == TD_PARSE_MEMORY && td_is_nil(I->raised)) td_raise_memory(I);
  else if (td_is_nil(I->raised)) raise_syntax(I, &r);
  if (r.arena) td_arena_unref(r.arena);
  return ok ? TD_RUN_DONE : TD_RUN_FAILED;
}

static int exit_code_of(td_interpreter *I, td_value exception) { // of SystemExit
  td_tuple *arguments = td_as_tuple(((td_exception *)exception.o)->arguments);
  td_value code = arguments->count ? arguments->items[0] : TD_NONE;
  if (td_is_none(code)) return 0;
  if (code.tag == TD_TAG_INT || code.tag == TD_TAG_BOOL) return (int)(code.i & 0xff);
  td_text text = {0};
  if (td_print(I, code, &text)) {
    td_text_add_char(&text, '\n');
    if (text.data) td_output(I, 2, text.data, text.length);
  }
  td_text_clear(&text);
  td_clear_raised(I);
  td_output_flush(I);
  return 1;
}

static td_run_result finish_exception(td_interpreter *I) {
  td_value exception = td_take_raised(I);
  td_class *class = td_as_instance(exception)->class;
  td_run_result result = TD_RUN_FAILED;
  td_output_flush(I);
  if (td_class_is_subclass(class, I->classes[TD_CLASS_SYSTEM_EXIT])) {
    I->core->exit_code = exit_code_of(I, exception);
    result = TD_RUN_EXIT;
  } else {
    if (td_class_is_subclass(class, I->classes[TD_CLASS_KEYBOARD_INTERRUPT])) result = TD_RUN_INTERRUPTED;
    emit_exception(I, exception);
  }
  td_unref(exception);
  return result;
}

static td_run_result finish_unparsed(td_interpreter *I, const run *r) {
  if (r->parsed == TD_PARSE_MEMORY) {
    if (td_is_nil(I->raised)) td_raise_memory(I);
    return finish_exception(I);
  }
  td_text text = {0};
  td_diagnose_syntax(r->script, &r->diagnostic, &text);
  emit_error(I, &text, (td_place)r->script->id << 32 | r->diagnostic.span.begin);
  td_text_clear(&text);
  return TD_RUN_FAILED;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static td_run_result run_text(td_interpreter *I, td_module *module, const run *r, const td_run_options *options) {
  if (r->parsed != TD_PARSED) return finish_unparsed(I, r);
  bool ok = run_tree(I, module, r->prototype, options);
  td_output_flush(I);
  return ok ? TD_RUN_DONE : finish_exception(I);
}

td_run_result td_run(td_interpreter *I, td_module *module, const char *text, size_t length,
                     const td_run_options *options) {
  run r = {0};
  int32_t outer = I->cell;
  double begin = seconds_now();
  if (I->frame == &I->core->root) td_stack_limit_find(I);
  I->cell = options->cell;
  int level = I->core->detours;
  td_event started = {.kind = TD_EVENT_CELL_STARTED, .cell = I->cell, .text = text, .length = length, .level = level};
  emit(I, &started);
  run_prepare(I, &r, module, text, length, options->name, options->folder);
  if (r.script) r.script->line_base = options->line;
  td_run_result result = run_text(I, module, &r, options);
  if (r.arena) td_arena_unref(r.arena);
  td_plots_flush(I);
  td_event finished = {.kind = TD_EVENT_CELL_FINISHED,
                       .cell = I->cell,
                       .level = level,
                       .seconds = seconds_now() - begin,
                       .status = (int32_t)result,
                       .total = result == TD_RUN_EXIT ? I->core->exit_code : 0};
  emit(I, &finished);
  I->cell = outer;
  return result;
}

td_parse_result td_check_complete(td_interpreter *I, const char *text, size_t length) {
  td_arena *arena = td_arena_new();
  td_script *script = arena ? td_source_add(&I->sources, "<input>", "", text, length) : NULL;
  td_parse_result result = TD_PARSE_MEMORY;
  td_diagnostic diagnostic;
  td_node *tree;
  if (script) {
    td_arena_keep(arena, script);
    result = td_parse(script, arena, I, &tree, &diagnostic);
  }
  td_clear_raised(I);
  if (arena) td_arena_unref(arena);
  return result;
}

int td_exit_code(const td_interpreter *I) { return I->core->exit_code; }
