// Which kernel computes a product, and how it is cut.
//  1. One row or one column: a matrix times a vector, as sums of rows or as dot products, whichever reads along memory.
//  2. A handful of multiplications, and integers: plain loops.
//  3. The rest is computed in panels (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
//     2008): A and B are cut along k, strips of each are packed so that they are read from end to end, and pieces of C
//     add the product of their strips, tile by tile, in registers (gemm_kernel.h). All threads pack, then all take
//     pieces.
//  4. Where C is small beside k, k is cut instead; the parts are computed each on one thread, and their sums are added
//     in order.
//  5. Number and borders of all pieces follow from m, n, k and the dtype alone.
//  6. A float32 product of long k is a sum of short runs, since a register that gathers hundreds of products of one
//     sign loses a digit: a register gathers a run, the inner cache a panel, C some panels, and a double all of them.
#include <string.h>

#include "engine/device/cpu/gemm.h"
#include "engine/device/cpu/clones.h"
#include "engine/device/cpu/gemm_kernel.h"
#include "engine/tensor/tensor.h"

enum {
  TINY = 64, // multiplications up to which plain loops win
  DEPTH = 256, // of a panel, at most: a strip of B stays in the inner cache
  SIDE = 1536, // of a tile of C, about at most: the panels of a tile stay in the outer cache
  LONG = 8 * DEPTH, // of k, in float32: what C gathers
  FEW = 2, // uses of a strip up to which it is read as it lies
  NEAR = 1 << 15, // bytes of an operand up to which it is, because all of it stays in the inner cache
  PIECE = 500 << 10, // multiplications of a piece, at least
  PIECES = 16, // at most
  TALL = 10, // strips of A in a piece, at most: they stay in the outer cache
  PACKED_PIECE = 1 << 16, // elements that a thread packs together
  PART = 64, // parts of k are no shorter
  DEEP = 4, // k is cut where it is so many times the longer side of C
  VECTOR_PIECE = 1 << 16, // matrix elements that one piece of a matrix times a vector reads
  VECTOR_BYTES = 32,
  ALIGNMENT = 64, // of the parts of the workspace
};

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

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
  if (pool && pieces > 1) td_pool_run(pool, pieces, work, argument);
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

// ---- panels ----

typedef struct operand { // lines of length k: the rows of A, the columns of B
  const char *data; // of the tile's first line
  const char *packed; // the same by td_gemm_pack, or NULL
  int64_t packed_k; // the depth that it was packed with
  bool across; // the elements of a line lie behind each other; else those of one p do
  bool padded; // a strip that isn't full is filled up with zeros: B's, whose lines are read in vectors
  bool direct; // strips are read as they lie, but for one that must be padded
  int64_t pitch, lines, side, strips; // between what lies behind each other; of the tile; lines of a strip
  int64_t there, packed_each; // strips that needn't be packed; that one thread packs together
  int64_t strip, line, step; // of the panel: from strip to strip, between lines, along k
  const char *panel;
  char *room;
} operand;

typedef struct panels { // of a tile of C
  const td_gemm_kernel *kernel;
  td_pool *pool; // NULL: this thread alone
  int bytes; // of an element
  operand a, b;
  char *c;
  int64_t ldc, k, first, depth; // of the panel
  int64_t tall, wide, down, across; // strips of a piece; pieces
  bool add; // to what is in C
  int64_t *at, *edge_at; // where the steps of the depth are in B's strips, and in one that is packed apart
} panels;

static int64_t quotient(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }

static int64_t a_side(const td_gemm_kernel *kernel, int64_t m) {
  return m < 1 ? 1 : quotient(m, quotient(m, kernel->rows));
}

static int64_t strip_size(int64_t side, int64_t depth, int bytes) { // elements
  return round_up((side * depth + TD_STRIP_SLACK) * bytes) / bytes;
}

static int64_t tile_of(int64_t lines, int64_t side) { // tiles of one size, but for the last one
  return multiple(quotient(lines, quotient(lines, SIDE)), side);
}

static int64_t operand_bytes(int64_t lines, int64_t side, int64_t k, int bytes) { // of a tile's panel, at most
  return (quotient(MIN(lines, SIDE), side) + 1) * strip_size(side, MIN(k, DEPTH), bytes) * bytes;
}

