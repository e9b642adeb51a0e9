// Contractions by name: einsum, tensordot, dot, inner, vdot, outer, kron; and trace. Each says which axis has which
// label; contract.c does the rest.
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/contract.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

// A row's labels from its arguments and the shapes of its inputs. False: problem says why they don't fit.
typedef bool label_function(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem);

static int contraction_infer(td_infer *infer, label_function *label, td_contraction *c) {
  char problem[TD_PROBLEM_TEXT] = "";
  if (!label(infer->args, infer->in_count, infer->in, c, problem) || !td_contraction_sizes(c, infer->in, problem))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "%s", problem);
  td_meta *out = &infer->out[0];
  out->dtype = td_contraction_dtype(infer);
  out->rank = (uint8_t)c->out_rank;
  for (int i = 0; i < c->out_rank; i++) out->shape[i] = c->size[c->out[i]];
  return TD_OK;
}

static void labels_of(const td_call *call, label_function *label,
                      td_contraction *c) { // infer has seen to it that they fit
  td_meta in[TD_INPUT_MAX];
  char problem[TD_PROBLEM_TEXT];
  td_call_metas(call, in);
  if (label(call->args, call->in_count, in, c, problem)) td_contraction_sizes(c, in, problem);
}

static int64_t contraction_workspace(const td_call *call, label_function *label) {
  td_contraction c;
  labels_of(call, label, &c);
  return td_contraction_workspace(call, &c);
}

static int contraction_kernel(const td_call *call, label_function *label) {
  td_contraction c;
  labels_of(call, label, &c);
  return td_contraction_run(call, &c);
}

static int contraction_vjp(td_rule *rule, label_function *label) {
  td_contraction c;
  td_meta in[TD_INPUT_MAX];
  char problem[TD_PROBLEM_TEXT];
  for (int i = 0; i < rule->in_count; i++) in[i] = td_tensor_meta(rule->in[i]);
  if (!label(rule->args, rule->in_count, in, &c, problem) || !td_contraction_sizes(&c, in, problem)) return TD_OK;
  int64_t shape[TD_RANK_MAX];
  for (int i = 0; i < c.out_rank; i++) shape[i] = c.size[c.out[i]];
  return td_contraction_vjp(rule, &c, td_reshape(&rule->scope, rule->cotangent[0], c.out_rank, shape));
}

#define CONTRACTION(name)                               \
  static int name##_infer(td_infer *infer) {            \
    td_contraction c;                                   \
    return contraction_infer(infer, name##_labels, &c); \
  }                                                     \
  CONTRACTION_KERNELS(name)
#define CONTRACTION_KERNELS(name)                                                                             \
  static int64_t name##_workspace(const td_call *call) { return contraction_workspace(call, name##_labels); } \
  static int name##_kernel(const td_call *call) { return contraction_kernel(call, name##_labels); }           \
  static int name##_vjp(td_rule *rule) { return contraction_vjp(rule, name##_labels); }

// Labels 0, 1, 2 for the axes of the first operand, the next ones for those of the second.
static void label_apart(td_contraction *c, const td_meta *in) {
  c->count = 2;
  c->label_count = c->out_rank = 0;
  for (int k = 0; k < 2; k++) {
    c->rank[k] = in[k].rank;
    for (int i = 0; i < in[k].rank; i++) c->labels[k][i] = (uint8_t)c->label_count++;
  }
  for (int i = 0; i < c->label_count; i++) c->names[i] = (char)('a' + i);
}

static void unite(td_contraction *c, int first, int second) { // an axis of the second operand with one of the first
  c->labels[1][second] = c->labels[0][first];
}

static bool result_fits(int rank, char *problem) {
  if (rank <= TD_RANK_MAX) return true;
  snprintf(problem, TD_PROBLEM_TEXT, "the result would have rank %d, and %d is the highest", rank, TD_RANK_MAX);
  return false;
}

