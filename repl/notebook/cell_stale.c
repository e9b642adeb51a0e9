// Which cells are stale (cell_names.h). Edges lead from a cell to those that it gives a name to; they are found once
// over a list of all uses in order of name and cell. Then marks spread along the edges until nothing changes.
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/cell_names.h"

typedef struct use {
  const char *name;
  int cell;
  unsigned does;
} use;
typedef struct edge {
  int from, to;
} edge;

typedef struct graph {
  use *uses; // owned
  edge *edges; // owned
  int use_count, edge_count, edge_capacity;
} graph;

enum { BINDS = TD_NAME_BINDS | TD_NAME_MAY_BIND };

static int by_name_and_cell(const void *a, const void *b) {
  const use *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->cell > y->cell) - (x->cell < y->cell);
}

static bool list_uses(const td_notebook *n, graph *g) {
  size_t count = 0;
  for (int i = 0; i < n->count; i++)
    if (n->cells[i]->names && !n->cells[i]->markdown) count += (size_t)n->cells[i]->names->count;
  g->uses = td_memory_new((count + 1) * sizeof *g->uses);
  if (!g->uses) return false;
  for (int i = 0; i < n->count; i++) {
    const td_notebook_cell *cell = n->cells[i];
    for (int k = 0; cell->names && !cell->markdown && k < cell->names->count; k++)
      g->uses[g->use_count++] = (use){cell->names->items[k].name, i, cell->names->items[k].does};
  }
  qsort(g->uses, (size_t)g->use_count, sizeof *g->uses, by_name_and_cell);
  return true;
}

static bool add_edge(graph *g, int from, int to) {
  if (g->edge_count == g->edge_capacity) {
    int capacity = g->edge_capacity ? g->edge_capacity * 2 : 64;
    edge *edges = td_memory_resize(g->edges, (size_t)capacity * sizeof *edges);
    if (!edges) return false;
    g->edges = edges;
    g->edge_capacity = capacity;
  }
  g->edges[g->edge_count++] = (edge){from, to};
  return true;
}

// uses[from..to) are the cells with one name. Its user at: from the last sure binding above, or from all bindings
// below.
static bool link_user(graph *g, int from, int to, int at) {
  int first = at - 1;
  while (first >= from && !(g->uses[first].does & TD_NAME_BINDS)) first--;
  bool sure = first >= from, bound = false;
  if (!sure) first = from;
  for (int i = first; i < at; i++) bound = bound || (g->uses[i].does & BINDS);
  unsigned gives = BINDS | TD_NAME_CHANGES;
  if (!sure || !(g->uses[first].does & TD_NAME_IMPORTS)) gives |= TD_NAME_CALLS;
  for (int i = first; bound && i < at; i++)
    if ((g->uses[i].does & gives) && !add_edge(g, g->uses[i].cell, g->uses[at].cell)) return false;
  for (int i = at + 1; !bound && i < to; i++)
    if ((g->uses[i].does & BINDS) && !add_edge(g, g->uses[i].cell, g->uses[at].cell)) return false;
  return true;
}

static bool link_cells(graph *g) {
  for (int from = 0, to; from < g->use_count; from = to) {
    for (to = from + 1; to < g->use_count && strcmp(g->uses[to].name, g->uses[from].name) == 0;) to++;
    for (int at = from; at < to; at++)
      if ((g->uses[at].does & TD_NAME_USES) && !link_user(g, from, to, at)) return false;
  }
  return true;
}

static int by_user(const void *a, const void *b) {
  const edge *x = a, *y = b;
  return x->to != y->to ? (x->to > y->to) - (x->to < y->to) : (x->from > y->from) - (x->from < y->from);
}

static bool is_newer(const td_notebook_cell *giver, const td_notebook_cell *user) { // than what the user saw
  if (giver->ran_at > user->ran_at) return true;
  if (giver->changed_at <= user->ran_at) return false;
  return !giver->ran_at || td_notebook_is_changed(giver);
}

static void spread(const td_notebook *n, const graph *g, bool *stale) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < g->edge_count; i++) {
      const edge *e = &g->edges[i];
      const td_notebook_cell *giver = n->cells[e->from], *user = n->cells[e->to];
      if (stale[e->to] || !user->ran_at || td_notebook_is_running(user)) continue;
      if (stale[e->from] || is_newer(giver, user)) stale[e->to] = changed = true;
    }
  }
}

static bool read_names(td_notebook *n, td_interpreter *I) {
  for (int i = 0; I && i < n->count; i++) {
    td_notebook_cell *cell = n->cells[i];
    if (cell->markdown || (cell->names && cell->names_at == cell->changed_at)) continue;
    td_cell_names *names = td_cell_names_read(I, cell->text.data, cell->text.length);
    if (!names) return false;
    td_cell_names_free(cell->names);
    cell->names = names;
    cell->names_at = cell->changed_at;
  }
  return true;
}

static int set_marks(td_notebook *n, const bool *stale) {
  int changed = 0;
  for (int i = 0; i < n->count; i++) {
    if (n->cells[i]->stale == stale[i]) continue;
    n->cells[i]->stale = stale[i];
    td_notebook_touch(n, n->cells[i]);
    changed++;
  }
  return changed;
}

int td_notebook_stale(td_notebook *n, td_interpreter *I) {
  graph g = {0};
  bool *stale = td_memory_new_zero((size_t)n->count + 1);
  int changed = -1;
  if (stale && read_names(n, I) && list_uses(n, &g) && link_cells(&g)) {
    if (g.edge_count) qsort(g.edges, (size_t)g.edge_count, sizeof *g.edges, by_user);
    spread(n, &g, stale);
    changed = set_marks(n, stale);
  }
  td_memory_free(g.uses);
  td_memory_free(g.edges);
  td_memory_free(stale);
  return changed;
}
