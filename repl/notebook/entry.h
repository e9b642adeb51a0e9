// An entry that is being typed: is it whole, and how far is its next line indented? The parser knows what is open; a
// block that could go on ends with an empty line.
#ifndef TD_NOTEBOOK_ENTRY_H
#define TD_NOTEBOOK_ENTRY_H
#include "repl/notebook/session.h"

enum { TD_ENTRY_INDENT = 4, TD_ENTRY_INDENT_MOST = 64 };

// Is the entry whole now that line stands at its end? first: line is all of it; more: further input is there already.
bool td_entry_is_whole(td_session *session, const td_text *entry, const char *line, bool first, bool more);
bool td_entry_is_parsed(td_session *session, const td_text *entry); // a whole program, whatever could follow
// The white space that the line after the entry begins with.
void td_entry_indent(td_session *session, const td_text *entry, char indent[TD_ENTRY_INDENT_MOST]);
bool td_entry_leaves(const char *entry); // "exit" or "quit" alone, as in IPython: the prompt ends
void td_entry_trim(td_text *entry); // white space at its end
#endif
