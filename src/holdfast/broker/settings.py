"""What a broker is told once, at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.clock import MILLISECOND, SECOND
from holdfast.events.event import DEFAULT_LIMITS, Limits
from holdfast.messages.streams import Order

__all__ = ["Neighbour", "Routing", "Settings", "Stream"]


class Routing(StrEnum):
    """How publications find their way [SESDAD §2.1]."""

    FILTER = "filter"
    FLOODING = "flooding"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A broker one hop away. The child dials its parent."""

    name: str
    address: str | None  #: host:port of the parent; None for a child, which dials us


@dataclass(frozen=True, slots=True)
class Stream:
    """A set of topics with a policy; a topic belongs to the first stream whose patterns match it."""

    name: str
    topics: tuple[str, ...]  #: patterns
    order: Order = Order.FIFO


@dataclass(frozen=True, slots=True)
class Settings:
    """Who the broker is, whom it knows, and its patience."""

    name: str
    incarnation: int  #: persisted before first use
    neighbours: tuple[Neighbour, ...] = ()
    streams: tuple[Stream, ...] = (Stream("default", ("#",)),)
    routing: Routing = Routing.FILTER
    trace_forwards: bool = False  #: LoggingLevel full
    limits: Limits = field(default=DEFAULT_LIMITS)
    heartbeat_ns: int = 100 * MILLISECOND
    detect_after_ns: int = 500 * MILLISECOND  #: silence after which a neighbour is given up
    probe_every_ns: int = 200 * MILLISECOND  #: how often a lost parent is dialled
    client_heartbeat_ns: int = 1 * SECOND
    client_grace_ns: int = 5 * SECOND  #: how long the subscriptions of a lost client are kept
    clients_max: int = 10_000
    subscriptions_max: int = 1_000_000
    client_subscriptions_max: int = 10_000  #: of one client
    held_max: int = 10_000  #: publications held for a neighbour while tables are exchanged
    held_bytes_max: int = 64 * 1024 * 1024  #: and their bytes
