// Values of the language: 16 bytes, a tag and a number or a counted object. None, bool, int and float need no memory.
// References are counted, not atomically: values belong to the evaluator's thread. Containers that can form cycles are
// on a list that collect.c walks. A td_value returned by a function is owned by the caller; parameters are borrowed.
#ifndef TD_LANGUAGE_VALUE_H
#define TD_LANGUAGE_VALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/base/text.h"

typedef struct td_interpreter td_interpreter;
typedef struct td_type td_type;
typedef struct td_module td_module;
typedef struct td_class td_class;
typedef struct td_str td_str;
typedef struct td_list td_list;
typedef struct td_tuple td_tuple;
typedef struct td_dict td_dict;
struct td_arguments;
struct td_node;

enum td_tag { TD_TAG_NIL, TD_TAG_NONE, TD_TAG_BOOL, TD_TAG_INT, TD_TAG_DOUBLE, TD_TAG_OBJECT };

typedef struct td_object {
  uint32_t refs;
  uint32_t flags;           // TD_OBJECT_...
  const td_type *type;
} td_object;
enum { TD_OBJECT_INTERNED = 1, TD_OBJECT_REPR = 2 /* being printed: cuts cycles */, TD_OBJECT_CONTAINER = 4 };

typedef struct td_container { // first member of every object that can hold others
  td_object object;
  struct td_container *next, *previous;
  int64_t outside;          // collect.c's scratch
} td_container;

typedef struct td_value {
  uint64_t tag;
  union { int64_t i; double f; td_object *o; };
} td_value;

// no value: an error is set, or a name is unset, or an iterator ended
#define TD_NIL ((td_value){.tag = TD_TAG_NIL, .i = 0})
#define TD_NONE ((td_value){.tag = TD_TAG_NONE, .i = 0})
static inline td_value td_bool(bool b) { return (td_value){.tag = TD_TAG_BOOL, .i = b}; }
static inline td_value td_int(int64_t i) { return (td_value){.tag = TD_TAG_INT, .i = i}; }
static inline td_value td_double(double f) { return (td_value){.tag = TD_TAG_DOUBLE, .f = f}; }
// takes over the reference
static inline td_value td_from(void *object) { return object ? (td_value){.tag = TD_TAG_OBJECT, .o = object} : TD_NIL; }
static inline bool td_is_nil(td_value v) { return v.tag == TD_TAG_NIL; }
static inline bool td_is_none(td_value v) { return v.tag == TD_TAG_NONE; }
static inline bool td_is(td_value v, const td_type *type) { return v.tag == TD_TAG_OBJECT && v.o->type == type; }
void td_object_release(td_object *object);  // at 0 references
static inline td_value td_ref(td_value v) { if (v.tag == TD_TAG_OBJECT) v.o->refs++; return v; }
static inline void td_unref(td_value v) { if (v.tag == TD_TAG_OBJECT && --v.o->refs == 0) td_object_release(v.o); }

// arguments as the signature orders them; NIL: not given
typedef td_value td_native(td_interpreter *, td_value self, td_value *arguments);
typedef struct td_method {  // one row of a type's methods or of a module's builtins
  const char *name;
  // "(sep=None, maxsplit=-1)"; "*args" arrives as a tuple, "**kwargs" as a dict; "/" is allowed. A default in the text
  // that is None/True/False/int/float/'str' arrives as that value; "=..." arrives as NIL
  const char *signature;
  td_native *function;
  const char *doc;          // first line: one sentence; then details; an example line begins with ">>> "
} td_method;

typedef void td_visitor(td_object *object, void *argument);

