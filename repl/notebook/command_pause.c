// %pause, %resume, %step, %stop: of the run that stands at a step boundary, or is to (session.h).
#include "repl/notebook/commands.h"
#include "repl/notebook/session_state.h"

static td_value told(td_interpreter *I, bool paused) {
  if (paused) return TD_NONE;
  td_raise(I, TD_CLASS_RUNTIME_ERROR, "nothing is paused");
  td_raise_hint(I, "a run pauses between two steps of fit or of a loop over progress(...)");
  return TD_NIL;
}

static td_value run_pause(td_interpreter *I, const char *arguments) {
  (void)arguments;
  if (td_session_pause_here(I)) return TD_NONE;
  return td_raise(I, TD_CLASS_RUNTIME_ERROR, "%%pause needs a session");
}

static td_value run_resume(td_interpreter *I, const char *arguments) {
  return (void)arguments, told(I, td_session_resume_here(I));
}

static td_value run_step(td_interpreter *I, const char *arguments) {
  return (void)arguments, told(I, td_session_step_here(I));
}

static td_value run_stop(td_interpreter *I, const char *arguments) {
  return (void)arguments, told(I, td_session_stop_here(I));
}

const td_command_row td_commands_pause[] = {
    {"pause", "%pause", run_pause, "The run stops at its next step, keeps its state, and cells run meanwhile."},
    {"resume", "%resume", run_resume, "The paused run goes on."},
    {"step", "%step", run_step, "The paused run takes one step, and pauses again."},
    {"stop", "%stop", run_stop, "The paused run ends with a KeyboardInterrupt; what it changed so far is kept."},
    {NULL, NULL, NULL, NULL}};
