"""Runs the servers of docs/recipes on each allocator, and writes the tables into the pages.

The figures lie in bench/results/recipes_runs.csv; --check compares the pages with them.
"""

import csv
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

import click
from environment import commit_of, environment
from peers import OURS, Allocator, all_allocators
from recipe import Recipe, RecipeError, measure, recipe_of
from results_page import MARKS, lines_of
from summary import interval

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "recipes"
RESULTS = ROOT / "bench" / "results"
NAMES = {"glibc": "glibc", "jemalloc-debian": "jemalloc, Debian's", OURS: "tslab"}
MEMORY = {"peak_kib": "peak", "loaded_kib": "after load", "idle_kib": "idle"}
HEADINGS = ("allocator", *(f"{name}, MiB" for name in MEMORY.values()), "throughput of tslab over")
NARROW = 0.1
IDLE_SECONDS = 10.0
ABOUT = ("time", "commit", "processor", "processors", "load_average_after", "kernel", "libc")

Run = dict[str, str]


def allocators() -> list[Allocator]:
    """In the order of the tables."""
    known = {one.name: one for one in all_allocators(ROOT / "build")}
    chosen = [known[name] for name in NAMES]
    missing = [one.name for one in chosen if not one.exists()]
    if missing:
        raise RecipeError(f"no library of {', '.join(missing)}; run: make recipes")
    return chosen


def library_of(allocator: Allocator) -> str:
    """The C library is preloaded, too, where a server brings its own malloc along."""
    return str(allocator.library or allocator.file)


def pages() -> list[Path]:
    return sorted(path for path in PAGES.glob("*.md") if path.stem != "index")


def run_one(recipe: Recipe, number: int, allocator: Allocator) -> Run:
    click.echo(f"  .. {recipe.name} on {allocator.name}, round {number}", err=True)
    outcome = asdict(measure(recipe, library_of(allocator), IDLE_SECONDS))
    told = {key: str(value) for key, value in outcome.items()}
    return {"recipe": recipe.name, "round": str(number), "allocator": allocator.name, **told}


def run_all(recipes: Sequence[Recipe], rounds: int) -> list[Run]:
    """The allocators take turns, and another one begins each round."""
    chosen, runs = allocators(), []
    for number in range(1, rounds + 1):
        first = number % len(chosen)
        for recipe in recipes:
            for allocator in chosen[first:] + chosen[:first]:
                runs.append(run_one(recipe, number, allocator))
    return runs


def values(runs: Sequence[Run], allocator: str, key: str) -> list[float]:
    """A figure of each round, in their order."""
    return [float(run[key]) for run in runs if run["allocator"] == allocator]


def throughput(runs: Sequence[Run], other: str) -> str:
    """Ours over the other's, where the rounds agree."""
    if other == OURS:
        return "-"
    pairs = zip(values(runs, OURS, "rate"), values(runs, other, "rate"), strict=True)
    ratios = [ours / theirs for ours, theirs in pairs]
    low, high = interval(ratios)
    if len(ratios) < 3 or high - low > NARROW:
        return f"rounds differ ({low:.2f} to {high:.2f})"
    return f"{median(ratios):.2f} ({low:.2f} to {high:.2f})"


def cells_of(runs: Sequence[Run], allocator: str) -> list[str]:
    memory = (median(values(runs, allocator, key)) / 1024 for key in MEMORY)
    return [NAMES[allocator], *(f"{mib:.1f}" for mib in memory), throughput(runs, allocator)]


def figures_of(runs: Sequence[Run], name: str) -> list[str]:
    """The table of a recipe."""
    own = [run for run in runs if run["recipe"] == name]
    if not own:
        raise RecipeError(f"no run of {name} in the results; run: make recipes")
    return lines_of(HEADINGS, [cells_of(own, allocator) for allocator in NAMES])


def about_lines(about: dict[str, object]) -> list[str]:
    rows = [(key.replace("_", " "), str(about[key])) for key in (*ABOUT, "rounds")]
    lines = lines_of(("what", "value"), rows)
    if float(str(about["load_average_after"])) <= 1.5 * float(str(about["processors"])):
        return lines
    return [*lines, "", "Other programs used the machine meanwhile: the figures are provisional."]


def with_figures(document: str, runs: Sequence[Run], about: dict[str, object]) -> str:
    """The page with its tables between their marks."""

    def lines(name: str) -> list[str]:
        return about_lines(about) if name == "about" else figures_of(runs, name)

    text, count = MARKS.subn(
        lambda mark: f"{mark[1]}\n{chr(10).join(lines(mark[2]))}\n\n{mark[3]}", document
    )
    if count != 1:
        raise RecipeError("a page must have the mark <!-- figures:NAME --> once")
    return text


def load(folder: Path) -> tuple[list[Run], dict[str, object]]:
    with (folder / "recipes_runs.csv").open(newline="") as file:
        return list(csv.DictReader(file)), json.loads(
            (folder / "recipes_environment.json").read_text()
        )


def save(folder: Path, runs: Sequence[Run], rounds: int, commit: str) -> None:
    with (folder / "recipes_runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(runs[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(runs)
    about = environment(ROOT / "build", rounds, commit, {})
    (folder / "recipes_environment.json").write_text(json.dumps(about, indent=2) + "\n")


def write_pages(folder: Path, *, only_check: bool) -> bool:
    """Whether all pages were as the results say."""
    runs, about = load(folder)
    right = True
    for path in (*pages(), PAGES / "index.md"):
        text = path.read_text()
        wanted = with_figures(text, runs, about)
        if text != wanted and only_check:
            click.echo(f"{path.name} is not what the results say; run: bench/recipes.py --tables")
        elif text != wanted:
            path.write_text(wanted)
        right = right and text == wanted
    return right


@click.command()
@click.argument("names", nargs=-1)
@click.option("--rounds", default=5, type=click.IntRange(1, 20), show_default=True)
@click.option("--check", is_flag=True, help="Run nothing; fail when a table is not the results'.")
@click.option("--tables", is_flag=True, help="Run nothing; write the tables from the results.")
@click.option("--try", "only_try", is_flag=True, help="Print the figures, and write nothing.")
def main(names: tuple[str, ...], rounds: int, check: bool, tables: bool, only_try: bool) -> None:
    """Runs all recipes, or with --try those NAMES."""
    try:
        recipes = [recipe_of(path) for path in pages()]
        unknown = set(names) - {recipe.name for recipe in recipes}
        if unknown or (names and not only_try):
            raise RecipeError("NAMES are pages of docs/recipes, and go with --try")
        if only_try:
            chosen = [recipe for recipe in recipes if not names or recipe.name in names]
            runs = run_all(chosen, rounds)
            for recipe in chosen:
                click.echo("\n".join([recipe.name, *figures_of(runs, recipe.name)]))
            return
        if not check and not tables:
            commit = commit_of(ROOT)  # of the sources as the runs begin
            save(RESULTS, run_all(recipes, rounds), rounds, commit)
        right = write_pages(RESULTS, only_check=check)
    except (RecipeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(os.EX_OK if right or not check else 1)


if __name__ == "__main__":
    main()
