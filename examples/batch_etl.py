"""A batch job: each batch has an epoch, and the totals that stay lie outside.

`python -m tslab run --small-objects examples/batch_etl.py` runs it.
"""

from __future__ import annotations

import tslab

BATCHES = 5
ROWS = 2_000


def read(batch: int) -> list[dict[str, str]]:
    return [{"id": str(row), "name": f"row {row} of {batch}"} for row in range(ROWS)]


def add(totals: dict[str, int], rows: list[dict[str, str]]) -> None:
    with tslab.outside():
        for row in rows:
            totals[row["id"][-1]] = totals.get(row["id"][-1], 0) + len(row["name"])


def main() -> None:
    totals: dict[str, int] = {}
    for batch in range(BATCHES):
        with tslab.epoch("etl batch") as epoch:
            rows = read(batch)
            held = epoch.stats().held_bytes
            add(totals, rows)
            del rows
        print(f"batch {batch}: held {held} bytes, left {epoch.survivors}")
    print(f"totals: {totals}")


if __name__ == "__main__":
    main()
