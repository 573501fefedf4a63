"""The recipes: what a page may show, what is read of a load, and that the tables are true."""

import os
from pathlib import Path

import pytest
import recipes
from click.testing import CliRunner
from recipe import RecipeError, listens, rate_of, recipe_of, resident_kib

SERVE = "$ A=1 LD_PRELOAD=build/lib/libtslab-preload.so server -x"
LOAD = "$ ab -n 5 http://127.0.0.1:7499/"


def block(title: str, *lines: str) -> str:
    return "\n".join([f'```console title="{title}"', *lines, "```\n"])


def page(folder: Path, *blocks: str) -> Path:
    path = folder / "one.md"
    path.write_text("\n".join(blocks))
    return path


def run(number: int, allocator: str, rate: float) -> recipes.Run:
    kib = {"peak_kib": "4096", "loaded_kib": "2048", "idle_kib": "1024"}
    return {"recipe": "r", "round": str(number), "allocator": allocator, "rate": str(rate), **kib}


def runs_of(rates: dict[str, list[float]]) -> list[recipes.Run]:
    return [run(n, name, rate) for name, found in rates.items() for n, rate in enumerate(found)]


def test_a_page_is_a_recipe(tmp_path: Path) -> None:
    recipe = recipe_of(page(tmp_path, block("Serve", SERVE), block("Load", LOAD, "output")))
    assert (recipe.name, recipe.port, recipe.load) == ("one", 7499, [LOAD[2:]])
    assert recipe.serve_on("/x/other.so") == "exec env A=1 LD_PRELOAD=/x/other.so server -x"


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ((block("Serve", "$ server"), block("Load", LOAD)), "must have one command"),
        ((block("Serve", SERVE, SERVE), block("Load", LOAD)), "must have one command"),
        ((block("Serve", SERVE),), "no command"),
        ((block("Serve", SERVE), block("Load", LOAD), block("Lode", LOAD)), "block Lode"),
    ],
)
def test_what_is_no_recipe(tmp_path: Path, blocks: tuple[str, ...], reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        recipe_of(page(tmp_path, *blocks))


@pytest.mark.parametrize(
    ("output", "rate"),
    [
        ("SET: rps=1.0\rSET: 12.5 requests per second, p50=1", 12.5),
        ("Requests per second:    34.50 [#/sec] (mean)", 34.5),
        ("tps = 56.500000 (without initial connection time)", 56.5),
    ],
)
def test_rates(output: str, rate: float) -> None:
    assert rate_of(output) == rate


@pytest.mark.parametrize("output", ["", "Requests per second: 9.0\nNon-2xx responses: 9"])
def test_a_load_that_failed_has_no_rate(output: str) -> None:
    with pytest.raises(RecipeError, match="tells no rate"):
        rate_of(output)


def test_resident_memory_grows_with_what_is_touched() -> None:
    before = resident_kib(os.getpid())
    touched = bytearray(b"x" * (32 << 20))
    assert resident_kib(os.getpid()) - before > 30 << 10
    assert touched[-1] == ord("x")


def test_nobody_listens_on_a_port_that_is_free() -> None:
    assert not listens(1)


def test_throughput_needs_rounds_that_agree() -> None:
    steady = {"tslab": [11.0, 22.0, 33.0], "glibc": [10.0, 20.0, 30.0]}
    noisy = {"tslab": [11.0, 22.0, 33.0], "glibc": [10.0, 10.0, 30.0]}
    assert recipes.throughput(runs_of(steady), "glibc") == "1.10 (1.10 to 1.10)"
    assert recipes.throughput(runs_of(noisy), "glibc") == "rounds differ (1.10 to 2.20)"


def test_one_round_tells_no_throughput() -> None:
    assert "differ" in recipes.throughput(runs_of({"tslab": [1.0], "glibc": [1.0]}), "glibc")


def test_memory_is_in_mib() -> None:
    cells = recipes.cells_of(runs_of({"tslab": [1.0]}), "tslab")
    assert cells == ["tslab", "4.0", "2.0", "1.0", "-"]


def test_a_page_without_a_mark_is_refused() -> None:
    with pytest.raises(RecipeError, match="once"):
        recipes.with_figures("# x\n", [], {})


def test_the_pages_say_what_the_results_say() -> None:
    done = CliRunner().invoke(recipes.main, ["--check"])
    assert done.exit_code == 0, done.output


def test_each_page_is_a_recipe_with_a_port_of_its_own() -> None:
    ports = [recipe_of(path).port for path in recipes.pages()]
    assert len(ports) == 6 == len(set(ports))
