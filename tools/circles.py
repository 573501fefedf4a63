"""Who uses whom among the project's files, in C, Rust and TypeScript, and the circles in that.

A node is a unit that a reader takes as one: in C a header with its source, in Rust a module, in
TypeScript a file. Parts that only tests compile are left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import NamedTuple


class Place(NamedTuple):
    """The line, counted from 1, where one node names another."""

    path: PurePosixPath
    line: int


# From node to node, with the first place where it says so.
Graph = dict[str, dict[str, Place]]
Texts = Mapping[PurePosixPath, tuple[str, ...]]

C_ROOT, C_PUBLIC = PurePosixPath("src"), PurePosixPath("include")
# One contract, another file behind it.
C_NODES = {"src/os/os_linux": "src/os/os"}
C_INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')

RUST_ROOTS = tuple(
    PurePosixPath(crate, "src") for crate in ("tools/tslab", "rust/tslab", "rust/tslab-sys")
)
RUST_CHILD = re.compile(r"\s*(?:pub(?:\([^)]*\))? )?mod (\w+);")
RUST_COMMENT = re.compile(r"(?<!:)//.*")  # but not the rest of a URL
RUST_USE = re.compile(r"\buse ([^;]+);")
RUST_PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")

TYPESCRIPT_IMPORT = re.compile(r'\b(?:from|import)\b[\s(]*"(\.[^"]+)"')


def add_edge(graph: Graph, user: str, used: str, place: Place) -> None:
    if user != used:
        graph.setdefault(user, {}).setdefault(used, place)


def c_node(path: PurePosixPath) -> str:
    name = str(path.with_suffix(""))
    return C_NODES.get(name, name)


def c_graph(texts: Texts) -> Graph:
    """Sources of src/ and include/: an include names a folder's file, a neighbour or the public."""
    graph: Graph = {}
    for path, lines in texts.items():
        for number, line in enumerate(lines, 1):
            match = C_INCLUDE.match(line)
            if match is None:
                continue
            name = match[1]
            candidates = [folder / name for folder in (C_ROOT, path.parent, C_PUBLIC)]
            used = next((header for header in candidates if header in texts), None)
            if used is not None:
                add_edge(graph, c_node(path), c_node(used), Place(path, number))
    return graph


def folders_of(graph: Graph) -> Graph:
    """The same between the folders."""
    folders: Graph = {}
    for user, edges in graph.items():
        for used, place in edges.items():
            add_edge(folders, posixpath.dirname(user), posixpath.dirname(used), place)
    return folders


def without_tests(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Blanks what stands behind #[cfg(test)], as rustfmt lays it out."""
    kept: list[str] = []
    end: str | None = None  # of the item that is left out; "" until its first line has come
    for line in lines:
        if line.strip() == "#[cfg(test)]":
            end = ""
        elif end == "" and not line.lstrip().startswith("#["):
            indent = line[: len(line) - len(line.lstrip())]
            end = None if line.rstrip().endswith((";", "}", ",")) else indent + "}"
        elif end is None:
            kept.append(line)
            continue
        elif line == end:
            end = None
        kept.append("")
    return tuple(kept)


def rust_module(path: PurePosixPath) -> str:
    root = next(root for root in RUST_ROOTS if path.is_relative_to(root))
    parts = list(path.relative_to(root).with_suffix("").parts)
    if parts[-1] in ("mod", "main", "lib"):
        parts.pop()
    return "::".join(["crate", *parts])


def expand(tree: str) -> Iterator[str]:
    """The paths of one use: a::{b, c::d} is a::b and a::c::d."""
    depth, start = 0, 0
    for end, letter in enumerate(tree + ","):
        depth += (letter == "{") - (letter == "}")
        if letter != "," or depth != 0:
            continue
        head, brace, rest = tree[start:end].strip().partition("{")
        inner = expand(rest.rpartition("}")[0]) if brace else [""]
        yield from (head + name for name in inner)
        start = end + 1


def rust_paths(lines: tuple[str, ...], children: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Every path that leads out of a module or into a child of it, with its line."""
    text = "\n".join(RUST_COMMENT.sub("", line) for line in lines)
    inner = re.compile(rf"\b(?<!::)(?:{'|'.join(children) or '(?!)'})::\w+")
    for match in RUST_USE.finditer(text):
        for path in expand(match[1]):
            yield text.count("\n", 0, match.start()) + 1, path.partition(" as ")[0]
    for pattern in (RUST_PATH, inner):
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, match[0]


def rust_target(module: str, path: str, modules: set[str]) -> str:
    """The module of this crate that a path leads into, seen from another one."""
    base, names = module.split("::"), path.split("::")
    while names and names[0] in ("crate", "super", "self"):
        word = names.pop(0)
        base = {"crate": base[:1], "super": base[:-1], "self": base}[word]
    names = base + names
    while "::".join(names) not in modules:
        names.pop()
    return "::".join(names)


def rust_graph(texts: Texts) -> Graph:
    """The modules of one crate."""
    graph: Graph = {}
    shown = {path: without_tests(lines) for path, lines in texts.items()}
    declared = {
        rust_module(path): [m[1] for line in lines if (m := RUST_CHILD.match(line))]
        for path, lines in shown.items()
    }
    modules = {"crate"} | {f"{name}::{child}" for name in declared for child in declared[name]}
    for path, lines in shown.items():
        module = rust_module(path)
        if module not in modules:
            continue
        for line, name in rust_paths(lines, declared[module]):
            if name.split("::")[0] in ("crate", "super", "self", *declared[module]):
                add_edge(graph, module, rust_target(module, name, modules), Place(path, line))
    return graph


def typescript_graph(texts: Texts) -> Graph:
    """Imports of neighbours, written as the file or as what it compiles to."""
    graph: Graph = {}
    for path, lines in texts.items():
        for number, line in enumerate(lines, 1):
            for match in TYPESCRIPT_IMPORT.finditer(line):
                name = posixpath.normpath(posixpath.join(path.parent, match[1]))
                stem = name.removesuffix(".js")
                ends = [PurePosixPath(stem + end) for end in ("", ".ts", ".tsx")]
                used = next((end for end in ends if end in texts), None)
                if used is not None:
                    add_edge(graph, str(path), str(used), Place(path, number))
    return graph


def circle_in(graph: Graph) -> list[str]:
    """One circle: each node uses the next one, the last is the first again. Empty without any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
