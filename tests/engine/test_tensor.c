// Dtypes, shapes, tensors, copies, printing and Variables. Each test leaves as many live bytes as it found.
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/tensor/variable.h"

static td_context *context;
static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(2);
}

static void finish(void) {
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

static td_tensor *make(uint8_t dtype, int rank, const int64_t *shape, const double *values) {
  td_tensor *t = td_tensor_new(context, dtype, rank, shape);
  for (int64_t i = 0; i < t->size; i++) {
    td_tensor *one = td_tensor_from_float(context, values[i], dtype);
    int bytes = td_dtype_bytes(dtype);
    memcpy(t->data + i * bytes, one->data, (size_t)bytes);
    td_tensor_unref(one);
  }
  return t;
}
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})
#define VALUES(...) ((const double[]){__VA_ARGS__})

// ---- dtypes ----

START_TEST(dtype_rows) {
  ck_assert_str_eq(td_dtype_name(TD_BFLOAT16), "bfloat16");
  ck_assert_int_eq(td_dtype_bytes(TD_INT64), 8);
  ck_assert_int_eq(td_dtype_category(TD_UINT8), 1);
  for (uint8_t i = 0; i < TD_DTYPE_COUNT; i++) {
    ck_assert_int_eq(td_dtype_find(td_dtype_name(i)), i);
    ck_assert_int_eq(td_dtype_is_float(i), td_dtype_category(i) == 2);
  }
  ck_assert_int_eq(td_dtype_find("float"), -1);
}
END_TEST

START_TEST(dtype_promotion) {
  static const uint8_t rows[][3] = {{TD_BOOL, TD_UINT8, TD_UINT8},      {TD_UINT8, TD_INT32, TD_INT32},
                                    {TD_INT64, TD_FLOAT16, TD_FLOAT16}, {TD_FLOAT16, TD_BFLOAT16, TD_FLOAT32},
                                    {TD_INT32, TD_FLOAT32, TD_FLOAT32}, {TD_FLOAT32, TD_FLOAT64, TD_FLOAT64},
                                    {TD_INT32, TD_INT64, TD_INT64},     {TD_BFLOAT16, TD_FLOAT32, TD_FLOAT32}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_int_eq(td_dtype_promote(rows[i][0], rows[i][1]), rows[i][2]);
    ck_assert_int_eq(td_dtype_promote(rows[i][1], rows[i][0]), rows[i][2]);
  }
  for (uint8_t i = 0; i < TD_DTYPE_COUNT; i++) ck_assert_int_eq(td_dtype_promote(i, i), i);
  static const uint8_t weak[][3] = {{0, TD_BOOL, TD_BOOL},       {1, TD_BOOL, TD_INT64},    {2, TD_BOOL, TD_FLOAT32},
                                    {1, TD_UINT8, TD_UINT8},     {2, TD_INT64, TD_FLOAT32}, {2, TD_FLOAT16, TD_FLOAT16},
                                    {1, TD_FLOAT64, TD_FLOAT64}, {0, TD_INT32, TD_INT32}};
  for (size_t i = 0; i < sizeof weak / sizeof *weak; i++)
    ck_assert_int_eq(td_dtype_weak(weak[i][0], weak[i][1]), weak[i][2]);
}
END_TEST

START_TEST(every_half_converts_back) {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; bits++) {
    float half = td_half_to_float((uint16_t)bits), bfloat = td_bfloat_to_float((uint16_t)bits);
    wrong += isnan(half) ? (bits & 0x7fff) <= 0x7c00 || !isnan(td_half_to_float(td_half_from_float(half)))
                         : td_half_from_float(half) != bits;
    wrong += isnan(bfloat) ? (bits & 0x7fff) <= 0x7f80 || !isnan(td_bfloat_to_float(td_bfloat_from_float(bfloat)))
                           : td_bfloat_from_float(bfloat) != bits;
  }
  ck_assert_int_eq(wrong, 0);
  ck_assert(td_half_to_float(0x3555) == 0.333251953125f && td_half_to_float(0x0001) == 0x1p-24f);
  ck_assert(td_half_to_float(0x7bff) == 65504 && td_half_to_float(0xfc00) == -INFINITY);
}
END_TEST

