// .npz files and the zip archives beneath: stored, deflated, ZIP64, with sizes behind the bytes; each refusal; spoiled
// files.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <stdio.h>
#include <stdlib.h>

#include "engine/io/npz.h"
#include "engine/io/zip.h"
#include "tests/engine/files.h"

typedef struct member { // of an archive that is made here; 0 and NULL: as it should be
  const char *name, *other_name; // in the directory, in its own header
  const char *content;
  int flags, method, part, extra64, later, crc_off, packed_off, header_off;
  unsigned size;
} member;

static unsigned char npy_bytes[200];

static size_t npy(char last) { // a .npy file of [1, 2, last] in uint8
  static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n";
  bytes b = {0};
  add(&b, "\x93NUMPY\1\0", 8);
  add_number(&b, sizeof header - 1, 2);
  add(&b, header, sizeof header - 1);
  add(&b, "\1\2", 2);
  add(&b, &last, 1);
  memcpy(npy_bytes, b.data, b.size);
  return b.size;
}

static size_t content_of(const member *m, const unsigned char **content) {
  *content = m->content ? (const unsigned char *)m->content : npy_bytes;
  return m->content ? strlen(m->content) : npy(3);
}

static void add_header(bytes *b, const member *m, size_t *begin) {
  const unsigned char *content;
  size_t size = content_of(m, &content);
  const char *name = m->other_name ? m->other_name : m->name;
  bool absent = m->extra64 || m->later;
  *begin = b->size;
  add_number(b, 0x04034b50, 4);
  add_number(b, 20, 2);
  add_number(b, (uint64_t)(m->flags | (m->later ? 8 : 0)), 2);
  add_number(b, (uint64_t)m->method, 2);
  add_number(b, 0, 4);
  add_number(b, m->later ? 0 : td_crc32(0, content, size) + (unsigned)m->crc_off, 4);
  add_number(b, m->extra64 ? 0xffffffff : absent ? 0 : size + (unsigned)m->packed_off, 4);
  add_number(b, m->extra64 ? 0xffffffff : absent ? 0 : m->size ? m->size : size, 4);
  add_number(b, strlen(name), 2);
  add_number(b, m->extra64 ? 20 : 0, 2);
  add(b, name, strlen(name));
  if (m->extra64) {
    add_number(b, 1, 2);
    add_number(b, 16, 2);
    add_number(b, m->later ? 0 : size, 8);
    add_number(b, m->later ? 0 : size, 8);
  }
  add(b, content, size);
}

static void add_entry(bytes *b, const member *m, size_t begin) {
  const unsigned char *content;
  size_t size = content_of(m, &content);
  add_number(b, 0x02014b50, 4);
  add_number(b, 20, 2);
  add_number(b, 20, 2);
  add_number(b, (uint64_t)(m->flags | (m->later ? 8 : 0)), 2);
  add_number(b, (uint64_t)m->method, 2);
  add_number(b, 0, 4);
  add_number(b, td_crc32(0, content, size) + (unsigned)m->crc_off, 4);
  add_number(b, m->extra64 ? 0xffffffff : size + (unsigned)m->packed_off, 4);
  add_number(b, m->extra64 ? 0xffffffff : m->size ? m->size : size, 4);
  add_number(b, strlen(m->name), 2);
  add_number(b, m->extra64 ? 20 : 0, 2);
  add_number(b, 0, 2);
  add_number(b, (uint64_t)m->part, 2);
  add_number(b, 0, 6);
  add_number(b, begin + (unsigned)m->header_off, 4);
  add(b, m->name, strlen(m->name));
  if (!m->extra64) return;
  add_number(b, 1, 2);
  add_number(b, 16, 2);
  add_number(b, size, 8);
  add_number(b, size, 8);
}

static bytes archive(const member *members, int count) {
  bytes b = {0};
  size_t begins[8];
  for (int i = 0; i < count; i++) add_header(&b, &members[i], &begins[i]);
  size_t directory = b.size;
  for (int i = 0; i < count; i++) add_entry(&b, &members[i], begins[i]);
  size_t size = b.size - directory;
  add_number(&b, 0x06054b50, 4);
  add_number(&b, 0, 4);
  add_number(&b, (uint64_t)count, 2);
  add_number(&b, (uint64_t)count, 2);
  add_number(&b, size, 4);
  add_number(&b, directory, 4);
  add_number(&b, 0, 2);
  return b;
}
#define ARCHIVE(...) archive((const member[]){__VA_ARGS__}, sizeof((const member[]){__VA_ARGS__}) / sizeof(member))

typedef struct arrays {
  int count;
  char names[8][200];
  td_tensor *tensors[8];
} arrays;

