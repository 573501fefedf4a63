"""The project's own rules: layers, circles, labels of atomics, sizes, words.

Run without arguments: prints one finding a line and fails when there is any. A rule is a function
from the tree of sources to findings; RULES at the end lists them all.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import circles

# A file of one layer may include its own layer and those before it.
LAYERS = (
    "include",
    "base",
    "os",
    "memory",
    "slab",
    "state",
    "tell",
    "heap",
    "upkeep",
    "epoch",
    "observe",
    "alloc",
    "override",
)

MOST_COLUMNS = 100
MOST_LINES_OF_FILE = 700
MOST_LINES_OF_FUNCTION = 50

CONDITIONALS_ALLOWED = ("include/", "src/base/", "src/os/")
ATOMIC_HEADER = PurePosixPath("src/base/atomic.h")
LOCK_HEADER = PurePosixPath("src/base/lock.h")
ONE_FILE = PurePosixPath("src/all.c")
MEMORY_MODEL = PurePosixPath("docs/memory-model.md")

C_SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
TYPESCRIPT_SUFFIXES = {".ts", ".tsx"}
MEASURED_SUFFIXES = C_SUFFIXES | {".py", ".sh", ".cmake", ".rs"}
MEASURED_NAMES = {"CMakeLists.txt", "Makefile"}
GENERATED_SUFFIX = ".lock"
LOCKS = {"package-lock.json"}  # of others' packages

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
CONDITIONAL = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif)\b")
RAW_ATOMIC = re.compile(r"\b__atomic_\w+|\b__sync_\w+|\b__ATOMIC_\w+|<stdatomic\.h>")
ORDERED_NAME = re.compile(r"\b(tsl_\w+_(?:acquire|release|acq_rel|seq_cst)|tsl_\w*fence\w*)\(")
RELAXED_NAME = re.compile(r"\btsl_\w+_relaxed\(")
ACQUIRING = re.compile(r"_(?:acquire|acq_rel)\(|fence\w*\(")
RELEASING = re.compile(r"_(?:release|acq_rel)\(|fence\w*\(")
PAIRS = re.compile(r"//.*\bpairs: ([a-z0-9-]+(?:, [a-z0-9-]+)*)")
LABEL_HEADING = re.compile(r"#+ `([a-z0-9-]+)`")
RANK = re.compile(r"^  (TSL_RANK_[A-Z]+),")
RANK_ROW = re.compile(r"^\| `(TSL_RANK_[A-Z]+)` \|")
INVARIANT = re.compile(r"//  ([A-Z]{1,2}[1-9])  \S")
CITATION = re.compile(r"\b[A-Z]{1,2}[1-9]\b")
LICENCE = "MIT OR Apache-2.0"
LICENCE_LINE = re.compile(rf"(?://|/\*) SPDX-License-Identifier: {LICENCE}(?: \*/)?")
LICENCE_SAID = re.compile(r'^\s*"?(?:SPDX-License-Identifier|license)"?\s*[:=]\s*"([^"]+)"')
LONG_REASON = re.compile(r"\s*// long: \S")

# Each pattern is written so that it does not match its own source.
FORBIDDEN = (
    (re.compile(r"pypi\.org|pythonhosted\.org|crates\.io|npmjs\.org|debian\.org"), "registry host"),
    (re.compile(r"(?<![\w.$}])/(?:work|root|home)/"), "path of one machine"),
    (re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X)\b"), "unfinished work belongs in an issue"),
)


@dataclass(frozen=True)
class Finding:
    """A broken rule. Lines count from 1."""

    path: PurePosixPath
    line: int
    message: str

    def but(self, complaint: str) -> Finding:
        return Finding(self.path, self.line, f"{self.message} {complaint}")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Source:
    """One text file, its path relative to the root of the project."""

    path: PurePosixPath
    lines: tuple[str, ...]

    @property
    def is_c(self) -> bool:
        return self.path.suffix in C_SUFFIXES

    @property
    def layer(self) -> str | None:
        parts = self.path.parts
        name = parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]
        return name if name in LAYERS else None

    @property
    def is_measured(self) -> bool:
        has_suffix = self.path.suffix in MEASURED_SUFFIXES or self.path.name in MEASURED_NAMES
        return has_suffix or (bool(self.lines) and self.lines[0].startswith("#!"))

    def finding(self, index: int, message: str) -> Finding:
        return Finding(self.path, index + 1, message)

    def matches(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Every match with the index of its line."""
        for index, line in enumerate(self.lines):
            for match in pattern.finditer(line):
                yield index, match

    def comment_above(self, index: int) -> Iterator[str]:
        """The comment lines that stand directly above a line."""
        for line in reversed(self.lines[:index]):
            if not line.lstrip().startswith("//"):
                return
            yield line


