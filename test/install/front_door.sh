#!/bin/sh
# front_door.sh ROOT: the release preset configures where only the group `build` of tools/bootstrap
# is installed, so that a user's first `make build` needs no program that tests alone run.
set -eu
root=$1
programs=$PWD/front_door_programs
build=$PWD/front_door_build

rm -rf "$programs" "$build"
mkdir "$programs"
for name in ar as bash c++ cat cc chmod cmake dirname env g++ gcc grep ld mkdir ninja nm objcopy \
  objdump pkg-config ranlib readelf rm sed sh strip tr uname; do
  ln -s "$(command -v "$name")" "$programs/$name"
done
# The one in PATH may be a shim, which runs programs that the folder lacks.
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$programs/python3"

# CMake looks into /usr/bin, too, unless it is told not to.
PATH=$programs cmake -S "$root" -B "$build" -G Ninja -DTSLAB_WERROR=ON -DTSLAB_BENCH=ON \
  -DTSLAB_ONCE_TESTS=ON -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF >front_door.log 2>&1 || {
  cat front_door.log
  exit 1
}
for absent in TSLAB_CLANG CARGO; do
  grep -q "^$absent:FILEPATH=$absent-NOTFOUND$" "$build/CMakeCache.txt" || {
    printf 'front_door: %s was found: the folder of programs is not what kept it out\n' "$absent"
    exit 1
  }
done
