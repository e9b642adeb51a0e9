// How arguments meet parameters: signatures of builtins are parsed from their text, those of functions are views of
// their prototype, and one binder serves both, with Python's messages for calls that don't fit.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/habit.h"

// ---- the text of a signature ----

typedef struct reader {
  td_interpreter *interpreter;
  const char *at;
  td_signature *signature;
  int32_t count; // parameters so far, * and ** not counted
  bool keyword_only, failed;
} reader;

static void skip_spaces(reader *r) {
  while (*r->at == ' ') r->at++;
}

static td_str *read_name(reader *r) {
  const char *begin = r->at;
  while (*r->at && !strchr(" ,=)", *r->at)) r->at++;
  td_str *name = td_str_intern(r->interpreter, begin, (size_t)(r->at - begin));
  r->failed |= !name;
  return name;
}

static td_value read_quoted(reader *r) {
  char quote = *r->at++;
  const char *begin = r->at;
  while (*r->at && *r->at != quote) r->at++;
  td_value text = td_from(td_str_new(r->interpreter, begin, (size_t)(r->at - begin)));
  if (*r->at) r->at++;
  r->failed |= td_is_nil(text);
  return text;
}

static td_value read_number(const char *begin, size_t length) {
  char *end;
  long long whole = strtoll(begin, &end, 10);
  if (end == begin + length) return td_int(whole);
  double real = strtod(begin, &end);
  return end == begin + length ? td_double(real) : TD_NIL;
}

// A default that is no constant ("...", "float32") arrives as NIL: the native knows what it means.
static td_value read_fallback(reader *r, bool *optional) {
  *optional = false;
  if (*r->at == '\'' || *r->at == '"') return read_quoted(r);
  const char *begin = r->at;
  int depth = 0;
  while (*r->at && (depth || !strchr(",)", *r->at))) {
    depth += *r->at == '(' || *r->at == '[';
    depth -= *r->at == ')' || *r->at == ']';
    r->at++;
  }
  size_t length = (size_t)(r->at - begin);
  if (length == 4 && !strncmp(begin, "None", 4)) return TD_NONE;
  if (length == 4 && !strncmp(begin, "True", 4)) return td_bool(true);
  if (length == 5 && !strncmp(begin, "False", 5)) return td_bool(false);
  td_value number = read_number(begin, length);
  *optional = td_is_nil(number);
  return number;
}

// The parameters come in the order that td_signature wants, so names go straight to their place.
static void read_parameter(reader *r) {
  td_signature *s = r->signature;
  int stars = 0;
  while (*r->at == '*') r->at++, stars++;
  if (*r->at == '/') {
    r->at++;
    s->positional_only = s->positional;
    return;
  }
  if (stars) r->keyword_only = true;
  if (stars == 1 && strchr(" ,)", *r->at)) return;
  td_str *name = read_name(r);
  if (stars) {
    *(stars == 1 ? &s->star : &s->double_star) = true;
    s->names[stars == 1 ? s->positional + s->keyword_only : r->count + s->star] = name;
    return;
  }
  int32_t index = r->count++;
  if (r->keyword_only && s->star)
    s->names[index + 1] = s->names[index]; // the name of *args stands after the keyword-only ones
  *(r->keyword_only ? &s->keyword_only : &s->positional) += 1;
  s->names[index] = name;
  skip_spaces(r);
  if (*r->at != '=') {
    if (!r->keyword_only && s->required == index) s->required++;
    return;
  }
  r->at++;
  skip_spaces(r);
  s->fallbacks[index] = read_fallback(r, &s->optional[index]);
}

static int count_parameters(const char *text) {
  int count = 1;
  for (; *text; text++) count += *text == ',';
  return count;
}

static td_signature *signature_new(int count) {
  td_signature *s = td_memory_new_zero(sizeof *s);
  if (!s) return NULL;
  s->names = td_memory_new_zero((size_t)(count + 1) * sizeof *s->names);
  s->fallbacks = td_memory_new_zero((size_t)count * sizeof *s->fallbacks);
  s->optional = td_memory_new_zero((size_t)count * sizeof *s->optional);
  return s;
}

void td_signature_free(td_signature *s) {
  int32_t count = s->positional + s->keyword_only;
  for (int32_t i = 0; s->names && i < count + s->star + s->double_star; i++) td_unref(td_from(s->names[i]));
  for (int32_t i = 0; s->fallbacks && i < count; i++) td_unref(s->fallbacks[i]);
  td_memory_free(s->names);
  td_memory_free(s->fallbacks);
  td_memory_free(s->optional);
  td_memory_free(s);
}

