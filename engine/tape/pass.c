// One backward pass. The plan is made first: which records lie between targets and wanted ones, in which order they
// run, and which slot each cotangent goes to. Then rules run from the last record to the first, without recursion.
// The plan holds its own references, since a rule may run code that starts other passes, or resets the tape.
//  1. A cotangent is borrowed from the first rule that gives one; a second makes a sum that is ours, and later ones are
//     added to it in place, unless the sum itself is being recorded.
//  2. A cotangent is dropped as soon as its record has run, unless it is wanted.
//  3. Whatever a rule gives is summed to its input's shape and cast to its dtype here.
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/state.h"
#include "engine/tensor/probe.h"

enum { USEFUL = 1, WANTED = 2, REACHED = 4 }; // marks
enum { OURS = 1, KEPT = 2 }; // traits

// ---- the plan ----

int td_pass_open(td_pass *pass, td_context *context, const td_list *leaves, const td_list *records) {
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) return context->error.code;
  memset(pass, 0, sizeof *pass);
  pass->context = context;
  pass->leaves = leaves->at;
  pass->records = records->at;
  pass->leaf_count = leaves->count;
  pass->record_count = records->count;
  pass->stamp = ++tapes->stamp;
  td_scope_open(&pass->scope, context);
  size_t count = (size_t)(leaves->count + records->count);
  pass->slots = td_memory_new(count * (sizeof *pass->slots + sizeof *pass->marks));
  if (!pass->slots) return td_error_memory(context, "gradient", (int64_t)(count * (sizeof *pass->slots + 1)));
  pass->marks = (uint8_t *)(pass->slots + count);
  memset(pass->slots, 0xff, count * sizeof *pass->slots);
  memset(pass->marks, 0, count);
  for (int64_t i = 0; i < (int64_t)count; i++) {
    td_record *record = i < leaves->count ? leaves->at[i] : records->at[i - leaves->count];
    record->stamp = pass->stamp;
    record->index = i;
  }
  return TD_OK;
}

bool td_pass_find(const td_pass *pass, const td_tensor *t, int64_t *index) {
  const td_record *record = (const td_record *)t->origin;
  if (!record || record->stamp != pass->stamp) return false;
  *index = record->index;
  return true;
}

void td_pass_want(td_pass *pass, int64_t index) { pass->marks[index] |= WANTED | USEFUL; }

// The parent that input i's cotangent goes to: one of this pass, of a floating dtype; else NULL.
static td_record *way(const td_pass *pass, const td_record *record, int i) {
  td_record *parent = record->parents[i];
  if (!parent || parent->stamp != pass->stamp) return NULL;
  return td_dtype_is_float(parent->out_meta[record->parent_output[i]].dtype) ? parent : NULL;
}

// An op whose results are all integers passes nothing on; one of floating results without a rule is refused when it
// runs.
static bool passes(const td_record *record) {
  bool floating = record->op->vjp != NULL;
  for (int i = 0; i < record->out_count; i++) floating |= td_dtype_is_float(record->out_meta[i].dtype);
  return floating;
}

void td_pass_mark(td_pass *pass) {
  for (int64_t n = 0; n < pass->record_count; n++) {
    const td_record *record = pass->records[n];
    bool useful = false;
    for (int i = 0; i < record->in_count && !useful; i++) {
      const td_record *parent = way(pass, record, i);
      useful = parent && pass->marks[parent->index] & USEFUL;
    }
    if (useful && passes(record)) pass->marks[pass->leaf_count + n] |= USEFUL;
  }
}

static void reach(td_pass *pass, int64_t index) {
  if (!(pass->marks[index] & USEFUL) || pass->marks[index] & REACHED) return;
  pass->marks[index] |= REACHED;
  pass->slots[index] = pass->slot_count;
  bool leaf = index < pass->leaf_count;
  pass->slot_count += leaf ? pass->leaves[index]->out_count : pass->records[index - pass->leaf_count]->out_count;
}

void td_pass_target(td_pass *pass, int64_t index) { reach(pass, index); }

