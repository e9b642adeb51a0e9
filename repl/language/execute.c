// Statements: one function for each kind of node. What it returns says how control goes on (td_flow): the next
// statement, out of or on with a loop, out of the function with frame->returned set, or to a handler with the
// exception in flight.
#include "engine/base/memory.h"
#include "repl/language/core.h"

static int execute_block(td_interpreter *I, const td_node *n) {
  td_node *const *statement = n->items, *const *end = statement + n->count;
  for (; statement < end; statement++) {
    int flow = (*statement)->execute(I, *statement);
    if (TD_UNLIKELY(flow != TD_FLOW_NEXT)) return flow;
  }
  return TD_FLOW_NEXT;
}

static int execute_expression(td_interpreter *I, const td_node *n) {
  td_value v = n->a->evaluate(I, n->a);
  if (TD_UNLIKELY(td_is_nil(v))) return TD_FLOW_ERROR;
  td_unref(v);
  return TD_FLOW_NEXT;
}

static __attribute__((noinline)) int truth_of(td_interpreter *I, const td_node *n, td_value v) { // takes over v
  if (td_is_nil(v)) return -1;
  td_mark(I, n);
  int truth = td_truth(I, v);
  td_unref(v);
  return truth;
}

// 0, 1; -1: exception
static inline int test(td_interpreter *I, const td_node *n) {
  td_value v = n->evaluate(I, n);
  return TD_LIKELY(v.tag == TD_TAG_BOOL) ? (int)v.i : truth_of(I, n, v);
}

static int execute_if(td_interpreter *I, const td_node *n) {
  for (;;) { // an elif is the else branch of the one before
    int truth = test(I, n->a);
    if (truth < 0) return TD_FLOW_ERROR;
    if (truth) return n->b->execute(I, n->b);
    if (!n->c) return TD_FLOW_NEXT;
    if (n->c->kind != TD_NODE_IF) return n->c->execute(I, n->c);
    n = n->c;
  }
}

// What a loop does after its body: true: it goes on.
static inline bool loop_goes_on(td_interpreter *I, int *flow) {
  if (TD_UNLIKELY(*flow != TD_FLOW_NEXT && *flow != TD_FLOW_CONTINUE)) return false;
  if (TD_LIKELY(!td_interrupted(I))) return true;
  *flow = TD_FLOW_ERROR;
  return false;
}

static int execute_while(td_interpreter *I, const td_node *n) {
  int truth;
  I->frame->call = n; // where an interrupt is, if nothing in the loop calls
  while ((truth = test(I, n->a)) == 1) {
    int flow = execute_block(I, n->b);
    if (!loop_goes_on(I, &flow)) return flow == TD_FLOW_BREAK ? TD_FLOW_NEXT : flow;
  }
  if (truth < 0) return TD_FLOW_ERROR;
  return n->c ? execute_block(I, n->c) : TD_FLOW_NEXT;
}

// ---- iteration ----

static int each_range(td_interpreter *I, const td_range *range, td_step *step, void *state) {
  for (int64_t k = 0; k < range->count; k++) {
    int flow = step(I, state, td_int(range->start + k * range->step));
    if (!loop_goes_on(I, &flow)) return flow;
  }
  return TD_FLOW_NEXT;
}

static int each_list(td_interpreter *I, const td_list *list, td_step *step, void *state) {
  for (int64_t k = 0; k < list->count; k++) {
    int flow = step(I, state, td_ref(list->items[k]));
    if (!loop_goes_on(I, &flow)) return flow;
  }
  return TD_FLOW_NEXT;
}

static int each_tuple(td_interpreter *I, const td_tuple *tuple, td_step *step, void *state) {
  for (int64_t k = 0; k < tuple->count; k++) {
    int flow = step(I, state, td_ref(tuple->items[k]));
    if (!loop_goes_on(I, &flow)) return flow;
  }
  return TD_FLOW_NEXT;
}

