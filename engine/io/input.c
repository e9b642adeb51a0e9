// Opening what is read, and saying what is wrong with it.
#include "engine/io/input.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "engine/base/file.h"
#include "engine/base/map.h"
#include "engine/base/memory.h"

enum { MAPPED_FROM = 1 << 20 }; // bytes; below, a copy costs less than a mapping

int td_input_open(td_input *in, td_context *context, const char *who, const char *path) {
  *in = (td_input){.context = context, .who = who, .path = path};
  int code = td_file_map(context, who, path, &in->mapped, &in->size);
  if (code) return code;
  if (in->mapped && in->size < MAPPED_FROM) {
    td_map_drop(in->mapped, in->size);
    in->mapped = NULL;
  }
  if (!in->mapped) code = td_file_read(context, path, SIZE_MAX / 4, &in->owned, &in->size);
  in->bytes = (const uint8_t *)(in->mapped ? in->mapped : in->owned);
  return code;
}

int td_input_check(const td_input *in) {
  if (!in->mapped || !td_map_damaged(in->mapped)) return TD_OK;
  td_map_lost();
  atomic_store(&in->context->interrupt, 0);
  return td_error_set(in->context, TD_ERROR_FILE, "%s: '%s': the file became shorter while it was read", in->who,
                      in->path);
}

void td_input_forget(const td_input *in) {
  if (in->mapped) madvise(in->mapped, in->size, MADV_DONTNEED);
}

void td_input_close(td_input *in) {
  if (in->mapped) td_map_drop(in->mapped, in->size);
  td_memory_free(in->owned);
  in->mapped = in->owned = NULL;
  in->bytes = NULL;
}

static void drop_mapping(td_storage *storage) { td_map_drop(storage->data, (size_t)storage->bytes); }

td_storage *td_input_storage(td_input *in) {
  td_storage *storage = td_memory_new(sizeof *storage);
  if (!storage) {
    td_error_memory(in->context, in->who, (int64_t)sizeof *storage);
    return NULL;
  }
  *storage = (td_storage){.bytes = (int64_t)in->size, .data = in->mapped, .release = drop_mapping};
  atomic_init(&storage->refs, 1);
  in->mapped = NULL;
  return storage;
}

// Bytes of the file come into reasons: none of them may steer a terminal.
static void make_visible(char *text) {
  for (unsigned char *c = (unsigned char *)text; *c; c++) {
    bool is_control = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; // of C1
    if (is_control) c[1] = '?';
    if (is_control || *c < 32 || *c == 127) *c = '?';
  }
}

int td_input_refuse(const td_input *in, uint64_t byte, const char *format, ...) {
  char reason[320];
  va_list list;
  va_start(list, format);
  vsnprintf(reason, sizeof reason, format, list);
  va_end(list);
  make_visible(reason);
  if (!in->member)
    return td_error_set(in->context, TD_ERROR_FILE, "%s: '%s': byte %llu: %s", in->who, in->path,
                        (unsigned long long)byte, reason);
  return td_error_set(in->context, TD_ERROR_FILE, "%s: '%s': '%s': byte %llu: %s", in->who, in->path, in->member,
                      (unsigned long long)byte, reason);
}
