// progress(iterable, label): hands out the items of any iterable and tells the faces how far it is, at most 20 times
// a second. The clock is read only where an event could be due, so a fast loop pays a few nanoseconds a step.
#include <string.h>
#include <time.h>
#include "repl/language/boundary.h"
#include "repl/language/core.h"
#include "repl/language/tensors.h"

typedef struct progress {
  td_container container;
  td_interpreter *interpreter;
  td_value iterable, iterator, label, style;
  td_text postfix;
  uint64_t id;
  int level; // nesting depth among open bars
  int64_t done, total, seen; // total -1: unknown; seen: samples handed out
  bool sampled;              // some items had more than one
  int64_t check_at, stride; // next count at which the clock is read, and how far apart these are
  double started, emitted; // seconds
  bool open, handed; // handed: an item is out and not counted yet
} progress;

extern const td_type td_progress_type;
static uint64_t next_id = 1;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Seconds that don't go by while the run stands at a boundary.
static double running(const td_interpreter *I) { return now() - I->core->detoured; }

static const char *label_of(const progress *p) {
  return td_is(p->label, &td_str_type) ? td_as_str(p->label)->data : "";
}

static void emit(progress *p, double at, bool final) {
  td_interpreter *I = p->interpreter;
  p->emitted = at;
  if (!I->sink) return;
  td_output_flush(I);
  const char *label = label_of(p);
  td_event event = {.kind = TD_EVENT_PROGRESS,
                    .cell = I->cell,
                    .id = p->id,
                    .level = p->level,
                    .text = label,
                    .length = strlen(label),
                    .detail = p->postfix.data ? p->postfix.data : "",
                    .name = td_is(p->style, &td_str_type) ? td_as_str(p->style)->data : "",
                    .done = p->done,
                    .total = p->total,
                    .seconds = at - p->started,
                    .samples = p->sampled ? p->seen : 0,
                    .final = final};
  I->sink->emit(I->sink->owner, &event);
}

static void close_bar(progress *p) {
  if (!p->open) return;
  p->open = false;
  p->interpreter->progress_level--;
  emit(p, running(p->interpreter), true);
}

// Reads the clock every few steps; the stride follows the speed so that events come about 20 times a second.
static void advance(progress *p, int64_t steps) {
  p->done += steps;
  if (p->done < p->check_at) return;
  double at = running(p->interpreter), since = at - p->emitted;
  if (since >= 0.05) {
    if (p->stride > 1 && since > 0.1) p->stride /= 2;
    emit(p, at, false);
  } else if (p->stride < 1 << 20) p->stride *= 2;
  p->check_at = p->done + p->stride;
}

static void start(progress *p) {
  p->done = p->seen = 0;
  p->sampled = false;
  p->check_at = p->stride = 1;
  p->started = running(p->interpreter);
  p->open = true;
  p->handed = false;
  p->level = p->interpreter->progress_level++;
  emit(p, p->started, false);
}

// Samples in an item: the first axis of a tensor, or of the first tensor in a tuple, list or dict; else 1.
static int64_t samples_of(td_value item) {
  int64_t position = 0;
  td_value key;
  if (td_is(item, &td_tuple_type) && td_as_tuple(item)->count) item = td_as_tuple(item)->items[0];
  else if (td_is(item, &td_list_type) && td_as_list(item)->count) item = td_as_list(item)->items[0];
  else if (td_is(item, &td_dict_type)) td_dict_next(td_as_dict(item), &position, &key, &item);
  const td_tensor *t = td_tensor_of(item);
  return t && t->rank ? t->shape[0] : 1;
}

static void count_samples(progress *p, td_value item) {
  int64_t samples = samples_of(item);
  p->seen += samples;
  p->sampled = p->sampled || samples > 1;
}

