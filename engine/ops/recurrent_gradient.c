// Backpropagation through time. A fused op goes back over the steps and gives the gates' cotangents before their
// functions, and those of the first states; matrix products then give the gradients of inputs and weights. While a
// tape records (a second derivative is wanted), the same steps are made of ops, so any order follows from their own
// rules.
#include <string.h>

#include "engine/base/memory.h"
#include "engine/device/cpu/gemm.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/recurrent.h"

enum { W_STATE, KEPT, Y, H0, C0, MASK, DY, DH, DC, DKEPT, INPUTS }; // of the fused op
enum { CELL, REVERSE };
static const td_cell *const cells[] = {&td_cell_tanh, &td_cell_relu, &td_cell_gru, &td_cell_lstm};
static const char *const cell_names[] = {"tanh", "relu", "gru", "lstm", NULL};

// ---- the fused op ----

static int adjoint_infer(td_infer *infer) {
  const td_cell *cell = cells[infer->args[CELL].i];
  const td_meta *w = &infer->in[W_STATE], *y = &infer->in[Y], *kept = &infer->in[KEPT];
  bool fits = w->rank == 2 && y->rank == 3 && kept->rank == 3 && w->shape[0] == cell->gates * w->shape[1] &&
              y->shape[2] == w->shape[1] && kept->shape[2] == cell->kept * w->shape[1] &&
              kept->shape[0] == y->shape[0] && kept->shape[1] == y->shape[1] && td_dtype_is_float(y->dtype);
  if (!fits) return td_infer_fail(infer, TD_ERROR_SHAPE, "these are not the results of a layer of this cell");
  infer->out[0] = *kept;
  infer->out[0].shape[2] = cell->gradients * w->shape[1];
  infer->out[1] = (td_meta){.dtype = y->dtype, .rank = 2, .shape = {y->shape[1], y->shape[2]}};
  infer->out[2] = infer->out[1];
  if (!cell->has_c) infer->out[2].shape[0] = 0;
  return TD_OK;
}

typedef struct walk {
  const td_cell *cell;
  uint8_t dtype;
  bool reverse;
  int64_t steps, batch, units, bytes;
  const char *in[INPUTS]; // NULL: not given
  char *zeros, *through, *space, *packed, *gradients, *dh, *dc; // packed: w_state for the steps
  int64_t time, before; // the step, and the one whose state it started from; -1: the first states
} walk;

static td_gemm_job state_product(const walk *w) { // what goes through the weights, from the step's gradients
  int64_t rows = w->cell->gates * w->units, pitch = w->cell->gradients * w->units;
  return (td_gemm_job){.m = w->batch,
                       .n = w->units,
                       .k = rows,
                       .a = w->gradients + (w->time * w->batch * pitch + pitch - rows) * w->bytes,
                       .lda = pitch ? pitch : 1,
                       .b = w->in[W_STATE],
                       .ldb = w->units ? w->units : 1,
                       .b_packed = w->packed,
                       .c = w->through,
                       .ldc = w->units ? w->units : 1};
}

static void place(const td_call *call, td_scratch *scratch, walk *w) {
  const td_view *y = &call->in[Y];
  *w = (walk){.cell = cells[call->args[CELL].i], .dtype = y->dtype, .reverse = call->args[REVERSE].i};
  w->steps = y->shape[0];
  w->batch = y->shape[1];
  w->units = y->shape[2];
  w->bytes = td_dtype_bytes(y->dtype);
  for (int i = 0; i < INPUTS && i < call->in_count; i++)
    if (call->in[i].data)
      w->in[i] = td_scratch_view(scratch, call->context->pool, &call->in[i], i == MASK ? TD_BOOL : w->dtype);
  w->zeros = td_scratch_take(scratch, w->batch, w->units * w->bytes + 1);
  w->through = td_scratch_take(scratch, w->batch, w->units * w->bytes + 1);
  w->gradients = call->out[0].data;
  if (w->batch > 1 && w->steps > 1)
    w->packed = td_scratch_take(scratch, td_gemm_packed_bytes(w->dtype, false, w->units, w->cell->gates * w->units), 1);
  td_gemm_job product = state_product(w);
  w->space = td_scratch_take(scratch, td_gemm_workspace(w->dtype, &product), 1);
}

static int64_t adjoint_workspace(const td_call *call) {
  td_scratch scratch = {0};
  walk w;
  place(call, &scratch, &w);
  return scratch.used;
}

