"""The network of the overlay's experiments [KJ §10]: 86 nodes, three of them a chain in the core.

The core nodes n1, n2 and n3 have about eleven neighbours each: one another, four brokers at the edge, and clients of
their own. The other clients are dealt out to the brokers at the edge. How the paper's tree looks besides is not in its
text.

Every experiment is a scenario, as `holdfast puppet --sim` plays it: a configuration and a script, both text. What is
found is read off its trace, and off brokers that count what passes them (``overlay_meter``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from holdfast.broker.broker import Broker
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.cast import MakeBroker
from holdfast.simulator.run import simulate

__all__ = ["BEGIN_MS", "CORE", "Extent", "Network", "Patience", "chain_configuration", "perform"]

CORE: Final = ("n1", "n2", "n3")
#: So many subscriptions are made in a millisecond of virtual time.
SUBSCRIBES_PER_MS: Final = 2
#: When an experiment begins: by then every subscription is confirmed everywhere.
BEGIN_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Extent:
    """How large the network is; tests use less."""

    edge_brokers: int = 4  #: beside each core node
    core_clients: tuple[int, int, int] = (6, 5, 6)  #: beside n1, n2 and n3
    edge_clients: int = 54  #: in all; publishers are among them
    publishers: int = 5
    subscriptions: int = 2_600
    topics: int = 520  #: how many different ones they are for


@dataclass(frozen=True, slots=True)
class Patience:
    """The settings of a configuration that are times, in milliseconds."""

    heartbeat_ms: int = 500
    detect_ms: int = 2_000
    dack_ms: int = 1_000

    def lines(self) -> list[str]:
        """As a configuration has them."""
        return [
            f"Heartbeat {self.heartbeat_ms}",
            f"DetectAfter {self.detect_ms}",
            f"DackEvery {self.dack_ms}",
        ]


class Network:
    """Who is there, beside whom, and who subscribes to what."""

    def __init__(self, extent: Extent) -> None:
        self.parents: dict[str, str | None] = {"n1": None, "n2": "n1", "n3": "n2"}
        edges = [(f"{core}{'abcdefghij'[i]}", core) for i in range(extent.edge_brokers) for core in CORE]
        self.parents.update(edges)
        self.brokers = list(self.parents)
        homes = [core for core, count in zip(CORE, extent.core_clients, strict=True) for _ in range(count)]
        homes += [edges[i % len(edges)][0] for i in range(extent.edge_clients)]
        # The first clients at the edge publish: one beside n1a, the next beside n2a, and so on.
        first = sum(extent.core_clients)
        self.publishers: list[str] = []
        self.subscribers: list[str] = []
        for i, home in enumerate(homes):
            names = self.publishers if first <= i < first + extent.publishers else self.subscribers
            names.append(f"{'p' if names is self.publishers else 's'}{len(names) + 1}")
            self.parents[names[-1]] = home
        self._topics = extent.topics
        count = len(self.subscribers)
        self.wishes = [
            (self.subscribers[j % count], (j // count * 41 + j * 7) % extent.topics)
            for j in range(extent.subscriptions)
        ]

    def degree(self, node: str) -> int:
        """How many neighbours a node has."""
        return sum(parent == node for parent in self.parents.values()) + (self.parents[node] is not None)

    def behind(self, broker: str) -> str:
        """The last subscriber of a broker."""
        return [each for each in self.subscribers if self.parents[each] == broker][-1]

    def path(self, a: str, b: str) -> list[str]:
        """The way between two nodes, both included."""
        up, down = self._to_root(a), self._to_root(b)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        return [*up, *reversed(down[:-1])]

    def _to_root(self, node: str) -> list[str]:
        way = [node]
        while (parent := self.parents[way[-1]]) is not None:
            way.append(parent)
        return way

    @cached_property
    def wanting(self) -> dict[str, list[str]]:
        """By topic, who has subscribed to it."""
        found: dict[str, dict[str, None]] = {}
        for subscriber, topic in self.wishes:
            found.setdefault(f"t/{topic}", {})[subscriber] = None
        return {topic: list(names) for topic, names in found.items()}

    # As a scenario

    def configuration(
        self, patience: Patience, *, delta: int = 3, acknowledge: str = "dack", logging: str = "light"
    ) -> str:
        """The text of a configuration file."""
        lines = [
            "Guarantee reliable",
            f"Delta {delta}",
            f"Acknowledge {acknowledge}",
            f"LoggingLevel {logging}",
            *patience.lines(),
        ]
        for name, parent in self.parents.items():
            if name in self.brokers:
                lines.append(f"Site at-{name} Parent {'none' if parent is None else f'at-{parent}'}")
                lines.append(f"Process {name} is broker On at-{name} URL tcp://localhost:0/{name}")
            else:
                kind = "publisher" if name in self.publishers else "subscriber"
                lines.append(f"Process {name} is {kind} On at-{parent} URL tcp://localhost:0/{name}")
        return "".join(f"{line}\n" for line in lines)

    def subscribing(self, but: str | None = None) -> list[str]:
        """The lines of a script that make all subscriptions, or all but those of one, before ``BEGIN_MS``."""
        return [
            f"At {j // SUBSCRIBES_PER_MS} Subscriber {subscriber} Subscribe t/{topic}"
            for j, (subscriber, topic) in enumerate(self.wishes)
            if subscriber != but
        ]

    def publishing(self, begin_s: float, seconds: float, per_second: float) -> list[str]:
        """The lines by which everybody publishes for so long, steadily, on topics that others have subscribed to.

        Each publisher has a line per topic of its own, so that any stretch of time as long as their interval has the
        same events as any other.
        """
        count = len(self.publishers)
        each = max(1, min(20, round(per_second * seconds / count)))
        interval_ms = round(1_000 * count * each / per_second)
        lines: list[str] = []
        for i, publisher in enumerate(self.publishers):
            for m in range(each):
                at = BEGIN_MS + round(begin_s * 1_000) + (m * count + i) * interval_ms // (count * each)
                topic = f"t/{(m * count + i) * 7 % self._topics}"
                events = math.ceil(seconds * 1_000 / interval_ms)
                lines.append(
                    f"At {at} Publisher {publisher} Publish {events} Ontopic {topic} Interval {interval_ms}"
                )
        return lines


def chain_configuration(brokers: int, delta: int, patience: Patience) -> str:
    """Brokers b1, b2, … in a row, a publisher p beside the first and a subscriber s beside the last."""
    lines = ["Guarantee reliable", f"Delta {delta}", *patience.lines()]
    for i in range(1, brokers + 1):
        lines.append(f"Site at-b{i} Parent {f'at-b{i - 1}' if i > 1 else 'none'}")
        lines.append(f"Process b{i} is broker On at-b{i} URL tcp://localhost:0/b{i}")
    lines.append("Process p is publisher On at-b1 URL tcp://localhost:0/p")
    lines.append(f"Process s is subscriber On at-b{brokers} URL tcp://localhost:0/s")
    return "".join(f"{line}\n" for line in lines)


def perform(configuration: str, script: Sequence[str], make_broker: MakeBroker = Broker) -> list[TraceLine]:
    """Play a scenario in virtual time; the lines of its trace, with times in seconds since ``BEGIN_MS``."""
    network = parse_configuration(configuration)
    text = "".join(f"{line}\n" for line in script)
    result = simulate(network, parse_script(text, "script", network), make_broker=make_broker)
    return [{**line, "t": line["t"] - BEGIN_MS / 1_000} for line in result.trace]
