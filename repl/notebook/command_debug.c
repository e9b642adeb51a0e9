// %debug EXPRESSION: runs it and stops before each statement of the functions it calls, with pdb's keys.
//  1. A function is prepared where it is called: the statements of its blocks get debug_statement as their execute.
//  2. debug_statement stops, prepares the blocks under its statement and runs what td_execute_choose names for it.
//     Where no debugger is active it puts that back, so code that was once debugged runs as fast as ever.
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/notebook/commands.h"

enum { SHOWN_MOST = 2000, LIST_LINES = 5 };

typedef struct debugger {
  enum { STEP, NEXT, CONTINUE } mode;
  int32_t depth;   // NEXT: stops again where no more calls than these are open
  bool paused;     // p evaluates something: no stops
  bool quit;
  char last;       // the key that an empty line repeats
} debugger;

static _Thread_local debugger *active; // an interpreter runs on one thread

// ---- preparing blocks ----

static td_execute debug_statement;

static void prepare(td_node *block) {
  for (int32_t i = 0; block && i < block->count; i++) block->items[i]->execute = debug_statement;
}

static void prepare_under(const td_node *n) {
  switch (n->kind) {
  case TD_NODE_IF:
    for (; n && n->kind == TD_NODE_IF; n = n->c) prepare(n->b);
    prepare((td_node *)n);
    break;
  case TD_NODE_WHILE: prepare(n->b), prepare(n->c); break;
  case TD_NODE_FOR: prepare(n->c), prepare(n->d); break;
  case TD_NODE_WITH: prepare(n->c); break;
  case TD_NODE_TRY:
    for (int32_t i = 0; i < n->count; i++) prepare(n->items[i]->c);
    prepare(n->a), prepare(n->c), prepare(n->d);
    break;
  default: break;
  }
}

static void on_call(td_interpreter *I, const td_prototype *callee) {
  (void)I;
  if (active && !active->paused && active->mode != CONTINUE && !callee->is_expression) prepare(callee->body);
}

// ---- showing ----

static void value_print(td_interpreter *I, const char *before, td_value v, td_text *text) {
  td_text shown = {0};
  size_t column = strlen(before);
  if (!td_repr(I, v, &shown)) td_clear_raised(I);
  td_text_add(text, before);
  for (size_t i = 0; i < shown.length && i < SHOWN_MOST; i++) {
    td_text_add_char(text, shown.data[i]);
    if (shown.data[i] == '\n') td_text_pad(text, text->length + column, ' ');
  }
  td_text_add(text, shown.length > SHOWN_MOST ? " ...\n" : "\n");
  td_text_clear(&shown);
}

static void line_print(const td_script *script, int line, const char *mark, td_text *text) {
  int length;
  const char *source = td_source_line(script, line, &length);
  td_text_print(text, "%s", mark);
  td_source_print(text, source ? source : "", source ? (size_t)length : 0);
  td_text_add_char(text, '\n');
}

static int line_of(const td_frame *frame, const td_node *n) {
  int line, column;
  td_source_position(frame->prototype->script, n->begin, &line, &column);
  return line;
}

static void show_stop(td_interpreter *I, const td_node *n) {
  const td_frame *frame = I->frame;
  td_text text = {0};
  int line = line_of(frame, n);
  td_text_print(&text, "> %s:%d in %s\n", frame->prototype->script->name, line, frame->prototype->name->data);
  line_print(frame->prototype->script, line, "-> ", &text);
  td_output_text(I, &text);
}

static void show_list(td_interpreter *I, const td_node *n) {
  td_text text = {0};
  const td_script *script = I->frame->prototype->script;
  int line = line_of(I->frame, n), first = line - LIST_LINES, last = line + LIST_LINES, length;
  while (first < line && td_source_line(script, first, &length)[0] == 0)
    first++; // lines that the script does not have, and empty ones
  while (last > line && td_source_line(script, last, &length)[0] == 0) last--;
  for (int at = first; at <= last; at++) {
    td_text_print(&text, "%4d ", at);
    line_print(script, at, at == line ? "-> " : "   ", &text);
  }
  td_output_text(I, &text);
}

