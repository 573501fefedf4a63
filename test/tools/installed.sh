#!/bin/bash
# installed.sh BUILD PREFIX DATADIR: the command is installed with its manual pages and with what
# shells complete its words by.
set -euo pipefail
build=$1 prefix=$2 data=$2/$3

fail() {
  printf 'installed: %s\n' "$@" >&2
  exit 1
}

rm -rf "$prefix"
cmake --install "$build" --component tools --prefix "$prefix" >/dev/null
command=$prefix/bin/tslab
"$command" --version >/dev/null
declare -A scripts=(
  [bash]=bash-completion/completions/tslab
  [fish]=fish/vendor_completions.d/tslab.fish
  [zsh]=zsh/site-functions/_tslab
)
for shell in "${!scripts[@]}"; do
  cmp "$data/${scripts[$shell]}" <("$command" completions "$shell")
  if [[ -n $(command -v "$shell") ]]; then "$shell" -n "$data/${scripts[$shell]}"; fi
done
complete=$(bash -euc 'source "$1"; complete -p tslab' bash "$data/${scripts[bash]}")
[[ $complete == complete*" tslab" ]] || fail "bash completes nothing: $complete"
[[ -e $prefix/share/man/man1/tslab-completions.1 ]] || fail "tslab-completions(1) is not there"
