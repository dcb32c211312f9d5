"""Ticks, versions, and items: what brokers tell each other of a pubend.

A tick is a position in a pubend, and always something may be known of it [BZA §3]:

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

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.errors import PeersFault
from holdfast.intervals import Span
from holdfast.messages.publications import Publication

__all__ = ["ABSOLUTE", "ORIGIN", "BadItems", "Items", "Stretch", "Tick", "Version", "checked", "laid_out"]

#: Microseconds of the pubend's clock, made unique; above 0.
Tick = int

#: Before every tick.
ORIGIN: Final = 0

#: How many subscriptions a receiver had added; 0: it wanted nothing.
Version = int

#: Above every version: true for whatever anybody wants, and what somebody asks for who wants *raw* events.
ABSOLUTE: Final = 2**63 - 1


class BadItems(PeersFault):
    """Items that no correct sender says; the session they came on cannot go on."""


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
    lost: Sequence[Span] = ()
    answers: bool = False

    def __len__(self) -> int:
        return len(self.ticks)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """What a subscriber is told at once, or several are: everything there is in (after, upto].

    It is lost up to ``lost_through``; then come these events; all else is silence.
    """

    after: Tick
    lost_through: Tick
    ticks: Sequence[Tick]
    publications: Sequence[Publication]
    upto: Tick


def checked(items: Items) -> Items:
    """The items, if they can be that: one order, nothing said twice.

    :raises BadItems: if not.
    """
    if not len(items.los) == len(items.ticks) == len(items.publications):
        raise BadItems("columns of different lengths")
    before = ORIGIN
    for lo, tick in zip(items.los, items.ticks, strict=True):
        if not before <= lo < tick:
            raise BadItems(f"an item from {lo} to {tick} after {before}")
        before = tick
    if before > ABSOLUTE or not 0 <= items.under <= ABSOLUTE:
        raise BadItems(f"tick {before} under version {items.under}")
    before = ORIGIN
    for after, upto in items.lost:
        if not before <= after < upto <= ABSOLUTE:
            raise BadItems(f"lost from {after} to {upto} after {before}")
        before = upto
    return items


def laid_out(
    parts: Sequence[Span], ticks: Sequence[Tick], publications: Sequence[Publication]
) -> tuple[list[Tick], list[Tick], list[Publication | None]]:
    """The columns that say: all of these parts is known, and nothing in them is wanted but these events.

    The parts ascend, and so do the ticks, which lie in them. Where a part begins nothing is said of what is before it.
    """
    los: list[Tick] = []
    ends: list[Tick] = []
    found: list[Publication | None] = []
    at = 0
    for after, upto in parts:
        beyond = bisect_right(ticks, upto, at)
        if at < beyond:
            los.append(after)
            los += ticks[at : beyond - 1]
            ends += ticks[at:beyond]
            found += publications[at:beyond]
            after = ticks[beyond - 1]
            at = beyond
        if after < upto:
            los.append(after)
            ends.append(upto)
            found.append(None)
    assert at == len(ticks), "an event outside the parts"
    return los, ends, found