uint32_t td_pass_slot(const td_pass *pass, int64_t index, int output) {
  return pass->slots[index] == TD_NO_SLOT ? TD_NO_SLOT : pass->slots[index] + (uint32_t)output;
}

static int64_t follow(td_pass *pass) { // reaches all that targets need; returns the number of inputs on the way
  int64_t edges = 0;
  for (int64_t n = pass->record_count; n-- > 0;) {
    const td_record *record = pass->records[n];
    if (!(pass->marks[pass->leaf_count + n] & REACHED)) continue;
    pass->node_count++;
    edges += record->in_count;
    for (int i = 0; i < record->in_count; i++) {
      const td_record *parent = way(pass, record, i);
      if (parent) reach(pass, parent->index);
    }
  }
  return edges;
}

static void keep_wanted(td_pass *pass) {
  for (int64_t i = 0; i < pass->leaf_count + pass->record_count; i++) {
    if (!(pass->marks[i] & WANTED) || !(pass->marks[i] & REACHED)) continue;
    int outputs = i < pass->leaf_count ? pass->leaves[i]->out_count : pass->records[i - pass->leaf_count]->out_count;
    for (int k = 0; k < outputs; k++) pass->traits[pass->slots[i] + (uint32_t)k] = KEPT;
  }
}

static void lay_out(td_pass *pass) {
  td_node *node = pass->nodes;
  uint32_t edge = 0;
  for (int64_t n = pass->record_count; n-- > 0;) {
    td_record *record = pass->records[n];
    if (!(pass->marks[pass->leaf_count + n] & REACHED)) {
      if (pass->done) pass->done(record);
      continue;
    }
    td_origin_ref(&record->origin);
    *node++ = (td_node){record, pass->slots[pass->leaf_count + n], edge};
    for (int i = 0; i < record->in_count; i++) {
      const td_record *parent = way(pass, record, i);
      uint32_t first = parent ? pass->slots[parent->index] : TD_NO_SLOT;
      pass->edges[edge++] = first == TD_NO_SLOT ? TD_NO_SLOT : first + record->parent_output[i];
    }
  }
}

int td_pass_plan(td_pass *pass) {
  int64_t edges = follow(pass);
  if (edges >= TD_NO_SLOT || pass->record_count + pass->leaf_count >= TD_NO_SLOT / TD_OUTPUT_MAX)
    return td_error_set(pass->context, TD_ERROR_OVERFLOW, "gradient: %lld records are too many for one pass",
                        (long long)pass->record_count);
  size_t nodes = (size_t)pass->node_count * sizeof *pass->nodes, slots = pass->slot_count;
  size_t bytes = nodes + slots * sizeof *pass->cotangents + (size_t)edges * sizeof *pass->edges + slots;
  pass->block = td_memory_new(bytes);
  if (!pass->block) {
    pass->node_count = pass->slot_count = 0;
    return td_error_memory(pass->context, "gradient", (int64_t)bytes);
  }
  pass->nodes = pass->block;
  pass->cotangents = (td_tensor **)((char *)pass->block + nodes);
  pass->edges = (uint32_t *)(pass->cotangents + slots);
  pass->traits = (uint8_t *)(pass->edges + edges);
  memset(pass->cotangents, 0, slots * sizeof *pass->cotangents);
  memset(pass->traits, 0, slots);
  keep_wanted(pass);
  lay_out(pass);
  return TD_OK;
}

void td_pass_close(td_pass *pass) {
  for (uint32_t i = 0; i < pass->slot_count && pass->cotangents; i++) td_tensor_unref(pass->cotangents[i]);
  for (int64_t i = pass->ran; i < pass->node_count && pass->nodes; i++) {
    if (pass->done) pass->done(pass->nodes[i].record);
    td_origin_unref(&pass->nodes[i].record->origin);
  }
  td_scope_close(&pass->scope);
  td_memory_free(pass->block);
  td_memory_free(pass->slots);
}

// ---- sums of cotangents ----

enum { CHUNK = 1 << 15 };
typedef struct addition {
  const td_tensor *sum, *more;
} addition;

