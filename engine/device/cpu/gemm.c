// Which kernel computes a product, and how it is cut.
//  1. One row or one column: a matrix times a vector, as sums of rows or as dot products, whichever reads along memory.
//  2. A handful of multiplications, and integers: plain loops. Small ones and short k: gemm_packed.c.
//  3. The rest is cut into pieces that hold enough work, each one product of OpenBLAS or of gemm_packed.c. The cut goes
//     along the longer side of C, or along k where C is small beside it; then the pieces' sums are added in order.
//     Number and borders of pieces follow from m, n, k and the dtype alone. A piece that takes long is a row of
//     products of strips, so that it can be broken off between two of them.
//  4. A float32 product of long k is a sum of short runs, tile by tile of C, since a register that gathers hundreds of
//     products of one sign loses a digit. The sums of so many runs are added in double.
#include <string.h>

#include "engine/device/cpu/blas.h"
#include "engine/device/cpu/clones.h"
#include "engine/device/cpu/gemm_packed.h"
#include "engine/tensor/tensor.h"

enum {
  TINY = 64, // multiplications up to which plain loops win
  SMALL = 8192, // up to which gemm_packed.c wins
  SHORT = 8, // and so it does up to this k
  SHORT_TRANSPOSED = 32, // or this one where A is transposed, as in a weight's gradient
  PIECE = 500 << 10, // multiplications of a piece, at least
  PIECES = 16, // at most
  PIECE_LENGTH = 96, // sides of pieces are no shorter: each packs the whole other operand
  PIECE_UNIT = 16, // and multiples of this
  STRIP = 2000000000, // multiplications of a strip, at most about: 50 milliseconds
  STRIP_UNIT = 192, // sides of strips are multiples of this, which every kernel's registers divide
  RUN = 128, // of k, in float32: what one register gathers; half of it costs a large product another tenth
  RUNS = 8, // that C gathers before they are added to a double
  TILE_ROWS = 256, // of C's tiles, at most
  TILE_SIZE = 1 << 16, // elements, at most
  TILE_UNIT = 16, // sides are multiples of this
  DEEP = 4, // k is cut where it is so many times the longer side of C
  VECTOR_PIECE = 1 << 16, // matrix elements that one piece of a matrix times a vector reads
  VECTOR_BYTES = 32,
  ALIGNMENT = 64, // of the parts of the workspace
};

#define MIN(a, b) ((a) < (b) ? (a) : (b))

static int64_t multiple(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }
static int64_t round_up(int64_t bytes) { return multiple(bytes, ALIGNMENT); }

// ---- plain loops ----

typedef struct strided { // op(A) and op(B) by strides
  int64_t m, n, k, a_row, a_step, b_step, b_column, ldc;
} strided;

static strided strided_of(const td_gemm_job *job) {
  return (strided){job->m,
                   job->n,
                   job->k,
                   job->a_transposed ? 1 : job->lda,
                   job->a_transposed ? job->lda : 1,
                   job->b_transposed ? 1 : job->ldb,
                   job->b_transposed ? job->ldb : 1,
                   job->ldc};
}

// c[i, j] is c[i, j] PLUS (a[i, p] TIMES b[p, j]) for p = 0, 1, ...
#define PLAIN(type, name, PLUS, TIMES)                                                                             \
  TD_CLONES static void name(const strided *s, const type *restrict a, const type *restrict b, type *restrict c) { \
    for (int64_t i = 0; i < s->m; i++) {                                                                           \
      type *row = c + i * s->ldc;                                                                                  \
      memset(row, 0, (size_t)s->n * sizeof(type));                                                                 \
      for (int64_t p = 0; p < s->k; p++) {                                                                         \
        const type factor = a[i * s->a_row + p * s->a_step], *from = b + p * s->b_step;                            \
        if (s->b_column == 1)                                                                                      \
          for (int64_t j = 0; j < s->n; j++) row[j] = (type)(row[j] PLUS(factor TIMES from[j]));                   \
        else                                                                                                       \
          for (int64_t j = 0; j < s->n; j++) row[j] = (type)(row[j] PLUS(factor TIMES from[j * s->b_column]));     \
      }                                                                                                            \
    }                                                                                                              \
  }
