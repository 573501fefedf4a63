"""Each rule of lint.py against a tree that breaks it and one that keeps it."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import lint
import pytest

ATOMIC_HEADER = "#define tsl_load_acquire(p) p\n#define tsl_store_release(p, v) p\n"


def tree_of(**files: str) -> lint.Tree:
    """A tree from texts: the name src__base__x_c stands for src/base/x.c."""
    sources = []
    for name, text in files.items():
        stem, _, suffix = name.replace("__", "/").rpartition("_")
        path = PurePosixPath(f"{stem}.{suffix}".replace("memory_model", "memory-model"))
        sources.append(lint.Source(path, tuple(text.splitlines())))
    return lint.Tree(tuple(sources))


def messages(rule: lint.Rule, tree: lint.Tree) -> list[str]:
    return [str(finding) for finding in rule(tree)]


@pytest.mark.parametrize(
    "line",
    ['#include "os/os.h"', '#include "tslab.h"', '#include "own.h"', "#include <stdlib.h>"],
)
def test_layers_allow_own_and_lower(line: str) -> None:
    tree = tree_of(src__memory__x_c=line, src__memory__own_h="", include__tslab_h="")
    assert messages(lint.check_layers, tree) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('#include "slab/slab.h"', 'memory may not include "slab/slab.h"'),
        ('#include "../os/os.h"', '"../os/os.h" is in no layer'),
        ('#include "nowhere.h"', '"nowhere.h" is in no layer'),
    ],
)
def test_layers_refuse_higher_and_unknown(line: str, complaint: str) -> None:
    tree = tree_of(src__memory__x_c=f"\n{line}")
    assert messages(lint.check_layers, tree) == [f"src/memory/x.c:2: {complaint}"]


def test_public_headers_include_no_layer() -> None:
    tree = tree_of(include__tslab_h='#include "base/bits.h"')
    assert len(messages(lint.check_layers, tree)) == 1


def test_conditionals_stay_below() -> None:
    assert messages(lint.check_conditionals, tree_of(src__os__x_c="#ifdef __linux__")) == []
    assert messages(lint.check_conditionals, tree_of(test__unit__x_c="#if 1")) == []
    assert len(messages(lint.check_conditionals, tree_of(src__slab__x_c="  # if 1"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "tsl_load_acquire(&x);  // pairs: hand-over",
        "// The owner has left.\n// pairs: hand-over, exit\ntsl_store_release(&x, 1);",
        "tsl_segment_release(segment);",
    ],
)
def test_atomics_with_partner(text: str) -> None:
    tree = tree_of(src__base__atomic_h=ATOMIC_HEADER, src__slab__x_c=text)
    assert messages(lint.check_atomics, tree) == []


@pytest.mark.parametrize(
    "text",
    [
        "tsl_load_acquire(&x);",
        "// pairs: hand-over\n\ntsl_store_release(&x, 1);",
        "__atomic_load_n(&x, 0);",
        "#include <stdatomic.h>",
    ],
)
def test_atomics_without_partner_or_past_the_door(text: str) -> None:
    tree = tree_of(src__base__atomic_h=ATOMIC_HEADER, src__slab__x_c=text)
    assert len(messages(lint.check_atomics, tree)) == 1


def test_labels_with_both_sides_and_a_paragraph() -> None:
    tree = tree_of(
        src__slab__x_c="tsl_store_release(&x, 1);  // pairs: hand-over",
        src__slab__y_c="// pairs: hand-over\n// Not before it.\ntsl_load_acquire(&x);",
        docs__memory_model_md="## `hand-over`",
    )
    assert messages(lint.check_labels, tree) == []
    assert messages(lint.check_sides, tree) == []


def test_a_label_is_released_and_acquired() -> None:
    for missing, there in (("acquired", "store_release"), ("released", "load_acquire")):
        line = f"tsl_{there}(&x);  // pairs: hand-over\n"
        tree = tree_of(src__slab__x_c=2 * line, docs__memory_model_md="## `hand-over`")
        complaint = f"label hand-over is {missing} by nobody"
        assert messages(lint.check_sides, tree) == [f"src/slab/x.c:2: {complaint}"]


def test_a_fence_orders_both_ways() -> None:
    line = "tsl_fence_seq_cst();  // pairs: hand-over\n"
    assert messages(lint.check_sides, tree_of(src__slab__x_c=2 * line)) == []


@pytest.mark.parametrize(
    "text",
    [
        "tsl_sub_relaxed(&x, 1);  // pairs: hand-over",
        "// pairs: hand-over\nwhile (!tsl_cas_relaxed(&x, &y, 1)) continue;",
    ],
)
def test_what_pairs_is_not_relaxed(text: str) -> None:
    tree = tree_of(src__base__atomic_h=ATOMIC_HEADER, src__slab__x_c=text)
    assert len(messages(lint.check_atomics, tree)) == 1


def test_labels_with_one_side_or_no_paragraph_or_no_use() -> None:
    tree = tree_of(
        src__slab__x_c="// pairs: lonely\n// pairs: untold\n// pairs: untold",
        docs__memory_model_md="## `lonely`\n## `stale`",
    )
    assert messages(lint.check_labels, tree) == [
        "src/slab/x.c:1: label lonely has no other side",
        "src/slab/x.c:3: label untold has no paragraph in docs/memory-model.md",
        "docs/memory-model.md:2: label stale is used nowhere",
    ]


def test_sizes_of_lines_and_files() -> None:
    assert messages(lint.check_sizes, tree_of(src__base__x_c="x" * 100 + "\n" * 700)) == []
    assert messages(lint.check_sizes, tree_of(docs__x_md="x" * 200)) == []
    assert len(messages(lint.check_sizes, tree_of(src__base__x_c="x" * 101))) == 1
    assert len(messages(lint.check_sizes, tree_of(src__base__x_c="\n" * 701))) == 1


def function_of(lines: int) -> str:
    return "static int f(int a,\n             int b) {\n" + "  a++;\n" * (lines - 3) + "}\n"


@pytest.mark.parametrize(
    "text",
    [
        function_of(50),
        function_of(50) * 2,
        "// long: a table in disguise\n" + function_of(51),
        "struct s {\n" + "  int x;\n" * 60 + "};\n",
    ],
)
def test_functions_that_fit(text: str) -> None:
    assert messages(lint.check_functions, tree_of(src__base__x_c=text)) == []


def test_functions_that_do_not_fit() -> None:
    tree = tree_of(src__base__x_c="int y;\n\n" + function_of(51))
    complaint = "function of 51 lines: split it or say why (// long: reason)"
    assert messages(lint.check_functions, tree) == [f"src/base/x.c:3: {complaint}"]


@pytest.mark.parametrize("word", ["crates" + ".io", "see /ho" + "me/me/x", "FIX" + "ME later"])
def test_forbidden_words(word: str) -> None:
    assert len(messages(lint.check_words, tree_of(docs__x_md=word))) == 1


def test_allowed_words() -> None:
    text = "the home page, $PREFIX/home/, a crate, the root of the tree"
    assert messages(lint.check_words, tree_of(docs__x_md=text)) == []
    assert messages(lint.check_words, tree_of(bench__Cargo_lock="crates" + ".io")) == []


def test_unit_tests_mirror_sources() -> None:
    with_tests = tree_of(
        src__os__a_c="", test__unit__a_test_c="", src__slab__b_c="", test__unit__b_fake_test_c=""
    )
    assert messages(lint.check_unit_tests, with_tests) == []
    assert messages(lint.check_unit_tests, tree_of(src__override__c_c="")) == []
    assert len(messages(lint.check_unit_tests, tree_of(src__os__a_c=""))) == 1


def test_the_tree_is_what_git_would_take(tmp_path: Path) -> None:
    for name, content in {"a.c": b"int x;\n", "b.png": b"\xff\xfe", "c.o": b""}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / ".gitignore").write_text("*.o\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    paths = [str(source.path) for source in lint.read_tree(tmp_path).sources]
    assert paths == [".gitignore", "a.c"]


@pytest.mark.parametrize(
    "text",
    [
        "def test_x() -> None:\n    assert f()",
        "def test_x() -> None:\n    with pytest.raises(ValueError):\n        f()",
        "def f() -> None:\n    g()",
    ],
)
def test_python_tests_that_assert(text: str) -> None:
    assert messages(lint.check_python_tests, tree_of(tools__test_x_py=text)) == []


def test_python_tests_that_do_not() -> None:
    tree = tree_of(
        tools__test_x_py="def test_x() -> None:\n    f()", tools__y_py="def test_y(): f()"
    )
    assert messages(lint.check_python_tests, tree) == ["tools/test_x.py:1: test_x asserts nothing"]
