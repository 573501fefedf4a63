"""Writes docs/results.md and the figures in README.md and docs/epochs.md from the result files.

With --check nothing is written; all have to be up to date. Between the marks
`<!-- figures:NAME -->` and `<!-- /figures -->` a document gets the figures NAME: `counts`,
`beside` (bench/beside.py), `requests` (bench/request_costs.py), or a table's rows.
"""

import csv
import fnmatch
import json
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from beside import RATE, Beside, load_beside
from founding import ANCHORS, Anchor
from peers import OURS
from record import RecordError
from request_costs import REQUEST_HEADINGS, request_rows
from results_folder import results_folder

ROOT = Path(__file__).resolve().parent.parent
TABLES = ("core", "epochs", "suite", "servers", "observed", "external")
TITLES = {
    "core": "What the core must reach",
    "epochs": "What epochs must reach",
    "suite": "Founding programs and others",
    "servers": "Patterns of servers",
    "observed": "What being observed costs",
    "external": "mimalloc-bench",
}
MARKS = re.compile(r"(<!-- figures:([\w-]+) -->\n).*?(<!-- /figures -->)", re.DOTALL)
UNKNOWN_CAUSE = "cause not written down"
BEHIND = "**behind**"
NOT_MEASURED = "not measured"
NO_BAR = "-"
EVEN = 0.95  # from this part of the best peer on
HEADINGS = ("work", "unit", "ours", "best peer", "", "ratio", "95 % interval", "bar", "verdict")

Row = dict[str, str]


class PageError(Exception):
    """Files that no page can be made from."""


@dataclass(frozen=True)
class Table:
    """One measured table, as its files say it."""

    name: str
    rows: list[Row]
    environment: dict[str, object]
    stolen: float | None = None  # share of time that the host gave to other machines
    rounds: str | None = None  # the least and the most of a work

    def lost(self) -> list[Row]:
        """Bars that are missed, and rows without one in which we are behind."""
        return [row for row in self.rows if row["met"] == "False" or verdict(row) == BEHIND]

    def behind(self) -> int:
        return sum(verdict(row) == BEHIND for row in self.rows)

    def commit(self) -> str:
        return str(self.environment.get("commit", "not recorded"))[:12]

    def rounds_told(self) -> str:
        return self.rounds or str(self.environment["rounds"])

    def count(self, met: str) -> int:
        return sum(row["met"] == met for row in self.rows)

    def unmeasured(self) -> int:
        return sum(map(is_unmeasured, self.rows))

    def unbarred(self) -> int:
        return sum(row["bar"] == NO_BAR for row in self.rows)


@dataclass(frozen=True)
class Sources:
    """All that the documents are made from."""

    tables: dict[str, Table]
    notes: dict[str, str]
    images: list[str]
    beside: Sequence[Beside]


def stolen_share(runs: Path) -> float | None:
    """Of the time of all runs."""
    if not runs.exists():
        return None
    with runs.open(newline="") as file:
        times = [(float(run["steal_s"]), float(run["wall_s"])) for run in csv.DictReader(file)]
    return sum(steal_s for steal_s, _ in times) / sum(wall_s for _, wall_s in times)


def rounds_of(runs: Path) -> str | None:
    """Some works have fewer rounds than their table."""
    if not runs.exists():
        return None
    rounds: dict[str, set[str]] = {}
    with runs.open(newline="") as file:
        for run in csv.DictReader(file):
            rounds.setdefault(run["work"], set()).add(run["round"])
    least, most = min(map(len, rounds.values())), max(map(len, rounds.values()))
    return str(most) if least == most else f"{least} to {most}"


def load_table(folder: Path, name: str) -> Table | None:
    summary, about = folder / f"{name}_summary.csv", folder / f"{name}_environment.json"
    if not summary.exists():
        return None
    try:
        with summary.open(newline="") as file:
            rows = list(csv.DictReader(file))
        environment = json.loads(about.read_text())
    except (OSError, ValueError) as error:
        raise PageError(f"{name}: {error}; measure it anew by: bench/run {name}") from error
    if any(None in row or None in row.values() for row in rows) or "versions" not in environment:
        raise PageError(f"{summary.name} or {about.name} is incomplete: bench/run {name}")
    runs = folder / f"{name}_runs.csv"
    return Table(name, rows, environment, stolen_share(runs), rounds_of(runs))


def load_notes(path: Path) -> dict[str, str]:
    """Causes by the name of the row, or by a pattern of names."""
    if not path.exists():
        return {}
    try:
        notes = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise PageError(f"{path.name}: {error}") from error
    wrong = [name for name, text in notes.items() if not isinstance(text, str)]
    if wrong:
        raise PageError(f"{path.name}: no text for {', '.join(wrong)}")
    return notes


