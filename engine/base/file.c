// File calls. Every system call goes through a wrapper that can be told to fail and that starts again after a signal.
// A save never opens the target for writing: it writes ".NAME.tapedeck-PID-N" beside it, syncs, and renames. Such files
// of processes that are gone are removed by the next save of the same name. What is no regular file (a device, a pipe)
// is written straight.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "engine/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/map.h"
#include "engine/base/memory.h"

enum { NAME_KEPT = 200, LINKS_MAX = 40, INTERRUPTS_MAX = 100, FIRST_READ = 64 << 10 };

// ---- calls that can be made to fail ----

static _Atomic int64_t fail_left;
static atomic_int fail_error;
static atomic_bool fail_forever;

void td_file_fail(int64_t nth, int error, bool forever) {
  atomic_store(&fail_error, error);
  atomic_store(&fail_forever, forever);
  atomic_store(&fail_left, nth > 0 ? nth : 0);
}

static bool injected(void) { // sets errno when this call shall fail
  int64_t left = atomic_load(&fail_left), next;
  do {
    if (!left) return false;
    next = left > 1 ? left - 1 : atomic_load(&fail_forever);
  } while (!atomic_compare_exchange_weak(&fail_left, &left, next));
  if (left == 1) errno = atomic_load(&fail_error);
  return left == 1;
}

static bool again(int result, int *interrupts) {
  return result < 0 && errno == EINTR && ++*interrupts < INTERRUPTS_MAX;
}

static int call_open(const char *path, int flags, mode_t mode) {
  int fd, interrupts = 0;
  do fd = injected() ? -1 : open(path, flags | O_CLOEXEC, mode);
  while (again(fd, &interrupts));
  return fd;
}

static int call_stat(int fd, struct stat *status) { // file systems over a network can be interrupted in it
  int result, interrupts = 0;
  do result = injected() ? -1 : fstat(fd, status);
  while (again(result, &interrupts));
  return result;
}

static int call_lstat(const char *path, struct stat *status) { return injected() ? -1 : lstat(path, status); }

static ssize_t call_read(int fd, void *bytes, size_t size) {
  int interrupts = 0;
  ssize_t got;
  do got = injected() ? -1 : read(fd, bytes, size);
  while (again(got < 0 ? -1 : 0, &interrupts));
  return got;
}

static int call_write(int fd, const char *bytes, size_t size) { // all of it, or -1
  int interrupts = 0;
  while (size) {
    ssize_t done = injected() ? -1 : write(fd, bytes, size < SSIZE_MAX ? size : SSIZE_MAX);
    if (done < 0 && !again(-1, &interrupts)) return -1;
    if (done < 0) continue;
    bytes += done;
    size -= (size_t)done;
  }
  return 0;
}

static int call_sync(int fd) {
  int result, interrupts = 0;
  do result = injected() ? -1 : fsync(fd);
  while (again(result, &interrupts));
  return result;
}

static int call_lock(int fd, int operation) {
  int result, interrupts = 0;
  do result = injected() ? -1 : flock(fd, operation);
  while (again(result, &interrupts));
  return result;
}

static int call_close(int fd) { // the descriptor is gone in any case
  bool fails = injected();
  int error = errno, result = close(fd);
  if (fails) errno = error;
  return fails || (result < 0 && errno != EINTR) ? -1 : 0;
}

static int call_rename(const char *from, const char *to) { return injected() ? -1 : rename(from, to); }

// ---- errors ----

static int refuse(td_context *context, const char *verb, const char *path, int error) {
  if (error == EINTR && atomic_load(&context->interrupt))
    return td_error_set(context, TD_ERROR_INTERRUPT, "%s: '%s': interrupted", verb, path);
  td_error_set(context, TD_ERROR_FILE, "%s: '%s': %s", verb, path, strerror(error));
  if (error == ENOSPC || error == EDQUOT)
    td_error_hint(context, "free some space and save again; nothing is lost in memory");
  return TD_ERROR_FILE;
}

// ---- reading ----

static int refuse_size(td_context *context, const char *path, size_t limit) {
  return td_error_set(context, TD_ERROR_FILE, "read: '%s': larger than the %zu bytes that are accepted here", path,
                      limit);
}

