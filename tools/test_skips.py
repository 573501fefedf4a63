"""Skipped tests, and which of them are failures."""

from __future__ import annotations

from pathlib import Path

import pytest
import skips

RESULTS = """<testsuite name="x">
<testcase name="a" status="run"><system-out>skipped: by its own words only</system-out></testcase>
<testcase name="b" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>first
skipped: only root can do this
</system-out></testcase>
<testcase name="c" status="notrun"><skipped/><system-out/></testcase>
</testsuite>"""


def test_skips_and_their_reasons() -> None:
    assert list(skips.skips_in("musl", RESULTS)) == [
        skips.Skip("musl", "b", "only root can do this"),
        skips.Skip("musl", "c", "it gives no reason"),
    ]


@pytest.mark.parametrize(("root", "complaint"), [(True, "it could run here"), (False, None)])
def test_a_skip_fails_where_the_test_could_run(
    monkeypatch: pytest.MonkeyPatch, root: bool, complaint: str | None
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
    assert skips.Skip("release", "b", "only root can do this").complaint() == complaint


def test_an_unknown_reason_fails() -> None:
    complaint = skips.Skip("release", "x", "fails without the library too:").complaint()
    assert complaint == "tools/skips.py does not know this reason"


def test_telling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(skips, "FOLDER", tmp_path / "skips")
    skips.forget()
    assert skips.tell() == 1, "no results at all"
    (tmp_path / "skips/release.xml").write_text("<testsuite/>")
    assert skips.tell() == 0
    (tmp_path / "skips/musl.xml").write_text(RESULTS)
    assert skips.tell() == 1
    skips.forget()
    assert not list((tmp_path / "skips").iterdir())
