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


def test_files_of_c_in_a_row() -> None:
    tree = tree_of(
        include__tslab_h="",
        src__os__os_h="",
        src__os__os_linux_c='#include "os/os.h"',
        src__os__clock_c='#include "os.h"\n#include "tslab.h"\n#include <stddef.h>',
        src__slab__a_h="",
        src__slab__a_c='#include "slab/a.h"\n#include "os/os.h"',
    )
    assert messages(lint.check_circles_of_c, tree) == []


@pytest.mark.parametrize("end", ["h", "c"])
def test_a_circle_of_files_of_c(end: str) -> None:
    files = {
        "src__slab__a_h": "",
        "src__slab__a_c": '#include "slab/a.h"\n#include "slab/b.h"',
        "src__slab__b_h": "",
        f"src__slab__b_{end}": '#include "slab/c.h"',
        "src__slab__c_h": '#include "a.h"',
    }
    assert messages(lint.check_circles_of_c, tree_of(**files)) == [
        "src/slab/a.c:2: a circle: src/slab/a uses src/slab/b uses src/slab/c uses src/slab/a"
    ]


def test_the_files_behind_one_contract_are_one() -> None:
    tree = tree_of(
        src__os__os_h="",
        src__os__os_linux_c='#include "os/clock.h"',
        src__os__clock_h='#include "os/os.h"',
    )
    assert len(messages(lint.check_circles_of_c, tree)) == 1


def test_a_circle_of_folders() -> None:
    tree = tree_of(
        src__slab__a_h='#include "epoch/b.h"',
        src__epoch__b_h="",
        src__epoch__c_h='#include "slab/d.h"',
        src__slab__d_h="",
    )
    [message] = messages(lint.check_circles_of_c, tree)
    assert message.split(": ", 1)[1] in (
        "a circle: src/slab uses src/epoch uses src/slab",
        "a circle: src/epoch uses src/slab uses src/epoch",
    )


def modules(**texts: str) -> lint.Tree:
    return tree_of(**{f"tools__tslab__src__{name}_rs": text for name, text in texts.items()})


@pytest.mark.parametrize(
    "text",
    [
        "use crate::b::X;",
        "use super::b;",
        "use super::{\n    b::{X, Y},\n    c,\n};",
        "pub(crate) use self::super::b::X as Z;",
        "fn f() { crate::b::g(); }",
        'fn f() { ("http://x", super::b::g()); }',
    ],
)
def test_a_circle_of_rust(text: str) -> None:
    tree = modules(main="mod a;\nmod b;\nmod c;", a=text, b="use crate::a::g;", c="")
    assert len(messages(lint.check_circles_of_rust, tree)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "// crate::b::X",
        "use std::b::X;",
        "use crate::c;",
        "#[cfg(test)]\nuse crate::b::X;",
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    use crate::b::X;\n}\nfn f() {}",
    ],
)
def test_modules_of_rust_in_a_row(text: str) -> None:
    tree = modules(main="mod a;\nmod b;\nmod c;", a=text, b="use crate::a::g;", c="")
    assert messages(lint.check_circles_of_rust, tree) == []


def test_each_crate_of_rust_is_looked_at() -> None:
    circle = {"a": "use crate::b::X;", "b": "use crate::a::g;", "lib": "mod a;\nmod b;"}
    names = {f"rust__tslab__src__{name}_rs": text for name, text in circle.items()}
    assert len(messages(lint.check_circles_of_rust, tree_of(**names))) == 1


def test_a_module_and_its_child() -> None:
    child = "use super::X;"
    tree = modules(main="mod a;", a__mod="mod b;\nuse b::Y;", a__b=child)
    assert len(messages(lint.check_circles_of_rust, tree)) == 1
    tree = modules(main="mod a;", a__mod="mod b;", a__b=child)
    assert messages(lint.check_circles_of_rust, tree) == []
    tree = modules(main="mod a;", a__mod="#[cfg(test)]\nmod b;\nfn f() {}", a__b=child)
    assert messages(lint.check_circles_of_rust, tree) == []


@pytest.mark.parametrize(
    "text",
    [
        'import { x } from "../b";',
        'import type { X } from "../b.js";',
        'import {\n  x,\n} from "../b.ts";',
        'export * from "../b.js";',
        'const b = await import("../b.js");',
    ],
)
def test_a_circle_of_typescript(text: str) -> None:
    tree = tree_of(page__view__a_tsx=text, page__b_ts='import "./view/a.js";')
    assert len(messages(lint.check_circles_of_typescript, tree)) == 1


