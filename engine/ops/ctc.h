// What ctc_loss and its gradient made of ops share.
#ifndef TD_OPS_CTC_H
#define TD_OPS_CTC_H
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

enum { TD_CTC_SCORES, TD_CTC_TARGETS, TD_CTC_TIMES, TD_CTC_LABELS, TD_CTC_COTANGENT }; // inputs

td_tensor *td_ctc_gradient(td_rule *rule, int reduction, int64_t blank); // in log_probs, by ops alone
extern const td_op td_ctc_loss_gradient;
#endif