#define ADD(T, name)                                                              \
  static void name##_add(char *to, const char *from, int64_t n) {                 \
    for (int64_t i = 0; from && i < n; i++) ((T *)to)[i] += ((const T *)from)[i]; \
  }
ADD(float, single)
ADD(double, twofold)

static void add(const walk *w, char *to, const char *from, int64_t n) {
  (w->dtype == TD_FLOAT32 ? single_add : twofold_add)(to, from, n);
}

static const char *offset(const char *data, int64_t bytes) { return data ? data + bytes : NULL; }

static void back_examples(void *argument, int64_t first, int64_t last) {
  const walk *w = argument;
  int64_t H = w->units * w->bytes, kept = w->cell->kept * H, gradients = w->cell->gradients * H;
  for (int64_t n = first; n < last; n++) {
    int64_t at = w->time * w->batch + n, from = w->before * w->batch + n;
    const char *extra = offset(w->in[DKEPT], at * kept);
    const char *h0 = w->in[H0] ? w->in[H0] : w->zeros, *c0 = w->in[C0] ? w->in[C0] : w->zeros;
    td_cell_step s = {.units = w->units,
                      .kept = (char *)w->in[KEPT] + at * kept,
                      .h_before = w->before < 0 ? h0 + n * H : w->in[Y] + from * H,
                      .c_before = w->before < 0 ? c0 + n * H : w->in[KEPT] + from * kept + kept - H,
                      .kept_cotangent = extra,
                      .dh = w->dh + n * H,
                      .dc = w->dc + n * H,
                      .gradients = w->gradients + at * gradients};
    add(w, s.dh, offset(w->in[DY], at * H), w->units);
    if (!w->in[MASK] || w->in[MASK][at]) {
      w->cell->backward[w->dtype == TD_FLOAT64](&s);
      continue;
    }
    memset(s.gradients, 0, (size_t)gradients);
    if (w->cell->has_c) add(w, s.dc, offset(extra, kept - H), w->units);
  }
}

static void start(char *to, const char *from, int64_t bytes) {
  if (from) memcpy(to, from, (size_t)bytes);
  else memset(to, 0, (size_t)bytes);
}

static int adjoint_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  td_pool *pool = call->context->pool;
  walk w;
  place(call, &scratch, &w);
  int64_t H = w.units, size = w.batch * H * w.bytes, rows = w.cell->gates * H;
  if (!size) return TD_OK;
  w.dh = call->out[1].data;
  w.dc = w.cell->has_c ? call->out[2].data : w.zeros;
  memset(w.zeros, 0, (size_t)size);
  start(w.dh, w.in[DH], size);
  if (w.cell->has_c) start(w.dc, w.in[DC], size);
  td_gemm_job all = state_product(&w);
  if (w.packed) td_gemm_pack(pool, w.dtype, &all, false, w.packed);
  for (int64_t i = w.steps - 1; i >= 0; i--) {
    w.time = w.reverse ? w.steps - 1 - i : i;
    w.before = i == 0 ? -1 : w.reverse ? w.time + 1 : w.time - 1;
    td_ranges_run(pool, w.batch, rows * 8, back_examples, &w);
    td_gemm_job product = state_product(&w);
    td_gemm(pool, w.dtype, &product, w.space);
    add(&w, w.dh, w.through, w.batch * H);
  }
  return TD_OK;
}

#define OPTIONAL(text) \
  { .name = text, .kind = TD_PARAM_TENSOR_OPTIONAL }

