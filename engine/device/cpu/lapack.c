// Finds LAPACK's routines once, when the first op asks.
#include "engine/device/cpu/lapack.h"

#include <pthread.h>
#include <stdbool.h>

#include "engine/device/cpu/blas.h"
#include "engine/tensor/dtype.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static td_lapack single, twofold;
static bool there;

static void find(void) {
  there = true;
#define X(name, arguments)                                         \
  single.name = (void(*) arguments)td_blas_symbol("s" #name "_");  \
  twofold.name = (void(*) arguments)td_blas_symbol("d" #name "_"); \
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
         "others) and, if tapedeck was built with --with-blas=internal, build it without that";
}
