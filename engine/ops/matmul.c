// The product of matrices and vectors, NumPy's matmul. Transposed and sliced operands go to the product as they lie;
// only operands without a unit stride are copied. Batches are one product where they can be folded, else they run side
// by side.
#include "engine/base/memory.h"
#include "engine/device/cpu/blas.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

enum { BATCH_WORK = 1 << 19 }; // multiplications up to which a batch's products are run whole, many to a chunk

// ---- shapes ----

// An operand as matrices: a vector is one row (left) or one column (right).
static void matrix_of(const td_meta *meta, bool left, int64_t *rows, int64_t *columns) {
  if (meta->rank == 1) {
    *rows = left ? 1 : meta->shape[0];
    *columns = left ? meta->shape[0] : 1;
  } else {
    *rows = meta->shape[meta->rank - 2];
    *columns = meta->shape[meta->rank - 1];
  }
}

static int matmul_mismatch(td_infer *infer, int64_t left, int64_t right) {
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  int64_t a_rows, a_columns, b_rows, b_columns;
  int code =
      td_infer_fail(infer, TD_ERROR_SHAPE, "inner sizes differ: %lld and %lld", (long long)left, (long long)right);
  matrix_of(a, true, &a_rows, &a_columns);
  matrix_of(b, false, &b_rows, &b_columns);
  if (b->rank >= 2 && b_columns == a_columns)
    td_error_hint(infer->context, "a @ b.%s fits", b->rank == 2 ? "T" : "swapaxes(-1, -2)");
  else if (a->rank >= 2 && a_rows == b_rows)
    td_error_hint(infer->context, "a.%s @ b fits", a->rank == 2 ? "T" : "swapaxes(-1, -2)");
  else if (a->rank >= 2 && b->rank >= 2 && b_columns == a_rows) td_error_hint(infer->context, "b @ a fits");
  return code;
}

static int matmul_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  td_meta *out = &infer->out[0];
  int64_t m, k, k_right, n, shape[TD_RANK_MAX];
  if (!a->rank || !b->rank) {
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "operand %s is 0-d", a->rank ? "b" : "a");
    td_error_hint(infer->context, "a * b multiplies by a number");
    return code;
  }
  matrix_of(a, true, &m, &k);
  matrix_of(b, false, &k_right, &n);
  if (k != k_right) return matmul_mismatch(infer, k, k_right);
  int batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0, rank, axis;
  if (!td_shape_broadcast(batch_a, a->shape, batch_b, b->shape, &rank, shape, &axis))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "batch axes don't broadcast: axis %d has %lld and %lld", axis,
                         (long long)a->shape[axis - rank + batch_a], (long long)b->shape[axis - rank + batch_b]);
  for (int i = 0; i < rank; i++) out->shape[i] = shape[i];
  if (a->rank > 1) out->shape[rank++] = m;
  if (b->rank > 1) out->shape[rank++] = n;
  out->rank = (uint8_t)rank;
  out->dtype = td_dtype_promote(a->dtype, b->dtype);
  return TD_OK;
}

// ---- kernel ----

typedef struct operand { // matrices that td_gemm can read
  const char *data;
  bool transposed;
  int64_t leading;
  int64_t strides[TD_RANK_MAX]; // of the batch axes of the result, in elements
  td_flat flat;
} operand;

typedef struct batch {
  td_pool *pool;
  uint8_t dtype;
  int rank; // batch axes
  int64_t shape[TD_RANK_MAX], count, m, n, k, per_chunk;
  operand a, b;
  char *out;
  atomic_bool failed;
} batch;

// How td_gemm can read a rows x columns matrix with these strides: 0 not at all, 1 as it lies, 2 transposed.
static int reading_of(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if ((columns == 1 || column == 1) && (rows == 1 || row >= columns)) return 1;
  if ((rows == 1 || row == 1) && (columns == 1 || column >= rows)) return 2;
  return 0;
}

static int64_t leading_of(int64_t stride, int64_t count, int64_t least) { // stride means nothing on an axis of one
  int64_t leading = count == 1 || stride < least ? least : stride;
  return leading < 1 ? 1 : leading;
}