static bool is_long(uint8_t dtype, int64_t k) { return dtype == TD_FLOAT32 && k > LONG; }

static int64_t totals_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k) {
  if (!is_long(dtype, k)) return 0;
  return round_up(MIN(m, 2 * SIDE) * MIN(n, 2 * SIDE) * (int64_t)sizeof(double));
}

static operand operand_a(const td_gemm_kernel *kernel, const td_gemm_job *job, int bytes) {
  operand o = {.data = job->a, .packed = job->a_packed, .across = !job->a_transposed, .pitch = job->lda};
  o.side = a_side(kernel, job->m);
  o.direct = !o.packed && (job->n <= FEW * kernel->columns || job->m * job->k * bytes <= NEAR);
  return o;
}

static operand operand_b(const td_gemm_kernel *kernel, const td_gemm_job *job, int bytes) {
  operand o = {.data = job->b, .packed = job->b_packed, .across = job->b_transposed, .pitch = job->ldb};
  o.padded = true;
  o.side = kernel->columns;
  o.direct = !o.packed && !o.across && (job->m <= FEW * kernel->rows || job->n * job->k * bytes <= NEAR);
  return o;
}

static void operand_cut(operand *o, int64_t first, int64_t lines, int bytes) { // its lines in a tile
  o->data += first * (o->across ? o->pitch : 1) * bytes;
  if (o->packed) o->packed += first / o->side * strip_size(o->side, o->packed_k, bytes) * bytes;
  o->lines = lines;
  o->strips = quotient(lines, o->side);
  o->there = o->packed || (o->direct && !o->padded) ? o->strips : o->direct ? lines / o->side : 0;
}

// Where the strips of a panel are to be found, once they are packed.
static void operand_panel(operand *o, int64_t first, int64_t depth, int bytes) {
  o->panel = o->room;
  o->strip = strip_size(o->side, depth, bytes);
  o->line = 1;
  o->step = o->side;
  if (o->packed) {
    o->panel = o->packed + first * o->side * bytes;
    o->strip = strip_size(o->side, o->packed_k, bytes);
  } else if (o->direct) {
    o->line = o->across ? o->pitch : 1;
    o->step = o->across ? 1 : o->pitch;
    o->panel = o->data + first * o->step * bytes;
    o->strip = o->side * o->line;
  }
}

// Strips first to last - 1 over a depth from p on.
static void pack_strips(const td_gemm_kernel *kernel, const operand *o, int64_t first, int64_t last, int64_t p,
                        int64_t depth, int bytes, char *out) {
  int64_t line = first * o->side, lines = MIN(o->lines, last * o->side) - line;
  int64_t strip = strip_size(o->side, depth, bytes);
  const char *from = o->data + (o->across ? line * o->pitch + p : p * o->pitch + line) * bytes;
  if (o->padded && lines % o->side)
    memset(out + (last - 1 - first) * strip * bytes, 0, (size_t)(o->side * depth * bytes));
  kernel->pack(out, o->side, strip, from, o->pitch, o->across, lines, depth);
}

static int64_t packed_pieces(const operand *o) { return quotient(o->strips - o->there, o->packed_each); }

static void pack_operand(const panels *w, const operand *o, int64_t piece) {
  int64_t first = o->there + piece * o->packed_each, last = MIN(first + o->packed_each, o->strips);
  int64_t at = (first - o->there) * strip_size(o->side, w->depth, w->bytes) * w->bytes;
  pack_strips(w->kernel, o, first, last, w->first, w->depth, w->bytes, o->room + at);
}

static void pack_piece(void *argument, int64_t piece) {
  const panels *w = argument;
  int64_t pieces = packed_pieces(&w->a);
  if (piece < pieces) pack_operand(w, &w->a, piece);
  else pack_operand(w, &w->b, piece - pieces);
}

