// The module math: Python's functions of float and int arguments. Results that don't exist raise ValueError, those that
// are too large OverflowError, as Python's do.
#include <float.h>
#include <math.h>

#include "repl/language/core.h"

static bool want_double(td_interpreter *I, td_value v, double *x) {
  bool ok = td_is_number(v);
  *x = ok ? td_number_double(v) : 0;
  if (ok) return true;
  if (!td_is(v, &td_str_type)) *x = td_to_double(I, v, &ok);
  if (ok) return true;
  td_clear_raised(I);
  td_raise(I, TD_CLASS_TYPE_ERROR, "must be real number, not %s", td_type_name(I, v));
  return false;
}

static td_value domain_error(td_interpreter *I) { return td_raise(I, TD_CLASS_VALUE_ERROR, "math domain error"); }

// large: an infinite result of a finite argument is too large a number; else it is a pole.
static td_value checked(td_interpreter *I, double result, bool arguments_finite, bool argument_nan, bool large) {
  if (result != result && !argument_nan) return domain_error(I);
  if (isinf(result) && arguments_finite)
    return large ? td_raise(I, TD_CLASS_OVERFLOW_ERROR, "math range error") : domain_error(I);
  return td_double(result);
}

static td_value apply(td_interpreter *I, td_value *arguments, double function(double), bool large) {
  double x;
  if (!want_double(I, arguments[0], &x)) return TD_NIL;
  return checked(I, function(x), isfinite(x), x != x, large);
}

static double degrees(double x) { return x * (180 / M_PI); }
static double radians(double x) { return x * (M_PI / 180); }
static double gamma_of(double x) { return (x == 0 || (x < 0 && x == floor(x))) ? NAN : tgamma(x); }
static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// X(name, function of double, an infinite result is too large a number, sentence)
#define FUNCTIONS(X)                                                                                                   \
  X(acos, acos, false, "Arc cosine in radians.")                                                                       \
  X(acosh, acosh, false, "Inverse hyperbolic cosine.") X(asin, asin, false, "Arc sine in radians.")                    \
      X(asinh, asinh, false, "Inverse hyperbolic sine.") X(atan, atan, false, "Arc tangent in radians.")               \
          X(atanh, atanh, false, "Inverse hyperbolic tangent.") X(cbrt, cbrt, false, "Cube root.")                     \
              X(cos, cos, false, "Cosine of an angle in radians.") X(cosh, cosh, true, "Hyperbolic cosine.") X(        \
                  degrees, degrees, true, "An angle in degrees, from radians.") X(erf, erf, false, "Error function.")  \
                  X(erfc, erfc, false, "1 - erf(x), exact for large x.") X(exp, exp, true, "e to the power x.")        \
                      X(exp2, exp2, true, "2 to the power x.") X(expm1, expm1, true, "exp(x) - 1, exact for small x.") \
                          X(fabs, fabs, false, "Absolute value, as a float.")                                          \
                              X(gamma, gamma_of, true, "Gamma function: (x - 1)! for whole x.")                        \
                                  X(lgamma, log_gamma, false, "Logarithm of the gamma function's absolute value.")     \
                                      X(log10, log10, false, "Logarithm to the base 10.")                              \
                                          X(log1p, log1p, false, "log(1 + x), exact for small x.")                     \
                                              X(log2, log2, false, "Logarithm to the base 2.")                         \
                                                  X(radians, radians, true, "An angle in radians, from degrees.")      \
                                                      X(sin, sin, false, "Sine of an angle in radians.")               \
                                                          X(sinh, sinh, true, "Hyperbolic sine.") X(sqrt, sqrt, false, \
                                                                                                    "Square root.")    \
                                                              X(tan, tan, false, "Tangent of an angle in radians.")    \
                                                                  X(tanh, tanh, false, "Hyperbolic tangent.")
#define X(name, function, large, doc)                                                  \
  static td_value math_##name(td_interpreter *I, td_value self, td_value *arguments) { \
    return (void)self, apply(I, arguments, function, large);                           \
  }
FUNCTIONS(X)
#undef X

static td_value math_log(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value top = apply(I, arguments, log, false);
  if (td_is_nil(top) || td_is_nil(arguments[1])) return top;
  td_value bottom = apply(I, arguments + 1, log, false);
  if (td_is_nil(bottom)) return TD_NIL;
  return bottom.f == 0 ? td_raise(I, TD_CLASS_ZERO_DIVISION_ERROR, "float division by zero")
                       : td_double(top.f / bottom.f);
}

