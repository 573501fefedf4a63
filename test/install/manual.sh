#!/bin/bash
# manual.sh MANDIR LIBRARY: the installed manual pages are correct for both programs that show them,
# and there is one for the command, for each subcommand and for each function of LIBRARY.
set -euo pipefail
mandir=$1 library=$2
export LC_ALL=C.UTF-8 MANWIDTH=120

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# shown SECTION NAME: the page as its reader sees it.
shown() {
  man --manpath "$mandir" --no-justification --no-hyphenation "$1" "$2" | col -bx
}

for page in "$mandir"/man1/*.1 "$mandir/man3/tslab.3"; do
  mandoc -T lint -W error "$page"
  complaints=$(man --warnings --local-file "$page" 2>&1 >/dev/null)
  [[ -z $complaints ]] || fail "$page: $complaints"
done

mapfile -t functions < <(nm --dynamic --defined-only "$library" |
  sed -n 's/.* T \(tslab_[a-z_]*\).*/\1/p')
((${#functions[@]} > 0)) || fail "$library exports no function"
interface=$(shown 3 "${functions[0]}")
for function in "${functions[@]}"; do
  [[ $(<"$mandir/man3/$function.3") == ".so man3/tslab.3" ]] || fail "$function.3 is another page"
  grep -q "[ *]$function(" <<<"$interface" || fail "tslab(3) has no prototype of $function"
done

mapfile -t listed < <(shown 1 tslab | sed -n 's/^ *\(tslab-[a-z]*\)(1)$/\1/p')
((${#listed[@]} > 0)) || fail "tslab(1) lists no subcommand"
for page in "${listed[@]}"; do
  grep -q "^ *$page - " <<<"$(shown 1 "$page")" || fail "tslab(1) lists $page(1), which has no page"
done
printf '%d functions, %d subcommands\n' "${#functions[@]}" "${#listed[@]}"
