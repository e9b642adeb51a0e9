#include "engine/ops/spatial.h"

#include <string.h>

int td_spatial_rank(td_infer *infer, int n) {
  static const char *const layouts[] = {"[N, C, L]", "[N, C, H, W]", "[N, C, D, H, W]"};
  const td_meta *x = &infer->in[0];
  if (x->rank == n + 1 || x->rank == n + 2) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "%s must be %s, or one image without N; it has rank %d",
                           infer->op->params[0].name, layouts[n - 1], x->rank);
  if (x->rank == n) td_error_hint(infer->context, "expand_dims(x, 0) adds the channel axis");
  return code;
}

int td_spatial_range(td_infer *infer, const td_arg *arg, const char *name, int64_t lowest) {
  for (int i = 0; i < arg->count; i++) {
    int64_t number = arg->ints[i];
    if (number < lowest)
      return td_infer_fail(infer, TD_ERROR_VALUE, "%s must be at least %lld, not %lld", name, (long long)lowest,
                           (long long)number);
    if (number > TD_SPATIAL_MAX)
      return td_infer_fail(infer, TD_ERROR_VALUE, "%s is too large: %lld", name, (long long)number);
  }
  return TD_OK;
}

int td_spatial_check(td_infer *infer, const td_arg *arg, int n, const char *name, int64_t lowest) {
  if (!arg->given || arg->given == TD_GIVEN_CHOICE) return TD_OK;
  if (arg->count != 1 && arg->count != n)
    return td_infer_fail(infer, TD_ERROR_VALUE, "%s has %d numbers for %d axes", name, arg->count, n);
  return td_spatial_range(infer, arg, name, lowest);
}

int td_spatial_axes(const td_op *op) { return op->name[strlen(op->name) - 2] - '0'; }
