// .npy files: headers of every version and form, every dtype in both orders, what is refused and where, mapped files
// (one that becomes shorter, too), rows, and what is written.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/map.h"
#include "engine/io/npy.h"
#include "tests/engine/files.h"

static bytes file(int version, const char *header, const void *elements, size_t size) {
  bytes b = {0};
  add(&b, "\x93NUMPY", 6);
  add_number(&b, (uint64_t)version, 2);
  add_number(&b, strlen(header), version == 1 ? 2 : 4);
  add(&b, header, strlen(header));
  add(&b, elements, size);
  return b;
}

static bytes of(const char *descr, const char *shape, const void *elements, size_t size) {
  char header[200];
  snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
  return file(1, header, elements, size);
}

static int load(const bytes *b, td_tensor **t) {
  save(b, "x.npy");
  return td_npy_load(context, "x.npy", &(td_npy_options){0}, t);
}

static void refuses(bytes b, const char *reason) {
  td_tensor *t;
  refused(load(&b, &t), reason);
  ck_assert_ptr_null(t);
}

static void loads(bytes b, uint8_t dtype, int rank, int64_t size, const double *values) {
  td_tensor *t;
  ck_assert_msg(load(&b, &t) == TD_OK, "%s", context->error.message);
  ck_assert(t->dtype == dtype && t->rank == rank && t->size == size && td_tensor_is_contiguous(t) &&
            td_tensor_is_sole(t));
  for (int64_t i = 0; i < size; i++) ck_assert_double_eq(value(t, i), values[i]);
  td_tensor_unref(t);
}
#define NUMBERS(...) ((const double[]){__VA_ARGS__})

START_TEST(every_dtype) {
  loads(of("|b1", "(3,)", "\1\0\1", 3), TD_BOOL, 1, 3, NUMBERS(1, 0, 1));
  loads(of("|u1", "(2,)", "\0\xff", 2), TD_UINT8, 1, 2, NUMBERS(0, 255));
  loads(of("|i1", "(2,)", "\x7f\xff", 2), TD_INT32, 1, 2, NUMBERS(127, -1));
  loads(of("<u2", "(2,)", "\1\2\xff\xff", 4), TD_INT32, 1, 2, NUMBERS(513, 65535));
  loads(of(">u2", "(2,)", "\1\2\xff\xff", 4), TD_INT32, 1, 2, NUMBERS(258, 65535));
  loads(of(">i2", "(3,)", "\0\1\0\2\1\2", 6), TD_INT32, 1, 3, NUMBERS(1, 2, 258));
  loads(of("<i2", "(2,)", "\1\2\xff\xff", 4), TD_INT32, 1, 2, NUMBERS(513, -1));
  loads(of("<u4", "(1,)", "\xff\xff\xff\xff", 4), TD_INT64, 1, 1, NUMBERS(4294967295.0));
  loads(of(">u4", "(1,)", "\0\0\1\2", 4), TD_INT64, 1, 1, NUMBERS(258));
  loads(of("<i4", "(1,)", "\xfe\xff\xff\xff", 4), TD_INT32, 1, 1, NUMBERS(-2));
  loads(of(">i4", "(1,)", "\0\0\1\2", 4), TD_INT32, 1, 1, NUMBERS(258));
  loads(of("<i8", "(1,)", "\xfe\xff\xff\xff\xff\xff\xff\xff", 8), TD_INT64, 1, 1, NUMBERS(-2));
  loads(of(">i8", "(1,)", "\0\0\0\0\0\0\1\2", 8), TD_INT64, 1, 1, NUMBERS(258));
  loads(of(">u8", "(1,)", "\0\0\0\0\0\0\1\2", 8), TD_INT64, 1, 1, NUMBERS(258));
  loads(of("<f2", "(2,)", "\0\x3c\0\xc0", 4), TD_FLOAT16, 1, 2, NUMBERS(1, -2));
  loads(of(">f2", "(3,)", "\x3c\0\x40\0\x5c\x08", 6), TD_FLOAT16, 1, 3, NUMBERS(1, 2, 258));
  loads(of("<f4", "(1,)", "\0\0\x81\x43", 4), TD_FLOAT32, 1, 1, NUMBERS(258));
  loads(of(">f4", "(1,)", "\x43\x81\0\0", 4), TD_FLOAT32, 1, 1, NUMBERS(258));
  loads(of(">f8", "(1,)", "\x40\x70\x20\0\0\0\0\0", 8), TD_FLOAT64, 1, 1, NUMBERS(258));
  loads(of("<V2", "(1,)", "\x80\x3f", 2), TD_BFLOAT16, 1, 1, NUMBERS(1));
  loads(of("|V2", "(1,)", "\x80\x3f", 2), TD_BFLOAT16, 1, 1, NUMBERS(1));
}
END_TEST

