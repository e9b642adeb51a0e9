// Texts and categories folded to numbers, for the layers that need no vocabulary. See engine/base/hash.h.
#include "engine/base/hash.h"
#include "repl/language/builtins.h"
#include "repl/language/tensors.h"

// A hash as a number below bins; bins None: as a whole number that is not negative.
static td_value folded(td_interpreter *I, uint64_t hash, td_value bins) {
  if (td_is_none(bins)) return td_int((int64_t)(hash & INT64_MAX));
  int64_t count;
  if (!td_index_value(I, bins, &count)) return TD_NIL;
  if (count > 0) return td_int((int64_t)(hash % (uint64_t)count));
  return td_raise(I, TD_CLASS_VALUE_ERROR, "text_hash: bins must be at least 1, not %lld", (long long)count);
}

// An int, which is both halves, or two of them.
static bool read_salt(td_interpreter *I, td_value v, uint64_t key[2]) {
  bool list = td_is(v, &td_list_type), tuple = td_is(v, &td_tuple_type);
  if ((list && td_as_list(v)->count == 2) || (tuple && td_as_tuple(v)->count == 2)) {
    const td_value *items = list ? td_as_list(v)->items : td_as_tuple(v)->items;
    int64_t halves[2];
    if (!td_index_value(I, items[0], &halves[0]) || !td_index_value(I, items[1], &halves[1])) return false;
    key[0] = (uint64_t)halves[0];
    key[1] = (uint64_t)halves[1];
    return true;
  }
  if (td_is_integer(v)) {
    key[0] = key[1] = (uint64_t)v.i;
    return true;
  }
  td_raise(I, TD_CLASS_TYPE_ERROR, "text_hash: salt must be an int or two of them, not %s", td_type_name(I, v));
  return false;
}

static td_value builtin_text_hash(td_interpreter *I, td_value self, td_value *arguments) { // text, bins, salt
  (void)self;
  if (!td_is(arguments[0], &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "text_hash: a str is needed, not %s", td_type_name(I, arguments[0]));
  const td_str *text = td_as_str(arguments[0]);
  uint64_t key[2];
  if (td_is_none(arguments[2])) return folded(I, td_hash_bytes(text->data, text->length), arguments[1]);
  if (!read_salt(I, arguments[2], key)) return TD_NIL;
  return folded(I, td_hash_keyed(key, text->data, text->length), arguments[1]);
}

static td_value builtin_crossed_hash(td_interpreter *I, td_value self, td_value *arguments) { // values, bins
  (void)self;
  td_list *values = td_as_list(td_list_from(I, arguments[0]));
  uint64_t hash = UINT64_C(0xDECAFCAFFE); // TensorFlow's
  bool ok = values != NULL;
  for (int64_t i = 0; ok && i < values->count; i++) {
    td_value v = values->items[i];
    int64_t number = 0;
    bool text = td_is(v, &td_str_type);
    ok = text || td_index_value(I, v, &number);
    uint64_t own = text ? td_hash_bytes(td_as_str(v)->data, td_as_str(v)->length) : (uint64_t)number;
    if (ok) hash = td_hash_join(hash, own);
  }
  td_unref(td_from(values));
  return ok ? folded(I, hash, arguments[1]) : TD_NIL;
}

const td_method td_hash_builtins[] = {
    {"text_hash", "(text, bins=None, salt=None)", builtin_text_hash,
     "A whole number of a text, from 0 to bins - 1, the same in every session and in TensorFlow: FarmHash's "
     "Fingerprint64,\n"
     "or with a salt (an int, or two) SipHash-2-4 of that key.\n>>> text_hash(\"a\", 10)"},
    {"_crossed_hash", "(values, bins)", builtin_crossed_hash,
     "A number from 0 to bins - 1 of several texts or ints together, as TensorFlow's cross_hashed."},
    {NULL, NULL, NULL, NULL}};
