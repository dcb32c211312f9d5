"""The neighbours of a broker: who is dialled when, who has told us its table, and whom we may tell ours."""

from __future__ import annotations

from holdfast.broker.settings import Settings
from holdfast.clock import Instant
from holdfast.overlay.transport import Connect, TransportEffect
from holdfast.routing.port import NeighbourPort

__all__ = ["Neighbours"]


class Neighbours:
    """The ports of neighbours. The child dials its parent; the parent waits."""

    def __init__(self, settings: Settings) -> None:
        self._probe_every_ns = settings.probe_every_ns
        self._patience_ns = settings.detect_after_ns
        self._started_at: Instant | None = None
        self._is_patient = True
        self._is_ready = False
        self.ports = [NeighbourPort(each.name, each.address) for each in settings.neighbours]
        self._by_name = {port.name: port for port in self.ports}

    def get(self, name: str) -> NeighbourPort | None:
        """The port of a neighbour."""
        return self._by_name.get(name)

    def start(self, now: Instant) -> None:
        """Begin to dial, and to be patient with those that are not there yet."""
        self._started_at = now
        for port in self.ports:
            port.dial_at = now if port.address is not None else None

    def on_wake(self, now: Instant) -> list[TransportEffect]:
        """Dial whom it is time to dial."""
        assert self._started_at is not None
        if now >= self._started_at + self._patience_ns:
            self._is_patient = False
        effects: list[TransportEffect] = []
        for port in self.ports:
            if port.dial_at is not None and now >= port.dial_at and not port.dialling:
                assert port.address is not None
                port.dialling = True
                port.dial_at = None
                effects.append(Connect(port.name, port.address))
        return effects

    def on_dial_failed(self, port: NeighbourPort, now: Instant) -> None:
        """Later again."""
        port.dialling = False
        self._plan_dial(port, now)

    def become_absent(self, port: NeighbourPort, now: Instant) -> None:
        """The session with a neighbour is over."""
        port.become_absent()
        self._plan_dial(port, now)

    def _plan_dial(self, port: NeighbourPort, now: Instant) -> None:
        if port.address is not None and port.connection is None:
            port.dial_at = now + self._probe_every_ns

    def may_tell(self, port: NeighbourPort) -> bool:
        """Whether our table is whole, seen from this neighbour: all others have told us theirs, or are absent."""
        if port.connection is None or port.is_told:
            return False
        return all(other.has_told or self._is_absent(other) for other in self.ports if other is not port)

    def _is_absent(self, port: NeighbourPort) -> bool:
        return port.connection is None and (port.has_met or not self._is_patient)

    @property
    def is_ready(self) -> bool:
        """Whether every neighbour has been met or given up; once true it stays true."""
        if not self._is_ready and self._started_at is not None:
            self._is_ready = all(port.is_active or self._is_absent(port) for port in self.ports)
        return self._is_ready

    def next_deadline(self) -> Instant | None:
        """When somebody must be dialled, or patience ends."""
        assert self._started_at is not None
        times = [port.dial_at for port in self.ports if port.dial_at is not None]
        if self._is_patient:
            times.append(self._started_at + self._patience_ns)
        return min(times, default=None)
