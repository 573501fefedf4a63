"""Writes into ARCHITECTURE.md, between two marks, which folders of src/ include from which.

The table says what the includes say. With --check nothing is written; the document has to be up to
date.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Sequence

from circles import Graph, c_graph, folders_of
from lint import LAYERS, read_tree
from marked import ROOT, Document

DOCUMENT = Document(
    ROOT / "ARCHITECTURE.md",
    "<!-- rooms: written by tools/rooms_table.py from the includes -->\n",
    "<!-- rooms: end -->\n",
)


def table(graph: Graph, rooms: Sequence[str]) -> str:
    """A row for each room that may use others, a column for each that others may use."""
    uses = {
        (posixpath.basename(user), posixpath.basename(used))
        for user, edges in folders_of(graph).items()
        for used in edges
    }
    rows = [
        [f"`{user}`", *("x" if (user, used) in uses else " " for used in rooms[:-1])]
        for user in rooms[1:]
    ]
    head = [" ", *(f"`{room}`" for room in rooms[:-1])]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *rows])


def main(arguments: list[str]) -> int:
    sources = read_tree(ROOT).layered()
    graph = c_graph({source.path: source.lines for source, _ in sources})
    return DOCUMENT.update(table(graph, LAYERS), only_check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
