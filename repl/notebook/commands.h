// The rows of the commands by topic, and what they share. Private to the notebook floor.
#ifndef TD_NOTEBOOK_COMMANDS_H
#define TD_NOTEBOOK_COMMANDS_H
#include "repl/language/diagnose.h"
#include "repl/language/tensors.h"
#include "repl/notebook/command.h"

// Each ends at name NULL.
extern const td_command_row td_commands_time[];    // %time %timeit
extern const td_command_row td_commands_session[]; // %run %reset %history %save %pwd %cd %seed %help
extern const td_command_row td_commands_inspect[]; // %who %whos %mem %tape
extern const td_command_row td_commands_trouble[]; // %nan %health
extern const td_command_row td_commands_debug[];   // %debug
extern const td_command_row td_commands_plot[];    // %plot %runs
extern const td_command_row td_commands_pause[];   // %pause %resume %step %stop
extern const td_command_row td_commands_undo[];    // %undo

// Evaluates an expression and stops at each record of the tape that its backward passes come to; NIL: exception.
td_value td_tape_step(td_interpreter *I, const td_tape *tape, const char *expression);
bool td_tape_is_spent(const td_tape *tape); // no record of it can be differentiated any more
extern const char td_spent_text[];           // the remedy
td_value td_shell_run(td_interpreter *I,
                      const char *line); // !line: output is shown as it comes; Ctrl-C ends the command
bool td_help_page(td_interpreter *I, const char *line, td_text *text); // what it shows; false: exception
td_value td_help_show(td_interpreter *I, const char *line);  // ?name, name?, name?? (source)

// Runs a text in the session's module and gives the value of its last expression (None: there is none). NIL: exception.
td_value td_evaluate_text(td_interpreter *I, const char *text, const char *name);
td_value td_evaluate_in(td_interpreter *I, td_module *module, const char *text,
                        const char *name); // the same in another module
// Calls a function of the library by its name. NIL: exception.
td_value td_call_library(td_interpreter *I, const char *name, int count, td_value *values);
void td_output_text(td_interpreter *I, td_text *text);       // prints it, and clears it
void td_output_raised(td_interpreter *I);                    // the same for the diagnosis of the exception in flight
#endif