def load(folder: Path, images: Path) -> Sources:
    tables = {name: load_table(folder, name) for name in TABLES}
    known = {name: table for name, table in tables.items() if table is not None}
    if not known:
        raise PageError(f"no *_summary.csv in {folder.name}/; one is made by: bench/run core")
    notes = load_notes(folder / "notes.toml")
    rows = {row["name"] for table in known.values() for row in table.rows}
    strange = sorted(name for name in notes if not fnmatch.filter(rows, name))
    if strange:
        raise PageError(f"notes.toml names rows that no table has: {', '.join(strange)}")
    pictures = sorted(path.name for path in images.glob("*.png"))
    return Sources(known, notes, pictures, load_beside(folder))


def figure(text: str) -> str:
    """A figure of a result file, shortened; nothing where the file says nothing."""
    if text == "":
        return "-"
    value = float(text)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def ratio(text: str) -> str:
    return "-" if text == "" else f"{float(text):.2f}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def spread(row: Row) -> str:
    return "-" if row["low"] == "" else f"{ratio(row['low'])} to {ratio(row['high'])}"


def comparison(row: Row) -> str:
    """What a row without a bar says of us and the best peer."""
    if row["ratio"] == "":
        return "-"
    value = float(row["ratio"])
    return BEHIND if value < EVEN else "even" if value <= 1 / EVEN else "ahead"


def is_unmeasured(row: Row) -> bool:
    """It has a bar that nobody can judge: a figure is missing, or there is one round alone."""
    return row["met"] == "" and row["bar"] != NO_BAR


