// The batch of a matrix op, and the small builders that derivatives of matrix ops share.
#include "engine/ops/matrices.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/detached.h"
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

enum {
  CHUNKS = 16, // at most, each with its own scratch
  CHUNK_WORK = 1 << 16, // rough number of multiplications below which a batch is not cut
  CALL_WORK = 1 << 10, // what a problem costs beside them
  ALIGNMENT = 64,
  NO_MEMORY = TD_TOO_LARGE - 1, // an info as well
};

#define APART_FROM 1e11 // picoseconds that a problem takes, from which on it is solved apart

typedef struct batch {
  const td_call *call;
  const td_solver *solver;
  int rank; // batch axes
  int64_t shape[TD_RANK_MAX], count, chunks, per_chunk, scratch_bytes;
  int64_t in_strides[TD_PROBLEM_INPUTS][TD_RANK_MAX];
  td_problem first; // of index 0
  int refused; // an info that was there before anything was solved; 0: none
  bool apart; // each is solved on a thread of its own
  _Atomic(int64_t) failed; // index << 32 | info of the first problem that failed; INT64_MAX: none
} batch;

static int64_t aligned(int64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }
static int bounded(int count, int most) { return count < most ? count : most; }

static void matrix_of(const td_view *view, int axes, td_matrix *m) {
  int rank = view->rank;
  *m = (td_matrix){.data = view->data, .dtype = view->dtype, .rows = 1, .columns = 1};
  if (axes == 2) {
    m->rows = view->shape[rank - 2];
    m->row = view->strides[rank - 2];
    m->columns = view->shape[rank - 1];
    m->column = view->strides[rank - 1];
  } else if (axes == 1) {
    m->rows = view->shape[rank - 1];
    m->row = view->strides[rank - 1];
  }
}

const char *td_needs_lapack(const td_arg *args) {
  (void)args;
  return td_lapack_missing();
}

static void ask_scratch(batch *b) {
  td_problem p = b->first;
  p.scratch = NULL;
  p.taken = 0;
  b->refused = b->solver->solve(&p);
  b->scratch_bytes = p.taken;
}

static double steps_of(const td_problem *p) { // n^3 for one n x n matrix, or with as many right sides as columns
  double rows = (double)p->in[0].rows, columns = (double)p->in[0].columns;
  return rows * columns * (rows < columns ? rows : columns) + rows * columns * (double)p->in[1].columns;
}

static void batch_open(const td_call *call, const td_solver *solver, batch *b) {
  const td_view *out = &call->out[0];
  td_problem *p = &b->first;
  *b = (batch){.call = call, .solver = solver, .count = 1, .failed = INT64_MAX};
  b->rank = out->rank - solver->out_axes[0];
  for (int i = 0; i < b->rank; i++) b->count *= b->shape[i] = out->shape[i];
  p->call = call;
  p->dtype = solver->dtype;
  p->bytes = td_dtype_bytes(solver->dtype);
  p->lapack = td_lapack_of(solver->dtype);
  double work = CALL_WORK;
  for (int k = 0; k < bounded(call->in_count, TD_PROBLEM_INPUTS); k++) {
    const td_view *in = &call->in[k];
    int leading = in->rank - solver->in_axes[k];
    matrix_of(in, solver->in_axes[k], &p->in[k]);
    work += 10 * (double)p->in[k].rows * (double)p->in[k].columns * (double)p->in[k].columns;
    for (int i = 0; i < b->rank; i++) {
      int from = i - (b->rank - leading);
      b->in_strides[k][i] = from < 0 || in->shape[from] == 1 ? 0 : in->strides[from];
    }
  }
  for (int k = 0; k < bounded(call->out_count, TD_PROBLEM_OUTPUTS); k++)
    matrix_of(&call->out[k], solver->out_axes[k], &p->out[k]);
  double chunks = (double)b->count * work / CHUNK_WORK;
  b->chunks = chunks < 1 ? 1 : chunks < CHUNKS ? (int64_t)chunks : CHUNKS;
  if (b->chunks > b->count) b->chunks = b->count;
  b->per_chunk = b->chunks ? (b->count + b->chunks - 1) / b->chunks : 0;
  if (b->count) ask_scratch(b);
  b->apart = solver->cost * steps_of(p) >= APART_FROM;
}

