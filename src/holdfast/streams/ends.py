"""How far the logs of a broker are known to have come, whatever is left of them: what its tables say of that.

A flipped bit in the last commit before a crash looks like a write that was torn, and so does an end that was cut off:
the log itself cannot tell (docs/storage.md). So where it ended is saved to the tables, after it was synced. For the log
of a pubend that is done with its lease, about once a second while there are events; for a filtering log with whatever
is saved. A log that ends below that has lost something, however much it looks as if that had never been whole.

With its lease a pubend saves up to where it is silent. That is a promise for ever, whoever reads it: this life gives no
tick up to there any more, and the next begins above the lease. Pubends of a broker whose logs are read by others save
that while nothing happens, too: for them silence is news.

    pubends       by pubend: what it keeps (``pubend.Kept``), among that up to where its publishers' marks go
    leases        by pubend: ``Leased``
    match_ends    by pubend: how many records its filtering log had
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.storage.files import DiskFailed
from holdfast.storage.tables import Change
from holdfast.streams.store_reads import Row
from holdfast.streams.storing import STAGED

__all__ = [
    "EVENTS",
    "LEASES",
    "MATCHES",
    "MATCH_ENDS",
    "PUBENDS",
    "Ends",
    "Leased",
    "folder_of",
    "match_end",
    "read_ends",
    "read_row",
]

PUBENDS: Final = "pubends"
LEASES: Final = "leases"
MATCH_ENDS: Final = "match_ends"

#: What the folders of logs begin with: those of pubends, and filtering logs.
EVENTS: Final = "events-"
MATCHES: Final = "matches-"


class Leased(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a pubend saves while there are events, or somebody wants to know that there are none."""

    lease: Tick  #: silence may be asserted so far
    stable: Tick = ORIGIN  #: the last event that was on disk by then
    silent: Tick = ORIGIN  #: no event comes up to here that was not on disk by then


_R = TypeVar("_R", Row, Leased, int)

read_row: Final = msgspec.msgpack.Decoder(Row).decode


@dataclass(frozen=True, slots=True)
class Ends:
    """What the tables know, by pubend."""

    rows: dict[str, Row]
    events: dict[str, Tick]  #: up to here there were events on disk
    matches: dict[str, int]  #: so many records were on disk
    silent: dict[str, Tick]  #: up to here no more events come

    def by_folder(self) -> dict[str, int]:
        """The last index of each log, by its folder."""
        events = {folder_of(EVENTS, pubend): end for pubend, end in self.events.items()}
        return events | {folder_of(MATCHES, pubend): end for pubend, end in self.matches.items()}


def folder_of(kind: str, pubend: str) -> str:
    """What the folder of a log is called; what is staged is no pubend's, and has one of that name."""
    return STAGED if pubend == STAGED else kind + quote(pubend, safe="@")


def match_end(pubend: str, records: int) -> Change:
    """A filtering log has so many records on disk."""
    return Change(MATCH_ENDS, pubend, msgspec.msgpack.encode(records))


def read_ends(tables: Mapping[str, Mapping[str, bytes]]) -> Ends:
    """What these tables say.

    :raises DiskFailed: if a row cannot be read.
    """
    rows = _read(tables, PUBENDS, Row)
    leases = _read(tables, LEASES, Leased)
    ends = {pubend: row.upto for pubend, row in rows.items()}
    for pubend, leased in leases.items():
        ends[pubend] = max(leased.stable, ends.get(pubend, ORIGIN))
    silent = {pubend: leased.silent for pubend, leased in leases.items()}
    return Ends(rows, ends, _read(tables, MATCH_ENDS, int), silent)


def _read(tables: Mapping[str, Mapping[str, bytes]], table: str, kind: type[_R]) -> dict[str, _R]:
    found: dict[str, _R] = {}
    for pubend, value in tables.get(table, {}).items():
        try:
            found[pubend] = msgspec.msgpack.decode(value, type=kind)
        except msgspec.MsgspecError as error:
            problem = f"the row of pubend {pubend} in {table} cannot be read: {error}"
            raise DiskFailed("tables", problem) from error
    return found
