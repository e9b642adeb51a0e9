// Lines of a tensor put in order, for sort, topk and order statistics. NaN counts as larger than any number, -0 equals
// 0, and of equal elements the first comes first, upwards as well as downwards.
#ifndef TD_OPS_ORDER_H
#define TD_OPS_ORDER_H
#include "engine/ops/flat.h"

typedef struct td_ordering { // lines of x: over some of its axes, elements in row-major order
  const td_view *x;
  bool downwards;
  bool wide; // items are a key and a place of 64 bits each, otherwise both are of 32
  int64_t lines, n;
  int kept_count, line_count; // axes
  int kept[TD_RANK_MAX], line[TD_RANK_MAX];
} td_ordering;

typedef struct td_ordered { // one line
  const td_ordering *ordering;
  int64_t index; // of the line, row-major over the kept axes
  const char *data;
  int64_t numbers; // elements that are not NaN
  td_pool *pool;
  void *items, *scratch; // n each
  int64_t (*counts)[256];
} td_ordered;

void td_order_open(td_ordering *o, const td_view *x, const bool line[TD_RANK_MAX], bool downwards);
int64_t td_order_bytes(const td_ordering *o, const td_pool *pool); // of the workspace
void td_order_run(const td_ordering *o, td_pool *pool, void *space, void (*work)(void *owner, td_ordered *line),
                  void *owner); // lines side by side

void td_order_sort(td_ordered *line, int64_t count); // the first count items; in a stopped pool they are garbage
// place of the k-th; first: items begin with the k before it
int64_t td_order_select(td_ordered *line, int64_t k, bool first);
int64_t td_order_place(const td_ordered *line, int64_t i); // place in the line of item i
const char *td_order_element(const td_ordered *line, int64_t place);

// Without a workspace: the places of the first count elements of each line, in order. The lines have one axis at most,
// and count is 1 to TD_ORDER_FEW and no more than n.
enum { TD_ORDER_FEW = 32 };
typedef void td_order_found(void *owner, const td_ordered *line, const int64_t *places);
void td_order_first(const td_ordering *o, td_pool *pool, int64_t count, td_order_found *found, void *owner);
#endif
