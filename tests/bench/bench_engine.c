// The engine's own cost of one add of two one-element tensors: plain, and recorded on a tape. Medians of 9 runs.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "engine/tape/tape.h"

enum { ADDS = 200000, RUNS = 9 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double adds(td_context *context, td_tensor *a, td_tensor *b, td_tape *tape) {
  const td_op *add = td_op_find("add");
  td_tensor *in[2] = {a, b}, *out[TD_OUTPUT_MAX];
  if (tape) td_tape_open(context, tape);
  if (tape) td_tape_watch(context, tape, a);
  double start = now();
  for (int i = 0; i < ADDS; i++) {
    if (td_op_apply(context, add, in, 2, NULL, out) != TD_OK) exit(1);
    td_tensor_unref(out[0]);
  }
  double each = (now() - start) / ADDS;
  if (tape) td_tape_close(context, tape);
  return each;
}

static int ascending(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }

int main(void) {
  td_context *context = td_context_new(1);
  int64_t shape = 1;
  td_tensor *a = td_tensor_zeros(context, TD_FLOAT32, 1, &shape), *b = td_tensor_zeros(context, TD_FLOAT32, 1, &shape);
  double plain[RUNS], recorded[RUNS];
  for (int i = 0; i < RUNS; i++) {
    plain[i] = adds(context, a, b, NULL);
    td_tape *tape = td_tape_new(context, false, true);
    recorded[i] = adds(context, a, b, tape);
    td_tape_unref(context, tape);
  }
  qsort(plain, RUNS, sizeof *plain, ascending);
  qsort(recorded, RUNS, sizeof *recorded, ascending);
  printf("engine, not recorded %8.1f\nengine, recorded     %8.1f\n", plain[RUNS / 2], recorded[RUNS / 2]);
  td_tensor_unref(a);
  td_tensor_unref(b);
  td_tapes_free(context);
  td_context_free(context);
  return 0;
}
