// Hashes of bytes that are the same on every machine, and the same as TensorFlow's: what vocabularies and crossings of
// categories were folded with there finds its place here. Not for hash tables that strangers fill.
#ifndef TD_BASE_HASH_H
#define TD_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

uint64_t td_hash_bytes(const void *bytes, size_t length);                           // FarmHash's Fingerprint64
uint64_t td_hash_keyed(const uint64_t key[2], const void *bytes, size_t length);    // SipHash-2-4
uint64_t td_hash_join(uint64_t first, uint64_t second);                             // FingerprintCat64
#endif
