// Tables as text: quotes, line ends, byte order marks, numbers to the last bit, what is refused and where, spoiled
// files.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/io/csv.h"
#include "tests/engine/files.h"

static int open_text(const char *text, size_t size, td_csv *csv) {
  bytes b = {0};
  add(&b, text, size);
  save(&b, "x.csv");
  return td_csv_open(context, "x.csv", ',', csv);
}

static void refuses(const char *text, const char *reason) {
  td_csv csv;
  refused(open_text(text, strlen(text), &csv), reason);
}

static void has(const td_csv *csv, int64_t row, int64_t column, const char *want) {
  td_text text = {0};
  ck_assert(td_csv_text(csv, row, column, &text));
  ck_assert_str_eq(text.data, want);
  td_text_clear(&text);
}

START_TEST(cutting) {
  static const struct {
    const char *text;
    int64_t rows, columns;
  } rows[] = {{"", 0, 0},
              {"a", 1, 1},
              {"a,b\n", 1, 2},
              {"a,b\r\nc,d\r\n", 2, 2},
              {"a,b\rc,d", 2, 2},
              {"\n\na\n\n\nb\n\n", 2, 1},
              {"\xef\xbb\xbf"
               "1,2\r\n3,4\r\n",
               2, 2},
              {",\n,", 2, 2},
              {"\"\"", 1, 1},
              {"\"a,b\",\"c\nd\"\n1,2", 2, 2},
              {"\xef\xbb\xbf", 0, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    td_csv csv;
    ck_assert_msg(open_text(rows[i].text, strlen(rows[i].text), &csv) == TD_OK, "%s", context->error.message);
    ck_assert_msg(csv.rows == rows[i].rows && csv.columns == rows[i].columns, "%s: %d x %d", rows[i].text,
                  (int)csv.rows, (int)csv.columns);
    td_csv_close(&csv);
  }
}
END_TEST

START_TEST(quotes) {
  td_csv csv;
  static const char text[] = "1,\"a, \"\"b\"\"\"\n2,\"x\ny\"\n3,\"\"\"\"\n4, \"z\" \n5,\xc3\xa9";
  ck_assert_int_eq(open_text(text, strlen(text), &csv), TD_OK);
  has(&csv, 0, 1, "a, \"b\"");
  has(&csv, 1, 1, "x\ny");
  has(&csv, 2, 1, "\"");
  has(&csv, 3, 1, " \"z\" ");
  has(&csv, 4, 1, "\xc3\xa9");
  td_csv_close(&csv);
}
END_TEST

START_TEST(numbers) {
  static const char *const texts[] = {
      "0",
      "-0",
      "1",
      " 7 ",
      "+5",
      ".5",
      "5.",
      "1e3",
      "1E-3",
      "0.1",
      "1e22",
      "1e23",
      "123456789012345678",
      "9007199254740993",
      "1.7976931348623157e308",
      "4.9e-324",
      "2.2250738585072014e-308",
      "1e400",
      "-1e-400",
      "inf",
      "-Infinity",
      "0.30000000000000004",
      "179769313486231570814527423731704356798070567525844996598917476803157260780028538760589558632766878",
      "0.000000000000000000000000000000000000000000001",
      "3.141592653589793238462643383279",
      "\"8\""};
  td_text all = {0};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) td_text_print(&all, "%s\n", texts[i]);
  td_csv csv;
  td_tensor *t;
  ck_assert_int_eq(open_text(all.data, all.length, &csv), TD_OK);
  ck_assert_int_eq(td_csv_numbers(&csv, (const int64_t[]){0}, 1, 0, TD_FLOAT64, NULL, &t), TD_OK);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    double want = strtod(texts[i] + (*texts[i] == '"'), NULL), got = value(t, (int64_t)i);
    ck_assert_msg(!memcmp(&want, &got, 8), "%s: %.17g", texts[i], got);
  }
  td_tensor_unref(t);
  td_csv_close(&csv);
  td_text_clear(&all);
}
END_TEST

START_TEST(missing_and_kinds) {
  td_csv csv;
  td_tensor *t;
  static const char text[] =
      "i,f,m,t,b,mix\n1,1,,a,True,true\n2,2.5,NA,2,FALSE,1\n3,3,nan,,true,0\n4,1e2,N/A,NULL,false,1\n";
  ck_assert_int_eq(open_text(text, strlen(text), &csv), TD_OK);
  ck_assert(td_csv_has_header(&csv));
  ck_assert(td_csv_kind_of(&csv, 0, 1, false) == TD_CSV_INTEGERS &&
            td_csv_kind_of(&csv, 1, 1, false) == TD_CSV_FLOATS && td_csv_kind_of(&csv, 2, 1, false) == TD_CSV_FLOATS &&
            td_csv_kind_of(&csv, 3, 1, false) == TD_CSV_TEXTS && td_csv_kind_of(&csv, 4, 1, false) == TD_CSV_BOOLS &&
            td_csv_kind_of(&csv, 5, 1, false) == TD_CSV_TEXTS);
  ck_assert_int_eq(td_csv_numbers(&csv, (const int64_t[]){2, 0}, 2, 1, TD_FLOAT32, NULL, &t), TD_OK);
  ck_assert(isnan(value(t, 0)) && value(t, 1) == 1 && isnan(value(t, 6)) && value(t, 7) == 4);
  td_tensor_unref(t);
  refused(td_csv_numbers(&csv, (const int64_t[]){2}, 1, 1, TD_INT32, NULL, &t),
          "line 2, column 5: int32: a value is missing");
  refused(td_csv_numbers(&csv, (const int64_t[]){1}, 1, 1, TD_INT64, NULL, &t),
          "line 3, column 3: int64: the number is not whole");
  refused(td_csv_numbers(&csv, (const int64_t[]){3}, 1, 1, TD_FLOAT32, NULL, &t),
          "line 2, column 6: 'a' is not a number");
  refused(td_csv_numbers(&csv, (const int64_t[]){0}, 1, 1, TD_BOOL, NULL, &t),
          "line 3, column 1: bool: the dtype can't hold");
  td_csv_close(&csv);
}
END_TEST

