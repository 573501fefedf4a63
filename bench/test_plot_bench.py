"""Charts from small result files."""

from pathlib import Path

import plot_bench
import pytest
import written
from click.testing import CliRunner, Result
from matplotlib.figure import Figure
from matplotlib.text import Text
from peers import OURS

ALLOCATORS = (OURS, "glibc", "jemalloc")
ROWS = {
    "latency.csv": ["1,128,malloc,9,5,7,20,90,1000", "1,128,free,8,5,7,20,90,1000"],
    "rss_churn.csv": ["0,1.5,10,0,0", "10,1.6,12,2,1"],
    "rss_churn_oldest.csv": ["0,1.5,10,0,0", "10,1.6,12,2,1"],
    "fragmentation.csv": ["64,48,64,16,75.0", "64,64,64,0,100.0"],
    "scaling.csv": ["1,1000000,9,5,7,20", "2,2000000,9,5,7,21"],
}
HISTOGRAM = """       Value     Percentile TotalCount 1/(1-Percentile)

      10.000 0.000000000000          9           1.00
      30.000 0.990000000000         99         100.00
      90.000 1.000000000000        100
#[Mean    =       12.000, StdDeviation   =        9.000]
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    for file, rows in ROWS.items():
        lines = [f"{name},{row}" for name in ALLOCATORS for row in rows for _ in range(3)]
        put_rows(folder / file, lines)
    for name in ALLOCATORS:
        (folder / f"churn_fixed-malloc-{name}.hgrm").write_text(HISTOGRAM)
    marks = [f"{op}_{mark}_ns" for op in ("malloc", "free") for mark in plot_bench.MARKS]
    put_runs(folder / "core_runs.csv", ["churn_128", "churn_mixed"], ["peak_kib", *marks])
    moments = [f"returned_{ms}ms_pct" for ms in plot_bench.RETURN_MS]
    put_runs(folder / "suite_runs.csv", ["idle_return", "idle_return_pinned"], moments)
    return folder


def put_rows(path: Path, lines: list[str]) -> None:
    header = written.HEADERS[path.name.replace("_oldest", "")]
    path.write_text("\n".join([header, *lines]) + "\n")


def words_of(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def put_runs(path: Path, works: list[str], keys: list[str]) -> None:
    lines = [",".join(["round", "work", "command", "allocator", "version", *keys])]
    for number in range(3):
        for work in works:
            for name in ALLOCATORS:
                values = [str(10 + number + place) for place in range(len(keys))]
                lines.append(",".join([str(number), work, work, name, "1", *values]))
    path.write_text("\n".join(lines) + "\n")


def plot(folder: Path, output: Path) -> Result:
    return CliRunner().invoke(
        plot_bench.main, ["--input", str(folder), "--output", str(output)], catch_exceptions=False
    )


def test_every_chart_is_drawn_twice_the_same(results: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert plot(results, first).exit_code == 0
    assert plot(results, second).exit_code == 0
    assert {path.name for path in first.iterdir()} == {f"{name}.png" for name in plot_bench.CHARTS}
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_a_chart_names_every_allocator(results: Path) -> None:
    words = words_of(plot_bench.scaling(results))
    assert [name in words for name in ALLOCATORS] == [True] * len(ALLOCATORS)


def test_a_missing_file_names_its_command_and_the_others_are_drawn(
    results: Path, tmp_path: Path
) -> None:
    (results / "scaling.csv").unlink()
    (results / "core_runs.csv").unlink()
    done = plot(results, tmp_path / "images")
    assert done.exit_code == 0
    assert "scaling: no scaling.csv in results/; it is made by: bench/run suite" in done.output
    assert "rss_comparison: no core_runs.csv in results/; it is made by: bench/run core" in (
        done.output
    )
    assert (tmp_path / "images" / "fragmentation.png").exists()
    assert not (tmp_path / "images" / "scaling.png").exists()


def test_allocators_that_tell_no_slabs_leave_that_chart_out(results: Path, tmp_path: Path) -> None:
    put_rows(results / "rss_churn.csv", ["glibc,0,1.5,,,"])
    assert "tells its counts of slabs" in plot(results, tmp_path / "images").output


def test_counts_of_slabs_that_nobody_tells_have_no_line(results: Path) -> None:
    rows = [f"{OURS},0,1.5,10,0,", f"{OURS},10,1.5,12,2,", "glibc,0,1.5,,,", "glibc,10,1.5,,,"]
    for file in ("rss_churn.csv", "rss_churn_oldest.csv"):
        put_rows(results / file, rows)
    words = words_of(plot_bench.slab_lifecycle(results)).splitlines()
    assert [name in words for name in plot_bench.SLABS.values()] == [True, True, False]
    assert [word.split(" of ")[0] for word in words if "tenth" in word] == [
        f"{OURS}: a random tenth",
        f"{OURS}: the oldest tenth",
    ]


def test_nothing_to_draw_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = plot(tmp_path / "empty", tmp_path / "images")
    assert done.exit_code == 1
    assert "0 of" in done.output


@pytest.mark.parametrize("arguments", [["--input", "nowhere"], ["--nonsense"]])
def test_bad_arguments_end_with_status_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(plot_bench.main, arguments).exit_code == 2
