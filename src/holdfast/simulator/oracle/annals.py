"""What really happened in a simulated network, as far as the laws of the oracle ask: the truth nodes are judged by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.clock import Instant
from holdfast.identity import EventId, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Relay
from holdfast.node.node import Node
from holdfast.scenarios.checkers.rematch import Rematch
from holdfast.scenarios.checkers.tree import Tree
from holdfast.scenarios.topology import Configuration

__all__ = ["Annals", "Law", "Said", "Step", "Verdict", "events_of"]


class Said(NamedTuple):
    """One message, at one end of a connection; every connection has two numbers, and none is used twice."""

    connection: int
    peer: str
    message: Message


class Verdict(NamedTuple):
    """Which places of a relay a node held to be new."""

    sender: str
    relay: Relay
    new: list[int]


@dataclass(slots=True)
class Step:
    """One step of one node: what it heard, judged and said; ``node`` is how it stands now."""

    now: Instant
    name: str
    life: int  #: the incarnation
    node: Node
    heard: list[Said] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


@dataclass(slots=True)
class Standing:
    """A subscription that is wholly confirmed: since when, and until when it was wanted."""

    subscription: SubscriptionId
    filter: str
    since: Instant
    until: Instant | None = None


class Annals:
    """Everything published, everything confirmed, every crash."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.tree = Tree(configuration.tree())
        self.delta = configuration.delta
        self.published: dict[EventId, Mapping[str, Any]] = {}
        self.published_at: dict[EventId, Instant] = {}
        self.accepted: set[EventId] = set()
        self.crashed_at: dict[str, Instant] = {}  #: the last time, by node
        self.last_crash: Instant = -1
        self.lives: dict[str, int] = {}
        self._down: set[str] = set()
        self.standings: dict[SubscriptionId, Standing] = {}
        self.arrived: dict[str, set[EventId]] = {}  #: by node, in any life
        self._rematch = Rematch()

    def on_published(self, fields: Mapping[str, Any], now: Instant) -> None:
        """A publisher publishes."""
        event = EventId(fields["publisher"], fields["n"])
        self.published[event] = fields
        self.published_at[event] = now

    def on_crash(self, name: str, now: Instant) -> None:
        """A node lost its memory; nobody owes its subscriptions anything."""
        self.crashed_at[name] = self.last_crash = now
        self._down.add(name)
        for standing in self.standings.values():
            if standing.subscription.subscriber == name and standing.until is None:
                standing.until = now

    def is_down(self, name: str) -> bool:
        """Whether a node has crashed, and nothing was heard of its next life yet."""
        return name in self._down

    def note(self, step: Step) -> None:
        """What a step tells of subscriptions and arrivals."""
        name, interests = step.name, step.node.spread.interests
        self.lives[name] = step.life
        self._down.discard(name)
        for verdict in step.verdicts:
            self.arrived.setdefault(name, set()).update(event for _, event in events_of(verdict.relay))
        for interest in interests.values():
            key = interest.subscription
            if key.subscriber == name and interest.is_proven and not interest.partial:
                self.standings.setdefault(key, Standing(key, interest.text, step.now))
        for standing in self.standings.values():
            key = standing.subscription
            if key.subscriber == name and standing.until is None and key not in interests:
                standing.until = step.now

    def owed(self, event: EventId) -> Iterator[Standing]:
        """The subscriptions that still wait for this event: confirmed before it was published, and matching.

        What was not accepted when its publisher crashed is owed to nobody, nor is a mark.
        """
        if event.n <= 0:
            return
        published_at = self.published_at[event]
        if event not in self.accepted and self.crashed_at.get(event.publisher, -1) >= published_at:
            return
        for standing in self.standings.values():
            is_waiting = standing.until is None and standing.since < published_at
            if is_waiting and self._rematch.matches(standing.filter, self.published[event]):
                yield standing


class Law(ABC):
    """Something that must be true of every step."""

    def __init__(self, annals: Annals) -> None:
        self.annals = annals

    @abstractmethod
    def judge(self, step: Step) -> Iterator[str]:
        """What this step did that must not be."""


def events_of(relay: Relay) -> Iterator[tuple[int, EventId]]:
    """The publications of a relay, each with its place in ``relay.at``."""
    publications = relay.batch.publications
    for place, i in enumerate(relay.at):
        yield place, publications[i].id
