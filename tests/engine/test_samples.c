// Files as other programs write them (tests/files/samples, made by make_samples.py): each holds what expected.txt says,
// and those called bad_ are refused, with the byte.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/io/event_file.h"
#include "engine/io/idx.h"
#include "engine/io/npy.h"
#include "engine/io/npz.h"
#include "engine/io/png.h"
#include "engine/io/safetensors.h"
#include "tests/engine/files.h"

typedef struct wanted {
  const char *member;
  td_tensor *tensor;
} wanted;

static int take(void *owner, const char *name, td_tensor *t) {
  wanted *w = owner;
  if (strcmp(name, w->member)) td_tensor_unref(t);
  else w->tensor = t;
  return TD_OK;
}

static int load_npz(const char *path, wanted *w) { return td_npz_load(context, path, NULL, take, w); }
static int load_npy(const char *path, wanted *w) {
  return td_npy_load(context, path, &(td_npy_options){0}, &w->tensor);
}
static int load_idx(const char *path, wanted *w) { return td_idx_load(context, path, &w->tensor); }
static int load_png(const char *path, wanted *w) { return td_png_load(context, path, &w->tensor); }

static int load_safetensors(const char *path, wanted *w) {
  td_tensor_file file;
  int code = td_safetensors_load(context, path, false, &file);
  for (int64_t i = 0; i < file.count; i++)
    if (!strcmp(file.tensors[i].name, w->member)) w->tensor = td_tensor_ref(file.tensors[i].tensor);
  td_tensor_file_clear(&file);
  return code;
}

static int load_events(const char *path, wanted *w) {
  td_event_curves all;
  int code = td_event_curves_load(context, path, &all);
  for (int64_t i = 0; i < all.count; i++) {
    if (strcmp(all.curves[i].name, w->member)) continue;
    w->tensor = td_tensor_new(context, TD_FLOAT64, 1, &all.curves[i].count);
    for (int64_t k = 0; k < all.curves[i].count; k++) ((double *)w->tensor->data)[k] = all.curves[i].points[k].value;
  }
  td_event_curves_clear(&all);
  return code;
}

static const struct format {
  const char *part; // of the file's name
  int (*load)(const char *, wanted *);
} formats[] = {{".npy", load_npy},
               {".npz", load_npz},
               {".idx", load_idx},
               {".png", load_png},
               {".safetensors", load_safetensors},
               {"tfevents", load_events}};

static int load(const char *path, wanted *w) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (strstr(path, formats[i].part)) return formats[i].load(path, w);
  ck_abort_msg("%s: of no format", path);
}

static bool is_readable(const char *path) { // in this build
#ifndef HAVE_PNG
  if (strstr(path, ".png")) return false;
#endif
#ifndef HAVE_ZLIB
  if (strstr(path, ".gz") || strstr(path, "deflated") || strstr(path, "streamed")) return false;
#endif
  (void)path;
  return true;
}

static const char *folder(void) {
  static char path[PATH_MAX];
  const char *top = getenv("top_srcdir");
  snprintf(path, sizeof path, "%s/tests/files/samples", top ? top : ".");
  return path;
}

static void compare(const char *what, const td_tensor *t, char *shape, char **rest) {
  int rank = 0;
  int64_t sizes[TD_RANK_MAX] = {0};
  for (char *size = shape; strcmp(shape, "-") && size; size = strchr(size, 'x'), size += size != NULL)
    sizes[rank++] = strtoll(size, NULL, 10);
  ck_assert_msg(td_shape_equal(rank, sizes, t->rank, t->shape), "%s: another shape than %s", what, shape);
  for (int64_t i = 0; i < t->size; i++) {
    char *text = strtok_r(NULL, " ", rest);
    ck_assert_msg(text != NULL, "%s: %d elements are wanted", what, (int)i);
    double want = strtod(text, NULL), got = td_tensor_get_float(t, i);
    bool same = td_dtype_is_float(t->dtype) ? !memcmp(&want, &got, 8) || (want != want && got != got)
                                            : strtoll(text, NULL, 10) == td_tensor_get_int(t, i);
    ck_assert_msg(same, "%s: element %d is %.17g, not %s", what, (int)i, got, text);
  }
  ck_assert_msg(!strtok_r(NULL, " ", rest), "%s: more elements are wanted", what);
}

