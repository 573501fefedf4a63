"""A memory allocator that knows which work has which memory.

`python -m tslab run script.py` starts a script on it. In the script, `tslab.epoch("etl batch")`
names a piece of work; `tslab.stats()` and `tslab.epochs()` say what the memory is made of.
docs/python.md of the repository is the guide.
"""

from tslab._epochs import Epoch, Place, Survivors, epoch, epoch_of, outside
from tslab._library import NotLoadedError, TslabError
from tslab._statistics import (
    EpochStats,
    State,
    Stats,
    captures_malloc,
    epoch_stats,
    epochs,
    option,
    report,
    set_option,
    stats,
    trim,
    version,
)

__all__ = [
    "Epoch",
    "EpochStats",
    "NotLoadedError",
    "Place",
    "State",
    "Stats",
    "Survivors",
    "TslabError",
    "captures_malloc",
    "epoch",
    "epoch_of",
    "epoch_stats",
    "epochs",
    "option",
    "outside",
    "report",
    "set_option",
    "stats",
    "trim",
    "version",
]
