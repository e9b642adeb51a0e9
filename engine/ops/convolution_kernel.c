// How convolutions are computed.
//  1. Where results side by side read numbers side by side: as products of weights and a copy of the source, shifted
//     for each tap (convolution_shifted.h), block by block.
//  2. Else as products of weights and columns (gather_columns.h). A block is a stretch of one image's results, or
//     several whole images, whose columns fit the inner cache.
//  3. Groups with few results a column (depthwise ones) are summed line by line instead.
//  4. Weights are a sum over blocks. Pieces of it own some channels, or some images; those of images are added in
//     order.
//  5. Blocks and pieces are cut by sizes alone and share nothing, so any thread may take any of them.
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/device/cpu/gemm.h"
#include "engine/ops/convolution_shifted.h"

enum {
  COLUMN_ELEMENTS = 1 << 18, // of a block
  BLOCKS = 16, // at least, where there is enough to do
  LEAST_COLUMNS = 128, // of a block, where there are so many, also of deep ones: weights are read for each block
  FEW = 4, // below so many rows lines are summed
  STRETCH = 2048, // results of a line that are summed at a time
  GATHERED = 64, // products of a summed line that its own dtype gathers before they are added in double
  PIECES = 8, // of a sum over images and channels
  LEAST_PLAIN = 64, // columns of one image from which on they are read as they lie
  LEAST_ROWS = 144, // of columns in a piece of weights
  SMALL_SUM = 1 << 17, // weights up to which pieces are rather images than channels: each image is copied but once
  PANEL = 256, // of the depth of a product
  COPIED = 1 << 17, // elements that a shifted block copies
  SHIFTED = 4096, // results of it
  DOTTED = 2304, // results of a block of weights: what a few lines of it hold stays in the inner cache
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t aligned(int64_t bytes) { return quotient(bytes, 64) * 64; }
static int64_t product_of(const int64_t n[3]) { return n[0] * n[1] * n[2]; }

// ---- blocks ----

typedef struct blocks {
  int64_t count, each, images, columns; // count = quotient(images in all, images) * each
} blocks;

static blocks blocks_of(const td_columns *c, int64_t depth) {
  int64_t columns = most(COLUMN_ELEMENTS / most(depth, 1), LEAST_COLUMNS), results = most(c->results, 1);
  int64_t share = quotient(c->images * c->groups * results, BLOCKS);
  columns = least(columns, most(share, LEAST_COLUMNS));
  blocks b = {.each = 1, .images = 1, .columns = results};
  if (columns >= results) b.images = least(columns / results, most(c->images, 1));
  else {
    b.each = quotient(results, columns);
    b.columns = quotient(results, b.each);
  }
  b.count = quotient(c->images, b.images) * b.each;
  return b;
}

static td_columns_part part_of(const td_columns *c, const blocks *b, int64_t block) {
  td_columns_part part = {.channels = c->channels, .image = block / b->each * b->images};
  part.first = block % b->each * b->columns;
  part.count = least(b->columns, c->results - part.first);
  part.images = least(b->images, c->images - part.image);
  return part;
}

// ---- products ----

typedef struct shifted_room { // of an item: bytes
  int64_t copy, at, result;
} shifted_room;

typedef struct task {
  td_columns c;
  blocks b;
  int64_t rows, depth, lines_each; // channels of the result in a group; channels * taps; lines of an item, where summed
  int64_t stretch; // results of a line of an item, where summed
  const td_pool *pool;
  int64_t result_plane;
  const char *weights, *bias; // groups x rows x depth
  char *packed; // the weights of each group, as the product reads them
  int64_t packed_bytes; // of a group's
  const td_gemm_kernel *kernel;
  td_shift shift;
  shifted_room room;
  char *out;
} task;

static bool scattered(const task *t, const td_columns_part *part) { // results aren't rows of the output
  for (int i = 0; i < 3; i++)
    if (t->c.axes[i].result_step != 1) return true;
  return part->images > 1;
}

static char *result_at(const task *t, int64_t image, int64_t group, int64_t row) {
  return t->out + ((image * t->c.groups + group) * t->rows + row) * t->result_plane * td_dtype_bytes(t->c.dtype);
}

#define PLACING(T, name)                                                                                      \
  /* count results from first on, put to their places in the plane */                                         \
  TD_CLONES static void name##_place(const td_columns *c, int64_t first, int64_t count, const T *from, T add, \
                                     T *plane) {                                                              \
    const td_tap_axis *d = &c->axes[0], *h = &c->axes[1], *w = &c->axes[2];                                   \
    while (count > 0) {                                                                                       \
      int64_t line = first / w->results, within = first % w->results, n = least(w->results - within, count);  \
      int64_t to_d = d->result_first + line / h->results * d->result_step;                                    \
      int64_t to_h = h->result_first + line % h->results * h->result_step, step = w->result_step;             \
      T *to = plane + (to_d * h->width + to_h) * w->width + w->result_first + within * step;                  \
      for (int64_t j = 0; j < n; j++) to[j * step] = from[j] + add;                                           \
      from += n;                                                                                              \
      first += n;                                                                                             \
      count -= n;                                                                                             \
    }                                                                                                         \
  }                                                                                                           \
  TD_CLONES static void name##_shift(T *line, int64_t count, T add) {                                         \
    for (int64_t j = 0; j < count; j++) line[j] += add;                                                       \
  }                                                                                                           \
  TD_CLONES static void name##_add(T *restrict sum, const T *restrict more, int64_t count) {                  \
    for (int64_t j = 0; j < count; j++) sum[j] += more[j];                                                    \
  }                                                                                                           \
  TD_CLONES static void name##_add_scaled(T *restrict sum, const T *restrict x, int64_t step, int64_t count,  \
                                          T factor) {                                                         \
    if (step == 1)                                                                                            \
      for (int64_t j = 0; j < count; j++) sum[j] += factor * x[j];                                            \
    else                                                                                                      \
      for (int64_t j = 0; j < count; j++) sum[j] += factor * x[j * step];                                     \
  }                                                                                                           \
  /* of so many products at most in T: long lines keep their digits */                                        \
  TD_CLONES static double name##_dot(const T *x, int64_t step, const T *y, int64_t count) {                   \
    enum { LANES = 16, TOGETHER = 32 * LANES };                                                               \
    double total = 0;                                                                                         \
    for (int64_t j = 0; j < count;) {                                                                         \
      int64_t last = least(count, j + TOGETHER);                                                              \
      T sums[LANES] = {0}, sum = 0;                                                                           \
      if (step == 1)                                                                                          \
        for (; j + LANES <= last; j += LANES)                                                                 \
          for (int l = 0; l < LANES; l++) sums[l] += x[j + l] * y[j + l];                                     \
      else                                                                                                    \
        for (; j + LANES <= last; j += LANES)                                                                 \
          for (int l = 0; l < LANES; l++) sums[l] += x[(j + l) * step] * y[j + l];                            \
      for (; j < last; j++) sum += x[j * step] * y[j];                                                        \
      for (int l = 0; l < LANES; l++) sum += sums[l];                                                         \
      total += (double)sum;                                                                                   \
    }                                                                                                         \
    return total;                                                                                             \
  }                                                                                                           \
  TD_CLONES static void name##_accumulate(double *restrict sum, const T *restrict more, int64_t count) {      \
    for (int64_t j = 0; j < count; j++) sum[j] += (double)more[j];                                            \
  }                                                                                                           \
  TD_CLONES static void name##_settle(T *restrict to, const double *restrict sum, int64_t count) {            \
    for (int64_t j = 0; j < count; j++) to[j] = (T)sum[j];                                                    \
  }
