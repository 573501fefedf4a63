"""`python -m tslab run SCRIPT`: the interpreter on the allocator."""

from __future__ import annotations

import sys

from tslab._run import run

USAGE = "usage: python -m tslab run SCRIPT [ARGUMENT ...]; `run --help` says more"


def main() -> int:
    verb, *arguments = sys.argv[1:] or [""]
    if verb == "run":
        run(arguments)
    wants_help = verb in ("-h", "--help")
    print(USAGE, file=sys.stdout if wants_help else sys.stderr)
    return 0 if wants_help else 2


if __name__ == "__main__":
    sys.exit(main())
