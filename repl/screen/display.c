// See display.h.
//  1. curses writes to a descriptor of its own; 1 and 2 are a pipe meanwhile, so that nothing that prints can spoil the
//     screen. td_display_leave puts them back.
//  2. Handlers only set flags and write a byte; those of deadly signals put the terminal back by system calls alone and
//     let the signal do what it always does. Ctrl-\ is such a signal, should the face itself ever hang.
//  3. readline and a parent's LINES and COLUMNS would freeze curses' size: both are removed, and the size is asked of
//     the terminal.
#include "repl/screen/display.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>
#include "engine/base/memory.h"
#include "repl/line/terminal.h"
#include "repl/notebook/charset.h"
#include "repl/notebook/command.h"
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
#undef columns // names of capabilities that term.h takes
#undef lines

enum { PAIRS_MOST = 4096, ALTERNATE_STACK = 64 << 10 };

static struct {
  SCREEN *screen;
  FILE *out;
  int terminal;             // descriptor of the terminal, for writing
  int kept[3];              // what 1 and 2 were
  int stray[2], signals[2];
  struct termios modes;
  td_spot *shown;           // what the terminal shows now; NULL: unknown
  int rows, columns, colours;
  bool active, away, mouse, redrawn;
  bool unicode;             // characters that are not ASCII are sent
  int pair_count;
  uint32_t pairs[PAIRS_MOST]; // foreground << 16 | background of each pair, as 16-bit numbers
} display = {.terminal = -1, .stray = {-1, -1}, .signals = {-1, -1}};

static volatile sig_atomic_t news, end_signal;

// ---- giving the terminal back, also from a handler ----

static const char leave_screen[] = "\033[?2004l\033[?1006l\033[?1002l\033[?1049l\033[?25h\033[0m\r";

static void restore_now(void) {
  if (!display.active || display.away) return;
  if (write(display.terminal, leave_screen, sizeof leave_screen - 1) < 0) errno = 0;
  tcsetattr(display.terminal, TCSANOW, &display.modes);
}

static void wake(void) {
  int kept = errno;
  if (write(display.signals[1], "", 1) < 0) errno = kept;
  errno = kept;
}

static void on_news(int number) {
  if (number == SIGTERM || number == SIGHUP) end_signal = number;
  news |= number == SIGWINCH  ? TD_SIGNAL_RESIZE
          : number == SIGTSTP ? TD_SIGNAL_SUSPEND
          : number == SIGINT  ? TD_SIGNAL_INTERRUPT
                              : TD_SIGNAL_END;
  wake();
}

static void on_death(int number) {
  restore_now();
  td_shell_hang_up();
  signal(number, SIG_DFL);
  raise(number);
}

static void restore_at_exit(void) { restore_now(); }

static void catch(int number, void (*handler)(int), int flags) {
  struct sigaction old, action = {.sa_handler = handler, .sa_flags = flags};
  if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN && number != SIGPIPE) return; // nohup
  sigaction(number, &action, NULL);
}

static void catch_signals(void) {
  static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
  static char stack[ALTERNATE_STACK];
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternate, NULL);
  catch(SIGWINCH, on_news, SA_RESTART);
  catch(SIGTSTP, on_news, SA_RESTART);
  catch(SIGTERM, on_news, SA_RESTART);
  catch(SIGHUP, on_news, SA_RESTART);
  catch(SIGINT, on_news, SA_RESTART);
  signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) catch(deadly[i], on_death, SA_ONSTACK | SA_RESETHAND);
}

int td_display_news(void) {
  char bytes[64];
  while (read(display.signals[0], bytes, sizeof bytes) > 0) continue;
  sigset_t all, kept;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &kept);
  int taken = news;
  news = 0;
  sigprocmask(SIG_SETMASK, &kept, NULL);
  return taken;
}

// ---- modes ----

static void write_terminal(const char *bytes, size_t length) {
  while (length) {
    ssize_t done = write(display.terminal, bytes, length);
    if (done < 0 && errno == EAGAIN) {
      struct pollfd room = {.fd = display.terminal, .events = POLLOUT};
      poll(&room, 1, -1);
    } else if (done < 0 && errno != EINTR) return;
    if (done <= 0) continue;
    bytes += done;
    length -= (size_t)done;
  }
}

static void say(const char *bytes) { write_terminal(bytes, strlen(bytes)); }

