// Convolutions, pooling, resizing, normalization and attention: edges, errors and remedies, and results that are large
// enough to be computed in several blocks and pieces.
#include <float.h>
#include <math.h>
#include <string.h>
#include "engine/ops/families.h"
#include "engine/tape/tape.h"
#include "tests/engine/cases.h"

static const op_case cases[] = {
    // dilation, stride and padding together; a stride that doesn't divide
    {"conv1d", "[[[7, 3]], [[3, 2]]]; [[[3, 6]], [[4, 2]]]; none", "padding=1, stride=2, dilation=2",
     "[[[18], [6]], [[12], [4]]]", "[[[0, 8]], [[0, 8]]]; [[[0, 5]], [[0, 5]]]"},
    {"conv2d", "[[[[1, 1, 1], [1, 1, 1], [1, 1, 1]]]]; [[[[1, 2], [3, 4]]]]; none", "stride=2", "[[[[10]]]]",
     "[[[[1, 2, 0], [3, 4, 0], [0, 0, 0]]]]; [[[[1, 1], [1, 1]]]]"},
    {"conv1d", "[[[1, 2, 3, 4]]]; [[[1, 0, 0]]]; [10]", "padding=\"same\"", "[[[10, 11, 12, 13]]]",
     "[[[1, 1, 1, 0]]]; [[[6, 10, 9]]]; [4]"},
    {"conv1d", "[[[1, 2, 3, 4]]]; [[[1, 10]]]; none", "padding=\"same\"", "[[[21, 32, 43, 4]]]", NULL},
    {"conv1d", "[[[1, 2, 3, 4, 5]]]; [[[1, 10, 100]]]; none", "padding=\"same\", stride=2", "[[[210, 432, 54]]]", NULL},
    {"conv1d", "[[1, 2, 3]]; [[[1, 1]]]; none", NULL, "[[3, 5]]", "[[1, 2, 1]]; [[[3, 5]]]"},
    {"conv1d", "u8 [[[200, 100]]]; f32 [[[1, 1]]]; none", NULL, "f32 [[[300]]]", NULL},
    {"conv1d", "{0, 2, 4}; {3, 2, 2}; none", NULL, "{0, 3, 3}",
     "{0, 2, 4}; [[[0, 0], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [0, 0]]]"},
    {"conv1d", "{1, 0, 2}; {1, 0, 1}; [3]", NULL, "[[[3, 3]]]", NULL},
    {"conv1d", "[[[1, 2]]]; [[[1, 1, 1]]]; none", NULL,
     "!SHAPE: the kernel spans 3 along spatial axis 0, x has 2 with padding", NULL},
    {"conv2d", "{1, 3, 5, 5}; {4, 2, 3, 3}; none", NULL,
     "!SHAPE: x [1, 3, 5, 5] has 3 channels, w [4, 2, 3, 3] takes 2", NULL},
    {"conv2d", "{1, 4, 5, 5}; {3, 2, 3, 3}; none", "groups=2",
     "!SHAPE: the 3 channels of w's axis 0 don't part into 2 groups", NULL},
    {"conv2d", "{5, 5}; {3, 2, 3, 3}; none", NULL, "!SHAPE: x must be [N, C, H, W]", NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3}; none", NULL, "!SHAPE: w must have rank 4", NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3, 0}; none", NULL, "!SHAPE: w has a kernel of size 0", NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3, 3}; [1, 2]", NULL, "!SHAPE: b must hold one number for each of 3", NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3, 3}; none", "stride=0", "!VALUE: stride must be at least 1, not 0", NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3, 3}; none", "stride=(1, 2, 3)", "!VALUE: stride has 3 numbers for 2 axes", NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3, 3}; none", "padding=-1", "!VALUE: padding must be at least 0, not -1", NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3, 3}; none", "dilation=9223372036854775807", "!VALUE: dilation is too large",
     NULL},
    {"conv2d", "{1, 2, 5, 5}; {3, 2, 3, 3}; none", "groups=0", "!VALUE: groups must be at least 1", NULL},
    {"conv_transpose1d", "[[[1, 2]]]; [[[1, 1]]]; none", "stride=2, output_padding=1", "[[[1, 1, 2, 2, 0]]]",
     "[[[2, 2]]]; [[[3, 3]]]"},
    {"conv_transpose1d", "[[[1, 2]]]; [[[1]]]; none", "stride=3", "[[[1, 0, 0, 2]]]", NULL},
    {"conv_transpose1d", "[[[1, 2]]]; [[[1, 1]]]; none", "output_padding=1", "!VALUE: output_padding 1 must be below",
     NULL},
    {"conv_transpose1d", "[[[1, 2]]]; [[[1, 1]]]; none", "padding=2", "!SHAPE: spatial axis 0 would have size -1",
     NULL},
    {"conv_transpose1d", "{1, 2, 3}; {3, 1, 2}; none", NULL, "!SHAPE: x [1, 2, 3] has 2 channels, w [3, 1, 2] takes 3",
     NULL},
    // pooling: padding never wins, NaN does, the first of equal ones gets the gradient
    {"max_pool2d", "[[[[-1, -1], [-1, -1]]]]", "kernel_size=3, stride=1, padding=1", "[[[[-1, -1], [-1, -1]]]]",
     "[[[[4, 0], [0, 0]]]]"},
    {"max_pool2d", "i32 [[[[-1, -1], [-1, -1]]]]", "kernel_size=3, stride=1, padding=1", "i32 [[[[-1, -1], [-1, -1]]]]",
     NULL},
    {"max_pool1d", "[[[1, nan, 3, 2]]]", "kernel_size=2", "[[[nan, 3]]]; i64 [[[1, 2]]]", "[[[0, 1, 1, 0]]]"},
    {"max_pool1d", "[[[nan, nan, 3]]]", "kernel_size=3", "[[[nan]]]; i64 [[[0]]]", NULL},
    {"max_pool1d", "[[[-inf, -inf]]]", "kernel_size=2", "[[[-inf]]]; i64 [[[0]]]", "[[[1, 0]]]"},
    {"max_pool1d", "[[[1, 2, 3]]]", "kernel_size=2, ceil_mode=True", "[[[2, 3]]]", "[[[0, 1, 1]]]"},
    {"max_pool1d", "[[[1, 2, 3]]]", "kernel_size=4", "!SHAPE: the window spans 4 along spatial axis 0, x has 3", NULL},
    {"max_pool1d", "[[[1, 2, 3]]]", "kernel_size=2, padding=2", "!VALUE: padding 2 is more than half of the window",
     NULL},
    {"max_pool1d", "bool [[[1, 0]]]", "kernel_size=2", "!DTYPE: bool has no order", NULL},
    {"max_pool1d", "{1, 2, 0}", "kernel_size=2", "!SHAPE: spatial axis 0 of x is empty", NULL},
    {"avg_pool1d", "[[[2, 4, 6]]]", "kernel_size=3, stride=1, padding=1", "[[[2, 4, 3.3333333333]]]",
     "[[[.6666666667, 1, .6666666667]]]"},
    {"avg_pool1d", "[[[2, 4, 6]]]", "kernel_size=3, stride=1, padding=1, count_include_pad=False", "[[[3, 4, 5]]]",
     NULL},
    {"avg_pool1d", "i64 [[[2, 4]]]", "kernel_size=2", "!DTYPE: x must be floating, not int64", NULL},
    {"avg_pool1d", "[[[2, 4]]]", "kernel_size=2, divisor_override=0", "!VALUE: divisor_override must be at least 1",
     NULL},
    {"adaptive_avg_pool2d", "[[[[1, 2], [3, 4]]]]", "output_size=1", "[[[[2.5]]]]", "[[[[.25, .25], [.25, .25]]]]"},
    {"adaptive_max_pool1d", "[[1, 5, 5, 2]]", "output_size=2", "[[5, 5]]; i64 [[1, 2]]", "[[0, 1, 1, 0]]"},
    {"adaptive_avg_pool1d", "{1, 2, 0}", "output_size=1", "!SHAPE: spatial axis 0 of x is empty", NULL},
    // resizing
    {"interpolate", "[[[1, 3]]]", "size=4, mode=\"linear\"", "[[[1, 1.5, 2.5, 3]]]", "[[[2, 2]]]"},
    {"interpolate", "[[[1, 2, 3]]]", "scale_factor=2.0", "[[[1, 1, 2, 2, 3, 3]]]", "[[[2, 2, 2]]]"},
    {"interpolate", "[[[1, 2]]]", NULL, "!VALUE: needs either size or scale_factor", NULL},
    {"interpolate", "[[[1, 2]]]", "size=2, scale_factor=1.0", "!VALUE: needs either size or scale_factor, not both",
     NULL},
    {"interpolate", "[[[1, 2]]]", "size=0", "!VALUE: size must be at least 1", NULL},
    {"interpolate", "[[[1, 2]]]", "scale_factor=0.1", "!SHAPE: spatial axis 0 would have size 0", NULL},
    {"interpolate", "[[[1, 2]]]", "scale_factor=-1.0", "!VALUE: scale_factor must be positive", NULL},
    {"interpolate", "[[[1, 2]]]", "size=3, mode=\"bilinear\"",
     "!VALUE: mode \"bilinear\" is for 2 spatial axes, x has 1", NULL},
    {"interpolate", "[[[1, 2]]]", "size=3, align_corners=True",
     "!VALUE: align_corners means nothing with mode \"nearest\"", NULL},
    {"interpolate", "[1, 2]", "size=3", "!SHAPE: x must be [N, C, ...]", NULL},
    // normalization
    {"layer_norm", "f32 [[1000001, 1000003]]; none; none", "eps=0.0", "f32 [[-1, 1]]", NULL},
    {"layer_norm", "[[2, 2]]; [1, 1]; [5, 6]", NULL, "[[5, 6]]", "[[0, 0]]; [0, 0]; [1, 1]"},
    {"layer_norm", "[[1, 2, 3]]; [1, 1]; none", NULL, "!SHAPE: w must have the shape of x's last axis, [3]", NULL},
    {"layer_norm", "[1, 2]; none; none", "normalized_shape=(3,)", "!SHAPE: normalized_shape isn't the shape", NULL},
    {"layer_norm", "[1, 2]; none; none", "eps=-1.0", "!VALUE: eps must not be negative", NULL},
    {"layer_norm", "1; none; none", NULL, "!SHAPE: the last 1 axes are to be normalized, x has rank 0", NULL},
    {"rms_norm", "[[3, 4]]; [1, 2]", "eps=0.0", "[[.8485281374, 2.2627416998]]", NULL},
    {"group_norm", "{2, 3, 4}; none; none", "num_groups=2", "!SHAPE: x's 3 channels don't part into num_groups, 2",
     NULL},
    {"instance_norm", "[[[1]]]; none; none", NULL, "!SHAPE: there is one value per instance and channel", NULL},
    {"batch_norm", "[[1]]; none; none; none; none", "training=True",
     "!SHAPE: training needs more than one value per channel, x has 1", NULL},
    {"batch_norm", "[[1]]; none; none; none; none", NULL, "!VALUE: needs mean and var unless training", NULL},
    {"batch_norm", "[[1], [3]]; [0]; [1]; none; none", "training=True, eps=0.0, momentum=0.5",
     "[[-1], [1]]; [1]; [1.5]", NULL},
    {"batch_norm", "[[1], [3]]; [1]; [4]; [2]; [1]", "eps=0.0", "[[1], [3]]; [1]; [4]",
     "[[1], [1]]; [-2]; [-.25]; [1]; [2]"},
    {"batch_norm", "[[1], [3]]; [1, 2]; [4]; none; none", NULL,
     "!SHAPE: mean must hold one number for each of x's 1 channels", NULL},
    // attention: rows that see nothing are 0
    {"scaled_dot_product_attention", "[[1], [1]]; [[1], [1]]; [[1], [3]]; bool [[1, 0], [0, 0]]; none", NULL,
     "[[1], [0]]", NULL},
    {"scaled_dot_product_attention", "[[1], [1]]; [[1], [1]]; [[1], [3]]; none; none", "is_causal=True", "[[1], [2]]",
     "[[0], [0]]; [[-.5], [.5]]; [[1.5], [.5]]"},
    {"scaled_dot_product_attention", "f32 [[1000], [1]]; [[1000], [-1000]]; [[1], [3]]; none; none", NULL, "[[1], [1]]",
     NULL},
    {"scaled_dot_product_attention", "{2, 3}; {0, 3}; {0, 1}; none; none", NULL, "[[0], [0]]", NULL},
    {"scaled_dot_product_attention", "{2, 3}; {4, 2}; {4, 1}; none; none", NULL,
     "!SHAPE: q and k must have one size: 3 and 2", NULL},
    {"scaled_dot_product_attention", "{2, 3}; {4, 3}; {5, 1}; none; none", NULL, "!SHAPE: k has 4 keys, v 5 values",
     NULL},
    {"scaled_dot_product_attention", "{2, 3}; {4, 3}; {4, 1}; {3, 4}; none", NULL,
     "!SHAPE: mask [3, 4] doesn't broadcast to [2, 4]", NULL},
    {"scaled_dot_product_attention", "{2, 3}; {4, 3}; {4, 1}; i64 {2, 4}; none", NULL, "!DTYPE: mask must be bool",
     NULL},
    {"scaled_dot_product_attention", "[1]; {4, 3}; {4, 1}; none; none", NULL, "!SHAPE: q must be [..., length, size]",
     NULL},
};

