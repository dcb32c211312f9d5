"""Catching up: one subscriber, one pubend, from its token to where it can go on with all others [BZA §4.1, R1.23].

The filtering log says which ticks matched; only those are asked for, everything between is silence, and nothing is
filtered again. Where it has nothing to say, the broker asks for all there is and filters once more: below the
subscription's start here, because it came from another broker (R1.32), and where the log was damaged; and, if the
pubend has a lake behind its log, where the filtering log was chopped: what everybody had acknowledged is not gone then.

    token ──── asked for and filtered ────► start ──── read from the filtering log ────► latest_delivered ─► attached

No event is kept here. They are asked for a window ahead of what the subscriber can take, wait in the node's own
knowledge, shared with whoever else wants them, and if they are lost from there they are asked for again. What is kept
are the matches of one reading; the next is wanted when all of it was told (R1.29).

What the pubend has lost is told as a gap that begins where the subscriber stands; so it covers nothing that was told
before it (B1.15), and silence at the end of a reading is told as well, or a token would lag (B1.16).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Tick, Version
from holdfast.storage.filtering_log import Reading
from holdfast.streams.knowledge import Knowledge
from holdfast.streams.tick import Stretch

__all__ = ["READING_MAX", "WINDOW", "CatchUp", "Scheduler"]

#: Why something is lost of which only the filtering log knows: it was chopped where everybody had acknowledged.
ACKNOWLEDGED: Final = "acknowledged"

#: So many matches are read at a time [BZA §5.3].
READING_MAX: Final = 5_000

#: So many events are asked for ahead of what was told.
WINDOW: Final = 1_000

_AGAIN: Final = 32  #: so many of those to be told next are named again and again while they are missing
_FIRST_REACH: Final = (
    1_000_000  #: ticks that are asked for at once where everything is filtered again; then it adapts
)
_REACH_MAX: Final = 1 << 62

Key = TypeVar("Key", bound=Hashable)


class CatchUp:
    """A subscriber's way; where it leads to, ``Constream.attach`` is to be tried after every stretch (B1.13).

    Its token is ``position``, and the filtering log has its matches above ``start``. ``version`` is what it is asked
    under: that of ``Constream.install``, or a later one.

    Invariant: everything up to ``position`` was told. Of (position, _unsure_through] nothing is known; of what follows
    up to ``_known_through`` the ``_matches`` are for the subscriber, and nothing else is.
    """

    def __init__(
        self,
        position: Tick,
        start: Tick,
        version: Version,
        *,
        window: int = WINDOW,
        has_lake: bool = False,
    ) -> None:
        self.position = position
        self._has_lake = has_lake
        self.version = version
        self.window = window
        self._lost_through = position
        self._unsure_through = self._known_through = max(position, start)
        self._matches: Sequence[Tick] = ()
        self._asked = 0  #: so many of the matches were asked for
        self._asked_through = position  #: and where there are none, everything up to here,
        self._reach = _FIRST_REACH  #: so many ticks at a time
        self._is_cut = False  #: that would have been more, had there been more
        self._found = 0  #: events among those,
        self._looked_at = 0  #: and in the last stretch

    # Reading

    @property
    def wants_reading(self) -> bool:
        """Whether all of the last reading was told, and the filtering log should be read on from ``position``."""
        return self.position >= self._known_through

    def on_reading(self, reading: Reading) -> None:
        """What the filtering log says of the ticks above ``position``."""
        assert self.wants_reading
        assert reading.after <= self.position
        self._lost_through = self.position if self._has_lake else reading.lost_through
        self._unsure_through = max(reading.unsure_through, reading.lost_through)
        self._matches = reading.matches
        self._known_through = reading.known_through
        self._asked = 0
        self._asked_through = self.position

    # Asking

    def next_wanted(self, knowledge: Knowledge, room: int, edge: Tick) -> list[Span]:
        """What is to be asked for, if the subscriber can take so many events more, and the pubend has come to ``edge``.

        What is beyond comes by itself: if it were asked for it would be told twice, from then on. Everything is named
        once when it comes into the window, and the next ones to be told whenever they are missing: they may have been
        known, and lost again. Who asked already need not ask again (``Curiosity``).
        """
        window = min(room, self.window)
        if window <= 0 or self.position < self._lost_through:
            return []
        if self.position < self._unsure_through:
            return self._next_range(knowledge, window, min(edge, self._unsure_through))
        at = self._at
        first = at + min(window, _AGAIN)
        ticks = [*self._matches[at:first], *self._matches[max(first, self._asked) : at + window]]
        self._asked = max(self._asked, at + window)
        known = knowledge.known(self.version)
        if not ticks or known.reach(ticks[0] - 1) >= ticks[-1]:
            return []
        return [(tick - 1, tick) for tick in ticks if tick not in known]

    def _next_range(self, knowledge: Knowledge, window: int, upto: Tick) -> list[Span]:
        """The next ticks, as many as will probably fill half a window."""
        if self.position >= self._asked_through and self.position < upto:
            if self._found > window:
                self._reach = max(1, self._reach // 2)
            elif 2 * self._found < window and not self._is_cut:
                self._reach = min(2 * self._reach, _REACH_MAX)
            self._found = 0
            self._is_cut = upto < self.position + self._reach
            self._asked_through = min(upto, self.position + self._reach)
        return knowledge.holes(self.position, self._asked_through, self.version)[:window]

    # Telling

    @property
    def is_sure(self) -> bool:
        """Whether the events of the next stretch are known to match; else they are to be filtered."""
        return self.position >= self._unsure_through

    def next_stretch(self, knowledge: Knowledge, limit: int) -> Stretch | None:
        """What can be told now, with at most ``limit`` events; if not ``is_sure``, filter them first."""
        if self.position < self._lost_through:
            return self._gap(knowledge, self._lost_through)
        return self._sure(knowledge, limit) if self.is_sure else self._unsure(knowledge, limit)

    def _sure(self, knowledge: Knowledge, limit: int) -> Stretch | None:
        at = self._at
        ticks = self._matches[at : at + limit]
        publications = knowledge.events_at(ticks)
        count = len(publications)
        if at + count == len(self._matches):
            return self._stretch(ticks, publications, self._known_through)
        if count:  # the silence up to the next match is told with it: it may be a gap that begins here
            return self._stretch(ticks[:count], publications, ticks[count - 1])
        missing = self._matches[at]
        if missing in knowledge.lost:
            return self._gap(knowledge, knowledge.lost.around(missing)[1])
        if missing in knowledge.known(self.version):
            return self._stretch((), (), missing)  # the log may note a match where there was none (R1.24)
        return None

    def _unsure(self, knowledge: Knowledge, limit: int) -> Stretch | None:
        lost_through = knowledge.lost.reach(self.position)
        if lost_through > self.position:
            return self._gap(knowledge, lost_through)
        upto = min(knowledge.doubt_horizon(self.position, self.version), self._unsure_through)
        upto = next((after for after, _ in knowledge.lost.within(self.position, upto)), upto)
        ticks, publications = knowledge.events(self.position, upto, limit + 1)
        if len(ticks) > limit:
            upto = ticks.pop() - 1
            publications.pop()
        self._looked_at = len(ticks)
        return self._stretch(ticks, publications, upto)

    def _gap(self, knowledge: Knowledge, upto: Tick) -> Stretch:
        reason = knowledge.reason_of(self.position, upto) or ACKNOWLEDGED
        return Stretch(self.position, upto, (), (), upto, reason)

    def _stretch(
        self, ticks: Sequence[Tick], publications: Sequence[Publication], upto: Tick
    ) -> Stretch | None:
        return (
            Stretch(self.position, self.position, ticks, publications, upto) if upto > self.position else None
        )

    def on_told(self, stretch: Stretch) -> None:
        """A stretch was told, filtered where it had to be: that of ``next_stretch``, or one of ``Constream.attach``."""
        assert stretch.after == self.position
        self._found += self._looked_at
        self._looked_at = 0
        self.position = stretch.upto

    @property
    def _at(self) -> int:
        return bisect_right(self._matches, self.position)


class Scheduler:
    """How a budget of events is shared between those who are current and those who catch up (B1.14).

    Catching up must be faster than publishing, or it never ends (I35); and those who are current must not wait for it.
    So each side has its weight, takes what the other leaves, and those who catch up have equal parts.
    """

    def __init__(self, *, current_weight: int = 1, catchup_weight: int = 1) -> None:
        assert current_weight > 0
        assert catchup_weight > 0
        self._weights = current_weight, catchup_weight
        self._turns = 0

    def split(self, budget: int, current: int, behind: Mapping[Key, int]) -> tuple[int, dict[Key, int]]:
        """Of so many events, how many for the consolidated stream, and how many for each that is behind.

        ``current`` and the values of ``behind`` are how many each could use.
        """
        ours = budget * self._weights[0] // sum(self._weights)
        live = min(current, max(ours, budget - sum(behind.values())))
        left = budget - live
        self._turns += 1
        keys = [key for key, wanted in behind.items() if wanted > 0]
        if keys:
            turn = self._turns % len(keys)
            # where it does not come out even, somebody else has more each time
            keys = keys[turn:] + keys[:turn]
        shares = dict.fromkeys(behind, 0)
        while left > 0 and keys:
            part = max(1, left // len(keys))
            for key in keys:
                given = min(part, behind[key] - shares[key], left)
                shares[key] += given
                left -= given
            keys = [key for key in keys if shares[key] < behind[key]]
        return live, shares
