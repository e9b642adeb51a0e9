// Draws of random numbers: from the session's seed and counter, or from a key. Element i of a draw depends on the seed
// (or the key) and on counter + i alone, so neither the size of a draw nor the number of threads changes its first
// numbers. A draw without a key advances the session's counter by its blocks of 128 bits, a number that depends on its
// size alone; one with a key leaves it and starts at 0.
#ifndef TD_OPS_RANDOM_DRAW_H
#define TD_OPS_RANDOM_DRAW_H
#include "engine/base/random.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

#define TD_SHAPE_PARAM \
  { .name = "shape", .alias = TD_ALIAS("size"), .kind = TD_PARAM_SHAPE } /* none: one number */
#define TD_FLOAT_PARAM(text, standard) \
  { .name = text, .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(standard) }
#define TD_MEAN_PARAM \
  { .name = "mean", .alias = TD_ALIAS("loc"), .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0) }
#define TD_STD_PARAM \
  { .name = "std", .alias = TD_ALIAS("scale", "stddev"), .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1) }
#define TD_DTYPE_PARAM(standard) \
  { .name = "dtype", .kind = TD_PARAM_DTYPE, .fallback = TD_INT_DEFAULT(standard) }
#define TD_KEY_PARAM /* the last tensor of its row */ \
  { .name = "key", .alias = TD_ALIAS("seed"), .kind = TD_PARAM_TENSOR_OPTIONAL, .keyword = true }
extern const char td_drawn[]; // why there is no gradient

// Streams of Philox, of 2^32 attempts each: a draw that rejects numbers takes the next attempt's.
enum { TD_STREAM_SESSION, TD_STREAM_KEYED, TD_STREAM_KEY, TD_STREAM_SPLIT, TD_STREAM_FOLD };
#define TD_STREAM_ATTEMPT(n) ((uint64_t)(n) << 32)
enum { TD_DRAW_BATCH = 64 }; // blocks that are drawn together

typedef struct td_draw {
  uint64_t seed, counter, stream;
  td_view out;
  double a, b; // what the distribution needs
  int64_t low;
  uint64_t range;
  const char *in;
  uint8_t *mask;
} td_draw;

// Infer rules: the key; a shape with dtype; a shape in the row's first argument and a floating dtype in its last.
int td_draw_check_key(td_infer *infer);
int td_draw_infer_shape(td_infer *infer, const td_arg *shape, uint8_t dtype);
int td_draw_infer(td_infer *infer);

void td_draw_open(const td_call *call, td_draw *d, int64_t blocks); // sets where d starts, and advances the session
// Draws size elements, so many from a block; work fills those of blocks first to last. cost: of a block, as
// td_ranges_run's.
void td_draw_run(const td_call *call, td_draw *d, int64_t size, int64_t per_block, int64_t cost, td_range *work);

// A number below range from 64 random bits; range 0 means 2^64. No number is favoured by more than 2^-64 of them all.
uint64_t td_draw_below(uint64_t range, uint32_t high, uint32_t low);
#endif