static td_value progress_next(td_interpreter *I, td_value v) {
  progress *p = (progress *)v.o;
  if (td_is_nil(p->iterator)) return TD_NIL;
  if (p->handed) advance(p, 1);
  p->handed = false;
  if (!td_boundary_reach(I, label_of(p), p->done, p->total)) return TD_NIL;
  td_value item = td_next(I, p->iterator);
  if (td_is_nil(item)) {
    close_bar(p);
    td_unref(p->iterator);
    p->iterator = TD_NIL;
    return TD_NIL;
  }
  p->handed = true;
  count_samples(p, item);
  return item;
}

static td_value progress_iterate(td_interpreter *I, td_value v) {
  progress *p = (progress *)v.o;
  td_value iterator = td_iterate(I, p->iterable);
  if (td_is_nil(iterator)) return TD_NIL;
  td_unref(p->iterator);
  p->iterator = iterator;
  close_bar(p);
  start(p);
  return td_ref(v);
}

// ---- methods ----

static td_value progress_set_postfix(td_interpreter *I, td_value self, td_value *arguments) {
  progress *p = (progress *)self.o;
  td_text_clear(&p->postfix);
  td_dict *values = td_as_dict(arguments[0]);
  int64_t position = 0;
  td_value key, value;
  while (td_dict_next(values, &position, &key, &value)) {
    const td_tensor *t = td_tensor_of(value);
    td_value shown = t && t->size == 1 ? td_tensor_element(I, t, 0) : td_ref(value);
    if (td_is_nil(shown)) return TD_NIL;
    td_text_print(&p->postfix, "%s%s=", p->postfix.length ? ", " : "", td_as_str(key)->data);
    bool ok = shown.tag == TD_TAG_DOUBLE ? td_format(I, shown, ".4g", &p->postfix) : td_print(I, shown, &p->postfix);
    td_unref(shown);
    if (!ok) return TD_NIL;
  }
  return TD_NONE;
}

static td_value progress_update(td_interpreter *I, td_value self, td_value *arguments) {
  progress *p = (progress *)self.o;
  bool ok = true;
  int64_t steps = td_to_int(I, arguments[0], &ok);
  if (!ok) return TD_NIL;
  if (!p->open) start(p);
  if (td_is_none(arguments[1])) p->seen += steps;
  else count_samples(p, arguments[1]);
  advance(p, steps);
  return TD_NONE;
}

static td_value progress_close(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  close_bar((progress *)self.o);
  return TD_NONE;
}

static td_value progress_enter(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  if (!((progress *)self.o)->open) start((progress *)self.o);
  return td_ref(self);
}

static td_value progress_exit(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  close_bar((progress *)self.o);
  return td_bool(false);
}

static td_value progress_attribute(td_interpreter *I, td_value v, td_str *name) {
  (void)I;
  progress *p = (progress *)v.o;
  if (strcmp(name->data, "seen") == 0) return td_int(p->seen);
  if (strcmp(name->data, "done") == 0) return td_int(p->done);
  if (strcmp(name->data, "total") == 0) return p->total < 0 ? TD_NONE : td_int(p->total);
  return TD_NIL;
}

static int64_t progress_length(td_interpreter *I, td_value v) { return td_length(I, ((progress *)v.o)->iterable); }

static void progress_release(td_object *object) {
  progress *p = (progress *)object;
  close_bar(p);
  td_unref(p->iterable);
  td_unref(p->iterator);
  td_unref(p->label);
  td_unref(p->style);
  td_text_clear(&p->postfix);
}

static void progress_visit(td_object *object, td_visitor *visitor, void *argument) {
  progress *p = (progress *)object;
  if (p->iterable.tag == TD_TAG_OBJECT) visitor(p->iterable.o, argument);
  if (p->iterator.tag == TD_TAG_OBJECT) visitor(p->iterator.o, argument);
}

static void progress_clear(td_object *object) {
  progress *p = (progress *)object;
  td_value iterable = p->iterable, iterator = p->iterator;
  p->iterable = p->iterator = TD_NIL;
  td_unref(iterable);
  td_unref(iterator);
}

