#include "engine/ops/fourier_plan.h"

#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/map.h"

#define INLINE static inline __attribute__((always_inline))
enum { LARGEST_FACTOR = 13 };

// ---- roots of unity ----

static void root_of(int64_t k, int64_t n, double *re,
                    double *im) { // exp(-2 pi i k / n), 0 <= k < n, by the first octant
  int64_t eighths = 8 * k / n,
          turn = eighths % 2 ? (eighths + 1) * n - 8 * k : 8 * k - eighths * n; // of an octant, / n
  double angle = M_PI / 4 * ((double)turn / (double)n), c = cos(angle), s = sin(angle);
  bool steep = (eighths + 1) / 2 % 2; // between 45 and 135 degrees, or opposite
  double x = steep ? s : c, y = steep ? c : s;
  *re = eighths >= 2 && eighths < 6 ? -x : x;
  *im = eighths < 4 ? -y : y;
}

// By two short tables, for k = coarse * step + fine.
void td_fourier_roots(td_complexes out, int64_t count, int64_t n) {
  enum { FINE = 64 };
  double re[FINE], im[FINE], high_re, high_im;
  for (int64_t k = 0; k < FINE && k < count; k++) root_of(k % n, n, &re[k], &im[k]);
  for (int64_t first = 0; first < count; first += FINE) {
    root_of(first % n, n, &high_re, &high_im);
    for (int64_t k = first; k < first + FINE && k < count; k++) {
      out.re[k] = high_re * re[k - first] - high_im * im[k - first];
      out.im[k] = high_re * im[k - first] + high_im * re[k - first];
    }
  }
}

// ---- factors ----

static bool factorise(int64_t n, td_fourier *plan) { // false: a prime factor is too large
  static const uint8_t tried[] = {4, 2, 3, 5, 7, 11, 13};
  plan->factor_count = 0;
  for (size_t i = 0; i < sizeof tried; i++)
    for (; n % tried[i] == 0 && n > 1; n /= tried[i]) plan->factors[plan->factor_count++] = tried[i];
  return n <= 1;
}

static int64_t good_length(int64_t least) { // the smallest 2^a 3^b 5^c from least on
  int64_t best = INT64_MAX;
  for (int64_t five = 1; five < 2 * least; five *= 5)
    for (int64_t three = five; three < 2 * least; three *= 3) {
      int64_t n = three;
      while (n < least) n *= 2;
      if (n < best) best = n;
    }
  return best;
}

// ---- passes: n = radix * m points that are stride apart, in lines of stride; y gets radix lines of m points ----

typedef struct pass {
  int64_t m, stride, step; // step: roots.re[step] is exp(-2 pi i / n)
  td_complexes x, y, roots;
} pass;

TD_CLONES static void pass2(const pass *p) {
  int64_t m = p->m, s = p->stride;
  for (int64_t q = 0; q < m; q++) {
    const double wr = p->roots.re[q * p->step], wi = p->roots.im[q * p->step];
    const double *ar = p->x.re + s * q, *ai = p->x.im + s * q, *br = ar + s * m, *bi = ai + s * m;
    double *cr = p->y.re + s * 2 * q, *ci = p->y.im + s * 2 * q, *dr = cr + s, *di = ci + s;
    TD_INDEPENDENT for (int64_t t = 0; t < s; t++) {
      double xr = ar[t] - br[t], xi = ai[t] - bi[t];
      cr[t] = ar[t] + br[t];
      ci[t] = ai[t] + bi[t];
      dr[t] = xr * wr - xi * wi;
      di[t] = xr * wi + xi * wr;
    }
  }
}