PLACING(float, single)
PLACING(double, twofold)

static void product_place(const task *t, const td_columns_part *part, int64_t row, int64_t image, const char *from,
                          char *plane) {
  int64_t channel = part->group * t->rows + row, at = row * part->images * part->count + image * part->count;
  if (t->c.dtype == TD_FLOAT32)
    single_place(&t->c, part->first, part->count, (const float *)from + at,
                 t->bias ? ((const float *)t->bias)[channel] : 0, (float *)plane);
  else
    twofold_place(&t->c, part->first, part->count, (const double *)from + at,
                  t->bias ? ((const double *)t->bias)[channel] : 0, (double *)plane);
}

static void product_shift(const task *t, const td_columns_part *part, int64_t row, char *line) {
  int64_t channel = part->group * t->rows + row;
  if (!t->bias) return;
  if (t->c.dtype == TD_FLOAT32) single_shift((float *)line, part->count, ((const float *)t->bias)[channel]);
  else twofold_shift((double *)line, part->count, ((const double *)t->bias)[channel]);
}

static int64_t columns_bytes(const task *t) {
  return aligned(t->depth * t->b.images * t->b.columns * td_dtype_bytes(t->c.dtype));
}

static int64_t result_bytes(const task *t) {
  return aligned(t->rows * t->b.images * t->b.columns * td_dtype_bytes(t->c.dtype));
}

static void product_item(void *argument, int64_t item, void *scratch) {
  task *t = argument;
  int64_t bytes = td_dtype_bytes(t->c.dtype);
  td_columns_part part = part_of(&t->c, &t->b, item % t->b.count);
  part.group = item / t->b.count;
  int64_t width = part.images * part.count;
  bool apart = scattered(t, &part), plain = !apart && td_columns_plain(&t->c);
  char *columns = scratch, *result = columns + columns_bytes(t), *room = result + result_bytes(t);
  td_gemm_job job = {.m = t->rows, .n = width, .k = t->depth, .lda = t->depth, .ldb = width, .ldc = width};
  job.a = t->weights + part.group * t->rows * t->depth * bytes;
  job.a_packed = t->packed + part.group * t->packed_bytes;
  job.b = columns;
  job.c = result;
  if (!apart) {
    job.c = result_at(t, part.image, part.group, 0) + part.first * bytes;
    job.ldc = t->result_plane;
  }
  if (plain) {
    job.b = t->c.source + ((part.image * t->c.groups + part.group) * t->c.channels * t->c.plane + part.first) * bytes;
    job.ldb = t->c.plane;
  } else td_columns_fill(&t->c, &part, columns);
  td_gemm_single(t->c.dtype, &job, room);
  for (int64_t row = 0; row < t->rows; row++) {
    if (!apart) product_shift(t, &part, row, (char *)job.c + row * job.ldc * bytes);
    for (int64_t i = 0; i < part.images && apart; i++)
      product_place(t, &part, row, i, result, result_at(t, part.image + i, part.group, row));
  }
}

