import resource
from pathlib import Path

import measure
import pytest
from backing import MIB, back
from measure import RunError
from peers import Allocator
from work import CORE, Work


def touched_mib() -> float:
    """The most that this process held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def test_all_of_it_is_touched_and_goes_back() -> None:
    back(200)
    assert touched_mib() >= 200
    assert int(Path("/proc/self/statm").read_text().split()[1]) * 4096 < 200 * MIB


@pytest.mark.parametrize("mib", [0, 64])
def test_a_run_begins_behind_it(mib: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def started(*_arguments: object) -> None:
        order.append("started")
        raise RunError("enough")

    monkeypatch.setattr(measure, "back", lambda wanted: order.append(f"backed {wanted}"))
    monkeypatch.setattr(measure, "start", started)
    work = Work("large", ("true",), ("true",), (), "shapes", backed_mib=mib)
    with pytest.raises(RunError):
        measure.measure(tmp_path, 0, work, Allocator("glibc", None))
    assert order == ([f"backed {mib}"] if mib else []) + ["started"]


def test_glances_do_without() -> None:
    (large,) = (work for work in CORE if work.name == "large")
    assert large.backed_mib >= 2 * 461
    assert large.hurried().backed_mib == 0