TD_CLONES static void pass4(const pass *p) {
  int64_t m = p->m, s = p->stride, far = s * m;
  for (int64_t q = 0; q < m; q++) {
    int64_t k = q * p->step;
    const double *wr = p->roots.re, *wi = p->roots.im;
    const double w1r = wr[k], w1i = wi[k], w2r = wr[2 * k], w2i = wi[2 * k], w3r = wr[3 * k], w3i = wi[3 * k];
    const double *xr = p->x.re + s * q, *xi = p->x.im + s * q;
    double *yr = p->y.re + s * 4 * q, *yi = p->y.im + s * 4 * q;
    TD_INDEPENDENT for (int64_t t = 0; t < s; t++) {
      double ar = xr[t] + xr[t + 2 * far], ai = xi[t] + xi[t + 2 * far];
      double br = xr[t] - xr[t + 2 * far], bi = xi[t] - xi[t + 2 * far];
      double cr = xr[t + far] + xr[t + 3 * far], ci = xi[t + far] + xi[t + 3 * far];
      double dr = xr[t + far] - xr[t + 3 * far], di = xi[t + far] - xi[t + 3 * far];
      double er = br + di, ei = bi - dr, fr = ar - cr, fi = ai - ci, gr = br - di, gi = bi + dr;
      yr[t] = ar + cr;
      yi[t] = ai + ci;
      yr[t + s] = er * w1r - ei * w1i;
      yi[t + s] = er * w1i + ei * w1r;
      yr[t + 2 * s] = fr * w2r - fi * w2i;
      yi[t + 2 * s] = fr * w2i + fi * w2r;
      yr[t + 3 * s] = gr * w3r - gi * w3i;
      yi[t + 3 * s] = gr * w3i + gi * w3r;
    }
  }
}

// An odd radix: points k and radix - k are added and subtracted first.
INLINE void odd_point(const pass *p, int64_t q, int64_t t, int radix, const double *cosine, const double *sine) {
  enum { HALF = (LARGEST_FACTOR + 1) / 2 };
  int64_t m = p->m, s = p->stride;
  const double *xr = p->x.re + s * q + t, *xi = p->x.im + s * q + t;
  double *yr = p->y.re + s * radix * q + t, *yi = p->y.im + s * radix * q + t;
  double plus_r[HALF] = {0}, plus_i[HALF] = {0}, minus_r[HALF] = {0}, minus_i[HALF] = {0};
  double sum_r = xr[0], sum_i = xi[0];
  for (int k = 1; k <= radix / 2; k++) {
    int64_t a = s * m * k, b = s * m * (radix - k);
    plus_r[k] = xr[a] + xr[b];
    plus_i[k] = xi[a] + xi[b];
    minus_r[k] = xr[a] - xr[b];
    minus_i[k] = xi[a] - xi[b];
    sum_r += plus_r[k];
    sum_i += plus_i[k];
  }
  yr[0] = sum_r;
  yi[0] = sum_i;
  for (int r = 1; r <= radix / 2; r++) {
    double even_r = xr[0], even_i = xi[0], odd_r = 0, odd_i = 0;
    for (int k = 1; k <= radix / 2; k++) {
      even_r += cosine[r * k % radix] * plus_r[k];
      even_i += cosine[r * k % radix] * plus_i[k];
      odd_r += sine[r * k % radix] * minus_i[k];
      odd_i -= sine[r * k % radix] * minus_r[k];
    }
    for (int side = 0; side < 2; side++) {
      int at = side ? radix - r : r;
      double re = side ? even_r - odd_r : even_r + odd_r, im = side ? even_i - odd_i : even_i + odd_i;
      double wr = p->roots.re[q * at * p->step], wi = p->roots.im[q * at * p->step];
      yr[s * at] = re * wr - im * wi;
      yi[s * at] = re * wi + im * wr;
    }
  }
}

INLINE void pass_odd(const pass *p, int radix) {
  double cosine[LARGEST_FACTOR], sine[LARGEST_FACTOR];
  for (int k = 0; k < radix; k++) {
    root_of(k, radix, &cosine[k], &sine[k]);
    sine[k] = -sine[k];
  }
  for (int64_t q = 0; q < p->m; q++)
    TD_INDEPENDENT for (int64_t t = 0; t < p->stride; t++) odd_point(p, q, t, radix, cosine, sine);
}
TD_CLONES static void pass3(const pass *p) { pass_odd(p, 3); }
TD_CLONES static void pass5(const pass *p) { pass_odd(p, 5); }
TD_CLONES static void pass_other(const pass *p, int radix) { pass_odd(p, radix); }

static void run_pass(const pass *p, int radix) {
  switch (radix) {
  case 2: pass2(p); break;
  case 3: pass3(p); break;
  case 4: pass4(p); break;
  case 5: pass5(p); break;
  default: pass_other(p, radix);
  }
}

static td_complexes transform(const td_fourier *plan, td_complexes x, td_complexes y, int64_t lanes) {
  int64_t rest = plan->inner;
  pass p = {.stride = lanes, .roots = plan->roots};
  for (int f = 0; f < plan->factor_count; f++) {
    int radix = plan->factors[f];
    p.step = plan->inner / rest;
    rest = p.m = rest / radix;
    p.x = x;
    p.y = y;
    run_pass(&p, radix);
    p.stride *= radix;
    td_complexes swap = x;
    x = y;
    y = swap;
  }
  return x;
}

