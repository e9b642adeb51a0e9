// Calls: frames, and how arguments reach them. Arguments are evaluated straight onto the value stack, where they become
// the first slots of the callee's frame, so a call of a function allocates nothing.
//  1. base[0..count) on the value stack belongs to the callee, which releases it and puts the stack back at base.
//  2. A callee is held by whoever calls it until it has returned.
//  3. Depth is bounded by depth_limit, by the value stack and by the address that the C stack may reach.
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/habit.h"

bool td_recursion_slow(td_interpreter *I) {
  td_raise(I, TD_CLASS_RECURSION_ERROR, "recursion deeper than %d calls", I->depth);
  return true;
}

static bool too_deep(td_interpreter *I) {
  td_recursion_slow(I);
  td_raise_hint(I, "does the recursion end? a loop has no such limit");
  return true;
}

bool td_stack_room(td_interpreter *I, int64_t values) { return I->stack_end - I->stack_top >= values || !too_deep(I); }

// A debugger sets depth_limit to 0, so that it hears of calls here and calls without one cost nothing more.
static __attribute__((noinline)) bool call_refused_slow(td_interpreter *I, const td_prototype *p, const td_value *top) {
  if (!I->on_call || top > I->stack_end || I->depth >= TD_DEPTH_LIMIT ||
      (char *)__builtin_frame_address(0) < I->stack_limit)
    return too_deep(I);
  I->on_call(I, p);
  return td_interrupted(I);
}

static inline bool call_refused(td_interpreter *I, const td_prototype *p, const td_value *top) {
  if (TD_UNLIKELY(top > I->stack_end || I->depth >= I->depth_limit ||
                  (char *)__builtin_frame_address(0) < I->stack_limit))
    return call_refused_slow(I, p, top);
  return td_interrupted(I);
}

static inline void drop_values(td_value *from, td_value *to) {
  for (; from < to; from++) td_unref(*from);
}

// ---- frames ----

bool td_frame_open(td_interpreter *I, td_prototype *p, td_value *slots, td_cell **captured) {
  for (int32_t i = 0; i < p->cell_count; i++) {
    td_value *slot = &slots[p->cells[i]];
    td_cell *cell = td_cell_new(I, *slot);
    *slot = td_from(cell);
    if (!cell) return false;
  }
  for (int32_t i = 0; i < p->capture_count; i++) {
    td_cell *cell = captured[i];
    cell->container.object.refs++;
    slots[p->captures[i].inner] = td_from(cell);
  }
  return true;
}

static inline td_value run_body(td_interpreter *I, td_frame *frame, const td_node *body, bool is_expression) {
  if (is_expression) return body->evaluate(I, body);
  int flow = TD_FLOW_NEXT;
  for (int32_t i = 0; i < body->count && flow == TD_FLOW_NEXT; i++) flow = body->items[i]->execute(I, body->items[i]);
  if (flow == TD_FLOW_RETURN) return frame->returned;
  return flow == TD_FLOW_ERROR ? TD_NIL : TD_NONE;
}

td_value td_frame_run(td_interpreter *I, td_frame *frame, td_value *after) {
  td_frame *caller = I->frame;
  td_value *top = I->stack_top;
  frame->caller = caller;
  I->frame = frame;
  I->slots = frame->slots;
  I->stack_top = after;
  I->depth++;
  td_value result = run_body(I, frame, frame->prototype->body, frame->prototype->is_expression);
  I->depth--;
  I->frame = caller;
  I->slots = caller->slots;
  I->stack_top = top;
  return result;
}

