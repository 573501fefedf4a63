"""What a request costs in an epoch over the same without one: from rows of the table `epochs`."""

from collections.abc import Mapping

WAYS = (
    ("in an epoch that shares, freed one by one", "own_x"),
    ("each object freed at once", "own_at_once_x"),
    ("freed after its scope was left", "own_freed_late_x"),
    ("in one long epoch that each request enters", "long_x"),
)
PATTERNS = ("steady", "hotspot", "kernel", "burst", "leak")
UNITS = (("request_time", "plain_ns", "ns"), ("request_instructions", "plain_instructions", ""))

REQUEST_HEADINGS = ("a request of 100 objects", "time", "instructions")

Figures = Mapping[str, str]  # ours, by the row's name


def times(ratio: float) -> str:
    return f"{ratio:.2f} x"


def plain_row(ours: Figures) -> list[str]:
    absolute = [f"{float(ours[f'{work} {key}']):,.0f} {unit}" for work, key, unit in UNITS]
    return ["without an epoch", *(text.rstrip() for text in absolute)]


def way_row(ours: Figures, text: str, key: str) -> list[str]:
    return [text, *(times(float(ours[f"{work} {key}"])) for work, _, _ in UNITS)]


def released_row(ours: Figures) -> list[str]:
    """The table has it over a monotonic buffer."""
    over = [
        float(ours[f"{work} released_x"])
        * float(ours[f"{work} {key.replace('plain', 'monotonic')}"])
        / float(ours[f"{work} {key}"])
        for work, key, _ in UNITS
    ]
    return ["released at its end, in memory of its own", *map(times, over)]


def paced_row(ours: Figures, pattern: str) -> list[str]:
    wrapped, plain = (float(ours[f"paced_{pattern}_{way} p50_ns"]) for way in ("wrapped", "plain"))
    return [f"after a pause, at the median: pattern {pattern}", times(wrapped / plain), "-"]


def request_rows(ours: Figures) -> list[list[str]]:
    return [
        plain_row(ours),
        *(way_row(ours, text, key) for text, key in WAYS),
        released_row(ours),
        *(paced_row(ours, pattern) for pattern in PATTERNS),
    ]
