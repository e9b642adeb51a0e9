// Walks the operands of elementwise kernels: see map.h. A walk has the result's dimensions with neighbours merged where
// no operand breaks them, so that most calls are a single row. Within a row an operand is direct (plain elements of the
// right dtype), fixed (one number), or loaded: copied or cast block by block into a buffer on the stack. Where rows are
// short, blocks reach over many of them, so that a loop has enough to do.
#include <string.h>
#include "engine/ops/map.h"

enum {
  BLOCK = 512, // elements of a loaded block
  CHUNK = 1 << 13, // elements of a task of the pool
  SHORT = 32, // rows of fewer elements are taken together
  ALONE = 1 << 15, // results of at most this many elements are one task
};

enum mode { DIRECT, FIXED, FIXED_CAST, LOADED };

typedef struct operand {
  const char *data;
  int64_t strides[TD_RANK_MAX]; // bytes, of the walk's dimensions; 0 where broadcast
  uint8_t dtype, wanted; // as it lies, and as the loop reads it
  uint8_t bytes; // of an element of wanted
  uint8_t mode;
} operand;

typedef struct walk {
  td_loop *loop; // NULL: row is called instead
  const double *arguments;
  td_row *row;
  void *owner; // of row
  char *out;
  int64_t size;
  int64_t shape[TD_RANK_MAX];
  int out_bytes, rank, inputs;
  unsigned fixed; // for the loop
  bool loaded; // some operand is LOADED or FIXED_CAST
  bool joined; // blocks reach over rows
  operand operands[3];
} walk;

// ---- dtypes ----

static uint8_t compute_dtype(const td_call *call, const td_map *map) {
  if (map->compute == TD_COMPUTE_TRUTH) return TD_BOOL;
  if (map->compute == TD_COMPUTE_DOUBLE) return TD_FLOAT64;
  int first = map->compute == TD_COMPUTE_SELECT;
  uint8_t dtype = call->in[first].dtype;
  for (int k = first + 1; k < map->inputs; k++)
    if (call->in[k].dtype != dtype) dtype = td_dtype_promote(dtype, call->in[k].dtype);
  return map->compute == TD_COMPUTE_FLOATING && !td_dtype_is_float(dtype) ? TD_FLOAT32 : dtype;
}

static uint8_t wanted_dtype(const td_map *map, int k, uint8_t computed) {
  return map->compute == TD_COMPUTE_SELECT && k == 0 ? TD_BOOL : computed;
}

// ---- loading ----

static void gather(void *out, const char *in, int64_t stride, int bytes, int64_t n) {
  if (bytes == 4) {
    uint32_t *to = out;
    for (int64_t i = 0; i < n; i++) memcpy(&to[i], in + i * stride, 4);
  } else if (bytes == 8) {
    uint64_t *to = out;
    for (int64_t i = 0; i < n; i++) memcpy(&to[i], in + i * stride, 8);
  } else if (bytes == 2) {
    uint16_t *to = out;
    for (int64_t i = 0; i < n; i++) memcpy(&to[i], in + i * stride, 2);
  } else {
    char *to = out;
    for (int64_t i = 0; i < n; i++) to[i] = in[i * stride];
  }
}

static void load(const operand *o, void *buffer, const char *from, int64_t stride, int64_t n) {
  if (o->dtype == o->wanted) gather(buffer, from, stride, o->bytes, n);
  else td_cast_run(buffer, o->wanted, from, o->dtype, stride, n, false);
}

// ---- walking ----

// n results at out, of a row whose operands begin at from and must be loaded first, some of them.
static void run_loaded(const walk *w, char *out, const char *const from[3], int64_t n) {
  _Alignas(64) char buffers[3][BLOCK * 8];
  const char *at[3] = {from[0], from[1], from[2]};
  for (int k = 0; k < w->inputs; k++)
    if (w->operands[k].mode == FIXED_CAST) {
      load(&w->operands[k], buffers[k], from[k], 0, 1);
      at[k] = buffers[k];
    }
  for (int64_t done = 0; done < n; done += BLOCK) {
    int64_t count = n - done < BLOCK ? n - done : BLOCK;
    for (int k = 0; k < w->inputs; k++) {
      const operand *o = &w->operands[k];
      int64_t stride = o->strides[w->rank - 1];
      if (o->mode == DIRECT) at[k] = from[k] + done * stride;
      if (o->mode != LOADED) continue;
      load(o, buffers[k], from[k] + done * stride, stride, count);
      at[k] = buffers[k];
    }
    w->loop(count, out + done * w->out_bytes, at[0], at[1], at[2], w->fixed, w->arguments);
  }
}

