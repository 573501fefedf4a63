#!/bin/sh
# one_file.sh ROOT SOURCES GCC CLANG: src/all.c has the files that CMake compiles, which SOURCES
# lists, and makes programs with both compilers, one of them hardened.
set -eu
root=$1 sources=$2 gcc=$3 clang=$4
stranger=$(dirname "$0")/stranger

sed -n 's/^#include "\(.*\)"$/\1/p' "$root/src/all.c" | sort >one_file_included
sort "$sources" | diff - one_file_included

# build COMPILER PROGRAM [OPTION...]: as src/all.c says. A name that two files share would be one
# variable of both, which only gcc notices, as a redundant declaration.
build() {
  compiler=$1 program=$2
  shift 2
  "$compiler" -O2 -Wall -Wextra -Wredundant-decls -Werror -fno-builtin "$@" -o "$program" \
    "$stranger/vendored.c" "$root/src/all.c" -I"$root/src" -I"$root/include" -lpthread
}

build "$gcc" one_file_gcc
./one_file_gcc captures
build "$gcc" one_file_gcc_alone -O1 -DTSL_ALONE
./one_file_gcc_alone alone
build "$clang" one_file_clang -DTSL_SECURE=1
./one_file_clang captures
build "$clang" one_file_clang_alone -O1 -DTSL_ALONE
./one_file_clang_alone alone