// ---- large operands ----

static td_tensor *drawn(td_context *c, uint8_t dtype, int rank, const int64_t *shape, double phase) {
  td_tensor *t = td_tensor_new(c, dtype, rank, shape);
  for (int64_t i = 0; i < t->size; i++) {
    double value = sin(phase + 1.3 * (double)i + 0.01 * (double)(i % 97));
    if (dtype == TD_FLOAT32) ((float *)t->data)[i] = (float)value;
    else ((double *)t->data)[i] = value;
  }
  return t;
}

typedef struct large { // an op and its inputs
  const char *op, *args;
  int in_count;
  struct {
    int rank;
    int64_t shape[5];
  } in[4];
} large;

static const large larges[] = {
    {"conv2d", "padding=1", 2, {{4, {2, 24, 40, 37}}, {4, {20, 24, 3, 3}}}}, // several blocks an image
    {"conv2d", "padding=1", 2, {{4, {20, 24, 5, 6}}, {4, {20, 24, 3, 3}}}}, // several images a block
    {"conv2d", NULL, 2, {{4, {2, 130, 30, 31}}, {4, {70, 130, 1, 1}}}}, // no columns
    {"conv2d", "stride=2, padding=2, dilation=2", 2, {{4, {3, 12, 33, 30}}, {4, {18, 12, 3, 2}}}},
    {"conv2d", "padding=1, groups=12", 2, {{4, {3, 12, 33, 30}}, {4, {24, 1, 3, 3}}}}, // summed by lines
    {"conv2d", "padding=1, groups=3, stride=(3, 1)", 2, {{4, {9, 12, 33, 30}}, {4, {18, 4, 3, 3}}}},
    {"conv2d", NULL, 2, {{4, {33, 1, 28, 28}}, {4, {6, 1, 5, 5}}}},
    {"conv1d", "padding=\"same\"", 2, {{3, {2, 16, 3000}}, {3, {16, 16, 5}}}},
    {"conv3d", "padding=1, stride=2", 2, {{5, {2, 6, 9, 10, 11}}, {5, {8, 6, 3, 3, 3}}}},
    {"conv_transpose2d", "stride=2, padding=1, output_padding=1", 2, {{4, {3, 16, 17, 19}}, {4, {16, 12, 3, 3}}}},
    {"max_pool2d", "kernel_size=3, stride=2, padding=1", 1, {{4, {3, 5, 61, 67}}}},
    {"avg_pool2d", "kernel_size=3, stride=2, padding=1", 1, {{4, {3, 5, 61, 67}}}},
    {"adaptive_avg_pool2d", "output_size=7", 1, {{4, {3, 5, 61, 67}}}},
    {"interpolate", "size=(40, 90), mode=\"bicubic\"", 1, {{4, {3, 5, 61, 67}}}},
    {"layer_norm", NULL, 3, {{3, {50, 3, 70}}, {2, {3, 70}}, {2, {3, 70}}}},
    {"layer_norm", NULL, 3, {{2, {40, 300}}, {1, {300}}, {1, {300}}}},
    {"standardize", "over_batch=True", 3, {{4, {9, 12, 1, 110}}, {1, {12}}, {1, {12}}}},
    {"standardize", "over_batch=True", 3, {{4, {130, 70, 1, 3}}, {1, {70}}, {1, {70}}}}, // columns
    {"standardize", "over_batch=True", 3, {{4, {131, 5, 1, 2}}, {1, {5}}, {1, {5}}}}, // several rows as one
    {"group_norm", "num_groups=3", 3, {{4, {9, 12, 11, 10}}, {1, {12}}, {1, {12}}}},
    {"instance_norm", NULL, 3, {{4, {9, 12, 11, 10}}, {1, {12}}, {1, {12}}}},
    {"scaled_dot_product_attention", NULL, 3, {{4, {2, 3, 300, 9}}, {4, {2, 3, 700, 9}}, {4, {2, 3, 700, 11}}}},
    {"scaled_dot_product_attention",
     "is_causal=True",
     3,
     {{4, {1, 2, 600, 9}}, {4, {1, 2, 600, 9}}, {4, {1, 2, 600, 7}}}},
    {"scaled_dot_product_attention",
     "is_causal=True",
     3,
     {{4, {1, 2, 200, 9}}, {4, {1, 2, 700, 9}}, {4, {1, 2, 700, 7}}}},
    {"scaled_dot_product_attention",
     "enable_gqa=True",
     3,
     {{4, {2, 6, 200, 9}}, {4, {2, 2, 300, 9}}, {4, {2, 3, 300, 7}}}},
    {"scaled_dot_product_attention",
     NULL,
     4,
     {{4, {3, 4, 200, 9}}, {4, {3, 1, 300, 9}}, {4, {3, 1, 300, 7}}, {2, {200, 300}}}},
};