// slots[0..bound) hold the parameters; the rest is set up here.
static inline __attribute__((always_inline)) td_value run_function(td_interpreter *I, td_function *f, td_value *slots,
                                                                   int32_t bound, bool plain) {
  td_prototype *p = f->prototype;
  td_value *top = slots + p->slot_count;
  td_value result = TD_NIL;
  if (TD_UNLIKELY(call_refused(I, p, top))) {
    drop_values(slots, slots + bound);
    I->stack_top = slots;
    return TD_NIL;
  }
  for (td_value *slot = slots + bound; slot < top; slot++) *slot = TD_NIL;
  if (plain || td_frame_open(I, p, slots, f->captured)) {
    td_frame *caller = I->frame;
    td_frame frame = {
        .caller = caller, .prototype = p, .function = f, .module = f->module, .slots = slots, .call = p->body};
    I->frame = &frame;
    I->slots = slots;
    I->stack_top = top;
    I->depth++;
    result = run_body(I, &frame, p->body, p->is_expression);
    I->depth--;
    I->frame = caller;
    I->slots = caller->slots;
  }
  drop_values(slots, top);
  I->stack_top = slots;
  return result;
}

static td_signature signature_of(const td_function *f, int32_t *required) {
  td_prototype *p = f->prototype;
  *required = 0;
  while (*required < p->positional && td_is_nil(f->fallbacks[*required])) ++*required;
  return (td_signature){.positional = p->positional,
                        .keyword_only = p->keyword_only,
                        .required = *required,
                        .positional_only = p->positional_only,
                        .star = p->star,
                        .double_star = p->double_star,
                        .names = p->slot_names,
                        .fallbacks = f->fallbacks};
}

static int32_t parameter_count(const td_prototype *p) {
  return p->positional + p->keyword_only + p->star + p->double_star;
}

// What a message calls f: the class that is made, where its __init__ is a base's.
static const char *called_name(td_interpreter *I, const td_function *f, td_value first, char *text, size_t size) {
  bool makes = f->name == I->names->init && td_is_instance(first);
  td_value init = makes ? td_class_lookup(td_as_instance(first)->class, I->names->init, NULL) : TD_NIL;
  if (!td_is(init, &td_function_type) || (td_function *)init.o != f) return f->qualified->data;
  snprintf(text, size, "%.80s.__init__", td_as_instance(first)->class->qualified->data);
  return text;
}

// Binds beside the arguments: for keywords, and for calls that don't fit, whose message the binder knows.
static __attribute__((noinline)) td_value call_bound(td_interpreter *I, td_function *f, td_value *base, int32_t count,
                                                     int32_t keyword_count, td_str **keywords) {
  int32_t required, parameters = parameter_count(f->prototype);
  td_signature signature = signature_of(f, &required);
  td_arguments arguments = {.count = count, .keyword_count = keyword_count, .values = base, .keywords = keywords};
  td_value *slots = base + count + keyword_count, result = TD_NIL;
  char text[100];
  const char *name = count ? called_name(I, f, base[0], text, sizeof text) : f->qualified->data;
  I->stack_top = slots;
  if (td_stack_room(I, parameters) && td_bind(I, name, &signature, &arguments, slots)) {
    I->stack_top = slots + parameters;
    result = run_function(I, f, slots, parameters, false);
  }
  drop_values(base, slots);
  I->stack_top = base;
  return result;
}

// Positional arguments become the parameters where they are; false: they don't fit, nothing was done.
static bool bind_here(td_interpreter *I, td_function *f, td_value *base, int32_t count) {
  td_prototype *p = f->prototype;
  int32_t parameters = p->positional + p->keyword_only;
  if (p->star || p->double_star || count > p->positional || base + p->slot_count > I->stack_end) return false;
  for (int32_t i = count; i < parameters; i++)
    if (td_is_nil(f->fallbacks[i])) return false;
  for (int32_t i = count; i < parameters; i++) base[i] = td_ref(f->fallbacks[i]);
  return true;
}

static td_value call_function(td_interpreter *I, td_function *f, td_value *base, int32_t count) {
  if (TD_LIKELY(f->plain && count == f->prototype->positional)) return run_function(I, f, base, count, true);
  if (!bind_here(I, f, base, count)) return call_bound(I, f, base, count, 0, NULL);
  return run_function(I, f, base, parameter_count(f->prototype), false);
}