static int64_t product_scratch(const task *t) {
  int64_t room = td_gemm_single_bytes(t->c.dtype, t->rows, t->b.images * t->b.columns, t->depth);
  return columns_bytes(t) + result_bytes(t) + room;
}

// ---- shifted products ----

static int64_t result_pitch(const task *t, const td_shift_block *b) {
  return quotient(b->length, t->kernel->lanes) * t->kernel->lanes;
}

static shifted_room shifted_room_of(const task *t) {
  td_shift_block b = td_shift_largest(&t->c, &t->shift);
  int64_t bytes = td_dtype_bytes(t->c.dtype), slack = t->kernel->columns;
  return (shifted_room){aligned((t->c.channels * b.channel + slack) * bytes),
                        aligned(t->depth * (int64_t)sizeof(int64_t)), aligned(t->rows * result_pitch(t, &b) * bytes)};
}

#define DELIVERING(T, name)                                                                                   \
  TD_CLONES static void name##_deliver(const task *t, const td_shift_block *b, int64_t image, int64_t group,  \
                                       int64_t row, const T *restrict from) {                                 \
    const td_tap_axis *d = &t->c.axes[0], *h = &t->c.axes[1], *w = &t->c.axes[2];                             \
    const T add = t->bias ? ((const T *)t->bias)[group * t->rows + row] : 0;                                  \
    const int64_t step = w->result_step, to_d = d->result_first + b->plane * d->result_step;                  \
    T *plane = (T *)result_at(t, image, group, row) + w->result_first + b->first * step;                      \
    for (int64_t line = 0; line < b->lines; line++, from += b->row) {                                         \
      const int64_t to_h = h->result_first + (b->line + line) * h->result_step;                               \
      T *restrict to = plane + (to_d * h->width + to_h) * w->width;                                           \
      if (step == 1)                                                                                          \
        for (int64_t j = 0; j < b->width; j++) to[j] = from[j] + add;                                         \
      else                                                                                                    \
        for (int64_t j = 0; j < b->width; j++) to[j * step] = from[j] + add;                                  \
    }                                                                                                         \
  }
DELIVERING(float, single)
DELIVERING(double, twofold)

static void shifted_item(void *argument, int64_t item, void *scratch) {
  const task *t = argument;
  td_shift_block b = td_shift_block_of(&t->c, &t->shift, item % t->shift.blocks);
  int64_t group = item / t->shift.blocks % t->c.groups, image = item / t->shift.blocks / t->c.groups;
  td_columns_part part = {.group = group, .image = image, .channels = t->c.channels};
  char *copy = scratch, *result = copy + t->room.copy + t->room.at;
  int64_t *at = (int64_t *)(copy + t->room.copy), pitch = result_pitch(t, &b), columns = t->kernel->columns;
  td_shift_copy(&t->c, &t->shift, &b, &part, columns, copy);
  td_shift_offsets(&t->c, &b, t->c.channels, at);
  for (int64_t p = 0; p < t->depth; p += PANEL) {
    td_row_strips left =
        td_gemm_packed_rows(t->c.dtype, t->rows, t->depth, t->packed + group * t->packed_bytes, p);
    td_column_strips right = {copy, at + p, columns};
    t->kernel->multiply(&left, &right, t->rows, b.length, least(t->depth - p, PANEL), result, pitch, p > 0);
  }
  for (int64_t row = 0; row < t->rows; row++) {
    if (t->c.dtype == TD_FLOAT32) single_deliver(t, &b, image, group, row, (const float *)result + row * pitch);
    else twofold_deliver(t, &b, image, group, row, (const double *)result + row * pitch);
  }
}

// ---- sums of lines ----

