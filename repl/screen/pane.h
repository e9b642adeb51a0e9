// A pane: what stands at the right of the cells. A pane is a row of functions (td_pane_type) and a state; its state is
// made of events alone, and drawing reads nothing else, so that a pane can be tested by feeding it events and looking
// at a surface. A new pane is one file pane_NAME.c, one line in panes.h, and its requests in request.h.
#ifndef TD_SCREEN_PANE_H
#define TD_SCREEN_PANE_H
#include "repl/notebook/session.h"
#include "repl/screen/keyboard.h"
#include "repl/screen/picture.h"
#include "repl/screen/request.h"
#include "repl/screen/surface.h"
#include "repl/screen/theme.h"

enum { TD_PANE_IDS = 64 }; // of the questions of a pane: the first pane's begin there, the others' follow

// What a pane may ask of the screen. All of it works at once; answers come as events.
typedef struct td_pane_host {
  void *owner;
  const td_theme *theme;
  // td_session_inquire: ANSWER comes with that id, one of the TD_PANE_IDS from the pane's first_id on.
  bool (*inquire)(void *owner, td_inquiry *make, const char *argument, int32_t id);
  td_payload *(*take_payload)(void *owner); // of the event that is given out now; the pane's from then on
  void (*run)(void *owner, const char *line); // as if it were typed at the prompt
  void (*jump)(void *owner, const char *script, int line, int column); // shows a place of a cell
  enum td_context_kind (*context)(void *owner); // what had the focus before this pane
  void (*say)(void *owner, const char *text); // in the status line
  void (*beside)(void *owner, const char *name, td_text *path); // of a file beside the deck, named after it
  bool (*reply)(void *owner, const char *line); // answers an INPUT event; false: nothing waits for one
  // Asks for a line in the status line; answer gets it with the argument, or NULL after Escape.
  void (*ask)(void *owner, const char *prompt, void (*answer)(void *argument, const char *line), void *argument);
  // A picture that shall stand in an area of the surface in this frame; serial tells it from others. true: it will be
  // drawn in pixels, and the area stays blank. false: the terminal has cells only.
  bool (*place)(void *owner, const td_pixels *picture, uint64_t serial, td_rect area);
  void (*show)(void *owner, const char *pane); // opens another pane, or this one
  void (*emit)(void *owner, const td_event *event); // to all panes, as if the session had
  double (*now)(void *owner);      // seconds
} td_pane_host;

typedef struct td_pane_type {
  const char *name;                // "curves": what the user calls it
  enum td_context_kind context;    // of its own keys
  enum td_request toggle;          // the request that opens and closes it
  size_t state_size;               // of its state, zeroed before open
  void (*open)(void *state, const td_pane_host *host, int32_t first_id); // when the screen starts
  void (*close)(void *state);      // when it ends
  void (*event)(void *state,
                const td_event *event); // every event of the session, also while it is not shown; NULL: none
  void (*shown)(void *state, bool shown); // it comes into sight or goes; NULL: doesn't matter
  void (*tick)(void *state);       // in sight: every half second, to ask for news; NULL: never
  bool (*answers)(const void *state); // it answers INPUT by itself, so the prompt need not come forward; NULL: never
  bool (*request)(void *state, enum td_request request); // false: not one of its own
  void (*click)(void *state, const td_key *key); // a mouse key, row and column from the pane's corner; NULL: none
  bool (*find)(void *state, const char *name); // shows one of its things; false: it has none of that name; NULL: never
  void (*title)(void *state, td_text *title);
  void (*draw)(void *state, td_surface *surface, td_rect area, bool focus);
} td_pane_type;
#endif
