// The samples of op rows as calls: inputs drawn from their ranges, arguments read from "axis=1, keepdims=True".
#ifndef TESTS_ENGINE_SAMPLES_H
#define TESTS_ENGINE_SAMPLES_H
#include "engine/ops/op.h"

typedef struct sample_call {
  td_tensor *in[TD_INPUT_MAX]; // owned; NULL: not given
  bool symmetric[TD_INPUT_MAX]; // matrices that the sample calls so
  int in_count;
  td_arg args[TD_PARAM_MAX];
} sample_call;

enum sample_form {
  SAMPLE_PLAIN,    // contiguous
  SAMPLE_STRIDED,  // the same elements, every second of a wider storage, the first axis backwards
  SAMPLE_EMPTY,    // all axes of size 0
  SAMPLE_SCALAR,   // all inputs 0-d
};

// Ends with a message in problem when the sample's text is wrong. dtype -1: as the sample says; else that of every
// floating input.
bool sample_make(td_context *context, const td_op *op, const td_sample *sample, enum sample_form form, int dtype,
                 sample_call *call, char problem[200]);
// The values of op's arguments, by a text such as "axis=1, keepdims=True"; those that it doesn't name have their
// defaults.
bool sample_arguments(const td_op *op, const char *text, td_arg *args, char problem[200]);
void sample_drop(sample_call *call);
int sample_run(td_context *context, const td_op *op, const sample_call *call, td_tensor **out); // td_op_apply
// "sample 2,3; 3 | axis=1", as reference values name it
void sample_title(const td_sample *sample, char *title, size_t size);
// The cotangent that the reference values give to output n of a call: fixed numbers of out's shape and dtype. NULL when
// the call has no gradient in that output (or no memory). New reference.
td_tensor *sample_cotangent(td_context *context, const td_op *op, const sample_call *call, int n, const td_tensor *out);
#endif