static void run_row(const walk *w, char *out, const char *const from[3], int64_t n) {
  if (w->loop && w->loaded) run_loaded(w, out, from, n);
  else if (w->loop) w->loop(n, out, from[0], from[1], from[2], w->fixed, w->arguments);
  else w->row(w->owner, out, from[0], w->operands[0].strides[w->rank - 1], n);
}

typedef struct cursor {
  int64_t index[TD_RANK_MAX];
  const char *from[3]; // the operands' elements there
} cursor;

static void cursor_start(cursor *c, const walk *w, int64_t position) {
  for (int k = 0; k < w->inputs; k++) c->from[k] = w->operands[k].data;
  for (int d = w->rank - 1; d >= 0; d--) {
    int64_t outer = d ? position / w->shape[d] : 0;
    c->index[d] = position - outer * w->shape[d];
    position = outer;
    for (int k = 0; k < w->inputs; k++) c->from[k] += c->index[d] * w->operands[k].strides[d];
  }
}

// Elements that are left in its row, at most limit.
static int64_t cursor_left(const cursor *c, const walk *w, int64_t limit) {
  int64_t left = w->shape[w->rank - 1] - c->index[w->rank - 1];
  return left < limit ? left : limit;
}

static void cursor_move(cursor *c, const walk *w, int64_t n) { // n at most to the row's end
  for (int d = w->rank - 1; d >= 0; d--, n = 1) {
    bool wraps = (c->index[d] += n) == w->shape[d];
    int64_t steps = wraps ? n - w->shape[d] : n;
    for (int k = 0; k < w->inputs; k++) c->from[k] += steps * w->operands[k].strides[d];
    if (!wraps) return;
    c->index[d] = 0;
  }
}

static void run_rows(const walk *w, int64_t begin, int64_t end) {
  cursor c;
  cursor_start(&c, w, begin);
  while (begin < end) {
    int64_t n = cursor_left(&c, w, end - begin);
    run_row(w, w->out + begin * w->out_bytes, c.from, n);
    cursor_move(&c, w, n);
    begin += n;
  }
}

// The same for short rows: direct operands are plain throughout, fixed ones are one number throughout.
static void run_joined(const walk *w, int64_t begin, int64_t end) {
  _Alignas(64) char buffers[3][BLOCK * 8];
  cursor c;
  cursor_start(&c, w, begin);
  const char *at[3] = {NULL};
  for (int k = 0; k < w->inputs; k++) {
    const operand *o = &w->operands[k];
    at[k] = o->mode == FIXED ? o->data : buffers[k];
    if (o->mode == FIXED_CAST) load(o, buffers[k], o->data, 0, 1);
  }
  for (; begin < end; begin += BLOCK) {
    int64_t count = end - begin < BLOCK ? end - begin : BLOCK;
    for (int k = 0; k < w->inputs; k++)
      if (w->operands[k].mode == DIRECT) at[k] = w->operands[k].data + begin * w->operands[k].bytes;
    for (int64_t filled = 0, n; filled < count; filled += n) {
      n = cursor_left(&c, w, count - filled);
      for (int k = 0; k < w->inputs; k++) {
        const operand *o = &w->operands[k];
        if (o->mode == LOADED) load(o, buffers[k] + filled * o->bytes, c.from[k], o->strides[w->rank - 1], n);
      }
      cursor_move(&c, w, n);
    }
    w->loop(count, w->out + begin * w->out_bytes, at[0], at[1], at[2], w->fixed, w->arguments);
  }
}

// Results begin to end, counted in row-major order.
static void run_range(const walk *w, int64_t begin, int64_t end) {
  if (w->joined) run_joined(w, begin, end);
  else run_rows(w, begin, end);
}

static void run_chunk(void *argument, int64_t chunk) {
  const walk *w = argument;
  int64_t begin = chunk * CHUNK, end = begin + CHUNK;
  run_range(w, begin, end < w->size ? end : w->size);
}

// ---- setting up ----

// The walk's dimensions and each operand's strides over them.
static void merge_dimensions(walk *w, const td_call *call) {
  const td_view *out = &call->out[0];
  w->rank = 0;
  for (int d = 0; d < out->rank; d++) {
    if (out->shape[d] == 1) continue;
    int64_t strides[3] = {0};
    bool merges = w->rank > 0;
    for (int k = 0; k < w->inputs; k++) {
      const td_view *in = &call->in[k];
      int axis = d - out->rank + in->rank;
      strides[k] = axis < 0 || in->shape[axis] == 1 ? 0 : in->strides[axis] * td_dtype_bytes(in->dtype);
      if (merges && w->operands[k].strides[w->rank - 1] != strides[k] * out->shape[d]) merges = false;
    }
    if (merges) w->shape[w->rank - 1] *= out->shape[d];
    else w->shape[w->rank++] = out->shape[d];
    for (int k = 0; k < w->inputs; k++) w->operands[k].strides[w->rank - 1] = strides[k];
  }
  if (w->rank) return;
  w->rank = 1;
  w->shape[0] = 1;
  for (int k = 0; k < w->inputs; k++) w->operands[k].strides[0] = 0;
}

