// !command: /bin/sh runs it; its output comes as OUTPUT events while it runs; Ctrl-C sends it SIGINT.
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

static pid_t start_shell(const char *line, int *out) {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC)) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
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
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char *arguments[] = {"sh", "-c", (char *)line, NULL};
  pid_t pid = -1;
  int code = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pipes[1]);
  if (code) {
    close(pipes[0]);
    errno = code;
    return -1;
  }
  *out = pipes[0];
  return pid;
}

// Copies what comes until the pipe closes. false: interrupted.
static bool copy_output(td_interpreter *I, int in, pid_t pid) {
  char block[8192];
  struct pollfd wait = {.fd = in, .events = POLLIN};
  bool sent = false;
  while (true) {
    if (!sent && atomic_load(&I->context->interrupt)) {
      kill(pid, SIGINT);
      sent = true;
    }
    if (poll(&wait, 1, 50) <= 0) {
      td_output_flush(I);
      continue;
    }
    ssize_t got = read(in, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return !sent;
    td_output(I, 1, block, (size_t)got);
  }
}

td_value td_shell_run(td_interpreter *I, const char *line) {
  int out = -1, status = 0;
  td_output_flush(I);
  pid_t pid = start_shell(line, &out);
  if (pid < 0) return td_raise(I, TD_CLASS_OS_ERROR, "!: /bin/sh can't be started: %s", strerror(errno));
  copy_output(I, out, pid);
  close(out);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (td_interrupted(I)) return TD_NIL;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return TD_NONE;
  char note[64];
  if (WIFEXITED(status)) snprintf(note, sizeof note, "the command ended with exit code %d", WEXITSTATUS(status));
  else snprintf(note, sizeof note, "the command was ended by signal %d", WTERMSIG(status));
  td_warn(I, note);
  return TD_NONE;
}