// Runs it in c; gives its results and the gradients of the first one, weighted by numbers.
static int run_large(td_context *c, const large *l, uint8_t dtype, td_tensor **out) {
  const td_op *op = td_op_find(l->op);
  td_tensor *in[TD_INPUT_MAX] = {NULL}, *results[TD_OUTPUT_MAX], *gradients[4];
  td_source sources[4];
  td_arg args[TD_PARAM_MAX];
  char problem[200];
  td_tape *tape = td_tape_new(c, false, false);
  ck_assert(sample_arguments(op, l->args, args, problem));
  ck_assert_int_eq(td_tape_open(c, tape), TD_OK);
  for (int i = 0; i < l->in_count; i++) {
    in[i] = drawn(c, dtype, l->in[i].rank, l->in[i].shape, i);
    ck_assert_int_eq(td_tape_watch(c, tape, in[i]), TD_OK);
    sources[i] = (td_source){.tensor = in[i]};
  }
  if (td_op_apply(c, op, in, td_op_tensor_params(op), args, results)) ck_abort_msg("%s: %s", l->op, c->error.message);
  td_tape_close(c, tape);
  td_tensor *weights = drawn(c, results[0]->dtype, results[0]->rank, results[0]->shape, 5);
  if (td_tape_gradient(c, tape, results, 1, &weights, sources, l->in_count, true, gradients))
    ck_abort_msg("%s: %s", l->op, c->error.message);
  out[0] = results[0];
  for (int i = 1; i < td_op_outputs(op, results); i++) td_tensor_unref(results[i]);
  for (int i = 0; i < l->in_count; i++) {
    out[1 + i] = gradients[i];
    td_tensor_unref(in[i]);
  }
  td_tensor_unref(weights);
  td_tape_unref(c, tape);
  return 1 + l->in_count;
}