static void set_modes(void) {
  struct termios modes;
  if (tcgetattr(display.terminal, &modes) != 0) return;
  modes.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR | ISTRIP);
  modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
  modes.c_lflag |= ISIG | NOFLSH;
  modes.c_cc[VINTR] = _POSIX_VDISABLE; // Ctrl-C is a key, in order with the others, and no signal to who started us
  modes.c_cc[VSUSP] = _POSIX_VDISABLE; // so is Ctrl-Z: curses ignores its signal while it draws
  modes.c_cc[VMIN] = 1;
  modes.c_cc[VTIME] = 0;
  tcsetattr(display.terminal, TCSADRAIN, &modes);
}

void td_display_mouse(bool on) {
  display.mouse = on;
  if (display.active && !display.away) say(on ? "\033[?1002h\033[?1006h" : "\033[?1006l\033[?1002l");
}

static void enter_modes(void) {
  set_modes();
  say("\033[?2004h");
  td_display_mouse(display.mouse);
}

static void take_descriptors(void) {
  fflush(NULL);
  dup2(display.stray[1], STDOUT_FILENO);
  dup2(display.stray[1], STDERR_FILENO);
}

static void put_back_descriptors(void) {
  fflush(NULL);
  dup2(display.kept[1], STDOUT_FILENO);
  dup2(display.kept[2], STDERR_FILENO);
}

// ---- start and stop ----

bool td_display_possible(void) {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || td_terminal_is_dumb()) return false;
  int error;
  if (setupterm(NULL, STDOUT_FILENO, &error) != OK) return false;
  const char *move = tigetstr("cup"), *clear_all = tigetstr("clear");
  return move && move != (char *)-1 && clear_all && clear_all != (char *)-1;
}

bool td_display_unicode(void) { return td_charset_unicode(); }

void td_display_show_unicode(void) {
  display.unicode = true;
  td_display_redraw();
}

bool td_display_shows_unicode(void) { return display.unicode; }

static bool open_pipes(void) {
  return pipe2(display.stray, O_CLOEXEC) == 0 && pipe2(display.signals, O_CLOEXEC | O_NONBLOCK) == 0 &&
         fcntl(display.stray[0], F_SETFL, O_NONBLOCK) == 0;
}

static void find_colours(int wanted) {
  display.colours = 0;
  if (wanted == 0 || !has_colors()) return;
  start_color();
  use_default_colors();
  display.colours = COLORS >= 256 ? 256 : COLORS >= 8 ? 8 : 0;
  display.pair_count = 1;
}

bool td_display_start(int colours) {
  unsetenv("LINES");
  unsetenv("COLUMNS");
  if (!open_pipes()) return false;
  display.terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  display.kept[1] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  display.kept[2] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  display.out = fdopen(display.terminal, "w");
  tcgetattr(display.terminal, &display.modes);
  display.screen = display.out ? newterm(NULL, display.out, stdin) : NULL;
  if (!display.screen) return false;
  display.active = true;
  display.unicode = td_charset_unicode();
  nonl();
  cbreak();
  noecho();
  keypad(stdscr, FALSE);
  leaveok(stdscr, FALSE);
  typeahead(-1);
  find_colours(colours);
  catch_signals();
  atexit(restore_at_exit);
  take_descriptors();
  enter_modes();
  td_display_size(&display.rows, &display.columns);
  return true;
}

void td_display_leave(void) {
  if (!display.active || display.away) return;
  say("\033[?2004l\033[?1006l\033[?1002l");
  def_prog_mode();
  endwin();
  tcsetattr(display.terminal, TCSADRAIN, &display.modes);
  put_back_descriptors();
  display.away = true;
}

void td_display_return(void) {
  if (!display.active || !display.away) return;
  display.away = false;
  reset_prog_mode();
  take_descriptors();
  refresh();
  enter_modes();
  td_display_redraw();
}

void td_display_stop(void) {
  if (!display.active) return;
  td_display_leave();
  display.active = false;
  delscreen(display.screen);
  fclose(display.out);
  td_memory_free(display.shown);
  display.shown = NULL;
  close(display.stray[0]);
  close(display.stray[1]);
}

