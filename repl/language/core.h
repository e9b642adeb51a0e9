// What the core's files (value, evaluate, execute, assign, call, exception, classes, modules, run) share and no other
// file needs: caches, the frame of a call, and the small inline paths of numbers.
#ifndef TD_LANGUAGE_CORE_H
#define TD_LANGUAGE_CORE_H
#include "engine/tensor/dtype.h"
#include "repl/language/builtins.h"
#include "repl/language/diagnose.h"
#include "repl/language/names.h"
#include "repl/library/library.h"

enum { TD_LOOKUPS = 512, TD_RECENT_TYPES = 64, TD_STACK_VALUES = 1 << 19, TD_DEPTH_LIMIT = 10000 };

typedef struct td_lookup {  // what a name means in a class and its bases, or in a builtin type
  const void *owner;        // td_class or td_type
  td_str *name;             // counted
  td_value value;           // borrowed; NIL: absent
  uint32_t version;         // of core->class_version
} td_lookup;

typedef struct td_type_entry { // a builtin type that was asked for its methods or its class
  const td_type *type;
  td_builtin **methods;     // one for each row, made at first use; counted
  int32_t method_count;
  td_class *class;          // counted; NULL until asked for
} td_type_entry;

typedef struct td_row_signature { const td_method *row; td_signature *signature; } td_row_signature;

struct td_core {
  td_lookup lookups[TD_LOOKUPS];
  uint32_t class_version;   // changes whenever an attribute of any class changes or a class dies
  td_type_entry **types;
  int32_t type_count, type_capacity;
  td_type_entry *recent_types[TD_RECENT_TYPES]; // some of types, by address
  td_value dtypes[TD_DTYPE_COUNT]; // one value for each dtype; NIL: not made yet
  td_signature **signatures;
  int32_t signature_count, signature_capacity;
  td_row_signature *rows;   // open addressing
  uint32_t row_count, row_mask;
  td_value memory_error;    // made in advance: raised when no memory is left to make another
  td_dict *no_keywords;     // always empty
  td_module **modules;      // builtin ones (math, time), found by import
  int32_t module_count, module_capacity;
  td_module **decks;        // one for each deck of the library; NULL: not loaded; counted
  // decks that run now: other threads must not find them half done, so the turn stays (turn.h)
  int loading;
  int log_level;            // of the module logging's root
  bool log_fixed;           // by the command line
  td_dict *loggers;         // by name
  struct td_plots *plots;   // the curves of plot(); NULL: none yet
  td_value last_tape;       // watch.c
  uint64_t watched_variable; // of the Variable whose last gradient is kept (watch.c); 0: none
  struct td_tensor *watched_gradient; // owned, NULL: none came yet
  int64_t watch_until, watched_at[2]; // milliseconds (watch.c); until 0: nobody looks
  int detours;              // at boundaries (boundary.h), one in the other, that run now
  uint64_t loop_boundaries, loop_boundaries_seen; // that loops told of; how many there were at an optimizer's last step
  double detoured;          // seconds that runs stood at boundaries
  td_text output;
  int output_stream;        // 1 stdout, 2 stderr
  int exit_code;
  td_frame root;            // what natives called from C see as their caller
};

#define TD_LIKELY(x) __builtin_expect(!!(x), 1)
#define TD_UNLIKELY(x) __builtin_expect(!!(x), 0)

// The node that runs now, for messages, call paths and the tensors that it makes. Set before anything that may call
// out.
static inline void td_mark(td_interpreter *I, const td_node *n) {
  I->frame->call = n;
  I->context->place = (td_place)n->script << 32 | n->begin;
}

// Adds no reference.
static inline td_value td_borrow(void *object) { return (td_value){.tag = TD_TAG_OBJECT, .o = object}; }
static inline bool td_is_int(td_value v) { return v.tag == TD_TAG_INT; }
static inline bool td_is_double(td_value v) { return v.tag == TD_TAG_DOUBLE; }
static inline bool td_is_class(td_value v) { return td_is(v, &td_class_type); }
static inline td_class *td_as_class(td_value v) { return (td_class *)v.o; }
// An instance of a class of the language; exceptions are some.
static inline bool td_is_instance(td_value v) {
  return v.tag == TD_TAG_OBJECT && (v.o->type == &td_instance_type || v.o->type == &td_exception_type);
}
static inline td_instance *td_as_instance(td_value v) { return (td_instance *)v.o; }

static inline bool td_compare_ints(int comparison, int64_t a, int64_t b) {
  switch (comparison) {
  case TD_COMPARE_EQUAL: return a == b;
  case TD_COMPARE_NOT_EQUAL: return a != b;
  case TD_COMPARE_LESS: return a < b;
  case TD_COMPARE_LESS_EQUAL: return a <= b;
  case TD_COMPARE_GREATER: return a > b;
  default: return a >= b;
  }
}
static inline bool td_compare_doubles(int comparison, double a, double b) {
  switch (comparison) {
  case TD_COMPARE_EQUAL: return a == b;
  case TD_COMPARE_NOT_EQUAL: return a != b;
  case TD_COMPARE_LESS: return a < b;
  case TD_COMPARE_LESS_EQUAL: return a <= b;
  case TD_COMPARE_GREATER: return a > b;
  default: return a >= b;
  }
}

void td_signature_free(td_signature *signature); // signature.c
typedef struct td_callee { const char *type, *name; } td_callee; // "list", "append"; type may be NULL
bool td_bind_callee(td_interpreter *, const td_callee *callee, const td_signature *signature,
                    const td_arguments *arguments, td_value *slots);
td_signature *td_signature_of_row(td_interpreter *, const td_method *row); // parsed once; borrowed

