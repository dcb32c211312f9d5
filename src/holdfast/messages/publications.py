"""How events travel: in batches, each event packed once and never touched again on its way.

A ``Publication`` is the same at every hop. What differs from link to link stands in a ``Copy`` beside it: the
sequence vector and the tags of [KJ], and the ``lo`` of an item (pubend, lo, tick) of a stream. Best-effort needs
none of them, so a copy may be absent. On best-effort and reliable streams the pubend is the publisher and the tick
its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.identity import Element, EventId
from holdfast.messages.subscriptions import PARTITIONS_MAX, VECTOR_MAX

__all__ = [
    "PUBLICATIONS_MAX",
    "Accepted",
    "Batch",
    "Copy",
    "Deliveries",
    "Publication",
    "Publications",
    "Publish",
    "Rejected",
    "Tag",
    "parts_of",
]

#: No message carries more events: one of them must not keep a node busy for long.
PUBLICATIONS_MAX = 10_000

#: Where many are sent at once they are cut into parts of about so much: whoever gets one is soon done with it.
PART_EVENTS_MAX = 1_000
PART_BYTES_MAX = 256 * 1024


class Publication(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event on its way, its content opaque (``events.packed``).

    A Struct, not a dataclass: one is made per event and hop, and the decoder makes it, in C.
    """

    publisher: str
    n: int
    event: bytes

    @property
    def id(self) -> EventId:
        """The identity of the event."""
        return EventId(self.publisher, self.n)


def parts_of(publications: list[Publication]) -> Iterator[list[Publication]]:
    """The parts of a list, in order, each of at least one publication."""
    start = size = 0
    for end, publication in enumerate(publications):
        size += len(publication.event)
        if end > start and (size > PART_BYTES_MAX or end - start == PART_EVENTS_MAX):
            yield publications[start:end]
            start, size = end, len(publication.event)
    if publications:
        yield publications[start:]


@dataclass(slots=True, eq=False)
class Batch:
    """Publications that travel together; messages to many receivers share one batch and pick from it.

    The rest belongs to ``wire``, which writes each publication once for all who get it, and the same share once for all
    who get it one after another.
    """

    publications: list[Publication]
    encoded: list[bytes] | None = None
    ticked: list[bytes] | None = None  #: each publication behind its tick
    # The last share written, of Deliveries and of a Portion: what it said, and the bytes. The messages themselves would
    # make a cycle, and every batch would live until the garbage collector finds it.
    last: tuple[tuple[object, ...], object, bytes] | None = None
    portion: tuple[tuple[object, ...], Sequence[int], bytes] | None = None
    costs: Sequence[int] | None = None  #: what each takes of a subscriber's credit; none of them: one each

    def __len__(self) -> int:
        return len(self.publications)

    def picked(self, at: Sequence[int]) -> Batch:
        """The batch of these positions, which ascend; itself, if they are all."""
        if len(at) == len(self.publications):
            return self
        return Batch([self.publications[i] for i in at])


@dataclass(frozen=True, slots=True)
class Tag:
    """A mark on a publication that passed a partition [KJ §7]; ``bar``: nothing is missing after it."""

    lead: str
    incarnation: int
    number: int
    bar: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """What belongs to one copy on one link, not to the event."""

    lo: int = 0  #: the sender knows every tick of the pubend in (lo, tick), and none is for the receiver
    vector: Annotated[tuple[Element, ...], Meta(max_length=VECTOR_MAX)] = ()
    tags: Annotated[tuple[Tag, ...], Meta(max_length=PARTITIONS_MAX)] = ()


@dataclass(frozen=True, slots=True)
class Publish:
    """A publisher hands events to a broker, in the order of their numbers.

    ``home`` is the broker in whose pubends they are logged, wherever they are handed in; "": the one they are sent to.
    When they were submitted that had ``heard`` of refusals up to a number: what was before it heard is not to be taken
    behind what is refused, or it would be in front of what is submitted again.
    """

    batch: Batch
    home: str = ""
    heard: Annotated[int, Meta(ge=0)] = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """To a publisher: everything up to ``upto`` is accepted; ``duplicates`` among it had been before."""

    upto: int
    duplicates: Annotated[tuple[int, ...], Meta(max_length=PUBLICATIONS_MAX)] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """To a publisher: this event is certainly not accepted; ``code`` is for programs, ``problem`` for people."""

    n: int
    problem: str
    code: str = ""  #: "event": it is at fault itself, and would be refused again; else empty: the network is


@dataclass(frozen=True, slots=True, eq=False)
class Publications:
    """Events from broker to broker: those of the batch at the positions ``at``."""

    stream: str
    batch: Batch
    at: Sequence[int]
    copies: Sequence[Copy | None] | None = None  #: one per position; None: none has any


@dataclass(frozen=True, slots=True, eq=False)
class Deliveries:
    """Events from a broker to a subscriber, each with the subscriber's own numbers of the subscriptions it matched."""

    stream: str
    batch: Batch
    at: Sequence[int]
    subscriptions: Sequence[tuple[int, ...]]  #: one per position
    copies: Sequence[Copy | None] | None = None
