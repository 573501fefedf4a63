"""What stands in the statistics file, as C sources declare it: ROWS its tables, FORMAT the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from marked import ROOT

ROWS = ROOT / "src/tell/rows.h"
FORMAT = ROOT / "include/tslab_stats.h"

TYPE_BYTES = {"char": 1, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8}

MACRO = re.compile(r"#define TSL_(\w+)\(([\w, ]+)\)((?:.*\\\n)*.*\n)")
ARGUMENT = re.compile(r'(?:[^",]|"[^"]*")+')
STRING = re.compile(r'"([^"]*)"')
STATES = re.compile(r"#define TSL_(\w+)_STATES\(")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
ENUM = re.compile(r"enum tslab_stats_(\w+) \{([^}]*)\};")
STRUCT = re.compile(r"struct tslab_stats_(\w+) \{([^}]*)\};")
MEMBER = re.compile(rf"({'|'.join(TYPE_BYTES)}) (\w+)(?:\[(\d+)\])?$")
CONSTANT = re.compile(r"#define TSLAB_STATS_(\w+) (\S+)")


class Field(NamedTuple):
    table: str
    name: str
    shape: str  # ONE, EACH, LIST or TEXT
    width: int  # bytes of a value
    unit: str
    kind: str
    meaning: str


class State(NamedTuple):
    name: str
    meaning: str


class Number(NamedTuple):
    name: str
    value: int
    meaning: str


class SlowPath(NamedTuple):
    cause: str
    who: str  # ALLOCATION or FREE
    table: str
    field: str
    less: str | None  # a field whose count is subtracted
    meaning: str


class Part(NamedTuple):
    name: str
    at: int  # offset in its struct
    size: int
    is_text: bool


class Struct(NamedTuple):
    name: str
    parts: list[Part]
    size: int


class Rows(NamedTuple):
    """What ROWS declares."""

    tables: dict[str, list[Field]]
    states: dict[str, list[State]]  # of the field `state`, by table
    numbers: list[Number]
    slow_paths: list[SlowPath]

    def field(self, path: SlowPath) -> Field:
        """What counts it."""
        return next(field for field in self.tables[path.table] if field.name == path.field)


class Format(NamedTuple):
    """What FORMAT declares."""

    constants: dict[str, str]  # as C writes them
    enums: dict[str, list[str]]
    structs: list[Struct]


def argument_text(argument: str) -> str:
    """As it stands there; strings side by side are one."""
    strings = STRING.findall(argument)
    return "".join(strings) if strings else argument.replace("\\\n", "").strip()


def calls(source: str, macro: str) -> Iterator[tuple[str, list[str]]]:
    """What a macro calls of its parameters, with the arguments."""
    found = [match for match in MACRO.finditer(source) if match[1] == macro]
    if len(found) != 1:
        raise ValueError(f"TSL_{macro} is declared {len(found)} times")
    parameters, body = "|".join(found[0][2].split(", ")), found[0][3]
    entries = re.findall(rf'\b({parameters})\(((?:[^"()]|"[^"\n]*")*)\)', body)
    declared = len(re.findall(rf"\b(?:{parameters})\(", body))
    if declared != len(entries):
        raise ValueError(f"understood {len(entries)} of {declared} entries of TSL_{macro}")
    for name, arguments in entries:
        yield name, [argument_text(argument) for argument in ARGUMENT.findall(arguments)]


def field(table: str, shape: str, arguments: list[str]) -> Field:
    """T and the arguments of its shape: see ROWS."""
    if shape == "TEXT":
        _, _, name, meaning = arguments
        return Field(table, name, shape, TYPE_BYTES["char"], "NONE", "TEXT", meaning)
    _, *_, kind_of, name, unit, kind, meaning = arguments
    return Field(table, name, shape, TYPE_BYTES[kind_of], unit, kind, meaning)


def slow_path(form: str, arguments: list[str]) -> SlowPath:
    cause, who, table, counted, *less, meaning = arguments
    if len(less) != (form == "LESS"):
        raise ValueError(f"{form}({cause}, ...) has {len(arguments)} arguments")
    return SlowPath(cause, who, table, counted, less[0] if less else None, meaning)


def check_slow_path(path: SlowPath, tables: dict[str, list[Field]]) -> None:
    known = {field.name for field in tables.get(path.table, [])}
    for name in (path.field, path.less):
        if name is not None and name not in known:
            raise ValueError(f"slow path {path.cause}: {path.table} has no field {name}")


def parse_rows(source: str) -> Rows:
    names = [arguments[0] for _, arguments in calls(source, "TABLES")]
    tables = {
        name: [field(name, *call) for call in calls(source, f"{name.upper()}_FIELDS")]
        for name in names
    }
    states = {
        name.lower(): [State(*arguments) for _, arguments in calls(source, f"{name}_STATES")]
        for name in STATES.findall(source)
    }
    numbers = (arguments for _, arguments in calls(source, "ROWS_NUMBERS"))
    slow_paths = [slow_path(*call) for call in calls(source, "SLOW_PATHS")]
    for path in slow_paths:
        check_slow_path(path, tables)
    return Rows(
        tables,
        states,
        [Number(name, int(value, 0), meaning) for name, value, meaning in numbers],
        slow_paths,
    )


def struct(name: str, body: str) -> Struct:
    """Its parts, as C lays them out: each at a multiple of the size of its values."""
    parts, end, widest = [], 0, 1
    for line in body.split(";")[:-1]:
        member = MEMBER.match(" ".join(line.split()))
        if member is None:
            raise ValueError(f"not understood in struct tslab_stats_{name}: {line.strip()}")
        width = TYPE_BYTES[member[1]]
        at = -(-end // width) * width
        end = at + width * int(member[3] or 1)
        parts.append(Part(member[2], at, end - at, is_text=member[1] == "char"))
        widest = max(widest, width)
    return Struct(name, parts, -(-end // widest) * widest)


def parse_format(source: str) -> Format:
    source = COMMENT.sub("", source)
    return Format(
        dict(CONSTANT.findall(source)),
        {
            name: [word.strip().removeprefix("TSLAB_STATS_") for word in words.split(",")]
            for name, words in ENUM.findall(source)
        },
        [struct(name, body) for name, body in STRUCT.findall(source)],
    )


def declared_rows() -> Rows:
    return parse_rows(ROWS.read_text())


def declared_format() -> Format:
    return parse_format(FORMAT.read_text())
