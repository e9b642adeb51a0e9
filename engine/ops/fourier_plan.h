// Discrete Fourier transforms of any length, of several lines side by side: element j of line l lies at j * lanes + l,
// real and imaginary parts apart, all in float64. Lengths with prime factors up to 13 are taken apart by them
// (Stockham's algorithm, which needs no reordering); others are turned into a convolution of a good length (Bluestein,
// 1970).
#ifndef TD_OPS_FOURIER_PLAN_H
#define TD_OPS_FOURIER_PLAN_H
#include "engine/ops/flat.h"

typedef struct td_complexes {
  double *re, *im;
} td_complexes;

enum { TD_FACTOR_MAX = 64 };

typedef struct td_fourier {
  int64_t length;
  int64_t inner; // length of the transforms that are run: length, or that of Bluestein's convolution
  int factor_count;
  uint8_t factors[TD_FACTOR_MAX]; // of inner
  td_complexes roots; // inner: exp(-2 pi i k / inner)
  td_complexes chirp, kernel; // Bluestein: exp(-pi i k^2 / length), and the transform of its conjugate
} td_fourier;

// Takes the plan's tables from scratch, and fills them unless it only counts.
void td_fourier_place(td_scratch *scratch, int64_t length, td_fourier *plan);
// Doubles that a run needs beside the line itself, for each lane.
int64_t td_fourier_work(const td_fourier *plan);
// sum over j of x[j] exp(-2 pi i j k / length). x is overwritten; the result lies in x or in work. With re and im
// swapped in x and in the result it is the inverse transform.
td_complexes td_fourier_run(const td_fourier *plan, td_complexes x, double *work, int64_t lanes);
// count roots of unity, exp(-2 pi i k / n)
void td_fourier_roots(td_complexes out, int64_t count, int64_t n);
#endif
