// The tree of a script. Kinds are rows; a node has all members and uses those that its row names. Nodes, and all that
// hangs on them, live in the arena of their script. A node carries the function that runs it, set by the resolver from
// the row's name (evaluate.c, execute.c), so running a node is one indirect call.
#ifndef TD_LANGUAGE_SYNTAX_H
#define TD_LANGUAGE_SYNTAX_H
#include "repl/language/source.h"
#include "repl/language/value.h"

// Expressions. X(KIND, "what the members hold")
#define TD_EXPRESSIONS(X)                                                                                              \
  X(CONSTANT, "value")                                                                                                 \
  X(NAME, "name; after resolve: scope, and slot or global")                                                            \
  X(TUPLE, "items (STARRED allowed)")                                                                                  \
  X(LIST, "items (STARRED allowed)")                                                                                   \
  X(SET, "items (STARRED allowed)")                                                                                    \
  X(DICT, "items: key, value, key, value...; key NULL: value is **mapping")                                            \
  X(UNARY, "op (td_operator NEGATIVE, POSITIVE, INVERT); a")                                                           \
  X(NOT, "a")                                                                                                          \
  X(BINARY, "op (td_operator); a, b")                                                                                  \
  X(COMPARE, "a; items: right operands; ops: one td_comparison for each")                                              \
  X(AND, "a, b")                                                                                                       \
  X(OR, "a, b")                                                                                                        \
  X(CONDITIONAL, "a if b else c")                                                                                      \
  X(CALL, "a: callee; items: arguments in order, each an expression, STARRED, KEYWORD or DOUBLE_STARRED")              \
  X(KEYWORD, "name = a, in a CALL")                                                                                    \
  X(STARRED, "*a")                                                                                                     \
  X(DOUBLE_STARRED, "**a, in a CALL")                                                                                  \
  X(ATTRIBUTE, "a.name")                                                                                               \
  X(INDEX, "a[b]; b is a TUPLE where commas were written, SLICEs inside")                                              \
  X(SLICE, "a:b:c, each may be NULL")                                                                                  \
  X(LAMBDA, "prototype")                                                                                               \
  X(LIST_COMPREHENSION, "a: element; items: COMPREHENSION_FOR clauses; fresh. Runs in hidden slots of the enclosing "  \
      "frame")                                                                                                         \
  X(SET_COMPREHENSION, "as LIST_COMPREHENSION")                                                                        \
  X(DICT_COMPREHENSION, "a: key, b: value; items; fresh")                                                              \
  X(GENERATOR, "a: element; items: clauses, all run in a frame of prototype (its body is a); c: iterable of the "      \
      "first clause, evaluated at once in the enclosing frame")                                                        \
  X(COMPREHENSION_FOR, "a: target; b: iterable (NULL: first clause of a GENERATOR); items: conditions; slot: "         \
      "hidden, for its running iterator")                                                                              \
  X(FSTRING, "items: CONSTANT text or FORMAT")                                                                         \
  X(FORMAT, "a: expression; op: conversion 'r', 's', 'a' or 0; b: FSTRING of the spec or NULL; value: text 'expr=' "   \
      "for {expr=} or NIL")

