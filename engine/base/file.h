// The one owner of file calls: reading and mapping whole files, saving atomically, folders. The n-th call can be made
// to fail with a chosen errno. A save writes a temporary file beside the target, syncs it and renames it, so that the
// old content or the new one is there, whole; mode bits are kept and links are followed.
#ifndef TD_BASE_FILE_H
#define TD_BASE_FILE_H
#include <stddef.h>
#include "engine/base/context.h"

// Reads a whole file of at most limit bytes. *bytes is owned by the caller (td_memory_free) and NUL-terminated beyond
// its end. Errors: TD_ERROR_FILE naming path and reason.
int td_file_read(td_context *context, const char *path, size_t limit, char **bytes, size_t *size);
// The same for the last limit bytes of a regular file of any size.
int td_file_read_end(td_context *context, const char *path, size_t limit, char **bytes, size_t *size);
// A regular file's bytes, mapped and watched (map.h); the owner drops them by td_map_drop. An empty file, a pipe or a
// device can't be mapped: *bytes is NULL and the code TD_OK. An error's message begins with who.
int td_file_map(td_context *context, const char *who, const char *path, char **bytes, size_t *size);
int td_file_save(td_context *context, const char *path, const void *bytes, size_t size);   // atomic
typedef struct td_file_part { const void *bytes; size_t size; } td_file_part;
// The parts one behind the other, atomic.
int td_file_save_parts(td_context *context, const char *path, const td_file_part *parts, int count);
int td_file_append(td_context *context, const char *path, const void *bytes, size_t size); // one write, made if absent
// A regular file that this process alone appends to: a lock is on it until it is released or the process ends, however
// that comes. It is made if absent, for its owner's eyes; a link is refused. TD_OK with *out NULL: somebody else holds
// it.
typedef struct td_file_held td_file_held;
int td_file_hold(td_context *context, const char *path, td_file_held **out);
int td_file_held_read(td_context *context, const td_file_held *file, size_t limit, char **bytes, size_t *size);
// Whole or not at all; sync: it is on the disk then. An error, too, when the file was removed or replaced by others.
int td_file_held_append(td_context *context, const td_file_held *file, const void *bytes, size_t size, bool sync);
int td_file_held_replace(td_context *context, td_file_held *file, const void *bytes, size_t size); // atomic, synced
void td_file_held_release(td_file_held *file, bool remove); // NULL is allowed
// Which file is at a path, links followed, and in what state: another one there, or a write to it, is another stamp.
typedef struct td_file_stamp { uint64_t device, node, size; int64_t changed; } td_file_stamp; // nanoseconds
bool td_file_look(const char *path, td_file_stamp *stamp); // false: there is none, or it can't be seen
bool td_file_exists(const char *path);
bool td_file_is_folder(const char *path);
// The folder that the running program lies in, without links, of a size for PATH_MAX; false: the system doesn't tell.
bool td_file_program_folder(char *folder, size_t size);
int td_file_remove(td_context *context, const char *path);      // a file or a link; no folder
int td_file_make_folder(td_context *context, const char *path); // with those above it; one that is there is no error
// Calls visit with each name in a folder, without . and ..; stops where it returns a code other than TD_OK, and returns
// that.
int td_file_list(td_context *context, const char *path, int (*visit)(void *owner, const char *name), void *owner);
void td_file_fail(int64_t nth, int error, bool forever); // the nth file call from now fails with errno error; 0 = off
#endif
