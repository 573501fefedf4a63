"""What the command `tslab` shows on a terminal, and that nothing but `top` treats it as one.

screen.py TSLAB PRELOAD LEAKER
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress

from command import Command, first_line, process


def read_until(terminal: int, text: bytes) -> bytes:
    """What a terminal shows until a text appears there."""
    shown = b""
    end = time.monotonic() + 30
    while text not in shown:
        assert time.monotonic() < end, shown
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 65536)
    return shown


def resize(terminal: int, lines: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def read_anew_until(terminal: int, text: bytes) -> None:
    """The same for a text of which a part may stand there already, and is not written again.

    At a new size everything is written.
    """
    shown = b""
    end = time.monotonic() + 30
    for lines in itertools.cycle((25, 24)):
        if text in shown:
            return
        assert time.monotonic() < end, shown
        resize(terminal, lines, 80)
        pause = time.monotonic() + 1
        while text not in shown and time.monotonic() < pause:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 65536)


def on_terminal(tslab: Command, *arguments: str, **environment: str) -> tuple[int, int]:
    """The command with a terminal of its own: its number, and the terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(tslab.path, [tslab.path, *arguments], {**os.environ, **environment})
    return child, terminal


def check_top(tslab: Command, pid: str) -> None:
    """On a terminal, with keys and a resize, and as plain text."""
    assert pid in tslab.run("top", "--batch", "-n", "1")
    child, terminal = on_terminal(tslab, "top", "--interval", "0.1")
    try:
        resize(terminal, 24, 80)
        read_until(terminal, b"tslab top")
        os.write(terminal, b"?")
        read_anew_until(terminal, b"goes")
        os.write(terminal, b"x")
        read_anew_until(terminal, b"quit")
        resize(terminal, 30, 100)
        read_until(terminal, b"tslab top")
        os.write(terminal, b"q")
        # The terminal gets its own screen back.
        read_until(terminal, b"\x1b[?1049l")
        assert os.waitpid(child, 0)[1] == 0
    finally:
        os.close(terminal)


def colours(shown: bytes) -> set[int]:
    """Numbers of what was shown that choose a colour, and of sequences with a number missing."""
    sequences = re.findall(rb"\x1b\[([0-9;:]*)m", shown)
    numbers = {int(part or -1) for text in sequences if text for part in re.split(rb"[;:]", text)}
    return {number for number in numbers if number < 0 or 30 <= number < 50 or number >= 90}


def check_colours(tslab: Command) -> None:
    """NO_COLOR takes the colours of `top`, and nothing else: what is chosen stays marked."""
    for no_colour, marks in (("", True), ("1", False)):
        child, terminal = on_terminal(tslab, "top", TERM="xterm-256color", NO_COLOR=no_colour)
        try:
            resize(terminal, 24, 80)
            shown = read_until(terminal, b"tslab top")
            os.write(terminal, b" ")
            shown += read_until(terminal, b"FROZEN")
            os.write(terminal, b"q")
            shown += read_until(terminal, b"\x1b[?1049l")
            assert os.waitpid(child, 0)[1] == 0
            assert bool(colours(shown) - {39, 49}) == marks, (no_colour, colours(shown))
            assert b"\x1b[1m" in shown
        finally:
            os.close(terminal)


def all_shown(terminal: int) -> bytes:
    """What a terminal shows until nobody writes to it any more."""
    shown = b""
    with suppress(OSError):
        while part := os.read(terminal, 65536):
            shown += part
    return shown


def check_plain(tslab: Command, pid: str, leaker: str) -> None:
    """No subcommand but `top` writes an escape sequence, on a terminal or elsewhere."""
    asked = {
        "advise": ("--library", "/nowhere", "--", leaker),
        "completions": ("bash",),
        "core": ("/nowhere",),
        "diff": (pid, pid),
        "doctor": (pid,),
        "epochs": (pid,),
        "gc": ("--dry-run",),
        "help": (),
        "leaks": (pid,),
        "observe": ("--port", "nonsense"),
        "profile": (pid, "--seconds", "0", "-o", "-", "--format", "folded"),
        "ps": (),
        "purge": (pid, "--wait", "0"),
        "record": (pid, "-o", "/dev/null/nowhere"),
        "run": ("--library", "/nowhere", "--", leaker),
        "serve": ("--listen", "nonsense"),
        "stats": (pid,),
        "top": ("--batch", "-n", "1"),
        "watch": (pid, "--interval", "0.1", "-n", "2"),
        "why": (pid,),
    }
    listed = re.findall(r"^  ([a-z]+)  ", tslab.run("--help").split("Options:")[0], re.MULTILINE)
    assert set(listed) == set(asked), listed
    for name, arguments in asked.items():
        done = subprocess.run(
            [tslab.path, name, *arguments],
            env={**os.environ, "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"},
            capture_output=True,
            check=False,
            timeout=30,
        )
        assert b"\x1b" not in done.stdout + done.stderr, name
        child, terminal = on_terminal(tslab, name, *arguments, NO_COLOR="1", TERM="xterm-256color")
        shown = all_shown(terminal)
        os.close(terminal)
        os.waitpid(child, 0)
        assert shown, name
        assert b"\x1b" not in shown, (name, shown)


def main(tslab_path: str, preload: str, leaker: str) -> int:
    tslab = Command(tslab_path)
    with process(leaker, preload=preload) as child:
        assert first_line(child) == "ready\n"
        pid = str(child.pid)
        check_top(tslab, pid)
        check_colours(tslab)
        check_plain(tslab, pid, leaker)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