// The labels that only one operand has, in order.
static bool keep_unpaired(td_contraction *c, char *problem) {
  int wanted = 0;
  uint8_t kept[2 * TD_RANK_MAX];
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < c->rank[k]; i++) {
      uint8_t label = c->labels[k][i];
      bool paired = false;
      for (int j = 0; j < c->rank[1 - k]; j++) paired |= c->labels[1 - k][j] == label;
      if (!paired) kept[wanted++] = label;
    }
  if (!result_fits(wanted, problem)) return false;
  c->out_rank = wanted;
  memcpy(c->out, kept, sizeof c->out);
  return true;
}

// ---- einsum ----

typedef struct reading { // of the subscripts
  td_contraction *c;
  char *problem;
  int8_t label[128]; // of a letter; -1: not seen
  int uses[TD_LABELS_MAX];
  int dots_rank; // axes that "..." stands for, the most of all operands
  uint8_t dots[TD_RANK_MAX]; // their labels, from the last axis
} reading;

__attribute__((format(printf, 2, 3))) static bool complain(reading *r, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(r->problem, TD_PROBLEM_TEXT, format, list);
  va_end(list);
  return false;
}

static bool new_label(reading *r, char name, uint8_t *label) {
  td_contraction *c = r->c;
  if (c->label_count == TD_LABELS_MAX) return complain(r, "more than %d different axes", TD_LABELS_MAX);
  *label = (uint8_t)c->label_count;
  c->names[c->label_count++] = name;
  return true;
}

static bool letter_label(reading *r, char letter, uint8_t *label) {
  int8_t *seen = &r->label[(int)letter];
  if (*seen < 0) {
    if (!new_label(r, letter, label)) return false;
    *seen = (int8_t)*label;
  }
  *label = (uint8_t)*seen;
  return true;
}

static bool dots_labels(reading *r, int rank) { // makes sure that there are so many
  for (; r->dots_rank < rank; r->dots_rank++)
    if (!new_label(r, '.', &r->dots[r->dots_rank])) return false;
  return true;
}

// One term: letters, and "..." once at most. rank: of its operand. Moves *at behind it.
static bool read_term(reading *r, const char **at, int operand, int rank) {
  td_contraction *c = r->c;
  uint8_t labels[sizeof((td_arg *)NULL)->text];
  int count = 0, dots = -1;
  for (; **at && **at != ',' && strncmp(*at, "->", 2); ++*at) {
    if (isspace((unsigned char)**at)) continue;
    if (isalpha((unsigned char)**at) && (unsigned char)**at < 128) {
      if (!letter_label(r, **at, &labels[count])) return false;
      r->uses[labels[count++]]++;
    } else if (!strncmp(*at, "...", 3) && dots < 0) {
      dots = count;
      *at += 2;
    } else return complain(r, "'%c' in the subscripts: letters, ',', '...' and one '->' may stand there", **at);
  }
  int hidden = rank - count; // axes that the dots stand for
  if (hidden < 0 || (hidden > 0 && dots < 0)) {
    snprintf(r->problem, TD_PROBLEM_TEXT, "operand %d has rank %d, and its subscripts name %d axes", operand, rank,
             count);
    return false;
  }
  if (!dots_labels(r, hidden)) return false;
  c->rank[operand] = rank;
  for (int i = 0, from = 0; i < rank; i++) {
    bool dotted = dots >= 0 && i >= dots && i < dots + hidden;
    c->labels[operand][i] = dotted ? r->dots[dots + hidden - 1 - i] : labels[from++];
  }
  return true;
}

static bool add_result(reading *r, uint8_t label) {
  td_contraction *c = r->c;
  if (!result_fits(c->out_rank + 1, r->problem)) return false;
  c->out[c->out_rank++] = label;
  return true;
}

static bool add_dots(reading *r) {
  for (int i = r->dots_rank; i-- > 0;)
    if (!add_result(r, r->dots[i])) return false;
  return true;
}

