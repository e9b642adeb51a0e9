// Norms of matrices, and the condition number that they give.
#include <math.h>
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

enum order { FROBENIUS, NUCLEAR, SPECTRAL, COLUMNS, ROWS, UNKNOWN };

typedef struct norm {
  enum order order;
  bool least; // -2, -1, -inf: the smallest singular value, column or row in place of the largest
} norm;

static norm norm_of(const td_arg *ord) {
  if (ord->count)
    return (norm){.order = !strcmp(ord->text, "fro") ? FROBENIUS : !strcmp(ord->text, "nuc") ? NUCLEAR : UNKNOWN};
  double size = fabs(ord->f);
  return (norm){size == 1 ? COLUMNS : size == 2 ? SPECTRAL : isinf(size) ? ROWS : UNKNOWN, ord->f < 0};
}

static int infer_order(td_infer *infer, const td_arg *ord, const char *name) {
  if (norm_of(ord).order != UNKNOWN) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "%s must be \"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf", name);
}

// ---- values ----

static double frobenius(const td_problem *p, const void *a, int64_t count) {
  double largest = 0, sum = 0;
  for (int64_t i = 0; i < count; i++) {
    double size = fabs(td_number_at(p, a, i));
    if (size > largest || size != size) largest = size;
  }
  if (!(largest > 0) || isinf(largest)) return largest;
  double scale = ldexp(1, -ilogb(largest)); // nothing overflows, and no bit is lost
  for (int64_t i = 0; i < count; i++) {
    double x = td_number_at(p, a, i) * scale;
    sum += x * x;
  }
  return sqrt(sum) / scale;
}

// Of the sums of absolute values of lines of length elements, pitch apart, the lines step apart.
static double extreme_line(const td_problem *p, const void *a, int64_t lines, int64_t step, int64_t length,
                           int64_t pitch, bool least) {
  double found = least ? INFINITY : 0;
  for (int64_t i = 0; i < lines; i++) {
    double sum = 0;
    for (int64_t j = 0; j < length; j++) sum += fabs(td_number_at(p, a, i * step + j * pitch));
    if (sum != sum) return sum;
    if (least ? sum < found : sum > found) found = sum;
  }
  return found;
}

static double entry_norm(const td_problem *p, const void *a, int64_t m, int64_t n, norm kind) { // column by column
  if (kind.order == FROBENIUS) return frobenius(p, a, m * n);
  return kind.order == COLUMNS ? extreme_line(p, a, n, m, m, 1, kind.least)
                               : extreme_line(p, a, m, 1, n, m, kind.least);
}

static double value_norm(const td_problem *p, const td_decomposed *d, norm kind) {
  double sum = 0;
  if (kind.order == SPECTRAL) return td_number_at(p, d->s, kind.least ? d->count - 1 : 0);
  for (int64_t i = 0; i < d->count; i++) sum += td_number_at(p, d->s, i);
  return sum;
}

static bool needs_values(norm kind) { return kind.order == SPECTRAL || kind.order == NUCLEAR; }

static int norm_one(td_problem *p, norm kind, double *value) { // of in[0]
  int64_t m = p->in[0].rows, n = p->in[0].columns;
  if (needs_values(kind)) {
    td_decomposed d;
    int info = td_decompose(p, 'N', &d);
    if (p->scratch && !info) *value = value_norm(p, &d, kind);
    return info;
  }
  void *a = td_take(p, m * n, p->bytes);
  if (!p->scratch) return 0;
  td_matrix_load(p, &p->in[0], a);
  *value = entry_norm(p, a, m, n, kind);
  return 0;
}

// ---- slopes ----

static td_tensor *shared(td_scope *s, td_tensor *lines, const td_arg *axis,
                         bool least) { // 1 at the extreme; ties share
  td_tensor *extreme = least ? td_negative(s, td_largest(s, td_negative(s, lines), axis)) : td_largest(s, lines, axis);
  if (!extreme) return NULL;
  td_tensor *same = td_cast(s, td_equal(s, lines, extreme), lines->dtype);
  return td_divide(s, same, td_sum(s, same, axis, true));
}

