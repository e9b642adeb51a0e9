// Parsers and the evaluator as functions over bytes from a stranger. None may crash, hang, leak or grow without bound,
// whatever the bytes. libFuzzer (libfuzzer.c) and "make check" (test_inputs.c) drive the same functions.
#ifndef TESTS_FUZZ_TARGETS_H
#define TESTS_FUZZ_TARGETS_H
#include <stddef.h>
#include <stdint.h>

void fuzz_language(const uint8_t *bytes, size_t size); // a deck: parsed, then run for a short time
void fuzz_format(const uint8_t *bytes, size_t size);   // first byte: a value and a way to format; the others: the spec
void fuzz_number(const uint8_t *bytes, size_t size);   // first byte: how to read the others as a number
void fuzz_cells(const uint8_t *bytes, size_t size);    // a deck file, cut into cells
void fuzz_ipynb(const uint8_t *bytes, size_t size);    // a Jupyter notebook: read, changed, written, read again
void fuzz_journal(const uint8_t *bytes, size_t size);  // records of a journal: each gets the checksum that it needs
void fuzz_idx(const uint8_t *bytes, size_t size);      // an IDX file, gzipped or not
void fuzz_npy(const uint8_t *bytes, size_t size);
void fuzz_npz(const uint8_t *bytes, size_t size);
void fuzz_safetensors(const uint8_t *bytes, size_t size);
void fuzz_checkpoint(const uint8_t *bytes, size_t size); // a checkpoint or a saved model, restored
void fuzz_csv(const uint8_t *bytes, size_t size);
void fuzz_png(const uint8_t *bytes, size_t size);
void fuzz_events(const uint8_t *bytes, size_t size);
void fuzz_json(const uint8_t *bytes, size_t size);     // json.loads, and json.dumps of what it gives
#endif
