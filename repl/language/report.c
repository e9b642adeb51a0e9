// What is noted when an exception arises: the span of the node that ran, the calls that led there, and the source texts
// of a tensor operation's operands. All of it is copied, so a report outlives frames and trees.
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/tensors.h"

enum { PATH_MAX_ROWS = sizeof((td_report *)0)->path / sizeof(td_call_site), INNER_ROWS = PATH_MAX_ROWS / 2 };

static td_place place_of(const td_node *node) { return (td_place)node->script << 32 | node->begin; }

static bool is_shown(const td_frame *frame) { return frame->call && frame->prototype; }

static bool is_library(const td_interpreter *I, const td_frame *frame) {
  return frame && frame->prototype && td_deck_is(I, frame->module);
}

static const td_frame *next_shown(const td_frame *frame) {
  do frame = frame->caller;
  while (frame && !is_shown(frame));
  return frame;
}

// The innermost frame that runs the user's code; the innermost of all when there is none, or the library alone is to
// blame.
static const td_frame *own_frame(td_interpreter *I, const td_exception *exception) {
  static const enum td_builtin_class faults[] = {TD_CLASS_NAME_ERROR, TD_CLASS_IMPORT_ERROR, TD_CLASS_SYNTAX_ERROR,
                                                 TD_CLASS_SYSTEM_ERROR, TD_CLASS_ASSERTION_ERROR};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (td_class_is_subclass(exception->instance.class, I->classes[faults[i]])) return I->frame;
  const td_frame *frame = I->frame;
  while (frame && is_library(I, frame)) frame = next_shown(frame);
  return frame ? frame : I->frame;
}

static void note_site(td_call_site *site, const td_frame *frame, bool library, bool within) {
  const td_prototype *prototype = frame->prototype;
  const td_str *name = prototype->qualified ? prototype->qualified : prototype->name;
  site->place = place_of(frame->call);
  site->end = frame->call->end;
  site->within = within;
  const char *text = frame->function ? name->data : ""; // a module's frame has no function
  const char *end = library ? strstr(text, ".<locals>") : NULL; // a helper's owner is what people know
  snprintf(site->function, sizeof site->function, "%.*s", (int)(end ? end - text : (long)strlen(text)), text);
}

// Of calls within the library the first and the last are enough.
static bool is_kept(const td_interpreter *I, const td_frame *inner, const td_frame *frame) {
  return !is_library(I, inner) || !is_library(I, frame) || !is_library(I, next_shown(frame));
}

// The calls that led from the module to where the exception arose, innermost first, less the one at own: the frame that
// the report shows first. Of a long path the first and the last half.
static void note_path(const td_interpreter *I, td_report *report, const td_frame *own) {
  int total = 0, index = 0;
  bool within = own != I->frame;
  const td_frame *begin = within ? I->frame : next_shown(own);
  for (const td_frame *f = begin, *inner = NULL; f; inner = f, f = next_shown(f))
    total += f != own && is_kept(I, inner, f);
  int dropped = total > PATH_MAX_ROWS ? total - PATH_MAX_ROWS : 0;
  for (const td_frame *f = begin, *inner = NULL; f; inner = f, f = next_shown(f)) {
    if (f == own) within = false;
    if (f == own || !is_kept(I, inner, f)) continue;
    bool left_out = dropped && index >= INNER_ROWS && index < INNER_ROWS + dropped;
    if (!left_out) note_site(&report->path[report->path_count++], f, is_library(I, f), within);
    index++;
  }
  report->path_dropped = dropped;
}

