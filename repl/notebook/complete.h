// Completion: what could stand at the cursor. Looks at names, types and signatures; runs no code of the user's.
#ifndef TD_NOTEBOOK_COMPLETE_H
#define TD_NOTEBOOK_COMPLETE_H
#include "repl/language/interpreter.h"

typedef struct td_completion {
  const char *line;    // text up to the cursor
  size_t length;
  size_t start;        // out: where the word to be replaced begins
  bool files;          // out: the cursor is inside a string or a path: file names fit
  char **words; // out: each a whole replacement ("x.shape", "axis="); owned by the caller, NULL when none.
                // Arguments of the call that is typed come first, as its signature has them, then all others sorted
  int count, arguments; // arguments: how many of them are such
} td_completion;

void td_complete(td_interpreter *I, void *completion); // a td_session_question; argument: td_completion *
void td_completion_clear(td_completion *completion);

typedef struct td_open_call { // whose bracket is open at the end of a text: f in "g(f(a, b"
  size_t callee, length; // of its name; length 0: there is none
  size_t open;           // where its arguments begin
  size_t argument;       // where the last one of them begins
  int before;            // how many stand before that one
} td_open_call;
td_open_call td_find_open_call(const char *line, size_t length);
// What a word that was offered stands for, in a few words: "Variable float32[784, 10]", the first sentence of a
// function's help. Owned by the caller; NULL: nothing is known.
char *td_complete_detail(td_interpreter *I, const char *word);
#endif