const td_op td_recurrence_adjoint = {
    .name = "recurrence_adjoint",
    .params = {TD_TENSOR_PARAM("w_hh"),
               TD_TENSOR_PARAM("kept"),
               TD_TENSOR_PARAM("y"),
               OPTIONAL("h0"),
               OPTIONAL("c0"),
               OPTIONAL("mask"),
               OPTIONAL("dy"),
               OPTIONAL("dh"),
               OPTIONAL("dc"),
               OPTIONAL("dkept"),
               {.name = "cell", .kind = TD_PARAM_CHOICE, .required = true, .choices = cell_names},
               {.name = "reverse", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .outputs = 3,
    .infer = adjoint_infer,
    .workspace = adjoint_workspace,
    .kernel = adjoint_kernel,
    .no_gradient = "the fused form of a layer's first derivative: further ones are taken of the same made of ops",
    .doc =
        "Cotangents of a recurrent layer's gates before their functions, and of its first states, from its results and "
        "their cotangents.",
    .samples =
        TD_SAMPLES{{"12,3; 2,2,15; 2,2,3; 2,3; 2,3; none; 2,2,3; 2,3; 2,3; none", "cell=\"lstm\"", 0.1, 0.9, NULL},
                   {"9,3; 2,2,12; 2,2,3; 2,3; none; none; 2,2,3; none; none; none", "cell=\"gru\"", 0.1, 0.9, NULL},
                   TD_SAMPLES_END},
};

// ---- the same of ops ----

typedef struct tensors { // a rule's
  const td_cell *cell;
  bool reverse;
  int64_t steps, batch, units;
  td_tensor *w_state, *kept, *y, *h0, *c0, *mask; // NULL: not given
  td_tensor *dy, *dkept, *dh, *dc;
} tensors;

static td_tensor *at_time(td_scope *s, td_tensor *t, int64_t time) { // [N, W] of [T, N, W]
  if (!t) return NULL;
  const int64_t start[] = {time, 0, 0}, step[] = {1, 1, 1}, size[] = {1, t->shape[1], t->shape[2]};
  return td_reshape(s, td_slice_view(s, t, start, step, size), 2, size + 1);
}

static td_tensor *columns(td_scope *s, td_tensor *t, int64_t first, int64_t count) { // of [N, W]
  if (!t) return NULL;
  const int64_t start[] = {0, first}, step[] = {1, 1}, size[] = {t->shape[0], count};
  return td_slice_view(s, t, start, step, size);
}

static td_tensor *plus(td_scope *s, td_tensor *a, td_tensor *b) { return !a ? b : !b ? a : td_add(s, a, b); }

static td_tensor *rest(td_scope *s, td_tensor *t) { return td_subtract(s, td_scope_number(s, 1, t), t); } // 1 - t

// The value of a gate, and 1 - it, from what is kept of a sigmoid.
static td_tensor *gate(td_scope *s, td_tensor *kept) {
  td_tensor *zero = td_scope_number(s, 0, kept), *one = td_scope_number(s, 1, kept);
  return td_where(s, td_greater(s, kept, zero), kept, td_add(s, kept, one));
}
static td_tensor *lack(td_scope *s, td_tensor *kept) {
  td_tensor *zero = td_scope_number(s, 0, kept);
  return td_where(s, td_greater(s, kept, zero), rest(s, kept), td_negative(s, kept));
}

// c through the slope of a gate, and through that of tanh at x, which is 4 sigmoid'(2 x).
static td_tensor *gate_back(td_scope *s, td_tensor *c, td_tensor *kept) {
  return td_multiply(s, c, td_multiply(s, gate(s, kept), lack(s, kept)));
}
static td_tensor *tanh_back(td_scope *s, td_tensor *c, td_tensor *x) {
  td_tensor *twice = td_add(s, x, x);
  td_tensor *slope = td_multiply(s, td_sigmoid(s, twice), td_sigmoid(s, td_negative(s, twice)));
  return td_multiply(s, td_multiply(s, c, td_scope_number(s, 4, c)), slope);
}

typedef struct step {
  td_tensor *kept[5], *extra[5]; // blocks
  td_tensor *h_before, *c_before, *dh, *dc; // dh and dc become those that don't go through the weights
} step;

static td_tensor *lstm_step(td_scope *s, step *p) {
  td_tensor *i = p->kept[0], *f = p->kept[1], *g = p->kept[2], *o = p->kept[3], *c = p->kept[4];
  td_tensor *d = tanh_back(s, td_multiply(s, p->dh, gate(s, o)), c);
  d = plus(s, plus(s, p->dc, p->extra[4]), d);
  td_tensor *parts[] = {gate_back(s, plus(s, td_multiply(s, d, td_tanh(s, g)), p->extra[0]), i),
                        gate_back(s, plus(s, td_multiply(s, d, p->c_before), p->extra[1]), f),
                        plus(s, tanh_back(s, td_multiply(s, d, gate(s, i)), g), p->extra[2]),
                        gate_back(s, plus(s, td_multiply(s, p->dh, td_tanh(s, c)), p->extra[3]), o)};
  p->dc = td_multiply(s, d, gate(s, f));
  p->dh = NULL;
  return td_concat_all(s, parts, 4, 1);
}

static td_tensor *gru_step(td_scope *s, step *p) {
  td_tensor *r = p->kept[0], *z = p->kept[1], *n = p->kept[2], *q = p->kept[3];
  td_tensor *a = plus(s, tanh_back(s, td_multiply(s, p->dh, lack(s, z)), n), p->extra[2]);
  td_tensor *turn = td_multiply(s, p->dh, td_subtract(s, p->h_before, td_tanh(s, n)));
  td_tensor *parts[] = {a, gate_back(s, plus(s, td_multiply(s, a, q), p->extra[0]), r),
                        gate_back(s, plus(s, turn, p->extra[1]), z),
                        plus(s, td_multiply(s, a, gate(s, r)), p->extra[3])};
  p->dh = td_multiply(s, p->dh, gate(s, z));
  return td_concat_all(s, parts, 4, 1);
}

static td_tensor *plain_step(td_scope *s, step *p, bool relu) {
  td_tensor *d = p->dh, *zero = td_scope_number(s, 0, d);
  p->dh = NULL;
  d = relu ? td_where(s, td_greater(s, p->kept[0], zero), d, zero) : tanh_back(s, d, p->kept[0]);
  return plus(s, d, p->extra[0]);
}

static td_tensor *one_step(td_scope *s, const tensors *w, step *p, int64_t time) {
  td_tensor *kept = at_time(s, w->kept, time), *extra = at_time(s, w->dkept, time), *z;
  td_tensor *dh = p->dh = plus(s, p->dh, at_time(s, w->dy, time)), *dc = p->dc, *counts = NULL;
  for (int b = 0; b < w->cell->kept; b++) {
    p->kept[b] = columns(s, kept, b * w->units, w->units);
    p->extra[b] = columns(s, extra, b * w->units, w->units);
  }
  if (w->cell == &td_cell_lstm) z = lstm_step(s, p);
  else if (w->cell == &td_cell_gru) z = gru_step(s, p);
  else z = plain_step(s, p, w->cell == &td_cell_relu);
  if (w->mask) {
    const int64_t start[] = {time, 0}, step_of[] = {1, 1}, size[] = {1, w->batch}, column[] = {w->batch, 1};
    td_tensor *line = td_reshape(s, td_slice_view(s, w->mask, start, step_of, size), 2, column);
    td_tensor *none = td_scope_number(s, 0, w->y);
    counts = td_cast(s, line, TD_BOOL);
    z = td_where(s, counts, z, none);
    p->dh = td_where(s, counts, p->dh ? p->dh : none, dh);
    if (w->cell->has_c) p->dc = td_where(s, counts, p->dc, plus(s, plus(s, dc, p->extra[4]), none));
  }
  int64_t rows = w->cell->gates * w->units;
  td_tensor *state_side = columns(s, z, w->cell->gradients * w->units - rows, rows);
  p->dh = plus(s, td_matmul(s, state_side, w->w_state), p->dh);
  return z;
}

static td_tensor *joined(td_scope *s, td_tensor **parts, int64_t count) { // along axis 0
  while (count > 1) {
    int64_t groups = 0;
    for (int64_t first = 0; first < count; first += TD_INPUT_MAX)
      parts[groups++] =
          td_concat_all(s, parts + first, (int)(count - first < TD_INPUT_MAX ? count - first : TD_INPUT_MAX), 0);
    count = groups;
  }
  return parts[0];
}

// z[T, N, gradients] and the cotangents of the first states, as the fused op gives them.
static int through_time(td_scope *s, tensors *w, td_tensor **z) {
  td_meta state = {.dtype = w->y->dtype, .rank = 2, .shape = {w->batch, w->units}};
  td_tensor **parts = td_memory_new((size_t)(w->steps + 1) * sizeof *parts), *zero = td_scope_filled(s, 0, &state);
  if (!parts) return td_error_memory(s->context, "a recurrent layer's gradient", w->steps * (int64_t)sizeof *parts);
  step p = {.dh = w->dh ? w->dh : zero, .dc = w->dc ? w->dc : zero};
  for (int64_t i = w->steps - 1; i >= 0 && !s->failed; i--) {
    int64_t time = w->reverse ? w->steps - 1 - i : i, before = w->reverse ? time + 1 : time - 1;
    p.h_before = i ? at_time(s, w->y, before) : w->h0 ? w->h0 : zero;
    p.c_before = i       ? columns(s, at_time(s, w->kept, before), 4 * w->units, w->cell->has_c ? w->units : 0)
                 : w->c0 ? w->c0
                         : zero;
    td_tensor *step_z = one_step(s, w, &p, time);
    const int64_t shape[] = {1, w->batch, w->cell->gradients * w->units};
    parts[time] = td_reshape(s, step_z, 3, shape);
  }
  if (!s->failed) *z = joined(s, parts, w->steps);
  w->dh = p.dh;
  w->dc = p.dc;
  td_memory_free(parts);
  return TD_OK;
}

static int fused(td_scope *s, tensors *w, td_tensor **z) {
  td_tensor *in[INPUTS] = {w->w_state, w->kept, w->y, w->h0, w->c0, w->mask, w->dy, w->dh, w->dc, w->dkept};
  td_tensor *out[TD_OUTPUT_MAX];
  td_arg args[] = {{.given = 1}, {.given = 1, .i = w->reverse}};
  while (cells[args[CELL].i] != w->cell) args[CELL].i++;
  int code = td_op_apply(s->context, &td_recurrence_adjoint, in, INPUTS, args, out);
  if (code) return code;
  *z = td_scope_own(s, out[0]);
  w->dh = td_scope_own(s, out[1]);
  w->dc = td_scope_own(s, out[2]);
  return TD_OK;
}

// ---- gradients from the gates' cotangents ----

static td_tensor *states_before(td_scope *s, const tensors *w) { // [T, N, H]: the state that each step started from
  const int64_t one[] = {1, w->batch, w->units}, step_of[] = {1, 1, 1}, size[] = {w->steps - 1, w->batch, w->units};
  const int64_t start[] = {w->reverse ? 1 : 0, 0, 0};
  td_meta state = {.dtype = w->y->dtype, .rank = 3, .shape = {1, w->batch, w->units}};
  td_tensor *first = w->h0 ? td_reshape(s, w->h0, 3, one) : td_scope_filled(s, 0, &state);
  td_tensor *later = td_slice_view(s, w->y, start, step_of, size);
  return w->reverse ? td_concat(s, later, first, 0) : td_concat(s, first, later, 0);
}

static td_tensor *flattened(td_scope *s, td_tensor *t) { // [T N, W]
  if (!t) return NULL;
  const int64_t shape[] = {t->shape[0] * t->shape[1], t->shape[2]};
  return td_reshape(s, t, 2, shape);
}

static td_tensor *input(const td_rule *rule, int i) { return i >= 0 && i < rule->in_count ? rule->in[i] : NULL; }

static void weight_gradients(td_rule *rule, const td_recurrence *r, const tensors *w, td_tensor *z) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[r->x], *all = flattened(s, z), *of_state = all, *of_input = all;
  td_arg lines = {.given = 1, .count = 1, .ints = {0}};
  if (w->cell == &td_cell_gru) {
    of_state = columns(s, all, w->units, 3 * w->units);
    of_input = td_concat(s, columns(s, all, w->units, 2 * w->units), columns(s, all, 0, w->units), 1);
  }
  if (rule->needs[r->x]) rule->din[r->x] = td_reshape(s, td_matmul(s, of_input, rule->in[r->w_input]), 3, x->shape);
  if (rule->needs[r->w_input]) rule->din[r->w_input] = td_matmul(s, td_swap_last(s, of_input), flattened(s, x));
  if (rule->needs[r->w_state])
    rule->din[r->w_state] = td_matmul(s, td_swap_last(s, of_state), flattened(s, states_before(s, w)));
  if (input(rule, r->b_input) && rule->needs[r->b_input]) rule->din[r->b_input] = td_sum(s, of_input, &lines, false);
  if (input(rule, r->b_state) && rule->needs[r->b_state]) rule->din[r->b_state] = td_sum(s, of_state, &lines, false);
}

int td_recurrence_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_recurrence r = td_recurrence_of(rule->op, rule->args);
  int last = rule->out_count - 1;
  td_tensor *y = rule->out[0], *z = NULL;
  tensors w = {.cell = r.cell,
               .reverse = rule->args[0].i,
               .steps = y->shape[0],
               .batch = y->shape[1],
               .units = y->shape[2],
               .w_state = td_cast(s, rule->in[r.w_state], y->dtype),
               .kept = rule->out[last],
               .y = y,
               .h0 = input(rule, r.h),
               .c0 = input(rule, r.c),
               .mask = input(rule, r.mask),
               .dy = rule->cotangent[0],
               .dh = rule->cotangent[1],
               .dc = r.cell->has_c ? rule->cotangent[2] : NULL,
               .dkept = rule->cotangent[last]};
  bool any = w.steps && w.batch && w.units;
  if (any) {
    int code = s->context->recorder ? through_time(s, &w, &z) : fused(s, &w, &z);
    if (code) return code;
    weight_gradients(rule, &r, &w, z);
  }
  if (w.h0 && rule->needs[r.h]) rule->din[r.h] = w.dh;
  if (w.c0 && rule->needs[r.c]) rule->din[r.c] = w.dc;
  return TD_OK;
}
