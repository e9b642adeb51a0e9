// Inputs of kernels as plain row-major arrays, for kernels that are no loop over elements: the view's own elements
// where they lie that way in the dtype wanted, else a copy in the kernel's workspace. td_flat owns its copy: for code
// that is no kernel.
#ifndef TD_OPS_FLAT_H
#define TD_OPS_FLAT_H
#include "engine/ops/op.h"

typedef struct td_flat {
  const char *data;
  void *owned; // NULL: data is the view's
} td_flat;

// Floats that an integer dtype can't hold become its nearest limit (NaN 0). Errors: TD_ERROR_MEMORY.
int td_flat_open(const td_call *call, const td_view *view, uint8_t dtype, td_flat *flat);
void td_flat_close(td_flat *flat);

// The same in a kernel's workspace: bytes that it takes, 0 where the view's own elements will do; then the elements.
int64_t td_flat_bytes(const td_view *view, uint8_t dtype);
const char *td_flat_fill(td_pool *pool, const td_view *view, uint8_t dtype, void *space);

// Parts of a workspace, each aligned to 64 bytes: *at moves on.
static inline int64_t td_space_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static inline void *td_space_take(char **at, int64_t bytes) {
  void *part = *at;
  *at += td_space_bytes(bytes);
  return part;
}

// A kernel's workspace, handed out in pieces. A row's workspace and its kernel run the same code over it: without bytes
// (at NULL) the pieces are NULL and only their sizes are counted.
typedef struct td_scratch {
  char *at;
  int64_t used; // never overflows: more than there is memory stays more than that
} td_scratch;
void *td_scratch_take(td_scratch *scratch, int64_t count,
                      int64_t bytes); // count items of so many bytes; 64-byte aligned
// The view's elements row-major in dtype: where they lie, or as a copy in the scratch. Numbers are cast as above.
const void *td_scratch_view(td_scratch *scratch, td_pool *pool, const td_view *view, uint8_t dtype);

// All inputs of a call so, each in dtype, at the start of its workspace: the bytes that they take there, a multiple of
// 64; then data[i] for each input, NULL for one that is not given. Returns what follows in the workspace.
int64_t td_inputs_bytes(const td_call *call, uint8_t dtype);
void *td_inputs_place(const td_call *call, uint8_t dtype, const char **data);

bool td_view_is_flat(const td_view *view); // row-major without gaps
void td_view_of(td_view *view, const td_tensor *t);
void td_view_permute(td_view *out, const td_view *view, const int *axes); // axes[view->rank]: out's axis i is axes[i]
void td_view_broadcast(td_view *out, const td_view *view, int rank, const int64_t *shape); // view's shape must fit

// Input 0 as row-major elements of result 0's dtype, where the result may be worked out in place: the input's own, or
// copied into the result, which has as many.
const char *td_view_bring(const td_call *call);

// Runs work over count items, cut so that a chunk holds about grain units of work when an item holds cost of them.
typedef void td_range(void *argument, int64_t first, int64_t last);
void td_ranges_run(td_pool *pool, int64_t count, int64_t cost, td_range *work, void *argument);

// Runs work over count items, each with bytes of scratch that no other item uses meanwhile. A row's workspace holds
// td_items_scratch bytes for it. An item's result may not depend on what its scratch holds.
typedef void td_item(void *argument, int64_t item, void *scratch);
int64_t td_items_scratch(const td_pool *pool, int64_t count, int64_t bytes);
void td_items_run(td_pool *pool, int64_t count, int64_t bytes, td_item *work, void *argument, void *workspace);

// NULL-safe arguments of builders.
#define TD_INT_ARG(n) \
  { .given = 1, .i = (n) }
#define TD_FLOAT_ARG(x) \
  { .given = 1, .f = (x) }
td_arg td_ints_arg(int count, const int64_t *numbers);
#endif
