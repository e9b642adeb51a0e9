// How elementwise rows get their kernels. TD_MAP1/2/3 turn one scalar expression into a loop for each dtype of a list
// and keep its text for the printers of fused code. In an expression x, y, z are the operands, T is the type computed
// in and p, q, r the row's first arguments that are not tensors; the functions it may call are those of math.h and
// integer.h.
// td_map_run walks any strides: dimensions are merged, rows of plain elements go to the loop as they lie, others
// (strided, or of another dtype) through blocks that stay in the cache. Large results are cut into chunks of a fixed
// size for the pool, so the thread count never shows in a result.
#ifndef TD_OPS_MAP_H
#define TD_OPS_MAP_H
#include "engine/ops/op.h"

#ifndef TD_CLONES // config.h's: compiles a loop for several machines, the loader picks
#define TD_CLONES
#endif

// No element of a loop depends on another one; a result may lie where its operand lies.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" // loops that call the C library stay loops
#define TD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TD_INDEPENDENT _Pragma("GCC ivdep")
#endif

enum { TD_MAP_ARGUMENTS = 3 }; // p, q and r

// n results from operands that are plain arrays. Bit k of fixed: operand k is one number. One operand: fixed is 0. Two:
// one of them may be fixed. Three: the second and the third may be.
typedef void td_loop(int64_t n, void *out, const void *x, const void *y, const void *z, unsigned fixed,
                     const double arguments[TD_MAP_ARGUMENTS]);

enum td_compute {           // the dtype that a map computes in
  TD_COMPUTE_COMMON,        // what the operands promote to
  TD_COMPUTE_FLOATING,      // the same, but float32 where that is no floating dtype
  TD_COMPUTE_DOUBLE,        // float64
  TD_COMPUTE_TRUTH,         // bool: whether an operand is not 0
  TD_COMPUTE_SELECT,        // operand 0 is a condition (bool); the others as COMMON
};

typedef struct td_map {
  uint8_t inputs;           // 1 to 3
  uint8_t compute;          // enum td_compute
  td_loop *loops[TD_DTYPE_COUNT]; // by the dtype computed in; infer lets none through that is NULL
} td_map;

// Fills call->out[0] from the first map->inputs inputs, broadcast to its shape. argument is the expression's p.
// Never fails; the result is TD_OK so that a kernel can end with it.
int td_map_run(const td_call *call, const td_map *map, double argument);
int td_map_run_with(const td_call *call, const td_map *map, const double arguments[TD_MAP_ARGUMENTS]); // p, q and r

// Calls row for stretches of input 0 (n elements, stride bytes apart) that become neighbours of out[0], which has the
// same shape; in order, or from the pool.
typedef void td_row(void *owner, char *out, const char *in, int64_t stride, int64_t n);
void td_map_rows(const td_call *call, td_row *row, void *owner, bool parallel);

// Infer rules of elementwise rows: all inputs broadcast together.
int td_map_common(td_infer *infer);   // dtype: what the inputs promote to
int td_map_floating(td_infer *infer); // the same, float32 for integers and bool
int td_map_truth(td_infer *infer);    // bool
int td_map_number(td_infer *infer);   // as common; bool is an error: cast first
int td_map_integer(td_infer *infer);  // as common; floating dtypes are an error

// Row-major index of the first element of an integer or bool view that is 0 (negative: that is below 0); -1: none.
int64_t td_map_find(const td_view *view, bool negative);

// Casts n elements, stride bytes apart, to a plain array. False: a floating number does not fit the integer dtype; it
// is saturated there, NaN to 0. saturate: integers are clamped to the dtype's limits instead of wrapping. (cast.c)
bool td_cast_run(void *out, uint8_t to, const void *in, uint8_t from, int64_t stride, int64_t n, bool saturate);

