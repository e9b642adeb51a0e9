// What keys can ask for: one row a request, with the keys it stands on, where, and what the help page says. Keys of a
// context go before those of ANY. A line cell's own keys (readline's) are not here: what no row takes goes to the
// editor.
#ifndef TD_SCREEN_REQUEST_H
#define TD_SCREEN_REQUEST_H
#include "repl/screen/keyboard.h"

// Where keys count. EDIT: text is edited, at the prompt or in a cell; CELLS: walking the cells; PANE: in any pane at
// the right; the others: in that pane.
#define TD_CONTEXTS(X)                                                                                                 \
  X(ANY, "everywhere") X(EDIT, "while you type") X(CELLS, "among the cells (Esc)") X(PANE, "in a pane")                \
  X(CURVES, "in curves") X(TAPE, "in the tape") X(VARIABLES, "in variables") X(RUNS, "in runs") X(IMAGES, "in images") \
  X(LOG, "in the log") X(HELP, "in help")

enum td_context_kind {
#define X(NAME, text) TD_IN_##NAME,
  TD_CONTEXTS(X)
#undef X
  TD_IN_COUNT
};

// X(NAME, context, "keys, the first is shown", "help")
#define TD_REQUESTS(X)                                                                                                 \
  X(HELP, ANY, "F1 C-x_h", "help on what has the focus, and all keys")                                                 \
  X(SHOW_CURVES, ANY, "F2 C-x_c", "the curves pane")                                                                   \
  X(SHOW_TAPE, ANY, "F3 C-x_t", "the tape pane")                                                                       \
  X(SHOW_CELLS, ANY, "F4 C-x_n", "walk the cells")                                                                     \
  X(RESUME, ANY, "F5 C-x_r", "run the cell; paused: go on")                                                            \
  X(STEP, ANY, "F6 C-x_s", "paused: one step, and pause again")                                                        \
  X(STOP, ANY, "S-F5 C-x_k", "stop what runs")                                                                         \
  X(SHOW_LOG, ANY, "F7 C-x_l", "the log: what was printed, whole")                                                     \
  X(SHOW_VARIABLES, ANY, "F9 C-x_v", "the variables pane")                                                             \
  X(SHOW_RUNS, ANY, "C-x_p", "the runs pane: past runs, to overlay in curves")                                         \
  X(SHOW_IMAGES, ANY, "C-x_i", "the images pane")                                                                      \
  X(RUN_ALL, ANY, "C-x_a", "run all cells from the first")                                                             \
  X(QUIT, ANY, "F10 C-x_C-c", "leave")                                                                                 \
  X(SAVE, ANY, "C-x_C-s", "save the deck")                                                                             \
  X(OTHER, ANY, "C-x_o", "into the pane and back")                                                                     \
  X(CLOSE_PANE, ANY, "C-x_1", "close the pane")                                                                        \
  X(ZOOM, ANY, "C-x_z", "the pane as large as the screen, and back")                                                   \
  X(WIDER, ANY, "C-x_}", "the pane wider")                                                                             \
  X(NARROWER, ANY, "C-x_{", "the pane narrower")                                                                       \
  X(SIZES, ANY, "C-x_0", "the usual sizes")                                                                            \
  X(REDRAW, ANY, "C-l", "draw everything again")                                                                       \
  X(SUSPEND, ANY, "C-z", "to the shell; fg comes back")                                                                \
  X(EXPORT, ANY, "C-x_C-w", "write the screen to a text file")                                                         \
  X(SUBMIT, EDIT, "M-Enter S-Enter C-Enter", "run the cell as it stands")                                              \
  X(LEAVE_EDIT, EDIT, "Esc", "walk the cells")                                                                         \
  X(SCROLL_UP, EDIT, "PgUp S-Up", "scroll the cells back")                                                             \
  X(SCROLL_DOWN, EDIT, "PgDn S-Down", "scroll the cells on")                                                           \
  X(EDITOR, EDIT, "C-x_C-e", "edit the text in $VISUAL or $EDITOR")                                                    \
  X(REPLAY, EDIT, "C-o", "run the entry and bring up the one that followed it")                                        \
  X(CALL_HELP, EDIT, "C-x_?", "help on the word at the cursor")                                                        \
  X(CELL_UP, CELLS, "k Up C-p", "the cell above")                                                                      \
  X(CELL_DOWN, CELLS, "j Down C-n", "the cell below")                                                                  \
  X(CELL_FIRST, CELLS, "g Home", "the first cell")                                                                     \
  X(CELL_LAST, CELLS, "G End", "the last cell")                                                                        \
  X(CELL_EDIT, CELLS, "Enter", "edit the cell in place")                                                               \
  X(CELL_RUN, CELLS, "r C-Enter M-Enter", "run the cell")                                                              \
  X(CELL_RUN_NEXT, CELLS, "S-Enter Space", "run the cell and go to the next")                                          \
  X(CELL_RUN_BELOW, CELLS, "R", "run from here to the end")                                                            \
  X(CELL_RUN_ABOVE, CELLS, "A", "run all cells above")                                                                 \
  X(CELL_RUN_STALE, CELLS, "t", "run the stale cells")                                                                 \
  X(CELL_ABOVE, CELLS, "a", "a new cell above")                                                                        \
  X(CELL_BELOW, CELLS, "b", "a new cell below")                                                                        \
  X(CELL_DELETE, CELLS, "d_d x", "delete the cell")                                                                    \
  X(CELL_PASTE, CELLS, "p", "put the deleted cell below")                                                              \
  X(CELL_COPY, CELLS, "y_y c", "copy the cell")                                                                        \
  X(CELL_MOVE_UP, CELLS, "K", "move the cell up")                                                                      \
  X(CELL_MOVE_DOWN, CELLS, "J", "move the cell down")                                                                  \
  X(CELL_MERGE, CELLS, "M", "merge with the cell below")                                                               \
  X(CELL_SPLIT, EDIT, "C-x_-", "split the cell at the cursor")                                                         \
  X(CELL_MARKDOWN, CELLS, "m", "make it prose")                                                                        \
  X(CELL_CODE, CELLS, "Y", "make it code")                                                                             \
  X(CELL_FOLD, CELLS, "o", "fold its output")                                                                          \
  X(CELL_CLEAR, CELLS, "C", "clear its output")                                                                        \
  X(CELL_UNDO, CELLS, "u z", "undo the last change of cells")                                                          \
  X(CELL_REDO, CELLS, "C-r", "do it again")                                                                            \
  X(CELL_ERROR, CELLS, "e", "to the line of its error")                                                                \
  X(CELL_SEARCH, CELLS, "/", "search the cells")                                                                       \
  X(CELL_SEARCH_NEXT, CELLS, "n", "the next match")                                                                    \
  X(CELL_SEARCH_BACK, CELLS, "N", "the match before")                                                                  \
  X(CELL_PAGE_UP, CELLS, "PgUp C-b", "a page back")                                                                    \
  X(CELL_PAGE_DOWN, CELLS, "PgDn C-f", "a page on")                                                                    \
  X(OUTPUT_UP, CELLS, "S-Up", "scroll its output back")                                                                \
  X(OUTPUT_DOWN, CELLS, "S-Down", "scroll its output on")                                                              \
  X(CELL_LEAVE, CELLS, "i Esc", "back to the prompt")                                                                  \
  X(COMMAND_LINE, CELLS, ":", ":w NAME, :q, :q!, :wq, :x")                                                             \
  X(PANE_UP, PANE, "k Up C-p", "up")                                                                                   \
  X(PANE_DOWN, PANE, "j Down C-n", "down")                                                                             \
  X(PANE_PAGE_UP, PANE, "PgUp b C-b", "a page up")                                                                     \
  X(PANE_PAGE_DOWN, PANE, "PgDn Space f C-f", "a page down")                                                           \
  X(PANE_FIRST, PANE, "g Home", "to the beginning")                                                                    \
  X(PANE_LAST, PANE, "G End", "to the end")                                                                            \
  X(PANE_LEFT, PANE, "h Left", "left")                                                                                 \
  X(PANE_RIGHT, PANE, "l Right", "right")                                                                              \
  X(PANE_OPEN, PANE, "Enter", "open")                                                                                  \
  X(PANE_BACK, PANE, "Backspace", "back")                                                                              \
  X(PANE_SEARCH, PANE, "/", "search")                                                                                  \
  X(PANE_SEARCH_NEXT, PANE, "n", "the next match")                                                                     \
  X(PANE_SEARCH_BACK, PANE, "N", "the match before")                                                                   \
  X(PANE_FILTER, PANE, "&", "show only what holds a text")                                                             \
  X(PANE_SORT, PANE, "o", "sort by the next column")                                                                   \
  X(PANE_LEAVE, PANE, "Esc", "back to the prompt")                                                                     \
  X(PANE_CLOSE, PANE, "q", "close the pane")                                                                           \
  X(CURVES_LOG, CURVES, "y", "logarithmic axis, and back")                                                             \
  X(CURVES_SMOOTH, CURVES, "s", "smoothing: off, light, strong")                                                       \
  X(CURVES_IN, CURVES, "+ =", "zoom in")                                                                               \
  X(CURVES_OUT, CURVES, "-", "zoom out")                                                                               \
  X(CURVES_ALL, CURVES, "a", "all of it")                                                                              \
  X(CURVES_PICK, CURVES, "]", "the next curve alone, then all")                                                        \
  X(CURVES_PICK_BACK, CURVES, "[", "the curve before alone")                                                           \
  X(CURVES_SAVE, CURVES, "w", "save them as PNG pictures beside the deck")                                             \
  X(TAPE_FOLLOW, TAPE, ".", "follow the newest tape")                                                                  \
  X(TAPE_INPUT, TAPE, "h Left", "to the record that made its first input")                                             \
  X(TAPE_USE, TAPE, "l Right", "to the first record that uses it")                                                     \
  X(TAPE_JUMP, TAPE, "e", "to the source line")                                                                        \
  X(TAPE_STEP, TAPE, "s", "the backward pass by steps; in one: the next record, as Enter")                             \
  X(TAPE_GO, TAPE, "c", "in a pass: to its end without stops")                                                         \
  X(TAPE_SET, TAPE, "=", "in a pass: put another cotangent in place")                                                  \
  X(TAPE_QUIT, TAPE, "x", "in a pass: leave it")                                                                       \
  X(TAPE_BAD, TAPE, "!", "to the first NaN or infinity")                                                               \
  X(VARIABLES_ALL, VARIABLES, "a", "names only, with the optimizers' Variables, without")                             \
  X(RUNS_OVERLAY, RUNS, "Space", "show the run in curves, and not")                                                    \
  X(RUNS_FOLDER, RUNS, "c", "the runs of another folder")                                                              \
  X(RUNS_AGAIN, RUNS, "r", "look again")                                                                               \
  X(IMAGES_NEXT, IMAGES, "]", "the next image; so do arrows where all of it is in sight")                              \
  X(IMAGES_BACK, IMAGES, "[", "the image before")                                                                      \
  X(IMAGES_IN, IMAGES, "+ =", "closer; arrows move about in it")                                                       \
  X(IMAGES_OUT, IMAGES, "-", "farther")                                                                                \
  X(IMAGES_SAVE, IMAGES, "w", "save it as a PNG")

enum td_request {
  TD_REQUEST_NONE,
#define X(NAME, ...) TD_REQUEST_##NAME,
  TD_REQUESTS(X)
#undef X
  TD_REQUEST_COUNT
};

typedef struct td_request_row { const char *name, *keys, *help; int context; } td_request_row;
extern const td_request_row td_request_rows[TD_REQUEST_COUNT];

// The request of a key in a context (a pane's own: its keys, then PANE's, then ANY's). *prefix keeps the first of two
// keys; NONE with *pending set: another key is wanted.
enum td_request td_request_find(const td_key *key, enum td_context_kind context, td_key *prefix, bool *pending);
// The keys of a request for people: "Ctrl-X c". which: 0 the first; false: there is none.
bool td_request_keys(enum td_request request, int which, td_text *text);
#endif