static void problem_at(const batch *b, int64_t index, td_problem *p) {
  *p = b->first;
  for (int k = 0; k < bounded(b->call->in_count, TD_PROBLEM_INPUTS); k++) {
    int64_t at = 0, rest = index;
    for (int i = b->rank; i-- > 0; rest /= b->shape[i]) at += rest % b->shape[i] * b->in_strides[k][i];
    p->in[k].data += at * td_dtype_bytes(p->in[k].dtype);
  }
  for (int k = 0; k < bounded(b->call->out_count, TD_PROBLEM_OUTPUTS); k++)
    p->out[k].data += index * p->out[k].rows * p->out[k].columns * td_dtype_bytes(p->out[k].dtype);
}

static void note_failure(batch *b, int64_t index, int info) {
  int64_t mine = index << 32 | (uint32_t)info, now = atomic_load(&b->failed);
  while (mine < now && !atomic_compare_exchange_weak(&b->failed, &now, mine)) continue;
}

// ---- apart ----

typedef struct apart { // a problem on copies of all that it reads and writes, which follow
  td_problem p;
  td_call call; // its op and arguments
  td_arg args[TD_PARAM_MAX];
  int (*solve)(td_problem *);
  int info;
} apart;

static int64_t bytes_of(const td_matrix *m) { return m->rows * m->columns * td_dtype_bytes(m->dtype); }

static int64_t apart_bytes(const batch *b) {
  int64_t bytes = aligned(sizeof(apart)) + b->scratch_bytes + ALIGNMENT;
  for (int k = 0; k < TD_PROBLEM_INPUTS; k++) bytes += aligned(bytes_of(&b->first.in[k]));
  for (int k = 0; k < TD_PROBLEM_OUTPUTS; k++) bytes += aligned(bytes_of(&b->first.out[k]));
  return bytes;
}

// Line by line, in the order in which the matrix lies, as far as the pool isn't stopped. m is the copy then.
static void move_to(const td_pool *pool, char *to, td_matrix *m) {
  int bytes = td_dtype_bytes(m->dtype);
  bool turned = llabs(m->column) > llabs(m->row);
  int64_t lines = turned ? m->columns : m->rows, length = turned ? m->rows : m->columns;
  int64_t next = turned ? m->column : m->row, step = turned ? m->row : m->column;
  for (int64_t i = 0; i < lines && !td_pool_stopped(pool); i++)
    td_elements_copy(NULL, to + i * length * bytes, m->data + i * next * bytes, bytes, 1, &length, &step);
  m->data = to;
  m->row = turned ? 1 : length;
  m->column = turned ? length : 1;
}

static void apart_fill(apart *a, const batch *b, const td_problem *p) {
  const td_op *op = b->call->op;
  char *at = (char *)a + aligned(sizeof *a);
  a->p = *p;
  a->p.call = &a->call;
  a->call.op = op;
  a->call.args = a->args;
  a->solve = b->solver->solve;
  if (b->call->args) memcpy(a->args, b->call->args, (size_t)td_op_arg_count(op) * sizeof *a->args);
  for (int k = 0; k < TD_PROBLEM_INPUTS; k++) {
    move_to(b->call->context->pool, at, &a->p.in[k]);
    at += aligned(bytes_of(&a->p.in[k]));
  }
  for (int k = 0; k < TD_PROBLEM_OUTPUTS; k++) {
    a->p.out[k].data = at;
    at += aligned(bytes_of(&a->p.out[k]));
  }
  a->p.scratch = at;
}

static void apart_work(void *block) {
  apart *a = block;
  a->info = a->solve(&a->p);
}

static int solve_apart(const batch *b, const td_problem *p) {
  apart *a = td_memory_new((size_t)apart_bytes(b));
  if (!a) return NO_MEMORY;
  apart_fill(a, b, p);
  if (!td_detached_run(b->call->context->pool, apart_work, a)) return 0; // stopped: nobody reads the results
  for (int k = 0; k < TD_PROBLEM_OUTPUTS; k++)
    if (p->out[k].data) memcpy(p->out[k].data, a->p.out[k].data, (size_t)bytes_of(&p->out[k]));
  int info = a->info;
  td_memory_free(a);
  return info;
}

// ---- the batch ----

static void batch_chunk(void *argument, int64_t chunk) {
  batch *b = argument;
  int64_t first = chunk * b->per_chunk, last = first + b->per_chunk;
  for (int64_t i = first; i < last && i < b->count && !td_pool_stopped(b->call->context->pool); i++) {
    td_problem p;
    problem_at(b, i, &p);
    p.scratch = (char *)b->call->workspace + chunk * b->scratch_bytes;
    int info = b->apart ? solve_apart(b, &p) : b->solver->solve(&p);
    if (info) note_failure(b, i, info);
  }
}

