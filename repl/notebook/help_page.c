// See help_page.h. The words of the language are rows here: what stands where, a sentence, an example that runs.
#include "repl/notebook/help_page.h"
#include <string.h>
#include "repl/language/source.h"

enum { INDENT = 2 };

static size_t columns_of(const char *bytes, size_t length) { return (size_t)td_source_print(NULL, bytes, length); }

// Words from the column that the line has reached; the lines that follow begin at indent.
static void add_wrapped(td_text *text, const char *words, size_t length, size_t column, size_t indent) {
  const char *end = words + length;
  bool first = true;
  while (words < end) {
    while (words < end && *words == ' ') words++;
    const char *stop = words;
    while (stop < end && *stop != ' ') stop++;
    if (stop == words) break;
    size_t width = columns_of(words, (size_t)(stop - words));
    if (!first && column + 1 + width > TD_PAGE_COLUMNS) {
      td_text_add_char(text, '\n');
      td_text_pad(text, text->length + indent, ' ');
      column = indent;
    } else if (!first) {
      td_text_add_char(text, ' ');
      column++;
    }
    td_text_add_bytes(text, words, (size_t)(stop - words));
    column += width;
    words = stop;
    first = false;
  }
  td_text_add_char(text, '\n');
}

static void add_line(td_text *text, const char *line, size_t length) {
  td_text_pad(text, text->length + INDENT, ' ');
  td_text_add_bytes(text, line, length);
  td_text_add_char(text, '\n');
}

void td_page_title(td_text *text, const char *title) { add_wrapped(text, title, strlen(title), 0, 4); }

static bool is_prompt(const char *line) { return strncmp(line, ">>> ", 4) == 0 || strncmp(line, "... ", 4) == 0; }

void td_page_example(td_text *text, const char *code) {
  td_text_add(text, "\nexample\n");
  for (size_t length; *code; code += length + (code[length] == '\n')) {
    length = strcspn(code, "\n");
    size_t skip = is_prompt(code) ? 4 : 0;
    add_line(text, code + skip, length - skip);
  }
}

// The indent that all lines after the first share: it is the code's, not the text's.
static size_t shared_indent(const char *doc) {
  size_t shared = SIZE_MAX;
  while ((doc = strchr(doc, '\n'))) {
    size_t blank = strspn(++doc, " ");
    if (doc[blank] && doc[blank] != '\n' && blank < shared) shared = blank;
  }
  return shared;
}

void td_page_doc(td_text *text, const char *doc) {
  size_t indent = shared_indent(doc);
  while (*doc == '\n') doc++;
  if (!*doc) return;
  td_text_add_char(text, '\n');
  for (size_t length; *doc && strncmp(doc, ">>> ", 4) != 0; doc += length + (doc[length] == '\n')) {
    size_t blank = strspn(doc, " ");
    doc += blank < indent ? blank : indent;
    blank = strspn(doc, " ");
    length = strcspn(doc, "\n");
    if (blank >= length) {
      if (doc[length] && doc[length + 1 + strspn(doc + length + 1, " \n")]) td_text_add_char(text, '\n');
    } else if (blank) add_line(text, doc, length);
    else {
      td_text_pad(text, text->length + INDENT, ' ');
      add_wrapped(text, doc, length, INDENT, INDENT);
    }
  }
  if (*doc) td_page_example(text, doc);
}

static bool is_blank(const char *line, size_t length) { return strspn(line, " ") >= length; }

// Code in a docstring's last line: a call, no sentence.
static bool is_code(const char *line, size_t length) {
  while (length && *line == ' ') line++, length--;
  size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  bool opens = name < length && (line[name] == '(' || line[name] == '[' || strncmp(line + name, " = ", 3) == 0 ||
                                 strncmp(line, "with ", 5) == 0 || strncmp(line, "for ", 4) == 0);
  return opens && line[length - 1] != '.' && line[length - 1] != ':';
}

// Where the docstring's example begins; its end: there is none.
static const char *example_in(const char *doc) {
  const char *prompt = strstr(doc, ">>> "), *end = doc + strlen(doc), *last = end;
  if (prompt) return prompt;
  while (last > doc && (last[-1] == ' ' || last[-1] == '\n')) last--;
  const char *line = last;
  while (line > doc && line[-1] != '\n') line--;
  return line > doc && is_code(line, (size_t)(last - line)) ? line : end;
}

