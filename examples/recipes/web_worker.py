"""A web application: each request builds rows, answers with some, and leaves one in a cache."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

KEPT = 2_000
ROWS = 200

cache: OrderedDict[int, str] = OrderedDict()
numbers = count()


def rows_of(number: int) -> list[dict[str, Any]]:
    """What a query might give: text of lengths that differ."""
    return [
        {"id": number + row, "text": "x" * ((number * 31 + row * 17) % 900)} for row in range(ROWS)
    ]


def keep(number: int, text: str) -> None:
    """The oldest row makes room."""
    cache[number] = text
    if len(cache) > KEPT:
        cache.popitem(last=False)


def application(
    environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """The interface that gunicorn calls."""
    del environ
    number = next(numbers)
    rows = rows_of(number)
    keep(number, json.dumps(rows[: 1 + number % 20]))
    body = json.dumps(rows).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
