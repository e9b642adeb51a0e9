// Workers: threads that pull elements from an iterator ahead of the one that consumes them, and may call a function of
// each. Prefetching and parallel maps are both a feed: a ring of results in the order of the elements.
//  1. Everything of a feed is guarded by the turn (turn.h). One worker at a time pulls; what it pulled takes the next
//     place in the ring; results may come in any order and are handed out in the ring's.
//  2. A function is called apart (td_apart): on random numbers that depend on the feed's key and the element's number
//     alone, and unseen by tapes. So threads change nothing but the time.
//  3. An exception takes the place of its element, with the call path of the worker, and is raised where the element is
//     asked for.
//  4. Workers hold the feed, not the value that stands for it: when that goes they are interrupted, and end by
//     themselves.
#include <signal.h>
#include <string.h>

#include "engine/base/random.h"
#include "repl/language/tensors.h"
#include "repl/language/turn.h"

enum { THREADS_MOST = 64, DEPTH_MOST = 1 << 20 };

typedef struct place { // of one element
  td_value result;     // NIL: not ready
  bool raised;         // result is an exception
} place;

typedef struct feed {
  td_value source, function; // an iterator; NIL: elements stay as they are
  uint64_t key;
  int64_t first;             // number of the element that is pulled first
  int64_t depth;
  place *ring;               // depth places: n stands in n % depth
  int64_t head, tail;        // numbers of the places handed out, taken
  int holders;               // the value, and workers
  int busy;                  // elements that are being computed
  bool pulling, paused, stopped, ended;
  pthread_cond_t changed;
} feed;

typedef struct td_worker {
  td_evaluator evaluator;
  feed *feed;
  pthread_t thread;
  struct td_worker *next;
} td_worker;

typedef struct feed_value {
  td_container container;
  td_interpreter *interpreter;
  feed *feed;
} feed_value;

extern const td_type td_feed_type;

// ---- calling apart ----

static uint64_t mix(uint64_t key, uint64_t number) {
  uint32_t bits[4];
  td_random_block(key, number, UINT64_C(0x656c656d656e74), bits);
  return (uint64_t)bits[1] << 32 | bits[0];
}

// A tuple's parts are the arguments, as in for x, y in dataset.
static td_value call_apart(td_interpreter *I, td_value function, td_value element, uint64_t seed) {
  td_context *context = I->context;
  td_apart outer = td_apart_enter(context, seed);
  td_value result;
  if (td_is(element, &td_tuple_type))
    result = td_call_values(I, function, (int)td_as_tuple(element)->count, td_as_tuple(element)->items);
  else result = td_call_values(I, function, 1, &element);
  td_apart_leave(context, &outer);
  return result;
}

static td_value next_apart(td_interpreter *I, td_value iterator, uint64_t seed) {
  td_context *context = I->context;
  td_apart outer = td_apart_enter(context, seed);
  td_value result = td_next(I, iterator);
  td_apart_leave(context, &outer);
  return result;
}

// ---- the ring ----

static place *place_at(feed *f, int64_t n) { return &f->ring[n % f->depth]; }

static void told(feed *f) { pthread_cond_broadcast(&f->changed); }

static void put(feed *f, int64_t n, td_value result, bool raised) { // takes over result
  if (f->stopped) td_unref(result);
  else *place_at(f, n) = (place){result, raised};
  told(f);
}

static void feed_empty(feed *f) {
  for (; f->head < f->tail; f->head++) {
    place *at = place_at(f, f->head);
    td_value result = at->result;
    at->result = TD_NIL;
    td_unref(result);
  }
}

static void feed_let_go(feed *f) {
  if (--f->holders) return;
  pthread_cond_destroy(&f->changed);
  td_memory_free(f->ring);
  td_memory_free(f);
}

// ---- a worker ----

static bool may_pull(const feed *f) { return !f->paused && !f->pulling && f->tail - f->head < f->depth; }

