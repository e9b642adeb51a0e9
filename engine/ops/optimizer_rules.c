// The update rules. A row holds its loop over one variable's elements, in float32 and float64, and how the step's
// numbers become the loop's factors. Adding a rule is adding its RULE, its prepare and its row.
#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/map.h"
#include "engine/ops/optimizer.h"

// In a rule's CODE w is the variable's element, g the gradient's with weight decay in it, a[i], b[i], c[i] the slots'.
#define FACTOR(T, name) const T name __attribute__((unused)) = (T)f->name;
#define LOOP(T, name, suffix, CODE)                                                                          \
  TD_CLONES static void name##_##suffix(int64_t n, void *variable, void *const *slots, const void *gradient, \
                                        const td_update_factors *f) {                                        \
    T *restrict variables = variable;                                                                        \
    T *restrict a __attribute__((unused)) = slots[0], *restrict b __attribute__((unused)) = slots[1];        \
    T *restrict c __attribute__((unused)) = slots[2];                                                        \
    const T *restrict gradients = gradient;                                                                  \
    FACTOR(T, scale)                                                                                         \
    FACTOR(T, decay) FACTOR(T, shrink) FACTOR(T, rate) FACTOR(T, beta1) FACTOR(T, rest1) FACTOR(T, beta2)    \
        FACTOR(T, rest2) FACTOR(T, eps) FACTOR(T, root) FACTOR(T, ahead)                                     \
            TD_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                 \
      T w = variables[i];                                                                                    \
      const T g = scale * gradients[i] + decay * w;                                                          \
      w *= shrink;                                                                                           \
      CODE;                                                                                                  \
      variables[i] = w;                                                                                      \
    }                                                                                                        \
  }
#define RULE(name, CODE) LOOP(float, name, single, CODE) LOOP(double, name, twofold, CODE)
#define LOOPS(name) .single = name##_single, .twofold = name##_twofold
#define ROOT(x) _Generic((x), float : sqrtf, double : sqrt)(x)
#define SIZE(x) _Generic((x), float : fabsf, double : fabs)(x)
#define LARGER(x, y) ((x) >= (y) ? (x) : (y)) // NaN where y is

// ---- gradient descent ----

static void prepare_sgd(const td_update *u, td_update_factors *f) { f->rate = u->rate; }
RULE(sgd, w -= rate * g)
static const td_update_rule sgd = {.name = "sgd", .prepare = prepare_sgd, LOOPS(sgd)};

// Keras keeps the learning rate inside the velocity: v = momentum v - rate g; w += v. With outer PyTorch's form holds:
// v = momentum v + (1 - dampening) g, without dampening at first; w -= rate v.
static void prepare_momentum(const td_update *u, td_update_factors *f) {
  double momentum = u->numbers[0], nesterov = u->numbers[1], dampening = u->numbers[2], outer = u->numbers[3];
  double along = outer ? -u->rate : 1;
  f->beta1 = momentum;
  f->rest1 = !outer ? -u->rate : u->step == 1 ? 1 : 1 - dampening;
  f->rate = nesterov ? along * momentum : along;
  f->ahead = nesterov ? along * f->rest1 : 0;
}
RULE(momentum, a[i] = beta1 * a[i] + rest1 * g; w += rate * a[i] + ahead * g)
static const td_update_rule momentum = {.name = "momentum",
                                        .slots = 1,
                                        .numbers = {"momentum", "nesterov", "dampening", "outer"},
                                        .prepare = prepare_momentum,
                                        LOOPS(momentum)};

// ---- Adam and its kin: numbers beta_1, beta_2, eps ----

static void prepare_betas(const td_update *u, td_update_factors *f) {
  f->beta1 = u->numbers[0];
  f->rest1 = 1 - f->beta1;
  f->beta2 = u->numbers[1];
  f->rest2 = 1 - f->beta2;
  f->eps = u->numbers[2];
  f->rate = u->rate;
}