@pytest.mark.parametrize("text", ['import { x } from "b";', 'import "../c.css";', ""])
def test_files_of_typescript_in_a_row(text: str) -> None:
    tree = tree_of(page__view__a_tsx=text, page__b_ts='import "./view/a.js";')
    assert messages(lint.check_circles_of_typescript, tree) == []


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


RANKS = "enum tsl_rank {\n  TSL_RANK_SEGMENT,\n  TSL_RANK_GROW,\n};"


def rank_rows(*names: str) -> str:
    return "\n".join(f"| `TSL_RANK_{name}` | a lock | what |" for name in names)


def test_ranks_of_the_code_are_those_of_the_document() -> None:
    tree = tree_of(src__base__lock_h=RANKS, docs__memory_model_md=rank_rows("GROW", "SEGMENT"))
    assert messages(lint.check_ranks, tree) == []


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (["GROW"], "src/base/lock.h:2: TSL_RANK_SEGMENT is not listed in docs/memory-model.md"),
        (
            ["SEGMENT", "GROW"],
            "docs/memory-model.md:1: lists the ranks in another order than the code",
        ),
        (
            ["GROW", "OLD", "SEGMENT"],
            "docs/memory-model.md:1: TSL_RANK_OLD is no rank in src/base/lock.h",
        ),
    ],
)
def test_ranks_missing_misplaced_or_stale(rows: list[str], complaint: str) -> None:
    tree = tree_of(src__base__lock_h=RANKS, docs__memory_model_md=rank_rows(*rows))
    assert messages(lint.check_ranks, tree) == [complaint]


SPDX = "SPDX-License-Identifier: MIT OR Apache-2.0"


def test_the_licence_stands_first_in_what_programs_include() -> None:
    tree = tree_of(
        include__tslab_h=f"/* {SPDX} */\n/* tslab */",
        src__all_c=f"// {SPDX}\n",
        src__os__os_h="#pragma once\n",
        rust__Cargo_toml='license = "MIT OR Apache-2.0"\n',
        package_json='{\n  "license": "MIT OR Apache-2.0",\n}\n',
    )
    assert messages(lint.check_licence, tree) == []


@pytest.mark.parametrize("text", ["/* tslab */\n", f"\n/* {SPDX} */\n", "// SPDX: MIT\n", ""])
def test_the_licence_missing_or_misplaced(text: str) -> None:
    tree = tree_of(include__tslab_hpp=text)
    assert messages(lint.check_licence, tree) == [f"include/tslab.hpp:1: is no {SPDX}"]


@pytest.mark.parametrize(
    "line", ['license = "MIT"', '  "license": "MIT",', 'SPDX-License-Identifier = "MIT"']
)
def test_licences_that_differ(line: str) -> None:
    tree = tree_of(python__pyproject_toml=line, page__package_json=line)
    assert messages(lint.check_licence, tree) == [
        "python/pyproject.toml:1: says MIT, and not MIT OR Apache-2.0",
        "page/package.json:1: says MIT, and not MIT OR Apache-2.0",
    ]


INVARIANT = "// slab: blocks.\n//\n//  S1  what is out is counted\n#pragma once\n"


def test_invariants_cited_beside_the_code() -> None:
    code = "// S1: counted here.\nint x; // ISO C11, S100\n"
    tree = tree_of(src__slab__x_h=INVARIANT, src__slab__x_c='#include "x.h"\n' + code)
    assert messages(lint.check_invariants, tree) == []


def test_invariants_cited_nowhere() -> None:
    tree = tree_of(src__slab__x_h=INVARIANT, src__slab__y_h="// keeps S1\n#pragma once\n")
    assert messages(lint.check_invariants, tree) == [
        "src/slab/x.h:3: invariant S1 is named nowhere in the code"
    ]


def test_invariants_of_one_name() -> None:
    tree = tree_of(src__slab__x_h=INVARIANT + "int a; // S1", src__slab__y_h=INVARIANT)
    assert messages(lint.check_invariants, tree) == [
        "src/slab/x.h:3: invariant S1 has the name of another one (src/slab/y.h)"
    ]


def test_citations_of_no_invariant() -> None:
    tree = tree_of(src__slab__x_c="int S3;\nint x; // S2")
    assert messages(lint.check_invariants, tree) == ["src/slab/x.c:2: S2 is no invariant"]
