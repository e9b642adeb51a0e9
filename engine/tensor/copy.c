// Copies strided elements into a contiguous block. Axes that lie behind each other are joined first; what is left runs
// as plain runs, fills, strided rows, or tiles where two axes are swapped. Large copies are cut into chunks for the
// pool.
#include <string.h>

#include "engine/tensor/tensor.h"

enum { TILE = 16, CHUNK_BYTES = 1 << 18 };

typedef struct copy {
  char *out;
  const char *data;
  int bytes, rank; // rank >= 2; the axis before the last is cut into chunks
  int64_t shape[TD_RANK_MAX + 2], strides[TD_RANK_MAX + 2]; // strides in elements
  int64_t rows, rows_per_chunk; // of all axes but the last
} copy;

static void join_axes(copy *c, int rank, const int64_t *shape, const int64_t *strides) {
  c->rank = 0;
  for (int i = 0; i < rank; i++) {
    if (shape[i] == 1) continue;
    int last = c->rank - 1;
    if (last >= 0 && c->strides[last] == strides[i] * shape[i]) {
      c->shape[last] *= shape[i];
      c->strides[last] = strides[i];
      continue;
    }
    c->shape[c->rank] = shape[i];
    c->strides[c->rank++] = strides[i];
  }
  while (c->rank < 2) { // leading axes of size 1
    memmove(c->shape + 1, c->shape, (size_t)c->rank * sizeof *c->shape);
    memmove(c->strides + 1, c->strides, (size_t)c->rank * sizeof *c->strides);
    c->shape[0] = 1;
    c->strides[0] = 0;
    c->rank++;
  }
}

// A rows x columns block from data (strides in elements) to out (rows lie pitch elements apart).
#define TILES(type, name)                                                                                            \
  static void name(type *restrict out, const type *restrict data, int64_t rows, int64_t columns, int64_t row_stride, \
                   int64_t stride, int64_t pitch) {                                                                  \
    bool swapped = rows > 1 && row_stride * row_stride < stride * stride;                                            \
    int64_t tile = swapped ? TILE : columns;                                                                         \
    for (int64_t left = 0; left < columns; left += tile) {                                                           \
      int64_t right = columns - left < tile ? columns : left + tile;                                                 \
      for (int64_t r = 0; r < rows; r++)                                                                             \
        for (int64_t i = left; i < right; i++) out[r * pitch + i] = data[r * row_stride + i * stride];               \
    }                                                                                                                \
  }
TILES(uint8_t, tiles_1)
TILES(uint16_t, tiles_2)
TILES(uint32_t, tiles_4)
TILES(uint64_t, tiles_8)

static void copy_rows(const copy *c, char *out, const char *data, int64_t rows) { // rows of the last two axes
  int64_t columns = c->shape[c->rank - 1], stride = c->strides[c->rank - 1], row_stride = c->strides[c->rank - 2];
  if (stride == 1) {
    for (int64_t r = 0; r < rows; r++)
      memcpy(out + r * columns * c->bytes, data + r * row_stride * c->bytes, (size_t)(columns * c->bytes));
    return;
  }
  switch (c->bytes) {
  case 1: tiles_1((uint8_t *)out, (const uint8_t *)data, rows, columns, row_stride, stride, columns); break;
  case 2: tiles_2((uint16_t *)out, (const uint16_t *)data, rows, columns, row_stride, stride, columns); break;
  case 4: tiles_4((uint32_t *)out, (const uint32_t *)data, rows, columns, row_stride, stride, columns); break;
  default: tiles_8((uint64_t *)out, (const uint64_t *)data, rows, columns, row_stride, stride, columns); break;
  }
}

static void copy_chunk(void *argument, int64_t chunk) {
  const copy *c = argument;
  int64_t row = chunk * c->rows_per_chunk, end = row + c->rows_per_chunk, pitch = c->shape[c->rank - 1] * c->bytes;
  if (end > c->rows) end = c->rows;
  while (row < end) {
    int64_t rest = row, offset = 0, together = c->shape[c->rank - 2] - row % c->shape[c->rank - 2];
    for (int i = c->rank - 1; i-- > 0;) {
      offset += rest % c->shape[i] * c->strides[i];
      rest /= c->shape[i];
    }
    if (together > end - row) together = end - row;
    copy_rows(c, c->out + row * pitch, c->data + offset * c->bytes, together);
    row += together;
  }
}

void td_elements_copy(td_pool *pool, char *out, const char *data, int bytes, int rank, const int64_t *shape,
                      const int64_t *strides) {
  copy c = {.out = out, .data = data, .bytes = bytes};
  for (int i = 0; i < rank; i++)
    if (!shape[i]) return;
  join_axes(&c, rank, shape, strides);
  c.rows = 1;
  for (int i = 0; i < c.rank - 1; i++) c.rows *= c.shape[i];
  int64_t row_bytes = c.shape[c.rank - 1] * bytes, per_chunk = CHUNK_BYTES / row_bytes;
  c.rows_per_chunk = per_chunk < 1 ? 1 : per_chunk;
  int64_t chunks = (c.rows + c.rows_per_chunk - 1) / c.rows_per_chunk;
  if (chunks == 1 || !pool)
    for (int64_t i = 0; i < chunks; i++) copy_chunk(&c, i);
  else td_pool_run(pool, chunks, copy_chunk, &c);
}