static int each_element(td_interpreter *I, td_value iterable, td_step *step, void *state) {
  td_value iterator = td_iterate(I, iterable);
  if (td_is_nil(iterator)) return TD_FLOW_ERROR;
  const td_node *node = I->frame->call;
  const td_type *type = td_type_of(iterator);
  int flow = TD_FLOW_NEXT;
  do {
    I->frame->call = node;
    td_value element = type->next ? type->next(I, iterator) : td_next(I, iterator);
    if (td_is_nil(element)) {
      flow = td_is_nil(I->raised) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
      break;
    }
    flow = step(I, state, element);
  } while (loop_goes_on(I, &flow));
  td_unref(iterator);
  return flow;
}

int td_each(td_interpreter *I, td_value iterable, td_step *step, void *state) {
  if (iterable.tag == TD_TAG_OBJECT) {
    const td_type *type = iterable.o->type;
    int flow;
    td_ref(iterable);
    if (type == &td_range_type) flow = each_range(I, (td_range *)iterable.o, step, state);
    else if (type == &td_list_type) flow = each_list(I, td_as_list(iterable), step, state);
    else if (type == &td_tuple_type) flow = each_tuple(I, td_as_tuple(iterable), step, state);
    else flow = each_element(I, iterable, step, state);
    td_unref(iterable);
    return flow;
  }
  return each_element(I, iterable, step, state);
}

// The slot of a loop's target that is a local name; -1: it is something else.
static int32_t target_slot(const td_node *n) {
  return n->a->kind == TD_NODE_NAME && n->a->scope == TD_SCOPE_LOCAL ? n->a->slot : -1;
}

static inline __attribute__((always_inline)) int for_step(td_interpreter *I, const td_node *n, int32_t target,
                                                          td_value element) {
  if (TD_LIKELY(target >= 0)) {
    td_value *slot = &I->slots[target], old = *slot;
    *slot = element;
    td_unref(old);
  } else if (!td_assign(I, n->a, element)) {
    return TD_FLOW_ERROR;
  }
  return execute_block(I, n->c);
}

static int for_range(td_interpreter *I, const td_node *n, const td_range *range) {
  int64_t value = range->start, step = range->step;
  int32_t target = target_slot(n);
  for (int64_t left = range->count; left > 0; left--) {
    int flow = for_step(I, n, target, td_int(value));
    if (!loop_goes_on(I, &flow)) return flow;
    value = (int64_t)((uint64_t)value + (uint64_t)step);
  }
  return TD_FLOW_NEXT;
}

static int for_list(td_interpreter *I, const td_node *n, const td_list *list) {
  int32_t target = target_slot(n);
  for (int64_t k = 0; k < list->count; k++) {
    int flow = for_step(I, n, target, td_ref(list->items[k]));
    if (!loop_goes_on(I, &flow)) return flow;
  }
  return TD_FLOW_NEXT;
}

static int for_any_step(td_interpreter *I, void *state, td_value element) {
  return for_step(I, state, target_slot(state), element);
}

static int execute_for(td_interpreter *I, const td_node *n) {
  td_value iterable = n->b->evaluate(I, n->b);
  if (td_is_nil(iterable)) return TD_FLOW_ERROR;
  int flow;
  td_mark(I, n->b);
  if (td_is(iterable, &td_range_type)) flow = for_range(I, n, (td_range *)iterable.o);
  else if (td_is(iterable, &td_list_type)) flow = for_list(I, n, td_as_list(iterable));
  else flow = td_each(I, iterable, for_any_step, (void *)n);
  td_unref(iterable);
  if (flow == TD_FLOW_BREAK) return TD_FLOW_NEXT;
  return flow == TD_FLOW_NEXT && n->d ? execute_block(I, n->d) : flow;
}

static int execute_break(td_interpreter *I, const td_node *n) { return (void)I, (void)n, TD_FLOW_BREAK; }
static int execute_continue(td_interpreter *I, const td_node *n) { return (void)I, (void)n, TD_FLOW_CONTINUE; }
static int execute_nothing(td_interpreter *I, const td_node *n) { return (void)I, (void)n, TD_FLOW_NEXT; }

static int execute_return(td_interpreter *I, const td_node *n) {
  td_value v = n->a ? n->a->evaluate(I, n->a) : TD_NONE;
  if (TD_UNLIKELY(td_is_nil(v))) return TD_FLOW_ERROR;
  I->frame->returned = v;
  return TD_FLOW_RETURN;
}