void td_report_fill(td_interpreter *I, td_exception *exception, const td_node *node) {
  if (!exception->report) exception->report = td_memory_new_zero(sizeof *exception->report);
  td_report *report = exception->report;
  if (!report || report->place) return;
  const td_frame *own = I->frame ? own_frame(I, exception) : NULL;
  if (own && (own != I->frame || !node)) node = own->call;
  if (!node) return;
  report->place = place_of(node);
  report->end = node->end;
  if (own) note_path(I, report, own);
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

// ---- operands of an op that ran within the library ----

typedef struct likeness { // which argument of the user's call an operand may be
  const td_operand *operand;
  const td_node *found;
  int count;
} likeness;

static bool is_operand(td_value v, const td_operand *operand) {
  const td_tensor *t = td_tensor_of(v);
  if (t) return t->dtype == operand->dtype && td_shape_equal(t->rank, t->shape, operand->rank, operand->shape);
  bool whole = v.tag == TD_TAG_INT && operand->dtype == TD_INT64;
  return operand->rank == 0 && (whole || (v.tag == TD_TAG_DOUBLE && td_dtype_is_float(operand->dtype)));
}

// Looks into tuples and lists that the call displays: jvp(f, (x, y), ...).
static void look_at(likeness *l, const td_node *node, td_value v) {
  bool displayed = node->kind == TD_NODE_TUPLE || node->kind == TD_NODE_LIST;
  bool is_tuple = td_is(v, &td_tuple_type);
  if (displayed && (is_tuple || td_is(v, &td_list_type))) {
    int64_t count = is_tuple ? td_as_tuple(v)->count : td_as_list(v)->count;
    const td_value *items = is_tuple ? td_as_tuple(v)->items : td_as_list(v)->items;
    for (int32_t i = 0; count == node->count && i < node->count; i++) look_at(l, node->items[i], items[i]);
  } else if (is_operand(v, l->operand)) {
    l->found = node;
    l->count++;
  }
}

static td_value parameter_value(const td_frame *frame, int32_t slot) { // borrowed
  td_value v = frame->slots[slot];
  return td_is(v, &td_cell_type) ? ((td_cell *)v.o)->value : v;
}

// Positional argument number index of a call of a function, by the parameter that took it; NIL: not known.
static td_value taken_value(const td_frame *callee, int32_t index) {
  const td_prototype *p = callee->prototype;
  if (index < p->positional) return parameter_value(callee, index);
  td_value rest = p->star ? parameter_value(callee, p->positional + p->keyword_only) : TD_NIL;
  index -= p->positional;
  return td_is(rest, &td_tuple_type) && index < td_as_tuple(rest)->count ? td_as_tuple(rest)->items[index] : TD_NIL;
}

static int32_t parameter_index(const td_prototype *p, const td_str *name) {
  for (int32_t i = 0; i < p->positional + p->keyword_only; i++)
    if (p->slot_names[i] && td_str_equal(p->slot_names[i], name)) return i;
  return -1;
}

static bool is_method(const td_function *f) { // "Adam.step", and not "adam.<locals>.step"
  uint32_t before = f->qualified->length - f->name->length;
  return before > 1 && f->qualified->data[before - 1] == '.' && f->qualified->data[before - 2] != '>';
}

// The argument of the user's call that the operand is: the only one of its dtype and shape, or the one of these whose
// parameter the library's expression names.
static const td_node *likely_argument(const td_node *call, const td_frame *callee, const td_operand *operand,
                                      const td_node *expression) {
  const td_prototype *p = callee->prototype;
  likeness all = {.operand = operand};
  int32_t named = expression && expression->kind == TD_NODE_NAME ? parameter_index(p, expression->name) : -1;
  int32_t position = is_method(callee->function); // self comes first
  for (int32_t i = 0; i < call->count; i++) {
    const td_node *item = call->items[i];
    if (item->kind == TD_NODE_STARRED || item->kind == TD_NODE_DOUBLE_STARRED) return NULL;
    int32_t at = item->kind == TD_NODE_KEYWORD ? parameter_index(p, item->name) : position++;
    likeness one = {.operand = operand};
    if (at >= 0) look_at(&one, item->kind == TD_NODE_KEYWORD ? item->a : item, taken_value(callee, at));
    if (one.count == 1 && at == named) return one.found;
    if (one.count) all.found = one.found;
    all.count += one.count;
  }
  return all.count == 1 ? all.found : NULL;
}

static const td_node *own_argument(td_interpreter *I, const td_frame *own, const td_operand *operand,
                                   const td_node *expression) {
  const td_frame *callee = I->frame;
  while (callee->caller != own) callee = callee->caller;
  bool known = own->call->kind == TD_NODE_CALL && callee->function && callee->prototype;
  return known ? likely_argument(own->call, callee, operand, callee == I->frame ? expression : NULL) : NULL;
}

// What the op calls x is nothing that the user could know: "x in cosine_similarity".
static void name_within(const td_frame *frame, td_operand *operand) {
  char name[sizeof operand->name];
  int room = (int)sizeof name - (int)strlen(operand->name) - 5;
  if (room < 8 || !frame->function) return;
  snprintf(name, sizeof name, "%.*s in %.*s", (int)strlen(operand->name), operand->name, room,
           frame->function->name->data);
  memcpy(operand->name, name, sizeof name);
}

// PyTorch's users mean the last two axes.
static void explain_transposed(td_report *report) {
  for (int i = 0; i < report->operand_count; i++) {
    size_t length = strlen(report->expressions[i]);
    int rank = report->operands[i].rank;
    if (rank > 2 && length > 2 && strcmp(report->expressions[i] + length - 2, ".T") == 0)
      snprintf(report->hint, sizeof report->hint, "with %d axes .T reverses all of them; .mT swaps the last two", rank);
  }
}

void td_report_name_operands(td_interpreter *I, td_report *report) {
  report->engine = true;
  const td_node *node = I->frame ? I->frame->call : NULL;
  const td_frame *own = node ? own_frame(I, (const td_exception *)I->raised.o) : NULL;
  for (int i = 0; node && i < report->operand_count; i++) {
    td_operand *operand = &report->operands[i];
    const td_node *argument = operand->argument < 0 ? NULL : argument_of(node, operand->argument, operand->name);
    if (own != I->frame) argument = own_argument(I, own, operand, argument);
    const td_script *script = argument ? td_source_find(&I->sources, place_of(argument)) : NULL;
    if (script) copy_source(script, argument, report->expressions[i], sizeof report->expressions[i]);
    else if (own != I->frame && operand->name[0]) name_within(I->frame, operand);
  }
  explain_transposed(report);
}

void td_report_name_compared(td_interpreter *I, const td_node *compare) {
  td_report *report = ((td_exception *)I->raised.o)->report;
  const td_script *script = td_source_find(&I->sources, place_of(compare));
  const td_node *operands[] = {compare->a, compare->items[0]};
  for (int i = 0; report && script && i < 2; i++)
    copy_source(script, operands[i], report->expressions[i], sizeof report->expressions[i]);
}
