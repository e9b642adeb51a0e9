// Reading samples. The n-th element of an input is a fixed function of n and of the input's place, so that every run,
// every form and every dtype sees the same numbers.
#include "tests/engine/samples.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/random.h"

// ---- arguments: name=value, comma-separated ----

typedef struct reader {
  const char *at;
  char *problem;
} reader;

static bool fail(reader *r, const char *what) {
  snprintf(r->problem, 200, "%s at \"%s\"", what, r->at);
  return false;
}

static bool skip(reader *r, const char *word) {
  while (isspace((unsigned char)*r->at)) r->at++;
  size_t length = strlen(word);
  if (strncmp(r->at, word, length) != 0) return false;
  r->at += length;
  return true;
}

static bool read_word(reader *r, char *word, size_t size) { // a name, or text in quotes
  skip(r, "");
  char quote = *r->at == '"' || *r->at == '\'' ? *r->at++ : 0;
  size_t length = 0;
  while (*r->at && (quote ? *r->at != quote : isalnum((unsigned char)*r->at) || *r->at == '_')) {
    if (length + 1 == size) return fail(r, "a text is too long");
    word[length++] = *r->at++;
  }
  word[length] = 0;
  if (quote && *r->at++ != quote) return fail(r, "a quote is open");
  return length || quote ? true : fail(r, "a word is missing");
}

static bool read_int(reader *r, int64_t *value) {
  char *end;
  skip(r, "");
  *value = strtoll(r->at, &end, 10);
  if (end == r->at) return fail(r, "an int is missing");
  r->at = end;
  return true;
}

static bool read_float(reader *r, double *value) {
  char *end;
  skip(r, "");
  *value = strtod(r->at, &end);
  if (end == r->at) return fail(r, "a number is missing");
  r->at = end;
  return true;
}

static bool read_number(reader *r, td_arg *arg) { // an int, or a float
  char *end;
  skip(r, "");
  arg->i = strtoll(r->at, &end, 10);
  arg->count = end == r->at || *end == '.' || *end == 'e';
  if (arg->count) return read_float(r, &arg->f);
  r->at = end;
  return true;
}

static bool read_ints(reader *r, td_arg *arg) {
  bool tuple = skip(r, "(") || skip(r, "[");
  arg->count = 0;
  while (!tuple || !(skip(r, ")") || skip(r, "]"))) {
    if (arg->count == TD_RANK_MAX) return fail(r, "too many ints");
    if (!read_int(r, &arg->ints[arg->count++])) return false;
    if (!tuple) break;
    skip(r, ",");
  }
  return true;
}

static bool read_floats(reader *r, td_arg *arg) {
  bool tuple = skip(r, "(") || skip(r, "[");
  arg->count = 0;
  while (!tuple || !(skip(r, ")") || skip(r, "]"))) {
    if (arg->count == TD_RANK_MAX) return fail(r, "too many numbers");
    if (!read_float(r, &arg->floats[arg->count++])) return false;
    if (!tuple) break;
    skip(r, ",");
  }
  if (!tuple) arg->given = TD_GIVEN_LONE;
  return true;
}

static bool read_choice(reader *r, const td_param *param, td_arg *arg) {
  char word[64];
  if (!read_word(r, word, sizeof word)) return false;
  for (arg->i = 0; param->choices[arg->i]; arg->i++)
    if (!strcmp(param->choices[arg->i], word)) return true;
  return fail(r, "no such choice before");
}

static bool read_dtype(reader *r, td_arg *arg) {
  char word[64];
  if (!read_word(r, word, sizeof word)) return false;
  arg->i = td_dtype_find(word);
  return arg->i >= 0 ? true : fail(r, "no such dtype before");
}

static bool read_bool(reader *r, td_arg *arg) {
  arg->i = skip(r, "True");
  return arg->i || skip(r, "False") ? true : fail(r, "True or False is missing");
}

static bool read_order(reader *r, td_arg *arg) { // a number, or text in quotes
  skip(r, "");
  arg->count = *r->at == '"';
  return arg->count ? read_word(r, arg->text, sizeof arg->text) : read_float(r, &arg->f);
}

static bool read_pairs(reader *r, td_arg *arg) { // 2 or ((0, 1), (1, 0))
  td_arg sides[2];
  int64_t n;
  arg->count = -1;
  if (!skip(r, "(")) {
    if (!read_int(r, &n)) return false;
    arg->pairs[0][0] = (int32_t)n;
    return true;
  }
  for (int side = 0; side < 2; side++) {
    if (!read_ints(r, &sides[side])) return false;
    skip(r, ",");
  }
  if (!skip(r, ")") || sides[0].count != sides[1].count) return fail(r, "two tuples of one length are missing");
  arg->count = sides[0].count;
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < arg->count; i++) arg->pairs[i][side] = (int32_t)sides[side].ints[i];
  return true;
}

