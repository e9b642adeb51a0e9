// rnn_layer, lstm_layer and gru_layer: one layer of cells over a sequence x[T, N, F], in one direction. The
// projections of all inputs are one matrix product, written where the gates are kept; a step adds the state's product,
// and one loop over the units makes the gates and the new state. Where mask is False a step leaves the state as it
// was.
#include "engine/ops/recurrent.h"

#include <string.h>

#include "engine/device/cpu/gemm.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

td_recurrence td_recurrence_of(const td_op *op, const td_arg *args) {
  bool lstm = strcmp(op->name, "lstm_layer") == 0, gru = strcmp(op->name, "gru_layer") == 0;
  td_recurrence r = {.cell = lstm ? &td_cell_lstm : gru ? &td_cell_gru : args[1].i ? &td_cell_relu : &td_cell_tanh};
  int *places[] = {&r.x, &r.w_input, &r.w_state, &r.b_input, &r.b_state, &r.h, &r.c, &r.mask};
  for (int i = 0, next = 0; i < 8; i++) *places[i] = places[i] == &r.c && !lstm ? -1 : next++;
  return r;
}

// ---- shapes ----

static bool has(const td_infer *infer, int input) {
  return input >= 0 && input < infer->in_count && infer->in[input].rank <= TD_RANK_MAX;
}

static int want(td_infer *infer, int input, int rank, int64_t first, int64_t second, const char *meaning) {
  if (!has(infer, input)) return TD_OK;
  const td_meta *in = &infer->in[input];
  if (in->rank == rank && in->shape[0] == first && (rank < 2 || in->shape[1] == second)) return TD_OK;
  td_text text = {0};
  const int64_t shape[] = {first, second};
  td_shape_print(&text, rank, shape);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "%s needs shape %s (%s)", infer->op->params[input].name,
                           text.data ? text.data : "", meaning);
  td_text_clear(&text);
  return code;
}

static int check_shapes(td_infer *infer, const td_recurrence *r, int64_t units) {
  const td_meta *x = &infer->in[r->x];
  int64_t rows = units * r->cell->gates;
  int code = want(infer, r->w_input, 2, rows, x->shape[2], "gates * units, features");
  if (!code) code = want(infer, r->w_state, 2, rows, units, "gates * units, units");
  if (!code) code = want(infer, r->b_input, 1, rows, 0, "gates * units");
  if (!code) code = want(infer, r->b_state, 1, rows, 0, "gates * units");
  if (!code) code = want(infer, r->h, 2, x->shape[1], units, "batch, units");
  if (!code) code = want(infer, r->c, 2, x->shape[1], units, "batch, units");
  if (!code) code = want(infer, r->mask, 2, x->shape[0], x->shape[1], "time, batch");
  return code;
}

static int layer_infer(td_infer *infer) {
  td_recurrence r = td_recurrence_of(infer->op, infer->args);
  const td_meta *x = &infer->in[r.x], *w = &infer->in[r.w_state];
  if (x->rank != 3) {
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "x needs the axes time, batch, features");
    if (x->rank == 2) td_error_hint(infer->context, "one sequence is x.unsqueeze(1)");
    return code;
  }
  if (w->rank != 2) return td_infer_fail(infer, TD_ERROR_SHAPE, "w_hh needs the axes gates * units, units");
  int code = check_shapes(infer, &r, w->shape[1]);
  if (code) return code;
  uint8_t dtype = x->dtype;
  for (int i = 1; i < infer->in_count; i++)
    if (has(infer, i) && i != r.mask) dtype = td_dtype_promote(dtype, infer->in[i].dtype);
  if (!td_dtype_is_float(dtype)) return td_infer_fail(infer, TD_ERROR_DTYPE, "x or a weight must be floating");
  td_meta state = {.dtype = dtype, .rank = 2, .shape = {x->shape[1], w->shape[1]}};
  int next = 0;
  infer->out[next++] = (td_meta){.dtype = dtype, .rank = 3, .shape = {x->shape[0], x->shape[1], w->shape[1]}};
  infer->out[next++] = state;
  if (r.cell->has_c) infer->out[next++] = state;
  infer->out[next] = infer->out[0];
  infer->out[next].shape[2] *= r.cell->kept;
  return TD_OK;
}

// ---- the kernel ----

