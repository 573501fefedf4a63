"""The last lines of a run of all tables."""

import shutil
import subprocess
import sys
from pathlib import Path

import missed
import pytest
from click.testing import CliRunner, Result

SUMMARY = "name,ours,met\nfast rate,2,True\nslow rate,1,False\nshown rate,1,\n"


def lines(folder: Path, *tables: str) -> Result:
    return CliRunner().invoke(missed.main, [str(folder), *tables])


def test_each_table_named_says_what_it_missed(tmp_path: Path) -> None:
    (tmp_path / "core_summary.csv").write_text(SUMMARY)
    (tmp_path / "suite_summary.csv").write_text(SUMMARY.replace("False", "True"))
    (tmp_path / "epochs_summary.csv").write_text(SUMMARY)
    done = lines(tmp_path, "core", "suite", "observed")
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "core: missed 1 of 2 bars: slow rate",
        "suite: met all of 2 bars",
        "observed: no observed_summary.csv; bench/run observed makes it",
    ]


RUN = """#!/bin/sh
cat >"$3/$1_summary.csv" <<'END'
name,met
slow rate,False
END
case " $FAILING " in *" $1 "*) exit 1 ;; esac
"""
PYTHON = f"""#!/bin/sh
[ "$1" != bench/missed.py ] || exec {sys.executable} {Path(missed.__file__).parent.parent}/"$@"
"""


@pytest.mark.parametrize(
    ("failing", "status", "last"),
    [
        ("", 0, "observed: missed 1 of 1 bars: slow rate"),
        ("epochs suite", 1, "failed: epochs suite; each says why where it ends"),
    ],
)
def test_a_run_of_all_tables_ends_with_what_was_missed(
    tmp_path: Path, failing: str, status: int, last: str
) -> None:
    """The script with tables that miss a bar each, and fail where asked."""
    bench, output = tmp_path / "bench", tmp_path / "build" / "bench-quick"
    bench.mkdir()
    output.mkdir(parents=True)
    shutil.copy(Path(missed.__file__).parent / "run_all.sh", bench)
    for path, text in ((bench / "run", RUN), (tmp_path / ".venv" / "bin" / "python", PYTHON)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    done = subprocess.run(
        [bench / "run_all.sh", "--quick"], env={"PATH": "/usr/bin:/bin", "FAILING": failing},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last)
