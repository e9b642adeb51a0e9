// Fourier transforms along one axis: fft and ifft of complex numbers, rfft and irfft of real ones. A complex tensor
// has a last axis of size 2, real and imaginary part, which axis never counts. All are linear; each one's gradient is
// its opposite without the other's scale. A few lines are transformed side by side, in float64.
#include <math.h>
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/fourier_plan.h"
#include "engine/ops/map.h"

enum { LENGTH, AXIS, NORM }; // arguments
enum { BACKWARD, ORTHO, FORWARD };
static const char *const norms[] = {"backward", "ortho", "forward", NULL};

typedef struct transform { // what tells the four apart
  bool real_in, real_out, inverse;
} transform;

// ---- shapes ----

typedef struct extent {
  int axis; // of the tensors
  int64_t in, length, out; // sizes along it; length is that of the transform
} extent;

static int64_t own_length(const transform *t, int64_t size) { return t->real_out ? 2 * (size - 1) : size; }

static int find_extent(td_infer *infer, const transform *t, extent *e) {
  const td_meta *in = &infer->in[0];
  int rank = in->rank - !t->real_in;
  if (!t->real_in && (in->rank == 0 || in->shape[in->rank - 1] != 2)) {
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "needs pairs: a last axis of size 2, real and imaginary part");
    td_error_hint(infer->context,
                  "stack([x, zeros_like(x)], -1) makes pairs of real numbers; rfft takes them as they are");
    return code;
  }
  int code = td_infer_axis(infer, infer->args[AXIS].i, rank, &e->axis);
  if (code) return code;
  e->in = in->shape[e->axis];
  e->length = infer->args[LENGTH].given ? infer->args[LENGTH].i : own_length(t, e->in);
  if (e->length < 1)
    return td_infer_fail(infer, TD_ERROR_VALUE, "a transform of %lld points: n must be at least 1",
                         (long long)e->length);
  if (e->length > INT64_MAX / 64)
    return td_infer_fail(infer, TD_ERROR_VALUE, "n is too large: %lld", (long long)e->length);
  e->out = t->real_in ? e->length / 2 + 1 : e->length;
  return TD_OK;
}

static int infer_as(td_infer *infer, const transform *t) {
  td_meta *out = &infer->out[0];
  extent e;
  int code = find_extent(infer, t, &e);
  if (code) return code;
  *out = infer->in[0];
  if (!td_dtype_is_float(out->dtype)) out->dtype = TD_FLOAT32;
  if (t->real_in && out->rank == TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "no axis is left for the pairs: the rank is %d already", TD_RANK_MAX);
  out->shape[e.axis] = e.out;
  if (t->real_in) out->shape[out->rank++] = 2;
  if (t->real_out) out->rank--;
  return TD_OK;
}

// ---- lines of a tensor ----

typedef struct port {
  char *data;
  bool single;
  int64_t jump, shift; // from a number to the next one of its line, and from its real part to the imaginary one
  int64_t re_count, im_count; // parts that are there; the others are 0
  int rank; // of the other axes
  int64_t shape[TD_RANK_MAX], strides[TD_RANK_MAX];
} port;

static void port_open(port *p, const td_view *view, const void *data, int axis, bool real) {
  *p = (port){.data = (char *)data, .single = view->dtype == TD_FLOAT32, .jump = view->strides[axis]};
  int rank = view->rank - !real;
  if (!real) p->shift = view->strides[rank];
  for (int i = 0; i < rank; i++) {
    if (i == axis) continue;
    p->shape[p->rank] = view->shape[i];
    p->strides[p->rank++] = view->strides[i];
  }
}

static void port_count(port *p, int64_t count, bool real, bool paired) { // paired: two real numbers as one complex one
  p->re_count = paired ? (count + 1) / 2 : count;
  p->im_count = paired ? count / 2 : real ? 0 : count;
  if (!paired) return;
  p->shift = p->jump;
  p->jump *= 2;
}

