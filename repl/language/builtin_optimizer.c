// Fused updates of Variables: what the optimizers of the library call. All arguments are checked before the first
// Variable changes, so an update happens whole or not at all.
#include "engine/ops/optimizer.h"
#include "repl/language/tensors.h"

// ---- arguments ----

static bool variable_list(td_interpreter *I, td_value v, const char *who, const char *what, int64_t count) {
  if (!td_is(v, &td_list_type) || (count >= 0 && td_as_list(v)->count != count)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: %s must be a list with one entry for each Variable", who, what);
    return false;
  }
  return true;
}

static bool all_variables(td_interpreter *I, td_value list, const char *who, const char *what) {
  for (int64_t i = 0; i < td_as_list(list)->count; i++)
    if (!td_is(td_as_list(list)->items[i], &td_variable_type)) {
      td_raise(I, TD_CLASS_TYPE_ERROR, "%s: %s[%lld] is %s, not a Variable", who, what, (long long)i,
               td_type_name(I, td_as_list(list)->items[i]));
      td_raise_hint(I, "only a Variable can be updated: w = Variable(value)");
      return false;
    }
  return true;
}

static bool gradient_fits(td_interpreter *I, const char *who, int64_t i, td_value gradient,
                          const td_variable *variable) {
  const td_tensor *g = td_tensor_of(gradient), *value = variable->value;
  if (!g) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: gradient %lld is %s, not a tensor", who, (long long)i,
             td_type_name(I, gradient));
    return false;
  }
  if (!td_dtype_is_float(value->dtype) || td_dtype_is_half(value->dtype)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: Variable %lld is %s; float32 and float64 can be updated", who, (long long)i,
             td_dtype_name(value->dtype));
    return false;
  }
  if (td_shape_equal(g->rank, g->shape, value->rank, value->shape)) return true;
  td_text shapes = {0};
  td_shape_print(&shapes, value->rank, value->shape);
  td_text_add(&shapes, ", its gradient ");
  td_shape_print(&shapes, g->rank, g->shape);
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: Variable %lld has shape %s", who, (long long)i,
           shapes.data ? shapes.data : "");
  td_raise_hint(I, "gradients and Variables must stand in the same order");
  td_text_clear(&shapes);
  return false;
}

static bool check_update(td_interpreter *I, const char *who, td_value variables, td_value gradients) {
  if (!variable_list(I, variables, who, "variables", -1) || !all_variables(I, variables, who, "variables"))
    return false;
  int64_t count = td_as_list(variables)->count;
  if (!variable_list(I, gradients, who, "gradients", count)) return false;
  for (int64_t i = 0; i < count; i++)
    if (!gradient_fits(I, who, i, td_as_list(gradients)->items[i], td_unbox_variable(td_as_list(variables)->items[i])))
      return false;
  if (td_recording(I->context))
    td_warn(I, "Variables are updated while a tape records: leave its with block first, or update inside no_grad()");
  return true;
}

static double number(td_interpreter *I, td_value v, bool *ok) { return *ok ? td_to_double(I, v, ok) : 0; }

// ---- Variables that can be written in place ----

// Makes the Variable's value one that nobody else sees: it is used as it is when that holds already, else copied.
static bool make_sole(td_interpreter *I, td_variable *variable) {
  td_tensor *value = variable->value;
  bool alone =
      atomic_load(&value->refs) == 1 && atomic_load(&value->storage->refs) == 1 && td_tensor_is_contiguous(value);
  if (!alone) {
    td_tensor *copy = td_tensor_new(I->context, value->dtype, value->rank, value->shape);
    if (!copy) return false;
    td_elements_copy(I->context->pool, copy->data, value->data, td_dtype_bytes(value->dtype), value->rank, value->shape,
                     value->strides);
    td_tensor_unref(value);
    variable->value = copy;
    return true;
  }
  td_origin_unref(value->origin);
  value->origin = NULL;
  return true;
}

