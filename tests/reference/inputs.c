// Prints what make.py computes from: every family, op and sample of the op table, with the inputs and cotangents that
// the tests feed. Numbers are printed so that they read back exactly.
//   family reduce
//   op sum
//   sample 2,3; 3 | axis=1
//   in float64 2,3 1 2 3 4 5 6          one line an input; "none" where it is not given
//   cotangent 0 2,3 1 -0.5 ...          one line for each floating output; none for an op without gradient
#include <stdio.h>
#include <string.h>
#include "engine/ops/families.h"
#include "tests/engine/samples.h"

static void print_shape(const td_tensor *t) {
  if (!t->rank) printf(" -");
  for (int i = 0; i < t->rank; i++) printf(i ? ",%lld" : " %lld", (long long)t->shape[i]);
}

static void print_elements(const td_tensor *t) {
  print_shape(t);
  for (int64_t i = 0; i < t->size; i++) {
    if (td_dtype_is_float(t->dtype)) printf(" %.17g", td_tensor_get_float(t, i));
    else printf(" %lld", (long long)td_tensor_get_int(t, i));
  }
  printf("\n");
}

static bool print_sample(td_context *context, const td_op *op, const td_sample *sample) {
  sample_call call;
  char problem[200] = "", title[400];
  td_tensor *out[TD_OUTPUT_MAX];
  if (!sample_make(context, op, sample, SAMPLE_PLAIN, -1, &call, problem)) {
    fprintf(stderr, "%s: %s\n", op->name, problem);
    return false;
  }
  sample_title(sample, title, sizeof title);
  printf("%s\n", title);
  for (int i = 0; i < call.in_count; i++) {
    if (!call.in[i]) printf("in none");
    else printf("in %s", td_dtype_name(call.in[i]->dtype));
    if (call.in[i]) print_elements(call.in[i]);
    else printf("\n");
  }
  bool ran = sample_run(context, op, &call, out) == TD_OK;
  if (!ran) fprintf(stderr, "%s: %s\n", op->name, context->error.message);
  for (int i = 0; ran && i < td_op_outputs(op, out); i++) {
    td_tensor *cotangent = sample_cotangent(context, op, &call, i, out[i]);
    if (cotangent) {
      printf("cotangent %d", i);
      print_elements(cotangent);
    }
    td_tensor_unref(cotangent);
    td_tensor_unref(out[i]);
  }
  sample_drop(&call);
  return ran;
}

static bool print_family(td_context *context, const char *name, const td_op *const *ops) {
  bool good = true;
  printf("family %s\n", name + strlen("td_family_"));
  for (; *ops; ops++) {
    printf("op %s\n", (*ops)->name);
    for (const td_sample *s = (*ops)->samples; s && s->shapes; s++) good &= print_sample(context, *ops, s);
  }
  return good;
}

int main(void) {
  td_context *context = td_context_new(1);
  if (!context) return 1;
  bool good = true;
#define X(list) good &= print_family(context, #list, list);
  TD_FAMILIES(X)
#undef X
  td_context_free(context);
  return good ? 0 : 1;
}
