// gradcheck: gradients of tapes against central differences, in float64, to any order.
#ifndef TD_TAPE_CHECK_H
#define TD_TAPE_CHECK_H
#include "engine/tape/tape.h"

#define TD_CHECK_MAX TD_INPUT_MAX // inputs of a function, with the cotangents that higher orders add; also its outputs

// A function to check: fills out with new references and out_count. It must give the same for the same inputs; the
// context's random counter is set back before each call. A NULL input stands for None.
typedef int td_check_function(td_context *context, void *argument, td_tensor *const *in, int in_count, td_tensor **out,
                              int *out_count);

// Compares the gradient of the randomly weighted sum of f's floating outputs, in each element of each floating input,
// with (f(x + eps) - f(x - eps)) / (2 eps). order 2 does the same for the function that computes those gradients, in
// its inputs and its cotangents, and so on. Floating inputs must be float64. They differ when they are further apart
// than tolerance times the larger of both and 1: then TD_ERROR_GRADIENT is set and its message, appended to report as
// well (which may be NULL), names function, input, element and both numbers.
int td_gradient_check(td_context *context, const char *name, td_check_function *f, void *argument, td_tensor *const *in,
                      int in_count, double eps, double tolerance, int order, td_text *report);
#endif
