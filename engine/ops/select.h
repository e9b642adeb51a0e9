// Masks as bytes, 0 or 1, in row-major order.
#ifndef TD_OPS_SELECT_H
#define TD_OPS_SELECT_H
#include <stdint.h>

int64_t td_mask_count(const uint8_t *mask, int64_t n);
// Coordinates of the true elements in row-major order: places[d] gets those along axis d.
void td_mask_places(const uint8_t *mask, int rank, const int64_t *shape, int64_t *const *places);
#endif