// A docstring's lines stand as they are, but a paragraph with one that is wider than the page is filled anew.
static void add_paragraph(td_text *text, td_text *paragraph) {
  bool wide = false;
  for (size_t at = 0, length; at < paragraph->length; at += length + 1) {
    length = strcspn(paragraph->data + at, "\n");
    wide |= columns_of(paragraph->data + at, length) + INDENT > TD_PAGE_COLUMNS;
  }
  if (wide) {
    for (size_t i = 0; i < paragraph->length; i++)
      if (paragraph->data[i] == '\n') paragraph->data[i] = ' ';
    td_text_pad(text, text->length + INDENT, ' ');
    add_wrapped(text, paragraph->data, paragraph->length, INDENT, INDENT);
  }
  for (size_t at = 0, length; !wide && at < paragraph->length; at += length + 1) {
    length = strcspn(paragraph->data + at, "\n");
    add_line(text, paragraph->data + at, length);
  }
  td_text_clear(paragraph);
}

void td_page_docstring(td_text *text, const char *doc) {
  size_t indent = shared_indent(doc), blanks = 0;
  td_text paragraph = {0};
  while (*doc == '\n') doc++;
  const char *example = example_in(doc);
  if (*doc) td_text_add_char(text, '\n');
  for (size_t length; doc < example && *doc; doc += length + (doc[length] == '\n')) {
    size_t blank = strspn(doc, " ");
    doc += blank < indent ? blank : indent;
    if (doc >= example) break;
    length = strcspn(doc, "\n");
    bool indented = *doc == ' ';
    if (is_blank(doc, length) || indented || blanks) add_paragraph(text, &paragraph);
    if (is_blank(doc, length)) {
      blanks++;
      continue;
    }
    if (blanks) td_text_add_char(text, '\n');
    blanks = 0;
    if (indented) {
      add_line(text, doc, length);
      continue;
    }
    if (paragraph.length) td_text_add_char(&paragraph, '\n');
    td_text_add_bytes(&paragraph, doc, length);
  }
  add_paragraph(text, &paragraph);
  if (!*example) return;
  td_text code = {0};
  td_text_add(&code, example + strspn(example, " "));
  while (code.length && (code.data[code.length - 1] == ' ' || code.data[code.length - 1] == '\n'))
    code.data[--code.length] = 0;
  if (code.data) td_page_example(text, code.data);
  td_text_clear(&code);
}

void td_page_row(td_text *text, const char *name, const char *meaning, size_t column) {
  size_t start = text->length;
  td_text_pad(text, start + INDENT, ' ');
  td_text_add(text, name);
  if (columns_of(name, strlen(name)) + INDENT >= column) {
    td_text_add_char(text, '\n');
    start = text->length;
  }
  td_text_pad(text, start + column, ' ');
  add_wrapped(text, meaning, strlen(meaning), column, column);
}

void td_page_name(td_text *text, td_page_names *names, const char *heading, const char *name) {
  size_t width = columns_of(name, strlen(name));
  if (!names->count++) {
    td_text_print(text, "\n%s\n ", heading);
    names->column = 1;
  } else if (names->column + 1 + width > TD_PAGE_COLUMNS) {
    td_text_add(text, "\n ");
    names->column = 1;
  }
  td_text_print(text, " %s", name);
  names->column += (unsigned)width + 1;
}

void td_page_names_end(td_text *text, td_page_names *names) {
  if (names->count) td_text_add_char(text, '\n');
}

// ---- words of the language ----

typedef struct keyword { const char *words, *form, *doc, *example; } keyword; // words: each between spaces