static void show_path(td_interpreter *I) { // outermost first, as pdb does
  const td_frame *frames[64];
  int count = 0;
  for (const td_frame *f = I->frame; f && count < 64; f = f->caller)
    if (f->function && f->call) frames[count++] = f;
  td_text text = {0};
  while (count > 0) {
    const td_frame *f = frames[--count];
    td_text_print(&text, "%s%s:%d in %s\n", count ? "  " : "> ", f->prototype->script->name, line_of(f, f->call),
                  f->prototype->name->data);
  }
  td_output_text(I, &text);
}

static td_value slot_value(const td_frame *frame, int32_t slot) { // borrowed
  td_value v = frame->slots[slot];
  return td_is(v, &td_cell_type) ? ((td_cell *)v.o)->value : v;
}

// What a statement has just made: "h = float32..." for names, the value of return.
static void show_result(td_interpreter *I, const td_node *n, int flow) {
  td_text text = {0};
  if (flow == TD_FLOW_RETURN) value_print(I, "   returns ", I->frame->returned, &text);
  for (int32_t i = 0; n->kind == TD_NODE_ASSIGN && i < n->count; i++) {
    const td_node *target = n->items[i];
    int32_t parts = target->kind == TD_NODE_TUPLE || target->kind == TD_NODE_LIST ? target->count : 1;
    for (int32_t k = 0; k < parts; k++) {
      const td_node *name = parts == 1 && target->kind == TD_NODE_NAME ? target
                            : target->count                            ? target->items[k]
                                                                       : target;
      if (name->kind != TD_NODE_NAME || (name->scope != TD_SCOPE_LOCAL && name->scope != TD_SCOPE_CELL)) continue;
      td_value v = slot_value(I->frame, name->slot);
      td_text lead = {0};
      td_text_print(&lead, "   %s = ", name->name->data);
      if (!td_is_nil(v) && lead.data) value_print(I, lead.data, v, &text);
      td_text_clear(&lead);
    }
  }
  if (text.length) td_output_text(I, &text);
  td_text_clear(&text);
}

// ---- p EXPRESSION ----

// The expression as a function of the frame's names, called with their values.
static td_value evaluate_here(td_interpreter *I, const char *expression) {
  const td_frame *frame = I->frame;
  const td_prototype *p = frame->prototype;
  td_value *values = td_memory_new(((size_t)p->slot_count + 1) * sizeof *values);
  td_text text = {0};
  int count = 0;
  td_text_add(&text, "lambda ");
  for (int32_t i = 0; values && i < p->slot_count; i++) {
    if (!p->slot_names[i] || td_is_nil(slot_value(frame, i))) continue;
    td_text_print(&text, "%s%s", count ? ", " : "", p->slot_names[i]->data);
    values[count++] = slot_value(frame, i);
  }
  td_text_print(&text, ": (%s)", expression);
  td_value callee = !values || text.failed ? td_raise_memory(I) : td_evaluate_in(I, frame->module, text.data, "%debug");
  td_value v = td_is_nil(callee) ? TD_NIL : td_call_values(I, callee, count, values);
  td_unref(callee);
  td_memory_free(values);
  td_text_clear(&text);
  return v;
}

static void show_expression(td_interpreter *I, const char *expression) {
  active->paused = true;
  td_value v = evaluate_here(I, expression);
  if (td_is_nil(v)) td_output_raised(I);
  else {
    td_text text = {0};
    value_print(I, "", v, &text);
    td_output_text(I, &text);
  }
  active->paused = false;
  td_unref(v);
}

// ---- keys ----

static const char keys_text[] =
    "  n          runs this line and stops at the next one of this function\n"
    "  s          as n, but stops in functions that the line calls\n"
    "  r          runs on until this function has returned\n"
    "  c          runs on without stops\n"
    "  p EXPR     the value of an expression; an expression alone does the same\n"
    "  l          the source around this line\n"
    "  w          the calls that led here\n"
    "  q          ends the run\n"
    "  an empty line repeats n or s\n";

