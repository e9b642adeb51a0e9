// The evaluator's state: one interpreter runs code on one thread and owns the session's values. Faces talk to it
// through commands and events only (event.h).
#ifndef TD_LANGUAGE_INTERPRETER_H
#define TD_LANGUAGE_INTERPRETER_H
#include "engine/base/context.h"
#include "repl/language/event.h"
#include "repl/language/syntax.h"

enum td_flow { TD_FLOW_NEXT, TD_FLOW_BREAK, TD_FLOW_CONTINUE, TD_FLOW_RETURN, TD_FLOW_ERROR };

typedef struct td_frame {
  struct td_frame *caller;
  td_prototype *prototype;
  td_function *function;    // NULL: module or class body
  td_module *module;
  td_value *slots;
  const td_node *call;      // node in this frame that is calling right now: for the call path
  td_value returned;        // set by RETURN
  // class body: cell that will hold the class, for super(); borrowed. Functions: function->owner
  td_cell *owner;
} td_frame;

struct td_boundary;
typedef bool td_at_boundary(td_interpreter *, const struct td_boundary *boundary); // false: exception
// kind '%', '!' or '?'; None, or a value to show; NIL: exception
typedef td_value td_command(td_interpreter *, char kind, const char *line);

struct td_interpreter {
  td_context *context;      // of the thread that runs now (turn.h)
  td_frame *frame;
  td_value *slots;          // frame->slots: what LOCAL names index
  td_value *stack, *stack_top, *stack_end; // frames' slots and call arguments; never moves
  char *stack_limit;        // lowest address the C stack may reach; below: RecursionError
  int32_t depth, depth_limit; // calls now; 10000
  td_value raised;          // the exception in flight; NIL: none
  td_value handling;        // the exception an except block handles; for bare raise
  td_module *main;          // the session's module
  td_module *builtins;      // names of every module's last resort; filled lazily (ops, library decks)
  td_dict *modules;         // imported ones, by path
  td_sources sources;
  td_container containers;  // head of the list of all containers
  int64_t container_count, collect_at;
  td_dict *interned;
  td_str *letters[128];     // strs of one ASCII character, made at first use; borrowed from interned
  const td_event_sink *sink; // where events go; NULL: dropped
  td_dict *ops;             // name -> op builtin (td_op_value, unbound), filled by td_tensors_register
  struct td_names *names;   // interned texts that C code looks up often
  td_class **classes;       // builtin classes by enum td_builtin_class
  td_value last;            // value of the last expression statement (_)
  int32_t progress_level;   // progress bars open now
  int32_t cell;             // number of the running cell
  td_dict *results;         // _1, _2 ...
  // a debugger, told of every call of a function while depth_limit is 0
  void (*on_call)(td_interpreter *, const td_prototype *callee);
  // a line from whoever sits there, owned by the caller; NULL: end of input, or exception. NULL itself: nobody
  char *(*read_line)(td_interpreter *, const char *prompt);
  // The face's terminal for somebody else: true, it is left to the caller; then false, it is the face's again. Returns
  // whether it is left; NULL itself: there is none.
  bool (*lend_terminal)(td_interpreter *, bool lend);
  td_at_boundary *boundary; // what happens at step boundaries (boundary.h); NULL: nothing
  td_command *command;      // runs COMMAND lines; set by the notebook; NULL: they are errors
  // the standard library's decks, ends with name NULL; set by who made the interpreter; NULL: none
  const struct td_library_deck *library;
  const td_builtin *builtin; // the builtin function that was called last: its data, for natives shared by many rows
  struct td_turn *turn;     // whose turn it is among several threads; NULL: there is one only
  struct td_core *core;     // caches and tables of the core's own files (core.h)
};

td_interpreter *td_interpreter_new(int threads);   // NULL: no memory. Builtins are ready, no deck is loaded
void td_interpreter_free(td_interpreter *interpreter);