START_TEST(large_results_have_the_same_bits_on_any_number_of_threads) {
  for (size_t i = 0; i < sizeof larges / sizeof *larges; i++) {
    td_tensor *one[5], *three[5];
    int count = run_large(context, &larges[i], TD_FLOAT32, one);
    run_large(wide, &larges[i], TD_FLOAT32, three);
    for (int k = 0; k < count; k++) {
      td_tensor *a = td_tensor_contiguous(context, one[k]), *b = td_tensor_contiguous(wide, three[k]);
      ck_assert_msg(!memcmp(a->data, b->data, (size_t)a->size * sizeof(float)), "%s(%s): threads change result %d",
                    larges[i].op, larges[i].args ? larges[i].args : "", k);
      td_tensor_unref(a);
      td_tensor_unref(b);
      td_tensor_unref(one[k]);
      td_tensor_unref(three[k]);
    }
  }
}
END_TEST

START_TEST(large_results_in_float32_are_near_those_in_float64) {
  for (size_t i = 0; i < sizeof larges / sizeof *larges; i++) {
    td_tensor *single[5], *exact[5];
    int count = run_large(context, &larges[i], TD_FLOAT32, single);
    run_large(context, &larges[i], TD_FLOAT64, exact);
    for (int k = 0; k < count; k++) {
      double largest = 1, off = 0;
      for (int64_t e = 0; e < exact[k]->size; e++) {
        largest = fmax(largest, fabs(td_tensor_get_float(exact[k], e)));
        off = fmax(off, fabs(td_tensor_get_float(exact[k], e) - td_tensor_get_float(single[k], e)));
      }
      ck_assert_msg(off <= 1e-5 * largest, "%s(%s), result %d: %g off of %g", larges[i].op,
                    larges[i].args ? larges[i].args : "", k, off, largest);
      td_tensor_unref(single[k]);
      td_tensor_unref(exact[k]);
    }
  }
}
END_TEST

