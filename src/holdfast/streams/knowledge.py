"""What a node knows of one pubend: Q, S, D and L, as ranges and the events in them [BZA §3, R1.11].

Knowledge is a lattice, Q below S under an older version below S under a newer one below S0 and D, and L above all:
facts may come in any order and any number of times (I20). Giving up what is known is no fact but a deed: ``forget`` and
``trim`` make it Q again, never S, so a cache may lose anything and nothing goes wrong by it (R1.3).

Silence is relative to what was wanted (B1.2): a tick may be known for one version and not for a later one. So there is
one set of ranges per version in use, each holding what is known *for* it: D, L, S0, and S under it or a later one. A
question about a version is one about the lowest set that is not below it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from holdfast.errors import PeersFault
from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Items, Lost, Tick, Version

__all__ = ["KEEPING_BYTES", "RANGES_MAX", "VERSIONS_MAX", "Contradiction", "Knowledge"]

#: So many versions are told apart; what was silent under older ones only is Q again, and asked for under a later one.
VERSIONS_MAX: Final = 64

#: So many ranges a version has after ``trim``.
RANGES_MAX: Final = 10_000


#: What it takes to keep an event, besides its bytes; measured: 270 of many that came together, 350 of one alone.
KEEPING_BYTES: Final = 350


class Contradiction(PeersFault):
    """Two facts of one tick that cannot both be true (I20): somebody is wrong, and nobody can tell who."""

    def __init__(self, pubend: str, tick: Tick, known: Publication | None, told: Publication | None) -> None:
        super().__init__(f"{pubend}@{tick}: known as {_named(known)}, told as {_named(told)}")
        self.pubend = pubend
        self.tick = tick
        self.known = known
        self.told = told


class Knowledge:
    """One pubend at one node.

    Invariants: the set of a version contains that of every later one; ``_ticks`` are those of ``_events``, ascending;
    no event lies in ``lost``.
    """

    def __init__(self, pubend: str) -> None:
        self.pubend = pubend
        self.edge = ORIGIN  #: the highest tick anything was ever known of
        self.bytes = 0  #: of memory that events take
        self.lost = Intervals()  #: L: what was released is a prefix; a damaged or restored log may lack more
        self._reasons: list[Lost] = []  #: the same in pieces, ascending, each with why
        self._silent = Intervals()  #: S0
        self._events: dict[Tick, Publication] = {}  #: in the order they came
        self._ticks: list[Tick] = []
        self._versions: list[Version] = [ABSOLUTE]  #: in use, ascending
        self._known: dict[Version, Intervals] = {ABSOLUTE: Intervals()}

    @property
    def average_bytes(self) -> int:
        """How large an event is, of those that are kept; 0: none is."""
        return self.bytes // len(self._events) - KEEPING_BYTES if self._events else 0

    # Facts

    def add(self, items: Items) -> None:
        """Take in what somebody told us.

        :raises Contradiction: if an event, or absolute silence, is not what we know.
        """
        pairs = [pair for pair in zip(items.ticks, items.publications, strict=True) if pair[1] is not None]
        ticks: list[Tick] = [tick for tick, _ in pairs]
        publications = [publication for _, publication in pairs if publication is not None]
        runs = _runs(items)
        silences = runs if items.under < ABSOLUTE else _between(runs, ticks)
        if runs and runs[0][0] >= self.edge:
            self._put(ticks, publications)
        else:
            self.add_events(ticks, publications)  # before the silence around them: either may raise
            self._refute(silences, items.under)
        self._hush(silences, items.under)
        for lost in items.lost:
            self.add_lost(*lost)

    def extend(self, after: Tick, ticks: range, publications: Sequence[Publication]) -> None:
        """D, and S0 before: what the pubend itself appends, tick by tick, above everything that is known."""
        assert self.edge <= after < ticks[0]
        self._events.update(zip(ticks, publications, strict=True))
        self.bytes += _weight(publications)
        self._ticks += ticks
        if after < ticks[0] - 1:
            self._silent.add(after, ticks[0] - 1)
        for known in self._known.values():
            known.add(after, ticks[-1])
        self.edge = ticks[-1]

    def pass_over(self, upto: Tick) -> None:
        """There are facts up to a tick, above everything that is known, and nobody here keeps them: they are Q."""
        assert self.edge < upto
        self.edge = upto

    def add_silence(self, after: Tick, upto: Tick, under: Version = ABSOLUTE) -> None:
        """S: nothing in (after, upto], or nothing that was wanted in a version.

        :raises Contradiction: if an event is known where there is said to be none at all.
        """
        if after < upto:
            self._refute([(after, upto)], under)
            self._hush([(after, upto)], under)

    def _refute(self, spans: Sequence[Span], under: Version) -> None:
        if under == ABSOLUTE:
            for after, upto in spans:
                i = bisect_right(self._ticks, after)
                if i < len(self._ticks) and self._ticks[i] <= upto:
                    raise Contradiction(self.pubend, self._ticks[i], self._events[self._ticks[i]], None)

    def _hush(self, spans: Sequence[Span], under: Version) -> None:
        """Silence that contradicts nothing, in ranges that ascend."""
        if not spans:
            return
        if under == ABSOLUTE:
            self._silent.add_all(spans)
        self._level(under)
        for version in self._versions[: bisect_right(self._versions, under)]:
            self._known[version].add_all(spans)
        self.edge = max(self.edge, spans[-1][1])

    def add_events(self, ticks: Sequence[Tick], publications: Sequence[Publication]) -> None:
        """D: events, their ticks ascending.

        :raises Contradiction: if another event, or absolute silence, is known there.
        """
        new: list[Tick] = []
        for tick, publication in zip(ticks, publications, strict=True):
            if tick in self._events:
                if self._events[tick] != publication:
                    raise Contradiction(self.pubend, tick, self._events[tick], publication)
            elif tick not in self.lost:
                if tick in self._silent:
                    raise Contradiction(self.pubend, tick, None, publication)
                new.append(tick)
        if len(new) < len(ticks):
            told = dict(zip(ticks, publications, strict=True))
            publications = [told[tick] for tick in new]
        self._put(new, publications)

    def _put(self, ticks: list[Tick], publications: Sequence[Publication]) -> None:
        """Events that were not known."""
        if not ticks:
            return
        self._events.update(zip(ticks, publications, strict=True))
        self.bytes += _weight(publications)
        i = bisect_right(self._ticks, ticks[0])
        self._ticks[i:i] = ticks
        if i + len(ticks) < len(self._ticks) and self._ticks[i + len(ticks)] < ticks[-1]:
            self._ticks.sort()
        for known in self._known.values():
            known.add_ticks(ticks)
        self.edge = max(self.edge, ticks[-1])

    def add_lost(self, after: Tick, upto: Tick, reason: str = "") -> None:
        """L: the pubend has nothing there any more. It stands above whatever else was known (R1.11).

        What was lost already keeps the reason it had.
        """
        for piece in self.lost.gaps(after, upto):
            self._note_reason(Lost(*piece, reason))
        self.lost.add(after, upto)
        self._silent.remove(after, upto)
        self._drop(bisect_right(self._ticks, after), bisect_right(self._ticks, upto))
        for known in self._known.values():
            known.add(after, upto)
        self.edge = max(self.edge, upto)

    def _note_reason(self, lost: Lost) -> None:
        i = bisect_left(self._reasons, lost)
        if i and self._reasons[i - 1][1:] == (lost.after, lost.reason):
            i -= 1
            lost = Lost(self._reasons.pop(i).after, lost.upto, lost.reason)
        if i < len(self._reasons) and (self._reasons[i].after, self._reasons[i].reason) == lost[1:]:
            lost = Lost(lost.after, self._reasons.pop(i).upto, lost.reason)
        self._reasons.insert(i, lost)

    # Questions

    def losses(self, after: Tick, upto: Tick) -> list[Lost]:
        """What is lost of a range, with the reasons."""
        i = max(0, bisect_left(self._reasons, (after + 1,)) - 1)
        found = []
        for lost in self._reasons[i:]:
            if lost.after >= upto:
                break
            if lost.upto > after:
                found.append(Lost(max(after, lost.after), min(upto, lost.upto), lost.reason))
        return found

    def reason_of(self, after: Tick, upto: Tick) -> str:
        """Why a range is lost, in words."""
        return ", ".join(dict.fromkeys(lost.reason for lost in self.losses(after, upto) if lost.reason))

    def known(self, version: Version = ABSOLUTE) -> Intervals:
        """What is not Q for somebody who wants what was wanted in a version; not to be changed."""
        return self._known[self._versions[bisect_left(self._versions, version)]]

    def asked_under(self, version: Version) -> Version:
        """Under which version to ask for what is Q in one: silence under an older one than all of ours is not kept."""
        return version if len(self._versions) < VERSIONS_MAX else max(version, self._versions[0])

    def doubt_horizon(self, after: Tick, version: Version = ABSOLUTE) -> Tick:
        """The highest tick such that nothing in (after, it] is Q (R1.18)."""
        return self.known(version).reach(after)

    def holes(self, after: Tick, upto: Tick, version: Version = ABSOLUTE) -> list[Span]:
        """The Qs of a range."""
        return self.known(version).gaps(after, upto)

    def events(
        self, after: Tick, upto: Tick, limit: int | None = None
    ) -> tuple[list[Tick], list[Publication]]:
        """The first events of a range that are known."""
        first, beyond = bisect_right(self._ticks, after), bisect_right(self._ticks, upto)
        ticks = self._ticks[first : beyond if limit is None else min(beyond, first + limit)]
        return ticks, [self._events[tick] for tick in ticks]

    def events_at(self, ticks: Sequence[Tick]) -> list[Publication]:
        """The events at these ticks, as far as they are known one after the other."""
        found: list[Publication] = []
        for tick in ticks:
            event = self._events.get(tick)
            if event is None:
                break
            found.append(event)
        return found

    # Deeds

    def forget(self, upto: Tick) -> None:
        """Whatever was known up to a tick is Q again, but for what is lost."""
        self._drop(0, bisect_right(self._ticks, upto))
        self._silent.remove(ORIGIN, upto)
        lost = self.lost.within(ORIGIN, upto)
        for known in self._known.values():
            known.remove(ORIGIN, upto)
            for span in lost:
                known.add(*span)
        self._join_versions()

    def trim(self, cache_bytes: int) -> None:
        """Keep no more events than that, those that came last, and not too many ranges (R1.4)."""
        if self.bytes > cache_bytes:
            self._evict(cache_bytes - cache_bytes // 64)  # a little at a time: nobody waits long for it
        for known in list(self._known.values()):
            if len(known) > RANGES_MAX + len(self._events):
                self.forget(list(known)[len(known) // 2][0])

    def keep_versions(self, needed: Iterable[Version]) -> None:
        """Nobody asks for any other version, but for the last: what was silent for others only is Q again.

        Each costs as much as all others with every fact; so those that are not needed any more should go soon.
        """
        if len(self._versions) > 2:
            found = {self._versions[bisect_left(self._versions, version)] for version in needed}
            self._versions = sorted(found | {self._versions[-2], ABSOLUTE})
            self._known = {version: self._known[version] for version in self._versions}

    def _evict(self, cache_bytes: int) -> None:
        while self.bytes > cache_bytes:
            excess = self.bytes - cache_bytes
            count = 1 + len(self._events) * excess // self.bytes  # as many as would do if all were alike
            evicted = sorted(islice(self._events, count))
            if evicted == self._ticks[: len(evicted)]:
                self.forget(evicted[-1])
                continue
            gone = Intervals()
            gone.add_ticks(evicted)
            for version in self._versions:
                self._known[version] = self._known[version].difference(gone)
            self._remove(evicted)
            self._ticks = sorted(self._events)

    def _drop(self, first: int, beyond: int) -> None:
        self._remove(self._ticks[first:beyond])
        del self._ticks[first:beyond]

    def _remove(self, ticks: Sequence[Tick]) -> None:
        removed = list(map(self._events.pop, ticks))
        self.bytes -= _weight(removed)

    def _level(self, version: Version) -> None:
        """See to it that a version has its set."""
        i = bisect_left(self._versions, version)
        if self._versions[i] != version:
            self._known[version] = self._known[self._versions[i]].copy()
            self._versions.insert(i, version)
            if len(self._versions) > VERSIONS_MAX:
                del self._known[self._versions.pop(0)]

    def _join_versions(self) -> None:
        """A version for which nothing more is known than for the next one needs no set of its own."""
        for lower, higher in zip(self._versions[:-1], self._versions[1:], strict=True):
            if self._known[lower] == self._known[higher]:
                del self._known[lower]
        self._versions = sorted(self._known)


def _weight(publications: Sequence[Publication]) -> int:
    return KEEPING_BYTES * len(publications) + sum([len(publication.event) for publication in publications])


def _runs(items: Items) -> list[Span]:
    """What items speak of, those joined that go on where the last one ended."""
    runs: list[Span] = []
    for lo, tick in zip(items.los, items.ticks, strict=True):
        if runs and runs[-1][1] == lo:
            runs[-1] = runs[-1][0], tick
        else:
            runs.append((lo, tick))
    return runs


def _between(runs: Sequence[Span], ticks: Sequence[Tick]) -> list[Span]:
    """The runs without these ticks."""
    events = Intervals()
    events.add_ticks(ticks)
    return [span for after, upto in runs for span in events.gaps(after, upto)]


def _named(publication: Publication | None) -> str:
    return "silence" if publication is None else str(publication.id)
