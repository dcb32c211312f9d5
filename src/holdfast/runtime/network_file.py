"""``network.toml``: which brokers make up a network, how they hang together, and what they are told.

One file describes the whole network and every broker of it reads the same one. What is wrong with it is said all
at once, each with its line; what Holdfast cannot do yet is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from holdfast.broker.settings import Neighbour, Settings, Stream
from holdfast.events.event import Limits
from holdfast.messages.streams import Guarantee, Order
from holdfast.runtime.addresses import Address
from holdfast.runtime.network_checks import (
    check_limits,
    check_names,
    check_policies,
    check_streams,
    check_timing,
    check_tree,
    checked_addresses,
)
from holdfast.runtime.network_document import Document, NetworkFileError, Override
from holdfast.runtime.network_keys import BROKER, STREAM, TABLES, defaults

__all__ = ["BrokerEntry", "Network", "NetworkFileError", "StreamEntry", "read_network"]

#: The one stream of a file that names none.
EVERYTHING: Final = {"name": "default", "topics": ("#",), **defaults(STREAM)}


@dataclass(frozen=True, slots=True)
class BrokerEntry:
    """One broker of the file; ``data`` is its folder, ``address`` where others dial it, ``reader`` its log reader."""

    name: str
    parent: str | None
    listen: Address
    address: Address
    admin: Address | None
    data: Path
    reader: Address | None = None


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One stream of the file."""

    name: str
    topics: tuple[str, ...]
    guarantee: Guarantee = Guarantee.DURABLE
    order: Order = Order.FIFO
    sequencer: str | None = None  #: of a stream in total order, if it is not the root
    pubends: int = 1
    retain: int | None = None  #: nanoseconds
    retain_bytes: int | None = None
    expires: str | None = None  #: an attribute
    #: those with columns in its table, with their types
    attributes: Mapping[str, str] = field(default_factory=dict)
    lake: bool = False  #: who is behind its logs is fed from its table

    def stream(self, root: str) -> Stream:
        """What a broker is told of it."""
        if self.guarantee is not Guarantee.DURABLE:
            return Stream(self.name, self.topics, self.order, self.guarantee)
        sequencer = (self.sequencer or root) if self.order is Order.TOTAL else None
        going = self.retain, self.retain_bytes, self.expires, self.lake
        return Stream(self.name, self.topics, self.order, self.guarantee, self.pubends, sequencer, *going)


@dataclass(frozen=True, slots=True)
class Network:
    """Everything a network file says.

    Invariant: the brokers form one tree; names, addresses and folders are different; no topic is in two streams.
    """

    path: Path
    name: str
    delta: int
    insecure: bool
    brokers: tuple[BrokerEntry, ...]
    streams: tuple[StreamEntry, ...]
    lake: Path  #: the folder with a table for each stream
    common: Mapping[str, Any]  #: the fields of ``Settings`` that are the same for every broker

    def broker(self, name: str) -> BrokerEntry:
        """The broker of this name; KeyError if there is none."""
        for entry in self.brokers:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def settings(self, name: str, incarnation: int) -> Settings:
        """What the broker of this name is told; KeyError if there is none."""
        common = dict(self.common)
        if self.broker(name).reader is None:  # nobody would read it
            common["vouch_every_ns"] = None
        root = next(entry.name for entry in self.brokers if entry.parent is None)
        streams = tuple(each.stream(root) for each in self.streams)
        names = tuple(entry.name for entry in self.brokers)
        return Settings(name, incarnation, tuple(self._places(name)), streams, brokers=names, **common)

    def beside(self, name: str) -> list[BrokerEntry]:
        """The brokers beside one in the tree: its parent, then its children in the order of the file."""
        above = self.broker(name).parent
        return [
            *(entry for entry in self.brokers if entry.name == above),
            *(entry for entry in self.brokers if entry.parent == name),
        ]

    def _places(self, name: str) -> Iterator[Neighbour]:
        """The brokers within δ+1 hops, nearer ones first. A child dials its parent, not the other way [B0.20]."""
        above = self.broker(name).parent
        seen, here = {name}, [name]
        for distance in range(self.delta + 1):
            farther: list[str] = []
            for before in here:
                for entry in self.beside(before):
                    if entry.name not in seen:
                        seen.add(entry.name)
                        farther.append(entry.name)
                        if distance == 0 and entry.name != above:
                            yield Neighbour(entry.name, None, answers_at=str(entry.address))
                        else:
                            yield Neighbour(entry.name, str(entry.address), before if distance else None)
            here = farther


def read_network(path: Path, overrides: Sequence[Override] = ()) -> Network:
    """Read and check a network file; later overrides stand above earlier ones.

    :raises NetworkFileError: with everything that is wrong.
    """
    document = Document(path)
    for override in overrides:
        document.override(override)
    once = {table: document.table((table,) if table else (), keys) for table, keys in TABLES.items()}
    brokers = document.tables("broker", BROKER)
    streams = document.tables("stream", STREAM)
    top, limits = once[""], once["limits"]
    check_timing(document, once["neighbours"])
    check_limits(document, limits)
    check_names(document, "broker", brokers)
    check_names(document, "broker", brokers, "data")
    check_tree(document, brokers)
    check_names(document, "stream", streams)
    check_streams(document, streams)
    check_policies(document, streams, brokers)
    addresses = checked_addresses(
        document, brokers, insecure=top.get("insecure", False), delta=top.get("delta", 0)
    )
    document.raise_problems()

    event_limits = {one.name: limits.pop(one.name) for one in fields(Limits)}
    common = {
        key.sets: once[table][name]
        for table, keys in TABLES.items()
        for name, key in keys.items()
        if key.sets and name in once[table]
    }
    folder = path.absolute().parent
    return Network(
        path,
        top["name"],
        top["delta"],
        top["insecure"],
        tuple(_entry(one, of, folder) for one, of in zip(brokers, addresses, strict=True)),
        tuple(StreamEntry(**stream) for stream in streams or [EVERYTHING]),
        folder / once["lake"]["path"],
        {**common, "limits": Limits(**event_limits)},
    )


def _entry(broker: Mapping[str, Any], addresses: Mapping[str, Address], folder: Path) -> BrokerEntry:
    name, listen = broker["name"], addresses["listen"]
    data = folder / (broker["data"] or f"data/{name}")
    address = addresses.get("address", listen)
    admin, reader = addresses.get("admin"), addresses.get("reader")
    return BrokerEntry(name, broker["parent"], listen, address, admin, data, reader)