int64_t td_matrices_workspace(const td_call *call, const td_solver *solver) {
  batch b;
  batch_open(call, solver, &b);
  // Some even where no scratch is taken: its address says "run".
  return (b.apart ? 0 : b.chunks * b.scratch_bytes) + ALIGNMENT;
}

static void print_place(const batch *b, int64_t index, char *text, size_t size) { // "a[2, 0]"
  int64_t at[TD_RANK_MAX] = {0};
  for (int i = b->rank; i-- > 0; index /= b->shape[i]) at[i] = index % b->shape[i];
  int length = snprintf(text, size, "%s", b->call->op->params[0].name);
  for (int i = 0; i < b->rank; i++)
    length += snprintf(text + length, size - (size_t)length, i ? ", %lld" : "[%lld", (long long)at[i]);
  if (b->rank) snprintf(text + length, size - (size_t)length, "]");
}

int td_matrices_run(const td_call *call, const td_solver *solver) {
  batch b;
  batch_open(call, solver, &b);
  if (!b.count) return TD_OK;
  if (b.refused) note_failure(&b, 0, b.refused);
  else td_pool_run(call->context->pool, b.chunks, batch_chunk, &b);
  int64_t failed = atomic_load(&b.failed);
  if (failed == INT64_MAX) return TD_OK;
  char place[240];
  print_place(&b, failed >> 32, place, sizeof place);
  int info = (int)(uint32_t)failed;
  if (info == NO_MEMORY) return td_error_memory(call->context, call->op->name, apart_bytes(&b));
  if (info == TD_NOT_FINITE)
    return td_error_set(call->context, TD_ERROR_VALUE, "%s: %s has a NaN or an infinity", call->op->name, place);
  if (info == TD_TOO_LARGE)
    return td_error_set(call->context, TD_ERROR_VALUE, "%s: %s is too large for LAPACK, whose sizes have 32 bits",
                        call->op->name, place);
  if (info < 0)
    return td_error_set(call->context, TD_ERROR_INTERNAL, "%s: LAPACK refused its argument %d", call->op->name, -info);
  return solver->fail(call, place, info);
}

// ---- what a problem is solved with ----

void *td_take(td_problem *p, int64_t count, int64_t bytes) {
  char *at = p->scratch ? p->scratch + p->taken : NULL;
  p->taken += aligned(count * bytes);
  return at;
}

int td_work_length(const td_problem *p, const double *size) {
  double length = td_number_at(p, size, 0);
  if (p->dtype == TD_FLOAT32) length = ceil(length * (1 + (double)FLT_EPSILON));
  return length < 1 ? 1 : length < INT32_MAX ? (int)length : INT32_MAX;
}

bool td_work_fits(const td_problem *p) { // gesdd takes most: 4 n^2 and some rows and columns for blocks
  double m = (double)p->in[0].rows, n = (double)p->in[0].columns, k = m < n ? m : n;
  return 4 * k * (k + 2) + 256 * (m + n) < INT32_MAX;
}

void td_matrix_load(const td_problem *p, const td_matrix *m, void *columns) {
  int from = td_dtype_bytes(m->dtype);
  if (m->dtype == p->dtype) {
    td_elements_copy(NULL, columns, m->data, from, 2, (int64_t[]){m->columns, m->rows}, (int64_t[]){m->column, m->row});
    return;
  }
  for (int64_t j = 0; j < m->columns; j++)
    td_cast_run((char *)columns + j * m->rows * p->bytes, p->dtype, m->data + j * m->column * from, m->dtype,
                m->row * from, m->rows, false);
}

void td_matrix_store(const td_problem *p, const td_matrix *m, const void *columns, int64_t leading) {
  td_elements_copy(NULL, m->data, columns, p->bytes, 2, (int64_t[]){m->rows, m->columns}, (int64_t[]){1, leading});
}

double td_number_at(const td_problem *p, const void *numbers, int64_t index) {
  return p->dtype == TD_FLOAT32 ? (double)((const float *)numbers)[index] : ((const double *)numbers)[index];
}

void td_number_put(const td_problem *p, void *numbers, int64_t index, double value) {
  if (p->dtype == TD_FLOAT32) ((float *)numbers)[index] = (float)value;
  else ((double *)numbers)[index] = value;
}