static bool implicit_result(reading *r) { // the axes of "...", then letters that stand once, in order
  if (!add_dots(r)) return false;
  for (int letter = 'A'; letter <= 'z'; letter++)
    if (r->label[letter] >= 0 && r->uses[r->label[letter]] == 1 && !add_result(r, (uint8_t)r->label[letter]))
      return false;
  return true;
}

static bool explicit_result(reading *r, const char *at) {
  bool dots = false, seen[TD_LABELS_MAX] = {false};
  for (; *at; at++) {
    if (isspace((unsigned char)*at)) continue;
    if (!strncmp(at, "...", 3) && !dots) {
      dots = true;
      at += 2;
      if (!add_dots(r)) return false;
      continue;
    }
    if (!isalpha((unsigned char)*at) || (unsigned char)*at > 127)
      return complain(r, "'%c' behind '->': letters and '...' may stand there", *at);
    int label = r->label[(int)*at];
    if (label < 0) return complain(r, "the result has '%c', which no operand has", *at);
    if (seen[label]) return complain(r, "the result has '%c' twice", *at);
    seen[label] = true;
    if (!add_result(r, (uint8_t)label)) return false;
  }
  return dots || !r->dots_rank ||
         complain(r, "the result lacks '...', which stands for %d axes of the operands", r->dots_rank);
}

static bool einsum_labels(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem) {
  const char *at = args[0].text;
  reading r = {.c = c, .problem = problem};
  memset(r.label, -1, sizeof r.label);
  c->label_count = c->out_rank = c->count = 0;
  int terms = 1;
  for (const char *comma = at; *comma && strncmp(comma, "->", 2); comma++) terms += *comma == ',';
  if (terms != count) {
    snprintf(problem, TD_PROBLEM_TEXT, "the subscripts \"%s\" are for %d operand%s, and %d %s given", at, terms,
             terms == 1 ? "" : "s", count, count == 1 ? "is" : "are");
    return false;
  }
  for (; c->count < count; c->count++) {
    if (c->count) at++;
    if (!read_term(&r, &at, c->count, in[c->count].rank)) return false;
  }
  return *at ? explicit_result(&r, at + 2) : implicit_result(&r);
}
CONTRACTION(einsum)

