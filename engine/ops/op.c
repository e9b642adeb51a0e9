// Eager dispatch: infer, allocate, run the kernel, stamp, record. Half floats are widened to float32 before a kernel
// and narrowed after it, so kernels never see them (unless the row says TD_HALF). Also the lookup of rows by name and
// what can be said of a row (its signature).
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "engine/base/memory.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"

static const td_op *const *const families[] = {
#define X(list) list,
    TD_FAMILIES(X)
#undef X
};

enum { FAMILIES = sizeof families / sizeof *families, RECENT = 1024 };

static pthread_once_t counted = PTHREAD_ONCE_INIT;
static int starts[FAMILIES + 1]; // the index of each family's first row; at last their number

static void count_rows(void) {
  for (int f = 0; f < FAMILIES; f++) {
    int rows = 0;
    while (families[f][rows]) rows++;
    starts[f + 1] = starts[f] + rows;
  }
}

const td_op *td_op_at(int index) {
  pthread_once(&counted, count_rows);
  for (int f = 0; f < FAMILIES; f++)
    if (index >= starts[f] && index < starts[f + 1]) return families[f][index - starts[f]];
  return NULL;
}

int td_op_count(void) {
  pthread_once(&counted, count_rows);
  return starts[FAMILIES];
}

bool td_op_alias(const char *const *alias, const char *name) {
  for (; alias && *alias; alias++)
    if (strcmp(*alias, name) == 0) return true;
  return false;
}

static bool is_named(const td_op *op, const char *name) {
  return strcmp(op->name, name) == 0 || td_op_alias(op->alias, name);
}

// What was asked for once is found again at once: rows never move.
const td_op *td_op_find(const char *name) {
  static const td_op *_Atomic recent[RECENT];
  uint32_t hash = 0;
  for (const char *c = name; *c; c++) hash = hash * 31 + (unsigned char)*c;
  const td_op *_Atomic *place = &recent[hash % RECENT];
  const td_op *known = *place;
  if (known && is_named(known, name)) return known;
  for (int f = 0; f < FAMILIES; f++)
    for (const td_op *const *op = families[f]; *op; op++) {
      if (!is_named(*op, name)) continue;
      *place = *op;
      return *op;
    }
  return NULL;
}

static bool is_tensor_param(const td_param *param) {
  return param->kind >= TD_PARAM_TENSOR && param->kind <= TD_PARAM_TENSORS_SPREAD;
}

int td_op_tensor_params(const td_op *op) {
  int count = 0;
  while (count < TD_PARAM_MAX && is_tensor_param(&op->params[count])) count++;
  return count;
}

int td_op_arg_count(const td_op *op) {
  int first = td_op_tensor_params(op), count = 0;
  while (first + count < TD_PARAM_MAX && op->params[first + count].kind != TD_PARAM_END) count++;
  return count;
}

static void ints_print(td_text *text, const td_arg *arg) {
  td_text_add_char(text, '(');
  for (int i = 0; i < arg->count; i++) td_text_print(text, i ? ", %lld" : "%lld", (long long)arg->ints[i]);
  td_text_add(text, arg->count == 1 ? ",)" : ")");
}

static void pairs_print(td_text *text, const td_arg *arg) {
  if (arg->count < 0) td_text_print(text, "%d", arg->pairs[0][0]);
  for (int i = 0; i < arg->count; i++)
    td_text_print(text, "%s(%d, %d)", i ? ", " : "", arg->pairs[i][0], arg->pairs[i][1]);
}

static void floats_print(td_text *text, const td_arg *arg) {
  char number[TD_NUMBER_TEXT];
  for (int i = 0; i < arg->count; i++) {
    td_number_print(number, arg->floats[i]);
    td_text_print(text, "%s%s", i ? ", " : "(", number);
  }
  td_text_add_char(text, ')');
}

