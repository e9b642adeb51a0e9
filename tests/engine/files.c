// See files.h.
#include "tests/engine/files.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/file.h"

td_context *context;
static int64_t live_before;

void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
}

void finish(void) {
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

void add(bytes *b, const void *data, size_t size) {
  ck_assert_uint_le(b->size + size, sizeof b->data);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

void add_number(bytes *b, uint64_t number, int width) {
  for (int i = 0; i < width; i++) b->data[b->size++] = (unsigned char)(number >> (8 * i));
}

void save(const bytes *b, const char *path) {
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(b->data, 1, b->size, file), b->size);
  fclose(file);
}

void read_back(const char *path, bytes *b) {
  FILE *file = fopen(path, "rb");
  ck_assert_ptr_nonnull(file);
  b->size = fread(b->data, 1, sizeof b->data, file);
  fclose(file);
}

void refused(int code, const char *reason) {
  ck_assert_int_eq(code, TD_ERROR_FILE);
  ck_assert_msg(strstr(context->error.message, reason) && strstr(context->error.message, "byte "), "'%s' is not in: %s",
                reason, context->error.message);
}

double value(const td_tensor *t, int64_t index) { return td_tensor_get_float(t, index); }

void cut_everywhere(const bytes *whole, const char *path, loader *load, bool may_load) {
  bytes *b = malloc(sizeof *b);
  *b = *whole;
  for (b->size = 0; b->size < whole->size; b->size++) {
    bool same = false;
    save(b, path);
    int code = load(path, &same);
    ck_assert_msg(code == TD_ERROR_FILE || (may_load && code == TD_OK), "cut at %zu of %zu: code %d: %s", b->size,
                  whole->size, code, context->error.message);
  }
  free(b);
}

void set_everywhere(const bytes *whole, const char *path, loader *load, bool checked) {
  bytes *b = malloc(sizeof *b);
  *b = *whole;
  for (size_t i = 0; i < whole->size; i++) {
    const unsigned char old = whole->data[i], others[] = {0, 255, (unsigned char)(old + 1), (unsigned char)(old - 1)};
    for (int k = 0; k < 4; k++) {
      bool same = false;
      b->data[i] = others[k];
      save(b, path);
      int code = load(path, &same);
      ck_assert_msg(code == TD_ERROR_FILE || (code == TD_OK && (same || !checked)), "byte %zu set to %d: code %d: %s",
                    i, others[k], code, code ? context->error.message : "other content");
    }
    b->data[i] = old;
  }
  free(b);
}

int run_suite(const char *name, const char *const *names, const TTest *const *tests, int count) {
  Suite *suite = suite_create(name);
  for (int i = 0; i < count; i++) {
    TCase *test = tcase_create(names[i]);
    tcase_set_timeout(test, 120);
    tcase_add_checked_fixture(test, start, finish);
    tcase_add_test(test, tests[i]);
    suite_add_tcase(suite, test);
  }
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
