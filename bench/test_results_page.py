"""The results page, and that docs/results.md and README.md say what the result files say."""

import csv
import json
import re
import shutil
from pathlib import Path
from statistics import median

import pytest
import request_costs
import results_page
from click.testing import CliRunner, Result
from founding import ANCHORS

SIX = ("glibc", "jemalloc", "mimalloc", "rpmalloc", "snmalloc", "tcmalloc-debian")
SUMMARY = """section,name,unit,bar,ours,peer_name,peer,ratio,low,high,met
s,won rate,M/s,> best,12.5,glibc,10.0,1.25,1.2,1.3,True
s,lost rate,M/s,> best,1234.5,jemalloc,2469.0,0.5,0.4,0.6,False
s,alone ns,ns,<= 5,4.5,,,,,,True
s,never rate,M/s,> best,,glibc,9.0,,,,
s,shown rate,M/s,-,3.25,,,,,,
"""
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w])")
# The words of the page that are no figures: percentiles' names, sizes and the like stand in these.
TEXT_COLUMNS = ("work", "row", "figure", "bar", "what", "value", "cause", "unit", "", "table")


class Place:
    """A folder with results and documents."""

    def __init__(self, folder: Path) -> None:
        self.results, self.docs = folder / "results", folder / "docs"
        self.readme = folder / "README.md"
        self.results.mkdir()
        (self.docs / "images").mkdir(parents=True)
        self.readme.write_text("# x\n\n<!-- figures:counts -->\n<!-- /figures -->\nend\n")
        (self.docs / "epochs.md").write_text("# y\n")
        (self.results / "core_summary.csv").write_text(SUMMARY)
        about = {"time": "2026-11-21T06:52:27+00:00", "rounds": 7, "versions": {"glibc": "2.36"}}
        (self.results / "core_environment.json").write_text(json.dumps(about))

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(
            results_page.main,
            [
                "--input", str(self.results), "--docs", str(self.docs),
                "--readme", str(self.readme), *arguments,
            ],
            catch_exceptions=False,
        )  # fmt: skip

    def page(self) -> str:
        return (self.docs / "results.md").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_is_lost_is_named_with_its_cause(place: Place) -> None:
    place.run()
    lost = "| lost rate | M/s | 1,234 | 2,469 | jemalloc | > best | {} |"
    assert lost.format("cause not written down") in place.page()
    (place.results / "notes.toml").write_text('"lost rate" = "the reason"\n')
    place.run()
    assert lost.format("the reason") in place.page()


def test_a_note_to_a_row_that_is_not_there_is_an_error(place: Place) -> None:
    (place.results / "notes.toml").write_text('"no such row" = "x"\n')
    done = place.run()
    assert done.exit_code == 1
    assert "no such row" in done.output


def test_check_fails_when_a_document_differs(place: Place) -> None:
    assert place.run("--check").exit_code == 1
    assert place.run().exit_code == 0
    assert place.run("--check").exit_code == 0
    (place.docs / "results.md").write_text(place.page().replace("1,234", "9,234"))
    changed = place.run("--check")
    assert changed.exit_code == 1
    assert "results.md is not what the result files say" in changed.output
    place.run()
    place.readme.write_text(place.readme.read_text().replace("| 2 | 1 |", "| 3 | 0 |"))
    assert "README.md is not" in place.run("--check").output


def test_marks_are_filled_and_the_rest_stays(place: Place) -> None:
    place.run()
    text = place.readme.read_text()
    assert "| core | 2026-11-21 | not recorded | 7 | - | 2 | 1 | 1 | 1 | 0 |" in text
    assert text.startswith("# x\n\n")
    assert text.endswith("<!-- /figures -->\nend\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<!-- figures:nonsense -->\n<!-- /figures -->\n", "no figures nonsense"),
        ("<!-- figures:core -->\n", "lacks its"),
    ],
)
def test_wrong_marks_are_errors(place: Place, text: str, words: str) -> None:
    place.readme.write_text(text)
    done = place.run()
    assert done.exit_code == 1
    assert words in done.output


