#!/bin/bash
# packages.sh FOLDER: installs the Debian packages of FOLDER into a root of their own, uses them as
# their users do, and removes them. The root has the C library and the compiler's, as far as dpkg
# knows: the packages may depend on nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
packages=("$1"/libtslab0_*.deb "$1"/libtslab-dev_*.deb "$1"/tslab-tools_*.deb)
names=(tslab-tools libtslab-dev libtslab0)
present=(libc6 libgcc-s1)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
  printf 'packages: %s\n' "$@" >&2
  exit 1
}

# in_root ARGUMENT...: dpkg on the root. It runs no scripts in it: there is no shell.
in_root() {
  fakeroot dpkg --root="$root" --force-script-chrootless --log=/dev/null "$@" >/dev/null
}

# ours: the files and folders of the root but for dpkg's own, one a line.
ours() {
  find "$root" -path "$root/var" -prune -o -mindepth 1 -print
}

mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
dpkg-query --status "${present[@]}" >"$root/var/lib/dpkg/status"
for name in "${present[@]}"; do
  touch "$root/var/lib/dpkg/info/$name:$(dpkg --print-architecture).list"
done
before=$(ours)
in_root --install "${packages[@]}"

libdir=$(dirname "$(find "$root/usr/lib" -name libtslab.a)")
version=$(sed -n 's/^#define TSLAB_VERSION "\(.*\)"/\1/p' include/tslab.h)
[[ $("$root/usr/bin/tslab" --version) == "tslab $version" ]] || fail "tslab has another version"
said=$(TSLAB_CONFIRM=1 "$root/usr/bin/tslab" run -- ls / 2>&1) || fail "$said"
grep -q '^tslab: confirm:true' <<<"$said" || fail "tslab run loads no library: $said"
for page in man1/tslab-run.1 man3/tslab_epoch_open.3; do
  [[ -e $root/usr/share/man/$page.gz ]] || fail "$page is not there"
done
for script in bash-completion/completions/tslab fish/vendor_completions.d/tslab.fish \
  zsh/vendor-completions/_tslab; do
  [[ -s $root/usr/share/$script ]] || fail "$script is not there"
done
project=$PWD
(cd "$root/var" && "$project/test/install/pkg_config.sh" "$libdir" "$version" cc c++)

in_root --purge "${names[@]}"
[[ $(ours) == "$before" ]] || fail "what purging left:" "$(ours)"
