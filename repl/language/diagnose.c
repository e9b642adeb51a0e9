// What a person reads about an error: "error:" and the message, the source line with carets under the span, a row for
// each operand, the calls that led there, the hint. Whatever comes from data is printed so that it can't act on the
// terminal; long lines are cut around the span.
#include "repl/language/core.h"

#include <inttypes.h>
#include <string.h>

#include "engine/tensor/dtype.h"

enum { LINE_COLUMNS = 120, BEFORE_SPAN = 40, TAB_COLUMNS = 4, CAUSES_MAX = 5, MESSAGE_MOST = 2000, VALUE_MOST = 200 };

// ---- texts ----

static void add_visible(td_text *text, const char *bytes, size_t length) { // lines and tabs of a message are kept
  for (size_t at = 0; at < length;) {
    size_t end = at;
    while (end < length && bytes[end] != '\n' && bytes[end] != '\t') end++;
    td_source_print(text, bytes + at, end - at);
    if (end < length) td_text_add_char(text, bytes[end] == '\t' ? ' ' : '\n');
    at = end + 1;
  }
}

static int add_place(td_text *text, const td_script *script, uint32_t offset) { // "train.deck:14"; returns its columns
  int line;
  td_source_position(script, offset, &line, NULL);
  int columns = td_source_print(text, script->name, strlen(script->name));
  size_t before = text->length;
  td_text_print(text, ":%d", line);
  return columns + (int)(text->length - before);
}

// ---- the source line ----

typedef struct row { // a source line being printed
  const char *text;
  uint32_t from, to; // the part that is shown
  uint32_t begin, end; // the span, within the line
  int columns, first, last; // columns so far; where the span begins and ends
} row;

static int character_columns(const row *r, uint32_t at, int columns, uint32_t *size) {
  uint32_t c;
  int bytes = td_source_decode(r->text + at, r->to - at, &c);
  *size = bytes ? (uint32_t)bytes : 1;
  if (r->text[at] == '\t') return TAB_COLUMNS - columns % TAB_COLUMNS;
  return td_source_print(NULL, r->text + at, *size);
}

static bool is_long(const row *r, int room) {
  int columns = 0;
  uint32_t size;
  for (uint32_t at = r->from; at < r->to; at += size) {
    columns += character_columns(r, at, columns, &size);
    if (columns > room) return true;
  }
  return false;
}

static uint32_t step_back(const row *r, uint32_t at, int characters) {
  while (at > r->from && characters > 0) {
    at--;
    if (((unsigned char)r->text[at] & 0xc0) != 0x80) characters--;
  }
  return at;
}

static void print_row(row *r, td_text *text, int room) {
  bool cut = is_long(r, room);
  uint32_t from = cut ? step_back(r, r->begin, BEFORE_SPAN) : r->from, size;
  if (from > r->from) {
    td_text_add(text, "...");
    r->columns = 3;
  }
  r->first = r->last = -1;
  uint32_t at = from;
  for (; at < r->to; at += size) {
    int columns = character_columns(r, at, r->columns, &size);
    if (cut && r->columns + columns > room - 3) break;
    if (at >= r->begin && r->first < 0) r->first = r->columns;
    if (at >= r->end && r->last < 0) r->last = r->columns;
    if (r->text[at] == '\t') td_text_pad(text, text->length + (size_t)columns, ' ');
    else td_source_print(text, r->text + at, size);
    r->columns += columns;
  }
  if (r->first < 0) r->first = r->columns;
  if (r->last < 0) r->last = r->columns;
  if (at < r->to) td_text_add(text, "...");
}