def rates_of(results: Path) -> dict[tuple[str, str], dict[str, float]]:
    """By program and work: the median rate of each allocator."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    with (results / "core_runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["rate"] != "":
                key = row["command"].split()[0], row["work"]
                found.setdefault(key, {}).setdefault(row["allocator"], []).append(
                    float(row["rate"])
                )
    return {key: {name: median(v) for name, v in rates.items()} for key, rates in found.items()}


def test_the_row_of_a_program_is_the_one_in_which_ours_stands_worst(place: Place) -> None:
    place.readme.write_text("<!-- figures:beside -->\n<!-- /figures -->\n")
    assert "bench/run core" in place.run().output
    runs = ["round,work,command,allocator,version,rate,peak_kib,wall_s,steal_s"]
    for work, command, rates in (
        ("won", "one --a", {"tslab": "2", "glibc": "1", "jemalloc": "", "mimalloc-next": "9"}),
        ("lost", "one --b", {"tslab": "1", "glibc": "3", "jemalloc": "4", "mimalloc-next": "9"}),
        ("alone", "other", {"tslab": "5", "glibc": "4", "mimalloc-next": "9"}),
        ("latency", "third", {"tslab": "", "glibc": ""}),
    ):
        runs += [f"0,{work},{command},{name},1,{rate},7,1,0" for name, rate in rates.items()]
    (place.results / "core_runs.csv").write_text("\n".join(runs) + "\n")
    with (place.results / "core_summary.csv").open("a") as file:
        file.write("s,alone rate,k/s,> best,5,glibc,4,1.25,1,2,True\n")
    place.run()
    assert tables_of(place.readme.read_text()) == [
        [
            ["program", "unit", "tslab", "glibc", "jemalloc", "ratio"],
            ["lost", "M/s", "1", "3", "**4**", "0.25"],
            ["alone", "k/s", "**5**", "4", "-", "1.25"],
        ]
    ]


def test_the_guide_shows_what_a_request_costs(place: Place) -> None:
    guide = place.docs / "epochs.md"
    guide.write_text("<!-- figures:requests -->\n<!-- /figures -->\n")
    assert "bench/run epochs" in place.run().output
    ours = {
        f"{work} {key}_x": 2
        for work in ("request_time", "request_instructions")
        for key in ("own", "own_at_once", "own_freed_late", "long", "released")
    }
    ours |= {"request_time plain_ns": 1000, "request_time monotonic_ns": 250}
    ours |= {f"request_instructions {way}_instructions": 4000 for way in ("plain", "monotonic")}
    for pattern in request_costs.PATTERNS:
        ours |= {f"paced_{pattern}_wrapped p50_ns": 300, f"paced_{pattern}_plain p50_ns": 200}
    rows = "".join(f"s,{name},x,-,{figure},,,,,,\n" for name, figure in ours.items())
    (place.results / "epochs_summary.csv").write_text(SUMMARY.splitlines()[0] + "\n" + rows)
    shutil.copy(place.results / "core_environment.json", place.results / "epochs_environment.json")
    place.run()
    (table,) = tables_of(guide.read_text())
    assert table[1] == ["without an epoch", "1,000 ns", "4,000"]
    assert ["each object freed at once", "2.00 x", "2.00 x"] in table
    assert ["released at its end, in memory of its own", "0.50 x", "2.00 x"] in table
    assert ["after a pause, at the median: pattern kernel", "1.50 x", "-"] in table


def test_readme_shows_every_program_of_core_that_measures_a_rate() -> None:
    readme = (results_page.ROOT / "README.md").read_text()
    table = next(table for table in tables_of(readme) if table[0][0] == "program")
    rates = rates_of(results_page.ROOT / "bench" / "results")
    headings, *rows = table
    names = headings[2:-1]
    assert len(names) == len(SIX) + 1
    assert set(names) == {"tslab", *SIX}
    assert len(rows) == len({program for program, _ in rates})
    for work, _, *cells, ratio in rows:
        (program,) = (program for program, name in rates if name == work)
        ratios = {
            name: of["tslab"] / max(of[peer] for peer in SIX)
            for (one, name), of in rates.items()
            if one == program
        }
        assert min(ratios, key=ratios.__getitem__) == work
        assert ratio == f"{ratios[work]:.2f}"
        shown = [float(cell.strip("*").replace(",", "")) for cell in cells]
        assert shown == pytest.approx([rates[program, work][name] for name in names], rel=0.005)


def test_missing_inputs_name_the_command(place: Place) -> None:
    (place.results / "core_environment.json").unlink()
    assert "bench/run core" in place.run().output
    (place.results / "core_summary.csv").unlink()
    assert "bench/run core" in place.run().output


def test_charts_are_shown_as_far_as_they_are_there(place: Place) -> None:
    (place.docs / "images" / "scaling.png").write_text("")
    place.run()
    assert "![scaling](images/scaling.png)" in place.page()


def test_the_commit_is_shown_where_the_results_name_it(place: Place) -> None:
    place.run()
    assert "| not recorded |" in place.page()
    about = place.results / "core_environment.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "commit": "0a1b2c3d4e5f"}))
    place.run()
    assert "| commit | 0a1b2c3d4e5f |" in place.page()
    assert "| not recorded |" not in place.page()
    assert invented(place.page(), place.results) == loose(place.page()) == []


def tables_of(page: str) -> list[list[list[str]]]:
    """The cells of each table, its headings first."""
    found: list[list[list[str]]] = [[]]
    for line in page.splitlines():
        if not line.startswith("|"):
            found.append([])
        elif not line.startswith("| ---"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return [table for table in found if table]


def figures_of_files(results: Path) -> dict[str, list[str]]:
    """The figures of each row; two tables may have one of the same name."""
    found: dict[str, list[str]] = {}
    for path in results.glob("*_summary.csv"):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                texts = [row[key] for key in ("ours", "peer", "ratio", "low", "high")]
                found.setdefault(row["name"], []).extend(texts)
    return found


def is_from(shown: str, texts: list[str]) -> bool:
    """Whether a file's figure, to as many digits as are shown, is this one."""
    digits = len(shown.partition(".")[2])
    value = float(shown.replace(",", ""))
    slack = 0.5 * 10**-digits
    return any(abs(float(text) - value) <= slack * 1.001 for text in texts if text)


