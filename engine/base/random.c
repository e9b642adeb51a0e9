// Philox 4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
// counter words 0-1 are the counter, 2-3 the stream.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "engine/base/random.h"

#ifndef TD_CLONES
#define TD_CLONES
#endif

void td_random_block(uint64_t key, uint64_t counter, uint64_t stream, uint32_t out[4]) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p = (uint64_t)0xd2511f53u * c0, q = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(q >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)q;
    c2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p;
    k0 += 0x9e3779b9u; // golden ratio, sqrt(3) - 1
    k1 += 0xbb67ae85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

enum { LANES = 32 }; // counters that are worked on side by side

TD_CLONES static void lanes_run(uint64_t key, uint64_t counter, uint64_t stream, uint32_t *out) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32), c0[LANES], c1[LANES], c2[LANES], c3[LANES];
  for (int l = 0; l < LANES; l++) {
    c0[l] = (uint32_t)(counter + (uint64_t)l);
    c1[l] = (uint32_t)((counter + (uint64_t)l) >> 32);
    c2[l] = (uint32_t)stream;
    c3[l] = (uint32_t)(stream >> 32);
  }
  for (int round = 0; round < 10; round++) {
    for (int l = 0; l < LANES; l++) {
      uint64_t p = (uint64_t)0xd2511f53u * c0[l], q = (uint64_t)0xcd9e8d57u * c2[l];
      c0[l] = (uint32_t)(q >> 32) ^ c1[l] ^ k0;
      c1[l] = (uint32_t)q;
      c2[l] = (uint32_t)(p >> 32) ^ c3[l] ^ k1;
      c3[l] = (uint32_t)p;
    }
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  for (int l = 0; l < LANES; l++) {
    out[4 * l] = c0[l];
    out[4 * l + 1] = c1[l];
    out[4 * l + 2] = c2[l];
    out[4 * l + 3] = c3[l];
  }
}

void td_random_blocks(uint64_t key, uint64_t counter, uint64_t stream, int64_t count, uint32_t *out) {
  int64_t done = 0;
  for (; done + LANES <= count; done += LANES) lanes_run(key, counter + (uint64_t)done, stream, out + 4 * done);
  for (; done < count; done++) td_random_block(key, counter + (uint64_t)done, stream, out + 4 * done);
}

double td_random_unit(uint32_t high, uint32_t low) { return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53; }

float td_random_unit_float(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }
