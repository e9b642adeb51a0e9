// Scopes and symbols: which binding each name means, which variables become cells, which slot each has. Works on the
// list of scopes in order of appearance, after the whole tree has been walked: a use may stand before the binding.
#include "engine/base/memory.h"
#include "repl/language/resolve.h"

static void *take(td_resolver *r, td_arena *arena, size_t bytes) {
  void *block = td_arena_take(arena, bytes);
  if (!block) td_resolver_fail(r, NULL, NULL, "out of memory");
  return block;
}

td_name_scope *td_resolve_open(td_resolver *r, enum td_name_scope_kind kind, td_prototype *prototype, td_node *node) {
  td_name_scope *scope = take(r, r->scratch, sizeof *scope);
  if (!scope) return NULL;
  scope->kind = kind;
  scope->parent = r->scope;
  scope->frame = kind == TD_IN_COMPREHENSION ? r->scope->frame : scope;
  scope->prototype = prototype;
  scope->node = node;
  if (r->last_scope) r->last_scope->next = scope;
  else r->scopes = scope;
  return r->scope = r->last_scope = scope;
}

void td_resolve_close(td_resolver *r) { r->scope = r->scope->parent; }

static uint32_t hash_of(const td_name_scope *scope, const td_str *name) {
  uint64_t mixed =
      ((uint64_t)(uintptr_t)scope >> 4) * 0x9e3779b97f4a7c15u ^ ((uint64_t)(uintptr_t)name >> 4) * 0xc2b2ae3d27d4eb4fu;
  return (uint32_t)(mixed >> 32);
}

static td_symbol **find(const td_resolver *r, const td_name_scope *scope,
                        const td_str *name) { // its place in the table
  uint32_t mask = r->capacity - 1, at = hash_of(scope, name) & mask;
  while (r->table[at] && (r->table[at]->scope != scope || r->table[at]->name != name)) at = (at + 1) & mask;
  return &r->table[at];
}

static bool grow(td_resolver *r) {
  td_symbol **old = r->table;
  uint32_t old_capacity = r->capacity, capacity = old_capacity ? old_capacity * 2 : 64;
  td_symbol **table = td_memory_new_zero(capacity * sizeof *table);
  if (!table) return td_resolver_fail(r, NULL, NULL, "out of memory");
  r->table = table;
  r->capacity = capacity;
  for (uint32_t i = 0; i < old_capacity; i++) {
    if (old[i]) *find(r, old[i]->scope, old[i]->name) = old[i];
  }
  td_memory_free(old);
  return true;
}

td_symbol *td_symbol_hidden(td_resolver *r, td_name_scope *scope) {
  td_symbol *symbol = take(r, r->scratch, sizeof *symbol);
  if (!symbol) return NULL;
  symbol->scope = scope;
  symbol->bound = symbol->used = true;
  if (scope->last) scope->last->next = symbol;
  else scope->first = symbol;
  return scope->last = symbol;
}

td_symbol *td_symbol_get(td_resolver *r, td_name_scope *scope, td_str *name) {
  if (r->count * 2 >= r->capacity && !grow(r)) return NULL;
  td_symbol **place = find(r, scope, name), *symbol = *place;
  if (symbol) return symbol;
  symbol = td_symbol_hidden(r, scope);
  if (!symbol) return NULL;
  symbol->bound = symbol->used = false;
  symbol->name = name;
  r->count++;
  *place = symbol;
  return symbol;
}

// ---- what a name means ----

static bool owns(const td_symbol *symbol) { // its scope binds it for itself
  return symbol->bound && !symbol->global_declared && !symbol->nonlocal && symbol->scope->kind != TD_IN_MODULE;
}

static td_symbol *find_origin(const td_resolver *r, td_symbol *symbol) { // NULL: global
  if (symbol->global_declared || symbol->scope->kind == TD_IN_MODULE) return NULL;
  if (owns(symbol)) return symbol;
  for (const td_name_scope *scope = symbol->scope->parent; scope && scope->kind != TD_IN_MODULE;
       scope = scope->parent) {
    if (scope->kind == TD_IN_CLASS) continue; // a class's names are not seen from inside its methods
    td_symbol *outer = *find(r, scope, symbol->name);
    if (outer && outer->global_declared) return NULL;
    if (outer && owns(outer)) return outer;
  }
  return NULL;
}

// ---- slots ----