// ---- lists of dtypes: X(dtype, C type, ...) ----
#define TD_EACH_DOUBLE(X, ...) X(FLOAT64, double, __VA_ARGS__)
#define TD_EACH_FLOAT(X, ...) X(FLOAT32, float, __VA_ARGS__) TD_EACH_DOUBLE(X, __VA_ARGS__)
#define TD_EACH_SIGNED(X, ...)                                                                                         \
  X(UINT8, uint8_t, __VA_ARGS__) X(INT32, int32_t, __VA_ARGS__) X(INT64, int64_t, __VA_ARGS__)
// Unsigned where overflow must wrap and the sign makes no difference.
#define TD_EACH_WRAPPING(X, ...)                                                                                       \
  X(UINT8, uint8_t, __VA_ARGS__) X(INT32, uint32_t, __VA_ARGS__) X(INT64, uint64_t, __VA_ARGS__)
#define TD_EACH_BOOL(X, ...) X(BOOL, _Bool, __VA_ARGS__)
#define TD_EACH_INTEGRAL(X, ...) TD_EACH_BOOL(X, __VA_ARGS__) TD_EACH_SIGNED(X, __VA_ARGS__)
#define TD_EACH_NUMBER(X, ...) TD_EACH_SIGNED(X, __VA_ARGS__) TD_EACH_FLOAT(X, __VA_ARGS__)
#define TD_EACH_NUMBER_WRAPPING(X, ...) TD_EACH_WRAPPING(X, __VA_ARGS__) TD_EACH_FLOAT(X, __VA_ARGS__)
#define TD_EACH_DTYPE(X, ...) TD_EACH_BOOL(X, __VA_ARGS__) TD_EACH_NUMBER(X, __VA_ARGS__)
#define TD_EACH_DTYPE_WRAPPING(X, ...) TD_EACH_BOOL(X, __VA_ARGS__) TD_EACH_NUMBER_WRAPPING(X, __VA_ARGS__)

// ---- loops ----
#define TD_LOOP_HEAD(NAME, TYPE, name)                                                                                 \
  TD_CLONES static void name##_loop_##NAME(int64_t n, void *out, const void *in_x, const void *in_y, const void *in_z, \
                                           unsigned fixed, const double arguments[TD_MAP_ARGUMENTS]) {                 \
    typedef TYPE T;                                                                                                    \
    const T p __attribute__((unused)) = (T)arguments[0], q __attribute__((unused)) = (T)arguments[1];                  \
    const T r __attribute__((unused)) = (T)arguments[2];                                                               \
    (void)in_y, (void)in_z, (void)fixed;
#define TD_LOOP_EACH TD_INDEPENDENT for (int64_t i = 0; i < n; i++)

// RESULT is the C type of the result (T, or uint8_t for bool).
#define TD_LOOP1(NAME, TYPE, name, RESULT, expression)                                                                 \
  TD_LOOP_HEAD(NAME, TYPE, name)                                                                                       \
  RESULT *result = out;                                                                                                \
  const T *at_x = in_x;                                                                                                \
  TD_LOOP_EACH {                                                                                                       \
    const T x = at_x[i];                                                                                               \
    result[i] = (RESULT)(expression);                                                                                  \
  }                                                                                                                    \
  }