// ---- calling anything ----

static td_value call_native(td_interpreter *I, const td_builtin *builtin, td_value self, td_value *slots,
                            int32_t total) {
  I->builtin = builtin;
  td_value result = builtin->row->function(I, self, slots);
  drop_values(slots, slots + total);
  return result;
}

static bool self_fits(td_interpreter *I, const td_builtin *builtin, td_value self) {
  const td_type *type = builtin->method_of;
  if (td_type_of(self) == type || (type == &td_instance_type && td_is_instance(self)) ||
      (type == &td_int_type && self.tag == TD_TAG_BOOL))
    return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "descriptor '%s' for '%s' objects doesn't apply to a '%s' object",
           builtin->row->name, type->name, td_type_name(I, self));
  return false;
}

// A method taken from a class, list.append, has its self as first argument.
static bool take_self(td_interpreter *I, const td_builtin *builtin, td_value *self, td_value **base, int32_t *count) {
  *self = builtin->self;
  if (!builtin->method_of || !td_is_nil(*self)) return true;
  if (*count == 0) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "unbound method %s.%s() needs an argument", builtin->method_of->name,
             builtin->row->name);
    return false;
  }
  *self = **base;
  ++*base;
  --*count;
  return self_fits(I, builtin, *self);
}

static td_value builtin_bound(td_interpreter *I, const td_builtin *builtin, td_value self, td_value *base,
                              int32_t count, int32_t keyword_count, td_str **keywords) {
  const td_signature *s = builtin->signature;
  td_arguments arguments = {
      .count = count, .keyword_count = keyword_count, .values = base, .keywords = keywords, .node = I->frame->call};
  td_value *slots = base + count + keyword_count;
  int32_t total = s->positional + s->keyword_only + s->star + s->double_star;
  td_callee callee = {builtin->method_of ? builtin->method_of->name : NULL, builtin->row->name};
  I->stack_top = slots;
  if (!td_stack_room(I, total) || !td_bind_callee(I, &callee, s, &arguments, slots)) return TD_NIL;
  I->stack_top = slots + total;
  return call_native(I, builtin, self, slots, total);
}

// Gathers positional arguments beyond the named ones into a tuple, and gives keyword-only ones their defaults. The
// values of base[positional..count) move into the tuple, so NIL is left there when all is done.
static __attribute__((noinline)) td_value builtin_starred(td_interpreter *I, const td_builtin *builtin, td_value self,
                                                          td_value *base, int32_t count) {
  const td_signature *s = builtin->signature;
  int32_t named = s->positional + s->keyword_only, total = named + 1;
  for (int32_t i = s->positional; i < named; i++)
    if (td_is_nil(s->fallbacks[i]) && !s->optional[i]) return builtin_bound(I, builtin, self, base, count, 0, NULL);
  td_tuple *rest = td_tuple_new(I, count - s->positional);
  if (!rest) return TD_NIL;
  for (int32_t i = s->positional; i < count; i++) rest->items[i - s->positional] = base[i];
  for (int32_t i = s->positional; i < named; i++) base[i] = td_ref(s->fallbacks[i]);
  base[named] = td_from(rest);
  I->stack_top = base + (total > count ? total : count);
  I->builtin = builtin;
  td_value result = builtin->row->function(I, self, base);
  drop_values(base + s->positional, base + total);
  for (int32_t i = s->positional; i < count; i++) base[i] = TD_NIL;
  return result;
}

// The forms of a call that are not the plain one; the caller releases base[0..count).
static __attribute__((noinline)) td_value builtin_other(td_interpreter *I, const td_builtin *builtin, td_value self,
                                                        td_value *base, int32_t count) {
  const td_signature *s = builtin->signature;
  if (td_recursion(I)) return TD_NIL;
  bool starred =
      s->star && !s->double_star && count >= s->positional && I->stack_end - base > s->positional + s->keyword_only;
  return starred ? builtin_starred(I, builtin, self, base, count)
                 : builtin_bound(I, builtin, self, base, count, 0, NULL);
}

