// Variables: named cells. Assigning swaps the tensor, so whoever read the old value keeps it unchanged.
#include "engine/tensor/variable.h"

#include <math.h>
#include <pthread.h>

#include "engine/base/memory.h"
#include "engine/tensor/living.h"

static _Atomic int64_t alive;
static _Atomic uint64_t last_id;

// ---- the living Variables by id ----

enum { BUCKETS = 4096 };
static struct {
  pthread_mutex_t lock;
  td_variable *buckets[BUCKETS];
} living = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void enlist(td_variable *v) {
  pthread_mutex_lock(&living.lock);
  v->next = living.buckets[v->id % BUCKETS];
  living.buckets[v->id % BUCKETS] = v;
  pthread_mutex_unlock(&living.lock);
}

static void delist(td_variable *v) {
  pthread_mutex_lock(&living.lock);
  td_variable **link = &living.buckets[v->id % BUCKETS];
  while (*link != v) link = &(*link)->next;
  *link = v->next;
  pthread_mutex_unlock(&living.lock);
}

td_variable *td_variable_find(uint64_t id) {
  pthread_mutex_lock(&living.lock);
  td_variable *v = living.buckets[id % BUCKETS];
  while (v && v->id != id) v = v->next;
  pthread_mutex_unlock(&living.lock);
  return v;
}

void td_variable_each(void (*visit)(void *owner, td_variable *v), void *owner) {
  pthread_mutex_lock(&living.lock);
  for (int i = 0; i < BUCKETS; i++)
    for (td_variable *v = living.buckets[i]; v; v = v->next) visit(owner, v);
  pthread_mutex_unlock(&living.lock);
}

// ---- values ----

// The tensor itself when it has no origin, else a view of it without one. New reference.
static td_tensor *bare(td_context *context, td_tensor *value) {
  return value->origin ? td_tensor_alias(context, value) : td_tensor_ref(value);
}

td_variable *td_variable_new(td_context *context, td_tensor *value, const char *name, bool trainable) {
  td_variable *v = td_memory_new_zero(sizeof *v);
  char *copy = v ? td_memory_text(name ? name : "") : NULL;
  if (!copy) {
    td_memory_free(v);
    td_error_memory(context, "Variable", (int64_t)sizeof *v);
    return NULL;
  }
  td_tensor *stored = bare(context, value);
  if (!stored) {
    td_memory_free(copy);
    td_memory_free(v);
    return NULL;
  }
  atomic_init(&v->refs, 1);
  v->trainable = trainable;
  v->name = copy;
  v->id = atomic_fetch_add(&last_id, 1) + 1;
  v->value = stored;
  v->assigned = context->place;
  v->gradient_norm = v->gradient_zeros = v->update_ratio = NAN;
  enlist(v);
  atomic_fetch_add(&alive, 1);
  return v;
}

void td_variable_unref(td_variable *v) {
  if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1) return;
  delist(v);
  td_tensor_unref(v->value);
  td_tensor_unref(v->grad);
  td_memory_free(v->name);
  td_memory_free(v);
  atomic_fetch_sub(&alive, 1);
}

static int refuse(td_context *context, int code, const td_variable *v, const td_tensor *value, const char *what) {
  td_text have = {0}, given = {0};
  td_meta own = td_tensor_meta(v->value), other = td_tensor_meta(value);
  td_meta_print(&have, own.dtype, own.rank, own.shape);
  td_meta_print(&given, other.dtype, other.rank, other.shape);
  td_error_set(context, code, "assign: the Variable%s%s is %s and the value %s: %s", v->name[0] ? " " : "", v->name,
               have.data ? have.data : "?", given.data ? given.data : "?", what);
  td_error_operand(context, "variable", 0, &own);
  td_error_operand(context, "value", 1, &other);
  td_text_clear(&have);
  td_text_clear(&given);
  return code;
}

int td_variable_assign(td_context *context, td_variable *v, td_tensor *value) {
  if (value->dtype != v->value->dtype) return refuse(context, TD_ERROR_DTYPE, v, value, "dtypes differ");
  if (!td_shape_equal(v->value->rank, v->value->shape, value->rank, value->shape))
    return refuse(context, TD_ERROR_SHAPE, v, value, "shapes differ");
  td_tensor *stored = bare(context, value);
  if (!stored) return context->error.code;
  td_tensor_unref(v->value);
  v->value = stored;
  v->assigned = context->place;
  return TD_OK;
}

int64_t td_variable_count(void) { return atomic_load(&alive); }
