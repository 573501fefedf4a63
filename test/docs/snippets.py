"""Compiles the C and C++ that the documents show.

    snippets.py CC CXX

Each block is a file of its own, behind snippets.h, which declares what a reader has to imagine. A
block without a function is the inside of one. Blocks with a title are whole programs, which
commands.py builds.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "docs/epochs.md")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function"]
STANDARDS = {"c": ["-x", "c", "-std=c11"], "cpp": ["-x", "c++", "-std=c++17"]}
DECLARED = Path(__file__).with_name("snippets.h")


def blocks(document: Path) -> list[tuple[int, str, str]]:
    """Line, language and text of each block in C or C++."""
    text = document.read_text()
    found = re.finditer(r"^```(c|cpp)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, each.start()) + 2, each[1], each[2]) for each in found]


def is_of_functions(text: str) -> bool:
    return re.search(r"^[a-z].*\) \{", text, re.MULTILINE) is not None


def source_of(document: Path, line: int, text: str) -> str:
    """The block with its place, so that the compiler names that."""
    placed = f'#line {line} "{document.name}"\n{text}'
    wrapped = placed if is_of_functions(text) else f"void snippet(void) {{\n{placed}}}\n"
    return f'#include "{DECLARED}"\n{wrapped}'


def fails(compiler: str, language: str, source: str) -> bool:
    """Compiles one source; says what went wrong."""
    done = subprocess.run(
        [compiler, *STANDARDS[language], *WARNINGS, f"-I{ROOT / 'include'}", "-fsyntax-only", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stderr, end="")
    return done.returncode != 0


def main() -> int:
    """Compiles every block of every document once."""
    compilers = dict(zip(STANDARDS, sys.argv[1:], strict=True))
    failures = 0
    for name in DOCUMENTS:
        found = blocks(ROOT / name)
        print(f"{name}: {len(found)} blocks")
        if not found:
            print("it shows no code: has the form of the blocks changed?")
            failures += 1
        for line, language, text in found:
            source = source_of(ROOT / name, line, text)
            failures += fails(compilers[language], language, source)
    return int(failures != 0)


if __name__ == "__main__":
    sys.exit(main())
