// safetensors files: every dtype there and back, each refusal of the format's own library, spoiled files.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/io/safetensors.h"
#include "tests/engine/files.h"

static bytes file(const char *header, const char *data, size_t size) {
  bytes b = {0};
  add_number(&b, strlen(header), 8);
  add(&b, header, strlen(header));
  add(&b, data, size);
  return b;
}

static int load(const bytes *b, td_tensor_file *f) {
  save(b, "x.safetensors");
  return td_safetensors_load(context, "x.safetensors", false, f);
}

static void refuses(bytes b, const char *reason) {
  td_tensor_file f;
  refused(load(&b, &f), reason);
  ck_assert(!f.count && !f.tensors && !f.metadata);
}

#define ONE(dtype, shape, offsets) "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

START_TEST(refused_starts) {
  refuses((bytes){.size = 7}, "byte 7: the file is shorter than the 8 bytes"); // HeaderTooSmall
  bytes b = {0};
  add_number(&b, 100000001, 8);
  refuses(b, "the header is to be 100000001 bytes long; 100000000 are accepted"); // HeaderTooLarge
  b.size = 0;
  add_number(&b, 20, 8);
  add(&b, "{}", 2);
  refuses(b, "the header is to be 20 bytes long, 2 are there"); // InvalidHeaderLength
  b.size = 0;
  add_number(&b, UINT64_MAX, 8);
  refuses(b, "18446744073709551615");
  refuses(file("", "", 0), "doesn't begin with '{'");
  refuses(file(" {}", "", 0), "byte 8: the header doesn't begin with '{'"); // InvalidHeaderStart
  refuses(file("[]", "", 0), "doesn't begin with '{'");
  refuses(file("{\"\xff\":1}", "", 0), "Invalid UTF-8"); // InvalidHeader
  refuses(file("{", "", 0), "Expecting property name"); // InvalidHeaderDeserialization
  refuses(file("{\"a\":{}} x", "", 0), "one of dtype, shape, data_offsets is missing");
  refuses(file("{} x", "", 0), "text follows the object");
}
END_TEST

