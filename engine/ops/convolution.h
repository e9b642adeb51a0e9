// What rows and kernels of convolutions share. All of them are three maps that are each other's derivatives: y from x
// and w, x from y and w (the adjoint: conv_transpose), w from x and y. Private to the family.
#ifndef TD_OPS_CONVOLUTION_H
#define TD_OPS_CONVOLUTION_H
#include "engine/ops/flat.h"

// y [images, groups * outputs, out] = convolution of x [images, groups * inputs, in] by w [groups * outputs, inputs,
// kernel]; axes are depth, height, width, those that are missing have size 1. padding stands before the first element.
typedef struct td_convolution {
  uint8_t dtype; // float32 or float64: of everything
  int64_t images, groups, inputs, outputs;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} td_convolution;

// Bytes of workspace, and the maps. Operands are row-major; bias, one number for each channel of the result, may be
// NULL. The results are overwritten.
int64_t td_convolution_workspace(const td_pool *pool, const td_convolution *v, bool adjoint);
void td_convolution_run(td_pool *pool, const td_convolution *v, bool adjoint, const char *source, const char *weights,
                        const char *bias, char *out, void *workspace);
int64_t td_convolution_weight_workspace(const td_pool *pool, const td_convolution *v);
void td_convolution_weight_run(td_pool *pool, const td_convolution *v, const char *x, const char *y, char *weights,
                               void *workspace);
#endif
