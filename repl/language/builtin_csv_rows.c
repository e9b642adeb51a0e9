// Tables as text read where they lie, a block of rows at a time, from any byte on: a file of any size takes no memory,
// and a dataset's position in it is one number. Pages that were read are given back now and then.
#include "engine/base/file.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"

enum { FORGET_BYTES = 8 << 20 };

typedef struct csv_rows {
  td_object object;
  td_csv csv;
  td_value path; // whose text csv reads for its messages
  uint64_t forgotten; // bytes up to here were read when pages were given back
} csv_rows;

static void csv_rows_release(td_object *object) {
  csv_rows *r = (csv_rows *)object;
  td_csv_close(&r->csv);
  td_unref(r->path);
  r->path = TD_NIL;
}

// Cuts count rows at a byte offset; *next: where the following one begins. 0: there is none, -1: exception.
static int cut(td_interpreter *I, csv_rows *r, td_value where, td_value how_many, int64_t *next) {
  int64_t offset, count;
  if (!td_index_value(I, where, &offset) || !td_index_value(I, how_many, &count)) return -1;
  uint64_t at = offset < 0 ? 0 : (uint64_t)offset;
  r->csv.in.context = I->context; // a worker's has its own
  if (at < r->forgotten) r->forgotten = 0; // it is read anew
  if (at - r->forgotten > FORGET_BYTES) {
    td_input_forget(&r->csv.in);
    r->forgotten = at;
  }
  if (td_csv_next(&r->csv, &at, count) != TD_OK) return td_raise_engine(I), -1;
  *next = (int64_t)at;
  return r->csv.rows > 0;
}

static td_value rows_texts(td_interpreter *I, td_value self, td_value *arguments) { // offset
  csv_rows *r = (csv_rows *)self.o;
  int64_t next;
  int found = cut(I, r, arguments[0], td_int(1), &next);
  if (found <= 0) return found ? TD_NIL : TD_NONE;
  td_list *texts = td_list_new(I, r->csv.columns);
  for (int64_t i = 0; texts && i < r->csv.columns; i++) {
    td_value text = td_column_cell(I, &r->csv, 0, i);
    bool ok = !td_is_nil(text) && td_list_append(I, texts, text);
    td_unref(text);
    if (ok) continue;
    td_unref(td_from(texts));
    return TD_NIL;
  }
  if (!texts) return TD_NIL;
  return td_tuple_pack(I, 3, td_from(texts), td_bool(td_csv_has_header(&r->csv)), td_int(next));
}

static td_value rows_kinds(td_interpreter *I, td_value self, td_value *arguments) { // offset, count, filled, before
  csv_rows *r = (csv_rows *)self.o;
  int64_t next, joined = 0;
  int found = cut(I, r, arguments[0], arguments[1], &next);
  if (found <= 0) return found ? TD_NIL : TD_NONE;
  td_value filled = arguments[2], before = arguments[3];
  bool fits = td_is(filled, &td_list_type) && td_as_list(filled)->count == r->csv.columns &&
              td_is(before, &td_list_type) && td_as_list(before)->count == r->csv.columns;
  if (!fits) return td_raise(I, TD_CLASS_VALUE_ERROR, "kinds: filled and before are lists with an item a column");
  td_list *kinds = td_list_new(I, r->csv.columns);
  for (int64_t i = 0; kinds && i < r->csv.columns; i++) {
    enum td_csv_kind kind = td_csv_kind_of(&r->csv, i, 0, td_truth(I, td_as_list(filled)->items[i]) > 0);
    if (!td_index_value(I, td_as_list(before)->items[i], &joined) || joined < 0 || joined > TD_CSV_TEXTS) joined = 0;
    td_list_append(I, kinds, td_int(td_csv_kind_join((enum td_csv_kind)joined, kind)));
  }
  if (!td_is_nil(I->raised)) return td_unref(td_from(kinds)), TD_NIL;
  return td_tuple_pack(I, 3, td_from(kinds), td_int(r->csv.rows), td_int(next));
}

