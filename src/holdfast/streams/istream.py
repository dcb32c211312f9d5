"""One pubend on one session: what a sender asserts, and what a receiver may conclude [BZA §4, design.md §3].

A session goes forward only. It opens with START(base), base being the sender's edge: nothing is asserted at or below
it, and the receiver asks for what it lacks up to there. A relay that hears only later how far the pubend has come says
START again: a pubend at rest has nothing more to tell, and nobody would ask. Then items follow, each (lo, tick]:

    lo = max(last tick asserted on this session, highest tick below that is unknown to the sender)

for a relay that missed something must not turn its ignorance into silence. The receiver sees that ``lo`` is above its
own horizon, and nacks the difference; the relay has it to answer, or asks on. What the relay learns below its edge goes
to those who asked, as answers, and never into the stream.

A sender knows under which of its own versions it knows enough for what the receiver wants in the receiver's version:
``become_version``. The silence it had not said yet was true for the older one, and is said under that.

A new session is a new ``Sender`` and a new ``Receiver``: where the old one stood, and what was asked on it, is
forgotten. What is known, and what is wanted, is kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Items, Start, Tick, Version
from holdfast.streams.knowledge import VERSIONS_MAX, Knowledge
from holdfast.streams.tick import BadItems, checked, laid_out

__all__ = ["Receiver", "Sender"]


class Sender:
    """A pubend as one node tells it to another on one session; made when the session opens.

    Invariant: all of (``_lo``, ``edge``] is known, none of it wanted or lost; the last tick asserted is not above
    ``_lo``.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self.pubend = knowledge.pubend
        #: all there is to say up to here has been said, or is told to whoever asks
        self.edge = knowledge.edge
        self._lo = self.edge
        #: of ours, and of the receiver's that it covers
        self._versions: list[tuple[Version, Version]] = [(0, 0)]
        self._knowledge = knowledge

    # Versions

    @property
    def covered_by(self) -> Version:
        """What is known for this version of ours is enough for the receiver."""
        return self._versions[-1][0]

    @property
    def under(self) -> Version:
        """What the receiver wants, in its own numbers."""
        return self._versions[-1][1]

    def become_version(self, under: Version, covered_by: Version) -> tuple[Items, Tick]:
        """From now on the receiver's version ``under`` is what counts, and ours ``covered_by`` has all of it.

        Returned are the silence that is to be said first, and the install tick: whatever was added with this version
        is owed above it only (B1.1).
        """
        assert covered_by >= self.covered_by
        assert under >= self.under
        silence = self.silence()
        self._versions.append((covered_by, under))
        del self._versions[:-VERSIONS_MAX]
        return silence, self.edge

    def covering(self, under: Version) -> Version:
        """Which of our versions has all that the receiver wants in one of its own; raw, if nobody knows."""
        return next((ours for ours, theirs in self._versions if theirs >= under), ABSOLUTE)

    def under_of(self, version: Version) -> Version:
        """Under which of the receiver's versions an answer is true that is true for one of ours; 0 if nobody knows."""
        if version == ABSOLUTE:
            return ABSOLUTE
        i = bisect_right(self._versions, (version, ABSOLUTE)) - 1
        return self._versions[i][1] if i >= 0 else 0

    # What is said

    @property
    def start(self) -> Start:
        """To be said first, before any items; and again when we ``come_to`` a tick of which we know nothing."""
        return Start(self.pubend, self.edge)

    def come_to(self, tick: Tick) -> Items:
        """The pubend has come to a tick above all we know; the silence to be said before START is said again."""
        assert tick > self.edge >= self._knowledge.edge
        silence = self.silence()
        self.edge = self._lo = tick
        return silence

    def events(self) -> tuple[list[Tick], list[Publication]]:
        """What is new since the last ``pass_on``; which of it the receiver wants is for others to say."""
        return self._knowledge.events(self.edge, self._knowledge.edge)

    def pass_on(
        self, ticks: Sequence[Tick], publications: Sequence[Publication], upto: Tick | None = None
    ) -> Items:
        """What is to be said now; the events are those of ``events()`` that the receiver wants.

        The silence after the last of them is kept back: it is said with the next event, or by ``silence``. What is
        above ``upto`` is to be said later.
        """
        edge = max(self.edge, self._knowledge.edge if upto is None else min(upto, self._knowledge.edge))
        lost = self._knowledge.losses(self.edge, edge)
        parts = self._parts(edge)
        self.edge = edge
        los, ends, found = laid_out(parts, ticks, publications)
        self._lo = self.edge
        if ends and ends[-1] == self.edge and found[-1] is None:
            self._lo = los.pop()
            ends.pop()
            found.pop()
        return Items(self.pubend, self.under, los, ends, found, lost)

    def silence(self) -> Items:
        """The silence that was kept back, if there is any; to be said from time to time, so that horizons move."""
        los, ends = ([self._lo], [self.edge]) if self._lo < self.edge else ([], [])
        self._lo = self.edge
        return Items(self.pubend, self.under, los, ends, [None] * len(los))

    def _parts(self, upto: Tick) -> list[Span]:
        """What we know above the last tick asserted; the silence kept back goes on where new knowledge joins it."""
        known = self._knowledge.known(self.covered_by).within(self.edge, upto)
        parts = [part for span in known for part in self._knowledge.lost.gaps(*span)]
        if self._lo < self.edge:
            if parts and parts[0][0] == self.edge:
                parts[0] = (self._lo, parts[0][1])
            else:
                parts.insert(0, (self._lo, self.edge))
        return parts


class Receiver:
    """A pubend as one node hears it from another on one session."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.edge: Tick | None = None  #: we were told of ticks up to here; None: START has not come
        self._knowledge = knowledge

    def on_start(self, start: Start) -> None:
        """The session begins; or the sender has heard that the pubend had come so far.

        :raises BadItems: if it goes back.
        """
        if start.base < (ORIGIN if self.edge is None else self.edge):
            raise BadItems(f"START at {start.base} of a session at {self.edge}")
        self.edge = start.base

    def on_items(self, items: Items) -> None:
        """Take items in: such as go on where the session stood, or answers.

        :raises BadItems: if the sender did not keep to the order.
        :raises Contradiction: if it tells something else than others did.
        """
        checked(items)
        if not items.answers:
            if self.edge is None:
                raise BadItems("items before START")
            if items.ticks:
                if items.los[0] < self.edge:
                    raise BadItems(f"items from {items.los[0]} on a session at {self.edge}")
                self.edge = items.ticks[-1]
        self._knowledge.add(items)

    def missing(self, horizon: Tick, version: Version) -> list[Span]:
        """What somebody must ask for whose horizon that is: (horizon, base] after START, and whatever was left out."""
        return [] if self.edge is None else self._knowledge.holes(horizon, self.edge, version)
