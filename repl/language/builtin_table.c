// Builtins of tables as text: load_csv, save_csv.
#include <math.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/csv.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"

bool td_delimiter_argument(td_interpreter *I, td_value v, const char *who, char *delimiter) {
  if (!td_str_argument(I, v, who, "delimiter")) return false;
  const td_str *text = td_as_str(v);
  *delimiter = text->data[0];
  if (text->length == 1 && !strchr("\"\r\n", *delimiter) && (unsigned char)*delimiter < 128) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: delimiter must be one ASCII character other than a quote or a line end", who);
  return false;
}

// ---- columns ----

bool td_column_dtype(td_interpreter *I, td_value v, const char *who, int *dtype) {
  uint8_t found;
  bool texts = (td_is(v, &td_class_type) && !strcmp(((td_class *)v.o)->name->data, "str")) ||
               (td_is(v, &td_str_type) && !strcmp(td_as_str(v)->data, "str"));
  *dtype = texts ? TD_COLUMN_TEXTS : TD_COLUMN_FOUND;
  if (texts || td_is_none(v)) return true;
  if (td_to_dtype(I, v, &found)) return *dtype = found, true;
  if (td_is_nil(I->raised))
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: dtype must be a dtype or str, not %s", who, td_type_name(I, v));
  return false;
}

int td_column_kind_dtype(enum td_csv_kind kind) {
  static const int dtypes[] = {[TD_CSV_NOTHING] = TD_FLOAT32, [TD_CSV_BOOLS] = TD_BOOL, [TD_CSV_INTEGERS] = TD_INT64,
                               [TD_CSV_FLOATS] = TD_FLOAT32, [TD_CSV_TEXTS] = TD_COLUMN_TEXTS};
  return dtypes[kind];
}

td_value td_column_cell(td_interpreter *I, const td_csv *csv, int64_t row, int64_t column) {
  td_text text = {0};
  td_csv_text(csv, row, column, &text);
  return td_from(td_str_take(I, &text));
}