static void compute(td_interpreter *I, feed *f, int64_t n, td_value element) { // takes over element
  td_value function = td_ref(f->function), result = element;
  if (!td_is_nil(function)) {
    f->busy++;
    result = call_apart(I, function, element, mix(f->key, (uint64_t)(f->first + n)));
    f->busy--;
    td_unref(element);
  }
  td_unref(function);
  bool raised = td_is_nil(result);
  put(f, n, raised ? td_take_raised(I) : result, raised);
}

// false: there is nothing more to do.
static bool work_once(td_interpreter *I, feed *f) {
  while (!f->stopped && !f->ended && !may_pull(f)) td_turn_await(I, &f->changed);
  if (f->stopped || f->ended) return false;
  td_value source = td_ref(f->source);
  f->pulling = true;
  td_value element = td_next(I, source);
  f->pulling = false;
  td_unref(source);
  if (!td_is_nil(element)) return compute(I, f, f->tail++, element), true;
  f->ended = td_is_nil(I->raised);
  if (f->ended) return told(f), false;
  put(f, f->tail++, td_take_raised(I), true); // the source may have more behind it
  return true;
}

static void leave_workers(td_turn *turn, td_worker *w) { // to those that ended
  turn->others--;
  td_worker **link = &turn->workers;
  while (*link != w) link = &(*link)->next;
  *link = w->next;
  w->next = turn->ended;
  turn->ended = w;
}

static void *work(void *argument) {
  td_worker *w = argument;
  td_interpreter *I = w->evaluator.interpreter;
  td_turn_take(&w->evaluator);
  td_stack_limit_find(I);
  while (work_once(I, w->feed)) continue;
  td_clear_raised(I);
  feed_let_go(w->feed);
  td_tapes_free(I->context);
  leave_workers(I->turn, w);
  td_turn_give(&w->evaluator);
  return NULL;
}

static void worker_free(td_worker *w) {
  td_evaluator_close(&w->evaluator);
  td_memory_free(w);
}

static void join_ended(td_turn *turn) {
  for (td_worker *w; (w = turn->ended);) {
    turn->ended = w->next;
    pthread_join(w->thread, NULL);
    worker_free(w);
  }
}

static td_worker *worker_new(td_interpreter *I, feed *f) {
  td_worker *w = td_memory_new_zero(sizeof *w);
  if (!w || !td_evaluator_open(I, &w->evaluator)) {
    td_memory_free(w);
    return td_raise_memory(I), NULL;
  }
  w->evaluator.context->seed = I->context->seed;
  w->evaluator.patient = true;
  w->feed = f;
  return w;
}

static bool worker_start(td_interpreter *I, feed *f) { // false: exception
  join_ended(I->turn);
  td_worker *w = worker_new(I, f);
  if (!w) return false;
  sigset_t all, old; // signals are for the main thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  int code = pthread_create(&w->thread, NULL, work, w);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (code) {
    worker_free(w);
    td_raise(I, TD_CLASS_OS_ERROR, "the system gives no thread: %s", strerror(code));
    return false;
  }
  td_turn_share(I->turn);
  w->next = I->turn->workers;
  I->turn->workers = w;
  f->holders++;
  return true;
}

// Those of feed, or all (NULL), are told to end: at their next statement, op or wait.
static void interrupt_workers(td_turn *turn, const feed *which) {
  for (td_worker *w = turn->workers; w; w = w->next) {
    if (which && w->feed != which) continue;
    w->feed->stopped = true;
    atomic_store(&w->evaluator.context->interrupt, 1);
    told(w->feed);
  }
}

void td_workers_end(td_interpreter *I) {
  td_turn *turn = I->turn;
  if (!turn) return;
  while (turn->workers) {
    interrupt_workers(turn, NULL);
    td_turn_await(I, &turn->taken); // their feeds go with them
  }
  join_ended(turn);
  td_turn_close(I);
}

