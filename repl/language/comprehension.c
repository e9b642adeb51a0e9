// Comprehensions and generators. A comprehension runs in hidden slots of the enclosing frame; a generator is an
// iterator with a frame of its own, which holds the running iterator of each clause between two elements.
#include "engine/base/memory.h"
#include "repl/language/core.h"

typedef struct comprehension {
  const td_node *node;
  td_object *result; // the list, set or dict that is being built
  int32_t clause; // that an element of which arrives now
} comprehension;

static int truth_of_conditions(td_interpreter *I, const td_node *clause) {
  for (int32_t i = 0; i < clause->count; i++) {
    const td_node *condition = clause->items[i];
    td_value v = condition->evaluate(I, condition);
    if (td_is_nil(v)) return -1;
    int truth = v.tag == TD_TAG_BOOL ? (int)v.i : (td_mark(I, condition), td_truth(I, v));
    td_unref(v);
    if (truth != 1) return truth;
  }
  return 1;
}

static bool add_pair(td_interpreter *I, const comprehension *c, td_value key) {
  const td_node *n = c->node;
  td_value value = n->b->evaluate(I, n->b);
  if (td_is_nil(value)) return false;
  td_mark(I, n->a);
  bool ok = td_dict_set(I, (td_dict *)c->result, key, value);
  td_unref(value);
  return ok;
}

static bool add_element(td_interpreter *I, const comprehension *c) {
  const td_node *n = c->node;
  td_value v = n->a->evaluate(I, n->a);
  if (td_is_nil(v)) return false;
  bool ok;
  if (n->kind == TD_NODE_LIST_COMPREHENSION) ok = td_list_append(I, (td_list *)c->result, v);
  else if (n->kind == TD_NODE_DICT_COMPREHENSION) ok = add_pair(I, c, v);
  else ok = (td_mark(I, n->a), td_set_add(I, (td_set *)c->result, v));
  td_unref(v);
  return ok;
}

static int run_clause(td_interpreter *I, comprehension *c, int32_t index);

static int element_step(td_interpreter *I, void *state, td_value element) {
  comprehension *c = state;
  int32_t index = c->clause;
  const td_node *clause = c->node->items[index];
  if (!td_assign(I, clause->a, element)) return TD_FLOW_ERROR;
  int truth = truth_of_conditions(I, clause);
  if (truth != 1) return truth < 0 ? TD_FLOW_ERROR : TD_FLOW_NEXT;
  if (index + 1 == c->node->count) return add_element(I, c) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
  int flow = run_clause(I, c, index + 1);
  c->clause = index;
  return flow;
}

static int run_clause(td_interpreter *I, comprehension *c, int32_t index) {
  const td_node *clause = c->node->items[index];
  td_value iterable = clause->b->evaluate(I, clause->b);
  if (td_is_nil(iterable)) return TD_FLOW_ERROR;
  c->clause = index;
  td_mark(I, clause->b);
  int flow = td_each(I, iterable, element_step, c);
  td_unref(iterable);
  return flow;
}

static bool freshen(td_interpreter *I, const int32_t *fresh) {
  for (; *fresh >= 0; fresh++) {
    td_cell *cell = td_cell_new(I, TD_NIL);
    if (!cell) return false;
    td_unref(I->slots[*fresh]);
    I->slots[*fresh] = td_from(cell);
  }
  return true;
}

static td_value evaluate_comprehension(td_interpreter *I, const td_node *n) {
  comprehension c = {.node = n};
  if (n->fresh && !freshen(I, n->fresh)) return TD_NIL;
  if (n->kind == TD_NODE_LIST_COMPREHENSION) c.result = (td_object *)td_list_new(I, 0);
  else if (n->kind == TD_NODE_SET_COMPREHENSION) c.result = (td_object *)td_set_new(I);
  else c.result = (td_object *)td_dict_new(I);
  if (!c.result) return TD_NIL;
  if (run_clause(I, &c, 0) != TD_FLOW_ERROR) return td_from(c.result);
  td_unref(td_from(c.result));
  return TD_NIL;
}

// ---- generators ----

typedef struct generator {
  td_container container;
  const td_node *node; // in the function's arena
  td_function *function; // keeps prototype, module and captured cells
  bool started, running, ended;
  td_value slots[]; // of its frame; the clauses' hidden ones hold their iterators
} generator;

static void generator_clear(td_object *object) {
  generator *g = (generator *)object;
  g->ended = true;
  for (int32_t i = 0; i < g->function->prototype->slot_count; i++) {
    td_value v = g->slots[i];
    g->slots[i] = TD_NIL;
    td_unref(v);
  }
}

