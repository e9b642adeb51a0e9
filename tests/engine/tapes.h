// What the suites of tapes share: a context whose places are line numbers, tensors that are dropped at a test's end,
// and short names for what every test does. Each test leaves as many live bytes as it found.
#ifndef TESTS_ENGINE_TAPES_H
#define TESTS_ENGINE_TAPES_H
#include <check.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/tape.h"

extern td_context *context;
extern int warnings;       // heard since the test began
extern char warning[400];  // the last

td_tensor *keep(td_tensor *t);               // dropped at the end of the test; fails the test when NULL
void forget(void);                           // drops what was kept
td_tensor *number(double value);             // float32, 0-d
td_tensor *row(int count, const double *values); // float32[count]
#define ROW(...) row(sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})
td_tensor *apply(const char *name, td_tensor *a, td_tensor *b); // at the next line
td_tensor *multiply(td_tensor *a, td_tensor *b);
td_tensor *add(td_tensor *a, td_tensor *b);

td_tape *tape_on(bool persistent);           // an open tape
void watch(td_tape *tape, td_tensor *t);
void done(td_tape *tape);                    // drops it
td_variable *variable(double value, const char *name);
td_tensor *value_of(td_variable *v);         // read for use in an op
// td_tape_gradient of one in one
int ask(td_tape *tape, td_tensor *target, td_tensor *x, td_variable *v, td_tensor **gradient);
td_tensor *gradient(td_tape *tape, td_tensor *target, td_tensor *x);       // NULL: None
td_tensor *gradient_in(td_tape *tape, td_tensor *target, td_variable *v);  // NULL: None
double at(const td_tensor *t, int64_t index);
// both are in the answer
void expect_why(td_tape *tape, td_tensor *x, td_variable *v, const char *part, const char *other);

int tapes_run(const char *name, const TTest *const *tests, int count); // runs a suite on small stacks; main's result
#endif