// Positional arguments of a builtin; those not given get their defaults in place.
static inline td_value builtin_here(td_interpreter *I, const td_builtin *builtin, td_value self, td_value *base,
                                    int32_t count) {
  const td_signature *s = builtin->signature;
  int32_t total = s->positional + s->keyword_only;
  if (TD_UNLIKELY(s->star || s->double_star || count < s->required || count > s->positional ||
                  I->stack_end - base < total || (char *)__builtin_frame_address(0) < I->stack_limit))
    return builtin_other(I, builtin, self, base, count);
  for (int32_t i = count; i < total; i++) {
    base[i] = td_ref(s->fallbacks[i]);
    if (TD_UNLIKELY(td_is_nil(base[i]) && !s->optional[i])) { // a keyword-only one that must be given
      drop_values(base + count, base + i);
      return builtin_bound(I, builtin, self, base, count, 0, NULL);
    }
  }
  I->stack_top = base + total;
  I->builtin = builtin;
  td_value result = builtin->row->function(I, self, base);
  for (int32_t i = count; i < total; i++) td_unref(base[i]);
  return result;
}

static td_value builtin_invoke(td_interpreter *I, const td_builtin *builtin, td_value *base, int32_t count) {
  td_value self, *first = base, result = TD_NIL;
  int32_t given = count;
  if (take_self(I, builtin, &self, &first, &given)) result = builtin_here(I, builtin, self, first, given);
  drop_values(base, base + count);
  I->stack_top = base;
  return result;
}

static td_value builtin_keywords(td_interpreter *I, const td_builtin *builtin, td_value *base, int32_t count,
                                 int32_t keyword_count, td_str **keywords) {
  td_value self, *first = base, result = TD_NIL;
  int32_t given = count;
  if (take_self(I, builtin, &self, &first, &given) && !td_recursion(I))
    result = builtin_bound(I, builtin, self, first, given, keyword_count, keywords);
  drop_values(base, base + count + keyword_count);
  I->stack_top = base;
  return result;
}

static td_value call_bound_method(td_interpreter *I, td_bound *bound, td_value *base, int32_t count,
                                  int32_t keyword_count, td_str **keywords) {
  int32_t total = count + keyword_count;
  if (!td_stack_room(I, 1)) {
    drop_values(base, base + total);
    I->stack_top = base;
    return TD_NIL;
  }
  memmove(base + 1, base, (size_t)total * sizeof *base);
  base[0] = td_ref(bound->self);
  I->stack_top = base + total + 1;
  return td_call_keywords(I, bound->function, base, count + 1, keyword_count, keywords);
}

static td_value ask_type(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  const td_type *type = td_type_of(callee);
  if (type->call) return type->call(I, callee, arguments);
  td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not callable", td_type_name(I, callee));
  const td_node *n = arguments->node, *called = n && n->kind == TD_NODE_CALL ? n->a : NULL;
  if (!called || called->kind != TD_NODE_ATTRIBUTE) return TD_NIL;
  const char *habit = td_habit(TD_HABIT_CALL, called->name->data);
  if (habit) td_raise_hint(I, "%s", habit);
  else td_raise_hint(I, "'%s' is an attribute here: write it without ()", called->name->data);
  return TD_NIL;
}

static td_value call_type(td_interpreter *I, td_value callee, td_value *base, int32_t count, int32_t keyword_count,
                          td_str **keywords) {
  td_arguments arguments = {
      .count = count, .keyword_count = keyword_count, .values = base, .keywords = keywords, .node = I->frame->call};
  td_value result = td_recursion(I) ? TD_NIL : ask_type(I, callee, &arguments);
  drop_values(base, base + count + keyword_count);
  I->stack_top = base;
  return result;
}

