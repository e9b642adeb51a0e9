// What the suites of file formats share: a context that leaves no memory behind, files made of bytes in the working
// folder, and two ways of spoiling one: cut at every byte, and every byte set to something else.
#ifndef TESTS_ENGINE_FILES_H
#define TESTS_ENGINE_FILES_H
#include <check.h>
#include <stdint.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tensor/tensor.h"

typedef struct bytes {
  size_t size;
  unsigned char data[1 << 16];
} bytes;

extern td_context *context; // made by start, gone with finish, which checks that no memory is left
void start(void);
void finish(void);

void add(bytes *b, const void *data, size_t size);
void add_number(bytes *b, uint64_t value, int width); // little endian
void save(const bytes *b, const char *path);
void read_back(const char *path, bytes *b);
void refused(int code, const char *reason); // a TD_ERROR_FILE that holds the reason and the word byte
double value(const td_tensor *t, int64_t index);

// Loads a file; the code, and in *same whether its content is what it is in the whole file.
typedef int loader(const char *path, bool *same);
// Every shorter file is refused; or, with may_load, it loads as something.
void cut_everywhere(const bytes *whole, const char *path, loader *load, bool may_load);
// Each byte becomes 0, 255, one more, one less: an error or a load; with checked, the same content.
void set_everywhere(const bytes *whole, const char *path, loader *load, bool checked);

int run_suite(const char *name, const char *const *names, const TTest *const *tests, int count);
// As many names as tests, or it doesn't compile.
#define RUN_SUITE(name, names, tests)                                                        \
  run_suite(name, names, tests,                                                              \
            (int)(sizeof(char[sizeof(names) == sizeof(tests) ? 1 : -1]) * sizeof(tests) / sizeof *(tests)))
#endif
