// !command: /bin/sh runs it in a process group of its own, beside the face; its output comes as OUTPUT events while it
// runs. Ctrl-C sends the group SIGINT, another one SIGKILL. What it leaves running in the background isn't waited for.
// A command that needs the terminal gets it until it ends (shell_terminal.h): one that is known to, from its start;
// others when the terminal stops them, since they read from it or change its modes. Where nobody lends one, standard
// input is empty.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "repl/language/turn.h"
#include "repl/notebook/commands.h"
#include "repl/notebook/shell_terminal.h"

extern char **environ;

enum { LOOK_MILLISECONDS = 20 };

typedef struct command { // that runs
  td_interpreter *interpreter;
  pid_t pid;               // its process group
  int out;                 // what it writes; -1: to the terminal
  int status, interrupts;
  bool ended, refused;     // refused: it needs a terminal, and there is none
  td_lent lent;
} command;

static volatile sig_atomic_t running; // process group of the command; 0: none

void td_shell_hang_up(void) {
  if (running) kill(-(pid_t)running, SIGHUP);
}

// ---- its start ----

static bool has_terminal(const td_interpreter *I) { // that a command may ask for
  int terminal = I->lend_terminal ? open("/dev/tty", O_RDWR | O_CLOEXEC) : -1;
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

static void choose_files(posix_spawn_file_actions_t *actions, const char *in, int out) { // out -1: all is the terminal
  posix_spawn_file_actions_init(actions);
  posix_spawn_file_actions_addopen(actions, STDIN_FILENO, in, O_RDWR, 0);
  posix_spawn_file_actions_adddup2(actions, out < 0 ? STDIN_FILENO : out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions, out < 0 ? STDIN_FILENO : out, STDERR_FILENO);
}

static void choose_attributes(posix_spawnattr_t *attributes) {
  static const int usual[] = {SIGINT, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) sigaddset(&defaults, usual[i]);
  posix_spawnattr_init(attributes);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &defaults);
  posix_spawnattr_setpgroup(attributes, 0);
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static bool start(command *c, const char *line) { // false: errno says why
  int pipes[2] = {-1, -1};
  bool screen = td_shell_is_full_screen(line) && td_lent_begin(&c->lent, c->interpreter);
  if (!screen && pipe2(pipes, O_CLOEXEC)) return false;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  choose_files(&actions, screen || has_terminal(c->interpreter) ? "/dev/tty" : "/dev/null", pipes[1]);
  choose_attributes(&attributes);
  char *arguments[] = {"sh", "-c", (char *)line, NULL};
  int code = posix_spawn(&c->pid, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (pipes[1] >= 0) close(pipes[1]);
  c->out = pipes[0];
  if (!code && screen) td_lent_give(&c->lent, c->pid);
  if (!code) return true;
  if (c->out >= 0) close(c->out);
  errno = code;
  return false;
}

// ---- while it runs ----

static void refuse(command *c) {
  c->refused = true;
  kill(-c->pid, SIGKILL);
}

static void stopped(command *c, int signal) {
  bool asks = signal == SIGTTIN || signal == SIGTTOU;
  if (asks && td_lent_begin(&c->lent, c->interpreter)) td_lent_give(&c->lent, c->pid);
  else if (asks) refuse(c);
  else if (c->lent.descriptor >= 0) td_lent_suspend(&c->lent, c->pid);
}

static void look(command *c) {
  int status;
  if (c->ended || waitpid(c->pid, &status, WNOHANG | WUNTRACED) != c->pid) return;
  c->ended = !WIFSTOPPED(status);
  if (c->ended) c->status = status;
  else stopped(c, WSTOPSIG(status));
}

static void pass_interrupt(command *c) { // one that came
  if (atomic_exchange(&c->interpreter->context->interrupt, 0)) kill(-c->pid, c->interrupts++ ? SIGKILL : SIGINT);
}

// Until it has written something or some time has passed; others have the turn meanwhile.
static bool wait_for_output(const command *c, int milliseconds) {
  struct pollfd wait = {.fd = c->out, .events = POLLIN};
  td_evaluator *e = milliseconds && c->interpreter->turn ? c->interpreter->turn->holder : NULL;
  if (e) td_turn_give(e);
  int ready = poll(&wait, 1, milliseconds);
  if (e) td_turn_take(e);
  return ready > 0;
}

static bool copy_some(command *c) { // false: there is nothing more
  char block[8192];
  ssize_t got = read(c->out, block, sizeof block);
  if (got > 0) td_output(c->interpreter, 1, block, (size_t)got);
  if (c->lent.descriptor >= 0) td_output_flush(c->interpreter);
  return got > 0 || (got < 0 && errno == EINTR);
}

// Until it has ended and nothing more is there, or has closed its output and ended.
static void attend(command *c) {
  bool open = c->out >= 0;
  while (open || !c->ended) {
    pass_interrupt(c);
    look(c);
    bool ready = wait_for_output(c, c->ended ? 0 : LOOK_MILLISECONDS);
    if (ready && open) open = copy_some(c);
    if (!open) c->out = -1;
    if (ready) continue;
    if (c->ended) break;
    td_output_flush(c->interpreter);
  }
}

static td_value result_of(td_interpreter *I, const command *c) {
  char note[64];
  if (c->refused) return td_raise(I, TD_CLASS_OS_ERROR, "!: the command wants the terminal, and there is none here");
  if (c->interrupts) return td_raise(I, TD_CLASS_KEYBOARD_INTERRUPT, "interrupted");
  if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0) return TD_NONE;
  if (WIFEXITED(c->status)) snprintf(note, sizeof note, "the command ended with exit code %d", WEXITSTATUS(c->status));
  else snprintf(note, sizeof note, "the command was ended by signal %d", WTERMSIG(c->status));
  td_warn(I, note);
  return TD_NONE;
}

td_value td_shell_run(td_interpreter *I, const char *line) {
  command c = {.interpreter = I, .out = -1, .lent = {.descriptor = -1}};
  td_output_flush(I);
  bool started = start(&c, line);
  int problem = errno;
  if (started) {
    int out = c.out;
    running = c.pid;
    attend(&c);
    running = 0;
    if (out >= 0) close(out);
  }
  if (c.lent.descriptor >= 0) td_lent_end(&c.lent, I);
  if (!started) return td_raise(I, TD_CLASS_OS_ERROR, "!: /bin/sh can't be started: %s", strerror(problem));
  return result_of(I, &c);
}