// The running means m and v are corrected for their start at 0.
static void prepare_adam(const td_update *u, td_update_factors *f) {
  prepare_betas(u, f);
  f->rate = u->rate / (1 - pow(f->beta1, (double)u->step));
  f->root = 1 / sqrt(1 - pow(f->beta2, (double)u->step));
}
#define MEANS                      \
  a[i] = beta1 * a[i] + rest1 * g; \
  b[i] = beta2 * b[i] + rest2 * g * g
RULE(adam, MEANS; w -= rate * a[i] / (ROOT(b[i]) * root + eps))
static const td_update_rule adam = {
    .name = "adam", .slots = 2, .numbers = {"beta_1", "beta_2", "eps"}, .prepare = prepare_adam, LOOPS(adam)};

RULE(amsgrad, MEANS; c[i] = LARGER(c[i], b[i]); w -= rate * a[i] / (ROOT(c[i]) * root + eps))
static const td_update_rule amsgrad = {
    .name = "amsgrad", .slots = 3, .numbers = {"beta_1", "beta_2", "eps"}, .prepare = prepare_adam, LOOPS(amsgrad)};

static void prepare_adamax(const td_update *u, td_update_factors *f) {
  prepare_betas(u, f);
  f->rate = u->rate / (1 - pow(f->beta1, (double)u->step));
}
RULE(adamax, a[i] = beta1 * a[i] + rest1 * g; b[i] = LARGER(beta2 * b[i], SIZE(g) + eps); w -= rate * a[i] / b[i])
static const td_update_rule adamax = {
    .name = "adamax", .slots = 2, .numbers = {"beta_1", "beta_2", "eps"}, .prepare = prepare_adamax, LOOPS(adamax)};

// The momentum grows with the steps: mu(t) = beta_1 (1 - 0.96^(t decay) / 2); m is corrected by the product of all.
static double nadam_momentum(const td_update *u, double step) {
  return u->numbers[0] * (1 - 0.5 * pow(0.96, step * u->numbers[3]));
}
static void prepare_nadam(const td_update *u, td_update_factors *f) {
  enum { FORGOTTEN = 4096 }; // a product of so many is nothing beside 1, unless beta_1 is 1 but for a hair
  double product = 1, now = nadam_momentum(u, (double)u->step), next = nadam_momentum(u, (double)u->step + 1);
  for (int64_t i = 1; i <= u->step && (i < FORGOTTEN || product > 1e-18); i++) product *= nadam_momentum(u, (double)i);
  prepare_betas(u, f);
  f->root = 1 / sqrt(1 - pow(f->beta2, (double)u->step));
  f->ahead = u->rate * (1 - now) / (1 - product);
  f->rate = u->rate * next / (1 - product * next);
}
RULE(nadam, MEANS; w -= (rate * a[i] + ahead * g) / (ROOT(b[i]) * root + eps))
static const td_update_rule nadam = {.name = "nadam",
                                     .slots = 2,
                                     .numbers = {"beta_1", "beta_2", "eps", "momentum_decay"},
                                     .prepare = prepare_nadam,
                                     LOOPS(nadam)};

RULE(lion, const __typeof__(w) u = beta1 * a[i] + rest1 * g; w -= u > 0   ? rate
                                                                  : u < 0 ? -rate
                                                                          : u;
     a[i] = beta2 * a[i] + rest2 * g)
static const td_update_rule lion = {
    .name = "lion", .slots = 1, .numbers = {"beta_1", "beta_2", "eps"}, .prepare = prepare_betas, LOOPS(lion)};

// Decoupled weight decay is part of the direction, whose norm is compared with the variable's.
static void prepare_lamb(const td_update *u, td_update_factors *f) {
  prepare_adam(u, f);
  f->ahead = 1 / (1 - pow(f->beta1, (double)u->step));
  f->rate = u->decoupled ? u->weight_decay : 0;
  f->shrink = 1;
}
RULE(lamb, MEANS; c[i] = ahead * a[i] / (ROOT(b[i]) * root + eps) + rate * w)
static const td_update_rule lamb = {.name = "lamb",
                                    .slots = 2,
                                    .trusts = true,
                                    .numbers = {"beta_1", "beta_2", "eps"},
                                    .prepare = prepare_lamb,
                                    LOOPS(lamb)};