static bool keep_signature(td_interpreter *I, td_signature *s) {
  struct td_core *core = I->core;
  if (core->signature_count == core->signature_capacity) {
    int32_t capacity = core->signature_capacity ? core->signature_capacity * 2 : 64;
    td_signature **grown = td_memory_resize(core->signatures, (size_t)capacity * sizeof *grown);
    if (!grown) return false;
    core->signatures = grown;
    core->signature_capacity = capacity;
  }
  core->signatures[core->signature_count++] = s;
  return true;
}

td_signature *td_signature_parse(td_interpreter *I, const char *text) {
  reader r = {.interpreter = I, .at = strchr(text, '(')};
  r.at = r.at ? r.at + 1 : text;
  r.signature = signature_new(count_parameters(r.at));
  if (!r.signature || !r.signature->names || !r.signature->fallbacks || !r.signature->optional) r.failed = true;
  for (skip_spaces(&r); !r.failed && *r.at && *r.at != ')'; skip_spaces(&r)) {
    read_parameter(&r);
    while (*r.at && *r.at != ',' && *r.at != ')') r.at++;
    if (*r.at == ',') r.at++;
  }
  if (!r.failed && keep_signature(I, r.signature)) return r.signature;
  if (r.signature) td_signature_free(r.signature);
  td_raise_memory(I);
  return NULL;
}

// Rows live as long as the program, so a row's signature is found by its address.
static td_row_signature *find_row(td_row_signature *table, uint32_t mask, const td_method *row) {
  uint32_t i = (uint32_t)((uintptr_t)row >> 4) * 2654435761u & mask;
  while (table[i].row && table[i].row != row) i = (i + 1) & mask;
  return &table[i];
}

static bool grow_rows(td_interpreter *I, struct td_core *core) {
  uint32_t size = core->row_mask ? (core->row_mask + 1) * 2 : 512;
  td_row_signature *table = td_memory_new_zero(size * sizeof *table);
  if (!table) return td_raise_memory(I), false;
  for (uint32_t i = 0; core->rows && i <= core->row_mask; i++)
    if (core->rows[i].row) *find_row(table, size - 1, core->rows[i].row) = core->rows[i];
  td_memory_free(core->rows);
  core->rows = table;
  core->row_mask = size - 1;
  return true;
}

td_signature *td_signature_of_row(td_interpreter *I, const td_method *row) {
  struct td_core *core = I->core;
  if (core->row_count * 2 >= core->row_mask && !grow_rows(I, core)) return NULL;
  td_row_signature *found = find_row(core->rows, core->row_mask, row);
  if (found->row) return found->signature;
  td_signature *signature = td_signature_parse(I, row->signature);
  if (!signature) return NULL;
  *found = (td_row_signature){.row = row, .signature = signature};
  core->row_count++;
  return signature;
}

// ---- messages ----

enum { INIT = sizeof ".__init__" - 1 };

#define TD_CALLEE(callee) (callee)->type ? (callee)->type : "", (callee)->type ? "." : "", (callee)->name

// "train(data, epochs=1, *, seed=None)"; that of a class for its __init__.
static void add_signature(td_interpreter *I, const td_callee *callee, const td_signature *s, td_text *text) {
  size_t length = strlen(callee->name);
  bool makes = length > INIT && strcmp(callee->name + length - INIT, ".__init__") == 0;
  int32_t named = s->positional + s->keyword_only, rest = named;
  const char *between = "";
  td_text_print(text, "%s%s%.*s(", callee->type ? callee->type : "", callee->type ? "." : "",
                (int)(makes ? length - INIT : length), callee->name);
  for (int32_t i = makes; i <= named; i++) {
    if (i == s->positional && (s->star || i < named)) {
      td_text_print(text, "%s*%s", between, s->star ? s->names[rest]->data : "");
      between = ", ";
    }
    if (i == named) break;
    td_text_print(text, "%s%s", between, s->names[i]->data);
    between = ", ";
    bool optional = s->optional && s->optional[i];
    if (!td_is_nil(s->fallbacks[i]) || optional) td_text_add_char(text, '=');
    if (optional) td_text_add(text, "...");
    else if (!td_is_nil(s->fallbacks[i])) td_repr(I, s->fallbacks[i], text);
    if (i + 1 == s->positional_only) td_text_add(text, ", /");
  }
  if (s->double_star) td_text_print(text, "%s**%s", between, s->names[rest + s->star]->data);
  td_text_add_char(text, ')');
}

