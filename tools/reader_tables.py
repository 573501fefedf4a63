"""Writes what readers of the statistics file know of it: a Rust and a TypeScript module.

They say what the C sources declare (rows.py). With --check nothing is written; both have to be up
to date.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from marked import ROOT, update
from rows import (
    FORMAT,
    ROWS,
    Field,
    Format,
    Part,
    Rows,
    SlowPath,
    State,
    Struct,
    declared_format,
    declared_rows,
)

RUST = ROOT / "tools/tslab/src/rows.rs"
RUSTFMT = ("rustfmt", "--edition", "2024", "--config-path", str(ROOT / "tools/tslab"))
TYPESCRIPT = ROOT / "tools/tslab/page/src/api/rows.ts"

ORIGIN = (
    f"Written by `tools/reader_tables.py` from `{ROWS.relative_to(ROOT)}` and",
    f"`{FORMAT.relative_to(ROOT)}`: change those, then run `make format`.",
)

RUST_BEGIN = f"""\
//! The statistics file: how it is described, and its tables.
//!
//! {ORIGIN[0]}
//! {ORIGIN[1]}
#![allow(dead_code, reason = "each program uses a part")]

use std::fmt;

use serde::Serialize;

/// The values of a field in a row, each of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {{
    /// One.
    One(u16),
    /// One for each size class.
    Each(u16),
    /// Several.
    List(u16),
    /// Those of a text.
    Text(u16),
}}

/// A field of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {{
    pub table: &'static str,
    pub name: &'static str,
    pub shape: Shape,
    pub kind: Kind,
    pub unit: Unit,
}}

impl fmt::Display for Field {{
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {{
        write!(out, "{{}}.{{}}", self.table, self.name)
    }}
}}

/// Why the fast path is left.
#[derive(Clone, Copy, Debug)]
pub struct SlowPath {{
    pub cause: &'static str,
    pub meaning: &'static str,
    /// Counts it, over all rows.
    pub field: Field,
    /// Its count is subtracted.
    pub less: Option<Field>,
}}

macro_rules! tables {{
    ($($table:ident {{
        $($(#[$doc:meta])* $constant:ident $name:literal $shape:ident $width:literal $kind:ident
            $unit:ident;)*
    }})*) => {{
        $(pub mod $table {{
            use crate::rows::{{Field, Kind, Shape, Unit}};

            pub const TABLE: &str = stringify!($table);
            $($(#[$doc])* pub const $constant: Field = Field {{
                table: TABLE,
                name: $name,
                shape: Shape::$shape($width),
                kind: Kind::$kind,
                unit: Unit::$unit,
            }};)*
            pub const FIELDS: &[Field] = &[$($constant),*];
        }})*

        /// In the file's order.
        pub const TABLES: &[&[Field]] = &[$($table::FIELDS),*];
    }};
}}
"""

TYPESCRIPT_BEGIN = f"""\
// rows: the names of what a process tells, with what they mean.
//
// {ORIGIN[0]}
// {ORIGIN[1]}
"""


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def rust_doc(meaning: str) -> str:
    return f"/// {meaning[0].upper()}{meaning[1:]}."


def rust_enum(name: str, doc: str, words: list[str]) -> str:
    """With values that stand for the numbers from 0 on."""
    variants = [camel(word) for word in words]
    of = "".join(f"{number} => Some(Self::{name})," for number, name in enumerate(variants))
    return f"""
    /// {doc}
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum {name} {{ {", ".join(variants)} }}

    impl {name} {{
        /// By its number in the file; none: a newer library's.
        pub fn of(number: u64) -> Option<Self> {{ match number {{ {of} _ => None, }} }}
    }}
    """


def rust_state(table: str, states: list[State]) -> str:
    name = f"{camel(table).removesuffix('s')}State"
    texts = "".join(f'Self::{camel(state.name)} => "{state.meaning}",' for state in states)
    return f"""
    {rust_enum(name, f"`state` of {table}.", [state.name for state in states])}
    impl {name} {{
        /// What people read.
        pub fn text(self) -> &'static str {{ match self {{ {texts} }} }}
    }}
    """


def rust_part(part: Part) -> str:
    name, end = part.name.upper(), part.at + part.size
    if part.is_text:
        return f"pub const {name}: Range<usize> = {part.at}..{end};"
    return f"pub const {name}: usize = {part.at};"


def rust_struct(struct: Struct) -> str:
    parts = "\n".join(map(rust_part, struct.parts))
    return f"""
    /// Where the parts of `struct tslab_stats_{struct.name}` lie.
    pub mod {struct.name} {{
        use std::ops::Range;

        {parts}
        /// Bytes of all.
        pub const SIZE: usize = {struct.size};
    }}
    """


def rust_field(field: Field) -> str:
    kinds = f"{camel(field.kind)} {camel(field.unit)}"
    shape = f"{camel(field.shape)} {field.width}"
    return f"""\
        {rust_doc(field.meaning)}
        {field.name.upper()} "{field.name}" {shape} {kinds};
