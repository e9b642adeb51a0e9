// How elementwise rows get their kernels: TD_MAP1/2/3 turn a scalar expression into loops over every dtype asked for and
// keep its text for the printers of fused code. (Filled in by the elementwise families.)
#ifndef TD_OPS_MAP_H
#define TD_OPS_MAP_H
#include "engine/ops/op.h"
#endif
