"""The lake behind the logs of a simulated broker: what was taken from them before they gave it up.

The real one is a table that a process of its own fills (``pipeline.lake``). This one takes whatever is stable right
before a log is chopped, as if release followed its commits, and keeps it for ever: it outlives crashes. It may be out
of reach for a while, and lack a part.
"""

from __future__ import annotations

from bisect import bisect_right

from holdfast.intervals import Intervals
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Lost, Tick
from holdfast.streams.store import Lane, Store
from holdfast.streams.store_lake import LakePage, LakeUnreadable
from holdfast.streams.storing import EventsRead, ReadEvents

__all__ = ["SimulatedLake"]


class SimulatedLake:
    """Of one broker, all its pubends."""

    def __init__(self) -> None:
        self.is_away = False  #: it cannot be read
        self.absent = Intervals()  #: ticks that it lacks, of every pubend
        self.pages = 0  #: so many were read
        self._taken: dict[str, _Taken] = {}

    def take(self, store: Store, pubend: str) -> None:
        """Take what is stable of a log, from where it was left."""
        taken = self._taken.setdefault(pubend, _Taken())
        [read] = store.turn(Lane.READS, [ReadEvents(pubend, [(taken.place, ABSOLUTE)], 1 << 30)])
        assert isinstance(read, EventsRead)
        if read.parts:
            taken.ticks += read.ticks
            taken.publications += read.publications
            taken.lost += read.lost
            taken.place = read.parts[-1][1]

    def page(self, pubend: str, after: Tick, upto: Tick, limit: int) -> LakePage:
        """What was taken; as a ``Lake``."""
        if self.is_away:
            raise LakeUnreadable("it is away")
        self.pages += 1
        taken = self._taken.get(pubend, _Taken())
        known = Intervals([(ORIGIN, taken.place)]).difference(self.absent)
        absent = known.gaps(after, upto)
        if absent and absent[0][0] == after:
            return LakePage(absent[0][1], absent=absent[:1])
        upto = absent[0][0] if absent else upto
        first, beyond = bisect_right(taken.ticks, after), bisect_right(taken.ticks, upto)
        if beyond - first > limit:
            beyond = first + limit
            upto = taken.ticks[beyond - 1]
        lost = [
            Lost(max(each.after, after), min(each.upto, upto), each.reason)
            for each in taken.lost
            if each.after < upto and each.upto > after
        ]
        return LakePage(upto, taken.ticks[first:beyond], taken.publications[first:beyond], lost)


class _Taken:
    """What it has of one pubend, up to ``place``."""

    def __init__(self) -> None:
        self.place: Tick = ORIGIN
        self.ticks: list[Tick] = []
        self.publications: list[Publication] = []
        self.lost: list[Lost] = []