// ---- two arguments ----
static td_value apply2(td_interpreter *I, td_value *arguments, double function(double, double), bool large) {
  double x, y;
  if (!want_double(I, arguments[0], &x) || !want_double(I, arguments[1], &y)) return TD_NIL;
  return checked(I, function(x, y), isfinite(x) && isfinite(y), x != x || y != y, large);
}

static td_value math_atan2(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, apply2(I, arguments, atan2, false);
}
static td_value math_copysign(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, apply2(I, arguments, copysign, false);
}
static td_value math_remainder(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, apply2(I, arguments, remainder, false);
}

static td_value math_fmod(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, apply2(I, arguments, fmod, false);
}

static td_value math_nextafter(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x, y;
  return want_double(I, arguments[0], &x) && want_double(I, arguments[1], &y) ? td_double(nextafter(x, y)) : TD_NIL;
}

static td_value math_pow(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x, y;
  if (!want_double(I, arguments[0], &x) || !want_double(I, arguments[1], &y)) return TD_NIL;
  return checked(I, pow(x, y), isfinite(x) && isfinite(y), x != x || y != y, x != 0);
}

static td_value math_ldexp(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x;
  if (!want_double(I, arguments[0], &x)) return TD_NIL;
  if (!td_is_integer(arguments[1]))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "Expected an int as second argument to ldexp.");
  int64_t exponent = arguments[1].i;
  return checked(I,
                 ldexp(x, exponent > 5000    ? 5000
                          : exponent < -5000 ? -5000
                                             : (int)exponent),
                 isfinite(x), x != x, true);
}

static td_value math_isclose(td_interpreter *I, td_value self, td_value *arguments) { // a, b, rel_tol, abs_tol
  (void)self;
  double x[4];
  for (int i = 0; i < 4; i++)
    if (!want_double(I, arguments[i], &x[i])) return TD_NIL;
  if (x[2] < 0 || x[3] < 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "tolerances must be non-negative");
  if (x[0] == x[1]) return td_bool(true);
  if (isinf(x[0]) || isinf(x[1])) return td_bool(false);
  double difference = fabs(x[1] - x[0]);
  return td_bool(difference <= fabs(x[2] * x[1]) || difference <= fabs(x[2] * x[0]) || difference <= x[3]);
}

// ---- parts of a number ----
static td_value math_modf(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x, whole;
  if (!want_double(I, arguments[0], &x)) return TD_NIL;
  double fraction = modf(x, &whole);
  return td_tuple_pack(I, 2, td_double(fraction), td_double(whole));
}

static td_value math_frexp(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x;
  int exponent = 0;
  if (!want_double(I, arguments[0], &x)) return TD_NIL;
  if (isfinite(x)) x = frexp(x, &exponent);
  return td_tuple_pack(I, 2, td_double(x), td_int(exponent));
}

static td_value math_ulp(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x;
  if (!want_double(I, arguments[0], &x)) return TD_NIL;
  x = fabs(x);
  if (!isfinite(x)) return td_double(x);
  double next = nextafter(x, INFINITY);
  return td_double(isinf(next) ? x - nextafter(x, 0) : next - x);
}

static td_value whole(td_interpreter *I, td_value v, double function(double), const char *special) {
  double x;
  if (td_is_integer(v)) return td_int(v.i);
  if (td_is_instance(v)) {
    td_str *name = td_str_intern(I, special, strlen(special));
    td_value method = name ? td_special(I, v, name) : TD_NIL;
    td_unref(td_from(name));
    if (!td_is_nil(method)) return td_special_call(I, method, v, 0, NULL);
  }
  return want_double(I, v, &x) ? td_double_to_int(I, function(x)) : TD_NIL;
}

static td_value math_floor(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, whole(I, arguments[0], floor, "__floor__");
}
static td_value math_ceil(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, whole(I, arguments[0], ceil, "__ceil__");
}
static td_value math_trunc(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, whole(I, arguments[0], trunc, "__trunc__");
}

static td_value math_isfinite(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x;
  return want_double(I, arguments[0], &x) ? td_bool(isfinite(x)) : TD_NIL;
}

