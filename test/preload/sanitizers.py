"""Starts programs of a compiler's sanitizers with the library preloaded: they find what they find.

    sanitizers.py --preload LIBRARY COMPILER...

Exit status 77 means that no compiler here has any of the sanitizers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
SECONDS = 60

# A program that returns 7, and what its sanitizer says when it is asked to do something wrong. Its
# two racing writes are ordered in time by a relaxed atomic, which synchronises nothing: two writes
# at the same instant are a race that ThreadSanitizer can miss. It also forgets: of 8 bytes it keeps
# the last four accesses, so the atomic lies elsewhere.
SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int shared __attribute__((aligned(64))), written __attribute__((aligned(64)));
static char *volatile kept;
static void *change(void *unused) {
  while (__atomic_load_n(&written, __ATOMIC_RELAXED) == 0) usleep(100);
  shared++;
  return unused;
}
int main(int count, char **arguments) {
  pthread_t thread;
  char *volatile text = strdup(arguments[0]);
  free(text);
  if (count == 1) return 7;
  if (strcmp(arguments[1], "address") == 0) return text[0];
  if (strcmp(arguments[1], "leak") == 0) { kept = malloc(100); kept = NULL; return 7; }
  if (strcmp(arguments[1], "memory") == 0) { text = malloc(1); return text[0] ? 1 : 2; }
  pthread_create(&thread, NULL, change, NULL);
  shared++;
  __atomic_store_n(&written, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  return 7;
}
"""
FINDINGS = {
    "address": "heap-use-after-free",
    "leak": "detected memory leaks",
    "memory": "use-of-uninitialized-value",
    "thread": "data race",
}
ASIDE = "the program starts again without libtslab-preload.so"


def build(compiler: str, sanitizer: str, folder: Path) -> Path | None:
    """The program, or None when the compiler lacks the sanitizer or it does not work here."""
    source, program = folder / "program.c", folder / f"program_{sanitizer}"
    source.write_text(SOURCE)
    options = [f"-fsanitize={sanitizer}", "-g", "-pthread"]
    command: list[str | Path] = [compiler, *options, "-o", program, source]
    if shutil.which(compiler) is None:
        return None
    built = subprocess.run(command, capture_output=True, check=False)
    if built.returncode != 0:
        return None
    alone = start(program, None, [])
    return program if alone.returncode == 7 else None


def start(
    program: Path, library: Path | None, arguments: list[str]
) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if library is not None:
        environment["LD_PRELOAD"] = str(library)
    return subprocess.run(
        [program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def faults(program: Path, library: Path, sanitizer: str) -> list[str]:
    """What is wrong with the program under the library."""
    found = []
    right = start(program, library, [])
    if right.returncode != 7:
        found.append(f"ends with status {right.returncode}: {right.stderr[-500:]}")
    if right.stderr.count(ASIDE) > 1:
        found.append("it started again more than once")
    wrong = start(program, library, [sanitizer])
    if FINDINGS[sanitizer] not in wrong.stderr:
        found.append(f"did not find the fault: {wrong.stderr[-500:]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preload", type=Path, required=True)
    parser.add_argument("compilers", nargs="+")
    asked = parser.parse_args()
    tried = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler in asked.compilers:
            for sanitizer in FINDINGS:
                program = build(compiler, sanitizer, Path(folder))
                if program is None:
                    print(f"{compiler} -fsanitize={sanitizer}: not here")
                    continue
                tried += 1
                found = faults(program, asked.preload.resolve(), sanitizer)
                failed += len(found)
                print(f"{compiler} -fsanitize={sanitizer}: {'; '.join(found) or 'as without us'}")
    if tried == 0:
        return SKIPPED
    return 1 if failed != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
