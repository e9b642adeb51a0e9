// From an error to what a person reads: the message, source line with caret span, operands' shapes, call path, hint.
#ifndef TD_LANGUAGE_DIAGNOSE_H
#define TD_LANGUAGE_DIAGNOSE_H
#include "repl/language/interpreter.h"

typedef struct td_call_site {
  td_place place;
  uint32_t end;
  bool within;              // a call that place of the report led to, in the library; else one that led there
  char function[48];
} td_call_site;

typedef struct td_report {  // hangs on an exception; owned by it
  td_place place;           // begin of the span: in the user's own code where that led into the library
  uint32_t end;             // its end in the same script
  char hint[480];           // names of operands that stand in an expression ("b.T fits") are shown as their source text
  bool engine;              // message is the engine's and begins with the op's name: the class isn't shown before it
  td_operand operands[6];
  char expressions[6][48];  // source text of the operand ("w2"), or empty: argument's name is shown
  int operand_count;
  td_call_site path[16];    // innermost first; the middle of a longer path is dropped
  int path_count, path_dropped;
} td_report;

// Whole text of an exception, as in DESIGN section 3. Ends with a newline.
void td_diagnose(td_interpreter *, td_value exception, td_text *text);
void td_diagnose_syntax(const td_script *script, const td_diagnostic *diagnostic, td_text *text);
// Marks the report as the engine's and finds the source texts of its operands in the frame's running call or operation.
void td_report_name_operands(td_interpreter *, td_report *report);
// Notes the source texts of the two operands of a comparison, for the report of the exception in flight.
void td_report_name_compared(td_interpreter *, const td_node *compare);
// Notes where exception arose: span of node (NULL: the frame's running call), call path of the frames. What arose
// within the library is shown at the user's call. Makes the report
// (td_memory_free frees it); does nothing when the place is known already.
void td_report_fill(td_interpreter *, td_exception *exception, const td_node *node);
// What another language's word is called here ("null": "None"), else the nearest of the candidates to word (edit
// distance, case, underscores); NULL: none is near enough. Candidates are a list of str; the result lives as long as
// they do.
const char *td_suggest(const char *word, td_list *candidates);
#endif