static bool header_of(const char *text) {
  td_csv csv;
  ck_assert_int_eq(open_text(text, strlen(text), &csv), TD_OK);
  bool found = td_csv_has_header(&csv);
  td_csv_close(&csv);
  return found;
}

START_TEST(headers_and_blocks) {
  ck_assert(header_of("a,b\n1,2\n") && header_of(",a\n0,2\n") && header_of(",0,1\n0,5,6\n"));
  ck_assert(!header_of("1,b\n1,2\n") && !header_of(",1,2\n0,5,6\n") && !header_of("a,\n1,2\n") &&
            !header_of("\"\"\n1\n"));
  td_csv csv;
  td_tensor *t;
  uint64_t at = 0;
  static const char text[] = "\xef\xbb\xbf" "1.0,\n2,true\n\n,false\n4";
  ck_assert_int_eq(open_text(text, sizeof text - 3, &csv), TD_OK);
  ck_assert_int_eq(td_csv_numbers(&csv, (const int64_t[]){0}, 1, 0, TD_INT64, (const double[]){9}, &t), TD_OK);
  ck_assert(value(t, 0) == 1 && value(t, 1) == 2 && value(t, 2) == 9);
  td_tensor_unref(t);
  ck_assert(td_csv_kind_of(&csv, 1, 0, false) == TD_CSV_TEXTS && td_csv_kind_of(&csv, 1, 0, true) == TD_CSV_BOOLS);
  ck_assert_int_eq(td_csv_next(&csv, &at, 2), TD_OK);
  ck_assert(csv.rows == 2 && at == 15 && td_csv_missing(&csv, 0, 1) && !td_csv_missing(&csv, 1, 1));
  ck_assert_int_eq(td_csv_next(&csv, &at, 2), TD_OK);
  ck_assert(csv.rows == 1 && td_csv_missing(&csv, 0, 0));
  ck_assert_int_eq(td_csv_next(&csv, &at, 2), TD_OK);
  ck_assert(csv.rows == 0);
  td_csv_close(&csv);
  ck_assert(td_csv_kind_join(TD_CSV_NOTHING, TD_CSV_BOOLS) == TD_CSV_BOOLS &&
            td_csv_kind_join(TD_CSV_BOOLS, TD_CSV_INTEGERS) == TD_CSV_TEXTS &&
            td_csv_kind_join(TD_CSV_INTEGERS, TD_CSV_FLOATS) == TD_CSV_FLOATS);
  refuses("\x1f\x8b\x08\x00", "byte 0: line 1, column 1: the file is compressed by gzip");
}
END_TEST

START_TEST(refused_texts) {
  refuses("a,b\nc\n", "byte 4: line 2, column 1: the row has 1 fields, those before it have 2");
  refuses("a\nb,c\n", "line 2, column 1: the row has 2 fields");
  refuses("a,\"b\nc", "line 1, column 3: the quote that opens here is never closed");
  refuses("a,\"b\"c\n", "line 1, column 6: text follows the closing quote");
  refuses("\xc3\xa9,\xff", "line 1, column 3: the text is not UTF-8: ff");
  refuses("\"\"\"", "never closed");
}
END_TEST

static int load_spoiled(const char *path, bool *same) {
  td_csv csv;
  int code = td_csv_open(context, path, ',', &csv);
  *same = true;
  if (code) return code;
  for (int64_t column = 0; column < csv.columns; column++)
    for (int64_t row = 0; row < csv.rows; row++) {
      td_text text = {0};
      td_csv_text(&csv, row, column, &text);
      td_text_clear(&text);
      td_csv_kind_of(&csv, column, row, false);
    }
  td_csv_has_header(&csv);
  td_csv_close(&csv);
  return TD_OK;
}

START_TEST(spoiled) {
  bytes b = {0};
  static const char text[] = "name,\"a, \"\"b\"\"\",x\r\n\xc3\xa9,1.5e3,-2\n\"\",,0\n";
  add(&b, text, strlen(text));
  cut_everywhere(&b, "x.csv", load_spoiled, true);
  set_everywhere(&b, "x.csv", load_spoiled, false);
}
END_TEST

START_TEST(written) {
  static const char *const texts[] = {"a", "", "a,b", "a\"b", "a\nb", " a", "a ", "\r", "\xc3\xa9"};
  td_text all = {0};
  for (int i = 0; i < 9; i++) {
    if (i) td_text_add_char(&all, ',');
    td_csv_add(&all, texts[i], strlen(texts[i]), ',');
  }
  td_csv csv;
  ck_assert_int_eq(open_text(all.data, all.length, &csv), TD_OK);
  ck_assert(csv.rows == 1 && csv.columns == 9);
  for (int i = 0; i < 9; i++) has(&csv, 0, i, texts[i]);
  td_csv_close(&csv);
  td_text_clear(&all);
}
END_TEST

int main(void) {
  const char *const names[] = {"cutting", "quotes", "numbers", "missing", "headers", "refused", "spoiled", "written"};
  const TTest *const tests[] = {cutting,       quotes,  numbers, missing_and_kinds, headers_and_blocks,
                                refused_texts, spoiled, written};
  return RUN_SUITE("engine/csv", names, tests);
}
