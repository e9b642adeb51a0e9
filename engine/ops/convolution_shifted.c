#include "engine/ops/convolution_shifted.h"

#include <string.h>

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

void td_shift_copy(const td_columns *c, const td_shift *s, const td_shift_block *b, const td_columns_part *part,
                   int64_t slack, void *out) {
  const int64_t bytes = td_dtype_bytes(c->dtype), sources[] = {c->axes[0].source, c->axes[1].source, c->axes[2].source};
  const int64_t first = s->low[2] + b->first, low = least(most(-first, 0), b->row);
  const int64_t high = most(least(sources[2] - first, b->row), low); // of a line: what lies in the source
  const char *planes = c->source + ((part->image * c->groups + part->group) * c->channels + part->channel) * c->plane * bytes;
  char *to = out;
  for (int64_t channel = 0; channel < part->channels; channel++, planes += c->plane * bytes)
    for (int64_t i = 0; i <= s->span[0]; i++)
      for (int64_t j = 0; j < b->lines + s->span[1]; j++, to += b->row * bytes) {
        const int64_t d = s->low[0] + b->plane + i, h = s->low[1] + b->line + j;
        if (d < 0 || d >= sources[0] || h < 0 || h >= sources[1]) {
          memset(to, 0, (size_t)(b->row * bytes));
          continue;
        }
        const char *from = planes + ((d * sources[1] + h) * sources[2] + first + low) * bytes;
        if (low) memset(to, 0, (size_t)(low * bytes));
        if (high > low) memcpy(to + low * bytes, from, (size_t)((high - low) * bytes));
        if (high < b->row) memset(to + high * bytes, 0, (size_t)((b->row - high) * bytes));
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