START_TEST(halves_round_to_nearest_even) { // at, just under and just over the middle of neighbours
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x7bff; bits++) {
    float low = td_half_to_float((uint16_t)bits), high = td_half_to_float((uint16_t)(bits + 1)),
          middle = (low + high) / 2;
    wrong += td_half_from_float(middle) != (bits & 1 ? bits + 1 : bits);
    wrong += td_half_from_float(nextafterf(middle, 0)) != bits;
    wrong += td_half_from_float(nextafterf(middle, INFINITY)) != bits + 1;
    wrong += td_half_from_float(-middle) != (0x8000 | (bits & 1 ? bits + 1 : bits));
  }
  for (uint32_t bits = 0; bits < 0x7f7f; bits++) {
    float low = td_bfloat_to_float((uint16_t)bits), high = td_bfloat_to_float((uint16_t)(bits + 1));
    float middle = low + (high - low) / 2;
    wrong += td_bfloat_from_float(middle) != (bits & 1 ? bits + 1 : bits);
    wrong += td_bfloat_from_float(nextafterf(middle, 0)) != bits;
    wrong += td_bfloat_from_float(nextafterf(middle, INFINITY)) != bits + 1;
  }
  ck_assert_int_eq(wrong, 0);
  ck_assert_uint_eq(td_half_from_float(65519.996f), 0x7bff);
  ck_assert_uint_eq(td_half_from_float(65520), 0x7c00);
  ck_assert_uint_eq(td_half_from_float(FLT_MAX), 0x7c00);
  ck_assert_uint_eq(td_bfloat_from_float(FLT_MAX), 0x7f80);
}
END_TEST

START_TEST(doubles_round_once_to_halves) {
  td_tensor *t = td_tensor_from_float(context, 1 + 0x1p-11 + 0x1p-40, TD_FLOAT16); // a float would be the middle itself
  ck_assert_double_eq(td_tensor_get_float(t, 0), 1 + 0x1p-10);
  td_tensor_unref(t);
  t = td_tensor_from_float(context, 1 + 0x1p-8 - 0x1p-40, TD_BFLOAT16);
  ck_assert_double_eq(td_tensor_get_float(t, 0), 1);
  td_tensor_unref(t);
}
END_TEST

// ---- shapes ----

START_TEST(shape_sizes) {
  ck_assert_int_eq(td_shape_size(0, NULL), 1);
  ck_assert_int_eq(td_shape_size(3, SHAPE(2, 3, 4)), 24);
  ck_assert_int_eq(td_shape_size(3, SHAPE(2, 0, 4)), 0);
  ck_assert_int_eq(td_shape_size(2, SHAPE(-1, 4)), -1);
  ck_assert_int_eq(td_shape_size(2, SHAPE((int64_t)1 << 40, (int64_t)1 << 40)), -1);
  ck_assert_int_eq(td_shape_size(1, SHAPE(INT64_MAX / 4)), -1);
  ck_assert_int_eq(td_shape_size(3, SHAPE(0, (int64_t)1 << 40, (int64_t)1 << 40)), -1);
  ck_assert(td_shape_equal(2, SHAPE(2, 3), 2, SHAPE(2, 3)));
  ck_assert(!td_shape_equal(2, SHAPE(2, 3), 2, SHAPE(3, 2)) && !td_shape_equal(1, SHAPE(2), 2, SHAPE(2, 1)));
}
END_TEST

START_TEST(broadcasting) {
  int64_t shape[TD_RANK_MAX];
  int rank, axis = -1;
  ck_assert(td_shape_broadcast(2, SHAPE(3, 1), 3, SHAPE(2, 1, 4), &rank, shape, &axis));
  ck_assert(td_shape_equal(rank, shape, 3, SHAPE(2, 3, 4)));
  ck_assert(td_shape_broadcast(0, NULL, 2, SHAPE(0, 5), &rank, shape, NULL));
  ck_assert(td_shape_equal(rank, shape, 2, SHAPE(0, 5)));
  ck_assert(td_shape_broadcast(1, SHAPE(1), 1, SHAPE(0), &rank, shape, NULL));
  ck_assert(td_shape_equal(rank, shape, 1, SHAPE(0)));
  ck_assert(!td_shape_broadcast(2, SHAPE(2, 3), 1, SHAPE(4), &rank, shape, &axis));
  ck_assert_int_eq(axis, 1);
  ck_assert(!td_shape_broadcast(1, SHAPE(0), 1, SHAPE(2), &rank, shape, NULL));
}
END_TEST

