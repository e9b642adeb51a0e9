// Putting lines in order: radix sort and radix selection of items, which are an element's key and its place.
//  1. Keys are unsigned integers in the order of the elements; downwards they are inverted, so ties keep their order.
//  2. Passes over digits of 8 bits never compare, and take the same time whatever the elements are. Passes in which all
//     digits agree are left out.
//  3. The few first of a long line are kept in order while it is read once: later elements are looked at in blocks, and
//     only those that come before the last one kept go in.
//  4. Many lines run side by side; a line of LONG elements runs alone, each pass in blocks. The order is unique, so it
//     depends on neither.
#include "engine/ops/order.h"

#include <string.h>

#include "engine/device/cpu/clones.h"

enum { DIGITS = 256, FEW = 32, LONG = 1 << 17, BLOCKS = 32, BUFFERS = 64 };

typedef struct wide_item {
  uint64_t key;
  int64_t place;
} wide_item;

#define NARROW_KEY(item) ((item) >> 32)
#define NARROW_PLACE(item) ((int64_t)((item) & UINT32_MAX))
#define NARROW_ITEM(key, place) ((uint64_t)(key) << 32 | (uint64_t)(place))
#define WIDE_KEY(item) ((item).key)
#define WIDE_PLACE(item) ((item).place)
#define WIDE_ITEM(key, place) ((wide_item){(key), (place)})

// ---- keys ----

static uint32_t key_float(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) return UINT32_MAX;
  if (bits == 0x80000000) bits = 0;
  return bits >> 31 ? ~bits : bits | 0x80000000;
}

static uint64_t key_double(uint64_t bits) {
  const uint64_t sign = (uint64_t)1 << 63;
  if ((bits & ~sign) > 0x7ff0000000000000) return UINT64_MAX;
  if (bits == sign) bits = 0;
  return bits & sign ? ~bits : bits | sign;
}

static uint64_t key_of(uint8_t dtype, const char *element) {
  uint32_t half;
  uint64_t whole;
  switch (dtype) {
  case TD_BOOL:
  case TD_UINT8: return *(const uint8_t *)element;
  case TD_INT32: memcpy(&half, element, sizeof half); return half ^ 0x80000000;
  case TD_FLOAT32: memcpy(&half, element, sizeof half); return key_float(half);
  case TD_INT64: memcpy(&whole, element, sizeof whole); return whole ^ (uint64_t)1 << 63;
  default: memcpy(&whole, element, sizeof whole); return key_double(whole);
  }
}

static bool is_nan_key(uint8_t dtype, uint64_t key) {
  return dtype == TD_FLOAT32 ? key == UINT32_MAX : dtype == TD_FLOAT64 && key == UINT64_MAX;
}

// n elements, step bytes apart, from the place on. Gives the number of NaN.
static int64_t load_run(td_ordered *line, const char *from, int64_t step, int64_t n, int64_t place) {
  const td_ordering *o = line->ordering;
  uint8_t dtype = o->x->dtype;
  int64_t lost = 0;
  uint64_t turn = !o->downwards ? 0 : o->wide && td_dtype_bytes(dtype) == 8 ? UINT64_MAX : UINT32_MAX;
  for (int64_t i = 0; i < n; i++, from += step) {
    uint64_t key = key_of(dtype, from);
    lost += is_nan_key(dtype, key);
    key ^= turn;
    if (o->wide) ((wide_item *)line->items)[place + i] = WIDE_ITEM(key, place + i);
    else ((uint64_t *)line->items)[place + i] = NARROW_ITEM(key, place + i);
  }
  return lost;
}

// ---- passes ----

typedef struct pass {
  const void *from;
  void *to;
  int64_t n, block, blocks;
  int shift;
  int64_t (*counts)[DIGITS]; // of each block; then where its items go
} pass;

