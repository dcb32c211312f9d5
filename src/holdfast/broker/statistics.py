"""What a broker counts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Each only grows."""

    published: int = 0  #: events accepted from publishers
    duplicates: int = 0  #: events a publisher sent again
    rejected: int = 0  #: events refused
    received: int = 0  #: events from neighbours
    forwarded: int = 0  #: copies sent to neighbours
    delivered: int = 0  #: copies sent to subscribers
    dropped: int = 0  #: copies for a neighbour or a client that was not there
    sessions: int = 0  #: begun, with neighbours and clients
    refusals: int = 0  #: sessions ended because the peer broke a rule
    lapses: int = 0  #: heard of: more brokers in a row than δ had lost their memory, and maybe events
