// LAPACK's routines in OpenBLAS, which is opened when the first op asks and never closed, so that one binary runs with
// and without it. Its own threads stay off (the engine's pool is the only one) unless the user's environment starts
// them; even then each routine runs on one.
#include "engine/device/cpu/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "engine/tensor/dtype.h"
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if !defined(TD_BLAS_LIBRARY) && !defined(HAVE_CONFIG_H)
#define TD_BLAS_LIBRARY "libopenblas.so.0"
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static td_lapack single, twofold;
static bool there;

static void *open_library(void) {
#ifdef TD_BLAS_LIBRARY
  static const char variable[] = "OPENBLAS_NUM_THREADS"; // read when it is loaded: it starts no threads
  const char *before = getenv(variable);
  if (!before) setenv(variable, "1", 1);
  void *library = dlopen(TD_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!before) unsetenv(variable);
  void (*set_threads)(int) = library ? (void (*)(int))dlsym(library, "openblas_set_num_threads") : NULL;
  if (set_threads) set_threads(1);
  return library;
#else
  return NULL;
#endif
}

static void find(void) {
  void *library = open_library();
  there = library != NULL;
  if (!there) return;
#define X(name, arguments)                                         \
  single.name = (void(*) arguments)dlsym(library, "s" #name "_");  \
  twofold.name = (void(*) arguments)dlsym(library, "d" #name "_"); \
  there = there && single.name && twofold.name;
  TD_LAPACK_ROUTINES(X)
#undef X
}

const td_lapack *td_lapack_of(uint8_t dtype) {
  pthread_once(&once, find);
  if (!there) return NULL;
  return dtype == TD_FLOAT32 ? &single : &twofold;
}

const char *td_lapack_missing(void) {
  pthread_once(&once, find);
  if (there) return NULL;
  return "this needs LAPACK, which was not found: install OpenBLAS (libopenblas0 on Debian and Ubuntu, openblas on "
         "others) and, if tapedeck was built with --without-blas, build it without that";
}