static int take(void *owner, const char *name, td_tensor *t) {
  arrays *a = owner;
  snprintf(a->names[a->count], sizeof a->names[0], "%s", name);
  a->tensors[a->count++] = t;
  return TD_OK;
}

static void drop(arrays *a) {
  for (int i = 0; i < a->count; i++) td_tensor_unref(a->tensors[i]);
  a->count = 0;
}

static int load(const bytes *b, arrays *a) {
  *a = (arrays){0};
  save(b, "x.npz");
  return td_npz_load(context, "x.npz", NULL, take, a);
}

static void loads(bytes b, int count) {
  arrays a;
  ck_assert_msg(load(&b, &a) == TD_OK, "%s", context->error.message);
  ck_assert_int_eq(a.count, count);
  for (int i = 0; i < count; i++) ck_assert(a.tensors[i]->size == 3 && value(a.tensors[i], 2) == 3);
  drop(&a);
}

static void refuses(bytes b, const char *reason) {
  arrays a;
  refused(load(&b, &a), reason);
  drop(&a);
}

START_TEST(good_archives) {
  loads(ARCHIVE({.name = "a.npy"}, {.name = "b/c.npy"}), 2);
  loads(ARCHIVE({.name = "a.npy", .extra64 = 1}, {.name = "b.npy"}), 2); // sizes of 0xFFFFFFFF in a small file
  loads(ARCHIVE({.name = "a.npy", .later = 1}), 1);
  loads(ARCHIVE({.name = "a.npy", .later = 1, .extra64 = 1}), 1);
  loads(ARCHIVE({.name = "folder/", .content = ""}, {.name = "folder/..a.npy"}), 1);
  loads(archive(NULL, 0), 0);
  bytes b = ARCHIVE({.name = "a.npy"});
  b.data[b.size - 2] = 5;
  add(&b, "hello", 5); // a comment
  loads(b, 1);
}
END_TEST

START_TEST(refused_archives) {
  refuses((bytes){0}, "there is no end record");
  refuses((bytes){.size = 100}, "there is no end record");
  refuses(ARCHIVE({.name = "../a.npy"}), "leads out of the archive's folder");
  refuses(ARCHIVE({.name = "a/../../b.npy"}), "leads out");
  refuses(ARCHIVE({.name = "a\\..\\b.npy"}), "leads out");
  refuses(ARCHIVE({.name = "/etc/a.npy"}), "leads out");
  refuses(ARCHIVE({.name = "C:a.npy"}), "leads out");
  refuses(ARCHIVE({.name = "a.npy", .flags = 1}), "it is encrypted");
  refuses(ARCHIVE({.name = "a.npy", .flags = 0x2000}), "it is encrypted");
  refuses(ARCHIVE({.name = "a.npy", .part = 1}), "in several parts");
  refuses(ARCHIVE({.name = "a.npy", .method = 12}), "neither stored nor deflated");
  refuses(ARCHIVE({.name = "a.npy"}, {.name = "a.npy"}), "the name comes twice");
  refuses(ARCHIVE({.name = "a.npy", .other_name = "b.npy"}), "its header has another name");
  refuses(ARCHIVE({.name = "a.npy", .crc_off = 1}), "the checksum is wrong");
  refuses(ARCHIVE({.name = "a.npy", .size = 5}), "stored, and two sizes");
  refuses(ARCHIVE({.name = "a.npy", .packed_off = 1000000}), "two sizes");
  refuses(ARCHIVE({.name = "a.npy"}, {.name = "b.npy", .header_off = 1}), "its header is not where");
  refuses(ARCHIVE({.name = "a.npy"}, {.name = "b.npy", .header_off = -106}), "another name");
  refuses(ARCHIVE({.name = "a.txt", .content = "text"}), "is no .npy file");
  refuses(ARCHIVE({.name = "a.npy", .content = "text"}), "'x.npz': 'a.npy': byte 4: the file ends within");
  bytes b = ARCHIVE({.name = "a.npy"});
  b.data[b.size - 22 + 4] = 1;
  refuses(b, "in several parts");
  b = ARCHIVE({.name = "a.npy"});
  b.data[b.size - 22 + 8] = b.data[b.size - 22 + 10] = 200;
  refuses(b, "more than the directory has room for");
  b = ARCHIVE({.name = "a.npy"});
  b.data[b.size - 22 + 16]++;
  refuses(b, "the directory is to be");
}
END_TEST

#ifdef HAVE_ZLIB
START_TEST(refused_packings) {
  refuses(ARCHIVE({.name = "a.npy", .method = 8, .size = 4000000000u}), "a zip bomb");
  refuses(ARCHIVE({.name = "a.npy", .method = 8, .size = 100, .content = "not deflated at all"}), "member 'a.npy': ");
}
END_TEST