// Count results of a line from first on: weights are those of its channel. totals: of count elements; sum: as many,
// after it. A stopped pool leaves garbage.
#define SUMMING(T, name)                                                                                         \
  static void name##_line(const task *t, int64_t image, int64_t group, int64_t row, int64_t line, int64_t first, \
                          int64_t count, double *totals, T *sum) {                                               \
    const td_columns *c = &t->c;                                                                                 \
    const td_tap_axis *d = &c->axes[0], *h = &c->axes[1], *w = &c->axes[2];                                      \
    const T *weight = (const T *)t->weights + (group * t->rows + row) * t->depth;                                \
    const T *plane = (const T *)c->source + (image * c->groups + group) * c->channels * c->plane;                \
    int64_t gathered = 0;                                                                                        \
    bool deep = t->depth > GATHERED;                                                                             \
    for (int64_t j = 0; j < count; j++) totals[j] = sum[j] = 0;                                                  \
    for (int64_t n = 0; n < c->channels; n++, plane += c->plane)                                                 \
      for (int64_t a = 0; a < d->taps; a++)                                                                      \
        for (int64_t b = 0; b < h->taps; b++, weight += w->taps) {                                               \
          int64_t in_d = d->origin + a * d->slope + line / h->results * d->step;                                 \
          int64_t in_h = h->origin + b * h->slope + line % h->results * h->step;                                 \
          if (in_d < 0 || in_d >= d->source || in_h < 0 || in_h >= h->source) continue;                          \
          const T *from = plane + (in_d * h->source + in_h) * w->source;                                         \
          for (int64_t m = 0; m < w->taps;) {                                                                    \
            int64_t last = least(w->taps, m + GATHERED - gathered);                                              \
            for (gathered += last - m; m < last; m++) {                                                          \
              int64_t low, high, start = w->origin + m * w->slope + first * w->step;                             \
              td_tap_range(w, m, first, count, &low, &high);                                                     \
              if (low < high)                                                                                    \
                name##_add_scaled(sum + low, from + start + low * w->step, w->step, high - low, weight[m]);      \
            }                                                                                                    \
            if (!deep || gathered < GATHERED) continue;                                                          \
            if (td_pool_stopped(t->pool)) return;                                                                \
            name##_accumulate(totals, sum, count);                                                               \
            memset(sum, 0, (size_t)count * sizeof *sum);                                                         \
            gathered = 0;                                                                                        \
          }                                                                                                      \
        }                                                                                                        \
    if (deep) {                                                                                                  \
      name##_accumulate(totals, sum, count);                                                                     \
      name##_settle(sum, totals, count);                                                                         \
    }                                                                                                            \
    T add = t->bias ? ((const T *)t->bias)[group * t->rows + row] : 0;                                           \
    name##_place(c, line * w->results + first, count, sum, add, (T *)result_at(t, image, group, row));           \
  }
SUMMING(float, single)
SUMMING(double, twofold)

static int64_t line_count(const td_columns *c) { return c->axes[0].results * c->axes[1].results; }

static void summed_item(void *argument, int64_t item, void *scratch) {
  const task *t = argument;
  int64_t lines = line_count(&t->c), width = t->c.axes[2].results, stretches = quotient(width, t->stretch);
  int64_t each = quotient(lines, t->lines_each), block = item / stretches, plane = block / each;
  int64_t first = block % each * t->lines_each, last = least(first + t->lines_each, lines);
  int64_t row = plane % t->rows, group = plane / t->rows % t->c.groups, image = plane / t->rows / t->c.groups;
  int64_t begin = item % stretches * t->stretch, count = least(t->stretch, width - begin);
  for (int64_t line = first; line < last; line++) {
    double *totals = scratch;
    if (t->c.dtype == TD_FLOAT32)
      single_line(t, image, group, row, line, begin, count, totals, (float *)(totals + count));
    else twofold_line(t, image, group, row, line, begin, count, totals, totals + count);
  }
}

// ---- the two maps that give results ----

typedef struct plan { // how a task is cut
  int64_t items, scratch; // scratch: bytes of an item
  int64_t packed; // bytes of the packed weights
  td_item *work;
} plan;

static plan plan_of(task *t) {
  td_columns *c = &t->c;
  plan p = {.work = product_item};
  t->kernel = td_gemm_kernel_of(c->dtype);
  if (t->rows < FEW || !t->depth) {
    p.work = summed_item;
    t->lines_each = most(1, (1 << 15) / most(1, c->axes[2].results * most(1, t->depth)));
    t->stretch = most(1, least(c->axes[2].results, STRETCH));
    p.items = c->images * c->groups * t->rows * quotient(line_count(c), t->lines_each) *
              quotient(c->axes[2].results, t->stretch);
    p.scratch = t->stretch * ((int64_t)sizeof(double) + td_dtype_bytes(c->dtype));
  } else if (td_shift_takes(c) && !td_columns_plain(c)) {
    p.work = shifted_item;
    t->shift = td_shift_of(c, c->channels, COPIED, SHIFTED);
    t->room = shifted_room_of(t);
    p.items = c->images * c->groups * t->shift.blocks;
    p.scratch = t->room.copy + t->room.at + t->room.result;
  } else {
    t->b = blocks_of(c, t->depth);
    p.items = t->b.count * c->groups;
    p.scratch = product_scratch(t);
  }
  if (p.work != summed_item) t->packed_bytes = td_gemm_packed_bytes(c->dtype, true, t->rows, t->depth);
  p.packed = c->groups * t->packed_bytes;
  if (!c->images || !c->groups || !c->results || !t->rows) p.items = p.packed = 0;
  return p;
}

static void task_run(td_pool *pool, task *t, char *workspace) {
  plan p = plan_of(t);
  t->pool = pool;
  t->packed = workspace;
  for (int64_t group = 0; group < t->c.groups && p.packed; group++) {
    td_gemm_job job = {.m = t->rows, .k = t->depth, .lda = t->depth};
    job.a = t->weights + group * t->rows * t->depth * td_dtype_bytes(t->c.dtype);
    td_gemm_pack(pool, t->c.dtype, &job, true, t->packed + group * t->packed_bytes);
  }
  td_items_run(pool, p.items, p.scratch, p.work, t, workspace + p.packed);
}

static void task_open(const td_convolution *v, bool adjoint, const int64_t phase[3], task *t) {
  *t = (task){.rows = adjoint ? v->inputs : v->outputs, .result_plane = product_of(adjoint ? v->in : v->out)};
  if (adjoint) td_columns_adjoint(v, NULL, phase, &t->c);
  else td_columns_forward(v, NULL, &t->c);
  t->depth = t->c.channels * t->c.taps;
}