START_TEST(every_header) {
  loads(of("|u1", "()", "\7", 1), TD_UINT8, 0, 1, NUMBERS(7));
  loads(of("|u1", "(2, 0, 3)", "", 0), TD_UINT8, 3, 0, NULL);
  loads(of("|u1", "(2L,)", "\1\2", 2), TD_UINT8, 1, 2, NUMBERS(1, 2));
  loads(of("|u1", "(1,1,1,1,1,1,1,2)", "\1\2", 2), TD_UINT8, 8, 2, NUMBERS(1, 2));
  for (int version = 1; version <= 3; version++)
    loads(file(version, "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"|u1\"}", "\1\2", 2), TD_UINT8, 1, 2,
          NUMBERS(1, 2));
  loads(file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }      \n", "\1\4\2\5\3\6", 6), TD_UINT8, 2,
        6, NUMBERS(1, 2, 3, 4, 5, 6));
  loads(file(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (1, 2, 2), }", "\1\0\2\0\3\0\4\0", 8), TD_INT32, 3, 4,
        NUMBERS(1, 3, 2, 4));
}
END_TEST

START_TEST(refused_headers) {
  refuses((bytes){0}, "byte 0: the file ends within");
  refuses((bytes){.size = 20, .data = "PK"}, "not a .npy file");
  refuses(file(4, "{}", "", 0), "version 4.0");
  refuses(file(1, "", "", 0), "needs '{'");
  refuses(file(1, "{'descr': '|u1', 'fortran_order': False}", "", 0), "lacks one of");
  refuses(file(1, "{'descr': '|u1', 'descr': '|u1'}", "", 0), "comes twice");
  refuses(file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}", "", 0), "none of descr");
  refuses(file(1, "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}", "", 0), "must be True or False");
  refuses(file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x", "", 0), "text follows");
  refuses(file(1, "{'descr': '|u1", "", 0), "no closing quote");
  bytes long_header = of("|u1", "(1,)", "", 0);
  long_header.data[6] = 2;
  memcpy(long_header.data + 8, "\1\0\1\0", 4);
  refuses(long_header, "byte 8: the header is to be 65537 bytes long; 65536 are accepted");
  refuses(of("|O", "(1,)", "12345678", 8), "byte 20: dtype '|O': Python objects, which are pickled");
  refuses(of("<c8", "(1,)", "12345678", 8), "complex");
  refuses(of("<U2", "(1,)", "12345678", 8), "texts");
  refuses(of("<M8[s]", "(1,)", "12345678", 8), "dates");
  refuses(of("|V8", "(1,)", "12345678", 8), "records or raw bytes");
  refuses(of("<f16", "(1,)", "12345678", 8), "none that a tensor can hold");
  refuses(of("=f4", "(1,)", "1234", 4), "leaves the byte order");
  refuses(file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234", 4),
          "an array of records");
}
END_TEST

START_TEST(refused_shapes) {
  refuses(of("|u1", "(1,1,1,1,1,1,1,1,1)", "\1", 1), "more than 8 axes");
  refuses(of("|u1", "(-1,)", "", 0), "a size of 0 or more");
  refuses(of("|u1", "(1 2)", "", 0), "needs ','");
  refuses(of("|u1", "(99999999999999999999,)", "", 0), "larger than any array's");
  refuses(of("<f8", "(4294967296, 4294967296)", "", 0), "product of the sizes");
  refuses(of("<f8", "(1152921504606846976,)", "", 0), "product of the sizes");
  refuses(of("<f4", "(2,)", "1234567", 7),
          "byte 75: the file is truncated: the elements need 8 bytes from byte 68, 7 are there");
  refuses(of("<f4", "(1,)", "12345", 5), "1 bytes follow the last element");
  refuses(of("|b1", "(3,)", "\1\0\2", 3), "a bool is 0 or 1, not 2");
  refuses(of(">u8", "(2,)", "\0\0\0\0\0\0\0\0\x80\0\0\0\0\0\0\0", 16), "element 1 is past what int64 can hold");
}
END_TEST

static td_tensor *counting(uint8_t dtype, int rank, const int64_t *shape) {
  td_tensor *t = td_tensor_zeros(context, TD_INT64, rank, shape);
  for (int64_t i = 0; i < t->size; i++) ((int64_t *)t->data)[i] = i;
  td_tensor *out = td_tensor_new(context, dtype, rank, shape);
  for (int64_t i = 0; i < t->size; i++) {
    td_tensor *one = td_tensor_from_int(context, i % 200, dtype);
    memcpy(out->data + i * td_dtype_bytes(dtype), one->data, (size_t)td_dtype_bytes(dtype));
    td_tensor_unref(one);
  }
  td_tensor_unref(t);
  return out;
}

START_TEST(saved_and_loaded) {
  for (uint8_t dtype = 0; dtype < TD_DTYPE_COUNT; dtype++)
    for (int rank = 0; rank <= 8; rank++) {
      td_tensor *t = counting(dtype, rank, (const int64_t[]){2, 3, 1, 2, 1, 1, 2, 3}), *back;
      ck_assert_int_eq(td_npy_save(context, "y.npy", t), TD_OK);
      ck_assert_msg(td_npy_load(context, "y.npy", &(td_npy_options){0}, &back) == TD_OK, "%s", context->error.message);
      ck_assert(back->dtype == dtype && td_shape_equal(rank, t->shape, back->rank, back->shape));
      ck_assert_int_eq(memcmp(t->data, back->data, (size_t)(t->size * td_dtype_bytes(dtype))), 0);
      td_tensor_unref(t);
      td_tensor_unref(back);
      bytes b;
      read_back("y.npy", &b);
      ck_assert_uint_eq((b.data[8] + 10u) % 64, 0);
    }
}
END_TEST

START_TEST(views_are_saved_in_order) {
  td_tensor *t = counting(TD_INT32, 2, (const int64_t[]){2, 3}), *back;
  td_tensor *view = td_tensor_view(context, t, 2, (const int64_t[]){3, 2}, (const int64_t[]){-1, 3}, 2);
  ck_assert_int_eq(td_npy_save(context, "y.npy", view), TD_OK);
  ck_assert_int_eq(td_npy_load(context, "y.npy", &(td_npy_options){0}, &back), TD_OK);
  const double want[] = {2, 5, 1, 4, 0, 3};
  for (int i = 0; i < 6; i++) ck_assert_double_eq(value(back, i), want[i]);
  td_tensor_unref(t);
  td_tensor_unref(view);
  td_tensor_unref(back);
}
END_TEST

enum { ROWS = 600, COLUMNS = 1000 }; // 2.4 MB

static void save_large(void) {
  td_tensor *t = td_tensor_new(context, TD_FLOAT32, 2, (const int64_t[]){ROWS, COLUMNS});
  for (int64_t i = 0; i < t->size; i++) ((float *)t->data)[i] = (float)i;
  ck_assert_int_eq(td_npy_save(context, "large.npy", t), TD_OK);
  td_tensor_unref(t);
}

START_TEST(mapped) {
  td_tensor *t;
  save_large();
  int64_t before = td_memory_live();
  ck_assert_int_eq(td_npy_load(context, "large.npy", &(td_npy_options){.map = true}, &t), TD_OK);
  ck_assert_int_lt(td_memory_live() - before, 4096); // the bytes are the file's
  ck_assert(!td_tensor_is_sole(t) && td_tensor_is_contiguous(t));
  ck_assert_double_eq(value(t, ROWS * COLUMNS - 1), ROWS * COLUMNS - 1);
  td_tensor_unref(t);
}
END_TEST

START_TEST(rows) {
  td_tensor *t;
  save_large();
  ck_assert_int_eq(td_npy_load(context, "large.npy", &(td_npy_options){.part = true, .start = 598, .stop = 700}, &t),
                   TD_OK);
  ck_assert(t->shape[0] == 2 && t->shape[1] == COLUMNS && value(t, 0) == 598 * COLUMNS);
  td_tensor_unref(t);
  ck_assert_int_eq(td_npy_load(context, "large.npy", &(td_npy_options){.part = true, .start = 700, .stop = 800}, &t),
                   TD_OK);
  ck_assert_int_eq(t->size, 0);
  td_tensor_unref(t);
}
END_TEST

static long resident_pages(void) { // of files
  long all, resident, shared;
  FILE *file = fopen("/proc/self/statm", "r");
  ck_assert(file && fscanf(file, "%ld %ld %ld", &all, &resident, &shared) == 3);
  fclose(file);
  return shared;
}

START_TEST(a_mapping_outlives_its_context) {
  td_tensor *t;
  td_context *other = td_context_new(1);
  save_large();
  ck_assert_int_eq(td_npy_load(other, "large.npy", &(td_npy_options){.map = true}, &t), TD_OK);
  td_context_free(other);
  ck_assert_int_eq(truncate("large.npy", 5000), 0);
  ck_assert_double_eq(value(t, ROWS * COLUMNS - 1), 0);
  ck_assert(td_map_lost());
  td_tensor_unref(t);
}
END_TEST

START_TEST(a_walk_through_a_mapped_file) { // of 200 MB leaves less than 64 MB resident
  const int64_t count = 50000, width = 1000, step = 64;
  td_text header = {0};
  td_tensor *t = td_tensor_zeros(context, TD_FLOAT32, 2, (const int64_t[]){1, width});
  t->shape[0] = count;
  td_npy_header(t, &header);
  t->shape[0] = 1;
  FILE *file = fopen("walk.npy", "wb");
  fwrite(header.data, 1, header.length, file);
  for (int64_t i = 0; i < count; i++) fwrite(t->data, 4, (size_t)width, file);
  fclose(file);
  td_text_clear(&header);
  td_tensor_unref(t);
  ck_assert_int_eq(td_npy_load(context, "walk.npy", &(td_npy_options){.map = true}, &t), TD_OK);
  long before = resident_pages(), most = 0;
  for (int64_t row = 0; row + step <= count; row += step) {
    td_tensor *batch = td_tensor_new(context, TD_FLOAT32, 2, (const int64_t[]){step, width});
    memcpy(batch->data, t->data + row * width * 4, (size_t)(step * width * 4));
    ck_assert_double_eq(value(batch, 5), 0);
    td_tensor_unref(batch);
    if (row % (step * 50) == 0 && resident_pages() - before > most) most = resident_pages() - before;
  }
  ck_assert_int_lt(most * sysconf(_SC_PAGESIZE), 64 << 20);
  td_tensor_unref(t);
  unlink("walk.npy");
}
END_TEST

START_TEST(a_mapped_file_becomes_shorter) {
  td_tensor *t;
  save_large();
  ck_assert_int_eq(td_npy_load(context, "large.npy", &(td_npy_options){.map = true}, &t), TD_OK);
  ck_assert_int_eq(truncate("large.npy", 5000), 0);
  ck_assert(!td_map_lost() && !atomic_load(&context->interrupt));
  ck_assert_double_eq(value(t, ROWS * COLUMNS - 1), 0); // no crash
  ck_assert(atomic_load(&context->interrupt) && td_map_lost() && !td_map_lost());
  ck_assert_double_eq(value(t, 1000), 1000);
  td_tensor_unref(t);
  refused(td_npy_load(context, "large.npy", &(td_npy_options){.map = true}, &t), "truncated");
}
END_TEST

static int load_spoiled(const char *path, bool *same) {
  td_tensor *t;
  int code = td_npy_load(context, path, &(td_npy_options){0}, &t);
  ck_assert_int_eq(code == TD_OK, t != NULL);
  *same = true;
  td_tensor_unref(t);
  return code;
}

START_TEST(spoiled) {
  const bytes b = of("<i2", "(2, 2)", "\1\0\2\0\3\0\4\0", 8);
  cut_everywhere(&b, "x.npy", load_spoiled, false);
  set_everywhere(&b, "x.npy", load_spoiled, false);
}
END_TEST

START_TEST(without_memory_or_disk) {
  save_large();
  for (int64_t n = 1;; n++) {
    td_tensor *t;
    td_memory_fail(n, false);
    int code = td_npy_load(context, "large.npy", &(td_npy_options){0}, &t);
    td_memory_fail(0, false);
    ck_assert_int_eq(code == TD_OK, t != NULL);
    td_tensor_unref(t);
    if (code == TD_OK) break;
    ck_assert_int_eq(code, TD_ERROR_MEMORY);
  }
  for (int64_t n = 1;; n++) {
    td_tensor *t;
    td_file_fail(n, 5, false);
    int code = td_npy_load(context, "large.npy", &(td_npy_options){0}, &t);
    td_file_fail(0, 0, false);
    td_tensor_unref(t);
    if (code == TD_OK) break;
    ck_assert_int_eq(code, TD_ERROR_FILE);
  }
}
END_TEST

int main(void) {
  const char *const names[] = {"dtypes", "headers", "refused_headers", "refused_shapes", "saved", "views",  "mapped",
                               "rows",   "shorter", "spoiled",         "without",        "walk",  "context"};
  const TTest *const tests[] = {every_dtype,
                                every_header,
                                refused_headers,
                                refused_shapes,
                                saved_and_loaded,
                                views_are_saved_in_order,
                                mapped,
                                rows,
                                a_mapped_file_becomes_shorter,
                                spoiled,
                                without_memory_or_disk,
                                a_walk_through_a_mapped_file,
                                a_mapping_outlives_its_context};
  return RUN_SUITE("engine/npy", names, tests);
}
