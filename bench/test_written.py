"""Files that programs write: read, checked, merged."""

from pathlib import Path

import pytest
import written
from chart_data import tail_of
from measure import Run, RunError
from work import Work

WRITING = Work("w", ("w",), ("w",), (), "s", writes=("--hgrm", "{folder}/values.hgrm"))


def put(base: Path, number: int, allocator: str, file: str, text: str) -> Run:
    folder = written.folder_of_run(base, number, "w", allocator)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    return Run(number, "w", allocator, "1", {})


def test_histograms_of_all_rounds_become_one(tmp_path: Path) -> None:
    section = "# program=w operation=malloc allocator=libc.so.6\n"
    runs = [
        put(tmp_path, 0, "a", "values.hgrm", section + "10.2 98\n20.0 1\n"),
        put(tmp_path, 1, "a", "values.hgrm", section + "10.2 100\n900.0 1\n"),
    ]
    written.collect(tmp_path, runs, tmp_path)
    text = (tmp_path / "w-malloc-a.hgrm").read_text()
    assert text.split()[:4] == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert "TotalCount     =       200.00]" in text
    values = {value for _, value in tail_of(tmp_path / "w-malloc-a.hgrm")}
    assert values == {10.0, 20.0, 903.0}


@pytest.mark.parametrize("value", [1, 40, 255, 371, 1079, 2287, 70_001, 420_697, 874_090])
def test_a_merged_value_is_true_to_a_hundredth(value: int) -> None:
    whole = written.merged([written.Histogram("malloc", {value: 3})])
    assert value <= whole.get_value_at_percentile(50) <= value * 1.01


def test_sections_of_one_file_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "values.hgrm"
    path.write_text("# operation=malloc threads=2\n1 5\n# operation=free threads=2\n2 6\n")
    found = written.histograms_of(path)
    assert [(one.operation, one.counts) for one in found] == [
        ("malloc_t2", {1: 5}),
        ("free_t2", {2: 6}),
    ]


def test_rows_bear_our_name_for_the_allocator(tmp_path: Path) -> None:
    header = written.HEADERS["scaling.csv"]
    runs = [
        put(tmp_path, 0, name, "rows.csv", f"{header}\nlibjemalloc.so.2,1,2,3,4,5,6\n")
        for name in ("jemalloc", "jemalloc-debian")
    ]
    written.collect(tmp_path, runs, tmp_path)
    assert (tmp_path / "scaling.csv").read_text().splitlines() == [
        header,
        "jemalloc,1,2,3,4,5,6",
        "jemalloc-debian,1,2,3,4,5,6",
    ]


def test_rows_of_another_way_of_working_have_a_file_of_their_own(tmp_path: Path) -> None:
    header = written.HEADERS["rss_churn.csv"]
    for file, cells in (("rows.csv", "0,1.5,,,"), ("rows-oldest.csv", "0,2.5,,,")):
        run = put(tmp_path, 0, "a", file, f"{header}\nlibc.so.6,{cells}\n")
    written.collect(tmp_path, [run], tmp_path)
    for file, cells in (("rss_churn.csv", "0,1.5,,,"), ("rss_churn_oldest.csv", "0,2.5,,,")):
        assert (tmp_path / file).read_text().splitlines() == [header, f"a,{cells}"]


@pytest.mark.parametrize("text", ["1 5\n", "# operation=malloc\n1\n", "# x\nx 1\n"])
def test_a_histogram_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "values.hgrm"
    path.write_text(text)
    with pytest.raises(RunError, match=r"values\.hgrm"):
        written.histograms_of(path)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", written.HEADERS["scaling.csv"] + "\n1,2\n"])
def test_rows_without_their_header_are_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(RunError, match=r"rows\.csv"):
        list(written.rows_of(path))


def test_a_run_without_its_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"wrote no values\.hgrm"):
        written.check(tmp_path, WRITING)
    (tmp_path / "values.hgrm").write_text("")
    with pytest.raises(RunError, match="nothing but headers"):
        written.check(tmp_path, WRITING)