// Are the operand's elements neighbours from the first dimension on, or all the same one?
static bool is_even(const operand *o, const walk *w, int64_t step, int first) {
  for (int d = w->rank - 1; d >= first; d--) {
    if (o->strides[d] != step) return false;
    step *= w->shape[d];
  }
  return true;
}

// How the loop gets each operand of a row, or of all rows where they are joined. The last operands are fixed first: see
// td_loop.
static void choose_modes(walk *w) {
  w->joined = w->rank > 1 && w->shape[w->rank - 1] < SHORT;
  w->fixed = 0;
  w->loaded = false;
  int first = w->joined ? 0 : w->rank - 1;
  for (int k = w->inputs - 1; k >= 0; k--) {
    operand *o = &w->operands[k];
    bool may_fix = k > 0 || (w->inputs == 2 && !w->fixed);
    if (may_fix && is_even(o, w, 0, first)) {
      o->mode = o->dtype == o->wanted ? FIXED : FIXED_CAST;
      w->loaded |= o->mode == FIXED_CAST;
      w->fixed |= 1u << k;
    } else if (o->dtype == o->wanted && is_even(o, w, o->bytes, first)) {
      o->mode = DIRECT;
    } else {
      o->mode = LOADED;
      w->loaded = true;
    }
  }
}

static void start_walk(walk *w, const td_call *call, int inputs) {
  const td_view *out = &call->out[0];
  w->out = out->data;
  w->size = out->size;
  w->out_bytes = td_dtype_bytes(out->dtype);
  w->inputs = inputs;
  for (int k = 0; k < inputs; k++) {
    w->operands[k].data = call->in[k].data;
    w->operands[k].dtype = call->in[k].dtype;
  }
  merge_dimensions(w, call);
}

static void run_walk(const walk *w, const td_call *call, bool parallel) {
  if (w->size <= ALONE || !parallel) run_range(w, 0, w->size);
  else td_pool_run(call->context->pool, (w->size + CHUNK - 1) / CHUNK, run_chunk, (void *)w);
}

void td_map_rows(const td_call *call, td_row *row, void *owner, bool parallel) {
  walk w;
  if (call->out[0].size == 0) return;
  start_walk(&w, call, 1);
  w.loop = NULL;
  w.joined = false;
  w.row = row;
  w.owner = owner;
  run_walk(&w, call, parallel);
}

static void run_map(const td_call *call, const td_map *map, uint8_t computed, const double *arguments) {
  walk w;
  start_walk(&w, call, map->inputs);
  w.loop = map->loops[computed];
  w.arguments = arguments;
  for (int k = 0; k < w.inputs; k++) {
    w.operands[k].wanted = wanted_dtype(map, k, computed);
    w.operands[k].bytes = (uint8_t)td_dtype_bytes(w.operands[k].wanted);
  }
  choose_modes(&w);
  run_walk(&w, call, true);
}

static bool is_plain(const td_view *view) {
  int64_t expected = 1;
  for (int d = view->rank - 1; d >= 0; d--) {
    if (view->strides[d] != expected && view->shape[d] != 1) return false;
    expected *= view->shape[d];
  }
  return true;
}

// Can the loop take the operands as they are? Then *fixed says which of them are one number.
static bool is_direct(const td_call *call, const td_map *map, uint8_t computed, unsigned *fixed) {
  int64_t size = call->out[0].size;
  *fixed = 0;
  for (int k = map->inputs - 1; k >= 0; k--) {
    const td_view *in = &call->in[k];
    if (in->dtype != wanted_dtype(map, k, computed)) return false;
    if (in->size == size) {
      if (size > 1 && !is_plain(in)) return false;
    } else if (in->size == 1 && (k > 0 || (map->inputs == 2 && !*fixed))) {
      *fixed |= 1u << k;
    } else {
      return false;
    }
  }
  return true;
}

// Are the operands all of one dtype that there is a loop for?
static bool is_uniform(const td_call *call, const td_map *map) {
  uint8_t dtype = call->in[0].dtype;
  for (int k = 1; k < map->inputs; k++)
    if (call->in[k].dtype != dtype) return false;
  return map->loops[dtype] && map->compute != TD_COMPUTE_SELECT;
}