static td_value math_isinf(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x;
  return want_double(I, arguments[0], &x) ? td_bool(isinf(x)) : TD_NIL;
}

static td_value math_isnan(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  double x;
  return want_double(I, arguments[0], &x) ? td_bool(isnan(x)) : TD_NIL;
}

// ---- whole numbers ----
static td_value too_large(td_interpreter *I, const char *name) {
  return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "integer overflow: the result of %s() doesn't fit in 64 bits", name);
}

static td_value math_factorial(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t n, result = 1;
  if (!td_index_value(I, arguments[0], &n)) return TD_NIL;
  if (n < 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "factorial() not defined for negative values");
  if (n > 20) return too_large(I, "factorial");
  for (int64_t i = 2; i <= n; i++) result *= i;
  return td_int(result);
}

static bool two_counts(td_interpreter *I, td_value *arguments, int64_t *n, int64_t *k) {
  if (!td_index_value(I, arguments[0], n)) return false;
  *k = *n;
  if (!td_is_none(arguments[1]) && !td_index_value(I, arguments[1], k)) return false;
  if (*n >= 0 && *k >= 0) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s must be a non-negative integer", *n < 0 ? "n" : "k");
  return false;
}

static td_value math_comb(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t n, k;
  if (!two_counts(I, arguments, &n, &k)) return TD_NIL;
  if (k > n) return td_int(0);
  if (k > n - k) k = n - k;
  __int128 result = 1; // after step i it is the number of ways to choose i, so each division is exact
  for (int64_t i = 1; i <= k; i++) {
    result = result * (n - k + i) / i;
    if (result > INT64_MAX) return too_large(I, "comb");
  }
  return td_int((int64_t)result);
}

static td_value math_perm(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t n, k, result = 1;
  if (!two_counts(I, arguments, &n, &k)) return TD_NIL;
  if (k > n) return td_int(0);
  for (int64_t i = 0; i < k; i++)
    if (__builtin_mul_overflow(result, n - i, &result)) return too_large(I, "perm");
  return td_int(result);
}

static td_value math_isqrt(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  int64_t n;
  if (!td_index_value(I, arguments[0], &n)) return TD_NIL;
  if (n < 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "isqrt() argument must be nonnegative");
  uint64_t root = (uint64_t)sqrt((double)n);
  while (root * root > (uint64_t)n) root--;
  while ((root + 1) * (root + 1) <= (uint64_t)n) root++;
  return td_int((int64_t)root);
}

static uint64_t magnitude(int64_t i) { return i < 0 ? 0 - (uint64_t)i : (uint64_t)i; }

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static td_value math_gcd(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tuple *all = td_as_tuple(arguments[0]);
  uint64_t result = 0;
  for (int64_t i = 0; i < all->count; i++) {
    int64_t n;
    if (!td_index_value(I, all->items[i], &n)) return TD_NIL;
    result = common_divisor(result, magnitude(n));
  }
  return result > INT64_MAX ? too_large(I, "gcd") : td_int((int64_t)result);
}

static td_value math_lcm(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tuple *all = td_as_tuple(arguments[0]);
  uint64_t result = 1;
  for (int64_t i = 0; i < all->count; i++) {
    int64_t n;
    if (!td_index_value(I, all->items[i], &n)) return TD_NIL;
    uint64_t divisor = common_divisor(result, magnitude(n));
    if (divisor && __builtin_mul_overflow(result / divisor, magnitude(n), &result)) return too_large(I, "lcm");
  }
  return result > INT64_MAX ? too_large(I, "lcm") : td_int((int64_t)result);
}

// ---- many numbers ----
static td_value math_prod(td_interpreter *I, td_value self, td_value *arguments) { // iterable, start
  (void)self;
  td_value total = td_ref(arguments[1]), iterator = td_iterate(I, arguments[0]), item;
  while (!td_is_nil(iterator) && !td_is_nil(total) && !td_is_nil(item = td_next(I, iterator))) {
    td_value next = td_interrupted(I) ? TD_NIL : td_binary(I, TD_BINARY_MULTIPLY, total, item);
    td_unref(total);
    td_unref(item);
    total = next;
  }
  td_unref(iterator);
  if (td_is_nil(I->raised)) return total;
  td_unref(total);
  return TD_NIL;
}

// The exact sum of doubles as a few that don't overlap, smallest first (Shewchuk, 1997).
typedef struct partials {
  double *items;
  int64_t count, capacity;
  double special, infinite;
} partials;