// Fills in an operand. Where the inner strides don't suit, or the dtype is another, its elements are copied, those of
// broadcast axes once.
static int operand_open(const td_call *call, const td_view *view, bool left, batch *w, operand *o) {
  td_view v = *view;
  if (v.rank == 1) { // one row or one column
    int at = left ? 0 : 1;
    v.shape[1 - at] = view->shape[0];
    v.strides[1 - at] = view->strides[0];
    v.shape[at] = 1;
    v.strides[at] = view->shape[0];
    v.rank = 2;
  }
  int batch_rank = v.rank - 2;
  int64_t rows = v.shape[v.rank - 2], columns = v.shape[v.rank - 1];
  int reading = v.dtype == w->dtype ? reading_of(rows, columns, v.strides[v.rank - 2], v.strides[v.rank - 1]) : 0;
  if (!reading) {
    td_view once = v;
    for (int i = 0; i < batch_rank; i++)
      if (!once.strides[i]) once.shape[i] = 1;
    once.size = td_shape_size(once.rank, once.shape);
    int code = td_flat_open(call, &once, w->dtype, &o->flat);
    if (code) return code;
    int64_t stride = rows * columns;
    for (int i = batch_rank; i-- > 0;) {
      v.strides[i] = once.shape[i] == 1 ? 0 : stride;
      stride *= once.shape[i];
    }
    v.data = (char *)o->flat.data;
    v.strides[v.rank - 2] = columns;
    v.strides[v.rank - 1] = 1;
    reading = 1;
  }
  o->data = v.data;
  o->transposed = reading == 2;
  o->leading = reading == 2 ? leading_of(v.strides[v.rank - 1], columns, rows)
                            : leading_of(v.strides[v.rank - 2], rows, columns);
  for (int i = 0; i < w->rank; i++) {
    int from = i - (w->rank - batch_rank);
    o->strides[i] = from < 0 || v.shape[from] == 1 ? 0 : v.strides[from];
  }
  return TD_OK;
}

static void batch_product(batch *w, int64_t index) {
  int64_t bytes = td_dtype_bytes(w->dtype), at_a = 0, at_b = 0, rest = index;
  for (int i = w->rank; i-- > 0;) {
    at_a += rest % w->shape[i] * w->a.strides[i];
    at_b += rest % w->shape[i] * w->b.strides[i];
    rest /= w->shape[i];
  }
  if (!td_gemm(w->pool, w->dtype, w->a.transposed, w->b.transposed, w->m, w->n, w->k, w->a.data + at_a * bytes,
               w->a.leading, w->b.data + at_b * bytes, w->b.leading, w->out + index * w->m * w->n * bytes, w->n))
    atomic_store(&w->failed, true);
}

static void batch_chunk(void *argument, int64_t chunk) {
  batch *w = argument;
  int64_t first = chunk * w->per_chunk, last = first + w->per_chunk;
  for (int64_t i = first; i < last && i < w->count; i++) batch_product(w, i);
}

// Batches of a that lie behind each other, times one b, are one tall matrix.
static void batch_fold(batch *w) {
  if (w->a.transposed) return;
  int64_t rows = w->m;
  for (int i = w->rank; i-- > 0;) {
    if (w->shape[i] == 1) continue;
    if (w->b.strides[i] || w->a.strides[i] != rows * w->a.leading) return;
    rows *= w->shape[i];
  }
  w->m = rows;
  w->rank = 0;
  w->count = 1;
}

static void batch_run(batch *w) {
  double work = (double)w->m * (double)w->n * (double)w->k;
  batch_fold(w);
  if (w->count > 1 && work <= BATCH_WORK) {
    w->per_chunk = (int64_t)(BATCH_WORK / (work + BATCH_WORK / 1024));
    if (w->per_chunk < 1) w->per_chunk = 1;
    td_pool_run(w->pool, (w->count + w->per_chunk - 1) / w->per_chunk, batch_chunk, w);
  } else
    for (int64_t i = 0; i < w->count; i++) batch_product(w, i);
}

static int matmul_kernel(const td_call *call) {
  const td_view *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  if (!out->size) return TD_OK;
  batch w = {.pool = call->context->pool, .dtype = out->dtype, .count = 1, .out = out->data};
  w.m = a->rank == 1 ? 1 : a->shape[a->rank - 2];
  w.k = a->shape[a->rank - 1];
  w.n = b->rank == 1 ? 1 : b->shape[b->rank - 1];
  w.rank = out->rank - (a->rank > 1) - (b->rank > 1);
  for (int i = 0; i < w.rank; i++) {
    w.shape[i] = out->shape[i];
    w.count *= out->shape[i];
  }
  int code = operand_open(call, a, true, &w, &w.a);
  if (!code) code = operand_open(call, b, false, &w, &w.b);
  if (!code) {
    batch_run(&w);
    if (atomic_load(&w.failed)) code = td_error_memory(call->context, "matmul", td_memory_failed());
  }
  td_flat_close(&w.a.flat);
  td_flat_close(&w.b.flat);
  return code;
}

