#!/bin/sh
# Writes the C table of library.h from decks: sh embed.sh FILE.deck... >embedded.c
# A deck becomes one string literal a line, byte for byte; its names are those that a line without indentation defines.
set -eu

# Names at the top level of deck $1: "class NAME", "def NAME", "NAME =" (not "NAME =="). Those with a leading underscore
# are the deck's own.
names() {
  sed -n -e 's/^class  *\([A-Za-z][A-Za-z_0-9]*\).*/\1/p' \
    -e 's/^def  *\([A-Za-z][A-Za-z_0-9]*\).*/\1/p' \
    -e 's/^\([A-Za-z][A-Za-z_0-9]*\) *=[^=].*/\1/p' "$1" |
    awk '!seen[$0]++ { printf "%s%s", separator, $0; separator = " " }'
}

echo '// Made by embed.sh from the decks in repl/library; edit those.'
echo '#include "repl/library/library.h"'
echo
echo 'const td_library_deck td_library_decks[] = {'
for deck; do
  test -f "$deck" || { echo "embed.sh: $deck: no such deck" >&2; exit 1; }
  base=${deck##*/}
  echo "  { \"${base%.deck}\","
  echo '    ""'
  sed -e 's/[\\"]/\\&/g' -e 's/^/    "/' -e 's/$/\\n"/' "$deck"
  echo "    , \"$(names "$deck")\" },"
done
echo '  { 0, 0, 0 },'
echo '};'
