// Arithmetic on shapes alone: sizes, equality, broadcasting, texts.
#include <string.h>

#include "engine/tensor/tensor.h"

int64_t td_shape_size(int rank, const int64_t *shape) {
  int64_t size = 1;
  bool overflow = false, empty = false;
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0) return -1;
    if (shape[i] == 0) empty = true;
    else overflow |= __builtin_mul_overflow(size, shape[i], &size);
  }
  if (overflow || size > INT64_MAX / 8) return -1; // also beside a size of 0: strides must fit
  return empty ? 0 : size;
}

bool td_shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b) {
  if (rank_a != rank_b) return false;
  for (int i = 0; i < rank_a; i++)
    if (a[i] != b[i]) return false;
  return true;
}

bool td_shape_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank, int64_t *shape,
                        int *axis) {
  int wide = rank_a > rank_b ? rank_a : rank_b;
  *rank = wide;
  for (int i = 0; i < wide; i++) {
    int in_a = i - (wide - rank_a), in_b = i - (wide - rank_b);
    int64_t from_a = in_a < 0 ? 1 : a[in_a], from_b = in_b < 0 ? 1 : b[in_b];
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      if (axis) *axis = i;
      return false;
    }
    shape[i] = from_a == 1 ? from_b : from_a;
  }
  return true;
}

void td_shape_print(td_text *text, int rank, const int64_t *shape) {
  td_text_add_char(text, '[');
  for (int i = 0; i < rank; i++) td_text_print(text, i ? ", %lld" : "%lld", (long long)shape[i]);
  td_text_add_char(text, ']');
}

void td_meta_print(td_text *text, uint8_t dtype, int rank, const int64_t *shape) {
  td_text_add(text, td_dtype_name(dtype));
  td_shape_print(text, rank, shape);
}

void td_error_operand(td_context *context, const char *name, int argument, const td_meta *meta) {
  td_error *error = &context->error;
  if (error->operand_count >= (int)(sizeof error->operands / sizeof *error->operands)) return;
  td_operand *operand = &error->operands[error->operand_count++];
  *operand = (td_operand){.argument = argument, .dtype = meta->dtype, .rank = meta->rank};
  size_t length = strnlen(name, sizeof operand->name - 1);
  memcpy(operand->name, name, length);
  if (meta->rank <= TD_RANK_MAX) memcpy(operand->shape, meta->shape, meta->rank * sizeof *meta->shape);
}
