#!/bin/sh
# pkg_config.sh LIBDIR VERSION CC [CXX]: what a Makefile without CMake would do.
set -eu
libdir=$1 version=$2 cc=$3 cxx=${4-}
stranger=$(dirname "$0")/stranger

export PKG_CONFIG_PATH="$libdir/pkgconfig"

# build COMPILER PROGRAM SOURCE PACKAGE [OPTION...]
build() {
  compiler=$1 program=$2 source=$3 package=$4
  shift 4
  # shellcheck disable=SC2046 # one word an option
  "$compiler" "$@" -fno-builtin -o "$program" "$stranger/$source" \
    $(pkg-config --cflags --libs "$package")
}

# run PROGRAM [ARGUMENT...]
run() {
  program=$1
  shift
  LD_LIBRARY_PATH="$libdir" "./$program" "$@"
}

# captured PROGRAM: its malloc is tslab's.
captured() {
  said=$(LD_LIBRARY_PATH="$libdir" TSLAB_CONF=confirm:1 "./$1" 2>&1)
  if ! echo "$said" | grep -q 'tslab: confirm:true'; then
    echo "$1 has another malloc" >&2
    exit 1
  fi
}

for package in tslab tslab-preload tslab-static; do
  found=$(pkg-config --modversion "$package")
  if [ "$found" != "$version" ]; then
    echo "$package.pc says version $found, the project is $version" >&2
    exit 1
  fi
  build "$cc" pkg_c stranger.c "$package"
  run pkg_c
  if [ -n "$cxx" ]; then
    build "$cxx" pkg_cxx stranger.cpp "$package" -std=c++17
    run pkg_cxx
  fi
done

build "$cc" pkg_scope scope.c tslab
run pkg_scope alone
for package in tslab-preload tslab-static; do
  build "$cc" pkg_scope scope.c "$package"
  run pkg_scope captures
  build "$cc" pkg_strdup only_strdup.c "$package" -Wl,--as-needed
  captured pkg_strdup
  if [ -n "$cxx" ]; then
    build "$cxx" pkg_new only_new.cpp "$package" -Wl,--as-needed
    captured pkg_new
  fi
done
build "$cc" pkg_strdup only_strdup.c tslab-static -static
captured pkg_strdup

# all_static COMPILER PROGRAM SOURCE PACKAGE: what --static adds to a package's libraries.
all_static() {
  # shellcheck disable=SC2046
  "$1" -static -fno-builtin -o "$2" "$stranger/$3" $(pkg-config --cflags --static --libs "$4")
}

for package in tslab tslab-static; do
  all_static "$cc" pkg_strdup only_strdup.c "$package"
  captured pkg_strdup
  all_static "$cc" pkg_scope scope.c "$package"
  run pkg_scope captures
  if [ -n "$cxx" ]; then
    all_static "$cxx" pkg_new only_new.cpp "$package"
    captured pkg_new
  fi
done

# By hand: whoever names a function of tslab's, or operator new, has the archive's malloc, too.
include=$(pkg-config --variable includedir tslab)
"$cc" -fno-builtin -o hand_scope "$stranger/scope.c" -I"$include" "$libdir/libtslab.a" -pthread
run hand_scope captures
if [ -n "$cxx" ]; then
  "$cxx" -o hand_new "$stranger/only_new.cpp" "$libdir/libtslab.a" -pthread
  captured hand_new
fi