// What was probably meant by a keyword that there is no argument for, or does here what it does elsewhere.
static void add_remedy(td_text *text, const td_str *keyword, td_list *names) {
  const char *near = td_suggest(keyword->data, names);
  const char *habit = near ? NULL : td_habit(TD_HABIT_KEYWORD, keyword->data);
  if (near) td_text_print(text, "did you mean '%s'?", near);
  if (habit) td_text_add(text, habit);
}

td_value td_refuse_keyword(td_interpreter *I, const char *callee, const td_str *keyword, td_list *names) {
  td_text remedy = {0};
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s() got an unexpected keyword argument '%s'", callee, keyword->data);
  add_remedy(&remedy, keyword, names);
  if (remedy.length) td_raise_hint(I, "%s", remedy.data);
  td_text_clear(&remedy);
  return TD_NIL;
}

// The remedy for a call that doesn't fit; keyword: the one that there is no argument for, or NULL.
static void call_hint(td_interpreter *I, const td_callee *callee, const td_signature *s, const td_str *keyword) {
  td_value raised = td_take_raised(I);
  td_list *names = td_list_new(I, 8);
  td_text text = {0};
  for (int32_t i = 0; names && i < s->positional + s->keyword_only; i++)
    td_list_append(I, names, td_borrow(s->names[i]));
  if (names && keyword) add_remedy(&text, keyword, names);
  if (text.length) td_text_add(&text, text.data[text.length - 1] == '?' ? " " : "; ");
  td_text_add(&text, "the signature is ");
  add_signature(I, callee, s, &text);
  td_clear_raised(I);
  td_put_raised(I, raised);
  if (!text.failed) td_raise_hint(I, "%s", text.data);
  td_text_clear(&text);
  td_unref(td_from(names));
}

static void add_names(td_text *text, td_str **names, const bool *missing, int32_t begin, int32_t end, int32_t total) {
  int32_t said = 0;
  for (int32_t i = begin; i < end; i++) {
    if (!missing[i]) continue;
    if (said) td_text_add(text, total == 2 ? " and " : said == total - 1 ? ", and " : ", ");
    td_text_print(text, "'%s'", names[i]->data);
    said++;
  }
}

static bool is_missing(const td_signature *s, const td_value *slots, int32_t i) {
  return td_is_nil(slots[i]) && td_is_nil(s->fallbacks[i]) && !(s->optional && s->optional[i]);
}

// Raises for the parameters of a kind that got no value, if there are any.
static bool check_missing(td_interpreter *I, const td_callee *callee, const td_signature *s, const td_value *slots,
                          bool keyword_only) {
  int32_t begin = keyword_only ? s->positional : 0, end = s->positional + (keyword_only ? s->keyword_only : 0),
          total = 0;
  for (int32_t i = begin; i < end; i++) total += is_missing(s, slots, i);
  if (!total) return true;
  td_text text = {0};
  bool *missing = td_memory_new_zero((size_t)end);
  for (int32_t i = begin; missing && i < end; i++) missing[i] = is_missing(s, slots, i);
  if (missing) add_names(&text, s->names, missing, begin, end, total);
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s%s%s() missing %d required %s argument%s: %s", TD_CALLEE(callee), total,
           keyword_only ? "keyword-only" : "positional", total > 1 ? "s" : "", text.data ? text.data : "");
  td_memory_free(missing);
  td_text_clear(&text);
  call_hint(I, callee, s, NULL);
  return false;
}

static void raise_too_many(td_interpreter *I, const td_callee *callee, const td_signature *s, int32_t given,
                           int32_t keyword_only_given) {
  int32_t takes = s->positional;
  char expected[48], extra[80] = "";
  bool plural = takes != 1;
  if (s->required < takes) {
    snprintf(expected, sizeof expected, "from %d to %d", s->required, takes);
    plural = true;
  } else {
    snprintf(expected, sizeof expected, "%d", takes);
  }
  if (keyword_only_given)
    snprintf(extra, sizeof extra, " positional argument%s (and %d keyword-only argument%s)", given == 1 ? "" : "s",
             keyword_only_given, keyword_only_given == 1 ? "" : "s");
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s%s%s() takes %s positional argument%s but %d%s %s given", TD_CALLEE(callee),
           expected, plural ? "s" : "", given, extra, given == 1 && !keyword_only_given ? "was" : "were");
  call_hint(I, callee, s, NULL);
}

