// The list of what completion offers, at the cursor; each with what it is.
#ifndef TD_SCREEN_POPUP_H
#define TD_SCREEN_POPUP_H
#include "repl/notebook/session.h"
#include "repl/screen/edit.h"
#include "repl/screen/theme.h"

typedef struct td_popup {
  char **details;          // by match: "float32[784, 10] Variable"; owned
  int count;
} td_popup;

void td_popup_fill(td_popup *popup, td_session *session, const td_edit_matches *matches);
void td_popup_clear(td_popup *popup);
// Above or under the cursor, wherever there is room in the area.
void td_popup_draw(const td_popup *popup, const td_edit_matches *matches, const td_theme *theme, td_surface *surface,
                   td_rect area);
#endif