td_value td_call_keywords(td_interpreter *I, td_value callee, td_value *base, int32_t count, int32_t keyword_count,
                          td_str **keywords) {
  if (callee.tag == TD_TAG_OBJECT) {
    const td_type *type = callee.o->type;
    if (type == &td_function_type) {
      td_function *f = (td_function *)callee.o;
      return keyword_count ? call_bound(I, f, base, count, keyword_count, keywords) : call_function(I, f, base, count);
    }
    if (type == &td_builtin_type) {
      td_builtin *builtin = (td_builtin *)callee.o;
      return keyword_count ? builtin_keywords(I, builtin, base, count, keyword_count, keywords)
                           : builtin_invoke(I, builtin, base, count);
    }
    if (type == &td_bound_type) return call_bound_method(I, (td_bound *)callee.o, base, count, keyword_count, keywords);
    if (type == &td_class_type) return td_class_construct(I, td_as_class(callee), base, count, keyword_count, keywords);
  }
  return call_type(I, callee, base, count, keyword_count, keywords);
}

td_value td_call_stack(td_interpreter *I, td_value callee, td_value *base, int32_t count) {
  if (td_is(callee, &td_function_type)) return call_function(I, (td_function *)callee.o, base, count);
  return td_call_keywords(I, callee, base, count, 0, NULL);
}

td_value td_invoke(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  int32_t total = arguments->count + arguments->keyword_count;
  if (!td_stack_room(I, total)) return TD_NIL;
  td_value *base = I->stack_top;
  for (int32_t i = 0; i < total; i++) base[i] = td_ref(arguments->values[i]);
  I->stack_top = base + total;
  return td_call_keywords(I, callee, base, arguments->count, arguments->keyword_count, arguments->keywords);
}

td_value td_call_values(td_interpreter *I, td_value callee, int count, td_value *values) {
  td_arguments arguments = {.count = count, .values = values};
  return td_invoke(I, callee, &arguments);
}

td_value td_call_method(td_interpreter *I, td_value v, const char *name, int count, td_value *values) {
  td_str *interned = td_str_intern(I, name, strlen(name));
  if (!interned) return TD_NIL;
  td_value method = td_attribute(I, v, interned);
  td_unref(td_from(interned));
  if (td_is_nil(method)) return TD_NIL;
  td_value result = td_call_values(I, method, count, values);
  td_unref(method);
  return result;
}

// ---- CALL nodes ----

// Evaluates the arguments of a call onto the stack at base; false: the exception is set and all are released.
static inline bool push_arguments(td_interpreter *I, const td_node *n, td_value *base) {
  int32_t count = n->count;
  if (TD_UNLIKELY(I->stack_end - base < count)) return !too_deep(I);
  I->stack_top = base + count;
  for (int32_t i = 0; i < count; i++) {
    td_value v = n->items[i]->evaluate(I, n->items[i]);
    if (TD_UNLIKELY(td_is_nil(v))) {
      drop_values(base, base + i);
      return false;
    }
    base[i] = v;
  }
  return true;
}

// f(x, y)
static td_value evaluate_call(td_interpreter *I, const td_node *n) {
  td_value callee = n->a->evaluate(I, n->a);
  if (TD_UNLIKELY(td_is_nil(callee))) return TD_NIL;
  td_value *base = I->stack_top, result = TD_NIL;
  if (TD_LIKELY(push_arguments(I, n, base))) {
    td_mark(I, n);
    td_function *f = (td_function *)callee.o;
    if (td_is(callee, &td_function_type) && f->plain && n->count == f->prototype->positional)
      result = run_function(I, f, base, n->count, true);
    else result = td_call_stack(I, callee, base, n->count);
  }
  I->stack_top = base;
  td_unref(callee);
  return result;
}

