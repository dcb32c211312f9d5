"""What a broker keeps in its tables for durable streams: the rows, and how they are written.

A row has the fields of its class, in order, as MessagePack: more may be added at the end, never taken away.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from holdfast.errors import EnvironmentsFault
from holdfast.messages.durable import Stand
from holdfast.messages.subscriptions import NO_SEAT, Seat
from holdfast.storage.tables import Change
from holdfast.streams.ends import LEASES, PUBENDS, Leased
from holdfast.streams.pubend import Kept

__all__ = [
    "BROKER",
    "ENDED",
    "HOSTED",
    "LEASES",
    "NAME",
    "PLACES",
    "PUBENDS",
    "READERS",
    "REPORTS",
    "DamagedRow",
    "EndedRow",
    "HostedRow",
    "PlaceRow",
    "ReaderRow",
    "ReportRow",
    "change",
    "joined",
    "parted",
    "read",
]

BROKER: Final = "broker"  #: whose all this is, and how many pubends it was told that a stream has
NAME: Final = "name"
REPORTS: Final = "reports"  #: by pubend and broker
HOSTED: Final = "hosted"  #: by pubend
READERS: Final = "readers"  #: by durable name
PLACES: Final = "places"  #: by reader and pubend
ENDED: Final = "ended"  #: by durable name and broker


class DamagedRow(EnvironmentsFault):
    """A row that cannot be read: of another version, or broken."""

    def __init__(self, table: str, key: str, problem: str) -> None:
        super().__init__(f"table {table}, row {key!r}: {problem}")


class ReportRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a broker was known to have released and delivered of a pubend of ours."""

    number: int
    released: int
    delivered: int


class HostedRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a pubend was handed out here, up to where nobody here needs it, and our last report to it."""

    incarnation: int
    delivered: int
    number: int
    created: int
    released: int


class ReaderRow(msgspec.Struct, frozen=True, array_like=True):
    """A durable subscription."""

    number: int
    filter: str
    epoch: int
    moved_from: dict[str, int]
    away_since: int
    stood: dict[str, Stand] | None = None
    is_held: bool = False
    born: tuple[int, str] = (0, "")
    unmerged: list[str] = []
    seat: Seat = NO_SEAT
    is_new: bool = False
    start: int | None = None
    unheard: dict[str, int] = {}


class PlaceRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a durable subscription stands in a pubend."""

    start: int
    released: int
    acknowledged: int


class EndedRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A durable subscription that is over, and may still be at a broker (``Ended``)."""

    epoch: int
    known: int


_Row = TypeVar("_Row", Kept, Leased, ReportRow, HostedRow, ReaderRow, PlaceRow, EndedRow)
_encode: Final = msgspec.msgpack.Encoder().encode


def change(table: str, key: str, row: object | None) -> Change:
    """A row gets another value, or goes."""
    return Change(table, key, None if row is None else _encode(row))


def read(table: str, key: str, value: bytes, kind: type[_Row]) -> _Row:
    """A row.

    :raises DamagedRow: if it is none.
    """
    try:
        return msgspec.msgpack.decode(value, type=kind)
    except msgspec.DecodeError as error:
        raise DamagedRow(table, key, str(error)) from error


def joined(first: object, second: str) -> str:
    """Two things as one key."""
    return f"{first}\n{second}"


def parted(key: str) -> tuple[str, str]:
    """The two things of a key."""
    first, _, second = key.rpartition("\n")  # durable names may have line breaks, brokers and pubends not
    return first, second
