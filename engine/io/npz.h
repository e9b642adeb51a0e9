// NumPy's .npz files: zip archives of .npy files.
#ifndef TD_IO_NPZ_H
#define TD_IO_NPZ_H
#include "engine/io/input.h"

// Calls take with each array that wanted (NULL: all) says yes to, in the order of the archive's directory; name is the
// member's without its .npy and borrowed, the tensor a new reference that take owns; take returns a code, TD_OK to go
// on. Errors: those of zip.h and npy.h, and a member that is no .npy file.
int td_npz_load(td_context *context, const char *path, bool (*wanted)(void *owner, const char *name),
                int (*take)(void *owner, const char *name, td_tensor *t), void *owner);

typedef struct td_npz_entry {
  const char *name;
  td_tensor *tensor;
} td_npz_entry; // borrowed
int td_npz_save(td_context *context, const char *path, const td_npz_entry *entries, int64_t count,
                bool compressed); // atomic
#endif
