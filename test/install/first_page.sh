#!/bin/bash
# first_page.sh [LANGUAGE...]: what the first page of the documentation tells a reader to do, done
# literally, in a clean copy of the commit for each language: C, C++, Rust and Python. The commands
# are those of docs/index.md. Each language must show who lives on within three minutes.
#
# Counted is the time of the processor: a machine that does other work as well tells nothing by its
# clock, and a quiet one has two processors and so needs no longer.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
most_seconds=180
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# Sets `had` to the seconds that all children have had from the processor.
children_count() {
  # A shell of its own would count its own children.
  times >"$copy/times"
  had=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$copy/times")
}

follow() {
  rm -rf "$copy/tslab"
  git clone --quiet --no-hardlinks "$root" "$copy/tslab"
  python3 "$copy/tslab/test/docs/commands.py" docs/index.md "First five minutes" "In $1"
}

languages=("$@")
((${#languages[@]} > 0)) || languages=(C C++ Rust Python)
for language in "${languages[@]}"; do
  children_count
  since=$SECONDS before=$had
  follow "$language"
  children_count
  spent=$((had - before))
  printf 'first page: %s: %d s, of the processor %d s\n' \
    "$language" "$((SECONDS - since))" "$spent"
  if ((spent > most_seconds)); then
    printf 'first page: more than %d s\n' "$most_seconds" >&2
    exit 1
  fi
done