static const td_method progress_methods[] = {
    {"set_postfix", "(**values)", progress_set_postfix, "Shows name=value pairs behind the bar."},
    {"update", "(steps=1, batch=None)", progress_update,
     "Moves a bar that is driven by hand; the samples of a batch make it tell samples a second too."},
    {"close", "()", progress_close, "Closes the bar."},
    {"__enter__", "()", progress_enter, "Opens a bar that is driven by hand."},
    {"__exit__", "(*exception)", progress_exit, "Closes the bar."},
    {NULL, NULL, NULL, NULL}};

const td_type td_progress_type = {
    .name = "progress",
    .size = sizeof(progress),
    .release = progress_release,
    .visit = progress_visit,
    .clear = progress_clear,
    .attribute = progress_attribute,
    .length = progress_length,
    .iterate = progress_iterate,
    .next = progress_next,
    .methods = progress_methods,
    .doc =
        "A progress bar over an iterable: label, fraction, rate and time left. bar.seen counts the samples handed out.",
};

static int64_t total_of(td_interpreter *I, td_value iterable, td_value total) {
  bool ok = true;
  if (!td_is_nil(total) && !td_is_none(total)) return td_to_int(I, total, &ok);
  if (iterable.tag != TD_TAG_OBJECT || (!iterable.o->type->length && !td_is(iterable, &td_instance_type))) return -1;
  if (td_is(iterable, &td_instance_type)) {
    td_value has = td_class_lookup(((td_instance *)iterable.o)->class, I->names->len, NULL);
    if (td_is_nil(has)) return -1;
  }
  int64_t length = td_length(I, iterable);
  if (length < 0 && td_raised_is(I, TD_CLASS_TYPE_ERROR)) td_clear_raised(I); // a dataset that doesn't know it
  return length;
}

static td_value builtin_progress(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t total = total_of(I, arguments[0], arguments[2]);
  if (!td_is_nil(I->raised)) return TD_NIL;
  progress *p = td_object_new(I, &td_progress_type, sizeof *p);
  if (!p) return TD_NIL;
  p->interpreter = I;
  p->iterable = td_ref(arguments[0]);
  p->label = td_ref(arguments[1]);
  p->style = td_ref(arguments[3]);
  p->total = total;
  p->id = next_id++;
  return td_from(p);
}

const td_method td_progress_builtins[] = {{"progress", "(iterable=None, label='', total=None, style='bar')",
                                           builtin_progress,
                                           "A progress bar over an iterable; style=\"dots\" prints a dot every few "
                                           "steps.\n>>> for i in progress(range(3), \"epoch 1\"): pass"},
                                          {NULL, NULL, NULL, NULL}};

// ---- work of the engine ----

static void busy_emit(td_busy *busy, int64_t done, int64_t total, bool final) {
  td_interpreter *I = busy->interpreter;
  if (!I->sink) return;
  busy->emitted = now();
  td_event event = {.kind = TD_EVENT_PROGRESS,
                    .cell = I->cell,
                    .id = busy->id,
                    .level = I->progress_level,
                    .text = busy->label,
                    .length = strlen(busy->label),
                    .detail = "",
                    .name = "",
                    .done = done,
                    .total = total,
                    .seconds = busy->emitted - busy->started,
                    .final = final};
  I->sink->emit(I->sink->owner, &event);
}

td_busy td_busy_start(td_interpreter *I, const char *label) {
  return (td_busy){.interpreter = I, .label = label, .id = next_id++, .started = now()};
}

void td_busy_tell(void *owner, int64_t done, int64_t total) {
  td_busy *busy = owner;
  busy->done = done;
  busy->total = total;
  double at = now();
  if (at - busy->started > 1 && at - busy->emitted > 0.05) busy_emit(busy, done, total, false);
}

void td_busy_end(td_busy *busy) {
  if (busy->emitted > 0) busy_emit(busy, busy->done, busy->total, true);
}
