#!/bin/bash
# system.sh LIBDIR CARGO TEST [OPTION...]: the crates with the feature `system` pass their tests on
# the library that is installed in LIBDIR, and say what they miss.
set -euo pipefail
libdir=$1
shift

export PKG_CONFIG_LIBDIR=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
"$@" --package tslab-sys --package tslab --features system --tests
listed=$("$@" --package tslab --features system --test c_malloc -- --list)
grep -qF what_c_allocates <<<"$listed"

# refused FEATURES WORDS: cargo's arguments are those of `cargo test`.
refused() {
  local said
  if said=$("${@:3}" --package tslab --features "$1" --no-run 2>&1); then
    printf 'system.sh: the features %s were not refused\n' "$1" >&2
    exit 1
  fi
  grep -qF "$2" <<<"$said" || {
    printf '%s\n' "$said" >&2
    exit 1
  }
}

refused system,secure 'the installed tslab is not the hardened one' "$@"
PKG_CONFIG_LIBDIR=/dev/null refused system 'install libtslab-dev, set PKG_CONFIG_PATH' "$@"