// Statements.
#define TD_STATEMENTS(X)                                                                                               \
  X(BLOCK, "items")                                                                                                    \
  X(EXPRESSION, "a; flags TD_NODE_HIDE when it ends in ; at a cell's top level")                                       \
  X(ASSIGN, "items: targets from left to right (a = b = v has two), b: value")                                         \
  X(AUGMENT, "a op= b")                                                                                                \
  X(ANNOTATED, "a: target, b: value or NULL; the annotation is parsed and dropped")                                    \
  X(IF, "a: test; b: block; c: else block, IF (elif: a chain of any length) or NULL")                                  \
  X(WHILE, "a: test; b: block; c: else block or NULL")                                                                 \
  X(FOR, "a: target; b: iterable; c: block; d: else block or NULL")                                                    \
  X(BREAK, "")                                                                                                         \
  X(CONTINUE, "")                                                                                                      \
  X(PASS, "")                                                                                                          \
  X(RETURN, "a or NULL")                                                                                               \
  X(FUNCTION, "prototype; a: NAME target; items: decorators")                                                          \
  X(CLASS, "prototype of the body; name; a: NAME target; b: base or NULL; items: decorators")                          \
  X(WITH, "items: context, target or NULL, context, target...; c: block")                                              \
  X(TRY, "a: block; items: EXCEPT handlers; c: else block or NULL; d: finally block or NULL")                          \
  X(EXCEPT, "a: type or NULL; b: NAME target or NULL; c: block")                                                       \
  X(RAISE, "a or NULL; b: cause or NULL")                                                                              \
  X(ASSERT, "a; b: message or NULL")                                                                                   \
  X(DELETE, "items: targets")                                                                                          \
  X(GLOBAL, "items: NAMEs, op 'n' for nonlocal; resolved away: does nothing")                                        \
  X(IMPORT, "value: dotted name (str); a: NAME target; op 1: has 'as', a gets the last module of the name, else the "  \
      "first")                                                                                                         \
  X(FROM_IMPORT, "value: module name (str, leading dots kept); items: KEYWORD nodes, name: what, a: NAME target; "     \
      "none: *")                                                                                                       \
  X(COMMAND, "op '%' or '!': value is the line after that sign; op '?': the whole line, its question marks included")

typedef enum td_kind_of_node {
#define X(KIND, doc) TD_NODE_##KIND,
  TD_EXPRESSIONS(X) TD_STATEMENTS(X)
#undef X
  TD_NODE_COUNT
} td_kind_of_node;

// X(NAME, spelling, method). In-place forms use the same row.
#define TD_OPERATORS(X)                                                                                                \
  X(ADD, "+", "add") X(SUBTRACT, "-", "sub") X(MULTIPLY, "*", "mul") X(DIVIDE, "/", "truediv")                         \
  X(FLOOR_DIVIDE, "//", "floordiv") X(REMAINDER, "%", "mod") X(POWER, "**", "pow") X(MATMUL, "@", "matmul")            \
  X(AND, "&", "and") X(OR, "|", "or") X(XOR, "^", "xor") X(LEFT_SHIFT, "<<", "lshift") X(RIGHT_SHIFT, ">>", "rshift")
typedef enum td_operator {
#define X(NAME, spelling, method) TD_BINARY_##NAME,
  TD_OPERATORS(X)
#undef X
  TD_BINARY_COUNT,
  TD_UNARY_NEGATIVE = TD_BINARY_COUNT, TD_UNARY_POSITIVE, TD_UNARY_INVERT,
} td_operator;
typedef enum td_comparison {
  TD_COMPARE_EQUAL, TD_COMPARE_NOT_EQUAL, TD_COMPARE_LESS, TD_COMPARE_LESS_EQUAL, TD_COMPARE_GREATER,
  TD_COMPARE_GREATER_EQUAL, TD_COMPARE_IN, TD_COMPARE_NOT_IN, TD_COMPARE_IS, TD_COMPARE_IS_NOT,
} td_comparison;

enum { // where a NAME lives
  TD_SCOPE_GLOBAL,          // node->global
  TD_SCOPE_LOCAL,           // frame slot; NIL: not assigned yet
  TD_SCOPE_CELL,            // frame slot holds a td_cell, shared with inner or outer functions
  TD_SCOPE_CLASS,           // class body: frame slot, and node->global when that is NIL
};
enum { TD_NODE_HIDE = 1, TD_NODE_PARENTHESES = 2, TD_NODE_WARNED = 4 };

typedef td_value td_evaluate(td_interpreter *, const struct td_node *); // NIL: an exception is set
typedef int td_execute(td_interpreter *, const struct td_node *);       // a td_flow

typedef struct td_node td_node;
struct td_node {
  union { td_evaluate *evaluate; td_execute *execute; };
  uint8_t kind, op, flags, scope;
  int32_t slot;             // NAME, COMPREHENSION_FOR; while parsing: the height of an expression (bounded)
  uint32_t begin, end;      // span in the script
  uint32_t script;          // its id
  int32_t count;            // of items
  td_node *a, *b, *c, *d;
  td_node **items;
  uint8_t *ops;             // COMPARE
  td_str *name;             // interned; counted by the arena
  union {
    td_value value;
    struct td_prototype *prototype;
    td_global *global;      // NAME: SCOPE_GLOBAL and SCOPE_CLASS
    // comprehensions: hidden slots that hold cells (a lambda inside captures their variable), ended by -1; each run of
    // the comprehension begins by putting a new cell in each of them. NULL: none
    int32_t *fresh;
    struct td_symbol *symbol; // NAME, inside the resolver only
  };
};