START_TEST(shape_texts) {
  td_text text = {0};
  td_shape_print(&text, 0, NULL);
  td_meta_print(&text, TD_FLOAT32, 2, SHAPE(2, 3));
  td_meta_print(&text, TD_BOOL, 1, SHAPE(0));
  ck_assert_str_eq(text.data, "[]float32[2, 3]bool[0]");
  td_text_clear(&text);
}
END_TEST

START_TEST(operands_are_bounded) {
  td_meta meta = {.dtype = TD_INT32, .rank = 2, .shape = {2, 3}};
  td_error_set(context, TD_ERROR_SHAPE, "x");
  for (int i = 0; i < 20; i++)
    td_error_operand(context, "a_name_that_is_longer_than_the_forty_bytes_of_a_row", i, &meta);
  ck_assert_int_eq(context->error.operand_count, 6);
  const td_operand *last = &context->error.operands[5];
  ck_assert_int_eq(last->argument, 5);
  ck_assert_uint_eq(strlen(last->name), sizeof last->name - 1);
  ck_assert(last->rank == 2 && last->shape[1] == 3 && last->dtype == TD_INT32);
}
END_TEST

// ---- tensors ----

START_TEST(new_tensors) {
  context->place = 12;
  for (uint8_t dtype = 0; dtype < TD_DTYPE_COUNT; dtype++)
    for (int64_t n = 0; n < 3000; n = n * 3 + 1) {
      td_tensor *t = td_tensor_zeros(context, dtype, 2, SHAPE(n, 2));
      ck_assert(t->size == 2 * n && t->rank == 2 && t->dtype == dtype && t->place == 12 && !t->origin);
      ck_assert(t->strides[0] == 2 && t->strides[1] == 1);
      ck_assert(td_tensor_is_contiguous(t) && td_tensor_is_sole(t));
      ck_assert_uint_eq((uintptr_t)t->data % (t->storage->bytes >= 1024 ? 64 : 16), 0);
      double sum = 0;
      for (int64_t i = 0; i < t->size; i++) sum += fabs(td_tensor_get_float(t, i));
      ck_assert_double_eq(sum, 0);
      memset(t->data, 0xff, (size_t)t->storage->bytes);
      td_tensor_unref(t);
    }
}
END_TEST

START_TEST(bad_shapes_are_refused) {
  ck_assert_ptr_null(td_tensor_new(context, TD_FLOAT32, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)));
  ck_assert_int_eq(context->error.code, TD_ERROR_VALUE);
  ck_assert_ptr_null(td_tensor_new(context, TD_FLOAT32, 2, SHAPE(2, -3)));
  ck_assert_str_eq(context->error.message, "tensor: size of axis 1 is negative: -3");
  ck_assert_ptr_null(td_tensor_new(context, TD_FLOAT32, 2, SHAPE((int64_t)1 << 40, (int64_t)1 << 40)));
  ck_assert_int_eq(context->error.code, TD_ERROR_MEMORY);
  ck_assert_str_eq(context->error.message,
                   "tensor float32[1099511627776, 1099511627776]: no memory for 4.836e+24 bytes");
  ck_assert_ptr_null(td_tensor_zeros(context, TD_FLOAT64, 1, SHAPE((int64_t)1 << 43)));
  ck_assert_int_eq(context->error.code, TD_ERROR_MEMORY);
  ck_assert_str_eq(context->error.message,
                   "tensor float64[8796093022208]: no memory for 70368744177664 bytes (64.0 TiB)");
}
END_TEST

