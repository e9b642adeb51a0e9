// Hints for what people write from habit elsewhere.
#ifndef TD_LANGUAGE_HABIT_H
#define TD_LANGUAGE_HABIT_H
#include "repl/language/interpreter.h"

enum td_habit {
  TD_HABIT_NAME,      // a name that nobody defined, or a dtype's text
  TD_HABIT_ATTRIBUTE, // of a tensor or Variable
  TD_HABIT_CALL,      // an attribute that is called
  TD_HABIT_KEYWORD,   // of a call
  TD_HABIT_MODULE,    // that is imported
  TD_HABIT_ABSENT,    // a module of Python's that is not here
  TD_HABIT_MEMBER,    // of a module: random.sample
  TD_HABIT_PAIR,      // a reduction whose value is taken for (values, places)
};
const char *td_habit(enum td_habit place, const char *word); // the remedy; NULL: none

// These add the hint to the exception in flight.
bool td_habit_is_module(const char *name); // "np", "torch"
// module: the NAME that is not defined, in np.random.normal(...); names: those that are.
void td_habit_module_hint(td_interpreter *, const td_node *module, td_list *names);
// Raises what a call raises for a keyword that is none of names, a list of str; the hint is the nearest one or the
// habit.
td_value td_refuse_keyword(td_interpreter *, const char *callee, const td_str *keyword, td_list *names);
bool td_habit_attribute_hint(td_interpreter *, td_value tensor, td_str *name); // false: nothing is known
#endif