static bool add_partial(td_interpreter *I, partials *p, double x) {
  double given = x;
  int64_t kept = 0;
  for (int64_t i = 0; i < p->count; i++) {
    double y = p->items[i];
    if (fabs(x) < fabs(y)) {
      double swap = x;
      x = y;
      y = swap;
    }
    double high = x + y, low = y - (high - x);
    if (low != 0) p->items[kept++] = low;
    x = high;
  }
  p->count = kept;
  if (!isfinite(x)) {
    if (isfinite(given)) return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "intermediate overflow in fsum"), false;
    if (isinf(given)) p->infinite += given;
    p->special += given;
    p->count = 0;
    return true;
  }
  if (x == 0) return true;
  if (p->count == p->capacity) {
    int64_t capacity = p->capacity * 2 + 32;
    double *items = td_memory_resize(p->items, (size_t)capacity * sizeof *items);
    if (!items) return td_raise_memory(I), false;
    p->items = items;
    p->capacity = capacity;
  }
  p->items[p->count++] = x;
  return true;
}

static double partials_sum(const partials *p) { // rounded once, half to even
  int64_t n = p->count;
  if (n == 0) return 0;
  double high = p->items[--n], low = 0;
  while (n > 0) {
    double x = high, y = p->items[--n];
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  if (n > 0 && ((low < 0 && p->items[n - 1] < 0) || (low > 0 && p->items[n - 1] > 0))) {
    double twice = low * 2, candidate = high + twice;
    if (twice == candidate - high) high = candidate;
  }
  return high;
}

static td_value math_fsum(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value iterator = td_iterate(I, arguments[0]), item;
  if (td_is_nil(iterator)) return TD_NIL;
  partials p = {0};
  bool done = true;
  while (done && !td_is_nil(item = td_next(I, iterator))) {
    double x;
    done = want_double(I, item, &x) && add_partial(I, &p, x) && !td_interrupted(I);
    td_unref(item);
  }
  td_unref(iterator);
  td_value result = TD_NIL;
  if (done && td_is_nil(I->raised)) {
    if (p.special == 0) result = td_double(partials_sum(&p));
    else if (p.infinite != p.infinite) result = td_raise(I, TD_CLASS_VALUE_ERROR, "-inf + inf in fsum");
    else result = td_double(p.special);
  }
  td_memory_free(p.items);
  return result;
}

typedef struct wide { double sum, rest; } wide; // sum + rest, to about twice a double's digits

static void add_square(wide *total, double x) {
  double square = x * x, sum = total->sum + square, part = sum - total->sum;
  total->rest += (total->sum - (sum - part)) + (square - part) + fma(x, x, -square);
  total->sum = sum;
}

static double square_root(wide total) { // a step of Newton's after the rounded root
  double root = sqrt(total.sum + total.rest), square = root * root;
  return root + ((total.sum - square) - fma(root, root, -square) + total.rest) / (2 * root);
}

// The square root of the sum of the squares of differences (b NULL: of the values), scaled by a power of two so that
// none overflows and scaling rounds nothing.
static td_value norm(td_interpreter *I, const td_value *a, const td_value *b, int64_t count) {
  double largest = 0;
  int exponent = 0;
  bool found_nan = false, found_infinity = false;
  wide total = {0, 0};
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = 0; i < count; i++) {
      double x, y = 0;
      if (!want_double(I, a[i], &x) || (b && !want_double(I, b[i], &y))) return TD_NIL;
      double distance = fabs(x - y);
      found_nan |= distance != distance;
      found_infinity |= isinf(distance);
      if (pass == 0 && distance > largest) largest = distance;
      if (pass == 1) add_square(&total, scalbn(distance, -exponent));
    }
    if (found_infinity) return td_double(INFINITY);
    if (found_nan) return td_double(NAN);
    if (largest == 0) return td_double(0);
    frexp(largest, &exponent);
  }
  return td_double(scalbn(square_root(total), exponent));
}

static td_value math_hypot(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tuple *all = td_as_tuple(arguments[0]);
  return norm(I, all->items, NULL, all->count);
}