static int64_t port_line(const port *p, int64_t line) { // its offset
  int64_t at = 0;
  for (int i = p->rank; i-- > 0; line /= p->shape[i]) at += line % p->shape[i] * p->strides[i];
  return at;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Numbers first to last of a line at offset at, from or to the lane that x starts with.
#define PORT(T, name)                                                                                              \
  static void name##_load(const port *p, int64_t at, td_complexes x, int64_t first, int64_t last, int64_t lanes) { \
    const T *re = (const T *)p->data + at, *im = re + p->shift;                                                    \
    for (int64_t j = first; j < last; j++) {                                                                       \
      x.re[j * lanes] = j < p->re_count ? (double)re[j * p->jump] : 0;                                             \
      x.im[j * lanes] = j < p->im_count ? (double)im[j * p->jump] : 0;                                             \
    }                                                                                                              \
  }                                                                                                                \
  static void name##_store(const port *p, int64_t at, td_complexes x, double scale, int64_t first, int64_t last,   \
                           int64_t lanes) {                                                                        \
    T *re = (T *)p->data + at, *im = re + p->shift;                                                                \
    for (int64_t j = first; j < least(last, p->re_count); j++) re[j * p->jump] = (T)(x.re[j * lanes] * scale);     \
    for (int64_t j = first; j < least(last, p->im_count); j++) im[j * p->jump] = (T)(x.im[j * lanes] * scale);     \
  }
PORT(float, single)
PORT(double, twofold)

enum { LANES = 8, TILE = 32 /* points that are moved of one line after the other, so that lanes share cache lines */ };

static void load(const port *p, int64_t line, td_complexes x, int64_t points, int64_t lanes) {
  int64_t at[LANES];
  for (int64_t l = 0; l < lanes; l++) at[l] = port_line(p, line + l);
  for (int64_t first = 0; first < points; first += TILE)
    for (int64_t l = 0; l < lanes; l++)
      (p->single ? single_load : twofold_load)(p, at[l], (td_complexes){x.re + l, x.im + l}, first,
                                               least(first + TILE, points), lanes);
}

static void store(const port *p, int64_t line, td_complexes x, double scale, int64_t lanes) {
  int64_t at[LANES];
  for (int64_t l = 0; l < lanes; l++) at[l] = port_line(p, line + l);
  for (int64_t first = 0; first < p->re_count; first += TILE)
    for (int64_t l = 0; l < lanes; l++)
      (p->single ? single_store : twofold_store)(p, at[l], (td_complexes){x.re + l, x.im + l}, scale, first,
                                                 first + TILE, lanes);
}

// ---- the kernel ----

enum { WIDE = 4096 /* longer lines run alone */, CHUNKS = 16 };

typedef struct work {
  const transform *kind;
  bool paired; // real lines of even length run as complex ones of half the length
  int64_t length, lines, lanes, chunks, room; // room: doubles of a chunk
  double scale;
  td_fourier plan;
  td_complexes turns; // paired: exp(-2 pi i k / length)
  port in, out;
  double *space;
} work;

static td_complexes swapped(td_complexes x) { return (td_complexes){x.im, x.re}; }

// The transform of a real line from that of its pairs, Z of h points: (Z[k] + Z'[h-k]) / 2 - i w^k (Z[k] - Z'[h-k]) /
// 2.
static void part_pairs(const work *w, td_complexes z, td_complexes x, int64_t lanes) {
  int64_t h = w->plan.length;
  for (int64_t k = 0; k <= h; k++) {
    double wr = w->turns.re[k] / 2, wi = w->turns.im[k] / 2;
    int64_t a = k % h * lanes, b = (h - k) % h * lanes;
    TD_INDEPENDENT for (int64_t l = 0; l < lanes; l++) {
      double sum_r = z.re[a + l] + z.re[b + l], sum_i = z.im[a + l] - z.im[b + l];
      double gap_r = z.re[a + l] - z.re[b + l], gap_i = z.im[a + l] + z.im[b + l];
      x.re[k * lanes + l] = sum_r / 2 + (gap_i * wr + gap_r * wi);
      x.im[k * lanes + l] = sum_i / 2 + (gap_i * wi - gap_r * wr);
    }
  }
}