typedef struct td_run_options {
  const char *name, *folder; // of the script
  // every top-level expression value is an event (prompt, -e, pipes); else the last one of a cell only
  bool echo_all;
  bool echo_last;            // the last expression statement's value
  int32_t cell;
  int32_t line;              // lines of the file before this text: added to line numbers
  bool at_step;              // of a session: it may run at a step boundary of the cell that runs (session.h)
} td_run_options;
typedef enum td_run_result { TD_RUN_DONE, TD_RUN_FAILED, TD_RUN_INTERRUPTED, TD_RUN_EXIT } td_run_result;
// Parses, resolves and runs a text in module. Its events begin with CELL_STARTED and end with CELL_FINISHED (total:
// exit()'s code).
td_run_result td_run(td_interpreter *, td_module *module, const char *text, size_t length,
                     const td_run_options *options);
td_parse_result td_check_complete(td_interpreter *, const char *text, size_t length); // for prompts: runs nothing
int td_exit_code(const td_interpreter *);          // after TD_RUN_EXIT

// Raising. All return NIL so that "return td_raise(...)" works.
#define TD_BUILTIN_CLASSES(X)                                                                                          \
  X(OBJECT, "object", OBJECT) X(BASE_EXCEPTION, "BaseException", OBJECT) X(EXCEPTION, "Exception", BASE_EXCEPTION)     \
  X(SYSTEM_EXIT, "SystemExit", BASE_EXCEPTION) X(KEYBOARD_INTERRUPT, "KeyboardInterrupt", BASE_EXCEPTION)              \
  X(ARITHMETIC_ERROR, "ArithmeticError", EXCEPTION) X(ZERO_DIVISION_ERROR, "ZeroDivisionError", ARITHMETIC_ERROR)      \
  X(OVERFLOW_ERROR, "OverflowError", ARITHMETIC_ERROR) X(ASSERTION_ERROR, "AssertionError", EXCEPTION)                 \
  X(ATTRIBUTE_ERROR, "AttributeError", EXCEPTION) X(IMPORT_ERROR, "ImportError", EXCEPTION)                            \
  X(MODULE_NOT_FOUND_ERROR, "ModuleNotFoundError", IMPORT_ERROR) X(LOOKUP_ERROR, "LookupError", EXCEPTION)             \
  X(INDEX_ERROR, "IndexError", LOOKUP_ERROR) X(KEY_ERROR, "KeyError", LOOKUP_ERROR)                                    \
  X(MEMORY_ERROR, "MemoryError", EXCEPTION)                                                                            \
  X(NAME_ERROR, "NameError", EXCEPTION) X(UNBOUND_LOCAL_ERROR, "UnboundLocalError", NAME_ERROR)                        \
  X(OS_ERROR, "OSError", EXCEPTION) X(FILE_NOT_FOUND_ERROR, "FileNotFoundError", OS_ERROR)                             \
  X(RUNTIME_ERROR, "RuntimeError", EXCEPTION) X(NOT_IMPLEMENTED_ERROR, "NotImplementedError", RUNTIME_ERROR)           \
  X(RECURSION_ERROR, "RecursionError", RUNTIME_ERROR) X(GRADIENT_ERROR, "GradientError", RUNTIME_ERROR)                \
  X(STOP_ITERATION, "StopIteration", EXCEPTION) X(EOF_ERROR, "EOFError", EXCEPTION)                                    \
  X(SYNTAX_ERROR, "SyntaxError", EXCEPTION)                                                                            \
  X(SYSTEM_ERROR, "SystemError", EXCEPTION) X(TYPE_ERROR, "TypeError", EXCEPTION)                                      \
  X(VALUE_ERROR, "ValueError", EXCEPTION)                                                                              \
  X(WARNING, "Warning", EXCEPTION) X(USER_WARNING, "UserWarning", WARNING)
