#!/bin/sh
# pkg_config.sh LIBDIR VERSION CC [CXX]: what a Makefile without CMake would do.
set -eu
libdir=$1 version=$2 cc=$3 cxx=${4-}
stranger=$(dirname "$0")/stranger

export PKG_CONFIG_PATH="$libdir/pkgconfig"
found=$(pkg-config --modversion tslab)
if [ "$found" != "$version" ]; then
  echo "tslab.pc says version $found, the project is $version" >&2
  exit 1
fi

# shellcheck disable=SC2046 # one word an option
"$cc" -o pkg_c "$stranger/stranger.c" $(pkg-config --cflags --libs tslab)
LD_LIBRARY_PATH="$libdir" ./pkg_c

if [ -n "$cxx" ]; then
  # shellcheck disable=SC2046
  "$cxx" -std=c++17 -o pkg_cxx "$stranger/stranger.cpp" $(pkg-config --cflags --libs tslab)
  LD_LIBRARY_PATH="$libdir" ./pkg_cxx
fi
