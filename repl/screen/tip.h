// The signature of the call that is being typed, with the argument at the cursor marked.
#ifndef TD_SCREEN_TIP_H
#define TD_SCREEN_TIP_H
#include "repl/notebook/session.h"
#include "repl/screen/theme.h"

enum { TD_TIP_ID = 1 };    // of the question that asks for it

typedef struct td_tip {
  char callee[96];         // whose signature it is, or is asked for; "": none
  char signature[400];     // "": not known (yet)
  int argument;            // number of the one at the cursor
  char keyword[64];        // its name, when it is given by name; ""
} td_tip;

void td_tip_look(td_tip *tip, td_session *session, const char *text, size_t cursor); // after a key
void td_tip_answer(td_tip *tip, const td_event *event);
bool td_tip_draw(const td_tip *tip, const td_theme *theme, td_surface *surface, td_rect area); // false: there is none
#endif