static const td_op einsum = {
    .name = "einsum",
    .params = {{.name = "operands", .kind = TD_PARAM_TENSORS_SPREAD},
               {.name = "subscripts", .kind = TD_PARAM_TEXT, .required = true}},
    .kind = TD_KIND_GEMM,
    .flags = TD_MULTILINEAR,
    .infer = einsum_infer,
    .kernel = einsum_kernel,
    .workspace = einsum_workspace,
    .vjp = einsum_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc =
        "Sum of products, as the subscripts say: einsum(\"ij,jk->ik\", a, b). A letter for each axis, operands "
        "separated "
        "by commas; axes with one letter go together, a letter that stands twice in one operand takes its diagonal, "
        "and "
        "what the result lacks is summed. Without \"->\" the result has the letters that stand once, in alphabetical "
        "order. \"...\" stands for the other axes, which broadcast, as axes of size 1 do. NumPy's rules.\n"
        "Products are matrix products where they can be; of several operands the pair that makes the smallest tensor "
        "goes first.\nGradient: for each operand the einsum of the cotangent with the others.",
    .example = "einsum(\"ij,j->i\", tensor([[1., 2.], [3., 4.]]), tensor([10., 1.])).tolist()  # [12.0, 34.0]",
    .source = "NumPy's einsum",
    .samples = TD_SAMPLES{{"3,4; 4,2", "subscripts=\"ij,jk->ik\"", -2, 2, NULL},
                          {"3,4; 4,2", "subscripts=\"ij,jk\"", -2, 2, NULL},
                          {"3,4; 2,4", "subscripts=\"ij,kj->ki\"", -2, 2, NULL},
                          {"2,3,4; 2,4,2", "subscripts=\"bij,bjk->bik\"", -2, 2, NULL},
                          {"2,3,4; 2,5,4", "subscripts=\"bij,bkj->kbi\"", -2, 2, NULL},
                          {"3,3", "subscripts=\"ii\"", -2, 2, NULL},
                          {"3,3", "subscripts=\"ii->i\"", -2, 2, NULL},
                          {"2,2,3", "subscripts=\"iij->ij\"", -2, 2, NULL},
                          {"2,3", "subscripts=\"ba\"", -2, 2, NULL},
                          {"2,3", "subscripts=\"ij->\"", -2, 2, NULL},
                          {"2,3", "subscripts=\"ij->j\"", -2, 2, NULL},
                          {"3; 4", "subscripts=\"i,j->ij\"", -2, 2, NULL},
                          {"3; 3", "subscripts=\"i,i\"", -2, 2, NULL},
                          {"3; 3", "subscripts=\"i,i->i\"", -2, 2, NULL},
                          {"2,3,4; 4,5", "subscripts=\"...j,jk->...k\"", -2, 2, NULL},
                          {"2,1,3; 4,3", "subscripts=\"...i,...i->...\"", -2, 2, NULL},
                          {"2,3; 3,4; 4,2", "subscripts=\"ij,jk,kl->il\"", -2, 2, NULL},
                          {"2,3; 3,4; 4,2", "subscripts=\"ij,jk,ki\"", -2, 2, NULL},
                          {"5; 5,2; 5,3; 4", "subscripts=\"n,ni,nj,k->ij\"", -2, 2, NULL},
                          {"2,1; 3,4", "subscripts=\"ij,jk->ik\"", -2, 2, NULL},
                          {"2,3,2; 2", "subscripts=\"iji,i->ji\"", -2, 2, NULL},
                          {"-; 2,3", "subscripts=\",ij->ji\"", -2, 2, NULL},
                          {"2,3; 2", "subscripts=\"ij,k->j\"", -2, 2, NULL},
                          {"0,3; 3,2", "subscripts=\"ij,jk->ik\"", -2, 2, NULL},
                          {"2,0; 0,3", "subscripts=\"ij,jk->ik\"", -2, 2, NULL},
                          {"2,3; 3,2", "subscripts=\"ij,jk->ik\"", -9, 9, "int64; int64"},
                          {"2,3; 3", "subscripts=\"ij,j->\"", 0, 1, "bool; int64"},
                          TD_SAMPLES_END},
    .tolerance = 1e-12,
};

td_tensor *td_einsum(td_scope *s, const char *subscripts, int count, td_tensor *const *in) {
  td_arg arg = {.given = 1};
  td_tensor *out[TD_OUTPUT_MAX];
  snprintf(arg.text, sizeof arg.text, "%s", subscripts);
  return td_scope_apply_all(s, &einsum, &arg, count, in, out) ? NULL : out[0];
}

// ---- tensordot ----

static bool pair_axes(td_contraction *c, int first, int second, char *problem) {
  const int given[2] = {first, second};
  int axes[2];
  for (int k = 0; k < 2; k++) {
    axes[k] = given[k] < 0 ? given[k] + c->rank[k] : given[k];
    if (axes[k] < 0 || axes[k] >= c->rank[k]) {
      snprintf(problem, TD_PROBLEM_TEXT, "axis %d is out of range for %s of rank %d", given[k], k ? "b" : "a",
               c->rank[k]);
      return false;
    }
  }
  bool used = c->labels[1][axes[1]] < c->rank[0];
  for (int i = 0; i < c->rank[1]; i++) used |= c->labels[1][i] == c->labels[0][axes[0]];
  if (used) {
    snprintf(problem, TD_PROBLEM_TEXT, "axis %d of a or axis %d of b is named twice", axes[0], axes[1]);
    return false;
  }
  unite(c, axes[0], axes[1]);
  return true;
}

