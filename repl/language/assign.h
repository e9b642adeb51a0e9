// Targets whose parts were evaluated: what assign.c (places) and assign_statement.c (statements) share.
#ifndef TD_LANGUAGE_ASSIGN_H
#define TD_LANGUAGE_ASSIGN_H
#include "repl/language/core.h"

enum { TD_CHAIN_MAX = 12 };

typedef struct td_link {
  const td_node *node;
  td_value object, key;     // ATTRIBUTE: object; INDEX: both; owned
} td_link;

typedef struct td_chain {   // x.w[i][j]: links[0] is [j], then [i], then .w; root is x
  td_link links[TD_CHAIN_MAX];
  int count;
  const td_node *root;
} td_chain;

// Of one link whose parts are evaluated; takes them over. The other links stay as they are.
static inline void td_chain_of(td_chain *chain, const td_node *target, td_value object, td_value key) {
  chain->links[0] = (td_link){.node = target, .object = object, .key = key};
  chain->count = 1;
  chain->root = target->a;
}
bool td_chain_open(td_interpreter *, const td_node *target, td_chain *chain); // false: exception, nothing is held
void td_chain_close(td_chain *chain);
td_value td_chain_load(td_interpreter *, const td_chain *chain);              // the target's value
bool td_chain_store(td_interpreter *, td_chain *chain, int level, td_value value); // takes over value
// Takes object out of the place at level that holds it, so that the caller's reference is the only one of the two.
void td_chain_detach(td_interpreter *, const td_chain *chain, int level, td_value object);
bool td_assign_name(td_interpreter *, const td_node *target, td_value value); // takes over value
td_value *td_name_place(td_interpreter *, const td_node *name);
int32_t td_find_starred(const td_node *target); // its position; -1: none
#endif