void td_arg_print(td_text *text, const td_param *param, const td_arg *arg) {
  if (!arg->given) {
    td_text_add(text, "None");
    return;
  }
  char number[TD_NUMBER_TEXT];
  bool whole = param->kind == TD_PARAM_NUMBER && !arg->count, order = param->kind == TD_PARAM_ORDER && !arg->count;
  switch (whole ? TD_PARAM_INT : order ? TD_PARAM_FLOAT : param->kind) {
  case TD_PARAM_NUMBER:
  case TD_PARAM_FLOAT:
    td_number_print(number, arg->f);
    td_text_add(text, number);
    break;
  case TD_PARAM_BOOL: td_text_add(text, arg->i ? "True" : "False"); break;
  case TD_PARAM_CHOICE: td_text_print(text, "\"%s\"", param->choices[arg->i]); break;
  case TD_PARAM_DTYPE: td_text_add(text, td_dtype_name((uint8_t)arg->i)); break;
  case TD_PARAM_ORDER:
  case TD_PARAM_TEXT: td_text_print(text, "\"%s\"", arg->text); break;
  case TD_PARAM_AXES:
  case TD_PARAM_SHAPE:
  case TD_PARAM_INTS:
    if (arg->given == TD_GIVEN_CHOICE) td_text_print(text, "\"%s\"", param->choices[arg->i]);
    else ints_print(text, arg);
    break;
  case TD_PARAM_PAIRS: pairs_print(text, arg); break;
  case TD_PARAM_FLOATS: floats_print(text, arg); break;
  default: td_text_print(text, "%lld", (long long)arg->i);
  }
}

static void param_print(td_text *text, const td_param *param) {
  if (param->kind == TD_PARAM_TENSORS_SPREAD) td_text_add_char(text, '*');
  td_text_add(text, param->name);
  if (param->kind == TD_PARAM_TENSOR_OPTIONAL) td_text_add(text, "=None");
  if (is_tensor_param(param) || param->required) return;
  td_text_add_char(text, '=');
  td_arg_print(text, param, &param->fallback);
}

bool td_op_goes_first(const td_op *op, const td_param *param) {
  return op->params[0].kind == TD_PARAM_TENSORS_SPREAD && param->kind == TD_PARAM_TEXT && param->required;
}

const char *td_op_spelled(const td_op *op, char *name, size_t size) {
  snprintf(name, size, "%s", op->name);
  size_t length = op->module ? strlen(op->module) : 0;
  if (length && length < size && strncmp(name, op->module, length) == 0 && name[length] == '_') name[length] = '.';
  return name;
}

void td_op_signature(const td_op *op, td_text *text) {
  char name[64];
  td_text_print(text, "%s(", td_op_spelled(op, name, sizeof name));
  const char *between = "";
  bool named = false;
  for (int pass = 0; pass < 3; pass++) // what goes first, what follows, what is given by name only
    for (int i = 0; i < TD_PARAM_MAX && op->params[i].kind != TD_PARAM_END; i++) {
      const td_param *param = &op->params[i];
      if (pass != (td_op_goes_first(op, param) ? 0 : param->keyword ? 2 : 1)) continue;
      td_text_add(text, between);
      if (param->keyword && !named) td_text_add(text, "*, ");
      named = param->keyword;
      param_print(text, param);
      between = ", ";
    }
  td_text_add_char(text, ')');
}

int td_op_outputs(const td_op *op, td_tensor *const *out) {
  if (op->outputs != TD_MANY) return op->outputs ? op->outputs : 1;
  int count = 0;
  while (count < TD_OUTPUT_MAX && out[count]) count++;
  return count;
}

int td_op_infer(td_infer *infer) {
  infer->out_count = infer->op->outputs ? infer->op->outputs : 1;
  return infer->op->infer(infer);
}

// ---- half floats ----

static td_tensor *widen(td_context *context, td_tensor *t) {
  td_tensor *flat = td_tensor_contiguous(context, t);
  if (!flat) return NULL;
  td_tensor *wide = td_tensor_new(context, TD_FLOAT32, t->rank, t->shape);
  if (wide) {
    const uint16_t *from = (const uint16_t *)flat->data;
    float *to = (float *)wide->data;
    bool brain = t->dtype == TD_BFLOAT16;
    for (int64_t i = 0; i < t->size; i++) to[i] = brain ? td_bfloat_to_float(from[i]) : td_half_to_float(from[i]);
  }
  td_tensor_unref(flat);
  return wide;
}

static void narrow(const td_tensor *wide, td_tensor *half) {
  const float *from = (const float *)wide->data;
  uint16_t *to = (uint16_t *)half->data;
  bool brain = half->dtype == TD_BFLOAT16;
  for (int64_t i = 0; i < half->size; i++) to[i] = brain ? td_bfloat_from_float(from[i]) : td_half_from_float(from[i]);
}

// ---- apply ----

static void view_of(td_view *view, const td_tensor *t) {
  view->data = t->data;
  view->size = t->size;
  view->dtype = t->dtype;
  view->rank = t->rank;
  td_axes_copy(view->shape, t->shape, t->rank);
  td_axes_copy(view->strides, t->strides, t->rank);
}