static bool read_value(reader *r, const td_param *param, td_arg *arg) {
  memset(arg, 0, sizeof *arg);
  if (skip(r, "None")) return true;
  arg->given = 1;
  switch (param->kind) {
  case TD_PARAM_INT:
  case TD_PARAM_AXIS: return read_int(r, &arg->i);
  case TD_PARAM_FLOAT: return read_float(r, &arg->f);
  case TD_PARAM_NUMBER: return read_number(r, arg);
  case TD_PARAM_BOOL: return read_bool(r, arg);
  case TD_PARAM_CHOICE: return read_choice(r, param, arg);
  case TD_PARAM_DTYPE: return read_dtype(r, arg);
  case TD_PARAM_ORDER: return read_order(r, arg);
  case TD_PARAM_PAIRS: return read_pairs(r, arg);
  case TD_PARAM_TEXT: return read_word(r, arg->text, sizeof arg->text);
  case TD_PARAM_FLOATS: return read_floats(r, arg);
  default:
    if (!param->choices || strchr("\"'", *r->at) == NULL) return read_ints(r, arg);
    arg->given = TD_GIVEN_CHOICE;
    return read_choice(r, param, arg);
  }
}

bool sample_arguments(const td_op *op, const char *text, td_arg *args, char problem[200]) {
  reader r = {text ? text : "", problem};
  int first = td_op_tensor_params(op), count = td_op_arg_count(op);
  for (int i = 0; i < count; i++) args[i] = op->params[first + i].fallback;
  while (skip(&r, ""), *r.at) {
    char name[64];
    int i = 0;
    if (!read_word(&r, name, sizeof name)) return false;
    while (i < count && strcmp(op->params[first + i].name, name) != 0) i++;
    if (i == count) return fail(&r, "no such argument before");
    if (!skip(&r, "=")) return fail(&r, "= is missing");
    if (!read_value(&r, &op->params[first + i], &args[i])) return false;
    skip(&r, ",");
  }
  return true;
}

// ---- inputs ----

typedef struct form_of_matrix { // of square ones, the last two axes
  bool symmetric;
  double diagonal; // added to it
} form_of_matrix;

static bool read_shape(reader *r, td_meta *meta, bool *none, form_of_matrix *matrix) { // up to the next ";"
  *matrix = (form_of_matrix){0};
  *none = skip(r, "none");
  meta->rank = 0;
  if (!*none && !skip(r, "-")) {
    do {
      if (meta->rank == TD_RANK_MAX) return fail(r, "too many axes");
      if (!read_int(r, &meta->shape[meta->rank++])) return false;
    } while (skip(r, ","));
  }
  matrix->symmetric = skip(r, "symmetric");
  if (skip(r, "+") && !read_float(r, &matrix->diagonal)) return false;
  skip(r, "");
  if (*r->at && !skip(r, ";")) return fail(r, "; is missing");
  skip(r, "");
  return true;
}

static bool read_input_dtype(reader *r, td_meta *meta) {
  td_arg arg = {.i = TD_FLOAT64};
  if (*r->at && !read_dtype(r, &arg)) return false;
  meta->dtype = (uint8_t)arg.i;
  skip(r, ";");
  return true;
}

static double draw(const td_sample *sample, int input, int64_t element, uint8_t dtype) {
  uint32_t bits[4];
  td_random_block(0x73616d70, (uint64_t)element, (uint64_t)input, bits);
  double unit = td_random_unit(bits[0], bits[1]);
  if (dtype == TD_BOOL) return unit < 0.5;
  // Rounded to float32, so that a comparison of dtypes or with reference values compares kernels, not inputs.
  if (td_dtype_is_float(dtype)) return (double)(float)(sample->low + unit * (sample->high - sample->low));
  return floor(sample->low + unit * (floor(sample->high) - ceil(sample->low) + 1));
}

static void store(td_tensor *t, int64_t element, double value) {
  char *at = t->data + td_tensor_offset(t, element) * td_dtype_bytes(t->dtype);
  switch (t->dtype) {
  case TD_BOOL:
  case TD_UINT8: *(uint8_t *)at = value > 0 ? (uint8_t)value : 0; break;
  case TD_INT32: *(int32_t *)at = (int32_t)value; break;
  case TD_INT64: *(int64_t *)at = (int64_t)value; break;
  case TD_FLOAT16: *(uint16_t *)at = td_half_from_float((float)value); break;
  case TD_BFLOAT16: *(uint16_t *)at = td_bfloat_from_float((float)value); break;
  case TD_FLOAT32: *(float *)at = (float)value; break;
  default: *(double *)at = value;
  }
}

