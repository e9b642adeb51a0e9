// Losses that are a function of one element of each input, averaged, summed or as they are. A row has the arguments
// reduction and broadcast, wherever they stand; an input named weight multiplies each element's loss, the others are
// the operands of its map, in order.
#ifndef TD_OPS_POINTWISE_H
#define TD_OPS_POINTWISE_H
#include "engine/ops/map.h"

enum { TD_LOSS_MEAN, TD_LOSS_SUM, TD_LOSS_NONE, TD_LOSS_BATCHMEAN }; // indices of td_loss_reductions
extern const char *const td_loss_reductions[]; // "mean", "sum", "none"

#define TD_REDUCTION_PARAM                                                                  \
  {                                                                                         \
    .name = "reduction", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(TD_LOSS_MEAN), \
    .choices = td_loss_reductions                                                           \
  }
#define TD_BROADCAST_PARAM \
  { .name = "broadcast", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }
#define TD_WEIGHT_PARAM \
  { .name = "weight", .kind = TD_PARAM_TENSOR_OPTIONAL }

// The map of a loss: its expression in the operands x, y, z and the argument p, for each floating dtype.
#define TD_LOSS2(name, expression)             \
  TD_EACH_FLOAT(TD_LOOP2, name, T, expression) \
  TD_MAP_TABLE(TD_EACH_FLOAT, name, 2, FLOATING)
#define TD_LOSS3(name, expression)             \
  TD_EACH_FLOAT(TD_LOOP3, name, T, expression) \
  TD_MAP_TABLE(TD_EACH_FLOAT, name, 3, FLOATING)

// The first two inputs must have one shape, unless broadcast; the others must broadcast to it.
int td_pointwise_infer(td_infer *infer);
int64_t td_pointwise_workspace(const td_call *call);
int td_pointwise_run(const td_call *call, const td_map *map, double argument); // argument is the expressions' p
// After a run whose map gives NaN for numbers of an input outside of [low, high]: an error names the first one.
int td_pointwise_check(const td_call *call, int input, double low, double high, const char *what);

// Parts of gradients.
int td_pointwise_reduction(const td_rule *rule);
td_tensor *td_pointwise_cotangent(td_rule *rule); // of each element's loss; broadcasts against the inputs
td_tensor *td_pointwise_cotangents(td_rule *rule); // the same in the shape of the inputs together
// The loss of each element with another target, without weight; others: with the inputs behind the first two.
td_tensor *td_pointwise_elements(td_rule *rule, td_tensor *target, bool others);
// Of a gradient that is z times a slope: the derivative in z for its cotangent, by the op at z = 1.
td_tensor *td_pointwise_slope(td_rule *rule);
#endif