// What v.name(...) calls with v as its first argument, without making a bound method; NULL: there is no such function.
// The ATTRIBUTE, which is not evaluated itself, remembers it: value.tag is the class or type, value.i the version of
// classes, ops the function or builtin.
static __attribute__((noinline)) td_object *find_method(td_interpreter *I, td_value v, td_node *attribute) {
  td_object *found = NULL;
  if (td_is_instance(v)) {
    td_value value = td_class_find(I, td_as_instance(v)->class, attribute->name);
    if (td_is(value, &td_function_type)) found = value.o;
  } else if (td_type_of(v)->methods) {
    td_builtin *method = td_type_method(I, td_type_of(v), attribute->name);
    found = method ? &method->container.object : NULL;
  }
  if (!found) return NULL;
  attribute->value.tag =
      (uint64_t)(uintptr_t)(td_is_instance(v) ? (const void *)td_as_instance(v)->class : td_type_of(v));
  attribute->value.i = I->core->class_version;
  attribute->ops = (uint8_t *)found;
  return found;
}

static inline td_object *method_of(td_interpreter *I, td_value v, const td_node *attribute) {
  const td_type *type = td_type_of(v);
  bool instance = type == &td_instance_type || type == &td_exception_type;
  uint64_t key = (uint64_t)(uintptr_t)(instance ? (const void *)td_as_instance(v)->class : type);
  bool known = attribute->value.tag == key && attribute->value.i == (int64_t)I->core->class_version;
  td_object *found = TD_LIKELY(known) ? (td_object *)attribute->ops : find_method(I, v, (td_node *)attribute);
  if (!instance || !found) return found;
  td_dict *own = td_as_instance(v)->attributes; // the instance's own attribute comes before the class's function
  return own && own->count && !td_is_nil(td_dict_get_str(own, attribute->name)) ? NULL : found;
}

static __attribute__((noinline)) td_value call_attribute(td_interpreter *I, const td_node *n, td_value v) {
  td_mark(I, n->a);
  td_value callee = td_attribute(I, v, n->a->name), *base = I->stack_top, result = TD_NIL;
  td_unref(v);
  if (td_is_nil(callee)) return TD_NIL;
  if (push_arguments(I, n, base)) {
    td_mark(I, n);
    result = td_call_stack(I, callee, base, n->count);
  }
  I->stack_top = base;
  td_unref(callee);
  return result;
}

// v.name(x, y)
static td_value evaluate_call_method(td_interpreter *I, const td_node *n) {
  const td_node *attribute = n->a;
  td_value v = attribute->a->evaluate(I, attribute->a);
  if (TD_UNLIKELY(td_is_nil(v))) return TD_NIL;
  td_object *method = method_of(I, v, attribute);
  if (!method) return td_is_nil(I->raised) ? call_attribute(I, n, v) : (td_unref(v), TD_NIL);
  td_value *base = I->stack_top, result = TD_NIL;
  if (TD_UNLIKELY(!td_stack_room(I, 1))) return td_unref(v), TD_NIL;
  base[0] = v;
  I->stack_top = base + 1;
  method->refs++;
  if (TD_LIKELY(push_arguments(I, n, base + 1))) {
    td_function *f = (td_function *)method;
    int32_t count = n->count + 1;
    td_mark(I, n);
    if (method->type != &td_function_type) {
      result = builtin_here(I, (td_builtin *)method, v, base + 1, n->count);
      drop_values(base, base + count);
    } else if (f->plain && count == f->prototype->positional) {
      result = run_function(I, f, base, count, true);
    } else {
      result = call_function(I, f, base, count);
    }
  } else {
    td_unref(v);
  }
  I->stack_top = base;
  td_unref(td_borrow(method));
  return result;
}

td_evaluate *td_call_choose(const td_node *n) {
  for (int32_t i = 0; i < n->count; i++) {
    int kind = n->items[i]->kind;
    if (kind == TD_NODE_STARRED || kind == TD_NODE_KEYWORD || kind == TD_NODE_DOUBLE_STARRED) return td_call_spread;
  }
  return n->a->kind == TD_NODE_ATTRIBUTE ? evaluate_call_method : evaluate_call;
}
