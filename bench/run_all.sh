#!/bin/bash
# run_all.sh [--baseline NAME | --quick] [OPTIONS of run.py core]: measures every table.
#   without either     all allocators, into bench/results/; then the charts and docs/results.md
#   --baseline NAME    one of malloc jemalloc tcmalloc mimalloc snmalloc rpmalloc, alone, into
#                      bench/baseline/NAME/
#   --quick            small runs, one round, into build/bench-quick/ with charts beside them
# Most of the time goes to patterns with a pace, a minute and three rounds each: --rounds 2 takes a
# third of it away, and bench/run servers --resume goes on with what was interrupted.
# With --allocator the table `observed` is left out: it compares our allocator with itself.
# Status 1 when a run failed, and with --strict when a bar is missed; what comes behind is measured
# all the same. The last lines name each table's bars that were missed, and the tables that failed.
set -euo pipefail
cd "$(dirname "$0")/.."

# The runner's names; malloc is the C library's own.
declare -A allocators=(
  [malloc]=glibc [jemalloc]=jemalloc [tcmalloc]=tcmalloc-debian [mimalloc]=mimalloc
  [snmalloc]=snmalloc [rpmalloc]=rpmalloc
)

refuse() {
  printf 'run_all.sh: %s\n' "$1" >&2
  printf 'usage: bench/run_all.sh [--baseline NAME | --quick] [OPTION of run.py core...]\n' >&2
  exit 2
}

for option in "$@"; do
  case $option in
  --resume | --output | --output=*)
    refuse "$option is of one table: bench/run TABLE $option"
    ;;
  esac
done

tables=(core epochs suite servers observed)
output=bench/results
images=docs/images
options=()
case ${1-} in
--baseline)
  name=${2-}
  [[ -n $name && -v allocators[$name] ]] ||
    refuse "no baseline '$name'; there are: malloc jemalloc tcmalloc mimalloc snmalloc rpmalloc"
  output=bench/baseline/$name
  images=
  options=(--allocator "${allocators[$name]}")
  shift 2
  ;;
--quick)
  output=build/bench-quick
  images=$output/images
  options=(--quick --rounds 1)
  shift
  ;;
esac

if [[ " ${options[*]} $* " == *" --allocator"* ]]; then tables=(core epochs suite servers); fi

# A table that failed does not keep the next from being measured; an interruption or a wrong option
# does.
failed=()
for table in "${tables[@]}"; do
  printf '\n== %s\n' "$table"
  code=0
  bench/run "$table" --output "$output" "${options[@]}" "$@" || code=$?
  ((code <= 1)) || exit "$code"
  ((code == 0)) || failed+=("$table")
done
if [[ -n $images ]]; then
  .venv/bin/python bench/plot_bench.py --input "$output" --output "$images"
fi
if [[ $output == bench/results ]]; then
  .venv/bin/python bench/results_page.py
fi
printf '\n'
.venv/bin/python bench/missed.py "$output" "${tables[@]}"
if ((${#failed[@]} > 0)); then
  printf 'failed: %s; each says why where it ends\n' "${failed[*]}" >&2
  exit 1
fi