// Phases of the adjoint, in all: those past the end of x have no result.
static void phase_counts(const td_convolution *v, bool adjoint, int64_t counts[3]) {
  for (int i = 0; i < 3; i++) counts[i] = adjoint ? least(v->stride[i], v->in[i]) : 1;
}

static void phase_at(const int64_t counts[3], int64_t index, int64_t phase[3]) {
  for (int i = 3; i-- > 0; index /= counts[i]) phase[i] = index % counts[i];
}

static int64_t turned_bytes(const td_convolution *v) { // the adjoint's weights, one phase at a time
  return v->groups * v->inputs * v->outputs * product_of(v->kernel) * td_dtype_bytes(v->dtype);
}

int64_t td_convolution_workspace(const td_pool *pool, const td_convolution *v, bool adjoint) {
  int64_t counts[3], phase[3], bytes = 0;
  phase_counts(v, adjoint, counts);
  for (int64_t i = 0; i < product_of(counts); i++) {
    task t;
    phase_at(counts, i, phase);
    task_open(v, adjoint, phase, &t);
    plan p = plan_of(&t);
    bytes = most(bytes, p.packed + td_items_scratch(pool, p.items, p.scratch));
  }
  return bytes + (adjoint ? aligned(turned_bytes(v)) : 0);
}

// ---- the adjoint's weights: groups x inputs x (outputs, taps of the phase) ----

typedef struct turning {
  const td_convolution *v;
  const td_columns *c;
  const char *weights;
  char *out;
} turning;

#define TURNING(T, name)                                                                                         \
  static void name##_turn(const turning *w, int64_t row) {                                                       \
    const td_convolution *v = w->v;                                                                              \
    const td_tap_axis *d = &w->c->axes[0], *h = &w->c->axes[1], *x = &w->c->axes[2];                             \
    int64_t group = row / v->inputs, input = row % v->inputs, taps = v->kernel[0] * v->kernel[1] * v->kernel[2]; \
    T *out = (T *)w->out + row * v->outputs * w->c->taps;                                                        \
    for (int64_t o = 0; o < v->outputs; o++) {                                                                   \
      const T *from = (const T *)w->weights + ((group * v->outputs + o) * v->inputs + input) * taps;             \
      for (int64_t a = 0; a < d->taps; a++)                                                                      \
        for (int64_t b = 0; b < h->taps; b++)                                                                    \
          for (int64_t m = 0; m < x->taps; m++)                                                                  \
            *out++ = from[((d->tap_first + a * d->tap_step) * v->kernel[1] + h->tap_first + b * h->tap_step) *   \
                              v->kernel[2] +                                                                     \
                          x->tap_first + m * x->tap_step];                                                       \
    }                                                                                                            \
  }
TURNING(float, single)
TURNING(double, twofold)

static void turn_rows(void *argument, int64_t first, int64_t last) {
  const turning *w = argument;
  for (int64_t row = first; row < last; row++) {
    if (w->c->dtype == TD_FLOAT32) single_turn(w, row);
    else twofold_turn(w, row);
  }
}

void td_convolution_run(td_pool *pool, const td_convolution *v, bool adjoint, const char *source, const char *weights,
                        const char *bias, char *out, void *workspace) {
  int64_t counts[3], phase[3];
  char *turned = workspace, *scratch = turned + (adjoint ? aligned(turned_bytes(v)) : 0);
  phase_counts(v, adjoint, counts);
  for (int64_t i = 0; i < product_of(counts); i++) {
    task t;
    phase_at(counts, i, phase);
    task_open(v, adjoint, phase, &t);
    t.c.source = source;
    t.weights = adjoint ? turned : weights;
    t.bias = bias;
    t.out = out;
    turning w = {v, &t.c, weights, turned};
    if (adjoint) td_ranges_run(pool, v->groups * v->inputs, v->outputs * t.c.taps * 2, turn_rows, &w);
    task_run(pool, &t, scratch);
  }
}

// ---- weights ----

typedef struct weight_task {
  const td_pool *pool;
  td_columns c; // of x
  blocks b; // of an image piece's images
  int64_t outputs, rows; // of dw in a group; channels * taps
  int64_t channels, channel_pieces, images, image_pieces; // of a piece; how many there are
  const char *y;
  char *out, *sums; // of the first image piece; of the others
  bool plain; // x and y are read as they lie, one image at a time
  bool shifted;
  td_shift shift;
} weight_task;

static int64_t weight_size(const weight_task *t) { return t->c.groups * t->outputs * t->rows; }

