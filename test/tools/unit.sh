#!/bin/bash
# unit.sh BUILD CARGO TEST [OPTION...]: the command's own tests. Compiled without optimisation they
# take a third of the time, so they have a folder of their own; the crates are copied there from the
# command's, not compiled again.
set -euo pipefail
build=$1
shift

folder=$build/cargo-tests
if [[ ! -d $folder ]]; then
  rm -rf "$folder.new"
  mkdir "$folder.new"
  cp -a "$build/cargo/release" "$folder.new/"
  mv "$folder.new" "$folder"
fi
exec "$@" --target-dir "$folder" --config profile.release.package.tslab.opt-level=0
