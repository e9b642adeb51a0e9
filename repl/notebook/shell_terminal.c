// See shell_terminal.h.
#include "repl/notebook/shell_terminal.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { STOP_MILLISECONDS = 50 }; // until a stop that was asked for has come

// ---- which commands ----

// alone: only where no word but options follows; with a script their output is the cell's.
static const struct { const char *name; bool alone; } programs[] = {
    {"bash", true},     {"bc", true},       {"btop", false},  {"dash", true},     {"emacs", false},  {"fish", true},
    {"gdb", false},     {"ghci", true},     {"htop", false},  {"info", false},    {"ipython", true}, {"ipython3", true},
    {"irb", true},      {"julia", true},    {"less", false},  {"lldb", false},    {"lua", true},     {"man", false},
    {"mc", false},      {"more", false},    {"most", false},  {"nano", false},    {"ncdu", false},   {"node", true},
    {"nvim", false},    {"nvitop", false},  {"nvtop", false}, {"pico", false},    {"psql", false},   {"python", true},
    {"python3", true},  {"R", true},        {"ranger", false}, {"screen", false}, {"sh", true},      {"sqlite3", false},
    {"tapedeck", true}, {"tig", false},     {"tmux", false},  {"top", false},     {"vi", false},     {"view", false},
    {"vim", false},     {"vimdiff", false}, {"w3m", false},   {"watch", false},   {"zsh", true}};

static const char *last_command(const char *line) { // of a pipeline or a list
  const char *begin = line;
  char quote = 0;
  for (; *line; line++) {
    if (quote) quote = *line == quote ? 0 : quote;
    else if (*line == '\'' || *line == '"') quote = *line;
    else if (strchr("|&;", *line) && line[1 + strspn(line + 1, " ")]) begin = line + 1;
  }
  return begin;
}

static const char *next_word(const char *at) {
  at += strcspn(at, " \t");
  return at + strspn(at, " \t");
}

static bool is_word(const char *at, const char *word) {
  size_t length = strcspn(at, " \t;");
  return strlen(word) == length && memcmp(at, word, length) == 0;
}

static bool is_setting(const char *at) { // NAME=value before a command
  size_t name = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
  return name && at[name] == '=';
}

bool td_shell_is_full_screen(const char *line) {
  const char *at = last_command(line);
  at += strspn(at, " \t");
  while (is_setting(at) || is_word(at, "sudo") || is_word(at, "env") || is_word(at, "exec")) at = next_word(at);
  size_t length = strcspn(at, " \t");
  const char *slash = memrchr(at, '/', length), *name = slash ? slash + 1 : at, *rest = next_word(at);
  bool alone = true;
  for (; *rest; rest = next_word(rest)) {
    if (strpbrk(rest, ">&")) return false; // its output goes elsewhere
    alone = alone && rest[0] == '-' && rest[1] && rest[1] != 'c';
  }
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    if (is_word(name, programs[i].name)) return alone || !programs[i].alone;
  return false;
}

// ---- whose it is ----

bool td_lent_begin(td_lent *lent, td_interpreter *I) {
  if (lent->descriptor >= 0 || !I->lend_terminal || !I->lend_terminal(I, true)) return lent->descriptor >= 0;
  lent->descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (lent->descriptor >= 0 && tcgetattr(lent->descriptor, &lent->modes) == 0) return true;
  td_lent_end(lent, I);
  return false;
}

void td_lent_give(td_lent *lent, pid_t group) {
  tcsetpgrp(lent->descriptor, group);
  kill(-group, SIGCONT);
}

void td_lent_suspend(td_lent *lent, pid_t group) {
  struct termios its;
  struct sigaction stop = {.sa_handler = SIG_DFL}, kept;
  tcgetattr(lent->descriptor, &its);
  tcsetattr(lent->descriptor, TCSADRAIN, &lent->modes);
  tcsetpgrp(lent->descriptor, getpgrp());
  sigaction(SIGTSTP, &stop, &kept);
  kill(0, SIGTSTP); // who started us sees that we stopped
  poll(NULL, 0, STOP_MILLISECONDS);
  sigaction(SIGTSTP, &kept, NULL);
  tcsetattr(lent->descriptor, TCSADRAIN, &its);
  td_lent_give(lent, group);
}

void td_lent_end(td_lent *lent, td_interpreter *I) {
  if (lent->descriptor >= 0) {
    tcsetpgrp(lent->descriptor, getpgrp());
    tcsetattr(lent->descriptor, TCSADRAIN, &lent->modes);
    close(lent->descriptor);
  }
  lent->descriptor = -1;
  I->lend_terminal(I, false);
}