static bool make_all_sole(td_interpreter *I, td_value list) {
  for (int64_t i = 0; i < td_as_list(list)->count; i++)
    if (!make_sole(I, td_unbox_variable(td_as_list(list)->items[i]))) {
      td_raise_engine(I);
      return false;
    }
  return true;
}

static td_tensor *value_at(td_value list, int64_t i) { return td_unbox_variable(td_as_list(list)->items[i])->value; }

static void note_assigned(td_interpreter *I, td_value variables) {
  for (int64_t i = 0; i < td_as_list(variables)->count; i++) {
    td_variable *variable = td_unbox_variable(td_as_list(variables)->items[i]);
    variable->assigned = I->context->place;
    td_tape_note_cut(I->context, TD_CUT_ASSIGN, NULL, variable);
  }
}

// ---- builtins ----

static td_value builtin_apply_adam(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  bool ok = true;
  td_value variables = a[0], m = a[1], v = a[2], gradients = a[3];
  if (!check_update(I, "Adam", variables, gradients)) return TD_NIL;
  int64_t count = td_as_list(variables)->count;
  if (!variable_list(I, m, "Adam", "m", count) || !variable_list(I, v, "Adam", "v", count) ||
      !all_variables(I, m, "Adam", "m") || !all_variables(I, v, "Adam", "v"))
    return TD_NIL;
  td_adam settings = {.step = (int64_t)number(I, a[4], &ok),
                      .learning_rate = number(I, a[5], &ok),
                      .beta1 = number(I, a[6], &ok),
                      .beta2 = number(I, a[7], &ok),
                      .eps = number(I, a[8], &ok),
                      .weight_decay = number(I, a[9], &ok)};
  if (!ok || !make_all_sole(I, variables) || !make_all_sole(I, m) || !make_all_sole(I, v)) return TD_NIL;
  settings.decoupled = td_truth(I, a[10]) == 1;
  for (int64_t i = 0; i < count; i++)
    if (td_adam_update_in_place(I->context, value_at(variables, i), value_at(m, i), value_at(v, i),
                                td_tensor_of(td_as_list(gradients)->items[i]), &settings) != TD_OK)
      return td_raise_engine(I);
  note_assigned(I, variables);
  return TD_NONE;
}

static td_value builtin_apply_sgd(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  bool ok = true;
  td_value variables = a[0], velocities = a[1], gradients = a[2];
  if (!check_update(I, "SGD", variables, gradients)) return TD_NIL;
  bool moving = td_is(velocities, &td_list_type) && td_as_list(velocities)->count > 0;
  if (moving && (!variable_list(I, velocities, "SGD", "velocities", td_as_list(variables)->count) ||
                 !all_variables(I, velocities, "SGD", "velocities")))
    return TD_NIL;
  double rate = number(I, a[3], &ok), momentum = number(I, a[4], &ok);
  int nesterov = td_truth(I, a[5]);
  if (!ok || nesterov < 0 || !make_all_sole(I, variables) || (moving && !make_all_sole(I, velocities))) return TD_NIL;
  for (int64_t i = 0; i < td_as_list(variables)->count; i++)
    if (td_sgd_update_in_place(I->context, value_at(variables, i), moving ? value_at(velocities, i) : NULL,
                               td_tensor_of(td_as_list(gradients)->items[i]), rate, momentum, nesterov) != TD_OK)
      return td_raise_engine(I);
  note_assigned(I, variables);
  return TD_NONE;
}

const td_method td_optimizer_builtins[] = {
    {"apply_adam", "(variables, m, v, gradients, step, lr, beta_1, beta_2, eps, weight_decay=0.0, decoupled=True)",
     builtin_apply_adam,
     "One step of Adam on lists of Variables, in place: what Adam(...).apply calls. m and v are Variables too; step "
     "counts from 1."},
    {"apply_sgd", "(variables, velocities, gradients, lr, momentum=0.0, nesterov=False)", builtin_apply_sgd,
     "One step of gradient descent on lists of Variables, in place: what SGD(...).apply calls. velocities is [] "
     "without momentum."},
    {NULL, NULL, NULL, NULL}};