static void add_chunk(void *argument, int64_t chunk) {
  const addition *a = argument;
  int64_t first = chunk * CHUNK, last = first + CHUNK < a->sum->size ? first + CHUNK : a->sum->size;
  if (a->sum->dtype == TD_FLOAT32) {
    float *sum = (float *)a->sum->data;
    const float *more = (const float *)a->more->data;
    for (int64_t i = first; i < last; i++) sum[i] += more[i];
  } else {
    double *sum = (double *)a->sum->data;
    const double *more = (const double *)a->more->data;
    for (int64_t i = first; i < last; i++) sum[i] += more[i];
  }
}

static bool add_in_place(td_context *context, const td_tensor *sum, const td_tensor *more) {
  if (td_dtype_is_half(sum->dtype) || more->origin || !td_tensor_is_sole(sum) || context->inspector) return false;
  if ((sum->flags | more->flags) & TD_TENSOR_BATCHED) return false; // they hold no elements
  if (!td_tensor_is_contiguous(sum) || !td_tensor_is_contiguous(more)) return false;
  addition a = {sum, more};
  td_pool_run(context->pool, (sum->size + CHUNK - 1) / CHUNK, add_chunk, &a);
  return true;
}

static int accumulate(td_pass *pass, td_scope *scope, uint32_t slot, td_tensor *more) {
  td_tensor **at = &pass->cotangents[slot];
  if (!*at) {
    *at = td_tensor_ref(more);
    return TD_OK;
  }
  if (pass->traits[slot] & OURS && add_in_place(pass->context, *at, more)) return TD_OK;
  td_tensor *in[2] = {*at, more}, *sum;
  td_scope adder;
  td_scope_open(&adder, pass->context);
  sum = td_tensor_ref(td_add(&adder, in[0], in[1]));
  td_scope_close(&adder);
  if (!sum) {
    scope->failed = true;
    return pass->context->error.code;
  }
  td_tensor_unref(*at);
  *at = sum;
  pass->traits[slot] |= OURS;
  return TD_OK;
}

int td_pass_seed(td_pass *pass, uint32_t slot, td_tensor *cotangent) {
  return accumulate(pass, &pass->scope, slot, cotangent);
}

// ---- running ----

static int refuse_shape(td_rule *rule, int input, const td_tensor *given) {
  td_text want = {0}, have = {0};
  const td_meta *meta = &rule->in_meta[input];
  td_meta_print(&want, meta->dtype, meta->rank, meta->shape);
  td_meta_print(&have, given->dtype, given->rank, given->shape);
  td_error_set(rule->scope.context, TD_ERROR_INTERNAL, "input %d is %s, but the rule gave %s", input,
               want.data ? want.data : "?", have.data ? have.data : "?");
  td_text_clear(&want);
  td_text_clear(&have);
  return TD_ERROR_INTERNAL;
}

static bool fits(const td_meta *meta, const td_tensor *given) {
  int64_t shape[TD_RANK_MAX];
  int rank, axis;
  return td_shape_broadcast(meta->rank, meta->shape, given->rank, given->shape, &rank, shape, &axis) &&
         td_shape_equal(rank, shape, given->rank, given->shape);
}

static int deliver(td_pass *pass, td_rule *rule, int input, uint32_t slot) {
  const td_meta *meta = &rule->in_meta[input];
  td_tensor *given = rule->din[input];
  if (!td_shape_equal(meta->rank, meta->shape, given->rank, given->shape)) {
    if (!fits(meta, given)) return refuse_shape(rule, input, given);
    given = td_sum_to(&rule->scope, given, meta->rank, meta->shape);
  }
  if (given && given->dtype != meta->dtype) given = td_cast(&rule->scope, given, meta->dtype);
  if (!given) return pass->context->error.code;
  return accumulate(pass, &rule->scope, slot, given);
}

