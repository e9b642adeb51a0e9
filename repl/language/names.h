// Interned texts that the core looks up by pointer: special methods and attributes. One row each; made once by
// td_interpreter_new and held until the interpreter ends.
#ifndef TD_LANGUAGE_NAMES_H
#define TD_LANGUAGE_NAMES_H
#include "repl/language/syntax.h"

// X(member, text)
#define TD_NAMES(X)                                                                                                    \
  X(init, "__init__") X(new_, "__new__") X(call, "__call__") X(getattr, "__getattr__") X(setattr, "__setattr__")       \
  X(delattr, "__delattr__") X(getitem, "__getitem__") X(setitem, "__setitem__") X(delitem, "__delitem__")              \
  X(len, "__len__") X(contains, "__contains__") X(iter, "__iter__") X(next, "__next__") X(enter, "__enter__")          \
  X(exit, "__exit__") X(hash, "__hash__") X(bool_, "__bool__") X(repr, "__repr__") X(str, "__str__")                   \
  X(format, "__format__") X(eq, "__eq__") X(ne, "__ne__") X(lt, "__lt__") X(le, "__le__") X(gt, "__gt__")              \
  X(ge, "__ge__") X(neg, "__neg__") X(pos, "__pos__") X(invert, "__invert__") X(int_, "__int__")                       \
  X(float_, "__float__")                                                                                               \
  X(index, "__index__") X(name, "__name__") X(qualname, "__qualname__") X(doc, "__doc__") X(module, "__module__")      \
  X(class_, "__class__") X(dict, "__dict__") X(bases, "__bases__") X(mro, "__mro__") X(base, "__base__")               \
  X(file, "__file__") X(args, "args") X(cause, "__cause__") X(self, "__self__")                     \
  X(func, "__func__") X(wrapped, "__wrapped__") X(defaults, "__defaults__") X(get, "__get__") X(set, "__set__")        \
  X(set_name, "__set_name__") X(init_subclass, "__init_subclass__") X(value, "value") X(code, "code")                  \
  X(underscore, "_")

struct td_names {
#define X(member, text) td_str *member;
  TD_NAMES(X)
#undef X
  td_str *binary[TD_BINARY_COUNT];    // "__add__"
  td_str *reflected[TD_BINARY_COUNT]; // "__radd__"
  td_str *in_place[TD_BINARY_COUNT];  // "__iadd__"
};
bool td_names_make(td_interpreter *);
void td_names_drop(td_interpreter *);
#endif
