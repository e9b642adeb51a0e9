// Frees what reference counts can't: containers that hold each other in cycles and that nothing else holds. Trial
// deletion:
//  1. outside = references of each container, less one for each container that holds it.
//  2. Containers with outside > 0 are held by something else (a name, the running code); all that they reach lives.
//  3. The rest is emptied (clear), whereupon its references fall to 0.
// It needs no memory: the lists are threaded through the containers, and reaching is a walk along the list of the
// living.
#include "repl/language/core.h"

enum { COLLECT_FIRST = 20000 };
enum { MAYBE_DEAD = -1 }; // in outside: moved to the list of those that nothing living reached so far

static void list_make(td_container *head) { head->next = head->previous = head; }

static void list_move(td_container *c, td_container *head) { // to the end of head's list
  c->previous->next = c->next;
  c->next->previous = c->previous;
  c->previous = head->previous;
  c->next = head;
  head->previous->next = c;
  head->previous = c;
}

static void list_append(td_container *from, td_container *to) { // all of from
  if (from->next == from) return;
  from->next->previous = to->previous;
  to->previous->next = from->next;
  from->previous->next = to;
  to->previous = from->previous;
  list_make(from);
}

static void subtract(td_object *object, void *argument) {
  (void)argument;
  if (object->flags & TD_OBJECT_CONTAINER) ((td_container *)object)->outside--;
}

static void revive(td_object *object, void *living) {
  if (!(object->flags & TD_OBJECT_CONTAINER)) return;
  td_container *c = (td_container *)object;
  if (c->outside == MAYBE_DEAD) list_move(c, living); // it was passed already: it is walked again at the end
  if (c->outside <= 0) c->outside = 1;
}

static void find_dead(td_container *living, td_container *dead) {
  for (td_container *c = living->next; c != living; c = c->next) c->outside = c->object.refs;
  for (td_container *c = living->next; c != living; c = c->next) c->object.type->visit(&c->object, subtract, NULL);
  for (td_container *c = living->next, *next; c != living; c = next) {
    if (c->outside > 0) {
      c->object.type->visit(&c->object, revive, living);
      next = c->next;
    } else {
      next = c->next;
      c->outside = MAYBE_DEAD;
      list_move(c, dead);
    }
  }
}

// Empties all of a list while each is held, then lets go.
static void clear_all(td_container *list, td_container *living) {
  for (td_container *c = list->next; c != list; c = c->next) c->object.refs++;
  while (list->next != list) {
    td_container *c = list->next;
    list_move(c, living);
    if (c->object.type->clear) c->object.type->clear(&c->object);
    td_unref(td_borrow(c));
  }
}

void td_collect(td_interpreter *I) {
  td_container dead;
  list_make(&dead);
  find_dead(&I->containers, &dead);
  clear_all(&dead, &I->containers);
  int64_t live = td_containers_live();
  I->collect_at = live * 2 > COLLECT_FIRST ? live * 2 : COLLECT_FIRST;
}

void td_containers_clear(td_interpreter *I) {
  td_container all;
  list_make(&all);
  list_append(&I->containers, &all);
  clear_all(&all, &I->containers);
}
