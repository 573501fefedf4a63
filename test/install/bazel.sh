#!/bin/bash
# bazel.sh ROOT: programs that Bazel builds with packaging/bazel/BUILD.bazel. Debian's Bazel knows
# no modules, so a WORKSPACE stands in for MODULE.bazel, and native rules for rules_cc.
set -euo pipefail
root=$1
stranger=$(cd "$(dirname "$0")/stranger" && pwd)
rules=/usr/share/bazel/rules
work=$PWD/bazel
for wanted in /usr/bin/bazel-4 "$rules/java" "$rules/proto"; do
  if [[ ! -e $wanted ]]; then
    echo "skipped: not installed: $wanted"
    exit 77
  fi
done

mkdir -p "$work/rules_cc/cc"
cd "$work"
cp "$stranger"/{vendored.c,only_new.cpp} .
touch rules_cc/WORKSPACE rules_cc/cc/BUILD
for rule in binary import library proto_library test toolchain toolchain_suite; do
  echo "cc_$rule = native.cc_$rule"
done >rules_cc/cc/defs.bzl
cat >WORKSPACE <<END
new_local_repository(
    name = "tslab",
    path = "$root",
    build_file = "$root/packaging/bazel/BUILD.bazel",
)
local_repository(name = "rules_cc", path = "rules_cc")
local_repository(name = "rules_java", path = "$rules/java")
local_repository(name = "rules_proto", path = "$rules/proto")
END
cat >BUILD <<'END'
load("@rules_cc//cc:defs.bzl", "cc_binary")

[cc_binary(
    name = name,
    srcs = ["vendored.c"],
    copts = ["-fno-builtin"],
    deps = [library],
) for name, library in [
    ("captures", "@tslab"),
    ("alone", "@tslab//:alone"),
]]

cc_binary(
    name = "replaced",
    srcs = ["only_new.cpp"],
    malloc = "@tslab",
)
END

if ! bazel-4 --batch --output_user_root="$work/root" build //:all >log 2>&1; then
  cat log
  exit 1
fi
bazel-bin/captures captures
bazel-bin/alone alone
TSLAB_CONF=confirm:1 bazel-bin/replaced >said 2>&1
grep -q '^tslab: confirm:true' said
