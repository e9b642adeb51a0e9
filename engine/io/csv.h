// Tables as text: fields between delimiters, rows between line ends (LF, CRLF or CR), fields in double quotes where
// they hold either, or quotes, which are doubled (RFC 4180). A byte order mark and empty lines are passed over.
#ifndef TD_IO_CSV_H
#define TD_IO_CSV_H
#include "engine/io/input.h"

enum td_csv_kind { TD_CSV_NOTHING, TD_CSV_BOOLS, TD_CSV_INTEGERS, TD_CSV_FLOATS, TD_CSV_TEXTS };

typedef struct td_csv_field {
  uint64_t begin;
  uint32_t length;
  bool quoted;
} td_csv_field; // of the file's bytes, without quotes
typedef struct td_csv {
  td_input in;
  char delimiter;
  int64_t rows, columns; // the header's row is one of them
  td_csv_field *fields; // row by row
  int64_t capacity;
} td_csv;

// Opens a file whose rows are then cut a block at a time. who: the reader, for messages. Errors: those of
// td_input_open.
int td_csv_begin(td_context *context, const char *who, const char *path, char delimiter, td_csv *csv);
// Cuts up to count rows from byte *at on, which take the place of those before; *at: behind them. rows is 0 at the end
// of the file. The first row ever cut says how many columns there are. Errors: as td_csv_open's.
int td_csv_next(td_csv *csv, uint64_t *at, int64_t count);
// Begins, and cuts the whole file into fields. Errors: TD_ERROR_FILE with path, line, column and byte: a row of another
// length, a quote that never ends, text behind a closing quote, no UTF-8; TD_ERROR_MEMORY, TD_ERROR_INTERRUPT.
int td_csv_open(td_context *context, const char *path, char delimiter, td_csv *csv);
void td_csv_close(td_csv *csv);
// No field of the first row is a number or empty; the first alone may be empty, as pandas leaves it above the index,
// and the others then be 0, 1, 2, ...
bool td_csv_has_header(const td_csv *csv);
bool td_csv_missing(const td_csv *csv, int64_t row, int64_t column); // the field is empty, NA, ...: see td_csv_kind_of
bool td_csv_text(const td_csv *csv, int64_t row, int64_t column,
                 td_text *out); // the field's text, appended; false: no memory
// What a column holds from row first on: true and false (in any case), numbers, or texts. Empty fields and NA, N/A,
// NaN, null, none (in any case) are missing numbers; filled: they count for nothing.
enum td_csv_kind td_csv_kind_of(const td_csv *csv, int64_t column, int64_t first, bool filled);
enum td_csv_kind td_csv_kind_join(enum td_csv_kind a, enum td_csv_kind b); // of two blocks of rows of a column
// The numbers of columns, from row first on, as a tensor [rows, count]; missing ones are missing[i] of column i, NaN
// where it is NULL. Errors: TD_ERROR_FILE with line and column: a text, a number that the dtype can't hold, a missing
// one that it has no NaN for; TD_ERROR_MEMORY.
int td_csv_numbers(td_csv *csv, const int64_t *columns, int64_t count, int64_t first, uint8_t dtype,
                   const double *missing, td_tensor **out);
void td_csv_add(td_text *out, const char *bytes, size_t length,
                char delimiter); // a field, in quotes where it needs them
#endif