// The inverse: X[k] + X'[h-k] + i w^-k (X[k] - X'[h-k]).
static void join_pairs(const work *w, td_complexes x, td_complexes z, int64_t lanes) {
  int64_t h = w->plan.length;
  for (int64_t k = 0; k < h; k++) {
    double wr = w->turns.re[k], wi = -w->turns.im[k];
    int64_t a = k * lanes, b = (h - k) * lanes;
    TD_INDEPENDENT for (int64_t l = 0; l < lanes; l++) {
      double sum_r = x.re[a + l] + x.re[b + l], sum_i = x.im[a + l] - x.im[b + l];
      double gap_r = x.re[a + l] - x.re[b + l], gap_i = x.im[a + l] + x.im[b + l];
      z.re[a + l] = sum_r - (gap_r * wi + gap_i * wr);
      z.im[a + l] = sum_i + (gap_r * wr - gap_i * wi);
    }
  }
}

static void mirror(const work *w, td_complexes x, td_complexes z, int64_t lanes) { // of odd length: z[n-k] is x'[k]
  int64_t n = w->length;
  for (int64_t k = 0; k < n; k++)
    for (int64_t l = 0; l < lanes; l++) {
      int64_t from = (k <= n / 2 ? k : n - k) * lanes + l;
      z.re[k * lanes + l] = x.re[from];
      z.im[k * lanes + l] = k <= n / 2 ? x.im[from] : -x.im[from];
    }
}

static void clear_reals(const work *w, td_complexes x, int64_t lanes) { // the parts that a real line can't have
  memset(x.im, 0, (size_t)lanes * sizeof(double));
  if (w->length % 2 == 0) memset(x.im + w->length / 2 * lanes, 0, (size_t)lanes * sizeof(double));
}

static void run_group(const work *w, int64_t first, int64_t lanes, double *space) {
  int64_t points = w->plan.length, part = (points + 1) * lanes;
  td_complexes x = {space, space + part}, other = {space + 2 * part, space + 3 * part};
  double *rest = space + 4 * part;
  bool halves = w->kind->real_out; // what comes in is half of a line's transform
  td_complexes into = halves ? other : x;
  load(&w->in, first, into, halves ? w->length / 2 + 1 : points, lanes);
  if (halves) {
    clear_reals(w, other, lanes);
    (w->paired ? join_pairs : mirror)(w, other, x, lanes);
  }
  x = w->kind->inverse ? swapped(td_fourier_run(&w->plan, swapped(x), rest, lanes))
                       : td_fourier_run(&w->plan, x, rest, lanes);
  if (w->paired && !halves) {
    part_pairs(w, x, other, lanes);
    x = other;
  }
  store(&w->out, first, x, w->scale, lanes);
}

static void run_chunk(void *argument, int64_t chunk) {
  const work *w = argument;
  for (int64_t first = chunk * w->lanes; first < w->lines; first += w->chunks * w->lanes)
    run_group(w, first, w->lines - first < w->lanes ? w->lines - first : w->lanes, w->space + chunk * w->room);
}

static double scale_of(int norm, bool inverse, int64_t length) {
  if (norm == ORTHO) return 1 / sqrt((double)length);
  return (norm == FORWARD) != inverse ? 1 / (double)length : 1;
}