typedef struct walk {
  const td_cell *cell;
  uint8_t dtype;
  int64_t steps, batch, features, units, bytes; // bytes: of a number
  bool reverse;
  const char *x, *h0, *c0, *w_input, *w_state, *b_input, *b_state;
  const uint8_t *mask; // NULL: every step counts
  char *bias, *from_state; // gates + 1 blocks; batch x gates
  char *zeros; // batch x units, where no state is given
  char *space, *packed; // of the matrix products; w_state for the steps
  char *y, *kept;
  int64_t time; // of the step that runs
  const char *h_before, *c_before; // of its first example
  int64_t c_pitch; // bytes from one example's c_before to the next one's
} walk;

static int64_t pitch_of(int64_t columns) { return columns ? columns : 1; }

static td_gemm_job input_products(const walk *w) { // of all steps, where the gates will lie
  int64_t pitch = pitch_of(w->features);
  return (td_gemm_job){.b_transposed = true,
                       .m = w->steps * w->batch,
                       .n = w->cell->gates * w->units,
                       .k = w->features,
                       .a = w->x,
                       .lda = pitch,
                       .b = w->w_input,
                       .ldb = pitch,
                       .c = w->kept,
                       .ldc = pitch_of(w->cell->kept * w->units)};
}

// Between the examples of from_state: not the power of two that their rows often are, which few lines of a cache share.
static int64_t state_pitch(const walk *w) { return w->cell->gates * w->units + 64 / w->bytes; }

static td_gemm_job state_product(const walk *w) {
  int64_t rows = w->cell->gates * w->units, pitch = pitch_of(w->units);
  return (td_gemm_job){.b_transposed = true,
                       .m = w->batch,
                       .n = rows,
                       .k = w->units,
                       .a = w->h_before,
                       .lda = pitch,
                       .b = w->w_state,
                       .ldb = pitch,
                       .b_packed = w->packed,
                       .c = w->from_state,
                       .ldc = state_pitch(w)};
}

static void place(const td_call *call, const td_recurrence *r, td_scratch *scratch, walk *w) {
  const td_view *x = &call->in[r->x];
  td_pool *pool = call->context->pool;
  uint8_t dtype = call->out[0].dtype;
  const int inputs[] = {r->x, r->h, r->c, r->w_input, r->w_state, r->b_input, r->b_state};
  const char **places[] = {&w->x, &w->h0, &w->c0, &w->w_input, &w->w_state, &w->b_input, &w->b_state};
  *w = (walk){.cell = r->cell, .dtype = dtype, .bytes = td_dtype_bytes(dtype), .reverse = call->args[0].i};
  w->steps = x->shape[0];
  w->batch = x->shape[1];
  w->features = x->shape[2];
  w->units = call->out[0].shape[2];
  for (int i = 0; i < 7; i++)
    if (inputs[i] >= 0 && inputs[i] < call->in_count && call->in[inputs[i]].data)
      *places[i] = td_scratch_view(scratch, pool, &call->in[inputs[i]], dtype);
  if (r->mask < call->in_count && call->in[r->mask].data)
    w->mask = td_scratch_view(scratch, pool, &call->in[r->mask], TD_BOOL);
  w->bias = td_scratch_take(scratch, (r->cell->gates + 1) * w->units, w->bytes);
  w->from_state = td_scratch_take(scratch, w->batch, state_pitch(w) * w->bytes);
  w->zeros = td_scratch_take(scratch, w->batch, w->units * w->bytes + 1);
  if (w->batch > 1 && w->steps > 1)
    w->packed = td_scratch_take(scratch, td_gemm_packed_bytes(dtype, false, r->cell->gates * w->units, w->units), 1);
  td_gemm_job projections = input_products(w), product = state_product(w);
  int64_t bytes = td_gemm_workspace(dtype, &projections), more = td_gemm_workspace(dtype, &product);
  w->space = td_scratch_take(scratch, bytes > more ? bytes : more, 1);
}

static int64_t layer_workspace(const td_call *call) {
  td_recurrence r = td_recurrence_of(call->op, call->args);
  td_scratch scratch = {0};
  walk w;
  place(call, &r, &scratch, &w);
  return scratch.used;
}

// Both biases in one, but for the state's of the gru's last gate, which stays apart behind them.
#define BIAS(T, name)                                                                                            \
  static void name##_bias(const walk *w) {                                                                       \
    const T *a = (const T *)w->b_input, *b = (const T *)w->b_state;                                              \
    T *out = (T *)w->bias;                                                                                       \
    int64_t H = w->units, joined = (w->cell == &td_cell_gru ? 2 : w->cell->gates) * H, all = w->cell->gates * H; \
    for (int64_t j = 0; j < all; j++) out[j] = (a ? a[j] : 0) + (b && j < joined ? b[j] : 0);                    \
    for (int64_t j = joined; j < all; j++) out[all + j - joined] = b ? b[j] : 0;                                 \
  }
