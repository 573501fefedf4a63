"""Judges what was measured by other bars: judge.py TABLE... writes each table's summary anew from
its runs. Nothing is measured."""

from pathlib import Path

import click
from record import RecordError, load_runs
from results_folder import results_folder
from run import write_summary
from summary import Results, summarise
from tables import TABLES


@click.command()
@click.argument("tables", nargs=-1, required=True, type=click.Choice(list(TABLES)))
@results_folder
def main(tables: tuple[str, ...], folder: Path) -> None:
    for table in tables:
        try:
            results = Results(load_runs(folder / f"{table}_runs.csv"))
            rows = summarise(results, TABLES[table])
            write_summary(folder / f"{table}_summary.csv", rows)
        except (RecordError, OSError) as error:
            raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
