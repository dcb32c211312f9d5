"""Where an application's epochs go: the broker that has its pubend on a stream, by the network file alone.

It is made by the driver and travels with the tasks, so that all of them, and whoever replays an epoch, go to the broker
that has its record (``streams.epochs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.events.event import Limits
from holdfast.messages.streams import Guarantee, Order
from holdfast.pipeline.errors import BadOption
from holdfast.runtime.addresses import Address
from holdfast.runtime.network_file import NetworkFileError, read_network
from holdfast.streams.epochs import home_of

__all__ = ["Home", "Homes", "homes_of"]


@dataclass(frozen=True, slots=True)
class Home:
    """A broker."""

    name: str
    address: Address


@dataclass(frozen=True, slots=True)
class Homes:
    """Of the applications that write a stream; ``sequencer`` is where all are, if it is in total order."""

    stream: str
    brokers: dict[str, Address]
    sequencer: str | None
    limits: Limits

    def of(self, app: str) -> Home:
        """Where an application is at home."""
        name = self.sequencer or home_of(app, self.brokers)
        return Home(name, self.brokers[name])


def homes_of(network: Path, stream: str) -> Homes:
    """Where a stream of a network file is written.

    :raises BadOption: if the file cannot be used, or the stream cannot be written so.
    """
    try:
        found = read_network(network)
    except NetworkFileError as error:
        raise BadOption("network", str(error)) from error
    entry = next((each for each in found.streams if each.name == stream), None)
    if entry is None:
        names = ", ".join(each.name for each in found.streams)
        raise BadOption("stream", f"there is no stream {stream} in {network}; expected {names}")
    if entry.guarantee is not Guarantee.DURABLE:
        problem = f"{stream} is {entry.guarantee}"
        raise BadOption("stream", f"{problem}; only durable streams can be written exactly once")
    root = next(each.name for each in found.brokers if each.parent is None)
    sequencer = entry.stream(root).sequencer if entry.order is Order.TOTAL else None
    brokers = {each.name: each.address for each in found.brokers}
    return Homes(stream, brokers, sequencer, found.common["limits"])