@dataclass(frozen=True)
class Tree:
    """All text files of the project."""

    sources: tuple[Source, ...]

    @cached_property
    def by_path(self) -> dict[PurePosixPath, Source]:
        return {source.path: source for source in self.sources}

    def layered(self) -> Iterator[tuple[Source, str]]:
        for source in self.sources:
            if source.is_c and source.layer is not None:
                yield source, source.layer


Rule = Callable[[Tree], Iterator[Finding]]


def included_layer(tree: Tree, source: Source, name: str) -> str | None:
    """The layer of the header that an include names: by folder, beside the file, or public."""
    folder, _, _ = name.rpartition("/")
    if folder in LAYERS:
        return folder
    if not folder and source.path.with_name(name) in tree.by_path:
        return source.layer
    if PurePosixPath("include", name) in tree.by_path:
        return "include"
    return None


def check_layers(tree: Tree) -> Iterator[Finding]:
    """A file includes nothing from the layers above its own."""
    for source, layer in tree.layered():
        for index, match in source.matches(INCLUDE):
            name = match[1]
            target = included_layer(tree, source, name)
            if target is None:
                yield source.finding(index, f'"{name}" is in no layer')
            elif LAYERS.index(target) > LAYERS.index(layer):
                yield source.finding(index, f'{layer} may not include "{name}"')


def circle_findings(graph: circles.Graph) -> Iterator[Finding]:
    circle = circles.circle_in(graph)
    if circle:
        place = graph[circle[0]][circle[1]]
        yield Finding(place.path, place.line, f"a circle: {' uses '.join(circle)}")


def check_circles_of_c(tree: Tree) -> Iterator[Finding]:
    """Neither files nor folders use each other in a circle; a folder that may, does."""
    files = circles.c_graph({source.path: source.lines for source, _ in tree.layered()})
    yield from circle_findings(circles.folders_of(files))
    yield from circle_findings(files)


def check_circles_of_rust(tree: Tree) -> Iterator[Finding]:
    """Modules do not use each other in a circle."""
    sources = {s.path: s.lines for s in tree.sources if s.path.suffix == ".rs"}
    for root in circles.RUST_ROOTS:
        inside = {path: sources[path] for path in sources if path.is_relative_to(root)}
        yield from circle_findings(circles.rust_graph(inside))


def check_circles_of_typescript(tree: Tree) -> Iterator[Finding]:
    """Files do not import each other in a circle."""
    sources = {s.path: s.lines for s in tree.sources if s.path.suffix in TYPESCRIPT_SUFFIXES}
    yield from circle_findings(circles.typescript_graph(sources))


def check_conditionals(tree: Tree) -> Iterator[Finding]:
    """Conditional compilation stays where the compiler and the system are met."""
    for source, _ in tree.layered():
        if str(source.path).startswith(CONDITIONALS_ALLOWED):
            continue
        for index, match in source.matches(CONDITIONAL):
            yield source.finding(index, f"{match[0].strip()} outside src/base and src/os")


def labels_in(line: str) -> list[str]:
    match = PAIRS.search(line)
    return match[1].split(", ") if match else []


def labels_on(source: Source, index: int) -> list[str]:
    """The partners that a line names, in its own comment or in the one above it."""
    comments = [source.lines[index], *source.comment_above(index)]
    return [label for line in comments for label in labels_in(line)]


def check_atomics(tree: Tree) -> Iterator[Finding]:
    """Atomics go through one header, and an ordered one names its partner."""
    for source, _ in tree.layered():
        if source.path == ATOMIC_HEADER:
            continue
        for index, match in source.matches(RAW_ATOMIC):
            yield source.finding(index, f"{match[0]} outside {ATOMIC_HEADER}")
        for index, match in source.matches(ORDERED_NAME):
            if is_atomic(tree, match[1]) and not labels_on(source, index):
                yield source.finding(index, f"{match[1]} names no partner (// pairs: x)")
        for index, match in source.matches(RELAXED_NAME):
            for label in labels_on(source, index):
                yield source.finding(index, f"{match[0]}) orders nothing, yet pairs with {label}")


def is_atomic(tree: Tree, name: str) -> bool:
    """Whether the one header defines it: `release` and `acquire` are also verbs of other layers."""
    header = tree.by_path.get(ATOMIC_HEADER)
    return header is not None and any(f"{name}(" in line for line in header.lines)


