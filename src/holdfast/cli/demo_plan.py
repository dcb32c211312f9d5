"""Who is where in the demo: seven brokers in a binary tree, three publishers, six subscribers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from holdfast.cli import sample
from holdfast.cli.free_ports import free_ports
from holdfast.events.event import Event
from holdfast.runtime.network_file import Network, read_network

__all__ = [
    "BROKERS",
    "PUBLISHERS",
    "SUBSCRIBERS",
    "TRAFFIC",
    "Plan",
    "Publisher",
    "Subscriber",
    "make_network",
]

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

#: Nobody fails here; patience keeps a busy machine from looking like a failure.
PATIENCE_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one kind of sample traffic at a steady rate."""

    name: str
    broker: str
    traffic: str  #: a key of TRAFFIC
    rate: int  #: events per second


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Wants what matches its filter."""

    name: str
    broker: str
    filter: str


PUBLISHERS: Final = (
    Publisher("exchange", "dublin", "orders", 300),
    Publisher("factory", "milan", "readings", 150),
    Publisher("newsroom", "paris", "news", 50),
)
SUBSCRIBERS: Final = (
    Subscriber("auditor", "frankfurt", "#"),
    Subscriber("clearing", "vienna", "orders/#"),
    Subscriber("trader", "zurich", "orders/eu WHERE sym = 'SAP'"),
    Subscriber("risk", "london", "orders/+ WHERE qty*price > 3e5"),
    Subscriber("foreman", "dublin", "plant/# WHERE celsius >= 90"),
    Subscriber("analyst", "milan", "news/# WHERE XPATH '//amount'"),
)
TRAFFIC: Final[Mapping[str, Callable[[random.Random], Event]]] = {
    "orders": sample.order,
    "readings": sample.reading,
    "news": sample.story,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a process of clients is told."""

    urls: dict[str, str]  #: of the brokers
    publishers: tuple[Publisher, ...]
    subscribers: tuple[Subscriber, ...]
    seconds: float
    seed: int

    def as_json(self) -> str:
        """For the command line of that process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """What ``as_json`` wrote."""
        said = json.loads(text)
        return cls(
            said["urls"],
            tuple(Publisher(**one) for one in said["publishers"]),
            tuple(Subscriber(**one) for one in said["subscribers"]),
            said["seconds"],
            said["seed"],
        )


def make_network(folder: Path) -> Network:
    """The network file of the demo, on ports that are free now."""
    ports = iter(free_ports(2 * len(BROKERS)))
    lines = ['name = "demo"', f"neighbours.detect_after_ms = {PATIENCE_MS}"]
    for name, parent in BROKERS.items():
        lines += ["", "[[broker]]", f'name = "{name}"']
        lines += [f'{key} = "127.0.0.1:{next(ports)}"' for key in ("listen", "admin")]
        lines += [f'parent = "{parent}"'] if parent else []
    path = folder / "network.toml"
    path.write_text("\n".join(lines) + "\n")
    return read_network(path)