static void meta_of(td_meta *meta, const td_tensor *t) {
  if (!t) {
    meta->rank = 255;
    return;
  }
  meta->dtype = t->dtype;
  meta->rank = t->rank;
  td_axes_copy(meta->shape, t->shape, t->rank);
}

enum { HALVES = 1 << TD_FLOAT16 | 1 << TD_BFLOAT16 };
enum { WORKSPACE_LEAST = 1024 }; // from this size on blocks are aligned to 64 bytes

// Kernels fill fresh outputs, so one that is broken off leaves no trace.
static int run_breakable(const td_call *call) {
  td_context *context = call->context;
  atomic_store_explicit(&context->in_kernel, true, memory_order_relaxed);
  int code = call->op->kernel(call);
  atomic_store_explicit(&context->in_kernel, false, memory_order_relaxed);
  if (!atomic_load_explicit(&context->interrupt, memory_order_relaxed)) return code;
  return td_error_set(context, TD_ERROR_INTERRUPT, "%s: interrupted", call->op->name);
}

enum { LEAVES_FROM = 16384 }; // elements: work that takes longer than handing the turn over and back

static bool is_long(const td_call *call) {
  int64_t elements = 0;
  for (int i = 0; i < call->in_count; i++)
    if (call->in[i].data) elements += call->in[i].size;
  for (int i = 0; i < call->out_count; i++) elements += call->out[i].size;
  return elements >= LEAVES_FROM;
}

// Long kernels let the session's other threads run: their inputs are held meanwhile, so nobody writes or frees them.
static int run_beside(td_call *call, td_tensor *const *in) {
  td_context *context = call->context;
  if (!context->leave || !is_long(call)) return run_breakable(call);
  for (int i = 0; i < call->in_count; i++) td_tensor_ref(in[i]);
  td_context_leave(context);
  int code = run_breakable(call);
  td_context_enter(context);
  for (int i = 0; i < call->in_count; i++) td_tensor_unref(in[i]);
  return code;
}

// The workspace is still to come.
static void call_make(td_call *call, const td_infer *infer, td_tensor *const *in, td_tensor *const *out) {
  call->context = infer->context;
  call->op = infer->op;
  call->args = infer->args;
  call->in_count = infer->in_count;
  call->out_count = infer->out_count;
  for (int i = 0; i < call->in_count; i++) {
    if (in[i]) view_of(&call->in[i], in[i]);
    else call->in[i].data = NULL;
  }
  for (int i = 0; i < call->out_count; i++) view_of(&call->out[i], out[i]);
}

static int run_kernel(const td_infer *infer, td_tensor *const *in, td_tensor *const *out) {
  const td_op *op = infer->op;
  td_call call;
  call_make(&call, infer, in, out);
  if (!op->workspace) return run_beside(&call, in);
  int64_t bytes = op->workspace(&call);
  call.workspace = bytes > 0 ? td_memory_new((size_t)bytes < WORKSPACE_LEAST ? WORKSPACE_LEAST : (size_t)bytes) : NULL;
  if (bytes > 0 && !call.workspace) return td_error_memory(call.context, op->name, bytes);
  int code = run_beside(&call, in);
  td_memory_free(call.workspace);
  return code;
}

static void drop(td_tensor **tensors, int count) {
  for (int i = 0; i < count; i++) td_tensor_unref(tensors[i]);
}

// Runs the kernel in float32 where an input or an output is a half float.
static int run_widened(const td_infer *infer, td_tensor *const *in, td_tensor *const *out) {
  td_context *context = infer->context;
  td_tensor *wide_in[TD_INPUT_MAX] = {0}, *wide_out[TD_OUTPUT_MAX] = {0};
  int ins = 0, outs = 0, code = TD_OK;
  for (; ins < infer->in_count && !code; ins++) {
    bool half = in[ins] && td_dtype_is_half(in[ins]->dtype);
    wide_in[ins] = half ? widen(context, in[ins]) : td_tensor_ref(in[ins]);
    if (half && !wide_in[ins]) code = context->error.code;
  }
  for (; outs < infer->out_count && !code; outs++) {
    bool half = td_dtype_is_half(out[outs]->dtype);
    wide_out[outs] =
        half ? td_tensor_new(context, TD_FLOAT32, out[outs]->rank, out[outs]->shape) : td_tensor_ref(out[outs]);
    if (!wide_out[outs]) code = context->error.code;
  }
  if (!code) code = run_kernel(infer, wide_in, wide_out);
  for (int i = 0; i < outs && !code; i++)
    if (wide_out[i] != out[i]) narrow(wide_out[i], out[i]);
  drop(wide_in, ins);
  drop(wide_out, outs);
  return code;
}

