#!/bin/bash
# vcpkg.sh ROOT CC CXX: the port builds from the sources that it lies in, and from a tarball beside
# it with its feature; the stranger's project uses both packages. A stand-in plays vcpkg.
set -euo pipefail
root=$1
export CC=$2 CXX=$3
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^#define TSLAB_VERSION "\(.*\)"/\1/p' "$root/include/tslab.h")

# package NAME PORT [OPTION...]: builds a port, then the stranger's project with its package.
package() {
  local work=$PWD/vcpkg_$1 port=$2
  shift 2
  cmake "-DPORT_DIR=$port" "-DWORK=$work" "$@" -P "$here/vcpkg.cmake"
  ctest --build-and-test "$here/stranger" "$work/stranger" --build-generator Ninja \
    --build-options "-DCMAKE_PREFIX_PATH=$work/packages" \
    --test-command ctest --output-on-failure
}

package sources "$root/packaging/vcpkg"

port=$PWD/vcpkg_port
rm -rf "$port"
cp -r "$root/packaging/vcpkg" "$port"
tar -C "$root" --transform "s,^,tslab-$version/," -czf "$port/tslab-$version.tar.gz" \
  CMakeLists.txt LICENSE-MIT LICENSE-APACHE cmake docs/man include src
package tarball "$port" -DFEATURES=secure
grep -q '^TSLAB_SECURE:BOOL=ON$' vcpkg_tarball/build/CMakeCache.txt
