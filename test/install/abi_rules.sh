#!/bin/bash
# abi_rules.sh CC: what abi.sh lets pass, and what it refuses, by small libraries beside a release.
set -euo pipefail
cc=$1
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
library=$tree/libtslab.so
check=$tree/test/install/abi.sh

fail() {
  printf 'abi_rules: %s\n' "$@" "$(cat "$tree/log")" >&2
  exit 1
}

# make OPTIONS SCOPE FUNCTION: the library whose structs have these fields, with one more function.
make() {
  cat >"$tree/include/tslab.h" <<END
typedef struct tslab_epoch_options { unsigned long size; $1 } tslab_epoch_options;
typedef struct tslab_scope { $2 } tslab_scope;
int tslab_open(const tslab_epoch_options *options);
int tslab_enter(tslab_scope *scope);
$3
END
  printf '#include "tslab.h"\nint tslab_open(const tslab_epoch_options *o) { return o != 0; }\n%s' \
    "int tslab_enter(tslab_scope *s) { return s != 0; }
${3//;/ { return 0; \}}
" >"$tree/library.c"
  "$cc" -g -shared -fPIC -Wl,-soname,libtslab.so.0 -I"$tree/include" "$tree/library.c" -o "$library"
}

# refuses WORDS ARGUMENT...: abi.sh fails, and says so.
refuses() {
  local words=$1
  shift
  if "$check" "$library" "$@" >"$tree/log" 2>&1; then fail "passed; wanted: $words"; fi
  grep -qF -- "$words" "$tree/log" || fail "does not say: $words"
}
passes() {
  "$check" "$library" "$@" >"$tree/log" 2>&1 || fail "refused: $*"
}

mkdir -p "$tree/include" "$tree/test/install/abi"
cp "$here/abi.sh" "$here/abi_growth.py" "$tree/test/install"

make "int a;" "void *p;" "int tslab_old(void);"
refuses "--update"
passes --update
passes
passes --release 1.0.0
passes

# Growth is written down, and then passes.
make "int a; long b;" "void *p;" "int tslab_old(void); int tslab_more(void);"
refuses "If this is meant"
passes --update
passes

# breaks OPTIONS SCOPE FUNCTION: programs that are linked to the release would not work.
breaks() {
  make "$@"
  passes --update
  refuses "libtslab.so.0-1.0.0.xml would not work"
}
breaks "int a;" "void *p;" ""
breaks "long before; int a;" "void *p;" "int tslab_old(void);"
breaks "long a;" "void *p;" "int tslab_old(void);"
breaks "int a; int in_the_padding;" "void *p;" "int tslab_old(void);"
breaks "int a;" "void *p; long depth;" "int tslab_old(void);"