START_TEST(numbers_become_tensors) {
  static const struct {
    uint8_t dtype;
    int64_t given, kept;
  } ints[] = {{TD_BOOL, 256, 1},
              {TD_UINT8, 257, 1},
              {TD_UINT8, -1, 255},
              {TD_INT32, ((int64_t)1 << 32) + 5, 5},
              {TD_INT32, (int64_t)1 << 31, INT32_MIN},
              {TD_INT64, INT64_MIN, INT64_MIN},
              {TD_FLOAT16, 2049, 2048},
              {TD_BFLOAT16, 257, 256},
              {TD_FLOAT32, 16777217, 16777216},
              {TD_FLOAT64, -7, -7}};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
    td_tensor *t = td_tensor_from_int(context, ints[i].given, ints[i].dtype);
    ck_assert(t->rank == 0 && t->size == 1 && t->dtype == ints[i].dtype);
    ck_assert_int_eq(td_tensor_get_int(t, 0), ints[i].kept);
    td_tensor_unref(t);
  }
  static const struct {
    uint8_t dtype;
    double given, kept;
  } floats[] = {{TD_BOOL, 0.5, 1},
                {TD_BOOL, NAN, 1},
                {TD_UINT8, -1.9, 255},
                {TD_INT32, -2.9, -2},
                {TD_INT64, 1e30, INT64_MIN},
                {TD_FLOAT16, 1e6, INFINITY},
                {TD_FLOAT32, 0.1, (double)0.1f},
                {TD_FLOAT64, 0.1, 0.1},
                {TD_BFLOAT16, -INFINITY, -INFINITY}};
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
    td_tensor *t = td_tensor_from_float(context, floats[i].given, floats[i].dtype);
    ck_assert(td_tensor_get_float(t, 0) == floats[i].kept);
    td_tensor_unref(t);
  }
  td_tensor *nan = td_tensor_from_float(context, NAN, TD_FLOAT32);
  ck_assert_int_eq(td_tensor_get_int(nan, 0), INT64_MIN);
  td_tensor_unref(nan);
}
END_TEST

START_TEST(views_share_storage) {
  td_tensor *base = make(TD_INT32, 2, SHAPE(2, 3), VALUES(0, 1, 2, 3, 4, 5));
  td_tensor *swapped = td_tensor_view(context, base, 2, SHAPE(3, 2), SHAPE(1, 3), 0);
  td_tensor *back = td_tensor_view(context, base, 1, SHAPE(3), SHAPE(-1), 5);
  ck_assert(swapped->data == base->data && swapped->storage == base->storage);
  ck_assert(!td_tensor_is_contiguous(swapped) && !td_tensor_is_contiguous(back));
  ck_assert(!td_tensor_is_sole(base) && !td_tensor_is_sole(back));
  const int64_t order[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 6; i++) ck_assert_int_eq(td_tensor_get_int(swapped, i), order[i]);
  for (int i = 0; i < 3; i++) ck_assert_int_eq(td_tensor_get_int(back, i), 5 - i);
  td_tensor_unref(base);
  ck_assert_int_eq(td_tensor_get_int(back, 2), 3); // the storage lives on
  td_tensor_unref(swapped);
  ck_assert(td_tensor_is_sole(back));
  td_tensor *same = td_tensor_ref(back);
  ck_assert(!td_tensor_is_sole(back));
  td_tensor_unref(same);
  td_tensor_unref(back);
  td_tensor_unref(NULL);
}
END_TEST

static int released;
static void release_origin(td_origin *origin) {
  released++;
  td_memory_free(origin);
}

START_TEST(alias_drops_the_origin) {
  td_tensor *t = td_tensor_from_int(context, 3, TD_FLOAT32);
  t->origin = td_memory_new_zero(sizeof *t->origin);
  t->origin->refs = 1;
  t->origin->release = release_origin;
  t->flags = TD_TENSOR_FROM_VARIABLE;
  td_tensor *alias = td_tensor_alias(context, t);
  ck_assert(!alias->origin && alias->data == t->data && alias->flags == t->flags);
  ck_assert(!td_tensor_is_sole(t));
  td_tensor_unref(alias);
  ck_assert_int_eq(released, 0);
  td_tensor_unref(t);
  ck_assert_int_eq(released, 1);
}
END_TEST

static void release_storage(td_storage *storage) {
  (void)storage;
  released++;
}

START_TEST(foreign_storage) {
  static float numbers[4] = {1, 2, 3, 4};
  for (int round = 0; round < 2; round++) {
    td_storage *s = td_memory_new_zero(sizeof *s);
    atomic_init(&s->refs, 1);
    s->bytes = sizeof numbers;
    s->data = (char *)numbers;
    s->release = release_storage;
    released = 0;
    td_tensor *t = td_tensor_wrap(context, TD_FLOAT32, 2, round ? SHAPE(2, -2) : SHAPE(2, 2), s, s->data);
    if (round) {
      ck_assert_ptr_null(t);
    } else {
      ck_assert_double_eq(td_tensor_get_float(t, 3), 4);
      ck_assert(td_tensor_is_contiguous(t) && !td_tensor_is_sole(t)); // not ours to write into
      td_tensor_unref(t);
    }
    ck_assert_int_eq(released, 1);
  }
}
END_TEST

