// Temporaries of rules, and the helpers that infer rules share.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"

void td_scope_open(td_scope *scope, td_context *context) {
  scope->context = context;
  scope->failed = false;
  scope->count = 0;
  scope->capacity = (int)(sizeof scope->first / sizeof *scope->first);
  scope->owned = scope->first;
}

void td_scope_close(td_scope *scope) {
  for (int i = 0; i < scope->count; i++) td_tensor_unref(scope->owned[i]);
  if (scope->owned != scope->first) td_memory_free(scope->owned);
  scope->owned = scope->first;
  scope->count = 0;
}

static bool scope_grow(td_scope *scope) {
  size_t bytes = (size_t)scope->capacity * 2 * sizeof *scope->owned;
  td_tensor **grown = scope->owned == scope->first ? td_memory_new(bytes) : td_memory_resize(scope->owned, bytes);
  if (!grown) {
    td_error_memory(scope->context, "a gradient's temporaries", (int64_t)bytes);
    return false;
  }
  if (scope->owned == scope->first) memcpy(grown, scope->first, (size_t)scope->count * sizeof *grown);
  scope->owned = grown;
  scope->capacity *= 2;
  return true;
}

td_tensor *td_scope_own(td_scope *scope, td_tensor *t) {
  if (!t) {
    scope->failed = true;
    return NULL;
  }
  if (scope->count == scope->capacity && !scope_grow(scope)) {
    scope->failed = true;
    td_tensor_unref(t);
    return NULL;
  }
  scope->owned[scope->count++] = t;
  return t;
}

td_tensor *td_scope_apply(td_scope *scope, const td_op *op, const td_arg *args, int count, ...) {
  td_tensor *in[TD_INPUT_MAX], *out[TD_OUTPUT_MAX];
  bool missing = scope->failed;
  va_list list;
  va_start(list, count);
  for (int i = 0; i < count; i++) {
    in[i] = va_arg(list, td_tensor *);
    if (!in[i]) missing = true;
  }
  va_end(list);
  if (missing || td_op_apply(scope->context, op, in, count, args, out) != TD_OK) {
    scope->failed = true;
    return NULL;
  }
  for (int i = td_op_outputs(op, out); --i > 0;) td_tensor_unref(out[i]);
  return td_scope_own(scope, out[0]);
}

td_tensor *td_scope_number(td_scope *scope, double value, const td_tensor *like) {
  if (!like) {
    scope->failed = true;
    return NULL;
  }
  return td_scope_own(scope, td_tensor_from_float(scope->context, value, like->dtype));
}

td_tensor *td_scope_filled(td_scope *scope, double value, const td_meta *like) {
  td_tensor *number = td_scope_own(scope, td_tensor_from_float(scope->context, value, like->dtype));
  if (!number) return NULL;
  const int64_t strides[TD_RANK_MAX] = {0};
  return td_scope_own(scope, td_tensor_view(scope->context, number, like->rank, like->shape, strides, 0));
}

static void operands_add(td_infer *infer) {
  const td_op *op = infer->op;
  bool one = op->params[0].kind == TD_PARAM_TENSORS, list = one || op->params[0].kind == TD_PARAM_TENSORS_SPREAD;
  int texts = 0; // arguments in front of the tensors
  for (int i = 0; i < TD_PARAM_MAX; i++) texts += td_op_goes_first(op, &op->params[i]);
  for (int i = 0; i < infer->in_count && i < 6; i++) {
    if (infer->in[i].rank > TD_RANK_MAX) continue;
    char name[40];
    if (list) snprintf(name, sizeof name, "%s[%d]", op->params[0].name, i);
    else snprintf(name, sizeof name, "%s", op->params[i].name);
    td_error_operand(infer->context, name, one ? -1 : texts + i, &infer->in[i]);
  }
}

int td_infer_fail(td_infer *infer, int code, const char *format, ...) {
  char message[sizeof infer->context->error.message];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  bool hidden = infer->op->flags & TD_HIDDEN; // users don't know its name: who calls it says what it is for
  td_error_set(infer->context, code, "%s%s%s", hidden ? "" : infer->op->name, hidden ? "" : ": ", message);
  operands_add(infer);
  return code;
}

bool td_meta_fits(const td_meta *from, const td_meta *to) {
  int64_t shape[TD_RANK_MAX];
  int rank;
  return from->rank <= to->rank &&
         td_shape_broadcast(from->rank, from->shape, to->rank, to->shape, &rank, shape, NULL) &&
         td_shape_equal(rank, shape, to->rank, to->shape);
}

