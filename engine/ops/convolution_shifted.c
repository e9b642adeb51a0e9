#include "engine/ops/convolution_shifted.h"

#include <string.h>

#include "engine/device/cpu/clones.h"

enum { DEEPEST = 8192 }; // sums of more have to be gathered in double

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t span_of(const td_tap_axis *axis) {
  return most(axis->taps - 1, 0) * (axis->slope < 0 ? -axis->slope : axis->slope);
}

bool td_shift_takes(const td_columns *c) {
  if (c->taps < 1 || c->results < 1 || c->channels * c->taps > DEEPEST) return false;
  for (int i = 0; i < 3; i++)
    if (c->axes[i].step != 1) return false;
  return span_of(&c->axes[2]) * 2 <= c->axes[2].results;
}

td_shift td_shift_of(const td_columns *c, int64_t channels, int64_t elements, int64_t results) {
  const td_tap_axis *axes = c->axes;
  td_shift s = {0};
  for (int i = 0; i < 3; i++) {
    s.span[i] = span_of(&axes[i]);
    s.low[i] = axes[i].origin - (axes[i].slope < 0 ? s.span[i] : 0);
  }
  const int64_t planes = most(channels, 1) * (s.span[0] + 1), room = most(elements / planes, 1);
  int64_t width = least(results, most(room / (s.span[1] + 1) - s.span[2], 1));
  s.width_blocks = quotient(axes[2].results, most(width, most(64, s.span[2])));
  s.width = quotient(axes[2].results, s.width_blocks);
  const int64_t row = s.width + s.span[2];
  int64_t lines = least(results / row, room / row - s.span[1]);
  s.line_blocks = quotient(axes[1].results, most(lines, 1));
  s.lines = quotient(axes[1].results, s.line_blocks);
  s.line_blocks = quotient(axes[1].results, s.lines);
  s.width_blocks = quotient(axes[2].results, s.width);
  s.blocks = axes[0].results * s.line_blocks * s.width_blocks;
  return s;
}

static td_shift_block finished(const td_shift *s, td_shift_block b) {
  b.row = b.width + s->span[2];
  b.area = (b.lines + s->span[1]) * b.row;
  b.channel = (s->span[0] + 1) * b.area;
  b.length = (b.lines - 1) * b.row + b.width;
  return b;
}

td_shift_block td_shift_block_of(const td_columns *c, const td_shift *s, int64_t index) {
  td_shift_block b = {.first = index % s->width_blocks * s->width,
                      .line = index / s->width_blocks % s->line_blocks * s->lines,
                      .plane = index / s->width_blocks / s->line_blocks};
  b.lines = least(s->lines, c->axes[1].results - b.line);
  b.width = least(s->width, c->axes[2].results - b.first);
  return finished(s, b);
}

td_shift_block td_shift_largest(const td_columns *c, const td_shift *s) {
  return finished(s, (td_shift_block){.lines = least(s->lines, c->axes[1].results), .width = s->width});
}

typedef struct lines { // of one plane of the copy
  int64_t count, row, low, high, source; // copied: low to high - 1 of a row; source's elements from line to line
} lines;

#define COPYING(T, name)                                                                               \
  TD_CLONES static void name##_copy(const lines *l, const T *restrict from, T *restrict to) {          \
    for (int64_t i = 0; i < l->count; i++, from += l->source, to += l->row) {                          \
      for (int64_t j = 0; j < l->low; j++) to[j] = 0;                                                  \
      for (int64_t j = l->low; j < l->high; j++) to[j] = from[j];                                      \
      for (int64_t j = l->high; j < l->row; j++) to[j] = 0;                                            \
    }                                                                                                  \
  }
COPYING(float, single)
COPYING(double, twofold)

// A plane of the copy from its source, whose element there belongs to line 0, column 0 of the copy and may lie outside.
static void copy_plane(const td_columns *c, const lines *l, int64_t before, int64_t after, const char *from, char *to) {
  const int64_t bytes = td_dtype_bytes(c->dtype);
  memset(to, 0, (size_t)(before * l->row * bytes));
  to += before * l->row * bytes;
  if (c->dtype == TD_FLOAT32) single_copy(l, (const float *)from, (float *)to);
  else twofold_copy(l, (const double *)from, (double *)to);
  memset(to + l->count * l->row * bytes, 0, (size_t)(after * l->row * bytes));
}

void td_shift_copy(const td_columns *c, const td_shift *s, const td_shift_block *b, const td_columns_part *part,
                   int64_t slack, void *out) {
  const td_tap_axis *axes = c->axes;
  const int64_t bytes = td_dtype_bytes(c->dtype), height = b->lines + s->span[1];
  const int64_t first = s->low[2] + b->first, top = s->low[1] + b->line;
  const int64_t before = least(most(-top, 0), height), last = most(least(axes[1].source - top, height), before);
  lines l = {.count = last - before, .row = b->row, .source = axes[2].source};
  l.low = least(most(-first, 0), b->row);
  l.high = most(least(axes[2].source - first, b->row), l.low);
  int64_t channel = (part->image * c->groups + part->group) * c->channels + part->channel;
  char *to = out;
  for (int64_t i = 0; i < part->channels; i++, channel++)
    for (int64_t p = 0; p <= s->span[0]; p++, to += b->area * bytes) {
      const int64_t d = s->low[0] + b->plane + p;
      const int64_t at = channel * c->plane + (d * axes[1].source + top + before) * axes[2].source + first;
      if (d >= 0 && d < axes[0].source) copy_plane(c, &l, before, height - last, c->source + at * bytes, to);
      else memset(to, 0, (size_t)(b->area * bytes));
    }
  memset(to, 0, (size_t)(slack * bytes));
}

static int64_t shift_of(const td_tap_axis *axis, int64_t tap) { // from the first place that a tap reads
  return axis->slope < 0 ? (axis->taps - 1 - tap) * -axis->slope : tap * axis->slope;
}

void td_shift_offsets(const td_columns *c, const td_shift_block *b, int64_t channels, int64_t *at) {
  const td_tap_axis *axes = c->axes;
  for (int64_t d = 0; d < axes[0].taps; d++)
    for (int64_t h = 0; h < axes[1].taps; h++)
      for (int64_t w = 0; w < axes[2].taps; w++)
        at[(d * axes[1].taps + h) * axes[2].taps + w] =
            shift_of(&axes[0], d) * b->area + shift_of(&axes[1], h) * b->row + shift_of(&axes[2], w);
  for (int64_t k = c->taps; k < channels * c->taps; k++) at[k] = at[k - c->taps] + b->channel;
}