#define PASSES(ITEM, name, KEY)                                                             \
  TD_CLONES static void name##_count(void *argument, int64_t block) {                      \
    const pass *p = argument;                                                               \
    const ITEM *items = p->from;                                                            \
    int64_t *counts = p->counts[block], last = (block + 1) * p->block;                      \
    memset(counts, 0, sizeof *p->counts);                                                   \
    if (last > p->n) last = p->n;                                                           \
    for (int64_t i = block * p->block; i < last; i++) counts[KEY(items[i]) >> p->shift & 255]++; \
  }                                                                                         \
  static void name##_move(void *argument, int64_t block) {                                  \
    const pass *p = argument;                                                               \
    const ITEM *items = p->from;                                                            \
    ITEM *to = p->to;                                                                       \
    int64_t *places = p->counts[block], last = (block + 1) * p->block;                      \
    if (last > p->n) last = p->n;                                                           \
    for (int64_t i = block * p->block; i < last; i++)                                       \
      to[places[KEY(items[i]) >> p->shift & 255]++] = items[i];                             \
  }                                                                                         \
  static void name##_insert(ITEM *items, int64_t n) { /* few items */                       \
    for (int64_t i = 1; i < n; i++) {                                                       \
      ITEM item = items[i];                                                                 \
      int64_t j = i;                                                                        \
      for (; j > 0 && KEY(items[j - 1]) > KEY(item); j--) items[j] = items[j - 1];          \
      items[j] = item;                                                                      \
    }                                                                                       \
  }                                                                                         \
  /* Keeps those of count items whose digit is the wanted one; smaller ones go to before. */ \
  static int64_t name##_keep(const ITEM *from, int64_t count, int shift, uint64_t digit, ITEM *to, ITEM *before,  \
                             int64_t *taken) {                                              \
    int64_t kept = 0;                                                                       \
    for (int64_t i = 0; i < count; i++) {                                                   \
      uint64_t d = KEY(from[i]) >> shift & 255;                                             \
      if (before && d < digit) before[(*taken)++] = from[i];                                \
      if (d == digit) to[kept++] = from[i];                                                 \
    }                                                                                       \
    return kept;                                                                            \
  }
PASSES(uint64_t, narrow, NARROW_KEY)
PASSES(wide_item, wide, WIDE_KEY)

static int highest_shift(const td_ordering *o) {
  int bytes = td_dtype_bytes(o->x->dtype);
  return bytes * 8 - 8;
}

// Counts become the places where each block's items of a digit begin. False: all items have one digit.
static bool places_of(pass *p) {
  int64_t at = 0;
  for (int d = 0; d < DIGITS; d++) {
    int64_t all = 0;
    for (int64_t b = 0; b < p->blocks; b++) {
      int64_t count = p->counts[b][d];
      p->counts[b][d] = at + all;
      all += count;
    }
    if (all == p->n) return false;
    at += all;
  }
  return true;
}

void td_order_sort(td_ordered *line, int64_t count) {
  const td_ordering *o = line->ordering;
  if (count <= FEW) {
    if (o->wide) wide_insert(line->items, count);
    else narrow_insert(line->items, count);
    return;
  }
  pass p = {.n = count, .blocks = count < LONG ? 1 : BLOCKS, .counts = line->counts};
  p.block = (count + p.blocks - 1) / p.blocks;
  for (; p.shift <= highest_shift(o) && !td_pool_stopped(line->pool); p.shift += 8) {
    p.from = line->items;
    p.to = line->scratch;
    td_pool_run(line->pool, p.blocks, o->wide ? wide_count : narrow_count, &p);
    if (!places_of(&p)) continue;
    td_pool_run(line->pool, p.blocks, o->wide ? wide_move : narrow_move, &p);
    line->items = p.to;
    line->scratch = (void *)p.from;
  }
}

static int64_t keep(const td_ordered *line, const void *from, int64_t count, int shift, uint64_t digit, void *before,
                    int64_t *taken) {
  if (line->ordering->wide) return wide_keep(from, count, shift, digit, line->scratch, before, taken);
  return narrow_keep(from, count, shift, digit, line->scratch, before, taken);
}

// Digit by digit from the highest, among the items that agree so far. The ones before may overwrite the items that were
// read already: never more are taken than were looked at.
int64_t td_order_select(td_ordered *line, int64_t k, bool first) {
  const td_ordering *o = line->ordering;
  const void *from = line->items;
  int64_t count = o->n, taken = 0, size = o->wide ? (int64_t)sizeof(wide_item) : (int64_t)sizeof(uint64_t);
  for (int shift = highest_shift(o); shift >= 0; shift -= 8) {
    pass p = {.from = from, .n = count, .blocks = 1, .block = count, .shift = shift, .counts = line->counts};
    (o->wide ? wide_count : narrow_count)(&p, 0);
    uint64_t digit = 0;
    while (k >= line->counts[0][digit]) k -= line->counts[0][digit++];
    count = keep(line, from, count, shift, digit, first ? line->items : NULL, &taken);
    from = line->scratch;
  }
  if (first) memcpy((char *)line->items + taken * size, from, (size_t)((k + 1) * size));
  return o->wide ? WIDE_PLACE(((const wide_item *)from)[k]) : NARROW_PLACE(((const uint64_t *)from)[k]);
}

int64_t td_order_place(const td_ordered *line, int64_t i) {
  return line->ordering->wide ? WIDE_PLACE(((const wide_item *)line->items)[i])
                              : NARROW_PLACE(((const uint64_t *)line->items)[i]);
}