// The derivative of a matrix's norm, times c, which is [..., 1, 1]. y: the norm, likewise.
static td_tensor *norm_slope(td_scope *s, td_tensor *x, td_tensor *y, td_tensor *c, norm kind) {
  static const td_arg last = {.given = 1, .count = 1, .ints = {-1}}, before = {.given = 1, .count = 1, .ints = {-2}};
  if (!x || !y) return NULL;
  td_tensor *zero = td_scope_number(s, 0, x);
  if (kind.order == FROBENIUS) { // x / y, and 0 where y is 0
    td_tensor *none = td_equal(s, y, zero), *safe = td_where(s, none, td_scope_number(s, 1, x), y);
    return td_multiply(s, x, td_where(s, none, zero, td_divide(s, c, safe)));
  }
  if (needs_values(kind)) {
    td_tensor *parts[3];
    if (td_svd(s, x, parts)) return NULL;
    td_tensor *u = parts[0];
    if (kind.order == SPECTRAL) u = td_columns_scaled(s, u, shared(s, parts[1], &last, kind.least));
    return td_multiply(s, c, td_matmul(s, u, parts[2]));
  }
  td_tensor *one = td_scope_number(s, 1, x), *minus = td_scope_number(s, -1, x);
  td_tensor *sign = td_where(s, td_greater(s, x, zero), one, td_where(s, td_less(s, x, zero), minus, zero));
  const td_arg *along = kind.order == COLUMNS ? &before : &last, *across = kind.order == COLUMNS ? &last : &before;
  td_tensor *lines = td_sum(s, td_multiply(s, x, sign), along, true);
  return td_multiply(s, td_multiply(s, sign, shared(s, lines, across, kind.least)), c);
}

// ---- matrix_norm ----

enum { ORD, AXIS, KEEPDIMS };

static int matrix_norm_one(td_problem *p) {
  double value = 0;
  int info = norm_one(p, norm_of(&p->call->args[ORD]), &value);
  if (p->scratch && !info) td_number_put(p, p->out[0].data, 0, value);
  return info;
}

static void last_axes(const td_arg *args, int rank, int axes[TD_RANK_MAX]) { // the named ones go to the end
  int next = 0, named[2];
  for (int k = 0; k < 2; k++) named[k] = (int)(args[AXIS].ints[k] < 0 ? args[AXIS].ints[k] + rank : args[AXIS].ints[k]);
  for (int i = 0; i < rank; i++)
    if (i != named[0] && i != named[1]) axes[next++] = i;
  axes[rank - 2] = named[0];
  axes[rank - 1] = named[1];
}

static void turn(const td_call *call, td_call *turned) { // the same with the matrices in the last axes
  int axes[TD_RANK_MAX];
  td_view *out = &turned->out[0];
  turned->context = call->context;
  turned->op = call->op;
  turned->args = call->args;
  turned->in_count = turned->out_count = 1;
  turned->workspace = call->workspace;
  last_axes(call->args, call->in[0].rank, axes);
  td_view_permute(&turned->in[0], &call->in[0], axes);
  *out = call->out[0];
  out->rank = (uint8_t)(call->in[0].rank - 2);
  for (int i = 0; i < out->rank; i++) out->shape[i] = turned->in[0].shape[i];
}

static const td_solver *matrix_norm_solver(const td_call *call, td_solver *solver) {
  *solver = (td_solver){.in_axes = {2},
                        .dtype = call->out[0].dtype,
                        .cost = needs_values(norm_of(&call->args[ORD])) ? 500 : 0,
                        .solve = matrix_norm_one,
                        .fail = td_fail_convergence};
  return solver;
}

static int64_t matrix_norm_workspace(const td_call *call) {
  td_solver solver;
  td_call turned;
  turn(call, &turned);
  return td_matrices_workspace(&turned, matrix_norm_solver(call, &solver));
}

static int matrix_norm_kernel(const td_call *call) {
  td_solver solver;
  td_call turned;
  turn(call, &turned);
  return td_matrices_run(&turned, matrix_norm_solver(call, &solver));
}

static int matrix_norm_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  td_meta *out = &infer->out[0];
  bool named[TD_RANK_MAX];
  int code = td_infer_matrix(infer, 0, false);
  if (!code) code = infer_order(infer, &infer->args[ORD], "ord");
  if (!code) code = td_infer_axes(infer, &infer->args[AXIS], x->rank, named);
  if (code) return code;
  if (infer->args[AXIS].count != 2) return td_infer_fail(infer, TD_ERROR_VALUE, "axis must name two axes");
  norm kind = norm_of(&infer->args[ORD]);
  out->rank = 0;
  out->dtype = td_infer_floating_dtype(infer);
  for (int i = 0; i < x->rank; i++) {
    if (named[i] && !x->shape[i] && kind.order != FROBENIUS && kind.order != NUCLEAR)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "a matrix without elements has no such norm");
    if (!named[i] || infer->args[KEEPDIMS].i) out->shape[out->rank++] = named[i] ? 1 : x->shape[i];
  }
  return TD_OK;
}

