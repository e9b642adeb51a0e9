// cast: from any dtype to any other. float16 and bfloat16 go through float32, and to them through a float32 that was
// rounded to odd, so that no value is rounded twice. A floating number that an integer dtype can't hold is an error
// with its place, unless the caller wants it saturated; integers wrap into narrower ones.
#include <math.h>
#include <string.h>
#include "engine/ops/families.h"
#include "engine/ops/map.h"

enum { BLOCK = 512 }; // elements converted in two steps at a time

// ---- loops ----

// n elements, stride bytes apart. False: some number did not fit and was saturated.
typedef bool cast_loop(void *out, const void *in, int64_t stride, int64_t n);

#define CAST_HEAD(FROM, from_type, TO, to_type)                                                                        \
  TD_CLONES static bool cast_##FROM##_##TO(void *out, const void *in, int64_t stride, int64_t n) {                     \
    to_type *r = out;                                                                                                  \
    const from_type *x = in;                                                                                           \
    int64_t step = stride / (int64_t)sizeof *x;
// One loop for neighbours, one for the rest.
#define CAST_EACH(statement)                                                                                           \
  if (step == 1) {                                                                                                     \
    TD_INDEPENDENT for (int64_t i = 0, at = 0; i < n; i++, at++) { statement }                                         \
  } else {                                                                                                             \
    for (int64_t i = 0, at = 0; i < n; i++, at += step) { statement }                                                  \
  }

#define CAST_PLAIN(FROM, from_type, TO, to_type)                                                                       \
  CAST_HEAD(FROM, from_type, TO, to_type)                                                                              \
  CAST_EACH(r[i] = (to_type)x[at];)                                                                                    \
  return true;                                                                                                         \
  }
#define CAST_TRUTH(FROM, from_type)                                                                                    \
  CAST_HEAD(FROM, from_type, BOOL, uint8_t)                                                                            \
  CAST_EACH(r[i] = x[at] != 0;)                                                                                        \
  return true;                                                                                                         \
  }
// low and beyond are exact in both floating types: what truncates into the dtype lies between low - 1 and beyond. NaN
// is 0.
#define CAST_CHECKED(FROM, from_type, TO, to_type, below, low, beyond, high)                                           \
  CAST_HEAD(FROM, from_type, TO, to_type)                                                                              \
  int bad = 0;                                                                                                         \
  CAST_EACH(from_type v = x[at]; int fits = (v below) & (v < (from_type)beyond); bad |= !fits;                         \
            to_type edge = v > 0 ? high : v < 0 ? low : 0; from_type held = fits ? v : 0;                              \
            r[i] = fits ? (to_type)held : edge;)                                                                       \
  return !bad;                                                                                                         \
  }

#define CAST_FROM_INTEGRAL(X, ...)                                                                                     \
  X(BOOL, uint8_t, __VA_ARGS__)                                                                                        \
  X(UINT8, uint8_t, __VA_ARGS__) X(INT32, int32_t, __VA_ARGS__) X(INT64, int64_t, __VA_ARGS__)
#define CAST_FROM_FLOAT(X, ...) X(FLOAT32, float, __VA_ARGS__) X(FLOAT64, double, __VA_ARGS__)

CAST_FROM_INTEGRAL(CAST_PLAIN, UINT8, uint8_t)
CAST_FROM_INTEGRAL(CAST_PLAIN, INT32, int32_t)
CAST_FROM_INTEGRAL(CAST_PLAIN, INT64, int64_t)
CAST_FROM_INTEGRAL(CAST_PLAIN, FLOAT32, float)
CAST_FROM_INTEGRAL(CAST_PLAIN, FLOAT64, double)
CAST_FROM_FLOAT(CAST_PLAIN, FLOAT32, float)
CAST_FROM_FLOAT(CAST_PLAIN, FLOAT64, double)
CAST_FROM_FLOAT(CAST_CHECKED, UINT8, uint8_t, > -1, 0, 256, UINT8_MAX)
CAST_CHECKED(FLOAT32, float, INT32, int32_t, >= -0x1p31f, INT32_MIN, 0x1p31, INT32_MAX)
CAST_CHECKED(FLOAT64, double, INT32, int32_t, > -0x1p31 - 1, INT32_MIN, 0x1p31, INT32_MAX)
CAST_FROM_FLOAT(CAST_CHECKED, INT64, int64_t, >= -0x1p63, INT64_MIN, 0x1p63, INT64_MAX)
CAST_TRUTH(BOOL, uint8_t)
CAST_TRUTH(UINT8, uint8_t)
CAST_TRUTH(INT32, int32_t)
CAST_TRUTH(INT64, int64_t)
CAST_TRUTH(FLOAT32, float)
CAST_TRUTH(FLOAT64, double)