PLAIN(float, plain_float, +, *)
PLAIN(double, plain_double, +, *)
PLAIN(uint32_t, plain_int32, +, *)
PLAIN(uint64_t, plain_int64, +, *)
PLAIN(uint8_t, plain_uint8, +, *)
PLAIN(uint8_t, plain_bool, |, &)

static void run_plain(uint8_t dtype, const td_gemm_job *job) {
  strided s = strided_of(job);
  switch (dtype) {
  case TD_FLOAT32: plain_float(&s, job->a, job->b, job->c); break;
  case TD_FLOAT64: plain_double(&s, job->a, job->b, job->c); break;
  case TD_INT32: plain_int32(&s, job->a, job->b, job->c); break;
  case TD_INT64: plain_int64(&s, job->a, job->b, job->c); break;
  case TD_UINT8: plain_uint8(&s, job->a, job->b, job->c); break;
  default: plain_bool(&s, job->a, job->b, job->c); break;
  }
}

// ---- a matrix times a vector ----

typedef struct product { // y[i] = sum over p of matrix(i, p) * x[p]
  bool along; // matrix(i, p) at matrix[i * pitch + p]; else at matrix[p * pitch + i]
  uint8_t dtype;
  int64_t count, k, pitch, y_step, per_piece;
  const char *matrix, *x;
  char *y;
} product;

// Sums of at most so many products are of the dtype itself, those of sums are double: long dot products keep their
// digits.
enum { ROW_STEPS = 16, COLUMN_STEPS = 32 };