// ---- gradients ----

// dA = C B^T, dB = A^T C, with vectors as matrices of one row or column.
static int matmul_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_tensor *a = rule->in[0], *b = rule->in[1];
  const td_meta *out = &rule->out_meta[0];
  int64_t shape[TD_RANK_MAX];
  int rank = 0;
  for (int i = 0; i < out->rank - (a->rank > 1) - (b->rank > 1); i++) shape[rank++] = out->shape[i];
  int batch_rank = rank;
  shape[rank++] = a->rank > 1 ? a->shape[a->rank - 2] : 1;
  shape[rank++] = b->rank > 1 ? b->shape[b->rank - 1] : 1;
  td_tensor *c = rank == out->rank ? rule->cotangent[0] : td_reshape(s, rule->cotangent[0], rank, shape);
  int64_t m = shape[rank - 2], n = shape[rank - 1], k = a->shape[a->rank - 1];
  if (rule->needs[0]) {
    td_tensor *right = b->rank > 1 ? td_swap_last(s, rule->in[1]) : td_reshape(s, rule->in[1], 2, (int64_t[]){1, k});
    td_tensor *da = td_matmul(s, c, right); // [..., m, k]
    shape[batch_rank] = k;
    rule->din[0] = a->rank > 1 ? da : td_reshape(s, da, batch_rank + 1, shape);
  }
  if (!rule->needs[1]) return TD_OK;
  if (b->rank <= 2 && batch_rank) { // one b for all batches: their rows are rows of one product
    int64_t rows = m;
    for (int i = 0; i < batch_rank; i++) rows *= out->shape[i];
    bool whole = a->rank == batch_rank + 2;
    for (int i = 0; i < batch_rank && whole; i++) whole = a->shape[i] == out->shape[i];
    if (whole) {
      td_tensor *left = td_swap_last(s, td_reshape(s, rule->in[0], 2, (int64_t[]){rows, k}));
      td_tensor *db = td_matmul(s, left, td_reshape(s, c, 2, (int64_t[]){rows, n}));
      rule->din[1] = b->rank > 1 ? db : td_reshape(s, db, 1, (int64_t[]){k});
      return TD_OK;
    }
  }
  td_tensor *left = a->rank > 1 ? td_swap_last(s, rule->in[0]) : td_reshape(s, rule->in[0], 2, (int64_t[]){k, 1});
  td_tensor *db = td_matmul(s, left, c); // [..., k, n]
  shape[batch_rank] = k;
  rule->din[1] = b->rank > 1 ? db : td_reshape(s, db, batch_rank + 1, shape);
  return TD_OK;
}

static const td_op matmul = {
    .name = "matmul",
    .params = {{.name = "a", .kind = TD_PARAM_TENSOR}, {.name = "b", .kind = TD_PARAM_TENSOR}},
    .kind = TD_KIND_GEMM,
    .method = true,
    .infer = matmul_infer,
    .kernel = matmul_kernel,
    .vjp = matmul_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc = "Product of matrices, a @ b: [..., m, k] times [..., k, n] gives [..., m, n].\n"
           "A 1-d operand is a row on the left and a column on the right, and its axis is dropped from the result. "
           "Axes before "
           "the last two are batches and broadcast.\n"
           "Gradient with cotangent c: c @ b.T for a, a.T @ c for b, summed over axes that were broadcast.",
    .example = "matmul(tensor([[1., 2.], [3., 4.]]), tensor([10., 1.])).tolist()  # [12.0, 34.0]",
    .source = "NumPy's matmul",
    .samples = TD_SAMPLES{{"3,4; 4,2", NULL, -2, 2, NULL},
                          {"4; 4", NULL, -2, 2, NULL},
                          {"3,4; 4", NULL, -2, 2, NULL},
                          {"4; 4,3", NULL, -2, 2, NULL},
                          {"2,3,4; 4,2", NULL, -2, 2, NULL},
                          {"2,1,3,4; 3,4,2", NULL, -2, 2, NULL},
                          {"2,3,4; 4", NULL, -2, 2, NULL},
                          {"4; 2,4,3", NULL, -2, 2, NULL},
                          {"3,0; 0,2", NULL, -2, 2, NULL},
                          {"0,4; 4,2", NULL, -2, 2, NULL},
                          {"3,4; 4,2", NULL, -9, 9, "int64; int64"},
                          TD_SAMPLES_END},
};

td_tensor *td_matmul(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &matmul, NULL, 2, a, b); }

const td_op *const td_family_matmul[] = {&matmul, NULL};