// Numbers that lie on both sides of one far from 0, or whose squares no float holds.
START_TEST(normalization_keeps_its_digits) {
  static const struct {
    float middle, apart;
  } rows[] = {{1e4F, 1}, {-3e4F, .125F}, {0, 1e25F}, {0, 3e38F}, {5, 0}, {0, 1e-20F}};
  static const struct {
    const char *op, *args;
    int rank;
    int64_t shape[4];
  } forms[] = {{"layer_norm", NULL, 2, {3, 260}},
               {"layer_norm", NULL, 2, {40, 6}},
               {"group_norm", "num_groups=2", 4, {2, 6, 8, 9}},
               {"instance_norm", NULL, 4, {2, 6, 8, 9}},
               {"batch_norm", "training=True", 4, {2, 6, 8, 9}},
               {"batch_norm", "training=True", 3, {90, 6, 2}}};
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
      const td_op *op = td_op_find(forms[f].op);
      td_arg args[TD_PARAM_MAX];
      char problem[200];
      td_tensor *in[TD_INPUT_MAX] = {td_tensor_new(context, TD_FLOAT32, forms[f].rank, forms[f].shape)};
      td_tensor *out[TD_OUTPUT_MAX];
      for (int64_t i = 0; i < in[0]->size; i++)
        ((float *)in[0]->data)[i] = rows[r].middle + (i % 2 ? rows[r].apart : -rows[r].apart);
      ck_assert(sample_arguments(op, forms[f].args, args, problem));
      if (td_op_apply(context, op, in, td_op_tensor_params(op), args, out)) ck_abort_msg("%s", context->error.message);
      double apart = (double)rows[r].apart, wanted = apart / sqrt(apart * apart + 1e-5);
      for (int64_t i = 0; i < out[0]->size; i++) {
        double off = td_tensor_get_float(out[0], i) - (i % 2 ? wanted : -wanted);
        ck_assert_msg(fabs(off) <= 4 * FLT_EPSILON * wanted, "%s, %g apart: %g off of %g", op->name, apart, off,
                      wanted);
      }
      for (int i = 0; i < td_op_outputs(op, out); i++) td_tensor_unref(out[i]);
      td_tensor_unref(in[0]);
    }
}
END_TEST

