// LAPACK's routines, declared by ourselves and found in OpenBLAS, which is opened at run time. Matrices lie
// column by column, sizes are ints, and every argument is passed by address, as Fortran has it; the length of each
// text follows at the end. A routine runs on the thread that calls it.
#ifndef TD_DEVICE_CPU_LAPACK_H
#define TD_DEVICE_CPU_LAPACK_H
#include <stddef.h>
#include <stdint.h>

// X(name, arguments): dNAME_ in float64, sNAME_ in float32, whose numbers are behind void *
#define TD_LAPACK_ROUTINES(X)                                                                                          \
  X(getrf, (const int *m, const int *n, void *a, const int *lda, int *pivots, int *info))                              \
  X(getrs, (const char *trans, const int *n, const int *nrhs, const void *a, const int *lda, const int *pivots,        \
            void *b, const int *ldb, int *info, size_t))                                                               \
  X(trsm, (const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,        \
           const void *alpha, const void *a, const int *lda, void *b, const int *ldb, size_t, size_t, size_t, size_t)) \
  X(potrf, (const char *uplo, const int *n, void *a, const int *lda, int *info, size_t))                               \
  X(potrs, (const char *uplo, const int *n, const int *nrhs, const void *a, const int *lda, void *b, const int *ldb,   \
            int *info, size_t))                                                                                        \
  X(geqrf, (const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *lwork, int *info))  \
  X(orgqr, (const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,            \
            const int *lwork, int *info))                                                                              \
  X(gesdd, (const char *job, const int *m, const int *n, void *a, const int *lda, void *s, void *u, const int *ldu,    \
            void *vt, const int *ldvt, void *work, const int *lwork, int *iwork, int *info, size_t))                   \
  X(syevd, (const char *job, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,             \
            const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t))                               \
  X(gelsd, (const int *m, const int *n, const int *nrhs, void *a, const int *lda, void *b, const int *ldb, void *s,    \
            const void *rcond, int *rank, void *work, const int *lwork, int *iwork, int *info))

typedef struct td_lapack {
#define X(name, arguments) void(*name) arguments;
  TD_LAPACK_ROUTINES(X)
#undef X
} td_lapack;

const td_lapack *td_lapack_of(uint8_t dtype); // float32's or float64's; NULL: missing
const char *td_lapack_missing(void); // why there is none and what to install; NULL: all routines are there
#endif
