// Numbers of a tensor in bounded time: of all elements, or of so many that stand evenly spaced.
#ifndef TD_TENSOR_PROBE_H
#define TD_TENSOR_PROBE_H
#include "engine/tensor/tensor.h"

typedef struct td_probe {
  int64_t count, step;             // elements 0, step, 2 step, ... in row-major order: count of them; step 1: all
  int64_t nans, infinities, zeros; // among them
  double squares;                  // sum over the finite ones
  double least, most, sum;         // of the finite ones; least > most: none is
} td_probe;

int64_t td_probe_step(const td_tensor *t, int64_t limit); // so that at most limit elements are taken
void td_probe_take(const td_tensor *t, int64_t limit, td_probe *sample); // t has a number in each place
void td_probe_values(const td_tensor *t, int64_t step, int64_t count, double *values);
double td_probe_norm(const td_tensor *t, const td_probe *sample); // Euclidean, of all elements: estimated when step > 1
// The same from a few elements, for where nobody may look: *exact, all were taken.
float td_probe_glance(const td_tensor *t, bool *exact);
#endif
