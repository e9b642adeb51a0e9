// The module json: Python's dumps and loads. Reading is engine/io/json.c's; here values are built and printed.
#include <math.h>

#include "engine/io/json.h"
#include "repl/language/files.h"
#include "repl/language/builtins.h"

// ---- loads ----

static td_value read_value(td_interpreter *I, td_json *json, enum td_json_kind kind);

static td_value raise_wrong(td_interpreter *I, const td_json *json, const char *error) { // place as Python counts it
  if (json->text.failed) return td_raise_memory(I);
  int64_t line = 1, column = 1;
  for (size_t i = 0; i < json->at; i++) {
    column += ((unsigned char)json->bytes[i] & 0xc0) != 0x80;
    if (json->bytes[i] == '\n') line++, column = 1;
  }
  int64_t character = td_utf8_count(json->bytes, json->at);
  return td_raise(I, TD_CLASS_VALUE_ERROR, "%s: line %lld column %lld (char %lld)", error, (long long)line,
                  (long long)column, (long long)character);
}

static td_value read_text(td_interpreter *I, td_json *json) {
  return json->text.failed ? td_raise_memory(I) : td_from(td_str_new(I, json->text.data, json->text.length));
}

static td_value read_number(td_interpreter *I, td_json *json, bool whole) {
  td_value text = read_text(I, json), number = TD_NIL;
  if (!td_is_nil(text)) number = whole ? td_int_parse(I, td_as_str(text), 10) : td_float_parse(I, td_as_str(text));
  td_unref(text);
  return number;
}

