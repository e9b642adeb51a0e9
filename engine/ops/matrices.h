// Ops on the matrices of the last two axes, each for itself: what they share. A kernel describes one problem, and
// td_matrices_run solves those of the whole batch, on the pool.
//  1. The leading axes of inputs broadcast to those of the results; the last in_axes and out_axes are the problem's.
//  2. solve is called once with scratch NULL, to learn how much it takes, and returns as soon as it has taken all.
//  3. Scratch belongs to a chunk of the batch; chunks are cut by shape alone.
//  4. Problems that take long are solved on threads of their own, on copies, so that Ctrl-C needs not wait for them
//     (engine/base/detached.h). So solve reads of p->call the arguments, and nothing of its context.
#ifndef TD_OPS_MATRICES_H
#define TD_OPS_MATRICES_H
#include "engine/device/cpu/lapack.h"
#include "engine/ops/op.h"

enum { TD_PROBLEM_INPUTS = 2, TD_PROBLEM_OUTPUTS = 4 };

typedef struct td_matrix { // a vector is one column, a number one row and column
  char *data;
  uint8_t dtype;
  int64_t rows, columns;
  int64_t row, column; // strides in elements
} td_matrix;

typedef struct td_problem {
  const td_call *call;
  const td_lapack *lapack; // of dtype
  uint8_t dtype; // computed in: the first result's that is floating
  int bytes; // of dtype
  td_matrix in[TD_PROBLEM_INPUTS], out[TD_PROBLEM_OUTPUTS]; // results are row-major without gaps
  char *scratch;
  int64_t taken;
} td_problem;

typedef struct td_solver {
  uint8_t in_axes[TD_PROBLEM_INPUTS], out_axes[TD_PROBLEM_OUTPUTS];
  uint8_t dtype; // computed in
  int16_t cost; // picoseconds, roughly, for each of n^3 where the matrix is n x n in float64
  int (*solve)(td_problem *); // 0: done. Else what fail is told, as LAPACK's info
  int (*fail)(const td_call *, const char *matrix, int info); // sets the error; matrix: "a", or "a[2, 0]" in a batch
} td_solver;

int64_t td_matrices_workspace(const td_call *call, const td_solver *solver);
int td_matrices_run(const td_call *call, const td_solver *solver);
// name_workspace and name_kernel of a row from name_one, failure and the numbers of axes.
#define TD_SOLVER(name, failure, ...)                                                                   \
  static td_solver name##_solver(const td_call *call) {                                                 \
    return (td_solver){.dtype = call->out[0].dtype, .solve = name##_one, .fail = failure, __VA_ARGS__}; \
  }                                                                                                     \
  static int64_t name##_workspace(const td_call *call) {                                                \
    td_solver s = name##_solver(call);                                                                  \
    return td_matrices_workspace(call, &s);                                                             \
  }                                                                                                     \
  static int name##_kernel(const td_call *call) {                                                       \
    td_solver s = name##_solver(call);                                                                  \
    return td_matrices_run(call, &s);                                                                   \
  }
enum { TD_NOT_FINITE = -1000, TD_TOO_LARGE = -1001 }; // infos that td_matrices_run explains itself

void *td_take(td_problem *p, int64_t count,
              int64_t bytes); // 64-byte aligned scratch; meaningless while scratch is NULL
void td_matrix_load(const td_problem *p, const td_matrix *m, void *columns); // column by column, in p's dtype
void td_matrix_store(const td_problem *p, const td_matrix *m, const void *columns, int64_t leading); // from such
// What a routine that was asked for its workspace answered in size, as a number that is large enough: float32 has no
// room for all the digits of a large one. At least 1.
int td_work_length(const td_problem *p, const double *size);
bool td_work_fits(const td_problem *p); // in LAPACK's ints, for a routine whose workspace grows with n^2
const char *td_needs_lapack(const td_arg *args); // .missing of a row that always does
bool td_all_finite(const td_problem *p, const void *numbers, int64_t count);
double td_number_at(const td_problem *p, const void *numbers, int64_t index);
void td_number_put(const td_problem *p, void *numbers, int64_t index, double value);