// A saved output as the rule sees it: with its origin again where something may record the rule.
td_tensor *td_rule_output(td_rule *rule, td_record *record, int output) {
  td_tensor *saved = td_record_saved(record, record->in_count + output);
  if (!saved || !rule->scope.context->recorder) return saved;
  td_tensor *t = td_scope_own(&rule->scope, td_tensor_alias(rule->scope.context, saved));
  if (!t) return NULL;
  t->origin = td_origin_ref(&record->origin);
  t->output = (uint8_t)output;
  return t;
}

static void fill(td_pass *pass, td_rule *rule, const td_node *node) {
  td_record *record = node->record;
  rule->op = record->op;
  rule->args = record->args;
  rule->in_count = record->in_count;
  rule->out_count = record->out_count;
  for (int i = 0; i < record->in_count; i++) {
    rule->in[i] = td_record_saved(record, i);
    rule->din[i] = NULL;
    rule->needs[i] = pass->edges[node->edge + (uint32_t)i] != TD_NO_SLOT;
    if (rule->needs[i]) rule->in_meta[i] = record->parents[i]->out_meta[record->parent_output[i]];
  }
  for (int i = 0; i < record->out_count; i++) {
    rule->out[i] = td_rule_output(rule, record, i);
    rule->out_meta[i] = record->out_meta[i];
    rule->cotangent[i] = pass->cotangents[node->slot + (uint32_t)i];
  }
}

static int refuse_op(td_context *context, const char *who, const td_record *record) {
  char line[80];
  td_place_describe(context, record->place, line, sizeof line);
  const char *why = record->op->no_gradient;
  td_record_name name = td_record_name_of(record);
  td_error_set(context, TD_ERROR_GRADIENT, "%s: %s at %s has no gradient%s%s", who, name.text, line, why ? ": " : "",
               why ? why : "");
  td_error_hint(context, "keep %s off the path from source to target, or wrap its input in stop_gradient(x)",
                name.text);
  return TD_ERROR_GRADIENT;
}

static int refuse_spent(td_context *context, const char *who, const td_record *record) {
  char line[80];
  td_place_describe(context, record->place, line, sizeof line);
  td_error_set(context, TD_ERROR_STATE, "%s: what %s at %s kept for backward was given up already", who,
               td_record_name_of(record).text, line);
  td_error_hint(context, "use GradientTape(persistent=True), or backward(retain_graph=True) the first time");
  return TD_ERROR_STATE;
}

int td_record_blame(td_context *context, const char *who, const td_record *record) {
  char line[80], whose[200];
  if (context->error.code == TD_ERROR_CALLBACK) return context->error.code;
  td_place_describe(context, record->place, line, sizeof line);
  snprintf(whose, sizeof whose, "%s of %s at %s", who, td_record_name_of(record).text, line);
  return td_error_within(context, whose);
}

int td_record_refuse(td_context *context, const char *who, const td_record *record) {
  if (!record->op->vjp) return refuse_op(context, who, record);
  return record->keepers ? TD_OK : refuse_spent(context, who, record);
}

int td_tape_observe(td_context *context, const td_observer *observer) {
  td_tapes *tapes = td_tapes_of(context);
  if (!tapes) return context->error.code;
  tapes->observer = observer;
  return TD_OK;
}

static int observe(td_context *context, td_rule *rule, const td_record *record) {
  td_tapes *tapes = context->tapes;
  const td_observer *observer = tapes->observer;
  tapes->observer = NULL;
  int code = observer->step(observer->owner, context,
                            &(td_pass_step){record, rule->cotangent, rule->din, rule->needs, &rule->scope});
  tapes->observer = observer;
  return code;
}

// For those who look at tapes, now or later: of so many elements that it costs little beside the rule.
static void measure(td_record *record, const td_tensor *cotangent, bool looks) {
  enum { LOOKED_AT = 1024 };
  td_probe sample;
  bool exact = true;
  if (!cotangent || cotangent->flags & TD_TENSOR_BATCHED) return;
  if (looks) td_probe_take(cotangent, LOOKED_AT, &sample);
  float norm = looks ? (float)td_probe_norm(cotangent, &sample) : td_probe_glance(cotangent, &exact);
  record->cotangent_norm = isfinite(norm) ? norm : INFINITY;
  record->glanced = !exact;
}

