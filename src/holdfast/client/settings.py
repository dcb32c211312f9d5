"""What a client's core is told once, at its start."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import MILLISECOND, SECOND

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Who the client is, where its broker is, and its patience."""

    name: str
    incarnation: int  #: higher than any before under this name
    broker: str  #: the address, host:port
    principal: str = "anonymous"
    heartbeat_ns: int = 1 * SECOND
    detect_after_ns: int = 5 * SECOND  #: silence after which the broker is given up
    backoff_min_ns: int = 50 * MILLISECOND  #: before the second attempt to connect; doubled each time
    backoff_max_ns: int = 5 * SECOND
    is_member: bool | None = None  #: be a node of the network; None: where it has such clients
    stream: str = "default"  #: of a member of a reliable network: what it publishes belongs to this stream
    others: tuple[str, ...] = ()  #: further brokers, tried in turn when one cannot be had, or is lost
    unacknowledged_max: int = 100_000  #: events submitted and not yet acknowledged
    sent_bytes: int = 4 * 1024 * 1024  #: of those that were sent to the broker; one more may go beyond it