static void weight_open(const td_convolution *v, weight_task *t) {
  *t = (weight_task){.outputs = v->outputs};
  td_columns_forward(v, NULL, &t->c);
  t->rows = t->c.channels * t->c.taps;
  int64_t channels = most(1, quotient(LEAST_ROWS, most(1, t->c.taps))); // of a piece, at least
  if (weight_size(t) <= SMALL_SUM) channels = most(channels, t->c.channels * v->groups * v->images / PIECES);
  t->channels = least(channels, most(1, t->c.channels));
  t->channel_pieces = quotient(t->c.channels, t->channels);
  int64_t pieces = most(1, v->groups * t->channel_pieces);
  t->image_pieces = least(quotient(PIECES, pieces), most(1, v->images));
  t->images = quotient(v->images, t->image_pieces);
  if (t->images) t->image_pieces = quotient(v->images, t->images);
  td_columns some = t->c;
  some.images = t->images;
  t->b = blocks_of(&some, t->channels * t->c.taps + t->outputs);
  t->plain = td_columns_plain(&t->c) && t->c.results >= LEAST_PLAIN;
  t->shifted = !t->plain && td_shift_takes(&t->c);
  if (t->shifted) t->shift = td_shift_of(&t->c, t->channels, COPIED, DOTTED);
  if (t->plain) t->b = (blocks){.count = t->images, .each = 1, .images = 1, .columns = t->c.results};
}

static bool weight_summed(const weight_task *t) { return t->outputs < FEW; }
static int64_t weight_pieces(const weight_task *t) {
  return weight_size(t) ? t->c.groups * t->channel_pieces * t->image_pieces : 0;
}

typedef struct weight_room { // bytes
  int64_t columns, copy, product, totals, blocks;
} weight_room;

static int64_t dotted_length(const weight_task *t, const td_shift_block *b) {
  int64_t lanes = td_gemm_kernel_of(t->c.dtype)->lanes;
  return quotient(b->length, lanes) * lanes;
}

// Images whose blocks are computed together.
static int64_t dotted_images(const weight_task *t, const td_shift_block *b) {
  return least(most(DOTTED / dotted_length(t, b), 1), t->images);
}

static weight_room dotted_room(const weight_task *t) {
  td_shift_block b = td_shift_largest(&t->c, &t->shift);
  int64_t bytes = td_dtype_bytes(t->c.dtype), rows = t->channels * t->c.taps, images = most(dotted_images(t, &b), 1);
  int64_t slack = td_gemm_kernel_of(t->c.dtype)->lanes;
  return (weight_room){.columns = aligned(images * (t->channels * b.channel + slack) * bytes),
                       .copy = aligned(images * t->outputs * dotted_length(t, &b) * bytes),
                       .product = aligned(rows * (int64_t)sizeof(int64_t)),
                       .totals = aligned(t->outputs * rows * (int64_t)sizeof(double))};
}

static weight_room weight_room_of(const weight_task *t) {
  int64_t width = t->b.images * t->b.columns, rows = t->channels * t->c.taps, bytes = td_dtype_bytes(t->c.dtype);
  weight_room room = {aligned(rows * width * bytes), aligned(t->outputs * width * bytes),
                      aligned(t->outputs * rows * bytes), aligned(t->outputs * rows * (int64_t)sizeof(double)), 0};
  room.blocks = td_gemm_single_bytes(t->c.dtype, t->outputs, rows, width);
  return room;
}

static int64_t room_bytes(weight_room room) {
  return room.columns + room.copy + room.product + room.totals + room.blocks;
}

static int64_t weight_scratch(const weight_task *t) {
  if (weight_summed(t)) return 0;
  int64_t bytes = room_bytes(weight_room_of(t));
  return t->shifted ? most(bytes, room_bytes(dotted_room(t))) : bytes;
}

static int64_t weight_sums(const weight_task *t) { // bytes
  return aligned((t->image_pieces - 1) * weight_size(t) * td_dtype_bytes(t->c.dtype));
}

int64_t td_convolution_weight_workspace(const td_pool *pool, const td_convolution *v) {
  weight_task t;
  weight_open(v, &t);
  return weight_sums(&t) + td_items_scratch(pool, weight_pieces(&t), weight_scratch(&t));
}

typedef struct weight_piece {
  td_columns_part part; // group, channels, and images of all of its blocks
  char *out; // row 0, its first column
} weight_piece;

static weight_piece piece_of(const weight_task *t, int64_t item) {
  int64_t group = item % t->c.groups, channels = item / t->c.groups % t->channel_pieces;
  int64_t images = item / t->c.groups / t->channel_pieces, bytes = td_dtype_bytes(t->c.dtype);
  weight_piece p = {.part = {.group = group, .channel = channels * t->channels, .image = images * t->images}};
  p.part.channels = least(t->channels, t->c.channels - p.part.channel);
  p.part.images = least(t->images, t->c.images - p.part.image);
  p.out = images ? t->sums + (images - 1) * weight_size(t) * bytes : t->out;
  p.out += (group * t->outputs * t->rows + p.part.channel * t->c.taps) * bytes;
  return p;
}

static const char *y_plane(const weight_task *t, int64_t image, int64_t group, int64_t row) {
  return t->y + ((image * t->c.groups + group) * t->outputs + row) * t->c.results * td_dtype_bytes(t->c.dtype);
}

// y of a block: as it lies, or copied behind each other where it is of several images.
static const char *weight_y(const weight_task *t, const td_columns_part *part, char *copy, int64_t *pitch) {
  int64_t bytes = td_dtype_bytes(t->c.dtype), run = part->count * bytes;
  *pitch = t->c.results;
  if (part->images == 1) return y_plane(t, part->image, part->group, 0) + part->first * bytes;
  *pitch = part->images * part->count;
  for (int64_t row = 0; row < t->outputs; row++)
    for (int64_t i = 0; i < part->images; i++)
      memcpy(copy + (row * part->images + i) * run, y_plane(t, part->image + i, part->group, row), (size_t)run);
  return copy;
}

