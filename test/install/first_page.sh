#!/bin/bash
# first_page.sh [LANGUAGE...]: what the first page of the documentation tells a reader to do, done
# literally for each language: C, C++, Rust and Python. The commands are those of docs/index.md; the
# first of them start a program on the library as it is. Each language must show who lives on within
# three minutes.
#
# Root follows them in a Debian that has git, make and certificates alone, made anew for each
# language, with a clean copy of the commit; Rust is there, as the page demands. Anybody else
# follows them in such a copy, with the programs that this machine has.
#
# Counted is the time of the processor: a machine that does other work as well tells nothing by its
# clock, and a quiet one has two processors and so needs no longer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
most_seconds=180
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Sets `had` to the seconds that all children have had from the processor.
children_count() {
  # A shell of its own would count its own children.
  times >"$work/times"
  had=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$work/times")
}

# make_copy FOLDER: the commit in FOLDER/tslab.
make_copy() {
  git clone --quiet --no-hardlinks "$project" "$1/tslab"
}

# follow FOLDER LANGUAGE [COMMAND...]
follow() {
  local folder=$1 language=$2
  shift 2
  "$@" python3 "$folder/tslab/test/docs/commands.py" docs/index.md "First five minutes" \
    "In $language"
}

make_debian() {
  mmdebstrap --quiet --variant=apt --include=ca-certificates,git,make bookworm "$work/debian"
}

follow_in_debian() {
  local root=$work/root
  rm -rf "$root"
  cp -a --reflink=auto "$work/debian" "$root"
  make_copy "$root"
  COMMANDS_IN="chroot $root env -i --chdir=/tslab HOME=/root TERM=dumb \
    PATH=/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    follow "$root" "$1" "$here/in_root.sh" "$root"
}

follow_here() {
  rm -rf "$work/tslab"
  make_copy "$work"
  follow "$work" "$1"
}

languages=("$@")
((${#languages[@]} > 0)) || languages=(C C++ Rust Python)
follow_one=follow_here
if ((EUID == 0)); then
  follow_one=follow_in_debian
  make_debian
fi
for language in "${languages[@]}"; do
  children_count
  since=$SECONDS before=$had
  "$follow_one" "$language"
  children_count
  spent=$((had - before))
  printf 'first page: %s: %d s, of the processor %d s\n' \
    "$language" "$((SECONDS - since))" "$spent"
  if ((spent > most_seconds)); then
    printf 'first page: more than %d s\n' "$most_seconds" >&2
    exit 1
  fi
done