int td_map_run(const td_call *call, const td_map *map, double argument) {
  const double arguments[TD_MAP_ARGUMENTS] = {argument};
  return td_map_run_with(call, map, arguments);
}

int td_map_run_with(const td_call *call, const td_map *map, const double arguments[TD_MAP_ARGUMENTS]) {
  if (call->out[0].size == 1 && is_uniform(call, map)) { // the strides of single elements do not matter
    td_loop *loop = map->loops[call->in[0].dtype];
    loop(1, call->out[0].data, call->in[0].data, call->in[1].data, call->in[2].data, 0, arguments);
    return TD_OK;
  }
  uint8_t computed = compute_dtype(call, map);
  const td_view *out = &call->out[0];
  unsigned fixed;
  if (out->size == 0) return TD_OK;
  if (out->size > ALONE || !is_direct(call, map, computed, &fixed)) {
    run_map(call, map, computed, arguments);
    return TD_OK;
  }
  const void *x = call->in[0].data, *y = map->inputs > 1 ? call->in[1].data : NULL;
  const void *z = map->inputs > 2 ? call->in[2].data : NULL;
  map->loops[computed](out->size, out->data, x, y, z, fixed, arguments);
  return TD_OK;
}

// ---- infer rules ----

// Broadcasts input k into out, which holds the shape of the inputs before it.
static int broadcast_more(td_infer *infer, int k, td_meta *out) {
  const td_meta *in = &infer->in[k];
  int rank, axis;
  int64_t shape[TD_RANK_MAX];
  if (td_shape_broadcast(out->rank, out->shape, in->rank, in->shape, &rank, shape, &axis)) {
    out->rank = (uint8_t)rank;
    memcpy(out->shape, shape, (size_t)rank * sizeof *shape);
    return TD_OK;
  }
  for (int j = 0; j < k; j++) { // one of them has the size that clashes
    td_meta pair;
    int code = td_infer_broadcast(infer, j, k, &pair);
    if (code) return code;
  }
  return TD_ERROR_INTERNAL;
}

int td_map_common(td_infer *infer) {
  td_meta *out = &infer->out[0];
  uint8_t dtype = infer->in[0].dtype;
  if (infer->in_count == 1) {
    *out = infer->in[0];
    return TD_OK;
  }
  int code = td_infer_broadcast(infer, 0, 1, out);
  for (int k = 2; k < infer->in_count && !code; k++) code = broadcast_more(infer, k, out);
  for (int k = 1; k < infer->in_count; k++)
    if (infer->in[k].dtype != dtype) dtype = td_dtype_promote(dtype, infer->in[k].dtype);
  out->dtype = dtype;
  return code;
}

int td_map_floating(td_infer *infer) {
  int code = td_map_common(infer);
  if (!td_dtype_is_float(infer->out[0].dtype)) infer->out[0].dtype = TD_FLOAT32;
  return code;
}

int td_map_truth(td_infer *infer) {
  int code = td_map_common(infer);
  infer->out[0].dtype = TD_BOOL;
  return code;
}

int td_map_number(td_infer *infer) {
  int code = td_map_common(infer);
  if (code || infer->out[0].dtype != TD_BOOL) return code;
  code = td_infer_fail(infer, TD_ERROR_DTYPE, "not defined for bool tensors");
  td_error_hint(infer->context, "cast to a number dtype first: x.astype(int32)");
  return code;
}

int td_map_integer(td_infer *infer) {
  int code = td_map_common(infer);
  if (code || !td_dtype_is_float(infer->out[0].dtype)) return code;
  code = td_infer_fail(infer, TD_ERROR_DTYPE, "needs integers, got %s", td_dtype_name(infer->out[0].dtype));
  td_error_hint(infer->context, "cast to an integer dtype first: x.astype(int64)");
  return code;
}

// ---- operands ----

static bool is_found(const td_view *view, int64_t offset, bool negative) {
  switch (view->dtype) {
  case TD_INT32:
    return negative ? ((const int32_t *)view->data)[offset] < 0 : ((const int32_t *)view->data)[offset] == 0;
  case TD_INT64:
    return negative ? ((const int64_t *)view->data)[offset] < 0 : ((const int64_t *)view->data)[offset] == 0;
  default: return !negative && view->data[offset] == 0;
  }
}

int64_t td_map_find(const td_view *view, bool negative) {
  int64_t index[TD_RANK_MAX] = {0}, offset = 0;
  for (int64_t i = 0; i < view->size; i++) {
    if (is_found(view, offset, negative)) return i;
    for (int d = view->rank - 1; d >= 0; d--) {
      offset += view->strides[d];
      if (++index[d] < view->shape[d]) break;
      offset -= view->strides[d] * view->shape[d];
      index[d] = 0;
    }
  }
  return -1;
}
