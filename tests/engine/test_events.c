// Event files: the checksum, what is written byte by byte, reading back, resumed training, spoiled files.
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/io/event_file.h"
#include "tests/engine/files.h"

START_TEST(checksums) {
  ck_assert_uint_eq(td_crc32c("123456789", 9), 0xe3069283);
  ck_assert_uint_eq(td_crc_mask(0xe3069283), 0xc78ab0e5);
  ck_assert_uint_eq(td_crc32c("", 0), 0);
}
END_TEST

static td_event_writer *open_in(const char *folder) {
  td_event_writer *w;
  ck_assert_msg(td_event_writer_open(context, folder, &w) == TD_OK, "%s", context->error.message);
  return w;
}

static void clean(const char *folder) {
  DIR *open = opendir(folder);
  for (struct dirent *entry; open && (entry = readdir(open));) unlinkat(dirfd(open), entry->d_name, 0);
  if (open) closedir(open);
}

START_TEST(what_is_written) {
  clean("runs/a");
  td_event_writer *w = open_in("runs/a");
  ck_assert(!td_file_exists(td_event_writer_path(w)));
  ck_assert_int_eq(td_event_scalar(context, w, "loss", 300, 0.5), TD_OK);
  bytes b;
  read_back(td_event_writer_path(w), &b);
  ck_assert_int_eq(memcmp(b.data, "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09", 13), 0); // as TensorFlow's files begin
  ck_assert_int_eq(memcmp(b.data + 21,
                          "\x1a\x0d"
                          "brain.Event:2",
                          15),
                   0);
  const unsigned char *event = b.data + 12 + 24 + 4 + 12;
  ck_assert_int_eq(memcmp(event + 9, "\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f", 18), 0);
  td_event_writer_close(w);
}
END_TEST

static const td_event_curve *curve(const td_event_curves *all, const char *name) {
  for (int64_t i = 0; i < all->count; i++)
    if (!strcmp(all->curves[i].name, name)) return &all->curves[i];
  return NULL;
}

START_TEST(values_come_back) {
  clean("runs/b");
  const double values[] = {1, NAN, INFINITY, 2, -0.0};
  td_event_writer *w = open_in("runs/b");
  for (int i = 0; i < 5; i++) ck_assert_int_eq(td_event_scalar(context, w, "odd", i, values[i]), TD_OK);
  ck_assert_int_eq(td_event_scalar(context, w, "other", -7, 3), TD_OK);
  ck_assert_int_eq(td_event_text(context, w, "note", 1, "text", 4), TD_OK);
  td_tensor *t = td_tensor_zeros(context, TD_FLOAT32, 1, (const int64_t[]){0});
  ck_assert_int_eq(td_event_histogram(context, w, "none", 1, t), TD_OK);
  td_tensor_unref(t);
  td_event_curves all;
  ck_assert_int_eq(td_event_curves_load(context, td_event_writer_path(w), &all), TD_OK);
  ck_assert_int_eq(all.count, 2);
  const td_event_curve *odd = curve(&all, "odd"), *other = curve(&all, "other");
  ck_assert(odd->count == 5 && other->count == 1 && other->points[0].step == -7);
  for (int i = 0; i < 5; i++)
    ck_assert(odd->points[i].step == i && !memcmp(&odd->points[i].value, &values[i], 8 - (i == 1) * 8) &&
              odd->points[i].seconds > 1e9);
  ck_assert(isnan(odd->points[1].value));
  td_event_curves_clear(&all);
  td_event_writer_close(w);
}
END_TEST

START_TEST(resumed_training_makes_one_curve) {
  clean("runs/c");
  for (int part = 0; part < 2; part++) {
    td_event_writer *w = open_in("runs/c");
    for (int step = part * 60; step <= (part ? 120 : 100); step++) {
      ck_assert_int_eq(td_event_scalar(context, w, "loss", step, part), TD_OK);
      ck_assert_int_eq(td_event_scalar(context, w, "rate", step, part), TD_OK);
    }
    td_event_writer_close(w);
  }
  td_event_writer *w = open_in("runs/c"); // another name, from the start: it replaces nothing
  for (int step = 0; step < 5; step++) ck_assert_int_eq(td_event_scalar(context, w, "accuracy", step, 1), TD_OK);
  td_event_writer_close(w);
  td_event_curves all;
  ck_assert_int_eq(td_event_curves_load(context, "runs/c", &all), TD_OK);
  ck_assert_int_eq(all.count, 3);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(all.curves[i].count, 121);
    for (int k = 0; k <= 120; k++)
      ck_assert(all.curves[i].points[k].step == k && all.curves[i].points[k].value == (k >= 60));
  }
  ck_assert_int_eq(all.curves[2].count, 5);
  td_event_curves_clear(&all);
}
END_TEST

