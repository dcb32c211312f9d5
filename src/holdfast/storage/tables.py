"""Small tables that change in transactions: who is subscribed, what was released, up to where the network was heard.

What belongs together changes together or not at all, and is on disk when ``apply`` returns. Tables are read whole,
once, at start: whoever owns them has them in memory, and only writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.storage.files import DiskFull

__all__ = ["Change", "SimulatedTables", "Tables"]


class Change(NamedTuple):
    """A row gets another value, or goes."""

    table: str
    key: str
    value: bytes | None


class Tables(Protocol):
    """The tables of one node.

    :raises DiskFailed: from every method, if the disk does not do as it is told; of ``apply`` nobody knows then.
    """

    def names(self) -> list[str]:
        """The tables that have rows, sorted."""

    def read(self, table: str) -> dict[str, bytes]:
        """All rows of a table, by key; none if there is no such table."""

    def apply(self, changes: Sequence[Change]) -> None:
        """Make changes, all or none, for good. Of two to one row the later counts.

        :raises DiskFull: if there is no room, and nothing was changed.
        """


class SimulatedTables:
    """Tables that outlive a simulated node's crashes; ``is_full`` says that there is no room."""

    def __init__(self) -> None:
        self.is_full = False
        self._tables: dict[str, dict[str, bytes]] = {}

    def names(self) -> list[str]:
        """Those that have rows."""
        return sorted(name for name, rows in self._tables.items() if rows)

    def read(self, table: str) -> dict[str, bytes]:
        """A copy."""
        return dict(self._tables.get(table, {}))

    def apply(self, changes: Sequence[Change]) -> None:
        """All or none."""
        if self.is_full and any(change.value is not None for change in changes):
            raise DiskFull("tables")
        for table, key, value in changes:
            rows = self._tables.setdefault(table, {})
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
