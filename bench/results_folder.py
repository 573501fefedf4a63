"""The folder of what was measured, as an option of the programs that read it."""

from pathlib import Path

import click

results_folder = click.option(
    "--input",
    "folder",
    default=Path(__file__).resolve().parent / "results",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
