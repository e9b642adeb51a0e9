// What the resolver's files share. A scope is where names are looked up: module, function (lambda, generator too),
// class body, or a list, set or dict comprehension, which has names of its own but runs in the frame around it. A
// symbol is one name in one scope; what its uses mean is known when all scopes have been walked.
#ifndef TD_LANGUAGE_RESOLVE_H
#define TD_LANGUAGE_RESOLVE_H
#include "repl/language/interpreter.h"

enum td_name_scope_kind { TD_IN_MODULE, TD_IN_FUNCTION, TD_IN_CLASS, TD_IN_COMPREHENSION };

typedef struct td_symbol td_symbol;
typedef struct td_name_scope td_name_scope;

struct td_symbol {
  td_str *name;             // NULL: a hidden slot
  td_name_scope *scope;
  td_symbol *next;          // in its scope, in order of appearance
  td_symbol *origin;        // the symbol that it means: itself, one of an outer scope, or NULL: global
  td_global *global;        // when global, or in a class body
  const td_node *declared;  // the NAME in its global or nonlocal statement
  int32_t slot;             // in the frame of scope
  bool parameter, bound, used, global_declared, nonlocal, cell; // cell: a frame within captures it
};

struct td_name_scope {
  enum td_name_scope_kind kind;
  bool generator;           // a function without parameters whose body is an expression
  td_name_scope *parent, *frame; // frame: itself, but for comprehensions
  td_name_scope *next;           // in order of appearance: outer ones first
  td_prototype *prototype;  // of a frame
  td_node *node;            // a comprehension
  td_symbol *first, *last;
  int32_t slot_count;       // of a frame
  // of a frame, newest first
  struct td_capture { struct td_capture *next; td_symbol *origin; int32_t outer, inner; } *captures;
  int32_t capture_count;
};

typedef struct td_resolver {
  td_interpreter *interpreter;
  td_script *script;
  td_arena *arena, *scratch; // the tree's; and one that is dropped when all is resolved
  td_module *module;
  td_diagnostic *diagnostic;
  bool failed;
  td_name_scope *scope, *scopes, *last_scope;
  int32_t loops;            // around the statement, in its frame
  td_symbol **table;        // hash table over (scope, name); owned
  uint32_t count, capacity;
} td_resolver;

bool td_resolver_fail(td_resolver *r, const td_node *node, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));                                  // always false
// NULL: failed
td_name_scope *td_resolve_open(td_resolver *r, enum td_name_scope_kind kind, td_prototype *prototype, td_node *node);
void td_resolve_close(td_resolver *r);                                        // back to the parent
td_symbol *td_symbol_get(td_resolver *r, td_name_scope *scope, td_str *name);    // made when absent; NULL: failed
td_symbol *td_symbol_hidden(td_resolver *r, td_name_scope *scope);
bool td_resolve_settle(td_resolver *r);            // origins, cells, slots, captures; fills the prototypes
bool td_resolve_finish(td_resolver *r, td_node *node); // writes places into the nodes and chooses what runs them
#endif