bool td_all_finite(const td_problem *p, const void *numbers, int64_t count) {
  double sum = 0; // stays 0 as long as all are finite
  for (int64_t i = 0; i < count; i++) sum += td_number_at(p, numbers, i) * 0;
  return sum == 0;
}

static void fill_identity(const td_problem *p, void *columns, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m * n; i++) td_number_put(p, columns, i, i % m == i / m);
}

bool td_sign_fix(const td_problem *p, void *column, int64_t count) {
  double largest = 0, extreme = 0;
  for (int64_t i = 0; i < count; i++) {
    double x = td_number_at(p, column, i);
    if (fabs(x) > largest * (1 + 1e-3)) { // of nearly equal ones the first, so that rounding doesn't choose
      largest = fabs(x);
      extreme = x;
    }
  }
  for (int64_t i = 0; extreme < 0 && i < count; i++) td_number_put(p, column, i, -td_number_at(p, column, i));
  return extreme < 0;
}

static void fix_signs(const td_problem *p, const td_decomposed *d) {
  for (int64_t k = 0; k < d->count; k++) {
    if (!td_sign_fix(p, (char *)d->u + k * d->rows * p->bytes, d->rows)) continue;
    for (int64_t j = 0; j < d->columns; j++) {
      int64_t at = j * d->vt_rows + k;
      td_number_put(p, d->vt, at, -td_number_at(p, d->vt, at));
    }
  }
}

int td_decompose(td_problem *p, char job, td_decomposed *d) {
  int m = (int)p->in[0].rows, n = (int)p->in[0].columns, k = m < n ? m : n, info = 0, query = -1;
  int leading = m < 1 ? 1 : m;
  double size = 0;
  *d = (td_decomposed){.rows = m, .columns = n, .count = k};
  if (!td_work_fits(p)) return TD_TOO_LARGE;
  d->u_columns = job == 'N' ? 0 : job == 'S' ? k : m;
  d->vt_rows = job == 'N' ? 0 : job == 'S' ? k : n;
  int vt_leading = d->vt_rows < 1 ? 1 : d->vt_rows;
  void *a = td_take(p, (int64_t)m * n, p->bytes);
  d->s = td_take(p, k, p->bytes);
  d->u = td_take(p, (int64_t)m * d->u_columns, p->bytes);
  d->vt = td_take(p, (int64_t)d->vt_rows * n, p->bytes);
  int *integers = td_take(p, 8 * (int64_t)k, sizeof *integers);
  if (k)
    p->lapack->gesdd(&job, &m, &n, a, &leading, d->s, d->u, &leading, d->vt, &vt_leading, &size, &query, integers,
                     &info, 1);
  int length = k ? td_work_length(p, &size) : 0;
  void *work = td_take(p, length, p->bytes);
  if (!p->scratch) return 0;
  if (!k) {
    fill_identity(p, d->u, m, d->u_columns);
    fill_identity(p, d->vt, d->vt_rows, n);
    return 0;
  }
  td_matrix_load(p, &p->in[0], a);
  if (!td_all_finite(p, a, (int64_t)m * n)) return TD_NOT_FINITE;
  p->lapack->gesdd(&job, &m, &n, a, &leading, d->s, d->u, &leading, d->vt, &vt_leading, work, &length, integers, &info,
                   1);
  if (!info && job != 'N') fix_signs(p, d);
  return info;
}

int td_fail_convergence(const td_call *call, const char *matrix, int info) {
  return td_error_set(call->context, TD_ERROR_VALUE, "%s: the iteration for %s did not converge (%d left)",
                      call->op->name, matrix, info);
}

// ---- infer rules ----

int td_infer_matrix(td_infer *infer, int input, bool square) {
  const td_meta *in = &infer->in[input];
  const char *name = infer->op->params[input].name;
  if (in->rank < 2)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "%s must be a matrix or a batch of them, and has rank %d", name,
                         in->rank);
  int64_t rows = in->shape[in->rank - 2], columns = in->shape[in->rank - 1];
  if (square && rows != columns)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the matrices of %s must be square, and are %lld x %lld", name,
                         (long long)rows, (long long)columns);
  if (rows > INT32_MAX || columns > INT32_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the matrices of %s have a side beyond %d", name, INT32_MAX);
  return TD_OK;
}

