"""Mutants of small sources: found, chosen, built into one program, and judged by tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import lint
import mutants
import pytest
from mutations import Mutation, chosen, mutant, mutations, rewrite

FILE = "src/base/x.c"

SOURCE = """#include <stdlib.h>
static int last;
enum { SIZE = 3 };
static int is_valid(void) { return last == 7; }
int most(int a, int b);
int most(int a, int b) {
  static int calls = 0;
  calls = calls + 1;
  last = b;
  if (a > b) {
    last = a;
  }
  tsl_assert(last > 1);
  switch (a) {
    case 4: return MACRO(5);
    default: return last;
  }
}
"""

MAIN = """
#define tsl_assert(condition)
#define MACRO(value) (value)
%s
int main(void) { return most(2, 3) == 3 && most(6, 5) == 6 && most(9, 9) == 9 ? 0 : 1; }
"""


def found() -> list[Mutation]:
    return mutations(FILE, SOURCE.encode())


def test_only_code_that_runs_is_changed() -> None:
    changes = [(mutation.rule, mutation.change) for mutation in found()]
    assert changes == [
        ("deletion", "calls = calls + 1;  =>  nothing"),
        ("constant", "1  =>  1 + 1"),
        ("deletion", "last = b;  =>  nothing"),
        ("condition", "(a > b)  =>  (!(a > b))"),
        ("comparison", "a > b  =>  a >= b"),
        ("deletion", "last = a;  =>  nothing"),
    ]


def test_what_the_language_wants_constant_is_not_changed() -> None:
    source = b"void f(void) { g(__builtin_frame_address(0), 1); }"
    assert [one.change for one in mutations(FILE, source) if one.rule == "constant"] == [
        "1  =>  1 + 1"
    ]


def test_what_only_the_hardened_build_runs_is_not_changed() -> None:
    source = b"void f(void) { if (TSL_SECURE) { a = b; } else { b = 1; } }"
    changes = [one.change for one in mutations(FILE, source) if one.rule == "deletion"]
    assert changes == ["b = 1;  =>  nothing"]


def test_acquires_and_releases_are_weakened() -> None:
    source = b"void f(int *p) { tsl_store_release(p, 1); }"
    weakened = [one for one in mutations(FILE, source) if one.rule == "memory order"]
    assert [mutant(source, one) for one in weakened] == [
        b"void f(int *p) { tsl_store_relaxed(p, 1); }"
    ]


def test_statements_are_exchanged_where_one_may_need_the_other() -> None:
    apart = b"void f(void) { p->a = 1; p->ab = 2; g(c); h(d); }"
    bound = b"void f(void) { a = 1; b = a; g(c); h(&c); }"
    assert [one for one in mutations(FILE, apart) if one.rule == "order"] == []
    assert [one.mutated for one in mutations(FILE, bound) if one.rule == "order"] == [
        "b = a; a = 1;",
        "h(&c); g(c);",
    ]


def test_a_choice_lies_apart_and_stays() -> None:
    choice = chosen(found(), 100)
    assert len(choice) > 2
    assert not any(a.overlaps(b) for a in choice for b in choice if a is not b)
    shifted = mutations(FILE, b"\n\n" + SOURCE.encode())
    assert [one.change for one in chosen(shifted, 3)] == [one.change for one in chosen(found(), 3)]


def test_a_choice_lies_apart_from_others() -> None:
    others = found()[1:3]
    choice = chosen(found(), 100, others)
    assert choice
    assert not any(one.overlaps(other) for one in choice for other in others)
    assert len(chosen(found(), 2, others)) == 2


def build(folder: Path, source: bytes) -> Path:
    """The program of a source, with the mutants that it holds."""
    (folder / "base").mkdir(exist_ok=True)
    (folder / "base/mutant.h").write_bytes((mutants.CHOICE / "choice.h").read_bytes())
    (folder / "choice.c").write_bytes((mutants.CHOICE / "choice.c").read_bytes())
    text = '#include "base/mutant.h"\n' + MAIN % source.decode()
    (folder / "x.c").write_text(text)
    program = folder / "program"
    sources = [str(folder / name) for name in ("x.c", "choice.c")]
    subprocess.run(["gcc", "-w", f"-I{folder}", *sources, "-o", str(program)], check=True)
    return program


def unit_test(program: Path) -> mutants.Test:
    return mutants.Test("unit.x_test", "unit", (str(program),), str(program.parent), {}, None, 5)


def test_one_program_holds_all_mutants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "FOLDER", tmp_path)
    monkeypatch.setattr(mutants, "read", lambda name: SOURCE.encode() if name == FILE else b"")
    numbered = dict(enumerate(chosen(found(), 100), 1))
    program = build(tmp_path, rewrite(SOURCE.encode(), numbered))
    baseline = mutants.baseline(unit_test(program), max(numbered))
    assert baseline.reached == frozenset(numbered)
    for number, mutation in numbered.items():
        alone = build(tmp_path, mutant(SOURCE.encode(), mutation))
        dies = not unit_test(alone).ends_well({}, 5)
        build(tmp_path, rewrite(SOURCE.encode(), numbered))
        verdict = mutants.judge(number, mutation, [baseline])
        assert (verdict.killer == "unit") == dies, mutation.change


def test_a_hang_is_a_failure(tmp_path: Path) -> None:
    test = mutants.Test("x", "unit", ("sleep", "60"), str(tmp_path), {}, None, 60)
    assert not test.ends_well({}, 0.1)


def test_a_share_without_the_equivalent(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = found()[:3]
    verdicts = [
        mutants.Verdict(first, "unit", "unit.x_test", True),
        mutants.Verdict(second, None, "", True),
        mutants.Verdict(third, None, "", False),
    ]
    words = (FILE, "most", second.change)
    judged = {(*words, 1): mutants.Judgement(*words, equivalent=True, why="Nobody reads it.")}
    monkeypatch.setattr(mutants, "judgements", lambda: judged)
    tally = mutants.Tally(verdicts)
    assert tally.share == 0.5
    assert [verdict.mutation for verdict in tally.unjudged] == [third]
    page = mutants.report(tally, {"X1": verdicts[0]})
    assert "Equivalent: Nobody reads it." in page
    assert "Not judged." in page
    assert "reached by no test" in page
    assert "unit.x_test |" in page


def test_judgements_are_of_places_that_exist() -> None:
    for file, function, change, nth in mutants.judgements():
        places = {
            (one.function, one.change, one.nth) for one in mutations(file, mutants.read(file))
        }
        assert (function, change, nth) in places, f"{file}: {function}: {change}"


# Only the hardened build can break K1, K2 and B4. No small change breaks the others: S2 and M3 say
# who writes, B3 what is not read.
WITHOUT_A_MUTANT = {"B3", "B4", "K1", "K2", "M3", "S2"}


def test_each_invariant_has_a_mutant() -> None:
    every = [one for name in mutants.sources("*") for one in mutations(name, mutants.read(name))]
    named = mutants.named(every)
    known = {name for name, _ in lint.invariants(lint.read_tree(mutants.ROOT))}
    assert set(named) | WITHOUT_A_MUTANT == known
    assert not set(named) & WITHOUT_A_MUTANT
    places = list(named.values())
    assert not any(a.overlaps(b) for a in places for b in places if a is not b)


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    first, second = found()[:2]
    killed = mutants.Verdict(first, "unit", "unit.x_test", True)
    mutants.Record(tmp_path / "verdicts", "before").add(killed)
    same = mutants.Record(tmp_path / "verdicts", "before")
    assert same.verdict(first) == killed
    assert same.verdict(second) is None
    after = mutants.Record(tmp_path / "verdicts", "after")
    assert after.verdict(first) is None
    assert after.killer(first) == "unit.x_test"


def test_the_last_killer_comes_first() -> None:
    mutation = found()[0]
    tests = [
        mutants.Baseline(mutants.Test(name, "unit", (), "", {}, None, 5), seconds, frozenset({1}))
        for name, seconds in (("unit.x_test", 2.0), ("api.a", 1.0), ("api.b", 3.0))
    ]

    def names(killer: str) -> list[str]:
        return [one.test.name for one in mutants.in_order(tests, 1, mutation, killer)]

    assert names("") == ["unit.x_test", "api.a", "api.b"]
    assert names("api.b") == ["api.b", "unit.x_test", "api.a"]