static void generator_release(td_object *object) {
  generator *g = (generator *)object;
  if (g->function) {
    generator_clear(object);
    td_unref(td_from(g->function));
  }
}

static void generator_visit(td_object *object, td_visitor *visitor, void *argument) {
  generator *g = (generator *)object;
  visitor(&g->function->container.object, argument);
  for (int32_t i = 0; i < g->function->prototype->slot_count; i++)
    if (g->slots[i].tag == TD_TAG_OBJECT) visitor(g->slots[i].o, argument);
}

static bool open_clause(td_interpreter *I, const td_node *clause) {
  td_value iterable = clause->b->evaluate(I, clause->b);
  if (td_is_nil(iterable)) return false;
  td_mark(I, clause->b);
  td_value iterator = td_iterate(I, iterable);
  td_unref(iterable);
  if (td_is_nil(iterator)) return false;
  td_unref(I->slots[clause->slot]);
  I->slots[clause->slot] = iterator;
  return true;
}

// Goes on from the innermost open clause to the next element. NIL without exception: ended.
static td_value generator_advance(td_interpreter *I, generator *g) {
  const td_node *n = g->node;
  int32_t index = g->started ? n->count - 1 : 0;
  g->started = true;
  while (index >= 0) {
    const td_node *clause = n->items[index];
    td_mark(I, clause);
    if (td_interrupted(I)) return TD_NIL;
    td_value element = td_next(I, I->slots[clause->slot]);
    if (td_is_nil(element)) {
      if (!td_is_nil(I->raised)) return TD_NIL;
      index--;
      continue;
    }
    if (!td_assign(I, clause->a, element)) return TD_NIL;
    int truth = truth_of_conditions(I, clause);
    if (truth < 0) return TD_NIL;
    if (!truth) continue;
    if (index + 1 == n->count) return n->a->evaluate(I, n->a);
    if (!open_clause(I, n->items[++index])) return TD_NIL;
  }
  return TD_NIL;
}

static td_value generator_next(td_interpreter *I, td_value v) {
  generator *g = (generator *)v.o;
  if (g->ended) return TD_NIL;
  if (g->running) return td_raise(I, TD_CLASS_VALUE_ERROR, "generator already executing");
  if (td_recursion(I)) return TD_NIL;
  td_frame *caller = I->frame;
  td_frame frame = {.caller = caller,
                    .prototype = g->function->prototype,
                    .function = g->function,
                    .module = g->function->module,
                    .slots = g->slots,
                    .call = g->node};
  I->frame = &frame;
  I->slots = g->slots;
  I->depth++;
  g->running = true;
  td_ref(v);
  td_value result = generator_advance(I, g);
  g->running = false;
  I->depth--;
  I->frame = caller;
  I->slots = caller->slots;
  if (td_is_nil(result)) generator_clear(v.o);
  td_unref(v);
  return result;
}

static bool generator_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_print(text, "<generator object %s at %p>", ((generator *)v.o)->function->qualified->data, (void *)v.o);
  return true;
}

const td_type td_generator_type = {
    .name = "generator",
    .size = sizeof(generator),
    .release = generator_release,
    .visit = generator_visit,
    .clear = generator_clear,
    .repr = generator_repr,
    .next = generator_next,
    .doc = "A lazy sequence: (f(x) for x in items) computes each element when it is asked for.",
};

static td_value evaluate_generator(td_interpreter *I, const td_node *n) {
  td_value iterable = n->c->evaluate(I, n->c);
  if (td_is_nil(iterable)) return TD_NIL;
  td_mark(I, n->c);
  td_value iterator = td_iterate(I, iterable), function = TD_NIL;
  td_unref(iterable);
  if (!td_is_nil(iterator)) function = td_function_new(I, n->prototype, I->frame->module);
  generator *g = NULL;
  if (!td_is_nil(function))
    g = td_object_new(I, &td_generator_type, sizeof *g + (size_t)n->prototype->slot_count * sizeof *g->slots);
  if (!g) {
    td_unref(iterator);
    td_unref(function);
    return TD_NIL;
  }
  g->node = n;
  g->function = (td_function *)function.o;
  g->slots[n->items[0]->slot] = iterator;
  if (td_frame_open(I, n->prototype, g->slots, g->function->captured)) return td_from(g);
  td_unref(td_from(g));
  return TD_NIL;
}

td_evaluate *td_comprehension_choose(const td_node *n) {
  return n->kind == TD_NODE_GENERATOR ? evaluate_generator : evaluate_comprehension;
}
