// The kernels of one machine and dtype, made by including this file with
//   NAME(part): the name of a part;  T: float or double;  BYTES: of a vector;  ROWS: of a tile, at most 6 or 14;
//   RUN: of the depth, what a register gathers;  TARGET: attribute of the functions.
// A tile is so many rows of two vectors, or of one at the edge. Its sums stay in registers for a run; those of runs are
// added in a buffer of the inner cache, which goes to C at the end: a register that gathers hundreds of products of one
// sign would lose a digit.

typedef T NAME(vector) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
enum { NAME(lanes) = BYTES / sizeof(T), NAME(columns) = 2 * NAME(lanes) };

typedef struct NAME(task) {
  T *c;
  const T *a, *b;
  const int64_t *at; // where in b a step of the depth is
  int64_t a_line, a_step, ldc, depth, columns; // between rows of a, and steps of the depth
  bool add; // to what is in C
  bool whole; // all columns of the tile are C's: sums go there at once, else to totals
  _Alignas(64) NAME(vector) totals[ROWS * 2];
} NAME(task);

TARGET static inline __attribute__((always_inline)) void NAME(tile)(int rows, int vectors, NAME(task) *t) {
  const T *b = t->b, *a[ROWS];
  const int64_t *at = t->at;
  for (int i = 0; i < rows; i++) a[i] = t->a + i * t->a_line;
  for (int64_t p = 0, a_at = 0, depth = t->depth, a_step = t->a_step; p < depth;) {
    NAME(vector) sums[ROWS][2] = {0};
    const int64_t last = depth - p < RUN + RUN / 2 ? depth : p + RUN;
    const bool first = p == 0;
    for (; p < last; p++, a_at += a_step) {
      NAME(vector) line[2];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) line[v] = *(const NAME(vector) *)(b + at[p] + v * NAME(lanes));
#pragma GCC unroll 14
      for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) sums[i][v] += a[i][a_at] * line[v];
    }
    if (p < depth || !t->whole) {
#pragma GCC unroll 14
      for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
          NAME(vector) *total = &t->totals[i * vectors + v];
          *total = first ? sums[i][v] : (NAME(vector))(*total + sums[i][v]);
        }
      continue;
    }
    if (!first)
#pragma GCC unroll 14
      for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) sums[i][v] += t->totals[i * vectors + v];
    T *c = t->c;
    const int64_t ldc = t->ldc;
    const bool add = t->add;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++, c += ldc)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) {
        NAME(vector) *to = (NAME(vector) *)(c + v * NAME(lanes));
        *to = add ? (NAME(vector))(*to + sums[i][v]) : sums[i][v];
      }
  }
}

