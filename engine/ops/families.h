// The families of ops, and the builder functions through which rules and the engine's own C code call the ops of other
// families by name. Each family file defines the ones of its own ops: a builder is one line over td_scope_apply.
#ifndef TD_OPS_FAMILIES_H
#define TD_OPS_FAMILIES_H
#include "engine/ops/op.h"

// NULL-terminated list of a family's rows. X(list, file)
#define TD_FAMILIES(X)             \
  X(td_family_arithmetic)          \
  X(td_family_power)               \
  X(td_family_bounds)              \
  X(td_family_bitwise)             \
  X(td_family_compare)             \
  X(td_family_exponential)         \
  X(td_family_trigonometric)       \
  X(td_family_activation)          \
  X(td_family_rectifier)           \
  X(td_family_special)             \
  X(td_family_cast)                \
  X(td_family_reduce)              \
  X(td_family_matmul)              \
  X(td_family_shape)               \
  X(td_family_axes)                \
  X(td_family_split)               \
  X(td_family_slice)               \
  X(td_family_join)                \
  X(td_family_pad)                 \
  X(td_family_diagonal)            \
  X(td_family_repeat)              \
  X(td_family_sliding_window)      \
  X(td_family_create)              \
  X(td_family_statistics)          \
  X(td_family_norm)                \
  X(td_family_search)              \
  X(td_family_sort)                \
  X(td_family_quantile)            \
  X(td_family_histogram)           \
  X(td_family_scan)                \
  X(td_family_softmax)             \
  X(td_family_cross_entropy)       \
  X(td_family_regression_loss)     \
  X(td_family_probability_loss)    \
  X(td_family_margin_loss)         \
  X(td_family_ctc)                 \
  X(td_family_fourier)             \
  X(td_family_recurrent)           \
  X(td_family_dropout)             \
  X(td_family_random_key)          \
  X(td_family_distribution)        \
  X(td_family_index)               \
  X(td_family_scatter)             \
  X(td_family_segment)             \
  X(td_family_convolution)         \
  X(td_family_pooling)             \
  X(td_family_normalization)       \
  X(td_family_attention)           \
  X(td_family_interpolate)         \
  X(td_family_select)              \
  X(td_family_random)              \
  X(td_family_optimizer)           \
  X(td_family_identity)            \
  X(td_family_einsum)              \
  X(td_family_inverse)             \
  X(td_family_triangular)          \
  X(td_family_orthogonal)          \
  X(td_family_spectral)            \
  X(td_family_least_squares)       \
  X(td_family_matrix_norm)         \
  X(td_family_matrix_power)        \
  X(td_family_rounding)            \
  X(td_family_floating)
#define X(list) extern const td_op *const list[];
TD_FAMILIES(X)
#undef X