static void go_on(td_interpreter *I, char key) {
  debugger *d = active;
  d->last = key == 'r' ? 'n' : key;
  d->mode = key == 's' ? STEP : key == 'c' ? CONTINUE : NEXT;
  d->depth = key == 'r' ? I->depth - 1 : I->depth;
}

static void show_keys(td_interpreter *I) { td_output(I, 1, keys_text, sizeof keys_text - 1); }

// One line from the user; true: the program goes on.
static bool obey(td_interpreter *I, const td_node *n, const char *line) {
  static const struct { const char *word; char key;
  } words[] = {{"n", 'n'},      {"next", 'n'}, {"s", 's'},    {"step", 's'},     {"r", 'r'},
               {"return", 'r'}, {"c", 'c'},    {"cont", 'c'}, {"continue", 'c'}, {"q", 'q'},
               {"quit", 'q'},   {"exit", 'q'}, {"l", 'l'},    {"list", 'l'},     {"w", 'w'},
               {"where", 'w'},  {"bt", 'w'},   {"h", 'h'},    {"help", 'h'},     {"?", 'h'}};
  char key = *line ? 0 : active->last;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(line, words[i].word) == 0) key = words[i].key;
  switch (key) {
  case 'l': show_list(I, n); return false;
  case 'w': show_path(I); return false;
  case 'h': show_keys(I); return false;
  case 'q': active->quit = true; return true;
  case 0: show_expression(I, line[0] == 'p' && (line[1] == ' ' || line[1] == '\t') ? line + 2 : line); return false;
  default: go_on(I, key); return true;
  }
}

// false: an exception is in flight.
static bool stop_at(td_interpreter *I, const td_node *n) {
  td_mark(I, n);
  show_stop(I, n);
  for (bool goes_on = false; !goes_on && td_is_nil(I->raised);) {
    td_output_flush(I);
    char *line = I->read_line ? I->read_line(I, "(debug) ") : NULL;
    if (!line && !td_is_nil(I->raised)) return false;
    if (!line) active->quit = true;
    char *start = line ? line + strspn(line, " \t") : NULL;
    for (size_t end = start ? strlen(start) : 0; end && strchr(" \t\r", start[end - 1]); end--) start[end - 1] = 0;
    goes_on = !start || obey(I, n, start);
    td_memory_free(line);
  }
  td_mark(I, n);
  if (active->quit) td_raise(I, TD_CLASS_KEYBOARD_INTERRUPT, "the debugger was left");
  return td_is_nil(I->raised);
}

static int debug_statement(td_interpreter *I, const td_node *n) {
  td_execute *run = td_execute_choose(n);
  if (!active) {
    ((td_node *)n)->execute = run;
    return run(I, n);
  }
  if (active->paused || active->mode == CONTINUE) return run(I, n);
  prepare_under(n);
  bool stops = active->mode == STEP || I->depth <= active->depth;
  if (stops && !stop_at(I, n)) return TD_FLOW_ERROR;
  int flow = run(I, n);
  if (stops && active && active->mode != CONTINUE && flow != TD_FLOW_ERROR) show_result(I, n, flow);
  return flow;
}

static td_value run_debug(td_interpreter *I, const char *expression) {
  if (!*expression)
    return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%debug needs an expression, such as %%debug step(x, y)");
  if (active) return td_raise(I, TD_CLASS_RUNTIME_ERROR, "%%debug runs already: leave it with q first");
  debugger d = {.mode = STEP, .last = 'n'};
  int32_t limit = I->depth_limit;
  active = &d;
  I->on_call = on_call;
  I->depth_limit = 0;
  td_value v = td_evaluate_text(I, expression, "%debug");
  I->depth_limit = limit;
  I->on_call = NULL;
  active = NULL;
  if (!d.quit || !td_is_nil(v)) return v;
  td_clear_raised(I);
  return TD_NONE;
}

const td_command_row td_commands_debug[] = {
    {"debug", "%debug EXPRESSION", run_debug,
     "Runs it and stops before each statement of the functions it calls: n, s, p EXPR, l, w, c, q."},
    {NULL, NULL, NULL, NULL}};
