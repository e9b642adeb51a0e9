// The program: reads its arguments and picks a face. Exit codes: 0 done, 1 the program failed, 2 bad usage, 130
// interrupted.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "repl/line/line.h"
#include "repl/notebook/charset.h"
#ifdef HAVE_SCREEN
#include "repl/screen/screen.h"
#define FACES ", with its screen"
#else
#define FACES ""
#endif

static const char usage_text[] =
    "usage: tapedeck [FILE.deck]             a notebook on the screen: empty, or FILE.deck\n"
    "       tapedeck --line [FILE.deck]      the plain prompt; FILE.deck runs first\n"
    "       tapedeck run [OPTIONS] FILE.deck [ARGS]\n"
    "                                        run a deck and exit; ARGS are argv[1:] in it\n"
    "       tapedeck convert [--run] [--seed N] FROM TO\n"
    "                                        a deck to a Jupyter notebook (.ipynb), or back\n"
    "       tapedeck -e CODE                 evaluate and print\n"
    "       ... | tapedeck                   run a script from a pipe\n"
    "options: --seed N        start the random numbers at N\n"
    "         --log LEVEL     what is said on stderr: critical, error, warning (the default), info or debug;\n"
    "                         decks say things by the module logging\n"
    "         --version, --help\n"
    "exit codes: 0 done, 1 the program failed, 2 bad usage, 130 interrupted, 128 + N by signal N\n";

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

static int set_log(td_line_options *options, const char *text) {
  options->log_given = true;
#define X(NAME, level, word) \
  if (strcmp(text, word) == 0) return options->log = level, 0;
  TD_LOG_LEVELS(X)
#undef X
  return bad_usage("--log needs debug, info, warning, error or critical, not", text);
}

static int set_code(td_line_options *options, const char *text) { return options->code = text, 0; }

typedef struct option { const char *name; int (*set)(td_line_options *, const char *text); } option;

// Reads options up to the first argument that is none; *at moves past them. Nonzero: the exit code of bad usage.
static int read_options(td_line_options *options, int count, char **arguments, int *at) {
  static const option known[] = {{"--seed", set_seed}, {"--log", set_log}, {"-e", set_code}};
  for (; *at < count && arguments[*at][0] == '-' && arguments[*at][1]; ++*at) {
    const char *word = arguments[*at];
    if (strcmp(word, "--line") == 0) {
      options->plain = true;
      continue;
    }
    size_t i = 0;
    while (i < sizeof known / sizeof *known && strcmp(word, known[i].name) != 0) i++;
    if (i == sizeof known / sizeof *known) return bad_usage("unknown option", word);
    if (++*at == count) return bad_usage("an argument is missing after", word);
    int code = known[i].set(options, arguments[*at]);
    if (code) return code;
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

static int convert(td_line_options *options, int count, char **arguments, int at) {
  bool run_cells = at < count && strcmp(arguments[at], "--run") == 0;
  at += run_cells;
  int code = read_options(options, count, arguments, &at);
  if (code) return code;
  if (count - at != 2) return bad_usage("convert needs two files, what to read and what to write", "");
  return td_line_convert(options, arguments[at], arguments[at + 1], run_cells);
}

// Nothing that is opened later may become one of the three standard descriptors. Writing to one that was closed stays
// an error.
static bool open_descriptors(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) return false;
  return true;
}

static int say(const char *text) { // 1: stdout can't be written
  return fputs(text, stdout) == EOF || fflush(stdout) ? 1 : 0;
}

int main(int count, char **arguments) {
  if (!open_descriptors()) return 1;
  td_charset_start();
  td_line_options options = {.log = TD_LOG_WARNING};
  int at = 1;
  if (count > 1 && strcmp(arguments[1], "--version") == 0) return say("tapedeck " PACKAGE_VERSION FACES "\n");
  if (count > 1 && (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0)) return say(usage_text);
  int code = read_options(&options, count, arguments, &at);
  if (code) return code;
  if (at < count && !options.code && strcmp(arguments[at], "run") == 0) return run(&options, count, arguments, at + 1);
  if (at < count && !options.code && strcmp(arguments[at], "convert") == 0)
    return convert(&options, count, arguments, at + 1);
  if (options.code) {
    options.arguments = arguments + at;
    options.argument_count = count - at;
    return td_line_run_code(&options);
  }
  if (at < count) options.path = arguments[at++];
  if (at < count) return bad_usage("one deck at a time; arguments for a deck go to tapedeck run", arguments[at]);
  if (!isatty(STDIN_FILENO)) return options.path ? td_line_run_deck(&options) : td_line_run_input(&options);
#ifdef HAVE_SCREEN
  code = options.plain ? -1 : td_screen_run(&options);
  if (code >= 0) return code;
#endif
  return td_line_prompt(&options);
}
