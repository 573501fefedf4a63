from pathlib import Path

import pytest
from marked import ROOT, Document

BEGIN = "<!-- begin -->\n"
END = "<!-- end -->\n"


def test_the_content_replaces_what_stood_between_the_marks() -> None:
    document = Document(Path("any"), BEGIN, END)
    once = document.with_content(f"# Any\n\n{BEGIN}old\n{END}\nMore.\n", "new")
    assert once == f"# Any\n\n{BEGIN}\nnew\n{END}\nMore.\n"
    assert document.with_content(once, "new") == once


def test_a_document_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the lines"):
        Document(Path("any"), BEGIN, END).with_content("nothing", "text")


def test_a_check_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marked.ROOT", tmp_path)
    document = Document(tmp_path / "any.md", BEGIN, END)
    document.path.write_text(BEGIN + END)
    assert document.update("new", only_check=True) == 1
    assert document.path.read_text() == BEGIN + END
    assert document.update("new", only_check=False) == 0
    assert document.update("new", only_check=True) == 0
    assert ROOT.joinpath("tools/marked.py").exists()