static int read_all(td_context *context, int fd, const char *path, size_t expected, size_t limit, char **bytes,
                    size_t *size) {
  size_t capacity = (expected ? expected : FIRST_READ) + 1, used = 0; // one more, to see the end and to hold the NUL
  char *data = td_memory_new(capacity);
  while (data) {
    td_context_leave(context);
    ssize_t got = call_read(fd, data + used, capacity - used);
    td_context_enter(context);
    if (got < 0) {
      int error = errno;
      td_memory_free(data);
      return refuse(context, "read", path, error);
    }
    used += (size_t)got;
    if (used > limit) {
      td_memory_free(data);
      return refuse_size(context, path, limit);
    }
    if (!got) {
      data[used] = 0;
      *bytes = data;
      *size = used;
      return TD_OK;
    }
    if (used < capacity) continue;
    capacity *= 2;
    char *larger = td_memory_resize(data, capacity);
    if (!larger) td_memory_free(data);
    data = larger;
  }
  return td_error_memory(context, path, (int64_t)capacity);
}

int td_file_read(td_context *context, const char *path, size_t limit, char **bytes, size_t *size) {
  *bytes = NULL;
  *size = 0;
  int fd = call_open(path, O_RDONLY, 0);
  if (fd < 0) return refuse(context, "read", path, errno);
  struct stat status;
  int code;
  if (call_stat(fd, &status)) code = refuse(context, "read", path, errno);
  else if (S_ISDIR(status.st_mode)) code = refuse(context, "read", path, EISDIR);
  else if (S_ISREG(status.st_mode) && (uint64_t)status.st_size > limit) code = refuse_size(context, path, limit);
  else code = read_all(context, fd, path, S_ISREG(status.st_mode) ? (size_t)status.st_size : 0, limit, bytes, size);
  close(fd);
  return code;
}