enum td_builtin_class {
#define X(NAME, text, base) TD_CLASS_##NAME,
  TD_BUILTIN_CLASSES(X)
#undef X
  TD_CLASS_COUNT
};
td_value td_raise(td_interpreter *, enum td_builtin_class class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
td_value td_raise_at(td_interpreter *, const td_node *node, enum td_builtin_class class, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// adds the remedy to the exception in flight
void td_raise_hint(td_interpreter *, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Puts words in front of the message in flight.
void td_raise_within(td_interpreter *, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A message in flight that begins "OLD: " begins "NEW: " then.
void td_raise_renamed(td_interpreter *, const char *old, const char *new);
// what the diagnosis of the exception in flight will look at; borrows
void td_raise_evidence(td_interpreter *, td_value evidence);
td_value td_raise_value(td_interpreter *, td_value exception);    // an instance or a class; borrows
// turns context->error into an exception (operands, hint kept) and clears it
td_value td_raise_engine(td_interpreter *);
td_value td_raise_memory(td_interpreter *);                       // needs no memory itself
void td_clear_raised(td_interpreter *);
// an exception of the class, or of one under it, is in flight
bool td_raised_is(td_interpreter *, enum td_builtin_class class);
// Called at statements, back edges and by long builtins: true: KeyboardInterrupt was raised. May let other threads run.
bool td_interrupted_slow(td_interpreter *);
static inline bool td_interrupted(td_interpreter *I) {
  return __builtin_expect(atomic_load_explicit(&I->context->asked, memory_order_relaxed) != 0, 0) &&
         td_interrupted_slow(I);
}

// Output of the running code: buffered, an OUTPUT event at newline batches and where a statement of the top level ends.
void td_output(td_interpreter *, int stream, const char *bytes, size_t length); // stream 1 stdout, 2 stderr
void td_output_flush(td_interpreter *);
void td_warn(td_interpreter *, const char *message);               // a WARNING event with the place that runs now
// of the user's code that runs: no line of the library
td_place td_own_place(const td_interpreter *);

// Guards against deep recursion: call in natives that recurse. true: RecursionError was raised.
bool td_recursion_slow(td_interpreter *I);
static inline bool td_recursion(td_interpreter *I) {
  return __builtin_expect((char *)__builtin_frame_address(0) < I->stack_limit, 0) && td_recursion_slow(I);
}

// Calls (call.c). Frames for functions, classes and generators.
// captures from the current frame; evaluates nothing
td_value td_function_new(td_interpreter *, td_prototype *prototype, td_module *module);
// slots get new references
bool td_bind(td_interpreter *, const char *callee, const td_signature *signature, const td_arguments *arguments,
             td_value *slots);
// "(x, axis=None, *, keepdims=False)"; owned by the interpreter
td_signature *td_signature_parse(td_interpreter *, const char *text);
td_value td_builtin_new(td_interpreter *, const td_method *row, td_value self, const void *data); // borrows self

// Builtin names (builtin.c): the value of a name that no module defines; NIL without exception: none. Looks at
// functions, classes, ops of the engine and, last, the library decks (loading the deck that defines the name). New
// reference.
td_value td_builtin_find(td_interpreter *, td_str *name);
// all of them, for completion and suggestions; loads nothing
void td_builtin_names(td_interpreter *, td_list *names);
bool td_builtin_define(td_interpreter *, const char *name, td_value value);     // takes over value
bool td_builtin_define_rows(td_interpreter *, const td_method *rows);           // each row a builtin function
// types, functions, math and time (builtin_*.c, module_*.c); once, by td_interpreter_new
bool td_builtins_register(td_interpreter *);
td_value td_module_load(td_interpreter *, const char *name, const td_node *node); // import
td_module *td_module_new(td_interpreter *, const char *name);      // an empty one; new reference
// A module of C functions that "import name" finds; its other values are set by td_module_set. Borrowed: the
// interpreter keeps it.
td_module *td_module_define(td_interpreter *, const char *name, const td_method *rows);
// a module that needs no import; made when first asked for
td_module *td_module_builtin(td_interpreter *, const char *name);
bool td_module_set(td_interpreter *, td_module *, const char *name, td_value value); // takes over value
#endif