// ---- definitions ----

static bool push_decorators(td_interpreter *I, const td_node *n, td_value *base, int32_t *done) {
  if (!td_stack_room(I, n->count)) return false;
  I->stack_top = base + n->count;
  for (*done = 0; *done < n->count; ++*done) {
    base[*done] = n->items[*done]->evaluate(I, n->items[*done]);
    if (td_is_nil(base[*done])) return false;
  }
  return true;
}

// The last decorator is called first. Takes over v.
static td_value decorate(td_interpreter *I, const td_node *n, td_value *base, td_value v) {
  for (int32_t i = n->count - 1; i >= 0 && !td_is_nil(v); i--) {
    td_mark(I, n->items[i]);
    td_value decorated = td_call_values(I, base[i], 1, &v);
    td_unref(v);
    v = decorated;
  }
  return v;
}

static td_value define_class(td_interpreter *I, const td_node *n);

static int execute_definition(td_interpreter *I, const td_node *n) {
  td_value *base = I->stack_top, v = TD_NIL;
  int32_t done = 0;
  if (push_decorators(I, n, base, &done)) {
    v = n->kind == TD_NODE_CLASS ? define_class(I, n) : td_function_define(I, n->prototype);
    v = decorate(I, n, base, v);
  }
  while (done > 0) td_unref(base[--done]);
  I->stack_top = base;
  return !td_is_nil(v) && td_assign(I, n->a, v) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static bool add_class_attributes(td_interpreter *I, const td_prototype *p, const td_value *slots, td_dict *attributes) {
  if (p->doc && !td_dict_set_str(I, attributes, I->names->doc, td_borrow(p->doc))) return false;
  for (int32_t i = 0; i < p->slot_count; i++)
    if (p->slot_names[i] && !td_is_nil(slots[i]) && !td_dict_set_str(I, attributes, p->slot_names[i], slots[i]))
      return false;
  return true;
}

// Runs the body in slots and makes the class of what they hold then.
static td_value run_class_body(td_interpreter *I, const td_node *n, td_class *base, td_value *slots, td_cell *owner) {
  td_prototype *p = n->prototype;
  td_str *qualified = td_qualified_name(I, p);
  td_dict *attributes = td_dict_new(I);
  td_frame frame = {.prototype = p, .module = I->frame->module, .slots = slots, .call = p->body, .owner = owner};
  td_value class = TD_NIL;
  td_mark(I, n);
  td_value done = qualified && attributes ? td_frame_run(I, &frame, slots + p->slot_count) : TD_NIL;
  if (!td_is_nil(done) && add_class_attributes(I, p, slots, attributes))
    class = td_class_build(I, n->name, base, attributes, frame.module, qualified);
  td_unref(done);
  td_unref(td_from(attributes));
  return class;
}

static td_class *evaluate_base(td_interpreter *I, const td_node *n) { // new reference
  if (!n->b) {
    td_class *object = I->classes[TD_CLASS_OBJECT];
    object->container.object.refs++;
    return object;
  }
  td_value base = n->b->evaluate(I, n->b);
  if (td_is_nil(base)) return NULL;
  if (td_is_class(base)) return td_as_class(base);
  td_raise_at(I, n->b, TD_CLASS_TYPE_ERROR, "the base of class %s is no class but a '%s' object", n->name->data,
              td_type_name(I, base));
  td_unref(base);
  return NULL;
}

static td_value define_class(td_interpreter *I, const td_node *n) {
  td_prototype *p = n->prototype;
  td_class *base = evaluate_base(I, n);
  td_cell *owner = base ? td_cell_new(I, TD_NIL) : NULL;
  td_value *slots = I->stack_top, class = TD_NIL;
  if (owner && td_stack_room(I, p->slot_count) && !td_recursion(I)) {
    for (int32_t i = 0; i < p->slot_count; i++) slots[i] = TD_NIL;
    for (int32_t i = 0; i < p->capture_count; i++) slots[p->captures[i].inner] = td_ref(I->slots[p->captures[i].outer]);
    I->stack_top = slots + p->slot_count;
    class = run_class_body(I, n, base, slots, owner);
    for (int32_t i = 0; i < p->slot_count; i++) td_unref(slots[i]);
    I->stack_top = slots;
    if (!td_is_nil(class)) owner->value = td_ref(class);
  }
  td_unref(td_from(owner));
  td_unref(td_from(base));
  return class;
}

// ---- with ----

static td_value special_of(td_interpreter *I, td_value v, td_str *name) { // bound; NIL without exception: absent
  if (!td_is_instance(v)) return td_attribute_find(I, v, name);
  td_instance *instance = td_as_instance(v);
  td_value found = td_class_find(I, instance->class, name);
  return td_is_nil(found) ? TD_NIL : td_bind_method(I, found, v, instance->class);
}

static int execute_with_item(td_interpreter *I, const td_node *n, int32_t index);

static int run_with_body(td_interpreter *I, const td_node *n, int32_t index, td_value entered) {
  const td_node *target = n->items[index + 1];
  if (!target) td_unref(entered);
  else if (!td_assign(I, target, entered)) return TD_FLOW_ERROR;
  return index + 2 < n->count ? execute_with_item(I, n, index + 2) : execute_block(I, n->c);
}

// Calls __exit__ with what happened; a true result ends an exception.
static int leave_with(td_interpreter *I, const td_node *context, td_value leave, int flow) {
  td_value raised = td_take_raised(I), arguments[3] = {TD_NONE, TD_NONE, TD_NONE};
  if (!td_is_nil(raised)) {
    arguments[0] = (td_value){.tag = TD_TAG_OBJECT, .o = &td_as_instance(raised)->class->container.object};
    arguments[1] = raised;
  }
  td_value handling = I->handling, returned = I->frame->returned;
  if (!td_is_nil(raised)) I->handling = td_ref(raised);
  td_mark(I, context);
  td_value result = td_call_values(I, leave, 3, arguments);
  if (!td_is_nil(raised)) {
    td_unref(I->handling);
    I->handling = handling;
  }
  int truth = td_is_nil(result) ? -1 : td_is_nil(raised) ? 1 : td_truth(I, result);
  td_unref(result);
  if (truth < 0) {
    td_unref(raised);
    if (flow == TD_FLOW_RETURN) td_unref(returned);
    return TD_FLOW_ERROR;
  }
  if (td_is_nil(raised)) return flow;
  if (truth) return td_unref(raised), TD_FLOW_NEXT;
  td_put_raised(I, raised);
  return TD_FLOW_ERROR;
}

static int execute_with_item(td_interpreter *I, const td_node *n, int32_t index) {
  const td_node *context = n->items[index];
  td_value manager = context->evaluate(I, context), enter = TD_NIL, leave = TD_NIL;
  if (td_is_nil(manager)) return TD_FLOW_ERROR;
  td_mark(I, context);
  int flow = TD_FLOW_ERROR;
  enter = special_of(I, manager, I->names->enter);
  if (!td_is_nil(enter)) leave = special_of(I, manager, I->names->exit);
  if (!td_is_nil(leave)) {
    td_value entered = td_call_values(I, enter, 0, NULL);
    if (!td_is_nil(entered)) flow = leave_with(I, context, leave, run_with_body(I, n, index, entered));
  } else if (td_is_nil(I->raised)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object does not support the context manager protocol%s",
             td_type_name(I, manager), td_is_nil(enter) ? "" : " (missed __exit__ method)");
    if (td_type_of(manager)->call && !td_is_instance(manager))
      td_raise_hint(I, "with needs what its call returns: write the parentheses, as in with GradientTape() as tape:");
  }
  td_unref(enter);
  td_unref(leave);
  td_unref(manager);
  return flow;
}

