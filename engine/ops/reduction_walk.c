// The walk of reductions over an input of any strides.
//  1. Axes are kept or reduced. Those of a kind that lie behind each other are joined; unless the reducer wants its
//     elements in order, they are taken in the order in which they lie in memory, backwards ones from their other end.
//  2. The last kept axis is the width. Where its elements lie closer than those of the last reduced axis, pieces are
//     rows of as many results (columns); otherwise they are lines of elements of one result each.
//  3. Work is cut into units: outer x blocks of the reduced elements x blocks of the width. Sizes depend on the shape
//     alone. States of several blocks meet in the workspace and are combined in order.
//  4. Pieces of another dtype, or with gaps, go through a buffer on the stack.
//  5. A unit whose states are not finite is folded once more where the reducer names a careful one.
#include <stdlib.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

enum {
  BLOCK = 1 << 15, // elements of a unit, at least
  UNITS = 256, // from so many units on, the reduced elements are not cut
  WIDTH = 1024, // results of a unit, at most
  STATE_BYTES = 1 << 14, // of their states
  BUFFER = 2048, // elements
  TOGETHER = 4096, // elements that lines of neighbouring results have together, at least, where they end early
};

typedef struct dimension {
  int64_t size, in, out; // strides in elements
} dimension;

typedef struct plan {
  const td_reducer *reducer;
  const char *data;
  int64_t origin; // of the outputs: the element where the walk begins
  int64_t n; // elements of a result
  dimension kept[TD_RANK_MAX], reduced[TD_RANK_MAX]; // the last kept one is the width
  int kept_rank, reduced_rank;
  bool columns;
  int64_t outer, width; // results
  int64_t outer_block, outer_blocks, n_block, n_blocks, width_block, width_blocks;
  uint8_t from, dtype; // of the elements, and as they are read
  int bytes; // of an element
  double parameter;
  int outputs, out_bytes[2];
  td_finish finish;
  char *states; // of several blocks: outer x n_blocks x width
} plan;

// ---- the plan ----

static int64_t distance(const dimension *d) { return d->in < 0 ? -d->in : d->in; }

static void add_dimension(dimension *list, int *rank, dimension d) {
  dimension *last = &list[*rank - 1];
  if (*rank && last->in == d.in * d.size && last->out == d.out * d.size) {
    last->size *= d.size;
    last->in = d.in;
    last->out = d.out;
  } else list[(*rank)++] = d;
}

// The axis runs upwards: its data begin at the other end.
static void turn_forward(plan *p, dimension *d) {
  if (d->in >= 0) return;
  p->data += (d->size - 1) * d->in * p->bytes;
  p->origin += (d->size - 1) * d->out;
  d->in = -d->in;
  d->out = -d->out;
}

static void sort_dimensions(dimension *list, int *rank) { // farthest first; few, and mostly sorted
  int count = *rank;
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && distance(&list[j - 1]) < distance(&list[j]); j--) {
      dimension d = list[j];
      list[j] = list[j - 1];
      list[j - 1] = d;
    }
  *rank = 0;
  for (int i = 0; i < count; i++) add_dimension(list, rank, list[i]);
}

static void gather_dimensions(plan *p, const td_view *in, const bool *reduced) {
  int64_t outs[TD_RANK_MAX], stride = 1;
  p->n = 1;
  for (int i = in->rank; i-- > 0;) {
    outs[i] = reduced[i] ? 0 : stride;
    if (reduced[i]) p->n *= in->shape[i];
    else stride *= in->shape[i];
  }
  for (int i = 0; i < in->rank; i++) {
    dimension d = {in->shape[i], in->strides[i], outs[i]};
    if (d.size == 1) continue;
    if (!reduced[i] || !p->reducer->ordered) turn_forward(p, &d);
    if (reduced[i]) add_dimension(p->reduced, &p->reduced_rank, d);
    else add_dimension(p->kept, &p->kept_rank, d);
  }
  sort_dimensions(p->kept, &p->kept_rank);
  if (!p->reducer->ordered) sort_dimensions(p->reduced, &p->reduced_rank);
  if (!p->kept_rank) p->kept[p->kept_rank++] = (dimension){1, 0, 0};
}

static int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Lines that end before their result is done go on far away: their neighbours are taken along.
static int64_t lines_together(const plan *p) {
  return p->reduced_rank > 1 ? most(TOGETHER / most(p->reduced[p->reduced_rank - 1].size, 1), 1) : 1;
}

static void cut(plan *p) {
  int64_t n = most(p->n, 1);
  p->width_block = least(least(p->width, WIDTH), STATE_BYTES / p->reducer->bytes);
  if (!p->columns) p->width_block = least(p->width_block, most(BLOCK / n, lines_together(p)));
  p->width_blocks = parts(p->width, p->width_block);
  int64_t units = p->outer * p->width_blocks;
  p->n_blocks = units >= UNITS ? 1 : most(least(n * p->width_block / BLOCK, UNITS / units), 1);
  p->n_block = parts(n, p->n_blocks);
  p->n_blocks = parts(n, p->n_block);
  p->outer_block = p->n_blocks > 1 ? 1 : most(BLOCK / (n * p->width_block), 1);
  p->outer_blocks = parts(p->outer, p->outer_block);
}