static void place(const td_call *call, const transform *t, td_scratch *scratch, work *w) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  int64_t axis = call->args[AXIS].i;
  int rank = in->rank - !t->real_in;
  td_view view = *in;
  if (axis < 0) axis += rank;
  int64_t size = in->shape[axis], length = call->args[LENGTH].given ? call->args[LENGTH].i : own_length(t, size);
  *w = (work){.kind = t, .length = length, .paired = (t->real_in || t->real_out) && length % 2 == 0};
  if (in->dtype != out->dtype) { // integers
    view.data = (char *)td_scratch_view(scratch, call->context->pool, in, out->dtype);
    view.dtype = out->dtype;
    for (int64_t i = in->rank, stride = 1; i-- > 0; stride *= view.shape[i]) view.strides[i] = stride;
  }
  port_open(&w->in, &view, view.data, (int)axis, t->real_in);
  port_open(&w->out, out, out->data, (int)axis, t->real_out);
  int64_t wanted = t->real_out ? length / 2 + 1 : length;
  port_count(&w->in, size < wanted ? size : wanted, t->real_in, w->paired && t->real_in);
  port_count(&w->out, out->shape[axis], t->real_out, w->paired && t->real_out);
  w->lines = out->size / (out->shape[axis] * (t->real_out ? 1 : 2));
  w->scale = scale_of((int)call->args[NORM].i, t->inverse, length);
  td_fourier_place(scratch, w->paired ? length / 2 : length, &w->plan);
  if (w->paired) {
    w->turns.re = td_scratch_take(scratch, length / 2 + 1, sizeof(double));
    w->turns.im = td_scratch_take(scratch, length / 2 + 1, sizeof(double));
    if (scratch->at) td_fourier_roots(w->turns, length / 2 + 1, length);
  }
  w->lanes = length > WIDE ? 1 : LANES;
  int64_t groups = (w->lines + w->lanes - 1) / w->lanes;
  w->chunks = groups < CHUNKS ? groups : CHUNKS;
  w->room = (4 * (w->plan.length + 1) + td_fourier_work(&w->plan)) * w->lanes;
  w->space = td_scratch_take(scratch, w->chunks * w->room, sizeof(double));
}

static int64_t workspace_of(const td_call *call, const transform *t) {
  td_scratch scratch = {0};
  work w;
  place(call, t, &scratch, &w);
  return scratch.used;
}

static int run(const td_call *call, const transform *t) {
  td_scratch scratch = {.at = call->workspace};
  work w;
  if (!call->out[0].size) return TD_OK;
  place(call, t, &scratch, &w);
  td_pool_run(call->context->pool, w.chunks, run_chunk, &w);
  return TD_OK;
}

// ---- gradients ----

static int opposite_norm(int norm) { return norm == BACKWARD ? FORWARD : norm == FORWARD ? BACKWARD : norm; }

static td_tensor *apply(td_rule *rule, const td_op *op, td_tensor *x, int64_t length, int64_t axis) {
  const td_arg args[] = {
      {.given = 1, .i = length}, {.given = 1, .i = axis}, {.given = 1, .i = opposite_norm((int)rule->args[NORM].i)}};
  return td_scope_apply(&rule->scope, op, args, 1, x);
}

static td_tensor *fitted(td_scope *s, td_tensor *x, int64_t axis, int64_t size) { // cut or filled up with zeros
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX], sizes[TD_RANK_MAX];
  if (!x || x->shape[axis] == size) return x;
  if (x->shape[axis] > size) {
    for (int i = 0; i < x->rank; i++) {
      step[i] = 1;
      sizes[i] = i == axis ? size : x->shape[i];
    }
    return td_slice_view(s, x, start, step, sizes);
  }
  td_meta more = {.rank = x->rank, .dtype = x->dtype};
  for (int i = 0; i < x->rank; i++) more.shape[i] = i == axis ? size - x->shape[i] : x->shape[i];
  return td_concat(s, x, td_scope_filled(s, 0, &more), axis);
}

// Each pair of half a transform times inside, but for those that stand for themselves alone.
static td_tensor *weigh(td_scope *s, td_tensor *x, int64_t axis, int64_t length, double inside) {
  int64_t shape[] = {x ? x->shape[axis] : 0};
  int64_t full[TD_RANK_MAX];
  td_tensor *weights = x ? td_scope_own(s, td_tensor_new(s->context, TD_FLOAT64, 1, shape)) : NULL;
  if (!weights) return NULL;
  for (int64_t k = 0; k < shape[0]; k++) ((double *)weights->data)[k] = k == 0 || 2 * k == length ? 1 : inside;
  for (int i = 0; i < x->rank; i++) full[i] = i == axis ? shape[0] : 1;
  return td_multiply(s, x, td_cast(s, td_reshape(s, weights, x->rank, full), x->dtype));
}

static int64_t axis_of(const td_rule *rule, bool real_in) {
  int64_t axis = rule->args[AXIS].i;
  return axis < 0 ? axis + rule->in_meta[0].rank - !real_in : axis;
}