static td_value read_array(td_interpreter *I, td_json *json) {
  td_list *list = td_list_new(I, 0);
  bool ok = list != NULL;
  for (bool first = true; ok && td_json_element(json, first); first = false) {
    td_value item = read_value(I, json, td_json_value(json));
    ok = !td_is_nil(item) && td_list_append(I, list, item);
    td_unref(item);
  }
  if (ok && json->error) raise_wrong(I, json, json->error);
  if (ok && !json->error) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

static td_value read_object(td_interpreter *I, td_json *json) {
  td_dict *dict = td_dict_new(I);
  bool ok = dict != NULL;
  for (bool first = true; ok && td_json_key(json, first); first = false) {
    td_value key = read_text(I, json);
    td_value item = td_is_nil(key) ? TD_NIL : read_value(I, json, td_json_value(json));
    ok = !td_is_nil(item) && td_dict_set(I, dict, key, item);
    td_unref(key);
    td_unref(item);
  }
  if (ok && json->error) raise_wrong(I, json, json->error);
  if (ok && !json->error) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static td_value read_value(td_interpreter *I, td_json *json, enum td_json_kind kind) {
  if (td_recursion(I) || td_interrupted(I)) return TD_NIL;
  switch (kind) {
  case TD_JSON_OBJECT: return read_object(I, json);
  case TD_JSON_ARRAY: return read_array(I, json);
  case TD_JSON_STRING: return read_text(I, json);
  case TD_JSON_INTEGER: return read_number(I, json, true);
  case TD_JSON_FLOAT: return read_number(I, json, false);
  case TD_JSON_TRUE: return td_bool(true);
  case TD_JSON_FALSE: return td_bool(false);
  case TD_JSON_NULL: return TD_NONE;
  default: return raise_wrong(I, json, json->error);
  }
}

static td_value json_loads(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is(arguments[0], &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "the JSON object must be str, bytes or bytearray, not %s",
                    td_type_name(I, arguments[0]));
  const td_str *text = td_as_str(arguments[0]);
  td_json json = {.bytes = text->data, .size = text->length, .loose = true};
  td_value value = read_value(I, &json, td_json_value(&json));
  if (td_json_end(&json) || td_is_nil(value)) return value;
  td_unref(value);
  return raise_wrong(I, &json, "Extra data");
}

// ---- dumps ----

typedef struct holder { // the containers that a value is in, to see one that holds itself
  const struct holder *outer;
  const td_object *object;
  bool is_level; // its items are indented; what default= was given is none
} holder;

typedef struct writer {
  td_interpreter *interpreter;
  td_text *out;
  const char *indent; // NULL: all on one line
  const char *item_separator, *key_separator;
  bool sorted, ascii, nan;
  td_value fallback; // None, or a function
} writer;

static bool write_value(const writer *w, td_value v, const holder *in);

static void add_line(const writer *w,
                     const holder *in) { // behind an opening bracket, a comma, before a closing bracket
  if (!w->indent) return;
  td_text_add_char(w->out, '\n');
  for (; in; in = in->outer)
    if (in->is_level) td_text_add(w->out, w->indent);
}

static bool write_double(const writer *w, double f) {
  char digits[TD_NUMBER_TEXT];
  if (isfinite(f)) {
    td_number_print(digits, f);
    td_text_add(w->out, digits);
    return true;
  }
  if (w->nan) return td_text_add(w->out, isnan(f) ? "NaN" : f > 0 ? "Infinity" : "-Infinity"), true;
  td_raise(w->interpreter, TD_CLASS_VALUE_ERROR, "Out of range float values are not JSON compliant");
  return false;
}

static bool write_plain(const writer *w, td_value v) { // None, a bool, a number
  if (v.tag == TD_TAG_DOUBLE) return write_double(w, v.f);
  if (v.tag == TD_TAG_INT) td_text_print(w->out, "%lld", (long long)v.i);
  else td_text_add(w->out, td_is_none(v) ? "null" : v.i ? "true" : "false");
  return true;
}

static void write_str(const writer *w, td_value v) {
  td_json_quote(w->out, td_as_str(v)->data, td_as_str(v)->length, w->ascii);
}

static bool enter(const writer *w, holder *here, td_value v, const holder *in) {
  *here = (holder){in, v.o, true};
  for (; in; in = in->outer)
    if (in->object == v.o) {
      td_raise(w->interpreter, TD_CLASS_VALUE_ERROR, "Circular reference detected");
      return false;
    }
  return !td_recursion(w->interpreter);
}

static bool write_items(const writer *w, td_value v, const td_value *items, int64_t count, const holder *in) {
  holder here;
  if (!enter(w, &here, v, in)) return false;
  td_text_add_char(w->out, '[');
  for (int64_t i = 0; i < count; i++) {
    if (i) td_text_add(w->out, w->item_separator);
    add_line(w, &here);
    if (!write_value(w, items[i], &here)) return false;
  }
  if (count) add_line(w, in);
  td_text_add_char(w->out, ']');
  return true;
}

static bool write_key(const writer *w, td_value key) {
  if (td_is(key, &td_str_type)) return write_str(w, key), true;
  if (key.tag == TD_TAG_OBJECT) {
    td_raise(w->interpreter, TD_CLASS_TYPE_ERROR, "keys must be str, int, float, bool or None, not %s",
             td_type_name(w->interpreter, key));
    return false;
  }
  td_text_add_char(w->out, '"');
  bool ok = write_plain(w, key);
  td_text_add_char(w->out, '"');
  return ok;
}

static bool write_pair(const writer *w, td_value key, td_value value, bool first, const holder *here) {
  if (!first) td_text_add(w->out, w->item_separator);
  add_line(w, here);
  if (!write_key(w, key)) return false;
  td_text_add(w->out, w->key_separator);
  return write_value(w, value, here);
}

static bool write_sorted(const writer *w, td_dict *dict, const holder *here) {
  td_interpreter *I = w->interpreter;
  td_value keys = td_list_from(I, (td_value){.tag = TD_TAG_OBJECT, .o = &dict->container.object}), value;
  bool ok = !td_is_nil(keys) && td_sort(I, td_as_list(keys)->items, td_as_list(keys)->count, TD_NONE, false);
  for (int64_t i = 0; ok && i < td_as_list(keys)->count; i++)
    ok = td_dict_get(I, dict, td_as_list(keys)->items[i], &value) == 1 &&
         write_pair(w, td_as_list(keys)->items[i], value, i == 0, here);
  td_unref(keys);
  return ok;
}

static bool write_dict(const writer *w, td_value v, const holder *in) {
  holder here;
  td_dict *dict = td_as_dict(v);
  if (!enter(w, &here, v, in)) return false;
  td_text_add_char(w->out, '{');
  td_value key, value;
  bool ok = !w->sorted || write_sorted(w, dict, &here), first = true;
  for (int64_t position = 0; ok && !w->sorted && td_dict_next(dict, &position, &key, &value); first = false)
    ok = write_pair(w, key, value, first, &here);
  if (dict->count) add_line(w, in);
  td_text_add_char(w->out, '}');
  return ok;
}

static bool write_by_fallback(const writer *w, td_value v, const holder *in) {
  td_interpreter *I = w->interpreter;
  holder here;
  if (td_is_none(w->fallback)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "Object of type %s is not JSON serializable", td_type_name(I, v));
    if (td_is_tensor_like(v)) td_raise_hint(I, "x.tolist() gives lists of numbers");
    return false;
  }
  if (!enter(w, &here, v, in)) return false;
  here.is_level = false;
  td_value other = td_call_values(I, w->fallback, 1, &v);
  bool ok = !td_is_nil(other) && write_value(w, other, &here);
  td_unref(other);
  return ok;
}

static bool write_value(const writer *w, td_value v, const holder *in) {
  if (v.tag != TD_TAG_OBJECT) return write_plain(w, v);
  if (td_is(v, &td_str_type)) return write_str(w, v), true;
  if (td_is(v, &td_list_type)) return write_items(w, v, td_as_list(v)->items, td_as_list(v)->count, in);
  if (td_is(v, &td_tuple_type)) return write_items(w, v, td_as_tuple(v)->items, td_as_tuple(v)->count, in);
  return td_is(v, &td_dict_type) ? write_dict(w, v, in) : write_by_fallback(w, v, in);
}

static bool find_indent(td_interpreter *I, td_value v, td_text *indent) { // a str, or so many spaces
  if (td_is(v, &td_str_type)) return td_text_add(indent, td_as_str(v)->data), true;
  bool ok;
  int64_t count = td_to_int(I, v, &ok);
  if (!ok) return false;
  td_text_add(indent, "");
  td_text_pad(indent, count > 0 ? (size_t)(count < 1000 ? count : 1000) : 0, ' ');
  return true;
}

static bool find_separators(td_interpreter *I, td_value v, writer *w) {
  if (td_is_none(v)) return true;
  const td_value *parts = td_is(v, &td_tuple_type) ? td_as_tuple(v)->items : NULL;
  if (!parts || td_as_tuple(v)->count != 2 || !td_is(parts[0], &td_str_type) || !td_is(parts[1], &td_str_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "json.dumps: separators must be a tuple of two strs");
    return false;
  }
  w->item_separator = td_as_str(parts[0])->data;
  w->key_separator = td_as_str(parts[1])->data;
  return true;
}

static td_value json_dumps(td_interpreter *I, td_value self,
                           td_value *arguments) { // obj, ascii, nan, indent, separators, default, sort
  (void)self;
  td_text out = {0}, indent = {0};
  bool spread = !td_is_none(arguments[3]);
  int ascii = td_truth(I, arguments[1]), nan = ascii < 0 ? -1 : td_truth(I, arguments[2]),
      sorted = nan < 0 ? -1 : td_truth(I, arguments[6]);
  writer w = {.interpreter = I,
              .out = &out,
              .item_separator = spread ? "," : ", ",
              .key_separator = ": ",
              .sorted = sorted > 0,
              .ascii = ascii > 0,
              .nan = nan > 0,
              .fallback = arguments[5]};
  bool ok = sorted >= 0 && find_separators(I, arguments[4], &w) && (!spread || find_indent(I, arguments[3], &indent));
  if (spread) w.indent = indent.data ? indent.data : "";
  ok = ok && write_value(&w, arguments[0], NULL);
  td_text_clear(&indent);
  if (ok) return td_from(td_str_take(I, &out));
  td_text_clear(&out);
  return TD_NIL;
}

static const td_method rows[] = {
    {"loads", "(s)", json_loads,
     "The value of a JSON text: dicts, lists, strs, ints, floats, bools and None; NaN and Infinity are understood.\n"
     "ValueError tells line and column of what is wrong.\n>>> json.loads('{\"a\": [1, 2.5, null]}')"},
    {"dumps",
     "(obj, *, ensure_ascii=True, allow_nan=True, indent=None, separators=None, default=None, sort_keys=False)",
     json_dumps,
     "The JSON text of a value.\n\nindent: so many spaces, or a str, for each level, and a line for each item. "
     "default: is called "
     "with what JSON can't hold, and gives something that it can.\n>>> json.dumps({\"a\": [1, None]})"},
    {NULL, NULL, NULL, NULL}};

bool td_json_register(td_interpreter *I) {
  td_module *json = td_module_define(I, "json", rows);
  td_value error = {.tag = TD_TAG_OBJECT, .o = &I->classes[TD_CLASS_VALUE_ERROR]->container.object};
  return json && td_module_set(I, json, "JSONDecodeError", td_ref(error));
}