static void add_line(uint8_t dtype, char *sum, const char *more, int64_t count) {
  if (dtype == TD_FLOAT32) single_add((float *)sum, (const float *)more, count);
  else twofold_add((double *)sum, (const double *)more, count);
}

// Adds the block's products to the piece's totals, which are double: there may be many blocks.
static void weight_block(weight_task *t, const weight_piece *p, int64_t block, double *totals, char *scratch) {
  int64_t bytes = td_dtype_bytes(t->c.dtype), rows = p->part.channels * t->c.taps;
  weight_room room = weight_room_of(t);
  td_columns some = t->c;
  some.images = p->part.images;
  td_columns_part part = part_of(&some, &t->b, block);
  part.group = p->part.group;
  part.channel = p->part.channel;
  part.channels = p->part.channels;
  part.image += p->part.image;
  char *columns = scratch, *copy = columns + room.columns, *product = copy + room.copy;
  td_gemm_job job = {.b_transposed = true, .m = t->outputs, .n = rows, .k = part.images * part.count, .b = columns};
  job.ldb = job.k;
  job.a = weight_y(t, &part, copy, &job.lda);
  job.c = product;
  job.ldc = rows;
  if (t->plain) {
    job.b = t->c.source + ((part.image * t->c.groups + part.group) * t->c.channels + part.channel) * t->c.plane * bytes;
    job.ldb = t->c.plane;
  } else td_columns_fill(&t->c, &part, columns);
  td_gemm_single(t->c.dtype, &job, product + room.product);
  if (t->c.dtype == TD_FLOAT32) single_accumulate(totals, (const float *)product, t->outputs * rows);
  else twofold_accumulate(totals, (const double *)product, t->outputs * rows);
}

// y of a block as lie its results in the copy of x, with zeros between lines and behind them.
static void dotted_y(const weight_task *t, const td_shift_block *b, const td_columns_part *part, int64_t row,
                     char *to) {
  int64_t bytes = td_dtype_bytes(t->c.dtype), gap = b->row - b->width, length = dotted_length(t, b);
  const char *plane = y_plane(t, part->image, part->group, row);
  int64_t line = (b->plane * t->c.axes[1].results + b->line) * t->c.axes[2].results + b->first;
  for (int64_t i = 0; i < b->lines; i++, line += t->c.axes[2].results, to += b->row * bytes) {
    memcpy(to, plane + line * bytes, (size_t)(b->width * bytes));
    memset(to + b->width * bytes, 0, (size_t)((i + 1 < b->lines ? gap : length - b->length) * bytes));
  }
}

// Adds the products of one block of some images to the piece's totals.
static void dotted_block(const weight_task *t, const td_columns_part *part, const td_shift_block *b, double *totals,
                         char *scratch) {
  weight_room room = dotted_room(t);
  int64_t bytes = td_dtype_bytes(t->c.dtype), rows = part->channels * t->c.taps, length = dotted_length(t, b);
  int64_t lanes = td_gemm_kernel_of(t->c.dtype)->lanes, segment = part->channels * b->channel + lanes;
  char *copy = scratch, *y = copy + room.columns;
  int64_t *at = (int64_t *)(y + room.copy);
  for (int64_t i = 0; i < part->images; i++) {
    td_columns_part one = *part;
    one.image += i;
    td_shift_copy(&t->c, &t->shift, b, &one, lanes, copy + i * segment * bytes);
    for (int64_t row = 0; row < t->outputs; row++)
      dotted_y(t, b, &one, row, y + (i * t->outputs + row) * length * bytes);
  }
  td_shift_offsets(&t->c, b, part->channels, at);
  td_gemm_kernel_of(t->c.dtype)->dot(&(td_dots){.a = y,
                                                 .b = copy,
                                                 .at = at,
                                                 .c = totals,
                                                 .m = t->outputs,
                                                 .n = rows,
                                                 .segments = part->images,
                                                 .length = length,
                                                 .a_line = length,
                                                 .a_segment = t->outputs * length,
                                                 .b_segment = segment,
                                                 .ldc = rows});
}

static void dotted_piece(const weight_task *t, const weight_piece *p, double *totals, char *scratch) {
  for (int64_t index = 0; index < t->shift.blocks; index++) {
    td_shift_block b = td_shift_block_of(&t->c, &t->shift, index);
    int64_t together = dotted_images(t, &b), last = p->part.image + p->part.images;
    for (int64_t i = p->part.image; i < last; i += together) {
      td_columns_part part = p->part;
      part.image = i;
      part.images = least(together, last - i);
      dotted_block(t, &part, &b, totals, scratch);
    }
  }
}

static void weight_settle(const weight_task *t, const weight_piece *p, const double *totals) {
  int64_t rows = p->part.channels * t->c.taps;
  for (int64_t row = 0; row < t->outputs; row++, totals += rows) {
    if (t->c.dtype == TD_FLOAT32) single_settle((float *)p->out + row * t->rows, totals, rows);
    else twofold_settle((double *)p->out + row * t->rows, totals, rows);
  }
}