static int64_t length_of(const td_rule *rule, const transform *t, int64_t axis) {
  return rule->args[LENGTH].given ? rule->args[LENGTH].i : own_length(t, rule->in_meta[0].shape[axis]);
}

// ---- rows ----

static int line_batch(td_batching *b) { // the examples lie before all axes
  if (b->args[AXIS].i >= 0) b->args[AXIS].i++;
  return TD_OK;
}

#define TRANSFORM(name, ...)                                                                        \
  static const transform name##_kind = {__VA_ARGS__};                                               \
  static int name##_infer(td_infer *infer) { return infer_as(infer, &name##_kind); }                \
  static int64_t name##_workspace(const td_call *call) { return workspace_of(call, &name##_kind); } \
  static int name##_kernel(const td_call *call) { return run(call, &name##_kind); }
TRANSFORM(fft, .inverse = false)
TRANSFORM(ifft, .inverse = true)
TRANSFORM(rfft, .real_in = true)
TRANSFORM(irfft, .real_out = true, .inverse = true)

static const td_op fft, ifft, rfft, irfft;

static int complex_vjp(td_rule *rule, const td_op *op) {
  int64_t axis = axis_of(rule, false), length = length_of(rule, &fft_kind, axis);
  td_tensor *d = apply(rule, op, rule->cotangent[0], length, axis);
  rule->din[0] = fitted(&rule->scope, d, axis, rule->in_meta[0].shape[axis]);
  return TD_OK;
}

static int fft_vjp(td_rule *rule) { return complex_vjp(rule, &ifft); }
static int ifft_vjp(td_rule *rule) { return complex_vjp(rule, &fft); }

static int rfft_vjp(td_rule *rule) {
  int64_t axis = axis_of(rule, true), length = length_of(rule, &rfft_kind, axis);
  td_tensor *c = weigh(&rule->scope, rule->cotangent[0], axis, length, 0.5);
  rule->din[0] = fitted(&rule->scope, apply(rule, &irfft, c, length, axis), axis, rule->in_meta[0].shape[axis]);
  return TD_OK;
}

static int irfft_vjp(td_rule *rule) {
  int64_t axis = axis_of(rule, false), length = length_of(rule, &irfft_kind, axis);
  td_tensor *d = weigh(&rule->scope, apply(rule, &rfft, rule->cotangent[0], length, axis), axis, length, 2);
  rule->din[0] = fitted(&rule->scope, d, axis, rule->in_meta[0].shape[axis]);
  return TD_OK;
}

#define FOURIER_PARAMS                                                                                                \
  TD_X, {.name = "n", .kind = TD_PARAM_INT}, {.name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(-1)}, \
  {                                                                                                                   \
    .name = "norm", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(BACKWARD), .choices = norms                   \
  }
#define LENGTH_DOC "n points: x is cut or filled up with zeros. "
#define NORM_DOC \
  "norm: \"backward\" divides by n in the inverse, \"forward\" in the other one, \"ortho\" by sqrt(n) in both. "
#define PAIRS_DOC "Complex numbers are pairs along a last axis of size 2, which axis doesn't count.\n"

static const td_sample complex_samples[] = {
    {"4,2", NULL, -2, 2, NULL},
    {"3,5,2", NULL, -2, 2, NULL},
    {"3,5,2", "axis=0, norm=\"ortho\"", -2, 2, NULL},
    {"2,6,3,2", "n=8, axis=1, norm=\"forward\"", -2, 2, NULL},
    {"7,2", "n=4", -2, 2, NULL},
    {"17,2", NULL, -2, 2, NULL},
    {"13,2", "n=26", -2, 2, NULL},
    {"1,2", NULL, -2, 2, NULL},
    {"0,4,2", NULL, -2, 2, NULL},
    TD_SAMPLES_END,
};

