"""Documents of which a part, between two marks, is written by a script."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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
        """Writes the content, or says if it is another one. Returns an exit status."""
        document = self.path.read_text()
        wanted = self.with_content(document, content)
        if not only_check:
            self.path.write_text(wanted)
        elif document != wanted:
            print(f"{self.path.relative_to(ROOT)} is out of date; run: make format")
            return 1
        return 0
