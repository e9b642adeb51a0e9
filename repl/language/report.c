// What is noted when an exception arises: the span of the node that ran, the calls that led there, and the source texts
// of a tensor operation's operands. All of it is copied, so a report outlives frames and trees.
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/diagnose.h"

enum { PATH_MAX_ROWS = sizeof((td_report *)0)->path / sizeof(td_call_site), INNER_ROWS = PATH_MAX_ROWS / 2 };

static td_place place_of(const td_node *node) { return (td_place)node->script << 32 | node->begin; }

static bool is_shown(const td_frame *frame) { return frame->call && frame->prototype; }

static void note_site(td_call_site *site, const td_frame *frame) {
  const td_prototype *prototype = frame->prototype;
  const td_str *name = prototype->qualified ? prototype->qualified : prototype->name;
  site->place = place_of(frame->call);
  site->end = frame->call->end;
  const char *text = frame->function ? name->data : ""; // a module's frame has no function
  snprintf(site->function, sizeof site->function, "%s", text);
}

static void note_path(const td_interpreter *I, td_report *report) { // first and last halves of a long path
  int total = 0;
  for (const td_frame *f = I->frame ? I->frame->caller : NULL; f; f = f->caller) total += is_shown(f);
  int dropped = total > PATH_MAX_ROWS ? total - PATH_MAX_ROWS : 0, index = 0;
  for (const td_frame *f = I->frame ? I->frame->caller : NULL; f; f = f->caller) {
    if (!is_shown(f)) continue;
    bool left_out = dropped && index >= INNER_ROWS && index < INNER_ROWS + dropped;
    if (!left_out) note_site(&report->path[report->path_count++], f);
    index++;
  }
  report->path_dropped = dropped;
}

void td_report_fill(td_interpreter *I, td_exception *exception, const td_node *node) {
  if (!exception->report) exception->report = td_memory_new_zero(sizeof *exception->report);
  td_report *report = exception->report;
  if (!report || report->place) return;
  if (!node && I->frame) node = I->frame->call;
  if (!node) return;
  report->place = place_of(node);
  report->end = node->end;
  note_path(I, report);
}

// ---- operands ----

static bool is_module(const td_node *node) { // a name of a module: random.normal(x) has x as its first argument
  return node->kind == TD_NODE_NAME && node->scope == TD_SCOPE_GLOBAL && node->global &&
         td_is(node->global->value, &td_module_type);
}

static const td_node *call_argument(const td_node *call, int index, const char *name) {
  const td_node *callee = call->a;
  if (callee->kind == TD_NODE_ATTRIBUTE && !is_module(callee->a)) {
    if (index == 0) return callee->a;
    index--;
  }
  for (int32_t i = 0; i < call->count; i++) {
    const td_node *item = call->items[i];
    if (item->kind == TD_NODE_KEYWORD && strcmp(item->name->data, name) == 0) return item->a;
    if (item->kind == TD_NODE_STARRED || item->kind == TD_NODE_DOUBLE_STARRED)
      return NULL; // what follows can't be counted
    if (i == index && item->kind != TD_NODE_KEYWORD) return item;
  }
  return NULL;
}

static const td_node *argument_of(const td_node *node, int index, const char *name) { // NULL: not known
  switch (node->kind) {
  case TD_NODE_CALL: return call_argument(node, index, name);
  case TD_NODE_BINARY:
  case TD_NODE_AUGMENT: return index == 0 ? node->a : index == 1 ? node->b : NULL;
  case TD_NODE_COMPARE: return node->count != 1 ? NULL : index == 0 ? node->a : index == 1 ? node->items[0] : NULL;
  case TD_NODE_UNARY:
  case TD_NODE_INDEX: return index == 0 ? node->a : NULL;
  default: return NULL;
  }
}

static void copy_source(const td_script *script, const td_node *node, char *text,
                        size_t size) { // short ones on one line only
  uint32_t begin = node->begin, end = node->end;
  if (node->script != script->id || end > script->length || end <= begin || end - begin >= size) return;
  const char *source = script->text + begin;
  for (uint32_t i = 0; i < end - begin; i++) {
    if ((unsigned char)source[i] < 0x20) return;
  }
  memcpy(text, source, end - begin);
  text[end - begin] = 0;
}

void td_report_name_operands(td_interpreter *I, td_report *report) {
  report->engine = true;
  const td_node *node = I->frame ? I->frame->call : NULL;
  const td_script *script = node ? td_source_find(&I->sources, place_of(node)) : NULL;
  for (int i = 0; script && i < report->operand_count; i++) {
    const td_operand *operand = &report->operands[i];
    const td_node *argument = operand->argument < 0 ? NULL : argument_of(node, operand->argument, operand->name);
    if (argument) copy_source(script, argument, report->expressions[i], sizeof report->expressions[i]);
  }
}

void td_report_name_compared(td_interpreter *I, const td_node *compare) {
  td_report *report = ((td_exception *)I->raised.o)->report;
  const td_script *script = td_source_find(&I->sources, place_of(compare));
  const td_node *operands[] = {compare->a, compare->items[0]};
  for (int i = 0; report && script && i < 2; i++)
    copy_source(script, operands[i], report->expressions[i], sizeof report->expressions[i]);
}