uint8_t td_infer_floating_dtype(const td_infer *infer) {
  uint8_t dtype = infer->in[0].dtype;
  for (int i = 1; i < infer->in_count; i++) dtype = td_dtype_promote(dtype, infer->in[i].dtype);
  return td_dtype_is_float(dtype) ? dtype : TD_FLOAT32;
}

void td_infer_batch(const td_meta *in, td_meta *out) {
  out->rank = (uint8_t)(in->rank - 2);
  for (int i = 0; i < out->rank; i++) out->shape[i] = in->shape[i];
}

void td_meta_append(td_meta *meta, int64_t size) { meta->shape[meta->rank++] = size; }

// ---- builders ----

int td_scope_apply_all(td_scope *s, const td_op *op, const td_arg *args, int count, td_tensor *const *in,
                       td_tensor **out) {
  for (int i = 0; i < count; i++)
    if (!in[i]) s->failed = true;
  if (s->failed) return s->context->error.code;
  td_tensor *made[TD_OUTPUT_MAX];
  int code = td_op_apply(s->context, op, in, count, args, made);
  if (code) s->failed = true;
  for (int k = 0; !code && k < td_op_outputs(op, made); k++) out[k] = td_scope_own(s, made[k]);
  return code;
}

td_tensor *td_scaled(td_scope *s, td_tensor *x, double factor) {
  return td_multiply(s, x, td_scope_number(s, factor, x));
}

static td_tensor *reshaped(td_scope *s, td_tensor *x, int kept, int64_t more, int64_t last) { // more, last < 0: none
  int64_t shape[TD_RANK_MAX + 2];
  if (!x) return NULL;
  int rank = 0;
  for (; rank < kept; rank++) shape[rank] = x->shape[rank];
  if (more >= 0) shape[rank++] = more;
  if (last >= 0) shape[rank++] = last;
  return td_reshape(s, x, rank, shape);
}

td_tensor *td_as_rows(td_scope *s, td_tensor *v) {
  return v ? reshaped(s, v, v->rank - 1, 1, v->shape[v->rank - 1]) : NULL;
}
td_tensor *td_as_columns(td_scope *s, td_tensor *v) { return v ? reshaped(s, v, v->rank, 1, -1) : NULL; }
td_tensor *td_as_numbers(td_scope *s, td_tensor *v) { return v ? reshaped(s, v, v->rank, 1, 1) : NULL; }
td_tensor *td_last_dropped(td_scope *s, td_tensor *x) { return x ? reshaped(s, x, x->rank - 1, -1, -1) : NULL; }

td_tensor *td_columns_scaled(td_scope *s, td_tensor *x, td_tensor *v) { return td_multiply(s, x, td_as_rows(s, v)); }
td_tensor *td_rows_scaled(td_scope *s, td_tensor *x, td_tensor *v) { return td_multiply(s, x, td_as_columns(s, v)); }

td_tensor *td_symmetric_part(td_scope *s, td_tensor *x) {
  return x ? td_scaled(s, td_add(s, x, td_swap_last(s, x)), 0.5) : NULL;
}

static td_tensor *part(td_scope *s, td_tensor *x, int axis, int64_t first, int64_t count) {
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX], size[TD_RANK_MAX];
  if (!x) return NULL;
  for (int i = 0; i < x->rank; i++) {
    step[i] = 1;
    size[i] = x->shape[i];
  }
  start[x->rank + axis] = first;
  size[x->rank + axis] = count;
  return td_slice_view(s, x, start, step, size);
}

td_tensor *td_columns_of(td_scope *s, td_tensor *x, int64_t first, int64_t count) {
  return part(s, x, -1, first, count);
}
td_tensor *td_rows_of(td_scope *s, td_tensor *x, int64_t first, int64_t count) { return part(s, x, -2, first, count); }

static td_tensor *extended(td_scope *s, td_tensor *x, int axis, int64_t length) {
  if (!x || x->shape[x->rank + axis] == length) return x;
  td_meta more = td_tensor_meta(x);
  more.shape[x->rank + axis] = length - x->shape[x->rank + axis];
  return td_concat(s, x, td_scope_filled(s, 0, &more), axis);
}

td_tensor *td_pad_matrix(td_scope *s, td_tensor *x, int64_t rows, int64_t columns) {
  return extended(s, extended(s, x, -2, rows), -1, columns);
}

td_tensor *td_sum_of_matrix(td_scope *s, td_tensor *x) {
  return td_sum(s, x, &(td_arg){.given = 1, .count = 2, .ints = {-2, -1}}, true);
}