def verdict(row: Row) -> str:
    if is_unmeasured(row):
        return NOT_MEASURED
    return {"True": "met", "False": "**missed**"}.get(row["met"], comparison(row))


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def lines_of(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [line(headings), line(["---"] * len(headings)), *map(line, rows)]


def cells_of(row: Row) -> list[str]:
    return [
        row["name"], row["unit"], figure(row["ours"]), figure(row["peer"]), row["peer_name"],
        ratio(row["ratio"]), spread(row), row["bar"], verdict(row),
    ]  # fmt: skip


def table_lines(table: Table) -> list[str]:
    return lines_of(HEADINGS, [cells_of(row) for row in table.rows])


def environment_lines(table: Table) -> list[str]:
    plain = [(key, str(value)) for key, value in table.environment.items() if key != "versions"]
    versions = table.environment["versions"]
    assert isinstance(versions, dict)
    told = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    rows = [(key.replace("_", " "), value) for key, value in plain]
    return lines_of(("what", "value"), [*rows, ("allocators", told)])


def section_lines(table: Table) -> list[str]:
    return [
        f"## {TITLES[table.name]}", "", f"Measured by `bench/run {table.name}`, on:", "",
        *environment_lines(table), "", *table_lines(table), "",
    ]  # fmt: skip


def counts_lines(tables: Sequence[Table]) -> list[str]:
    """How many rows met what they must reach."""
    headings = (
        "table", "measured", "commit", "rounds", "stolen", "met", "missed", NOT_MEASURED,
        "no bar", "behind there",
    )  # fmt: skip
    rows = [
        (
            table.name, str(table.environment["time"])[:10], table.commit(),
            table.rounds_told(), percent(table.stolen), str(table.count("True")),
            str(table.count("False")), str(table.unmeasured()), str(table.unbarred()),
            str(table.behind()),
        )
        for table in tables
    ]  # fmt: skip
    return lines_of(headings, rows)


def beside_cells(row: Beside, names: Sequence[str], unit: str) -> list[str]:
    """The highest rate stands out."""
    rates = {OURS: row.ours, **row.peers}
    best = max(rates.values())
    shown = [
        "-" if rate is None else f"**{figure(str(rate))}**" if rate == best else figure(str(rate))
        for rate in map(rates.get, names)
    ]
    return [row.work, unit, *shown, ratio(str(row.ratio))]


def beside_lines(sources: Sources) -> list[str]:
    """Ours and each peer, a row for each program (bench/beside.py)."""
    if not sources.beside or "core" not in sources.tables:
        raise PageError("nothing to show beside the peers; measure it by: bench/run core")
    units = {row["name"]: row["unit"] for row in sources.tables["core"].rows}
    names = [OURS, *dict.fromkeys(name for row in sources.beside for name in row.peers)]
    rows = [beside_cells(row, names, units[f"{row.work} {RATE}"]) for row in sources.beside]
    return lines_of(["program", "unit", *names, "ratio"], rows)


def request_lines(sources: Sources) -> list[str]:
    """What a request costs in an epoch (bench/request_costs.py)."""
    if "epochs" not in sources.tables:
        raise PageError("nothing to show of requests; measure it by: bench/run epochs")
    ours = {row["name"]: row["ours"] for row in sources.tables["epochs"].rows}
    return lines_of(REQUEST_HEADINGS, request_rows(ours))


def cause(notes: dict[str, str], name: str) -> str:
    """The row's own note, or that of the first pattern that it matches."""
    patterns = (text for key, text in notes.items() if fnmatch.fnmatchcase(name, key))
    return notes.get(name) or next(patterns, UNKNOWN_CAUSE)


def lost_lines(sources: Sources) -> list[str]:
    rows = [
        (
            row["name"], row["unit"], figure(row["ours"]), figure(row["peer"]), row["peer_name"],
            row["bar"], cause(sources.notes, row["name"]),
        )
        for table in sources.tables.values()
        for row in table.lost()
    ]  # fmt: skip
    headings = ("row", "unit", "ours", "best peer", "", "bar", "cause")
    return ["## What is lost", "", *(lines_of(headings, rows) if rows else ["Every bar is met."])]


def anchor_cells(anchor: Anchor, rows: dict[str, Row]) -> list[str]:
    """Ours, the measured peer, then the claims."""
    row = rows.get(anchor.row)
    ours = "not measured yet" if row is None else figure(row["ours"])
    claims = (
        anchor.zns_slab, anchor.temporal_slab, anchor.glibc, anchor.hakmem, anchor.mimalloc,
    )  # fmt: skip
    return [anchor.figure, anchor.unit, anchor.row, ours, *(claim or "-" for claim in claims)]


def founding_lines(sources: Sources) -> list[str]:
    rows = {row["name"]: row for table in sources.tables.values() for row in table.rows}
    headings = (
        "figure", "unit", "row", "ours", "ZNS-Slab 1.5", "temporal-slab", "glibc there", "HAKMEM",
        "mimalloc there",
    )  # fmt: skip
    return [
        "## Beside the founding figures", "",
        "The founding documents' figures are claims, from other machines and other programs; ours"
        " are of the row named.", "",
        *lines_of(headings, [anchor_cells(anchor, rows) for anchor in ANCHORS]),
    ]  # fmt: skip


def chart_lines(images: Sequence[str]) -> list[str]:
    """Whatever bench/plot_bench.py drew."""
    shown = [f"![{Path(name).stem.replace('_', ' ')}](images/{name})" for name in images]
    return ["## Charts", "", *("\n\n".join(shown).split("\n") if shown else ["None drawn."])]


def page(sources: Sources) -> str:
    tables = list(sources.tables.values())
    lines = [
        "<!-- written by bench/results_page.py from bench/results; do not edit -->",
        "# Results", "",
        "Each figure is the median of all rounds. A ratio above one means that tslab is better than"
        " the best peer, whatever the unit. Each round gives a ratio of its own; the interval is"
        " that of their median. A row with a bar is met, missed, or not measured. A row without one"
        " is even where the two differ by five per cent at most, and ahead or behind otherwise."
        " What is stolen is the part of the time that the host gave to other machines.", "",
        *counts_lines(tables), "",
        *lost_lines(sources), "",
        *founding_lines(sources), "",
        *chart_lines(sources.images), "",
    ]  # fmt: skip
    for table in tables:
        lines += section_lines(table)
    return "\n".join(lines).rstrip("\n") + "\n"


def figures_named(sources: Sources, name: str) -> list[str]:
    if name == "counts":
        return counts_lines(list(sources.tables.values()))
    if name == "beside":
        return beside_lines(sources)
    if name == "requests":
        return request_lines(sources)
    if name not in sources.tables:
        known = ", ".join(["counts", "beside", "requests", *sources.tables])
        raise PageError(f"no figures {name}; there are: {known}")
    return table_lines(sources.tables[name])


def with_figures(document: str, sources: Sources) -> str:
    """The document with the figures between its marks."""

    def filled(match: re.Match[str]) -> str:
        return f"{match[1]}\n{chr(10).join(figures_named(sources, match[2]))}\n\n{match[3]}"

    if document.count("<!-- figures:") != len(MARKS.findall(document)):
        raise PageError("a mark <!-- figures:NAME --> lacks its <!-- /figures -->")
    return MARKS.sub(filled, document)


def write_or_check(path: Path, wanted: str, check: bool) -> bool:
    """Whether the document is as it has to be."""
    if path.exists() and path.read_text() == wanted:
        return True
    if check:
        click.echo(f"{path.name} is not what the result files say; run: bench/results_page.py")
        return False
    path.write_text(wanted)
    return True


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail when a document differs.")
@results_folder
@click.option(
    "--docs",
    default=ROOT / "docs",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--readme", default=ROOT / "README.md", metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)  # fmt: skip
def main(check: bool, folder: Path, docs: Path, readme: Path) -> None:
    """Writes docs/results.md, and the figures between the marks of README.md and docs/epochs.md."""
    try:
        sources = load(folder, docs / "images")
        guides = (readme, docs / "epochs.md")
        wanted = {
            docs / "results.md": page(sources),
            **{path: with_figures(path.read_text(), sources) for path in guides},
        }
        right = [write_or_check(path, text, check) for path, text in wanted.items()]
    except (PageError, RecordError, OSError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