static td_value texts_of(td_interpreter *I, const td_csv *csv, const td_column *c, int64_t first) {
  td_list *list = td_list_new(I, csv->rows - first);
  bool ok = list != NULL, fills = !td_is_nil(c->missing);
  for (int64_t row = first; ok && row < csv->rows; row++) {
    bool fill = fills && td_csv_missing(csv, row, c->number);
    td_value text = fill ? td_ref(c->missing) : td_column_cell(I, csv, row, c->number);
    ok = !td_is_nil(text) && td_list_append(I, list, text);
    td_unref(text);
  }
  if (ok) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

td_value td_column_read(td_interpreter *I, td_csv *csv, const td_column *c, int64_t first) {
  bool ok = true;
  double missing = NAN;
  if (c->dtype == TD_COLUMN_TEXTS) return texts_of(I, csv, c, first);
  if (!td_is_nil(c->missing)) missing = td_to_double(I, c->missing, &ok);
  if (!ok) return TD_NIL;
  td_tensor *all;
  if (td_csv_numbers(csv, &c->number, 1, first, (uint8_t)c->dtype, &missing, &all) != TD_OK) return td_raise_engine(I);
  td_tensor *flat = td_tensor_view(I->context, all, 1, all->shape, (const int64_t[]){1}, 0);
  td_tensor_unref(all);
  return td_tensor_box(I, flat);
}

// ---- load_csv ----

typedef struct table {
  td_interpreter *interpreter;
  td_csv *csv;
  int64_t header; // its row; -1: none
  int64_t first; // row of data
  td_list *names; // of the columns: strs, or ints without a header
  int64_t *wanted; // columns, in the order that was asked for
  int64_t count;
  int dtype; // of all columns
  td_value dtypes, missing; // by column: dicts, or None; borrowed
} table;

static bool read_names(table *t) {
  t->names = td_list_new(t->interpreter, t->csv->columns);
  for (int64_t i = 0; t->names && i < t->csv->columns; i++) {
    td_value name = t->header >= 0 ? td_column_cell(t->interpreter, t->csv, t->header, i) : td_int(i);
    bool ok = !td_is_nil(name) && td_list_append(t->interpreter, t->names, name);
    td_unref(name);
    if (!ok) return false;
  }
  return t->names != NULL;
}

static bool find_column(const table *t, td_value wanted, int64_t *column) { // by name, or by number
  td_interpreter *I = t->interpreter;
  bool ok;
  if (!td_is(wanted, &td_str_type)) {
    *column = td_to_int(I, wanted, &ok);
    if (ok && *column >= 0 && *column < t->csv->columns) return true;
    if (ok)
      td_raise(I, TD_CLASS_VALUE_ERROR, "load_csv: there is no column %lld: the table has %lld", (long long)*column,
               (long long)t->csv->columns);
    return false;
  }
  for (*column = 0; t->header >= 0 && *column < t->names->count; ++*column)
    if (td_str_equal(td_as_str(t->names->items[*column]), td_as_str(wanted))) return true;
  td_text names = {0};
  td_repr(I, (td_value){.tag = TD_TAG_OBJECT, .o = &t->names->container.object}, &names);
  td_raise(I, TD_CLASS_VALUE_ERROR, "load_csv: there is no column '%s'%s", td_as_str(wanted)->data,
           t->header >= 0 ? "" : ": the table has no header");
  if (t->header >= 0 && names.data) td_raise_hint(I, "the columns are %.300s", names.data);
  td_text_clear(&names);
  return false;
}

static bool choose_columns(table *t, td_value columns) {
  td_interpreter *I = t->interpreter;
  td_value list = td_is_none(columns) ? TD_NIL : td_from(td_list_new(I, 0));
  bool chosen = !td_is_none(columns), ok = !chosen || (!td_is_nil(list) && td_to_list(I, columns, td_as_list(list)));
  t->count = chosen ? ok ? td_as_list(list)->count : 0 : t->csv->columns;
  t->wanted = ok ? td_memory_new((size_t)(t->count + 1) * sizeof *t->wanted) : NULL;
  if (ok && !t->wanted) td_raise_memory(I);
  ok = t->wanted != NULL;
  for (int64_t i = 0; ok && i < t->count; i++) {
    t->wanted[i] = i;
    if (chosen) ok = find_column(t, td_as_list(list)->items[i], &t->wanted[i]);
  }
  td_unref(list);
  return ok;
}

static bool check_keys(const table *t, td_value columns, const char *what) { // of a dict by column
  td_interpreter *I = t->interpreter;
  td_value key, unused;
  int64_t position = 0, column;
  if (td_is_none(columns)) return true;
  if (!td_is(columns, &td_dict_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "load_csv: %s must be a dict by column, not %s", what,
                    td_type_name(I, columns)), false;
  while (td_dict_next(td_as_dict(columns), &position, &key, &unused))
    if (!find_column(t, key, &column)) return false;
  return true;
}

static bool look_up(const table *t, td_value columns, int64_t column, td_value *found) { // NIL: there is nothing for it
  *found = TD_NIL;
  if (td_is_none(columns)) return true;
  int there = td_dict_get(t->interpreter, td_as_dict(columns), t->names->items[column], found);
  if (!there) there = td_dict_get(t->interpreter, td_as_dict(columns), td_int(column), found);
  if (there <= 0) *found = TD_NIL;
  return there >= 0;
}

static bool describe(const table *t, int64_t number, td_column *c) {
  td_value dtype;
  *c = (td_column){.number = number, .dtype = t->dtype};
  if (!look_up(t, t->missing, number, &c->missing) || !look_up(t, t->dtypes, number, &dtype)) return false;
  if (!td_is_nil(dtype) && !td_column_dtype(t->interpreter, dtype, "load_csv", &c->dtype)) return false;
  enum td_csv_kind kind = td_csv_kind_of(t->csv, number, t->first, !td_is_nil(c->missing));
  bool left = kind == TD_CSV_TEXTS && td_is_nil(dtype); // with dtype= for all a text that is no number is left a text
  if (c->dtype == TD_COLUMN_FOUND || left) c->dtype = td_column_kind_dtype(kind);
  return true;
}

static td_value column_of(const table *t, int64_t number) {
  td_column c;
  return describe(t, number, &c) ? td_column_read(t->interpreter, t->csv, &c, t->first) : TD_NIL;
}

static td_value as_dict(const table *t) {
  td_interpreter *I = t->interpreter;
  td_dict *dict = td_dict_new(I);
  bool ok = dict != NULL;
  for (int64_t i = 0; ok && i < t->count; i++) {
    td_value name = t->names->items[t->wanted[i]], there, column;
    int found = td_dict_get(I, dict, name, &there);
    ok = found == 0;
    if (found > 0)
      td_raise(I, TD_CLASS_VALUE_ERROR, "load_csv: two columns have the name '%s'",
               td_is(name, &td_str_type) ? td_as_str(name)->data : "");
    column = ok ? column_of(t, t->wanted[i]) : TD_NIL;
    ok = !td_is_nil(column) && td_dict_set(I, dict, name, column);
    td_unref(column);
  }
  if (ok) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static td_value as_tensor(const table *t, uint8_t dtype) {
  td_tensor *all;
  int code = td_csv_numbers(t->csv, t->wanted, t->count, t->first, dtype, NULL, &all);
  return code == TD_OK ? td_tensor_box(t->interpreter, all) : td_raise_engine(t->interpreter);
}

static td_value as_value(const table *t) { // a tensor where all are numbers without names, and none is treated apart
  enum td_csv_kind all = t->csv->rows > t->first ? TD_CSV_NOTHING : TD_CSV_FLOATS;
  bool apart = t->header >= 0 || !td_is_none(t->dtypes) || !td_is_none(t->missing) || t->dtype == TD_COLUMN_TEXTS;
  for (int64_t i = 0; !apart && i < t->count; i++) {
    enum td_csv_kind kind = td_csv_kind_of(t->csv, t->wanted[i], t->first, false);
    if (kind > all) all = kind;
  }
  if (apart || all == TD_CSV_TEXTS) return as_dict(t);
  return as_tensor(t, (uint8_t)(t->dtype >= 0 ? t->dtype : td_column_kind_dtype(all)));
}

// header: None looks, True is row 0 and False none, a number is its row, as pandas has it.
static bool place_header(table *t, td_value v) {
  t->header = -1;
  if (td_is_none(v)) {
    if (t->csv->rows && td_csv_has_header(t->csv)) t->header = 0;
  } else if (v.tag == TD_TAG_INT) {
    t->header = v.i;
    if (v.i < 0 || v.i >= t->csv->rows) {
      td_raise(t->interpreter, TD_CLASS_VALUE_ERROR, "load_csv: header is row %lld, and there are %lld", (long long)v.i,
               (long long)t->csv->rows);
      td_raise_hint(t->interpreter, "header=False: there is none; header=0: it is the first row");
      return false;
    }
  } else {
    int given = td_truth(t->interpreter, v);
    if (given < 0) return false;
    if (given && t->csv->rows) t->header = 0;
  }
  t->first = t->header + 1;
  return true;
}

static td_value builtin_load_csv(td_interpreter *I, td_value self,
                                 td_value *arguments) { // path, header, delimiter, dtype, columns, defaults
  (void)self;
  char delimiter;
  td_csv csv;
  const char *path = td_existing_path(I, arguments[0], "load_csv");
  if (!path || !td_delimiter_argument(I, arguments[2], "load_csv", &delimiter)) return TD_NIL;
  table t = {.interpreter = I, .csv = &csv, .dtype = TD_COLUMN_FOUND, .dtypes = TD_NONE, .missing = arguments[5]};
  if (td_is(arguments[3], &td_dict_type)) t.dtypes = arguments[3];
  else if (!td_column_dtype(I, arguments[3], "load_csv", &t.dtype)) return TD_NIL;
  if (td_csv_open(I->context, path, delimiter, &csv) != TD_OK) return td_raise_engine(I);
  bool ok = place_header(&t, arguments[1]) && read_names(&t) && choose_columns(&t, arguments[4]) &&
            check_keys(&t, t.dtypes, "dtype") && check_keys(&t, t.missing, "defaults");
  td_value result = ok ? as_value(&t) : TD_NIL;
  td_memory_free(t.wanted);
  td_unref(td_from(t.names));
  td_csv_close(&csv);
  return result;
}

// ---- save_csv ----

typedef struct column { // a tensor of one axis, a column of one of two, or a list
  td_tensor *tensor;
  int64_t offset, stride; // of its elements, by row-major index
  td_list *list;
} column;

typedef struct sheet {
  td_interpreter *interpreter;
  td_text out;
  char delimiter;
  column *columns; // each holds a reference
  int64_t count, rows;
} sheet;

static void add_element(sheet *s, const td_tensor *t, int64_t index) {
  td_text text = {0};
  td_tensor_print_element(t, index, &text);
  if (text.data) td_csv_add(&s->out, text.data, text.length, s->delimiter);
  s->out.failed |= text.failed;
  td_text_clear(&text);
}

static bool add_value(sheet *s, td_value v) { // of a list
  td_text text = {0};
  bool ok = td_is_none(v) || td_print(s->interpreter, v, &text);
  if (ok && text.length) td_csv_add(&s->out, text.data, text.length, s->delimiter);
  td_text_clear(&text);
  return ok;
}

static bool add_rows(sheet *s) {
  for (int64_t row = 0; row < s->rows; row++) {
    for (int64_t i = 0; i < s->count; i++) {
      const column *c = &s->columns[i];
      if (i) td_text_add_char(&s->out, s->delimiter);
      if (c->list && !add_value(s, c->list->items[row])) return false;
      if (c->tensor) add_element(s, c->tensor, c->offset + row * c->stride);
    }
    td_text_add_char(&s->out, '\n');
    if (td_interrupted(s->interpreter)) return false;
  }
  return true;
}

static bool add_names(sheet *s, const td_value *names, int64_t count) {
  td_interpreter *I = s->interpreter;
  for (int64_t i = 0; i < count; i++) {
    if (i) td_text_add_char(&s->out, s->delimiter);
    td_text text = {0};
    if (!td_print(I, names[i], &text)) return false;
    td_csv_add(&s->out, text.data ? text.data : "", text.length, s->delimiter);
    td_text_clear(&text);
  }
  td_text_add_char(&s->out, '\n');
  return true;
}

static bool room_for(sheet *s, int64_t count) {
  s->columns = td_memory_new_zero((size_t)(count + 1) * sizeof *s->columns);
  if (!s->columns) td_raise_memory(s->interpreter);
  return s->columns != NULL;
}

static bool take_column(sheet *s, td_value name, td_value v) { // of a dict
  td_interpreter *I = s->interpreter;
  column *c = &s->columns[s->count];
  if (td_is(v, &td_list_type)) c->list = td_as_list(td_ref(v));
  else c->tensor = td_saved_tensor(I, v, "save_csv");
  if (!c->list && !c->tensor) return false;
  s->count++;
  c->stride = 1;
  td_text text = {0};
  td_print(I, name, &text);
  int64_t rows = c->list ? c->list->count : c->tensor->rank == 1 ? c->tensor->size : -1;
  bool ok = rows >= 0 && (s->count == 1 || rows == s->rows);
  if (rows < 0)
    td_raise(I, TD_CLASS_VALUE_ERROR, "save_csv: column '%s' has rank %d; a column has one axis",
             text.data ? text.data : "", c->tensor->rank);
  else if (!ok)
    td_raise(I, TD_CLASS_VALUE_ERROR, "save_csv: column '%s' has %lld rows, those before it have %lld",
             text.data ? text.data : "", (long long)rows, (long long)s->rows);
  s->rows = rows;
  td_text_clear(&text);
  return ok;
}

static bool take_dict(sheet *s, td_dict *dict) {
  td_value key, value,
      names = td_list_from(s->interpreter, (td_value){.tag = TD_TAG_OBJECT, .o = &dict->container.object});
  bool ok =
      !td_is_nil(names) && room_for(s, dict->count) && add_names(s, td_as_list(names)->items, td_as_list(names)->count);
  td_unref(names);
  for (int64_t position = 0; ok && td_dict_next(dict, &position, &key, &value);) ok = take_column(s, key, value);
  return ok;
}

static bool take_tensor(sheet *s, td_value v, td_value header) {
  td_interpreter *I = s->interpreter;
  td_tensor *t = td_saved_tensor(I, v, "save_csv");
  if (!t) return false;
  bool ok = t->rank == 1 || t->rank == 2;
  int64_t count = t->rank == 2 ? t->shape[1] : 1;
  s->rows = ok ? t->shape[0] : 0;
  if (!ok) td_raise(I, TD_CLASS_VALUE_ERROR, "save_csv: a table has one or two axes, not %d", t->rank);
  ok = ok && room_for(s, count);
  for (; ok && s->count < count; s->count++)
    s->columns[s->count] = (column){.tensor = td_tensor_ref(t), .offset = s->count, .stride = count};
  td_tensor_unref(t);
  if (!ok || td_is_none(header)) return ok;
  td_value names = td_list_from(I, header);
  ok = !td_is_nil(names) && td_as_list(names)->count == count;
  if (!ok && td_is_nil(I->raised))
    td_raise(I, TD_CLASS_VALUE_ERROR, "save_csv: header has %lld names for %lld columns",
             (long long)td_as_list(names)->count, (long long)count);
  ok = ok && add_names(s, td_as_list(names)->items, count);
  td_unref(names);
  return ok;
}

static td_value builtin_save_csv(td_interpreter *I, td_value self, td_value *arguments) { // path, x, header, delimiter
  (void)self;
  sheet s = {.interpreter = I};
  const char *path = td_path_argument(I, arguments[0], "save_csv");
  if (!path || !td_delimiter_argument(I, arguments[3], "save_csv", &s.delimiter)) return TD_NIL;
  bool ok = td_is(arguments[1], &td_dict_type) ? take_dict(&s, td_as_dict(arguments[1]))
                                               : take_tensor(&s, arguments[1], arguments[2]);
  ok = ok && add_rows(&s);
  td_value result = TD_NIL;
  if (ok && s.out.failed) td_raise_memory(I);
  else if (ok) result = td_done(I, td_file_save(I->context, path, s.out.data, s.out.length));
  for (int64_t i = 0; i < s.count; i++) {
    td_tensor_unref(s.columns[i].tensor);
    td_unref(td_from(s.columns[i].list));
  }
  td_memory_free(s.columns);
  td_text_clear(&s.out);
  return result;
}

const td_method td_table_builtins[] = {
    {"load_csv", "(path, header=None, delimiter=',', dtype=None, columns=None, defaults=None)", builtin_load_csv,
     "A table from a text file: a dict of its columns by the names in its header, or, without a header and with "
     "numbers alone, a "
     "tensor [rows, columns].\n\n"
     "Columns of numbers are tensors: bool where all are true or false, int64 where all are whole, else float32, "
     "unless dtype says otherwise; missing "
     "ones (empty, NA, "
     "N/A, NaN, null, None) are NaN. Other columns are lists of strs. header=None: the first row is the header when "
     "none of its "
     "fields is empty or a number; without one a dict's keys are the columns' numbers. True and False say so, header=n "
     "that it is row n. columns: the names or numbers "
     "of those wanted. dtype={\"zip\": str, \"age\": float32} says it for some columns, str leaves texts as they are; "
     "defaults={\"age\": 0} is what stands for missing ones. "
     "Fields in double quotes may hold delimiters, line ends and doubled quotes; all rows must have as many fields."},
    {"save_csv", "(path, x, header=None, delimiter=',')", builtin_save_csv,
     "Saves a tensor of one or two axes, or a dict of columns (tensors of one axis, lists), as a text file.\n\nNumbers "
     "are written "
     "so that they read back the same; header names a tensor's columns. None is written as an empty field."},
    {NULL, NULL, NULL, NULL}};