START_TEST(killed) { // all that was written is there
  clean("runs/d");
  int ready[2];
  ck_assert_int_eq(pipe(ready), 0);
  pid_t child = fork();
  if (!child) {
    td_event_writer *w = open_in("runs/d");
    for (int i = 0; i < 50; i++) td_event_scalar(context, w, "x", i, i);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte;
  ck_assert_int_eq(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  td_event_curves all;
  ck_assert_int_eq(td_event_curves_load(context, "runs/d", &all), TD_OK);
  ck_assert_int_eq(all.curves[0].count, 50);
  td_event_curves_clear(&all);
}
END_TEST

static int load_spoiled(const char *path, bool *same) { // same: no value other than those written
  td_event_curves all;
  int code = td_event_curves_load(context, path, &all);
  *same = true;
  for (int64_t i = 0; i < all.count; i++)
    for (int64_t k = 0; k < all.curves[i].count; k++)
      *same &= !strcmp(all.curves[i].name, "x") && all.curves[i].points[k].step == k + 1 &&
               all.curves[i].points[k].value == 0.5;
  td_event_curves_clear(&all);
  return code;
}

START_TEST(spoiled) {
  clean("runs/e");
  td_event_writer *w = open_in("runs/e");
  for (int i = 1; i < 4; i++) ck_assert_int_eq(td_event_scalar(context, w, "x", i, 0.5), TD_OK);
  bytes b;
  read_back(td_event_writer_path(w), &b);
  td_event_writer_close(w);
  cut_everywhere(&b, "x.tfevents", load_spoiled, true);
  set_everywhere(&b, "x.tfevents", load_spoiled, true);
  b.data[40 + 12 + 2]++; // in the second record
  save(&b, "x.tfevents");
  td_event_curves all;
  refused(td_event_curves_load(context, "x.tfevents", &all), "the record's checksum is wrong");
  save(&b, "runs/e/events.out.tfevents.1.x");
  w = open_in("runs/e"); // such a file keeps nobody from writing another
  td_event_writer_close(w);
}
END_TEST

static void add_framed(bytes *b, const char *message, size_t size) {
  unsigned char length[8] = {(unsigned char)size};
  add(b, length, 8);
  add_number(b, td_crc_mask(td_crc32c(length, 8)), 4);
  add(b, message, size);
  add_number(b, td_crc_mask(td_crc32c(message, size)), 4);
}

START_TEST(what_others_write) { // scalars as tensors, with the plugin's name
  bytes b = {0};
  static const char by_field[] =
      "\x10\x07\x2a\x1b\x0a\x19\x0a\x01t\x42\x07\x08\x01\x2d\0\0\0\x3f\x4a\x0b\x0a\x09\x0a\x07scalars";
  static const char packed[] =
      "\x10\x08\x2a\x17\x0a\x15\x0a\x01t\x42\x10\x08\x01\x12\0\x2a\x04\0\0\x80\x3f\x2a\x04\0\0\0\x40";
  static const char content[] = "\x10\x09\x2a\x15\x0a\x13\x0a\x01t\x42\x0e\x08\x02\x12\0\x22\x08\0\0\0\0\0\0\0\x40";
  static const char text[] = "\x10\x07\x2a\x17\x0a\x15\x0a\x01n\x42\x06\x08\x07\x42\x02hi\x4a\x08\x0a\x06\x0a\x04text";
  add_framed(&b, by_field, sizeof by_field - 1);
  add_framed(&b, packed, sizeof packed - 1);
  add_framed(&b, content, sizeof content - 1);
  add_framed(&b, text, sizeof text - 1);
  save(&b, "x.tfevents");
  td_event_curves all;
  ck_assert_msg(td_event_curves_load(context, "x.tfevents", &all) == TD_OK, "%s", context->error.message);
  ck_assert_int_eq(all.count, 1);
  const double want[] = {0.5, 2, 2};
  for (int i = 0; i < 3; i++)
    ck_assert(all.curves[0].points[i].step == 7 + i && all.curves[0].points[i].value == want[i]);
  td_event_curves_clear(&all);
  bytes broken = {0};
  add_framed(&broken, "\x2a\x7f", 2);
  save(&broken, "x.tfevents");
  refused(td_event_curves_load(context, "x.tfevents", &all), "byte 0: the record is no Event");
}
END_TEST

START_TEST(without_memory) {
  for (int64_t n = 1;; n++) {
    clean("runs/f");
    td_event_writer *w = NULL;
    td_event_curves all = {0};
    td_memory_fail(n, false);
    int code = td_event_writer_open(context, "runs/f", &w);
    if (!code) code = td_event_scalar(context, w, "x", 1, 1);
    if (!code) code = td_event_text(context, w, "y", 1, "z", 1);
    if (!code) code = td_event_curves_load(context, "runs/f", &all);
    td_memory_fail(0, false);
    td_event_curves_clear(&all);
    td_event_writer_close(w);
    if (!code) break;
    ck_assert_int_eq(code, TD_ERROR_MEMORY);
  }
}
END_TEST

int main(void) {
  const char *const names[] = {"checksums", "written", "come_back", "resumed",
                               "killed",    "spoiled", "others",    "without_memory"};
  const TTest *const tests[] = {checksums, what_is_written, values_come_back,  resumed_training_makes_one_curve,
                                killed,    spoiled,         what_others_write, without_memory};
  return RUN_SUITE("engine/events", names, tests);
}