static td_value math_dist(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_value p = td_tuple_from(I, arguments[0]), q = td_is_nil(p) ? TD_NIL : td_tuple_from(I, arguments[1]),
           result = TD_NIL;
  if (!td_is_nil(q)) {
    td_tuple *a = td_as_tuple(p), *b = td_as_tuple(q);
    if (a->count != b->count) td_raise(I, TD_CLASS_VALUE_ERROR, "both points must have the same number of dimensions");
    else result = norm(I, a->items, b->items, a->count);
  }
  td_unref(p);
  td_unref(q);
  return result;
}

static const td_method rows[] = {
#define X(name, function, large, doc) {#name, "(x, /)", math_##name, doc},
    FUNCTIONS(X)
#undef X
        {"log", "(x, base=..., /)", math_log, "Logarithm to the base e, or to another one.\n>>> math.log(8, 2)"},
    {"atan2", "(y, x, /)", math_atan2, "Angle of the point (x, y) in radians, from -pi to pi."},
    {"copysign", "(x, y, /)", math_copysign, "x with the sign of y."},
    {"fmod", "(x, y, /)", math_fmod, "Remainder with the sign of x; the operator % gives y's."},
    {"remainder", "(x, y, /)", math_remainder, "x minus the nearest multiple of y."},
    {"nextafter", "(x, y, /)", math_nextafter, "The next float after x, toward y."},
    {"pow", "(x, y, /)", math_pow, "x to the power y, as floats."},
    {"ldexp", "(x, i, /)", math_ldexp, "x * 2**i."},
    {"isclose", "(a, b, *, rel_tol=1e-09, abs_tol=0.0)", math_isclose,
     "Whether a and b differ by at most a tolerance."},
    {"modf", "(x, /)", math_modf, "The fraction and the whole part, as a tuple of floats."},
    {"frexp", "(x, /)", math_frexp, "The tuple (m, e) for which x == m * 2**e and 0.5 <= abs(m) < 1."},
    {"ulp", "(x, /)", math_ulp, "Distance from x to the next float."},
    {"floor", "(x, /)", math_floor, "The largest int that is at most x.\n>>> math.floor(-1.5)"},
    {"ceil", "(x, /)", math_ceil, "The smallest int that is at least x.\n>>> math.ceil(1.2)"},
    {"trunc", "(x, /)", math_trunc, "x cut toward zero."},
    {"isfinite", "(x, /)", math_isfinite, "Whether x is neither infinite nor a NaN."},
    {"isinf", "(x, /)", math_isinf, "Whether x is infinite."},
    {"isnan", "(x, /)", math_isnan, "Whether x is a NaN."},
    {"factorial", "(n, /)", math_factorial, "1 * 2 * ... * n.\n>>> math.factorial(5)"},
    {"comb", "(n, k, /)", math_comb, "How many ways there are to choose k of n.\n>>> math.comb(5, 2)"},
    {"perm", "(n, k=None, /)", math_perm, "How many ways there are to arrange k of n."},
    {"isqrt", "(n, /)", math_isqrt, "The square root, cut to an int.\n>>> math.isqrt(17)"},
    {"gcd", "(*integers)", math_gcd, "The greatest common divisor.\n>>> math.gcd(12, 18)"},
    {"lcm", "(*integers)", math_lcm, "The least common multiple.\n>>> math.lcm(4, 6)"},
    {"prod", "(iterable, /, *, start=1)", math_prod, "start times all elements.\n>>> math.prod([2, 3])"},
    {"fsum", "(iterable, /)", math_fsum, "The sum of floats, rounded once only.\n>>> math.fsum([0.1] * 10)"},
    {"hypot", "(*coordinates)", math_hypot, "Length of a vector.\n>>> math.hypot(3, 4)"},
    {"dist", "(p, q, /)", math_dist, "Distance of two points.\n>>> math.dist([1, 2], [4, 6])"},
    {NULL, NULL, NULL, NULL}};

bool td_math_register(td_interpreter *I) {
  td_module *math = td_module_define(I, "math", rows);
  bool named = td_builtin_define(I, "inf", td_double(INFINITY)) && td_builtin_define(I, "nan", td_double(NAN));
  return named && math && td_module_set(I, math, "pi", td_double(M_PI)) &&
         td_module_set(I, math, "e", td_double(M_E)) && td_module_set(I, math, "tau", td_double(2 * M_PI)) &&
         td_module_set(I, math, "inf", td_double(INFINITY)) && td_module_set(I, math, "nan", td_double(NAN));
}
