// Errors are values: a code, a message, the operands involved, a hint and the place in the source that was running.
// Functions that can fail return a code (TD_OK is 0) and leave the error in the context that they were given.
#ifndef TD_BASE_ERROR_H
#define TD_BASE_ERROR_H
#include <stdint.h>

#define TD_RANK_MAX 8

// X(name, class in the language)
#define TD_ERRORS(X)                                                                                                   \
  X(SHAPE, "ValueError") X(DTYPE, "TypeError") X(INDEX, "IndexError") X(VALUE, "ValueError") X(TYPE, "TypeError")      \
  X(MEMORY, "MemoryError") X(FILE, "OSError") X(INTERRUPT, "KeyboardInterrupt") X(GRADIENT, "GradientError")           \
  X(STATE, "RuntimeError") X(OVERFLOW, "OverflowError") X(ZERO_DIVISION, "ZeroDivisionError")                          \
  X(INTERNAL, "SystemError")                                                                                           \
  X(CALLBACK, "RuntimeError") /* a function of the caller's failed, and the caller knows why */

enum td_code {
  TD_OK = 0,
#define X(name, class) TD_ERROR_##name,
  TD_ERRORS(X)
#undef X
};

// where in the source: (source id << 32) | byte offset; 0 = unknown. Only the language reads it
typedef uint64_t td_place;

typedef struct td_operand { // one row of the operand table in a message
  char name[40];            // argument's name; the language may replace it by the variable's name
  int32_t argument;         // its place in the call, a method's object being 0; -1 = none
  uint8_t dtype, rank;
  int64_t shape[TD_RANK_MAX];
} td_operand;

typedef struct td_error {
  int code;
  char message[480];        // "matmul: inner sizes differ: 784 and 512"; no final newline
  char hint[480];           // the remedy, or empty
  td_operand operands[6];
  int operand_count;
  td_place place;
} td_error;
#endif