// How a type behaves; NULL members mean what their comment says. Functions return NIL (or false, -1) with the exception
// set.
struct td_type {
  const char *name;                                                        // "list"
  size_t size;
  // drops what it holds; memory is freed by the caller
  void (*release)(td_object *);
  // calls visitor for each object held; NULL: holds none
  void (*visit)(td_object *, td_visitor *, void *);
  // drops what it holds, object stays valid; containers only
  void (*clear)(td_object *);
  int (*truth)(td_interpreter *, td_value);                                // NULL: true, or length != 0
  bool (*repr)(td_interpreter *, td_value, td_text *);                     // NULL: "<name object>"
  bool (*print)(td_interpreter *, td_value, td_text *);                    // str(); NULL: repr
  bool (*format)(td_interpreter *, td_value, const char *spec, td_text *); // f"{v:spec}"; NULL: an empty spec only
  // beyond methods; NIL without exception: no such attribute
  td_value (*attribute)(td_interpreter *, td_value, td_str *);
  bool (*set_attribute)(td_interpreter *, td_value, td_str *, td_value);   // value NIL: delete. NULL: read-only
  // adds attribute names for dir() and completion, running no code
  void (*names)(td_interpreter *, td_value, td_list *);
  td_value (*item)(td_interpreter *, td_value, td_value key);              // NULL: "not subscriptable"
  bool (*set_item)(td_interpreter *, td_value, td_value key, td_value value);
  // Value types (tensors): x[key] = v rebinds the name, attribute or item x to this result. Takes over container (which
  // the caller moved out of x, so a sole one is updated in place); NULL: set_item. On an exception the old container
  // comes back through *kept, to be put into x again
  td_value (*with_item)(td_interpreter *, td_value container, td_value key, td_value value, td_value *kept);
  bool (*delete_item)(td_interpreter *, td_value, td_value key);
  int64_t (*length)(td_interpreter *, td_value);                           // -1: exception
  td_value (*iterate)(td_interpreter *, td_value);                         // an iterator; NULL: "not iterable"
  td_value (*next)(td_interpreter *, td_value);                            // iterators; NIL without exception: ended
  int (*contains)(td_interpreter *, td_value, td_value item);              // NULL: iterate and compare
  td_value (*call)(td_interpreter *, td_value, const struct td_arguments *); // NULL: "not callable"
  // a or b is of this type; TD_NOT_IMPLEMENTED passes on
  td_value (*binary)(td_interpreter *, int op, td_value a, td_value b);
  // a op= b where a changes itself (list +=); NULL: binary
  td_value (*in_place)(td_interpreter *, int op, td_value a, td_value b);
  td_value (*unary)(td_interpreter *, int op, td_value);
  // EQUAL..GREATER_EQUAL; may be a tensor; NOT_IMPLEMENTED passes on
  td_value (*compare)(td_interpreter *, int comparison, td_value a, td_value b);
  // NULL: by identity unless compare is set, then "unhashable"
  bool (*hash)(td_interpreter *, td_value, uint64_t *);
  const td_method *methods;                                                // ends at name NULL; may be NULL
  const char *doc;                                                         // help page of the type
};
extern const td_value td_not_implemented;   // borrowed sentinel
extern const td_value td_ellipsis;          // the value of ...; borrowed
#define TD_NOT_IMPLEMENTED td_not_implemented
static inline bool td_is_not_implemented(td_value v) { return v.tag == TD_TAG_OBJECT && v.o == td_not_implemented.o; }

// Type records, each in its value_*.c
extern const td_type td_none_type, td_bool_type, td_int_type, td_float_type, td_str_type, td_list_type, td_tuple_type,
    td_dict_type, td_set_type, td_slice_type, td_range_type, td_function_type, td_builtin_type, td_bound_type,
    td_class_type, td_instance_type, td_exception_type, td_module_type, td_cell_type, td_generator_type,
    td_ellipsis_type, td_not_implemented_type, td_property_type, td_static_type, td_class_method_type, td_super_type;
const td_type *td_type_of(td_value v);
const char *td_type_name(td_interpreter *, td_value v);     // a class instance gives its class's name

// Allocates a zeroed object with one reference; containers are put on the interpreter's list. NULL: MemoryError is set.
void *td_object_new(td_interpreter *, const td_type *type, size_t bytes);

// ---- str: UTF-8, immutable unless sole ----
struct td_str {
  td_object object;
  uint64_t hash;            // 0: not computed
  uint32_t length;          // bytes
  uint32_t characters;      // code points
  uint32_t capacity;        // bytes that data can hold, NUL not counted
  char data[];              // NUL-terminated
};
// bytes must be UTF-8 (invalid ones become U+FFFD)
td_str *td_str_new(td_interpreter *, const char *bytes, size_t length);
td_str *td_str_from(td_interpreter *, const char *text);
// makes a str of the text and clears it; MemoryError when text->failed
td_str *td_str_take(td_interpreter *, td_text *text);
td_str *td_str_intern(td_interpreter *, const char *bytes, size_t length); // one object for each text; new reference
// takes over left when it succeeds; grows it in place when sole
td_value td_str_append(td_interpreter *, td_value left, td_value right);
static inline bool td_str_equal(const td_str *a, const td_str *b) {
  return a == b || (a->length == b->length && __builtin_memcmp(a->data, b->data, a->length) == 0);
}
uint64_t td_str_hash(td_str *);
static inline td_str *td_as_str(td_value v) { return (td_str *)v.o; }

