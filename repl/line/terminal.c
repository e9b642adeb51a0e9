// See terminal.h. Signals only set flags; deadly ones put the modes back and then do what they always do, also those of
// a crash.
#include "repl/line/terminal.h"
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "repl/notebook/charset.h"
#include "repl/notebook/command.h"

static volatile sig_atomic_t interrupted, suspended, resized;
static struct termios kept_modes;
static bool modes_kept, writes_escapes;
static sigset_t kept_mask;

bool td_terminal_is_dumb(void) {
  const char *term = getenv("TERM");
  return !term || !*term || strcmp(term, "dumb") == 0 || strcmp(term, "unknown") == 0;
}

// ---- pictures ----

static bool has(const char *variable, const char *part) {
  const char *value = getenv(variable);
  return value && strstr(value, part);
}

bool td_terminal_picture(td_text *text, const td_pixels *pixels) {
  struct winsize size;
  const char *none = getenv("NO_COLOR");
  bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_row > 2;
  int columns = known ? size.ws_col - 1 : 79, rows = known ? size.ws_row - 2 : 22;
  bool full = has("COLORTERM", "truecolor") || has("COLORTERM", "24bit");
  bool colours = !(none && *none) && (full || has("TERM", "256color"));
  bool blocks = colours && td_charset_unicode();
  return blocks ? td_pixels_blocks(text, pixels, columns, rows, full) : td_pixels_ascii(text, pixels, columns);
}

// ---- signals ----

void td_terminal_interrupt(void) { interrupted = 1; }
static void on_suspend(int number) { suspended = number; }
static void on_resize(int number) { resized = number; }

static void restore_modes(void) {
  if (modes_kept) tcsetattr(STDIN_FILENO, TCSANOW, &kept_modes);
}

static void on_death(int number) {
  static const char paste_off[] = "\033[?2004l\r";
  restore_modes();
  td_shell_hang_up();
  if (writes_escapes && write(STDOUT_FILENO, paste_off, sizeof paste_off - 1) < 0) writes_escapes = false;
  signal(number, SIG_DFL);
  raise(number);
}

static sigset_t set_of(int a, int b, int c) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, a);
  sigaddset(&set, b);
  sigaddset(&set, c);
  return set;
}

static void take_death(int number) { // one that is ignored (nohup) stays so
  struct sigaction old, action = {.sa_handler = on_death, .sa_flags = SA_ONSTACK};
  if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(number, &action, NULL);
}

void td_terminal_start(void) {
  static const int deadly[] = {SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  static char stack[64 << 10];
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigset_t ours = set_of(SIGINT, SIGTSTP, SIGWINCH);
  struct sigaction resize = {.sa_handler = on_resize};
  modes_kept = tcgetattr(STDIN_FILENO, &kept_modes) == 0;
  writes_escapes = !td_terminal_is_dumb() && isatty(STDOUT_FILENO);
  sigprocmask(SIG_BLOCK, &ours, &kept_mask);
  sigaltstack(&alternate, NULL);
  sigaction(SIGWINCH, &resize, NULL);
  for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) take_death(deadly[i]);
}

void td_terminal_stop(void) {
  restore_modes();
  sigprocmask(SIG_SETMASK, &kept_mask, NULL);
}

void td_terminal_modes(enum td_terminal_modes wanted) {
  if (!modes_kept) return;
  struct termios modes = kept_modes;
  if (wanted != TD_MODES_KEPT) {
    modes.c_lflag &= ~(tcflag_t)(wanted == TD_MODES_QUIET ? ICANON | ECHO : ICANON);
    modes.c_iflag &= ~(tcflag_t)ICRNL;
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
  }
  tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
}

void td_terminal_allow_interrupt(bool allow) {
  sigset_t ours = set_of(SIGINT, SIGTSTP, SIGTSTP);
  sigprocmask(allow ? SIG_UNBLOCK : SIG_BLOCK, &ours, NULL);
}

// ---- waiting ----

static bool take(volatile sig_atomic_t *flag) {
  bool set = *flag != 0;
  *flag = 0;
  return set;
}

enum td_terminal_news td_terminal_wait(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  struct sigaction suspend = {.sa_handler = on_suspend}, kept;
  sigset_t closed, open;
  sigprocmask(SIG_BLOCK, NULL, &closed);
  open = closed;
  sigdelset(&open, SIGINT);
  sigdelset(&open, SIGTSTP);
  sigdelset(&open, SIGWINCH);
  sigaction(SIGTSTP, &suspend, &kept);
  int ready = ppoll(&input, 1, NULL, &open);
  sigprocmask(SIG_SETMASK, &open, NULL); // where input is there already, ppoll lets no signal in
  sigprocmask(SIG_SETMASK, &closed, NULL);
  sigaction(SIGTSTP, &kept, NULL);
  if (take(&interrupted)) return TD_NEWS_INTERRUPT;
  if (take(&suspended)) return TD_NEWS_SUSPEND;
  if (take(&resized)) return TD_NEWS_RESIZE;
  if (ready > 0 && input.revents & (POLLHUP | POLLERR | POLLNVAL)) return TD_NEWS_GONE;
  return ready > 0 ? TD_NEWS_INPUT : TD_NEWS_RESIZE; // another signal: nothing is lost by looking at the size
}

static int poll_input(int milliseconds) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, milliseconds) > 0 ? input.revents : 0;
}

bool td_terminal_waiting(int milliseconds) { return poll_input(milliseconds) & POLLIN; }

bool td_terminal_gone(void) { return poll_input(0) & (POLLHUP | POLLERR | POLLNVAL); }

void td_terminal_suspend(void) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  restore_modes();
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, NULL);
  sigprocmask(SIG_BLOCK, &stop, NULL);
}
