"""Starts the interpreter anew, with the library loaded first."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

NAME = "libtslab-preload.so"

USAGE = """\
%(prog)s [-h] [--library FILE] [-o NAME=VALUE] [--small-objects] SCRIPT [ARGUMENT ...]
       %(prog)s [OPTION ...] -m MODULE [ARGUMENT ...]
       %(prog)s [OPTION ...] -c COMMAND [ARGUMENT ...]"""


def places(environment: Mapping[str, str]) -> Iterable[Path]:
    """Where the library may be: as the user says, in the package, or as the repository built it."""
    named = environment.get("TSLAB_LIBRARY")
    if named:
        return [Path(named)]
    package = Path(__file__).resolve().parent
    prefix = Path(sys.prefix)
    return [package / NAME, package.parents[2] / "build" / "lib" / NAME, prefix / "lib" / NAME]


def find_library(environment: Mapping[str, str]) -> Path:
    """The library's whole path."""
    looked = list(places(environment))
    found = next((place.resolve() for place in looked if place.is_file()), None)
    if found is None:
        names = ", ".join(str(place) for place in looked)
        raise SystemExit(
            f"tslab run: {NAME} is not there: looked for {names}; name it with --library, or in "
            "$TSLAB_LIBRARY"
        )
    # The loader takes blanks and colons for the ends of names.
    if any(letter in str(found) for letter in " :"):
        raise SystemExit(
            f"tslab run: LD_PRELOAD cannot hold {found}: move the library to a path without "
            "blanks and colons"
        )
    return found


def setting(text: str) -> tuple[str, str]:
    """The two of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"NAME=VALUE is wanted, not {text!r}")
    return name, value


def parser() -> argparse.ArgumentParser:
    """What `run` is asked."""
    asked = argparse.ArgumentParser(
        prog="python -m tslab run", usage=USAGE, description=__doc__, allow_abbrev=False
    )
    asked.add_argument("--library", metavar="FILE", help=f"{NAME}, if it is not found")
    asked.add_argument(
        "-o",
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=setting,
        help="an option of the allocator, such as purge_delay_ms=500; may be given several times",
    )
    asked.add_argument(
        "--small-objects",
        action="store_true",
        help="let malloc serve objects up to 512 bytes, too, so that epochs hold them: "
        "PYTHONMALLOC=malloc",
    )
    for flag, name in (("-m", "module"), ("-c", "command")):
        asked.add_argument(
            flag, dest=name, nargs=argparse.REMAINDER, help=f"a {name} to run, and its arguments"
        )
    asked.add_argument("script", nargs=argparse.REMAINDER, help="a script, and its arguments")
    return asked


def program_of(asked: argparse.Namespace) -> list[str]:
    """What the interpreter is to run."""
    if asked.module:
        return ["-m", *asked.module]
    return ["-c", *asked.command] if asked.command else list(asked.script)


def with_options(options: Sequence[tuple[str, str]], before: Mapping[str, str]) -> dict[str, str]:
    """In TSLAB_CONF, where the library says what it does not know; no variable wins over them."""
    variables = {f"TSLAB_{name.upper()}" for name, _ in options}
    after = {name: value for name, value in before.items() if name not in variables}
    asked = [f"{name}:{value}" for name, value in options]
    if asked:
        after["TSLAB_CONF"] = ",".join(filter(None, [before.get("TSLAB_CONF"), *asked]))
    return after


def environment_for(asked: argparse.Namespace, before: Mapping[str, str]) -> dict[str, str]:
    """What the new interpreter is started with."""
    named = {"TSLAB_LIBRARY": asked.library} if asked.library else {}
    library = find_library({**before, **named})
    after = with_options(asked.option, before)
    # The library comes last: what the user loads before may want to be first.
    after["LD_PRELOAD"] = ":".join(filter(None, [before.get("LD_PRELOAD"), str(library)]))
    if asked.small_objects:
        after["PYTHONMALLOC"] = "malloc"
    return after


def run(arguments: Sequence[str]) -> NoReturn:
    """Becomes the new interpreter."""
    asked = parser().parse_args(arguments)
    program = program_of(asked)
    if not program:
        parser().error("which program? name a script, -m MODULE or -c COMMAND")
    environment = environment_for(asked, os.environ)
    os.execve(sys.executable, [sys.executable, *program], environment)