START_TEST(as_expected) {
  char path[PATH_MAX + 64], *line = NULL;
  size_t room = 0;
  int count = 0;
  snprintf(path, sizeof path, "%s/expected.txt", folder());
  FILE *list = fopen(path, "r");
  ck_assert_msg(list != NULL, "%s can't be opened", path);
  for (; getline(&line, &room, list) > 0; count++) {
    char *rest, *name = strtok_r(line, " \n", &rest), *member = strtok_r(NULL, " ", &rest),
                *dtype = strtok_r(NULL, " ", &rest), *shape = strtok_r(NULL, " \n", &rest);
    wanted w = {.member = member};
    rest[strcspn(rest, "\n")] = 0;
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    if (!is_readable(name)) continue;
    ck_assert_msg(load(path, &w) == TD_OK, "%s: %s", name, context->error.message);
    ck_assert_msg(w.tensor != NULL, "%s: no member %s", name, member);
    ck_assert_msg(!strcmp(td_dtype_name(w.tensor->dtype), dtype), "%s %s: %s, not %s", name, member,
                  td_dtype_name(w.tensor->dtype), dtype);
    compare(name, w.tensor, shape, &rest);
    td_tensor_unref(w.tensor);
  }
  free(line);
  fclose(list);
  ck_assert_int_gt(count, 100);
}
END_TEST

START_TEST(bad_ones) {
  char pattern[PATH_MAX + 16];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/bad_*", folder());
  ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    wanted w = {.member = "-"};
    if (!is_readable(found.gl_pathv[i])) continue;
    int code = load(found.gl_pathv[i], &w);
    ck_assert_msg(code == TD_ERROR_FILE, "%s: code %d", found.gl_pathv[i], code);
    ck_assert_msg(strstr(context->error.message, "byte "), "%s", context->error.message);
  }
  globfree(&found);
}
END_TEST

static bytes whole; // of the picture that is spoiled
static td_tensor *right; // what it holds

static int load_spoiled_png(const char *path, bool *same) {
  wanted w = {0};
  int code = load_png(path, &w);
  *same = code || (w.tensor->size == right->size && !memcmp(w.tensor->data, right->data, (size_t)right->size));
  td_tensor_unref(w.tensor);
  return code;
}

START_TEST(spoiled_pictures) { // every chunk has a checksum
  static const char *const names[] = {"png_3_4_clear.png", "png_6_8_interlaced.png", "png_gamma.png"};
  for (int i = 0; i < 3; i++) {
    char path[PATH_MAX + 64];
    wanted w = {0};
    snprintf(path, sizeof path, "%s/%s", folder(), names[i]);
    if (!is_readable(path)) return;
    ck_assert_int_eq(load_png(path, &w), TD_OK);
    right = w.tensor;
    read_back(path, &whole);
    cut_everywhere(&whole, "x.png", load_spoiled_png, false);
    set_everywhere(&whole, "x.png", load_spoiled_png, true);
    td_tensor_unref(right);
  }
}
END_TEST

START_TEST(pictures_without_memory) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/png_3_4_clear.png", folder());
  for (int64_t n = 1; is_readable(path); n++) {
    wanted w = {0};
    td_text out = {0};
    td_memory_fail(n, false);
    int code = load_png(path, &w);
    if (!code) code = td_png_encode(context, "save_png", w.tensor, &out);
    td_memory_fail(0, false);
    td_text_clear(&out);
    td_tensor_unref(w.tensor);
    if (!code) break;
    ck_assert_msg(code == TD_ERROR_MEMORY, "code %d: %s", code, context->error.message);
  }
}
END_TEST

int main(void) {
  const char *const names[] = {"expected", "bad", "spoiled_pictures", "without_memory"};
  const TTest *const tests[] = {as_expected, bad_ones, spoiled_pictures, pictures_without_memory};
  return RUN_SUITE("engine/samples", names, tests);
}
