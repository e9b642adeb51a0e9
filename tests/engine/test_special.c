// Functions whose formulas break somewhere, against values computed with 400 digits: near zeros, poles and the seams of
// their series, at subnormal and at huge arguments.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include "engine/base/memory.h"
#include "engine/ops/op.h"

static td_context *context;
static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
  ck_assert_ptr_nonnull(context);
}

static void finish(void) {
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

typedef struct row {
  const char *op;
  double x, value;
} row;

static const row rows[] = {
    {"erf", 0x1.56e1fc2f8f359p-997, 0x1.82e6d98711d3ap-997},
    {"erf", 0x0.0000000000001p-1022, 0x0.0000000000001p-1022},
    {"erf", -0x1.3333333333333p-2, -0x1.50838881dea0fp-2},
    {"erf", 0x1.8000000000000p-1, 0x1.6c1c9759d0e5fp-1},
    {"erf", 0x1.7ff2e48e8a71ep-1, 0x1.6c1429decfe62p-1},
    {"erf", 0x1.4000000000000p+1, 0x1.ffcaa8f4c9beap-1},
    {"erf", 0x1.799999999999ap+2, 0x1.fffffffffffffp-1},
    {"erfc", -0x1.8000000000000p+1, 0x1.fffe8d6209afdp+0},
    {"erfc", 0x1.79ca10c924223p-67, 0x1.0000000000000p+0},
    {"erfc", 0x1.0000000000000p-1, 0x1.eb02147ce245cp-2},
    {"erfc", 0x1.8000000000000p-1, 0x1.27c6d14c5e341p-2},
    {"erfc", 0x1.0000000000000p+1, 0x1.328f5ec350e67p-8},
    {"erfc", 0x1.4000000000000p+3, 0x1.7d8a7f2a8a2d0p-149},
    {"erfc", 0x1.a000000000000p+4, 0x1.284bfe1cdea24p-981},
    {"erfinv", 0x1.56e1fc2f8f359p-997, 0x1.2fdf36bf69b9fp-997},
    {"erfinv", -0x1.999999999999ap-3, -0x1.6ee2c37720945p-3},
    {"erfinv", 0x1.b333333333333p-1, 0x1.04954184f8aa5p+0},
    {"erfinv", 0x1.b333368e31869p-1, 0x1.049545b5b24ebp+0},
    {"erfinv", 0x1.ff7ced916872bp-1, 0x1.29d311405cdb4p+1},
    {"erfinv", 0x1.fffffffffe000p-1, 0x1.4347bf36fbae8p+2},
    {"erfinv", 0x1.fffffffffffffp-1, 0x1.7744f8f74e94ap+2},
    {"lgamma", 0x1.56e1fc2f8f359p-997, 0x1.5963447f87fb5p+9},
    {"lgamma", 0x1.3333333333333p-2, 0x1.188637a6c4196p+0},
    {"lgamma", 0x1.000000044b830p+0, -0x1.3d53e3b7cd00bp-31},
    {"lgamma", 0x1.fffffffbb47d0p+0, -0x1.d0db387b47320p-32},
    {"lgamma", 0x1.8000000000000p+1, 0x1.62e42fefa39efp-1},
    {"lgamma", -0x1.0000000000000p-1, 0x1.43f89a3f0edd6p+0},
    {"lgamma", -0x1.3b33333333333p+4, -0x1.409999550ce02p+5},
    {"lgamma", 0x1.5600000000000p+7, 0x1.61495a1a8a1d5p+9},
    {"lgamma", 0x1.2a05f20000000p+33, 0x1.9a43710f467c1p+37},
    {"digamma", 0x1.56e1fc2f8f359p-997, -0x1.7e43c8800759bp+996},
    {"digamma", 0x1.47ae147ae147bp-7, -0x1.923e58c1e9645p+6},
    {"digamma", 0x1.0000000000000p+0, -0x1.2788cfc6fb619p-1},
    {"digamma", 0x1.762d86356be3fp+0, -0x1.aa2d9b3ce29e0p-54},
    {"digamma", 0x1.762d86356be40p+0, 0x1.1a5beef0723bbp-53},
    {"digamma", 0x1.ffbe76c8b4396p+0, 0x1.b045421668c32p-2},
    {"digamma", 0x1.0020c49ba5e35p+1, 0x1.b19763af0a129p-2},
    {"digamma", 0x1.3ff7ced916873p+3, 0x1.2035fb8982c09p+1},
    {"digamma", 0x1.4000000000000p+3, 0x1.20396dc85cc95p+1},
    {"digamma", 0x1.2a05f20000000p+33, 0x1.7069e2aa27361p+4},
    {"digamma", -0x1.0000000000000p-2, 0x1.750282bca7d92p+1},
    {"digamma", -0x1.ccccccccccccdp+1, 0x1.9219784310c71p-2},
    {"i0", 0.0, 0x1.0000000000000p+0},
    {"i0", 0x1.5798ee2308c3ap-27, 0x1.0000000000000p+0},
    {"i0", -0x1.8000000000000p+1, 0x1.385ee7ddb65f1p+2},
    {"i0", 0x1.3fd70a3d70a3dp+4, 0x1.49199aef714ddp+25},
    {"i0", 0x1.4028f5c28f5c3p+4, 0x1.4f94076adc9aap+25},
    {"i0", 0x1.9000000000000p+6, 0x1.8a6f2011ec0d2p+139},
    {"i0", 0x1.6480000000000p+9, 0x1.7defd11043518p+1022},
    {"i1", 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-998},
    {"i1", -0x1.8000000000000p+1, -0x1.fa0809085cc04p+1},
    {"i1", 0x1.3fd70a3d70a3dp+4, 0x1.40c285f6c1ba5p+25},
    {"i1", 0x1.4028f5c28f5c3p+4, 0x1.47151fe7731afp+25},
    {"i1", 0x1.9000000000000p+6, 0x1.8874f981a92abp+139},
    {"i1", 0x1.6480000000000p+9, 0x1.7dab39e0e2874p+1022},
    {"sinc", 0x1.56e1fc2f8f359p-997, 0x1.0000000000000p+0},
    {"sinc", 0x1.999999999999ap-4, 0x1.f79e9114b55dcp-1},
    {"sinc", -0x1.fae147ae147aep-1, 0x1.4aef7a0bb7252p-7},
    {"sinc", 0x1.4000000000000p+1, 0x1.04c26be3b06cfp-3},
    {"sinc", 0x1.f420000000000p+9, 0x1.d7e83558a4b40p-13},
    {"sinc", 0x1.c6bf526340000p+49, 0x0.0p+0},
    {"logit", 0x1.56e1fc2f8f359p-997, -0x1.5963447f87fb5p+9},
    {"logit", 0x1.999999999999ap-3, -0x1.62e42fefa39efp+0},
    {"logit", 0x1.0000000000000p-2, -0x1.193ea7aad030bp+0},
    {"logit", 0x1.fffff94a03595p-2, -0x1.ad7f29ac00065p-22},
    {"logit", 0x1.8000000000000p-1, 0x1.193ea7aad030bp+0},
    {"logit", 0x1.fffffffffffffp-1, 0x1.25e4f7b2737fap+5},
    {"mish", -0x1.5e00000000000p+9, -0x1.7aa3cdf7f304ep-1001},
    {"mish", -0x1.e000000000000p+4, -0x1.8b172b681b638p-39},
    {"mish", -0x1.0000000000000p+0, -0x1.36aedf68a4413p-2},
    {"mish", 0x1.56e1fc2f8f359p-997, 0x1.9b759505df0d1p-998},
    {"mish", 0x1.0000000000000p+0, 0x1.baee2d0adc5e7p-1},
    {"mish", 0x1.e000000000000p+4, 0x1.e000000000000p+4},
    {"mish", 0x1.f400000000000p+8, 0x1.f400000000000p+8},
    {"tanhshrink", 0x1.dee7a4ad4b81fp-167, 0x1.17544f17fb84ep-500},
    {"tanhshrink", 0x1.4f8b588e368f1p-17, 0x1.804ea29305269p-52},
    {"tanhshrink", -0x1.999999999999ap-4, -0x1.5c2203a585fbfp-12},
    {"tanhshrink", 0x1.fff2e48e8a71ep-1, 0x1.e822ea2fadad6p-3},
    {"tanhshrink", 0x1.0000000000000p+0, 0x1.e84152bac31afp-3},
    {"tanhshrink", 0x1.00068db8bac71p+0, 0x1.e85fbc21a5240p-3},
    {"tanhshrink", 0x1.4000000000000p+4, 0x1.3000000000000p+4},
    {"asinh", 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-997},
    {"asinh", -0x1.4f8b588e368f1p-17, -0x1.4f8b588e1e8a2p-17},
    {"asinh", 0x1.0000000000000p-1, 0x1.ecc2caec5160ap-2},
    {"asinh", 0x1.7d78400000000p+26, 0x1.31d23d3ad26e5p+4},
    {"asinh", 0x1.7e43c8800759cp+996, 0x1.59bbfd8b83e44p+9},
    {"acosh", 0x1.0000000000001p+0, 0x1.6a09e667f3bccp-26},
    {"acosh", 0x1.199999999999ap+0, 0x1.c636c1a882f2cp-2},
    {"acosh", 0x1.4000000000000p+2, 0x1.256e66a48a3b6p+1},
    {"acosh", 0x1.7d78400000000p+26, 0x1.31d23d3ad26e5p+4},
    {"acosh", 0x1.7e43c8800759cp+996, 0x1.59bbfd8b83e44p+9},
    {"atanh", 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-997},
    {"atanh", -0x1.4f8b588e368f1p-17, -0x1.4f8b588e6698ep-17},
    {"atanh", 0x1.0000000000000p-1, 0x1.193ea7aad030bp-1},
    {"atanh", 0x1.ff7ced916872bp-1, 0x1.e66cfde9c7c2dp+1},
    {"atanh", 0x1.fffffffffffffp-1, 0x1.2b708872320e2p+4},
    {"exp2", -0x1.0c80000000000p+10, 0x0.0000000000001p-1022},
    {"exp2", -0x1.ff40000000000p+9, 0x0.b504f333f9de6p-1022},
    {"exp2", 0x1.79ca10c924223p-67, 0x1.0000000000000p+0},
    {"exp2", 0x1.3333333333333p-2, 0x1.3b2c47bff8329p+0},
    {"exp2", -0x1.6666666666666p-1, 0x1.3b2c47bff8329p-1},
    {"exp2", 0x1.fff3333333333p+9, 0x1.ddb680117aa8ep+1023},
    {"cbrt", 0x0.012688b70e62bp-1022, 0x1.a9d1b0b5d7427p-344},
    {"cbrt", -0x1.0624dd2f1a9fcp-10, -0x1.999999999999ap-4},
    {"cbrt", 0x1.8000000000000p+1, 0x1.7137449123ef6p+0},
    {"cbrt", 0x1.7e43c8800759cp+996, 0x1.249ad2594c37dp+332},
    {"silu", -0x1.5e00000000000p+9, -0x1.7aa3cdf7f304ep-1001},
    {"silu", -0x1.e000000000000p+4, -0x1.8b172b681b4f3p-39},
    {"silu", 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-998},
    {"silu", 0x1.0000000000000p+1, 0x1.c2f7d5a8a79cap+0},
    {"softplus", -0x1.7200000000000p+9, 0x0.0000000000055p-1022},
    {"softplus", -0x1.e000000000000p+4, 0x1.a56e0c2ac7e1ap-44},
    {"softplus", 0x1.56e1fc2f8f359p-997, 0x1.62e42fefa39efp-1},
    {"softplus", 0x1.5000000000000p+4, 0x1.50000000341b6p+4},
    {"softplus", 0x1.9000000000000p+9, 0x1.9000000000000p+9},
    {"softsign", 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-997},
    {"softsign", -0x1.0000000000000p+1, -0x1.5555555555555p-1},
    {"softsign", 0x1.7e43c8800759cp+996, 0x1.0000000000000p+0},
};
static const struct {
  int n;
  double x, value;
} orders[] = {
    {1, 0x1.bff2ee48e0530p-333, 0x1.4e718d7d7625ap+664},
    {1, 0x1.0000000000000p-1, 0x1.3bd3cc9be45dep+2},
    {1, 0x1.8000000000000p+1, 0x1.94699894c1f4dp-2},
    {1, 0x1.4e718d7d7625ap+664, 0x1.87e92154ef7acp-665},
    {1, -0x1.4000000000000p+1, 0x1.3141822e1697ap+3},
    {2, -0x1.199999999999ap+1, 0x1.edd48aa93505fp+7},
    {3, 0x1.c000000000000p+2, 0x1.d7bdbb6b32698p-8},
    {3, 0x1.3e9e4e4c2f344p+199, 0x1.0991a9bfa58c9p-597},
    {20, 0x1.f400000000000p+7, -0x1.6951b84d25982p-103},
    {4, -0x1.999999999999ap-4, 0x1.24f6b1d207bdap+21},
};
enum { ROWS = sizeof rows / sizeof *rows, ORDERS = sizeof orders / sizeof *orders };

// In units of the last place that float64 has at wanted.
static double ulps(double got, double wanted) {
  int exponent;
  frexp(wanted, &exponent);
  return fabs(got - wanted) / ldexp(1, exponent - 53 < -1074 ? -1074 : exponent - 53);
}

static double apply(const char *name, td_tensor *a, td_tensor *b) { // takes over a and b
  td_tensor *in[] = {a, b}, *out[TD_OUTPUT_MAX];
  if (td_op_apply(context, td_op_find(name), in, b ? 2 : 1, NULL, out)) ck_abort_msg("%s", context->error.message);
  double value = td_tensor_get_float(out[0], 0);
  td_tensor_unref(a);
  td_tensor_unref(b);
  td_tensor_unref(out[0]);
  return value;
}

START_TEST(value_is_exact_but_for_the_last_places) {
  const row *r = &rows[_i];
  double got = apply(r->op, td_tensor_from_float(context, r->x, TD_FLOAT64), NULL);
  ck_assert_msg(ulps(got, r->value) <= 12, "%s(%a) is %a, not %a: off by %g ulp", r->op, r->x, got, r->value,
                ulps(got, r->value));
}
END_TEST

START_TEST(derivative_of_digamma_is_exact_but_for_the_last_places) {
  double got = apply("polygamma", td_tensor_from_float(context, orders[_i].n, TD_FLOAT64),
                     td_tensor_from_float(context, orders[_i].x, TD_FLOAT64));
  ck_assert_msg(ulps(got, orders[_i].value) <= 12, "polygamma(%d, %a) is %a, not %a: off by %g ulp", orders[_i].n,
                orders[_i].x, got, orders[_i].value, ulps(got, orders[_i].value));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("special");
  TCase *values = tcase_create("values");
  tcase_add_checked_fixture(values, start, finish);
  tcase_add_loop_test(values, value_is_exact_but_for_the_last_places, 0, ROWS);
  tcase_add_loop_test(values, derivative_of_digamma_is_exact_but_for_the_last_places, 0, ORDERS);
  suite_add_tcase(suite, values);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
