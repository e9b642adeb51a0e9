// Counter-based random numbers: Philox 4x32-10 (Salmon et al., SC 2011). The n-th number depends on key and n alone, so
// size, order and thread count can't change it.
#ifndef TD_BASE_RANDOM_H
#define TD_BASE_RANDOM_H
#include <stdint.h>

void td_random_block(uint64_t key, uint64_t counter, uint64_t stream, uint32_t out[4]); // 128 random bits
// The same for count counters in a row, 4 words each: vectorised.
void td_random_blocks(uint64_t key, uint64_t counter, uint64_t stream, int64_t count, uint32_t *out);
double td_random_unit(uint32_t high, uint32_t low);  // [0, 1) with 53 bits
float td_random_unit_float(uint32_t bits);           // [0, 1) with 24 bits
#endif