static bool exact_sizes(const td_contraction *c, const td_meta *in,
                        char *problem) { // no broadcasting along paired axes
  for (int i = 0; i < c->rank[0]; i++)
    for (int j = 0; j < c->rank[1]; j++) {
      if (c->labels[0][i] != c->labels[1][j] || in[0].shape[i] == in[1].shape[j]) continue;
      snprintf(problem, TD_PROBLEM_TEXT, "axis %d of a has size %lld, axis %d of b %lld", i, (long long)in[0].shape[i],
               j, (long long)in[1].shape[j]);
      return false;
    }
  return true;
}

static bool tensordot_labels(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem) {
  const td_arg *axes = &args[0];
  (void)count;
  label_apart(c, in);
  int pairs = axes->count < 0 ? axes->pairs[0][0] : axes->count;
  if (pairs < 0 || (axes->count < 0 && (pairs > in[0].rank || pairs > in[1].rank))) {
    snprintf(problem, TD_PROBLEM_TEXT, "%d axes can't be summed: a has rank %d and b %d", pairs, in[0].rank,
             in[1].rank);
    return false;
  }
  for (int i = 0; i < pairs; i++) {
    int first = axes->count < 0 ? in[0].rank - pairs + i : axes->pairs[i][0];
    if (!pair_axes(c, first, axes->count < 0 ? i : axes->pairs[i][1], problem)) return false;
  }
  return exact_sizes(c, in, problem) && keep_unpaired(c, problem);
}
CONTRACTION(tensordot)

#define TWO_PARAMS TD_TENSOR_PARAM("a"), TD_TENSOR_PARAM("b")

static const td_op tensordot = {
    .name = "tensordot",
    .params = {TWO_PARAMS,
               {.name = "axes",
                .kind = TD_PARAM_PAIRS,
                .fallback = {.given = 1, .count = -1, .pairs = {{2}}},
                .alias = TD_ALIAS("dims")}},
    .kind = TD_KIND_GEMM,
    .flags = TD_MULTILINEAR,
    .infer = tensordot_infer,
    .kernel = tensordot_kernel,
    .workspace = tensordot_workspace,
    .vjp = tensordot_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc =
        "Sum of products over pairs of axes: the last axes of a with the first of b where axes is a number (0 makes "
        "the "
        "outer product), or the axes of a in the first tuple with those of b in the second. The result has a's other "
        "axes, then b's.\nGradient: tensordots of the cotangent with the other operand.",
    .example = "tensordot(ones((2, 3, 4)), ones((3, 4, 5))).shape  # (2, 5)",
    .source = "NumPy's tensordot",
    .samples = TD_SAMPLES{{"2,3,4; 3,4,2", NULL, -2, 2, NULL},
                          {"2,3; 3,2", "axes=1", -2, 2, NULL},
                          {"2; 3", "axes=0", -2, 2, NULL},
                          {"2,3,4; 4,5,2", "axes=((0, 2), (2, 0))", -2, 2, NULL},
                          {"2,3; 3,2", "axes=((-1,), (0,))", -2, 2, NULL},
                          {"2,0; 0,3", "axes=1", -2, 2, NULL},
                          {"2,3; 3,2", "axes=1", -9, 9, "int64; int64"},
                          TD_SAMPLES_END},
};

// ---- dot, inner, vdot, outer ----

// NumPy's: the last axis of a with the last but one of b; numbers multiply.
static bool dot_labels(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem) {
  (void)args, (void)count;
  label_apart(c, in);
  if (in[0].rank && in[1].rank) unite(c, in[0].rank - 1, in[1].rank == 1 ? 0 : in[1].rank - 2);
  return exact_sizes(c, in, problem) && keep_unpaired(c, problem);
}
CONTRACTION(dot)

static bool inner_labels(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem) {
  (void)args, (void)count;
  label_apart(c, in);
  if (in[0].rank && in[1].rank) unite(c, in[0].rank - 1, in[1].rank - 1);
  return exact_sizes(c, in, problem) && keep_unpaired(c, problem);
}
CONTRACTION(inner)