void td_display_suspend(void) {
  td_display_leave();
  signal(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  catch(SIGTSTP, on_news, SA_RESTART);
  td_display_return();
  news |= TD_SIGNAL_RESIZE;
  wake();
}

int td_display_input(void) { return STDIN_FILENO; }
int td_display_end_signal(void) { return end_signal; }
int td_display_stray(void) { return display.stray[0]; }
int td_display_signals(void) { return display.signals[0]; }
int td_display_colours(void) { return display.colours; }

void td_display_size(int *rows, int *columns) {
  struct winsize size;
  if (ioctl(display.terminal, TIOCGWINSZ, &size) != 0 || !size.ws_row || !size.ws_col)
    size = (struct winsize){.ws_row = 24, .ws_col = 80};
  if (size.ws_row != LINES || size.ws_col != COLS) {
    resizeterm(size.ws_row, size.ws_col);
    td_display_redraw();
  }
  *rows = display.rows = size.ws_row;
  *columns = display.columns = size.ws_col;
}

void td_display_cell_size(int *width, int *height) {
  struct winsize size;
  bool known =
      ioctl(display.terminal, TIOCGWINSZ, &size) == 0 && size.ws_xpixel && size.ws_ypixel && size.ws_row && size.ws_col;
  *width = known ? size.ws_xpixel / size.ws_col : 8;
  *height = known ? size.ws_ypixel / size.ws_row : 16;
}

// ---- drawing ----

static short pair_of(td_style style) {
  if (!display.colours || (style.foreground < 0 && style.background < 0)) return 0;
  uint32_t wanted = (uint32_t)(uint16_t)style.foreground << 16 | (uint16_t)style.background;
  int most = COLOR_PAIRS < PAIRS_MOST ? COLOR_PAIRS : PAIRS_MOST;
  for (int i = display.pair_count - 1; i > 0; i--)
    if (display.pairs[i] == wanted) return (short)i;
  if (display.pair_count >= most) return 0; // td_display_show begins anew before that
  init_pair((short)display.pair_count, style.foreground, style.background);
  display.pairs[display.pair_count] = wanted;
  return (short)display.pair_count++;
}

static attr_t attributes_of(uint16_t set) {
  static const struct { uint16_t ours; attr_t theirs; } rows[] = {
      {TD_BOLD, A_BOLD}, {TD_DIM, A_DIM}, {TD_ITALIC, A_ITALIC}, {TD_UNDERLINE, A_UNDERLINE}, {TD_REVERSE, A_REVERSE}};
  attr_t result = A_NORMAL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (set & rows[i].ours) result |= rows[i].theirs;
  return result;
}

static void send_spot(int row, int column, const td_spot *spot, bool wide) {
  wchar_t text[3] = {(wchar_t)spot->code, (wchar_t)spot->mark, 0};
  int width = spot->code < 128 ? 1 : display.unicode ? wcwidth((wchar_t)spot->code) : -1;
  if (width != (wide ? 2 : 1)) { // it is not to be sent, or the C library's columns are others
    text[0] = '?';
    text[1] = 0;
  }
  if (text[1] && wcwidth(text[1]) != 0) text[1] = 0;
  cchar_t cell;
  short pair = pair_of(spot->style);
  if (setcchar(&cell, text, attributes_of(spot->style.attributes), pair, NULL) != OK) return;
  mvadd_wch(row, column, &cell);
  if (wide && width != 2) mvaddch(row, column + 1, ' ');
}

static bool same(const td_spot *a, const td_spot *b) {
  return a->code == b->code && a->mark == b->mark && a->style.foreground == b->style.foreground &&
         a->style.background == b->style.background && a->style.attributes == b->style.attributes;
}

static void begin_again(int rows, int columns) {
  td_memory_free(display.shown);
  display.shown = td_memory_new((size_t)rows * (size_t)columns * sizeof *display.shown);
  display.pair_count = 1;
  clearok(stdscr, TRUE);
  erase();
}

void td_display_redraw(void) {
  td_memory_free(display.shown);
  display.shown = NULL;
}

bool td_display_was_redrawn(void) { return display.redrawn; }

void td_display_show(const td_surface *s) {
  if (!display.active || display.away) return;
  int rows = s->rows < display.rows ? s->rows : display.rows;
  int columns = s->columns < display.columns ? s->columns : display.columns;
  int most = COLOR_PAIRS < PAIRS_MOST ? COLOR_PAIRS : PAIRS_MOST;
  bool all = !display.shown || display.pair_count > most - most / 4;
  display.redrawn = all;
  if (all) begin_again(s->rows, s->columns);
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      const td_spot *spot = &s->spots[row * s->columns + column];
      td_spot *old = display.shown ? &display.shown[row * s->columns + column] : NULL;
      bool wide = column + 1 < s->columns && !spot[1].code;
      bool changed = all || !old || !same(spot, old) || (wide && !same(spot + 1, old + 1));
      if (changed && spot->code) send_spot(row, column, spot, wide && column + 1 < columns);
      if (old) *old = *spot;
    }
  curs_set(s->cursor_row >= 0);
  if (s->cursor_row >= 0) move(s->cursor_row, s->cursor_column);
  refresh();
}

void td_display_raw(int row, int column, const char *bytes, size_t length) {
  if (!display.active || display.away) return;
  char place[64];
  fflush(display.out);
  int size = snprintf(place, sizeof place, "\0337\033[%d;%dH", row + 1, column + 1);
  write_terminal(place, (size_t)size);
  write_terminal(bytes, length);
  say("\0338");
}