"""


def rust_table(table: str, fields: list[Field]) -> str:
    return f"    {table} {{\n{''.join(map(rust_field, fields))}    }}\n"


def rust_slow_path(path: SlowPath) -> str:
    less = "None" if path.less is None else f"Some({path.table}::{path.less.upper()})"
    return f"""
        SlowPath {{
            cause: "{path.cause}",
            meaning: "{path.meaning}",
            field: {path.table}::{path.field.upper()},
            less: {less},
        }},
    """


def rust_parts(rows: Rows, layout: Format) -> Iterator[str]:
    yield RUST_BEGIN
    yield f'/// How a file begins.\npub const MAGIC: &[u8] = b{layout.constants["MAGIC"][:-1]}\\0";'
    yield f"/// The format.\npub const ABI: u32 = {layout.constants['ABI'].removesuffix('u')};"
    for name, value, meaning in rows.numbers:
        yield f"{rust_doc(meaning)}\npub const {name.upper()}: u32 = {value:_};"
    for name, words in layout.enums.items():
        yield rust_enum(camel(name), f"The {name} of a field.", words)
    yield from (rust_state(table, states) for table, states in rows.states.items())
    yield from map(rust_struct, layout.structs)
    tables = "".join(rust_table(table, fields) for table, fields in rows.tables.items())
    yield f"tables! {{\n{tables}}}\n"
    slow_paths = "".join(map(rust_slow_path, rows.slow_paths))
    yield "/// Why the fast path is left."
    yield f"pub const SLOW_PATHS: [SlowPath; {len(rows.slow_paths)}] = [{slow_paths}];"


def rust(rows: Rows, layout: Format) -> str:
    """The module as rustfmt lays it out."""
    text = "\n".join(rust_parts(rows, layout))
    done = subprocess.run(RUSTFMT, input=text, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def union(words: list[str]) -> str:
    return " | ".join(f'"{word.lower()}"' for word in words)


def typescript_object(name: str, entries: dict[str, dict[str, str]]) -> Iterator[str]:
    yield f"export const {name} = {{"
    for key, values in entries.items():
        yield f"  {key}: {{"
        yield from (f"    {inner}: {json.dumps(value)}," for inner, value in values.items())
        yield "  },"
    yield "} as const;\n"


def typescript_lines(rows: Rows, layout: Format) -> Iterator[str]:
    yield TYPESCRIPT_BEGIN
    yield f"export type Unit = {union(layout.enums['unit'])};\n"
    yield f"export type EpochState = {union([state.name for state in rows.states['epochs']])};\n"
    yield "/** What a process says of itself as a whole. */"
    yield from typescript_object(
        "PROCESS",
        {
            field.name: {"unit": field.unit.lower(), "meaning": field.meaning}
            for field in rows.tables["process"]
        },
    )
    yield "/** Why allocations and frees leave the fast path. */"
    yield from typescript_object(
        "SLOW_PATHS",
        {
            path.cause: {
                "of": path.who.lower(),
                "unit": rows.field(path).unit.lower(),
                "meaning": path.meaning,
            }
            for path in rows.slow_paths
        },
    )


def typescript(rows: Rows, layout: Format) -> str:
    """The module as prettier lays it out."""
    return "\n".join(typescript_lines(rows, layout))


def main(arguments: list[str]) -> int:
    rows, layout = declared_rows(), declared_format()
    only_check = "--check" in arguments
    return max(
        update(RUST, rust(rows, layout), only_check=only_check),
        update(TYPESCRIPT, typescript(rows, layout), only_check=only_check),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