static bool column_at(td_interpreter *I, const csv_rows *r, td_value row, td_column *c) { // of (number, dtype, missing)
  if (!td_is(row, &td_tuple_type) || td_as_tuple(row)->count != 3)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "block: a column is (number, dtype, missing)"), false;
  td_value *items = td_as_tuple(row)->items;
  if (!td_index_value(I, items[0], &c->number) || !td_column_dtype(I, items[1], "from_csv", &c->dtype)) return false;
  if (c->number < 0 || c->number >= r->csv.columns || c->dtype == TD_COLUMN_FOUND)
    return td_raise(I, TD_CLASS_VALUE_ERROR, "block: there is no such column, or no dtype for it"), false;
  c->missing = td_is_none(items[2]) ? TD_NIL : items[2];
  return true;
}

static td_value columns_of(td_interpreter *I, csv_rows *r, const td_list *columns) {
  td_tuple *parts = td_tuple_new(I, columns->count);
  if (!parts) return TD_NIL;
  for (int64_t i = 0; i < columns->count; i++) {
    td_column c;
    parts->items[i] = column_at(I, r, columns->items[i], &c) ? td_column_read(I, &r->csv, &c, 0) : TD_NIL;
    if (td_is_nil(parts->items[i])) return td_unref(td_from(parts)), TD_NIL;
  }
  return td_from(parts);
}

static td_value rows_block(td_interpreter *I, td_value self, td_value *arguments) { // offset, count, columns
  csv_rows *r = (csv_rows *)self.o;
  int64_t next;
  if (!td_is(arguments[2], &td_list_type)) return td_raise(I, TD_CLASS_TYPE_ERROR, "block: columns must be a list");
  int found = cut(I, r, arguments[0], arguments[1], &next);
  if (found <= 0) return found ? TD_NIL : TD_NONE;
  td_value parts = columns_of(I, r, td_as_list(arguments[2]));
  return td_is_nil(parts) ? parts : td_tuple_pack(I, 3, parts, td_int(r->csv.rows), td_int(next));
}

static const td_method csv_rows_methods[] = {
    {"texts", "(offset)", rows_texts,
     "The row at a byte offset: (its fields as texts, whether it looks like names, the offset behind it); None at the "
     "end."},
    {"kinds", "(offset, count, filled, before)", rows_kinds,
     "What the columns hold in count rows, joined with before: (numbers of kinds, rows, the offset behind them)."},
    {"block", "(offset, count, columns)", rows_block,
     "count rows of columns [(number, dtype, missing)]: (a tensor or a list of texts each, rows, the offset behind "
     "them)."},
    {NULL, NULL, NULL, NULL}};

static const td_type csv_rows_type = {.name = "csv_rows",
                                      .size = sizeof(csv_rows),
                                      .release = csv_rows_release,
                                      .methods = csv_rows_methods,
                                      .doc = "The rows of a table, read where they lie."};

static td_value builtin_csv_rows(td_interpreter *I, td_value self, td_value *arguments) { // path, delimiter
  (void)self;
  char delimiter;
  const char *path = td_existing_path(I, arguments[0], "from_csv");
  if (!path || !td_delimiter_argument(I, arguments[1], "from_csv", &delimiter)) return TD_NIL;
  csv_rows *r = td_object_new(I, &csv_rows_type, sizeof *r);
  if (!r) return TD_NIL;
  r->csv = (td_csv){0};
  r->forgotten = 0;
  r->path = td_ref(arguments[0]);
  if (td_csv_begin(I->context, "from_csv", path, delimiter, &r->csv) == TD_OK) return td_from(r);
  td_unref(td_from(r));
  return td_raise_engine(I);
}

const td_method td_csv_rows_builtins[] = {
    {"_csv_rows", "(path, delimiter=',')", builtin_csv_rows, "The rows of a table, read where they lie."},
    {NULL, NULL, NULL, NULL}};
