// What the builtins of files share: paths as arguments, and tensors that are to be saved.
#ifndef TD_LANGUAGE_FILES_H
#define TD_LANGUAGE_FILES_H
#include "engine/io/csv.h"
#include "repl/language/tensors.h"

// A str without NUL bytes, borrowed; NULL: TypeError or ValueError. who: the function, for messages.
const char *td_path_argument(td_interpreter *, td_value v, const char *who);
// The same for a file that is to be read; FileNotFoundError.
const char *td_existing_path(td_interpreter *, td_value v, const char *who);
// Any value that can stand for a tensor and has elements to be read; new reference; NULL: exception.
td_tensor *td_saved_tensor(td_interpreter *, td_value v, const char *who);
bool td_str_argument(td_interpreter *, td_value v, const char *who, const char *what); // false: TypeError
td_value td_done(td_interpreter *, int code); // None, or the engine's error raised

// ---- columns of tables: builtin_table.c ----

enum { TD_COLUMN_TEXTS = -2, TD_COLUMN_FOUND = -1 /* by what it holds */ };
typedef struct td_column {
  int64_t number;
  int dtype; // or one of those above
  td_value missing; // what a field without a value is; NIL: NaN, or its text; borrowed
} td_column;

bool td_delimiter_argument(td_interpreter *, td_value v, const char *who, char *delimiter);
// a dtype, str or None; false: TypeError
bool td_column_dtype(td_interpreter *, td_value v, const char *who, int *dtype);
int td_column_kind_dtype(enum td_csv_kind kind); // the dtype, or TD_COLUMN_TEXTS, that a column gets by itself
td_value td_column_cell(td_interpreter *, const td_csv *, int64_t row, int64_t column); // a str
// The column from row first on: a tensor, or a list of strs. Its dtype must be known.
td_value td_column_read(td_interpreter *, td_csv *, const td_column *, int64_t first);

extern const td_method td_csv_rows_builtins[];
extern const td_method td_file_builtins[], td_tensor_file_builtins[], td_summary_builtins[], td_table_builtins[];
bool td_json_register(td_interpreter *); // module_json.c
#endif
