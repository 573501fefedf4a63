"""Small changes of C sources, each of which a test should notice, and their choice at run time.

A changed place reads `(tsl_mutant_is(17) ? (a > b) : (a >= b))`, so that one build holds all of
them. Only code that runs is changed, in functions: no declarations, macros, checks of our own code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import tree_sitter_c
from tree_sitter import Language, Node, Parser

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ORDERED = re.compile(r"(tsl_(?:load|store|exchange|or|add|sub|cas)_)(acquire|release|acq_rel)")
CONDITIONED = {"if_statement", "while_statement", "do_statement", "conditional_expression"}
EFFECTS = {"call_expression", "assignment_expression", "update_expression"}

# What a function's name, or what is called, says about the code inside.
CHECKS = re.compile(r"\w+_valid|tsl_assert|tsl_invariant|static_assert|_Static_assert")
# What is called with a constant because the language wants one.
WITH_CONSTANTS = re.compile(r"__builtin_(?:frame|return)_address")
MACRO = re.compile(r"[A-Z][A-Z0-9_]*")
# On x86-64 they do nothing that a program could see.
HINTS = re.compile(
    r"va_end|tsl_cpu_relax|tsl_os_yield|tsl_os_advise_\w+|tsl_os_name|__builtin_prefetch"
)

# Where the language wants a constant, or where nothing runs.
FIXED = {
    "case_statement": "value",
    "array_declarator": "size",
    "initializer_list": None,
    "sizeof_expression": None,
    "gnu_asm_expression": None,
    "preproc_if": None,
    "preproc_ifdef": None,
    "attribute_specifier": None,
}


@dataclass(frozen=True)
class Mutation:
    """One change of one place. `rewritten` holds {number} where the mutant's number goes."""

    file: str
    line: int
    function: str
    rule: str
    start: int
    end: int
    change: str
    mutated: str
    rewritten: str
    nth: int  # of the function's places with the same change, from 1

    @property
    def rank(self) -> str:
        """Where it comes in a choice: by what it is, so that code elsewhere does not reorder it."""
        words = (self.file, self.function, self.rule, self.change, str(self.nth))
        return hashlib.sha256("\0".join(words).encode()).hexdigest()

    def overlaps(self, other: Mutation) -> bool:
        return self.file == other.file and self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Change:
    """A change before its place in the file is known."""

    rule: str
    first: Node
    last: Node
    mutated: str
    rewritten: str


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def braced(text: str) -> str:
    """As a piece of a format string."""
    return text.replace("{", "{{").replace("}", "}}")


def either(mutated: str, original: str) -> str:
    return f"(tsl_mutant_is({{number}}) ? ({braced(mutated)}) : ({braced(original)}))"


def name_called(node: Node) -> str:
    function = node.child_by_field_name("function")
    return text_of(function) if function is not None else ""


def comparisons(node: Node) -> Iterator[Change]:
    """A comparison with its limit moved, or turned round."""
    operator = node.child_by_field_name("operator")
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or operator is None or left is None or right is None:
        return
    if text_of(operator) in COMPARISONS:
        mutated = f"{text_of(left)} {COMPARISONS[text_of(operator)]} {text_of(right)}"
        yield Change("comparison", node, node, mutated, either(mutated, text_of(node)))


def conditions(node: Node) -> Iterator[Change]:
    """A condition's opposite; of a plain comparison that is the comparison's own change."""
    condition = node.child_by_field_name("condition")
    if node.type not in CONDITIONED or condition is None:
        return
    inner = condition
    while inner.type == "parenthesized_expression" and inner.named_child_count == 1:
        inner = inner.named_children[0]
    operator = inner.child_by_field_name("operator")
    if operator is not None and text_of(operator) in ("==", "!="):
        return
    original = text_of(inner)
    rewritten = f"((int)tsl_mutant_is({{number}}) ^ !!({braced(original)}))"
    yield Change("condition", condition, condition, f"(!({original}))", rewritten)


def constants(node: Node) -> Iterator[Change]:
    """A whole number, one larger."""
    if node.type == "number_literal" and re.fullmatch(r"0[xX][\da-fA-F]+|\d+", text_of(node)):
        mutated = f"{text_of(node)} + 1"
        yield Change("constant", node, node, mutated, either(mutated, text_of(node)))


def is_effect(node: Node) -> bool:
    """Whether a statement does something that a test could miss."""
    if node.type != "expression_statement" or node.named_child_count != 1:
        return False
    expression = node.named_children[0]
    if expression.type not in EFFECTS:
        return False
    called = name_called(expression)
    return not any(pattern.fullmatch(called) for pattern in (CHECKS, MACRO, HINTS))


def deletions(node: Node) -> Iterator[Change]:
    """A statement left out."""
    if is_effect(node):
        rewritten = f"{{{{ if (!tsl_mutant_is({{number}})) {braced(text_of(node))} }}}}"
        yield Change("deletion", node, node, "", rewritten)


def arguments(call: Node) -> set[str]:
    """The variables and fields that a call is given, and what it is given the address of."""
    given = call.child_by_field_name("arguments")
    nodes = given.named_children if given is not None else []
    return {text_of(node).lstrip("&") for node in nodes if node.type != "number_literal"}


def names(text: str, target: str) -> bool:
    """Whether a piece of code names a variable or field, not only one that begins alike."""
    return re.search(rf"(?<![\w.>]){re.escape(target)}(?!\w)", text) is not None


def depend(first: Node, second: Node) -> bool:
    """Whether two statements' order may matter: one writes what the other names, or both are calls
    that are given the same."""
    expressions = [first.named_children[0], second.named_children[0]]
    if all(expression.type == "call_expression" for expression in expressions):
        return not arguments(expressions[0]).isdisjoint(arguments(expressions[1]))
    for writer, other in (expressions, reversed(expressions)):
        target = writer.child_by_field_name("left") or writer.child_by_field_name("argument")
        if target is not None and names(text_of(other), text_of(target)):
            return True
    return False


