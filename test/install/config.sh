#!/bin/sh
# config.sh LIBDIR BINDIR VERSION CC: tslab-config says what pkg-config says, of a tree that was
# moved and through a link, too.
set -eu
libdir=$1 bindir=$2 version=$3 cc=$4
stranger=$(dirname "$0")/stranger

rm -rf config-moved
mkdir config-moved
cp -R "$bindir/.." config-moved/tree
ln -s "$PWD/config-moved/tree/$(basename "$bindir")/tslab-config" config-moved/linked

# A word a line, with each folder as the system names it.
resolved() {
  tr -s ' ' '\n' | while read -r word; do
    case $word in
      -[LI]/*) printf '%.2s%s\n' "$word" "$(cd "${word#-?}" && pwd -P)" ;;
      *) printf '%s\n' "$word" ;;
    esac
  done
}
# same CONFIG LIBDIR: its words are those of pkg-config.
same() {
  for package in tslab tslab-preload tslab-static; do
    said=$("$1" "$package" --cflags --libs | resolved)
    wanted=$(PKG_CONFIG_PATH=$2/pkgconfig pkg-config --cflags --libs "$package" | resolved)
    if [ "$said" != "$wanted" ]; then
      printf '%s %s says:\n%s\npkg-config says:\n%s\n' "$1" "$package" "$said" "$wanted" >&2
      exit 1
    fi
  done
}
same "$bindir/tslab-config" "$libdir"
same config-moved/linked "$PWD/config-moved/tree/$(basename "$libdir")"

# A package may stand where pkg-config has it, too.
behind=$("$bindir/tslab-config" --libs tslab-static)
[ "$behind" = "$("$bindir/tslab-config" tslab-static --libs)" ]
[ "$("$bindir/tslab-config" --version)" = "$version" ]
[ "$(cd "$("$bindir/tslab-config" --prefix)" && pwd -P)" = "$(cd "$bindir/.." && pwd -P)" ]
[ "$(cd "$("$bindir/tslab-config" --libdir)" && pwd -P)" = "$(cd "$libdir" && pwd -P)" ]
[ -e "$("$bindir/tslab-config" --includedir)/tslab.h" ]

# shellcheck disable=SC2046 # one word an option
"$cc" -fno-builtin -o config_scope "$stranger/scope.c" $(config-moved/linked --cflags --libs)
LD_LIBRARY_PATH="$libdir" ./config_scope alone

# refused WORDS OPTION...: with status 2, these words on stderr, and no answer.
refused() {
  words=$1 status=0
  shift
  "$bindir/tslab-config" "$@" >config-said 2>config-complaint || status=$?
  if [ "$status" -ne 2 ] || [ -s config-said ] || ! grep -q -e "$words" config-complaint; then
    printf 'tslab-config %s: status %s\n' "$*" "$status" >&2
    cat config-said config-complaint >&2
    exit 1
  fi
}
refused 'neither a package nor an option; see tslab-config --help' --version --lib
refused '^usage: ' tslab-static
refused '^usage: '
