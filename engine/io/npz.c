// .npz files: each member is read as a .npy file where it lies, or where it was unpacked.
#include "engine/io/npz.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/io/npy.h"
#include "engine/io/zip.h"

typedef struct reader {
  bool (*wanted)(void *, const char *);
  int (*take)(void *, const char *, td_tensor *);
  void *owner;
} reader;

static int read_array(td_zip *zip, int64_t i, td_tensor **out) {
  char *owned;
  td_input in = zip->in;
  int code = td_zip_read(zip, i, &in.bytes, &owned);
  if (code) return code;
  in.member = zip->members[i].name;
  in.size = zip->members[i].size;
  code = td_npy_parse(&in, out);
  td_memory_free(owned);
  return code;
}

static int load_member(td_zip *zip, int64_t i, const reader *r) {
  char *name = zip->members[i].name;
  size_t length = strlen(name);
  if (name[length - 1] == '/') return TD_OK; // a folder
  bool is_array = length >= 5 && !strcmp(name + length - 4, ".npy");
  if (is_array) name[length - 4] = 0;
  bool wanted = !r->wanted || r->wanted(r->owner, name);
  if (is_array) name[length - 4] = '.';
  if (!wanted) return TD_OK;
  if (!is_array) return td_input_refuse(&zip->in, zip->members[i].header, "member '%.80s' is no .npy file", name);
  td_tensor *t;
  int code = read_array(zip, i, &t);
  if (code && !r->wanted && zip->count > 1) td_error_hint(zip->in.context, "names=[...] loads some of the arrays only");
  if (code) return code;
  name[length - 4] = 0;
  return r->take(r->owner, name, t);
}

int td_npz_load(td_context *context, const char *path, bool (*wanted)(void *owner, const char *name),
                int (*take)(void *owner, const char *name, td_tensor *t), void *owner) {
  td_zip zip;
  const reader r = {wanted, take, owner};
  int code = td_zip_open(context, "load_npz", path, &zip);
  for (int64_t i = 0; !code && i < zip.count; i++) code = load_member(&zip, i, &r);
  if (!code) code = td_input_check(&zip.in);
  td_zip_close(&zip);
  return code;
}

typedef struct work { // what a member is made of
  td_text name, header;
  td_tensor *whole;
} work;

static int prepare(td_context *context, const td_npz_entry *from, work *w, td_zip_entry *to) {
  w->whole = td_tensor_contiguous(context, from->tensor);
  if (!w->whole) return context->error.code;
  td_text_print(&w->name, "%s.npy", from->name);
  td_npy_header(w->whole, &w->header);
  if (w->name.failed || w->header.failed) return td_error_memory(context, "save_npz", td_memory_failed());
  size_t bytes = (size_t)w->whole->size * (size_t)td_dtype_bytes(w->whole->dtype);
  *to = (td_zip_entry){w->name.data, {{w->header.data, w->header.length}, {w->whole->data, bytes}}};
  return TD_OK;
}

int td_npz_save(td_context *context, const char *path, const td_npz_entry *entries, int64_t count, bool compressed) {
  work *works = td_memory_new_zero((size_t)(count + 1) * sizeof *works);
  td_zip_entry *members = td_memory_new((size_t)(count + 1) * sizeof *members);
  int code = works && members ? TD_OK : td_error_memory(context, "save_npz", td_memory_failed());
  for (int64_t i = 0; !code && i < count; i++) code = prepare(context, &entries[i], &works[i], &members[i]);
  if (!code) code = td_zip_save(context, "save_npz", path, members, count, compressed);
  for (int64_t i = 0; works && i < count; i++) {
    td_tensor_unref(works[i].whole);
    td_text_clear(&works[i].name);
    td_text_clear(&works[i].header);
  }
  td_memory_free(works);
  td_memory_free(members);
  return code;
}
