// What the builtins of files share: paths as arguments, and tensors that are to be saved.
#ifndef TD_LANGUAGE_FILES_H
#define TD_LANGUAGE_FILES_H
#include "repl/language/tensors.h"

// A str without NUL bytes, borrowed; NULL: TypeError or ValueError. who: the function, for messages.
const char *td_path_argument(td_interpreter *, td_value v, const char *who);
// The same for a file that is to be read; FileNotFoundError.
const char *td_existing_path(td_interpreter *, td_value v, const char *who);
// Any value that can stand for a tensor and has elements to be read; new reference; NULL: exception.
td_tensor *td_saved_tensor(td_interpreter *, td_value v, const char *who);
bool td_str_argument(td_interpreter *, td_value v, const char *who, const char *what); // false: TypeError
td_value td_done(td_interpreter *, int code); // None, or the engine's error raised

extern const td_method td_file_builtins[], td_tensor_file_builtins[], td_summary_builtins[], td_table_builtins[];
bool td_json_register(td_interpreter *); // module_json.c
#endif