static int32_t capture(td_resolver *r, td_name_scope *frame,
                       td_symbol *origin) { // the slot in frame that holds origin's cell; -1: failed
  if (origin->scope->frame == frame) return origin->slot;
  for (struct td_capture *c = frame->captures; c; c = c->next) {
    if (c->origin == origin) return c->inner;
  }
  int32_t outer = capture(r, frame->parent->frame, origin);
  struct td_capture *added = outer < 0 ? NULL : take(r, r->scratch, sizeof *added);
  if (!added) return -1;
  *added = (struct td_capture){frame->captures, origin, outer, frame->slot_count++};
  frame->captures = added;
  frame->capture_count++;
  return added->inner;
}

static bool place_symbol(td_resolver *r, td_symbol *symbol) { // after all owned symbols have their slots
  td_symbol *origin = symbol->origin;
  if (origin && origin != symbol) symbol->slot = capture(r, symbol->scope->frame, origin);
  if (symbol->slot < 0) return false;
  if (origin && origin->scope->kind != TD_IN_CLASS) return true;
  symbol->global = td_module_global(r->interpreter, r->module, symbol->name);
  return symbol->global || td_resolver_fail(r, NULL, NULL, "out of memory");
}

static bool name_slots(td_resolver *r, td_name_scope *frame) {
  td_prototype *prototype = frame->prototype;
  prototype->slot_count = frame->slot_count;
  prototype->slot_names = take(r, r->arena, ((size_t)frame->slot_count + 1) * sizeof *prototype->slot_names);
  if (!prototype->slot_names) return false;
  for (td_symbol *symbol = frame->first; symbol; symbol = symbol->next) {
    if (symbol->origin == symbol) prototype->slot_names[symbol->slot] = symbol->name;
  }
  for (struct td_capture *c = frame->captures; c && frame->kind != TD_IN_CLASS; c = c->next) {
    prototype->slot_names[c->inner] = c->origin->name;
  }
  return true;
}

static int32_t count_cells(const td_name_scope *scope) {
  int32_t count = 0;
  for (const td_symbol *symbol = scope->first; symbol; symbol = symbol->next) count += symbol->cell;
  return count;
}

static int32_t *list_cells(td_resolver *r, const td_name_scope *scope,
                           int32_t count) { // one more than count is allocated
  int32_t *cells = take(r, r->arena, ((size_t)count + 1) * sizeof *cells);
  if (!cells) return NULL;
  int32_t at = 0;
  for (const td_symbol *symbol = scope->first; symbol; symbol = symbol->next) {
    if (symbol->cell) cells[at++] = symbol->slot;
  }
  return cells;
}

static bool fill_comprehension(td_resolver *r, td_name_scope *scope) {
  int32_t count = count_cells(scope);
  if (!count) return true;
  int32_t *fresh = list_cells(r, scope, count);
  if (!fresh) return false;
  fresh[count] = -1;
  scope->node->fresh = fresh;
  return true;
}

static bool fill_prototype(td_resolver *r, td_name_scope *frame) {
  td_prototype *prototype = frame->prototype;
  if (!name_slots(r, frame)) return false;
  prototype->cell_count = count_cells(frame);
  if (prototype->cell_count && !(prototype->cells = list_cells(r, frame, prototype->cell_count))) return false;
  if (!frame->capture_count) return true;
  prototype->captures = take(r, r->arena, (size_t)frame->capture_count * sizeof *prototype->captures);
  if (!prototype->captures) return false;
  prototype->capture_count = frame->capture_count;
  int32_t at = frame->capture_count;
  for (struct td_capture *c = frame->captures; c; c = c->next) {
    prototype->captures[--at].outer = c->outer;
    prototype->captures[at].inner = c->inner;
  }
  return true;
}

bool td_resolve_settle(td_resolver *r) {
  for (td_name_scope *scope = r->scopes; scope; scope = scope->next) {
    for (td_symbol *symbol = scope->first; symbol; symbol = symbol->next) {
      symbol->origin = symbol->name ? find_origin(r, symbol) : symbol;
      if (symbol->nonlocal && !symbol->origin) {
        return td_resolver_fail(r, symbol->declared, NULL, "no enclosing function binds '%s' for 'nonlocal'",
                                symbol->name->data);
      }
      if (symbol->origin && symbol->origin->scope->frame != scope->frame) symbol->origin->cell = true;
      if (symbol->origin == symbol) symbol->slot = scope->frame->slot_count++;
    }
  }
  for (td_name_scope *scope = r->scopes; scope; scope = scope->next) {
    for (td_symbol *symbol = scope->first; symbol; symbol = symbol->next) {
      if (symbol->name && !place_symbol(r, symbol)) return false;
    }
  }
  for (td_name_scope *scope = r->scopes; scope; scope = scope->next) {
    if (!(scope->kind == TD_IN_COMPREHENSION ? fill_comprehension(r, scope) : fill_prototype(r, scope))) return false;
  }
  return true;
}
