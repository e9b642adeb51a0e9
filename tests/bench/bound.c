// What the machine's memory allows: the time that 2 threads take for reading R bytes and writing W bytes of float32, in
// the manner of STREAM: triads of two reads to a write as far as R and W go together so, then copies, then plain reads
// or writes. Reads lines "R W SECONDS" and answers each with "seconds T": the least time of as many runs as fit into
// SECONDS, half of them with plain stores, half with stores past the caches.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include "engine/device/cpu/clones.h"
#ifdef __SSE2__
#include <immintrin.h>
#endif

enum { THREADS = 2, LANES = 16, HUGE_PAGE = 2 << 20 };

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(64)));

typedef struct work { // counts of vectors
  lanes *out;
  const lanes *in;
  size_t triads, copies, fills, reads;
} work;

static work job;
static bool streamed;
static atomic_uint started, ended;
static volatile float kept; // so that sums are not optimised away

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- the loops ----

TD_CLONES static void triad(lanes *out, const lanes *a, const lanes *b, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = a[i] + 3 * b[i];
}

TD_CLONES static void copy(lanes *out, const lanes *in, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = in[i];
}

TD_CLONES static float sum(const lanes *in, size_t count) {
  lanes a = {0}, b = {0}, c = {0}, d = {0};
  for (size_t i = 0; i + 4 <= count; i += 4) a += in[i], b += in[i + 1], c += in[i + 2], d += in[i + 3];
  lanes all = (a + b) + (c + d);
  return all[0] + all[LANES - 1];
}

#ifdef __SSE2__
static void stream(lanes *out, const lanes *value) {
  for (int k = 0; k < LANES / 4; k++) _mm_stream_ps((float *)out + 4 * k, ((const __m128 *)value)[k]);
}

TD_CLONES static void triad_streamed(lanes *out, const lanes *a, const lanes *b, size_t count) {
  for (size_t i = 0; i < count; i++) {
    lanes value = a[i] + 3 * b[i];
    stream(&out[i], &value);
  }
}

static void copy_streamed(lanes *out, const lanes *in, size_t count) {
  for (size_t i = 0; i < count; i++) stream(&out[i], &in[i]);
}
#else
#define triad_streamed triad
#define copy_streamed copy
#endif

static void part(size_t count, int thread, size_t *from, size_t *length) {
  *from = count * (size_t)thread / THREADS;
  *length = count * ((size_t)thread + 1) / THREADS - *from;
}

static void run_half(const work *w, int thread) {
  size_t from, n;
  part(w->triads, thread, &from, &n);
  (streamed ? triad_streamed : triad)(w->out + from, w->in + from, w->in + w->triads + from, n);
  part(w->copies, thread, &from, &n);
  (streamed ? copy_streamed : copy)(w->out + w->triads + from, w->in + 2 * w->triads + from, n);
  part(w->fills, thread, &from, &n);
  memset(w->out + w->triads + w->copies + from, 0, n * sizeof(lanes));
  part(w->reads, thread, &from, &n);
  kept = sum(w->in + 2 * w->triads + w->copies + from, n);
}

// ---- the second thread: it spins, so that a run starts at once ----

static void *help(void *argument) {
  for (unsigned seen = 0;;) {
    while (atomic_load_explicit(&started, memory_order_acquire) == seen) {}
    seen++;
    if (!job.in) return argument;
    run_half(&job, 1);
    atomic_fetch_add_explicit(&ended, 1, memory_order_release);
  }
}

static double run(void) {
  unsigned before = atomic_load(&ended);
  double start = now();
  atomic_fetch_add_explicit(&started, 1, memory_order_release);
  run_half(&job, 0);
  while (atomic_load_explicit(&ended, memory_order_acquire) == before) {}
  return now() - start;
}

static double least(double seconds) {
  double best = run();
  for (double end = now() + seconds; now() < end;) {
    double time = run();
    if (time < best) best = time;
  }
  return best;
}

// ---- requests ----

typedef struct block {
  void *data;
  size_t bytes;
} block;

static void *touched(block *b, size_t vectors) { // b's memory, made anew where it is too small
  size_t bytes = (vectors * sizeof(lanes) / HUGE_PAGE + 1) * HUGE_PAGE;
  if (bytes <= b->bytes) return b->data;
  free(b->data);
  *b = (block){aligned_alloc(HUGE_PAGE, bytes), bytes};
  if (!b->data) exit(1);
  madvise(b->data, bytes, MADV_HUGEPAGE);
  return memset(b->data, 0, bytes);
}

static double answer(size_t read, size_t written, double seconds) {
  static block outs, ins;
  read /= sizeof(lanes);
  written /= sizeof(lanes);
  job.triads = read <= written ? 0 : read - written < written ? read - written : written;
  job.copies = (read < written ? read : written) - job.triads;
  job.fills = written - job.triads - job.copies;
  job.reads = read - 2 * job.triads - job.copies;
  job.out = touched(&outs, written);
  job.in = touched(&ins, read);
  pthread_t helper;
  if (pthread_create(&helper, NULL, help, NULL)) exit(1);
  streamed = false;
  double plain = least(seconds / 2);
  streamed = true;
  double past = least(seconds / 2);
  job.in = NULL;
  atomic_fetch_add(&started, 1);
  pthread_join(helper, NULL);
  atomic_store(&started, 0);
  return plain < past ? plain : past;
}

int main(void) {
  size_t read, written;
  double seconds;
  while (scanf("%zu %zu %lf", &read, &written, &seconds) == 3) {
    printf("seconds %.4g\n", answer(read, written, seconds));
    fflush(stdout);
  }
  return 0;
}