static void add_source(td_text *text, const td_script *script, uint32_t begin, uint32_t end) {
  int line, length;
  td_source_position(script, begin, &line, NULL);
  const char *source = td_source_line(script, line, &length);
  uint32_t start = (uint32_t)(source - script->text);
  row r = {.text = script->text, .from = start, .to = start + (uint32_t)length};
  while (r.from < r.to && (script->text[r.from] == ' ' || script->text[r.from] == '\t') && r.from < begin) r.from++;
  while (r.to > r.from && r.to > end && (script->text[r.to - 1] == ' ' || script->text[r.to - 1] == '\t')) r.to--;
  r.begin = begin < r.to ? begin : r.to;
  r.end = end < r.begin ? r.begin : end < r.to ? end : r.to;
  td_text_add(text, "  ");
  int indent = add_place(text, script, begin) + 4;
  td_text_add(text, "  ");
  print_row(&r, text, indent + 40 < LINE_COLUMNS ? LINE_COLUMNS - indent : 40);
  td_text_add_char(text, '\n');
  td_text_pad(text, text->length + (size_t)(indent + r.first), ' ');
  int carets = r.last > r.first ? r.last - r.first : 1;
  td_text_pad(text, text->length + (size_t)carets, '^');
  td_text_add_char(text, '\n');
}

// ---- operands, path, hint ----

static const char *operand_name(const td_report *report, int i) {
  return report->expressions[i][0] ? report->expressions[i] : report->operands[i].name;
}

static void add_row_name(td_text *text, const char *name, int widest) {
  td_text_add(text, "  ");
  int columns = td_source_print(text, name, strlen(name));
  td_text_pad(text, text->length + (size_t)(widest - columns) + 2, ' ');
}

static void add_operands(td_text *text, const td_report *report) {
  int widest = 0;
  for (int i = 0; i < report->operand_count; i++) {
    const char *name = operand_name(report, i);
    int columns = td_source_print(NULL, name, strlen(name));
    if (columns > widest) widest = columns;
  }
  for (int i = 0; i < report->operand_count; i++) {
    const td_operand *operand = &report->operands[i];
    add_row_name(text, operand_name(report, i), widest);
    td_text_add(text, td_dtype_name(operand->dtype));
    td_text_add_char(text, '[');
    for (int axis = 0; axis < operand->rank && axis < TD_RANK_MAX; axis++)
      td_text_print(text, axis ? ", %" PRId64 : "%" PRId64, operand->shape[axis]);
    td_text_add(text, "]\n");
  }
}

// One line of what repr gives, cut when it is long; false: it gives nothing.
static bool add_value(td_interpreter *I, td_value v, td_text *text) {
  td_text full = {0};
  bool printed = td_repr(I, v, &full) && !full.failed;
  td_clear_raised(I);
  size_t length = 0; // once the lines of a tensor follow one another, without their indentation
  for (size_t at = 0; printed && at < full.length; at++) {
    full.data[length++] = full.data[at] == '\n' ? ' ' : full.data[at];
    if (full.data[at] == '\n') at += strspn(full.data + at + 1, " ");
  }
  size_t end = length < VALUE_MOST ? length : VALUE_MOST;
  while (end > 0 && end < length && ((unsigned char)full.data[end] & 0xc0) == 0x80) end--;
  if (printed) td_source_print(text, full.data, end);
  if (printed && end < length) td_text_print(text, "... (%zu bytes more)", length - end);
  td_text_clear(&full);
  return printed;
}

// The operands of a failed assert; one that reads as its value does needs no row.
static void add_values(td_interpreter *I, td_text *text, const td_report *report, const td_tuple *values) {
  int widest = 0;
  td_text rows[2] = {{0}, {0}};
  const char *names[] = {report->expressions[0][0] ? report->expressions[0] : "left side",
                         report->expressions[1][0] ? report->expressions[1] : "right side"};
  for (int i = 0; i < 2; i++) {
    bool shown = add_value(I, values->items[i], &rows[i]) && rows[i].data && strcmp(rows[i].data, names[i]) != 0;
    if (!shown) td_text_clear(&rows[i]);
    int columns = td_source_print(NULL, names[i], strlen(names[i]));
    if (shown && columns > widest) widest = columns;
  }
  for (int i = 0; i < 2; i++) {
    if (!rows[i].data) continue;
    add_row_name(text, names[i], widest);
    td_text_add_bytes(text, rows[i].data, rows[i].length);
    td_text_add_char(text, '\n');
    td_text_clear(&rows[i]);
  }
}

