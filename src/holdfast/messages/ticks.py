"""Ticks, versions, and items: what brokers tell each other of a pubend [BZA §3].

A tick is a position in a pubend, and always something may be known of it:

    Q   nothing is known
    S   silence: no event at all (S0, *absolute*), or none that the receiver wants (*filtered*, B1.2)
    D   an event
    L   lost: the pubend gave it up

What a receiver wants changes, and silence that was true for the old is not for the new. So the receiver counts: each
subscription it adds makes a *version*, and filtered silence says under which version it is true. Whatever was wanted in
that version is still covered by it, whatever was added later is not. Absolute silence is true under every version.

An **item** is (lo, tick, under): the sender knows every tick in (lo, tick), and none of them is one the receiver wants
in version ``under``; at ``tick`` stands an event, or nothing. What is said together is one ``Items``, by columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from holdfast.intervals import Span
from holdfast.messages.publications import PUBLICATIONS_MAX, Publication

__all__ = [
    "ABSOLUTE",
    "ORIGIN",
    "SPANS_MAX",
    "Follow",
    "Items",
    "Lost",
    "Nack",
    "Start",
    "Taken",
    "Tick",
    "Unfollow",
    "Version",
    "Wants",
]

#: Microseconds of the pubend's clock, made unique; above 0.
Tick = Annotated[int, Meta(ge=0, le=2**63 - 1)]

#: Before every tick.
ORIGIN: Final = 0

#: How many subscriptions a receiver had added; 0: it wanted nothing.
Version = Annotated[int, Meta(ge=0, le=2**63 - 1)]

#: Above every version: true for whatever anybody wants, and what somebody asks for who wants *raw* events.
ABSOLUTE: Final = 2**63 - 1

#: No message names more ranges.
SPANS_MAX: Final = 10_000


class Lost(NamedTuple):
    """Ticks (after, upto] that the pubend has given up, and why."""

    after: Tick
    upto: Tick
    reason: str


@dataclass(frozen=True, slots=True)
class Wants:
    """Whatever the receiver has installed for the sender up to here, is what the sender wants in a version."""

    version: Version


@dataclass(frozen=True, slots=True)
class Taken:
    """On this session the sender has taken in so many bytes of the receiver's events."""

    bytes: Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Follow:
    """The receiver is the sender's way to a pubend: tell it all there is for it from now on."""

    pubend: str


@dataclass(frozen=True, slots=True)
class Unfollow:
    """The sender has another way, or wants nothing any more."""

    pubend: str


@dataclass(frozen=True, slots=True)
class Start:
    """START: on this session nothing will be asserted at or below ``base``."""

    pubend: str
    base: Tick


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """What a sender says at once, by columns; ticks ascend, and no ``lo`` is below the tick before it.

    ``answers``: to a nack; else they go on where the session stood.
    """

    pubend: str
    under: Version
    los: Sequence[Tick]
    ticks: Sequence[Tick]
    publications: Sequence[Publication | None]  #: at each tick; None: silence
    lost: Sequence[Lost] = ()
    answers: bool = False

    def __len__(self) -> int:
        return len(self.ticks)


@dataclass(frozen=True, slots=True)
class Nack:
    """The sender wants to know these ticks, for what it wants in a version, or raw (``ABSOLUTE``)."""

    pubend: str
    version: Version
    spans: Annotated[Sequence[Span], Meta(max_length=SPANS_MAX)]


assert PUBLICATIONS_MAX <= SPANS_MAX
