// The program: reads its arguments and picks a face. Exit codes: 0 done, 1 the program failed, 2 bad usage, 130 interrupted.
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "repl/line/line.h"

static const char usage_text[] =
    "usage: tapedeck [FILE.deck]             a notebook: empty, or FILE.deck run first\n"
    "       tapedeck run FILE.deck [ARGS]    run a deck and exit; ARGS are argv[1:] in it\n"
    "       tapedeck -e CODE                 evaluate and print\n"
    "       ... | tapedeck                   run a script from a pipe\n"
    "options: --line          the plain prompt\n"
    "         --seed N        start the random numbers at N\n"
    "         --version, --help\n";

static int bad_usage(const char *problem, const char *what) {
  fprintf(stderr, "tapedeck: %s%s%s\n%s", problem, *what ? ": " : "", what, usage_text);
  return 2;
}

static int set_seed(td_line_options *options, const char *text) {
  char *end;
  errno = 0;
  options->seed = (uint64_t)strtoll(text, &end, 0);
  options->seeded = true;
  return *text && !*end && !errno ? 0 : bad_usage("--seed needs an integer", text);
}

// Reads options up to the first argument that is none; *at moves past them. Nonzero: the exit code of bad usage.
static int read_options(td_line_options *options, int count, char **arguments, int *at) {
  for (; *at < count && arguments[*at][0] == '-' && arguments[*at][1]; ++*at) {
    const char *word = arguments[*at];
    if (strcmp(word, "--line") == 0) continue;
    bool seed = strcmp(word, "--seed") == 0, code = strcmp(word, "-e") == 0;
    if (!seed && !code) return bad_usage("unknown option", word);
    if (++*at == count) return bad_usage("an argument is missing after", word);
    if (code) options->code = arguments[*at];
    else if (set_seed(options, arguments[*at])) return 2;
  }
  return 0;
}

static int run(td_line_options *options, int count, char **arguments, int at) {
  int code = read_options(options, count, arguments, &at);
  if (code) return code;
  if (at == count) return bad_usage("run needs a deck", "");
  options->path = arguments[at];
  options->arguments = arguments + at + 1;
  options->argument_count = count - at - 1;
  return td_line_run_deck(options);
}

int main(int count, char **arguments) {
  setlocale(LC_CTYPE, "");
  td_line_options options = {0};
  int at = 1;
  if (count > 1 && strcmp(arguments[1], "--version") == 0) {
    puts("tapedeck " PACKAGE_VERSION);
    return 0;
  }
  if (count > 1 && (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0)) {
    fputs(usage_text, stdout);
    return 0;
  }
  int code = read_options(&options, count, arguments, &at);
  if (code) return code;
  if (at < count && !options.code && strcmp(arguments[at], "run") == 0) return run(&options, count, arguments, at + 1);
  if (options.code) {
    options.arguments = arguments + at;
    options.argument_count = count - at;
    return td_line_run_code(&options);
  }
  if (at < count) options.path = arguments[at++];
  if (at < count) return bad_usage("one deck at a time; arguments for a deck go to tapedeck run", arguments[at]);
  if (!isatty(STDIN_FILENO)) return options.path ? td_line_run_deck(&options) : td_line_run_input(&options);
  return td_line_prompt(&options);
}
