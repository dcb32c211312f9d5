"""The ways out of a node: one port per client of its own; those to other nodes are ``node.station``s.

While a batch is matched, a port gathers its share of it (``at``, ``subscriptions``); the share then leaves as one
message.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.identity import SubscriptionId
from holdfast.intervals import Intervals, Span

__all__ = ["ClientPort", "Outstanding", "Port"]


class Port:
    """One way out. ``connection`` is None while nobody is there."""

    __slots__ = ("at", "connection", "merged", "name", "subscriptions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.connection: int | None = None
        self.at: list[int] = []
        self.subscriptions: list[tuple[int, ...]] = []
        #: where several subscriptions match: place to all their numbers
        self.merged: dict[int, list[int]] = {}

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


class Outstanding:
    """Numbers that wait for something; the lowest is asked for again and again, and most are neighbours."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting = Intervals()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return self._waiting.size

    @property
    def lowest(self) -> int:
        """The lowest that waits; there must be one."""
        return self._waiting.first

    def add(self, numbers: Sequence[int]) -> None:
        """These wait, which ascend, as they may have before."""
        self._waiting.add_all(_spans(numbers))

    def discard(self, numbers: Sequence[int]) -> bool:
        """These, which ascend, wait no more; whether any did."""
        count = len(self)
        self._waiting.remove_all(_spans(numbers))
        return len(self) < count


def _spans(numbers: Sequence[int]) -> Sequence[Span]:
    if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
        return [(numbers[0] - 1, numbers[-1])]
    return [(number - 1, number) for number in numbers]


class ClientPort(Port):
    """The way to a client. It outlives the client's session for a grace time, subscriptions and all."""

    __slots__ = (
        "accepted_upto",
        "gone_at",
        "heard",
        "home",
        "incarnation",
        "lapses_marked",
        "last_number",
        "numbers",
        "rejected",
        "session_upto",
        "superseded",
        "unlogged",
        "unsafe",
    )

    #: So many rejections are remembered, in case the event is sent again; older ones would then count as accepted.
    REJECTED_MAX = 100_000

    def __init__(self, name: str, incarnation: int) -> None:
        super().__init__(name)
        self.incarnation = incarnation
        self.lapses_marked = (
            0  #: how many lapses had been heard of when others were last told up to where it published
        )
        self.last_number = 0  #: the highest number of an event it published
        self.heard = 0  #: up to which number it had heard of refusals when it sent what came last
        self.home: str | None = None  #: the broker its events are logged at, once it has published
        self.rejected: dict[int, str] = {}  #: numbers of events that were refused, and why
        self.unsafe = Outstanding()  #: its events of reliable streams that too few others are known to hold
        self.unlogged = Outstanding()  #: those of durable streams that are on no disk yet
        self.accepted_upto = 0  #: where they end
        self.session_upto = (
            0  #: the highest number that came in this session: what came before may not be known there
        )
        self.numbers: dict[int, SubscriptionId] = {}  #: its subscriptions, with the network's ids
        self.gone_at: int | None = None
        self.superseded: list[int] = []  #: incarnations this one has taken over from

    @property
    def answered_upto(self) -> int:
        """Up to where each of its events is accepted, or refused, whatever its stream promises."""
        waiting = [each.lowest - 1 for each in (self.unsafe, self.unlogged) if each]
        return min(waiting, default=self.accepted_upto)

    def reject(self, n: int, problem: str) -> None:
        """Remember that an event was refused; the oldest is forgotten."""
        self.rejected[n] = problem
        if len(self.rejected) > self.REJECTED_MAX:
            del self.rejected[next(iter(self.rejected))]