def invented(page: str, results: Path) -> list[str]:
    """Figures of rows that the row's file does not have."""
    figures = figures_of_files(results)
    claims = {
        claim
        for one in ANCHORS
        for claim in (one.zns_slab, one.temporal_slab, one.glibc, one.hakmem, one.mimalloc)
    }
    found = []
    for headings, *lines in tables_of(page):
        key = next((headings.index(name) for name in ("row", "work") if name in headings), None)
        if key is None:
            continue
        for cells in lines:
            texts = figures.get(cells[key], [])
            for heading, cell in zip(headings, cells, strict=True):
                is_claim = headings[0] == "figure" and heading != "ours" and cell in claims
                if heading in TEXT_COLUMNS or is_claim:
                    continue
                found += [
                    f"{cells[key]}: {shown}"
                    for shown in NUMBER.findall(cell)
                    if not is_from(shown, texts)
                ]
    return found


def loose(page: str) -> list[str]:
    """Figures outside of tables."""
    lines = [line for line in page.splitlines() if not line.startswith("|")]
    return [shown for line in lines for shown in NUMBER.findall(line)]


def stolen(runs: Path) -> str:
    if not runs.exists():
        return "-"
    with runs.open(newline="") as file:
        rows = list(csv.DictReader(file))
    share = sum(float(row["steal_s"]) for row in rows) / sum(float(row["wall_s"]) for row in rows)
    return f"{share * 100:.1f}%"


def rounds(runs: Path, planned: object) -> str:
    """The fewest and the most of a work."""
    if not runs.exists():
        return str(planned)
    with runs.open(newline="") as file:
        pairs = {(row["work"], row["round"]) for row in csv.DictReader(file)}
    counts = sorted({len([1 for other, _ in pairs if other == work]) for work, _ in pairs})
    return " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))


