// Recurrent layers and ctc_loss: hand-made values, masks, wrong shapes, large layers on any number of threads.
#include <math.h>
#include <string.h>
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"rnn_layer", "[[[1]], [[2]]]; [[1]]; [[1]]", "nonlinearity=\"relu\"", "[[[1]], [[3]]]; [[3]]; [[[1]], [[3]]]",
     "[[[2]], [[1]]]; [[4]]; [[1]]"},
    {"rnn_layer", "[[[1]], [[2]]]; [[1]]; [[1]]", "nonlinearity=\"relu\", reverse=True",
     "[[[3]], [[2]]]; [[3]]; [[[3]], [[2]]]", "[[[1]], [[2]]]; [[5]]; [[2]]"},
    // Padded steps leave the state alone, whatever the bias.
    {"rnn_layer", "[[[7]], [[8]], [[5]]]; [[1]]; [[1]]; [1]; [0]; [[0]]; bool [[0], [0], [1]]", "nonlinearity=\"relu\"",
     "[[[0]], [[0]], [[6]]]; [[6]]; [[[0]], [[0]], [[6]]]", "[[[0]], [[0]], [[1]]]; [[5]]; [[0]]; [1]; [1]; [[3]]"},
    {"rnn_layer", "[[[5]], [[7]]]; [[1]]; [[1]]; [1]; [0]; [[2]]; bool [[1], [0]]", "nonlinearity=\"relu\"",
     "[[[8]], [[8]]]; [[8]]; [[[8]], [[0]]]", NULL},
    {"rnn_layer", "{0, 2, 1}; [[1]]; [[1]]; [1]; [0]; [[2], [3]]", NULL, "{0, 2, 1}; [[2], [3]]; {0, 2, 1}", NULL},
    {"rnn_layer", "{2, 0, 1}; [[1]]; [[1]]", NULL, "{2, 0, 1}; {0, 1}; {2, 0, 1}", NULL},
    {"rnn_layer", "{1, 1, 0}; {1, 0}; [[1]]", NULL, "[[[0]]]; [[0]]; [[[0]]]", NULL},
    {"rnn_layer", "{2, 1, 3}; {0, 3}; {0, 0}", NULL, "{2, 1, 0}; {1, 0}; {2, 1, 0}", NULL},
    {"rnn_layer", "f32 [[[100]]]; f32 [[1]]; f32 [[1]]", NULL, "f32 [[[1]]]; [[1]]; [[[100]]]",
     "[[[0]]]; [[0]]; [[0]]"},
    {"lstm_layer", "[[[1000]]]; [[1], [1], [1], [1]]; [[0], [0], [0], [0]]", NULL,
     "[[[.7615941560]]]; [[.7615941560]]; [[1]]; [[[0, 0, 1000, 0, 1]]]", NULL},
    {"gru_layer", "[[[0]]]; [[1], [1], [1]]; [[0], [0], [0]]; [0, 0, 0]; [0, 0, 0]; [[4]]", NULL,
     "[[[2]]]; [[2]]; [[[-.5, -.5, 0, 0]]]", NULL},
    {"lstm_layer", "[[1, 2]]; [[1]]; [[1]]", NULL, "!SHAPE: x needs the axes time, batch, features", NULL},
    {"lstm_layer", "[[[1, 2]]]; {4, 3}; {4, 1}", NULL, "!SHAPE: w_ih needs shape [4, 2] (gates * units, features)",
     NULL},
    {"lstm_layer", "[[[1, 2]]]; {4, 2}; {3, 1}", NULL, "!SHAPE: w_hh needs shape [4, 1]", NULL},
    {"gru_layer", "[[[1]]]; {3, 1}; {4, 1}", NULL, "!SHAPE: w_hh needs shape [3, 1] (gates * units, units)", NULL},
    {"gru_layer", "[[[1]]]; {3, 1}; {3}", NULL, "!SHAPE: w_hh needs the axes gates * units, units", NULL},
    {"gru_layer", "[[[1]]]; {3, 1}; {3, 1}; [1, 2]", NULL, "!SHAPE: b_ih needs shape [3] (gates * units)", NULL},
    {"gru_layer", "[[[1]]]; {3, 1}; {3, 1}; {3}; {3}; {2, 1}", NULL, "!SHAPE: h0 needs shape [1, 1] (batch, units)",
     NULL},
    {"gru_layer", "[[[1]]]; {3, 1}; {3, 1}; {3}; {3}; {1, 1}; bool [1]", NULL,
     "!SHAPE: mask needs shape [1, 1] (time, b", NULL},
    {"gru_layer", "i64 [[[1]]]; i64 {3, 1}; i64 {3, 1}", NULL, "!DTYPE: x or a weight must be floating", NULL},

    {"ctc_loss", "[[-1, -2]]; i64 [1]; i64 1; i64 1", NULL, "2", "[[0, -1]]"},
    {"ctc_loss", "[[-1, -2], [-1, -2]]; i64 [1, 1]; i64 2; i64 2", NULL, "inf", "[[0, 0], [0, 0]]"},
    {"ctc_loss", "[[-1, -2], [-1, -2]]; i64 [1, 1]; i64 2; i64 2", "zero_infinity=True", "0", "[[0, 0], [0, 0]]"},
    {"ctc_loss", "[[-1, -2], [-1, -inf]]; i64 [1]; i64 2; i64 1", NULL, "3", "[[0, -1], [-1, 0]]"},
    {"ctc_loss", "[[-1, -2], [-3, -4]]; i64 [1]; i64 2; i64 0", "reduction=\"sum\"", "4", "[[-1, 0], [-1, 0]]"},
    {"ctc_loss", "{0, 2}; i64 [1]; i64 0; i64 0", NULL, "0", "{0, 2}"},
    {"ctc_loss", "{0, 1, 2}; i64 [[1]]; i64 [0]; i64 [1]", "reduction=\"none\"", "[inf]", NULL},
    {"ctc_loss", "{3, 0, 2}; i64 {0, 4}; i64 {0}; i64 {0}", "reduction=\"none\"", "{0}", NULL},
    {"ctc_loss", "[[-1, -2]]; i64 [2]; i64 1; i64 1", NULL, "!INDEX: label 2 of sequence 0 is out of range for 2",
     NULL},
    {"ctc_loss", "[[-1, -2]]; i64 [1]; i64 2; i64 1", NULL, "!VALUE: input_lengths[0] is 2; it must be from 0 to 1",
     NULL},
    {"ctc_loss", "[[-1, -2]]; i64 [1]; i64 1; i64 -1", NULL, "!VALUE: target_lengths[0] is -1; it must be from 0 to 1",
     NULL},
    {"ctc_loss", "[[-1, -2]]; i64 [1]; i64 1; i64 1", "blank=2", "!VALUE: blank must be a class, 0 to 1, not 2", NULL},
    {"ctc_loss", "[[-1, -2]]; [1]; i64 1; i64 1", NULL, "!DTYPE: targets must be integers", NULL},
    {"ctc_loss", "[[-1, -2]]; i64 [1]; i64 [1]; i64 1", NULL, "!SHAPE: input_lengths needs one length", NULL},
    {"ctc_loss", "i64 [[-1, -2]]; i64 [1]; i64 1; i64 1", NULL, "!DTYPE: log_probs must be floating", NULL},
    {"ctc_loss", "[-1, -2]; i64 [1]; i64 1; i64 1", NULL, "!SHAPE: log_probs needs the axes time, batch, classes",
     NULL},
};

