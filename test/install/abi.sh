#!/bin/bash
# abi.sh LIBRARY [--update | --release VERSION]: the library has the ABI of abi/SONAME.xml: names,
# and the types that tslab.h has, to the last offset. And it serves programs that were linked to an
# earlier release of its SONAME, whose ABI is abi/SONAME-VERSION.xml: functions may have been added,
# and fields at the end of structs that have a size. --update writes the first file anew, for a
# change that is meant; --release makes the second one from it.
set -euo pipefail
library=$1
here=$(cd "$(dirname "$0")" && pwd)
soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
kept=$here/abi/$soname.xml

fail() {
  printf 'abi: %s\n' "$@" >&2
  exit 1
}

if [[ ${2-} == --update ]]; then
  abidw --headers-dir "$here/../../include" --drop-private-types --drop-undefined-syms \
    --no-show-locs --no-comp-dir-path --no-corpus-path --out-file "$kept" "$library"
  sed -i "s|$(cd "$here/../.." && pwd)/||" "$kept"
  exit
fi
[[ -e $kept ]] || fail "$kept is not there: $0 $library --update"
if ! abidiff "$kept" "$library"; then
  fail "If this is meant: $0 $library --update. Programs that are compiled already must go on" \
    "working as long as the SONAME is the same."
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for released in "$here/abi/$soname"-*.xml; do
  [[ -e $released ]] || continue
  python3 "$here/abi_growth.py" "$released" "$kept" >"$work/now.xml"
  abidiff --no-added-syms "$released" "$work/now.xml" ||
    fail "programs that were linked to ${released##*/} would not work:" \
      "undo that, or take a new SONAME"
done
if [[ ${2-} == --release ]]; then
  cp "$kept" "$here/abi/$soname-$3.xml"
fi
