// The kernels of normalization. Private to its family.
//  1. Every form is x as [batch, groups, channels, places]: standardized over channels and places of each batch and
//     group (layers, groups, instances), or over batch and places of each group (batches; channels is 1).
//  2. Weights and shifts belong to a group and channel.
//  3. Numbers are taken relative to the mean. Of float32 ones sums of few are float, those of sums double; all is
//     double where there are few numbers, or float can't hold their squares. A piece of work is cut by sizes alone.
#ifndef TD_OPS_NORMS_H
#define TD_OPS_NORMS_H
#include "engine/ops/flat.h"

typedef struct td_norm {
  uint8_t dtype; // float32 or float64: of everything
  int64_t batch, groups, channels, places;
  bool over_batch, centred; // centred: the mean is taken off
  double eps;
} td_norm;

// y = (x - mean) / sqrt(variance + eps) * w + b; w, b: one number for each group and channel, or NULL. mean, variance:
// NULL, or a place for each group; only over batches.
void td_norm_run(td_pool *pool, const td_norm *v, const char *x, const char *w, const char *b, char *y, double *mean,
                 double *variance);
// Gradients of x, w, b for the cotangent c of y.
void td_norm_adjoint_run(td_pool *pool, const td_norm *v, const char *x, const char *w, const char *c, char *dx,
                         char *dw, char *db, void *workspace);
int64_t td_norm_workspace(const td_norm *v); // of the gradients: bytes
#endif
