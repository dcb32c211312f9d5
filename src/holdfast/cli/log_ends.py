"""Up to where the logs of a broker must go: what its tables say, read without disturbing it.

They are read before the logs are: a broker that runs beside us saves where a log ends only after it has written it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.errors import EnvironmentsFault
from holdfast.runtime.real_store import TABLES_FILE
from holdfast.runtime.tables_copy import TablesCopy
from holdfast.streams.ends import read_ends

__all__ = ["KnownEnds", "known_ends"]


@dataclass(frozen=True, slots=True)
class KnownEnds:
    """The last index each log in a folder has had on disk, by its name; ``unknown`` is why that cannot be said.

    ``is_damage``: there are tables, and they cannot be read. Whoever has copied the logs alone has none.
    """

    by_log: Mapping[str, int] = field(default_factory=dict)
    unknown: str | None = None
    is_damage: bool = False

    def of(self, log: str) -> int:
        """The last index of one log; 0 if nothing is known of it."""
        return self.by_log.get(log, 0)


def known_ends(folder: Path) -> KnownEnds:
    """What the tables in a folder know of the logs in it."""
    try:
        tables = TablesCopy(folder).read()
        if tables is None:
            return _missing(folder)
        # A broker saves its name before it makes a log.
        if not tables and any(each.is_dir() for each in folder.iterdir()):
            return KnownEnds(unknown=f"{TABLES_FILE}: there is nothing in it", is_damage=True)
        return KnownEnds(read_ends(tables).by_folder())
    except EnvironmentsFault as fault:
        return KnownEnds(unknown=str(fault), is_damage=True)


def _missing(folder: Path) -> KnownEnds:
    left = sorted(each.name for each in folder.glob(f"{TABLES_FILE}-*"))
    if left:
        return KnownEnds(unknown=f"{TABLES_FILE} is missing, and {left[0]} is there", is_damage=True)
    return KnownEnds(unknown=f"there is no {TABLES_FILE} beside it")