// ---- the feed as a value: an iterator ----

static feed *feed_new(td_interpreter *I, td_value source, int64_t depth) {
  feed *f = td_memory_new_zero(sizeof *f);
  if (f && !(f->ring = td_memory_new_zero((size_t)depth * sizeof *f->ring))) {
    td_memory_free(f);
    f = NULL;
  }
  if (!f) return td_raise_memory(I), NULL;
  f->source = td_ref(source);
  f->depth = depth;
  f->holders = 1;
  td_turn_make_condition(&f->changed);
  return f;
}

static void feed_clear(td_object *object) {
  feed_value *v = (feed_value *)object;
  feed *f = v->feed;
  if (!f) return;
  if (!f->stopped && v->interpreter->turn) interrupt_workers(v->interpreter->turn, f);
  f->stopped = true;
  td_value source = f->source, function = f->function;
  f->source = f->function = TD_NIL;
  feed_empty(f);
  td_unref(source);
  td_unref(function);
}

static void feed_release(td_object *object) {
  feed_value *v = (feed_value *)object;
  feed_clear(object);
  if (v->feed) feed_let_go(v->feed);
  v->feed = NULL;
}

static void feed_visit(td_object *object, td_visitor *visit, void *argument) {
  feed *f = ((feed_value *)object)->feed;
  if (!f) return;
  if (f->source.tag == TD_TAG_OBJECT) visit(f->source.o, argument);
  if (f->function.tag == TD_TAG_OBJECT) visit(f->function.o, argument);
  for (int64_t n = f->head; n < f->tail; n++)
    if (place_at(f, n)->result.tag == TD_TAG_OBJECT) visit(place_at(f, n)->result.o, argument);
}

static td_value feed_iterate(td_interpreter *I, td_value v) { return (void)I, td_ref(v); }

static td_value feed_next(td_interpreter *I, td_value v) {
  td_value held = td_ref(v);
  feed *f = ((feed_value *)v.o)->feed;
  bool interrupted = false;
  while (!interrupted && (f->head < f->tail ? td_is_nil(place_at(f, f->head)->result) : !f->ended || f->pulling)) {
    td_turn_await(I, &f->changed);
    interrupted = td_interrupted(I);
  }
  td_value result = TD_NIL;
  if (!interrupted && f->head < f->tail) {
    place taken = *place_at(f, f->head);
    place_at(f, f->head++)->result = TD_NIL;
    told(f);
    if (taken.raised) td_put_raised(I, taken.result);
    else result = taken.result;
  }
  td_unref(held);
  return result;
}

static td_value feed_pause(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  feed *f = ((feed_value *)self.o)->feed;
  f->paused = true;
  while (f->busy || f->pulling) {
    td_turn_await(I, &f->changed);
    if (td_interrupted(I)) return TD_NIL;
  }
  td_list *results = td_list_new(I, f->tail - f->head);
  for (int64_t n = f->head; results && n < f->tail; n++) {
    place *at = place_at(f, n);
    if (at->raised) break; // it comes again when its element is computed again
    if (td_list_append(I, results, at->result)) continue;
    td_unref(td_from(results));
    return TD_NIL;
  }
  return td_from(results);
}

static td_value feed_resume(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  feed *f = ((feed_value *)self.o)->feed;
  f->paused = false;
  told(f);
  return TD_NONE;
}

static const td_method feed_methods[] = {
    {"pause", "()", feed_pause, "Waits until no worker is at work; a list of the results that are ready."},
    {"resume", "()", feed_resume, "Ends the pause."},
    {NULL, NULL, NULL, NULL}};

const td_type td_feed_type = {
    .name = "feed",
    .size = sizeof(feed_value),
    .release = feed_release,
    .visit = feed_visit,
    .clear = feed_clear,
    .iterate = feed_iterate,
    .next = feed_next,
    .methods = feed_methods,
    .doc = "An iterator whose elements are computed ahead, by threads."};

