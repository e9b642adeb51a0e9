// The engine's own cost of one add of two one-element tensors: plain, and recorded on tapes of 1,000 records, their
// making and freeing included. Best of 9 runs.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "engine/tape/tape.h"

enum { ADDS = 1000, TAPES = 200, RUNS = 9 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void adds(td_context *context, const td_op *add, td_tensor *a, td_tensor *b) {
  td_tensor *in[2] = {a, b}, *out[TD_OUTPUT_MAX];
  for (int i = 0; i < ADDS; i++) {
    if (td_op_apply(context, add, in, 2, NULL, out) != TD_OK) exit(1);
    td_tensor_unref(out[0]);
  }
}

static double each(td_context *context, td_tensor *a, td_tensor *b, bool record) {
  const td_op *add = td_op_find("add");
  double start = now();
  for (int i = 0; i < TAPES; i++) {
    td_tape *tape = record ? td_tape_new(context, false, true) : NULL;
    if (tape) td_tape_open(context, tape);
    if (tape) td_tape_watch(context, tape, a);
    adds(context, add, a, b);
    if (tape) td_tape_close(context, tape);
    if (tape) td_tape_unref(context, tape);
  }
  return (now() - start) / ADDS / TAPES;
}

static int ascending(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(void) {
  td_context *context = td_context_new(1);
  int64_t shape = 1;
  td_tensor *a = td_tensor_zeros(context, TD_FLOAT32, 1, &shape), *b = td_tensor_zeros(context, TD_FLOAT32, 1, &shape);
  double plain[RUNS], recorded[RUNS];
  for (int i = 0; i < RUNS; i++) {
    plain[i] = each(context, a, b, false);
    recorded[i] = each(context, a, b, true);
  }
  qsort(plain, RUNS, sizeof *plain, ascending);
  qsort(recorded, RUNS, sizeof *recorded, ascending);
  printf("engine, not recorded %8.1f\nengine, recorded     %8.1f\n", plain[0], recorded[0]);
  td_tensor_unref(a);
  td_tensor_unref(b);
  td_tapes_free(context);
  td_context_free(context);
  return 0;
}