BIAS(float, single)
BIAS(double, twofold)

static void step_examples(void *argument, int64_t first, int64_t last) {
  const walk *w = argument;
  int64_t H = w->units * w->bytes, kept = w->cell->kept * H;
  for (int64_t n = first; n < last; n++) {
    int64_t at = w->time * w->batch + n;
    td_cell_step s = {.units = w->units,
                      .bias = w->bias,
                      .from_state = w->from_state + n * state_pitch(w) * w->bytes,
                      .kept = w->kept + at * kept,
                      .h_before = w->h_before + n * H,
                      .c_before = w->c_before + n * w->c_pitch,
                      .h = w->y + at * H};
    if (!w->mask || w->mask[at]) {
      w->cell->forward[w->dtype == TD_FLOAT64](&s);
      continue;
    }
    memset(s.kept, 0, (size_t)kept);
    memcpy(s.h, s.h_before, (size_t)H);
    if (w->cell->has_c) memcpy((char *)s.kept + kept - H, s.c_before, (size_t)H);
  }
}

static void run_steps(td_pool *pool, walk *w) {
  int64_t rows = w->cell->gates * w->units, H = w->units * w->bytes, kept = w->cell->kept * H;
  td_gemm_job all = state_product(w);
  if (w->packed) td_gemm_pack(pool, w->dtype, &all, false, w->packed);
  for (int64_t i = 0; i < w->steps; i++) {
    w->time = w->reverse ? w->steps - 1 - i : i;
    td_gemm_job product = state_product(w);
    td_gemm(pool, w->dtype, &product, w->space);
    td_ranges_run(pool, w->batch, rows * 8, step_examples, w);
    w->h_before = w->y + w->time * w->batch * H;
    w->c_before = w->kept + w->time * w->batch * kept + kept - H;
    w->c_pitch = kept;
  }
}

static int layer_kernel(const td_call *call) {
  td_recurrence r = td_recurrence_of(call->op, call->args);
  td_scratch scratch = {.at = call->workspace};
  td_pool *pool = call->context->pool;
  walk w;
  place(call, &r, &scratch, &w);
  int64_t H = w.units * w.bytes;
  w.y = call->out[0].data;
  w.kept = call->out[call->out_count - 1].data;
  if (w.zeros) memset(w.zeros, 0, (size_t)(w.batch * H));
  w.h_before = w.h0 ? w.h0 : w.zeros;
  w.c_before = w.c0 ? w.c0 : w.zeros;
  w.c_pitch = H;
  (w.dtype == TD_FLOAT32 ? single_bias : twofold_bias)(&w);
  if (call->out[0].size) {
    td_gemm_job projections = input_products(&w);
    td_gemm(pool, w.dtype, &projections, w.space);
    run_steps(pool, &w);
  }
  if (call->out[1].size) memcpy(call->out[1].data, w.h_before, (size_t)(w.batch * H));
  for (int64_t n = 0; r.cell->has_c && n < w.batch && H; n++)
    memcpy(call->out[2].data + n * H, w.c_before + n * w.c_pitch, (size_t)H);
  return TD_OK;
}

// ---- rows ----

#define WEIGHT_PARAMS \
  TD_X, TD_TENSOR_PARAM("w_ih"), TD_TENSOR_PARAM("w_hh"), OPTIONAL("b_ih"), OPTIONAL("b_hh"), OPTIONAL("h0")
#define OPTIONAL(text) \
  { .name = text, .kind = TD_PARAM_TENSOR_OPTIONAL }
#define REVERSE_PARAM \
  { .name = "reverse", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }
#define LAYER_DOC                                                                                                   \
  "x: [T, N, F]. Weights are PyTorch's: w_ih [gates H, F], w_hh [gates H, H], biases [gates H]. States are [N, H] " \
  "and 0 "                                                                                                          \
  "where they aren't given. reverse=True goes from the last step to the first; mask [T, N] is False where a step "  \
  "leaves the state as it was.\n"

static const char *const nonlinearities[] = {"tanh", "relu", NULL};