// ---- Bluestein: j k = (j^2 + k^2 - (k - j)^2) / 2 ----

INLINE void multiply(td_complexes x, int64_t at, double br, double bi) {
  double ar = x.re[at], ai = x.im[at];
  x.re[at] = ar * br - ai * bi;
  x.im[at] = ar * bi + ai * br;
}

static td_complexes swapped(td_complexes x) { return (td_complexes){x.im, x.re}; }

TD_CLONES static td_complexes convolve(const td_fourier *plan, td_complexes x, double *work, int64_t lanes) {
  int64_t n = plan->length, size = plan->inner * lanes;
  td_complexes a = {work, work + size}, b = {work + 2 * size, work + 3 * size};
  memset(a.re + n * lanes, 0, (size_t)(size - n * lanes) * sizeof(double));
  memset(a.im + n * lanes, 0, (size_t)(size - n * lanes) * sizeof(double));
  for (int64_t j = 0; j < n; j++)
    for (int64_t l = j * lanes; l < (j + 1) * lanes; l++) {
      a.re[l] = x.re[l];
      a.im[l] = x.im[l];
      multiply(a, l, plan->chirp.re[j], plan->chirp.im[j]);
    }
  td_complexes c = transform(plan, a, b, lanes);
  for (int64_t k = 0; k < plan->inner; k++)
    for (int64_t l = k * lanes; l < (k + 1) * lanes; l++) multiply(c, l, plan->kernel.re[k], plan->kernel.im[k]);
  td_complexes other = c.re == a.re ? b : a;
  c = swapped(transform(plan, swapped(c), swapped(other), lanes));
  for (int64_t k = 0; k < n; k++)
    for (int64_t l = k * lanes; l < (k + 1) * lanes; l++) {
      multiply(c, l, plan->chirp.re[k], plan->chirp.im[k]);
      x.re[l] = c.re[l];
      x.im[l] = c.im[l];
    }
  return x;
}

static void fill_chirp(td_fourier *plan, td_complexes room) { // room: inner
  int64_t n = plan->length, m = plan->inner, square = 0; // k^2 modulo 2 n
  double scale = 1 / (double)m; // of the inverse transform
  td_complexes line = plan->kernel;
  memset(line.re, 0, (size_t)m * sizeof(double));
  memset(line.im, 0, (size_t)m * sizeof(double));
  for (int64_t k = 0; k < n; k++) {
    root_of(square, 2 * n, &plan->chirp.re[k], &plan->chirp.im[k]);
    line.re[k] = line.re[(m - k) % m] = plan->chirp.re[k] * scale;
    line.im[k] = line.im[(m - k) % m] = -plan->chirp.im[k] * scale;
    square = (square + 2 * k + 1) % (2 * n);
  }
  td_complexes found = transform(plan, line, room, 1);
  if (found.re == line.re) return;
  memcpy(line.re, found.re, (size_t)m * sizeof(double));
  memcpy(line.im, found.im, (size_t)m * sizeof(double));
}

// ---- plans ----

static td_complexes take(td_scratch *scratch, int64_t count) {
  double *re = td_scratch_take(scratch, count, sizeof *re);
  return (td_complexes){re, td_scratch_take(scratch, count, sizeof *re)};
}

void td_fourier_place(td_scratch *scratch, int64_t length, td_fourier *plan) {
  *plan = (td_fourier){.length = length, .inner = length};
  bool direct = factorise(length, plan);
  if (!direct) {
    plan->inner = good_length(2 * length - 1);
    factorise(plan->inner, plan);
  }
  plan->roots = take(scratch, plan->inner);
  if (scratch->at) td_fourier_roots(plan->roots, plan->inner, plan->inner);
  if (direct) return;
  plan->chirp = take(scratch, length);
  plan->kernel = take(scratch, plan->inner);
  td_complexes room = take(scratch, plan->inner);
  if (scratch->at) fill_chirp(plan, room);
}

int64_t td_fourier_work(const td_fourier *plan) {
  return plan->inner == plan->length ? 2 * plan->length : 4 * plan->inner;
}

td_complexes td_fourier_run(const td_fourier *plan, td_complexes x, double *work, int64_t lanes) {
  if (plan->inner != plan->length) return convolve(plan, x, work, lanes);
  return transform(plan, x, (td_complexes){work, work + plan->length * lanes}, lanes);
}