static uint32_t draw(uint64_t n, uint32_t below) {
  uint32_t bits[4];
  td_random_block(7, n, 0, bits);
  return bits[0] % below;
}

// A view of random axes, steps (0 and negative too) and offset of a tensor that holds 0, 1, 2, ... (mod 256 bytes
// apart).
static void check_contiguous_copy(uint64_t seed, uint8_t dtype, int64_t most) {
  int rank = (int)draw(seed, 5) + 1;
  int64_t shape[TD_RANK_MAX], strides[TD_RANK_MAX], low = 0, high = 0;
  for (int i = 0; i < rank; i++) {
    shape[i] = 1 + draw(seed * 16 + (uint64_t)i, (uint32_t)most);
    strides[i] = (int64_t)draw(seed * 16 + 8 + (uint64_t)i, 9) - 4;
    if (draw(seed * 16 + (uint64_t)i, 3) == 0) strides[i] *= 7;
    int64_t reach = strides[i] * (shape[i] - 1);
    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
  }
  td_tensor *base = td_tensor_new(context, dtype, 1, SHAPE(high - low + 1));
  for (int64_t i = 0; i < base->storage->bytes; i++) base->data[i] = (char)(i * 37 + i / 200);
  td_tensor *view = td_tensor_view(context, base, rank, shape, strides, -low);
  td_tensor *copy = td_tensor_contiguous(context, view);
  ck_assert(td_tensor_is_contiguous(copy) && copy->size == view->size);
  int64_t wrong = 0, bytes = td_dtype_bytes(dtype);
  for (int64_t i = 0; i < copy->size; i++)
    wrong += memcmp(copy->data + i * bytes, view->data + td_tensor_offset(view, i) * bytes, (size_t)bytes) != 0;
  ck_assert_int_eq(wrong, 0);
  td_tensor_unref(copy);
  td_tensor_unref(view);
  td_tensor_unref(base);
}

START_TEST(contiguous_copies_anything) {
  const uint8_t dtypes[] = {TD_UINT8, TD_FLOAT16, TD_FLOAT32, TD_FLOAT64};
  for (uint64_t i = 0; i < 600; i++) check_contiguous_copy(i, dtypes[i % 4], i % 10 ? 7 : 20);
}
END_TEST

START_TEST(large_transpose_in_chunks) {
  td_tensor *base = td_tensor_new(context, TD_FLOAT32, 2, SHAPE(700, 900));
  for (int64_t i = 0; i < base->size; i++) ((float *)base->data)[i] = (float)i;
  td_tensor *view = td_tensor_view(context, base, 2, SHAPE(900, 700), SHAPE(1, 900), 0);
  td_tensor *copy = td_tensor_contiguous(context, view);
  int wrong = 0;
  for (int64_t r = 0; r < 900; r++)
    for (int64_t c = 0; c < 700; c++) wrong += ((float *)copy->data)[r * 700 + c] != (float)(c * 900 + r);
  ck_assert_int_eq(wrong, 0);
  td_tensor_unref(copy);
  td_tensor_unref(view);
  copy = td_tensor_contiguous(context, base);
  ck_assert_ptr_eq(copy, base);
  td_tensor_unref(copy);
  td_tensor_unref(base);
}
END_TEST

START_TEST(copy_of_an_empty_view) {
  td_tensor *base = td_tensor_zeros(context, TD_INT64, 2, SHAPE(0, 3));
  td_tensor *view = td_tensor_view(context, base, 2, SHAPE(3, 0), SHAPE(1, 3), 0),
            *copy = td_tensor_contiguous(context, view);
  ck_assert(copy && copy->size == 0);
  td_tensor_unref(copy);
  td_tensor_unref(view);
  td_tensor_unref(base);
}
END_TEST

// ---- printing ----

