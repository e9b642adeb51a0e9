// From an error to what a person reads: the message, source line with caret span, operands' shapes, call path, hint.
#ifndef TD_LANGUAGE_DIAGNOSE_H
#define TD_LANGUAGE_DIAGNOSE_H
#include "repl/language/interpreter.h"

typedef struct td_call_site { td_place place; uint32_t end; char function[48]; } td_call_site;

typedef struct td_report {  // hangs on an exception; owned by it
  td_place place;           // begin of the span
  uint32_t end;             // its end in the same script
  char hint[480];
  td_operand operands[6];
  char expressions[6][48];  // source text of the operand ("w2"), or empty: argument's name is shown
  int operand_count;
  td_call_site path[16];    // innermost first; the middle of a longer path is dropped
  int path_count, path_dropped;
} td_report;

// Whole text of an exception, as in DESIGN section 3. Ends with a newline.
void td_diagnose(td_interpreter *, td_value exception, td_text *text);
void td_diagnose_syntax(const td_script *script, const td_diagnostic *diagnostic, td_text *text);
// Notes where the exception in flight arose: span of node, call path of the frames; called once for each exception, where it is raised.
void td_report_fill(td_interpreter *, td_exception *exception, const td_node *node);
// Nearest of the candidates to word (edit distance, case, underscores); NULL: none near enough. Candidates as a list of str.
const char *td_suggest(const char *word, td_list *candidates);
#endif
