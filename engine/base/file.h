// The one owner of file calls: reading whole files and saving atomically. The n-th call can be made to fail with a
// chosen errno. A save writes a temporary file beside the target, syncs it and renames it, so that the old content or
// the new one is there, whole; mode bits are kept and links are followed.
#ifndef TD_BASE_FILE_H
#define TD_BASE_FILE_H
#include <stddef.h>
#include "engine/base/context.h"

// Reads a whole file of at most limit bytes. *bytes is owned by the caller (td_memory_free) and NUL-terminated beyond
// its end. Errors: TD_ERROR_FILE naming path and reason.
int td_file_read(td_context *context, const char *path, size_t limit, char **bytes, size_t *size);
// The same for the last limit bytes of a regular file of any size.
int td_file_read_end(td_context *context, const char *path, size_t limit, char **bytes, size_t *size);
int td_file_save(td_context *context, const char *path, const void *bytes, size_t size);   // atomic
int td_file_append(td_context *context, const char *path, const void *bytes, size_t size); // one write, made if absent
bool td_file_exists(const char *path);
void td_file_fail(int64_t nth, int error, bool forever); // the nth file call from now fails with errno error; 0 = off
#endif