typedef struct td_parameter { td_str *name; td_node *fallback; uint32_t begin, end; } td_parameter;

// A function, lambda, class body, generator or module body: what the evaluator needs to make a frame for it.
typedef struct td_prototype {
  td_str *name;             // "<lambda>", "<module>"
  td_str *doc;              // docstring or NULL
  td_script *script;
  td_span span;             // whole definition, decorators included
  // BLOCK without the docstring, or an expression (lambda; generator: its element), never NULL
  td_node *body;
  bool is_expression;
  td_parameter *parameters; // in the order of their slots: positional, keyword-only, *args, **kwargs
  int32_t positional;       // how many can be given by position; fallbacks are on the last ones
  int32_t keyword_only;
  bool star, double_star;   // *args, **kwargs; their slots follow the keyword-only ones
  int32_t slot_count;       // parameters first (positional, keyword-only, *args, **kwargs), then locals and hidden ones
  // slot_count; NULL for hidden slots and, in a class body, for captured ones: the named ones are the class's
  // attributes
  td_str **slot_names;
  // slots that are cells made when the frame begins (a parameter among them is moved into its cell)
  int32_t *cells;
  int32_t cell_count;
  struct { int32_t outer, inner; } *captures; // cell in slot outer of the enclosing frame becomes slot inner here
  int32_t capture_count;
  // that all of this lives in; who keeps a prototype alive (a function) takes a reference of the arena
  struct td_arena *arena;
  int32_t positional_only;  // leading parameters before "/"
  // "Model.call"; the evaluator's cache, filled where the definition first runs; held by the arena
  td_str *qualified;
} td_prototype;

// Memory of one script's tree; counted, since functions outlive the cell that defined them.
typedef struct td_arena td_arena;
td_arena *td_arena_new(void);
void *td_arena_take(td_arena *arena, size_t bytes);   // zeroed, 16-byte aligned; NULL: no memory
// the arena owns one reference of value from now on; false: no memory, value is dropped
bool td_arena_hold(td_arena *arena, td_value value);
void td_arena_keep(td_arena *arena, td_script *script); // the arena keeps script alive
td_arena *td_arena_ref(td_arena *arena);
void td_arena_unref(td_arena *arena);

td_node *td_node_new(td_arena *arena, td_kind_of_node kind, const td_script *script, uint32_t begin, uint32_t end);
const char *td_node_kind_name(int kind);
void td_node_dump(const td_node *node, td_text *text, int depth); // for tests and for people

typedef enum td_parse_result { TD_PARSED, TD_PARSE_ERROR, TD_PARSE_INCOMPLETE, TD_PARSE_MEMORY } td_parse_result;
typedef struct td_diagnostic { // of lexer, parser and resolver
  td_span span;
  char message[320], hint[320];
} td_diagnostic;
// Parses a whole script. *tree is a BLOCK in arena. INCOMPLETE: more lines could make it right (open bracket, string or
// block at the end); message says what is open. Depth of nesting is bounded (200), so no input can exhaust the stack.
// cell: text typed into a cell: lines that begin with %, ! or end/begin with ? are COMMANDs (allowed in decks as well).
td_parse_result td_parse(td_script *script, td_arena *arena, td_interpreter *interpreter, td_node **tree,
                         td_diagnostic *diagnostic);
// Names to slots, closures, errors that can be known before running ("return outside function", "'yield' is not in this
// language: ..."); sets each node's evaluate/execute. The result is a prototype whose body is the tree.
td_prototype *td_resolve(td_interpreter *interpreter, td_script *script, td_arena *arena, td_module *module,
                         td_node *tree, td_diagnostic *diagnostic);
// From evaluate.c and execute.c: the function that runs a kind (some kinds have faster ones for common forms, chosen by
// looking at the node).
td_evaluate *td_evaluate_choose(const td_node *node);
td_execute *td_execute_choose(const td_node *node);
#endif