// ---- list, tuple ----
struct td_list { td_container container; int64_t count, capacity; td_value *items; };
struct td_tuple { td_container container; int64_t count; td_value items[]; };
td_list *td_list_new(td_interpreter *, int64_t capacity);
bool td_list_append(td_interpreter *, td_list *, td_value item);         // borrows item
td_tuple *td_tuple_new(td_interpreter *, int64_t count);                 // items are NIL until set
td_value td_tuple_pack(td_interpreter *, int count, ...);                // takes over the values
static inline td_list *td_as_list(td_value v) { return (td_list *)v.o; }
static inline td_tuple *td_as_tuple(td_value v) { return (td_tuple *)v.o; }

// ---- dict, set: insertion-ordered open addressing ----
typedef struct td_entry { uint64_t hash; td_value key, value; } td_entry; // key NIL: deleted
struct td_dict {
  td_container container;
  int64_t count, used, capacity;
  td_entry *entries;
  int32_t *table;
  uint64_t mask;
  uint32_t version;
};
td_dict *td_dict_new(td_interpreter *);
// -1: exception (unhashable, a comparison raised), 0: absent, 1: found
int td_dict_get(td_interpreter *, td_dict *, td_value key, td_value *value);   // *value borrowed
bool td_dict_set(td_interpreter *, td_dict *, td_value key, td_value value);   // borrows both
int td_dict_remove(td_interpreter *, td_dict *, td_value key);
td_value td_dict_get_str(td_dict *, td_str *key);                              // borrowed, NIL: absent; never raises
bool td_dict_set_str(td_interpreter *, td_dict *, td_str *key, td_value value);
bool td_dict_next(td_dict *, int64_t *position, td_value *key, td_value *value); // borrowed; start at 0; false: ended
static inline td_dict *td_as_dict(td_value v) { return (td_dict *)v.o; }
typedef struct td_set td_set;  // value_set.c; same table, values NIL
td_set *td_set_new(td_interpreter *);
bool td_set_add(td_interpreter *, td_set *, td_value item);

// ---- slice, range ----
typedef struct td_slice { td_container container; td_value start, stop, step; } td_slice;
typedef struct td_range { td_object object; int64_t start, stop, step, count; } td_range;
td_value td_slice_new(td_interpreter *, td_value start, td_value stop, td_value step);  // borrows
bool td_slice_resolve(td_interpreter *, td_value slice, int64_t length, int64_t *start, int64_t *step, int64_t *count);

// ---- cells, functions, builtins, classes ----
typedef struct td_cell { td_container container; td_value value; } td_cell;
td_cell *td_cell_new(td_interpreter *, td_value value);                  // takes over value

typedef struct td_signature {      // how arguments are bound; shared by functions, builtins and ops
  int32_t positional, keyword_only; // as in td_prototype
  int32_t required;                // leading positional ones without default
  int32_t positional_only;
  bool star, double_star;
  td_str **names;                  // positional + keyword_only + star + double_star
  td_value *fallbacks;             // positional + keyword_only; NIL: required (or "not given" where optional says so)
  bool *optional;                  // "=...": missing arrives as NIL
} td_signature;

typedef struct td_arguments {      // one call's arguments; all borrowed
  int32_t count;                   // positional
  int32_t keyword_count;
  td_value *values;                // count positional, then keyword_count keyword values
  td_str **keywords;               // keyword_count names, interned
  const struct td_node *node;      // the CALL, for spans in messages; NULL: called from C
} td_arguments;

typedef struct td_function {
  td_container container;
  struct td_prototype *prototype;
  td_module *module;
  td_cell **captured;              // prototype->capture_count
  td_value *fallbacks;             // positional + keyword_only of the prototype; NIL: required
  td_cell *owner;                  // cell that holds the class whose body defined it, for super(); NULL: none
  td_dict *attributes;             // f.name = ...; NULL until used
  td_str *name;
  td_str *qualified;               // "Model.call", "outer.<locals>.inner"
  bool plain;                      // its frame needs no more than its positional arguments
} td_function;
typedef struct td_builtin {
  td_container container;
  const td_method *row;
  td_signature *signature;
  td_value self;
  const void *data;                // for natives that many rows share; interpreter->builtin is the one that was called
  // a method that takes self as its first argument unless self is set; NULL: a function
  const td_type *method_of;
} td_builtin;
typedef struct td_bound { td_container container; td_value self, function; } td_bound;
typedef struct td_property { td_container container; td_value get, set, remove; } td_property; // None: not given
typedef struct td_wrapper { td_container container; td_value function; } td_wrapper;   // staticmethod, classmethod