static void measure_leaves(const td_pass *pass) {
  for (int64_t i = 0; i < pass->leaf_count; i++)
    if (pass->slots[i] != TD_NO_SLOT) measure(pass->leaves[i], pass->cotangents[pass->slots[i]], pass->looks);
}

// Passes that come one after the other are measured well now and then: those that somebody types are, and training does
// not feel it.
static bool looks_well(const td_context *context) {
  enum { APART_MILLISECONDS = 250 };
  td_tapes *tapes = context->tapes;
  struct timespec now;
  if (context->timed || tapes->observer) return true;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  int64_t at = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
  if (at - tapes->looked_at < APART_MILLISECONDS) return false;
  tapes->looked_at = at;
  return true;
}

static int run_rule(td_pass *pass, td_rule *rule, const td_node *node) {
  td_context *context = pass->context;
  td_tapes *tapes = context->tapes;
  td_record *record = node->record;
  const td_record *outer = tapes->running;
  bool pushing = tapes->pushing;
  int code = td_record_refuse(context, "gradient", record);
  if (code) return code;
  context->error.code = TD_OK;
  td_scope_open(&rule->scope, context);
  fill(pass, rule, node);
  tapes->running = record;
  tapes->pushing = false;
  measure(record, rule->cotangent[0], pass->looks);
  code = rule->scope.failed ? context->error.code : record->op->vjp(rule);
  if (!code && rule->scope.failed) code = context->error.code;
  if (!code && rule->scope.failed) code = td_error_set(context, TD_ERROR_INTERNAL, "the rule failed without an error");
  if (!code && tapes->observer) code = observe(context, rule, record);
  for (int i = 0; i < record->in_count && !code; i++)
    if (rule->needs[i] && rule->din[i]) code = deliver(pass, rule, i, pass->edges[node->edge + (uint32_t)i]);
  td_scope_close(&rule->scope);
  tapes->running = outer;
  tapes->pushing = pushing;
  return code ? td_record_blame(context, "gradient", record) : TD_OK;
}

static bool has_cotangent(const td_pass *pass, const td_node *node) {
  for (int i = 0; i < node->record->out_count; i++)
    if (pass->cotangents[node->slot + (uint32_t)i]) return true;
  return false;
}

static void drop_cotangents(td_pass *pass, const td_node *node) {
  for (uint32_t i = node->slot; i < node->slot + node->record->out_count; i++) {
    if (pass->traits[i] & KEPT) continue;
    td_tensor_unref(pass->cotangents[i]);
    pass->cotangents[i] = NULL;
  }
}

// A record that is wanted, and nothing before it, needs no rule.
static bool leads_on(const td_pass *pass, const td_node *node) {
  for (int i = 0; i < node->record->in_count; i++)
    if (pass->edges[node->edge + (uint32_t)i] != TD_NO_SLOT) return true;
  return false;
}

int td_pass_run(td_pass *pass) {
  td_context *context = pass->context;
  td_place place = context->place;
  td_rule rule;
  td_region *region = NULL; // that is filled now
  int code = TD_OK;
  pass->looks = looks_well(context);
  while (pass->ran < pass->node_count && !code) {
    const td_node *node = &pass->nodes[pass->ran];
    context->place = node->record->place;
    if (atomic_load_explicit(&context->interrupt, memory_order_relaxed))
      code = td_error_set(context, TD_ERROR_INTERRUPT, "interrupted in the gradient");
    else if (has_cotangent(pass, node) && leads_on(pass, node)) {
      code = td_region_move(context, node->record->region, &region);
      if (!code) code = run_rule(pass, &rule, node);
    }
    if (code) break;
    drop_cotangents(pass, node);
    pass->ran++;
    if (pass->done) pass->done(node->record);
    td_origin_unref(&node->record->origin);
  }
  if (!code) measure_leaves(pass);
  td_region_move(context, NULL, &region);
  context->place = place;
  return code;
}
