// OpenBLAS, declared by ourselves and opened at run time, so that one binary runs with and without it. It is opened
// once, by the first product that wants it, and never closed. Its own threads stay off (the engine's pool is the only
// one) unless the user's environment starts them; even then each product runs on one.
#include "engine/device/cpu/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tensor/dtype.h"
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if !defined(TD_BLAS_LIBRARY) && !defined(HAVE_CONFIG_H)
#define TD_BLAS_LIBRARY "libopenblas.so.0"
#endif

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 }; // CBLAS's numbers

typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a,
                            int lda, const double *b, int ldb, double beta, double *c, int ldc);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sgemm_function *sgemm;
static dgemm_function *dgemm;
static void *library;
static bool quick;

static void open_library(void) {
#ifdef TD_BLAS_LIBRARY
  static const char variable[] = "OPENBLAS_NUM_THREADS"; // read when it is loaded: it starts no threads
  const char *before = getenv(variable);
  if (!before) setenv(variable, "1", 1);
  library = dlopen(TD_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!before) unsetenv(variable);
  if (!library) return;
  void (*set_threads)(int) = (void (*)(int))dlsym(library, "openblas_set_num_threads");
  sgemm = (sgemm_function *)dlsym(library, "cblas_sgemm");
  dgemm = (dgemm_function *)dlsym(library, "cblas_dgemm");
  if (set_threads) set_threads(1);
  const char *(*core_name)(void) = (const char *(*)(void))dlsym(library, "openblas_get_corename");
  const char *core = core_name ? core_name() : "";
  quick = !strcmp(core, "SkylakeX") || !strcmp(core, "Cooperlake") || !strcmp(core, "SapphireRapids");
  if (sgemm && dgemm) return;
  sgemm = NULL;
  dgemm = NULL;
#endif
}

bool td_blas_takes(const td_gemm_job *job) {
  pthread_once(&once, open_library);
  return sgemm && job->m <= INT_MAX && job->n <= INT_MAX && job->k <= INT_MAX && job->lda <= INT_MAX &&
         job->ldb <= INT_MAX && job->ldc <= INT_MAX;
}

bool td_blas_is_quick(void) {
  pthread_once(&once, open_library);
  return quick;
}

void td_blas_gemm(uint8_t dtype, const td_gemm_job *job, bool add) {
  int trans_a = job->a_transposed ? TRANS : NO_TRANS, trans_b = job->b_transposed ? TRANS : NO_TRANS;
  int m = (int)job->m, n = (int)job->n, k = (int)job->k, lda = (int)job->lda, ldb = (int)job->ldb, ldc = (int)job->ldc;
  if (dtype == TD_FLOAT32) sgemm(ROW_MAJOR, trans_a, trans_b, m, n, k, 1, job->a, lda, job->b, ldb, add, job->c, ldc);
  else dgemm(ROW_MAJOR, trans_a, trans_b, m, n, k, 1, job->a, lda, job->b, ldb, add, job->c, ldc);
}

void *td_blas_symbol(const char *name) {
  pthread_once(&once, open_library);
  return library ? dlsym(library, name) : NULL;
}

const char *td_blas_name(void) {
  pthread_once(&once, open_library);
#ifdef TD_BLAS_LIBRARY
  if (sgemm) return TD_BLAS_LIBRARY;
#endif
  return "internal";
}
