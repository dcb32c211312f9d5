"""What is said of ticks, checked and laid out; and stretches, what subscribers are told [BZA §2].

The words themselves, ticks, versions and items, are in ``messages.ticks``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from holdfast.errors import PeersFault
from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Items, Tick

__all__ = ["BadItems", "Stretch", "checked", "fitting", "laid_out"]


class BadItems(PeersFault):
    """Items that no correct sender says; the session they came on cannot go on."""


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
    reason: str = ""  #: why it is lost


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
    for after, upto, _ in items.lost:
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


def fitting(publications: Sequence[Publication], room: int) -> int:
    """How many of the first go into so many bytes; one does in any case."""
    sizes = [len(publication.event) for publication in publications]
    if sum(sizes) <= room:
        return len(sizes)
    return max(1, bisect_right(list(accumulate(sizes)), room))