static const td_op fft = {
    .name = "fft",
    .params = {FOURIER_PARAMS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .infer = fft_infer,
    .batch = line_batch,
    .workspace = fft_workspace,
    .kernel = fft_kernel,
    .vjp = fft_vjp,
    .doc = "Discrete Fourier transform of complex numbers along axis: sum of x[j] exp(-2 pi i j k / n).\n" PAIRS_DOC
        LENGTH_DOC NORM_DOC "\nGradient: ifft of the cotangent, scaled as fft is.",
    .example = "fft(tensor([[1., 0.], [0., 0.]])).tolist()  # [[1.0, 0.0], [1.0, 0.0]]",
    .source = "Cooley and Tukey (1965), Stockham (1966), Bluestein (1970)",
    .samples = complex_samples,
};

static const td_op ifft = {
    .name = "ifft",
    .params = {FOURIER_PARAMS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .infer = ifft_infer,
    .batch = line_batch,
    .workspace = ifft_workspace,
    .kernel = ifft_kernel,
    .vjp = ifft_vjp,
    .doc = "Inverse of fft: sum of x[k] exp(2 pi i j k / n), divided by n.\n" PAIRS_DOC LENGTH_DOC NORM_DOC
           "\nGradient: fft of the cotangent, scaled as ifft is.",
    .example = "ifft(tensor([[1., 0.], [1., 0.]])).tolist()  # [[1.0, 0.0], [0.0, 0.0]]",
    .samples = complex_samples,
};

static const td_op rfft = {
    .name = "rfft",
    .params = {FOURIER_PARAMS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .infer = rfft_infer,
    .batch = line_batch,
    .workspace = rfft_workspace,
    .kernel = rfft_kernel,
    .vjp = rfft_vjp,
    .doc =
        "Discrete Fourier transform of real numbers along axis, as n // 2 + 1 pairs: the rest is their mirror image.\n"
        "The result has a last axis of size 2, real and imaginary part. " LENGTH_DOC NORM_DOC
        "\nGradient: the real part of the inverse transform of the cotangent, scaled as rfft is.",
    .example = "rfft(tensor([1., 2., 1., 2.])).tolist()  # [[6.0, 0.0], [0.0, 0.0], [-2.0, 0.0]]",
    .samples = TD_SAMPLES{{"4", NULL, -2, 2, NULL},
                          {"3,5", NULL, -2, 2, NULL},
                          {"4,3", "axis=0, norm=\"ortho\"", -2, 2, NULL},
                          {"2,7,3", "n=8, axis=1, norm=\"forward\"", -2, 2, NULL},
                          {"7", "n=4", -2, 2, NULL},
                          {"34", NULL, -2, 2, NULL},
                          {"13", "n=19", -2, 2, NULL},
                          {"1", NULL, -2, 2, NULL},
                          {"0,4", NULL, -2, 2, NULL},
                          {"6", NULL, -4, 4, "int64"},
                          TD_SAMPLES_END},
};

static const td_op irfft = {
    .name = "irfft",
    .params = {FOURIER_PARAMS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .infer = irfft_infer,
    .batch = line_batch,
    .workspace = irfft_workspace,
    .kernel = irfft_kernel,
    .vjp = irfft_vjp,
    .doc =
        "Inverse of rfft: real numbers from the first half of their transform. n defaults to 2 (m - 1) for m pairs, so "
        "an "
        "odd n must be given; imaginary parts that a real line can't have count as 0.\n" PAIRS_DOC
        "The pairs are cut or filled up with zeros to n // 2 + 1. " NORM_DOC
        "\nGradient: rfft of the cotangent, doubled where a pair stands for its mirror image too, scaled as irfft is.",
    .example = "irfft(tensor([[6., 0.], [0., 0.], [-2., 0.]])).tolist()  # [1.0, 2.0, 1.0, 2.0]",
    .samples = TD_SAMPLES{{"4,2", NULL, -2, 2, NULL},
                          {"3,5,2", "n=9", -2, 2, NULL},
                          {"4,3,2", "axis=0, norm=\"ortho\"", -2, 2, NULL},
                          {"2,7,3,2", "n=8, axis=1, norm=\"forward\"", -2, 2, NULL},
                          {"3,2", "n=12", -2, 2, NULL},
                          {"18,2", NULL, -2, 2, NULL},
                          {"10,2", "n=19", -2, 2, NULL},
                          {"1,2", "n=1", -2, 2, NULL},
                          {"0,4,2", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_fourier[] = {&fft, &ifft, &rfft, &irfft, NULL};
