#!/bin/bash
# debian.sh PREFIX VERSION [--update]: debian/ fits what is installed below PREFIX. The packages
# have the version of the project, the library's is named after the SONAME and lists its symbols,
# and each file has a package, or a reason in not-installed. --update adds new symbols to the list,
# with this version.
set -euo pipefail
prefix=$1 version=$2
debian=$(cd "$(dirname "$0")/../../debian" && pwd)

fail() {
  printf 'debian: %s\n' "$@" >&2
  exit 1
}

packaged=$(dpkg-parsechangelog --file "$debian/changelog" --show-field Version)
[[ ${packaged%-*} == "$version" ]] || fail "changelog says $packaged, the project is $version"

for library in "$prefix"/lib*/lib*.so; do
  soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
  package=libtslab${soname##*.so.}
  grep -qx "Package: $package" "$debian/control" || fail "$soname wants a package $package"
  [[ -e $debian/$package.install ]] || fail "there is no debian/$package.install"
done

# Programs that use a symbol depend on the version that brought it.
symbols=$debian/$package.symbols
gensymbols=(dpkg-gensymbols "-p$package" "-v$version" "-I$symbols")
for library in "$prefix"/lib*/lib*.so; do gensymbols+=("-e$library"); done
if [[ ${3-} == --update ]]; then
  "${gensymbols[@]}" -q -c0 "-O$symbols"
fi
"${gensymbols[@]}" -c4 -O/dev/null ||
  fail "${symbols##*/} has other symbols; if that is meant: $0 $prefix $version --update"

# The folder of libraries is one deeper in Debian: lib/ARCHITECTURE. Behind a blank stands where a
# file goes.
mapfile -t patterns < <(
  sed '/^#/d; s#^usr/##; s#^lib/\*/#lib*/#; s# .*##' "$debian"/*.install "$debian/not-installed"
)
is_packaged() {
  local pattern
  for pattern in "${patterns[@]}"; do
    # shellcheck disable=SC2053 # the pattern is one
    if [[ $1 == $pattern || $1 == $pattern/* ]]; then return; fi
  done
  return 1
}
count=0
while read -r file; do
  is_packaged "$file" || fail "neither debian/*.install nor not-installed has $file"
  count=$((count + 1))
done < <(cd "$prefix" && find . -not -type d -printf '%P\n')
((count > 50)) || fail "only $count files are installed below $prefix"
