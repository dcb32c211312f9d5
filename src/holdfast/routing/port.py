"""The ways out of a broker: one port per neighbouring broker, one per client.

While a batch is matched, a port gathers its share of it (``at``, ``subscriptions``); the share then leaves as one
message.
"""

from __future__ import annotations

from holdfast.messages.publications import Batch
from holdfast.messages.subscriptions import Row

__all__ = ["ClientPort", "NeighbourPort", "Port"]


class Port:
    """One way out. ``connection`` is None while nobody is there."""

    __slots__ = ("at", "connection", "name", "subscriptions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.connection: int | None = None
        self.at: list[int] = []
        self.subscriptions: list[tuple[int, ...]] = []

    def take_share(self) -> tuple[list[int], list[tuple[int, ...]]]:
        """What was gathered; the port is empty again."""
        share = self.at, self.subscriptions
        self.at, self.subscriptions = [], []
        return share


class ClientPort(Port):
    """The way to a client. It outlives the client's session for a grace time, subscriptions and all."""

    __slots__ = ("gone_at", "incarnation", "last_number", "numbers")

    def __init__(self, name: str, incarnation: int) -> None:
        super().__init__(name)
        self.incarnation = incarnation
        self.last_number = 0  #: the highest number of an event it published
        self.numbers: dict[int, None] = {}  #: of its subscriptions, in order
        self.gone_at: int | None = None


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
        "held_count",
        "incarnation",
        "is_told",
        "rows",
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
        self.rows: list[Row] = []  #: the pieces of its table so far
        self.held: list[tuple[str, Batch, list[int]]] = []  #: publications that wait for the tables
        self.held_count = 0

    @property
    def is_active(self) -> bool:
        """Whether publications may flow."""
        return self.is_told and self.has_told

    def become_absent(self) -> None:
        """The session is over."""
        self.connection = None
        self.is_told = self.has_told = False
        self.rows = []
        self.held = []
        self.held_count = 0

    def become_greeted(self, connection: int, incarnation: int) -> None:
        """A session has begun; tables come next."""
        assert self.connection is None
        self.connection = connection
        self.incarnation = incarnation
        self.has_met = True
        self.dialling = False
        self.dial_at = None
