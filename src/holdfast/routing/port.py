"""The ways out of a broker: one port per neighbouring broker, one per client.

While a batch is matched, a port gathers its share of it (``at``, ``subscriptions``); the share then leaves as one
message.
"""

from __future__ import annotations

from holdfast.identity import SubscriptionId
from holdfast.messages.publications import Batch

__all__ = ["ClientPort", "NeighbourPort", "Port"]


class Port:
    """One way out. ``connection`` is None while nobody is there."""

    __slots__ = ("at", "connection", "merged", "name", "subscriptions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.connection: int | None = None
        self.at: list[int] = []
        self.subscriptions: list[tuple[int, ...]] = []
        self.merged: dict[
            int, list[int]
        ] = {}  #: where several subscriptions match: place to all their numbers

    def merge(self, numbers: tuple[int, ...]) -> None:
        """The last event gathered matches another subscription of the same client."""
        place = len(self.at) - 1
        merged = self.merged.get(place)
        if merged is None:
            merged = self.merged[place] = list(self.subscriptions[place])
        merged += numbers

    def take_share(self) -> tuple[list[int], list[tuple[int, ...]]]:
        """What was gathered; the port is empty again."""
        for place, numbers in self.merged.items():
            self.subscriptions[place] = tuple(numbers)
        share = self.at, self.subscriptions
        self.at, self.subscriptions, self.merged = [], [], {}
        return share


class ClientPort(Port):
    """The way to a client. It outlives the client's session for a grace time, subscriptions and all."""

    __slots__ = ("gone_at", "incarnation", "last_number", "numbers", "rejected", "superseded")

    #: So many rejections are remembered, in case the event is sent again; older ones would then count as accepted.
    REJECTED_MAX = 100_000

    def __init__(self, name: str, incarnation: int) -> None:
        super().__init__(name)
        self.incarnation = incarnation
        self.last_number = 0  #: the highest number of an event it published
        self.rejected: dict[int, str] = {}  #: numbers of events that were refused, and why
        self.numbers: dict[int, None] = {}  #: of its subscriptions, in order
        self.gone_at: int | None = None
        self.superseded: list[int] = []  #: incarnations this one has taken over from

    def reject(self, n: int, problem: str) -> None:
        """Remember that an event was refused; the oldest is forgotten."""
        self.rejected[n] = problem
        if len(self.rejected) > self.REJECTED_MAX:
            del self.rejected[next(iter(self.rejected))]


class NeighbourPort(Port):
    """The way to a neighbouring broker.

    Invariant: publications are sent on it only while ``is_active``: each side has told the other its table on this
    session.
    """

    __slots__ = (
        "address",
        "dial_at",
        "dialling",
        "has_met",
        "has_told",
        "held",
        "held_bytes",
        "held_count",
        "incarnation",
        "is_told",
        "listed",
    )

    def __init__(self, name: str, address: str | None) -> None:
        super().__init__(name)
        self.address = address
        self.dialling = False
        self.dial_at: int | None = None
        self.incarnation = 0  #: the last one met
        self.has_met = False  #: there has been a session, now or earlier
        self.is_told = False  #: we have sent our table on this session
        self.has_told = False  #: we have got its table on this session
        self.listed: set[SubscriptionId] = set()  #: the rows of its table so far
        self.held: list[tuple[str, Batch, list[int]]] = []  #: publications that wait for the tables
        self.held_count = 0
        self.held_bytes = 0

    @property
    def is_active(self) -> bool:
        """Whether publications may flow."""
        return self.is_told and self.has_told

    def become_absent(self) -> None:
        """The session is over."""
        self.connection = None
        self.is_told = self.has_told = False
        self.listed = set()
        self.take_held()

    def hold(self, stream: str, batch: Batch, at: list[int], count_max: int, bytes_max: int) -> int:
        """Keep publications until the tables are exchanged, the first of them that there is room for; how many."""
        kept: list[int] = []
        for i in at:
            size = len(batch.publications[i].event)
            if self.held_count == count_max or self.held_bytes + size > bytes_max:
                break
            kept.append(i)
            self.held_count += 1
            self.held_bytes += size
        if kept:
            self.held.append((stream, batch, kept))
        return len(kept)

    def take_held(self) -> list[tuple[str, Batch, list[int]]]:
        """What was held; nothing is any more."""
        held, self.held, self.held_count, self.held_bytes = self.held, [], 0, 0
        return held

    def become_greeted(self, connection: int, incarnation: int) -> None:
        """A session has begun; tables come next."""
        assert self.connection is None
        self.connection = connection
        self.incarnation = incarnation
        self.has_met = True
        self.dialling = False
        self.dial_at = None