static int execute_with(td_interpreter *I, const td_node *n) { return execute_with_item(I, n, 0); }

// ---- exceptions ----

static int run_handler(td_interpreter *I, const td_node *handler, td_value exception) { // borrows exception
  if (handler->b && !td_assign(I, handler->b, td_ref(exception))) return TD_FLOW_ERROR;
  td_value outer = I->handling;
  I->handling = td_ref(exception);
  int flow = execute_block(I, handler->c);
  td_unref(I->handling);
  I->handling = outer;
  if (handler->b) { // the name is gone after the block, if it is still there
    td_value raised = td_take_raised(I);
    if (!td_delete(I, handler->b)) td_clear_raised(I);
    td_put_raised(I, raised);
  }
  return flow;
}

static int handle(td_interpreter *I, const td_node *n) {
  td_value exception = td_take_raised(I);
  for (int32_t i = 0; i < n->count; i++) {
    const td_node *handler = n->items[i];
    int matches = 1;
    if (handler->a) {
      td_value outer = I->handling, type;
      I->handling = exception;
      type = handler->a->evaluate(I, handler->a);
      td_mark(I, handler->a);
      matches = td_is_nil(type) ? -1 : td_exception_matches(I, exception, type);
      I->handling = outer;
      td_unref(type);
    }
    if (!matches) continue;
    int flow = matches < 0 ? TD_FLOW_ERROR : run_handler(I, handler, exception);
    td_unref(exception);
    return flow;
  }
  td_put_raised(I, exception);
  return TD_FLOW_ERROR;
}