START_TEST(refused_entries) {
  refuses(file("{\"a\":1}", "", 0), "tensor 'a': an object must follow"); // JsonError, field by field
  refuses(file(ONE("F9", "[1]", "[0,4]"), "1234", 4), "dtype 'F9' is none that a tensor can hold");
  refuses(file(ONE("F32", "1", "[0,4]"), "1234", 4), "shape must be an array");
  refuses(file(ONE("F32", "[-1]", "[0,4]"), "1234", 4), "whole numbers");
  refuses(file(ONE("F32", "[1.5]", "[0,4]"), "1234", 4), "whole numbers");
  refuses(file(ONE("F32", "[1]", "[0]"), "1234", 4), "data_offsets are two");
  refuses(file(ONE("F32", "[1]", "[0,4,4]"), "1234", 4), "data_offsets are two");
  refuses(file(ONE("F32", "[1]", "[0,18446744073709551616]"), "1234", 4), "whole numbers");
  refuses(file(ONE("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "1234", 4), "more than 8 axes");
  refuses(file("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "", 0), "a key comes twice");
  refuses(file("{\"a\":{\"more\":1}}", "", 0), "none of dtype, shape, data_offsets");
  refuses(file("{\"__metadata__\":{\"a\":1}}", "", 0), "__metadata__ must be an object of strings");
  refuses(file("{\"__metadata__\":{},\"__metadata__\":{}}", "", 0), "__metadata__ comes twice");
}
END_TEST

START_TEST(refused_offsets) {
  refuses(file(ONE("F32", "[1000,1000]", "[0,4]"), "1234", 4),
          "'a' (F32[1000, 1000], data_offsets 0 to 4): they don't fit the shape"); // TensorInvalidInfo
  refuses(file(ONE("F32", "[8589934592,2147483648,8]", "[0,4]"), "1234", 4),
          "product of the sizes"); // ValidationOverflow
  refuses(file(ONE("F32", "[1]", "[4,0]"), "1234", 4), "they end before they begin"); // InvalidOffset
  refuses(file(ONE("F32", "[1]", "[4,8]"), "12345678", 8), "they leave a gap");
  refuses(file(ONE("F32", "[2]", "[0,8]"), "1234", 4), "go past the file's end"); // MetadataIncompleteBuffer
  refuses(file(ONE("F32", "[1]", "[0,4]"), "12345678", 8), "4 bytes follow the last tensor");
  refuses(file("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
               "\"data_offsets\":[1,3]}}",
               "123", 3),
          "'b' (U8[2], data_offsets 1 to 3): they overlap");
  refuses(file("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
               "\"data_offsets\":[1,2]}}",
               "12", 2),
          "the name comes twice");
  refuses(file(ONE("BOOL", "[2]", "[0,2]"), "\1\2", 2), "a bool is 0 or 1");
  refuses(file(ONE("U64", "[1]", "[0,8]"), "\0\0\0\0\0\0\0\x80", 8), "past what int64");
}
END_TEST

START_TEST(no_escape_sequences_in_messages) {
  refuses(file("{\"\\u001b[2J\\u009b\":1}", "", 0), "tensor '?[2J?"
                                                    "?': an object");
}
END_TEST

START_TEST(there_and_back) {
  td_tensor *tensors[TD_DTYPE_COUNT + 3];
  td_tensor_entry entries[TD_DTYPE_COUNT + 3];
  char names[TD_DTYPE_COUNT + 3][20];
  int count = 0;
  for (uint8_t dtype = 0; dtype < TD_DTYPE_COUNT; dtype++, count++) {
    tensors[count] = td_tensor_zeros(context, dtype, 2, (const int64_t[]){3, 5});
    size_t size = 15 * (size_t)td_dtype_bytes(dtype);
    for (size_t i = 0; i < size; i++)
      tensors[count]->data[i] = (char)(dtype == TD_BOOL ? i & 1 : i * 37 + 11); // NaNs, too
  }
  tensors[count++] = td_tensor_zeros(context, TD_FLOAT32, 0, NULL);
  tensors[count++] = td_tensor_zeros(context, TD_FLOAT64, 3, (const int64_t[]){2, 0, 4});
  tensors[count] = td_tensor_view(context, tensors[TD_INT32], 2, (const int64_t[]){5, 3}, (const int64_t[]){1, 5}, 0);
  count++;
  for (int i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "t\n\"%d/\xc3\xa9", i);
    entries[i] = (td_tensor_entry){names[i], strlen(names[i]), tensors[i]};
  }
  const td_text_entry metadata[] = {{"key", "{\"a\": [1]}\n\\\x01", 3, 13}, {"", "", 0, 0}};
  ck_assert_msg(td_safetensors_save(context, "y.safetensors", entries, count, metadata, 2) == TD_OK, "%s",
                context->error.message);
  td_tensor_file f;
  ck_assert_msg(td_safetensors_load(context, "y.safetensors", false, &f) == TD_OK, "%s", context->error.message);
  ck_assert_int_eq(f.count, count);
  for (int i = 0; i < count; i++) {
    int k = 0;
    while (strcmp(f.tensors[k].name, names[i])) k++;
    td_tensor *got = f.tensors[k].tensor, *want = td_tensor_contiguous(context, tensors[i]);
    ck_assert(got->dtype == want->dtype && td_shape_equal(got->rank, got->shape, want->rank, want->shape));
    ck_assert_int_eq(memcmp(got->data, want->data, (size_t)want->size * (size_t)td_dtype_bytes(want->dtype)), 0);
    td_tensor_unref(want);
  }
  ck_assert(f.metadata_count == 2 && f.metadata[0].text_length == 13 &&
            !memcmp(f.metadata[0].text, metadata[0].text, 13));
  td_tensor_file_clear(&f);
  for (int i = 0; i < count; i++) td_tensor_unref(tensors[i]);
}
END_TEST

START_TEST(no_tensor_at_all) {
  td_tensor_file f;
  ck_assert_int_eq(td_safetensors_save(context, "y.safetensors", NULL, 0, NULL, 0), TD_OK);
  ck_assert_int_eq(td_safetensors_load(context, "y.safetensors", false, &f), TD_OK);
  ck_assert_int_eq(f.count, 0);
  td_tensor_file_clear(&f);
}
END_TEST

static int load_spoiled(const char *path, bool *same) {
  td_tensor_file f;
  int code = td_safetensors_load(context, path, false, &f);
  *same = true;
  td_tensor_file_clear(&f);
  return code;
}

START_TEST(spoiled) {
  const bytes b =
      file("{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"I16\",\"shape\":[2,1],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[4,5]}}  ",
           "1234\1", 5);
  cut_everywhere(&b, "x.safetensors", load_spoiled, false);
  set_everywhere(&b, "x.safetensors", load_spoiled, false);
}
END_TEST

START_TEST(without_memory) {
  const bytes b = file(
      "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"I16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}", "1234", 4);
  save(&b, "x.safetensors");
  for (int64_t n = 1;; n++) {
    td_tensor_file f;
    td_memory_fail(n, false);
    int code = td_safetensors_load(context, "x.safetensors", false, &f);
    td_memory_fail(0, false);
    td_tensor_file_clear(&f);
    if (code == TD_OK) break;
    ck_assert_int_eq(code, TD_ERROR_MEMORY);
  }
}
END_TEST

static int save_filled(char fill, int64_t size) { // a tensor whose bytes are all the same
  td_tensor *t = td_tensor_zeros(context, TD_UINT8, 1, &size);
  memset(t->data, fill, (size_t)size);
  int code = td_safetensors_save(context, "z.safetensors", &(td_tensor_entry){"x", 1, t}, 1, NULL, 0);
  td_tensor_unref(t);
  return code;
}

static char saved_fill(int64_t size) { // of the file, which must be whole
  td_tensor_file f;
  ck_assert_msg(td_safetensors_load(context, "z.safetensors", false, &f) == TD_OK, "%s", context->error.message);
  const char *data = f.tensors[0].tensor->data;
  ck_assert_int_eq(f.tensors[0].tensor->size, size);
  for (int64_t i = 1; i < size; i++) ck_assert_int_eq(data[i], data[0]);
  char fill = data[0];
  td_tensor_file_clear(&f);
  return fill;
}

START_TEST(killed_while_saving) { // the old file or a new one, whole
  const int64_t size = 100000;
  ck_assert_int_eq(save_filled(1, size), TD_OK);
  for (unsigned i = 0; i < 60; i++) {
    pid_t child = fork();
    if (!child)
      for (char fill = 2;; fill = (char)(fill % 100 + 1)) save_filled(fill, size);
    usleep(i * 7919 % 20000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    saved_fill(size);
  }
  ck_assert_int_eq(save_filled(7, size), TD_OK);
  ck_assert_int_eq(saved_fill(size), 7);
}
END_TEST

START_TEST(failing_disk) { // the file is as it was; the next save works
  ck_assert_int_eq(save_filled(1, 5000), TD_OK);
  for (int64_t n = 1;; n++) {
    td_file_fail(n, ENOSPC, false);
    int code = save_filled(2, 5000);
    td_file_fail(0, 0, false);
    if (code == TD_OK) break;
    ck_assert(code == TD_ERROR_FILE && strstr(context->error.message, "'z.safetensors'"));
    saved_fill(5000);
  }
  ck_assert_int_eq(saved_fill(5000), 2);
}
END_TEST

int main(void) {
  const char *const names[] = {"starts", "entries", "offsets",        "escapes", "there_and_back",
                               "empty",  "spoiled", "without_memory", "killed",  "disk"};
  const TTest *const tests[] = {refused_starts,      refused_entries,  refused_offsets, no_escape_sequences_in_messages,
                                there_and_back,      no_tensor_at_all, spoiled,         without_memory,
                                killed_while_saving, failing_disk};
  return RUN_SUITE("engine/safetensors", names, tests);
}
