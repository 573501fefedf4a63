"""Writes the tables of docs/statistics.md, between two marks.

They say what the C sources declare (rows.py). With --check nothing is written; the document has to
be up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from marked import ROOT, Document
from rows import ROWS, Field, Rows, SlowPath, State, declared_rows

DOCUMENT = Document(
    ROOT / "docs/statistics.md",
    "<!-- fields: written by tools/statistics_table.py -->\n",
    "<!-- fields: end -->\n",
)

KINDS = {"ONE": "", "EACH": " by class", "LIST": "s", "TEXT": ""}


def table(columns: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """The columns' names are separated by spaces."""
    names = columns.split()
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def field_row(field: Field, states: list[State]) -> tuple[str, ...]:
    unit = "" if field.unit == "NONE" else field.unit.lower()
    values = ", ".join(f"{number} {state.meaning}" for number, state in enumerate(states))
    meaning = f"{field.meaning}: {values}" if field.name == "state" else field.meaning
    return f"`{field.name}`", field.kind.lower() + KINDS[field.shape], unit, meaning


def slow_path_row(path: SlowPath) -> tuple[str, ...]:
    less = "" if path.less is None else f" - `{path.less}`"
    return f"`{path.cause}`", path.who.lower(), f"`{path.field}`{less}", path.meaning


def content(rows: Rows) -> str:
    source = ROWS.relative_to(ROOT)
    lines = [f"[{source}](../{source}) declares all that follows.", ""]
    for name, fields in rows.tables.items():
        states = rows.states.get(name, [])
        lines += [f"### {name}", ""]
        lines += table("field kind unit meaning", (field_row(field, states) for field in fields))
    lines += ["### Numbers", ""]
    numbers = ((f"`{number.name}`", str(number.value), number.meaning) for number in rows.numbers)
    lines += table("name value meaning", numbers)
    lines += [
        "### Slow paths",
        "",
        "Why allocations and frees leave the fast path.",
        "",
    ]
    lines += table("cause of count meaning", map(slow_path_row, rows.slow_paths))
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    return DOCUMENT.update(content(declared_rows()), only_check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