static bool same_site(const td_call_site *a, const td_call_site *b) {
  return a->place == b->place && a->within == b->within && strcmp(a->function, b->function) == 0;
}

static void add_site(const td_interpreter *I, td_text *text, const td_call_site *site, int times) {
  const td_script *script = td_source_find(&I->sources, site->place);
  td_text_add(text, site->within ? "  within " : "  called from ");
  td_source_print(text, site->function, strlen(site->function));
  if (site->function[0]) td_text_add(text, script ? " at " : "");
  if (script) add_place(text, script, (uint32_t)site->place);
  else if (!site->function[0]) td_text_add(text, "an earlier cell");
  if (times > 1) td_text_print(text, " (%d times)", times);
  td_text_add_char(text, '\n');
}

static void add_path(const td_interpreter *I, td_text *text, const td_report *report) {
  int half = report->path_dropped ? report->path_count / 2 : report->path_count;
  for (int i = 0, next; i < report->path_count; i = next) {
    int limit = i < half ? half : report->path_count;
    for (next = i + 1; next < limit && same_site(&report->path[i], &report->path[next]); next++) {}
    add_site(I, text, &report->path[i], next - i);
    if (report->path_dropped && next == half) td_text_print(text, "  ... %d more calls\n", report->path_dropped);
  }
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_operator(char c) { return c && strchr("@*+-/", c); }

// An argument's name at hint[at] that stands in an expression: before a '.', or beside an operator.
static bool in_expression(const char *hint, size_t at, size_t length) {
  const char *after = hint + at + length;
  if (after[0] == '.' && is_word(after[1])) return true;
  if (after[0] == ' ' && is_operator(after[1]) && after[2] == ' ') return true;
  return at >= 3 && hint[at - 1] == ' ' && is_operator(hint[at - 2]) && hint[at - 3] == ' ';
}

static int operand_at(const td_report *report, size_t at) { // whose name stands there; -1: none
  const char *hint = report->hint;
  if (at && (is_word(hint[at - 1]) || hint[at - 1] == '.')) return -1;
  for (int i = 0; i < report->operand_count; i++) {
    size_t length = strlen(report->operands[i].name);
    bool here = length && strncmp(hint + at, report->operands[i].name, length) == 0 && !is_word(hint[at + length]);
    if (here && report->expressions[i][0] && in_expression(hint, at, length)) return i;
  }
  return -1;
}

static bool needs_parentheses(const char *expression) {
  int depth = 0;
  for (; *expression; expression++) {
    if (strchr("([{", *expression)) depth++;
    else if (strchr(")]}", *expression)) depth--;
    else if (!depth && !is_word(*expression) && *expression != '.' && (unsigned char)*expression < 0x80) return true;
  }
  return false;
}

static void add_hint(td_text *text, const td_report *report) {
  if (!report->hint[0]) return;
  td_text_add(text, "  hint: ");
  for (size_t at = 0; report->hint[at];) {
    int i = operand_at(report, at);
    if (i >= 0) {
      const char *expression = report->expressions[i];
      bool enclose = needs_parentheses(expression);
      if (enclose) td_text_add_char(text, '(');
      add_visible(text, expression, strlen(expression));
      if (enclose) td_text_add_char(text, ')');
      at += strlen(report->operands[i].name);
      continue;
    }
    size_t size = 1;
    while (((unsigned char)report->hint[at + size] & 0xc0) == 0x80) size++;
    add_visible(text, report->hint + at, size);
    at += size;
  }
  td_text_add_char(text, '\n');
}

// ---- whole messages ----

static void add_message(td_interpreter *I, td_exception *exception,
                        td_text *text) { // "NameError: name 'x' is not defined"
  bool engine = exception->report && exception->report->engine;
  const td_str *class = exception->instance.class->name;
  td_value raised = I->raised; // printing an exception may run code of the user's, which may raise
  I->raised = TD_NIL;
  td_text message = {0};
  td_value value = {.tag = TD_TAG_OBJECT, .o = &exception->instance.container.object};
  bool printed = td_print(I, value, &message) && message.length;
  bool no_memory = td_raised_is(I, TD_CLASS_MEMORY_ERROR);
  td_value failure = I->raised;
  I->raised = raised;
  td_unref(failure);
  if (!engine || !printed) td_source_print(text, class->data, class->length);
  if (!engine && printed) td_text_add(text, ": ");
  size_t shown = message.length < MESSAGE_MOST ? message.length : MESSAGE_MOST;
  if (printed) add_visible(text, message.data, shown);
  else if (no_memory) td_text_add(text, ": no memory for its message");
  if (printed && shown < message.length) td_text_print(text, "... (%zu bytes more)", message.length - shown);
  td_text_clear(&message);
}

// What led to the exception: the one that it was raised from, else the one that was being handled.
static void add_causes(td_interpreter *I, td_exception *exception, td_text *text) {
  for (int i = 0; i < CAUSES_MAX; i++) {
    bool caused = td_is(exception->cause, &td_exception_type);
    td_value before = caused ? exception->cause : exception->suppresses ? TD_NIL : exception->context;
    if (td_is_nil(before)) break;
    exception = (td_exception *)before.o;
    td_text_add(text, caused ? "  caused by " : "  during handling of ");
    add_message(I, exception, text);
    const td_script *script = exception->report ? td_source_find(&I->sources, exception->report->place) : NULL;
    if (script) {
      td_text_add(text, " at ");
      add_place(text, script, (uint32_t)exception->report->place);
    }
    td_text_add_char(text, '\n');
  }
}

static void add_near_key(td_interpreter *I, const td_exception *exception, td_text *text) {
  const td_tuple *arguments = td_as_tuple(exception->arguments);
  if (arguments->count != 1 || !td_is(arguments->items[0], &td_str_type)) return;
  td_list *keys = td_list_new(I, 0);
  const char *near = NULL;
  if (keys && td_to_list(I, exception->evidence, keys)) near = td_suggest(td_as_str(arguments->items[0])->data, keys);
  td_clear_raised(I);
  if (near) {
    td_text_add(text, "  hint: did you mean '");
    add_visible(text, near, strlen(near));
    td_text_add(text, "'?\n");
  }
  td_unref(td_from(keys));
}

void td_diagnose(td_interpreter *I, td_value value, td_text *text) {
  td_exception *exception = (td_exception *)value.o;
  const td_report *report = exception->report;
  td_text_add(text, "error: ");
  add_message(I, exception, text);
  td_text_add_char(text, '\n');
  if (report) {
    const td_script *script = td_source_find(&I->sources, report->place);
    if (script) add_source(text, script, (uint32_t)report->place, report->end);
    add_operands(text, report);
    if (td_is(exception->evidence, &td_tuple_type)) add_values(I, text, report, td_as_tuple(exception->evidence));
    add_path(I, text, report);
  }
  add_causes(I, exception, text);
  if (report) add_hint(text, report);
  bool lacks_key = td_class_is_subclass(exception->instance.class, I->classes[TD_CLASS_KEY_ERROR]);
  if (lacks_key && !td_is_nil(exception->evidence)) add_near_key(I, exception, text);
}

void td_diagnose_syntax(const td_script *script, const td_diagnostic *diagnostic, td_text *text) {
  td_text_add(text, "error: SyntaxError: ");
  add_visible(text, diagnostic->message, strlen(diagnostic->message));
  td_text_add_char(text, '\n');
  add_source(text, script, diagnostic->span.begin, diagnostic->span.end);
  if (!diagnostic->hint[0]) return;
  td_text_add(text, "  hint: ");
  add_visible(text, diagnostic->hint, strlen(diagnostic->hint));
  td_text_add_char(text, '\n');
}
