// IDX files: every type, gzipped and not, and every way in which a file can be wrong. Files are written into the
// working folder. MNIST's own files are read where the sample data is.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/idx.h"

static td_context *context;
static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
}

static void finish(void) {
  unlink("x.idx");
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

typedef struct bytes {
  size_t size;
  unsigned char data[4096];
} bytes;

static void add(bytes *b, const void *data, size_t size) {
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static void add_number(bytes *b, uint64_t value, int width) { // big endian
  for (int i = width; i-- > 0;) b->data[b->size++] = (unsigned char)(value >> (8 * i));
}

static bytes header(unsigned code, int rank, const uint32_t *shape) {
  bytes b = {0};
  add_number(&b, code << 8 | (unsigned)rank, 4);
  for (int i = 0; i < rank; i++) add_number(&b, shape[i], 4);
  return b;
}
#define SHAPE(...) ((const uint32_t[]){__VA_ARGS__})

static bytes pattern(void) { // 2 x 3 unsigned bytes
  bytes b = header(8, 2, SHAPE(2, 3));
  add(&b, "\x00\x01\x7f\x80\xfe\xff", 6);
  return b;
}

static int load(const bytes *b, td_tensor **t) {
  ck_assert_int_eq(td_file_save(context, "x.idx", b->data, b->size), TD_OK);
  return td_idx_load(context, "x.idx", t);
}

static void refuses(const bytes *b, const char *reason) {
  td_tensor *t;
  ck_assert_int_eq(load(b, &t), TD_ERROR_FILE);
  ck_assert_ptr_null(t);
  ck_assert_msg(strstr(context->error.message, reason) && strstr(context->error.message, "'x.idx': byte "),
                "'%s' is not in: %s", reason, context->error.message);
}

static void loads(const bytes *b, uint8_t dtype, int64_t size, const double *values) {
  td_tensor *t;
  ck_assert_msg(load(b, &t) == TD_OK, "%s", context->error.message);
  ck_assert(t->dtype == dtype && t->size == size && td_tensor_is_contiguous(t) && td_tensor_is_sole(t));
  for (int64_t i = 0; i < size; i++) ck_assert_double_eq(td_tensor_get_float(t, i), values[i]);
  td_tensor_unref(t);
}

START_TEST(every_type) {
  static const struct {
    unsigned code;
    int width;
    uint8_t dtype;
    uint64_t raw[5];
    double values[5];
  } rows[] = {
      {0x08, 1, TD_UINT8, {0, 1, 127, 128, 255}, {0, 1, 127, 128, 255}},
      {0x09, 1, TD_INT32, {0, 1, 127, 128, 255}, {0, 1, 127, -128, -1}},
      {0x0b, 2, TD_INT32, {0, 258, 0x7fff, 0x8000, 0xffff}, {0, 258, 32767, -32768, -1}},
      {0x0c,
       4,
       TD_INT32,
       {0, 0x01020304, 0x7fffffff, 0x80000000, 0xffffffff},
       {0, 16909060, 2147483647, -2147483648.0, -1}},
      {0x0d,
       4,
       TD_FLOAT32,
       {0, 0x3f800000, 0xbf000000, 0x42f6e979, 0x7f7fffff},
       {0, 1, -0.5, (double)123.456f, 3.4028234663852886e38}},
      {0x0e,
       8,
       TD_FLOAT64,
       {0, 0x3ff0000000000000, 0xbfe0000000000000, 0x3fb999999999999a, 1},
       {0, 1, -0.5, 0.1, 5e-324}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bytes b = header(rows[i].code, 1, SHAPE(5));
    for (int k = 0; k < 5; k++) add_number(&b, rows[i].raw[k], rows[i].width);
    loads(&b, rows[i].dtype, 5, rows[i].values);
  }
}
END_TEST

START_TEST(widening_keeps_every_element) { // shorts and signed bytes grow in place
  for (int code = 0x09; code <= 0x0b; code += 2) {
    bytes b = header((unsigned)code, 1, SHAPE(1500));
    for (int i = 0; i < 1500; i++) add_number(&b, (uint64_t)(i * 7), code == 0x09 ? 1 : 2);
    td_tensor *t;
    ck_assert_int_eq(load(&b, &t), TD_OK);
    int wrong = 0;
    for (int i = 0; i < 1500; i++) wrong += ((int32_t *)t->data)[i] != (code == 0x09 ? (int8_t)(i * 7) : i * 7);
    ck_assert_int_eq(wrong, 0);
    td_tensor_unref(t);
  }
}
END_TEST

START_TEST(every_rank) {
  for (int rank = 1; rank <= 8; rank++) {
    bytes b = header(8, rank, SHAPE(2, 1, 3, 1, 2, 1, 1, 2));
    size_t size = (size_t)td_shape_size(rank, (const int64_t[]){2, 1, 3, 1, 2, 1, 1, 2});
    for (size_t i = 0; i < size; i++) b.data[b.size++] = (unsigned char)i;
    td_tensor *t;
    ck_assert_int_eq(load(&b, &t), TD_OK);
    ck_assert(t->rank == rank && t->size == (int64_t)size && t->shape[0] == 2);
    ck_assert_int_eq(td_tensor_get_int(t, t->size - 1), (int64_t)size - 1);
    td_tensor_unref(t);
  }
}
END_TEST

START_TEST(empty_files) {
  bytes b = header(0x0e, 2, SHAPE(0, 5));
  loads(&b, TD_FLOAT64, 0, NULL);
  b.size = 0;
  refuses(&b, "byte 0: the file is truncated: the header needs 4 bytes from byte 0, 0 are there");
}
END_TEST

START_TEST(wrong_headers) {
  bytes b = {0};
  add(&b, "\x89PNG\r\n\x1a\n", 8);
  refuses(&b, "byte 0: not an IDX file: it begins with 89 50 4e 47");
  b = pattern();
  b.data[2] = 0x0a;
  refuses(&b, "byte 2: type code 0a is none of");
  b = pattern();
  b.data[3] = 0;
  refuses(&b, "byte 3: rank 0 is not in 1 to 8");
  b.data[3] = 9;
  refuses(&b, "byte 3: rank 9 is not in 1 to 8");
  b = header(8, 2, SHAPE(0xffffffff, 2));
  refuses(&b, "the elements need 8589934590 bytes from byte 12, 0 are there");
  b = header(0x0e, 8, SHAPE(0xffffffff, 0xffffffff, 0xffffffff, 1, 1, 1, 1, 1));
  refuses(&b, "byte 4: the sizes' product is larger than any file");
  b = header(0x0e, 3, SHAPE(0, 0xffffffff, 0xffffffff));
  refuses(&b, "byte 4: the sizes' product is larger than any file");
  td_tensor *t;
  ck_assert_int_eq(td_idx_load(context, "absent.idx", &t), TD_ERROR_FILE);
  ck_assert_ptr_nonnull(strstr(context->error.message, "'absent.idx': No such file"));
}
END_TEST

START_TEST(cut_at_every_byte) {
  bytes whole = pattern();
  for (size_t size = 0; size < whole.size; size++) {
    bytes b = whole;
    b.size = size;
    refuses(&b, "truncated");
  }
  add(&whole, "!!", 2);
  refuses(&whole, "byte 18: 2 bytes follow the last element");
}
END_TEST

START_TEST(every_byte_changed) { // an error, or a tensor as large as the file says
  for (size_t i = 0; i < pattern().size; i++)
    for (int change = 0; change < 4; change++) {
      bytes b = pattern();
      b.data[i] = (unsigned char)(change == 0 ? 0 : change == 1 ? 255 : change == 2 ? b.data[i] + 1 : b.data[i] - 1);
      td_tensor *t;
      int code = load(&b, &t);
      ck_assert(code == TD_OK || code == TD_ERROR_FILE);
      if (!code) ck_assert_int_eq(t->storage->bytes, t->dtype == TD_UINT8 ? 6 : 24);
      td_tensor_unref(t);
    }
}
END_TEST

static void fail_every_allocation(const bytes *b) {
  for (int forever = 0; forever < 2; forever++)
    for (int n = 1;; n++) {
      ck_assert_int_lt(n, 100);
      ck_assert_int_eq(td_file_save(context, "x.idx", b->data, b->size), TD_OK);
      td_tensor *t;
      td_memory_fail(n, forever);
      int code = td_idx_load(context, "x.idx", &t);
      td_memory_fail(0, false);
      ck_assert(code ? code == TD_ERROR_MEMORY && !t : t != NULL);
      td_tensor_unref(t);
      if (code) continue;
      ck_assert_int_gt(n, 2);
      break;
    }
}

START_TEST(every_allocation_fails) {
  bytes b = pattern();
  fail_every_allocation(&b);
}
END_TEST

#ifdef HAVE_ZLIB
static bytes packed(const bytes *b) {
  bytes out = {0};
  z_stream z = {.next_in = (unsigned char *)b->data,
                .avail_in = (unsigned)b->size,
                .next_out = out.data,
                .avail_out = sizeof out.data};
  ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.size = z.total_out;
  deflateEnd(&z);
  return out;
}

static const double pattern_values[] = {0, 1, 127, 128, 254, 255};

START_TEST(gzipped) {
  bytes plain = pattern(), b = packed(&plain);
  loads(&b, TD_UINT8, 6, pattern_values);
  bytes first = plain, second = {0}; // two members, cut inside the header and inside the data
  for (size_t cut = 1; cut < plain.size; cut += 6) {
    first.size = cut;
    second.size = 0;
    add(&second, plain.data + cut, plain.size - cut);
    b = packed(&first);
    bytes rest = packed(&second);
    add(&b, rest.data, rest.size);
    loads(&b, TD_UINT8, 6, pattern_values);
  }
}
END_TEST

START_TEST(gzip_cut_at_every_byte) {
  bytes plain = pattern(), whole = packed(&plain);
  for (size_t size = 0; size < whole.size; size++) {
    bytes b = whole;
    b.size = size;
    refuses(&b, "truncated");
  }
}
END_TEST

START_TEST(gzip_every_byte_changed) { // the checksum tells: an error or the right content, never a wrong tensor
  bytes plain = pattern(), whole = packed(&plain);
  for (size_t i = 0; i < whole.size; i++)
    for (int change = 0; change < 4; change++) {
      bytes b = whole;
      b.data[i] = (unsigned char)(change == 0 ? 0 : change == 1 ? 255 : change == 2 ? b.data[i] + 1 : b.data[i] - 1);
      td_tensor *t;
      int code = load(&b, &t);
      ck_assert(code == TD_OK || code == TD_ERROR_FILE);
      if (!code) ck_assert(t->size == 6 && !memcmp(t->data, plain.data + 12, 6));
      td_tensor_unref(t);
    }
}
END_TEST

START_TEST(gzip_refusals) {
  bytes plain = pattern(), b = packed(&plain);
  b.data[b.size - 8] ^= 1;
  refuses(&b, "the gzip data is corrupt: incorrect data check");
  b = packed(&plain);
  add(&b, "junk", 4);
  refuses(&b, "bytes that are not gzip follow the gzip data");
  bytes longer = plain;
  add(&longer, "!", 1);
  b = packed(&longer);
  refuses(&b, "byte 18 of the unpacked data: more bytes follow the last element");
  bytes shorter = plain;
  shorter.size--;
  b = packed(&shorter);
  refuses(&b, "byte 17 of the unpacked data: the file is truncated");
  bytes bomb = header(8, 2, SHAPE(0xffffffff, 16));
  b = packed(&bomb);
  int64_t peak = td_memory_peak();
  refuses(&b, "byte 4 of the unpacked data: the elements need 68719476720 bytes, too many for a packed file of");
  ck_assert_int_lt(td_memory_peak(), peak + (1 << 20));
}
END_TEST

START_TEST(gzip_every_allocation_fails) {
  bytes plain = pattern(), b = packed(&plain);
  fail_every_allocation(&b);
}
END_TEST

START_TEST(interrupt_stops_loading) {
  bytes plain = pattern(), b = packed(&plain);
  td_tensor *t;
  ck_assert_int_eq(td_file_save(context, "x.idx", b.data, b.size), TD_OK);
  context->interrupt = 1;
  ck_assert_int_eq(td_idx_load(context, "x.idx", &t), TD_ERROR_INTERRUPT);
}
END_TEST

START_TEST(mnist) {
  static const struct {
    const char *name;
    int rank;
    int64_t shape[3];
    int64_t sum; // of all bytes
  } rows[] = {{"t10k-labels-idx1-ubyte.gz", 1, {10000}, 44434},
              {"t10k-images-idx3-ubyte.gz", 3, {10000, 28, 28}, 264923200},
              {"train-labels-idx1-ubyte.gz", 1, {60000}, 267236},
              {"train-images-idx3-ubyte.gz", 3, {60000, 28, 28}, 1567298545}};
  const char *root = getenv("top_srcdir");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/samples/data/mnist/%s", root ? root : ".", rows[i].name);
    if (!td_file_exists(path)) continue;
    td_tensor *t;
    ck_assert_int_eq(td_idx_load(context, path, &t), TD_OK);
    ck_assert(t->dtype == TD_UINT8 && td_shape_equal(t->rank, t->shape, rows[i].rank, rows[i].shape));
    int64_t sum = 0;
    for (int64_t k = 0; k < t->size; k++) sum += ((uint8_t *)t->data)[k];
    ck_assert_int_eq(sum, rows[i].sum);
    td_tensor_unref(t);
  }
}
END_TEST
#else
START_TEST(gzip_needs_zlib) {
  bytes b = {0};
  add(&b, "\x1f\x8b\x08\x08", 4);
  refuses(&b, "the file is gzipped and this build has no zlib");
  ck_assert_str_eq(context->error.hint, "unpack it first: gunzip --keep 'x.idx'");
}
END_TEST
#endif

START_TEST(saved) {
  static const uint8_t dtypes[] = {TD_UINT8, TD_INT32, TD_FLOAT32, TD_FLOAT64};
  static const char *const paths[] = {"x.idx", "x.idx.gz"};
  for (int i = 0; i < 8; i++) {
    td_tensor *t = td_tensor_zeros(context, dtypes[i / 2], 2, (const int64_t[]){3, 5}), *back;
    for (size_t k = 0; k < 15 * (size_t)td_dtype_bytes(t->dtype); k++) t->data[k] = (char)(k * 7);
    int code = td_idx_save(context, paths[i % 2], t);
#ifndef HAVE_ZLIB
    if (i % 2) {
      ck_assert_int_eq(code, TD_ERROR_STATE);
      td_tensor_unref(t);
      continue;
    }
#endif
    ck_assert_int_eq(code, TD_OK);
    ck_assert_msg(td_idx_load(context, paths[i % 2], &back) == TD_OK, "%s", context->error.message);
    ck_assert(back->dtype == t->dtype && td_shape_equal(2, t->shape, back->rank, back->shape));
    ck_assert_int_eq(memcmp(back->data, t->data, 15 * (size_t)td_dtype_bytes(t->dtype)), 0);
    td_tensor_unref(t);
    td_tensor_unref(back);
  }
  unlink("x.idx.gz");
  td_tensor *t = td_tensor_zeros(context, TD_INT64, 1, (const int64_t[]){1}),
            *u = td_tensor_zeros(context, TD_UINT8, 0, NULL);
  ck_assert_int_eq(td_idx_save(context, "x.idx", t), TD_ERROR_DTYPE);
  ck_assert_int_eq(td_idx_save(context, "x.idx", u), TD_ERROR_SHAPE);
  td_tensor_unref(t);
  td_tensor_unref(u);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("idx");
  TCase *tests = tcase_create("idx");
  suite_add_tcase(suite, tests);
  tcase_add_checked_fixture(tests, start, finish);
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, every_type);
  tcase_add_test(tests, widening_keeps_every_element);
  tcase_add_test(tests, every_rank);
  tcase_add_test(tests, empty_files);
  tcase_add_test(tests, wrong_headers);
  tcase_add_test(tests, cut_at_every_byte);
  tcase_add_test(tests, every_byte_changed);
  tcase_add_test(tests, every_allocation_fails);
  tcase_add_test(tests, saved);
#ifdef HAVE_ZLIB
  tcase_add_test(tests, gzipped);
  tcase_add_test(tests, gzip_cut_at_every_byte);
  tcase_add_test(tests, gzip_every_byte_changed);
  tcase_add_test(tests, gzip_refusals);
  tcase_add_test(tests, gzip_every_allocation_fails);
  tcase_add_test(tests, interrupt_stops_loading);
  tcase_add_test(tests, mnist);
#else
  tcase_add_test(tests, gzip_needs_zlib);
#endif
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
