#!/bin/bash
# without_node.sh FOLDER BUILD CARGO: the command is built and installed where there is no node:
# from the sources alone, in FOLDER, then by BUILD's install rules. Its `serve` says what it lacks.
set -euo pipefail
folder=$1 build=$2 cargo=$3
project=$(cd "$(dirname "$0")/../.." && pwd)

fail() {
  printf 'without_node: %s\n' "$@" >&2
  exit 1
}

# link_programs FOLDER: makes FOLDER, with a link to every program in PATH, of several to the first.
link_programs() {
  local dirs program i
  mkdir -p "$1"
  IFS=: read -ra dirs <<<"$PATH"
  for ((i = ${#dirs[@]} - 1; i >= 0; i--)); do
    for program in "${dirs[i]}"/*; do
      if [[ -f $program && -x $program ]]; then printf '%s\0' "$program"; fi
    done | xargs -0 -r ln -sft "$1"
  done
}

rm -rf "${folder:?}"/{bin,sources,installed,prefix,cargo}
link_programs "$folder/bin"
rm -f "$folder"/bin/{node,nodejs,npm,npx}
export PATH=$folder/bin
hash -r
if command -v npm node; then fail "they are not hidden"; fi

# What is tracked, without what was built of it.
mkdir "$folder/sources"
(cd "$project" && tools/files tools/tslab src/base/options.def dashboards) |
  tar --create --directory "$project" --files-from - | tar --extract --directory "$folder/sources"
# The crates that it needs have been compiled: to do it again takes minutes.
mkdir "$folder/cargo"
cp -a "$build/cargo/release" "$folder/cargo/"
"$cargo" install --locked --path "$folder/sources/tools/tslab" --root "$folder/installed" \
  --target-dir "$folder/cargo" --config profile.release.package.tslab.opt-level=0 \
  2>"$folder/log" || fail "$(<"$folder/log")"
rm -rf "$folder/cargo"
grep -q 'without the page' "$folder/log" || fail "cargo gave no warning: $(<"$folder/log")"
tslab=$folder/installed/bin/tslab

# The address is on its first line.
exec 4< <(exec "$tslab" serve --history none --listen 127.0.0.1:0 2>&1)
server=$!
trap 'kill "$server"' EXIT
read -r line <&4
port=$(sed -n 's#.*http://127\.0\.0\.1:\([0-9]*\).*#\1#p' <<<"$line")
[[ -n $port ]] || fail "serve says no address: $line"
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET / HTTP/1.0\r\n\r\n' >&3
page=$(cat <&3)
[[ $page == HTTP/1.?" 200 "*"content-type: text/html"*"tools/tslab/build"* ]] || fail "$page"
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /api/v1/processes HTTP/1.0\r\n\r\n' >&3
[[ $(cat <&3) == HTTP/1.?" 200 "*processes* ]] || fail "serve has no figures"

cmake --install "$build" --component tools --prefix "$folder/prefix" >/dev/null
"$folder/prefix/bin/tslab" --version