#define CAST_ROW(FROM)                                                                                                 \
  [TD_##FROM] = { [TD_BOOL] = cast_##FROM##_BOOL,       [TD_UINT8] = cast_##FROM##_UINT8,                              \
                  [TD_INT32] = cast_##FROM##_INT32,     [TD_INT64] = cast_##FROM##_INT64,                              \
                  [TD_FLOAT32] = cast_##FROM##_FLOAT32, [TD_FLOAT64] = cast_##FROM##_FLOAT64 },
static cast_loop *const loops[TD_DTYPE_COUNT][TD_DTYPE_COUNT] = {
  CAST_ROW(BOOL) CAST_ROW(UINT8) CAST_ROW(INT32) CAST_ROW(INT64) CAST_ROW(FLOAT32) CAST_ROW(FLOAT64)
};

// ---- half floats ----

// To float32 with the last bit set when the value is not exact: a later rounding to fewer bits is then right.
static float to_odd(double value) {
  float near = (float)value;
  if ((double)near == value || !isfinite(near)) return near;
  uint32_t bits;
  memcpy(&bits, &near, sizeof bits);
  if (fabs((double)near) > fabs(value)) bits--;
  bits |= 1;
  memcpy(&near, &bits, sizeof near);
  return near;
}

static void half_narrow(uint16_t *out, uint8_t to, const double *in, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    float value = to_odd(in[i]);
    out[i] = to == TD_FLOAT16 ? td_half_from_float(value) : td_bfloat_from_float(value);
  }
}

static void half_widen(float *out, uint8_t from, const char *in, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint16_t bits;
    memcpy(&bits, in + i * stride, sizeof bits);
    out[i] = from == TD_FLOAT16 ? td_half_to_float(bits) : td_bfloat_to_float(bits);
  }
}

static void run_narrow(uint16_t *out, uint8_t to, const void *in, uint8_t from, int64_t stride, int64_t n) {
  double twice[BLOCK];
  loops[from][TD_FLOAT64](twice, in, stride, n);
  half_narrow(out, to, twice, n);
}

// One block of at most BLOCK elements.
static bool run_half(void *out, uint8_t to, const void *in, uint8_t from, int64_t stride, int64_t n) {
  if (!td_dtype_is_half(from)) return run_narrow(out, to, in, from, stride, n), true;
  float wide[BLOCK];
  half_widen(wide, from, in, stride, n);
  if (td_dtype_is_half(to)) return run_narrow(out, to, wide, TD_FLOAT32, sizeof *wide, n), true;
  return loops[TD_FLOAT32][to](out, wide, sizeof *wide, n);
}

// ---- clamping of integers ----

static void run_clamp(void *out, uint8_t to, const void *in, uint8_t from, int64_t stride, int64_t n) {
  int64_t wide[BLOCK];
  loops[from][TD_INT64](wide, in, stride, n);
  int64_t low = to == TD_INT32 ? INT32_MIN : 0, high = to == TD_INT32 ? INT32_MAX : UINT8_MAX;
  for (int64_t i = 0; i < n; i++) wide[i] = wide[i] < low ? low : wide[i] > high ? high : wide[i];
  loops[TD_INT64][to](out, wide, sizeof *wide, n);
}

// ---- running ----

bool td_cast_run(void *out, uint8_t to, const void *in, uint8_t from, int64_t stride, int64_t n, bool saturate) {
  bool half = td_dtype_is_half(from) || td_dtype_is_half(to);
  bool between = td_dtype_category(from) == 1 && td_dtype_category(to) == 1;
  bool clamps = saturate && between && td_dtype_bytes(to) < td_dtype_bytes(from);
  if (!half && !clamps) return loops[from][to](out, in, stride, n);
  bool fits = true;
  for (int64_t done = 0; done < n; done += BLOCK) {
    int64_t count = n - done < BLOCK ? n - done : BLOCK;
    char *block = (char *)out + done * td_dtype_bytes(to);
    const char *source = (const char *)in + done * stride;
    if (clamps) run_clamp(block, to, source, from, stride, count);
    else fits &= run_half(block, to, source, from, stride, count);
  }
  return fits;
}