static void multiply_piece(void *argument, int64_t piece) {
  const panels *w = argument;
  const operand *a = &w->a, *b = &w->b;
  int64_t strip_a = piece / w->across * w->tall, strip_b = piece % w->across * w->wide;
  int64_t row = strip_a * a->side, rows = MIN(a->lines - row, w->tall * a->side);
  int64_t column = strip_b * b->side, columns = MIN(b->lines - column, w->wide * b->side);
  td_row_strips left = {a->panel + strip_a * a->strip * w->bytes, a->side, a->strip, a->line, a->step};
  td_column_strips right = {b->panel + strip_b * b->strip * w->bytes, w->at, b->strip};
  char *c = w->c + (row * w->ldc + column) * w->bytes;
  int64_t rest = b->direct ? columns % b->side : 0;
  if (columns > rest) w->kernel->multiply(&left, &right, rows, columns - rest, w->depth, c, w->ldc, w->add);
  if (!rest) return;
  td_column_strips edge = {b->room, w->edge_at, 0};
  w->kernel->multiply(&left, &edge, rows, rest, w->depth, c + (columns - rest) * w->bytes, w->ldc, w->add);
}

static int64_t pieces_of(double work) { // a power of two: threads are often two, four or eight
  int64_t pieces = 1;
  while (pieces < PIECES && work >= 2 * pieces * (double)PIECE) pieces *= 2;
  return pieces;
}

static void panels_cut(panels *w) {
  int64_t pieces = pieces_of((double)w->a.lines * (double)w->b.lines * (double)w->depth * (w->bytes / 4));
  w->down = quotient(w->a.strips, TALL);
  w->across = MIN(quotient(pieces, w->down), w->b.strips);
  w->down = MIN(MAX(w->down, quotient(pieces, w->across)), w->a.strips);
  w->tall = quotient(w->a.strips, w->down);
  w->wide = quotient(w->b.strips, w->across);
  w->down = quotient(w->a.strips, w->tall);
  w->across = quotient(w->b.strips, w->wide);
  w->a.packed_each = MAX(PACKED_PIECE / (w->a.side * w->depth), 1);
  w->b.packed_each = MAX(PACKED_PIECE / (w->b.side * w->depth), 1);
}

static void run_panel(panels *w, int64_t first, int64_t depth) {
  w->first = first;
  w->depth = depth;
  operand_panel(&w->a, first, depth, w->bytes);
  operand_panel(&w->b, first, depth, w->bytes);
  for (int64_t p = 0; p < depth; p++) w->at[p] = p * w->b.step;
  for (int64_t p = 0; p < depth && w->b.direct; p++) w->edge_at[p] = p * w->b.side;
  run_pieces(w->pool, packed_pieces(&w->a) + packed_pieces(&w->b), pack_piece, w);
  run_pieces(w->pool, w->down * w->across, multiply_piece, w);
}

typedef struct gathering {
  double *sums; // rows x columns, without gaps
  float *c;
  int64_t ldc, columns;
  bool first, last;
} gathering;

TD_CLONES static void gather_row(double *restrict sums, float *restrict c, int64_t n, bool first, bool last) {
  for (int64_t j = 0; j < n; j++) sums[j] = (first ? 0 : sums[j]) + (double)c[j];
  for (int64_t j = 0; j < n && last; j++) c[j] = (float)sums[j];
}

static void gather_piece(void *argument, int64_t row) {
  const gathering *t = argument;
  gather_row(t->sums + row * t->columns, t->c + row * t->ldc, t->columns, t->first, t->last);
}

static void run_tile(panels *w, double *sums) {
  int64_t depth = quotient(w->k, quotient(w->k, DEPTH));
  w->depth = depth;
  panels_cut(w);
  for (int64_t p = 0; p < w->k && !td_pool_stopped(w->pool); p += depth) {
    w->add = sums ? p % (depth * (LONG / DEPTH)) != 0 : p > 0;
    run_panel(w, p, MIN(w->k - p, depth));
    bool last = p + depth >= w->k;
    if (!sums || (!last && (p / depth + 1) % (LONG / DEPTH))) continue;
    gathering t = {sums, (float *)w->c, w->ldc, w->b.lines, p < depth * (LONG / DEPTH), last};
    run_pieces(w->pool, w->a.lines, gather_piece, &t);
  }
}