// The singular value decomposition of in[0], in scratch: A = U S V^T. job 'N': s alone; 'S': u and vt reduced; 'A':
// whole.
typedef struct td_decomposed {
  int rows, columns, count; // count: singular values, the smaller side
  int u_columns, vt_rows;
  void *s, *u, *vt; // s descending; u and vt column by column
} td_decomposed;
int td_decompose(td_problem *p, char job, td_decomposed *d); // 0, or an info
int td_fail_convergence(const td_call *call, const char *matrix, int info);
// Singular and eigenvectors are given the sign by which their largest element is positive. True: it was turned round.
bool td_sign_fix(const td_problem *p, void *column, int64_t count);

// Infer rules. Errors name the argument and its sizes.
int td_infer_matrix(td_infer *infer, int input, bool square); // rank of 2 or more
uint8_t td_infer_floating_dtype(const td_infer *infer); // what the inputs promote to; float32 for integers and bool
// PyTorch's rule for what is a vector b: one of rank 1, or one with a's shape without the last axis.
bool td_is_vector_side(int a_rank, const int64_t *a, int b_rank, const int64_t *b);
int td_infer_solve(td_infer *infer, bool left); // the shape of x in a @ x = b, or x @ a = b
void td_infer_batch(const td_meta *in, td_meta *out); // in's axes but the last two
void td_meta_append(td_meta *meta, int64_t size); // one axis more at the end

// Builders for rules: matrices of the last two axes.
int td_scope_apply_all(td_scope *s, const td_op *op, const td_arg *args, int count, td_tensor *const *in,
                       td_tensor **out); // owned by the scope; 0, or an error's code
td_tensor *td_scaled(td_scope *s, td_tensor *x, double factor);
td_tensor *td_columns_scaled(td_scope *s, td_tensor *x, td_tensor *v); // x[..., i, j] v[..., j], 0 where x is exactly 0
td_tensor *td_rows_scaled(td_scope *s, td_tensor *x, td_tensor *v); // x[..., i, j] v[..., i]
td_tensor *td_as_rows(td_scope *s, td_tensor *v); // [..., n] to [..., 1, n]
td_tensor *td_as_columns(td_scope *s, td_tensor *v); // [..., n] to [..., n, 1]
td_tensor *td_as_numbers(td_scope *s, td_tensor *v); // [...] to [..., 1, 1]
td_tensor *td_last_dropped(td_scope *s, td_tensor *x); // [..., n, 1] to [..., n]
td_tensor *td_symmetric_part(td_scope *s, td_tensor *x); // (x + x^T) / 2
td_tensor *td_columns_of(td_scope *s, td_tensor *x, int64_t first, int64_t count); // x[..., first:first + count]
td_tensor *td_rows_of(td_scope *s, td_tensor *x, int64_t first, int64_t count); // x[..., first:first + count, :]
td_tensor *td_pad_matrix(td_scope *s, td_tensor *x, int64_t rows, int64_t columns); // with zeros at the end
td_tensor *td_sum_of_matrix(td_scope *s, td_tensor *x); // over the last two axes, kept with size 1

// inverse.c, triangular.c, spectral.c
td_tensor *td_inverse(td_scope *s, td_tensor *a);
td_tensor *td_solve(td_scope *s, td_tensor *a, td_tensor *b);
td_tensor *td_solve_triangular(td_scope *s, td_tensor *a, td_tensor *b, bool upper, bool left, bool transposed,
                               bool unit);
int td_svd(td_scope *s, td_tensor *a, td_tensor *out[3]); // reduced: U, S, Vh
int td_eigh(td_scope *s, td_tensor *a, td_tensor *out[2], bool upper); // values, vectors

#define TD_MATRIX_PARAM(text) \
  { .name = text, .kind = TD_PARAM_TENSOR }
#endif