def check_labels(tree: Tree) -> Iterator[Finding]:
    """Every label has two sides and a paragraph, every paragraph a label."""
    uses = list(label_uses(tree))
    counts = Counter(label for label, _ in uses)
    paragraphs = dict(label_paragraphs(tree))
    for label, use in dict(uses).items():
        if counts[label] < 2:
            yield use.but("has no other side")
        if label not in paragraphs:
            yield use.but(f"has no paragraph in {MEMORY_MODEL}")
    for label, paragraph in paragraphs.items():
        if label not in counts:
            yield paragraph.but("is used nowhere")


def check_sides(tree: Tree) -> Iterator[Finding]:
    """Of a label's operations one releases and one acquires; a fence does either."""
    operations: dict[str, str] = {}
    for label, use in label_uses(tree):
        operations[label] = operations.get(label, "") + operation_at(tree, use)
    uses = dict(label_uses(tree))
    for label, text in operations.items():
        if not ACQUIRING.search(text):
            yield uses[label].but("is acquired by nobody")
        if not RELEASING.search(text):
            yield uses[label].but("is released by nobody")


def operation_at(tree: Tree, use: Finding) -> str:
    """The code that a label stands beside or above."""
    lines = tree.by_path[use.path].lines
    for line in lines[use.line - 1 :]:
        code = line.partition("//")[0]
        if code.strip():
            return code
    return ""


def label_uses(tree: Tree) -> Iterator[tuple[str, Finding]]:
    for source, _ in tree.layered():
        if source.path == ATOMIC_HEADER:
            continue
        for index, line in enumerate(source.lines):
            for label in labels_in(line):
                yield label, source.finding(index, f"label {label}")


def label_paragraphs(tree: Tree) -> Iterator[tuple[str, Finding]]:
    document = tree.by_path.get(MEMORY_MODEL)
    if document is not None:
        for index, match in document.matches(LABEL_HEADING):
            yield match[1], document.finding(index, f"label {match[1]}")


def check_ranks(tree: Tree) -> Iterator[Finding]:
    """The memory model lists the ranks of locks in their order, the outermost first."""
    ranks = [
        (match[1], source.finding(index, match[1]))
        for source in tree.sources
        if source.path == LOCK_HEADER
        for index, match in source.matches(RANK)
    ]
    document = tree.by_path.get(MEMORY_MODEL)
    rows = [match[1] for _, match in document.matches(RANK_ROW)] if document else []
    for name, finding in ranks:
        if name not in rows:
            yield finding.but(f"is not listed in {MEMORY_MODEL}")
    names = [name for name, _ in reversed(ranks)]
    if document and sorted(names) == sorted(rows) and names != rows:
        yield document.finding(0, "lists the ranks in another order than the code")
    for row in rows:
        if document and row not in names:
            yield document.finding(0, f"{row} is no rank in {LOCK_HEADER}")


def preface(source: Source) -> int:
    """How many lines the comment has that a file opens with."""
    return next((i for i, line in enumerate(source.lines) if not line.startswith("//")), 0)


def invariants(tree: Tree) -> Iterator[tuple[str, Finding]]:
    for source, _ in tree.layered():
        for index, line in enumerate(source.lines[: preface(source)]):
            match = INVARIANT.match(line)
            if match:
                yield match[1], source.finding(index, f"invariant {match[1]}")


def citations(tree: Tree) -> Iterator[tuple[str, Finding]]:
    """Where code names an invariant: not in the comments that files open with."""
    for source, _ in tree.layered():
        for index in range(preface(source), len(source.lines)):
            comment = source.lines[index].partition("//")[2]
            for match in CITATION.finditer(comment):
                yield match[0], source.finding(index, match[0])


def check_invariants(tree: Tree) -> Iterator[Finding]:
    """An invariant's name is one's own, and stands beside code that keeps it."""
    kept = dict(invariants(tree))
    cited = dict(citations(tree))
    for name, finding in invariants(tree):
        if finding != kept[name]:
            yield finding.but(f"has the name of another one ({kept[name].path})")
        if name not in cited:
            yield finding.but("is named nowhere in the code")
    for name, finding in citations(tree):
        if name not in kept:
            yield finding.but("is no invariant")


