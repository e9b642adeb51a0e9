// Ops with their right answers, one line each. A tensor is written as nested lists behind its dtype ("i64 [[1, 2], [3,
// 4]]", float64 when none is named), or as an empty shape ("f32 {0, 5}"); tensors are separated by ";"; an input may be
// "none".
#ifndef TESTS_ENGINE_CASES_H
#define TESTS_ENGINE_CASES_H
#include <check.h>
#include "engine/base/memory.h"
#include "tests/engine/samples.h"

typedef struct op_case {
  const char *op, *inputs, *args; // args as in samples; NULL: defaults
  const char *expected; // outputs; a dtype is compared where it is named. "!SHAPE: text": this error, with text in it
  const char *gradient; // of the sum of the first output, in each floating input; NULL: not looked at
} op_case;

extern td_context *context, *wide; // of one thread and of three
extern char warning[400]; // the last one heard; empty: none

td_tensor *read_tensor(const char **text); // up to ";" or the end; new reference
void expect_tensor(const char *what, const td_tensor *t,
                   const char *expected); // shape, dtype when named, numbers within 2e-7
void run_case(const op_case *c); // on both contexts, bits compared
int cases_run(const char *name, const op_case *cases, int count, const TTest *const *tests,
              int test_count); // main's result
#endif