static bool vdot_labels(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem) {
  (void)args, (void)count;
  if (!td_shape_equal(in[0].rank, in[0].shape, in[1].rank, in[1].shape)) {
    snprintf(problem, TD_PROBLEM_TEXT, "a and b must have one shape");
    return false;
  }
  label_apart(c, in);
  for (int i = 0; i < in[0].rank; i++) unite(c, i, i);
  return keep_unpaired(c, problem);
}
CONTRACTION(vdot)

static bool outer_labels(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem) {
  (void)args, (void)count;
  for (int k = 0; k < 2; k++)
    if (in[k].rank != 1) {
      snprintf(problem, TD_PROBLEM_TEXT, "%s must be a vector, and has rank %d; flatten() makes it one", k ? "b" : "a",
               in[k].rank);
      return false;
    }
  label_apart(c, in);
  return keep_unpaired(c, problem);
}
CONTRACTION(outer)

#define PRODUCT_ROW(NAME, ALIASES, MODULE, DOC, EXAMPLE, ...)                     \
  static const td_op NAME = {                                                     \
      .name = #NAME,                                                              \
      .alias = ALIASES,                                                           \
      .params = {TWO_PARAMS},                                                     \
      .kind = TD_KIND_GEMM,                                                       \
      .flags = TD_MULTILINEAR,                                                    \
      .method = true,                                                             \
      .infer = NAME##_infer,                                                      \
      .kernel = NAME##_kernel,                                                    \
      .workspace = NAME##_workspace,                                              \
      .vjp = NAME##_vjp,                                                          \
      .saves = TD_SAVES_IN0 | TD_SAVES_IN1,                                       \
      .module = MODULE,                                                           \
      .doc = DOC "\nGradient: products of the cotangent with the other operand.", \
      .example = EXAMPLE,                                                         \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                         \
  };

PRODUCT_ROW(
    dot, NULL, NULL,
    "Product of two vectors (a number), of matrices, or of tensors over the last axis of a and the last but one of "
    "b; numbers multiply. Unlike matmul, leading axes don't go together: the result has all of a's, then all of b's.",
    "dot(tensor([1., 2.]), tensor([3., 4.])).item()  # 11.0", {"3; 3", NULL, -2, 2, NULL},
    {"2,3; 3,2", NULL, -2, 2, NULL}, {"2,3; 3", NULL, -2, 2, NULL}, {"2,3; 4,3,2", NULL, -2, 2, NULL},
    {"-; 2,3", NULL, -2, 2, NULL}, {"0; 0", NULL, -2, 2, NULL}, {"3; 3", NULL, -9, 9, "int64; int64"})
PRODUCT_ROW(inner, NULL, NULL,
            "Sum of products over the last axes of a and b, for each pair of the other axes; numbers multiply.",
            "inner(tensor([1., 2.]), tensor([3., 4.])).item()  # 11.0", {"3; 3", NULL, -2, 2, NULL},
            {"2,3; 4,3", NULL, -2, 2, NULL}, {"-; 2,3", NULL, -2, 2, NULL}, {"2,0; 3,0", NULL, -2, 2, NULL})
PRODUCT_ROW(vdot, NULL, NULL, "Sum of the products of all elements of two tensors of one shape.",
            "vdot(tensor([[1., 2.]]), tensor([[3., 4.]])).item()  # 11.0", {"3; 3", NULL, -2, 2, NULL},
            {"2,3; 2,3", NULL, -2, 2, NULL}, {"0; 0", NULL, -2, 2, NULL})
PRODUCT_ROW(outer, TD_ALIAS("ger"), "linalg", "Products of all pairs of elements of two vectors, a matrix.",
            "outer(tensor([1., 2.]), tensor([3., 4.])).tolist()  # [[3.0, 4.0], [6.0, 8.0]]",
            {"3; 2", NULL, -2, 2, NULL}, {"1; 4", NULL, -2, 2, NULL}, {"0; 2", NULL, -2, 2, NULL},
            {"3; 2", NULL, -9, 9, "int64; int64"})

// ---- kron ----