static double element(const td_tensor *t, const int64_t *at, int rank) {
  int64_t offset = 0;
  for (int i = 0; i < rank; i++) offset += at[i] * t->strides[i];
  return ((const double *)t->data)[offset];
}

// One number of conv2d by its definition.
static double by_definition(const td_tensor *x, const td_tensor *w, const td_arg *args, const int64_t *at) {
  int64_t groups = args[3].i, group = at[1] / (w->shape[0] / groups);
  double sum = 0;
  for (int64_t c = 0; c < w->shape[1]; c++)
    for (int64_t a = 0; a < w->shape[2]; a++)
      for (int64_t b = 0; b < w->shape[3]; b++) {
        int64_t stride = args[0].ints[0], stride_w = args[0].ints[args[0].count - 1];
        int64_t row = at[2] * stride - args[1].ints[0] + a * args[2].ints[0];
        int64_t column = at[3] * stride_w - args[1].ints[0] + b * args[2].ints[0];
        if (row < 0 || row >= x->shape[2] || column < 0 || column >= x->shape[3]) continue;
        sum += element(x, (int64_t[]){at[0], group * w->shape[1] + c, row, column}, 4) *
               element(w, (int64_t[]){at[1], c, a, b}, 4);
      }
  return sum;
}

static double inner(const td_tensor *a, const td_tensor *b) {
  double sum = 0;
  for (int64_t i = 0; i < a->size; i++) sum += td_tensor_get_float(a, i) * td_tensor_get_float(b, i);
  return sum;
}