static void prints(td_tensor *t, int64_t threshold, const char *lead, const char *expected) {
  td_text text = {0};
  td_tensor_print(t, &text, threshold, lead);
  ck_assert_str_eq(text.data, expected);
  td_text_clear(&text);
  td_tensor_unref(t);
}

START_TEST(prints_floats) {
  prints(make(TD_FLOAT32, 1, SHAPE(2), VALUES(4, 6)), 1000, NULL, "[4., 6.]");
  prints(make(TD_FLOAT32, 1, SHAPE(3), VALUES(1.5, 2.25, -3)), 1000, NULL, "[ 1.5 ,  2.25, -3.  ]");
  prints(make(TD_FLOAT32, 1, SHAPE(2), VALUES(0.1, 1.0 / 3)), 1000, NULL, "[0.1       , 0.33333334]");
  prints(make(TD_FLOAT64, 1, SHAPE(2), VALUES(0.1, 1.0 / 3)), 1000, NULL, "[0.1       , 0.33333333]");
  prints(make(TD_FLOAT64, 1, SHAPE(2), VALUES(1e-5, 1)), 1000, NULL, "[1.e-05, 1.e+00]");
  prints(make(TD_FLOAT64, 1, SHAPE(2), VALUES(1, 1001)), 1000, NULL, "[1.000e+00, 1.001e+03]");
  prints(make(TD_FLOAT64, 1, SHAPE(2), VALUES(1, 1000)), 1000, NULL, "[   1., 1000.]");
  prints(make(TD_FLOAT64, 1, SHAPE(1), VALUES(1e8)), 1000, NULL, "[1.e+08]");
  prints(make(TD_FLOAT64, 1, SHAPE(1), VALUES(99999999)), 1000, NULL, "[99999999.]");
  prints(make(TD_FLOAT64, 1, SHAPE(2), VALUES(1e-300, 1e300)), 1000, NULL, "[1.e-300, 1.e+300]");
  prints(make(TD_FLOAT32, 1, SHAPE(1), VALUES(0.0001)), 1000, NULL, "[0.0001]");
  prints(make(TD_FLOAT64, 1, SHAPE(4), VALUES(NAN, INFINITY, -INFINITY, 1)), 1000, NULL, "[ nan,  inf, -inf,   1.]");
  prints(make(TD_FLOAT32, 1, SHAPE(2), VALUES(NAN, -0.0)), 1000, NULL, "[nan, -0.]");
  prints(make(TD_FLOAT16, 1, SHAPE(2), VALUES(0.1, 57312)), 1000, NULL, "[1.00e-01, 5.73e+04]");
  prints(make(TD_BFLOAT16, 1, SHAPE(2), VALUES(0.1, 0.5)), 1000, NULL, "[0.1, 0.5]");
}
END_TEST

START_TEST(prints_integers_and_bools) {
  prints(make(TD_INT64, 2, SHAPE(2, 2), VALUES(1, -20, 300, 4)), 1000, NULL, "[[  1, -20],\n [300,   4]]");
  prints(make(TD_UINT8, 1, SHAPE(2), VALUES(7, 255)), 1000, NULL, "[  7, 255]");
  prints(make(TD_BOOL, 1, SHAPE(2), VALUES(1, 0)), 1000, NULL, "[ True, False]");
}
END_TEST

START_TEST(prints_scalars) {
  prints(td_tensor_from_float(context, 2.5, TD_FLOAT32), 1000, NULL, "2.5");
  prints(td_tensor_from_float(context, 3, TD_FLOAT32), 1000, NULL, "3.0");
  prints(td_tensor_from_float(context, 0.1, TD_FLOAT16), 1000, NULL, "0.1");
  prints(td_tensor_from_float(context, 0.1, TD_BFLOAT16), 1000, NULL, "0.1");
  prints(td_tensor_from_float(context, NAN, TD_FLOAT64), 1000, "tensor(", "nan");
  prints(td_tensor_from_int(context, -4, TD_INT32), 1000, NULL, "-4");
  prints(td_tensor_from_int(context, 1, TD_BOOL), 1000, NULL, "True");
}
END_TEST

