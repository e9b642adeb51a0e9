# Helpers for the run-* scripts of this folder, which read it with ".": a program in a tmux window of fixed size, on a
# server of its own, with an empty HOME and no inputrc. Nothing waits for a time: await polls the screen until a text
# stands there, or gives up.
#
# A case is a function case_NAME; "cases FOLDER/NAME-OF-SCRIPT" runs all of them that T asks for and prints the sum.

: "${TAPEDECK:?}" "${T=}" "${SLOWNESS:=1}"
work=$(mktemp -d) || exit 1
server=tapedeck-$$
passed=0
failed=0
pane() { tmux -L "$server" -f /dev/null "$@"; }
trap 'pane kill-server 2>/dev/null; rm -rf "$work" "$work.leaks"' EXIT
trap 'exit 130' INT TERM
# What ncurses and readline keep of a terminal to the end is no leak of the program: said to sanitized builds.
echo leak:libtinfo >"$work.leaks"
LSAN_OPTIONS=suppressions=$work.leaks:print_suppressions=0
export LSAN_OPTIONS

# cleanly COMMAND...: with the environment that the cases start from.
cleanly() {
  env -u XDG_DATA_HOME -u NO_COLOR -u COLUMNS -u LINES HOME="$work/home" INPUTRC=/dev/null LC_ALL=C.UTF-8 "$@"
}

# start [COMMAND]: a window of $columns x $rows that runs it in $work (default: the program at its prompt). The shell
# around it outlives a Ctrl-C, which the terminal sends to both.
start() {
  count=$((${count:-0} + 1))
  until_true new_session "$@" || miss 'no session of tmux' # a server that just lost its last one may be on its way out
}
new_session() {
  pane -u new-session -d -x "${columns:-80}" -y "${rows:-24}" -s "$(window)" -c "$work" \
    "env -u XDG_DATA_HOME -u NO_COLOR -u COLUMNS -u LINES HOME='$work/home' INPUTRC=/dev/null LC_ALL=C.UTF-8 \
    sh -c '${1:-"$TAPEDECK" --line}; echo ended with \$?; exec cat'"
}
window() { echo "s$count"; }
screen() { pane capture-pane -p -N -S -500 -t "$(window)" 2>/dev/null; }
visible() { pane capture-pane -p -N -t "$(window)" 2>/dev/null; }
keys() { pane send-keys -t "$(window)" "$@"; }
type() { # tmux takes a ; at the end for its own
  case $1 in *\;) pane send-keys -t "$(window)" -l -- "${1%?}\\;" ;; *) pane send-keys -t "$(window)" -l -- "$1" ;; esac
}
enter() { # each line typed and ended with Enter, once the prompt before it is there
  for line; do
    type "$line"
    keys Enter
  done
}
paste() { # paste [OPTIONS]: standard input through a tmux buffer; -p: bracketed
  pane load-buffer -
  pane paste-buffer -t "$(window)" "$@"
}

# until_true TEST...: repeats it for at least 30 s, times SLOWNESS, before it gives up.
until_true() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    test $tries -lt $((1500 * SLOWNESS)) || return 1
    sleep 0.02
  done
}
shows() { screen | grep -qE -- "$1"; }
await() { until_true shows "$1" || miss "never shown: $1"; }
miss() { # ends the case
  echo "$1"
  exit 1
}
expect() { test "$1" = "$2" || miss "expected: $2
got:      $1"; } # expect GOT WANTED
refuse() { if shows "$1"; then miss "shown, and should not be: $1"; fi; }
# The same of what stands on the screen now, without what scrolled away.
in_sight() { visible | sed 's/ *$//' | grep -qE -- "$1"; }
out_of_sight() { ! in_sight "$1"; }
sees() { until_true in_sight "$1" || miss "not in sight: $1"; }
gone() { until_true out_of_sight "$1" || miss "still in sight: $1"; }

# How many milliseconds pass from the keys until the text stands there.
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
within() { # within LIMIT PATTERN KEYS...
  limit=$(($1 * SLOWNESS)) pattern=$2
  shift 2
  from=$(milliseconds)
  keys "$@"
  await "$pattern"
  took=$(($(milliseconds) - from))
  test $took -le $limit || miss "took $took ms, wanted $limit: $pattern"
}

end() { # leaves the program, whatever it does
  pane kill-session -t "$(window)" 2>/dev/null
  until_true eval '! pane has-session -t "$(window)" 2>/dev/null'
}

# cases SCRIPT: runs the case_* functions of the script.
cases() {
  for name in $(sed -n 's/^case_\([a-z0-9_]*\)().*/\1/p' "$0"); do
    case terminal/$1/$name in "$T"*) ;; *) continue ;; esac
    until_true rm -rf "$work/home" # a program that was killed may still write there
    mkdir "$work/home"
    (cd "$work" && "case_$name") >"$work/said" 2>&1
    if test $? -eq 0; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      printf 'terminal/%s/%s:\n' "$1" "$name"
      cat "$work/said"
      if pane has-session 2>/dev/null; then pane list-sessions -F '#S' | while read -r session; do
        pane capture-pane -p -t "$session" | sed -e 's/^/  |/' -e '/^  |$/d'
      done; fi
    fi
    pane kill-server 2>/dev/null
    until_true eval '! pane list-sessions >/dev/null 2>&1'
  done
  echo "$passed passed, $failed failed"
  test $failed -eq 0
}
