#!/bin/bash
# in_root.sh ROOT COMMAND...: runs COMMAND while the folder ROOT has what a container has: devices,
# processes, certificates, name servers; and this machine's Rust in /opt/rust. Takes root. All of
# that, and what COMMAND left running, is gone afterwards.
set -euo pipefail

if [[ ${IN_ROOT-} != "$1" ]]; then
  IN_ROOT=$1 exec unshare --mount --pid --fork --kill-child "$0" "$@"
fi
root=$1
shift

mkdir -p "$root/opt/rust"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
mount --bind "$(rustc --print sysroot)" "$root/opt/rust"
"$@"