int td_file_read_end(td_context *context, const char *path, size_t limit, char **bytes, size_t *size) {
  *bytes = NULL;
  *size = 0;
  int fd = call_open(path, O_RDONLY | O_NONBLOCK, 0); // a pipe without a writer is no reason to wait
  if (fd < 0) return refuse(context, "read", path, errno);
  struct stat status;
  int code;
  off_t from = 0;
  if (call_stat(fd, &status)) code = refuse(context, "read", path, errno);
  else if (!S_ISREG(status.st_mode)) code = refuse(context, "read", path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
  else {
    if ((uint64_t)status.st_size > limit) from = status.st_size - (off_t)limit;
    if (lseek(fd, from, SEEK_SET) < 0) code = refuse(context, "read", path, errno);
    else code = read_all(context, fd, path, (size_t)(status.st_size - from), SIZE_MAX, bytes, size);
  }
  close(fd);
  return code;
}

static int map_all(td_context *context, int fd, const char *who, const char *path, size_t bytes, char **out) {
  char *data = injected() ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return refuse(context, who, path, errno);
  *out = data;
  if (td_map_watch(data, bytes, &context->home->interrupt)) return TD_OK;
  *out = NULL;
  munmap(data, bytes);
  return td_error_set(context, TD_ERROR_FILE, "%s: '%s': too many files are mapped at once", who, path);
}

int td_file_map(td_context *context, const char *who, const char *path, char **bytes, size_t *size) {
  *bytes = NULL;
  *size = 0;
  int fd = call_open(path, O_RDONLY, 0);
  if (fd < 0) return refuse(context, who, path, errno);
  struct stat status;
  int code = TD_OK;
  if (call_stat(fd, &status)) code = refuse(context, who, path, errno);
  else if (S_ISDIR(status.st_mode)) code = refuse(context, who, path, EISDIR);
  else if (S_ISREG(status.st_mode) && status.st_size)
    code = map_all(context, fd, who, path, (size_t)status.st_size, bytes);
  if (*bytes) *size = (size_t)status.st_size;
  close(fd);
  return code;
}

bool td_file_look(const char *path, td_file_stamp *stamp) {
  struct stat status;
  if (injected() || stat(path, &status)) return false;
  *stamp = (td_file_stamp){status.st_dev, status.st_ino, (uint64_t)status.st_size,
                           status.st_mtim.tv_sec * (int64_t)1000000000 + status.st_mtim.tv_nsec};
  return true;
}

bool td_file_exists(const char *path) {
  struct stat status;
  return !stat(path, &status);
}

bool td_file_is_folder(const char *path) {
  struct stat status;
  return !stat(path, &status) && S_ISDIR(status.st_mode);
}

bool td_file_program_folder(char *folder, size_t size) {
  ssize_t length = readlink("/proc/self/exe", folder, size);
  if (length <= 0 || (size_t)length >= size) return false;
  folder[length] = 0;
  char *slash = strrchr(folder, '/');
  if (slash) *slash = 0;
  return slash != NULL;
}

// ---- saving ----

typedef struct target { // where a save goes, links followed
  char path[PATH_MAX], folder[PATH_MAX], name[NAME_MAX + 1], temporary[PATH_MAX];
  bool exists;
  struct stat status;
} target;

static int split(target *t) {
  const char *slash = strrchr(t->path, '/');
  const char *name = slash ? slash + 1 : t->path;
  if (!*name) return EISDIR;
  if (strlen(name) > NAME_MAX) return ENAMETOOLONG;
  memcpy(t->name, name, strlen(name) + 1);
  size_t length = slash == t->path ? 1 : slash ? (size_t)(slash - t->path) : 0;
  memcpy(t->folder, length ? t->path : ".", length ? length : 1);
  t->folder[length ? length : 1] = 0;
  return 0;
}

static int follow(target *t, const char *path) { // 0, or an errno
  if (strlen(path) >= sizeof t->path) return ENAMETOOLONG;
  memcpy(t->path, path, strlen(path) + 1);
  for (int links = 0; links < LINKS_MAX; links++) {
    int error = split(t);
    if (error) return error;
    t->exists = !call_lstat(t->path, &t->status);
    if (!t->exists) return errno == ENOENT ? 0 : errno;
    if (!S_ISLNK(t->status.st_mode)) return S_ISDIR(t->status.st_mode) ? EISDIR : 0;
    char link[PATH_MAX];
    ssize_t length = readlink(t->path, link, sizeof link - 1);
    if (length < 0) return errno;
    link[length] = 0;
    size_t before = link[0] == '/' ? 0 : strlen(t->path) - strlen(t->name);
    if (before + (size_t)length >= sizeof t->path) return ENAMETOOLONG;
    memcpy(t->path + before, link, (size_t)length + 1);
  }
  return ELOOP;
}

static void remove_leftovers(const target *t) { // temporary files of this name whose process is gone
  char start[NAME_KEPT + 32];
  int length = snprintf(start, sizeof start, ".%.*s.tapedeck-", NAME_KEPT, t->name);
  DIR *folder = opendir(t->folder);
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (strncmp(entry->d_name, start, (size_t)length)) continue;
    char *end;
    long process = strtol(entry->d_name + length, &end, 10);
    if (*end == '-' && process > 0 && process <= INT_MAX && kill((pid_t)process, 0) && errno == ESRCH)
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

static int temporary_open(target *t, int flags, mode_t mode) { // a file of our own beside the target
  static atomic_uint number;
  for (int tries = 0; tries < 100; tries++) {
    int length = snprintf(t->temporary, sizeof t->temporary, "%s/.%.*s.tapedeck-%ld-%u", t->folder, NAME_KEPT, t->name,
                          (long)getpid(), atomic_fetch_add(&number, 1));
    if (length >= (int)sizeof t->temporary) {
      errno = ENAMETOOLONG;
      return -1;
    }
    int fd = call_open(t->temporary, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

static int keep_owner_and_mode(int fd, const target *t) {
  if (!t->exists) return 0;
  if (t->status.st_uid != geteuid() || t->status.st_gid != getegid()) {
    if (fchown(fd, t->status.st_uid, t->status.st_gid))
      return errno == EPERM ? fchmod(fd, t->status.st_mode & 0777) : -1;
  }
  return injected() ? -1 : fchmod(fd, t->status.st_mode & 07777);
}

static int write_parts(int fd, const td_file_part *parts, int count) {
  for (int i = 0; i < count; i++)
    if (call_write(fd, parts[i].bytes, parts[i].size)) return -1;
  return 0;
}

static int write_straight(const target *t, const td_file_part *parts, int count) { // 0, or an errno
  int fd = call_open(t->path, O_WRONLY | O_NOCTTY, 0);
  if (fd < 0) return errno;
  int error = write_parts(fd, parts, count) ? errno : 0;
  if (call_close(fd) && !error) error = errno;
  return error;
}

static int write_temporary(target *t, const td_file_part *parts, int count) { // 0, or an errno and no file
  int fd = temporary_open(t, O_WRONLY, t->exists ? 0600 : 0666);
  if (fd < 0) return errno;
  int error = keep_owner_and_mode(fd, t) || write_parts(fd, parts, count) || call_sync(fd) ? errno : 0;
  if (call_close(fd) && !error) error = errno;
  if (error) unlink(t->temporary);
  return error;
}

// 0, or an errno and the old file is whole. *synced false: the new file is there but its name may be lost with power.
static int replace(target *t, const td_file_part *parts, int count, bool *synced) {
  int folder = call_open(t->folder, O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0 && errno != EACCES) return errno; // a folder that can't be listed may still be written
  int error = write_temporary(t, parts, count);
  if (!error && call_rename(t->temporary, t->path)) {
    error = errno;
    unlink(t->temporary);
  }
  if (folder < 0) return error;
  if (!error) *synced = !call_sync(folder) || errno == EINVAL;
  close(folder);
  return error;
}

static bool is_writable(const target *t) { return (t->status.st_mode & 0222) && !access(t->path, W_OK); }

int td_file_save(td_context *context, const char *path, const void *bytes, size_t size) {
  return td_file_save_parts(context, path, &(td_file_part){bytes, size}, 1);
}

int td_file_save_parts(td_context *context, const char *path, const td_file_part *parts, int count) {
  target *t = td_memory_new(sizeof *t);
  if (!t) return td_error_memory(context, path, (int64_t)sizeof *t);
  bool synced = true;
  int error = follow(t, path);
  if (!error && t->exists && !is_writable(t)) error = EACCES;
  if (!error && t->exists && !S_ISREG(t->status.st_mode)) {
    error = write_straight(t, parts, count);
  } else if (!error) {
    remove_leftovers(t);
    error = replace(t, parts, count, &synced);
  }
  td_memory_free(t);
  if (error) return refuse(context, "save", path, error);
  if (!synced && context->warn)
    context->warn(context->owner, "the file is saved, but its folder could not be synced to the disk");
  return TD_OK;
}

int td_file_append(td_context *context, const char *path, const void *bytes, size_t size) {
  int fd = call_open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, 0666);
  if (fd < 0) return refuse(context, "append", path, errno);
  int error = call_lock(fd, LOCK_EX) ? errno : 0;
  struct stat status;
  if (!error && call_stat(fd, &status)) error = errno;
  if (!error && call_write(fd, bytes, size)) {
    error = errno;
    if (S_ISREG(status.st_mode) && ftruncate(fd, status.st_size)) error = errno; // no half of what was to be added
  }
  if (call_close(fd) && !error) error = errno;
  return error ? refuse(context, "append", path, error) : TD_OK;
}

// ---- files held ----

struct td_file_held { int fd; char path[]; };

static int look_at(int fd, const char *path) { // 0: the file is the one there; else an errno
  struct stat held, there;
  if (call_stat(fd, &held) || call_lstat(path, &there)) return errno;
  return held.st_ino == there.st_ino && held.st_dev == there.st_dev ? 0 : ENOENT;
}

static int lock_alone(int fd) { // 0, or an errno; a file system without locks has nobody who holds one
  return !call_lock(fd, LOCK_EX | LOCK_NB) || errno == ENOLCK || errno == EOPNOTSUPP ? 0 : errno;
}

static int open_held(const char *path, int *fd) { // 0, or an errno
  for (int tries = 0; tries < 100; tries++) { // who held it may be removing it right now
    *fd = call_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
    if (*fd < 0) return errno;
    struct stat status;
    int error = call_stat(*fd, &status) ? errno : !S_ISREG(status.st_mode) ? EINVAL : lock_alone(*fd);
    if (!error) error = look_at(*fd, path);
    if (!error) return 0;
    close(*fd);
    if (error != ENOENT) return error;
  }
  return EAGAIN;
}

int td_file_hold(td_context *context, const char *path, td_file_held **out) {
  td_file_held *file = td_memory_new(sizeof *file + strlen(path) + 1);
  *out = NULL;
  if (!file) return td_error_memory(context, path, td_memory_failed());
  memcpy(file->path, path, strlen(path) + 1);
  int error = open_held(path, &file->fd);
  if (!error) *out = file;
  else td_memory_free(file);
  return error && error != EWOULDBLOCK ? refuse(context, "hold", path, error) : TD_OK;
}

int td_file_held_read(td_context *context, const td_file_held *file, size_t limit, char **bytes, size_t *size) {
  *bytes = NULL;
  *size = 0;
  if (lseek(file->fd, 0, SEEK_SET) < 0) return refuse(context, "read", file->path, errno);
  return read_all(context, file->fd, file->path, 0, limit, bytes, size);
}

int td_file_held_append(td_context *context, const td_file_held *file, const void *bytes, size_t size, bool sync) {
  struct stat status;
  int error = look_at(file->fd, file->path);
  if (!error && call_stat(file->fd, &status)) error = errno;
  if (error) return refuse(context, "append", file->path, error);
  if (call_write(file->fd, bytes, size) || (sync && call_sync(file->fd))) error = errno;
  if (error && ftruncate(file->fd, status.st_size)) error = errno; // no half of what was to be added
  return error ? refuse(context, "append", file->path, error) : TD_OK;
}

static int write_held(target *t, const void *bytes, size_t size, int *fd) { // 0, or an errno and no file
  *fd = temporary_open(t, O_RDWR | O_APPEND, 0600);
  if (*fd < 0) return errno;
  int error = lock_alone(*fd);
  if (!error && (call_write(*fd, bytes, size) || call_sync(*fd) || call_rename(t->temporary, t->path))) error = errno;
  if (!error) return 0;
  close(*fd);
  unlink(t->temporary);
  return error;
}

int td_file_held_replace(td_context *context, td_file_held *file, const void *bytes, size_t size) {
  target *t = td_memory_new_zero(sizeof *t);
  int fd = -1;
  if (!t) return td_error_memory(context, file->path, td_memory_failed());
  int error = strlen(file->path) < sizeof t->path ? 0 : ENAMETOOLONG;
  if (!error) {
    memcpy(t->path, file->path, strlen(file->path) + 1);
    error = split(t);
  }
  if (!error) remove_leftovers(t);
  if (!error) error = write_held(t, bytes, size, &fd);
  td_memory_free(t);
  if (error) return refuse(context, "replace", file->path, error);
  close(file->fd);
  file->fd = fd;
  return TD_OK;
}

void td_file_held_release(td_file_held *file, bool remove) {
  if (!file) return;
  if (remove && !look_at(file->fd, file->path)) unlink(file->path);
  close(file->fd);
  td_memory_free(file);
}

// ---- folders ----

int td_file_remove(td_context *context, const char *path) {
  return injected() || unlink(path) ? refuse(context, "remove", path, errno) : TD_OK;
}

static int make_one(char *path) { // 0, or an errno
  struct stat status;
  if (!injected() && (!mkdir(path, 0777) || (errno == EEXIST && !stat(path, &status) && S_ISDIR(status.st_mode))))
    return 0;
  return errno;
}

int td_file_make_folder(td_context *context, const char *path) {
  char *part = td_memory_text(path);
  if (!part) return td_error_memory(context, path, td_memory_failed());
  int error = make_one(part);
  for (char *slash = part; error == ENOENT && *part && (slash = strchr(slash + 1, '/'));) { // those above it first
    *slash = 0;
    error = make_one(part);
    *slash = '/';
    if (!error) error = ENOENT;
  }
  if (error == ENOENT) error = make_one(part);
  td_memory_free(part);
  return error ? refuse(context, "make", path, error) : TD_OK;
}

int td_file_list(td_context *context, const char *path, int (*visit)(void *owner, const char *name), void *owner) {
  DIR *folder = injected() ? NULL : opendir(path);
  if (!folder) return refuse(context, "list", path, errno);
  int code = TD_OK;
  for (struct dirent *entry; !code && (entry = readdir(folder));)
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) code = visit(owner, entry->d_name);
  closedir(folder);
  return code;
}