static int defaults(const td_op *op, td_arg args[TD_PARAM_MAX]) {
  int first = td_op_tensor_params(op), count = td_op_arg_count(op);
  for (int i = 0; i < count; i++) args[i] = op->params[first + i].fallback;
  return count;
}

static td_tensor *output_new(const td_op *op, td_infer *infer, int output) {
  const td_meta *meta = &infer->out[output];
  if (!op->view) return td_tensor_new(infer->context, meta->dtype, meta->rank, meta->shape);
  infer->output = output;
  return op->view(infer->context, infer->tensors[0], infer);
}

// dtypes: bit d is set where an input has dtype d. flags: of the inputs together.
static int produce(const td_op *op, td_infer *infer, unsigned dtypes, unsigned flags, td_tensor **out) {
  int code = TD_OK, made = 0;
  for (; made < infer->out_count; made++) {
    td_tensor *t = out[made] = output_new(op, infer, made);
    if (!t) {
      code = td_error_within(infer->context, op->name);
      break;
    }
    t->place = infer->context->place;
    t->flags = flags & TD_TENSOR_FROM_VARIABLE;
    dtypes |= 1u << t->dtype;
  }
  if (!code && op->kernel) {
    bool widened = dtypes & HALVES && !(op->flags & TD_HALF);
    code = widened ? run_widened(infer, infer->tensors, out) : run_kernel(infer, infer->tensors, out);
  }
  if (code) drop(out, made);
  return code;
}

static int lacks_nothing(td_context *context, const td_op *op, const td_arg *args) {
  const char *missing = op->missing ? op->missing(args) : NULL;
  return missing ? td_error_set(context, TD_ERROR_STATE, "%s: %s", op->name, missing) : TD_OK;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// The same for what a kernel says, which begins with the op's name (td_infer_fail).
static int failed(td_context *context, const td_op *op, int code) {
  char *message = context->error.message;
  size_t length = strlen(op->name);
  if (!(op->flags & TD_HIDDEN) || strncmp(message, op->name, length) || strncmp(message + length, ": ", 2)) return code;
  memmove(message, message + length + 2, strlen(message + length + 2) + 1);
  return code;
}

int td_op_apply(td_context *context, const td_op *op, td_tensor *const *in, int in_count, const td_arg *args,
                td_tensor **out) {
  if (atomic_load_explicit(&context->interrupt, memory_order_relaxed))
    return failed(context, op, td_error_set(context, TD_ERROR_INTERRUPT, "%s: interrupted", op->name));
  td_arg filled[TD_PARAM_MAX];
  if (!args && td_op_has_args(op, in_count)) {
    defaults(op, filled);
    args = filled;
  }
  td_infer infer;
  infer.context = context;
  infer.op = op;
  infer.in_count = in_count;
  infer.tensors = in;
  infer.args = args;
  unsigned flags = 0, dtypes = 0;
  for (int i = 0; i < in_count; i++) {
    meta_of(&infer.in[i], in[i]);
    if (!in[i]) continue;
    flags |= in[i]->flags;
    dtypes |= 1u << in[i]->dtype;
  }
  if (flags & TD_TENSOR_BATCHED || td_batch_draws(context, op, in, in_count))
    return td_batch_apply(context, op, in, in_count, args, out);
  double began = context->timed ? seconds_now() : 0;
  int code = td_op_infer(&infer);
  if (!code) code = lacks_nothing(context, op, args);
  if (!code) code = produce(op, &infer, dtypes, flags, out);
  if (code) return failed(context, op, code);
  if (op->outputs == TD_MANY && infer.out_count < TD_OUTPUT_MAX) out[infer.out_count] = NULL;
  if (context->inspector) context->inspector->ran(context, op, in, in_count, out, infer.out_count);
  if (!context->recorder) return TD_OK;
  if (began > 0) context->op_seconds = (float)(seconds_now() - began);
  code = context->recorder->record(context, op, in, in_count, args, out, infer.out_count);
  context->op_seconds = -1;
  if (code) drop(out, infer.out_count);
  return code;
}
