"""What a broker is told once, at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.clock import MILLISECOND, SECOND
from holdfast.events.event import DEFAULT_LIMITS, Limits
from holdfast.messages.overlay import Join, Role
from holdfast.messages.streams import Guarantee, Order
from holdfast.node.settings import Acknowledge, NodeSettings
from holdfast.streams.pubend_names import stream_in

__all__ = ["Neighbour", "Routing", "Settings", "Stream"]


class Routing(StrEnum):
    """How publications find their way [SESDAD §2.1]."""

    FILTER = "filter"
    FLOODING = "flooding"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A broker within δ+1 hops. One hop away the child dials its parent; farther away whoever needs the other does."""

    name: str
    address: str | None  #: host:port; None for a child, which dials us
    beside: str | None = None  #: the broker before it on the way; None: it is our neighbour
    answers_at: str | None = None  #: of a child: where clients dial it when we are gone


@dataclass(frozen=True, slots=True)
class Stream:
    """A set of topics with a policy; a topic belongs to the first stream whose patterns match it."""

    name: str
    topics: tuple[str, ...]  #: patterns
    order: Order = Order.FIFO
    guarantee: Guarantee = Guarantee.BEST_EFFORT
    pubends: int = 1  #: of a durable one: how many each broker has for its publishers
    sequencer: str | None = None  #: where the one pubend is of a stream in total order
    retain_ns: int | None = (
        None  #: events that are older go, though somebody may want them (R1.15); None: never
    )
    retain_bytes: int | None = None  #: and so do the oldest of more than this in one pubend
    expires: str | None = (
        None  #: and those that have expired: the attribute that holds when, in seconds since 1970 (R1.33)
    )
    lake: bool = False  #: what its logs have given up is read in the lake


@dataclass(frozen=True, slots=True)
class Settings:
    """Who the broker is, whom it knows, and its patience."""

    name: str
    incarnation: int  #: persisted before first use
    neighbours: tuple[Neighbour, ...] = ()
    streams: tuple[Stream, ...] = (Stream("default", ("#",)),)
    routing: Routing = Routing.FILTER
    brokers: tuple[str, ...] = ()  #: all of the network, where they are known; (): nobody knows them
    home: str | None = None  #: of a leaf that joins a running network: the broker it joins
    address: str | None = None  #: where others may dial it, if they cannot know that from the start
    delta: int = 0  #: how many brokers or links may fail at a time [KJ §1]
    acknowledge: Acknowledge = Acknowledge.DACK
    refill: bool = True
    relayed_bytes: int = 32 * 1024 * 1024  #: of reliable events on their way to another broker
    dack_every_ns: int = 1 * SECOND
    trace_forwards: bool = False  #: LoggingLevel full
    limits: Limits = field(default=DEFAULT_LIMITS)
    heartbeat_ns: int = 100 * MILLISECOND
    detect_after_ns: int = 500 * MILLISECOND  #: silence after which a neighbour is given up
    probe_every_ns: int = 200 * MILLISECOND  #: how often somebody who was lost is dialled
    client_heartbeat_ns: int = 1 * SECOND
    client_grace_ns: int = 5 * SECOND  #: how long the subscriptions of a lost client are kept
    member_grace_ns: int = 300 * SECOND  #: how long a lost member is, before it is asked for
    clients_max: int = 10_000  #: plain ones and members
    subscriptions_max: int = 1_000_000
    client_subscriptions_max: int = 10_000  #: of one client
    held_max: int = 10_000  #: publications held for a neighbour while tables are exchanged
    held_bytes_max: int = 64 * 1024 * 1024  #: and their bytes

    #: how often a pubend says that there is nothing new, for a while
    silence_every_ns: int = 100 * MILLISECOND
    vouch_every_ns: int | None = (
        None  #: how often it says so on disk, for ever, to who reads logs; None: never
    )
    report_every_ns: int = 250 * MILLISECOND  #: how often what was delivered and acknowledged is told (R1.30)
    cache_bytes: int = 64 * 1024 * 1024  #: of events of one pubend kept in memory
    told_bytes: int = 16 * 1024 * 1024  #: of logged events on their way to one neighbour
    logging_bytes: int = 256 * 1024 * 1024  #: of events on their way to the disk; then publishers wait
    expire_after_ns: int | None = (
        None  #: durable subscriptions that nobody reads for so long end; None: never
    )
    staged_keep_ns: int | None = 24 * 3_600 * SECOND  #: what was staged and not committed goes; None: never
    staged_bytes_max: int = 1 << 30  #: of events that are staged and not committed

    @property
    def is_reliable(self) -> bool:
        """Whether any stream is."""
        return any(stream.guarantee is Guarantee.RELIABLE for stream in self.streams)

    @property
    def is_durable(self) -> bool:
        """Whether any stream is."""
        return any(stream.guarantee is Guarantee.DURABLE for stream in self.streams)

    @property
    def reads_lake(self) -> bool:
        """Whether what the log of any stream has given up is to be had from the lake."""
        return any(stream.lake for stream in self.streams)

    def retain_bytes_of(self, pubend: str) -> int | None:
        """How much one of its logs keeps of a stream; None: all of it."""
        limits = (each.retain_bytes for each in self.streams if each.name == stream_in(pubend))
        return next(limits, None)

    def node(self) -> NodeSettings:
        """The broker as a node of the overlay."""
        places = tuple(
            Join(each.name, Role.BROKER, each.beside or self.name, each.address, 0)
            for each in self.neighbours
        )
        is_flooding = self.routing is Routing.FLOODING
        return NodeSettings(
            self.name,
            self.incarnation,
            Role.BROKER,
            self.delta,
            places,
            home=self.home,
            address=self.address,
            acknowledge=self.acknowledge,
            refill=self.refill,
            relayed_bytes=self.relayed_bytes,
            is_reliable=self.is_reliable,
            floods=is_flooding,
            spreads=not is_flooding or self.is_reliable or self.is_durable,
            features=(f"routing={self.routing}",),
            trace_forwards=self.trace_forwards,
            subscriptions_max=self.subscriptions_max,
            name_bytes_max=self.limits.publisher_bytes,
            heartbeat_ns=self.heartbeat_ns,
            detect_after_ns=self.detect_after_ns,
            probe_every_ns=self.probe_every_ns,
            dack_every_ns=self.dack_every_ns,
            member_grace_ns=self.member_grace_ns,
        )
