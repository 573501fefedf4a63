"""A line for each table that was measured: missed.py DIR TABLE... names the bars that it missed."""

import csv
from pathlib import Path

import click
from show import console, print_missed

VERDICTS = {"True": True, "False": False, "": None}


def verdicts_of(path: Path) -> dict[str, bool | None]:
    with path.open(newline="") as file:
        return {row["name"]: VERDICTS[row["met"]] for row in csv.DictReader(file)}


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("tables", nargs=-1, required=True)
def main(folder: Path, tables: tuple[str, ...]) -> None:
    for table in tables:
        path = folder / f"{table}_summary.csv"
        if path.exists():
            print_missed(verdicts_of(path), table)
        else:
            console.print(f"{table}: no {path.name}; bench/run {table} makes it", style="red")


if __name__ == "__main__":
    main()
