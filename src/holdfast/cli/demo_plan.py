"""The demo as a scenario: seven brokers in a binary tree, three publishers, six subscribers; two brokers are killed.

It is written as the Puppet Master would read it [contracts.md §4]. The demo reads what happens, and what is published,
from there; so ``holdfast puppet`` can run the same again, in the simulator or with real processes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from holdfast.cli.free_ports import free_ports
from holdfast.runtime.network_file import Network, read_network
from holdfast.scenarios.commands import At, Publish, Subscribe
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.language import quoted
from holdfast.scenarios.script import Script, parse_script
from holdfast.scenarios.topology import Configuration

__all__ = ["BROKERS", "DELTA", "KILLED", "PUBLISHERS", "SUBSCRIBERS", "Plan", "make_network", "make_plan"]

#: Every broker and its parent, each below all of its ancestors.
BROKERS: Final[dict[str, str | None]] = {
    "frankfurt": None,
    "london": "frankfurt",
    "dublin": "london",
    "paris": "london",
    "zurich": "frankfurt",
    "milan": "zurich",
    "vienna": "zurich",
}
DELTA: Final = 2

#: Who is killed: when, and when it is started again, as shares of the time that events are published. One is the broker
#: of a publisher, the other the root; for a while both are gone.
KILLED: Final = {"dublin": (0.2, 0.6), "frankfurt": (0.4, 0.7)}

#: A killed broker is noticed by its closed connections; patience keeps a busy machine from looking like a failure.
PATIENCE_MS: Final = 1_000
DACK_EVERY_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Flow:
    """Events on one topic, at a steady rate."""

    topic: str
    interval_ms: int
    drawn: str  #: what they say, in the language of scenarios


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes some flows."""

    name: str
    broker: str
    flows: tuple[Flow, ...]

    @property
    def rate(self) -> int:
        """Events per second."""
        return sum(1_000 // flow.interval_ms for flow in self.flows)


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Wants what matches its filter."""

    name: str
    broker: str
    filter: str


_ORDER: Final = "With sym=choice(IBM,SAP,ASML,NVDA,TSM,NESN) price=uniform(50,400) qty=randint(1,999)"
_READING: Final = "With machine=randint(1,5000) celsius=uniform(40,100)"
_STORY: Final = "With ticker=choice(IBM,SAP,ASML) up=randint(0,2) Payload xml"

PUBLISHERS: Final = (
    Publisher(
        "exchange", "dublin", tuple(Flow(f"orders/{place}", 10, _ORDER) for place in ("eu", "us", "asia"))
    ),
    Publisher(
        "factory",
        "milan",
        (Flow("plant/north/temperature", 10, _READING), Flow("plant/south/temperature", 20, _READING)),
    ),
    Publisher("newsroom", "paris", (Flow("news/markets", 20, _STORY),)),
)
SUBSCRIBERS: Final = (
    Subscriber("auditor", "frankfurt", "#"),
    Subscriber("clearing", "vienna", "orders/#"),
    Subscriber("trader", "zurich", "orders/eu WHERE sym = 'SAP'"),
    Subscriber("risk", "london", "orders/+ WHERE qty*price > 3e5"),
    Subscriber("foreman", "dublin", "plant/# WHERE celsius >= 90"),
    Subscriber("analyst", "milan", "news/# WHERE XPATH '//up[.=1]'"),
)


@dataclass(frozen=True)
class Plan:
    """What everybody in the demo is told: where the brokers are, and the scenario."""

    urls: dict[str, str]
    configuration_text: str
    script_text: str

    def as_json(self) -> str:
        """For the command line of a process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """What ``as_json`` wrote."""
        return cls(**json.loads(text))

    @cached_property
    def configuration(self) -> Configuration:
        """The network."""
        return parse_configuration(self.configuration_text, "network.txt")

    @cached_property
    def script(self) -> Script:
        """What happens in it."""
        return parse_script(self.script_text, "script.txt", self.configuration)

    @property
    def faults(self) -> list[At]:
        """Who crashes and who comes back, in the order of time."""
        return list(self.script.timed)

    def publishing(self) -> dict[str, list[Publish]]:
        """By publisher."""
        found: dict[str, list[Publish]] = {one.name: [] for one in PUBLISHERS}
        for step in self.script.steps:
            if isinstance(step, Publish):
                found[step.publisher].append(step)
        return found

    def subscribing(self) -> list[Subscribe]:
        """In the order of the script."""
        return [step for step in self.script.steps if isinstance(step, Subscribe)]

    def broker_of(self, client: str) -> str:
        """The URL of a client's broker."""
        above = self.configuration.parent_of(client)
        assert above is not None
        return self.urls[above]


def make_plan(urls: dict[str, str], seconds: float, seed: int) -> Plan:
    """The demo that publishes for so long."""
    return Plan(urls, _configuration(seed), _script(seconds))


def _configuration(seed: int) -> str:
    lines = [f"Guarantee reliable\nDelta {DELTA}\nSeed {seed}"]
    lines.append(f"DetectAfter {PATIENCE_MS}\nDackEvery {DACK_EVERY_MS}")
    for name, parent in BROKERS.items():
        lines.append(f"Site at-{name} Parent {'none' if parent is None else f'at-{parent}'}")
    processes = [
        *((name, "broker", name) for name in BROKERS),
        *((one.name, "publisher", one.broker) for one in PUBLISHERS),
        *((one.name, "subscriber", one.broker) for one in SUBSCRIBERS),
    ]
    for name, kind, broker in processes:
        lines.append(f"Process {name} is {kind} On at-{broker} URL tcp://localhost:0/{name}")
    return "\n".join(lines) + "\n"


def _script(seconds: float) -> str:
    lines = [f"Subscriber {one.name} Subscribe {quoted(one.filter)}" for one in SUBSCRIBERS]
    for publisher in PUBLISHERS:
        for flow in publisher.flows:
            count = max(1, round(seconds * 1_000 / flow.interval_ms))
            publish = f"Publish {count} Ontopic {flow.topic} Interval {flow.interval_ms} {flow.drawn}"
            lines.append(f"Publisher {publisher.name} {publish}")
    for name, (gone, back) in KILLED.items():
        lines.append(f"At {round(gone * seconds * 1_000)} Crash {name}")
        lines.append(f"At {round(back * seconds * 1_000)} Restart {name}")
    return "\n".join(lines) + "\n"


def make_network(folder: Path) -> Network:
    """The network file of the demo, on ports that are free now."""
    ports = iter(free_ports(2 * len(BROKERS)))
    lines = [
        'name = "demo"',
        f"delta = {DELTA}",
        f"neighbours.detect_after_ms = {PATIENCE_MS}",
        f"overlay.dack_every_ms = {DACK_EVERY_MS}",
        'stream = [{name = "everything", topics = ["#"], guarantee = "reliable"}]',
    ]
    for name, parent in BROKERS.items():
        lines += ["", "[[broker]]", f'name = "{name}"']
        lines += [f'{key} = "127.0.0.1:{next(ports)}"' for key in ("listen", "admin")]
        lines += [f'parent = "{parent}"'] if parent else []
    path = folder / "network.toml"
    path.write_text("\n".join(lines) + "\n")
    return read_network(path)