static double drawn(const td_sample *sample, const form_of_matrix *matrix, int input, int64_t element,
                    const td_tensor *t) {
  int64_t n = t->rank > 1 ? t->shape[t->rank - 1] : 0;
  if (n == 0 || t->shape[t->rank - 2] != n) return draw(sample, input, element, t->dtype);
  int64_t row = element / n % n, column = element % n;
  if (matrix->symmetric && row < column) element += (column - row) * (n - 1);
  return draw(sample, input, element, t->dtype) + (row == column ? matrix->diagonal : 0);
}

static td_tensor *make_strided(td_context *context, const td_meta *meta) {
  int64_t wide[TD_RANK_MAX], strides[TD_RANK_MAX], offset = 0;
  if (!meta->rank) return td_tensor_new(context, meta->dtype, 0, meta->shape);
  for (int i = 0; i < meta->rank; i++) wide[i] = meta->shape[i] * 2;
  td_tensor *base = td_tensor_zeros(context, meta->dtype, meta->rank, wide), *view = NULL;
  if (base) {
    for (int i = 0; i < meta->rank; i++) strides[i] = base->strides[i] * 2;
    if (meta->shape[0] > 0) offset = (meta->shape[0] - 1) * strides[0];
    strides[0] = -strides[0];
    view = td_tensor_view(context, base, meta->rank, meta->shape, strides, base->size ? offset : 0);
  }
  td_tensor_unref(base);
  return view;
}

static td_tensor *make_input(td_context *context, const td_sample *sample, enum sample_form form, int dtype,
                             td_meta *meta, const form_of_matrix *matrix, int input) {
  if (dtype >= 0 && td_dtype_is_float(meta->dtype)) meta->dtype = (uint8_t)dtype;
  for (int i = 0; i < meta->rank && form == SAMPLE_EMPTY; i++) meta->shape[i] = 0;
  if (form == SAMPLE_SCALAR) meta->rank = 0;
  td_tensor *t = form == SAMPLE_STRIDED ? make_strided(context, meta)
                                        : td_tensor_new(context, meta->dtype, meta->rank, meta->shape);
  for (int64_t e = 0; t && e < t->size; e++) store(t, e, drawn(sample, matrix, input, e, t));
  return t;
}

bool sample_make(td_context *context, const td_op *op, const td_sample *sample, enum sample_form form, int dtype,
                 sample_call *call, char problem[200]) {
  reader shapes = {sample->shapes, problem}, dtypes = {sample->dtypes ? sample->dtypes : "", problem};
  call->in_count = 0;
  if (!sample_arguments(op, sample->args, call->args, problem)) return false;
  while (*shapes.at) {
    td_meta meta;
    form_of_matrix matrix;
    bool none;
    if (call->in_count == TD_INPUT_MAX) return fail(&shapes, "too many inputs");
    if (!read_shape(&shapes, &meta, &none, &matrix) || !read_input_dtype(&dtypes, &meta)) return false;
    td_tensor *t = none ? NULL : make_input(context, sample, form, dtype, &meta, &matrix, call->in_count);
    call->symmetric[call->in_count] = matrix.symmetric;
    call->in[call->in_count++] = t;
    if (!t && !none) {
      snprintf(problem, 200, "%.199s", context->error.message);
      return false;
    }
  }
  return true;
}

void sample_drop(sample_call *call) {
  for (int i = 0; i < call->in_count; i++) td_tensor_unref(call->in[i]);
  call->in_count = 0;
}

int sample_run(td_context *context, const td_op *op, const sample_call *call, td_tensor **out) {
  return td_op_apply(context, op, call->in, call->in_count, call->args, out);
}

void sample_title(const td_sample *sample, char *title, size_t size) {
  const char *args = sample->args ? sample->args : "";
  snprintf(title, size, "sample%s%s%s%s", *sample->shapes ? " " : "", sample->shapes, *args ? " | " : "", args);
}

td_tensor *sample_cotangent(td_context *context, const td_op *op, const sample_call *call, int n,
                            const td_tensor *out) {
  const td_sample range = {.low = -2, .high = 2};
  bool has_gradient = false;
  for (int i = 0; i < call->in_count; i++) has_gradient |= call->in[i] && td_dtype_is_float(call->in[i]->dtype);
  if (!op->vjp || !has_gradient || !td_dtype_is_float(out->dtype)) return NULL;
  td_tensor *t = td_tensor_new(context, out->dtype, out->rank, out->shape);
  for (int64_t e = 0; t && e < t->size; e++) store(t, e, rint(draw(&range, TD_INPUT_MAX + n, e, t->dtype) * 64) / 64);
  return t;
}