// A finally block runs whatever happened; what it does itself replaces that.
static int run_finally(td_interpreter *I, const td_node *block, int flow) {
  td_value raised = td_take_raised(I), returned = flow == TD_FLOW_RETURN ? I->frame->returned : TD_NIL,
           outer = I->handling;
  if (!td_is_nil(raised)) I->handling = raised;
  int last = execute_block(I, block);
  I->handling = outer;
  if (last != TD_FLOW_NEXT) {
    td_unref(raised);
    td_unref(returned);
    return last;
  }
  td_put_raised(I, raised);
  I->frame->returned = returned;
  return flow;
}

static int execute_try(td_interpreter *I, const td_node *n) {
  int flow = execute_block(I, n->a);
  if (flow == TD_FLOW_ERROR) flow = handle(I, n);
  else if (flow == TD_FLOW_NEXT && n->c) flow = execute_block(I, n->c);
  return n->d ? run_finally(I, n->d, flow) : flow;
}

static bool set_cause(td_interpreter *I, const td_node *n, td_exception *exception) {
  td_value cause = n->evaluate(I, n);
  if (td_is_nil(cause)) return false;
  if (td_is_exception_class(cause)) {
    td_value made = td_call_values(I, cause, 0, NULL);
    td_unref(cause);
    cause = made;
  }
  if (td_is_nil(cause)) return false;
  if (!td_is_none(cause) && !td_is(cause, &td_exception_type)) {
    td_unref(cause);
    td_raise_at(I, n, TD_CLASS_TYPE_ERROR, "exception causes must derive from BaseException");
    return false;
  }
  td_unref(exception->cause);
  exception->cause = cause;
  exception->suppresses = true;
  return true;
}

static int execute_raise(td_interpreter *I, const td_node *n) {
  td_mark(I, n);
  if (!n->a) {
    if (td_is_nil(I->handling)) td_raise_at(I, n, TD_CLASS_RUNTIME_ERROR, "No active exception to reraise");
    else td_put_raised(I, td_ref(I->handling));
    return TD_FLOW_ERROR;
  }
  td_value v = n->a->evaluate(I, n->a);
  td_mark(I, n);
  if (!td_is_nil(v) && td_is_exception_class(v)) {
    td_value made = td_call_values(I, v, 0, NULL);
    td_unref(v);
    v = made;
  }
  if (td_is_nil(v)) return TD_FLOW_ERROR;
  if (!n->b || !td_is(v, &td_exception_type) || set_cause(I, n->b, (td_exception *)v.o)) td_raise_value(I, v);
  td_unref(v);
  return TD_FLOW_ERROR;
}

