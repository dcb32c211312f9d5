"""Durable streams, besides what is known of ticks (``messages.ticks``): letters between brokers, and what clients hear.

**Letters** go from one broker to another, named, however far; the brokers between pass them on, and whoever finds no
way drops them: every letter is repeated until it is answered. **Portions** are what a subscriber gets: for each of its
subscriptions, of each pubend, everything in order, as much as it has given credit for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Rejected
from holdfast.messages.subscriptions import NO_SEAT, TOKEN_PLACES_MAX, Name, Number, Seat
from holdfast.messages.ticks import Tick

__all__ = [
    "BEGIN",
    "Acknowledge",
    "Admit",
    "Admitted",
    "Answers",
    "Claim",
    "Credit",
    "Detach",
    "Ended",
    "Fetch",
    "Fetched",
    "Letter",
    "Logged",
    "Moved",
    "MovedTaken",
    "Ousted",
    "Portion",
    "Report",
    "Reported",
    "Requests",
    "Resign",
    "Run",
    "Saved",
    "Stand",
    "Withheld",
]

#: The ``previous`` of a request before which nothing of its publisher is under way from here.
BEGIN: Final = -1


# Letters


@dataclass(frozen=True, slots=True)
class Letter:
    """From one broker to another."""

    to: str
    origin: str


@dataclass(frozen=True, slots=True, eq=False)
class Requests(Letter):
    """Publications to be logged; each with the number its publisher sent to this pubend before it, or ``BEGIN``.

    When they were sent that had ``heard`` of refusals up to a number (``Publish``).
    """

    pubend: str
    previous: Sequence[int]
    batch: Batch
    heard: int = 0


class Run(NamedTuple):
    """``length`` events with consecutive numbers, from ``n``, have consecutive ticks, from ``tick``; 0: long ago."""

    n: Number
    tick: Tick
    length: Number


@dataclass(frozen=True, slots=True)
class Answers(Letter):
    """What became of one publisher's requests at a pubend.

    ``logged`` is on disk, ``repeats`` had been before; ``refused`` certainly is not, and why. ``hole``: what follows
    this number is to be sent again.
    """

    pubend: str
    incarnation: Number
    publisher: str
    logged: Annotated[tuple[Run, ...], Meta(max_length=PUBLICATIONS_MAX)] = ()
    repeats: Annotated[tuple[Run, ...], Meta(max_length=PUBLICATIONS_MAX)] = ()
    refused: Annotated[tuple[Rejected, ...], Meta(max_length=PUBLICATIONS_MAX)] = ()
    hole: int | None = None


@dataclass(frozen=True, slots=True)
class Admit(Letter):
    """The sender has subscribers for a pubend now, and wants to be waited for before anything is given up.

    ``since``: what is above that tick is for them, as far as it is still there; None: from now on.
    """

    pubend: str
    since: Tick | None


@dataclass(frozen=True, slots=True)
class Admitted(Letter):
    """From now on nothing above ``tick`` is given up without the sender of ``Admit``.

    ``number`` is that of its last report, which it may have forgotten; up to ``created`` there never was anything.
    """

    pubend: str
    incarnation: Number
    tick: Tick
    number: Number
    created: Tick


@dataclass(frozen=True, slots=True)
class Report(Letter):
    """What a subscriber-hosting broker has released and delivered of a pubend; ``number`` grows over all its lives."""

    pubend: str
    number: Number
    released: Tick
    delivered: Tick


@dataclass(frozen=True, slots=True)
class Reported(Letter):
    """A report counts. The incarnation of the pubend may be another since it was last told."""

    pubend: str
    number: Number
    incarnation: Number


@dataclass(frozen=True, slots=True)
class Resign(Letter):
    """The sender has no subscribers for a pubend any more."""

    pubend: str
    number: Number  #: as of a report


@dataclass(frozen=True, slots=True)
class Claim(Letter):
    """Somebody has consumed a pubend up to a tick. If it never came so far, its log is an older one's copy."""

    pubend: str
    tick: Tick


