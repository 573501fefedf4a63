#!/bin/bash
# abi.sh LIBRARY [--update]: the library has the ABI of abi.xml: names, and the types that tslab.h
# has, to the last offset. --update writes the file anew, for a change that is meant.
set -euo pipefail
library=$1
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${2-} == --update ]]; then
  abidw --headers-dir "$here/../../include" --drop-private-types --drop-undefined-syms \
    --no-show-locs --no-comp-dir-path --no-corpus-path --out-file "$here/abi.xml" "$library"
  sed -i "s|$(cd "$here/../.." && pwd)/||" "$here/abi.xml"
  exit
fi
if ! abidiff "$here/abi.xml" "$library"; then
  echo "If this is meant: $0 $library --update. Programs that are compiled already must go on" \
    "working as long as the SONAME is the same."
  exit 1
fi
