"""Prints an ABI without the fields by which its structs have grown since a release.

    abi_growth.py RELEASED NOW

Both are files of abidw. A struct may grow whose first field is its `size`, which callers set: what
lies behind the end that it had is taken off, and it has its old size. Nothing else is forgiven.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

BITS = "size-in-bits"


def growing(corpus: Element) -> Iterator[Element]:
    for struct in corpus.iter("class-decl"):
        first = struct.find("data-member/var-decl")
        if first is not None and first.get("name") == "size" and struct.get(BITS):
            yield struct


def shrink(struct: Element, bits: str) -> None:
    for member in struct.findall("data-member"):
        if int(member.get("layout-offset-in-bits", "0")) >= int(bits):
            struct.remove(member)
    struct.set(BITS, bits)


def main() -> int:
    released, now = (ElementTree.parse(path) for path in sys.argv[1:])
    ends = {struct.get("name"): struct.attrib[BITS] for struct in growing(released.getroot())}
    for struct in growing(now.getroot()):
        end = ends.get(struct.get("name"))
        if end is not None and int(end) < int(struct.attrib[BITS]):
            shrink(struct, end)
    now.write(sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
