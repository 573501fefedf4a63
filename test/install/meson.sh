#!/bin/bash
# meson.sh LIBDIR: the stranger's project with Meson.
set -euo pipefail
libdir=$1 stranger=$(cd "$(dirname "$0")/stranger" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the output of a command only if it fails.
quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log"
    return 1
  }
}

export PKG_CONFIG_PATH="$libdir/pkgconfig"
quietly meson setup "$work/build" "$stranger"
quietly meson compile -C "$work/build"
meson test --no-rebuild --print-errorlogs -C "$work/build"
