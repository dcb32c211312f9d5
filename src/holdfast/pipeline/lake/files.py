"""Files of a table, as its log tells of them: which rows they have, and between which values.

Delta keeps the least and greatest value of columns with the name of a file, as JSON; here they are the *zones* of it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from deltalake.transaction import AddAction

from holdfast.messages.ticks import Tick

__all__ = ["FIXED_ZONES", "DataFile", "Zone", "file_of", "sync"]

#: The columns besides attributes of which every file has zones.
FIXED_ZONES: Final = ("kind", "pubend", "incarnation", "after", "tick", "topic", "publisher")


class Zone(NamedTuple):
    """The least and the greatest of a column's values, both None if there is none; and how many are NULL."""

    least: Any
    greatest: Any
    nulls: int


class DataFile(NamedTuple):
    """One file of the table: rows of one pubend, ascending, that cover (after, tick]."""

    path: str
    size: int
    rows: int
    pubend: str
    incarnation: int
    after: Tick
    tick: Tick
    zones: Mapping[str, Zone]  #: of columns; those of attributes are called ``a.price``

    def add(self, *, is_new: bool) -> AddAction:
        """What Delta is told of it; ``is_new``: these rows were not in the table before."""
        stats: dict[str, Any] = {"numRecords": self.rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
        for name, zone in self.zones.items():
            outer, _, attribute = name.partition(".")
            for part, value in (
                ("minValues", zone.least),
                ("maxValues", zone.greatest),
                ("nullCount", zone.nulls),
            ):
                if value is not None:
                    if attribute:
                        stats[part].setdefault(outer, {})[attribute] = value
                    else:
                        stats[part][outer] = value
        modified = int(time.time() * 1_000)
        return AddAction(self.path, self.size, {}, modified, is_new, json.dumps(stats))


def file_of(action: Mapping[str, Any]) -> DataFile:
    """A file as Delta tells of it."""
    least, greatest, nulls = (action.get(part) or {} for part in ("min", "max", "null_count"))
    zones: dict[str, Zone] = {}
    for name in FIXED_ZONES:
        if nulls.get(name) is not None:
            zones[name] = Zone(least.get(name), greatest.get(name), nulls[name])
    for name, count in (nulls.get("a") or {}).items():
        if count is not None:
            zones[f"a.{name}"] = Zone(
                (least.get("a") or {}).get(name), (greatest.get("a") or {}).get(name), count
            )
    return DataFile(
        action["path"],
        action["size_bytes"],
        action["num_records"],
        least["pubend"],
        greatest["incarnation"],
        least["after"],
        greatest["tick"],
        zones,
    )


def sync(path: Path) -> None:
    """What was written is on disk, and so is its name."""
    for each in (path, path.parent):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