#define VECTOR_KERNELS(type, name)                                                                               \
  typedef type name##_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(type)), may_alias));       \
  enum { name##_lanes = VECTOR_BYTES / sizeof(type), name##_wide = 8 * name##_lanes };                           \
  typedef double name##_totals __attribute__((vector_size(name##_lanes * sizeof(double))));                      \
                                                                                                                 \
  TD_CLONES static void name##_rows(type *y, int64_t step, const type *matrix, int64_t pitch, const type *x,     \
                                    int64_t count, int64_t k) {                                                  \
    int64_t whole = k / (4 * name##_lanes) * (4 * name##_lanes);                                                 \
    for (int64_t i = 0; i < count; i++, matrix += pitch) {                                                       \
      name##_totals totals = {0};                                                                                \
      for (int64_t p = 0; p < whole;) {                                                                          \
        int64_t last = MIN(whole, p + ROW_STEPS * 4 * name##_lanes);                                             \
        name##_vector sums[4] = {0};                                                                             \
        for (; p < last; p += 4 * name##_lanes)                                                                  \
          _Pragma("GCC unroll 4") for (int v = 0; v < 4; v++) sums[v] +=                                         \
              *(const name##_vector *)(matrix + p + v * name##_lanes) *                                          \
              *(const name##_vector *)(x + p + v * name##_lanes);                                                \
        totals += __builtin_convertvector((sums[0] + sums[1]) + (sums[2] + sums[3]), name##_totals);             \
      }                                                                                                          \
      type rest = 0;                                                                                             \
      for (int64_t p = whole; p < k; p++) rest += matrix[p] * x[p];                                              \
      double sum = (double)rest;                                                                                 \
      for (int lane = 0; lane < name##_lanes; lane++) sum += totals[lane];                                       \
      y[i * step] = (type)sum;                                                                                   \
    }                                                                                                            \
  }                                                                                                              \
                                                                                                                 \
  TD_CLONES static void name##_columns(type *y, int64_t step, const type *matrix, int64_t pitch, const type *x,  \
                                       int64_t count, int64_t k) {                                               \
    int64_t i = 0;                                                                                               \
    for (; i + name##_wide <= count; i += name##_wide) {                                                         \
      name##_totals totals[8] = {0};                                                                             \
      for (int64_t p = 0; p < k;) {                                                                              \
        int64_t last = MIN(k, p + COLUMN_STEPS);                                                                 \
        name##_vector sums[8] = {0};                                                                             \
        for (; p < last; p++)                                                                                    \
          _Pragma("GCC unroll 8") for (int v = 0; v < 8; v++) sums[v] +=                                         \
              x[p] * *(const name##_vector *)(matrix + p * pitch + i + v * name##_lanes);                        \
        for (int v = 0; v < 8; v++) totals[v] += __builtin_convertvector(sums[v], name##_totals);                \
      }                                                                                                          \
      for (int v = 0; v < 8; v++)                                                                                \
        for (int lane = 0; lane < name##_lanes; lane++)                                                          \
          y[(i + v * name##_lanes + lane) * step] = (type)totals[v][lane];                                       \
    }                                                                                                            \
    int64_t rest = count - i;                                                                                    \
    double totals[name##_wide] = {0};                                                                            \
    for (int64_t p = 0; p < k && rest;) {                                                                        \
      int64_t last = MIN(k, p + COLUMN_STEPS);                                                                   \
      type sums[name##_wide] = {0};                                                                              \
      for (; p < last; p++)                                                                                      \
        for (int64_t j = 0; j < rest; j++) sums[j] += x[p] * matrix[p * pitch + i + j];                          \
      for (int64_t j = 0; j < rest; j++) totals[j] += (double)sums[j];                                           \
    }                                                                                                            \
    for (int64_t j = 0; j < rest; j++) y[(i + j) * step] = (type)totals[j];                                      \
  }
VECTOR_KERNELS(float, single)
VECTOR_KERNELS(double, twofold)

static void product_piece(void *argument, int64_t piece) {
  const product *v = argument;
  int64_t first = piece * v->per_piece, count = MIN(v->count - first, v->per_piece), bytes = td_dtype_bytes(v->dtype);
  const char *matrix = v->matrix + first * (v->along ? v->pitch : 1) * bytes;
  char *y = v->y + first * v->y_step * bytes;
  if (v->dtype == TD_FLOAT32)
    (v->along ? single_rows : single_columns)((float *)y, v->y_step, (const float *)matrix, v->pitch,
                                              (const float *)v->x, count, v->k);
  else
    (v->along ? twofold_rows : twofold_columns)((double *)y, v->y_step, (const double *)matrix, v->pitch,
                                                (const double *)v->x, count, v->k);
}

static void run_pieces(td_pool *pool, int64_t pieces, td_chunk *work, void *argument) {
  if (pool) td_pool_run(pool, pieces, work, argument);
  else
    for (int64_t i = 0; i < pieces; i++) work(argument, i);
}

static int64_t x_step_of(const td_gemm_job *job) { // between the elements of the vector
  bool row = job->m == 1; // y is a row of C, x a row of op(A)
  bool transposed = row ? job->a_transposed : !job->b_transposed;
  return transposed ? (row ? job->lda : job->ldb) : 1;
}

static bool gathers(const td_gemm_job *job) { return x_step_of(job) != 1 && job->k > 1; }

static void run_vector(td_pool *pool, uint8_t dtype, const td_gemm_job *job, char *workspace) {
  bool row = job->m == 1;
  product v = {.along = row ? job->b_transposed : !job->a_transposed,
               .dtype = dtype,
               .count = row ? job->n : job->m,
               .k = job->k,
               .pitch = row ? job->ldb : job->lda,
               .y_step = row ? 1 : job->ldc,
               .matrix = row ? job->b : job->a,
               .x = row ? job->a : job->b,
               .y = job->c};
  if (v.count == 1 && v.pitch == 1) v.along = true; // a dot product
  if (gathers(job)) {
    const int64_t step = x_step_of(job);
    td_elements_copy(NULL, workspace, v.x, td_dtype_bytes(dtype), 1, &v.k, &step);
    v.x = workspace;
  }
  v.per_piece = VECTOR_PIECE / v.k / 64 * 64;
  if (v.per_piece < 64) v.per_piece = 64;
  run_pieces(pool, (v.count + v.per_piece - 1) / v.per_piece, product_piece, &v);
}

// ---- one product on this thread ----

enum axis { ALONG_M, ALONG_N, ALONG_K };

// The part of a product from first on along an axis.
static td_gemm_job part_of(const td_gemm_job *whole, enum axis axis, int64_t first, int64_t count, int64_t bytes) {
  td_gemm_job job = *whole;
  if (axis != ALONG_N)
    job.a = (const char *)job.a + first * ((axis == ALONG_M) != job.a_transposed ? job.lda : 1) * bytes;
  if (axis != ALONG_M)
    job.b = (const char *)job.b + first * ((axis == ALONG_K) != job.b_transposed ? job.ldb : 1) * bytes;
  *(axis == ALONG_M ? &job.m : axis == ALONG_N ? &job.n : &job.k) = count;
  if (axis != ALONG_K) job.c = (char *)job.c + first * (axis == ALONG_M ? job.ldc : 1) * bytes;
  return job;
}

// Measured: a quick OpenBLAS wins everywhere (by 2 to 4 on AVX-512); another one loses what it spends on packing.
static bool prefers_packed(const td_gemm_job *job) {
  if (td_blas_is_quick()) return false;
  return job->k <= (job->a_transposed ? SHORT_TRANSPOSED : SHORT) ||
         (double)job->m * (double)job->n * (double)job->k <= SMALL;
}

typedef struct single {
  uint8_t dtype;
  bool packed; // by gemm_packed.c, else by OpenBLAS
  double *totals; // of a tile, where k is so long
  char *blocks; // packed
} single;

static void multiply(const single *s, const td_gemm_job *job, bool add) {
  if (s->packed) td_gemm_packed(s->dtype, job, s->blocks, add);
  else td_blas_gemm(s->dtype, job, add);
}

static bool has_runs(uint8_t dtype, int64_t k) { return dtype == TD_FLOAT32 && k >= 2 * RUN; }

static int64_t totals_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k) {
  if (!has_runs(dtype, k) || k <= RUN * RUNS) return 0;
  return round_up(MIN((double)m * (double)n, TILE_SIZE) * (int64_t)sizeof(double));
}

TD_CLONES static void add_to_totals(double *restrict totals, const float *restrict c, int64_t n, bool first) {
  for (int64_t j = 0; j < n; j++) totals[j] = (first ? 0 : totals[j]) + (double)c[j];
}

TD_CLONES static void settle_totals(float *restrict c, const double *restrict totals, int64_t n) {
  for (int64_t j = 0; j < n; j++) c[j] = (float)totals[j];
}

static void multiply_tile(const single *s, const td_gemm_job *tile) {
  float *c = tile->c;
  bool long_sum = tile->k > RUN * RUNS;
  for (int64_t p = 0; p < tile->k; p += RUN * RUNS) {
    int64_t last = MIN(tile->k, p + RUN * RUNS);
    for (int64_t q = p; q < last; q += RUN) {
      td_gemm_job run = part_of(tile, ALONG_K, q, MIN(last - q, RUN), sizeof(float));
      multiply(s, &run, q > p);
    }
    for (int64_t i = 0; i < tile->m && long_sum; i++)
      add_to_totals(s->totals + i * tile->n, c + i * tile->ldc, tile->n, p == 0);
  }
  for (int64_t i = 0; i < tile->m && long_sum; i++) settle_totals(c + i * tile->ldc, s->totals + i * tile->n, tile->n);
}

static int64_t tile_of(int64_t side, int64_t most) { // tiles of one size, the last one but for what is left over
  int64_t tiles = (side - 1) / most + 1;
  return MIN(multiple((side + tiles - 1) / tiles, TILE_UNIT), most);
}

static void multiply_single(const single *s, const td_gemm_job *job) {
  if (!has_runs(s->dtype, job->k)) {
    multiply(s, job, false);
    return;
  }
  int64_t rows = tile_of(job->m, TILE_ROWS), columns = tile_of(job->n, TILE_SIZE / (rows ? rows : 1));
  for (int64_t i = 0; i < job->m; i += rows) {
    td_gemm_job band = part_of(job, ALONG_M, i, MIN(job->m - i, rows), sizeof(float));
    for (int64_t j = 0; j < job->n; j += columns) {
      td_gemm_job tile = part_of(&band, ALONG_N, j, MIN(job->n - j, columns), sizeof(float));
      multiply_tile(s, &tile);
    }
  }
}

void td_gemm_single(uint8_t dtype, const td_gemm_job *job, void *room) {
  int64_t totals = totals_bytes(dtype, job->m, job->n, job->k);
  single s = {dtype, prefers_packed(job) || !td_blas_takes(job), room, (char *)room + totals};
  multiply_single(&s, job);
}

int64_t td_gemm_single_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k) {
  return round_up(td_gemm_packed_bytes(dtype, m, n, k)) + totals_bytes(dtype, m, n, k);
}

// ---- pieces of a large product ----

typedef struct cut {
  const td_pool *pool;
  const td_gemm_job *job;
  uint8_t dtype;
  enum axis axis;
  int64_t length, per_piece, pieces;
  bool packed; // by gemm_packed.c, else by OpenBLAS
  int64_t sum_bytes, total_bytes, block_bytes;
  char *sums; // ALONG_K: C of each piece but the first, without gaps
  char *room; // total_bytes of totals and block_bytes of blocks, of each piece
} cut;

static void run_strips(const cut *c, const td_gemm_job *job, char *room) {
  enum axis axis = c->axis == ALONG_M || (c->axis == ALONG_K && job->n > job->m) ? ALONG_N : ALONG_M;
  int64_t length = axis == ALONG_M ? job->m : job->n;
  double strips = 1 + (double)job->m * (double)job->n * (double)job->k * (c->dtype == TD_FLOAT64 ? 2 : 1) / STRIP;
  int64_t strip = ((int64_t)((double)length / strips) / STRIP_UNIT + 1) * STRIP_UNIT;
  const single s = {c->dtype, c->packed, (double *)room, room + c->total_bytes};
  for (int64_t first = 0; first < length && !td_pool_stopped(c->pool); first += strip) {
    td_gemm_job part = part_of(job, axis, first, MIN(length - first, strip), td_dtype_bytes(c->dtype));
    multiply_single(&s, &part);
  }
}

static void cut_piece(void *argument, int64_t piece) {
  cut *c = argument;
  int64_t first = piece * c->per_piece, count = MIN(c->length - first, c->per_piece), bytes = td_dtype_bytes(c->dtype);
  td_gemm_job job = part_of(c->job, c->axis, first, count, bytes);
  if (c->axis == ALONG_K && piece) {
    job.c = c->sums + (piece - 1) * job.m * job.n * bytes;
    job.ldc = job.n;
  }
  run_strips(c, &job, c->room + piece * (c->total_bytes + c->block_bytes));
}

#define ADD_SUMS(type, name)                                                                            \
  /* to count elements of C those of the other pieces, which lie pitch apart */                         \
  TD_CLONES static void name##_add_sums(type *c, const type *sums, int64_t pieces, int64_t pitch, int64_t count) { \
    enum { TOGETHER = 256 };                                                                            \
    double totals[TOGETHER];                                                                            \
    for (int64_t j = 0; j < count; j += TOGETHER) {                                                     \
      int64_t n = MIN(count - j, TOGETHER);                                                             \
      for (int64_t i = 0; i < n; i++) totals[i] = (double)c[j + i];                                     \
      for (int64_t piece = 0; piece < pieces; piece++)                                                  \
        for (int64_t i = 0; i < n; i++) totals[i] += (double)sums[piece * pitch + j + i];               \
      for (int64_t i = 0; i < n; i++) c[j + i] = (type)totals[i];                                       \
    }                                                                                                   \
  }
ADD_SUMS(float, single)
ADD_SUMS(double, twofold)

static void add_sums(const cut *c) {
  const td_gemm_job *job = c->job;
  int64_t size = job->m * job->n;
  for (int64_t i = 0; i < job->m; i++) {
    if (c->dtype == TD_FLOAT32)
      single_add_sums((float *)job->c + i * job->ldc, (const float *)c->sums + i * job->n, c->pieces - 1, size, job->n);
    else
      twofold_add_sums((double *)job->c + i * job->ldc, (const double *)c->sums + i * job->n, c->pieces - 1, size,
                       job->n);
  }
}

static void cut_choose(uint8_t dtype, const td_gemm_job *job, cut *c) {
  int64_t side = job->m >= job->n ? job->m : job->n;
  *c = (cut){.job = job, .dtype = dtype};
  c->axis = job->k / DEEP >= side ? ALONG_K : job->m >= job->n ? ALONG_M : ALONG_N;
  c->length = c->axis == ALONG_K ? job->k : side;
  double work = (double)job->m * (double)job->n * (double)job->k * (dtype == TD_FLOAT64 ? 2 : 1) / PIECE;
  int64_t pieces = work < PIECES ? (int64_t)work : PIECES;
  pieces = MIN(pieces, c->length / PIECE_LENGTH);
  if (pieces < 1) pieces = 1;
  c->per_piece = (c->length + pieces - 1) / pieces;
  c->per_piece = multiple(c->per_piece, PIECE_UNIT);
  c->pieces = (c->length + c->per_piece - 1) / c->per_piece;
  int64_t sides[] = {[ALONG_M] = job->m, [ALONG_N] = job->n, [ALONG_K] = job->k};
  sides[c->axis] = MIN(c->length, c->per_piece);
  td_gemm_job piece = {
      .a_transposed = job->a_transposed, .m = sides[ALONG_M], .n = sides[ALONG_N], .k = sides[ALONG_K]};
  c->packed = prefers_packed(&piece) || !td_blas_takes(job);
  if (c->axis == ALONG_K) c->sum_bytes = round_up((c->pieces - 1) * job->m * job->n * td_dtype_bytes(dtype));
  c->total_bytes = totals_bytes(dtype, piece.m, piece.n, piece.k);
  if (c->packed) c->block_bytes = td_gemm_packed_bytes(dtype, piece.m, piece.n, piece.k);
}

static void run_cut(td_pool *pool, uint8_t dtype, const td_gemm_job *job, char *workspace) {
  cut c;
  char nothing; // what lies in a workspace of no bytes
  if (!workspace) workspace = &nothing;
  cut_choose(dtype, job, &c);
  c.pool = pool;
  c.sums = workspace;
  c.room = workspace + c.sum_bytes;
  run_pieces(pool, c.pieces, cut_piece, &c);
  if (c.axis == ALONG_K) add_sums(&c);
}

// ---- which one ----

enum method { NOTHING, PLAIN_LOOPS, VECTOR, CUT };

static enum method method_of(uint8_t dtype, const td_gemm_job *job) {
  if (job->m == 0 || job->n == 0) return NOTHING;
  bool floating = dtype == TD_FLOAT32 || dtype == TD_FLOAT64;
  if (!floating || job->k == 0 || (double)job->m * (double)job->n * (double)job->k <= TINY) return PLAIN_LOOPS;
  return job->m == 1 || job->n == 1 ? VECTOR : CUT;
}

int64_t td_gemm_workspace(uint8_t dtype, const td_gemm_job *job) {
  enum method method = method_of(dtype, job);
  if (method == VECTOR) return gathers(job) ? round_up(job->k * td_dtype_bytes(dtype)) : 0;
  if (method != CUT) return 0;
  cut c;
  cut_choose(dtype, job, &c);
  return c.sum_bytes + c.pieces * (c.total_bytes + c.block_bytes);
}

void td_gemm(td_pool *pool, uint8_t dtype, const td_gemm_job *job, void *workspace) {
  switch (method_of(dtype, job)) {
  case NOTHING: break;
  case PLAIN_LOOPS: run_plain(dtype, job); break;
  case VECTOR: run_vector(pool, dtype, job, workspace); break;
  case CUT: run_cut(pool, dtype, job, workspace); break;
  }
}