void td_meta_misfit(td_text *text, const td_meta *from, const td_meta *to) {
  td_shape_print(text, from->rank, from->shape);
  td_text_add(text, " doesn't broadcast to ");
  td_shape_print(text, to->rank, to->shape);
}

int td_infer_fits(td_infer *infer, const char *what, const td_meta *from, const td_meta *to) {
  if (td_meta_fits(from, to)) return TD_OK;
  td_text text = {0};
  td_meta_misfit(&text, from, to);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "%s %s", what, text.data ? text.data : "");
  td_text_clear(&text);
  return code;
}

int td_infer_broadcast(td_infer *infer, int a, int b, td_meta *out) {
  const td_meta *left = &infer->in[a], *right = &infer->in[b];
  int rank, axis;
  if (td_shape_equal(left->rank, left->shape, right->rank, right->shape)) {
    out->rank = left->rank;
    td_axes_copy(out->shape, left->shape, left->rank);
    return TD_OK;
  }
  if (td_shape_broadcast(left->rank, left->shape, right->rank, right->shape, &rank, out->shape, &axis)) {
    out->rank = (uint8_t)rank;
    return TD_OK;
  }
  rank = left->rank > right->rank ? left->rank : right->rank;
  int64_t sizes[2] = {left->shape[axis - rank + left->rank], right->shape[axis - rank + right->rank]};
  td_text text = {0};
  td_text_add(&text, "shapes ");
  td_shape_print(&text, left->rank, left->shape);
  td_text_add(&text, " and ");
  td_shape_print(&text, right->rank, right->shape);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "%s don't broadcast: axis %d has %lld and %lld",
                           text.data ? text.data : "", axis, (long long)sizes[0], (long long)sizes[1]);
  td_text_clear(&text);
  return code;
}

static bool holds_axis(const td_arg *arg, uint8_t kind, int64_t axis) {
  if (!arg->given || (kind != TD_PARAM_AXIS && kind != TD_PARAM_AXES)) return false;
  if (kind == TD_PARAM_AXIS) return arg->i == axis;
  for (int i = 0; i < arg->count; i++)
    if (arg->ints[i] == axis) return true;
  return false;
}

// The argument that names an axis wrongly: arg where it is one of the call's, else the first that has it.
static const char *axis_argument(const td_infer *infer, const td_arg *arg, int64_t axis) {
  const td_param *params = infer->op->params + td_op_tensor_params(infer->op);
  for (int i = 0; i < td_op_arg_count(infer->op); i++) {
    const td_arg *own = &infer->args[i];
    if ((!arg || arg == own) && holds_axis(own, params[i].kind, axis))
      return strcmp(params[i].name, "axes") ? params[i].name : "axis";
  }
  return "axis";
}

static int fail_axis(td_infer *infer, const td_arg *arg, int64_t axis, int rank) {
  return td_infer_fail(infer, TD_ERROR_INDEX, "%s %lld is out of range for rank %d", axis_argument(infer, arg, axis),
                       (long long)axis, rank);
}

int td_infer_axis(td_infer *infer, int64_t axis, int rank, int *out) {
  if (axis < -rank || axis >= rank) return fail_axis(infer, NULL, axis, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return TD_OK;
}

int td_infer_written(td_infer *infer, const td_meta *x, const td_meta *value) {
  if (td_dtype_category(x->dtype) != 1 || !td_dtype_is_float(value->dtype)) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_DTYPE, "%s numbers are not written into %s", td_dtype_name(value->dtype),
                           td_dtype_name(x->dtype));
  td_error_hint(infer->context, "cast one of the two: astype(%s) drops the fractions", td_dtype_name(x->dtype));
  return code;
}

int td_infer_axes(td_infer *infer, const td_arg *axes, int rank, bool reduced[TD_RANK_MAX]) {
  for (int i = 0; i < TD_RANK_MAX; i++) reduced[i] = !axes->given && i < rank;
  for (int i = 0; axes->given && i < axes->count; i++) {
    int64_t axis = axes->ints[i];
    if (axis < -rank || axis >= rank) return fail_axis(infer, axes, axis, rank);
    bool *named = &reduced[axis < 0 ? axis + rank : axis];
    if (*named)
      return td_infer_fail(infer, TD_ERROR_VALUE, "%s %lld is named twice", axis_argument(infer, axes, axis),
                           (long long)(named - reduced));
    *named = true;
  }
  return TD_OK;
}
