"""Brokers that are watched: what passes one, and when one has recovered. They do what any other does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from holdfast.broker.broker import Broker
from holdfast.broker.input import Input
from holdfast.broker.sessions import Effects
from holdfast.broker.settings import Settings
from holdfast.clock import SECOND, Instant
from holdfast.messages.message import Message
from holdfast.messages.overlay import Confirmations, DepthAck, Relay
from holdfast.messages.session import Heartbeat
from holdfast.overlay.transport import Received, Send
from holdfast.simulator.cast import MakeBroker
from holdfast.wire.frame import HEADER_BYTES, encode

__all__ = ["Life", "Meter", "Passed", "Watch"]

#: Kinds of messages, as they are told apart.
KINDS: dict[type, str] = {
    Relay: "publications",
    DepthAck: "acknowledgements",
    Confirmations: "acknowledgements",
    Heartbeat: "heartbeats",
}


@dataclass(frozen=True, slots=True)
class Passed:
    """A message that went in or out: when, what it is, and how long its frame would be."""

    at: Instant
    kind: str
    is_out: bool
    frame_bytes: int


@dataclass(slots=True)
class Life:
    """One life of a broker, and when it had recovered: all it must know is known, and all neighbours are open."""

    broker: Broker
    began: Instant | None = None
    recovered: Instant | None = None
    connected: Instant | None = None


@dataclass(slots=True)
class Meter:
    """Everything that passes some brokers."""

    nodes: frozenset[str]
    passed: list[Passed] = field(default_factory=list)
    relays: list[Relay] | None = None  #: those that came in, if they are wanted

    def note(self, messages: Iterable[Message], now: Instant, *, is_out: bool) -> None:
        """Messages went in or out."""
        for message in messages:
            _, body = encode(message)
            kind = KINDS.get(type(message), "other")
            self.passed.append(Passed(now, kind, is_out, HEADER_BYTES + len(body)))
            if self.relays is not None and isinstance(message, Relay) and not is_out:
                self.relays.append(message)


class Watch:
    """Makes the brokers of a run, and keeps all their lives."""

    def __init__(self, meter: Meter | None = None) -> None:
        self.lives: dict[str, list[Life]] = {}
        self._meter = meter

    @property
    def make_broker(self) -> MakeBroker:
        """For ``simulate``."""
        return self._make

    def _make(self, settings: Settings) -> Broker:
        meter = self._meter if self._meter is not None and settings.name in self._meter.nodes else None
        broker = _Watched(settings, meter)
        self.lives.setdefault(settings.name, []).append(broker.life)
        return broker

    def last(self, name: str) -> Broker:
        """A broker as it was at the end."""
        return self.lives[name][-1].broker

    def recovery_seconds(self, name: str, life: int, whole: Callable[[Life], Instant | None]) -> float:
        """How long one life of a broker, counted from 0, took until ``whole`` says."""
        found = self.lives[name][life]
        end = whole(found)
        assert found.began is not None
        assert end is not None, f"life {life} of {name} never came so far"
        return (end - found.began) / SECOND


class _Watched(Broker):
    def __init__(self, settings: Settings, meter: Meter | None) -> None:
        super().__init__(settings)
        self.life = Life(self)
        self._meter = meter

    def step(self, stimulus: Input, now: Instant) -> Effects:
        effects = super().step(stimulus, now)
        life = self.life
        if life.began is None:
            life.began = now
        if life.connected is None and self.is_ready:
            if life.recovered is None:
                life.recovered = now
            if self.node.is_connected_to_all:
                life.connected = now
        if self._meter is not None:
            if isinstance(stimulus, Received):
                self._meter.note(stimulus.messages, now, is_out=False)
            for effect in effects:
                if isinstance(effect, Send):
                    self._meter.note(effect.messages, now, is_out=True)
        return effects