// The number of tap (a, b, m) for one channel of x and one of y, of all images of a piece.
#define DOTTING(T, name)                                                                                       \
  static T name##_tap(const weight_task *t, const td_columns_part *p, int64_t channel, int64_t row,            \
                      const int64_t tap[3]) {                                                                  \
    const td_columns *c = &t->c;                                                                               \
    const td_tap_axis *d = &c->axes[0], *h = &c->axes[1], *w = &c->axes[2];                                    \
    int64_t low, high, start = w->origin + tap[2] * w->slope;                                                  \
    double sum = 0;                                                                                            \
    td_tap_range(w, tap[2], 0, w->results, &low, &high);                                                       \
    for (int64_t i = p->image; i < p->image + p->images && low < high; i++) {                                  \
      const T *x =                                                                                             \
          (const T *)c->source + ((i * c->groups + p->group) * c->channels + p->channel + channel) * c->plane; \
      const T *y = (const T *)y_plane(t, i, p->group, row);                                                    \
      for (int64_t line = 0; line < d->results * h->results; line++) {                                         \
        int64_t in_d = d->origin + tap[0] * d->slope + line / h->results * d->step;                            \
        int64_t in_h = h->origin + tap[1] * h->slope + line % h->results * h->step;                            \
        if (in_d < 0 || in_d >= d->source || in_h < 0 || in_h >= h->source) continue;                          \
        const T *from = x + (in_d * h->source + in_h) * w->source + start + low * w->step;                     \
        sum += name##_dot(from, w->step, y + line * w->results + low, high - low);                             \
      }                                                                                                        \
    }                                                                                                          \
    return (T)sum;                                                                                             \
  }
DOTTING(float, single)
DOTTING(double, twofold)

static void weight_dots(const weight_task *t, const weight_piece *p) {
  const td_tap_axis *axes = t->c.axes;
  for (int64_t row = 0; row < t->outputs; row++)
    for (int64_t k = 0; k < p->part.channels * t->c.taps && !td_pool_stopped(t->pool); k++) {
      int64_t m = k % t->c.taps, at = row * t->rows + k;
      int64_t tap[3] = {m / (axes[1].taps * axes[2].taps), m / axes[2].taps % axes[1].taps, m % axes[2].taps};
      if (t->c.dtype == TD_FLOAT32) ((float *)p->out)[at] = single_tap(t, &p->part, k / t->c.taps, row, tap);
      else ((double *)p->out)[at] = twofold_tap(t, &p->part, k / t->c.taps, row, tap);
    }
}

TD_CLONES static bool all_finite(const double *x, int64_t count) { // count: a multiple of 8
  double zeros[8] = {0}, zero = 0; // an infinity or a NaN times 0 is NaN
  for (int64_t i = 0; i < count; i += 8)
    for (int lane = 0; lane < 8; lane++) zeros[lane] += x[i + lane] * 0;
  for (int lane = 0; lane < 8; lane++) zero += zeros[lane];
  return zero == 0;
}

// Dots multiply what stands between lines of x by 0: where that made a NaN, columns say which weights have one.
static void weight_item(void *argument, int64_t item, void *scratch) {
  weight_task *t = argument;
  weight_piece p = piece_of(t, item);
  if (weight_summed(t)) {
    weight_dots(t, &p);
    return;
  }
  int64_t count = quotient(p.part.images, t->b.images) * t->b.each, bytes = weight_room_of(t).totals;
  double *totals = scratch;
  memset(totals, 0, (size_t)bytes);
  if (t->shifted) {
    dotted_piece(t, &p, totals, (char *)scratch + bytes);
    if (all_finite(totals, bytes / (int64_t)sizeof *totals)) count = 0;
    else memset(totals, 0, (size_t)bytes);
  }
  for (int64_t block = 0; block < count; block++) weight_block(t, &p, block, totals, (char *)scratch + bytes);
  weight_settle(t, &p, totals);
}

static void weight_totals(void *argument, int64_t first, int64_t last) {
  const weight_task *t = argument;
  int64_t bytes = td_dtype_bytes(t->c.dtype), size = weight_size(t);
  for (int64_t i = 0; i + 1 < t->image_pieces; i++)
    add_line(t->c.dtype, t->out + first * bytes, t->sums + (i * size + first) * bytes, last - first);
}

void td_convolution_weight_run(td_pool *pool, const td_convolution *v, const char *x, const char *y, char *weights,
                               void *workspace) {
  weight_task t;
  weight_open(v, &t);
  t.pool = pool;
  t.c.source = x;
  t.y = y;
  t.out = weights;
  t.sums = workspace;
  if (!v->images || !t.c.results) memset(weights, 0, (size_t)(weight_size(&t) * td_dtype_bytes(v->dtype)));
  else {
    char *scratch = t.sums + weight_sums(&t);
    td_items_run(pool, weight_pieces(&t), weight_scratch(&t), weight_item, &t, scratch);
    if (t.image_pieces > 1) td_ranges_run(pool, weight_size(&t), t.image_pieces, weight_totals, &t);
  }
}