def counts_are_true(page: str, results: Path) -> bool:
    counts = next(table for table in tables_of(page) if table[0][0] == "table")
    for name, date, commit, told, taken, met, missed, unknown, shown, behind in counts[1:]:
        with (results / f"{name}_summary.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        verdicts = [row["met"] for row in rows]
        ratios = [float(row["ratio"]) for row in rows if row["bar"] == "-" and row["ratio"] != ""]
        about = json.loads((results / f"{name}_environment.json").read_text())
        without = [row["bar"] for row in rows].count("-")
        wanted = [verdicts.count("True"), verdicts.count("False"), verdicts.count("") - without]
        if [int(met), int(missed), int(unknown), int(shown)] != [*wanted, without]:
            return False
        if taken != stolen(results / f"{name}_runs.csv"):
            return False
        if int(behind) != sum(ratio < 0.95 for ratio in ratios):
            return False
        runs = results / f"{name}_runs.csv"
        if (date, told) != (about["time"][:10], rounds(runs, about["rounds"])):
            return False
        if commit != about.get("commit", "not recorded")[:12]:
            return False
    return True


def test_no_number_of_docs_results_is_from_elsewhere() -> None:
    page = (results_page.ROOT / "docs" / "results.md").read_text()
    results = results_page.ROOT / "bench" / "results"
    assert invented(page, results) == []
    assert loose(page) == []
    assert counts_are_true(page, results)


def test_a_number_from_elsewhere_is_found(place: Place) -> None:
    place.run()
    page = place.page()
    assert invented(page, place.results) == []
    assert counts_are_true(page, place.results)
    assert invented(page.replace("1,234", "1,334"), place.results) == ["lost rate: 1,334"] * 2
    assert invented(page.replace("1.20 to 1.30", "1.20 to 1.40"), place.results) == [
        "won rate: 1.40"
    ]
    assert loose(page + "\nIt is 3.5 times ahead.\n") == ["3.5"]
    assert not counts_are_true(page.replace("| 2 | 1 | 1 |", "| 3 | 0 | 1 |"), place.results)
    runs = place.results / "core_runs.csv"
    runs.write_text(
        "round,work,command,allocator,version,rate,wall_s,steal_s\n"
        "0,won,one,tslab,1,12.5,3,0.25\n0,won,one,glibc,1,10,1,0\n"
    )
    assert not counts_are_true(page, place.results)
    place.run()
    assert "| 1 | 6.2% | 2 | 1 |" in place.page()
    assert counts_are_true(place.page(), place.results)


def test_rows_without_a_bar_are_compared() -> None:
    row = {"met": "", "ratio": "0.94", "bar": "-"}
    assert results_page.verdict(row) == "**behind**"
    assert results_page.verdict({**row, "ratio": "0.96"}) == "even"
    assert results_page.verdict({**row, "ratio": "1.06"}) == "ahead"
    assert results_page.verdict({**row, "ratio": ""}) == "-"
    assert results_page.verdict({**row, "met": "True"}) == "met"


def test_a_row_with_a_bar_and_no_figure_is_not_measured(place: Place) -> None:
    place.run()
    assert "| never rate | M/s | - | 9 | glibc | - | - | > best | not measured |" in place.page()
    assert "| shown rate | M/s | 3.25 | - |  | - | - | - | - |" in place.page()


def test_a_cause_is_that_of_the_row_or_of_its_pattern() -> None:
    notes = {"burst_*": "all bursts", "burst_x2 rate": "this one"}
    assert results_page.cause(notes, "burst_x2 rate") == "this one"
    assert results_page.cause(notes, "burst_x2 p50_ns") == "all bursts"
    assert results_page.cause(notes, "steady rate") == results_page.UNKNOWN_CAUSE


def test_the_documents_say_what_the_result_files_say() -> None:
    done = CliRunner().invoke(results_page.main, ["--check"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