@dataclass(frozen=True, slots=True)
class Fetch(Letter):
    """A durable subscription is to be read at the sender: where does the receiver know it to stand.

    It is for a client that comes anew; or that was interrupted, had this ``seat``, and read what was ``born`` so: then
    the answer may be ``Withheld``. Or it is at the sender already, since an ``epoch``: for whom it was seated last, and
    as what it was born.
    """

    durable: str
    seat: Seat = NO_SEAT
    born: tuple[Number, Name] | None = None
    epoch: Number = 0  #: 0: it is not


class Stand(NamedTuple):
    """Where a durable subscription stands in a pubend: it began, it has acknowledged, and it needs nothing below."""

    start: Tick
    acknowledged: Tick
    released: Tick


@dataclass(frozen=True, slots=True)
class Fetched(Letter):
    """By pubend, where it stands; None: the sender does not have it any more.

    It came there in that ``epoch``. It was ``born`` in another, at the broker ``born_at``, and may have moved since; 0:
    its client said where it stood. It was to ``start`` at a tick, or when it was made.
    """

    durable: str
    places: Annotated[Mapping[str, Stand], Meta(max_length=TOKEN_PLACES_MAX)] | None
    epoch: Number = 0
    born: Number = 0
    born_at: str = ""
    seat: Seat = NO_SEAT
    start: Number | None = None


@dataclass(frozen=True, slots=True)
class Withheld(Letter):
    """The sender has a durable subscription, but not for a client that was interrupted and had this ``seat``."""

    durable: str
    seat: Seat
    reason: str


@dataclass(frozen=True, slots=True)
class Moved(Letter):
    """A durable subscription is at the sender now, under a higher ``epoch``: the receiver need not keep it."""

    durable: str
    epoch: Number
    seat: Seat = NO_SEAT  #: of who reads it there, or did last


@dataclass(frozen=True, slots=True)
class Ended(Letter):
    """A durable subscription was ended: the receiver need not keep it for who had come to it until then.

    That was in an ``epoch``, by the sender's clock; and by any other ``ago``, or longer: so much later it was sent.
    Whoever had come as late as was ``known`` had come before the end, by whichever clock that was.
    """

    durable: str
    epoch: Number
    known: Number = 0
    ago: Number = 0  #: in microseconds


@dataclass(frozen=True, slots=True)
class MovedTaken(Letter):
    """Who was told ``Moved`` or ``Ended`` does not have it any more, or under a higher epoch still, or begun anew."""

    durable: str
    epoch: Number


# Clients


@dataclass(frozen=True, slots=True, eq=False)
class Portion:
    """To a subscriber: how one subscription goes on in one pubend, from where its last portion ended.

    It is lost up to ``lost_through``, for a reason, if that is not below where it stood; then come the publications of
    the batch at the positions ``at``, with their ticks; and up to ``upto`` there is nothing else.
    """

    subscription: int  #: the client's own number
    pubend: str
    incarnation: Number
    batch: Batch
    ticks: Sequence[Tick]  #: of the whole batch
    at: Sequence[int]
    upto: Tick
    lost_through: Tick = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Credit:
    """A subscriber has room for so many more events; a large one takes the room of several (``credit``)."""

    subscription: int
    count: Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """A subscriber has consumed everything up to these ticks, by pubend; with a ``number`` it wants to hear of it."""

    subscription: int
    places: Annotated[Mapping[str, Tick], Meta(max_length=TOKEN_PLACES_MAX)]
    number: Number = 0


@dataclass(frozen=True, slots=True)
class Saved:
    """What was acknowledged under a number is on disk."""

    subscription: int
    number: Number


@dataclass(frozen=True, slots=True)
class Detach:
    """A durable subscription is not read any more for now; it is kept. ``Withdrawn`` answers."""

    subscription: int


@dataclass(frozen=True, slots=True)
class Ousted:
    """Somebody else reads this durable subscription now."""

    subscription: int
    reason: str


@dataclass(frozen=True, slots=True)
class Logged:
    """To a publisher: these events are on disk, and where; ``Accepted`` follows. ``repeats`` had been logged before."""

    pubend: str
    incarnation: Number
    runs: Annotated[tuple[Run, ...], Meta(max_length=PUBLICATIONS_MAX)]
    repeats: Annotated[tuple[Run, ...], Meta(max_length=PUBLICATIONS_MAX)] = ()
