"""Starts a program that reads an object of a released epoch, under what watches memory: it reports
the read, and nothing where the program does right.

    watched.py --library LIBRARY --include FOLDER COMPILER...

Each compiler's AddressSanitizer, and Valgrind's memcheck with the program of the first compiler.
What is not here is named; exit status 77 means that nothing is.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
SECONDS = 60

# Returns 7 when it does right. The argument says where the object lies that it reads too late.
SOURCE = r"""
#include <stddef.h>
#include <string.h>
#include <tslab.h>
static const tslab_epoch_options slabs = {.size = sizeof slabs, .first_cell_bytes = TSLAB_NO_CELLS};
static volatile char *use(const char *where) {
  const tslab_epoch_options *options = strcmp(where, "slab") == 0 ? &slabs : NULL;
  size_t bytes = strcmp(where, "large") == 0 ? 200000 : 100;
  tslab_epoch epoch = tslab_epoch_open(where, options);
  char *block = NULL;
  for (int i = 0; i < 100; i++) {
    block = tslab_epoch_malloc(epoch, bytes);
    memset(block, i, bytes);
  }
  return tslab_epoch_release(epoch) == 0 ? block : NULL;
}
int main(int count, char **arguments) {
  static const char *const places[] = {"cell", "slab", "large"};
  for (int i = 0; i < 12; i++) use(places[i % 3]);
  if (count == 1) return 7;
  return use(arguments[1])[50];
}
"""
PLACES = ("cell", "slab", "large")
MEMCHECK = ("valgrind", "--quiet", "--error-exitcode=9")


def build(
    compiler: str, options: list[str], asked: argparse.Namespace, folder: Path
) -> Path | None:
    """The program; None when the compiler is not here, or lacks the sanitizer."""
    source, program = folder / "program.c", folder / f"program_{len(list(folder.iterdir()))}"
    source.write_text(SOURCE)
    if shutil.which(compiler) is None:
        return None
    library = asked.library.resolve()
    linked = [library, f"-Wl,-rpath,{library.parent}"]
    command = [compiler, "-g", *options, f"-I{asked.include}", "-o", program, source, *linked]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0 and "-fsanitize" not in built.stderr and "asan" not in built.stderr:
        raise SystemExit(built.stderr)
    return program if built.returncode == 0 else None


def start(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def faults(command: list[str | Path], finding: str) -> list[str]:
    """What is wrong with the program that is started so."""
    found = []
    right = start(command)
    if right.returncode != 7 or right.stderr != "":
        found.append(f"ends with status {right.returncode}: {right.stderr[:500]}")
    for place in PLACES:
        wrong = start([*command, place])
        if finding not in wrong.stderr:
            found.append(f"did not find the read in a {place}: {wrong.stderr[:500]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--include", type=Path, required=True)
    parser.add_argument("compilers", nargs="+")
    asked = parser.parse_args()
    tried: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for compiler in asked.compilers:
            program = build(compiler, ["-fsanitize=address"], asked, folder)
            if program is None:
                print(f"{compiler} -fsanitize=address: not here")
                continue
            tried[f"{compiler} -fsanitize=address"] = faults([program], "use-after-poison")
        plain = build(asked.compilers[0], [], asked, folder)
        if plain is None or shutil.which(MEMCHECK[0]) is None:
            print("valgrind: not here")
        else:
            tried["valgrind"] = faults([*MEMCHECK, plain], "Invalid read of size 1")
    for tool, found in tried.items():
        print(f"{tool}: {'; '.join(found) or 'as it must be'}")
    if not tried:
        return SKIPPED
    return 1 if any(tried.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