const char *td_order_element(const td_ordered *line, int64_t place) {
  const td_ordering *o = line->ordering;
  const td_view *x = o->x;
  int64_t offset = 0;
  for (int i = o->line_count - 1; i > 0; i--) {
    int64_t size = x->shape[o->line[i]];
    offset += place % size * x->strides[o->line[i]];
    place /= size;
  }
  if (o->line_count) offset += place * x->strides[o->line[0]];
  return line->data + offset * td_dtype_bytes(x->dtype);
}

// ---- lines ----

void td_order_open(td_ordering *o, const td_view *x, const bool line[TD_RANK_MAX], bool downwards) {
  *o = (td_ordering){.x = x, .downwards = downwards, .lines = 1, .n = 1};
  for (int i = 0; i < x->rank; i++) {
    if (line[i]) {
      o->line[o->line_count++] = i;
      o->n *= x->shape[i];
    } else {
      o->kept[o->kept_count++] = i;
      o->lines *= x->shape[i];
    }
  }
  o->wide = td_dtype_bytes(x->dtype) == 8 || o->n > UINT32_MAX;
}

static int64_t buffers_of(const td_ordering *o, const td_pool *pool) {
  int64_t most = 4 * (int64_t)td_pool_threads(pool);
  if (o->n >= LONG) return 1;
  if (most > BUFFERS) most = BUFFERS;
  return o->lines < most ? o->lines : most;
}

static int64_t items_bytes(const td_ordering *o) {
  return td_space_bytes(o->n * (o->wide ? (int64_t)sizeof(wide_item) : (int64_t)sizeof(uint64_t)));
}

static int64_t buffer_bytes(const td_ordering *o) {
  return 2 * items_bytes(o) + (o->n < LONG ? 1 : BLOCKS) * DIGITS * (int64_t)sizeof(int64_t);
}

int64_t td_order_bytes(const td_ordering *o, const td_pool *pool) {
  return o->n && o->lines ? buffers_of(o, pool) * buffer_bytes(o) : 0;
}

typedef struct run {
  const td_ordering *ordering;
  td_pool *pool;
  char *space;
  int64_t share; // lines of a buffer
  void (*work)(void *owner, td_ordered *line);
  void *owner;
} run;

static void load(td_ordered *line) {
  const td_ordering *o = line->ordering;
  const td_view *x = o->x;
  int last = o->line_count ? o->line[o->line_count - 1] : 0;
  int64_t n = o->line_count ? x->shape[last] : 1;
  int64_t step = o->line_count ? x->strides[last] * td_dtype_bytes(x->dtype) : 0;
  line->numbers = o->n;
  for (int64_t begin = 0; begin < o->n; begin += n)
    for (int64_t place = begin, part; place < begin + n && !td_pool_stopped(line->pool); place += part) {
      part = begin + n - place < LONG ? begin + n - place : LONG;
      line->numbers -= load_run(line, td_order_element(line, place), step, part, place);
    }
}

static const char *line_data(const td_ordering *o, int64_t index) {
  int64_t offset = 0;
  for (int i = o->kept_count; i-- > 0;) {
    offset += index % o->x->shape[o->kept[i]] * o->x->strides[o->kept[i]];
    index /= o->x->shape[o->kept[i]];
  }
  return o->x->data + offset * td_dtype_bytes(o->x->dtype);
}

static void run_buffer(void *argument, int64_t buffer) {
  const run *r = argument;
  const td_ordering *o = r->ordering;
  char *space = r->space + buffer * buffer_bytes(o);
  int64_t last = (buffer + 1) * r->share < o->lines ? (buffer + 1) * r->share : o->lines;
  for (int64_t index = buffer * r->share; index < last; index++) {
    td_ordered line = {.ordering = o, .index = index, .data = line_data(o, index), .pool = r->pool};
    line.items = space;
    line.scratch = space + items_bytes(o);
    line.counts = (int64_t(*)[DIGITS])(space + 2 * items_bytes(o));
    load(&line);
    if (td_pool_stopped(r->pool)) return;
    r->work(r->owner, &line);
  }
}

void td_order_run(const td_ordering *o, td_pool *pool, void *space, void (*work)(void *owner, td_ordered *line),
                  void *owner) {
  if (!o->n || !o->lines) return;
  int64_t buffers = buffers_of(o, pool);
  run r = {o, pool, space, (o->lines + buffers - 1) / buffers, work, owner};
  if (buffers > 1) td_pool_run(pool, (o->lines + r.share - 1) / r.share, run_buffer, &r);
  else run_buffer(&r, 0);
}

// ---- the first of a line ----

enum { BLOCK = 256 };

typedef struct first {
  int64_t count;
  uint64_t keys[TD_ORDER_FEW];
  int64_t places[TD_ORDER_FEW];
} first;

