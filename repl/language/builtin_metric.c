// What the library's metrics do at every batch: add numbers up, count right predictions. Both look at values alone, so
// no tape sees them.
#include <math.h>

#include "engine/ops/families.h"
#include "repl/language/builtins.h"
#include "repl/language/tensors.h"

// ---- sums ----

static td_value pair_of(td_interpreter *I, double total, int64_t count) {
  return td_tuple_pack(I, 2, td_double(total), td_int(count));
}

static td_value sum_of(td_interpreter *I, td_tensor *t) {
  if (t->size == 1) {
    td_value element = td_tensor_element(I, t, 0);
    return td_is_nil(element) ? element : pair_of(I, td_number_double(element), 1);
  }
  td_scope scope;
  td_scope_open(&scope, I->context);
  td_tensor *bare = td_scope_own(&scope, td_tensor_alias(I->context, t));
  td_tensor *sum = bare ? td_sum(&scope, td_cast(&scope, bare, TD_FLOAT64), NULL, false) : NULL;
  td_value total = sum ? td_tensor_element(I, sum, 0) : td_raise_engine(I);
  td_scope_close(&scope);
  return td_is_nil(total) ? total : pair_of(I, total.f, t->size);
}

static td_value builtin_total_of(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (td_is_number(arguments[0])) return pair_of(I, td_number_double(arguments[0]), 1);
  td_tensor *t = td_tensor_of(arguments[0]);
  t = t ? td_tensor_ref(t) : td_to_tensor(I, arguments[0], -1);
  td_value pair = t ? sum_of(I, t) : TD_NIL;
  td_tensor_unref(t);
  return pair;
}

// ---- right predictions ----

#define LARGEST(T, name)                                                                             \
  static int64_t name##_largest(const T *x, int64_t n) { /* argmax: the first NaN, or largest one */ \
    int64_t best = 0;                                                                                \
    for (int64_t i = 1; i < n; i++)                                                                  \
      if (x[i] > x[best] || (isnan(x[i]) && !isnan(x[best]))) best = i;                              \
    return best;                                                                                     \
  }
LARGEST(float, single)
LARGEST(double, twofold)

static int64_t class_of(const td_tensor *scores, int64_t row, int64_t classes) {
  return scores->dtype == TD_FLOAT32 ? single_largest((const float *)scores->data + row * classes, classes)
                                     : twofold_largest((const double *)scores->data + row * classes, classes);
}

static bool is_plain(const td_tensor *t) { // floats that lie in memory one after the other
  return t && (t->dtype == TD_FLOAT32 || t->dtype == TD_FLOAT64) && td_tensor_is_contiguous(t) &&
         !(t->flags & TD_TENSOR_BATCHED);
}

static bool has_scores(const td_tensor *t) { // [..., classes]
  return is_plain(t) && t->rank > 1 && t->shape[t->rank - 1] > 1;
}

static bool has_labels(const td_tensor *t, const td_tensor *scores) { // one for each line of scores, or [..., 1]
  int rank = scores->rank - 1;
  bool column = t->rank == rank + 1 && t->shape[rank] == 1;
  return !td_dtype_is_float(t->dtype) && !(t->flags & TD_TENSOR_BATCHED) && (t->rank == rank || column) &&
         td_shape_equal(rank, t->shape, rank, scores->shape);
}

static bool has_rows(const td_tensor *t, const td_tensor *scores) { // one-hot ones, or other scores
  return has_scores(t) && td_shape_equal(t->rank, t->shape, scores->rank, scores->shape);
}

static td_value builtin_right_classes(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const td_tensor *y = td_tensor_of(arguments[0]), *scores = td_tensor_of(arguments[1]);
  if (!y || !has_scores(scores)) return TD_NONE;
  bool labels = has_labels(y, scores);
  if (!labels && !has_rows(y, scores)) return TD_NONE;
  int64_t classes = scores->shape[scores->rank - 1], rows = scores->size / classes, right = 0;
  for (int64_t i = 0; i < rows; i++)
    right += class_of(scores, i, classes) == (labels ? td_tensor_get_int(y, i) : class_of(y, i, classes));
  return td_tuple_pack(I, 2, td_int(right), td_int(rows));
}

static bool same_but_column(const td_tensor *a, const td_tensor *b) { // an axis of size 1 at the end doesn't count
  int p = a->rank && a->shape[a->rank - 1] == 1 ? a->rank - 1 : a->rank;
  int q = b->rank && b->shape[b->rank - 1] == 1 ? b->rank - 1 : b->rank;
  return td_shape_equal(p, a->shape, q, b->shape);
}

static td_value builtin_right_sides(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const td_tensor *y = td_tensor_of(arguments[0]), *scores = td_tensor_of(arguments[1]);
  bool ok = true, whole = true, single = td_truth(I, arguments[3]) == 1;
  double threshold = td_to_double(I, arguments[2], &ok);
  if (!ok) return TD_NIL;
  if (single && has_scores(scores)) return TD_NONE;
  if (!y || !is_plain(scores) || y->flags & TD_TENSOR_BATCHED || !same_but_column(y, scores)) return TD_NONE;
  int64_t right = 0;
  for (int64_t i = 0; i < scores->size; i++) {
    double score = td_tensor_get_float(scores, i);
    right += td_tensor_get_float(y, i) == (double)(score > threshold);
    whole = whole && score == floor(score);
  }
  if (single && whole) return TD_NONE;
  return td_tuple_pack(I, 2, td_int(right), td_int(scores->size));
}

const td_method td_metric_builtins[] = {
    {"_total_of", "(values)", builtin_total_of, "(the sum, how many) of a number's, tensor's or list's values."},
    {"_right_classes", "(y_true, y_pred)", builtin_right_classes,
     "(how many lines of scores y_pred are largest at the label, or at the class of the one-hot line, y_true; how many "
     "lines).\nNone where the two are not such."},
    {"_right_sides", "(y_true, y_pred, threshold, single)", builtin_right_sides,
     "(how many scores y_pred are on the side of threshold where the label, 1 or 0, is; how many scores).\n"
     "None where the two don't have one shape; with single=True, where y_pred may be labels or scores of classes."},
    {NULL, NULL, NULL, NULL}};