static int matrix_norm_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0];
  int axes[TD_RANK_MAX], back[TD_RANK_MAX];
  if (!x) return TD_OK;
  last_axes(rule->args, x->rank, axes);
  for (int i = 0; i < x->rank; i++) back[axes[i]] = i;
  td_tensor *turned = td_permute(s, x, axes);
  if (!turned) return TD_OK;
  int64_t shape[TD_RANK_MAX];
  for (int i = 0; i < x->rank; i++) shape[i] = i < x->rank - 2 ? turned->shape[i] : 1;
  td_tensor *c = td_reshape(s, rule->cotangent[0], x->rank, shape), *y = td_reshape(s, rule->out[0], x->rank, shape);
  td_tensor *slope = norm_slope(s, turned, y, c, norm_of(&rule->args[ORD]));
  rule->din[0] = slope ? td_permute(s, slope, back) : NULL;
  return TD_OK;
}

static const char *matrix_norm_missing(const td_arg *args) {
  return !args || needs_values(norm_of(&args[ORD])) ? td_lapack_missing() : NULL;
}

static const td_op matrix_norm = {
    .name = "matrix_norm",
    .params = {TD_MATRIX_PARAM("x"),
               {.name = "ord", .kind = TD_PARAM_ORDER, .fallback = {.given = 1, .count = 1, .text = "fro"}},
               {.name = "axis", .kind = TD_PARAM_AXES, .fallback = {.given = 1, .count = 2, .ints = {-2, -1}}},
               {.name = "keepdims", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_OPAQUE,
    .infer = matrix_norm_infer,
    .kernel = matrix_norm_kernel,
    .workspace = matrix_norm_workspace,
    .vjp = matrix_norm_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = matrix_norm_missing,
    .doc = "Norms of matrices: \"fro\" the root of the sum of squares, \"nuc\" the sum of singular values, 2 and -2 "
           "the largest "
           "and smallest singular value, 1 and -1 the largest and smallest column sum of absolute values, inf and -inf "
           "the "
           "same of rows.\n"
           "Gradient: c x / norm, u @ vh, the pair of singular vectors, or the signs of that column or row; what ties "
           "shares; "
           "0 for the \"fro\" of zeros.",
    .example = "matrix_norm(tensor([[3., 4.], [0., 0.]])).item()  # 5.0",
    .samples = TD_SAMPLES{{"3,4", NULL, -2, 2, NULL},
                          {"3,2", "ord=\"nuc\"", -2, 2, NULL},
                          {"3,4", "ord=2", -2, 2, NULL},
                          {"3,2", "ord=-2, keepdims=True", -2, 2, NULL},
                          {"2,3,4", "ord=1", -2, 2, NULL},
                          {"3,4", "ord=-1", -2, 2, NULL},
                          {"3,4", "ord=inf, keepdims=True", -2, 2, NULL},
                          {"2,3,4", "ord=1, axis=(2, 0)", -2, 2, NULL},
                          {"2,3,4", "axis=(0, 1), keepdims=True", -2, 2, NULL},
                          {"0,3", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

// ---- cond ----

static norm cond_order(const td_call *call) {
  static const td_arg two = {.given = 1, .f = 2};
  return norm_of(call->args[0].given ? &call->args[0] : &two);
}

static int cond_one(td_problem *p) {
  norm kind = cond_order(p->call);
  int n = (int)p->in[0].rows, info = 0;
  double value = 0;
  if (needs_values(kind)) { // of the inverse they are the reciprocals
    td_decomposed d;
    info = td_decompose(p, 'N', &d);
    if (!p->scratch || info) return info;
    double largest = td_number_at(p, d.s, 0), smallest = td_number_at(p, d.s, d.count - 1), sum = 0, inverse = 0;
    for (int64_t i = 0; i < d.count; i++) {
      sum += td_number_at(p, d.s, i);
      inverse += 1 / td_number_at(p, d.s, i);
    }
    value = kind.order == NUCLEAR ? sum * inverse : kind.least ? smallest / largest : largest / smallest;
    td_number_put(p, p->out[0].data, 0, smallest == 0 && !kind.least ? INFINITY : value);
    return 0;
  }
  void *a = td_take(p, (int64_t)n * n, p->bytes), *inverse = td_take(p, (int64_t)n * n, p->bytes);
  int *pivots = td_take(p, n, sizeof *pivots);
  if (!p->scratch) return 0;
  td_matrix_load(p, &p->in[0], a);
  value = entry_norm(p, a, n, n, kind);
  for (int64_t i = 0; i < (int64_t)n * n; i++) td_number_put(p, inverse, i, i % (n + 1) == 0);
  p->lapack->getrf(&n, &n, a, &n, pivots, &info);
  if (!info) p->lapack->getrs("N", &n, &n, a, &n, pivots, inverse, &n, &info, 1);
  td_number_put(p, p->out[0].data, 0, info ? INFINITY : value * entry_norm(p, inverse, n, n, kind));
  return 0;
}
TD_SOLVER(cond, td_fail_convergence, .cost = 500, .in_axes = {2})

static int cond_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  bool spectral = !infer->args[0].given || (!infer->args[0].count && fabs(infer->args[0].f) == 2);
  int code = infer->args[0].given ? infer_order(infer, &infer->args[0], "p") : TD_OK;
  if (!code) code = td_infer_matrix(infer, 0, !spectral);
  if (code && !spectral && x->rank > 1) td_error_hint(infer->context, "p=None, 2 and -2 take matrices of any shape");
  if (code) return code;
  if (!x->shape[x->rank - 1] || !x->shape[x->rank - 2])
    return td_infer_fail(infer, TD_ERROR_SHAPE, "a matrix without elements has no condition number");
  td_infer_batch(x, &infer->out[0]);
  infer->out[0].dtype = td_infer_floating_dtype(infer);
  return TD_OK;
}

// Of s1 / sn: (u1 v1^T - (s1 / sn) un vn^T) / sn, by the slopes of both. Else of |A| |inv(A)|, the second through inv.
static int cond_vjp(td_rule *rule) {
  static const td_arg two = {.given = 1, .f = 2}, minus = {.given = 1, .f = -2};
  td_scope *s = &rule->scope;
  const td_arg *given = rule->args[0].given ? &rule->args[0] : &two;
  norm kind = norm_of(given);
  td_tensor *x = rule->in[0], *c = td_as_numbers(s, rule->cotangent[0]);
  td_arg args[] = {*given, matrix_norm.params[1 + AXIS].fallback, TD_INT_ARG(1)};
  if (kind.order == SPECTRAL) {
    args[ORD] = kind.least ? minus : two;
    td_tensor *upper = td_scope_apply(s, &matrix_norm, args, 1, x);
    args[ORD] = kind.least ? two : minus;
    td_tensor *lower = td_scope_apply(s, &matrix_norm, args, 1, x);
    td_tensor *first = norm_slope(s, x, upper, td_divide(s, c, lower), (norm){SPECTRAL, kind.least});
    td_tensor *weight = td_divide(s, td_multiply(s, c, upper), td_multiply(s, lower, lower));
    rule->din[0] = td_subtract(s, first, norm_slope(s, x, lower, weight, (norm){SPECTRAL, !kind.least}));
    return TD_OK;
  }
  td_tensor *inverse = td_inverse(s, x), *back = td_swap_last(s, inverse);
  td_tensor *size = td_scope_apply(s, &matrix_norm, args, 1, x);
  td_tensor *inverse_size = td_scope_apply(s, &matrix_norm, args, 1, inverse);
  td_tensor *direct = norm_slope(s, x, size, td_multiply(s, c, inverse_size), kind);
  td_tensor *inner = norm_slope(s, inverse, inverse_size, td_multiply(s, c, size), kind);
  rule->din[0] = td_subtract(s, direct, td_matmul(s, td_matmul(s, back, inner), back));
  return TD_OK;
}

static const td_op cond = {
    .name = "cond",
    .params = {TD_MATRIX_PARAM("x"), {.name = "p", .kind = TD_PARAM_ORDER}},
    .kind = TD_KIND_OPAQUE,
    .infer = cond_infer,
    .kernel = cond_kernel,
    .workspace = cond_workspace,
    .vjp = cond_vjp,
    .saves = TD_SAVES_IN0,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "Condition numbers: the matrix_norm of order p times that of the inverse. None and 2 are the largest "
           "singular value "
           "over the smallest, -2 the smallest over the largest, for matrices of any shape; the others are for square "
           "ones. "
           "Of a singular matrix it is inf.\nGradient: through both norms.",
    .example = "cond(tensor([[2., 0.], [0., 0.5]])).item()  # 4.0",
    .samples = TD_SAMPLES{{"3,3 +3", NULL, -1, 1, NULL},
                          {"4,2", "p=2", -1, 1, NULL},
                          {"2,3,2", "p=-2", -1, 1, NULL},
                          {"3,3 +3", "p=1", -1, 1, NULL},
                          {"3,3 +3", "p=inf", -1, 1, NULL},
                          {"3,3 +3", "p=\"fro\"", -1, 1, NULL},
                          {"3,3 +3", "p=\"nuc\"", -1, 1, NULL},
                          {"3,3 +3", "p=-1", -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

const td_op *const td_family_matrix_norm[] = {&matrix_norm, &cond, NULL};