// ---- the binder ----

static int32_t find_parameter(const td_signature *s, const td_str *keyword) {
  int32_t count = s->positional + s->keyword_only;
  for (int32_t i = s->positional_only; i < count; i++)
    if (s->names[i] == keyword) return i;
  for (int32_t i = s->positional_only; i < count; i++)
    if (td_str_equal(s->names[i], keyword)) return i;
  return -1;
}

static bool raise_keyword(td_interpreter *I, const td_callee *callee, const td_signature *s, const td_str *keyword) {
  for (int32_t i = 0; i < s->positional_only; i++) {
    if (!td_str_equal(s->names[i], keyword)) continue;
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s%s%s() got some positional-only arguments passed as keyword arguments: '%s'",
             TD_CALLEE(callee), keyword->data);
    return false;
  }
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s%s%s() got an unexpected keyword argument '%s'", TD_CALLEE(callee),
           keyword->data);
  call_hint(I, callee, s, keyword);
  return false;
}

static bool bind_keywords(td_interpreter *I, const td_callee *callee, const td_signature *s, const td_arguments *a,
                          td_value *slots) {
  td_dict *rest = s->double_star ? td_as_dict(slots[s->positional + s->keyword_only + s->star]) : NULL;
  for (int32_t k = 0; k < a->keyword_count; k++) {
    td_str *keyword = a->keywords[k];
    td_value value = a->values[a->count + k];
    int32_t i = find_parameter(s, keyword);
    if (i < 0) {
      if (!rest) return raise_keyword(I, callee, s, keyword);
      if (!td_dict_set_str(I, rest, keyword, value)) return false;
    } else if (!td_is_nil(slots[i])) {
      td_raise(I, TD_CLASS_TYPE_ERROR, "%s%s%s() got multiple values for argument '%s'", TD_CALLEE(callee),
               keyword->data);
      return false;
    } else {
      slots[i] = td_ref(value);
    }
  }
  return true;
}

static int32_t keyword_only_given(const td_signature *s, const td_arguments *a) {
  int32_t given = 0;
  for (int32_t k = 0; k < a->keyword_count; k++) given += find_parameter(s, a->keywords[k]) >= s->positional;
  return given;
}

static bool bind_positional(td_interpreter *I, const td_callee *callee, const td_signature *s, const td_arguments *a,
                            td_value *slots) {
  int32_t direct = a->count < s->positional ? a->count : s->positional;
  for (int32_t i = 0; i < direct; i++) slots[i] = td_ref(a->values[i]);
  td_value *after = slots + s->positional + s->keyword_only;
  if (s->star) {
    td_tuple *rest = td_tuple_new(I, a->count - direct);
    if (!rest) return false;
    for (int32_t i = direct; i < a->count; i++) rest->items[i - direct] = td_ref(a->values[i]);
    *after++ = td_from(rest);
  } else if (a->count > s->positional) {
    raise_too_many(I, callee, s, a->count, keyword_only_given(s, a));
    return false;
  }
  if (s->double_star) *after = td_from(td_dict_new(I));
  return !s->double_star || !td_is_nil(*after);
}

bool td_bind_callee(td_interpreter *I, const td_callee *callee, const td_signature *s, const td_arguments *a,
                    td_value *slots) {
  int32_t count = s->positional + s->keyword_only, total = count + s->star + s->double_star;
  for (int32_t i = 0; i < total; i++) slots[i] = TD_NIL;
  bool ok = bind_positional(I, callee, s, a, slots) && bind_keywords(I, callee, s, a, slots) &&
            check_missing(I, callee, s, slots, false) && check_missing(I, callee, s, slots, true);
  if (!ok) {
    for (int32_t i = 0; i < total; i++) td_unref(slots[i]), slots[i] = TD_NIL;
    return false;
  }
  for (int32_t i = 0; i < count; i++)
    if (td_is_nil(slots[i])) slots[i] = td_ref(s->fallbacks[i]);
  return true;
}

bool td_bind(td_interpreter *I, const char *callee, const td_signature *s, const td_arguments *a, td_value *slots) {
  return td_bind_callee(I, &(td_callee){NULL, callee}, s, a, slots);
}