// room: td_gemm_single_bytes. packed_k: of the operands that are packed.
static void run_tiles(td_pool *pool, uint8_t dtype, const td_gemm_job *job, int64_t packed_k, char *room) {
  if (job->m < 1 || job->n < 1) return;
  const td_gemm_kernel *kernel = td_gemm_kernel_of(dtype);
  int bytes = td_dtype_bytes(dtype);
  operand a = operand_a(kernel, job, bytes), b = operand_b(kernel, job, bytes);
  a.packed_k = b.packed_k = packed_k;
  a.room = room;
  b.room = a.room + operand_bytes(job->m, kernel->rows, job->k, bytes);
  char *sums = b.room + operand_bytes(job->n, kernel->columns, job->k, bytes);
  int64_t rows = tile_of(job->m, a.side), columns = tile_of(job->n, b.side), at[2 * DEPTH];
  for (int64_t i = 0; i < job->m; i += rows)
    for (int64_t j = 0; j < job->n; j += columns) {
      panels w = {.kernel = kernel, .pool = pool, .bytes = bytes, .a = a, .b = b, .ldc = job->ldc, .k = job->k};
      w.at = at;
      w.edge_at = at + DEPTH;
      w.c = (char *)job->c + (i * job->ldc + j) * bytes;
      operand_cut(&w.a, i, MIN(job->m - i, rows), bytes);
      operand_cut(&w.b, j, MIN(job->n - j, columns), bytes);
      run_tile(&w, is_long(dtype, job->k) ? (double *)sums : NULL);
    }
}

void td_gemm_single(uint8_t dtype, const td_gemm_job *job, void *room) {
  run_tiles(NULL, dtype, job, job->k, room);
}

int64_t td_gemm_single_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k) {
  const td_gemm_kernel *kernel = td_gemm_kernel_of(dtype);
  int bytes = td_dtype_bytes(dtype);
  return operand_bytes(m, kernel->rows, k, bytes) + operand_bytes(n, kernel->columns, k, bytes) +
         totals_bytes(dtype, m, n, k);
}

// ---- operands packed beforehand ----

int64_t td_gemm_packed_bytes(uint8_t dtype, bool left, int64_t lines, int64_t k) {
  const td_gemm_kernel *kernel = td_gemm_kernel_of(dtype);
  int64_t side = left ? a_side(kernel, lines) : kernel->columns;
  int bytes = td_dtype_bytes(dtype);
  return quotient(lines, side) * strip_size(side, k, bytes) * bytes;
}

typedef struct packing {
  const td_gemm_kernel *kernel;
  operand o;
  int64_t k, strip;
  int bytes;
  char *out;
} packing;

static void packing_piece(void *argument, int64_t strip) {
  const packing *g = argument;
  pack_strips(g->kernel, &g->o, strip, strip + 1, 0, g->k, g->bytes, g->out + strip * g->strip * g->bytes);
}

void td_gemm_pack(td_pool *pool, uint8_t dtype, const td_gemm_job *job, bool left, void *out) {
  packing g = {.kernel = td_gemm_kernel_of(dtype), .k = job->k, .bytes = td_dtype_bytes(dtype), .out = out};
  g.o = left ? operand_a(g.kernel, job, g.bytes) : operand_b(g.kernel, job, g.bytes);
  operand_cut(&g.o, 0, left ? job->m : job->n, g.bytes);
  g.strip = strip_size(g.o.side, g.k, g.bytes);
  run_pieces(pool, g.o.strips, packing_piece, &g);
}

td_row_strips td_gemm_packed_rows(uint8_t dtype, int64_t m, int64_t k, const void *packed, int64_t first) {
  int64_t side = a_side(td_gemm_kernel_of(dtype), m), bytes = td_dtype_bytes(dtype);
  return (td_row_strips){(const char *)packed + first * side * bytes, side, strip_size(side, k, (int)bytes), 1, side};
}

// ---- parts of k ----

typedef struct parts {
  td_pool *pool; // a part runs on one thread of it, as nested work does
  const td_gemm_job *job;
  uint8_t dtype;
  int64_t count, length, single_bytes;
  char *sums, *room; // C of each part but the first, without gaps; single_bytes for each
} parts;

