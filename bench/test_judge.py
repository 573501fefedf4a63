"""Summaries written anew from the runs."""

import csv
from pathlib import Path

import judge
import pytest
from click.testing import CliRunner, Result
from run import ROOT
from summary import bar_text
from tables import TABLES

RUNS = """round,work,command,allocator,version,rate
0,tiny,shape_tiny,tslab,1,94
1,tiny,shape_tiny,tslab,1,94
0,tiny,shape_tiny,glibc,2.36,100
1,tiny,shape_tiny,glibc,2.36,100
"""


def judged(folder: Path, *tables: str) -> Result:
    return CliRunner().invoke(judge.main, ["--input", str(folder), *tables])


def test_runs_are_judged_by_the_bars_there_are(tmp_path: Path) -> None:
    (tmp_path / "core_runs.csv").write_text(RUNS)
    (tmp_path / "core_summary.csv").write_text("name,met\ntiny rate,True\n")
    assert judged(tmp_path, "core").exit_code == 0
    with (tmp_path / "core_summary.csv").open(newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    row = rows["tiny rate"]
    assert (row["ratio"], row["bar"], row["met"]) == ("0.94", ">= 0.95 best", "False")


def test_without_runs_the_summary_stays(tmp_path: Path) -> None:
    (tmp_path / "core_summary.csv").write_text("name,met\n")
    done = judged(tmp_path, "core")
    assert done.exit_code == 1
    assert "core_runs.csv" in done.output
    assert (tmp_path / "core_summary.csv").read_text() == "name,met\n"


@pytest.mark.parametrize("table", TABLES)
def test_what_was_measured_is_judged_by_the_bars_there_are(table: str) -> None:
    metrics = [(work, metric) for work in TABLES[table] for metric in work.metrics]
    bars = {f"{work.name} {metric.key}": bar_text(metric) for work, metric in metrics}
    with (ROOT / "bench" / "results" / f"{table}_summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] in bars]
    assert rows
    assert [row["bar"] for row in rows] == [bars[row["name"]] for row in rows]