// ---- builtins ----

static bool int_within(td_interpreter *I, td_value v, const char *what, int64_t least, int64_t most, int64_t *n) {
  if (!td_index_value(I, v, n)) return false;
  if (*n >= least && *n <= most) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s must be between %lld and %lld, not %lld", what, (long long)least,
           (long long)most, (long long)*n);
  return false;
}

static td_value builtin_feed(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t depth, threads, key, first;
  if (!int_within(I, arguments[1], "feed: depth", 1, DEPTH_MOST, &depth) ||
      !int_within(I, arguments[2], "feed: threads", 1, THREADS_MOST, &threads) ||
      !td_index_value(I, arguments[4], &key) || !td_index_value(I, arguments[5], &first))
    return TD_NIL;
  if (!td_is(arguments[6], &td_list_type) && !td_is_none(arguments[6]))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "feed: ready must be a list");
  td_list *ready = td_is_none(arguments[6]) ? NULL : td_as_list(arguments[6]);
  int64_t count = ready ? ready->count : 0;
  if (!td_turn_open(I)) return TD_NIL;
  feed *f = feed_new(I, arguments[0], count > depth ? count : depth);
  feed_value *v = f ? td_object_new(I, &td_feed_type, sizeof *v) : NULL;
  if (!v) {
    if (f) td_unref(f->source), feed_let_go(f);
    return TD_NIL;
  }
  v->interpreter = I;
  v->feed = f;
  f->function = td_is_none(arguments[3]) ? TD_NIL : td_ref(arguments[3]);
  f->key = (uint64_t)key;
  f->first = first - count;
  for (; f->tail < count; f->tail++) *place_at(f, f->tail) = (place){.result = td_ref(ready->items[f->tail])};
  bool ok = true;
  for (int64_t i = 0; ok && i < threads; i++) ok = worker_start(I, f);
  if (ok) return td_from(v);
  td_unref(td_from(v));
  return TD_NIL;
}

// function, element, key, number
static td_value builtin_call_apart(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t key, number;
  if (!td_index_value(I, arguments[2], &key) || !td_index_value(I, arguments[3], &number)) return TD_NIL;
  return call_apart(I, arguments[0], arguments[1], mix((uint64_t)key, (uint64_t)number));
}

static td_value builtin_next_apart(td_interpreter *I, td_value self, td_value *arguments) { // iterator, key, number
  (void)self;
  int64_t key, number;
  if (!td_index_value(I, arguments[1], &key) || !td_index_value(I, arguments[2], &number)) return TD_NIL;
  td_value item = next_apart(I, arguments[0], mix((uint64_t)key, (uint64_t)number));
  if (!td_is_nil(item) || !td_is_nil(I->raised)) return item;
  return td_raise(I, TD_CLASS_STOP_ITERATION, "%s", "");
}

static td_value builtin_stream(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self, (void)arguments;
  return td_int((int64_t)td_context_stream(I->context));
}

static td_value builtin_mix(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t key, number;
  if (!td_index_value(I, arguments[0], &key) || !td_index_value(I, arguments[1], &number)) return TD_NIL;
  return td_int((int64_t)mix((uint64_t)key, (uint64_t)number));
}

const td_method td_worker_builtins[] = {
    {"_feed", "(iterator, depth, threads=1, function=None, key=0, first=0, ready=None)", builtin_feed,
     "Elements of iterator, computed ahead by threads; function: applied to each."},
    {"_call_apart", "(function, element, key, number)", builtin_call_apart,
     "function(element), or function(*element), on random numbers of its own."},
    {"_next_apart", "(iterator, key, number)", builtin_next_apart, "next(iterator), on random numbers of its own."},
    {"_stream", "()", builtin_stream, "Seed of a new stream of random numbers."},
    {"_mix", "(key, number)", builtin_mix, "An int that depends on both and looks random."},
    {NULL, NULL, NULL, NULL}};
