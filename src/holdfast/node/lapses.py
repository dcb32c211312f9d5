"""Lapses: where more brokers than δ have lost their memory together, and events with it.

Copies of an event lie on δ+1 brokers next to each other. As long as one of them keeps its memory, it gives back to the
others what they have lost. A broker that begins a life counts the row it stands in: of brokers that cannot be reached,
or begin a life as it does, unless somebody vouches for them. If there are more than δ in a row, nobody knows what was
lost there, and it says so. That spreads to everybody before any publication that passes the place afterwards, as
subscriptions do (Lemma 2), and whoever is met is told. A broker in its first life has nothing to lose.

Subscriptions may be lost in the same way, until somebody who could not be reached tells them again; what was published
in between was for nobody. So who hears of a lapse from somebody it is meeting, and has subscriptions to tell, tells
them and then says so too: an echo.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.identity import is_first_life
from holdfast.messages.marks import Answers
from holdfast.messages.overlay import Lapse, Role
from holdfast.node.reach import Reach
from holdfast.node.settings import NodeSettings
from holdfast.node.station import Phase, Station

__all__ = ["Lapses"]


class Lapses:
    """Those a node knows, by the node that noticed: one that notices another remembers none that went before."""

    def __init__(
        self, settings: NodeSettings, reach: Reach, brokers_beside: Callable[[], list[Station]]
    ) -> None:
        self._name = settings.name
        self._delta = settings.delta
        self._incarnation = settings.incarnation
        can_lose = (
            settings.role is Role.BROKER and settings.is_reliable and not is_first_life(settings.incarnation)
        )
        self._has_memory = not can_lose
        self._reach = reach
        self._brokers_beside = brokers_beside
        self._known: dict[str, Lapse] = {}  #: by name its last
        self.heard = 0  #: how many were news
        self._last = 0  #: our own

    def all(self) -> list[Lapse]:
        """Everything there is to tell."""
        return list(self._known.values())

    def answers(self) -> Answers:
        """For a mark: which we know."""
        return {name: (lapse.incarnation, lapse.number) for name, lapse in self._known.items()}

    def hear(self, lapse: Lapse) -> bool:
        """Whether a lapse is news."""
        known = self._known.get(lapse.node)
        if known is not None and (known.incarnation, known.number) >= (lapse.incarnation, lapse.number):
            return False
        self._known[lapse.node] = lapse
        self.heard += 1
        return True

    def new(self, *, is_echo: bool) -> Lapse:
        """One of our own."""
        self._last += 1
        return Lapse(self._name, self._incarnation, self._last, is_echo)

    def is_echoed(self, sender: Station, lapse: Lapse) -> bool:
        """Whether a lapse, which is news, may have left our subscriptions unknown until we told them just now.

        Who noticed it and still meets us has waited for what we tell.
        """
        has_waited = lapse.node == sender.name and sender.is_restarted
        return sender.phase is Phase.MEETING and not lapse.is_echo and not has_waited

    # Counting

    def row_before(self, station: Station) -> int:
        """How many in a row have lost their memory, for a station: we, and those beyond us."""
        return 0 if self._has_memory else 1 + max(self._rows(but=station.direction), default=0)

    @staticmethod
    def counts(station: Station) -> bool:
        """Whether a station begins a life, and has had one before."""
        return station.is_restarted and not is_first_life(station.incarnation)

    def notice(self) -> Lapse | None:
        """We have heard from everywhere: whether we stand in a row that is too long."""
        if self._has_memory:
            return None
        self._has_memory = True
        longest, next_to = sorted([0, 0, *self._rows(but=None)])[-1:-3:-1]
        return self.new(is_echo=False) if 1 + longest + next_to > self._delta else None

    def _rows(self, but: str | None) -> list[int]:
        return [self._row(each) for each in self._brokers_beside() if each.direction != but]

    def vouched(self) -> tuple[str, ...]:
        """The brokers we know to have their memory: whoever cannot reach them need not think the worst."""
        stations = self._reach.stations.values()
        return tuple(each.name for each in stations if each.is_open and each.place.role is Role.BROKER)

    def _is_vouched_for(self, station: Station) -> bool:
        return any(station.name in each.vouched for each in self._reach.stations.values() if each.has_told)

    def _row(self, station: Station) -> int:
        """How many from a station on, away from us. Who cannot be reached counts, unless somebody knows better."""
        if station.has_told:
            return station.row
        if self._is_vouched_for(station):
            return 0
        beyond = self._reach.topology.beyond(station.name)
        brokers = [self._reach[place.name] for place in beyond if place.role is Role.BROKER]
        return 1 + max(map(self._row, brokers), default=0)