START_TEST(prints_shapes) {
  prints(td_tensor_zeros(context, TD_FLOAT32, 1, SHAPE(0)), 1000, NULL, "[]");
  prints(td_tensor_zeros(context, TD_FLOAT32, 2, SHAPE(0, 3)), 1000, NULL, "[], shape=(0, 3)");
  prints(td_tensor_zeros(context, TD_INT32, 3, SHAPE(2, 1, 2)), 1000, "tensor(", "[[[0, 0]],\n\n        [[0, 0]]]");
  prints(td_tensor_zeros(context, TD_INT32, 2, SHAPE(2, 1)), 1000, "tensor(", "[[0],\n        [0]]");
}
END_TEST

START_TEST(prints_long_rows_and_summaries) {
  td_tensor *t = td_tensor_new(context, TD_INT32, 1, SHAPE(30));
  for (int i = 0; i < 30; i++) ((int32_t *)t->data)[i] = i;
  prints(td_tensor_ref(t), 1000, NULL,
         "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
         " 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]");
  prints(td_tensor_ref(t), 29, NULL, "[ 0,  1,  2, ..., 27, 28, 29]");
  prints(td_tensor_ref(t), -1, NULL,
         "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
         " 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]");
  prints(td_tensor_zeros(context, TD_UINT8, 1, SHAPE(26)), 1000, NULL, // 75 columns are used up
         "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\n 0]");
  td_tensor *wide = td_tensor_view(context, t, 2, SHAPE(8, 7), SHAPE(3, 1), 0);
  prints(wide, 50, NULL,
         "[[ 0,  1,  2, ...,  4,  5,  6],\n [ 3,  4,  5, ...,  7,  8,  9],\n [ 6,  7,  8, ..., 10, 11, 12],\n ...,\n"
         " [15, 16, 17, ..., 19, 20, 21],\n [18, 19, 20, ..., 22, 23, 24],\n [21, 22, 23, ..., 25, 26, 27]]");
  td_tensor_unref(t);
}
END_TEST

START_TEST(printing_without_memory) {
  td_tensor *t = td_tensor_zeros(context, TD_FLOAT64, 2, SHAPE(20, 20));
  for (int n = 1;; n++) {
    td_text text = {0};
    ck_assert_int_lt(n, 100);
    td_memory_fail(n, n % 2);
    td_tensor_print(t, &text, 1000, "tensor(");
    td_memory_fail(0, false);
    bool failed = text.failed;
    td_text_clear(&text);
    if (!failed) break;
  }
  td_tensor_unref(t);
}
END_TEST

// ---- memory ----

static td_tensor *everything(void) { // NULL when any allocation failed
  td_tensor *a = td_tensor_new(context, TD_FLOAT32, 2, SHAPE(30, 40)), *b = NULL, *c = NULL, *d = NULL;
  if (a) memset(a->data, 0, (size_t)a->storage->bytes);
  if (a) b = td_tensor_view(context, a, 2, SHAPE(40, 30), SHAPE(1, 40), 0);
  if (b) c = td_tensor_contiguous(context, b);
  if (c) d = td_tensor_alias(context, c);
  if (d) d->origin = td_memory_new_zero(sizeof *d->origin);
  if (d && !d->origin) {
    td_error_memory(context, "origin", (int64_t)sizeof *d->origin);
    td_tensor_unref(d);
    d = NULL;
  }
  if (d) {
    d->origin->refs = 1;
    d->origin->release = release_origin;
  }
  td_variable *v = d ? td_variable_new(context, d, "weights", true) : NULL;
  td_tensor *one = v ? td_tensor_from_int(context, 1, TD_INT64) : NULL;
  if (v) td_variable_unref(v);
  td_tensor_unref(a);
  td_tensor_unref(b);
  td_tensor_unref(c);
  td_tensor_unref(d);
  return one;
}

START_TEST(every_allocation_fails) {
  for (int forever = 0; forever < 2; forever++)
    for (int n = 1;; n++) {
      ck_assert_int_lt(n, 100);
      td_error_clear(context);
      td_memory_fail(n, forever);
      td_tensor *t = everything();
      td_memory_fail(0, false);
      ck_assert_int_eq(context->error.code, t ? TD_OK : TD_ERROR_MEMORY);
      bool through = t != NULL;
      td_tensor_unref(t);
      ck_assert_int_eq(td_variable_count(), 0);
      if (!through) continue;
      ck_assert_int_gt(n, 9);
      break;
    }
}
END_TEST

// ---- Variables ----