static int64_t part_length(const td_gemm_job *job, int bytes) { // k where it isn't cut
  if (job->k / DEEP < MAX(job->m, job->n)) return job->k;
  int64_t count = MIN(pieces_of((double)job->m * (double)job->n * (double)job->k * (bytes / 4)), job->k / PART);
  return quotient(job->k, MAX(count, 1));
}

static parts parts_of(uint8_t dtype, const td_gemm_job *job) {
  parts p = {.job = job, .dtype = dtype, .length = part_length(job, td_dtype_bytes(dtype))};
  p.count = quotient(job->k, p.length);
  p.single_bytes = td_gemm_single_bytes(dtype, job->m, job->n, p.length);
  return p;
}

static int64_t sums_bytes(const parts *p) {
  return round_up((p->count - 1) * p->job->m * p->job->n * td_dtype_bytes(p->dtype));
}

static void part_piece(void *argument, int64_t part) {
  const parts *p = argument;
  int64_t first = part * p->length, bytes = td_dtype_bytes(p->dtype);
  td_gemm_job job = *p->job;
  job.k = MIN(job.k - first, p->length);
  job.a = (const char *)job.a + first * (job.a_transposed ? job.lda : 1) * bytes;
  job.b = (const char *)job.b + first * (job.b_transposed ? 1 : job.ldb) * bytes;
  const td_gemm_kernel *kernel = td_gemm_kernel_of(p->dtype);
  if (job.a_packed) job.a_packed = (const char *)job.a_packed + first * a_side(kernel, job.m) * bytes;
  if (job.b_packed) job.b_packed = (const char *)job.b_packed + first * kernel->columns * bytes;
  if (part) {
    job.c = p->sums + (part - 1) * job.m * job.n * bytes;
    job.ldc = job.n;
  }
  run_tiles(p->pool, p->dtype, &job, p->job->k, p->room + part * p->single_bytes);
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

static void add_sums(const parts *p) {
  const td_gemm_job *job = p->job;
  int64_t size = job->m * job->n;
  for (int64_t i = 0; i < job->m; i++) {
    if (p->dtype == TD_FLOAT32)
      single_add_sums((float *)job->c + i * job->ldc, (const float *)p->sums + i * job->n, p->count - 1, size, job->n);
    else
      twofold_add_sums((double *)job->c + i * job->ldc, (const double *)p->sums + i * job->n, p->count - 1, size,
                       job->n);
  }
}

static void run_parts(td_pool *pool, uint8_t dtype, const td_gemm_job *job, char *workspace) {
  parts p = parts_of(dtype, job);
  p.pool = pool;
  p.sums = workspace;
  p.room = workspace + sums_bytes(&p);
  if (p.count == 1) run_tiles(pool, dtype, job, job->k, p.room);
  else {
    run_pieces(pool, p.count, part_piece, &p);
    add_sums(&p);
  }
}

// ---- which one ----

enum method { NOTHING, PLAIN_LOOPS, VECTOR, PANELS };

static enum method method_of(uint8_t dtype, const td_gemm_job *job) {
  if (job->m == 0 || job->n == 0) return NOTHING;
  bool floating = dtype == TD_FLOAT32 || dtype == TD_FLOAT64;
  if (!floating || job->k == 0 || (double)job->m * (double)job->n * (double)job->k <= TINY) return PLAIN_LOOPS;
  return job->m == 1 || job->n == 1 ? VECTOR : PANELS;
}

int64_t td_gemm_workspace(uint8_t dtype, const td_gemm_job *job) {
  enum method method = method_of(dtype, job);
  if (method == VECTOR) return gathers(job) ? round_up(job->k * td_dtype_bytes(dtype)) : 0;
  if (method != PANELS) return 0;
  parts p = parts_of(dtype, job);
  return sums_bytes(&p) + p.count * p.single_bytes;
}

void td_gemm(td_pool *pool, uint8_t dtype, const td_gemm_job *job, void *workspace) {
  switch (method_of(dtype, job)) {
  case NOTHING: break;
  case PLAIN_LOOPS: run_plain(dtype, job); break;
  case VECTOR: run_vector(pool, dtype, job, workspace); break;
  case PANELS: run_parts(pool, dtype, job, workspace); break;
  }
}
