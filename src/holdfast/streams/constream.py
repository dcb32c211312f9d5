"""The consolidated stream of one pubend: one stream for all subscribers of a broker that are current [BZA §4.1].

    latest_delivered  ≤  handed  ≤  horizon          no Q in (latest_delivered, horizon] (R1.18)

Events up to the horizon are matched once for everybody, in order. Those whose subscriber is *attached* go out at once:
delivery to a subscriber is complete when it is enqueued. Who matched what goes to the filtering log as well, for all
durable subscribers, attached or not, and that is complete only when it is on disk (R1.19). Up to ``handed`` the first
was done, up to ``latest_delivered`` both. What is in between is kept, so that a subscriber that has caught up to
``latest_delivered`` can be attached in the same step: nothing is missed, nothing comes twice (B1.13).

A subscription counts from its start on, max(handed, install tick): what was filtered before it was installed was never
promised (B1.1). So silence must be known under *its* version only above its start.

Here nobody should ever see a gap (R1.20). A broker that was taken out of the release minima and comes back does, and so
does one whose pubend lost its log; then all are told, and the filtering log notes the first lost tick for everybody.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.intervals import Span
from holdfast.messages.durable import Stand
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Tick, Version
from holdfast.streams.knowledge import Knowledge
from holdfast.streams.tick import Stretch

__all__ = ["UNSTABLE_MAX", "Constream", "Handing"]

#: So many stretches may wait for the filtering log.
UNSTABLE_MAX: Final = 2_048


@dataclass(frozen=True, slots=True, eq=False)
class Handing:
    """What is to be done with a stretch: positions of events by attached subscriber, and records for the filtering log.

    If it begins with a gap, ``gaps`` are those to be told, each from where it stands, before anything else.
    """

    stretch: Stretch
    gaps: Sequence[tuple[int, Tick]]
    deliveries: dict[int, list[int]]
    records: Sequence[tuple[Tick, Sequence[int]]]


@dataclass(slots=True)
class _Subscriber:
    start: Tick  #: nothing at or below it is delivered from here
    acknowledged: Tick
    released: Tick  #: nothing at or below it is for it, or it was acknowledged (R1.18)
    told: Tick  #: the last tick it was told of
    matched: Tick = ORIGIN  #: of the last match that was noted for it
    is_held: bool = False  #: somebody was told where it stands, and goes on from there

    @property
    def is_done(self) -> bool:
        """Whether it has acknowledged all that ever was for it: what follows was silence, and nobody waits for that."""
        return not self.is_held and self.released >= self.start and self.released >= self.matched


class Constream:
    """One pubend at one subscriber-hosting broker. Subscribers are numbers, as in the filtering log.

    To be saved and restored: ``latest_delivered``, and each subscriber's start and what it has released (R1.21). After
    a restart the filtering log is to be advanced to ``latest_delivered``: whatever matched up to there is in it.
    """

    def __init__(self, knowledge: Knowledge, latest_delivered: Tick) -> None:
        self.latest_delivered = latest_delivered
        self.handed = latest_delivered
        self._knowledge = knowledge
        self._subscribers: dict[int, _Subscriber] = {}
        self._attached: dict[int, _Subscriber] = {}
        self._behind: dict[int, Tick] = {}  #: those who are here and catch up, and up to where they were told
        #: those that are not durable: not logged, and they pin what they have not had
        self._passing: set[int] = set()
        self._version: Version = 0  #: what is wanted just above ``handed``,
        self._steps: list[tuple[Tick, Version]] = []  #: and what in addition above a later tick, ascending
        self._late: dict[int, Tick] = {}  #: subscribers whose start is above ``handed``
        self._ahead: dict[int, Tick] = {}  #: attached ones that were told more, before a crash
        self._unstable: deque[tuple[Stretch, Sequence[Sequence[int]]]] = deque()

    # Subscribers

    def install(
        self,
        subscriber: int,
        version: Version,
        install_tick: Tick,
        *,
        token: Tick | None = None,
        acknowledged: Tick | None = None,
        is_durable: bool = True,
        is_held: bool = False,
    ) -> Tick:
        """A subscription is confirmed: from now on its matches are noted. Its start (B1.1).

        One that moved here brings its ``token``: it has released no more than that, and catches up to its start. What
        it has ``acknowledged`` may be less, if what followed was silence.
        """
        start = max(self.handed, install_tick)
        if not is_durable:
            self._passing.add(subscriber)
        released = start if token is None else token
        if acknowledged is not None:
            acknowledged = min(acknowledged, released)
        self.restore(subscriber, version, start, released, acknowledged=acknowledged, is_held=is_held)
        return start

    def restore(
        self,
        subscriber: int,
        version: Version,
        start: Tick,
        released: Tick,
        *,
        acknowledged: Tick | None = None,
        matched: Tick = ORIGIN,
        is_held: bool = False,
    ) -> None:
        """After a restart: a durable subscription that was here before; its last match is in the filtering log."""
        acknowledged = released if acknowledged is None else acknowledged
        self._subscribers[subscriber] = _Subscriber(start, acknowledged, released, released, matched, is_held)
        if start > self.handed:
            self._late[subscriber] = start
            insort(self._steps, (start, version))
        else:
            self._version = max(self._version, version)

    def attach(self, subscriber: int, position: Tick) -> list[Stretch] | None:
        """Let a subscriber that was told everything up to ``position`` go on here; None if it must catch up first.

        Test and switch are one step (B1.13). What was handed to others meanwhile is returned, and is to be told first.
        """
        known = self._subscribers[subscriber]
        if position < max(self.latest_delivered, known.start):
            return None
        known.told = max(known.told, position)
        if position > self.handed:
            self._ahead[subscriber] = position
        stretches = []
        for stretch, matches in self._unstable:
            if stretch.upto > position:
                stretches.append(_share(stretch, matches, subscriber, position))
                position = known.told = stretch.upto
        self._attached[subscriber] = known
        self._behind.pop(subscriber, None)
        return stretches

    def fall_behind(self, subscriber: int, position: Tick) -> None:
        """It is here, was told everything up to ``position``, and must catch up from there."""
        self.detach(subscriber)
        self._behind[subscriber] = position

    def detach(self, subscriber: int) -> None:
        """It has disconnected: from this instant on it must catch up (R1.12)."""
        self._attached.pop(subscriber, None)
        self._behind.pop(subscriber, None)
        self._ahead.pop(subscriber, None)

    def remove(self, subscriber: int) -> None:
        """It is gone for good, and pins nothing any more."""
        self.detach(subscriber)
        self._subscribers.pop(subscriber, None)
        self._late.pop(subscriber, None)
        self._passing.discard(subscriber)

    def on_told(self, subscriber: int, tick: Tick) -> None:
        """A subscriber was told of ticks while it catches up, or before it does."""
        known = self._subscribers[subscriber]
        known.told = max(known.told, tick)
        if subscriber in self._behind:
            self._behind[subscriber] = tick

    # Release

    def acknowledge(self, subscriber: int, tick: Tick, had: Tick = ABSOLUTE) -> bool:
        """A subscriber has consumed everything up to a tick; not believed of what it was never told (B1.10).

        What it was told behind what it has ``had`` was silence. That it does not need any more; but who comes with a
        token from before that has missed nothing.
        """
        known = self._subscribers.get(subscriber)
        if known is None or tick > known.told:
            return False
        had = min(tick, had)
        if had > known.released:  # else it was acknowledged before, or was silence
            known.acknowledged = had
        known.released = max(known.released, tick)
        return True

    def released_by(self, subscriber: int) -> Tick:
        """What one subscriber does not need any more; to be saved from time to time (R1.30)."""
        return self._subscribers[subscriber].released

    def stand(self, subscriber: int) -> Stand:
        """Where it stands, as far as is known: if it has acknowledged all that was for it, everything since is over."""
        known = self._subscribers[subscriber]
        released = max(known.released, self.latest_delivered) if known.is_done else known.released
        return Stand(known.start, known.acknowledged, released)

    def hold(self, subscriber: int, *, is_held: bool) -> None:
        """It stays where it is said to stand, though nothing is for it: somewhere else it goes on from there (B1.9)."""
        known = self._subscribers[subscriber]
        known.released = self.stand(subscriber).released
        known.is_held = is_held

    @property
    def released(self) -> Tick:
        """The released of a pubend [BZA]: nobody here needs anything at or below it (R1.18)."""
        needed = (self._pinned_by(each, known) for each, known in self._subscribers.items())
        return min(self.latest_delivered, min(needed, default=ABSOLUTE))

    def pinning(self) -> list[int]:
        """For whom ``released`` is no higher; nobody, if everything that is on disk is released."""
        released = self.released
        if released == self.latest_delivered:
            return []
        return [each for each, known in self._subscribers.items() if self._pinned_by(each, known) == released]

    def _pinned_by(self, subscriber: int, known: _Subscriber) -> Tick:
        """Whatever is above it is kept for a subscriber.

        Who is done needs no silence. But while it is here it is told of it, and its token is as old as what it was
        told: elsewhere, without this broker, nobody knows that nothing was for it. And here its matches are read from
        there on, if it is behind.
        """
        is_attached = subscriber in self._attached
        here = known.told if is_attached else self._behind.get(subscriber)
        if subscriber in self._passing:
            return ABSOLUTE if is_attached else known.told if here is None else here
        needed = ABSOLUTE if known.is_done else known.released
        return needed if here is None else min(needed, max(here, known.acknowledged))

    def skip(self, subscriber: int, position: Tick) -> Tick:
        """Where a subscriber that stands at a position can go on: nothing was for it in between."""
        known = self._subscribers[subscriber]
        if subscriber in self._passing or position < known.acknowledged:
            return position
        position = max(position, known.released)
        is_done = position >= max(known.start, known.matched)
        return max(position, self.latest_delivered) if is_done else position

    def start_of(self, subscriber: int) -> Tick:
        """Where a subscriber's part of the filtering log begins; one that is not durable has none."""
        return ABSOLUTE if subscriber in self._passing else self._subscribers[subscriber].start

    def __contains__(self, subscriber: int) -> bool:
        return subscriber in self._subscribers

    def __len__(self) -> int:
        return len(self._subscribers)

    # Delivery

    @property
    def version(self) -> Version:
        """What is wanted just above ``handed``."""
        return self._version

    @property
    def versions(self) -> list[Version]:
        """What is wanted there, and above later ticks."""
        return [self._version, *(version for _, version in self._steps)]

    @property
    def horizon(self) -> Tick:
        """The doubt horizon, every tick judged by the version that is wanted there."""
        at = self.handed
        for version, upto in self._wanted(ABSOLUTE):
            at = min(self._knowledge.doubt_horizon(at, version), upto)
            if at < upto:
                break
        return at

    def missing(self, upto: Tick) -> list[tuple[Version, list[Span]]]:
        """What must be asked for so that the horizon reaches a tick, by version."""
        holes = []
        at = self.handed
        for version, end in self._wanted(upto):
            found = self._knowledge.holes(at, end, version)
            if found:
                holes.append((version, found))
            at = end
        return holes

    def _wanted(self, upto: Tick) -> list[tuple[Version, Tick]]:
        """The versions that are wanted above ``handed``, each with where the next one begins."""
        version, wanted = self._version, []
        for start, later in self._steps:
            if later > version and start < upto:
                wanted.append((version, start))
                version = later
        return [*wanted, (version, upto)]

    def next_stretch(self, limit: int) -> Stretch | None:
        """What can be handed out now, with at most ``limit`` events; it is to be matched, and given to ``hand``.

        Nothing, while too much waits for the disk.
        """
        horizon, lost = self.horizon, self._knowledge.lost
        if horizon == self.handed or len(self._unstable) >= UNSTABLE_MAX:
            return None
        lost_through = lost.reach(self.handed)
        upto = next((after for after, _ in lost.within(lost_through, horizon)), horizon)
        ticks, publications = self._knowledge.events(lost_through, upto, limit + 1)
        if len(ticks) > limit:
            upto = ticks.pop() - 1
            publications.pop()
        reason = self._knowledge.reason_of(self.handed, lost_through)
        return Stretch(self.handed, lost_through, ticks, publications, upto, reason)

    def hand(self, stretch: Stretch, matches: Sequence[Sequence[int]]) -> Handing:
        """What is to be done; ``matches`` are the subscribers of each event, ascending.

        The deliveries are to be enqueued now. When the records are on disk, or there are none and nothing before waits,
        ``on_stable`` is to be called.
        """
        assert stretch.after == self.handed, "stretches are handed out in order"
        gaps: list[tuple[int, Tick]] = []
        records: list[tuple[Tick, Sequence[int]]] = []
        if stretch.lost_through > stretch.after:
            gaps = [
                (each, known.told)
                for each, known in self._attached.items()
                if known.told < stretch.lost_through
            ]
            losers = [each for each, known in self._subscribers.items() if known.start < stretch.lost_through]
            self._note(stretch.after + 1, losers)
            records.append((stretch.after + 1, self._durable(sorted(losers))))
        if self._late:
            matches = [self._owed(tick, found) for tick, found in zip(stretch.ticks, matches, strict=True)]
        groups = self._groups(matches)
        durable = {key: self._durable(found) for key, (found, _) in groups.items()}
        for found, at in groups.values():
            self._note(stretch.ticks[at[-1]], found)
        noted = [durable[id(found)] for found in matches]
        records += zip(stretch.ticks, noted, strict=True)
        deliveries = self._deliveries(stretch, groups.values())
        self._move(stretch, gaps, deliveries)
        self._unstable.append((stretch, matches))
        return Handing(stretch, gaps, deliveries, [record for record in records if record[1]])

    def _groups(self, matches: Sequence[Sequence[int]]) -> dict[int, tuple[Sequence[int], list[int]]]:
        """Events that matched the same subscribers: those of them who are known here, and the events' positions.

        What is the same list is the same subscribers: whoever matches remembers its answers.
        """
        keys = list(map(id, matches))
        if keys and keys.count(keys[0]) == len(keys):  # as where one filter wants everything
            return {keys[0]: (self._known(matches[0]), list(range(len(keys))))}
        groups: dict[int, tuple[Sequence[int], list[int]]] = {}
        for i, key in enumerate(keys):
            group = groups.get(key)
            if group is None:
                groups[key] = self._known(matches[i]), [i]
            else:
                group[1].append(i)
        return groups

    def _known(self, found: Sequence[int]) -> Sequence[int]:
        known = self._subscribers
        if all(map(known.__contains__, found)):
            return found  # the same list, which the filtering log has a row of
        return [each for each in found if each in known]

    def _note(self, tick: Tick, subscribers: Sequence[int]) -> None:
        for each in subscribers:
            known = self._subscribers[each]
            if known.is_done:  # up to here there was nothing else for it
                known.released = max(known.released, self.handed)
            known.matched = max(known.matched, tick)

    def _deliveries(
        self, stretch: Stretch, groups: Iterable[tuple[Sequence[int], list[int]]]
    ) -> dict[int, list[int]]:
        deliveries: dict[int, list[int]] = {}
        attached = self._attached
        for found, at in groups:
            for subscriber in found:
                if subscriber in attached:
                    known = deliveries.get(subscriber)
                    deliveries[subscriber] = at if known is None else sorted([*known, *at])
        for subscriber, told in self._ahead.items():
            left = [i for i in deliveries.pop(subscriber, ()) if stretch.ticks[i] > told]
            if left:
                deliveries[subscriber] = left
        return deliveries

    def _owed(self, tick: Tick, found: Sequence[int]) -> Sequence[int]:
        """Those of the subscribers that are known here, and have started."""
        known, late = self._subscribers, self._late
        return [each for each in found if each in known and late.get(each, 0) < tick]

    def _durable(self, found: Sequence[int]) -> Sequence[int]:
        return [each for each in found if each not in self._passing] if self._passing else found

    def _move(
        self, stretch: Stretch, gaps: Sequence[tuple[int, Tick]], deliveries: dict[int, list[int]]
    ) -> None:
        self.handed = stretch.upto
        for subscriber, _ in gaps:
            self._attached[subscriber].told = stretch.lost_through
        for subscriber, at in deliveries.items():
            self._attached[subscriber].told = stretch.ticks[at[-1]]
        if self._late:
            self._late = {each: start for each, start in self._late.items() if start > self.handed}
        if self._ahead:
            self._ahead = {each: told for each, told in self._ahead.items() if told > self.handed}
        passed = bisect_right(self._steps, (self.handed, ABSOLUTE))
        self._version = max([self._version, *(version for _, version in self._steps[:passed])])
        del self._steps[:passed]

    def on_stable(self, upto: Tick) -> None:
        """The filtering log has everything up to a tick on disk."""
        while self._unstable and self._unstable[0][0].upto <= upto:
            self.latest_delivered = self._unstable.popleft()[0].upto

    def next_silences(self, lag: int) -> list[tuple[int, Tick, Tick]]:
        """Who was told nothing of the last ``lag`` ticks, and the silence (after, upto] it is to be told (R1.20)."""
        found = []
        for subscriber, known in self._attached.items():
            if self.handed - known.told > lag:
                found.append((subscriber, known.told, self.handed))
                known.told = self.handed
        return found


def _share(stretch: Stretch, matches: Sequence[Sequence[int]], subscriber: int, position: Tick) -> Stretch:
    """One subscriber's part of a stretch, above where it stands."""
    at = [i for i, found in enumerate(matches) if subscriber in found and stretch.ticks[i] > position]
    ticks, publications = [stretch.ticks[i] for i in at], [stretch.publications[i] for i in at]
    lost_through = max(position, stretch.lost_through)
    return Stretch(position, lost_through, ticks, publications, stretch.upto, stretch.reason)