// call.c. base[0..count) are arguments on the value stack, which the callee takes over; the stack is back at base
// after.
td_value td_call_stack(td_interpreter *, td_value callee, td_value *base, int32_t count);
td_value td_call_keywords(td_interpreter *, td_value callee, td_value *base, int32_t count,
                          int32_t keyword_count, td_str **keywords);
bool td_stack_room(td_interpreter *, int64_t values); // false: RecursionError
td_evaluate *td_call_choose(const td_node *node);
td_evaluate td_call_spread; // call_spread.c: a CALL with keywords, *values or **mappings
td_type_entry *td_type_entry_of(td_interpreter *, const td_type *type); // NULL: MemoryError
// Borrowed; NULL: no such method, or MemoryError.
td_builtin *td_type_method(td_interpreter *, const td_type *type, td_str *name);
// Runs frame->prototype's body; slots are ready; after: end of slots.
td_value td_frame_run(td_interpreter *, td_frame *frame, td_value *after);
// Makes cells, puts captured ones in place.
bool td_frame_open(td_interpreter *, td_prototype *prototype, td_value *slots, td_cell **captured);
td_str *td_qualified_name(td_interpreter *, td_prototype *prototype);   // borrowed

td_value td_function_define(td_interpreter *, td_prototype *prototype); // with the values of its defaults

// value_class.c, value_function.c, value_instance.c, value_object.c
td_value td_class_find(td_interpreter *, td_class *class, td_str *name); // td_class_lookup through the cache; borrowed
static inline td_value td_special(td_interpreter *I, td_value v, td_str *name) {
  return td_class_find(I, td_as_instance(v)->class, name);
}
// Borrows.
td_value td_special_call(td_interpreter *, td_value method, td_value self, int count, const td_value *values);
td_value td_class_build(td_interpreter *, td_str *name, td_class *base, td_dict *attributes, td_module *module,
                        td_str *qualified);
td_value td_class_construct(td_interpreter *, td_class *class, td_value *base, int32_t count,
                          int32_t keyword_count, td_str **keywords);
td_value td_instance_new(td_interpreter *, td_class *class);
td_value td_instance_attribute(td_interpreter *, td_value v, td_str *name); // NIL without exception: absent
extern const td_method td_object_methods[];  // that every instance has
// Without asking __setattr__ and __delattr__.
bool td_instance_set_plainly(td_interpreter *, td_value v, td_str *name, td_value value);
void td_instance_repr_plainly(td_value v, td_text *text);   // "<__main__.A object at 0x...>"
td_value td_instance_next(td_interpreter *, td_value v); // the StopIteration that __next__ raised stays in flight
bool td_instance_set(td_interpreter *, td_value v, td_str *name, td_value value);
// What v.name gives for an attribute found in a class; borrows.
td_value td_bind_method(td_interpreter *, td_value found, td_value self, td_class *class);
bool td_classes_make(td_interpreter *);  // the builtin ones
td_value td_super_new(td_interpreter *, td_value class, td_value self); // both None: of the running method; borrows
bool td_core_register(td_interpreter *); // super, property, staticmethod, classmethod, type's and object's methods

// exception.c
td_value td_exception_new(td_interpreter *, td_class *class, td_value arguments); // borrows arguments, a tuple
void td_report_drop(td_exception *exception);
td_value td_take_raised(td_interpreter *);     // the exception in flight, now the caller's; NIL: none
void td_put_raised(td_interpreter *, td_value exception); // takes over
bool td_is_exception_class(td_value v);
int td_exception_matches(td_interpreter *, td_value exception, td_value type); // -1: exception

// assign.c
bool td_assign(td_interpreter *, const td_node *target, td_value value); // takes over value
bool td_delete(td_interpreter *, const td_node *target);
td_execute *td_assign_choose(const td_node *node);

// comprehension.c, evaluate.c, evaluate_fast.c
td_evaluate *td_comprehension_choose(const td_node *node);
td_evaluate *td_fast_choose(const td_node *node); // NULL: no faster form
// Where an instance holds a target's attribute; NULL: unknown.
td_value *td_fast_attribute(td_interpreter *, const td_node *target, td_value v);
// Raises for a NAME that has no value; looks at builtins first.
td_value td_name_missing(td_interpreter *, const td_node *node);
td_value td_compare_any(td_interpreter *, int comparison, td_value a, td_value b); // all ten; borrows

// execute.c: one loop over an iterable; step is called with each element (takes it over) and says how to go on
typedef int td_step(td_interpreter *, void *state, td_value element); // a td_flow: NEXT or CONTINUE goes on
int td_each(td_interpreter *, td_value iterable, td_step *step, void *state); // borrows iterable; NEXT at the end

// value.c, collect.c
int64_t td_containers_live(void);  // on this thread
void td_containers_live_set(int64_t live); // the heap went to this thread
void td_containers_clear(td_interpreter *); // at the interpreter's end: empties all, so that no cycle is left

// value_module.c, import.c, builtin.c, run.c
bool td_deck_is(const td_interpreter *, const td_module *module); // is it a deck of the library?
td_module *td_deck_load(td_interpreter *, int index); // runs a deck of the library once; borrowed; NULL: exception
int td_deck_find(const td_interpreter *, const char *name); // -1: none
void td_stack_limit_find(td_interpreter *);
void td_workers_end(td_interpreter *); // worker.c: ends and joins the threads that feed
td_execute td_import_execute, td_from_import_execute;
bool td_module_put(td_interpreter *, td_module *, td_str *name, td_value value); // takes over value
td_value td_module_attribute(td_interpreter *, td_module *module, td_str *name); // NIL without exception: absent
// Emits nothing; exception in flight when FAILED.
td_run_result td_run_module(td_interpreter *, td_module *module, const char *text, size_t length, const char *name,
                            const char *folder);
#endif