def check_sizes(tree: Tree) -> Iterator[Finding]:
    """Lines fit a window, files a sitting."""
    for source in tree.sources:
        if not source.is_measured:
            continue
        for index, line in enumerate(source.lines):
            if len(line) > MOST_COLUMNS:
                yield source.finding(index, f"{len(line)} columns, {MOST_COLUMNS} allowed")
        if len(source.lines) > MOST_LINES_OF_FILE:
            yield source.finding(len(source.lines) - 1, f"file over {MOST_LINES_OF_FILE} lines")


def functions(source: Source) -> Iterator[tuple[int, int]]:
    """First and last line of each C function, as clang-format lays them out: both in column 1."""
    first = 0
    for index, line in enumerate(source.lines):
        if line == "}" and any("(" in text for text in source.lines[first:index]):
            yield first, index
        elif re.match(r"[A-Za-z_](?!\w*:$)", line):
            first = index


def check_functions(tree: Tree) -> Iterator[Finding]:
    """A function fits in the head, or says why it cannot."""
    for source in tree.sources:
        if not source.is_c:
            continue
        for first, last in functions(source):
            lines = last - first + 1
            reasoned = any(LONG_REASON.match(line) for line in source.comment_above(first))
            if lines > MOST_LINES_OF_FUNCTION and not reasoned:
                message = f"function of {lines} lines: split it or say why (// long: reason)"
                yield source.finding(first, message)


def check_words(tree: Tree) -> Iterator[Finding]:
    """Nothing that ties the text to a machine, a registry or an unfinished day."""
    for source in tree.sources:
        if source.path.suffix == GENERATED_SUFFIX:
            continue
        for pattern, reason in FORBIDDEN:
            for index, match in source.matches(pattern):
                yield source.finding(index, f"{match[0]!r}: {reason}")


def is_included_by_programs(source: Source) -> bool:
    """What leaves the repository without REUSE.toml."""
    return source.is_c and (source.layer == "include" or source.path == ONE_FILE)


def check_licence(tree: Tree) -> Iterator[Finding]:
    """Whoever names the licence names the same one, and what programs include names it first."""
    for source in tree.sources:
        if source.path.name in LOCKS:
            continue
        for index, match in source.matches(LICENCE_SAID):
            if match[1] != LICENCE:
                yield source.finding(index, f"says {match[1]}, and not {LICENCE}")
        first = source.lines[0] if source.lines else ""
        if is_included_by_programs(source) and not LICENCE_LINE.fullmatch(first):
            yield source.finding(0, f"is no SPDX-License-Identifier: {LICENCE}")


def check_unit_tests(tree: Tree) -> Iterator[Finding]:
    """The unit tests mirror the sources."""
    for source, layer in tree.layered():
        if source.path.suffix != ".c" or layer in ("include", "override"):
            continue
        names = [f"test/unit/{source.path.stem}{end}.c" for end in ("_test", "_fake_test")]
        if not any(PurePosixPath(name) in tree.by_path for name in names):
            yield source.finding(0, f"has neither {names[0]} nor {names[1]}")


def asserts(function: ast.FunctionDef) -> bool:
    """Whether a test can fail by itself: an assert, or a call of pytest's (raises) or a check_*."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call) and re.match(
            r"pytest\.raises|check_", ast.unparse(node.func)
        ):
            return True
    return False


def check_python_tests(tree: Tree) -> Iterator[Finding]:
    """A test asserts something."""
    for source in tree.sources:
        if source.path.suffix != ".py" or not source.path.name.startswith("test_"):
            continue
        for node in ast.walk(ast.parse("\n".join(source.lines))):
            is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            if isinstance(node, ast.FunctionDef) and is_test and not asserts(node):
                yield source.finding(node.lineno - 1, f"{node.name} asserts nothing")


RULES: tuple[Rule, ...] = (
    check_layers,
    check_circles_of_c,
    check_circles_of_rust,
    check_circles_of_typescript,
    check_conditionals,
    check_atomics,
    check_labels,
    check_sides,
    check_ranks,
    check_invariants,
    check_sizes,
    check_functions,
    check_words,
    check_licence,
    check_unit_tests,
    check_python_tests,
)


def read_source(root: Path, name: str) -> Source | None:
    """The file's text, or None for what is deleted, no file, or binary."""
    path = root / name
    if not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    return Source(PurePosixPath(name), tuple(text.splitlines()))


def read_tree(root: Path) -> Tree:
    """All files that git knows or would take."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    found = (read_source(root, name) for name in sorted(set(listing.split("\0")) - {""}))
    return Tree(tuple(source for source in found if source is not None))


def main() -> int:
    tree = read_tree(Path(__file__).resolve().parent.parent)
    findings = [finding for rule in RULES for finding in rule(tree)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