#define TD_LOOP2(NAME, TYPE, name, RESULT, expression)                                                                 \
  TD_LOOP_HEAD(NAME, TYPE, name)                                                                                       \
  RESULT *result = out;                                                                                                \
  const T *at_x = in_x, *at_y = in_y;                                                                                  \
  if (!fixed) TD_LOOP_EACH {                                                                                           \
      const T x = at_x[i], y = at_y[i];                                                                                \
      result[i] = (RESULT)(expression);                                                                                \
    }                                                                                                                  \
  else if (fixed == 2) {                                                                                               \
    const T y = *at_y;                                                                                                 \
    TD_LOOP_EACH {                                                                                                     \
      const T x = at_x[i];                                                                                             \
      result[i] = (RESULT)(expression);                                                                                \
    }                                                                                                                  \
  } else {                                                                                                             \
    const T x = *at_x;                                                                                                 \
    TD_LOOP_EACH {                                                                                                     \
      const T y = at_y[i];                                                                                             \
      result[i] = (RESULT)(expression);                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  }

// The same for an expression that has a shorter form, near, with the same value where measure, an unsigned number, is
// below limit: blocks that are near throughout go through a loop of their own, others through rest.
enum { TD_NEAR_BLOCK = 1024 };
#define TD_NEAR_BLOCKS(operands, measure, limit, near, rest)                                                           \
  for (int64_t done = 0, end; done < n; done = end) {                                                                  \
    uint32_t largest = 0;                                                                                              \
    end = n - done < TD_NEAR_BLOCK ? n : done + TD_NEAR_BLOCK;                                                         \
    TD_INDEPENDENT for (int64_t i = done; i < end; i++) {                                                              \
      operands;                                                                                                        \
      const uint32_t one = measure;                                                                                    \
      largest = one > largest ? one : largest;                                                                         \
    }                                                                                                                  \
    if (largest < (limit)) {                                                                                           \
      TD_NEAR_LOOP(operands, near)                                                                                     \
    } else {                                                                                                           \
      rest                                                                                                             \
    }                                                                                                                  \
  }
#define TD_NEAR_LOOP(operands, expression)                                                                             \
  TD_INDEPENDENT for (int64_t i = done; i < end; i++) {                                                                \
    operands;                                                                                                          \
    result[i] = (expression);                                                                                          \
  }
#define TD_NEAR_BOTH(operands, measure, limit, near, expression)                                                       \
  TD_NEAR_BLOCKS(operands, measure, limit, near, TD_NEAR_LOOP(operands, expression))

#define TD_LOOP1_NEAR(NAME, TYPE, name, measure, limit, near, expression)                                              \
  TD_LOOP_HEAD(NAME, TYPE, name)                                                                                       \
  T *result = out;                                                                                                     \
  const T *at_x = in_x;                                                                                                \
  TD_NEAR_BOTH(const T x = at_x[i], measure, limit, near, expression)                                                  \
  }

#define TD_LOOP2_NEAR(NAME, TYPE, name, measure, limit, near, expression)                                              \
  TD_LOOP_HEAD(NAME, TYPE, name)                                                                                       \
  T *result = out;                                                                                                     \
  const T *at_x = in_x, *at_y = in_y;                                                                                  \
  if (fixed == 1) {                                                                                                    \
    const T x __attribute__((unused)) = *at_x;                                                                         \
    TD_NEAR_BOTH(const T y = at_y[i], measure, limit, near, expression)                                                \
  } else if (fixed == 2) {                                                                                             \
    const T y = *at_y;                                                                                                 \
    TD_NEAR_BOTH(const T x __attribute__((unused)) = at_x[i], measure, limit, near, expression)                        \
  } else {                                                                                                             \
    TD_NEAR_BOTH(const T x __attribute__((unused)) = at_x[i]; const T y = at_y[i], measure, limit, near, expression)   \
  }                                                                                                                    \
  }