// Axes are paired from the last; those that an operand lacks have size 1. The result's axis is a pair merged.
static bool kron_labels(const td_arg *args, int count, const td_meta *in, td_contraction *c, char *problem) {
  (void)args, (void)count;
  int rank = in[0].rank > in[1].rank ? in[0].rank : in[1].rank;
  if (in[0].rank + in[1].rank > TD_RANK_MAX) {
    snprintf(problem, TD_PROBLEM_TEXT, "the ranks of a and b are more than %d together", TD_RANK_MAX);
    return false;
  }
  label_apart(c, in);
  for (int i = 0; i < rank; i++)
    for (int k = 0; k < 2; k++) {
      int axis = i - rank + in[k].rank;
      if (axis >= 0) c->out[c->out_rank++] = c->labels[k][axis];
    }
  return true;
}
CONTRACTION_KERNELS(kron)

static int kron_infer(td_infer *infer) {
  td_contraction c;
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  int code = contraction_infer(infer, kron_labels, &c), rank = a->rank > b->rank ? a->rank : b->rank;
  if (code) return code;
  infer->out[0].rank = (uint8_t)rank;
  for (int i = 0; i < rank; i++) {
    int in_a = i - rank + a->rank, in_b = i - rank + b->rank;
    infer->out[0].shape[i] = (in_a >= 0 ? a->shape[in_a] : 1) * (in_b >= 0 ? b->shape[in_b] : 1);
  }
  return TD_OK;
}

PRODUCT_ROW(kron, NULL, NULL,
            "Kronecker product: each element of a times all of b, in blocks. Axes are paired from the last one.",
            "kron(tensor([1., 10.]), tensor([1., 2.])).tolist()  # [1.0, 2.0, 10.0, 20.0]",
            {"2,3; 3,2", NULL, -2, 2, NULL}, {"2; 3", NULL, -2, 2, NULL}, {"3; 2,2", NULL, -2, 2, NULL},
            {"2,1,2; 1,3,2", NULL, -2, 2, NULL}, {"-; 2", NULL, -2, 2, NULL}, {"0,2; 2,2", NULL, -2, 2, NULL})

// ---- trace ----

enum { OFFSET, AXIS1, AXIS2 };

static int trace_axes(td_infer *infer, int axes[2]) {
  int rank = infer->in[0].rank, code = TD_OK;
  if (rank < 2) return td_infer_fail(infer, TD_ERROR_SHAPE, "x must have rank 2 or more, and has rank %d", rank);
  for (int k = 0; k < 2 && !code; k++) code = td_infer_axis(infer, infer->args[AXIS1 + k].i, rank, &axes[k]);
  if (!code && axes[0] == axes[1]) return td_infer_fail(infer, TD_ERROR_VALUE, "axis1 and axis2 are both %d", axes[0]);
  return code;
}

static int trace_infer(td_infer *infer) {
  int axes[2];
  int code = trace_axes(infer, axes);
  td_meta *out = &infer->out[0];
  out->rank = 0;
  out->dtype = infer->in[0].dtype;
  if (td_dtype_is_float(out->dtype) == false) out->dtype = TD_INT64;
  for (int i = 0; i < infer->in[0].rank && !code; i++)
    if (i != axes[0] && i != axes[1]) out->shape[out->rank++] = infer->in[0].shape[i];
  return code;
}

typedef struct diagonal {
  int axis1, axis2;
  int64_t first, count, step; // elements from x's start to the first, how many there are, and from one to the next
} diagonal;

static diagonal diagonal_of(const td_call *call) {
  const td_view *x = &call->in[0];
  int64_t offset = call->args[OFFSET].i;
  diagonal d = {.axis1 = (int)call->args[AXIS1].i, .axis2 = (int)call->args[AXIS2].i};
  if (d.axis1 < 0) d.axis1 += x->rank;
  if (d.axis2 < 0) d.axis2 += x->rank;
  int64_t rows = x->shape[d.axis1], columns = x->shape[d.axis2];
  if (offset >= columns || offset <= -rows) return d;
  d.first = offset > 0 ? offset * x->strides[d.axis2] : -offset * x->strides[d.axis1];
  int64_t down = rows - (offset < 0 ? -offset : 0), along = columns - (offset > 0 ? offset : 0);
  d.count = down < along ? down : along;
  d.step = x->strides[d.axis1] + x->strides[d.axis2];
  return d;
}

