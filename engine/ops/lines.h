// Loops over one line of floats that softmax, its losses and logsumexp share.
#ifndef TD_OPS_LINES_H
#define TD_OPS_LINES_H
#include <stdint.h>

// The largest of n numbers, among those that are not NaN; -inf of none.
float td_single_largest(const float *x, int64_t n);
double td_twofold_largest(const double *x, int64_t n);
// Where the first of n numbers that is value stands; n - 1 where none before is.
int64_t td_single_first(const float *x, int64_t n, float value);
int64_t td_twofold_first(const double *x, int64_t n, double value);
// The sum of exp(x - shift) of all but the one at apart (none: -1), NaN where such an x is NaN; the exponentials are
// written to out unless it is NULL.
double td_single_exponentials(const float *restrict x, int64_t n, int64_t apart, float shift, float *restrict out);
double td_twofold_exponentials(const double *restrict x, int64_t n, int64_t apart, double shift, double *restrict out);
#endif