// ---- sums of squares ----

static void prepare_adagrad(const td_update *u, td_update_factors *f) {
  f->eps = u->numbers[0];
  f->rate = u->rate / (1 + (double)(u->step - 1) * u->numbers[1]);
}
RULE(adagrad, a[i] += g * g; w -= rate * g / (ROOT(a[i]) + eps))
static const td_update_rule adagrad = {
    .name = "adagrad", .slots = 1, .numbers = {"eps", "lr_decay"}, .prepare = prepare_adagrad, LOOPS(adagrad)};

static void prepare_rms(const td_update *u, td_update_factors *f) { // numbers rho, eps, momentum
  f->beta2 = u->numbers[0];
  f->rest2 = 1 - f->beta2;
  f->eps = u->numbers[1];
  f->beta1 = u->numbers[2];
  f->rate = u->rate;
}
RULE(adadelta, a[i] = beta2 * a[i] + rest2 * g * g; const __typeof__(w) u = ROOT(b[i] + eps) / ROOT(a[i] + eps) * g;
     b[i] = beta2 * b[i] + rest2 * u * u; w -= rate * u)
static const td_update_rule adadelta = {
    .name = "adadelta", .slots = 2, .numbers = {"rho", "eps"}, .prepare = prepare_rms, LOOPS(adadelta)};

#define SQUARES a[i] = beta2 * a[i] + rest2 * g * g
#define CENTRED(mean) \
  SQUARES;            \
  mean[i] = beta2 * mean[i] + rest2 * g
#define SPREAD(mean) (ROOT(a[i] - mean[i] * mean[i]) + eps)
RULE(rmsprop, SQUARES; w -= rate * g / (ROOT(a[i]) + eps))
RULE(rmsprop_momentum, SQUARES; b[i] = beta1 * b[i] + g / (ROOT(a[i]) + eps); w -= rate * b[i])
RULE(rmsprop_centered, CENTRED(b); w -= rate * g / SPREAD(b))
RULE(rmsprop_centered_momentum, CENTRED(b); c[i] = beta1 * c[i] + g / SPREAD(b); w -= rate * c[i])
#define RMSPROP(row, count)           \
  static const td_update_rule row = { \
      .name = #row, .slots = count, .numbers = {"rho", "eps", "momentum"}, .prepare = prepare_rms, LOOPS(row)};
RMSPROP(rmsprop, 1)
RMSPROP(rmsprop_momentum, 2)
RMSPROP(rmsprop_centered, 2)
RMSPROP(rmsprop_centered_momentum, 3)

// ---- averages: the gradient is a value that the variable follows ----

static void prepare_average(const td_update *u, td_update_factors *f) {
  f->beta1 = u->numbers[0];
  f->rest1 = 1 - f->beta1;
}
RULE(average, w = beta1 * w + rest1 * g)
static const td_update_rule average = {
    .name = "average", .numbers = {"momentum"}, .prepare = prepare_average, LOOPS(average)};

// A sum, weighted by the learning rate.
RULE(sum, w += rate * g)
static const td_update_rule sum = {.name = "sum", .prepare = prepare_sgd, LOOPS(sum)};

static const td_update_rule *const rules[] = {&sgd,
                                              &momentum,
                                              &adam,
                                              &amsgrad,
                                              &adamax,
                                              &nadam,
                                              &lion,
                                              &lamb,
                                              &adagrad,
                                              &adadelta,
                                              &rmsprop,
                                              &rmsprop_momentum,
                                              &rmsprop_centered,
                                              &rmsprop_centered_momentum,
                                              &average,
                                              &sum,
                                              NULL};

const td_update_rule *td_update_rule_at(int index) { return rules[index]; }

const td_update_rule *td_update_rule_find(const char *name) {
  for (int i = 0; rules[i]; i++)
    if (strcmp(rules[i]->name, name) == 0) return rules[i];
  return NULL;
}