static double float_sum(const td_view *x, const char *data, int64_t count, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++)
    sum += x->dtype == TD_FLOAT32 ? (double)((const float *)data)[i * step] : ((const double *)data)[i * step];
  return sum;
}

static int64_t int_sum(const td_view *x, const char *data, int64_t count, int64_t step) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t element = 0;
    td_cast_run(&element, TD_INT64, data + i * step * td_dtype_bytes(x->dtype), x->dtype, 0, 1, false);
    sum += (uint64_t)element;
  }
  return (int64_t)sum;
}

static int trace_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  diagonal d = diagonal_of(call);
  for (int64_t index = 0; index < out->size; index++) {
    int64_t rest = index, at = d.first;
    for (int i = x->rank; i-- > 0;) {
      if (i == d.axis1 || i == d.axis2) continue;
      at += rest % x->shape[i] * x->strides[i];
      rest /= x->shape[i];
    }
    const char *data = x->data + at * td_dtype_bytes(x->dtype);
    if (out->dtype == TD_FLOAT32) ((float *)out->data)[index] = (float)float_sum(x, data, d.count, d.step);
    else if (out->dtype == TD_FLOAT64) ((double *)out->data)[index] = float_sum(x, data, d.count, d.step);
    else ((int64_t *)out->data)[index] = int_sum(x, data, d.count, d.step);
  }
  return TD_OK;
}

static int trace_vjp(td_rule *rule) { // the cotangent times a matrix with ones on the diagonal
  td_scope *s = &rule->scope;
  const td_meta *x = &rule->in_meta[0];
  int axes[TD_RANK_MAX], rank = x->rank, other = 0;
  int first = (int)rule->args[AXIS1].i, second = (int)rule->args[AXIS2].i;
  if (first < 0) first += rank;
  if (second < 0) second += rank;
  for (int i = 0; i < rank; i++) axes[i] = i == first ? rank - 2 : i == second ? rank - 1 : other++;
  td_tensor *ones = td_eye_of(s, x->shape[first], x->shape[second], rule->args[OFFSET].i, x->dtype);
  td_tensor *product = td_multiply(s, td_as_numbers(s, rule->cotangent[0]), ones);
  rule->din[0] = td_permute(s, product, axes);
  return TD_OK;
}

static const td_op trace = {
    .name = "trace",
    .params = {TD_X,
               {.name = "offset", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0)},
               {.name = "axis1", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(0)},
               {.name = "axis2", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(1)}},
    .kind = TD_KIND_REDUCE,
    .flags = TD_LINEAR,
    .method = true,
    .infer = trace_infer,
    .kernel = trace_kernel,
    .vjp = trace_vjp,
    .module = "linalg",
    .doc = "Sum of the diagonal of the matrices of axis1 and axis2, offset places above the main one (below where "
           "negative). Integers and bool sum as int64.\nGradient: c on that diagonal, 0 elsewhere.",
    .example = "trace(tensor([[1., 2.], [3., 4.]])).item()  # 5.0",
    .source = "NumPy's trace",
    .samples = TD_SAMPLES{{"3,3", NULL, -2, 2, NULL},
                          {"2,4", "offset=1", -2, 2, NULL},
                          {"4,2", "offset=-3", -2, 2, NULL},
                          {"2,3,4", "axis1=-1, axis2=0", -2, 2, NULL},
                          {"2,2", "offset=5", -2, 2, NULL},
                          {"0,3", NULL, -2, 2, NULL},
                          {"3,3", NULL, -9, 9, "int32"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_einsum[] = {&einsum, &tensordot, &dot, &inner, &vdot, &outer, &kron, &trace, NULL};