START_TEST(deflated) { // there, back, and spoiled: a checksum tells
  td_tensor *t = td_tensor_zeros(context, TD_FLOAT64, 2, (const int64_t[]){200, 300});
  for (int64_t i = 0; i < t->size; i++) ((double *)t->data)[i] = (double)(i % 7);
  td_npz_entry entries[] = {{"x", t}, {"y", t}};
  ck_assert_int_eq(td_npz_save(context, "y.npz", entries, 2, true), TD_OK);
  arrays a = {0};
  ck_assert_msg(td_npz_load(context, "y.npz", NULL, take, &a) == TD_OK, "%s", context->error.message);
  ck_assert(a.count == 2 && !strcmp(a.names[1], "y") && !memcmp(a.tensors[1]->data, t->data, 480000));
  drop(&a);
  bytes b;
  read_back("y.npz", &b);
  ck_assert_uint_lt(b.size, 20000);
  td_tensor_unref(t);
}
END_TEST
#endif

START_TEST(saved) {
  td_tensor *t = td_tensor_zeros(context, TD_BFLOAT16, 3, (const int64_t[]){2, 0, 3}),
            *u = td_tensor_from_int(context, 7, TD_UINT8);
  td_npz_entry entries[] = {{"x", t}, {"\xc3\xa9", u}};
  ck_assert_int_eq(td_npz_save(context, "y.npz", entries, 2, false), TD_OK);
  arrays a = {0};
  ck_assert_msg(td_npz_load(context, "y.npz", NULL, take, &a) == TD_OK, "%s", context->error.message);
  ck_assert(a.count == 2 && a.tensors[0]->dtype == TD_BFLOAT16 && a.tensors[0]->shape[2] == 3 &&
            value(a.tensors[1], 0) == 7 && !strcmp(a.names[1], "\xc3\xa9"));
  drop(&a);
  td_tensor_unref(t);
  td_tensor_unref(u);
}
END_TEST

static int load_spoiled(const char *path, bool *same) { // the same, or an array less, which no checksum tells
  arrays a = {0};
  int code = td_npz_load(context, path, NULL, take, &a);
  *same = true;
  for (int i = 0; i < a.count; i++)
    *same &= a.tensors[i]->size == 3 && value(a.tensors[i], 0) == 1 && value(a.tensors[i], 1) == 2 &&
             value(a.tensors[i], 2) == 3;
  drop(&a);
  return code;
}

START_TEST(spoiled) {
  const bytes b = ARCHIVE({.name = "a.npy"}, {.name = "b.npy", .extra64 = 1});
  cut_everywhere(&b, "x.npz", load_spoiled, false);
  set_everywhere(&b, "x.npz", load_spoiled, true);
}
END_TEST

#ifdef HAVE_ZLIB
START_TEST(spoiled_deflated) {
  td_tensor *t = td_tensor_zeros(context, TD_UINT8, 1, (const int64_t[]){3});
  memcpy(t->data, "\1\2\3", 3);
  ck_assert_int_eq(td_npz_save(context, "y.npz", &(td_npz_entry){"x", t}, 1, true), TD_OK);
  td_tensor_unref(t);
  bytes b;
  read_back("y.npz", &b);
  cut_everywhere(&b, "x.npz", load_spoiled, false);
  set_everywhere(&b, "x.npz", load_spoiled, true);
}
END_TEST
#endif

START_TEST(without_memory) {
  td_tensor *t = td_tensor_zeros(context, TD_UINT8, 1, (const int64_t[]){3});
  for (int64_t n = 1;; n++) {
    arrays a = {0};
    td_memory_fail(n, false);
    int code = td_npz_save(context, "y.npz", &(td_npz_entry){"x", t}, 1, true);
    if (!code) code = td_npz_load(context, "y.npz", NULL, take, &a);
    td_memory_fail(0, false);
    drop(&a);
    if (!code) break;
    ck_assert(code == TD_ERROR_MEMORY || code == TD_ERROR_STATE);
    if (code == TD_ERROR_STATE) break;
  }
  td_tensor_unref(t);
}
END_TEST

int main(void) {
  const char *const names[] = {"good",     "refused",  "saved",           "spoiled", "without_memory",
#ifdef HAVE_ZLIB
                               "packings", "deflated", "spoiled_deflated"
#endif
  };
  const TTest *const tests[] = {good_archives,    refused_archives, saved,           spoiled, without_memory,
#ifdef HAVE_ZLIB
                                refused_packings, deflated,         spoiled_deflated
#endif
  };
  return RUN_SUITE("engine/npz", names, tests);
}