START_TEST(variables) {
  td_tensor *first = make(TD_FLOAT32, 1, SHAPE(2), VALUES(1, 2)), *second = make(TD_FLOAT32, 1, SHAPE(2), VALUES(3, 4));
  td_variable *v = td_variable_new(context, first, NULL, true), *w = td_variable_new(context, first, "w", false);
  ck_assert_int_eq(td_variable_count(), 2);
  ck_assert(v->id != w->id && v->trainable && !w->trainable && !strcmp(v->name, "") && !strcmp(w->name, "w"));
  context->place = 9;
  ck_assert_int_eq(td_variable_assign(context, v, second), TD_OK);
  ck_assert_uint_eq(v->assigned, 9);
  ck_assert_double_eq(td_tensor_get_float(v->value, 1), 4);
  ck_assert_double_eq(td_tensor_get_float(w->value, 1), 2);
  ck_assert_double_eq(td_tensor_get_float(first, 1), 2);
  ck_assert_int_eq(td_variable_assign(context, v, v->value), TD_OK);
  td_variable_unref(td_variable_ref(v));
  td_variable_unref(v);
  td_variable_unref(w);
  td_tensor_unref(first);
  td_tensor_unref(second);
  ck_assert_int_eq(td_variable_count(), 0);
}
END_TEST

START_TEST(variable_keeps_shape_and_dtype) {
  td_tensor *value = make(TD_FLOAT32, 1, SHAPE(2), VALUES(1, 2)), *longer = make(TD_FLOAT32, 1, SHAPE(1), VALUES(1));
  td_tensor *whole = make(TD_INT32, 1, SHAPE(2), VALUES(1, 2));
  td_variable *v = td_variable_new(context, value, "w", true);
  ck_assert_int_eq(td_variable_assign(context, v, longer), TD_ERROR_SHAPE);
  ck_assert_str_eq(context->error.message,
                   "assign: the Variable w is float32[2] and the value float32[1]: shapes differ");
  ck_assert_int_eq(td_variable_assign(context, v, whole), TD_ERROR_DTYPE);
  ck_assert_int_eq(context->error.operand_count, 2);
  ck_assert_ptr_eq(v->value, value);
  td_variable_unref(v);
  td_tensor_unref(value);
  td_tensor_unref(longer);
  td_tensor_unref(whole);
}
END_TEST

// ---- the suite ----

static TCase *test_case(Suite *suite, const char *name) {
  TCase *tests = tcase_create(name);
  tcase_add_checked_fixture(tests, start, finish);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return tests;
}

int main(void) {
  Suite *suite = suite_create("tensor");
  TCase *tests = test_case(suite, "dtype");
  tcase_add_test(tests, dtype_rows);
  tcase_add_test(tests, dtype_promotion);
  tcase_add_test(tests, every_half_converts_back);
  tcase_add_test(tests, halves_round_to_nearest_even);
  tcase_add_test(tests, doubles_round_once_to_halves);
  tests = test_case(suite, "shape");
  tcase_add_test(tests, shape_sizes);
  tcase_add_test(tests, broadcasting);
  tcase_add_test(tests, shape_texts);
  tcase_add_test(tests, operands_are_bounded);
  tests = test_case(suite, "tensor");
  tcase_add_test(tests, new_tensors);
  tcase_add_test(tests, bad_shapes_are_refused);
  tcase_add_test(tests, numbers_become_tensors);
  tcase_add_test(tests, views_share_storage);
  tcase_add_test(tests, alias_drops_the_origin);
  tcase_add_test(tests, foreign_storage);
  tcase_add_test(tests, contiguous_copies_anything);
  tcase_add_test(tests, large_transpose_in_chunks);
  tcase_add_test(tests, copy_of_an_empty_view);
  tcase_add_test(tests, every_allocation_fails);
  tests = test_case(suite, "print");
  tcase_add_test(tests, prints_floats);
  tcase_add_test(tests, prints_integers_and_bools);
  tcase_add_test(tests, prints_scalars);
  tcase_add_test(tests, prints_shapes);
  tcase_add_test(tests, prints_long_rows_and_summaries);
  tcase_add_test(tests, printing_without_memory);
  tests = test_case(suite, "variable");
  tcase_add_test(tests, variables);
  tcase_add_test(tests, variable_keeps_shape_and_dtype);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
