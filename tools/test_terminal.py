"""Tests of terminal.py."""

from __future__ import annotations

import re

import pyte
import terminal


def shown(text: str) -> str:
    screen = pyte.Screen(12, 2)
    pyte.Stream(screen).feed(text)
    return terminal.page_of(screen)


def test_text_stands_where_the_program_put_it() -> None:
    lines = re.sub("<[^>]*>", "", shown("\x1b[2;3Ha<b").split("<pre>")[1]).split("\n")
    assert lines == [" " * 12, "  a&lt;b       ", ""]


def test_colours_and_weight_are_kept() -> None:
    page = shown("\x1b[1;93mloud\x1b[0m \x1b[7mchosen")
    assert '<span style="color:#ffd866;background:#14191f;font-weight:bold">loud</span>' in page
    assert '<span style="color:#14191f;background:#d6deeb">chosen</span>' in page


def test_a_program_is_watched_for_a_while() -> None:
    screen = terminal.watch(["/bin/sh", "-c", "tput cols; sleep 60"], 2, 77, 5)
    assert screen.display[0].strip() == "77"
    assert terminal.size_of(screen) == (720, 114)
