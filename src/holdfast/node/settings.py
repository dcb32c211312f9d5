"""What a node of the overlay is told once, at its start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.overlay import Join, Role

__all__ = ["Acknowledge", "NodeSettings"]


class Acknowledge(StrEnum):
    """How a node learns that a publication is safe beyond it."""

    DACK = "dack"  #: from time to time, for all that came [KJ §8]
    CONF = "conf"  #: one by one, when every subscriber has it [KJ §2.2]
    NONE = "none"  #: never


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Who the node is, who is around it, and its patience."""

    name: str
    incarnation: int  #: persisted before first use [B0.17]
    role: Role
    delta: int = 0
    places: tuple[Join, ...] = ()  #: the nodes known from the start, within δ+1 hops, nearer ones first
    home: str | None = (
        None  #: of a client, its broker; of a broker that joins a running network, the one it joins
    )
    address: str | None = None  #: where it is dialled itself
    acknowledge: Acknowledge = Acknowledge.DACK
    refill: bool = True
    is_reliable: bool = (
        True  #: whether any stream is; if none is, nothing is remembered, and nothing can lapse
    )
    floods: bool = False  #: publications go to every broker, wanted or not [SESDAD]
    spreads: bool = True  #: subscriptions do, too; where nothing but flooding is asked for, they need not
    features: tuple[str, ...] = ()  #: what neighbours must have in common, besides δ
    trace_forwards: bool = False
    #: kept of what is safe, but not for good, in case more fail than δ
    replay_bytes_max: int = 16 * 1024 * 1024
    relayed_bytes: int = 32 * 1024 * 1024  #: of publications on their way between two brokers
    subscriptions_max: int = 1_000_000
    name_bytes_max: int = 1_024
    heartbeat_ns: int = 100 * MILLISECOND
    detect_after_ns: int = 500 * MILLISECOND
    probe_every_ns: int = 200 * MILLISECOND
    dack_every_ns: int = 1000 * MILLISECOND
    member_grace_ns: int = 300 * SECOND  #: without a session with a member of its own a broker asks for it
