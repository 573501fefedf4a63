"""Writes docs/man/tslab.3 from include/tslab.h: each comment with what it stands above.

With --check nothing is written; the page has to be up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from marked import ROOT, update

HEADER = ROOT / "include/tslab.h"
PAGE = ROOT / "docs/man/tslab.3"

VERSION = re.compile(r'#define TSLAB_VERSION "([^"]+)"')
COMMENT = re.compile(r"/\*(.*?)\*/\n?", re.DOTALL)
OVERVIEW = re.compile(r"/\*( \w+: .*?)\*/", re.DOTALL)
HEADING = re.compile(r"^-+ ([A-Z]\w*) -+\n")
ATTRIBUTES = re.compile(r"\s*\bTSLAB_(?:NOEXCEPT|MALLOC|MUST_USE|(?:SIZES?|NONNULL)\([^)]*\))")
FIRST_WORDS = ("Returns ", "Fails: ", "Beware ", "Threads: ")

OPENING = """\
.TH TSLAB 3 " " "tslab {version}"
.SH NAME
tslab \\- a memory allocator that knows lifetimes
.SH SYNOPSIS
.nf
.B #include <tslab.h>
.PP
.B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs tslab\\-preload)
.fi
.SH DESCRIPTION
"""
CLOSING = """\
.SH SEE ALSO
.BR malloc (3),
.BR tslab (1),
.I include/tslab.hpp
for C++
"""


@dataclass(frozen=True)
class Piece:
    """What stands between two blank lines of the header."""

    text: str
    declaration: str


def pieces_of(header: str) -> Iterator[Piece]:
    """The overview, then everything from the first function to the end of the C part."""
    overview = OVERVIEW.search(header)
    if overview is None or "TSLAB_API void *tslab_malloc" not in header:
        raise ValueError(f"{HEADER} begins with no overview, or has no tslab_malloc")
    yield Piece(plain(overview[1]), "")
    body = header[header.index("#endif\n\n/* ") + len("#endif\n\n") :]
    body = body[: body.rindex("#if defined(__cplusplus)")]
    for paragraph in body.strip().split("\n\n"):
        comment = COMMENT.match(paragraph)
        end = comment.end() if comment else 0
        yield Piece(plain(comment[1]) if comment else "", paragraph[end:])


def plain(comment: str) -> str:
    """A comment without what makes it one."""
    return re.sub(r"^ ?\*+ ?", "", comment.strip(" *\n"), flags=re.MULTILINE).strip()


def roff(text: str) -> str:
    """Text in which nothing is a command."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def prose(text: str) -> str:
    """Paragraphs; what a call returns, and how it fails, begins one."""
    lines = []
    for line in text.splitlines():
        if not line or line.startswith(FIRST_WORDS):
            lines.append(".PP")
        if line:
            marked = re.sub(r"`([^`]+)`", r"\\fI\1\\fP", roff(line))
            lines.append(re.sub(r"\b((?:tslab|TSLAB)_\w+)", r"\\fB\1\\fP", marked))
    return "\n".join(lines) + "\n"


def code(declaration: str) -> str:
    """Declarations as C has them, without what is for the compiler only."""
    functions = declaration.startswith("TSLAB_API")
    if functions:
        declaration = ATTRIBUTES.sub("", declaration).replace("TSLAB_API ", "")
        declaration = "\n".join(
            " ".join(each.split()) + ";" for each in declaration.split(";")[:-1]
        )
    return f".PP\n.nf\n{roff(declaration.strip())}\n.fi\n"


def body_of(piece: Piece) -> str:
    heading = HEADING.match(piece.text)
    if heading:
        return f".SS {heading[1]}\n" + prose(piece.text[heading.end() :].strip())
    if not piece.declaration:
        return prose(piece.text)
    text = f".RS\n{prose(piece.text)}.RE\n" if piece.text else ""
    return code(piece.declaration) + text


def page(header: str) -> str:
    version = VERSION.search(header)
    if version is None:
        raise ValueError(f"{HEADER} defines no TSLAB_VERSION")
    body = "".join(map(body_of, pieces_of(header)))
    return OPENING.format(version=version[1]) + body + CLOSING


def main(arguments: list[str]) -> int:
    return update(PAGE, page(HEADER.read_text()), only_check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
