// Contractions: products of tensors whose axes have labels, summed over the labels that the result lacks. einsum,
// tensordot, inner, outer, kron and others say which axis has which label; how it is computed is the same for all.
#ifndef TD_OPS_CONTRACT_H
#define TD_OPS_CONTRACT_H
#include "engine/ops/op.h"

enum { TD_LABELS_MAX = 52 }; // as many as there are letters

typedef struct td_contraction {
  int count; // operands
  int rank[TD_INPUT_MAX];
  uint8_t labels[TD_INPUT_MAX][TD_RANK_MAX]; // of each axis, below label_count. Twice in an operand: its diagonal
  int label_count;
  char names[TD_LABELS_MAX]; // of the labels, in messages
  int64_t size[TD_LABELS_MAX]; // of each label; an operand's axis has this size, or 1 and broadcasts
  int out_rank;
  uint8_t out[TD_RANK_MAX]; // each label once
} td_contraction;

enum { TD_PROBLEM_TEXT = 200 };
// Sets size from the operands' shapes. False: axes with one label have different sizes, says problem.
bool td_contraction_sizes(td_contraction *c, const td_meta *in, char problem[TD_PROBLEM_TEXT]);
uint8_t td_contraction_dtype(const td_infer *infer);
int64_t td_contraction_workspace(const td_call *call, const td_contraction *c);
int td_contraction_run(const td_call *call, const td_contraction *c);
void td_call_metas(const td_call *call, td_meta *metas); // of the inputs
// The gradient in each operand: a contraction of the cotangent, in the shape of c's result, with the others, by einsum.
int td_contraction_vjp(td_rule *rule, const td_contraction *c, td_tensor *cotangent);
#endif
