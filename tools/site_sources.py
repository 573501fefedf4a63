"""Hooks of the documentation site: what its pages link to outside of docs/ becomes a part of it.

A document is a page, a source file a page with its text, a folder its README or a list.
Each lies below source/ under its path in the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"\s*(```+|~~~+)")
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def lines_of(markdown: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is text, not code."""
    opened = ""
    for line in markdown.splitlines(keepends=True):
        fence = FENCE.match(line)
        if fence and not opened:
            opened = fence[1]
        elif opened and line.strip() == opened:
            opened = ""
        yield line, not opened


def document_of(target: Path) -> Path:
    """What is shown of a file or folder: a folder's README, if it has one."""
    readme = target / "README.md"
    return readme if readme.exists() else target


def place_of(target: Path) -> str:
    """Where something of the repository lies in the site."""
    shown = document_of(target)
    if shown.is_relative_to(DOCS) and shown.is_file():
        return shown.relative_to(DOCS).as_posix()
    name = shown.relative_to(ROOT).as_posix()
    return f"source/{name}" if name.endswith(".md") else f"source/{name}.md"


def links_of(markdown: str, folder: Path) -> Iterator[Path]:
    """What a document in a folder of the repository links to, if it is there."""
    for line, is_text in lines_of(markdown):
        if is_text:
            targets = ((folder / link).resolve() for link in LINK.findall(line))
            yield from (each for each in targets if each.exists() and each.is_relative_to(ROOT))


def content_of(target: Path) -> str:
    """The page of a file or folder."""
    shown = document_of(target)
    if shown.suffix == ".md":
        return shown.read_text()
    title = f"# {shown.relative_to(ROOT)}\n\n"
    if shown.is_dir():
        names = sorted(each.name for each in shown.iterdir() if each.name[0] not in "._")
        return title + "".join(f"- [{name}]({shown.name}/{name})\n" for name in names)
    language = shown.suffix.removeprefix(".") or "text"
    return f"{title}~~~~~~~~{language}\n{shown.read_text()}~~~~~~~~\n"


def folder_of(place: str) -> Path:
    """The folder of the repository that the links of a page are relative to."""
    path = ROOT / place.removeprefix("source/") if place.startswith("source/") else DOCS / place
    return path.parent


def relinked(markdown: str, place: str) -> str:
    """The text with links to where things lie in the site."""

    def moved(link: re.Match[str]) -> str:
        target = (folder_of(place) / link[1]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return link[1]
        if target.suffix == ".png" and target.is_relative_to(DOCS):
            return link[1]
        return os.path.relpath(place_of(target), Path(place).parent)

    return "".join(
        LINK.sub(moved, line) if is_text else line for line, is_text in lines_of(markdown)
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is linked to, and what that links to."""
    waiting = [DOCS / file.src_uri for file in files.documentation_pages()]
    while waiting:
        page = waiting.pop()
        markdown = content_of(page) if page.exists() else ""
        for target in links_of(markdown, page.parent):
            place = place_of(target)
            if place.startswith("source/") and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, content=content_of(target)))
                waiting.append(document_of(target))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    del config, files
    return relinked(markdown, page.file.src_uri)