// The truth of a single comparison; *operands: the tuple of both sides when it is 0.
static int test_comparison(td_interpreter *I, const td_node *n, td_value *operands) {
  td_value a = n->a->evaluate(I, n->a), b = td_is_nil(a) ? TD_NIL : n->items[0]->evaluate(I, n->items[0]);
  if (td_is_nil(b)) return td_unref(a), -1;
  td_mark(I, n);
  td_value result = td_compare_any(I, n->ops[0], a, b);
  int truth = td_is_nil(result) ? -1 : td_truth(I, result);
  td_unref(result);
  if (truth == 0) *operands = td_tuple_pack(I, 2, td_ref(a), td_ref(b));
  td_unref(a);
  td_unref(b);
  return truth == 0 && td_is_nil(*operands) ? -1 : truth;
}

static void raise_assertion(td_interpreter *I, const td_node *n, td_value operands) {
  td_value message = n->b ? n->b->evaluate(I, n->b) : TD_NONE;
  if (td_is_nil(message)) return;
  td_mark(I, n);
  td_tuple *arguments = td_tuple_new(I, n->b ? 1 : 0);
  if (arguments && n->b) arguments->items[0] = td_ref(message);
  td_value exception =
      arguments ? td_exception_new(I, I->classes[TD_CLASS_ASSERTION_ERROR], td_from(arguments)) : TD_NIL;
  if (!td_is_nil(exception)) {
    td_raise_value(I, exception);
    td_raise_evidence(I, operands);
    if (!td_is_nil(operands)) td_report_name_compared(I, n->a);
  }
  td_unref(exception);
  td_unref(td_from(arguments));
  td_unref(message);
}

static int execute_assert(td_interpreter *I, const td_node *n) {
  td_value operands = TD_NIL;
  bool compares = n->a->kind == TD_NODE_COMPARE && n->a->count == 1;
  int truth = compares ? test_comparison(I, n->a, &operands) : test(I, n->a);
  if (truth == 1) return TD_FLOW_NEXT;
  if (truth == 0) raise_assertion(I, n, operands);
  td_unref(operands);
  return TD_FLOW_ERROR;
}
static int execute_delete(td_interpreter *I, const td_node *n) {
  for (int32_t i = 0; i < n->count; i++)
    if (!td_delete(I, n->items[i])) return TD_FLOW_ERROR;
  return TD_FLOW_NEXT;
}

// ---- modules and commands ----

static int execute_command(td_interpreter *I, const td_node *n) {
  td_mark(I, n);
  if (!I->command) {
    td_raise(I, TD_CLASS_RUNTIME_ERROR, "commands (%%, !, ?) need the notebook");
    return TD_FLOW_ERROR;
  }
  td_value v = I->command(I, (char)n->op, td_as_str(n->value)->data);
  td_unref(v);
  return td_is_nil(v) ? TD_FLOW_ERROR : TD_FLOW_NEXT;
}

static td_execute *const executors[TD_NODE_COUNT] = {
    [TD_NODE_BLOCK] = execute_block,
    [TD_NODE_EXPRESSION] = execute_expression,
    [TD_NODE_IF] = execute_if,
    [TD_NODE_WHILE] = execute_while,
    [TD_NODE_FOR] = execute_for,
    [TD_NODE_BREAK] = execute_break,
    [TD_NODE_CONTINUE] = execute_continue,
    [TD_NODE_PASS] = execute_nothing,
    [TD_NODE_RETURN] = execute_return,
    [TD_NODE_FUNCTION] = execute_definition,
    [TD_NODE_CLASS] = execute_definition,
    [TD_NODE_WITH] = execute_with,
    [TD_NODE_TRY] = execute_try,
    [TD_NODE_RAISE] = execute_raise,
    [TD_NODE_ASSERT] = execute_assert,
    [TD_NODE_DELETE] = execute_delete,
    [TD_NODE_GLOBAL] = execute_nothing,
    [TD_NODE_IMPORT] = td_import_execute,
    [TD_NODE_FROM_IMPORT] = td_from_import_execute,
    [TD_NODE_COMMAND] = execute_command,
};

td_execute *td_execute_choose(const td_node *n) {
  if (n->kind == TD_NODE_ASSIGN || n->kind == TD_NODE_AUGMENT || n->kind == TD_NODE_ANNOTATED)
    return td_assign_choose(n);
  return executors[n->kind];
}
