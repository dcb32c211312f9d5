"""What happens to a broker: its connections, the time, and the wishes of its operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.messages.ticks import Tick
from holdfast.overlay.transport import TransportInput
from holdfast.streams.storing import DiskInput

__all__ = ["ClockSet", "End", "Expel", "ForgetBroker", "Input", "Operate", "Seek", "Stop"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Say goodbye to everybody."""


@dataclass(frozen=True, slots=True)
class Expel:
    """A client that is a node of the overlay will not come back: nobody is to wait for it any more [B0.25]."""

    name: str


@dataclass(frozen=True, slots=True)
class ClockSet:
    """The wall clock shows ``now + offset_ns``, in nanoseconds since 1970: at the start, and whenever it was set."""

    offset_ns: int


# What an operator may want of durable streams


@dataclass(frozen=True, slots=True)
class Seek:
    """Let a durable subscription go on behind a tick, or behind places, or, without either, from now."""

    durable: str
    tick: Tick | None = None
    places: Mapping[str, Tick] | None = None  #: by pubend; one that is not named begins at its origin
    forward: bool = False  #: nothing is read twice: where it is farther, or is not told where, it stays


@dataclass(frozen=True, slots=True)
class End:
    """End a durable subscription for good; what only it needed may be given up."""

    durable: str


@dataclass(frozen=True, slots=True)
class ForgetBroker:
    """A broker will not come back, or need not be waited for: logs here may give up what it has not had [B1.8]."""

    broker: str
    stream: str | None = None  #: None: all


@dataclass(frozen=True, slots=True)
class Operate:
    """A wish of the operator's; ``broker.effect.Operated`` answers it under the same ticket."""

    ticket: int
    action: Seek | End | ForgetBroker


Input = TransportInput | DiskInput | ClockSet | Stop | Expel | Operate