// Values by the definition; gradients because conv2d is linear in x and in w, so that <y, c> = <x, dx> = <w, dw>.
START_TEST(large_convolutions_are_right) {
  for (size_t i = 0; i < sizeof larges / sizeof *larges; i++) {
    const large *l = &larges[i];
    if (strcmp(l->op, "conv2d") != 0) continue;
    td_tensor *out[5];
    td_arg args[TD_PARAM_MAX];
    char problem[200];
    ck_assert(sample_arguments(td_op_find(l->op), l->args, args, problem));
    run_large(context, l, TD_FLOAT64, out);
    td_tensor *x = drawn(context, TD_FLOAT64, 4, l->in[0].shape, 0),
              *w = drawn(context, TD_FLOAT64, 4, l->in[1].shape, 1);
    td_tensor *c = drawn(context, TD_FLOAT64, 4, out[0]->shape, 5);
    for (int64_t e = 0; e < out[0]->size; e += 7) {
      int64_t at[4], rest = e;
      for (int k = 4; k-- > 0; rest /= out[0]->shape[k]) at[k] = rest % out[0]->shape[k];
      double right = by_definition(x, w, args, at), got = ((const double *)out[0]->data)[e];
      ck_assert_msg(fabs(right - got) <= 1e-11, "conv2d(%s), element %lld: %.17g, not %.17g", l->args ? l->args : "",
                    (long long)e, got, right);
    }
    double sum = inner(out[0], c), by_x = inner(x, out[1]), by_w = inner(w, out[2]);
    ck_assert_msg(fabs(sum - by_x) <= 1e-9 && fabs(sum - by_w) <= 1e-9, "conv2d(%s): %.17g, %.17g, %.17g",
                  l->args ? l->args : "", sum, by_x, by_w);
    td_tensor *const all[] = {x, w, c, out[0], out[1], out[2]};
    for (int k = 0; k < 6; k++) td_tensor_unref(all[k]);
  }
}
END_TEST

