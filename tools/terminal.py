"""A terminal that nobody sits at: runs a program in one, and has its screen as HTML."""

from __future__ import annotations

import fcntl
import html
import os
import pty
import select
import signal
import struct
import termios
import time
from itertools import groupby
from pathlib import Path

import pyte
from pyte.screens import Char

# A dark terminal's; pyte names a colour, or has six digits of it.
INK, PAPER = "#d6deeb", "#14191f"
COLOURS = {
    "black": "#14191f",
    "red": "#e06c75",
    "green": "#7fb77e",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#d6deeb",
    "brightblack": "#8a94a3",
    "brightbrown": "#ffd866",
}
PAGE = """<!doctype html><meta charset="utf-8"><style>
html {{ background: {paper}; }}
pre {{ margin: 12px; font: 15px/18px "DejaVu Sans Mono", monospace; color: {ink}; }}
</style><pre>{lines}</pre>
"""
# The page's size in pixels follows from its style: 9 and 18 a cell, 12 around.
CELL_WIDTH, CELL_HEIGHT, MARGIN = 9.04, 18, 12


def colour(name: str, otherwise: str) -> str:
    if name == "default":
        return otherwise
    return COLOURS.get(name) or f"#{name}"


def style(cell: Char) -> str:
    ink, paper = colour(cell.fg, INK), colour(cell.bg, PAPER)
    if cell.reverse:
        ink, paper = paper, ink
    weight = ";font-weight:bold" if cell.bold else ""
    return f"color:{ink};background:{paper}{weight}"


def line_of(cells: list[Char]) -> str:
    parts = ((key, "".join(cell.data for cell in run)) for key, run in groupby(cells, style))
    return "".join(f'<span style="{key}">{html.escape(text)}</span>' for key, text in parts)


def page_of(screen: pyte.Screen) -> str:
    rows = ([screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines))
    return PAGE.format(paper=PAPER, ink=INK, lines="\n".join(line_of(row) for row in rows))


def size_of(screen: pyte.Screen) -> tuple[int, int]:
    """Width and height of its page."""
    width = round(screen.columns * CELL_WIDTH) + 2 * MARGIN
    return width, screen.lines * CELL_HEIGHT + 2 * MARGIN


def watch(command: list[str], seconds: float, columns: int, lines: int) -> pyte.Screen:
    """What a program has on the screen after so long; it is gone afterwards."""
    screen = pyte.Screen(columns, lines)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        # Here, because the program may ask at once.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.execve(command[0], command, {**os.environ, "TERM": "xterm-256color"})
    try:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                stream.feed(os.read(terminal, 1 << 16))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    return screen


def write_page(screen: pyte.Screen, path: Path) -> None:
    path.write_text(page_of(screen))
