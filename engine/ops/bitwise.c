// Bits of integers and bool: and, or, xor, not, shifts. Floating dtypes are an error.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample pair_samples[] = {
  { .shapes = "3,4; 3,4", .low = -9, .high = 9, .dtypes = "int64; int64" },
  { .shapes = "2,1,3; 4,1", .low = 0, .high = 9, .dtypes = "uint8; int32" },
  { .shapes = "-; 5", .low = -9, .high = 9, .dtypes = "int32; int32" },
  { .shapes = "0,3; 3", .low = -9, .high = 9, .dtypes = "int64; int64" },
  TD_SAMPLES_END,
};

TD_MAP2(TD_EACH_INTEGRAL, bitwise_and, COMMON, T, x & y)
TD_KERNEL(bitwise_and)

static const td_op bitwise_and_op = {
  .name = "bitwise_and",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE,
  .method = true,
  .infer = td_map_integer,
  .kernel = bitwise_and_kernel,
  .expression = bitwise_and_text,
  .no_gradient = "integer result",
  .doc = "The bits that x and y share, x & y; of bools the logical and.\nNo gradient: the result is an integer.",
  .example = "bitwise_and(tensor([12, 10]), 6).tolist()  # [4, 2]",
  .samples = pair_samples,
};

TD_MAP2(TD_EACH_INTEGRAL, bitwise_or, COMMON, T, x | y)
TD_KERNEL(bitwise_or)

static const td_op bitwise_or_op = {
  .name = "bitwise_or",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE,
  .method = true,
  .infer = td_map_integer,
  .kernel = bitwise_or_kernel,
  .expression = bitwise_or_text,
  .no_gradient = "integer result",
  .doc = "The bits of x and of y, x | y; of bools the logical or.\nNo gradient: the result is an integer.",
  .example = "bitwise_or(tensor([12, 10]), 1).tolist()  # [13, 11]",
  .samples = pair_samples,
};

TD_MAP2(TD_EACH_INTEGRAL, bitwise_xor, COMMON, T, x ^ y)
TD_KERNEL(bitwise_xor)

static const td_op bitwise_xor_op = {
  .name = "bitwise_xor",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE,
  .method = true,
  .infer = td_map_integer,
  .kernel = bitwise_xor_kernel,
  .expression = bitwise_xor_text,
  .no_gradient = "integer result",
  .doc = "The bits in which x and y differ, x ^ y; of bools the logical xor.\nNo gradient: the result is an integer.",
  .example = "bitwise_xor(tensor([12, 10]), 6).tolist()  # [10, 12]",
  .samples = pair_samples,
};

static const char bitwise_not_text[] = "~x";
TD_LOOP1(BOOL, _Bool, bitwise_not, T, !x)
TD_EACH_SIGNED(TD_LOOP1, bitwise_not, T, ~x)
TD_MAP_TABLE(TD_EACH_INTEGRAL, bitwise_not, 1, COMMON)
TD_KERNEL(bitwise_not)

static const td_op bitwise_not_op = {
  .name = "bitwise_not",
  .alias = TD_ALIAS("invert"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_integer,
  .kernel = bitwise_not_kernel,
  .expression = bitwise_not_text,
  .no_gradient = "integer result",
  .doc = "All bits of x turned over, ~x; of bools the logical not.\nNo gradient: the result is an integer.",
  .example = "bitwise_not(tensor([0, 5])).tolist()  # [-1, -6]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = -9, .high = 9, .dtypes = "int64" },
    { .shapes = "-", .low = 0, .high = 9, .dtypes = "uint8" },
    { .shapes = "0,3", .low = -9, .high = 9, .dtypes = "int32" },
    TD_SAMPLES_END,
  },
};

static int shift_infer(td_infer *infer) {
  int code = td_map_integer(infer);
  return code ? code : td_map_number(infer);
}

TD_MAP2(TD_EACH_SIGNED, left_shift, COMMON, T, LEFT_SHIFT(x, y))
TD_KERNEL(left_shift)

static const td_op left_shift_op = {
  .name = "left_shift",
  .alias = TD_ALIAS("bitwise_left_shift"),
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = shift_infer,
  .kernel = left_shift_kernel,
  .expression = left_shift_text,
  .no_gradient = "integer result",
  .doc = "The bits of x moved up by y places, x << y.\n"
         "No gradient: the result is an integer. A count below 0 or of all bits and more gives 0.",
  .example = "left_shift(tensor([1, 3]), 2).tolist()  # [4, 12]",
  .samples = pair_samples,
};

TD_MAP2(TD_EACH_SIGNED, right_shift, COMMON, T, RIGHT_SHIFT(x, y))
TD_KERNEL(right_shift)

static const td_op right_shift_op = {
  .name = "right_shift",
  .alias = TD_ALIAS("bitwise_right_shift"),
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = shift_infer,
  .kernel = right_shift_kernel,
  .expression = right_shift_text,
  .no_gradient = "integer result",
  .doc = "The bits of x moved down by y places, x >> y; the sign stays.\n"
         "No gradient: the result is an integer. A count below 0 or of all bits and more\n"
         "gives 0, or -1 for negative x.",
  .example = "right_shift(tensor([5, -5]), 1).tolist()  # [2, -3]",
  .samples = pair_samples,
};

// ---- divisors and multiples ----

#define DIVISOR_ROW(title, EXPRESSION, summary, shown)                                                                 \
  TD_MAP2(TD_EACH_SIGNED, title, COMMON, T, EXPRESSION(x, y))                                                          \
  TD_KERNEL(title)                                                                                                     \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .params = { TD_XY },                                                                                               \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .flags = TD_COMMUTATIVE | TD_ASSOCIATIVE,                                                                          \
    .method = true,                                                                                                    \
    .infer = whole_infer,                                                                                              \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .no_gradient = "integer result",                                                                                   \
    .doc = summary "\nNo gradient: the result is an integer. bool is an error.",                                      \
    .example = shown,                                                                                                  \
    .samples = pair_samples,                                                                                           \
  };

static int whole_infer(td_infer *infer) {
  int code = td_map_integer(infer);
  return code ? code : td_map_number(infer);
}

DIVISOR_ROW(gcd, GCD, "The greatest common divisor of x and y, not negative; that of 0 and 0 is 0.",
            "gcd(tensor([12, -18]), 8).tolist()  # [4, 2]")
DIVISOR_ROW(lcm, LCM, "The least common multiple of x and y, not negative; 0 if one of them is 0. It may wrap around.",
            "lcm(tensor([4, -6]), 10).tolist()  # [20, 30]")

const td_op *const td_family_bitwise[] = {
  &bitwise_and_op, &bitwise_or_op, &bitwise_xor_op, &bitwise_not_op, &left_shift_op, &right_shift_op, &gcd_op, &lcm_op,
  NULL,
};
