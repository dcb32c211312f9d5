"""The connection manager [KJ §3.2, §3.3, §9]: who is dialled, who is bypassed, who is next on a way.

Neighbours are always wanted. Behind one that was given up its own neighbours are wanted in its place, and so on, as
far as the reach of δ+1 hops; each that was given up is tried again from time to time, and when it is open those
beyond it are not needed any more. Either end may need a connection: who has lost everybody nearer says so (``Need``),
and is then served directly, whatever the other end can reach besides [B0.20].
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.clock import Instant
from holdfast.messages.overlay import Need, Role
from holdfast.node.absences import Absence
from holdfast.node.station import Phase, Station
from holdfast.node.topology import Path, Place, Topology
from holdfast.overlay.transport import Connect, Send, TransportEffect

__all__ = ["Frontier", "Reach"]


@dataclass(slots=True)
class Frontier:
    """Where a message for everybody in some directions is sent."""

    endpoints: list[Station] = field(default_factory=list)
    fragments: list[Path] = field(default_factory=list)  #: large fragments: nobody can be reached
    is_decided: bool = True  #: nobody is still being tried


class Reach:
    """The stations of a node."""

    def __init__(self, topology: Topology, probe_every_ns: int, detect_after_ns: int) -> None:
        self.topology = topology
        self.stations: dict[str, Station] = {}
        self.brokers: dict[str, Station] = {}  #: those of them that are brokers
        self.away: dict[str, Absence] = {}  #: the clients beside us without a session
        self._probe_every_ns = probe_every_ns
        self._patience_ns = detect_after_ns

    def __getitem__(self, name: str) -> Station:
        return self.stations[name]

    def get(self, name: str) -> Station | None:
        """A station, if the node is within reach."""
        return self.stations.get(name)

    def enter(self, place: Place) -> Station:
        """A node has come into the map, or more is known of it."""
        station = self.stations.get(place.name)
        if station is None:
            station = self.stations[place.name] = Station(place)
            self._miss(station)
        station.place = place
        if place.role is Role.BROKER:  # it may have been known by a subscription only
            self.brokers[place.name] = station
            self.away.pop(place.name, None)
        return station

    def remove(self, name: str) -> Station:
        """A leaf has left."""
        self.topology.remove(name)
        self.away.pop(name, None)
        self.brokers.pop(name, None)
        return self.stations.pop(name)

    def _miss(self, station: Station) -> None:
        if station.distance == 1 and station.place.role is not Role.BROKER:
            self.away[station.name] = Absence()

    # Ways

    def on_way(self, path: Path) -> list[Station]:
        """The stations along a path, the nearest first."""
        return [self.stations[name] for name in path]

    def next_hop(self, path: Path) -> Station | None:
        """The active station of a way: the nearest that is open [KJ §3.2]."""
        for name in path:
            if (station := self.stations[name]).phase is Phase.OPEN:
                return station
        return None

    def endpoints(self) -> list[Station]:
        """Everybody publications are sent to: who is nearest on some way, and who needs us."""
        found: list[Station] = []
        for place in self.topology.beyond(self.topology.me):
            self._gather(self.stations[place.name], found)
        return [*found, *self._needing(found)]

    def _gather(self, station: Station, found: list[Station]) -> None:
        if station.phase is Phase.OPEN:
            found.append(station)
            return
        for place in self.topology.beyond(station.name):
            self._gather(self.stations[place.name], found)

    def nearest(self, direction: str) -> list[Station]:
        """Whoever is nearest on each way in a direction: open, or about to be."""
        found: list[Station] = []
        self._gather_nearest(self.stations[direction], found)
        return found

    def _gather_nearest(self, station: Station, found: list[Station]) -> None:
        if station.connection is not None:
            found.append(station)
            return
        for place in self.topology.beyond(station.name):
            self._gather_nearest(self.stations[place.name], found)

    def rim(self) -> list[Station]:
        """The brokers beyond which no other is known: who gets what is for all brokers [R0.23]."""
        return [
            self.stations[place.name]
            for place in self.topology
            if place.role is Role.BROKER
            and not any(each.role is Role.BROKER for each in self.topology.beyond(place.name))
        ]

    def _needing(self, found: list[Station]) -> list[Station]:
        return [
            station
            for station in self.stations.values()
            if station.needs_us and station.phase is Phase.OPEN and station not in found
        ]

    def frontier(self, directions: list[str]) -> Frontier:
        """Where to send what all brokers and publishers in some directions must know [KJ §3.5]."""
        frontier = Frontier()
        for name in directions:
            self._advance(self.stations[name], frontier)
        frontier.endpoints += [
            station
            for station in self._needing(frontier.endpoints)
            if station.direction in directions and station.place.role is not Role.SUBSCRIBER
        ]
        return frontier

    def _advance(self, station: Station, frontier: Frontier) -> None:
        if station.place.role is Role.SUBSCRIBER:
            return
        if station.phase is Phase.OPEN:
            frontier.endpoints.append(station)
        elif not station.is_bypassed:
            frontier.is_decided = False
        else:
            beyond = [
                place for place in self.topology.beyond(station.name) if place.role is not Role.SUBSCRIBER
            ]
            if not beyond:
                frontier.fragments.append(station.path)
            for place in beyond:
                self._advance(self.stations[place.name], frontier)

    def directions(self, but: str | None = None) -> list[str]:
        """All neighbours but one."""
        return [place.name for place in self.topology.beyond(self.topology.me) if place.name != but]

    def is_unreachable(self, direction: str) -> bool:
        """Whether in a direction everybody was given up who could be there."""
        return self._is_lost(self.stations[direction])

    def _is_lost(self, station: Station) -> bool:
        if station.connection is not None or not station.is_bypassed:
            return False
        return all(self._is_lost(self.stations[place.name]) for place in self.topology.beyond(station.name))

    # Dialling

    def wanted(self) -> dict[str, None]:
        """Whom we want a session with, by name."""
        found: dict[str, None] = {}
        for place in self.topology.beyond(self.topology.me):
            self._want(self.stations[place.name], found)
        return found

    def _want(self, station: Station, found: dict[str, None]) -> None:
        found[station.name] = None
        if station.is_bypassed:
            for place in self.topology.beyond(station.name):
                self._want(self.stations[place.name], found)

    def review(self, now: Instant) -> list[TransportEffect]:
        """Whatever has changed: try whom we want and have not, and say whom we need."""
        effects: list[TransportEffect] = []
        wanted = self.wanted()
        for station in list(self.stations.values()):
            is_wanted = station.name in wanted
            if station.connection is not None:
                effects += self._say_need(station, is_wanted)
            elif is_wanted and station.phase is Phase.IDLE:
                station.phase = Phase.TRYING
                station.tried_since = now
                station.dial_at = now if station.place.address is not None else None
            elif not is_wanted and station.phase in (Phase.TRYING, Phase.DOWN):
                station.phase = Phase.IDLE
                station.dial_at = None
                station.is_bypassed = False
        return effects

    def _say_need(self, station: Station, is_wanted: bool) -> list[TransportEffect]:
        if station.distance == 1 or station.connection is None:
            return []
        effects: list[TransportEffect] = []
        if station.need_said != is_wanted:
            station.need_said = is_wanted
            station.needs_unheard += not is_wanted
            effects.append(Send(station.connection, [Need(is_wanted)]))
        return effects

    def on_need(self, station: Station, is_needed: bool, *, is_echo: bool) -> list[TransportEffect]:
        """A station has said whether it needs us, or has heard that we do not need it."""
        if is_echo:
            station.needs_unheard = max(0, station.needs_unheard - 1)
            return []
        station.needs_us = is_needed
        if is_needed or station.connection is None:
            return []
        return [Send(station.connection, [Need(False, is_echo=True)])]

    def needless(self) -> list[Station]:
        """Stations we dialled, that neither side needs any more.

        Not before they have heard that we do not: what they sent us until then is on its way, and whoever is nearer may
        not have known who wanted it.
        """
        return [
            station
            for station in self.stations.values()
            if station.is_dialler
            and station.distance > 1
            and station.is_open
            and not station.needs_us
            and not station.need_said
            and not station.needs_unheard
        ]

    def on_wake(self, now: Instant) -> list[TransportEffect]:
        """Dial whom it is time to dial; give up who was tried for long enough."""
        effects: list[TransportEffect] = []
        for station in self.stations.values():
            if station.phase is Phase.TRYING and now >= station.tried_since + self._patience_ns:
                self.give_up(station)
            if station.dial_at is not None and now >= station.dial_at and not station.dialling:
                assert station.place.address is not None
                station.dialling = True
                station.dial_at = None
                effects.append(Connect(station.name, station.place.address))
        return effects

    def on_dial_failed(self, station: Station, now: Instant) -> None:
        """Nobody answered. A neighbour has some time to come up; any other is given up at once."""
        station.dialling = False
        if station.connection is None:
            if station.phase is Phase.TRYING and station.distance > 1:
                self.give_up(station)
            self._plan_dial(station, now)

    def give_up(self, station: Station) -> None:
        """It does not answer; others are tried in its place."""
        station.phase = Phase.DOWN
        station.is_bypassed = True

    def on_met(self, station: Station) -> None:
        """A session has begun."""
        self.away.pop(station.name, None)

    def on_lost(self, station: Station, now: Instant) -> None:
        """The session is over."""
        station.lose()
        self._miss(station)
        self._plan_dial(station, now)

    def _plan_dial(self, station: Station, now: Instant) -> None:
        if station.place.address is not None and station.phase is not Phase.IDLE:
            station.dial_at = now + self._probe_every_ns

    def try_at_once(self, station: Station, now: Instant) -> None:
        """We have ended the session, to begin another: the node is not given up."""
        station.phase = Phase.TRYING
        station.is_bypassed = False
        station.tried_since = now
        station.dial_at = None if station.place.address is None else now

    def next_deadline(self) -> Instant | None:
        """When somebody must be dialled or given up."""
        times: list[Instant] = []
        for station in self.stations.values():
            if station.dial_at is not None and not station.dialling:
                times.append(station.dial_at)
            if station.phase is Phase.TRYING:
                times.append(station.tried_since + self._patience_ns)
        return min(times, default=None)