#define SIZE(rows)                                                                            \
  TARGET static void NAME(tile_##rows##_1)(NAME(task) * t) { NAME(tile)(rows, 1, t); } \
  TARGET static void NAME(tile_##rows##_2)(NAME(task) * t) { NAME(tile)(rows, 2, t); }
SIZE(1)
SIZE(2)
SIZE(3)
SIZE(4)
SIZE(5)
SIZE(6)
#if ROWS == 14
SIZE(7)
SIZE(8)
SIZE(9)
SIZE(10)
SIZE(11)
SIZE(12)
SIZE(13)
SIZE(14)
#endif
#undef SIZE

#define SIZE(rows) {NAME(tile_##rows##_1), NAME(tile_##rows##_2)},
static void (*const NAME(tiles)[ROWS][2])(NAME(task) *) = {
  SIZE(1) SIZE(2) SIZE(3) SIZE(4) SIZE(5) SIZE(6)
#if ROWS == 14
  SIZE(7) SIZE(8) SIZE(9) SIZE(10) SIZE(11) SIZE(12) SIZE(13) SIZE(14)
#endif
};
#undef SIZE

// A tile at the right edge of C, whose last columns aren't C's.
TARGET static void NAME(deliver)(const NAME(task) *t, int64_t rows, int vectors) {
  const T *total = (const T *)t->totals;
  T *c = t->c;
  for (int64_t i = 0; i < rows; i++, c += t->ldc, total += vectors * NAME(lanes))
    for (int64_t j = 0; j < t->columns; j++) c[j] = t->add ? c[j] + total[j] : total[j];
}

TARGET static void NAME(multiply)(const td_row_strips *a, const td_column_strips *b, int64_t m, int64_t n,
                                  int64_t depth, void *c, int64_t ldc, bool add) {
  NAME(task) t = {.at = b->at, .a_line = a->line, .a_step = a->step, .ldc = ldc, .depth = depth, .add = add};
  for (int64_t j = 0, strip_b = 0; j < n; j += NAME(columns), strip_b++) {
    t.columns = n - j < NAME(columns) ? n - j : NAME(columns);
    t.b = (const T *)b->data + strip_b * b->strip;
    const bool two = t.columns > NAME(lanes);
    t.whole = t.columns == (two + 1) * NAME(lanes);
    for (int64_t i = 0, strip_a = 0; i < m; i += a->side, strip_a++) {
      const int64_t rows = m - i < a->side ? m - i : a->side;
      t.a = (const T *)a->data + strip_a * a->strip;
      t.c = (T *)c + i * ldc + j;
      for (int64_t r = 0; r < rows; r++) {
        __builtin_prefetch(t.c + r * ldc, 1);
        __builtin_prefetch(t.c + r * ldc + t.columns - 1, 1);
      }
      NAME(tiles)[rows - 1][two](&t);
      if (!t.whole) NAME(deliver)(&t, rows, two + 1);
    }
  }
}

// Cache line by cache line, square blocks are turned in registers. What the last rows of a block write too much, the
// next ones write over: so the last rows go first, and a strip needs room for some elements more.
TARGET static void NAME(pack_across)(T *out, int64_t step, const T *data, int64_t pitch, int64_t rows, int64_t depth) {
  typedef T block __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
  enum { SQUARE = 16 / sizeof(T), LINE = 64 / sizeof(T) };
  for (int64_t p = 0; p < depth; p += LINE) {
    const int64_t whole = depth - p < LINE ? (depth - p) / SQUARE * SQUARE : LINE;
    for (int64_t i = (rows - 1) / SQUARE * SQUARE; i >= 0 && whole; i -= SQUARE) {
      const T *line[SQUARE];
      for (int r = 0; r < SQUARE; r++) line[r] = data + (i + r < rows ? i + r : rows - 1) * pitch + p;
      T *to = out + p * step + i;
      for (int64_t q = 0; q < whole; q += SQUARE, to += SQUARE * step) {
        block from[SQUARE], turned[SQUARE];
        for (int r = 0; r < SQUARE; r++) from[r] = *(const block *)(line[r] + q);
        TURN(from, turned);
        for (int r = 0; r < SQUARE; r++) *(block *)(to + r * step) = turned[r];
      }
    }
    for (int64_t q = p + whole; q < depth && q < p + LINE; q++)
      for (int64_t i = 0; i < rows; i++) out[q * step + i] = data[i * pitch + q];
  }
}

TARGET static void NAME(pack_along)(T *out, int64_t side, int64_t strip, const T *data, int64_t pitch, int64_t lines,
                                    int64_t depth) {
  for (int64_t p = 0; p < depth; p++, out += side, data += pitch) {
    T *to = out;
    int64_t i = 0;
    if (side == NAME(columns))
      for (; i + NAME(columns) <= lines; i += NAME(columns), to += strip)
        memcpy(to, data + i, NAME(columns) * sizeof(T));
    for (; i + side <= lines; i += side, to += strip)
      for (int64_t j = 0; j < side; j++) to[j] = data[i + j];
    for (int64_t j = 0; i + j < lines; j++) to[j] = data[i + j];
  }
}

static void NAME(pack)(void *out, int64_t side, int64_t strip, const void *data, int64_t pitch, bool across,
                       int64_t lines, int64_t depth) {
  if (!across) NAME(pack_along)(out, side, strip, data, pitch, lines, depth);
  else
    for (int64_t i = 0, s = 0; i < lines; i += side, s++)
      NAME(pack_across)((T *)out + s * strip, side, (const T *)data + i * pitch, pitch,
                        lines - i < side ? lines - i : side, depth);
}

// Sums of at most RUN vectors stay in registers, those of runs are vectors too, and all of these are added in double.
enum { NAME(dot_rows) = ROWS == 14 ? 4 : 2, NAME(dot_columns) = ROWS == 14 ? 6 : 4 };

TARGET static inline __attribute__((always_inline)) void NAME(dot_tile)(int rows, const td_dots *d, const T *a,
                                                                        const int64_t *at, NAME(vector) *totals) {
  enum { COLUMNS = NAME(dot_columns) };
  const int64_t length = d->length, pitch = d->a_line;
  const T *b[COLUMNS];
  for (int k = 0; k < COLUMNS; k++) b[k] = (const T *)d->b + at[k];
  for (int64_t s = 0, j = 0, first = true; s < d->segments; first = false) {
    NAME(vector) sums[NAME(dot_rows)][COLUMNS] = {0};
    for (int64_t run = RUN * NAME(lanes); run > 0 && s < d->segments;) {
      const int64_t last = length - j < run ? length : j + run;
      const T *left = a + s * d->a_segment;
      const int64_t base = s * d->b_segment;
      run -= last - j;
      for (; j < last; j += NAME(lanes)) {
        NAME(vector) x[NAME(dot_rows)];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) x[r] = *(const NAME(vector) *)(left + r * pitch + j);
#pragma GCC unroll 6
        for (int k = 0; k < COLUMNS; k++) {
          const NAME(vector) y = *(const NAME(vector) *)(b[k] + base + j);
#pragma GCC unroll 4
          for (int r = 0; r < rows; r++) sums[r][k] += x[r] * y;
        }
      }
      if (j < length) break;
      j = 0;
      s++;
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 6
      for (int k = 0; k < COLUMNS; k++) {
        NAME(vector) *total = &totals[r * COLUMNS + k];
        *total = first ? sums[r][k] : (NAME(vector))(*total + sums[r][k]);
      }
  }
}

#define SIZE(rows)                                                                                            \
  TARGET static void NAME(dot_##rows)(const td_dots *d, const T *a, const int64_t *at, NAME(vector) *totals) { \
    NAME(dot_tile)(rows, d, a, at, totals);                                                                   \
  }
SIZE(1)
SIZE(2)
#if ROWS == 14
SIZE(3)
SIZE(4)
#endif
#undef SIZE

TARGET static double NAME(lane_sum)(const T *lane) {
  double halves[NAME(lanes) / 2], sum = 0;
  for (int l = 0; l < NAME(lanes) / 2; l++) halves[l] = (double)lane[l] + (double)lane[l + NAME(lanes) / 2];
  for (int l = 0; l < NAME(lanes) / 2; l++) sum += halves[l];
  return sum;
}

static void NAME(dot)(const td_dots *d) {
  static void (*const sizes[])(const td_dots *, const T *, const int64_t *, NAME(vector) *) = {
      NAME(dot_1), NAME(dot_2),
#if ROWS == 14
      NAME(dot_3), NAME(dot_4)
#endif
  };
  enum { COLUMNS = NAME(dot_columns) };
  _Alignas(64) NAME(vector) totals[NAME(dot_rows) * COLUMNS];
  if (d->m < 1 || d->segments < 1 || d->length < 1) return;
  const int64_t strips = (d->m + NAME(dot_rows) - 1) / NAME(dot_rows), side = (d->m + strips - 1) / strips;
  for (int64_t i = 0; i < d->m; i += side)
    for (int64_t q = 0; q < d->n; q += COLUMNS) {
      const int64_t rows = d->m - i < side ? d->m - i : side, columns = d->n - q < COLUMNS ? d->n - q : COLUMNS;
      int64_t at[COLUMNS];
      for (int64_t k = 0; k < COLUMNS; k++) at[k] = d->at[q + (k < columns ? k : 0)];
      sizes[rows - 1](d, (const T *)d->a + i * d->a_line, at, totals);
      for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
          d->c[(i + r) * d->ldc + q + k] += NAME(lane_sum)((const T *)&totals[r * COLUMNS + k]);
    }
}

static const td_gemm_kernel NAME(kernel) = {ROWS,       NAME(columns), NAME(lanes), NAME(multiply),
                                            NAME(pack), NAME(dot)};

#undef NAME
#undef T
#undef BYTES
#undef ROWS
#undef RUN
#undef TARGET
#undef TURN