static void make_plan(plan *p, const td_view *in, const bool *reduced, const td_reducer *reducer) {
  p->reducer = reducer;
  p->data = in->data;
  p->origin = 0;
  p->from = in->dtype;
  p->bytes = td_dtype_bytes(in->dtype);
  p->kept_rank = p->reduced_rank = 0;
  gather_dimensions(p, in, reduced);
  const dimension *width = &p->kept[p->kept_rank - 1];
  p->columns = width->size > 1 && (!p->reduced_rank || distance(width) < distance(&p->reduced[p->reduced_rank - 1]));
  p->width = width->size;
  p->outer = 1;
  for (int i = 0; i < p->kept_rank - 1; i++) p->outer *= p->kept[i].size;
  cut(p);
}

// ---- pieces ----

static void load(const plan *p, void *buffer, const char *from, int64_t stride, int64_t n) {
  if (p->from != p->dtype) {
    td_cast_run(buffer, p->dtype, from, p->from, stride * p->bytes, n, false);
    return;
  }
  switch (p->bytes) {
#define CASE(bytes, type)                                                                         \
  case bytes:                                                                                     \
    for (int64_t i = 0; i < n; i++) ((type *)buffer)[i] = ((const type *)from)[i * stride];       \
    break;
    CASE(1, uint8_t)
    CASE(4, uint32_t)
    CASE(8, uint64_t)
#undef CASE
  }
}

// rows x width elements; each column belongs to a state.
static void fold_columns(const plan *p, char *states, const char *data, int64_t rows, int64_t pitch, int64_t width,
                         int64_t first) {
  int64_t stride = p->kept[p->kept_rank - 1].in;
  td_piece piece = {data, rows, width, pitch, first, p->parameter};
  if (p->from == p->dtype && (stride == 1 || width == 1)) {
    p->reducer->columns(states, &piece);
    return;
  }
  _Alignas(64) char buffer[BUFFER * 8];
  int64_t together = BUFFER / width, bytes = td_dtype_bytes(p->dtype);
  piece.x = buffer;
  piece.pitch = width;
  for (int64_t row = 0; row < rows; row += together) {
    piece.rows = least(together, rows - row);
    piece.first = first + row;
    for (int64_t r = 0; r < piece.rows; r++)
      load(p, buffer + r * width * bytes, data + (row + r) * pitch * p->bytes, stride, width);
    p->reducer->columns(states, &piece);
  }
}

// n elements of each of width states, stride apart.
static void fold_lines(const plan *p, char *states, const char *data, int64_t n, int64_t stride, int64_t width,
                       int64_t first) {
  int64_t pitch = p->kept[p->kept_rank - 1].in;
  td_piece piece = {data, width, n, pitch, first, p->parameter};
  if (p->from == p->dtype && (stride == 1 || n == 1)) {
    p->reducer->lines(states, &piece);
    return;
  }
  _Alignas(64) char buffer[BUFFER * 8];
  piece.x = buffer;
  piece.rows = 1;
  for (int64_t line = 0; line < width; line++)
    for (int64_t at = 0; at < n; at += BUFFER) {
      piece.n = least(BUFFER, n - at);
      piece.first = first + at;
      load(p, buffer, data + (line * pitch + at * stride) * p->bytes, stride, piece.n);
      p->reducer->lines(states + line * p->reducer->bytes, &piece);
    }
}

// Elements first to last of each of width results.
static void fold(const plan *p, char *states, const char *data, int64_t width, int64_t first, int64_t last) {
  int64_t at[TD_RANK_MAX] = {0}, rest = first;
  int inner = p->reduced_rank - 1;
  if (first == last) return;
  if (inner < 0) {
    if (p->columns) fold_columns(p, states, data, 1, 0, width, 0);
    else fold_lines(p, states, data, 1, 0, width, 0);
    return;
  }
  for (int d = inner; d >= 0; d--) {
    at[d] = rest % p->reduced[d].size;
    rest /= p->reduced[d].size;
    data += at[d] * p->reduced[d].in * p->bytes;
  }
  while (first < last) {
    int64_t run = least(p->reduced[inner].size - at[inner], last - first), stride = p->reduced[inner].in;
    if (p->columns) fold_columns(p, states, data, run, stride, width, first);
    else fold_lines(p, states, data, run, stride, width, first);
    first += run;
    at[inner] += run;
    data += run * stride * p->bytes;
    for (int d = inner; d > 0 && at[d] == p->reduced[d].size; d--) {
      data += (p->reduced[d - 1].in - p->reduced[d].size * p->reduced[d].in) * p->bytes;
      at[d] = 0;
      at[d - 1]++;
    }
  }
}

// ---- units ----

TD_CLONES static bool all_finite(const double *states, int64_t count) {
  int others = 0;
  for (int64_t i = 0; i < count; i++) others |= !(states[i] - states[i] == 0);
  return !others;
}