struct td_class {
  td_container container;
  td_str *name;
  td_class *base;                  // counted; NULL for object
  td_dict *attributes;
  // td_instance_type, td_exception_type; a builtin type's record for classes that stand for one (int, list)
  const td_type *instance_type;
  td_native *construct;            // builtin types: int(x), list(x); arguments: tuple, dict
  struct td_builtin *maker;        // instead of construct: arguments are bound to its signature
  td_str *doc;
  td_str *qualified;               // "Outer.Inner"; the name for builtin classes
  td_module *module;               // where it was defined; NULL: builtin
  // caches; borrowed from attributes of the chain
  struct td_special { td_value init, getattr, setattr, call; uint32_t version; } special;
};
typedef struct td_instance { td_container container; td_class *class; td_dict *attributes; } td_instance;
typedef struct td_exception {      // instance of a class under BaseException
  td_instance instance;
  td_value arguments;              // tuple
  struct td_report *report;        // where and how it arose (diagnose.h); NULL until raised
  td_value cause;
  td_value context;                // the exception that was being handled when this one was raised; NIL: none
  bool suppresses;                 // raised "from" another or None: the diagnosis leaves context out
  td_value evidence;               // for the diagnosis: the container that lacks a KeyError's key; the tuple of the two
                                   // operands of a failed assert; NIL: none
} td_exception;
bool td_class_is_subclass(const td_class *class, const td_class *base);
td_class *td_class_of(td_interpreter *, td_value v);                     // borrowed; also for builtin types
// The class that stands for a builtin type: made at the first call (base object), kept by the interpreter; borrowed;
// NULL: MemoryError. Builtins set its construct, its doc and, for bool, its base.
td_class *td_class_of_type(td_interpreter *, const td_type *type);
bool td_isinstance(td_interpreter *, td_value v, td_class *class);
td_value td_class_lookup(td_class *class, td_str *name, td_class **where); // borrowed; NIL: absent

// ---- modules and globals ----
// stable address; value NIL: unset; builtin: cache
typedef struct td_global { td_str *name; td_value value, builtin; } td_global;
struct td_module {
  td_container container;
  td_str *name;
  td_dict *index;                  // name -> int position in globals
  td_global **globals;
  int32_t count, capacity;
};
td_global *td_module_global(td_interpreter *, td_module *, td_str *name); // made when absent; borrowed
td_value td_module_get(td_module *, td_str *name);                        // borrowed; NIL: unset

// ---- generic operations: dispatch over tags and type records ----
int td_truth(td_interpreter *, td_value v);                              // 0, 1; -1: exception
td_value td_binary(td_interpreter *, int op, td_value a, td_value b);
td_value td_unary(td_interpreter *, int op, td_value v);
td_value td_compare(td_interpreter *, int comparison, td_value a, td_value b);
int td_equal_values(td_interpreter *, td_value a, td_value b);           // identity first; -1: exception
bool td_hash(td_interpreter *, td_value v, uint64_t *hash);
td_value td_attribute(td_interpreter *, td_value v, td_str *name);
td_value td_attribute_find(td_interpreter *, td_value v, td_str *name);  // NIL without exception: no such attribute
bool td_set_attribute(td_interpreter *, td_value v, td_str *name, td_value value); // value NIL: deletes
td_value td_item(td_interpreter *, td_value v, td_value key);
bool td_set_item(td_interpreter *, td_value v, td_value key, td_value value);
bool td_delete_item(td_interpreter *, td_value v, td_value key);
int td_contains(td_interpreter *, td_value container, td_value item);    // -1: exception
// a op= b; takes over a when it succeeds, which it may change when nobody else holds it
td_value td_in_place(td_interpreter *, int op, td_value a, td_value b);
const char *td_operator_spelling(int op); // "+"
int64_t td_length(td_interpreter *, td_value v);
td_value td_iterate(td_interpreter *, td_value v);
td_value td_next(td_interpreter *, td_value iterator);                   // NIL without exception: ended
bool td_to_list(td_interpreter *, td_value iterable, td_list *into);     // appends all elements
// calls anything callable (td_call is the engine's kernel call)
td_value td_invoke(td_interpreter *, td_value callee, const td_arguments *arguments);
td_value td_call_values(td_interpreter *, td_value callee, int count, td_value *values);
td_value td_call_method(td_interpreter *, td_value v, const char *name, int count, td_value *values);
bool td_repr(td_interpreter *, td_value v, td_text *text);
bool td_print(td_interpreter *, td_value v, td_text *text);              // str()
bool td_format(td_interpreter *, td_value v, const char *spec, td_text *text);
// int, bool, 0-d integer tensor; else TypeError
int64_t td_to_int(td_interpreter *, td_value v, bool *ok);
double td_to_double(td_interpreter *, td_value v, bool *ok);             // a number, 0-d tensor; else TypeError
void td_collect(td_interpreter *);                                       // frees unreachable cycles
#endif