typedef struct cast_task {
  uint8_t from, to;
  bool saturate;
  atomic_bool bad;
} cast_task;

static void cast_row(void *owner, char *out, const char *in, int64_t stride, int64_t n) {
  cast_task *task = owner;
  if (!td_cast_run(out, task->to, in, task->from, stride, n, task->saturate))
    atomic_store_explicit(&task->bad, true, memory_order_relaxed);
}

typedef struct first_bad {
  int64_t index;   // of the elements seen so far
  double value;
  bool found;
  cast_task *task;
} first_bad;

static void find_row(void *owner, char *out, const char *in, int64_t stride, int64_t n) {
  first_bad *first = owner;
  const cast_task *task = first->task;
  for (int64_t i = 0; i < n && !first->found; i++, first->index++) {
    const char *element = in + i * stride;
    first->found = !td_cast_run(out + i * td_dtype_bytes(task->to), task->to, element, task->from, 0, 1, false);
    if (!first->found) continue;
    td_cast_run(&first->value, TD_FLOAT64, element, task->from, 0, 1, false);
    return;
  }
}

static int cast_fail(const td_call *call, cast_task *task) {
  first_bad first = { .task = task };
  td_map_rows(call, find_row, &first, false);
  const td_view *in = &call->in[0];
  int64_t index[TD_RANK_MAX], rest = first.index;
  td_text place = { 0 };
  for (int d = in->rank - 1; d >= 0; d--) {
    index[d] = rest % in->shape[d];
    rest /= in->shape[d];
  }
  td_shape_print(&place, in->rank, index);
  char number[TD_NUMBER_TEXT];
  td_number_print(number, first.value);
  if (in->rank == 0)
    td_error_set(call->context, TD_ERROR_VALUE, "cast: %s can't hold %s", td_dtype_name(task->to), number);
  else
    td_error_set(call->context, TD_ERROR_VALUE, "cast: element %s is %s, which %s can't hold",
                 place.data ? place.data : "", number, td_dtype_name(task->to));
  td_error_hint(call->context, "saturate=True clamps to the limits of %s and makes NaN 0", td_dtype_name(task->to));
  td_text_clear(&place);
  return TD_ERROR_VALUE;
}

static int cast_kernel(const td_call *call) {
  cast_task task = { .from = call->in[0].dtype, .to = call->out[0].dtype, .saturate = call->args[1].i != 0 };
  td_map_rows(call, cast_row, &task, true);
  return !task.bad || task.saturate ? TD_OK : cast_fail(call, &task);
}

// ---- the row ----

static int cast_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = (uint8_t)infer->args[0].i;
  return TD_OK;
}

static int cast_vjp(td_rule *rule) {
  if (td_dtype_is_float(rule->out_meta[0].dtype))
    rule->din[0] = td_cast(&rule->scope, rule->cotangent[0], rule->in_meta[0].dtype);
  return TD_OK;
}

static const td_op cast_op = {
  .name = "cast",
  .params = { TD_X,
              { .name = "dtype", .kind = TD_PARAM_DTYPE, .required = true },
              { .name = "saturate", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) } },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_LINEAR | TD_HALF,
  .infer = cast_infer,
  .kernel = cast_kernel,
  .vjp = cast_vjp,
  .doc = "x with its elements converted to dtype.\n"
         "Gradient: the cotangent cast back to x's dtype; none through integers and bool.\n"
         "Floating numbers are truncated into integers; one that does not fit, or NaN, is an error unless\n"
         "saturate=True, which clamps to the dtype's limits and makes NaN 0. Integers wrap into narrower ones.\n"
         "A number is True as bool where it is not 0.",
  .example = "cast(tensor([1.7, -1.7]), int32).tolist()  # [1, -1]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .args = "dtype=float64", .low = -2, .high = 2 },
    { .shapes = "-", .args = "dtype=int32", .low = 1.2, .high = 1.8 },
    { .shapes = "0,3", .args = "dtype=bool", .low = -2, .high = 2 },
    { .shapes = "2,3", .args = "dtype=float32", .low = -9, .high = 9, .dtypes = "int64" },
    TD_SAMPLES_END,
  },
};

td_tensor *td_cast(td_scope *s, td_tensor *x, uint8_t dtype) {
  td_arg args[] = { TD_INT_DEFAULT(dtype), TD_INT_DEFAULT(0) };
  return x && x->dtype == dtype ? x : td_scope_apply(s, &cast_op, args, 1, x);
}

const td_op *const td_family_cast[] = { &cast_op, NULL };