static void fold_unit(const plan *p, char *states, const char *data, int64_t width, int64_t first, int64_t last) {
  p->reducer->start(states, width);
  fold(p, states, data, width, first, last);
  if (!p->reducer->careful || all_finite((const double *)states, width)) return;
  plan again = *p;
  again.reducer = p->reducer->careful;
  fold_unit(&again, states, data, width, first, last);
}

static void finish(const plan *p, const char *states, int64_t out, int64_t width) {
  td_finish to = p->finish;
  for (int k = 0; k < p->outputs; k++) to.out[k] += (p->origin + out) * p->out_bytes[k];
  p->reducer->finish(states, width, &to);
}

// Where the results of one outer place begin.
static void outer_place(const plan *p, int64_t outer, int64_t *in, int64_t *out) {
  *in = *out = 0;
  for (int d = p->kept_rank - 2; d >= 0; d--) {
    int64_t at = outer % p->kept[d].size;
    outer /= p->kept[d].size;
    *in += at * p->kept[d].in;
    *out += at * p->kept[d].out;
  }
}

static void run_unit(void *argument, int64_t unit) {
  const plan *p = argument;
  _Alignas(64) char own[STATE_BYTES];
  const dimension *w = &p->kept[p->kept_rank - 1];
  int64_t column = unit % p->width_blocks * p->width_block, rest = unit / p->width_blocks;
  int64_t block = rest % p->n_blocks, outer = rest / p->n_blocks * p->outer_block;
  int64_t width = least(p->width_block, p->width - column), last = least(outer + p->outer_block, p->outer);
  int64_t begin = block * p->n_block, end = least(begin + p->n_block, p->n);
  for (; outer < last; outer++) {
    int64_t in, out;
    outer_place(p, outer, &in, &out);
    char *states = own;
    if (p->n_blocks > 1)
      states = p->states + ((outer * p->n_blocks + block) * p->width + column) * p->reducer->bytes;
    fold_unit(p, states, p->data + (in + column * w->in) * p->bytes, width, begin, end);
    if (p->n_blocks == 1) finish(p, states, out + column * w->out, width);
  }
}

static void combine_unit(void *argument, int64_t unit) { // one block of the width
  const plan *p = argument;
  int64_t column = unit % p->width_blocks * p->width_block, outer = unit / p->width_blocks, in, out;
  int64_t width = least(p->width_block, p->width - column), step = p->width * p->reducer->bytes;
  char *states = p->states + outer * p->n_blocks * step + column * p->reducer->bytes;
  for (int64_t b = 1; b < p->n_blocks; b++) p->reducer->combine(states, states + b * step, width, p->parameter);
  outer_place(p, outer, &in, &out);
  finish(p, states, out + column * p->kept[p->kept_rank - 1].out, width);
}

void td_reduce_view(td_pool *pool, const td_view *in, const bool *reduced, const td_reducer *reducer, uint8_t dtype,
                    double parameter, const td_view *out, int outputs, void *workspace) {
  plan p;
  if (!out[0].size) return;
  make_plan(&p, in, reduced, reducer);
  p.dtype = dtype;
  p.parameter = parameter;
  p.states = workspace;
  p.finish = (td_finish){{NULL}, p.kept[p.kept_rank - 1].out, out[0].dtype, p.n, parameter};
  p.outputs = outputs;
  for (int k = 0; k < outputs; k++) {
    p.finish.out[k] = out[k].data;
    p.out_bytes[k] = td_dtype_bytes(out[k].dtype);
  }
  td_pool_run(pool, p.outer_blocks * p.n_blocks * p.width_blocks, run_unit, &p);
  if (p.n_blocks > 1) td_pool_run(pool, p.outer * p.width_blocks, combine_unit, &p);
}

int64_t td_reduce_view_workspace(const td_view *in, const bool *reduced, const td_reducer *reducer) {
  plan p;
  if (in->size <= BLOCK) return 0;
  make_plan(&p, in, reduced, reducer);
  return p.n_blocks > 1 ? p.outer * p.n_blocks * p.width * reducer->bytes : 0;
}

int td_reduce(const td_call *call, const td_arg *axes, const td_reducer *reducer, uint8_t dtype, double parameter) {
  bool reduced[TD_RANK_MAX];
  td_reduction_axes(axes, call->in[0].rank, reduced);
  td_reduce_view(call->context->pool, &call->in[0], reduced, reducer, dtype, parameter, call->out,
                 call->out_count < 2 ? 1 : 2, call->workspace);
  return TD_OK;
}

int64_t td_reduce_workspace(const td_call *call, const td_arg *axes, const td_reducer *reducer) {
  bool reduced[TD_RANK_MAX];
  td_reduction_axes(axes, call->in[0].rank, reduced);
  return call->out[0].size ? td_reduce_view_workspace(&call->in[0], reduced, reducer) : 0;
}

void td_finish_number(const td_finish *to, int output, int64_t at, double value) {
  if (to->dtype == TD_FLOAT32) ((float *)to->out[output])[at * to->stride] = (float)value;
  else ((double *)to->out[output])[at * to->stride] = value;
}
