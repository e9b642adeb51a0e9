// The dtypes as values: float32, int64, ... They print as their names, compare by identity and with their names as
// text, and called like a function they cast: float32(x).
#include <string.h>
#include "repl/language/core.h"
#include "repl/language/tensors.h"

static bool dtype_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_add(text, td_dtype_name(((td_dtype_value *)v.o)->dtype));
  return true;
}

static td_value dtype_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  uint8_t left = 0, right = 0;
  bool known = td_is(a, &td_dtype_type) && (td_is(b, &td_dtype_type) || td_is(b, &td_class_type)) &&
               td_to_dtype(I, a, &left) && td_to_dtype(I, b, &right);
  if (td_is(b, &td_str_type)) {
    int found = td_dtype_find(td_as_str(b)->data);
    known = found >= 0 && td_to_dtype(I, a, &left);
    right = (uint8_t)found;
  }
  if (comparison == TD_COMPARE_EQUAL) return td_bool(known && left == right);
  if (comparison == TD_COMPARE_NOT_EQUAL) return td_bool(!known || left != right);
  return td_ref(TD_NOT_IMPLEMENTED);
}

static bool dtype_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  (void)I;
  *hash = 0x9e3779b97f4a7c15u * (((td_dtype_value *)v.o)->dtype + 1u);
  return true;
}

static td_value dtype_call(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  if (arguments->count != 1 || arguments->keyword_count)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "%s(x) takes one argument",
                    td_dtype_name(((td_dtype_value *)callee.o)->dtype));
  td_tensor *t = td_to_tensor_of(I, arguments->values[0], ((td_dtype_value *)callee.o)->dtype);
  return t ? td_tensor_box(I, t) : TD_NIL;
}

static td_value dtype_attribute(td_interpreter *I, td_value v, td_str *name) {
  uint8_t dtype = ((td_dtype_value *)v.o)->dtype;
  if (strcmp(name->data, "name") == 0) return td_from(td_str_from(I, td_dtype_name(dtype)));
  if (strcmp(name->data, "itemsize") == 0) return td_int(td_dtype_bytes(dtype));
  return TD_NIL;
}

const td_type td_dtype_type = {
    .name = "dtype",
    .size = sizeof(td_dtype_value),
    .repr = dtype_repr,
    .attribute = dtype_attribute,
    .call = dtype_call,
    .compare = dtype_compare,
    .hash = dtype_hash,
    .doc = "An element type: float32 (default), float64, int32, int64, uint8, bool; float16 and bfloat16 as storage.",
};

td_value td_dtype_box(td_interpreter *I, uint8_t dtype) {
  td_value *kept = &I->core->dtypes[dtype];
  if (!td_is_nil(*kept)) return td_ref(*kept);
  td_dtype_value *value = td_object_new(I, &td_dtype_type, sizeof *value);
  if (!value) return TD_NIL;
  value->dtype = dtype;
  *kept = td_from(value);
  return td_ref(*kept);
}