static td_tensor *wave(const td_meta *meta, double speed) {
  td_tensor *t = td_tensor_new(context, meta->dtype, meta->rank, meta->shape);
  for (int64_t i = 0; i < t->size; i++) ((float *)t->data)[i] = (float)(0.3 * sin(speed * (double)i));
  return t;
}

// Large enough to be cut for the threads.
START_TEST(large_layers_have_the_same_bits) {
  enum { STEPS = 5, BATCH = 70, FEATURES = 33, UNITS = 65 };
  static const struct {
    const char *name;
    int gates;
  } layers[] = {{"lstm_layer", 4}, {"gru_layer", 3}, {"rnn_layer", 1}};
  for (int k = 0; k < 3; k++) {
    int64_t rows = layers[k].gates * UNITS;
    const td_meta metas[] = {{.dtype = TD_FLOAT32, .rank = 3, .shape = {STEPS, BATCH, FEATURES}},
                             {.dtype = TD_FLOAT32, .rank = 2, .shape = {rows, FEATURES}},
                             {.dtype = TD_FLOAT32, .rank = 2, .shape = {rows, UNITS}}};
    td_tensor *in[3], *one[TD_OUTPUT_MAX], *many[TD_OUTPUT_MAX];
    const td_op *op = td_op_find(layers[k].name);
    for (int i = 0; i < 3; i++) in[i] = wave(&metas[i], 1.1 + i);
    ck_assert_int_eq(td_op_apply(context, op, in, 3, NULL, one), TD_OK);
    ck_assert_int_eq(td_op_apply(wide, op, in, 3, NULL, many), TD_OK);
    for (int i = 0; i < td_op_outputs(op, one); i++) {
      ck_assert_int_eq(memcmp(one[i]->data, many[i]->data, (size_t)one[i]->size * sizeof(float)), 0);
      td_tensor_unref(one[i]);
      td_tensor_unref(many[i]);
    }
    for (int i = 0; i < 3; i++) td_tensor_unref(in[i]);
  }
}
END_TEST

int main(void) {
  const TTest *tests[] = {large_layers_have_the_same_bits};
  return cases_run("recurrent", cases, sizeof cases / sizeof *cases, tests, 1);
}