// The keys of n elements, inverted by turn. True: some are below limit.
#define BYTE_KEY(x) (x)
#define INT32_KEY(x) ((x) ^ 0x80000000)
#define INT64_KEY(x) ((x) ^ (uint64_t)1 << 63)
#define KEYS(name, TYPE, KEY)                                                                                      \
  TD_CLONES static bool name(const char *data, int64_t step, int64_t n, uint64_t turn, uint64_t limit,             \
                             uint64_t *keys) {                                                                     \
    const TYPE *x = (const TYPE *)data, flip = (TYPE)turn;                                                         \
    bool any = false;                                                                                              \
    for (int64_t i = 0; i < n; i++) {                                                                              \
      keys[i] = (TYPE)(KEY(x[i * step]) ^ flip);                                                                   \
      any |= keys[i] < limit;                                                                                      \
    }                                                                                                              \
    return any;                                                                                                    \
  }
KEYS(keys_byte, uint8_t, BYTE_KEY)
KEYS(keys_int32, uint32_t, INT32_KEY)
KEYS(keys_int64, uint64_t, INT64_KEY)
KEYS(keys_float, uint32_t, key_float)
KEYS(keys_double, uint64_t, key_double)

static bool keys_of(const td_ordering *o, const char *data, int64_t step, int64_t n, uint64_t limit, uint64_t *keys) {
  uint64_t turn = o->downwards ? UINT64_MAX : 0;
  switch (o->x->dtype) {
  case TD_BOOL:
  case TD_UINT8: return keys_byte(data, step, n, turn, limit, keys);
  case TD_INT32: return keys_int32(data, step, n, turn, limit, keys);
  case TD_FLOAT32: return keys_float(data, step, n, turn, limit, keys);
  case TD_INT64: return keys_int64(data, step, n, turn, limit, keys);
  default: return keys_double(data, step, n, turn, limit, keys);
  }
}

static void admit(first *f, int64_t count, uint64_t key, int64_t place) { // behind its equals
  int64_t at = f->count;
  if (at == count && key >= f->keys[count - 1]) return;
  if (at < count) f->count++;
  else at--;
  for (; at > 0 && f->keys[at - 1] > key; at--) {
    f->keys[at] = f->keys[at - 1];
    f->places[at] = f->places[at - 1];
  }
  f->keys[at] = key;
  f->places[at] = place;
}

typedef struct first_run {
  const td_ordering *ordering;
  int64_t count;
  td_order_found *found;
  void *owner;
  const char *data; // of the line that is read in parts
  first *parts;
} first_run;

static void read_first(const first_run *r, const char *data, int64_t from, int64_t to, first *f) {
  const td_ordering *o = r->ordering;
  int64_t step = o->line_count ? o->x->strides[o->line[0]] : 0, bytes = td_dtype_bytes(o->x->dtype);
  uint64_t keys[BLOCK];
  f->count = 0;
  for (int64_t place = from; place < to; place += BLOCK) {
    int64_t n = to - place < BLOCK ? to - place : BLOCK;
    bool full = f->count == r->count;
    uint64_t limit = full ? f->keys[f->count - 1] : UINT64_MAX;
    if (!keys_of(o, data + place * step * bytes, step, n, limit, keys) && full) continue;
    for (int64_t i = 0; i < n; i++) admit(f, r->count, keys[i], place + i);
  }
}

static void report(const first_run *r, int64_t index, const char *data, const first *f) {
  const td_ordered line = {.ordering = r->ordering, .index = index, .data = data};
  r->found(r->owner, &line, f->places);
}

static void first_lines(void *argument, int64_t from, int64_t to) {
  const first_run *r = argument;
  for (int64_t index = from; index < to; index++) {
    first f;
    read_first(r, line_data(r->ordering, index), 0, r->ordering->n, &f);
    report(r, index, line_data(r->ordering, index), &f);
  }
}

static void first_part(void *argument, int64_t part) {
  const first_run *r = argument;
  int64_t n = r->ordering->n, size = (n + BLOCKS - 1) / BLOCKS, to = (part + 1) * size;
  read_first(r, r->data, part * size, to < n ? to : n, &r->parts[part]);
}

void td_order_first(const td_ordering *o, td_pool *pool, int64_t count, td_order_found *found, void *owner) {
  first parts[BLOCKS];
  first_run r = {o, count, found, owner, NULL, parts};
  if (o->n < LONG) {
    td_ranges_run(pool, o->lines, o->n, first_lines, &r);
    return;
  }
  for (int64_t index = 0; index < o->lines; index++) {
    first all = {0};
    r.data = line_data(o, index);
    td_pool_run(pool, BLOCKS, first_part, &r);
    if (td_pool_stopped(pool)) return;
    for (int part = 0; part < BLOCKS; part++)
      for (int64_t i = 0; i < parts[part].count; i++) admit(&all, count, parts[part].keys[i], parts[part].places[i]);
    report(&r, index, r.data, &all);
  }
}
