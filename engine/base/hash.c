// See hash.h. Fingerprint64 is farmhashna::Hash64 of FarmHash (Google, 2014), where each range of lengths has its own
// way; SipHash-2-4 is Aumasson and Bernstein's (2012). Both read little-endian words.
#include "engine/base/hash.h"

#include <string.h>

static const uint64_t K0 = UINT64_C(0xc3a5c85c97cb3127), K1 = UINT64_C(0xb492b66fbe98f273),
                      K2 = UINT64_C(0x9ae16a3b2f90404f);

typedef struct pair { uint64_t first, second; } pair;

static uint64_t read64(const uint8_t *p) {
  uint64_t v = 0;
  for (int i = 8; i-- > 0;) v = v << 8 | p[i];
  return v;
}

static uint64_t read32(const uint8_t *p) {
  return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t turn_right(uint64_t v, int by) { return v >> by | v << (64 - by); }
static uint64_t turn_left(uint64_t v, int by) { return v << by | v >> (64 - by); }
static uint64_t fold(uint64_t v) { return v ^ v >> 47; }

static uint64_t mix(uint64_t u, uint64_t v, uint64_t factor) {
  uint64_t a = fold((u ^ v) * factor);
  return fold((v ^ a) * factor) * factor;
}

static uint64_t hash_to_16(const uint8_t *s, size_t n) {
  uint64_t factor = K2 + n * 2;
  if (n >= 8) {
    uint64_t a = read64(s) + K2, b = read64(s + n - 8);
    return mix(turn_right(b, 37) * factor + a, (turn_right(a, 25) + b) * factor, factor);
  }
  if (n >= 4) return mix(n + (read32(s) << 3), read32(s + n - 4), factor);
  if (!n) return K2;
  uint64_t y = (uint64_t)s[0] + ((uint64_t)s[n / 2] << 8), z = n + ((uint64_t)s[n - 1] << 2);
  return fold(y * K2 ^ z * K0) * K2;
}

static uint64_t hash_to_32(const uint8_t *s, size_t n) {
  uint64_t factor = K2 + n * 2, a = read64(s) * K1, b = read64(s + 8), c = read64(s + n - 8) * factor,
           d = read64(s + n - 16) * K2;
  return mix(turn_right(a + b, 43) + turn_right(c, 30) + d, a + turn_right(b + K2, 18) + c, factor);
}

static uint64_t hash_to_64(const uint8_t *s, size_t n) {
  uint64_t factor = K2 + n * 2, a = read64(s) * K2, b = read64(s + 8), c = read64(s + n - 8) * factor,
           d = read64(s + n - 16) * K2;
  uint64_t y = turn_right(a + b, 43) + turn_right(c, 30) + d, z = mix(y, a + turn_right(b + K2, 18) + c, factor);
  uint64_t e = read64(s + 16) * factor, f = read64(s + 24), g = (y + read64(s + n - 32)) * factor,
           h = (z + read64(s + n - 24)) * factor;
  return mix(turn_right(e + f, 43) + turn_right(g, 30) + h, e + turn_right(f + a, 18) + g, factor);
}

static pair weak_32(const uint8_t *s, uint64_t a, uint64_t b) {
  uint64_t w = read64(s), x = read64(s + 8), y = read64(s + 16), z = read64(s + 24), c;
  a += w;
  b = turn_right(b + a + z, 21);
  c = a;
  a += x + y;
  b += turn_right(a, 44);
  return (pair){a + z, b + c};
}

typedef struct state { uint64_t x, y, z; pair v, w; } state;

static void take_64(state *t, const uint8_t *s, uint64_t factor, uint64_t nine) { // nine: 1, or 9 for the last ones
  t->x = turn_right(t->x + t->y + t->v.first + read64(s + 8), 37) * factor;
  t->y = turn_right(t->y + t->v.second + read64(s + 48), 42) * factor;
  t->x ^= t->w.second * nine;
  t->y += t->v.first * nine + read64(s + 40);
  t->z = turn_right(t->z + t->w.first, 33) * factor;
  t->v = weak_32(s, t->v.second * factor, t->x + t->w.first);
  t->w = weak_32(s + 32, t->z + t->w.second, t->y + read64(s + 16));
  uint64_t kept = t->z;
  t->z = t->x;
  t->x = kept;
}

static uint64_t hash_long(const uint8_t *s, size_t n) {
  const uint8_t *end = s + (n - 1) / 64 * 64, *last = s + n - 64;
  state t = {.x = 81 * K2 + read64(s), .y = 81 * K1 + 113};
  t.z = fold(t.y * K2 + 113) * K2;
  for (; s != end; s += 64) take_64(&t, s, K1, 1);
  uint64_t factor = K1 + ((t.z & 0xff) << 1);
  t.w.first += (n - 1) & 63;
  t.v.first += t.w.first;
  t.w.first += t.v.first;
  take_64(&t, last, factor, 9);
  return mix(mix(t.v.first, t.w.first, factor) + fold(t.y) * K0 + t.z, mix(t.v.second, t.w.second, factor) + t.x,
             factor);
}

uint64_t td_hash_bytes(const void *bytes, size_t length) {
  if (length <= 16) return hash_to_16(bytes, length);
  if (length <= 32) return hash_to_32(bytes, length);
  return length <= 64 ? hash_to_64(bytes, length) : hash_long(bytes, length);
}

uint64_t td_hash_join(uint64_t first, uint64_t second) {
  const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
  uint64_t result = (first ^ factor ^ fold(second * factor) * factor) * factor;
  return fold(fold(result) * factor);
}

// ---- SipHash ----

static void round_of(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = turn_left(v[1], 13) ^ v[0];
  v[3] = turn_left(v[3], 16) ^ v[2];
  v[0] = turn_left(v[0], 32) + v[3];
  v[2] += v[1];
  v[1] = turn_left(v[1], 17) ^ v[2];
  v[3] = turn_left(v[3], 21) ^ v[0];
  v[2] = turn_left(v[2], 32);
}

static void take_word(uint64_t v[4], uint64_t word) {
  v[3] ^= word;
  round_of(v);
  round_of(v);
  v[0] ^= word;
}

uint64_t td_hash_keyed(const uint64_t key[2], const void *bytes, size_t length) {
  const uint8_t *s = bytes;
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                   key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
  size_t whole = length / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) take_word(v, read64(s + i));
  uint8_t last[8] = {0};
  if (length > whole) memcpy(last, s + whole, length - whole);
  last[7] = (uint8_t)length;
  take_word(v, read64(last));
  v[2] ^= 0xff;
  for (int i = 0; i < 4; i++) round_of(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
