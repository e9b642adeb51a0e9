// Convolutions without columns, where results side by side read numbers side by side: a block of the source is copied
// with the zeros around it, and through each tap the block's results read the copy, shifted by what the tap is away.
// Lines of results lie as far apart as those of the copy; what stands between them is computed too, and dropped.
#ifndef TD_OPS_CONVOLUTION_SHIFTED_H
#define TD_OPS_CONVOLUTION_SHIFTED_H
#include "engine/ops/gather_columns.h"

typedef struct td_shift { // how the results of an image are cut into blocks
  int64_t low[3], span[3]; // where the first result's first tap reads; how far its taps lie apart
  int64_t lines, width; // of a block, at most: lines of one plane, results of a line
  int64_t line_blocks, width_blocks, blocks; // of a plane; of an image
} td_shift;

typedef struct td_shift_block {
  int64_t plane, line, lines, first, width; // its results
  int64_t row, area, channel; // elements of the copy from line to line, plane to plane, channel to channel
  int64_t length; // from its first result to its last
} td_shift_block;

// Whether results side by side read so, and what is computed too is little.
bool td_shift_takes(const td_columns *c);
// Blocks whose copy of so many channels has about so many elements, and whose results so many, at most.
td_shift td_shift_of(const td_columns *c, int64_t channels, int64_t elements, int64_t results);
td_shift_block td_shift_block_of(const td_columns *c, const td_shift *s, int64_t index);
td_shift_block td_shift_largest(const td_columns *c, const td_shift *s);

// channels channels of a group from channel on: block->channel elements each. What follows them may be read as far as a
// vector and more: slack elements are set to 0.
void td_shift_copy(const td_columns *c, const td_shift *s, const td_shift_block *block, const td_columns_part *part,
                   int64_t slack, void *out);
void td_shift_offsets(const td_columns *c, const td_shift_block *block, int64_t channels, int64_t *at); // of each tap
#endif