static const keyword keywords[] = {
    {" if elif else ", "if TEST: BLOCK [elif TEST: BLOCK] [else: BLOCK];  A if TEST else B",
     "Runs the block of the first test that is true. As an expression it is one of two values. A tensor of one element "
     "can be a test; where() "
     "chooses element by element.",
     "x = 3\nprint(\"large\" if x > 2 else \"small\")"},
    {" for in ", "for TARGET in ITERABLE: BLOCK [else: BLOCK];  ITEM in CONTAINER",
     "Runs the block for each item. else runs when the loop ended without break. As an operator, in says whether a "
     "container holds an item.",
     "for name, x in zip([\"a\", \"b\"], [1, 2]):\n    print(name, x)"},
    {" while ", "while TEST: BLOCK [else: BLOCK]",
     "Runs the block as long as the test is true; else when it ended without break. Ctrl-C stops it.",
     "n = 100\nwhile n > 1: n = n // 2"},
    {" break continue ", "break;  continue", "break leaves the innermost loop, continue goes on with its next round.",
     "for i in range(10):\n    if i == 3: break"},
    {" def return ", "def NAME(PARAMETERS): BLOCK;  return [VALUE]",
     "Makes a function. Parameters may have defaults; after * they are given by keyword only; *args and **kwargs take "
     "the rest. A string as "
     "first statement is its help.",
     "def scale(x, by=2.):\n    \"\"\"x times by.\"\"\"\n    return x * by"},
    {" lambda ", "lambda PARAMETERS: EXPRESSION", "A function without a name, of one expression.",
     "square = lambda x: x * x\nsquare(3.)"},
    {" class ", "class NAME[(BASE)]: BLOCK",
     "Makes a class; __init__ sets up an instance, super() is the base's side of it. One base at most.",
     "class Point:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\nPoint(1, 2).x"},
    {" with as ", "with CONTEXT [as NAME]: BLOCK",
     "Enters a context, such as a tape, and leaves it whatever happens in the block.",
     "w = Variable(3.)\nwith GradientTape() as tape:\n    y = w * w\ntape.gradient(y, w)"},
    {" try except finally ", "try: BLOCK except [TYPE [as NAME]]: BLOCK [else: BLOCK] [finally: BLOCK]",
     "Handles exceptions of the block; finally runs in any case.",
     "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print(e)"},
    {" raise ", "raise [EXCEPTION [from CAUSE]]", "Raises an exception; alone, in a handler, the one that is handled.",
     "try:\n    raise ValueError(\"no\")\nexcept ValueError as e:\n    print(e)"},
    {" assert ", "assert TEST[, MESSAGE]", "Raises AssertionError when the test is false.",
     "assert 1 + 1 == 2, \"arithmetic\""},
    {" import from ", "import NAME [as NAME];  from NAME import NAME [as NAME], ...",
     "Loads a deck, NAME.deck beside the running one or in the current folder, or a module such as math or time.",
     "from math import pi, sin\nsin(pi / 2)"},
    {" del ", "del TARGET, ...", "Forgets a name, an item or an attribute.", "x = [1, 2, 3]\ndel x[0]"},
    {" global nonlocal ", "global NAME, ...;  nonlocal NAME, ...",
     "In a function: the names are the module's, or those of the function around it.",
     "count = 0\ndef more():\n    global count\n    count += 1"},
    {" pass ", "pass", "Does nothing, where a statement must stand.", "class Empty: pass"},
    {" and or not ", "A and B;  A or B;  not A",
     "and and or give the operand that decided; the right one is evaluated only when needed. For tensors: & | ~.",
     "name = \"\" or \"nobody\""},
    {" is ", "A is B;  A is not B", "Whether both are the same object; for None, use this.", "x = None\nx is None"},
    {" True False None ", "True;  False;  None", "The two truth values, and the value of nothing.",
     "[True, not True, None]"},
    {" yield async await ", "",
     "Not in this language. A list, a comprehension or a class with __iter__ and __next__ does what a generator would.",
     "squares = [x * x for x in range(5)]"},
};

bool td_page_keyword(const char *word, td_text *text) {
  td_text spaced = {0};
  td_text_print(&spaced, " %s ", word);
  const keyword *found = NULL;
  for (size_t i = 0; spaced.data && !strchr(word, ' ') && i < sizeof keywords / sizeof *keywords; i++)
    if (strstr(keywords[i].words, spaced.data)) found = &keywords[i];
  td_text_clear(&spaced);
  if (!found) return false;
  td_page_title(text, *found->form ? found->form : word);
  td_page_doc(text, found->doc);
  td_page_example(text, found->example);
  return true;
}
