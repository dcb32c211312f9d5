"""What is staged for epochs, as records of a log, written by a broker's core and read back when it starts.

What one message brings of an attempt is one append: a record that says whose attempt it is, and the events. A crash
leaves all of it or nothing. Nothing says that an attempt is done with: it is forgotten when the epoch is, and what a
crash brings back belongs to an epoch that is done, or is swept in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.staging import Epoch
from holdfast.messages.ticks import Tick
from holdfast.storage.block import Batch
from holdfast.storage.view import LogView
from holdfast.streams.records import read_record
from holdfast.streams.storing import StagedRun

__all__ = ["Whose", "read_whose", "runs_in", "weight", "whose_record"]

#: An event takes so much more in a log than its own bytes and its publisher's name.
OVERHEAD: Final = 48


class Whose(msgspec.Struct, frozen=True, array_like=True):
    """What the first record of every append says of an attempt."""

    epoch: Epoch
    at: Tick  #: when it was staged


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Whose).decode


def whose_record(attempt: str, whose: Whose) -> Publication:
    """The record that stands before events."""
    return Publication(attempt, 0, _encode(whose))


def read_whose(data: bytes) -> Whose | None:
    """What such a record says; None if it is none."""
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return None


def weight(app: str, events: int, size: int) -> int:
    """How many bytes so many events of an application, of this size, take in a log, about."""
    return size + events * (OVERHEAD + len(app.encode()))


def runs_in(view: LogView) -> Iterator[StagedRun]:
    """What a log of staged events holds, one append after the other; what is damaged is not there."""
    found: list[tuple[int, Publication]] = []
    for item in view.scan():
        if not isinstance(item, Batch):
            continue
        for index, record in zip(item.indexes, item.records, strict=True):
            try:
                publication = read_record(record)
            except msgspec.MsgspecError:
                continue
            if publication.n == 0 and found:
                yield _run(found)
                found = []
            if publication.n == 0 or found:  # what stands first may have lost its beginning
                found.append((index, publication))
    if found:
        yield _run(found)


def _run(found: Sequence[tuple[int, Publication]]) -> StagedRun:
    """As far as nothing is missing in it."""
    (first_index, whose), *rest = found
    first = rest[0][1].n if rest else 1
    events = [publication.event for i, (_, publication) in enumerate(rest) if publication.n == first + i]
    span: Span = first_index - 1, found[-1][0]
    return StagedRun(whose.publisher, whose.event, first - 1, len(events), span, sum(map(len, events)))