// arithmetic.c. chain is the product that gradients use: 0 wherever its first operand is exactly 0 (DESIGN: an unused
// branch never leaks NaN), so chain(cotangent, derivative).
td_tensor *td_add(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_subtract(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_multiply(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_divide(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_negative(td_scope *s, td_tensor *a);
td_tensor *td_remainder(td_scope *s, td_tensor *a, td_tensor *b); // with b's sign
td_tensor *td_abs(td_scope *s, td_tensor *x);
td_tensor *td_chain(td_scope *s, td_tensor *cotangent, td_tensor *derivative);
td_tensor *td_chain_quotient(td_scope *s, td_tensor *cotangent, td_tensor *divisor); // the same of cotangent / divisor
// power.c
td_tensor *td_power(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_square(td_scope *s, td_tensor *x);
td_tensor *td_hypot(td_scope *s, td_tensor *a, td_tensor *b);
// bounds.c
td_tensor *td_maximum(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_minimum(td_scope *s, td_tensor *a, td_tensor *b);
// rounding.c
td_tensor *td_round(td_scope *s, td_tensor *x); // to whole numbers
// compare.c: bool results, and where(condition, a, b)
td_tensor *td_greater(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_less(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_less_equal(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_equal(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_where(td_scope *s, td_tensor *condition, td_tensor *a, td_tensor *b);
// exponential.c
td_tensor *td_exp(td_scope *s, td_tensor *x);
td_tensor *td_log(td_scope *s, td_tensor *x);
td_tensor *td_log1p(td_scope *s, td_tensor *x);
td_tensor *td_sqrt(td_scope *s, td_tensor *x);
// trigonometric.c
td_tensor *td_tanh(td_scope *s, td_tensor *x);
// activation.c
td_tensor *td_sigmoid(td_scope *s, td_tensor *x);
// cast.c; x itself when it has that dtype
td_tensor *td_cast(td_scope *s, td_tensor *x, uint8_t dtype);
// reduce.c: axes NULL = all
td_tensor *td_sum(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims);
td_tensor *td_mean(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims);
td_tensor *td_largest(td_scope *s, td_tensor *x, const td_arg *axes); // max with keepdims
// undoes broadcasting; x itself when equal
td_tensor *td_sum_to(td_scope *s, td_tensor *x, int rank, const int64_t *shape);
// statistics.c
td_tensor *td_logsumexp(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims);
// search.c: what where(condition) alone means
extern const td_op td_nonzero_tuple_op;
// scatter.c
td_tensor *td_take_along_axis(td_scope *s, td_tensor *x, td_tensor *index, int64_t axis);
// matmul.c
td_tensor *td_matmul(td_scope *s, td_tensor *a, td_tensor *b);
// einsum.c
td_tensor *td_einsum(td_scope *s, const char *subscripts, int count, td_tensor *const *in);
// identity.c: the same value under a record of its own
td_tensor *td_identity(td_scope *s, td_tensor *x);
// shape.c
td_tensor *td_reshape(td_scope *s, td_tensor *x, int rank, const int64_t *shape);
td_tensor *td_broadcast_to(td_scope *s, td_tensor *x, int rank, const int64_t *shape);
// reinserts axes of size 1 that a reduction of a rank-rank tensor removed
td_tensor *td_expand_axes(td_scope *s, td_tensor *x, const td_arg *axes, int rank);
// axes.c
td_tensor *td_permute(td_scope *s, td_tensor *x, const int *axes);   // axes[x->rank]
td_tensor *td_swap_last(td_scope *s, td_tensor *x);                  // transposes the last two axes
td_tensor *td_flip(td_scope *s, td_tensor *x, const td_arg *axes);
// slice.c: each x->rank numbers
td_tensor *td_slice_view(td_scope *s, td_tensor *x, const int64_t *start, const int64_t *step, const int64_t *size);
// softmax.c
td_tensor *td_softmax(td_scope *s, td_tensor *x, int64_t axis);
td_tensor *td_log_softmax(td_scope *s, td_tensor *x, int64_t axis);
// scan.c
td_tensor *td_cumprod(td_scope *s, td_tensor *x, int64_t axis, bool reverse, bool exclusive);
// scatter.c: gather along an axis, and its transpose: c added up at the places of a tensor of this shape
td_tensor *td_gather(td_scope *s, td_tensor *x, td_tensor *index, int64_t axis);
td_tensor *td_gather_adjoint(td_scope *s, td_tensor *c, td_tensor *index, int64_t axis, int rank, const int64_t *shape);
// create.c
td_tensor *td_arange(td_scope *s, int64_t count); // int64 0 to count - 1
td_tensor *td_eye(td_scope *s, int64_t n, uint8_t dtype);
td_tensor *td_eye_of(td_scope *s, int64_t n, int64_t m, int64_t k, uint8_t dtype); // n x m, ones on the k-th diagonal
// index.c: slices of x along one axis, and their adjoint into zeros of a shape
td_tensor *td_take_slices(td_scope *s, td_tensor *x, td_tensor *index, int64_t axis);
td_tensor *td_index_adjoint(td_scope *s, td_tensor *c, td_tensor *index, int64_t axis, int rank, const int64_t *shape);
// join.c
td_tensor *td_concat(td_scope *s, td_tensor *a, td_tensor *b, int64_t axis);
td_tensor *td_concat_all(td_scope *s, td_tensor *const *parts, int count, int64_t axis); // up to TD_INPUT_MAX parts
// of the last two axes, from the k-th diagonal on
td_tensor *td_triangle(td_scope *s, td_tensor *x, bool upper, int64_t k);
#endif
