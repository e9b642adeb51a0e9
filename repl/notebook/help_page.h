// How help pages look: a title, paragraphs wrapped at words, rows of a name and its meaning, lists of names, examples.
// No line is longer than TD_PAGE_COLUMNS, unless a single word is.
#ifndef TD_NOTEBOOK_HELP_PAGE_H
#define TD_NOTEBOOK_HELP_PAGE_H
#include <stdbool.h>
#include "engine/base/text.h"

enum { TD_PAGE_COLUMNS = 100 };

void td_page_title(td_text *text, const char *title);
// A docstring: each line is a paragraph, lines that are indented stay as they are, lines after ">>> " are the example.
void td_page_doc(td_text *text, const char *doc);
// A docstring of code: its lines stand as they are, and the code in its last ones is the example.
void td_page_docstring(td_text *text, const char *doc);
void td_page_row(td_text *text, const char *name, const char *meaning, size_t column); // column: where meanings begin
void td_page_example(td_text *text, const char *code);
bool td_page_keyword(const char *word, td_text *text); // the page of a word of the language; false: it is none

typedef struct td_page_names { unsigned count, column; } td_page_names;
void td_page_name(td_text *text, td_page_names *names, const char *heading,
                  const char *name); // heading: before the first
void td_page_names_end(td_text *text, td_page_names *names);
#endif