def orders(node: Node) -> Iterator[Change]:
    """Two statements exchanged, where one may depend on the other."""
    if node.type != "compound_statement":
        return
    for first, second in pairwise(node.named_children):
        if is_effect(first) and is_effect(second) and depend(first, second):
            one, two = text_of(first), text_of(second)
            choice = f"if (tsl_mutant_is({{number}})) {{{{ {braced(two)} {braced(one)} }}}}"
            rewritten = f"{{{{ {choice} else {{{{ {braced(one)} {braced(two)} }}}} }}}}"
            yield Change("order", first, second, f"{two} {one}", rewritten)


def weakenings(node: Node) -> Iterator[Change]:
    """An acquire or a release made relaxed."""
    match = ORDERED.fullmatch(name_called(node)) if node.type == "call_expression" else None
    if match:
        mutated = text_of(node).replace(match[0], f"{match[1]}relaxed", 1)
        yield Change("memory order", node, node, mutated, either(mutated, text_of(node)))


Rule = Callable[[Node], Iterator[Change]]
RULES: tuple[Rule, ...] = (comparisons, conditions, constants, deletions, orders, weakenings)


def is_hardened(node: Node, parent: Node) -> bool:
    """Whether a child runs in the hardened build alone."""
    condition = parent.child_by_field_name("condition")
    if parent.type != "if_statement" or condition is None:
        return False
    return text_of(condition) == "(TSL_SECURE)" and node == parent.child_by_field_name(
        "consequence"
    )


def runs(node: Node, parent: Node) -> bool:
    """Whether a child is code that is executed, and may change."""
    if is_hardened(node, parent):
        return False
    if parent.type in FIXED:
        field = FIXED[parent.type]
        if field is None or parent.child_by_field_name(field) == node:
            return False
    if parent.type == "declaration" and text_of(parent).startswith("static "):
        return False
    called = name_called(parent) if parent.type == "call_expression" else ""
    return not any(pattern.fullmatch(called) for pattern in (CHECKS, MACRO, WITH_CONSTANTS))


def running(node: Node) -> Iterator[Node]:
    """A node of a function's body and all under it that runs."""
    yield node
    for child in node.children:
        if runs(child, node):
            yield from running(child)


def function_name(definition: Node) -> str:
    node: Node | None = definition
    while node is not None and node.type != "identifier":
        node = node.child_by_field_name("declarator")
    return text_of(node) if node is not None else ""


def functions(node: Node) -> Iterator[tuple[str, Node]]:
    """Name and body of each function."""
    for child in node.children:
        body = child.child_by_field_name("body")
        if child.type == "function_definition" and body is not None:
            name = function_name(child)
            if not CHECKS.fullmatch(name):
                yield name, body
        elif child.type not in FIXED:
            yield from functions(child)


def one_line(text: str) -> str:
    return " ".join(text.split())


def described(change: Change, source: bytes) -> str:
    original = one_line(source[change.first.start_byte : change.last.end_byte].decode())
    return f"{original}  =>  {one_line(change.mutated) or 'nothing'}"


def mutations(file: str, source: bytes) -> list[Mutation]:
    """All changes that the rules know for a source."""
    tree = Parser(Language(tree_sitter_c.language())).parse(source)
    found: list[Mutation] = []
    for function, body in functions(tree.root_node):
        seen: dict[str, int] = {}
        changes = (change for node in running(body) for rule in RULES for change in rule(node))
        for change in changes:
            text = described(change, source)
            seen[text] = seen.get(text, 0) + 1
            start, end = change.first.start_byte, change.last.end_byte
            place = (file, change.first.start_point.row + 1, function, change.rule, start, end)
            found.append(Mutation(*place, text, change.mutated, change.rewritten, seen[text]))
    return found


def grouped(candidates: list[Mutation], key: Callable[[Mutation], str]) -> list[list[Mutation]]:
    """Candidates by file or by rule, in the order of a choice."""
    groups: dict[str, list[Mutation]] = {}
    for mutation in sorted(candidates, key=lambda mutation: mutation.rank):
        groups.setdefault(key(mutation), []).append(mutation)
    return list(groups.values())


def take(queue: list[Mutation], taken: list[Mutation]) -> None:
    """Takes the first of a queue that lies apart from those taken before."""
    while queue:
        mutation = queue.pop(0)
        if not any(mutation.overlaps(other) for other in taken):
            taken.append(mutation)
            return


def chosen(
    candidates: list[Mutation], count: int, others: Sequence[Mutation] = ()
) -> list[Mutation]:
    """One of each file, then of all rules by turns: the same for the same sources. They lie apart
    from each other and from `others`."""
    taken, count = list(others), count + len(others)
    for queue in grouped(candidates, lambda mutation: mutation.file):
        take(queue, taken)
    by_rule = grouped(candidates, lambda mutation: mutation.rule)
    while len(taken) < count and any(by_rule):
        for queue in by_rule:
            take(queue, taken)
    return sorted(taken[len(others) : count], key=lambda mutation: (mutation.file, mutation.start))


def rewrite(source: bytes, numbered: dict[int, Mutation]) -> bytes:
    """The source with each of these changes to be chosen at run time."""
    for number, mutation in sorted(numbered.items(), key=lambda item: -item[1].start):
        place = mutation.rewritten.format(number=number).encode()
        source = source[: mutation.start] + place + source[mutation.end :]
    return source


def mutant(source: bytes, mutation: Mutation) -> bytes:
    """The source with this change made."""
    return source[: mutation.start] + mutation.mutated.encode() + source[mutation.end :]