START_TEST(long_attention_is_that_of_the_whole_matrix) {
  const int64_t q_shape[] = {2, 300, 9}, k_shape[] = {2, 700, 9}, v_shape[] = {2, 700, 11};
  td_tensor *in[] = {drawn(context, TD_FLOAT64, 3, q_shape, 0), drawn(context, TD_FLOAT64, 3, k_shape, 1),
                     drawn(context, TD_FLOAT64, 3, v_shape, 2), NULL},
            *out[TD_OUTPUT_MAX];
  ck_assert_int_eq(td_op_apply(context, td_op_find("scaled_dot_product_attention"), in, 4, NULL, out), TD_OK);
  td_scope s;
  td_scope_open(&s, context);
  td_tensor *scores = td_matmul(&s, in[0], td_swap_last(&s, in[1]));
  scores = td_multiply(&s, scores, td_scope_number(&s, 1. / 3, scores));
  td_tensor *right = td_matmul(&s, td_softmax(&s, scores, -1), in[2]);
  for (int64_t e = 0; e < right->size; e++)
    ck_assert_double_le(fabs(td_tensor_get_float(right, e) - td_tensor_get_float(out[0], e)), 1e-13);
  td_scope_close(&s);
  for (int i = 0; i < 3; i++) td_tensor_unref(in[i]);
  for (int i = 0; i < 3; i++) td_tensor_unref(out[i]);
}
END_TEST

START_TEST(hints_tell_the_remedy) {
  static const struct {
    const char *op, *inputs[5], *args, *hint;
  } rows[] = {
      {"conv2d", {"{1, 5, 5, 3}", "{4, 3, 3, 3}"}, NULL, "channels come first: moveaxis(x, -1, 1) if x has them last"},
      {"conv2d", {"{1, 4, 5, 5}", "{4, 2, 3, 3}"}, NULL, "groups=2 fits"},
      {"conv2d", {"{1, 3, 5, 5}", "{4, 2, 3, 3}"}, NULL, "w's axis 1 must have size 3"},
      {"conv2d", {"{1, 2, 2, 5}", "{4, 2, 3, 3}"}, NULL, "padding=1 fits, \"same\" keeps the size"},
      {"max_pool1d", {"{1, 2, 3}"}, "kernel_size=5", "kernel_size=3 fits"},
      {"interpolate", {"{1, 2, 3, 3}"}, "size=5, mode=\"linear\"", "mode=\"bilinear\""},
      {"batch_norm", {"{1, 2}"}, "training=True", "a larger batch, training=False, or layer_norm"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const td_op *op = td_op_find(rows[i].op);
    td_tensor *in[TD_INPUT_MAX] = {NULL}, *out[TD_OUTPUT_MAX];
    td_arg args[TD_PARAM_MAX];
    char problem[200];
    int count = 0;
    for (; count < 5 && rows[i].inputs[count]; count++) {
      const char *text = rows[i].inputs[count];
      in[count] = read_tensor(&text);
    }
    ck_assert(sample_arguments(op, rows[i].args, args, problem));
    ck_assert_int_ne(td_op_apply(context, op, in, td_op_tensor_params(op), args, out), TD_OK);
    ck_assert_str_eq(context->error.hint, rows[i].hint);
    for (int k = 0; k < count; k++) td_tensor_unref(in[k]);
  }
}
END_TEST

int main(void) {
  const TTest *tests[] = {large_results_have_the_same_bits_on_any_number_of_threads,
                          large_results_in_float32_are_near_those_in_float64,
                          normalization_keeps_its_digits,
                          large_convolutions_are_right,
                          long_attention_is_that_of_the_whole_matrix,
                          hints_tell_the_remedy};
  return cases_run("layers", cases, sizeof cases / sizeof *cases, tests, sizeof tests / sizeof *tests);
}
