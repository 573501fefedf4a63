"""Files that scripts write: whole ones, and documents of which they write a part between marks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def update(path: Path, wanted: str, *, only_check: bool) -> int:
    """Writes a file, or says if it is another one. Returns an exit status."""
    if not only_check:
        path.write_text(wanted)
    elif not path.exists() or path.read_text() != wanted:
        print(f"{path.relative_to(ROOT)} is out of date; run: make format")
        return 1
    return 0


@dataclass(frozen=True)
class Document:
    path: Path
    begin: str
    end: str

    def with_content(self, document: str, content: str) -> str:
        """The document with the content between its marks."""
        before, begin, rest = document.partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not begin or not end:
            raise ValueError(
                f"{self.path} lacks the lines {self.begin.strip()} and {self.end.strip()}"
            )
        return f"{before}{self.begin}\n{content}\n{self.end}{after}"

    def update(self, content: str, *, only_check: bool) -> int:
        """The same, of the content between its marks."""
        wanted = self.with_content(self.path.read_text(), content)
        return update(self.path, wanted, only_check=only_check)