// FIRST is the C type of the first operand (T, or uint8_t for a condition: loops over _Bool do not vectorise).
#define TD_LOOP3(NAME, TYPE, name, FIRST, expression)                                                                  \
  TD_LOOP_HEAD(NAME, TYPE, name)                                                                                       \
  T *result = out;                                                                                                     \
  const FIRST *at_x = in_x;                                                                                            \
  const T *at_y = in_y, *at_z = in_z;                                                                                  \
  if (!fixed) TD_LOOP_EACH {                                                                                           \
      const FIRST x = at_x[i];                                                                                         \
      const T y = at_y[i], z = at_z[i];                                                                                \
      result[i] = (T)(expression);                                                                                     \
    }                                                                                                                  \
  else if (fixed == 2) {                                                                                               \
    const T y = *at_y;                                                                                                 \
    TD_LOOP_EACH {                                                                                                     \
      const FIRST x = at_x[i];                                                                                         \
      const T z = at_z[i];                                                                                             \
      result[i] = (T)(expression);                                                                                     \
    }                                                                                                                  \
  } else if (fixed == 4) {                                                                                             \
    const T z = *at_z;                                                                                                 \
    TD_LOOP_EACH {                                                                                                     \
      const FIRST x = at_x[i];                                                                                         \
      const T y = at_y[i];                                                                                             \
      result[i] = (T)(expression);                                                                                     \
    }                                                                                                                  \
  } else {                                                                                                             \
    const T y = *at_y, z = *at_z;                                                                                      \
    TD_LOOP_EACH {                                                                                                     \
      const FIRST x = at_x[i];                                                                                         \
      result[i] = (T)(expression);                                                                                     \
    }                                                                                                                  \
  }                                                                                                                    \
  }

// ---- maps: name_loop_*, name_text and name_map from one expression ----
#define TD_MAP_ENTRY(NAME, TYPE, name, ...) [TD_##NAME] = name##_loop_##NAME,
#define TD_MAP_TABLE(EACH, name, count, rule)                                                                          \
  static const td_map name##_map = {                                                                                   \
    .inputs = count, .compute = TD_COMPUTE_##rule, .loops = { EACH(TD_MAP_ENTRY, name, ) }                             \
  };
#define TD_MAP1(EACH, name, rule, RESULT, expression)                                                                  \
  static const char name##_text[] = #expression;                                                                       \
  EACH(TD_LOOP1, name, RESULT, expression)                                                                             \
  TD_MAP_TABLE(EACH, name, 1, rule)
#define TD_MAP2(EACH, name, rule, RESULT, expression)                                                                  \
  static const char name##_text[] = #expression;                                                                       \
  EACH(TD_LOOP2, name, RESULT, expression)                                                                             \
  TD_MAP_TABLE(EACH, name, 2, rule)
#define TD_MAP3(EACH, name, rule, FIRST, expression)                                                                   \
  static const char name##_text[] = #expression;                                                                       \
  EACH(TD_LOOP3, name, FIRST, expression)                                                                              \
  TD_MAP_TABLE(EACH, name, 3, rule)

// With a shorter form of the expression for float32 that is near.
#define TD_MAP1_NEAR(name, measure, limit, near, expression)                                                           \
  static const char name##_text[] = #expression;                                                                       \
  TD_LOOP1_NEAR(FLOAT32, float, name, measure, limit, near, expression)                                                \
  TD_LOOP1(FLOAT64, double, name, T, expression)                                                                       \
  TD_MAP_TABLE(TD_EACH_FLOAT, name, 1, FLOATING)
#define TD_MAP2_NEAR(name, measure, limit, near, expression)                                                           \
  static const char name##_text[] = #expression;                                                                       \
  TD_LOOP2_NEAR(FLOAT32, float, name, measure, limit, near, expression)                                                \
  TD_LOOP2(FLOAT64, double, name, T, expression)                                                                       \
  TD_MAP_TABLE(TD_EACH_FLOAT, name, 2, FLOATING)

// A kernel that does nothing else than run its map.
#define TD_KERNEL(name)                                                                                                \
  static int name##_kernel(const td_call *call) { return td_map_run(call, &name##_map, 0); }

// ---- shorthands of rows ----
#define TD_TENSOR_PARAM(text) { .name = text, .kind = TD_PARAM_TENSOR }
#define TD_X TD_TENSOR_PARAM("x")
#define TD_XY TD_TENSOR_PARAM("x"), TD_TENSOR_PARAM("y")
#define TD_SAMPLES (const td_sample[])
#define TD_SAMPLES_END { .shapes = NULL }
#endif