static const td_op rnn_layer = {
    .name = "rnn_layer",
    .params =
        {WEIGHT_PARAMS,
         OPTIONAL("mask"),
         REVERSE_PARAM,
         {.name = "nonlinearity", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(0), .choices = nonlinearities}},
    .kind = TD_KIND_OPAQUE,
    .outputs = 3,
    .shown = 2,
    .infer = layer_infer,
    .workspace = layer_workspace,
    .kernel = layer_kernel,
    .vjp = td_recurrence_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc = "One layer of plain recurrent cells, h = tanh(w_ih x + b_ih + w_hh h + b_hh): all outputs [T, N, H] and the "
           "last "
           "state.\n" LAYER_DOC "Gradient: backpropagation through time.",
    .example = "rnn_layer(zeros(5, 1, 2), zeros(3, 2), zeros(3, 3))[0].shape  # (5, 1, 3)",
    .source = "Elman, Cognitive Science 1990",
    .samples = TD_SAMPLES{{"3,2,4; 3,4; 3,3; 3; 3; 2,3; none", NULL, -1, 1, NULL},
                          {"3,2,4; 3,4; 3,3; none; none; none; 3,2", "reverse=True", -1, 1,
                           "float64; float64; float64; float64; float64; float64; bool"},
                          {"2,2,1; 2,1; 2,2; 2; 2; 2,2; none", "nonlinearity=\"relu\"", 0.1, 1, NULL},
                          {"0,2,4; 3,4; 3,3; 3; 3; 2,3; none", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
};

static const td_op lstm_layer = {
    .name = "lstm_layer",
    .params = {WEIGHT_PARAMS, OPTIONAL("c0"), OPTIONAL("mask"), REVERSE_PARAM},
    .kind = TD_KIND_OPAQUE,
    .outputs = 4,
    .shown = 3,
    .infer = layer_infer,
    .workspace = layer_workspace,
    .kernel = layer_kernel,
    .vjp = td_recurrence_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc =
        "One layer of long short-term memory: all outputs [T, N, H], the last h and the last c. Gates are in the order "
        "i f g o: c = f c + i g, h = o tanh(c).\n" LAYER_DOC "Gradient: backpropagation through time.",
    .example = "lstm_layer(zeros(5, 1, 2), zeros(12, 2), zeros(12, 3))[0].shape  # (5, 1, 3)",
    .source = "Hochreiter and Schmidhuber, Neural Computation 1997; Gers et al. 2000",
    .samples = TD_SAMPLES{{"3,2,4; 12,4; 12,3; 12; 12; 2,3; 2,3; none", NULL, -1, 1, NULL},
                          {"3,2,2; 8,2; 8,2; none; none; none; none; 3,2", "reverse=True", -1, 1,
                           "float64; float64; float64; float64; float64; float64; float64; bool"},
                          {"1,2,2; 8,2; 8,2; 8; none; 2,2; none; none", NULL, -1, 1, NULL},
                          {"0,2,4; 12,4; 12,3; 12; 12; 2,3; 2,3; none", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
};

static const td_op gru_layer = {
    .name = "gru_layer",
    .params = {WEIGHT_PARAMS, OPTIONAL("mask"), REVERSE_PARAM},
    .kind = TD_KIND_OPAQUE,
    .outputs = 3,
    .shown = 2,
    .infer = layer_infer,
    .workspace = layer_workspace,
    .kernel = layer_kernel,
    .vjp = td_recurrence_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc =
        "One layer of gated recurrent units: all outputs [T, N, H] and the last state. Gates are in the order r z n; r "
        "multiplies the state's product and its bias: n = tanh(w x + b + r (w' h + b')), h = (1 - z) n + z "
        "h.\n" LAYER_DOC "Gradient: backpropagation through time.",
    .example = "gru_layer(zeros(5, 1, 2), zeros(9, 2), zeros(9, 3))[0].shape  # (5, 1, 3)",
    .source = "Cho et al., EMNLP 2014, in cuDNN's form",
    .samples = TD_SAMPLES{{"3,2,4; 9,4; 9,3; 9; 9; 2,3; none", NULL, -1, 1, NULL},
                          {"3,2,2; 6,2; 6,2; none; none; none; 3,2", "reverse=True", -1, 1,
                           "float64; float64; float64; float64; float64; float64; bool"},
                          {"0,2,4; 9,4; 9,3; 9; 9; 2,3; none", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_recurrent[] = {&rnn_layer, &lstm_layer, &gru_layer, &td_recurrence_adjoint, NULL};
