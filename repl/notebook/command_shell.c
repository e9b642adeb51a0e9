// !command: /bin/sh runs it in a process group of its own, with an empty standard input; its output comes as OUTPUT
// events while it runs. Ctrl-C sends the group SIGINT, another one SIGKILL. What it leaves running in the background
// isn't waited for.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include "repl/notebook/commands.h"

extern char **environ;

static volatile sig_atomic_t running; // process group of the command; 0: none

void td_shell_hang_up(void) {
  if (running) kill(-(pid_t)running, SIGHUP);
}

static pid_t start_shell(const char *line, int *out) {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC)) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  char *arguments[] = {"sh", "-c", (char *)line, NULL};
  pid_t pid = -1;
  int code = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[1]);
  if (code) {
    close(pipes[0]);
    errno = code;
    return -1;
  }
  *out = pipes[0];
  return pid;
}

// Takes an interrupt that came and passes it on; returns how many have come.
static int pass_interrupt(td_interpreter *I, pid_t pid, int passed) {
  if (!atomic_exchange(&I->context->interrupt, 0)) return passed;
  kill(-pid, passed ? SIGKILL : SIGINT);
  return passed + 1;
}

// Copies what comes until the pipe closes, or until the shell has ended and nothing more is there. true: interrupted.
static bool copy_output(td_interpreter *I, int in, pid_t pid, int *status) {
  char block[8192];
  struct pollfd wait = {.fd = in, .events = POLLIN};
  bool ended = false;
  int interrupts = 0;
  while (true) {
    interrupts = pass_interrupt(I, pid, interrupts);
    ended = ended || waitpid(pid, status, WNOHANG) == pid;
    int ready = poll(&wait, 1, ended ? 0 : 20);
    if (ready <= 0 && ended) break;
    if (ready <= 0) {
      td_output_flush(I);
      continue;
    }
    ssize_t got = read(in, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    td_output(I, 1, block, (size_t)got);
  }
  for (; !ended; ended = waitpid(pid, status, WNOHANG) == pid) { // it closed its output and goes on
    interrupts = pass_interrupt(I, pid, interrupts);
    poll(NULL, 0, 5);
  }
  return interrupts > 0;
}

td_value td_shell_run(td_interpreter *I, const char *line) {
  int out = -1, status = 0;
  td_output_flush(I);
  pid_t pid = start_shell(line, &out);
  if (pid < 0) return td_raise(I, TD_CLASS_OS_ERROR, "!: /bin/sh can't be started: %s", strerror(errno));
  running = pid;
  bool interrupted = copy_output(I, out, pid, &status);
  running = 0;
  close(out);
  if (interrupted) return td_raise(I, TD_CLASS_KEYBOARD_INTERRUPT, "interrupted");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return TD_NONE;
  char note[64];
  if (WIFEXITED(status)) snprintf(note, sizeof note, "the command ended with exit code %d", WEXITSTATUS(status));
  else snprintf(note, sizeof note, "the command was ended by signal %d", WTERMSIG(status));
  td_warn(I, note);
  return TD_NONE;
}
